"""The compilers that AOTAutograd calls: for the forward, the backward and the inference graph."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._functorch.partitioners import min_cut_rematerialization_partition

from .. import __version__
from ..config import list_options
from . import rows
from .output import Artifact

# The modes of cinductor that apply here, with the options that each sets.
MODES: dict[str | None, dict[str, Any]] = {
    None: {},
    "default": {},
    "reduce-overhead": {"graphs": True},
    "max-autotune": {},
    "max-autotune-no-cudagraphs": {},
}


ROWS = hashlib.sha256(rows.text().encode()).hexdigest()


def compile_graph_module(gm: Any, inputs: Any, mode: str | None, options: dict[str, Any], made: list[Artifact] | None = None) -> Any:
    """Dynamo's graph through AOTAutograd; see `cinductor.torch.backend`.

    made : list, optional
        The artifacts are added to it.
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {sorted(m for m in MODES if m)}")
    given = {"numerics": "close", "threads": torch.get_num_threads(), **MODES[mode], **options}
    is_strict = bool(given.pop("strict", False))
    known = {option.name for option in list_options()}
    if wrong := sorted(set(given) - known):
        raise ValueError(f"unknown option {wrong[0]!r}")
    key = CacheKey(repr((__version__, ROWS, sorted(given.items()), is_strict)))
    with torch._functorch.config.patch(unlift_effect_tokens=True, bundled_autograd_cache=True, force_non_lazy_backward_lowering=True):
        compiled: Any = aot_autograd(**compilers(given, is_strict, made), compiler_config_extra=key)(gm, inputs)
    return compiled


@dataclass(frozen=True)
class CacheKey:
    """The part of the key of AOTAutograd's cache that a backend adds, in the two fields that Inductor has.

    cudagraphs : the version of cinductor, its rows and options.
    """

    cudagraphs: str
    forward_device: None = None


def compilers(options: dict[str, Any], is_strict: bool, made: list[Artifact] | None = None) -> dict[str, Any]:
    """Arguments of AOTAutograd: a compiler for each kind of graph, decompositions and the partition of a joint graph."""
    compiler = functools.partial(compile_fx, options=options, is_strict=is_strict, made=made)
    return {
        "fw_compiler": SerializableAOTDispatchCompiler(Artifact, functools.partial(compiler, name="forward")),
        "bw_compiler": SerializableAOTDispatchCompiler(Artifact, functools.partial(compiler, name="backward")),
        "inference_compiler": SerializableAOTDispatchCompiler(Artifact, functools.partial(compiler, name="inference")),
        "decompositions": rows.decompositions(),
        "partition_fn": min_cut_rematerialization_partition,
        "keep_inference_input_mutations": True,
    }


def compile_fx(gm: torch.fx.GraphModule, inputs: Any, *, name: str, options: dict[str, Any], is_strict: bool, made: list[Artifact] | None = None) -> Artifact:
    """One functional graph of ATen ops, compiled; eager's own run of it if that is refused."""
    artifact = Artifact(gm, name, options, is_strict)
    if made is not None:
        made.append(artifact)
    return artifact
