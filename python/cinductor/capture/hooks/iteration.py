"""What loops, stars, comprehensions and assignments of several names run over in a captured function."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ..value.handed import Asked, Steps, Walk
from ..value.items import Flat, Octets, Range, items_of
from ..value.objects import (
    CONTAINER_TYPES,
    MISSING,
    OPAQUE,
    VALUE_TYPES,
    Traced,
    asks_length,
    find_in_class,
    has_length,
    is_ours,
    is_standard,
    is_tuple,
)

if TYPE_CHECKING:
    from ..stage import Stage

UNROLL_LIMIT = 65536


class Iteration:
    """The methods of a scope for what is iterated and unpacked."""

    __slots__ = ()

    stage: Stage
    call: Callable[..., Any]

    def mapping(self, value: Any) -> Any:
        """A mapping unpacked with **."""
        if is_a(value, dict):
            return self.stage.lift_items(value)
        if find_in_class(type(value), "keys") is MISSING:
            return value  # for Python to complain of
        self.stage.stop(f"a {type(value).__name__} is unpacked as a mapping")
        return {k: self.stage.lift(value[k]) for k in value.keys()}  # noqa: SIM118  (no dict)

    def iter(self, value: Any) -> Any:
        """What a loop, a star or a comprehension runs over."""
        cls = type(value)
        stage = self.stage
        if cls is np.ndarray:
            value = stage.lift_array(value)
            cls = type(value)
        if cls is Traced:
            return self._iter_array(value)
        if cls is Flat or cls is Octets:
            value = value.items
            return iter(value)
        if cls is Range:
            return iter(value)
        value = stage.escapes.now(value)
        cls, source = type(value), stage.source_of(value)
        if all(find_in_class(cls, name) is MISSING for name in ("__iter__", "__getitem__")):
            return value  # for Python to complain of
        if cls in CONTAINER_TYPES or is_tuple(cls):
            if source is None:
                return map(stage.lift_array, value)
            if source == OPAQUE:
                return map(stage.lift, value)
            if is_a(value, dict):
                stage.guard_length(value, source)
                return iter(value)
            return self._iter_guarded(value, source)
        if source is None:
            if cls is collections.deque:
                return map(stage.lift_array, value)
            if hasattr(cls, "__next__"):
                return self._steps(value)
            method = self.stage.class_attr(cls, "__iter__")
            if type(method) is types.FunctionType and not has_length(cls):
                return self._steps(self.call(method, value))
            if not self.stage.has_hooks(cls):
                return value
        elif cls in VALUE_TYPES or (is_a(value, type) and is_standard(cls)):
            return value
        stage.stop(f"iterates a {cls.__name__}")
        return self._iter_unknown(stage.materialise(value))

    def star(self, value: Any) -> Any:
        """What a star unpacks: Python itself asks an object of the user's how long it is."""
        is_iterable = any(hasattr(type(value), n) for n in ("__iter__", "__getitem__"))
        if is_iterable and asks_length(value):
            self.stage.stop(f"unpacks a {type(value).__name__}")
            return self.stage.materialise(value)
        return self.iter(value)

    def step(self, value: Any) -> Any:
        """next(value), of an iterator made in the call."""
        value = self.stage.escapes.now(value)
        if not is_ours(type(value)):
            method = self.stage.class_attr(type(value), "__next__")
            if type(method) is types.FunctionType:
                return self.call(method, value)
        self.stage.state.before_change(value)
        if type(value) is np.broadcast:
            value = self.stage.filled(value)
        return self.stage.lift_array(next(value))

    def _steps(self, value: Any) -> Iterator[Any]:
        if not hasattr(type(value), "__next__"):
            raise TypeError(f"iter() returned non-iterator of type '{type(value).__name__}'")
        return Steps(value, self.step)

    def _iter_array(self, value: Traced) -> Any:
        if value.ndim == 0:
            return iter(value)  # raises
        if len(value) > UNROLL_LIMIT:
            self.stage.stop(f"iterates over {len(value)} rows")
            return map(self.stage.lift, self.stage.materialise(value))
        return items_of(value)

    def _iter_guarded(self, value: Any, source: int) -> Iterator[Any]:
        stage = self.stage
        stage.guard_length(value, source)

        def item(i: int) -> Any:
            waiting = stage.stores.of(value)
            if i in waiting:
                return waiting[i]
            return stage.lift_guarded(value[i], stage.source("item", source, i))

        return Walk(value, item)

    def _iter_unknown(self, value: Any) -> Iterator[Any]:
        self.stage.tracer.flush()
        return Asked(self.stage, iter(value))

    def iter_unpacked(self, value: Any, shape: tuple[Any, ...]) -> Iterator[Any]:
        """What a loop runs over when its target unpacks each item."""
        return (self.unpack(item, shape) for item in self.iter(value))

    def unpack(self, value: Any, shape: tuple[Any, ...]) -> Any:
        """A value that is unpacked by the next assignment; shape says which parts are again."""
        if type(value) is Traced and value.ndim and len(value) != len(shape) and shape:
            return self.stage.materialise(value)  # raises when unpacked, as NumPy's does
        if type(value) not in CONTAINER_TYPES and type(value) is not Traced:
            return self._unpack_each(self.iter(value), shape)
        return [*self._unpack_each(self.iter(value), shape)]

    def _unpack_each(self, items: Any, shape: tuple[Any, ...]) -> Iterator[Any]:
        for i, item in enumerate(items):
            inner = shape[i] if i < len(shape) else None
            yield self.stage.lift_array(item) if inner is None else self.unpack(item, inner)
