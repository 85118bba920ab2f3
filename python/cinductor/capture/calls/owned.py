"""Calls of the user's kernels and custom operations: library calls of the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ...custom_ops import CustomOp
from ...kernels import DTYPES, KernelCall, UserKernel
from ...numpy.surface import DTYPES as KNOWN
from ...numpy.surface import NotCaptured, array, careful, refuse
from ..value.objects import Traced, holds_traced
from .unknown import call_unknown

if TYPE_CHECKING:
    from ..value.hooks import Hooks


def call_owned(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call as a node; as it is where that cannot be, so that it raises what it raises."""
    stage = scope.stage
    lifted = tuple(stage.lift_nested(a) for a in args)
    named = {k: stage.lift_nested(v) for k, v in kwargs.items()}
    if not holds_traced(lifted) and not holds_traced(named.values()):
        return call_unknown(scope, f, args, kwargs)
    source = stage.source_of(f)
    if source is not None and source >= 0:
        stage.check_once(source, "is", f)
    make = make_kernel if type(f) is UserKernel else make_operation
    try:
        return make(scope, f, lifted, named)
    except NotCaptured as reason:
        return call_unknown(scope, f, lifted, named, f"calls {f.__name__}: {reason}")
    except (TypeError, ValueError, _core.Error):
        return call_unknown(scope, f, lifted, named)


# --- kernels --------------------------------------------------------------------------------------


def make_kernel(scope: Hooks, f: UserKernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Those that it writes get new values; those that nobody gave are made. Of each dtype one library call."""
    stage, t = scope.stage, scope.stage.tracer
    given = f.arranged(args, kwargs)
    reads = [array(t, value) for value in given[: len(f.reads)]]
    writes = given[len(f.reads) :]
    for k, value in enumerate(writes):
        refuse(value is not None and type(value) is not Traced, "what it writes is no array of this call")
        refuse(value is not None and stage.arrays.before_write(value), "arrays overlap, and one is written to")
        others = [w for w in writes[:k] if w is not None]
        refuse(value is not None and any(value.shares_storage(w) for w in others), "it writes twice to one array")
    sizes = f.sizes_of([*reads, *writes])
    f.build()
    made: list[Any] = [None] * len(writes)
    shapes = [f.shape_of(operand, sizes) for operand in f.writes]
    xs = [*reads, *(w for w in writes if w is not None)]
    for dtype in dict.fromkeys(operand.dtype for operand in f.writes):
        wanted = [k for k, operand in enumerate(f.writes) if operand.dtype == dtype]
        is_flat = len(wanted) > 1
        call = KernelCall(f, [w is not None for w in writes], wanted, is_flat)
        shape = (sum(math.prod(shapes[k]) for k in wanted),) if is_flat else shapes[wanted[0]]
        whole = t.extern(call.name, call.key, call, xs, shape, DTYPES[dtype])
        at = 0
        for k in wanted:
            size = math.prod(shapes[k])
            made[k] = t.reshape(whole[at : at + size], shapes[k]) if is_flat else whole
            at = at + size
    for k, value in enumerate(writes):
        if value is not None:
            t.assign(value, made[k])
            made[k] = value
        elif len(made) > 1:
            made[k] = t.copy(made[k], "C")
    return made[0] if len(made) == 1 else tuple(made)


# --- custom operations ----------------------------------------------------------------------------


class OperationCall:
    """What a library call of an operation does: its results, one behind the other."""

    def __init__(self, op: CustomOp, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.op = op
        self.kinds: list[str] = []
        self.operands: list[Any] = []
        self.plan = [self.part(value) for value in args]
        self.named = {name: self.part(value) for name, value in kwargs.items()}

    def part(self, value: Any) -> Any:
        """The number of an operand, or a constant in a tuple."""
        if type(value) is Traced:
            refuse(value.dtype not in KNOWN, f"dtype {value.dtype}")
            self.kinds.append(value.kind)
            self.operands.append(value)
            return len(self.operands) - 1
        refuse(holds_traced((value,)), "arrays inside of other objects")
        refuse(not is_constant(value), f"an argument of {type(value).__name__}")
        return (value,)

    def real(self, part: Any, arrays: Sequence[Any]) -> Any:
        """An argument of this call."""
        if type(part) is tuple:
            return part[0]
        kind, value = self.kinds[part], arrays[part]
        return value if kind == "array" else value.item() if kind == "python" else value[()]

    def __call__(self, *arrays: Any) -> None:
        """The last one is the result."""
        *given, out = arrays
        args = tuple(self.real(part, given) for part in self.plan)
        kwargs = {name: self.real(part, given) for name, part in self.named.items()}
        shapes, dtypes = self.op.results_of(args, kwargs)
        results = self.op.run(args, kwargs, shapes, dtypes)
        if len(results) == 1:
            out[...] = results[0]
            return
        at = 0
        for result in results:
            out[at : at + result.size] = result.reshape(-1)
            at += result.size


def is_constant(value: Any) -> bool:
    """Whether a value is one that its text tells from others."""
    return type(value) in (bool, int, float, complex, str, type(None))


def make_operation(scope: Hooks, f: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One library call, which may raise: then the function itself answers."""
    t = scope.stage.tracer
    shapes, dtypes = f.results_of(args, kwargs)
    refuse(len(set(dtypes)) > 1, "results of several dtypes")
    refuse(dtypes[0] not in KNOWN, f"dtype {dtypes[0]}")
    call = OperationCall(f, args, kwargs)
    operands, call.operands = call.operands, []
    key = f"{f.key} {call.plan} {call.named} {call.kinds}"
    if len(shapes) == 1:
        return careful(t, f"op_{f.__name__}", key, call, operands, shapes[0], dtypes[0])
    counts = [math.prod(shape) for shape in shapes]
    whole = careful(t, f"op_{f.__name__}", key, call, operands, (sum(counts),), dtypes[0])
    results, at = [], 0
    for shape, count in zip(shapes, counts, strict=True):
        results.append(t.copy(t.reshape(whole[at : at + count], shape), "C"))
        at = at + count
    return tuple(results)
