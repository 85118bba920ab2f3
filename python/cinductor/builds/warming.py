"""Programs before the first call: `warm` captures and compiles for arguments that are described, and runs nothing.

The function is traced on arrays that have shape and dtype, but no contents. What needs a value, or has an effect that a later step of the
capture would have to wait for, is refused with its reason; such functions are warmed by a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.records import NamedTuple
from ..base.signature import signature_of
from ..base.user_frame import wrong
from ..calls.job import Job
from ..calls.saved_text import value_of
from ..compile import compile
from ..graphs import Graph


class ShapeDtype(NamedTuple):
    """The shape and dtype of an array argument, for `warm`, `lower` and `graph`.

    Parameters
    ----------
    shape : tuple of int
        The sizes.
    dtype : dtype
        Of the elements; float64 by default.
    order : {"C", "F"}
        How it is stored.
    """

    shape: tuple[int, ...]
    dtype: Any = np.float64
    order: str = "C"

    def empty(self) -> np.ndarray:
        """Make an array like this, whose pages are not touched.

        Returns
        -------
        np.ndarray
            An array of this shape and dtype, with any contents.

        Raises
        ------
        TypeError, ValueError
            If there is no array of this shape, dtype and order.
        """
        try:
            return np.empty(self.shape, self.dtype, order=self.order)  # type: ignore[call-overload,no-any-return]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self!r}: {error}") from None


class WarmJob(Job):
    """A capture for another job's function, which runs nothing. What it makes is that job's."""

    is_dry = True

    def __init__(self, owner: Job, target: Any, purpose: str) -> None:
        super().__init__(owner.fn, {**owner.settings, "fullgraph": True})
        self.for_job, self.target, self.why_whole = owner, target, f"cinductor.{purpose}"

    @property
    def follows_numpy(self) -> bool:
        """As the other job: NumPy may have run calls of its function."""
        return self.for_job.follows_numpy

    def keep(self, compiled: Any, specialization: Any, bound: tuple[Any, ...]) -> None:
        super().keep(compiled, specialization, bound)
        self.bound = bound
        self.for_job.keep(self.target, specialization, bound)
        self.for_job.last = self.last

    def report_unused(self, program: Any) -> None:
        """The other job does."""

    def note_sources(self, rows: Any, checks: Any) -> None:
        self.rows, self.checks = list(rows), list(checks)

    def values(self) -> list[Any]:
        """The value of each source."""
        found: list[Any] = []
        for source in self.rows:
            is_of_list = source[0] == "item" and type(found[source[1]]) is list
            found.append(found[source[1]][source[2]] if is_of_list else value_of(source, found, self.bound))
        return found

    def name_of(self, source: int) -> str:
        """The text of a value that the function is given: "x", "pair[0]"."""
        kind, *parts = self.rows[source]
        if kind == "arg":
            return str(self.names[parts[0]])
        if kind == "const" or (kind == "attr" and parts[1] == "__self__"):
            return "self"
        if kind == "global":
            return str(parts[1])
        if kind in ("item", "attr"):
            inner = self.name_of(parts[0])
            return f"{inner}[{parts[1]!r}]" if kind == "item" else f"{inner}.{parts[1]}"
        return f"<{kind}>"


def filled(spec: Any) -> Any:
    """An argument for a spec, or the argument itself; containers are looked into."""
    if is_a(spec, ShapeDtype):
        return spec.empty()
    if type(spec) in (tuple, list):
        return type(spec)(map(filled, spec))
    if type(spec) is dict:
        return {key: filled(value) for key, value in spec.items()}
    return spec


def warm(fn: Any, *specs: Any, **named: Any) -> Any:
    """Compile a function for arguments like these, without a call.

    Nothing of the function's work is done, and arrays are not read: later calls with such arguments find the program. Kernels are in
    the disk cache then, so a build step can fill the cache of a server.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one. A plain one is compiled with the default settings.
    *specs, **named
        The arguments: `ShapeDtype(shape, dtype)`, or arrays, for arrays; everything else as in a call. Containers may hold them.

    Returns
    -------
    CompiledFunction
        The compiled function.

    Raises
    ------
    Unsupported
        If capture needs a value, or the function has an effect beyond writes to its arguments: these must be warmed by a call.
    TypeError
        If fn is not callable, or the arguments do not fit its signature.

    Examples
    --------
    >>> f = cinductor.warm(step, cinductor.ShapeDtype((1000, 1000)), 0.1)
    """
    return captured(fn, specs, named)[0]


def captured(fn: Any, specs: tuple[Any, ...], named: dict[str, Any], purpose: str = "warm") -> tuple[Any, WarmJob]:
    """The compiled function, and the job that has captured it. purpose: the function of cinductor's that refusals name."""
    if not callable(fn):
        raise TypeError(wrong(purpose, "fn", fn, "a function or a compiled one"))
    target = fn if is_a(fn, _core.CompiledFunction) else compile(fn)
    job = target._cinductor_job  # type: ignore[union-attr]
    if job.settings["device"] not in (None, "cpu"):
        raise _core.Unsupported(f"{job.name}: programs of device {job.device!r} are compiled in calls alone (cinductor.{purpose})")
    own = WarmJob(job, target, purpose)
    trial = _core.CompiledFunction(job.fn, *signature_of(job.fn), own.miss)
    trial.stance = -1
    trial._cinductor_job = own  # type: ignore[attr-defined]
    trial(*map(filled, specs), **{name: filled(value) for name, value in named.items()})
    if own.why is not None:
        raise _core.Unsupported(f"{job.name}: {own.why} ({own.why_whole})")
    return target, own


def lower(fn: Any, *specs: Any, **named: Any) -> Any:
    """Return the program of a function for arguments like these, without a call: its texts at every level.

    Parameters
    ----------
    fn, *specs, **named
        As in `warm`.

    Returns
    -------
    Program
        With `text(level)` for "graph", "optimized", "loops", "kernels", "procs", "wrapper", "source" and more; None if nothing is
        computed.

    Raises
    ------
    Unsupported, TypeError
        As in `warm`.
    """
    target = captured(fn, specs, named, "lower")[0]
    found = target.specializations
    return found[0].program if found else None


def graph(fn: Callable[..., Any], *specs: Any, **named: Any) -> Graph:
    """Capture a function as a graph, without a call.

    Parameters
    ----------
    fn, *specs, **named
        A function and its arguments, as in `warm`.

    Returns
    -------
    Graph
        To be walked, changed, printed (`text()`), parsed (`Graph(text)`), compared (`diff`), optimized and compiled.

    Raises
    ------
    Unsupported
        If the function is not one graph: Python would have to run, or nothing is computed.
    TypeError
        As in `warm`.

    Examples
    --------
    >>> g = cinductor.graph(lambda x: np.sin(x) ** 2, cinductor.ShapeDtype((10,)))
    >>> run = g.compile()
    >>> (y,) = run(np.arange(10.0))
    """
    target, job = captured(fn, specs, named, "graph")
    specialization = target.specializations[0]
    if specialization.program is None:
        raise _core.Unsupported("nothing is computed: the results are constants, arguments and views of arguments")
    found = Graph(specialization.program.text("graph"))
    found.parameters = [job.name_of(row[0]) for row in specialization.saved[0]]
    return found
