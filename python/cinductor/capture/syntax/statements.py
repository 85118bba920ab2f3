"""Statements that are no control flow: assignments, imports, contexts, functions inside."""

from __future__ import annotations

import ast
from typing import Any

from .expressions import Expressions
from .jumps import may_be_traced
from .names import type_parameters
from .nodes import placed
from .table import OPERATORS


class Statements(Expressions):
    """Rewrites statements without constructs."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self._defaults(node)
        node.decorator_list = [self.ask(d, "decorator", self.visit(d)) for d in node.decorator_list]
        parameters = type_parameters(node)
        if parameters is not None:
            self.scopes.append(parameters)
        if self.annotations_run:
            self._annotations(node)
        self._body(node)
        if parameters is not None:
            self.scopes.pop()
        return node

    def _annotations(self, node: ast.FunctionDef) -> None:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.without_walrus += 1
        for arg in (*every, node.args.vararg, node.args.kwarg):
            if arg is not None and arg.annotation is not None:
                arg.annotation = self.visit(arg.annotation)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        self.without_walrus -= 1

    def visit_TypeAlias(self, node: Any) -> Any:
        return node  # whatever it names is evaluated when somebody asks, perhaps behind the call

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = self._decided(node.test, True)
        node.test = self.ask(node.test, "holds", test) if may_be_traced(node.test) else test
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        for item in node.items:
            item.context_expr = self.ask(
                item.context_expr, "context", self.visit(item.context_expr)
            )
            if item.optional_vars is not None:
                item.optional_vars = self.visit(item.optional_vars)
        node.body = self._inside(node.body, len(node.items))
        return node

    def _inside(self, body: list[ast.stmt], blocks: int) -> list[ast.stmt]:
        """The statements in a with or a try, rewritten."""
        self.blocks += blocks
        self.protected += 1
        out = self._statements(body)
        self.blocks -= blocks
        self.protected -= 1
        return out

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        value = self.visit(node.value)
        targets = [self.visit(t) for t in node.targets]
        unpacks = [isinstance(t, ast.Tuple | ast.List) for t in node.targets]
        if not any(unpacks):
            node.value, node.targets = value, targets
            return node
        if len(targets) == 1:
            node.targets = targets
            node.value = self._unpacked(value, node.targets[0])
            return node
        name = self.temporary("m")
        out: list[ast.stmt] = [self.store(node, name, value)]
        for target, is_unpacked in zip(targets, unpacks, strict=True):
            load: ast.expr = self.load(node, name)
            if is_unpacked:
                load = self._unpacked(load, target)
            out.append(placed(ast.Assign([target], load), node))
        out.append(placed(ast.Delete([ast.Name(name, ast.Del())]), node))
        return out

    def _unpacked(self, value: ast.expr, target: ast.expr) -> ast.expr:
        shape = self._shape(value, target)
        is_display = isinstance(value, ast.Tuple) and len(value.elts) == len(shape.value)
        if is_display and not any(s is not None for s in shape.value):
            if not any(isinstance(e, ast.Starred) for e in value.elts):
                return value
        return self.ask(value, "unpack", value, shape)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        if node.value is None:
            return node
        assign = placed(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(assign)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name = self.text(node, OPERATORS[type(node.op)])
        value = self._use(node.value)
        target = self.visit(node.target)
        if isinstance(target, ast.Name):
            load = self._local(placed(ast.Name(target.id, ast.Load()), target))
            new = self.ask(node, "augment", name, load, value)
            return placed(ast.Assign([target], new), node)
        slot = target.value  # `__ci__.x_slot(...)` of `__ci__.x_slot(...).value`
        attribute = placed(ast.Attribute(slot, "load", ast.Load()), node)
        load = placed(ast.Call(attribute, [], []), node)
        attribute = placed(ast.Attribute(load, "augment", ast.Load()), node)
        call = placed(ast.Call(attribute, [name, value], []), node)
        return placed(ast.Expr(call), node)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            call = self.ask(
                node,
                "import_module",
                self.text(node, alias.name),
                self.text(node, alias.asname is not None),
            )
            out.append(self._bind(node, bound, call))
        return out

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for alias in node.names:
            call = self.ask(
                node,
                "import_name",
                self.text(node, node.module or ""),
                self.text(node, alias.name),
                self.text(node, node.level),
            )
            out.append(self._bind(node, alias.asname or alias.name, call))
        return out

    def _bind(self, node: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
        target = self.visit(placed(ast.Name(name, ast.Store()), node))
        return placed(ast.Assign([target], value), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.type is not None:
            node.type = self.visit(node.type)
        node.body = self._inside(node.body, 2)
        return node

    def _try(self, node: Any) -> ast.stmt:
        end = int(bool(node.finalbody))
        asks = isinstance(node, ast.Try)  # no `except*`, which gives groups of Exceptions
        node.body = self._inside(node.body, 1 + end)
        self.blocks += end
        node.handlers = [self.visit(h) for h in node.handlers]
        for handler in node.handlers if asks else ():
            call = placed(ast.Expr(self.ask(handler, "caught")), handler)
            handler.body.insert(0, call)
        self.blocks -= end
        node.orelse = self._inside(node.orelse, end)
        node.finalbody = self._inside(node.finalbody, 1)
        if node.finalbody:
            node.finalbody.insert(0, placed(ast.Expr(self.ask(node, "leaves")), node.finalbody[0]))
        return node

    visit_Try = visit_TryStar = _try
