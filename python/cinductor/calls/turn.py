"""Threads that make the same first call compile once.

One thread captures; the others wait for the program and then look it up. They stop waiting if the capture has begun to run
Python code (which may take long, or may wait for them), or after `MAX_WAIT`; the original function then runs their calls.
"""

from __future__ import annotations

import os
import time
from _thread import RLock  # threading itself takes a millisecond to import
from typing import Any

MAX_WAIT = 2.0  # seconds to wait for each capture
POLL = 0.004  # seconds


class Turn:
    """A lock for capturing one function. A thread that captures may start a nested capture of the same function,
    which the function itself may cause.
    """

    __slots__ = ("lock", "process", "tracer", "is_overdue")

    def __init__(self) -> None:
        self.lock = RLock()
        self.process = os.getpid()
        self.tracer: Any = None  # of the capture in progress
        self.is_overdue = False  # it has taken too long, so no thread waits for it

    def take(self) -> bool:
        """True if this thread may capture now; then `give` must be called."""
        if self.process != os.getpid():  # after a fork, the thread that had it does not exist
            self.__init__()  # type: ignore[misc]
        return self.lock.acquire(blocking=False)

    def give(self) -> None:
        """The capture has ended."""
        self.tracer, self.is_overdue = None, False
        self.lock.release()

    @property
    def is_worth_waiting(self) -> bool:
        """True if the rest of the capture is only compiling."""
        tracer = self.tracer
        return not self.is_overdue and (tracer is None or not tracer.needs_python)

    def wait(self) -> bool:
        """True if the capture in progress has ended; False if it takes too long."""
        last = time.monotonic() + MAX_WAIT
        while self.is_worth_waiting:
            if self.lock.acquire(timeout=POLL):
                self.lock.release()
                return True
            self.is_overdue |= time.monotonic() > last
        return False
