"""Attributes and items that wait for the end of a captured call.

An attribute of an object that outlives the call, or what is in a list or under a key of a dict, is set
there only when the call returns, and when a later call does that replays it; until then captured code
reads what is to be stored. Whatever is not captured may look at the object: before it runs all is set
(`flush`).

Invariant: an object has the attributes and a container the places that it had before the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .value.objects import attributes_of, find_in_class, holds_items, put, reads_plainly

if TYPE_CHECKING:
    from .stage import Stage

KEYS = (str, int, bool, bytes, type(None))  # what is hashed and compared without the user's code
NAMESPACES = ("__dict__", "__globals__")  # dicts that are read in other ways, too


class Stores:
    """Those of one call: by the id of an object, the object and its attributes or items."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.has_given = False  # something was set, or will be with the result
        self.objects: dict[int, tuple[Any, dict[Any, Any]]] = {}

    def may_wait(self, value: Any, name: str) -> bool:
        """Whether an attribute of an object that outlives the call can wait for the end of it: only
        captured code could see the difference, and that is told.
        """
        cls, source = type(value), self.stage.source_of(value)
        if source is None or source < 0 or not self.stage.may_check():
            return False
        if type(attributes_of(value)) is not dict or not reads_plainly(cls):
            return False
        is_plain = cls.__setattr__ is object.__setattr__
        return is_plain and not hasattr(type(find_in_class(cls, name)), "__set__")

    def may_wait_at(self, value: Any, key: Any) -> bool:
        """The same of an item; a place that a dict has not is an effect."""
        source = self.stage.source_of(value)
        if source is None or source < 0 or not self.stage.may_check():
            return False
        if type(value) is list:
            return type(key) is int and -len(value) <= key < len(value)
        kind, *parts = self.stage.sources[source]
        if type(value) is not dict or (kind == "attr" and parts[1] in NAMESPACES):
            return False
        parts = list(key) if type(key) is tuple else [key]
        return all(type(part) in KEYS for part in parts) and key in value

    def of(self, value: Any) -> dict[Any, Any]:
        """What waits of an object; of a list by places from its start."""
        found = self.objects.get(id(value))
        return {} if found is None else found[1]

    def add(self, value: Any, place: Any, item: Any) -> None:
        """Sets an attribute or item at the end of the call, and of later ones. A loop carries what
        it was before, so that is read when nothing has been stored yet.
        """
        stage = self.stage
        stage.sees_objects = True  # what is read of another would have changed, too
        if type(value) is list:
            stage.guard_length(value, stage.source_of(value))  # type: ignore[arg-type]
            place = place % len(value)
        waiting = self.objects.setdefault(id(value), (value, {}))[1]
        now = value if holds_items(value) else attributes_of(value)
        if stage.state.marks and place not in waiting and (type(now) is list or place in now):
            kind = "item" if holds_items(value) else "attr"
            source = stage.source(kind, stage.source_of(value), place)
            waiting[place] = stage.lift_guarded(now[place], source)
            stage.state.amend(waiting, place)
        stage.state.before_change(waiting)
        waiting[place] = item

    def waiting(self) -> list[tuple[Any, dict[Any, Any]]]:
        """The objects of which something waits for the end of the call, with what changes."""
        pairs = []
        for value, places in self.objects.values():
            kind = "item" if holds_items(value) else "attr"
            changed = {}
            for place, item in places.items():
                key = (place,) if kind == "attr" else (type(place), place)
                entered = self.stage.entered_by(kind, self.stage.source_of(value), *key)
                if entered is None or entered[1] is not item:
                    changed[place] = item
            if changed:
                pairs.append((value, changed))
        return pairs

    def flush(self) -> None:
        """Sets what waits: code that is not captured may look at it."""
        for value, places in self.take():
            for place, item in places.items():
                put(value, place, self.stage.materialise(item))

    def take(self) -> list[tuple[Any, dict[Any, Any]]]:
        """The objects with what waits, which is the caller's now."""
        pairs = self.waiting()
        self.objects = {}
        self.has_given |= bool(pairs)
        return pairs
