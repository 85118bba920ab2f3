"""Checks symbolic sizes with an SMT solver: a simplified expression equals the original, and a relation that is
decided without a guard holds for all values of the symbols.

tests/core/test_expr_random.c checks far more expressions at a few points; this file checks fewer, at all points.
"""

import random
import time

import pytest

from cinductor import _core

z3 = pytest.importorskip("z3")

# Name, smallest and largest value (None: unbounded).
SYMBOLS = [("s0", 0, None), ("s1", 1, 100), ("s2", 0, 15), ("s3", -8, 8)]
SECONDS = 4.0  # seconds per test; a slow machine checks fewer expressions
TIMEOUT = 200  # milliseconds per question, because products of symbols may be too hard


def floordiv(a, b):
    """Python's floor division in the solver, whose own division keeps the remainder non-negative."""
    if isinstance(b, int):
        return a / b if b > 0 else (-a) / -b
    return z3.If(b > 0, a / b, (-a) / -b)


def mod(a, b):
    if isinstance(b, int):
        return a % b if b > 0 else -((-a) % -b)
    return z3.If(b > 0, a % b, -((-a) % -b))


class Term:
    """A solver term with the arithmetic of a Python int."""

    def __init__(self, term):
        self.term = term

    @staticmethod
    def raw(value):
        return value.term if isinstance(value, Term) else value

    def __add__(self, other):
        return Term(self.term + self.raw(other))

    def __sub__(self, other):
        return Term(self.term - self.raw(other))

    def __rsub__(self, other):
        return Term(other - self.term)

    def __mul__(self, other):
        return Term(self.term * self.raw(other))

    def __floordiv__(self, other):
        return Term(floordiv(self.term, self.raw(other)))

    def __mod__(self, other):
        return Term(mod(self.term, self.raw(other)))

    def __rfloordiv__(self, other):
        return Term(floordiv(z3.IntVal(other), self.term))

    def __rmod__(self, other):
        return Term(mod(z3.IntVal(other), self.term))

    def __neg__(self):
        return Term(-self.term)

    __radd__, __rmul__ = __add__, __mul__


def extremum(is_less):
    def choose(*values):
        best = Term.raw(values[0])
        for value in map(Term.raw, values[1:]):
            best = z3.If(is_less(value, best), value, best)
        return Term(best)

    return choose


VALUES = {name: Term(z3.Int(name)) for name, _, _ in SYMBOLS}
NAMES = {**VALUES, "min": extremum(lambda a, b: a < b), "max": extremum(lambda a, b: a > b)}


def term_of(text):
    """A text of a size as a term."""
    return Term.raw(eval(text, {"__builtins__": {}}, NAMES))


def random_text(rng, depth):
    """An expression as a user might write it; divisors are never 0."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(SYMBOLS)[0] if rng.random() < 0.75 else str(rng.randint(-6, 12))
    a, b = (random_text(rng, depth - 1) for _ in range(2))
    kind = rng.choice("+ + - - * c // // % % min max".split())
    if kind == "c":
        return f"{rng.choice((-4, -3, 2, 3, 8))}*({a})"
    if kind in ("//", "%"):
        divisors = ("2", "3", "4", "7", "8", "16", "(0 - 3)", "s1", "(s2 + 1)", "max(s3, 2)")
        return f"({a}){kind}{rng.choice(divisors)}"
    return f"{kind}({a}, {b})" if kind in ("min", "max") else f"({a}) {kind} ({b})"


class Oracle:
    """A tracer with the symbols, and the solver that knows their ranges."""

    def __init__(self):
        self.tracer = _core.Tracer("f", options={}, backend="interp")
        self.solver = z3.Solver()
        self.solver.set("timeout", TIMEOUT)
        for name, low, high in SYMBOLS:
            self.tracer.symbol(name, -1, 0, 3, low, high, True)
            self.solver.add(VALUES[name].term >= low)
            if high is not None:
                self.solver.add(VALUES[name].term <= high)
        self.asked = self.unknown = 0

    def size(self, text):
        """The size that the text becomes, and its text after simplification."""
        size = self.tracer.size(text)
        return size, self.tracer.size_text(size)

    def assert_always(self, claim, words, *facts):
        """No values of the symbols contradict the claim."""
        self.asked += 1
        self.solver.push()
        self.solver.add(*facts, z3.Not(claim))
        answer = self.solver.check()
        model = self.solver.model() if answer == z3.sat else None
        self.solver.pop()
        assert model is None, f"{words} is denied by {model}"
        self.unknown += answer == z3.unknown


def bounded(seed):
    """Seeds, until the time is over."""
    end = time.monotonic() + SECONDS
    rng = random.Random(seed)
    while time.monotonic() < end:
        yield rng


RELATIONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def as_bool(claim):
    """The comparison of two constants is a Python bool."""
    return z3.BoolVal(claim) if isinstance(claim, bool) else claim


def written(oracle, rng, depth=4):
    """A random expression: its text, its size, and its term."""
    while True:
        text = random_text(rng, rng.randint(1, depth))
        try:
            size, _ = oracle.size(text)
        except (ValueError, OverflowError):  # exceeds 64 bits
            continue
        return text, size, term_of(text)


def test_an_expression_is_what_it_was_written_as():
    oracle, count = Oracle(), 0
    for rng in bounded(1):
        text = random_text(rng, rng.randint(1, 4))
        try:
            _, made = oracle.size(text)
        except (ValueError, OverflowError):
            continue
        oracle.assert_always(term_of(text) == term_of(made), f"{text} == {made}")
        count += 1
    assert count >= 100 and oracle.unknown <= oracle.asked // 5, (count, oracle.unknown)


def test_what_is_decided_without_a_guard_holds():
    """Against numbers, such as bounds, and against other expressions."""
    oracle, decided = Oracle(), 0
    for rng in bounded(2):
        text, size, term = written(oracle, rng)
        for _ in range(6):
            if rng.random() < 0.5:
                other = number = rng.randint(-40, 120)
                name = str(number)
            else:
                name, other, number = written(oracle, rng)
            for sign, relation in RELATIONS.items():
                answer = relation(size, other)
                if type(answer) is bool:
                    claim = as_bool(relation(term, number))
                    oracle.assert_always(claim == answer, f"({text}) {sign} ({name}) is {answer}")
                    decided += 1
    assert decided >= 100 and oracle.unknown <= oracle.asked // 5, (decided, oracle.unknown)


def test_what_facts_decide_holds_where_they_do():
    """Compares sums of the sizes that the facts compare."""
    oracle, decided = Oracle(), 0
    for rng in bounded(3):
        facts, words, pairs, before = [], [], [], oracle.tracer.mark()
        for _ in range(rng.randint(1, 3)):
            (a, left, x), (b, right, y) = (written(oracle, rng, 2) for _ in range(2))
            sign = rng.choice(list(RELATIONS))
            facts.append(as_bool(RELATIONS[sign](x, y)))
            oracle.tracer.assume((left, sign, right))
            words.append(f"({a}) {sign} ({b})")
            pairs.append(((left, right), (x, y)))
        for _ in range(4):
            chosen, more = rng.sample(pairs, rng.randint(1, len(pairs))), rng.randint(-2, 2)
            left, right = (sum(sizes[k] for sizes, _ in chosen) for k in range(2))
            x, y = (z3.Sum([terms[k] for _, terms in chosen]) for k in range(2))
            for sign, relation in RELATIONS.items():
                answer = relation(left + more, right)
                if type(answer) is bool:
                    told = f"the sums of {len(chosen)}: {more} more {sign} is {answer}, given {words}"
                    oracle.assert_always(as_bool(relation(x + more, y)) == answer, told, *facts)
                    decided += 1
        before.forget()
    assert decided >= 100 and oracle.unknown <= oracle.asked // 4, (decided, oracle.unknown)
