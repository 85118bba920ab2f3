"""What a loop carries by value, as parameters of its region.

At the head of a trip a leaf is a parameter; its value at the end is a result, that at the loop's
entry an operand, and what the region gives back is the leaf behind the loop. All four are lists in
one order: sizes that change, then leaves in the order of `types`, where a number that may be
Python's or NumPy's is followed by the bool that says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..value import varying
from ..value.objects import Traced
from ..value.state import is_same, kind_of, leaves, lifted, rebuilt
from .condition import strength

if TYPE_CHECKING:
    from .carry import Carried
    from .types import Type


class Parameter(NamedTuple):
    """One of them; type: None for the bool of a number that may be Python's or NumPy's."""

    value: Any  # at the head of a trip
    entry: Any
    buffer: Any  # the parameter itself, of which value may be the first elements
    version: int  # of the value, there
    type: Type | None


class Parameters:
    """Those of one loop being captured."""

    def __init__(self, carried: Carried) -> None:
        self.tracer, self.types, self.entry = carried.tracer, carried.types, carried.entry
        self.all: list[Parameter] = []

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.all)

    # --- at the head of a trip ---

    def open(self, block: Any) -> dict[str, Any]:
        """The values of names at its head."""
        for length in self.types.lengths:
            length.define(self.tracer, block.param("i8", "python"))
        self.all = []
        return {
            name: self.rebuilt(name, lambda leaf, kind: self.param(block, leaf, kind))
            for name in self.types.of
        }

    def rebuilt(self, name: str, leaf_of: Any) -> Any:
        """A name's value with other leaves, given those at the entry, where they change."""
        entry = self.entry[name]
        pairs = zip(leaves(entry), self.types.of[name], strict=True)
        return rebuilt(entry, (leaf if k is None else leaf_of(leaf, k) for leaf, k in pairs))

    def param(self, block: Any, entry: Any, kind: Type) -> Any:
        """A leaf at the head of a trip."""
        if kind.like is None:
            buffer = value = block.param(kind.dtype, kind.kind)
        elif not kind.lengths:
            buffer = value = block.param(kind.like)
        else:
            buffer = block.param(self.tracer.undefined(entry, shape_of_buffer(entry, kind)))
            value = varying.read(self.tracer, buffer, kind.lengths, entry.shape)
        self.all.append(Parameter(value, entry, buffer, value.version, kind))
        if not kind.tagged:
            return value
        bool_ = block.param("?", "scalar")
        known = strength(entry, kind_of(entry))  # type: ignore[arg-type]
        self.all.append(Parameter(bool_, known, bool_, bool_.version, None))
        return self.tracer.tagged(value, bool_)

    # --- at its end ---

    def results(self, names: dict[str, Any]) -> list[Any]:
        """What a trip hands on, given the values of names at its end, but for the sizes."""
        results = []
        params = iter(self.all)
        for name, types in self.types.of.items():
            for leaf, kind in zip(leaves(names[name]), types, strict=True):
                if kind is None:
                    continue
                param = next(params)
                if kind.kind == "array":
                    results.append(self.put_away(param, leaf, kind))
                    continue
                results.append(lifted(self.tracer, leaf, kind.kind, kind.dtype))
                if kind.tagged:
                    next(params)
                    results.append(strength_of(self.tracer, leaf))
        return results

    def put_away(self, param: Parameter, leaf: Any, kind: Type) -> Any:
        """An array as the region hands it on."""
        if not kind.lengths:
            return leaf
        if is_same(leaf, param.value) and param.value.version == param.version:
            return param.buffer
        buffer = self.tracer.undefined(param.buffer, param.buffer.shape)
        varying.write(self.tracer, buffer, leaf, kind.lengths)
        return buffer

    def hand_on(self, body: Any, results: list[Any]) -> None:
        """Makes them results of the body, and the sizes."""
        tracer = self.tracer
        for length in self.types.lengths:
            body.result(varying.number_of(tracer, length.end))
        for value, param in zip(results, self.all, strict=True):
            like = param.buffer
            body.result(tracer.fitted(value, like) if like.kind == "array" else value, like)

    # --- outside of the region ---

    def entries(self) -> list[Any]:
        """What the first trip gets."""
        tracer = self.tracer
        entries = [varying.number_of(tracer, length.entry) for length in self.types.lengths]
        for _, leaf, _, _, kind in self.all:
            if kind is None:
                entries.append(leaf if type(leaf) is Traced else tracer.lift(leaf))
            elif kind.kind == "array":
                entries.append(self.entry_buffer(leaf, kind))
            else:
                entries.append(lifted(tracer, leaf, kind.kind, kind.dtype))
        return entries

    def entry_buffer(self, leaf: Any, kind: Type) -> Any:
        """The array itself, or memory that is large enough with the array in it."""
        shape = shape_of_buffer(leaf, kind)
        if len(shape) == leaf.ndim and all(map(is_same, shape, leaf.shape)):
            return leaf
        buffer = self.tracer.undefined(leaf, shape)
        varying.write(self.tracer, buffer, leaf, kind.lengths)
        return buffer

    def exits(self, made: Iterator[Any]) -> dict[str, Any]:
        """The values of names behind the loop, of what the region gives back."""
        for length in self.types.lengths:
            length.define(self.tracer, next(made))
        return {
            name: self.rebuilt(name, lambda entry, kind: self.exit(entry, kind, made))
            for name in self.types.of
        }

    def exit(self, entry: Any, kind: Type, made: Iterator[Any]) -> Any:
        """A leaf behind the loop."""
        value = next(made)
        if kind.lengths:
            return varying.read(self.tracer, value, kind.lengths, entry.shape)
        return self.tracer.tagged(value, next(made)) if kind.tagged else value


def shape_of_buffer(entry: Any, kind: Type) -> tuple[Any, ...]:
    """As large as an array becomes in all trips."""
    lengths = kind.lengths
    if kind.room is not None:
        return (kind.room,)
    return tuple(lengths[k].capacity if k in lengths else n for k, n in enumerate(entry.shape))


def strength_of(tracer: Any, value: Any) -> Any:
    """Whether a number is NumPy's, as a traced bool."""
    strong = value if type(value) is bool else strength(value, kind_of(value))  # type: ignore[arg-type]
    return strong if type(strong) is Traced else tracer.lift(strong)
