"""Rows of classes of containers: what is recorded of their contents, and what their methods do.

A row of `ROWS` is all that capture knows of a class: everything else is derived from its columns. It is for objects of exactly this
class that the call has made, and, if they outlive the call, for those of the caller. An object without a row may not change in a
loop or branch that is captured. Contents that are restored keep their places if they can.
"""

from __future__ import annotations

import array
import collections
import operator
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from ..base.class_lookup import is_a
from ..base.records import NamedTuple

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
    hashes: bool = False  # replacing the contents hashes the keys
    why_not: Callable[[Any], str | None] = lambda value: None  # another reason why contents cannot be restored
    mutated: str = ""  # Python's words for an iterator over an object of another length
    most: Callable[[Any], int | None] = lambda value: None  # the greatest length
    held: tuple[str, ...] = ()  # attributes that refer to other objects
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
    """Replace the items, but not the places. No key is hashed: one that is traced may have no value while a loop is captured."""
    if is_a(contents, dict):
        dict.update(value, contents)
    else:
        for place, item in enumerate(contents):
            value[place] = item


def ordered(pairs: Iterable[Any], keys: Iterable[Any], made: Any = None) -> Any:
    """An OrderedDict with these pairs in the order of the dict in it, which `dict.items` shows."""
    made = collections.OrderedDict() if made is None else made
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


def row_of_missing(build: Callable[[Any, dict[Any, Any]], Any], missing: Any, *held: str) -> ContainerRow:
    """The row of a class of dicts in which an absent key has an item. One that outlives the call is Python's."""

    def built(value: Any, items: list[Any]) -> tuple[Any, ...]:
        return build(value, dict(zip(value, items, strict=True)))

    own = {"outlives": False, "methods": OF_DICT | {"__getitem__": UNKNOWN}, "held": held}
    return ContainerRow(dict, enter, store, build=built, missing=missing, **{**OF_KEYS, **own})


def enter_set(value: set[Any], contents: set[Any]) -> None:
    if not _core.are_placed_alike(value, contents):
        enter(value, contents)


def why_not_set(value: set[Any]) -> str | None:
    again: set[Any] = set()
    enter(again, value.copy())
    is_usual = _core.are_placed_alike(again, value)
    return None if is_usual else "a set changes whose order comes from what it held before"


def of_memory(build: Callable[..., Any]) -> ContainerRow:
    """The row of a class of C numbers, which are not carried, because they cannot be traced."""
    return ContainerRow(lambda value: value[:], take, None, lambda contents: None, methods=OF_MEMORY, build=build, is_memory=True)


OF_KEYS: dict[str, Any] = {
    "places": list,
    "contents": lambda value, items: dict(zip(value, items, strict=True)),
    "items": lambda contents: contents.values(),
    "hashes": True,
    "methods": OF_DICT,
    "mutated": "dictionary changed size during iteration",
    "outlives": True,
}
ROWS: dict[type, ContainerRow] = {
    list: ContainerRow(list.copy, take, methods=OF_LIST, outlives=True),
    dict: ContainerRow(dict.copy, enter, store, **OF_KEYS),
    collections.OrderedDict: ContainerRow(
        *(lambda value: ordered(dict.items(value), value), enter_ordered, store),
        **{**OF_KEYS, "build": build_ordered, "mutated": "OrderedDict mutated during iteration"},
    ),
    collections.defaultdict: row_of_missing(
        lambda value, items: (collections.defaultdict, value.default_factory, items),
        lambda value: (value.default_factory, True),
        "default_factory",
    ),
    collections.Counter: row_of_missing(lambda value, items: (collections.Counter, items), lambda value: (int, False)),
    set: ContainerRow(
        *(set.copy, enter_set, None, lambda contents: None), hashes=True, why_not=why_not_set, methods=OF_SET, outlives=True
    ),
    collections.deque: ContainerRow(
        *(collections.deque.copy, enter, store),
        methods=OF_DEQUE,
        build=lambda value, items: (collections.deque, items, value.maxlen),
        most=lambda value: value.maxlen,
    ),
    array.array: of_memory(lambda value, items: (array.array, value.typecode, value.tobytes())),
    bytearray: of_memory(lambda value, items: (bytearray, bytes(value))),
}
# Dicts of the caller that are read and written under guard. VIEWS: the class of dicts whose method makes views of a class.
MAPPINGS = frozenset(cls for cls, row in ROWS.items() if row.outlives and issubclass(cls, dict))
VIEWS: dict[type, type[dict[Any, Any]]] = {
    type(view): cls for cls in MAPPINGS for of in [cls()] for view in (of.items(), of.keys(), of.values())
}


def appends(cls: type) -> bool:
    """True for a class of containers that store what is appended to them."""
    row = ROWS.get(cls)
    return row is not None and row.methods.get("append") == KEEP


def base_of(cls: type) -> Any:
    """The class whose methods read and set the contents of a container without the user's methods; None for other objects."""
    return next((base for base in cls.__mro__ if base in ROWS), None)


def with_items(value: Any, items: list[Any]) -> Any:
    """A container like another, with other items at the same places."""
    row = ROWS[type(value)]
    if row.build is None:
        return row.contents(value, items)
    make, *given = row.build(value, items)
    return make(*given)
