"""Tests that `match` statements are captured like the equivalent `if`: values, sequences, mappings, classes."""

import array
import ast
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest

import cinductor
from cinductor.capture.syntax.rewrite import print_rewritten
from cinductor.testing import check

pytestmark = pytest.mark.usefixtures("pieces_are_compiled")


class Colour:
    RED, GREEN = 1, 2


def by_value(x, k):
    match k:
        case 0:
            x *= 2
        case 1 | 2:
            x += 1
        case -1:
            x[0] = 7
        case _:
            x -= 3
    return x


def by_data(x):
    total = 0.0
    for i in range(len(x)):
        match x[i]:
            case 0:
                continue
            case 1.5 | 2:
                total += x[i]
            case v if v > 4:
                total -= v * 2
            case v if v < -3:
                break
            case v:
                x[i] = v * v
    return total, x


def by_pair(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        match (x[i] > 1, y[i]):
            case (a, 0) if a:
                out[i] = 1
            case (a, 2) if not a:
                out[i] = 2
            case (_, 3):
                return out, i
            case _:
                out[i] = y[i]
    return out, -1


def by_attribute(x):
    match int(x[0]):
        case Colour.RED:
            return x + 1
        case Colour.GREEN:
            return x * 2
    return x - 1


def by_nothing(x, mode):
    match mode:
        case None:
            return x
        case "sum":
            return x.sum()
        case "mean" | "average":
            return x.mean()


def nested(x, y):
    match x[0]:
        case 1:
            match y[0]:
                case 2:
                    x[1] = 9
                case w if w > 2:
                    x[1] = w
        case 2:
            x[2] = -1
    return x


def bound_by_a_guard(x):
    """A name bound by a pattern whose guard failed is read."""
    match x[0]:
        case v if v > 2:
            return v, x
        case _:
            return v + 1, x


def by_class(x):
    match x.shape:
        case (n,):
            return x + n
        case (n, m):
            return x * m
    return x


def by_truth(x):
    match bool(x[0] > 1):
        case True:
            return x + 1
        case False:
            return x - 1


def identities(x):
    b, c = bool(x[0] > 1), x[0] > 1
    d = c and x[1] > 1 and True
    return (
        b is True,
        b is False,
        b is not True,
        c is True,
        False is not c,
        d is True,
        None is True,
        3 if b is True else 4,
    )


ROWS = [[0.0, 1.5, 5, -2, 2], [1.0, 0, 2, -4, 6], [2.0, 2, 3, 0, 1], [-5.0, 1, 1, 1, 1]]
DATA = [by_data, by_attribute, bound_by_a_guard, by_class, by_truth, identities]


@pytest.mark.parametrize("fn", DATA, ids=lambda f: f.__name__)
def test_on_data(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for row in ROWS:
        check(fn, np.array(row), compiled=compiled)


@pytest.mark.parametrize("fn", [by_pair, nested], ids=lambda f: f.__name__)
def test_on_two(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for first in ROWS:
        for second in ([2, 0, 3, 2, 0], [3, 1, 0, 0, 2]):
            check(fn, np.array(first), np.array(second), compiled=compiled)


def test_on_arguments():
    compiled = cinductor.compile(by_value, backend="interp")
    for k in (0, 1, 2, -1, 5, 1.0, np.int64(2)):
        check(by_value, np.arange(4.0), k, compiled=compiled)
    for mode in (None, "sum", "mean", "average", "none"):
        check(by_nothing, np.arange(4.0), mode, backend="interp")


@pytest.mark.parametrize(
    "fn, more",
    [(by_data, []), (by_pair, [np.array([2, 0, 1])]), (nested, [np.array([2])])],
    ids=["by_data", "by_pair", "nested"],
)
def test_is_captured_whole(fn, more):
    assert not cinductor.explain(fn, np.array([1.0, 5, 2]), *more).breaks


def test_no_match_is_left():
    for fn in (bound_by_a_guard, by_class, by_data, of_shapes):
        tree = ast.parse(print_rewritten(fn))
        assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))


class Kind(Enum):
    DISC = 1
    BOX = 2


@dataclass
class Body:
    kind: Kind
    centre: np.ndarray
    size: float = 1.0


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return vars(self) == vars(other)


class Wrong:
    __match_args__ = ["x"]
    x = 1

    def __eq__(self, other):
        return type(self) is type(other)


class Asked:
    """Counts the reads of each attribute and item."""

    def __init__(self):
        self.reads = []

    @property
    def first(self):
        self.reads.append("first")
        return 1

    @property
    def second(self):
        self.reads.append("second")
        raise AttributeError


def of_shapes(bodies, x):
    out = np.zeros(len(x))
    for body in bodies:
        match body:
            case Body(kind=Kind.DISC, centre=c, size=s):
                out += np.abs(x - c) < s
            case Body(Kind.BOX, c):
                out -= np.abs(x - c) < body.size / 2
            case Point(x=0, y=v) | Point(v, 0):
                out *= v
            case Point(a, b) if a > b:
                out += a
            case float(v) | int(v):
                out += v
            case {"kind": "shift", "by": by, **rest} if not rest:
                out += by
            case {"kind": str(k), **rest}:
                out += len(rest) + len(k)
            case [] | None:
                out[0] = -1
            case [first, *_, Point(last, _)]:
                out += first * last
            case ["add", (p, q), *more]:
                out += p - q + len(more)
            case [*_, np.ndarray() as row]:
                out += row
            case _:
                return "none of them", out
    return out, x


BODIES = [
    [Body(Kind.DISC, np.array(1.0)), Body(Kind.BOX, np.array(2.0), 3.0)],
    [Point(0, 3.0), Point(2, 0), Point(3, 1), Point(1, 3), 2.5, 4, True],
    [{"kind": "shift", "by": 2}, {"kind": "other", "by": 1}, {"by": 1}, 3],
    [[], None, ()],
    [[2, 3, Point(5, 6)], (1.5, Point(2, 2))],
    [["add", (3, 1)], ("add", [4, 1], 1, 2), ["add", (1, 2, 3)]],
    [(1, 2, np.ones(4)), "text", 1],
    [np.ones(4), b"ab", np.float64(2), np.int64(3)],
    [{1, 2}, 1j, range(3), array.array("d", [1, 2])],
]


@pytest.mark.parametrize("bodies", BODIES, ids=range(len(BODIES)))
def test_patterns(bodies):
    compiled = cinductor.compile(of_shapes, backend="interp")
    x = np.array([0.0, 1.5, 2, -1])
    for k in range(len(bodies) + 1):
        check(of_shapes, bodies[:k], x, compiled=compiled)
        check(of_shapes, bodies[k:], x, compiled=compiled)
        check(of_shapes, tuple(bodies[k : k + 1]), x, compiled=compiled)


def parts_of_data(rows, x):
    total = 0.0
    for i in range(len(x)):
        match (x[i], rows):
            case (0, _):
                continue
            case (v, [[a, b], *_]) if v > a:
                total += v * b
            case (v, [_, {"scale": s}]):
                total -= v / s
        match x[i]:
            case float(v) if v < 0:
                total += v
            case int() | np.ndarray():
                total = -1
    return total


def test_parts_and_data():
    rows = ([1.0, 2.0], {"scale": 4.0})
    assert not cinductor.explain(parts_of_data, rows, np.arange(9.0) - 2).breaks
    compiled = cinductor.compile(parts_of_data, backend="interp")
    for x in (np.arange(9.0) - 2, np.arange(20) - 3, np.zeros(0)):
        check(parts_of_data, rows, x, compiled=compiled)
        check(parts_of_data, (rows[0],), x, compiled=compiled)


def reads_in_order(x, asked):
    match asked:
        case Asked(first=2, second=_):
            return x
        case Asked(first=1) as whole:
            return x + len(whole.reads)


def test_attributes_are_read_as_often():
    for fn in (reads_in_order,):
        plain, ours = Asked(), Asked()
        assert np.array_equal(fn(np.ones(2), plain), cinductor.compile(fn)(np.ones(2), ours))
        assert plain.reads == ours.reads


def too_many(x):
    match x:
        case Point(a, _, _):
            return a


def no_class(x):
    kind = [1]
    match x:
        case kind():
            return 1


def no_tuple(x):
    match x:
        case Wrong(a):
            return a


def twice(x):
    match x:
        case Point(a, x=_):
            return a


def same_key(x):
    a = Colour
    match x:
        case {a.RED: 1, Colour.RED: 2}:
            return a


def numbers(x):
    match x:
        case bool(v):
            return "bool", v
        case int(v) | float(v) | complex(v):
            return v, type(v)
        case str() | bytes() | list() | tuple() | dict() | set() | frozenset() | bytearray():
            return "text or so"


@pytest.mark.parametrize("fn", [too_many, no_class, no_tuple, twice, same_key, numbers])
def test_errors_are_pythons(fn):
    compiled = cinductor.compile(fn, backend="interp")
    values = (Point(1, 2), Wrong(), {1: 1, 2: 2}, 3, True, 2.5, 1j, "a", [1], np.float32(2), None)
    for value in values:
        check(fn, value, compiled=compiled)


def a_name_of_a_choice(x, pair):
    match pair:
        case (1, n) | (n, 1) if n > x[0]:
            return x * n
        case [_, _]:
            return x + n
    return x


def test_names_that_a_failed_guard_leaves():
    compiled = cinductor.compile(a_name_of_a_choice, backend="interp")
    for pair in ((1, 5.0), (7.0, 1), (1, 0.0), (2, 2), [1, 3.0], (1,), "ab"):
        check(a_name_of_a_choice, np.array([2.0, 3]), pair, compiled=compiled)


never_bound = 1.0


def bound_in_a_case_that_is_never_tried(x, k):
    match (k, x):
        case (1, _):
            y = x * 2
        case (_, _):
            y = x
        case _:
            never_bound = x
    return y + never_bound


def test_names_of_cases_that_are_never_tried_are_local():
    compiled = cinductor.compile(bound_in_a_case_that_is_never_tried, backend="interp")
    for k in (1, 2, 1):
        check(bound_in_a_case_that_is_never_tried, np.array([2.0, 3]), k, compiled=compiled)


# --- names that a pattern binds in a piece, or leaves as they are ---------------------------------------------------


def left_by_a_sequence(x, g):
    s = 0.0
    for _ in range(2):
        match g:
            case (s, 1):
                x[1] = 2
        print(end="", flush=True)
        x += 1
    return x, s


def left_by_a_star(x, g):
    s, rest = 0.0, []
    for _ in range(2):
        match g:
            case (1, *rest):
                x[1] = 2
        print(end="", flush=True)
        x += 1
    return x, s, rest


def left_by_a_mapping(x, g):
    rest = None
    for _ in range(2):
        match {"a": g[0], "b": g[1]}:
            case {"a": 1, **rest}:
                x[1] = 2
        print(end="", flush=True)
        x += 1
    return x, rest


def left_by_an_alternative(x, g):
    s = 0.0
    for _ in range(2):
        match g:
            case (2 | 3, 1) as s:
                x[1] = 2
        print(end="", flush=True)
        x += 1
    return x, s


def left_by_a_handler(x, g):
    s = None
    for _ in range(2):
        try:
            x[g[0]] += 1
        except IndexError as s:  # noqa: F841
            x[0] -= 1
        print(end="", flush=True)
        x += 1
    return x, s


@pytest.mark.parametrize("fn", [left_by_a_sequence, left_by_a_star, left_by_a_mapping, left_by_an_alternative, left_by_a_handler])
def test_a_piece_gets_the_names_that_a_pattern_may_bind(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for g in [(1, 2), (2, 1), (1, 2), (1, 1), (3, 1), (7, 2)]:
        check(fn, np.array([1.0, -2.0, 3.0]), g, compiled=compiled)
