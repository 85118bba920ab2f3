"""`match` statements that ask for values: they become the `if` that asks the same questions, and are
captured as one.

The subject is a name, or is given one; of a tuple that is written out each item is. A name that a
pattern binds is assigned where its case begins, and in the guard stands for the item: Python binds
it before the guard, so nobody else may look at it. What asks for a class, a key or a length stays a
`match`.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .nodes import Transformer, placed, walk

PREFIX = "_subject"


class Case(NamedTuple):
    """A pattern as tests, all of which must hold, and the names that it binds."""

    tests: list[ast.expr]
    bound: list[tuple[str, ast.expr]]


class Names(Transformer):
    """Reads of names that a pattern binds, as reads of the items."""

    def __init__(self, bound: list[tuple[str, ast.expr]]) -> None:
        self.bound = dict(bound)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        item = self.bound.get(node.id)
        return node if item is None else at(node, item)


def at(place: ast.AST, item: ast.expr) -> ast.expr:
    """An item's name, read at a place."""
    return placed(ast.Name(item.id, ast.Load()), place)  # type: ignore[attr-defined]


def read(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


class Matches(Transformer):
    """Replaces the match statements of a function that are such questions."""

    def __init__(self, root: ast.AST) -> None:
        self.names = [n for n in walk(root) if isinstance(n, ast.Name)]
        self.taken = {n.id for n in self.names}
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        is_tuple = isinstance(node.subject, ast.Tuple)
        values = node.subject.elts if is_tuple else [node.subject]  # type: ignore[attr-defined]
        if any(isinstance(v, ast.Starred) for v in values):
            return node
        before: list[ast.stmt] = []
        items = [self.item(node, value, before) for value in values]
        cases = [self.case_of(case, items, is_tuple) for case in node.cases]
        known = [case for case in cases if case is not None]
        if len(known) < len(cases) or not self.are_own(node, known):
            return node
        return [*before, *self.chain(node, known)]

    def item(self, node: ast.Match, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """What is asked, as a name that nobody else binds."""
        name = f"{PREFIX}_{self.count}"
        while name in self.taken:
            self.count += 1
            name = f"{PREFIX}_{self.count}"
        self.taken.add(name)
        target = ast.Name(name, ast.Store())
        before.append(placed(ast.Assign([placed(target, value)], value), node))
        return read(name)

    def case_of(self, case: ast.match_case, items: list[ast.expr], is_tuple: bool) -> Case | None:
        """The tests of a case; None where there are none."""
        made = Case([], [])
        pattern = case.pattern
        if is_tuple and not is_wildcard(pattern):
            if not isinstance(pattern, ast.MatchSequence) or len(pattern.patterns) != len(items):
                return None
            pairs = list(zip(pattern.patterns, items, strict=True))
        else:
            pairs = [] if is_tuple else [(pattern, items[0])]
        if not all(add(made, part, item) for part, item in pairs):
            return None
        bound = [name for name, _ in made.bound]
        return None if len(set(bound)) < len(bound) else made

    def are_own(self, node: ast.Match, cases: list[Case]) -> bool:
        """Whether only cases that bind a name before a guard look at it: one that fails leaves it
        bound.
        """
        pairs = list(zip(node.cases, cases, strict=True))
        shown = {name for written, case in pairs if written.guard for name, _ in case.bound}
        inside: set[tuple[str, int]] = set()
        for written, case in pairs:
            parts = [*written.body, *([written.guard] if written.guard else [])]
            found = [n for part in parts for n in walk(part) if isinstance(n, ast.Name)]
            inside |= {(name, id(n)) for name, _ in case.bound for n in found}
        return all(n.id not in shown or (n.id, id(n)) in inside for n in self.names)

    def chain(self, node: ast.Match, cases: list[Case]) -> list[ast.stmt]:
        """The `if` with its `elif`s."""
        chain: list[ast.stmt] = []
        for case, written in zip(reversed(cases), reversed(node.cases), strict=True):
            place, tests = written.pattern, case.tests
            if written.guard is not None:
                tests = [*tests, Names(case.bound).visit(written.guard)]
            binds: list[ast.stmt] = []
            for name, item in case.bound:
                target = placed(ast.Name(name, ast.Store()), place)
                binds.append(placed(ast.Assign([target], at(place, item)), place))
            body = [*binds, *written.body]
            if tests:
                test = tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.And(), tests), place)
                chain = [placed(ast.If(test, body, chain), place)]
            else:
                chain = body
        return chain


def is_wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None


def add(case: Case, pattern: ast.pattern, item: ast.expr) -> bool:
    """Adds what a pattern asks of an item; False where no comparison does."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None and not add(case, pattern.pattern, item):
            return False
        if pattern.name is not None:
            case.bound.append((pattern.name, item))
        return True
    if isinstance(pattern, ast.MatchOr):
        tests = []
        for choice in pattern.patterns:
            one = Case([], [])
            if not add(one, choice, item) or one.bound or len(one.tests) != 1:
                return False
            tests += one.tests
        case.tests.append(placed(ast.BoolOp(ast.Or(), tests), pattern))
        return True
    if isinstance(pattern, ast.MatchValue):
        compare = ast.Compare(at(pattern, item), [ast.Eq()], [pattern.value])
    elif isinstance(pattern, ast.MatchSingleton):
        known = placed(ast.Constant(pattern.value), pattern)
        compare = ast.Compare(at(pattern, item), [ast.Is()], [known])
    else:
        return False
    case.tests.append(placed(compare, pattern))
    return True


def without_matches(root: Any) -> Any:
    """The function with such statements replaced."""
    if not any(isinstance(node, ast.Match) for node in walk(root)):
        return root
    return Matches(root).visit(root)
