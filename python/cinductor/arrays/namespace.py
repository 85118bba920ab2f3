"""The result of `__array_namespace__`: NumPy's functions, which make their results on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array, compiled_method, from_dlpack, run, to_device

CREATE = frozenset("arange empty eye full linspace ones zeros".split())  # functions that create arrays without an array argument


class Namespace:
    """NumPy's functions and dtypes by name. Functions that create arrays use `device` by default."""

    __slots__ = ("_device",)

    def __init__(self, device: str) -> None:
        self._device = device

    def asarray(self, x: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        array = x if type(x) is Array else to_device(np.asarray(x, dtype), device or self._device)
        cast = array if dtype is None or array.dtype == dtype else compiled_method("astype")(array, dtype)
        return run(np.copy, cast) if copy and cast is x else cast

    def from_dlpack(self, x: Any) -> Array:
        return from_dlpack(x)

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if name in CREATE:
            return lambda *args, device=None, **kwargs: to_device(
                value(*args, **kwargs), device or self._device
            )
        if not callable(value) or isinstance(value, type):
            return value
        return lambda *args, **kwargs: run(value, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<NumPy's functions on {self._device!r}>"
