"""Items of a list or tuple at a place that data decide: they are read out of an array of them.

The items are numbers of one type, or tuples of one structure with such numbers: what nobody can
tell from the object that the list holds. Of arrays Python has to pick the very one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..value.kinds import have_same_structure, kind_of, leaves, rebuilt
from ..value.objects import MISSING, Traced

if TYPE_CHECKING:
    from .scope import Scope

MOST_CONSTANTS, MOST_TRACED = 1024, 64  # items


def is_place(scope: Scope, key: Any) -> bool:
    """Whether a number is known to the running program only."""
    if type(key) is not Traced or key.kind == "array" or key.dtype.kind not in "iu":
        return False
    return not key.is_expression or scope.stage.tracer.in_region


def pick(scope: Scope, value: Any, key: Any) -> Any:
    """value[key], or MISSING where Python has to make it."""
    stage = scope.stage
    is_known = stage.source_of(value) is not None
    if not 0 < len(value) <= (MOST_TRACED if is_known else MOST_CONSTANTS):
        return MISSING
    if not all(type(v) in (int, float, complex, bool, tuple, Traced) for v in value):
        return MISSING
    rows = [leaves(item) for item in stage.lift_items(value)]
    like = stage.lift_items(value)[0]
    kinds = [kind_of(leaf) for leaf in rows[0]]
    if not kinds or any(kind is None or kind[0] == "array" for kind in kinds):
        return MISSING
    for item, row in zip(stage.lift_items(value), rows, strict=True):
        if not have_same_structure(item, like) or [kind_of(leaf) for leaf in row] != kinds:
            return MISSING
    traced = [leaf for row in rows for leaf in row if type(leaf) is Traced]
    if len(rows) > MOST_TRACED and traced or any(leaf.strong is not None for leaf in traced):
        return MISSING
    parts = []
    for column, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        part = scope.item(scope.call(np.array, list(column), kind[1]), key)  # type: ignore[index]
        is_pythons = kind[0] == "python"  # type: ignore[index]
        parts.append(stage.tracer.as_python(part) if is_pythons else part)
    return rebuilt(like, iter(parts))
