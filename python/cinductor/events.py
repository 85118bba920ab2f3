"""Notifies listeners of captures: logs, traces, profiles, the progress line. Without a listener nothing is made, and
replayed calls never come here.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from .class_lookup import Record
from .config import config
from .deferred_warnings import warn
from .user_frame import PACKAGE


class CaptureEvent(Record):
    """A call that has been captured, or that capture has left to NumPy. began, ended: nanoseconds of
    time.perf_counter_ns. recompiles: the guard that the call failed, where this is not the first capture.
    """

    __slots__ = ("job", "began", "ended", "recompiles")
    job: Any
    began: int
    ended: int
    recompiles: str | None


class Listener:
    """Somebody who wants to hear. One that raises an exception hears no more."""

    def begin(self, job: Any) -> None:
        """A capture begins."""

    def end(self, event: CaptureEvent) -> None:
        """It has ended."""


listeners: list[Listener] = []
# Asked for by the environment, and not yet there.
_awaited = [name for name in ("CINDUCTOR_LOGS", "CINDUCTOR_TRACE", "CINDUCTOR_PROVENANCE") if os.environ.get(name)]


def is_awaited() -> bool:
    """True if somebody wants to hear of captures, or will when the first one begins."""
    return bool(listeners or _awaited)


def is_ours(job: Any) -> bool:
    """True if a function is this package's own, as those that measure the machine: nobody asks of
    it."""
    code = getattr(job.fn, "__code__", None)
    return code is not None and code.co_filename.startswith(PACKAGE)


def begin(job: Any) -> int:
    """Before a capture; gives what `end` wants back."""
    while _awaited:
        listen_for(_awaited.pop())
    if config.progress and job.owner is None and is_watched():
        from .progress import start

        start(job)
    if listeners and not is_ours(job):
        for listener in listeners:
            listener.begin(job)
    return time.perf_counter_ns()


def end(job: Any, began: int) -> None:
    """After it."""
    progress = sys.modules.get("cinductor.progress")
    if progress is not None:
        progress.stop(job)
    logging = sys.modules.get("logging")  # who has not imported it reads no log
    is_read = logging is not None and logging.getLogger("cinductor.breaks").isEnabledFor(logging.INFO)
    if (not listeners and not is_read) or is_ours(job):
        return
    why = job.reasons[-1] if job.reasons and job.captures > 1 else None
    event = CaptureEvent(job, began, time.perf_counter_ns(), why)
    if is_read:
        from .logs import tell

        tell(event)
    for listener in list(listeners):
        try:
            listener.end(event)
        except Exception as error:
            listeners.remove(listener)
            warn(f"{type(listener).__name__} is left out from here on, for a mistake of its own: {error!r}")


def listen_for(variable: str) -> None:
    """What an environment variable asks for begins."""
    value = os.environ[variable]
    if variable == "CINDUCTOR_TRACE":
        from .tracing import Trace

        listeners.append(Trace(value))
    elif variable == "CINDUCTOR_PROVENANCE":
        from .report.explanation import Explanation
        from .report.provenance import Provenance

        if value != "0":
            listeners.append(Provenance(value, Explanation))
    else:
        from .logs import from_environment

        from_environment(value)


def is_watched() -> bool:
    """True if somebody looks at what is printed just now: a terminal, or a notebook."""
    if "ipykernel.zmqshell" in sys.modules:
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
