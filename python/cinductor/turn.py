"""Whose turn it is to capture a function: threads that make the same first call compile once.

The others wait for the program, and look for it again. They wait no longer where Python has begun to
run in the capture (what it does may take long, or wait for them), nor for a capture that takes longer
than `MOST_WAIT`: then the function itself answers them.
"""

from __future__ import annotations

import os
import time
from _thread import RLock  # threading itself takes a millisecond to import
from typing import Any

MOST_WAIT = 2.0  # seconds, in each capture
POLL = 0.004  # seconds


class Turn:
    """Of one function. A thread that captures may begin another capture of it, which the function asks
    for.
    """

    __slots__ = ("lock", "process", "tracer", "is_overdue")

    def __init__(self) -> None:
        self.lock = RLock()
        self.process = os.getpid()
        self.tracer: Any = None  # of the capture at work
        self.is_overdue = False  # nobody waits for it any more

    def take(self) -> bool:
        """Whether this thread captures now; then `give` ends that."""
        if self.process != os.getpid():  # whoever had it has not come along
            self.__init__()  # type: ignore[misc]
        return self.lock.acquire(blocking=False)

    def give(self) -> None:
        """The capture has ended."""
        self.tracer, self.is_overdue = None, False
        self.lock.release()

    @property
    def is_worth_waiting(self) -> bool:
        """Whether what the capture does next is the compiler's work alone."""
        tracer = self.tracer
        return not self.is_overdue and (tracer is None or not tracer.needs_python)

    def wait(self) -> bool:
        """Whether the capture at work has ended; False: it takes too long."""
        last = time.monotonic() + MOST_WAIT
        while self.is_worth_waiting:
            if self.lock.acquire(timeout=POLL):
                self.lock.release()
                return True
            self.is_overdue |= time.monotonic() > last
        return False
