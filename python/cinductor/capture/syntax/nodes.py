"""Walking, changing and placing syntax: what `ast` has for that, without asking a node for each of
its fields by name and a visitor for each method anew. Long functions are walked many times.

Operators and contexts, which have neither parts nor places, are left out where a field holds one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

Node = TypeVar("Node", bound=ast.AST)
LEAVES = frozenset({ast.Name, ast.Constant})  # most nodes


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node's fields, in order."""
    return walk(node, is_deep=False)[1:]


def walk(root: ast.AST, is_deep: bool = True) -> list[ast.AST]:
    """The node and all below it, those nearer to it first; or only those that are its parts."""
    found = [root]
    for node in found:
        if type(node) not in LEAVES:
            values = node.__dict__
            for field in node._fields:
                value = values.get(field)
                if type(value) is list:
                    for part in value:
                        if isinstance(part, ast.AST):
                            found.append(part)
                elif isinstance(value, ast.AST) and value._fields:
                    found.append(value)
        if not is_deep:
            break
    return found


def holds(root: ast.AST, *classes: type[ast.AST]) -> bool:
    """Whether a node of one of these classes is in some syntax."""
    return not set(map(type, walk(root))).isdisjoint(classes)


class Visitor:
    """`visit_Name` and its like are called for nodes of that class, for others `generic_visit`."""

    _methods: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Any]]]
    _quiet: ClassVar[frozenset[type[ast.AST]]]  # leaves of which there is nothing to say

    def __init_subclass__(cls) -> None:
        cls._methods = {}
        cls._quiet = frozenset(c for c in LEAVES if not hasattr(cls, f"visit_{c.__name__}"))

    def visit(self, node: Any) -> Any:
        """What the method for the node's class gives."""
        if type(node) in self._quiet:
            return node
        method = self._methods.get(type(node))
        if method is None:
            name = f"visit_{type(node).__name__}"
            method = getattr(type(self), name, type(self).generic_visit)
            self._methods[type(node)] = method
        return method(self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visits the parts of a node."""
        for child in walk(node, is_deep=False)[1:]:
            if type(child) not in self._quiet:
                self.visit(child)


class Transformer(Visitor):
    """A visitor whose methods give what takes a node's place; in lists, several or none."""

    def generic_visit(self, node: ast.AST) -> Any:
        """The node, with its parts changed."""
        values = node.__dict__
        for field in node._fields:
            value = values.get(field)
            if type(value) is list:
                values[field] = self._list(value) if value else value
            elif isinstance(value, ast.AST) and value._fields and type(value) not in self._quiet:
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


def place_of(node: ast.AST) -> dict[str, Any]:
    """Where a node stands, for what makes another there."""
    own = node.__dict__
    if "end_col_offset" not in own:
        return {name: own[name] for name in node._attributes if name in own}
    return {
        "lineno": own["lineno"],
        "col_offset": own["col_offset"],
        "end_lineno": own["end_lineno"],
        "end_col_offset": own["end_col_offset"],
    }


def placed(new: Node, old: ast.AST) -> Node:
    """The new node, at the old one's place."""
    to, place = new.__dict__, old.__dict__
    if "end_col_offset" not in place:
        return ast.copy_location(new, old)
    to["lineno"], to["col_offset"] = place["lineno"], place["col_offset"]
    to["end_lineno"], to["end_col_offset"] = place["end_lineno"], place["end_col_offset"]
    return new
