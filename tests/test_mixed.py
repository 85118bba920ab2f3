"""Numbers that are Python's on one path and NumPy's on another: each operator gives what its path's operand would."""

import numpy as np
import pytest

import cinductor

ARRAYS = [np.array(v) for v in ([3, -4, 5], [-3, -4, -5], [2**62, 2**62, 7], [-(2**62), 3, -(2**62)])]


def summed(x):
    """0, or a sum that NumPy made."""
    total = 0
    for i in range(len(x)):
        if x[i] > 0:
            total += x[i]
    return total


OPERATORS = {
    "plus int": lambda b: b + 1,
    "int minus": lambda b: 7 - b,
    "times int": lambda b: b * 3,
    "plus float": lambda b: b + 0.5,
    "times float": lambda b: 2.5 * b,
    "by float": lambda b: b / 2.0,
    "negative": lambda b: -b,
    "absolute": lambda b: abs(b),
    "floor": lambda b: b // 3,
    "rest": lambda b: b % -5,
    "itself": lambda b: b + b,
    "less": lambda b: b < 4,
    "equal": lambda b: 0.0 == b,
    "in arithmetic": lambda b: (b + 1) * 0.25 - b,
    "in a choice": lambda b: b - 1 if b > 5 else b + 1.0,
    "with an array": lambda b: (b + 2) * np.ones(2),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("backend", ("c", "interp"))
@pytest.mark.parametrize("name", OPERATORS)
def test_ints(name, backend):
    """Beyond 64 bits the function itself answers: Python's int grows, NumPy's wraps around."""

    def f(x):
        return OPERATORS[name](summed(x))

    fn = cinductor.compile(f, backend=backend)
    for x in (*ARRAYS, *ARRAYS):
        got, want = fn(x), f(x)
        assert type(got) is type(want) and np.array_equal(got, want)
    if "choice" not in name:
        cinductor.compile(f, backend=backend, fullgraph=True)(ARRAYS[0])


def test_in_the_loop():
    """The perceptron: a bias that Python begins and NumPy goes on with."""

    def train(rows, labels, epochs):
        weights, bias, mistakes = np.zeros(rows.shape[1]), 0, 0
        for _ in range(epochs):
            mistakes = 0
            for row, label in zip(rows, labels, strict=True):
                if label * (row @ weights + bias) <= 0:
                    weights += label * row
                    bias += label
                    mistakes += 1
            if mistakes == 0:
                break
        return weights, bias, mistakes

    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, (30, 3)).astype(float)
    fn = cinductor.compile(train, fullgraph=True)
    for shift in (0.5, -9.0):
        labels = np.where(rows[:, 0] - rows[:, 1] > shift, 1, -1)
        for got, want in zip(fn(rows, labels, 15), train(rows, labels, 15), strict=True):
            assert type(got) is type(want) and np.array_equal(got, want)
