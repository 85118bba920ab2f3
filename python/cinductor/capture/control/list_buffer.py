"""Lists stored as columns and a count.

Each leaf of the items has a `Column`, an array with one row per item. The number of items is an int, a size (if a
loop appends in each iteration), or a data-dependent number. The user's list object is unchanged: `State.lists`
maps it to its `ListBuffer`. Code that reads the list calls the buffer, or is told that it cannot be read. While a
loop that appends is captured, the items of earlier iterations are unknown (`appended`).

If the count is a size (`appended.SizedList`), only supported calls and the caller may read the list. If data decide what
is appended, the columns are made before the loop, with capacity for everything that its iterations can append.
Each append checks the capacity, and the count is kept in a list of its own, which loops and branches carry and
merge like any other. A list that has its items may still be known as rows of a column (`backing_of`).
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...numpy import list_sources
from ...numpy.surface import require, small_ints
from ..iterators import Items
from ..kinds import (
    have_same_structure,
    is_int,
    is_same,
    is_tagged,
    kind_of,
    leaves,
    lifted,
    rebuilt,
)
from ..objects import MISSING, Traced, is_ours, listed, tuples
from . import lattice
from .region import RegionBreak

if TYPE_CHECKING:
    from ..kinds import Hooks
    from .region import Region

SPARE = 64  # capacity for items appended outside of the loop
OPEN = 1 << 14  # capacity in a loop with an unknown number of iterations; for more, Python takes long anyway
MANY = 1 << 22
MAX_HELD = 4096  # items of a list before; each of them is a node
NUMBERS = "?bhilqBHILQfd"
SEVERAL_TYPES = "items of several types are in a list that grows"
LOOKED_AT = "a list that a loop appends to is looked at"
DIRECT = frozenset({("append", 1), ("appendleft", 1), ("pop", 0), ("popleft", 0)})


class Column:
    """One leaf of all items. rows: one for each item; for arrays of different sizes also each length, by axis. like:
    the leaf of one item; room: the sizes of a row.
    """

    __slots__ = ("like", "kind", "room", "rows", "sizes", "nodes")

    def __init__(self, like: Any, rows: Any = None, room: tuple[Any, ...] = ()) -> None:
        self.like, self.rows, self.room = like, rows, room
        self.kind = kind_of(like)
        self.sizes: dict[int, Any] = {}
        self.nodes: list[tuple[tuple[Any, int], tuple[Any, ...]]] = []  # rows in a block, with shapes

    @property
    def axes(self) -> list[int]:
        """The axes along which lengths differ."""
        return [k for k, size in enumerate(self.room) if not is_same(size, self.like.shape[k])]

    def read(self, tracer: _core.Tracer, place: Any) -> Any:
        """The leaf of the item at this index; an array as a view of its row."""
        if self.rows is None:
            return self.like
        row = self.rows[place]
        if self.kind[0] != "array":  # type: ignore[index]
            return tracer.as_python(row) if self.kind[0] == "python" else row  # type: ignore[index]
        shape = list(self.room)
        for axis, sizes in self.sizes.items():
            shape[axis] = tracer.define(sizes[place], 0, shape[axis] + 1)
        return lattice.first_part(tracer, row, tuple(shape)) if self.sizes else row

    # --- as values of a region ---

    def append(self, tracer: _core.Tracer, body: _core.Block, place: object, count: object) -> None:
        """Give the leaf of an iteration its row, in parameters of the body. count: the number of rows."""
        if type(self.like) is not Traced:
            return
        axes = self.axes
        sizes = [lattice.number_of(tracer, self.like.shape[k]) for k in axes]
        numbers = [(tracer.cast(size, np.int64), ()) for size in sizes]
        for value, room in ((self.like.as_data(), self.room), *numbers):
            row, shape = tracer.reshape(value, (1, *value.shape)), (count, *room)
            rows = body.param(tracer.undefined(row, shape))
            if value.ndim == 0:
                rows[place] = value
            else:
                lattice.write(tracer, rows[place], value, axes)
            self.nodes.append(((body, body.live_out(row)), shape))
            body.result(rows)

    def take(self, made: Iterator[Any]) -> None:
        """Take the results of the region."""
        if self.nodes:
            self.rows, *sizes = [next(made) for _ in self.nodes]
            self.sizes = dict(zip(self.axes, sizes, strict=True))


class Columns:
    """A container whose items are in columns, and what its methods do. cells: what changes."""

    container: Any
    like: Any
    cells: list[Any]
    is_sized = False  # its length is a number of iterations

    @property
    def has_sources(self) -> bool:
        """True if its methods may be captured from source, because what they check can restart the call."""
        return False

    def fail(self, reason: str) -> NoReturn:
        raise RegionBreak(reason, "", 0)

    def before_effect(self, reason: str) -> None:
        """Called before an effect, after which the call cannot restart."""

    def replace(self, array: object) -> None:
        """Store the items of an array, of which there are as many."""
        raise NotImplementedError

    def method(self, scope: Hooks, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method of the list; MISSING if the list has its items."""
        if (name, len(args)) in DIRECT and not kwargs and hasattr(self, name):
            return getattr(self, name)(*args)
        if not self.has_sources:
            return MISSING
        if name == "sort" and not args and kwargs.get("key") is None:
            return self.replace(self.in_order(scope, kwargs))
        source = list_sources.METHODS.get(name)
        return MISSING if source is None or kwargs else scope.call(source, self.container, *args)

    def in_order(self, scope: Hooks, kwargs: dict[str, Any]) -> Any:
        """The array of the items in the order of `sorted`."""
        if is_a(self.like, tuple):
            self.fail("a list of tuples that grows is sorted")
        return scope.call(list_sources.in_order, self.container, **{name: v for name, v in kwargs.items() if name != "key"})

    def contains(self, scope: Hooks, value: object) -> Any:
        """value in list; MISSING if the list has its items."""
        return scope.call(list_sources.contains, self.container, value) if self.has_sources else MISSING


class ListBuffer(Columns):
    """One list as columns; like: one of its items; count: the number of items; room: the capacity. Without a region, the
    enclosing loop or branch for which it was made, no item may be appended.

    What changes is in `cells`, which are restored, carried and merged like a list of the user's.
    """

    def __init__(
        self, scope: Any, container: Any, like: Any, columns: Any, count: Any, room: Any = None, region: Any = None
    ) -> None:
        self.scope, self.state, self.tracer = scope, scope.stage.state, scope.stage.tracer
        self.container, self.like, self.columns = container, like, list(columns)
        self.cells, self.room = self.state.note_definition([count]), count if room is None else room
        self.reached_by = container  # what the user's code has
        self.region: Region | None = region
        self.around = tuple(self.state.active)  # an iteration of these makes its own
        self.spare = 0 if region is None else SPARE
        self.state.grow(self)

    @property
    def length(self) -> Any:
        """How many items there are."""
        return self.cells[0]

    @property
    def truth(self) -> Any:
        """True if there are items."""
        return self.length > 0

    @property
    def has_sources(self) -> bool:
        return bool(self.tracer.may_check())

    # --- items ---

    def put(self, place: Any, item: Any) -> None:
        """Store the item at this index."""
        if not is_alike(item, self.like):
            self.fail(SEVERAL_TYPES)
        slot = self.slot(place)
        for leaf, column in zip(leaves(item), self.columns, strict=True):
            self.scope.item_slot(column.rows, slot).value = lifted(self.tracer, leaf, *column.kind)

    def fill(self, items: list[Any]) -> None:
        """Store the items that the list has before: constants by one store, others one by one."""
        if not any(type(leaf) is Traced for item in items for leaf in leaves(item)):
            for k, column in enumerate(self.columns):
                known = np.array([leaves(item)[k] for item in items], column.kind[1])
                self.scope.item_slot(column.rows, slice(0, len(items))).value = self.scope.stage.constant(known)
            self.set_length(len(items))
            return
        for item in items:
            self.put(self.length, item)
            self.set_length(self.length + 1)

    def place(self, number: Any, limit: Any) -> Any:
        """A number with a check that it is at least 0 and less than a limit."""
        if type(number) is int and type(limit) is int and 0 <= number < limit:
            return number
        if type(number) is int:
            number = self.tracer.lift(number)
        if limit is not self.room:
            inside = self.tracer.apply("logical_and", *(number >= 0, number < limit))
            self.tracer.check(inside, "an index is in range")
        return self.tracer.define(number, 0, self.room)

    def at(self, key: object) -> Any:
        """The index of an item."""
        if type(key) is Traced and key.kind == "scalar" and np.can_cast(key.dtype, np.int64) and key.dtype != bool:
            key = self.tracer.as_python(self.tracer.cast(key, np.int64))
        if not is_int(key):
            self.fail("a list that grows is indexed by what is no int")
        if type(key) is int:
            return self.place(key if key >= 0 else self.length + key, self.length)
        is_back = self.tracer.apply("less", key, 0)
        from_end = key + self.length
        if type(from_end) is int:  # both are constants
            from_end = self.tracer.lift(from_end)
        turned = self.tracer.select(is_back, from_end, key, "python")
        return self.place(turned, self.length)

    def item(self, key: Any) -> Any:
        """list[key]; a slice is another list buffer without capacity for appends."""
        if type(key) is not slice:
            return self.scope.item(self.container, key) if self.becomes_list() else self.read(self.at(key))
        parts = [rows[key] for rows in self.copied()]
        return made_of(self.scope, self.like, parts, parts[0].shape[0])

    def read(self, place: object) -> Any:
        """The item there."""
        slot = self.slot(place)
        return rebuilt(self.like, iter([c.read(self.tracer, slot) for c in self.columns]))

    def slot(self, place: object) -> Any:
        """The row of the columns in which the item at an index is."""
        return place

    def is_list_for(self, item: object) -> bool:
        """True if an item that columns cannot store turns it into an ordinary list: this happens without a region,
        where the call cannot restart.
        """
        if self.spare and is_alike(item, self.like):
            return False
        return self.becomes_list()

    def becomes_list(self) -> bool:
        """True if it has become an ordinary list, because the call cannot restart, so that no position can be checked."""
        if self.tracer.in_region or self.tracer.may_check():
            return False
        self.materialise()
        self.state.before_change(self.container)
        return True

    def set_item(self, key: Any, item: Any) -> None:
        """list[key] = item"""
        if self.becomes_list():
            self.scope.item_slot(self.container, key).value = item
            return
        if type(key) is slice:
            self.copy_from(key, self.state.lists.get(id(item)))
            return
        self.put(self.at(key), item)

    def copy_from(self, key: slice, other: Any) -> None:
        """list[:] = other, for lists of numbers of one kind and length."""
        if key != slice(None) or other is None or other.is_sized or is_a(self.like, tuple):
            self.fail("a slice of a list that is stored as columns is replaced")
        if not is_alike(other.like, self.like) or not is_same(other.size(), self.size()):
            self.fail("a list that is stored as columns gets the items of another one")
        self.replace(other.copied()[0])

    def append(self, item: object) -> None:
        """list.append(item)"""
        if self.is_list_for(item):
            self.container.append(item)
            return
        active = self.state.active
        if self.region not in active:
            if any(region.is_loop and region not in self.around for region in active):
                self.want_room()
            if self.spare == 0:
                self.fail("several loops append to a list")
            self.spare -= 1
        place = self.place(self.length, self.room)
        self.put(place, item)
        self.set_length(place + 1)

    def want_room(self) -> None:
        """Another loop appends: restart it with a larger buffer."""
        if type(self) is not ListBuffer or self.region is None:
            self.fail("several loops append to a list")
        active = self.state.active
        owners = active[-1].owners(self.reached_by)
        if any(region.is_loop and region not in (*self.around, *owners) for region in active):
            self.fail("several loops append to a list")  # each iteration would have its own
        active[-1].want(self.reached_by, enlarge, self, room_of(owners))

    def pop(self) -> Any:
        """list.pop()"""
        if self.becomes_list():
            return self.container.pop()
        place = self.at(-1)
        item = self.read(place)
        self.set_length(place)
        return item

    def set_length(self, length: object) -> None:
        self.state.refill(self.cells, [length, *self.cells[1:]])

    # --- the whole list ---

    def replace(self, array: Any) -> None:
        self.scope.item_slot(self.columns[0].rows, slice(0, self.size())).value = array

    @property
    def items_now(self) -> Items:
        """The items, for a loop, which runs as often as there are items now. If the list comes to have another length, or is no
        buffer any more, Python runs the iterations that remain.
        """
        length, size, stage = self.length, self.size(), self.scope.stage

        def is_buffer() -> bool:
            if self.state.lists.get(id(self.container)) is not self:
                return False
            if self.length is not length:
                self.materialise("a list changes that an iterator goes over")
                return False
            return True

        return Items(
            lambda: size if is_buffer() else stage.length_now(self.container),
            lambda number: self.read(number) if is_buffer() else self.scope.item(self.container, number),
        )

    def size(self) -> Any:
        """The number of items as a size."""
        length = self.length
        if type(length) is int or length.is_expression:
            return length
        return self.tracer.define(length, 0, self.room + 1)

    def copied(self) -> list[Any]:
        """Copies of the rows of all columns, in the order of the items."""
        size = self.size()
        return [self.tracer.copy(column.rows[:size], "K") for column in self.columns]

    @property
    def array(self) -> Any:
        """np.array(list)"""
        length = self.length
        if is_a(self.like, tuple):
            self.fail("an array is made of a list of tuples that grows")
        (column,) = self.columns
        if column.kind[1] != np.float64:
            require(self.tracer, length > 0, "a list of no items")  # an empty list gives floats
        (rows,) = self.copied()
        return small_ints(self.tracer, rows) if column.kind == ("python", np.uint64) else rows

    def materialise(self, why: str = "") -> None:
        """Give the list its items, after a break, for an operation that columns do not support."""
        if self.tracer.in_region:
            self.fail(LOOKED_AT)
        make, *given = self.parts()
        if not self.is_sized:
            self.scope.stage.effects.stop("a list whose length data decide is looked at")
        items = make(*map(self.scope.stage.materialise, given))
        self.state.refill(self.container, list(map(self.scope.stage.lift_array, items)))
        self.drop()

    def drop(self) -> None:
        """Turn it into an ordinary list."""
        self.state.put(lists={k: g for k, g in self.state.lists.items() if g is not self})

    def recipe(self) -> tuple[Any, ...]:
        """The function that makes the list, and its arguments."""
        return self.parts()

    def parts(self) -> tuple[Any, ...]:
        names = tuple(column.kind[0] for column in self.columns)
        if not is_a(self.like, tuple):
            return (listed, *names, (), None, *self.copied())
        if type(self.like) is not tuple or any(is_a(part, tuple) for part in self.like):
            self.fail("a list of nested tuples that grows is returned")
        return (tuples, names, *self.copied())


class Queue(ListBuffer):
    """A deque as columns: a ring. The second cell is the row of the first item."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cells.append(0)

    def slot(self, place: object) -> Any:
        row = (self.cells[1] + place) % self.room
        return row if type(row) is int else self.tracer.define(row, 0, self.room)

    def popleft(self) -> Any:
        """deque.popleft()"""
        if self.becomes_list():
            return self.container.popleft()
        length, first = self.at(-1), self.slot(0)  # at(-1) checks that there is an item
        item = self.read(0)
        self.state.refill(self.cells, [length, (first + 1) % self.room])
        return item

    def appendleft(self, item: Any) -> None:
        """deque.appendleft(item)"""
        if self.is_list_for(item):
            self.container.appendleft(item)
            return
        self.append(item)  # checks the capacity
        self.state.refill(self.cells, [self.length, self.slot(self.room - 1)])
        self.put(0, item)

    def copied(self) -> list[Any]:
        size = self.size()
        places = (self.scope.call(np.arange, size) + self.slot(0)) % self.room
        return [column.rows[places] for column in self.columns]

    def parts(self) -> tuple[Any, ...]:
        make, *given = super().parts()
        return (queue_of, make is tuples, *given)


def queue_of(has_tuples: bool, *given: Any) -> collections.deque[Any]:
    """A deque of the items in columns."""
    return collections.deque((tuples if has_tuples else listed)(*given))


def made_of(scope: object, like: object, rows: list[Any], count: object) -> list[Any]:
    """A list of an array's numbers, to which no item may be appended."""
    columns = map(Column, leaves(like), rows)
    return ListBuffer(scope, [], like, columns, count).container


def repeated(scope: Hooks, items: list[Any], count: Any) -> list[Any] | None:
    """[number] * count for a count that has no value yet; None for other lists."""
    if len(items) != 1 or not is_int(count):
        return None
    scope.stage.regions.note_class(filter(is_tagged, items))
    if (kind := number_kind(items[0])) is None:
        return None
    if not count.is_expression:
        count = scope.stage.tracer.define(count, None, None)
    length = scope.stage.tracer.size_max(count, 0)
    return made_of(scope, items[0], [scope.call(np.full, length, items[0], kind[1])], length)


def joined(scope: Hooks, a: list[Any], b: list[Any]) -> list[Any] | None:
    """a + b, of which one is a list buffer; None if their items differ."""
    lists = scope.stage.state.lists
    parts = [lists.get(id(value), value) for value in (a, b)]
    known = [part for part in parts if is_a(part, ListBuffer)]
    is_plain = all(type(part) is list or is_a(part, ListBuffer) for part in parts)
    if not is_plain or any(part.is_sized or is_a(part.like, tuple) for part in known):
        return None
    kind, length = known[0].columns[0].kind, 0
    columns: list[Any] = []
    for part in parts:
        if is_a(part, ListBuffer):
            if part.columns[0].kind != kind:
                return None
            length, columns = length + part.size(), [*columns, *part.copied()]
        elif not all(number_kind(item) == kind for item in part):
            return None
        elif part:
            length, columns = length + len(part), [*columns, scope.call(np.array, part, kind[1])]
    return made_of(scope, known[0].like, [scope.call(np.concatenate, columns)], length)


# --- which lists become columns before a loop ---


def number_kind(value: object) -> tuple[str, np.dtype] | None:
    """The kind of a leaf in columns of which data decide the length; None if it may have one of two."""
    kind = kind_of(value)
    return None if kind is None or kind[0] == "array" or kind[1].char not in NUMBERS or is_tagged(value) else kind


def is_alike(item: object, like: object) -> bool:
    """True if the columns of an item can store this one."""
    return have_same_structure(item, like) and all(
        kind_of(leaf) == kind_of(other) and not (type(leaf) is Traced and leaf.strong is not None)
        for leaf, other in zip(leaves(item), leaves(like), strict=True)
    )


def is_sequence(value: object) -> bool:
    """True for a list, and for a deque without a bound."""
    return type(value) is list or (type(value) is collections.deque and value.maxlen is None)


def may_be_columns(now: Any, before: Any) -> bool:
    """True if a list or deque that held something holds numbers, or tuples of numbers, of one type, now and before."""
    if not is_sequence(now) or not before or any(is_ours(type(v)) for v in now if type(v) is not Traced):
        return False
    like = before[0]
    return all(map(number_kind, leaves(like))) and all(is_alike(item, like) for item in (*before, *now))


def want_buffer(region: Region, container: list[Any], item: object, before: Any = ()) -> Any:
    """Restart the outermost loop or branch that knows the list, with the list as columns. before: the items of the
    list, if some were removed since.
    """
    if not is_sequence(container):
        region.fail("data decide how a deque grows that has a greatest length")
    if not all(map(number_kind, leaves(item))):
        region.fail("data decide how a list grows, and its items are no numbers")
    now = [v for v in container if type(v) is Traced or not is_ours(type(v))]  # without the unknown prefix
    known = [*now, *before]
    if not all(is_alike(other, item) for other in known):
        region.fail(SEVERAL_TYPES)  # now, because nothing can be undone when the columns are made
    if len(known) > MAX_HELD and any(type(leaf) is Traced for v in known for leaf in leaves(v)):
        region.fail("a list grows that has thousands of items")
    region.want(container, make, item, room_of(region.owners(container)))


def room_of(owners: list[Any]) -> Any:
    """The capacity for what the iterations of loops append, one item each."""
    mosts = [None if loop.is_while else owners[0].mark.most(loop.extent) for loop in owners if loop.is_loop]
    known = [most for most in mosts if most is not None]
    room = math.prod(known) + (OPEN if len(known) < len(mosts) else 0)
    return min(room, MANY) if type(room) is int else room


def empty_columns(scope: Any, like: Any, room: Any) -> list[Column]:
    """Columns with that capacity for items like this one."""
    return [Column(leaf, scope.call(np.empty, room, number_kind(leaf)[1])) for leaf in leaves(like)]  # type: ignore[index]


def make(container: list[Any], item: object, room: Any, region: Region) -> None:
    """Make columns for a list."""
    room = room + (len(container) + SPARE)
    cls = ListBuffer if type(container) is list else Queue
    cls(region.scope, container, item, empty_columns(region.scope, item, room), 0, room, region).fill(container)


def enlarge(reached_by: object, buffer: ListBuffer, more: Any, region: Region) -> None:
    """Make larger columns for a list that is stored as columns."""
    room = buffer.room + (more + SPARE)
    columns = empty_columns(region.scope, buffer.like, room)
    for old, column in zip(buffer.columns, columns, strict=True):
        region.scope.item_slot(column.rows, slice(0, buffer.room)).value = old.rows
    ListBuffer(region.scope, buffer.container, buffer.like, columns, buffer.length, room, region).reached_by = reached_by
