"""Ops that create a tensor, or write one into a part of another."""

from __future__ import annotations

from typing import Any

import torch

from ..emit import Emitter
from ..sizes import decide
from ..values import GraphValue, Unmapped
from . import argument, has_argument, meta, sizes
from .view import from_front, size_of, start_of


def _filled(emitter: Emitter, node: torch.fx.Node, value: object) -> GraphValue:
    out = meta(node)
    return emitter.expand(emitter.value(value, out.dtype), tuple(out.size()))


def zeros(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _filled(emitter, node, 0)


def empty(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Undefined elements, which are zeros here; eager fills them with NaN if it is to be deterministic."""
    if torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory:
        raise Unmapped("undefined elements are filled")
    return zeros(emitter, node)


def ones(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _filled(emitter, node, 1)


def full(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    for name in ("fill_value", "value", "s"):
        if has_argument(node, name):
            return _filled(emitter, node, argument(node, name))
    raise Unmapped("no value to fill with")


def iota(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node)
    n = size_of(emitter, node.args[0])
    start, step = size_of(emitter, node.kwargs["start"]), size_of(emitter, node.kwargs["step"])
    v = emitter.iota(n)
    if not (isinstance(step, int) and step == 1):
        v = emitter.apply("multiply", [v, emitter.value(step, torch.int64)])
    if not (isinstance(start, int) and start == 0):
        v = emitter.apply("add", [v, emitter.value(start, torch.int64)])
    return emitter.cast(v, out.dtype)


def arange(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """A range; one of floats is computed in float64, as eager computes it."""
    out = meta(node)
    start, step = (size_of(emitter, argument(node, name)) for name in ("start", "step"))
    is_float = out.dtype.is_floating_point
    if not is_float and not all(isinstance(x, (int, torch.SymInt)) for x in (start, step)):
        raise Unmapped("a range of ints from floats")
    compute = torch.float64 if is_float else torch.int64
    v = emitter.apply("multiply", [emitter.cast(emitter.iota(out.size(0)), compute), emitter.value(step, compute)])
    return emitter.cast(emitter.apply("add", [v, emitter.value(start, compute)]), out.dtype)


def pad(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    widths = [size_of(emitter, p) for p in node.args[1]]
    rank = len(x.sizes)
    low, high = [0] * rank, [0] * rank
    for k in range(len(widths) // 2):
        low[rank - 1 - k], high[rank - 1 - k] = widths[2 * k : 2 * k + 2]
    return padded(emitter, x, low, high, argument(node, "value"))


def padded(emitter: Emitter, x: GraphValue, low: list[Any], high: list[Any], value: Any = 0) -> GraphValue:
    """The value with so many elements more at the start and at the end of each axis; a negative width leaves elements out."""
    before, after = list(low), list(high)
    for axis, widths in enumerate(zip(low, high, strict=True)):
        cut = [-w if decide(w < 0) else 0 for w in widths]
        if any(not isinstance(c, int) or c for c in cut):
            x = emitter.along(x, axis, cut[0], 1, x.sizes[axis] - cut[0] - cut[1])
            before[axis], after[axis] = (w + c for w, c in zip(widths, cut, strict=True))
    if all(isinstance(w, int) and w == 0 for w in before + after):
        return x
    sizes = [a + s + b for a, s, b in zip(before, x.sizes, after, strict=True)]
    base = emitter.copy(emitter.expand(emitter.value(value, x.dtype), sizes))
    if any(decide(s == 0) for s in x.sizes):
        return base
    return put_into(emitter, base, emitter.slice(base, before, [1] * len(sizes), x.sizes), x)


def put_into(emitter: Emitter, base: GraphValue, view: GraphValue, value: GraphValue) -> GraphValue:
    """A version of base in which the elements of the view are the value's."""
    return emitter.put("assign", [base, view, value], base.dtype, base.sizes)


def writable(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The operand of which a scatter makes a new version. The core copies it if its old value is read later."""
    return emitter.cast(emitter.env[node.args[0]], meta(node).dtype)


def slice_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    base, part = writable(emitter, node), sizes(node.args[1])
    axis = argument(node, "dim") % len(part)
    if any(decide(s == 0) for s in part):
        return base
    base = emitter.copy(base)
    start = start_of(emitter, argument(node, "start"), base.sizes[axis])
    view = emitter.along(base, axis, start, size_of(emitter, argument(node, "step")), part[axis])
    return put_into(emitter, base, view, emitter.value(node.args[1], base.dtype))


def select_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    base = emitter.copy(writable(emitter, node))
    axis = argument(node, "dim") % len(base.sizes)
    i = from_front(emitter, argument(node, "index"), base.sizes[axis])
    value = emitter.value(node.args[1], base.dtype)
    one = [1 if k == axis else s for k, s in enumerate(base.sizes)]
    return put_into(emitter, base, emitter.along(base, axis, i, 1, 1), emitter.reshape(value, one))


def diagonal_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    base, value = emitter.copy(writable(emitter, node)), sizes(node.args[1])
    axes = [argument(node, name) % len(base.sizes) for name in ("dim1", "dim2")]
    view = emitter.put("diagonal", [base], base.dtype, value, axes=axes, starts=[argument(node, "offset")])
    return put_into(emitter, base, view, emitter.value(node.args[1], base.dtype))


def copy(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return emitter.expand(emitter.value(node.args[1], meta(node).dtype), sizes(node))
