"""Types of what a loop's trips hand to each other by value: one for each leaf of a name's value."""

from __future__ import annotations

from typing import Any

from ..value import varying
from ..value.state import kind_of


class Type:
    """The type of a leaf carried by value; like: a Traced array that has it; lengths: those of its
    sizes that change, by axis; ends: with what, and what is enough for all trips.
    """

    __slots__ = ("kind", "dtype", "like", "mixed", "lengths", "ends")

    def __init__(self, kind: str, dtype: Any, like: Any = None, mixed: bool = False) -> None:
        self.kind, self.dtype, self.like = kind, dtype, like
        self.mixed = mixed  # Python's number or NumPy's: a bool that says which goes with it
        self.lengths: dict[int, varying.Length] = {}
        self.ends: dict[int, tuple[Any, Any]] = {}


def type_of(value: Any) -> Type:
    """That of a traced value, as it stands."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    return Type(kind, dtype, value if kind == "array" else None, value.strong is not None)
