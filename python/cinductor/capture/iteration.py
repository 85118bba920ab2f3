"""What loops, stars, comprehensions and assignments of several names run over in a captured function."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .value.items import Flat, Items, Octets, Range
from .value.objects import (
    CONTAINER_TYPES,
    MISSING,
    OPAQUE,
    VALUE_TYPES,
    Traced,
    find_in_class,
)

if TYPE_CHECKING:
    from .stage import Stage

UNROLL_LIMIT = 65536


class Iteration:
    """The methods of a scope for what is iterated and unpacked."""

    __slots__ = ()

    stage: Stage
    call: Callable[..., Any]

    def mapping(self, value: Any) -> Any:
        """A mapping unpacked with **."""
        if isinstance(value, dict):
            return self.stage.shallow(value)
        if find_in_class(type(value), "keys") is MISSING:
            return value  # for Python to complain of
        self.stage.stop(f"a {type(value).__name__} is unpacked as a mapping")
        return {k: self.stage.adopt(value[k]) for k in value.keys()}  # noqa: SIM118  (no dict)

    def iter(self, value: Any) -> Any:
        """What a loop, a star or a comprehension runs over."""
        cls = type(value)
        stage = self.stage
        if cls is np.ndarray:
            value = stage.wrap(value)
            cls = type(value)
        if cls is Traced:
            return self._iter_array(value)
        if cls is np.broadcast:
            return iter(stage.filled(value))
        if cls is Flat or cls is Octets:
            value = value.items
            cls = Items
        if cls is Items or cls is Range:
            return iter(value)
        source = stage.source_of(value)
        if all(find_in_class(cls, name) is MISSING for name in ("__iter__", "__getitem__")):
            return value  # for Python to complain of
        if cls in CONTAINER_TYPES or isinstance(value, tuple):
            if source is None:
                return map(stage.wrap, value)
            if source == OPAQUE:
                return map(stage.adopt, value)
            if isinstance(value, dict):
                stage.guard_length(value, source)
                return iter(value)
            return self._iter_guarded(value, source)
        if source is None:
            method = find_in_class(cls, "__iter__")
            if type(method) is types.FunctionType and cls is not types.GeneratorType:
                return iter(self.call(method, value))
            return value
        if cls in VALUE_TYPES or isinstance(value, type):
            return value
        stage.stop(f"iterates a {cls.__name__}")
        return self._iter_unknown(value)

    def _iter_array(self, value: Traced) -> Any:
        if value.ndim == 0:
            return iter(value)  # raises
        if len(value) > UNROLL_LIMIT:
            self.stage.stop(f"iterates over {len(value)} rows")
            return map(self.stage.adopt, self.stage.concrete(value))
        return (value[i] for i in range(len(value)))

    def _iter_guarded(self, value: Any, source: int) -> Iterator[Any]:
        stage = self.stage
        stage.guard_length(value, source)
        i = 0
        while i < len(value):  # as Python iterates a list that grows
            waiting = stage.stores.of(value)
            if i in waiting:
                yield waiting[i]
            else:
                yield stage.enter(value[i], stage.source("item", source, i))
            i += 1

    def _iter_unknown(self, value: Any) -> Iterator[Any]:
        iterator = iter(value)
        while True:
            self.stage.tracer.flush()
            try:
                item = next(iterator)
            except StopIteration:
                return
            yield self.stage.adopt(item)

    def iter_unpacked(self, value: Any, shape: tuple[Any, ...]) -> Iterator[Any]:
        """What a loop runs over when its target unpacks each item."""
        return (self.unpack(item, shape) for item in self.iter(value))

    def unpack(self, value: Any, shape: tuple[Any, ...]) -> Any:
        """A value that is unpacked by the next assignment; shape says which parts are again."""
        if type(value) is Traced and value.ndim and len(value) != len(shape) and shape:
            return self.stage.concrete(value)  # raises when unpacked, as NumPy's does
        if type(value) not in CONTAINER_TYPES and type(value) is not Traced:
            if not isinstance(value, tuple) and hasattr(type(value), "__next__"):
                return map(self.stage.wrap, self.iter(value))
        items = list(self.iter(value))
        for i, inner in enumerate(shape[: len(items)]):
            if inner is not None:
                items[i] = self.unpack(items[i], inner)
        return items
