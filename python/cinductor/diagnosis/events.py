"""Notifies listeners of captures: logs, traces, profiles, the progress line. Without a listener nothing is made, and
replayed calls never come here.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ..base import lazy
from ..base.class_lookup import Record
from ..base.deferred_warnings import warn
from ..base.signals import pass_on
from ..base.user_frame import PACKAGE
from ..config import config


class CaptureEvent(Record):
    r"""A call that was captured, or that capture has left to NumPy.

    began, ended: nanoseconds of time.perf_counter_ns. recompiles: the guard that failed, if this is not the first
    capture.
    """

    __slots__ = ("job", "began", "ended", "recompiles")
    job: Any
    began: int
    ended: int
    recompiles: str | None


class Listener:
    """Gets notified of captures. A listener that raises an exception is removed."""

    def begin(self, job: Any) -> None:
        """A capture begins."""

    def end(self, event: CaptureEvent) -> None:
        """The capture has ended."""


listeners: list[Listener] = []
# Requested by environment variables, not created yet.
_awaited = [name for name in ("CINDUCTOR_LOGS", "CINDUCTOR_TRACE", "CINDUCTOR_PROVENANCE") if os.environ.get(name)]


def is_awaited() -> bool:
    """True if there is a listener, or will be one when the first capture begins."""
    return bool(listeners or _awaited)


def is_internal(job: Any) -> bool:
    """True for a function of this package, such as those that measure the machine; it is not reported."""
    code = getattr(job.fn, "__code__", None)
    return code is not None and code.co_filename.startswith(PACKAGE)


def begin(job: Any) -> int:
    """Called before a capture; returns the argument for `end`."""
    while _awaited:
        listen_for(_awaited.pop())
    if config.progress and job.owner is None and is_watched():
        from .progress import start

        start(job)
    if listeners and not is_internal(job):
        for listener in listeners:
            listener.begin(job)
    return time.perf_counter_ns()


def end(job: Any, began: int) -> None:
    """Called after a capture."""
    progress = sys.modules.get("cinductor.diagnosis.progress")
    if progress is not None:
        progress.stop(job)
    logging = sys.modules.get("logging")  # without it there is no handler for a log
    is_read = logging is not None and logging.getLogger("cinductor.breaks").isEnabledFor(logging.INFO)
    if (not listeners and not is_read) or is_internal(job):
        return
    why = job.reasons[-1] if job.reasons and job.captures > 1 else None
    event = CaptureEvent(job, began, time.perf_counter_ns(), why)
    if is_read:
        lazy.load("diagnosis.logs").tell(event)
    for listener in list(listeners):
        try:
            listener.end(event)
        except Exception as error:
            pass_on(error)
            listeners.remove(listener)
            warn(f"{type(listener).__name__} is left out from here on, for a mistake of its own: {error!r}")


def listen_for(variable: str) -> None:
    """Start the listener that an environment variable asks for."""
    value = os.environ[variable]
    if variable == "CINDUCTOR_TRACE":
        listeners.append(lazy.load("diagnosis.tracing").Trace(value))
    elif variable == "CINDUCTOR_PROVENANCE":
        if value != "0":
            explain = lazy.load("report.explanation").Explanation
            listeners.append(lazy.load("report.provenance").Provenance(value, explain))
    else:
        lazy.load("diagnosis.logs").from_environment(value)


def is_watched() -> bool:
    """True if the user can see what is printed: in a terminal or a notebook."""
    if "ipykernel.zmqshell" in sys.modules:
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
