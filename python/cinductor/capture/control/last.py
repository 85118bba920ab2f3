"""Names that are live behind a loop and dead at its head: they are what the last trip made of them.

An int or a view that is an expression of the trip is that expression in the last trip, so that a
view stays one. What was there before the loop stays what it is. Everything else is live out: each trip
hands it on, and nobody looks at what the first one begins with.

How many trips there have to be is asked, too (`Trips`). A loop inside that makes Python's number NumPy's does so only where it makes a trip, which is checked behind
it. In later runs of the body around it the number is NumPy's from the beginning, and nobody asks; but
the first trip still begins with Python's. What earlier runs asked and the last one did not is
therefore asked before the region. Where it is not known there, the first trip is not like the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ..value.kinds import ATOMS, UNBOUND, have_same_structure, is_number, is_same, leaves, rebuilt
from ..value.objects import Traced, attributes_of, slots_of
from . import varying
from .alias import is_loose
from .phi import Phi, strength_of
from .state import ROWS

if TYPE_CHECKING:
    from .alias import Source
    from .carry import Carried


OURS = "__ci_"
NOWHERE = object()


class LastValue(Phi):
    """A value that each trip hands on; sources: what it may be of before the loop; before: the name's
    value there, where that can be its value behind it.
    """

    __slots__ = (
        "name", "place", "value", "sources", "is_loose", "node", "lengths", "shape", "before"
    )  # fmt: skip

    def __init__(self, name: str, place: int, value: Any, sources: list[Source]) -> None:
        self.name, self.place, self.value, self.sources = name, place, value, sources
        self.is_loose = False  # laid out otherwise in NumPy's memory
        self.node: tuple[Any, int] = (None, 0)  # in the body's block
        self.lengths: dict[int, varying.Length] = {}
        self.shape: tuple[Any, ...] = ()  # of its buffer
        self.before: Any = None

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        self.node = body, body.hold(self.value)
        if not self.lengths:
            body.result(self.value, first.param(self.value))
            if self.value.strong is not None:
                body.result(strength_of(tracer, self.value), first.param("?", "scalar"))
            return
        buffer = first.param(tracer.undefined(self.value, self.shape))
        varying.write(tracer, buffer, self.value, self.lengths)
        body.result(buffer)
        for length in self.lengths.values():
            first.param("i8", "python")
            body.result(varying.number_of(tracer, length.end))

    def operands(self, tracer: Any) -> list[Any]:
        if self.lengths:
            buffer = tracer.undefined(self.node, self.shape)
            return [buffer, *(tracer.lift(0) for _ in self.lengths)]
        body, number = self.node
        known = [body.undefined(number) if self.before is None else self.before]
        if self.value.strong is None:
            return known
        is_strong = tracer.lift(False) if self.before is None else strength_of(tracer, self.before)
        return [*known, is_strong]

    def kinds(self, operands: list[Any]) -> list[str]:
        strong = [] if self.value.strong is None else ["scalar"]
        return [self.value.kind, *("python" for _ in self.lengths), *strong]

    def behind(self, tracer: Any) -> Any:
        """The value behind the loop."""
        value, *others = self.made
        if self.lengths:
            for length, number in zip(self.lengths.values(), others, strict=True):
                length.define(tracer, number)
            return varying.read(tracer, value, self.lengths)
        return tracer.tagged(value, *others) if others else value


class Last:
    """Those names of one loop being captured."""

    def __init__(self, carried: Carried) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.values: dict[str, Any] = {}
        self.held: list[LastValue] = []
        self.made: dict[int, Any] = {}  # views in the last trip, by the object they are one of

    @property
    def mark(self) -> Any:
        return self.loop.attempt.mark  # type: ignore[union-attr]

    def needs_trip(self) -> bool:
        """Whether a name has its value from a trip. Nobody reads ours that no trip has set. Asked
        outside of the region, for the values before it may need nodes.
        """
        for held in self.held:
            held.before = self.value_before(held)
        for name, value in self.values.items():
            if value is UNBOUND or name.startswith(OURS):
                continue
            if any(type(v) is not LastValue or v.before is None for v in leaves(value)):
                return True
        return False

    # --- at the end of a trip ---

    def look(self, names: dict[str, Any]) -> str | None:
        """Sorts the names; one that only its last trip, run behind the region, can make."""
        site = self.loop.site
        self.names = names
        for name in site.live_out:
            is_carried = name in self.carried.names and self.carried.entry[name] is not UNBOUND
            if is_carried or name == site.flag:
                continue
            value = names.get(name, UNBOUND)
            parts = []
            for place, leaf in enumerate(leaves(value)):
                part = self.sort(name, place, leaf)
                if part is NOWHERE:
                    return name
                parts.append(part)
            self.values[name] = rebuilt(value, iter(parts))
        return None

    def sort(self, name: str, place: int, leaf: Any) -> Any:
        """The leaf as it is behind the loop, or held; NOWHERE when only the trip itself has it."""
        if type(leaf) is not Traced:
            is_fixed = leaf is UNBOUND or type(leaf) in ATOMS or is_number(leaf)
            return leaf if is_fixed or self.was_there(leaf) else NOWHERE
        is_array = leaf.kind == "array"
        is_before = is_array and self.mark.had(leaf.whole)
        if (is_before and leaf.is_whole) or (is_before or not is_array) and self.closes(leaf):
            return leaf
        sources = self.sources(name, place, leaf) if is_array else []
        if sources is None:
            return NOWHERE
        held = LastValue(name, place, leaf, sources)
        if is_array:
            held.is_loose = is_loose(self.carried.state.records, leaf)
        self.held.append(held)
        return held

    def was_there(self, leaf: Any) -> bool:
        """An object of before the loop."""
        is_plain = attributes_of(leaf) is None and not slots_of(type(leaf))
        if type(leaf) in ROWS or is_a(leaf, list | dict | set) or not is_plain:
            values = (*self.carried.entry.values(), *self.loop.others.values())
            return any(leaf is value for value in values)
        return True

    def closes(self, leaf: Any) -> bool:
        """Whether it is an expression of the trip."""
        if self.carried.is_while or self.carried.period > 1:
            return False
        return self.carried.body.last_value(leaf) is not None

    def sources(self, name: str, place: int, leaf: Any) -> list[Source] | None:
        """What it may be of before the loop; None where a copy will not do."""
        flow = self.carried.flow
        found: list[Source] = []
        for source in flow.aliases.sources(leaf):
            number = flow.number_of(source)
            if number is None and flow.is_before(source):
                if (
                    not (source.array.is_whole or self.carried.is_while)
                    and self.carried.runs_once()
                ):
                    return None
                found.append(Source(source.array.whole, looped=source.array.is_whole))
                continue
            if not leaf.is_whole or self.is_shared(name, place, source):
                return None
            if number is not None:
                if flow.is_written(flow.arrays[number]):
                    return None
                found += flow.sources(number)
        return found

    def is_shared(self, name: str, place: int, source: Source) -> bool:
        """Whether another name that is live behind the loop may end with it."""
        for other in self.loop.site.live_out:
            for number, leaf in enumerate(leaves(self.names.get(other))):
                if type(leaf) is Traced and (other, number) != (name, place):
                    for its in self.carried.flow.aliases.sources(leaf):
                        if its.storage == source.storage and not its.excludes(source):
                            return True
        return False

    # --- the region ---

    def finish(self, body: Any, first: Any) -> None:
        """Results of the body, and parameters of its first block."""
        for held in self.held:
            self.measure(held)
            held.results(self.tracer, body, first)
        for name, value in self.values.items():
            self.values[name] = rebuilt(value, map(self.closed, leaves(value)))

    def measure(self, held: LastValue) -> None:
        """Which of an array's sizes only the loop knows."""
        if held.value.kind != "array":
            return
        shape = []
        for axis, size in enumerate(held.value.shape):
            most = self.mark.most(size)
            if most is None:
                self.loop.fail(f"the size of {held.name} is known only in the loop")
            shape.append(most)
            if not is_same(most, size):
                held.lengths[axis] = varying.Length(0, size, most)
        held.shape = tuple(shape)

    def closed(self, leaf: Any) -> Any:
        if type(leaf) is not Traced or leaf.kind == "array" and leaf.is_whole:
            return leaf
        if id(leaf) not in self.made:
            self.made[id(leaf)] = self.carried.body.last_value(leaf)
        return self.made[id(leaf)]

    def value_before(self, held: LastValue) -> Any:
        """The name's value before the loop, where that can be its value behind it."""
        before = self.carried.entry[held.name]
        value = self.values[held.name]
        if before is UNBOUND or not have_same_structure(before, value):
            return None
        leaf = leaves(before)[held.place]
        if type(leaf) is not Traced or leaf.kind != held.value.kind:
            return None
        if leaf.strong is not None and held.value.strong is None:
            return None
        is_like = self.tracer.varying(leaf, held.node) == []
        return leaf if is_like else None

    def exits(self) -> dict[str, Any]:
        """The names' values behind the loop."""
        values: dict[LastValue, Any] = {}
        flow = self.carried.flow
        for held in self.held:
            value = values[held] = held.behind(self.tracer)
            sources = held.sources
            if held.before is not None and held.value.kind == "array":
                sources = sources + flow.of_entry(held.before)
            flow.aliases.add(value, sources)
            if held.is_loose:
                flow.aliases.loosen(value)
        return {
            name: rebuilt(value, (values[v] if type(v) is LastValue else v for v in leaves(value)))
            for name, value in self.values.items()
        }


# --- trips that have to be made ---


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
            most = self.carried.loop.attempt.mark.most(extent)  # type: ignore[union-attr]
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
