"""Calls that are made again whenever a captured call is: they make results, store, or print.

`__cinductor_call__` is True if such a call may have effects. Readers of recipes, and the C code, check this attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core


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


def view(
    dtype: np.dtype,
    writable: bool,
    whole: np.ndarray,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
) -> np.ndarray:
    """A view of an array's memory."""
    if whole.size == 0 and not any(whole.strides):
        strides, offset = (0,) * len(shape), 0
    return _core.view(whole, dtype, shape, strides, offset, writable)


def view_of(array: Any) -> DeferredObject:
    """How a traced view is made."""
    layout = array.shape, array.strides, array.offset
    return DeferredObject((view, array.dtype, array.flags_now.writeable, array.whole, *layout))
