"""Order by comparison, by networks and by counting."""

import numpy as np


def odd_even_network(x):
    """n rounds of neighbours that exchange, by slices."""
    n = x.size
    for k in range(n):
        left, right = x[k % 2 : n - 1 : 2], x[k % 2 + 1 :: 2]
        low, high = np.minimum(left, right), np.maximum(left, right)
        left[:] = low
        right[:] = high
    return x


def bitonic_network(x):
    """Batcher's for 2**k elements, by index arrays made of bits."""
    n = x.shape[0]
    i = np.arange(n)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            partner = i ^ j
            up = (i & k) == 0
            keep_low = (i < partner) == up
            x = np.where(keep_low, np.minimum(x, x[partner]), np.maximum(x, x[partner]))
            j //= 2
        k *= 2
    return x


def bubble_sort(x):
    """Element by element, until a pass changes nothing."""
    n = len(x)
    for last in range(n - 1, 0, -1):
        swapped = False
        for i in range(last):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
                swapped = True
        if not swapped:
            return


def insertion_sort(x):
    """Each element moves left past those that are larger."""
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def selection_by_minimum(x):
    """The smallest of the rest comes next, with argmin of a slice."""
    for i in range(x.size - 1):
        j = i + np.argmin(x[i:])
        x[[i, j]] = x[[j, i]]
    return x


def counting_sort(x, largest):
    """Of small integers: counts, then places."""
    counts = np.zeros(largest + 1, np.int64)
    for value in x:
        counts[value] += 1
    start = np.zeros_like(counts)
    start[1:] = np.cumsum(counts)[:-1]
    out = np.empty_like(x)
    for value in x:
        out[start[value]] = value
        start[value] += 1
    return out


def radix_sort(x):
    """Four bits a pass by stable argsort of digits."""
    shift = 0
    while np.max(x) >> shift > 0:
        digit = (x >> shift) & 15
        x = x[np.argsort(digit, kind="stable")]
        shift += 4
    return x


def merge(a, b):
    """Two sorted arrays into one, with two fingers."""
    out = np.empty(len(a) + len(b), a.dtype)
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def binary_search(sorted_x, values):
    """The first place of each value that keeps the order."""
    out = np.empty(len(values), dtype=np.intp)
    for k, v in enumerate(values):
        low, high = 0, len(sorted_x)
        while low < high:
            middle = (low + high) // 2
            if sorted_x[middle] < v:
                low = middle + 1
            else:
                high = middle
        out[k] = low
    return out


def quick_select(x, k):
    """The k-th smallest by masks that shrink the array."""
    while True:
        pivot = x[len(x) // 2]
        low, high = x[x < pivot], x[x > pivot]
        if k < len(low):
            x = low
        elif k >= len(x) - len(high):
            k -= len(x) - len(high)
            x = high
        else:
            return pivot


def pareto_front(costs):
    """Which points no other point beats in every coordinate."""
    best = np.ones(len(costs), bool)
    for i, c in enumerate(costs):
        if best[i]:
            best[best] = (costs[best] < c).any(axis=1) | (costs[best] == c).all(axis=1)
    return best


def shuffle_by_swaps(rng, x):
    """Fisher and Yates', backwards."""
    for i in range(len(x) - 1, 0, -1):
        j = rng.integers(0, i + 1)
        x[i], x[j] = x[j], x[i]


PROGRAMS = [
    (odd_even_network, lambda n, rng: (rng.random(n),), (3, 8, 15), 0),
    (bitonic_network, lambda n, rng: (rng.integers(0, 99, 2**n),), (1, 3, 5), 0),
    (bubble_sort, lambda n, rng: (rng.random(n),), (3, 6, 10), 0),
    (insertion_sort, lambda n, rng: (rng.random(n),), (3, 6, 10), 0),
    (selection_by_minimum, lambda n, rng: (rng.random(n),), (3, 6, 12), 0),
    (counting_sort, lambda n, rng: (rng.integers(0, 6, n), 5), (4, 9, 20), 0),
    (radix_sort, lambda n, rng: (rng.integers(0, 4000, n),), (4, 9, 40), 0),
    (merge, lambda n, rng: (np.sort(rng.random(n)), np.sort(rng.random(n - 1))), (2, 5, 10), 0),
    (binary_search, lambda n, rng: (np.sort(rng.random(n)), rng.random(4)), (3, 7, 20), 0),
    (quick_select, lambda n, rng: (rng.random(n), n // 3), (3, 8, 30), 0),
    (pareto_front, lambda n, rng: (rng.random((n, 2)),), (3, 6, 12), 0),
    (shuffle_by_swaps, lambda n, rng: (np.random.default_rng(n), np.arange(n)), (3, 8, 15), 0),
]
