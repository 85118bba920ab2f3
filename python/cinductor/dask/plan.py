"""Splits a graph into programs of blocks: stages between reductions, with halos where elements need their neighbours.

    graph:   x -> mean over axis 0 -> x - mean
    stage 0: each block of x -> the sum of its rows     partial sums are combined in a tree
    stage 1: each block of x, the whole sum -> x - sum/n

A reduction over a split axis ends a stage (a cut). Programs of later stages compute element-wise values again from the inputs instead of
storing them. One program computes all values of a stage that need the same blocks. Blocks at the ends of a grid have no halo there and so
another program; all others share one, whose sizes are symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .._core import Unsupported
from ..base.graph_text import Node, lines_of
from ..graphs import Graph
from .grids import KINDS, Analysis, Axis, Grid, numbers

# Reduction -> the ufunc that combines partial results.
COMBINERS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "fmax_reduce": "fmax",
    "fmin_reduce": "fmin",
    "any": "logical_or",
    "all": "logical_and",
    "and_reduce": "bitwise_and",
    "or_reduce": "bitwise_or",
    "xor_reduce": "bitwise_xor",
    "matmul": "add",
    "dot": "add",
}
PRODUCTS = ("matmul", "dot")
REFUSED = ("extern", "define", "check", "expr", "einsum", "product")
Ends = tuple[tuple[bool, bool], ...]  # for each grid: is it the first block, the last one


@dataclass
class Group:
    """The values that one program computes for each block of some grids."""

    stage: int
    grids: list[Grid]
    targets: list[Node]
    leaves: list[Node] = field(default_factory=list)  # inputs of the graph, and reductions of earlier stages


class BlockPlan:
    """A graph, split for the chunks of its inputs.

    Parameters
    ----------
    graph : Graph
        With constant sizes.
    chunks : dict of Node
        Input -> its sizes of chunks along each axis.

    Raises
    ------
    Unsupported
        With the reason, if the function cannot be computed block by block.
    """

    def __init__(self, graph: Graph, chunks: dict[Node, tuple[tuple[int, ...], ...]]) -> None:
        check(graph)
        self.graph = graph
        analysis = Analysis(graph)
        self.axes = analysis.axes
        self.chunks: dict[Grid, tuple[int, ...]] = {}
        self.set_chunks(chunks)
        for axes in self.axes.values():
            self.check_axes(axes)
        self.cuts = {node for node in graph.nodes if self.reduced(node)}
        self.check_cuts()
        self.stages: dict[Node, int] = dict.fromkeys(graph.inputs, 0)
        for node in graph.nodes:
            self.stages[node] = max((self.stages[arg] + (arg in self.cuts) for arg in node.args), default=0)
        self.groups = self.made_groups()

    # --- grids --------------------------------------------------------------------------------

    def set_chunks(self, chunks: dict[Node, tuple[tuple[int, ...], ...]]) -> None:
        """Set the chunks of each grid that is split: those of the first input with several, joined where they have fewer
        elements than a neighbour needs of them.
        """
        for node, rows in chunks.items():
            for axis, row in zip(self.axes[node], rows, strict=True):
                if axis.grid is not None and len(row) > 1:
                    self.chunks.setdefault(axis.grid, row)
        for grid, row in list(self.chunks.items()):
            axes = [a for found in self.axes.values() for a in found if a.grid is grid]
            grid.left, grid.right = max(a.left for a in axes), max(a.right for a in axes)
            least = max(1, grid.left, grid.right, *(a.low + 1 for a in axes), *(a.high + 1 for a in axes))
            self.chunks[grid] = row if grid.whole else joined(row, least)
            if len(self.chunks[grid]) == 1:
                del self.chunks[grid]

    def is_split(self, axis: Axis) -> bool:
        """True if the blocks of an axis are in several chunks."""
        return axis.grid in self.chunks

    def check_axes(self, axes: list[Axis]) -> None:
        """Raise Unsupported if the axes of a value cannot be split as their chunks say."""
        grids = [axis.grid for axis in axes if axis.grid is not None and self.is_split(axis)]
        for grid in grids:
            if grid.whole:
                raise Unsupported(f"an axis of {grid.size} elements has chunks, but {grid.whole}: rechunk it to one chunk")
        if len(set(grids)) < len(grids):
            raise Unsupported("two axes of one value have the same blocks (a matrix and its transpose, an outer product)")

    def reduced(self, node: Node) -> list[Grid]:
        """The split grids over which a node reduces."""
        if node.op in PRODUCTS and len(node.args[0].sizes) == 2:
            axes = [self.axes[node.args[0]][1]]
        elif KINDS.get(node.op) == "reduce":
            axes = [self.axes[node.args[0]][number] for number in numbers(node.attributes["axes"])]
        else:
            axes = []
        return [axis.grid for axis in axes if axis.grid is not None and self.is_split(axis)]

    def check_cuts(self) -> None:
        """A partial result has blocks like those of the grids that remain."""
        for node in self.cuts:
            for axis in self.axes[node]:
                if self.is_split(axis) and (axis.low or axis.high):
                    raise Unsupported(f"a part of an axis with chunks remains after {node.op} at {node.place}")

    # --- programs -----------------------------------------------------------------------------

    def made_groups(self) -> list[Group]:
        """The programs, in the order of their stages."""
        groups: dict[tuple[int, frozenset[Grid]], Group] = {}
        wanted = [node for node in self.graph.nodes if node in self.cuts]
        wanted += [node for node in dict.fromkeys(self.graph.body.results) if node not in self.cuts]
        for node in wanted:
            grids = self.grids_of(node)
            key = self.stages[node], frozenset(grids)
            groups.setdefault(key, Group(self.stages[node], grids, [])).targets.append(node)
        for group in groups.values():
            inner = self.needed(group.targets)
            group.leaves = [n for n in [*self.graph.inputs, *self.graph.nodes] if n in inner and self.is_leaf(n, group)]
        return sorted(groups.values(), key=lambda group: group.stage)

    def grids_of(self, node: Node) -> list[Grid]:
        """The grids whose blocks a value is computed from, block by block."""
        values = node.args if node in self.cuts else (node,)
        found = [a.grid for value in values for a in self.axes[value] if a.grid is not None and self.is_split(a)]
        return list(dict.fromkeys(found))

    def is_leaf(self, node: Node, group: Group) -> bool:
        """True if a program gets the value instead of computing it."""
        return node.op == "input" or (node in self.cuts and node not in group.targets)

    def needed(self, targets: list[Node]) -> set[Node]:
        """The nodes between leaves and targets, with both."""
        found, rest = set(targets), [arg for node in targets for arg in node.args]
        while rest:
            node = rest.pop()
            if node not in found:
                found.add(node)
                rest += [] if node in self.cuts else node.args
        return found

    def text(self, group: Group, ends: Ends) -> str:
        """The graph of a group for blocks that are, or are not, at the ends of its grids."""
        return Writer(self, group, ends).text()


class Writer:
    """Writes the graph of one group, with the size of a block as symbol s0, s1, ... of each grid."""

    def __init__(self, plan: BlockPlan, group: Group, ends: Ends) -> None:
        self.plan, self.group = plan, group
        self.ends = dict(zip(group.grids, ends, strict=True))
        self.made: dict[Node, Node] = {}
        self.nodes: list[Node] = []
        self.count = 0

    def size(self, axis: Axis, less: int = 0) -> int | str:
        """The size of an axis in a block, by `less` elements smaller."""
        if not self.plan.is_split(axis):
            return axis.size
        assert axis.grid is not None
        less += axis.low + axis.high
        return f"s{self.group.grids.index(axis.grid)}" + (f" - {less}" if less else "")

    def sizes(self, node: Node, *, is_trimmed: bool = False) -> list[int | str]:
        """The sizes of a value in a block."""
        return [self.size(axis, sum(self.halo(axis)) if is_trimmed else 0) for axis in self.plan.axes[node]]

    def halo(self, axis: Axis) -> tuple[int, int]:
        """The elements of a value before and after those that belong to the block."""
        if not self.plan.is_split(axis):
            return 0, 0
        assert axis.grid is not None
        first, last = self.ends[axis.grid]
        return 0 if first else axis.grid.left - axis.low, 0 if last else axis.grid.right - axis.high

    def add(self, node: Node) -> Node:
        """Add a node under the next number."""
        node.id = self.count
        self.count += 1
        self.nodes.append(node)
        return node

    def copied(self, node: Node) -> None:
        """Add a node of the whole graph. A partial reduction has the elements of its block alone, in any order."""
        is_cut = node in self.plan.cuts
        args = tuple(self.trimmed(arg) if is_cut else self.made[arg] for arg in node.args)
        attributes = dict(node.attributes)
        if is_cut and KINDS.get(node.op) == "reduce":
            attributes = {"axes": attributes["axes"]}
        sizes = self.sizes(node, is_trimmed=is_cut)
        made = replace(node, args=args, sizes=sizes, attributes=attributes, users=[], meta={})
        self.made[node] = self.add(made)

    def trimmed(self, node: Node) -> Node:
        """The part of a value that belongs to the block, without its halo."""
        halos = [self.halo(axis) for axis in self.plan.axes[node]]
        if not any(map(any, halos)):
            return self.made[node]
        attributes = {"starts": f"{[start for start, _ in halos]}", "steps": f"{[1] * len(halos)}"}
        sizes = self.sizes(node, is_trimmed=True)
        made = Node("slice", (self.made[node],), node.dtype, sizes, "array", attributes, node.place)
        return self.add(made)

    def text(self) -> str:
        """The text of the graph."""
        inner = self.plan.needed(self.group.targets)
        leaves = self.group.leaves
        for number, leaf in enumerate(leaves):
            is_python = leaf.kind == "python"
            self.made[leaf] = Node(
                "input", (), leaf.dtype, self.sizes(leaf), "python" if is_python else "array", name=f"in{number}"
            )
        for node in self.plan.graph.nodes:
            if node in inner and node not in self.made:
                self.copied(node)
        results = [self.made[t] if t in self.plan.cuts else self.trimmed(t) for t in self.group.targets]
        inputs = ", ".join(f"{self.made[leaf].name}: {self.made[leaf].type}" for leaf in leaves)
        given = ", ".join(result.reference for result in results)
        lines = [*self.symbols(), f"graph block({inputs}) {{", *lines_of(self.nodes), f"  return {given}", "}"]
        return "".join(f"{line}\n" for line in lines)

    def symbols(self) -> Iterator[str]:
        """The line that declares the sizes of blocks, which are read from the inputs."""
        rows = []
        for number, grid in enumerate(self.group.grids):
            leaf, at = next(
                (leaf, at)
                for leaf in self.group.leaves
                for at, axis in enumerate(self.plan.axes[leaf])
                if axis.grid is grid
            )
            least = min(self.plan.chunks[grid])
            rows.append(f"s{number} in [{least}, inf) from {self.made[leaf].name}.sizes {at} hint {max(self.plan.chunks[grid])}")
        if rows:
            yield f"symbols {{{', '.join(rows)}}}"


def joined(row: tuple[int, ...], least: int) -> tuple[int, ...]:
    """Chunks of at least `least` elements, made by joining neighbours."""
    found: list[int] = []
    for size in row:
        if found and min(found[-1], size) < least:
            found[-1] += size
        else:
            found.append(size)
    return tuple(found)


def check(graph: Graph) -> None:
    """Raise Unsupported for a graph with effects, loops, library calls or sizes from data."""
    if graph.writes:
        raise Unsupported("the function writes to an argument, and blocks of dask are shared")
    for node in graph.nodes:
        where = f" at {node.place}" if node.place else ""
        if node.blocks:
            raise Unsupported(f"a loop or branch of the program{where} cannot be split into blocks")
        if node.op in REFUSED:
            raise Unsupported(f"{node.name or node.op}{where} cannot be split into blocks")
        if not all(re.fullmatch(r"\d+", str(size)) for size in node.sizes):
            raise Unsupported(f"a size of {node.op}{where} depends on data")
