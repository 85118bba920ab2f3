"""Attributes whose values are made when they are read first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class MadeWhenRead(Generic[T]):
    """An attribute of each object of a class. Threads that read it first at the same time get one value."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> T:
        value: T = vars(instance).setdefault(self.name, self.make())
        return value
