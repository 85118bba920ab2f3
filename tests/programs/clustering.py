"""Groups, neighbours and fits of points."""

import numpy as np


def k_means(points, centres, rounds):
    """Lloyd's algorithm with masks; a cluster without points keeps its centre."""
    for _ in range(rounds):
        square = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        label = square.argmin(axis=1)
        for k in range(len(centres)):
            mine = label == k
            if mine.any():
                centres[k] = points[mine].mean(axis=0)
    return label


def k_means_until_still(points, k, limit=20):
    """The same with bincount, until no label changes."""
    centres = points[:k].copy()
    label = np.full(len(points), -1)
    for count in range(limit):  # noqa: B007  (used after the loop)
        new = np.argmin(np.linalg.norm(points[:, None] - centres, axis=2), axis=1)
        if (new == label).all():
            break
        label = new
        sizes = np.bincount(label, minlength=k)
        for axis in range(points.shape[1]):
            sums = np.bincount(label, weights=points[:, axis], minlength=k)
            centres[:, axis] = sums / np.maximum(sizes, 1)
    return centres, label, count


def nearest_neighbours(queries, points, labels, k):
    """A vote of the k nearest, one query at a time."""
    out = np.empty(len(queries), labels.dtype)
    for i, q in enumerate(queries):
        near = np.argsort(((points - q) ** 2).sum(axis=1), kind="stable")[:k]
        out[i] = np.bincount(labels[near]).argmax()
    return out


def nearest_by_elements(queries, points):
    """The nearest point of each query, with running minima in scalars."""
    index = np.zeros(queries.shape[0], np.int32)
    distance = np.zeros(queries.shape[0])
    for i in range(queries.shape[0]):
        best = np.inf
        for j in range(points.shape[0]):
            d = 0.0
            for k in range(points.shape[1]):
                d += (queries[i, k] - points[j, k]) ** 2
            if d < best:
                best = d
                index[i] = j
        distance[i] = best
    return index, distance


def mixture(x, weight, mean, deviation, rounds):
    """Expectation and maximisation of bells in one dimension."""
    for _ in range(rounds):
        z = (x[:, None] - mean) / deviation
        density = weight * np.exp(-0.5 * z * z) / (deviation * np.sqrt(2 * np.pi))
        share = density / density.sum(axis=1, keepdims=True)
        total = share.sum(axis=0)
        weight = total / x.size
        mean = (share * x[:, None]).sum(axis=0) / total
        deviation = np.sqrt((share * (x[:, None] - mean) ** 2).sum(axis=0) / total) + 1e-3
    return weight, mean, deviation


def line_fit(x, y):
    """Least squares from five sums in one pass over the elements."""
    n = sx = sy = sxx = sxy = 0.0
    for a, b in zip(x, y):
        n += 1
        sx += a
        sy += b
        sxx += a * a
        sxy += a * b
    slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    return slope, (sy - slope * sx) / n


def running_moments(x):
    """Welford's mean and variance, and the extremes, in one pass."""
    mean = m2 = 0.0
    low, high = x[0], x[0]
    for count, value in enumerate(x, start=1):
        delta = value - mean
        mean += delta / count
        m2 += delta * (value - mean)
        low = min(low, value)
        high = max(high, value)
    return mean, m2 / (len(x) - 1), low, high


def single_linkage(distance, clusters):
    """Merges the two nearest clusters until so many are left."""
    n = distance.shape[0]
    d = distance + np.diag(np.full(n, np.inf))
    label = np.arange(n)
    for _ in range(n - clusters):
        i, j = divmod(int(d.argmin()), n)
        label[label == label[j]] = label[i]
        merged = np.minimum(d[i], d[j])
        d[i] = d[:, i] = merged
        d[j] = d[:, j] = np.inf
        d[i, i] = np.inf
    return label


def apart(n, rng):
    """Distances of n points."""
    p = rng.random((n, 2))
    return np.sqrt(((p[:, None] - p) ** 2).sum(-1))


PROGRAMS = [
    (k_means, lambda n, rng: (rng.random((n, 2)), rng.random((3, 2)), 3), (4, 10, 30), 1e-13),
    (k_means_until_still, lambda n, rng: (rng.random((n, 2)), 3), (4, 10, 30), 1e-13),
    (
        nearest_neighbours,
        lambda n, rng: (rng.random((n, 3)), rng.random((10, 3)), rng.integers(0, 4, 10), 3),
        (2, 5, 9),
        0,
    ),
    (nearest_by_elements, lambda n, rng: (rng.random((n, 2)), rng.random((n + 1, 2))), (2, 5, 8), 0),
    (mixture, lambda n, rng: (rng.normal(size=n), np.full(2, 0.5), np.array([-1.0, 1.0]), np.ones(2), 3), (5, 20, 99), 1e-12),
    (line_fit, lambda n, rng: (rng.random(n), rng.random(n)), (3, 10, 40), 0),
    (running_moments, lambda n, rng: (rng.random(n),), (3, 10, 30), 0),
    (single_linkage, lambda n, rng: (apart(n, rng), 2), (3, 5, 8), 0),
]
