"""The compilers that AOTAutograd calls: for the forward, the backward and the inference graph."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from .. import _core
from ..config import list_options
from ..deferred_warnings import CinductorWarning
from . import rows
from .emit import Emitter
from .output import artifact_of
from .values import Refused

# Of cinductor's modes those that say something here; each sets these options.
MODES: dict[str | None, dict[str, Any]] = {
    None: {},
    "default": {},
    "reduce-overhead": {"graphs": True},
    "max-autotune": {},
    "max-autotune-no-cudagraphs": {},
}


def compile_graph_module(gm: Any, inputs: Any, mode: str | None, options: dict[str, Any]) -> Any:
    """Dynamo's graph through AOTAutograd; see `cinductor.torch.backend`."""
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {sorted(m for m in MODES if m)}")
    given = {"numerics": "close", **MODES[mode], **options}
    is_strict = bool(given.pop("strict", False))
    known = {option.name for option in list_options()}
    if wrong := sorted(set(given) - known):
        raise ValueError(f"unknown option {wrong[0]!r}")
    compiler = functools.partial(compile_fx, options=given, is_strict=is_strict)
    with torch._functorch.config.patch(unlift_effect_tokens=True):
        made: Any = aot_autograd(
            fw_compiler=functools.partial(compiler, name="forward"),
            bw_compiler=functools.partial(compiler, name="backward"),
            inference_compiler=functools.partial(compiler, name="inference"),
            decompositions=rows.decompositions(),
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )(gm, inputs)
    return made


def compile_fx(
    gm: torch.fx.GraphModule, inputs: Any, *, name: str, options: dict[str, Any], is_strict: bool
) -> Any:
    """One functional graph of ATen ops, compiled; eager's own run of it if that is refused."""
    try:
        emitted = Emitter(gm, name, rows.row_of).run()
        program = _core.compile_graph(emitted.builder, options=options)
    except Exception as error:
        if is_strict:
            raise
        if not isinstance(error, Refused):
            warnings.warn(
                f"eager runs a {name} graph, because compiling it failed: {type(error).__name__}: {error}",
                CinductorWarning,
                stacklevel=2,
            )
        return boxed(gm)
    return artifact_of(gm, emitted, program)


def boxed(gm: torch.fx.GraphModule) -> Any:
    """The graph module in AOTAutograd's calling convention: a list of inputs, which it may empty."""

    def run(args: list[Any]) -> Any:
        return gm(*args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
