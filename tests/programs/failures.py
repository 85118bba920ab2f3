"""Programs that fail on some of their inputs: what they did before stays done, and the message is NumPy's or theirs."""

import numpy as np


def index_out_of_range(x, where):
    """Marks the places asked for, until one is beyond the end."""
    for k in where:
        x[k] += 1
    return x


def pivot_of_zero(a):
    """Elimination that refuses a zero pivot half-way."""
    n = a.shape[0]
    for k in range(n):
        if a[k, k] == 0:
            raise ZeroDivisionError(f"pivot {k} is zero")
        a[k + 1 :] -= a[k + 1 :, k : k + 1] / a[k, k] * a[k]
    return a


def shapes_that_differ(x, y):
    """Sums into the first array, then adds what does not fit."""
    x += 1
    if x.size > 3:
        x *= 2
    return x + y


def no_convergence(a, x, limit):
    """A fixed point that is given up after so many steps."""
    for _ in range(limit):
        new = np.cos(a * x)
        if np.max(np.abs(new - x)) < 0.3:
            return new
        x[:] = new
    raise RuntimeError(f"no convergence in {limit} steps")


def unbound_name(x):
    """A name bound only when an element is large."""
    for i in range(len(x)):
        if x[i] > 0.999 - len(x) / 10:
            found = i
    return found


def assertion(x):
    """Checks its input after having changed it."""
    x[0] = -1.0
    assert (x[1:] > x.size / 10).all(), "too small"
    return np.sqrt(x[1:])


def singular(a, b):
    """NumPy's own error out of a library call."""
    a[0] = 0
    if len(a) > 2:
        a[-1, 0] = 1
        a[0] = b
    return np.linalg.solve(a, b)


def caught(x, n):
    """Errors that the program itself catches."""
    count = 0
    for i in range(n):
        try:
            x[i] *= 2
        except IndexError:
            count += 1
    try:
        x = x.reshape(2, -1)
    except ValueError as error:
        return count, str(error)
    finally:
        count += 10
    return count, x


def integer_overflow(x, n):
    """A Python integer that no longer fits."""
    total = 1
    for i in range(n):
        total *= int(x[i]) + 1000
    x[0] = total
    return x


PROGRAMS = [
    (index_out_of_range, lambda n, rng: (np.zeros(6), np.arange(n)), (3, 6, 8), 0),
    (pivot_of_zero, lambda n, rng: (np.diag(np.arange(n, 0.0, -1) % 4) + np.tri(n, k=-1),), (2, 3, 6), 0),
    (shapes_that_differ, lambda n, rng: (rng.random(n), rng.random(3)), (1, 3, 4), 0),
    (no_convergence, lambda n, rng: (rng.random(n) + n / 2, rng.random(n), 6), (1, 4, 9), 1e-12),
    (unbound_name, lambda n, rng: (rng.random(n) / 2,), (2, 5, 9), 0),
    (assertion, lambda n, rng: (rng.random(n),), (2, 5, 9), 0),
    (singular, lambda n, rng: (rng.random((n, n)), rng.random(n)), (2, 3, 5), 1e-12),
    (caught, lambda n, rng: (rng.random(n), 6), (4, 5, 8), 0),
    (integer_overflow, lambda n, rng: (rng.integers(1, 9, n), n), (2, 4, 8), 0),
]
