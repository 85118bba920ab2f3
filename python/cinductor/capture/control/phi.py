"""The signature of a region: a `Phi` for each value that its blocks pass on, in order; and live-out names of a loop.

    loop   operands of the first iteration -> head, in the block -> results of an iteration -> made, after the loop
    if                                                              results of an arm       -> made, after the branch

A Phi uses as many positions of the region as it needs and gets the values at these positions back, so that no code
depends on parallel lists.

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

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _core
from ...base.class_lookup import is_a
from ..containers import REFUSED, row_of
from ..kinds import (
    ATOMS,
    UNBOUND,
    have_same_structure,
    is_number,
    is_same,
    kind_of,
    leaves,
    lifted,
    rebuilt,
    strength,
)
from ..objects import Traced, attributes_of
from . import lattice
from .alias import is_loose
from .lattice import type_of

if TYPE_CHECKING:
    from .alias import Source
    from .carry import Carried
    from .lattice import Type


class Phi:
    """One value that a region passes on. made: the value after the region."""

    __slots__ = ("made",)
    made: list[Any]

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        """The operands of a loop's first iteration."""
        raise NotImplementedError

    def kinds(self, operands: list[Any]) -> list[str]:
        """Of what the region hands on."""
        return [operand.kind for operand in operands]

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        """Append the values at the end of an iteration to the results of the body. Parameters that
        are not read at the loop head are created here, in the first block."""
        raise NotImplementedError


def make_region(
    tracer: _core.Tracer, op: str, blocks: tuple[Any, ...], phis: Iterable[Phi], condition: object = None
) -> None:
    """Complete the signature and make the node; each Phi gets its values. condition: of an `if`."""
    operands: list[Any] = [] if condition is None else [condition]
    kinds: list[list[str]] = []
    all_phis = list(phis)
    for phi in all_phis:
        mine = phi.operands(tracer) if condition is None else []
        operands += mine
        kinds.append(phi.kinds(mine))
    names = tuple([kind for part in kinds for kind in part])
    made: Iterator[Any] = iter(tracer.region(op, blocks, tuple(operands), names))
    for phi, part in zip(all_phis, kinds, strict=True):
        phi.made = [next(made) for _ in part]


class Number(Phi):
    """An internal number: the iteration counter, the flag that ends a loop, or a varying size."""

    __slots__ = ("head", "begin", "end")

    def __init__(self, head: Any, begin: Callable[[], Any], end: Callable[[], Any]) -> None:
        self.head, self.begin, self.end = head, begin, end

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        return [self.begin()]

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        body.result(self.end())


class Memory(Phi):
    """An array that is written to: the versions of its memory."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        return [self.handle]

    def kinds(self, operands: list[Any]) -> list[str]:
        return ["array"]

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        body.result(self.handle)

    def rebuild(self) -> None:
        """Give the memory its new version."""
        self.handle.set_version(self.made[0])


class Value(Phi):
    """A leaf of a name's value, passed on by value with its type. params: a buffer, of which the value at the head
    may be the first elements, and the bool of a tagged number.
    """

    __slots__ = ("name", "place", "entry", "type", "params", "value", "version", "head", "ends")

    def __init__(self, where: tuple[str, int], entry: Any, kind: Type) -> None:
        (self.name, self.place), self.entry, self.type = where, entry, kind
        self.ends: list[Any] = []

    def make_params(self, tracer: _core.Tracer, block: _core.Block, like: object) -> None:
        """Parameters of the first block; like: an array of the largest size."""
        kind = self.type
        if kind.like is None:
            self.params = [block.param(kind.dtype, kind.kind)]
        elif not kind.lengths:
            self.params = [block.param(kind.like)]
        else:
            self.params = [block.param(tracer.undefined(like, shape_of_buffer(like, kind)))]
        if kind.weak is not None:
            self.params.append(block.param("?", "scalar"))

    def open(self, tracer: Any, block: Any) -> None:
        """The value at the head of an iteration."""
        self.make_params(tracer, block, self.entry)
        value, *strong = self.params
        if self.type.lengths:
            value = lattice.read(tracer, value, self.type.lengths, self.entry.shape)
        self.value, self.version = value, value.version
        self.head = tracer.tagged(value, *strong, self.type.weak) if strong else value

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        entry, kind = self.entry, self.type
        if kind.kind == "array":
            return [self.entry_buffer(tracer)]
        known = [lifted(tracer, entry, kind.kind, kind.dtype)]
        return known if kind.weak is None else [*known, strength_of(tracer, entry, kind)]

    def kinds(self, operands: list[Any]) -> list[str]:
        return [param.kind for param in self.params]

    def entry_buffer(self, tracer: Any) -> Any:
        """The array itself, or a buffer with sufficient capacity that contains it."""
        entry, shape = self.entry, shape_of_buffer(self.entry, self.type)
        if len(shape) == entry.ndim and all(map(is_same, shape, entry.shape)):
            return entry
        buffer = tracer.undefined(entry, shape)
        lattice.write(tracer, buffer, entry, self.type.lengths)
        return buffer

    def end(self, tracer: _core.Tracer, leaf: Any) -> None:
        """Set the leaf's value at the end of an iteration."""
        kind = self.type
        if kind.kind == "array":
            self.ends = [self.put_away(tracer, leaf) if kind.lengths else leaf]
            return
        self.ends = [lifted(tracer, leaf, kind.kind, kind.dtype)]
        if kind.weak is not None:
            self.ends.append(strength_of(tracer, leaf, kind))

    def put_away(self, tracer: _core.Tracer, leaf: object) -> Any:
        """An array in a buffer as the region hands it on."""
        (param,) = self.params
        if is_same(leaf, self.value) and self.value.version == self.version:
            return param
        buffer = tracer.undefined(param, param.shape)
        lattice.write(tracer, buffer, leaf, self.type.lengths)
        return buffer

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        for value, param in zip(self.ends, self.params, strict=True):
            body.result(value.fitted(param) if param.kind == "array" else value, param)

    def behind(self, tracer: Any) -> Any:
        """The leaf after the region."""
        if self.type.lengths:
            sizes = None if self.entry is None else self.entry.shape
            return lattice.read(tracer, self.made[0], self.type.lengths, sizes)
        return self.made[0] if self.type.weak is None else tracer.tagged(*self.made, self.type.weak)


class LastValue(Value):
    """A value that is not read at the head of an iteration: the live-out value of a name. entry:
    the name's value before the loop, if that can be its value after it; sources: the earlier
    arrays that it may be."""

    __slots__ = ("sources", "is_loose", "node", "sizes")

    def __init__(self, where: tuple[str, int], value: Any, kind: Type, sources: Any) -> None:
        super().__init__(where, None, kind)
        self.value, self.sources = value, sources
        self.is_loose = False  # its layout differs in NumPy
        self.node: tuple[Any, int] = (None, 0)  # in the body's block
        self.sizes: list[Number] = []  # those that only the loop knows

    def vary(self, tracer: _core.Tracer, axis: int, length: lattice.Length) -> None:
        """Record that one of its sizes varies between iterations."""
        self.type.lengths[axis] = length
        end = length.end
        self.sizes.append(Number(None, lambda: tracer.lift(0), lambda: lattice.number_of(tracer, end)))

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        if self.entry is not None:
            return super().operands(tracer)
        body, number = self.node
        shape = shape_of_buffer(self.value, self.type) if self.type.lengths else None
        known = body.undefined(number) if shape is None else tracer.undefined(self.node, shape)
        return [known] if self.type.weak is None else [known, tracer.lift(False)]

    def put_away(self, tracer: _core.Tracer, leaf: object) -> Any:
        (param,) = self.params
        lattice.write(tracer, param, leaf, self.type.lengths)
        return param

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        self.node = body, body.live_out(self.value)
        self.make_params(tracer, first, self.value)
        self.end(tracer, self.value)
        super().results(tracer, body, first)
        for size in self.sizes:
            size.head = first.param("i8", "python")
            size.results(tracer, body, first)

    def behind(self, tracer: _core.Tracer) -> Any:
        for length, size in zip(self.type.lengths.values(), self.sizes, strict=True):
            length.define(tracer, size.made[0])
        return super().behind(tracer)


def shape_of_buffer(entry: Any, kind: Type) -> tuple[Any, ...]:
    """The largest size of the array over all iterations."""
    lengths = kind.lengths
    if kind.room is not None:
        return (kind.room,)
    return tuple(lengths[k].capacity if k in lengths else n for k, n in enumerate(entry.shape))


def strength_of(tracer: _core.Tracer, value: Any, kind: Type) -> Any:
    """The bool of a tagged number of that type, traced."""
    strong = strength(value, (kind.kind, kind.dtype))
    return strong if type(strong) is Traced else tracer.lift(strong)


# --- live-out names ---


OURS = "__ci_"
NOWHERE = object()


class Last:
    """The live-out names of one loop being captured."""

    def __init__(self, carried: Carried) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.values: dict[str, Any] = {}
        self.live_out: list[LastValue] = []
        self.made: dict[int, Any] = {}  # views in the last iteration, by the object that they are one of

    @property
    def mark(self) -> Any:
        return self.loop.snapshot.graph  # type: ignore[union-attr]

    def needs_trip(self) -> bool:
        """True if a name gets its value from an iteration. An internal name is not read if no
        iteration has set it. Computed outside of the region, because the values before it may
        need nodes."""
        for last in self.live_out:
            last.entry = self.value_before(last)
        for name, value in self.values.items():
            if value is UNBOUND or name.startswith(OURS):
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
            for place, leaf in enumerate(leaves(value)):
                part = self.sort(name, place, leaf)
                if part is NOWHERE:
                    return name
                parts.append(part)
            self.values[name] = rebuilt(value, iter(parts))
        return None

    def sort(self, name: str, place: int, leaf: object) -> Any:
        """The leaf as it is after the loop, or live out; NOWHERE if it only exists in the iteration."""
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
        last = LastValue((name, place), leaf, type_of(leaf), sources)
        if is_array:
            last.is_loose = is_loose(self.carried.state.records, leaf)
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

    def sources(self, name: str, place: int, leaf: Traced) -> list[Source] | None:
        """The earlier arrays that the name may be; None if a copy is not enough."""
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
        """True if another name that is live after the loop may end with it."""
        for other in self.loop.site.live_out:
            for number, leaf in enumerate(leaves(self.names.get(other))):
                if type(leaf) is Traced and (other, number) != (name, place):
                    for its in self.carried.flow.aliases.sources(leaf):
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
        leaf = leaves(before)[last.place]
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
        flow = self.carried.flow
        for last in self.live_out:
            value = values[last] = last.behind(self.tracer)
            sources = last.sources
            if last.entry is not None and last.value.kind == "array":
                sources = sources + [flow.of_before(s.array) for s in flow.aliases.sources(last.entry)]
            flow.aliases.add(value, sources)
            if last.is_loose:
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
