"""Ops that read or write at indices. An index out of range fails a check, and eager raises its own exception."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..emit import Emitter
from ..layout import HOST
from ..promote import computation_dtype
from ..sizes import decide, is_equal
from ..values import GraphValue, Unmapped
from ..writer import broadcast
from . import argument, has_argument, meta, sizes

MAX_INDICES = 3  # of a gather or scatter of the core
COMBINE = {"sum": "add", "amax": "maximum", "amin": "minimum", "prod": "multiply", "add": "add", "multiply": "multiply", "mean": "add"}


def inside(emitter: Emitter, index: Any, size: Any) -> GraphValue:
    """Indices with a check that they are in [0, size): only x[i] accepts negative ones."""
    return emitter.check_index(emitter.value(index, torch.int64), emitter.value(size, torch.int64))


def wrapped(emitter: Emitter, index: Any, size: Any, is_known: bool) -> GraphValue:
    """Indices in which negative ones, which count from the end, are converted. is_known: none is out of range."""
    i, n = emitter.value(index, torch.int64), emitter.value(size, torch.int64)
    if not is_known:
        i = emitter.check_index(i, n, is_from_end=True)
    from_end = emitter.apply("less", [i, emitter.constant(0, torch.int64)])
    return emitter.apply("where", [from_end, emitter.apply("add", [i, n]), i])


def embedding(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    weight, i = emitter.env[node.args[0]], emitter.env[node.args[1]]
    return emitter.put("gather", [weight, inside(emitter, i, weight.sizes[0])], weight.dtype, sizes(node), axes=[0])


def index_select(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, i = emitter.env[node.args[0]], emitter.env[node.args[2]]
    i = i if i.sizes else emitter.reshape(i, (1,))
    if not x.sizes and not is_equal(i.sizes[0], 1):
        raise Unmapped("not one index of a number")  # eager raises
    x = x if x.sizes else emitter.reshape(x, (1,))
    axis = node.args[1] % len(x.sizes)
    made = [i.sizes[0] if k == axis else s for k, s in enumerate(x.sizes)]
    return emitter.reshape(emitter.put("gather", [x, inside(emitter, i, x.sizes[axis])], x.dtype, made, axes=[axis]), sizes(node))


def _indices(emitter: Emitter, node: torch.fx.Node, x: GraphValue) -> tuple[list[int], list[GraphValue]]:
    indices, is_known = node.args[1], "_unsafe" in str(node.target)  # torch's own indices, of a decomposition
    axes = [k for k, i in enumerate(indices) if i is not None]
    if any(meta(indices[k]).dtype in (torch.bool, torch.uint8) for k in axes):
        raise Unmapped("a mask as an index")
    if not axes or (len(axes) > MAX_INDICES and not are_neighbours(axes)):
        raise Unmapped(f"{len(axes)} indices")
    return axes, [wrapped(emitter, indices[k], x.sizes[k], is_known) for k in axes]


def are_neighbours(axes: list[int]) -> bool:
    return axes == list(range(axes[0], axes[0] + len(axes)))


def index(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    x, axes, ids = _merged(emitter, x, *_indices(emitter, node, x))
    left = [s for k, s in enumerate(x.sizes) if k not in axes]
    common, at = list(broadcast([i.sizes for i in ids])), axes[0]
    v = emitter.put("gather", [x, *ids], x.dtype, left[:at] + common + left[at:], axes=axes)
    if are_neighbours(axes):
        return v
    moved = list(range(at, at + len(common)))  # if the indexed axes are not adjacent, their axes come first
    return emitter.permute(v, moved + [k for k in range(len(v.sizes)) if k not in moved])


def index_put(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, value = emitter.env[node.args[0]], emitter.value(node.args[2], meta(node).dtype)
    if len(node.args[1]) == 1 and meta(node.args[1][0]).dtype == torch.bool:
        return _put_where(emitter, node, x, emitter.env[node.args[1][0]], value)
    axes, ids = _indices(emitter, node, x)
    if not are_neighbours(axes):
        raise Unmapped("indices of axes that are no neighbours")
    return _put(emitter, x, value, axes, ids, "add" if argument(node, "accumulate") else None)


def _put_where(emitter: Emitter, node: torch.fx.Node, x: GraphValue, mask: GraphValue, value: GraphValue) -> GraphValue:
    """Writes one value to all positions of a mask of the first axes."""
    rest = len(x.sizes) - len(mask.sizes)
    if len(value.sizes) == rest + 1 and is_equal(value.sizes[0], 1):
        value = emitter.reshape(value, value.sizes[1:])
    if len(value.sizes) > rest:
        raise Unmapped("a value for each position of a mask")
    mask = emitter.reshape(mask, (*mask.sizes, *[1] * rest))
    if argument(node, "accumulate"):
        value = emitter.apply("add", [x, value])
    return emitter.expand(emitter.apply("where", [mask, value, x]), x.sizes)


def _scatter(emitter: Emitter, x: GraphValue, value: GraphValue, axes: list[int], ids: list[GraphValue], combine: str | None) -> GraphValue:
    base = emitter.copy(x)
    more = {"combine": combine} if combine else {}
    return emitter.put("scatter", [base, base, value, *ids], x.dtype, x.sizes, axes=axes, **more)


def _along(emitter: Emitter, x: GraphValue, axis: int, i: GraphValue) -> list[GraphValue]:
    """Indices for all axes: the given ones for one axis, counters for the others."""
    rank = len(i.sizes)
    if any(decide(s == 0) for s in i.sizes):
        raise Unmapped("no index")
    ids = []
    for k in range(rank):
        counted = [i.sizes[k] if d == k else 1 for d in range(rank)]
        ids.append(inside(emitter, i, x.sizes[k]) if k == axis else emitter.reshape(emitter.iota(i.sizes[k]), counted))
    return ids


def _position(emitter: Emitter, extents: Any, ids: list[GraphValue]) -> GraphValue:
    """The positions in C order of the elements with these indices, one for each axis of these extents."""
    at = ids[0]
    for size, i in zip(extents[1:], ids[1:], strict=True):
        at = emitter.apply("add", [emitter.apply("multiply", [at, emitter.value(size, torch.int64)]), i])
    return at


def _merged(emitter: Emitter, x: GraphValue, axes: list[int], ids: list[GraphValue]) -> tuple[GraphValue, list[int], list[GraphValue]]:
    """The operands of a gather or scatter: more neighbouring axes than the core indexes at once become one axis."""
    if len(axes) <= MAX_INDICES:
        return x, axes, ids
    first, after = axes[0], axes[-1] + 1
    extents = x.sizes[first:after]
    whole = emitter.reshape(x, (*x.sizes[:first], math.prod(extents), *x.sizes[after:]))
    return whole, [first], [_position(emitter, extents, ids)]


def _flat(emitter: Emitter, x: GraphValue) -> GraphValue:
    return emitter.reshape(x, (math.prod(x.sizes),))


def _taken(emitter: Emitter, x: GraphValue, ids: list[GraphValue], sizes: Any) -> GraphValue:
    """The elements with these indices, one for each axis."""
    x, axes, ids = _merged(emitter, x, list(range(len(ids))), ids)
    return emitter.put("gather", [x, *ids], x.dtype, sizes, axes=axes)


def _put(emitter: Emitter, x: GraphValue, value: GraphValue, axes: list[int], ids: list[GraphValue], combine: str | None) -> GraphValue:
    """A version in which the elements with these indices of neighbouring axes are replaced or combined."""
    whole, axes, ids = _merged(emitter, x, axes, ids)
    return emitter.reshape(_scatter(emitter, whole, value, axes, ids, combine), x.sizes)


def gather(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, i, axis = _along_axis(emitter, node)
    return emitter.reshape(_taken(emitter, x, _along(emitter, x, axis, i), i.sizes), sizes(node))


def scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _scatter_along(emitter, node, None)


def scatter_add(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _scatter_along(emitter, node, "add")


def scatter_reduce(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, i, axis = _along_axis(emitter, node)
    ids = _along(emitter, x, axis, i)
    made = _reduced(emitter, node, x, _source(emitter, node, i), i.sizes, lambda base, value, op: _put(emitter, base, value, list(range(len(ids))), ids, op))
    return emitter.reshape(made, sizes(node))


def index_reduce(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, i, value, axis = _slices(emitter, node)
    ids = [inside(emitter, i, x.sizes[axis])]
    made = _reduced(emitter, node, x, value, value.sizes, lambda base, value, op: _scatter(emitter, base, value, [axis], ids, op))
    return emitter.reshape(made, sizes(node))


def _slices(emitter: Emitter, node: torch.fx.Node) -> tuple[GraphValue, GraphValue, GraphValue, int]:
    """The operands of a write of slices along an axis: a number is one element of one axis."""
    x, i = (emitter.reshape(v, v.sizes or (1,)) for v in (emitter.env[node.args[0]], emitter.env[node.args[2]]))
    value = emitter.value(node.args[3], x.dtype)
    return x, i, emitter.reshape(value, value.sizes or (1,) * len(x.sizes)), node.args[1] % len(x.sizes)


def _reduced(
    emitter: Emitter, node: torch.fx.Node, x: GraphValue, value: GraphValue, extents: Any, put: Callable[..., GraphValue]
) -> GraphValue:
    """The operand x reduced with a value of these extents, which put writes or combines. With include_self=False the
    elements at the indices are replaced by the reduction's neutral value first.
    """
    kind, out = argument(node, "reduce"), meta(node).dtype
    keeps_self = not has_argument(node, "include_self") or bool(argument(node, "include_self"))
    if not keeps_self:
        x = put(x, emitter.expand(emitter.constant(_neutral(kind, out), out), extents), None)
    made = put(x, value, COMBINE[kind])
    if kind != "mean":
        return made
    one = emitter.constant(1, out)
    counts = emitter.expand(one if keeps_self else emitter.constant(0, out), x.sizes)
    counts = emitter.apply("maximum", [put(counts, emitter.expand(one, extents), "add"), one])
    return emitter.apply("divide" if out.is_floating_point else "floor_divide", [made, counts])


def _neutral(kind: str, dtype: torch.dtype) -> float:
    """The value that does not change a reduction."""
    if kind in ("amax", "amin"):
        is_low = kind == "amax"
        if dtype == torch.bool:
            return not is_low
        if dtype.is_floating_point:
            return -math.inf if is_low else math.inf
        return torch.iinfo(dtype).min if is_low else torch.iinfo(dtype).max
    return 1 if kind in ("prod", "multiply") else 0


def _along_axis(emitter: Emitter, node: torch.fx.Node) -> tuple[GraphValue, GraphValue, int]:
    """The operand, the indices and the axis of a gather or scatter along one axis: a number is one element of one axis."""
    x, i = (emitter.reshape(v, v.sizes or (1,)) for v in (emitter.env[node.args[0]], emitter.env[node.args[2]]))
    return x, i, node.args[1] % len(x.sizes)


def _source(emitter: Emitter, node: torch.fx.Node, i: GraphValue) -> GraphValue:
    """The values of a scatter, cut to the size of the indices."""
    value = emitter.value(node.args[3], meta(node).dtype)
    if isinstance(node.args[3], torch.fx.Node):
        value = emitter.reshape(value, value.sizes or (1,))
    return emitter.slice(value, [0] * len(i.sizes), [1] * len(i.sizes), i.sizes) if value.sizes else value


def _scatter_along(emitter: Emitter, node: torch.fx.Node, combine: str | None) -> GraphValue:
    x, i, axis = _along_axis(emitter, node)
    ids = _along(emitter, x, axis, i)
    return emitter.reshape(_put(emitter, x, _source(emitter, node, i), list(range(len(ids))), ids, combine), sizes(node))


def masked_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The k-th element where the mask is true is the source's k-th one."""
    x, mask, source = (emitter.env[a] for a in node.args)
    mask = emitter.expand(emitter.value(mask, torch.bool), sizes(node))
    room, n = math.prod(source.sizes), math.prod(mask.sizes)
    if decide(room == 0) or decide(n == 0):
        raise Unmapped("no element")
    counts = emitter.put("cumsum", [emitter.cast(emitter.reshape(mask, (n,)), torch.int64)], torch.int64, (n,), axes=[0])
    emitter.check(emitter.apply("less_equal", [counts, emitter.value(room, torch.int64)]), "too few elements in the source")
    one = emitter.constant(1, torch.int64)
    counts = counts if emitter.device == HOST else emitter.apply("minimum", [counts, emitter.value(room, torch.int64)])
    at = emitter.apply("subtract", [emitter.apply("maximum", [counts, one]), one])
    flat = emitter.reshape(emitter.value(source, x.dtype), (room,))
    taken = emitter.reshape(emitter.put("gather", [flat, at], x.dtype, (n,), axes=[0]), mask.sizes)
    return emitter.apply("where", [mask, taken, emitter.expand(x, mask.sizes)])


def gradient_of_masked_scatter(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The elements where the mask is true, one after the other, and then zeros."""
    out, g = sizes(node), emitter.env[node.args[0]]
    mask = emitter.expand(emitter.value(node.args[1], torch.bool), g.sizes)
    room, n = math.prod(out), math.prod(g.sizes)
    if decide(room == 0) or decide(n == 0):
        raise Unmapped("no element")
    mask = emitter.reshape(mask, (n,))
    counts = emitter.put("cumsum", [emitter.cast(mask, torch.int64)], torch.int64, (n,), axes=[0])
    last = emitter.value(room, torch.int64)  # of the elements that are left out, and of more than the source has
    at = emitter.apply("minimum", [emitter.apply("where", [mask, emitter.apply("subtract", [counts, emitter.constant(1, torch.int64)]), last]), last])
    base = emitter.copy(emitter.expand(emitter.constant(0, g.dtype), (room + 1,)))
    made = emitter.put("scatter", [base, base, emitter.reshape(g, (n,)), at], g.dtype, base.sizes, axes=[0])
    return emitter.reshape(emitter.along(made, 0, 0, 1, room), out)


def index_add(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, i, value, axis = _slices(emitter, node)
    alpha = argument(node, "alpha")
    if alpha != 1:
        value = emitter.apply("multiply", [value, emitter.value(alpha, x.dtype)])
    return emitter.reshape(_scatter(emitter, x, value, [axis], [inside(emitter, i, x.sizes[axis])], "add"), sizes(node))


def put(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Elements are written at positions in C order."""
    x, i = emitter.env[node.args[0]], emitter.env[node.args[1]]
    room, count = math.prod(x.sizes), math.prod(i.sizes)
    if decide(room == 0) or decide(count == 0):
        raise Unmapped("no element")
    value = emitter.reshape(emitter.value(node.args[2], x.dtype), (count,))
    at = wrapped(emitter, emitter.reshape(i, (count,)), room, False)
    return emitter.reshape(_scatter(emitter, _flat(emitter, x), value, [0], [at], "add" if argument(node, "accumulate") else None), x.sizes)


def nonzero_static(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """The indices of the first elements that are not zero, a row for each, and rows of fill_value after the last."""
    x, (room, rank) = emitter.env[node.args[0]], sizes(node)
    count = math.prod(x.sizes)
    if not rank or decide(count == 0) or decide(room == 0):
        return emitter.expand(emitter.value(argument(node, "fill_value"), torch.int64), (room, rank))
    mask = emitter.reshape(emitter.cast(x, torch.bool), (count,))
    before = emitter.put("cumsum", [emitter.cast(mask, torch.int64)], torch.int64, (count,), axes=[0])
    last = emitter.value(room, torch.int64)  # a row more for those that have no place
    at = emitter.apply("minimum", [emitter.apply("subtract", [before, emitter.constant(1, torch.int64)]), last])
    at, columns, step = emitter.apply("where", [mask, at, last]), [], 1
    for size in reversed(x.sizes):
        place = emitter.apply("floor_divide", [emitter.iota(count), emitter.value(step, torch.int64)])
        place = emitter.apply("remainder", [place, emitter.value(size, torch.int64)])
        base = emitter.expand(emitter.value(argument(node, "fill_value"), torch.int64), (room + 1,))
        column = emitter.along(_scatter(emitter, base, place, [0], [at], None), 0, 0, 1, room)
        columns.insert(0, emitter.reshape(column, (room, 1)))
        step = step * size
    return columns[0] if rank == 1 else emitter.put("concat", columns, torch.int64, (room, rank), axes=[1])


def nll_loss(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    """The loss and the total weight. A class out of range fails a check, so that eager raises its own exception."""
    x, target, ignored = emitter.env[node.args[0]], emitter.env[node.args[1]], argument(node, "ignore_index")
    axis, zero = min(1, len(x.sizes) - 1), emitter.constant(0, x.dtype)
    counts = emitter.apply("not_equal", [target, emitter.value(ignored, target.dtype)])
    label = emitter.value(emitter.apply("where", [counts, target, emitter.constant(0, target.dtype)]), torch.int64)
    whole = (*x.sizes[:axis], 1, *x.sizes[axis + 1 :])
    loss = emitter.apply("negative", [emitter.reshape(_taken(emitter, x, _along(emitter, x, axis, emitter.reshape(label, whole)), whole), target.sizes)])
    weight = emitter.expand(emitter.constant(1, x.dtype), target.sizes)
    if argument(node, "weight") is not None:
        weight = emitter.put("gather", [emitter.value(argument(node, "weight"), x.dtype), label], x.dtype, target.sizes, axes=[0])
        loss = emitter.apply("multiply", [loss, weight])
    loss = emitter.apply("where", [counts, loss, zero])
    if argument(node, "reduction") == 0:
        return [loss, zero]
    axes, compute = list(range(len(target.sizes))), computation_dtype(x.dtype)
    total = emitter.fold("sum", emitter.cast(emitter.apply("where", [counts, weight, zero]), compute), axes, False)
    loss = emitter.fold("sum", emitter.cast(loss, compute), axes, False)
    loss = emitter.apply("divide", [loss, total]) if argument(node, "reduction") == 1 else loss
    return [emitter.cast(loss, x.dtype), emitter.cast(total, x.dtype)]
