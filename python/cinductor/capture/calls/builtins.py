"""The builtins that capture understands, by identity: one handler each, or one for several."""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import copy
import functools
import inspect
import operator
import sys
import traceback
import types
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...instance import is_a
from ...job import is_compiling
from ...numpy import surface
from ...numpy.random import GLOBAL, Draw
from ...user import PACKAGE
from ..control.region import Raising
from ..value.handed import STAND_INS
from ..value.items import (
    Flat,
    Octets,
    Range,
)
from ..value.kinds import is_int
from ..value.objects import (
    HOLDERS,
    PURE_TYPES,
    Traced,
    asks_length,
    attributes_of,
    foreign_in,
    holds_traced,
    is_native,
    is_numpys,
    is_standard,
)
from . import arithmetic as arithmetic  # fills its part of the table, as mathematics does
from . import iterables as iterables  # and this its own
from .calls import (
    dispatch,
    enter_families,
    enter_row,
    understands,
    understands_family,
    understands_late,
)
from .follow import FOLLOWED
from .numpys import call_surface
from .unknown import call_pure, call_unknown, call_with_foreign, name_of

if TYPE_CHECKING:
    from ..value.hooks import Hooks


# What only looks at the values it is given: each is a row, by its name.
LOOKS = "abs bin callable chr divmod hash hex issubclass isinstance oct ord format repr ascii".split()
OPERATORS = """lt le eq ne ge gt not_ truth is_ is_not is_none is_not_none abs add and_ floordiv index
    inv invert lshift mod mul matmul neg or_ pos pow rshift sub truediv xor concat contains countOf
    indexOf length_hint""".split()
IN_PLACE = """iadd isub imul itruediv ifloordiv imod ipow imatmul ilshift irshift iand ior ixor
    iconcat""".split()
PURE = (
    *(getattr(builtins, name) for name in LOOKS),
    *(slice, range, str, bytes, object),
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


@understands(operator.setitem)
def _setitem(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value, key, item = args
    return scope._set_item(key, item, value)


@understands(operator.delitem)
def _delitem(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value, key = args
    return scope._del_item(key, value)


if hasattr(operator, "call"):

    @understands(operator.call)
    def _call(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(scope, args[0], args[1:], kwargs)


@understands(operator.getitem)
def _getitem(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return scope.item(*args)


@understands(collections.deque)
def _deque(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    given = [*args, *kwargs.values()]
    if any(type(v) is Traced for v in given[1:]) or (args and asks_length(args[0])):
        return call_unknown(scope, f, args, kwargs)
    return f(*([scope.iter(args[0])] if args else []), *args[1:], **kwargs)


@understands(len)
def _len(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        value = args[0]
        stage = scope.stage
        if type(value) is Range:
            return value.length
        if type(value) is Flat or type(value) is Octets:
            return value.array.size
        is_deque = type(value) is collections.deque and stage.source_of(value) is None
        if is_deque or (is_a(value, HOLDERS) and is_native(type(value), "__len__")):
            if id(value) in stage.state.lists:
                return stage.state.lists[id(value)].length
            source = stage.source_of(value)
            if source is not None and source >= 0:
                stage.guard_length(value, source)
            return len(value)
        if type(value) is Traced and value.kind == "array" and value.ndim:
            return value.shape[0]
        if type(value) not in PURE_TYPES and type(value) is not Traced:
            method = stage.class_attr(type(value), "__len__")
            if type(method) is types.FunctionType:
                return dispatch(scope, method, (value,), {})
            return call_unknown(scope, f, args, kwargs)
    return len(*args, **kwargs)


@understands(type)
def _type(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.regions.note_class(args)
    if len(args) == 1 and not kwargs:
        if type(args[0]) in (*STAND_INS, map):  # a door of ours may be what it calls
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
        guard_absent(scope, args[0])
        return args[2]


@understands(hasattr)
def _hasattr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if type(args[0]) is Traced:
        return hasattr(args[0].__class__, *args[1:])
    if type(args[0]) in PURE_TYPES or is_a(args[0], type):
        return hasattr(*args)
    try:
        scope.attr(*args)
    except AttributeError:
        guard_absent(scope, args[0])
        return False
    return True


def guard_absent(scope: Hooks, value: Any) -> None:
    """Guards that an object still has the attributes it has, and so not the one asked for."""
    stage = scope.stage
    source = stage.source_of(value)
    if source is None or type(value) is Traced:
        return
    own = attributes_of(value)
    if source >= 0 and type(own) is dict:
        stage.check_once(stage.source("attr", source, "__dict__"), "keys", dict, tuple(own))
    else:
        stage.effect(f"asks whether a {type(value).__name__} has an attribute")


@understands(copy.copy, copy.deepcopy)
def _copy(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if type(args[0]) is Traced and args[0].kind == "array":
        return dispatch(scope, args[0].copy, ("K",), {})
    return call_unknown(scope, f, args, kwargs)


@understands(setattr)
def _setattr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value, name, item = args
    scope._set_attr(name, item, value)


@understands(delattr)
def _delattr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    scope._del_attr(args[1], args[0])


@understands(functools.partial, types.SimpleNamespace, types.MethodType, super, object)
@understands(property, staticmethod, classmethod, np.vectorize)
def _make(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


@understands(np.ndarray)
def _ndarray(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or len(args) > 2 or kwargs.keys() - {"dtype"}:  # of memory that lies somewhere
        return call_unknown(scope, f, args, kwargs)
    return call_surface(scope, np.empty, args, kwargs)


@understands(np.errstate)
def _errstate(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if args or any(v != "ignore" for k, v in kwargs.items()):
        return _seterr(scope, f, args, kwargs)
    made = np.errstate(**kwargs)
    scope.stage.errstates[id(made)] = (made, kwargs)
    return made


if hasattr(np, "_no_nep50_warning"):  # of NumPy 2.0 and 2.1, around isclose; promotion gives none

    @understands(np._no_nep50_warning)
    def _no_warning(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
        return contextlib.nullcontext()


@understands(np.seterr, np.seterrcall)
def _seterr(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    reason = "sets how NumPy treats floating-point errors"
    if not all(type(v) is str and v in ("ignore", "warn") for v in (*args, *kwargs.values())):
        return scope.leave_to_numpy(f, args, kwargs, reason)  # they are raised where they happen
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.catch_warnings, warnings.simplefilter, warnings.filterwarnings)
@understands(warnings.resetwarnings)
def _filters(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return scope.leave_to_numpy(f, args, kwargs, "sets what becomes of warnings")


@understands(sys._getframe, inspect.currentframe, inspect.stack, inspect.trace)
@understands(traceback.extract_stack, traceback.format_stack, traceback.print_stack)
def _frames(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    reason = f"looks at frames ({name_of(f)})"
    scope.stage.abandon(reason)  # which shall be the user's own
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.warn)
def _warn(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """Counts the levels of the stack in the user's frames."""
    stage = scope.stage
    active = stage.state.active
    if active and active[-1].levels and stage.may_check():
        raise Raising("warning")  # the program checks that this arm is not taken
    stage.stop("calls warnings.warn")
    values = dict(
        zip(("message", "category", "stacklevel", "source"), args, strict=False), **kwargs
    )
    values = {k: stage.materialise(v) for k, v in values.items()}
    wanted, level = int(values.get("stacklevel", 1)), 1
    frame = sys._getframe(0)
    while frame.f_back is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
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


@understands_late("numpy.random", "default_rng", "RandomState")
def _default_rng(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    seed = args[0] if args else kwargs.get("seed")
    if len(args) + len(kwargs) == (0 if seed is None else 1) or (args or kwargs) == (None,):
        if type(seed) is np.random.Generator and f is np.random.default_rng:
            return seed
        source = -1 if seed is None else stage.source_of_int(seed) if is_int(seed) else None
        if source is not None and not stage.tracer.in_region:
            return stage.make(f, source)
    return call_unknown(scope, f, args, kwargs)


@understands(isinstance, issubclass, callable)
def _look(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    stage.regions.note_class(args)
    if args and type(args[0]) in (*STAND_INS, map):
        args = (stage.materialise(args[0]), *args[1:])
    if not all(map(is_standard_class, args[1:])) or (args and not stage.tells_class(args[0])):
        return call_unknown(scope, f, args, kwargs)
    return f(*args, **kwargs)


def is_standard_class(value: Any) -> bool:
    """A class, or several, which answer whether something is of them without code of the user's."""
    if type(value) is tuple or is_a(value, types.UnionType):
        return all(map(is_standard_class, value if type(value) is tuple else value.__args__))
    meta = type(value)
    if not is_a(value, type) or (meta is not type and not is_standard(meta)):
        return False
    return meta is not abc.ABCMeta or is_standard(value) or is_numpys(value.__module__)


@understands(np.result_type, np.can_cast)
def _promotion(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return f(*(surface.weak(scope.stage.lift_nested(a)) for a in args), **kwargs)


@understands(np.broadcast)
def _broadcast(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(scope.stage.lift_nested(a) for a in args)
    if holds_traced(args) and not kwargs:
        return scope.stage.hollow_broadcast(args)
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
    if (foreign := foreign_in(args)) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    return call_pure(scope, f, args, kwargs)


@understands(_core.is_compiling, is_compiling)
def _is_compiling(scope: Hooks, f: Any, args: Any, kwargs: Any) -> bool:
    return True


def install_surface() -> None:
    """Enters what the surface has, and the families."""
    surface.load()
    for key, row in surface.functions_by_id.items():
        enter_row(key, row.function, call_surface)
        if row.follow is not None:
            FOLLOWED.add(row.follow)
    enter_families()


install_surface()
