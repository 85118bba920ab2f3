"""The builtins that capture understands, by identity: one handler each, or one for several."""

from __future__ import annotations

import abc
import builtins
import contextlib
import copy
import functools
import inspect
import itertools
import operator
import sys
import traceback
import types
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...job import is_compiling
from ...numpy import surface
from ...numpy.random import GLOBAL, Draw
from ...user import PACKAGE
from ..region.condition import select
from ..region.region import Raising, is_condition
from ..value.handed import STAND_INS, Asked
from ..value.items import (
    Flat,
    Octets,
    Range,
    are_equally_long,
    backwards,
    enumerated,
    numbered,
    zipped,
)
from ..value.objects import (
    HOLDERS,
    PURE_TYPES,
    Traced,
    asks_length,
    foreign_in,
    has_hooks,
    is_native,
    is_numpys,
    is_ours,
    is_standard,
)
from ..value.state import is_int
from . import arithmetic as arithmetic  # fills its part of the table, as mathematics does
from .calls import TABLE, called_by, dispatch, understands
from .follow import FOLLOWED
from .numpys import call_surface, is_traced_inside
from .unknown import call_pure, call_unknown, call_with_foreign, name_of

if TYPE_CHECKING:
    from ..scope import Scope


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
for _f in PURE:
    TABLE[id(_f)] = (_f, call_pure)


@understands(*(getattr(operator, name) for name in IN_PLACE))
def _in_place(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 2 or kwargs:
        return f(*args, **kwargs)  # raises
    return scope.augment("iadd" if f is operator.iconcat else f.__name__, *args)


@understands(operator.setitem)
def _setitem(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    value, key, item = args
    return scope._set_item(key, item, value)


@understands(operator.delitem)
def _delitem(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    value, key = args
    return scope._del_item(key, value)


if hasattr(operator, "call"):

    @understands(operator.call)
    def _call(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(scope, args[0], args[1:], kwargs)


@understands(operator.getitem)
def _getitem(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return scope.item(*args)


@understands(len)
def _len(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        value = args[0]
        stage = scope.stage
        if type(value) is Range:
            return value.length
        if type(value) is Flat or type(value) is Octets:
            return value.array.size
        if isinstance(value, HOLDERS) and is_native(type(value), "__len__"):
            if id(value) in stage.regions.growing:
                return stage.regions.growing[id(value)].length
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
def _type(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.regions.look_at_class(args)
    if len(args) == 1 and not kwargs:
        if type(args[0]) in (*STAND_INS, map):  # a door of ours may be what it calls
            return type(scope.stage.concrete(args[0]))
        return args[0].__class__ if type(args[0]) is Traced else type(args[0])
    return call_unknown(scope, f, args, kwargs)


@understands(range)
def _range(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if any(type(a) is Traced for a in args) and not kwargs and len(args) in (1, 2, 3):
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if scope.stage.captures and all(map(is_bound, (start, stop, step))):
            bounds = [bound_of(scope.stage, v) for v in (start, stop, step)]
            is_up = is_upwards(scope.stage, bounds[2])
            if is_up is not None:
                return Range(scope.stage.tracer, *bounds, is_up)
    return call_pure(scope, f, args, kwargs)


def is_upwards(stage: Any, step: Any) -> bool | None:
    """Whether a range goes up; None: it does neither, or nobody can tell. A step that data decide
    is usually positive.
    """
    if type(step) is not Traced:
        return int(step) > 0 if step else None
    if stage.tracer.is_positive(step):
        return True
    is_more = step > 0
    if type(is_more) is not Traced or not stage.may_check():
        return None
    stage.tracer.check(is_more, "a range that goes up")
    return True


def is_bound(value: Any) -> bool:
    """An int of Python's or NumPy's."""
    return is_int(value) or (
        type(value) is Traced and value.kind == "scalar" and value.dtype.kind in "iu"
    )


def bound_of(stage: Any, value: Any) -> Any:
    """An int as an expression: one that data decide gets a symbol."""
    if type(value) is Traced and not value.is_expression:
        if value.dtype != np.int64:
            value = stage.tracer.cast(value, np.int64)
        return stage.tracer.define(value, None, None)
    return value


@understands(np.ndindex)
def _ndindex(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    """Known sizes are checked by NumPy; others are sizes of arrays, or become symbols."""
    shape = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    stage = scope.stage
    if stage.source_of(shape) is not None:
        shape = stage.shallow(shape)
    if kwargs or not stage.captures or not all(map(is_bound, shape)):
        return call_unknown(scope, f, args, kwargs)
    np.ndindex(*(1 if type(n) is Traced else n for n in shape))
    sizes = tuple(bound_of(stage, n) for n in shape)
    if not all(type(n) is int or (n >= 0) is True for n in sizes):
        return call_unknown(scope, f, args, kwargs)
    return numbered(sizes, lambda place: place, lambda c, f=iter: f(np.ndindex(*map(c.of, sizes))))


@understands(np.ndenumerate)
def _ndenumerate(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    array = stage.wrap(args[0]) if len(args) == 1 and not kwargs else None
    if type(array) is not Traced or array.kind != "array" or not stage.captures:
        return call_unknown(scope, f, args, kwargs)
    made = lambda c, f=iter: f(np.ndenumerate(c.of(array)))  # noqa: E731
    return numbered(array.shape, lambda place: (place, array[place]), made)


@understands(enumerate)
def _enumerate(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    items = scope.stage.regions.items_of(args[0]) if args and scope.stage.captures else None
    if items is not None and not kwargs.keys() - {"start"}:
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return scope.born(enumerated(scope.stage.regions.taken(args[0], items), start))
    if not args:
        return call_unknown(scope, f, args, kwargs)
    return scope.born(enumerate(scope.iter(args[0]), *args[1:], **kwargs))


@understands(list, tuple, set, frozenset)
def _sequence(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if not args:
        return f(*args, **kwargs)
    if asks_length(args[0]):
        return call_unknown(scope, f, args, kwargs)
    if f is tuple and type(args[0]) is tuple and scope.stage.source_of(args[0]) is None:
        return args[0]
    items = [*scope.iter(args[0])]
    return f(scope.use(items) if f in (set, frozenset) else items, *args[1:], **kwargs)


@understands(iter)
def _iter(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return call_unknown(scope, f, args, kwargs)
    value = args[0]
    if hasattr(type(value), "__next__") and scope.stage.source_of(value) is None:
        method = scope.stage.class_attr(type(value), "__iter__")
        is_users = type(method) is types.FunctionType and not is_ours(type(value))
        return dispatch(scope, method, args, {}) if is_users else value
    if asks_length(value) or hasattr(type(value), "__next__"):
        return call_unknown(scope, f, args, kwargs)
    made = iter(scope.iter(value))
    return scope.born(made.iterator if type(made) is Asked else made)


@understands(reversed)
def _reversed(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    items = scope.stage.regions.items_of(args[0]) if args and scope.stage.captures else None
    if items is not None and items is not args[0] and not kwargs:
        return scope.born(backwards(items))
    if not args or type(args[0]) not in (Traced, np.ndarray, list, tuple, range, str, bytes):
        return call_unknown(scope, f, args, kwargs)
    if type(args[0]) in (range, str, bytes):
        return scope.born(reversed(args[0]))
    return scope.born(reversed([*scope.iter(args[0])]))


TWO = itertools.repeat((None, None))


@understands(dict)
def _dict(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        first = args[0]
        if type(first) is dict:
            return dict(scope.stage.shallow(first), **kwargs)
        is_plain = hasattr(type(first), "__next__") or not has_hooks(type(first))
        if is_plain and not hasattr(type(first), "keys"):
            pairs = [(scope.key(k), v) for k, v in map(scope.unpack, scope.iter(first), TWO)]
            return dict(pairs, **kwargs)
        return call_unknown(scope, f, args, kwargs)
    return dict(*args, **kwargs)


@understands(zip)
def _zip(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    regions = scope.stage.regions
    parts = [part for part in map(regions.items_of, args) if part is not None]
    each = {id(part) for part in parts}  # one that is given twice is stepped by both
    if parts and len(args) == len(each) and not kwargs and scope.stage.captures:
        if are_equally_long(parts):
            return scope.born(zipped([*map(regions.taken, args, parts)]))
    return scope.born(zip(*(scope.iter(a) for a in args), **kwargs))  # noqa: B905


@understands(map, filter)
def _map(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) < 2:
        return call_unknown(scope, f, args, kwargs)
    function = called_by(scope, bool if args[0] is None and f is filter else args[0])
    return scope.born(f(function, *(scope.iter(a) for a in args[1:]), **kwargs))


@understands(sorted)
def _sorted(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    value = scope.stage.wrap(args[0]) if len(args) == 1 and kwargs.get("key") is None else None
    if type(value) is Traced and value.ndim == 1 and value.dtype.kind in "biu":
        items = list(scope.iter(dispatch(scope, np.sort, (value,), {})))
        return items[::-1] if kwargs.get("reverse") else items
    if kwargs.get("key") is not None:
        kwargs = {**kwargs, "key": called_by(scope, kwargs["key"])}
    if not args or asks_length(args[0]):
        return call_unknown(scope, f, args, kwargs)
    items = [*scope.iter(args[0])]
    return sorted(items if "key" in kwargs else scope.use(items), *args[1:], **kwargs)


@understands(min, max)
def _extreme(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    items = list(scope.iter(args[0])) if len(args) == 1 else [scope.use(a) for a in args]
    if kwargs.get("key") is not None:
        kwargs = {**kwargs, "key": called_by(scope, kwargs["key"])}
    elif items and any(type(v) is Traced for v in items) and "default" not in kwargs:
        return chosen(scope, f, items)
    if "key" not in kwargs:
        items = scope.use(items)
    return f(items, **kwargs) if len(args) == 1 else f(*items, **kwargs)


def chosen(scope: Scope, f: Any, items: list[Any]) -> Any:
    """The first of the largest or smallest, as Python compares them."""
    best = items[0]
    for item in items[1:]:
        is_better = scope.gt(item, best) if f is max else scope.lt(item, best)
        if not is_condition(is_better):
            best = item if is_better else best
            continue
        if all(type(v) is int or (type(v) is Traced and v.is_expression) for v in (item, best)):
            extremum = scope.stage.tracer.size_max if f is max else scope.stage.tracer.size_min
            best = extremum(item, best)
            continue
        new = select(scope.stage, is_better, item, best) if scope.stage.captures else None
        best = new if new is not None else item if is_better else best
    return best


@understands(any, all)
def _any(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return f(map(scope.test, scope.iter(args[0])))


@understands(next)
def _next(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    args = (*map(scope.stage.now, args[:1]), *args[1:])
    if args and (scope.stage.source_of(args[0]) is not None or type(args[0]) is Traced):
        return call_unknown(scope, f, args, kwargs)
    if not args or kwargs or len(args) > 2 or not hasattr(type(args[0]), "__next__"):
        return next(*args, **kwargs)  # raises
    try:
        return scope.step(args[0])
    except StopIteration:
        if len(args) == 1:
            raise
        return args[1]


@understands(getattr)
def _getattr(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) < 3:
        return scope.attr(*args)
    try:
        return scope.attr(*args[:2])
    except AttributeError:
        guard_absent(scope, args[0])
        return args[2]


@understands(hasattr)
def _hasattr(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if type(args[0]) is Traced:
        return hasattr(args[0].__class__, *args[1:])
    if type(args[0]) in PURE_TYPES or isinstance(args[0], type):
        return hasattr(*args)
    try:
        scope.attr(*args)
    except AttributeError:
        guard_absent(scope, args[0])
        return False
    return True


def guard_absent(scope: Scope, value: Any) -> None:
    """Guards that an object still has the attributes it has, and so not the one asked for."""
    stage = scope.stage
    source = stage.source_of(value)
    if source is None or type(value) is Traced:
        return
    own = getattr(value, "__dict__", None)
    if source >= 0 and type(own) is dict:
        stage.check_once(stage.source("attr", source, "__dict__"), "keys", dict, tuple(own))
    else:
        stage.effect(f"asks whether a {type(value).__name__} has an attribute")


@understands(copy.copy, copy.deepcopy)
def _copy(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if type(args[0]) is Traced and args[0].kind == "array":
        return dispatch(scope, args[0].copy, ("K",), {})
    return call_unknown(scope, f, args, kwargs)


@understands(setattr)
def _setattr(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    value, name, item = args
    scope._set_attr(name, item, value)


@understands(delattr)
def _delattr(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    scope._del_attr(args[1], args[0])


@understands(functools.reduce)
def _reduce(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return functools.reduce(called_by(scope, args[0]), scope.iter(args[1]), *args[2:], **kwargs)


@understands(functools.partial, types.SimpleNamespace, types.MethodType, super, object)
@understands(property, staticmethod, classmethod, np.vectorize)
def _make(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return f(*args, **kwargs)


@understands(np.ndarray)
def _ndarray(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or len(args) > 2 or kwargs.keys() - {"dtype"}:  # of memory that lies somewhere
        return call_unknown(scope, f, args, kwargs)
    return call_surface(scope, np.empty, args, kwargs)


@understands(np.errstate)
def _errstate(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if args or any(v != "ignore" for k, v in kwargs.items()):
        return _seterr(scope, f, args, kwargs)
    return np.errstate(**kwargs)


if hasattr(np, "_no_nep50_warning"):  # of NumPy 2.0 and 2.1, around isclose; promotion gives none

    @understands(np._no_nep50_warning)
    def _no_warning(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
        return contextlib.nullcontext()


@understands(np.seterr, np.seterrcall)
def _seterr(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    reason = "sets how NumPy treats floating-point errors"
    if not all(type(v) is str and v in ("ignore", "warn") for v in (*args, *kwargs.values())):
        return scope.leave_to_numpy(f, args, kwargs, reason)  # they are raised where they happen
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.catch_warnings, warnings.simplefilter, warnings.filterwarnings)
@understands(warnings.resetwarnings)
def _filters(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return scope.leave_to_numpy(f, args, kwargs, "sets what becomes of warnings")


@understands(sys._getframe, inspect.currentframe, inspect.stack, inspect.trace)
@understands(traceback.extract_stack, traceback.format_stack, traceback.print_stack)
def _frames(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    reason = f"looks at frames ({name_of(f)})"
    scope.stage.abandon(reason)  # which shall be the user's own
    return call_unknown(scope, f, args, kwargs, reason)


@understands(warnings.warn)
def _warn(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    """Counts the levels of the stack in the user's frames."""
    stage = scope.stage
    active = stage.regions.active
    if active and getattr(active[-1], "levels", None) and stage.may_check():
        raise Raising("warning")  # the program checks that this arm is not taken
    stage.stop("calls warnings.warn")
    values = dict(
        zip(("message", "category", "stacklevel", "source"), args, strict=False), **kwargs
    )
    values = {k: stage.concrete(v) for k, v in values.items()}
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


@understands(np.random.seed)
def _seed(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if not args and not kwargs:
        return call_unknown(scope, f, args, kwargs)
    return dispatch(scope, Draw(scope, GLOBAL, "seed"), args, kwargs)


@understands(np.random.default_rng, np.random.RandomState)
def _default_rng(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
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
def _look(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.regions.look_at_class(args)
    classes = args[1] if len(args) > 1 and isinstance(args[1], tuple) else args[1:]
    if not all(isinstance(c, types.UnionType) or is_standard_class(c) for c in classes):
        return call_unknown(scope, f, args, kwargs)
    return f(*args, **kwargs)


def is_standard_class(value: Any) -> bool:
    """A class which answers whether something is of it without code of the user's."""
    meta = type(value)
    if not isinstance(value, type) or (meta is not type and not is_standard(meta)):
        return False
    return meta is not abc.ABCMeta or is_standard(value) or is_numpys(value.__module__)


@understands(np.result_type, np.can_cast)
def _promotion(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    return f(*(surface.weak(scope.stage.deep(a)) for a in args), **kwargs)


@understands(np.broadcast)
def _broadcast(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(scope.stage.deep(a) for a in args)
    if is_traced_inside(args) and not kwargs:
        return scope.stage.hollow_broadcast(args)
    return f(*args, **kwargs)


@understands(np.ndim, np.shape, np.size)
def _measure(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
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


TAKES_FUNCTION = frozenset(
    {itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.filterfalse}
)
TAKES_ONE = frozenset(
    {
        *(itertools.islice, itertools.combinations, itertools.permutations, itertools.cycle),
        *(itertools.combinations_with_replacement, getattr(itertools, "batched", itertools.cycle)),
    }
)


@understands(*(f for f in vars(itertools).values() if isinstance(f, type)))
def _itertools(scope: Scope, f: Any, args: Any, kwargs: Any) -> Any:
    if f in (itertools.count, itertools.repeat):
        return scope.born(f(*args, **kwargs))
    if f in (itertools.accumulate, itertools.groupby, itertools.tee):
        return call_unknown(scope, f, args, kwargs)
    if f in TAKES_FUNCTION and len(args) == 2:
        function = called_by(scope, bool if args[0] is None else args[0])
        return scope.born(f(function, scope.iter(args[1])))
    if f in TAKES_ONE and args:
        return scope.born(f(scope.iter(args[0]), *args[1:], **kwargs))
    return scope.born(f(*(scope.iter(a) for a in args), **kwargs))


@understands(_core.is_compiling, is_compiling)
def _is_compiling(scope: Scope, f: Any, args: Any, kwargs: Any) -> bool:
    return True


def install_surface() -> None:
    """Enters what the surface has; it comes last, so that its rows win."""
    surface.load()
    for key, row in surface.functions_by_id.items():
        TABLE[key] = (row.function, call_surface)
        if row.follow is not None:
            FOLLOWED.add(row.follow)


install_surface()
