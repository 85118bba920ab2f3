"""The contents of all objects that may change, views of dicts, and methods that change nothing.

A row of `READERS` names the methods of a class of values that only read the value and their arguments.
"""

from __future__ import annotations

import contextlib
import enum
import gc
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .container_rows import MAPPINGS, OF_TUPLE, ROWS, VIEWS, ContainerRow, MethodEffects, enter
from .iterators import Items
from .objects import (
    CONSTANT_LEAVES,
    FLAGS,
    NUMBER_TYPES,
    PURE_TYPES,
    UNBOUND,
    VALUE_TYPES,
    VIEWS_OF_DICTS,
    bounds_of,
    hooked_in,
    in_slots,
    is_tuple,
    slots_of,
)


def in_cell(cell: types.CellType) -> list[Any]:
    """The value of a cell, if it has one."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def enter_cell(cell: types.CellType, contents: list[Any]) -> None:
    if contents:
        cell.cell_contents = contents[0]
    elif in_cell(cell):
        del cell.cell_contents


def enter_slots(value: Any, items: Iterable[Any]) -> None:
    for slot, item in zip(slots_of(type(value)), items, strict=True):
        if item is not UNBOUND:
            slot.__set__(value, item)
        else:
            with contextlib.suppress(AttributeError):  # if it is empty already
                slot.__delete__(value)


# Objects without methods of their own that change them.
INNER: dict[type, ContainerRow] = {
    types.CellType: ContainerRow(in_cell, enter_cell),
    Items: ContainerRow(lambda value: [value.position], lambda value, contents: setattr(value, "position", *contents)),
}
SLOTTED = ContainerRow(in_slots, enter_slots)
REFUSED = ContainerRow(lambda value: None, enter, why_not=lambda value: f"a {type(value).__name__} changes")


def row_of(value: Any) -> ContainerRow:
    """The row of an object; `REFUSED` if its contents cannot be restored."""
    cls = type(value)
    return ROWS.get(cls) or INNER.get(cls) or (SLOTTED if slots_of(cls) else REFUSED)


def why_not_restored(value: Any) -> str | None:
    """The reason why the contents of an object cannot be restored, or None."""
    row = row_of(value)
    if row.hashes and hooked_in(value) is not None:
        return f"a {type(value).__name__} changes whose keys have methods of their own"
    return row.why_not(value)


def methods_of(value: Any) -> MethodEffects | None:
    """The methods of a container."""
    row = ROWS.get(type(value))
    return row.methods if row is not None else OF_TUPLE if is_tuple(type(value)) else None


def places_of(value: Any) -> Any:
    """Where the items of a container or of a view of a dict are, for `are_one`."""
    if type(value) in VIEWS_OF_DICTS:
        return keys_of_view(value)
    found = ROWS[type(value)].places(value) if type(value) in ROWS else None
    return [*value] if found is None else found


# --- views of dicts ---


def dict_of(view: Any) -> Any:
    """The dict of a view."""
    return gc.get_referents(view)[0]


def name_of_view(view: Any) -> str:
    """The method that made a dict view."""
    return type(view).__name__.partition("_")[2]


def keys_of_view(view: Any) -> list[Any]:
    """The keys in the order of a dict view: dict.items() of an OrderedDict has another one than its own items()."""
    return [*VIEWS[type(view)].__iter__(dict_of(view))]


# --- values that nothing changes ---


def own(*classes: Any) -> frozenset[str]:
    """The names that classes themselves have."""
    return frozenset().union(*map(vars, classes))


def is_constant(value: Any) -> bool:
    """True for a value without traced and changeable parts, which all calls may share."""
    if type(value) is slice:
        return all(map(is_constant, bounds_of(value)))
    return is_a(value, CONSTANT_LEAVES) or (type(value) in (tuple, frozenset) and all(map(is_constant, value)))


PLAIN = (*VALUE_TYPES, *NUMBER_TYPES)
OF_SCALARS = """__array__ __array_namespace__ __copy__ __deepcopy__ all any argmax argmin argsort astype byteswap choose
    clip compress conj conjugate copy cumprod cumsum diagonal fill flatten getfield item max mean min nonzero prod put
    ravel repeat reshape resize round searchsorted sort squeeze std sum swapaxes take to_device tobytes tolist trace
    transpose var view""".split()
READERS: dict[type, frozenset[str]] = {
    object: frozenset(
        "__dir__ __eq__ __format__ __ge__ __getattribute__ __getstate__ __gt__ __hash__ __le__ __lt__ __ne__ "
        "__repr__ __sizeof__ __str__".split()
    ),
    **{cls: own(cls) for cls in (*PLAIN, tuple, frozenset, *VIEWS_OF_DICTS)},  # type: ignore[misc]
    np.generic: own(int, float, complex, str, bytes).union(OF_SCALARS),
    np.dtype: frozenset("newbyteorder __getitem__ __len__ __bool__ __mul__ __rmul__".split()),
    np.broadcast: frozenset({"__iter__"}),
    FLAGS: frozenset({"__getitem__"}),
}
# The methods of classes of values that make values, or only read the class.
OF_CLASSES = frozenset(
    "__call__ __new__ fromhex from_bytes from_number fromkeys maketrans mro __class_getitem__ __getformat__ __dir__ __eq__ "
    "__hash__ __instancecheck__ __ne__ __or__ __prepare__ __repr__ __ror__ __sizeof__ __subclasscheck__".split()
)
CLASSES = MAPPINGS | {np.ndarray, np.ufunc, *(base for cls in PURE_TYPES for base in cls.__mro__)} - {object}  # type: ignore[attr-defined]


def only_reads(value: Any, name: str) -> bool:
    """True if a method of a value, or of a class of values, only reads it and its arguments."""
    if is_a(value, type):
        return value in CLASSES and name in OF_CLASSES
    is_value = type(value) in PURE_TYPES or is_a(value, enum.Enum | np.dtype | np.generic)
    return is_value and any(name in READERS.get(cls, ()) for cls in type(value).__mro__)
