"""The arrays of one call: each is one object with one traced array. From the first write on it is known whether two
of them overlap in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .objects import OPAQUE, Traced
from .sources import Sources

byte_bounds = np.lib.array_utils.byte_bounds


class Arrays:
    """The arrays of one call."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.known: dict[int, tuple[np.ndarray, int, Traced]] = {}  # by id; with their sources
        self.bounds: list[tuple[int, int]] | None = None
        self.written: dict[int, Traced] = {}  # by id
        self.overlap = False
        self.is_over = False  # NumPy runs the rest of the call

    def add(self, value: np.ndarray, source: int, traced: Traced) -> None:
        """Record an object and the traced value for it."""
        self.known[id(value)] = (value, source, traced)
        if self.bounds is not None:
            self.add_bounds(value)

    def real(self, traced: Traced) -> Any:
        """The object of a traced value, made now if there is none yet."""
        real = traced.materialise()
        if traced.kind != "array" and real != real:  # noqa: PLR0124
            return self.sources.original_of(traced, real)
        if type(real) is np.ndarray and id(real) not in self.known and not self.is_over:
            self.add(real, OPAQUE, traced)
        return real

    def is_callers(self, traced: Any) -> bool:
        """True if code outside of the call may have a reference to the array's object."""
        return any(t is traced for _, _, t in self.known.values())

    def note_distinct(self, a: Any, b: Any) -> None:
        """Guard that arrays that are different objects in this call are different objects in later calls."""
        sources = [s for _, s, t in self.known.values() if s >= 0 and (t is a or t is b)]
        key = (*sources, "other")
        if len(sources) == 2 and key not in self.sources.checked:
            self.sources.checked.add(key)
            self.sources.check(sources[0], "other", sources[1])

    # --- writes ---

    def add_bounds(self, array: np.ndarray) -> None:
        """Compare the memory of an array with that of the others."""
        if array.size == 0:
            return
        low, high = byte_bounds(array)
        if any(low < other[1] and other[0] < high for other in self.bounds):  # type: ignore[union-attr]
            self.overlap = True
        self.bounds.append((low, high))  # type: ignore[union-attr]

    def look_at_memory(self) -> None:
        """Compare the memory of all arrays, from the first write on."""
        if self.bounds is None:
            self.bounds = []
            for array, _, _ in list(self.known.values()):
                self.add_bounds(array)

    def writes_outside(self) -> bool:
        """True if an array that outlives the call was written to."""
        return any(self.is_written(t) for _, source, t in self.known.values() if source != OPAQUE)

    def is_written(self, traced: Traced) -> bool:
        return any(map(traced.shares_storage, self.written.values()))

    def check_disjoint(self) -> None:
        """Guard that written arguments overlap no other array, as in this call."""
        sources = {s: t for _, s, t in self.known.values() if s >= 0}
        rows = self.sources.rows
        written = tuple([s for s, t in sources.items() if self.is_written(t)])
        others = tuple([s for s in sources if rows[s][0] != "const"])
        if written and len(others) > 1:
            self.sources.check("disjoint", written, others)
