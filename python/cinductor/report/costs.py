"""Counts the bytes and operations of a kernel in one call, from its text.

Bytes: each element that a kernel reads from its buffers, once, and each that it stores, once. If several accesses
share a pattern (a stencil), all elements between the first and the last count. Registers and scratch memory do not
count. Operations: arithmetic, comparisons and functions of an element, one each per execution; a reduction counts
one per element. Loads, constants, indices and casts do not count.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from . import kernels, sizes
from .kernels import Access, Kernel, Nest

ITEMSIZE = {"bool": 1, "c64": 8, "c128": 16}
MAX_ITERATIONS = 32  # iterations that are counted one by one, if inner extents depend on the loop variable
HINT = re.compile(r"(\w+) in [\[(][^\])]*[\])] from [^,}]*? hint (-?\d+)")
RANGE = re.compile(r"\b(u\d+) (?:= symbol \w+ )?in [\[(]")


@dataclass
class Cost:
    r"""The cost of one kernel or library call in one call of the program.

    read, written: bytes; None if they depend on data. is_most: an upper bound, because of arms that may not run, or
    sizes that may be smaller. is_per_iteration: for one iteration of a `while`.
    """

    name: str
    call: str
    places: list[tuple[str, int]]
    nests: int
    buffers: list[str]
    read: int | None
    written: int | None
    operations: int | None
    launches: int | None
    is_most: bool
    is_per_iteration: bool
    text: str
    seconds: float | None = None  # measured, for all its launches in one call

    @property
    def bytes(self) -> int | None:
        return None if self.read is None or self.written is None else self.read + self.written

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        moved = self.bytes
        return None if not moved or self.operations is None else self.operations / moved

    def as_dict(self) -> dict[str, Any]:
        made = {k: v for k, v in vars(self).items() if k != "places"}
        return {**made, "bytes": self.bytes, "places": [list(place) for place in self.places]}


def itemsize(dtype: str) -> int:
    return ITEMSIZE.get(dtype) or int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8


def elements_of(buffer: dict[str, Any], names: dict[str, int]) -> int | None:
    """The number of elements of a buffer in the JSON."""
    found = [sizes.value_of(n, names) for n in buffer["sizes"]]
    known = [n for n in found if n is not None]
    return math.prod(known) if len(known) == len(found) else None


def high_end(text: str, start: int) -> tuple[str, str]:
    """The upper end of a range whose lower end begins at this index, and its closing bracket."""
    depth, comma = 0, start
    for at in range(start, len(text)):
        c = text[at]
        if c in ")]" and depth == 0:
            return text[comma:at].strip(), c
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            comma = at + 1
    return "inf", ")"


class Sizes:
    """The values of a program's symbols in the reported call."""

    def __init__(self, graph: str, text: str) -> None:
        self.values = {name: int(value) for name, value in HINT.findall(graph)}
        self.bounded: set[str] = set()  # those of which only an upper bound is known
        for match in RANGE.finditer(text):
            name, (high, end) = match[1], high_end(text, match.end())
            limit = None if high == "inf" else sizes.parse(high)(self.values)
            if name not in self.values and limit is not None:
                self.values[name] = limit - (end == ")")
                self.bounded.add(name)

    def is_bound(self, texts: list[str]) -> bool:
        return any(sizes.names_in(text) & self.bounded for text in texts)


def points(axes: list[tuple[str, str]], names: dict[str, int]) -> float | None:
    """The number of points of nested axes, whose extents may depend on outer variables."""
    if not axes:
        return 1
    (name, extent), rest = axes[0], axes[1:]
    count = sizes.parse(extent)(names)
    if count is None:
        return None
    count = max(count, 0)
    if count == 0 or not any(name in sizes.names_in(other) for _, other in rest):
        inside = points(rest, {**names, name: 0})
        return None if inside is None else count * inside
    if count <= MAX_ITERATIONS:
        found = [points(rest, {**names, name: value}) for value in range(count)]
        return None if None in found else sum(filter(None, found))
    first, middle, last = (points(rest, {**names, name: at}) for at in (0, (count - 1) // 2, count - 1))
    if first is None or middle is None or last is None:
        return None
    # Simpson's rule: exact for extents that are polynomials of degree 3 in the loop variable.
    between = middle + (last - first) / (count - 1) / 2 * ((count - 1) % 2)
    return count * (first + 4 * between + last) / 6


@dataclass
class Pattern:
    """An access pattern: the number of elements, and strides and extents from a start. steps is None if the index is
    not a sum of strides; then only the number is known.
    """

    steps: tuple[tuple[int, int], ...] | None
    offset: int
    count: int

    @property
    def span(self) -> int:
        """The number of elements from the first to the last."""
        return 1 + sum(abs(step) * (extent - 1) for step, extent in self.steps or ())


def extents(axes: list[tuple[str, str]], names: dict[str, int]) -> list[tuple[str, int]] | None:
    """The extents of the axes as numbers. For one that varies with outer axes it is the maximum, at the first or last
    value of these, because it varies monotonically.
    """
    ends = []
    for is_last in (False, True):
        known, found = dict(names), []
        for name, text in axes:
            extent = sizes.parse(text)(known)
            if extent is None:
                return None
            found.append(max(extent, 0))
            known[name] = max(extent - 1, 0) if is_last else 0
        ends.append(found)
    return [(name, max(both)) for (name, _), *both in zip(axes, *ends)]


def pattern_of(access: Access, axes: list[tuple[str, int]], names: dict[str, int]) -> Pattern | None:
    """The access pattern; None if the index has an unknown name."""
    every = math.prod(extent for _, extent in axes)
    if access.is_indirect:
        return Pattern(None, 0, every)
    index = sizes.parse(access.index)
    at = {**names, **{name: 0 for name, _ in axes}}
    first = index(at)
    if first is None:
        return None
    steps, total = [], first
    for name, extent in axes:
        if name in sizes.names_in(access.index):
            step = (index({**at, name: 1}) or 0) - first
            steps.append((step, extent))
            total += 2 * step
    used = math.prod(extent for _, extent in steps)
    if index({**at, **{name: 2 for name, _ in axes}}) != total:
        return Pattern(None, 0, used)
    moving = sorted((step, extent) for step, extent in steps if step and extent > 1)
    made = Pattern(tuple(moving), first, math.prod(extent for _, extent in moving))
    if not used:
        made.count = 0
    made.count = min(made.count, made.span)
    return made


def elements(found: list[Pattern], size: int | None) -> int:
    """The number of elements of one buffer that these accesses touch."""
    groups: dict[Any, dict[int, int]] = defaultdict(dict)
    span: dict[Any, int] = {}
    anywhere = 0
    for pattern in found:
        if pattern.steps is None:
            anywhere = max(anywhere, pattern.count)
        else:
            groups[pattern.steps][pattern.offset] = pattern.count
            span[pattern.steps] = pattern.span
    total = anywhere
    for steps, offsets in groups.items():
        between = max(offsets) - min(offsets) + span[steps]
        total += min(sum(offsets.values()), between)
    return total if size is None else min(total, size)


class Counter:
    """Counts the kernels of one program."""

    def __init__(self, graph: str, text: str, program: dict[str, Any]) -> None:
        self.sizes = Sizes(graph, text)
        self.names = self.sizes.values
        self.buffers = {buffer["name"]: buffer for buffer in program["buffers"]}

    def size(self, name: str) -> int | None:
        return elements_of(self.buffers[name], self.names)

    def is_memory(self, kernel: Kernel, name: str) -> bool:
        return name in kernel.takes and self.buffers[name]["kind"] != "scalar"

    def moved(self, kernel: Kernel, names: dict[str, int], is_store: bool) -> int | None:
        """The bytes that one launch reads or stores."""
        found: dict[str, list[Pattern]] = defaultdict(list)
        for nest in kernel.nests:
            axes = extents(nest.axes, names)
            for access in nest.accesses:
                if access.is_store != is_store or not self.is_memory(kernel, access.buffer):
                    continue
                pattern = None if axes is None else pattern_of(access, axes, names)
                if pattern is None:
                    return None
                found[access.buffer].append(pattern)
        return sum(
            elements(patterns, self.size(name)) * itemsize(self.buffers[name]["dtype"])
            for name, patterns in found.items()
        )

    def computed(self, nests: list[Nest], names: dict[str, int]) -> int | None:
        total = 0.0
        for nest in nests:
            count = points(nest.axes, names)
            if count is None:
                return None
            total += count * (nest.operations + nest.combines)
        return round(total)

    def kernel(self, kernel: Kernel) -> Cost:
        outer = extents(kernel.outer, self.names)
        launches = points(kernel.outer, self.names)
        names = dict(self.names)
        for name, extent in outer or ():
            names[name] = max(extent - 1, 0) // 2
        texts = [text for nest in kernel.nests for _, text in nest.axes]
        parts: list[int | None] = (
            self.call(kernel, names)
            if kernel.call
            else [self.moved(kernel, names, False), self.moved(kernel, names, True), self.computed(kernel.nests, names)]
        )
        read, written, operations = (
            None if part is None or launches is None else round(part * launches) for part in parts
        )
        return Cost(
            kernel.name,
            kernel.call,
            kernel.places,
            len(kernel.nests),
            kernel.takes or [kernel.result],
            read,
            written,
            operations,
            None if launches is None else round(launches),
            kernel.may_not_run or any(n.may_not_run for n in kernel.nests) or self.sizes.is_bound(texts),
            kernel.repeats or any(n.repeats for n in kernel.nests),
            kernel.text,
        )

    def call(self, kernel: Kernel, names: dict[str, int]) -> list[int | None]:
        """The cost of a library call: its operands and its result, once. The operations are only known for products.
        """
        shapes = [self.shape(operand, names) for operand in kernel.operands]
        read: int | None = 0
        for operand, shape in zip(kernel.operands, shapes):
            name = operand.partition("[")[0]
            if shape is None or read is None or name not in self.buffers:
                read = None
            else:
                read += math.prod(shape) * itemsize(self.buffers[name]["dtype"])
        size, dtype = self.size(kernel.result), self.buffers[kernel.result]["dtype"]
        written = None if size is None else size * itemsize(dtype)
        operations = None
        if kernel.call in ("matmul", "dot") and shapes[0] and size is not None:
            operations = 2 * size * shapes[0][-1]
        return [read, written, operations]

    def shape(self, operand: str, names: dict[str, int]) -> list[int] | None:
        """The shape of `in0`, or of a view `in0[+offset; sizes; strides]`."""
        name, _, view = operand.partition("[")
        texts: list[Any] = self.buffers[name]["sizes"] if name in self.buffers else [""]
        if view:
            texts = kernels.split_outside(view.split(";")[1]) if view.split(";")[1].strip() else []
        found = [sizes.value_of(text, names) if text != "" else None for text in texts]
        known = [n for n in found if n is not None]
        return known if len(known) == len(found) else None


def place_all(found: list[Cost], read: list[Kernel], function: str) -> None:
    """Give kernels without a line (copies at the entry of a loop) that of the nearest kernel that shares a buffer
    with them, else the function's.
    """
    touched = [{*kernel.takes, kernel.result, *(o.partition("[")[0] for o in kernel.operands)} - {""} for kernel in read]
    placed = [k for k, cost in enumerate(found) if cost.places]
    file, _, line = function.rpartition(":")
    for k, cost in enumerate(found):
        if not cost.places:
            near = sorted(placed, key=lambda other: (not touched[other] & touched[k], abs(other - k)))
            cost.places = list(found[near[0]].places[:1]) if near else [(file, int(line or 0))]


def time_all(found: list[Cost], program: dict[str, Any], seconds: dict[tuple[str, int], float]) -> None:
    """Set measured times by the number of the kernel (in `a.k0` after the letter of its program) or library call. Calls of one number share its time."""
    if not seconds:
        return
    numbers = [line["number"] for line in program["lines"] if line["line"] == "extern"]
    calls = [cost for cost in found if cost.call]
    for cost, number in zip(calls, numbers):
        if ("e", number) in seconds:
            cost.seconds = seconds["e", number] / numbers.count(number)
    for cost in found:
        if not cost.call:
            cost.seconds = seconds.get(("k", int(cost.name.rpartition(".")[2][1:])))
