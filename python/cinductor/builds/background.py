"""Work that no call waits for: builds of programs, and of the alternatives of autotuning."""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock, get_native_id, start_new_thread
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import _core

NICE = 5  # so much less of a processor than the calls


def say(text: str) -> None:
    """Log a failure of work that no call waits for."""
    import logging

    logging.getLogger("cinductor.background").debug("%s", text)


class Beside:
    """Work that no call waits for: one thread does it, which ends when there is none left."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.tasks: deque[tuple[Callable[[], None], int]] = deque()
        self.running: Any = None  # a lock that the thread releases when it ends; None: there is no thread
        self.is_ending = False

    def add(self, task: Callable[[], None], nice: int = NICE) -> bool:
        """Queue a task, which is done unless the process ends before. Returns False if there is no thread for it. nice: 0 for a
        task that is short and holds Python's lock, so that calls do not wait for a thread that has less of a processor.
        """
        with self.lock:
            if self.is_ending:
                return False
            self.tasks.append((task, nice))
            if self.running is None:
                ended = allocate_lock()
                ended.acquire()
                try:
                    start_new_thread(self.work, (ended,))
                except RuntimeError as error:  # the system has no more threads: the next task tries again
                    say(repr(error))
                else:
                    self.running = ended
            return self.running is not None

    def next(self) -> tuple[Callable[[], None], int] | None:
        """The next task; None: the thread ends. No calls are timed while a task runs."""
        with self.lock:
            _core.set_alongside(1 if self.tasks else 0)
            if self.tasks:
                return self.tasks.popleft()
            self.running = None
            return None

    def work(self, ended: Any) -> None:
        """The main function of the thread. Compilers that it starts have its priority."""
        try:
            while (found := self.next()) is not None:
                task, nice = found
                if nice and sys.platform == "linux":  # elsewhere it would be the process's
                    os.setpriority(os.PRIO_PROCESS, get_native_id(), nice)
                try:
                    task()
                except Exception as error:  # what no call waits for is never worth an error
                    say(repr(error))
                del found, task  # `wait` returns before the thread has ended: it keeps nothing alive
        except KeyboardInterrupt:  # `end` interrupts a build; the user's Ctrl-C reaches only the main thread
            pass
        finally:
            ended.release()

    def wait(self) -> None:
        """Until all is done."""
        while (running := self.running) is not None:
            with running:
                pass

    def end(self) -> None:
        """The process ends: what is being built is left. Compilers are killed within 50 ms (CI_POLL_MS); the limit of the wait is for
        Python's own work, such as an import.
        """
        with self.lock:
            self.is_ending = True
            self.tasks.clear()
            running = self.running
        if running is not None:
            _core.set_alongside(2)
            if running.acquire(timeout=5.0):
                running.release()
            _core.set_alongside(0)

    def forget(self) -> None:
        """In the child of a fork, which has no such thread."""
        self.__init__()  # type: ignore[misc]
        _core.set_alongside(0)


beside = Beside()
atexit.register(beside.end)
os.register_at_fork(after_in_child=beside.forget)
