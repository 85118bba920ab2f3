"""Tests kernels that call NumPy's ufunc loops on strips, with fused code around the calls, for every length and
layout.
"""

import subprocess
import sys

import numpy as np
import pytest
from test_orders import assert_same_bits

import cinductor
from cinductor import _core

EXACT = {"numerics": "exact", "verify": True}
pytestmark = pytest.mark.filterwarnings("ignore")


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def norm(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + np.exp(x).mean(axis=0))


def scale(x):
    y = np.tanh(x)
    x *= np.log1p(y * y)
    return y


def at_masks(x):
    y = np.zeros_like(x)
    y[x < 0] = np.abs(x[x < 0]) ** 2.4
    y[x > 1] += np.log(x[x > 1]) * x[x > 1]
    return y


ROWS = {
    "one": lambda x: np.exp(x),
    "chain": lambda x: np.log(np.exp(x) + 1) * np.sin(x),
    "shared": lambda x: (np.exp(x) + x, np.exp(x) * 2, x - 1),
    "of a scalar": lambda x: np.exp(x) * np.exp(x[0, 0]) + np.arctan2(x, x[0, 0]),
    "of a row": lambda x: np.arctan2(np.exp(x[0]), x) + np.exp(x[0]),
    "of a column": lambda x: np.exp(x) * np.exp(x[:, :1]),
    "sum": lambda x: np.exp(x).sum(),
    "sum of rows": lambda x: np.exp(x * 0.5).sum(axis=1),
    "sum of columns": lambda x: np.exp(x).sum(axis=0) + np.log(np.abs(x)).max(axis=0),
    "sums beside each other": lambda x: (np.exp(x).sum(axis=1), np.sin(x).sum(axis=1), np.cos(x)),
    "mean of all": lambda x: (np.tanh(x) * x).mean(),
    "softmax": softmax,
    "of softmax": lambda x: np.log(softmax(x)).sum(axis=0),
    "norm": norm,
    "chosen": lambda x: np.where(x > 0, np.exp(x), np.expm1(x)),
    "power": lambda x: np.abs(x) ** 2.5 + np.exp(x) ** 3,
    "transposed": lambda x: np.exp(x.T) + np.log(np.abs(x)).T,
    "turned around": lambda x: np.exp(x[::-1]) + np.exp(x)[:, ::-1],
    "every second": lambda x: np.exp(x[:, ::2]) + np.cbrt(x[:, ::2]),
    "scan": lambda x: np.exp(x).cumsum(axis=1) + np.sin(x).cumsum(axis=0),
    "positions": lambda x: (np.sin(x).argmax(axis=1), np.exp(x).argmin()),
    "halves": lambda x: np.exp(x.astype(np.float16)).astype(np.float64) + np.exp(x),
    "singles beside doubles": lambda x: np.exp(x.astype(np.float32)) * np.exp(x),
    "complex": lambda x: np.exp(x + 1j * x).real * np.abs(np.log(x + 2j)),
    "absolute": lambda x: (np.abs(x + 1j * x.mean()), np.abs(x[::2] - 2j).sum(axis=0), np.abs((x.T + 1j) * x[0, 0]) > 2),
    "packed": lambda x: np.exp(x)[x > 0],
    "stored where a mask says": at_masks,
    "stored at given positions": lambda x: np.add.at(y := np.zeros(5), (np.abs(x) % 5).astype(int), np.exp(x)) or y,
    "mended argument": scale,
    "logic": lambda x: (np.exp(x) > 1) | (np.sin(x) < 0),
    "of sums": lambda x: np.exp(-(x * x).sum(axis=1)) * x.sum(axis=1),
    "of differences": lambda x: np.exp(-((x[:9, None] - x[None, :9]) ** 2).sum(axis=-1)),
    "of some sums": lambda x: np.log(np.where(x.sum(axis=1) > 0, x.max(axis=1), np.exp(x).sum(axis=1))),
    "integers": lambda x: np.exp(x.astype(np.int64)) + np.log1p(np.abs(x).astype(np.int8)),
}
SHAPES = [(2, 1), (1, 5), (7, 64), (3, 1023), (2, 1024), (33, 41), (5, 2051), (129, 3), (0, 4), (1030, 9)]


def values(shape):
    rng = np.random.default_rng(shape[0] * shape[1])
    return rng.standard_normal(shape) * 3


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strips(name, dynamic):
    function = ROWS[name]
    if not dynamic:
        compiled = cinductor.compile(function, backend="c", dynamic=False, options=EXACT)
    for shape in SHAPES if dynamic else [(6, 1300)]:
        if dynamic and shape in (SHAPES[0], (0, 4)):
            compiled = cinductor.compile(function, backend="c", dynamic=True, options=EXACT)
        x, y = values(shape), values(shape)
        try:
            want = function(x)
        except (ValueError, IndexError) as error:  # an empty array
            with pytest.raises(type(error)):
                compiled(y)
            continue
        got = compiled(y)
        single = not isinstance(want, tuple)
        for g, w in zip([got] if single else got, [want] if single else want, strict=True):
            assert_same_bits(g, w)
        assert_same_bits(y, x)


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_side_by_side(threads):
    x = values((700, 1500))
    for function in (ROWS["sum"], ROWS["softmax"], ROWS["sum of columns"], ROWS["chain"]):
        compiled = cinductor.compile(function, backend="c", options={**EXACT, "threads": threads})
        assert_same_bits(compiled(x), function(x))


def test_warnings_are_numpys():
    compiled = cinductor.compile(lambda x: np.log(x) + np.exp(x) * 0, backend="c", options=EXACT)
    for value, word in ((0.0, "divide by zero"), (-1.0, "invalid"), (800.0, "overflow")):
        x = np.ones(2000)
        x[1500] = value
        for _ in range(2):
            with pytest.warns(RuntimeWarning, match=word):
                compiled(x)



REPLACED = '''
import ctypes
import numpy as np

class Ufunc(ctypes.Structure):
    """As far as its loops."""
    _fields_ = [*((name, ctypes.c_void_p) for name in ("count", "type", "nin", "nargs")), ("loops", ctypes.POINTER(ctypes.c_void_p))]

SIZES = ctypes.POINTER(ctypes.c_ssize_t)

def replace(ufunc, last):
    """By a loop that gives 1000 more than the first operand."""
    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), SIZES, SIZES, ctypes.c_void_p)
    def loop(args, counts, steps, data):
        for k in range(counts[0]):
            first = ctypes.c_double.from_address(args[0] + k * steps[0]).value
            ctypes.c_double.from_address(args[last] + k * steps[last]).value = first + 1000

    for k, types in enumerate(ufunc.types):
        if set(types) == set("d->"):
            Ufunc.from_address(id(ufunc)).loops[k] = ctypes.cast(loop, ctypes.c_void_p).value
    return loop

kept = [replace(np.exp, 1), replace(np.sin, 1), replace(np.add, 2)]
import cinductor

def functions(x):
    return np.exp(x) * 2, np.sin(x[1:])

def sums(x):
    return x + x, np.add.reduce(x), x - 1, np.multiply(x, x).sum()

x = np.arange(9.0)
assert np.exp(x)[3] == np.sin(x)[3] == (x + x)[3] == 1003
for fn in functions, sums:
    for numerics in "exact", "numpy", "close":
        for a, b in zip(cinductor.compile(fn, options={"numerics": numerics})(x), fn(x)):
            assert np.array_equal(a, b), (fn, numerics, a, b)
assert not cinductor.explain(functions, x).breaks
'''


def test_loops_that_somebody_replaced():
    """If a NumPy loop was replaced, the replacement runs instead of cinductor's own function."""
    done = subprocess.run([sys.executable, "-c", REPLACED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_a_function_without_a_loop_for_complex_numbers_is_refused(dtype):
    """A graph's text may say that NumPy's loop computes any function; each either has one, or the text is refused."""
    types = {"c64": np.complex64, "c128": np.complex128}
    runs = 0
    for op in (row[0] for row in _core.ops() if hasattr(np, row[0])):
        loop = getattr(np, op)
        inputs = [np.ones(4, types[dtype])] * getattr(loop, "nin", 0)
        names = ", ".join(f"in{k}" for k in range(len(inputs)))
        text = f"graph f({', '.join(f'in{k}: {dtype}[4]' for k in range(len(inputs)))}) {{\n  %0: {dtype}[4] = {op}({names}, by=numpy)\n  return %0\n}}\n"
        try:
            (made,) = _core.run_program(_core.compile_graph(text), inputs)
        except (SyntaxError, TypeError, ValueError):
            continue
        assert isinstance(loop, np.ufunc) and f"{np.dtype(types[dtype]).char * loop.nin}->" in " ".join(loop.types), op
        np.testing.assert_array_equal(made, loop(*inputs))
        runs += 1
    assert runs > 10
