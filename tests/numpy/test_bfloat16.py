"""Runs bfloat16 of ml_dtypes through the op matrix: every ufunc, reduction and cast, against NumPy with the package's
loops.

Bits must be equal except for transcendental functions. These are computed in float32 within the same error bound
as the package's, and may round to a neighbour.
"""

import subprocess
import sys

import numpy as np
import pytest
from test_op_matrix import (
    ELEMENTWISE,
    FLOATS,
    TRANSCENDENTAL,
    as_tuple,
    quiet,
    special_values,
)

import cinductor

BACKENDS = ["c", "interp"]
ml_dtypes = pytest.importorskip("ml_dtypes")
BFLOAT = np.dtype(ml_dtypes.bfloat16)
LIMITS = [3.3895314e38, -3.3895314e38, 1.1754944e-38, 9.183550e-41, -9.183550e-41, 1.0078125, 256.0, 1e30]


def values_of(dtype, count=41):
    if dtype != BFLOAT:
        return special_values(dtype.char, count)
    return np.resize(np.array([*FLOATS, *LIMITS], np.float32).astype(BFLOAT), count)


def groups(arity):
    """Operands of each layout: bfloat16 with every dtype that NumPy promotes it with."""
    others = [np.dtype(c) for c in "?bBhilLefdF"]
    combinations = [(BFLOAT,)] if arity == 1 else [(BFLOAT, BFLOAT), *((BFLOAT, o) for o in others), *((o, BFLOAT) for o in others)]
    for dtypes in combinations:
        columns = [np.roll(values_of(d), 5 * k) for k, d in enumerate(dtypes)]
        yield columns
        yield [v[::-2] for v in columns]
        yield [v[:0] for v in columns]
        yield [np.resize(v, (5, 7)).T for v in columns]
        yield [np.array(v[3]) for v in columns]


def ordered(values):
    """Maps numbers to integers, so that adjacent values differ by one."""
    bits = np.asarray(values).view(np.uint16).astype(np.int32)
    return np.where(bits >= 0x8000, 0x8000 - bits, bits)


def assert_same(got, want, what, steps=0):
    assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape, f"{what}: {got!r} for {want!r}"
    if isinstance(want, np.ndarray) and want.size and want.dtype.kind != "c":  # extrema of complex numbers are library calls
        assert got.strides == want.strides, what
    if want.dtype == BFLOAT and steps == 0:
        same = (np.asarray(got).view(np.uint16) == np.asarray(want).view(np.uint16)) | (np.isnan(got) & np.isnan(want))
    elif want.dtype == BFLOAT:
        same = (np.abs(ordered(got) - ordered(want)) <= steps) | (np.isnan(got) & np.isnan(want))
    elif steps:
        same = np.isclose(got, want, rtol=1e-5, equal_nan=True)
    else:
        same = (got == want) | ((got != got) & (want != want))
    assert np.all(same), f"{what}: {np.asarray(got)[~np.asarray(same)][:4]} for {np.asarray(want)[~np.asarray(same)][:4]}"


def outcome(call, *args):
    try:
        return as_tuple(quiet(call, *args)), None
    except (TypeError, ValueError) as error:
        return (), type(error)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ufunc", ELEMENTWISE, ids=lambda f: f.__name__)
def test_ufunc(ufunc, backend):
    wanted = [(group, *outcome(ufunc, *group)) for group in groups(ufunc.nin)]
    legal = [(group, want) for group, want, error in wanted if error is None]

    def apply(groups):
        return [ufunc(*group) for group in groups]

    compiled = cinductor.compile(apply, backend=backend)
    legal = legal if backend == "interp" else legal[::2]  # compiling takes long, so every second one
    for start in range(0, len(legal), 30):
        part = legal[start : start + 30]
        got = quiet(compiled, [group for group, _ in part])
        for (group, want), g in zip(part, got, strict=True):
            what = f"{ufunc.__name__} {[f'{a.dtype}{a.shape}' for a in group]}"
            for one, other in zip(as_tuple(g), want, strict=True):
                assert_same(one, other, what, steps=ufunc.__name__ in TRANSCENDENTAL)
    for group, _, error in wanted:
        if error is not None:
            assert outcome(cinductor.compile(lambda *a: ufunc(*a), backend=backend), *group) == ((), error)
            break


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "cumsum", "cumprod"])
def test_reduction(name, backend):
    function = getattr(np, name)
    rng = np.random.default_rng(7)
    arrays = [values_of(BFLOAT), values_of(BFLOAT)[:1], rng.standard_normal((7, 300)).astype(BFLOAT)]
    arrays += [rng.standard_normal((33, 40)).astype(BFLOAT).T, rng.standard_normal(20_000).astype(BFLOAT)]
    cases = [(a, axis) for a in arrays for axis in (None, *range(-1, a.ndim))]

    def apply(arrays):
        return [function(a, axis=axis) for a, (_, axis) in zip(arrays, cases, strict=True)]

    inputs = [a for a, _ in cases]
    for (a, axis), g, w in zip(cases, quiet(cinductor.compile(apply, backend=backend), inputs), quiet(apply, inputs), strict=True):
        assert_same(g, w, f"{name} {a.shape} {axis}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_cast(backend):
    chars = "?bhilBHILefdFD"
    everything = np.arange(65536, dtype=np.uint16).view(BFLOAT)  # only values that the target dtype can hold; others are undefined in C
    ties = np.array([1 + 2**-8, 1 + 2**-8 + 2**-40, 1 + 3 * 2**-8, 2.0**24 + 2**16 + 1, 1e-40, 3.4e38, 1e39], np.float64)

    def there(x):
        return [x.astype(c) for c in chars]

    def back(arrays):
        return [a.astype(BFLOAT) for a in arrays]

    def near(x):
        return [a.astype(BFLOAT) for a in (x, x.astype("f"), x.astype("D"), x.astype("l"), x.astype("e"))]

    for function, argument in ((there, everything), (back, quiet(there, everything)), (near, ties)):
        got, want = quiet(cinductor.compile(function, backend=backend), argument), quiet(function, argument)
        for g, w in zip(got, want, strict=True):
            held = everything.astype("f")
            held = (np.abs(held) < 2.0**31) & ((held > -1) | (w.dtype.kind == "i"))
            fits = held if function is there and w.dtype.kind in "iu" else slice(None)
            assert_same(g[fits], w[fits], f"{function.__name__} {w.dtype}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_programs(backend):
    def fn(x, y):
        z = x * y + 1
        z[z > 3] = 0
        y += x
        return np.where(z > y, z, -y), z.sum(axis=0), x * 2.5, x[1:] - x[:-1], np.concatenate([x, y]), x.item(0, 0), z.dtype == x.dtype

    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((30, 50)).astype(BFLOAT) for _ in range(2))
    mine, theirs = y.copy(), y.copy()
    compiled = cinductor.compile(fn, backend=backend)
    for g, w in zip(compiled(x, mine), fn(x, theirs), strict=True):
        assert_same(np.asarray(g), np.asarray(w), "program")
    assert_same(mine, theirs, "argument")


def test_it_is_captured_whole():
    x = np.ones(100, BFLOAT)
    told = cinductor.explain(lambda x, y: np.sqrt(x * y).sum(), x, x)
    assert not told.breaks and "bf16" in told.loops and "ci_round_bfloat_bf16" in told.source


def test_never_imported_without_need():
    script = "import sys, numpy as np, cinductor; cinductor.compile(lambda x: np.dot(x, x) + x.astype('e'))(np.ones(9)); sys.exit('ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 0.125, -3.0, 1e30])
def test_scalars(value):
    """A scalar of the closure, one that the function makes, and an argument."""
    kept, x = BFLOAT.type(value), values_of(BFLOAT)
    for function in (lambda a, s: a + kept, lambda a, s: a + a.dtype.type(value), lambda a, s: a + s):
        assert_same(quiet(cinductor.compile(function), x, kept), quiet(function, x, kept), value)
