"""`cinductor.dask.compile`: captures a function for whole arrays and lays its blocks out as a graph of dask."""

from __future__ import annotations

import functools
import itertools
import mmap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.array.overlap import overlap
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import _core
from ..base.graph_text import Node
from ..builds.results import ARGUMENT, CONSTANT, ResultPiece, structure
from ..builds.warming import captured
from ..calls.saved_text import UNKNOWN
from ..compile import check_backend
from ..compile import compile as compile_plain
from ..config import resolve
from ..extensions.kernels import DTYPES
from ..graphs import Graph
from .blocks import BlockProgram, combine
from .grids import Grid
from .plan import COMBINERS, BlockPlan, Group

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python 3.11 has no name for it
FAN_IN = 8  # partial results that one task combines
Index = tuple[int, ...]


def compile(
    fn: Callable[..., Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    backend: str | None = None,
) -> Callable[..., Any]:
    """Compile a function of dask arrays into fused blocks.

    The function is written for whole arrays. Each call captures it once, in this process, without its data. Element-wise code,
    slices and reductions run block by block: one kernel computes all results of a block. A block gets the neighbours that its
    slices need (`dask.array.overlap`), and reductions over an axis with several chunks are combined in a tree. Sums of floats may
    differ from NumPy's in the last bits, as between any two orders.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.
    mode, options, backend
        As in `cinductor.compile`, for a backend of the CPU. Blocks run on one thread unless `options` has `threads`.

    Returns
    -------
    callable
        It takes what fn takes, with dask arrays for arrays, and returns fn's result with lazy dask arrays in it.

    Raises
    ------
    Unsupported
        When called, with reason and line, if fn is not one graph, or cannot be computed block by block: sorts, running totals or
        elements at fixed positions along an axis with several chunks, library calls, loops, writes to arguments.

    Examples
    --------
    >>> f = cinductor.dask.compile(lambda u: (u[2:] - 2*u[1:-1] + u[:-2]).max())
    >>> f(dask.array.random.random(10**6, chunks=10**5)).compute()
    """
    check_backend(backend, "cpu")
    settings: dict[str, Any] = {"mode": mode, "options": dict(options or {}), "backend": backend}
    if isinstance(fn, _core.CompiledFunction):
        own = fn._cinductor_job.settings  # type: ignore[attr-defined]
        if own["device"] not in (None, "cpu"):
            raise ValueError(f"cinductor.dask.compile runs blocks on the CPU, not on {own['device']!r}")
        settings = {
            "mode": mode or own["mode"],
            "options": {**own["options"], **settings["options"]},
            "backend": backend or own["backend"],
        }
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    if not callable(fn):
        raise TypeError(f"cinductor.dask.compile expects a function, got {type(fn).__name__}")
    resolve(settings["mode"], settings["options"])

    @functools.wraps(fn)
    def on_blocks(*args: Any, **kwargs: Any) -> Any:
        return BlockCall(fn, settings, args, kwargs).result()

    return on_blocks


def untouched(array: Any) -> np.ndarray:
    """An array of a dask array's shape and dtype, whose pages are reserved and never touched."""
    if any(np.isnan(array.shape)):
        raise _core.Unsupported("a dask array of unknown chunks: call compute_chunk_sizes() first")
    count = max(1, int(np.prod(array.shape, dtype=object)) * array.dtype.itemsize)
    pages = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    return np.ndarray(array.shape, array.dtype, pages)


class BlockCall:
    """One call: the captured graph, the arrays of its inputs, and the layers of dask that compute it."""

    def __init__(
        self, fn: Callable[..., Any], settings: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.given: dict[int, tuple[Any, Any]] = {}  # id of a stand-in -> it, and the dask array
        self.options = {"threads": 1, **resolve(settings["mode"], settings["options"])}
        self.backend = settings["backend"] or ""
        traced = compile_plain(fn, dynamic=False, **{**settings, "backend": "interp"})  # blocks are compiled, not the whole
        target, job = captured(traced, tuple(map(self.stand_in, args)), {k: self.stand_in(v) for k, v in kwargs.items()})
        specialization = target.specializations[0]
        if specialization.program is None:
            raise _core.Unsupported("nothing is computed: the results are constants, arguments and views of arguments")
        if specialization.saved is None:
            raise _core.Unsupported(f"{job.name}: the program refers to objects of this process")
        self.inputs, self.pieces = specialization.saved[:2]
        self.values = self.values_of(job)
        self.graph = Graph(specialization.program.text("graph"))
        self.arrays: dict[Node, Any] = {
            node: self.values[row[0]] for node, row in zip(self.graph.inputs, self.inputs, strict=True)
        }
        self.plan = BlockPlan(self.graph, {n: a.chunks for n, a in self.arrays.items() if isinstance(a, da.Array)})
        self.halo: dict[Node, Any] = {}

    def stand_in(self, value: Any) -> Any:
        """An argument, with an array in place of each dask array."""
        if isinstance(value, da.Array):
            made = untouched(value)
            self.given[id(made)] = made, value
            return made
        if type(value) in (tuple, list):
            return type(value)(map(self.stand_in, value))
        return {k: self.stand_in(v) for k, v in value.items()} if type(value) is dict else value

    def values_of(self, job: Any) -> list[Any]:
        """The values of the capture's sources, with the dask arrays again."""
        found = job.values()
        if any(found[row[0]] is UNKNOWN for row in self.inputs):
            raise _core.Unsupported(f"{job.name}: an input is an attribute of an object, and blocks get arguments and globals")
        return [self.given[id(value)][1] if id(value) in self.given else value for value in found]

    # --- layers -------------------------------------------------------------------------------

    def result(self) -> Any:
        """The function's result."""
        for node, array in self.arrays.items():
            self.arrays[node] = self.chunked(node, array)
        for group in self.plan.groups:
            self.add(group)
        return structure(self.pieces, self.leaf)

    def leaf(self, piece: ResultPiece) -> Any:
        """One value of the result."""
        if piece.kind == CONSTANT:
            return piece.object
        if piece.kind == ARGUMENT:
            return self.values[piece.number]
        if piece.layout:
            raise _core.Unsupported("the function returns a view of another result: return a copy of it")
        return self.arrays[self.graph.body.results[piece.number]]

    def chunked(self, node: Node, array: Any) -> Any:
        """An input in the chunks of its grids; numbers stay."""
        axes = self.plan.axes[node]
        if not isinstance(array, da.Array | np.ndarray):
            return array
        wanted = tuple(self.plan.chunks.get(a.grid, (a.size,)) for a in axes)  # type: ignore[arg-type]
        return array.rechunk(wanted) if isinstance(array, da.Array) else da.from_array(array, chunks=wanted)

    def with_halo(self, node: Node) -> Any:
        """A leaf whose blocks have the neighbours that programs need."""
        if node not in self.halo:
            axes = self.plan.axes[node]
            depth = {k: (a.grid.left, a.grid.right) for k, a in enumerate(axes) if a.grid in self.plan.chunks}  # type: ignore[union-attr]
            array = self.arrays[node]
            has_halo = any(map(any, depth.values()))
            self.halo[node] = overlap(array, depth, boundary="none", allow_rechunk=False) if has_halo else array
        return self.halo[node]

    def add(self, group: Group) -> None:
        """Add the tasks of a group, and the arrays of its values."""
        leaves = [self.with_halo(leaf) for leaf in group.leaves]
        text = self.plan.text(group, ((True, True),) * len(group.grids))
        name = f"cinductor-{tokenize(text, self.options, *leaves)}"
        tasks: dict[Any, Any] = {}
        for index in self.indices(group.grids):
            at = dict(zip(group.grids, index, strict=True))
            inputs = [self.key(n, array, at) for n, array in zip(group.leaves, leaves, strict=True)]
            tasks[(name, *index)] = (self.program(group, at), *inputs)
        arrays = [leaf for leaf in leaves if isinstance(leaf, da.Array)]
        layer = HighLevelGraph.from_collections(name, tasks, dependencies=arrays)
        for number, node in enumerate(group.targets):
            make = self.combined if node in self.plan.cuts else self.taken
            self.arrays[node] = make(node, group, layer, name, number)

    def indices(self, grids: list[Grid]) -> Iterator[Index]:
        """The indices of all blocks of some grids."""
        return itertools.product(*(range(len(self.plan.chunks[grid])) for grid in grids))

    def key(self, node: Node, array: Any, at: Mapping[Grid, int]) -> Any:
        """The key of a leaf's block, or a number."""
        if not isinstance(array, da.Array):
            return array
        return (array.name, *(at.get(a.grid, 0) for a in self.plan.axes[node]))  # type: ignore[arg-type]

    def program(self, group: Group, at: Mapping[Grid, int]) -> BlockProgram:
        """The program of one block. Ends are of importance where there are halos."""
        ends = tuple(
            (index == 0, index == len(self.plan.chunks[grid]) - 1) if grid.left or grid.right else (True, True)
            for grid, index in at.items()
        )
        return BlockProgram(self.plan.text(group, ends), self.options, self.backend)

    def taken(self, node: Node, group: Group, layer: Any, name: str, number: int) -> Any:
        """The array of a value that each block has a block of."""
        own = f"{name}-{number}"
        grids = [a.grid for a in self.plan.axes[node]]
        tasks = {}
        for index in self.indices(group.grids):
            at = dict(zip(group.grids, index, strict=True))
            tasks[(own, *(at.get(grid, 0) for grid in grids))] = (item, (name, *index), number)  # type: ignore[arg-type]
        return self.array(node, own, tasks, layer)

    def combined(self, node: Node, group: Group, layer: Any, name: str, number: int) -> Any:
        """The array of a reduction, whose partial results are combined in a tree."""
        own = f"{name}-{number}"
        grids = [a.grid for a in self.plan.axes[node]]
        parts: dict[Index, list[Any]] = {}
        for index in self.indices(group.grids):
            at = dict(zip(group.grids, index, strict=True))
            parts.setdefault(tuple(at.get(grid, 0) for grid in grids), []).append((item, (name, *index), number))  # type: ignore[arg-type]
        ufunc, tasks = getattr(np, COMBINERS[node.op]), {}
        for index, keys in parts.items():
            for level in itertools.count():
                rows = [keys[k : k + FAN_IN] for k in range(0, len(keys), FAN_IN)]
                if len(rows) == 1:
                    break
                keys = [(f"{own}-part", *index, level, k) for k in range(len(rows))]
                tasks.update({key: (combine, ufunc, row) for key, row in zip(keys, rows, strict=True)})
            tasks[(own, *index)] = (combine, ufunc, keys)
        return self.array(node, own, tasks, layer)

    def array(self, node: Node, name: str, tasks: dict[Any, Any], layer: Any) -> Any:
        """A dask array over tasks."""
        graph = HighLevelGraph({**layer.layers, name: tasks}, {**layer.dependencies, name: set(layer.layers)})
        chunks = tuple(self.sizes(axis) for axis in self.plan.axes[node])
        return da.Array(graph, name, chunks=chunks, dtype=DTYPES[node.dtype])

    def sizes(self, axis: Any) -> tuple[int, ...]:
        """The chunks of an axis: those of its grid without the positions that it does not have."""
        if axis.grid not in self.plan.chunks:
            return (axis.size,)
        row = list(self.plan.chunks[axis.grid])
        row[0] -= axis.low
        row[-1] -= axis.high
        return tuple(row)


def item(values: tuple[Any, ...], number: int) -> Any:
    """One result of a block."""
    return values[number]
