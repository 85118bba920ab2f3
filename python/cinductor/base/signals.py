"""Internal control-flow exceptions of capture: a capture is abandoned for another one, or a call has no result of its
own.

They pass through the user's frames, so they are BaseExceptions: an `except Exception` in the function does not
catch them.
"""

from __future__ import annotations

import dis
import re
from typing import Any

from . import lazy
from .class_lookup import is_a
from .user_frame import PACKAGE


class Signal(BaseException):
    """Goes through the user's frames, whose handlers see none of it, and never leaves the package."""


class Replan(Signal):
    """A capture is given up for one that assumes less. assumption: a field of `Assumptions`
    (`capture/session.py`), to be given up; place: file and line, where it is about one.
    """

    def __init__(self, assumption: str, why: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(why)
        self.assumption, self.place = assumption, place


def pass_on(error: Exception) -> None:
    """Raise an exception again that a signal handler has raised. Code that expects errors calls this first: a timer may raise
    TimeoutError, which is an OSError.
    """
    tb = error.__traceback__
    if tb is not None and tb.tb_next is not None and lazy.load("base.interrupt").is_interrupt(error):
        raise error


# Stand-ins for the function in a call, and for an array or its method in it. The last text names no function, because the
# arguments are unpacked before the call.
OWN_NAMES = re.compile(
    r"\bcinductor\.(capture\.[\w.]+\(\)|_core\.(Traced|Method)\b)|<bound method \? of <cinductor\.[^<>]*>>|^(?=Value after \*)"
)
NAMES = {"Traced": "numpy.ndarray", "Method": "builtin_function_or_method", None: "function"}
READS_BASE = "reads .base of an array"  # why a function is abandoned, and not split


class Abandon(Signal):
    """The call cannot be captured and nothing has happened yet: the function itself shall run."""


class Raised(Signal):
    """An exception left the function, or was caught by it that NumPy would have worded in another
    way, before anything happened that cannot be undone.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Suspect(Abandon):
    """A run has raised floating-point flags before any effect: the original function runs this
    call, so that NumPy issues its own warnings."""


class OverBudget(Abandon):
    """There is too little work in the call: the function itself shall run, now and for its like."""


class NotPaid(Abandon):
    """The capture takes longer than calls have paid for: the function itself shall run until they have."""


class Deferred(Signal):
    """A whole capture whose program waits for its build: the original function runs the call. seconds: what it may take.
    changes: what the call changes, if it may be left for its program (`calls/overtaking.py`). why: without a program, the reason.
    """

    def __init__(self, program: Any, seconds: float, changes: Any = None, why: str = "") -> None:
        super().__init__(why or "the build waits until it pays")
        self.of = program, seconds, changes, why


class Overtaken(Signal):
    """A call in the original function is left, because its program is there."""


# Code that only arranges the capture and runs no operation for the user.
MACHINERY = tuple(PACKAGE + "capture/" + p for p in ("control/", "pieces/", "syntax/", "iterators", "kinds", "objects"))


def comes_from_within(error: BaseException) -> bool:
    """True if the exception comes from cinductor code that does not act for the user: most likely
    an internal error, which no handler in user code expects."""
    place = place_of(error)
    return place is not None and (place.tb_frame.f_code.co_filename.startswith(MACHINERY) or is_mistake(error))


def place_of(error: BaseException) -> Any:
    """The innermost entry of the traceback."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place


def is_mistake(error: BaseException) -> bool:
    """True for a name that code of cinductor does not find. A statement of it raises the user's NameErrors."""
    place = place_of(error) if is_a(error, NameError) else None
    if place is None or not place.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return False
    return bool(place.tb_frame.f_code.co_code[place.tb_lasti] != dis.opmap["RAISE_VARARGS"])


def forget_own(error: BaseException) -> None:
    """Remove exceptions that cinductor has handled from the contexts of an exception that user code sees."""
    at: Any = error
    seen = {id(None)}
    while id(at) not in seen:
        seen.add(id(at))
        while at.__context__ is not None and is_handled(at.__context__):
            at.__context__ = at.__context__.__context__
        at = at.__context__


def is_handled(error: BaseException) -> bool:
    """True if code of the package has caught the exception."""
    caught = error.__traceback__
    return caught is not None and caught.tb_frame.f_code.co_filename.startswith(PACKAGE)


def names_traced(error: BaseException | None) -> bool:
    """True if a message names what is the library's own, which Python and NumPy name otherwise."""
    if type(error) not in (TypeError, AttributeError):
        return False
    return OWN_NAMES.search(str(error)) is not None


def name_of(ours: re.Match[str]) -> str:
    """The word that replaces a stand-in in a message."""
    return NAMES[ours[2]] if ours[0] else ""


def reword(error: BaseException) -> None:
    """Make an exception one of the user's: without contexts of cinductor, and without its names, where the function
    cannot be run again for NumPy's own message (nearly all are arrays).
    """
    forget_own(error)
    if names_traced(error):
        error.args = tuple(OWN_NAMES.sub(name_of, a) if is_a(a, str) else a for a in error.args)
