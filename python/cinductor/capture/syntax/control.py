"""Rewrites control flow: every for, while and if on a test that may be traced becomes a construct.

A construct is an object made by `__ci__`, as in `__ci_1 = __ci__.for_(ITER, 1)`. Python iterates over it, one step per run of a body, and
enters it around each run (`CONSTRUCT`).

The names that are assigned under `restores` are the site's state. A live one that gets UNBOUND is deleted (no test
is written if it surely has a value); a dead one keeps UNBOUND as its value, so that reading it fails. A construct
uses two of CPython's nested blocks, so a construct that is nested too deeply stays Python's own.

Other statements (assignments, imports, contexts, inner functions) stay statements, with calls of the stage in
them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from .displays import Displays
from .jumps import VALUE, blocks_of, may_be_traced
from .names import children, from_text, placed, type_parameters, walk
from .rows import LOOPS
from .stage_calls import OWN_PREFIX, STAGE, Site

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.MatMult: "imatmul",
    ast.Div: "itruediv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.BitAnd: "iand",
    ast.FloorDiv: "ifloordiv",
}
SIMPLE = (ast.Name, ast.Constant, ast.Slice, ast.Tuple, ast.expr_context)  # nodes that run no code of the user's


def display_in(value: Any) -> Any:
    """The display whose value the stage is passed, or the expression itself."""
    is_made = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "made"
    return value.args[0] if is_made else value


def leaves_of(target: Any) -> list[Any]:
    """The names and places of a target, in the order in which they are assigned."""
    if isinstance(target, ast.Tuple | ast.List):
        return [leaf for part in target.elts for leaf in leaves_of(part)]
    return leaves_of(target.value) if isinstance(target, ast.Starred) else [target]


def keeps_waiting(targets: list[Any]) -> bool:
    """True if a name is assigned after a place was evaluated whose expression may run code of the user's."""
    has_run = False
    for leaf in [leaf for target in targets for leaf in leaves_of(target)]:
        if isinstance(leaf, ast.Name) and has_run:
            return True
        has_run |= not isinstance(leaf, ast.Name) and not all(isinstance(n, SIMPLE) for part in children(leaf) for n in walk(part))
    return False


class Statements(Displays):
    """Rewrites statements without constructs."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = [self.ask(d, "decorator", self.visit(d)) for d in node.decorator_list]
        if self._defaults(node):
            node.decorator_list.append(self.attribute(node, STAGE, "made"))
        parameters = type_parameters(node)
        if parameters is not None:
            self.scopes.append(parameters)
            self.hidden_around.append(self.hidden)
        if self.annotations_run:
            self._annotations(node)
        self._body(node)
        if parameters is not None:
            self.hidden_around.pop()
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
        return node  # its names are evaluated on demand, perhaps after the call

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = self._decided(node.test, True)
        node.test = self.ask(node.test, "assertion", test) if may_be_traced(node.test) else test
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        for k, item in enumerate(node.items):
            item.context_expr = self.ask(
                item.context_expr, "context", self.visit(item.context_expr)
            )
            target = item.optional_vars
            if target is not None and keeps_waiting([target]):
                name = self.temporary("m")
                item.optional_vars = placed(ast.Name(name, ast.Store()), target)
                items, node.items = node.items[: k + 1], node.items[k + 1 :]
                inner: list[ast.stmt] = [node] if node.items else node.body
                body = self._inside(inner, k + 1, functools.partial(self._assigned_once, node, target, name))
                return placed(ast.With(items, body), node)
            if target is not None:
                item.optional_vars = self.visit(target)
        node.body = self._inside(node.body, len(node.items))
        return node

    def _assigned_once(self, node: ast.AST, target: ast.expr, name: str) -> list[ast.stmt]:
        """The assignment of a hidden name, which ends with it."""
        return [*self._assigned(node, target, self.load(node, name)), placed(ast.Delete([ast.Name(name, ast.Del())]), node)]

    def _inside(self, body: list[ast.stmt], blocks: int, before: Callable[[], list[ast.stmt]] = list) -> list[ast.stmt]:
        """The rewritten statements in a with or a try. before: makes the rewritten statements that come first."""
        self.blocks += blocks
        self.protected += 1
        out = before() + self._statements(body)
        self.blocks -= blocks
        self.protected -= 1
        return out

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        value = self.visit(node.value)
        has_row = any([isinstance(t, ast.Tuple | ast.List) for t in node.targets])
        if len(node.targets) == 1 and has_row:
            return self._assigned(node, node.targets[0], value)
        if not has_row and (len(node.targets) == 1 or not keeps_waiting(node.targets)):
            node.value, node.targets = value, [self.visit(t) for t in node.targets]
            return node
        name = self.temporary("m")
        out: list[ast.stmt] = [self.store(node, name, value)]
        for target in node.targets:
            out += self._assigned(node, target, self.load(node, name))
        out.append(placed(ast.Delete([ast.Name(name, ast.Del())]), node))
        return out

    def _assigned(self, node: ast.AST, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """The assignment of a rewritten value to one target."""
        is_row = isinstance(target, ast.Tuple | ast.List)
        return self._stored(node, target, self._unpacked(value, target) if is_row else value)

    def _stored(self, node: ast.AST, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """The assignment of a value that the stage has unpacked. Items that would wait on Python's stack for the evaluation of a
        place have hidden names.
        """
        if not keeps_waiting([target]):
            return [placed(ast.Assign([self.visit(target)], value), node)]
        stores: list[ast.stmt] = []
        names: list[ast.expr] = []

        def hidden(part: Any) -> Any:
            if isinstance(part, ast.Tuple | ast.List):
                return placed(type(part)([hidden(e) for e in part.elts], ast.Store()), part)
            if isinstance(part, ast.Starred):
                return placed(ast.Starred(hidden(part.value), ast.Store()), part)
            name = self.temporary("m")
            stores.append(placed(ast.Assign([self.visit(part)], self.load(node, name)), node))
            names.append(placed(ast.Name(name, ast.Del()), node))
            return placed(ast.Name(name, ast.Store()), part)

        row = hidden(target)
        unpacked = placed(ast.Assign([row], value), node)
        return [unpacked, *stores, placed(ast.Delete(names), node)]

    def _unpacked(self, value: Any, target: ast.expr) -> ast.expr:
        shape: Any = self._shape(value, target)
        row = display_in(value)
        is_display = isinstance(row, ast.Tuple) and len(row.elts) == len(shape.value)
        if is_display and not any(s is not None for s in shape.value):
            if not any(isinstance(e, ast.Starred) for e in row.elts):
                return value
        return self.ask(value, "unpack", value, shape)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        if node.value is None:
            return node
        assign = placed(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(assign)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name = self.text(node, OPERATORS[type(node.op)])
        value = self._use(node.value, "read_operand")
        target = self.visit(node.target)
        load: ast.expr
        if isinstance(target, ast.Name):
            load = placed(ast.Name(target.id, ast.Load()), target)
            load = self.visit(load)
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
            node.type = self._use(node.type)
        node.body = self._inside(node.body, 2)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        end = int(bool(node.finalbody))
        node.body = self._inside(node.body, 1 + end)
        self.blocks += end
        node.handlers = [self.visit(h) for h in node.handlers]
        for handler in node.handlers:
            handler.body[:0] = from_text("__ci__.caught()", handler)
        self.blocks -= end
        node.orelse = self._inside(node.orelse, end)
        node.finalbody = self._inside(node.finalbody, 1)
        if node.finalbody:
            node.finalbody.insert(0, placed(ast.Expr(self.ask(node, "leaves")), node.finalbody[0]))
        return node


CPYTHONS_BLOCKS = 20
SPARE_BLOCKS = 5  # left for a try or a with in the innermost body


def depth_of(node: ast.AST) -> int:
    """The depth of nested loops in a statement."""
    inside = [depth_of(part) for block in blocks_of(node) for part in block]
    return max(inside, default=0) + isinstance(node, LOOPS)


def raised(node: ast.stmt) -> str:
    """The name of the exception that a `raise` statement raises; "" for any other statement."""
    if not isinstance(node, ast.Raise):
        return ""
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return error.id if isinstance(error, ast.Name) else "exception"


def stored_in(node: ast.AST, state: tuple[str, ...]) -> tuple[str, ...]:
    """The names of objects that a loop changes: those that are augmented, and those not in its state in which it stores items."""
    found: list[str] = []
    for part in walk(node):
        if isinstance(part, ast.AugAssign):
            found += [part.target.id] if isinstance(part.target, ast.Name) else []
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            base: ast.expr = part
            while isinstance(base, ast.Subscript):
                base = base.value
            found += [base.id] if isinstance(base, ast.Name) and base.id not in state else []
    return tuple(dict.fromkeys(found))


# The statements of a construct. Those of the names `enter`, `body`, `exit` and `unbind` are put in their place.
CONSTRUCT = """
if run.restores: run.begin(__ci__.locals())
for step in run:
    with run:
        enter
        body
        if run.restores: run.leave(__ci__.locals())
exit
run = None
"""
CONSTRUCT_WITH_FLAG = CONSTRUCT.replace("\nexit", "\n        elif flag: break\nexit")
ARM = "if step == number:\n    body\nelse:\n    rest"
RESTORING = "if run.restores:\n    state = {}\n    unbind"
UNBIND = "if name is __ci__.UNBOUND: del name"


class Control(Statements):
    """Rewrites control flow."""

    # constructs

    def _site(self, node: Any, kind: str, **more: Any) -> Site | None:
        """The site of a new construct; None if the statement stays Python's own."""
        if self.cfg is None or self.blocks + 2 > CPYTHONS_BLOCKS - SPARE_BLOCKS:
            return None
        flow = self.cfg.flow(node)
        mine = self.scopes[-1].bound
        state = tuple(sorted(flow.binds & mine))
        flag = getattr(node, "ci_flag", None)
        site = Site(
            number=len(self.sites),
            kind=kind,
            line=node.lineno,
            state=state,
            carried=tuple([n for n in state if n in flow.head and n != flag]),
            live_out=tuple([n for n in state if n in flow.behind]),
            renewed=flow.renewed & frozenset(state),
            flag=flag,
            depth=depth_of(node) - 1 if kind != "if" else 0,
            stored=stored_in(node, state) if kind != "if" else (),
            returned=self._dead(state),
            gathers=self.scopes[-1].gathers,
            results=self.scopes[-1].results,
            maybe_unbound=frozenset(filter(self._may_be_unbound, state)),
            protected=self.protected > 0,
            **more,
        )
        self.sites.append(site)
        return site

    def _dead(self, state: tuple[str, ...]) -> frozenset[str]:
        """Names that are dead after a return, because no `finally` and no inner function reads them."""
        if self.protected:
            return frozenset()
        loads = self.scopes[-1].loads
        return frozenset([n for n in state if n not in loads and not n.startswith(OWN_PREFIX)])

    def _construct(
        self, node: ast.stmt, site: Site, made: ast.expr, body: list[ast.stmt]
    ) -> list[ast.stmt]:
        """The statements of a construct; body: the statements in its `with`."""
        name = f"__ci_{site.number}"
        around = {"enter": self._restoring(node, site, "run.enter()"), "exit": self._restoring(node, site, "run.exit(__ci__.locals())")}
        text = CONSTRUCT if site.flag is None else CONSTRUCT_WITH_FLAG
        run = from_text(text, node, run=name, step=f"__ci_t{site.number}", flag=site.flag, body=body, **around)
        return [placed(self.store(node, name, made), made), *run]

    def _method(self, node: ast.AST, site: Site, method: str, *args: ast.expr) -> ast.Call:
        """A call of a method of the construct."""
        func = self.attribute(node, f"__ci_{site.number}", method)
        return placed(ast.Call(func, list(args), []), node)

    def _restoring(self, node: ast.stmt, site: Site, call: str) -> list[ast.stmt]:
        """Assign the values that the construct returns to names; a live one may become unbound."""
        is_enter, run = call == "run.enter()", f"__ci_{site.number}"
        if not site.state:
            return [] if is_enter and not site.raising else from_text(f"if run.restores: {call}", node, run=run)
        stores: list[ast.expr] = [placed(ast.Name(name, ast.Store()), node) for name in site.state]
        live = [n for n in (site.carried if is_enter else site.live_out) if n not in self.bound]
        unbind = [s for n in live if n == VALUE or not n.startswith(OWN_PREFIX) for s in from_text(UNBIND, node, name=n)]
        state = placed(ast.Tuple(stores, ast.Store()), node)
        return from_text(RESTORING.format(call), node, run=run, state=state, unbind=unbind)

    def _run(
        self, body: list[ast.stmt], blocks: int = 2, target: ast.expr | None = None
    ) -> list[ast.stmt]:
        """The rewritten statements of a body; target: that of its for."""
        bound, self.blocks = self.bound, self.blocks + blocks
        if target is not None:
            names = {n.id for n in walk(target) if isinstance(n, ast.Name)}
            self.bound |= names - self.scopes[-1].unbound
        out = self._statements(body)
        self.bound, self.blocks = bound, self.blocks - blocks
        return out

    # for

    def visit_For(self, node: Any) -> list[ast.stmt]:
        target = node.target
        is_unpacked = isinstance(target, ast.Tuple | ast.List)
        shape = self._shape(node, target).value if is_unpacked else None
        site = self._site(node, "for", target=shape)
        if site is None:
            return [self._own_loop(node)]
        made = self.ask(node.iter, "for_", self.visit(node.iter), self.text(node, site.number))
        item = self.attribute(target, f"__ci_{site.number}", "item")
        assigned = self._stored(target, target, item) if is_unpacked else [placed(ast.Assign([self.visit(target)], item), target)]
        body = self._run(node.body, target=target)
        return self._construct(node, site, made, [*node.ci_resets, *assigned, *body])

    def _own_loop(self, node: Any) -> ast.stmt:
        """A loop that stays Python's own: it unrolls."""
        if isinstance(node, ast.For):
            node.iter = self._iter(node.iter, node.target)
            node.target = self.visit(node.target)
        else:
            node.test = self._test(node.test)
        node.body = [
            *getattr(node, "ci_resets", ()),
            *self._run(node.body, 1, getattr(node, "target", None)),
        ]
        if flag := getattr(node, "ci_flag", None):
            node.body += from_text("if flag: break", node, flag=flag)
        node.orelse = self._statements(node.orelse)
        return node

    # while

    def visit_While(self, node: Any) -> list[ast.stmt]:
        site = self._site(node, "while")
        if site is None:
            return [self._own_loop(node)]
        made = self.ask(node, "while_", self.text(node, site.number))
        test = self._method(node.test, site, "test", self._decided(node.test))
        body = placed(ast.If(test, self._run(node.body), []), node)
        return self._construct(node, site, made, [*node.ci_resets, body])

    # if

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        arms = [node]
        while len(arms[-1].orelse) == 1 and isinstance(arms[-1].orelse[0], ast.If):
            arms.append(arms[-1].orelse[0])
        orelse = arms[-1].orelse
        site = None
        if may_be_traced(node.test):
            blocks = enumerate([*(arm.body for arm in arms), orelse])
            last = 2 * len(arms) - 1
            raising = tuple((min(2 * k, last), raised(b[-1])) for k, b in blocks if b)
            raising = tuple((step, name) for step, name in raising if name)
            site = self._site(node, "if", arms=len(arms), raising=raising)
        if site is None:
            node.test = self._test(node.test)
            node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
            return [node]
        test = self._decided(node.test, bool(raising))
        made = self.ask(node.test, "if_", test, self.text(node, site.number))
        bodies: list[tuple[ast.stmt, list[ast.stmt]]] = []
        for i, arm in enumerate(arms):
            if i:
                truth = self._decided(arm.test, bool(raising))
                test = self._method(arm.test, site, "test", truth)
                bodies.append((arm, [placed(ast.Expr(test), arm.test)]))
            bodies.append((arm, self._run(arm.body)))
        rest = self._run(orelse)
        for step in range(len(bodies) - 1, -1, -1):
            at, body = bodies[step]
            rest = from_text(ARM, at, step=f"__ci_t{site.number}", number=self.text(at, step), body=body, rest=rest)
        return self._construct(node, site, made, rest)
