"""Collectives of members on the CPU: threads of one process, which hand copies of their arrays to each other."""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from typing import Any, TypeAlias

import numpy as np

from .. import _core

Parts: TypeAlias = dict[int, "np.ndarray[Any, Any]"]
COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


class MemberLost(Exception):
    """Raised where a member does not come to a collective; a mesh raises it as `DeviceError`, and no function runs again for it."""


class Meeting:
    """The members of a group, each a thread. They come to the same collectives in the same order."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.changed = threading.Condition()
        self.numbers = [0] * count  # of collectives that each member has come to
        self.parts: defaultdict[int, Parts] = defaultdict(dict)  # by the number of the collective
        self.left: defaultdict[int, int] = defaultdict(int)  # members that have taken all parts
        self.why = ""  # it has ended

    def exchange(self, rank: int, part: np.ndarray[Any, Any], timeout: float) -> Parts:
        """The arrays of all members. Raises MemberLost if one does not come within the timeout, or has failed."""
        with self.changed:
            number = self.numbers[rank]
            self.numbers[rank] += 1
            parts = self.parts[number]
            parts[rank] = part.copy()
            self.changed.notify_all()
            self.changed.wait_for(lambda: len(parts) == self.count or self.why, timeout)
            missing = [k for k in range(self.count) if k not in parts]
            if missing:
                self.end(f"member {missing[0]} of {self.count} did not come to the collective within {timeout:g} s")
                raise MemberLost(self.why)
            self.left[number] += 1
            if self.left[number] == self.count:
                del self.parts[number], self.left[number]
            return parts

    def end(self, why: str) -> None:
        """Let all members that wait fail, now and later. The first reason stays."""
        with self.changed:
            self.why = self.why or why
            self.changed.notify_all()


class HostCollective:
    """A collective along an axis, as a library call of the host: the member is that of the calling thread.

    Like the group in the call's key, it is an object of this process, so captures with collectives are not saved for others.
    """

    def __init__(self, member_of: Any, axis: str, name: str, key: str) -> None:
        self.member_of, self.axis, self.name, self.key = member_of, axis, name, key

    def __call__(self, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        """Store this member's result."""
        member = self.member_of()
        if not member.is_host:
            raise _core.DeviceError("a collective needs arrays of the devices of its mesh")
        rank = member.coordinates[self.axis]
        parts = member.mesh.meeting(member.group(self.axis), member.mesh.shape[self.axis]).exchange(rank, x, member.mesh.timeout)
        getattr(self, self.name)(parts, rank, out)

    def combined(self, parts: list[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]) -> None:
        """Combine arrays in the order of members, so that the result is the same for each of them."""
        out[...] = parts[0]
        for part in parts[1:]:
            COMBINE[self.key](out, part, out=out)

    def all_reduce(self, parts: Parts, rank: int, out: np.ndarray[Any, Any]) -> None:
        """The combination of all arrays."""
        self.combined([parts[k] for k in range(len(parts))], out)

    def reduce_scatter(self, parts: Parts, rank: int, out: np.ndarray[Any, Any]) -> None:
        """This member's part of it."""
        self.combined([parts[k][rank] for k in range(len(parts))], out)

    def all_gather(self, parts: Parts, rank: int, out: np.ndarray[Any, Any]) -> None:
        """All arrays along a new first axis."""
        for k, part in parts.items():
            out[k] = part

    def broadcast(self, parts: Parts, rank: int, out: np.ndarray[Any, Any]) -> None:
        """The array of the root."""
        out[...] = parts[int(self.key.removeprefix("root="))]

    def send_recv(self, parts: Parts, rank: int, out: np.ndarray[Any, Any]) -> None:
        """The array that is sent to this member, or zeros."""
        senders = [int(a) for a, _, b in (pair.partition(">") for pair in self.key.split()) if int(b) == rank]
        out[...] = parts[senders[0]] if senders else 0


host_collective = functools.cache(HostCollective)
