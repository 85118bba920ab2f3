"""Sorting and searching, as library calls of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .index import INT64, flat
from .surface import (
    Traced,
    array,
    as_result,
    function,
    in_place,
    library,
    method,
    normal_axis,
    refuse,
    require,
)

KINDS = {None: "quicksort", "quicksort": "quicksort", "mergesort": "stable", "heapsort": "heapsort"}
KINDS["stable"] = "stable"


def plain_kind(kind: Any, order: Any, stable: Any) -> str:
    """The kind of sort, with one name for each."""
    refuse(order is not None, "order=")
    if stable:
        return "stable"
    refuse(kind not in KINDS, f"kind={kind!r}")
    return KINDS[kind]


def on_axis(t: Any, a: Any, axis: Any) -> tuple[Any, int]:
    """The array to sort, and the axis; None means all elements."""
    x = array(t, a)
    if axis is None:
        return flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    refuse(x.ndim > 1 and not x.flags_now.c_contiguous, "an array in another order than C")
    return x, axis


def sort_call(axis: int, kind: str) -> Any:
    """out[...] = np.sort(a, axis, kind)"""

    def call(a: Any, out: Any) -> None:
        out[...] = a
        out.sort(axis=axis, kind=kind)

    return call


def argsort_call(axis: int, kind: str) -> Any:
    """np.argsort(a, axis, kind)"""

    def call(a: Any, _out: Any) -> Any:
        return np.argsort(a, axis=axis, kind=kind)

    return call


def sorted_values(t: Any, x: Any, axis: int = 0, kind: str = "quicksort") -> Any:
    """The elements sorted along an axis. Equal bytes are the same, and NumPy's radix sort is the fastest."""
    kind = "stable" if x.dtype.kind in "biu" and x.dtype.itemsize == 1 else kind
    key = f"axis={axis} kind={kind}"
    return t.extern("sort", key, sort_call(axis, kind), [x], x.shape, x.dtype)


def argsorted(t: Any, x: Any, kind: str, axis: int = 0) -> Any:
    """The indices that sort the elements."""
    key = f"axis={axis} kind={kind}"
    call = argsort_call(axis, kind)
    return t.extern("argsort", key, call, [x], x.shape, INT64, positions=axis)


@function("sort")
def sort(
    t: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """np.sort"""
    kind = plain_kind(kind, order, stable)
    x, axis = on_axis(t, a, axis)
    return sorted_values(t, x, axis, kind)


@method("sort")
def sort_method(
    t: Any, self: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """ndarray.sort: in place."""
    kind = plain_kind(kind, order, stable)
    axis = normal_axis(axis, self.ndim)
    t.assign(self, sorted_values(t, self, axis, kind))


@function("argsort")
@method("argsort")
def argsort(
    t: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """np.argsort"""
    kind = plain_kind(kind, order, stable)
    x, axis = on_axis(t, a, axis)
    return argsorted(t, x, kind, axis)


@function("lexsort")
def lexsort(t: Any, keys: Any, axis: Any = -1) -> Any:
    """np.lexsort of keys of rank 1: as in NumPy, one stable sort by each key, the last one last."""
    xs = [keys[k] for k in range(keys.shape[0])] if type(keys) is Traced else list(keys)
    xs = [array(t, x) for x in xs]
    refuse(not xs or any(x.ndim != 1 or x.shape != xs[0].shape for x in xs), "keys with several axes")
    normal_axis(axis, 1)
    order = argsorted(t, xs[0], "stable")
    for x in xs[1:]:
        order = t.gather(order, [0], [argsorted(t, t.gather(x, [0], [order]), "stable")])
    return order


def partition_call(name: str, kth: Any, axis: int) -> Any:
    """np.partition(a, kth, axis), or argpartition"""
    function_ = getattr(np, name)

    def call(a: Any, _out: Any) -> Any:
        return function_(a, kth, axis=axis)

    return call


def partitioned(t: Any, name: str, a: Any, kth: Any, axis: Any, kind: str, order: Any) -> Any:
    """np.partition and np.argpartition with constant indices."""
    refuse(kind != "introselect" or order is not None, "kind= or order=")
    numbers = tuple(kth) if is_a(kth, tuple | list) else kth
    refuse(not is_a(numbers, int | tuple), "kth that is no number")
    x, axis = on_axis(t, a, axis)
    for k in numbers if type(numbers) is tuple else (numbers,):
        refuse(not is_a(k, int), "kth that is no number")
        require(t, x.shape[axis] > (k if k >= 0 else -k - 1), "kth that lies outside")
    dtype = x.dtype if name == "partition" else INT64
    call = partition_call(name, numbers, axis)
    return t.extern(name, f"kth={numbers} axis={axis}", call, [x], x.shape, dtype)


@function("partition")
def partition(
    t: Any, a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """np.partition"""
    return partitioned(t, "partition", a, kth, axis, kind, order)


@function("argpartition")
@method("argpartition")
def argpartition(
    t: Any, a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """np.argpartition"""
    return partitioned(t, "argpartition", a, kth, axis, kind, order)


@method("partition")
def partition_method(
    t: Any, self: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> None:
    """ndarray.partition: in place."""
    t.assign(self, partitioned(t, "partition", self, kth, axis, kind, order))


# --- searching ----------------------------------------------------------------------------------


def searchsorted_call(side: str) -> Any:
    """np.searchsorted(a, v, side, sorter)"""

    def call(a: Any, v: Any, *rest: Any) -> Any:
        return np.searchsorted(a, v, side, *rest[:-1])

    return call


@function("searchsorted")
@method("searchsorted")
def searchsorted(t: Any, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """np.searchsorted"""
    x, y = array(t, a), array(t, v)
    if x.ndim != 1 or side not in ("left", "right"):
        raise ValueError("searchsorted")
    dtype = np.result_type(x.dtype, y.dtype)
    xs = [in_place(t, x, dtype), in_place(t, y, dtype)]
    if sorter is not None:
        xs.append(in_place(t, sorter, INT64))
    call_it = library(t, sorter is not None)  # its indices may be out of range
    made = call_it("searchsorted", side, searchsorted_call(side), xs, y.shape, INT64)
    return as_result(t, made)


def digitize_call(right: bool) -> Any:
    """np.digitize(x, bins, right)"""

    def call(x: Any, bins: Any, _out: Any) -> Any:
        return np.digitize(x, bins, right)

    return call


def is_monotonic(bins: Any) -> bool:
    """True if they are known numbers that rise or fall as NumPy requires."""
    if not is_a(bins, list | tuple) or any(type(b) not in (int, float) for b in bins):
        return False
    steps = np.diff(np.asarray(bins))
    return bool((steps >= 0).all() or (steps <= 0).all())


@function("digitize")
def digitize(t: Any, x: Any, bins: Any, right: bool = False) -> Any:
    """np.digitize"""
    values, edges = array(t, x), array(t, bins)
    refuse(values.dtype.kind == "c" or edges.ndim != 1, "such values")
    call = digitize_call(bool(right))
    call_it = library(t, not is_monotonic(bins))
    made = call_it("digitize", f"{bool(right)}", call, [values, edges], values.shape, INT64)
    return as_result(t, made)
