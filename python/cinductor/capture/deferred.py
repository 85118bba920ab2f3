"""Calls that are made again whenever a captured call is: they make results, store, or print.

`__cinductor_call__` is True if such a call may have effects. Readers of recipes, and the C code, check this attribute.
"""

from __future__ import annotations

from typing import Any


class DeferredCall(tuple[Any, ...]):
    """Stands for the result of calling its first item with the others."""

    __slots__ = ()
    __cinductor_call__ = True


class DeferredObject(DeferredCall):
    """A call that only makes objects, so that it can be repeated."""

    __slots__ = ()
    __cinductor_call__ = False
    is_choice = False


class DeferredChoice(DeferredObject):
    """A call of `choose`."""

    __slots__ = ()
    is_choice = True


def choose(is_first: Any, first: Any, second: Any) -> Any:
    """One of two results of data-dependent branches."""
    return first if is_first else second
