"""Warnings issued by cinductor itself, after the outermost compiled call.

User code may count or forbid the warnings of its own code; cinductor's warnings must not take part in that.
So a warning is queued until the outermost call of the thread ends. It is logged instead of issued

* if the warning filters differ from those at the start of the call,
* if a filter turns every warning into an error, or
* if warnings are being recorded now but were not when the function was compiled. A filter for `CinductorWarning` in force
  asks for them: `warnings.simplefilter("always", cinductor.CinductorWarning)`.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from _thread import _local  # threading itself takes a millisecond to import
from collections.abc import Callable
from typing import Any

from .class_lookup import Record
from .user_frame import NO_LOCATION, frame


class CinductorWarning(RuntimeWarning):
    """Given if a function, or a part of it, runs in another way than was requested; the message says why.

    A filter for this class affects no other warnings.
    """

    __module__ = "cinductor"


class CacheWarning(CinductorWarning):
    """Given if the disk cache cannot be used, which costs time and nothing else; CINDUCTOR_CACHE_DIR names another folder."""

    __module__ = "cinductor"


class DeferredWarning(Record):
    """A warning and the user's line at which it is issued."""

    __slots__ = ("text", "file", "line", "where", "may_be_recorded", "category")
    text: str
    file: str
    line: int
    where: dict[str, Any]
    may_be_recorded: bool
    category: type[CinductorWarning]


class Waiting(_local):
    """For each thread: the calls in progress, nested, and the warnings that wait for their end."""

    def __init__(self) -> None:
        self.depth = 0
        self.notices: list[DeferredWarning] = []
        self.state: Any = None


_waiting = Waiting()


def warn(
    message: str, may_be_recorded: bool = True, category: type[CinductorWarning] = CinductorWarning
) -> None:
    """Issue a warning at the user's line, after the outermost call has ended. may_be_recorded: warnings were recorded
    when the function was compiled.
    """
    found = frame()
    where = {} if found is None else found.f_globals
    place = (NO_LOCATION, 1) if found is None else (found.f_code.co_filename, found.f_lineno)
    pending = DeferredWarning("cinductor: " + message, *place, where, may_be_recorded, category)
    if _waiting.depth:
        _waiting.notices.append(pending)
    else:
        give(pending)


def warn_of_cache(message: str) -> None:
    """Issue a warning about the disk cache."""
    warn(message, category=CacheWarning)


def begin() -> None:
    """A call begins."""
    if _waiting.depth == 0:
        _waiting.state = state()
    _waiting.depth += 1


def end() -> None:
    """End a call. After the outermost one the queued warnings are issued."""
    _waiting.depth -= 1
    if _waiting.depth or not _waiting.notices:
        return
    notices, _waiting.notices = _waiting.notices, []
    is_as_before = state() == _waiting.state
    for pending in notices:
        if is_as_before:
            give(pending)
        else:
            log(pending)


def state() -> Any:
    """The settings that decide about a warning: the filters, and the function that shows it."""
    now = filters()
    return (id(now), list(now), warnings.showwarning)


# The active filters; since 3.14 they may belong to a context.
filters: Callable[[], list[Any]] = getattr(warnings, "_get_filters", functools.partial(getattr, warnings, "filters"))


def ignoring(
    category: type[Warning], failures: tuple[type[Exception], ...], f: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Call f(...) without warnings of a category; None if it fails with one of these exceptions. `warnings.catch_warnings` would
    make Python give warnings of the user's code again that it has given once, as the default filter asks.
    """
    active, own = filters(), ("ignore", None, category, None, 0)
    active.insert(0, own)
    try:
        return f(*args, **kwargs)
    except failures:
        return None
    finally:
        if own in active:
            active.remove(own)


def give(pending: DeferredWarning) -> None:
    """Issue the warning, unless a filter for all warnings makes it an exception, or warnings of the user's code are recorded."""
    action, category, is_general = filter_of(pending)
    is_asked = issubclass(category, CinductorWarning)
    is_forbidden = action == "error" and is_general and not is_asked
    if is_forbidden or (is_recorded() and not (pending.may_be_recorded or is_asked)):
        log(pending)
        return
    warnings.warn_explicit(
        pending.text,
        pending.category,
        filename=pending.file,
        lineno=pending.line,
        module=pending.where.get("__name__", NO_LOCATION),  # None drops the warning
        registry=pending.where.setdefault("__warningregistry__", {}),
    )


def is_recorded() -> bool:
    """True if warnings are collected, as by catch_warnings(record=True), instead of shown."""
    own = vars(warnings)  # without an AttributeError for each name that is not there
    context = own.get("_get_context")  # exists since 3.14
    if context is not None and getattr(context(), "log", None) is not None:
        return True
    return type(own.get("_showwarnmsg_impl")) is types.BuiltinMethodType


def filter_of(pending: DeferredWarning) -> tuple[str, type[Warning], bool]:
    """The filter that decides about a warning: its action, its category, and True if it is for warnings of any text."""
    module = pending.where.get("__name__") or pending.file
    for action, message, category, within, line in filters():
        is_meant = message is None or matches(message, pending.text)
        is_there = within is None or matches(within, module)
        if issubclass(pending.category, category) and is_meant and is_there:
            if line in (0, pending.line):
                return action, category, message is None
    return "default", Warning, True


def matches(pattern: Any, text: str) -> bool:
    """True if a filter's pattern, compiled or text, matches the start of a text."""
    if isinstance(pattern, str):
        return text.lower().startswith(pattern.lower())
    return pattern.match(text) is not None


def log(pending: DeferredWarning) -> None:
    """Write to the log `cinductor` instead of issuing a warning."""
    logging = sys.modules.get("logging")  # without it there is no handler for a log
    if logging is not None and logging.getLogger("cinductor").hasHandlers():
        logging.getLogger("cinductor").warning("%s:%d: %s", pending.file, pending.line, pending.text)
    elif sys.stderr is not None:
        print(f"{pending.file}:{pending.line}: {pending.text}", file=sys.stderr)
