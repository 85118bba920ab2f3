"""Of which class an object is."""

from __future__ import annotations

from typing import Any

from ._core import Traced


def is_a(value: Any, classes: Any) -> bool:
    """isinstance by the object's own class: its `__class__`, which may be code of the user's, is not
    asked for; a traced value has that of what it stands for.
    """
    cls = type(value)
    return isinstance(value, classes) if cls is Traced else issubclass(cls, classes)


def offered(module: Any) -> list[Any]:
    """What a module has under public names: others, as its loader, are Python's own."""
    return [value for name, value in vars(module).items() if not name.startswith("_")]
