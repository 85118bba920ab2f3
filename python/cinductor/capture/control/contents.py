"""Lists, dicts and attributes whose structure stays, carried from trip to trip and merged like names.

A container that a body changes has a name of its own, which no name of the user's can be; its value
is the tuple of what the container holds. At the head of a run the container is filled from it.
Keys and length stay; what grows or shrinks is for `growth`, or is run by Python.
"""

from __future__ import annotations

import types
from typing import Any

from ...instance import is_a
from ..value.items import Items
from ..value.state import fill, held, is_one


class Contents:
    """The containers that the runs of one construct change, by name."""

    def __init__(self) -> None:
        self.containers: dict[str, Any] = {}

    def name_of(self, container: Any) -> str:
        """Its name; a new one for a container that has none."""
        for name, known in self.containers.items():
            if known is container:
                return name
        kind = "dict" if is_a(container, dict) else type(container).__name__
        name = f"an item of {kind} {len(self.containers) + 1}"
        self.containers[name] = container
        return name

    def has(self, container: Any) -> bool:
        """Whether it has a name."""
        return any(known is container for known in self.containers.values())

    def names(self) -> dict[str, Any]:
        """What they hold now."""
        return {name: value_of(container) for name, container in self.containers.items()}

    def check_condition(self, loop: Any, head: dict[str, Any]) -> None:
        """Raises where a while's condition, which runs once more than the body, changed anything."""
        for container in loop.changed_containers(loop.attempt):
            before, now = loop.attempt.changes.before[id(container)][1], container
            if self.has(container):
                before, now = head[self.name_of(container)], value_of(container)
            if not (is_one(before, now) if self.has(container) else is_unchanged(before, now)):
                loop.fail("the condition changes a container, or a name of a function around")

    def refill(self, regions: Any, names: dict[str, Any]) -> None:
        """Makes them hold what their names have."""
        for name, container in self.containers.items():
            refill(regions, container, names[name])


def items_in(container: Any) -> tuple[Any, ...]:
    """What a list or dict holds, in order."""
    if type(container) in (types.CellType, Items):
        return held(container)
    return tuple(container.values() if is_a(container, dict) else container)


def value_of(container: Any, before: Any = None) -> Any:
    """What the name of a container has, or had, given what it held: its items; an iterator's
    position.
    """
    items = items_in(container if before is None else before)
    return items[0] if type(container) is Items else items


def keeps_places(before: Any, now: Any) -> bool:
    """Whether a container, given what it held, still has the same keys or as many items."""
    if is_a(now, dict):
        return list(before) == list(now)
    return is_a(now, list | types.CellType | Items) and len(before) == len(items_in(now))


def is_unchanged(before: Any, now: Any) -> bool:
    """Whether it holds what it held."""
    return keeps_places(before, now) and all(map(is_one, items_in(before), items_in(now)))


def refill(regions: Any, container: Any, value: Any) -> None:
    """Other items in the places of a container."""
    items = (value,) if type(container) is Items else value
    regions.journal.before_change(container)
    is_dict = is_a(container, dict)
    fill(container, dict(zip(container, items, strict=True)) if is_dict else list(items))
