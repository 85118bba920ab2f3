"""Tests medians of few elements, which are computed by a sorting network without a library call."""

import itertools

import numpy as np
import pytest

import cinductor
from cinductor.numpy.network import MOST, exchanges, median_of_few, ordered

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("n", range(15))
def test_exchanges_order_every_sequence(n):
    """The zero-one principle: a network that sorts all sequences of bits sorts all sequences."""
    bits = np.array(list(itertools.product((0, 1), repeat=n)), int).reshape(2**n, n)
    line = [bits[:, k] for k in range(n)]
    for i, j in exchanges(n):
        assert 0 <= i < j < n
        line[i], line[j] = np.minimum(line[i], line[j]), np.maximum(line[i], line[j])
    if n:
        assert np.array_equal(np.stack(line, 1), np.sort(bits, axis=1))


@pytest.mark.parametrize("n", (15, 16, 17, 24, 25, 31, 32))
def test_ordered_places(n):
    values = RNG.permutation(n)
    for places in ({0}, {n - 1}, {n // 2}, {(n - 1) // 2, n // 2}, set(range(n))):
        assert ordered(list(values), places) == sorted(places)


def check(x, backend="interp", **settings):
    fn = cinductor.compile(lambda x: np.median(x, **settings), fullgraph=True, backend=backend)
    for given in (x, np.flip(x)):
        got, want = fn(given), np.median(given, **settings)
        assert type(got) is type(want) and got.dtype == want.dtype
        assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("dtype", "? b B h i l L e f d".split())
def test_dtypes(dtype):
    x = (RNG.random((4, 5, 3)) * 50 - 20 * (dtype not in "?BL")).astype(dtype)
    for settings in (
        {},
        {"axis": 0},
        {"axis": -1},
        {"axis": 1, "keepdims": True},
        {"axis": (0, 2)},
    ):
        check(x[:2] if not settings else x, **settings)
    check(x[0, 0])


@pytest.mark.parametrize("n", (1, 2, 3, 4, 9, 25, 32, 33, 40))
def test_numbers_of_elements(n):
    x = RNG.normal(size=(n, 6))
    check(x, axis=0, backend=None)
    report = cinductor.explain(lambda x: np.median(x, axis=0), x)
    assert ("median(" in report.graph) == (n > MOST)


def test_not_a_number_and_infinities():
    x = RNG.normal(size=(7, 12))
    for k in range(7):
        x[k, k] = np.nan
    x[:, 7:9] = np.inf
    x[2:6, 8] = -np.inf
    x[:, 9] = np.nan
    check(x, axis=0)
    check(x[:4], axis=0)
    check(x[:3, :4])


def test_out():
    def into(x, out):
        np.median(x, axis=1, out=out)
        return out * 2

    fn, x = cinductor.compile(into, fullgraph=True), RNG.random((3, 5))
    ours, theirs = np.zeros(3), np.zeros(3)
    assert np.array_equal(fn(x, ours), into(x, theirs)) and np.array_equal(ours, theirs)


def test_a_filter_is_one_kernel():
    def filtered(image):
        out = image.copy()
        for i in range(1, image.shape[0] - 1):
            for j in range(1, image.shape[1] - 1):
                out[i, j] = np.median(image[i - 1 : i + 2, j - 1 : j + 2])
        return out

    image = RNG.random((13, 17))
    fn = cinductor.compile(filtered, fullgraph=True)
    assert np.array_equal(fn(image), filtered(image))
    assert cinductor.explain(filtered, image).externs_count == 0


def test_sizes_that_vary_are_numpys():
    """A network is built for a constant number of elements."""
    fn = cinductor.compile(lambda x: np.median(x, axis=0), dynamic=True, fullgraph=True)
    for n in (5, 6, 9):
        x = RNG.random((n, 4))
        assert np.array_equal(fn(x), np.median(x, axis=0))
    assert median_of_few(np.ones(3, complex), None, False) is None
