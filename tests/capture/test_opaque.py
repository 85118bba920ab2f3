"""Tests library functions without a row in the tables. The first call records the types of their results, so that
later captures include them.
"""

import random

import numpy as np
import pytest
from numpy.polynomial import hermite, legendre

import cinductor
from cinductor.capture.calls import functions as opaque
from cinductor.testing import assert_same, outcome

X, C = np.linspace(-1.0, 1.0, 7), np.array([1.0, -2.0, 0.5])


def values(x, c):
    return legendre.legval(x, c) * 2 + hermite.hermval(x, c)


def constants_alone(x):
    nodes, weights = legendre.leggauss(8)
    return (nodes * weights).sum() + x


def in_a_loop(x, c):
    for _ in range(20):
        x = legendre.legval(x, c) * 0.1
    return x


def between_writes(x, c):
    x[0] = 5.0
    y = legendre.legval(x, c)
    x[1] = 7.0
    return y


def in_columns(x):
    return legendre.legvander(x, 3) + 1


@pytest.mark.parametrize(
    "fn, args",
    [
        (values, (X, C)),
        (constants_alone, (2.0,)),
        (in_a_loop, (X, C)),
        (between_writes, (X, C)),
        (in_columns, (X,)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_whole_from_the_second_capture_on(fn, args):
    opaque._results.clear()
    compiled = cinductor.compile(fn, backend="interp")
    for k in range(4):
        mine, theirs = ([np.copy(a) if np.ndim(a) else a for a in args] for _ in range(2))
        assert_same(compiled(*mine), fn(*theirs))
        assert_same(mine, theirs)
        assert bool(compiled.specializations) == (k > 0)
    assert cinductor.explain(compiled, *args).breaks == []


def test_another_shape_is_another_call():
    compiled = cinductor.compile(values, backend="interp")
    for n in (3, 3, 5, 5, 9, 9, 4, 4):
        x = np.linspace(0, 1, n)
        np.testing.assert_array_equal(compiled(x, C), values(x, C))


def test_what_returns_now_this_now_that_is_the_functions_own(monkeypatch):
    def changing(x):
        return x[x > 0] if x[0] > 0 else x * 1j

    changing.__module__ = "scipy.special"
    monkeypatch.setitem(globals(), "changing", changing)

    def fn(x):
        x[1] = 3.0
        return changing(x) * 2

    compiled = cinductor.compile(fn, backend="interp")
    for first in (1.0, 2.0, -1.0, 3.0, -2.0, -3.0, -4.0, 1.0):
        mine, theirs = X.copy(), X.copy()
        mine[0] = theirs[0] = first
        assert_same(compiled(mine), fn(theirs))
        assert_same(mine, theirs)


def test_what_is_written_to_or_called_back_stays_a_break(monkeypatch):
    def shared(x):
        return x[1:]

    def writes(x, output):
        output[...] = x

    def calls(x, f):
        return f(x)

    def overwrites(x):
        x[0] = 7.0
        return x + 1

    def of_several(arrays):
        return arrays[0][1:]

    for fn in (shared, writes, calls, overwrites, of_several):
        fn.__module__ = "scipy.ndimage"
        monkeypatch.setitem(globals(), fn.__name__, fn)

    def first(x):
        y = shared(x)
        y[0] = 9.0
        return y

    def second(x):
        y = np.zeros_like(x)
        writes(x, output=y)
        return y

    def third(x):
        return calls(x, lambda v: v * 2)

    def fourth(x):
        return overwrites(x) * x

    def fifth(x):
        y = of_several((x, x * 2))
        y[0] = 9.0
        return y + x[1]

    for fn in (first, second, third, fourth, fifth):
        compiled = cinductor.compile(fn, backend="interp")
        for _ in range(3):
            mine, theirs = X.copy(), X.copy()
            assert_same(compiled(mine), fn(theirs))
            assert_same(mine, theirs)
        assert not compiled.specializations


@pytest.mark.parametrize("module", [np.random, random], ids=lambda m: m.__name__)
def test_what_draws_from_a_global_generator_stays_a_break(module, monkeypatch):
    """If a later check fails, the original function runs, and must not draw again."""

    def drawing(x):
        return x * module.random()

    drawing.__module__ = "scipy.linalg"
    monkeypatch.setitem(globals(), "drawing", drawing)

    def fn(x):
        y = drawing(x)
        z = np.zeros(3)
        z[int(x[0])] = 1.0
        return y + z.sum()

    compiled = cinductor.compile(fn, backend="interp")
    for first in (0.0, 1.0, 2.0, 7.0, 1.0):
        seen = []
        for run in (fn, compiled):
            module.seed(3)
            result, error = outcome(run, [np.array([first, 0.5, 0.25])])
            seen.append((result, repr(error), module.random()))
        assert_same(seen[1], seen[0])


def test_what_is_raised_is_the_librarys():
    linalg = pytest.importorskip("scipy.linalg", reason="SciPy is not installed")

    def fn(x):
        return linalg.cholesky(x) * 2

    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.eye(3)), fn(np.eye(3)))
    with pytest.raises(np.linalg.LinAlgError):
        compiled(-np.eye(3))
    assert compiled.specializations
