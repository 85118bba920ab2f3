"""Programs of torch.export as C and as packages: without torch, without Python, their weights part of the package."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import MappingKey, SequenceKey, tree_flatten_with_path, tree_unflatten

from .. import _core
from ..base.signature import KEYWORD_ONLY, POSITIONAL_OR_KEYWORD
from ..builds.bundling import (
    PLAIN,
    PackagedLeaf,
    add_array,
    add_library,
    describe_input,
    tagged,
    write_package,
)
from ..builds.exporting import BACKENDS, FORMS, given_to
from . import rows
from .emit import Emitter, Return
from .sizes import text_of
from .values import Refused

WRITTEN = {OutputKind.USER_INPUT_MUTATION, OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION}
# Without libraries, products are cinductor's own.
SETTINGS = {"numerics": "close", "templates": "always"}


def export(program: torch.export.ExportedProgram, form: str = "c", options: dict[str, Any] | None = None) -> Any:
    """The program's text in a form; see `cinductor.torch.export`."""
    if form not in FORMS and form not in BACKENDS:
        raise ValueError(f"export() has no form {form!r}: it has {', '.join([*FORMS, *BACKENDS])}")
    text = ExportedEntry("call", program, options).compiled.text("c" if form == "c" else "json")
    return text if form in FORMS else given_to(form, text)


def package(path: Any, programs: Any, options: dict[str, Any] | None = None) -> list[str]:
    """Write a file of programs; see `cinductor.torch.package`."""
    named = dict(programs) if isinstance(programs, Mapping) else {"forward": programs}
    made = [ExportedEntry(name, program, options) for name, program in named.items()]
    write_package(os.fspath(path), list(named), lambda members: [entry.write(members) for entry in made])
    return list(named)


class ProgramEmitter(Emitter):
    """Emits the graph of an exported program: parameters and buffers are constants, and nothing is a library call.

    Results have memory of their own, also where eager's are views.

    Parameters
    ----------
    name : str
    program : torch.export.ExportedProgram
    """

    has_libraries = False

    def __init__(self, name: str, program: torch.export.ExportedProgram):
        super().__init__(program.graph_module, name, rows.row_of)
        self.program = program
        self.specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
        self.fixed: dict[str, Any] = {}  # arguments that are part of the program
        self.order = {node: k for k, node in enumerate(self.gm.graph.find_nodes(op="placeholder"))}

    def placeholder(self, node: torch.fx.Node) -> None:
        spec, val = self.specs[node.name], node.meta.get("val")
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            stored = self.program.constants if spec.target in self.program.constants else self.program.state_dict
            constant = stored[spec.target].detach().contiguous()
            self.env[node] = self.tensor(constant, ("constant", constant))
        elif isinstance(val, (torch.Tensor, torch.SymInt, torch.SymFloat)):
            before = len(self.inputs)
            super().placeholder(node)
            self.inputs[before] = (self.inputs[before][0], node)
        elif spec.kind == InputKind.USER_INPUT:
            self.env[node] = self.fixed[node.name] = val
        else:
            raise Refused(f"an input is a {spec.kind.name.lower().replace('_', ' ')}")

    def range_of(self, symbol: Any, env: Any) -> str:
        """As the program promises it; at least 1, because rows decide that no axis is empty."""
        if not symbol.is_Symbol:
            return super().range_of(symbol, env)
        low, high = bounds(self.program, symbol)
        return f"[{low}, {'inf' if high is None else high + 1})"

    def library_call(self, node: torch.fx.Node, val: Any, why: str) -> Any:
        raise Refused(f"{node.target} needs ATen, which an exported program does not call ({why})")

    def shared_bases(self, outputs: Any) -> dict[int, Any]:
        return {}

    def view_of_input(self, val: Any) -> Return | None:
        return None

    def finish(self, node: torch.fx.Node) -> list[Return]:
        results: list[int] = []
        returns, specs = [], self.program.graph_signature.output_specs
        for x, spec in zip(node.args[0], specs, strict=True):  # type: ignore[arg-type]
            if spec.kind in WRITTEN:
                self.written(x, spec)
            elif spec.kind == OutputKind.USER_OUTPUT:
                returns.append(self.give(x, results, {}))
            else:
                raise Refused(f"an output is a {spec.kind.name.lower().replace('_', ' ')}")
        for base, value in self.writes:
            self.builder.write(base.number, value.number)
        self.builder.results(results)
        return returns

    def written(self, value: torch.fx.Node, spec: Any) -> None:
        if spec.kind != OutputKind.USER_INPUT_MUTATION:
            raise Refused(f"it writes to {spec.target}, which is a constant of the program")
        base = self.env[next(n for n in self.order if n.name == spec.target)]
        self.writes.append((base, self.expand(self.cast(self.env[value], base.dtype), base.sizes)))

    def give(self, x: Any, results: list[int], bases: dict[int, Any]) -> Return:
        value = self.env[x] if isinstance(x, torch.fx.Node) else x
        if isinstance(value, torch.SymInt):
            results.append(self.value(value, torch.int64).number)
            return Return("number", len(results) - 1)
        if x not in self.order:
            return super().give(x, results, bases)
        if self.specs[x.name].kind == InputKind.USER_INPUT:
            return Return("input", self.order[x])
        results.append(self.copy(value).number)
        return Return("result", len(results) - 1)


def bounds(program: torch.export.ExportedProgram, symbol: Any) -> tuple[int, int | None]:
    """The least and the greatest value of a symbol; None for any."""
    known = program.range_constraints.get(symbol)
    low = int(known.lower) if known is not None and known.lower.is_Integer else 0
    return max(1, low), int(known.upper) if known is not None and known.upper.is_Integer and int(known.upper) < 2**40 else None


class ExportedEntry:
    """An exported program, compiled.

    Raises
    ------
    Unsupported
        If it needs a library call, or is no graph of plain tensors.
    """

    def __init__(self, name: str, program: Any, options: dict[str, Any] | None):
        if not isinstance(program, torch.export.ExportedProgram):
            raise TypeError(f"{name} is a {type(program).__name__}, and no result of torch.export.export")
        self.name = name
        self.program = program.run_decompositions(decompositions())
        self.emitter = ProgramEmitter(name, self.program)
        try:
            self.emitted = self.emitter.run()
        except Refused as refusal:
            file, line = self.emitter.line
            raise _core.Unsupported(f"{name}: {refusal}{f', {file}:{line}' if file else ''}") from None
        self.compiled = _core.compile_graph(self.emitted.builder, options={**SETTINGS, **(options or {})})

    # ---- the manifest ----

    def write(self, members: dict[str, bytes]) -> dict[str, Any]:
        """Add the members of a package's entry; returns its description."""
        made = json.loads(self.compiled.text("json"))
        buffers = {buffer["name"]: buffer for buffer in made["buffers"]}
        names, places = self.arguments()
        inputs = [self.input(k, kind, x, places, buffers.get(f"in{k}"), members) for k, (kind, x) in enumerate(self.emitted.inputs)]
        symbols = self.symbols()
        return {
            **add_library(self.name, self.compiled.text("c"), made, members),
            "parameters": names,
            "inputs": inputs,
            "values": [*self.containers(), *self.fixed_values(places)],
            "symbols": symbols,
            "relations": self.relations(symbols),
            "structure": self.structure(places),
        }

    def numbered(self) -> tuple[Any, dict[str, Any]]:
        """The positional and the named arguments, each leaf replaced by its number."""
        spec = self.program.call_spec.in_spec
        args, kwargs = tree_unflatten(list(range(spec.num_leaves)), spec)
        return args, kwargs

    def arguments(self) -> tuple[list[dict[str, Any]], dict[str, list[Any]]]:
        """The parameters, and for each placeholder of an argument where a call finds it."""
        args, kwargs = self.numbered()
        signature = self.program.module_call_graph[0].signature
        known = (signature.forward_arg_names if signature is not None else None) or []
        positional = [known[k] if k < len(known) else f"arg{k}" for k in range(len(args))]
        parameters = [{"name": n, "kind": POSITIONAL_OR_KEYWORD} for n in positional] + [{"name": n, "kind": KEYWORD_ONLY} for n in kwargs]
        leaves, _ = tree_flatten_with_path([*args, *kwargs.values()])
        users = [spec.arg.name for spec in self.program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
        return parameters, {users[number]: [step(key) for key in path] for path, number in leaves}

    def input(self, number: int, kind: str, x: Any, places: dict[str, list[Any]], buffer: Any, members: dict[str, bytes]) -> dict[str, Any]:
        """The description of one input; a constant becomes a member."""
        if kind == "constant":
            array = self.array(x)
            return {**describe_input(array, buffer), "member": add_array(self.name, number, array, members)}
        if kind != "tensor":
            made = describe_input(0 if kind == "int" else 0.0, buffer)
        else:
            val = x.meta["val"]
            made = describe_input(self.array(torch.empty((0,) * val.dim(), dtype=val.dtype)), buffer)
            made["sizes"] = [text_of(s) for s in val.size()]
        return {**made, "path": places[x.name], "name": x.name}

    def array(self, tensor: torch.Tensor) -> np.ndarray:
        try:
            return tensor.numpy()
        except TypeError:
            raise _core.Unsupported(f"{self.name}: NumPy has no {tensor.dtype}") from None

    def symbols(self) -> dict[str, list[int]]:
        """Symbol -> the input and the axis that have it; axis -1: the input is an int."""
        made: dict[str, list[int]] = {}
        for number, (kind, x) in enumerate(self.emitted.inputs):
            val = x.meta["val"] if isinstance(x, torch.fx.Node) else None
            sizes = [(-1, val)] if kind == "int" else list(enumerate(val.size())) if isinstance(val, torch.Tensor) else []
            for axis, size in sizes:
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    made.setdefault(size.node.expr.name, [number, axis])
        if missing := sorted(self.emitter.symbols - set(made) - self.emitter.decided):
            raise _core.Unsupported(f"{self.name}: no argument has the size {missing[0]} itself")
        return made

    def relations(self, symbols: dict[str, list[int]]) -> list[list[str]]:
        """The conditions on sizes: their ranges, and the guards of the program."""
        made = [[word, a, b] for word, a, b, _ in self.compiled.guards]
        for symbol in self.program.range_constraints:
            low, high = bounds(self.program, symbol)
            if str(symbol) in symbols:
                made += [["<=", str(low), str(symbol)], *([["<=", str(symbol), str(high)]] if high is not None else [])]
        return made

    def containers(self) -> list[dict[str, Any]]:
        """Tuples, lists and dicts in the arguments: a call must have the same ones."""
        args, kwargs = self.numbered()
        found: list[dict[str, Any]] = []

        def visit(value: Any, path: list[Any]) -> None:
            if type(value) is int:
                return
            if type(value) not in (list, tuple, dict):
                raise _core.Unsupported(f"{self.name}: an argument has a {type(value).__name__}")
            inside = value.items() if type(value) is dict else enumerate(value)
            contents = list(value) if type(value) is dict else len(value)
            found.append({"path": path, "contents": contents, "type": type(value).__name__, "name": f"argument {path}"})
            for key, one in inside:
                visit(one, [*path, key])

        for number, value in enumerate([*args, *kwargs.values()]):
            visit(value, [number])
        return found

    def fixed_values(self, places: dict[str, list[Any]]) -> list[dict[str, Any]]:
        """Arguments that are part of the program."""
        for name, value in self.emitter.fixed.items():
            if type(value) not in PLAIN or type(value) is complex:
                raise _core.Unsupported(f"{self.name}: {name} is a {type(value).__name__}")
        return [{"path": places[n], "value": v, "type": type(v).__name__, "name": n} for n, v in self.emitter.fixed.items()]

    def structure(self, places: dict[str, list[Any]]) -> dict[str, Any]:
        """The structure of the result."""
        placeholders = list(self.emitter.order)
        leaves = [self.leaf(r, placeholders, places) for r in self.emitted.returns]
        tree = tree_unflatten(leaves, self.program.call_spec.out_spec)
        return tagged(plain(self.name, tree))

    def leaf(self, r: Return, placeholders: list[torch.fx.Node], places: dict[str, list[Any]]) -> PackagedLeaf:
        if r.kind == "input":
            return PackagedLeaf(argument=places[placeholders[r.index].name])
        if r.kind == "constant":
            if type(r.value) not in PLAIN or type(r.value) is complex:
                raise _core.Unsupported(f"{self.name}: it returns a {type(r.value).__name__}")
            return PackagedLeaf(value=r.value)
        return PackagedLeaf(result=r.index, kind=2 if r.kind == "number" else 0, layout=[])


def decompositions() -> dict[Any, Any]:
    """torch's decompositions for export, without those of ops that have rows. Composite ops are taken apart as eager does it."""
    kept = {op for op, row in rows.table().items() if row.status == "row"}
    own = {op: f for op, f in torch._decomp.decomposition_table.items() if isinstance(op, torch._ops.OpOverload) and not rows.is_composite(op)}
    found = {**dict(torch.export.default_decompositions().items()), **own}
    return {op: f for op, f in found.items() if op not in kept and isinstance(op, torch._ops.OpOverload) and not is_left(op)}


def is_left(op: Any) -> bool:
    """True for ops whose decompositions draw otherwise than eager, or are harmful. Those of composite ops are eager's own."""
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return op._opname in rows.HARMFUL or (rows.draws(op) and not op.has_kernel_for_dispatch_key(composite))


def step(key: Any) -> Any:
    """One step of a path into the arguments."""
    if isinstance(key, SequenceKey):
        return key.idx
    if isinstance(key, MappingKey) and type(key.key) in (str, int):
        return key.key
    raise _core.Unsupported(f"an argument is found by {key}")


def plain(name: str, tree: Any) -> Any:
    """The result, if it is made of tuples, lists and dicts only."""
    if isinstance(tree, PackagedLeaf):
        return tree
    if type(tree) is dict:
        return {key: plain(name, value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(plain(name, value) for value in tree)
    raise _core.Unsupported(f"{name}: it returns a {type(tree).__name__}")
