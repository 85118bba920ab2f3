"""NumPy's operations by name, by an implementation of your choice: `cinductor.ops.add(a, b, out=c, implementation="cpu.c")`.

Names are those of NumPy's ufuncs and functions, with `linalg`, `fft` and `random` as in NumPy: `cinductor.ops.linalg.svd`.
`op_metadata()` has a row for each, with who computes it. Collectives of `cinductor.distributed` are here, too, by their names there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .base.lazy import load
from .base.records import NamedTuple
from .compile import compile
from .config import nearest
from .diagnosis.coverage_table import coverage

if TYPE_CHECKING:
    from .base.option_types import Options

NUMPY = "numpy"
SPACES = ("linalg", "fft", "random")
COLLECTIVES = ("all_gather", "all_reduce", "broadcast", "reduce_scatter", "send_recv")
WHY = {
    "called": "NumPy's own routine computes it, also inside of compiled programs",
    "answered": "nothing runs: capture knows the result from shapes and dtypes",
    "break": "NumPy runs it, between compiled pieces",
}


class OpInfo(NamedTuple):
    """One operation.

    Attributes
    ----------
    name : str
        "add", "linalg.svd".
    how : str
        "compiled", "composed", "called", "answered" or "break", as in `coverage()`.
    dtypes : tuple of str
        Of operands for which kernels compute it, as NumPy calls them; () if no operation of the graph has its name.
    operands : int
        Of a ufunc; 0 for other functions, whose number varies.
    implementations : dict
        "numpy" and "DEVICE.BACKEND" for each backend, with the reason why it does not compute the operation here, or None.
    """

    name: str
    how: str
    dtypes: tuple[str, ...]
    operands: int
    implementations: dict[str, str | None]


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return NumPy's functions by the names of the operations."""
    found: dict[str, Callable[..., Any]] = {}
    for name in ways():
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part, None)
        if callable(function) and not isinstance(function, type):
            found[name] = function
    return dict(sorted(found.items()))


@functools.cache
def ways() -> dict[str, tuple[str, str]]:
    """How a program computes each operation, and the reason for a break."""
    rows = coverage().rows.values()
    return {row.name: (row.how, row.reason) for row in rows if row.name.partition(".")[0] in SPACES or "." not in row.name}


def implementations(name: str) -> dict[str, str | None]:
    """Return who computes an operation by itself.

    Parameters
    ----------
    name : str
        One of `functions()`.

    Returns
    -------
    dict
        "numpy", and "DEVICE.BACKEND" for each backend, with the reason why it does not, or None.

    Raises
    ------
    AttributeError
        If no operation has this name.
    """
    find(name)
    how, reason = ways()[name]
    own = f"{WHY[how]}: {reason}" if how == "break" and reason else WHY.get(how)
    return {NUMPY: None, **{f"{device}.{backend}": own or why for device, backend, _, why in _core.backends()}}


def op_metadata(name: str | None = None) -> Any:
    """Return what is known of operations.

    Parameters
    ----------
    name : str, optional
        One of `functions()`; None: all.

    Returns
    -------
    OpInfo, or dict of OpInfo by name

    Raises
    ------
    AttributeError
        If no operation has this name.
    """
    if name is None:
        return {one: op_metadata(one) for one in functions()}
    function, kinds = find(name), table().get(name, {})
    dtypes = tuple(numpy_name(dtype) for dtype, can in kinds.items() if can)
    return OpInfo(name, ways()[name][0], dtypes, getattr(function, "nin", 0), implementations(name))


@functools.cache
def table() -> dict[str, dict[str, bool]]:
    """The dtypes of operands by operation of the graph."""
    return {row[0]: row[3] for row in _core.ops() if row[4] is None}


def numpy_name(dtype: str) -> str:
    """NumPy's name of a dtype of the graph: "f64" is "float64"."""
    kinds = {"bf": "bfloat", "f": "float", "i": "int", "u": "uint", "c": "complex"}
    letters = dtype.rstrip("0123456789")
    return kinds.get(letters, letters) + dtype[len(letters) :]


def find(name: str) -> Any:
    """The function of a name. Raises AttributeError for another name."""
    function = functions().get(name)
    if function is None:
        close = nearest(name, functions()) or "; cinductor.ops.functions() has all"
        raise AttributeError(f"no operation is called {name!r}{close}")
    return function


def as_call(function: Any, name: str) -> Any:
    """A function of Python's that calls it, under its name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


@functools.cache
def compiled(name: str, implementation: str) -> Any:
    """The operation by one backend, which raises `Unsupported` where NumPy would have to run. Raises ValueError if there is no
    such implementation, or it does not compute the operation by itself.
    """
    known, function = implementations(name), find(name)
    if implementation not in known:
        raise ValueError(f"implementation is {implementation!r}; there are: {', '.join(known)}")
    if implementation == NUMPY:
        return function
    device, _, backend = implementation.partition(".")
    if ways()[name][0] in WHY:
        raise ValueError(f"{name} is not computed by {implementation!r}: {known[implementation]}")
    options: Options = {"offload": "always"} if device != "cpu" else {}
    return compile(as_call(function, name), device=device, backend=backend, options=options, fullgraph=True)


class Operation:
    """One operation: called as NumPy's function is, with `implementation=` for who computes it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, out: Any = None, implementation: str | None = None, **kwargs: Any) -> Any:
        """Call the operation.

        Parameters
        ----------
        *args, **kwargs
            NumPy's arguments, arrays of a device included.
        out : array, optional
            The result is written into it, also if NumPy's function has no such argument; it is returned.
        implementation : str, optional
            One of `implementations(name)`, which then computes it or raises. None: compiled where the arguments are.

        Raises
        ------
        ValueError
            If the implementation does not exist, or does not compute this operation by itself.
        Unsupported
            If it cannot compute it for these arguments.
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


class Space:
    """The operations of one of NumPy's modules: `cinductor.ops.linalg`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Operation:
        return operation(f"{self.name}.{name}")

    def __dir__(self) -> list[str]:
        return [name.partition(".")[2] for name in functions() if name.startswith(f"{self.name}.")]

    def __repr__(self) -> str:
        return f"<operations {self.name}>"


@functools.cache
def by_default(name: str) -> Any:
    """The operation where its arguments are: compiled for the host, or for the device that they are on."""
    return compile(as_call(find(name), name))


def operation(name: str) -> Operation:
    """The operation of a name. Raises AttributeError for another name."""
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)
    find(name)
    return Operation(name)


def __getattr__(name: str) -> Any:
    make = Space if name in SPACES else operation
    found = globals()[name] = getattr(load("distributed"), name) if name in COLLECTIVES else make(name)
    return found


def __dir__() -> list[str]:
    return [*(name for name in functions() if "." not in name), *SPACES, *COLLECTIVES, "functions", "implementations", "op_metadata"]
