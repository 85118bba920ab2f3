"""Functions of NumPy and Python written in terms of simpler ones, and captured from this source like user code.

They replace functions whose own source needs features of real arrays. If NumPy would warn or raise, they raise
`Otherwise`, which becomes a check of the program; NumPy's function then runs.
"""

from __future__ import annotations

import _bisect  # heapq and bisect take longer to import than the functions of C that they contain
import _heapq
import collections
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Otherwise(Exception):
    """NumPy's own function must run."""


def mapped(f: Callable[[Any], Any], items: Any) -> Any:
    """list(map(f, items)), or an array of the results."""
    made = []
    for item in items:
        made.append(f(item))
    return array_or_list(made)


def array_or_list(made: Any) -> Any:
    """Numbers that a captured loop has appended, as an array; any other list unchanged."""
    return made


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """np.apply_along_axis: the first row determines the shape and dtype of the results."""
    x = np.asanyarray(arr)
    if x.size == 0:
        raise Otherwise
    turned = np.moveaxis(x, axis, -1)
    outer = turned.shape[:-1]
    rows = turned.reshape((-1, turned.shape[-1]))
    first = np.asanyarray(func1d(rows[0], *args, **kwargs))
    made = np.empty((rows.shape[0], *first.shape), first.dtype)
    made[0] = first
    for k in range(1, rows.shape[0]):
        made[k] = func1d(rows[k], *args, **kwargs)
    at = axis % x.ndim
    result = made.reshape((*outer, *first.shape))
    order = [*range(at), *range(len(outer), result.ndim), *range(at, len(outer))]
    return result.transpose(order)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """np.ediff1d"""
    x = np.asanyarray(ary).ravel()
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, np.asanyarray(to_begin).ravel())
    if to_end is not None:
        parts.append(np.asanyarray(to_end).ravel())
    if not all(np.can_cast(part.dtype, x.dtype, "same_kind") for part in parts):
        raise Otherwise
    return np.concatenate(parts, dtype=x.dtype) if len(parts) > 1 else parts[0]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """np.setdiff1d. For uint64 with signed integers the result depends on the number of elements."""
    x = np.ravel(ar1) if assume_unique else np.unique(ar1)
    y = np.asarray(ar2)
    if x.dtype.kind + y.dtype.kind not in ("iu", "ui"):
        return x[np.isin(x, y, invert=True)]
    y = y if assume_unique else np.unique(y)
    return x[np.isin(x, y, assume_unique=True, invert=True)]


def cond(x: Any, p: Any = None) -> Any:
    """np.linalg.cond"""
    x = np.asarray(x)
    if 0 in x.shape[-2:] or x.dtype == np.float16:
        raise Otherwise
    if p is None or p == 2 or p == -2:
        s = np.linalg.svd(x, compute_uv=False)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        inverse = np.linalg.inv(x.astype(np.result_type(x, np.float64)))
        r = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(inverse, p, axis=(-2, -1))
        r = r.astype(np.float32 if x.dtype in (np.float32, np.complex64) else np.float64)
    if not np.isfinite(r).all():
        raise Otherwise
    return r


def vectorized(function: Callable[..., Any], dtype: Any, *args: Any) -> Any:
    """A call of np.vectorize(function): with Python's numbers, as NumPy passes them; the result for NumPy's first
    ones determines the dtype.
    """
    arrays = np.broadcast_arrays(*args)
    rows = [a.reshape(-1) for a in arrays]
    if dtype is None:
        first = function(*[row[0] for row in rows])
        if type(first) is tuple:  # NumPy returns several arrays; with cache= it does not call the function once more
            return np.vectorize(function, cache=True)(*args)
        dtype = np.asarray(first).dtype
    made = np.empty(rows[0].shape, dtype)
    for k in range(made.shape[0]):
        made[k] = function(*[row[k].item() for row in rows])
    result = made.reshape(arrays[0].shape)
    if all(np.asarray(a).flags.c_contiguous for a in args):
        return result
    objects = [np.copy(a, "K") for a in args]  # laid out like the arrays of objects that NumPy makes of the operands
    laid = np.empty_like(functools.reduce(np.logical_or, [np.not_equal(a, a) for a in objects]), dtype)
    laid[...] = result
    return laid


def counted(items: Any) -> Any:
    """collections.Counter(items)"""
    made = collections.Counter()
    for item in items:
        made[item] += 1
    return made


def heappush(heap: Any, item: Any) -> None:
    """heapq.heappush"""
    heap.append(item)
    sift_down(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    """heapq.heappop"""
    if not heap:
        raise IndexError("index out of range")
    item = heap.pop()
    if not heap:
        return item
    return replace_top(heap, item)


def heapreplace(heap: Any, item: Any) -> Any:
    """heapq.heapreplace"""
    if not heap:
        raise IndexError("index out of range")
    return replace_top(heap, item)


def replace_top(heap: Any, item: Any) -> Any:
    """Returns the smallest item of a heap that is not empty, and stores another one."""
    top = heap[0]
    heap[0] = item
    sift_up(heap, 0)
    return top


def heappushpop(heap: Any, item: Any) -> Any:
    """heapq.heappushpop"""
    if heap and heap[0] < item:
        return replace_top(heap, item)
    return item


def heapify(heap: Any) -> None:
    """heapq.heapify"""
    for position in range(len(heap) // 2 - 1, -1, -1):
        sift_up(heap, position)


def sift_down(heap: Any, start: Any, position: Any) -> None:
    """Moves an item towards the root, to its place: Williams, Heapsort, CACM 7 (1964)."""
    item = heap[position]
    while position > start:
        parent = (position - 1) >> 1
        above = heap[parent]
        if not item < above:
            break
        heap[position] = above
        position = parent
    heap[position] = item


def sift_up(heap: Any, position: Any) -> None:
    """Moves smaller children up until a leaf is free, then the item down from it, as heapq does: the order of equal
    items is the same.
    """
    start, end, item = position, len(heap), heap[position]
    child = 2 * position + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    sift_down(heap, start, position)


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """bisect.bisect_left"""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    hi = len(a) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if item < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """bisect.bisect_right"""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    hi = len(a) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if x < item:
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """bisect.insort_left"""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """bisect.insort_right"""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def choices(random: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1) -> Any:
    """random.choices; random: the method that draws a float."""
    n = len(population)
    if cum_weights is None and weights is None:
        return [population[math.floor(random() * (n + 0.0))] for _ in range(k)]
    if cum_weights is not None and weights is not None:
        raise TypeError("weights and cum_weights")
    sums = cum_weights
    if sums is None:
        sums = []
        for weight in weights:
            sums.append(sums[-1] + weight if sums else weight)
    total = sums[-1] + 0.0
    if len(sums) != n or total <= 0.0 or not math.isfinite(total):
        raise ValueError("weights")
    return [population[bisect_right(sums, random() * total, 0, n - 1)] for _ in range(k)]


def sample(below: Any, population: Any, k: Any) -> Any:
    """random.sample; below: the method that draws an int below a number. A large population is not copied."""
    n, most = len(population), 21
    if k > 5:
        most += 4 ** math.ceil(math.log(k * 3, 4))
    if not 0 <= k <= n:
        raise ValueError("k")
    if n > most:
        seen = np.full(k, -1)
        for i in range(k):
            place = below(n)
            while (seen == place).any():
                place = below(n)
            seen[i] = place
        return [population[int(place)] for place in seen]
    pool, made = np.arange(n), []
    for i in range(k):
        place = below(n - i)
        made.append(population[int(pool[place])])
        pool[place] = pool[n - i - 1]
    return made


# Methods of random.Random -> their sources here, and the draws that they are made of.
OF_DRAWS: dict[str, tuple[Any, str]] = {"choices": (choices, "random"), "sample": (sample, "randrange")}
# Functions of Python's library on a list that is kept in order -> their sources here.
IN_ORDER: dict[Any, Callable[..., Any]] = {
    _heapq.heappush: heappush,
    _heapq.heappop: heappop,
    _heapq.heapreplace: heapreplace,
    _heapq.heappushpop: heappushpop,
    _heapq.heapify: heapify,
    _bisect.bisect_left: bisect_left,
    _bisect.bisect_right: bisect_right,
    _bisect.insort_left: insort_left,
    _bisect.insort_right: insort_right,
}
WRITTEN = {
    "setdiff1d": setdiff1d,
    "linalg.cond": cond,
    "apply_along_axis": apply_along_axis,
    "ediff1d": ediff1d,
}
