"""Tests fori_loop, while_loop, cond and scan: they equal the statements that they stand for, in NumPy and compiled."""

import numpy as np
import pytest

import cinductor
from cinductor import cond, fori_loop, scan, while_loop
from cinductor.testing import assert_same


def powers(x, n):
    return fori_loop(0, n, lambda i, state: (state[0] * x, state[1] + state[0] * i), (np.ones_like(x), np.zeros_like(x)))


def halvings(x, limit):
    def halve(state):
        value, trips = state
        return value * 0.5, trips + 1

    return while_loop(lambda state: state[0].max() > limit, halve, (x, 0))


def flip(x):
    return cond(x.sum() > 0, lambda a: a * 2.0, lambda a: -a, x)


def running(x, decay):
    def step(carry, row):
        carry = carry * decay + row
        return carry, carry.max()

    return scan(step, np.zeros(x.shape[1]), x)


def counted(x, n):
    return scan(lambda carry, _: (carry + x, carry), x, None, n)


X = np.linspace(-1.0, 1.5, 7)
CASES = [
    (powers, (X, 20)), (powers, (X, 0)), (halvings, (X, 1e-3)), (halvings, (X, 10.0)), (flip, (X,)), (flip, (-X,)),
    (running, (np.outer(X, X), 0.9)), (running, (X[None], 0.9)), (counted, (X, 15)),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("function, arguments", CASES, ids=lambda value: getattr(value, "__name__", None))
def test_compiled_equals_numpy(function, arguments, backend):
    want = function(*arguments)
    fn = cinductor.compile(function, backend=backend, fullgraph=True)
    for _ in range(2):
        assert_same(fn(*arguments), want)


def test_what_numpy_gives():
    assert_same(powers(np.array([2.0]), 3), (np.array([8.0]), np.array([10.0])))
    assert_same(halvings(np.array([8.0]), 1.0), (np.array([1.0]), 3))
    assert_same(counted(np.array([1.0]), 3), (np.array([4.0]), np.array([[1.0], [2.0], [3.0]])))


def test_nothing_to_scan():
    with pytest.raises(ValueError, match="no rows"):
        scan(lambda c, x: (c, x), 0.0, np.empty((0, 3)))
    with pytest.raises(ValueError, match="length is 4, xs has 3 rows"):
        scan(lambda c, x: (c, x), 0.0, np.empty((3, 3)), 4)


def test_an_exception_of_the_body_leaves():
    def fail(i, state):
        raise KeyError(i)

    with pytest.raises(KeyError, match="2"):
        cinductor.compile(lambda x: fori_loop(2, 5, fail, x))(X)
