"""Ordinary lists that are still known as columns: what a loop appended to them is the rows of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...numpy.surface import is_large_int
from ..objects import Traced

if TYPE_CHECKING:
    from .state import State

JOINS = frozenset({np.array, np.asarray, np.stack})  # functions that make an array from the items of a list


def keep_backing(state: State, made: list[Any], rows: object) -> None:
    """Record for a list that a loop made that its items are rows of an array, which NumPy would make of them. Not for
    ints whose values decide the dtype.
    """
    if not any(map(is_large_int, made)):
        seen = [(item, item.version if type(item) is Traced else 0) for item in made]
        state.put(backings={**state.backings, id(made): (made, seen, rows)})


def list_of(state: State, row: Traced, kind: str) -> list[Any]:
    """The list of the numbers in an array."""
    items = [row[k] for k in range(row.shape[0])]
    made = [state.tracer.as_python(item) for item in items] if kind == "python" else items
    keep_backing(state, made, row)
    return made


def backing_of(state: State, value: object) -> Any:
    """The array of the items that a loop appended to a list, if the list still has these."""
    found = state.backings.get(id(value))
    if found is None or found[0] is not value or not 0 < len(value) == len(found[1]):
        return None
    for item, (made, version) in zip(value, found[1], strict=True):
        if item is not made:
            return None
        if type(item) is list:
            if backing_of(state, item) is None:
                return None
        elif item.version != version:  # it was written to since
            return None
    return found[2]


def array_of(state: State, value: list[Any]) -> Any:
    """np.array(list), if the list is columns; else None."""
    if (found := state.lists.get(id(value))) is not None and (made := found.array) is not None:
        return made
    rows = backing_of(state, value)
    return None if rows is None else state.tracer.copy(rows, "K")
