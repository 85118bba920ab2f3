"""The result of `__array_namespace__`: NumPy's functions, which make their results on a device."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .array import Array, compiled_method, from_dlpack, run, to_device
from .machine import devices
from .packages import rebuild
from .sharing import MAX_AXES

CREATE = frozenset("arange empty eye fftfreq full linspace ones rfftfreq zeros".split())  # without an array argument
LIKE = frozenset("empty_like full_like ones_like zeros_like".split())
OF_DTYPES = frozenset("can_cast finfo iinfo isdtype result_type".split())  # only dtypes of arrays matter
STANDARD = "2024.12"  # the version of https://data-apis.org/array-api whose names NumPy 2.3 has


class Namespace:
    """NumPy's functions and dtypes by name. Functions that create arrays use `device` by default.

    Parameters
    ----------
    device : str
        Where functions make their results that are given no array.
    module : module
        Where the names are: numpy, numpy.linalg or numpy.fft.
    """

    __slots__ = ("_device", "_module")

    __array_api_version__ = STANDARD

    def __init__(self, device: str, module: Any = np) -> None:
        self._device, self._module = device, module

    def asarray(self, x: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        """x as an Array. copy=False: raises ValueError if that takes a copy."""
        array = x if type(x) is Array else to_device(np.asarray(x, dtype), device or self._device)
        array = array if device is None else to_device(array, device)
        cast = array if dtype is None or array.dtype == dtype else compiled_method("astype")(array, dtype)
        if copy is False and cast is not x:
            raise ValueError(f"an Array of {cast.dtype} on {cast.device!r} cannot be made without a copy")
        made: Array = run(np.copy, cast) if copy and cast is x else cast
        return made

    def astype(self, x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
        """x cast to a dtype; x itself if it has the dtype already, and copy is False."""
        cast = x if not copy and x.dtype == dtype else compiled_method("astype")(x, dtype)
        return cast if device is None else to_device(cast, device)

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
        """See `cinductor.from_dlpack`; on another device, or with copy=True, a copy."""
        array = from_dlpack(x)
        moved = array if device is None else to_device(array, device)
        if copy is False and moved is not array:
            raise ValueError(f"an array of {array.device!r} cannot be one of {str(device)!r} without a copy")
        return run(np.copy, moved) if copy and moved is array else moved

    def unique_values(self, x: Array, /) -> Array:
        """The elements without repetitions, in increasing order. NumPy's hash table would give an order of its own."""
        values: Array = run(np.unique, x, equal_nan=False)
        return values

    def __array_namespace_info__(self) -> NamespaceInfo:
        return NamespaceInfo(self._device)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if is_a(value, types.ModuleType):
            return Namespace(self._device, value)
        if name in CREATE:
            return lambda *args, device=None, **kwargs: to_device(
                value(*[host_value(x) for x in args], **kwargs), device or self._device
            )
        if name in LIKE:
            return lambda *args, device=None, **kwargs: moved(run(value, *args, **kwargs), device)
        if name in OF_DTYPES:
            return lambda *args, **kwargs: value(*[x.dtype if type(x) is Array else x for x in args], **kwargs)
        if not callable(value) or isinstance(value, type):
            return value
        return lambda *args, **kwargs: run(value, *args, **kwargs)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._module), *super().__dir__()})

    def __eq__(self, other: object) -> bool:
        if type(other) is not Namespace:
            return NotImplemented
        return (self._device, self._module) == (other._device, other._module)

    def __hash__(self) -> int:
        return hash((self._device, self._module.__name__))

    def __repr__(self) -> str:
        return f"<functions of {self._module.__name__} on {self._device!r}>"


def moved(result: Any, device: Any) -> Any:
    """A result with its Arrays on a device; None: where they are."""
    return result if device is None else rebuild(result, lambda x: to_device(x, device) if type(x) is Array else x)


def host_value(x: Any) -> Any:
    """An argument of a function that creates arrays: the number in an Array without axes."""
    return x.item() if type(x) is Array else x


class NamespaceInfo:
    """The facts about a namespace that the array API standard defines."""

    __slots__ = ("_device",)

    def __init__(self, device: str) -> None:
        self._device = device

    def capabilities(self) -> dict[str, Any]:
        """Boolean indices and results whose size depends on data are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> str:
        """The device of arrays that are made without one."""
        return self._device

    def devices(self) -> list[str]:
        """The texts of the machine's devices."""
        return [str(device) for device in devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays that are made without one."""
        integral = np.dtype(int)
        return {
            "real floating": np.dtype(float),
            "complex floating": np.dtype(complex),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard, of the kinds that `isdtype` knows."""
        names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
        found = {name: np.dtype(name) for name in names.split()}
        return found if kind is None else {name: dtype for name, dtype in found.items() if np.isdtype(dtype, kind)}
