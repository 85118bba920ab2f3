"""Finds the user's frame, at which warnings point and which messages name."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from .class_lookup import is_a

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PYTHON = "<frozen "  # the import system, and what runs `python -m`
MAX_PLACES = 4  # that a call in place of the user's has around it
NO_LOCATION = "<cinductor>"  # the file of a warning for which no frame is the user's
STAGE, OWN_PREFIX = "__ci__", "__ci_"  # names in rewritten code: the object that it calls; the prefix of all of cinductor's names


def frame() -> types.FrameType | None:
    """The innermost frame that belongs neither to this package nor to the modules in Python's binary; None if there is none."""
    found: types.FrameType | None = sys._getframe(1)
    while found is not None and found.f_code.co_filename.startswith((PACKAGE, PYTHON)):
        found = found.f_back
    return found


def locals_of(frame: types.FrameType) -> dict[str, Any]:
    """The local names of a frame. Before Python 3.13 the frame keeps the dict that `f_locals` makes, with references that
    its names may have dropped, so the dict is emptied unless the user's code has it.
    """
    found = frame.f_locals
    names = dict(found)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(found) <= 3:
        found.clear()
    return names


def call_in_place(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs), from frames with file, line, name and globals of the user's, the innermost MAX_PLACES of them. Warnings, log
    records and classes look at the frames around them, and find the user's places.
    """
    found, count = frame(), 0
    while found is not None and count < MAX_PLACES:
        code = found.f_code
        if not (is_internal(code) or code.co_filename.startswith(PYTHON)):
            caller = caller_at(code.co_filename, found.f_lineno or 1, code.co_name)
            f, args, kwargs = types.FunctionType(caller, found.f_globals), (f, args, kwargs), {}
            count += 1
        found = found.f_back
    return f(*args, **kwargs)


@functools.lru_cache(256)
def caller_at(file: str, line: int, name: str) -> types.CodeType:
    """The code of a function that calls another at that line."""
    return CALLER.__code__.replace(co_filename=file, co_firstlineno=line, co_name=name)


CALLER = lambda __ci_f, args, kwargs: __ci_f(*args, **kwargs)  # noqa: E731


def is_internal(code: types.CodeType) -> bool:
    """True if a frame with this code is cinductor's, although a user's place may be written in it."""
    return code.co_filename.startswith(PACKAGE) or code.co_varnames == CALLER.__code__.co_varnames


def hide_our_frames(error: BaseException | None, leaves: bool = False) -> None:
    """Remove the frames of this package from the traceback of an exception that the user's code handles, or that leaves a call.
    One that is no Exception keeps them until it leaves: they say whether it comes from outside.
    """
    if error is None or not (leaves or is_a(error, Exception)):
        return
    kept: list[Any] = []
    tb = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        is_inlined = code.co_name == "<listcomp>" and sys.version_info >= (3, 12)
        if not is_internal(code) and not is_inlined:
            kept.append(tb)
        tb = tb.tb_next
    for i, entry in enumerate(kept):
        entry.tb_next = kept[i + 1] if i + 1 < len(kept) else None
    error.__traceback__ = kept[0] if kept else None


def said(value: object) -> str:
    """An invalid value in a message: small values as they are, others by their class."""
    if value is None or is_a(value, bool | int | float | complex | str):
        return repr(value)
    return f"of class {type(value).__name__}"


def wrong(function: str, name: str, value: object, wanted: str) -> str:
    """The message for an invalid argument."""
    return f"{function}: {name} is {said(value)}; wanted: {wanted}"


def give(text: str, category: type[Warning]) -> None:
    found = frame()
    where = {} if found is None else found.f_globals
    warnings.warn_explicit(
        text,
        category,
        filename=NO_LOCATION if found is None else found.f_code.co_filename,
        lineno=1 if found is None else found.f_lineno,
        module=where.get("__name__", NO_LOCATION),  # None drops the warning
        registry=where.setdefault("__warningregistry__", {}),
    )
