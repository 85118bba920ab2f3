"""Values that Python's own code reads.

An operator, a hash, a format or a pure function gets the value itself and may read all of it (`use`). So
everything in it that came from outside of the call is guarded, also inside of containers that the call has made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .boundary import Lifting
from .control import list_buffer
from .iterators import Flat
from .objects import (
    FREE_TYPES,
    HOLDERS,
    NUMBER_TYPES,
    SHOWN,
    has_hooks,
    hooked_in,
    is_standard,
    is_unguarded,
    objects_in,
)
from .stage import Stage


def use(stage: Stage, value: Any) -> Any:
    """The value for code in which Python reads all of it."""
    if type(value) in SHOWN:
        return stage.lifting.shown(value)
    hooked = hook_of(stage, value)
    if hooked is not None:
        stage.effects.stop(f"an operator of class {hooked.__name__}", value)
        return stage.materialise(value)
    return value


def operand(stage: Stage, value: Any) -> Any:
    """One of two operands that Python reads: an operator of the user gets real values, whatever the other operand is.
    """
    if type(value) in SHOWN:
        return stage.lifting.shown(value)
    hooked = hook_of(stage, value)
    return value if hooked is None else Hooked(stage.lifting, value, hooked)


def compared(stage: Stage, relation: Callable[[Any, Any], Any], *values: Any) -> Any:
    """The result of a comparison that runs user code; NotImplemented if it runs none."""
    hooks = [hook_of(stage, v) for v in values if type(v) not in FREE_TYPES]
    hooked = next((cls for cls in hooks if cls is not None), None)
    if hooked is None:
        return NotImplemented
    stage.effects.stop(f"an operator of class {hooked.__name__}", *values)
    return stage.lift(relation(*map(stage.materialise, values)))


class Hooked:
    """An operand whose class has the user's own operators, which must not see traced values."""

    __slots__ = ("lifting", "value", "cls")
    __array_ufunc__ = None  # so that arrays leave the operation to its operators

    def __init__(self, lifting: Lifting, value: Any, cls: type) -> None:
        self.lifting, self.value, self.cls = lifting, value, cls

    def apply(self, op: Callable[[Any, Any], Any], *values: Any) -> Any:
        """op(*values) on real values."""
        effects, copies = self.lifting.effects, self.lifting.copies
        effects.stop(f"an operator of class {self.cls.__name__}")
        given = [v.value if is_a(v, Hooked) else copies.get(id(v), (v, v))[1] for v in values]
        real = [effects.materialise(v) for v in given]
        return self.lifting.lift(op(*real))


def add_operator(name: str, op: Callable[[Any, Any], Any]) -> None:
    """Add an operator of two operands, in both orders."""
    setattr(Hooked, f"__{name}__", lambda self, other: self.apply(op, self, other))
    setattr(Hooked, f"__r{name}__", lambda self, other: self.apply(op, other, self))


for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split():
    add_operator(name, getattr(operator, f"__{name}__"))


class StoredList(Hooked):
    """A list that is stored as columns, as an operand: a sum of lists joins the columns, other operators read the items."""

    __slots__ = ("scope",)

    def __init__(self, scope: Any, value: list[Any]) -> None:
        super().__init__(scope.stage.lifting, value, list)
        self.scope = scope

    def apply(self, op: Callable[[Any, Any], Any], *values: Any) -> Any:
        """op(*values); the other operand may be such a list, too."""
        given = [v.value if type(v) is StoredList else v for v in values]
        if op is operator.add and all(type(v) is list for v in given):
            made = list_buffer.joined(self.scope, *given)
            if made is not None:
                return made
        return op(*(self.lifting.operand(v.value) if type(v) is StoredList else v for v in values))


StoredList.__name__ = "list"  # in reasons

def hook_of(stage: Stage, value: Any) -> type | None:
    """The class whose user code would run when Python reads a value, or None; then everything in it from outside of
    the call is guarded.
    """
    cls = type(value)
    stage.sources.sees_objects = True  # Python first tests whether two objects are identical
    hooked = None
    if cls is Flat or cls is np.flatiter:  # compares its elements
        return np.flatiter
    if is_a(value, HOLDERS) and not has_hooks(cls):
        hooked = guard_inside(stage, value, set())
        if hooked is None and (cls is not dict or value):
            hooked = hooked_in((value,))
    elif is_a(value, type):
        hooked = cls if has_hooks(cls) and not is_standard(cls) else None
    elif stage.sources.has_hooks(cls) or has_unguarded(stage, value):
        hooked = cls
    return hooked


def has_unguarded(stage: Stage, value: Any) -> bool:
    """True if Python reads something of the value that no guard covers, such as the attributes of the caller's
    exceptions, which may be set.
    """
    is_set = is_a(value, BaseException) and stage.sources.source_of(value) is not None
    return is_set or is_unguarded(type(value))


def guard_inside(stage: Stage, value: Any, seen: set[int]) -> type | None:
    """Guard everything in a container that came from outside, and give growing lists their items. Returns the first
    class of an item for which that is impossible, or None.
    """
    source = stage.sources.source_of(value)
    if source is not None:
        if source >= 0:
            guard_all(stage, value, source)
        return None
    if id(value) in seen:
        return None
    seen.add(id(value))
    found = None
    for item in objects_in(value):
        if type(item) in FREE_TYPES:
            continue
        if is_a(item, HOLDERS) and not has_hooks(type(item)):
            found = guard_inside(stage, item, seen) or found
        elif has_unguarded(stage, item):
            found = found or type(item)
    return found


def guard_all(stage: Stage, value: Any, source: int) -> None:
    """Guard everything in a container that Python itself will read."""
    if is_a(value, set | frozenset):
        stage.sources.check(source, "equals", type(value)(value))
        return
    if stage.stores.of(value):
        stage.effects.stop(f"a {type(value).__name__} is used as a whole whose items are set")
    stage.sources.guard_length(value, source)
    pairs = value.items() if is_a(value, dict) else enumerate(value)
    for key, item in list(pairs):
        inner = stage.sources.source("item", source, key)
        if type(item) is np.ndarray:
            stage.effects.stop("a container of arrays is used as a whole")
        elif type(item) in NUMBER_TYPES or is_a(item, int | np.generic):
            stage.sources.check(inner, "equals", item)
        else:
            stage.lift_guarded(item, inner)
            if has_unguarded(stage, item):
                stage.effects.stop(f"a container of a {type(item).__name__} is used as a whole")
            if not is_a(item, HOLDERS):
                continue
            if not has_hooks(type(item)):
                guard_all(stage, item, inner)
            else:
                stage.effects.stop(f"an operator of class {type(item).__name__}")
