"""Tests online reductions: two reductions of a row in one pass, where the second depends on the result of the first.

The threshold `online_bytes` is set so that every row is long enough.
"""

import warnings

import numpy as np
import pytest

import cinductor

ALWAYS = {"numerics": "fast", "choices": "online_bytes=1,online_exp_bytes=1"}
NEVER = {"numerics": "fast", "choices": f"online_bytes={1 << 40}"}
# Lengths around the size of a block of accumulators, for float32 and float64; the last ones are split.
LENGTHS = [1, 9, 1025, 70001]
# Allowed error relative to the largest value. NumPy's own stays below 1.5 here.
CLOSE = 4


def deviations(x):
    return x.var(axis=-1)


def normed(x):
    mean = x.mean(axis=-1, keepdims=True)
    spread = np.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(spread + x.dtype.type(1e-3))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_sum(x):
    most = x.max(axis=-1)
    return most + np.log(np.exp(x - most[..., None]).sum(axis=-1))


def columns(x):
    m = x.max(axis=0)
    return x.var(axis=0), np.exp(x - m).sum(axis=0)


FUNCTIONS = [deviations, normed, softmax, log_sum]


def all_of(x):
    return deviations(x), normed(x), softmax(x), log_sum(x)


def exact(fn, x):
    return np.asarray(fn(x.astype(np.longdouble)))


def errors(got, wanted, dtype):
    """Errors in units of the last place of the largest value."""
    scale = float(np.abs(wanted).max()) * np.finfo(dtype).eps
    return float(np.abs(got.astype(np.longdouble) - wanted).max()) / (scale or 1)


def folds_of(fn, x, options=ALWAYS):
    loops = str(cinductor.explain(cinductor.compile(fn, options=options), x).loops)
    return loops.count("exp_sum"), loops.count("welford")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_results_are_as_near_as_two_walks(length, dtype):
    x = np.random.default_rng(length).standard_normal((3, length)).astype(dtype)
    for got, wanted in zip(cinductor.compile(all_of, options=ALWAYS)(x), all_of(x.astype("g")), strict=True):
        assert errors(got, wanted, dtype) <= CLOSE


def test_they_are_one_walk():
    x = np.random.default_rng(1).standard_normal((3, 5000))
    assert [folds_of(fn, x) for fn in FUNCTIONS] == [(0, 1), (0, 1), (1, 0), (1, 0)]
    assert folds_of(columns, x.T.copy()) == (1, 1)
    assert folds_of(deviations, x, NEVER) == (0, 0)


@pytest.mark.parametrize("numerics", ["numpy", "close"])
def test_only_fast_has_them(numerics):
    x = np.random.default_rng(1).standard_normal((3, 5000))
    assert folds_of(normed, x, ALWAYS | {"numerics": numerics}) == (0, 0)


def of_other_rows(x):
    return np.exp(x - x.max(axis=0)).sum(axis=1)


def of_other_elements(x):
    return np.exp(x - (2 * x).max(axis=-1, keepdims=True)).sum(axis=-1)


def by_one_less(x):
    mean = x.sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
    return np.square(x - mean).sum(axis=-1)


def least_first(x):
    return np.exp(x - x.min(axis=-1, keepdims=True)).sum(axis=-1)


def other_factor(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return (d * (d + 1)).sum(axis=-1)


@pytest.mark.parametrize(
    "fn", [of_other_rows, of_other_elements, by_one_less, least_first, other_factor]
)
def test_what_only_looks_alike_stays(fn):
    x = np.random.default_rng(2).standard_normal((40, 40))
    assert folds_of(fn, x) == (0, 0)
    np.testing.assert_allclose(cinductor.compile(fn, options=ALWAYS)(x), fn(x), rtol=1e-12)


def test_exponentials_that_leave_are_made():
    def both(x):
        e = np.exp(x - x.max())
        return e, e.sum()

    x = np.random.default_rng(3).standard_normal(5000)
    for got, wanted in zip(cinductor.compile(both, options=ALWAYS)(x), both(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14)


def special_rows(dtype):
    """Infinities, NaN and ties at the boundaries between chunks of a row."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((12, 5000)).astype(dtype)
    rows[0, ::3] = -np.inf
    rows[1] = -np.inf
    rows[2, 4999] = np.inf
    rows[3, 0] = np.inf
    rows[4, 2048] = np.nan
    rows[5, [7, 4000]] = np.inf, -np.inf
    rows[6, 1:] = -np.inf
    rows[7, :4999] = -np.inf
    rows[8] = 3.25
    rows[9] = 0
    rows[10] = np.arange(5000) * dtype(0.1)
    rows[11, :2048] = -np.inf
    return rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_and_nan_mean_what_they_do(dtype):
    x = special_rows(dtype)
    with np.errstate(all="ignore"):
        for got, wanted in zip(cinductor.compile(all_of, options=ALWAYS)(x), all_of(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-6 if dtype is np.float32 else 1e-13)


def test_masked_rows_raise_no_flag_that_numpy_does_not():
    x = special_rows(np.float64)[[0, 6, 7, 8, 11]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cinductor.compile(softmax, options=ALWAYS)(x)
        cinductor.compile(deviations, options=ALWAYS)(np.ones((3, 5000)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_far_from_zero(dtype):
    """The formula "mean of squares minus square of the mean" would lose all digits here."""
    noise = np.random.default_rng(5).standard_normal((2, 200000))
    x = (noise + (1e9 if dtype == "f8" else 1e4)).astype(dtype)
    wanted = exact(deviations, x)
    ours = errors(cinductor.compile(deviations, options=ALWAYS)(x), wanted, dtype)
    numpys = errors(deviations(x), wanted, dtype)
    assert ours <= max(CLOSE, 2 * numpys)


def test_growing_rows_are_scaled_again_and_again():
    x = np.linspace(-700, 700, 100000)
    got = cinductor.compile(log_sum, options=ALWAYS)(x)
    assert errors(np.asarray(got), exact(log_sum, x), "f8") <= CLOSE


def test_lengths_that_are_not_known():
    f = cinductor.compile(columns, options=ALWAYS, dynamic=True)
    g = cinductor.compile(deviations, options=ALWAYS, dynamic=True)
    for height in (1, 2, 9, 3000):
        x = np.random.default_rng(height).standard_normal((height, 7))
        for got, wanted in zip(f(x), columns(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(g(x.T.copy()), deviations(x.T), rtol=1e-12, atol=1e-15)


def test_threads_and_the_interpreter_agree():
    """The order of operations belongs to the kernel: the number of threads does not change the result."""
    x = np.random.default_rng(6).standard_normal((2, 300000))
    one, two = (cinductor.compile(all_of, options=ALWAYS | {"threads": k})(x) for k in (1, 2))
    interp = cinductor.compile(all_of, backend="interp", options=ALWAYS)(x)
    for a, b, c in zip(one, two, interp, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-14)
