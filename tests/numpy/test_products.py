"""Tests matrix products that call NumPy's own routines: the same bits for all strides."""

import itertools
import warnings

import numpy as np
import pytest

from cinductor import _core, compile
from cinductor.numpy import surface

surface.load()
SIZES = (0, 1, 2, 7, 33)
LAYOUTS = {
    "rows": lambda x, m, n: x[:m, :n],
    "steps": lambda x, m, n: x[: 2 * m : 2, : 2 * n : 2],
    "columns": lambda x, m, n: np.asfortranarray(x)[:m, :n],
    "backwards": lambda x, m, n: x[:m, :n][::-1, ::-1],
    "dense": lambda x, m, n: x[:m, :n].copy(),
}


def traced(function, *arrays):
    """The result of the traced function's program."""
    tracer = _core.Tracer("f", options={}, backend="interp")
    result = function(*[tracer.array(a, k) for k, a in enumerate(arrays)])
    tracer.flush()
    assert not tracer.breaks
    return result.materialise()


def operands(dtype, layout):
    """Pairs of arrays that a product accepts."""
    rng = np.random.default_rng(5)
    for m, k, n in itertools.product(SIZES, repeat=3):
        a, b = (3 * rng.standard_normal((2 * i + 2, 2 * j + 2)) for i, j in ((m, k), (k, n)))
        if np.dtype(dtype).kind == "c":
            a, b = a + 1j * a[::-1], b - 1j * b[:, ::-1]
        a, b = a.astype(dtype), b.astype(dtype)
        yield LAYOUTS[layout](a, m, k), LAYOUTS[layout](b, k, n)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "c8", "i8", "u1", "?"])
def test_bits(dtype, layout):
    """Each shape with its strides separately: BLAS may compute a row differently for another number of rows."""
    met = set()
    for a, b in operands(dtype, layout):
        cases = [(np.matmul, a, b)]
        if a.shape[0]:
            cases += [(np.matmul, a[0], b), (np.dot, a[-1], b)]
        if b.shape[1]:
            cases += [(np.matmul, a, b[:, 0]), (np.dot, a, b[:, -1])]
        if a.shape[0] and b.shape[1]:
            cases += [(f, a[0], b[:, 0]) for f in (np.matmul, np.dot, np.inner, np.vdot)]
        for function, x, y in cases:
            case = function, x.shape, x.strides, y.shape, y.strides
            if case in met:
                continue
            met.add(case)
            got, want = traced(function, x, y), function(x, y)
            assert got.dtype == want.dtype and got.shape == want.shape
            assert got.tobytes() == want.tobytes(), (function, x.shape, y.shape, x.strides, y.strides)


def test_a_product_that_overflows_warns():
    """As in NumPy: matmul checks the float flags, dot does not."""
    x = np.array([1e200, 1e200])

    def both(a):
        return a @ a, np.dot(a, a)

    compiled = compile(both, backend="interp")
    for _ in range(3):
        with warnings.catch_warnings(record=True) as want:
            warnings.simplefilter("always")
            both(x)
        with warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            compiled(x)
        assert [str(w.message) for w in got] == [str(w.message) for w in want]
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="matmul"):
            compiled(x)
