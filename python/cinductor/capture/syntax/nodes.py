"""Walking, changing and placing syntax: what `ast` has for that, without asking a node for each of
its fields by name and a visitor for each method anew. Long functions are walked many times.

Operators and contexts, which have neither parts nor places, are left out where a field holds one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

Node = TypeVar("Node", bound=ast.AST)
LEAVES = frozenset({ast.Name, ast.Constant})  # most nodes


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node's fields, in order."""
    found: list[ast.AST] = []
    if type(node) in LEAVES:
        return found
    values = node.__dict__
    for field in node._fields:
        value = values.get(field)
        if type(value) is list:
            found += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, those nearer to it first."""
    found = [root]
    for node in found:
        found += children(node)
        yield node


class Visitor:
    """`visit_Name` and its like are called for nodes of that class, for others `generic_visit`."""

    _methods: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Any]]]

    def __init_subclass__(cls) -> None:
        cls._methods = {}

    def visit(self, node: Any) -> Any:
        """What the method for the node's class gives."""
        method = self._methods.get(type(node))
        if method is None:
            name = f"visit_{type(node).__name__}"
            method = getattr(type(self), name, type(self).generic_visit)
            self._methods[type(node)] = method
        return method(self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visits the parts of a node."""
        for child in children(node):
            self.visit(child)


class Transformer(Visitor):
    """A visitor whose methods give what takes a node's place; in lists, several or none."""

    def generic_visit(self, node: ast.AST) -> Any:
        """The node, with its parts changed."""
        values = node.__dict__
        for field in node._fields:
            value = values.get(field)
            if type(value) is list:
                values[field] = self._list(value)
            elif isinstance(value, ast.AST) and value._fields:
                values[field] = self.visit(value)
        return node

    def _list(self, nodes: list[Any]) -> list[Any]:
        out: list[Any] = []
        for node in nodes:
            new = self.visit(node) if isinstance(node, ast.AST) else node
            if isinstance(new, list):
                out += new
            elif new is not None or node is None:
                out.append(new)
        return out


def placed(new: Node, old: ast.AST) -> Node:
    """The new node, at the old one's place."""
    to, place = new.__dict__, old.__dict__
    if "end_col_offset" not in place:
        return ast.copy_location(new, old)
    to["lineno"], to["col_offset"] = place["lineno"], place["col_offset"]
    to["end_lineno"], to["end_col_offset"] = place["end_lineno"], place["end_col_offset"]
    return new
