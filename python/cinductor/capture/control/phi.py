"""A region's signature: what its blocks hand on, a `Phi` for each thing, in order.

    loop   operands, of the first trip -> head, in the block -> results, of a trip -> made, behind
    if                                                           results, of an arm -> made, behind

A Phi takes as many places of the region as it needs and is given its own back, so nothing rests on
lists that agree in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..value.kinds import is_same, lifted, strength
from ..value.objects import Traced
from . import varying

if TYPE_CHECKING:
    from .lattice import Type


class Phi:
    """One thing that a region hands on. made: what comes of it behind the region."""

    __slots__ = ("made",)

    def operands(self, tracer: Any) -> list[Any]:
        """What a loop's first trip begins with."""
        raise NotImplementedError

    def kinds(self, operands: list[Any]) -> list[str]:
        """Of what the region hands on."""
        return [operand.kind for operand in operands]

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        """What a trip ends with, as results of its body; parameters that nobody looks at at its head
        are made here, in the first block.
        """
        raise NotImplementedError


def make_region(
    tracer: Any, op: str, blocks: tuple[Any, ...], phis: Iterable[Phi], condition: Any = None
) -> None:
    """Closes the signature: the node, of which each Phi is given its values. condition: of an if."""
    operands: list[Any] = [] if condition is None else [condition]
    kinds: list[list[str]] = []
    all_phis = list(phis)
    for phi in all_phis:
        mine = phi.operands(tracer) if condition is None else []
        operands += mine
        kinds.append(phi.kinds(mine))
    names = tuple(kind for part in kinds for kind in part)
    made: Iterator[Any] = iter(tracer.region(op, blocks, tuple(operands), names))
    for phi, part in zip(all_phis, kinds, strict=True):
        phi.made = [next(made) for _ in part]


class Number(Phi):
    """A number of our own: the counter of trips, the flag that ends a loop, a size that changes."""

    __slots__ = ("head", "begin", "end")

    def __init__(self, head: Any, begin: Callable[[], Any], end: Callable[[], Any]) -> None:
        self.head, self.begin, self.end = head, begin, end

    def operands(self, tracer: Any) -> list[Any]:
        return [self.begin()]

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        body.result(self.end())


class Memory(Phi):
    """An array that is written to: the versions of its memory."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def operands(self, tracer: Any) -> list[Any]:
        return [self.handle]

    def kinds(self, operands: list[Any]) -> list[str]:
        return ["array"]

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        body.result(self.handle)

    def rebuild(self, tracer: Any) -> None:
        """The memory has its new version."""
        tracer.set_version(self.handle, self.made[0])


class Value(Phi):
    """A leaf of a name's value, handed on by value as the type says. params: one, of which the value
    at the head may be the first elements, and the bool of a tagged number.
    """

    __slots__ = ("name", "place", "entry", "type", "params", "value", "version", "head", "ends")

    def __init__(self, where: tuple[str, int], entry: Any, kind: Type) -> None:
        (self.name, self.place), self.entry, self.type = where, entry, kind
        self.ends: list[Any] = []

    def make_params(self, tracer: Any, block: Any, like: Any) -> None:
        """Parameters of the first block; like: an array that is as large as it may be."""
        kind = self.type
        if kind.like is None:
            self.params = [block.param(kind.dtype, kind.kind)]
        elif not kind.lengths:
            self.params = [block.param(kind.like)]
        else:
            self.params = [block.param(tracer.undefined(like, shape_of_buffer(like, kind)))]
        if kind.tagged:
            self.params.append(block.param("?", "scalar"))

    def open(self, tracer: Any, block: Any) -> None:
        """The value at the head of a trip."""
        self.make_params(tracer, block, self.entry)
        value, *strong = self.params
        if self.type.lengths:
            value = varying.read(tracer, value, self.type.lengths, self.entry.shape)
        self.value, self.version = value, value.version
        self.head = tracer.tagged(value, *strong) if strong else value

    def operands(self, tracer: Any) -> list[Any]:
        entry, kind = self.entry, self.type
        if kind.kind == "array":
            return [self.entry_buffer(tracer)]
        known = [lifted(tracer, entry, kind.kind, kind.dtype)]
        return [*known, strength_of(tracer, entry)] if kind.tagged else known

    def kinds(self, operands: list[Any]) -> list[str]:
        return [param.kind for param in self.params]

    def entry_buffer(self, tracer: Any) -> Any:
        """The array itself, or memory that is large enough with the array in it."""
        entry, shape = self.entry, shape_of_buffer(self.entry, self.type)
        if len(shape) == entry.ndim and all(map(is_same, shape, entry.shape)):
            return entry
        buffer = tracer.undefined(entry, shape)
        varying.write(tracer, buffer, entry, self.type.lengths)
        return buffer

    def end(self, tracer: Any, leaf: Any) -> None:
        """What the leaf is at the end of a trip."""
        kind = self.type
        if kind.kind == "array":
            self.ends = [self.put_away(tracer, leaf) if kind.lengths else leaf]
            return
        self.ends = [lifted(tracer, leaf, kind.kind, kind.dtype)]
        if kind.tagged:
            self.ends.append(strength_of(tracer, leaf))

    def put_away(self, tracer: Any, leaf: Any) -> Any:
        """An array in a buffer as the region hands it on."""
        (param,) = self.params
        if is_same(leaf, self.value) and self.value.version == self.version:
            return param
        buffer = tracer.undefined(param, param.shape)
        varying.write(tracer, buffer, leaf, self.type.lengths)
        return buffer

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        for value, param in zip(self.ends, self.params, strict=True):
            body.result(tracer.fitted(value, param) if param.kind == "array" else value, param)

    def behind(self, tracer: Any) -> Any:
        """The leaf behind the region."""
        if self.type.lengths:
            sizes = None if self.entry is None else self.entry.shape
            return varying.read(tracer, self.made[0], self.type.lengths, sizes)
        return tracer.tagged(*self.made) if self.type.tagged else self.made[0]


class LastValue(Value):
    """A value that nobody reads at the head of a trip: what the last one makes of a name. entry: the name's value
    before the loop, where that can be its value behind it; sources: what it may be of before the loop.
    """

    __slots__ = ("sources", "is_loose", "node", "sizes")

    def __init__(self, where: tuple[str, int], value: Any, kind: Type, sources: Any) -> None:
        super().__init__(where, None, kind)
        self.value, self.sources = value, sources
        self.is_loose = False  # laid out otherwise in NumPy's memory
        self.node: tuple[Any, int] = (None, 0)  # in the body's block
        self.sizes: list[Number] = []  # those that only the loop knows

    def vary(self, tracer: Any, axis: int, length: varying.Length) -> None:
        """One of its sizes is not as large in each trip."""
        self.type.lengths[axis] = length
        end = length.end
        self.sizes.append(Number(None, lambda: tracer.lift(0), lambda: varying.number_of(tracer, end)))

    def operands(self, tracer: Any) -> list[Any]:
        if self.entry is not None:
            return super().operands(tracer)
        body, number = self.node
        shape = shape_of_buffer(self.value, self.type) if self.type.lengths else None
        known = body.undefined(number) if shape is None else tracer.undefined(self.node, shape)
        return [known, tracer.lift(False)] if self.type.tagged else [known]

    def put_away(self, tracer: Any, leaf: Any) -> Any:
        (param,) = self.params
        varying.write(tracer, param, leaf, self.type.lengths)
        return param

    def results(self, tracer: Any, body: Any, first: Any) -> None:
        self.node = body, body.hold(self.value)
        self.make_params(tracer, first, self.value)
        self.end(tracer, self.value)
        super().results(tracer, body, first)
        for size in self.sizes:
            size.head = first.param("i8", "python")
            size.results(tracer, body, first)

    def behind(self, tracer: Any) -> Any:
        for length, size in zip(self.type.lengths.values(), self.sizes, strict=True):
            length.define(tracer, size.made[0])
        return super().behind(tracer)


def shape_of_buffer(entry: Any, kind: Type) -> tuple[Any, ...]:
    """As large as an array becomes in all trips."""
    lengths = kind.lengths
    if kind.room is not None:
        return (kind.room,)
    return tuple(lengths[k].capacity if k in lengths else n for k, n in enumerate(entry.shape))


def strength_of(tracer: Any, value: Any) -> Any:
    """Whether a number is NumPy's, as a traced bool."""
    strong = strength(value)
    return strong if type(strong) is Traced else tracer.lift(strong)
