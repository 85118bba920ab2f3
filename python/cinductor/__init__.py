"""cinductor: a compiler for NumPy code.

    import cinductor
    f = cinductor.compile(fn)      # fn: ordinary NumPy code
    y = f(x, w, b)                 # same results, same effects, faster

`explain` shows what a function became, `config` and `list_options` what can be set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from . import cache as cache
from ._core import (
    CinductorError,
    CompiledFunction,
    CompileError,
    CompilerNotFound,
    DeviceError,
    Error,
    InternalError,
    LoweringError,
    NoFolder,
    PassFailed,
    PromiseBroken,
    RecompileError,
    Unsupported,
)
from .base.deferred_warnings import CacheWarning, CinductorWarning
from .calls.dynamic import mark_dynamic, mark_static, mark_unbacked
from .calls.job import is_compiling
from .calls.stance import set_stance
from .compile import compile, disable, reset, stats, wait
from .config import config, list_backends, list_choices, list_mode_options, list_options

if TYPE_CHECKING:
    from .arrays.array import Array, from_dlpack, to_device
    from .arrays.machine import Device, device, devices, get_include, register_device
    from .arrays.sharing import from_ipc_handle
    from .arrays.streams import (
        Event,
        Stream,
        configure_memory,
        empty_cache,
        memory_stats,
        reset_peak,
        synchronize,
    )
    from .base.graph_text import Node as Node
    from .base.option_types import Options
    from .builds.bundled import PackagedFunction as PackagedFunction
    from .builds.bundled import load
    from .builds.bundling import package
    from .builds.exporting import Program as Program
    from .builds.exporting import export, register_wrapper_backend
    from .builds.warming import ShapeDtype, graph, lower, warm
    from .diagnosis.bisecting import Finding as Finding
    from .diagnosis.bisecting import bisect
    from .diagnosis.coverage_table import Coverage as Coverage
    from .diagnosis.coverage_table import coverage
    from .diagnosis.logs import set_logs
    from .diagnosis.profiling import KernelProfile as KernelProfile
    from .diagnosis.profiling import profile
    from .errors import (
        AccuracyError,
        BackendCompilerFailed,
        ConstraintViolation,
        RecompileLimitExceeded,
    )
    from .extensions.control import cond, fori_loop, scan, while_loop
    from .extensions.custom_ops import CustomOp as CustomOp
    from .extensions.custom_ops import custom_op
    from .extensions.heuristics import Facts, register_heuristics
    from .extensions.kernels import UserKernel as UserKernel
    from .extensions.kernels import kernel
    from .extensions.passes import Pass as Pass
    from .extensions.passes import PassEvent as PassEvent
    from .extensions.passes import list_passes, observe_passes
    from .extensions.registering import Registration as Registration
    from .extensions.registering import (
        register_backend,
        register_lowering,
        register_pass,
        register_pattern,
        register_template,
    )
    from .graphs import Graph
    from .report.explanation import Explanation as Explanation
    from .report.explanation import explain

__version__ = _core.VERSION

__all__ = [
    "AccuracyError",
    "Array",
    "BackendCompilerFailed",
    "CacheWarning",
    "CinductorError",
    "CinductorWarning",
    "CompileError",
    "CompiledFunction",
    "CompilerNotFound",
    "ConstraintViolation",
    "Device",
    "DeviceError",
    "Error",
    "Event",
    "Facts",
    "Graph",
    "InternalError",
    "LoweringError",
    "NoFolder",
    "Options",
    "PassFailed",
    "PromiseBroken",
    "RecompileError",
    "RecompileLimitExceeded",
    "ShapeDtype",
    "Stream",
    "Unsupported",
    "bisect",
    "cache",
    "compile",
    "cond",
    "config",
    "configure_memory",
    "coverage",
    "custom_op",
    "devices",
    "device",
    "disable",
    "empty_cache",
    "explain",
    "export",
    "fori_loop",
    "from_dlpack",
    "from_ipc_handle",
    "get_include",
    "graph",
    "is_compiling",
    "kernel",
    "list_backends",
    "list_choices",
    "list_mode_options",
    "list_options",
    "list_passes",
    "load",
    "lower",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "memory_stats",
    "observe_passes",
    "ops",
    "package",
    "print_rewritten",
    "profile",
    "register_backend",
    "register_device",
    "register_heuristics",
    "register_lowering",
    "register_pass",
    "register_pattern",
    "register_template",
    "register_wrapper_backend",
    "reset",
    "reset_peak",
    "scan",
    "set_logs",
    "set_stance",
    "stats",
    "synchronize",
    "to_device",
    "wait",
    "warm",
    "while_loop",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cinductor`: the magics `%%cinductor` and `%cinductor`."""
    from .diagnosis.jupyter import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext cinductor`."""
    from .diagnosis.jupyter import unload

    unload(shell)


def print_rewritten(fn: Any) -> None:
    """Print the source of fn as capture runs it: with calls in place of reads, calls and stores.

    `explain(...).rewritten` has the text.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one.

    Raises
    ------
    capture.syntax.rewrite.NotRewritable
        With the reason, if the function runs unchanged.
    """
    from .capture.syntax.rewrite import print_rewritten as run

    print(run(fn))


# Public names that are imported at their first use -> their modules.
PLACES = {
    "explain": "report.explanation",
    "set_logs": "diagnosis.logs",
    "coverage": "diagnosis.coverage_table",
    "profile": "diagnosis.profiling",
    "kernel": "extensions.kernels",
    "custom_op": "extensions.custom_ops",
    "bisect": "diagnosis.bisecting",
    **dict.fromkeys(("export", "register_wrapper_backend"), "builds.exporting"),
    "package": "builds.bundling",
    "load": "builds.bundled",
    **dict.fromkeys(("list_passes", "observe_passes"), "extensions.passes"),
    **dict.fromkeys(
        ("register_backend", "register_lowering", "register_pass", "register_pattern", "register_template"), "extensions.registering"
    ),
    **dict.fromkeys(("Device", "devices", "device", "get_include", "register_device"), "arrays.machine"),
    **dict.fromkeys(("Facts", "register_heuristics"), "extensions.heuristics"),
    **dict.fromkeys(("Array", "from_dlpack", "to_device"), "arrays.array"),
    "from_ipc_handle": "arrays.sharing",
    **dict.fromkeys(
        "Event Stream configure_memory empty_cache memory_stats reset_peak synchronize".split(),
        "arrays.streams",
    ),
    "Graph": "graphs",
    **dict.fromkeys(("ShapeDtype", "graph", "lower", "warm"), "builds.warming"),
    "Options": "base.option_types",
    **dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), "extensions.control"),
    **dict.fromkeys(
        "AccuracyError BackendCompilerFailed ConstraintViolation RecompileLimitExceeded".split(), "errors"
    ),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in PLACES:
        found = globals()[name] = getattr(import_module(f"cinductor.{PLACES[name]}"), name)
        return found
    if name in ("dask", "ops"):
        return import_module(f"cinductor.{name}")
    hint = "; write cinductor.compile" if name in ("jit", "njit") else ""
    raise AttributeError(f"module 'cinductor' has no attribute {name!r}{hint}", name=name, obj=import_module("cinductor"))


def __dir__() -> list[str]:
    return __all__
