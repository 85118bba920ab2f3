"""Values of which a branch chooses one of two: results of an `if` region, or selected.

A pair has a part for each arm. Where both arms only compute numbers their blocks become part of the
block around, and each pair is a `where`; otherwise the blocks become the arms of a region, whose
results are those of the pairs in order and then versions of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..value.kinds import UINT64, kind_of, lifted
from . import varying
from .ends import ArmValue, Bool, End, InBuffer, Result, Size, Undefined, Unsigned
from .phi import Memory, Phi, make_region
from .region import Region, truth

if TYPE_CHECKING:
    from .branch import Level


class Pair(Phi):
    """A part for each arm, of which the branch chooses one."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def kinds(self, operands: list[Any]) -> list[str]:
        for value in self.parts:
            if type(value) in (Bool, Size, Unsigned):
                return ["python"]
            if type(value) is InBuffer:
                return ["array"]
        known = [v for v in self.parts if type(v) is not Undefined]
        kinds = [v.kind if type(v) is ArmValue else kind_of(v)[0] for v in known]  # type: ignore[index]
        return ["scalar" if "scalar" in kinds else kinds[0]]


class Pairs:
    """Those wanted behind one test."""

    def __init__(self, region: Region, level: Level, ends: tuple[End, End]) -> None:
        self.region, self.level, self.ends = region, level, ends
        self.tracer = region.tracer
        self.blocks = (level.then_block, level.else_block)
        self.all: list[Pair] = []
        self.lengths: list[tuple[varying.Length, int]] = []  # and the numbers of their results

    def want(self, a: Any, b: Any) -> Result:
        """The one of two parts that the branch chooses."""
        for number, pair in enumerate(self.all):
            if pair.parts[0] is a and pair.parts[1] is b:
                return Result(number)
        self.all.append(Pair(a, b))
        return Result(len(self.all) - 1)

    def length(self, a: Any, b: Any) -> varying.Length | None:
        """The number that says which of two sizes an array has."""
        length = varying.find([length for length, _ in self.lengths], a, b)
        if length is None:
            most = varying.capacity(self.tracer, a, b, self.level.attempt.mark)
            if most is None:
                return None
            length = varying.Length(a, b, most)
            self.lengths.append((length, self.want(Size(a), Size(b)).number))
        return length

    # --- the graph ---

    def make(self, handles: list[Any]) -> list[Any]:
        """One value for each pair; the handles of memory get their new versions."""
        made = self.choose(handles)
        for length, number in self.lengths:
            length.define(self.tracer, made[number])
        return [self.read(value, pair) for value, pair in zip(made, self.all, strict=True)]

    def read(self, value: Any, pair: Pair) -> Any:
        """A result; an array of its own where the region's has room for more."""
        lengths = next((part.lengths for part in pair.parts if type(part) is InBuffer), None)
        return value if lengths is None else varying.read(self.tracer, value, lengths)

    def choose(self, handles: list[Any]) -> list[Any]:
        """The values as the region gives them back, or as they are selected."""
        if not self.all and not handles and not any(block.has_effects for block in self.blocks):
            return []
        harmless = all(block.is_harmless for block in self.blocks)
        is_small = all(
            type(v) not in (InBuffer, Unsigned) and (type(v) is not ArmValue or v.kind != "array")
            for pair in self.all
            for v in pair.parts
        )
        if harmless and is_small and not handles:
            return self.select()
        return self.make_region(handles)

    def select(self) -> list[Any]:
        for block in self.blocks:
            block.splice()
        made = []
        for pair in self.all:
            parts = [self.here(v) for v in pair.parts]
            made.append(self.tracer.select(self.level.condition, *parts, *pair.kinds([])))
        return made

    def here(self, value: Any) -> Any:
        """A value of a pair in the block around."""
        if type(value) is ArmValue:
            return value.block.value(value.number)
        if type(value) is Undefined:
            return self.undefined(value)
        return self.constant(value)

    def constant(self, value: Any) -> Any:
        """A plain part in the graph."""
        if type(value) is Bool:
            inner = value.value
            if type(inner) is ArmValue:
                inner = inner.block.value(inner.number)
                return self.tracer.as_python(truth(self.region.stage, inner))
            return self.tracer.lift(bool(inner))
        kind, dtype = kind_of(value)  # type: ignore[misc]
        return lifted(self.tracer, value, kind, dtype)

    def make_region(self, handles: list[Any]) -> list[Any]:
        state, tracer = self.region.state, self.tracer
        for which, block in enumerate(self.blocks):
            written = {handle.storage: held for handle, held in self.ends[which].written}
            state.reopen(block)
            for pair in self.all:
                first = pair.parts[0]
                like = first.node if which and type(first) is ArmValue else None
                self.add_result(block, pair.parts[which], like)
            for handle in handles:
                held = written.get(handle.storage)
                block.result(handle if held is None else held.node, handle)
            state.close(block)
        memory = [Memory(handle) for handle in handles]
        make_region(tracer, "if", self.blocks, [*self.all, *memory], self.level.condition)
        for phi in memory:
            phi.rebuild(tracer)
        return [pair.made[0] for pair in self.all]

    def add_result(self, block: Any, value: Any, like: Any) -> None:
        """A part as a result of its arm."""
        if type(value) is ArmValue:
            block.result(value.node, like)
        elif type(value) is Unsigned:
            part = value.part
            held = block.value(part.number) if type(part) is ArmValue else part
            block.result(lifted(self.tracer, held, "python", UINT64))
        elif type(value) is Size:
            block.result(varying.number_of(self.tracer, value.size))
        elif type(value) is InBuffer:
            buffer = self.tracer.undefined(value.held.node, value.shape)
            held = block.value(value.held.number)
            varying.write(self.tracer, buffer, held, value.lengths)
            block.result(buffer)
        elif type(value) is Undefined:
            block.result(self.undefined(value))
        elif type(value) is Bool and type(value.value) is ArmValue:
            block.result(value.value.node)
        else:
            block.result(self.constant(value))

    def undefined(self, value: Undefined) -> Any:
        like = value.like
        if like.kind == "array":
            return self.tracer.undefined(like.node, value.shape)
        return like.block.undefined(like.number)
