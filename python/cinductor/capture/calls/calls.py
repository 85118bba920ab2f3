"""Dispatches calls by the identity of the callee.

`TABLE` has the functions that `builtins` implements. NumPy's functions come from the surface (`numpy_calls`).
Python functions with source are inlined (`functions`). Constructors that only fill attributes are run. Any other
callee is unknown: the call is a break and is made with real values.
"""

from __future__ import annotations

import enum
import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a, module_of, package_of
from ...extensions import UserOperation
from ...numpy.generator_state import is_python_generator
from ...numpy.python_random import PYTHON_DRAWS
from ...numpy.random import GLOBAL, LEGACY, Draw, is_global_state
from ...numpy.surface import NotCaptured, folds
from .. import identity
from ..container_rows import MAPPINGS, ROWS, UNKNOWN, MethodEffect
from ..containers import methods_of, only_reads
from ..control import tuples
from ..control.given_mappings import want_mapping
from ..control.mappings import guard_empty, is_open_key, want_given
from ..iterators import ATOMS, Called
from ..objects import (
    BOUND,
    MISSING,
    PURE_TYPES,
    VIEWS_OF_DICTS,
    Method,
    Traced,
    asks_length,
    attribute,
    contains_traced,
    defines,
    find_in_class,
    hooked_in,
    is_numpys,
    is_record,
    is_standard,
)
from ..records import record_append
from . import functions
from .functions import (
    call_function,
    call_owned,
    call_pure,
    call_unknown,
    enter_items,
    guard_body,
)
from .numpy_calls import (
    call_array_method,
    call_draw,
    call_numpy_scalar,
    call_ufunc,
    call_ufunc_method,
    call_vectorized,
    ufunc,
)

if TYPE_CHECKING:
    from ..kinds import Hooks

Handler = Callable[["Hooks", Any, tuple[Any, ...], dict[str, Any]], Any]
TABLE: dict[int, tuple[Any, Handler]] = {}  # id of the callee -> the callee, its handler
FAMILIES: list[tuple[Any, Handler]] = []
# For modules that are imported on demand, before which their functions cannot be called: what enters the rows.
LATE: dict[str, list[Callable[[], object]]] = {}
UNREAD: dict[int, str] = {}  # id of the callee -> the module of this package that enters its row


def understands(*functions: Any) -> Callable[[Handler], Handler]:
    """Register a handler for these functions."""

    def enter(handler: Handler) -> Handler:
        for f in functions:
            enter_row(id(f), f, handler)
        return handler

    return enter


def understands_family(*functions: Any) -> Callable[[Handler], Handler]:
    """Register a handler for those of these functions that have no row of their own."""

    def enter(handler: Handler) -> Handler:
        FAMILIES.extend((f, handler) for f in functions)
        return handler

    return enter


def understands_late(module: str, *names: str) -> Callable[[Handler], Handler]:
    """Register a handler for functions of a module that may not be imported yet."""

    def enter(handler: Handler) -> Handler:
        def enter_all() -> None:
            understands(*(getattr(sys.modules[module], name) for name in names))(handler)

        LATE.setdefault(module, []).append(enter_all)
        return handler

    return enter


def enter_late() -> None:
    """Register the rows of modules that have been imported since."""
    for module in [m for m in list(LATE) if m in sys.modules]:
        for enter in LATE.pop(module, ()):
            enter()


def understood_by(module: str, *functions: Any) -> None:
    """Register functions whose handlers are in a module of this package that the first call of one of them imports."""
    for f in functions:
        enter_row(id(f), f, read_handler)
        UNREAD[id(f)] = module


def read_handler(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Import the module that has the handler, which then takes the call."""
    importlib.import_module(f"{__package__}.{UNREAD[id(f)]}")
    enter_families(frozenset(key for key in TABLE if TABLE[key][1] is not read_handler))
    return TABLE[id(f)][1](scope, f, args, kwargs)


def enter_row(key: int, f: Any, handler: Handler) -> None:
    """A function of a library has one row, whatever the order of registration: the user may have put another in its place. A late module
    enters its rows again if an exception ended its import.
    """
    if not package_of(f):
        return
    if key in TABLE and UNREAD.get(key) != handler.__module__.rpartition(".")[2]:
        raise AssertionError(f"two rows for {f!r}: {TABLE[key][1].__name__}, {handler.__name__}")
    TABLE[key] = (f, handler)


def enter_families(own: frozenset[int]) -> None:
    """Called after all functions with their own rows are registered: `own`."""
    for f, handler in FAMILIES:
        if id(f) not in own:
            enter_row(id(f), f, handler)
    FAMILIES.clear()


BY_KEY = frozenset({"get", "setdefault", "add", "__contains__", "pop", "remove", "discard"})  # methods of dicts and sets
ORDERLESS = frozenset(map(id, (len, isinstance, bool, callable)))  # of a set these read no order


def dispatch(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) in a captured call."""
    cls = type(f)
    if not identity.SETS.isdisjoint(map(type, args)) and id(f) not in ORDERLESS:
        identity.note_order(scope.stage.sources, args)
    if cls is types.BuiltinFunctionType and type(f.__self__) is set and f.__name__ == "pop":
        identity.note_order(scope.stage.sources, (f.__self__,))
    if functions.ROWS and (other := functions.instead_of(scope, f)) is not None:
        return functions.call_lowered(scope, f, other, args, kwargs)
    if cls is ufunc:
        return call_ufunc(scope, f, args, kwargs)
    if cls is Method and (row := folds.get(f.__name__)) is not None:
        try:
            if (made := f.fold(*row, args, kwargs)) is not NotImplemented:
                return made
        except NotCaptured:
            pass  # the handler says what happens
    if not LATE.keys().isdisjoint(sys.modules.keys()):
        enter_late()
    found = TABLE.get(id(f))
    if found is not None:
        return found[1](scope, f, args, kwargs)
    if (call := BY_CLASS.get(cls)) is not None:
        return call(scope, f, args, kwargs)
    if is_a(f, type):
        return call_class(scope, f, args, kwargs)
    if is_a(f, UserOperation):
        return call_owned(scope, f, args, kwargs)
    method = scope.stage.sources.class_attr(cls, "__call__")
    if type(method) is types.FunctionType and not is_numpys(module_of(cls)):
        return dispatch(scope, method, (f, *args), kwargs)
    return call_unknown(scope, f, args, kwargs)


def call_bound(scope: Hooks, f: types.MethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method in Python, with its object."""
    name, owner = f.__name__, f.__self__
    if name in PYTHON_DRAWS and is_python_generator(owner):
        return call_draw(scope, Draw(scope, owner, name), args, kwargs)
    if name in LEGACY and is_global_state(owner):
        return call_draw(scope, Draw(scope, GLOBAL, name), args, kwargs)
    return dispatch(scope, f.__func__, (owner, *args), kwargs)


def called_by(scope: Hooks, f: Any) -> Callable[..., Any]:
    """A function that Python itself may call with f's effect, so that its calls are captured."""
    return Called(scope, f)


def call_partial(
    scope: Hooks, f: functools.partial, args: tuple[Any, ...], kwargs: dict[str, Any]  # type: ignore[type-arg]
) -> Any:
    """Unwraps functools.partial."""
    stage = scope.stage
    source = stage.sources.source_of(f)
    func, first, named = f.func, f.args, f.keywords
    if source is not None and source >= 0:
        func = stage.lift_guarded(func, stage.sources.source("attr", source, "func"))
        first = enter_items(stage, first, stage.sources.source("attr", source, "args"))
        named = enter_items(stage, named, stage.sources.source("attr", source, "keywords"))
    return dispatch(scope, func, (*first, *args), {**named, **kwargs})


# --- builtin functions and methods --------------------------------------------------------


def call_builtin(
    scope: Hooks, f: types.BuiltinFunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A C function, or a method bound to what is in its __self__."""
    owner = f.__self__
    cls = type(owner)
    if owner is None or cls is types.ModuleType:
        return call_unknown(scope, f, args, kwargs)
    if cls is Traced:
        return call_array_method(scope, f, owner, f.__name__, args, kwargs)  # type: ignore[arg-type]
    if f.__name__ in PYTHON_DRAWS and is_python_generator(owner):
        return call_draw(scope, Draw(scope, owner, f.__name__), args, kwargs)
    if cls in VIEWS_OF_DICTS and (shown := scope.stage.lift_items(owner)) is not owner:
        return dispatch(scope, iter, (owner,), kwargs) if f.__name__ == "__iter__" else getattr(shown, f.__name__)(*map(scope.use, args))
    if (methods := methods_of(owner)) is not None:
        return call_method(scope, f, owner, methods.get(f.__name__, UNKNOWN), args, kwargs)
    if cls is ufunc:
        return call_ufunc_method(scope, f, args, kwargs)
    if f.__name__ in PROTOCOLS and scope.stage.sources.source_of(owner) is None:
        return PROTOCOLS[f.__name__](scope, owner, *args)
    if f.__name__ == "__new__" and owner in PURE_TYPES and args[:1] != (owner,):
        return call_unknown(scope, f, args, kwargs)  # an object of a user's class
    if only_reads(owner, f.__name__):
        iterates = (cls is str and f.__name__ == "join") or is_a(owner, type)
        args = tuple(list(scope.iter(a)) if iterates and defines(type(a), "__next__") else a for a in args)
        if cls is str:  # `format` formats its arguments
            args, kwargs = tuple(map(scope.as_text, args)), {k: scope.as_text(v) for k, v in kwargs.items()}
        return call_pure(scope, f, args, kwargs)
    if f.__name__ == "__init__" and attribute(f, "__objclass__") is object:
        return f(*args, **kwargs)
    if f.__name__ == "__new__" and owner is object:
        return make_object(scope, f, args, kwargs)
    return call_unknown(scope, f, args, kwargs)


PROTOCOLS: dict[str, Callable[..., Any]] = {
    "__next__": lambda scope, owner: dispatch(scope, next, (owner,), {}),
    "__setattr__": lambda scope, owner, *given: by_object(scope, object.__setattr__, owner, given),
    "__delattr__": lambda scope, owner, *given: by_object(scope, object.__delattr__, owner, given),
}


def by_object(scope: Hooks, f: Any, owner: Any, given: tuple[Any, ...]) -> Any:
    """object's own method to set or delete an attribute. A class may have another one, which it bypasses."""
    sources, cls = scope.stage.sources, type(owner)
    if sources.class_attr(cls, f.__name__) is f and len(given) == 1 + (f is object.__setattr__):
        return scope._set_attr(*given, owner) if len(given) == 2 else scope._del_attr(*given, owner)
    if len(given) != 2 or sources.source_of(owner) is not None:
        return call_unknown(scope, f, (owner, *given), {})
    return scope._set_plainly(*given, owner)


def make_object(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """object.__new__(cls): its deallocation can only be observed if its class has `__del__`."""
    if args and is_a(args[0], type) and find_in_class(args[0], "__del__") is not MISSING:
        return call_unknown(scope, f, args, kwargs)
    return f(*args, **kwargs)


def call_method(
    scope: Hooks, f: Any, owner: Any, method: MethodEffect, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a container."""
    name = f.__name__
    grown = scope.stage.state.lists.get(id(owner))
    if grown is not None and grown.is_sized:
        grown.materialise("a list grows after a loop")
    elif grown is not None and (made := grown.method(scope, name, args, kwargs)) is not MISSING:
        return made
    if args and is_open_key(scope, owner, args[0]) and name in BY_KEY:
        want_mapping(scope, owner, args[0], *(args[1:] if name == "setdefault" else ()))
        if not owner and name in ("get", "pop") and len(args) == 2:
            guard_empty(scope, owner)
            return args[1]
    if args and is_a(owner, dict | set | frozenset):
        args = (hashed(scope, owner, args[0]), *args[1:])
    if type(owner) in ROWS and ROWS[type(owner)].is_memory and contains_traced((*args, *kwargs.values())):
        scope.stage.sources.note_opaque(owner)
    if scope.stage.sources.source_of(owner) is None:
        return call_new_container(scope, f, owner, method, args, kwargs)
    if type(owner) in ROWS and not ROWS[type(owner)].outlives:
        return call_unknown(scope, f, args, kwargs)
    return call_container(scope, f, owner, method, args, kwargs)


def hashed(scope: Hooks, owner: Any, key: Any) -> Any:
    """A key that a dict or set hashes. The hash of a NaN is that of one object: Python runs a call with one. After an effect the
    key is real, and so are those of a container that the call has made.
    """
    if type(key) is Traced and key.kind != "array" and key.dtype.kind in "fc" and hash(key) and key != key:  # noqa: PLR0124
        stage = scope.stage
        stage.effects.abandon("looks for a NaN by its hash, which is that of one object")
        if stage.sources.source_of(owner) is None:
            stage.materialise(owner)
        return stage.materialise(key)
    return key


def call_container(
    scope: Hooks, f: Any, owner: Any, method: MethodEffect, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a container that outlives the call."""
    stage, name = scope.stage, f.__name__
    if method.views and name == "__iter__":
        return dispatch(scope, iter, (owner, *args), kwargs)
    if method.views:
        view = f(*args, **kwargs)
        stage.sources.note_opaque(view)
        return view
    if not method.changes:
        if is_a(owner, set):
            scope.use(owner)
            return f(*(scope.use(a) for a in args))
        inside = stage.lift_items(owner)
        if method.compares and is_a(owner, dict):
            scope.use([*inside])  # keys are hashed and compared, values are not read
        elif method.compares:
            inside = stage.lifting.own(scope.use(inside))
        args = tuple(stage.lifting.own(scope.use(a)) for a in args)
        if is_a(owner, dict):
            args = (*map(functools.partial(hashed, scope, owner), args[:1]), *args[1:])
        else:
            inside, args = comparable(scope, inside, args)
        return getattr(inside, name)(*args, **kwargs)
    if type(owner) is list and (name, len(args)) == ("append", 1) and not kwargs and record_append(scope, owner, args[0]):
        return None
    if stage.tracer.in_region:
        want_given(scope, owner)
    loses = method.kept == UNKNOWN.kept
    (stage.change if loses else stage.effects.change)(owner, f"changes a {type(owner).__name__} that outlives the call ({name})")
    if method.compares or method.iterates:
        stage.tracer.flush()
    args = tuple(stage.materialise(a) for a in args)
    kwargs = {k: stage.materialise(v) for k, v in kwargs.items()}
    return scope.lifted_once(f(*args, **kwargs))


def comparable(scope: Hooks, owner: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A sequence and the arguments of a method that compares its items with them."""
    stage = scope.stage
    if not args or tuples.may_compare(scope, [*tuples.nans_among(owner, args[0]), *tuples.nans_in(owner, args[0])]):
        return owner, args
    return stage.materialise(owner), tuple(map(stage.materialise, args))


def call_new_container(
    scope: Hooks, f: Any, owner: Any, method: MethodEffect, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a container made in the call."""
    stage, name = scope.stage, f.__name__
    if name in OPERATORS and not is_a(owner, tuple | set):
        return call_operator(scope, owner, name, args)
    if method.iterates and args:
        first, is_keyed = args[0], is_a(owner, dict | set)
        if is_keyed and type(first) in MAPPINGS:
            args = (stage.lift_items(first), *args[1:])
        elif stage.sources.defines(type(first), "keys") if is_keyed else asks_length(first):
            return call_unknown(scope, f, args, kwargs)
        else:
            args = (list(scope.iter(first)), *args[1:])
    has_key = name == "sort" and kwargs.get("key") is not None
    if has_key:
        kwargs = {**kwargs, "key": called_by(scope, kwargs["key"])}
    if method.compares and not has_key and hooked_in((owner,)) is not None:
        return call_unknown(scope, f, args, kwargs)
    args = tuple(scope.use(a) if k < method.kept else a for k, a in enumerate(args))
    if method.compares and not is_a(owner, dict | set):
        scope.use(owner)
        own = owner if name == "sort" else stage.lifting.own(owner)
        own, args = comparable(scope, own, tuple(map(stage.lifting.own, args)))
        if own is not owner and name == "remove":
            return scope._del_item(own.index(*args), owner) if args[0] in own else f(*args)
        f = getattr(own, name)
    if method.changes and not is_a(owner, tuple):
        (stage.state.before_pop if method.is_final else stage.state.before_change)(owner)
    return stage.lift_array(f(*args, **kwargs))


OPERATORS = frozenset({"__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__"})


def call_operator(scope: Hooks, owner: Any, name: str, args: tuple[Any, ...]) -> Any:
    """An operator of a list or dict, called by name."""
    if name == "__setitem__" and len(args) == 2:
        return scope._set_item(args[0], args[1], owner)
    if name == "__delitem__" and len(args) == 1:
        return scope._del_item(args[0], owner)
    return scope.augment(name.strip("_"), owner, *args)


def call_unbound(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """list.append(x, ...), np.ndarray.sum(x): the method of the first argument."""
    owner = attribute(f, "__objclass__")
    if owner is np.ndarray and args and type(args[0]) is Traced:
        name = f.__name__
        method = getattr(args[0], name, None)
        if method is not None:
            return call_array_method(scope, method, args[0], name, args[1:], kwargs)
    elif owner is object and f.__name__ in ("__init__", "__init_subclass__"):
        return f(*args, **kwargs)
    elif owner is object and f.__name__ in PROTOCOLS and args:
        return PROTOCOLS[f.__name__](scope, *args)
    elif owner in PURE_TYPES and args and is_a(args[0], owner):
        if type(args[0]) in PURE_TYPES:
            return dispatch(scope, getattr(args[0], f.__name__), args[1:], kwargs)
    return call_unknown(scope, f, args, kwargs)


# --- classes ------------------------------------------------------------------------------------


def call_class(scope: Hooks, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A constructor."""
    stage = scope.stage
    if issubclass(cls, np.generic):
        return call_numpy_scalar(scope, cls, args, kwargs)
    if stage.sources.class_attr(cls, "__del__") is not MISSING:
        return call_unknown(scope, cls, args, kwargs)
    if issubclass(cls, BaseException) and module_of(cls) == "builtins":
        return cls(*(stage.forced(scope.use(a)) for a in args), **kwargs)
    if issubclass(cls, enum.Enum):
        return (call_pure if is_lookup(stage, cls, args, kwargs) else call_unknown)(scope, cls, args, kwargs)
    if is_record(cls) and cls is not tuple:
        stage.sources.class_attr(cls, "__new__")
        if type(cls.__new__) is types.FunctionType:
            guard_body(stage, cls.__new__)
        return cls(*args, **kwargs)
    has_own_call = type(cls) is not type and stage.sources.class_attr(type(cls), "__call__") is not type.__dict__["__call__"]
    if has_own_call or is_numpys(module_of(cls)):
        return call_unknown(scope, cls, args, kwargs)
    init = stage.sources.class_attr(cls, "__init__")
    made_by_object = stage.sources.class_attr(cls, "__new__") in (object.__new__, object.__dict__["__new__"])
    if made_by_object and (not is_standard(cls) or (module_of(cls), cls.__name__) in functions.INLINED_STANDARD):
        for name in ("__post_init__", "__setattr__", "__abstractmethods__"):
            stage.sources.class_attr(cls, name)
        if init is object.__dict__["__init__"]:
            return scope.born(cls(*args, **kwargs))
        if type(init) is types.FunctionType:
            if init.__code__.co_filename == "<string>":
                if only_fills(cls, init):
                    guard_body(stage, init)
                    for name, cell in zip(init.__code__.co_freevars, init.__closure__ or (), strict=True):  # among them factories
                        stage.sources.check_once(stage.sources.source_of_free(init, name), "is", cell.cell_contents)
                    return make_dataclass(scope, cls, args, kwargs)
                return call_unknown(scope, cls, args, kwargs)
            new = scope.born(object.__new__(cls))
            if (result := dispatch(scope, init, (new, *args), kwargs)) is not None:
                raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
            return new
    return call_unknown(scope, cls, args, kwargs)


ENUMS_OWN = [c.__dict__["_missing_"] for c in (enum.Enum, enum.Flag)]


def is_lookup(stage: Any, cls: type[enum.Enum], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if an Enum is asked for the member of a value, and none of the user's code answers: a metaclass, `_missing_`, or
    the value's class.
    """
    by_value = stage.sources.class_attr(type(cls), "__call__") is enum.EnumMeta.__dict__["__call__"]
    is_own = stage.sources.class_attr(cls, "_missing_") in ENUMS_OWN
    if not by_value or len(args) != 1 or kwargs or type(args[0]) not in (*ATOMS, Traced, cls):
        return False
    return is_own or (type(args[0]) is not Traced and args[0] in cls._value2member_map_)


SET_BY_DATACLASS = frozenset({"__setattr__", "__post_init__"})
FACTORIES = (list, dict, set, tuple)


def only_fills(cls: type, init: types.FunctionType) -> bool:
    """True if an __init__ is a dataclass's own and only sets attributes, without code of the user: no factory,
    __setattr__ or descriptor.
    """
    fields = cls.__dict__.get("__dataclass_fields__")
    if fields is None or not SET_BY_DATACLASS.union(fields).issuperset(init.__code__.co_names):
        return False
    found = [find_in_class(cls, name) for name in fields]
    is_frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    calls = [f.default_factory for f in fields.values() if f.default_factory is not sys.modules["dataclasses"].MISSING]
    cells = {id(cell.cell_contents) for cell in init.__closure__ or ()}
    return (
        (is_frozen or cls.__setattr__ is object.__setattr__)  # type: ignore[comparison-overlap]
        and all(factory in FACTORIES and id(factory) in cells for factory in calls)
        and all(type(f) is SLOT or not defines(type(f), "__set__") for f in found)
    )


SLOT = types.MemberDescriptorType


def make_dataclass(scope: Hooks, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a dataclass: its __init__ only fills attributes; its __post_init__ is inlined."""
    after = scope.stage.sources.class_attr(cls, "__post_init__")
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
    made = object.__new__(without)  # type: ignore[var-annotated]
    cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
    object.__setattr__(made, "__class__", cls)
    dispatch(scope, after, (made, *given), {})
    return made


# The handler of callables of exactly this class.
BY_CLASS: dict[type, Handler] = {
    types.FunctionType: call_function,
    types.MethodType: call_bound,
    **dict.fromkeys((types.BuiltinFunctionType, *types.BuiltinFunctionType.__subclasses__(), *BOUND), call_builtin),
    **dict.fromkeys((types.MethodDescriptorType, types.WrapperDescriptorType), call_unbound),
    **dict.fromkeys((types.ClassMethodDescriptorType, type(np.sum)), call_unbound),
    functools.partial: call_partial,
    Draw: call_draw,
    Traced: lambda scope, f, args, kwargs: call_unknown(scope, scope.stage.materialise(f), args, kwargs),  # raises
    _core.CompiledFunction: lambda scope, f, args, kwargs: dispatch(scope, f.__wrapped__, args, kwargs),
    np.vectorize: call_vectorized,
}
