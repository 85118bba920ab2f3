"""What the arms of a branch end with, kept by their blocks, and what a merge makes of it.

A leaf of an arm's end is a plain value, the same in every block, or `ArmValue`. A merged leaf is a plain
value or a `Result`: one of a pair of parts (`pairs`), which are leaves of the two ends, or stand for
what the arm makes of one for the other's sake.
"""

from __future__ import annotations

from typing import Any

from ..value.kinds import UNBOUND, leaves, rebuilt
from ..value.objects import Traced
from .list_columns import Maybe


class ArmValue:
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


class Undefined:
    """Stands for a value that nobody looks at."""

    __slots__ = ("like", "shape")

    def __init__(self, like: ArmValue, shape: tuple[Any, ...]) -> None:
        self.like, self.shape = like, shape


class InBuffer:
    """An array in a buffer that is large enough for that of the other arm, too."""

    __slots__ = ("held", "shape", "lengths")

    def __init__(self, held: ArmValue, shape: tuple[Any, ...], lengths: Any) -> None:
        self.held, self.shape, self.lengths = held, shape, lengths


class Unsigned:
    """A Python int, held or a constant, as one of [0, 2**64), which the other arm's is."""

    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part


class Size:
    """One of an array's sizes."""

    __slots__ = ("size",)

    def __init__(self, size: Any) -> None:
        self.size = size


class Bool:
    """A flag."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def array_in(part: Any) -> ArmValue | None:
    """The array of one side of a pair."""
    held = part.held if type(part) is InBuffer else part
    return held if type(held) is ArmValue and held.kind == "array" else None
