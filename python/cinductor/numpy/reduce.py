"""Reductions: NumPy's own definitions in terms of ufunc.reduce, which the C module captures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    Traced,
    array,
    as_result,
    cast,
    fold,
    folds,
    function,
    into,
    method,
    normal_axes,
    normal_axis,
    refuse,
    require,
    usually_positive,
)

UNSET = np._NoValue
EXACT = {"e": 2048, "f": 2**24}  # smaller integers are exact in the dtype


def given(**values: Any) -> dict[str, Any]:
    """The keywords that were given."""
    return {k: v for k, v in values.items() if v is not UNSET}


def bound(names: list[str], args: tuple[Any, ...], named: dict[str, Any], more: set[str]) -> dict[str, Any]:
    """The arguments that were given, by name; more: names that no position has."""
    by_place = dict(zip(names, args, strict=False))
    if len(args) > len(names) or by_place.keys() & named.keys() or named.keys() - more.union(names):
        raise TypeError("not the parameters of NumPy's function")
    return given(**by_place, **named)


def reduction(ufunc: np.ufunc, parameters: str) -> Any:
    """A handler for np.sum and similar functions, and for the method. The parameters after `*` have no position."""
    by_place, _, by_name = parameters.partition("*")
    names, more, is_truth = by_place.split(), {*by_name.split()}, ufunc in (np.logical_or, np.logical_and)

    def handler(t: Any, a: Any, *args: Any, **named: Any) -> Any:
        settings = {"axis": None, **bound(names, args, named, more)}
        if ufunc is np.add and "where" in settings:
            settings.setdefault("initial", 0)  # so that an empty sum, and a sum of -0.0, is 0.0
        return fold(ufunc, "reduce", array(t, a), **settings, **({"dtype": np.bool_} if is_truth else {}))

    return handler


for _names, _ufunc, _parameters in (
    (("sum",), np.add, "axis dtype out keepdims initial where"),
    (("prod",), np.multiply, "axis dtype out keepdims initial where"),
    (("max", "amax"), np.maximum, "axis out keepdims initial where"),
    (("min", "amin"), np.minimum, "axis out keepdims initial where"),
    (("any",), np.logical_or, "axis out keepdims * where"),
    (("all",), np.logical_and, "axis out keepdims * where"),
):
    _handler = reduction(_ufunc, _parameters)
    function(*_names)(_handler)
    method(_names[0])(_handler)
    folds[_names[0]] = _ufunc, "reduce"


def count_items(x: Any, axis: Any) -> int:
    """The number of elements that are reduced to one."""
    count = 1
    for i in normal_axes(axis, x.ndim):
        count *= x.shape[i]
    return count


def number(t: Any, count: Any, dtype: Any) -> Any:
    """A count as a scalar of that dtype."""
    return t.as_scalar(cast(t, count, dtype)) if type(count) is Traced else dtype.type(count)


def divide_by_count(t: Any, total: Any, count: int) -> Any:
    """total / count, rounded once to total's dtype like NumPy's division by an intp."""
    char = total.dtype.char
    if type(count) is Traced:
        return divide_by_counts(t, total, count)
    if char == "d" or count <= EXACT.get(char, 0):
        return np.true_divide(total, number(t, count, total.dtype))
    wide = np.dtype("D" if total.dtype.kind == "c" else "d")
    quotient = np.true_divide(cast(t, total, wide), number(t, count, np.dtype("d")))
    return as_result(t, cast(t, quotient, total.dtype, "unsafe"))


def divide_by_counts(t: Any, total: Any, counts: Any) -> Any:
    """The total divided by an array of counts."""
    wide = np.dtype("D" if total.dtype.kind == "c" else "d")
    quotient = np.true_divide(cast(t, total, wide), cast(t, counts, np.dtype("d")))
    return as_result(t, cast(t, quotient, total.dtype, "unsafe"))


def counts_of(t: Any, x: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """The number of elements that where= selects, for each result."""
    mask = np.broadcast_to(where, x.shape)
    if type(mask) is not Traced:
        mask = array(t, mask)
    return fold(np.add, "reduce", mask, axis=axis, dtype=np.intp, keepdims=keepdims)


@function("mean")
@method("mean")
def mean(
    t: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET, *, where: Any = UNSET
) -> Any:
    """np.mean: float16 is summed in float32, integers in float64."""
    x = array(t, a)
    keep = keepdims is not UNSET and bool(keepdims)
    is_half = dtype is None and x.dtype == np.float16
    if dtype is None:
        dtype = np.float64 if x.dtype.kind in "biu" else np.float32 if is_half else None
    count = count_items(x, axis)
    require(t, usually_positive(t, count), "the mean of an empty slice warns")
    more = {} if where is UNSET else {"where": where, "initial": 0}
    total = fold(np.add, "reduce", x, axis=axis, dtype=dtype, keepdims=keep, **more)
    if where is UNSET or where is True:
        quotient = divide_by_count(t, total, count)
    else:
        quotient = divide_by_counts(t, total, counts_of(t, x, axis, keep, where))
    if is_half:
        quotient = as_result(t, cast(t, quotient, np.dtype(np.float16)))
    return into(t, out, quotient)


@function("var")
def var(
    t: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = UNSET, *,
    where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """np.var in two passes, as NumPy computes it."""
    x = array(t, a)
    if correction is not UNSET:
        if ddof != 0:
            raise ValueError("given twice")
        ddof = correction
    keep = keepdims is not UNSET and bool(keepdims)
    selects = where is not UNSET and where is not True
    more = {"where": where, "initial": 0} if selects else {}
    if dtype is None and x.dtype.kind in "biu":
        dtype = np.float64
    count = count_items(x, axis)
    require(t, selects or usually_positive(t, count - ddof), "no degrees of freedom: warns")
    if mean is UNSET:
        total = fold(np.add, "reduce", x, axis=axis, dtype=dtype, keepdims=True, **more)
        if selects:
            mean = divide_by_counts(t, total, counts_of(t, x, axis, True, where))
        else:
            mean = divide_by_count(t, total, count)
    centred = x - mean
    if centred.dtype.kind == "c":
        squares = centred.real * centred.real + centred.imag * centred.imag
    else:
        squares = centred * centred
    total = fold(np.add, "reduce", squares, axis=axis, dtype=dtype, keepdims=keep, **more)
    refuse(total.dtype.kind == "c", "a complex dtype")
    if selects:
        counts = np.maximum(counts_of(t, x, axis, keep, where) - ddof, 0)
        result = divide_by_counts(t, total, counts)
    elif is_a(ddof, int | np.integer):
        result = divide_by_count(t, total, count - int(ddof))
    else:
        wide = np.true_divide(cast(t, total, np.dtype("d")), np.float64(count - ddof))
        result = as_result(t, cast(t, wide, total.dtype, "unsafe"))
    return into(t, out, result)


@method("var")
def var_method(
    t: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = UNSET, *,
    where: Any = UNSET, mean: Any = UNSET,
) -> Any:  # fmt: skip
    """ndarray.var, which takes no `correction`."""
    return var(t, self, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


@method("std")
def std_method(t: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    """ndarray.std"""
    return into(t, out, np.sqrt(var_method(t, self, axis, dtype, None, *args, **kwargs)))


@function("std")
def std(
    t: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """np.std"""
    return into(t, out, np.sqrt(var(t, a, axis, dtype, None, *args, **kwargs)))


def extreme(op: str) -> Any:
    """A handler for np.argmax and np.argmin."""

    def handler(t: Any, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
        x = array(t, a)
        refuse(out is not None, "out=")
        require(t, usually_positive(t, x.size), "an empty array")
        keep = keepdims is not UNSET and keepdims
        shape = x.shape
        if axis is None:
            flat, axis = t.reshape(x, (x.size,)), 0
            kept = (1,) * len(shape)
        else:
            axis = normal_axis(axis, x.ndim)
            flat, kept = x, (*shape[:axis], 1, *shape[axis + 1 :])
        made = t.reduce(op, flat, [axis])
        return t.reshape(made, kept) if keep and kept else as_result(t, made)

    return handler


for _name in ("argmax", "argmin"):
    _handler = extreme(_name)
    function(_name)(_handler)
    method(_name)(_handler)


@function("ptp")
def ptp(t: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET) -> Any:
    """np.ptp"""
    x, more = array(t, a), given(keepdims=keepdims)
    high = fold(np.maximum, "reduce", x, axis=axis, out=out, **more)  # it rounds to out's dtype
    return into(t, out, np.subtract(high, fold(np.minimum, "reduce", x, axis=axis, **more)), True)


def running(ufunc: Any) -> Any:
    """A handler for np.cumsum and np.cumprod."""

    def handler(t: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = array(t, a)
        if axis is None:
            x, axis = t.reshape(x, (x.size,)), 0
        elif x.ndim == 0:
            axis, x = normal_axis(axis, 1), t.reshape(x, (1,))
        refuse(is_a(axis, tuple), "several axes")
        return fold(ufunc, "accumulate", x, axis=axis, dtype=dtype, out=out)

    return handler


for _names, _ufunc in (("cumsum", np.add), ("cumprod", np.multiply)):
    _handler = running(_ufunc)
    function(_names)(_handler)
    method(_names)(_handler)
    folds[_names] = _ufunc, "accumulate"


def running_with_initial(ufunc: Any) -> Any:
    """A handler for np.cumulative_sum and np.cumulative_prod."""

    def handler(t: Any, x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
        x = array(t, x)
        refuse(include_initial and out is not None, "include_initial with out=")
        if axis is None:
            if x.ndim >= 2:
                raise ValueError("axis")
            axis = 0
        made = fold(ufunc, "accumulate", x, axis=axis, dtype=dtype, out=out)
        if not include_initial:
            return made
        axis = normal_axis(axis, x.ndim)
        shape = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
        first = t.full(shape, made.dtype.type(ufunc.identity), made.dtype)
        return t.concat([first, made], axis)

    return handler


function("cumulative_sum")(running_with_initial(np.add))
function("cumulative_prod")(running_with_initial(np.multiply))
