"""Products of matrices and vectors by the core itself: small ones, those of ints, which no library multiplies, and those in programs
without library calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from ..emit import Emitter
from ..layout import HOST
from ..promote import computation_dtype
from ..values import GraphValue, Unmapped
from . import argument, meta

# Products of numbers up to which a call of a library takes longer than a kernel does, and the longest sum of them: each step of a
# kernel's sum is rounded. On a device a thread makes all steps of a sum.
MAX_STEPS, MAX_STEPS_COMPLEX, LONGEST_SUM, LONGEST_SUM_OF_THREAD = 1 << 18, 1 << 13, 1 << 10, 1 << 7


def leave_to_library(emitter: Emitter, dtype: torch.dtype, results: Any, summed: Any) -> None:
    """Raise Unmapped if a library is faster: for floats, unless the sizes are known and small."""
    if not emitter.has_libraries or not (dtype.is_floating_point or dtype.is_complex):
        return
    most = MAX_STEPS_COMPLEX if dtype.is_complex else MAX_STEPS
    if not isinstance(results * summed, int):
        raise Unmapped("a product of sizes that are not known, which may be large")
    longest = LONGEST_SUM if emitter.device == HOST else LONGEST_SUM_OF_THREAD
    if results * summed > most or summed > longest:
        raise Unmapped("a library is faster")


def matrix(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """mm, bmm."""
    made = product(emitter, *factors(emitter, node.args, meta(node).dtype))
    return emitter.cast(made, meta(node).dtype)


def added(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """addmm, baddbmm, addmv: beta * self + alpha * product; beta 0 leaves self out, whatever it contains."""
    out = meta(node)
    first, a, b = factors(emitter, node.args, out.dtype)
    made, beta, alpha = (product if len(b.sizes) > 1 else by_vector)(emitter, a, b), argument(node, "beta"), argument(node, "alpha")
    made = made if alpha == 1 else emitter.apply("multiply", [made, emitter.value(alpha, made.dtype)])
    if beta != 0:
        first = first if beta == 1 else emitter.apply("multiply", [first, emitter.value(beta, made.dtype)])
        made = emitter.apply("add", [made, first])
    return emitter.cast(emitter.expand(made, tuple(out.size())), out.dtype)


def vector(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """mv, dot: kernels of any size, because each element is read once."""
    made = by_vector(emitter, *factors(emitter, node.args, meta(node).dtype))
    return emitter.cast(made, meta(node).dtype)


def by_vector(emitter: Emitter, a: GraphValue, b: GraphValue) -> GraphValue:
    """The product of a matrix or a vector and a vector."""
    return emitter.fold("sum", emitter.apply("multiply", [a, b]), [len(a.sizes) - 1], False)


def factors(emitter: Emitter, given: Iterable[Any], dtype: torch.dtype) -> list[GraphValue]:
    """The operands of a product in the dtype in which it is computed. ATen raises for bools, and for operands of several dtypes."""
    values = [emitter.env[x] for x in given]
    if {v.dtype for v in values} != {dtype} or dtype is torch.bool:
        raise Unmapped("eager has no products of these dtypes")
    return [emitter.cast(v, computation_dtype(dtype)) for v in values]


def product(emitter: Emitter, a: GraphValue, b: GraphValue) -> GraphValue:
    """The product of two matrices, or of two stacks of them."""
    leave_to_library(emitter, a.dtype, math.prod((*a.sizes[:-1], b.sizes[-1])), a.sizes[-1])
    *stack, m, k = a.sizes
    if a.dtype in (torch.float32, torch.float64):
        return emitter.put("product", [a, b], a.dtype, [*stack, m, b.sizes[-1]])
    rows, columns = emitter.reshape(a, (*stack, m, k, 1)), emitter.reshape(b, (*stack, 1, k, b.sizes[-1]))
    return emitter.fold("sum", emitter.apply("multiply", [rows, columns]), [len(stack) + 1], False)
