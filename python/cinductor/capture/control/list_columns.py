"""Lists that captured code alone may look at while the call runs: long lists of numbers among the arguments, and lists
of lists of numbers.

A list of numbers among the arguments is read as an array, which each call makes of it (`_core.list_column`). When the
call returns, the items that have changed are stored in the list, as in Numba's reflected lists. A list of lists of one
length (a table) is an array of rank 2, and each inner list is a view of one of its rows.

The list objects stay what the frame has, so they may be returned and compared by identity. Any other use, and any
effect, gives up the assumption `list_columns`; then the lists are captured as containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.signals import Abandon, Replan
from ..kinds import kind_of
from ..made_lists import listed
from ..objects import Traced, is_ours, why_not_argument
from .columns import Column
from .list_buffer import ListBuffer

if TYPE_CHECKING:
    from .region import Region
    from .state import State

FEW = 64  # items of a list among the arguments that are an input each
MAX_ROWS = 1024  # of a table that the call has made
EXAMPLES = {"?": False, "l": 0, "d": 0.0}  # an item, by the dtype of the column


class Assumed(ListBuffer):
    """A list that is columns as long as the assumption holds."""

    def before_effect(self, reason: str) -> None:
        if not self.tracer.in_region:
            self.materialise(reason)

    def fail(self, reason: str) -> NoReturn:
        raise Replan("list_columns", reason)

    def becomes_list(self) -> bool:
        return False

    def append(self, item: object) -> None:
        self.fail("a list that is an argument, or in a list, grows")

    def pop(self) -> Any:
        self.fail("a list that is an argument, or in a list, shrinks")

    def materialise(self, why: str = "") -> None:
        """Raises: the call is captured again, with the list as a container."""
        self.fail(why or "a list that is an argument, or a list of lists, is read as a whole")


class Outer(Assumed):
    """A list with one column; source: what reaches it, -1 if the call has made it."""

    def __init__(self, scope: Any, value: list[Any], source: int, rows: Any) -> None:
        like = EXAMPLES[rows.dtype.char]
        super().__init__(scope, value, like, [Column(like, rows)], rows.shape[0])
        self.source, self.entered = source, rows.version

    @property
    def rows(self) -> Any:
        """The array of the items."""
        return self.columns[0].rows

    @property
    def is_changed(self) -> bool:
        """True if the call has stored an item."""
        return bool(self.rows.version != self.entered)


class Table(Outer):
    """A list of lists of numbers of one length."""

    def read(self, place: object) -> Any:
        """The list of a row. Of a list made in the call it is the object in the list, if its place is known."""
        if self.source < 0 and type(place) is int:
            return self.container[place]
        return TableRow(self, place, []).container

    def item(self, key: object) -> Any:
        return self.fail("a part of a list of lists is read") if type(key) is slice else super().item(key)

    def put(self, place: object, item: object) -> None:
        self.fail("a list in a list is replaced")

    @property
    def array(self) -> Any:
        return self.copied()[0].rows

    def parts(self) -> tuple[Any, ...]:
        return (listed, "list of python", (), None, self.array)


class TableRow(Assumed):
    """A list in a list: a view of a row."""

    def __init__(self, table: Table, place: Any, container: list[Any]) -> None:
        rows = table.rows[place]
        super().__init__(table.scope, container, table.like, [Column(table.like, rows)], rows.shape[0])
        self.is_given = bool(table.source >= 0)

    def recipe(self) -> tuple[Any, ...]:
        """How the list is returned; a list of the caller's is another object."""
        return self.fail("a list in an argument is returned") if self.is_given else super().recipe()


def enter(scope: Any, value: list[Any], source: int) -> None:
    """Read an argument as a column, if it is a list of numbers. Another list that is long is not captured."""
    stage = scope.stage
    if type(value) is not list or not stage.may_assume_columns or id(value) in stage.state.lists:
        return
    if (made := _core.list_column(value)) is None and (why := why_not_argument(value, False)) is not None:
        raise Abandon(f"an argument is {why}")
    if made is None or made.size <= FEW:
        return
    rows = stage.lift_guarded(made, stage.sources.note_made(made, _core.list_column, source))
    (Outer if rows.ndim == 1 else Table)(scope, value, source, rows)


def changed(state: State) -> list[tuple[Any, Any]]:
    """The lists of the caller's, which are ordinary ones from now on, that the call has changed, with their columns."""
    given = [grown for grown in state.lists.values() if is_a(grown, Outer) and grown.source >= 0]
    found = [grown for grown in given if grown.is_changed]
    tables = [grown for grown in given if type(grown) is Table]
    if found:
        keep_apart(state, tables)
    for grown in given:
        grown.drop()
    return [(grown.container, grown.rows) for grown in found]


def keep_apart(state: State, tables: list[Table]) -> None:
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


def want_table(stage: Any, value: list[Any]) -> None:
    """If a list is a table, restart the enclosing loop or branch with an array in its place."""
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
        if type(length) is not int or any(is_ours(type(v)) and type(v) is not Traced for v in row):
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
