"""Dicts and sets among the arguments, of which captured code alone looks at the items while the call runs.

Keys are ints or floats, or tuples of them, and the items of a dict numbers, or tuples of numbers. No key is NaN. Each call makes arrays of them, in
the order in which Python iterates over that object, and the program makes a hash table of the keys (`mappings`). When the
call returns, changed and new items are stored in the object. A set may be iterated while it has not changed. Any other
use, and any effect, gives up the assumption `list_columns`; then the object is captured as a container.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.deferred import DeferredObject
from ...numpy import list_sources
from ..iterators import Items
from ..kinds import is_same, rebuilt
from ..made_lists import entries_of
from ..objects import Traced
from .columns import Column, empty_columns, like_of
from .list_buffer import SPARE, ListBuffer, room_of
from .list_columns import EXAMPLES, arrays_in, size_of
from .mappings import (
    DictOrSet,
    Mapping,
    as_key,
    guard_empty,
    is_key_like,
    is_open_key,
    make_mapping,
    want_given,
)

if TYPE_CHECKING:
    from ..kinds import Hooks, Size
    from .region import Region

    Arrays = np.ndarray | Traced | tuple[Any, ...]  # of numbers; a tuple of arrays is in a tuple

GIVEN = (dict, set)


def columns_in(value: object) -> tuple[Any, ...] | None:
    """The arrays of the keys of a dict or set, and of the items of a dict; None if they are not of one class."""
    if type(value) is dict:
        parts = [[*value], [*value.values()]]
    elif type(value) is set:
        parts = [[*value]]
    else:
        return None
    found = [_core.list_column(part) for part in parts]
    return tuple(found) if all(is_line(made, k == 0) for k, made in enumerate(found)) else None


def is_line(made: object, is_key: bool) -> bool:
    """True for the array of a list of numbers, or those of a list of tuples of numbers; keys are ints, or floats without NaN."""
    if type(made) is tuple:
        return len(made) == 1 and all(is_line(part, is_key) for part in made[0])
    if type(made) is not np.ndarray or made.ndim != 1:
        return False
    return not is_key or made.dtype.char == "l" or (made.dtype.char == "d" and not np.isnan(made).any())


class GivenMapping(Mapping):
    """A dict or set among the arguments."""

    has_lists = False
    container: Any

    def __init__(self, scope: Hooks, container: DictOrSet, source: int, entries: list[Any], slots: object, entered: tuple[Any, ...] | None = None) -> None:
        super().__init__(scope, container, entries, slots)
        self.source, self.has_own_order = source, True
        self.entered = self.versions() if entered is None else entered

    def versions(self) -> tuple[Any, ...]:
        """The number of entries, and the versions of the columns: a stored item or key changes one of them."""
        return (self.length, *(column.rows.version for column in self.buffer.columns))

    @property
    def is_changed(self) -> bool:
        """True if the call has stored an item or a key."""
        return not all(map(is_same, self.versions(), self.entered))

    def run(self, source: Callable[..., Any], *given: object) -> Any:
        """A function of `list_sources`; the table is made when one is first needed, before the outermost loop or branch."""
        active, value = self.state.active, self.container
        has_space = bool(active) or source not in STORING or self.buffer.spare > 0
        if self.slots is not None and has_space:
            return super().run(source, *given)
        if not active:
            if has_space:
                with_table(value, self, None)
            else:
                with_room(value, self, SPARE, self.buffer)
            return self.state.lists[id(value)].run(source, *given)
        if not any(region.reached([value]) for region in active):
            self.fail("an item of a dict or set is read where no construct knows it")
        return active[-1].want(value, with_table, self)

    @property
    def items_now(self) -> Items | None:  # type: ignore[override]
        if type(self.container) is set and self.is_changed:
            self.fail("a set that is an argument has changed and is iterated")
        return self.items_of_view("keys")

    def view(self, name: str) -> Any:
        made = super().view(name)
        self.scope.stage.sources.note_opaque(made)
        return made

    def remove(self, name: str, args: tuple[Any, ...]) -> Any:
        self.fail("an entry of a dict or set that is an argument is removed")

    def materialise(self, why: str = "") -> None:
        """Raises: the call is captured again, with the dict or set as a container."""
        self.fail(why or "a dict or set that is an argument is looked at as a whole")

    @property
    def contents(self) -> DeferredObject:
        _, _, *given = self.parts()
        return DeferredObject((entries_in, *given))


class Entries(ListBuffer):
    """The entries of a dict or set among the arguments. A key that is new makes columns with room before the loop."""

    def append(self, item: object) -> None:
        active, value = self.state.active, self.reached_by
        in_loop = any(region.is_loop and region not in self.around for region in active)
        if self.region is not None and (self.region in active or (self.spare > 0 and not in_loop)):
            super().append(item)
            return
        mapping = self.state.lists[id(value)]
        if not any(region.reached([value]) for region in active):
            mapping.fail("a dict or set grows where no loop knows it")
        active[-1].want(value, with_room, mapping, room_of(active[-1].owners(value)))


STORING = (list_sources.store_item, list_sources.default_item, list_sources.item_or_stored, list_sources.add_key)


def enter(scope: Hooks, value: DictOrSet, source: int) -> None:
    """Read an argument as columns, if it is a dict or set of numbers."""
    stage = scope.stage
    if type(value) not in GIVEN or not stage.may_assume_columns or id(value) in stage.state.lists:
        return
    if (made := columns_in(value)) is None or size_of(made) == 0:
        return
    parts = arrays_in(scope, made, stage.sources.note_made(made, columns_in, source))
    like = tuple(map(like_in, parts))
    columns = [Column(EXAMPLES[array.dtype.char], array) for part in parts for array in arrays_of(part)]
    entries: list[Any] = stage.state.note_definition([])
    buffer = Entries(scope, entries, like, columns, columns[0].rows.shape[0])
    buffer.reached_by = value
    GivenMapping(scope, value, source, entries, None)


def arrays_of(part: Arrays) -> tuple[Any, ...]:
    """The arrays of keys or items."""
    return part[0] if type(part) is tuple else (part,)


def like_in(part: Arrays) -> Any:
    """A key or an item like those of the arrays."""
    made = tuple(EXAMPLES[array.dtype.char] for array in arrays_of(part))
    return made if type(part) is tuple else made[0]


def slots_for(scope: Hooks, entries: list[Any], room: Size) -> Any:
    """The hash table of the entries."""
    slots = scope.call(list_sources.empty_slots, room * 2 + 1)
    scope.call(list_sources.enter_all, slots, entries)
    return slots


def with_table(value: DictOrSet, given: GivenMapping, region: Region | None) -> None:
    """Make the hash table."""
    slots = slots_for(given.scope, given.entries, given.buffer.room)
    GivenMapping(given.scope, value, given.source, given.entries, slots, given.entered)


def with_room(value: DictOrSet, given: GivenMapping, room: Size, region: Region | ListBuffer) -> None:
    """Make columns and a table with more capacity. region: the construct before which they are made."""
    scope, old = given.scope, given.buffer
    total = old.size() + (room + SPARE)
    columns = empty_columns(scope, rebuilt(old.like, iter([column.like for column in old.columns])), total)
    for column, part in zip(columns, old.copied(), strict=True):
        column.assign(scope, slice(0, old.size()), part)
    entries: list[Any] = scope.stage.state.note_definition([])
    buffer = Entries(scope, entries, old.like, columns, old.length, total, region)
    buffer.reached_by = value
    GivenMapping(scope, value, given.source, entries, slots_for(scope, entries, total), given.entered)


def want_mapping(scope: Hooks, value: DictOrSet, key: object, *item: object) -> None:
    """Restart the enclosing loop or branch with a hash table in place of a dict or set, if that is possible; item: what
    is stored. Returns if the value of an item is not known yet, because there is none, or if an iterator may go over the entries.
    """
    stage = scope.stage
    if id(value) in stage.state.iterated:
        return
    want_given(scope, value)
    source = stage.sources.source_of(value)
    if (source is not None and not is_empty_argument(scope, value, source)) or (is_a(value, dict) and not item and not value):
        return
    if value and not item:
        key = as_key(stage.tracer, key, next(iter(value)))
    items = [*item, *value.values()] if is_a(value, dict) else []
    like = like_of(stage.tracer, stage.tracer.paced(items)) if items else ()
    if like is None or not all(is_key_like(known, key) for known in value):
        return
    region = stage.state.active[-1]
    room, entry = room_of(region.owners(value)), (key, like) if items else (key,)
    if source is None:
        region.want(value, make_mapping, entry, room)
    stage.sources.guard_length(value, source)
    region.want(value, make_given, entry, room, source)


def is_empty_argument(scope: Hooks, value: DictOrSet, source: int) -> bool:
    """True for a dict or set among the arguments that has no entry, so that the call decides the classes of keys and items."""
    return type(value) in GIVEN and not value and source >= 0 and bool(scope.stage.sources.rows[source][0] == "arg")


def make_given(value: DictOrSet, like: tuple[Any, ...], room: Size, source: int, region: Region) -> None:
    """Make columns and a table for an argument that is empty."""
    scope, room = region.scope, room + SPARE
    entries: list[Any] = scope.stage.state.note_definition([])
    buffer = Entries(scope, entries, like, empty_columns(scope, like, room), 0, room, region)
    buffer.reached_by = value
    GivenMapping(scope, value, source, entries, scope.call(list_sources.empty_slots, room * 2 + 1))


def item_or_default(scope: Hooks, value: dict[Any, Any], key: object, missing: tuple[Any, bool], is_stored: bool) -> Any:
    """value[key] of a dict in which an absent key has an item; missing: what makes it, and if a read stores it."""
    stage, make, is_stored = scope.stage, missing[0], is_stored and missing[1]
    if make is None:
        return stage.lift_array(value[key])  # raises for an absent key
    grown = stage.state.lists.get(id(value))
    if grown is not None:
        return grown.item_or_made(key, make, is_stored)
    if is_open_key(scope, value, key):
        default = scope.call(make)  # a sample of the items: what it did is undone, unless the dict is empty
        want_mapping(scope, value, key, *([default] if is_stored else []))
        if not value and not is_stored:
            guard_empty(scope, value)
            return default
    if key in value:
        return stage.lift_array(value[key])
    default = scope.call(make)
    if is_stored:
        stage.state.before_change(value)
        value[key] = default
    return default


def entries_in(*given: object) -> list[Any]:
    """The entries of a dict or set in columns, as `store_entries` gets them."""
    return [*given]


def store_entries(value: DictOrSet, counts: tuple[int, ...], names: tuple[str, ...], *arrays: np.ndarray) -> None:
    """Store the items that differ in a dict, or the new keys in a set. counts, names: as for `entries_of`."""
    before, places = len(value), np.arange(len(value), len(arrays[0]))
    if type(value) is set:
        value.update(key for (key,) in entries_of(counts, names, *(array[places] for array in arrays)))
        return
    if before:
        known = columns_in(value)
        assert known is not None
        pairs = zip(arrays_of(known[1]), arrays[max(counts[0], 1) :], strict=True)
        differ = [as_bits(old) != as_bits(new[:before]) for old, new in pairs]
        places = np.append(np.flatnonzero(np.logical_or.reduce(differ)), places)
    value.update(entries_of(counts, names, *(array[places] for array in arrays)))


def as_bits(array: np.ndarray) -> np.ndarray:
    """The bits of numbers, of which NaNs and zeros of one sign are equal."""
    return array.view(np.int64) if array.dtype == np.float64 else array
