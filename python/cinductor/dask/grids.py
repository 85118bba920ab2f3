"""How the axes of a graph's values follow from the blocks of its inputs.

A grid is the positions along one axis of an input. An axis of a value covers the positions `[low, size of the grid - high)`. Its
first `left` and last `right` positions depend on elements that a block does not have, unless the block is at that end of the grid:

    u[2:] - u[:-2]     low 1, high 1, left 1, right 1: each element needs one neighbour on both sides

`Analysis` gives each axis its grid. Axes that are combined element by element share one. A grid that an operation must see as a whole
(a sort, a running total, an element at a fixed position) gets the reason in `whole`.

Reference: Ragan-Kelley et al., "Halide", PLDI 2013 (bounds of stencils); a halo is the largest `left` and `right` of a grid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .. import _core
from ..base.graph_text import Node
from ..graphs import Graph

KINDS = {row[0]: row[1] for row in _core.ops()}
ELEMENTWISE = {"pointwise", "math", "ufunc", "composite"}
ALIGNED = {"cast", "where", "copy"}
FRESH = {"const", "empty"}


class Grid:
    """Positions along an axis. Grids that are joined have one root; `shift` is the position of the first one's 0 in its parent."""

    def __init__(self, size: int) -> None:
        self.size, self.shift = size, 0
        self.parent: Grid | None = None
        self.whole = ""  # the reason why it cannot be split
        self.left = self.right = 0  # neighbours that a block needs

    def root(self) -> tuple[Grid, int]:
        """The grid that it was joined to, and the position of its 0 there."""
        if self.parent is None:
            return self, 0
        grid, shift = self.parent.root()
        return grid, shift + self.shift


@dataclass(frozen=True)
class Axis:
    """One axis of a value. grid: None for an axis of one element."""

    grid: Grid | None
    low: int
    size: int
    left: int = 0
    right: int = 0

    def resolved(self) -> Axis:
        """The axis in the root of its grid."""
        if self.grid is None:
            return self
        grid, shift = self.grid.root()
        return replace(self, grid=grid, low=self.low + shift)

    @property
    def high(self) -> int:
        """The positions of the grid after the last element."""
        return 0 if self.grid is None else self.grid.size - self.low - self.size


def fresh(sizes: list[int]) -> list[Axis]:
    """Axes of a value that no input has: each has a grid of its own."""
    return [Axis(None if size == 1 else Grid(size), 0, size) for size in sizes]


def numbers(text: str) -> list[int]:
    """The ints of an attribute."""
    return [int(found) for found in re.findall(r"-?\d+", text)]


def join(a: Axis, b: Axis) -> None:
    """Make two axes whose elements belong together share a grid."""
    a, b = a.resolved(), b.resolved()
    if a.grid is None or b.grid is None or a.grid is b.grid:
        return
    if a.low < b.low or a.high < b.high:  # b's grid has positions outside of a's: it becomes the root
        a, b = b, a
    assert a.grid is not None and b.grid is not None
    b.grid.parent, b.grid.shift = a.grid, a.low - b.low
    reason = a.grid.whole or b.grid.whole
    if a.low < b.low or a.high < b.high:
        reason = reason or "arrays of different lengths are combined along it"
    a.grid.whole = reason


class Analysis:
    """The axes of each node of a graph, and the reasons of grids that cannot be split."""

    def __init__(self, graph: Graph) -> None:
        self.axes: dict[Node, list[Axis]] = {node: fresh(node.sizes) for node in graph.inputs}  # type: ignore[arg-type]
        for node in graph.nodes:
            self.axes[node] = self.of(node)
        for node, axes in self.axes.items():
            self.axes[node] = [axis.resolved() for axis in axes]
        for node in graph.inputs:
            for axis in self.axes[node]:
                if axis.grid is not None and (axis.low or axis.high):
                    axis.grid.whole = axis.grid.whole or "arrays of different lengths are combined along it"
        for node in graph.nodes:
            self.axes[node] = self.with_reach(node)

    # --- which grid ---------------------------------------------------------------------------

    def of(self, node: Node) -> list[Axis]:
        """The axes of a node, from those of its operands."""
        kind = KINDS.get(node.op, "")
        if node.op in FRESH:
            return fresh(node.sizes)  # type: ignore[arg-type]
        if kind in ELEMENTWISE or node.op in ALIGNED:
            return self.aligned(node, node.args)
        rule = getattr(self, f"of_{node.op}", getattr(self, f"of_{kind}", self.opaque))
        made: list[Axis] = rule(node)
        return made

    def opaque(self, node: Node) -> list[Axis]:
        """An operation that needs its operands as they are."""
        made = fresh(node.sizes)  # type: ignore[arg-type]
        for axis in [*made, *(axis for arg in node.args for axis in self.axes[arg])]:
            self.need_all(axis, node)
        return made

    def need_all(self, axis: Axis, node: Node) -> None:
        """Note that an operation needs all elements of an axis."""
        self.need(axis, f"{node.op}{f' at {node.place}' if node.place else ''} needs all of it")

    def need(self, axis: Axis, why: str) -> None:
        """Note that a grid cannot be split."""
        grid = axis.resolved().grid
        if grid is not None:
            grid.whole = grid.whole or why

    def aligned(self, node: Node, args: tuple[Node, ...]) -> list[Axis]:
        """Axes of values that are combined element by element, with broadcasting."""
        rank, made = len(node.sizes), []
        for number, size in enumerate(node.sizes):
            found = []
            for arg in args:
                at = number - rank + len(arg.sizes)
                if at >= 0 and self.axes[arg][at].size == size:
                    found.append(self.axes[arg][at])
            made.append(self.common(found, int(size)))
        return made

    def common(self, found: list[Axis], size: int) -> Axis:
        """The axis of a result whose operands have these. Its position is between theirs, which keeps halos small. It is as far
        from both ends as that allows: `zeros(n)[1:-1] = ...` is then aligned with what is stored.
        """
        if size == 1 or not found:
            return fresh([size])[0]
        for axis in found[1:]:
            join(found[0], axis)
        lows = [axis.resolved().low for axis in found]
        first = found[0].resolved()
        middle = (first.low + first.high) // 2
        return Axis(first.grid, min(max(middle, min(lows)), max(lows)), size)

    def of_reduce(self, node: Node) -> list[Axis]:
        """The axes that remain."""
        gone = numbers(node.attributes["axes"])
        return [axis for number, axis in enumerate(self.axes[node.args[0]]) if number not in gone]

    def of_argreduce(self, node: Node) -> list[Axis]:
        for number in numbers(node.attributes["axes"]):
            self.need_all(self.axes[node.args[0]][number], node)
        return self.of_reduce(node)

    def of_scan(self, node: Node) -> list[Axis]:
        axes = self.axes[node.args[0]]
        self.need_all(axes[int(node.attributes["axis"])], node)
        return axes

    def of_concat(self, node: Node) -> list[Axis]:
        along, rank = int(node.attributes["axis"]), len(node.sizes)
        made = [self.common([self.axes[arg][k] for arg in node.args], int(node.sizes[k])) for k in range(rank) if k != along]
        own = fresh([int(node.sizes[along])])[0]
        for axis in (own, *(self.axes[arg][along] for arg in node.args)):
            self.need_all(axis, node)
        return [*made[:along], own, *made[along:]]

    def of_permute(self, node: Node) -> list[Axis]:
        return [self.axes[node.args[0]][number] for number in numbers(node.attributes["axes"])]

    def of_reshape(self, node: Node) -> list[Axis]:
        """Axes of one element come and go; other changes need the whole array."""
        source = [axis for axis in self.axes[node.args[0]] if axis.size != 1]
        if [axis.size for axis in source] != [size for size in node.sizes if size != 1]:
            return self.opaque(node)
        rest = iter(source)
        return [Axis(None, 0, 1) if size == 1 else next(rest) for size in node.sizes]

    def of_expand(self, node: Node) -> list[Axis]:
        source = [None] * (len(node.sizes) - len(node.args[0].sizes)) + self.axes[node.args[0]]  # type: ignore[operator]
        made = fresh(node.sizes)  # type: ignore[arg-type]
        return [a if a is not None and a.size == m.size else m for a, m in zip(source, made, strict=True)]

    def of_slice(self, node: Node) -> list[Axis]:
        starts, steps = (numbers(node.attributes[name]) for name in ("starts", "steps"))
        return [
            self.part(node, axis, start, step, int(size))
            for axis, start, step, size in zip(self.axes[node.args[0]], starts, steps, node.sizes, strict=True)
        ]

    def part(self, node: Node, axis: Axis, start: int, step: int, size: int) -> Axis:
        """A part of an axis."""
        if axis.grid is None or (start == 0 and step == 1 and size == axis.size):
            return axis
        if step != 1 or size <= 1:
            what = "an element at a fixed position is read" if size == 1 else f"a slice with step {step} is read"
            self.need(axis, f"{what} at {node.place}")
            made = fresh([size])[0]
            self.need(made, "it is a part of an axis that cannot be split")
            return made
        return Axis(axis.grid, axis.low + start, size)

    def of_assign(self, node: Node) -> list[Axis]:
        """assign(base, view, value): the value is aligned with the view; all of it is in the grids of the base."""
        base, view, value = node.args
        grids = [[axis.resolved().grid for axis in self.axes[arg]] for arg in (base, view)]
        if grids[0] != grids[1] and any(g is not None and not g.whole for g in grids[0]):
            return self.opaque(node)
        self.aligned(view, (view, value))
        return self.axes[base]

    def of_matmul(self, node: Node) -> list[Axis]:
        """The rows of the first and the columns of the second operand; the inner axis is reduced."""
        if [len(arg.sizes) for arg in node.args] != [2, 2] or len(node.sizes) != 2:
            return self.opaque(node)
        a, b = (self.axes[arg] for arg in node.args)
        join(a[1], b[0])
        return [a[0], b[1]]

    of_dot = of_matmul

    # --- how far ------------------------------------------------------------------------------

    def with_reach(self, node: Node) -> list[Axis]:
        """The axes of a node with the positions that depend on neighbours."""
        return [self.reach(node, number, axis) for number, axis in enumerate(self.axes[node])]

    def reach(self, node: Node, number: int, axis: Axis) -> Axis:
        """One axis with its reach: the largest of its operands'. A slice has none of the elements outside of it."""
        left, right = axis.low, axis.high
        for operand in self.operands(node, number, axis):
            if operand.grid is axis.grid:
                shift = operand.low - axis.low
                left, right = max(left, operand.left - shift), max(right, operand.right + shift)
        return replace(axis, left=left, right=right)

    def operands(self, node: Node, number: int, axis: Axis) -> list[Axis]:
        """The axes of operands that are aligned with an axis of the result."""
        if axis.grid is None:
            return []
        if node.op == "assign":  # the value is at the positions of the view, in the base
            base, view, value = (self.axes[arg] for arg in node.args)
            at = number - len(base) + len(value)
            moved = value[at] if at >= 0 else None
            if moved is None or moved.grid is not axis.grid:
                return [base[number], view[number]]
            shift = moved.low - view[number].low
            placed = replace(
                moved, low=axis.low, left=moved.left - shift, right=moved.right + shift, size=axis.size
            )
            return [base[number], replace(view[number], low=axis.low), placed]
        if node.op == "slice":  # positions stay what they are
            return [replace(self.axes[node.args[0]][number], low=axis.low)]
        found = [a for arg in node.args for a in self.axes[arg] if a.grid is axis.grid]
        is_elementwise = KINDS.get(node.op, "") in ELEMENTWISE or node.op in ALIGNED
        return found if is_elementwise else [replace(a, low=axis.low) for a in found]
