"""Collectives: what the members of a mesh do together along one of its axes, inside of functions of `shard_map`.

Each is a node of the graph. It runs in a stream of its own, in parallel with kernels that do not need its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, to_device
from ..calls.stance import set_stance
from ..compile import compile
from .mesh import current, size_of
from .threads import HostCollective, host_collective

REDUCTIONS = ("sum", "prod", "max", "min")
REDUCED = frozenset("bilqBILQefd")  # dtypes that members' arrays are combined in: chars of NumPy
ADDED = frozenset("FD")  # that are added only


class CollectiveCall(NamedTuple):
    """A collective as a library call of the graph."""

    name: str
    key: str
    shape: tuple[Any, ...]
    members: int


def axis_size(axis_name: str) -> int:
    """Return the number of members along an axis of the mesh.

    Parameters
    ----------
    axis_name : str
        The axis.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError, RuntimeError
        If the mesh has no such axis; outside of `shard_map` and `with mesh:`.
    """
    return size_of(axis_name)


def axis_index(axis_name: str) -> int:
    """Return the position of this member along an axis of the mesh: a number of Python, which the program is compiled for.

    Parameters
    ----------
    axis_name : str
        The axis.

    Returns
    -------
    int
        From 0.

    Raises
    ------
    ValueError, RuntimeError
        If the mesh has no such axis; outside of `shard_map` and `with mesh:`.
    """
    size_of(axis_name)
    return current().coordinates[axis_name]


def all_reduce(x: Any, axis_name: str, op: str = "sum") -> Any:
    """Return, for each member, the combination of all members' arrays.

    Parameters
    ----------
    x : Array
        This member's array; all members' have one shape and dtype.
    axis_name : str
        The axis of the mesh.
    op : str
        "sum", "prod", "max" or "min".

    Returns
    -------
    Array
        The same for all members. Floats are added in an order of the device's library.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        For another axis or operation; for dtypes that are not combined; outside of `shard_map` and `with mesh:`.
    """
    return alone(all_reduce, x, axis_name, op)


def stack_members(x: Any, axis_name: str) -> Any:
    """All members' arrays, along a new first axis."""
    return alone(stack_members, x, axis_name)


def reduce_own(x: Any, axis_name: str, op: str) -> Any:
    """This member's part of all_reduce of arrays that have a part for each member along the first axis."""
    return alone(reduce_own, x, axis_name, op)


def all_gather(x: Any, axis_name: str, axis: int = 0) -> Any:
    """Return, for each member, the arrays of all members one after another along an axis.

    Parameters
    ----------
    x : Array
        This member's array; all members' have one shape and dtype.
    axis_name : str
        The axis of the mesh.
    axis : int
        The axis of the array.

    Returns
    -------
    Array
        The same for all members.

    Raises
    ------
    ValueError, RuntimeError
        For another axis; outside of `shard_map` and `with mesh:`.
    """
    axis = axis % x.ndim
    stacked = np.moveaxis(stack_members(x, axis_name), 0, axis)
    return stacked.reshape((*x.shape[:axis], x.shape[axis] * axis_size(axis_name), *x.shape[axis + 1 :]))


def reduce_scatter(x: Any, axis_name: str, op: str = "sum", axis: int = 0) -> Any:
    """Return this member's part of what `all_reduce` gives.

    Parameters
    ----------
    x : Array
        This member's array; all members' have one shape and dtype.
    axis_name : str
        The axis of the mesh.
    op : str
        "sum", "prod", "max" or "min".
    axis : int
        The axis of the array that is divided among the members.

    Returns
    -------
    Array
        Of the size divided by the number of members.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        For a size that the number of members does not divide, another axis or operation; for dtypes that are not combined; outside
        of `shard_map` and `with mesh:`.
    """
    axis, count = axis % x.ndim, axis_size(axis_name)
    if x.shape[axis] % count:
        raise ValueError(f"reduce_scatter: axis {axis} of size {x.shape[axis]} is not divisible by the {count} members along {axis_name!r}")
    parts = x.reshape((*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :]))
    return reduce_own(np.moveaxis(parts, axis, 0), axis_name, op)


def broadcast(x: Any, axis_name: str, root: int = 0) -> Any:
    """Return, for each member, the array of one of them.

    Parameters
    ----------
    x : Array
        This member's array; all members' have one shape and dtype.
    axis_name : str
        The axis of the mesh.
    root : int
        The position of the member whose array it is.

    Returns
    -------
    Array
        The same for all members.

    Raises
    ------
    ValueError, RuntimeError
        For another axis or position; outside of `shard_map` and `with mesh:`.
    """
    return alone(broadcast, x, axis_name, root)


def send_recv(x: Any, axis_name: str, pairs: Sequence[tuple[int, int]]) -> Any:
    """Send this member's array to another member, and return what is sent to this one.

    Parameters
    ----------
    x : Array
        This member's array; all members' have one shape and dtype.
    axis_name : str
        The axis of the mesh.
    pairs : sequence of (int, int)
        For all members, who sends to whom: each sends at most once, and gets at most one array.

    Returns
    -------
    Array
        Zeros, if nobody sends to this member.

    Raises
    ------
    ValueError, RuntimeError
        For another axis, or pairs that do not fit; outside of `shard_map` and `with mesh:`.

    Examples
    --------
    >>> send_recv(x, "x", [(0, 1), (1, 0)])        # two members exchange arrays
    """
    return alone(send_recv, x, axis_name, pairs)


def halo_exchange(x: Any, axis_name: str, width: int = 1, axis: int = 0, periodic: bool = False) -> Any:
    """Return the member's part of an array with the neighbours' elements at both ends: what a stencil reads.

    Parameters
    ----------
    x : Array
        This member's part.
    axis_name : str
        The axis of the mesh along which the array is sharded.
    width : int
        The number of elements from each neighbour.
    axis : int
        The axis of the array that is sharded.
    periodic : bool
        The last member is the neighbour of the first. Otherwise there are zeros beyond the ends of the whole array.

    Returns
    -------
    Array
        Larger by 2 * width along the axis.

    Raises
    ------
    ValueError, RuntimeError
        For another axis, or a part that has fewer than `width` elements; outside of `shard_map` and `with mesh:`.
    """
    axis, count = axis % x.ndim, axis_size(axis_name)
    size = x.shape[axis]
    if not 0 < width <= size:
        raise ValueError(f"halo_exchange: width is {width} for parts of {size} elements along axis {axis}; wanted: 1 to {size}")
    last = count if periodic else count - 1
    up = [(k, (k + 1) % count) for k in range(last)]
    down = [((k + 1) % count, k) for k in range(last)]
    around = (slice(None),) * axis
    before = send_recv(x[(*around, slice(size - width, size))], axis_name, up)
    after = send_recv(x[(*around, slice(0, width))], axis_name, down)
    return np.concatenate([before, x, after], axis=axis)


# --- as library calls of the graph ---


def reduction(kind: str, op: str, dtype: np.dtype[Any]) -> str:
    """The name of a reduction. Raises ValueError for another one, TypeError for dtypes that are not combined."""
    if op not in REDUCTIONS:
        raise ValueError(f"{kind}: op is {op!r}; wanted: one of {', '.join(map(repr, REDUCTIONS))}")
    if dtype.char not in REDUCED and dtype.name != "bfloat16" and not (dtype.char in ADDED and op == "sum"):
        raise TypeError(f"{kind}: arrays of {dtype} are not combined by {op!r}; convert them with astype")
    return op


def plan_all_reduce(x: Any, axis_name: str, op: str = "sum") -> CollectiveCall:
    """The call of `all_reduce`."""
    return CollectiveCall("all_reduce", reduction("all_reduce", op, x.dtype), x.shape, size_of(axis_name))


def plan_stack(x: Any, axis_name: str) -> CollectiveCall:
    """The call of `stack_members`."""
    count = size_of(axis_name)
    return CollectiveCall("all_gather", "", (count, *x.shape), count)


def plan_own(x: Any, axis_name: str, op: str) -> CollectiveCall:
    """The call of `reduce_own`."""
    return CollectiveCall("reduce_scatter", reduction("reduce_scatter", op, x.dtype), x.shape[1:], size_of(axis_name))


def plan_broadcast(x: Any, axis_name: str, root: int = 0) -> CollectiveCall:
    """The call of `broadcast`."""
    count = size_of(axis_name)
    if type(root) is not int or not 0 <= root < count:
        raise ValueError(f"broadcast: root is {root!r}; wanted: 0 to {count - 1}, the members along {axis_name!r}")
    return CollectiveCall("broadcast", f"root={root}", x.shape, count)


def plan_send_recv(x: Any, axis_name: str, pairs: Sequence[tuple[int, int]]) -> CollectiveCall:
    """The call of `send_recv`."""
    count = size_of(axis_name)
    given = [tuple(pair) for pair in pairs]
    is_right = all(len(pair) == 2 and all(type(k) is int and 0 <= k < count for k in pair) for pair in given)
    if not is_right or any(len({pair[k] for pair in given}) != len(given) for k in (0, 1)):
        raise ValueError(
            f"send_recv: pairs is {pairs!r}; wanted: pairs of 0 to {count - 1}, in which each sends once and gets one array at most"
        )
    return CollectiveCall("send_recv", " ".join(f"{a}>{b}" for a, b in given), x.shape, count)


PLANS: dict[Callable[..., Any], Callable[..., CollectiveCall]] = {
    all_reduce: plan_all_reduce,
    stack_members: plan_stack,
    reduce_own: plan_own,
    broadcast: plan_broadcast,
    send_recv: plan_send_recv,
}


def on_host(axis_name: str, call: CollectiveCall) -> HostCollective:
    """The call for arrays of the host."""
    return host_collective(current, axis_name, call.name, call.key)


def alone(function: Callable[..., Any], x: Any, axis_name: str, *rest: Any) -> Any:
    """One collective as a program of its own, for an Array. Raises RuntimeError outside of `with mesh:`."""
    member = current()
    if member.is_host:
        made = alone_on_host(function, np.asarray(x), axis_name, *rest)
        return to_device(made, member.device) if isinstance(x, Array) else made
    PLANS[function](x, axis_name, *rest)
    if not isinstance(x, Array):
        raise TypeError(f"{function.__name__} takes an Array of a device, not {type(x).__name__}")
    key = (function, axis_name, repr(rest))
    if key not in member.calls:
        member.calls[key] = compile(lambda y: function(y, axis_name, *rest), fullgraph=True)
    with set_stance("default"):
        return member.calls[key](x)


def alone_on_host(function: Callable[..., Any], x: np.ndarray[Any, Any], axis_name: str, *rest: Any) -> Any:
    """One collective for an array of NumPy, where a function runs in Python."""
    call = PLANS[function](x, axis_name, *rest)
    if call.members == 1:
        return x.reshape(call.shape).copy() if call.name != "send_recv" or call.key else np.zeros_like(x)
    out = np.empty(call.shape, x.dtype)
    on_host(axis_name, call)(x, out)
    return out[()]
