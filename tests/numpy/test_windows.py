"""Tests sliding-window views, and loops over the index tuples of an array."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import cinductor

CASES = [
    ((9,), 3, None),
    ((9,), (9,), 0),
    ((9,), 0, None),
    ((4, 6), (2, 3), None),
    ((4, 6), 2, 1),
    ((4, 6), (2, 2), (1, 1)),
    ((4, 6), (), ()),
    ((3, 4, 5), (2, 3), (-1, 0)),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_windows(case, dynamic):
    """The view itself, with NumPy's strides, memory and flags; results computed from it; and the view after a write.
    """
    shape, length, axis = case

    def f(x):
        view = sliding_window_view(x, length, axis)
        total = view.sum(axis=-1) if view.ndim > x.ndim else view * 1
        x[...] = x + 1
        return view, total, view * 2, view.T, np.exp(x)

    compiled = cinductor.compile(f, backend="interp", fullgraph=True, dynamic=dynamic)
    for order in "CFC":
        base = np.asarray(np.random.default_rng(1).random(shape), order=order)
        mine, theirs = base.copy("K"), base.copy("K")
        for got, want in zip(compiled(mine), f(theirs)):
            np.testing.assert_array_equal(got, want)
            assert (got.strides, got.flags.writeable) == (want.strides, want.flags.writeable)
            assert np.shares_memory(got, mine) == np.shares_memory(want, theirs)


@pytest.mark.parametrize("args", [(10, None), (-1, None), ((2, 2), None), (2, 3), ((2, 2), 0)], ids=repr)
def test_windows_that_do_not_fit(args):
    def f(x):
        return sliding_window_view(x, *args)

    messages = set()
    for fn in (f, cinductor.compile(f, backend="interp")):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            fn(np.zeros(9))
        messages.add(str(error.value))
    assert len(messages) == 1


def test_windows_that_can_be_written():
    def f(x):
        sliding_window_view(x, 3, writeable=True)[1] = 7
        return x

    compiled = cinductor.compile(f, backend="interp")
    assert compiled(np.zeros(5)).tolist() == f(np.zeros(5)).tolist()


def test_read_only():
    def f(x):
        sliding_window_view(x, 3)[1] = 7

    for fn in (f, cinductor.compile(f, backend="interp")):
        with pytest.raises(ValueError, match="read-only"):
            fn(np.zeros(5))


def places(x, out):
    """Stops at the first negative element."""
    for i in np.ndindex(x.shape):
        if x[i] < 0:
            break
        out[i] = x[i] * 2 + sum(i)


def separate(x, out):
    for i, j in np.ndindex(x.shape[0], x.shape[1]):
        out[i, j] = x[i, j] + 10 * i - j


def elements(x, out):
    total = 0.0
    for (i, j), v in np.ndenumerate(x):
        if i == j:
            total += v
        out[j % out.shape[0], i % out.shape[1]] += v
    return total


def own_sizes(x, out):
    for i in np.ndindex(2, 3):
        out[i] += 1
    for k in np.ndindex(()):
        out[0, 0] += len(k)
    for i in np.ndindex((0, 5)):
        out[i] = 9


@pytest.mark.filterwarnings("ignore:cinductor")
@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize("fn", [places, separate, elements, own_sizes], ids=lambda f: f.__name__)
def test_places(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True, dynamic=dynamic)
    rng = np.random.default_rng(3)
    for shape in [(3, 4), (5, 4), (5, 3), (2, 7), (9, 3)]:
        for x in (rng.random(shape), rng.random(shape) - 0.1, np.asfortranarray(rng.random(shape))):
            mine, theirs = np.zeros(shape), np.zeros(shape)
            assert compiled(x, mine) == fn(x, theirs)
            assert mine.tolist() == theirs.tolist()


def test_negative_sizes_raise():
    def f(n):
        for i in np.ndindex(n, 2):
            print(i)

    for fn in (f, cinductor.compile(f, backend="interp")):
        with pytest.raises(ValueError, match="negative dimensions"):
            fn(-1)


def test_an_iterator_of_places_is_used_up():
    def f(x):
        places = np.ndindex(x.shape)
        total = 0.0
        for i in places:
            total += x[i]
        for i in places:
            total += 100 * x[i]
        return total

    compiled = cinductor.compile(f, backend="interp")
    x = np.random.default_rng(2).random((4, 5))
    assert compiled(x) == f(x)
