"""Lists to which the trips of a loop append.

What a trip appends lies in buffers that the trips hand on, one for each value; behind the loop the
list holds the buffers' items. How many they are is known while the program is captured: the number
of trips is, and a condition under which a trip appends is decided by the trip's number alone
(`i % 10 == 0`). The list has a gap while the loop is captured: nobody may look at what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..value.objects import Traced
from ..value.state import ATOMS, fill, is_number, is_one, is_same, leaves, rebuilt, walk
from . import dense
from .region import Again, Looked, Opened, Peel

if TYPE_CHECKING:
    from .carry import Carried
    from .region import Region

MAX_ITEMS = 16  # appended in one trip


JOINS = frozenset({np.array, np.asarray, np.stack})  # of a list, make an array of its items


class Gap:
    """Stands for what the trips before have appended."""


GAP = Gap()


class Maybe:
    """An item that an arm of a branch appends; flag: whether it does, truths: the same per trip."""

    __slots__ = ("value", "flag", "truths")

    def __init__(self, value: Any, flag: Any, truths: list[bool]) -> None:
        self.value, self.flag, self.truths = value, flag, truths


class Item:
    """What a trip appends, once: its value's leaves, and where each goes."""

    def __init__(self, appended: Any) -> None:
        is_maybe = type(appended) is Maybe
        self.value = appended.value if is_maybe else appended
        self.flag = appended.flag if is_maybe else None
        self.truths: list[bool] | None = appended.truths if is_maybe else None
        self.rows: list[Any] = []  # numbers of held rows, None for leaves that are constants
        self.names: list[Any] = []  # for each leaf: what has the same array at the end of a trip
        self.length = 0

    def measure(self, trips: int) -> None:
        """How long its buffers are: there is one place for what is not appended."""
        self.length = trips if self.truths is None else sum(self.truths) + 1


class Growth:
    """One list that one loop's trips append to."""

    def __init__(self, carried: Carried, container: list[Any], before: list[Any]) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.container, self.before = container, list(before)
        self.sample = container[len(before) :][:1]
        self.items: list[Item] = []
        self.buffer: Any = None  # behind the loop: what was appended
        self.is_open = type(carried.extent) is not int  # as long as there are trips

    def look(self) -> None:
        """Nobody can while the loop is captured."""
        self.loop.fail("a list that a loop appends to is looked at")

    def open(self) -> None:
        """The list at the head of a trip."""
        self.loop.regions.touch(self.container)
        fill(self.container, [*self.before, GAP])
        self.loop.regions.grow(self)

    # --- as long as there are trips ---

    @property
    def may_open(self) -> bool:
        """Whether only calls will see the list, which began empty."""
        loop = self.loop
        held = any(
            value is self.container and name in loop.site.gathers
            for name, value in [*loop.entry.items(), *loop.others.items()]
        )
        is_older = any(  # than a trip of a loop around
            value is self.container
            for outer in loop.regions.active[:-1]
            for value in (*outer.entry.values(), *outer.others.values())
        )
        can_look = loop.stage.effects == 0 or self.tracer.flushes > 0  # `Opened.look`
        return loop.regions.may_open and held and not (self.before or is_older) and can_look

    def close(self) -> None:
        """The number of trips is decided by this call's."""
        carried, trips = self.carried, int(self.carried.extent)
        carried.promises.append(lambda: int(carried.extent) == trips)
        self.is_open = False

    def opened(self, made: Iterator[Any], names: dict[str, Any]) -> None:
        """What the list is behind the loop."""
        (item,) = self.items
        buffer, holder = next(made), item.names[0]
        last = None
        if holder is not None:
            leaf = leaves(names[holder[0]])[holder[1]]
            last = leaf, leaf.version
        regions, container = self.loop.regions, self.container
        regions.touch(container)
        fill(container, [])
        regions.aliases.forget(leaves(item.value))
        regions.opened[id(container)] = Opened(container, buffer, self.carried.extent, last)

    # --- in a trip ---

    def item(self, key: Any) -> Any:
        """The item of the list, where it is known."""
        if type(key) is int and -len(self.container) <= key < len(self.container):
            value = self.container[key]
            is_known = key < 0 or key < len(self.before)
            if is_known and value is not GAP and type(value) is not Maybe:
                return value
        return self.ask()

    def ask(self, *anything: Any) -> Any:
        """Whoever needs to know more of the list has it made of buffers."""
        learnt = self.sample or [item.value for item in self.items]
        if not learnt:
            self.loop.fail("an item of a list that grows is read")
        return dense.ask(self.loop, self.container, learnt[0])

    set_item = pop = ask
    length = truth = items_now = array = property(ask)

    def append(self, item: Any) -> None:
        """list.append(item)"""
        self.loop.regions.touch(self.container)
        self.container.append(item)

    def truths(self, condition: Any, item: Any) -> list[bool]:
        """Whether the condition, under which the item is appended, holds, for each trip."""
        carried = self.carried
        found = self.tracer.truths(condition, carried.body, int(carried.extent))
        return dense.ask(self.loop, self.container, item) if found is None else found

    # --- at the end of a trip ---

    def learn(self) -> None:
        """What the trip appended."""
        kept = len(self.before) + 1
        now = self.container
        is_kept = len(now) >= kept and now[kept - 1] is GAP
        if not is_kept or not all(map(is_one, now[: kept - 1], self.before)):
            self.loop.fail("a list grows in other ways than by append")
        self.items = [Item(appended) for appended in now[kept:]]
        if len(self.items) > MAX_ITEMS:
            self.loop.fail("a trip appends many items to a list")
        is_simple = len(self.items) == self.carried.period == 1 and self.items[0].truths is None
        if self.is_open and not (is_simple and type(self.items[0].value) is Traced):
            self.close()

    def check(self, names: dict[str, Any]) -> None:
        """Every item is a number, or an array that nobody else can write to."""
        seen: set[int] = set()
        for item in self.items:
            item.names = [self.check_leaf(leaf, names, seen) for leaf in leaves(item.value)]

    def check_leaf(self, leaf: Any, names: dict[str, Any], seen: set[int]) -> Any:
        if type(leaf) is not Traced:
            if type(leaf) not in ATOMS and not is_number(leaf):
                self.loop.fail(f"a {type(leaf).__name__} is appended to a list")
            return None
        if leaf.kind != "array":
            if leaf.strong is not None:
                self.loop.fail("a number of one class or another is appended to a list")
            return None
        mark = self.loop.attempt.mark
        if not all(is_same(self.tracer.most(size, mark), size) for size in leaf.shape):
            self.loop.fail("arrays of many sizes are appended to a list")
        if leaf.ndim > 1 and self.tracer.same_type(leaf, self.tracer.copy(leaf, "C")) != 1:
            self.loop.fail("arrays in Fortran's order are appended to a list")
        shared = None
        for array in (s.array for s in self.loop.regions.aliases.sources(leaf)):
            if array.storage in seen or not array.is_whole:
                self.loop.fail("a view, or an array twice, is appended to a list")
            seen.add(array.storage)
            shared = self.sharing_name(array, names) or shared
        return shared

    def sharing_name(self, array: Any, names: dict[str, Any]) -> Any:
        """The name that has the array behind the trip, with the leaf's number; None: there is none."""
        carried, tracer = self.carried, self.tracer
        holders = [
            (name, place)
            for name, value in names.items()
            for place, leaf in enumerate(leaves(value))
            if type(leaf) is Traced and leaf.kind == "array" and leaf.storage == array.storage
        ]
        for value, entry, _, version, _ in carried.parameters:
            if value.storage != array.storage:
                continue
            if value.version != version or holders:
                self.loop.fail("an array that stays is appended to a list")
            held = [carried.entry[name] for name in carried.contents.containers]
            if not self.loop.is_alone(entry, [*self.loop.entry.values(), *held]):
                raise Peel("an array of before the loop is appended to a list")
            return None
        if tracer.is_before(array.whole, self.loop.attempt.mark):
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
        params = self.carried.parameters
        return any(p.value.storage in heads and p.value.version != p.version for p in params)

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
            item.rows = []
            for leaf in leaves(item.value):
                if type(leaf) is not Traced:
                    item.rows.append(None)
                    continue
                value = tracer.settled(leaf)
                row = tracer.reshape(value, (1, *value.shape))
                buffer = body.param(tracer.blank(row, (item.length, *value.shape)))
                buffer[place] = value
                item.rows.append(body.hold(row))
                body.result(buffer)

    def entries(self) -> list[Any]:
        """What the first trip begins with."""
        entries = []
        for item in self.items:
            if item.truths is not None:
                entries.append(self.tracer.lift(0, "i8"))
            for leaf, row in zip(leaves(item.value), item.rows, strict=True):
                if row is not None:
                    shape = (item.length, *leaf.shape)
                    entries.append(self.tracer.blank((self.carried.body, row), shape))
        return entries

    def kinds(self) -> list[str]:
        """Of the values that the region hands on."""
        kinds = []
        for item in self.items:
            kinds += ["scalar"] if item.truths is not None else []
            kinds += ["array" for row in item.rows if row is not None]
        return kinds

    def exits(self, made: Iterator[Any], names: dict[str, Any]) -> None:
        """Fills the list."""
        self.loop.regions.opened.pop(id(self.container), None)
        if self.is_open:
            self.opened(made, names)
            return
        trips = int(self.carried.extent)
        columns = [self.column(item, trips, made, names) for item in self.items]
        found = [value for values in zip(*columns, strict=True) for value in values]
        appended = [value for value in found if value is not GAP]
        self.loop.regions.touch(self.container)
        fill(self.container, [*self.before, *appended])
        self.loop.regions.aliases.forget(
            [leaf for item in self.items for leaf in leaves(item.value)]
        )
        if len(self.items) == 1 and not self.before and type(self.items[0].value) is Traced:
            assert self.buffer is not None
            seen = [(value, value.version) for value in appended]
            self.loop.regions.rows[id(self.container)] = (self.container, seen, self.buffer)

    def column(self, item: Item, trips: int, made: Iterator[Any], names: dict[str, Any]) -> Any:
        """What each trip appended as this item; a gap where it did not."""
        if item.truths is not None:
            next(made)
        parts = leaves(item.value)
        buffers = [None if row is None else next(made) for row in item.rows]
        if buffers[0] is not None:
            self.buffer = buffers[0] if item.truths is None else buffers[0][:-1]
        values, place = [], 0
        for trip in range(trips):
            if item.truths is not None and not item.truths[trip]:
                values.append(GAP)
                continue
            items = [
                leaf if buffer is None else self.read(buffer, place, leaf)
                for leaf, buffer in zip(parts, buffers, strict=True)
            ]
            if trip == trips - 1:
                for k, holder in enumerate(item.names):
                    if holder is not None:
                        items[k] = leaves(names[holder[0]])[holder[1]]
            values.append(rebuilt(item.value, iter(items)))
            place += 1
        return values

    def read(self, buffer: Any, place: int, leaf: Any) -> Any:
        row = buffer[place]
        if leaf.kind == "array":
            return self.tracer.copy(row, "K")
        return self.tracer.as_python(row) if leaf.kind == "python" else row


def is_longer(before: Any, now: Any) -> bool:
    """Whether a list has what it had, and more."""
    if type(now) is not list or type(before) is not list or len(now) <= len(before):
        return False
    return all(map(is_one, before, now))


def owner_of(region: Region, container: Any, item: Any) -> Any:
    """The growth of a list to which an arm of a branch appends, an item at first; raises where there
    is none yet.
    """
    growth = region.regions.growing.get(id(container))
    if growth is not None:
        return growth
    for loop in reversed(region.regions.active):
        carried = getattr(loop, "carried", None)
        if carried is None:
            continue
        seen = walk([*loop.entry.values(), *loop.others.values(), *loop.callers()])
        if seen is not None and id(container) in seen:
            carried.grow(container, loop.attempt.touched.before[id(container)][1])
            raise Again(loop)
    return dense.ask(region, container, item)


def call_with_opened(stage: Any, f: Any, opened: Opened) -> Any:
    """f(list) of a list that is as long as a loop had trips."""
    if f is len:
        return opened.length
    inner = opened.buffer.shape[1:]
    if f in JOINS or (len(inner) == 1 and f is np.vstack) or (not inner and f is np.hstack):
        return opened.joined(stage)
    if inner and (f is np.concatenate or f is np.vstack or (f is np.hstack and len(inner) == 1)):
        rows = opened.joined(stage)
        return stage.tracer.reshape(rows, (rows.shape[0] * inner[0], *inner[1:]))
    name = getattr(f, "__name__", type(f).__name__)
    raise Looked(f"{name} looks at a list that is as long as a loop had trips")
