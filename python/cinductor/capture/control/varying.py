"""Arrays whose sizes change from trip to trip, or are others in each branch.

Such an array lies in the first elements of a buffer, whose size is the most that the array can have
in terms of what there is outside. How many they are is a number carried beside the buffer, and
inside a symbol. Arrays whose sizes begin and end alike share the number, and so the symbol: `z`
and `c` behind `z, c = z[stay], c[stay]` fit each other in the next trip, too.

The buffer has the array's axes, each as long as it becomes; or it is a row in which the array lies
densely, where one axis may grow as another shrinks and only their product has a bound.

How large they become: what no trip makes larger has room as it began. That is asked of each size, and
of an array's number of elements, where one axis may grow as another shrinks: `(a // 2) * (2 * b) <= a * b`.

A size that is u at the head of a trip and a*u + b at its end is a**n*e + b*(a**n - 1)/(a - 1) behind
n trips that began with e. So much room their buffers get; it is computed before the loop. Every trip
checks that it is enough, so a rule that only looks like one costs no more than room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..value.kinds import is_same, leaves
from ..value.objects import Traced
from .region import Rerun

if TYPE_CHECKING:
    from .lattice import Type, Types
    from .loop import Loop


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


def larger(tracer: Any, entry: Any, end: Any, mark: Any) -> Any:
    """A size of before the mark that is at least both, None where there is none."""
    most = mark.most(end)
    if most is None or (entry := mark.most(entry)) is None:
        return None
    return tracer.size_max(entry, most)


def is_at_most(tracer: Any, size: Any, other: Any) -> bool:
    """Whether a size is known not to be larger than another."""
    return is_same(tracer.size_max(size, other), other)


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


# --- how large they become ---


Place = tuple[str, int, int]  # a name, the number of its leaf, an axis
MOST_BITS = 62


class Rule(NamedTuple):
    """How a size grows: factor * size + more in each trip."""

    place: Place
    factor: int
    more: Any


def capacity(types: Types, kind: Type, axis: int, sizes: tuple[Any, Any, Any]) -> Any:
    """The most that a size, given at the loop's entry and at the two ends of a trip, can be: that
    at the entry where no trip makes it larger, what is known of it, or by its rule; None where there
    is no such number.
    """
    loop, tracer = types.loop, types.tracer
    entry, before, end = sizes
    mark, length = loop.attempt.mark, kind.lengths.get(axis)  # type: ignore[union-attr]
    place = place_of(types, kind, axis)
    if place is not None and place in loop.capacities:
        return loop.capacities[place]
    if is_at_most(tracer, end, before):
        return mark.most(entry) if length is None else length.capacity
    most = larger(tracer, entry, end, mark)
    if place is None or most is None or length is None or is_same(most, length.capacity):
        return most
    rule = tracer.as_line(end, length.now)
    if rule is None:
        return most
    more = mark.most(rule[1])
    trips = None if loop.is_while else loop.items.length
    is_far = type(trips) is int and rule[0] > 1 and trips * rule[0].bit_length() > MOST_BITS
    if trips is None or is_far or more is None:
        return None
    loop.rules.append(Rule(place, rule[0], more))
    raise Rerun(loop)


def row_capacity(types: Types, kind: Type, axes: list[int], entry: Any, before: Any, after: Any) -> Any:
    """The number of elements of a row that has room for an array in every trip, where no trip makes
    more of them than there were; None where there is no such number, or no need of a row: arrays
    that vary along their first axis lie densely as it is.
    """
    tracer, mark = types.tracer, types.loop.attempt.mark  # type: ignore[union-attr]
    if axes == [0] or entry.ndim < 2 or not entry.is_c_order:
        return None
    pairs = zip(before.shape, after.shape, strict=True)
    if not all(is_at_most(tracer, b, a) for a, b in pairs):
        if not is_at_most(tracer, after.size, before.size):
            return None
    return mark.most(entry.size)


def place_of(types: Types, kind: Type, axis: int) -> Place | None:
    """Where a type that is known is carried."""
    for name, row in types.of.items():
        for number, known in enumerate(row):
            if known is kind:
                return name, number, axis
    return None


def resolve(loop: Loop) -> None:
    """Computes, outside of the loop, what its rules come to."""
    for rule in loop.rules:
        loop.capacities[rule.place] = grown(loop, rule)
    loop.rules.clear()


def grown(loop: Loop, rule: Rule) -> Any:
    """The size behind all trips, or at their entry where that is more. The entry is the loop's, also
    where the rule was found behind trips that were peeled off.
    """
    tracer, trips = loop.tracer, loop.items.length
    name, number, axis = rule.place
    entry = leaves(loop.entry[name])[number].shape[axis]
    if rule.factor == 1:
        return entry + trips * tracer.size_max(rule.more, 0)
    power = rule.factor**trips
    size = power * entry + rule.more * ((power - 1) // (rule.factor - 1))
    if type(size) is Traced and not size.is_expression:
        size = tracer.define(size, None, None)
    return tracer.size_max(size, entry)
