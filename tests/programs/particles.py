"""Bodies that attract, repel, collide and follow each other."""

import numpy as np


def n_body(mass, position, velocity, dt, steps, softening=0.1):
    """Gravity between all pairs by broadcasting; kinetic and potential energy after each step."""
    kinetic, potential = np.zeros(steps), np.zeros(steps)
    for step in range(steps):
        apart = position[None, :, :] - position[:, None, :]
        square = (apart**2).sum(axis=-1) + softening**2
        force = (apart / square[:, :, None] ** 1.5 * mass[None, :, None]).sum(axis=1)
        velocity += dt * force
        position += dt * velocity
        kinetic[step] = 0.5 * np.sum(mass[:, None] * velocity**2)
        upper = np.triu(-(mass[:, None] * mass[None, :]) / np.sqrt(square), 1)
        potential[step] = upper.sum()
    return kinetic, potential


def n_body_by_pairs(mass, position, velocity, dt, steps):
    """The same by loops over pairs, each pair once, action and reaction."""
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                d = position[j] - position[i]
                square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01
                pull = dt / (square * np.sqrt(square))
                velocity[i] += mass[j] * pull * d
                velocity[j] -= mass[i] * pull * d
        position += dt * velocity


def lennard_jones(position, cutoff):
    """Forces and energy of pairs nearer than the cutoff, element by element with continue."""
    n = position.shape[0]
    force = np.zeros_like(position)
    energy = 0.0
    for i in range(n):
        for j in range(i):
            d = position[i] - position[j]
            r2 = np.dot(d, d)
            if r2 > cutoff * cutoff:
                continue
            inverse = 1.0 / r2**3
            energy += 4.0 * inverse * (inverse - 1.0)
            push = 24.0 * inverse * (2.0 * inverse - 1.0) / r2
            force[i] += push * d
            force[j] -= push * d
    return force, energy


def leapfrog(x, v, omega, dt, steps):
    """An oscillator's path, velocities half a step behind."""
    path = np.empty((steps + 1, *x.shape))
    path[0] = x
    v = v - 0.5 * dt * omega**2 * x
    for k in range(steps):
        v = v - dt * omega**2 * x if k else v
        x = x + dt * v
        path[k + 1] = x
    return path


def verlet_chain(x, rest, stiffness, dt, steps):
    """A hanging chain of springs; its first bead is fixed."""
    old = x.copy()
    for _ in range(steps):
        link = x[1:] - x[:-1]
        length = np.hypot(link[:, 0], link[:, 1])[:, np.newaxis]
        tension = stiffness * (length - rest) * link / length
        force = np.zeros_like(x)
        force[:-1] += tension
        force[1:] -= tension
        force[:, 1] -= 9.81
        new = 2 * x - old + dt * dt * force
        new[0] = x[0]
        old, x = x, new
    return x


def bounce(position, velocity, dt, steps):
    """A gas in a box: walls turn velocities round, through masks."""
    hits = 0
    for _ in range(steps):
        position += dt * velocity
        low, high = position < 0, position > 1
        velocity[low | high] *= -1
        np.clip(position, 0.0, 1.0, out=position)
        hits += np.count_nonzero(low) + np.count_nonzero(high)
    return hits


def flock(position, heading, radius, speed, steps):
    """Vicsek's birds: each turns to the mean heading of those near it."""
    for _ in range(steps):
        dx = position[:, None, 0] - position[None, :, 0]
        dy = position[:, None, 1] - position[None, :, 1]
        near = (dx * dx + dy * dy < radius * radius).astype(float)
        heading = np.arctan2(near @ np.sin(heading), near @ np.cos(heading))
        position[:, 0] += speed * np.cos(heading)
        position[:, 1] += speed * np.sin(heading)
        position %= 1.0
    return heading


def neighbour_lists(position, radius):
    """Who is near whom, as a list of index arrays of different lengths."""
    lists = []
    for i in range(len(position)):
        d = np.abs(position - position[i]).max(axis=1)
        near = np.nonzero(d < radius)[0]
        lists.append(near[near != i])
    return lists


def charge_on_grid(position, charge, cells):
    """Clouds in cells: each particle gives to two grid points in proportion."""
    grid = np.zeros(cells + 1, dtype=np.float32)
    for x, q in zip(position, charge):
        cell = int(x * cells)
        part = np.float32(x * cells - cell)
        grid[cell] += q * (1 - part)
        grid[cell + 1] += q * part
    return grid


def bodies(n, rng):
    """Masses, positions, velocities, dt and steps."""
    return rng.random(n) + 0.5, rng.random((n, 3)), rng.random((n, 3)) - 0.5, 0.01, 2


PROGRAMS = [
    (n_body, bodies, (3, 6, 12), 1e-12),
    (n_body_by_pairs, bodies, (3, 5, 8), 0),
    (lennard_jones, lambda n, rng: (3 * rng.random((n, 3)), 1.5), (3, 5, 8), 1e-12),
    (leapfrog, lambda n, rng: (rng.random(n), rng.random(n), 1.7, 0.1, n), (3, 6, 12), 0),
    (verlet_chain, lambda n, rng: (np.cumsum(rng.random((n, 2)), axis=0), 0.5, 10.0, 0.01, 4), (3, 6, 20), 1e-13),
    (bounce, lambda n, rng: (rng.random((n, 2)), 4 * rng.random((n, 2)) - 2, 0.1, 4), (3, 8, 30), 0),
    (flock, lambda n, rng: (rng.random((n, 2)), 6 * rng.random(n), 0.3, 0.05, 2), (3, 6, 12), 1e-12),
    (neighbour_lists, lambda n, rng: (rng.random((n, 3)), 0.4), (3, 6, 10), 0),
    (charge_on_grid, lambda n, rng: (rng.random(n), rng.random(n).astype(np.float32), 4), (3, 6, 12), 0),
]
