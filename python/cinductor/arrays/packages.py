"""Recognises device arrays of other packages, by the package's name. A compiled function accepts them without a copy
and returns its results as arrays of the same package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..base.class_lookup import is_a, module_of

HOSTS = (1, 3)  # DLPack's numbers of host memory, ordinary and pinned


def jaxs(array: Any) -> Any:
    return sys.modules["jax"].dlpack.from_dlpack(array)


# Functions that make an array of the package over the memory of an Array.
BACK: dict[str, Callable[[Any], Any]] = {
    "torch": lambda array: sys.modules["torch"].from_dlpack(array),
    "cupy": lambda array: sys.modules["cupy"].from_dlpack(array),
    "jax": jaxs,
    "jaxlib": jaxs,
}


def back_of(value: Any) -> Callable[[Any], Any] | None:
    """The function that converts results back, for a device array of one of the packages; None for other objects."""
    cls = type(value)
    back = BACK.get(module_of(cls).partition(".")[0])
    is_array = back is not None and hasattr(cls, "__dlpack_device__")
    return back if is_array and value.__dlpack_device__()[0] not in HOSTS else None


def rebuild(value: Any, leaf: Any) -> Any:
    """value with leaf(x) for each x that is not a container."""
    cls = type(value)
    if cls in (tuple, list):
        return cls([rebuild(v, leaf) for v in value])
    if is_a(value, tuple) and hasattr(cls, "_make"):
        return cls._make(rebuild(v, leaf) for v in value)
    if cls is dict:
        return {k: rebuild(v, leaf) for k, v in value.items()}
    return leaf(value)
