"""Trips that loops inside of a loop make in its first trip, and so in the region made of it.

A loop that makes Python's number NumPy's does so only where it makes a trip, which is checked behind
it. In later runs of the body around it the number is NumPy's from the beginning, and nobody asks; but
the first trip still begins with Python's. What earlier runs asked and the last one did not is
therefore asked before the region. Where it is not known there, the first trip is not like the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..value.kinds import is_same

if TYPE_CHECKING:
    from .carry import Carried


class Trips:
    """What the runs of one loop's body asked: by loop inside, its numbers of trips, None for one that
    is not known before the region.
    """

    def __init__(self, carried: Carried) -> None:
        self.carried = carried
        self.before: dict[Any, list[Any]] = {}
        self.now: dict[Any, list[Any]] = {}

    def open(self) -> None:
        """Another run begins."""
        for key, extents in self.now.items():
            if len(extents) > len(self.before.get(key, ())):
                self.before[key] = extents
        self.now = {}

    def note(self, key: Any, extent: Any) -> None:
        """A loop inside has to make a trip; an extent of None: it has no number of trips."""
        if extent is not None:
            most = self.carried.tracer.most(extent, self.carried.loop.attempt.mark)  # type: ignore[union-attr]
            extent = extent if most is not None and is_same(most, extent) else None
        self.now.setdefault(key, []).append(extent)

    def make_sure(self, count: int, counter: Any) -> None:
        """Behind the region: it made that many trips; where it makes types what they are, one."""
        carried, loop = self.carried, self.carried.loop
        makes_types = any(map(carried.is_live_behind, carried.types.joined))
        count = max(count, makes_types)
        if count <= int(carried.is_endless):
            return
        if counter is not None:
            enough = carried.tracer.apply("greater_equal", counter, count)
            loop.check(enough, "the loop makes a trip")
        elif carried.is_while or not loop.makes_trip(carried.extent - (count - 1)):
            loop.check(False, "the loop makes a trip")
        if makes_types and (carried.is_while or type(carried.extent) is not int):
            self.tell(loop.key, None if carried.is_while else carried.extent)

    def tell(self, key: Any, extent: Any) -> None:
        """The loop around this one hears of it."""
        for region in reversed(self.carried.state.active):
            outer = region.carried
            if outer is not None and outer is not self.carried:
                outer.trips.note(key, extent)
                return

    def lost(self) -> list[tuple[Any, Any]]:
        """What the last run did not ask any more."""
        return [
            (key, extent)
            for key, extents in self.before.items()
            if len(extents) > len(self.now.get(key, ()))
            for extent in extents
        ]

    def are_known(self) -> bool:
        """Whether all that can be asked before the region."""
        return all(extent is not None for _, extent in self.lost())

    def ask(self) -> None:
        """Asks it, where the first trip begins with numbers of another type."""
        loop = self.carried.loop
        if not self.carried.types.joined:
            return
        for key, extent in self.lost():
            if not loop.makes_trip(extent):
                loop.fail("a loop inside makes no trip")
            self.tell(key, extent)
