"""Iterations of the complex plane: the Mandelbrot set in three styles, and its kin."""

import numpy as np


def mandelbrot_by_pixels(xmin, xmax, ymin, ymax, n, limit):
    """A while loop for each pixel, on scalars."""
    counts = np.zeros((n, n), dtype=np.int32)
    for i in range(n):
        for j in range(n):
            cr = xmin + (xmax - xmin) * j / (n - 1)
            ci = ymin + (ymax - ymin) * i / (n - 1)
            zr = zi = 0.0
            k = 0
            while k < limit and zr * zr + zi * zi <= 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                k += 1
            counts[i, j] = k
    return counts


def mandelbrot_by_masks(c, limit):
    """All pixels at once; a mask says which ones go on."""
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=np.int64)
    for k in range(limit):
        going = np.abs(z) < 2.0
        counts[going] = k
        z[going] = z[going] ** 2 + c[going]
    counts[counts == limit - 1] = 0
    return z, counts


def mandelbrot_by_shrinking(c, limit):
    """Pixels that have left are taken out, so that the arrays get shorter."""
    counts = np.full(c.size, limit, dtype=np.int64)
    where = np.arange(c.size)
    c = c.ravel()
    z = np.zeros(c.shape, c.dtype)
    for k in range(limit):
        if len(z) == 0:
            break
        z = z * z + c
        left = z.real * z.real + z.imag * z.imag > 4.0
        counts[where[left]] = k + 1
        stay = ~left
        z, c, where = z[stay], c[stay], where[stay]
    return counts


def mandelbrot_real(x, y, limit):
    """In two real arrays and without masks: all go on, overflow is nobody's business."""
    zr, zi = np.zeros_like(x), np.zeros_like(y)
    counts = np.zeros(x.shape, np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(limit):
            zr, zi = zr * zr - zi * zi + x, 2 * zr * zi + y
            counts += zr * zr + zi * zi < 4.0
    return counts


def julia(z, c, limit):
    """Like Mandelbrot's with the constant given, on complex scalars of an array."""
    out = np.zeros(z.shape, np.int64)
    for i in np.ndindex(z.shape):
        w = z[i]
        for k in range(limit):  # noqa: B007  (used after the loop)
            if abs(w) > 2:
                break
            w = w * w + c
        else:
            k = limit
        out[i] = k
    return out


def newton_fractal(z, steps):
    """To which cube root of one each start runs."""
    for _ in range(steps):
        z = z - (z**3 - 1) / (3 * z**2)
    roots = np.exp(2j * np.pi * np.arange(3) / 3)
    return np.argmin(np.abs(z[..., None] - roots), axis=-1)


def burning_ship(x, y, limit):
    """Absolute values before squaring; np.where keeps what has left."""
    zx, zy = x * 0, y * 0
    steps = np.zeros(x.shape, int)
    for _ in range(limit):
        inside = zx * zx + zy * zy < 4
        zx, zy = (
            np.where(inside, zx * zx - zy * zy + x, zx),
            np.where(inside, 2 * np.abs(zx * zy) + y, zy),
        )
        steps = steps + inside
    return steps


def plane(n):
    """A grid of the complex plane."""
    return np.linspace(-2.0, 0.6, n) + 1j * np.linspace(-1.2, 1.1, n)[:, None]


PROGRAMS = [
    (mandelbrot_by_pixels, lambda n, rng: (-2.0, 0.6, -1.2, 1.1, n, 8), (2, 4, 6), 0),
    (mandelbrot_by_masks, lambda n, rng: (plane(n), 6), (3, 6, 12), 1e-12),
    (mandelbrot_by_shrinking, lambda n, rng: (plane(n), 6), (3, 6, 12), 0),
    (mandelbrot_real, lambda n, rng: (np.linspace(-2, 1, n), np.linspace(-1, 1, n), 9), (3, 10, 40), 0),
    (julia, lambda n, rng: (plane(n) + 0.7, -0.8 + 0.156j, 5), (2, 3, 5), 0),
    (newton_fractal, lambda n, rng: (plane(n) + 0.7, 6), (3, 6, 12), 0),
    (burning_ship, lambda n, rng: (np.linspace(-2, 1, n)[None, :], np.linspace(-1, 1, n)[:, None], 6), (3, 6, 15), 0),
]
