"""What a loop runs over by number: ranges, rows of arrays, and what enumerate, zip and reversed make
of them. Each is what Python would iterate, too: then its length has to be known.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import _core
from .objects import Traced

RegionBreak = _core.RegionBreak


Made = Callable[..., Iterator[Any]]  # makes Python's own iterator, given what makes values real


END, UNKNOWN = "at its end", "somewhere"  # positions, besides those that are numbers
ENDLESS = 1 << 62  # items of what never ends


class Items:
    """A number of items, each found by its index. An iterator, too: its position says how many are
    gone. One that is made of others moves them along. size: how many there are, or what says that, for
    a list may change; ends: where the others are at the end of this one.
    """

    __slots__ = ("size", "get", "made", "position", "over", "ends", "is_shared")

    def __init__(
        self,
        size: Any,
        get: Callable[[Any], Any] | None,
        made: Made | None = None,
        over: tuple[Items, ...] = (),
        ends: tuple[Any, ...] | None = None,
    ) -> None:
        self.size, self.get, self.made, self.over = size, get, made, over
        self.ends = (END,) * len(over) if ends is None else ends
        self.position: Any = 0
        self.is_shared = False  # the user has it

    @property
    def length(self) -> Any:
        """How many items there are."""
        return self.size() if callable(self.size) else self.size

    @property
    def is_endless(self) -> bool:
        """Whether there is always another item."""
        return type(self.size) is int and self.size == ENDLESS

    def move(self, position: Any) -> None:
        """So many items are gone; or END, or UNKNOWN."""
        self.position = position
        for items, end in zip(self.over, self.ends, strict=True):
            items.move(end if position is END else position)

    def rest(self, tracer: Any) -> Items:
        """What is left, for a loop."""
        gone = self.position
        left = self.length - gone
        if type(left) is Traced:
            left = tracer.size_max(left, 0)
        return Items(left, lambda i: self.get(gone + i))

    @property
    def is_whole(self) -> bool:
        """Whether no item is gone."""
        return type(self.position) is int and self.position == 0 and self.is_in_step

    @property
    def is_in_step(self) -> bool:
        """Whether those that it is made of stand where it does; nobody asks them behind its end, nor
        those that the user has not.
        """
        return self.position is END or all(
            items.is_in_step and (not items.is_shared or _are_equal(items.position, self.position))
            for items in self.over
        )

    def real(self, concrete: Any) -> Iterator[Any] | None:
        """Python's own, from where this one is; None where there is none like it."""
        if self.position is END:
            return self.ended(concrete)
        if self.position is UNKNOWN or self.made is None or not self.is_in_step:
            return None
        position = int(concrete.of(self.position))
        return self.made(concrete, position) if self.over else self.at(concrete, position)

    def ended(self, concrete: Any) -> Iterator[Any]:
        """One of the same kind that has nothing left."""
        if self.made is None:
            return iter(())
        if self.over:
            return self.made(concrete, int(concrete.of(self.length)))
        made = self.made(concrete)
        try:
            for _ in made:
                pass
        except RuntimeError:  # it goes over a dict that has changed since
            return iter(())
        return made

    def at(self, concrete: Any, position: int) -> Iterator[Any]:
        """Python's own from there, of what is made of nothing else."""
        made = self.made(concrete)  # type: ignore[misc]
        for _ in range(position):
            next(made)
        return made

    def check(self) -> None:
        """Raises where a captured loop has taken nobody knows how many items."""
        if self.position is UNKNOWN or not self.is_in_step:
            raise RegionBreak("an iterator that a captured loop has used", "", 0)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.check()
        if self.position is END:
            raise StopIteration
        self.move(int(self.position))
        if self.position >= int(self.length):
            self.move(END)
            raise StopIteration
        self.move(self.position + 1)
        return self.get(self.position - 1)


class Range:
    """range(start, stop, step) of which something is known only when the program runs."""

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
        if type(index) is slice:
            return range(int(self.start), int(self.stop), int(self.step))[index]
        return range(int(self.start), int(self.stop), int(self.step))[int(index)]

    def real(self, concrete: Any) -> range:
        """Python's own."""
        return range(*(int(concrete.of(n)) for n in (self.start, self.stop, self.step)))

    def get(self, index: Any) -> Any:
        """The item of that index, which is in range."""
        return self.start + index * self.step


def items_of(value: Any) -> Items | None:
    """A loop's iterable by number; None where Python has to iterate it."""
    cls = type(value)
    if cls is Items:
        value.check()
        return value if value.is_whole else None
    if cls is range:
        start, step = value.start, value.step
        return Items(len(value), lambda i: start + i * step, lambda c, f=iter: f(value))
    if cls is Range:
        return Items(value.length, value.get, lambda c, f=iter: f(value.real(c)))
    if cls is Flat or cls is Octets:
        return value.items
    if cls is Traced and value.ndim > 0:
        return Items(value.shape[0], lambda i: value[i], lambda c, f=iter: f(c.of(value)))
    return None


def part_of(concrete: Any, items: Items, position: int) -> Iterator[Any]:
    """Python's own of what others are made of: of what the user has it is the very one, where it is."""
    if items.is_shared:
        return concrete.of(items)  # type: ignore[no-any-return]
    return items.at(concrete, position)


def enumerated(items: Items, start: Any) -> Items:
    """enumerate(items, start)"""

    def made(concrete: Any, position: int) -> Iterator[Any]:
        return enumerate(part_of(concrete, items, position), concrete.of(start) + position)

    return Items(items.size, lambda i: (i + start, items.get(i)), items.made and made, (items,))


def backwards(items: Items) -> Items:
    """reversed(items)"""
    made = items.made and functools.partial(items.made, f=reversed)
    return Items(items.size, lambda i: items.get(items.length - 1 - i), made)


def numbered(
    shape: tuple[Any, ...], get: Callable[[tuple[Any, ...]], Any], made: Made | None = None
) -> Items:
    """What the places of an array of that shape give, in C order, one loop for all axes."""
    length: Any = 1
    for size in shape:
        length = length * size

    def item(number: Any) -> Any:
        places = []
        for axis in range(len(shape) - 1, -1, -1):
            places.append(number % shape[axis] if axis else number)
            number = number // shape[axis] if axis else number
        return get(tuple(places[::-1]))

    return Items(length, item, made)


class Flat:
    """Stands for the np.flatiter of a traced array."""

    __slots__ = ("array",)

    def __init__(self, array: Traced) -> None:
        self.array = array

    @property
    def items(self) -> Items:
        """The elements, for a loop."""
        return numbered(self.array.shape, lambda places: self.array[places])

    def real(self, stage: Any) -> Any:
        """NumPy's own."""
        stage.stop("hands on array.flat itself, not its items")
        return stage.materialise(self.array).flat


class Octets:
    """Stands for a bytes object of which only items are taken: an array of them, of this call's."""

    __slots__ = ("value", "array")

    def __init__(self, value: bytes, array: Traced) -> None:
        self.value, self.array = value, array

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
        return Items(self.array.shape[0], self.item)

    def __iter__(self) -> Iterator[int]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> int:
        return self.value[index]


def octets_in(value: bytes) -> np.ndarray:
    """The bytes as an array."""
    return np.frombuffer(value, np.uint8)


def row(*items: Any) -> tuple[Any, ...]:
    """An item of zip."""
    return items


def zipped(
    parts: list[Items], least: Callable[[Any, Any], Any] | None, f: Any = row, function: Any = zip
) -> Items | None:
    """zip(*parts), or function(f, *parts), which gives f of what zip gives: as many as the shortest has.
    least: of two lengths, where nobody has the parts; without it they have to be equally long.
    """
    limited = [part for part in parts if not part.is_endless]
    first = limited[0] if limited else parts[0]
    size = first.size
    if not all(part is first or _are_equal(part.length, first.length) for part in limited):
        if least is None:
            return None
        size = functools.reduce(least, (part.length for part in limited))
    at = next(k for k, part in enumerate(parts) if part is first)
    ends = [END if not part.is_endless else first.length + (k < at) for k, part in enumerate(parts)]

    def made(concrete: Any, position: int) -> Iterator[Any]:
        real = [part_of(concrete, part, position) for part in parts]
        return zip(*real) if function is zip else function(concrete.of(f), *real)  # noqa: B905

    is_real = all(part.made for part in parts)
    get = lambda i: f(*(part.get(i) for part in parts))  # noqa: E731
    return Items(size, get, made if is_real else None, tuple(parts), tuple(ends))


def _are_equal(a: Any, b: Any) -> bool:
    if type(a) is type(b) and type(a) in (int, str):
        return bool(a == b)
    return type(a) is Traced and type(b) is Traced and a.is_same(b)
