"""Convolutions, insertion and deletion of elements, flat indices, and set and bit functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .index import BOOL, INT64, coordinates, flat
from .surface import (
    Traced,
    array,
    as_result,
    cast,
    function,
    has_dtype,
    in_place,
    is_one,
    lying,
    memory_order,
    normal_axis,
    of_numpy,
    operand,
    refuse,
    require,
    result_type,
    usually_positive,
    whole,
)

MODES = {0: "valid", 1: "same", 2: "full"}


def slid(name: str, default: str) -> None:
    """Register np.convolve or np.correlate: a library call."""
    f = getattr(np, name)

    def handler(t: Any, a: Any, v: Any, mode: Any = default) -> Any:
        mode = MODES.get(mode, mode) if type(mode) is int else mode
        x, y = (array(t, q) for q in (a, v))
        if name == "convolve":
            x, y = (t.reshape(q, (1,)) if q.ndim == 0 else q for q in (x, y))
        if x.ndim != 1 or y.ndim != 1 or mode not in MODES.values():
            raise ValueError("convolve")
        m, n = x.shape[0], y.shape[0]
        if any(type(k) is int and k == 0 for k in (m, n)):
            raise ValueError("empty")
        longest, shortest = t.size_max(m, n), t.size_min(m, n)
        size = {"full": m + n - 1, "same": longest, "valid": longest - shortest + 1}[mode]
        for k in (m, n):
            require(t, usually_positive(t, k), "an empty array")
        dtype = f(np.ones(1, x.dtype), np.ones(1, y.dtype)).dtype
        refuse(not has_dtype(dtype), f"dtype {dtype}")

        @of_numpy
        def call(a: Any, v: Any, _out: Any) -> Any:
            return f(a, v, mode)

        return t.extern(name, mode, call, [x, y], (size,), dtype)

    function(name)(handler)


slid("convolve", "full")
slid("correlate", "valid")


# --- insert and delete --------------------------------------------------------------------------


def along(t: Any, arr: Any, axis: Any) -> tuple[Any, int]:
    """The array and its axis; without an axis all elements."""
    x = array(t, arr)
    if axis is None:
        return flat(t, x), 0
    return x, normal_axis(axis, x.ndim)


def cut(x: Any, axis: int, start: Any, stop: Any) -> Any:
    """x[..., start:stop, ...]"""
    return x[(*(slice(None),) * axis, slice(start, stop))]


def is_number(obj: Any) -> bool:
    """One index: not a slice, a list or an array with axes."""
    if type(obj) is Traced:
        return obj.ndim == 0 and obj.dtype.kind in "iu"
    return is_a(obj, int | np.integer) and not is_a(obj, bool | np.bool_)


@function("delete")
def delete(t: Any, arr: Any, obj: Any, axis: Any = None) -> Any:
    """np.delete: for one index, the parts before and after it; for others the rest is gathered."""
    x, axis = along(t, arr, axis)
    n = x.shape[axis]
    if is_number(obj):
        k = whole(obj)
        inside = k < n
        refuse(type(inside) is Traced or type(k >= -n) is Traced, "an index that data decide")
        if not inside or k < -n:
            raise IndexError("out of bounds")
        k = k + n if k < 0 else k
        made = t.concat([cut(x, axis, None, k), cut(x, axis, k + 1, None)], axis)
        return lying(t, made, memory_order(x))
    if type(obj) is not Traced and not is_a(obj, list | tuple) or not any_traced(obj):
        refuse(type(n) is not int, "an axis whose size varies")
        rest = np.delete(np.arange(n), obj)
        made = x[(*(slice(None),) * axis, rest)]
        is_one_part = is_a(obj, slice) or (np.size(obj) == 1 and np.asarray(obj).dtype.kind in "iu")
        return lying(t, made, memory_order(x)) if is_one_part else made
    index = array(t, obj)
    refuse(index.ndim != 1, "indices with several axes")
    if index.dtype == BOOL:
        keep = t.apply("logical_not", index)
    else:
        keep = t.full((n,), np.bool_(True), BOOL)
        keep[index] = False
    size = index.shape[0]
    refuse(x.ndim > 1 and type(size) is Traced and index.dtype != BOOL, "a number of indices that decides about the order of the result")
    made = x[(*(slice(None),) * axis, keep)]
    return lying(t, made, memory_order(x)) if is_one(size) and index.dtype != BOOL else made


def any_traced(obj: Any) -> bool:
    """True if indices are traced, or some in a list."""
    return type(obj) is Traced or is_a(obj, list | tuple) and any(map(any_traced, obj))


@function("insert")
def insert(t: Any, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """np.insert"""
    x, axis = along(t, arr, axis)
    n = x.shape[axis]
    refuse(any_traced(obj) and not is_number(obj), "indices that vary")
    given = array(t, operand(t, values, x.dtype))
    given = t.reshape(given, (*(1,) * (x.ndim - given.ndim), *given.shape))
    refuse(given.ndim != x.ndim, "values with more axes")
    single = is_number(obj) or (np.size(obj) == 1 and not is_a(obj, slice))
    if not single:
        refuse(type(n) is not int, "an axis whose size varies")
        return insert_several(t, x, np.arange(n)[obj] if is_a(obj, slice) else obj, given, axis)
    k = obj if is_number(obj) else np.asarray(obj).item()
    if is_number(obj):  # one index with many values: all are inserted there
        given = t.permute(given, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    refuse(not is_a(k, int | np.integer) and type(k) is not Traced, "such an index")
    k = whole(k)
    inside = k <= n
    refuse(type(inside) is Traced or type(k >= -n) is Traced, "an index that data decide")
    if not inside or k < -n:
        raise IndexError("out of bounds")
    k = k + n if k < 0 else k
    shape = [*x.shape[:axis], given.shape[axis], *x.shape[axis + 1 :]]
    between = t.expand(given, shape)
    made = t.concat([cut(x, axis, None, k), between, cut(x, axis, k, None)], axis)
    return lying(t, made, memory_order(x))


def insert_several(t: Any, x: Any, obj: Any, given: Any, axis: int) -> Any:
    """np.insert at constant indices: the source of each element is known."""
    n = x.shape[axis]
    tagged = np.insert(np.arange(n), obj, -1)
    old, new = tagged >= 0, np.flatnonzero(tagged < 0)
    order = np.argsort(
        np.argsort(np.where(np.asarray(obj) < 0, np.asarray(obj) + n, obj), kind="stable")
    )
    shape = (*x.shape[:axis], tagged.size, *x.shape[axis + 1 :])
    made = t.empty(shape, x.dtype, memory_order(x))
    front = (slice(None),) * axis
    made[(*front, np.flatnonzero(old))] = x
    made[(*front, new[order])] = given
    return made


# --- flat indices -------------------------------------------------------------------------------


@function("unravel_index")
def unravel_index(t: Any, indices: Any, shape: Any, order: str = "C") -> Any:
    """np.unravel_index"""
    sizes = tuple(whole(n) for n in ((shape,) if is_number(shape) else shape))
    refuse(order != "C" or not sizes, f"order={order!r}")
    given = indices if type(indices) is Traced else array(t, indices)
    if given.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    number = cast(t, given, INT64)
    total = cast(t, t.lift(np_prod(sizes)), INT64)
    inside = t.apply(
        "logical_and", t.apply("greater_equal", number, 0), t.apply("less", number, total)
    )
    inside = t.reduce("all", inside, None) if inside.ndim else t.as_scalar(inside)
    require(t, inside, "indices of elements")
    found = coordinates(t, number, sizes)
    if not number.ndim:
        return tuple(as_result(t, c) for c in found)
    turned = tuple(range(number.ndim))[:: 1 if memory_order(given) == "C" else -1]
    pairs = t.empty((*(number.shape[k] for k in turned), len(sizes)), INT64)  # NumPy's results are its columns
    views = [t.permute(pairs[..., k], turned) for k in range(len(sizes))]
    for view, column in zip(views, found, strict=True):
        t.assign(view, column)
    return tuple(views)


def np_prod(sizes: tuple[Any, ...]) -> Any:
    """The product of sizes that may be symbols."""
    total: Any = 1
    for n in sizes:
        total = total * n
    return total


@function("ravel_multi_index")
def ravel_multi_index(
    t: Any, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    """np.ravel_multi_index"""
    sizes = tuple(whole(n) for n in dims)
    refuse(order != "C" or mode != "raise", "mode= or order=")
    if type(multi_index) is Traced:
        multi_index = [multi_index[k] for k in range(operator.index(multi_index.shape[0]))]
    if len(multi_index) != len(sizes):
        raise ValueError("parameter multi_index must be a sequence of length")
    total: Any = None
    for given, n in zip(multi_index, sizes, strict=True):
        index = given if type(given) is Traced else array(t, given)
        if index.dtype.kind not in "iu":
            raise TypeError("only int indices permitted")
        index, size = cast(t, index, INT64), cast(t, t.lift(n), INT64)
        inside = t.apply(
            "logical_and", t.apply("greater_equal", index, 0), t.apply("less", index, size)
        )
        inside = t.reduce("all", inside, None) if inside.ndim else t.as_scalar(inside)
        require(t, inside, "indices of elements")
        total = index if total is None else np.add(np.multiply(total, size), index)
    return as_result(t, total)


# --- sets and bits ------------------------------------------------------------------------------


def isin(
    t: Any,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    """np.isin: a few comparisons for a few values, else a library call. Always a library call if the common dtype
    would round integers, because NumPy's algorithms round them at different points.
    """
    x, y = array(t, element), flat(t, array(t, test_elements))
    dtype = result_type(x, y)
    is_exact = dtype.kind in "biu" or (x.dtype.kind in "fc" and y.dtype.kind in "fc")
    if is_exact:
        x, y = in_place(t, x, dtype), in_place(t, y, dtype)
    if is_exact and type(y.size) is int and 0 < y.size <= 8:
        made = None
        for k in range(y.size):
            same = t.apply("equal", x, y[k])
            made = same if made is None else t.apply("logical_or", made, same)
        made = t.apply("logical_not", made) if invert else made
        return lying(t, made, "C")

    def call(a: Any, b: Any, _out: Any) -> Any:
        return np.isin(a, b, assume_unique, invert, kind=kind)

    key = f"{bool(assume_unique)} {bool(invert)} {kind}"
    return t.extern("isin", key, call, [x, y], x.shape, BOOL)


function("isin")(isin)


def isin_flat(t: Any, ar1: Any, ar2: Any, *args: Any, **kwargs: Any) -> Any:
    """isin on all elements, the base of np.isin and the set functions."""
    return isin(t, flat(t, array(t, ar1)), ar2, *args, **kwargs)


function("lib._arraysetops_impl._in1d")(isin_flat)


@function("packbits")
def packbits(t: Any, a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """np.packbits: a library call."""
    x, axis = along(t, a, axis)
    if x.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    shape = (*x.shape[:axis], (x.shape[axis] + 7) // 8, *x.shape[axis + 1 :])

    def call(bits: Any, _out: Any) -> Any:
        return np.packbits(bits, axis, bitorder)

    return t.extern("packbits", f"{axis} {bitorder}", call, [x], shape, np.dtype(np.uint8))


@function("unpackbits")
def unpackbits(
    t: Any, a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big"
) -> Any:
    """np.unpackbits: a library call."""
    x, axis = along(t, a, axis)
    refuse(count is not None, "count=")
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    shape = (*x.shape[:axis], x.shape[axis] * 8, *x.shape[axis + 1 :])

    def call(packed: Any, _out: Any) -> Any:
        return np.unpackbits(packed, axis, None, bitorder)

    return t.extern("unpackbits", f"{axis} {bitorder}", call, [x], shape, np.dtype(np.uint8))
