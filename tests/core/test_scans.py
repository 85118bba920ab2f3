"""Tests scans of rows, which run several rows at a time on the CPU: NumPy's bits for any number and length of rows."""

import warnings

import numpy as np
import pytest

from cinductor import compile

ROWS = (1, 3, 4, 5, 8, 11)
LENGTHS = (0, 1, 2, 37)


def scans(x, y):
    return np.cumsum(x, axis=1), np.cumsum(x * y, axis=-1) + y, np.cumprod(y, 1), np.maximum.accumulate(x, 1)


def in_stacks(x):
    return np.cumsum(x, axis=-1), np.cumsum(x, axis=1), np.minimum.accumulate(x.T, axis=1)


def values(dtype, *shape):
    rng = np.random.default_rng(sum(shape))
    x = (8 * rng.standard_normal(shape)).astype(dtype)
    if np.dtype(dtype).kind == "f" and x.size > 3:
        x.flat[:3] = -0.0, np.nan, np.inf
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "f2", "c16"])
def test_any_rows(dtype):
    function = scans if dtype != "c16" else lambda x, y: (np.cumsum(x, 1), np.cumsum(x + y, 1))
    compiled = compile(function, dynamic=True, options={"verify": True, "threads": 2})
    for rows in ROWS:
        for length in LENGTHS:
            x, y = values(dtype, rows, length), values(dtype, rows, length)[::-1].copy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for got, want in zip(compiled(x, y), function(x, y), strict=True):
                    assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=dtype[0] in "fc")
                    assert got.tobytes() == want.tobytes() or np.isnan(want).any()


def test_known_sizes_and_stacks():
    for shape in ((3, 5, 9), (2, 4, 64), (9, 1, 3)):
        x = values("f8", *shape)
        x[np.isnan(x)] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for got, want in zip(compile(in_stacks)(x), in_stacks(x), strict=True):
                assert np.array_equal(got, want, equal_nan=True)


def test_long_rows_and_many_threads():
    """Work units are rows; a thread runs several adjacent ones."""
    x = np.random.default_rng(0).standard_normal((101, 3000))
    want = np.cumsum(x, axis=1)
    for threads in (1, 3):
        assert compile(lambda x: np.cumsum(x, axis=1), options={"threads": threads})(x).tobytes() == want.tobytes()


def test_packs_in_parts():
    """Each chunk stores its selected elements and nothing after them, where the next chunk has already stored."""

    def kept(x, t):
        return x[x > t] * 2

    x = np.random.default_rng(1).standard_normal(200_001)
    for threads in (1, 4):
        compiled = compile(kept, options={"threads": threads, "verify": True}, dynamic=True)
        for t in (-9.0, 0.0, 1.5, 9.0):
            assert compiled(x, t).tobytes() == kept(x, t).tobytes()


# ---- chained scans ----

PART = 1024  # elements of a chunk with the smallest value that `choices` allows
CHAINED = {"choices": "chain_bytes=1, split_elements=1024"}
BORDERS = (0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1, 7 * PART - 1, 7 * PART, 40 * PART + 3)


def flat_scans(x):
    return np.cumsum(x), np.cumprod(x | 1), np.maximum.accumulate(x), np.minimum.accumulate(x)


def flat_masks(x):
    return np.cumsum(x), np.logical_or.accumulate(x), np.logical_and.accumulate(x)


def packs(x, t):
    return x[x > t] * 2, np.nonzero(x > t)[0], np.cumsum(x > t)


def check_all(compiled, function, *args):
    for got, want in zip(compiled(*args), function(*args), strict=True):
        assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_chains_around_their_borders(threads):
    """Chunks wait for their predecessors, for any distribution to threads."""
    rng = np.random.default_rng(threads)
    options = {"threads": threads, "verify": True, **CHAINED}
    for dtype in "bhilBHIL?":
        function = flat_masks if dtype == "?" else flat_scans
        compiled, kept = (compile(f, dynamic=True, options=options) for f in (function, packs))
        for size in BORDERS:
            x = rng.integers(0, 2 if dtype == "?" else 100, size).astype(dtype)
            check_all(compiled, function, x)
            if dtype != "?":
                for t in (-1, 50, 98, 100):
                    check_all(kept, packs, x, np.dtype(dtype).type(max(t, 0)))


@pytest.mark.parametrize("backend", ["c", "interp"])
def test_chains_of_known_length(backend):
    x = np.random.default_rng(3).integers(-9, 9, 9 * PART + 5)
    compiled = compile(flat_scans, options={"threads": 4, "verify": True, **CHAINED}, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            check_all(compiled, flat_scans, x)


def test_chains_of_many_threads():
    """More threads than CPUs: a thread that is preempted while others wait for it must not delay them for long."""
    x = np.random.default_rng(5).integers(-99, 99, 700 * PART)
    compiled = compile(lambda x: (np.cumsum(x), x[x > 3]), options={"threads": 16, **CHAINED})
    want = np.cumsum(x), x[x > 3]
    for _ in range(60):
        for got, expected in zip(compiled(x), want, strict=True):
            assert np.array_equal(got, expected)
