"""Lists that a function fills by `append` and then only hands to calls, which the stage sees: how
such a list holds its items is nobody's business.
"""

from __future__ import annotations

import ast
from typing import Any

from .names import is_closed
from .nodes import Visitor, walk
from .source import FunctionNode

Place = tuple[int, int]


class ListUses(Visitor):
    """The names of a function that are bound to nothing but `[]`, appended to, and behind the last
    append read as the only argument of calls; results: those that may be returned too, by the only
    `return`, which is the last statement.
    """

    def __init__(self, node: FunctionNode) -> None:
        self.made: set[str] = set()
        self.others: set[str] = set()  # used in another way
        self.appends: dict[str, Place] = {}  # the last
        self.reads: dict[str, Place] = {}  # the first
        body = node.body if isinstance(node.body, list) else [node.body]
        returned = self._returned(body)
        for statement in body if returned is None else body[:-1]:
            self.visit(statement)
        self.names = frozenset(
            name
            for name, place in self.appends.items()
            if name in self.made - self.others and place < self.reads.get(name, (place[0] + 1, 0))
        )
        self.results = self.names
        for value in returned or ():
            if not isinstance(value, ast.Name):
                self.visit(value)
        self.results -= self.others
        self.names = self.results - {v.id for v in returned or () if isinstance(v, ast.Name)}

    @staticmethod
    def _returned(body: list[Any]) -> list[ast.expr] | None:
        """What a `return` returns, which is the last statement, and the only one."""
        last = body[-1]
        inner = [n for statement in body[:-1] for n in walk(statement) if isinstance(n, ast.Return)]
        if not isinstance(last, ast.Return) or last.value is None or inner:
            return None
        return last.value.elts if is_row(last.value) else [last.value]  # type: ignore[attr-defined]

    def visit_Name(self, node: ast.Name) -> None:
        self.others.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        if not is_empty(node.value) and not is_row(node.value):
            self.visit(node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and is_empty(value):
            self.made.add(target.id)
        elif is_row(target) and is_row(value) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._bind(one, its)
        else:
            self.visit(target)
        if is_row(value):
            for its in value.elts:
                if not is_empty(its):
                    self.visit(its)

    def visit_Call(self, node: ast.Call) -> None:
        alone = len(node.args) == 1 and not node.keywords
        func, first = node.func, node.args[0] if alone else None
        owner = func.value if isinstance(func, ast.Attribute) and func.attr == "append" else None
        if first is not None and isinstance(owner, ast.Name):
            place = node.lineno, node.col_offset
            self.appends[owner.id] = max(place, self.appends.get(owner.id, place))
            self.visit(first)
        elif isinstance(first, ast.Name):
            place = node.lineno, node.col_offset
            self.reads[first.id] = min(place, self.reads.get(first.id, place))
            self.visit(func)
        else:
            self.generic_visit(node)

    def _inner(self, node: ast.AST) -> None:
        self.others |= {n.id for n in walk(node) if isinstance(n, ast.Name)}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not is_closed(node):
            self._inner(node)

    visit_Lambda = visit_ClassDef = _inner
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _inner


def is_empty(node: ast.expr) -> bool:
    """[]"""
    return isinstance(node, ast.List) and not node.elts


def is_row(node: Any) -> bool:
    """a, b"""
    return isinstance(node, ast.Tuple) and not any(isinstance(n, ast.Starred) for n in node.elts)
