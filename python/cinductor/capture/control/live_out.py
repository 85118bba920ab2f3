"""Live-out names of a loop, and the iterations that results require.

A name that is live after a loop but dead at its head has its value of the last iteration (`Last`). An int or a
view that is an expression of the iteration is that expression in the last iteration, so a view stays a view. A
value from before the loop stays itself. Everything else is live out: each iteration passes it on, and the value at
the entry is never read.

Some results require that an iteration was run (`Trips`). An inner loop that turns Python's number into NumPy's
only does so if it runs at least once, which is checked after it. In later runs of the outer body the number is
NumPy's from the start, and nothing is checked; but the first iteration still starts with Python's number. So the
requirements of earlier runs that the last run dropped are checked before the region. If they cannot be known
there, the first iteration is peeled.
"""

from __future__ import annotations

from typing import Any

from ... import _core
from ...base.class_lookup import is_a
from ...base.user_frame import OWN_PREFIX
from ..containers import REFUSED, row_of
from ..kinds import (
    ATOMS,
    UNBOUND,
    have_same_structure,
    is_number,
    is_same,
    kind_of,
    leaves,
    rebuilt,
)
from ..objects import Traced, attributes_of
from . import lattice
from .alias import Source
from .flow import Flow
from .lattice import type_of
from .loop_state import LoopState
from .phi import LastValue

NOWHERE = object()


class Last:
    """The live-out names of one loop being captured."""

    def __init__(self, carried: LoopState, flow: Flow) -> None:
        self.carried, self.loop, self.tracer, self.flow = carried, carried.loop, carried.tracer, flow
        self.values: dict[str, Any] = {}
        self.live_out: list[LastValue] = []
        self.made: dict[int, Any] = {}  # views in the last iteration, by the object that they are one of

    @property
    def mark(self) -> Any:
        return self.loop.snapshot.graph  # type: ignore[union-attr]

    def needs_iteration(self) -> bool:
        """True if a name gets its value from an iteration. An internal name is not read if no
        iteration has set it. Computed outside of the region, because the values before it may
        need nodes."""
        for last in self.live_out:
            last.entry = self.value_before(last)
        for name, value in self.values.items():
            if value is UNBOUND or name.startswith(OWN_PREFIX):
                continue
            if any(type(v) is not LastValue or v.entry is None for v in leaves(value)):
                return True
        return False

    # --- at the end of an iteration ---

    def sort_names(self, names: dict[str, Any]) -> str | None:
        """Classify the names. One of them may require that the last iteration is run after the region."""
        site = self.loop.site
        self.names = names
        for name in site.live_out:
            is_carried = name in self.carried.names and self.carried.entry[name] is not UNBOUND
            if is_carried or name == site.flag:
                continue
            value = names.get(name, UNBOUND)
            parts = []
            for position, leaf in enumerate(leaves(value)):
                part = self.sort(name, position, leaf)
                if part is NOWHERE:
                    return name
                parts.append(part)
            self.values[name] = rebuilt(value, iter(parts))
        return None

    def sort(self, name: str, position: int, leaf: object) -> Any:
        """The leaf as it is after the loop, or live out; NOWHERE if it only exists in the iteration."""
        if type(leaf) is not Traced:
            is_fixed = leaf is UNBOUND or type(leaf) in ATOMS or is_number(leaf)
            return leaf if is_fixed or self.was_there(leaf) else NOWHERE
        is_array = leaf.kind == "array"
        is_before = is_array and self.mark.had(leaf.whole)
        if (is_before and leaf.is_whole) or (is_before or not is_array) and self.closes(leaf):
            return leaf
        sources = self.sources(name, position, leaf) if is_array else []
        if sources is None:
            return NOWHERE
        last = LastValue((name, position), leaf, type_of(leaf), sources)
        if is_array:
            last.may_differ_in_layout = self.flow.may_differ_in_layout(leaf)
        self.live_out.append(last)
        return last

    def was_there(self, leaf: object) -> bool:
        """True for an object from before the loop."""
        if row_of(leaf) is not REFUSED or is_a(leaf, list | dict | set) or attributes_of(leaf) is not None:
            values = (*self.carried.entry.values(), *self.loop.others.values())
            return any(leaf is value for value in values)
        return True

    def closes(self, leaf: object) -> bool:
        """True if it is an expression of the iteration, of which there is one."""
        if self.carried.is_while or self.carried.period > 1 or self.loop.ended is not False:
            return False
        return self.carried.body.last_value(leaf) is not None

    def sources(self, name: str, position: int, leaf: Traced) -> list[Source] | None:
        """The earlier arrays that the name may be; None if a copy is not enough."""
        flow = self.flow
        found: list[Source] = []
        for source in flow.aliases.sources(leaf):
            number = flow.number_of(source)
            if number is None and flow.is_before(source):
                if (
                    not (source.array.is_whole or self.carried.is_while)
                    and self.carried.runs_once()
                ):
                    return None
                is_part = source.is_part or not source.array.is_whole
                found.append(Source(source.array.whole, looped=not is_part, is_part=is_part))
                continue
            if not leaf.is_whole or self.is_shared(name, position, source):
                return None
            if number is not None:
                if flow.is_written(flow.arrays[number]):
                    return None
                found += flow.sources(number)
        return found

    def is_shared(self, name: str, position: int, source: Source) -> bool:
        """True if another name that is live after the loop may end with it."""
        for other in self.loop.site.live_out:
            for number, leaf in enumerate(leaves(self.names.get(other))):
                if type(leaf) is Traced and (other, number) != (name, position):
                    for its in self.flow.aliases.sources(leaf):
                        if its.storage == source.storage and not its.excludes(source):
                            return True
        return False

    # --- the region ---

    @property
    def phis(self) -> list[Any]:
        return [phi for last in self.live_out for phi in (last, *last.sizes)]

    def finish(self, body: _core.Block, first: _core.Block) -> None:
        """Results of the body, and parameters of its first block."""
        for last in self.live_out:
            self.measure(last)
            last.results(self.tracer, body, first)
        for name, value in self.values.items():
            self.values[name] = rebuilt(value, map(self.closed, leaves(value)))

    def measure(self, last: LastValue) -> None:
        """Determine which of an array's sizes only the loop knows."""
        if last.value.kind != "array":
            return
        for axis, size in enumerate(last.value.shape):
            most = self.mark.most(size)
            if most is None:
                self.loop.fail(f"the size of {last.name} is known only in the loop")
            if not is_same(most, size):
                last.vary(self.tracer, axis, lattice.Length(0, size, most))

    def closed(self, leaf: object) -> Any:
        if type(leaf) is not Traced or leaf.kind == "array" and leaf.is_whole:
            return leaf
        if id(leaf) not in self.made:
            self.made[id(leaf)] = self.carried.body.last_value(leaf)
        return self.made[id(leaf)]

    def value_before(self, last: LastValue) -> Any:
        """The name's value before the loop, if that can be its value after it."""
        before = self.carried.entry[last.name]
        value = self.values[last.name]
        if before is UNBOUND or not have_same_structure(before, value):
            return None
        leaf = leaves(before)[last.position]
        if is_number(leaf) and kind_of(leaf) == kind_of(last.value):
            leaf = self.tracer.lift(leaf)
        if type(leaf) is not Traced or leaf.kind != last.value.kind:
            return None
        if not lattice.is_as_weak(leaf, last.value):
            return None
        is_like = self.tracer.varying(leaf, last.node) == []
        return leaf if is_like else None

    def exits(self) -> dict[str, Any]:
        """The names' values after the loop."""
        values: dict[LastValue, Any] = {}
        flow = self.flow
        for last in self.live_out:
            value = values[last] = last.behind(self.tracer)
            sources = last.sources
            if last.entry is not None and last.value.kind == "array":
                sources = sources + [flow.of_before(s) for s in flow.aliases.sources(last.entry)]
            flow.aliases.add(value, sources)
            if last.may_differ_in_layout:
                flow.aliases.loosen(value)
        return {
            name: rebuilt(value, (values[v] if type(v) is LastValue else v for v in leaves(value)))
            for name, value in self.values.items()
        }


# --- required iterations ---


class Trips:
    """The iteration counts that the runs of a loop's body required, by inner loop; None for a count
    that is not known before the region."""

    def __init__(self) -> None:
        self.before: dict[Any, list[Any]] = {}
        self.now: dict[Any, list[Any]] = {}

    def open(self) -> None:
        """Begin another run."""
        for key, extents in self.now.items():
            if len(extents) > len(self.before.get(key, ())):
                self.before[key] = extents
        self.now = {}

    def note(self, key: object, extent: object, mark: _core.Mark) -> None:
        """An inner loop must run an iteration. An extent of None: its number of iterations is unknown. mark: the
        start of the enclosing loop.
        """
        if extent is not None:
            most = mark.most(extent)
            extent = extent if most is not None and is_same(most, extent) else None
        self.now.setdefault(key, []).append(extent)

    def dropped(self) -> list[tuple[Any, Any]]:
        """The requirements that the last run dropped."""
        return [
            (key, extent)
            for key, extents in self.before.items()
            if len(extents) > len(self.now.get(key, ()))
            for extent in extents
        ]

    def are_known(self) -> bool:
        """True if all requirements can be checked before the region."""
        return all(extent is not None for _, extent in self.dropped())
