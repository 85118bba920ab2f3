"""Tests sum() of Python floats, which uses compensated summation from Python 3.12 on."""

import math
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest

import cinductor


def neumaier(items, start=0):
    """sum() as Python 3.12 and later compute it."""
    items = list(items)
    while items and type(start) is not float:
        start = start + items.pop(0)
    carry = 0.0
    while items and type(items[0]) in (float, int, bool):
        x = items.pop(0)
        new = start + x
        if type(x) is float:
            carry += (start - new) + x if abs(start) >= abs(x) else (x - new) + start
        start = new
    if carry and math.isfinite(carry):
        start += carry
    for x in items:
        start = start + x
    return start


@pytest.mark.parametrize("backend", ("c", "interp"))
def test_sums_of_floats(backend, monkeypatch):
    """Python 3.12 and later compensate the rounding error of each addition."""
    import cinductor.capture.session  # before a part of its table
    from cinductor.capture.calls import numbers as mathematics

    monkeypatch.setattr(mathematics, "ADDS_WITH_CARE", True)
    monkeypatch.setattr(mathematics, "ADDS_INTS_WITH_CARE", False)

    def sums(a, b, c, n, x):
        return sum([a, b, c]), sum([a, n, b, -a, True, c]), sum((a, x[0], b, c), 0.5), sum([n, n]), sum([a * c] * 9, n), sum([-0.0, a * 0])

    def expected(a, b, c, n, x):
        every = [a, b, c], [a, n, b, -a, True, c], (a, x[0], b, c), [n, n], [a * c] * 9, [-0.0, a * 0]
        return tuple(neumaier(v, s) for v, s in zip(every, (0, 0, 0.5, 0, n, 0), strict=True))

    fn = cinductor.compile(sums, backend=backend, fullgraph=True)
    x = np.array([0.1, 2.0])
    inf = float("inf")
    for a, b, c in ((1e16, 1.5, 0.1), (0.1, 0.2, 0.3), (1e308, 1e308, -1e308), (inf, 1.0, -2.5), (-1.0, 1e-30, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, want = fn(a, b, c, 3, x), expected(a, b, c, 3, x)
        for p, q in zip(got, want, strict=True):
            assert type(p) is type(q) and (p == q or (p != p and q != q)) and math.copysign(1, p) == math.copysign(1, q)
    if sys.version_info >= (3, 12):
        assert sum([0.1] * 10) == neumaier([0.1] * 10)


def lists(a, n, z, x):
    return (
        sum([a, n, -a, n]),
        sum([a, n, n, -a, True, 0.1], 0.25),
        sum([z, a, n, -z, a, z]),
        sum([n, a, z, n, -a, -z, x[0], n], 0.5),
        sum([a, z, x[0], -z, z * 0.1]),
    )


def generators(a, n, z, x):
    numbers = [a, -1e16, n, 0.1, a]
    return (
        sum(v * n for v in numbers),
        sum(v * z for v in numbers),
        sum(z * k for k in range(n)),
        sum(z * k for k in range(n) if k > 2),
        sum(complex(x[k] * 1e16, x[k]) - z for k in range(len(x))),
        sum(k if k % 2 else a for k in range(n)),
        sum(a * k if k % 3 else k for k in range(n)),
        sum((k * 10**8 if k % 3 else a for k in range(n)), 0.25),
        sum([(k, a, z, x[1])[k % 4] for k in range(n)]),
    )


@pytest.mark.parametrize("fn", (lists, generators), ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", ("c", "interp"))
def test_sums_of_numbers_of_three_types(fn, backend):
    """Ints among floats are compensated since 3.14, and so are the parts of complex numbers."""
    compiled = cinductor.compile(fn, backend=backend)
    x = np.array([0.1, 2.0, 1e-3, -0.1])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a in (1e16, 0.1, -0.0, 1e308, math.inf):
            for n, z in ((13, 0.1 + 1e16j), (2**53 + 1, 1e16 - 0.1j), (0, complex(-0.0, -0.0))):
                if fn is generators:
                    n = n % 29
                got, want = compiled(a, n, z, x), fn(a, n, z, x)
                assert [(type(v), repr(v)) for v in got] == [(type(v), repr(v)) for v in want]


def test_sums_that_meet_another_type_go_on_without_care():
    """After an item of another type Python no longer compensates, even if floats follow."""

    def program(a, x):
        half = Fraction(1, 2)
        return (
            sum([1, half, a, a * 1e16, -a * 1e16]),
            sum([1.5, half, a, a * 1e16, -a * 1e16]),
            sum(v for v in [1, half, a, a * 1e16, -a * 1e16]),
            sum(v for v in [1.5, half, a, a * 1e16, -a * 1e16]),
            sum([1.5, a * 1j, half, a * 1e16, 0.1, -a * 1e16]),
            sum([1.5, a * 1j, x[0], 1e16, 0.1, -1e16]),
            sum(v for v in [1.5, a * 1j, x[0], 1e16, 0.1, -1e16]),
        )

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(2):
        assert repr(compiled(0.1, np.ones(2))) == repr(program(0.1, np.ones(2)))


@pytest.mark.parametrize("shape", [(1, 300), (31, 70), (33, 1), (67, 1100), (203, 33)], ids=str)
def test_columns_run_side_by_side(shape):
    """Several reductions run in parallel, with elements between them and remaining rows: NumPy's bits."""

    def columns(x, w):
        centre = x - x.mean(0)
        return x.sum(0), x.max(0), (centre * centre).sum(0) + w, np.abs(x).min(0), (x > w).sum(0), x.argmax(0)

    rng = np.random.default_rng(sum(shape))
    x, w = rng.standard_normal(shape), rng.standard_normal(shape[1])
    x[0, 0] = -0.0
    for dynamic in (False, True):
        compiled = cinductor.compile(columns, dynamic=dynamic, options={"verify": True, "threads": 2})
        for got, want in zip(compiled(x, w), columns(x, w), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("shape, dtype", [((40, 70, 3), "f8"), ((33, 64, 64), "f4"), ((64, 203, 20), "f8"), ((50, 130, 129), "f4")], ids=str)
def test_rows_of_all_pairs_are_in_lanes(shape, dtype):
    """Rows that other points read again are transposed for a tile of points: NumPy's bits, also beyond whole tiles."""

    def pairs(x, y):
        apart = x[:, None, :] - y
        return np.exp(-np.sum(apart * apart, axis=-1)), np.abs(apart).max(-1), (x[:, None, :] * y).sum(-1) + x[:, :1]

    rng = np.random.default_rng(sum(shape))
    x, y = rng.standard_normal((shape[0], shape[2])).astype(dtype), rng.standard_normal(shape[1:]).astype(dtype)
    x[0], y[1], y[2, 0] = -0.0, 0.0, np.nan
    for dynamic, backend in ((False, "c"), (True, "c"), (False, "stencil")):
        compiled = cinductor.compile(pairs, dynamic=dynamic, backend=backend, options={"verify": True, "threads": 2})
        for got, want in zip(compiled(x, y), pairs(x, y), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
