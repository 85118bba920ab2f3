"""Results that are made anew in each call, of what the program gives."""

from __future__ import annotations

from typing import Any


class DeferredCall(tuple):
    """Stands for what its first item returns when it is called with the others."""

    __slots__ = ()
    __cinductor_call__ = True


def choose(is_first: Any, first: Any, second: Any) -> Any:
    """One of two results of branches on data."""
    return first if is_first else second
