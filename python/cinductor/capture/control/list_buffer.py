"""A list that is columns and a count.

There is an array for each number of an item (`ListBuffer.buffers`), and how many items there are: an
int, a size (`SizedList`: as many as a loop had trips), or a number that data decide. Where data decide,
the buffers have room for what all trips of the loop can append; each append checks that there is room,
and the count is in a list of its own, which loops and branches carry and merge as they do every other.
The user's list stays as it was: `State.lists` has the one that stands for it, and whoever looks comes
here, or hears that it cannot be looked at. One that is full has its items and may still be known as
columns (`backing_of`). What one trip appends, while a loop is captured, are `list_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ...numpy.surface import is_large_int, require, small_ints
from ...signals import Replan
from ..iterators import Items
from ..kinds import have_same_structure, is_int, kind_of, leaves, lifted, rebuilt
from ..objects import Traced, is_ours
from .region import RegionBreak, Rerun

if TYPE_CHECKING:
    from .branch import Branch
    from .loop import Loop
    from .state import State

    Owner = Loop | Branch

SPARE = 64  # items that may be appended outside of the loop
OPEN = 4096  # in a loop of which nobody knows how long it runs: with more, Python takes long anyway
MANY = 1 << 22
MOST_HELD = 4096  # items that a list has before: each of them is a node
NUMBERS = "?bhilqBHILQfd"


class ListBuffer:
    """One such list; like: an item of it, kinds: of its numbers, or of the array that it is; count: how
    many items there are; room: for how many. To one without a loop, or branch, that appended to it
    nobody may append.
    """

    is_buffer, is_sized = True, False

    def __init__(
        self, scope: Any, container: list[Any], like: Any, buffers: list[Any], count: Any, room: Any
    ) -> None:
        self.scope, self.stage, self.tracer = scope, scope.stage, scope.stage.tracer
        self.container, self.like, self.buffers = container, like, buffers
        self.kinds = [kind_of(leaf) for leaf in leaves(like)]
        self.room, self.cells = room, [count]
        self.loop: Owner | None = None
        self.spare = 0
        self.stage.state.grow(self)

    @property
    def length(self) -> Any:
        """How many items there are."""
        return self.cells[0]

    @property
    def truth(self) -> Any:
        """Whether there are any."""
        return self.length > 0

    def fail(self, reason: str) -> Any:
        raise RegionBreak(reason, "", 0)

    # --- items ---

    def put(self, place: Any, item: Any) -> None:
        """Stores the item there."""
        if not is_alike(item, self.like, self.kinds):
            self.fail(SEVERAL_TYPES)
        for leaf, kind, buffer in zip(leaves(item), self.kinds, self.buffers, strict=True):
            self.scope.item_slot(buffer, place).value = lifted(self.tracer, leaf, *kind)

    def place(self, number: Any, limit: Any) -> Any:
        """A number that is checked to be from 0 to below a limit."""
        if type(number) is int and type(limit) is int and 0 <= number < limit:
            return number
        if type(number) is int:
            number = self.tracer.lift(number)
        if limit is not self.room:
            inside = self.tracer.apply("logical_and", *(number >= 0, number < limit))
            self.tracer.check(inside, "an index is in range")
        return self.tracer.define(number, 0, self.room)

    def at(self, key: Any) -> Any:
        """The place of an item."""
        if not is_int(key):
            self.fail("a list that grows is indexed by what is no int")
        if type(key) is int:
            return self.place(key if key >= 0 else self.length + key, self.length)
        is_back = self.tracer.apply("less", key, 0)
        turned = self.tracer.select(is_back, key + self.length, key, "python")
        return self.place(turned, self.length)

    def item(self, key: Any) -> Any:
        """list[key]"""
        return self.part(key) if type(key) is slice else self.read(self.at(key))

    def part(self, key: slice) -> list[Any]:
        """list[key]: another such list, which nobody may append to."""
        parts = [column[key] for column in self.columns()]
        size = parts[0].shape[0]
        return ListBuffer(self.scope, [], self.like, parts, size, size).container

    def read(self, place: Any) -> Any:
        """The item there."""
        parts = []
        for kind, buffer in zip(self.kinds, self.buffers, strict=True):
            value = buffer[place]
            parts.append(self.tracer.as_python(value) if kind[0] == "python" else value)  # type: ignore[index]
        return rebuilt(self.like, iter(parts))

    def is_list_for(self, item: Any) -> bool:
        """Whether it becomes a list like any other for an item that buffers cannot have: in the open, where
        the call cannot be captured in another way.
        """
        if self.tracer.in_region or self.stage.may_check():
            return False
        if self.spare and is_alike(item, self.like, self.kinds):
            return False
        self.materialise()
        self.stage.state.before_change(self.container)
        return True

    def set_item(self, key: Any, item: Any) -> None:
        """list[key] = item"""
        if self.is_list_for(item):
            self.scope.item_slot(self.container, key).value = item
            return
        self.put(self.at(key), item)

    def append(self, item: Any) -> None:
        """list.append(item)"""
        if self.is_list_for(item):
            self.container.append(item)
            return
        active = self.stage.state.active
        if self.loop not in active:
            if self.spare == 0 or any(region.is_loop for region in active):
                self.fail("several loops append to a list")
            self.spare -= 1
        place = self.place(self.length, self.room)
        self.put(place, item)
        self.set_length(place + 1)

    def pop(self) -> Any:
        """list.pop()"""
        place = self.at(-1)
        item = self.read(place)
        self.set_length(place)
        return item

    def set_length(self, length: Any) -> None:
        self.stage.state.refill(self.cells, [length])

    def materialise(self, why: str = "a list whose length data decide is looked at") -> None:
        """The list gets its items, behind a break: somebody does what buffers cannot."""
        if self.tracer.in_region:
            self.fail("a list that a loop appends to is looked at")
        make, *given = self.recipe()
        self.stage.stop("a list whose length data decide is looked at")
        self.fill(make(*map(self.stage.materialise, given)))

    def fill(self, items: list[Any]) -> None:
        """It is a list like any other, of these items."""
        state = self.stage.state
        state.refill(self.container, items)
        state.put(lists={k: g for k, g in state.lists.items() if g is not self})

    # --- all of it ---

    @property
    def items_now(self) -> Items:
        """For a loop."""
        return Items(self.size(), self.read)

    def size(self) -> Any:
        """How many items there are, as a size."""
        if type(self.length) is int or self.length.is_expression:
            return self.length
        return self.tracer.define(self.length, 0, self.room + 1)

    def columns(self) -> list[Any]:
        """The numbers of all items, an array for each number of an item."""
        size = self.size()
        return [self.tracer.copy(buffer[:size], "K") for buffer in self.buffers]

    @property
    def array(self) -> Any:
        """np.array(list)"""
        if is_a(self.like, tuple):
            self.fail("an array is made of a list of tuples that grows")
        if self.kinds[0][1] != np.float64:  # type: ignore[index]
            require(self.tracer, self.length > 0, "a list of no items")  # of none there are floats
        column = self.columns()[0]
        is_large = self.kinds[0] == ("python", np.uint64)
        return small_ints(self.tracer, column) if is_large else column

    def recipe(self) -> tuple[Any, ...]:
        """The function that makes the list, and what it is given."""
        names = tuple(kind[0] for kind in self.kinds)  # type: ignore[index]
        if not is_a(self.like, tuple):
            return (listed, *names, (), None, *self.columns())
        if type(self.like) is not tuple or any(map(is_tuple, self.like_parts)):
            self.fail("a list of nested tuples that grows is returned")
        return (tuples, names, *self.columns())

    @property
    def like_parts(self) -> tuple[Any, ...]:
        return self.like if is_a(self.like, tuple) else ()


def is_tuple(value: Any) -> bool:
    """Whether it has items of its own."""
    return is_a(value, tuple)


def listed(kind: str, axes: tuple[int, ...], last: Any, rows: Any, *sizes: Any) -> list[Any]:
    """A list of the rows: numbers, NumPy's ("scalar") or Python's, lists of them ("list of scalar"), or
    arrays, as much of each as its sizes along these axes say; last: the last item itself.
    """
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
    if last is not None and items:
        items[-1] = last
    return items


def tuples(kinds: tuple[str, ...], *columns: Any) -> list[Any]:
    """A list of tuples of numbers."""
    parts = [listed(kind, (), None, column) for kind, column in zip(kinds, columns, strict=True)]
    return list(zip(*parts, strict=True))


# --- lists as long as a size ---

JOINS = frozenset({np.array, np.asarray, np.stack})  # of a list, make an array of its items


class SizedList(ListBuffer):
    """One as long as a loop had trips, whose items are rows of a buffer: who wants more of it than its
    length, an array of it or itself as a result has the call captured again, with a number of trips that
    is known. kind: of its items, or of those of the lists that it holds ("list of scalar"); last:
    what else has the array of the last row, with its version then; sizes: the axes of a row whose
    sizes differ, and these.
    """

    is_sized = True

    def __init__(
        self, scope: Any, container: list[Any], like: Any, buffer: Any, count: Any,
        kind: str, last: tuple[Any, Any] | None, sizes: dict[int, Any],
    ) -> None:  # fmt: skip
        super().__init__(scope, container, like, [buffer], count, count)
        self.buffer, self.kind, self.last, self.sizes = buffer, kind, last, sizes

    def replan(self, why: str) -> Any:
        raise Replan("sized_lists", why)

    def check_last(self) -> None:
        """The row and the other name of its array are to be the same still."""
        if self.last is not None and self.last[0].version != self.last[1]:
            self.replan("a list whose last array was written to")

    @property
    def array(self) -> Any:
        """np.stack(list)"""
        self.check_last()
        may_check = self.stage.may_check()
        if self.sizes:
            self.replan("arrays of many sizes are joined")
        if not self.tracer.is_positive(self.length):
            has_some = self.length > 0
            if type(has_some) is not Traced or not may_check:
                self.replan("an empty list")
            self.tracer.check(has_some, "a list of something")
        if not self.kind.endswith("python") or self.buffer.dtype != np.uint64:
            return self.tracer.copy(self.buffer, "K")
        if not may_check:
            self.replan("ints that may be beyond 64 bits")
        return small_ints(self.tracer, self.buffer)

    def call(self, f: Any) -> Any:
        """f(list)"""
        if f is len:
            return self.length
        inner = self.buffer.shape[1:]
        if f in JOINS or (len(inner) == 1 and f is np.vstack) or (not inner and f is np.hstack):
            return self.array
        if inner and (f is np.concatenate or f is np.vstack or (f is np.hstack and len(inner) == 1)):
            rows = self.array
            return self.tracer.reshape(rows, (rows.shape[0] * inner[0], *inner[1:]))
        name = getattr(f, "__name__", type(f).__name__)
        return self.replan(f"{name} looks at a list that is as long as a loop had trips")

    def materialise(self, why: str = "a list as long as a loop had trips is looked at") -> None:
        """The list gets its items, where graphs have run and so their number is known; before that
        the call is captured again.
        """
        if not self.tracer.flushes or self.tracer.in_region:
            self.replan(why)
        columns = map(self.stage.materialise, (self.buffer, *self.sizes.values()))
        items = listed(self.kind, tuple(self.sizes), None, *columns)
        if self.kind == "array":
            items = [self.stage.lift_array(item) for item in items]
        if self.last is not None and items:
            items[-1] = self.last[0]
        self.fill(items)

    def recipe(self) -> tuple[Any, ...]:
        self.check_last()
        last = None if self.last is None else self.last[0]
        return (listed, self.kind, tuple(self.sizes), last, self.buffer, *self.sizes.values())


def made_of(scope: Any, like: Any, buffer: Any, length: Any) -> list[Any]:
    """A list of numbers that are an array's: nobody may append to it."""
    return ListBuffer(scope, [], like, [buffer], length, length).container


def repeated(scope: Any, items: list[Any], count: Any) -> list[Any] | None:
    """[number] * count of a count that has no value yet; None where it is another list."""
    kind = kind_of(items[0]) if len(items) == 1 else None
    if kind is None or kind[0] == "array" or kind[1].char not in NUMBERS or not is_int(count):
        return None
    if not count.is_expression:
        count = scope.stage.tracer.define(count, None, None)
    length = scope.stage.tracer.size_max(count, 0)
    return made_of(scope, items[0], scope.call(np.full, length, items[0], kind[1]), length)


def joined(scope: Any, a: list[Any], b: list[Any]) -> list[Any] | None:
    """a + b, of which one is such a list; None where their items differ."""
    lists = scope.stage.state.lists
    parts = [lists.get(id(value), value) for value in (a, b)]
    found = [part for part in parts if type(part) is ListBuffer]
    if not found or len(found[0].kinds) != 1 or is_a(found[0].like, tuple):
        return None
    kind, columns, length = found[0].kinds[0], [], 0
    for part in parts:
        items = [part.like] if type(part) is ListBuffer else part
        if type(items) is not list or not all(kind_of(item) == kind for item in items):
            return None
        is_dense = items is not part
        length = length + (part.size() if is_dense else len(part))
        if is_dense or part:
            column = part.columns()[0] if is_dense else scope.call(np.array, part, kind[1])
            columns.append(column)
    return made_of(scope, found[0].like, scope.call(np.concatenate, columns), length)


# --- lists that are full, and still known as columns ---


def keep_backing(state: State, made: list[Any], buffer: Any) -> None:
    """A list that a loop made: its items are rows of the buffer. It is the array that NumPy makes
    of them, but of ints whose values decide what that is.
    """
    if not any(map(is_large_int, made)):
        seen = [(item, item.version if type(item) is Traced else 0) for item in made]
        state.put(backings={**state.backings, id(made): (made, seen, buffer)})


def list_of(state: State, row: Any, kind: str) -> list[Any]:
    """The list of the numbers in an array."""
    items = [row[k] for k in range(row.shape[0])]
    made = [state.tracer.as_python(item) for item in items] if kind == "python" else items
    keep_backing(state, made, row)
    return made


def backing_of(state: State, value: Any) -> Any:
    """The array of what a loop appended to a list, where that is what the list holds."""
    found = state.backings.get(id(value))
    if found is None or found[0] is not value or not 0 < len(value) == len(found[1]):
        return None
    for item, (made, version) in zip(value, found[1], strict=True):
        if item is not made:
            return None
        if type(item) is list:
            if backing_of(state, item) is None:
                return None
        elif item.version != version:  # somebody has written to it since
            return None
    return found[2]


def array_of(stage: Any, value: list[Any]) -> Any:
    """np.array(list), where the list is columns; else None."""
    if (found := stage.state.lists.get(id(value))) is not None:
        return found.array
    rows = backing_of(stage.state, value)
    return None if rows is None else stage.tracer.copy(rows, "K")


# --- which lists ---


SEVERAL_TYPES = "items of several types are in a list that grows"


def is_alike(item: Any, like: Any, kinds: list[Any]) -> bool:
    """Whether the buffers of items of these kinds can have this one."""
    if not have_same_structure(item, like):
        return False
    pairs = zip(leaves(item), kinds, strict=True)
    return all(
        kind_of(leaf) == kind and not (type(leaf) is Traced and leaf.strong is not None)
        for leaf, kind in pairs
    )


def want_buffer(loop: Any, container: list[Any], item: Any) -> Any:
    """Has the outermost loop or branch that knows of a list begin again, with the list as buffers."""
    for leaf in leaves(item):
        kind = kind_of(leaf)
        if kind is None or kind[0] == "array" or kind[1].char not in NUMBERS:
            loop.fail("data decide how a list grows, and its items are no numbers")
    kinds = [kind_of(leaf) for leaf in leaves(item)]
    known = (v for v in container if type(v) is Traced or not is_ours(type(v)))  # no column
    if not all(is_alike(other, item, kinds) for other in known):
        loop.fail(SEVERAL_TYPES)  # now: there is nothing to go back to when the buffers are made
    if len(container) > MOST_HELD:
        loop.fail("a list grows that has thousands of items")
    room = 1
    owner, is_open = None, False
    for region in loop.state.active:
        if owner is None:
            if not region.reached([container]):
                continue
            owner = region
            mark = owner.mark
        if not region.is_loop:
            continue
        most = None if region.is_while else mark.most(region.extent)
        is_open |= most is None
        room = room if most is None else room * most
    if owner is None or owner.offset:
        loop.fail("data decide how a list grows")
    room = room + OPEN if is_open else room
    owner.buffers_wanted.append((container, item, min(room, MANY) if type(room) is int else room))
    raise Rerun(owner)


def make(loop: Owner) -> None:
    """Makes buffers of the lists that are asked for, outside of the loop or branch."""
    if loop.lists_before is None:
        loop.lists_before = loop.state.lists
    for container, item, room in loop.buffers_wanted:
        room = room + (len(container) + SPARE)
        kinds = [kind_of(leaf) for leaf in leaves(item)]
        buffers = [loop.scope.call(np.empty, room, kind[1]) for kind in kinds]  # type: ignore[index]
        made = ListBuffer(loop.scope, container, item, buffers, 0, room)
        made.loop, made.spare = loop, SPARE
        for known in container:
            made.put(made.length, known)
            made.cells[0] += 1
    loop.buffers_wanted.clear()
