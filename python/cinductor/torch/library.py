"""Library calls: ops that ATen runs, inside of the program.

The core calls a Python function with dense operands, which runs the op and fills the result. An op with several
results is one call for the first result, and one call for each other result, which takes it from what the first
call has left.
"""

from __future__ import annotations

import functools
import itertools
import os
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import _core
from . import layout
from .sizes import UnknownSize, text_of
from .values import GraphValue, Refused, Unmapped

if TYPE_CHECKING:
    from .emit import Emitter

_numbers = itertools.count()
MOST_OPERANDS = 256  # the core's limit for a library call


def call(emitter: Emitter, node: torch.fx.Node, val: Any) -> Any:
    """The values of a node whose op is called."""
    if not isinstance(node.target, torch._ops.OperatorBase):
        raise Refused(f"{node.target} is no operator")
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        check_bases(node)
        if val is None and node.users:
            raise Refused(f"torch does not say what {node.target} gives")
    elif node.target._schema.is_mutable:
        raise Refused(f"{node.target} writes to a value of the graph")
    operands, plan, spec = arguments(emitter, node)
    outs = list(val) if isinstance(val, (tuple, list)) else [val]
    if len(operands) > MOST_OPERANDS:
        raise Refused(f"{node.target} has more than {MOST_OPERANDS} operands")
    if any(o is not None and not isinstance(o, torch.Tensor) for o in outs):
        raise Refused(f"{node.target} gives a {type(val).__name__}")
    for o in outs:
        if o is not None:
            for s in o.size():
                if isinstance(s, torch.SymInt) and not s.node.has_hint():
                    raise Refused(f"{node.target} gives a tensor whose size is decided by data")
    shared = Call(node.target, plan, spec, isinstance(val, (tuple, list)))
    dispatched = dispatch(node.target, plan, spec, outs)
    number, values = next(_numbers), []
    name = f"aten.{str(node.target).removeprefix('aten.')}"
    for k, o in enumerate(outs):
        if o is None:
            values.append(None)
            continue
        key = f"{number}:{k}"
        first = next((v for v in values if v is not None), None)
        direct = torch_call(node, plan, operands) or (dispatched and (dispatched, k, first is None))
        _core.add_extern(name, key, OpResult(shared, k, first is None, direct))
        try:
            made = emitter.put(
                "extern", operands if first is None else [first], o.dtype, tuple(o.size()), layout.order_text(o), name=name, key=key
            )
        except (Unmapped, UnknownSize) as error:
            raise Refused(f"{node.target}: {error}") from None
        values.append(GraphValue(made.number, o.dtype, tuple(o.size())))
    return values if isinstance(val, (tuple, list)) else values[0]


def check_bases(node: torch.fx.Node) -> None:
    """Refuse operands that are not in C order, because a higher-order op may make views of them by strides."""
    for x in node.all_input_nodes:
        val = x.meta.get("val")
        if layout.is_strided(val) and not (val.is_contiguous() and layout.is_whole(val)):
            raise Refused(f"{node.target} takes an operand with strides {tuple(val.stride())}")


def arguments(emitter: Emitter, node: torch.fx.Node) -> tuple[list[Any], list[tuple[str, Any]], Any]:
    """The operands of the call, and for each leaf of its arguments an operand or the leaf itself."""
    leaves, spec = torch.utils._pytree.tree_flatten((node.args, node.kwargs))
    operands: list[GraphValue] = []
    plan: list[tuple[str, Any]] = []
    for leaf in leaves:
        x = emitter.env[leaf] if isinstance(leaf, torch.fx.Node) else leaf
        if isinstance(x, torch.SymInt) and not isinstance(text_of(x), int):
            x = emitter.value(x, torch.int64)
            plan.append(("int", len(operands)))
        elif isinstance(x, GraphValue):
            kind = "tensor" if not x.is_weak else "int" if x.dtype == torch.int64 else "float"
            plan.append((kind, len(operands)))
            x = emitter.cast(x, x.dtype)
        elif isinstance(x, (list, tuple)):
            raise Refused(f"{node.target} takes all results of an op at once")
        elif isinstance(x, torch.nn.Module):
            raise Refused(f"{node.target} calls a graph")
        else:
            plan.append(("is", int(x) if isinstance(x, torch.SymInt) else x))
            continue
        operands.append(x)
    return operands, plan, spec


@functools.cache
def torch_functions() -> Any:
    """The functions of this torch that C calls; None if one is missing."""
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    wrap = getattr(getattr(torch._C, "_aoti", None), "alloc_tensors_by_stealing_from_void_ptrs", None)
    if exchange is None or wrap is None:
        return None
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    types = (torch.Tensor, torch.nn.Parameter)
    return _core.torch_functions(path, exchange, types, torch.Tensor.is_conj, torch.Tensor.is_neg, wrap)


# Operators on matrices only, with the functions of torch's library that implement them.
PRODUCTS = {
    torch.ops.aten.mm.default: "mm_out",
    torch.ops.aten.bmm.default: "bmm_out",
    torch.ops.aten.addmm.default: "addmm_out",
    torch.ops.aten.baddbmm.default: "baddbmm_out",
}


def torch_call(node: torch.fx.Node, plan: list[tuple[str, Any]], operands: list[Any]) -> Any:
    """How C makes the call: its functions, name, number of tensors and factors; None if Python makes it."""
    name, val = PRODUCTS.get(node.target), node.meta["val"]
    if name is None or torch_functions() is None:
        return None
    factors = [node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)]
    are_tensors = [kind for kind, _ in plan].count("tensor") == len(operands) == len(node.args)
    if not are_tensors or not val.is_floating_point() or not all(type(f) in (int, float) for f in factors):
        return None  # for ints torch requires int factors
    return torch_functions(), f"aoti_torch_cpu_{name}", len(operands) + 1, *map(float, factors)


# ---- calls by torch's dispatcher ----

WORD, TENSOR, SIZE, SOME, LIST = range(5)  # kinds of arguments of _core.aten_call


def dispatch(op: Any, plan: list[tuple[str, Any]], spec: Any, outs: list[Any]) -> Any:
    """The call as C makes it by torch's dispatcher; None where Python makes it: for another kind of argument or result."""
    if torch_functions() is None or not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return None  # an op of another library may be Python's
    if any(str(r.type) != "Tensor" for r in op._schema.returns) or len(op._schema.returns) != len(outs):
        return None
    args, kwargs = torch.utils._pytree.tree_unflatten([Leaf(*p) for p in plan], spec)
    try:
        arguments = [
            argument(a.type, args[k] if k < len(args) else kwargs.get(a.name, Leaf("is", a.default_value)))
            for k, a in enumerate(op._schema.arguments)
        ]
    except Unmapped:
        return None
    return _core.aten_call(torch_functions(), op._schema.name, op._schema.overload_name, arguments, len(outs))


class Leaf:
    """How one leaf of the arguments is had; no tuple, of which a tree of arguments has its own."""

    def __init__(self, kind: str, value: Any):
        self.kind, self.value = kind, value


def argument(kind: Any, x: Any) -> tuple[int, Any]:
    """An argument as the dispatcher takes it, of that type of a schema."""
    name = kind.kind()
    if name == "OptionalType":
        given = argument(kind.getElementType(), x) if not isinstance(x, Leaf) or x.value is not None else None
        return (SOME, given) if given else (WORD, 0)
    if name == "ListType":
        values = x if isinstance(x, (list, tuple)) else x.value
        if not isinstance(values, (list, tuple)):
            raise Unmapped("a number for a list")
        return LIST, [argument(kind.getElementType(), v if isinstance(v, Leaf) else Leaf("is", v)) for v in values]
    if not isinstance(x, Leaf):
        raise Unmapped(f"a {type(x).__name__} as an argument")
    if x.kind == "tensor" and name == "TensorType":
        return TENSOR, x.value
    if x.kind == "int" and name in ("IntType", "SymIntType"):
        return SIZE, x.value
    if x.kind == "is":
        return WORD, word(name, x.value)
    raise Unmapped(f"an argument of type {name}")


def word(name: str, value: Any) -> int:
    """A number as 64 bits."""
    if name == "BoolType" and isinstance(value, bool):
        return int(value)
    if name in ("IntType", "SymIntType") and isinstance(value, int):
        return value
    if name == "FloatType" and isinstance(value, (int, float)):
        return int.from_bytes(struct.pack("<d", value), "little")
    raise Unmapped(f"{value!r} as an argument")


class Call:
    """An op with its arguments, and the results of its last call."""

    def __init__(self, target: Any, plan: list[tuple[str, Any]], spec: Any, has_several: bool):
        self.target, self.plan, self.spec, self.has_several = target, plan, spec, has_several
        self.of_thread = threading.local()  # several threads may run a program

    def run(self, tensors: list[torch.Tensor]) -> None:
        leaves = [
            tensors[x] if kind == "tensor" else int(tensors[x]) if kind == "int" else float(tensors[x]) if kind == "float" else x
            for kind, x in self.plan
        ]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        with torch.no_grad():
            self.of_thread.made = self.target(*args, **kwargs)


class OpResult:
    """The function that the core calls for one result of a call, unless C calls torch's library."""

    is_of_numpy = True  # operands are writable arrays, as torch.from_numpy requires

    def __init__(self, call: Call, index: int, is_first: bool, torch_call: Any):
        self.call, self.index, self.is_first, self.torch_call = call, index, is_first, torch_call

    def __call__(self, *arrays: Any) -> None:
        if self.is_first:
            self.call.run([tensor_of(a) for a in arrays[:-1]])
        made = self.call.of_thread.made
        made, out = made[self.index] if self.call.has_several else made, tensor_of(arrays[-1])
        if made.shape != out.shape or made.dtype != out.dtype or made.layout != out.layout:
            raise _core.CheckFailed(f"{self.call.target} gives another kind of tensor than torch's meta function says")
        out.copy_(made)


def tensor_of(array: Any) -> torch.Tensor:
    """A tensor over the array's memory."""
    array = np.asarray(array)
    if any(s < 0 for s in array.strides):  # of an operand: torch has no such strides
        array = array.copy()
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
