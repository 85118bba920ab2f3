"""Roots, integrals, orbits and numbers."""

import math

import numpy as np


def newton(x, tolerance):
    """A cube root of two from a scalar start; also the number of steps."""
    steps = 0
    while abs(x**3 - 2.0) > tolerance:
        x = x - (x**3 - 2.0) / (3.0 * x**2)
        steps += 1
    return x, steps


def newton_on_arrays(a, tolerance):
    """Square roots of all elements until the worst is good."""
    x = np.where(a > 1, a, 1.0)
    while np.max(np.abs(x * x - a)) > tolerance:
        x = 0.5 * (x + a / x)
    return x


def newton_system(z, steps):
    """Two equations in two unknowns, the Jacobian solved by hand."""
    x, y = z
    for _ in range(steps):
        f, g = x * x + y * y - 4.0, x * y - 1.0
        det = 2 * x * x - 2 * y * y
        x, y = x - (x * f - 2 * y * g) / det, y - (2 * x * g - y * f) / det
    return np.array([x, y])


def bisection(low, high, target, steps):
    """Monotone functions of many targets at once, by masks."""
    low, high = np.full_like(target, low), np.full_like(target, high)
    for _ in range(steps):
        middle = 0.5 * (low + high)
        below = middle * middle * middle + middle < target
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return 0.5 * (low + high)


def bisection_on_scalars(coefficients, low, high):
    """A root of a polynomial within Horner's reach, until the bracket is small."""

    def value(x):
        total = 0.0
        for c in coefficients:
            total = total * x + c
        return total

    if value(low) * value(high) > 0:
        raise ValueError("no change of sign")
    while high - low > 1e-3:
        middle = (low + high) / 2
        if value(low) * value(middle) <= 0:
            high = middle
        else:
            low = middle
    return low, high


def golden_section(low, high, steps):
    """A minimum by brackets in the golden ratio."""
    ratio = (math.sqrt(5) - 1) / 2
    c, d = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(steps):
        if math.cos(c) + 0.1 * c < math.cos(d) + 0.1 * d:
            high, d = d, c
            c = high - ratio * (high - low)
        else:
            low, c = c, d
            d = low + ratio * (high - low)
    return np.float64((low + high) / 2)


def horner(coefficients, x):
    """A polynomial and its derivative."""
    p = np.zeros_like(x)
    dp = np.zeros_like(x)
    for c in coefficients:
        dp = dp * x + p
        p = p * x + c
    return p, dp


def durand_kerner(coefficients, steps):
    """All roots of a polynomial at once, each pushed off by the others."""
    n = len(coefficients) - 1
    z = (0.4 + 0.9j) ** np.arange(n)
    for _ in range(steps):
        for i in range(n):
            others = 1.0 + 0j
            for j in range(n):
                if j != i:
                    others *= z[i] - z[j]
            z[i] -= np.polyval(coefficients, z[i]) / others
    return z


def romberg(levels):
    """The integral of exp(-x*x) from 0 to 1 in a triangle of estimates."""
    r = np.zeros((levels, levels))
    h = 1.0
    r[0, 0] = 0.5 * h * (1.0 + np.exp(-1.0))
    for i in range(1, levels):
        h /= 2
        x = h * np.arange(1, 2**i, 2)
        r[i, 0] = 0.5 * r[i - 1, 0] + h * np.exp(-x * x).sum()
        for j in range(1, i + 1):
            r[i, j] = r[i, j - 1] + (r[i, j - 1] - r[i - 1, j - 1]) / (4**j - 1)
    return r[-1, -1]


def simpson(y, dx):
    """Weights 1, 4, 2, ..., 4, 1 in a loop over samples."""
    total = y[0] + y[-1]
    for i in range(1, len(y) - 1):
        total += (4 if i % 2 else 2) * y[i]
    return total * dx / 3


def runge_kutta(f, y, t, dt, steps):
    """The classical four stages of a system given by a function."""
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + dt / 2, y + dt / 2 * k1)
        k3 = f(t + dt / 2, y + dt / 2 * k2)
        k4 = f(t + dt, y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += dt
    return t, y


def predator_prey(t, y):
    """Lotka and Volterra's rates."""
    return np.stack((1.1 * y[0] - 0.4 * y[0] * y[1], 0.1 * y[0] * y[1] - 0.4 * y[1]))


def lorenz(start, dt, steps, sigma=10.0, rho=28.0, beta=8.0 / 3.0):
    """Euler's path of the butterfly, scalars unpacked from an array."""
    path = np.empty((steps + 1, 3))
    path[0] = start
    for k in range(steps):
        x, y, z = path[k]
        path[k + 1, 0] = x + dt * sigma * (y - x)
        path[k + 1, 1] = y + dt * (x * (rho - z) - y)
        path[k + 1, 2] = z + dt * (x * y - beta * z)
    return path


def adaptive_step(y, t_end, tolerance):
    """Euler with steps that halve and grow by the estimated error."""
    t, dt, steps = 0.0, 0.5, 0
    while t < t_end:
        dt = min(dt, t_end - t)
        full = y + dt * -y
        half = y + dt / 2 * -y
        half = half + dt / 2 * -half
        error = np.max(np.abs(half - full))
        if error <= tolerance:
            t, y = t + dt, half
            dt *= 1.5
        else:
            dt *= 0.5
        steps += 1
    return y, steps


def sieve(n):
    """Primes below n."""
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for k in range(2, math.isqrt(n) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return np.nonzero(prime)[0]


def collatz(n):
    """How many steps each number up to n takes to one."""
    out = np.zeros(n + 1, np.int64)
    for start in range(1, n + 1):
        x = start
        while x != 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            out[start] += 1
    return out


def collatz_on_arrays(x):
    """The same for all at once, until all have arrived."""
    steps = np.zeros_like(x)
    while (x > 1).any():
        going = x > 1
        x = np.where(going, np.where(x % 2 == 0, x // 2, 3 * x + 1), x)
        steps += going
    return steps


def gcd(a, b):
    """Euclid's on arrays."""
    a, b = a.copy(), b.copy()
    while b.any():
        going = b != 0
        a[going], b[going] = b[going], a[going] % b[going]
    return a


def legendre(n, x):
    """A polynomial by its recurrence, and its largest value."""
    before, current = np.ones_like(x), x.copy()
    if n == 0:
        return before, before.max()
    for k in range(1, n):
        before, current = current, ((2 * k + 1) * x * current - k * before) / (k + 1)
    return current, current.max()


def pascal(n):
    """The triangle in a square, sums of neighbours above."""
    t = np.zeros((n, n), dtype=np.int64)
    t[:, 0] = 1
    for i in range(1, n):
        for j in range(1, i + 1):
            t[i, j] = t[i - 1, j - 1] + t[i - 1, j]
    return t


def arithmetic_geometric(a, b):
    """Gauss' mean of two numbers, and pi from it."""
    total, power = 0.25, 1.0
    while abs(a - b) > 1e-14:
        a, b, old = (a + b) / 2, math.sqrt(a * b), a
        total -= power * (a - old) ** 2
        power *= 2
    return (a + b) ** 2 / (4 * total), a


PROGRAMS = [
    (newton, lambda n, rng: (1.0 + n, 1e-9), (1, 3, 9), 0),
    (newton_on_arrays, lambda n, rng: (9 * rng.random(n) + 0.1, 1e-6), (2, 8, 50), 0),
    (newton_system, lambda n, rng: (np.array([2.0, 0.3 + n / 100]), n), (2, 4, 6), 0),
    (bisection, lambda n, rng: (0.0, 10.0, 9 * rng.random(n), 12), (2, 8, 50), 0),
    (bisection_on_scalars, lambda n, rng: ([1.0, 0.0, -n, -5.0], 0.0, 10.0), (1, 2, 5), 0),
    (golden_section, lambda n, rng: (2.0, 5.0, n), (3, 6, 12), 0),
    (horner, lambda n, rng: (rng.random(n), rng.random(6)), (2, 5, 9), 0),
    (durand_kerner, lambda n, rng: (np.concatenate(([1.0], rng.random(n))), 3), (2, 3, 4), 1e-12),
    (romberg, lambda n, rng: (n,), (2, 3, 5), 1e-14),
    (simpson, lambda n, rng: (rng.random(2 * n + 1), 0.1), (2, 5, 20), 0),
    (runge_kutta, lambda n, rng: (predator_prey, 5 * rng.random((2, n)), 0.0, 0.05, 3), (1, 5, 30), 0),
    (lorenz, lambda n, rng: (rng.random(3), 0.01, n), (3, 8, 20), 0),
    (adaptive_step, lambda n, rng: (rng.random(n), 2.0, 0.01), (1, 4, 9), 0),
    (sieve, lambda n, rng: (n,), (8, 30, 200), 0),
    (collatz, lambda n, rng: (n,), (3, 6, 12), 0),
    (collatz_on_arrays, lambda n, rng: (rng.integers(1, 20, n),), (2, 5, 15), 0),
    (gcd, lambda n, rng: (rng.integers(1, 200, n), rng.integers(1, 200, n)), (2, 6, 20), 0),
    (legendre, lambda n, rng: (n, np.linspace(-1, 1, 9)), (0, 3, 8), 0),
    (pascal, lambda n, rng: (n,), (2, 6, 12), 0),
    (arithmetic_geometric, lambda n, rng: (1.0, 1 / math.sqrt(1 + n)), (1, 2, 7), 0),
]
