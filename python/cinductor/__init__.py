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
from .compile import compile, disable, reset, stats, wait
from .config import config, list_backends, list_choices, list_mode_options, list_options
from .deferred_warnings import CacheWarning, CinductorWarning
from .dynamic import mark_dynamic, mark_static, mark_unbacked
from .job import is_compiling
from .stance import set_stance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from .arrays.array import Array, from_dlpack, to_device
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
    from .bisecting import Finding as Finding
    from .control import cond, fori_loop, scan, while_loop
    from .coverage_table import Coverage as Coverage
    from .custom_ops import CustomOp as CustomOp
    from .errors import (
        AccuracyError,
        BackendCompilerFailed,
        ConstraintViolation,
        RecompileLimitExceeded,
    )
    from .exporting import Program as Program
    from .graphs import Graph as Graph
    from .graphs import Node as Node
    from .heuristics import Facts, register_heuristics
    from .kernels import UserKernel as UserKernel
    from .machine import Device, device, devices, register_device, toolkit
    from .passes import Pass, PassEvent
    from .profiling import KernelProfile as KernelProfile
    from .registering import Registration as Registration
    from .report.explanation import Explanation as Explanation

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
    "InternalError",
    "LoweringError",
    "NoFolder",
    "PassFailed",
    "PromiseBroken",
    "RecompileError",
    "RecompileLimitExceeded",
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
    "is_compiling",
    "kernel",
    "list_backends",
    "list_choices",
    "list_mode_options",
    "list_options",
    "list_passes",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "memory_stats",
    "observe_passes",
    "ops",
    "print_rewritten",
    "profile",
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
    "toolkit",
    "wait",
    "while_loop",
]


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Call fn once on these arguments and report what it was compiled to.

    The call is real, side effects included. Without side effects it is repeated a few times, to time its kernels.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.

    Returns
    -------
    Explanation
        The text of every level (`graph`, `loops`, `kernels`, `procs`, `wrapper`, `source`), `costs` of each kernel, `memory`,
        `guards`, `breaks`, `regions` (loops and branches), `recompiles`, `timings` and `result`. Its str() is a page,
        `.full()` everything, `.json()` for tools, `.save(path)` a web page, which notebooks display directly. An exception
        of fn is in `error`.
    """
    from .profiling import KernelProfile as KernelProfile
    from .report.explanation import explain as run

    return run(fn, *args, **kwargs)


def set_logs(*names: str) -> None:
    """Switch the named logs on and all others off.

    Parameters
    ----------
    *names : str
        Of breaks, recompiles, fusion, guards, cache, races, perf, or all; also one string with commas. None: all are off.
        Each is a logger `cinductor.<name>` of `logging`, which prints to stderr if no handler is configured. The
        variable CINDUCTOR_LOGS does the same.

    Raises
    ------
    ValueError, TypeError
        For an unknown name; for an argument that is not a string.
    """
    from .logs import set_logs as run

    run(*names)


def profile() -> KernelProfile:
    """Time each kernel and library call of compiled functions while a with statement runs.

    Programs run by their printed wrapper meanwhile, a microsecond or two slower for each kernel, with the same results. Float
    warnings of kernels are not given, and devices with their own memory are not timed.

    Returns
    -------
    KernelProfile
        A context manager with `rows`; its str() is a table, and `save("trace.json")` writes a trace for chrome://tracing and
        Perfetto.

    Examples
    --------
    >>> with cinductor.profile() as found:
    ...     f(x)
    >>> print(found)
    """
    from .profiling import KernelProfile

    return KernelProfile()


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cinductor`: the magics `%%cinductor` and `%cinductor`."""
    from .jupyter import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext cinductor`."""
    from .jupyter import unload

    unload(shell)


def coverage() -> Coverage:
    """List how each public callable of NumPy is captured.

    Returns
    -------
    Coverage
        One row (name, how, reason) for each function of `numpy`, `numpy.linalg` and `numpy.fft`, each draw, and each method
        of arrays and ufuncs. `how` is "compiled", "composed", "called", "answered" or "break". print() gives a table.
        Arguments are assumed to be arrays of compiled dtypes.
    """
    from .coverage_table import coverage as run

    return run()


def export(
    fn: Any, *args: Any, form: str = "c", options: dict[str, Any] | None = None, **kwargs: Any
) -> Any:
    """Return the program of fn for arguments like these, for use without Python.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply. It is called once, on copies of the arguments that follow.
    form : str
        "c": one C file, whose first line says how to compile it, and whose `call` takes and returns arrays (`ci_array`) on
        one thread. "json": buffers, lines and results, with the kernels' C; `examples/run_json.py` runs it. Otherwise a name of
        `register_wrapper_backend`.
    options : dict, optional
        As in `compile`.

    Returns
    -------
    str or object
        The file, or the result of the wrapper backend. Results of the program are its arrays and numbers, in their order;
        views that the function returns (`y.T`, a part of an argument) are left to the caller.

    Raises
    ------
    Unsupported
        If the program needs Python: breaks, library calls, loops of NumPy's functions (numerics="close" avoids these).
    """
    from .exporting import export as run

    return run(fn, *args, form=form, options=options, **kwargs)


def register_wrapper_backend(
    name: str, fn: Callable[[Program], Any], lines: Iterable[str] | None = None
) -> None:
    """Make `export(..., form=name)` pass programs to a function.

    Parameters
    ----------
    name : str
        The name of the form.
    fn : callable
        Takes a `cinductor.exporting.Program` (buffers with their users, lines, results, the kernels' C), which it may change.
        `export` returns its result.
    lines : iterable of str, optional
        The kinds of lines that it supports; None: all. A program with another line raises `Unsupported`.
    """
    from .exporting import register_wrapper_backend as register

    register(name, fn, lines)


def list_passes(level: str = "graph") -> list[Pass]:
    """List every pass of a level.

    `options={"skip_passes": "cse, simplify"}` skips some, CINDUCTOR_DUMP=before_cse,cse prints the level before and after one.

    Parameters
    ----------
    level : {"graph", "loops", "procs"}
        Passes over graphs, over the loops that they become, or over the statements of kernels.

    Returns
    -------
    list of Pass
        With `name`, `is_needed` (it cannot be skipped), `doc`, `is_added` (it was registered) and `level`.
    """
    from .passes import list_passes as run

    return run(level)


def observe_passes(observer: Callable[[PassEvent], object], level: str = "graph") -> AbstractContextManager[None]:
    """Call observer after each pass of a level while a with statement runs.

    Programs that are compiled already run no pass. An observer that raises is not called again, which a warning says.

    Parameters
    ----------
    observer : callable
        Takes a PassEvent: `name`, `before` and `after` (the level as text), `seconds`, `level`, `has_changed`.
    level : {"graph", "loops", "procs"}
    """
    from .passes import observe_passes as run

    return run(observer, level)


def register_pass(
    name: str, fn: Callable[[Graph], Graph | None], *, after: str = "simplify", version: str | None = None
) -> Registration:
    """Add a graph pass to those of `list_passes()`.

    The result is verified, and must take and return what the graph did before. If fn raises or breaks the graph, NumPy runs the
    call and a warning gives the reason (`PassFailed`).

    Parameters
    ----------
    name : str
        The name of the pass.
    fn : callable
        Takes a `cinductor.graphs.Graph` (nodes with operands, users, sizes, dtypes, the user's line), which it may change by
        add, replace, set_args and erase. Returns None, or another Graph.
    after : str
        The pass after which it runs: "wrap" or a later one, or a registered one.
    version : str, optional
        Distinguishes passes of one name; None: the hash of the code, defaults and closure of fn.

    Returns
    -------
    Registration
        Its `remove()`, or the end of a with statement, removes the pass. Both discard compiled programs.

    Raises
    ------
    ValueError, TypeError
        If the name is taken or `after` does not exist; if fn is not callable.
    """
    from .registering import register_pass as register

    return register(name, fn, after=after, version=version)


def register_pattern(name: str, pattern: str, replacement: str, *, after: str = "simplify") -> Registration:
    """Add a graph pass that rewrites a pattern.

    Shapes and dtypes must stay the same. Whether bits do is the caller's responsibility.

    Parameters
    ----------
    name : str
        The name of the pass.
    pattern, replacement : str
        Texts of operations (`docs/ir.md`): names match any node, `x:f64`, `x:int` one of a type, numbers match constants.
        Operands of commutative operations match in both orders. `(let d A B)` names A in B.
    after : str
        As in `register_pass`, which also describes result and errors.

    Examples
    --------
    >>> cinductor.register_pattern("twice", "(add x x)", "(multiply x 2)")
    """
    from .registering import register_pattern as register

    return register(name, pattern, replacement, after=after)


def register_lowering(
    function: Callable[..., Any], fn: Callable[..., Any], *, name: str | None = None, version: str | None = None
) -> Registration:
    """Make compiled functions call fn where they call function.

    Parameters
    ----------
    function : callable
        A function or ufunc of NumPy, of another package or your own, recognized by identity where code calls it by a name
        (`np.add(x, y)`, not `x + y`). If NumPy runs a call, it calls this one.
    fn : callable
        A function in Python, which is captured like any other. Inside of it, function is the original.
    name : str, optional
        None: "lowering." and the function's name.
    version : str, optional
        As in `register_pass`, which also describes result and errors.
    """
    from .registering import register_lowering as register

    return register(function, fn, name=name, version=version)


def register_template(
    name: str,
    op: str,
    fn: Callable[[Node], UserKernel | None],
    *,
    after: str = "simplify",
    version: str | None = None,
) -> Registration:
    """Compute an operation of the graph by a kernel of your own, if fn returns one for it.

    Parameters
    ----------
    name : str
        The name of the template.
    op : str
        An operation (`docs/ir.md`): "matmul", "sum", "exp".
    fn : callable
        Takes each `cinductor.graphs.Node` of that operation, with dtypes, sizes and attributes. Returns a `cinductor.kernel`
        that reads the node's operands in their order and writes one array of its dtype and sizes, or None to leave it.
    after, version : str
        As in `register_pass`, which also describes result and errors.
    """
    from .registering import register_template as register

    return register(name, op, fn, after=after, version=version)


def kernel(
    source: str, *, reads: str, writes: str, grid: str, preamble: str = "", name: str = "kernel"
) -> UserKernel:
    """Make a kernel from a body in C or CUDA C++, for compiled functions and for calls outside of them.

    The call takes arrays in the order of reads and writes, or by name. Those of writes may be omitted if their sizes are those of
    others; they are new then, and zero before. It returns the written array, or a tuple. Memory that is read is never shared with
    memory that is written: it is copied if it would be. Inside a compiled function the kernel is a library call. With arrays of a
    GPU (`Array`) it is compiled as CUDA C++ by NVRTC and runs there: these must be contiguous, not complex, and written arrays
    separate. Accesses of the body are not checked.

    Parameters
    ----------
    source : str
        Statements of C for one point of the grid. Arrays are pointers in C order; sizes and indices are int64_t.
    reads, writes : str
        Arrays with dtype (bool, i8 to u64, f32, f64, c64, c128) and sizes, which are names or numbers.
    grid : str
        Indices with their ends: sizes, or + - * // %, min and max of them. Points run in any order and on several threads.
    preamble : str
        Declarations and functions before the kernel.
    name : str
        The name in reports.

    Raises
    ------
    TypeError, ValueError
        For declarations that cannot be parsed, and for arrays that differ from them.
    CompileError
        With the compiler's message, at the first call.

    Examples
    --------
    >>> rows = cinductor.kernel(
    ...     "out[i] = 0; for (int64_t j = 0; j < m; j++) out[i] += x[i * m + j] * w[j];",
    ...     reads="x: f64[n, m], w: f64[m]", writes="out: f64[n]", grid="i: n")
    >>> y = rows(x, w)               # or rows(x, w, out)
    """
    from .kernels import UserKernel as make

    return make(source, reads, writes, grid, preamble, name)


def custom_op(
    fn: Any = None, *, shape: Callable[..., Any], dtype: Any = None, name: str | None = None
) -> Any:
    """Declare a function that the compiler calls from inside compiled functions without tracing into it; also a decorator.

    Parameters
    ----------
    fn : callable or int
        A Python function of arrays, numbers and constants that only computes: it may be called less or more often than the
        code says. Or a C function, as a ctypes function or an address, `int32_t fn(void *const *operands, const int64_t *const
        *sizes, void *const *results)`: operands and results are in C order, sizes has those of the operands, then of
        the results; a result other than 0 is an error.
    shape : callable
        A function of the same arguments that returns the result's shape, or a list of shapes for several results. It should
        use only shapes and numbers.
    dtype : dtype or list, optional
        Of the results; None: the first operand's.
    name : str, optional
        The name in reports.

    Raises
    ------
    TypeError
        If fn is not callable. The operation raises ValueError if fn returns another shape or dtype.
    """
    from .custom_ops import CustomOp as make

    if fn is None:
        return lambda decorated: make(decorated, shape, dtype, name)
    return make(fn, shape, dtype, name)


def bisect(fn: Any, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Finding:
    """Find the lowering, pass, fusion or kernel that makes the result differ from NumPy's.

    fn is called on copies of the arguments, by NumPy and compiled, a few dozen times, each time with less of the compiler. So it
    should have no side effects except writes to them. Results, exceptions and written arguments are compared bit for bit, or within 4
    ULP if the program has functions that may differ from NumPy's.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.
    options : dict, optional
        As in `compile`.

    Returns
    -------
    Finding
        `kind` is "none" (no difference), "lowering", "pass", "fusion", "kernel" or "rest" (capture, a needed pass or
        lowering). `name`, `place` and `difference` have details, str() everything.
    """
    from .bisecting import bisect as run

    return run(fn, *args, options=options, **kwargs)


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


def get_include() -> str:
    """Return the folder of the C headers (`device/device.h`), for devices and compilers in other packages."""
    from .machine import get_include as find

    return find()


# Names that are imported when they are first used, with their modules.
PLACES = {
    **dict.fromkeys(("Device", "devices", "device", "register_device", "toolkit"), "machine"),
    **dict.fromkeys(("Facts", "register_heuristics"), "heuristics"),
    **dict.fromkeys(("Array", "from_dlpack", "to_device"), "arrays.array"),
    "from_ipc_handle": "arrays.sharing",
    **dict.fromkeys(
        "Event Stream configure_memory empty_cache memory_stats reset_peak synchronize".split(),
        "arrays.streams",
    ),
    **dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), "control"),
    **dict.fromkeys(
        "AccuracyError BackendCompilerFailed ConstraintViolation RecompileLimitExceeded".split(), "errors"
    ),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in PLACES:
        found = globals()[name] = getattr(import_module(f"cinductor.{PLACES[name]}"), name)
        return found
    if name == "ops":
        return import_module("cinductor.ops")
    raise AttributeError(f"module 'cinductor' has no attribute {name!r}")
