"""Rows of classes of objects: what is recorded of their contents, and what their methods do.

A row of `ROWS` is for objects of exactly its class that the call has made. An object without a row may not change
in a loop or branch that is captured. Contents that are restored keep their places if they can.

A row of `READERS` names the methods of a class of values that only read the value and their arguments.
"""

from __future__ import annotations

import array
import collections
import contextlib
import enum
import gc
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.records import NamedTuple
from .iterators import Items
from .objects import (
    CONSTANT_LEAVES,
    FLAGS,
    NUMBER_TYPES,
    ORDERED,
    ORDERED_TYPES,
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

# --- methods ---


class MethodEffect(NamedTuple):
    """The effect of a method on its container. kept: the first of the arguments that it only stores; is_final: the
    container cannot be restored afterwards; views: the result shows later changes of the container.
    """

    changes: bool = True
    compares: bool = True  # or hashes items
    kept: int = 99
    iterates: bool = False  # its first argument
    is_final: bool = False
    views: bool = False


UNKNOWN = MethodEffect()  # of a method that a row does not name
READ, COMPARE = MethodEffect(changes=False, compares=False), MethodEffect(changes=False)
VIEW = MethodEffect(changes=False, compares=False, views=True)
CHANGE, KEEP = MethodEffect(compares=False), MethodEffect(compares=False, kept=0)
INSERT, EXTEND = MethodEffect(compares=False, kept=1), MethodEffect(compares=False, kept=0, iterates=True)
MethodEffects = dict[str, MethodEffect]


def methods(names: dict[str, MethodEffect]) -> MethodEffects:
    """A method for each name."""
    return {name: method for several, method in names.items() for name in several.split()}


OF_TUPLE = methods({"__len__ __getitem__": READ, "__iter__": VIEW, "index count __contains__": COMPARE})
OF_LIST = OF_TUPLE | methods({"copy": READ, "append": KEEP, "extend": EXTEND, "insert": INSERT, "pop clear reverse": CHANGE})
OF_DEQUE = OF_LIST | methods({"appendleft": KEEP, "extendleft": EXTEND, "popleft rotate": CHANGE})
OF_DICT = methods(
    {
        "copy __len__": READ,
        "keys values items": VIEW,
        "get __contains__ __getitem__": COMPARE,
        "clear popitem": CHANGE,
        "setdefault": MethodEffect(kept=1),
        "update": MethodEffect(iterates=True),
    }
)
OF_SET = methods(
    {
        "copy __len__": READ,
        "__contains__ difference intersection isdisjoint issubset issuperset union symmetric_difference": COMPARE,
        "clear": CHANGE,
        "pop": MethodEffect(compares=False, is_final=True),
        "update": MethodEffect(iterates=True),
    }
)


OF_MEMORY = methods(
    {
        "__len__ __getitem__ __contains__ copy count decode endswith find hex index startswith tobytes tolist": READ,
        "append byteswap clear extend frombytes fromlist insert pop remove reverse": CHANGE,
    }
)


# --- contents ---


class ContainerRow(NamedTuple):
    """A class of objects. Its functions get an object, or contents as `copy` returns them.

    A loop or branch carries the items of an object whose places stay: `contents` are those of the object with other
    items. places: what an item is found by, or how many there are; None: objects of the class are not carried.
    """

    copy: Callable[[Any], Any]
    enter: Callable[[Any, Any], None]  # replace the contents
    store: Callable[[Any, Any], None] | None = None  # replace them by contents with the same places
    places: Callable[[Any], Any] = len
    contents: Callable[[Any, Any], Any] = lambda value, items: [*items]
    items: Callable[[Any], Iterable[Any]] = iter
    why_not: Callable[[Any], str | None] = lambda value: None  # the reason why contents cannot be restored
    methods: MethodEffects = {}  # noqa: RUF012  (nothing changes it)
    build: Callable[[Any, list[Any]], tuple[Any, ...]] | None = None  # the call that makes such an object of items
    outlives: bool = False  # an object that outlives the call is read under guard
    missing: Callable[[Any], tuple[Callable[..., Any], bool]] | None = None  # what makes an absent item, and if it is stored
    is_memory: bool = False  # numbers in C: nothing traced is held, and other objects may use the memory

    def restore(self, value: Any, contents: Any) -> None:
        """Replace the contents of an object."""
        is_kept = self.store is not None and are_one(self.places(value), self.places(contents))
        (self.store if is_kept else self.enter)(value, contents)  # type: ignore[misc]


def are_one(a: Any, b: Any) -> bool:
    """True if two lists have identical items, or two ints are equal."""
    return a == b if type(a) is int else len(a) == len(b) and all(map(operator.is_, a, b))


def take(value: Any, contents: Any) -> None:
    value[:] = contents


def enter(value: Any, contents: Any) -> None:
    value.clear()
    (value.extend if is_a(value, collections.deque) else value.update)(contents)


def store(value: Any, contents: Any) -> None:
    for place, item in contents.items() if is_a(contents, dict) else enumerate(contents):
        value[place] = item


def ordered(pairs: Iterable[Any], keys: Iterable[Any], made: Any = None) -> Any:
    """An OrderedDict with these pairs in the order of the dict in it, which `dict.items` shows."""
    made = ORDERED() if made is None else made
    made.update(pairs)
    for key in keys:
        made.move_to_end(key)
    return made


def enter_ordered(value: Any, contents: Any) -> None:
    value.clear()
    ordered(dict.items(contents), contents, value)


def build_ordered(value: Any, items: list[Any]) -> tuple[Any, ...]:
    now = dict(zip(value, items, strict=True))
    return ordered, [(key, now[key]) for key in dict.keys(value)], [*value]


def row_of_missing(build: Callable[[Any, dict[Any, Any]], Any], missing: Any) -> ContainerRow:
    """The row of a class of dicts in which an absent key has an item. One that outlives the call is Python's."""

    def built(value: Any, items: list[Any]) -> tuple[Any, ...]:
        return build(value, dict(zip(value, items, strict=True)))

    own = {"outlives": False, "methods": OF_DICT | {"__getitem__": UNKNOWN}}
    return ContainerRow(dict, enter, store, build=built, missing=missing, **{**OF_KEYS, **own})


def enter_set(value: set[Any], contents: set[Any]) -> None:
    if not _core.are_placed_alike(value, contents):
        enter(value, contents)


def why_not_keys(value: Any) -> str | None:
    hooked = hooked_in(value) is not None
    return f"a {type(value).__name__} changes whose keys have methods of their own" if hooked else None


def why_not_set(value: set[Any]) -> str | None:
    again: set[Any] = set()
    enter(again, value.copy())
    is_usual = _core.are_placed_alike(again, value)
    return why_not_keys(value) or (None if is_usual else "a set changes whose order comes from what it held before")


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


OF_KEYS: dict[str, Any] = {
    "places": list,
    "contents": lambda value, items: dict(zip(value, items, strict=True)),
    "items": lambda contents: contents.values(),
    "why_not": why_not_keys,
    "methods": OF_DICT,
    "outlives": True,
}
ROWS: dict[type, ContainerRow] = {
    list: ContainerRow(list.copy, take, methods=OF_LIST, outlives=True),
    dict: ContainerRow(dict.copy, enter, store, **OF_KEYS),
    ORDERED: ContainerRow(lambda value: ordered(dict.items(value), value), enter_ordered, store, build=build_ordered, **OF_KEYS),
    collections.defaultdict: row_of_missing(
        lambda value, items: (collections.defaultdict, value.default_factory, items),
        lambda value: (value.default_factory, True),
    ),
    collections.Counter: row_of_missing(lambda value, items: (collections.Counter, items), lambda value: (int, False)),
    set: ContainerRow(set.copy, enter_set, None, lambda contents: None, why_not=why_not_set, methods=OF_SET, outlives=True),
    collections.deque: ContainerRow(
        *(collections.deque.copy, enter, store),
        methods=OF_DEQUE,
        build=lambda value, items: (collections.deque, items, value.maxlen),
    ),
}
# Objects without methods of their own that change them.
INNER: dict[type, ContainerRow] = {
    types.CellType: ContainerRow(in_cell, enter_cell),
    Items: ContainerRow(lambda value: [value.position], lambda value, contents: setattr(value, "position", *contents)),
}
SLOTTED = ContainerRow(in_slots, enter_slots)
REFUSED = ContainerRow(lambda value: None, enter, why_not=lambda value: f"a {type(value).__name__} changes")


def of_memory(build: Callable[..., Any]) -> ContainerRow:
    """The row of a class of C numbers, which are not carried, because they cannot be traced."""
    return ContainerRow(lambda value: value[:], take, None, lambda contents: None, methods=OF_MEMORY, build=build, is_memory=True)


ROWS[array.array] = of_memory(lambda value, items: (array.array, value.typecode, value.tobytes()))
ROWS[bytearray] = of_memory(lambda value, items: (bytearray, bytes(value)))


def row_of(value: Any) -> ContainerRow:
    """The row of an object; `REFUSED` if its contents cannot be restored."""
    cls = type(value)
    return ROWS.get(cls) or INNER.get(cls) or (SLOTTED if slots_of(cls) else REFUSED)


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
    return [*plain_of_view(view).__iter__(dict_of(view))]


def plain_of_view(view: Any) -> type[dict[Any, Any]]:
    """The class whose method made a dict view."""
    return ORDERED if type(view) in ORDERED_TYPES else dict


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
CLASSES = frozenset({ORDERED, np.ndarray, np.ufunc, *(base for cls in PURE_TYPES for base in cls.__mro__)}) - {object}  # type: ignore[attr-defined]


def only_reads(value: Any, name: str) -> bool:
    """True if a method of a value, or of a class of values, only reads it and its arguments."""
    if is_a(value, type):
        return value in CLASSES and name in OF_CLASSES
    is_value = type(value) in PURE_TYPES or is_a(value, enum.Enum | np.dtype | np.generic)
    return is_value and any(name in READERS.get(cls, ()) for cls in type(value).__mro__)
