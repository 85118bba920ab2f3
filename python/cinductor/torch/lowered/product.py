"""Products of matrices by the core itself: of ints, which no library multiplies, and in programs without library calls."""

from __future__ import annotations

import torch

from ..emit import Emitter
from ..promote import computation_dtype
from ..values import GraphValue
from . import argument, meta


def matrix(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """mm, bmm."""
    made = product(emitter, *(_factor(emitter, node, x) for x in node.args))
    return emitter.cast(made, meta(node).dtype)


def added(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """addmm, baddbmm: beta * self + alpha * product; beta 0 leaves self out, whatever it contains."""
    out = meta(node)
    first, *factors = (_factor(emitter, node, x) for x in node.args)
    made, beta, alpha = product(emitter, *factors), argument(node, "beta"), argument(node, "alpha")
    made = made if alpha == 1 else emitter.apply("multiply", [made, emitter.value(alpha, made.dtype)])
    if beta != 0:
        first = first if beta == 1 else emitter.apply("multiply", [first, emitter.value(beta, made.dtype)])
        made = emitter.apply("add", [made, first])
    return emitter.cast(emitter.expand(made, tuple(out.size())), out.dtype)


def _factor(emitter: Emitter, node: torch.fx.Node, x: object) -> GraphValue:
    return emitter.value(x, computation_dtype(meta(node).dtype))


def product(emitter: Emitter, a: GraphValue, b: GraphValue) -> GraphValue:
    """The product of two matrices, or of two stacks of them."""
    *stack, m, k = a.sizes
    if a.dtype in (torch.float32, torch.float64):
        return emitter.put("product", [a, b], a.dtype, [*stack, m, b.sizes[-1]])
    rows, columns = emitter.reshape(a, (*stack, m, k, 1)), emitter.reshape(b, (*stack, 1, k, b.sizes[-1]))
    return emitter.fold("sum", emitter.apply("multiply", [rows, columns]), [len(stack) + 1], False)
