"""The table of NumPy functions and array methods that can be captured.

A row is a function of the tracer and NumPy's own arguments. It need not check them: if it fails, NumPy's function
is called on dummy arrays and raises its own exception. `NotCaptured` is a break with its reason. Functions that
NumPy itself writes in Python are not written again: those in `INLINED` are captured from NumPy's own source, like
a user's helper.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a, package_of
from ..base.float_warnings import quietly
from ..base.interrupt import is_interrupt
from ..base.user_frame import hide_our_frames
from .names import ALIASES, INLINED, MODULES

Traced = _core.Traced
has_dtype = _core.has_dtype  # True if kernels support a dtype: NumPy's own, and those of packages in pyext/state/foreign.def


class NotCaptured(Exception):
    """The reason why a call is left to NumPy."""


class Row:
    r"""One function or method.

    handler: reading it, or what follows from it, imports the module that registers it. creates: traced although no argument is. writes:
    changes its first argument. follow: Python source that is captured if there is no handler, or it refuses. out: the index of the output
    array among the arguments, including the owner of a method.
    """

    __slots__ = ("function", "module", "follow", "handler", "creates", "writes", "out")

    def __init__(self, function: Any, module: str, follow: Any = None) -> None:
        self.function, self.module, self.follow = function, module, follow

    def __getattr__(self, name: str) -> Any:
        """A slot that the module fills."""
        if name not in Row.__slots__:
            raise AttributeError(name)
        importlib.import_module(f"{__package__}.{self.module}")
        return object.__getattribute__(self, name)

    def fill(self, handler: Callable[..., Any] | None, creates: bool = False, writes: bool = False) -> Row:
        """Enter the handler."""
        code = getattr(handler, "__code__", None)
        names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
        self.out = names.index("out") if "out" in names else -1
        self.creates, self.writes = creates, writes
        self.handler = handler
        return self

    def out_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The array to which the call writes, positional or by keyword; None if there is none."""
        return args[self.out] if 0 <= self.out < len(args) else kwargs.get("out")

    def call(self, t: _core.Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function on arguments of which some are traced; raises NotCaptured."""
        return self.method(t, None, args, kwargs)

    def method(self, t: _core.Tracer, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The method on a traced owner; raises NotCaptured. None: a function."""
        if self.handler is None:
            raise NotCaptured("it is followed only in a function with source")
        try:
            if not LEAVES.issuperset(map(type, (*args, *kwargs.values()))) or any(map(is_large_int, (*args, *kwargs.values()))):
                args, kwargs = resolved(t, args), resolved(t, kwargs)
            if self.writes and args and not is_out(args[0]):
                raise TypeError("what is written to is not an array")
            made = self.handler(t, *args, **kwargs) if owner is None else self.handler(t, owner, *args, **kwargs)
            if is_out(made) and made.ndim == 0 and is_given(made, (*args, *kwargs.values())):
                return t.as_scalar(made) if gives_scalar(self.function, owner, args, kwargs) else made
            return made
        except (TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            own: Any = error
        except _core.Unsupported as error:  # of a dtype: NumPy has it. After an effect the call cannot restart
            if t.fullgraph:
                raise
            raise NotCaptured(str(error)) from error
        # Not inside of the handler, so that NumPy's exceptions get no internal context.
        numpys = numpys_error(self.function, owner, args, kwargs)
        context = None if numpys is None else numpys.__context__
        try:
            if numpys is None:
                raise NotCaptured(str(own)) from own
            raise numpys
        finally:
            if numpys is not None:
                numpys.__context__ = context
            own = numpys = None  # their tracebacks refer to this frame


functions_by_id: dict[int, Row] = {}
methods: dict[str, Row] = {}
folds: dict[str, tuple[np.ufunc, str]] = {}  # methods that NumPy defines by a ufunc's reduce or accumulate
LEAVES = frozenset({Traced, bool, int, float, complex, str, type(None), type, np.ndarray})  # classes of arguments without items
WRITING_METHODS = frozenset(
    "fill sort partition put itemset resize setfield __setitem__ "
    "__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__ "
    "__ilshift__ __irshift__ __iand__ __ior__ __ixor__".split()
)


def function(*names: str, creates: bool = False, writes: bool = False) -> Callable[[Any], Any]:
    """Register a handler for NumPy functions of these names, without those that this NumPy lacks or that someone has replaced."""

    def enter(handler: Any) -> Any:
        for name in names:
            if (f := find(name, set())) is not None:
                functions_by_id.setdefault(id(f), Row(f, module_of(handler))).fill(handler, creates, writes)
        return handler

    return enter


def method(*names: str) -> Callable[[Any], Any]:
    """Enters a handler for methods of arrays and NumPy scalars."""

    def enter(handler: Any) -> Any:
        for name in names:
            methods.setdefault(name, Row(name, module_of(handler))).fill(handler)
        return handler

    return enter


def module_of(handler: Any) -> str:
    """The module of the surface that has a handler."""
    return str(handler.__module__).rpartition(".")[2]


def left_to_numpy(reason: str) -> Any:
    """A handler that always breaks, for this reason."""

    def handler(t: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(reason)

    handler.reason = reason  # type: ignore[attr-defined]
    return handler


def is_large_int(value: Any) -> bool:
    """True for a Python int that may exceed int64; its value decides the dtype of NumPy's array."""
    return type(value) is Traced and value.kind == "python" and value.dtype == np.uint64


def small_ints(t: Any, column: Any) -> Any:
    """An array of a list of such ints, with a check that they fit int64: for others the dtype depends on all of them.
    """
    require(t, t.reduce("all", column <= np.iinfo(np.int64).max, None), "ints beyond 64 bits")
    return cast(t, column, np.dtype(np.int64))


def resolved(t: Any, value: Any) -> Any:
    """Nested arguments in which such ints are int64, with a check."""
    if is_a(value, tuple | list):
        items = [resolved(t, v) for v in t.paced(value)]
        if all(map(operator.is_, items, value)):
            return value
        return type(value)(items) if type(value) in (tuple, list) else type(value)._make(items)
    if type(value) is dict:
        return {k: resolved(t, v) for k, v in value.items()}
    if not is_large_int(value):
        return value
    small = t.as_int(value, "i64")
    refuse(small is None, "an int that may be beyond 64 bits")
    return small


def dummy(value: Any, made: dict[int, Any] | None = None) -> Any:
    """A similar value that occupies no memory, for a call in which NumPy should raise. `made` holds the dummies of a call: an
    array that is passed twice is one array for NumPy, too.
    """
    made = {} if made is None else made
    if type(value) is Traced:
        if value.kind == "array" and id(value) in made:
            return made[id(value)]
        if value.kind == "python":
            return value.dtype.type(1).item()
        if value.kind == "scalar":
            return value.dtype.type(1)
        array = made[id(value)] = np.broadcast_to(np.ones((), value.dtype), value.shape)
        if not value.is_readonly:
            array = made[id(value)] = np.lib.stride_tricks.as_strided(
                np.ones((), value.dtype), value.shape, (0,) * value.ndim
            )
        return array
    if is_a(value, tuple | list):
        items = [dummy(v, made) for v in value]
        return type(value)(items) if type(value) in (tuple, list) else type(value)._make(items)
    if is_a(value, dict):
        return {k: dummy(v, made) for k, v in value.items()}
    return value


def on_dummies(function: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call NumPy's function, or the owner's method of that name, with dummies. The method is called as Python calls it in
    an expression: through its class, which its messages name.
    """
    made: dict[int, Any] = {}
    given = args if owner is None else (owner, *args)
    values = [dummy(v, made) for v in given]
    f = function if owner is None else getattr(type(values[0]), function)
    return quietly(f, *values, **{k: dummy(v, made) for k, v in kwargs.items()})


def may_be_named(value: Any) -> bool:
    """True if NumPy's exception may depend on the contents of a value: on numbers that are counts, indices or
    choices.
    """
    if type(value) is Traced:
        return value.dtype.kind in "biu"
    if is_a(value, dict):
        return any(map(may_be_named, value.values()))
    return is_a(value, tuple | list) and any(map(may_be_named, value))


def numpys_error(f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """NumPy's exception for such arguments; None if NumPy accepts them, or needs their contents."""
    if may_be_named(args) or may_be_named(kwargs):
        return None
    try:
        on_dummies(f, owner, args, kwargs)
    except MemoryError:
        return None
    except Exception as error:
        if is_interrupt(error):
            raise
        hide_our_frames(error)
        return error
    return None


def is_given(out: Any, values: tuple[Any, ...]) -> bool:
    """True if one of the arguments is this array, or a tuple of it."""
    return any(v is out or (type(v) is tuple and len(v) == 1 and v[0] is out) for v in values)


def gives_scalar(f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if NumPy returns a copy of a 0-d out= as a scalar: methods of its scalars, functions that call these, and np.dot do."""
    try:
        return is_a(on_dummies(f, owner, args, kwargs), np.generic)
    except Exception as error:
        if is_interrupt(error):
            raise
        return False


def whole(n: Any) -> Any:
    """operator.index, but a run-time int stays traced. A bool is not a size."""
    if is_bool(n):
        raise TypeError("a bool")
    is_int = type(n) is Traced and n.kind != "array" and n.dtype.kind in "iu"
    return n if is_int else operator.index(n)


def is_bool(value: Any) -> bool:
    """True for a bool of Python or NumPy, traced or not."""
    return value.dtype == bool if type(value) is Traced else is_a(value, bool | np.bool)


def dtype_of(x: Any) -> np.dtype:
    """np.dtype(x), but refuses arrays, although they have a dtype."""
    if type(x) is Traced:
        raise TypeError("an array is no dtype")
    return np.dtype(x)


def any_varies(values: Any) -> bool:
    """True if a nested sequence has traced numbers."""
    if is_a(values, list | tuple):
        return any(map(any_varies, values))
    return type(values) is Traced


def is_one(n: Any) -> bool:
    """True if this extent is the constant 1. A symbol is not, whatever its value."""
    return type(n) is int and n == 1


# --- helpers of handlers ----------------------------------------------------------------------


def refuse(condition: Any, reason: str) -> None:
    """Raise NotCaptured if the condition holds."""
    if condition:
        raise NotCaptured(reason)


def usually_positive(t: _core.Tracer, size: Any) -> Any:
    """size > 0, which is assumed with a guard because it only fails for empty arrays."""
    known = t.is_positive(size)
    return size > 0 if known is None else known


def require(t: _core.Tracer, condition: Any, reason: str) -> None:
    """Raise NotCaptured unless the condition holds; a run-time condition is checked by the program."""
    if type(condition) is Traced:
        refuse(not t.may_check(), reason)
        t.check(condition, reason)
    elif not condition:
        raise NotCaptured(reason)


def require_same(t: _core.Tracer, a: Any, b: Any) -> None:
    """Require that operands have equal sizes; for others NumPy raises, now or at run time."""
    same = a == b
    if type(same) is not Traced and not same:
        raise ValueError("sizes")
    require(t, same, "sizes that differ")


def array(t: _core.Tracer, x: Any) -> Any:
    """np.asanyarray(x): a traced value of kind array."""
    if type(x) is Traced:
        if x.kind == "array":
            return x
        return boxed(t, x)
    return functions_by_id[id(np.array)].handler(t, x)


def fold(ufunc: np.ufunc, how: str, x: Any, **settings: Any) -> Any:
    """ufunc.reduce(x, ...) or ufunc.accumulate(x, ...) of a traced array. NumPy is not asked for it, because from 2.4 on
    it never frees x if `__array_ufunc__` raises.
    """
    out = settings.pop("out", None)
    refuse(out is not None and not all(map(is_out, out if is_a(out, tuple) else (out,))), NO_OUT)
    given = settings if out is None else {**settings, "out": (out,)}
    return x.__array_ufunc__(ufunc, how, x, **given)


def in_place(t: _core.Tracer, x: Any, dtype: np.dtype) -> Any:
    """An operand of a library call: an array of that dtype, without a copy if x has it already."""
    x = array(t, x)
    return x if x.dtype == dtype else cast(t, x, dtype)


def rank(x: Any) -> int:
    """np.ndim(x)"""
    return x.ndim if hasattr(x, "ndim") else np.ndim(x)


def boxed(t: _core.Tracer, x: Any) -> Any:
    """An array of rank 0 that holds a traced scalar."""
    x = resolved(t, x)
    made = t.empty((), x.dtype)
    t.assign(made, x)
    return made


def cast(t: _core.Tracer, x: Any, dtype: np.dtype, casting: Any = "same_kind") -> Any:
    """A traced value in another dtype; all casts of rows use this check. TypeError if NumPy's rule refuses the cast;
    then NumPy's function runs or raises. Rows that round like NumPy's source pass "unsafe".
    """
    if x.dtype != dtype and not np.can_cast(x.dtype, dtype, casting):
        raise TypeError(f"Cannot cast from {x.dtype} to {dtype} according to the rule '{casting}'")
    return t.cast(x, dtype)


def result_type(*values: Any) -> np.dtype:
    """NumPy's promotion of traced and concrete values; Python's numbers are weak. Anything else NumPy would take for the name
    of a dtype.
    """
    for v in values:
        refuse(not is_a(v, Traced | bool | int | float | complex | np.generic | np.ndarray), f"an operand is a {type(v).__name__}")
    return np.result_type(*map(weak, values))


def is_pythons(value: Any) -> bool:
    """True for a number of Python's, traced or not."""
    return value.kind == "python" if type(value) is Traced else type(value) in (bool, int, float, complex)


def common_type(given: list[Any], arrays: list[Any]) -> np.dtype:
    """The dtype to which NumPy's C functions convert the items of a sequence, given as arrays too: Python's numbers are weak.
    """
    return result_type(*(v if is_pythons(v) else x for v, x in zip(given, arrays, strict=True)))


def weak(value: Any) -> Any:
    """A stand-in for a value in type promotion."""
    if type(value) is Traced:
        return value.dtype.type(0).item() if value.kind == "python" else value.dtype
    return value


def operand(t: _core.Tracer, x: Any, dtype: np.dtype) -> Any:
    """The value as an operand of that dtype; a Python int out of its range raises."""
    if type(x) is Traced:
        return converted(t, x, dtype)
    if is_a(x, np.generic):
        return converted(t, t.lift(x), dtype)
    if is_a(x, bool | int | float | complex):
        return t.lift(dtype.type(x))
    if is_a(x, list | tuple):  # numbers in it must fit, too
        return functions_by_id[id(np.array)].handler(t, x, dtype)
    return converted(t, array(t, x), dtype)


def converted(t: _core.Tracer, x: Any, dtype: np.dtype) -> Any:
    """A traced value of that dtype, cast like astype; if NumPy warns or raises, NumPy does the cast."""
    refuse(x.dtype.kind == "c" and dtype.kind in "iuf", "the imaginary part is discarded")
    refuse(x.kind == "python" and not t.fits(x, dtype), "a number that may not fit")
    return cast(t, x, dtype, "unsafe")


def memory_order(x: Any) -> str:
    """F for an array that is contiguous in Fortran order but not in C order."""
    return "C" if x.is_in_order or not x.flags.f_contiguous else "F"


def laid_out(t: _core.Tracer, x: Any) -> Any:
    """x. If an axis has stride 0: a copy in the stride order that NumPy derives from the strides, because x has none.
    """
    return t.copy(x, "K") if any(type(s) is int and s == 0 for s in x.strides) else x


def lying(t: _core.Tracer, made: Any, order: str, like: Any = None) -> Any:
    """An array of this call in a memory order: C, F, or (K) that of another array."""
    wanted = t.empty(made.shape, made.dtype, order, like)
    if made.ndim < 2 or t.varying(made, wanted) == []:
        return made
    t.assign(wanted, made)
    return wanted


def are_axes(axis: Any) -> bool:
    """True for axes as NumPy's C functions accept them; lists are refused."""
    if type(axis) is Traced:
        return axis.ndim == 0
    return axis is None or is_a(axis, int | np.integer | tuple)


def normal_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front; raises AxisError."""
    refuse(is_bool(axis), "an axis that is no int")
    return np.lib.array_utils.normalize_axis_index(axis, ndim)


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    for one in axis if is_a(axis, tuple | list) else (axis,):
        refuse(is_bool(one), "an axis that is no int")
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim)


def as_result(t: _core.Tracer, x: Any) -> Any:
    """The form in which NumPy returns the result of a ufunc: a scalar if it has rank 0."""
    return t.as_scalar(x) if x.ndim == 0 else x


NO_OUT = "out= is not an array of this call"


def is_out(out: Any) -> bool:
    """True for an array that a function may write to. NumPy refuses numbers."""
    return type(out) is Traced and out.kind == "array"


def into(t: _core.Tracer, out: Any, value: Any, is_ufunc: bool = False) -> Any:
    r"""Store into out= and return it; without out the value itself.

    is_ufunc: NumPy computes in its own dtype and casts the result, and accepts a tuple of one array. Other functions compute
    in a dtype that depends on out's, so NumPy runs if that differs.
    """
    if out is None:
        return value
    if is_ufunc and is_a(out, tuple):
        (out,) = out
    check_out(out, value.shape, value.dtype, is_ufunc)
    t.assign(out, cast(t, value, out.dtype))
    return out


def check_out(out: Any, shape: Any, dtype: np.dtype, is_ufunc: bool = False) -> None:
    """Raise if out= cannot hold a result. Called before operations are recorded, of which a refused call runs none."""
    refuse(not is_out(out), NO_OUT)
    refuse(out.dtype != dtype and not is_ufunc, "out= of another dtype")
    if shape != out.shape or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError("out does not fit")


PARTS = "parts of complex numbers, whose steps decide the order of a sum"


def of_numpy(call: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the callee of a library call as a function of NumPy, which changes no operand and keeps no array. Others
    get read-only operands, which many functions of NumPy copy before they read them.
    """
    call.is_of_numpy = True  # type: ignore[attr-defined]
    return call


def careful(
    t: _core.Tracer,
    name: str,
    key: str,
    call: Any,
    xs: Any,
    shape: Any,
    dtype: np.dtype,
    *,
    elementwise: bool = False,
) -> Any:
    """A library call that raises for some contents. The original function then runs the call, with Python's handlers
    and effects.
    """
    refuse(not t.may_check(), "a call that may raise, after effects")

    def checked(*arrays: Any) -> Any:
        try:
            return call(*arrays)
        except Exception as error:
            if is_interrupt(error):
                raise
            raise _core.CheckFailed(f"{name} raises {type(error).__name__}") from None

    if hasattr(call, "is_of_numpy"):
        of_numpy(checked)
    return t.extern(name, key, checked, xs, shape, dtype, may_fail=True, elementwise=elementwise)


def library(t: _core.Tracer, may_fail: bool) -> Callable[..., Any]:
    """A function that makes library calls, which may raise for some contents if may_fail is set."""
    return functools.partial(careful, t) if may_fail else t.extern


def scalar_of(t: _core.Tracer, cls: type, x: Any) -> Any:
    """cls(x) for a class of NumPy's scalars and a traced x."""
    dtype = np.dtype(cls)
    refuse(not has_dtype(dtype), f"dtype {dtype} cannot be compiled")
    made = functions_by_id[id(np.array)].handler(t, x, dtype, copy=None)
    return as_result(t, made)


# --- functions captured from NumPy's own source -----------------------------------------------

def find(name: str, absent: set[str]) -> Any:
    """NumPy's own function of a name with points, or None. A module that NumPy imports on demand is not imported, but added to `absent`."""
    first, *parts = name.split(".")
    if parts and first not in np.__dict__:
        absent.add(f"numpy.{first}")
        return None
    found: Any = functools.reduce(lambda f, part: getattr(f, part, None), parts, getattr(np, first, None))
    if type(found) is _core.CompiledFunction:
        found = found.__wrapped__
    return found if package_of(found) == "numpy" and found.__name__ == ALIASES.get(name, name).rpartition(".")[2] else None


def load() -> set[str]:
    """Fill the tables and pass them to the C module. Returns the modules that NumPy has not imported; after it has, another call adds
    their functions.
    """
    absent: set[str] = set()
    for module, names in MODULES.items():
        for name in names.split():
            if name.startswith("."):
                methods.setdefault(name[1:], Row(name[1:], module))
            elif (found := find(name, absent)) is not None:
                functions_by_id.setdefault(id(found), Row(found, module))
    composites = importlib.import_module(f"{__package__}.composites")
    for name in (*INLINED, *composites.WRITTEN):
        found = find(name, absent)
        source = composites.WRITTEN.get(name) or getattr(found, "_implementation", found)
        if found is not None and hasattr(source, "__code__"):
            row = functions_by_id.get(id(found)) or Row(found, "").fill(None, creates=True)
            row.follow = source
            functions_by_id[id(found)] = row
    for row in list(functions_by_id.values()):  # NumPy's own code calls the functions that it wraps
        inner = getattr(row.function, "_implementation", None)
        if type(inner) is type(len):
            functions_by_id.setdefault(id(inner), row)

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            try:
                return call(*args)
            except NotCaptured:
                return NotImplemented

        return run

    _core.set_surface(
        {r.function: guarded(r.call) for r in functions_by_id.values() if r.module},
        {name: guarded(r.method) for name, r in methods.items()},
    )
    return absent
