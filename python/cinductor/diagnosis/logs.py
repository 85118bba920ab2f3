"""Logs: one logger of `logging` below `cinductor` for each category.

breaks and recompiles have level INFO, so `logging.basicConfig(level=logging.INFO)` shows them; the others have
DEBUG. `set_logs` and CINDUCTOR_LOGS switch single categories on, and print them to stderr if no handler is
configured.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from ..base.deferred_warnings import warn
from ..config import refusal
from ..report.kernels import read
from ..report.reasons import hint_for
from . import events

CATEGORIES = {
    "breaks": "where a function breaks, and calls that go to NumPy, with what can be done",
    "recompiles": "why a function is compiled once more",
    "fusion": "which loops share a kernel, and why others do not",
    "guards": "what a call must be like for the program that was made",
    "cache": "whether kernels came from the disk cache, the process or the compiler",
    "races": "which plans of a program were raced, and who has won",
    "perf": "what capturing and compiling took",
}
_handler: list[logging.Handler] = []


class LogListener(events.Listener):
    """Logs captures while a category is switched on."""

    def end(self, event: events.CaptureEvent) -> None:
        if not logger("breaks").isEnabledFor(logging.INFO):  # otherwise it has been logged already
            tell(event)


_listener = LogListener()


def logger(category: str) -> logging.Logger:
    return logging.getLogger(f"cinductor.{category}")


def set_logs(*names: str) -> None:
    """Switch the named logs on and all others off.

    Parameters
    ----------
    *names : str
        Of breaks, recompiles, fusion, guards, cache, races, perf, or all; also one string with commas. None: all are off.
        Each is a logger `cinductor.<name>` of `logging`, which prints to stderr if no handler is configured. The
        variable CINDUCTOR_LOGS does the same.

    Raises
    ------
    ValueError, TypeError
        For an unknown name; for an argument that is not a string.
    """
    asked = [part for name in names for part in split(name)]
    for name in asked:
        if name not in (*CATEGORIES, "all"):
            raise ValueError(refusal("log", name, [*CATEGORIES, "all"]))
    for name in CATEGORIES:
        logger(name).setLevel(logging.DEBUG if name in asked or "all" in asked else logging.NOTSET)
    root = logging.getLogger("cinductor")
    if asked and not root.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        root.addHandler(handler)
        _handler.append(handler)
    while _handler and not asked:
        root.removeHandler(_handler.pop())
    if _listener in events.listeners:
        events.listeners.remove(_listener)
    if asked:
        events.listeners.append(_listener)


def split(name: Any) -> list[str]:
    if not isinstance(name, str):
        raise TypeError(f"set_logs: a name is {name!r}; wanted: texts, of {', '.join(CATEGORIES)}, all")
    return [part for part in re.split(r"[,\s]+", name) if part]


def from_environment(value: str) -> None:
    """Switch on the logs named in CINDUCTOR_LOGS; a wrong name costs a warning."""
    try:
        set_logs(value)
    except ValueError as error:
        warn(f"the environment variable CINDUCTOR_LOGS has no effect: {error}")


def tell(event: events.CaptureEvent) -> None:
    """Log everything about a capture."""
    job = event.job
    if event.recompiles is not None:
        logger("recompiles").info("%s recompiles: %s", job.title, event.recompiles)
    report_breaks(job)
    outcome = job.last
    if outcome is None or job.why is not None:
        return
    if outcome.specialization is not None:
        for guard in outcome.specialization.guards:
            logger("guards").debug("%s: %s", job.title, guard)
    info, program = outcome.info, outcome.program
    if program is not None and logger("fusion").isEnabledFor(logging.DEBUG):
        report_fusion(job, program)
    logger("cache").debug("%s: %s", job.title, where_from(info))
    milliseconds = (event.ended - event.began) / 1e6
    took = ", ".join(f"{k.removesuffix('_ms')} {v:.1f} ms" for k, v in info.items() if k.endswith("_ms"))
    logger("perf").debug("%s: %.1f ms for the call (%s)", job.title, milliseconds, took or "nothing was compiled")


def report_breaks(job: Any) -> None:
    """Log each break once per function."""
    if not logger("breaks").isEnabledFor(logging.INFO):
        return
    found = []
    if job.why is not None:
        found.append(("runs in NumPy", job.why))
    elif job.last is not None:
        found += [(f"breaks at {b.file}:{b.line}", b.reason) for b in job.last.breaks]
    for what, reason in found:
        key = f"log {what} {reason}"
        if key not in job.warned:
            job.warned.add(key)
            hint = hint_for(reason)
            logger("breaks").info("%s %s: %s%s", job.title, what, reason, f" -> {hint}" if hint else "")


def report_fusion(job: Any, program: Any) -> None:
    kernels, apart = read(program.text("kernels"))
    for kernel in kernels:
        if len(kernel.nests) > 1:
            logger("fusion").debug("%s: %s has %d loop nests", job.title, kernel.name, len(kernel.nests))
    for why in apart:
        logger("fusion").debug("%s: %s", job.title, why)


def where_from(info: dict[str, Any]) -> str:
    """The origin of a capture's kernels: cache or compiler."""
    if info.get("reused"):
        return "this process had the program already"
    if info.get("from_cache"):
        return "the disk cache had the kernels"
    return f"kernels were compiled in {info.get('compile_ms', 0.0):.1f} ms"
