"""Calls of unknown length: the data decide how often a loop runs, and so what the call takes in NumPy.

NumPy runs such a call while its program is built in the background. If the call still runs when the program is there, it is left, what
it has changed is restored, and the program runs it from its beginning. So it takes little longer than the faster way, whichever
that is. The interpreter looks for the signal between two instructions (`pyext/replay/overtakable.c`), so the call costs nothing more.

A call is only left in the function's own code and in functions that it names, where no handler and no `with` would see the signal. All
that it changes must be arrays and random generators.
"""

from __future__ import annotations

import dis
import os
import sys
import time
import types
from _thread import get_native_id
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.signals import Overtaken
from ..builds.background import beside
from ..numpy.random import set_state

MAX_SAVED = 1 << 26  # bytes of arrays that are copied before the call
PAUSE = 5e-3  # seconds between two attempts to leave a call, in which other builds wait
DEEPEST = 4  # functions within each other
HANDLERS = {op for name, op in dis.opmap.items() if name.startswith(("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH"))}  # of Python 3.10


class Changes:
    """The arrays that a call changes, and the random generators with their states before it."""

    def __init__(self, arrays: list[np.ndarray], generators: list[tuple[Any, Any]]) -> None:
        self.arrays, self.generators = arrays, generators
        self.kept: list[np.ndarray] = []

    def keep(self) -> None:
        """Copy the arrays."""
        self.kept = [array.copy() for array in self.arrays]

    def restore(self) -> None:
        """Give arrays and generators the values that they had before the call."""
        for array, before in zip(self.arrays, self.kept, strict=True):
            array[...] = before
        for generator, state in self.generators:
            set_state(generator, state)


def may_leave(fn: Any) -> bool:
    """True if this thread's call of a function may be left. Signals are raised in the main thread alone."""
    return sys.platform == "linux" and get_native_id() == os.getpid() and bool(codes_of(fn))


def codes_of(fn: Any) -> tuple[types.CodeType, ...]:
    """The code of a function, and of those that it names or contains, in which a signal may be raised; empty: the function has a
    handler itself.
    """
    fn = getattr(fn, "__func__", fn)
    if type(fn) is not types.FunctionType or handles(fn.__code__):
        return ()
    found, waiting = {fn.__code__: None}, [(fn.__code__, 0)]
    while waiting:
        code, depth = waiting.pop()
        named = (fn.__globals__.get(name) for name in code.co_names)
        inner = [f.__code__ for f in named if type(f) is types.FunctionType and f.__globals__ is fn.__globals__]
        for other in (*inner, *(c for c in code.co_consts if type(c) is types.CodeType)):
            if other not in found and depth < DEEPEST and not handles(other):
                found[other] = None
                waiting.append((other, depth + 1))
    return (*found,)


def handles(code: types.CodeType) -> bool:
    """True if code has a handler of exceptions. From Python 3.12 on a comprehension has one, which restores its variable."""
    if sys.version_info >= (3, 11):
        return bool(code.co_exceptiontable)
    return not HANDLERS.isdisjoint(code.co_code[::2])


class Overtaking:
    """A call that is left when its program is there. The thread of builds calls it until the call has ended."""

    def __init__(self, fn: Any, changes: Changes) -> None:
        self.call, self.changes = _core.Overtakable(codes_of(fn), Overtaken), changes
        self.has_ended = False

    def __call__(self) -> None:
        self.call.stop()
        self.again(self, PAUSE)

    def again(self, task: Callable[[], None], seconds: float) -> None:
        """After a pause, let the thread of builds do a task once more, unless the call has ended."""
        if not self.has_ended:
            time.sleep(seconds)
            beside.add(task, nice=0)

    def run(self, account: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        """True if the call was left, and its result otherwise."""
        try:
            self.changes.keep()
            return False, self.call.run(account, fn, args, kwargs)
        except Overtaken:
            pass
        finally:
            self.has_ended = True
        self.changes.restore()
        return True, None
