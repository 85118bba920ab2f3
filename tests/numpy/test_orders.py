"""Tests that sums of floats have NumPy's bits. NumPy's order of addition depends on shapes, strides, axes and dtypes."""

import os
import random
import zlib

import numpy as np
import pytest
import ways

import cinductor

MORE = int(os.environ.get("CINDUCTOR_FUZZ", "0"))  # random reductions
SIZES = [1, 1, 2, 3, 5, 7, 8, 9, 16, 17, 30, 64, 100, 129, 200, 257, 1000, 3000, 9000]
LARGE = [2, 3, 7, 16, 100, 257, 1000, 1500, 4096, 9000, 70000, 200000]


def half(x):
    return x.dtype.type(0.5)


FUNCTIONS = {
    "sum": lambda x, axis, keep: x.sum(axis=axis, keepdims=keep),
    "product": lambda x, axis, keep: np.prod(x.real * half(x.real) + 1, axis=axis, keepdims=keep),
    "mean": lambda x, axis, keep: np.mean(x, axis=axis, keepdims=keep),
    "variance": lambda x, axis, keep: np.var(x, axis=axis, keepdims=keep),
    "deviation": lambda x, axis, keep: x.std(axis=axis, keepdims=keep),
    "without NaN": lambda x, axis, keep: np.nansum(x, axis=axis, keepdims=keep),
    "two": lambda x, axis, keep: (x + x).sum(axis=axis) + (x - 1).sum(axis=axis),
    "used at once": lambda x, axis, keep: x - x.sum(axis=axis, keepdims=True) * half(x),
    "of integers": lambda x, axis, keep: (x.real * 10).astype("i4").mean(axis=axis, keepdims=keep),
    "beside another": lambda x, axis, keep: x.real.max(axis=axis) + x.real.sum(axis=axis),
    "of some": lambda x, axis, keep: np.sum(x, axis=axis, where=x.real > 0, initial=2),
    "from a start": lambda x, axis, keep: np.sum(x, axis=axis, initial=0.1, keepdims=keep),
    "running": lambda x, axis, keep: np.cumsum(x, axis=axis[0] if type(axis) is tuple else axis),
    "running product": lambda x, axis, keep: np.cumprod(x, axis=axis[0] if type(axis) is tuple else axis),
    "norm": lambda x, axis, keep: np.linalg.norm(x, axis=axis[0] if type(axis) is tuple else axis),
    "sum of squares": lambda x, axis, keep: np.add.reduce(x * x, axis=axis, keepdims=keep),
    "of products": lambda x, axis, keep: np.mean(x * x[::-1], axis=axis, keepdims=keep),
    "parts": lambda x, axis, keep: np.add.reduceat(x, [0, len(x) // 2, len(x) - 1], axis=0),
    "wider": lambda x, axis, keep: x.sum(axis=axis, dtype="D" if x.dtype.kind == "c" else "d"),
    "average": lambda x, axis, keep: np.average(x, axis=axis[0] if type(axis) is tuple else axis),
    "mean of some": lambda x, axis, keep: x.mean(axis=axis, where=x.real < 1),
}


def bits(a):
    """The parts of an array as integers; all NaN are equal."""
    parts = [a.real, a.imag] if a.dtype.kind == "c" else [a]
    texts = []
    for part in parts:
        part = np.array(part)
        if part.dtype.kind != "f":
            texts.append(part)
            continue
        part[part != part] = np.nan
        texts.append(part.view(f"u{part.dtype.itemsize}") if part.ndim else part.tobytes())
    return texts


def assert_same_bits(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    for a, b in zip(bits(got), bits(want), strict=True):
        np.testing.assert_array_equal(a, b)


def some_array(rng, sizes, least, most, dtypes):
    """A view of a buffer with its axes in random order: all of it or a part, perhaps reversed or broadcast."""
    rank, dtype = rng.randint(1, 4), rng.choice(dtypes)
    shape = [0]
    while not least <= np.prod(shape) <= most:
        shape = [rng.choice(sizes) for _ in range(rank)]
    more = rng.random() < 0.4
    steps = [rng.choice([1, 1, 1, 2, -1]) if rng.random() < 0.3 else 1 for _ in shape]
    whole = [
        (n + (rng.randint(0, 2) if more else 0)) * abs(s) for n, s in zip(shape, steps, strict=True)
    ]
    order = rng.sample(range(rank), rank)
    values = np.random.default_rng(rng.randrange(2**32)).standard_normal(int(np.prod(whole)))
    if rng.random() < 0.1:
        values = np.where(values > 0, -0.0, 0.0)
    values = values.astype(dtype) + (values * 1j).astype(dtype) if dtype in "FD" else values
    x = values.astype(dtype).reshape([whole[k] for k in order]).transpose(np.argsort(order))
    x = x[tuple(slice(None, None, s) for s in steps)][tuple(slice(0, n) for n in shape)]
    return np.broadcast_to(x, (3, *x.shape)) if rank < 4 and rng.random() < 0.08 else x


def some_axes(rng, rank):
    if rng.random() < 0.3:
        return None
    axes = rng.sample(range(rank), rng.randint(1, rank))
    return tuple(axes) if rng.random() < 0.6 else axes[0] - rank


def check(seed, sizes, least, most, dtypes, backend, dynamic, threads=0):
    rng = random.Random(seed)
    x = some_array(rng, sizes, least, most, dtypes)
    axis, keep, name = some_axes(rng, x.ndim), rng.random() < 0.3, rng.choice(list(FUNCTIONS))
    if name == "running" and type(axis) is tuple and len(axis) > 1:
        axis = axis[0]

    def f(x):
        return FUNCTIONS[name](x, axis, keep)

    with np.errstate(all="ignore"):
        options = {"threads": threads} if threads else {}
        got = cinductor.compile(f, backend=backend, dynamic=dynamic, options=options)(x)
        assert_same_bits(got, f(x))


@pytest.mark.parametrize("dynamic", [False, True], ids=["known sizes", "any sizes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_ones_interpreted(name, dynamic):
    for k in range(40):
        seed = zlib.crc32(f"{name} {dynamic} {k}".encode())
        check(seed, SIZES, 1, 20000, "ffdddFD", "interp", dynamic)


@pytest.mark.parametrize("seed", range(40))
def test_small_ones(seed):
    check(seed, SIZES, 1, 20000, "ffdddFD", "c", seed % 3 == 0)


@pytest.mark.parametrize("seed", range(20))
def test_large_ones_in_parts(seed):
    check(seed + 1000, LARGE, 100000, 2_000_000, "fddF", "c", seed % 2 == 0)


@pytest.mark.parametrize("batch", range((MORE + 99) // 100))
def test_more_of_them(batch):
    rng = random.Random()
    for k in range(100):
        seed = rng.randrange(2**32)
        large, backend = k == 99, "c" if k >= 98 else "interp"
        span = (LARGE, 100000, 2_000_000) if large else (SIZES, 1, 20000)
        try:
            check(seed, *span, "effdddFD", backend, rng.random() < 0.5, rng.randint(1, 16))
        except Exception as error:
            raise AssertionError(f"{seed} {backend}") from error


def test_half_precision_is_added_up_in_single_precision():
    x = np.random.default_rng(0).standard_normal((70, 300)).astype("e")
    for f in (lambda x: x.sum(), lambda x: x.sum(axis=1), lambda x: x.mean(axis=1)):
        assert_same_bits(cinductor.compile(f)(x), f(x))


def test_an_axis_of_one_element_has_a_program_of_its_own_where_it_matters():
    f = cinductor.compile(lambda x: x.sum(axis=0), dynamic=True, backend="interp")
    for shape in [(300, 5), (300, 1), (1, 300), (300, 2)]:
        x = np.random.default_rng(1).standard_normal(shape)
        assert_same_bits(f(x), x.sum(axis=0))


def test_close_has_an_order_of_its_own():
    x = np.random.default_rng(2).standard_normal(100_000)
    close = cinductor.compile(lambda x: x.sum(), options={"numerics": "close"})(x)
    assert close != x.sum() and abs(close - x.sum()) < 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_trees_of_every_shape(dtype):
    """NumPy's pairwise sums: blocks that are halved, two to four of them, and a remainder that is no whole vector."""
    lengths = [*range(120, 600, 9), 256, 264, 272, 280, 488, 496, 504, 511, 512, 513, 520, 2048, 4100]

    def squares(x):
        return (x * x).sum(axis=1)

    def some(n):
        return np.random.default_rng(n).standard_normal((3, n)).astype(dtype)

    of_any = cinductor.compile(squares, backend="c", dynamic=True)
    for n in lengths:
        assert_same_bits(of_any(some(n)), squares(some(n)))
    for n in (130, 264, 272, 500, 504, 512, 1000, 2048, 4100):
        of_one = cinductor.compile(squares, backend="c", dynamic=False)
        assert_same_bits(of_one(some(n)), squares(some(n)))


def test_windows_whose_width_only_the_run_knows():
    """The width, a difference of minima, does not say which axis is the outer one; products of it with other sizes
    do.
    """

    def windows(x, w, n):
        out = np.zeros((n, w.shape[2]), "f4")
        for j in range(n):
            out[j] = (x[:, j : j + w.shape[1], None] * w).sum(axis=(0, 1))
        return out

    compiled = cinductor.compile(windows, backend="interp", dynamic=True)
    for n, k in (4, 3), (5, 4), (6, 2):
        rng = np.random.default_rng(n)
        arguments = rng.random((9, n + k), "f4"), rng.random((9, k, 5), "f4"), n
        np.testing.assert_array_equal(compiled(*arguments), windows(*arguments))


@pytest.mark.parametrize("ufunc", [np.minimum, np.maximum, np.fmin, np.fmax], ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype, backend", [*((d, "interp") for d in ("f8", "f4", "f2", "c16", "i8", "u1", "?")), ("f8", "c"), ("f2", "c")])
def test_the_least_of_all_is_the_zero_and_the_nan_that_numpy_takes(ufunc, dtype, backend):
    """Whole arrays are reduced by NumPy's inner loop, without Python."""
    rng = np.random.default_rng(1)
    fold = cinductor.compile(lambda x: ufunc.reduce(x, axis=None), backend=backend, options={"numerics": "exact"})
    for shape in ((1,), (2,), (37,), (1000,), (40, 300), (3, 4, 5)):
        for _ in range(2):
            x = rng.choice(np.array([0.0, -0.0, 0.0, -0.0, 1.5, -np.nan if dtype[0] == "f" else 2.0]), shape)
            with np.errstate(all="ignore"):
                x = x.astype(dtype)
            for part in (x, x.T, x[::2], np.asfortranarray(x)):
                want = ufunc.reduce(part, axis=None)
                got = fold(part)
                assert type(got) is type(want) and got.tobytes() == want.tobytes(), (part.shape, got, want)


def centred(x, m):
    """The steps of nanvar. The updates in place and the sum are one loop, whose store reads what it overwrites."""
    y = np.array(x)
    np.copyto(y, 0, where=m)
    mean = np.sum(y, keepdims=True)
    np.divide(mean, y.size, out=mean)
    np.subtract(y, mean, out=y)
    np.copyto(y, 0, where=m)
    np.multiply(y, y, out=y)
    return np.sum(y)


def doubled(x, m):
    y = np.where(m, 0, x)
    y *= 3
    y += 1
    return np.sum(y), y


def variances(x, m):
    return np.nanvar(x), np.nanstd(x, ddof=1), np.nanmean(x)


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("function", [centred, doubled, variances])
def test_updates_are_made_once_in_sums_over_several_axes(function, way):
    """NumPy's order of additions needs elements again at the border of two blocks, beyond 1024 of them."""
    values = np.random.default_rng(5).normal(size=(74, 122)) * 50
    arrays = [values[::2, ::2], values[:37, :61].astype("f4").T, np.broadcast_to(values[0, :61], (37, 61)), values[:60].reshape(5, 12, 122).T[::3]]
    way.check(function, *((x, np.isnan(x)) for x in arrays))
