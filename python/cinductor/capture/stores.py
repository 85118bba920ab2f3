"""Deferred stores to attributes and items of objects that outlive the call: a later call makes them with its result."""

from __future__ import annotations

from typing import Any

from .. import _core
from .container_rows import MAPPINGS
from .objects import attributes_of, contains_items, defines, is_slot_of, reads_plainly
from .sources import Sources

KEYS = (str, int, bool, bytes, type(None))  # hashed and compared without user code
NAMESPACES = ("__dict__", "__globals__")  # dicts that are also read in other ways


class Stores:
    """The deferred stores of one call: by the id of an object, the object and its attributes or items."""

    def __init__(self, tracer: _core.Tracer, sources: Sources) -> None:
        self.tracer, self.sources = tracer, sources
        self.has_given = False  # something was stored, or will be with the result
        self.objects: dict[int, tuple[Any, dict[Any, Any]]] = {}

    def may_wait(self, value: Any, name: str) -> bool:
        """True if a store to an attribute of an object that outlives the call can be deferred: only captured code
        could see the difference.
        """
        cls, source = type(value), self.sources.source_of(value)
        if source is None or source < 0 or not self.tracer.may_check():
            return False
        found = self.sources.class_attr(cls, name)
        is_own = is_slot_of(cls, found) or (type(attributes_of(value)) is dict and not defines(type(found), "__set__"))
        return is_own and reads_plainly(cls) and self.sources.class_attr(cls, "__setattr__") is object.__setattr__

    def may_wait_at(self, value: Any, key: Any) -> bool:
        """True if a store to an item may be deferred. A store to a key that the dict does not have is an effect."""
        source = self.sources.source_of(value)
        if source is None or source < 0 or not self.tracer.may_check():
            return False
        if type(value) is list:
            return type(key) is int and -len(value) <= key < len(value)
        kind, *parts = self.sources.rows[source]
        if type(value) not in MAPPINGS or (kind == "attr" and parts[1] in NAMESPACES):
            return False
        parts = list(key) if type(key) is tuple else [key]
        return all(type(part) in KEYS for part in parts) and key in value

    def of(self, value: Any) -> dict[Any, Any]:
        """The deferred stores of an object; those of a list by index from its start."""
        found = self.objects.get(id(value))
        return {} if found is None else found[1]

    def waiting(self) -> list[tuple[Any, dict[Any, Any]]]:
        """The objects with deferred stores, and the changes."""
        pairs = []
        for value, places in self.objects.values():
            kind = "item" if contains_items(value) else "attr"
            changed = {}
            for place, item in places.items():
                key = (place,) if kind == "attr" else (type(place), place)
                entered = self.sources.entered_by(kind, self.sources.source_of(value), *key)
                is_same = entered is not None and entered[1] is item
                if not is_same or (kind == "attr" and not self.is_held(value, place)):
                    changed[place] = item
            if changed:
                pairs.append((value, changed))
        return pairs

    def is_held(self, value: Any, name: str) -> bool:
        """True if the object itself has an attribute, not only its class; guarded, so that a store of the value that it has
        changes nothing.
        """
        own, source = attributes_of(value), self.sources.source_of(value)
        if is_slot_of(type(value), self.sources.class_attr(type(value), name)):
            return True
        if type(own) is not dict or name not in own or source is None or not self.tracer.may_check():
            return False
        holder = self.sources.source("attr", source, "__dict__")
        self.sources.check_once(self.sources.source("item", holder, name), "same", self.sources.source("attr", source, name))
        return True

    def take(self) -> list[tuple[Any, dict[Any, Any]]]:
        """Remove and return the objects with their deferred stores."""
        pairs = self.waiting()
        self.objects = {}
        self.has_given |= bool(pairs)
        return pairs
