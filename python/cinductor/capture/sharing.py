"""Memory that a loop's trips hand on by value: nobody may see a write through another name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .region import Peel
from .state import is_same, leaves

if TYPE_CHECKING:
    from .carry import Carried


def check(carried: Carried, names: dict[str, Any]) -> None:
    """Raises where a value that is carried is written to under more than one name; names: what they
    are at the end of a trip.
    """
    loop = carried.loop
    ends: list[Any] = []
    for name, types in carried.types.items():
        for leaf, kind in zip(leaves(names[name]), types, strict=True):
            if kind is not None and kind.kind == "array":
                ends.append((name, leaf))
    pairs = zip(carried.params, carried.versions, strict=True)
    changed = [
        (param, entry)
        for (param, entry), version in pairs
        if param.kind == "array" and param.version != version
    ]
    written = {handle.storage for handle in carried.written}
    params = {param.storage for param, _ in changed}
    for name, leaf in ends:
        if leaf.storage in written:
            raise Peel(f"{name} shares memory that is written to")
        if leaf.storage in params and not any(is_same(leaf, param) for param, _ in changed):
            loop.fail(f"{name} shares memory that is written to")
    if changed:
        check_written_values(carried, changed, ends)


def check_written_values(carried: Carried, changed: list[Any], ends: list[Any]) -> None:
    """What is written to was made in the call, and has one name at the entry and at the end."""
    loop = carried.loop
    storages = [leaf.storage for _, leaf in ends]
    for name, leaf in ends:
        if storages.count(leaf.storage) > 1 or carried.tracer.is_before(
            leaf.whole, loop.attempt.mark
        ):
            loop.fail(f"{name} shares memory that is written to")
    for _, entry in changed:
        if not entry.is_fresh:
            raise Peel("an array that is carried by value is written to")
        held = [carried.entry[name] for name in carried.contents.containers]
        if not loop.is_alone(entry, [*loop.entry.values(), *held]):
            raise Peel("names share memory that is written to")


def note_sources(carried: Carried, name: str, value: Any, types: list[Any]) -> int:
    """Notes the arrays of before the loop whose memory a name may be behind it. How many trips rule
    out that it is one which others know; 0: nobody would see it.
    """
    needed = 0
    entries, ends = leaves(carried.entry[name]), carried.ends[name]
    parts = zip(leaves(value), entries, ends, types, strict=True)
    for place, (made, entry, end, kind) in enumerate(parts):
        if kind is None or kind.kind != "array":
            continue
        if end is not None:
            carried.regions.merge(made, [end, entry])
            continue
        passed, is_made = history(carried, carried.numbers[name, place])
        if all(is_alone(carried, array) for array in passed):
            continue
        if is_made:
            needed = max(needed, len(passed))
        else:
            carried.regions.merge(made, passed)
    return needed


def history(carried: Carried, number: int) -> tuple[list[Any], bool]:
    """What a parameter may be, trip by trip, when trips hand parameters on as they are; and whether
    a trip makes a new array in the end.
    """
    passed: list[Any] = []
    seen: set[int] = set()
    while number not in seen:
        seen.add(number)
        passed.append(carried.params[number][1])
        leaf = carried.handed[number]
        if carried.tracer.is_before(leaf.whole, carried.loop.attempt.mark):
            return [*passed, leaf], False
        holders = [k for k in carried.handed if carried.params[k][0].storage == leaf.storage]
        if not holders:
            return passed, True
        number = holders[0]
    return passed, False


def is_alone(carried: Carried, array: Any) -> bool:
    """Memory of the call's own that one name has."""
    return carried.loop.is_alone(array, list(carried.entry.values()))
