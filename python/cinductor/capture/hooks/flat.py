"""array.flat in a captured call: the elements by one number, in C order.

Elements are found through the array's own axes, so what is read and written is the array's memory
whatever its layout. Where the object itself is wanted, and not its items, it is NumPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...numpy.index import flat as raveled
from ..value.items import Flat
from ..value.objects import Traced

if TYPE_CHECKING:
    from .scope import Scope


def line_of(tracer: Any, flat: Flat) -> Any:
    """All elements along one axis: a view where the memory is so, else a copy."""
    return raveled(tracer, flat.array)


def read(scope: Scope, flat: Flat, key: Any) -> Any:
    """flat[key]: a number, or a copy."""
    line = line_of(scope.stage.tracer, flat)
    if type(key) is not tuple:
        found = line[key]
        if type(found) is not Traced or found.kind != "array":
            return found
        return scope.stage.tracer.copy(found, "C")
    return scope.stage.lift(flat.real(scope.stage)[scope.stage.materialise(key)])


def write(scope: Scope, flat: Flat, key: Any, value: Any) -> None:
    """flat[key] = value"""
    stage, array = scope.stage, flat.array
    if not array.flags_now.writeable:
        raise ValueError("underlying array is read-only")
    if type(key) is not tuple and not stage.arrays.before_write(array):
        is_number = np.ndim(value) == 0 if type(value) is not Traced else value.ndim == 0
        line = array if array.ndim == 1 else None
        if line is None and array.flags_now.c_contiguous:
            line = stage.tracer.reshape(array, (array.size,))
        if line is not None and (is_number or has_shape(value, line[key])):
            line[key] = value
            return
    flat.real(stage)[stage.materialise(key)] = stage.materialise(value)


def has_shape(value: Any, place: Any) -> bool:
    """Whether a value has as many elements as a place takes; NumPy repeats what is too short."""
    return type(value) is Traced and value.shape == place.shape and type(value.size) is int
