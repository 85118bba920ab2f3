"""Room for arrays whose sizes change from trip to trip.

What no trip makes larger has room as it began. That is asked of each size, and of an array's number
of elements, where one axis may grow as another shrinks: `(a // 2) * (2 * b) <= a * b`.

A size that is u at the head of a trip and a*u + b at its end is a**n*e + b*(a**n - 1)/(a - 1) behind
n trips that began with e. So much room their buffers get; it is computed before the loop. Every trip
checks that it is enough, so a rule that only looks like one costs no more than room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..value.kinds import is_same, leaves
from ..value.objects import Traced
from . import varying
from .region import Rerun

if TYPE_CHECKING:
    from .loop import Loop
    from .types import Type, Types

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
    if varying.is_at_most(tracer, end, before):
        return tracer.most(entry, mark) if length is None else length.capacity
    most = varying.capacity(tracer, entry, end, mark)
    if place is None or most is None or length is None or is_same(most, length.capacity):
        return most
    rule = tracer.as_line(end, length.now)
    if rule is None:
        return most
    more = tracer.most(rule[1], mark)
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
    if axes == [0] or entry.ndim < 2 or not tracer.is_c_order(entry):
        return None
    pairs = zip(before.shape, after.shape, strict=True)
    if not all(varying.is_at_most(tracer, b, a) for a, b in pairs):
        if not varying.is_at_most(tracer, after.size, before.size):
            return None
    return tracer.most(entry.size, mark)


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
        return entry + trips * tracer.at_least(rule.more, 0)
    power = rule.factor**trips
    size = power * entry + rule.more * ((power - 1) // (rule.factor - 1))
    if type(size) is Traced and not size.is_expression:
        size = tracer.define(size, None, None)
    return tracer.at_least(size, entry)
