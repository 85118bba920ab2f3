"""What the arms of a branch end with, kept by their blocks, and what a merge makes of it.

A leaf of an arm's end is a plain value, the same in every block, or `ArmValue`. A merged leaf is a plain
value or a `Result`: one of a pair of parts (`Pair`), which are leaves of the two ends, or stand for
what the arm makes of one for the other's sake.

A pair has a part for each arm. Where both arms only compute numbers their blocks become part of the
block around, and each pair is a `where`; otherwise the blocks become the arms of a region, whose
results are those of the pairs in order and then versions of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ..value.kinds import UINT64, UNBOUND, kind_of, leaves, lifted, rebuilt
from ..value.objects import Traced
from . import varying
from .list_columns import Maybe
from .phi import Memory, Phi, make_region
from .region import Region, truth

if TYPE_CHECKING:
    from .branch import Level


class Side:
    """What an arm gives for one side of a pair. kind: of what the branch gives then, None where the other
    side says it; is_small: a `where` may choose it; array, lengths: where it is an array.
    """

    __slots__ = ()
    kind: str | None = "python"
    is_small = True
    array: ArmValue | None = None
    lengths: Any = None

    @property
    def sample(self) -> Any:
        """What it is in this call, where sizes choose."""
        return self

    def put(self, region: Region, block: Any, like: Any) -> None:
        """It is a result of the arm, whose block is open."""
        block.result(self.here(region))

    def here(self, region: Region) -> Any:
        """It in the block around."""
        raise NotImplementedError


class ArmValue(Side):
    """A traced value that an arm ends with, kept by its block."""

    __slots__ = ("block", "number", "kind", "dtype", "value", "strong")

    def __init__(self, block: Any, value: Any) -> None:
        self.block, self.number = block, block.hold(value)
        self.kind, self.dtype, self.value = value.kind, value.dtype, value
        strong = value.strong
        self.strong = None if strong is None else ArmValue(block, strong)

    @property
    def node(self) -> tuple[Any, int]:
        return self.block, self.number

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return bool(self.kind != "array")

    @property
    def array(self) -> ArmValue | None:  # type: ignore[override]
        return self if self.kind == "array" else None

    @property
    def sample(self) -> Any:
        return self.value

    def put(self, region: Region, block: Any, like: Any) -> None:
        block.result(self.node, like)

    def here(self, region: Region) -> Any:
        return self.block.value(self.number)


class Constant(Side):
    """A number that is the same in every block."""

    __slots__ = ("value", "kind", "dtype")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.kind, self.dtype = kind_of(value)  # type: ignore[misc]

    @property
    def sample(self) -> Any:
        return self.value

    def here(self, region: Region) -> Any:
        return lifted(region.tracer, self.value, self.kind, self.dtype)


class End:
    """What an arm ends with: values of names, and memory written to."""

    def __init__(self, state: Any, block: Any, names: dict[str, Any], written: list[Any]) -> None:
        self.appended: list[tuple[Any, list[Any]]] = []  # grown_lists, and items
        self.records = state.records  # what was known where it ends
        known: list[ArmValue] = []
        self.names = {name: held_leaves(block, value, known) for name, value in names.items()}
        self.written = [(handle, ArmValue(block, handle)) for handle in written]

    def append(self, block: Any, grown: Any, items: list[Any]) -> None:
        """What the arm appended to a list."""
        held = []
        for item in items:
            if type(item) is not Maybe:
                held.append(Maybe(held_leaves(block, item), True, []))
                continue
            flag = ArmValue(block, item.flag) if type(item.flag) is Traced else item.flag
            held.append(Maybe(held_leaves(block, item.value), flag, item.truths))
        self.appended.append((grown, held))

    def add(self, state: Any, block: Any, names: dict[str, Any]) -> None:
        """Names that the arm leaves as they are."""
        state.reopen(block)
        self.names.update({name: held_leaves(block, value) for name, value in names.items()})
        state.close(block)


def held_leaves(block: Any, value: Any, known: list[ArmValue] | None = None) -> Any:
    """The value with its traced leaves held. known: numbers that are held already; one that several
    names have is one behind the branch, too.
    """
    if value is UNBOUND:
        return value
    parts = leaves(value)
    if not any(type(part) is Traced for part in parts):
        return value
    known = [] if known is None else known
    return rebuilt(value, iter([held(block, p, known) if type(p) is Traced else p for p in parts]))


def held(block: Any, part: Any, known: list[ArmValue]) -> ArmValue:
    """A traced value, held."""
    if part.kind == "array" or part.strong is not None:
        return ArmValue(block, part)
    found = next((arm for arm in known if arm.value is part or arm.value.is_same(part)), None)
    if found is None:
        found = ArmValue(block, part)
        known.append(found)
    return found


def unheld(value: Any) -> Any:
    return value.value if type(value) is ArmValue else value


class Result:
    """A leaf that the graph decides, by number; strong: that of the bool for a mixed one."""

    __slots__ = ("number", "strong")

    def __init__(self, number: int) -> None:
        self.number = number
        self.strong: int | None = None


class Undefined(Side):
    """Stands for a value that nobody looks at."""

    __slots__ = ("like", "shape")
    kind = None

    def __init__(self, like: ArmValue, shape: tuple[Any, ...]) -> None:
        self.like, self.shape = like, shape

    def here(self, region: Region) -> Any:
        like = self.like
        if like.kind == "array":
            return region.tracer.undefined(like.node, self.shape)
        return like.block.undefined(like.number)


class InBuffer(Side):
    """An array in a buffer that is large enough for that of the other arm, too."""

    __slots__ = ("array", "shape", "lengths")
    kind, is_small = "array", False

    def __init__(self, array: ArmValue, shape: tuple[Any, ...], lengths: Any) -> None:
        self.array, self.shape, self.lengths = array, shape, lengths

    def here(self, region: Region) -> Any:
        buffer = region.tracer.undefined(self.array.node, self.shape)
        varying.write(region.tracer, buffer, self.array.here(region), self.lengths)
        return buffer


class Unsigned(Side):
    """A Python int, live out of the arm or a constant, as one of [0, 2**64), which the other arm's is."""

    __slots__ = ("part",)
    is_small = False

    def __init__(self, part: Any) -> None:
        self.part = side_of(part)

    @property
    def sample(self) -> Any:
        return self.part.sample

    def here(self, region: Region) -> Any:
        part = self.part
        held = part.here(region) if type(part) is ArmValue else part.value
        return lifted(region.tracer, held, "python", UINT64)


class Size(Side):
    """One of an array's sizes."""

    __slots__ = ("size",)

    def __init__(self, size: Any) -> None:
        self.size = size

    def here(self, region: Region) -> Any:
        return varying.number_of(region.tracer, self.size)


class Bool(Side):
    """A flag."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def sample(self) -> Any:
        return self.value

    def put(self, region: Region, block: Any, like: Any) -> None:
        is_live = type(self.value) is ArmValue
        block.result(self.value.node if is_live else self.here(region))

    def here(self, region: Region) -> Any:
        if type(self.value) is not ArmValue:
            return region.tracer.lift(bool(self.value))
        return region.tracer.as_python(truth(region.stage, self.value.here(region)))


def side_of(value: Any) -> Side:
    """A leaf of an arm's end as one side of a pair."""
    return value if is_a(value, Side) else Constant(value)


# --- values of which a branch chooses one of two ---


class Pair(Phi):
    """A part for each arm, of which the branch chooses one; values: the leaves that they stand for."""

    __slots__ = ("values", "parts")

    def __init__(self, *values: Any) -> None:
        self.values, self.parts = values, tuple(map(side_of, values))

    def kinds(self, operands: list[Any]) -> list[str]:
        kinds = [part.kind for part in self.parts if part.kind is not None]
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
            if pair.values[0] is a and pair.values[1] is b:
                return Result(number)
        self.all.append(Pair(a, b))
        return Result(len(self.all) - 1)

    def length(self, a: Any, b: Any) -> varying.Length | None:
        """The number that says which of two sizes an array has."""
        length = varying.find([length for length, _ in self.lengths], a, b)
        if length is None:
            most = varying.larger(self.tracer, a, b, self.level.attempt.mark)
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
        lengths = next((part.lengths for part in pair.parts if part.lengths is not None), None)
        return value if lengths is None else varying.read(self.tracer, value, lengths)

    def choose(self, handles: list[Any]) -> list[Any]:
        """The values as the region gives them back, or as they are selected."""
        if not self.all and not handles and not any(block.has_effects for block in self.blocks):
            return []
        harmless = all(block.is_harmless for block in self.blocks)
        is_small = all(part.is_small for pair in self.all for part in pair.parts)
        if harmless and is_small and not handles:
            return self.select()
        return self.make_region(handles)

    def select(self) -> list[Any]:
        for block in self.blocks:
            block.splice()
        made = []
        for pair in self.all:
            parts = [part.here(self.region) for part in pair.parts]
            made.append(self.tracer.select(self.level.condition, *parts, *pair.kinds([])))
        return made

    def make_region(self, handles: list[Any]) -> list[Any]:
        state, tracer = self.region.state, self.tracer
        for which, block in enumerate(self.blocks):
            written = {handle.storage: held for handle, held in self.ends[which].written}
            state.reopen(block)
            for pair in self.all:
                first = pair.parts[0]
                like = first.node if which and type(first) is ArmValue else None
                pair.parts[which].put(self.region, block, like)
            for handle in handles:
                held = written.get(handle.storage)
                block.result(handle if held is None else held.node, handle)
            state.close(block)
        memory = [Memory(handle) for handle in handles]
        make_region(tracer, "if", self.blocks, [*self.all, *memory], self.level.condition)
        for phi in memory:
            phi.rebuild(tracer)
        return [pair.made[0] for pair in self.all]
