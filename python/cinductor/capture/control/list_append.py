"""Lists that a loop appends to, while the loop is captured.

Each append in the body is an `Item`, a phi with columns that the loop carries. The body must not read what
earlier iterations appended. After the loop the list holds the rows of the columns. The number of
iterations is known then, and an append may be conditional only on the iteration number
(`i % 10 == 0`). If the number of iterations is symbolic, so is the length of the list (`SizedList`).

Ragged rows are padded to their maximum; one extra column per ragged axis stores the lengths. If data
decide what is appended, the list has columns from the start.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ... import _core
from ...base.signals import Replan
from ...base.user_frame import OWN_PREFIX
from ...numpy.surface import small_ints
from ..iterators import MAX_READ
from ..kinds import (
    ATOMS,
    Hooks,
    Size,
    is_number,
    is_same,
    is_tagged,
    is_unchanged,
    leaves,
    rebuilt,
)
from ..made_lists import listed
from ..objects import SINGLE, Traced, is_record
from .alias import PeelFirstIteration
from .backings import JOINS, backing_of, keep_backing, list_of
from .columns import Column
from .list_buffer import LOOKED_AT, Columns, ListBuffer, want_buffer
from .loop_state import LoopState
from .phi import Phi
from .region import Region, RegionBreak, Rerun
from .state import Change

MAX_APPENDED = 16  # items appended in one iteration
MAX_NODES = 2048  # for items of a list; for more, this is the slower way


class UnknownPrefix:
    """Stands for the items that earlier iterations have appended."""


UNKNOWN = UnknownPrefix()


class Maybe:
    """An item that an arm of a branch appends; flag: whether it does, truths: the same for each iteration."""

    __slots__ = ("value", "flag", "truths")

    def __init__(self, value: object, flag: object, truths: list[bool]) -> None:
        self.value, self.flag, self.truths = value, flag, truths


class Item(Phi):
    """An append in the body of a loop. For a list that a loop has made (inner), the value is the array of its items.
    holders: for each leaf, the name that has the same array at the end of an iteration.
    """

    __slots__ = ("value", "inner", "flag", "truths", "columns", "holders", "count")

    def __init__(self, appended: object, rows: Traced | None = None) -> None:
        self.flag: Any = None
        self.truths: list[bool] | None = None
        self.inner: Any = None
        if type(appended) is Maybe:
            self.flag, self.truths, appended = appended.flag, appended.truths, appended.value
        if rows is not None:
            self.inner = appended
        self.value: Any = appended if rows is None else rows
        self.columns: list[Column] = []
        self.holders: list[Any] = []
        self.count: Any = None  # number of rows, which includes a placeholder for an item that is not appended

    @property
    def name(self) -> str:
        """The names of its leaves."""
        return self.value.kind if self.inner is None else f"list of {self.inner[0].kind}"

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        counter = [] if self.truths is None else [tracer.lift(0, "i8")]
        return counter + [tracer.undefined(*node) for column in self.columns for node in column.nodes]

    def kinds(self, operands: list[Any]) -> list[str]:
        counter = [] if self.truths is None else ["scalar"]
        return counter + ["array"] * (len(operands) - len(counter))

    def append(self, tracer: _core.Tracer, body: _core.Block, trip: object, trips: object) -> None:
        """Puts it into its columns, which are parameters of the body and results."""
        self.count, position = trips, trip
        if self.truths is not None:
            self.count = sum(self.truths) + 1
            counter = body.param("i8", "scalar")
            position = tracer.define(counter, 0, self.count)
            flag = self.flag if type(self.flag) is Traced else tracer.lift(self.flag)
            body.result(tracer.apply("add", counter, tracer.cast(flag, np.int64)))
        for column in self.columns:
            column.append(tracer, body, position, self.count)

    def take(self) -> None:
        """Take the columns from the results of the region."""
        made = iter(self.made if self.truths is None else self.made[1:])
        for column in self.columns:
            column.take(made)

    @property
    def backing(self) -> Any:
        """The array of the items, if it is one."""
        column = self.columns[0]
        if type(self.value) is not Traced or len(column.nodes) != 1:
            return None
        return column.rows if self.truths is None else column.rows[:-1]


class SizedList(ListBuffer):
    """A list whose length is a number of iterations. Only calls, or the caller, will read it. If anything other than its
    length, its array or itself as a result is needed, the call is captured again with a constant number of iterations.

    name: the names of its items; last: the other value that has the last row.
    """

    is_sized = True

    def __init__(self, scope: Hooks, container: list[Any], like: object, columns: list[Column], count: Size, name: str, last: Traced | None) -> None:
        super().__init__(scope, container, like, columns, count)
        self.name, self.last = name, None if last is None else (last, last.version)

    @property
    def has_sources(self) -> bool:
        return False

    def before_effect(self, reason: str) -> None:
        self.materialise(reason)

    def materialise(self, why: str = "") -> None:
        """Give the list its items, from a graph that has run; before that the call is captured again."""
        if not self.may_look:
            self.replan(why or "a list whose length is a number of iterations is read")
        super().materialise(why)

    def recipe(self) -> tuple[Any, ...]:
        self.check_last()
        return self.parts()

    def parts(self) -> tuple[Any, ...]:
        (column,) = self.columns
        last = None if self.last is None else self.last[0]
        return (listed, self.name, tuple(column.sizes), last, column.rows, *column.sizes.values())

    @property
    def may_look(self) -> bool:
        """True if graphs have run, so that the length is known."""
        return self.tracer.flushes > 0 and not self.tracer.in_region

    def replan(self, why: str) -> NoReturn:
        raise Replan("sized_lists", why)

    def check_last(self) -> None:
        """Check that the last row and the other name of its array are still the same."""
        if self.last is not None and self.last[0].version != self.last[1]:
            self.replan("a list whose last array was written to")

    @property
    def array(self) -> Any:
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

    def call(self, f: object) -> Any:
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


class AppendedItems(Columns):
    """The items that iterations of one loop append to a list, which contained `before` when the loop began. It stands
    for the list during the capture of the loop, as a `ListBuffer` does elsewhere.
    """

    def __init__(self, carried: LoopState, container: list[Any], before: list[Any]) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.state = carried.state
        self.container, self.before = container, list(before)
        self.sample = container[len(before) :][:1]
        self.items: list[Item] = []
        self.cells = []
        is_many = type(carried.extent) is not int or carried.extent > MAX_READ
        self.is_open = is_many  # the length may be a number of iterations
        self.is_left = False  # the length is known, but the list is read as if it were not
        self.left: SizedList | None = None  # the buffer, if there are too many items to make each real

    def open(self) -> None:
        """The list at the head of an iteration."""
        self.state.refill(self.container, [*self.before, UNKNOWN])
        self.state.grow(self.container, self)

    # --- lists whose length is a number of iterations ---

    @property
    def may_open(self) -> bool:
        """True if the list was empty at first and will only be read by calls or by the caller."""
        loop = self.loop
        names = loop.site.results if loop.scope.stage.depth == 0 else loop.site.gathers
        outers = self.state.active[: self.state.active.index(loop)]
        is_hidden = loop.scope.stage.records.has(self.container)
        is_gathered = is_hidden or any(
            value is self.container and name in names
            for name, value in [*loop.entry.items(), *loop.others.items()]
        )
        is_older = (is_hidden and bool(outers)) or any(  # than an iteration of an enclosing loop
            value is self.container for outer in outers for value in (*outer.entry.values(), *outer.others.values())
        )
        is_real = self.tracer.flushes > 0 and not self.tracer.in_region
        can_look = self.tracer.effects == 0 or is_real  # `ListBuffer.materialise`
        return loop.regions.may_open and is_gathered and not (self.before or is_older) and can_look

    def close(self) -> None:
        """Make the number of iterations a constant, by the sizes of this call. If data decide it, the list becomes columns."""
        carried = self.carried
        try:
            trips = int(carried.extent)
        except RegionBreak:
            self.want_buffer()
            raise
        carried.assumptions.append(lambda: int(carried.extent) == trips)
        self.is_open = False

    # --- in an iteration ---

    def item(self, key: object) -> Any:
        """The item of the list, if it is known."""
        if type(key) is int and -len(self.container) <= key < len(self.container):
            value = self.container[key]
            is_known = key < 0 or key < len(self.before)
            if is_known and value is not UNKNOWN and type(value) is not Maybe:
                return value
        return self.want_buffer()

    def want_buffer(self) -> Any:
        """Restart with the list as columns before the loop, because more must be known of it."""
        learnt = self.sample or [item.value for item in self.items]
        if not learnt:
            self.loop.fail("an item of a list that grows is read")
        return want_buffer(self.loop, self.container, learnt[0])

    length = truth = array = items_now = property(want_buffer)
    pop = want_buffer

    @property
    def has_sources(self) -> bool:
        """As of a `ListBuffer`, which it becomes."""
        return bool(self.tracer.may_check() and self.want_buffer())

    def set_item(self, key: object, item: object) -> None:
        """list[key] = item"""
        self.want_buffer()

    def append(self, item: object) -> None:
        """list.append(item)"""
        self.state.before_change(self.container)
        self.container.append(item)

    def materialise(self, why: str = "") -> None:
        """Raises: the list cannot be read."""
        raise RegionBreak(LOOKED_AT, "", 0)

    def truths(self, condition: object, item: object) -> list[bool]:
        """The truth of the condition under which the item is appended, for each iteration."""
        extent = self.carried.extent
        found = self.carried.body.truths(condition, extent) if type(extent) is int else None
        return want_buffer(self.loop, self.container, item) if found is None else found

    # --- at the end of an iteration ---

    def learn(self) -> None:
        """Record the items that the iteration appended."""
        count = len(self.before) + 1
        now = self.container
        is_prefix = len(now) >= count and now[count - 1] is UNKNOWN
        if not is_prefix or not all(map(is_unchanged, now[: count - 1], self.before)):
            self.loop.fail("a list grows in other ways than by append")
        self.loop.scope.stage.chooses_tuples |= any([is_record(type(item)) for item in now[count:] if type(item) not in SINGLE])
        self.items = [Item(appended, self.rows_of(appended)) for appended in self.loop.lifted(now[count:])]
        if len(self.items) > MAX_APPENDED:
            self.loop.fail("an iteration appends many items to a list")
        is_simple = len(self.items) == self.carried.period == 1 and self.items[0].truths is None
        if self.is_open and not (is_simple and type(self.items[0].value) is Traced):
            self.is_left = True  # it was empty, and will only be read by calls or by the caller
            self.close()

    def kinds_now(self) -> list[Any]:
        """The kinds (Python's or NumPy's) of the numbers that this run appended."""
        parts = [leaf for item in self.items for leaf in leaves(item.value)]
        return [leaf.kind if type(leaf) is Traced else type(leaf) for leaf in parts]

    def rows_of(self, appended: object) -> Any:
        """The array of the items that a loop appended to a list, as a separate value."""
        rows = backing_of(self.state, appended) if type(appended) is list else None
        return None if rows is None else self.tracer.copy(rows, "C")

    def check(self, names: dict[str, Any]) -> None:
        """Check that every item is a number, or an array to which no other code can write."""
        for item in self.items:
            if item.inner is not None:
                self.check_list(item.inner, names)
        seen: set[int] = set()
        for item in self.items:
            parts = leaves(item.value)
            if any(map(is_tagged, parts)):
                want_buffer(self.loop, self.container, item.value, self.before)
            item.holders = [self.holder_of(leaf, names, seen) for leaf in parts]
            item.columns = [Column(leaf, room=self.capacity_for(leaf)) for leaf in parts]

    def check_list(self, inner: list[Any], names: dict[str, Any]) -> None:
        """Check that a list which is appended as an item has no other name, because the list after the loop is
        another object.
        """
        now, self.container[:] = list(self.container), []
        users = [value for name, value in names.items() if not name.startswith(OWN_PREFIX)]
        is_seen = self.loop.reached([inner], users)
        self.container[:] = now
        if is_seen:
            self.loop.fail("a list of another name is appended to a list")

    def holder_of(self, leaf: object, names: dict[str, Any], seen: set[int]) -> Any:
        """The name that has the appended array, too (`sharing_name`); no other name may write to it."""
        if type(leaf) is not Traced:
            if type(leaf) not in ATOMS and not is_number(leaf):
                self.loop.fail(f"a {type(leaf).__name__} is appended to a list")
            return None
        if leaf.kind != "array":
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

    def sharing_name(self, array: Traced, names: dict[str, Any]) -> Any:
        """The name that has the array after the iteration, with the leaf's number; None if there is none."""
        carried = self.carried
        holders = [
            (name, position)
            for name, value in names.items()
            for position, leaf in enumerate(leaves(value))
            if type(leaf) is Traced and leaf.kind == "array" and leaf.storage == array.storage
        ]
        for phi in carried.values:
            if phi.value.storage != array.storage:
                continue
            if phi.value.version != phi.version or holders:
                self.loop.fail("an array that stays is appended to a list")
            items = [carried.entry[name] for name in carried.snapshot.containers]
            if not self.loop.is_alone(phi.entry, [*self.loop.entry.values(), *items]):
                raise PeelFirstIteration("an array of before the loop is appended to a list")
            return None
        if carried.snapshot.graph.had(array.whole):
            self.loop.fail("an array of before the loop is appended to a list")
        for name, _ in holders:
            if name not in carried.types_of and name not in self.loop.site.live_out:
                holders = [h for h in holders if h[0] != name]
            elif self.is_written(name):
                self.loop.fail("an array that is written to is appended to a list")
        if len(holders) > 1:
            self.loop.fail("an array of many names is appended to a list")
        return holders[0] if holders else None

    def is_written(self, name: str) -> bool:
        """True if an iteration writes to the value that it gets under that name."""
        heads = {
            leaf.storage
            for leaf in leaves(self.carried.head.get(name))
            if type(leaf) is Traced and leaf.kind == "array"
        }
        phis = self.carried.values
        return any(p.value.storage in heads and p.value.version != p.version for p in phis)

    def capacity_for(self, leaf: object) -> Any:
        """The shape of a buffer with capacity for the array in every iteration."""
        if type(leaf) is not Traced:
            return ()
        mark = self.loop.mark
        most = [mark.most(size) for size in leaf.shape]
        if any(size is None for size in most):
            self.loop.fail("arrays of many sizes are appended to a list")
        pairs = zip(leaf.shape, most, strict=True)
        return tuple(m if is_same(m, size) else self.tracer.size_max(m, 0) for size, m in pairs)

    # --- the region ---

    def finish(self, body: _core.Block) -> None:
        """Store the items that the iteration appended in columns."""
        trips = self.carried.extent if self.is_open else int(self.carried.extent)
        for item in self.items:
            item.append(self.tracer, body, self.carried.trip, trips)

    def exits(self, names: dict[str, Any]) -> None:
        """The list after the loop."""
        gone = [leaf for item in self.items for leaf in leaves(item.value)]
        for item in self.items:
            item.take()
        if self.is_open or self.is_long:
            self.state.refill(self.container, [])
            self.loop.regions.aliases.forget(gone)
            (item,) = self.items
            count = self.carried.extent
            if item.truths is not None:
                count = sum(item.truths)
                for column in item.columns:
                    column.rows = column.rows[:count]
            last = self.held(item.holders[0], names)
            made = SizedList(self.loop.scope, self.container, item.value, item.columns, count, item.name, last)
            self.left = None if self.is_open or self.is_left else made
        else:
            trips = int(self.carried.extent)
            columns = [self.appended(item, trips, names) for item in self.items]
            found = [value for values in zip(*columns, strict=True) for value in values]
            self.state.refill(self.container, [*self.before, *(v for v in found if v is not UNKNOWN)])
            self.loop.regions.aliases.forget(gone)
            if len(self.items) == 1 and not self.before and self.items[0].backing is not None:
                keep_backing(self.state, self.container, self.items[0].backing)
        self.items.clear()

    @property
    def is_long(self) -> bool:
        """True if there are too many items for a node each, and the list can be made differently."""
        is_simple = len(self.items) == self.carried.period == 1
        is_outer = type(self.carried.extent) is int and not self.before and not self.tracer.in_region
        if not (is_outer and is_simple and type(self.items[0].value) is Traced):
            return False
        item = self.items[0]
        return bool(self.carried.extent * (1 if item.inner is None else len(item.inner)) > MAX_NODES)

    def make_real(self) -> None:
        """Give a list of many items real ones, by one break."""
        if self.left is not None:
            self.tracer.note_break(f"a loop appends {self.left.length} items to a list")
            self.left.materialise()
            self.left = None

    def held(self, holder: tuple[str, int] | None, names: dict[str, Any]) -> Any:
        """Names whose value is an appended array."""
        return None if holder is None else leaves(names[holder[0]])[holder[1]]

    def appended(self, item: Item, trips: int, names: dict[str, Any]) -> list[Any]:
        """The values that each iteration appended as this item; UNKNOWN for iterations that did not."""
        values: list[Any] = []
        position = 0
        for trip in range(trips):
            if item.truths is not None and not item.truths[trip]:
                values.append(UNKNOWN)
                continue
            items = [self.read(column, position) for column in item.columns]
            position += 1
            if item.inner is not None:
                values.append(list_of(self.state, items[0], item.inner[0].kind))
                continue
            if trip == trips - 1:
                last = [self.held(holder, names) for holder in item.holders]
                items = [a if b is None else b for a, b in zip(items, last, strict=True)]
            values.append(rebuilt(item.value, iter(items)))
        return values

    def read(self, column: Column, position: int) -> Any:
        """The item at this index; an array as a separate value."""
        value = column.read(self.tracer, position)
        return self.tracer.copy(value, "K") if column.rows is not None and value.kind == "array" else value


def owner_of(region: Region, change: Change) -> AppendedItems:
    """The `AppendedItems` of a list to which an arm of a branch appends, at first as an item; raises if there is none yet.
    """
    container, state = change.container, region.state
    known = state.lists.get(id(container))
    if known is not None:
        return known
    for loop in reversed(state.active):
        if loop.carried is not None and loop.reached([container]):
            loop.snapshot.gather()
            whole = loop.snapshot.before[id(container)]
            if not whole.appended or type(container) is not list:  # items were removed before
                return want_buffer(loop, container, change.appended[0], whole.before)
            loop.carried.grow(whole)
            raise Rerun(loop)
    return want_buffer(region, container, change.appended[0])
