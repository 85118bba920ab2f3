"""Work that no call waits for: builds of programs, and of the alternatives of autotuning."""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock, get_native_id
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    import threading

NICE = 5  # so much less of a processor than the calls


def say(text: str) -> None:
    """Log a failure of work that no call waits for."""
    import logging

    logging.getLogger("cinductor.background").debug("%s", text)


class Beside:
    """Work that no call waits for: one thread does it, which ends when there is none left."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.tasks: deque[Callable[[], None]] = deque()
        self.thread: threading.Thread | None = None
        self.is_ending = False

    def add(self, task: Callable[[], None]) -> None:
        """The task will be done, unless the process ends before."""
        import threading

        with self.lock:
            if self.is_ending:
                return
            self.tasks.append(task)
            if self.thread is None:
                self.thread = threading.Thread(target=self.work, name="cinductor builds", daemon=True)
                self.thread.start()

    def next(self) -> Callable[[], None] | None:
        """The next task; None: the thread ends. No calls are timed while a task runs."""
        with self.lock:
            _core.set_beside(1 if self.tasks else 0)
            if self.tasks:
                return self.tasks.popleft()
            self.thread = None
            return None

    def work(self) -> None:
        """The main function of the thread. Compilers that it starts have its priority."""
        if sys.platform == "linux":  # elsewhere it would be the process's
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICE)
        while (task := self.next()) is not None:
            try:
                task()
            except KeyboardInterrupt:  # `end` interrupts a build; the user's Ctrl-C reaches only the main thread
                return
            except Exception as error:  # what no call waits for is never worth an error
                say(repr(error))

    def wait(self) -> None:
        """Until all is done."""
        while (thread := self.thread) is not None:
            thread.join()

    def end(self) -> None:
        """The process ends: what is being built is left."""
        with self.lock:
            self.is_ending = True
            self.tasks.clear()
            thread = self.thread
        if thread is not None:
            _core.set_beside(2)
            thread.join(5.0)
            _core.set_beside(0)

    def forget(self) -> None:
        """In the child of a fork, which has no such thread."""
        self.__init__()  # type: ignore[misc]
        _core.set_beside(0)


beside = Beside()
atexit.register(beside.end)
os.register_at_fork(after_in_child=beside.forget)
