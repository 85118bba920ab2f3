"""Finds the class of an object without running the user's code."""

from __future__ import annotations

from typing import Any

from .._core import is_a as is_a

MODULE = type.__dict__["__module__"]
HEAP = 1 << 9  # the flag of classes whose attributes may be set, as those written in Python


def module_of(cls: type) -> str:
    """The name of the module of a class, read from the class itself: its metaclass may have a property of that name. Empty
    if the class has something else there.
    """
    try:
        found = MODULE.__get__(cls)
    except AttributeError:
        return ""
    return found if type(found) is str else ""


class Record:
    """Values with names, in order. Not a named tuple, because Python would compile code for it in each process, and
    importing the package has to be fast.
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def offered(module: Any) -> list[Any]:
    """The objects that a module has under public names. Others, such as its loader, belong to Python."""
    return [value for name, value in vars(module).items() if not name.startswith("_")]
