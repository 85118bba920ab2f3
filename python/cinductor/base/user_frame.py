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
NO_PLACE = "<cinductor>"  # the file of a warning for which no frame is the user's
STAGE, OURS = "__ci__", "__ci_"  # names in rewritten code: the object that it calls; the prefix of all of cinductor's names


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
    """f(*args, **kwargs), from a frame with file, line and globals of the user's: warnings name the place from which f is called."""
    found = frame()
    if found is None:
        return f(*args, **kwargs)
    return types.FunctionType(caller_at(found.f_code.co_filename, found.f_lineno or 1), found.f_globals)(f, args, kwargs)


@functools.lru_cache(64)
def caller_at(file: str, line: int) -> types.CodeType:
    """The code of a function that calls another at that line."""
    return CALLER.__code__.replace(co_filename=file, co_firstlineno=line, co_name=CALLED)


CALLER, CALLED = lambda f, args, kwargs: f(*args, **kwargs), OURS + "call"


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
        filename=NO_PLACE if found is None else found.f_code.co_filename,
        lineno=1 if found is None else found.f_lineno,
        module=where.get("__name__", NO_PLACE),  # None drops the warning
        registry=where.setdefault("__warningregistry__", {}),
    )
