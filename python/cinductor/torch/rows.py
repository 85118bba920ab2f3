"""Reads aten.rows: what each ATen op is in the core, and whether the installed torch's op is the one meant.

A row is `schema | promotion | meaning`. The schema is torch's own text of the op; a row whose schema differs from the
installed torch's is off, and its op is a library call. The meaning is one of

* an expression over core ops, formulas of lowered/special.py, parameters and numbers: `divide(1, add(1, exp(negative(self))))`;
  in it, `exact(other)` is a parameter that eager does not round to the common dtype of the operands;
* `code file.function`: a function of lowered/ that takes the emitter and the FX node;
* `library why`: the op is called as it is, inside of the program;
* `drawn file.function`: like `library`; with the option fused_random like `code`;
* `decompose`: torch's own decomposition is used;
* `refuse why`: eager runs the whole graph.
"""

from __future__ import annotations

import ast
import functools
import importlib
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from . import foreach
from .emit import Emitter
from .lowered import control, special
from .lowered.numbers import GraphNumber
from .promote import common_dtype, has_kernel, promoted
from .values import GraphValue, Refused, Unmapped
from .writer import DTYPES_OF

PATH = Path(__file__).with_name("aten.rows")
Lowering = Callable[[Emitter, torch.fx.Node], Any]


@dataclass(frozen=True)
class AtenRow:
    """One row. status: "row" (in the core), "library", "decompose", "refuse"; or "off": the schema differs."""

    name: str
    schema: str
    promotion: str
    meaning: str
    status: str


def read(text: str) -> list[tuple[str, str, str]]:
    """The columns of each row of a text: schema, promotion, meaning."""
    rows = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            schema, promotion, meaning = (part.strip() for part in line.split(" | "))
            rows.append((schema, promotion, meaning))
    return rows


def text() -> str:
    """The text of aten.rows."""
    return PATH.read_text(encoding="utf-8")


def called(meaning: str) -> list[str]:
    """The core's ops and the formulas in a row's expression."""
    names = [t.func.id for t in ast.walk(ast.parse(meaning, mode="eval")) if isinstance(t, ast.Call) and isinstance(t.func, ast.Name)]
    return [name for name in names if name != "exact"]


def overload(name: str) -> Any:
    """torch's op for a name like `aten::add.Tensor`, or None."""
    namespace, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    found = getattr(getattr(torch.ops, namespace), packet, None)
    return getattr(found, which or "default", None) if found is not None else None


@functools.cache
def known() -> dict[str, AtenRow]:
    """The rows by name, whether the installed torch has their ops or not."""
    rows = {}
    for schema, promotion, meaning in read(text()):
        name, word = schema.partition("(")[0], meaning.split()[0]
        status = "library" if word == "drawn" else word if word in ("library", "decompose", "refuse") else "row"
        rows[name] = AtenRow(name, schema, promotion, meaning, status)
    return rows


def find(op: Any) -> AtenRow | None:
    """The row of torch's op, or None. Modules of torch add ops when they are imported, so it is looked up anew."""
    row = known().get(str(op._schema).partition("(")[0]) if isinstance(op, torch._ops.OpOverload) else None
    return row if row is None or str(op._schema) == row.schema else replace(row, status="off")


@functools.cache
def table() -> dict[Any, AtenRow]:
    """The rows by torch's op, without those that the installed torch lacks."""
    return {op: row for op in map(overload, known()) if (row := find(op)) is not None}


@functools.cache
def row_of(op: Any) -> Lowering:
    """The function that makes core nodes for a node with this op."""
    row = find(op)
    if row is None:
        return control.LOWERINGS.get(op) or _unmapped("no lowering")
    if row.status == "off":
        return _unmapped("the installed torch has another schema of it")
    word, _, rest = row.meaning.partition(" ")
    if word == "library":
        return _unmapped(rest or "a library call")
    if word == "decompose":
        return _unmapped("not decomposed")
    if word == "refuse":
        return _refused(rest)
    if word not in ("code", "drawn"):
        return of_kernels(Expression(row, [a.name for a in op._schema.arguments], [a.default_value for a in op._schema.arguments]))
    module, _, function = rest.partition(".")
    found: Lowering = getattr(importlib.import_module(f"cinductor.torch.lowered.{module}"), function)
    if word == "drawn":
        return _drawn(found)
    return of_kernels(found) if module in ("point", "fold") else found


def decompositions() -> dict[Any, Any]:
    """torch's decompositions of ops that have no row and draw no random numbers. Composite ops are taken apart as eager does it."""
    kept = {op for op, row in table().items() if row.status in ("row", "library", "refuse")}
    return {
        op: function
        for op, function in torch._decomp.decomposition_table.items()
        if op not in kept and isinstance(op, torch._ops.OpOverload) and op._opname not in HARMFUL and not draws(op) and not is_composite(op)
    } | foreach.decompositions()


def statuses() -> list[tuple[str, str, str]]:
    """Name, status and tags (core, pointwise) of each ATen op that a graph may contain: functional ops that torch
    does not always decompose. An op without a row is decomposed by torch, or is a library call.
    """
    decomposed, found = decompositions(), []
    for op in sorted(functional_ops(), key=str):
        tags = " ".join(t for t in ("core", "pointwise") if getattr(torch.Tag, t) in op.tags)
        row = table().get(op)
        status = row.status if row is not None else "decompose" if op in decomposed else "library"
        found.append((str(op._schema).partition("(")[0], status, tags))
    return found


def functional_ops() -> list[Any]:
    """ATen's ops on tensors, and all that have a row."""
    ops = []
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and not schema.is_mutable:
            op = overload(f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name)
            if isinstance(op, torch._ops.OpOverload) and torch._C._dispatch_has_kernel(op.name()) and is_of_tensors(op):
                ops.append(op)
    return list({*ops, *table()})


def is_of_tensors(op: Any) -> bool:
    """True if the op has tensors and its own kernel."""
    kinds = [str(a.type) for a in (*op._schema.arguments, *op._schema.returns)]
    has_own = not op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return any("Tensor" in k for k in kinds) and (has_own or op in table())


def counts(found: list[tuple[str, str, str]]) -> dict[str, int]:
    """The number of ops for each status."""
    made: dict[str, int] = {}
    for _, status, _ in found:
        made[status] = made.get(status, 0) + 1
    return made


def draws(op: Any) -> bool:
    """True if it uses a random generator: a decomposition would draw other numbers than eager."""
    return torch.Tag.nondeterministic_seeded in op.tags


def is_composite(op: Any) -> bool:
    """True if eager itself computes it by other ops. An op with kernels of its own beside them stays whole in a graph of ATen ops."""
    found = [torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in ("CompositeImplicitAutograd", "CPU", "CUDA")]
    return found[0] and not any(found[1:])


# Decompositions that make real tensors from constants, or copy into a part of a value.
HARMFUL = {"lift_fresh", "lift", "lift_fresh_copy", "polar"}


def _unmapped(why: str) -> Lowering:
    def lowering(emitter: Emitter, node: torch.fx.Node) -> Any:
        raise Unmapped(why)

    return lowering


def _refused(why: str) -> Lowering:
    def lowering(emitter: Emitter, node: torch.fx.Node) -> Any:
        raise Refused(f"{node.target}: {why}")

    return lowering


def _drawn(fused: Lowering) -> Lowering:
    """The lowering of an op that draws random numbers: by default from torch's generators, as eager does."""

    def lowering(emitter: Emitter, node: torch.fx.Node) -> Any:
        if not emitter.is_random_fused:
            raise Unmapped("random numbers")
        return fused(emitter, node)

    return lowering


def of_kernels(lowering: Lowering) -> Lowering:
    """The lowering of an element-wise op or a reduction, for the dtypes that eager takes."""

    def checked(emitter: Emitter, node: torch.fx.Node) -> Any:
        if not has_kernel(node):
            raise Unmapped("eager has no kernel for these dtypes")
        return lowering(emitter, node)

    return checked


def formula(name: str) -> Any:
    """The formula of lowered/special.py with this name, or None."""
    return None if name in DTYPES_OF else getattr(special, name, None)


FACTORS = {"alpha", "value"}  # names of parameters that do not decide a dtype


class Expression:
    """The lowering of a row whose meaning is an expression."""

    def __init__(self, row: AtenRow, names: list[str], defaults: list[Any]):
        self.promotion, self.names, self.defaults = row.promotion, names, defaults
        self.tree = ast.parse(row.meaning, mode="eval").body
        self.operands = [n for n in names if n in {t.id for t in ast.walk(self.tree) if isinstance(t, ast.Name)}]
        exact = {t.args[0].id for t in ast.walk(self.tree) if isinstance(t, ast.Call) and t.func.id == "exact"}  # type: ignore[attr-defined]
        self.rounded = [n for n in self.operands if n not in exact]

    def __call__(self, emitter: Emitter, node: torch.fx.Node) -> Any:
        given = dict(zip(self.names, self.defaults, strict=True))
        given.update(zip(self.names, node.args, strict=False))
        given.update(node.kwargs)
        for name in self.names:
            if name not in self.operands and name in node.kwargs and node.kwargs[name] is not None and name != "dtype":
                raise Unmapped(f"with {name}={node.kwargs[name]!r}")
        val = node.meta["val"]
        operands = [_meta(given[n]) for n in self.operands if n not in FACTORS]
        common = val.dtype if self.promotion == "same" else common_dtype(operands)
        compute = common if self.promotion == "same" else promoted(self.promotion, operands)[0]
        for n in self.rounded:
            if isinstance(given[n], (torch.fx.Node, torch.SymInt, int, float)) and not (n in FACTORS and given[n] == 1):
                given[n] = emitter.operand(given[n], common, compute)
        made = self.visit(self.tree, emitter, given, compute)
        value = emitter.value(made, compute) if not isinstance(made, GraphValue) else made
        return emitter.expand(emitter.cast(value, val.dtype), tuple(val.size()))

    def visit(self, tree: Any, emitter: Emitter, given: dict[str, Any], compute: torch.dtype) -> Any:
        """Returns a GraphValue, or a number that is not in the graph yet."""
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.UnaryOp):
            return operator.neg(self.visit(tree.operand, emitter, given, compute))
        if isinstance(tree, ast.Name):
            x = given[tree.id]
            return emitter.value(x, compute) if isinstance(x, (torch.fx.Node, torch.SymInt)) else x
        op = tree.func.id
        args = [self.visit(a, emitter, given, compute) for a in tree.args]
        if op == "exact":
            return args[0]
        if (found := formula(op)) is not None:
            return found(*(GraphNumber(emitter, emitter.value(a, compute)) for a in args)).value
        if op == "multiply" and any(not isinstance(a, GraphValue) and a == 1 for a in args):
            return next(a for a in args if isinstance(a, GraphValue) or a != 1 or a is args[-1])
        if op == "where":
            return emitter.apply(op, [emitter.value(args[0], torch.bool), *(emitter.value(a, compute) for a in args[1:])])
        return emitter.apply(op, [emitter.value(a, compute) for a in args])


def _meta(x: Any) -> Any:
    return x.meta["val"] if isinstance(x, torch.fx.Node) else x
