"""Lists as long as a loop has trips, which only calls see, or whoever called the function.

The items are rows of a buffer. Rows whose sizes differ have room for the largest that there can be,
and a buffer more for each such axis says how long they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...numpy.surface import small_ints
from ...signals import Replan
from ..value.deferred import DeferredCall
from ..value.objects import Traced

JOINS = frozenset({np.array, np.asarray, np.stack})  # of a list, make an array of its items


class SizedList(NamedTuple):
    """One such list. kind: of its items, or of those of the lists that it holds ("list of scalar");
    last: what else has the array of the last row, with its version then; sizes: the axes of a row whose sizes differ, and these.
    """

    container: list[Any]
    buffer: Any
    length: Any
    kind: str
    last: tuple[Any, Any] | None
    sizes: dict[int, Any]

    def check_last(self) -> None:
        """The row and the other name of its array are to be the same still."""
        if self.last is not None and self.last[0].version != self.last[1]:
            raise Replan("sized_lists", "a list whose last array was written to")

    def joined(self, stage: Any) -> Any:
        """np.stack(list)"""
        self.check_last()
        if self.sizes:
            raise Replan("sized_lists", "arrays of many sizes are joined")
        if not stage.tracer.is_positive(self.length):
            has_some = self.length > 0
            if type(has_some) is not Traced or not stage.may_check():
                raise Replan("sized_lists", "an empty list")
            stage.tracer.check(has_some, "a list of something")
        if not self.kind.endswith("python") or self.buffer.dtype != np.uint64:
            return stage.tracer.copy(self.buffer, "K")
        if not stage.may_check():
            raise Replan("sized_lists", "ints that may be beyond 64 bits")
        return small_ints(stage.tracer, self.buffer)

    def look(self, stage: Any, why: str) -> None:
        """The list gets its items, where graphs have run and so their number is known; before that
        the call is captured anew.
        """
        if not stage.tracer.flushes or stage.tracer.in_region:
            raise Replan("sized_lists", why)
        columns = [stage.materialise(column) for column in (self.buffer, *self.sizes.values())]
        items = listed(self.kind, tuple(self.sizes), None, *columns)
        if self.kind == "array":
            items = [stage.lift_array(item) for item in items]
        if self.last is not None and items:
            items[-1] = self.last[0]
        stage.state.refill(self.container, items)
        stage.state.is_list(self.container)

    def recipe(self) -> DeferredCall:
        """The list, for the user."""
        self.check_last()
        last = None if self.last is None else self.last[0]
        return DeferredCall((listed, self.kind, tuple(self.sizes), last, self.buffer, *self.sizes.values()))


def listed(kind: str, axes: tuple[int, ...], last: Any, rows: Any, *sizes: Any) -> list[Any]:
    """A list of the rows, or of as much of each as its sizes say; last: the last item itself."""
    if kind != "array":
        is_nested = kind.startswith("list")
        if kind.endswith("python"):
            return rows.tolist()
        return [list(row) for row in rows] if is_nested else list(rows)
    if not axes:
        items = [row.copy() for row in rows]
    elif axes == (0,):
        items = [row[:n].copy() for row, n in zip(rows, sizes[0].tolist(), strict=True)]
    else:
        parts = np.full((len(rows), rows.ndim - 1), slice(None))
        for axis, column in zip(axes, sizes, strict=True):
            parts[:, axis] = [slice(n) for n in column.tolist()]
        items = [row[tuple(part)].copy() for row, part in zip(rows, parts, strict=True)]
    if last is not None and items:
        items[-1] = last
    return items


def call_with_sized_list(stage: Any, f: Any, sized: SizedList) -> Any:
    """f(list) of a list that is as long as a loop had trips."""
    if f is len:
        return sized.length
    inner = sized.buffer.shape[1:]
    if f in JOINS or (len(inner) == 1 and f is np.vstack) or (not inner and f is np.hstack):
        return sized.joined(stage)
    if inner and (f is np.concatenate or f is np.vstack or (f is np.hstack and len(inner) == 1)):
        rows = sized.joined(stage)
        return stage.tracer.reshape(rows, (rows.shape[0] * inner[0], *inner[1:]))
    name = getattr(f, "__name__", type(f).__name__)
    raise Replan("sized_lists", f"{name} looks at a list that is as long as a loop had trips")
