"""Scans of rows run a few rows at a time on the CPU: NumPy's bits for any number of rows, of any length."""

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
    """Units are rows, and whoever runs them has some that follow each other."""
    x = np.random.default_rng(0).standard_normal((101, 3000))
    want = np.cumsum(x, axis=1)
    for threads in (1, 3):
        assert compile(lambda x: np.cumsum(x, axis=1), options={"threads": threads})(x).tobytes() == want.tobytes()


def test_packs_in_parts():
    """Each part stores what it keeps, and nothing beyond: the next one has begun there."""

    def kept(x, t):
        return x[x > t] * 2

    x = np.random.default_rng(1).standard_normal(200_001)
    for threads in (1, 4):
        compiled = compile(kept, options={"threads": threads, "verify": True}, dynamic=True)
        for t in (-9.0, 0.0, 1.5, 9.0):
            assert compiled(x, t).tobytes() == kept(x, t).tobytes()
