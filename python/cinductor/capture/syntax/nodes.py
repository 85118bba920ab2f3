"""Walking, changing and placing syntax: what `ast` has for that, without asking a node for each of
its fields by name and a visitor for each method anew. Long functions are walked many times.

Operators and contexts, which have neither parts nor places, are left out where a field holds one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar

from ... import _core

LEAVES = frozenset({ast.Name, ast.Constant})  # most nodes


# The nodes in a node's fields, in order; it and all below it, those nearer to it first; the new node, at
# the old one's place; where a node stands, for what makes another there. Asked thousands of times, in C.
children, walk, placed, place_of = _core.children, _core.walk, _core.placed, _core.place_of


def holds(root: ast.AST, *classes: type[ast.AST]) -> bool:
    """Whether a node of one of these classes is in some syntax."""
    return not set(map(type, walk(root))).isdisjoint(classes)


class Methods(dict[type[ast.AST], Callable[[Any, Any], Any]]):
    """By classes of nodes, what visits one: looked for when one is met first."""

    def __init__(self, visitor: type[Visitor]) -> None:
        self.visitor = visitor

    def __missing__(self, kind: type[ast.AST]) -> Callable[[Any, Any], Any]:
        cls = self.visitor
        found: Callable[[Any, Any], Any] = getattr(cls, f"visit_{kind.__name__}", cls.generic_visit)
        self[kind] = found
        return found


class Visitor:
    """`visit_Name` and its like are called for nodes of that class, for others `generic_visit`."""

    _methods: ClassVar[Methods]
    _quiet: ClassVar[frozenset[type[ast.AST]]]  # leaves of which there is nothing to say

    def __init_subclass__(cls) -> None:
        cls._methods = Methods(cls)
        cls._quiet = frozenset(c for c in LEAVES if not hasattr(cls, f"visit_{c.__name__}"))

    def visit(self, node: Any) -> Any:
        """What the method for the node's class gives."""
        return node if type(node) in self._quiet else self._methods[type(node)](self, node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visits the parts of a node."""
        for child in children(node):
            if type(child) not in self._quiet:
                self._methods[type(child)](self, child)


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
                values[field] = self._methods[type(value)](self, value)
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
