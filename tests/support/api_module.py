"""Functions that tests compile from another module."""

import numpy as np

import cinductor

WEIGHT = np.arange(4.0)
RATE = 0.5


def helper(x, k=2):
    return x * k + WEIGHT


@cinductor.compile(backend="interp")
def decorated(x):
    """Doc of decorated."""
    return x + 1


class Layer:
    def __init__(self, n):
        self.w = np.ones(n)
        self.bias = 0.5
        self.options = {"scale": 2.0}

    @cinductor.compile(backend="interp")
    def apply(self, x):
        return x * self.w * self.options["scale"] + self.bias
