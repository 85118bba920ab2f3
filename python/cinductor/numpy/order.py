"""Sorting and searching: library calls of NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from .index import INT64, flat
from .surface import (
    Traced,
    array,
    as_result,
    function,
    in_place,
    into,
    method,
    normal_axis,
    refuse,
    require,
    result_type,
)

KINDS = {None: "quicksort", "quicksort": "quicksort", "mergesort": "stable", "heapsort": "heapsort"}
KINDS["stable"] = "stable"


def plain_kind(kind: Any, order: Any, stable: Any) -> str:
    """The kind of sort, by one name for each."""
    refuse(order is not None, "order=")
    if stable:
        return "stable"
    refuse(kind not in KINDS, f"kind={kind!r}")
    return KINDS[kind]


def on_axis(t: Any, a: Any, axis: Any) -> tuple[Any, int]:
    """The array to sort, and along which axis; None is all elements."""
    x = array(t, a)
    if axis is None:
        return flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    refuse(x.ndim > 1 and not x.flags.c_contiguous, "an array in another order than C")
    return x, axis


def sort_call(axis: int, kind: str) -> Any:
    """out[...] = np.sort(a, axis, kind)"""

    def call(a: Any, out: Any) -> None:
        out[...] = a
        out.sort(axis=axis, kind=kind)

    return call


def argsort_call(axis: int, kind: str) -> Any:
    """out[...] = np.argsort(a, axis, kind)"""

    def call(a: Any, out: Any) -> None:
        out[...] = np.argsort(a, axis=axis, kind=kind)

    return call


def sorted_values(t: Any, x: Any, axis: int = 0, kind: str = "quicksort") -> Any:
    """The elements in order along an axis."""
    key = f"axis={axis} kind={kind}"
    return t.extern("sort", key, sort_call(axis, kind), [x], x.shape, x.dtype)


def argsorted(t: Any, x: Any, kind: str, axis: int = 0) -> Any:
    """Where the elements in order come from."""
    key = f"axis={axis} kind={kind}"
    call = argsort_call(axis, kind)
    return t.extern("argsort", key, call, [x], x.shape, INT64, positions=axis)


@function(np.sort)
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


@function(np.argsort)
@method("argsort")
def argsort(
    t: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """np.argsort"""
    kind = plain_kind(kind, order, stable)
    x, axis = on_axis(t, a, axis)
    return argsorted(t, x, kind, axis)


@function(np.lexsort)
def lexsort(t: Any, keys: Any, axis: Any = -1) -> Any:
    """np.lexsort of keys with one axis."""
    xs = [keys[k] for k in range(keys.shape[0])] if type(keys) is Traced else list(keys)
    xs = [array(t, x) for x in xs]
    refuse(any(x.ndim != 1 or x.shape != xs[0].shape for x in xs), "keys with several axes")
    normal_axis(axis, 1)

    def call(*arrays: Any) -> None:
        *given, out = arrays
        out[...] = np.lexsort(given)

    key = f"{len(xs)}"
    return t.extern("lexsort", key, call, xs, xs[0].shape, INT64, positions=0)


def partition_call(name: str, kth: Any, axis: int) -> Any:
    """out[...] = np.partition(a, kth, axis), or argpartition"""
    function_ = getattr(np, name)

    def call(a: Any, out: Any) -> None:
        out[...] = function_(a, kth, axis=axis)

    return call


def partitioned(t: Any, name: str, a: Any, kth: Any, axis: Any, kind: str, order: Any) -> Any:
    """np.partition and np.argpartition by numbers."""
    refuse(kind != "introselect" or order is not None, "kind= or order=")
    numbers = tuple(kth) if isinstance(kth, tuple | list) else kth
    refuse(not isinstance(numbers, int | tuple), "kth that is no number")
    x, axis = on_axis(t, a, axis)
    dtype = x.dtype if name == "partition" else INT64
    call = partition_call(name, numbers, axis)
    return t.extern(name, f"kth={numbers} axis={axis}", call, [x], x.shape, dtype)


@function(np.partition)
def partition(
    t: Any, a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """np.partition"""
    return partitioned(t, "partition", a, kth, axis, kind, order)


@function(np.argpartition)
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
    """out[...] = np.searchsorted(a, v, side)"""

    def call(a: Any, v: Any, out: Any) -> None:
        out[...] = np.searchsorted(a, v, side)

    return call


@function(np.searchsorted)
@method("searchsorted")
def searchsorted(t: Any, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """np.searchsorted"""
    x, y = array(t, a), v if type(v) is Traced else None
    y = array(t, v)
    refuse(sorter is not None, "sorter=")
    if x.ndim != 1 or side not in ("left", "right"):
        raise ValueError("searchsorted")
    dtype = result_type(x, v)
    x, y = in_place(t, x, dtype), in_place(t, y, dtype)
    made = t.extern("searchsorted", side, searchsorted_call(side), [x, y], y.shape, INT64)
    return as_result(t, made)


def digitize_call(right: bool) -> Any:
    """out[...] = np.digitize(x, bins, right)"""

    def call(x: Any, bins: Any, out: Any) -> None:
        out[...] = np.digitize(x, bins, right)

    return call


@function(np.digitize)
def digitize(t: Any, x: Any, bins: Any, right: bool = False) -> Any:
    """np.digitize"""
    values, edges = array(t, x), array(t, bins)
    refuse(values.dtype.kind == "c" or edges.ndim != 1, "such values")
    call = digitize_call(bool(right))
    made = t.extern("digitize", f"{bool(right)}", call, [values, edges], values.shape, INT64)
    return as_result(t, made)


def interp_call(left: Any, right: Any) -> Any:
    """out[...] = np.interp(x, xp, fp, left, right)"""

    def call(x: Any, xp: Any, fp: Any, out: Any) -> None:
        out[...] = np.interp(x, xp, fp, left, right)

    return call


@function(np.interp)
def interp(
    t: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """np.interp"""
    refuse(period is not None, "period=")
    refuse(type(left) is Traced or type(right) is Traced, "left= or right= that varies")
    xs = [array(t, v) for v in (x, xp, fp)]
    refuse(any(v.dtype.kind == "c" for v in xs), "complex values")
    if xs[1].ndim != 1 or xs[1].shape != xs[2].shape:
        raise ValueError("fp and xp are not of the same length.")
    wide = np.dtype(np.float64)
    xs = [in_place(t, v, wide) for v in xs]
    call = interp_call(left, right)
    made = t.extern("interp", f"{left!r} {right!r}", call, xs, xs[0].shape, wide)
    return as_result(t, made)


# --- histograms ---------------------------------------------------------------------------------


@function(np.histogram)
def histogram(
    t: Any,
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  (NumPy's name)
    density: Any = None,
    weights: Any = None,
) -> Any:
    """np.histogram by a number of bins or by edges."""
    x = array(t, a)
    refuse(isinstance(bins, str) or x.dtype.kind == "c", "such bins")
    refuse(range is not None and any(type(v) is Traced for v in range), "a range that varies")
    if type(bins) is not Traced and np.ndim(bins) == 0:
        return counted_bins(t, x, bins, range, density, weights)
    edges = array(t, bins)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    refuse(density or weights is not None, "density= or weights=")

    def call(values: Any, given: Any, out: Any) -> None:
        out[...] = np.histogram(values, given)[0]

    counts = t.extern("histogram", "", call, [x, edges], (edges.shape[0] - 1,), INT64)
    return counts, edges


def counted_bins(t: Any, x: Any, bins: Any, limits: Any, density: Any, weights: Any) -> Any:
    """By equal bins: two library calls, for the counts and for the edges."""
    n = int(bins)
    if n < 1:
        raise ValueError("`bins` must be positive, when an integer")
    limits = None if limits is None else tuple(float(v) for v in limits)
    given = [x] if weights is None else [x, array(t, weights)]
    refuse(weights is not None and given[1].dtype != np.float64, "weights of another dtype")
    is_plain = not density and weights is None
    wide = np.dtype(np.float64)
    edge = np.result_type(x.dtype, 0.0) if x.dtype.kind in "fiub" else wide
    refuse(x.dtype.kind == "f" and x.dtype != wide, "edges of another dtype")

    def call(values: Any, *rest: Any) -> None:
        *weight, out = rest
        more = {"weights": weight[0]} if weight else {}
        out[...] = np.histogram(values, n, limits, density=density, **more)[0]

    def call_edges(values: Any, out: Any) -> None:
        out[...] = np.histogram_bin_edges(values, n, limits)

    key = f"{n} {limits} {density}"
    counts = t.extern("histogram", key, call, given, (n,), INT64 if is_plain else wide)
    edges = t.extern("histogram_bin_edges", key, call_edges, [x], (n + 1,), edge)
    return counts, edges


@function(np.median)
def median(
    t: Any,
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """np.median: a library call."""
    x = array(t, a)
    refuse(overwrite_input or keepdims or x.dtype.kind == "c", "such a median")
    refuse(isinstance(axis, tuple), "several axes")
    if axis is None:
        x, axis = flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    require(t, t.usually_positive(x.size), "an empty array warns")
    dtype = np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype

    def call(values: Any, result: Any) -> None:
        result[...] = np.median(values, axis=axis)

    made = t.extern("median", f"axis={axis}", call, [x], shape, dtype)
    return into(t, out, as_result(t, made))


def quantile_handler(name: str) -> Any:
    """A handler for np.percentile or np.quantile of numbers that do not vary: a library call."""

    def handler(
        t: Any,
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Any:
        x = array(t, a)
        refuse(overwrite_input or keepdims or weights is not None, "such a quantile")
        refuse(isinstance(axis, tuple) or x.dtype not in (np.float64, INT64), "such a quantile")
        refuse(not is_fixed(q), "quantiles that vary")
        if axis is None:
            x, axis = flat(t, x), 0
        axis = normal_axis(axis, x.ndim)
        require(t, t.usually_positive(x.size), "an empty array warns")
        wanted = np.asarray(q, np.float64)
        shape = (*wanted.shape, *x.shape[:axis], *x.shape[axis + 1 :])

        def call(values: Any, result: Any) -> None:
            result[...] = getattr(np, name)(values, q, axis=axis, method=method)

        key = f"{q!r} axis={axis} {method}"
        made = t.extern(name, key, call, [x], shape, np.dtype(np.float64))
        return into(t, out, as_result(t, made))

    return handler


def is_fixed(q: Any) -> bool:
    """Numbers, or lists of numbers."""
    return isinstance(q, list | tuple) and all(map(is_fixed, q)) or type(q) in (int, float)


function(np.percentile)(quantile_handler("percentile"))
function(np.quantile)(quantile_handler("quantile"))
