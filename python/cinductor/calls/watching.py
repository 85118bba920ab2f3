"""Detection of tools that record lines: coverage and debuggers. The original function runs while one is active."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

WHY = "a debugger, coverage or another tool looks at the lines that run"
LINES = ("LINE", "INSTRUCTION", "JUMP", "BRANCH", "BRANCH_LEFT", "BRANCH_RIGHT")
_told: list[str] = []


def are_lines_watched(code: Any) -> bool:
    """Check if a tool of sys.monitoring takes line events, for this code or for all code.

    Coverage tools and debuggers enable line events when code starts, so their start events count, too. A
    profiler's start events do not.
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
        import logging  # imported here because it takes longer than the package

        _told.append(title)
        logging.getLogger("cinductor.breaks").info("%s, like every compiled function, runs in NumPy: %s", title, WHY)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Suspend the trace function: it must not record the lines that a capture runs (`explain`)."""
    tracer = sys.gettrace()
    if tracer is None:
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
