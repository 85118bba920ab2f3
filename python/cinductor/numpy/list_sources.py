"""Methods of lists, and functions of Python that read a list, written with indices, `append` and `pop()`.

They are captured from this source if a list is stored as columns (`capture/control/list_buffer.py`). What Python would
raise is raised here, with any text: it becomes a check of the program, and Python's own function then runs. A NaN is
found in a list by identity, which columns do not have, so a search for one is left to Python in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class LeftToPython(Exception):
    """Python's own function must run."""


def largest(items: Any) -> Any:
    """max(items)"""
    if len(items) == 0:
        raise ValueError("no items")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] > best:
            best = items[k]
    return best


def smallest(items: Any) -> Any:
    """min(items)"""
    if len(items) == 0:
        raise ValueError("no items")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] < best:
            best = items[k]
    return best


def total(items: Any) -> Any:
    """sum(items)"""
    return sum(v for v in items)


def contains(items: Any, wanted: Any) -> Any:
    """wanted in items"""
    if wanted != wanted:  # noqa: PLR0124  (a NaN)
        raise LeftToPython
    for v in items:
        if v == wanted:
            return True
    return False


def index(items: Any, wanted: Any) -> Any:
    """items.index(wanted)"""
    if wanted != wanted:  # noqa: PLR0124
        raise LeftToPython
    for k in range(len(items)):
        if items[k] == wanted:
            return k
    raise ValueError("not in the list")


def count(items: Any, wanted: Any) -> Any:
    """items.count(wanted)"""
    if wanted != wanted:  # noqa: PLR0124
        raise LeftToPython
    found = 0
    for v in items:
        if v == wanted:
            found += 1
    return found


def copied(items: Any) -> Any:
    """items.copy(), list(items)"""
    return items[:]


def reverse(items: Any) -> None:
    """items.reverse()"""
    last = len(items) - 1
    for k in range(len(items) // 2):
        items[k], items[last - k] = items[last - k], items[k]


def insert(items: Any, place: Any, item: Any) -> None:
    """items.insert(place, item)"""
    end = len(items)
    if place < 0:
        place = max(place + end, 0)
    place = min(place, end)
    items.append(item)
    for k in range(end, place, -1):
        items[k] = items[k - 1]
    items[place] = item


def pop(items: Any, place: Any) -> Any:
    """items.pop(place)"""
    last = len(items) - 1
    if place < 0:
        place += last + 1
    if place < 0 or place > last:
        raise IndexError("out of range")
    item = items[place]
    for k in range(place, last):
        items[k] = items[k + 1]
    items.pop()
    return item


def remove(items: Any, wanted: Any) -> None:
    """items.remove(wanted)"""
    pop(items, index(items, wanted))


def extend(items: Any, others: Any) -> None:
    """items.extend(others)"""
    for item in others:
        items.append(item)


def in_order(items: Any, *, reverse: bool = False) -> Any:
    """sorted(items, reverse=reverse)"""
    made = np.array(items)
    if made.dtype.kind == "f" and np.isnan(made).any():
        raise LeftToPython
    if reverse:
        return np.sort(made[::-1], kind="stable")[::-1]
    return np.sort(made, kind="stable")


METHODS: dict[str, Callable[..., Any]] = {
    "__contains__": contains,
    "copy": copied,
    "count": count,
    "extend": extend,
    "index": index,
    "insert": insert,
    "pop": pop,
    "remove": remove,
    "reverse": reverse,
}
FUNCTIONS: dict[Any, Callable[..., Any]] = {list: copied, max: largest, min: smallest, sum: total}
