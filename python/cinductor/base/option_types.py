"""The option names of `compile` for type checkers. tests/devices/test_options.py compares them with the table of options."""

from __future__ import annotations

from typing import Literal, TypedDict


class Options(TypedDict, total=False):
    """The argument `options` of `compile`: a dict, all of whose keys are optional.

    `list_options()` has the type, default, environment variable and description of each. An unknown key or a value that
    is not allowed raises ValueError, a value of another type TypeError, when `compile` is called.

    Examples
    --------
    >>> options: cinductor.Options = {"threads": 4, "numerics": "close"}
    >>> f = cinductor.compile(fn, options=options)
    """

    wrapper: Literal["c", "python"]
    numerics: Literal["exact", "numpy", "close", "fast"]
    templates: Literal["auto", "always", "never"]
    threads: int
    library_threads: int
    fusion: bool
    reuse: bool
    pools: bool
    inline_limit: int
    node_limit: int
    recompile_limit: int
    accumulated_recompile_limit: int
    on_limit: Literal["dynamic", "eager", "error"]
    log_recompiles: bool
    cache: bool
    stencils: bool
    arch: Literal["", "generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"]
    compile_timeout: int
    isolate: bool
    verify: bool
    track_memory: Literal["off", "log", "assert"]
    symbols: bool
    nan_asserts: bool
    size_asserts: bool
    alignment_asserts: bool
    index_asserts: bool
    dump: str
    skip_passes: str
    check_passes: bool
    fusion_limit: int
    interpreted_kernels: int
    choices: str
    device_index: int
    offload: Literal["auto", "always"]
    max_autotune: bool
    benchmark_fusion: bool
    multi_kernel: bool
    apart: str
    graphs: bool
    economy: Literal["auto", "lazy", "now"]
    capture_limit: float
    saved_calls: bool
    cache_limit: int
    progress: bool
