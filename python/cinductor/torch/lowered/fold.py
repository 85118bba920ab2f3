"""Reductions, scans and functions built on them: means, variances, softmax."""

from __future__ import annotations

import math

import torch

from ..emit import Emitter
from ..layout import HOST
from ..promote import computation_dtype
from ..sizes import decide
from ..values import GraphValue, Unmapped
from . import argument, has_argument, meta, sizes


def axes_of(node: torch.fx.Node, x: GraphValue) -> list[int]:
    """The axes of a reduction; all of them without dim."""
    name = "dim" if has_argument(node, "dim") else "dims"
    dims = argument(node, name) if has_argument(node, name) else None
    rank = len(x.sizes)
    if not rank or dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    return [d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims])]


def keeps(node: torch.fx.Node) -> bool:
    return has_argument(node, "keepdim") and bool(argument(node, "keepdim"))


def is_empty(v: GraphValue) -> bool:
    return any(decide(s == 0) for s in v.sizes)


def count(emitter: Emitter, x: GraphValue, axes: list[int], dtype: torch.dtype) -> GraphValue:
    """The number of elements that are reduced."""
    return emitter.value(math.prod([x.sizes[a] for a in axes]), dtype)


def reduction(emitter: Emitter, node: torch.fx.Node, op: str, compute: torch.dtype) -> GraphValue:
    x = emitter.value(node.args[0], compute)
    axes = axes_of(node, x)
    if op in ("max", "min") and is_empty(x):
        raise Unmapped("a reduction of nothing")
    return emitter.cast(emitter.fold(op, x, axes, keeps(node)), meta(node).dtype)


def sum_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "sum", computation_dtype(meta(node).dtype))


def prod(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "prod", computation_dtype(meta(node).dtype))


def amax(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "max", meta(node).dtype)


def amin(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "min", meta(node).dtype)


def any_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "any", torch.bool)


def all_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return reduction(emitter, node, "all", torch.bool)


def mean(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node).dtype
    x = emitter.value(node.args[0], computation_dtype(out))
    axes = axes_of(node, x)
    total = emitter.fold("sum", x, axes, keeps(node))
    return emitter.cast(emitter.apply("divide", [total, count(emitter, x, axes, x.dtype)]), out)


def _variance(emitter: Emitter, node: torch.fx.Node, out: torch.dtype, keep: bool) -> tuple[GraphValue, GraphValue]:
    """The variance, and the mean with its axes kept."""
    x = emitter.value(node.args[0], computation_dtype(out))
    if x.dtype.is_complex or not out.is_floating_point:
        raise Unmapped("a mean of complex numbers")
    return _variance_of(emitter, node, x, out, keep)


def _variance_of(emitter: Emitter, node: torch.fx.Node, x: GraphValue, out: torch.dtype, keep: bool) -> tuple[GraphValue, GraphValue]:
    correction = argument(node, "correction")
    correction = 1 if correction is None else correction
    axes = axes_of(node, x)
    n = count(emitter, x, axes, x.dtype)
    middle = emitter.apply("divide", [emitter.fold("sum", x, axes, True), n])
    d = emitter.apply("subtract", [x, middle])
    total = emitter.fold("sum", emitter.apply("multiply", [d, d]), axes, keep)
    left = emitter.apply("maximum", [emitter.apply("subtract", [n, emitter.constant(correction, x.dtype)]), emitter.constant(0, x.dtype)])
    return emitter.cast(emitter.apply("divide", [total, left]), out), middle


def var(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out, x = meta(node).dtype, emitter.env[node.args[0]]
    if not x.dtype.is_complex:
        return _variance(emitter, node, out, keeps(node))[0]
    return emitter.apply("add", [v for v, _ in _variances_of_parts(emitter, node, out)])


def _variances_of_parts(emitter: Emitter, node: torch.fx.Node, out: torch.dtype) -> list[tuple[GraphValue, GraphValue]]:
    """For the real and the imaginary parts of complex numbers what _variance gives."""
    x = emitter.env[node.args[0]]
    parts = [emitter.put(op, [x], out, x.sizes) for op in ("real", "imag")]
    return [_variance_of(emitter, node, part, out, keeps(node)) for part in parts]


def var_mean(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    first, second = meta(node)
    if not second.dtype.is_complex:
        variance, middle = _variance(emitter, node, first.dtype, keeps(node))
        return [variance, emitter.cast(emitter.reshape(middle, tuple(second.size())), second.dtype)]
    halves = _variances_of_parts(emitter, node, first.dtype)
    middle = emitter.put("join_parts", [emitter.cast(m, second.dtype) for _, m in halves], second.dtype, halves[0][1].sizes)
    return [emitter.apply("add", [v for v, _ in halves]), emitter.reshape(middle, tuple(second.size()))]


def _softmax_parts(emitter: Emitter, node: torch.fx.Node) -> tuple[GraphValue, int]:
    x = emitter.env[node.args[0]]
    x = emitter.value(emitter.reshape(x, x.sizes or (1,)), computation_dtype(meta(node).dtype))
    axis = argument(node, "dim") % len(x.sizes)
    return emitter.apply("subtract", [x, emitter.fold("max", x, [axis], True)]), axis


def softmax(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    d, axis = _softmax_parts(emitter, node)
    e = emitter.apply("exp", [d])
    made = emitter.apply("divide", [e, emitter.fold("sum", e, [axis], True)])
    return emitter.reshape(emitter.cast(made, meta(node).dtype), sizes(node))


def log_softmax(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    d, axis = _softmax_parts(emitter, node)
    total = emitter.fold("sum", emitter.apply("exp", [d]), [axis], True)
    made = emitter.apply("subtract", [d, emitter.apply("log", [total])])
    return emitter.reshape(emitter.cast(made, meta(node).dtype), sizes(node))


def _in_steps(emitter: Emitter, op: str, *operands: GraphValue) -> GraphValue:
    """An op of which the result is rounded to the operands' dtype, as by a kernel of eager's."""
    dtype = operands[0].dtype
    return emitter.cast(emitter.apply(op, [emitter.cast(v, computation_dtype(dtype)) for v in operands]), dtype)


def soft_margin_loss(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Eager computes it by four of its element-wise kernels, of which each rounds to a narrow dtype."""
    dtype = meta(node).dtype
    x, target = (emitter.value(v, dtype) for v in node.args[:2])
    made = _in_steps(emitter, "log1p", _in_steps(emitter, "exp", _in_steps(emitter, "multiply", emitter.apply("negative", [x]), target)))
    reduction = argument(node, "reduction")
    if reduction == 0:
        return made
    made, axes = emitter.cast(made, computation_dtype(dtype)), list(range(len(made.sizes)))
    total = emitter.fold("sum", made, axes, False)
    if reduction == 1:
        total = emitter.apply("divide", [total, count(emitter, made, axes, made.dtype)])
    return emitter.cast(total, dtype)


def gradient_of_soft_margin_loss(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    dtype = meta(node).dtype
    grad, x, target = (emitter.value(v, dtype) for v in node.args[:3])
    z = _in_steps(emitter, "exp", _in_steps(emitter, "multiply", emitter.apply("negative", [target]), x))
    wide = emitter.constant(-1.0, computation_dtype(dtype))
    if argument(node, "reduction") == 1:
        wide = emitter.apply("divide", [wide, count(emitter, z, list(range(len(z.sizes))), wide.dtype)])
    made = emitter.cast(_in_steps(emitter, "multiply", target, z), wide.dtype)
    made = emitter.cast(emitter.apply("multiply", [made, wide]), dtype)
    made = _in_steps(emitter, "divide", made, _in_steps(emitter, "add", z, emitter.constant(1.0, dtype)))
    return emitter.expand(_in_steps(emitter, "multiply", made, grad), sizes(node))


def _arg(emitter: Emitter, node: torch.fx.Node, op: str) -> GraphValue:
    x = emitter.env[node.args[0]]
    if not x.sizes:
        return emitter.constant(0, torch.int64)
    if is_empty(x):
        raise Unmapped("a position in nothing")
    dim = argument(node, "dim")
    if dim is None:
        x, dim = emitter.reshape(x, (math.prod(x.sizes),)), 0
    axis = dim % len(x.sizes)
    made = emitter.put(op, [x], torch.int64, [s for k, s in enumerate(x.sizes) if k != axis], axes=[axis])
    return emitter.reshape(made, sizes(node))


def argmax(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _arg(emitter, node, "argmax")


def argmin(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _arg(emitter, node, "argmin")


def _extreme(emitter: Emitter, node: torch.fx.Node, op: str) -> list[GraphValue]:
    """Values and their positions along one axis."""
    x = emitter.env[node.args[0]]
    if not x.sizes:
        return [x, emitter.constant(0, torch.int64)]
    if is_empty(x):
        raise Unmapped("an extreme of nothing")
    axis = argument(node, "dim") % len(x.sizes)
    value = emitter.fold(op, x, [axis], False)
    at = emitter.put("arg" + op, [x], torch.int64, value.sizes, axes=[axis])
    first, second = meta(node)
    return [emitter.reshape(value, tuple(first.size())), emitter.reshape(at, tuple(second.size()))]


def max_dim(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    return _extreme(emitter, node, "max")


def min_dim(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    return _extreme(emitter, node, "min")


# Eager adds elements in order on the host, in a wider type. On a device it adds in parallel, in float.
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def _scan(emitter: Emitter, node: torch.fx.Node, op: str) -> GraphValue:
    out = meta(node).dtype
    dtype = computation_dtype(out)
    x = emitter.value(node.args[0], WIDER.get(out, dtype) if emitter.device == HOST else dtype)
    if x.sizes:
        x = emitter.put(op, [x], x.dtype, x.sizes, axes=[argument(node, "dim") % len(x.sizes)])
    return emitter.cast(x, out)


def cumsum(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _scan(emitter, node, "cumsum")


def cumprod(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return _scan(emitter, node, "cumprod")


def _extreme_scan(emitter: Emitter, node: torch.fx.Node, op: str) -> list[GraphValue]:
    """Extremes so far, and the position of the last element that is one: each NaN is, and no number after it."""
    x = emitter.env[node.args[0]]
    if not x.sizes:
        return [x, emitter.constant(0, torch.int64)]
    axis = argument(node, "dim") % len(x.sizes)
    extreme = emitter.put(op, [x], x.dtype, x.sizes, axes=[axis])
    is_one = emitter.apply("equal", [x, extreme])
    if x.dtype.is_floating_point:
        is_one = emitter.apply("logical_or", [is_one, emitter.apply("isnan", [x])])
    place = emitter.reshape(emitter.iota(x.sizes[axis]), [s if k == axis else 1 for k, s in enumerate(x.sizes)])
    place = emitter.apply("where", [is_one, place, emitter.constant(0, torch.int64)])
    return [extreme, emitter.put("cummax", [place], torch.int64, x.sizes, axes=[axis])]


def cummax(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    return _extreme_scan(emitter, node, "cummax")


def cummin(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    return _extreme_scan(emitter, node, "cummin")
