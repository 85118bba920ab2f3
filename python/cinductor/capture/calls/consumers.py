"""Builtins that read all items of an iterable: list, set, dict, deque, sorted, min, max, any, all, and functools.reduce.

For an array of numbers, `min`, `max`, `any` and `all` are a few nodes, whatever its length. A key function of many
items is evaluated by a captured loop. If Python has to compare or hash data-dependent items, one break makes all
of them real. `Iteration.iter` returns real items if there are many elements to read.
"""

from __future__ import annotations

import _bisect
import collections
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a
from ...numpy import composites
from ..container_rows import MAPPINGS, ROWS, appends
from ..control import branch
from ..control.columns import Column, like_of, number_kind
from ..control.list_buffer import made_of
from ..control.region import is_condition
from ..iterators import MAX_READ, Range
from ..kinds import leaves
from ..objects import (
    FREE_TYPES,
    MISSING,
    Traced,
    asks_length,
    defines,
    has_hooks,
    is_record,
    leaves_in,
)
from .calls import called_by, dispatch, understands
from .functions import call_function, call_unknown

if TYPE_CHECKING:
    from ..kinds import Hooks

FEW = 8  # elements that are compared one by one


def line_of(scope: Hooks, args: Any, kwargs: Any, kinds: str = "biuf") -> Any:
    """The array of rank 1 of numbers if that is the only argument of a builtin; None otherwise."""
    value: Any = scope.stage.lift_array(args[0]) if len(args) == 1 and not kwargs else None
    is_line = type(value) is Traced and value.kind == "array" and value.ndim == 1
    return value if is_line and value.dtype.kind in kinds else None


def is_many(value: Any) -> bool:
    """True if an array or a range, which can be iterated again, has more items than are read one by one."""
    if type(value) is Traced and value.kind == "array" and value.ndim == 1:
        return bool(value.shape[0] > MAX_READ)
    return type(value) in (range, Range) and len(value) > MAX_READ


def is_open(value: Any) -> bool:
    """True if a value, or an item of a tuple, depends on data."""
    if type(value) is Traced:
        return not value.is_expression
    if type(value) in FREE_TYPES or not is_record(type(value)):
        return False
    return any(map(is_open, leaves(value)))


def materialise_all(scope: Hooks, f: Any, values: list[Any]) -> list[Any]:
    """Values that Python will compare or hash: if any depends on data, one break makes all of them real."""
    if any(map(is_open, values)):
        scope.stage.tracer.note_break(f"a concrete value is needed by {f.__name__}()")
        return [scope.stage.materialise(v) for v in values]
    return values


# --- lists, sets, dicts ---


@understands(list, tuple, set, frozenset)
def _sequence(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args:
        return f(*args, **kwargs)
    if f is list and len(args) == 1 and not kwargs and type(args[0]) is Range:
        made = scope.call(np.arange, args[0].start, args[0].stop, args[0].step)
        return made_of(scope, 0, [Column(0, made)], made.shape[0])
    if asks_length(args[0]):
        return call_unknown(scope, f, args, kwargs)
    if len(args) > 1 or kwargs:
        return f(*args, **kwargs)  # raises
    value = scope.stage.escapes.now(scope.stage.lift_array(args[0]))
    if f is tuple and type(value) is tuple and scope.stage.sources.source_of(value) is None:
        return value
    if f in (list, tuple):
        return f(scope.iter(value))
    given = scope.use(value)
    if type(given) in (set, frozenset, dict):  # their order is kept
        return f(given)
    return f(materialise_all(scope, f, [*map(scope.key, scope.iter(given))]))


@understands(*(cls for cls, row in ROWS.items() if row.is_memory))
def _memory(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(scope.stage.lift_items(a) if type(a) in (list, tuple) else a for a in args)
    is_known = all(type(v) in KNOWN for v in leaves_in((*args, *kwargs.values())))
    return f(*args, **kwargs) if is_known else call_unknown(scope, f, args, kwargs)


KNOWN = frozenset({bool, int, float, str, bytes, range})


@understands(*(cls for cls in ROWS if appends(cls) and cls is not list))
def _queue(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    given = [*args, *kwargs.values()]
    if any(type(v) is Traced for v in given[1:]) or (args and asks_length(args[0])):
        return call_unknown(scope, f, args, kwargs)
    return f(*([scope.iter(args[0])] if args else []), *args[1:], **kwargs)


def parts_of(scope: Hooks, item: Any) -> Any:
    """The key and the value that an item is; what has no items is returned."""
    has_items = item.ndim if type(item) is Traced else defines(type(item), "__iter__") or defines(type(item), "__getitem__")
    return tuple(scope.unpack(item, (None, None))) if has_items else item


@understands(*MAPPINGS)
def _dict(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1:
        first = args[0]
        if type(first) in MAPPINGS or (is_a(first, dict) and type(first) in ROWS and scope._is_made(first)):
            return f(scope.stage.lift_items(first), **kwargs)
        is_plain = scope.stage.sources.defines(type(first), "__next__") or not has_hooks(type(first))
        if is_plain and not scope.stage.sources.defines(type(first), "keys"):
            pairs = [parts_of(scope, item) for item in scope.iter(first)]
            if any(type(pair) is not tuple or len(pair) != 2 for pair in pairs):
                return f(pairs)  # raises
            pairs = [(scope.key(k), v) for k, v in pairs]
            keys = materialise_all(scope, f, [k for k, _ in pairs])
            return f(zip(keys, (v for _, v in pairs), strict=True), **kwargs)
        return call_unknown(scope, f, args, kwargs)
    return f(*args, **kwargs)


@understands(collections.defaultdict, collections.Counter)
def _dict_of_defaults(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """One without items, or the counts of an array's or list's items, which are counted in a loop."""
    if len(args) <= (f is collections.defaultdict) and not kwargs:
        return f(*args) if not args or args[0] is None or callable(args[0]) else call_unknown(scope, f, args, kwargs)
    if f is collections.Counter and not kwargs and len(args) == 1:
        value = scope.stage.lift_array(args[0])
        if type(value) is Traced or type(value) is list:
            return dispatch(scope, composites.counted, (value,), {})
    return call_unknown(scope, f, args, kwargs)


# --- order ---


@understands(sorted)
def _sorted(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs.keys() - {"key", "reverse"}:
        return f(*args, **kwargs)  # raises
    others = {name: scope.stage.materialise(v) for name, v in kwargs.items() if name != "key"}
    f((), **others)  # raises if these keywords are not valid
    value, key = scope.stage.lift_array(args[0]), kwargs.get("key")
    grown = scope.stage.state.lists.get(id(value))
    if grown is not None and grown.has_sources and (key is None or not grown.is_sized):
        keys = () if key is None else columns_of_keys(scope, key, value)
        made = None if keys is None else grown.in_order(scope, others, keys)
        if made is not None:
            return made_of(scope, grown.like, made, made[0].rows.shape[0])
    if key is None and (line := line_of(scope, (value,), {}, "biu")) is not None:
        items = list(scope.iter(dispatch(scope, np.sort, (line,), {})))
        return items[::-1] if others.get("reverse") else items
    if asks_length(value):
        return call_unknown(scope, f, args, kwargs)
    if key is None:
        return sorted(materialise_all(scope, f, scope.use([*scope.iter(value)])), **others)
    keys = keys_of(scope, key, value)
    items = [*scope.iter(value)]
    if type(keys) is Traced:
        keys = scope.stage.forced(keys).tolist()
    else:
        keys = [*map(called_by(scope, key), items)] if keys is None else keys
        keys = materialise_all(scope, f, scope.use(keys))
    return [items[k] for k in sorted(range(len(items)), key=keys.__getitem__, **others)]


def columns_of_keys(scope: Hooks, key: Any, value: Any) -> Any:
    """The keys of the items of a list that is stored as columns: an array, or an array for each place in keys that are
    tuples. None if they are no numbers.
    """
    made = dispatch(scope, composites.mapped, (key, value), {})
    grown = scope.stage.state.lists.get(id(made))
    if type(made) is Traced:
        return (made,) if made.ndim == 1 else None
    if grown is not None and not grown.is_sized:
        return None if any(column.tags is not None for column in grown.columns) else tuple(c.rows for c in grown.copied())
    if grown is not None or not made or (like := like_of(scope.stage.tracer, made)) is None:
        return None
    kinds = [number_kind(leaf) for leaf in leaves(like)]
    return None if None in kinds else tuple(scope.call(np.array, [leaves(item)[k] for item in made], kind[1]) for k, kind in enumerate(kinds))  # type: ignore[index]


def keys_of(scope: Hooks, key: Any, value: Any) -> Any:
    """Computes the keys of many items in a captured loop: an array of numbers, or a list of other keys. None
    for few items.
    """
    if not scope.stage.captures or not is_many(value):
        return None
    return dispatch(scope, composites.mapped, (key, value), {})


@understands(*composites.IN_ORDER)
def _in_order(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """heapq and bisect: on a list, or for a search on an array, their source is captured."""
    value = scope.stage.lift_array(args[0]) if args else None
    is_search = f in (_bisect.bisect_left, _bisect.bisect_right)
    if type(value) is list or (is_search and type(value) is Traced and value.kind == "array" and value.ndim == 1):
        return call_function(scope, composites.IN_ORDER[f], (value, *args[1:]), kwargs)  # type: ignore[arg-type]
    return call_unknown(scope, f, args, kwargs)


@understands(composites.array_or_list)
def _as_it_is(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return args[0]


@understands(min, max)
def _extreme(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or kwargs.keys() - {"key", "default"} or ("default" in kwargs and len(args) > 1):
        return f(*args, **kwargs)  # raises
    is_one, key = len(args) == 1, kwargs.get("key")
    others = {name: value for name, value in kwargs.items() if name != "key"}
    if key is not None:
        return best_by_key(scope, f, args[0] if is_one else [*map(scope.use, args)], key, others)
    if is_one and (line := line_of(scope, args, {})) is not None and line.shape[0] > FEW:
        return line[position_of_extreme(scope, f, line)]
    if is_one and defines(type(args[0]), "__next__") and not others:
        return chosen(scope, f, scope.iter(args[0]))
    items = list(scope.iter(args[0])) if is_one else [scope.use(a) for a in args]
    if any(type(v) is Traced for v in items):
        return chosen(scope, f, items)
    items = scope.use(items)
    return f(items, **others) if is_one else f(*items)


def best_by_key(scope: Hooks, f: Any, value: Any, key: Any, others: dict[str, Any]) -> Any:
    """min or max by the key function's results; known keys are compared at once, as in Python."""
    if (known := keys_of(scope, key, value)) is not None:
        if type(known) is list:
            place = f(range(len(known)), key=materialise_all(scope, f, scope.use(known)).__getitem__)
        else:
            place = dispatch(scope, int, (position_of_extreme(scope, f, known),), {})
        return value.start + place * value.step if type(value) in (range, Range) else value[place]
    items: list[Any] = []
    keys, best, is_known, called = [], 0, True, called_by(scope, key)
    for item in scope.iter(value):
        items.append(item)
        keys.append(scope.use(called(item)))
        is_known = is_known and not is_open(keys[-1])
        if is_known and (keys[-1] > keys[best] if f is max else keys[-1] < keys[best]):
            best = len(keys) - 1
    if not items:
        return f((), **others)
    return items[best if is_known else f(range(len(items)), key=materialise_all(scope, f, keys).__getitem__)]


def position_of_extreme(scope: Hooks, f: Any, array: Any) -> Any:
    """The position of the first smallest or largest element, compared as in Python. A NaN only counts if it is the
    first element.
    """
    find = np.argmax if f is max else np.argmin
    if array.dtype.kind != "f":
        return scope.call(find, array)
    least = array.dtype.type(-np.inf if f is max else np.inf)
    found = scope.call(find, scope.call(np.where, scope.call(np.isnan, array), least, array))
    first = array[0]
    return branch.select(scope.stage.tracer, first != first, np.int64(0), found)  # noqa: PLR0124


def of_numbers(scope: Hooks, f: Any, grown: Any) -> Any:
    """f of a list of numbers that a captured loop has appended; None for other functions and lists."""
    kind = grown.columns[0].kind
    if f not in (min, max, composites.array_or_list) or kind[0] == "array" or kind[1].kind not in "bif":
        return None
    array = grown.array
    if f is composites.array_or_list:
        return array
    found = array[position_of_extreme(scope, f, array)]
    return scope.stage.tracer.as_python(found) if kind[0] == "python" else found


def chosen(scope: Hooks, f: Any, values: Iterable[Any]) -> Any:
    """The first of the largest or smallest items, compared as in Python: each when it is taken."""
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
        new = branch.select(scope.stage.tracer, is_better, item, best) if scope.stage.captures else None
        best = new if new is not None else item if is_better else best
    return best


# --- truth, and arbitrary functions ---


@understands(any, all)
def _any(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return f(*args, **kwargs)  # raises
    line = line_of(scope, args, kwargs, "biufc")
    if line is not None and scope.stage.captures:
        found = scope.call(np.any if f is any else np.all, line)
        return scope.stage.tracer.as_python(found)
    return f(map(scope.test, scope.iter(args[0])))


@understands(functools.reduce)
def _reduce(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    return functools.reduce(called_by(scope, args[0]), scope.iter(args[1]), *args[2:], **kwargs)
