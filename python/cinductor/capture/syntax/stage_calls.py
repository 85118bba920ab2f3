"""Building blocks of the rewriter: calls of the stage, the scopes of names, and sites.

A site is a row for each construct that is a call. At run time a construct is an object of `hooks/constructs` (or
of a region being captured); its site has what is known from the source. The rewriter makes the rows once, and they
never change. Expressions (reads, calls, operands and conditions) become calls of `__ci__`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import _core
from ...base.records import NamedTuple
from ...base.user_frame import OWN_PREFIX as OWN_PREFIX
from ...base.user_frame import STAGE as STAGE
from .cfg import Cfg
from .jumps import (
    MERGES_TESTS,
    Lowering,
    Unsuitable,
    is_list,
    is_text,
    may_be_row,
    may_be_traced,
    test_once,
)
from .names import FunctionNode, Names, Transformer, duplicate, from_text, placed, results_in, walk
from .texts import parts_of

if TYPE_CHECKING:
    from .desugar import ComprehensionPlan, Parts


class Site(NamedTuple):
    r"""One for, while or if.

    Names are the function's own, and flags (`__ci_...`) into which jumps were turned. Names that inner functions load
    are always live; names declared global or nonlocal are in none of the tuples.
    """

    number: int
    kind: str  # for, while, if
    line: int
    state: tuple[str, ...]  # names assigned in it, sorted
    carried: tuple[str, ...]  # those live at its head, except the loop's own flag
    live_out: tuple[str, ...]  # those live after it
    renewed: frozenset[str] = frozenset()  # loops: those live at its head if no iteration runs
    target: Any = None  # for: the shape of the target, for `unpack`
    flag: str | None = None  # loops: True if the loop ends after this iteration
    depth: int = 0  # loops: the depth of nested loops inside
    arms: int = 0  # if: the number of its tests
    raising: tuple[tuple[int, str], ...] = ()  # if: steps that end by raising, and the exception
    returned: frozenset[str] = frozenset()  # names that are never read before the function returns
    stored: tuple[str, ...] = ()  # loops: those of which it changes items, or that it changes in place
    gathers: frozenset[str] = frozenset()  # lists that are filled, then passed to calls
    results: frozenset[str] = frozenset()  # and those that the user's function then returns
    maybe_unbound: frozenset[str] = frozenset()  # names that need a check where they are read
    protected: bool = False  # inside of a try or a with of its function


LOCAL, CELL, FREE, GLOBAL = "local", "cell", "free", "global"


class Asking(Transformer):
    """Common base of the rewriter's parts: builds `__ci__.method(...)` calls and tracks names and scopes."""

    def __init__(self, root: FunctionNode, freevars: Iterable[str], with_regions: bool, annotations_run: bool = True) -> None:
        self.root = root
        self.annotations_run = annotations_run  # with the `def`, not later or never
        self.freevars = frozenset(freevars)
        self.with_regions = with_regions
        self.scopes: list[Names] = []
        self.hidden: list[set[str]] = []  # targets of enclosing comprehensions of the innermost function
        self.hidden_around: list[list[set[str]]] = []  # those around each of the functions
        self.places: dict[str, str] = {}  # scopes of names of the innermost function
        self.cfg: Cfg | None = None  # of the function being rewritten
        self.sites: list[Site] = []
        self.temporaries = 0
        self.loops = 0
        self.results = results_in(root)
        self.bound: frozenset[str] = frozenset()  # names that are certainly bound here
        self.blocks = 0  # enclosing blocks of CPython
        self.protected = 0  # enclosing try and with
        self.decisive = 0  # enclosing tests of sizes that must be decided now
        self.without_walrus = 0 if with_regions else 1
        self.steps = 0  # expressions so far that may run code of the user's, after which Python may run the rest of the call

    def run(self) -> FunctionNode:
        """Rewrite the function's node, which is changed."""
        self._body(self.root)
        return self.root

    # building

    # Nodes at the position of the node given first: `__ci__.method(args)`, `owner.name`, a load of a name, `name = value`, a constant.
    ask = staticmethod(_core.stage_call)
    attribute = staticmethod(_core.attribute_at)
    load = staticmethod(_core.name_at)
    store = staticmethod(_core.store_at)
    text = staticmethod(_core.constant_at)

    def temporary(self, kind: str) -> str:
        """A new hidden local name."""
        self.temporaries += 1
        return f"__ci_{kind}{self.temporaries}"

    # names

    def where(self, name: str) -> str:
        """The scope of a name of the innermost function."""
        if name.startswith(OWN_PREFIX) or (self.hidden and self.is_hidden(name)):
            return LOCAL
        if name in self.scopes[-1].globals:
            return GLOBAL
        for i in range(len(self.scopes) - 1, -1, -1):
            scope = self.scopes[i]
            if i < len(self.scopes) - 1 and any(name in targets for targets in self.hidden_around[i + 1]):
                return CELL
            if name in scope.globals:
                return GLOBAL
            if name in scope.bound:
                shared = i < len(self.scopes) - 1 or name in scope.loads
                return CELL if shared else LOCAL
        return FREE if name in self.freevars else GLOBAL

    def is_hidden(self, name: str) -> bool:
        """True if an enclosing comprehension binds it."""
        return any(name in targets for targets in self.hidden)

    def _may_be_unbound(self, name: str) -> bool:
        """True if a construct may leave the name unbound on some path, so that a read must check for it."""
        if self.cfg is None or name.startswith(OWN_PREFIX) or self.where(name) != LOCAL:
            return False
        names = self.scopes[-1]
        return name in names.bound and name not in names.unbound and not self.is_hidden(name)

    def _has_value(self, name: str) -> bool:
        """True if a local name is certainly bound; names of enclosing functions are assumed to be, unless some
        statement deletes them.
        """
        if name in self.bound or self.is_hidden(name):
            return True
        around = [scope for scope in self.scopes if name in scope.bound]
        return self.scopes[-1] not in around and all(name not in s.unbound for s in around)

    # functions

    def _body(self, node: FunctionNode) -> None:
        names = Names(node)
        if self.scopes:  # its return value is not the result of the call
            names.results = names.gathers
        self.scopes.append(names)
        self.hidden_around.append(self.hidden)
        around = self.hidden, self.cfg, self.blocks, self.protected, self.bound, self.places
        self.hidden, self.cfg, self.blocks, self.protected, self.places = [], None, 0, 0, {}
        self.bound = names.arguments - names.unbound
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            dropped = self._lower(node, names) if self.with_regions else []
            shared = sorted(n for n in names.nonlocals if self.where(n) == CELL)
            node.body = [*self._sharing(node, shared), *self._statements(node.body)]
            if dropped:
                node.body.append(self._binding(node, names))
        self.hidden, self.cfg, self.blocks, self.protected, self.bound, self.places = around
        self.hidden_around.pop()
        self.scopes.pop()

    def _lower(self, node: ast.FunctionDef, names: Names) -> list[ast.stmt]:
        """Turn jumps into flags; return the statements that were removed."""
        lowering = Lowering(self.loops)
        try:
            lowering.run(node)
        except Unsuitable:
            return []
        self.loops = lowering.loops
        names.bound |= lowering.flags
        self.cfg = Cfg(node.body, names.arguments)
        return lowering.dropped

    def _sharing(self, node: ast.FunctionDef, shared: list[str]) -> list[ast.stmt]:
        """The docstring; then the call that passes the stage the cells of names that the function sets in an
        enclosing one.
        """
        has_text = bool(node.body) and ast.get_docstring(node, clean=False) is not None
        first = [node.body.pop(0)] if has_text else []
        if shared:
            names = placed(ast.Tuple([self.load(node, name) for name in shared], ast.Load()), node)
            first += from_text("__ci__.shares(lambda: names)", node, names=names)
        return first

    def _binding(self, node: ast.FunctionDef, names: Names) -> ast.stmt:
        """`if 0:` a store to every local name: names that only removed code binds stay local."""
        stores = [placed(ast.Name(name, ast.Store()), node) for name in sorted(names.bound)]
        none = self.text(node, None)
        assign = placed(ast.Assign(list[ast.expr](stores), none), node)
        return placed(ast.If(self.text(node, False), [assign], []), node)

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        bound = self.bound
        for statement in body:
            sure = self.cfg.sure_after(statement) if self.cfg else None
            new = self.visit(statement)
            out.extend(new if isinstance(new, list) else [new])
            self.bound |= (sure or frozenset()) - self.scopes[-1].unbound
        self.bound = bound
        return out


# --- expressions: reads, calls, operands and conditions ---


SEEN = (int, complex)  # constants with which a comparison calls the stage
COMPARISONS = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


class Expressions(Asking):
    """Rewrites expressions."""

    # names and places

    def value_slot(self, call: ast.Call, ctx: ast.expr_context) -> ast.Attribute:
        return placed(ast.Attribute(call, "value", ctx), call)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        where = self.where(node.id) if self.hidden else self.places.get(node.id)
        if where is None:
            where = self.places[node.id] = self.where(node.id)
        if node.id == "__class__" and (where != FREE or not isinstance(node.ctx, ast.Load)):
            return node
        if where == LOCAL and isinstance(node.ctx, ast.Load):
            if node.id in self.bound or not self._may_be_unbound(node.id):
                return node
            return self.ask(node, "bound", node, self.text(node, node.id))
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

    # reads

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        base, name = self.visit(node.value), self.text(node, node.attr)
        self.steps += 1
        if isinstance(node.ctx, ast.Load):
            return self.ask(node, "attr", base, name)
        return self.value_slot(self.ask(node, "attr_slot", base, name), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        base, key = self.visit(node.value), self._key(node.slice)
        self.steps += 1
        if isinstance(node.ctx, ast.Load):
            return self.ask(node, "item", base, key)
        return self.value_slot(self.ask(node, "item_slot", base, key), node.ctx)

    def _key(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            given = (node.lower, node.upper, node.step)
            bounds = [self.text(node, None) if p is None else self.visit(p) for p in given]
            return self.ask(node, "slice", *bounds)
        if isinstance(node, ast.Tuple):
            parts = [self._key(e) for e in node.elts]
            return placed(ast.Tuple(parts, ast.Load()), node)
        return self.visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.steps += 1
        if isinstance(node.ctx, ast.Load):
            node.value = self.ask(node.value, "star", self.visit(node.value))
        else:
            node.value = self.visit(node.value)
        return node

    def _key_of(self, node: ast.expr) -> ast.expr:
        """The key expression of a dict display or set item, which is hashed."""
        return self._use(node, "key")

    def _super(self, node: ast.Call) -> ast.expr:
        """super() is kept, because the compiler looks for this form. The class that it takes from a cell is guarded.
        """
        if self.where("__class__") != FREE:
            return node
        return self.ask(node, "own_super", node, self.visit_Name(self.load(node, "__class__")))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        self.steps += 1
        if isinstance(func, ast.Name) and func.id == "super" and not node.args:
            return self._super(node)
        if getattr(node, "ci_is_internal", False):
            return self.ask(node, func.id, *[self.visit(a) for a in node.args])  # type: ignore[attr-defined]
        if (loop := self._loop_of(node)) is not None:
            builtin = node.ci_loop.builtin  # type: ignore[attr-defined]
            if builtin is None:
                return loop
            del node.ci_loop  # type: ignore[attr-defined]
            is_builtin = self.ask(node, "is_builtin", self.text(node, builtin))
            return placed(ast.IfExp(is_builtin, loop, self.visit_Call(node)), node)
        late = [parts_of(node, a) for a in node.args]
        args = [
            self.visit(a) if text is None else self.ask(a, "late_text", self.text(a, text[0]), *map(self._use, text[1]))
            for a, text in zip(node.args, late, strict=True)
        ]
        keywords = []
        for keyword in node.keywords:
            value = self.visit(keyword.value)
            if keyword.arg is None:
                value = self.ask(value, "mapping", value)
            keywords.append(placed(ast.keyword(keyword.arg, value), keyword))
        return self.ask(node, "printed" if any(text is not None for text in late) else "call", self.visit(func), *args, keywords=keywords)

    def visit_Parts(self, node: Parts) -> ast.expr:
        return self.ask(node, "parts", node.func, *(self.visit(a) for a in node.args))

    # operands

    def _use(self, node: ast.expr, method: str = "use") -> ast.expr:
        """The operand, passed to the stage unless it is a constant or a text: an operator may return an object of the user's."""
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        is_known = isinstance(inner, ast.Constant | ast.JoinedStr)
        new = self.visit(node)
        return new if is_known else self.ask(node, method, new)

    def _test(self, node: ast.expr) -> ast.expr:
        """A condition that Python itself tests."""
        test_once(node)
        return self._use(node, "test") if may_be_traced(node) else self.visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.steps += 1
        if self.with_regions and isinstance(node.op, ast.Mult) and is_list(node):
            return self.ask(node, "repeat", self.visit(node.left), self.visit(node.right))
        if isinstance(node.op, ast.Mod) and not isinstance(node.right, ast.Constant):
            return self.ask(node, "modulo", self.visit(node.left), self.visit(node.right))
        node.left = self._use(node.left, "operand")
        steps = self.steps
        node.right = self._use(node.right, "operand")
        is_row = steps != self.steps and isinstance(node.op, ast.Add | ast.Mult) and may_be_row(node)
        return self.ask(node, "made", node) if is_row else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.steps += 1
        if isinstance(node.op, ast.Invert) and not isinstance(node.operand, ast.Constant):
            node.operand = self.ask(node, "inverted", self.visit(node.operand))
        elif not isinstance(node.op, ast.Not):
            node.operand = self._use(node.operand, "operand")
        elif may_be_traced(node.operand):
            return self.ask(node, "not_", self._decided(node.operand, is_condition=False))
        else:
            node.operand = self.visit(node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.steps += 1
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return self._identity(node)
        if len(node.ops) > 1 and may_be_traced(node):
            inner = node.comparators[:-1]
            if not self.without_walrus or all(map(self._is_stable, inner)):
                return self._chain(node, node.left, 0)
        if len(node.ops) == 1:
            return self._compare(node, node.left, node.ops[0], node.comparators[0])
        node.left = self._use(node.left, "read_operand")
        node.comparators = [
            self._compared(c, op) for op, c in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def _identity(self, node: ast.Compare) -> ast.expr:
        """x is y. A comparison with True or False calls the stage, which may trace the other operand; that two
        objects differ is a guard.
        """
        self.generic_visit(node)
        both = [node.left, *node.comparators]
        constants = [v for v in both if isinstance(v, ast.Constant)]
        known = [v for v in constants if type(v.value) is bool]
        if len(both) > 2 or len(known) != len(constants) or len(known) > 1:
            return node
        if known:
            found = self.ask(node, "is_bool", both[both[0] is known[0]], known[0])
        else:
            found = self.ask(node, "is_one", *both)
        return found if isinstance(node.ops[0], ast.Is) else self.ask(node, "not_", found)

    def _compare(self, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        """One comparison."""
        method = COMPARISONS.get(type(op))
        if method is not None and self._may_be_of_sizes(left, right):
            return self.ask(node, method, self.visit(left), self.visit(right))
        if method is not None and not any(isinstance(v, ast.Constant) for v in (left, right)):
            name = self.text(node, method)
            return self.ask(node, "decide", name, self.visit(left), self.visit(right))
        left = self._use(left, "use" if isinstance(op, ast.In | ast.NotIn) else "read_operand")
        if isinstance(op, ast.In | ast.NotIn) and not is_text(left):
            found = self.ask(node, "contains", left, self.visit(right))
            return found if isinstance(op, ast.In) else self.ask(node, "not_", found)
        return placed(ast.Compare(left, [op], [self._compared(right, op)]), node)

    def _may_be_of_sizes(self, left: ast.expr, right: ast.expr) -> bool:
        """True if the comparison must call the stage: it may be left to the program if it is about sizes, or to
        Python for its complex numbers.
        """
        both = (left, right)
        known = [isinstance(v, ast.Constant) and type(v.value) not in SEEN for v in both]
        is_told = all(isinstance(v, ast.Constant) for v in both)
        return self.with_regions and self.decisive == 0 and not any(known) and not is_told

    def _compared(self, node: ast.expr, op: ast.cmpop) -> ast.expr:
        return self._use(node, "members" if isinstance(op, ast.In | ast.NotIn) else "read_operand")

    def _is_stable(self, node: ast.expr) -> bool:
        """True if an operand may be written twice, because nothing can change it between the loads."""
        if isinstance(node, ast.Name):
            return self.where(node.id) == LOCAL
        return isinstance(node, ast.Constant)

    def _chain(self, node: ast.Compare, left: ast.expr, i: int) -> ast.expr:
        """The comparisons of a chain from the i-th on; each follows the truth of the previous one."""
        op, right = node.ops[i], node.comparators[i]
        if i == len(node.ops) - 1:
            return self._compare(node, left, op, right)
        if self._is_stable(right):
            again: ast.expr = copy.copy(right)
            value = right
        else:
            name = self.temporary("v")
            target = placed(ast.Name(name, ast.Store()), right)
            value = placed(ast.NamedExpr(target, right), right)
            again = self.load(right, name)
        first = self._compare(node, left, op, value)
        return self._joined(node, ast.And(), first, self._chain(node, again, i + 1))

    # conditions

    def _joined(self, node: ast.expr, op: ast.boolop, first: ast.expr, second: ast.expr) -> ast.expr:
        """`first and second`, or `or`, that may be traced."""
        is_and = self.text(node, isinstance(op, ast.And))
        begin = self.ask(first, "bool_begin", first, is_and)
        is_test = isinstance(node, ast.Compare) or hasattr(node, "ci_is_test")
        keeps = (self.text(node, is_test),) if hasattr(node, "ci_is_once") else ()
        return self.ask(node, "bool_end", placed(ast.BoolOp(op, [begin, second]), node), *keeps)

    def _decided(self, node: ast.expr, by_sizes: bool = False, is_condition: bool = True) -> ast.expr:
        """An expression of which only the truth is used. by_sizes: a result that depends on sizes is guarded, because
        otherwise an exception is raised. is_condition: as for `test_once`.
        """
        if is_condition and (isinstance(node, ast.BoolOp | ast.UnaryOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1)):
            test_once(node)
        if isinstance(node, ast.BoolOp):
            node.ci_is_test = True  # type: ignore[attr-defined]
        self.decisive += by_sizes
        new = self.visit(node)
        self.decisive -= by_sizes
        return new

    def _truth(self, node: ast.expr) -> ast.expr:
        """An operand of `and` and `or` in a test: its truth, so that types need not agree."""
        is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        new = self._decided(node, is_condition=False)
        if is_not or isinstance(node, ast.Compare | ast.BoolOp) or not may_be_traced(node):
            return new
        return self.ask(node, "truth", new)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.steps += 1
        traced = [may_be_traced(value) for value in node.values]
        is_test = getattr(node, "ci_is_test", False)
        for value in node.values[:-1] if MERGES_TESTS else ():
            test_once(value, getattr(node, "ci_is_once", False))
        values = [self._truth(v) if is_test else self.visit(v) for v in node.values]
        out = values[-1]
        for value, is_traced in zip(values[-2::-1], traced[-2::-1], strict=True):
            if is_traced:
                out = self._joined(node, node.op, value, out)
            else:
                out = placed(ast.BoolOp(node.op, [value, out]), node)
        return out

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.steps += 1
        if self.without_walrus or not may_be_traced(node.test):
            node.test = self._test(node.test)
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        name = self.temporary("c")
        then = self.ask(node.test, "then", self._decided(node.test))
        target = placed(ast.Name(name, ast.Store()), node.test)
        choice = placed(ast.NamedExpr(target, then), node.test)
        parts: list[ast.expr] = [choice]
        for field, part in (("first", node.body), ("second", node.orelse)):
            value = ast.IfExp(self.attribute(part, name, field), self.visit(part), self.text(part, None))
            parts.append(placed(value, part))
        return self.ask(node, "choose_result" if node in self.results else "choose", *parts)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.steps += 1
        node.value = self._use(node.value, "as_text")
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    visit_Interpolation = visit_FormattedValue

    # comprehensions

    def _loop_of(self, node: Any) -> ast.expr | None:
        """The call of the function made for a comprehension, or for a call with one; None if there is none, or a name
        that it needs may be unbound.
        """
        plan: ComprehensionPlan | None = getattr(node, "ci_loop", None)
        if plan is None:
            return None
        if not all(map(self._has_value, plan.names)):
            return None
        inner = node if isinstance(node, ast.ListComp) else node.args[0]
        items = inner.generators[0].iter
        if plan.builtin is not None:
            items = duplicate(items)
        callee = [] if plan.callee is None else [self.visit(duplicate(plan.callee))]
        given = [self.visit(self.load(node, name)) for name in plan.names]
        arguments = [*callee, self.visit(items), *given]
        trips = self.load(node, plan.function)
        if isinstance(inner, ast.GeneratorExp):
            return self.ask(node, "generated", trips, *arguments)
        return placed(ast.Call(trips, arguments, []), node)

    def _comprehension(self, node: Any) -> ast.expr:
        self.steps += 1
        if (loop := self._loop_of(node)) is not None:
            return loop
        first = node.generators[0]
        self.without_walrus += 1
        first.iter = self._iter(first.iter, first.target)
        self.without_walrus -= 1
        names = {n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)}
        self.hidden.append(names)
        for i, generator in enumerate(node.generators):
            if i:
                self.without_walrus += 1
                generator.iter = self._iter(generator.iter, generator.target)
                self.without_walrus -= 1
            generator.target = self.visit(generator.target)
            generator.ifs = [self._test(t) for t in generator.ifs]
        for field in ("elt", "key", "value"):
            part = getattr(node, field, None)
            if part is not None:
                is_hashed = field == "key" or isinstance(node, ast.SetComp)
                setattr(node, field, self._key_of(part) if is_hashed else self.visit(part))
        self.hidden.pop()
        return self.ask(node, "born" if isinstance(node, ast.GeneratorExp) else "made", node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _iter(self, node: ast.expr, target: ast.expr) -> ast.expr:
        new = self.visit(node)
        shape = [self._shape(node, target)] if isinstance(target, ast.Tuple | ast.List) else []
        return self.ask(node, "each", new, *shape)

    def _shape(self, at: ast.AST, target: ast.expr) -> ast.Constant:
        """The parts of a target that are unpacked again: None, or a tuple of the same for each part."""

        def shape(t: ast.expr) -> Any:
            if not isinstance(t, ast.Tuple | ast.List):
                return None
            if any(isinstance(e, ast.Starred) for e in t.elts):
                return ()
            return tuple(shape(e) for e in t.elts)

        return self.text(at, shape(target))
