"""Attributes that wait for the end of a captured call.

An attribute of an object that outlives the call is set there only when the call returns, and when a
later call does that replays it; until then captured code reads what is to be stored. Whatever is not
captured may look at the object: before it runs the attributes are set (`flush`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .value.objects import find_in_class, reads_plainly

if TYPE_CHECKING:
    from .stage import Stage


class Stores:
    """Those of one call: by the id of an object, the object and its attributes."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.objects: dict[int, tuple[Any, dict[str, Any]]] = {}

    def may_wait(self, value: Any, name: str) -> bool:
        """Whether an attribute of an object that outlives the call can wait for the end of it: only
        captured code could see the difference, and that is told.
        """
        cls, source = type(value), self.stage.source_of(value)
        if source is None or source < 0 or not self.stage.may_check():
            return False
        if type(getattr(value, "__dict__", None)) is not dict or not reads_plainly(cls):
            return False
        is_plain = cls.__setattr__ is object.__setattr__
        return is_plain and not hasattr(type(find_in_class(cls, name)), "__set__")

    def of(self, value: Any) -> dict[str, Any]:
        """The attributes of an object that wait for the end of the call."""
        found = self.objects.get(id(value))
        return {} if found is None else found[1]

    def add(self, value: Any, name: str, item: Any) -> None:
        """Sets an attribute at the end of the call, and of later ones. A loop carries what it was
        before, so that is read when nothing has been stored yet.
        """
        stage, regions = self.stage, self.stage.regions
        attributes = self.objects.setdefault(id(value), (value, {}))[1]
        if regions.touched and name not in attributes and name in value.__dict__:
            source = stage.source("attr", stage.source_of(value), name)
            attributes[name] = stage.enter(value.__dict__[name], source)
            for touched in regions.touched:
                touched.amend(attributes, name)
        regions.touch(attributes)
        attributes[name] = item

    def waiting(self) -> list[tuple[Any, dict[str, Any]]]:
        """The objects whose attributes wait for the end of the call, with those that change."""
        pairs = []
        for value, attributes in self.objects.values():
            changed = {}
            for name, item in attributes.items():
                source = self.stage.source_of(value)
                entered = self.stage.entered_by("attr", source, name)
                if entered is None or entered[1] is not item:
                    changed[name] = item
            if changed:
                pairs.append((value, changed))
        return pairs

    def flush(self) -> None:
        """Sets the attributes that wait: code that is not captured may look at them."""
        for value, attributes in self.take():
            for name, item in attributes.items():
                setattr(value, name, self.stage.concrete(item))

    def take(self) -> list[tuple[Any, dict[str, Any]]]:
        """The objects with what waits, which is the caller's now."""
        pairs = self.waiting()
        self.objects = {}
        return pairs
