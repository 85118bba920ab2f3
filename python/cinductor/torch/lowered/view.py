"""Ops whose result is a rearrangement of their operand's elements."""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import layout
from ..emit import Emitter
from ..sizes import are_equal, decide, is_equal
from ..values import GraphValue, Refused, Unmapped
from . import argument, meta, sizes


def reshape(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    if x.dtype != meta(node).dtype:
        raise Unmapped("a view of another dtype")
    return emitter.reshape(x, sizes(node))


def same(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Returns the operand, because a layout only matters for outputs of the graph."""
    value: GraphValue = emitter.env[node.args[0]]
    return value


def permute(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    return emitter.permute(x, [a % len(x.sizes) for a in node.args[1]])


def transpose(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    axes = list(range(len(x.sizes)))
    if axes:
        a, b = argument(node, "dim0") % len(axes), argument(node, "dim1") % len(axes)
        axes[a], axes[b] = axes[b], axes[a]
    return emitter.permute(x, axes)


def t(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    return emitter.permute(x, list(range(len(x.sizes)))[::-1])


def expand(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return emitter.expand(emitter.env[node.args[0]], sizes(node))


def broadcast_in_dim(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, middle = emitter.env[node.args[0]], [1] * len(sizes(node))
    for k, d in enumerate(node.args[2]):
        middle[d] = x.sizes[k]
    return emitter.expand(emitter.reshape(x, middle), sizes(node))


def size_of(emitter: Emitter, x: Any) -> Any:
    """A size argument: an int or a SymInt."""
    if isinstance(x, torch.fx.Node):
        value = emitter.env[x]
        return meta(x) if isinstance(value, GraphValue) else value
    return x


def from_front(emitter: Emitter, i: Any, size: Any) -> Any:
    """An index as a position from the front. A negative index counts from the end."""
    i = size_of(emitter, i)
    return i + size if decide(i < 0) else i


def start_of(emitter: Emitter, i: Any, size: Any) -> Any:
    """The first index of a slice, as torch clamps it."""
    if size_of(emitter, i) is None:
        return 0
    start = from_front(emitter, i, size)
    return 0 if decide(start < 0) else size if decide(start > size) else start


def slice_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, out = emitter.env[node.args[0]], sizes(node)
    axis = argument(node, "dim") % len(out)
    start = 0 if decide(out[axis] == 0) else start_of(emitter, argument(node, "start"), x.sizes[axis])
    return emitter.along(x, axis, start, size_of(emitter, argument(node, "step")), out[axis])


def select(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    axis = node.args[1] % len(x.sizes)
    return emitter.reshape(emitter.along(x, axis, from_front(emitter, node.args[2], x.sizes[axis]), 1, 1), sizes(node))


def split(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    x, at, made = emitter.env[node.args[0]], 0, []
    axis = argument(node, "dim") % len(x.sizes)
    for out in meta(node):
        made.append(emitter.along(x, axis, at, 1, out.size(axis)))
        at = at + out.size(axis)
    return made


def unbind(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    x = emitter.env[node.args[0]]
    axis = argument(node, "dim") % len(x.sizes)
    return [emitter.reshape(emitter.along(x, axis, k, 1, 1), tuple(out.size())) for k, out in enumerate(meta(node))]


def diagonal(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    axes = [argument(node, name) % len(x.sizes) for name in ("dim1", "dim2")]
    return emitter.put("diagonal", [x], x.dtype, sizes(node), axes=axes, starts=[argument(node, "offset")])


def unfold(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    if not x.sizes:
        return emitter.along(emitter.reshape(x, (1,)), 0, 0, 1, node.args[2])
    axis, size, step = node.args[1] % len(x.sizes), node.args[2], node.args[3]
    whole = [s - size + 1 if k == axis else s for k, s in enumerate(x.sizes)] + [size]
    return emitter.along(emitter.put("window", [x], x.dtype, whole, axes=[axis]), axis, 0, step, sizes(node)[axis])


def resize(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The first elements of the operand's memory in the new sizes. More elements than it has, which torch leaves undefined, are refused."""
    x, out = node.args[0], sizes(node)
    count = math.prod(out)
    if not decide(count <= math.prod(sizes(x))):
        raise Unmapped("more elements than the operand's memory has")
    return emitter.reshape(emitter.along(memory_of(emitter, x), 0, 0, 1, count), out)


def flip(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    if not x.sizes or any(decide(s == 0) for s in x.sizes):
        return x
    axes = {d % len(x.sizes) for d in node.args[1]}
    starts = [x.sizes[k] - 1 if k in axes else 0 for k in range(len(x.sizes))]
    return emitter.slice(x, starts, [-1 if k in axes else 1 for k in range(len(x.sizes))], x.sizes)


def cat(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node)
    parts = [x for x in node.args[0] if not (meta(x).dim() == 1 and decide(meta(x).size(0) == 0) and out.dim() != 1)]
    values = [emitter.value(x, out.dtype) for x in parts]
    if len(values) < 2:
        return values[0] if values else emitter.expand(emitter.constant(0, out.dtype), tuple(out.size()))
    return emitter.put("concat", values, out.dtype, tuple(out.size()), axes=[argument(node, "dim") % out.dim()])


def memory_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """All elements of the storage of a node's value, in the order of memory."""
    owner = emitter.owner_of(layout.storage_of(meta(node)))
    if owner is None or not layout.is_whole(meta(owner)):
        raise Refused("strides over memory that no node of the graph is the whole of")
    whole = emitter.env[owner]
    if whole.dtype != meta(node).dtype:
        raise Refused("strides over memory of another dtype")
    order = layout.order_of(meta(owner))
    if order != sorted(order):
        whole = emitter.permute(whole, order)
    return emitter.reshape(whole, (math.prod(whole.sizes),))


def positions(emitter: Emitter, room: Any, extents: Any, strides: Any, offset: Any) -> GraphValue:
    """The positions of a view's elements in memory. room: the number of elements of the memory."""
    if decide(offset + sum((s - 1) * t for s, t in zip(extents, strides, strict=True)) >= room):
        raise Refused("strides that leave the operand's memory")
    at = emitter.value(offset, torch.int64)
    for k, (size, stride) in enumerate(zip(extents, strides, strict=True)):
        step = emitter.apply("multiply", [emitter.iota(size), emitter.value(stride, torch.int64)])
        at = emitter.apply("add", [at, emitter.reshape(step, [size if d == k else 1 for d in range(len(extents))])])
    return emitter.expand(at, extents)


def view_of_memory(emitter: Emitter, node: torch.fx.Node) -> tuple[list[Any], list[Any], Any]:
    """The sizes, strides and offset in the arguments of a call of as_strided."""
    x, out = node.args[0], [argument(node, name) for name in ("size", "stride", "storage_offset")]
    extents, strides = ([size_of(emitter, s) for s in values] for values in out[:2])
    return extents, strides, meta(x).storage_offset() if out[2] is None else size_of(emitter, out[2])


def as_strided(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, out = node.args[0], meta(node)
    extents, strides, offset = view_of_memory(emitter, node)
    if are_equal(extents, sizes(x)) and are_equal(strides, meta(x).stride()) and is_equal(offset, meta(x).storage_offset()):
        return same(emitter, node)
    memory = memory_of(emitter, x)
    if layout.is_whole(out) and is_equal(math.prod(extents), memory.sizes[0]):
        order = layout.order_of(out)
        v = emitter.reshape(memory, [extents[k] for k in order])
        return v if order == sorted(order) else emitter.permute(v, [order.index(k) for k in range(len(order))])
    if any(decide(s == 0) for s in extents):
        return emitter.expand(emitter.constant(0, out.dtype), tuple(extents))
    return emitter.put("gather", [memory, positions(emitter, memory.sizes[0], extents, strides, offset)], out.dtype, tuple(extents), axes=[0])


def as_strided_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """A copy of the operand with new values in a view. If several values have one position, one of them is stored."""
    x, out = node.args[0], meta(node)
    if not layout.is_whole(meta(x)):
        raise Refused("a write by strides into memory that has more than the operand")
    extents, strides, offset = view_of_memory(emitter, node)
    order = layout.order_of(meta(x))
    memory = memory_of(emitter, x)
    base = emitter.copy(emitter.reshape(emitter.permute(emitter.env[x], order), memory.sizes))
    value = emitter.value(node.args[1], out.dtype)
    made = emitter.put("scatter", [base, base, value, positions(emitter, memory.sizes[0], extents, strides, offset)], out.dtype, base.sizes, axes=[0])
    return emitter.permute(emitter.reshape(made, [sizes(x)[k] for k in order]), [order.index(k) for k in range(len(order))])
