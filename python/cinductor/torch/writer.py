"""Writes nodes of the core's graph for values of torch, with the dtypes and sizes of their results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy
import torch

from .. import _core
from . import layout
from .promote import WORDS
from .sizes import ROUNDED, UnknownSize, are_equal, name_of, range_text, symbols_of, text_of
from .values import GraphValue, Unmapped

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


class Environment(dict[Any, Any]):
    """The values of nodes. A number in the place of a tensor is a constant with the dtype that torch gives it."""

    def __init__(self, writer: NodeWriter):
        super().__init__()
        self.writer = writer

    def __missing__(self, x: Any) -> GraphValue:
        if type(x) not in WRAPPED:
            raise KeyError(x)
        return self.writer.constant(x, WRAPPED[type(x)])


class NodeWriter:
    """The graph that is being made, and the values of its nodes.

    is_inference : no gradients are computed of the graph's values.
    """

    is_inference = False

    def __init__(self, name: str, device: torch.device):
        self.device = device
        self.builder = _core.Builder(name)
        self.env = Environment(self)
        self.asserted: list[GraphValue] = []  # conditions that the device checks, at the end
        self.symbols: set[str] = set()
        self.floats: dict[str, GraphValue] = {}  # symbols of floats: arguments and numbers that data decide
        self.decided: set[str] = set()  # the symbols of sizes whose values the program finds
        self.constants: dict[Any, GraphValue] = {}
        self.operands: dict[Any, GraphValue] = {}  # copies that library calls read, by value and stride order
        self.line: tuple[str | None, int] = (None, 0)
        self.open_block = -1  # the graph's body
        self.shape_env: Any = None

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

    def operand_in(self, v: GraphValue, order: str) -> GraphValue:
        """A copy in that stride order that library calls read and nothing writes."""
        if self.open_block >= 0:
            return self.copy(v, order)
        if (v.number, order) not in self.operands:
            self.operands[v.number, order] = self.copy(v, order)
        return self.operands[v.number, order]

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

    def range_of(self, symbol: sympy.Basic, env: Any) -> str:
        """The values that a symbol may have, as `[2, inf)`."""
        return range_text(symbol, env)

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


def broadcast(all_sizes: list[Any]) -> tuple[Any, ...]:
    rank = max((len(sizes) for sizes in all_sizes), default=0)
    out: list[Any] = [1] * rank
    for sizes in all_sizes:
        for axis, s in enumerate(sizes, rank - len(sizes)):
            if not (isinstance(s, int) and s == 1):
                out[axis] = s
    return tuple(out)
