"""`match` statements become the `if` that asks the same questions, and are captured as one.

The subject is a name, or is given one; of a tuple that is written out each item is, where all cases
ask for as many. What a pattern asks of a sequence, a mapping or a class is one question (`Parts`):
None, or a tuple of the parts that its own patterns look at, which gets a name too. So an item is a
name or a part of one, and may be read again. A name that a pattern binds is assigned where its case
begins, and in the guard stands for the item; Python binds it before the guard, so where others look
at it, too, it is bound there.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, NamedTuple

from .nodes import Transformer, holds, placed, walk

PREFIX = "_subject"


class Parts(ast.Call):
    """A question of the stage: its kind, a constant, is the function; it is given the value first.

    "sequence": the numbers of items before and behind a star, and whether there is a star;
    "mapping": the keys, a tuple, and whether the rest is wanted; "instance": the class, the number of
    positions and the names of attributes.
    """


class Case(NamedTuple):
    """A pattern as tests, all of which must hold, and the names that it binds."""

    tests: list[ast.expr]
    bound: list[tuple[str, ast.expr]]


class PatternReads(Transformer):
    """Reads of names that a pattern binds, as reads of the items."""

    def __init__(self, bound: list[tuple[str, ast.expr]]) -> None:
        self.bound = dict(bound)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        item = self.bound.get(node.id)
        is_read = item is not None and isinstance(node.ctx, ast.Load)
        return at(node, item) if is_read else node  # type: ignore[arg-type]


def at(place: ast.AST, item: ast.expr) -> ast.expr:
    """An item, read at a place."""
    new = copy.deepcopy(item)
    for node in walk(new):
        placed(node, place)
    return new


def constant(place: ast.AST, value: Any) -> ast.expr:
    return placed(ast.Constant(value), place)


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
        """A name that nobody else binds."""
        name = f"{PREFIX}_{self.count}"
        while name in self.taken:
            self.count += 1
            name = f"{PREFIX}_{self.count}"
        self.taken.add(name)
        return name

    def item(self, node: ast.Match, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """What is asked, given a name."""
        target = ast.Name(self.name(), ast.Store())
        before.append(placed(ast.Assign([placed(target, value)], value), node))
        return ast.Name(target.id, ast.Load())

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
        """Adds what a pattern asks of an item, in Python's order."""
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
            known = constant(pattern, pattern.value)
            compare = ast.Compare(at(pattern, item), [ast.Is()], [known])
            case.tests.append(placed(compare, pattern))
        elif isinstance(pattern, ast.MatchSequence):
            self.add_sequence(case, pattern, item)
        elif isinstance(pattern, ast.MatchMapping):
            keys = placed(ast.Tuple(list(pattern.keys), ast.Load()), pattern)
            has_rest = pattern.rest is not None
            asked = [keys, constant(pattern, has_rest)]
            rest = [ast.MatchAs(None, pattern.rest)] if has_rest else []
            self.add_parts(case, pattern, item, "mapping", asked, [*pattern.patterns, *rest])
        else:
            count, names = constant(pattern, len(pattern.patterns)), tuple(pattern.kwd_attrs)
            asked = [pattern.cls, count, constant(pattern, names)]
            inner = [*pattern.patterns, *pattern.kwd_patterns]
            self.add_parts(case, pattern, item, "instance", asked, inner)

    def add_sequence(self, case: Case, pattern: ast.MatchSequence, item: ast.expr) -> None:
        """Items before a star, what it stands for where that is bound, and those behind it."""
        inner = pattern.patterns
        star = next((k for k, p in enumerate(inner) if is_rest(p)), None)
        if star is None:
            counts: tuple[Any, ...] = (len(inner), 0, None)
        else:
            name = inner[star].name  # type: ignore[attr-defined]
            counts = (star, len(inner) - star - 1, name is not None)
            rest = [] if name is None else [ast.MatchAs(None, name)]
            inner = [*inner[:star], *rest, *inner[star + 1 :]]
        asked = [constant(pattern, count) for count in counts]
        self.add_parts(case, pattern, item, "sequence", asked, inner)

    def add_parts(
        self, case: Case, pattern: Any, item: ast.expr, kind: str, asked: Any, inner: list[Any]
    ) -> None:
        """One question, and what patterns ask of the parts that it gives."""
        name = self.name()
        call = placed(Parts(constant(pattern, kind), [at(pattern, item), *asked], []), pattern)
        target = placed(ast.Name(name, ast.Store()), pattern)
        value = placed(ast.NamedExpr(target, call), pattern)
        compare = ast.Compare(value, [ast.IsNot()], [constant(pattern, None)])
        case.tests.append(placed(compare, pattern))
        for k, part in enumerate(inner):
            read = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(k), ast.Load())
            self.add(case, part, read)

    def add_either(self, case: Case, pattern: ast.MatchOr, item: ast.expr) -> None:
        """The first of several that fits; what it binds gets one name, a tuple."""
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

    def binding(self, place: ast.AST, name: str, value: ast.expr) -> ast.expr:
        """A test that holds, and binds a name."""
        target = placed(ast.Name(name, ast.Store()), place)
        compare = ast.Compare(
            placed(ast.NamedExpr(target, value), place), [ast.IsNot()], [constant(place, Ellipsis)]
        )
        return placed(compare, place)

    # --- the chain ---

    def shown(self, node: ast.Match, cases: list[Case]) -> set[str]:
        """The names of guarded cases that are looked at elsewhere than in cases that bind them: a
        case whose guard fails leaves them bound.
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
            place, tests = written.pattern, list(case.tests)
            for name, item in case.bound:
                if name in shown and written.guard is not None:
                    tests.append(self.binding(place, name, at(place, item)))
            if written.guard is not None:
                tests.append(PatternReads(case.bound).visit(written.guard))
            binds: list[ast.stmt] = []
            for name, item in case.bound:
                target = placed(ast.Name(name, ast.Store()), place)
                binds.append(placed(ast.Assign([target], at(place, item)), place))
            body = [*binds, *written.body]
            chain = [placed(ast.If(all_of(tests, place), body, chain), place)] if tests else body
        return chain


def all_of(tests: list[ast.expr], place: ast.AST) -> ast.expr:
    """Whether all hold."""
    if not tests:
        return constant(place, True)
    return tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.And(), tests), place)


def are_rows(subject: ast.Tuple, patterns: list[ast.pattern]) -> bool:
    """Whether each pattern asks for the items of a tuple that is written out, one by one."""
    if any(isinstance(v, ast.Starred) for v in subject.elts):
        return False
    return all(is_wildcard(p) or is_row(p, len(subject.elts)) for p in patterns)


def is_row(pattern: ast.pattern, count: int) -> bool:
    is_sequence = isinstance(pattern, ast.MatchSequence) and len(pattern.patterns) == count
    return is_sequence and not any(map(is_rest, pattern.patterns))  # type: ignore[attr-defined]


def is_wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None


def without_matches(root: Any) -> Any:
    """The function with such statements replaced."""
    if not holds(root, ast.Match):
        return root
    return Matches(root).visit(root)
