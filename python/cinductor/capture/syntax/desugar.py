"""Desugaring before all other steps: `match` statements and comprehensions.

A `match` becomes an equivalent `if` chain, which is captured as one. The subject is assigned to a name
unless it is one; if it is a tuple display and all cases test its items, each item is. A test of a
sequence, mapping or class pattern is one call (`Parts`): it returns None, or a tuple of the parts that
the subpatterns need, which also gets a name. So an item is a name or a part of one, and may be read
twice. A captured name is assigned at the beginning of its case, and the guard uses the item instead.
Python binds the name before the guard; this is also done here if other code can see the name.

    [f(x, a) for x in items if c(x)]

becomes a call of a function at the top of the rewritten one,

    def __ci_listcomp0(made.items, a):
        made.list = []
        for x in made.items:
            if c(x):
                made.list.append(f(x, a))
        return made.list

so that it is captured like any loop. Values that it reads from the enclosing function are passed as
arguments: a comprehension binds no names there, and no other code runs meanwhile. `sum`, `any` and `all`
of a comprehension become loops that add, or that stop once the result is known. If the comprehension has
a filter, so do `max` and `min`, and a sum starts with its first item, because an empty sum has another
type. `ci_loop` of a node names its function; the comprehension stays in the tree for the case that the
function cannot be used.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from ... import _core
from ...base.records import NamedTuple
from ...base.user_frame import OWN_PREFIX
from .names import (
    FunctionNode,
    Names,
    Transformer,
    Visitor,
    constant_at,
    duplicate,
    end_of,
    free_names,
    from_text,
    place_new,
    placed,
    store_at,
    targets_of,
    walk,
)

PREFIX = "_subject"

COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


class Parts(ast.Call):
    r"""A call of the stage, for a pattern. Its function is a constant for the kind of pattern, and the value is its
    first argument.

    The other arguments of "sequence" are the numbers of items before and after a star, and whether there is a star.
    Those of "mapping" are a tuple of the keys, and whether the rest is wanted. Those of "instance" are the class, the
    number of positional patterns, and the names of attributes.
    """


class Case(NamedTuple):
    """A pattern as tests, all of which must hold, and the names that it binds."""

    tests: list[ast.expr]
    bound: list[tuple[str, ast.expr]]


class PatternReads(Transformer):
    """Replaces reads of names that a pattern binds by reads of the items."""

    def __init__(self, bound: list[tuple[str, ast.expr]]) -> None:
        self.bound = dict(bound)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        item = self.bound.get(node.id)
        is_read = item is not None and isinstance(node.ctx, ast.Load)
        return at(node, item) if is_read else node  # type: ignore[arg-type]


def at(location: ast.AST, item: ast.expr) -> ast.expr:
    """A read of an item, at a position."""
    return _core.filled([item], location, {})[0]


def is_rest(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchStar)


class Matches(Transformer):
    """Replaces the match statements of a function."""

    def __init__(self, root: ast.AST) -> None:
        self.names = [n for n in walk(root) if isinstance(n, ast.Name)]
        self.taken = {n.id for n in self.names}
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        patterns = [case.pattern for case in node.cases]
        is_row = isinstance(node.subject, ast.Tuple) and are_rows(node.subject, patterns)
        values = node.subject.elts if is_row else [node.subject]  # type: ignore[attr-defined]
        before: list[ast.stmt] = []
        items = [self.item(node, value, before) for value in values]
        cases = [self.case_of(case.pattern, items, is_row) for case in node.cases]
        return [*before, *self.chain(node, cases)]

    def name(self) -> str:
        """A new name that is not used elsewhere in the function."""
        name = f"{PREFIX}_{self.count}"
        while name in self.taken:
            self.count += 1
            name = f"{PREFIX}_{self.count}"
        self.taken.add(name)
        return name

    def item(self, node: ast.Match, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """Assign the value to a new name and return the name."""
        name = self.name()
        before.append(store_at(node, name, value))
        return ast.Name(name, ast.Load())

    def case_of(self, pattern: ast.pattern, items: list[ast.expr], is_row: bool) -> Case:
        """The tests of a case."""
        case = Case([], [])
        if not is_row:
            self.add(case, pattern, items[0])
        elif isinstance(pattern, ast.MatchSequence):
            for part, item in zip(pattern.patterns, items, strict=True):
                self.add(case, part, item)
        return case

    # --- patterns ---

    def add(self, case: Case, pattern: Any, item: ast.expr) -> None:
        """Add the tests of a pattern for an item, in Python's order."""
        if isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self.add(case, pattern.pattern, item)
            if pattern.name is not None:
                case.bound.append((pattern.name, item))
        elif isinstance(pattern, ast.MatchOr):
            self.add_either(case, pattern, item)
        elif isinstance(pattern, ast.MatchValue):
            compare = ast.Compare(at(pattern, item), [ast.Eq()], [pattern.value])
            case.tests.append(placed(compare, pattern))
        elif isinstance(pattern, ast.MatchSingleton):
            known = constant_at(pattern, pattern.value)
            compare = ast.Compare(at(pattern, item), [ast.Is()], [known])
            case.tests.append(placed(compare, pattern))
        elif isinstance(pattern, ast.MatchSequence):
            self.add_sequence(case, pattern, item)
        elif isinstance(pattern, ast.MatchMapping):
            keys = placed(ast.Tuple(list(pattern.keys), ast.Load()), pattern)
            has_rest = pattern.rest is not None
            asked = [keys, constant_at(pattern, has_rest)]
            rest = [ast.MatchAs(None, pattern.rest)] if has_rest else []
            self.add_parts(case, pattern, item, "mapping", asked, [*pattern.patterns, *rest])
        else:
            count, names = constant_at(pattern, len(pattern.patterns)), tuple(pattern.kwd_attrs)
            asked = [pattern.cls, count, constant_at(pattern, names)]
            inner = [*pattern.patterns, *pattern.kwd_patterns]
            self.add_parts(case, pattern, item, "instance", asked, inner)

    def add_sequence(self, case: Case, pattern: ast.MatchSequence, item: ast.expr) -> None:
        """Items before a star, the list for the star if it is bound, and items after it."""
        inner = pattern.patterns
        star = next((k for k, p in enumerate(inner) if is_rest(p)), None)
        if star is None:
            counts: tuple[Any, ...] = (len(inner), 0, None)
        else:
            name = inner[star].name  # type: ignore[attr-defined]
            counts = (star, len(inner) - star - 1, name is not None)
            rest = [] if name is None else [ast.MatchAs(None, name)]
            inner = [*inner[:star], *rest, *inner[star + 1 :]]
        asked = [constant_at(pattern, count) for count in counts]
        self.add_parts(case, pattern, item, "sequence", asked, inner)

    def add_parts(
        self, case: Case, pattern: Any, item: ast.expr, kind: str, asked: Any, inner: list[Any]
    ) -> None:
        """Add one call, and the tests of the patterns for the parts that it returns."""
        name = self.name()
        call = placed(Parts(constant_at(pattern, kind), [at(pattern, item), *asked], []), pattern)
        target = placed(ast.Name(name, ast.Store()), pattern)
        value = placed(ast.NamedExpr(target, call), pattern)
        compare = ast.Compare(value, [ast.IsNot()], [constant_at(pattern, None)])
        case.tests.append(placed(compare, pattern))
        for k, part in enumerate(inner):
            read = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(k), ast.Load())
            self.add(case, part, read)

    def add_either(self, case: Case, pattern: ast.MatchOr, item: ast.expr) -> None:
        """The first of several patterns that matches; its bindings get one name, a tuple."""
        tests: list[ast.expr] = []
        bound: list[str] = []
        name = ""
        for choice in pattern.patterns:
            one = Case([], [])
            self.add(one, choice, item)
            if one.bound:
                name, bound = name or self.name(), bound or sorted(n for n, _ in one.bound)
                parts = dict(one.bound)
                taken = placed(ast.Tuple([at(choice, parts[n]) for n in bound], ast.Load()), choice)
                one.tests.append(self.binding(choice, name, taken))
            tests.append(all_of(one.tests, choice))
        case.tests.append(placed(ast.BoolOp(ast.Or(), tests), pattern))
        for k, own in enumerate(bound):
            read = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(k), ast.Load())
            case.bound.append((own, read))

    def binding(self, location: ast.AST, name: str, value: ast.expr) -> ast.expr:
        """A test that is true and binds a name."""
        target = placed(ast.Name(name, ast.Store()), location)
        compare = ast.Compare(
            placed(ast.NamedExpr(target, value), location), [ast.IsNot()], [constant_at(location, Ellipsis)]
        )
        return placed(compare, location)

    # --- the chain ---

    def shown(self, node: ast.Match, cases: list[Case]) -> set[str]:
        """The names of guarded cases that are read outside of the cases that bind them, because a case whose guard
        fails leaves them bound.
        """
        pairs = list(zip(node.cases, cases, strict=True))
        guarded = {name for written, case in pairs if written.guard for name, _ in case.bound}
        inside: set[tuple[str, int]] = set()
        for written, case in pairs:
            parts = [*written.body, *([written.guard] if written.guard else [])]
            found = [n for part in parts for n in walk(part) if isinstance(n, ast.Name)]
            inside |= {(name, id(n)) for name, _ in case.bound for n in found}
        return {n.id for n in self.names if n.id in guarded and (n.id, id(n)) not in inside}

    def chain(self, node: ast.Match, cases: list[Case]) -> list[ast.stmt]:
        """The `if` with its `elif`s."""
        chain: list[ast.stmt] = []
        shown = self.shown(node, cases)
        for case, written in zip(reversed(cases), reversed(node.cases), strict=True):
            location, tests = written.pattern, list(case.tests)
            for name, item in case.bound:
                if name in shown and written.guard is not None:
                    tests.append(self.binding(location, name, at(location, item)))
            if written.guard is not None:
                tests.append(PatternReads(case.bound).visit(written.guard))
            binds: list[ast.stmt] = []
            for name, item in case.bound:
                binds.append(store_at(location, name, at(location, item)))
            body = [*binds, *written.body]
            if tests or chain:  # cases that are never tried make their names local
                chain = [placed(ast.If(all_of(tests, location), body, chain), location)]
            else:
                chain = body
        return chain


def all_of(tests: list[ast.expr], location: ast.AST) -> ast.expr:
    """True if all hold."""
    if not tests:
        return constant_at(location, True)
    return tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.And(), tests), location)


def are_rows(subject: ast.Tuple, patterns: list[ast.pattern]) -> bool:
    """True if each pattern matches the items of a tuple display one by one."""
    if any(isinstance(v, ast.Starred) for v in subject.elts):
        return False
    return all(is_wildcard(p) or is_row(p, len(subject.elts)) for p in patterns)


def is_row(pattern: ast.pattern, count: int) -> bool:
    is_sequence = isinstance(pattern, ast.MatchSequence) and len(pattern.patterns) == count
    return is_sequence and not any(map(is_rest, pattern.patterns))  # type: ignore[attr-defined]


def is_wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None


def without_matches(root: Any) -> Any:
    """The function with its match statements replaced."""
    return Matches(root).visit(root)


# --- comprehensions are calls of functions with loops ---


ITEMS, CALLEE = "made.items", "made.callee"
OPAQUE = ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
CONSUMERS = frozenset({"list", "tuple", "set", "frozenset", "max", "min", "sorted"})
# sum() of Python floats is compensated since 3.12, and that of complex numbers since 3.14.
SUM_IS_PLAIN = sys.version_info < (3, 12)


class ComprehensionPlan(NamedTuple):
    """The function for a comprehension, or for a call with one: the names that it gets, the function that it calls
    with the list, and the builtin that the call must refer to.
    """

    function: str
    names: tuple[str, ...]
    callee: ast.expr | None
    builtin: str | None


class Comprehensions(Visitor):
    """Finds the comprehensions of a function and makes their functions."""

    def __init__(self, root: ast.FunctionDef) -> None:
        self.functions: list[ast.stmt] = []
        self.bound: frozenset[str] = frozenset()  # bound in enclosing functions and comprehensions
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
        """The names bound inside a comprehension."""
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
        self._plan(node, node, IN_LIST, NEW_LIST, "made_list")

    def visit_Call(self, node: ast.Call) -> None:
        inner: Any = node.args[0] if len(node.args) == 1 else None
        if is_filtered_extreme(node) and node.func.id not in self.bound:  # type: ignore[attr-defined]
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
        is_plain = SUM_IS_PLAIN or is_int(inner.elt)
        if name in ANY_OR_ALL:
            inner.elt.ci_is_value = True
            self._plan(node, inner, ANY_OR_ALL[name][is_list], f"made_result = {name == 'all'}", "made_result", builtin=name)
        elif name == "sum" and is_filtered(inner) and not is_int(inner.elt):  # an int only if there are no items
            more, first, _, total = SUMS[SUM_IS_PLAIN]
            step = WITH_SOME.format(more=more.replace("elt", "made_item"), first=first)
            self._plan(node, inner, step, NONE_YET, f"{total} if made_some else 0", builtin=name)
        elif name == "sum":
            more, _, start, total = SUMS[is_plain]
            self._plan(node, inner, more, start, total, builtin=name)
        elif name in CONSUMERS or (is_list and self._is_of_module(func)):
            self._plan(node, inner, IN_LIST, NEW_LIST, "made_callee(made_list)", func, None if is_list else name)
        elif is_list:
            self._plan(inner, inner, IN_LIST, NEW_LIST, "made_list")

    def _plan_extreme(self, node: Any, inner: Any) -> None:
        """max or min of filtered items: for none, the default, or an exception."""
        name, default = node.func.id, [keyword.value for keyword in node.keywords]
        better = f"if made_item {'>' if name == 'max' else '<'} made_result: made_result = made_item"
        step = WITH_SOME.format(more=better, first="made_result = made_item")
        result = "made_result if made_some else default" if default else "made_result"
        after = "" if default else f"if not made_some: {name}(())"
        self._plan(node, inner, step, NONE_YET, result, builtin=name, after=after, default=default[0] if default else None)

    def _is_of_module(self, node: ast.expr) -> bool:
        """True if it may be a module's attribute: attributes of a name that no enclosing function binds."""
        is_attribute = isinstance(node, ast.Attribute)
        while isinstance(node, ast.Attribute):
            node = node.value
        return is_attribute and isinstance(node, ast.Name) and node.id not in self.bound

    def _plan(
        self,
        node: Any,
        inner: Any,
        step: str,
        before: str,
        result: str,
        callee: ast.expr | None = None,
        builtin: str | None = None,
        after: str = "",
        default: ast.expr | None = None,
    ) -> None:
        """Make the function whose iterations perform this step; None if it would differ from the original."""
        first, *others = inner.generators
        tests = [t for g in inner.generators for t in g.ifs]
        parts = [inner.elt, *tests, *(g.iter for g in others)]
        read = frozenset().union(*map(free_names, parts)) - targets_of(inner)
        is_opaque = any(isinstance(n, OPAQUE) for part in parts for n in walk(part))
        if is_opaque or first.is_async or read & (self.shared | {"super", "__class__"}):
            return
        body = from_text(step, node, elt=duplicate(inner.elt))
        for number in range(len(others), -1, -1):
            generator = duplicate(inner.generators[number])
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            body = [ast.For(generator.target, generator.iter if number else ast.Name(ITEMS, ast.Load()), body, [])]
        names = tuple(sorted(read & self.bound))
        given = (*([CALLEE] if callee is not None else ()), ITEMS, *names)
        arguments = ast.arguments([], [ast.arg(n) for n in given], None, [], [], None, [])
        ends = from_text(f"{after}\nreturn {result}", end_of(node), default=default)
        kind = "listcomp" if isinstance(inner, ast.ListComp) else "genexpr"
        name = f"{OWN_PREFIX}{kind}{len(self.functions)}"
        function = ast.FunctionDef(name, arguments, [*from_text(before, node), *body, *ends], [])
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []  # type: ignore[attr-defined]
        function.ci_is_closed = True  # type: ignore[attr-defined]
        place_new(function, node)
        self.functions.append(function)
        node.ci_loop = ComprehensionPlan(name, names, callee, builtin)


def with_loops(node: ast.FunctionDef) -> None:
    """Insert the functions of comprehensions into a function, after its docstring."""
    functions = Comprehensions(node).functions
    start = int(ast.get_docstring(node, clean=False) is not None)
    node.body[start:start] = functions


# --- the statements of a comprehension's function ---


NEW_LIST, IN_LIST, NONE_YET = "made_list = []", "made_list.append(elt)", "made_some = False"
# The statements of a sum, by whether it is plain: for an item, for the first item of some, its start, and its value.
SUMS = {
    True: ("made_result = made_result + elt", "made_result = 0 + made_item", "made_result = 0", "made_result"),
    False: (
        "made_result, made_carry = sum_and_carry(made_result, made_carry, elt)",
        "made_result, made_carry = sum_and_carry(0, 0.0, made_item)",
        "made_result, made_carry = 0, 0.0",
        "sum_of(made_result, made_carry)",
    ),
}
WITH_SOME = """
made_item = elt
if made_some:
    {more}
else:
    {first}
    made_some = True
"""
ANY_OR_ALL = {  # of a generator, and of a list, whose items are all made
    "any": ("if elt: return True", "made_item = elt\nif not made_result:\n    if made_item: made_result = True"),
    "all": ("if not elt: return False", "made_item = elt\nif made_result:\n    if not made_item: made_result = False"),
}
def is_filtered(node: Any) -> bool:
    """True if a comprehension has a filter."""
    return any(generator.ifs for generator in node.generators)


def is_filtered_extreme(node: ast.Call) -> bool:
    """True for max or min of a filtered generator, with at most a number as default."""
    is_extreme = isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
    if not is_extreme or len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp):
        return False
    defaults = [k.value for k in node.keywords if k.arg == "default"]
    is_plain = len(defaults) == len(node.keywords) and all(map(is_constant, defaults))
    return is_plain and is_filtered(node.args[0])


def is_constant(node: ast.expr) -> bool:
    """True for a number or other constant, or a negated one."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def is_int(elt: ast.expr) -> bool:
    """True for an int, a bool, or a NumPy integer."""
    if isinstance(elt, ast.Constant):
        return isinstance(elt.value, int)
    return isinstance(elt, ast.Compare)
