"""Random draws from a Generator argument, whose state afterwards is part of the result."""

import numpy as np


def estimate_pi(rng, count):
    """The share of points within a quarter circle."""
    x = rng.random(count)
    y = rng.random(count)
    return 4.0 * np.count_nonzero(x * x + y * y <= 1.0) / count


def estimate_pi_by_points(rng, count):
    """The same, a point at a time."""
    inside = 0
    for _ in range(count):
        x, y = rng.random(), rng.random()
        if x * x + y * y < 1.0:
            inside += 1
    return 4 * inside / count


def random_walk(rng, walkers, steps):
    """How far walkers get on a plane, by integers in four directions."""
    dx, dy = np.array([1, -1, 0, 0]), np.array([0, 0, 1, -1])
    x, y = np.zeros(walkers, np.int64), np.zeros(walkers, np.int64)
    furthest = np.zeros(walkers)
    for _ in range(steps):
        direction = rng.integers(0, 4, walkers)
        x += dx[direction]
        y += dy[direction]
        furthest = np.maximum(furthest, np.sqrt(x * x + y * y))
    return furthest


def ising(rng, spins, beta, sweeps):
    """Metropolis' algorithm, one random site at a time."""
    n = spins.shape[0]
    for _ in range(sweeps):
        for _ in range(n * n):
            i, j = rng.integers(0, n), rng.integers(0, n)
            around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
            cost = 2 * spins[i, j] * around
            if cost < 0 or rng.random() < np.exp(-cost * beta):
                spins[i, j] = -spins[i, j]
    return spins.sum()


def ising_chessboard(rng, spins, beta, sweeps):
    """The same, one colour of the board at a time, through masks."""
    n = spins.shape[0]
    rows, columns = np.ogrid[:n, :n]
    energies = []
    for _ in range(sweeps):
        for colour in range(2):
            around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            flip = rng.random(spins.shape) < np.exp(-2.0 * beta * spins * around)
            spins[flip & ((rows + columns) % 2 == colour)] *= -1
        energies.append(-np.mean(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))))
    return np.array(energies)


def option_price(rng, spot, strike, rate, sigma, years, paths, steps):
    """An Asian call: the mean along geometric Brownian paths."""
    dt = years / steps
    price = np.full(paths, spot)
    total = np.zeros(paths)
    for _ in range(steps):
        z = rng.normal(size=paths)
        price *= np.exp((rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
        total += price
    payoff = np.maximum(total / steps - strike, 0.0)
    return np.exp(-rate * years) * payoff.mean(), payoff.std() / np.sqrt(paths)


def metropolis_hastings(rng, steps, width):
    """A chain whose density is a mixture of two bells."""

    def log_density(x):
        return np.log(np.exp(-0.5 * (x - 2) ** 2) + 0.5 * np.exp(-0.5 * (x + 2) ** 2))

    chain = np.empty(steps)
    x = 0.0
    accepted = 0
    for k in range(steps):
        candidate = x + width * rng.standard_normal()
        if np.log(rng.random()) < log_density(candidate) - log_density(x):
            x = candidate
            accepted += 1
        chain[k] = x
    return chain, accepted


def bootstrap(rng, data, rounds):
    """The spread of the median under resampling."""
    medians = np.empty(rounds)
    for k in range(rounds):
        medians[k] = np.median(data[rng.integers(0, len(data), len(data))])
    return medians.mean(), np.percentile(medians, [5, 95])


def brownian_bridge(rng, levels):
    """A path refined level by level; each level draws half as wide."""
    path = np.zeros(2)
    scale = 1.0
    for _ in range(levels):
        middle = 0.5 * (path[:-1] + path[1:]) + scale * rng.normal(0.0, 1.0, path.size - 1)
        finer = np.empty(path.size + middle.size)
        finer[::2], finer[1::2] = path, middle
        path = finer
        scale *= 0.5**0.5
    return path


def simulated_annealing(rng, distances, temperature, cooling, steps):
    """A tour of towns in which pieces are turned round."""
    n = len(distances)
    tour = np.arange(n)
    length = distances[tour, np.roll(tour, -1)].sum()
    for _ in range(steps):
        i, j = sorted(rng.integers(0, n, 2))
        candidate = tour.copy()
        candidate[i : j + 1] = tour[i : j + 1][::-1]
        new = distances[candidate, np.roll(candidate, -1)].sum()
        if new < length or rng.random() < np.exp((length - new) / temperature):
            tour, length = candidate, new
        temperature *= cooling
    return tour, length


def percolation(rng, n, density):
    """Whether water gets through a random porous square, by spreading until it stops."""
    is_open = rng.random((n, n)) < density
    wet = np.zeros_like(is_open)
    wet[0] = is_open[0]
    while True:
        spread = wet.copy()
        spread[1:] |= wet[:-1]
        spread[:-1] |= wet[1:]
        spread[:, 1:] |= wet[:, :-1]
        spread[:, :-1] |= wet[:, 1:]
        spread &= is_open
        if np.array_equal(spread, wet):
            return bool(wet[-1].any()), wet
        wet = spread


def fresh(rng):
    """A Generator for a program, of its own."""
    return np.random.default_rng(int(rng.integers(1 << 30)))


def spins_of(n, rng):
    """A square of spins."""
    return 2 * rng.integers(0, 2, (n, n)) - 1


PROGRAMS = [
    (estimate_pi, lambda n, rng: (fresh(rng), n), (10, 100, 1000), 0),
    (estimate_pi_by_points, lambda n, rng: (fresh(rng), n), (5, 10, 30), 0),
    (random_walk, lambda n, rng: (fresh(rng), n, 5), (3, 10, 50), 0),
    (ising, lambda n, rng: (fresh(rng), spins_of(n, rng), 0.4, 1), (3, 4, 6), 0),
    (ising_chessboard, lambda n, rng: (fresh(rng), spins_of(n, rng), 0.4, 2), (4, 6, 12), 1e-14),
    (option_price, lambda n, rng: (fresh(rng), 100.0, 95.0, 0.05, 0.2, 1.0, n, 6), (5, 30, 200), 1e-12),
    (metropolis_hastings, lambda n, rng: (fresh(rng), n, 1.5), (4, 10, 25), 1e-12),
    (bootstrap, lambda n, rng: (fresh(rng), rng.random(n), 6), (5, 12, 40), 1e-13),
    (brownian_bridge, lambda n, rng: (fresh(rng), n), (2, 4, 7), 0),
    (simulated_annealing, lambda n, rng: (fresh(rng), rng.random((n, n)), 1.0, 0.9, 6), (4, 6, 10), 1e-13),
    (percolation, lambda n, rng: (fresh(rng), n, 0.65), (4, 6, 10), 0),
]
