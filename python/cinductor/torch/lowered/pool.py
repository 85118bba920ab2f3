"""Averages over windows: pooling with static kernel sizes."""

from __future__ import annotations

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
    rank = len(argument(node, "kernel_size"))
    kernel, stride, padding = (_each(node, name, rank) for name in ("kernel_size", "stride", "padding"))
    first, counts = len(x.sizes) - rank, []
    value = emitter.cast(x, computation_dtype(out.dtype) if out.dtype.is_floating_point else out.dtype)
    for k in range(rank):
        axis, size = first + k, x.sizes[first + k]
        counts.append(_count(emitter, node, size, out.size(axis), kernel[k], stride[k], padding[k]))
        value = _windows(emitter, value, axis, out.size(axis), kernel[k], stride[k], padding[k])
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


def _windows(emitter: Emitter, x: GraphValue, axis: int, count: Any, kernel: int, stride: int, padding: int) -> GraphValue:
    """The windows along an axis, their elements in a new last axis."""
    size = x.sizes[axis]
    beyond = (count - 1) * stride + kernel - padding - size
    beyond = beyond if decide(beyond > 0) else 0
    if padding or not (isinstance(beyond, int) and beyond == 0):
        x = padded(emitter, x, [padding if k == axis else 0 for k in range(len(x.sizes))], [beyond if k == axis else 0 for k in range(len(x.sizes))])
    whole = [s - kernel + 1 if k == axis else s for k, s in enumerate(x.sizes)] + [kernel]
    return emitter.along(emitter.put("window", [x], x.dtype, whole, axes=[axis]), axis, 0, stride, count)


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
