"""NumPy's operations by name and by a chosen implementation: `cinductor.ops.add(a, b, out=c,
implementation="cpu.c")`. The names are those of NumPy's ufuncs and of the functions that capture supports.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import _core
from .compile import compile
from .numpy import surface

NUMPY = "numpy"


@functools.cache
def functions() -> dict[str, Any]:
    """The operations, by name."""
    surface.load()
    rows = surface.functions_by_id.values()
    known = {row.function.__name__: row.function for row in rows if hasattr(np, getattr(row.function, "__name__", ""))}
    ufuncs = {name: value for name, value in vars(np).items() if isinstance(value, np.ufunc)}
    return dict(sorted({**known, **ufuncs}.items()))


def implementations(name: str) -> dict[str, str | None]:
    """The implementations of the operation: "numpy", and "DEVICE.BACKEND" for each backend, with the reason why it
    cannot be used here, or None. Raises AttributeError for an unknown operation.
    """
    find(name)
    return {NUMPY: None, **{f"{device}.{backend}": why for device, backend, _, why in _core.backends()}}


def find(name: str) -> Any:
    function = functions().get(name)
    if function is None:
        raise AttributeError(f"no operation is called {name!r}; cinductor.ops.functions() has all")
    return function


def as_call(function: Any, name: str) -> Any:
    """A Python function with the operation's name that calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


@functools.cache
def compiled(name: str, implementation: str) -> Any:
    """The operation compiled for one backend. Raises ValueError for a name that `implementations` does not have."""
    known = implementations(name)
    if implementation not in known:
        raise ValueError(f"implementation is {implementation!r}; there are: {', '.join(known)}")
    function = find(name)
    if implementation == NUMPY:
        return function
    device, _, backend = implementation.partition(".")
    return compile(as_call(function, name), device=device, backend=backend, options={"offload": "always"})


class Operation:
    """One operation: called like NumPy's function, with `implementation=` to choose what computes it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, out: Any = None, implementation: str | None = None, **kwargs: Any) -> Any:
        r"""NumPy's arguments and result, also for device arrays.

        out: an array for the result, which is returned; allowed even if NumPy's function has no such argument. Raises
        what NumPy raises, and ValueError for an unknown implementation.
        """
        function = compiled(self.name, implementation) if implementation else by_default(self.name)
        if out is None:
            return function(*args, **kwargs)
        if isinstance(find(self.name), np.ufunc):
            return function(*args, out=out, **kwargs)
        out[...] = function(*args, **kwargs)
        return out

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


@functools.cache
def by_default(name: str) -> Any:
    """The operation compiled for the device of its arguments, or for the host."""
    return compile(as_call(find(name), name))


def __getattr__(name: str) -> Operation:
    if name.startswith("__"):
        raise AttributeError(name)
    find(name)
    return Operation(name)


def __dir__() -> list[str]:
    return [*functions(), "functions", "implementations"]
