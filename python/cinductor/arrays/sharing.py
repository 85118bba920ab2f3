"""Device memory that several processes share. A handle is bytes: a mark, then JSON with the device, the name by which
the device opens the memory, and the position of the array in it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import typing
from typing import Any

import numpy as np

from .. import _core
from .array import Array, to_device
from .libraries import prepare
from .machine import Device, split, text

MARK = b"cinductor array\n"
VERSION = 1
MAX_AXES = 32
WRONG = "these bytes are no handle that ipc_handle() made"
SELF = os.urandom(8).hex()  # together with the process id it identifies this process


@dataclasses.dataclass(frozen=True)
class Handle:
    """The contents of a handle."""

    version: int
    process: str
    device: str
    index: int
    identity: str
    name: str
    dtype: str
    shape: list[int]
    strides: list[int]
    offset: int


def this_process() -> str:
    return f"{SELF}-{os.getpid()}"


def shared_copy(x: Any, device: Any) -> Array:
    """A copy of an array in device memory that other processes can open."""
    name, index = split(device)
    value = to_device(x, text(name, index))
    made = Array(_core.device_shared(value._handle, text(name, index)))
    made[...] = value
    return made


def ipc_handle(array: Array) -> bytes:
    """See `Array.ipc_handle`."""
    device = Device(array.device)
    name, offset = _core.share_name(array._handle)
    identity = _core.device_properties(str(device))[4].hex()
    handle = Handle(
        VERSION,
        this_process(),
        device.name,
        device.index,
        identity,
        name.hex(),
        array.dtype.name,
        list(array.shape),
        list(array.strides),
        offset,
    )
    return MARK + json.dumps(dataclasses.asdict(handle)).encode()


def read(data: Any) -> Handle:
    """Parse a handle. Raises ValueError for other bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"from_ipc_handle() takes the bytes of a handle, not {type(data).__name__}")
    whole = bytes(data)
    try:
        found = json.loads(whole.removeprefix(MARK)) if whole.startswith(MARK) else {}
        if found.get("version") != VERSION and "version" in found:
            raise ValueError(f"a handle of version {found['version']!r}; {VERSION} is understood")
        kinds = typing.get_type_hints(Handle)
        handle = Handle(**found)
        is_whole = all(type(value) is (typing.get_origin(kinds[key]) or kinds[key]) for key, value in found.items())
    except (TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError):
        is_whole = False
    if not is_whole or not all(type(n) is int for n in (*handle.shape, *handle.strides)):
        raise ValueError(WRONG)
    if not re.fullmatch("([0-9a-f]{2})*", handle.name) or not re.fullmatch("[0-9a-f]{32}", handle.identity):
        raise ValueError(WRONG)
    return handle


def find_device(handle: Handle) -> str:
    """The device of this process that the handle refers to. Raises ValueError if there is none."""
    identity = bytes.fromhex(handle.identity)
    own = Device(handle.device, handle.index)
    others = [] if not any(identity) else [Device(handle.device, k) for k in range(_core.device_count(handle.device))]
    for device in (own, *others):
        if device.index < _core.device_count(handle.device) and _core.device_properties(str(device))[4] == identity:
            return str(device)
    raise ValueError(f"the array is on a device that this process does not have ({own} in the process that shared it)")


def extent(handle: Handle, itemsize: int) -> tuple[int, int]:
    """The byte offsets in its block where the elements begin and end."""
    if 0 in handle.shape:
        return handle.offset, handle.offset
    steps = [(n - 1) * step for n, step in zip(handle.shape, handle.strides, strict=True)]
    low = handle.offset + sum(min(step, 0) for step in steps)
    return low, handle.offset + sum(max(step, 0) for step in steps) + itemsize


def form_of(handle: Handle) -> np.ndarray:
    """An array with this shape and dtype that occupies one element; its contents may not be read."""
    try:
        dtype = np.dtype(handle.dtype)
        shape, strides = tuple(handle.shape), tuple(handle.strides)
        is_right = len(shape) == len(strides) <= MAX_AXES and all(n >= 0 for n in shape) and dtype.names is None
        if is_right:
            return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(WRONG)


def from_ipc_handle(data: bytes) -> Array:
    """Open memory that another process shares.

    Each process sees the other's writes. Processes wait only for what they notify each other of, not for the other's
    device. The memory is closed with the last array over it.

    Parameters
    ----------
    data : bytes
        The result of `Array.ipc_handle` in the other process.

    Returns
    -------
    Array

    Raises
    ------
    ValueError
        For other bytes, a handle of this process, and a device that does not exist here.
    DeviceError
        If the memory no longer exists.
    """
    prepare()
    handle = read(data)
    if handle.process == this_process():
        raise ValueError("the handle is of this process, which has the array itself")
    like = form_of(handle)
    device = find_device(handle)
    try:
        owner, address, size = _core.share_open(device, bytes.fromhex(handle.name))
    except _core.DeviceError as error:
        said = f"the memory of the handle cannot be opened on {device}; was its array freed? ({error})"
        raise _core.DeviceError(said) from None
    low, high = extent(handle, like.itemsize)
    if low < 0 or high > size:
        raise ValueError(f"the handle says bytes {low} to {high} of memory that has {size}")
    return Array(_core.device_over(owner, device, address + handle.offset, like, None))
