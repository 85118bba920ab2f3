"""Calls that are made again whenever a captured call is: they make results, store, or print.

`__cinductor_call__` says to those who read a recipe what a call does: "anything", "object" (it makes one and does nothing else), or
"choice" (it gives one of two).
"""

from __future__ import annotations

from typing import Any


class DeferredCall(tuple[Any, ...]):
    """Stands for the result of calling its first item with the others."""

    __slots__ = ()
    __cinductor_call__ = "anything"


class DeferredObject(DeferredCall):
    """A call that makes an object and does nothing else."""

    __slots__ = ()
    __cinductor_call__ = "object"


class DeferredChoice(DeferredObject):
    """A call of `choose`."""

    __slots__ = ()
    __cinductor_call__ = "choice"


def choose(is_first: Any, first: Any, second: Any) -> Any:
    """One of two results of data-dependent branches."""
    return first if is_first else second
