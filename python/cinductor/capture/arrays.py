"""The arrays that a captured call knows: what stands for each, and whether their memory overlaps.

One object has one traced array. Where arrays lie is looked at from the first write on: while none of
them overlap, a traced write is seen by all that it concerns; later calls are guarded to be so too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .value.objects import OPAQUE, Traced, why_not_array

if TYPE_CHECKING:
    from .stage import Stage

byte_bounds = np.lib.array_utils.byte_bounds


class Arrays:
    """Those of one call."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.known: dict[int, tuple[np.ndarray, int, Traced]] = {}  # by id; with their sources
        self.bounds: list[tuple[int, int]] | None = None
        self.written: list[Traced] = []
        self.overlap = False

    def lift_guarded(self, value: np.ndarray, source: int) -> Any:
        """The Traced of an array that a source reaches."""
        stage, tracer = self.stage, self.stage.tracer
        found = self.known.get(id(value))
        if found is not None:
            if source >= 0 and found[1] >= 0 and source != found[1]:
                stage.check(source, "same", found[1])
            return found[2]
        if (why := why_not_array(value)) is not None:
            stage.known[id(value)] = (value, source)
            stage.effect(f"{why} is read")
            return value
        sizes = paddings = None
        if source >= 0 and stage.symbols is not None:
            words = stage.place(source)
            sizes = stage.symbols.of_array(value, source, words)
            paddings = stage.symbols.of_paddings(value, source, words, sizes)
        traced = tracer.array(value, source, sizes, paddings)
        if source >= 0:
            is_symbolic = sizes is not None or paddings is not None
            layout = tracer.layout(traced) if is_symbolic else (value.shape, value.strides)
            flags = value.flags
            stage.check(source, "array", value.dtype, *layout, flags.writeable, flags.aligned)
        self.add(value, source, traced)
        if self.overlap and self.written:
            tracer.note_break("an array that overlaps one written to is read")
        return traced

    def add(self, value: np.ndarray, source: int, traced: Traced) -> None:
        """An object and what stands for it."""
        self.known[id(value)] = (value, source, traced)
        if self.bounds is not None:
            self.add_bounds(value)

    def real(self, traced: Traced) -> Any:
        """The object that a traced value stands for, made now if there is none yet."""
        real = traced.materialise()
        if type(real) is np.ndarray and id(real) not in self.known:
            self.add(real, OPAQUE, traced)
        return real

    def is_callers(self, traced: Any) -> bool:
        """Whether a traced array stands for an object that code outside of the call may hold."""
        return any(t is traced for _, _, t in self.known.values())

    def note_distinct(self, a: Any, b: Any) -> None:
        """Arrays that are not one object are not in later calls."""
        sources = [s for _, s, t in self.known.values() if s >= 0 and (t is a or t is b)]
        key = (*sources, "other")
        if len(sources) == 2 and key not in self.stage.checked:
            self.stage.checked.add(key)
            self.stage.check(sources[0], "other", sources[1])

    # --- writes ---

    def add_bounds(self, array: np.ndarray) -> None:
        """Compares where it lies with where the others do."""
        if array.size == 0:
            return
        low, high = byte_bounds(array)
        if any(low < other[1] and other[0] < high for other in self.bounds):  # type: ignore[union-attr]
            self.overlap = True
        self.bounds.append((low, high))  # type: ignore[union-attr]

    def before_write(self, target: Any) -> bool:
        """Called before a traced array is written to. True: the write must be made in memory at
        once, for arrays that the call knows by several names overlap.
        """
        if self.bounds is None:
            self.bounds = []
            for array, _, _ in list(self.known.values()):
                self.add_bounds(array)
        if type(target) is Traced:
            self.stage.regions.aliases.before_write(target)
            if not any(target is t for t in self.written):
                self.written.append(target)
        if self.overlap:
            self.stage.stop("arrays overlap, and one is written to")
        return self.overlap

    def writes_outside(self) -> bool:
        """Whether an array that outlives the call was written to."""
        return any(self.is_written(t) for _, source, t in self.known.values() if source != OPAQUE)

    def is_written(self, traced: Traced) -> bool:
        return any(traced.shares_storage(written) for written in self.written)

    def check_disjoint(self) -> None:
        """Guards that written arguments overlap no other, as they did not in this call."""
        sources = {s: t for _, s, t in self.known.values() if s >= 0}
        written = tuple(s for s, t in sources.items() if self.is_written(t))
        others = tuple(s for s in sources if self.stage.sources[s][0] != "const")
        if written and len(others) > 1:
            self.stage.check("disjoint", written, others)
