"""Types of the C module: what capture (Python) and the compiler (C) say to each other.

Capture is lazy tracing. A `Tracer` lives for one call of one function. Arrays met in the call are
`Traced` values; operations on them append nodes to the tracer's graph. `flush` compiles and runs
what is pending and makes every live value concrete; tracing then goes on in a new graph. A function
that never had to flush before it returned, and had no outside effect, becomes a `Specialization`:
guards, one program, and the shape of its result, replayed without Python.
"""

import ast
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, TypeVar, final

import numpy as np

_Node = TypeVar("_Node", bound=ast.AST)

VERSION: str  # of csrc/base/version.h

class Error(Exception): ...  # the base of the package's exceptions: errors.py
class RecompileError(Error, RuntimeError): ...

# the compiler's own: the classes of errors.def that builtins lack derive from it
class CinductorError(Error): ...
class InternalError(CinductorError): ...
class PassFailed(CinductorError): ...
class Unsupported(CinductorError): ...
class LoweringError(CinductorError): ...
class CompilerNotFound(CinductorError): ...
class CompileError(CinductorError):
    cmd: str
    stderr: str
    source: str | None  # path of the source that was refused

class NoFolder(CinductorError): ...
class DeviceError(CinductorError): ...
class QuickerOnHost(CinductorError): ...  # of a program; never leaves
class PromiseBroken(CinductorError): ...  # of track_memory and the options that end in _asserts
class CheckFailed(BaseException): ...  # a check failed in the running program; never leaves

@final
class Traced:
    """A value being traced. Never created directly.

    kind: "array" (an ndarray), "scalar" (a NumPy scalar: 0-d, strong) or "python" (float,
    complex or int argument: 0-d, weak).
    An array is a storage and a chain of views; reads are of the storage's current version;
    writes (`x[...] = v`, `x += v`, `out=`) make a new version.
    Operators, comparisons, indexing by basic indices, in-place operators, `__array_ufunc__`,
    `__array_function__` (looked up in the table given to
    `set_surface`), ndarray attributes (shape, dtype, ndim, size, strides, itemsize, nbytes, T,
    flags, real, imag, flat is a break) and methods (through the table)
    work as the real value's. `__class__` is the real one's, so isinstance answers as for the
    real value.
    Where a concrete value is demanded (bool, int, float, complex, index, iteration of array data
    in Python, hash, str, repr, format, `__array__`, `item`,
    `tolist`, buffer, pickling) the tracer breaks: flushes, records the reason and the user's
    line, and answers from the concrete value. Python scalars instead
    specialise: the tracer notes that the value itself is guarded.
    """

    kind: str
    tracer: Tracer
    is_in_order: bool  # C-contiguous; guarded for sizes that decide it
    is_view_of_part: bool  # of the real or imaginary parts of complex numbers, and no call takes it so
    is_dense: bool  # side by side and forwards, in some order of its axes
    shape: tuple[int, ...]  # with Traced ints of kind python where an extent is a symbol
    dtype: np.dtype[Any]
    ndim: int
    def materialise(self) -> Any:
        """The real value: an ndarray (the very argument object where it is one), NumPy scalar or
        Python scalar. Flushes without recording a break.
        """
    def known(self) -> Any:
        """The real value to look at, without running what is pending; None where there is none."""
    def prepare(self) -> None:
        """Gives it a node of the open block."""
    offset: Any  # where a view begins, in bytes from the beginning of its memory
    is_fixed: bool  # an int expression of the arguments' sizes and ints alone
    is_c_order: bool  # the last axis is the innermost, as far as that makes a difference
    # of arrays, as NumPy's
    size: Any
    strides: tuple[Any, ...]
    itemsize: int
    nbytes: Any
    T: Traced
    mT: Traced
    real: Any
    imag: Any
    flags: Any
    flags_now: Any  # the same, without a guard
    # what the value is to capture
    storage: int  # of its memory, for comparison
    version: int  # of that memory
    is_whole: bool  # all of its memory, in order
    whole: Traced  # that
    is_fresh: bool  # nothing else has its memory
    is_expression: bool  # a size: an expression of symbols
    strong: Traced  # a Python number as NumPy's own
    def is_same(self, other: Any) -> bool: ...
    def as_data(self) -> Traced:
        """An int that only the running program knows, as what the program computes; else itself."""
    def detached(self) -> Traced:
        """A view's elements as an array that owns its memory."""
    def fitted(self, like: Traced) -> Traced | None:
        """The array with its sizes written as like's are; None unless they are known to be equal."""
    def set_version(self, value: Traced) -> None:
        """From here on the whole array's memory holds the value."""
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...
    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __array_function__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __complex__(self) -> complex: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...
    def shares_storage(self, other: Traced) -> bool: ...

@final
class Break:
    """One reason why Python had to run: read-only attributes."""

    reason: str
    file: str
    line: int
    own_line: int  # of the function that was called where this happened, or 0
    is_inner: bool  # whether it happened in what that line calls
    is_late: bool  # whether nothing could be checked any more, after an earlier break or effect

class RegionBreak(BaseException):
    """A loop or branch cannot be captured as it is: (reason, file, line)."""

@final
class Hook:
    """A method of a `stage`: the first function, or behind an effect, or where the call has fallen back, the
    second.
    """

    def __new__(cls, method: Callable[..., Any], late: Callable[..., Any]) -> Hook: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class Mark:
    is_valid: bool  # one can go back: nothing has been run since, and the block is open
    work: int  # nodes of the open block since then that compute arrays or NumPy's numbers
    def restore(self) -> None:
        """Goes back: nodes and versions of memory are as they were."""
    def forget_guards(self) -> None:
        """What was decided since by the sizes of this call is open again."""
    def written(self) -> list[Traced]:
        """The memory of before that has been written to since, as whole arrays."""
    def had(self, value: Traced) -> bool:
        """Whether the value's memory was there."""
    def most(self, size: Any) -> Any:
        """The most that a size can be, by what was known then; None where there is no bound."""

@final
class Block:
    nodes: int
    work: int  # nodes that compute arrays or NumPy's numbers
    trace: list[int]  # what it computes, for comparison
    is_harmless: bool  # it may be computed without need
    has_effects: bool  # it checks something, or calls a library
    def index(self, extent: int | Traced) -> Traced:
        """The loop variable of a `for` over [0, extent): the first parameter."""
    def last_value(self, value: Traced) -> Any:
        """What an int expression of the index, or a view, is in the last trip; None where that is none."""
    def truths(self, condition: Traced, count: int) -> list[bool] | None:
        """The condition's truth in each trip, where the trip's number alone decides."""
    def param(self, like: Any, kind: str = ...) -> Traced:
        """A parameter of the type of a Traced value, or of a dtype and kind."""
    def bind(self, array: Traced) -> None:
        """A parameter that is a new version of the whole array's memory."""
    def result(self, value: Any, like: Any = None) -> None:
        """Adds a result: a Traced value or (block, number); with like's order of axes in memory."""
    def live_out(self, value: Traced) -> int:
        """A number for the value as it is now, good when the block is closed."""
    def value(self, number: int) -> Traced:
        """A held value, in the block around into which its block was spliced."""
    def undefined(self, number: int) -> Traced | None:
        """Anything of a held value's type; None when its sizes are known only inside."""
    def close(self, keeps: bool = False) -> None:
        """keeps: its values can be used in the block opened next."""
    def reopen(self) -> None: ...
    def splice(self) -> None:
        """Its nodes become the outer block's."""

@final
class Tracer:
    """One call's tracing. options: names of options.def. device and backend as in `compile`.
    fullgraph: if it is not empty a break raises Unsupported instead of flushing, naming line, reason and this text. key: what the
    function's segments are counted by; its name alone unless given. keep: what keeps the programs
    of its segments alive; the module does unless given."""
    def __new__(
        cls,
        name: str,
        *,
        options: dict[str, Any],
        device: str = "cpu",
        backend: str = "",
        fullgraph: str = "",
        key: str = ...,
        keep: set[Program] = ...,
    ) -> Tracer: ...
    breaks: list[Break]
    name: str
    fullgraph: bool
    has_arrays: bool  # an array that was met or made is still in use
    has_fallen_back: bool  # NumPy goes on with the call; may be set
    effects: int  # how often something has been done that the function itself would do again
    needs_python: bool  # an outside effect or a break: no Specialization may be made
    flushes: int  # graphs run so far
    # directory whose frames are not the user's (set once by the package)
    user_frames_skip: tuple[str, ...]  # directories whose frames are not the user's
    on_build: Callable[[Program, float, float, bool], object] | None
    """Called with an unbuilt program before a whole graph is built, with the seconds that NumPy and the build may take, and whether
    it is exact; it raises to leave the build to a later time."""
    last_program: Program | None  # of the latest flush
    info: dict[str, Any]  # timings and counts of the latest compile
    def symbol(
        self,
        name: str,
        source: int,
        axis: int,
        hint: int,
        low: int = 0,
        high: int | None = None,
        is_unbacked: bool = False,
    ) -> Any:
        """A new size symbol of the call ("s0"), in [low, high], as a Traced int: a later call finds it as the
        extent of that axis of a source's array, as its padding (PADDING_AXIS - axis), or as the value of
        its int (axis -1). hint: its value in this call. is_unbacked: nothing may be decided by
        that."""
    def close(self) -> None:
        """Nothing is traced any more: its values are real, or none."""
    def undefined(self, like: Any, shape: Any = ...) -> Any:
        """An array of like's dtype whose elements are anything."""
    def tagged(self, *parts: Any) -> Any:
        """One number of several kinds: which one, and its parts."""
    def varying(self, a: Any, b: Any) -> list[int] | None:
        """Axes along which Traced values or (block, number) of one dtype and order differ in size: none
        where they are of one type. None: they differ in more.
        """
    def resolve_class(self, value: Any) -> None:
        """Has a number whose class the program decides be of one class from here on."""
    def fixed_sizes(self) -> list[tuple[tuple[str, ...], bool, str, str, int]]:
        """What was decided to be one number: the names of its symbols, whether it is the symbol itself,
        the guard's text, file, line.
        """
    def size(self, text: str) -> Any:
        """The size that a text of a saved call stands for: an int or a Traced one."""
    def size_text(self, size: Any) -> str:
        """The text of a size."""
    def array(
        self,
        value: np.ndarray,
        source: int = -1,
        sizes: Sequence[Any] | None = None,
        paddings: Sequence[Any] | None = None,
    ) -> Traced:
        """The traced value of a real array; the same array object gives the same Traced. source
        >= 0 says how a later call finds it (see Specialization);
        -1 means made in this call by Python, which sets needs_python when it enters a graph.
        sizes, paddings (in elements): per axis an int, maybe a Traced one, or None for the array's own size, and stride; strides of a dense array follow from its sizes."""
    def scalar(
        self, value: float | complex | int | np.generic, source: int, size: Any = None
    ) -> Traced:
        """A scalar argument or guarded read that is a run-time value. Of kind python; of kind
        scalar when the value is a NumPy scalar. size: what an int is, of symbols.
        """
    # Control flow. A value made in a block that is closed, or behind a mark that one went back to,
    # raises RegionBreak when it is used; so does whatever would run the graph while a block is open.
    in_region: bool
    is_full: bool  # the pending graph has reached node_limit
    places: list[tuple[str, int]]  # of its nodes
    forbids_breaks: bool  # may be set: a break raises RegionBreak, too
    def mark(self) -> Mark:
        """A place in the open block that one can go back to."""
    def block(self) -> Block:
        """Opens a block in the open one."""
    def region(
        self,
        op: str,
        blocks: tuple[Block, ...],
        entries: tuple[Traced, ...],
        kinds: tuple[str, ...],
    ) -> list[Traced]:
        """A `for`, `while` or `if` of closed blocks; its results, of these kinds."""
    def select(self, condition: Traced, a: Traced, b: Traced, kind: str) -> Traced:
        """One of two numbers of one dtype, a "scalar" or "python" one."""
    def check(self, condition: Traced, why: str) -> None:
        """Where the bool is false when the program runs, CheckFailed is raised."""
    def define(self, value: Traced, low: int | None, limit: int | Traced | None) -> Traced:
        """An int that data decide as an expression; checked to be in [low, limit)."""
    def as_line(self, size: Any, symbol: Any) -> tuple[int, Any] | None:
        """(a, b) where the size is a * symbol + b of a constant a >= 1, as far as large ones tell."""
    specialized: list[tuple[Any, ...]]
    """(source, value) of Python scalars whose value was demanded; (source, values, "differs") of exponents
    for which NumPy has no way of its own, as it has for the values."""
    def as_int(self, value: Traced, dtype: str) -> Traced | None:
        """The same int of Python's as i64 or u64, which the running program checks; None where it may not."""
    def as_python(self, value: Traced) -> Traced:
        """A bool as Python's own."""
    def count(self, shape: Any) -> int | Traced:
        """How many elements an array of that shape has."""
    def is_positive(self, value: int | Traced) -> bool | None:
        """Whether it is known to be, or not; guarded where it depends on the arguments, None where on data."""
    def assume(self, condition: Any, holds: bool = True) -> int:
        """A fact that proofs may use until it is forgotten: a Traced bool that compared sizes, or
        (a, relation, b). holds=False: its contrary. Other conditions say nothing."""
    def forget(self, token: int) -> None: ...
    def sample_truth(self, value: Any) -> bool | None:
        """The truth of a number in this call where sizes alone decide it, without a guard."""
    def note_sample(self, value: Traced, condition: Traced, chosen: Any) -> None:
        """Notes what a number, which the graph makes where a condition on sizes chooses, is in this
        call; whoever demands it has the condition guarded."""
    def size_min(self, a: Any, b: Any) -> Any: ...  # of ints that may be symbols
    def size_max(self, a: Any, b: Any) -> Any: ...
    def broadcast(self, xs: Sequence[Any]) -> tuple[Any, ...]: ...  # their common shape
    def lift(self, value: Any, like: np.dtype[Any] | None = None) -> Traced:
        """A concrete number, NumPy scalar or ndarray as an operand of this graph (Traced values
        pass through).
        """
    def note_break(self, reason: str) -> None:
        """Records a break at the user's current line (raises under fullgraph) and flushes."""
    def note_effect(self, reason: str) -> None:
        """Records that Python must run on every call (raises under fullgraph); does not flush."""
    def flush(self) -> None: ...
    on_break: Callable[[str], BaseException] | None  # makes what is raised instead of the first break
    code: CodeType | None  # the function's own: breaks tell its line
    constant: Callable[[np.ndarray], Any] | None  # makes an input of an array that never changes
    # Raised where the value of an unbacked size is needed; args: its name, file, line, who needs it.
    on_force: type[BaseException] | None
    last_storage: int  # the serial number of the newest storage
    seconds: float  # of this thread, in the programs of the call
    useful: int  # of the flushes, those until the last that had more than little work
    quiet: int  # flags of which the errstate around what is traced now wants to hear nothing
    is_inexact: bool  # results of the graphs run so far may have other bits than NumPy's
    nodes: int  # of the graph that is pending
    leaves_open: bool  # what a comparison of sizes says is the program's to find out
    is_infeasible: bool  # in an arm that the sizes of this call do not take: they decide nothing
    is_dry: bool  # programs are compiled and not run
    rent: float  # what part of a build's price a piece between breaks has to have run for, before it is built
    plain: float  # seconds that NumPy may take for the graphs run so far
    price: float  # seconds that a compiler may take for them
    unbuilt: float  # for those of them that were interpreted instead
    def undo(self) -> bool:
        """What the runs of this call wrote into arrays of its caller is taken back; False when it
        cannot be, or something else has happened."""
    # --- graph building for the NumPy surface. Operands: Traced, or concrete values (lifted).
    # No promotion: casts are explicit. ---
    # pointwise, math, composite, where; operands of one dtype
    def apply(self, op: str, *args: Any) -> Traced: ...
    def cast(self, x: Any, dtype: Any) -> Traced: ...
    # exactly `ufunc(*args, **kwargs)`, promotion included
    # folded axes go; result kind array
    def reduce(self, op: str, x: Any, axes: Sequence[int]) -> Traced: ...
    def scan(self, op: str, x: Any, axis: int) -> Traced: ...
    # views share the storage
    def permute(self, x: Any, axes: Sequence[int]) -> Traced: ...
    # a view where NumPy makes one, else a copy
    def reshape(self, x: Any, shape: Sequence[int]) -> Traced: ...
    def slice(
        self, x: Any, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
    ) -> Traced: ...
    # read-only view, as broadcast_to
    def expand(self, x: Any, shape: Sequence[int]) -> Traced: ...
    def diagonal(
        self, x: Any, axis1: int, axis2: int, offset: int, is_writable: bool = False
    ) -> Traced: ...
    # read-only; every run of so many neighbours along the axis, on an axis of its own behind all
    def window(self, x: Any, axis: int, size: Any) -> Traced: ...
    def copy(self, x: Any, order: str = "C") -> Traced: ...  # C, F, K
    # whether numbers may be stored in an array of that dtype, which the program checks
    def fits(self, x: Traced, dtype: Any) -> bool: ...
    # target[...] = value, broadcast: arrays are cast unsafely, numbers must fit
    def assign(self, target: Traced, value: Any) -> None: ...
    def concat(self, xs: Sequence[Any], axis: int) -> Traced: ...
    def full(
        self, shape: Sequence[int], value: Any, dtype: Any, order: str = "C", like: Any = None
    ) -> Traced: ...
    def empty(
        self, shape: Sequence[int], dtype: Any, order: str = "C", like: Any = None
    ) -> Traced: ...
    def iota(self, shape: Sequence[int], axis: int) -> Traced: ...  # int64
    def extern(
        self,
        name: str,
        key: str,
        call: Callable[..., Any],
        args: Sequence[Any],
        shape: Sequence[int],
        dtype: Any,
        positions: int = -1,
        may_fail: bool = False,
        elementwise: bool = False,
    ) -> Traced:
        """A library call: call(*operands, out) on real arrays, out C-contiguous, or, if it is
        elementwise, laid out as NumPy lays it out for these operands; it fills out and returns None, or
        returns what out is to hold: a new array that leaves the program is not copied. key: everything
        else it depends on. The same (name, key) must mean the same call. positions: the result is
        made of positions along that axis of the first operand. may_fail: as a check does, by raising
        CheckFailed.
        """
    # indices of any integers count from the end when negative; what is out of bounds fails a check,
    # or answers NotImplemented where a check is needed and there may be none
    def gather(
        self, x: Any, axes: Sequence[int], indices: Sequence[Any], plain: bool = False
    ) -> Traced:
        """The elements of x at indices along ascending axes, one index each, which broadcast
        together. plain: laid out in C order, else as NumPy lays out x[...]."""
    def scatter(
        self,
        target: Traced,
        axes: Sequence[int],
        indices: Sequence[Any],
        value: Any,
        combine: str | None = None,
        distinct: bool = False,
        inside: bool = False,
    ) -> Any:
        """Stores a value, broadcast, at the elements that gather takes; the last of several for one
        element stays, or each is combined with what is there. distinct: there is one for each.
        inside: the indices are known to be in range, and are not looked at.
        NotImplemented, too, where the target is written at once."""
    def compress(self, x: Any, mask: Any) -> Traced:
        """The elements of one axis where a mask is true; equal masks make equal sizes."""
    def may_check(self) -> bool:
        """Whether the running program may still give up: nothing has happened yet."""
    def force_shown(self) -> None:
        """The sizes in the texts of exceptions since the last call of this are numbers of the program:
        somebody has caught one."""
    def number(self, name: str, function: Any, args: tuple[Any, ...]) -> Any:
        """function(*args) of numbers as a number of Python's, for the rows of math.def; with
        checks where Python raises. NotImplemented where the graph has no such call, or when it is
        too late for a check."""
    # a 0-d result NumPy returns as a scalar
    def as_scalar(self, x: Traced) -> Traced: ...
    def recall(
        self,
        sources: list[Any],
        checks: list[Any],
        inputs: list[Any],
        pieces: list[Any],
        graph: str | None,
        relations: list[Any],
        bound: tuple[Any, ...],
    ) -> Specialization | None:
        """The specialisation whose `saved` this is, where its guards hold for bound arguments; else None,
        and nothing is compiled; the tracer has been told of the symbols. Raises ValueError for what `saved` never gives."""
    # may be set; a flush or finish that fails to compile leaves the graph pending, so that
    # another backend can be tried
    backend: str
    # NumPy's bits (1 divide, 2 overflow, 4 underflow, 8 invalid) that kernels of this call
    # raised and somebody may still hear of
    float_flags: int
    def finish(
        self,
        sources: list[tuple[Any, ...]],
        checks: list[tuple[Any, ...]],
        result: Any,
        reached: dict[int, int] | None = None,
    ) -> tuple[Any, Specialization | str | None]:
        """Ends the call: compiles and runs what is pending and returns (the real result,
        specialization, or what cannot be made again, or None when Python is needed).
        `result` may nest Traced values in tuple, list, dict, namedtuple; a tuple whose class has
        __cinductor_call__ is what calling its first item with the others returns; sources as below; objects reached by a source are returned as themselves:
        reached maps id(object) -> source of the objects (not Traced) in `result` that a source
        reaches. Any other leaf is an immutable constant."""

def view(
    array: np.ndarray,
    dtype: np.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    is_writable: bool,
) -> np.ndarray:
    """A part of an array's memory; nobody checks that it has it."""

def paddings(array: np.ndarray) -> tuple[int, ...]:
    """Per axis the elements between the end of all that is inside of it and its next step; -1 where
    that says nothing (steps are dense in those of the axis inside, or overlap; a stride of 0)."""

def are_placed_alike(a: set[Any], b: set[Any]) -> bool:
    """Whether they hold the same objects, and give them in the same order whatever is added to both."""

def reached(
    roots: list[Any],
    wanted: list[Any],
    closed: dict[int, Any],
    atoms: frozenset[type],
    modules: frozenset[str],
    opened: frozenset[type],
) -> set[int]:
    """The ids of the wanted objects among the roots and in what they hold; all ids if an object holds
    others that its class does not show, or there are too many to look through.

    closed: ids of objects that are not looked into. atoms: classes of C whose objects hold nothing. modules: those of C classes whose tp_traverse shows all, besides Python's builtins. opened:
    the package's own classes that are looked into.
    """

def traced_in(
    roots: list[Any],
    closed: dict[int, Any],
    atoms: frozenset[type],
    modules: frozenset[str],
    opened: frozenset[type],
) -> list[Traced] | None:
    """The traced values among the roots and in what they hold, each as often as it is met; None where
    `reached`, which has the same arguments, gives all.
    """

def exchange_items(items: set[Any] | frozenset[Any], new: list[Any]) -> None:
    """Each item of a set becomes an equal one, given in the order of iteration, in its place.

    Raises ValueError where there are not as many, or one hashes unlike what it stands for.
    """

PADDING_AXIS: int  # the axis PADDING_AXIS - k of a symbol's source is the padding of axis k

def set_surface(
    functions: dict[Any, Callable[..., Any]], methods: dict[str, Callable[..., Any]]
) -> tuple[dict[Any, Any] | None, dict[str, Any] | None]:
    """Gives the tables in force before. functions: NumPy function -> handler(tracer, args, kwargs) used by __array_function__
    (NotImplemented or missing: a break, then NumPy's own function runs on
    concrete values); methods: ndarray method name -> handler(tracer, self, args, kwargs)."""

@final
class Program:
    """A compiled graph. Read-only."""

    kernels: int
    externs: int
    backend: str  # "device:backend" it was compiled for
    why_host: str | None
    approximate: list[str]
    writes: bool
    is_symbolic: bool
    option_values: dict[str, Any]
    guards: tuple[tuple[str, str, str, int], ...]  # relation, left, right and line of what the graph assumes of sizes
    recordings: list[dict[str, Any]] | None
    """Of each part that a device could record: `launches` in it, `device`, runs that were `replayed` and `launched`, `recordings`
    that there are now, `why_not` it is recorded, or None. None without the option graphs."""

    is_built: bool  # False until `build` has compiled it
    def build(self) -> dict[str, Any]:
        """Compile a program that `Tracer.on_build` was called with: the numbers of the compile."""
    def text(self, level: str) -> str:
        """ "graph", "loops", "kernels", "procs", "wrapper", "json" or "source"."""
    def observe(self, observer: Callable[[str, int, int, int], object] | None) -> bool:
        """Has the observer called behind each kernel ("k") and library call ("e") of later runs, with
        its number, when it began and when it ended (time.perf_counter_ns); None: no more. False:
        a device with memory of its own, which cannot be observed. Float warnings are not looked at
        meanwhile."""
    def library_calls(self) -> list[tuple[Any, ...]]:
        """What its library calls call, but for products: of each what `add_extern` takes."""
    def wrapper_names(self) -> dict[str, Any]:
        """What the text of the level "wrapper" calls: helpers, kernels, library calls."""

@final
class Specialization:
    """Guards, a program and the result's structure.

    A source says how a call finds a value; sources are numbered in order and refer to earlier ones:
      ("arg", i)  ("global", dict, name)  ("cell", cell[, name])  ("attr", source, name)  ("item",
      source, key)  ("closure", source, number, name)  a variable around a function
      ("const", object)
    Checks are tuples (source, kind, …), evaluated cheapest first, what holds a thing before the
    thing; then what the tracer's shape guards say:
      (s, "is", object)   (s, "type", type)   (s, "equals", value)  same type and equal, NaN
      equal to itself, 0.0 and -0.0 differ
      (s, "function", code, globals, has)  a Python function of that code and those globals; has: 1
      where it has defaults, plus 2 where it has defaults of keywords
      (s, "array", dtype, shape, strides, writable, aligned)  exact ndarray; strides of axes of
      size <= 1 and of empty arrays not looked at; sizes and strides that vary are texts ("s0",
      "8*s0") of symbols that the tracer was told of
      (s, "differs", (value, …))  equal to none of them
      (s, "size", text)  exactly an int with that value
      (s, "float") (s, "complex") (s, "int")  exactly that Python type
      (s, "word")  exactly an int, of [0, 2**64)
      (s, "len", type, n)  exact container type and length      (s, "keys", type, (k, …))  exact
      dict type and keys in order
      (s, "same", r)  the very object of source r (an array given twice)      (s, "other", r)  not
      that object
      ("absent", dict, name)  the dict has no such key (a global that would hide a builtin)
      ("apart", (s, …))  no two of these are one object
      ("disjoint", (s, …), (s, …))  the address ranges of written arrays (first) overlap no other
      array of either group
    """

    program: Program
    guards: list[str]  # in the user's words
    recipe: list[str]  # how the result is made, a line for each piece
    # What Tracer.recall makes it of again in a later process: sources, checks, inputs, pieces of the
    # result, the graph as a text, symbols (what `Tracer.symbol` takes), what was decided of them. None:
    # only this process can.
    saved: tuple[list[Any], list[Any], list[Any], list[Any], str | None, list[Any], list[Any], list[Any]] | None
    hits: int
    why_numpy: str | None  # why the function itself answers its calls
    is_inexact: bool  # its results may have other bits than NumPy's
    is_trying: bool  # its calls are timed, to know which way is quicker
    # Of its race: plans (name, why it takes no part or None), and of each class of sizes that has been met its
    # number, the winner or None, calls, and by plan the calls that were timed and their median in nanoseconds.
    race_rows: tuple[list[tuple[str, str | None]], list[tuple[int, str | None, int, list[tuple[int, int]]]]] | None
    def ask_for_race(self, asker: Callable[[Specialization], object], /) -> None:
        """It is called once, in the first call that fits."""
    def race(
        self,
        plans: list[tuple[str, Program | None, str | None]],
        known: dict[int, str],
        done: Callable[[Specialization, int], object],
        /,
    ) -> None:
        """Calls are answered by one plan after another, and by the quickest in the end. plans: the program's own
        first; name, program, why it takes no part or None. known: who has won before, by classes of sizes. done:
        called with the specialisation and a class that is decided.
        """
    def compare(self, seconds: float, /) -> None:
        """Time the first calls of a function that NumPy has answered, in so many seconds at best (0: unknown), and have NumPy
        answer where it is faster.
        """
    def try_numpy(self) -> None:
        """Has the first calls timed in NumPy too: the quicker way answers from then on."""
    def doubt(self) -> None:
        """The same, of long calls too: it is interpreted, for there is no compiler."""
    def why_not(self, args: tuple[Any, ...]) -> str | None:
        """None when every guard holds for these bound arguments, else the failing guard in the
        user's words.
        """
    def is_other_kind(self, args: tuple[Any, ...]) -> bool:
        """Whether these bound arguments differ in more than sizes and numbers: in a class, a dtype, a
        rank, a text.
        """

@final
class Account:
    """Calls of one kind that no specialization fits, and the time that they have taken in the original function. It runs them
    without the miss until `spent` has reached `due`, sizes are larger than before, or, while a build is awaited, other sizes.
    """

    spent: float  # seconds, as all, since the latest build
    total: float
    due: float
    best: float  # of one call; 0: none
    price: float  # of the latest build
    calls: int
    builds: int  # that were queued
    varies: bool  # sizes or ints have differed
    is_awaited: bool  # a build is queued
    program: Program | None  # of a capture, unbuilt at first
    why: str | None  # what the next step waits for
    def note(self, seconds: float, /) -> None: ...

class CompiledFunction:
    """The callable that `compile` returns. Vectorcall: binds arguments to the parameters, tries
    specializations (most recent first) by guards in C, runs the program;
    when none fits calls miss(self, bound_args, args, kwargs), and looks again for MISSING. A descriptor: binds like a function.
    parameters: names in order; kinds: inspect's kinds as ints; defaults: values or MISSING.
    renew(self) gives these three again, and forgets what was compiled, when the function has got
    another code or other defaults. Has a __dict__ and weakrefs."""

    @property
    def __code__(self) -> Any: ...
    @property
    def __defaults__(self) -> Any: ...
    @property
    def __kwdefaults__(self) -> Any: ...
    def __new__(
        cls,
        fn: Callable[..., Any],
        parameters: tuple[str, ...],
        kinds: tuple[int, ...],
        defaults: tuple[Any, ...],
        miss: Callable[..., Any],
        renew: Callable[..., Any] = ...,
    ) -> CompiledFunction: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    fn: Callable[..., Any]
    parameters: tuple[str, ...]
    specializations: tuple[Specialization, ...]
    # 0 default, 1 run fn itself, 2 no new specialization: run fn, 3: raise
    stance: int
    calls: int
    failed_checks: int  # calls that fn answered, for a check of the program failed
    plain_calls: int  # other calls that fn answered without the miss: known ones, by a stance, in a trial
    is_counted: bool  # in `stats`: then it tells its job when it ends, `miss.__self__.retire(self)`
    def _repr_html_(self) -> str: ...
    def note_twin(self, twin: Any, args: tuple[Any, ...]) -> None: ...
    def note_driven(self, driver: Any, fix: Any, key: Any) -> None:
        """driver answers calls like this key, mend(error) puts the traceback of what it raises
        right; None: no call any more.
        """
    def note_plain(self, key: tuple[Any, ...]) -> None: ...
    def account(self, bound: tuple[Any, ...]) -> Account:
        """The account of calls of this kind: classes, dtypes, ranks, flags; not sizes and ints."""
    def accounts(self) -> list[Account]:
        """All accounts, the one used latest first."""
    def add(self, specialization: Specialization) -> None: ...
    def drop(self, specialization: Specialization) -> None: ...
    def clear(self) -> None: ...

MISSING: Any

def propose_stance(stance: int, number: int, /) -> int: ...
def end_proposal(thread: int, number: int, holds: bool, /) -> None: ...
def enter_stance(stance: int, /) -> None: ...  # this context's
def leave_stance() -> None: ...
def set_exact(is_exact: bool, /) -> None: ...  # whether the process's numerics are "exact"
def is_compiling() -> bool: ...
def set_locals(frame: FrameType, values: dict[str, Any]) -> None: ...

# (name, type, default, allowed, environment variable, doc) of options.def
def options() -> list[tuple[str, str, Any, str, str, str]]: ...

# (name, value on processors, value on cards, doc) of choices.def
def choices() -> list[tuple[str, int, int, str]]: ...

# whether kernels know a dtype
def has_dtype(dtype: np.dtype[Any]) -> bool: ...

# (name, kind, arity, {dtype: supported}) of ops.def
# (name, kind, operands or -1, dtype -> whether it can, why no pass of the user's ever gets it, or None)
def ops() -> list[tuple[str, str, int, dict[str, bool], str | None]]: ...

# (device, name, whether it is built in)
def backend_names() -> list[tuple[str, str, bool]]: ...
# Architecture levels of this machine's family, from the lowest on, and whether this CPU has each.
def arch_levels() -> list[tuple[str, bool]]: ...
# (device, name, doc, why not available or None)
def backends() -> list[tuple[str, str, str, str | None]]: ...

# (name, character of the dtype, how its bits are had, whose algorithm vectors have or "")
def functions() -> list[tuple[str, str, str, str]]: ...
# Compares the vectors with NumPy's loop, 512 operands a block: from the pattern `first` on every `step`th,
# or random ones (step 0). -> (blocks that differ, the pattern of an operand in the first of them)
def check_function(name: str, char: str, first: int, step: int, blocks: int) -> tuple[int, int]: ...
# Keeps the result of a proof in the disk cache: operands compared, and whether all had NumPy's bits.
def note_proof(name: str, char: str, points: int, is_equal: bool) -> None: ...
def cache_info() -> Any: ...
def cache_stores() -> int: ...
def cache_clear() -> int: ...
def ufuncs() -> list[np.ufunc]: ...  # those that are ops
def is_a(value: Any, classes: Any) -> bool:
    """isinstance by the object's own class: its `__class__`, which may be code of the user's, is not asked
    for; a traced value has that of what it stands for.
    """
def children(node: ast.AST) -> list[ast.AST]: ...  # in its fields, in order
def walk(node: ast.AST) -> list[ast.AST]: ...  # it and all below it, those nearer to it first
def placed(new: _Node, old: ast.AST) -> _Node: ...  # the new node, at the old one's place
def place_of(node: ast.AST) -> dict[str, Any]: ...  # where it stands, as keywords
def sha256(data: bytes) -> str: ...  # in hexadecimal
def graph_inputs(text: str) -> list[tuple[str, np.dtype[Any], tuple[int, ...], tuple[int, ...]]]:
    """Kind ("array", "scalar", "python"), dtype, shape and strides in elements of each input of a graph's
    text; sizes that vary as in the call that was captured."""
def read_call(key: str) -> str | None: ...  # what was kept under a key of the disk cache
def has_call(key: str) -> bool: ...
def write_call(key: str, text: str) -> None: ...
def cache_directory() -> str: ...  # "" without a cache
def set_cache_directory(path: str | None) -> None: ...
@final
class UserCode:
    """A function that the user has written in C."""

    def run(
        self, arrays: tuple[Any, ...], sizes: tuple[int, ...], units: int, threads: int, /
    ) -> None:
        """Runs that many units of its grid."""

def user_code(source: str, options: dict[str, Any], device: str, /) -> UserCode:
    """Its function `cinductor_kernel`, compiled and kept as kernels are."""

def add_extern(
    name: str,
    key: str,
    call: Callable[..., Any],
    position_axis: int = 0,
    may_fail: bool = False,
    parts: tuple[int, ...] = (),
    /,
) -> None:
    """A library call that graphs read from a text may have by its name and key. One that is known stays."""

def set_passes(rows: tuple[tuple[Any, ...], ...], key: str, /) -> None:
    """Passes of compiles from now on: (name, after, function of text) or (name, after, pattern, replacement);
    the key tells them from others."""

def set_pass_observer(
    observer: Callable[[str, str, float], object] | None, /
) -> None:
    """Called behind each pass with its name, the graph's text and seconds; with "" before all of them."""

def passes() -> list[tuple[str, bool, str, str]]: ...  # name, cannot be left out, doc, level
def check_pattern(pattern: str, replacement: str, /) -> None: ...
def run_program(program: Program, inputs: Sequence[Any], /) -> list[Any]: ...
def recompile(
    program: Program, options: dict[str, Any], backend: str, rows: tuple[tuple[Any, ...], ...], /
) -> Program:
    """The graph as captured by other options; rows of passes come before those of the program."""

def plan(program: Program, options: dict[str, Any], /) -> tuple[str, list[tuple[str, str, str]], int]:
    """Of the graph by these options, which is not built: a digest that tells the plan from another, its
    alternatives (kind, option or threshold, value), and the bytes that it holds at its worst.
    """

def has_warned_of_compiler() -> bool:
    """True if a warning says that a piece is interpreted, because its compiler failed."""

def set_beside(number: int, /) -> None:
    """0: nothing is built beside calls; 1: something is, and no call of a race is timed; 2: it shall stop."""

def set_race_clock(clock: Callable[[str, int], int] | None, /) -> None:
    """For tests: in a race, a call by the plan of a name, of a class of sizes, has taken so many nanoseconds."""

def aten_call(functions: Any, name: str, overload: str, arguments: list[tuple[int, Any]], nresults: int) -> Any:
    """A call of an ATen operator by torch's dispatcher, without Python.

    Parameters
    ----------
    functions : capsule
        What torch_functions() returned.
    name, overload : str
        The operator, as `aten::topk` and ``.
    arguments : list of (int, object)
        A kind and a value for each: (0, 64 bits), (1, operand), (2, operand that is an int), (3, an optional argument
        that is given), (4, list).
    nresults : int

    Returns
    -------
    capsule or None
        None if torch has no such dispatcher, or if the call has too many arguments or results.
    """

def torch_functions(
    library: str, exchange: Any, types: tuple[type, ...], is_conj: Any, is_neg: Any, wrap: Any, /
) -> Any:
    """Functions of the torch that is loaded, which TensorProgram calls; None where that torch lacks one."""

class TensorProgram:
    """A program that is called with a list of tensors, which it empties.

    Parameters
    ----------
    program : Program
    functions : object
        What torch_functions() returned.
    inputs : list
        For each input of the program the number of an argument, or a tensor of the program's own.
    returns : list of tuple
        ("result", index), ("part", index, sizes, strides, offset), ("input", index), ("size", size) or
        ("constant", value).
    eager : callable
        It is called with the list if the program is not for its values, or if a check of it fails.
    """

    program: Program
    def __new__(
        cls, program: Program, functions: Any, inputs: list[Any], returns: list[tuple[Any, ...]], eager: Any, /
    ) -> TensorProgram: ...
    def __call__(self, args: list[Any], /) -> list[Any]: ...

@final
class Builder:
    """A graph that is being made. Values are named by numbers; types, symbols and sizes are written as in docs/ir.md."""

    def __new__(cls, name: str) -> Builder: ...
    def symbol(self, text: str, /) -> int: ...
    def input(self, type: str, /) -> int: ...
    def node(
        self,
        op: str,
        args: Sequence[int],
        type: str | None = None,
        *,
        axes: Sequence[int] = ...,
        starts: Sequence[int | str] = ...,
        steps: Sequence[int | str] = ...,
        combine: str | None = ...,
        distinct: bool = ...,
        name: str | None = ...,
        key: str = ...,
        file: str | None = ...,
        line: int = ...,
    ) -> int: ...
    def const(self, type: str, value: complex, /) -> int: ...
    def expr(self, size: int | str, /) -> int: ...
    def check(self, condition: int, why: str, file: str | None = ..., line: int = ..., /) -> int: ...
    def define(self, value: int, symbol: str, file: str | None = ..., line: int = ..., /) -> int: ...
    def write(self, input: int, value: int, /) -> int: ...
    def results(self, values: Sequence[int], /) -> int: ...
    def block(self) -> int: ...
    def enter(self, block: int, /) -> int: ...
    def param(self, type: str, /) -> int: ...
    def region(
        self,
        op: str,
        args: Sequence[int],
        blocks: Sequence[int],
        trip: int | str = ...,
        name: str = ...,
        file: str | None = ...,
        line: int = ...,
        /,
    ) -> int: ...
    def position(self) -> tuple[int, int, int]: ...
    def rewind(self, position: tuple[int, int, int], /) -> None: ...
    def text(self) -> str: ...
    def type(self, value: int, /) -> str: ...

def compile_graph(
    graph: Builder | str, *, options: dict[str, Any] = ..., device: str = "cpu", backend: str = ""
) -> Program:
    """Compile a graph without running it. A Builder is spent by this."""

def compile_text(
    text: str,
    inputs: Sequence[Any],
    *,
    options: dict[str, Any],
    device: str = "cpu",
    backend: str = "",
    runs: int = 0,
    level: str = "",
    given: str = "",
) -> tuple[Any, ...]:
    """(results, program): parses a graph, compiles and runs it on real arrays; for tests and tools.

    runs: it runs as often again, and the least of the seconds that takes is a third item.
    level: "loops", "kernels", "procs" or "source", which is read from the text `given` and not made."""

# --- arrays of a device: ndarrays whose data pointer is an address there (see arrays/array.py) ---
# a copy in the device's memory
def device_array(array: np.ndarray, device: str) -> np.ndarray: ...
def device_numpy(array: np.ndarray) -> np.ndarray: ...  # a copy in the host's
# (bytes, where the first element lies, when they are there); None: there are no such copies
def device_start_copy(array: np.ndarray) -> tuple[np.ndarray, int, Any] | None: ...
def device_update(
    array: np.ndarray, copy: np.ndarray
) -> None: ...  # what device_numpy gave goes back
def is_device_array(array: Any) -> bool: ...
def device_of(array: Any) -> tuple[str, int]: ...
def device_count(name: str) -> int: ...
def device_open(name: str) -> None: ...  # what its first use would wait for
def device_properties(device: str) -> tuple[str, int, int, int, bytes]: ...  # name, bytes, capability, units, identity
def device_shared(like: np.ndarray, device: str) -> np.ndarray: ...
def share_name(array: np.ndarray) -> tuple[bytes, int]: ...  # by which others open its block, its offset there
def share_open(device: str, name: bytes) -> tuple[Any, int, int]: ...  # what closes it, address, bytes
def register_device(device: Any, compilers: tuple[Any, ...]) -> str: ...
def toolkit() -> Any: ...  # a capsule

class DeviceArray:
    """What has an array of a device's memory."""

    _handle: np.ndarray
    def __new__(cls, handle: np.ndarray) -> DeviceArray: ...

def set_array_type(type: type, leave: Any) -> None: ...
@final
class DeviceMemory:
    """What owns an array's memory on a device."""

@final
class Method:
    """A method of a traced array, bound to it."""

    __name__: str
    __self__: Traced
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
def device_synchronize(device: str) -> None: ...
# one over memory that the owner has; like: of its dtype, shape and strides
def device_over(
    owner: Any, device: str, address: int, like: np.ndarray, stream: int | None
) -> np.ndarray: ...
def dlpack_give(array: np.ndarray, stream: int | None, is_versioned: bool) -> Any: ...  # a capsule
def dlpack_take(capsule: Any) -> np.ndarray: ...
def dlpack_device(array: np.ndarray) -> tuple[int, int]: ...
def memory_use(device: str) -> dict[str, int]: ...
def memory_forget_peak(device: str) -> None: ...
def memory_bound(device: str, limit: int, keep: int) -> None: ...  # keep -1: as it was
def memory_give_back(device: str) -> None: ...

@final
class Stream:
    @property
    def device(self) -> str: ...
    @property
    def handle(self) -> int: ...
    def synchronize(self) -> None: ...
    def record(self, event: Event) -> None: ...
    def wait(self, event: Event) -> None: ...

@final
class Event:
    def synchronize(self) -> None: ...
    def elapsed(self, later: Event) -> float: ...

def stream_open(device: str, handle: int | None) -> Stream: ...
def event_open(device: str) -> Event: ...

stream_in_force: ContextVar[Stream | None]
