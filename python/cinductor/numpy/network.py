"""Order statistics of few elements: a sorting network of minima and maxima.

Batcher's odd-even merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M) sorts any number
of elements by comparisons that do not depend on data. So it is element-wise arithmetic, which fuses, vectorises
over the other axes, and runs inside of loops. Only the part of the network on which the wanted positions depend is
built. `minimum` and `maximum` propagate a NaN, and the median depends on every element.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .surface import normal_axes

MOST = 32  # elements; for more, selection in linear time is better
FLOAT16, FLOAT32, FLOAT64 = (np.dtype(c) for c in "efd")


def exchanges(n: int) -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of elements that are compared and exchanged in sequence; then all n are sorted."""
    pairs = []
    for p in (1 << k for k in reversed(range(max(n - 1, 0).bit_length()))):
        q, r, d = 1 << (max(n - 1, 1).bit_length() - 1), 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
    return pairs


def ordered(values: list[Any], places: set[int]) -> list[Any]:
    """The values at these positions in ascending order."""
    wanted, steps = set(places), []
    for i, j in reversed(exchanges(len(values))):
        if i in wanted or j in wanted:
            steps.append((i, j, i in wanted, j in wanted))
            wanted |= {i, j}
    line = list(values)
    for i, j, takes_low, takes_high in reversed(steps):
        low, high = line[i], line[j]
        if takes_low:
            line[i] = np.minimum(low, high)
        if takes_high:
            line[j] = np.maximum(low, high)
    return [line[k] for k in sorted(places)]


def median_of_few(x: Any, axis: Any, keepdims: bool) -> Any | None:
    """np.median of an array with few elements along these axes; None if there are more, or an unknown number."""
    axes = normal_axes(axis, x.ndim)
    sizes = [x.shape[k] for k in axes]
    if any(type(n) is not int for n in sizes) or x.dtype.kind not in "fiub":
        return None
    count = math.prod(sizes)
    if not 0 < count <= MOST:
        return None
    lanes = []
    for place in itertools.product(*map(range, sizes)):
        index: list[Any] = [slice(None)] * x.ndim
        for k, at in zip(axes, place, strict=True):
            index[k] = slice(at, at + 1) if keepdims else at
        lanes.append(x[tuple(index)])
    middle = ordered(lanes, {(count - 1) // 2, count // 2})
    if x.dtype.kind != "f":
        middle = [value.astype(FLOAT64) for value in middle]
    zero = middle[0].dtype.type(0)  # NumPy takes the mean of the middle, whose sum begins with 0: it is no -0.0
    if len(middle) == 1:
        return zero + middle[0]
    if x.dtype == FLOAT16:  # like NumPy's mean, which sums in single precision
        first, second = (value.astype(FLOAT32) for value in middle)
        return ((zero + first + second) / np.float32(2)).astype(FLOAT16)
    return (zero + middle[0] + middle[1]) / middle[0].dtype.type(2)
