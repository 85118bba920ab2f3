"""The builtins that capture supports, by identity; membership tests; and the tests of patterns.

Python compares a value with the items of a list or tuple one by one. The program does the same with comparisons
joined by `or`. An item that is the same object as the value is found even if it is NaN, though NaN equals
nothing. Where both may be NaN, the program checks that they are not.

A pattern tests whether a value is a sequence, mapping or instance, and reads parts of it. These are read like any
other attribute or item, with the same guards.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import functools
import inspect
import operator
import sys
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a, module_of
from ...base.user_frame import is_internal
from ...calls.job import is_compiling
from ...numpy import surface
from ...numpy.random import GLOBAL, Draw
from .. import special_methods
from ..container_rows import ROWS
from ..control import tuples
from ..control.region import Raising, is_condition, truth
from ..iterators import SIZED, STAND_INS
from ..kinds import is_int, kind_of
from ..objects import (
    CONTAINER_TYPES,
    HOLDERS,
    MISSING,
    PURE_TYPES,
    VIEWS_OF_DICTS,
    Traced,
    contains_traced,
    foreign_in,
    hooked_in,
    is_native,
    is_numpys,
    is_standard,
    is_tuple,
)
from ..records import record_print
from . import late_rows as late_rows  # registers its part of the table
from .calls import (
    LATE,
    TABLE,
    comparable,
    dispatch,
    enter_families,
    enter_row,
    hashed,
    understands,
    understands_family,
    understands_late,
)
from .functions import INLINED, call_pure, call_unknown, call_with_foreign, name_of
from .numpy_calls import call_surface

if TYPE_CHECKING:
    from ..kinds import Hooks


# Functions that only read the values they are given; each is a row, by name.
LOOKS = "abs bin callable chr divmod hex issubclass isinstance oct ord".split()
OPERATORS = """not_ truth is_none is_not_none abs add and_ floordiv index
    lshift mod mul matmul neg or_ pos pow rshift sub truediv xor concat length_hint""".split()
IN_PLACE = """iadd isub imul itruediv ifloordiv imod ipow imatmul ilshift irshift iand ior ixor
    iconcat""".split()
PURE = (
    *(getattr(builtins, name) for name in LOOKS),
    *(slice, range, bytes, object),
    *(getattr(operator, name) for name in OPERATORS if hasattr(operator, name)),
    *(np.promote_types, np.isdtype, np.broadcast_shapes, np.issubdtype, np.finfo, np.iinfo),
    *(np.dtype, np.min_scalar_type, np.isscalar, np.iterable),
    *(np.lib.array_utils.normalize_axis_index,),
)
understands_family(*PURE)(call_pure)


@understands(*(getattr(operator, name) for name in IN_PLACE))
def _in_place(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 2 or kwargs:
        return f(*args, **kwargs)  # raises
    return scope.augment("iadd" if f is operator.iconcat else f.__name__, *args)


RELATIONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt)
# Functions that do what an operation of rewritten code does, with the number of their arguments.
OPERATIONS: dict[Any, tuple[int, Callable[..., Any]]] = {
    **dict.fromkeys((operator.inv, operator.invert), (1, lambda scope, value: call_pure(scope, operator.inv, (scope.inverted(value),), {}))),
    **{f: (2, lambda scope, a, b, f=f: scope.compare(f, a, b)) for f in RELATIONS},
    operator.contains: (2, lambda scope, members, value: scope.contains(value, members)),
    operator.getitem: (2, lambda scope, value, key: scope.item(value, key)),
    operator.setitem: (3, lambda scope, value, key, item: scope._set_item(key, item, value)),
    operator.delitem: (2, lambda scope, value, key: scope._del_item(key, value)),
    setattr: (3, lambda scope, value, name, item: scope._set_attr(name, item, value)),
    delattr: (2, lambda scope, value, name: scope._del_attr(name, value)),
}


@understands(*OPERATIONS)
def _operation(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    count, operation = OPERATIONS[f]
    return f(*args, **kwargs) if kwargs or len(args) != count else operation(scope, *args)  # the first raises


@understands(operator.countOf, operator.indexOf)
def _search(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 2 or kwargs or type(args[0]) not in tuples.SEQUENCES:
        return call_pure(scope, f, args, kwargs)
    stage = scope.stage
    items, value = (stage.lifting.own(scope.use(v)) for v in (stage.lift_items(args[0]), args[1]))
    items, args = comparable(scope, items, (value,))
    return stage.lift_array(f(items, *args))


if hasattr(operator, "call"):

    @understands(operator.call)
    def _call(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(scope, args[0], args[1:], kwargs)


@understands(len)
def _len(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        value = args[0]
        stage = scope.stage
        if type(value) in SIZED:
            return value.length
        if stage.state.lists and (grown := stage.state.grown(value)) is not None:
            return grown.length
        if type(value) in VIEWS_OF_DICTS:
            return len(stage.lift_items(value))
        is_made = type(value) in ROWS and stage.sources.source_of(value) is None
        if is_made or (is_a(value, HOLDERS) and is_native(type(value), "__len__")):
            source = stage.sources.source_of(value)
            if source is not None and source >= 0:
                stage.sources.guard_length(value, source)
            return len(value)
        if type(value) is Traced and value.kind == "array" and value.ndim:
            return value.shape[0]
        if type(value) not in PURE_TYPES and type(value) is not Traced:
            method = stage.sources.class_attr(type(value), "__len__")
            if type(method) is types.FunctionType:
                return special_methods.length(scope, dispatch(scope, method, (value,), {}))
            return call_unknown(scope, f, args, kwargs)
    return len(*args, **kwargs)


@understands(print)
def _print(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return None if record_print(scope, args, kwargs) else call_unknown(scope, f, args, kwargs)


@understands(type)
def _type(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.regions.note_class(args)
    if len(args) == 1 and not kwargs:
        if type(args[0]) in (*STAND_INS, *SIZED, map):  # its function may be one of cinductor's hooks
            return type(scope.stage.materialise(args[0]))
        return args[0].__class__ if type(args[0]) is Traced else type(args[0])
    return call_unknown(scope, f, args, kwargs)


@understands(getattr)
def _getattr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) < 3:
        return scope.attr(*args)
    try:
        return scope.attr(*args[:2])
    except AttributeError:
        return args[2]


@understands(hasattr)
def _hasattr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if type(args[0]) is Traced:
        scope.stage.regions.note_class(args[:1])
        return hasattr(args[0].__class__, *args[1:])
    if type(args[0]) in PURE_TYPES:
        return hasattr(*args)
    try:
        scope.attr(*args)
    except AttributeError:
        return False
    return True


@understands(functools.partial, types.SimpleNamespace, types.MethodType, super, object)
@understands(property, staticmethod, classmethod, np.vectorize)
def _make(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


@understands(np.ndarray)
def _ndarray(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or len(args) > 2 or kwargs.keys() - {"dtype"}:  # of an array with an address
        return call_unknown(scope, f, args, kwargs)
    return call_surface(scope, np.empty, args, kwargs)


@understands(np.errstate)
def _errstate(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if args or any(v != "ignore" for k, v in kwargs.items()):
        return _seterr(scope, f, args, kwargs)
    made, sources = np.errstate(**kwargs), scope.stage.sources
    unset = made._call  # type: ignore[attr-defined]  # an object of NumPy's own that means that there is none
    sources.known[id(unset)] = (unset, sources.source("const", unset))
    scope.stage.errstates[id(made)] = (made, kwargs)
    return made


if hasattr(np, "_no_nep50_warning"):  # NumPy 2.0 and 2.1 use it in isclose; promotion gives no warnings

    @understands(np._no_nep50_warning)
    def _no_warning(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
        return contextlib.nullcontext()


@understands(np.seterr, np.seterrcall)
def _seterr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    reason = "sets how NumPy treats floating-point errors"
    is_plain = all(type(v) is str and v in ("ignore", "warn") for v in (*args, *kwargs.values()))
    if not is_plain or scope.stage.tracer.quiet:  # it ends a rule of the errstate around it
        return scope.leave_to_numpy(f, args, kwargs, reason)  # the warnings are raised at their own place
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.catch_warnings, warnings.simplefilter, warnings.filterwarnings)
@understands(warnings.resetwarnings)
def _filters(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return scope.leave_to_numpy(f, args, kwargs, "sets what becomes of warnings")


@understands(sys._getframe, inspect.currentframe, inspect.stack, inspect.trace)
@understands_late("traceback", "extract_stack", "format_stack", "print_stack")
def _frames(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    reason = f"looks at frames ({name_of(f)})"
    scope.stage.effects.abandon(reason)  # it belongs to the user
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.warn)
def _warn(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """Count the stack levels in the user's frames."""
    stage = scope.stage
    active = stage.state.active
    if active and active[-1].levels and stage.tracer.may_check():
        raise Raising("warning")  # the program checks that this arm is not taken
    stage.effects.stop("calls warnings.warn")
    values = dict(
        zip(("message", "category", "stacklevel", "source"), args, strict=False), **kwargs
    )
    values = {k: stage.materialise(v) for k, v in values.items()}
    wanted, level = int(values.get("stacklevel", 1)), 1
    frame = sys._getframe(0)
    while frame.f_back is not None:
        if not is_internal(frame.f_code):
            wanted -= 1
            if wanted <= 0:
                break
        frame = frame.f_back
        level += 1
    warnings.warn(**{**values, "stacklevel": level})


@understands_late("numpy.random", "seed")
def _seed(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args and not kwargs:
        return call_unknown(scope, f, args, kwargs)
    return dispatch(scope, Draw(scope, GLOBAL, "seed"), args, kwargs)


@understands_late("random", "Random")
@understands_late("numpy.random", "default_rng", "RandomState")
def _default_rng(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    seed = args[0] if args else kwargs.get("seed")
    if len(args) + len(kwargs) == (0 if seed is None else 1) or (args or kwargs) == (None,):
        if type(seed) is np.random.Generator and f is np.random.default_rng:
            return seed
        source = -1 if seed is None else stage.sources.source_of_int(seed) if is_int(seed) else None
        if source is not None and not stage.tracer.in_region:
            return stage.sources.make(f, source)
    return call_unknown(scope, f, args, kwargs)


@understands(isinstance, issubclass, callable)
def _look(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    stage.regions.note_class(args)
    if args and type(args[0]) in (*STAND_INS, *SIZED, map):
        args = (stage.materialise(args[0]), *args[1:])
    if not all(map(is_standard_class, args[1:])) or (args and not stage.sources.tells_class(args[0])):
        return call_unknown(scope, f, args, kwargs)
    cls = args[0] if f is issubclass and args else type(args[0]) if args else object
    if f is callable:
        stage.sources.class_attr(cls, "__call__")
    elif len(args) == 2 and not all(stage.sources.tells_base(cls, base) for base in alternatives(scope.use(args[1]) if is_a(args[1], tuple) else args[1])):
        return call_unknown(scope, f, args, kwargs)
    if f is isinstance and len(args) == 2 and type(args[0]) is Traced:  # an ABC asks the type of an object, too
        return issubclass(args[0].__class__, args[1])
    return f(*args, **kwargs)


def alternatives(value: Any) -> list[Any]:
    """The classes that the second argument of isinstance names."""
    nested = value if type(value) is tuple else value.__args__ if is_a(value, types.UnionType) else None
    return [value] if nested is None else [cls for part in nested for cls in alternatives(part)]


def is_standard_class(value: Any) -> bool:
    """True for classes whose isinstance test runs no code of the user."""
    if type(value) is tuple or is_a(value, types.UnionType):
        return all(map(is_standard_class, alternatives(value)))
    meta = type(value)
    if not is_a(value, type) or (meta is not type and not is_standard(meta)):
        return False
    return meta is not abc.ABCMeta or is_standard(value) or is_numpys(module_of(value))


@understands(np.result_type, np.can_cast)
def _promotion(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """Only arrays and numbers of NumPy have a dtype. In a list or a tuple a traced value would have one for NumPy,
    and Python's number does not.
    """
    given = [scope.stage.lift_nested(a) for a in args]
    if contains_traced([v for a, v in zip(args, given, strict=True) if type(a) in CONTAINER_TYPES or is_tuple(type(a))]):
        return call_unknown(scope, f, args, kwargs)
    arrays = [np.empty((), v.dtype) if type(v) is Traced and v.kind != "python" else surface.weak(v) for v in given]
    return f(*arrays, **kwargs)  # NumPy's message depends on which operands are arrays


@understands(np.broadcast)
def _broadcast(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(scope.stage.lift_nested(a) for a in args)
    if contains_traced(args) and not kwargs:
        return scope.stage.effects.broadcast_without_contents(args)
    return f(*args, **kwargs)


@understands(np.ndim, np.shape, np.size)
def _measure(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value = args[0] if args else None
    if type(value) is Traced:
        real = np.broadcast_to(np.empty((), value.dtype), value.shape)
        return f(real, *args[1:], **kwargs)
    value = scope.array_of(value) if type(value) in (list, tuple) else value
    if type(value) is Traced:
        return _measure(scope, f, (value, *args[1:]), kwargs)
    if (foreign := foreign_in(scope.stage.tracer, args)) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    return call_pure(scope, f, args, kwargs)


@understands(_core.is_compiling, is_compiling)
def _is_compiling(scope: Hooks, f: Any, args: Any, kwargs: Any) -> bool:
    return True


def install_surface() -> None:
    """Register the functions of the surface, also those of modules that NumPy has imported since."""
    for module in surface.load():
        if install_surface not in (steps := LATE.setdefault(module, [])):
            steps.append(install_surface)
    for key, row in surface.functions_by_id.items():
        if key not in TABLE or TABLE[key][1] is not call_surface:
            enter_row(key, row.function, call_surface)
        if row.follow is not None:
            INLINED.add(row.follow)


install_surface()
enter_families(frozenset(TABLE))


# --- `value in members` with traced values ---


MAX_MEMBERS = 64
EXACT = 1 << 53  # all smaller ints are exact floats
UNEQUAL = frozenset({str, bytes, type(None), type(Ellipsis)})  # types that equal no number


def contains(scope: Hooks, value: Any, members: Any) -> Any:
    """value in members: a bool, traced if it is only known at run time."""
    cls = type(members)
    value = scope.use(value)
    if cls is Traced and members.ndim and is_number(value):
        return in_array(scope, value, members)
    if type(value) is not Traced and not (cls in (list, tuple) and contains_traced(members)):
        return is_in(scope, value, members)
    if is_number(value):
        found = None
        if cls is list or cls is tuple:
            found = among(scope, value, scope.stage.lift_items(members))
        elif cls is set or cls is frozenset:
            items = list(scope.use(members))
            if all(hashes_alike(value, item) for item in items):
                found = among(scope, value, items)
        elif cls is range and is_int(value):
            found = in_range(scope, value, members)
        if found is not None:
            return found
    return is_in(scope, value, members)


def is_in(scope: Hooks, value: Any, members: Any) -> bool:
    """The test as Python makes it; code of the user that takes part gets real values."""
    members = scope.members(members)
    if hooked_in((value, members)) is not None:
        return scope.stage.materialise(value) in scope.stage.materialise(members)
    stage = scope.stage
    value, members = stage.lifting.own(value), stage.lifting.own(members)
    if is_a(members, dict | set | frozenset):
        value = hashed(scope, members, value)
    elif type(members) in tuples.SEQUENCES and not tuples.may_compare(scope, tuples.nans_among(members, value)):
        value, members = stage.materialise(value), stage.materialise(members)
    return value in members


def is_number(value: Any) -> bool:
    """True for a number of Python or NumPy, traced or not."""
    kind = kind_of(value)
    return kind is not None and kind[0] != "array"


def among(scope: Hooks, value: Any, items: Any) -> Any:
    """Compare a value with the items in sequence; None if Python has to compare them."""
    if len(items) > MAX_MEMBERS:
        return None
    stage = scope.stage
    found: Any = False
    unordered: list[tuple[Any, Any]] = []
    for item in items:
        if item is value:
            return True
        if type(item) in UNEQUAL:
            continue
        if not is_number(item):
            return None
        unordered.extend(tuples.nans_in(item, value))
        is_equal = value == item
        if not is_condition(is_equal):
            if is_equal:
                return True
            continue
        is_equal = truth(stage.tracer, is_equal)
        found = is_equal if found is False else either(stage, found, is_equal)
    if unordered and not stage.tracer.may_check():
        return None
    tuples.refuse_nans(stage.tracer, unordered)
    return found if found is False else stage.tracer.as_python(found)


def either(stage: Any, a: Any, b: Any) -> Any:
    """a or b, for truth values."""
    if type(a) is not Traced or type(b) is not Traced:
        return a if a is True or b is False else b
    return stage.tracer.apply("logical_or", a, b)


def hashes_alike(value: Any, item: Any) -> bool:
    """True if a set finds the item exactly if it equals the value."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    if type(item) in UNEQUAL:
        return True
    if type(item) not in (bool, int, float):
        return False
    if dtype.kind in "biu":
        return type(item) is not float or kind == "python"
    return dtype.char == "d" and (type(item) is float or abs(item) <= EXACT)


def in_range(scope: Hooks, value: Any, members: range) -> Any:
    """An int in a range."""
    stage = scope.stage
    if not members:
        return False
    low, high = sorted((members[0], members[-1]))
    tests = [value >= low, value <= high]
    if abs(members.step) != 1:
        tests.append((value - low) % abs(members.step) == 0)
    found: Any = True
    for test in tests:
        if not is_condition(test):
            if not test:
                return False
            continue
        test = truth(stage.tracer, test)
        found = test if found is True else stage.tracer.apply("logical_and", found, test)
    return found if found is True else stage.tracer.as_python(found)


def in_array(scope: Hooks, value: Any, members: Any) -> Any:
    """value in an array: whether any element equals it, as in NumPy."""
    found = (members == value).any()
    return scope.stage.tracer.as_python(found) if type(found) is Traced else bool(found)


# --- tests of patterns ---


IS_SEQUENCE, IS_MAPPING, IS_ITSELF = 1 << 5, 1 << 6, 1 << 22  # bits of CPython's tp_flags


def sequence(scope: Hooks, value: Any, before: int, behind: int, has_star: bool | None) -> tuple[Any, ...] | None:
    """The first and the last items; between them a list of the others, if has_star. None: no match, because there are
    too few or too many items.
    """
    if type(value) is Traced or not type(value).__flags__ & IS_SEQUENCE:
        return None
    count = int(scope.call(len, value))
    if count < before + behind or (has_star is None and count > before):
        return None
    if type(value) not in (list, tuple) and not is_tuple(type(value)) and has_star is not False:
        items = list(scope.iter(value))
        count = len(items)
    else:
        wanted = range(count) if has_star else (*range(before), *range(count - behind, count))
        items = [scope.item(value, k) for k in wanted]
    if not has_star:
        return tuple(items)
    return (*items[:before], items[before : count - behind], *items[count - behind :])


def mapping(
    scope: Hooks, value: Any, keys: tuple[Any, ...], has_rest: bool
) -> tuple[Any, ...] | None:
    """The values of the keys, then a dict of the others if has_rest."""
    if type(value) is Traced or not type(value).__flags__ & IS_MAPPING:
        return None
    if len(set(keys)) < len(keys):
        twice = next(k for k in keys if keys.count(k) > 1)
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    get = scope.attr(value, "get") if keys else None
    found = []
    for key in keys:
        found.append(scope.call(get, key, MISSING))
        if found[-1] is MISSING:
            return None
    if not has_rest:
        return tuple(found)
    rest = scope.call(dict, value)
    return (*found, {k: v for k, v in rest.items() if k not in keys})


def instance(
    scope: Hooks, value: Any, cls: Any, count: int, names: tuple[str, ...]
) -> tuple[Any, ...] | None:
    """The positional attributes of the class, then those with names."""
    if not is_a(cls, type):
        raise TypeError("called match pattern must be a class")
    if not scope.call(isinstance, value, cls):
        return None
    own = scope.stage.sources.class_attr(cls, "__match_args__")
    is_itself = own is MISSING and bool(cls.__flags__ & IS_ITSELF)
    own = () if own is MISSING else own
    if type(own) is not tuple:
        kind = type(own).__name__
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {kind})")
    allowed = 1 if is_itself else len(own)
    if count > allowed:
        plural = "" if allowed == 1 else "s"
        text = f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
        raise TypeError(text)
    wanted = (*(() if is_itself else own[:count]), *names)
    for k, name in enumerate(wanted):
        if not is_a(name, str):
            text = f"__match_args__ elements must be strings (got {type(name).__name__})"
            raise TypeError(text)
        if name in wanted[:k]:
            text = f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}"
            raise TypeError(text)
    try:
        found = [scope.attr(value, name) for name in wanted]
    except AttributeError:
        return None
    return (value, *found) if is_itself and count else tuple(found)


PATTERNS: dict[str, Callable[..., tuple[Any, ...] | None]] = {
    "sequence": sequence,
    "mapping": mapping,
    "instance": instance,
}
