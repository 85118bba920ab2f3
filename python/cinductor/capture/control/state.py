"""State of a captured call: everything that running a loop or branch body can change, with undo.

Bodies of loops and branches run several times, so their changes must be undone. Every change goes
through a hook that is called before it: calls, slots (an attribute, item or shape), iterator
steps, augmented assignments. The hook saves the object's contents in the innermost snapshot, which passes
them on to the one around it when it ends. If the object's class has no row (`containers`), the hook raises
RegionBreak. An object that was created after a snapshot needs no saving: it is discarded with the run that created it.

Analysis results are stored in immutable tables (a snapshot keeps a reference) and in stacks (a
snapshot keeps the depth). The graph and its memory have marks of their own (pyext/region).
"""

from __future__ import annotations

import _random
import datetime
import operator
import sys
import types
from _thread import RLock  # random and threading take milliseconds to import
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import _core
from ...base.records import NamedTuple
from ..container_rows import ContainerRow, appends
from ..containers import dict_of, row_of, why_not_restored
from ..generators import RealItems
from ..iterators import (
    Called,
    Escaped,
    Flat,
    Items,
    PythonIterator,
    Range,
    StableIterator,
    Steps,
    TracedBytes,
    Walk,
)
from ..kinds import is_same, is_unchanged
from ..objects import OPAQUE, VIEWS_OF_DICTS, Method
from ..sources import Sources

RegionBreak = _core.RegionBreak

TABLES = ("records", "choices", "lists", "backings")
STACKS = ("active", "conditions", "classes", "waiting")
MANY = 1 << 30  # references: the count is unknown
tables_of, stacks_of = operator.attrgetter(*TABLES), operator.attrgetter(*STACKS)


class State:
    """The state of one call; marks: those to which it may be rolled back, the innermost last."""

    def __init__(self, tracer: _core.Tracer, sources: Sources) -> None:
        self.tracer, self.sources = tracer, sources
        self.snapshots: list[Snapshot] = []
        self.cells: list[tuple[types.CellType, str]] = []  # that inner functions set, with their names
        self.changes = self.restored = 0  # how often contents were
        self.unlike: dict[int, Any] = {}  # sets whose order no other set with the same items has
        self.records: dict[int, Any] = {}  # the memory that arrays may use: `alias`
        self.choices: dict[int, Any] = {}  # by storage: the objects among which data choose an array
        self.iterated: set[int] = set()  # ids of dicts and sets over which the call has made an iterator
        self.lists: dict[int, Any] = {}  # lists stored as columns and a count, by id
        # Lists that loops made: their items with versions, and the buffer of these.
        self.backings: dict[int, tuple[list[Any], list[tuple[Any, int]], Any]] = {}
        self.active: list[Any] = []  # active constructs, the innermost last
        self.conditions: list[Any] = []  # operands of and, or and conditional expressions being evaluated
        self.classes: list[str] = []  # classes of numbers queried in regions being captured
        self.waiting: list[Any] = []  # operands that wait on the stacks of frames: `pyext/state/operands.c`
        self.unseen = 0  # the newest storage that other operands which wait may have

    # --- mutation hooks ---

    def before_change(self, value: object) -> None:
        """Called before an object changes; raises RegionBreak if the change could not be undone."""
        self.changes += 1
        if type(value) is Items:
            for part in value.over:
                self.before_change(part)
        is_popped = id(value) in self.unlike
        if not self.snapshots or self.snapshots[-1].is_free_of(value, is_popped):
            return
        why_not = "a set changes that was popped" if is_popped else why_not_restored(value)
        if why_not is None:
            self.snapshots[-1].note(value)
            return
        for snapshot in reversed(self.snapshots):
            if snapshot.is_free_of(value, is_popped):
                return
            if not snapshot.is_kept:
                raise RegionBreak(why_not, "", 0)
            snapshot.can_put_back = False

    def before_pop(self, value: object) -> None:
        """Like `before_change`, for `set.pop()`. Which item is popped depends on the set's history,
        so the set cannot be restored."""
        if type(value) is set:
            self.unlike[id(value)] = value
        self.before_change(value)

    def refill(self, container: object, contents: object) -> None:
        """A container gets other contents."""
        self.before_change(container)
        row_of(container).restore(container, contents)

    def note_definition(self, value: object) -> Any:
        """Record an object that was just made."""
        if type(value) is Items:
            value.is_shared = True
        if self.snapshots and not self.snapshots[-1].is_final:  # a final one would only delay its death
            self.snapshots[-1].born[id(value)] = value
        return value

    def keep_changes(self) -> None:
        """Called at an effect: no snapshot can be undone any more, so none needs the objects to undo it with."""
        for snapshot in self.snapshots:
            snapshot.before.clear()
            snapshot.born.clear()
            snapshot.names_before = {}

    def unwind(self) -> None:
        """Close the blocks of all active constructs."""
        for snapshot in self.snapshots[:1]:
            snapshot.graph.unwind()

    def share(self, names: types.FunctionType) -> None:
        """Record the cells of a function, which inner functions may set without notice."""
        for cell, name in zip(names.__closure__ or (), names.__code__.co_freevars, strict=True):
            if not any(cell is known for known, _ in self.cells):
                self.cells.append((cell, name))
                self.before_change(cell)

    def cells_of(self, frame: types.FrameType) -> list[types.CellType]:
        """The cells that the frame of a running function may have: it has the name, with the cell's value."""
        own = [(cell, name) for cell, name in self.cells if name in frame.f_code.co_cellvars]
        values = frame.f_locals if own else {}
        return [cell for cell, name in own if all(values.get(name) is value for value in row_of(cell).copy(cell))]

    def amend(self, container: dict[str, Any], key: str) -> None:
        """Add an item that the dict had all along but that had not been read before."""
        for snapshot in self.snapshots:
            if id(container) in snapshot.before:
                snapshot.before[id(container)][1][key] = container[key]

    # --- tables ---

    def put(self, **tables: dict[int, Any]) -> None:
        """Replace the tables of known values. Reading the origin of a list fills the list."""
        lists = tables.get("lists", self.lists)
        self.sources.hidden = lists
        self.__dict__.update(tables)
        if "records" in tables:
            self.tracer.forbids_breaks = any_shared(self.records)

    def grow(self, container: object, grown: object) -> None:
        """Record that a list is columns, or a buffer."""
        self.put(lists={**self.lists, id(container): grown})

    def note_iterators(self, values: Iterable[Any]) -> None:
        """Record that iterators over values are made, which raise if a dict or set among these changes its size."""
        self.iterated.update(id(dict_of(value) if type(value) in VIEWS_OF_DICTS else value) for value in values)

    def grown(self, value: object) -> Any:
        """The columns in which a container, or the dict of a view, is stored; None without columns."""
        return self.lists.get(id(dict_of(value) if type(value) in VIEWS_OF_DICTS else value))

    def put_back(self, value: object) -> None:
        """Give a container over which an iterator goes its items, if it is stored as columns."""
        if self.lists and (columns := self.grown(value)) is not None:
            columns.materialise("a list or dict changes that an iterator goes over")

    def put_lists_back(self, before: dict[int, Any]) -> None:
        """Restore the columns of an earlier time. A list that was read since stays an ordinary one."""
        self.put(lists={key: grown for key, grown in before.items() if key in self.lists})


class Snapshot:
    r"""A state to which capture can roll back.

    is_kept: the later code stays unless it can be undone as a whole, so changes that cannot be undone are allowed.
    names_before: the values of the frame's names, for a construct that may go back to them.
    Later changes of containers are carried from iteration to iteration and merged like values of names, under names
    that user code cannot have (`containers`).
    """

    def __init__(self, state: State, is_kept: bool = False, names: dict[str, Any] | None = None) -> None:
        self.state, self.is_kept, self.can_put_back = state, is_kept, True
        self.names_before = names
        self.graph = state.tracer.mark()
        self.tables = dict(zip(TABLES, tables_of(state), strict=True))
        self.before: dict[int, Change] = {}  # objects, with their former contents
        self.born: dict[int, Any] = {}
        if state.cells:
            self.begin()
        self.containers: dict[str, Any] = {}  # by name, those that runs of a construct change
        state.snapshots.append(self)
        self.depths = dict(zip(STACKS, map(len, stacks_of(state)), strict=True))
        self.depth, self.effects = len(state.snapshots), state.tracer.effects

    @property
    def can_undo(self) -> bool:
        """True if there was no change since that stays."""
        return self.can_put_back and self.graph.is_valid and not self.is_final

    @property
    def is_final(self) -> bool:
        """True if there was an effect since."""
        return self.state.tracer.effects != self.effects

    def is_free_of(self, value: object, is_popped: bool) -> bool:
        """True if a change of the object needs no note: it has one, it was made since, or nothing will be undone."""
        return id(value) in self.born or self.is_final or (id(value) in self.before and not is_popped)

    def gather(self, ends: bool = False) -> None:
        """Take over what the snapshots inside have noted: of an object the first note. ends: they end, so that what was made in them was
        made in this one."""
        if self.is_final:
            return
        born: dict[int, Any] = {}
        for inner in self.state.snapshots[self.depth :]:
            for key, change in inner.before.items():
                if not (key in self.born or key in born):
                    self.before.setdefault(key, change)
            born.update(inner.born)
        if ends:
            self.born.update(born)

    def since(self, stack: str) -> list[Any]:
        """The entries that a stack has gained."""
        return getattr(self.state, stack)[self.depths[stack] :]

    # --- contents of objects ---

    def begin(self) -> None:
        """Begin with no changes. Changes of cells that functions set are not reported."""
        self.before.clear()
        self.born.clear()
        for cell, _ in self.state.cells:
            self.note(cell)

    def note(self, value: object) -> None:
        """Save the contents of a value that has a row."""
        if id(value) not in self.before:
            row = row_of(value)
            self.before[id(value)] = Change(value, row.copy(value), row)

    def swap(self) -> list[tuple[Change, Any]]:
        """Restore the contents of the containers. Returns their current contents, except cells that
        are unchanged."""
        if len(self.state.snapshots) > self.depth:
            self.gather()
        now = []
        for change in self.before.values():
            container, before, row = change
            if type(container) is types.CellType and change.is_nothing:
                continue
            now.append((change, row.copy(container)))
            row.restore(container, before)
        self.state.restored += bool(now)
        return now

    # --- rollback ---

    def drop(self) -> None:
        """Undo and drop everything: decisions by the sizes of this call are open again."""
        self.undo()
        self.graph.forget_guards()

    def undo(self) -> None:
        """Roll back to the snapshot; it may be undone again."""
        state, depths = self.state, self.depths
        if self.before or state.snapshots[self.depth :]:
            self.swap()
        del state.snapshots[self.depth :]
        self.begin()
        for region in [*state.active[depths["active"] :], *(operand for _, operand in state.conditions[depths["conditions"] :])]:
            if region is not None and region.mark is not self.graph:  # of a construct inside
                region.forget()
        for stack, depth in zip(stacks_of(state), depths.values(), strict=True):
            del stack[depth:]
        self.rewind()

    def rewind(self) -> None:
        """Restore the graph and the tables, but not names and containers."""
        if not all(map(operator.is_, tables_of(self.state), self.tables.values())):
            self.state.put(**self.tables)
        self.graph.restore()

    def end(self) -> None:
        """End the snapshot. The changes stay, and outer snapshots can undo them."""
        state = self.state
        if 1 < self.depth <= len(state.snapshots):
            state.snapshots[self.depth - 2].gather(ends=True)
        del state.snapshots[self.depth - 1 :]
        del state.active[self.depths["active"] :]
        self.graph.forget()

    # --- containers by name ---

    def name_of(self, container: object) -> str:
        """A container's name; a new one for one that has none."""
        for name, known in self.containers.items():
            if known is container:
                return name
        name = f"an item of {type(container).__name__} {len(self.containers) + 1}"
        self.containers[name] = container
        return name

    def has(self, container: object) -> bool:
        """True if it has a name."""
        return any(known is container for known in self.containers.values())

    def names(self) -> dict[str, Any]:
        """The current contents of the containers."""
        return dict(zip(self.containers, map(value_of, self.containers.values()), strict=True))

    def refill(self, names: dict[str, Any]) -> None:
        """Restore the containers from the values of their names."""
        for name, container in self.containers.items():
            items = (names[name],) if type(container) is Items else names[name]
            self.state.refill(container, row_of(container).contents(container, items))


# --- changes ---


class Change(NamedTuple):
    """A container that a run may change, with its former contents."""

    container: Any
    before: Any
    row: ContainerRow

    @property
    def now(self) -> Any:
        """Its contents."""
        return self.row.copy(self.container)

    @property
    def keeps_places(self) -> bool:
        """True if it still has the same keys, or as many items. The table of a set may have grown, which can change
        its order even if its items are the same.
        """
        places, now = self.row.places(self.before), self.row.places(self.now)
        if type(places) is not list:
            return places is not None and bool(places == now)
        return len(places) == len(now) and all(map(is_same, places, now))  # 1 and 1.0 are one key, but two objects

    @property
    def fills(self) -> bool:
        """True if it is bounded and has grown, so that it stops growing once it is full."""
        return self.row.most(self.container) is not None and len(self.container) > len(self.before)

    @property
    def is_nothing(self) -> bool:
        """True if its contents are unchanged."""
        items = self.row.items
        return self.keeps_places and all(map(is_unchanged, items(self.before), items(self.now)))

    @property
    def appended(self) -> list[Any]:
        """The items that were appended."""
        before, now = self.before, self.container
        if not appends(type(now)) or type(before) is not type(now) or len(now) <= len(before):
            return []
        return [*now][len(before) :] if all(map(is_unchanged, before, now)) else []


def value_of(container: object, before: object = None) -> Any:
    """The current or former value of a container's name, given its contents: its items, or an
    iterator's position."""
    row = row_of(container)
    items = tuple(row.items(row.copy(container) if before is None else before))
    return items[0] if type(container) is Items else items


# --- reachability ---

# Classes of C modules that the collector does not know because their objects hold no other; besides builtins and
# NumPy's scalars.
ATOMS: frozenset[Any] = frozenset(
    {
        *(type(np.sum), _random.Random, datetime.date, datetime.timedelta),
        *(RLock, type(datetime.datetime_CAPI)),
    }
)


def atoms() -> frozenset[Any]:
    """ATOMS, and the class of a module that takes a millisecond to import."""
    decimal = sys.modules.get("decimal")
    return ATOMS if decimal is None else ATOMS | {decimal.Decimal}


# Modules of C whose classes' tp_traverse shows all that an object holds; besides Python's builtins.
SHOWN = frozenset({*sys.stdlib_module_names, "numpy"})
# Classes of the package's whose objects stand for the user's; others hold what is at work.
OPENED = frozenset({Items, Called, Escaped, Flat, TracedBytes, Range, StableIterator, Steps, Walk, PythonIterator, Method, RealItems})


def references(
    roots: Iterable[Any], is_meant: Callable[[Any], bool], apart: Iterable[Any] = ()
) -> int:
    """The number of these traced values that occur among values and their contents, without those in closed objects.
    """
    closed = {id(container): container for container in apart}
    found = _core.traced_in(list(roots), closed, atoms(), SHOWN, OPENED)
    return MANY if found is None else sum(map(is_meant, found))


def any_shared(records: dict[int, Any]) -> bool:
    """True if a value may be an array that another name has, or that another value may be."""
    owners: dict[int, list[tuple[int, Any]]] = {}  # by storage: the values that may be that array
    for value, (_, sources) in records.items():
        for source in sources:
            others = owners.setdefault(source.storage, [])
            if not source.alone or any(other != value and not o.excludes(source) for other, o in others):
                return True
            others.append((value, source))
    return False


def reached(roots: Iterable[Any], wanted: Iterable[Any], known: dict[int, tuple[Any, int]], has_effects: bool) -> set[int]:
    """Ids of those of the wanted containers that can be reached from values, or that outlive the call;
    all of them where that is not known.

    known: the objects that outlive the call, with their sources. Those with a source hold nothing that
    was made in the call before the call has an effect; then they are looked through, too.
    """
    wanted, objects = list(wanted), list(roots)
    closed = {key: value for key, (value, source) in known.items() if source != OPAQUE}
    if has_effects:
        objects.extend(closed.values())
        closed = {}
    outlive = {id(container) for container in wanted if id(container) in known}
    return outlive | _core.reached(objects, wanted, closed, atoms(), SHOWN, OPENED)
