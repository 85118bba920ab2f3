"""Generators of captured code that leave it: Python's own lazy ones over real values."""

from __future__ import annotations

import dis
import gc
import inspect
import types
from typing import Any

from ..base.user_frame import is_internal

FIRST = ".0"  # the local name of a generator expression's first iterator


class RealItems:
    """The items of Python's own loop: real ones once Python runs the rest of the call."""

    __slots__ = ("effects", "items")

    def __init__(self, effects: Any, items: Any) -> None:
        self.effects, self.items = effects, iter(items)

    def __iter__(self) -> RealItems:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        return self.effects.materialise(item) if self.effects.tracer.has_fallen_back else item

    def real(self, concrete: Any) -> Any:
        """Python's own iterator."""
        return concrete.of(self.items)


def lazy(concrete: Any, value: Any) -> Any:
    """The generator over real values, which computes an item when it is asked for it; None if there is none."""
    frame = value.gi_frame
    if frame is None or value.gi_running:
        return None
    if is_internal(value.gi_code):  # the items of one value
        waiting = value.gi_yieldfrom
        return concrete.of(frame.f_locals["value"] if waiting is None else waiting)
    has_begun = inspect.getgeneratorstate(value) != inspect.GEN_CREATED
    if FIRST not in frame.f_locals or (has_begun and (value.gi_code.co_cellvars or loops_in(value.gi_code) > 1)):
        return None
    cells = [v for v in (*gc.get_referents(value), *gc.get_referents(frame)) if type(v) is types.CellType]
    around = tuple(cells[len(cells) - len(value.gi_code.co_freevars) :])
    made = types.FunctionType(value.gi_code, frame.f_globals, value.__name__, None, around)
    made.__qualname__ = value.__qualname__
    return concrete.of(made)(concrete.of(frame.f_locals[FIRST]))


def loops_in(code: types.CodeType) -> int:
    """The number of loops in a generator expression itself."""
    return sum(step.opname == "FOR_ITER" for step in dis.get_instructions(code))
