"""Rewriting: a function's source becomes a function that asks the stage about every step.

Reads of globals, builtins and free names, attribute and item loads, calls, stores and deletes
become calls of `__ci__`, a closure cell that holds the stage; everything else stays as written, in
the user's own frame, with the user's line numbers and file. It is done once per code object. Source
is trusted only if compiling it as it is gives the function's own bytecode. What cannot be rewritten
has a reason (`NotRewritable`).
"""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterable
from typing import Any

from .names import Names
from .source import FunctionNode, compile_function, factory, find_function
from .table import BREAK, FRAME_READERS, OPERATORS, verdict

STAGE = "__ci__"
SUSPENDS = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


class NotRewritable(Exception):
    """Why a function runs as it is."""


class Rewritten:
    """A code object's rewriting: `code` takes the original's place, with one more cell for the
    stage.
    """

    __slots__ = ("code", "original", "tree")

    def __init__(self, code: types.CodeType, original: types.CodeType, tree: ast.Module) -> None:
        self.code = code
        self.original = original
        self.tree = tree

    def bind(self, fn: types.FunctionType, cell: types.CellType) -> types.FunctionType:
        """The rewritten function over fn's own globals, defaults and cells; `cell` holds the
        stage.
        """
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells[STAGE] = cell
        closure = tuple(cells[name] for name in self.code.co_freevars)
        new = types.FunctionType(self.code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        new.__kwdefaults__ = fn.__kwdefaults__
        new.__qualname__ = fn.__qualname__
        new.__module__ = fn.__module__
        return new


_memo: dict[tuple[types.CodeType, str], Rewritten | str] = {}


def rewrite(fn: types.FunctionType) -> Rewritten:
    """The rewriting of fn's code, made once. Raises NotRewritable with the reason."""
    code = fn.__code__
    key = (code, code.co_filename)  # equal codes may come from several files
    found = _memo.get(key)
    if found is None:
        if len(_memo) > 4096:
            _memo.clear()
        try:
            found = _rewrite(code, fn.__qualname__)
        except NotRewritable as reason:
            found = str(reason)
        _memo[key] = found
    if isinstance(found, str):
        raise NotRewritable(found)
    return found


def print_rewritten(fn: Any) -> str:
    """The text of fn as capture runs it; raises NotRewritable when capture leaves it as it is."""
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    fn = getattr(fn, "__func__", fn)
    return ast.unparse(rewrite(fn).tree)


def _rewrite(code: types.CodeType, qualname: str) -> Rewritten:
    if code.co_flags & SUSPENDS:
        kind = "a generator" if code.co_flags & 0x20 else "a coroutine"
        raise NotRewritable(f"{code.co_name} is {kind}")
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    if any(name.startswith("__ci_") for name in names):
        raise NotRewritable("it is rewritten already, or uses names that begin with __ci_")
    node = find_function(code, qualname)
    if node is None:
        found = bool(linecache.getlines(code.co_filename))
        raise NotRewritable(
            "its source in the file is not what runs" if found else "its source is not found"
        )
    _check(node)
    tree = factory(Rewriter(node, code.co_freevars).run(), (STAGE, *code.co_freevars))
    new = compile_function(tree, code)
    if new is None:
        raise NotRewritable("its rewriting does not compile")
    changes: dict[str, Any] = {"co_name": code.co_name}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname
    return Rewritten(new.replace(**changes), code, tree)


# --- what cannot be rewritten ------------------------------------------------------------------


def _check(root: FunctionNode) -> None:
    """Raises NotRewritable for syntax whose row says break, with its line."""
    for node in ast.walk(root):
        row = verdict(node)
        reason = row.reason if row and row.verdict == BREAK else None
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in FRAME_READERS:
                if node.func.id not in ("vars", "dir") or not node.args:
                    reason = f"calls {node.func.id}()"
        elif isinstance(node, ast.comprehension) and node.is_async:
            reason = "is part of a coroutine"
        elif isinstance(node, ast.MatchClass) or (
            isinstance(node, ast.MatchValue)
            and not isinstance(node.value, ast.Constant | ast.UnaryOp)
        ):
            reason = "matches a pattern that reads attributes"
        if reason:
            raise NotRewritable(f"line {getattr(node, 'lineno', '?')} {reason}")


# --- the rewriting ------------------------------------------------------------------------------

LOCAL, CELL, FREE, GLOBAL = "local", "cell", "free", "global"


class Rewriter(ast.NodeTransformer):
    """Turns one function's syntax into the syntax that asks the stage."""

    def __init__(self, root: FunctionNode, freevars: Iterable[str]) -> None:
        self.root = root
        self.freevars = frozenset(freevars)
        self.scopes: list[Names] = []
        self.hidden: list[set[str]] = []  # targets of comprehensions around
        self.temporaries = 0

    def run(self) -> FunctionNode:
        """The function's node, rewritten; the node given is changed."""
        self._body(self.root)
        return self.root

    # names

    def where(self, name: str) -> str:
        """Where a name of the innermost function lives."""
        if any(name in targets for targets in self.hidden):
            return LOCAL
        if name in self.scopes[-1].globals:
            return GLOBAL
        for i in range(len(self.scopes) - 1, -1, -1):
            scope = self.scopes[i]
            if name in scope.globals:
                return GLOBAL
            if name in scope.bound:
                shared = i < len(self.scopes) - 1 or name in scope.loads
                return CELL if shared else LOCAL
        return FREE if name in self.freevars else GLOBAL

    def ask(self, node: ast.AST, method: str, *args: ast.expr, **more: Any) -> ast.Call:
        """`__ci__.method(args)` at node's place."""
        stage = ast.copy_location(ast.Name(STAGE, ast.Load()), node)
        func = ast.copy_location(ast.Attribute(stage, method, ast.Load()), node)
        call = ast.Call(func=func, args=list(args), keywords=more.get("keywords", []))
        return ast.copy_location(call, node)

    def text(self, node: ast.AST, value: Any) -> ast.Constant:
        return ast.copy_location(ast.Constant(value), node)

    def value_slot(self, call: ast.Call, ctx: ast.expr_context) -> ast.Attribute:
        return ast.copy_location(ast.Attribute(call, "value", ctx), call)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        where = self.where(node.id)
        if node.id == "__class__" or (where == LOCAL and isinstance(node.ctx, ast.Load)):
            return node
        if isinstance(node.ctx, ast.Load):
            if where == GLOBAL:
                return self.ask(node, "name", self.text(node, node.id))
            if where == FREE:
                return self.ask(node, "free", self.text(node, node.id), node)
            return self.ask(node, "local", node)
        if where in (GLOBAL, FREE):
            method = "global_slot" if where == GLOBAL else "free_slot"
            return self.value_slot(self.ask(node, method, self.text(node, node.id)), node.ctx)
        return node

    # functions

    def _body(self, node: FunctionNode) -> None:
        self.scopes.append(Names(node))
        hidden, self.hidden = self.hidden, []
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = self._statements(node.body)
        self.hidden = hidden
        self.scopes.pop()

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            out.extend(new if isinstance(new, list) else [new])
        return out

    def _defaults(self, node: FunctionNode) -> None:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._defaults(node)
        self._body(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self._defaults(node)
        node.decorator_list = [self.ask(d, "decorator", self.visit(d)) for d in node.decorator_list]
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for arg in (*every, node.args.vararg, node.args.kwarg):
            if arg is not None and arg.annotation is not None:
                arg.annotation = self.visit(arg.annotation)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        self._body(node)
        return node

    # reads

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        base, name = self.visit(node.value), self.text(node, node.attr)
        if isinstance(node.ctx, ast.Load):
            return self.ask(node, "attr", base, name)
        return self.value_slot(self.ask(node, "attr_slot", base, name), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        base, key = self.visit(node.value), self._key(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self.ask(node, "item", base, key)
        return self.value_slot(self.ask(node, "item_slot", base, key), node.ctx)

    def _key(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            bounds = [self.text(node, None) if p is None else self.visit(p) for p in parts]
            return self.ask(node, "slice", *bounds)
        if isinstance(node, ast.Tuple):
            parts = [self._key(e) for e in node.elts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        return self.visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            node.value = self.ask(node.value, "iter", self.visit(node.value))
        else:
            node.value = self.visit(node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        for i, key in enumerate(node.keys):
            value = self.visit(node.values[i])
            if key is None:
                value = self.ask(value, "mapping", value)
            else:
                node.keys[i] = self.visit(key)
            node.values[i] = value
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args:
            return node  # the compiler itself looks for this form
        args = [self.visit(a) for a in node.args]
        keywords = []
        for keyword in node.keywords:
            value = self.visit(keyword.value)
            if keyword.arg is None:
                value = self.ask(value, "mapping", value)
            keywords.append(ast.copy_location(ast.keyword(keyword.arg, value), keyword))
        return self.ask(node, "call", self.visit(func), *args, keywords=keywords)

    # operands

    def _use(self, node: ast.expr, method: str = "use") -> ast.expr:
        """The operand, read whole by the stage unless it can only be a fresh value."""
        fresh = isinstance(
            node, ast.Constant | ast.BinOp | ast.Compare | ast.JoinedStr | ast.UnaryOp
        )
        new = self.visit(node)
        return new if fresh else self.ask(node, method, new)

    def _test(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            return self.visit(node)
        return self._use(node, "test")

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left = self._use(node.left, "operand")
        node.right = self._use(node.right, "operand")
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        is_not = isinstance(node.op, ast.Not)
        node.operand = self._test(node.operand) if is_not else self._use(node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return self.generic_visit(node)  # type: ignore[return-value]
        node.left = self._use(node.left)
        node.comparators = [
            self._use(c, "members" if isinstance(op, ast.In | ast.NotIn) else "use")
            for op, c in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node.values = [self._test(v) for v in node.values]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self._test(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self._use(node.value)
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    visit_Interpolation = visit_FormattedValue

    # comprehensions

    def _comprehension(self, node: Any) -> ast.expr:
        first = node.generators[0]
        first.iter = self._iter(first.iter, first.target)
        names = {
            n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
        }
        self.hidden.append(names)
        for i, generator in enumerate(node.generators):
            if i:
                generator.iter = self._iter(generator.iter, generator.target)
            generator.target = self.visit(generator.target)
            generator.ifs = [self._test(t) for t in generator.ifs]
        for field in ("elt", "key", "value"):
            if getattr(node, field, None) is not None:
                setattr(node, field, self.visit(getattr(node, field)))
        self.hidden.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _iter(self, node: ast.expr, target: ast.expr) -> ast.expr:
        new = self.visit(node)
        if isinstance(target, ast.Tuple | ast.List):
            return self.ask(node, "iter_unpacked", new, self._shape(node, target))
        return self.ask(node, "iter", new)

    def _shape(self, at: ast.AST, target: ast.expr) -> ast.Constant:
        """Which parts of a target are unpacked again: None, or a tuple of the same for each
        part.
        """

        def shape(t: ast.expr) -> Any:
            if not isinstance(t, ast.Tuple | ast.List):
                return None
            if any(isinstance(e, ast.Starred) for e in t.elts):
                return ()
            return tuple(shape(e) for e in t.elts)

        return self.text(at, shape(target))

    # statements

    def visit_For(self, node: ast.For) -> ast.stmt:
        node.iter = self._iter(node.iter, node.target)
        node.target = self.visit(node.target)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_If(self, node: ast.If | ast.While) -> ast.stmt:
        node.test = self._test(node.test)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    visit_While = visit_If

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        node.test = self._test(node.test)
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
        node.body = self._statements(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node.subject = self.ask(node.subject, "subject", self.visit(node.subject))
        for case in node.cases:
            if case.guard is not None:
                case.guard = self._test(case.guard)
            case.body = self._statements(case.body)
        return node

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
        self.temporaries += 1
        name = f"__ci_value{self.temporaries}"
        out: list[ast.stmt] = [
            ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)
        ]
        for target, is_unpacked in zip(targets, unpacks, strict=True):
            load: ast.expr = ast.copy_location(ast.Name(name, ast.Load()), node)
            if is_unpacked:
                load = self._unpacked(load, target)
            out.append(ast.copy_location(ast.Assign([target], load), node))
        out.append(ast.copy_location(ast.Delete([ast.Name(name, ast.Del())]), node))
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
        assign = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(assign)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name = self.text(node, OPERATORS[type(node.op)])
        value = self._use(node.value)
        target = self.visit(node.target)
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            new = self.ask(node, "augment", name, load, value)
            return ast.copy_location(ast.Assign([target], new), node)
        slot = target.value  # `__ci__.x_slot(...)` of `__ci__.x_slot(...).value`
        attribute = ast.copy_location(ast.Attribute(slot, "load", ast.Load()), node)
        load = ast.copy_location(ast.Call(attribute, [], []), node)
        attribute = ast.copy_location(ast.Attribute(load, "augment", ast.Load()), node)
        call = ast.copy_location(ast.Call(attribute, [name, value], []), node)
        return ast.copy_location(ast.Expr(call), node)

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
        target = self.visit(ast.copy_location(ast.Name(name, ast.Store()), node))
        return ast.copy_location(ast.Assign([target], value), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.type is not None:
            node.type = self.visit(node.type)
        node.body = self._statements(node.body)
        return node

    def _try(self, node: Any) -> ast.stmt:
        node.body = self._statements(node.body)
        node.handlers = [self.visit(h) for h in node.handlers]
        node.orelse = self._statements(node.orelse)
        node.finalbody = self._statements(node.finalbody)
        return node

    visit_Try = visit_TryStar = _try
