"""Library calls: ops that ATen runs, inside of the program.

The core calls a Python function with dense operands, which runs the op and fills the result. An op with several
results is one call for the first result, and one call for each other result, which takes it from what the first
call has left.
"""

from __future__ import annotations

import functools
import itertools
import os
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
MOST_OPERANDS = 256  # of a library call of the core


def call(emitter: Emitter, node: torch.fx.Node, val: Any) -> Any:
    """The values of a node whose op is called as it is."""
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
            if not layout.is_plain(o):
                raise Refused(f"{node.target} gives a tensor of layout {o.layout}")
            for s in o.size():
                if isinstance(s, torch.SymInt) and not s.node.has_hint():
                    raise Refused(f"{node.target} gives a tensor whose size is decided by data")
    shared = Call(node.target, plan, spec, isinstance(val, (tuple, list)))
    number, values = next(_numbers), []
    name = f"aten.{str(node.target).removeprefix('aten.')}"
    for k, o in enumerate(outs):
        if o is None:
            values.append(None)
            continue
        key = f"{number}:{k}"
        first = next((v for v in values if v is not None), None)
        _core.add_extern(name, key, OpResult(shared, k, first is None, torch_call(node, plan, operands)))
        try:
            made = emitter.put(
                "extern", operands if first is None else [first], o.dtype, tuple(o.size()), layout.order_text(o), name=name, key=key
            )
        except (Unmapped, UnknownSize) as error:
            raise Refused(f"{node.target}: {error}") from None
        values.append(GraphValue(made.number, o.dtype, tuple(o.size())))
    return values if isinstance(val, (tuple, list)) else values[0]


def check_bases(node: torch.fx.Node) -> None:
    """Refuses operands that are not in C order: a higher-order op may make views of them by strides."""
    for x in node.all_input_nodes:
        val = x.meta.get("val")
        if layout.is_strided(val) and not (val.is_contiguous() and layout.is_whole(val)):
            raise Refused(f"{node.target} takes an operand with strides {tuple(val.stride())}")


def arguments(emitter: Emitter, node: torch.fx.Node) -> tuple[list[Any], list[tuple[str, Any]], Any]:
    """Operands of the call, and how each leaf of its arguments is had: an operand, or itself."""
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
    """What C calls of this torch; None where that torch has not all of it."""
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    wrap = getattr(getattr(torch._C, "_aoti", None), "alloc_tensors_by_stealing_from_void_ptrs", None)
    if exchange is None or wrap is None:
        return None
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    types = (torch.Tensor, torch.nn.Parameter)
    return _core.torch_functions(path, exchange, types, torch.Tensor.is_conj, torch.Tensor.is_neg, wrap)


# Operators of matrices alone, and the functions of torch's library that they end in.
PRODUCTS = {
    torch.ops.aten.mm.default: "mm_out",
    torch.ops.aten.bmm.default: "bmm_out",
    torch.ops.aten.addmm.default: "addmm_out",
    torch.ops.aten.baddbmm.default: "baddbmm_out",
}


def torch_call(node: torch.fx.Node, plan: list[tuple[str, Any]], operands: list[Any]) -> Any:
    """How C makes the call: its functions, name, number of tensors and factors; None: Python does."""
    name, val = PRODUCTS.get(node.target), node.meta["val"]
    if name is None or torch_functions() is None or val.device.type != "cpu":
        return None
    factors = [node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)]
    are_tensors = [kind for kind, _ in plan].count("tensor") == len(operands) == len(node.args)
    if not are_tensors or not val.is_floating_point() or not all(type(f) in (int, float) for f in factors):
        return None  # of ints torch wants factors that are ints
    return torch_functions(), f"aoti_torch_cpu_{name}", len(operands) + 1, *map(float, factors)


class Call:
    """An op with its arguments, and what the last call of it has made."""

    def __init__(self, target: Any, plan: list[tuple[str, Any]], spec: Any, has_several: bool):
        self.target, self.plan, self.spec, self.has_several = target, plan, spec, has_several
        self.of_thread = threading.local()  # several may run a program at once

    def run(self, tensors: list[torch.Tensor]) -> None:
        leaves = [
            tensors[x] if kind == "tensor" else int(tensors[x]) if kind == "int" else float(tensors[x]) if kind == "float" else x
            for kind, x in self.plan
        ]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        with torch.no_grad():
            self.of_thread.made = self.target(*args, **kwargs)


class OpResult:
    """The function that the core calls for one result of a call, unless C calls that of torch's library."""

    is_of_numpy = True  # operands are arrays that may be written, as torch.from_numpy wants them

    def __init__(self, call: Call, index: int, is_first: bool, torch_call: Any):
        self.call, self.index, self.is_first, self.torch_call = call, index, is_first, torch_call

    def __call__(self, *arrays: Any) -> None:
        if self.is_first:
            self.call.run([tensor_of(a) for a in arrays[:-1]])
        made = self.call.of_thread.made
        made = made[self.index] if self.call.has_several else made
        tensor_of(arrays[-1]).copy_(made)


def tensor_of(array: Any) -> torch.Tensor:
    """The array's memory as a tensor."""
    array = np.asarray(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
