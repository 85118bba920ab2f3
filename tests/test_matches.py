"""`match` on values that data decide: captured as the `if` that it is, and Python's where it asks for more."""

import ast

import numpy as np
import pytest

import cinductor
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
    """A name that a failed guard leaves is looked at: Python's."""
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
    ids=str,
)
def test_is_captured_whole(fn, more):
    assert not cinductor.explain(fn, np.array([1.0, 5, 2]), *more).breaks


def test_what_stays_a_match():
    for fn in (bound_by_a_guard, by_class):
        tree = ast.parse(cinductor.print_rewritten(fn))
        assert any(isinstance(node, ast.Match) for node in ast.walk(tree))
    tree = ast.parse(cinductor.print_rewritten(by_data))
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))
