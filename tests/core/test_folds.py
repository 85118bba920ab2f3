"""Tests reductions over rows of any length: the bits of the interpreter, for every vector level, with known and
symbolic length.

The lengths are around the sizes of accumulators: a chunk (64 of float32, 32 of float64) and a block of 32 chunks.
"""

import numpy as np
import pytest

import cinductor

LENGTHS = [0, 1, 7, 9, 31, 33, 63, 64, 65, 100, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4100]
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


def sums(x, y):
    d = x - y
    return np.sum(d * d, axis=-1), np.prod(1 + d * x.dtype.type(1e-3), axis=-1)


def sum_and_extremes(x, y):
    """Reductions of several kinds in one loop."""
    return (
        np.sum(x, axis=-1),
        np.max(x, axis=-1, initial=-np.inf),
        np.min(x * y, axis=-1, initial=np.inf),
    )


def through_mathematics(x, y):
    """The values are in an array before they are reduced."""
    e = np.exp(x * y)
    return (
        np.sum(e, axis=-1),
        np.max(e, axis=-1, initial=0),
        np.prod(1 + np.cos(x) * x.dtype.type(1e-3), axis=-1),
    )


def of_pairs(x, y):
    """Functions of the results of rows: points of a kernel run in batches."""
    d = x[:, None, :] - y[None, :, :]
    return (np.exp(-np.sum(d * d, axis=-1) / (1 + x.shape[-1])),)


def alone(x, y):
    """Only one reduction of each row."""
    return (np.sum(x, axis=-1),)


def of_both(x, y):
    """A reduction over two axes gets values in pieces of any length."""
    return np.sum(x * y), np.sum(np.exp(x))


def complex_product(x, y):
    return np.prod(1 + (x + 1j * y) / 100, axis=-1), np.sum(x + 1j * y, axis=-1)


def rows(length, dtype):
    rng = np.random.default_rng(length)
    x = rng.standard_normal((3, length))
    x[2:] = -0.0  # a sum of these is -0; a sum of no elements is +0
    return x.astype(dtype), rng.standard_normal((3, length)).astype(dtype)


def assert_same_bits(got, want, what):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w, err_msg=str(what))
        if not np.iscomplexobj(w):
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w), err_msg=str(what))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "function",
    [sums, sum_and_extremes, through_mathematics, of_both, of_pairs, alone, complex_product],
)
def test_bits(function, dtype):
    """Symbolic kernels of every vector level against the interpreter, which evaluates the definition."""
    oracle = cinductor.compile(function, backend="interp", dynamic=True)
    exact = cinductor.compile(
        function, backend="interp", dynamic=True, options={"numerics": "exact"}
    )
    compiled = {
        level: cinductor.compile(function, backend="c", dynamic=True, options={"arch": level})
        for level in LEVELS
    }
    for length in LENGTHS:
        operands = rows(length, dtype)
        want = oracle(*operands)
        assert_same_bits(exact(*operands), function(*operands), length)
        for level, fn in compiled.items():
            if (
                function not in (through_mathematics, of_both, of_pairs) or level == LEVELS[-1]
            ):  # exp depends on the level
                assert_same_bits(fn(*operands), want, (level, length))


@pytest.mark.parametrize("length", [9, 12, 16, 33, 63, 64, 65, 100, 2048, 4100])
@pytest.mark.parametrize("function", [sums, sum_and_extremes, through_mathematics, of_pairs, alone])
def test_known_lengths(function, length):
    """A kernel for a constant length has the bits of the symbolic one."""
    operands = rows(length, "f4")
    symbolic = cinductor.compile(function, backend="c", dynamic=True)(*operands)
    assert_same_bits(
        cinductor.compile(function, backend="c", dynamic=False)(*operands), symbolic, length
    )


def best(x):
    return np.argmax(x, axis=-1), np.max(x, axis=-1), np.argmin(np.exp(x), axis=-1)


def of_small_types(x):
    """Reductions whose accumulators are narrower than their results, alone and together."""
    return (
        np.sum(x), np.count_nonzero(x), np.argmax(x), np.argmin(x), np.mean(x), np.max(x), np.sum(x > 1), np.any(x),
        (np.sum(x), np.argmax(x), np.min(x)),
        np.sum(x[:-1].reshape(2, -1), axis=1), np.argmax(x[:-1].reshape(2, -1), axis=1), np.argmin(x[::2]),
        np.sum(x[:-1].reshape(-1, 2), axis=0), np.count_nonzero(x[:-1].reshape(-1, 2), axis=0),
        np.sum(x[:-1].reshape(2, -1)), np.sum(x, dtype=np.float32), np.sum(x, dtype=np.int32),
    )  # fmt: skip


def small_rows(dtype, length):
    """All extreme, all equal, the extreme at borders of vectors and parts, and random numbers."""
    rng = np.random.default_rng(length)
    info = np.iinfo(dtype) if dtype != "?" else None
    low, high = (info.min, info.max) if info else (False, True)
    yield np.full(length, high, dtype)
    yield np.full(length, low, dtype)
    for place in (0, 1, 31, 32, 127, 128, 8159, 8160, 32639, 32640, length - 1):
        x = np.full(length, low, dtype)
        x[min(place, length - 1) :: 97] = high
        yield x
        yield ~x
    yield rng.integers(0, 2, length).astype(dtype)
    yield rng.integers(low, int(high) + 1, length).astype(dtype)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "i4", "u4"])
def test_small_types(dtype, level):
    """Parts of narrow accumulators end after 255 vectors of bytes, and sums of bytes after 257."""
    compiled = cinductor.compile(of_small_types, backend="c", dynamic=True, options={"arch": level, "threads": 1})
    for length in (3, 33, 129, 1025, 8193, 70001):
        for x in small_rows(dtype, length):
            for got, want in zip(compiled(x), of_small_types(x), strict=True):
                assert np.array_equal(got, want) and np.asarray(got).dtype == np.asarray(want).dtype, (dtype, length, x)


def of_casts(x):
    """Sums of small numbers that casts change, or that casts make wider in two steps."""
    return [np.sum(x.astype(d)) for d in "BhHIlL"] + [np.sum(x.astype(d), dtype="I") for d in "bHi"] + [np.sum(x.astype("h").astype("I"))]


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "i4"])
def test_sums_of_casts(dtype, backend):
    """Each sum is in a kernel of its own, and so has accumulators of its own width."""
    compiled = cinductor.compile(of_casts, backend=backend, dynamic=True, options={"fusion": False})
    for length in (3, 129, 8193):
        for x in small_rows(dtype, length):
            assert [(v, v.dtype) for v in compiled(x)] == [(v, v.dtype) for v in of_casts(x)], (length, x)


@pytest.mark.parametrize("length", [1, 9, 63, 64, 65, 300, 2049])
def test_argmax_finds_the_first(length):
    rng = np.random.default_rng(length)
    x = rng.integers(-3, 3, (40, length)).astype("f4")
    x[3, length // 2 :] = np.nan
    x[4] = -np.inf
    fn = cinductor.compile(best, backend="c", dynamic=True)
    for got, want in zip(fn(x), best(x), strict=True):
        np.testing.assert_array_equal(got, want)


def decided(x):
    """Reductions that one element decides, of bools in memory and of comparisons."""
    m = x > 1
    return (
        m.argmax(axis=-1), m.argmin(axis=-1), m.any(axis=-1), m.all(axis=-1), np.argmax(x == 2, axis=-1), np.any(x < 0, axis=-1),
        (x[:, ::2] > 1).argmax(), (x > 1).any(), (x.T > 1).all(), np.argmin(x > -1),
    )  # fmt: skip


def given(m):
    return m.argmax(axis=-1), m.argmin(axis=-1), m.any(axis=-1), m.all(axis=-1), m.argmax(), m.argmin(), (~m).any(), m[:, ::-1].argmax()


@pytest.mark.parametrize(("dtype", "level"), [("?", LEVELS[0]), ("?", LEVELS[-1]), ("u2", LEVELS[-1]), ("f8", LEVELS[-1])])
def test_searches_find_the_first(dtype, level):
    """Rows that the element at each of many places decides, the first one, the last one, and none."""
    for length, dynamic in [(31, False), (1000, False), (1000, True), (70_001, False)]:
        places = sorted({0, 1, length // 3, length // 2, length - 2, length - 1} & set(range(length))) if length < 10_000 else [65_537]
        x = np.ones((2 * len(places) + 2, length), dtype)
        x[len(places) + 1 :] = dtype != "?"
        for row, place in enumerate(places):
            x[row, place:] = dtype != "?" and 2
            x[len(places) + 1 + row, place] = 1 if dtype == "?" else 2
        function = given if dtype == "?" else decided
        for threads in (1, 2) if length > 10_000 else (1,):
            compiled = cinductor.compile(function, backend="c", dynamic=dynamic, options={"arch": level, "threads": threads})
            for rows in (x, x[: len(places) + 1], x[-1:]):
                for k, (got, want) in enumerate(zip(compiled(rows), function(rows), strict=True)):
                    np.testing.assert_array_equal(got, want, err_msg=str((length, k)))


@pytest.mark.parametrize("length", [65536, 65537, 262144 + 100])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_few_long_rows_in_chunks(length, dtype):
    """Reductions that are split between threads."""
    x = np.random.default_rng(1).standard_normal((2, length)).astype(dtype)
    for function in (
        lambda x: (np.sum(x * x, axis=-1), np.max(x, axis=-1)),
        lambda x: (np.sum(np.exp(x), axis=-1), np.argmax(x, axis=-1)),
    ):
        want = cinductor.compile(function, backend="interp")(x)
        for dynamic in (True, False):
            got = cinductor.compile(function, backend="c", dynamic=dynamic)(x)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("n", [4097, 200_001])
def test_any_and_all_stop_early(n):
    """The result does not depend on the position of the deciding element. Elements after it give no warnings."""
    loud = cinductor.compile(lambda x: (np.log(x) < 0).any())
    found = cinductor.compile(lambda x: ((x > 1).any(), np.all(x <= 1), np.any(x[::-1] != 1)))
    for at in (0, 4095, 4096, n - 1, None):
        x = np.ones(n)
        if at is not None:
            x[at] = 2
        assert found(x) == found.__wrapped__(x)
    x = np.full(n, 0.5)
    x[-1] = 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert loud(x)


def test_what_one_part_has_found_is_told_of_its_row_alone():
    x = np.ones((3, 300_000))
    found = cinductor.compile(lambda x: (x > 1).any(axis=1))
    every = cinductor.compile(lambda x: (x <= 1).all(axis=1))
    for at in ((), ((0, 5),), ((1, 299_999),), ((0, 5), (2, 70_000))):
        y = x.copy()
        for place in at:
            y[place] = 2
        np.testing.assert_array_equal(found(y), found.__wrapped__(y))
        np.testing.assert_array_equal(every(y), every.__wrapped__(y))


@pytest.mark.parametrize("sizes", ["3,0", "0,3", "2,0,3", "2,3,0"])
@pytest.mark.parametrize("fold", ["sum", "prod", "any"])
def test_folds_over_axes_without_elements(fold, sizes):
    """The points of several axes are numbered, so an index is computed by division by a size."""
    shape = [int(n) for n in sizes.split(",")]
    dtype = "bool" if fold == "any" else "f32"
    text = f"graph g(in0: {dtype}[{sizes}]) {{\n  %0: {dtype}[] = {fold}(in0, axes={list(range(len(shape)))})\n  return %0\n}}\n"
    x = np.zeros(shape, "bool" if fold == "any" else "f4")
    assert cinductor._core.compile_text(text, [x])[0] == getattr(np, fold)(x)
