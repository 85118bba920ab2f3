"""Tests rows of symbolic length that are short at run time: each vector lane then processes its own row.

Bits must equal those with a known length and those of the interpreter. The lengths are around the thresholds at
which a kernel changes its variant.
"""

import numpy as np
import pytest

import cinductor

LENGTHS = [1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 200, 300, 1000]
COUNTS = [1, 63, 64, 65, 200]  # rows; a tile has 64


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)


FUNCTIONS = {
    "max": lambda x: x.max(axis=-1),
    "extremes": lambda x: (x.max(axis=-1), x.min(axis=-1)),
    "arguments": lambda x: (x.argmax(axis=-1), np.argmin(x, axis=-1)),
    "sum": lambda x: x.sum(axis=-1),
    "product": lambda x: np.prod(1 + x / 16, axis=-1),
    "mean": lambda x: x.mean(axis=-1),
    "centred": lambda x: x - x.mean(axis=-1, keepdims=True),
    "norm": lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
    "softmax": softmax,
    "layernorm": layernorm,
    "reversed": lambda x: x[..., ::-1] - x.max(axis=-1, keepdims=True),
    "scanned": lambda x: np.cumsum(x, axis=-1) / x.sum(axis=-1, keepdims=True),
    "neighbours": lambda x: (np.abs(x) + x.sum(axis=-1, keepdims=True)).max(axis=-1),
    "any": lambda x: ((x > 0).any(axis=-1), (x > 0).all(axis=-1), (x > 0).sum(axis=-1)),
}


def same(got, want, what):
    got, want = (a if isinstance(a, tuple) else (a,) for a in (got, want))
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape and g.strides == w.strides, what
        np.testing.assert_array_equal(g, w, err_msg=str(what))
        if g.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w), err_msg=str(what))


def close(got, want, what, fn=None):
    """NumPy's bits; 4 ULP per call if the compiled function uses one of cinductor's own."""
    is_own = fn is not None and any(s.program.approximate for s in fn.specializations)
    got, want = (a if isinstance(a, tuple) else (a,) for a in (got, want))
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape, what
        if is_own:
            np.testing.assert_allclose(g, w, rtol=8 * np.finfo(w.dtype).eps, err_msg=str(what))
        else:
            np.testing.assert_array_equal(g, w, err_msg=str(what))


def rows(length, count, dtype, rng):
    if dtype == "bool":
        return rng.random((count, length)) < 0.7
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 9, (count, length)).astype(dtype)
    x = rng.standard_normal((count, length))
    return (x + 1j * rng.standard_normal(x.shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits(name, dtype):
    """With symbolic length, in the interpreter, and for some lengths with a constant length."""
    function, rng = FUNCTIONS[name], np.random.default_rng(1)
    symbolic = cinductor.compile(function, backend="c", dynamic=True)
    oracle = cinductor.compile(function, backend="interp", dynamic=True)
    for length in LENGTHS:
        for count in COUNTS if length <= 16 else (65,):
            x = rows(length, count, dtype, rng)
            got = symbolic(x)
            close(got, function(x), (length, count), symbolic)
            same(got, oracle(x), (length, count))
        if length in (2, 3, 8, 16, 33, 64):
            same(got, cinductor.compile(function, backend="c", dynamic=False)(x), length)


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", ["sum", "extremes", "arguments", "layernorm"])
def test_levels(name, level):
    function, rng = FUNCTIONS[name], np.random.default_rng(2)
    symbolic = cinductor.compile(function, backend="c", dynamic=True, options={"arch": level})
    oracle = cinductor.compile(function, backend="interp", dynamic=True)
    for length in LENGTHS:
        x = rows(length, 65, "f4", rng)
        same(symbolic(x), oracle(x), length)


REAL = ["i1", "u2", "i4", "i8", "u8", "f2"]


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype) for name in ("max", "arguments", "sum", "mean") for dtype in ("bool", *REAL)]
    + [("centred", dtype) for dtype in REAL]
    + [(name, dtype) for name in ("sum", "mean", "centred") for dtype in ("c8", "c16")],
)
def test_dtypes(name, dtype):
    function, rng = FUNCTIONS[name], np.random.default_rng(3)
    symbolic = cinductor.compile(function, backend="c", dynamic=True)
    oracle = cinductor.compile(function, backend="interp", dynamic=True)
    for length in (1, 2, 3, 8, 10, 16, 17, 64, 65, 100):
        x = rows(length, 66, dtype, rng)
        got = symbolic(x)
        close(got, function(x), length)
        same(got, oracle(x), length)


def test_first_numpy_bits():
    """NumPy adds fewer than eight values in sequence, and so must every program."""
    rng = np.random.default_rng(4)
    for dynamic in (True, False):
        for length in (2, 3, 5, 7):
            x = rows(length, 100, "f4", rng)
            fn = cinductor.compile(FUNCTIONS["sum"], backend="c", dynamic=dynamic)
            same(fn(x), x.sum(axis=-1), (dynamic, length))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns about infinities and NaN, and an error would end the test
@pytest.mark.parametrize("length", [2, 3, 8, 10, 16, 33, 64, 65])
def test_special_values(length):
    """A NaN wins in max, the first of equal values in argmax; the sign of zero only matters in sums."""
    rng = np.random.default_rng(length)
    x = rng.integers(-2, 3, (130, length)).astype("f4")
    x[3, length // 2 :] = np.nan
    x[4] = -np.inf
    x[5] = -0.0
    x[6, 1:] = np.nan
    x[7, ::2] = 0.0
    for name in ("max", "extremes", "arguments", "sum"):
        function = FUNCTIONS[name]
        symbolic = cinductor.compile(function, backend="c", dynamic=True)
        close(symbolic(x), function(x), name)
        for dynamic, backend in ((True, "interp"), (False, "c")):
            other = cinductor.compile(function, backend=backend, dynamic=dynamic)
            same(symbolic(x), other(x), (name, backend))


def distances(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


@pytest.mark.parametrize("counts", [(1, 1), (3, 100), (100, 3), (65, 64), (70, 130)])
def test_distances(counts):
    """Lanes are neighbours along the last outer axis, which may be short."""
    rng = np.random.default_rng(5)
    symbolic = cinductor.compile(distances, backend="c", dynamic=True)
    for length in (1, 2, 3, 8, 9, 20, 64, 70):
        a, b = (rng.standard_normal((count, length)) for count in counts)
        got = symbolic(a, b)
        close(got, distances(a, b), length)
        same(got, cinductor.compile(distances, backend="c", dynamic=False)(a, b), length)


LAYOUTS = {
    "every second": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "part": lambda x: x[1:, 1:],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "three axes": lambda x: x[:60].reshape(5, 12, -1),
    "swapped": lambda x: x[:60].reshape(5, 12, -1).swapaxes(0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["max", "sum", "softmax", "reversed"])
def test_layouts(name, layout):
    function, rng = FUNCTIONS[name], np.random.default_rng(6)
    symbolic = cinductor.compile(function, backend="c", dynamic=True)
    for length in (3, 4, 9, 18, 40, 130):
        x = LAYOUTS[layout](rows(length, 70, "f4", rng))
        close(symbolic(x), function(x), length, symbolic)


def test_in_place():
    """A kernel reads and stores the same rows."""

    def normalise(x):
        x -= x.max(axis=-1, keepdims=True)
        x /= np.abs(x).sum(axis=-1, keepdims=True) + 1
        return x.sum(axis=-1)

    fn = cinductor.compile(normalise, backend="c", dynamic=True)
    for length in (2, 5, 16, 17, 70):
        got, want = (rows(length, 90, "f8", np.random.default_rng(length)) for _ in range(2))
        close(fn(got), normalise(want), length)
        close(got, want, length)


@pytest.mark.parametrize("name", ["max", "arguments"])
def test_no_elements(name):
    fn = cinductor.compile(FUNCTIONS[name], backend="c", dynamic=True)
    fn(np.ones((5, 3)))
    with pytest.raises(ValueError):
        fn(np.ones((5, 0)))
    got = fn(np.ones((0, 3)))
    close(got, FUNCTIONS[name](np.ones((0, 3))), name)


def test_sums_of_nothing():
    fn = cinductor.compile(FUNCTIONS["sum"], backend="c", dynamic=True)
    fn(np.ones((5, 3)))
    same(fn(np.ones((5, 0))), np.zeros(5), 0)


def test_a_length_of_many_threads():
    """Chunks of threads start anywhere in a tile."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((40001, 7)).astype("f4")
    for name in ("sum", "softmax", "arguments"):
        want = cinductor.compile(FUNCTIONS[name], backend="interp", dynamic=True)(x)
        for threads in (1, 2, 5):
            fn = cinductor.compile(
                FUNCTIONS[name], backend="c", dynamic=True, options={"threads": threads}
            )
            same(fn(x), want, (name, threads))


@pytest.mark.parametrize("length", [3, 20, 70])
def test_pairs_of_many_threads(length):
    """Chunks of threads start and end anywhere in a run of the last outer axis."""
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((301, length)), rng.standard_normal((701, length))
    want = cinductor.compile(distances, backend="interp", dynamic=True)(a, b)
    for threads in (1, 3):
        options = {"threads": threads}
        fn = cinductor.compile(distances, backend="c", dynamic=True, options=options)
        same(fn(a, b), want, threads)
        same(fn(a[:1], b), want[:1], threads)
        same(fn(a, b[:1]), want[:, :1].copy(), threads)
