"""Passes over graphs, loops and procs: their names and observers, and the numeric check of each graph pass on a call's values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.deferred_warnings import warn
from ..base.records import NamedTuple
from ..base.user_frame import wrong
from ..config import registered
from ..graphs import Graph, on_text
from ..testing import assert_array


class Pass(NamedTuple):
    """One pass. is_needed: it cannot be skipped; is_added: it was registered; level: "graph", "loops" or "procs"."""

    name: str
    is_needed: bool
    doc: str
    is_added: bool
    level: str = "graph"


class PassEvent(NamedTuple):
    """A pass has run. before, after: its level as text (`docs/ir.md`); seconds: its time."""

    name: str
    before: str
    after: str
    seconds: float
    level: str = "graph"

    @property
    def has_changed(self) -> bool:
        """True if it changed anything."""
        return self.before != self.after


def list_passes(level: str = "graph") -> list[Pass]:
    """List every pass of a level.

    `options={"skip_passes": "cse, simplify"}` skips some, CINDUCTOR_DUMP=before_cse,cse prints the level before and after one.

    Parameters
    ----------
    level : {"graph", "loops", "procs"}
        Passes over graphs, over the loops that they become, or over the statements of kernels.

    Returns
    -------
    list of Pass
        With `name`, `is_needed` (it cannot be skipped), `doc`, `is_added` (it was registered) and `level`.

    Raises
    ------
    ValueError
        If there is no such level.
    """
    levels = {row[3] for row in _core.passes()}
    if not is_a(level, str) or level not in levels:
        raise ValueError(wrong("list_passes", "level", level, " or ".join(map(repr, sorted(levels)))))
    own = [Pass(*row[:3], False, level) for row in _core.passes() if row[3] == level]
    return [*own, *(Pass(name, False, "", True) for name in registered() if level == "graph")]


# --- observers ------------------------------------------------------------------------------------

_observers: list[tuple[Callable[[PassEvent], object], str]] = []  # each with its level
_before: list[str] = [""]  # the input of the next pass


def report(name: str, text: str, seconds: float) -> None:
    """Called after a pass. name "": the input of the first pass of a level."""
    level = next((row[3] for row in _core.passes() if row[0] == name), "graph")
    event, _before[0] = PassEvent(name, _before[0], text, seconds, level), text
    for entry in list(_observers) if name else ():
        try:
            if entry[1] == level:
                entry[0](event)
        except Exception as error:
            _observers.remove(entry)
            warn(f"an observer of passes is left out from here on, for a mistake of its own: {error!r}")


@contextlib.contextmanager
def observe_passes(observer: Callable[[PassEvent], object], level: str = "graph") -> Iterator[None]:
    """Call observer after each pass of a level while a with statement runs.

    Programs that are compiled already run no pass. An observer that raises is not called again, which a warning says.

    Parameters
    ----------
    observer : callable
        Takes a PassEvent: `name`, `before` and `after` (the graph, or the procs, as text), `seconds`, `level`, `has_changed`.
    level : {"graph", "loops", "procs"}
        The level.

    Returns
    -------
    context manager
        Its end removes the observer.

    Raises
    ------
    TypeError, ValueError
        If the observer is not callable; if there is no such level.
    """
    if not callable(observer):
        raise TypeError(wrong("observe_passes", "observer", observer, "a function of a PassEvent"))
    list_passes(level)
    entry = observer, level
    _observers.append(entry)
    _core.set_pass_observer(report)
    try:
        yield
    finally:
        if entry in _observers:
            _observers.remove(entry)
        _core.set_pass_observer(report if _observers else None)


# --- the numeric check ----------------------------------------------------------------------------


def check(program: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
    """The option check_passes: the interpreter runs the graph with one pass more each time, on copies of
    these inputs. Raises PassFailed where a bit differs. Draws would draw twice, so such graphs are left alone.
    """
    if "extern draw" in program.text("graph"):
        return
    names = [row.name for row in list_passes() if not row.is_needed]
    left_out = set(options.get("skip_passes", "").replace(",", " ").split())
    names = [name for name in names if name not in left_out]
    if options.get("device_arrays"):  # the interpreter is the host's
        inputs = tuple(_core.device_numpy(v) if isinstance(v, np.ndarray) else v for v in inputs)
        options = {**options, "device_arrays": False}
    before: Any = None
    for count in range(len(names) + 1):
        skipped = ",".join([*left_out, *names[count:]])
        after = outcome(program, inputs, {**options, "skip_passes": skipped, "check_passes": False})
        if count and (why := difference(before, after)) is not None:
            raise _core.PassFailed(f"the pass '{names[count - 1]}' changes what the graph gives: {why}")
        before = after


def outcome(program: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> list[Any] | str:
    """The interpreter's result for the program's graph with these options: results and written
    inputs, or the failed check."""
    made = _core.recompile(program, options, "interp", (("defined", "", on_text(defined)),))
    copies = [copy_of(value) for value in inputs]
    try:
        results = _core.run_program(made, copies)
    except _core.CheckFailed as failure:
        return str(failure)
    return [*map(np.array, results), *(c for c in copies if isinstance(c, np.ndarray))]


def defined(graph: Graph) -> None:
    """Fill unwritten memory with zeros, because its contents would differ between two runs."""
    for node in graph.nodes:
        if node.op == "empty":
            zero = "false" if node.dtype == "bool" else "(0.0, 0.0)" if node.dtype[0] == "c" else "0"
            zero = "0.0" if node.dtype[0] in "fb" and node.dtype != "bool" else zero
            number = graph.add("const", before=node, dtype=node.dtype, sizes=[], attributes={"value": zero})
            whole = graph.add("expand", number, before=node, sizes=node.sizes)
            node.op = "copy"
            graph.set_args(node, whole)


def copy_of(value: Any) -> Any:
    """A copy of an input with the same layout."""
    if not isinstance(value, np.ndarray) or value.size == 0:
        return value
    steps = [(n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)]
    low = sum(s for s in steps if s < 0)
    memory = np.empty(sum(map(abs, steps)) + value.itemsize, np.uint8)
    made = np.ndarray(value.shape, value.dtype, memory, -low, value.strides)
    made[...] = value
    return made


def difference(before: Any, after: Any) -> str | None:
    """The difference between two outcomes."""
    if isinstance(before, str) or isinstance(after, str):
        return None if before == after else f"{after} instead of {before}"
    for number, (a, b) in enumerate(zip(after, before, strict=True)):
        try:
            assert_array(a, b, 0, f"value {number}")
        except AssertionError as error:
            return str(error)
    return None
