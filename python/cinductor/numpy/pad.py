"""np.pad: copies the array into the middle of an empty one, then fills the borders axis by axis from what is there,
as NumPy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .grid import linspace
from .surface import (
    Traced,
    array,
    cast,
    function,
    is_pythons,
    memory_order,
    operand,
    refuse,
    require,
    usually_positive,
    whole,
)

STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}
KEYWORDS = {
    "constant": {"constant_values"},
    "linear_ramp": {"end_values"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "edge": set(),
    "wrap": set(),
    "empty": set(),
    **dict.fromkeys(STATISTICS, set()),
}


def pairs(value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Normalise a number, a pair, or a pair per axis to a pair per axis; numbers may be traced."""
    if type(value) is Traced and value.ndim == 0 or np.isscalar(value):
        return [(value, value)] * ndim
    if type(value) is Traced:
        value = [value[k] for k in range(len(value))]
    items = list(value)
    if len(items) == 1:
        return pairs(items[0], ndim)
    if all(type(v) is Traced and v.ndim == 0 or np.isscalar(v) for v in items):
        if len(items) != 2:
            raise ValueError("could not be broadcast")
        return [(items[0], items[1])] * ndim
    if len(items) != ndim:
        raise ValueError("could not be broadcast")
    return [pairs(v, 1)[0] for v in items]


@function("pad")
def pad(t: Any, array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """np.pad"""
    refuse(not is_a(mode, str), "a mode that is a function")
    if mode not in KEYWORDS or set(kwargs) - KEYWORDS[mode] - {"stat_length"}:
        raise ValueError("mode")
    refuse(kwargs.pop("stat_length", None) is not None, "stat_length=")
    refuse(is_a(pad_width, dict), "widths in a dict")
    x = array(t, array_)
    given = pad_width if is_a(pad_width, list | tuple) else (pad_width,)
    if any(v.dtype.kind != "i" for v in given if is_a(v, np.generic | np.ndarray | Traced)):
        raise TypeError("`pad_width` must be of integral type.")
    widths = [(width(a), width(b)) for a, b in pairs(pad_width, x.ndim)]
    if mode not in ("constant", "empty"):  # others need an element where they add some
        for n, added in zip(x.shape, widths, strict=True):
            require(t, added == (0, 0) or usually_positive(t, n), "an axis without elements that grows")
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]
    made = t.empty(shape, x.dtype, memory_order(x))
    inside = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))
    t.assign(made[inside] if inside else made, x)
    values = pairs(kwargs.get("constant_values", 0), x.ndim)
    ends = ends_of(t, kwargs.get("end_values", 0), x.ndim)
    odd = kwargs.get("reflect_type", "even") == "odd"
    for axis, (a, b) in enumerate(widths):
        rest = (*(slice(None),) * axis, slice(None), *inside[axis + 1 :])
        band = Band(t, made[rest], axis, a, x.shape[axis], b)
        if mode == "constant":
            band.constant(values[axis])
        elif mode == "linear_ramp":
            band.ramp(ends[axis])
        elif mode in STATISTICS:
            band.statistic(mode)
        elif mode != "empty":
            band.periodic(mode, odd)
    return made


def ends_of(t: Any, given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """The ends of ramps, in pairs. NumPy's source has numbers of an array for one or two of them, else Python's numbers."""
    found, ends = pairs(given, ndim), array(t, given)
    if ends.shape in ((), (1,), (2,), (1, 1), (1, 2)):
        return [(t.as_scalar(cast(t, array(t, a), ends.dtype)), t.as_scalar(cast(t, array(t, b), ends.dtype))) for a, b in found]
    refuse(not all(is_pythons(v) for pair in found for v in pair), "ends that are no numbers of Python's")
    return found


def width(n: Any) -> Any:
    """The number of elements that are added."""
    refuse(type(n) is not Traced and not is_a(n, int | np.integer), "widths that are no ints")
    n = whole(n)
    if type(n) is int and n < 0:
        raise ValueError("index can't contain negative values")
    return n


class Band:
    """Fills one axis: the existing elements, and the padding before and after them."""

    def __init__(self, t: Any, part: Any, axis: int, before: Any, n: Any, after: Any) -> None:
        self.t, self.part, self.axis, self.n = t, part, axis, n
        self.before, self.after = before, after

    def cut(self, start: Any, stop: Any) -> Any:
        """A part along the axis."""
        return self.part[(*(slice(None),) * self.axis, slice(start, stop))]

    def fill(self, start: Any, size: Any, value: Any) -> None:
        """Write a part."""
        if type(size) is not int or size > 0:
            self.t.assign(self.cut(start, start + size), value)

    def constant(self, values: tuple[Any, Any]) -> None:
        """Fill with one number on each side."""
        low, high = (operand(self.t, v, self.part.dtype) for v in values)
        self.fill(0, self.before, low)
        self.fill(self.before + self.n, self.after, high)

    def inner(self) -> Any:
        """The existing elements."""
        return self.cut(self.before, self.before + self.n)

    def statistic(self, mode: str) -> None:
        """Fill with one number per line."""
        found = STATISTICS[mode](self.inner(), axis=self.axis, keepdims=True)
        if self.part.dtype.kind in "iu" and found.dtype.kind == "f":
            found = np.rint(found)
        self.fill(0, self.before, found)
        self.fill(self.before + self.n, self.after, found)

    def ramp(self, ends: tuple[Any, Any]) -> None:
        """Fill with a ramp from the edge to a given number."""
        t, axis, dtype = self.t, self.axis, self.part.dtype
        refuse(dtype.kind not in "fiu", f"dtype {dtype}")
        turn = (*(slice(None),) * axis, slice(None, None, -1))
        for start, size, edge, end, is_following in (
            (0, self.before, self.before, ends[0], False),
            (self.before + self.n, self.after, self.before + self.n - 1, ends[1], True),
        ):
            if type(size) is int and size == 0:
                continue
            line = self.cut(edge, edge + 1)
            line = t.reshape(line, (*line.shape[:axis], *line.shape[axis + 1 :]))
            more = {"endpoint": False, "dtype": dtype, "axis": axis}
            steps = linspace(t, end, line, size, **more)
            self.fill(start, size, steps[turn] if is_following else steps)

    def periodic(self, mode: str, odd: bool) -> None:
        """Fill with existing elements: the edge's, mirrored or from the other end."""
        if not all(self.reaches(mode, size) for size in (self.before, self.after)):
            self.repeated(mode, odd)
            return
        first, last = self.before, self.before + self.n - 1
        if mode == "edge":
            self.fill(0, self.before, self.cut(first, first + 1))
            self.fill(last + 1, self.after, self.cut(last, last + 1))
            return
        self.fill(0, self.before, self.source(mode, odd, True))
        self.fill(last + 1, self.after, self.source(mode, odd, False))

    def reaches(self, mode: str, size: Any) -> bool:
        """True if no element is used more than once."""
        most = self.n - 1 if mode == "reflect" else self.n
        fits = size <= most if mode != "edge" else self.n > 0
        refuse(type(fits) is Traced, "sizes that data decide")
        return bool(fits)

    def repeated(self, mode: str, odd: bool) -> None:
        """Fill with elements that are used several times; their indices are known."""
        sizes = (self.before, self.n, self.after)
        refuse(odd or any(type(k) is not int for k in sizes), "sizes that vary, or reflect_type=")
        where = np.pad(np.arange(self.n), (self.before, self.after), mode)
        inner = self.t.copy(self.inner(), "C")
        last = self.before + self.n
        for start, index in ((0, where[: self.before]), (last, where[last:])):
            if index.size:
                self.fill(start, index.size, np.take(inner, index, self.axis))

    def source(self, mode: str, odd: bool, is_before: bool) -> Any:
        """The elements for the padding before or after."""
        size = self.before if is_before else self.after
        turn = (*(slice(None),) * self.axis, slice(None, None, -1))
        skip = 1 if mode == "reflect" else 0
        inner, n = self.inner(), self.n
        front = (slice(None),) * self.axis
        if mode == "wrap":
            return inner[(*front, slice(n - size, n) if is_before else slice(0, size))]
        part = slice(skip, skip + size) if is_before else slice(n - skip - size, n - skip)
        mirrored = inner[(*front, part)][turn]
        if not odd:
            return mirrored
        edge = inner[(*front, slice(0, 1) if is_before else slice(n - 1, n))]
        return np.subtract(np.multiply(edge, 2), mirrored)
