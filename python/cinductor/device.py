"""Arrays that live on a device, and how a compiled function is called with them.

`to_device` copies an array to the device; a compiled function called with such arrays runs there and
returns such arrays. Nothing is copied back until `.numpy()` asks. Inside the package a device's array is an
ndarray whose data pointer is an address of the device (its handle); no handle leaves this file, for
reading its elements on the host would end the process.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .instance import is_a
from .job import Job
from .machine import split
from .signature import signature_of

DEVICE = "cuda"
INDEX = "an index is out of bounds"  # what such a check says


def library_folder(name: str) -> str | None:
    """The folder of the newest such library that a wheel installed, looked for without importing anything."""
    spec = find_spec("nvidia")
    found = []
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for library in Path(root).glob(f"*/lib/{name}.so.*"):
            version = re.fullmatch(rf"{name}\.so\.(\d+)", library.name)
            if version:
                found.append((int(version[1]), str(library.parent)))
    return max(found)[1] if found else None


@functools.cache
def prepare() -> None:
    """Tells the core where NVRTC and cuBLAS are, unless the environment already does."""
    for variable, name in (("CINDUCTOR_NVRTC", "libnvrtc"), ("CINDUCTOR_CUBLAS", "libcublas")):
        if variable not in os.environ and (folder := library_folder(name)):
            os.environ[variable] = folder


class DeviceArray:
    """An array in a device's memory, freed with the object. Made by `to_device` and by compiled
    functions; read by `.numpy()`, and by whoever knows `__cuda_array_interface__`.
    """

    __slots__ = ("_handle", "__weakref__")
    __array_ufunc__ = None  # NumPy's operators refuse it instead of reading it

    def __init__(self, handle: np.ndarray) -> None:
        if not _core.is_device_array(handle):
            raise TypeError("a DeviceArray is made by cinductor.to_device")
        self._handle = handle

    @property
    def shape(self) -> tuple[int, ...]:
        return self._handle.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._handle.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._handle.dtype

    @property
    def ndim(self) -> int:
        return self._handle.ndim

    @property
    def size(self) -> int:
        return self._handle.size

    @property
    def nbytes(self) -> int:
        return self._handle.nbytes

    @property
    def device(self) -> str:
        """The text of its `Device`: "cuda", "cuda:1"."""
        name, index = _core.device_of(self._handle)
        return f"{name}:{index}" if index else name

    def numpy(self) -> np.ndarray:
        """A copy in host memory; waits for what computes it."""
        return _core.device_numpy(self._handle)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.device.startswith(DEVICE):
            raise AttributeError(f"an array of device {self.device!r} is no CUDA array")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._handle.__array_interface__["data"][0], False),
            "strides": self.strides,
            "version": 3,
            "stream": 1,
        }

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("a DeviceArray is not copied by accident: use .numpy()")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __reduce__(self) -> Any:
        return to_device, (self.numpy(), self.device)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"


def to_device(x: Any, device: Any = DEVICE) -> DeviceArray:
    """A copy of an array in the device's memory, its axes in the same order; an array that is there as it is.

    device: a name, "cuda:1", or a `Device`. Raises TypeError for dtypes that the device has not, ValueError
    for a device that there is not or that has no memory of its own, DeviceError where it cannot be used.
    """
    name, index = split(device)
    if is_a(x, DeviceArray):
        if _core.device_of(x._handle) == (name, index):
            return x
        x = x.numpy()
    return DeviceArray(_core.device_array(np.asarray(x), f"{name}:{index}"))


def synchronize(device: Any = DEVICE) -> None:
    """Waits for everything launched on the device; raises DeviceError for what went wrong there."""
    _core.device_synchronize("{}:{}".format(*split(device)))


# --- calls ----------------------------------------------------------------------------------------


def holds(value: Any) -> bool:
    """Whether a DeviceArray is value, or in it."""
    cls = type(value)
    if cls is DeviceArray:
        return True
    if is_a(value, tuple | list):
        return any(map(holds, value))
    return cls is dict and any(map(holds, value.values()))


def rebuild(value: Any, leaf: Any) -> Any:
    """value with leaf(x) for each x that is no container."""
    cls = type(value)
    if cls in (tuple, list):
        return cls([rebuild(v, leaf) for v in value])
    if is_a(value, tuple) and hasattr(cls, "_make"):
        return cls._make(rebuild(v, leaf) for v in value)
    if cls is dict:
        return {k: rebuild(v, leaf) for k, v in value.items()}
    return leaf(value)


class DeviceJob(Job):
    """What is known of a function as it runs on arrays of a device: it runs there or raises, for NumPy
    cannot take its arguments.
    """

    def options(self) -> dict[str, Any]:
        return {**super().options(), "device_arrays": True, "wrapper": "c"}

    def miss(self, compiled: Any, bound: Any, args: Any, kwargs: Any) -> Any:
        from .capture import session

        if len(compiled.specializations) >= self.options()["recompile_limit"]:
            compiled.clear()
        try:
            return session.attempt(self, compiled, bound, args, kwargs or {}, "")
        except session.Abandon as reason:
            raise _core.Unsupported(f"{self.name} on arrays of a device: {reason}") from None
        except (session.Retry, session.Raised) as failure:
            raise failure.error from None


def twin_of(job: Job, device: tuple[str, int], name: str = "device_twin") -> Any:
    """The compiled function that answers for this one where arguments are arrays of a device;
    "device_twin_always": also where the CPU is quicker; "host_twin": with copies in host memory.
    """
    twins = job.__dict__.setdefault("twins", {})
    twin = twins.get((name, device))
    if twin is None:
        prepare()
        options = {**job.settings["options"], "device_index": device[1]}
        settings = {**job.settings, "device": device[0], "backend": None, "fullgraph": True, "options": options}
        if name == "device_twin_always":
            settings["options"] = {**settings["options"], "offload": "always"}
        if name == "host_twin":
            settings |= {key: job.settings[key] for key in ("fullgraph", "options")} | {"device": None}
        own = (Job if name == "host_twin" else DeviceJob)(job.fn, settings)
        twin = _core.CompiledFunction(job.fn, *signature_of(job.fn), own.miss)
        functools.update_wrapper(twin, job.fn)
        twin._cinductor_job = own  # type: ignore[attr-defined]
        twins[name, device] = twin
    return twin


def likeness_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls of one kind have equal arrays but for their elements."""
    kinds: list[Any] = []
    for value in (args, tuple(kwargs.values())):
        rebuild(value, lambda x: kinds.append((x.shape, x.dtype.str) if holds(x) else type(x)))
    return tuple(kinds)


def share_memory(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether memory of one array is another's too, of which two copies would not be."""
    found: dict[int, DeviceArray] = {}
    rebuild((args, kwargs), lambda x: found.setdefault(id(x), x) if holds(x) else None)
    bounds = np.lib.array_utils.byte_bounds
    ends = sorted(bounds(array._handle) for array in found.values() if array.size)
    return any(a[1] > b[0] for a, b in itertools.pairwise(ends))


def device_of(job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int]:
    """The one that all arrays among the arguments live on."""
    found: dict[tuple[str, int], None] = {}
    rebuild((args, kwargs), lambda x: found.setdefault(_core.device_of(x._handle)) if type(x) is DeviceArray else None)
    if len(found) > 1:
        names = " and ".join(f"{name}:{index}" for name, index in found)
        raise TypeError(f"{job.name}: arrays of {names} together; use to_device")
    return next(iter(found))


def call_on_host(
    job: Job, device: tuple[str, int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The same with copies in host memory, which go back: for loops whose trips the CPU is quicker at."""
    copies: dict[int, tuple[DeviceArray, np.ndarray]] = {}
    owners: dict[int, DeviceArray] = {}

    def enter(value: Any) -> Any:
        if type(value) is not DeviceArray:
            return value
        if id(value) not in copies:
            copies[id(value)] = value, value.numpy()
        return copies[id(value)][1]

    def leave(value: Any) -> Any:
        if id(value) in owners:
            return owners[id(value)]
        return (
            to_device(value, "{}:{}".format(*device))
            if type(value) is np.ndarray or is_a(value, np.generic)
            else value
        )

    args = tuple([rebuild(v, enter) for v in args])
    kwargs = {k: rebuild(v, enter) for k, v in kwargs.items()}
    owners |= {id(copy): array for array, copy in copies.values()}
    try:
        result = twin_of(job, device, "host_twin")(*args, **kwargs)
    finally:
        for array, copy in copies.values():
            _core.device_update(array._handle, copy)
    return rebuild(result, leave)


def call(job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with arrays of a device among its arguments."""
    device = device_of(job, args, kwargs)
    quicker: set[Any] = job.__dict__.setdefault("quicker_on_host", set())
    name = "device_twin"
    if quicker and likeness_of(args, kwargs) in quicker:
        if not share_memory(args, kwargs):
            return call_on_host(job, device, args, kwargs)
        name = "device_twin_always"
    known: dict[int, DeviceArray] = {}

    def enter(value: Any) -> Any:
        if type(value) is DeviceArray:
            known[id(value._handle)] = value
            return value._handle
        if is_a(value, np.ndarray):
            raise TypeError(f"{job.name}: arrays of host and device together; use to_device")
        return value

    def leave(value: Any) -> Any:
        if type(value) is np.ndarray and _core.is_device_array(value):
            return known[id(value)] if id(value) in known else DeviceArray(value)
        return value

    inner = tuple([rebuild(v, enter) for v in args])
    inner_kwargs = {k: rebuild(v, enter) for k, v in kwargs.items()}
    before = _core.set_stance(0)  # no stance may run NumPy on them
    try:
        result = twin_of(job, device, name)(*inner, **inner_kwargs)
    except _core.CheckFailed as failure:
        if INDEX in str(failure):
            raise IndexError(f"{job.name}: {failure}") from None
        raise
    except _core.QuickerOnHost:
        quicker.add(likeness_of(args, kwargs))
        return call(job, args, kwargs)
    finally:
        _core.set_stance(before)
    return rebuild(result, leave)
