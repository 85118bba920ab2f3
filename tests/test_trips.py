"""Tests temporal blocking: two iterations of a loop that makes a large array from another are fused. Here "large" is
one byte.
"""

import numpy as np
import pytest

import cinductor

EVERY = {"choices": "trip_bytes=1,frame_bytes=1"}


def jacobi(x, n):
    for _ in range(n):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x = y
    return x


def heat(x, n):
    for t in range(n):
        y = x.copy()
        y[1:-1] = x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) + t
        x = y
    return x


def skewed(x, n):
    for _ in range(n):
        y = np.zeros_like(x)
        y[2:-1, 1:-3] = x[1:-2, :-4] * 0.5 + x[3:, 4:] - x[:-3, 2:-2]
        x = y
    return x


def around(x, n):
    """An element at one end depends on the other end, which is too far away: not fused."""
    for _ in range(n):
        y = np.empty_like(x)
        y[1:] = x[:-1] * 2
        y[0] = x[-1]
        x = y
    return x


def seen(x, n):
    """Another value reads the result of each iteration: not fused."""
    total = 0.0
    for _ in range(n):
        y = x.copy()
        y[1:-1] = (x[2:] + x[:-2]) * 0.5
        total = total + y[1]
        x = y
    return x, total


def dear(x, n):
    """Functions would be computed twice: not fused."""
    for _ in range(n):
        y = x.copy()
        y[1:-1] = np.exp(-x[2:]) + x[:-2]
        x = y
    return x


def lattice(x, n):
    for _ in range(n):
        y = x.copy()
        y[1:-1, 1:-1, 1:] = x[:-2, 1:-1, 1:] - x[1:-1, 2:, :-1]
        x = y
    return x


CASES = [
    (jacobi, (9, 12), True),
    (jacobi, (5, 4), True),
    (jacobi, (3, 3), True),
    (heat, (20,), True),
    (heat, (3, 7), True),
    (skewed, (9, 12), True),
    (around, (30,), False),
    (seen, (12,), False),
    (dear, (12,), False),
    (lattice, (5, 6, 4), True),
]


@pytest.mark.parametrize(("function", "shape", "is_composed"), CASES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_two_trips_are_one(function, shape, is_composed, order):
    """Equal bits, for even and odd numbers of iterations."""
    x = np.asarray(np.random.default_rng(3).random(shape), order=order)
    for n in (18, 19):
        compiled = cinductor.compile(lambda a, n=n: function(a, n), dynamic=False, backend="interp", options=EVERY)
        given = x.copy(order="K")
        got, want = compiled(given), function(x, n)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_array_equal(g, w, strict=True)
        np.testing.assert_array_equal(given, x)
        report = cinductor.explain(compiled, x)
        assert (f"<{n} " not in report.procs + report.wrapper) == is_composed


def test_what_trips_read_is_written_behind_them():
    def weighted(x, w):
        y = x.copy()
        for _ in range(20):
            z = y.copy()
            z[1:-1] = (y[2:] + y[:-2]) * w[1:-1]
            y = z
        w[:] = y

    x, w = np.random.default_rng(4).random((2, 50))
    got, want = w.copy(), w.copy()
    cinductor.compile(weighted, dynamic=False, backend="interp", options=EVERY)(x, got)
    weighted(x, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 20, 33])
def test_a_number_of_trips_that_varies(n):
    compiled = cinductor.compile(heat, dynamic=True, backend="interp", options=EVERY)
    for k in (n, 17):
        np.testing.assert_array_equal(compiled(np.arange(9.0) ** 2, k), heat(np.arange(9.0) ** 2, k))
