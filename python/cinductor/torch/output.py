"""A compiled graph as torch calls it."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from .. import _core
from .emit import Emitted
from .library import array_of, tensor_of


class Artifact:
    """A program of the core with the recipe of its inputs and outputs.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        The graph, which eager runs if a check of the program fails: eager then raises its own exception.
    emitted : Emitted
    program : _core.Program
    """

    def __init__(self, gm: torch.fx.GraphModule, emitted: Emitted, program: Any):
        self._boxed_call = True  # of the object itself: torch copies its attributes to a wrapper
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
