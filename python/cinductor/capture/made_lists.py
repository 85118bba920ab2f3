"""Functions that a captured call uses to make lists, deques, dicts and sets of the arrays in which it has their items."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import _core


def listed(kind: str, axes: tuple[int, ...], last: Any, rows: Any, *sizes: Any) -> list[Any]:
    """A list of rows: numbers, NumPy's ("scalar") or Python's, lists of them ("list of scalar"), or arrays, each cut
    to its sizes along these axes; last: the object that is the last item. "scalar or l": numbers of that kind where
    sizes has a true item, elsewhere Python's of the class with this dtype.
    """
    kind, _, weak = kind.partition(" or ")
    if weak:
        cls = {"?": bool, "l": int, "d": float}[weak]
        numbers = listed(kind, (), None, rows)
        return [v if is_it else cls(v) for v, is_it in zip(numbers, sizes[0].tolist(), strict=True)]
    if kind != "array":
        is_nested = kind.startswith("list")
        if kind.endswith("python"):
            return rows.tolist()
        return [list(row) for row in rows] if is_nested else list(rows)
    if not axes:
        items = [row.copy() for row in rows]
    elif axes == (0,):
        items = [row[:n].copy() for row, n in zip(rows, sizes[0].tolist(), strict=True)]
    else:
        parts = np.full((len(rows), rows.ndim - 1), slice(None))
        for axis, column in zip(axes, sizes, strict=True):
            parts[:, axis] = [slice(n) for n in column.tolist()]
        items = [row[tuple(part)].copy() for row, part in zip(rows, parts, strict=True)]
    return items if last is None or not items else [*items[:-1], last]


def tuples(like: tuple[Any, ...], kinds: tuple[str, ...], *columns: Any) -> list[Any]:
    """A list of tuples of numbers, nested or named as in like, which has None for each number."""
    lists = lists_of(kinds, columns)
    return nested(like, iter(lists), len(lists[0]))


def nested(like: Any, lists: Iterator[list[Any]], count: int) -> list[Any]:
    """The items of so many tuples that are in the same place."""
    if like is None:
        return next(lists)
    if not like:
        return [like] * count
    rows = zip(*[nested(part, lists, count) for part in like], strict=True)
    return list(rows) if type(like) is tuple else [tuple.__new__(type(like), row) for row in rows]


def lists_of(kinds: tuple[str, ...], columns: Iterable[Any]) -> list[list[Any]]:
    """A list for each kind; that of numbers of two classes has two columns."""
    left = iter(columns)
    return [listed(kind, (), None, next(left), *([next(left)] if " or " in kind else ())) for kind in kinds]


def queue_of(has_tuples: bool, *given: Any) -> collections.deque[Any]:
    """A deque of the items in columns."""
    return collections.deque((tuples if has_tuples else listed)(*given))


def entries_of(counts: tuple[int, ...], names: tuple[str, ...], *columns: Any) -> list[tuple[Any, ...]]:
    """The entries of a dict or set in columns, in the order of insertion: (key, item) or (key,); counts: for keys and
    items, how many make a tuple, or 0.
    """
    left = iter(lists_of(names, columns))
    parts: list[Any] = [
        list(zip(*[next(left) for _ in range(count)], strict=True)) if count else next(left) for count in counts
    ]
    return list(zip(*parts, strict=True))


def mapping_of(make: tuple[Any, ...], *given: Any) -> Any:
    """A dict or set of columns; make: its class, or what it is made with."""
    cls, *before = make
    entries = entries_of(*given)
    return cls(*before, dict(entries) if issubclass(cls, dict) else [key for (key,) in entries])


def begins_with_numbers(value: Any, count: int) -> bool:
    """True if so many first items of a list, or the first keys and items of a dict, are numbers that an array can have."""
    if type(value) is list:
        return _core.list_column(value[:count]) is not None
    parts = (value, value.values()) if type(value) is dict else ()
    return bool(parts) and all(_core.list_column([*itertools.islice(part, count)]) is not None for part in parts)
