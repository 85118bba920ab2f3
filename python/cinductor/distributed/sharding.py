"""Arrays whose parts are on the devices of a mesh, and functions that run on each part."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array, to_device
from ..compile import compile
from .mesh import Member, Mesh


class P(tuple):  # type: ignore[type-arg]
    """How an array lies on a mesh: for each of its axes the axis of the mesh that divides it, or None.

    Axes that are not named are not divided; axes of the mesh that are not named hold copies.

    Parameters
    ----------
    *axes : str or None
        The names.

    Raises
    ------
    TypeError, ValueError
        For other objects than names; for a name that is there twice.

    Examples
    --------
    >>> P("x", None)        # rows are divided along the axis "x" of the mesh
    >>> P()                 # each member has the whole array
    """

    __slots__ = ()

    def __new__(cls, *axes: str | None) -> P:
        if any(axis is not None and type(axis) is not str for axis in axes):
            raise TypeError(f"P{axes!r}: wanted: names of axes of a mesh, or None")
        named = [axis for axis in axes if axis is not None]
        if len(set(named)) != len(named):
            raise ValueError(f"P{axes!r}: an axis of the mesh divides one axis only")
        return super().__new__(cls, axes)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"


def part_of(mesh: Mesh, spec: P, shape: Sequence[int], member: Member) -> tuple[slice, ...]:
    """The slices of a whole array that are a member's part. Raises ValueError for a shape that the mesh does not divide."""
    if len(spec) > len(shape):
        raise ValueError(f"{spec} is for arrays of {len(spec)} axes or more, not for shape {tuple(shape)}")
    found = []
    for axis, name in enumerate(spec):
        count = count_of(mesh, name)
        if shape[axis] % count:
            raise ValueError(f"axis {axis} of size {shape[axis]} is not divisible by the {count} members along {name!r} of the mesh")
        size = shape[axis] // count
        start = size * member.coordinates[name] if name is not None else 0
        found.append(slice(start, start + size))
    return tuple(found)


def count_of(mesh: Mesh, name: str | None) -> int:
    """The number of parts along an axis of the mesh. Raises ValueError for another name."""
    if name is not None and name not in mesh.shape:
        raise ValueError(f"the mesh has no axis {name!r}; it has {mesh.axis_names}")
    return mesh.shape[name] if name is not None else 1


class ShardedArray:
    """An array whose parts are on the devices of a mesh.

    `shard`, and functions of `shard_map`, make them.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    spec : P
        How the array lies on it.
    shards : sequence of Array
        The parts of this process's members, in their order, all of one shape and dtype.

    Raises
    ------
    ValueError
        For another number of parts, or parts that differ.

    Attributes
    ----------
    shape, dtype : tuple of int, dtype
        Of the whole array.
    """

    def __init__(self, mesh: Mesh, spec: P, shards: Sequence[Array]) -> None:
        self.mesh, self.spec, self.shards = mesh, spec, list(shards)
        first = self.shards[0] if self.shards else None
        if len(self.shards) != len(mesh.members) or first is None:
            raise ValueError(f"{len(self.shards)} parts for the {len(mesh.members)} members of this process")
        if any(s.shape != first.shape or s.dtype != first.dtype for s in self.shards):
            raise ValueError(f"the parts differ: {[(s.shape, str(s.dtype)) for s in self.shards]}")
        if len(spec) > first.ndim:
            raise ValueError(f"{spec} is for arrays of {len(spec)} axes or more, not for parts of shape {first.shape}")
        names = (*spec, *(None,) * (first.ndim - len(spec)))
        self.shape = tuple(size * count_of(mesh, name) for size, name in zip(first.shape, names, strict=True))
        self.dtype = first.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Copy the whole array to host memory.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            Parts are on devices of other processes: `all_gather` gives each member the whole.
        """
        if not any(self.spec):
            return self.shards[0].numpy()
        if not self.mesh.is_whole:
            raise ValueError("parts of the array are on devices of other processes: use all_gather in the function")
        whole = np.empty(self.shape, self.dtype)
        for copy, member in zip([shard.start_copy() for shard in self.shards], self.mesh.members, strict=True):
            whole[part_of(self.mesh, self.spec, self.shape, member)] = copy.numpy()
        return whole

    def __repr__(self) -> str:
        return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, {self.spec} on {self.mesh})"


def shard(x: Any, mesh: Mesh, spec: P) -> ShardedArray:
    """Copy the parts of an array to the devices of a mesh.

    Parameters
    ----------
    x : array_like
        The whole array; with several processes each gives the same, and keeps the parts of its own members.
    mesh : Mesh
        The mesh.
    spec : P
        How the array lies on it.

    Returns
    -------
    ShardedArray
        The array.

    Raises
    ------
    ValueError
        For a size that the mesh does not divide, or an axis that it does not have.
    """
    x, spec = np.asarray(x), as_spec(spec)
    parts = [part_of(mesh, spec, x.shape, member) for member in mesh.members]
    return ShardedArray(mesh, spec, [to_device(x[p], m.device) for p, m in zip(parts, mesh.members, strict=True)])


def as_spec(spec: Any) -> P:
    """A spec. Raises TypeError for other objects."""
    if type(spec) is not P:
        raise TypeError(f"a spec is {spec!r}; wanted: P('x', None)")
    return spec


def shard_map(
    fn: Callable[..., Any],
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a function that each member of a mesh runs on its own parts, at the same time.

    The function is ordinary NumPy code for one part. Members exchange data by collectives (`all_reduce`, `halo_exchange`, ...).
    All members must call the same collectives in the same order.

    Parameters
    ----------
    fn : callable
        The function.
    mesh : Mesh
        The mesh.
    in_specs : P, or tuple of P or None
        How each argument is divided; one P: all arguments. None: the argument is no array, and each member gets it as it is.
    out_specs : P, or tuple of P
        How the results of the members make up each result.
    mode, options
        As in `cinductor.compile`.

    Returns
    -------
    callable
        Takes whole arrays (which are sharded) and ShardedArrays of the same specs, returns ShardedArrays.

    Raises
    ------
    TypeError, ValueError
        For specs of another kind. By the function: for sizes that the mesh does not divide, and for ShardedArrays of another mesh or
        spec.
    DeviceError
        By the function, or where a result is used: if a member fails or does not come within the mesh's timeout. The mesh is then
        closed.

    Examples
    --------
    >>> total = shard_map(lambda x: all_reduce(x.sum(), "x"), mesh, P("x"), P())
    >>> total(np.ones(1000)).numpy()
    """
    ins = in_specs if type(in_specs) is tuple else None
    every = None if ins is not None else as_spec(in_specs)
    outs = [as_spec(spec) for spec in out_specs] if type(out_specs) is tuple else as_spec(out_specs)
    for spec in ins or ():
        if spec is not None:
            as_spec(spec)
    settings: dict[str, Any] = {"mode": mode, "options": options}
    compiled = {member: compile(fn, **settings) for member in mesh.members}

    def given(value: Any, spec: P | None) -> list[Any]:
        """An argument for each member."""
        if spec is None:
            return [value] * len(mesh.members)
        if not isinstance(value, ShardedArray):
            return list(shard(value, mesh, spec).shards)
        if value.mesh is not mesh or trimmed(value.spec) != trimmed(spec):
            raise ValueError(f"an argument lies as {value.spec} on {value.mesh}; wanted: {spec} on {mesh}")
        return list(value.shards)

    @functools.wraps(fn)
    def call(*args: Any) -> Any:
        specs = ins if ins is not None else (every,) * len(args)
        if len(specs) != len(args):
            raise TypeError(f"{len(args)} arguments for {len(specs)} in_specs")
        rows = [given(value, spec) for value, spec in zip(args, specs, strict=True)]
        mesh.open()
        own = dict(zip(mesh.members, zip(*rows, strict=True) if rows else itertools.repeat(()), strict=False))
        results = mesh.each(lambda member: compiled[member](*own[member]))
        return assembled(mesh, outs, results)

    call.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    return call


def trimmed(spec: P) -> tuple[str | None, ...]:
    """A spec without the Nones at its end."""
    names = tuple(spec)
    while names and names[-1] is None:
        names = names[:-1]
    return names


def assembled(mesh: Mesh, outs: Any, results: list[Any]) -> Any:
    """The members' results as sharded arrays. Raises TypeError if they do not fit the specs."""
    if type(outs) is P:
        if not all(isinstance(result, Array) for result in results):
            raise TypeError(f"the function returns {type(results[0]).__name__}; wanted: an array, or out_specs as a tuple")
        return ShardedArray(mesh, outs, results)
    if any(type(result) is not tuple or len(result) != len(outs) for result in results):
        raise TypeError(f"the function does not return a tuple of {len(outs)} arrays, as out_specs says")
    return tuple(assembled(mesh, spec, list(column)) for spec, column in zip(outs, zip(*results, strict=True), strict=True))
