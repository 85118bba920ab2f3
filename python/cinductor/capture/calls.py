"""What a call means, by the identity of what is called.

`TABLE` has what `builtins` understands. NumPy's functions come from the surface
(`cinductor.numpy`). Python functions with source are followed; constructors that only fill
attributes are run; everything else is unknown: a break, and the call is made with concrete values.
"""

from __future__ import annotations

import enum
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..numpy import surface, written
from ..numpy.random import DRAWS, GLOBAL, LEGACY, Draw
from ..user import PACKAGE
from .items import Flat
from .objects import (
    CONTAINER_TYPES,
    FREE_TYPES,
    MISSING,
    PURE_TYPES,
    Traced,
    find_in_class,
    foreign_in,
    is_numpys,
)
from .rewrite import STAGE, NotRewritable, rewrite
from .stage import Stage

if TYPE_CHECKING:
    from .scope import Scope

Handler = Callable[["Scope", Any, tuple[Any, ...], dict[str, Any]], Any]
TABLE: dict[int, tuple[Any, Handler]] = {}  # id of what is called -> it, its handler
NUMBER_METHODS: dict[str, Any] = {}  # what numbers of Python's have and arrays have not
FOLLOWED_STANDARD = frozenset(
    ("dataclasses", name) for name in ("replace", "_replace", "fields", "_is_dataclass_instance")
)
FOLLOWED: set[Any] = set()  # functions of NumPy's that are captured from their source
MAX_DEPTH = 60
DEBUGGERS = frozenset({"pdb", "ipdb", "pudb"})
JOINS = frozenset({np.array, np.asarray, np.stack})  # of a list, make an array of its items
STDLIB = os.path.dirname(os.__file__) + os.sep
ufunc = np.ufunc
GLOBAL_STATE = np.random.rand.__self__  # the generator behind np.random's functions


def understands(*functions: Any) -> Callable[[Handler], Handler]:
    """Enters a handler for these functions into the table."""

    def enter(handler: Handler) -> Handler:
        for f in functions:
            TABLE[id(f)] = (f, handler)
        return handler

    return enter


def understands_method(name: str) -> Callable[[Any], Any]:
    """Enters a method of Python's numbers, called with the scope, a traced number and arguments."""

    def enter(handler: Any) -> Any:
        NUMBER_METHODS[name] = handler
        return handler

    return enter


def dispatch(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) in a captured call."""
    cls = type(f)
    if cls is ufunc:
        return call_ufunc(scope, f, args, kwargs)
    found = TABLE.get(id(f))
    if found is not None:
        return found[1](scope, f, args, kwargs)
    if cls is types.FunctionType:
        return call_function(scope, f, args, kwargs)
    if cls is types.BuiltinFunctionType or cls in BOUND_KINDS:
        return call_builtin(scope, f, args, kwargs)
    if cls is types.MethodType:
        if f.__self__ is GLOBAL_STATE and f.__name__ in LEGACY:
            return call_draw(scope, Draw(scope, GLOBAL, f.__name__), args, kwargs)
        return dispatch(scope, f.__func__, (f.__self__, *args), kwargs)
    if isinstance(f, type):
        return call_class(scope, f, args, kwargs)
    if cls in UNBOUND_KINDS:
        return call_unbound(scope, f, args, kwargs)
    if cls is functools.partial:
        return call_partial(scope, f, args, kwargs)
    if cls is Draw:
        return call_draw(scope, f, args, kwargs)
    if cls is Traced:
        return call_unknown(scope, scope.stage.concrete(f), args, kwargs)  # raises
    if cls is _core.CompiledFunction:
        return dispatch(scope, f.__wrapped__, args, kwargs)
    if cls is np.vectorize:
        return call_vectorized(scope, f, args, kwargs)
    method = find_in_class(cls, "__call__")
    if type(method) is types.FunctionType and not is_numpys(cls.__module__):
        return dispatch(scope, method, (f, *args), kwargs)
    return call_unknown(scope, f, args, kwargs)


def name_of(f: Any) -> str:
    """How a report calls what is called."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
    module = getattr(f, "__module__", None)
    owner = getattr(f, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType | type):
        module = None if "." in name else type(owner).__name__
    return f"{module}.{name}" if module and module != "builtins" else name


def called_by(scope: Scope, f: Any) -> Callable[..., Any]:
    """f as a function that Python itself may call, its calls still seen."""
    return lambda *args, **kwargs: dispatch(scope, f, args, kwargs)


# --- unknown ----------------------------------------------------------------------------------


def call_unknown(
    scope: Scope,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str = "",
    is_pure: bool = False,
) -> Any:
    """A break: pending work is run, the call gets real values, its result is of unknown origin.
    is_pure: it does nothing but compute it.
    """
    stage = scope.stage
    module = getattr(f, "__module__", None)
    if isinstance(module, str) and module.partition(".")[0] in DEBUGGERS:
        stage.abandon(f"calls {name_of(f)}")  # which is to stop in the user's own frame
    if is_pure:
        stage.tracer.note_break(reason)
    else:
        stage.stop(reason or f"calls {name_of(f)}")
    args = tuple(stage.concrete(a) for a in args)
    kwargs = {k: stage.concrete(v) for k, v in kwargs.items()}
    owner = getattr(f, "__self__", None)
    if type(f) is types.MethodType or type(f) in BOUND_KINDS or type(f) is types.FunctionType:
        f = stage.concrete(f)
    elif owner is not None and stage.source_of(owner) is None:
        stage.concrete(owner)
    return stage.adopt(f(*args, **kwargs))


def call_with_foreign(
    scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], foreign: str
) -> Any:
    """A call of NumPy's that is given an object which only it knows how to read."""
    return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)} with {foreign}")


def call_pure(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the values it is given, which Python itself reads."""
    args = tuple(scope.use(a) for a in args)
    kwargs = {k: scope.use(v) for k, v in kwargs.items()}
    if any(type(a) is np.ndarray for a in args):  # ours are traced
        return call_unknown(scope, f, args, kwargs)
    return scope.stage.wrap(f(*args, **kwargs))


# --- Python's functions -----------------------------------------------------------------------


def call_function(
    scope: Scope, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Follows a function into its rewritten code."""
    stage = scope.stage
    if STAGE in f.__code__.co_freevars:
        return f(*args, **kwargs)
    bound = stage.functions.get(id(f))
    if bound is None:
        why = why_not_followed(f, scope)
        if why is None and stage.depth >= MAX_DEPTH:
            why = "is nested too deeply"
        if why is not None:
            return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)}, which {why}")
        try:
            bound = (f, bind(stage, f))
        except NotRewritable as reason:
            return call_unknown(
                scope, f, args, kwargs, f"calls {name_of(f)}, which is not followed: {reason}"
            )
        stage.functions[id(f)] = bound
    stage.depth += 1
    try:
        return bound[1](*args, **kwargs)
    finally:
        stage.depth -= 1


def why_not_followed(f: types.FunctionType, scope: Scope) -> str | None:
    """Why a Python function is not followed, or None."""
    module, file = f.__module__ or "", f.__code__.co_filename
    if getattr(f, "__cinductor_disabled__", False):
        return "is disabled: " + f.__cinductor_disabled__
    if is_numpys(module):
        if f in FOLLOWED or is_numpys(scope.fn_globals.get("__name__")):
            return None
        return "is not captured"
    if module in ("__main__", "cinductor.control", "cinductor.numpy.written"):
        return None
    if file.startswith(PACKAGE):
        return "is cinductor's own"
    if (module, f.__name__) in FOLLOWED_STANDARD or f.__name__ in ("_replace", "_asdict", "_make"):
        return None
    if file.startswith(STDLIB) and "site-packages" not in file:
        return "is in the standard library"
    if file.startswith("<frozen"):
        return "is in the standard library"
    return None


def bind(stage: Stage, f: types.FunctionType) -> types.FunctionType:
    """The rewritten function for this call; NotRewritable with a reason."""
    from .scope import Scope

    rewritten = rewrite(f)
    new = rewritten.bind(f, types.CellType(Scope(stage, f, rewritten.sites)))
    for field in ("__defaults__", "__kwdefaults__"):
        values = getattr(f, field)
        if not values:
            continue
        source = stage.source_of(f)
        items = values.values() if isinstance(values, dict) else values
        if source not in stage.anew and all(type(v) in FREE_TYPES for v in items):
            continue
        if source is None or source < 0:
            source = stage.source("const", f)
        source = stage.source("attr", source, field)
        setattr(new, field, enter_items(stage, values, source))
    return new


def enter_items(stage: Stage, values: Any, source: int) -> Any:
    """Defaults, entered: numbers among them are constants of the function, unless the next call may
    have one of its own.
    """
    is_anew = stage.sources[source][1] in stage.anew
    if is_anew:
        stage.guard_length(values, source)

    def enter(key: Any, value: Any) -> Any:
        if not is_anew and type(value) in FREE_TYPES:
            return value
        return stage.enter(value, stage.source("item", source, key))

    if isinstance(values, dict):
        return {k: enter(k, v) for k, v in values.items()}
    return tuple(enter(i, v) for i, v in enumerate(values))


def call_partial(
    scope: Scope, f: functools.partial, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Unwraps functools.partial."""
    stage = scope.stage
    source = stage.source_of(f)
    func, first, named = f.func, f.args, f.keywords
    if source is not None and source >= 0:
        func = stage.enter(func, stage.source("attr", source, "func"))
        first = enter_items(stage, first, stage.source("attr", source, "args"))
        named = enter_items(stage, named, stage.source("attr", source, "keywords"))
    return dispatch(scope, func, (*first, *args), {**named, **kwargs})


# --- NumPy --------------------------------------------------------------------------------------


def is_traced_inside(args: Any) -> bool:
    """Whether there is a traced value in the arguments, lists and tuples in them included."""
    for a in args:
        cls = type(a)
        if cls is Traced:
            return True
        if (cls in CONTAINER_TYPES or isinstance(a, tuple)) and a:
            if is_traced_inside(a.values() if isinstance(a, dict) else a):
                return True
    return False


def call_ufunc(scope: Scope, f: ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc: traced when an operand is."""
    stage = scope.stage
    if (foreign := foreign_in(args) or foreign_in(kwargs.values())) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    for a in args:
        if type(a) not in FREE_TYPES:
            args = tuple(scope.array_of(a) for a in args)
            break
    if kwargs:
        kwargs = {k: stage.deep(v) for k, v in kwargs.items() if v is not np._NoValue}
        if kwargs.get("out") is ...:  # an array also where NumPy would return a scalar
            del kwargs["out"]
            return as_array(scope, call_ufunc(scope, f, args, kwargs))
    outs = kwargs.get("out") if kwargs else None
    outs = outs if isinstance(outs, tuple) else (outs,)
    if len(args) > f.nin:
        outs = (*outs, *args[f.nin :])
    for out in outs:
        if out is not None and type(out) is Traced and stage.before_write(out):
            return eager(scope, f, args, kwargs, out)
    if is_traced_inside(args) or (kwargs and is_traced_inside(kwargs.values())):
        return f(*args, **kwargs)
    return constants(scope, f(*args, **kwargs))


def as_array(scope: Scope, value: Any) -> Any:
    """A result of `out=...`."""
    if isinstance(value, tuple):
        return tuple(as_array(scope, v) for v in value)
    return surface.array(scope.stage.tracer, value)


def eager(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """A call that writes to overlapping memory: made on real arrays, at once."""
    stage = scope.stage
    result = f(
        *(stage.concrete(a) for a in args), **{k: stage.concrete(v) for k, v in kwargs.items()}
    )
    return out if result is stage.concrete(out) else stage.adopt(result)


def constants(scope: Scope, value: Any) -> Any:
    """The result of a pure NumPy function of constants."""
    if type(value) is np.ndarray:
        return scope.stage.constant(value)
    if type(value) is tuple or type(value) is list:
        return type(value)(constants(scope, v) for v in value)
    return value


def call_surface(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's that the surface has."""
    stage = scope.stage
    if f in JOINS and len(args) == 1 and not kwargs and type(args[0]) is list:
        rows = stage.regions.rows_of(args[0])
        if rows is not None:
            return stage.tracer.copy(rows, "K")
    args = tuple(scope.item(a, slice(None)) if type(a) is Flat else a for a in args)
    if (foreign := foreign_in(args) or foreign_in(kwargs.values())) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    args = tuple(a if type(a) in FREE_TYPES else stage.deep(a) for a in args)
    if kwargs:
        kwargs = {k: v if type(v) in FREE_TYPES else stage.deep(v) for k, v in kwargs.items()}
        if type(out := kwargs.get("out")) is Traced and stage.before_write(out):
            return eager(scope, f, args, kwargs, out)
    stage.regions.look_at_class(args)
    row = surface.functions_by_id[id(f)]
    if row.handler is None:
        return call_function(scope, row.follow, args, kwargs)
    if row.writes and args and type(args[0]) is Traced and stage.before_write(args[0]):
        return eager(scope, f, args, kwargs, args[0])
    if not row.creates and not is_traced_inside(args) and not is_traced_inside(kwargs.values()):
        return constants(scope, f(*args, **kwargs))
    try:
        return row.call(stage.tracer, args, kwargs)
    except surface.NotCaptured as why:
        if row.follow is not None:
            return call_function(scope, row.follow, args, kwargs)
        is_pure = not row.writes and not kwargs and f.__module__ != "numpy.random"
        text = f"calls {name_of(f)}: {why}"
        return call_unknown(scope, f, args, kwargs, text, is_pure and not takes_functions(args))


def takes_functions(args: tuple[Any, ...]) -> bool:
    """Whether something among the arguments may run code of the user's."""
    return any(callable(a) or type(a) not in FREE_TYPES for a in args)


def call_array_method(
    scope: Scope, f: Any, owner: Traced, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a traced value."""
    stage = scope.stage
    if (foreign := foreign_in(args) or foreign_in(kwargs.values())) is not None:
        return call_with_foreign(scope, getattr(stage.concrete(owner), name), args, kwargs, foreign)
    args = tuple(a if type(a) in FREE_TYPES else stage.deep(a) for a in args)
    if kwargs:
        kwargs = {k: v if type(v) in FREE_TYPES else stage.deep(v) for k, v in kwargs.items()}
        if type(out := kwargs.get("out")) is Traced and stage.before_write(out):
            return eager(scope, getattr(stage.concrete(owner), name), args, kwargs, out)
    if name == "setflags":
        stage.abandon("sets flags of an array")
    if name in surface.WRITING_METHODS and stage.before_write(owner):
        return eager(scope, getattr(stage.concrete(owner), name), args, kwargs, owner)
    row = surface.methods.get(name)
    if name in NUMBER_METHODS and not args and not kwargs and stage.may_check():
        if owner.kind != "array" and hasattr(owner.__class__, name) and not owner.is_expression:
            return NUMBER_METHODS[name](scope, owner, args)
    if row is None:
        return stage.adopt(f(*args, **kwargs))  # the traced value itself breaks
    try:
        return row.method(stage.tracer, owner, args, kwargs)
    except surface.NotCaptured as why:
        if name in surface.WRITING_METHODS or kwargs:
            stage.stop(f"calls ndarray.{name}: {why}")
        else:
            stage.tracer.note_break(f"calls ndarray.{name}: {why}")
        real = getattr(stage.concrete(owner), name)
        return stage.adopt(real(*stage.concrete(args), **stage.concrete(kwargs)))


# --- builtin functions and methods --------------------------------------------------------

BOUND_KINDS = frozenset(
    {types.MethodWrapperType, type(_core.Tracer("", options={}).array(np.zeros(1)).sum)}
)
UNBOUND_KINDS = frozenset(
    {
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
        types.ClassMethodDescriptorType,
        type(np.sum),
    }
)
READERS = {
    list: frozenset("index count copy __len__ __contains__ __getitem__ __iter__".split()),
    tuple: frozenset("index count __len__ __contains__ __getitem__ __iter__".split()),
    dict: frozenset("get items keys values copy __len__ __contains__ __getitem__".split()),
    set: frozenset(
        "copy difference intersection isdisjoint issubset issuperset union "
        "symmetric_difference __len__ __contains__".split()
    ),
}


def call_builtin(
    scope: Scope, f: types.BuiltinFunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A C function, or a method bound to what is in its __self__."""
    owner = f.__self__
    cls = type(owner)
    if owner is None or cls is types.ModuleType:
        if getattr(f, "__module__", None) in ("math", "cmath", "_operator"):
            return call_pure(scope, f, args, kwargs)
        if is_numpys(scope.fn_globals.get("__name__")) and not is_traced_inside(args):
            return call_pure(scope, f, args, kwargs)
        return call_unknown(scope, f, args, kwargs)
    if cls is Traced:
        return call_array_method(scope, f, owner, f.__name__, args, kwargs)
    if cls in (list, dict, set) or isinstance(owner, tuple):
        return call_container(scope, f, owner, args, kwargs)
    if cls is ufunc:
        return call_ufunc_method(scope, f, args, kwargs)
    if cls in PURE_TYPES:
        if cls is str and f.__name__ == "join" and args:
            args = (list(scope.iter(args[0])),)
        return call_pure(scope, f, args, kwargs)
    if isinstance(owner, type) and (owner in PURE_TYPES or is_numpys(owner.__module__)):
        args = tuple(list(scope.iter(a)) if hasattr(type(a), "__next__") else a for a in args)
        return call_pure(scope, f, args, kwargs)
    if f is getattr(object, "__init__", None) or f.__name__ in ("__init__", "__new__"):
        if getattr(f, "__objclass__", None) is object or owner is object:
            return f(*args, **kwargs)
    if isinstance(owner, enum.Enum | np.dtype | np.generic | BaseException):
        return call_pure(scope, f, args, kwargs)
    return call_unknown(scope, f, args, kwargs)


def call_container(
    scope: Scope, f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a list, tuple, dict or set."""
    stage, name = scope.stage, f.__name__
    if id(owner) in stage.regions.growing and name == "append" and len(args) == 1:
        stage.regions.touch(owner)
        return f(*args)
    kind = next(k for k in READERS if isinstance(owner, k))
    source = stage.source_of(owner)
    if source is None:
        if name in ("extend", "update") and args:
            first = args[0]
            if isinstance(owner, list):
                args = (list(scope.iter(first)),)
            elif isinstance(first, dict):
                args = (stage.shallow(first), *args[1:])
            else:
                args = (list(scope.iter(first)), *args[1:])
        elif name == "sort" and kwargs.get("key") is not None:
            kwargs = {**kwargs, "key": called_by(scope, kwargs["key"])}
        if name not in READERS[kind] and not isinstance(owner, tuple):
            stage.regions.touch(owner)
        return stage.wrap(f(*args, **kwargs))
    if name in READERS[kind]:
        if kind is set:
            stage.use(owner)
            return f(*(scope.use(a) for a in args))
        inside = stage.shallow(owner)
        return getattr(inside, name)(*(scope.use(a) for a in args), **kwargs)
    stage.effect(f"changes a {type(owner).__name__} that outlives the call ({name})")
    if name in ("extend", "update", "sort"):
        stage.tracer.flush()
    args = tuple(stage.concrete(a) for a in args)
    kwargs = {k: stage.concrete(v) for k, v in kwargs.items()}
    return stage.adopt(f(*args, **kwargs))


def call_ufunc_method(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """np.add.reduce and its like."""
    stage = scope.stage
    if (foreign := foreign_in(args) or foreign_in(kwargs.values())) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    if f.__name__ == "at":  # its index may be a tuple, which is no array
        args = tuple(stage.deep(a) for a in args)
        if args and type(args[0]) is Traced and not stage.before_write(args[0]) and not kwargs:
            return call_ufunc_at(scope, f, args)
        return call_unknown(scope, f, args, kwargs)
    args = tuple(scope.array_of(a) for a in args)
    kwargs = {k: stage.deep(v) for k, v in kwargs.items()}
    if (out := kwargs.get("out")) is ...:
        del kwargs["out"]
        return as_array(scope, call_ufunc_method(scope, f, args, kwargs))
    if type(out) is Traced and stage.before_write(out):
        return eager(scope, f, args, kwargs, out)
    if is_traced_inside(args) or is_traced_inside(kwargs.values()):
        return f(*args, **kwargs)
    return constants(scope, f(*args, **kwargs))


def call_draw(scope: Scope, f: Draw, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a Generator that later calls find again."""
    stage = scope.stage
    table = LEGACY if f.generator is GLOBAL else DRAWS
    source = stage.source("const", GLOBAL) if table is LEGACY else stage.source_of(f.generator)
    method = getattr(f.generator, f.name)
    if source is None or source < 0:
        return call_unknown(scope, method, args, kwargs)
    if (foreign := foreign_in(args) or foreign_in(kwargs.values())) is not None:
        return call_with_foreign(scope, method, args, kwargs, foreign)
    args = tuple(a if type(a) in FREE_TYPES else stage.deep(a) for a in args)
    kwargs = {k: v if type(v) in FREE_TYPES else stage.deep(v) for k, v in kwargs.items()}
    if id(f.generator) not in stage.draws:
        stage.draws[id(f.generator)] = (f.generator, f.generator.bit_generator.state)
    address = stage.tracer.scalar(id(f.generator), stage.source("address", source))
    try:
        return table[f.name](stage.tracer, address, *args, **kwargs)
    except (surface.NotCaptured, TypeError, ValueError, OverflowError) as why:
        return call_unknown(scope, method, args, kwargs, f"calls {name_of(method)}: {why}")


def call_vectorized(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of np.vectorize's: a loop over elements, where its function is followed."""
    stage = scope.stage
    otypes, function = f.otypes, f.pyfunc
    args = tuple(stage.deep(a) for a in args)
    plain = not kwargs and not f.excluded and f.signature is None and len(otypes or "1") == 1
    has_array = any(type(a) is Traced and a.ndim and stage.tracer.is_positive(a.size) for a in args)
    if not plain or not has_array or type(function) is not types.FunctionType or f.cache:
        return call_unknown(scope, f, args, kwargs)
    source = stage.source_of(f)
    if source is not None and source >= 0:
        function = stage.enter(function, stage.source("attr", source, "pyfunc"))
    return call_function(scope, written.vectorized, (function, otypes, *args), {})


def call_ufunc_at(scope: Scope, f: Any, args: tuple[Any, ...]) -> Any:
    """np.add.at and its like."""
    row = surface.Row(f, functools.partial(surface_at, ufunc=f.__self__))
    try:
        return row.call(scope.stage.tracer, args, {})
    except surface.NotCaptured as why:
        return call_unknown(scope, f, args, {}, f"calls {name_of(f)}: {why}")


def surface_at(t: Any, *args: Any, ufunc: Any) -> None:
    """The surface's own ufunc.at."""
    from ..numpy.index import ufunc_at

    ufunc_at(t, ufunc, *args)


def call_unbound(scope: Scope, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """list.append(x, ...), np.ndarray.sum(x): the method of the first argument."""
    owner = getattr(f, "__objclass__", None)
    if owner is np.ndarray and args and type(args[0]) is Traced:
        name = f.__name__
        method = getattr(args[0], name, None)
        if method is not None:
            return call_array_method(scope, method, args[0], name, args[1:], kwargs)
    elif owner is object and f.__name__ in ("__init__", "__init_subclass__"):
        return f(*args, **kwargs)
    elif owner in PURE_TYPES and args and isinstance(args[0], owner):
        if type(args[0]) in PURE_TYPES:
            return dispatch(scope, getattr(args[0], f.__name__), args[1:], kwargs)
    return call_unknown(scope, f, args, kwargs)


# --- classes ------------------------------------------------------------------------------------


def call_class(scope: Scope, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A constructor."""
    stage = scope.stage
    if issubclass(cls, np.generic):
        return call_numpy_scalar(scope, cls, args, kwargs)
    if issubclass(cls, BaseException) and cls.__module__ == "builtins":
        return cls(*(stage.concrete(scope.use(a)) for a in args), **kwargs)
    if issubclass(cls, enum.Enum) or cls in PURE_CLASSES:
        return call_pure(scope, cls, args, kwargs)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        code = getattr(cls.__new__, "__code__", None)
        if code is not None and code.co_filename[:1] == "<":
            return cls(*args, **kwargs)
    if type(cls) is not type or is_numpys(cls.__module__):
        return call_unknown(scope, cls, args, kwargs)
    init = find_in_class(cls, "__init__")
    made_by_object = find_in_class(cls, "__new__") in (object.__new__, object.__dict__["__new__"])
    if "__dataclass_fields__" in cls.__dict__ and made_by_object:
        if type(init) is types.FunctionType and init.__code__.co_filename == "<string>":
            return make_dataclass(scope, cls, args, kwargs)
    elif made_by_object and not is_standard(cls):
        if init is object.__dict__["__init__"]:
            return cls(*args, **kwargs)
        if type(init) is types.FunctionType:
            new = object.__new__(cls)
            if (result := dispatch(scope, init, (new, *args), kwargs)) is not None:
                raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
            return new
    return call_unknown(scope, cls, args, kwargs)


def make_dataclass(scope: Scope, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A dataclass: its __init__ only fills attributes; its __post_init__ is followed."""
    after = find_in_class(cls, "__post_init__")
    if after is MISSING:
        return cls(*args, **kwargs)
    if type(after) is not types.FunctionType or find_in_class(cls, "__init_subclass__") not in (
        object.__dict__["__init_subclass__"],
    ):
        return call_unknown(scope, cls, args, kwargs)
    given: list[Any] = []

    def note(self: Any, *values: Any) -> None:
        given.extend(values)

    without = type(cls.__name__, (cls,), {"__post_init__": note, "__slots__": ()})
    made = object.__new__(without)
    cls.__init__(made, *args, **kwargs)
    object.__setattr__(made, "__class__", cls)
    dispatch(scope, after, (made, *given), {})
    return made


def is_standard(cls: type) -> bool:
    """Whether a class comes with Python."""
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names and (
        cls.__module__ != "__main__"
    )


def call_numpy_scalar(
    scope: Scope, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """np.float32(x)"""
    if (foreign := foreign_in(args)) is not None:
        return call_with_foreign(scope, cls, args, kwargs, foreign)
    if len(args) == 1 and not kwargs:
        value = scope.array_of(args[0]) if type(args[0]) in (list, tuple) else args[0]
        if type(value) is Traced:
            try:
                return surface.scalar_of(scope.stage.tracer, cls, value)
            except surface.NotCaptured as why:
                return call_unknown(scope, cls, (value,), {}, f"calls {name_of(cls)}: {why}")
    return constants(scope, cls(*(scope.use(a) for a in args), **kwargs))


PURE_CLASSES = frozenset(
    {np.dtype, np.finfo, np.iinfo, complex, str, bytes, slice, range, type({})}
)
