"""The names that a function binds: what decides where a name of its body lives."""

from __future__ import annotations

import ast
from typing import Any

from .nodes import Visitor, walk
from .source import FunctionNode


def names_in(*nodes: ast.AST) -> set[str]:
    """Every name in some syntax."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def type_parameters(node: Any) -> Names | None:
    """The scope around a generic function, in which its annotations and its body stand."""
    names = [ast.arg(p.name) for p in getattr(node, "type_params", ())]
    scope = ast.Lambda(ast.arguments([], names, None, [], [], None, []), ast.Constant(None))
    return Names(scope) if names else None


def is_closed(node: FunctionNode) -> bool:
    """Whether it is a function of ours, which reads no names of those around."""
    return getattr(node, "ci_is_closed", False)


class Names(Visitor):
    """The names a function's body binds, and those it declares global or nonlocal."""

    def __init__(self, node: FunctionNode) -> None:
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.loads: set[str] = set()  # by functions inside
        self.unbound: set[str] = set()  # that some statement deletes
        self.gathers: frozenset[str] = frozenset()  # lists that are filled, then handed to calls
        self.results: frozenset[str] = frozenset()  # and those that are returned in the end
        arguments = node.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.bound.add(arg.arg)
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                self.bound.add(star.arg)
        self.arguments = frozenset(self.bound)
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)
        self.bound -= self.globals | self.nonlocals

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
        if isinstance(node.ctx, ast.Del):
            self.unbound.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound.add(node.name)
        if not is_closed(node):
            self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node)

    def visit_TypeAlias(self, node: Any) -> None:
        self.visit(node.name)
        self.loads |= names_in(node.value, *node.type_params)

    def _inner(self, node: FunctionNode) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                self.visit(decorator)
        for child in walk(node):
            if isinstance(child, ast.Name):
                self.loads.add(child.id)
                if isinstance(child.ctx, ast.Del):
                    self.unbound.add(child.id)
            elif isinstance(child, ast.ExceptHandler) and child.name:
                self.unbound.add(child.name)

    def _comprehension(self, node: Any) -> None:
        targets = {n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)}
        before = set(self.bound)
        self.generic_visit(node)
        walrus = {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}
        self.bound -= targets - before - walrus

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound.add((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
            self.unbound.add(node.name)
        self.generic_visit(node)

    def _capture(self, node: Any) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self.bound.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _capture
