"""Meshes of devices, and the groups of devices along their axes."""

from __future__ import annotations

import contextvars
import functools
import hashlib
import itertools
import json
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from .. import _core
from ..arrays.libraries import prepare
from ..arrays.machine import Device, devices
from .rendezvous import processes, wait_for
from .threads import Meeting, MemberLost

HOST = "cpu"  # whose members are threads of one process
GRACE = 5.0  # seconds in which all members fail if one does
MEMBER: contextvars.ContextVar[Member | None] = contextvars.ContextVar("cinductor.member", default=None)
_numbers = itertools.count()  # of meshes; the same in all processes, which make them in the same order


class Worker:
    """A thread that makes calls in their order. It starts with the first one, and ends when this object is freed.

    A call goes there and its result back by two queues of C, in half of the time that `concurrent.futures` takes.
    """

    def __init__(self, name: str) -> None:
        self.name, self.calls, self.is_started = name, SimpleQueue[Any](), False
        weakref.finalize(self, self.calls.put, None)

    def submit(self, number: int, call: Callable[[], Any], results: SimpleQueue[CallResult]) -> None:
        """Make a call, in a copy of the caller's context. Its outcome is put to the results."""
        if not self.is_started:
            self.is_started = True
            threading.Thread(target=make_calls, args=(self.calls,), name=self.name, daemon=True).start()
        self.calls.put((number, contextvars.copy_context(), call, results))


class CallResult(NamedTuple):
    """The result of a call by its number, or its exception."""

    number: int
    result: Any
    error: BaseException | None


def make_calls(calls: SimpleQueue[Any]) -> None:
    """Make the calls of a worker, until there is None. The thread refers to nothing of a call when its caller has the result."""
    while (item := calls.get()) is not None:
        number, context, call, results = item
        del item
        outcomes = [outcome_of(number, context, call)]
        del context, call
        results.put(outcomes.pop())
        del results


def outcome_of(number: int, context: contextvars.Context, call: Callable[[], Any]) -> CallResult:
    """Make a call in a context."""
    try:
        return CallResult(number, context.run(call), None)
    except BaseException as error:  # noqa: BLE001  (the caller raises it)
        return CallResult(number, None, error)


class Member:
    """One device of this process in a mesh.

    Attributes
    ----------
    mesh : Mesh
        The mesh.
    position : int
        In the order of members.
    device : str
        "cuda:1".
    coordinates : dict of int
        By axis.
    """

    def __init__(self, mesh: Mesh, position: int, device: str) -> None:
        self.mesh, self.position, self.device = mesh, position, device
        rest, self.coordinates = position, {}
        for name, size in reversed(mesh.shape.items()):
            rest, self.coordinates[name] = divmod(rest, size)
        self.is_host = device == HOST
        self.calls: dict[Any, Any] = {}  # compiled functions of single collectives
        self.worker = Worker(f"cinductor-{device}")

    def group(self, axis: str) -> str:
        """The name of the group along an axis that the member belongs to."""
        others = [(name, k) for name, k in sorted(self.coordinates.items()) if name != axis]
        text = json.dumps([self.mesh.identity, axis, others])
        return f"{axis}.{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def open(self, axis: str) -> None:
        """Become a member of the group along an axis. Raises DeviceError if another member does not come."""
        if self.is_host:
            return
        name, rank, count = self.group(axis), self.coordinates[axis], self.mesh.shape[axis]
        key = f"group {name}"
        if rank == 0:
            processes().values.set(key, _core.group_name(self.device).hex())
        unique = bytes.fromhex(wait_for(key, self.mesh.timeout, f"member 0 of {count} along axis {axis!r}"))
        _core.group_open(self.device, name, unique, rank, count, self.mesh.timeout)

    def open_all(self, axes: list[str]) -> None:
        """Become a member of the groups along some axes."""
        for axis in axes:
            self.open(axis)

    def run(self, call: Callable[[], Any]) -> Any:
        """Call with this member in force, on its device."""
        token = MEMBER.set(self)
        try:
            return call()
        finally:
            MEMBER.reset(token)


class Mesh:
    """Devices in a grid with named axes, over which arrays are sharded and collectives run.

    In one process a mesh has devices of this process. After `initialize` it has those that each process names, in the order of
    processes; all processes make the same meshes in the same order.

    Parameters
    ----------
    shape : tuple of int
        The number of members along each axis.
    axis_names : tuple of str
        The names of the axes: words without spaces.
    devices : str, Device or sequence of them
        Of this process: "cuda" (all of that kind), "cuda:1", or a sequence. The last axis varies fastest. "cpu": each member is a
        thread of this process.
    timeout : float
        Seconds that a member waits for the others in a collective. After that the waiting members raise DeviceError, and the
        mesh is of no use any more.

    Raises
    ------
    ValueError
        If the numbers of members and devices differ, a device is named twice, or a device has no collectives.
    DeviceError
        If a device cannot be used, or another process does not come within the timeout.

    Examples
    --------
    >>> mesh = cinductor.distributed.Mesh((2,), ("x",))           # both GPUs of the machine
    >>> mesh = cinductor.distributed.Mesh((2, 2), ("x", "y"), devices=["cuda:0", "cuda:1", "cuda:2", "cuda:3"])
    """

    def __init__(
        self, shape: Sequence[int], axis_names: Sequence[str], devices: Any = "cuda", timeout: float = 300.0
    ) -> None:
        prepare()
        axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.shape: dict[str, int] = dict(zip(axis_names, map(int, shape), strict=False))
        self.timeout = float(timeout)
        if len(self.shape) != len(axis_names) or len(shape) != len(axis_names) or not self.shape:
            raise ValueError(f"axis_names is {axis_names!r} for a shape of {len(shape)} axes; wanted: a name for each, all different")
        if any(type(name) is not str or not name.isidentifier() for name in axis_names) or min(self.shape.values()) < 1:
            raise ValueError(f"a mesh of shape {tuple(shape)} with axes {axis_names!r}: names are identifiers, sizes 1 or more")
        own = [HOST] * self.size if devices == HOST else local_devices(devices)
        everywhere = self.announce(own)
        if len(everywhere) != self.size:
            raise ValueError(f"a mesh of shape {tuple(shape)} has {self.size} members, and there are {len(everywhere)} devices: {everywhere}")
        self.devices: tuple[str, ...] = tuple(device for _, device in everywhere)
        first = [process for process, _ in everywhere].index(processes().number)
        self.members = [Member(self, first + k, device) for k, device in enumerate(own)]
        self.is_whole = len(self.members) == self.size  # all members are of this process
        hosts = [device == HOST for device in self.devices]
        if any(hosts) and not (all(hosts) and self.is_whole):
            raise ValueError(f"members on the CPU are threads of one process, and all of a mesh's: {self.devices}")
        self._meetings: dict[str, Meeting] = {}
        self._lock = threading.Lock()
        self._is_open = self._is_closed = False
        self._tokens: list[contextvars.Token[Member | None]] = []

    @property
    def size(self) -> int:
        """The number of members."""
        return math.prod(self.shape.values())

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(self.shape)

    def announce(self, own: list[str]) -> list[tuple[int, str]]:
        """Processes and devices of all members; sets `identity`."""
        number, here = next(_numbers), processes()
        described = json.dumps([list(self.shape.items()), own])
        here.values.set(f"mesh {number} of {here.number}", described)
        found: list[tuple[int, str]] = []
        for process in range(here.total):
            text = wait_for(f"mesh {number} of {process}", self.timeout, f"process {process} of {here.total}")
            shape, names = json.loads(text)
            if shape != json.loads(described)[0]:
                raise ValueError(f"process {process} makes a mesh of {dict(shape)}, process {here.number} one of {self.shape}")
            found += [(process, name) for name in names]
        self.identity = f"{number} {self.shape} {found}"
        return found

    # --- groups ---

    def open(self) -> None:
        """Connect the members, once; collectives do it when they are first used. Raises DeviceError if a member does not come."""
        with self._lock:
            if self._is_closed:
                raise _core.DeviceError("the mesh was closed, or a member of it failed: make a new one")
            if not self._is_open:
                self._is_open = True
                axes = [axis for axis, size in self.shape.items() if size > 1]
                self.each(lambda member: member.open_all(axes))

    def close(self) -> None:
        """Disconnect this process's members; collectives that run fail. Also after a failure."""
        self._is_closed = True
        for meeting in [*self._meetings.values()]:
            meeting.end("a member of the mesh has failed, or the mesh was closed")
        for member in self.members:
            for axis, size in self.shape.items():
                if size > 1 and not member.is_host:
                    _core.group_close(member.device, member.group(axis))

    def meeting(self, group: str, count: int) -> Meeting:
        """Where the members of a group on the CPU meet."""
        with self._lock:
            return self._meetings.setdefault(group, Meeting(count))

    def each(self, call: Callable[[Member], Any]) -> list[Any]:
        """The results of a call for each member of this process, at the same time.

        If a device fails, or one member fails and another does not, the mesh is closed.
        """
        alone, outcomes = self.members[0], SimpleQueue[CallResult]()
        try:
            if len(self.members) == 1:
                return [alone.run(lambda: call(alone))]
            for number, member in enumerate(self.members):
                member.worker.submit(number, functools.partial(member.run, functools.partial(call, member)), outcomes)
            return self.collect(outcomes)
        except MemberLost as error:
            self.close()
            raise _core.DeviceError(str(error)) from None
        except _core.DeviceError:
            self.close()
            raise

    def collect(self, outcomes: SimpleQueue[CallResult]) -> list[Any]:
        """The members' results. Raises the first exception, and closes the mesh if a member has none: it may wait for the others."""
        results: list[Any] = [None] * len(self.members)
        errors: list[BaseException] = []
        end = 0.0
        for _ in self.members:
            try:
                outcome = outcomes.get(timeout=max(0.0, end - time.monotonic()) if errors else None)
            except Empty:
                break
            results[outcome.number] = outcome.result
            if outcome.error is not None:
                end = end or time.monotonic() + GRACE
                errors.append(outcome.error)
        if not errors:
            return results
        if len(errors) < len(self.members) or not all(isinstance(error, Exception) for error in errors):
            self.close()
        raise errors[0]

    # --- single collectives ---

    def __enter__(self) -> Mesh:
        """Let this thread call collectives by themselves: it is this process's member. Raises ValueError if the process has several."""
        if len(self.members) != 1:
            raise ValueError(f"this process has {len(self.members)} members of the mesh: shard_map calls a function for each")
        self.open()
        self._tokens.append(MEMBER.set(self.members[0]))
        return self

    def __exit__(self, *error: Any) -> None:
        MEMBER.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.shape.items())}: {', '.join(self.devices)})"

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)


def local_devices(asked: Any) -> list[str]:
    """The texts of this process's devices. Raises ValueError for devices without collectives, or named twice."""
    if isinstance(asked, str) and ":" not in asked:
        asked = [device for device in devices() if device.name == asked]
    elif isinstance(asked, str | Device):
        asked = [asked]
    found = [str(Device(device) if isinstance(device, str) else device) for device in asked]
    if len({device for device in found if device != HOST}) != len(found) - found.count(HOST):
        raise ValueError(f"a device is named twice: {found}")
    if not found:
        raise ValueError("no devices are named, or there are none of the kind")
    for device in set(found) - {HOST}:
        _core.group_check(device)
    return found


def current() -> Member:
    """The member whose call this is. Raises RuntimeError outside of `shard_map` and `with mesh`."""
    member = MEMBER.get()
    if member is None:
        raise RuntimeError("a collective is called outside of shard_map and of `with mesh:`")
    return member


def identity() -> str:
    """The mesh in force and the member of it, as a text; empty outside of `shard_map` and `with mesh`."""
    member = MEMBER.get()
    return f"{member.position} of {member.mesh.identity}" if member else ""


def size_of(axis_name: str) -> int:
    """The number of members along an axis of the mesh in force. Raises ValueError for another name."""
    shape = current().mesh.shape
    if axis_name not in shape:
        raise ValueError(f"the mesh has no axis {axis_name!r}; it has {tuple(shape)}")
    return shape[axis_name]
