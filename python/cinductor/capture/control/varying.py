"""Arrays whose sizes change from trip to trip, or are others in each branch.

Such an array lies in the first elements of a buffer, whose size is the most that the array can have
in terms of what there is outside. How many they are is a number carried beside the buffer, and
inside a symbol. Arrays whose sizes begin and end alike share the number, and so the symbol: `z`
and `c` behind `z, c = z[stay], c[stay]` fit each other in the next trip, too.

The buffer has the array's axes, each as long as it becomes; or it is a row in which the array lies
densely, where one axis may grow as another shrinks and only their product has a bound.
"""

from __future__ import annotations

from typing import Any

from ..value.kinds import is_same


class Length:
    """A size that varies: at the entry and at the end of a trip (or at the ends of two arms); its
    capacity is None where only that of a product is known.
    """

    __slots__ = ("entry", "end", "capacity", "old", "param", "now")

    def __init__(self, entry: Any, end: Any, capacity: Any, old: Length | None = None) -> None:
        self.entry, self.end, self.capacity, self.old = entry, end, capacity, old
        self.param: Any = None  # the number
        self.now: Any = None  # the symbol that is its value

    def define(self, tracer: Any, number: Any) -> Any:
        """The number as a size, from here on."""
        self.now = tracer.define(number, 0, None if self.capacity is None else self.capacity + 1)
        return self.now


def capacity(tracer: Any, entry: Any, end: Any, mark: Any) -> Any:
    """A size of before the mark that is at least both, None where there is none."""
    most = tracer.most(end, mark)
    if most is None or (entry := tracer.most(entry, mark)) is None:
        return None
    return tracer.at_least(entry, most)


def is_at_most(tracer: Any, size: Any, other: Any) -> bool:
    """Whether a size is known not to be larger than another."""
    return is_same(tracer.at_least(size, other), other)


def axes_that_vary(tracer: Any, a: Any, b: Any) -> list[int] | None:
    """Axes along which two arrays are not known to be equally long; None: they differ in more."""
    axes = tracer.varying(a, b)
    if axes is None:
        return None
    return [k for k in axes if (a.shape[k] == b.shape[k]) is not True]


def find(lengths: list[Length], entry: Any, end: Any, old: Length | None = None) -> Length | None:
    """The length that begins and ends so."""
    for length in lengths:
        if length.old is old and is_same(length.entry, entry) and is_same(length.end, end):
            return length
    return None


def grouped(kinds: list[tuple[Any, Any]], now: list[Length]) -> list[Length] | None:
    """The lengths of arrays, given as their types and their shapes at the entry, that change alike,
    set in the types; None where they are what they were.
    """
    groups: list[Length] = []
    found: list[tuple[Any, dict[int, Length]]] = []
    for kind, shape in kinds:
        mine = {}
        for axis, (end, most) in kind.ends.items():
            old, entry = kind.lengths.get(axis), shape[axis]
            length = find(groups, entry, end, old)
            if length is None:
                length = Length(entry, end, most, old)
                groups.append(length)
            elif length.capacity is None:
                length.capacity = most
            mine[axis] = length
        found.append((kind, mine))
    olds = [group.old for group in groups]
    if len(groups) == len(now) and all(
        old is not None and is_same(group.capacity, old.capacity)
        for group, old in zip(groups, olds, strict=True)
    ):
        for group in groups:
            group.old.end = group.end  # type: ignore[union-attr]
        return None
    for kind, mine in found:
        kind.lengths = mine
    for group in groups:
        group.old = None
    return groups


def first_part(tracer: Any, buffer: Any, shape: tuple[Any, ...]) -> Any:
    """The view of a buffer's first elements; those of a row in that shape."""
    if buffer.ndim == len(shape):
        return tracer.slice(buffer, (0,) * len(shape), (1,) * len(shape), shape)
    return tracer.reshape(tracer.slice(buffer, (0,), (1,), (tracer.count(shape),)), shape)


def read(tracer: Any, buffer: Any, lengths: dict[int, Length], sizes: Any = None) -> Any:
    """The array in a buffer; sizes: along axes that do not vary, where the buffer is a row. Where
    it may be returned it is one that has its own memory.
    """
    sizes = buffer.shape if sizes is None else sizes
    shape = tuple(lengths[k].now if k in lengths else n for k, n in enumerate(sizes))
    view = first_part(tracer, buffer, shape)
    return tracer.detached(view) if tracer.in_region else tracer.copy(view, "K")


def write(tracer: Any, buffer: Any, value: Any, lengths: Any) -> None:
    """Puts an array into a buffer; lengths: the axes that vary."""
    shape = value.shape
    if buffer.ndim == len(shape):
        pairs = zip(shape, buffer.shape, strict=True)
        shape = tuple(mine if k in lengths else whole for k, (mine, whole) in enumerate(pairs))
    tracer.assign(first_part(tracer, buffer, shape), value)


def number_of(tracer: Any, size: Any) -> Any:
    """A size as a value that a region hands on."""
    return tracer.lift(size) if type(size) is int else size
