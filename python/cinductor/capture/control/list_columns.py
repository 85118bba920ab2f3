"""Lists to which the trips of a loop append.

What a trip appends lies in buffers that the trips hand on, one for each value (`Item`, a Phi); behind
the loop the list holds the buffers' items. How many they are is known while the program is captured:
the number of trips is, and a condition under which a trip appends is decided by the trip's number
alone (`i % 10 == 0`). The list has an unknown beginning while the loop is captured: nobody may look at
what is there.

Where the number of trips is a size the list becomes a `SizedList`, which only calls see, or whoever
called the function: its items are rows of a buffer. Rows whose sizes differ have room for the largest
that there can be, and a buffer more for each such axis says how long they are. Where data decide what
is appended, the list is a buffer from the beginning (`list_buffer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kinds import ATOMS, is_number, is_one, is_same, leaves, rebuilt
from ..objects import Traced
from . import lattice, list_buffer
from .list_buffer import SizedList
from .phi import Phi
from .region import Peel, Rerun
from .state import Change

if TYPE_CHECKING:
    from .carry import Carried
    from .region import Region


MAX_ITEMS = 16  # appended in one trip


class UnknownPrefix:
    """Stands for what the trips before have appended."""


UNKNOWN = UnknownPrefix()


class Maybe:
    """An item that an arm of a branch appends; flag: whether it does, truths: the same per trip."""

    __slots__ = ("value", "flag", "truths")

    def __init__(self, value: Any, flag: Any, truths: list[bool]) -> None:
        self.value, self.flag, self.truths = value, flag, truths


class Column(NamedTuple):
    """A buffer: one of its rows, as the closed block knows it, and its shape."""

    row: tuple[Any, int]
    shape: tuple[Any, ...]


class Item(Phi):
    """What a trip appends, once: its value's leaves, and where each goes. Of a list that a loop has
    made (inner) the value is the array of its items.
    """

    __slots__ = ("value", "inner", "flag", "truths", "columns", "names", "shapes", "length")

    def __init__(self, appended: Any, rows: Any = None) -> None:
        is_maybe = type(appended) is Maybe
        self.value = appended.value if is_maybe else appended
        self.inner: list[Any] | None = None
        if rows is not None:
            self.value, self.inner = rows, appended
        self.flag = appended.flag if is_maybe else None
        self.truths: list[bool] | None = appended.truths if is_maybe else None
        self.columns: list[list[Column]] = []  # for each leaf; none where it is a constant
        self.names: list[Any] = []  # for each leaf: what has the same array at the end of a trip
        self.shapes: list[Any] = []  # for each leaf: room for it, where it is an array
        self.length = 0

    def measure(self, trips: int) -> None:
        """How long its buffers are: there is one place for what is not appended."""
        self.length = trips if self.truths is None else sum(self.truths) + 1

    def operands(self, tracer: Any) -> list[Any]:
        counter = [] if self.truths is None else [tracer.lift(0, "i8")]
        return counter + [tracer.undefined(*column) for part in self.columns for column in part]

    def kinds(self, operands: list[Any]) -> list[str]:
        counter = [] if self.truths is None else ["scalar"]
        return counter + ["array" for part in self.columns for _ in part]

    @property
    def buffers(self) -> list[list[Any]]:
        """The columns of each leaf behind the region."""
        made = iter(self.made if self.truths is None else self.made[1:])
        return [[next(made) for _ in part] for part in self.columns]


class ListColumns:
    """One list that one loop's trips append to."""

    is_buffer = is_sized = False

    def __init__(self, carried: Carried, container: list[Any], before: list[Any]) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.container, self.before = container, list(before)
        self.sample = container[len(before) :][:1]
        self.items: list[Item] = []
        self.buffer: Any = None  # behind the loop: what was appended
        self.is_open = type(carried.extent) is not int  # as long as there are trips

    def materialise(self, *why: str) -> None:
        """Nobody can while the loop is captured."""
        self.loop.fail("a list that a loop appends to is looked at")

    def open(self) -> None:
        """The list at the head of a trip."""
        self.loop.state.refill(self.container, [*self.before, UNKNOWN])
        self.loop.state.grow(self)

    # --- as long as there are trips ---

    @property
    def may_open(self) -> bool:
        """Whether only calls will see the list, which began empty, or the user."""
        loop = self.loop
        names = loop.site.results if loop.stage.depth == 0 else loop.site.gathers
        is_gathered = any(
            value is self.container and name in names
            for name, value in [*loop.entry.items(), *loop.others.items()]
        )
        is_older = any(  # than a trip of a loop around
            value is self.container
            for outer in loop.state.active[:-1]
            for value in (*outer.entry.values(), *outer.others.values())
        )
        is_real = self.tracer.flushes > 0 and not self.tracer.in_region
        can_look = loop.stage.effects == 0 or is_real  # `SizedList.look`
        return loop.regions.may_open and is_gathered and not (self.before or is_older) and can_look

    def close(self) -> None:
        """The number of trips is decided by this call's."""
        carried, trips = self.carried, int(self.carried.extent)
        carried.promises.append(lambda: int(carried.extent) == trips)
        self.is_open = False

    def make_sized(self, names: dict[str, Any]) -> None:
        """What the list is behind the loop."""
        (item,) = self.items
        (buffer, *lengths), holder = item.made, item.names[0]
        axes = self.axes(item.value, item.shapes[0])
        sizes = dict(zip(axes, lengths, strict=True))
        last = None
        if holder is not None:
            leaf = leaves(names[holder[0]])[holder[1]]
            last = leaf, leaf.version
        self.loop.state.refill(self.container, [])
        self.loop.regions.aliases.forget(leaves(item.value))
        kind = item.value.kind if item.inner is None else f"list of {item.inner[0].kind}"
        trips = self.carried.extent
        SizedList(self.loop.scope, self.container, item.value, buffer, trips, kind, last, sizes)

    # --- in a trip ---

    def item(self, key: Any) -> Any:
        """The item of the list, where it is known."""
        if type(key) is int and -len(self.container) <= key < len(self.container):
            value = self.container[key]
            is_known = key < 0 or key < len(self.before)
            if is_known and value is not UNKNOWN and type(value) is not Maybe:
                return value
        return self.want_buffer()

    def want_buffer(self, *anything: Any) -> Any:
        """Whoever needs to know more of the list has it made of buffers."""
        learnt = self.sample or [item.value for item in self.items]
        if not learnt:
            self.loop.fail("an item of a list that grows is read")
        return list_buffer.want_buffer(self.loop, self.container, learnt[0])

    set_item = pop = want_buffer
    length = truth = items_now = array = property(want_buffer)

    def append(self, item: Any) -> None:
        """list.append(item)"""
        self.loop.state.before_change(self.container)
        self.container.append(item)

    def truths(self, condition: Any, item: Any) -> list[bool]:
        """Whether the condition, under which the item is appended, holds, for each trip."""
        carried = self.carried
        found = carried.body.truths(condition, int(carried.extent))
        return list_buffer.want_buffer(self.loop, self.container, item) if found is None else found

    # --- at the end of a trip ---

    def learn(self) -> None:
        """What the trip appended."""
        count = len(self.before) + 1
        now = self.container
        is_prefix = len(now) >= count and now[count - 1] is UNKNOWN
        if not is_prefix or not all(map(is_one, now[: count - 1], self.before)):
            self.loop.fail("a list grows in other ways than by append")
        self.items = [Item(appended, self.backing_of(appended)) for appended in now[count:]]
        if len(self.items) > MAX_ITEMS:
            self.loop.fail("a trip appends many items to a list")
        is_simple = len(self.items) == self.carried.period == 1 and self.items[0].truths is None
        if self.is_open and not (is_simple and type(self.items[0].value) is Traced):
            self.close()

    def kinds_now(self) -> list[Any]:
        """Whose the numbers are that this run appended."""
        parts = [leaf for item in self.items for leaf in leaves(item.value)]
        return [leaf.kind if type(leaf) is Traced else type(leaf) for leaf in parts]

    def backing_of(self, appended: Any) -> Any:
        """The array of what a loop has appended to a list, for itself."""
        rows = list_buffer.backing_of(self.loop.state, appended) if type(appended) is list else None
        return None if rows is None else self.tracer.copy(rows, "C")

    def check_list(self, inner: list[Any], names: dict[str, Any]) -> None:
        """A list that is appended has no other name, for the one behind the loop is another."""
        now, self.container[:] = list(self.container), []
        users = [value for name, value in names.items() if not name.startswith("__ci_")]
        is_seen = self.loop.reached([inner], users)
        self.container[:] = now
        if is_seen:
            self.loop.fail("a list of another name is appended to a list")

    def check(self, names: dict[str, Any]) -> None:
        """Every item is a number, or an array that nobody else can write to."""
        seen: set[int] = set()
        for item in self.items:
            if item.inner is not None:
                self.check_list(item.inner, names)
        for item in self.items:
            item.names = [self.check_leaf(leaf, names, seen) for leaf in leaves(item.value)]
            item.shapes = [self.capacity_of(leaf) for leaf in leaves(item.value)]

    def check_leaf(self, leaf: Any, names: dict[str, Any], seen: set[int]) -> Any:
        if type(leaf) is not Traced:
            if type(leaf) not in ATOMS and not is_number(leaf):
                self.loop.fail(f"a {type(leaf).__name__} is appended to a list")
            return None
        if leaf.kind != "array":
            if leaf.strong is not None:
                self.loop.fail("a number of one class or another is appended to a list")
            return None
        if not leaf.is_c_order:
            self.loop.fail("arrays in Fortran's order are appended to a list")
        shared = None
        for array in (s.array for s in self.loop.regions.aliases.sources(leaf)):
            if array.storage in seen or not array.is_whole:
                self.loop.fail("a view, or an array twice, is appended to a list")
            seen.add(array.storage)
            shared = self.sharing_name(array, names) or shared
        return shared

    def capacity_of(self, leaf: Any) -> Any:
        """The shape of what has room for the array in every trip."""
        if type(leaf) is not Traced:
            return None
        mark = self.loop.snapshot.graph
        most = [mark.most(size) for size in leaf.shape]
        if any(size is None for size in most):
            self.loop.fail("arrays of many sizes are appended to a list")
        pairs = zip(leaf.shape, most, strict=True)
        return tuple(m if is_same(m, size) else self.tracer.size_max(m, 0) for size, m in pairs)

    @staticmethod
    def axes(leaf: Any, room: Any) -> list[int]:
        """The axes along which an array is not as long in each trip."""
        return [k for k, size in enumerate(room) if not is_same(size, leaf.shape[k])]

    def sharing_name(self, array: Any, names: dict[str, Any]) -> Any:
        """The name that has the array behind the trip, with the leaf's number; None: there is none."""
        carried = self.carried
        holders = [
            (name, place)
            for name, value in names.items()
            for place, leaf in enumerate(leaves(value))
            if type(leaf) is Traced and leaf.kind == "array" and leaf.storage == array.storage
        ]
        for phi in carried.values:
            if phi.value.storage != array.storage:
                continue
            if phi.value.version != phi.version or holders:
                self.loop.fail("an array that stays is appended to a list")
            items = [carried.entry[name] for name in carried.snapshot.containers]
            if not self.loop.is_alone(phi.entry, [*self.loop.entry.values(), *items]):
                raise Peel("an array of before the loop is appended to a list")
            return None
        if self.loop.snapshot.graph.had(array.whole):
            self.loop.fail("an array of before the loop is appended to a list")
        for name, _ in holders:
            if name not in carried.types.of and name not in self.loop.site.live_out:
                holders = [h for h in holders if h[0] != name]
            elif self.is_written(name):
                self.loop.fail("an array that is written to is appended to a list")
        if len(holders) > 1:
            self.loop.fail("an array of many names is appended to a list")
        return holders[0] if holders else None

    def is_written(self, name: str) -> bool:
        """Whether a trip writes to what it is handed under that name."""
        heads = {
            leaf.storage
            for leaf in leaves(self.carried.head.get(name))
            if type(leaf) is Traced and leaf.kind == "array"
        }
        phis = self.carried.values
        return any(p.value.storage in heads and p.value.version != p.version for p in phis)

    # --- the region ---

    def finish(self, body: Any) -> None:
        """Puts what the trip appended into its buffers, which are parameters and results."""
        tracer, trip = self.tracer, self.carried.trip
        for item in self.items:
            item.measure(self.carried.extent if self.is_open else int(self.carried.extent))
            place = trip
            if item.truths is not None:
                counter = body.param("i8", "scalar")
                place = tracer.define(counter, 0, item.length)
                flag = item.flag if type(item.flag) is Traced else tracer.lift(item.flag)
                body.result(tracer.apply("add", counter, tracer.cast(flag, np.int64)))
            item.columns = []
            for leaf, room in zip(leaves(item.value), item.shapes, strict=True):
                item.columns.append([])
                for value, shape in self.parts(leaf, room):
                    row = tracer.reshape(value, (1, *value.shape))
                    shape = (item.length, *shape)
                    buffer = body.param(tracer.undefined(row, shape))
                    if value.ndim == 0:
                        buffer[place] = value
                    else:
                        lattice.write(tracer, buffer[place], value, self.axes(value, room))
                    item.columns[-1].append(Column((body, body.hold(row)), shape))
                    body.result(buffer)

    def parts(self, leaf: Any, room: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """What is kept of a leaf, each with the room it has: itself, and sizes that differ."""
        if type(leaf) is not Traced:
            return []
        sizes = [lattice.number_of(self.tracer, leaf.shape[k]) for k in self.axes(leaf, room)]
        numbers = [self.tracer.cast(size, np.int64) for size in sizes]
        return [(self.tracer.as_data(leaf), room), *((number, ()) for number in numbers)]

    def exits(self, names: dict[str, Any]) -> None:
        """Fills the list."""
        if self.is_open:
            self.make_sized(names)
            return
        trips = int(self.carried.extent)
        columns = [self.column(item, trips, names) for item in self.items]
        found = [value for values in zip(*columns, strict=True) for value in values]
        appended = [value for value in found if value is not UNKNOWN]
        self.loop.state.refill(self.container, [*self.before, *appended])
        self.loop.regions.aliases.forget(
            [leaf for item in self.items for leaf in leaves(item.value)]
        )
        if len(self.items) == 1 and not self.before and self.buffer is not None:
            list_buffer.keep_backing(self.loop.state, self.container, self.buffer)

    def column(self, item: Item, trips: int, names: dict[str, Any]) -> Any:
        """What each trip appended as this item; nothing where it did not."""
        parts, buffers = leaves(item.value), item.buffers
        if type(item.value) is Traced and len(buffers[0]) == 1:
            self.buffer = buffers[0][0] if item.truths is None else buffers[0][0][:-1]
        values, place = [], 0
        for trip in range(trips):
            if item.truths is not None and not item.truths[trip]:
                values.append(UNKNOWN)
                continue
            items = [
                self.read(columns, place, leaf, room) if columns else leaf
                for leaf, room, columns in zip(parts, item.shapes, buffers, strict=True)
            ]
            if item.inner is not None:
                kind = item.inner[0].kind
                values.append(list_buffer.list_of(self.loop.state, items[0], kind))
                place += 1
                continue
            if trip == trips - 1:
                for k, holder in enumerate(item.names):
                    if holder is not None:
                        items[k] = leaves(names[holder[0]])[holder[1]]
            values.append(rebuilt(item.value, iter(items)))
            place += 1
        return values

    def read(self, columns: list[Any], place: int, leaf: Any, room: Any) -> Any:
        row = columns[0][place]
        if leaf.kind == "array":
            shape = list(room)
            for axis, sizes in zip(self.axes(leaf, room), columns[1:], strict=True):
                shape[axis] = self.tracer.define(sizes[place], 0, room[axis] + 1)
            if len(columns) > 1:
                row = lattice.first_part(self.tracer, row, tuple(shape))
            return self.tracer.copy(row, "K")
        return self.tracer.as_python(row) if leaf.kind == "python" else row


def owner_of(region: Region, change: Change) -> Any:
    """The grown of a list to which an arm of a branch appends, an item at first; raises where there
    is none yet.
    """
    container, state = change.container, region.state
    grown = state.lists.get(id(container))
    if grown is not None:
        return grown
    for loop in reversed(state.active):
        if loop.carried is not None and loop.reached([container]):
            loop.carried.grow(Change(container, loop.snapshot.before[id(container)][1]))
            raise Rerun(loop)
    return list_buffer.want_buffer(region, container, change.appended[0])
