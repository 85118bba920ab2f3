"""Complex numbers and their parts. Lazy views of torch's are values like others here."""

from __future__ import annotations

import math

import torch

from ..emit import Emitter
from ..values import GraphValue, Unmapped
from . import meta, sizes


def part(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x = emitter.env[node.args[0]]
    if not x.dtype.is_complex:
        return x
    return emitter.put("real" if ".real" in str(node.target) else "imag", [x], meta(node).dtype, x.sizes)


def complex_of(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    out = meta(node).dtype
    return emitter.expand(_join(emitter, [emitter.value(x, _half(out)) for x in node.args], out), sizes(node))


def conjugate(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x: GraphValue = emitter.env[node.args[0]]
    return emitter.apply("conjugate", [x]) if x.dtype.is_complex else x


def negative(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    return emitter.apply("negative", [emitter.env[node.args[0]]])


def view_as_real(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, out = emitter.env[node.args[0]], meta(node)
    one = (*x.sizes, 1)
    parts = [emitter.reshape(emitter.put(op, [x], out.dtype, x.sizes), one) for op in ("real", "imag")]
    return emitter.put("concat", parts, out.dtype, sizes(node), axes=[len(x.sizes)])


def view_as_complex(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    x, out = emitter.env[node.args[0]], sizes(node)
    return _join(emitter, [emitter.reshape(emitter.along(x, len(out), k, 1, 1), out) for k in range(2)], meta(node).dtype)


def angle(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """0 or pi of a real number; NaN stays."""
    x, out = emitter.env[node.args[0]], meta(node).dtype
    if x.dtype.is_complex:
        imag, real = (emitter.put(op, [x], out, x.sizes) for op in ("imag", "real"))
        return emitter.apply("arctan2", [imag, real])
    x = emitter.cast(x, out)
    zero, pi = emitter.constant(0, out), emitter.constant(math.pi, out)
    made = emitter.apply("where", [emitter.apply("less", [x, zero]), pi, zero])
    return emitter.apply("where", [emitter.apply("isnan", [x]), x, made])


def _half(dtype: torch.dtype) -> torch.dtype:
    half = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype)
    if half is None:
        raise Unmapped(f"{dtype}")
    return half


def _join(emitter: Emitter, halves: list[GraphValue], dtype: torch.dtype) -> GraphValue:
    """The op of the core takes the real part of each operand."""
    _half(dtype)
    return emitter.apply("join_parts", [emitter.cast(h, dtype) for h in halves], dtype)
