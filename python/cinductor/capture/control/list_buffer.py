"""Lists stored as columns and a count.

Each leaf of the items has a `Column`, an array with one row per item. The number of items is an int, a size (if a
loop appends in each iteration), or a data-dependent number. The user's list object is unchanged: `State.lists`
maps it to its `ListBuffer`. Code that reads the list calls the buffer, or is told that it cannot be read. While a
loop that appends is captured, the items of earlier iterations are unknown (`appended`).

If the count is a size, only supported calls and the caller of the function may read the list. If data decide what
is appended, the columns are made before the loop, with capacity for everything that its iterations can append.
Each append checks the capacity, and the count is kept in a list of its own, which loops and branches carry and
merge like any other. A list that has its items may still be known as rows of a column (`backing_of`).
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a
from ...base.signals import Replan
from ...numpy.surface import require, small_ints
from ..iterators import Items
from ..kinds import have_same_structure, is_int, is_same, kind_of, leaves, lifted, rebuilt
from ..objects import Traced, is_ours, listed, tuples
from . import lattice
from .region import RegionBreak, Rerun

if TYPE_CHECKING:
    from .branch import Branch
    from .loop import Loop
    from .region import Region

SPARE = 64  # capacity for items appended outside of the loop
OPEN = 1 << 14  # capacity in a loop with an unknown number of iterations; for more, Python takes long anyway
MANY = 1 << 22
MOST_HELD = 4096  # items of a list before; each of them is a node
NUMBERS = "?bhilqBHILQfd"
SEVERAL_TYPES = "items of several types are in a list that grows"
LOOKED_AT = "a list that a loop appends to is looked at"
JOINS = frozenset({np.array, np.asarray, np.stack})  # functions that make an array from the items of a list


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

    def read(self, tracer: Any, place: Any) -> Any:
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

    def append(self, tracer: Any, body: Any, place: Any, count: Any) -> None:
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


class ListBuffer:
    """One list as columns; like: one of its items; count: the number of items; room: the capacity. Without an
    enclosing loop or branch for which it was made, no item may be appended.
    """

    is_buffer = True
    is_transient = False  # it ends at an effect, and loops take `items_now`

    def __init__(
        self, scope: Any, container: Any, like: Any, columns: Any, count: Any, room: Any = None
    ) -> None:
        self.scope, self.state, self.tracer = scope, scope.stage.state, scope.stage.tracer
        self.container, self.like, self.columns = container, like, list(columns)
        self.cells, self.room = self.state.note_definition([count]), count if room is None else room
        self.reached_by = container  # what the user's code has
        self.loop: Loop | Branch | None = None
        self.around = tuple(self.state.active)  # an iteration of these makes its own
        self.spare = 0
        self.is_sized = False  # its length is a number of iterations: `leave_sized`
        self.name = ""  # names of the items
        self.last: tuple[Any, Any] | None = None  # the other value that has the last row, with its version then
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
        """True if its methods may be captured from source, because what they check can restart the call."""
        return bool(self.tracer.may_check())

    def fail(self, reason: str) -> Any:
        raise RegionBreak(reason, "", 0)

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

    def at(self, key: Any) -> Any:
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

    def read(self, place: Any) -> Any:
        """The item there."""
        slot = self.slot(place)
        return rebuilt(self.like, iter([c.read(self.tracer, slot) for c in self.columns]))

    def slot(self, place: Any) -> Any:
        """The row of the columns in which the item at an index is."""
        return place

    def is_list_for(self, item: Any) -> bool:
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

    def copy_from(self, key: slice, other: ListBuffer | None) -> None:
        """list[:] = other, for lists of numbers of one kind and length."""
        if key != slice(None) or other is None or other.is_sized or is_a(self.like, tuple):
            self.fail("a slice of a list that is stored as columns is replaced")
        if not is_alike(other.like, self.like) or not is_same(other.size(), self.size()):
            self.fail("a list that is stored as columns gets the items of another one")
        self.replace(other.copied()[0])

    def append(self, item: Any) -> None:
        """list.append(item)"""
        if self.is_list_for(item):
            self.container.append(item)
            return
        active = self.state.active
        if self.loop not in active:
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
        if type(self) is not ListBuffer or self.loop is None:
            self.fail("several loops append to a list")
        active = self.state.active
        owners = owners_of(active[-1], self.reached_by)
        if any(region.is_loop and region not in (*self.around, *owners) for region in active):
            self.fail("several loops append to a list")  # each iteration would have its own
        raise Rerun(owners[0], functools.partial(enlarge, self, room_of(owners)))

    def pop(self) -> Any:
        """list.pop()"""
        if self.becomes_list():
            return self.container.pop()
        place = self.at(-1)
        item = self.read(place)
        self.set_length(place)
        return item

    def set_length(self, length: Any) -> None:
        self.state.refill(self.cells, [length, *self.cells[1:]])

    # --- the whole list ---

    def replace(self, array: Any) -> None:
        """Store the items of an array, of which there are as many."""
        self.scope.item_slot(self.columns[0].rows, slice(0, self.size())).value = array

    @property
    def items_now(self) -> Items:
        """The items, for a loop."""
        return Items(self.size(), self.read)

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
        if self.is_sized:
            return self.stacked()
        if is_a(self.like, tuple):
            self.fail("an array is made of a list of tuples that grows")
        (column,) = self.columns
        if column.kind[1] != np.float64:
            require(self.tracer, length > 0, "a list of no items")  # an empty list gives floats
        (rows,) = self.copied()
        return small_ints(self.tracer, rows) if column.kind == ("python", np.uint64) else rows

    def materialise(self, why: str = "") -> None:
        """Give the list its items, after a break, for an operation that columns do not support. A list whose length
        is a number of iterations needs a graph that has run; before that the call is captured again.
        """
        if self.is_sized and not self.may_look:
            self.replan(why or "a list whose length is a number of iterations is read")
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
        self.check_last()
        return self.parts()

    def parts(self) -> tuple[Any, ...]:
        if self.is_sized:
            (column,) = self.columns
            last = None if self.last is None else self.last[0]
            return (listed, self.name, tuple(column.sizes), last, column.rows, *column.sizes.values())
        names = tuple(column.kind[0] for column in self.columns)
        if not is_a(self.like, tuple):
            return (listed, *names, (), None, *self.copied())
        if type(self.like) is not tuple or any(is_a(part, tuple) for part in self.like):
            self.fail("a list of nested tuples that grows is returned")
        return (tuples, names, *self.copied())

    # --- lists whose length is a number of iterations ---

    def leave_sized(self, name: str, last: Any) -> None:
        """Only calls, or the caller, will read the list. If anything other than its length, its array or itself as a
        result is needed, the call is captured again with a constant number of iterations.
        """
        self.is_sized, self.name = True, name
        self.last = None if last is None else (last, last.version)

    @property
    def may_look(self) -> bool:
        """True if graphs have run, so that the length is known."""
        return self.tracer.flushes > 0 and not self.tracer.in_region

    def replan(self, why: str) -> Any:
        raise Replan("sized_lists", why)

    def check_last(self) -> None:
        """Check that the last row and the other name of its array are still the same."""
        if self.last is not None and self.last[0].version != self.last[1]:
            self.replan("a list whose last array was written to")

    def stacked(self) -> Any:
        """np.stack(list)"""
        self.check_last()
        (column,) = self.columns
        may_check = self.tracer.may_check()
        if column.sizes:
            self.replan("arrays of many sizes are joined")
        if not self.tracer.is_positive(self.length):
            has_some = self.length > 0
            if type(has_some) is not Traced or not may_check:
                self.replan("an empty list")
            self.tracer.check(has_some, "a list of something")
        if not self.name.endswith("python") or column.rows.dtype != np.uint64:
            return self.tracer.copy(column.rows, "K")
        if not may_check:
            self.replan("ints that may be beyond 64 bits")
        return small_ints(self.tracer, column.rows)

    def call(self, f: Any) -> Any:
        """f(list)"""
        if f is len:
            return self.length
        inner = self.columns[0].rows.shape[1:]
        if f in JOINS or (len(inner) == 1 and f is np.vstack) or (not inner and f is np.hstack):
            return self.array
        if inner and (f is np.concatenate or f is np.vstack or (f is np.hstack and len(inner) == 1)):
            rows = self.array
            return self.tracer.reshape(rows, (rows.shape[0] * inner[0], *inner[1:]))
        name = getattr(f, "__name__", type(f).__name__)
        return self.replan(f"{name} reads a list that is as long as a loop had iterations")


class Queue(ListBuffer):
    """A deque as columns: a ring. The second cell is the row of the first item."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cells.append(0)

    def slot(self, place: Any) -> Any:
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


def made_of(scope: Any, like: Any, rows: list[Any], count: Any) -> list[Any]:
    """A list of an array's numbers, to which no item may be appended."""
    columns = map(Column, leaves(like), rows)
    return ListBuffer(scope, [], like, columns, count).container


def repeated(scope: Any, items: list[Any], count: Any) -> list[Any] | None:
    """[number] * count for a count that has no value yet; None for other lists."""
    kind = number_kind(items[0]) if len(items) == 1 else None
    if kind is None or not is_int(count):
        return None
    if not count.is_expression:
        count = scope.stage.tracer.define(count, None, None)
    length = scope.stage.tracer.size_max(count, 0)
    return made_of(scope, items[0], [scope.call(np.full, length, items[0], kind[1])], length)


def joined(scope: Any, a: list[Any], b: list[Any]) -> list[Any] | None:
    """a + b, of which one is a list buffer; None if their items differ."""
    lists = scope.stage.state.lists
    parts = [lists.get(id(value), value) for value in (a, b)]
    known = [part for part in parts if is_a(part, ListBuffer)]
    is_plain = all(type(part) is list or is_a(part, ListBuffer) for part in parts)
    if not is_plain or any(part.is_sized or is_a(part.like, tuple) for part in known):
        return None
    kind, columns, length = known[0].columns[0].kind, [], 0
    for part in parts:
        if is_a(part, ListBuffer):
            if part.columns[0].kind != kind:
                return None
            length, columns = length + part.size(), [*columns, *part.copied()]
        elif not all(kind_of(item) == kind for item in part):
            return None
        elif part:
            length, columns = length + len(part), [*columns, scope.call(np.array, part, kind[1])]
    return made_of(scope, known[0].like, [scope.call(np.concatenate, columns)], length)


# --- which lists become columns before a loop ---


def number_kind(value: Any) -> tuple[str, np.dtype] | None:
    """The kind of a leaf in columns of which data decide the length."""
    kind = kind_of(value)
    return None if kind is None or kind[0] == "array" or kind[1].char not in NUMBERS else kind


def is_alike(item: Any, like: Any) -> bool:
    """True if the columns of an item can store this one."""
    return have_same_structure(item, like) and all(
        kind_of(leaf) == kind_of(other) and not (type(leaf) is Traced and leaf.strong is not None)
        for leaf, other in zip(leaves(item), leaves(like), strict=True)
    )


def is_sequence(value: Any) -> bool:
    """True for a list, and for a deque without a bound."""
    return type(value) is list or (type(value) is collections.deque and value.maxlen is None)


def may_be_columns(now: Any, before: Any) -> bool:
    """True if a list or deque that held something holds numbers, or tuples of numbers, of one type, now and before."""
    if not is_sequence(now) or not before or any(is_ours(type(v)) for v in now if type(v) is not Traced):
        return False
    like = before[0]
    return all(map(number_kind, leaves(like))) and all(is_alike(item, like) for item in (*before, *now))


def want_buffer(region: Region, container: list[Any], item: Any, before: Any = ()) -> Any:
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
    if len(known) > MOST_HELD and any(type(leaf) is Traced for v in known for leaf in leaves(v)):
        region.fail("a list grows that has thousands of items")
    owners = owners_of(region, container)
    raise Rerun(owners[0], functools.partial(make, container, item, room_of(owners)))


def room_of(owners: list[Any]) -> Any:
    """The capacity for what the iterations of loops append, one item each."""
    mosts = [None if loop.is_while else owners[0].mark.most(loop.extent) for loop in owners if loop.is_loop]
    known = [most for most in mosts if most is not None]
    room = math.prod(known) + (OPEN if len(known) < len(mosts) else 0)
    return min(room, MANY) if type(room) is int else room


def owners_of(region: Region, container: list[Any]) -> list[Any]:
    """The active constructs from the outermost loop or branch on that knows the list."""
    active = region.state.active
    first = next((k for k, outer in enumerate(active) if outer.reached([container])), len(active))
    owners = active[first:]
    if not owners:
        region.fail("data decide how a list grows")
    return owners


def make(container: list[Any], item: Any, room: Any, region: Loop | Branch) -> None:
    """Make columns for a list, outside of the loop or branch."""
    if region.lists_before is None:
        region.lists_before = region.state.lists
    room = room + (len(container) + SPARE)
    parts = leaves(item)
    rows = [region.scope.call(np.empty, room, number_kind(leaf)[1]) for leaf in parts]  # type: ignore[index]
    cls = ListBuffer if type(container) is list else Queue
    made = cls(region.scope, container, item, map(Column, parts, rows), 0, room)
    made.loop, made.spare = region, SPARE
    made.fill(container)


def enlarge(buffer: ListBuffer, more: Any, region: Loop | Branch) -> None:
    """Make larger columns for a list that is stored as columns, outside of the loop or branch."""
    if region.lists_before is None:
        region.lists_before = region.state.lists
    room = buffer.room + (more + SPARE)
    columns = []
    for column in buffer.columns:
        rows = region.scope.call(np.empty, room, column.kind[1])  # type: ignore[index]
        region.scope.item_slot(rows, slice(0, buffer.room)).value = column.rows
        columns.append(Column(column.like, rows))
    made = ListBuffer(region.scope, buffer.container, buffer.like, columns, buffer.length, room)
    made.reached_by, made.loop, made.spare = buffer.reached_by, region, SPARE
