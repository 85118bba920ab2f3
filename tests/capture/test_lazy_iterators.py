"""Tests that iterators which leave a call compute their items when they are asked for them.

What the items come from is changed after the call, or between its pieces; the items must be those of Python.
"""

import itertools

import numpy as np
import pytest
from test_hidden_state import Description

import cinductor

LEFT = []


def returned(x):
    LEFT.append(1.0)
    return (v * 2 for v in x), x


def of_a_list(x):
    o = [x.sum(), 2.0]
    LEFT.append(1.0)
    return (v + 1 for v in o), o


def with_a_test(x):
    s = x * 2
    LEFT.append(v for v in s if v > 0.5)
    return s


def with_a_cell(x):
    k = [x.sum()]
    LEFT.append(v * k[0] for v in x)
    return k


def rebound(x):
    k = x.sum()
    LEFT.append(v * k for v in x)
    k = k * 2
    return x


def unpacked(x):
    s = x * 2
    LEFT.append((a - b for a, b in zip(s, x)))  # noqa: B905
    return s


def begun(x):
    s = x * 2
    g = (v for v in s)
    t = next(g)
    LEFT.append(g)
    s += t
    LEFT.append(next(g))
    return s


def nested(x):
    o = [1.0]
    LEFT.append(v + w for v in o for w in x)
    o.append(2.0)
    return o


def of_lambdas(x):
    s = x * 2
    LEFT.append(f() for f in ((lambda: v) for v in s))  # noqa: B023
    return s


def bound_outside(x):
    g = ((y := v) * 2 for v in x)
    LEFT.append(g)
    y = x.sum()
    LEFT.append(next(g))
    LEFT.append(y)
    return x


def bound_before(x):
    y = 0.0
    g = ((y := v) * 2 for v in x)
    LEFT.append(g)
    next(g)
    return x * y


def of_a_function(x):
    s = [x * 2, x * 3]

    def later(k):
        return ((v + k).sum() for v in s)

    LEFT.append(later(x[0]))
    return s


def of_steps(x):
    s = x * 2

    def steps(k):
        for v in s:
            yield v + k

    g = steps(x[0])
    LEFT.append(next(g))
    LEFT.append(g)
    return s


def in_a_loop(x):
    s = x * 2
    g = (v * i for i, v in enumerate(s))
    LEFT.append(g)
    for v in s:
        if v > 0.5:
            s[0] += 1
            LEFT.append(next(g))
    return s


def chained(x):
    o = {}
    LEFT.append(1.0)
    return itertools.chain(o, [1.0]), o


def chained_begun(x):
    o = {1.0: x.sum(), 2.0: 3.0}
    it = itertools.chain(o.values(), {4.0})
    LEFT.append(next(it))
    return it, o


def filled_after(x):
    o = set()
    it = itertools.chain(o, [1.0])
    for v in x:
        o.add(v)
    LEFT.append(next(it, 7.0))
    return o


def filled_by_a_function(x):
    def made(o={}):  # noqa: B006
        return o

    it = itertools.chain(made(), [1.0])
    for v in x:
        made()[v] = v
    LEFT.append(next(it, 7.0))
    return made()


PROGRAMS = (
    *(returned, of_a_list, with_a_test, with_a_cell, rebound, unpacked, begun, nested, of_lambdas, bound_outside, bound_before),
    *(of_a_function, of_steps, in_a_loop, chained, chained_begun, filled_after, filled_by_a_function),
)


def change(value):
    """Change a container or an array that the items of an iterator come from."""
    if type(value) is np.ndarray:
        value[:] = 9.0
    elif type(value) is list:
        value[0] = value[0] * 3
        value.append(value[0])
    elif type(value) is dict:
        value[1.0] = 8.0


def effects(fn, x):
    """The result of a call and what it leaves; items of iterators are taken after their sources have changed."""
    LEFT.clear()
    result = fn(x)
    parts = [*(result if type(result) is tuple else (result,)), *LEFT]
    for part in (x, *parts):
        change(part)
    kinds = [type(part).__name__ for part in parts]
    try:
        items = [list(part) if hasattr(part, "__next__") else part for part in parts]
    except RuntimeError as error:  # a dict has changed its size
        items = str(error)
    return kinds, Description().of(items)


@pytest.mark.parametrize("fn", PROGRAMS)
@pytest.mark.filterwarnings("ignore::cinductor.CinductorWarning")
def test_items_are_computed_late(fn, pieces_are_compiled):
    compiled = cinductor.compile(fn, backend="interp")
    for n in (4, 5, 3, 5):
        x = np.random.default_rng(n).random(n)
        assert effects(compiled, x.copy()) == effects(fn, x.copy())
