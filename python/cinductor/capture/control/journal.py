"""How anything that changes in a run of a body is put back, and what may not change there.

Bodies of loops and branches are run several times. Whatever changes passes a door: a call, a slot (an
attribute, an item, a shape), a step of an iterator, an augmented assignment. Each door tells the
journal before the change. The journal keeps what the object holds, or, where it has no row for the
object's class, refuses: RegionBreak. An object that was made behind a mark needs no row: it dies with
the run that made it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from ... import _core
from ..value.items import Items
from ..value.objects import hooked_in
from ..value.state import fill, held, is_one

RegionBreak = _core.RegionBreak


# What can be put back: exact classes, with what copies the contents; `fill` puts them back.
ROWS: dict[type, Callable[[Any], Any]] = {
    list: list.copy,
    dict: dict.copy,
    set: set.copy,
    types.CellType: held,
    Items: held,
}


def why_not_put_back(value: Any) -> str | None:
    """Why what a value holds could not be put back as it was; None where it can."""
    cls = type(value)
    if cls not in ROWS:
        return f"a {cls.__name__} changes"
    if cls in (dict, set) and hooked_in(value) is not None:
        return f"a {cls.__name__} changes whose keys have methods of their own"
    if cls is set:
        again: set[Any] = set()
        again.update(value.copy())  # as `fill` does
        if not _core.are_placed_alike(again, value):
            return "a set changes whose order comes from what it held before"
    return None


class Changes:
    """The changes since a place. is_kept: what ran since then stays unless it can be undone as a
    whole, so a change that nobody can undo is allowed.
    """

    def __init__(self, cells: Iterable[types.CellType], is_kept: bool = False) -> None:
        self.before: dict[int, tuple[Any, Any]] = {}
        self.born: dict[int, Any] = {}
        self.is_kept, self.can_undo = is_kept, True
        self.begin(cells)

    def begin(self, cells: Iterable[types.CellType]) -> None:
        """Nothing has changed yet; of a change of these cells nobody will tell."""
        self.before.clear()
        self.born.clear()
        for cell in cells:
            self.note(cell)

    def note(self, value: Any) -> None:
        """Keeps what a value holds that has a row."""
        if id(value) not in self.before:
            self.before[id(value)] = (value, ROWS[type(value)](value))

    def amend(self, container: dict[str, Any], key: str) -> None:
        """The dict had this item all along: nobody had looked."""
        found = self.before.get(id(container))
        if found is not None:
            found[1][key] = container[key]

    def swap(self) -> list[tuple[Any, Any]]:
        """Puts back what the containers held; returns what they hold now, but for cells that nobody
        has set.
        """
        now = []
        for container, before in self.before.values():
            items = ROWS[type(container)](container)
            if type(container) is types.CellType and all(map(is_one, before, items)):
                if len(before) == len(items):
                    continue
            now.append((container, items))
            fill(container, before)
        return now

    def undo(self, cells: Iterable[types.CellType]) -> None:
        """Puts back what the containers held, and begins anew."""
        self.swap()
        self.begin(cells)


class Journal:
    """The marks of one captured call, the innermost last."""

    def __init__(self) -> None:
        self.marks: list[Changes] = []
        self.cells: list[types.CellType] = []  # of names that functions inside of others set
        self.changes = 0
        self.unlike: dict[int, Any] = {}  # sets that no other with the same items is like

    def mark(self, is_kept: bool) -> Changes:
        """A new one."""
        self.marks.append(Changes(self.cells, is_kept))
        return self.marks[-1]

    def before_change(self, value: Any) -> None:
        """Called before an object changes; raises RegionBreak where that could not be undone."""
        self.changes += 1
        if type(value) is Items:
            for part in value.over:
                self.before_change(part)
        known = id(value) in self.unlike
        for mark in reversed(self.marks):
            if id(value) in mark.born:
                break
            if id(value) in mark.before and not known:
                continue
            why_not = why_not_put_back(value) if not known else "a set changes that was popped"
            if why_not is None:
                mark.note(value)
            elif mark.is_kept:
                mark.can_undo = False
            else:
                raise RegionBreak(why_not, "", 0)

    def before_pop(self, value: Any) -> None:
        """The same for what `pop` takes from a set: which item is next depends on those before."""
        if type(value) is set:
            self.unlike[id(value)] = value
        self.before_change(value)

    def note_born(self, value: Any) -> Any:
        """The value, an object that has just been made."""
        if self.marks:
            self.marks[-1].born[id(value)] = value
        return value

    def share(self, cells: Iterable[types.CellType]) -> None:
        """Cells that may be set from here on, unseen."""
        for cell in cells:
            if not any(cell is known for known in self.cells):
                self.cells.append(cell)
                self.before_change(cell)

    def amend(self, container: dict[str, Any], key: str) -> None:
        """The dict had this item all along: nobody had looked."""
        for mark in self.marks:
            mark.amend(container, key)

    def cut(self, count: int, keeps_born: bool = False) -> None:
        """Drops all marks but the first ones; what was done behind them is those to undo."""
        born: dict[int, Any] = {}
        while len(self.marks) > count:
            born.update(self.marks.pop().born)
        if keeps_born and self.marks:
            self.marks[-1].born.update(born)
