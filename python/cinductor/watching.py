"""Tools that look at the lines that run: coverage, debuggers. While one does, the original function answers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from . import _core

WHY = "a debugger, coverage or another tool looks at the lines that run"
LINES = ("LINE", "INSTRUCTION", "JUMP", "BRANCH", "BRANCH_LEFT", "BRANCH_RIGHT")
_told: list[str] = []


def nothing() -> None:
    """Is run to see which version of sys.monitoring its code gets."""


if sys.version_info[:2] == (3, 12):
    _core.set_nothing(nothing)


def are_lines_watched(code: Any) -> bool:
    """Whether a tool of sys.monitoring takes events of lines, of this code or of all.

    Coverage tools and debuggers ask for lines only when code starts, so their start events count, too.
    A profiler's do not.
    """
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    events = monitoring.events
    lines = sum(getattr(events, name, 0) for name in LINES)
    for tool in range(6):
        if monitoring.get_tool(tool) is None:
            continue
        is_for_lines = tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID)
        found = monitoring.get_events(tool)
        if hasattr(code, "co_code"):
            found |= monitoring.get_local_events(tool, code)
        if found & (lines | (events.PY_START if is_for_lines else 0)):
            return True
    return False


def log(title: str) -> None:
    """One line in the log of each process."""
    if not _told:
        import logging  # it takes longer to import than the package

        _told.append(title)
        logging.getLogger("cinductor.breaks").info("%s, like every compiled function, runs in NumPy: %s", title, WHY)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """No trace function sees the lines that a capture runs, for `explain` while one is set."""
    tracer = sys.gettrace()
    if tracer is None:
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
