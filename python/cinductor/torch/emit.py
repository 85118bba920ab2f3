"""Emits a graph of the core from one FX graph of ATen ops.

Each call has a row of aten.rows, or becomes a library call that runs ATen inside of the program. A value that the
emitter makes is compared with the type that torch's meta function gives the node.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch

from .. import _core
from . import layout, library
from .nodes import is_nothing, is_write, line_of, sizes_in
from .promote import WORDS
from .sizes import (
    ROUNDED,
    UnknownSize,
    are_equal,
    hint,
    is_ragged,
    name_of,
    range_text,
    symbols_of,
    text_of,
)
from .values import GraphValue, Refused, Unmapped

aten = torch.ops.aten
DTYPES_OF = {row[0]: row[3] for row in _core.ops()}
BOOLEAN = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit",
}  # fmt: skip
# Arithmetic of numbers by the name of its sympy class; a function is named OpaqueUnaryFn_ and then like the core's op.
REAL = {
    "Add": "add", "Mul": "multiply", "IntTrueDiv": "divide", "FloatTrueDiv": "divide", "FloatPow": "power", "Pow": "power",
    "Max": "maximum", "Min": "minimum", "TruncToFloat": "trunc",
}  # fmt: skip

WRAPPED = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


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


class Environment(dict[Any, Any]):
    """The values of nodes. A number in the place of a tensor is a constant with the dtype that torch gives it."""

    def __init__(self, emitter: Emitter):
        super().__init__()
        self.emitter = emitter

    def __missing__(self, x: Any) -> GraphValue:
        if type(x) not in WRAPPED:
            raise KeyError(x)
        return self.emitter.constant(x, WRAPPED[type(x)])


class Emitter:
    """Makes the core's graph, node by node.

    has_libraries : the program may call ATen.
    """

    has_libraries = True

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        name: str,
        row_of: Callable[[Any], Callable[[Emitter, torch.fx.Node], Any]],
        device: torch.device = layout.HOST,
    ):
        self.gm, self.row_of, self.device = gm, row_of, device
        self.asserted: list[GraphValue] = []  # conditions that the device checks, at the end
        self.builder = _core.Builder(name)
        self.env = Environment(self)
        self.inputs: list[tuple[str, Any]] = []
        self.placeholders = 0
        self.symbols: set[str] = set()
        self.floats: dict[str, GraphValue] = {}  # symbols of floats: arguments and numbers that data decide
        self.decided: set[str] = set()  # the symbols of sizes whose values the program finds
        self.constants: dict[Any, GraphValue] = {}
        self.log: list[tuple[str, str, str, str]] = []
        self.writes: list[tuple[GraphValue, GraphValue]] = []
        self.line: tuple[str | None, int] = (None, 0)
        self.open_block = -1  # the graph's body
        self.shape_env: Any = None
        self.owners: dict[int, torch.fx.Node] | None = None

    # ---- nodes ----

    def put(
        self, op: str, args: list[GraphValue], dtype: torch.dtype, sizes: Any, order: str = "", **attributes: Any
    ) -> GraphValue:
        """A node of the core with this dtype and these sizes."""
        operand = args[-1].dtype if args else dtype
        if operand.is_complex and f"numpy_{op}" in DTYPES_OF:
            if self.device != layout.HOST:
                raise Unmapped(f"no device has {op} of {operand}")
            op = f"numpy_{op}"  # the core's own function is of real numbers
        known = DTYPES_OF.get(op)
        if known is not None and op not in ("cast", "gather") and not known.get(WORDS.get(operand), True):
            raise Unmapped(f"the core has no {op} of {operand}")
        sizes = tuple(sizes)
        number = self.builder.node(
            op, [a.number for a in args], self.type_text(dtype, sizes, order),
            file=self.line[0], line=self.line[1], **attributes,
        )  # fmt: skip
        return GraphValue(number, dtype, sizes)

    def type_text(self, dtype: torch.dtype, sizes: Any, order: str = "") -> str:
        if dtype not in WORDS:
            raise Unmapped(f"the core has no {dtype}")
        return f"{WORDS[dtype]}[{','.join(str(text_of(s)) for s in sizes)}]{order}"

    def constant(self, value: Any, dtype: torch.dtype) -> GraphValue:
        key = (dtype, repr(value))
        if key not in self.constants:
            number = complex(value) if dtype.is_complex else float(value) if dtype.is_floating_point else int(value)
            made = self.builder.const(self.type_text(dtype, ()), number)
            self.constants[key] = GraphValue(made, dtype, ())
        return self.constants[key]

    def value(self, x: Any, dtype: torch.dtype) -> GraphValue:
        """An operand in that dtype: the value of a node, a number, or a size."""
        if isinstance(x, torch.fx.Node):
            x = self.env[x]
        if isinstance(x, torch.SymFloat):
            x = self.real(x.node.expr)
        if isinstance(x, GraphValue):
            return self.cast(x, dtype)
        if isinstance(x, (torch.SymInt, sympy.Basic)) and not isinstance(text_of(x), int):
            made = GraphValue(self.builder.expr(text_of(x)), torch.int64, (), is_weak=True)
            return self.cast(made, dtype)
        if isinstance(x, (bool, int, float, complex)):
            return self.constant(x, dtype)
        if isinstance(x, (torch.SymInt, sympy.Basic)):
            return self.constant(text_of(x), dtype)
        raise Unmapped(f"an operand is a {type(x).__name__}")

    def operand(self, x: Any, common: torch.dtype, compute: torch.dtype) -> GraphValue:
        """An operand of an element-wise op. Eager on the host first rounds numbers, and tensors without axes, to the common dtype."""
        if self.device == layout.HOST and common in (torch.bfloat16, torch.float16):
            x = self.value(x, common)
        return self.value(x, compute)

    def real(self, e: Any) -> GraphValue:
        """The value of an expression of floats and sizes, a Python float."""
        if e.is_Symbol and e.name in self.floats:
            return self.floats[e.name]
        name = type(e).__name__
        if e.is_number:
            made = self.constant(float(e), torch.float64)
        elif e.is_Symbol and e.name not in self.symbols:
            raise UnknownSize(f"a number is {e}, which no input has")
        elif name == "ToFloat":
            made = self.real(e.args[0])
        elif e.is_integer and all(name_of(s) in self.symbols for s in symbols_of(e)):
            made = self.value(e, torch.float64)
        else:
            op = REAL.get(name, name.removeprefix("OpaqueUnaryFn_"))
            if op not in DTYPES_OF:
                raise UnknownSize(f"a number is {e}, which has {name}")
            args = [self.cast(self.real(a), torch.float64) for a in e.args]
            made = functools.reduce(lambda a, b: self.apply(op, [a, b]), args[1:], args[0]) if len(args) > 1 else self.apply(op, args)
        return replace(made, is_weak=True)

    def cast(self, v: GraphValue, dtype: torch.dtype) -> GraphValue:
        if v.dtype == dtype and not v.is_weak:
            return v
        if v.dtype.is_complex and not dtype.is_complex and dtype != torch.bool:
            raise Unmapped("a complex value where a real one is needed")
        if dtype == torch.bool and v.dtype != torch.bool:  # NaN is true in torch, too
            return self.apply("not_equal", [self.cast(v, v.dtype), self.constant(0, v.dtype)])
        return self.put("cast", [v], dtype, v.sizes)

    def apply(self, op: str, values: list[GraphValue], dtype: torch.dtype | None = None) -> GraphValue:
        """An element-wise op on operands that are broadcast."""
        if dtype is None:
            dtype = torch.bool if op in BOOLEAN else values[-1].dtype
        return self.put(op, values, dtype, broadcast([v.sizes for v in values]))

    def reshape(self, v: GraphValue, sizes: Any) -> GraphValue:
        return v if are_equal(v.sizes, sizes) else self.put("reshape", [v], v.dtype, sizes)

    def expand(self, v: GraphValue, sizes: Any) -> GraphValue:
        return v if are_equal(v.sizes, sizes) else self.put("expand", [v], v.dtype, sizes)

    def permute(self, v: GraphValue, axes: list[int]) -> GraphValue:
        return self.put("permute", [v], v.dtype, [v.sizes[a] for a in axes], axes=axes) if axes else v

    def slice(self, v: GraphValue, starts: Any, steps: Any, sizes: Any) -> GraphValue:
        return self.put(
            "slice", [v], v.dtype, sizes, starts=[text_of(s) for s in starts], steps=[text_of(s) for s in steps]
        )

    def along(self, v: GraphValue, axis: int, start: Any, step: Any, size: Any) -> GraphValue:
        """A slice along one axis."""
        rank = range(len(v.sizes))
        starts, steps = [0] * len(rank), [1] * len(rank)
        starts[axis], steps[axis] = start, step
        return self.slice(v, starts, steps, [size if k == axis else v.sizes[k] for k in rank])

    def fold(self, op: str, v: GraphValue, axes: list[int], keep: bool, dtype: torch.dtype | None = None) -> GraphValue:
        """A reduction over axes; with keep, they stay as axes of size 1."""
        axes = sorted({a % len(v.sizes) for a in axes}) if v.sizes else []
        if not axes:
            return v if dtype is None else self.cast(v, dtype)
        left = [s for k, s in enumerate(v.sizes) if k not in axes]
        out = self.put(op, [v], dtype or v.dtype, left, axes=axes)
        return self.reshape(out, [1 if k in axes else s for k, s in enumerate(v.sizes)]) if keep else out

    def iota(self, size: Any) -> GraphValue:
        return self.put("iota", [], torch.int64, (size,), axes=[0])

    def check(self, condition: GraphValue, why: str) -> None:
        """Add a check: unless the condition holds everywhere, the program stops and eager runs the graph.

        On a CUDA device nothing waits for the condition: an assertion of the device fails, as eager's does.
        """
        if condition.sizes:
            condition = self.fold("all", condition, list(range(len(condition.sizes))), False)
        if self.device != layout.HOST and self.open_block < 0:
            self.asserted.append(condition)
            return
        self.builder.check(condition.number, why, self.line[0], self.line[1])

    def check_index(self, i: GraphValue, size: GraphValue, is_from_end: bool = False) -> GraphValue:
        """Indices with a check that they are in [0, size), or from -size on. On a CUDA device those that are not become the
        nearest that is: kernels may read them before the check fails.
        """
        zero = self.constant(0, torch.int64)
        least = self.apply("negative", [size]) if is_from_end else zero
        self.check(self.apply("logical_and", [self.apply("greater_equal", [i, least]), self.apply("less", [i, size])]), "index out of range")
        if self.device == layout.HOST:
            return i
        most = self.apply("subtract", [size, self.constant(1, torch.int64)])
        return self.apply("maximum", [self.apply("minimum", [i, most]), least])

    def copy(self, v: GraphValue, order: str = "") -> GraphValue:
        """A copy of the elements in separate memory."""
        return self.put("copy", [v], v.dtype, v.sizes, order) if v.sizes else v

    def block(self, operands: list[GraphValue], make: Callable[[list[GraphValue]], list[GraphValue]], has_number: bool = False) -> int:
        """A block of a region, with parameters like the operands. Its results are what `make` returns for them.

        has_number : the first parameter is the number of the iteration.
        """
        outside, constants, symbols = self.open_block, self.constants, self.symbols
        self.constants, self.symbols = {}, set(symbols)  # what is made in a block is known there only
        self.open_block = made = self.builder.block()
        try:
            first = [GraphValue(self.builder.param("python i64[]"), torch.int64, ())] if has_number else []
            values = make(first + [replace(v, number=self.builder.param(self.type_text(v.dtype, v.sizes))) for v in operands])
            self.builder.results([v.number for v in values])
        finally:
            self.constants, self.symbols, self.open_block = constants, symbols, outside
            self.builder.enter(outside)
        return made

    def region(self, op: str, start: list[GraphValue], blocks: list[int], results: list[GraphValue], *extent: Any) -> list[GraphValue]:
        """A region of these blocks; its results have the types of the given values."""
        first = self.builder.region(op, [v.number for v in start], blocks, *(extent or (0, "")), *self.line)
        return [replace(v, number=first + k, is_weak=False) for k, v in enumerate(results)]

    def repeat(
        self, start: list[GraphValue], test: Callable[[list[GraphValue]], GraphValue], step: Callable[[list[GraphValue]], list[GraphValue]]
    ) -> list[GraphValue]:
        """A region `while test: step`, and the values that remain. A step makes values of the same types."""
        carried: list[GraphValue] = []

        def condition(values: list[GraphValue]) -> list[GraphValue]:
            carried.extend(values)
            return [test(values)]

        blocks = [self.block(start, condition), self.block([], lambda _: step(carried))]
        return self.region("while", start, blocks, start)

    # ---- the graph ----

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
        """A tensor of the host without axes, beside tensors of a device: the call reads its element."""
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

    def range_of(self, symbol: sympy.Basic, env: Any) -> str:
        """The values that a symbol may have, as `[2, inf)`."""
        return range_text(symbol, env)

    def name_float(self, number: Any, value: GraphValue) -> None:
        """Give the symbol of a float its value."""
        if isinstance(number, torch.SymFloat) and number.node.expr.is_Symbol:
            self.floats[number.node.expr.name] = value

    def define(self, size: torch.SymInt, value: GraphValue) -> None:
        """Give a symbol the value that data decide."""
        self.shape_env = size.node.shape_env
        self.define_symbol(size.node.expr, value)

    def define_symbol(self, symbol: sympy.Basic, value: GraphValue) -> None:
        name = name_of(symbol)
        self.symbols.add(name)
        self.decided.add(name)
        self.builder.define(value.number, f"{name} in {self.range_of(symbol, self.shape_env)}", self.line[0], self.line[1])

    def round_sizes(self, sizes: Any) -> None:
        """Compute the ints in sizes that are made of floats, which are not known yet."""
        for s in sizes:
            for e in symbols_of(s):
                op = ROUNDED.get(type(e).__name__)
                if op is not None and name_of(e) not in self.symbols:
                    self.round_sizes(e.args)
                    self.shape_env = s.node.shape_env if isinstance(s, torch.SymInt) else self.shape_env
                    self.define_symbol(e, self.cast(self.apply(op, [self.cast(self.real(e.args[0]), torch.float64)]), torch.int64))

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
        before, constants, logged = self.builder.position(), dict(self.constants), len(self.log)
        try:
            if library.undefined(self, val if isinstance(val, (tuple, list)) else [val]):
                raise Unmapped("data decide the size of its result")
            made = self.nothing(val) if is_nothing(node, val) else self.row_of(node.target)(self, node)
            compare(node, made, val)
            why = ""
        except (Unmapped, UnknownSize) as error:
            self.builder.rewind(before)
            self.constants = constants
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
            results.append(self.copy(value, layout.order_text(val) if layout.is_dense(val) else "").number)
            return Return("part" if is_dense else "result", len(results) - 1, view_numbers(val, 0))
        owner = base[0]
        if base[1] < 0:
            results.append(self.copy(self.env[owner], layout.order_text(owner.meta["val"])).number)
            base[1] = len(results) - 1
        return Return("part", base[1], view_numbers(val, val.storage_offset()))


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


def broadcast(all_sizes: list[Any]) -> tuple[Any, ...]:
    rank = max((len(sizes) for sizes in all_sizes), default=0)
    out: list[Any] = [1] * rank
    for sizes in all_sizes:
        for axis, s in enumerate(sizes, rank - len(sizes)):
            if not (isinstance(s, int) and s == 1):
                out[axis] = s
    return tuple(out)
