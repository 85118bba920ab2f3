"""A compiled graph as torch calls it and as AOTAutograd's cache keeps it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import torch
from torch._inductor.output_code import RegionalOutputCode

from .. import _core
from ..base.deferred_warnings import CinductorWarning
from . import layout, logs
from .devices import find_device, split
from .emit import Emitted, Emitter, Return
from .library import torch_functions
from .promote import WORDS
from .rows import row_of
from .sizes import UnknownSize, text_of
from .values import Refused

log = logging.getLogger(__name__)  # TORCH_LOGS="cinductor.torch" or "+cinductor.torch"


def tensor_program(
    gm: torch.fx.GraphModule, emitted: Emitted, program: _core.Program, host: tuple[_core.TensorProgram, list[int], int] | None
) -> _core.TensorProgram:
    """The program as C calls it with tensors; raises Refused where that is not possible.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        The graph, which eager runs where the program is not for the arguments, or if a check of it fails: eager
        then raises its own exception.
    emitted : Emitted
    program : _core.Program
    host : tuple or None
        The program of the part on the host, the numbers of the arguments that it takes, and the number of all.
    """
    functions = torch_functions()
    if functions is None:
        raise Refused(f"torch {torch.__version__} lacks functions that C calls")
    try:
        returns = [returned(r) for r in emitted.returns]
    except UnknownSize as error:
        raise Refused(str(error)) from None
    return _core.TensorProgram(program, functions, [source for _, source in emitted.inputs], returns, eager(gm), host)


def returned(r: Return) -> tuple[Any, ...]:
    """A return in the form that C expects."""
    if r.kind in ("part", "view"):
        sizes, strides, offset, dtype = r.value
        return r.kind, r.index, [text_of(s) for s in sizes], [text_of(s) for s in strides], text_of(offset), WORDS[dtype]
    if r.kind in ("size", "constant"):
        return r.kind, text_of(r.value) if r.kind == "size" else r.value
    return r.kind, r.index


def eager(gm: torch.fx.GraphModule) -> Any:
    """Runs the graph in eager mode, on a list of inputs."""

    def run(args: list[Any]) -> list[Any]:
        return list(gm(*args))

    return run


def is_emitted(key: str) -> bool:
    """True for metadata of nodes that the emitter reads. Others may name classes of the model, which cannot be kept."""
    return key in ("val", "stack_trace", "original_aten")


class Artifact(RegionalOutputCode):
    """One compiled graph: a program that C calls with tensors, or the graph for eager to run.

    AOTAutograd's cache keeps the graph of ATen ops. A process that loads it emits the graph anew and finds kernels in
    the disk cache, so that no artifact depends on the version of the core.

    Parameters
    ----------
    gm : torch.fx.GraphModule
    name : str
        "forward", "backward" or "inference".
    options : dict
        Options of `cinductor.compile`, and fused_random.
    is_strict : bool
        Raise if the graph is refused or cannot be compiled.

    Attributes
    ----------
    nodes : list of (str, str, str, str)
        For each call of the graph its target, "core" or "library", the reason, and the line of the model.
    why : str
        Why eager runs the graph; "" for a program.
    """

    def __init__(self, gm: torch.fx.GraphModule, name: str, options: dict[str, Any], is_strict: bool):
        # The base class also sets _boxed_call: torch copies the object's attributes.
        super().__init__(gm, ops_filter=None, node_metadata_key_filter=is_emitted)
        self.name, self.options, self.is_strict = name, options, is_strict
        self.build(gm)

    def build(self, gm: torch.fx.GraphModule) -> None:
        """Compile the graph, or leave it to eager."""
        self.nodes: list[tuple[str, str, str, str]] = []
        self.why, self.run = "", eager(gm)
        try:
            logs.log_graph(self.name, gm)
            device = find_device(gm)
            part = split(gm) if device != layout.HOST else None
            host = (self.compiled(part.gm, layout.HOST), part.arguments, part.count) if part else None
            self.run = self.compiled(part.rest if part else gm, device, gm, host)
            self.describe(self.run.program)
        except Exception as error:
            self.why = str(error)
            if self.is_strict:
                raise
            if isinstance(error, (Refused, _core.Unsupported)):
                log.info("%s graph, run by eager: %s", self.name, error)
            else:
                warnings.warn(
                    f"eager runs a {self.name} graph, because compiling it failed: {type(error).__name__}: {error}",
                    CinductorWarning,
                    stacklevel=2,
                )

    def compiled(
        self, gm: torch.fx.GraphModule, device: torch.device, whole: torch.fx.GraphModule | None = None, host: Any = None
    ) -> _core.TensorProgram:
        """A program for one device. whole: the graph that eager runs in its place, if that has a part on the host, too."""
        options, emitter = dict(self.options), Emitter(gm, self.name, row_of, device)
        emitter.is_random_fused = options.pop("fused_random", False)
        emitter.is_inference = self.name == "inference"
        emitted = emitter.run()
        self.nodes += emitted.nodes
        options |= {"drop_arguments": self.name == "backward", "caller_memory": True}
        if device != layout.HOST:
            options |= {"device_arrays": True, "device_index": device.index, "offload": "always"}
        program = _core.compile_graph(emitted.builder, options=options, device=device.type)
        return tensor_program(whole or gm, emitted, program, host)

    def describe(self, program: _core.Program) -> None:
        """Log the library calls, and the text of the program for those who read details."""
        calls = [f"{target} ({why})" for target, where, why, _ in self.nodes if where == "library"]
        log.info("%s graph of %d ops, library calls: %s", self.name, len(self.nodes), ", ".join(calls) or "none")
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s graph:\n%s", self.name, program.text("graph"))
        logs.log_program(self.name, program, calls)

    def __call__(self, inputs: Any) -> Any:
        return self.run(inputs)

    def prepare_for_serialization(self) -> None:
        super().prepare_for_serialization()
        self.run = None

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """Called with what the cache has loaded."""
        super().post_compile(example_inputs, constants, graph_kwargs)
        if self.run is None:
            self.build(self._graph_module)
