"""Convolutions by the core itself: sums of products over windows."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..emit import Emitter
from ..sizes import decide
from ..values import GraphValue, Unmapped
from . import argument, meta
from .create import padded
from .pool import windows
from .product import factors, leave_to_library, product

NARROW = (torch.bfloat16, torch.float16)


def convolution(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """A transposed one is the convolution of its input, with zeros between the elements, by the mirrored kernel."""
    out = meta(node)
    rank, groups = out.dim() - 2, argument(node, "groups")
    stride, padding, dilation, more = (_each(argument(node, name), rank) for name in ("stride", "padding", "dilation", "output_padding"))
    x, weight, *bias = _operands(emitter, [a for a in node.args[:3] if a is not None], out.dtype)
    kernel = weight.sizes[2:]
    if emitter.has_libraries and (rounds_often(node, out.dtype) or is_of_parts(node.args[0])):
        raise Unmapped("eager's rounding")
    leave_to_library(emitter, x.dtype, math.prod(out.size()), x.sizes[1] // groups * math.prod(kernel))
    low, high = list(padding), list(padding)
    if argument(node, "transposed"):
        x, weight = _spread(emitter, x, stride), _mirrored(emitter, weight, groups)
        low = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
        high, stride = [p + m for p, m in zip(low, more, strict=True)], [1] * rank
    made = _convolved(emitter, _framed(emitter, x, low, high), weight, out.size()[2:], stride, dilation, groups)
    for b in bias:
        made = emitter.apply("add", [made, emitter.reshape(b, (*b.sizes, *[1] * rank))])
    return emitter.cast(made, out.dtype)


def gradients(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue | None]:
    """convolution_backward. The input's is a convolution of the result's by the mirrored kernel; the weight's is a sum of products
    over all windows.
    """
    mask, groups, dtype = argument(node, "output_mask"), argument(node, "groups"), meta(node.args[0]).dtype
    x, weight, g = _operands(emitter, [node.args[k] for k in (1, 2, 0)], dtype)
    rank, kernel = len(x.sizes) - 2, weight.sizes[2:]
    if emitter.has_libraries and (argument(node, "transposed") or dtype in NARROW or is_of_parts(node.args[1])):
        raise Unmapped("eager's rounding")
    leave_to_library(emitter, x.dtype, math.prod(x.sizes), weight.sizes[0] // groups * math.prod(kernel))
    leave_to_library(emitter, x.dtype, math.prod(weight.sizes), x.sizes[0] * math.prod(g.sizes[2:]))
    steps = [_each(argument(node, name), rank) for name in ("stride", "padding", "dilation")]
    made: list[GraphValue | None] = [None] * 3
    if mask[0]:
        made[0] = _of_input(emitter, g, x, weight, groups, *steps)
    if mask[1]:
        made[1] = _of_weight(emitter, g, _framed(emitter, x, steps[1], steps[1]), weight, groups, steps[0], steps[2])
    if mask[2]:
        made[2] = emitter.fold("sum", g, [0, *range(2, 2 + rank)], False)
    return [v if v is None else emitter.cast(v, dtype) for v in made]


def _operands(emitter: Emitter, given: list[Any], dtype: torch.dtype) -> list[GraphValue]:
    """The input, the weight and others."""
    values = factors(emitter, given, dtype)
    if decide(values[0].sizes[1] == 0):
        raise Unmapped("eager's convolution of no channels makes none")
    return values


def _of_input(
    emitter: Emitter, g: GraphValue, x: GraphValue, weight: GraphValue, groups: int, stride: list[int], padding: list[int], dilation: list[int]
) -> GraphValue:
    wide, reach = _spread(emitter, g, stride), [d * (k - 1) for d, k in zip(dilation, weight.sizes[2:], strict=True)]
    low = [r - p for r, p in zip(reach, padding, strict=True)]
    high = [n + r - have - a for n, r, have, a in zip(x.sizes[2:], reach, wide.sizes[2:], low, strict=True)]
    return _convolved(emitter, _framed(emitter, wide, low, high), _mirrored(emitter, weight, groups), x.sizes[2:], [1] * len(low), dilation, groups)


def _of_weight(
    emitter: Emitter, g: GraphValue, x: GraphValue, weight: GraphValue, groups: int, stride: list[int], dilation: list[int]
) -> GraphValue:
    rank, out, kernel = len(stride), g.sizes[2:], weight.sizes[2:]
    if x.sizes[1] == weight.sizes[0] == groups:
        axes = [0, *range(2, 2 + rank)]
        terms = [emitter.fold("sum", emitter.apply("multiply", [part, g]), axes, False) for _, part in _shifted(emitter, x, kernel, out, stride, dilation)]
        columns = [emitter.reshape(t, (groups, 1)) for t in terms]
        return emitter.reshape(emitter.put("concat", columns, g.dtype, (groups, len(columns)), axes=[1]), weight.sizes)
    x = _all_windows(emitter, x, kernel, out, stride, dilation)
    n, channels, made, pixels = x.sizes[0], x.sizes[1] // groups, weight.sizes[0] // groups, math.prod(out)
    x = emitter.permute(emitter.reshape(x, (n, groups, channels, *out, *kernel)), [1, 2, *range(3 + rank, 3 + 2 * rank), 0, *range(3, 3 + rank)])
    rows = emitter.reshape(x, (groups, channels * math.prod(kernel), n * pixels))
    g = emitter.permute(emitter.reshape(g, (n, groups, made, *out)), [1, 0, *range(3, 3 + rank), 2])
    y = product(emitter, rows, emitter.reshape(g, (groups, n * pixels, made)))
    return emitter.reshape(emitter.permute(y, [0, 2, 1]), weight.sizes)


def _convolved(
    emitter: Emitter, x: GraphValue, weight: GraphValue, out: Any, stride: list[int], dilation: list[int], groups: int
) -> GraphValue:
    """A convolution without padding."""
    kernel = weight.sizes[2:]
    if x.sizes[1] == weight.sizes[0] == groups:
        return _by_channel(emitter, x, weight, out, stride, dilation)
    return _contract(emitter, _all_windows(emitter, x, kernel, out, stride, dilation), weight, groups)


def _all_windows(emitter: Emitter, x: GraphValue, kernel: Any, out: Any, stride: list[int], dilation: list[int]) -> GraphValue:
    """[N, C, *image] -> [N, C, *out, *kernel]."""
    for k, (size, count) in enumerate(zip(kernel, out, strict=True)):
        x = windows(emitter, x, 2 + k, count, (size - 1) * dilation[k] + 1, stride[k], dilation[k])
    return x


def rounds_often(node: torch.fx.Node, dtype: torch.dtype) -> bool:
    """True if eager rounds each sum of a transposed convolution to a narrow float several times."""
    return bool(argument(node, "transposed")) and dtype in NARROW


def is_of_parts(node: Any, depth: int = 3) -> bool:
    """True for parts of complex numbers, whose convolution eager makes of three real ones: their rounding errors remain when it
    subtracts them from each other.
    """
    if not isinstance(node, torch.fx.Node) or depth == 0:
        return False
    return node.target is torch.ops.aten.view_as_real.default or any(is_of_parts(a, depth - 1) for a in node.args)


def _each(given: Sequence[Any], rank: int) -> list[Any]:
    return list(given) * rank if len(given) == 1 else list(given)


def _contract(emitter: Emitter, x: GraphValue, weight: GraphValue, groups: int) -> GraphValue:
    """Windows [N, C, *out, *kernel] and a weight [O, C/groups, *kernel] -> [N, O, *out]."""
    rank = len(weight.sizes) - 2
    n, channels, out, kernel = x.sizes[0], x.sizes[1] // groups, x.sizes[2 : 2 + rank], weight.sizes[2:]
    made, depth, pixels = weight.sizes[0] // groups, channels * math.prod(kernel), math.prod(out)
    x = emitter.reshape(x, (n, groups, channels, *out, *kernel))
    x = emitter.permute(x, [1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)])
    rows = emitter.reshape(x, (groups, n * pixels, depth))
    columns = emitter.permute(emitter.reshape(weight, (groups, made, depth)), [0, 2, 1])
    y = emitter.reshape(product(emitter, rows, columns), (groups, n, *out, made))
    y = emitter.permute(y, [1, 0, 2 + rank, *range(2, 2 + rank)])
    return emitter.reshape(y, (n, groups * made, *out))


def _by_channel(emitter: Emitter, x: GraphValue, weight: GraphValue, out: Any, stride: list[int], dilation: list[int]) -> GraphValue:
    """Windows of each channel by the kernel of that channel, element by element of the kernel."""
    rank, terms = len(out), []
    for at, part in _shifted(emitter, x, weight.sizes[2:], out, stride, dilation):
        by = emitter.slice(weight, [0, 0, *at], [1] * (2 + rank), (weight.sizes[0], 1, *[1] * rank))
        terms.append(emitter.apply("multiply", [part, emitter.reshape(by, (weight.sizes[0], *[1] * rank))]))
    return functools.reduce(lambda a, b: emitter.apply("add", [a, b]), terms)


def _shifted(
    emitter: Emitter, x: GraphValue, kernel: Any, out: Any, stride: list[int], dilation: list[int]
) -> Iterator[tuple[tuple[int, ...], GraphValue]]:
    """For each place in a window: that element of each window."""
    for at in itertools.product(*(range(k) for k in kernel)):
        starts = [0, 0, *(a * d for a, d in zip(at, dilation, strict=True))]
        yield at, emitter.slice(x, starts, [1, 1, *stride], (*x.sizes[:2], *out))


def _spread(emitter: Emitter, x: GraphValue, stride: list[int]) -> GraphValue:
    """Zeros between the elements, stride - 1 of them along each axis."""
    for axis, step in enumerate(stride, 2):
        if step == 1:
            continue
        size = x.sizes[axis]
        wide = emitter.reshape(x, (*x.sizes[: axis + 1], 1, *x.sizes[axis + 1 :]))
        none, high = [0] * len(wide.sizes), [0] * len(wide.sizes)
        high[axis + 1] = step - 1
        whole = emitter.reshape(padded(emitter, wide, none, high), (*x.sizes[:axis], size * step, *x.sizes[axis + 1 :]))
        x = emitter.along(whole, axis, 0, 1, (size - 1) * step + 1)
    return x


def _mirrored(emitter: Emitter, weight: GraphValue, groups: int) -> GraphValue:
    """A weight [C, O/groups, *kernel] of a transposed convolution -> [O, C/groups, *kernel], each axis reversed."""
    whole, made, *kernel = weight.sizes
    w = emitter.reshape(weight, (groups, whole // groups, made, *kernel))
    w = emitter.permute(w, [0, 2, 1, *range(3, 3 + len(kernel))])
    starts, steps = [0, 0, 0, *(k - 1 for k in kernel)], [1, 1, 1, *[-1] * len(kernel)]
    return emitter.reshape(emitter.slice(w, starts, steps, w.sizes), (groups * made, whole // groups, *kernel))


def _framed(emitter: Emitter, x: GraphValue, low: list[Any], high: list[Any]) -> GraphValue:
    """Zeros around the images; a negative width leaves elements out."""
    return padded(emitter, x, [0, 0, *low], [0, 0, *high])
