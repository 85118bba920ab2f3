"""The signature of a region: a `Phi` for each value that its blocks pass on, in order.

    loop   operands of the first iteration -> head, in the block -> results of an iteration -> made, after the loop
    if                                                              results of an arm       -> made, after the branch

A Phi uses as many positions of the region as it needs and gets the values at these positions back, so that no code
depends on parallel lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _core
from ..kinds import is_same, lifted, strength
from ..objects import Traced
from . import lattice
from .alias import Source
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

    def __init__(self, head: Traced | None, begin: Callable[[], Any], end: Callable[[], Any]) -> None:
        self.head, self.begin, self.end = head, begin, end

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        return [self.begin()]

    def results(self, tracer: _core.Tracer, body: _core.Block, first: _core.Block) -> None:
        body.result(self.end())


class Memory(Phi):
    """An array that is written to: the versions of its memory."""

    __slots__ = ("handle",)

    def __init__(self, handle: Traced) -> None:
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

    __slots__ = ("name", "position", "entry", "type", "params", "value", "version", "head", "ends")

    def __init__(self, where: tuple[str, int], entry: object, kind: Type) -> None:
        (self.name, self.position), self.type = where, kind
        self.entry: Any = entry
        self.ends: list[Any] = []

    def make_params(self, tracer: _core.Tracer, block: _core.Block, like: Traced) -> None:
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

    def open(self, tracer: _core.Tracer, block: _core.Block) -> None:
        """The value at the head of an iteration."""
        self.make_params(tracer, block, self.entry)
        value: Any
        value, *strong = self.params
        if self.type.lengths:
            value = lattice.read(tracer, value, self.type.lengths, self.entry.shape)
        self.value, self.version = value, value.version
        self.head = tracer.tagged(value, strong[0], self.type.weak) if strong else value

    def operands(self, tracer: _core.Tracer) -> list[Any]:
        entry, kind = self.entry, self.type
        if kind.kind == "array":
            return [self.entry_buffer(tracer)]
        known = [lifted(tracer, entry, kind.kind, kind.dtype)]
        return known if kind.weak is None else [*known, strength_of(tracer, entry, kind)]

    def kinds(self, operands: list[Any]) -> list[str]:
        return [param.kind for param in self.params]

    def entry_buffer(self, tracer: _core.Tracer) -> Any:
        """The array itself, or a buffer with sufficient capacity that contains it."""
        entry, shape = self.entry, shape_of_buffer(self.entry, self.type)
        if len(shape) == entry.ndim and all(map(is_same, shape, entry.shape)):
            return entry
        buffer = tracer.undefined(entry, shape)
        lattice.write(tracer, buffer, entry, self.type.lengths)
        return buffer

    def end(self, tracer: _core.Tracer, leaf: Traced) -> None:
        """Set the leaf's value at the end of an iteration."""
        kind = self.type
        if kind.kind == "array":
            self.ends = [self.put_away(tracer, leaf) if kind.lengths else leaf]
            return
        self.ends = [lifted(tracer, leaf, kind.kind, kind.dtype)]
        if kind.weak is not None:
            self.ends.append(strength_of(tracer, leaf, kind))

    def put_away(self, tracer: _core.Tracer, leaf: Traced) -> Any:
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

    def behind(self, tracer: _core.Tracer) -> Any:
        """The leaf after the region."""
        if self.type.lengths:
            sizes = None if self.entry is None else self.entry.shape
            return lattice.read(tracer, self.made[0], self.type.lengths, sizes)
        return self.made[0] if self.type.weak is None else tracer.tagged(self.made[0], self.made[1], self.type.weak)


class LastValue(Value):
    """A value that is not read at the head of an iteration: the live-out value of a name. entry:
    the name's value before the loop, if that can be its value after it; sources: the earlier
    arrays that it may be."""

    __slots__ = ("sources", "may_differ_in_layout", "node", "sizes")

    def __init__(self, where: tuple[str, int], value: Traced, kind: Type, sources: list[Source]) -> None:
        super().__init__(where, None, kind)
        self.value, self.sources = value, sources
        self.may_differ_in_layout = False  # its layout differs in NumPy
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

    def put_away(self, tracer: _core.Tracer, leaf: Traced) -> Any:
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


def shape_of_buffer(entry: Traced, kind: Type) -> tuple[Any, ...]:
    """The largest size of the array over all iterations."""
    lengths = kind.lengths
    if kind.room is not None:
        return (kind.room,)
    return tuple(lengths[k].capacity if k in lengths else n for k, n in enumerate(entry.shape))


def strength_of(tracer: _core.Tracer, value: object, kind: Type) -> Any:
    """The bool of a tagged number of that type, traced."""
    strong = strength(value, (kind.kind, kind.dtype))
    return strong if type(strong) is Traced else tracer.lift(strong)
