"""Lists NumPy's public callables with their treatment in a captured function: `cinductor.coverage()`.

The rows come from the tables that capture itself uses: the ufuncs that are operations of the graph, the functions
and methods of `cinductor.numpy`, functions captured from NumPy's own source, and the table of calls.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np

from .. import _core
from ..base.records import NamedTuple
from ..capture import session as session  # fills the tables
from ..capture.calls.calls import TABLE, enter_late
from ..capture.calls.functions import INLINED
from ..numpy import surface
from ..numpy.random import DRAWS, LEGACY

How = Literal["compiled", "composed", "called", "answered", "break"]
MEANINGS: dict[str, str] = {
    "compiled": "operations of the graph, fused with what is around them",
    "composed": "captured from NumPy's own source, or from ours, as a user's function is; where that asks for values it breaks, too",
    "called": "NumPy's own routine, called from the program without a break, where operations do not do",
    "answered": "made or answered while the function is captured; nothing runs later",
    "break": "Python and NumPy run it, between compiled pieces",
}
# Functions captured from a source that arrays of a program cannot run.
BREAKS_INSIDE = {
    "polymul": "its source makes a poly1d",
    "roots": "a condition of its source needs the values",
    "unique_values": "NumPy's hash table decides the order",
}
WITH_ROWS = ("", "linalg", "fft")  # modules whose callables are listed individually
UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


class Covered(NamedTuple):
    """One callable: its name ("linalg.norm", "ndarray.sum"), how it is captured, and the reason of a break."""

    name: str
    how: How
    reason: str


class Coverage:
    """The rows of all callables. Iterates over its rows; `rows` has them by name, str() is a table."""

    def __init__(self, rows: list[Covered]) -> None:
        self.rows: dict[str, Covered] = {row.name: row for row in rows}

    def __iter__(self) -> Iterator[Covered]:
        return iter(self.rows.values())

    def __len__(self) -> int:
        return len(self.rows)

    def counts(self) -> dict[str, int]:
        """The number of callables of each kind."""
        return {how: sum(row.how == how for row in self) for how in get_args(How)}

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {how}" for how, n in self.counts().items())
        return f"<coverage of {len(self)} callables of NumPy {np.__version__}: {counts}>"

    def __str__(self) -> str:
        width = max(len(row.name) for row in self)
        lines = [f"{row.name:{width}}  {row.how:8}  {row.reason}".rstrip() for row in self]
        meanings = [f"{how:8}  {self.counts()[how]:4}  {text}" for how, text in MEANINGS.items()]
        return "\n".join([f"NumPy {np.__version__}", *meanings, "", *lines])

    def markdown(self) -> str:
        """The table in Markdown."""
        head = ["| | callables | |", "|---|---|---|"]
        kinds = [f"| {how} | {self.counts()[how]} | {text} |" for how, text in MEANINGS.items()]
        rows = [f"| `{row.name}` | {row.how} | {row.reason.replace('|', ' ')} |" for row in self]
        return "\n".join([*head, *kinds, "", "| callable | | why |", "|---|---|---|", *rows, ""])


def coverage() -> Coverage:
    """List how each public callable of NumPy is captured.

    Returns
    -------
    Coverage
        One row (name, how, reason) for each function of `numpy`, `numpy.linalg` and `numpy.fft`, each draw, and each method
        of arrays and ufuncs. `how` is "compiled", "composed", "called", "answered" or "break". print() gives a table.
        Arguments are assumed to be arrays of compiled dtypes.
    """
    rows = [*of_modules(), *of_draws(), *of_methods(), *of_ufunc_methods()]
    return Coverage(sorted(rows, key=lambda row: (row.name.count("."), row.name)))


def of_modules() -> Iterator[Covered]:
    """Functions, ufuncs and classes of the modules."""
    for module in WITH_ROWS:
        space = getattr(np, module) if module else np
        enter_late()
        for name in (n for n in space.__all__ if n[0] != "_"):
            value = getattr(space, name, None)
            if callable(value) and not isinstance(value, types.ModuleType):
                full = f"{module}.{name}" if module else name
                yield Covered(full, *of_callable(value, full))


def of_callable(f: Any, name: str) -> tuple[How, str]:
    """How a call is captured, and why it breaks."""
    row = surface.functions_by_id.get(id(f))
    if name in BREAKS_INSIDE:
        return "break", BREAKS_INSIDE[name]
    if row is not None:
        return of_row(row)
    if isinstance(f, np.ufunc):
        return ("compiled" if f in _core.ufuncs() and not is_product(f) else "called"), ""
    if id(f) in TABLE:
        return "answered", ""
    if isinstance(f, type):
        if issubclass(f, np.generic):
            is_known = f in np.sctypeDict.values() and _core.has_dtype(np.dtype(f))
            return ("compiled", "") if is_known else ("break", "its dtype is not compiled")
        known = issubclass(f, BaseException) or f.__module__ == "builtins"
        return ("answered", "") if known else ("break", f"makes an object of class {name}")
    if f in INLINED:
        return "composed", ""
    return "break", f"calls {name}, for which there is no row"


def of_row(row: Any) -> tuple[How, str]:
    """How a row of the surface is captured."""
    handler = row.handler
    if handler is None:
        return "composed", ""
    if (reason := getattr(handler, "reason", None)) is not None:
        return "break", reason
    return ("called" if reaches_library(handler, set()) else "compiled"), ""


def reaches_library(f: Callable[..., Any], seen: set[Any]) -> bool:
    """True if a handler, or a function of the package that it calls, makes a library call."""
    code, space = getattr(f, "__code__", None), getattr(f, "__globals__", {})
    if code is None or code in seen:
        return False
    seen.add(code)
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    names = {*code.co_names, *(name for c in inner for name in c.co_names)}
    if "extern" in names or any(is_product(vars(np).get(n)) for n in names):
        return True
    cells = [c.cell_contents for c in f.__closure__ or ()]
    called = [space[n] for n in names if n in space] + cells
    ours = [v for v in called if getattr(v, "__module__", "").startswith(surface.__package__)]
    return any(reaches_library(v, seen) for v in ours if isinstance(v, types.FunctionType))


def is_product(f: Any) -> bool:
    """True for a ufunc over whole axes, which is a library call."""
    return isinstance(f, np.ufunc) and f.signature is not None


def of_draws() -> Iterator[Covered]:
    """Functions of np.random, and methods of a Generator."""
    for where, table in (("random", LEGACY), ("random.Generator", DRAWS)):
        space = np.random if where == "random" else np.random.Generator
        for name in dir(space):
            if name.startswith("_") or not callable(getattr(space, name)) or name[0].isupper():
                continue
            if name in table:
                yield Covered(f"{where}.{name}", "called", "")
            elif name == "default_rng":
                yield Covered(f"{where}.{name}", "answered", "")
            else:
                yield Covered(f"{where}.{name}", "break", "there is no row for this draw")


def of_methods() -> Iterator[Covered]:
    """Methods of arrays."""
    for name in dir(np.ndarray):
        if name.startswith("_") or not callable(getattr(np.ndarray, name)):
            continue
        row = surface.methods.get(name)
        if row is not None:
            yield Covered(f"ndarray.{name}", *of_row(row))
        else:
            yield Covered(f"ndarray.{name}", "break", "there is no row for this method")


def of_ufunc_methods() -> Iterator[Covered]:
    """Methods of the binary ufuncs that are operations of the graph."""
    for name in UFUNC_METHODS:
        yield Covered(f"ufunc.{name}", "compiled", "")
