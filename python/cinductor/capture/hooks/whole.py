"""Values that Python looks into by itself: whatever they hold has to be what later calls find there.

An operator, a hash, a format or a pure function is given the value as it is, and reads it all. What of it
came from outside the call is guarded to the last item, also inside of containers that the call has made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ..value.objects import (
    FREE_TYPES,
    HOLDERS,
    NUMBER_TYPES,
    OPAQUE,
    has_hooks,
    hooked_in,
    is_standard,
    is_unguarded,
)

if TYPE_CHECKING:
    from ..stage import Stage


def use(stage: Stage, value: Any) -> Any:
    """What Python is going to look into by itself."""
    if type(value) is np.ndarray:
        return stage.arrays.lift_guarded(value, OPAQUE)
    hooked = hook_of(stage, value)
    if hooked is not None:
        stage.stop(f"an operator of class {hooked.__name__}", value)
        return stage.materialise(value)
    return value


def operand(stage: Stage, value: Any) -> Any:
    """One of two operands that Python is going to look into: the user's operator is given real values,
    whatever the other is.
    """
    if type(value) is np.ndarray:
        return stage.arrays.lift_guarded(value, OPAQUE)
    hooked = hook_of(stage, value)
    return value if hooked is None else Hooked(stage, value, hooked)


def compared(stage: Stage, relation: Callable[[Any, Any], Any], *values: Any) -> Any:
    """What a comparison in which code of the user's takes part gives; NotImplemented where none does."""
    hooks = [hook_of(stage, v) for v in values if type(v) not in FREE_TYPES]
    hooked = next((cls for cls in hooks if cls is not None), None)
    if hooked is None:
        return NotImplemented
    stage.stop(f"an operator of class {hooked.__name__}", *values)
    return stage.lift(relation(*map(stage.materialise, values)))


class Hooked:
    """An operand whose class has operators of the user's: they see nothing that is traced."""

    __slots__ = ("stage", "value", "cls")
    __array_ufunc__ = None  # arrays leave the operator to it

    def __init__(self, stage: Stage, value: Any, cls: type) -> None:
        self.stage, self.value, self.cls = stage, value, cls

    def apply(self, op: Callable[[Any, Any], Any], *values: Any) -> Any:
        """op(*values), real ones."""
        self.stage.stop(f"an operator of class {self.cls.__name__}")
        real = [self.stage.materialise(v.value if type(v) is Hooked else v) for v in values]
        return self.stage.lift(op(*real))


def add_operator(name: str, op: Callable[[Any, Any], Any]) -> None:
    """An operator of two operands, from both sides."""
    setattr(Hooked, f"__{name}__", lambda self, other: self.apply(op, self, other))
    setattr(Hooked, f"__r{name}__", lambda self, other: self.apply(op, other, self))


for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split():
    add_operator(name, getattr(operator, f"__{name}__"))


def hook_of(stage: Stage, value: Any) -> type | None:
    """The class whose code of the user's runs when Python looks into a value, or None: then what of it
    came from outside is guarded.
    """
    cls = type(value)
    stage.sees_objects = True  # Python asks first whether two are one
    hooked = None
    if is_a(value, HOLDERS) and not has_hooks(cls):
        hooked = guard_inside(stage, value, set())
        if hooked is None and (cls is not dict or value):
            hooked = hooked_in((value,))
    elif is_a(value, type):
        hooked = cls if has_hooks(cls) and not is_standard(cls) else None
    elif stage.has_hooks(cls) or has_unguarded(stage, value):
        hooked = cls
    return hooked


def has_unguarded(stage: Stage, value: Any) -> bool:
    """Whether Python reads something of it that nothing guards; of the caller's exceptions what they
    hold, which may be set.
    """
    is_set = is_a(value, BaseException) and stage.source_of(value) is not None
    return is_set or is_unguarded(type(value))


def guard_inside(stage: Stage, value: Any, seen: set[int]) -> type | None:
    """Guards what a container holds that came from outside, and gives lists that grow their items. The
    first class of an item of which that cannot be done, or None.
    """
    source = stage.source_of(value)
    if source is not None:
        if source >= 0:
            guard_all(stage, value, source)
        return None
    if id(value) in seen:
        return None
    seen.add(id(value))
    found = None
    items = [*value, *value.values()] if is_a(value, dict) else value
    for item in items:
        if type(item) in FREE_TYPES:
            continue
        if is_a(item, HOLDERS) and not has_hooks(type(item)):
            found = guard_inside(stage, item, seen) or found
        elif has_unguarded(stage, item):
            found = found or type(item)
    return found


def guard_all(stage: Stage, value: Any, source: int) -> None:
    """Guards everything in a container that Python itself is going to read."""
    if is_a(value, set | frozenset):
        stage.check(source, "equals", type(value)(value))
        return
    if stage.stores.of(value):
        stage.stop(f"a {type(value).__name__} is used as a whole whose items are set")
    stage.guard_length(value, source)
    pairs = value.items() if is_a(value, dict) else enumerate(value)
    for key, item in list(pairs):
        inner = stage.source("item", source, key)
        if type(item) is np.ndarray:
            stage.stop("a container of arrays is used as a whole")
        elif type(item) in NUMBER_TYPES or is_a(item, int | np.generic):
            stage.check(inner, "equals", item)
        else:
            stage.lift_guarded(item, inner)
            if has_unguarded(stage, item):
                stage.stop(f"a container of a {type(item).__name__} is used as a whole")
            if not is_a(item, HOLDERS):
                continue
            if not has_hooks(type(item)):
                guard_all(stage, item, inner)
            else:
                stage.stop(f"an operator of class {type(item).__name__}")
