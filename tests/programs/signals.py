"""Transforms, filters, histograms and images."""

import numpy as np


def fft_recursive(x):
    """Cooley and Tukey's, by halves; a length that is odd is done by definition."""
    n = x.shape[0]
    if n % 2:
        k = np.arange(n)
        return np.exp(-2j * np.pi * k[:, None] * k / n) @ x
    even, odd = fft_recursive(x[::2]), fft_recursive(x[1::2])
    odd = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + odd, even - odd])


def fft_in_place(x):
    """Radix two: bit reversal, then butterflies on slices."""
    n = len(x)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    half = 1
    while half < n:
        turn = np.exp(-1j * np.pi * np.arange(half) / half)
        for start in range(0, n, 2 * half):
            low = x[start : start + half].copy()
            high = turn * x[start + half : start + 2 * half]
            x[start : start + half] = low + high
            x[start + half : start + 2 * half] = low - high
        half *= 2


def stockham(x):
    """An FFT that sorts itself, whole passes by reshape."""
    n = x.size
    y = x.reshape(n, 1)
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        turn = np.exp(-1j * np.pi * np.arange(y.shape[1]) / y.shape[1])
        even, odd = y[:half], y[half:] * turn
        y = np.concatenate((even + odd, even - odd), axis=1)
    return y.ravel()


def goertzel(x, k):
    """One bin of the spectrum by a recurrence on scalars."""
    omega = 2.0 * np.pi * k / len(x)
    coefficient = 2.0 * np.cos(omega)
    s1 = s2 = 0.0
    for value in x:
        s1, s2 = value + coefficient * s1 - s2, s1
    return s1 * s1 + s2 * s2 - coefficient * s1 * s2


def one_pole(x, alpha):
    """Exponential smoothing, each value from the one before."""
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = alpha * x[i] + (1 - alpha) * y[i - 1]
    return y


def biquad(x, b, a):
    """A second-order section with its state in scalars, float32 samples."""
    y = np.zeros(len(x), x.dtype)
    z1 = z2 = 0.0
    for i in range(len(x)):
        out = b[0] * x[i] + z1
        z1 = b[1] * x[i] - a[1] * out + z2
        z2 = b[2] * x[i] - a[2] * out
        y[i] = out
    return y


def iir_channels(x, b, a):
    """Any order, all channels at once: slices of the past, newest first."""
    order = len(b) - 1
    past_x = np.zeros((order + 1, x.shape[1]))
    past_y = np.zeros((order, x.shape[1]))
    y = np.empty(x.shape)
    for t in range(x.shape[0]):
        past_x[1:] = past_x[:-1].copy()
        past_x[0] = x[t]
        y[t] = b @ past_x - a[1:] @ past_y
        past_y[1:] = past_y[:-1].copy()
        past_y[0] = y[t]
    return y


def deriche(image, alpha):
    """A recursive smoother, forwards and backwards along rows."""
    k = (1 - np.exp(-alpha)) ** 2 / (1 + 2 * alpha * np.exp(-alpha) - np.exp(2 * -alpha))
    a1, a2 = k, k * np.exp(-alpha) * (alpha - 1)
    b1, b2 = 2 ** (-alpha), -np.exp(-2 * alpha)
    y1, y2 = np.empty_like(image), np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, image.shape[1]):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -1] = 0.0
    y2[:, -2] = a1 * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        y2[:, j] = a1 * image[:, j + 1] + a2 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    return y1 + y2


def convolve_windows(image, kernel):
    """Each output element is the sum of a window times the kernel."""
    kh, kw = kernel.shape
    out = np.zeros((image.shape[0] - kh + 1, image.shape[1] - kw + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i : i + kh, j : j + kw] * kernel)
    return out


def convolve_shifts(image, kernel):
    """The same by shifted copies of the whole image, loops over the kernel."""
    kh, kw = kernel.shape
    h, w = image.shape[0] - kh + 1, image.shape[1] - kw + 1
    out = np.zeros((h, w), image.dtype)
    for i in range(kh):
        for j in range(kw):
            out += kernel[i, j] * image[i : i + h, j : j + w]
    return out


def sobel(image):
    """The slope's size and direction in an image of bytes."""
    g = image.astype(np.float32)
    gx = g[:-2, 2:] + 2 * g[1:-1, 2:] + g[2:, 2:] - g[:-2, :-2] - 2 * g[1:-1, :-2] - g[2:, :-2]
    gy = g[2:, :-2] + 2 * g[2:, 1:-1] + g[2:, 2:] - g[:-2, :-2] - 2 * g[:-2, 1:-1] - g[:-2, 2:]
    return np.clip(np.hypot(gx, gy), 0, 255).astype(np.uint8), np.arctan2(gy, gx)


def median_filter(x, width):
    """Of windows that shrink at the ends."""
    half = width // 2
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.median(x[max(0, i - half) : i + half + 1])
    return out


def dithering(image):
    """Floyd and Steinberg's: the error of each pixel goes to those not yet seen."""
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = 255.0 if old > 127 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < w:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    image[y + 1, x + 1] += error * 1 / 16
    return image.astype(np.uint8)


def histogram(data, low, high, bins):
    """By a loop over the data; what is outside is not counted."""
    counts = np.zeros(bins, dtype=np.int64)
    width = (high - low) / bins
    for value in data:
        if value < low or value >= high:
            continue
        counts[int((value - low) / width)] += 1
    return counts


def binned_means(radius, values, edges):
    """An azimuthal average: a mask for each bin, NaN where it is empty."""
    out = np.zeros(len(edges) - 1)
    for i in range(len(edges) - 1):
        chosen = values[(radius >= edges[i]) & (radius < edges[i + 1])]
        out[i] = chosen.mean() if chosen.size else np.nan
    return out


def histogram_2d(x, y, weights, bins):
    """By np.add.at on floored coordinates in [0, 1)."""
    grid = np.zeros((bins, bins))
    i = np.floor(x * bins).astype(int)
    j = np.floor(y * bins).astype(int)
    np.add.at(grid, (i, j), weights)
    return grid


def haar(x):
    """A wavelet transform in place, level by level."""
    n = x.size
    root = np.sqrt(2.0)
    while n > 1:
        half = n // 2
        low = (x[:n:2] + x[1:n:2]) / root
        high = (x[:n:2] - x[1:n:2]) / root
        x[:half] = low
        x[half:n] = high
        n = half
    return x


def run_lengths(x):
    """Values and lengths of runs: lists that grow, then arrays."""
    values, lengths = [], []
    for v in x:
        if values and values[-1] == v:
            lengths[-1] += 1
        else:
            values.append(v)
            lengths.append(1)
    return np.array(values), np.array(lengths)


def run_lengths_by_edges(x):
    """The same from the places where the value changes."""
    edge = np.flatnonzero(x[1:] != x[:-1]) + 1
    start = np.concatenate(([0], edge))
    return x[start], np.diff(np.concatenate((start, [x.size])))


def compressor(x, threshold, ratio, attack, release):
    """An audio compressor: an envelope that rises and falls at different speeds."""
    envelope = 0.0
    out = np.zeros_like(x)
    for i, sample in enumerate(x):
        level = abs(sample)
        speed = attack if level > envelope else release
        envelope = speed * envelope + (1 - speed) * level
        gain = 1.0
        if envelope > threshold:
            gain = (threshold + (envelope - threshold) / ratio) / envelope
        out[i] = gain * sample
    return out


def zero_crossings(x):
    """Where a signal changes sign, interpolated between samples."""
    i = np.nonzero(np.diff(np.signbit(x)))[0]
    return i - x[i] / (x[i + 1] - x[i])


def complex_noise(n, rng):
    """2**n complex samples."""
    return rng.normal(size=2**n) + 1j * rng.normal(size=2**n)


def low_pass():
    """Coefficients of a stable section."""
    return np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.4, 0.2])


PROGRAMS = [
    (fft_recursive, lambda n, rng: (complex_noise(n, rng),), (1, 3, 4), 1e-13),
    (fft_in_place, lambda n, rng: (complex_noise(n, rng),), (1, 3, 5), 1e-13),
    (stockham, lambda n, rng: (complex_noise(n, rng),), (1, 3, 6), 1e-13),
    (goertzel, lambda n, rng: (rng.random(n), 2), (4, 9, 40), 1e-12),
    (one_pole, lambda n, rng: (rng.random(n), 0.3), (3, 9, 60), 0),
    (biquad, lambda n, rng: (rng.random(n, np.float32), *low_pass()), (3, 9, 30), 0),
    (iir_channels, lambda n, rng: (rng.random((n, 2)), *low_pass()), (3, 6, 12), 1e-13),
    (deriche, lambda n, rng: (rng.random((n, n)), 0.25), (4, 7, 12), 1e-12),
    (convolve_windows, lambda n, rng: (rng.random((n, n)), rng.random((3, 2))), (4, 6, 9), 1e-14),
    (convolve_shifts, lambda n, rng: (rng.integers(0, 9, (n, n)), rng.integers(0, 9, (3, 3))), (4, 8, 20), 0),
    (sobel, lambda n, rng: (rng.integers(0, 256, (n, n), np.uint8),), (4, 9, 20), 1e-6),
    (median_filter, lambda n, rng: (rng.random(n), 5), (4, 9, 16), 0),
    (dithering, lambda n, rng: (255 * rng.random((n, n)),), (3, 5, 8), 0),
    (histogram, lambda n, rng: (rng.random(n), 0.1, 0.9, 4), (5, 12, 40), 0),
    (binned_means, lambda n, rng: (rng.random(n), rng.random(n), np.linspace(0, 1.2, 7)), (5, 30, 99), 1e-14),
    (histogram_2d, lambda n, rng: (*rng.random((3, n)), 3), (5, 20, 99), 0),
    (haar, lambda n, rng: (rng.random(2**n),), (1, 3, 6), 0),
    (run_lengths, lambda n, rng: (rng.integers(0, 2, n),), (3, 8, 25), 0),
    (run_lengths_by_edges, lambda n, rng: (rng.integers(0, 2, n),), (3, 8, 99), 0),
    (compressor, lambda n, rng: (rng.random(n) - 0.5, 0.2, 4.0, 0.3, 0.8), (3, 8, 20), 0),
    (zero_crossings, lambda n, rng: (rng.random(n) - 0.5,), (5, 9, 99), 0),
]
