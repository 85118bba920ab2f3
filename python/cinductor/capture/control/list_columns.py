"""Lists that captured code alone may look at while the call runs: long lists of numbers or of tuples of numbers among the
arguments, and lists of such lists.

A list of numbers among the arguments is read as an array, which each call makes of it (`_core.list_column`). When the
call returns, the items that have changed are stored in the list, as in Numba's reflected lists. A list of lists of one
length (a table) is an array of rank 2, and each inner list is a view of one of its rows. A list of tuples is an array
for each place in the tuples. Lists of several lengths in a list (the neighbours of each node, say) are parts of the
arrays of all items. Lists of these two kinds are only read.

The list objects stay what the frame has, so they may be returned and compared by identity. Any other use, and any
effect, gives up the assumption `list_columns`; then the lists are captured as containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.signals import Abandon, Replan
from ..kinds import have_same_structure, kind_of
from ..made_lists import listed
from ..objects import Traced, is_internal, is_record, why_not_argument
from .columns import SEVERAL_TYPES, Column, empty_columns, fits
from .list_buffer import SPARE, ListBuffer, room_of

if TYPE_CHECKING:
    from ..kinds import Hooks, Size
    from .region import Region
    from .state import State

FEW = 64  # items of a list among the arguments that are an input each
MAX_ROWS = 1024  # of a table that the call has made
EXAMPLES = {"?": False, "l": 0, "d": 0.0}  # an item, by the dtype of the column


class Assumed(ListBuffer):
    """A list that is columns as long as the assumption holds. source: what reaches it, -1 if the call has made it."""

    source = -1
    has_lists = False

    def before_effect(self, reason: str) -> None:
        if not self.tracer.in_region:
            self.materialise(reason)

    def fail(self, reason: str) -> NoReturn:
        raise Replan("list_columns", reason)

    def becomes_list(self) -> bool:
        return False

    @property
    def contents(self) -> Any:
        """The array or call whose contents are stored in the container when the call returns."""
        return None

    def item(self, key: object) -> Any:
        return self.fail("a part of a list of lists is read") if self.has_lists and type(key) is slice else super().item(key)

    def append(self, item: object) -> None:
        self.fail("a list that is an argument, or in a list, grows")

    def pop(self) -> Any:
        self.fail("a list that is an argument, or in a list, shrinks")

    def materialise(self, why: str = "") -> None:
        """Raises: the call is captured again, with the list as a container."""
        self.fail(why or "a list that is an argument, or a list of lists, is read as a whole")


class Outer(Assumed):
    """A list with one column."""

    def __init__(self, scope: Hooks, value: list[Any], source: int, rows: Traced) -> None:
        like, columns = columns_of(rows)
        super().__init__(scope, value, like, columns, rows.shape[0])
        self.source, self.entered = source, rows.version

    @property
    def rows(self) -> Any:
        """The array of the items."""
        return self.columns[0].rows

    @property
    def is_changed(self) -> bool:
        """True if the call has stored an item."""
        return bool(self.rows.version != self.entered)

    @property
    def contents(self) -> Any:
        """The array that is stored in the list when the call returns."""
        return self.rows


class Growing(Outer):
    """A list of numbers among the arguments, to which the call may append, and from which it may take the last item. Columns
    with more capacity are made when that first happens, before the outermost loop or branch.
    """

    def append(self, item: object) -> None:
        if (grown := self.with_room()) is not None:
            grown.append(item)
        elif fits(self.tracer, self.like, item):
            ListBuffer.append(self, item)
        else:
            self.fail(SEVERAL_TYPES)

    def pop(self) -> Any:
        grown = self.with_room()
        return ListBuffer.pop(self) if grown is None else grown.pop()

    def with_room(self) -> Growing | None:
        """The list with more capacity, which is made once; None if this is it."""
        if self.region is not None:
            return None
        active = self.state.active
        if active and active[-1].reached([self.container]):
            active[-1].want(self.container, with_room, self, room_of(active[-1].owners(self.container)))
        with_room(self.container, self, SPARE, self)
        return self.state.lists[id(self.container)]

    def want_capacity(self) -> None:
        active = self.state.active
        active[-1].want(self.container, with_room, self, room_of(active[-1].owners(self.container)))

    @property
    def is_changed(self) -> bool:
        return self.region is not None or super().is_changed

    @property
    def contents(self) -> Any:
        return self.rows if self.region is None else self.copied()[0].rows


def with_room(container: list[Any], given: Growing, room: Size, region: Region | ListBuffer) -> None:
    """Make columns with more capacity for a list among the arguments. region: the construct before which they are made."""
    made = object.__new__(Growing)
    columns = empty_columns(given.scope, given.like, given.size() + (room + SPARE))
    for column, old in zip(columns, given.copied(), strict=True):
        column.assign(given.scope, slice(0, given.size()), old)
    ListBuffer.__init__(made, given.scope, container, given.like, columns, given.length, given.size() + (room + SPARE), region)
    made.source = given.source


class Table(Outer):
    """A list of lists of numbers of one length."""

    has_lists = True

    def read(self, position: Size) -> Any:
        """The list of a row. Of a list made in the call it is the object in the list, if its place is known."""
        if self.source < 0 and type(position) is int:
            return self.container[position]
        return TableRow(self, position, []).container

    def put(self, position: Size, item: object) -> None:
        self.fail("a list in a list is replaced")

    @property
    def array(self) -> Any:
        return self.copied()[0].rows

    def parts(self) -> tuple[Any, ...]:
        return (listed, "list of python", (), None, self.array)


class TableRow(Assumed):
    """A list in a list: a view of a row."""

    def __init__(self, table: Table, position: object, container: list[Any]) -> None:
        rows = table.rows[position]
        super().__init__(table.scope, container, table.like, [Column(table.like, rows)], rows.shape[0])
        self.is_given = bool(table.source >= 0)

    def recipe(self) -> tuple[Any, ...]:
        """How the list is returned; a list of the caller's is another object."""
        return self.fail("a list in an argument is returned") if self.is_given else super().recipe()


class ReadOnly(Assumed):
    """A list of which no item is replaced."""

    is_changed = False

    def put(self, position: Size, item: object) -> None:
        self.fail("a list of tuples, or in a list, that is an argument changes")

    def replace(self, array: object) -> None:
        self.fail("a list of tuples, or in a list, that is an argument is sorted")


class Tuples(ReadOnly):
    """A list of tuples of numbers among the arguments."""

    def __init__(self, scope: Hooks, value: list[Any], source: int, columns: tuple[Any, ...]) -> None:
        like, made = columns_of(columns)
        self.source = source
        super().__init__(scope, value, like, made, columns[0].shape[0])


class Ragged(ReadOnly):
    """A list of lists of several lengths, or of lists of tuples: begins has the row in which the items of each list begin."""

    has_lists = True

    def __init__(self, scope: Hooks, value: list[Any], source: int, begins: Traced, columns: object) -> None:
        like, made = columns_of(columns)
        self.source, self.begins = source, begins
        super().__init__(scope, value, like, made, begins.shape[0] - 1)

    def read(self, position: Size) -> Any:
        """The list there, as part of the columns."""
        return RaggedRow(self, position).container

    @property
    def array(self) -> Any:
        return self.materialise()

    def parts(self) -> tuple[Any, ...]:
        return self.fail("a list of lists of several lengths is returned")


class RaggedRow(ReadOnly):
    """A list in a list: the items from one row of the columns on."""

    is_given = True

    def __init__(self, outer: Ragged, position: Size) -> None:
        self.tracer, self.total = outer.tracer, outer.columns[0].rows.shape[0]
        first, last = (self.tracer.as_python(outer.begins[k]) for k in (position, position + 1))
        self.first = self.within(first, self.total + 1)
        super().__init__(outer.scope, [], outer.like, outer.columns, self.within(last - first, self.total + 1))

    def within(self, number: Size, limit: Size) -> Any:
        """A number that is at least 0 and less than a limit, as a size."""
        return number if type(number) is int else self.tracer.define(number, 0, limit)

    def slot(self, position: Size) -> Any:
        return self.within(self.first + position, self.total)

    def copied(self) -> list[Column]:
        part = slice(self.first, self.first + self.length)
        return [column.of(lambda array: self.tracer.copy(array[part], "K")) for column in self.columns]

    def recipe(self) -> tuple[Any, ...]:
        return self.fail("a list in an argument is returned")


ROWS = (TableRow, RaggedRow)


def before_identity(state: State, a: object, b: object) -> None:
    """Called before two values are compared by identity: a list or tuple that is read twice from columns would be two
    objects. After an effect, when nothing can start again, such a tuple is a new one (docs/limits.md).
    """
    if a is b or type(a) is not type(b):
        return
    for value, other in ((a, b), (b, a)) if type(a) is list else ():
        row, its = (state.lists.get(id(v)) for v in (value, other))
        if row is not None and type(row) in ROWS and (type(its) in ROWS or not row.is_given or id(other) in state.sources.known):
            row.materialise("a list in a list is compared with another object")
    can_start_again = state.tracer.in_region or not state.tracer.effects
    for grown in list(state.lists.values()) if is_record(type(a)) and can_start_again else ():
        if is_a(grown, ListBuffer) and have_same_structure(a, grown.like) and is_record(type(grown.like)):
            grown.fail("tuples in a list that is stored as columns are compared by identity")


def columns_of(rows: object) -> tuple[Any, list[Column]]:
    """An item like those of an array, or of the arrays for the places in tuples, and the columns."""
    arrays = rows if type(rows) is tuple else (rows,)
    examples = tuple(EXAMPLES[array.dtype.char] for array in arrays)
    columns = [Column(like, array) for like, array in zip(examples, arrays, strict=True)]
    return examples if type(rows) is tuple else examples[0], columns


def enter(scope: Hooks, value: list[Any], source: int) -> None:
    """Read an argument as a column, if it is a list of numbers. Another list that is long is not captured."""
    stage = scope.stage
    if type(value) is not list or not stage.may_assume_columns or id(value) in stage.state.lists:
        return
    if (made := _core.list_column(value)) is None and (why := why_not_argument(value, False)) is not None:
        raise Abandon(f"an argument is {why}")
    if made is None or (size_of(made) <= FEW and stage.has_small_containers):
        return
    rows = arrays_in(scope, made, stage.sources.note_made(made, _core.list_column, source))
    if type(rows) is not tuple:
        (Growing if rows.ndim == 1 else Table)(scope, value, source, rows)
    elif len(rows) == 1:
        Tuples(scope, value, source, rows[0])
    else:
        Ragged(scope, value, source, *rows)


def arrays_in(scope: Hooks, made: object, source: int) -> Any:
    """An array, or the arrays in tuples, as inputs of the program."""
    if type(made) is not tuple:
        return scope.stage.lift_guarded(made, source)
    scope.stage.lift_guarded(made, source)
    sources = scope.stage.sources
    sources.guard_length(made, source)
    return tuple(arrays_in(scope, part, sources.source("item", source, k)) for k, part in enumerate(made))


def size_of(made: np.ndarray | tuple[Any, ...]) -> int:
    """How many numbers are in arrays, or in the tuples of arrays."""
    return int(made.size) if is_a(made, np.ndarray) else sum(map(size_of, made))


def changed(state: State, others: list[Any]) -> list[tuple[Any, Any]]:
    """The lists of the caller's, which are ordinary ones from now on, that the call has changed, with their columns.
    others: changed lists of the caller's that are no columns.
    """
    given: list[Any] = [grown for grown in state.lists.values() if is_a(grown, Assumed) and grown.source >= 0]
    found = [grown for grown in given if grown.is_changed]
    tables = [grown for grown in given if grown.has_lists]
    if found or others:
        keep_apart(state, tables)
    contents = [grown.contents for grown in found]
    for grown in given:
        grown.drop()
    return [(grown.container, now) for grown, now in zip(found, contents, strict=True)]


def keep_apart(state: State, tables: list[Any]) -> None:
    """Guard that no other list that the call reads is in a list of lists."""
    sources = state.sources
    others = [(value, source) for value, source in sources.known.values() if type(value) is list and source >= 0]
    for table in tables:
        for value, source in others:
            if value is table.container:
                continue
            if len(tables) > 1 or any(row is value for row in table.container):
                raise Replan("list_columns", "a list changes, and another list may have the same one in it")
            sources.check_once(source, "outside", table.source)


# --- lists of lists that the call has made ---


def want_table(scope: Hooks, value: list[Any]) -> None:
    """If a list is a table, restart the enclosing loop or branch with an array in its place."""
    stage = scope.stage
    if not stage.may_assume_columns or kind_of_table(stage.state, value) is None:
        return
    stage.state.active[-1].want(value, make_table)


def kind_of_table(state: State, value: list[Any]) -> Any:
    """The dtype of the numbers in a list of distinct lists of one length that the call has made; None for others."""
    known, lengths = state.sources.known, set()
    kinds: set[Any] = set()
    if not 0 < len(value) <= MAX_ROWS or id(value) in known or len({*map(id, value)}) < len(value):
        return None
    for row in value:
        if type(row) is not list or id(row) in known:
            return None
        grown = state.lists.get(id(row))
        if grown is not None and (not is_a(grown, ListBuffer) or is_a(grown, Assumed)):
            return None
        length = len(row) if grown is None else grown.length
        if type(length) is not int or any(is_internal(type(v)) and type(v) is not Traced for v in row):
            return None
        lengths.add(length)
        kinds.update(map(kind_of, row) if grown is None else (column.kind for column in grown.columns))
    if len(kinds) != 1 or len(lengths) != 1 or None in kinds:
        return None
    ((form, dtype),) = kinds
    return dtype if form == "python" and dtype.char in EXAMPLES else None


def make_table(value: list[Any], region: Region) -> None:
    """Make an array of a list of lists."""
    scope, state = region.scope, region.state
    dtype = kind_of_table(state, value)
    length = max(len(row) if (grown := state.lists.get(id(row))) is None else grown.length for row in value)
    open_rows = {k: row for k, row in enumerate(value) if id(row) in state.lists or any(type(v) is Traced for v in row)}
    known = np.array([[dtype.type()] * length if k in open_rows else row for k, row in enumerate(value)], dtype)
    rows = scope.stage.constant(known)
    for k, row in open_rows.items():
        grown = state.lists.get(id(row))
        scope.item_slot(rows, k).value = scope.call(np.array, row, dtype) if grown is None else grown.copied()[0].rows
    table = Table(scope, value, -1, rows)
    for k, row in enumerate(value):
        TableRow(table, k, row)
