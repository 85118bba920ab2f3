"""Memory of arrays of other packages, used without a copy: by DLPack, or by the CUDA array interface."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import module_of
from .libraries import prepare

DEVICE = "cuda"
HOST_MEMORY = (1, 3)  # of DLPack's numbers of devices: memory of the host, pinned or not


def is_of_host(x: Any) -> bool:
    """True for an array in the memory of the host, as its package says."""
    return x.__dlpack_device__()[0] in HOST_MEMORY


@contextlib.contextmanager
def as_buffer_errors(x: Any) -> Iterator[None]:
    """Make exceptions of the array's package causes of a BufferError."""
    try:
        yield
    except (BufferError, _core.Error):
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise BufferError(f"{module_of(type(x))}.{type(x).__name__} does not share its memory: {words}") from error


def capsule_of(x: Any) -> Any:
    """Ask an array of a device for its capsule of DLPack."""
    prepare()
    stream = _core.stream_in_force.get()
    number = 1 if stream is None else stream.handle
    try:
        return x.__dlpack__(stream=number, max_version=(1, 0))
    except TypeError:  # from before DLPack 1.0
        return x.__dlpack__(stream=number)


def over(owner: Any, interface: dict[str, Any]) -> np.ndarray:
    """A handle from the CUDA array interface, version 3."""
    address, is_read_only = interface["data"]
    if is_read_only or interface.get("mask") is not None:
        raise BufferError("an array that is read-only or masked")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    # An array with this shape and these strides that occupies one element; its contents are never read.
    like = np.lib.stride_tricks.as_strided(
        np.empty(1, dtype), shape, interface.get("strides") or c_strides(shape, dtype.itemsize)
    )
    theirs = interface.get("stream")
    return _core.device_over(owner, DEVICE, address, like, None if theirs in (None, 1) else theirs)


def c_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The strides of an array in C order."""
    strides = []
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
