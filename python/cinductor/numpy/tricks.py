"""np.r_, np.c_, np.mgrid and np.ogrid: objects whose item is an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .create import wanted_dtype
from .grid import arange, is_int, linspace
from .join import end_to_end
from .surface import Traced, array, cast, function, rank, refuse, result_type


def parts_of(key: Any) -> tuple[Any, ...]:
    """The items of a key."""
    return key if is_a(key, tuple) else (key,)


def number_of_steps(step: Any) -> int | None:
    """1:2:5j has five steps, including the last."""
    return int(abs(step)) if is_a(step, complex | np.complexfloating) else None


def line(t: Any, item: slice) -> Any:
    """The array for a slice: an arange or a linspace."""
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    number = number_of_steps(step)
    if number is not None:
        return linspace(t, start, item.stop, number)
    return arange(t, start, item.stop, step)


def raised(t: Any, x: Any, ndmin: int, trans1d: int) -> Any:
    """An array with more axes; its own begin at trans1d."""
    more = ndmin - x.ndim
    if more <= 0:
        return x
    wide = t.reshape(x, (*(1,) * more, *x.shape))
    if trans1d == -1:
        return wide
    first = trans1d if trans1d >= 0 else trans1d + more + 1
    axes = list(range(ndmin))
    return t.permute(wide, axes[:first] + axes[more:] + axes[first:more])


@function("r_.__class__.__base__.__getitem__", creates=True)
def joined(t: Any, self: Any, key: Any) -> Any:
    """np.r_[...] and np.c_[...]"""
    axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
    items = list(parts_of(key))
    refuse(is_a(key, str) or self.matrix, "a matrix")
    if items and is_a(items[0], str):
        refuse(items[0] in ("r", "c"), "a matrix")
        numbers = [int(n) for n in items.pop(0).split(",")]
        axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
    xs, kinds = [], []
    for item in items:
        is_number = rank(item) == 0 if not is_a(item, slice) else False
        is_number = is_number and (type(item) is not Traced or item.kind != "array")
        x = line(t, item) if is_a(item, slice) else array(t, item)
        xs.append(raised(t, x, max(ndmin, 1), -1 if is_number else trans1d))
        kinds.append(item if is_number else x)
    dtype = wanted_dtype(result_type(*kinds))
    axis = axis if axis >= 0 else axis + xs[0].ndim
    return end_to_end(t, xs, dtype, axis)


@function("mgrid.__class__.__base__.__getitem__", creates=True)
def grid(t: Any, self: Any, key: Any) -> Any:
    """np.mgrid[...] and np.ogrid[...]"""
    if is_a(key, slice):
        number = number_of_steps(key.step)
        start = 0 if key.start is None else key.start
        if number is None:
            return arange(t, start, key.stop, 1 if key.step is None else key.step)
        step = (key.stop - start) / float(number - 1) if number != 1 else number
        dtype = result_type(start, key.stop, float(number))
        return cast(t, t.iota((number,), 0), dtype) * step + start
    sizes, numbers = [], [0]
    for item in key:
        start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
        number = number_of_steps(step)
        step = step if number is None else abs(step)
        sizes.append(steps_between(start, item.stop, step) if number is None else number)
        numbers += [start, item.stop, step]
    dtype = wanted_dtype(result_type(*numbers))
    made = None if self.sparse else t.empty((len(sizes), *sizes), dtype)
    lines = []
    for k, item in enumerate(key):
        start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
        number = number_of_steps(step)
        if number is not None:
            step = (item.stop - start) / float(number - 1) if number != 1 else number
        values = cast(t, t.iota((sizes[k],), 0), dtype) * step + start
        values = values[tuple(slice(None) if j == k else None for j in range(len(sizes)))]
        lines.append(values)
        if made is not None:
            t.assign(made[k], values)
    return tuple(lines) if made is None else made


def steps_between(start: Any, stop: Any, step: Any) -> Any:
    """The number of steps: an expression of sizes for ints."""
    if any(type(v) is Traced for v in (start, stop, step)):
        are_ints = all(
            type(v) is int or type(v) is Traced and is_int(v) for v in (start, stop, step)
        )
        refuse(not are_ints, "a size that data decide")
        return -((start - stop) // step)
    return math.ceil((stop - start) / step)
