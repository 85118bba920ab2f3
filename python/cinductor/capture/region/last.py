"""Names that are live behind a loop and dead at its head: they are what the last trip made of them.

An int or a view that is an expression of the trip is that expression in the last trip, so that a
view stays one. What was there before the loop stays what it is. Everything else is held: each trip
hands it on, and nobody looks at what the first one begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ..value import varying
from ..value.aliases import is_loose
from ..value.objects import Traced, attributes_of
from ..value.state import ATOMS, UNBOUND, have_same_structure, is_number, is_same, leaves, rebuilt
from .parameters import strength_of

if TYPE_CHECKING:
    from ..value.aliases import Source
    from .carry import Carried

OURS = "__ci_"
NOWHERE = object()


class LastValue:
    """A value that each trip hands on; sources: what it may be of before the loop."""

    __slots__ = ("name", "place", "value", "sources", "is_loose", "number", "lengths", "shape")

    def __init__(self, name: str, place: int, value: Any, sources: list[Source]) -> None:
        self.name, self.place, self.value, self.sources = name, place, value, sources
        self.is_loose = False  # laid out otherwise in NumPy's memory
        self.number: Any = None  # in the body's block
        self.lengths: dict[int, varying.Length] = {}
        self.shape: tuple[Any, ...] = ()  # of its buffer


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

    @property
    def needs_trip(self) -> bool:
        """Whether a name has its value from a trip. Nobody reads ours that no trip has set."""
        for name, value in self.values.items():
            if value is UNBOUND or name.startswith(OURS):
                continue
            if any(type(v) is not LastValue or self.value_before(v) is None for v in leaves(value)):
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
            held.is_loose = is_loose(self.carried.sharing.aliases.records, leaf)
        self.held.append(held)
        return held

    def was_there(self, leaf: Any) -> bool:
        """An object of before the loop."""
        if is_a(leaf, list | dict | set) or attributes_of(leaf) is not None:
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
        sharing = self.carried.sharing
        found: list[Source] = []
        for source in sharing.aliases.sources(leaf):
            number = sharing.number_of(source)
            if number is None and sharing.is_before(source):
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
                if sharing.is_written(sharing.arrays[number]):
                    return None
                found += sharing.sources(number)
        return found

    def is_shared(self, name: str, place: int, source: Source) -> bool:
        """Whether another name that is live behind the loop may end with it."""
        for other in self.loop.site.live_out:
            for number, leaf in enumerate(leaves(self.names.get(other))):
                if type(leaf) is Traced and (other, number) != (name, place):
                    for its in self.carried.sharing.aliases.sources(leaf):
                        if its.storage == source.storage and not its.excludes(source):
                            return True
        return False

    # --- the region ---

    def finish(self, body: Any, first: Any) -> None:
        """Results of the body, and parameters of its first block."""
        tracer = self.tracer
        for held in self.held:
            self.measure(held)
            held.number = body.hold(held.value)
            if not held.lengths:
                body.result(held.value, first.param(held.value))
                if held.value.strong is not None:
                    body.result(strength_of(tracer, held.value), first.param("?", "scalar"))
                continue
            buffer = first.param(tracer.undefined(held.value, held.shape))
            varying.write(tracer, buffer, held.value, held.lengths)
            body.result(buffer)
            for length in held.lengths.values():
                first.param("i8", "python")
                body.result(varying.number_of(tracer, length.end))
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

    def entries(self) -> list[Any]:
        """What the first trip begins with."""
        entries: list[Any] = []
        body, tracer = self.carried.body, self.tracer
        for held in self.held:
            before = self.value_before(held)
            if held.lengths:
                entries.append(tracer.undefined((body, held.number), held.shape))
                entries += [tracer.lift(0) for _ in held.lengths]
            else:
                entries.append(body.undefined(held.number) if before is None else before)
            if held.value.strong is not None:
                known = False if before is None else strength_of(tracer, before)
                entries.append(known if type(known) is Traced else tracer.lift(known))
        return entries

    def kinds(self) -> list[str]:
        """Of the values that the region hands on."""
        kinds = []
        for held in self.held:
            kinds.append(held.value.kind)
            kinds += ["python" for _ in held.lengths]
            kinds += ["scalar"] if held.value.strong is not None else []
        return kinds

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
        is_like = self.tracer.same_type(leaf, (self.carried.body, held.number)) == 1
        return leaf if is_like else None

    def exits(self, made: Iterator[Any]) -> dict[str, Any]:
        """The names' values behind the loop."""
        values: dict[LastValue, Any] = {}
        for held in self.held:
            value = next(made)
            if held.lengths:
                for length in held.lengths.values():
                    length.define(self.tracer, next(made))
                value = varying.read(self.tracer, value, held.lengths)
            elif held.value.strong is not None:
                value = self.tracer.tagged(value, next(made))
            values[held] = value
            before = self.value_before(held)
            sharing, sources = self.carried.sharing, held.sources
            if before is not None and held.value.kind == "array":
                sources = sources + sharing.of_entry(before)
            sharing.aliases.add(value, sources)
            if held.is_loose:
                sharing.aliases.loosen(value)
        return {
            name: rebuilt(value, (values[v] if type(v) is LastValue else v for v in leaves(value)))
            for name, value in self.values.items()
        }
