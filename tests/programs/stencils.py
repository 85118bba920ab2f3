"""Stencils on grids of one, two and three dimensions, by slices and by elements."""

import numpy as np


def jacobi_1d(a, b, steps):
    """Two arrays take turns, each the mean of three neighbours of the other."""
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0


def jacobi_2d(u, steps):
    """The five-point mean; names are swapped after each step."""
    new = u.copy()
    for _ in range(steps):
        new[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, new = new, u
    return u


def seidel_2d(a, steps):
    """Gauss-Seidel: nine neighbours, half of them already new, element by element."""
    n, m = a.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                    + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip
    return a


def red_black(u, f, omega, steps):
    """Over-relaxation of the two colours of a chessboard, by strided slices."""
    for _ in range(steps):
        for colour in (0, 1):
            for start in (1, 2):
                shift = 1 + (start + colour) % 2
                core = u[start:-1:2, shift:-1:2]
                around = (
                    u[start - 1 : -2 : 2, shift:-1:2]
                    + u[start + 1 :: 2, shift:-1:2]
                    + u[start:-1:2, shift - 1 : -2 : 2]
                    + u[start:-1:2, shift + 1 :: 2]
                )
                core += omega * (0.25 * (around - f[start:-1:2, shift:-1:2]) - core)
    return u


def heat_3d(u, alpha, steps):
    """Explicit heat flow in a box whose walls keep their temperature."""
    for _ in range(steps):
        core = u[1:-1, 1:-1, 1:-1]
        flow = u[2:, 1:-1, 1:-1] - 2.0 * core + u[:-2, 1:-1, 1:-1]
        flow = flow + (u[1:-1, 2:, 1:-1] - 2.0 * core + u[1:-1, :-2, 1:-1])
        flow = flow + (u[1:-1, 1:-1, 2:] - 2.0 * core + u[1:-1, 1:-1, :-2])
        u[1:-1, 1:-1, 1:-1] = core + alpha * flow
    return u


def periodic_diffusion(u, rate, steps):
    """A ring in each axis, by roll."""
    for _ in range(steps):
        laplacian = -4 * u
        for axis in range(u.ndim):
            laplacian += np.roll(u, 1, axis=axis) + np.roll(u, -1, axis=axis)
        u = u + rate * laplacian
    return u


def reaction_diffusion(u, v, feed, kill, steps):
    """Gray and Scott's two chemicals, float32, written in place through views."""
    core_u, core_v = u[1:-1, 1:-1], v[1:-1, 1:-1]
    for _ in range(steps):
        lu = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * core_u
        lv = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * core_v
        uvv = core_u * core_v * core_v
        core_u += 0.16 * lu - uvv + feed * (1 - core_u)
        core_v += 0.08 * lv + uvv - (feed + kill) * core_v
        for w in (u, v):
            w[0, :], w[-1, :] = w[-2, :], w[1, :]
            w[:, 0], w[:, -1] = w[:, -2], w[:, 1]


def fdtd_1d(ez, hy, source, steps):
    """Yee's scheme on a line with a hard source and absorbing ends."""
    size = len(ez)
    for t in range(steps):
        hy[:-1] += 0.5 * (ez[1:] - ez[:-1])
        left, right = ez[1], ez[-2]
        ez[1:] += 0.5 * (hy[1:] - hy[:-1])
        ez[0], ez[-1] = left, right
        ez[size // 2] += source[t % len(source)]
    return ez


def fdtd_2d(ex, ey, hz, pulse):
    """Maxwell's equations in the plane, one step for each value of the pulse."""
    for t in range(pulse.shape[0]):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def adi(u, steps):
    """Alternating directions: a tridiagonal sweep along each axis in each step."""
    n = u.shape[0]
    v, p, q = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    dx, dt = 1.0 / n, 1.0 / steps
    a = -dt / (2.0 * dx * dx)
    b = 1.0 - 2.0 * a
    for _ in range(1, steps + 1):
        for x, y in ((u.T, v), (v.T, u)):
            y[0, 1:-1] = 1.0
            p[1:-1, 0] = 0.0
            q[1:-1, 0] = y[0, 1:-1]
            for j in range(1, n - 1):
                p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
                q[1:-1, j] = (
                    -a * x[j, :-2] + (1.0 + 2.0 * a) * x[j, 1:-1] - a * x[j, 2:] - a * q[1:-1, j - 1]
                ) / (a * p[1:-1, j - 1] + b)
            y[n - 1, 1:-1] = 1.0
            for j in range(n - 2, 0, -1):
                y[j, 1:-1] = p[1:-1, j] * y[j + 1, 1:-1] + q[1:-1, j]
    return u


def vertical_sweep(wind, upper, lower, right):
    """Columns of an atmosphere: Thomas' algorithm over the last axis, all columns at once."""
    levels = wind.shape[2]
    gamma = np.empty(wind.shape, wind.dtype)
    out = np.empty_like(right)
    beta = wind[:, :, 0].copy()
    out[:, :, 0] = right[:, :, 0] / beta
    for k in range(1, levels):
        gamma[:, :, k] = upper[:, :, k - 1] / beta
        beta = wind[:, :, k] - lower[:, :, k] * gamma[:, :, k]
        out[:, :, k] = (right[:, :, k] - lower[:, :, k] * out[:, :, k - 1]) / beta
    for k in range(levels - 2, -1, -1):
        out[:, :, k] -= gamma[:, :, k + 1] * out[:, :, k + 1]
    return out


def horizontal_diffusion(field, coefficient):
    """A limited diffusion of weather models: laplacian, then fluxes that may not go uphill."""
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flux = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux = np.where(flux * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, flux)
    across = lap[1:-1, 1:] - lap[1:-1, :-1]
    across = np.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, across)
    return field[2:-2, 2:-2] - coefficient * (flux[1:, :] - flux[:-1, :] + across[:, 1:] - across[:, :-1])


def upwind(u, speed, courant, steps):
    """Advection that looks where the wind comes from, element by element, on a ring."""
    n = u.shape[0]
    for _ in range(steps):
        old = u.copy()
        for i in range(n):
            if speed[i] > 0:
                u[i] = old[i] - courant * speed[i] * (old[i] - old[i - 1])
            else:
                u[i] = old[i] - courant * speed[i] * (old[(i + 1) % n] - old[i])
    return u


def cavity_flow(u, v, p, steps, sweeps, dt, nu):
    """Navier and Stokes in a cavity under a moving lid, pressure by a few Poisson sweeps."""
    dx = 1.0 / (u.shape[0] - 1)
    for _ in range(steps):
        div = (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)
        b = div / dt - div**2
        for _ in range(sweeps):
            old = p.copy()
            p[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - dx**2 * b) / 4
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        un, vn = u.copy(), v.copy()
        for w, wn, px in ((u, un, p[1:-1, 2:] - p[1:-1, :-2]), (v, vn, p[2:, 1:-1] - p[:-2, 1:-1])):
            core = wn[1:-1, 1:-1]
            w[1:-1, 1:-1] = (
                core
                - un[1:-1, 1:-1] * dt / dx * (core - wn[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dx * (core - wn[:-2, 1:-1])
                - dt / (2 * dx) * px
                + nu * dt / dx**2 * (wn[1:-1, 2:] + wn[1:-1, :-2] + wn[2:, 1:-1] + wn[:-2, 1:-1] - 4 * core)
            )
        for w in u, v:
            w[0, :] = w[:, 0] = w[:, -1] = 0
        u[-1, :] = 1
        v[-1, :] = 0
    return u, v, p


def relax_until_still(u, tolerance):
    """Laplace's equation until no cell changes by more than the tolerance; how often it took."""
    change = tolerance + 1
    sweeps = 0
    while change > tolerance:
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        change = np.max(np.abs(u - old))
        sweeps += 1
    return u, sweeps, change


PROGRAMS = [
    (jacobi_1d, lambda n, rng: (rng.random(n), rng.random(n), 4), (5, 12, 40), 0),
    (jacobi_2d, lambda n, rng: (rng.random((n, n + 2)), 5), (4, 9, 20), 0),
    (seidel_2d, lambda n, rng: (rng.random((n, n)), 2), (4, 6, 9), 0),
    (red_black, lambda n, rng: (rng.random((n, n)), rng.random((n, n)), 1.5, 2), (6, 10, 16), 0),
    (heat_3d, lambda n, rng: (rng.random((n, n, n)), 0.1, 3), (4, 5, 8), 0),
    (periodic_diffusion, lambda n, rng: (rng.random((n, n)), 0.05, 4), (4, 7, 16), 0),
    (
        reaction_diffusion,
        lambda n, rng: (rng.random((n, n), np.float32), rng.random((n, n), np.float32), 0.04, 0.06, 3),
        (5, 8, 17),
        0,
    ),
    (fdtd_1d, lambda n, rng: (np.zeros(n), np.zeros(n), rng.random(3), 6), (6, 11, 50), 0),
    (fdtd_2d, lambda n, rng: (*rng.random((3, n, n + 1)), rng.random(4)), (4, 8, 20), 0),
    (adi, lambda n, rng: (rng.random((n, n)), 2), (5, 8, 12), 0),
    (vertical_sweep, lambda n, rng: (rng.random((3, 4, n)) + 2, *rng.random((3, 3, 4, n))), (4, 7, 12), 0),
    (horizontal_diffusion, lambda n, rng: (rng.random((n, n, 3)), rng.random((n - 4, n - 4, 3))), (5, 8, 20), 0),
    (upwind, lambda n, rng: (rng.random(n), rng.random(n) - 0.5, 0.4, 2), (4, 9, 16), 0),
    (cavity_flow, lambda n, rng: (*rng.random((3, n, n)), 2, 3, 0.001, 0.1), (4, 7, 12), 0),
    (relax_until_still, lambda n, rng: (rng.random((n, n)), 0.05), (4, 6, 9), 0),
]
