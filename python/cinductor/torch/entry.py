"""The compilers that AOTAutograd calls: for the forward, the backward and the inference graph."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch._dynamo import disable
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.exc import TorchDynamoException, exceptions_allowed_to_be_fallback
from torch._dynamo.utils import counters, flatten_graph_inputs
from torch._functorch._aot_autograd import autograd_cache, graph_compile
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch._inductor import codecache
from torch._library.triton import triton_ops_to_kernels
from torch.autograd import forward_ad
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy

from .. import __version__
from ..config import list_options
from . import layout, rows
from .nodes import put
from .output import Artifact
from .sizes import are_equal
from .values import Refused

# The modes of cinductor that apply here, with the options that each sets.
MODES: dict[str | None, dict[str, Any]] = {
    None: {},
    "default": {},
    "reduce-overhead": {"graphs": True},
    "max-autotune": {},
    "max-autotune-no-cudagraphs": {},
}


# Of AOTAutograd. The core eliminates common subexpressions itself, and torch's pass imports Inductor.
SETTINGS = {"unlift_effect_tokens": True, "bundled_autograd_cache": True, "force_non_lazy_backward_lowering": True, "cse": False}

ROWS = hashlib.sha256(rows.text().encode()).hexdigest()


# Errors at which Dynamo breaks the graph, and its own.
BREAKING = (*exceptions_allowed_to_be_fallback, TorchDynamoException)

log = logging.getLogger(__name__)


def compile_graph_module(gm: Any, inputs: Any, mode: str | None, options: dict[str, Any], made: list[Any] | None = None) -> Any:
    """Dynamo's graph through AOTAutograd; see `cinductor.torch.backend`.

    made : list, optional
        The artifacts are added to it.
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, expected one of {sorted(m for m in MODES if m)}")
    given = {"numerics": "close", "threads": torch.get_num_threads(), **MODES[mode], **options}
    is_strict = bool(given.pop("strict", False))
    known = {option.name for option in list_options()} | {"fused_random"}
    if wrong := sorted(set(given) - known):
        raise ValueError(f"unknown option {wrong[0]!r}")
    key = CacheKey(repr((__version__, ROWS, sorted(given.items()), is_strict)))
    if why := no_graph_for(gm, inputs):
        if is_strict:
            raise Refused(why)
        log.info("a graph, run by eager: %s", why)
        if made is not None:
            made.append(EagerGraph(why))
        return disable(gm, reason="eager runs the graph")
    compiler = functools.partial(compile_plain, given=given, key=key, is_strict=is_strict, made=made)
    if any(isinstance(x, (list, tuple, dict)) for x in inputs):  # compiled autograd's
        return flatten_graph_inputs(gm, inputs, compiler)
    return compiler(gm, inputs)


def compile_plain(gm: Any, inputs: Any, given: dict[str, Any], key: CacheKey, is_strict: bool, made: list[Any] | None) -> Any:
    """A graph whose inputs are tensors and numbers."""
    counters["aot_autograd"]["total"] += 1
    without_donation = patch.object(graph_compile, "collect_bw_donated_buffer_idxs", no_donated_buffers)
    with torch._functorch.config.patch(SETTINGS), key_without_inductor(), without_donation:
        try:
            arguments = compilers(given, is_strict, made, results_of(gm))
            compiled: Any = aot_module_simplified(gm, inputs, **arguments, **key_argument(key))
        except BREAKING:
            raise
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            if is_strict:
                raise
            compiled, why = gm, f"AOTAutograd refuses it: {error}"
            log.info("a graph, run by eager: %s", why)
            if made is not None:
                made.append(EagerGraph(why))
    counters["aot_autograd"]["ok"] += 1

    def call(*args: Any) -> Any:
        # A program computes no tangents of forward-mode differentiation, so eager runs the graph within a level of it.
        return compiled(*args) if forward_ad._current_level < 0 else gm(*args)

    return disable(call, reason="the graph is compiled")


def no_graph_for(gm: Any, inputs: Any) -> str:
    """Why eager runs Dynamo's graph as it is: an input, by its name in the model, that is no plain tensor; "" if all are.

    A subclass of Tensor that only overrides functions is one: a graph of ATen ops does not know its class. Tensors that torch
    takes apart into plain ones are none.
    """
    named = zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=False)
    for node, x in ((node, x) for node, value in named for x in tree_leaves(value)):
        if not isinstance(x, torch.Tensor) or is_traceable_wrapper_subclass(x):
            continue
        is_class = type(x) not in (torch.Tensor, torch.nn.Parameter) and type(x).__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl
        if is_class or not layout.is_plain(x):
            return f"{name_in_model(node)} is {layout.kind(x)}"
    return ""


def name_in_model(node: torch.fx.Node) -> str:
    """The expression of the model that an input of Dynamo's graph is, as `L['x']`."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", node.target)
    return str(name() if callable(name) else name)  # a method in torch 2.11


@dataclass
class EagerGraph:
    """A graph of Dynamo's that eager runs as it is, in a report. Its attributes are those of `Artifact`."""

    why: str
    name: str = "graph"
    nodes: tuple[()] = ()
    run: None = None


@contextlib.contextmanager
def key_without_inductor() -> Iterator[None]:
    """AOTAutograd's cache computes its keys without Inductor's part of them.

    For that part torch imports Inductor's code generators, which takes seconds; where Triton is installed, also for the sources of
    its kernels, although few programs have an op with such a kernel. Dynamo's lock keeps other threads from compiling
    meanwhile, and two callers of the backend from restoring each other's function.
    """
    of_triton = patch.object(autograd_cache.AOTAutogradCacheDetails, "get_triton_source_codes_from_gm", no_sources)
    with compile_lock, patch.object(codecache.FxGraphHashDetails, "__init__", describe_graph), contextlib.ExitStack() as stack:
        if not triton_ops_to_kernels:
            stack.enter_context(of_triton)
        yield


def no_sources(*_: Any) -> list[str]:
    """The sources of the Triton kernels of a graph, in a process that has registered none."""
    return []


def no_donated_buffers(*_: Any) -> list[int]:
    """The saved tensors whose memory a backward may reuse: none, because a caller may run a backward twice (retain_graph)."""
    return []


def describe_graph(details: Any, gm: Any, inputs: Any, more: dict[str, Any], checked: Any) -> None:
    """Sets the attributes of which AOTAutograd's cache makes a key, in addition to its own: all that an artifact depends on."""
    details.gm, details.example_inputs, details.fx_kwargs = gm, inputs, dict(sorted(more.items()))
    details.cache_key_tag = torch.compiler.config.cache_key_tag
    details.deterministic = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    details.default_dtype, details.torch_version = torch.get_default_dtype(), torch_sources()


@functools.cache
def torch_sources() -> str:
    """A hash of torch's version and of its Python files: their names, sizes and times, by which Python's own cache of
    bytecode knows them, too. torch's hash of their contents takes a third of a second.
    """
    found, folders = [torch.__version__], [os.path.dirname(torch.__file__)]
    for folder in folders:
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            if entry.is_dir() and entry.name not in ("include", "lib", "share", "__pycache__"):
                folders.append(entry.path)
            elif entry.name.endswith(".py"):
                found.append(f"{entry.path} {entry.stat().st_size} {entry.stat().st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def partition(joint: torch.fx.GraphModule, inputs: Any, **more: Any) -> Any:
    """torch's partition of a joint graph. It recomputes values from inputs, also from those that the forward writes:
    what reads such an input is saved instead.
    """
    nodes = joint.graph.nodes
    written = {n.args[0].meta["val"] for n in nodes if n.target is torch.ops.aten.copy_.default and n.args[0].op == "placeholder"}
    storages = {layout.storage_of(val) for val in written}
    for node in nodes:
        if node.op == "call_function" and any(is_part(a, storages) for a in node.all_input_nodes) and not is_part(node, storages):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    for node in list(nodes):
        if node.target in OF_SIZES:
            without_values(joint.graph, node)
    return min_cut_rematerialization_partition(joint, inputs, **more)


# Gradients that only read the sizes of their second argument. Their rows do not read it at all.
OF_SIZES = {
    torch.ops.aten.avg_pool2d_backward.default, torch.ops.aten.avg_pool3d_backward.default,
    torch.ops.aten._adaptive_avg_pool2d_backward.default, torch.ops.aten._adaptive_avg_pool3d_backward.default,
    torch.ops.aten.max_pool2d_with_indices_backward.default, torch.ops.aten.max_pool3d_with_indices_backward.default,
}  # fmt: skip


def without_values(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Zeros of the same sizes and strides in the place of the node's second argument, so that the forward graph need not save it."""
    x = node.args[1].meta["val"]
    if any(isinstance(s, torch.SymInt) for s in x.size()) or not layout.is_dense(x):
        return
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    with graph.inserting_before(node), x.fake_mode:
        zeros = put(graph, torch.ops.aten.full.default, [x.size(axis) for axis in order], 0, dtype=x.dtype, device=x.device)
        node.update_arg(1, put(graph, torch.ops.aten.permute.default, zeros, [order.index(axis) for axis in range(x.dim())]))


def is_part(node: torch.fx.Node, storages: set[int]) -> bool:
    """True if the node's value is in one of the storages."""
    val = node.meta.get("val")
    return layout.is_strided(val) and layout.storage_of(val) in storages


def untraced(compiler: Any) -> Any:
    """A compiler that Dynamo does not trace, nor what it makes: autograd may run them while Dynamo is on."""

    def compile_backward(*args: Any, **kwargs: Any) -> Any:
        return disable(disable(compiler)(*args, **kwargs), reason="the graph is compiled")

    return compile_backward


@dataclass(frozen=True)
class CacheKey:
    """The part of the key of AOTAutograd's cache that a backend adds, in the two fields that Inductor has.

    cudagraphs : the version of cinductor, its rows and options.
    """

    cudagraphs: str
    forward_device: None = None


def key_argument(key: CacheKey) -> dict[str, Any]:
    """The argument of AOTAutograd by which the key gets to its cache; torch 2.11 takes its first field alone."""
    name = "compiler_config_extra"
    return {name: key} if name in inspect.signature(aot_module_simplified).parameters else {"cudagraphs": key.cudagraphs}


def results_of(gm: Any) -> list[Any]:
    """The results of Dynamo's graph as eager lays them out, as fake tensors; None if Dynamo has not recorded one."""
    results = gm.graph.output_node().args[0]
    return [getattr(x, "meta", {}).get("example_value") for x in (results if isinstance(results, (tuple, list)) else [results])]


def lay_out_results(graph: torch.fx.Graph, results: list[Any]) -> None:
    """Gives the graph's results eager's strides: a decomposition may make another order of axes than the op that it replaces.

    Results that share memory with another one or an argument stay as they are.
    """
    output, found = graph.output_node(), TracingContext.try_get()
    outputs, known = list(output.args[0]), found.fw_metadata if found else None
    if known is None or len(known.output_info) != len(results):
        return
    seen = [*graph.find_nodes(op="placeholder"), *(x for x in outputs if isinstance(x, torch.fx.Node))]
    storages = [layout.storage_of(n.meta["val"]) for n in seen if layout.is_strided(n.meta.get("val"))]
    for k, wanted in enumerate(results, known.num_mutated_inp_runtime_indices):
        val = outputs[k].meta.get("val") if isinstance(outputs[k], torch.fx.Node) else None
        if not (layout.is_strided(val) and layout.is_strided(wanted) and layout.is_dense(wanted)) or layout.order_text(val) == layout.order_text(wanted):
            continue
        if are_equal(tuple(val.size()), tuple(wanted.size())) and storages.count(layout.storage_of(val)) == 1:
            with graph.inserting_before(output):
                outputs[k] = put(graph, torch.ops.aten.clone.default, outputs[k])
            with val.fake_mode:
                outputs[k].meta["val"] = val.new_empty_strided(wanted.size(), wanted.stride())
    output.args = (tuple(outputs),)


def compilers(options: dict[str, Any], is_strict: bool, made: list[Artifact] | None = None, results: list[Any] | None = None) -> dict[str, Any]:
    """Arguments of AOTAutograd: a compiler for each kind of graph, decompositions and the partition of a joint graph."""
    compiler = functools.partial(compile_fx, options=options, is_strict=is_strict, made=made)
    of_results = functools.partial(compiler, results=results)
    return {
        "fw_compiler": SerializableAOTDispatchCompiler(Artifact, functools.partial(of_results, name="forward")),
        "bw_compiler": SerializableAOTDispatchCompiler(Artifact, untraced(functools.partial(compiler, name="backward"))),
        "inference_compiler": SerializableAOTDispatchCompiler(Artifact, functools.partial(of_results, name="inference")),
        "decompositions": rows.decompositions(),
        "partition_fn": partition,
        "keep_inference_input_mutations": True,
    }


def compile_fx(
    gm: torch.fx.GraphModule,
    inputs: Any,
    *,
    name: str,
    options: dict[str, Any],
    is_strict: bool,
    made: list[Artifact] | None = None,
    results: list[Any] | None = None,
) -> Artifact:
    """One functional graph of ATen ops, compiled; eager's own run of it if that is refused."""
    if results:
        lay_out_results(gm.graph, results)
        gm.recompile()
    artifact = Artifact(gm, name, options, is_strict)
    if made is not None:
        made.append(artifact)
    return artifact
