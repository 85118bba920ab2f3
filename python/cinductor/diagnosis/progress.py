"""The progress line, shown while a capture takes long: on stderr of a terminal, or in a notebook. It disappears at
the end. The option `progress` switches it off.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

PATIENCE = 0.5  # seconds before a line is shown
PACE = 0.2


class ProgressLine:
    """The line of one capture: a thread that waits, then writes."""

    def __init__(self, job: Any) -> None:
        self.job, self.began, self.width, self.is_shown = job, time.perf_counter(), 0, False
        self.done, self.stream = threading.Event(), sys.stderr
        self.cell: Any = None  # in a notebook, its own output
        self.thread = threading.Thread(target=self.run, name="cinductor progress", daemon=True)
        self.thread.start()

    def run(self) -> None:
        if self.done.wait(PATIENCE):
            return
        if "ipykernel.zmqshell" in sys.modules:
            from IPython import display

            show: Any = display.display
            self.cell = show({"text/plain": ""}, raw=True, display_id=True)
        while True:
            self.write(f"cinductor: compiling {self.job.name}, {time.perf_counter() - self.began:.1f} s")
            self.is_shown = True
            if self.done.wait(PACE):
                return

    def write(self, text: str) -> None:
        """Replace the previous line."""
        if self.cell is not None:
            self.cell.update({"text/plain": text}, raw=True)
            return
        try:
            self.stream.write("\r" + text.ljust(self.width) + ("" if text else "\r"))
            self.stream.flush()
        except (OSError, ValueError):
            self.done.set()  # the display is no longer read
        self.width = len(text)

    def stop(self) -> None:
        self.done.set()
        self.thread.join(1)  # or the terminal is stopped
        if self.is_shown:
            self.write("")


_lines: dict[int, ProgressLine] = {}  # by thread: of the outermost capture


def start(job: Any) -> None:
    """A capture begins in this thread."""
    thread = threading.get_ident()
    if thread not in _lines:
        _lines[thread] = ProgressLine(job)


def stop(job: Any) -> None:
    """End the display."""
    line = _lines.get(threading.get_ident())
    if line is not None and line.job is job:
        del _lines[threading.get_ident()]
        line.stop()
