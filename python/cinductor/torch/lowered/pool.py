"""Averages and maxima over windows: pooling with static kernel sizes."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..emit import Emitter
from ..promote import computation_dtype
from ..sizes import decide
from ..values import GraphValue
from . import argument, meta
from .create import padded
from .point import towards_zero


def average(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """avg_pool: windows that may reach beyond the array are padded with zeros; each sum is divided by the window's size.

    The size counts the padding or not, but never what lies beyond it (with ceil_mode).
    """
    out, x = meta(node), emitter.env[node.args[0]]
    rank = _rank(node)
    kernel, stride, padding = (_each(node, name, rank) for name in ("kernel_size", "stride", "padding"))
    first, counts = len(x.sizes) - rank, []
    value = emitter.cast(x, computation_dtype(out.dtype) if out.dtype.is_floating_point else out.dtype)
    for k in range(rank):
        axis, size = first + k, x.sizes[first + k]
        counts.append(_count(emitter, node, size, out.size(axis), kernel[k], stride[k], padding[k]))
        value = _framed_windows(emitter, value, axis, out.size(axis), kernel[k], stride[k], padding[k])
    total = emitter.fold("sum", value, list(range(len(x.sizes), len(x.sizes) + rank)), False)
    divisor = argument(node, "divisor_override")
    by = emitter.constant(divisor, torch.int64) if divisor else _product(emitter, counts)
    return emitter.cast(_divided(emitter, total, emitter.cast(by, total.dtype)), out.dtype)


def adaptive(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Averages over windows that cover the array; their sizes differ by at most one along an axis."""
    out, x = meta(node), emitter.env[node.args[0]]
    first, counts = len(x.sizes) - len(node.args[1]), []
    total = emitter.cast(x, computation_dtype(out.dtype))
    for axis in range(first, len(x.sizes)):
        size, wanted = x.sizes[axis], out.size(axis)
        if decide(size % wanted == 0):
            shape = (*total.sizes[:axis], wanted, size // wanted, *total.sizes[axis + 1 :])
            total, count = emitter.reshape(total, shape), emitter.value(size // wanted, torch.int64)
        else:
            total, count = _masked(emitter, total, axis, size, wanted)
        total = emitter.fold("sum", total, [axis + 1], False)
        counts.append(count)
    return emitter.cast(_divided(emitter, total, emitter.cast(_product(emitter, counts), total.dtype)), out.dtype)


def _masked(emitter: Emitter, x: GraphValue, axis: int, size: Any, wanted: Any) -> tuple[GraphValue, GraphValue]:
    """For each window a copy of the axis with zeros outside of the window; and the number of elements of each window."""

    def below(more: Any) -> GraphValue:
        """The quotient (size * k + more) // wanted of the window with number k."""
        scaled = emitter.apply("multiply", [emitter.iota(wanted), emitter.value(size, torch.int64)])
        return emitter.apply("floor_divide", [emitter.apply("add", [scaled, emitter.value(more, torch.int64)]), emitter.value(wanted, torch.int64)])

    start, end = below(0), below(size + wanted - 1)
    ones = (1,) * (len(x.sizes) - axis - 1)
    place = emitter.reshape(emitter.iota(size), (size, *ones))
    column = [emitter.reshape(v, (wanted, 1, *ones)) for v in (start, end)]
    inside = emitter.apply("logical_and", [emitter.apply("less_equal", [column[0], place]), emitter.apply("less", [place, column[1]])])
    value = emitter.reshape(x, (*x.sizes[:axis], 1, *x.sizes[axis:]))
    return emitter.apply("where", [inside, value, emitter.constant(0, x.dtype)]), emitter.apply("subtract", [end, start])


def _each(node: torch.fx.Node, name: str, rank: int) -> list[int]:
    """A number for each axis: of one that is given for all, or the kernel's size where a stride is missing."""
    given = argument(node, name)
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    given = given or _each(node, "kernel_size", rank)
    return given * rank if len(given) == 1 else given


def windows(emitter: Emitter, x: GraphValue, axis: int, count: Any, reach: Any, stride: int, dilation: int = 1) -> GraphValue:
    """The windows along an axis, their elements in a new last axis: each `dilation`-th of the `reach` elements."""
    whole = [s - reach + 1 if k == axis else s for k, s in enumerate(x.sizes)] + [reach]
    made = emitter.along(emitter.put("window", [x], x.dtype, whole, axes=[axis]), axis, 0, stride, count)
    return made if dilation == 1 else emitter.along(made, len(whole) - 1, 0, dilation, (reach - 1) // dilation + 1)


def _framed_windows(
    emitter: Emitter, x: GraphValue, axis: int, count: Any, reach: int, stride: int, padding: int, dilation: int = 1, value: Any = 0
) -> GraphValue:
    """The windows of an array with so many elements of that value before it, and behind it as many as they reach."""
    beyond = (count - 1) * stride + reach - padding - x.sizes[axis]
    beyond = beyond if decide(beyond > 0) else 0
    if padding or not (isinstance(beyond, int) and beyond == 0):
        rank = range(len(x.sizes))
        x = padded(emitter, x, [padding if k == axis else 0 for k in rank], [beyond if k == axis else 0 for k in rank], value)
    return windows(emitter, x, axis, count, reach, stride, dilation)


def maximum(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue | None]:
    """max_pool: the largest element of each window, and its place in the array if the graph reads it. NaN is the largest."""
    x, rank = emitter.env[node.args[0]], _rank(node)
    out, first = meta(node)[0], len(x.sizes) - rank
    steps = [_each(node, name, rank) for name in ("kernel_size", "stride", "padding", "dilation")]

    def framed(v: GraphValue, outside: Any) -> GraphValue:
        for k, (kernel, stride, padding, dilation) in enumerate(zip(*steps, strict=True)):
            v = _framed_windows(emitter, v, first + k, out.size(first + k), (kernel - 1) * dilation + 1, stride, padding, dilation, outside)
        return v

    value = framed(x, _least(x.dtype))
    window = list(range(len(x.sizes), len(value.sizes)))
    largest = emitter.fold("max", value, window, False)
    if not any(user.args[1] == 1 for user in node.users):
        return [largest, None]
    is_one = emitter.apply("equal", [value, emitter.reshape(largest, (*largest.sizes, *[1] * rank))])
    is_one = emitter.apply("logical_and", [is_one, framed(emitter.expand(emitter.constant(True, torch.bool), x.sizes), False)])
    count, size = math.prod(steps[0]), (*largest.sizes, math.prod(steps[0]))
    at = _first_or_last(emitter, emitter.reshape(is_one, size), emitter.reshape(emitter.apply("isnan", [value]), size), count)
    return [largest, _place(emitter, at, x, first, steps)]


def _first_or_last(emitter: Emitter, is_one: GraphValue, is_nan: GraphValue, count: int) -> GraphValue:
    """The number of the first largest element along the last axis; of the last NaN, if there is one."""
    place = emitter.iota(count)
    from_end = emitter.apply("subtract", [emitter.constant(count, torch.int64), place])
    rank = emitter.apply("where", [is_one, from_end, emitter.constant(0, torch.int64)])
    rank = emitter.apply("where", [is_nan, emitter.apply("add", [place, emitter.constant(count + 1, torch.int64)]), rank])
    return emitter.put("argmax", [rank], torch.int64, rank.sizes[:-1], axes=[len(rank.sizes) - 1])


def _rank(node: torch.fx.Node) -> int:
    """The number of pooled axes."""
    return 3 if "3d" in str(node.target) else 2


def _least(dtype: torch.dtype) -> Any:
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _place(emitter: Emitter, at: GraphValue, x: GraphValue, first: int, steps: list[list[int]]) -> GraphValue:
    """The number of an element among those of its image, from its number in its window."""
    rank, made = len(x.sizes) - first, None

    def number(n: Any) -> GraphValue:
        return emitter.value(n, torch.int64)

    for k in range(rank):
        kernel, stride, padding, dilation = (row[k] for row in steps)
        inner = math.prod(steps[0][k + 1 :])
        inside = emitter.apply("remainder", [emitter.apply("floor_divide", [at, number(inner)]), number(kernel)])
        start = emitter.apply("subtract", [emitter.apply("multiply", [emitter.iota(at.sizes[first + k]), number(stride)]), number(padding)])
        start = emitter.reshape(start, (at.sizes[first + k], *[1] * (rank - 1 - k)))
        along = emitter.apply("add", [start, emitter.apply("multiply", [inside, number(dilation)])])
        made = along if made is None else emitter.apply("add", [emitter.apply("multiply", [made, number(x.sizes[first + k])]), along])
    assert made is not None
    return made


def _count(emitter: Emitter, node: torch.fx.Node, size: Any, count: Any, kernel: int, stride: int, padding: int) -> GraphValue:
    """How many elements each window along an axis counts."""

    def number(x: Any) -> GraphValue:
        return emitter.value(x, torch.int64)

    start = emitter.apply("subtract", [emitter.apply("multiply", [emitter.iota(count), number(stride)]), number(padding)])
    end = emitter.apply("minimum", [emitter.apply("add", [start, number(kernel)]), number(size + padding)])
    if not argument(node, "count_include_pad"):
        start, end = emitter.apply("maximum", [start, number(0)]), emitter.apply("minimum", [end, number(size)])
    return emitter.apply("subtract", [end, start])


def _product(emitter: Emitter, counts: list[GraphValue]) -> GraphValue:
    """The sizes of windows from the counts along each axis, which are arrays or numbers."""
    made = counts[0]
    for other in counts[1:]:
        made = emitter.apply("multiply", [emitter.reshape(made, (*made.sizes, 1)) if made.sizes else made, other])
    return made


def _divided(emitter: Emitter, total: GraphValue, by: GraphValue) -> GraphValue:
    if total.dtype.is_floating_point:
        return emitter.apply("divide", [total, by])
    return towards_zero(emitter, total, by, emitter.apply("floor_divide", [total, by]))
