"""Lists of which data decide how long they are.

Such a list is buffers, one for each number of an item, and a count. The buffers have room for what
all trips of the loop can append; each append checks that there is room. The user's list stays as it
was before the loop: whoever looks at it comes here, or hears that it cannot be looked at. The count
is in a list of its own, which loops and branches carry and merge as they do every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ...numpy.surface import require, small_ints
from ..value.items import Items
from ..value.kinds import have_same_structure, is_int, kind_of, leaves, lifted, rebuilt
from ..value.objects import Traced, is_ours
from .region import RegionBreak, Rerun

if TYPE_CHECKING:
    from .branch import Branch
    from .loop import Loop

    Owner = Loop | Branch

SPARE = 64  # items that may be appended outside of the loop
OPEN = 4096  # in a loop of which nobody knows how long it runs: with more, Python takes long anyway
MANY = 1 << 22
MOST_HELD = 4096  # items that a list has before: each of them is a node
NUMBERS = "?bhilqBHILQfd"


class ListBuffer:
    """One such list; loop: or branch that appended to it first, like: an item of it, kinds: of its
    numbers.
    """

    is_buffer = True

    def __init__(self, loop: Owner, container: list[Any], like: Any, room: Any) -> None:
        self.loop, self.container, self.like = loop, container, like
        self.scope, self.stage, self.tracer = loop.scope, loop.stage, loop.tracer
        self.kinds = [kind_of(leaf) for leaf in leaves(like)]
        self.room = room + (len(container) + SPARE)
        self.spare = SPARE
        make = self.scope.call
        self.buffers = [make(np.empty, self.room, kind[1]) for kind in self.kinds]  # type: ignore[index]
        self.cells: list[Any] = [0]
        for item in container:
            self.put(self.cells[0], item)
            self.cells[0] += 1

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
        other = object.__new__(ListBuffer)
        other.__dict__.update(self.__dict__)
        other.container, other.spare = [], 0
        other.buffers = [column[key] for column in self.columns()]
        other.room = other.buffers[0].shape[0]
        other.cells = [other.room]
        self.stage.state.grow(other)
        return other.container

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
        self.look()
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

    def look(self) -> None:
        """The list gets its items, behind a break: somebody does what buffers cannot."""
        if self.tracer.in_region:
            self.fail("a list that a loop appends to is looked at")
        make, strong, *columns = self.recipe()
        self.stage.stop("a list whose length data decide is looked at")
        items = make(strong, *(self.stage.materialise(column) for column in columns))
        state = self.stage.state
        state.refill(self.container, items)
        state.put(growing={k: g for k, g in state.growing.items() if g is not self})

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
        strong = tuple(kind[0] == "scalar" for kind in self.kinds)  # type: ignore[index]
        make = listed if not is_a(self.like, tuple) else tuples
        if make is tuples and type(self.like) is not tuple or any(map(is_tuple, self.like_parts)):
            self.fail("a list of nested tuples that grows is returned")
        return (make, strong, *self.columns())

    @property
    def like_parts(self) -> tuple[Any, ...]:
        return self.like if is_a(self.like, tuple) else ()


def is_tuple(value: Any) -> bool:
    """Whether it has items of its own."""
    return is_a(value, tuple)


def listed(strong: tuple[bool, ...], column: Any) -> list[Any]:
    """A list of numbers, NumPy's or Python's."""
    return list(column) if strong[0] else column.tolist()


def tuples(strong: tuple[bool, ...], *columns: Any) -> list[Any]:
    """A list of tuples of numbers."""
    parts = [listed((s,), column) for s, column in zip(strong, columns, strict=True)]
    return list(zip(*parts, strict=True))


# --- lists as long as a size ---


def made_of(scope: Any, like: Any, buffer: Any, length: Any) -> list[Any]:
    """A list of numbers that are an array's: nobody may append to it."""
    other = object.__new__(ListBuffer)
    other.loop, other.container, other.like = None, [], like
    other.scope, other.stage, other.tracer = scope, scope.stage, scope.stage.tracer
    other.kinds, other.buffers = [kind_of(like)], [buffer]
    other.room, other.spare, other.cells = length, 0, [length]
    scope.stage.state.grow(other)
    return other.container


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
    growing = scope.stage.state.growing
    parts = [growing.get(id(value), value) for value in (a, b)]
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


def ask(loop: Any, container: list[Any], item: Any) -> Any:
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
    owner.asked.append((container, item, min(room, MANY) if type(room) is int else room))
    raise Rerun(owner)


def make(loop: Owner) -> None:
    """Makes buffers of the lists that are asked for, outside of the loop or branch."""
    for container, item, room in loop.asked:
        loop.state.grow(ListBuffer(loop, container, item, room))
    loop.asked.clear()
