"""One leaf of the items of a list as an array, and which numbers one array can store.

Numbers of two classes that a tagged number can have (`lattice`) are an array of numbers and one of bools, the tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..kinds import (
    EXACT_INTS,
    classes_of,
    have_same_structure,
    is_same,
    is_tagged,
    kind_of,
    leaves,
    lifted,
    rebuilt,
    strength,
)
from ..objects import Traced
from . import lattice

if TYPE_CHECKING:
    from ..kinds import Hooks, Size

NUMBERS = "?bhilqBHILQfd"
SEVERAL_TYPES = "items of several types are in a list that grows"


class Column:
    """One leaf of all items. rows: one for each item; for arrays of different sizes also each length, by axis. like:
    the leaf of one item, or the `Type` of tagged numbers, whose bools are tags; room: the sizes of a row.
    """

    __slots__ = ("like", "kind", "room", "rows", "tags", "sizes", "nodes")

    def __init__(self, like: object, rows: Traced | None = None, tags: Traced | None = None, room: tuple[Any, ...] = ()) -> None:
        self.like: Any = like
        self.rows: Any = rows
        self.tags: Any = tags
        self.room = room
        self.kind: Any = (like.kind, like.dtype) if type(like) is lattice.Type else kind_of(like)
        self.sizes: dict[int, Any] = {}
        self.nodes: list[tuple[tuple[Any, int], tuple[Any, ...]]] = []  # rows in a block, with shapes

    @property
    def name(self) -> str:
        """The kind of its numbers, as `listed` reads it."""
        kind: str = self.kind[0]
        return kind if self.tags is None else f"{kind} or {self.like.weak.char}"

    @property
    def arrays(self) -> list[Any]:
        """The rows, and the tags if there are any."""
        return [self.rows] if self.tags is None else [self.rows, self.tags]

    def of(self, part: Callable[[Any], Any]) -> Column:
        """The column with a part of each of its arrays."""
        return Column(self.like, *map(part, self.arrays))

    def store(self, scope: Hooks, position: object, leaf: object) -> None:
        """Store a leaf at this index."""
        number = lifted(scope.stage.tracer, leaf, *self.kind)
        if number is None:
            raise _core.RegionBreak(SEVERAL_TYPES, "", 0)
        scope.item_slot(self.rows, position).value = number
        if self.tags is not None:
            scope.item_slot(self.tags, position).value = self.tag_of(scope, leaf)

    def tag_of(self, scope: Hooks, leaf: object) -> Any:
        """The tag of a number: a bool if its class is known, which then matters."""
        if not is_tagged(leaf):
            scope.stage.regions.note_class([leaf])
        return strength(leaf, self.kind)

    def assign(self, scope: Hooks, part: slice, other: Column) -> None:
        """Store the items of another column, which are of this kind or, if this one has tags, of one of its classes."""
        rows, tags = other.rows, other.tags
        if rows.dtype != self.rows.dtype:
            rows = self.cast(scope, rows)
        scope.item_slot(self.rows, part).value = rows
        if self.tags is not None:
            scope.item_slot(self.tags, part).value = self.tag_of(scope, other.like) if tags is None else tags

    def cast(self, scope: Hooks, rows: Traced) -> Any:
        """Numbers of another dtype in this one's. Ints must be small, which the program checks; other numbers may not fit."""
        tracer, limit = scope.stage.tracer, EXACT_INTS.get(self.rows.dtype.char)
        if limit is None or rows.dtype != np.int64 or not tracer.may_check():
            raise _core.RegionBreak(SEVERAL_TYPES, "", 0)
        small = tracer.apply("logical_and", rows > -limit, rows < limit)
        tracer.check(scope.call(np.all, small), "ints that a float does not hold")
        return tracer.cast(rows, self.rows.dtype)

    @property
    def axes(self) -> list[int]:
        """The axes along which lengths differ."""
        return [k for k, size in enumerate(self.room) if not is_same(size, self.like.shape[k])]

    def read(self, tracer: _core.Tracer, position: Size) -> Any:
        """The leaf of the item at this index; an array as a view of its row."""
        if self.rows is None:
            return self.like
        row = self.rows[position]
        if self.kind[0] != "array":
            number = tracer.as_python(row) if self.kind[0] == "python" else row
            return number if self.tags is None else tracer.tagged(number, self.tags[position], self.like.weak)
        shape = list(self.room)
        for axis, sizes in self.sizes.items():
            shape[axis] = tracer.define(sizes[position], 0, shape[axis], True)
        return lattice.first_part(tracer, row, tuple(shape)) if self.sizes else row

    # --- as values of a region ---

    def append(self, tracer: _core.Tracer, body: _core.Block, position: object, count: object) -> None:
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
                rows[position] = value
            else:
                lattice.write(tracer, rows[position], value, axes)
            self.nodes.append(((body, body.live_out(row)), shape))
            body.result(rows)

    def take(self, made: Iterator[Any]) -> None:
        """Take the results of the region."""
        if self.nodes:
            self.rows, *sizes = [next(made) for _ in self.nodes]
            self.sizes = dict(zip(self.axes, sizes, strict=True))


# --- which numbers one column can store ---


def number_kind(value: object) -> tuple[str, np.dtype] | None:
    """The kind of a leaf in columns of which data decide the length; None if it may have one of two."""
    kind = kind_of(value)
    return None if kind is None or kind[0] == "array" or kind[1].char not in NUMBERS or is_tagged(value) else kind


def classes_in(leaf: object) -> set[Any]:
    """Kinds and dtypes that a number, or those in a column, may have."""
    return {(leaf.kind, leaf.dtype), ("python", leaf.weak)} if type(leaf) is lattice.Type else classes_of(leaf)


def is_alike(item: object, like: object) -> bool:
    """True if the columns of an item can store this one."""
    return have_same_structure(item, like) and all(
        classes_in(leaf) <= classes_in(other) for leaf, other in zip(leaves(item), leaves(like), strict=True)
    )


def fits(tracer: _core.Tracer, like: object, item: object) -> bool:
    """True if the columns of an item can store the numbers of this one exactly."""
    return is_alike(item, like) and all(
        type(kind) is not lattice.Type or lattice.can_lift(tracer, leaf, kind)
        for leaf, kind in zip(leaves(item), leaves(like), strict=True)
    )


def like_of(tracer: _core.Tracer, items: Iterable[Any], stored: tuple[Any, ...] = ()) -> Any:
    """An item whose columns can store all of these exactly; None if there is none. It has the `Type` of tagged numbers in place
    of a leaf of two classes. stored: an item that has the classes of numbers in columns.
    """
    given = list(items)
    like = joined_of(iter([*stored, *given]))
    has_two = like is not None and any(type(leaf) is lattice.Type for leaf in leaves(like))
    return None if has_two and not all(fits(tracer, like, item) for item in given) else like


def joined_of(remaining: Iterator[Any]) -> Any:
    """An item that has the classes of the numbers in all of these; None if there is none."""
    first = next(remaining)
    found = [(leaf, classes_in(leaf)) for leaf in leaves(first)]
    for item in remaining:
        if not have_same_structure(first, item):
            return None
        for (_, classes), leaf in zip(found, leaves(item), strict=True):
            classes |= classes_in(leaf)
    likes = []
    for part, classes in found:
        if any(kind is None or kind[0] == "array" or kind[1].char not in NUMBERS for kind in classes):
            return None
        joined = lattice.of_classes(classes) if len(classes) > 1 else None
        if len(classes) > 1 and joined is None:
            return None
        likes.append(part if joined is None else lattice.Type(joined.kind, joined.dtype, None, joined.weak))
    return rebuilt(first, iter(likes))


def empty_columns(scope: Hooks, like: object, room: object) -> list[Column]:
    """Columns with that capacity for items like this one."""
    columns = [Column(leaf) for leaf in leaves(like)]
    for column in columns:
        column.rows = scope.call(np.empty, room, column.kind[1])
        if type(column.like) is lattice.Type:
            column.tags = scope.call(np.empty, room, bool)
    return columns
