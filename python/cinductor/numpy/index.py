"""Indexing that is not by integers, slices and None: left to NumPy for now, but for what a slice
can do.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .surface import array, function, method, normal_axis, refuse


@function(np.take)
@method("take")
def take(
    t: Any, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    """np.take of one constant index."""
    refuse(out is not None or mode != "raise", "out= or mode=")
    refuse(not isinstance(indices, int | np.integer), "an array of indices")
    x = array(t, a)
    if axis is None:
        x, axis = t.reshape(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    index = operator.index(indices)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError("index")
    made = x[(slice(None),) * axis + (index,)]
    return t.copy(made, "C") if made.kind == "array" else made


@function(np.take_along_axis, np.put_along_axis, np.choose, np.put, np.place, np.delete, np.insert)
@method("choose")
def by_index(t: Any, *args: Any, **kwargs: Any) -> Any:
    """Functions that gather or scatter by arrays of indices."""
    refuse(True, "indexing by arrays is left to NumPy")
