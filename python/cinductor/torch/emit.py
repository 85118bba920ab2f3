"""Emits a graph of the core from one FX graph of ATen ops.

Each call has a row of aten.rows, or becomes a library call that runs ATen inside of the program. A value that the
emitter makes is compared with the type that torch's meta function gives the node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from .. import _core
from . import layout, library
from .nodes import is_nothing, is_write, line_of, sizes_in
from .promote import WORDS
from .sizes import (
    UnknownSize,
    are_equal,
    hint,
    is_ragged,
    name_of,
    symbols_of,
    text_of,
)
from .values import GraphValue, Refused, Unmapped
from .writer import NodeWriter

aten = torch.ops.aten


@dataclass
class Return:
    """How one output of the FX graph is made after a run.

    kind : "result" (a result of the program), "number" (one that is an int or float), "part" (strides over the memory of one),
        "input", "view" (strides over the memory of one), "size" or "constant".
    index : number of the result or of the FX input.
    value : the constant or size; of a part or view its sizes, strides, offset and dtype.
    """

    kind: str
    index: int = -1
    value: Any = None


@dataclass
class Emitted:
    """The result of emission: a builder that is ready to compile, and how to call the program."""

    builder: _core.Builder
    inputs: list[tuple[str, Any]]  # per input of the program: ("tensor" | "int" | "float", FX input) or ("constant", tensor)
    returns: list[Return]
    nodes: list[tuple[str, str, str, str]] = field(default_factory=list)  # per call: target, "core" or "library", why, the model's line


class Emitter(NodeWriter):
    """Makes the core's graph, node by node.

    has_libraries : the program may call ATen.
    is_random_fused : random numbers are computed by the program, by other generators than torch's.
    """

    has_libraries = True
    is_random_fused = False

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        name: str,
        row_of: Callable[[Any], Callable[[Emitter, torch.fx.Node], Any]],
        device: torch.device = layout.HOST,
    ):
        super().__init__(name, device)
        self.gm, self.row_of = gm, row_of
        self.inputs: list[tuple[str, Any]] = []
        self.placeholders = 0
        self.log: list[tuple[str, str, str, str]] = []
        self.writes: list[tuple[GraphValue, GraphValue]] = []
        self.owners: dict[int, torch.fx.Node] | None = None

    def run(self) -> Emitted:
        for node in self.gm.graph.nodes:
            self.line = line_of(node)
            if node.op == "placeholder":
                self.placeholder(node)
            elif node.op == "get_attr":
                self.attribute(node, self.gm)
            elif node.op == "output":
                return Emitted(self.builder, self.inputs, self.finish(node), self.log)
            else:
                self.call(node)
        raise Refused("a graph without outputs")

    def placeholder(self, node: torch.fx.Node) -> None:
        val, number = node.meta["val"], self.placeholders
        self.placeholders += 1
        if isinstance(val, torch.Tensor):
            self.env[node] = self.tensor(val, ("tensor", number))
        elif is_ragged(val):
            self.env[node] = val  # no number, and no size of a tensor that the graph reads
        elif isinstance(val, (torch.SymInt, int)) and not isinstance(val, bool):
            self.inputs.append(("int", number))
            self.env[node] = GraphValue(self.builder.input("python i64[]"), torch.int64, (), is_weak=True)
            if isinstance(val, torch.SymInt) and symbols_of(val) == [val.node.expr]:
                known = f" hint {hint(val)}" if val.node.has_hint() else ""
                self.symbol(val.node.expr, val.node.shape_env, f" from in{len(self.inputs) - 1}{known}")
        elif isinstance(val, (torch.SymFloat, float)):
            self.inputs.append(("float", number))
            self.env[node] = GraphValue(self.builder.input("python f64[]"), torch.float64, (), is_weak=True)
            self.name_float(val, self.env[node])
        else:
            raise Refused(f"an input is a {type(val).__name__}")

    def tensor(self, val: Any, source: tuple[str, Any]) -> GraphValue:
        """An input that is a tensor, with its symbols."""
        if type(val).__name__ not in ("FakeTensor", "Tensor", "Parameter") or not layout.is_plain(val):
            raise Refused(f"an input is {layout.kind(val)}")
        if val.dtype not in WORDS:
            raise Refused(f"an input is of {val.dtype}")
        if layout.device_of(val) != self.device:
            return self.number_of_host(val, source)
        val = val.resolve_conj().resolve_neg()  # the call materialises lazy conjugation and negation of the real one
        for s in (*val.size(), *val.stride()):
            for symbol in symbols_of(s):
                self.symbol(symbol, s.node.shape_env, "")
        text = self.type_text(val.dtype, val.size())
        if val.dim() and not val.is_contiguous():
            text += f" strides [{','.join(str(text_of(s)) for s in val.stride())}]"
        self.inputs.append(source)
        return GraphValue(self.builder.input(text), val.dtype, tuple(val.size()))

    def number_of_host(self, val: Any, source: tuple[str, Any]) -> GraphValue:
        """A tensor of the host without axes, together with tensors of a device: the call reads its element."""
        if val.dim():  # it leaves the graph as it is, and no op of the device reads it
            return GraphValue(-1, val.dtype, tuple(val.size()))
        if val.dtype not in (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
            raise Refused(f"a number on the host is of {val.dtype}")
        kind = torch.float64 if val.dtype.is_floating_point else torch.int64
        self.inputs.append(source)
        made = GraphValue(self.builder.input(f"python {WORDS[kind]}[]"), kind, (), is_weak=True)
        return self.cast(made, val.dtype)

    def symbol(self, symbol: sympy.Basic, env: Any, source: str) -> None:
        name = name_of(symbol)
        if name not in self.symbols:
            self.symbols.add(name)
            self.shape_env = env
            self.builder.symbol(f"{name} in {self.range_of(symbol, env)}{source}")

    def name_float(self, number: Any, value: GraphValue) -> None:
        """Give the symbol of a float its value."""
        if isinstance(number, torch.SymFloat) and number.node.expr.is_Symbol:
            self.floats[number.node.expr.name] = value

    def is_decided(self, *sizes: Any) -> bool:
        """True if the program computes one of the sizes."""
        return any(name_of(symbol) in self.decided for s in sizes for symbol in symbols_of(s))

    def has_decided(self, val: Any) -> bool:
        """True if data decide sizes or strides of a tensor."""
        return self.is_decided(*val.size(), *val.stride(), val.storage_offset())

    def attribute(self, node: torch.fx.Node, gm: torch.fx.GraphModule) -> None:
        value: Any = gm
        for name in str(node.target).split("."):
            value = getattr(value, name)
        if not isinstance(value, torch.Tensor):
            self.env[node] = value  # in the graph of a branch or body
            return
        self.env[node] = self.tensor(value, ("constant", value))

    def call(self, node: torch.fx.Node) -> None:
        target, val = node.target, node.meta.get("val")
        if target is operator.getitem:
            self.env[node] = self.env[node.args[0]][node.args[1]]
            return
        if is_write(node):
            if self.open_block >= 0:
                raise Unmapped("a write in a branch or body")
            base = self.env[node.args[0]]
            value = self.expand(self.cast(self.env[node.args[1]], base.dtype), base.sizes)
            self.writes.append((base, value))
            self.env[node] = base
            self.note(target, "")
            return
        self.round_sizes(sizes_in(val))
        if target is not aten._local_scalar_dense.default and isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool, int)):
            self.env[node] = val  # arithmetic of sizes and numbers, computed by torch
            return
        self.call_op(node, val)

    def call_op(self, node: torch.fx.Node, val: Any) -> None:
        for v in val if isinstance(val, (tuple, list)) else [val]:
            if isinstance(v, torch.Tensor) and not layout.is_plain(v):
                raise Refused(f"{node.target} gives {layout.kind(v)}")
        before, constants, operands, logged = self.builder.position(), dict(self.constants), dict(self.operands), len(self.log)
        try:
            if library.undefined(self, val if isinstance(val, (tuple, list)) else [val]):
                raise Unmapped("data decide the size of its result")
            made = self.nothing(val) if is_nothing(node, val) else self.row_of(node.target)(self, node)
            compare(node, made, val)
            why = ""
        except (Unmapped, UnknownSize) as error:
            self.builder.rewind(before)
            self.constants, self.operands = constants, operands
            del self.log[logged:]
            made, why = self.library_call(node, val, str(error)), str(error)
        self.env[node] = made
        self.note(node.target, why)

    def nothing(self, val: Any) -> Any:
        """Values without elements."""
        if isinstance(val, (tuple, list)):
            return [self.nothing(v) for v in val]
        return self.expand(self.constant(0, val.dtype), tuple(val.size()))

    def library_call(self, node: torch.fx.Node, val: Any, why: str) -> Any:
        """The values of a node without a row."""
        return library.call(self, node, val)

    def note(self, target: Any, why: str) -> None:
        """Record what became of a call: a library call says why."""
        self.log.append((str(target), "library" if why else "core", why, ":".join(map(str, self.line)) if self.line[0] else ""))

    # ---- outputs ----

    def finish(self, node: torch.fx.Node) -> list[Return]:
        outputs = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
        results: list[int] = []
        bases = self.shared_bases(outputs)
        returns = [self.give(x, results, bases) for x in outputs]
        if self.asserted:
            library.assert_all(self, self.asserted)
        for base, value in self.writes:
            self.builder.write(base.number, value.number)
        self.builder.results(results)
        return returns

    def shared_bases(self, outputs: Any) -> dict[int, Any]:
        """Storage of several outputs, or of one with gaps -> [the node that covers it, number of its result]."""
        uses: dict[int, set[Any]] = {}
        for x in outputs:
            if isinstance(x, torch.fx.Node) and layout.is_strided(x.meta.get("val")) and not layout.is_lazy(x.meta["val"]):
                uses.setdefault(layout.storage_of(x.meta["val"]), set()).add(x)
        shared: dict[int, Any] = {}
        for key, nodes in uses.items():
            if len(nodes) == 1 and layout.is_dense(next(iter(nodes)).meta["val"]):
                continue
            n = self.owner_of(key)
            if n is None or n.op == "placeholder":
                continue  # parts of an input that torch does not call views are separate memory
            if layout.is_whole(n.meta["val"]):
                shared[key] = [n, -1]
            elif len(nodes) > 1:
                raise Refused("outputs share memory that no node of the graph is the whole of")
        return shared

    def owner_of(self, storage: int) -> torch.fx.Node | None:
        """The first node whose value uses that storage."""
        if self.owners is None:
            self.owners = {}
            for n in self.gm.graph.nodes:
                if layout.is_strided(val := n.meta.get("val")):
                    self.owners.setdefault(layout.storage_of(val), n)
        return self.owners.get(storage)

    def view_of_input(self, val: Any) -> Return | None:
        """The return of a value that shares the memory of an input, which AOTAutograd reads strides and offset of."""
        owner = self.owner_of(layout.storage_of(val))
        if owner is None or owner.op != "placeholder":
            return None
        base, source = self.env[owner], owner.meta["val"]
        if not any(written is base for written, _ in self.writes) and val.dtype == source.dtype and not layout.is_lazy(val) and not self.has_decided(val):
            number = next(k for k, n in enumerate(self.gm.graph.find_nodes(op="placeholder")) if n is owner)
            return Return("view", number, view_numbers(val, val.storage_offset() - source.storage_offset()))
        if any(isinstance(s, torch.SymInt) for s in (*val.size(), *val.stride())):
            raise Refused("an output of any size shares the memory of an input that is written or has another dtype, or data decide its size")
        return None

    def give(self, x: Any, results: list[int], bases: dict[int, Any]) -> Return:
        if not isinstance(x, torch.fx.Node):
            return Return("constant", value=x)
        if is_write(x):
            x = x.args[0]  # the input itself
        value, val = self.env[x], x.meta.get("val")
        number = next((k for k, n in enumerate(self.gm.graph.find_nodes(op="placeholder")) if n is x), -1)
        if number >= 0:
            return Return("input", number)
        if isinstance(value, torch.SymInt):
            if not self.is_decided(value):
                return Return("size", value=value)
            results.append(self.value(value, torch.int64).number)
            return Return("number", len(results) - 1)
        if isinstance(value, torch.SymFloat):
            value = self.real(value.node.expr)
        if not isinstance(value, GraphValue):
            return Return("constant", value=value)
        if isinstance(val, torch.SymFloat):
            results.append(self.cast(value, torch.float64).number)
            return Return("number", len(results) - 1)
        if not isinstance(val, torch.Tensor):
            raise Refused(f"an output is a {type(val).__name__}")
        if (view := self.view_of_input(val)) is not None:
            return view
        base = None if layout.is_lazy(val) else bases.get(layout.storage_of(val))
        if base is not None and self.has_decided(val):
            if not layout.is_whole(val):
                raise Refused("an output is a part of memory, and data decide its size")
            base = None  # torch makes views of the memory itself
        if base is None:
            # torch promises no strides for tensors that are not dense: they are parts of something
            is_dense = layout.is_dense(val) and not self.has_decided(val)
            results.append(self.result(value, layout.order_text(val) if layout.is_dense(val) else ""))
            return Return("part" if is_dense else "result", len(results) - 1, view_numbers(val, 0))
        owner = base[0]
        if base[1] < 0:
            results.append(self.result(self.env[owner], layout.order_text(owner.meta["val"])))
            base[1] = len(results) - 1
        return Return("part", base[1], view_numbers(val, val.storage_offset()))

    def result(self, value: GraphValue, order: str) -> int:
        """The number of a value in memory of its own. It may be what a library call has read."""
        return (self.operands.pop((value.number, order), None) or self.copy(value, order)).number


def view_numbers(val: Any, offset: Any) -> tuple[Any, ...]:
    return tuple(val.size()), tuple(val.stride()), offset, val.dtype


def compare(node: torch.fx.Node, made: Any, val: Any) -> None:
    """Raise unless a row's value has the type that torch's meta function gives the node."""
    several = isinstance(made, (tuple, list))
    for m, v in zip(made, val, strict=False) if several else [(made, val)]:
        if not (isinstance(m, GraphValue) and isinstance(v, torch.Tensor)):
            continue
        if m.dtype != v.dtype or not are_equal(m.sizes, tuple(v.size())):
            raise AssertionError(
                f"the row of {node.target} makes {m.dtype} {m.sizes}, torch {v.dtype} {tuple(v.size())}: {node.format_node()}"
            )
