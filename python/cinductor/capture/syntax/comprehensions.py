"""Comprehensions as the loops that they are short for.

    [f(x, a) for x in items if c(x)]

becomes a call of a function that stands at the top of the one rewritten,

    def __ci_listcomp0(made.items, a):
        made.list = []
        for x in made.items:
            if c(x):
                made.list.append(f(x, a))
        return made.list

so that what captures loops and branches captures it. What it reads of the functions around is
handed to it: a comprehension binds no names there, and nothing else runs while it does. `sum`,
`any` and `all` of a comprehension are loops that add up, or that end where the answer is known; where
it leaves something out, so are `max` and `min`, and a sum begins with the first item, for of none the
result is of another type.
Which node has such a function is in its `ci_loop`; the comprehension stays in the tree, for where
that cannot be used.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .names import Names, names_in
from .nodes import Visitor, children, holds, placed, walk
from .source import FunctionNode

COMPREHENSION = "__ci_"  # our functions' names: that, what tracebacks call them, and a number
ITEMS, LIST, ITEM, RESULT, CARRY, CALLEE, SOME = (
    "made.items", "made.list", "made.item", "made.result", "made.carry", "made.callee",
    "made.some",
)  # fmt: skip
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
OPAQUE = ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
CONSUMERS = frozenset({"list", "tuple", "set", "frozenset", "max", "min", "sorted"})
# sum() of Python's floats carries the error along since 3.12, that of complex numbers since 3.14.
SUM_IS_PLAIN = sys.version_info < (3, 12)


@dataclass(frozen=True, slots=True)
class ComprehensionPlan:
    """The function of a comprehension, or of a call with one: the names that it is handed, what it
    calls with the list, and the builtin that the call has to be of.
    """

    function: str
    names: tuple[str, ...]
    callee: ast.expr | None
    builtin: str | None


class Comprehensions(Visitor):
    """Finds the comprehensions of a function and makes their functions."""

    def __init__(self, root: ast.FunctionDef) -> None:
        self.functions: list[ast.stmt] = []
        self.bound: frozenset[str] = frozenset()  # in the functions and comprehensions around
        declared = [n.names for n in walk(root) if isinstance(n, ast.Nonlocal)]
        self.shared = frozenset().union(*declared)  # names that calls may change
        self._function(root)

    # functions

    def _function(self, node: FunctionNode) -> None:
        around, names = self.bound, Names(node)
        self.bound = (around | names.bound) - names.globals
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)
        self.bound = around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    # comprehensions

    def _inside(self, node: Any) -> None:
        """Those in a comprehension."""
        around = self.bound
        self.visit(node.generators[0].iter)
        self.bound |= targets_of(node)
        for number, generator in enumerate(node.generators):
            if number:
                self.visit(generator.iter)
            for test in generator.ifs:
                self.visit(test)
        for field in ("elt", "key", "value"):
            if getattr(node, field, None) is not None:
                self.visit(getattr(node, field))
        self.bound = around

    visit_SetComp = visit_DictComp = visit_GeneratorExp = _inside

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._inside(node)
        self._plan(node, node, in_list(node.elt), new_list(), load(LIST))

    def visit_Call(self, node: ast.Call) -> None:
        inner: Any = node.args[0] if len(node.args) == 1 else None
        if is_filtered_extreme(node) and node.func.id not in self.bound:
            self._inside(inner)
            self._plan_extreme(node, inner)
            return
        inner = None if node.keywords else inner
        is_list = isinstance(inner, ast.ListComp)
        if not is_list and not isinstance(inner, ast.GeneratorExp):
            self.generic_visit(node)
            return
        func = node.func
        self.visit(func)
        self._inside(inner)
        name = func.id if isinstance(func, ast.Name) and func.id not in self.bound else ""
        elt = inner.elt
        if name == "any":
            self._reduce(node, inner, looked_for(elt) if is_list else found(elt), False)
        elif name == "all":
            self._reduce(node, inner, looked_for(elt, True) if is_list else found(elt, True), True)
        elif name == "sum" and is_filtered(inner) and not is_int(elt):
            self._plan_filtered(node, inner)
        elif name == "sum" and (SUM_IS_PLAIN or is_int(elt)):
            self._reduce(node, inner, added(elt), 0)
        elif name == "sum":
            start = assign_both(ast.Tuple([ast.Constant(0), ast.Constant(0.0)], ast.Load()))
            total = ours("sum_of", load(RESULT), load(CARRY))
            self._plan(node, inner, added_with_care(elt), start, total, builtin="sum")
        elif name in CONSUMERS or (is_list and self._is_of_module(func)):
            given = ast.Call(load(CALLEE), [load(LIST)], [])
            builtin = None if is_list else name
            self._plan(node, inner, in_list(elt), new_list(), given, func, builtin)
        elif is_list:
            self._plan(inner, inner, in_list(elt), new_list(), load(LIST))

    def _plan_filtered(self, node: ast.Call, inner: Any) -> None:
        """A sum of what passes a test: an int only where nothing does, so nothing is added to that."""
        item, total = load(ITEM), load(RESULT)
        if SUM_IS_PLAIN:
            first = assign(RESULT, ast.BinOp(ast.Constant(0), ast.Add(), item))
            more, end = added(item)[0], total
        else:
            first = assign_both(ours("sum_and_carry", ast.Constant(0), ast.Constant(0.0), item))
            more, end = added_with_care(item)[0], ours("sum_of", total, load(CARRY))
        begun = assign(SOME, ast.Constant(True))
        step = [assign(ITEM, inner.elt), ast.If(load(SOME), [more], [first, begun])]
        result = ast.IfExp(load(SOME), end, ast.Constant(0))
        self._plan(node, inner, step, assign(SOME, ast.Constant(False)), result, builtin="sum")

    def _plan_extreme(self, node: Any, inner: Any) -> None:
        """max or min of what passes a test: that of the default where nothing does, or its exception."""
        order: ast.cmpop = ast.Gt() if node.func.id == "max" else ast.Lt()
        taken = assign(RESULT, load(ITEM))
        better = ast.If(ast.Compare(load(ITEM), [order], [load(RESULT)]), [taken], [])
        begun = assign(SOME, ast.Constant(True))
        step = [
            assign(ITEM, inner.elt),
            ast.If(load(SOME), [better], [copy.deepcopy(taken), begun]),
        ]
        result: ast.expr = load(RESULT)
        after: list[ast.stmt] = []
        if node.keywords:
            result = ast.IfExp(load(SOME), result, node.keywords[0].value)
        else:
            empty = ast.Call(load(node.func.id), [ast.Tuple([], ast.Load())], [])
            after = [ast.If(ast.UnaryOp(ast.Not(), load(SOME)), [ast.Expr(empty)], [])]
        start = assign(SOME, ast.Constant(False))
        self._plan(node, inner, step, start, result, builtin=node.func.id, after=after)

    def _is_of_module(self, node: ast.expr) -> bool:
        """Perhaps: an attribute, of attributes, of a name that no function around binds."""
        is_attribute = isinstance(node, ast.Attribute)
        while isinstance(node, ast.Attribute):
            node = node.value
        return is_attribute and isinstance(node, ast.Name) and node.id not in self.bound

    def _reduce(self, node: Any, inner: Any, step: list[ast.stmt], first: Any) -> None:
        start = assign(RESULT, ast.Constant(first))
        self._plan(node, inner, step, start, load(RESULT), builtin=node.func.id)

    def _plan(
        self,
        node: Any,
        inner: Any,
        step: list[ast.stmt],
        before: ast.stmt,
        result: ast.expr,
        callee: ast.expr | None = None,
        builtin: str | None = None,
        after: Iterable[ast.stmt] = (),
    ) -> None:
        """Makes the function whose trips do that step; none where it would not be the same."""
        first, *others = inner.generators
        tests = [t for g in inner.generators for t in g.ifs]
        parts = [inner.elt, *tests, *(g.iter for g in others)]
        read = frozenset().union(*map(free_names, parts)) - targets_of(inner)
        is_opaque = any(isinstance(n, OPAQUE) for part in parts for n in walk(part))
        if is_opaque or first.is_async or read & (self.shared | {"super", "__class__"}):
            return
        body = copy.deepcopy(step)
        for number in range(len(others), -1, -1):
            generator = copy.deepcopy(inner.generators[number])
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            body = [ast.For(generator.target, generator.iter if number else load(ITEMS), body, [])]
        names = tuple(sorted(read & self.bound))
        given = (*([CALLEE] if callee is not None else ()), ITEMS, *names)
        arguments = ast.arguments([], [ast.arg(n) for n in given], None, [], [], None, [])
        ends = [placed_at_end(statement, node) for statement in (*after, ast.Return(result))]
        kind = "listcomp" if isinstance(inner, ast.ListComp) else "genexpr"
        name = f"{COMPREHENSION}{kind}{len(self.functions)}"
        function = ast.FunctionDef(name, arguments, [before, *body, *ends], [])
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []  # type: ignore[attr-defined]
        function.ci_is_closed = True  # type: ignore[attr-defined]
        place_new(function, node)
        self.functions.append(function)
        node.ci_loop = ComprehensionPlan(name, names, callee, builtin)


def with_loops(node: FunctionNode) -> FunctionNode:
    """The function, with those of its comprehensions behind its docstring."""
    if isinstance(node, ast.FunctionDef) and holds(node, *COMPREHENSIONS):
        functions = Comprehensions(node).functions
        start = int(ast.get_docstring(node, clean=False) is not None)
        node.body[start:start] = functions
    return node


# --- what one trip does ---


def in_list(elt: ast.expr) -> list[ast.stmt]:
    """made.list.append(elt)"""
    append = ast.Attribute(load(LIST), "append", ast.Load())
    return [ast.Expr(ast.Call(append, [elt], []))]


def added(elt: ast.expr) -> list[ast.stmt]:
    """made.result = made.result + elt"""
    return [assign(RESULT, ast.BinOp(load(RESULT), ast.Add(), elt))]


def added_with_care(elt: ast.expr) -> list[ast.stmt]:
    """made.result, made.carry = the sum of made.result and elt, and made.carry with its error"""
    return [assign_both(ours("sum_and_carry", load(RESULT), load(CARRY), elt))]


def found(elt: ast.expr, negated: bool = False) -> list[ast.stmt]:
    """if elt: return True"""
    test = ast.UnaryOp(ast.Not(), elt) if negated else elt
    return [ast.If(test, [ast.Return(ast.Constant(not negated))], [])]


def looked_for(elt: ast.expr, negated: bool = False) -> list[ast.stmt]:
    """made.item = elt; where nothing was found before: if made.item: made.result = True"""
    is_open = load(RESULT) if negated else ast.UnaryOp(ast.Not(), load(RESULT))
    test = ast.UnaryOp(ast.Not(), load(ITEM)) if negated else load(ITEM)
    is_found = ast.If(test, [assign(RESULT, ast.Constant(not negated))], [])
    return [assign(ITEM, elt), ast.If(is_open, [is_found], [])]


def is_filtered(node: Any) -> bool:
    """Whether a comprehension leaves something out."""
    return any(generator.ifs for generator in node.generators)


def is_filtered_extreme(node: ast.Call) -> bool:
    """max or min of a generator that leaves something out, with nothing but a number as default."""
    is_extreme = isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
    if not is_extreme or len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp):
        return False
    defaults = [k.value for k in node.keywords if k.arg == "default"]
    is_plain = len(defaults) == len(node.keywords) and all(map(is_constant, defaults))
    return is_plain and is_filtered(node.args[0])


def is_constant(node: ast.expr) -> bool:
    """A number, or anything else that is written out, or the negative of one."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def is_int(elt: ast.expr) -> bool:
    """Whether it is an int, a bool, or one of NumPy's numbers."""
    if isinstance(elt, ast.Constant):
        return isinstance(elt.value, int)
    return isinstance(elt, ast.Compare)


# --- building ---


def new_list() -> ast.stmt:
    """made.list = []"""
    return assign(LIST, ast.List([], ast.Load()))


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def assign_both(value: ast.expr) -> ast.stmt:
    """made.result, made.carry = value"""
    places = [ast.Name(name, ast.Store()) for name in (RESULT, CARRY)]
    return ast.Assign([ast.Tuple(list[ast.expr](places), ast.Store())], value)


def ours(method: str, *args: ast.expr) -> ast.expr:
    """A call of the stage's method."""
    call = ast.Call(load(method), list(args), [])
    call.ci_is_ours = True  # type: ignore[attr-defined]
    return call


def targets_of(node: Any) -> set[str]:
    """The names that a comprehension binds."""
    return names_in(*(g.target for g in node.generators))


def free_names(node: ast.AST) -> set[str]:
    """The names that an expression reads of what is around it."""
    if isinstance(node, ast.Name):
        return {node.id}
    found: set[str] = set().union(*map(free_names, children(node)))
    return found - targets_of(node) if hasattr(node, "generators") else found


def placed_at_end(new: ast.stmt, old: Any) -> ast.stmt:
    """The new statement, where the old one ends."""
    for node in walk(new):
        node.lineno, node.col_offset = old.end_lineno, old.end_col_offset  # type: ignore[attr-defined]
        node.end_lineno, node.end_col_offset = old.end_lineno, old.end_col_offset  # type: ignore[attr-defined]
    return new


def place_new(new: ast.AST, old: ast.AST) -> None:
    """Gives what has no place yet that of the old node."""
    for node in walk(new):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            placed(node, old)
