"""Functions that make or consume iterables, by identity: the builtins, itertools, functools.reduce, and NumPy's
iterators.
"""

from __future__ import annotations

import itertools
import operator
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a, offered
from .. import special_methods
from ..container_rows import MAPPINGS, VIEWS
from ..control import branch
from ..control.list_columns import Assumed
from ..identity import SETS
from ..iterators import (
    END,
    ENDLESS,
    Flat,
    Items,
    Range,
    enumerated,
    numbered,
    part_of,
    zipped,
)
from ..kinds import is_int, is_one
from ..objects import (
    MISSING,
    OPAQUE,
    Traced,
    asks_length,
    defines,
    is_internal,
    is_users,
)
from ..reversal import backwards
from .calls import called_by, dispatch, understands
from .functions import call_pure, call_unknown

if TYPE_CHECKING:
    from ..kinds import Hooks

RegionBreak = _core.RegionBreak


def numbered_of(scope: Hooks, value: Any) -> Items | None:
    """The items of an iterable by index, as for loops: also lists, tuples and dict views, whose items are read when
    they are taken. None if Python has to iterate.
    """
    stage = scope.stage
    if not stage.captures:
        return None
    value = stage.escapes.now(value)
    items = stage.numbered(value)
    if items is not None:
        if items is value:  # it advances with the iterator
            stage.state.before_change(items)
        return items
    cls, source = type(value), stage.sources.source_of(value)
    if cls in (list, tuple) and source != OPAQUE:
        if source is not None:
            stage.sources.guard_length(value, source)
        made = lambda c, f=iter: f(c.of(value))  # noqa: E731
        return Items(lambda: stage.length_now(value), lambda i: scope.item(value, i), made)
    if VIEWS.get(cls) is dict:
        return scope.items_of_view(value)
    return None


def is_held(value: Any) -> bool:
    """True for an iterator, which other code may advance."""
    return type(value) is Flat or defines(type(value), "__next__")


def all_numbered(scope: Hooks, values: tuple[Any, ...]) -> list[Items] | None:
    """The items of several iterables; one that is given twice is advanced by both."""
    ours = [v for v in map(scope.stage.escapes.now, values) if type(v) is Items]
    if len({*map(id, ours)}) != len(ours):
        return None
    parts = []
    for value in values:
        if (items := numbered_of(scope, value)) is None:
            return None
        parts.append(items)
    return parts


def least_of(scope: Hooks, values: tuple[Any, ...]) -> Any:
    """The minimum of lengths, if no other code iterates the values; otherwise it would be visible which of them was
    read last.
    """
    return None if any(map(is_held, values)) else scope.stage.tracer.size_min


@understands(range)
def _range(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if Traced in map(type, args) and not kwargs and len(args) in (1, 2, 3):
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if scope.stage.captures and all(map(is_bound, (start, stop, step))):
            bounds = [bound_of(scope.stage, v) for v in (start, stop, step)]
            is_up = is_upwards(scope.stage, bounds[2])
            if is_up is not None:
                return Range(scope.stage.tracer, *bounds, is_up)  # type: ignore[call-arg]
    return call_pure(scope, f, args, kwargs)


def is_upwards(stage: Any, step: Any) -> bool | None:
    """True if a range ascends, False if it descends; None if it does neither, or this is unknown. A data-dependent
    step is assumed to be positive.
    """
    if type(step) is not Traced:
        return int(step) > 0 if step else None
    if stage.tracer.is_positive(step):
        return True
    is_more = step > 0
    if type(is_more) is not Traced or not stage.tracer.may_check():
        return None
    stage.tracer.check(is_more, "a range that goes up")
    return True


def is_bound(value: Any) -> bool:
    """True for an int of Python or NumPy."""
    return is_int(value) or (
        type(value) is Traced and value.kind == "scalar" and value.dtype.kind in "iu"
    )


def bound_of(stage: Any, value: Any) -> Any:
    """An int as an expression: a data-dependent one gets a symbol."""
    if type(value) is Traced and not value.is_expression:
        if value.dtype != np.int64:
            value = stage.tracer.cast(value, np.int64)
        return stage.tracer.define(value, None, None)
    return value


@understands(np.ndindex)
def _ndindex(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """NumPy checks known sizes; others are sizes of arrays, or become symbols."""
    shape = args[0] if len(args) == 1 and is_a(args[0], tuple) else args
    stage = scope.stage
    if stage.sources.source_of(shape) is not None:
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
    return numbered(array.shape, lambda place: (place, array[place]), made, reads=True)


@understands(enumerate)
def _enumerate(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    given = [*args[1:], *kwargs.values()]
    is_usual = 1 <= len(args) + len(kwargs) <= 2 and not kwargs.keys() - {"start"} and bool(args)
    start = index_of(scope, given[0] if given else 0) if is_usual else None
    if start is None:
        return call_unknown(scope, f, args, kwargs)  # it raises, or is a rare form
    scope.stage.state.note_iterators(args[:1])
    items = numbered_of(scope, args[0])
    return scope.born(enumerate(scope.iter(args[0]), start) if items is None else enumerated(items, start))


def index_of(scope: Hooks, value: Any) -> Any:
    """A value as the int to which Python converts it; None if it cannot be converted, or only by user code."""
    if type(value) is Traced:
        if value.kind == "array" or value.dtype.kind not in "biu":
            return None
        if value.kind == "python":
            return value if value.dtype.kind == "i" else dispatch(scope, int, (value,), {})
        return None if value.dtype == bool else dispatch(scope, int, (value,), {})
    if type(value) in (int, bool) or is_a(value, np.integer):
        return operator.index(value)
    return None


@understands(iter)
def _iter(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return call_unknown(scope, f, args, kwargs)
    value = args[0]
    if is_held(value) and scope.stage.sources.source_of(value) is None:
        method = scope.stage.sources.class_attr(type(value), "__iter__")
        is_function = type(method) is types.FunctionType and not is_internal(type(value))
        return special_methods.iterator(dispatch(scope, method, args, {})) if is_function else value
    if asks_length(value) or defines(type(value), "__next__"):
        return call_unknown(scope, f, args, kwargs)
    scope.stage.state.note_iterators(args)
    items = numbered_of(scope, value)
    if items is not None:
        return scope.born(items)
    made = iter(scope.iter(value))
    return scope.born(made)


@understands(reversed)
def _reversed(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value: Any = args[0] if len(args) == 1 and not kwargs else None
    if is_a(grown := scope.stage.state.lists.get(id(value)), Assumed):
        return scope.born(backwards(grown.items_now, value))
    scope.stage.state.note_iterators(args)
    is_made = type(value) is list and scope.stage.sources.source_of(value) is None  # its length may change
    items = None if is_made or value is None else numbered_of(scope, value)
    if items is not None and items is not value:
        return scope.born(backwards(items, value))
    if is_made or type(value) in (range, str, bytes):
        return scope.born(reversed(value))
    if value is None or type(value) not in (Traced, np.ndarray, tuple):  # what is left of lists may change
        return call_unknown(scope, f, args, kwargs)
    return scope.born(reversed([*scope.iter(value)]))


@understands(zip)
def _zip(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.state.note_iterators(args)
    parts = all_numbered(scope, args) if args and not kwargs else None
    if parts is not None and (items := zipped(parts, least_of(scope, args))) is not None:
        return scope.born(items)
    return scope.born(zip(*(scope.iter(a) for a in args), **kwargs))  # noqa: B905


@understands(map, filter)
def _map(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) < 2:
        return call_unknown(scope, f, args, kwargs)
    scope.stage.state.note_iterators(args[1:])
    function = called_by(scope, bool if args[0] is None and f is filter else args[0])
    parts = all_numbered(scope, args[1:]) if f is map and not kwargs else None
    if parts is not None:
        items = zipped(parts, least_of(scope, args[1:]), function, map)
        if items is not None:
            return scope.born(items)
    return scope.born(f(function, *(scope.iter(a) for a in args[1:]), **kwargs))


@understands(next)
def _next(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    args = (*map(scope.stage.escapes.now, args[:1]), *args[1:])
    if args and (scope.stage.sources.source_of(args[0]) is not None or type(args[0]) is Traced):
        return call_unknown(scope, f, args, kwargs)
    if not args or kwargs or len(args) > 2 or not defines(type(args[0]), "__next__"):
        return next(*args, **kwargs)  # raises
    if type(args[0]) is Items and len(args) == 1:
        return scope.stage.regions.step(scope, args[0])
    try:
        return scope.step(args[0])
    except StopIteration:
        if len(args) == 1:
            raise
        return args[1]


# --- itertools by index; None if Python has to iterate ---


def count_items(scope: Hooks, start: Any = 0, step: Any = 1, *rest: Any) -> Items | None:
    """itertools.count of ints; floats would accumulate rounding errors."""
    if rest or not all(is_int(n) and (type(n) is Traced or abs(n) < ENDLESS) for n in (start, step)):
        return None
    made = lambda c, f=iter: f(itertools.count(c.of(start), c.of(step)))  # noqa: E731
    return Items(ENDLESS, lambda i: start + i * step, made)


def repeated_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.repeat"""
    if len(args) not in (1, 2) or not is_int(args[-1] if args[1:] else 0):
        return None
    times = ENDLESS if len(args) == 1 else scope.stage.tracer.size_max(bound_of(scope.stage, args[1]), 0)
    made = lambda c, f=iter: f(itertools.repeat(*map(c.of, args)))  # noqa: E731
    return Items(times, lambda i: args[0], made)


def cycled_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.cycle: Python keeps the items that it has seen, which matters if they may change before."""
    value: Any = args[0] if len(args) == 1 else None
    if type(value) not in (tuple, range, list) or not len(value):
        return None
    items = numbered_of(scope, value)
    if items is None or type(value) is list:
        return None if items is None else CycledList(scope, value).items
    length = items.length
    made = lambda c, f=iter: f(itertools.cycle(c.of(value)))  # noqa: E731
    return Items(ENDLESS, lambda i: items.get(i % length), made)


class CycledList:
    """itertools.cycle(list), which keeps the items it has seen until the list ends. A captured loop may read the list
    while it is unchanged.
    """

    def __init__(self, scope: Hooks, value: list[Any]) -> None:
        self.scope, self.value = scope, value
        self.was = [*scope.stage.lift_items(value)]
        self.kept: list[Any] = []
        self.ended = False  # all items are kept
        made = lambda c, f=iter: f(itertools.cycle(c.of(value)))  # noqa: E731
        self.items = Items(ENDLESS, self.item, made)

    def item(self, number: Any) -> Any:
        """The item of that index. All earlier ones have been read, or a loop has read them."""
        length, now = self.scope.stage.length_now(self.value), self.scope.stage.lift_items(self.value)
        if type(number) is Traced:
            if len(now) != len(self.was) or not all(map(is_one, self.was, now)):
                raise RegionBreak("a list has changed that itertools.cycle goes over", "", 0)
            return self.scope.item(self.was, number % len(self.was))
        if number < len(self.kept):
            self.ended &= number >= length  # otherwise the end was undone
        elif number > len(self.kept) and not self.ended:
            self.kept, self.ended = self.was[:number], number > len(self.was)
        if not self.ended and number < length:
            self.kept[number:] = [now[number]]
            return now[number]
        self.ended = True
        return self.kept[number % len(self.kept)]


def sliced_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.islice; only from the start if other code advances the iterator."""
    if not 2 <= len(args) <= 4 or not all(n is None or is_int(n) for n in args[1:]):
        return None
    start, stop, step = (0, args[1], 1) if len(args) == 2 else (*args[1:], None)[:3]
    start, step = (start or 0), (1 if step is None else step)
    known = [n for n in (start, stop, step) if n is not None]
    if any(type(n) is not Traced and n < 0 for n in known) or type(step) is Traced or step < 1:
        return None
    is_free = not is_held(args[0])
    tracer = scope.stage.tracer
    if not all(type(n) is not Traced or tracer.is_positive(n + 1) for n in known):
        return None
    if not is_free and (start != 0 or step != 1 or not all(type(n) is int for n in known)):
        return None
    items = numbered_of(scope, args[0])
    if items is None or (items.is_endless and stop is None):
        return None

    def end() -> Any:
        return stop if items.is_endless else items.length if stop is None else tracer.size_min(stop, items.length)

    def count() -> Any:
        left = end() - start
        return tracer.size_max(left if step == 1 else (left + (step - 1)) // step, 0)

    length = end()
    if not is_free and (type(length) is not int or callable(items.size)):
        return None
    over = () if is_free else (items,)
    if is_free:
        made = lambda c, f=iter: f(itertools.islice(items.made(c), *map(c.of, args[1:])))  # type: ignore[misc]  # noqa: E731
    else:
        made = lambda c, p: itertools.islice(part_of(c, items, p), stop - p)  # type: ignore[assignment, misc]  # noqa: E731
    is_end = not items.is_endless and type(stop) is int and stop > items.length
    ends = () if is_free else (END if is_end else length,)
    get = lambda i: items.get(start + i * step)  # noqa: E731
    return Items(items.size_like(count), get, items.made and made, over, ends, items.reads)


def pairwise_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.pairwise, if no other code advances the iterator."""
    items = None if len(args) != 1 or is_held(args[0]) else numbered_of(scope, args[0])
    if items is None or callable(items.size):
        return None
    count = scope.stage.tracer.size_max(items.length - 1, 0)
    made = lambda c, f=iter: f(itertools.pairwise(items.made(c)))  # type: ignore[misc]  # noqa: E731
    get = lambda i: (items.get(i), items.get(i + 1))  # noqa: E731
    return Items(count, get, items.made and made, reads=items.reads)


def product_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.product of immutable iterables, because Python keeps their items."""
    if not args or not all(type(a) in (range, Range, tuple) for a in args):
        return None
    parts = all_numbered(scope, args)
    if parts is None:
        return None
    made = lambda c, f=iter: f(itertools.product(*(part.made(c) for part in parts)))  # type: ignore[misc]  # noqa: E731
    get = lambda places: tuple(p.get(i) for p, i in zip(parts, places, strict=True))  # noqa: E731
    is_read = any(part.reads for part in parts)
    return numbered(tuple(part.length for part in parts), get, made, is_read)


def choices_of(choose: Any) -> Any:
    """The rows of itertools.combinations and similar functions, for immutable iterables, because Python keeps their
    items.
    """

    def items_of_choices(scope: Hooks, *args: Any) -> Items | None:
        value, *count = args or (None,)
        if type(value) not in (range, tuple) or not all(type(n) is int and n >= 0 for n in count):
            return None
        items = numbered_of(scope, value)
        if items is None or len(count) > 1:
            return None
        places = [*itertools.islice(choose(range(len(value)), *count), MAX_CHOICES + 1)]
        if len(places) > MAX_CHOICES:
            return None
        get = lambda i: tuple(items.get(k) for k in scope.unpack(scope.item(places, i), ()))  # noqa: E731
        made = lambda c, f=iter: f(choose(items.made(c), *count))  # type: ignore[misc]  # noqa: E731
        return Items(len(places), get, made)

    return items_of_choices


def chained_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.chain of iterables that keep their lengths: an item is selected from those that each has at that
    index.
    """
    if not args or not all(type(a) in (range, Range, tuple, Traced, np.ndarray) for a in args):
        return None
    parts = all_numbered(scope, args)
    if parts is None or not all(scope.stage.tracer.is_positive(part.length) for part in parts):
        return None
    get = lambda i: item_of_chain(scope.stage, parts, bound_of(scope.stage, i))  # noqa: E731
    made = lambda c, f=iter: f(itertools.chain(*(part.made(c) for part in parts)))  # type: ignore[misc]  # noqa: E731
    is_read = any(part.reads for part in parts)
    return Items(lambda: sum(part.length for part in parts), get, made, reads=is_read)


def item_of_chain(stage: Any, parts: list[Items], number: Any) -> Any:
    """The item of that index of the concatenated iterables."""
    tracer, found = stage.tracer, MISSING
    end = sum(part.length for part in parts)
    for part in reversed(parts):
        length = part.length
        begin, is_before = end - length, number < end
        if is_before is False:
            break
        if not (type(number) is int and type(begin) is int and number < begin):
            place = tracer.size_max(tracer.size_min(number - begin, length - 1), 0)
            item = part.get(place)
            if found is not MISSING and type(is_before) is Traced:
                item = branch.select(stage.tracer, is_before, item, found)
            if item is None:
                raise RegionBreak("items of itertools.chain are of another type in each part", "", 0)
            found = item
        end = begin
    return found


def accumulated_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.accumulate of an array of numbers that NumPy adds like its scalars."""
    stage, function = scope.stage, args[1] if len(args) == 2 else operator.add
    ufunc = ACCUMULATED.get(function) if callable(function) and 1 <= len(args) <= 2 else None
    array = stage.lift_array(args[0]) if ufunc is not None else None
    if type(array) is not Traced or array.ndim != 1 or array.dtype.char not in "fdlqFD":
        return None
    version, totals = array.version, scope.call(ufunc.accumulate, array)  # type: ignore[union-attr]

    def item(number: Any) -> Any:
        if array.version != version:
            raise RegionBreak("an array has changed that itertools.accumulate goes over", "", 0)
        return totals[number]

    made = lambda c, f=iter: f(itertools.accumulate(c.of(array), function))  # noqa: E731
    return Items(array.shape[0], item, made, reads=True)


def starred_items(scope: Hooks, *args: Any) -> Items | None:
    """itertools.starmap"""
    items = numbered_of(scope, args[1]) if len(args) == 2 else None
    if items is None:
        return None
    function = called_by(scope, args[0])
    get = lambda i: function(*scope.iter(items.get(i)))  # noqa: E731
    made = lambda c, p: itertools.starmap(c.of(function), part_of(c, items, p))  # noqa: E731
    return Items(items.size, get, items.made and made, (items,), calls=True)


ACCUMULATED = {operator.add: np.add, operator.mul: np.multiply}
CHOICES = (itertools.combinations, itertools.combinations_with_replacement, itertools.permutations)
KEEPS_ITEMS = frozenset({*CHOICES, itertools.product})  # they make tuples of what they iterate over
MAX_CHOICES = 1024
NUMBERED = {  # type: ignore[misc]
    itertools.count: count_items,
    itertools.repeat: repeated_items,
    itertools.cycle: cycled_items,
    itertools.islice: sliced_items,
    itertools.pairwise: pairwise_items,
    itertools.product: product_items,
    itertools.chain: chained_items,
    itertools.accumulate: accumulated_items,
    **{f: choices_of(f) for f in CHOICES},
    itertools.starmap: starred_items,
}
TAKES_FUNCTION = frozenset(
    {itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.filterfalse}
)
TAKES_ONE = frozenset(
    {
        *(itertools.islice, itertools.combinations, itertools.permutations, itertools.cycle),
        *(itertools.combinations_with_replacement, getattr(itertools, "batched", itertools.cycle)),
    }
)


BY_KEYS = MAPPINGS | SETS | VIEWS.keys()


def items_later(scope: Hooks, value: Any) -> Iterator[Any]:
    """The items of a dict, set or view, which is not looked at before the first of them is taken."""
    yield from scope.iter(value)


@understands(*(f for f in offered(itertools) if is_a(f, type)))
def _itertools(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    scope.stage.state.note_iterators(args)
    row = NUMBERED.get(f)
    items = row(scope, *args) if row is not None and scope.stage.captures and not kwargs else None
    if items is not None:
        return scope.born(items)
    if f in (itertools.count, itertools.repeat):
        return scope.born(f(*args, **kwargs))
    others = [cls for cls in map(type, args) if is_users(cls) and not is_internal(cls)]
    is_late = f is itertools.chain and others  # asks each iterable when the one before has ended
    if is_late or f in (itertools.accumulate, itertools.groupby, itertools.tee):
        return call_unknown(scope, f, args, kwargs)
    if f in TAKES_FUNCTION and len(args) == 2:
        function = called_by(scope, bool if args[0] is None else args[0])
        return scope.born(f(function, scope.iter(args[1])))
    if f is itertools.chain:
        return scope.born(f(*(items_later(scope, a) if type(a) in BY_KEYS else scope.iter(a) for a in args), **kwargs))
    take = scope.star if f in KEEPS_ITEMS else scope.iter
    if f in TAKES_ONE and args:
        return scope.born(f(take(args[0]), *args[1:], **kwargs))
    return scope.born(f(*map(take, args), **kwargs))
