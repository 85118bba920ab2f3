"""Calls of compiled functions with device arrays.

A device variant of the function runs them; its programs take and return device arrays. Data are copied to the host
only if the option `offload` finds that the CPU is faster.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from .. import _core
from ..base import lazy, signals
from ..base.class_lookup import is_a
from ..base.signature import signature_of
from ..calls import saved
from ..calls.job import Job
from .array import HOST, Array, from_dlpack, leave, to_device
from .libraries import prepare
from .machine import Device, check_place, text
from .packages import back_of, rebuild

MIXED = "{}: arrays of host and device together; use to_device"
INDEX = "an index is out of bounds"  # the text of such a check
SEVERAL = -1  # value of the option device_index for programs whose arrays are on several devices
MAX_DEVICES = 16  # devices of one program: CI_MAX_DEVICES


NUMBERS = frozenset({bool, int, float, complex, str, bytes, type(None)})  # long lists have nothing else


def contains_device_array(value: Any) -> bool:
    """True if value is a device array or contains one. Each container is visited once, because it may contain itself.
    """
    seen: set[int] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if is_a(one, tuple | list) or type(one) is dict:
            if id(one) not in seen:
                seen.add(id(one))
                items = one.values() if type(one) is dict else one
                pending += () if _core.classes_of(items) <= NUMBERS else items
        elif type(one) is Array or back_of(one) is not None:
            return True
    return False


class DeviceJob(Job):
    """The job of a function for device arrays: it runs on the device or raises, because NumPy cannot take its
    arguments.
    """

    past_limit = "The programs used longest ago are dropped for others"
    why_whole = "an argument is an array of a device"
    follows_numpy = False

    def repeat(self, args: Any, kwargs: dict[str, Any]) -> None:
        """Do nothing: NumPy cannot read the arguments."""

    def options(self) -> dict[str, Any]:
        return {**super().options(), "device_arrays": True, "wrapper": "c"}

    def miss(self, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        if not compiled.specializations and saved.recall(self, compiled, bound):
            return _core.MISSING  # the caller tries again
        session = lazy.load("capture.session")
        if self.why_no_more(compiled, bound) is not None:
            compiled.clear()
            self.captures = 0
        self.captures += 1
        try:
            allowance = session.allowance_of(self, compiled, bound)
            return session.attempt(self, compiled, bound, args, kwargs or {}, "", allowance)
        except signals.Abandon as reason:
            raise _core.Unsupported(f"{self.name}: {reason} ({self.why_whole})") from None
        except (session.Retry, signals.Raised) as instead:
            raise instead.error from None


def twin_of(job: Job, devices: tuple[Any, ...], name: str = "device_twin") -> Any:
    """The compiled function for arguments that are device arrays. key: `devices_of` them; "device_twin_always": also
    runs on the device what is faster on the CPU; "host_twin": for copies in host memory.
    """
    twins = job.__dict__.setdefault("twins", {})
    twin = twins.get((name, devices))
    if twin is None:
        prepare()
        kind, *indices = devices
        options = {**job.settings["options"], "device_index": indices[0] if len(indices) == 1 else SEVERAL}
        backend = job.settings["backend"] if job.settings["device"] == kind else None
        settings = {**job.settings, "device": kind, "backend": backend, "fullgraph": True, "options": options}
        if name == "device_twin_always":
            settings["options"] = {**settings["options"], "offload": "always"}
        if name == "host_twin":
            settings |= {key: job.settings[key] for key in ("fullgraph", "options")} | {"device": None}
        own: Job = (Job if name == "host_twin" else DeviceJob)(job.fn, settings)
        own.is_for_show, own.on_run, own.devices = job.is_for_show, job.on_run, () if name == "host_twin" else devices
        twin = _core.CompiledFunction(job.fn, *signature_of(job.fn), own.miss)
        functools.update_wrapper(twin, job.fn)
        if own.devices:
            twin.stance = -1  # compiled in every stance, because NumPy cannot take its arguments
        twin._cinductor_job = own  # type: ignore[attr-defined]
        twins[name, devices] = twin
    return twin


def likeness_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The key of a kind of calls: equal for arrays that only differ in their elements."""
    kinds: list[Any] = []
    for value in (args, tuple(kwargs.values())):
        rebuild(value, lambda x: kinds.append((x.shape, x.dtype.str) if contains_device_array(x) else type(x)))
    return tuple(kinds)


def share_memory(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if two arrays share memory, which copies of them would not."""
    found: dict[int, Array] = {}
    rebuild((args, kwargs), lambda x: found.setdefault(id(x), x) if contains_device_array(x) else None)
    bounds = np.lib.array_utils.byte_bounds
    ends = sorted(bounds(array._handle) for array in found.values() if array.size)
    return any(a[1] > b[0] for a, b in itertools.pairwise(ends))


def devices_of(job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The kind of device, then the index of the device that has all arrays among the arguments, or of each array's.
    """
    found: list[tuple[str, int]] = []
    rebuild((args, kwargs), lambda x: found.append(_core.device_of(x._handle)) if type(x) is Array else None)
    kinds = dict.fromkeys(kind for kind, _ in found)
    if len(kinds) > 1 or (len(set(found)) > 1 and max(index for _, index in found) >= MAX_DEVICES):
        names = " and ".join(dict.fromkeys(f"{kind}:{index}" for kind, index in found))
        raise TypeError(f"{job.name}: arrays of {names} together; use to_device")
    return found[0] if len(set(found)) == 1 else (*kinds, *(index for _, index in found))


def call_on_host(
    job: Job, devices: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Make the call with copies in host memory, which are copied back: for loops that are faster on the CPU, and
    after a failed check.
    """
    copies: dict[int, tuple[Array, np.ndarray]] = {}
    owners: dict[int, Array] = {}

    def enter(value: Any) -> Any:
        if type(value) is not Array:
            return value
        if id(value) not in copies:
            copies[id(value)] = value, value.numpy()
        return copies[id(value)][1]

    def leave(value: Any) -> Any:
        if id(value) in owners:
            return owners[id(value)]
        return (
            to_device(value, text(*devices[:2]))
            if type(value) is np.ndarray or is_a(value, np.generic)
            else value
        )

    args = tuple([rebuild(v, enter) for v in args])
    kwargs = {k: rebuild(v, enter) for k, v in kwargs.items()}
    owners |= {id(copy): array for array, copy in copies.values()}
    try:
        result = twin_of(job, devices, "host_twin")(*args, **kwargs)
    finally:
        for array, copy in copies.values():
            _core.device_update(array._handle, copy)
    return rebuild(result, leave)


def call_on_cpu(job: Job, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call whose arrays are Arrays of the CPU with their handles, which are ordinary arrays. Operators and functions of
    NumPy are NumPy's own.
    """

    def enter(value: Any) -> Any:
        if type(value) is Array:
            return value._handle
        if is_a(value, np.ndarray):
            raise TypeError(MIXED.format(job.name))
        return value

    inner, inner_kwargs = rebuild(args, enter), rebuild(kwargs, enter)
    twin = job.fn if compiled.stance < 0 else twin_of(job, (HOST, 0), "host_twin")
    result = leave(twin(*inner, **inner_kwargs))
    if not kwargs:
        compiled.note_device_variant(twin, args)
    return result


def call(job: Job, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with device arrays among its arguments, cinductor's or those of other packages. Results have the class
    of the first of these.
    """
    theirs: dict[int, tuple[Any, Array]] = {}
    backs = []

    def enter(value: Any) -> Any:
        back = back_of(value)
        if back is None:
            return value
        backs.append(back)
        if id(value) not in theirs:
            theirs[id(value)] = value, from_dlpack(value)
        return theirs[id(value)][1]

    def leave(value: Any) -> Any:
        if type(value) is not Array:
            return value
        given = [x for x, array in theirs.values() if array is value]
        return given[0] if given else backs[0](value)

    args, kwargs = rebuild(args, enter), rebuild(kwargs, enter)
    result = run_compiled(job, compiled, args, kwargs)
    return rebuild(result, leave) if backs else result


def run_compiled(job: Job, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with Arrays among its arguments. Later calls of the same kind run in C without calling this function."""
    devices = devices_of(job, args, kwargs)
    numerics, index = job.option("numerics"), job.settings["options"].get("device_index")
    for k in devices[1:]:
        check_place(Device(devices[0], k), numerics, job.settings["device"], index)
    quicker: set[Any] = job.__dict__.setdefault("faster_on_host", set())
    if devices[0] == HOST:
        return call_on_cpu(job, compiled, args, kwargs)
    name = "device_twin"
    if quicker and likeness_of(args, kwargs) in quicker:
        if not share_memory(args, kwargs):
            return call_on_host(job, devices, args, kwargs)
        name = "device_twin_always"

    def enter(value: Any) -> Any:
        if type(value) is Array:
            return value._handle
        if is_a(value, np.ndarray):
            raise TypeError(MIXED.format(job.name))
        if is_a(value, np.generic):  # it promotes like an array of rank 0
            return to_device(value, text(*devices[:2]))._handle
        return value

    inner = tuple([rebuild(v, enter) for v in args])
    inner_kwargs = {k: rebuild(v, enter) for k, v in kwargs.items()}
    try:
        twin = twin_of(job, devices, name)
        result = twin(*inner, **inner_kwargs)
    except _core.CheckFailed as failure:
        if share_memory(args, kwargs):  # copies would not share it
            raise (IndexError(f"{job.name}: {failure}") if INDEX in str(failure) else failure) from None
        has_failed = True
    except _core.FasterOnHost:
        quicker.add(likeness_of(args, kwargs))
        compiled.note_device_variant(None, ())
        return run_compiled(job, compiled, args, kwargs)
    else:
        has_failed = False
    if has_failed:  # nothing has been changed, so the original function can raise its exception at the right line, or return a result
        return call_on_host(job, devices, args, kwargs)
    if not (quicker or kwargs):
        compiled.note_device_variant(twin, args)
    return result
