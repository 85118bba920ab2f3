"""reversed() of values with items by index. A list may change while the iterator goes over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .iterators import END, UNKNOWN, Items


def backwards(items: Items, value: Any) -> Items:
    """reversed(value), which has these items. It begins at the item that is last now, and ends if a list becomes too short for the
    next one.
    """
    length = items.length

    def made(concrete: Any, f: Callable[..., Any] = iter) -> Iterator[Any]:
        return f(reversed_from(concrete.of(value), length))

    def left() -> Any:
        position = found.position
        is_there = position in (END, UNKNOWN) or length - position <= items.length
        return length if is_there else position

    is_list = type(value) is list and callable(items.size)
    found = Items(left if is_list else length, lambda i: items.get(length - 1 - i), made, reads=items.reads)
    return found


def reversed_from(value: Any, length: Any) -> Iterator[Any]:
    """reversed(value) as it was made when the list had this length."""
    made = reversed(value)
    if type(value) is list and len(value) != length:
        missing = max(length - len(value), 0)
        value.extend([None] * missing)  # __setstate__ takes no index after the end
        made.__setstate__(length - 1)
        del value[len(value) - missing :]
    return made
