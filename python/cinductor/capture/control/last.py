"""Names that are live behind a loop and dead at its head: they are what the last trip made of them.

An int or a view that is an expression of the trip is that expression in the last trip, so that a
view stays one. What was there before the loop stays what it is. Everything else is held: each trip
hands it on, and nobody looks at what the first one begins with.
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
        is_before = is_array and self.tracer.is_before(leaf.whole, self.mark)
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
        return self.tracer.last_value(leaf, self.carried.body) is not None

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
            most = self.tracer.most(size, self.mark)
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
            self.made[id(leaf)] = self.tracer.last_value(leaf, self.carried.body)
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
        is_like = self.tracer.same_type(leaf, held.node) == 1
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
