"""Functions whose result has a data-dependent size, such as nonzero, unique and bincount."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .index import INT64, coordinates, flat, gathered, places, scattered, truth
from .order import argsorted, sorted_values
from .surface import (
    array,
    cast,
    fold,
    function,
    method,
    normal_axis,
    operand,
    refuse,
    require,
    usually_positive,
    whole,
)

COUNT_IS_PYTHONS = type(np.count_nonzero(np.ones(1))) is int


# --- where a condition holds --------------------------------------------------------------------


def found_positions(t: Any, x: Any) -> tuple[Any, ...]:
    """np.nonzero: columns of one array, as NumPy makes them."""
    if x.ndim == 0:
        raise ValueError("nonzero of 0-d")
    number = places(t, truth(t, x))
    if x.ndim == 1:
        return (number,)
    table = t.empty((number.shape[0], x.ndim), INT64)
    for k, column in enumerate(coordinates(t, number, x.shape)):
        t.assign(table[:, k], column)
    return tuple(table[:, k] for k in range(x.ndim))


@function("nonzero")
@method("nonzero")
def nonzero(t: Any, a: Any) -> Any:
    """np.nonzero"""
    return found_positions(t, array(t, a))


@function("flatnonzero")
def flatnonzero(t: Any, a: Any) -> Any:
    """np.flatnonzero"""
    return places(t, truth(t, array(t, a)))


@function("argwhere")
def argwhere(t: Any, a: Any) -> Any:
    """np.argwhere: the transpose of a table with one row per axis."""
    x = array(t, a)
    refuse(x.ndim == 0, "an array without axes")
    number = places(t, truth(t, x))
    table = t.empty((x.ndim, number.shape[0]), INT64)
    for k, row in enumerate(coordinates(t, number, x.shape)):
        t.assign(table[k], row)
    return t.permute(table, (1, 0))


@function("extract")
def extract(t: Any, condition: Any, arr: Any) -> Any:
    """np.extract"""
    mask, x = flat(t, truth(t, array(t, condition))), flat(t, array(t, arr))
    if mask.shape == x.shape:
        return t.compress(x, mask)
    return gathered(t, x, [0], [places(t, mask)], plain=True)


@function("compress")
def compress(t: Any, condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """np.compress"""
    refuse(out is not None, "out=")
    mask, x = truth(t, array(t, condition)), array(t, a)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        x, axis = flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    if x.ndim == 1 and x.shape == mask.shape:
        return t.compress(x, mask)
    return gathered(t, x, [axis], [places(t, mask)], plain=True)


@method("compress")
def compress_method(t: Any, self: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """ndarray.compress"""
    return compress(t, condition, self, axis, out)


# --- equal values -------------------------------------------------------------------------------


def differs(t: Any, x: Any, equal_nan: bool = True) -> Any:
    """A mask of the first element of each kind among sorted values; all NaNs may count as one kind."""
    number = t.iota(x.shape, 0)
    before = gathered(t, x, [0], [t.apply("maximum", t.apply("subtract", number, 1), 0)])
    other = t.apply("not_equal", x, before)
    if x.dtype.kind in "fc" and equal_nan:
        both = t.apply("logical_and", t.apply("isnan", x), t.apply("isnan", before))
        other = t.apply("logical_and", other, t.apply("logical_not", both))
    return t.apply("logical_or", t.apply("equal", number, 0), other)


@function("unique")
def unique(
    t: Any,
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002  (NumPy's name)
) -> Any:
    """np.unique of all elements, or of the rows along one axis."""
    given = array(t, ar)
    refuse(not sorted, "NumPy's hash table decides the order")
    refuse(given.dtype.kind == "c", "NaNs of several kinds")
    wanted = (return_index, return_inverse, return_counts)
    if axis is not None and given.ndim != 1:
        return unique_rows(t, given, normal_axis(axis, given.ndim), wanted)
    x, order = flat(t, given), None
    if not return_index and not return_inverse:
        values = sorted_values(t, x)
    else:
        order = argsorted(t, x, "mergesort" if return_index else "quicksort")
        values = gathered(t, x, [0], [order])
    mask = differs(t, values, equal_nan)
    results = [t.compress(values, mask), *about_first(t, mask, order, given.shape, wanted)]
    return results[0] if len(results) == 1 else tuple(results)


def unique_rows(t: Any, given: Any, axis: int, wanted: tuple[Any, ...]) -> Any:
    """np.unique along one axis of several. Rows are compared lexicographically; a row with a NaN equals no other."""
    front = t.permute(given, [axis, *(k for k in range(given.ndim) if k != axis)])
    n, rest = front.shape[0], front.shape[1:]
    refuse(any(k == 0 for k in rest), "rows of no elements")
    rows = t.reshape(front, (n, math.prod(rest)))

    def call(x: Any, _out: Any) -> Any:
        return np.lexsort(x.T[::-1])

    order = t.extern("lexsort_rows", "", call, [rows], (n,), INT64, positions=0)
    values = gathered(t, rows, [0], [order])
    number = t.iota((n,), 0)
    before = gathered(t, values, [0], [t.apply("maximum", t.apply("subtract", number, 1), 0)])
    mask = t.reduce("any", t.apply("not_equal", values, before), [1])
    mask = t.apply("logical_or", t.apply("equal", number, 0), mask)
    made = gathered(t, t.reshape(values, (n, *rest)), [0], [places(t, mask)], plain=True)
    if axis:
        turned = t.permute(made, [*range(1, axis + 1), 0, *range(axis + 1, given.ndim)])
        made = t.copy(turned, "K")
    like = np.unique(np.zeros((1,) * given.ndim), return_inverse=True, axis=axis)[1]
    shape = tuple(n if k == axis or like.ndim == 1 else 1 for k in range(like.ndim))
    results = [made, *about_first(t, mask, order, shape, wanted)]
    return results[0] if len(results) == 1 else tuple(results)


def about_first(
    t: Any, mask: Any, order: Any, shape: tuple[Any, ...], wanted: tuple[Any, ...]
) -> list[Any]:
    """The optional results of np.unique. mask marks the first element of each kind among the values
    sorted by order."""
    return_index, return_inverse, return_counts = wanted
    results = []
    if return_index:
        results.append(t.compress(order, mask))
    if return_inverse:
        rank = t.apply("subtract", t.scan("cumsum", cast(t, mask, INT64), 0), 1)
        inverse = t.empty(order.shape, INT64)
        scattered(t, inverse, [0], [order], rank, distinct=True)
        results.append(t.reshape(inverse, shape))
    if return_counts:
        first = t.compress(t.iota(mask.shape, 0), mask)
        end = t.full((1,), cast(t, t.lift(mask.shape[0]), INT64), INT64)
        following = t.apply("add", t.iota(first.shape, 0), 1)
        after = gathered(t, t.concat([first, end], 0), [0], [following])
        results.append(t.apply("subtract", after, first))
    return results


# --- counting and repeating ---------------------------------------------------------------------


@function("bincount")
def bincount(t: Any, x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """np.bincount"""
    index = array(t, x)
    if index.ndim != 1 or index.dtype.kind not in "biu" or index.dtype == np.uint64:
        raise TypeError("Cannot cast array data")
    least = whole(minlength)
    if least < 0:
        raise ValueError("'minlength' must not be negative")
    index = cast(t, index, INT64)
    refuse(type(index.size) is int and index.size == 0, "an empty array")
    require(t, t.reduce("all", t.apply("greater_equal", index, 0), None), "no negative elements")
    if (index.size > 0) is not True:
        index_or_least = t.concat([index, t.full((1,), np.int64(least - 1), INT64)], 0)
        most = t.reduce("max", index_or_least, None)
    else:
        most = t.apply("maximum", t.reduce("max", index, None), least - 1)
    length = t.define(t.apply("add", most, 1), least, None)
    counts = t.full((length,), np.int64(0), INT64)
    if weights is None:
        scattered(t, counts, [0], [index], np.int64(1), combine="add", inside=True)
        return counts
    require(t, usually_positive(t, index.size), "an empty array gives ints, weights or not")
    weight = operand(t, weights, np.dtype(np.float64))
    if weight.shape != index.shape:
        raise ValueError("The weights and list don't have the same length.")
    sums = t.full((length,), np.float64(0), np.dtype(np.float64))
    scattered(t, sums, [0], [index], weight, combine="add", inside=True)
    return sums


def repeated(t: Any, x: Any, repeats: Any, axis: Any) -> Any:
    """np.repeat with a number for each element."""
    counts = cast(t, array(t, repeats), INT64, "safe")
    if axis is None:
        x, axis = flat(t, x), 0
    axis = normal_axis(axis, x.ndim)
    refuse(counts.ndim != 1 or counts.shape[0] != x.shape[axis], "numbers that are broadcast")
    require(t, t.reduce("all", t.apply("greater_equal", counts, 0), None), "no negative repeats")
    length = t.define(t.reduce("sum", counts, None), 0, None)
    ends = t.scan("cumsum", counts, 0)
    starts = t.apply("subtract", ends, counts)
    # A mark where each repeated element begins. A running maximum gives the index of that element.
    marks = t.full((length + 1,), np.int64(0), INT64)
    scattered(t, marks, [0], [starts], t.iota(counts.shape, 0), combine="maximum")
    source = t.scan("cummax", marks, 0)[:length]
    return gathered(t, x, [axis], [source], plain=True)


@function("count_nonzero")
def count_nonzero(t: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """np.count_nonzero; without an axis it returns a Python int."""
    x = truth(t, array(t, a))
    if axis is None and not keepdims and COUNT_IS_PYTHONS:
        refuse(x.ndim == 0, "an array without axes")
        return places(t, x).shape[0]
    return fold(np.add, "reduce", x, axis=axis, dtype=np.intp, keepdims=keepdims)
