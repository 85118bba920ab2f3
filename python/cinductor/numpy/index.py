"""Indexing by arrays of integers and by masks, for reading and writing.

A mask is converted to the list of positions where it is true, which is one index per axis that it covers. The
slices, integers and None of a key become a view; the rest is one gather from it, or one scatter into it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    Traced,
    array,
    as_result,
    cast,
    common_type,
    function,
    into,
    is_one,
    lying,
    method,
    normal_axis,
    operand,
    rank,
    refuse,
    require,
)

MAX_INDICES = 3  # number of axes that one gather indexes
WHOLE = slice(None)
BOOL, INT64 = np.dtype(bool), np.dtype(np.int64)


# --- positions ----------------------------------------------------------------------------------


def flat(t: Any, x: Any) -> Any:
    """All elements in C order."""
    return x if x.ndim == 1 else t.reshape(x, (x.size,))


def truth(t: Any, x: Any) -> Any:
    """A mask of the elements that are not zero."""
    return x if x.dtype == BOOL else t.apply("not_equal", x, x.dtype.type(0))


def places(t: Any, mask: Any) -> Any:
    """The flat indices where a mask is true, in C order."""
    mask = flat(t, mask)
    return t.compress(t.iota(mask.shape, 0), mask)


def coordinates(t: Any, number: Any, shape: tuple[Any, ...]) -> list[Any]:
    """The index along each axis for flat indices."""
    found: list[Any] = []
    for n in reversed(shape[1:]):
        size = cast(t, t.lift(n), INT64)
        found.append(t.apply("remainder", number, size))
        number = t.apply("floor_divide", number, size)
    return [number, *reversed(found)]


def counted(t: Any, shape: tuple[Any, ...], axis: int) -> Any:
    """A counter along one axis of a shape, broadcast along the others."""
    n = shape[axis]
    return t.reshape(t.iota((n,), 0), tuple(n if k == axis else 1 for k in range(len(shape))))


def gathered(t: Any, x: Any, axes: list[int], indices: list[Any], plain: bool = False) -> Any:
    """The elements of x at indices along axes; plain: in C order."""
    made = t.gather(x, axes, indices, plain=plain)
    refuse(made is NotImplemented, "an index that cannot be checked after something has happened")
    return made


def scattered(t: Any, *args: Any, **kwargs: Any) -> None:
    """Stores values at indices."""
    done = t.scatter(*args, **kwargs)
    refuse(done is NotImplemented, "a write made at once, or an index that cannot be checked")


# --- keys ---------------------------------------------------------------------------------------


class Key:
    """A key split into parts: a view of the array, the axes of it that are indexed, an index for each, and the mask
    if that is the whole key.
    """

    def __init__(self, t: Any, x: Any, key: Any) -> None:
        items = fill(t, x, key)
        self.mask = None
        basic: list[Any] = []
        indices: list[tuple[int, list[Any]]] = []
        at, source = 0, 0
        runs: list[int] = []
        for number, item in enumerate(items):
            if item is None or is_a(item, slice):
                basic.append(item)
                at += 1
                source += item is not None
                continue
            runs.append(number)
            width = item.ndim if is_mask(item) else 1
            if is_mask(item):
                item = fitted(t, item, x.shape[source : source + width])
                self.mask = item if lone_mask(items) is not None else None
                found = coordinates(t, places(t, item), tuple(item.shape))
            else:
                found = [item]
            indices.append((at, found))
            basic += [WHOLE] * width
            at += width
            source += width
        view = x if all(is_whole(b) for b in basic) else x[tuple(basic)]
        axes = [first + k for first, found in indices for k in range(len(found))]
        self.indices = [i for _, found in indices for i in found]
        refuse(len(axes) > MAX_INDICES, f"more than {MAX_INDICES} arrays of indices")
        if runs != list(range(runs[0], runs[0] + len(runs))):
            rest = [k for k in range(view.ndim) if k not in axes]
            view, axes = t.permute(view, (*axes, *rest)), list(range(len(axes)))
        self.view, self.axes = view, axes


def fill(t: Any, x: Any, key: Any) -> list[Any]:
    """The items of a key, one per axis or None: `...` expanded, arrays traced."""
    given = key if type(key) is tuple else (key,)
    items = [item_of(t, item) for item in given]
    used = sum(i.ndim if is_mask(i) else 1 for i in items if i is not None and i is not Ellipsis)
    if used > x.ndim or sum(i is Ellipsis for i in items) > 1:
        raise IndexError("too many indices")
    missing = [WHOLE] * (x.ndim - used)
    for k, item in enumerate(items):
        if item is Ellipsis:
            return [*items[:k], *missing, *items[k + 1 :]]
    return [*items, *missing]


def item_of(t: Any, item: Any) -> Any:
    """An item of a key; an item that is neither basic nor an array of integers or bools is refused."""
    if item is None or item is Ellipsis or is_a(item, slice):
        return item
    refuse(is_a(item, bool | np.bool_), "a key that is True or False")
    if type(item) is not Traced:
        if is_a(item, list) and not item:
            item = np.zeros(0, np.intp)
        is_number = is_a(item, int | np.integer)
        item = t.lift(np.int64(item)) if is_number else array(t, item)
    if item.dtype.kind not in "biu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    refuse(item.dtype == BOOL and item.ndim == 0, "a key that is a truth value")
    return item


def is_mask(item: Any) -> bool:
    """True if an item is an array of bools."""
    return type(item) is Traced and item.dtype == BOOL


def lone_mask(items: list[Any]) -> Any:
    """The mask if it is the whole key, or None."""
    return items[0] if items and is_mask(items[0]) and all(map(is_whole, items[1:])) else None


def is_whole(item: Any) -> bool:
    """True if an item is `:`."""
    return type(item) is slice and item == WHOLE


def fitted(t: Any, mask: Any, shape: tuple[Any, ...]) -> Any:
    """A mask of the sizes of the axes that it covers. Data-dependent sizes are checked."""
    for axis, (n, size) in enumerate(zip(mask.shape, shape, strict=True)):
        same = n == size
        if type(same) is Traced:
            require(t, same, "a mask of the size of the axis that it covers")
            mask = gathered(t, mask, [axis], [t.iota((size,), 0)])
        elif not same:
            raise IndexError("boolean index did not match indexed array")
    return mask


def is_basic(key: Any) -> bool:
    """True for integers, slices, `...` and None, which give a view."""
    items = key if type(key) is tuple else (key,)
    kinds = (int, np.integer, slice, type(None), type(Ellipsis))
    return all(
        type(i) is not Traced and is_a(i, kinds) and type(i) is not bool for i in items
    )


def is_scalar_key(t: Any, x: Any, key: Any) -> bool:
    """True for integers for all axes, some of which are only known at run time."""
    items = fill(t, x, key)
    return bool(items) and all(type(i) is Traced and i.ndim == 0 for i in items)


@method("__getitem__")
def getitem(t: Any, x: Any, key: Any) -> Any:
    """x[key]; the C module handles basic keys itself, unless the method is called by name."""
    if is_basic(key):
        return x[key]
    if is_scalar_key(t, x, key):
        return t.as_scalar(gather(t, Key(t, x, key)))
    found = key_of(t, x, key)
    if found.mask is not None and found.mask.ndim == x.ndim:
        return t.compress(flat(t, x), flat(t, found.mask))
    return gather(t, found)


def gather(t: Any, key: Key) -> Any:
    """The elements selected by a key."""
    result_shape(key)
    return gathered(t, key.view, key.axes, key.indices)


def key_of(t: Any, x: Any, key: Any) -> Key:
    """Split a key that contains an array. A key of integers only is a view, which is not made here."""
    items = fill(t, x, key)
    has_array = any(type(i) is Traced and i.ndim > 0 for i in items)
    refuse(not has_array, "an integer that data decide")
    return Key(t, x, key)


@method("__setitem__")
def setitem(t: Any, x: Any, key: Any, value: Any) -> None:
    """x[key] = value"""
    if is_basic(key):
        x[key] = value
        return
    value = stored(t, x, value)
    mask = lone_mask(fill(t, x, key))
    refuse(mask is not None and mask.ndim == x.ndim and rank(value) > 1, "values of several axes for a mask of all axes")
    if mask is not None and value.ndim <= x.ndim - mask.ndim:
        choose(t, x, fitted(t, mask, x.shape[: mask.ndim]), value)
        return
    if mask is not None and mask.ndim > 1 and x.flags_now.c_contiguous:  # one index can address the elements
        mask = fitted(t, mask, x.shape[: mask.ndim])
        x = t.reshape(x, (mask.size, *x.shape[mask.ndim :]))
        key = flat(t, mask)
    found = Key(t, x, key) if is_scalar_key(t, x, key) else key_of(t, x, key)
    put_values(t, found, value, found.mask is not None)


def stored(t: Any, x: Any, value: Any) -> Any:
    """A value converted for a store to x."""
    if type(value) is not Traced and not is_a(
        value, int | float | complex | np.generic | list | tuple
    ):
        value = array(t, value)
    if type(value) is Traced:
        loses = value.dtype.kind == "c" and x.dtype.kind != "c"
        refuse(loses, "a complex value written to a real array")
    return operand(t, value, x.dtype)


def choose(t: Any, x: Any, mask: Any, value: Any) -> None:
    """Store a value, broadcast, where the mask over the first axes is true."""
    wide = t.reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    t.assign(x, t.apply("where", wide, value, x))


def put_values(t: Any, key: Key, value: Any, distinct: bool) -> None:
    """Store values, broadcast, at the elements selected by a key."""
    value = matched(t, value, result_shape(key))
    scattered(t, key.view, key.axes, key.indices, value, distinct=distinct)


def result_shape(key: Key) -> tuple[Any, ...]:
    """The shape of the selection by a key."""
    index: tuple[Any, ...] = ()
    for i in key.indices:
        index = joined(index, i.shape)
    kept = [n for k, n in enumerate(key.view.shape) if k not in key.axes]
    first = key.axes[0]
    return (*kept[:first], *index, *kept[first:])


def joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """The broadcast shape of two indices; data-dependent sizes must be equal."""
    if all(type(n) is int for n in (*a, *b)):
        return np.broadcast_shapes(a, b)
    if not a or not b:
        return a or b
    refuse(
        len(a) != len(b) or any((m == n) is not True for m, n in zip(a, b, strict=True)),
        "indices of sizes that data decide",
    )
    return a


def matched(t: Any, value: Any, shape: tuple[Any, ...]) -> Any:
    """A value broadcast to a shape. Data-dependent sizes are checked, and the value then has that number of elements.
    """
    while value.ndim > len(shape):
        if not is_one(value.shape[0]):
            raise ValueError("shape mismatch")
        value = t.reshape(value, value.shape[1:])
    for axis in range(value.ndim):
        n, size = value.shape[axis], shape[axis - value.ndim]
        same = is_one(n) or n == size
        if type(same) is Traced:
            require(t, same, "as many values as there are elements to write")
            value = gathered(t, value, [axis], [t.iota((size,), 0)])
        elif not same:
            raise ValueError("shape mismatch")
    return value


# --- functions ----------------------------------------------------------------------------------


@function("take")
@method("take")
def take(
    t: Any, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    """np.take"""
    x = array(t, a)
    if axis is None:
        x, axis = flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    index = item_of(t, indices)
    refuse(index.dtype == BOOL, "an index of bools")
    if type(out) is Traced and not np.can_cast(out.dtype, x.dtype, "safe"):
        raise TypeError("out")  # NumPy fills a buffer of x's dtype, which starts as a copy of out
    size = x.shape[axis]
    if mode == "wrap":
        index = t.apply("remainder", cast(t, index, INT64), cast(t, t.lift(size), INT64))
    elif mode == "clip":
        index = t.apply("maximum", cast(t, index, INT64), 0)
        index = t.apply("minimum", index, cast(t, t.lift(size - 1), INT64))
    elif mode != "raise":
        raise ValueError("mode")
    made = gathered(t, x, [axis], [index], plain=True)
    return into(t, out, t.as_scalar(made) if made.ndim == 0 else made)


def along(t: Any, x: Any, indices: Any, axis: Any) -> tuple[Any, int, list[Any]]:
    """The index of take_along_axis, for each axis."""
    index = array(t, indices)
    if axis is None:
        if index.ndim != 1:
            raise ValueError("axis")
        x, axis = flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    if index.dtype.kind not in "iu" or index.ndim != x.ndim:
        raise IndexError("indices")
    refuse(x.ndim > MAX_INDICES, f"more than {MAX_INDICES} axes")
    refuse(index.ndim > 1 and not index.flags_now.c_contiguous, "indices in another order than C")
    found = [index if k == axis else counted(t, x.shape, k) for k in range(x.ndim)]
    return x, axis, found


@function("take_along_axis")
def take_along_axis(t: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    """np.take_along_axis"""
    if axis is not None and type(arr) in (list, tuple):
        raise AttributeError("ndim")
    x, _, found = along(t, array(t, arr), indices, axis)
    return gathered(t, x, list(range(x.ndim)), found)


@function("put_along_axis", writes=True)
def put_along_axis(t: Any, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """np.put_along_axis"""
    refuse(type(arr) is not Traced or axis is None, "an array flattened")
    x, _, found = along(t, arr, indices, axis)
    value = stored(t, x, values)
    scattered(t, x, list(range(x.ndim)), found, value)


def scatter_flat(t: Any, a: Any, index: Any, value: Any, mode: str = "raise") -> None:
    """Store at flat indices; fewer values are repeated."""
    refuse(type(a) is not Traced or not a.flags_now.c_contiguous, "an array that is not contiguous")
    refuse(mode != "raise", f"mode={mode!r}")
    index, value = flat(t, item_of(t, index)), flat(t, stored(t, a, value))
    if type(value.size) is not int or type(index.size) is not int:
        refuse(value.size is not index.size, "sizes that data decide")
    elif value.size not in (1, index.size):
        refuse(value.size == 0, "no values")
        turns = t.apply("remainder", t.iota((index.size,), 0), value.size)
        value = gathered(t, value, [0], [turns])
    scattered(t, t.reshape(a, (a.size,)), [0], [index], value)


@function("put", writes=True)
def put(t: Any, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """np.put"""
    scatter_flat(t, a, ind, v, mode)


@method("put")
def put_method(t: Any, self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    """ndarray.put"""
    scatter_flat(t, self, indices, values, mode)


@function("choose")
@method("choose")
def choose_among(t: Any, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """np.choose among a sequence of arrays."""
    index = array(t, a)
    if index.dtype.kind not in "biu":
        raise TypeError("indices")
    if type(choices) is Traced:
        choices = [choices[k] for k in range(operator.index(choices.shape[0]))]
    arrays = [array(t, c) for c in choices]
    refuse(len({rank(c) == 0 for c in choices}) > 1, "numbers among the arrays")
    dtype = common_type(list(choices), arrays)
    index, last = cast(t, index, INT64), len(arrays) - 1
    if mode == "wrap":
        index = t.apply("remainder", index, last + 1)
    elif mode == "raise":
        inside = t.apply(
            "logical_and",
            t.apply("greater_equal", index, 0),
            t.apply("less_equal", index, last),
        )
        require(t, t.reduce("all", inside, None), "invalid entry in choice array")
    elif mode != "clip":
        raise ValueError("mode")
    arrays = [cast(t, c, dtype, "unsafe") for c in arrays]
    made = arrays[-1]
    for k in range(last - 1, -1, -1):
        picks = t.apply("less_equal", index, k)
        made = t.apply("where", picks, arrays[k], made)
    shape = np.broadcast_shapes(index.shape, *(c.shape for c in arrays))
    made = made if made.shape == shape else t.copy(t.expand(made, shape), "C")
    return into(t, out, as_result(t, lying(t, made, "C")))


@function("ix_")
def ix_(t: Any, *args: Any) -> Any:
    """np.ix_"""
    made = []
    for k, given in enumerate(args):
        x = array(t, given)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        x = places(t, x) if x.dtype == BOOL else x
        shape = (1,) * k + (x.shape[0],) + (1,) * (len(args) - k - 1)
        made.append(t.reshape(x, shape))
    return tuple(made)


@function("place", writes=True)
def place(t: Any, arr: Any, mask: Any, vals: Any) -> None:
    """np.place with one value."""
    value = array(t, vals)
    refuse(type(arr) is not Traced or not is_one(value.size), "values that repeat")
    chosen = truth(t, array(t, mask))
    if chosen.shape != arr.shape:
        raise ValueError("place: mask and data must be the same size")
    choose(t, arr, chosen, cast(t, t.reshape(value, ()), arr.dtype, "safe"))


COMBINED = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.fmax: "fmax",
    np.fmin: "fmin",
    np.bitwise_and: "bitwise_and",
    np.bitwise_or: "bitwise_or",
    np.bitwise_xor: "bitwise_xor",
    np.logical_and: "logical_and",
    np.logical_or: "logical_or",
}


def ufunc_at(t: Any, ufunc: Any, x: Any, indices: Any, *rest: Any) -> None:
    """ufunc.at(x, indices, values): an element that is indexed twice is changed twice."""
    refuse(ufunc not in COMBINED or len(rest) != 1, f"{ufunc.__name__}.at")
    refuse(type(x) is not Traced or x.kind != "array", "an array made outside")
    (values,) = rest
    if type(values) is not Traced and not is_a(values, int | float | complex | np.generic):
        values = array(t, values)
    wide = np.result_type(x.dtype, getattr(values, "dtype", type(values)))
    is_wide = wide != x.dtype and not rounds_alike(ufunc, x.dtype, wide, values)
    refuse(is_wide, "values of a wider dtype")
    refuse(ufunc in (np.logical_and, np.logical_or) and x.dtype != BOOL, "truth values")
    value = operand(t, values, x.dtype)
    key = Key(t, x, indices) if is_scalar_key(t, x, indices) else key_of(t, x, indices)
    value = matched(t, value, result_shape(key))
    scattered(t, key.view, key.axes, key.indices, value, combine=COMBINED[ufunc])


def rounds_alike(ufunc: Any, dtype: np.dtype, wide: np.dtype, value: Any) -> bool:
    """True if a loop of the number's wider dtype, cast back, gives the same as a loop of this dtype: `at` first
    converts a Python number to an array of int64 or float64.
    """
    if type(value) is Traced:
        wraps = ufunc in (np.add, np.subtract, np.multiply)
        return value.kind == "python" and wraps and dtype.kind in "iu" and wide.kind in "iu"
    is_number = type(value) in (int, float)
    kinds = (dtype.kind in "iu" and wide.kind in "iu") or (dtype.kind == wide.kind == "f")
    return is_number and kinds and dtype.type(value).item() == value
