"""Arrays that grow by a rule in each trip: how large they become.

A size that is u at the head of a trip and a*u + b at its end is a**n*e + b*(a**n - 1)/(a - 1) behind
n trips that began with e. So much room their buffers get; it is computed before the loop. Every trip
checks that it is enough, so a rule that only looks like one costs no more than room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..value.objects import Traced
from ..value.state import is_same, leaves
from .region import Again

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


def capacity(types: Types, kind: Type, axis: int, sizes: tuple[Any, Any], most: Any) -> Any:
    """The most that a size, given at the loop's entry and at the end of a trip, can be: what is known
    of it, or by its rule; None where there is no such number.
    """
    loop, tracer = types.loop, types.tracer
    place = place_of(types, kind, axis)
    if place is None or place in loop.capacities:
        return most if place is None else loop.capacities[place]
    length = kind.lengths.get(axis)
    if most is None or length is None or is_same(most, length.capacity):
        return most
    rule = tracer.growth(sizes[1], length.now)
    if rule is None:
        return most
    mark = loop.attempt.mark  # type: ignore[union-attr]
    more = tracer.most(rule[1], mark)
    trips = None if loop.items is None else loop.items.length
    is_far = type(trips) is int and rule[0] > 1 and trips * rule[0].bit_length() > MOST_BITS
    if trips is None or is_far or more is None:
        return None
    loop.rules.append(Rule(place, rule[0], more))
    raise Again(loop)


def place_of(types: Types, kind: Type, axis: int) -> Place | None:
    """Where a type that is known is carried."""
    for name, row in types.of.items():
        for number, known in enumerate(row):
            if known is kind:
                return name, number, axis
    return None


def settle(loop: Loop) -> None:
    """Computes, outside of the loop, what its rules come to."""
    for rule in loop.rules:
        loop.capacities[rule.place] = grown(loop, rule)
    loop.rules.clear()


def grown(loop: Loop, rule: Rule) -> Any:
    """The size behind all trips, or at their entry where that is more. The entry is the loop's, also
    where the rule was found behind trips that were peeled off.
    """
    tracer, trips = loop.tracer, loop.items.length  # type: ignore[union-attr]
    name, number, axis = rule.place
    entry = leaves(loop.entry[name])[number].shape[axis]
    if rule.factor == 1:
        return entry + trips * tracer.at_least(rule.more, 0)
    power = rule.factor**trips
    size = power * entry + rule.more * ((power - 1) // (rule.factor - 1))
    if type(size) is Traced and not size.is_expression:
        size = tracer.define(size, None, None)
    return tracer.at_least(size, entry)
