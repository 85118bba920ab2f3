"""Library calls: ops that ATen runs, inside of the program.

The core calls a Python function with tensors over dense operands, which runs the op and fills the result. An op with several
results is one call for the first result, and one call for each other result, which takes it from what the first
call has left.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import struct
import threading
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from .. import _core
from . import images, layout
from .sizes import UnknownSize, text_of
from .values import GraphValue, Refused, Unmapped
from .writer import NodeWriter

_numbers = itertools.count()
MAX_OPERANDS = 256  # the core's limit for a library call


def call(writer: NodeWriter, node: torch.fx.Node, val: Any) -> Any:
    """The values of a node whose op is called."""
    if not isinstance(node.target, torch._ops.OperatorBase):
        raise Refused(f"{node.target} is no operator")
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        val = results_of(node) if val is None else val
    elif node.target._schema.is_mutable:
        raise Refused(f"{node.target} writes to a value of the graph")
    laid_out = images_last(node) if writer.is_inference else {}
    operands, plan, spec = arguments(writer, node, laid_out)
    outs, tree = tree_flatten(laid_out.get(node, val))
    if len(operands) > MAX_OPERANDS:
        raise Refused(f"{node.target} has more than {MAX_OPERANDS} operands")
    for o in outs:
        if o is not None and not isinstance(o, (torch.Tensor, torch.SymInt, int)):
            raise Refused(f"{node.target} gives a {type(o).__name__}")
        if isinstance(o, torch.Tensor) and layout.device_of(o) != writer.device:
            raise Refused(f"{node.target} gives a tensor on {layout.device_of(o)}")
    return Results(writer, node, operands, plan, spec, outs).values(tree)


def results_of(node: torch.fx.Node) -> Any:
    """The results of a call of which torch describes only the parts that the graph reads."""
    if any(u.target is not operator.getitem or u.meta.get("val") is None for u in node.users):
        raise Refused(f"torch does not say what {node.target} gives")
    parts = {u.args[1]: u.meta["val"] for u in node.users}
    return tuple(parts.get(k) for k in range(max(parts) + 1)) if parts else None


class Results:
    """Emits one call of the core for each result of an op that the graph reads, and one for sizes that data decide.

    The first call runs the op. Each other one takes the first one's result as an operand, so that it follows.
    """

    def __init__(self, writer: NodeWriter, node: torch.fx.Node, operands: list[Any], plan: Any, spec: Any, outs: list[Any]):
        self.writer, self.node, self.operands, self.outs = writer, node, operands, outs
        self.name = f"aten.{str(node.target).removeprefix('aten.')}"
        self.number = next(_numbers)
        self.first: GraphValue | None = None
        self.shared = Call(node.target, plan, spec, strides_of(node))
        self.product = torch_call(node, plan, operands, writer.device)
        self.dispatched = dispatch(node.target, plan, spec, outs, writer.device)

    def values(self, tree: Any) -> Any:
        self.sizes()
        wanted = read_results(self.node, self.outs, tree)
        return tree_unflatten([self.value(k, o) if k in wanted else None for k, o in enumerate(self.outs)], tree)

    def sizes(self) -> None:
        """Define the symbols of sizes that the op decides. Python makes such a call."""
        at = undefined(self.writer, self.outs)
        if not at:
            return
        self.product = self.dispatched = None
        sizes = self.put("sizes", SizesOfResults(self.shared, at), torch.int64, (len(at),), "")
        for k, (result, axis) in enumerate(at):
            self.writer.define(self.outs[result].size(axis), self.writer.reshape(self.writer.along(sizes, 0, k, 1, 1), ()))

    def value(self, k: int, out: Any) -> Any:
        if not isinstance(out, torch.Tensor):
            return out  # a size, as torch's meta function computes it
        if self.writer.device != layout.HOST and is_state(self.node, k):
            return self.writer.expand(self.writer.constant(0, out.dtype), tuple(out.size()))
        direct = self.product or (self.dispatched and (self.dispatched, k, self.first is None))
        called = OpResult(self.shared, k, self.first is None, direct)
        return self.put(str(k), called, out.dtype, tuple(out.size()), layout.order_text(out))

    def put(self, key: str, called: Any, dtype: torch.dtype, sizes: Any, order: str) -> GraphValue:
        key = f"{self.number}:{key}"
        _core.add_extern(self.name, key, called)
        operands = self.operands if self.first is None else [self.first]
        try:
            made = self.writer.put("extern", operands, dtype, sizes, order, name=self.name, key=key)
        except (Unmapped, UnknownSize) as error:
            raise Refused(f"{self.node.target}: {error}") from None
        self.first = self.first or made
        return made


def read_results(node: torch.fx.Node, outs: list[Any], tree: Any) -> set[int]:
    """The results that the graph reads; of an op with effects at least one. All of nested results."""
    there = [k for k, o in enumerate(outs) if o is not None]
    if tree.num_children != len(outs) or any(u.target is not operator.getitem for u in node.users):
        return set(there)
    return {k for k in there if any(u.args[1] == k for u in node.users)} or set(there[:1])


STATE = ("philox_seed", "philox_offset", "rng_state", "unused")  # names of results


def is_state(node: torch.fx.Node, k: int) -> bool:
    """True for a result of attention that its gradient draws random numbers with, which is undefined if nothing is dropped. ATen may
    leave that of a device on the host.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None or k >= len(schema.returns) or schema.returns[k].name not in STATE:
        return False
    given = {a.name: node.args[n] if n < len(node.args) else node.kwargs.get(a.name, a.default_value) for n, a in enumerate(schema.arguments)}
    if given.get("dropout_p") != 0:
        raise Refused(f"{node.target} leaves its random state on the host")
    return True


def undefined(writer: NodeWriter, outs: list[Any]) -> list[tuple[int, int]]:
    """The number of the result and the axis of each size that this op decides."""
    found: dict[str, tuple[int, int]] = {}
    for k, out in enumerate(outs):
        for axis, size in enumerate(out.size() if isinstance(out, torch.Tensor) else ()):
            e = size.node.expr if isinstance(size, torch.SymInt) else None
            if e is not None and e.is_Symbol and e.name not in writer.symbols:
                found.setdefault(e.name, (k, axis))
    return list(found.values())


def strides_of(node: torch.fx.Node) -> list[Any] | None:
    """For each leaf of a higher-order op's arguments the strides that its graphs rely on: they may make views by
    strides. None for C order, and for other ops.
    """
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    strides: list[Any] = []
    for x in tree_flatten((node.args, node.kwargs))[0]:
        val = x.meta.get("val") if isinstance(x, torch.fx.Node) else None
        strides.append(None)
        if layout.is_strided(val) and not (val.is_contiguous() and layout.is_whole(val)):
            strides[-1] = tuple(val.stride())
            if not layout.is_whole(val) or any(isinstance(s, torch.SymInt) for s in strides[-1]):
                raise Refused(f"{node.target} takes an operand with strides {strides[-1]}")
    return strides


def images_last(node: torch.fx.Node) -> dict[torch.fx.Node, Any]:
    """The images that a convolution of the host reads, and its results, as fake tensors with channels last.

    ATen's convolutions take fewer copies then: oneDNN reads and writes the images where they are. Empty for another op, and if
    ATen's result would have another order. In training, gradients of padding and reductions over images lose more than that.
    """
    read = [a for a in node.args[: images.CONVOLUTIONS.get(node.target, 0)] if images.is_image(a.meta["val"])]
    found: dict[torch.fx.Node, Any] = {a: images.with_channels_last(a.meta["val"]) for a in read}
    if not found:
        return {}
    fakes = tree_map_only(torch.fx.Node, lambda a: found.get(a, a.meta["val"]), (node.args, node.kwargs))
    made = node.target(*fakes[0], **fakes[1])
    first = made if isinstance(made, torch.Tensor) else made[0]
    return found | {node: made} if first is None or images.has_channels_last(first) else {}


def arguments(
    writer: NodeWriter, node: torch.fx.Node, laid_out: dict[torch.fx.Node, Any]
) -> tuple[list[Any], list[tuple[str, Any]], Any]:
    """The operands of the call, and for each leaf of its arguments an operand or the leaf itself."""
    leaves, spec = tree_flatten((node.args, node.kwargs))
    # Kernels may read memory in the order that torch says; products and convolutions take any strides. But a convolution of images
    # with channels last is another one in C order, whose result would be copied.
    takes_any, takes_last = node.target in PRODUCTS, node.target in images.CONVOLUTIONS
    operands: list[GraphValue] = []
    plan: list[tuple[str, Any]] = []
    for leaf in leaves:
        x = writer.env[leaf] if isinstance(leaf, torch.fx.Node) else leaf
        if isinstance(x, torch.SymInt) and not isinstance(text_of(x), int):
            x = writer.value(x, torch.int64)
            plan.append(("int", len(operands)))
        elif isinstance(x, torch.SymFloat):
            x = writer.value(x, torch.float64)
            plan.append(("float", len(operands)))
        elif isinstance(x, GraphValue):
            kind = "tensor" if not x.is_weak else "int" if x.dtype == torch.int64 else "float"
            plan.append((kind, len(operands)))
            x = writer.cast(x, x.dtype)
            order = dense_order(laid_out.get(leaf, leaf.meta.get("val"))) if isinstance(leaf, torch.fx.Node) else ""
            is_ordered = not takes_any and bool(order or (not takes_last and getattr(leaf, "op", "") == "call_function"))
            if kind == "tensor" and is_ordered:
                x = writer.operand_in(x, order)
        elif isinstance(x, (list, tuple)):
            raise Refused(f"{node.target} takes all results of an op at once")
        else:
            plan.append(("is", int(x) if isinstance(x, torch.SymInt) else x))
            continue
        operands.append(x)
    return operands, plan, spec


def dense_order(val: Any) -> str:
    """The stride order of a dense tensor that is not in C order."""
    return layout.order_text(val) if layout.is_strided(val) and layout.is_dense(val) else ""


@functools.cache
def torch_functions() -> Any:
    """The functions of this torch that C calls; None if one is missing."""
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    wrap = getattr(getattr(torch._C, "_aoti", None), "alloc_tensors_by_stealing_from_void_ptrs", None)
    if exchange is None or wrap is None:
        return None
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch.so")
    types = (torch.Tensor, torch.nn.Parameter)
    return _core.torch_functions(path, exchange, types, torch.Tensor.is_conj, torch.Tensor.is_neg, wrap)


# Operators on matrices only, with the functions of torch's library that implement them.
PRODUCTS = {
    torch.ops.aten.mm.default: "mm_out",
    torch.ops.aten.bmm.default: "bmm_out",
    torch.ops.aten.addmm.default: "addmm_out",
    torch.ops.aten.baddbmm.default: "baddbmm_out",
}

def torch_call(node: torch.fx.Node, plan: list[tuple[str, Any]], operands: list[Any], device: torch.device) -> Any:
    """How C makes the call: its functions, name, number of tensors and factors; None if Python makes it."""
    name, val = PRODUCTS.get(node.target), node.meta.get("val")
    if name is None or val is None or torch_functions() is None:
        return None
    factors = [node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)]
    are_tensors = [kind for kind, _ in plan].count("tensor") == len(operands) == len(node.args)
    if not are_tensors or not val.is_floating_point() or not all(type(f) in (int, float) for f in factors):
        return None  # the factors are doubles there
    return torch_functions(), f"aoti_torch_{device.type}_{name}", len(operands) + 1, *map(float, factors)


# ---- calls by torch's dispatcher ----

WORD, TENSOR, SIZE, SOME, LIST, UNDEFINED = range(6)  # kinds of arguments of _core.aten_call


def dispatch(op: Any, plan: list[tuple[str, Any]], spec: Any, outs: list[Any], device: torch.device) -> Any:
    """The call as C makes it by torch's dispatcher; None where Python makes it: for another kind of argument or result."""
    if torch_functions() is None or not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return None  # an op of another library may be Python's
    if device != layout.HOST and any(kind == "int" for kind, _ in plan):
        return None  # the int is in memory of the device
    if any(str(r.type) != "Tensor" for r in op._schema.returns) or len(op._schema.returns) != len(outs):
        return None
    args, kwargs = tree_unflatten([Leaf(*p) for p in plan], spec)
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
    if name == "TensorType" and x.kind == "is" and x.value is None:
        return UNDEFINED, 0
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
    """An op with its arguments, and the results of its last call that are still to be taken."""

    def __init__(self, target: Any, plan: list[tuple[str, Any]], spec: Any, strides: list[Any] | None):
        self.target, self.plan, self.spec, self.strides = target, plan, spec, strides
        self.of_thread = threading.local()  # several threads may run a program

    def run(self, tensors: list[torch.Tensor]) -> None:
        leaves = [
            tensors[x] if kind == "tensor" else int(tensors[x]) if kind == "int" else float(tensors[x]) if kind == "float" else x
            for kind, x in self.plan
        ]
        if self.strides is not None:
            leaves = [laid_out(x, s) if isinstance(x, torch.Tensor) else x for x, s in zip(leaves, self.strides, strict=True)]
        args, kwargs = tree_unflatten(leaves, self.spec)
        with torch.no_grad():
            results = tree_flatten(self.target(*args, **kwargs))[0]
        self.of_thread.made = {k: own(t, tensors) for k, t in enumerate(results) if isinstance(t, torch.Tensor)}

    def made(self) -> dict[int, torch.Tensor]:
        found: dict[int, torch.Tensor] = getattr(self.of_thread, "made", {})
        return found


def laid_out(x: torch.Tensor, strides: Any) -> torch.Tensor:
    """The tensor with these strides; with None in C order."""
    return x.contiguous() if strides is None else torch.empty_strided(x.size(), strides, dtype=x.dtype, device=x.device).copy_(x)


def own(result: torch.Tensor, operands: list[torch.Tensor]) -> torch.Tensor:
    """The result in memory that stays when the program reuses that of the operands."""
    shares = layout.is_strided(result) and any(layout.storage_of(result) == layout.storage_of(t) for t in operands)
    return result.clone() if shares else result


class OpResult:
    """The function that the core calls for one result of a call, unless C calls torch's library."""

    def __init__(self, call: Call, index: int, is_first: bool, torch_call: Any):
        self.call, self.index, self.is_first, self.torch_call = call, index, is_first, torch_call
        self.torch_functions = torch_functions()  # the core calls with tensors

    def __call__(self, *tensors: torch.Tensor) -> None:
        if self.is_first:
            self.call.run(list(tensors[:-1]))
        made, out = self.call.made().pop(self.index, None), tensors[-1]
        if made is None or made.shape != out.shape or made.dtype != out.dtype or made.layout != out.layout:
            raise _core.CheckFailed(f"{self.call.target} gives another kind of tensor than torch's meta function says")
        out.copy_(made)


class SizesOfResults:
    """The function that the core calls for sizes that an op decides: it runs the op."""

    torch_call = None

    def __init__(self, call: Call, places: list[tuple[int, int]]):
        self.call, self.places = call, places
        self.torch_functions = torch_functions()

    def __call__(self, *tensors: torch.Tensor) -> None:
        self.call.run(list(tensors[:-1]))
        made = self.call.made()
        tensors[-1].copy_(torch.tensor([made[k].size(axis) for k, axis in self.places]))


class Assertion:
    """The function that the core calls to assert a condition on the device: nothing waits for the answer."""

    def __init__(self) -> None:
        self.torch_functions = torch_functions()
        op = torch.ops.aten._assert_async.default
        plan = self.torch_functions and _core.aten_call(self.torch_functions, op._schema.name, "", [(TENSOR, 0)], 0)
        self.torch_call = plan and (plan, 0, True)

    def __call__(self, condition: torch.Tensor, unused: torch.Tensor) -> None:
        torch.ops.aten._assert_async(condition)


def assert_all(writer: NodeWriter, conditions: list[GraphValue]) -> None:
    """One assertion of the device for all conditions. It has a result, because each call of the core has one."""
    both = functools.reduce(lambda a, b: writer.apply("logical_and", [a, b]), conditions)
    key = f"{next(_numbers)}:assert"
    _core.add_extern("aten._assert_async", key, Assertion())
    writer.put("extern", [both], torch.bool, (), name="aten._assert_async", key=key)
