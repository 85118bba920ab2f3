"""Dicts and sets whose keys data decide, made in the call.

Keys are ints or floats, or tuples of them. The items of a dict are numbers, or tuples of numbers. The entries are a list in the
order of insertion, which is stored as columns (`list_buffer`). An array, the hash table, has the place of each key's
entry. Its operations are captured from source (`numpy/list_sources.py`). Like a list of lists (`list_columns`), a
mapping gives up the assumption `list_columns` at an effect, and at any use that has no source.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.signals import Replan
from ...numpy import list_sources
from ..container_rows import ROWS
from ..iterators import Items
from ..kinds import have_same_structure, is_int, kind_of, leaves, rebuilt
from ..made_lists import entries_of, mapping_of
from ..objects import MISSING, Traced
from .columns import empty_columns
from .list_buffer import SPARE, ListBuffer
from .list_columns import Assumed

if TYPE_CHECKING:
    from ..kinds import Hooks, Size
    from .region import Region

MAX_ENTRIES = 1 << 17
ORDER_IS_UNKNOWN = "the entries of a dict or set are read of which some were removed, or a set's that had items before data decided"
LOOKED_AT = "a dict or set is looked at whose keys data decide"
DictOrSet = dict[Any, Any] | set[Any]
CLASSES = (dict, set, collections.defaultdict, collections.Counter)
SOURCES: dict[str, Callable[..., Any]] = {
    "get": list_sources.item_or,
    "setdefault": list_sources.default_item,
    "add": list_sources.add_key,
    "__contains__": list_sources.has_key,
    "remove": list_sources.delete,
    "discard": list_sources.discard,
}
REMOVING = ("__delitem__", "pop"), ("remove", "discard")  # of dicts, of sets


READING = (
    *(list_sources.has_key, list_sources.item_of, list_sources.item_or, list_sources.item_or_made),
    *(list_sources.delete, list_sources.discard, list_sources.pop_item, list_sources.pop_or),
)


class Mapping(Assumed):
    """A dict or set; entries: the hidden list of (key, item) or (key,); slots: the hash table."""

    has_sources = False  # those of lists

    def __init__(self, scope: Hooks, container: object, entries: list[Any], slots: object) -> None:
        self.entries, self.slots = entries, slots
        self.has_own_order = type(container) is not set or not container
        self.has_views = False  # which the call may still have
        super().__init__(scope, container, None, [], 0)

    @property
    def buffer(self) -> ListBuffer:
        """The columns of the entries."""
        return self.state.lists[id(self.entries)]

    @property
    def length(self) -> Any:
        return self.buffer.length

    @property
    def array(self) -> Any:
        return self.fail("an array is made of a dict or set")

    def run(self, source: Callable[..., Any], *given: object) -> Any:
        """A function of `list_sources` on this mapping."""
        if given and source in READING:
            given = (as_key(self.tracer, given[0], self.buffer.like[0]), *given[1:])
        if given and not is_key_like(given[0], self.buffer.like[0]):
            self.fail("keys of several types are in a dict or set")
        return self.scope.call(source, self.slots, self.entries, *given)

    def item(self, key: object) -> Any:
        return self.run(list_sources.item_of, key)

    def item_or_made(self, key: object, make: object, is_stored: bool) -> Any:
        """The item of a key, or what `make` returns if it is absent, which may also be stored."""
        return self.run(list_sources.item_or_stored if is_stored else list_sources.item_or_made, key, make)

    def set_item(self, key: object, item: object) -> None:
        self.run(list_sources.store_item, key, item)

    @property
    def items_now(self) -> Items | None:  # type: ignore[override]
        """The keys. A set, which has an order of its own, becomes Python's."""
        if type(self.container) is not set:
            return self.items_of_view("keys")
        self.materialise("a set is iterated whose items data decide")
        return None

    def view(self, name: str) -> Any:
        """A view of the dict, which has no items of its own: what reads it reads the columns, or the dict gets its items."""
        return getattr(self.container, name)()

    def items_of_view(self, name: str) -> Items:
        """The items of a view of a dict, for a loop. Python raises if the dict grows meanwhile."""
        if not self.has_own_order:
            self.fail(ORDER_IS_UNKNOWN)
        length = self.length
        self.has_views = True

        def item(number: Size) -> Any:
            now = self.state.lists.get(id(self.container))  # which may have got more room
            if not is_a(now, Mapping) or now.length is not length:
                self.fail("a dict that is iterated grows")
            return VIEWS[name](now.buffer.read(number))

        return Items(self.buffer.size(), item, lambda c, f=iter: f(getattr(c.of(self.container), name)()))

    def contains(self, scope: Hooks, value: object) -> Any:
        return self.run(list_sources.has_key, value)

    def method(self, scope: Hooks, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method of the dict or set; MISSING if it has no source."""
        if kwargs:
            return MISSING
        if name in VIEWS and not args and is_a(self.container, dict):
            return self.view(name)
        if name == "get" and len(args) == 1:
            return MISSING
        if name in REMOVING[type(self.container) is set] and args:
            return self.remove(name, args)
        return self.run(SOURCES[name], *args) if name in SOURCES else MISSING

    def remove(self, name: str, args: tuple[Any, ...]) -> Any:
        """A method that removes an entry, and `del`. The columns do not keep the order of the entries left."""
        if self.has_views:
            self.fail("a dict changes of which there are views")
        self.has_own_order = False
        if name == "pop":
            return self.run(list_sources.pop_item if len(args) == 1 else list_sources.pop_or, *args)
        return self.run(SOURCES.get(name, list_sources.delete), *args)

    def materialise(self, why: str = "") -> None:
        """Give the object its items, after a break, for an operation that the hash table does not support. In a loop or
        branch, or if there is a view of the items in columns, the call is captured again.
        """
        if self.tracer.in_region or self.has_views:
            self.fail(why or LOOKED_AT)
        _, _, *given = self.parts()
        self.drop()
        stage, container = self.scope.stage, self.container
        stage.effects.stop(LOOKED_AT)
        self.state.before_change(container)
        container.clear()
        for entry in stage.tracer.paced(entries_of(*map(stage.materialise, given))):
            if type(container) is set:
                container.add(*entry)
            else:
                dict.__setitem__(container, *entry)

    def parts(self) -> tuple[Any, ...]:
        if not self.has_own_order:
            self.fail(ORDER_IS_UNKNOWN)
        buffer = self.buffer
        like = buffer.like
        names = tuple(column.name for column in buffer.columns)
        arrays = [array for column in buffer.copied() for array in column.arrays]
        counts = tuple(len(leaves(part)) if type(part) is tuple else 0 for part in like)
        made = filled(self.container)
        return (mapping_of, made, counts, names, *arrays)


def filled(value: object) -> tuple[Any, ...]:
    """The class of a dict or set, and what its constructor gets before the items."""
    return (type(value), *(getattr(value, name) for name in ROWS[type(value)].held))


VIEWS: dict[str, Callable[[Any], Any]] = {
    "items": lambda entry: entry,
    "keys": lambda entry: entry[0],
    "values": lambda entry: entry[1],
}


def is_key_like(key: object, like: object) -> bool:
    """True if two keys are numbers, or tuples of as many, of the same classes."""
    same = have_same_structure(key, like)
    return same and [kind_of(leaf) for leaf in leaves(key)] == [kind_of(leaf) for leaf in leaves(like)]


def as_key(tracer: _core.Tracer, key: object, like: object) -> Any:
    """A key that is only looked for, with Python's numbers in place of NumPy's if the keys have Python's: they are equal, and have
    equal hashes.
    """
    if not have_same_structure(key, like):
        return key
    pairs = zip(leaves(key), leaves(like), strict=True)
    return rebuilt(key, iter([as_like(tracer, leaf, other) for leaf, other in pairs]))


def as_like(tracer: _core.Tracer, leaf: object, other: object) -> Any:
    """Python's number for a traced one of NumPy, if the other is Python's and of that kind; other values are returned."""
    if type(leaf) is not Traced or leaf.kind != "scalar" or leaf.strong is not None:
        return leaf
    if is_int(other) and leaf.dtype.kind == "i":
        return tracer.as_python(tracer.cast(leaf, np.int64))
    return tracer.as_python(leaf) if is_float(other) and leaf.dtype.char == "d" else leaf


def is_float(value: object) -> bool:
    """True for a float of Python, traced or not."""
    return type(value) is float or (type(value) is Traced and value.kind == "python" and value.dtype.char == "d")


def is_key_part(leaf: object) -> bool:
    """True for ints, and for floats of 64 bits."""
    is_numpys = type(leaf) is Traced and leaf.kind == "scalar" and (leaf.dtype.kind == "i" or leaf.dtype.char == "d")
    return is_int(leaf) or is_float(leaf) or is_numpys


def is_open_key(scope: Hooks, value: object, key: object) -> bool:
    """True if data decide which key of a dict or set of the call's is meant."""
    if type(value) not in CLASSES or not scope.stage.may_assume_columns or not scope.stage.tracer.in_region:
        return False
    parts = leaves(key)
    if type(key) is Traced or type(key) is tuple:
        is_traced = any(type(leaf) is Traced for leaf in parts)
        return is_traced and all(map(is_key_part, parts)) and all(getattr(leaf, "strong", None) is None for leaf in parts)
    return False


def want_given(scope: Hooks, value: object) -> None:
    """Capture the call again with the small containers among its arguments as columns, if the container may be one of them."""
    stage = scope.stage
    is_known = stage.may_assume_columns and stage.has_small_containers and is_a(value, list | dict | set) and bool(value)
    if is_known and (source := stage.sources.source_of(value)) is not None and source >= 0 and stage.sources.rows[source][0] == "arg":
        raise Replan("small_containers", "data decide which key of a container among the arguments is meant, or how it grows")


def guard_empty(scope: Hooks, value: object) -> None:
    """Guard that a container that the call has not made is empty."""
    if (source := scope.stage.sources.source_of(value)) is not None and source >= 0:
        scope.stage.sources.guard_length(value, source)


def make_mapping(value: DictOrSet, like: tuple[Any, ...], room: Size, region: Region) -> None:
    """Make a hash table of a dict or set."""
    scope = region.scope
    room = room + (len(value) + SPARE)
    room = min(room, MAX_ENTRIES) if type(room) is int else room
    entries: list[Any] = scope.stage.state.note_definition([])
    buffer = ListBuffer(scope, entries, like, empty_columns(scope, like, room), 0, room, region)
    buffer.reached_by, buffer.spare = value, SPARE + len(value)
    slots = scope.call(np.full, room * 2 + 1, -1)
    made = Mapping(scope, value, entries, slots)
    for key in value:
        if is_a(value, dict):
            made.set_item(key, value[key])
        else:
            made.run(list_sources.add_key, key)
