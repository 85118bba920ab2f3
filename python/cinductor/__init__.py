"""cinductor: a compiler for NumPy code.

    import cinductor
    f = cinductor.compile(fn)      # fn: ordinary NumPy code
    y = f(x, w, b)                 # same results, same effects, faster

`explain` shows what a function became, `config` and `list_options` what can be set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from .compile import compile, disable, reset, set_stance, stats
from .config import config, list_backends, list_choices, list_mode_options, list_options
from .dynamic import mark_dynamic, mark_static, mark_unbacked
from .job import is_compiling
from .notices import CacheWarning, CinductorWarning

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
    from .covered import Coverage as Coverage
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

__version__ = "0.1.0"

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
    "while_loop",
]


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Calls fn once on these arguments and tells what was made of it.

    The call is a real one, effects included; where it has none it is made a few times more, to time its
    kernels. The result has the text of every level (`graph`, `loops`, `kernels`, `procs`, `wrapper`,
    `source`), `costs` of each kernel, `memory`, `guards`, `breaks`, `regions` (what became of loops and
    branches), `recompiles`, `timings` and `result`; its str() is a page, `.full()` all of it, `.json()` for
    tools, `.save(path)` a web page, which notebooks show by themselves. What fn raises is in `error`.
    """
    from .profiling import KernelProfile as KernelProfile
    from .report.explanation import explain as run

    return run(fn, *args, **kwargs)


def set_logs(*names: str) -> None:
    """Switches logs on, and those not named off: `set_logs("breaks", "recompiles")`, `set_logs("all")`;
    without names all are off.

    names: breaks, recompiles, fusion, guards, cache, races, perf, also as one text with commas. Each is a logger
    `cinductor.<name>` of `logging`, which prints on stderr where nobody has said where logs go. The
    variable CINDUCTOR_LOGS does the same. Raises ValueError for another name, TypeError for what is no text.
    """
    from .logs import set_logs as run

    run(*names)


def profile() -> KernelProfile:
    """Times each kernel and library call of compiled functions while a with statement runs.

        with cinductor.profile() as found:
            f(x)
        print(found)              # a table
        found.save("trace.json")  # for chrome://tracing and Perfetto

    Programs run by their printed wrapper meanwhile, a microsecond or two more for each kernel; results are the
    same. Float warnings of kernels are not given, and devices with memory of their own not timed.
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
    """What becomes of each public callable of NumPy in a captured function.

    Functions of `numpy`, `numpy.linalg` and `numpy.fft`, draws, methods of arrays and of ufuncs: "compiled",
    "composed", "called", "answered" or "break", with the reason. print() gives a table; it iterates over rows
    of name, how and reason. Arguments are taken to be arrays of compiled dtypes.
    """
    from .covered import coverage as run

    return run()


def export(
    fn: Any, *args: Any, form: str = "c", options: dict[str, Any] | None = None, **kwargs: Any
) -> Any:
    """The program that fn is for arguments like these, to be used without Python.

    fn: a function or a compiled one, whose settings hold. It is called once, on copies of the arguments.
    form: "c" gives one C file, whose first line says how it is compiled and whose `call` takes and gives
    arrays (`ci_array`); it makes no threads. "json" gives buffers, lines and results, with the kernels' C
    beside them; `examples/run_json.py` runs it. The name of a backend of `register_wrapper_backend` gives
    what that makes of it. Results are the arrays and numbers that the program makes,
    in their order; a view that the function returns (`y.T`, a part of an argument) is left to the caller.
    Raises `Unsupported` for what the program asks of Python
    (breaks, library calls, loops of NumPy's functions: options={"numerics": "close"} has none).
    """
    from .exporting import export as run

    return run(fn, *args, form=form, options=options, **kwargs)


def register_wrapper_backend(
    name: str, fn: Callable[[Program], Any], lines: Iterable[str] | None = None
) -> None:
    """Has `export(..., form=name)` give programs to a compiler of one's own.

    fn: takes a `cinductor.exporting.Program` (buffers with their users, lines, results, the kernels' C),
    which it may change, and returns whatever `export` shall. lines: the kinds of lines that it supports,
    None for all; a program with another one raises `Unsupported`, with the line and its place. Raises
    ValueError for a name that is taken.
    """
    from .exporting import register_wrapper_backend as register

    register(name, fn, lines)


def list_passes(level: str = "graph") -> list[Pass]:
    """Every pass of a level: `name`, `is_needed` (it cannot be left out), `doc`, `is_added` (it was registered), `level`.
    level: "graph", or "procs" for those that make statements of kernels, each run for some devices.
    `options={"skip_passes": "cse, poll"}` leaves some out; CINDUCTOR_DUMP=before_cse,cse prints the
    graph before and after one; `options={"check_passes": True}` has the interpreter run it before and after each graph pass.
    """
    from .passes import list_passes as run

    return run(level)


def observe_passes(observer: Callable[[PassEvent], object], level: str = "graph") -> AbstractContextManager[None]:
    """While a with statement runs, calls observer after each pass of that level of each compile, with a PassEvent:
    `name`, `before` and `after` (the graph, or the procs, as text), `seconds`, `level`, `has_changed`.

    Programs that are compiled already, and found again, run no pass. An observer that raises hears no more,
    which a warning says. Raises TypeError for what is not callable, ValueError for a level without passes.
    """
    from .passes import observe_passes as run

    return run(observer, level)


def register_pass(
    name: str, fn: Callable[[Graph], Graph | None], *, after: str = "simplify", version: str | None = None
) -> Registration:
    """Adds a graph pass to those of `list_passes()`.

    fn: is given a `cinductor.graphs.Graph` (nodes with operands, users, sizes, dtypes, the user's line), which
    it may change by add, replace, set_args and erase; it returns None, or another Graph. after: the pass that it
    runs behind: "wrap" or a later one, or one that was registered before. version: what tells it from another
    one of its name; None: the hash of its code, defaults and what its closure holds.

    What it makes is verified; it must take and give what it took and gave. Where it raises or breaks the
    graph, NumPy answers the call and a warning says why (`PassFailed`). Returns a `Registration`, whose
    `remove()`, or the end of a with statement, takes it back. Either forgets what has been compiled. Raises ValueError for a
    name that is taken, and for an `after` that is none; TypeError for what is not callable.
    """
    from .registering import register_pass as register

    return register(name, fn, after=after, version=version)


def register_pattern(name: str, pattern: str, replacement: str, *, after: str = "simplify") -> Registration:
    """Adds a graph pass that rewrites what a pattern fits: `register_pattern("twice", "(add x x)", "(multiply x 2)")`.

    Both are texts of operations (`docs/ir.md`): names stand for any node, `x:f64`, `x:int` for one of a type, numbers
    for constants; operands of commutative operations fit in both orders; `(let d A B)` names A in B. It is yours
    to see to it that bits stay; shapes and dtypes must. after: as in `register_pass`, which says the rest.
    Raises ValueError for what cannot be read.
    """
    from .registering import register_pattern as register

    return register(name, pattern, replacement, after=after)


def register_lowering(
    function: Callable[..., Any], fn: Callable[..., Any], *, name: str | None = None, version: str | None = None
) -> Registration:
    """Has compiled functions call fn where they call function.

    function: a function or ufunc of NumPy's, of another package or your own, found by identity where code calls it
    by a name (`np.add(x, y)`, not `x + y`). fn: a function written in Python, which is captured like any other; inside of
    it function is itself. NumPy's answer, where one is given, is function's. name: "lowering." and the function's
    name where None. version, the result and errors: as of `register_pass`.
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
    """Has a kernel of one's own compute an operation of the graph, where fn gives one for it.

    op: a word of `docs/ir.md`, "matmul", "sum", "exp"; fn: is given each `cinductor.graphs.Node` of it, with dtypes, sizes
    and attributes, and returns a `cinductor.kernel` that reads the node's operands in their order and writes one array of its dtype and sizes,
    or None, which leaves it as it is. The rest, errors too, is as of `register_pass`.
    """
    from .registering import register_template as register

    return register(name, op, fn, after=after, version=version)


def kernel(
    source: str, *, reads: str, writes: str, grid: str, preamble: str = "", name: str = "kernel"
) -> UserKernel:
    """A kernel of one's own, in C or CUDA C++, to be called with arrays, in compiled functions and outside of them.

        rows = cinductor.kernel(
            "out[i] = 0; for (int64_t j = 0; j < m; j++) out[i] += x[i * m + j] * w[j];",
            reads="x: f64[n, m], w: f64[m]", writes="out: f64[n]", grid="i: n")
        y = rows(x, w)               # or rows(x, w, out)

    source: statements of C for one point of the grid; arrays are pointers in C order, sizes and indices are int64_t, by
    their names. reads, writes: arrays with dtype (bool, i8 to u64, f32, f64, c64, c128) and sizes, names or numbers.
    grid: indices with how far they go, sizes or + - * // %, min and max of them; points may run in any order and on several
    threads. preamble: declarations and functions in front. name: what reports call it.

    The call takes arrays in the order of reads and writes, or by name; those of writes may be left out where their
    sizes are those of others, and are new then, of zeros before. It returns what is written, one array or a tuple. What is
    read never shares memory with what is written: it is copied where it would. Inside of a compiled function it
    is a library call that the program goes around. With arrays of a card (`Array`) it is compiled as CUDA C++ by
    NVRTC and runs there: these must be contiguous, not complex, and what is written apart. Nobody checks
    where the source reads and writes.

    Raises TypeError and ValueError for declarations that cannot be read and for arrays that are others than
    declared, `CompileError`, with the compiler's words, when it is first called and does not compile.
    """
    from .kernels import UserKernel as make

    return make(source, reads, writes, grid, preamble, name)


def custom_op(
    fn: Any = None, *, shape: Callable[..., Any], dtype: Any = None, name: str | None = None
) -> Any:
    """A function that the compiler does not look into, and calls as it is from inside of compiled functions;
    also a decorator.

    fn: a Python function of arrays, numbers and constants that only computes: it may be called less or more often than the
    code says. Or one in C, as a ctypes function or an address, `int32_t fn(void *const *operands, const int64_t
    *const *sizes, void *const *results)`: operands and results are in C order, sizes has those of the operands, then of the results;
    an answer other than 0 is an error. shape: a function of the same arguments that gives the result's shape, or a list of
    shapes for several results; it should only use shapes and numbers. dtype: the result's, or a list; None: the first operand's.

    The operation raises ValueError where fn gives another shape or dtype; what fn raises goes to the caller.
    Raises TypeError for what is not callable.
    """
    from .custom_ops import CustomOp as make

    if fn is None:
        return lambda decorated: make(decorated, shape, dtype, name)
    return make(fn, shape, dtype, name)


def bisect(fn: Any, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Finding:
    """Finds the lowering, pass, fusion or kernel that changes what fn gives for these arguments.

    fn: a function or a compiled one, whose settings hold. It is called on copies of the arguments, by NumPy and
    compiled a few dozen times, each time with less of the compiler: so it should have no effects beside writing to
    them. Results, exceptions and written arguments are compared bit for bit; where the program has functions
    that may differ from NumPy's, by 4 ULP. The result's `kind` is "none" (nothing differs), "lowering", "pass", "fusion",
    "kernel" or "rest" (all of these are right, so capture, a needed pass or lowering is not); `name`, `place`
    and `difference` say more, str() all.
    """
    from .bisecting import bisect as run

    return run(fn, *args, options=options, **kwargs)


def print_rewritten(fn: Any) -> None:
    """Prints the source of fn as capture runs it: what is read, called and stored goes through the
    stage. `explain(...).rewritten` has it as text.

    fn: a function or a compiled one. Raises `capture.syntax.rewrite.NotRewritable`, with the reason, for a
    function that is left as it is, and TypeError for what is no function written in Python.
    """
    from .capture.syntax.rewrite import print_rewritten as run

    print(run(fn))


def get_include() -> str:
    """The folder of the C headers, for devices and compilers from outside: `device/device.h`."""
    from .machine import get_include as find

    return find()


# What is not imported until it is asked for, by where it is.
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
    if name in PLACES:
        from importlib import import_module

        found = globals()[name] = getattr(import_module(f"cinductor.{PLACES[name]}"), name)
        return found
    if name == "ops":
        from importlib import import_module

        return import_module("cinductor.ops")
    raise AttributeError(f"module 'cinductor' has no attribute {name!r}")
