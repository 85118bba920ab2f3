"""What goes over items, by identity: the builtins, itertools, functools.reduce, and NumPy's iterators."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a, offered
from ..control.condition import select
from ..control.region import is_condition
from ..value.handed import Asked
from ..value.items import (
    Items,
    Range,
    are_equally_long,
    backwards,
    enumerated,
    numbered,
    zipped,
)
from ..value.kinds import is_int
from ..value.objects import (
    MISSING,
    Traced,
    asks_length,
    has_hooks,
    is_ours,
)
from .calls import called_by, dispatch, understands
from .unknown import call_pure, call_unknown

if TYPE_CHECKING:
    from ..value.hooks import Hooks


@understands(range)
def _range(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
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
def _ndindex(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """Known sizes are checked by NumPy; others are sizes of arrays, or become symbols."""
    shape = args[0] if len(args) == 1 and is_a(args[0], tuple) else args
    stage = scope.stage
    if stage.source_of(shape) is not None:
        shape = stage.lift_items(shape)
    if kwargs or not stage.captures or not all(map(is_bound, shape)):
        return call_unknown(scope, f, args, kwargs)
    np.ndindex(*(1 if type(n) is Traced else n for n in shape))
    sizes = tuple(bound_of(stage, n) for n in shape)
    if not all(type(n) is int or (n >= 0) is True for n in sizes):
        return call_unknown(scope, f, args, kwargs)
    return numbered(sizes, lambda place: place, lambda c, f=iter: f(np.ndindex(*map(c.of, sizes))))


@understands(np.ndenumerate)
def _ndenumerate(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    stage = scope.stage
    array = stage.lift_array(args[0]) if len(args) == 1 and not kwargs else None
    if type(array) is not Traced or array.kind != "array" or not stage.captures:
        return call_unknown(scope, f, args, kwargs)
    made = lambda c, f=iter: f(np.ndenumerate(c.of(array)))  # noqa: E731
    return numbered(array.shape, lambda place: (place, array[place]), made)


@understands(enumerate)
def _enumerate(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    items = scope.stage.regions.items_of(args[0]) if args and scope.stage.captures else None
    if items is not None and not kwargs.keys() - {"start"}:
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return scope.born(enumerated(scope.stage.regions.taken(args[0], items), start))
    if not args:
        return call_unknown(scope, f, args, kwargs)
    return scope.born(enumerate(scope.iter(args[0]), *args[1:], **kwargs))


@understands(list, tuple, set, frozenset)
def _sequence(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args:
        return f(*args, **kwargs)
    if asks_length(args[0]):
        return call_unknown(scope, f, args, kwargs)
    if f is tuple and type(args[0]) is tuple and scope.stage.source_of(args[0]) is None:
        return args[0]
    if f in (list, tuple):
        return f(scope.iter(args[0]), *args[1:], **kwargs)
    given = scope.use(args[0])
    if type(given) in (set, frozenset, dict):  # their order goes on
        return f(given, *args[1:], **kwargs)
    return f(map(scope.key, scope.iter(given)), *args[1:], **kwargs)


@understands(iter)
def _iter(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return call_unknown(scope, f, args, kwargs)
    value = args[0]
    if hasattr(type(value), "__next__") and scope.stage.source_of(value) is None:
        method = scope.stage.class_attr(type(value), "__iter__")
        is_users = type(method) is types.FunctionType and not is_ours(type(value))
        return dispatch(scope, method, args, {}) if is_users else value
    if asks_length(value) or hasattr(type(value), "__next__"):
        return call_unknown(scope, f, args, kwargs)
    items = scope.stage.regions.items_of(value) if scope.stage.captures else None
    if items is not None:
        return scope.born(items)
    made = iter(scope.iter(value))
    return scope.born(made.iterator if type(made) is Asked else made)


@understands(reversed)
def _reversed(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
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
def _dict(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        first = args[0]
        if type(first) is dict:
            return dict(scope.stage.lift_items(first), **kwargs)
        is_plain = hasattr(type(first), "__next__") or not has_hooks(type(first))
        if is_plain and not hasattr(type(first), "keys"):
            pairs = [(scope.key(k), v) for k, v in map(scope.unpack, scope.iter(first), TWO)]
            return dict(pairs, **kwargs)
        return call_unknown(scope, f, args, kwargs)
    return dict(*args, **kwargs)


@understands(zip)
def _zip(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    regions = scope.stage.regions
    parts = [part for part in map(regions.items_of, args) if part is not None]
    each = {id(part) for part in parts}  # one that is given twice is stepped by both
    if parts and len(args) == len(each) and not kwargs and scope.stage.captures:
        if are_equally_long(parts):
            return scope.born(zipped([*map(regions.taken, args, parts)]))
    return scope.born(zip(*(scope.iter(a) for a in args), **kwargs))  # noqa: B905


@understands(map, filter)
def _map(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) < 2:
        return call_unknown(scope, f, args, kwargs)
    function = called_by(scope, bool if args[0] is None and f is filter else args[0])
    return scope.born(f(function, *(scope.iter(a) for a in args[1:]), **kwargs))


@understands(sorted)
def _sorted(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value = scope.stage.lift_array(args[0]) if len(args) == 1 and kwargs.get("key") is None else None
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
def _extreme(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    is_one = len(args) == 1
    if kwargs.get("key") is not None:
        kwargs = {**kwargs, "key": called_by(scope, kwargs["key"])}
        return f(*([scope.iter(args[0])] if is_one else map(scope.use, args)), **kwargs)
    if is_one and hasattr(type(args[0]), "__next__") and not kwargs:
        return chosen(scope, f, scope.iter(args[0]))
    items = list(scope.iter(args[0])) if is_one else [scope.use(a) for a in args]
    if any(type(v) is Traced for v in items) and "default" not in kwargs:
        return chosen(scope, f, items)
    items = scope.use(items)
    return f(items, **kwargs) if is_one else f(*items, **kwargs)


def chosen(scope: Hooks, f: Any, values: Iterable[Any]) -> Any:
    """The first of the largest or smallest, as Python compares them: each when it is taken."""
    items = iter(values)
    best = next(items, MISSING)
    if best is MISSING:
        return f(())  # raises
    for item in items:
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
def _any(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return f(map(scope.test, scope.iter(args[0])))


@understands(next)
def _next(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    args = (*map(scope.stage.handed.now, args[:1]), *args[1:])
    if args and (scope.stage.source_of(args[0]) is not None or type(args[0]) is Traced):
        return call_unknown(scope, f, args, kwargs)
    if not args or kwargs or len(args) > 2 or not hasattr(type(args[0]), "__next__"):
        return next(*args, **kwargs)  # raises
    if type(args[0]) is Items and len(args) == 1:
        return scope.stage.regions.step(scope, args[0])
    try:
        return scope.step(args[0])
    except StopIteration:
        if len(args) == 1:
            raise
        return args[1]


@understands(functools.reduce)
def _reduce(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return functools.reduce(called_by(scope, args[0]), scope.iter(args[1]), *args[2:], **kwargs)


TAKES_FUNCTION = frozenset(
    {itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.filterfalse}
)
TAKES_ONE = frozenset(
    {
        *(itertools.islice, itertools.combinations, itertools.permutations, itertools.cycle),
        *(itertools.combinations_with_replacement, getattr(itertools, "batched", itertools.cycle)),
    }
)


@understands(*(f for f in offered(itertools) if is_a(f, type)))
def _itertools(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
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
