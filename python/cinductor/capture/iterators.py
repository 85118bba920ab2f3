"""Iterables with items by index, and iterators made in the call that leave it.

These are ranges, rows of arrays, and enumerate, zip and reversed of them. Python could also iterate over each; then its length must
be known. When one leaves captured code it becomes Python's own iterator over real values, at its current position. Captured code may
continue to take items from it: `SharedIterators.now` maps the iterator to what it became, so that no item is taken twice.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import operator
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a, offered
from ..base.deferred_warnings import ignoring
from ..base.user_frame import PACKAGE
from .kinds import entries_in
from .objects import VIEWS_OF_DICTS, Traced, attribute, find_in_class

RegionBreak = _core.RegionBreak
Made = Callable[..., Iterator[Any]]  # makes Python's own iterator, given a function that makes values real
END, UNKNOWN = "at its end", "somewhere"  # positions, besides those that are numbers
MAX_READ, ENDLESS = 256, 1 << 62  # elements of an array that nodes read; items of an endless iterator


class Items:
    """Items found by index. Also an iterator, whose position is the number of items taken. Items made of others advance them too.

    size: the number of items, or a function that returns it, because a list may change. ends: the others' positions at the end
    of this one. reads: True if an item is read from an array by its own node. calls: True if each item calls a function.
    """

    __slots__ = ("size", "get", "made", "position", "over", "ends", "is_shared", "reads", "calls")

    def __init__(
        self, size: Any, get: Callable[[Any], Any], made: Made | None = None, over: tuple[Items, ...] = (),
        ends: tuple[Any, ...] | None = None, reads: bool = False, calls: bool = False,
    ) -> None:  # fmt: skip
        self.size, self.get, self.made, self.over = size, get, made, over
        self.reads: bool = reads or any(items.reads for items in over)
        self.calls: bool = calls or any(items.calls for items in over)
        self.ends = (END,) * len(over) if ends is None else ends
        self.position: Any = 0
        self.is_shared = False  # other code has a reference to it

    @property
    def length(self) -> Any:
        """The number of items."""
        return self.size() if callable(self.size) else self.size

    def size_like(self, size: Callable[[], Any]) -> Any:
        """The size of items made of these: it changes if theirs does."""
        return size if callable(self.size) else size()

    @property
    def is_long(self) -> bool:
        """True if Python would read many elements of arrays one by one; guarded if that depends on a size."""
        return self.reads and not self.is_endless and bool(self.length > MAX_READ)

    @property
    def is_endless(self) -> bool:
        """True if there is always another item."""
        return type(self.size) is int and self.size == ENDLESS

    def move(self, position: Any) -> None:
        """Set the number of items taken; or END, or UNKNOWN."""
        self.position = position
        for items, end in zip(self.over, self.ends, strict=True):
            items.move(end if position is END else position)

    def rest(self, tracer: Any) -> Items:
        """The remaining items, for a loop."""
        gone = self.position
        left = lambda: tracer.size_max(self.length - gone, 0)  # noqa: E731
        return Items(self.size_like(left), lambda i: self.get(gone + i), reads=self.reads)

    @property
    def is_whole(self) -> bool:
        """True if no item has been taken."""
        return type(self.position) is int and self.position == 0 and self.is_in_step

    @property
    def is_in_step(self) -> bool:
        """True if the underlying iterators are at the same position. Not checked: at the end, and those that only this one has."""
        return self.position is END or not self.over or all(
            items.is_in_step and (not items.is_shared or _are_equal(items.position, self.position))
            for items in self.over
        )

    def real(self, concrete: Any) -> Iterator[Any] | None:
        """Python's own iterator at the current position; None if there is none of this kind."""
        if self.position is END:
            return self.ended(concrete)
        if self.position is UNKNOWN or self.made is None or not self.is_in_step:
            return None
        position = int(concrete.of(self.position))
        return self.made(concrete, position) if self.over else self.at(concrete, position)

    def ended(self, concrete: Any) -> Iterator[Any]:
        """An iterator of the same kind without remaining items."""
        if self.made is None:
            return iter(())
        if self.over:
            return self.made(concrete, int(concrete.of(self.length)))
        made = self.made(concrete)
        with contextlib.suppress(RuntimeError):  # it iterates a dict that has changed since
            _ = [*made]
            return made
        return iter(())

    def at(self, concrete: Any, position: int) -> Iterator[Any]:
        """Python's own iterator at this position, for items that do not depend on others."""
        made = self.made(concrete)  # type: ignore[misc]
        with contextlib.suppress(RuntimeError):  # it iterates a dict that has changed since, and raises at each step
            _ = [*itertools.islice(made, position)]
        return made

    def check(self) -> None:
        """Raise if a captured loop has taken an unknown number of items."""
        if self.position is UNKNOWN or not self.is_in_step:
            raise RegionBreak("an iterator that a captured loop has used", "", 0)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.check()
        if self.position is END:
            raise StopIteration
        position = int(self.position)
        self.move(position + 1 if position < int(self.length) else END)
        if self.position is END:
            raise StopIteration
        return self.get(position)


class Range:
    """range(start, stop, step) with bounds that are only known at run time."""

    __slots__ = ("start", "stop", "step", "length")

    def __init__(self, tracer: Any, start: Any, stop: Any, step: Any, is_up: bool) -> None:
        self.start, self.stop, self.step = start, stop, step
        distance = stop - start if is_up else start - stop
        stride = step if is_up else -step
        if type(stride) is not int or stride != 1:
            distance = (distance + (stride - 1)) // tracer.size_max(stride, 1)
        self.length = tracer.size_max(distance, 0)

    def __iter__(self) -> Iterator[Any]:
        return map(self.get, range(int(self.length)))

    def __len__(self) -> Any:
        return int(self.length)

    def __getitem__(self, index: Any) -> Any:
        return range(int(self.start), int(self.stop), int(self.step))[index if type(index) is slice else int(index)]

    def real(self, concrete: Any) -> range:
        """Python's own range."""
        return range(*(int(concrete.of(n)) for n in (self.start, self.stop, self.step)))

    def get(self, index: Any) -> Any:
        """The item of that index, which is in range."""
        return self.start + index * self.step


def items_of(value: Any) -> Items | None:
    """A loop's iterable by index; None if Python has to iterate it."""
    cls = type(value)
    if cls is Items:
        value.check()
        return value if value.is_whole else None
    if cls is range:
        start, step = value.start, value.step
        return Items(len(value), lambda i: start + i * step, lambda c, f=iter: f(value))
    if cls is Range:
        return Items(value.length, value.get, lambda c, f=iter: f(value.real(c)))
    if cls is TracedBytes:
        return value.items
    if cls is Traced and value.ndim > 0:
        made = lambda c, f=iter: f(c.of(value))  # noqa: E731
        return Items(value.shape[0], lambda i: value[i], made, reads=value.ndim == 1)
    return None


def part_of(concrete: Any, items: Items, position: int) -> Iterator[Any]:
    """Python's own object for a part: if the user has a reference to the part, the same object at its position."""
    if items.is_shared:
        return concrete.of(items)
    return items.at(concrete, position)


def enumerated(items: Items, start: Any) -> Items:
    """enumerate(items, start)"""

    def made(concrete: Any, position: int) -> Iterator[Any]:
        return enumerate(part_of(concrete, items, position), concrete.of(start) + position)

    return Items(items.size, lambda i: (i + start, items.get(i)), items.made and made, (items,))


def numbered(shape: tuple[Any, ...], get: Callable[[tuple[Any, ...]], Any], made: Made | None = None, reads: bool = False) -> Items:
    """The elements of an array of this shape in C order, by one loop over all axes."""
    length: Any = functools.reduce(operator.mul, shape, 1)

    def item(number: Any) -> Any:
        places = []
        for axis in range(len(shape) - 1, -1, -1):
            places.append(number % shape[axis] if axis else number)
            number = number // shape[axis] if axis else number
        return get(tuple(places[::-1]))

    return Items(length, item, made, reads=reads)


class Flat:
    """Stands for the np.flatiter of a traced array: an iterator, `items`, whose elements also have an index."""

    __slots__ = ("array", "items")

    def __init__(self, array: Traced) -> None:
        made = lambda c, f=iter: f(c.of(array).flat)  # noqa: E731
        self.array, self.items = array, numbered(array.shape, lambda places: array[places], made, reads=True)

    @property
    def length(self) -> Any:
        """The number of elements."""
        return self.array.size

    def is_fresh(self, effects: Any) -> bool:
        """True if nothing has taken an item, and other code does not see it."""
        return self.items.is_whole and effects.escapes.now(self.items) is self.items

    def real(self, concrete: Any) -> Any:
        """NumPy's own."""
        concrete.effects.stop("passes on array.flat itself, not its items", self.items)
        return concrete.of(self.items)


class TracedBytes:
    """Stands for a bytes object of which only items are read: an array of this call's bytes."""

    __slots__ = ("value", "array")

    def __init__(self, value: bytes, array: Traced) -> None:
        self.value, self.array = value, array

    @property
    def length(self) -> Any:
        """The number of bytes."""
        return self.array.size

    def item(self, index: Any) -> Any:
        """The int of that index."""
        if type(index) is not Traced:
            if not hasattr(index, "__index__"):
                return self.value[index]  # raises
            index = operator.index(index)
        try:
            return self.array[index].item()
        except IndexError:
            raise IndexError("index out of range") from None

    @property
    def items(self) -> Items:
        """The ints, for a loop."""
        return Items(self.length, self.item, lambda c, f=iter: f(self.value), reads=True)

    def __iter__(self) -> Iterator[int]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> int:
        return self.value[index]


SIZED = (Range, Flat, TracedBytes)  # stand-ins of objects that have a length


def bytes_in(value: bytes) -> np.ndarray:
    """The bytes as an array."""
    return np.frombuffer(value, np.uint8)


def row(*items: Any) -> tuple[Any, ...]:
    """An item of zip."""
    return items


def zipped(parts: list[Items], least: Callable[[Any, Any], Any] | None, f: Any = row, function: Any = zip) -> Items | None:
    """zip(*parts), or function(f, *parts), which applies f to what zip returns. Its length is that of the shortest part. least: the
    minimum of two lengths, if no other code has the parts; without it the lengths must be equal."""
    limited = [part for part in parts if not part.is_endless]
    first = limited[0] if limited else parts[0]
    size = first.size
    changing = next((part for part in limited if callable(part.size)), None)
    if not all(part is first or (changing is None and _are_equal(part.length, first.length)) for part in limited):
        if least is None:
            return None
        size = (changing or first).size_like(lambda: functools.reduce(least, (part.length for part in limited)))
    at = next(k for k, part in enumerate(parts) if part is first)
    ends = [END if not part.is_endless else first.length + (k < at) for k, part in enumerate(parts)]

    def made(concrete: Any, position: int) -> Iterator[Any]:
        real = [part_of(concrete, part, position) for part in parts]
        return zip(*real) if function is zip else function(concrete.of(f), *real)  # noqa: B905

    is_real = all(part.made for part in parts)
    get = lambda i: f(*(part.get(i) for part in parts))  # noqa: E731
    return Items(size, get, made if is_real else None, tuple(parts), tuple(ends), calls=function is not zip)


def _are_equal(a: Any, b: Any) -> bool:
    if type(a) is type(b) and type(a) in (int, str):
        return bool(a == b)
    return type(a) is Traced and type(b) is Traced and a.is_same(b)


# --- iterators that become visible to other code ---


# Iterators that reveal their parts and positions; those over a container refer to it.
OVER_ITERATORS = (map, filter, zip, enumerate)
OVER_CONTAINERS = (
    *(type(iter(c)) for c in ([], (), {}, set(), "", b"", range(0), {}.values(), {}.items())),  # type: ignore[var-annotated]
    *(type(reversed(c)) for c in ([], {}, {}.values(), {}.items(), range(0))),  # type: ignore[var-annotated]
    reversed,
    *VIEWS_OF_DICTS,
)
MAX_LEFT = 65536  # items of an iterator that outlives the call
OTHERS = tuple(f for f in offered(itertools) if is_a(f, type))


class Called:
    """A function that Python itself may call: its calls are captured and limited."""

    __slots__ = ("scope", "f")

    def __init__(self, scope: Any, f: Any) -> None:
        self.scope, self.f = scope, f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (stage := self.scope.stage) is not None and stage.tracer.has_fallen_back:  # values that have waited
            args = tuple(map(stage.effects.exchanged, args))
        return self.scope.call_method(self.f, *args, **kwargs)


class Steps:
    """The remaining items of an iterator made in the call. `step` records the change before it takes an item."""

    __slots__ = ("value", "step")

    def __init__(self, value: Any, step: Callable[[Any], Any]) -> None:
        self.value, self.step = value, step

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        return self.step(self.value)

    def real(self, concrete: Any) -> Any:
        """The iterator itself."""
        return concrete.of(self.value)


class Walk:
    """The items of a sequence, captured one by one: `item` reads the one at an index. length: that of the sequence now."""

    __slots__ = ("value", "item", "length", "position")

    def __init__(self, value: Any, item: Callable[[int], Any], length: Callable[[Any], int] = len) -> None:
        self.value, self.item, self.length, self.position = value, item, length, 0

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> Any:
        if self.position >= self.length(self.value):  # like Python's iteration of a growing list
            self.value = self.value[:0]  # also for one that grows after its end
            raise StopIteration
        self.position += 1
        return self.item(self.position - 1)

    def real(self, concrete: Any) -> Iterator[Any]:
        """Python's own."""
        made = iter(concrete.of(self.value))
        made.__setstate__(concrete.of(self.position))  # traced, if the program decides whether an item was taken
        return made


class StableIterator(Walk):
    """Python's iterator over a container made in the call. If the call has restored contents, a new one continues at
    its position. is_same: whether the items are where they were.
    """

    __slots__ = ("state", "is_same", "restored", "iterator", "size")

    def __init__(self, state: Any, value: Any, lift: Callable[[Any], Any], is_same: Callable[[], bool]) -> None:
        super().__init__(value, lift)
        self.state, self.is_same, self.restored = state, is_same, state.restored
        state.put_back(value)
        self.iterator, self.size = iter(value), entries_in(value)

    def __next__(self) -> Any:
        self.state.put_back(self.value)
        if self.restored != self.state.restored:
            self.restored = self.state.restored
            self.iterator = self.at(self.value) if self.is_same() else self.iterator
        self.position += 1
        return self.item(next(self.iterator))

    def at(self, value: Any) -> Iterator[Any]:
        """An iterator after as many items as were taken."""
        return itertools.islice(value, self.position, None)

    def real(self, concrete: Any) -> Iterator[Any]:
        """Python's own; `iterator`, which raises at each step, if a dict or set has changed its size."""
        value = concrete.of(self.value)
        if self.size != entries_in(value):
            return self.iterator
        made = iter(value)
        _ = [*itertools.islice(made, concrete.of(self.position))]
        return made


class Escaped:
    """An iterator made in the call as uncaptured code sees it: over real values."""

    __slots__ = ("materialise", "items", "__weakref__")

    def __init__(self, materialise: Callable[[Any], Any] | None, items: Any) -> None:
        self.materialise = materialise  # until the call ends
        self.items = items

    def __iter__(self) -> Escaped:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        return item if self.materialise is None else self.materialise(item)

    def end(self) -> None:
        """The call ends."""
        if self.materialise is not None:
            items, self.items = self.items, iter(())
            self.items = iter([self.materialise(item) for item in itertools.islice(items, MAX_LEFT)])
            self.materialise = None


class PythonIterator:
    """Items of an iterable that cannot be traced, because Python runs between them."""

    __slots__ = ("lifting", "iterator")

    def __init__(self, lifting: Any, iterator: Iterator[Any]) -> None:
        self.lifting, self.iterator = lifting, iterator

    def __iter__(self) -> PythonIterator:
        return self

    def __next__(self) -> Any:
        self.lifting.tracer.step()
        self.lifting.tracer.flush()
        return self.lifting.lift(next(self.iterator))

    def real(self, concrete: Any) -> Iterator[Any]:
        """The iterator itself."""
        return self.iterator


def is_iterator(cls: type) -> bool:
    """True for an iterator, or a dict view, that may refer to objects made in the call."""
    return cls in OWN_PREFIX or cls in OVER_ITERATORS + OVER_CONTAINERS + OTHERS


class SharedIterators:
    """The iterators of one call that other code can see, and the replacement of each."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[Any, Any]] = {}
        self.left: list[weakref.ref[Escaped]] = []  # not exhausted yet

    def now(self, value: Any) -> Any:
        """The replacement of an iterator, if other code can see it; else the iterator."""
        value = value.items if type(value) is Flat else value
        return self.of.get(id(value), (value, value))[1]

    def escape(self, concrete: Any, value: Any) -> Any:
        """The replacement of the iterator outside of captured code."""
        if id(value) in self.of:
            return self.now(value)
        if type(value) is Called:
            return concrete.of(value.f)
        made = self.make(concrete, value)
        if made is None:
            if type(value) is Items:
                value.check()  # while the call can still restart
            concrete.effects.abandon(f"passes on a {type(value).__name__} made in the call")
            made = self.follow(concrete, value)
        if made is not value:
            self.of[id(value)] = (value, made)
            concrete.effects.sources.known.setdefault(id(made), (made, -1))
        return made

    def make(self, concrete: Any, value: Any) -> Any:
        """Python's own iterator, or a generator that follows it; None if there is none."""
        cls = type(value)
        if cls in OVER_CONTAINERS:
            return over_container(concrete, value)
        if cls in OVER_ITERATORS:
            return over_iterators(concrete, value)
        if cls in OTHERS:
            return over_others(concrete, value)
        if cls is types.GeneratorType:
            return self.follow(concrete, value) if concrete.effects.is_captured(value) else value
        return value.real(concrete) if cls in OWN_PREFIX else None

    def follow(self, concrete: Any, value: Any) -> Any:
        """A generator of the iterator's items, materialised."""
        made = Escaped(concrete.effects.materialise, value)
        self.left.append(weakref.ref(made))
        return (item for item in made)

    def end(self) -> None:
        """Compute the remaining items of the iterators, because a caller may continue to iterate
        after the call."""
        for iterator in [*self.left]:
            if (found := iterator()) is not None:
                found.end()


STAND_INS = (Steps, Walk, PythonIterator, Items, StableIterator, Flat)  # objects that stand for Python's iterators
OWN_PREFIX = (*STAND_INS, Called, Range)
ATOMS = (int, float, complex, bool, str, bytes, type(None))


def over_container(concrete: Any, value: Any) -> Any:
    """An iterator over a container or a view: a container that can be materialised in place stays the same object."""
    held = gc.get_referents(value)
    if all(concrete.of(part) is part for part in held):
        return value
    f, parts, *state = value.__reduce__()
    made = f(*map(concrete.of, parts))
    if state:
        made.__setstate__(state[0])
    return made


def over_iterators(concrete: Any, value: Any) -> Any:
    """map, zip and similar iterators, over the iterators from which they took items."""
    f, parts, *state = value.__reduce__()
    if f is map and is_door(parts[0]):
        return concrete.of(parts[1])
    real, real_state = concrete.of(parts), [concrete.of(s) for s in state]
    if real is parts and all(a is b for a, b in zip(state, real_state, strict=True)):
        return value
    made = f(*map(asked_before, real))
    if state:
        made.__setstate__(real_state[0])
    return made


def asked_before(value: Any) -> Any:
    """An iterator of the user's as one whose `__iter__` is not called again."""
    methods = (find_in_class(type(value), name) for name in ("__iter__", "__next__"))
    return Escaped(None, value) if all(type(method) is types.FunctionType for method in methods) else value


def over_others(concrete: Any, value: Any) -> Any:
    """Like over_iterators, for iterators of itertools, which can be inspected up to Python 3.13."""
    if all(type(part) in ATOMS for part in gc.get_referents(value)):
        return value
    if type(value).__reduce__ is object.__reduce__:  # type: ignore[comparison-overlap]
        return None
    return ignoring(DeprecationWarning, (), over_iterators, concrete, value)


def is_door(f: Any) -> bool:
    """True if f is a method of cinductor through which items are captured."""
    code = attribute(f.__func__ if type(f) is types.MethodType else f, "__code__")
    return code is not None and code.co_filename.startswith(PACKAGE)
