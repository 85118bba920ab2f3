"""A compiled graph as torch calls it: by C, without NumPy or Python in a call, or by way of NumPy's arrays."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from .. import _core
from .emit import Emitted, Return
from .library import array_of, tensor_of, torch_functions
from .sizes import UnknownSize, text_of


def artifact_of(gm: torch.fx.GraphModule, emitted: Emitted, program: _core.Program) -> Any:
    """The function of a compiled graph, which takes AOTAutograd's list of inputs and empties it.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        The graph, which eager runs where the program is not for the arguments, or if a check of it fails: eager
        then raises its own exception.
    emitted : Emitted
    program : _core.Program
    """
    functions = torch_functions()
    if functions is not None:
        try:
            inputs = [source for _, source in emitted.inputs]
            return Artifact(program, functions, inputs, [returned(r) for r in emitted.returns], eager(gm), gm, emitted)
        except (UnknownSize, ValueError, TypeError):
            pass  # sizes that no input shows, the printed wrapper, arrays of a device
    return ArrayArtifact(gm, emitted, program)


def returned(r: Return) -> tuple[Any, ...]:
    """A return as C takes it."""
    if r.kind == "part":
        sizes, strides, offset = r.value
        return "part", r.index, [text_of(s) for s in sizes], [text_of(s) for s in strides], text_of(offset)
    if r.kind in ("size", "constant"):
        return r.kind, text_of(r.value) if r.kind == "size" else r.value
    return r.kind, r.index


def eager(gm: torch.fx.GraphModule) -> Any:
    """The graph as eager runs it, on a list of inputs."""

    def run(args: list[Any]) -> list[Any]:
        return list(gm(*args))

    return run


class Artifact(_core.TensorProgram):
    """A program that C calls with tensors.

    Attributes
    ----------
    nodes : list of (str, str, str)
        What became of each call of the graph: its target, "core" or "library", and why.
    """

    def __new__(cls, *args: Any) -> Artifact:
        return super().__new__(cls, *args[:5])

    def __init__(self, *args: Any):
        self._boxed_call = True  # of the object itself: torch copies its attributes to a wrapper
        self.gm, self.nodes = args[5], args[6].nodes


class ArrayArtifact:
    """The same by way of arrays: for a torch without the functions that C calls, and for programs that Python runs."""

    def __init__(self, gm: torch.fx.GraphModule, emitted: Emitted, program: Any):
        self._boxed_call = True
        self.gm, self.program, self.nodes = gm, program, emitted.nodes
        self.inputs, self.returns = emitted.inputs, emitted.returns

    def __call__(self, args: list[Any]) -> list[Any]:
        values = []
        for kind, source in self.inputs:
            if kind == "tensor":
                values.append(array_of(args[source]))
            elif kind == "constant":
                values.append(array_of(source))
            else:
                values.append(args[source])
        try:
            results = _core.run_program(self.program, values)
        except _core.CheckFailed:  # nothing has been written yet
            return list(self.gm(*args))
        made = self.outputs([tensor_of(r) for r in results], args)
        args.clear()
        return made

    def outputs(self, results: list[torch.Tensor], args: list[Any]) -> list[Any]:
        made: list[Any] = []
        for r in self.returns:
            if r.kind == "part":
                sizes, strides, offset = r.value
                made.append(torch.as_strided(results[r.index], self.ints(sizes, args), self.ints(strides, args), self.int(offset, args)))
            elif r.kind == "result":
                made.append(results[r.index])
            elif r.kind == "input":
                made.append(args[r.index])
            elif r.kind == "size":
                made.append(self.int(r.value, args))
            else:
                made.append(r.value)
        return made

    def ints(self, sizes: Any, args: list[Any]) -> list[int]:
        return [self.int(s, args) for s in sizes]

    def int(self, size: Any, args: list[Any]) -> int:
        """The value of a size in this call."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        known = {}
        for node, arg in zip(self.gm.graph.find_nodes(op="placeholder"), args, strict=True):
            val = node.meta["val"]
            if isinstance(val, torch.SymInt) and val.node.expr.is_Symbol:
                known[val.node.expr] = int(arg)
            elif isinstance(val, torch.Tensor):
                for s, real in zip(val.size(), arg.size(), strict=True):
                    if isinstance(s, torch.SymInt) and s.node.expr.is_Symbol:
                        known[s.node.expr] = int(real)
        return int(sympy.sympify(size.node.expr).subs(known))
