"""Lists stored as columns and a count.

Each leaf of the items has a `Column`, an array with one row per item. The number of items is an int, a size (if a
loop appends in each iteration), or a data-dependent number. The user's list object is unchanged: `State.lists`
maps it to its `ListBuffer`. Code that reads the list calls the buffer, or is told that it cannot be read. While a
loop that appends is captured, the items of earlier iterations are unknown (`list_append`).

If the count is a size (`list_append.SizedList`), only supported calls and the caller may read the list. If data decide what
is appended, the columns are made before the loop, with capacity for everything that its iterations can append.
Each append checks the capacity, and the count is kept in a list of its own, which loops and branches carry and
merge like any other. A list that has its items may still be known as rows of a column (`backing_of`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...numpy import list_sources
from ...numpy.surface import require, small_ints
from ..container_rows import ROWS, appends
from ..iterators import Items
from ..kinds import Size, have_same_structure, is_int, is_same, is_tagged, leaves, rebuilt, strength
from ..made_lists import listed, queue_of, tuples
from ..objects import MISSING, SINGLE, Traced, is_internal, is_record
from .columns import SEVERAL_TYPES, Column, empty_columns, fits, is_alike, like_of, number_kind
from .region import Region, RegionBreak

if TYPE_CHECKING:
    from ..kinds import Hooks

SPARE = 64  # capacity for items appended outside of the loop
OPEN = 1 << 20  # capacity in a loop with an unknown number of iterations; what is not written needs no pages of memory
MANY = 1 << 22
MAX_HELD = 4096  # items of a list before; each of them is a node
LOOKED_AT = "a list that a loop appends to is looked at"
DIRECT = frozenset({("append", 1), ("appendleft", 1), ("pop", 0), ("popleft", 0)})


class Columns:
    """A container whose items are in columns, and what its methods do. cells: what changes."""

    container: Any
    like: Any
    cells: list[Any]
    columns: list[Column]
    is_sized = False  # its length is a number of iterations

    @property
    def has_sources(self) -> bool:
        """True if its methods may be captured from source, because what they check can restart the call."""
        return False

    def fail(self, reason: str) -> NoReturn:
        raise RegionBreak(reason, "", 0)

    def before_effect(self, reason: str) -> None:
        """Called before an effect, after which the call cannot restart."""

    def replace(self, columns: list[Column]) -> None:
        """Store the items of other columns, which have as many."""
        raise NotImplementedError

    def copied(self) -> list[Column]:
        """Copies of all columns, in the order of the items."""
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

    def in_order(self, scope: Hooks, kwargs: dict[str, Any], keys: tuple[Any, ...] = ()) -> list[Column]:
        """Columns of the items in the order of `sorted`; keys: arrays of numbers, by which the items are compared."""
        others = {name: v for name, v in kwargs.items() if name != "key"}
        columns = self.copied()
        if any(column.tags is not None for column in columns):
            self.fail("a list of numbers of two classes that grows is sorted")
        if not keys and not is_a(self.like, tuple):
            (column,) = columns
            return [column.of(lambda rows: scope.call(list_sources.in_order, rows, **others))]
        order = scope.call(list_sources.places_in_order, keys or tuple(column.rows for column in columns), **others)
        return [column.of(lambda rows: rows[order]) for column in columns]

    def contains(self, scope: Hooks, value: object) -> Any:
        """value in list; MISSING if the list has its items."""
        return scope.call(list_sources.contains, self.container, value) if self.has_sources else MISSING


class ListBuffer(Columns):
    """One list as columns; like: one of its items; count: the number of items; room: the capacity. Without a region, the
    enclosing loop or branch for which it was made, no item may be appended.

    What changes is in `cells`, which are restored, carried and merged like a list of the user's.
    """

    first_cells: tuple[int, ...] = ()  # after the number of items

    def __init__(
        self, scope: Hooks, container: object, like: object, columns: Iterable[Column], count: Size,
        room: Size | None = None, region: Region | ListBuffer | None = None,
    ) -> None:  # fmt: skip
        self.scope, self.state, self.tracer = scope, scope.stage.state, scope.stage.tracer
        self.container, self.like, self.columns = container, like, list(columns)
        self.cells, self.room = self.state.note_definition([count, *self.first_cells]), count if room is None else room
        self.reached_by = container  # what the user's code has
        self.region = region
        self.around = tuple(self.state.active)  # an iteration of these makes its own
        self.spare = 0 if region is None else SPARE
        self.state.grow(container, self)

    @property
    def length(self) -> Any:
        """How many items there are."""
        return self.cells[0]

    @property
    def truth(self) -> Any:
        """True if there are items; a size, which the program may test, if their number is one."""
        length = self.length
        return length if type(length) is Traced and length.is_expression else length > 0

    @property
    def has_sources(self) -> bool:
        return bool(self.tracer.may_check())

    # --- items ---

    def put(self, position: Size, item: object) -> None:
        """Store the item at this index."""
        if not is_alike(item, self.like):
            self.widened(item).put(position, item)
            return
        slot = self.slot(position)
        self.scope.stage.chooses_tuples |= type(item) not in SINGLE and is_record(type(item))
        for leaf, column in zip(leaves(self.scope.stage.lifting.lift_tuple(item)), self.columns, strict=True):
            column.store(self.scope, slot, leaf)

    def widened(self, item: object) -> ListBuffer:
        """The list as columns of both classes of numbers, if the item has another class: the construct that knows it
        starts again.
        """
        like = like_of(self.tracer, [item], (self.like,))
        if like is None or type(self) not in (ListBuffer, Queue):
            self.fail(SEVERAL_TYPES)
        active = self.state.active
        if len(active) > len(self.around):
            active[-1].want(self.reached_by, remake, self, like, 0)
        return remake(self.reached_by, self, like, 0, self.region)

    def fill(self, items: list[Any]) -> None:
        """Store the items that the list has before: constants by one store, others one by one."""
        if not any(type(leaf) is Traced for item in items for leaf in leaves(item)):
            constant = self.scope.stage.constant
            for k, column in enumerate(self.columns):
                parts = [leaves(item)[k] for item in items]
                known = column.of(lambda _: None)
                known.rows = constant(np.array(parts, column.kind[1]))
                if column.tags is not None:
                    known.tags = constant(np.array([strength(v, column.kind) for v in parts], bool))
                column.assign(self.scope, slice(0, len(items)), known)
            self.set_length(len(items))
            return
        for item in items:
            self.put(self.length, item)
            self.set_length(self.length + 1)

    def position(self, number: Size, limit: Size) -> Any:
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
            return self.position(key if key >= 0 else self.length + key, self.length)
        is_back = self.tracer.apply("less", key, 0)
        from_end = key + self.length
        if type(from_end) is int:  # both are constants
            from_end = self.tracer.lift(from_end)
        turned = self.tracer.select(is_back, from_end, key, "python")
        return self.position(turned, self.length)

    def item(self, key: object) -> Any:
        """list[key]; a slice is another list buffer without capacity for appends."""
        if type(key) is not slice:
            return self.scope.item(self.container, key) if self.becomes_list() else self.read(self.at(key))
        parts = [column.of(lambda array: array[key]) for column in self.copied()]
        return made_of(self.scope, self.like, parts, parts[0].rows.shape[0])

    def read(self, position: Size) -> Any:
        """The item there."""
        slot = self.slot(position)
        return rebuilt(self.like, iter([c.read(self.tracer, slot) for c in self.columns]))

    def slot(self, position: Size) -> Any:
        """The row of the columns in which the item at an index is."""
        return position

    def is_list_for(self, item: object) -> bool:
        """True if an item that columns cannot store turns it into an ordinary list: this happens without a region,
        where the call cannot restart.
        """
        if self.spare and fits(self.tracer, self.like, item):
            return False
        return self.becomes_list()

    def becomes_list(self) -> bool:
        """True if it has become an ordinary list, because the call cannot restart, so that no position can be checked."""
        if self.tracer.in_region or self.tracer.may_check():
            return False
        self.materialise()
        self.state.before_change(self.container)
        return True

    def set_item(self, key: object, item: object) -> None:
        """list[key] = item"""
        if self.becomes_list():
            self.scope.item_slot(self.container, key).value = item
            return
        if type(key) is slice:
            self.copy_from(key, item)  # type: ignore[arg-type]
            return
        self.put(self.at(key), item)

    def copy_from(self, key: slice, item: list[Any]) -> None:
        """list[:] = item, for lists of numbers, or of tuples of numbers."""
        other = self.state.lists.get(id(item))
        if key != slice(None) or (other is None and type(item) is not list) or getattr(other, "is_sized", False):
            self.fail("a slice of a list that is stored as columns is replaced")
        size = len(item) if other is None else other.size()
        may_differ = type(self) is ListBuffer and self.region is not None
        if type(self) is Queue or not (may_differ or is_same(size, self.size())):
            self.fail("a list that is stored as columns gets the items of another one")
        if other is None:
            for like in item:
                if not is_alike(like, self.like):
                    self.widened(like).copy_from(key, item)
                    return
            if not is_same(size, self.size()):
                self.set_length(self.position(size, self.room + 1))
            for k, value in enumerate(item):
                self.put(k, value)
            return
        if not is_alike(other.like, self.like):
            self.widened(other.like).copy_from(key, item)
            return
        parts = other.copied()
        if not is_same(size, self.size()):
            self.set_length(self.position(size, self.room + 1))
        for column, part in zip(self.columns, parts, strict=True):
            column.assign(self.scope, slice(0, size), part)

    def append(self, item: object) -> None:
        """list.append(item)"""
        if self.is_list_for(item):
            self.container.append(item)
            return
        active = self.state.active
        if self.region not in active:
            if any(region.is_loop and region not in self.around for region in active):
                self.want_capacity()
            if self.spare == 0:
                self.fail("several loops append to a list")
            self.spare -= 1
        position = self.position(self.length, self.room)
        self.put(position, item)
        self.set_length(position + 1)

    def want_capacity(self) -> None:
        """Another loop appends: restart it with a larger buffer."""
        if type(self) is not ListBuffer or self.region is None:
            self.fail("several loops append to a list")
        active = self.state.active
        owners = active[-1].owners(self.reached_by)
        if any(region.is_loop and region not in (*self.around, *owners) for region in active):
            self.fail("several loops append to a list")  # each iteration would have its own
        active[-1].want(self.reached_by, remake, self, self.like, room_of(owners))

    def pop(self) -> Any:
        """list.pop()"""
        if self.becomes_list():
            return self.container.pop()
        position = self.at(-1)
        item = self.read(position)
        self.set_length(position)
        return item

    def set_length(self, length: object) -> None:
        self.state.refill(self.cells, [length, *self.cells[1:]])

    # --- the whole list ---

    def replace(self, columns: list[Column]) -> None:
        for column, made in zip(self.columns, columns, strict=True):
            column.assign(self.scope, slice(0, self.size()), made)

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
        return self.tracer.define(length, 0, self.room, True)

    def copied(self) -> list[Column]:
        size = self.size()
        return [column.of(lambda array: self.tracer.copy(array[:size], "K")) for column in self.columns]

    @property
    def array(self) -> Any:
        """np.array(list); None if the list has its items from here on."""
        length, kinds = self.length, [column.kind for column in self.columns]
        if is_a(self.like, tuple):
            dtype = np.result_type(*(kind[1] for kind in kinds))
            is_table = not any(is_a(part, tuple) for part in self.like) and all(c.tags is None for c in self.columns)
            has_common = dtype.char in "?ld" and ("python", np.uint64) not in kinds
            if not is_table or not (has_common or (len({*kinds}) == 1 and kinds[0][0] == "scalar")):
                return self.materialise()
            require(self.tracer, length > 0, "a list of no items")
            return self.scope.call(list_sources.table_of, [column.rows for column in self.copied()], dtype)
        if self.columns[0].tags is not None and self.like.weak != self.like.dtype:
            return self.materialise()
        (column,) = self.columns
        if column.kind[1] != np.float64:
            require(self.tracer, length > 0, "a list of no items")  # an empty list gives floats
        rows = self.copied()[0].rows
        return small_ints(self.tracer, rows) if column.kind == ("python", np.uint64) else rows

    def materialise(self, why: str = "") -> None:
        """Give the list its items, after a break, for an operation that columns do not support."""
        if self.tracer.in_region:
            self.fail(LOOKED_AT)
        make, *given = self.parts()
        if not self.is_sized:
            self.scope.stage.effects.stop("a list whose length data decide is looked at")
        items = make(*map(self.scope.stage.materialise, given))
        self.state.refill(self.container, list(map(self.scope.stage.lift_array, self.tracer.paced(items))))
        self.drop()

    def drop(self) -> None:
        """Turn it into an ordinary list."""
        self.state.put(lists={k: g for k, g in self.state.lists.items() if g is not self})

    def recipe(self) -> tuple[Any, ...]:
        """The function that makes the list, and its arguments."""
        return self.parts()

    def parts(self) -> tuple[Any, ...]:
        names = tuple(column.name for column in self.columns)
        arrays = [array for column in self.copied() for array in column.arrays]
        if not is_a(self.like, tuple):
            return (listed, *names, (), None, *arrays)
        return (tuples, rebuilt(self.like, itertools.repeat(None)), names, *arrays)


class Queue(ListBuffer):
    """A deque as columns: a ring. The second cell is the row of the first item."""

    first_cells = (0,)

    def slot(self, position: Size) -> Any:
        row = (self.cells[1] + position) % self.room
        return row if type(row) is int else self.tracer.define(row, 0, self.room)

    def popleft(self) -> Any:
        """deque.popleft()"""
        if self.becomes_list():
            return self.container.popleft()
        length, first = self.at(-1), self.slot(0)  # at(-1) checks that there is an item
        item = self.read(0)
        self.state.refill(self.cells, [length, (first + 1) % self.room])
        return item

    def appendleft(self, item: object) -> None:
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
        return [column.of(lambda array: array[places]) for column in self.columns]

    def parts(self) -> tuple[Any, ...]:
        make, *given = super().parts()
        return (queue_of, make is tuples, *given)


def made_of(scope: Hooks, like: object, columns: list[Column], count: Size) -> list[Any]:
    """A list of the numbers in columns, to which no item may be appended."""
    return ListBuffer(scope, [], like, columns, count).container


def repeated(scope: Hooks, items: list[Any], count: Size) -> list[Any] | None:
    """[number] * count for a count that has no value yet; None for other lists."""
    if len(items) != 1 or not is_int(count):
        return None
    scope.stage.regions.note_class(filter(is_tagged, items))
    if (kind := number_kind(items[0])) is None:
        return None
    if type(count) is Traced and not count.is_expression:
        count = scope.stage.tracer.define(count, None, None)
    length = scope.stage.tracer.size_max(count, 0)
    return made_of(scope, items[0], [Column(items[0], scope.call(np.full, length, items[0], kind[1]))], length)


def joined(scope: Hooks, a: list[Any], b: list[Any]) -> list[Any] | None:
    """a + b, of which one is a list buffer; None if their items differ."""
    lists = scope.stage.state.lists
    parts = [lists.get(id(value), value) for value in (a, b)]
    known = [part for part in parts if is_a(part, ListBuffer)]
    if any(type(part) is not list and not (is_a(part, ListBuffer) and not part.is_sized) for part in parts):
        return None
    like, length = known[0].like, 0
    kinds = [column.kind for column in known[0].columns]
    pieces: list[list[Any]] = [[] for _ in kinds]
    for part in parts:
        if is_a(part, ListBuffer):
            columns = part.copied()
            if [c.kind for c in columns] != kinds or not have_same_structure(part.like, like) or any(c.tags is not None for c in columns):
                return None
            length, made = length + part.size(), [column.rows for column in columns]
        else:
            items = [leaves(item) for item in part if have_same_structure(item, like)]
            if len(items) < len(part) or any([*map(number_kind, item)] != kinds for item in items):
                return None
            length, made = length + len(part), [scope.call(np.array, [v[k] for v in items], kind[1]) for k, kind in enumerate(kinds)]
        for piece, rows in zip(pieces, made, strict=True):
            piece.append(rows)
    parts = [Column(leaf, scope.call(np.concatenate, piece)) for leaf, piece in zip(leaves(like), pieces, strict=True)]
    return made_of(scope, like, parts, length)


# --- which lists become columns before a loop ---


def is_sequence(value: object) -> bool:
    """True for a container that grows without a bound."""
    return appends(type(value)) and ROWS[type(value)].most(value) is None


def may_be_columns(tracer: _core.Tracer, now: Iterable[Any], before: Collection[Any]) -> bool:
    """True if a list or deque that held something holds numbers, or tuples of numbers, of one type, now and before."""
    if not is_sequence(now) or not before or any(is_internal(type(v)) for v in tracer.paced(now) if type(v) is not Traced):
        return False
    return like_of(tracer, tracer.paced([*before, *now])) is not None


def want_buffer(region: Region, container: list[Any], item: object, before: Collection[Any] = ()) -> Any:
    """Restart the outermost loop or branch that knows the list, with the list as columns. before: the items of the
    list, if some were removed since.
    """
    if not is_sequence(container):
        region.fail("data decide how a deque grows that has a greatest length")
    if like_of(region.tracer, [item]) is None:
        region.fail("data decide how a list grows, and its items are no numbers")
    now = [v for v in region.tracer.paced(container) if type(v) is Traced or not is_internal(type(v))]  # without the unknown prefix
    known = [*now, *before]
    if (like := like_of(region.tracer, region.tracer.paced([item, *known]))) is None:
        region.fail(SEVERAL_TYPES)  # now, because nothing can be undone when the columns are made
    if len(known) > MAX_HELD and any(type(leaf) is Traced for v in known for leaf in leaves(v)):
        region.fail("a list grows that has thousands of items")
    region.want(container, make, like, room_of(region.owners(container)))


def room_of(owners: list[Any]) -> Any:
    """The capacity for what the iterations of loops append, one item each."""
    mosts = [None if loop.is_while else owners[0].mark.most(loop.extent) for loop in owners if loop.is_loop]
    known = [most for most in mosts if most is not None]
    room = math.prod(known) + (OPEN if len(known) < len(mosts) else 0)
    return min(room, MANY) if type(room) is int else room


def make(container: list[Any], like: object, room: Size, region: Region) -> None:
    """Make columns for a list."""
    room = room + (len(container) + SPARE)
    cls = ListBuffer if type(container) is list else Queue
    cls(region.scope, container, like, empty_columns(region.scope, like, room), 0, room, region).fill(container)


def remake(reached_by: object, buffer: ListBuffer, like: object, more: Size, region: Region | ListBuffer | None) -> ListBuffer:
    """Make columns for numbers of more classes, or for more items, of a list that is stored as columns."""
    scope, room = buffer.scope, buffer.room if type(more) is int and more == 0 else buffer.room + (more + SPARE)
    columns = empty_columns(scope, like, room)
    is_widened = like is not buffer.like and not (type(buffer.length) is int and buffer.length == 0)
    if is_widened and type(buffer) is not ListBuffer:  # its items are not the first rows
        buffer.fail(SEVERAL_TYPES)
    if is_widened:
        for part, column in zip(buffer.copied(), columns, strict=True):
            column.assign(scope, slice(0, buffer.size()), part)
    elif like is buffer.like:
        for old, column in zip(buffer.columns, columns, strict=True):
            column.assign(scope, slice(0, buffer.room), old)
    is_fixed = buffer.region is None
    made = type(buffer)(scope, buffer.container, like, columns, buffer.length, room, None if is_fixed else region)
    made.reached_by, made.cells, made.spare = reached_by, buffer.cells, buffer.spare if room is buffer.room else made.spare
    return made


# --- lists that an iteration rebinds ---


# A loop carries a list by its contents, so a name must have one list object at the heads of all iterations. After
# `prev, cur = cur, prev`, or `prev = cur` with a new list, it has another. If nothing else holds these lists, which
# object a name has is not visible; then items move, and the name keeps its object.


def with_lists_of_head(
    loop: Region, head: dict[str, Any], carried: tuple[str, ...], names: dict[str, Any]
) -> dict[str, Any]:
    """The values of names at the end of an iteration, after the items of rebound lists have moved to the lists that
    the names had at the head.
    """
    live = {n for n in (*carried, *loop.site.live_out) if n in names}
    moved = [n for n in carried if n in live and is_rebound(head.get(n), names[n])]
    befores, afters = ([part for n in moved for part in lists_in(values[n])] for values in (head, names))
    if not moved or any(len({*map(id, lists)}) < len(lists) for lists in (befores, afters)):
        return names
    kept = [names[n] for n in live if n not in moved]
    if loop.reached([*befores, *afters], kept):
        return names
    pairs = [pair for n in moved for pair in rows_of(head[n], names[n])]
    lists, scope = loop.state.lists, loop.scope
    for before, after in pairs:
        if id(after) in lists and id(before) not in lists:
            want_buffer(loop, before, lists[id(after)].like)
    copies = [scope.item(after, slice(None)) for _, after in pairs]
    for (before, _), copy in zip(pairs, copies, strict=True):
        scope.item_slot(before, slice(None)).value = copy
    return {**names, **{n: head[n] for n in moved}}


def is_rebound(before: object, after: object) -> bool:
    """True for two lists, of which the lists inside pair off."""
    if before is after or type(before) is not list or type(after) is not list:
        return False
    parts = [[type(item) is list for item in value] for value in (before, after)]
    return parts[0] == parts[1] if any(map(any, parts)) else True


def lists_in(value: list[Any]) -> list[list[Any]]:
    """A list, and those that are its items."""
    return [value, *(item for item in value if type(item) is list)]


def rows_of(before: list[Any], after: list[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The pairs of lists whose items move: the lists themselves, or those that are their items."""
    if before and all(type(item) is list for item in before):
        yield from zip(before, after, strict=True)
    else:
        yield before, after
