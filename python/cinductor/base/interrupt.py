"""Recognises exceptions from outside of the running code: Ctrl-C, a timer, or anything that a signal handler raises.

They may occur at any point, also in cinductor's own code, and are unrelated to the function that is captured. So
no construct handles them: they end the call, which is undone if nothing has happened yet.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal makes an enumeration of each number
import functools
import types
from opcode import opmap
from typing import Any

from .. import _core
from .signals import Signal
from .signature import method_of
from .user_frame import STAGE

OWN = (Signal, _core.RegionBreak, _core.CheckFailed, _core.CinductorError)
RAISES = frozenset(opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in opmap)


def is_interrupt(error: BaseException | None) -> bool:
    """True if an exception comes from outside of the code that ran. This holds for an Exception that passed through a
    signal handler, and for any other exception unless the user's own code raises it.
    """
    if error is None or isinstance(error, OWN):
        return False
    if isinstance(error, Exception):
        return went_through_a_handler(error.__traceback__)
    return not is_raised_by_users(error.__traceback__)


def went_through_a_handler(tb: types.TracebackType | None) -> bool:
    """True if one of the frames belongs to a signal handler."""
    codes = None
    while tb is not None:
        codes = handlers() if codes is None else codes
        if id(tb.tb_frame.f_code) in codes:
            return True
        tb = tb.tb_next
    return False


def handlers() -> dict[int, types.CodeType]:
    """The code of all installed signal handlers, by its identity: equal code of another file is no handler's."""
    found = (code_of(_signal.getsignal(number)) for number in _signal.valid_signals())
    return {id(code): code for code in found if code is not None}


def code_of(handler: Any) -> types.CodeType | None:
    """The code that a Python callable runs, or None."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    plain = handler if isinstance(handler, types.FunctionType) else None
    found = plain or (method_of(handler) if callable(handler) else None)
    return None if found is None else found.__code__


def is_raised_by_users(tb: types.TracebackType | None) -> bool:
    """True if the innermost frame is at a `raise` statement of rewritten code."""
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None:
        return False
    code = tb.tb_frame.f_code
    return STAGE in code.co_freevars and code.co_code[tb.tb_lasti] in RAISES
