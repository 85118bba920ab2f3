"""Moves array work out of statements that Python runs: `print(x.sum())` becomes `t = x.sum(); print(t)`.

The order of evaluation is kept: if a part is moved, all parts before it are moved too, except constants and plain
local names, which nothing can change in between. There are two exceptions. A module's function that is called
(`print`, `np.save`) is looked up after its arguments. Values in one text are formatted after the last of them is
computed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..syntax.names import name_at, store_at, walk
from ..syntax.rows import OPAQUE, PYTHONS, WORKS, classes_with

FOLLOW = "_ci_follow"  # what a dispatcher calls in place of a function that has broken inside
Names = frozenset[str]
WORK, CLOSED = classes_with(WORKS), classes_with(OPAQUE, PYTHONS)


def works(node: ast.AST) -> bool:
    """True if the expression computes something."""
    return any(isinstance(n, WORK) and not is_number(n) for n in walk(node))


def is_number(node: ast.AST) -> bool:
    """True for a constant with an optional sign."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def is_fixed(node: ast.AST, locals_: Names) -> bool:
    """True if evaluating the part always gives the same value."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in locals_)


def is_pythons(node: ast.AST) -> bool:
    """True if Python certainly has to run an expression: it formats values, or calls a function that has broken
    inside.
    """
    if any(isinstance(n, ast.Name) and n.id == FOLLOW for n in walk(node)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, ast.JoinedStr)


class Hoist:
    r"""Moves parts out of one statement.

    `temps` are the assignments before it; expressions that Python itself must run have `ci_glue`. lists: names that
    only refer to lists and dicts, whose methods can be looked up later; depth: how deep expressions are opened to
    find parts to move.
    """

    def __init__(self, locals_: Names, lists: Names, name: Callable[[], str]) -> None:
        self.locals = locals_
        self.lists = lists
        self.name = name
        self.temps: list[ast.stmt] = []

    def move(self, node: ast.expr, stays: bool = False) -> ast.expr:
        """Replace the part by a name that is assigned before."""
        name = self.name()
        temp = store_at(node, name, node)
        temp.ci_glue = stays  # type: ignore[attr-defined]
        self.temps.append(temp)
        return name_at(node, name)

    def parts(self, nodes: list[ast.expr], depth: int) -> list[ast.expr]:
        """Parts that are evaluated in this order: all up to the last one that computes something are moved."""
        last = max((k for k, n in enumerate(nodes) if works(n)), default=-1)
        return [n if k > last else self.part(n, depth, k == last) for k, n in enumerate(nodes)]

    def part(self, node: ast.expr, depth: int, is_last: bool = True) -> ast.expr:
        """Move a part, or open it if Python must run it; it keeps its place if nothing after it is moved."""
        if is_fixed(node, self.locals):
            return node
        if depth <= 0 and not is_pythons(node):
            return self.move(node)
        opened = self.open(node, depth - (not is_pythons(node)))
        return opened if is_last else self.move(opened, True)

    def open(self, node: ast.expr, depth: int) -> ast.expr:
        """The expression with moved parts replaced."""
        if isinstance(node, ast.Call):
            return self.call(node, depth)
        if isinstance(node, ast.JoinedStr):
            places = [v for v in node.values if isinstance(v, ast.FormattedValue)]
            for place, value in zip(
                places, self.parts([p.value for p in places], depth), strict=True
            ):
                place.value = value
        elif isinstance(node, ast.BinOp):
            node.left, node.right = self.both(node.left, node.right, depth)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            node.left, node.comparators[0] = self.both(node.left, node.comparators[0], depth)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            node.value, node.slice = self.both(node.value, node.slice, depth)
        elif isinstance(node, ast.UnaryOp):
            node.operand = self.part(node.operand, depth)
        elif isinstance(node, ast.Attribute):
            node.value = self.part(node.value, depth)
        elif isinstance(node, ast.Tuple | ast.List) and self.is_plain(node.elts):
            node.elts = self.parts(node.elts, depth)
        return node

    def both(self, left: ast.expr, right: ast.expr, depth: int) -> tuple[ast.expr, ast.expr]:
        """Two operands."""
        if isinstance(right, ast.Tuple) and not self.is_plain(right.elts):
            return self.part(left, depth), right
        first, second = self.parts([left, right], depth)
        return first, second

    def is_plain(self, nodes: list[ast.expr]) -> bool:
        return not any(isinstance(n, ast.Starred | ast.Slice) for n in nodes)

    def call(self, node: ast.Call, depth: int) -> ast.expr:
        """A call of what its arguments are moved from."""
        values = [*node.args, *(k.value for k in node.keywords)]
        if not self.is_plain(values) or any(k.arg is None for k in node.keywords):
            return node
        node.func = self.function(node.func, depth, any(map(works, values)))
        values = self.parts(values, depth)
        node.args = values[: len(node.args)]
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            keyword.value = value
        return node

    def function(self, node: ast.expr, depth: int, has_parts: bool) -> ast.expr:
        """The callee. A method is looked up before its arguments are computed."""
        if not isinstance(node, ast.Attribute):
            return node
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value  # type: ignore[assignment]
        if isinstance(base, ast.Name) and (base.id in self.lists or base.id not in self.locals):
            return node  # a function of a module, or a method of a list
        if works(node.value):
            node.value = self.part(node.value, depth)
        return self.move(node, True) if has_parts else node


def hoist(
    node: ast.stmt, locals_: Names, lists: Names, name: Callable[[], str], depth: int
) -> list[ast.stmt]:
    """The statement, which is changed, preceded by the assignments to which its parts were moved."""
    made = Hoist(locals_, lists, name)
    node.ci_glue = True  # type: ignore[attr-defined]
    if any(isinstance(n, CLOSED) for n in walk(node)):
        return [node]
    if isinstance(node, ast.Expr | ast.Return | ast.Assign) and node.value is not None:
        node.value = made.open(node.value, depth)
    elif isinstance(node, ast.AugAssign) and is_fixed(load_of(node.target), locals_):
        node.value = made.part(node.value, depth)
    return [*made.temps, node]


def load_of(node: ast.expr) -> ast.expr:
    """A load of an assigned name."""
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node
