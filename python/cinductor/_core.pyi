"""The compiler in C, and the Python objects of capture and replay.

Capture is lazy tracing. A `Tracer` exists for one call of one function. Arrays of the call become `Traced` values;
operations on them append nodes to the tracer's pending graph. A flush compiles and runs the pending graph, and makes
every live value real; tracing then continues in a new graph. If a function has not flushed before it returns, and has
had no outside effect, it gets a `Specialization`: guards, one program, and the recipe of its result, which are
replayed without Python.
"""

# tools/core_docs.py makes the signatures and docstrings of the C module from this file. `...` as a default means that
# the argument may be omitted and that no value of Python says the same.

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, TypeGuard, TypeVar, final, overload

import numpy as np

_Node = TypeVar("_Node", bound=ast.AST)
_Value = TypeVar("_Value")

VERSION: str
"""The version of the package, from csrc/base/version.h."""

class Error(Exception):
    """The base of the package's exceptions; never raised itself."""

class RecompileError(Error, RuntimeError):
    """Raised if no program matches a call under `set_stance("fail_on_recompile")`.

    `set_stance("default")` compiles one.
    """

class CinductorError(Error):
    """The base of the errors that the compiler reports; never raised itself."""

class InternalError(CinductorError):
    """Raised for an internal error of cinductor; please report it.

    In a call NumPy runs instead, with a warning, unless `fullgraph=True`. `cinductor.disable` leaves the function out.
    """

class PassFailed(CinductorError):
    """Raised if a pass of `register_pass`, `register_pattern` or `register_template` raises or breaks the graph.

    Also raised if `check_passes` finds a pass that changes a bit. `options={"skip_passes": name}` leaves the pass out.
    """

class Unsupported(CinductorError):
    """Raised if `fullgraph=True`, `export`, `warm` or an array of a device meets code that cannot be compiled.

    `fullgraph=False` runs such a line in Python, between compiled pieces. `explain` shows all of these lines.
    """

class LoweringError(CinductorError):
    """Raised if the graph has an operation that no backend can compute.

    In a call NumPy runs instead, with a warning, unless `fullgraph=True`.
    """

class CompilerNotFound(CinductorError):
    """Raised if there is no C compiler and the disk cache knows none.

    Install gcc or clang, or set CC to a C compiler. In a call the interpreter or NumPy runs instead, with a warning.
    """

class CompileError(CinductorError):
    """Raised if a C or CUDA compiler refuses the source of a kernel, or if the kernel cannot be loaded.

    CC selects another C compiler; `CINDUCTOR_DUMP=source` prints the source. In a call the interpreter or NumPy runs
    instead, with a warning, unless `fullgraph=True`.

    Attributes
    ----------
    cmd : str
        The command line of the compiler.
    stderr : str
        Its messages.
    source : str or None
        The path of the refused source.
    """

    cmd: str
    """The command line of the compiler."""
    stderr: str
    """The messages of the compiler."""
    source: str | None
    """The path of the refused source, or None."""

class NoFolder(CinductorError):
    """Raised if no folder can be written to and loaded from.

    Free some space, or set CINDUCTOR_CACHE_DIR to a folder of your own.
    """

class DeviceError(CinductorError):
    """Raised if the requested device is unavailable or reports an error; `device="cpu"` needs none."""

class FasterOnHost(CinductorError):
    """Raised inside a compile for a device if the program would run faster on the CPU; it never leaves a call."""

class PromiseBroken(CinductorError):
    """Raised if a run-time check of a compiled program fails: `track_memory`, or an option that ends in `_asserts`.

    The message names the buffer, the step of the program and the user's line. `explain` shows the program's steps.
    """

class CheckFailed(BaseException):
    """Raised if a check of a running program fails; the original function then runs, so it never leaves a call."""

@final
class Traced:
    """A value being traced: a storage and a view of it.

    `kind` is "array" (an ndarray), "scalar" (a NumPy scalar) or "python" (a float, complex or int). Reads are of the
    storage's current version; writes (`x[...] = v`, `x += v`, `out=`) make a new one.

    Operators, comparisons, indexing, ufuncs, NumPy's functions (by the tables of `set_surface`), attributes and methods
    of ndarrays work as on the real value, and so does `isinstance`. If code needs the real value (bool, int, iteration
    over data, str, `__array__`, the buffer protocol, pickling), the tracer breaks: it records the reason and the user's
    line, flushes, and continues with the real value. A Python number is guarded to have this value instead.
    """

    kind: str
    """The kind of the real value: "array", "scalar" or "python"."""
    tracer: Tracer
    """The tracer of the call."""
    is_in_order: bool
    """True if the array is C-contiguous. Sizes on which this depends are guarded."""
    is_view_of_part: bool
    """True for a view into the real or imaginary parts of complex numbers, except `real` and `imag` themselves."""
    is_dense: bool
    """True if the elements fill a contiguous block in forward order, for some order of the axes."""
    is_readonly: bool
    """True if NumPy raises ValueError for a write to this array."""
    warns_of_writes: bool
    """True if NumPy warns of the first write to this array, a result of `broadcast_arrays`."""
    shape: tuple[int, ...]
    """The sizes as in NumPy; a symbolic one is a Traced int. May be set, as in NumPy."""
    dtype: np.dtype[Any]
    """The dtype of the elements."""
    ndim: int
    """The number of axes."""
    offset: Any
    """The offset of a view in bytes from the start of its memory, 0 for a whole array."""
    is_fixed: bool
    """True for an int that is an expression of the arguments' sizes and ints alone."""
    is_c_order: bool
    """True if the last axis is the innermost in memory, unless the order makes no difference."""
    size: Any
    """The number of elements, an int or a Traced int."""
    strides: tuple[Any, ...]
    """The strides in bytes as in NumPy; a symbolic one is a Traced int."""
    itemsize: int
    """The size of one element in bytes."""
    nbytes: Any
    """The size of all elements in bytes, an int or a Traced int."""
    T: Traced
    """The transposed view; of a number, the number."""
    mT: Traced
    """The view with the last two axes exchanged. Raises ValueError for fewer than two axes."""
    real: Any
    """The real part, a view as in NumPy."""
    imag: Any
    """The imaginary part, a view as in NumPy."""
    flags: Any
    """NumPy's flags. Sizes on which contiguity depends are guarded."""
    flags_now: Any
    """The flags in this call, without guards, for operations whose result does not depend on contiguity."""
    storage: int
    """The number of the storage, for comparisons."""
    version: int
    """The number of the storage's current version."""
    is_whole: bool
    """True if the value is not a view."""
    whole: Traced
    """The whole array of the memory that this view is in."""
    is_fresh: bool
    """True if the array was made in this call and is not a view, so that no earlier object shares its memory."""
    is_expression: bool
    """True for an int that is an expression of sizes and loop variables."""
    strong: Traced | None
    """For a number whose class the program decides (a tagged number): the bool that is false if it is Python's number
    of the dtype `weak`. Otherwise None."""
    weak: np.dtype[Any] | None
    """For a tagged number: the dtype of Python's number. Otherwise None."""
    def materialise(self) -> Any:
        """Return the real value: the argument itself, or an ndarray, a NumPy scalar or a Python number.

        Flushes if the value is pending, without recording a break.
        """
    def known(self) -> Any:
        """Return the real value for inspection only, or None if there is none yet or the value is a view. Of an array of a
        device it is a copy on the host.
        """
    def prepare(self) -> None:
        """Give the value a node of the open block."""
    def is_same(self, other: Any, /) -> bool:
        """Return True if the other is the same view of the same memory, or the same symbolic expression."""
    def origin(self) -> int:
        """Return a number that all values have of which `is_same` is true, and others may have."""
    def as_data(self) -> Traced:
        """Return an int that is only known at run time as a value of the program; other values as they are."""
    def detached(self) -> Traced:
        """Return the elements of a view as an array that owns its memory, without a copy if they are contiguous."""
    def fitted(self, like: Traced, /) -> Traced | None:
        """Return the array with its sizes written as those of `like`, or None unless they are known to be equal."""
    def set_version(self, value: Traced, /) -> None:
        """Make the value the current version of the memory of this array, which is not a view."""
    def shares_storage(self, other: Any, /) -> bool:
        """Return True if the other is a Traced value of the same memory."""
    def __getitem__(self, key: Any, /) -> Any:
        """Return an element, a view or a copy, as NumPy does."""
    def __setitem__(self, key: Any, value: Any, /) -> None:
        """Write to a part of the array."""
    def __len__(self) -> int:
        """Return the number of items; a symbolic one is guarded."""
    def __iter__(self) -> Any:
        """Return an iterator over the items."""
    def __index__(self) -> int:
        """Return the value of an int, which is guarded, or break."""
    def __int__(self) -> int:
        """Return the real value as an int. See `__index__`."""
    def __float__(self) -> float:
        """Break, and return the real value as a float."""
    def __le__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...
    def __rmod__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __rfloordiv__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any:
        """Compare elements as NumPy does, or sizes."""
    def __gt__(self, other: Any, /) -> Any:
        """Compare elements as NumPy does, or sizes."""
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Break, and return the real value as an ndarray."""
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, /, *args: Any, **kwargs: Any) -> Any:
        """Append the nodes of a ufunc to the pending graph, or break and let NumPy compute it."""
    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> Any:
        """Call the handler of a NumPy function, or break and let NumPy compute it."""
    def __complex__(self) -> complex:
        """Break, and return the real value as a complex number."""
    def __copy__(self) -> Any:
        """Return a copy of an array; of a number, the number."""
    def __deepcopy__(self, memo: Any, /) -> Any:
        """Return a copy of an array; of a number, the number."""
    def __format__(self, spec: str, /) -> str:
        """Break, and format the real value."""
    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Break, and pickle or copy the real value."""

@final
class Break:
    """A place where Python had to run uncaptured code, and why. Read-only."""

    reason: str
    """The operation that Python had to run."""
    file: str
    """The file of the user's line."""
    line: int
    """The user's line."""
    own_line: int
    """The line of the compiled function from which this was reached, or 0."""
    is_inner: bool
    """True if it happened in a function that this line calls."""
    is_late: bool
    """True if no check was possible any more, because of an earlier break or effect."""

class RegionBreak(BaseException):
    """Raised if a loop or branch cannot be captured as a region, with the arguments (reason, file, line)."""

class SyntaxVisitor:
    """The base of visitors of syntax trees: `_methods` of a class is a dict of the methods that it has found for classes of nodes."""

    def visit(self, node: Any, /) -> Any:
        """Return what `visit_Name` etc. returns for a node of that class, for others what `generic_visit` returns."""

    def visit_parts(self, node: ast.AST, /) -> Any:
        """Visit the nodes in the fields of a node."""

    def replace_parts(self, node: ast.AST, /) -> Any:
        """Return the node, in whose fields each node is replaced by what visiting it returns; in lists by several nodes, or none."""

@final
class Hook:
    """A method of the scope object that rewritten code calls; a descriptor.

    Parameters
    ----------
    method : callable or None
        The function that usually runs. None: the method returns its argument.
    late : callable
        The function that runs if the call has fallen back to NumPy, or has had an effect.
    is_quiet : bool, optional
        True if the function runs no code of the user's: NumPy does not begin to run the rest of the call in it. Default:
        False.
    passed : frozenset of type, optional
        The classes of arguments that the method returns as they are. Default: none.

    Notes
    -----
    If NumPy has begun to run the rest of the call in the meantime, the result is made real.
    """

    def __new__(cls, method: Callable[..., Any] | None, late: Callable[..., Any], is_quiet: bool = ..., passed: frozenset[Any] = ..., /) -> Hook: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call one of the two functions with these arguments."""

@final
class Paced:
    """The iterator of `Tracer.paced`."""

    def __iter__(self) -> Paced:
        """Return itself."""
    def __next__(self) -> Any:
        """Count a step and return the next item."""

@final
class Mark:
    """A position in the pending graph to which capture can roll back."""

    is_valid: bool
    """True if a rollback is possible: no graph has been run since, and the same block is open."""
    work: int
    """The number of nodes built since in the open block that compute arrays or NumPy scalars."""
    is_infeasible: bool
    """True if it is in a branch that the sizes of this call do not take."""
    def unwind(self) -> None:
        """Close the blocks that were opened since."""
    def forget(self) -> None:
        """Forget the conditions that were assumed since."""
    def restore(self) -> None:
        """Roll back: close the blocks, forget the conditions, and remove the nodes and the versions of memory that were made since.

        Raises InternalError if the mark is not valid.
        """
    def forget_guards(self) -> None:
        """Forget the guards that the sizes of this call have decided since."""
    def written(self) -> list[Traced]:
        """Return the memory that existed at the mark and was written to since, as whole arrays."""
    def had(self, value: Traced, /) -> bool:
        """Return True if the value's memory existed at the mark, or is real."""
    def most(self, size: Any, /) -> Any:
        """Return an upper bound of a size in terms that existed at the mark, or None if there is none."""

@final
class Block:
    """A block of the pending graph, from which a region is made."""

    nodes: int
    """The number of nodes, including those of inner blocks."""
    work: int
    """The number of nodes that compute arrays or NumPy scalars."""
    trace: list[int]
    """A number for each node that computes something, to compare with another run of the same source."""
    is_harmless: bool
    """True if the block may be computed needlessly: its values have one element and it cannot fail."""
    has_effects: bool
    """True if it contains checks or library calls."""
    def index(self, extent: int | Traced, /) -> Traced:
        """Add the loop variable of a `for` over [0, extent) as the first parameter, and return it."""
    def last_value(self, value: Any, /) -> Any:
        """Return an int or view as it is in the last iteration of a `for`.

        None if it is not an expression of the loop variable and of values from outside.
        """
    def truths(self, condition: Traced | tuple[Block, int], count: int, /) -> list[bool] | None:
        """Return the truth of a condition in each of `count` iterations, if it depends on the loop variable alone."""
    def param(self, like: Any, kind: str = ..., /) -> Traced:
        """Add a parameter of the type of a Traced value, or of a dtype and a kind, and return it."""
    def bind(self, array: Traced, /) -> None:
        """Add a parameter that becomes the version of the memory of a whole array."""
    def result(self, value: Any, like: Any = None, /) -> None:
        """Add a result: a Traced value or (block, number). Its axes get the stride order of `like`."""
    def live_out(self, value: Traced, /) -> int:
        """Hold the current value, and return a number for it that is valid after the block is closed."""
    def value(self, number: int, /) -> Traced:
        """Return a held value, in the surrounding block into which this one was spliced."""
    def undefined(self, number: int, /) -> Traced | None:
        """Return a placeholder of a held value's type, or None if its sizes are only known inside of the block."""
    def close(self, keeps: bool = False, /) -> None:
        """Close the block. With `keeps`, the block that is opened next may use its values."""
    def reopen(self) -> None:
        """Open a closed block again; the surrounding block must be the open one."""
    def splice(self) -> None:
        """Move the nodes of a closed block into the surrounding block."""

@final
class Tracer:
    """The capture of one call of one function.

    Parameters
    ----------
    name : str
        The name of the function.
    options : dict, optional
        Values of rows of options.def; the environment and the defaults give the others.
    device, backend : str
        As in `compile`; "" is the device's first backend.
    fullgraph : str
        If not empty, a break raises Unsupported with the line, the reason and this text, instead of flushing.
    key : str, optional
        The function by which its segments are counted; the name if it is omitted.
    keep : set, optional
        Keeps the programs of segments alive; a set of the module if it is omitted.

    Raises
    ------
    ValueError, TypeError
        For a backend that does not exist, and for options with wrong values or names.
    """

    def __new__(
        cls,
        name: str,
        *,
        options: dict[str, Any] = ...,
        device: str = "cpu",
        backend: str = "",
        fullgraph: str = "",
        key: str = ...,
        keep: set[Program] = ...,
    ) -> Tracer: ...
    breaks: list[Break]
    """The breaks so far."""
    name: str
    """The name of the function."""
    fullgraph: bool
    """True if a break raises Unsupported."""
    has_fallen_back: bool
    """True if NumPy runs the rest of the call. May be set."""
    effects: int
    """The number of effects that the original function would repeat. May be set."""
    needs_python: bool
    """True after a break or an outside effect: the call gets no Specialization. May be set."""
    has_arrays: bool
    """True if an array that was met or made is still in use."""
    flushes: int
    """The number of graphs run so far."""
    user_frames_skip: tuple[str, ...]
    """Directories whose frames are not the user's. May be set."""
    last_program: Program | None
    """The program of the latest flush."""
    info: dict[str, Any]
    """Times and counts of the latest compile."""
    in_region: bool
    """True if a block is open."""
    is_full: bool
    """True if the pending graph has reached the option `node_limit`."""
    places: list[tuple[str, int]]
    """The file and line of each node of the pending graph."""
    forbids_breaks: bool
    """True if a break raises RegionBreak, as inside of a block. May be set."""
    specialized: list[tuple[Any, ...]]
    """(source, value) of Python numbers whose values were needed.

    (source, values, "differs") for exponents that NumPy computes by no special loop, as it does for the values.
    """
    on_break: Callable[[str], BaseException | None] | None
    """Called with the reason of the first break, if there was no effect, or None. May be set.

    It returns an exception that is raised instead, or None.
    """
    on_build: Callable[[Program, float, float, bool], object] | None
    """Called before a whole graph is built, or None. May be set.

    Its arguments are the unbuilt program, the seconds of NumPy and of the build, and True if the program is exact. It
    raises an exception to delay the build.
    """
    on_run: Callable[[Tracer, Program, float, Callable[[], None]], object] | None
    """Called after a run of a piece that leaves no trace, or None. May be set.

    Its arguments are the tracer, the program, the seconds of the run, and a function that runs the program again, on the same inputs, and drops the results.
    The function must not be called later.
    """
    on_flags: Callable[[], bool] | None
    """Called by `finish` before it makes the result, if a run has raised float flags, or None. May be set.

    True: what the call has changed is undone, and NumPy shall run it. `finish` then gives MISSING for its result.
    """
    on_step: Callable[[bool | None], object] | None
    """Called after each 16 steps of the capture, or None. May be set.

    A step is a call of a hook, for which its argument is True, or None if the hook runs no code of the user's; or a new traced
    value or an item of `paced`. It raises an exception if the capture has taken its time.
    """
    steps: int
    """Steps counted so far. May be set: the next call of `on_step` is at a multiple of 16."""
    user_backend: tuple[str, Callable[[str], Callable[..., tuple[Any, ...]]]] | None
    """A name and a function of a graph's text, or None. May be set.

    The function returns the function of the graph's inputs that runs the graph instead of the interpreter.
    """
    code: CodeType | None
    """The code object of the function, in which breaks have their `own_line`. May be set."""
    constant: Callable[[np.ndarray], Any] | None
    """Makes an input of an array that never changes, or None. May be set."""
    on_concretize: type[BaseException] | None
    """Raised if the value of an unbacked size is needed, with its name, file, line and the user. May be set."""
    last_storage: int
    """The serial number of the newest storage."""
    seconds: float
    """The CPU time of this thread in the programs of this call."""
    useful: int
    """The number of graphs run up to the last one above the work threshold."""
    quiet: int
    """Floating-point flags that the active errstate ignores, as in `float_flags`. May be set."""
    call: int
    """0, or while a call of a compiled function is captured from cinductor's source: twice the nanoseconds it takes, plus 1 in every other call."""
    is_inexact: bool
    """True if results of graphs run so far may differ from NumPy's in the last bits."""
    nodes: int
    """The number of nodes of the pending graph, without those inside of regions."""
    leaves_open: bool
    """True if comparisons of sizes are left to the program instead of being guarded. May be set."""
    is_infeasible: bool
    """True in a branch that the sizes of this call do not take, where they decide nothing. May be set."""
    is_dry: bool
    """True if programs are compiled and not run. May be set."""
    rent: float
    """The share of a build's price for which a segment must have run before it is built. May be set."""
    plain: float
    """The estimated seconds of the graphs run so far in NumPy."""
    price: float
    """The estimated seconds of their builds."""
    unbuilt: float
    """The part of `price` for graphs that were interpreted instead of built."""
    backend: str
    """The backend of later compiles. May be set: a graph whose compile failed is still pending."""
    float_flags: int
    """Flags raised by kernels of this call and not yet reported. May be set.

    The bits are NumPy's: 1 divide, 2 overflow, 4 underflow, 8 invalid.
    """
    raised: dict[Program, int]
    """The flags that each program has raised, in the order of their runs. May be cleared."""
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
        """Declare a size symbol of the call, and return it as a Traced int.

        Parameters
        ----------
        name : str
            Its name, as "s0".
        source, axis : int
            Where a later call finds it: the size of that axis of a source's array, the padding of axis k (axis
            `PADDING_AXIS - k`), or the value of the source's int (axis -1).
        hint : int
            The value in this call.
        low, high : int
            The range; no upper end if `high` is None.
        is_unbacked : bool
            True if the hint must decide nothing.
        """
    def close(self) -> None:
        """End an abandoned capture: its values are real from now on, or invalid."""
    def step(self) -> None:
        """Count a step of the capture; see `on_step`."""
    def paced(self, items: Iterable[Any], /) -> Iterator[Any]:
        """Iterate over items that capture handles one by one; each is a step."""
    def undefined(self, like: Any, shape: Sequence[Any], /) -> Traced:
        """Return an array of the dtype of `like` whose contents are never read.

        It has the stride order of `like` if it has as many axes, otherwise C order.
        """
    def tagged(self, number: Traced, strong: Traced | None, weak: np.dtype[Any] | None = None, /) -> Traced:
        """Return a number that is `number` if the Traced bool `strong` is true at run time, or if it is None.

        Otherwise it is Python's number of that value and of the dtype `weak`; by default the number's own class.
        """
    def varying(self, a: Any, b: Any, /) -> list[int] | None:
        """Return the axes along which two values differ in size, or None if they differ in more.

        The values are Traced or (block, number), of one dtype and stride order. An empty list means equal types.
        """
    def resolve_class(self, value: Any, /) -> None:
        """Break if the program decides the class of the number, so that its class is fixed from here on."""
    def fixed_sizes(self) -> list[tuple[tuple[str, ...], bool, str, str, int]]:
        """Return the sizes that guards fix to one number.

        Returns
        -------
        list of tuple
            (names of its symbols, True if it is a single symbol, text of the guard, file, line).
        """
    def size(self, text: str, /) -> Any:
        """Return the size, an int or Traced int, for a text of a saved call."""
    def size_text(self, size: Any, /) -> str:
        """Return the text of a size, which `size` reads."""
    def array(
        self,
        value: np.ndarray,
        source: int = -1,
        sizes: Sequence[Any] | None = None,
        paddings: Sequence[Any] | None = None,
    ) -> Traced:
        """Return the Traced value of a real array; always the same one for the same array.

        Parameters
        ----------
        value : ndarray
            The array.
        source : int
            The number of the source by which a later call finds it. -1: Python made it in this call, so that
            `needs_python` becomes true when it enters a graph.
        sizes, paddings : sequence, optional
            For each axis an int or Traced int, or None for the array's own. Paddings are in elements; strides follow
            from both.
        """
    def scalar(
        self, value: float | complex | int | np.generic, source: int, size: Any = None
    ) -> Traced:
        """Return the Traced value of a number that is known at run time: an argument or a guarded read.

        Parameters
        ----------
        value : number
            A NumPy scalar gets the kind "scalar", a Python number the kind "python".
        source : int
            As in `array`.
        size : int or Traced, optional
            The symbolic expression that an int is.
        """
    def mark(self) -> Mark:
        """Return the current position in the open block, for a rollback."""
    def block(self) -> Block:
        """Open a new block in the open one, and return it."""
    def region(
        self,
        op: str,
        blocks: tuple[Block, ...],
        entries: tuple[Traced, ...],
        kinds: tuple[str, ...],
        /,
    ) -> list[Traced]:
        """Make a "for", "while" or "if" of closed blocks.

        Parameters
        ----------
        op : str
            The operation.
        blocks : tuple of Block
            The body; condition and body; or the two branches. The body of a for has an `index`.
        entries : tuple of Traced
            The initial values of the parameters after the loop variable; of an if, the condition.
        kinds : tuple of str
            The kind of each result.

        Returns
        -------
        list of Traced
            The results.
        """
    def select(self, condition: Traced, a: Traced, b: Traced, kind: str, /) -> Traced:
        """Return a if the condition is true at run time, else b: numbers of one dtype. `kind` is the result's."""
    def check(self, condition: Traced, why: str, /) -> None:
        """Make the program raise CheckFailed, with this reason, if the Traced bool is false at run time."""
    def define(
        self,
        value: Traced,
        low: int | None,
        limit: int | Traced | None,
        is_closed: bool = False,
        /,
    ) -> Traced:
        """Return a data-dependent int as a symbolic expression, checked at run time to be in [low, limit).

        A bound of None is absent. If is_closed, the int may equal the limit, which may be any size.
        """
    def as_line(self, size: Any, symbol: Any, /) -> tuple[int, Any] | None:
        """Return (a, b) if the size is a * symbol + b for large values of the symbol, with a constant a >= 1."""
    def as_int(self, value: Traced, dtype: str, /) -> Traced | None:
        """Return a Python int as "i64" or "u64", with a run-time check; None if no check is possible."""
    def as_python(self, value: Traced, /) -> Traced:
        """Return a NumPy number (an int, float64 or complex128) as a Python number of the same value."""
    def count(self, shape: Sequence[Any], /) -> int | Traced:
        """Return the number of elements of an array of this shape."""
    def is_positive(self, value: int | Traced, /) -> bool | None:
        """Return True or False if it is known whether the int is positive, with guards; None if data decide it."""
    def assume(self, condition: Any, holds: bool = True) -> None:
        """Add a fact that proofs may use until a mark from before it forgets it.

        Parameters
        ----------
        condition : Traced or tuple
            A Traced bool that compares sizes, or (a, relation, b). Other conditions are ignored.
        holds : bool
            False adds the negated condition.
        """
    def sample_truth(self, value: Any, /) -> bool | None:
        """Return the truth of a number in this call, without a guard, if only sizes decide it; else None."""
    def note_sample(self, value: Traced, condition: Traced, chosen: Any, /) -> None:
        """Record the value in this call of a Python number that the graph selects by a condition on sizes.

        Code that needs the value guards the condition.
        """
    def size_min(self, a: Any, b: Any, /) -> Any:
        """Return the smaller of two sizes, each an int or a Traced int."""
    def size_max(self, a: Any, b: Any, /) -> Any:
        """Return the larger of two sizes, each an int or a Traced int."""
    def broadcast(self, xs: Sequence[Any], /) -> tuple[Any, ...]:
        """Return the broadcast shape of the arrays. Raises ValueError if there is none."""
    def lift(self, value: Any, like: Any = None, constant: bool = False) -> Traced:
        """Return a number, NumPy scalar or ndarray as an operand of the graph; Traced values as they are.

        Parameters
        ----------
        value : object
            The operand.
        like : dtype, optional
            The dtype of a Python number.
        constant : bool
            True if the array never changes, so that it is no outside effect.
        """
    def note_break(self, reason: Any, /) -> None:
        """Record a break at the user's line and flush. Raises Unsupported under fullgraph."""
    def note_effect(self, reason: str, /) -> None:
        """Record that Python must run on every call. Raises Unsupported under fullgraph; flushes pending checks."""
    def flush(self) -> None:
        """Compile and run the pending graph, and make every live value real."""
    def undo(self) -> bool:
        """Undo the writes of this call's runs to arrays of the caller.

        Returns False if that is impossible, or if there was another effect.
        """
    def apply(self, op: str, /, *args: Any) -> Traced:
        """Append a pointwise operation, a function or `where` on one to four operands of one dtype.

        Numbers take the dtype of the Traced operands. Raises ValueError if there is no such operation.
        """
    def cast(self, x: Any, dtype: Any, /) -> Traced:
        """Return the value with another dtype. Raises OverflowError for a Python int that may be out of range."""
    def reduce(self, op: str, x: Any, axes: Any, /) -> Traced:
        """Reduce an array along axes, which the result does not have."""
    def scan(self, op: str, x: Any, axis: Any, /) -> Traced:
        """Return the running results of a reduction along one axis."""
    def permute(self, x: Any, axes: Sequence[int], /) -> Traced:
        """Return a view with its axes in another order."""
    def reshape(self, x: Any, shape: Sequence[Any], /) -> Traced:
        """Return a view of another shape where NumPy makes one, otherwise a copy."""
    def slice(
        self, x: Any, starts: Sequence[Any], steps: Sequence[Any], sizes: Sequence[Any], /
    ) -> Traced:
        """Return a view with one start, step and size for each axis."""
    def expand(self, x: Any, shape: Sequence[Any], /) -> Traced:
        """Return a read-only broadcast view, as NumPy's `broadcast_to`."""
    def broadcast_view(self, x: Any, shape: Sequence[Any], /) -> Traced:
        """Return a broadcast view that warns of writes, as NumPy's `broadcast_arrays`."""
    def diagonal(
        self, x: Any, axis1: int, axis2: int, offset: Any, is_writable: bool = False, /
    ) -> Traced:
        """Return the view of a diagonal, whose axis is the last one."""
    def window(self, x: Any, axis: int, size: Any, /) -> Traced:
        """Return a read-only view of all windows of this size along an axis, on a new last axis."""
    def copy(self, x: Any, order: str = "C") -> Traced:
        """Return a copy in the memory order "C", "F", "A" or "K"."""
    def fits(self, x: Any, dtype: Any, /) -> bool:
        """Return True if numbers may be stored in an array of the dtype, with a run-time check if need be."""
    def assign(self, target: Traced, value: Any, /) -> None:
        """Store `target[...] = value`: broadcasts, and casts arrays unsafely; Python numbers must fit.

        Raises ValueError if the target is read-only.
        """
    def concat(self, xs: Sequence[Any], axis: int, /) -> Traced:
        """Join arrays along an axis. Raises ValueError if there are none."""
    def full(
        self, shape: Sequence[Any], value: Any, dtype: Any, order: str = "C", like: Any = ...
    ) -> Traced:
        """Return a new array of one value.

        Parameters
        ----------
        shape : sequence of int or Traced
            The sizes.
        value : number or Traced
            The value; a Traced one is broadcast.
        dtype : dtype
            Of the elements.
        order : {"C", "F", "A", "K"}
            The memory order; that of `like` for "A" and "K".
        like : Traced, optional
            The array whose order is kept.

        Raises
        ------
        ValueError
            If a size is negative, or the order is another one.
        """
    def empty(self, shape: Sequence[Any], dtype: Any, order: str = "C", like: Any = ...) -> Traced:
        """Return a new array without contents. The arguments are those of `full`."""
    def iota(self, shape: Sequence[Any], axis: int, /) -> Traced:
        """Return an int64 array whose elements are their positions along an axis."""
    def extern(
        self,
        name: str,
        key: str,
        callable: Callable[..., Any],
        operands: Sequence[Any],
        shape: Sequence[Any],
        dtype: Any,
        positions: int = -1,
        may_fail: bool = False,
        elementwise: bool = False,
    ) -> Traced:
        """Append a library call to the graph.

        Parameters
        ----------
        name, key : str
            The call's name, and the text of every other setting. The same name and key must mean the same call.
        callable : callable
            Called as `callable(*operands, out)` with real arrays when the program runs. Fills `out` and returns None,
            or returns the contents of `out`; a new array that leaves the program is not copied.
        operands : sequence
            Traced or real operands, at most CX_MAX_OPERANDS.
        shape, dtype : sequence, dtype
            Those of the result.
        positions : int
            The axis of the first operand along which the result consists of positions; -1 for other results.
        may_fail : bool
            True if the call raises CheckFailed where the original function must run.
        elementwise : bool
            True if the result is stored as NumPy stores it for these operands; otherwise in C order.
        """
    def gather(
        self, x: Any, axes: Sequence[int], indices: Sequence[Any], plain: bool = False
    ) -> Any:
        """Return the elements of an array at integer indices, as `x[i, :, j]`.

        Negative indices count from the end; an index out of range fails a check.

        Parameters
        ----------
        x : array
            The array.
        axes : sequence of int
            The indexed axes, ascending.
        indices : sequence of array
            One for each of these axes; they are broadcast together.
        plain : bool
            True for a result in C order; otherwise it is stored as NumPy stores `x[...]`.

        Returns
        -------
        Traced
            NotImplemented if a check is needed and none is possible any more.
        """
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
        """Store a value, broadcast, at the elements that `gather` reads.

        Parameters
        ----------
        target : Traced
            The array, which is written to.
        axes, indices : sequence
            As in `gather`.
        value : array
            The last one stays if several are stored at one element.
        combine : str, optional
            An operation that combines the value with the element instead.
        distinct : bool
            True if each element gets one value at most.
        inside : bool
            True if the indices are known to be in range, so that they are not checked.

        Returns
        -------
        None
            NotImplemented if a check is needed and none is possible, or after a break, if NumPy must write.
        """
    def compress(self, x: Any, mask: Any, /) -> Traced:
        """Return the elements along the first axis at which a bool array of one axis is true.

        Equal masks give equal sizes.
        """
    def may_check(self) -> bool:
        """Return True if the program may still stop at a check, because nothing has happened yet."""
    def let_go(self, value: Traced, others: int, /) -> bool:
        """Forget an array that is known by its object, and return True, if it is referenced by nothing else.

        Parameters
        ----------
        value : Traced
            The array's traced value.
        others : int
            The references to the traced value that are not the caller's; one may be the tracer's own.

        Returns
        -------
        bool
            False if there are other references, or another view has the memory.
        """
    def concretize_shown(self) -> None:
        """Guard the sizes in texts of exceptions since the last call, because user code has caught one."""
    def number(self, name: str, function: Any, args: tuple[Any, ...], /) -> Any:
        """Return `function(*args)` for numbers as a Python number, by the row `name` of math.def.

        Checks at run time where Python raises. NotImplemented if there is no such row, or no check is possible.
        """
    def as_scalar(self, x: Traced, /) -> Traced:
        """Return a value without axes as a NumPy scalar."""
    def recall(
        self,
        sources: list[Any],
        checks: list[Any],
        inputs: list[Any],
        pieces: list[Any],
        graph: str | None,
        relations: list[Any],
        bound: tuple[Any, ...],
        /,
    ) -> Specialization | None:
        """Rebuild a specialization from its `saved` parts, if its guards hold for bound arguments.

        The symbols must have been declared. Compiles nothing if the guards do not hold.

        Returns
        -------
        Specialization or None
            None if a guard does not hold.

        Raises
        ------
        ValueError
            For parts that `saved` never gives, and if the tracer has traced before.
        """
    def finish(
        self,
        sources: list[tuple[Any, ...]],
        checks: list[tuple[Any, ...]],
        result: Any,
        reached: dict[int, int] | None = None,
    ) -> tuple[Any, Specialization | str | None]:
        """End the call: compile and run the pending graph.

        Parameters
        ----------
        sources, checks : list
            The guards, as in `Specialization`.
        result : object
            The result, with Traced values nested in tuples, lists, dicts and named tuples. A tuple whose class has
            `__cinductor_call__` is the result of calling its first item with the others; False: the call only makes
            objects. An object that a source reaches is returned as itself; any other leaf is an immutable constant.
        reached : dict, optional
            The id of each object in the result that a source reaches, with the number of the source.

        Returns
        -------
        value : object
            The real result.
        specialization : Specialization, str or None
            None if Python is needed; a str says which part of the result cannot be rebuilt.
        """

def view(
    array: np.ndarray,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    is_writable: bool,
    /,
) -> np.ndarray:
    """Return an array over a part of another array's memory. Nothing checks that the part is inside of it.

    Parameters
    ----------
    array : ndarray
        The array, which is kept alive.
    dtype, shape, strides : dtype, tuple of int, tuple of int
        Those of the result; strides are in bytes.
    offset : int
        The offset of its first element in bytes.
    is_writable : bool
        True if it may be written to.
    """

def paddings(array: np.ndarray, /) -> tuple[int, ...]:
    """Return for each axis the number of elements between the end of the axes inside it and its next step.

    -1 if the strides do not show it: the stride is 0, or steps overlap or do not fit to those of the axes inside.
    """

def are_placed_alike(a: set[Any], b: set[Any], /) -> bool:
    """Return True if two sets have the same objects in the same slots.

    Then they iterate in the same order, whatever is added to both.
    """

def exchange_items(items: set[Any] | frozenset[Any], new: list[Any], /) -> None:
    """Replace each item of a set by an equal one, in the order of iteration.

    Raises ValueError for another number of items, and for an item with another hash.
    """

def list_column(value: Any, /) -> np.ndarray | tuple[Any, ...] | None:
    """Return the items of a list as new arrays.

    A list of numbers gives an array of rank 1, one of distinct lists of one length an array of rank 2, and one of
    tuples `(columns,)`, with an array for each place in the tuples. Any other list of lists of numbers or tuples gives
    `(begins, items)`: the arrays of all items, and where the items of each list begin and the last ones end. None if
    the numbers of an array would not all be bools, all floats or all ints of 64 bits, or if there are none.
    """

def store_column(items: list[Any], array: np.ndarray, /) -> None:
    """Store the numbers of an array in the list, or lists, that it was made of, where they differ.

    Raises RuntimeError if the lists have other lengths than the array.
    """

def twister_memory(generator: Any, /) -> tuple[np.ndarray, np.ndarray]:
    """Return the state of a `random.Random` as arrays over its memory: the 624 words, and the index of the next one.

    Raises ValueError if the memory has no such state, or if another thread of Python could draw meanwhile.
    """

def reached(
    roots: list[Any],
    wanted: list[Any],
    closed: dict[int, Any],
    atoms: frozenset[type],
    modules: frozenset[str],
    opened: frozenset[type],
    /,
) -> set[int]:
    """Find which of the wanted objects the roots refer to, directly or not.

    Parameters
    ----------
    roots, wanted : list
        Objects.
    closed : dict
        Its keys are ids of objects that are not entered.
    atoms : frozenset of type
        C classes whose objects refer to nothing.
    modules : frozenset of str
        Modules whose C classes show all references by tp_traverse, besides Python's builtins.
    opened : frozenset of type
        The package's own classes that are entered.

    Returns
    -------
    set of int
        Their ids. The ids of all wanted objects if a class hides references, or if there are too many objects.
    """

def traced_in(
    roots: list[Any],
    closed: dict[int, Any],
    atoms: frozenset[type],
    modules: frozenset[str],
    opened: frozenset[type],
    /,
) -> list[Traced] | None:
    """Return the Traced values that the roots refer to, directly or not, once for each reference.

    The arguments are those of `reached`. None if a class hides references, or if there are too many objects.
    """

def own_in(
    roots: list[Any],
    closed: dict[int, Any],
    atoms: frozenset[type],
    modules: frozenset[str],
    allowed: frozenset[type],
    /,
) -> Any:
    """Return a Traced value, or another object of capture, that the roots refer to, directly or not; None if there is none.

    The arguments are those of `reached`. Objects of the allowed classes are left out, and so is what a class hides.
    """

INSTRUCTION_CLASSES: str
"""The names of the classes of instructions that `Bound` counts, the one of bit 0 first."""
PADDING_AXIS: int
"""`Tracer.symbol` means the padding of axis k by the axis PADDING_AXIS - k."""

def set_surface(
    functions: dict[Any, Callable[..., Any]], methods: dict[str, Callable[..., Any]], /
) -> tuple[dict[Any, Any] | None, dict[str, Any] | None]:
    """Set the tables by which Traced values compute NumPy's functions and methods.

    Parameters
    ----------
    functions : dict
        A NumPy function -> handler(tracer, args, kwargs). Without a handler, or if it returns NotImplemented, the
        tracer breaks and NumPy's function runs on real values.
    methods : dict
        The name of an ndarray method -> handler(tracer, self, args, kwargs).

    Returns
    -------
    tuple of dict or None
        The previous tables.
    """

@final
class Program:
    """A compiled graph. Read-only."""

    kernels: int
    """The number of kernels."""
    externs: int
    """The number of library calls."""
    backend: str
    """The backend for which it was compiled, as "device:backend"."""
    why_host: str | None
    """The reason why a program for a device runs on the CPU, or None."""
    approximate: list[str]
    """Functions whose results are within 4 ULP of NumPy's, as "sin of float64"."""
    writes: bool
    """True if it writes to its inputs."""
    is_symbolic: bool
    """True if it has size symbols."""
    owed: float | None
    """The seconds that runs on stencils still take before they have paid for the build; None if its kernels are not made of stencils."""
    is_built: bool
    """False for the program of `Tracer.on_build` until `build` has compiled it."""
    option_values: dict[str, Any]
    """The options for which it was compiled."""
    guards: tuple[tuple[str, str, str, int], ...]
    """The assumptions of its graph about sizes: (relation, left, right, line)."""
    recordings: list[dict[str, Any]] | None
    """How each partition was recorded by the device, or None without the option `graphs`.

    Keys: `launches` in the partition, `device`, the number of runs that were `replayed` and `launched`, the number of
    `recordings`, of arguments `copied` before a replay, and `why_not` it is recorded, or None.
    """
    def build(self) -> dict[str, Any]:
        """Compile a program that is not built, and return the times and counts of the compile."""
    def copy_stencils(self, rent: float, on_paid: Callable[[], Any], /) -> bool:
        """Make the kernels of a program that is not built of stencils: they run until `build` replaces them.

        Parameters
        ----------
        rent : float
            Seconds.
        on_paid : callable
            Called once by the call in which runs have taken so long; never if the rent is 0.

        Returns
        -------
        bool
            False if there are none for this processor, or for one of its kernels.
        """
    def text(self, level: str, /) -> str:
        """Return the text of a level.

        Parameters
        ----------
        level : str
            "graph", "optimized", "loops", "kernels", "procs", "lines", "wrapper", "json" or "source".

        Raises
        ------
        ValueError
            If there is no such level.
        """
    def observe(self, observer: Callable[[str, int, int, int], object] | None, /) -> bool:
        """Call the observer after each kernel and library call of later runs; None ends this.

        Parameters
        ----------
        observer : callable or None
            Called with "k" (kernel) or "e" (library call), its number, and when it began and ended, in nanoseconds
            of `time.perf_counter_ns`.

        Returns
        -------
        bool
            False if the program runs on a device with its own memory, where it cannot be observed.
        """
    def library_calls(self) -> list[tuple[Any, ...]]:
        """Return the arguments of `add_extern` for each library call, except products."""
    def wrapper_names(self) -> dict[str, Any]:
        """Return the names that the text of the level "wrapper" uses: helpers, kernels, library calls."""

@final
class Specialization:
    """Guards, one program, and the recipe of its result.

    A source says how a call finds a value. Sources are numbered, and refer to earlier ones::

        ("arg", i)  ("global", dict, name)  ("cell", cell[, name])  ("attr", source, name)
        ("item", source, key)  ("closure", source, number, name)  ("const", object)

    Checks are (source, kind, ...). They are evaluated cheapest first, a container before its contents::

        (s, "is", object)   (s, "type", type)
        (s, "equals", value)                    equal and of one type; NaN equals itself, 0.0 and -0.0 differ
        (s, "function", code, globals, has)     a Python function; has: 1 for defaults, plus 2 for keyword defaults
        (s, "array", dtype, shape, strides, writable, aligned)
                                                an exact ndarray; symbolic sizes and strides are texts: "s0", "8*s0"
        (s, "differs", (value, ...))            equal to none of them
        (s, "size", text)                       exactly an int with this value
        (s, "float")  (s, "complex")  (s, "int")
        (s, "word")                             exactly an int, in [0, 2**64)
        (s, "len", type, n)                     exact container type and length
        (s, "keys", type, (k, ...))             exact dict type and keys, in order
        (s, "lacks", name)                      a dict without this key, or an object whose slot is empty
        (s, "loses", place)                     a list or dict whose item there, if any, runs no code when it dies
        (s, "same", r)  (s, "other", r)         the object of source r; another one
        ("absent", dict, name)                  the dict has no such key, which would hide a builtin
        ("apart", (s, ...))                     no two of these are one object; numbers that are not NaN do not count
        ("disjoint", (s, ...), (s, ...))        the memory of written arrays (first) overlaps no other array
    """

    program: Program | None
    """The program, or None if nothing is computed."""
    guards: list[str]
    """The guards in words."""
    recipe: list[tuple[Any, ...]]
    """The recipe of the result: the pieces, of which the first is the result.

    A piece is (kind, number of its source or return, memo, kind of value, object, names, numbers of the pieces inside, dtype,
    rank, layout, access, is whole). One with a memo from 0 on is made once.
    """
    saved: (
        tuple[list[Any], list[Any], str | None, list[Any], list[Any], list[Any]] | None
    )
    """The parts for `Tracer.recall` besides sources and checks, or None if it is only valid in this process.

    Inputs, pieces of the result, the text of the graph, symbols (arguments of `Tracer.symbol`), relations of sizes, and
    library calls (arguments of `add_extern`).
    """
    hits: int
    """The number of calls that it has run."""
    why_numpy: str | None
    """The reason why the original function runs its calls, or None."""
    is_inexact: bool
    """True if its results may differ from NumPy's in the last bits."""
    is_trying: bool
    """True while its calls are timed in both ways."""
    autotune_rows: (
        tuple[list[tuple[str, str | None]], list[tuple[int, str | None, int, list[tuple[int, int]]]]] | None
    )
    """The plans of its autotuning trials and their times, or None.

    Plans are (name, why it takes no part or None). Each size class has its number, the winner or None, the number of
    calls, and for each plan the number of timed calls and their median in nanoseconds.
    """
    def request_autotuning(self, asker: Callable[[Specialization], object], /) -> None:
        """Call asker(specialization) once, in the first call that could be part of an autotuning trial."""
    def autotune(
        self,
        plans: list[tuple[str, Program | None, str | None]],
        known: dict[int, str],
        done: Callable[[Specialization, int], object],
        /,
    ) -> None:
        """Time the plans on the following calls, and let the fastest run all later ones.

        Parameters
        ----------
        plans : list of tuple
            (name, program, why it takes no part or None); the first is the program itself.
        known : dict
            Size class -> name of the plan that won before.
        done : callable
            Called with the specialization and a size class when its trial is decided.

        Raises
        ------
        ValueError
            If it was called before, or there is no program.
        """
    times: tuple[float, float] | None
    """Seconds of the fastest call, compiled and in NumPy; None if they were not compared, or for any sizes."""
    def compare(self, seconds: float, calls: int, compiled: float = 0.0, /) -> None:
        """Time the first calls; NumPy runs the later ones if it was faster.

        Parameters
        ----------
        seconds : float
            The fastest call in NumPy.
        calls : int
            The number of calls that NumPy has run.
        compiled : float
            The fastest compiled call, where another process has timed both; nothing is timed then.
        """
    def try_numpy(self) -> None:
        """Time the first calls in NumPy, too; the faster way runs the later calls."""
    def doubt(self) -> None:
        """Like `try_numpy`, also for long calls: without a compiler the program is interpreted, or made of stencils."""
    def why_not(self, args: tuple[Any, ...], /) -> str | None:
        """Return the guard that these bound arguments fail, in words, or None if all hold."""
    def is_other_kind(self, args: tuple[Any, ...], /) -> bool:
        """Return True if bound arguments differ in more than sizes and numbers: a class, a dtype, a rank, a text."""

@final
class Bound:
    """The bound of the time of a function's calls in Python, from its bytecode and the arguments.

    Parameters
    ----------
    fn : callable
        The function; the functions of its module that it names are counted with it.
    classes : bytes
        The class of each instruction: `calls/bound.py`.
    """

    def __new__(cls, fn: Any, classes: bytes) -> Bound:
        """Count the instructions of a function."""
    def seconds(self, args: tuple[Any, ...], /) -> float:
        """Return the seconds that a call may take, by its bytecode and sizes, and by what others took."""
    def note(self, seconds: float, /) -> None:
        """Note how long the call took that was asked about last."""

@final
class Account:
    """Calls of one kind that no specialization fits, and the time that they have taken in the original function.

    It runs them without the miss until `spent` has reached `due`, or sizes are larger than before, or differ from those of
    the call before for one of the first times. All attributes may be set; times are in seconds.
    """

    spent: float
    """The time in the original function since the latest build."""
    total: float
    """The time in the original function of all calls."""
    due: float
    """The value of `spent` at which Python decides again."""
    best: float
    """The time of the fastest call, or 0 if none was timed."""
    price: float
    """The time that the latest build takes or took."""
    calls: int
    """The number of calls."""
    builds: int
    """The number of builds that were queued."""
    changes: int
    """The number of calls whose sizes or ints were not those of the call before, at most 4."""
    is_awaited: bool
    """True while a build is queued."""
    is_unasked: bool
    """True before Python is asked about the kind: until `spent` has reached `due`, or a call may be long."""
    is_changed: bool
    """True if the latest call was one of those that `changes` counts."""
    program: Program | None
    """The program of a capture, at first not built."""
    why: str | None
    """The reason for which the next step waits, or None."""
    break_budget: int | None
    """The number of runs of the latest capture's graphs that were useful, if NumPy ran the rest of the call; else None."""
    def call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        """Call fn, and add its time without that of nested calls which accounts time, and of captures."""
    def note(self, seconds: float, /) -> None:
        """Add the time of a call that has run in the original function."""

@final
class Overtakable:
    """A call in the original function that another thread may stop, so that a program runs it from its beginning.

    Parameters
    ----------
    codes : tuple of code
        The code that may be left.
    signal : type
        The exception that is raised in it.
    """

    def __new__(cls, codes: tuple[Any, ...], signal: type[BaseException], /) -> Overtakable:
        """Make a call that does not run yet."""
    def run(self, account: Account, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        """As `Account.call`. The signal leaves it if the call was stopped, and no time is added."""
    def stop(self) -> None:
        """Stop the call if it runs, and the main thread is in code that may be left when it looks for signals next."""

class CompiledFunction:
    """The function that `compile` returns. A call runs a compiled program that fits, or compiles one.

    It is called like the original function, its attribute `__wrapped__`, and has the same name, docstring and signature.
    In a class it is a method. A call binds its arguments, and runs the first specialization whose guards hold. If
    none fits, the call is captured and compiled. What cannot be compiled runs in NumPy.

    Parameters
    ----------
    fn : callable
        The original function. `compile(fn)` gives all arguments.
    parameters : tuple of str
        The names of its parameters, in order.
    kinds : tuple of int
        Their kinds, as `int` of those of `inspect.Parameter`.
    defaults : tuple
        Their defaults, or MISSING.
    miss : callable
        Runs a call that no specialization fits: miss(self, bound arguments, args, kwargs) returns the result, or
        MISSING to look again.
    renew : callable, optional
        renew(self) returns the three tuples again if the function has other code or other defaults.

    Returns
    -------
    object
        A call returns what fn returns, with dtypes, shapes and bits as in NumPy; the option `numerics` says more.

    Raises
    ------
    Exception
        A call raises what fn raises, and `cinductor.Error` for settings as `fullgraph` that forbid to run it in NumPy.

    Examples
    --------
    >>> f = cinductor.compile(lambda x: np.sin(x) + 1)
    >>> y = f(np.arange(10.0))
    """

    @property
    def __annotations__(self) -> Any:  # type: ignore[override]
        """The annotations of the original function. May be set."""
    @property
    def __code__(self) -> Any:
        """The code of the original function. May be set."""
    @property
    def __defaults__(self) -> Any:
        """The defaults of the original function. May be set."""
    @property
    def __kwdefaults__(self) -> Any:
        """The defaults of its keyword-only parameters. May be set."""
    def __new__(
        cls,
        fn: Callable[..., Any],
        parameters: tuple[str, ...],
        kinds: tuple[int, ...],
        defaults: tuple[Any, ...],
        miss: Callable[..., Any],
        renew: Callable[..., Any] = ...,
    ) -> CompiledFunction: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
    fn: Callable[..., Any]
    """The original function."""
    parameters: tuple[str, ...]
    """The names of its parameters."""
    specializations: tuple[Specialization, ...]
    """The specializations, in the order in which a call tries them."""
    stance: int
    """0: as usual, 1: fn runs, 2: nothing new is compiled, so fn runs, 3: such a call raises. May be set."""
    calls: int
    """The number of calls. May be set."""
    failed_checks: int
    """The number of calls in which a check failed, so that the original function ran. May be set."""
    plain_calls: int
    """The number of other calls that fn ran without `miss`. May be set."""
    is_counted: bool
    """True if `stats` counts it, so that it calls `miss.__self__.retire(self)` before it is freed. May be set."""
    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function once on these arguments, and report what it was compiled to: see `cinductor.explain`.

        Parameters
        ----------
        *args, **kwargs
            The arguments of the call.

        Returns
        -------
        Explanation
            The report, which a notebook displays.
        """
    def lower(self, *specs: Any, **named: Any) -> Any:
        """Return the program for arguments like these, without a call: see `cinductor.lower`.

        Parameters
        ----------
        *specs, **named
            A `ShapeDtype` for each array; other arguments as they are.

        Returns
        -------
        Program
            Its `text(level)` returns each level; None if nothing is computed.
        """
    def warm(self, *specs: Any, **named: Any) -> Any:
        """Compile the function for arguments like these, without a call: see `cinductor.warm`.

        Parameters
        ----------
        *specs, **named
            A `ShapeDtype` for each array; other arguments as they are.

        Returns
        -------
        CompiledFunction
            This function.
        """
    def stats(self) -> dict[str, Any]:
        """Return this function's counters and reasons, as `cinductor.stats()["functions"]` has them."""
    def __dir__(self) -> list[str]:
        """Return the names for users; those of cinductor itself are left out."""
    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays."""
    def note_device_variant(self, variant: Callable[..., Any] | None, args: tuple[Any, ...], /) -> None:
        """Let the variant for a device run calls whose arguments are on the same devices as these.

        None ends this for all devices.
        """
    @property
    def is_driver_timed(self) -> bool:
        """True while the dispatcher is compared with NumPy for a kind of calls."""
    @property
    def why_not_split_calls(self) -> str | None:
        """The reason why NumPy runs calls that the dispatcher could run, or None."""
    def note_split_calls(self, driver: Any, fix: Any, kind: bytes | None, is_timed: bool, /) -> None:
        """Let the dispatcher of a split function run calls of this kind.

        Parameters
        ----------
        driver : callable or None
            Called with the arguments of a call. None ends this for all calls.
        fix : callable
            fix(error) corrects the traceback of an exception of the driver.
        kind : bytes
            What `kind_of` returns; one of the latest eight. Its sizes do not matter.
        is_timed : bool
            True if NumPy may run such calls, and does if it is faster.
        """
    def run_first_calls(
        self, bound: Bound = ..., meet: Any = ..., settings: list[Any] = ..., packages: tuple[str, ...] = ..., longest: float = ..., due: float = ..., /
    ) -> None:
        """Run the calls of new kinds in the original function before Python is asked; without arguments ask about each kind.

        Parameters
        ----------
        bound : Bound
            Of the function's calls.
        meet : callable
            meet(account, args) takes note of a kind, after a call with which it has taken `due`.
        settings : list
            Its first item is another object when options have changed, and Python is asked.
        packages : tuple of str
            Modules that, once they are imported, may have made arguments that the original function cannot take.
        longest : float
            Seconds by the bound, of a call that Python is asked about.
        due : float
            Seconds that calls of a kind take in the original function before Python takes note of it.
        """
    def account(self, bound: tuple[Any, ...], /) -> Account:
        """Return the account of calls of this kind: classes, dtypes, ranks and flags, but not sizes and ints."""
    def accounts(self) -> list[Account]:
        """Return all accounts, the one used latest first."""
    def add(self, specialization: Specialization, /) -> None:
        """Add a specialization, which later calls try first."""
    def drop(self, specialization: Specialization, /) -> None:
        """Remove a specialization; calls in progress continue."""
    def clear(self) -> None:
        """Remove all specializations, accounts, dispatchers and device variants."""

MISSING: Any
"""Stands for no default, and as the result of a miss for "look again"."""

def propose_stance(stance: int, number: int, /) -> int:
    """Propose a stance for the process, which holds from the thread's next call of a compiled function on.

    Parameters
    ----------
    stance : int
        As `CompiledFunction.stance`.
    number : int
        Identifies the proposal.

    Returns
    -------
    int
        The thread, for `end_proposal`.
    """

def end_proposal(thread: int, number: int, holds: bool, /) -> None:
    """End a proposal, if it is still open. With `holds` it becomes the stance of the process."""

def enter_stance(stance: int, /) -> None:
    """Set the stance of this context."""

def leave_stance() -> None:
    """Restore the stance from before the latest `enter_stance`. Raises RuntimeError if there was none."""

def set_exact(is_exact: bool, /) -> None:
    """Set whether the process's numerics are "exact": True, or anything else."""

def is_compiling() -> bool:
    """Return True while any thread captures a function."""

def set_locals(frame: FrameType, values: dict[str, Any], /) -> None:
    """Assign local variables of a running frame."""

def options() -> list[tuple[str, str, Any, str, str, str]]:
    """Return the rows of options.def: (name, type, default, allowed values, environment variable, doc)."""

def choices() -> list[tuple[str, int, int, str, int, int]]:
    """Return the rows of choices.def: (name, value on CPUs, value on GPUs, doc, largest value, 1 if powers of two)."""

def has_dtype(dtype: Any, /) -> bool:
    """Return True if kernels have this dtype."""

def ops() -> list[tuple[str, str, int, dict[str, bool], str | None]]:
    """Return the operations of graphs.

    Returns
    -------
    list of tuple
        (name, kind, number of operands or -1, name of a dtype -> True if it is supported, the reason why no registered
        pass ever gets it or None).
    """

def backend_names() -> list[tuple[str, str, bool]]:
    """Return (device, name, True if it is built in) of each backend, without opening a driver or a compiler."""

def arch_levels() -> list[tuple[str, bool]]:
    """Return the architecture levels of this CPU's family, lowest first, and True for each that this CPU has."""

def backends(device: str = ..., /) -> list[tuple[str, str, str, str | None]]:
    """Return (device, name, doc, the reason why it is not available or None) of each backend.

    Parameters
    ----------
    device : str, optional
        The device whose backends are returned; by default those of all, which opens every driver.
    """

def functions() -> list[tuple[str, str, str, str]]:
    """Return how each function of floats computes NumPy's bits.

    Returns
    -------
    list of tuple
        (name, character of the dtype, "vectors", "table", "own" or "NumPy's loop", source of the algorithm or "").
    """

def check_function(name: str, char: str, first: int, step: int, blocks: int, /) -> tuple[int, int]:
    """Compare a vectorised function with NumPy's loop on blocks of 512 operands.

    Parameters
    ----------
    name, char : str
        The function and the character of its dtype, as in `functions`.
    first, step : int
        The bit pattern of the first operand and the distance to the next one; a seed and 0 for random operands.
    blocks : int
        The number of blocks.

    Returns
    -------
    tuple of int
        The number of blocks that differ, and the bit pattern of an operand in the first of them.

    Raises
    ------
    ValueError
        If there is no such function.
    """

def note_proof(name: str, char: str, points: int, is_equal: bool, /) -> None:
    """Keep the result of a comparison in the disk cache, for later processes.

    Parameters
    ----------
    name, char : str
        The function and the character of its dtype, as in `functions`.
    points : int
        The number of operands that were compared. A result of fewer operands than the kept one is ignored.
    is_equal : bool
        True if all results have NumPy's bits. Otherwise later processes call NumPy's loop.

    Raises
    ------
    ValueError
        If there is no such function.
    """

def cache_info() -> Any:
    """Return the directory, contents and counters of the disk cache; see `cinductor.cache.info`."""

def cache_stores() -> int:
    """Return the number of kernels that this process has stored, without reading the directory."""

def cache_clear() -> int:
    """Delete the entries of the disk cache, and forget compiled segments. Returns the number of deleted entries."""

def ufuncs() -> list[np.ufunc]:
    """Return the ufuncs that are operations of graphs."""

@overload
def is_a(value: object, classes: type[_Value], /) -> TypeGuard[_Value]: ...
@overload
def is_a(value: object, classes: Any, /) -> bool:
    """Return isinstance(value, classes) by the object's own class, without reading `__class__`.

    Reading it may run user code. A Traced value has the class of the value that it stands for.
    """

def classes_of(values: Iterable[Any], /) -> set[type]:
    """Return the classes of the items of an iterable, or of the keys of a dict, without calling methods of the dict's class."""

def type_name(cls: type, /) -> str:
    """Return the name of a class in Python's own messages, which has the module of a class made in C."""

def let_go(values: Iterable[Any], package: str, kept: tuple[str, ...], /) -> None:
    """Empty those of the objects whose class a module of the package has made, and their parts.

    What attributes of the names in `kept` hold is not looked at.
    """

def put_lines(lines: list[str], values: tuple[Any, ...], letters: dict[int, str], name_of: Callable[[Any], str], /) -> None:
    """Append the line of each value, a letter and a text, and those of the items of tuples and lists.

    `letters` has the lines of some values, by id; name_of gives the lines of values that are no ints, texts, tuples or lists.
    """

def children(node: ast.AST, /) -> list[ast.AST]:
    """Return the nodes in the fields of a syntax node, in order."""

def walk(node: ast.AST, /) -> list[ast.AST]:
    """Return a syntax node and all nodes below it, in breadth-first order."""

_SyntaxRows = dict[type[ast.AST], tuple[tuple[str, ...] | None, tuple[str, ...], str]]
_NameFlow = tuple[set[str], set[str], list[str], set[str], set[str], set[str], list[ast.AST]]

def names_of(rows: _SyntaxRows, nodes: tuple[Any, ...], is_deep: bool, /) -> _NameFlow:
    """Return what evaluating nodes, or lists of them, in turn does with names.

    `rows` is the table of syntax (`rows.py`). The result has three collections of names that are read before they are bound here,
    bound in every case, and bound, once for each binding. Then come names that inner functions read, names that generators read, and
    names that are unbound afterwards. The last are the nodes that declare names. is_deep: statements in blocks are included, and names
    that are only declared are bound.
    """

def blocks_of(rows: _SyntaxRows, node: ast.AST, /) -> list[list[ast.stmt]]:
    """Return the lists of statements in a statement; functions and classes have none."""

def jumps_of(rows: _SyntaxRows, block: list[ast.stmt], /) -> list[ast.stmt]:
    """Return the jumps that leave a block: of one that is in a loop, only `return` leaves it."""

def mark_operands(root: ast.AST, /) -> None:
    """Add `waits` and `done` to a rewritten function and to those inside it.

    They make visible which operands wait while a later operand of the same expression runs code. In a comprehension that Python runs,
    calls do not mark operands (`call_method`), because its container waits.
    """

def stage_call(node: ast.AST, method: str, /, *args: ast.expr, keywords: list[ast.keyword] = ...) -> ast.Call:
    """Return `__ci__.method(args)` at the position of a syntax node."""

def attribute_at(node: ast.AST, owner: str, name: str, /) -> ast.Attribute:
    """Return `owner.name` at the position of a syntax node."""

def constant_at(node: ast.AST, value: Any, /) -> ast.Constant:
    """Return a constant at the position of a syntax node."""

def name_at(node: ast.AST, name: str, /) -> ast.Name:
    """Return a load of a name at the position of a syntax node."""

def store_at(node: ast.AST, name: str, value: ast.expr, /) -> ast.Assign:
    """Return `name = value` at the position of a syntax node."""

def duplicate(value: _Value, /) -> _Value:
    """Return a copy of a syntax node and all nodes below it, or of a list of them.

    Nodes without fields, as `Load`, are objects that all trees share, also those of other packages, which may have attributes of their own.
    """

def filled(nodes: list[_Node], node: ast.AST, trees: dict[str, Any], /) -> list[_Node]:
    """Return a copy of syntax nodes without positions, at the position of a node.

    A name with a text in `trees` gets this name, and a tree replaces its name. A list replaces the statement that is only its name.
    """

def placed(new: _Node, old: ast.AST, /) -> _Node:
    """Give a syntax node the position of another one, and return it."""

def place_of(node: ast.AST, /) -> dict[str, Any]:
    """Return the position of a syntax node: `lineno`, `col_offset`, `end_lineno` and `end_col_offset`."""

def kind_of(bound: tuple[Any, ...], /) -> bytes:
    """Return a digest of a call's arguments: classes, dtypes, ranks, flags, texts, sizes and ints. It runs no code of the user's."""

def sha256(data: bytes, /) -> str:
    """Return the SHA-256 of bytes as hexadecimal digits."""

def graph_inputs(text: str, /) -> list[tuple[str, np.dtype[Any], tuple[int, ...], tuple[int, ...]]]:
    """Return (kind, dtype, shape, strides in elements) of each input of a graph's text.

    The kind is "array", "scalar" or "python". Symbolic sizes are those of the captured call.
    """

def read_call(key: str, /) -> str | None:
    """Return the text that the disk cache has for a key of a saved call, or None."""

def has_call(key: str, /) -> bool:
    """Return True if the disk cache has a saved call of this key."""

def write_call(key: str, text: str, /) -> None:
    """Store the text of a saved call in the disk cache. A failure is ignored."""

def cache_directory() -> str:
    """Return the directory of the disk cache, or "" if there is none."""

def set_cache_directory(path: Any, /) -> None:
    """Use another directory for the disk cache; None restores the default."""

@final
class UserCode:
    """A compiled function that the user has written in C."""

    def run(
        self, arrays: tuple[Any, ...], sizes: tuple[int, ...], units: int, threads: int, /
    ) -> None:
        """Run units of the grid.

        Parameters
        ----------
        arrays : tuple of array
            The buffers.
        sizes : tuple of int
            The sizes.
        units, threads : int
            The number of units, and the number of threads that share them.
        """

def user_code(source: str, options: dict[str, Any], device: str, /) -> UserCode:
    """Compile C source, and return its function `cinductor_kernel`. It is cached as kernels are.

    Raises CompileError if the compiler refuses it.
    """

def add_extern(
    name: str,
    key: str,
    call: Callable[..., Any],
    position_axis: int = 0,
    may_fail: bool = False,
    parts: tuple[int, ...] = ...,
    /,
) -> None:
    """Register a library call, so that graphs in text form can have it by its name and key.

    Parameters
    ----------
    name, key, call
        As in `Tracer.extern`. A call that is registered already stays.
    position_axis : int
        1 + `positions` of `Tracer.extern`.
    may_fail : bool
        As in `Tracer.extern`.
    parts : tuple of int
        For each operand 0, or a number that says which part of a complex number it is.
    """

def set_passes(rows: tuple[tuple[Any, ...], ...], key: str, /) -> None:
    """Set the registered passes of later compiles.

    Parameters
    ----------
    rows : tuple of tuple
        (name, after, function of the graph's text) or (name, after, pattern, replacement).
    key : str
        Distinguishes these passes from others.
    """

def set_pass_observer(observer: Callable[[str, str, float], object] | None, /) -> None:
    """Call the observer after each pass with its name, the graph's text and the seconds; None ends this.

    Before the first pass the name is "".
    """

def passes() -> list[tuple[str, bool, str, str]]:
    """Return (name, True if it cannot be left out, doc, level) of each pass."""

def check_pattern(pattern: str, replacement: str, /) -> None:
    """Raise SyntaxError if a pattern and its replacement cannot be parsed."""

def run_program(program: Program, inputs: Sequence[Any], /) -> list[Any]:
    """Run a program, and return its results. It may write to its inputs.

    Raises ValueError for another number of inputs.
    """

def recompile(
    program: Program, options: dict[str, Any], backend: str, rows: tuple[tuple[Any, ...], ...], /
) -> Program:
    """Compile the captured graph of a program again.

    Parameters
    ----------
    program : Program
        The program.
    options : dict
        As in `Tracer`.
    backend : str
        A backend of the same device.
    rows : tuple of tuple
        Passes that run before those of the program, as in `set_passes`.
    """

def plan(program: Program, options: dict[str, Any], /) -> tuple[str, list[tuple[str, str, str]], int]:
    """Plan the graph of a program with other options, without building it.

    Returns
    -------
    digest : str
        Identifies the plan.
    alternatives : list of tuple
        (kind, option or threshold, value).
    peak : int
        The peak memory in bytes.
    """

def flag_settings() -> tuple[bool, int, int]:
    """Return what happens now to NumPy's warnings of float flags.

    True if each one is given or raised; the flags of which NumPy and Python's filters let some through; and a number that grows
    when filters change.
    """

def has_warned_of_compiler() -> bool:
    """Return True if a warning was given that a segment is interpreted, because its compiler failed."""

def set_alongside(number: int, /) -> None:
    """Set the state of builds on other threads: 0 none, 1 some, so that no trial is timed, 2 they shall stop."""

def set_autotune_clock(clock: Callable[[str, int], int] | None, /) -> None:
    """Set the clock of autotuning trials, for tests: clock(name of the plan, size class) -> nanoseconds."""

def step_clock(seconds: float | None, /) -> None:
    """Move on the clock by which accounts time calls, for tests. None: they and builds are timed again."""

def aten_call(
    functions: Any, name: str, overload: str, arguments: list[tuple[int, Any]], nresults: int, /
) -> Any:
    """Make a call of an ATen operator that runs by torch's dispatcher, without Python.

    Parameters
    ----------
    functions : capsule
        The result of `torch_functions`.
    name, overload : str
        The operator, as "aten::topk" and "".
    arguments : list of (int, object)
        A kind and a value for each: (0, 64 bits), (1, operand), (2, operand that is an int), (3, an optional argument
        that is given), (4, list).
    nresults : int
        The number of results.

    Returns
    -------
    capsule or None
        None if torch has no such dispatcher, or if the call has too many arguments or results.
    """

def torch_functions(
    library: str, exchange: Any, types: tuple[type, ...], is_conj: Any, is_neg: Any, wrap: Any, /
) -> Any:
    """Find the functions of the loaded torch that `TensorProgram` calls.

    Parameters
    ----------
    library : str
        The path of torch's C++ library, which is loaded.
    exchange : capsule
        torch's DLPack exchange table.
    types : tuple of type
        The classes whose objects are taken as tensors.
    is_conj, is_neg : callable
        Return True for a tensor whose values are stored conjugated, or negated.
    wrap : callable
        Makes tensors of torch from a list of DLPack capsules.

    Returns
    -------
    capsule or None
        None if this torch lacks one of them.
    """

class TensorProgram:
    """A program that is called with a list of tensors, which it empties.

    Parameters
    ----------
    program : Program
        A program of the host, or one with arrays of one CUDA device.
    functions : capsule
        The result of `torch_functions`.
    inputs : list
        For each input of the program the number of an argument, or a tensor of the program's own.
    returns : list of tuple
        ("result", index), ("part", index, sizes, strides, offset), ("input", index), ("size", size) or
        ("constant", value).
    eager : callable
        Called with the list if the program does not accept its values, or if a check fails.
    host : tuple, optional
        The part of a device's graph on the host: its TensorProgram, the numbers of the arguments that it takes, and the number of all
        arguments. Its results are further arguments of `program`.

    Raises
    ------
    TypeError
        For a program of another device, or one that gets host arrays.
    """

    program: Program
    """The program."""
    def __new__(
        cls, program: Program, functions: Any, inputs: list[Any], returns: list[tuple[Any, ...]], eager: Any, host: Any = None, /
    ) -> TensorProgram: ...
    def __call__(self, args: list[Any], /) -> list[Any]:
        """Run the program, empty the list, and return the results."""

@final
class Builder:
    """A graph that is being made. Values are numbers; types, symbols and sizes are texts as in docs/ir.md.

    Methods raise ValueError after the graph was compiled.

    Parameters
    ----------
    name : str
        The name of the function.
    """

    def __new__(cls, name: str) -> Builder: ...
    def symbol(self, text: str, /) -> int:
        """Declare a size symbol, as "s0 in [2, inf) from in0.sizes 1 hint 7"."""
    def input(self, type: str, /) -> int:
        """Add an input of a type, as "f32[s0,4] strides [1,s0]", and return its value."""
    def node(
        self,
        op: str,
        args: Sequence[int],
        type: str | None = None,
        *,
        axes: Sequence[int] = ...,
        starts: Sequence[int | str] = ...,
        steps: Sequence[int | str] = ...,
        combine: str | None = None,
        distinct: bool = False,
        name: str | None = None,
        key: str = ...,
        file: str | None = None,
        line: int = 0,
    ) -> int:
        """Append a node, and return its value.

        Parameters
        ----------
        op : str
            The operation.
        args : sequence of int
            The operands.
        type : str, optional
            The result's type, for operations that do not determine it: reshape, expand, slice, cast, extern, ...
        axes, starts, steps : sequence, optional
            Attributes of the operation.
        combine : str, optional
            The operation by which a scatter combines values.
        distinct : bool
            True if a scatter stores at most one value at each element.
        name, key : str, optional
            Those of a library call.
        file, line : str, int
            The user's line.
        """
    def const(self, type: str, value: complex, /) -> int:
        """Append a constant without axes, and return its value."""
    def expr(self, size: int | str, /) -> int:
        """Append the value of a symbolic expression, a Python int, and return it."""
    def check(self, condition: int, why: str, file: str | None = None, line: int = 0, /) -> int:
        """Append a check: the program stops with this reason, without effects, if the condition is false."""
    def define(self, value: int, symbol: str, file: str | None = None, line: int = 0, /) -> int:
        """Append the definition of an unbacked symbol by a value, as "u0 in [0, s0)"."""
    def write(self, input: int, value: int, /) -> int:
        """Make the memory of an input contain the value when the program ends."""
    def results(self, values: Sequence[int], /) -> int:
        """Set the results of the current block or of the graph."""
    def block(self) -> int:
        """Make a block of a region, enter it, and return its number."""
    def enter(self, block: int, /) -> int:
        """Append later nodes to this block; -1 is the graph's body."""
    def param(self, type: str, /) -> int:
        """Add a parameter to the current block, and return its value."""
    def region(
        self,
        op: str,
        args: Sequence[int],
        blocks: Sequence[int],
        extent: int | str = ...,
        name: str = ...,
        file: str | None = None,
        line: int = 0,
        /,
    ) -> int:
        """Append a region.

        Parameters
        ----------
        op : str
            "for", "while" or "if".
        args : sequence of int
            The initial values, or the condition of an if.
        blocks : sequence of int
            The numbers of its blocks.
        extent, name : int or str, str
            The trip count of a for, and the name of its loop variable.
        file, line : str, int
            The user's line.

        Returns
        -------
        int
            The first result; the others follow.
        """
    def position(self) -> tuple[int, int, int]:
        """Return the current position, for `rewind`."""
    def rewind(self, position: tuple[int, int, int], /) -> None:
        """Remove the nodes of the current block that were appended since the position."""
    def text(self) -> str:
        """Return the text of the graph."""
    def type(self, value: int, /) -> str:
        """Return the type of a value as text."""

def compile_graph(
    graph: Builder | str, *, options: dict[str, Any] = ..., device: str = "cpu", backend: str = ""
) -> Program:
    """Compile a graph without running it.

    Parameters
    ----------
    graph : Builder or str
        The graph, or its text. A Builder cannot be used afterwards.
    options, device, backend
        As in `Tracer`.

    Raises
    ------
    ValueError, SyntaxError
        If there is no such backend; if the text cannot be parsed.
    """

def compile_text(
    text: str,
    inputs: Sequence[Any],
    *,
    options: dict[str, Any] = ...,
    device: str = "cpu",
    backend: str = "",
    runs: int = 0,
    level: str = "",
    given: str = "",
) -> tuple[Any, ...]:
    """Parse the text of a graph, compile it and run it on real arrays; for tests and tools.

    Parameters
    ----------
    text : str
        The graph.
    inputs : sequence
        Arrays and numbers.
    options, device, backend
        As in `Tracer`.
    runs : int
        The number of further runs that are timed.
    level, given : str
        "loops", "kernels", "procs", "lines" or "source", and the text of that level, which is used instead of the made one.

    Returns
    -------
    results : list
        The results of the graph.
    program : Program
        The program.
    seconds : float
        The shortest time of a run, if `runs` is not 0.

    Raises
    ------
    ValueError, SyntaxError
        For another number of inputs, and a backend that does not exist; if the text cannot be parsed.
    """

# --- Arrays of a device: ndarrays whose data pointer is an address there; see arrays/array.py. ---

def device_array(array: np.ndarray, device: str, /) -> np.ndarray:
    """Copy an array to a device's memory, in the same stride order.

    Raises TypeError for a dtype that kernels lack, and ValueError for a device without its own memory.
    """

def device_numpy(array: np.ndarray, /) -> np.ndarray:
    """Copy a device array to host memory, with its strides. Waits for the kernels that compute it."""

def device_start_copy(array: np.ndarray, /) -> tuple[np.ndarray, int, Event] | None:
    """Start to copy a device array to host memory.

    Returns
    -------
    tuple or None
        (bytes, offset of the first element, event): the bytes may be read after the event. None if the device has no
        such copies, or the array is empty.
    """

def device_update(array: np.ndarray, copy: np.ndarray, /) -> None:
    """Copy the contents of a result of `device_numpy` back to the device array."""

def is_device_array(array: Any, /) -> bool:
    """Return True for an ndarray in a device's memory."""

def device_of(array: Any, /) -> tuple[str, int]:
    """Return the device of a device array, as ("cuda", 1). Raises TypeError for other objects."""

def device_count(name: str, /) -> int:
    """Return the number of devices of this kind in the machine."""

def device_open(name: str, /) -> None:
    """Start the initialisation of a device, for which its first use would wait."""

def device_properties(device: str, /) -> tuple[str, int, int, int, bytes]:
    """Return (name, bytes of memory, compute capability, multiprocessors, identity of 16 bytes) of a device."""

def device_shared(like: np.ndarray, device: str, /) -> np.ndarray:
    """Make a device array without contents in memory that other processes can open.

    Its dtype, shape and stride order are those of `like`.
    """

def share_name(array: np.ndarray, /) -> tuple[bytes, int]:
    """Return the name by which other processes open the memory of an array, and the offset of its first element.

    Waits for the array's kernels. Raises ValueError if the memory was not made by `device_shared`.
    """

def share_open(device: str, name: bytes, /) -> tuple[Any, int, int]:
    """Open memory that another process shares.

    Returns
    -------
    owner : capsule
        Closes the memory when it is freed.
    address, size : int
        The address on the device, and the number of bytes.
    """

def register_device(device: Any, compilers: tuple[Any, ...], /) -> str:
    """Register a kind of device, and return its name; see `cinductor.register_device`."""

class DeviceArray:
    """The base class of objects with an array in the memory of a device or of the host. A handle has one object.

    Parameters
    ----------
    handle : ndarray
        A device array, or an ordinary array of a dtype that devices have.
    """

    _handle: np.ndarray
    """The array."""
    def __new__(cls, handle: np.ndarray, /) -> DeviceArray: ...

def set_array_type(type: type, leave: Any, /) -> None:
    """Set the class of result arrays, which is derived from `DeviceArray`.

    leave(result) returns a result of the CPU with objects of this class in place of arrays.
    """

@final
class DeviceMemory:
    """A block of a device's memory: the owner of a device array's data."""

@final
class Method:
    """A method of a traced array, bound to it."""

    __name__: str
    """The name of the method."""
    __self__: Traced
    """The array."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler of the method, or break and let NumPy compute it."""

    def fold(self, ufunc: np.ufunc, how: str, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        """Call a method that NumPy defines by `reduce` or `accumulate` of the ufunc, with at most an axis and keepdims.

        NotImplemented for other arguments, and if the handler decides what the call raises.
        """

def device_synchronize(device: str, /) -> None:
    """Wait for all work on a device. Raises DeviceError if some of it failed."""

def device_over(
    owner: Any, device: str, address: int, like: np.ndarray, stream: int | None, /
) -> np.ndarray:
    """Make a device array over memory of another object.

    Parameters
    ----------
    owner : object
        It is kept alive.
    device : str
        The device.
    address : int
        The address of the first element.
    like : ndarray
        Has the dtype, shape and strides; its elements are not read.
    stream : int or None
        The handle of a stream whose work must be finished first.
    """

def dlpack_give(array: np.ndarray, stream: Any, is_versioned: bool, /) -> Any:
    """Return a DLPack capsule for a device array.

    Parameters
    ----------
    array : ndarray
        The device array.
    stream : int or None
        The stream that will read it, as in `__dlpack__`.
    is_versioned : bool
        True for DLPack 1.0.

    Raises
    ------
    BufferError
        If DLPack cannot describe the device or the dtype.
    """

def dlpack_take(capsule: Any, /) -> np.ndarray:
    """Return a device array over the tensor of a DLPack capsule, which cannot be used afterwards."""

def dlpack_device(array: np.ndarray, /) -> tuple[int, int]:
    """Return the (type, number) of an array's device in DLPack."""

def memory_use(device: str, /) -> dict[str, int]:
    """Return the memory use of a device; see `cinductor.memory_stats`."""

def memory_forget_peak(device: str, /) -> None:
    """Restart the peak of `memory_use` from the memory that is allocated now."""

def memory_bound(device: str, limit: int, keep: int, /) -> None:
    """Set limits of a device's memory in bytes.

    Parameters
    ----------
    device : str
        The device.
    limit : int
        The most bytes that may be allocated; 0 for no limit.
    keep : int
        The most freed bytes that are cached; -1 leaves it unchanged.
    """

def memory_give_back(device: str, /) -> None:
    """Free the cached memory of a device."""

@final
class Stream:
    """A queue of a device, whose work runs in order."""

    device: str
    """The device's name and number."""
    handle: int
    """The handle of the device's library."""
    def synchronize(self) -> None:
        """Wait for all work of the stream. Raises DeviceError if some of it failed."""
    def record(self, event: Event, /) -> None:
        """Record the event after the work that the stream has now."""
    def wait(self, event: Event, /) -> None:
        """Let later work of the stream wait for the event."""

@final
class Event:
    """A point in the work of a stream."""

    def synchronize(self) -> None:
        """Wait for the event."""
    def elapsed(self, later: Event, /) -> float:
        """Return the milliseconds from this event to a later one; both must have completed.

        Raises ValueError for events of another device, and for a device that does not time them.
        """

def stream_open(device: str, handle: int | None, /) -> Stream:
    """Open a new stream, or use the handle of another package's stream.

    Raises ValueError for a device that does not exist or has no streams.
    """

def group_check(device: str, /) -> None:
    """Raise ValueError for a device that has no collectives."""

def group_name(device: str, /) -> bytes:
    """Make a name by which devices of this kind, in this and other processes, become a group.

    Raises ValueError for a device that has no collectives.
    """

def group_open(device: str, name: str, unique: bytes, rank: int, count: int, timeout: float, /) -> None:
    """Make a device member of a group; returns when all members have come. `name`: for calls of this process.

    Raises DeviceError if another member does not come within the timeout in seconds, and ValueError for a name that the device
    is a member by already.
    """

def group_close(device: str, name: str, /) -> None:
    """End a membership. Collectives that are under way fail."""

def event_open(device: str, /) -> Event:
    """Make an event that is not recorded yet. Raises ValueError as `stream_open`."""

stream_in_force: ContextVar[Stream | None]
"""The current stream of each context."""
