"""Iteration and unpacking in a captured function: the items of containers, views, iterators and arrays."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import RegionBreak
from ...base.class_lookup import is_a
from .. import identity, special_methods
from ..container_rows import MAPPINGS, ROWS, VIEWS, are_one
from ..containers import keys_of_view, places_of
from ..control import list_columns
from ..control.mappings import want_given
from ..generators import RealItems
from ..iterators import (
    Items,
    PythonIterator,
    Range,
    StableIterator,
    Steps,
    TracedBytes,
    Walk,
    items_of,
)
from ..kinds import Hooks
from ..objects import (
    CONTAINER_TYPES,
    MISSING,
    OPAQUE,
    VALUE_TYPES,
    VIEWS_OF_DICTS,
    Traced,
    asks_length,
    find_in_class,
    has_length,
    is_internal,
    is_standard,
    is_tuple,
)
from .subscripts import is_iterable

if TYPE_CHECKING:
    from ..call_state import Stage


MAX_ROWS = 65536  # of an array of rank 2 or more: a row is a view


class Iteration(Hooks):
    """The methods of a scope for what is iterated and unpacked."""

    __slots__ = ()

    stage: Stage

    def mapping(self, value: Any) -> Any:
        """A mapping unpacked with **."""
        if is_a(value, dict):
            return self.stage.lift_items(value)
        if find_in_class(type(value), "keys") is MISSING:
            return value  # Python raises its own exception
        self.stage.effects.stop(f"a {type(value).__name__} is unpacked as a mapping")
        return {k: self.stage.lift(value[k]) for k in value.keys()}  # noqa: SIM118  (no dict)

    def iter(self, value: Any) -> Any:
        """The iterable of a loop, a star or a comprehension."""
        cls = type(value)
        stage = self.stage
        if cls is np.ndarray:
            value = stage.lift_array(value)
            cls = type(value)
        if cls is Traced:
            return self._iter_array(value)
        if cls in identity.SETS:
            identity.note_order(stage.sources, (value,))
            want_given(self, value)
        if cls is Range:
            return iter(value)
        value = value.items if cls is TracedBytes else stage.escapes.now(value)
        if type(value) is Items and value.is_long:
            return self._iter_real(value)
        if stage.state.lists and is_a(stage.state.grown(value), list_columns.Assumed) and (items := stage.numbered(value)) is not None:
            return items
        cls, source = type(value), stage.sources.source_of(value)
        if not any(stage.sources.defines(cls, name) for name in ("__iter__", "__getitem__")):
            return value  # Python raises its own exception
        if cls in CONTAINER_TYPES or is_tuple(cls):
            return self._iter_container(value, source)
        if cls in VIEWS_OF_DICTS and source is not None:
            return self.items_of_view(value)
        if source is None:
            if cls in ROWS or cls in VIEWS_OF_DICTS:
                return self._iter_made(value, stage.lift_array)
            method = self.stage.sources.class_attr(cls, "__iter__")
            is_users = type(method) is types.FunctionType and not is_internal(cls)
            if not is_users and stage.sources.defines(cls, "__next__"):
                return self._steps(value)
            if is_users and not has_length(cls):
                return self._steps(special_methods.iterator(self.call_method(method, value)))
            if not self.stage.sources.has_hooks(cls):
                return value
        elif cls in VALUE_TYPES or (is_a(value, type) and is_standard(cls)):
            return value
        stage.effects.stop(f"iterates a {cls.__name__}")
        return self._iter_unknown(stage.materialise(value))

    def _iter_container(self, value: Any, source: int | None) -> Any:
        stage = self.stage
        if source is None or source == OPAQUE:
            lift = stage.lift_array if source is None else stage.lift
            return self._iter_made(value, lift) if type(value) in MAPPINGS else self._iter_list(value, lift)
        if is_a(value, dict):
            stage.sources.guard_length(value, source)
            return iter(value)
        return self._iter_guarded(value, source)

    def items_of_view(self, view: Any) -> Items:
        """The items of a dict view as they are when they are taken. Each step raises if the dict has grown, also the one after
        the last item.
        """
        stage = self.stage
        stage.lift_items(view)  # guards the keys
        keys = keys_of_view(view)

        def changed() -> Any:
            raise RuntimeError(ROWS[VIEWS[type(view)]].mutated)

        def made(concrete: Any, f: Any = iter) -> Iterator[Any]:
            real = concrete.of(view)
            return f(real) if len(real) == len(keys) else iter(changed, None)

        def size() -> int:
            stage.length_now(view)
            if len(view) != len(keys):
                changed()
            if any(now is not key for now, key in zip(keys_of_view(view), keys, strict=True)):  # Python goes on from a place in memory
                raise RegionBreak("a dict changes its keys while an iterator goes over it", "", 0)
            return len(keys)

        return Items(size, lambda number: self.item([*stage.lift_items(view)], number), made)

    def star(self, value: Any) -> Any:
        """The items that a star unpacks, or that a list or tuple is made of. Python itself calls `__len__` of a user's object.
        """
        if is_iterable(self.stage, value) and asks_length(value):
            self.stage.effects.stop(f"unpacks a {type(value).__name__}")
            return self.stage.materialise(value)
        return self.iter(value)

    def step(self, value: Any) -> Any:
        """next(value), of an iterator made in the call."""
        value = self.stage.escapes.now(value)
        if not is_internal(type(value)):
            method = self.stage.sources.class_attr(type(value), "__next__")
            if type(method) is types.FunctionType:
                return self.call_method(method, value)
        self.stage.state.before_change(value)
        if type(value) is np.broadcast:
            value = self.stage.effects.filled(value)
        return self.stage.lift_array(next(value))

    def _steps(self, value: Any) -> Iterator[Any]:
        return Steps(value, self.step)

    def _iter_list(self, value: Any, lift: Callable[[Any], Any]) -> Walk:
        """The items of a list or tuple that no guard checks, as they are when they are taken."""
        return Walk(value, lambda number: lift(value[number]), self.stage.length_now)

    def _iter_made(self, value: Any, lift: Callable[[Any], Any]) -> StableIterator:
        stage, before = self.stage, places_of(value)

        def is_same() -> bool:
            stage.length_now(value)
            return are_one(before, places_of(value))

        return StableIterator(stage.state, value, lift, is_same)

    def _iter_array(self, value: Traced) -> Any:
        if value.ndim == 0:
            return iter(value)  # raises
        items = items_of(value)
        if items is not None and (items.is_long or len(value) > MAX_ROWS):
            return self._iter_real(items)
        return items

    def _iter_real(self, items: Items) -> Iterator[Any]:
        """Iterate many items by Python's own iterator over real arrays: one break."""
        reason = f"iterates over {int(items.length)} items"
        if items.calls:
            self.stage.effects.stop(reason, items)
        else:
            self.stage.tracer.note_break(reason)
        return self._iter_unknown(self.stage.materialise(items))

    def _iter_guarded(self, value: Any, source: int) -> Iterator[Any]:
        stage = self.stage
        stage.sources.guard_length(value, source)

        def item(i: int) -> Any:
            waiting = stage.stores.of(value)
            if i in waiting:
                return waiting[i]
            return stage.lift_guarded(value[i], stage.sources.source("item", source, i))

        return Walk(value, item)

    def _iter_unknown(self, value: Any) -> Iterator[Any]:
        self.stage.tracer.flush()
        return PythonIterator(self.stage.lifting, iter(value))

    def iter_unpacked(self, value: Any, shape: tuple[Any, ...]) -> Iterator[Any]:
        """The items of a loop whose target unpacks each item."""
        return map(lambda item: self.unpack(item, shape), self.iter(value))

    def each(self, value: Any, *shape: Any) -> Any:
        """The items for a loop or comprehension that Python itself runs. shape: of the target, if it unpacks each item."""
        items = self.iter_unpacked(value, *shape) if shape else self.iter(value)
        return items if items is value else RealItems(self.stage.effects, items)

    def unpack(self, value: Any, shape: tuple[Any, ...]) -> Any:
        """A value that the next assignment unpacks; shape says which parts are unpacked again."""
        if type(value) is Traced and (not value.ndim or (len(value) != len(shape) and shape)):
            return self.stage.materialise(value)  # raises when it is unpacked, like NumPy's
        if type(value) not in CONTAINER_TYPES and type(value) is not Traced:
            if not shape and asks_length(value):  # a starred target
                return self.star(value)
            items = self.iter(value)
            return items if items is value else Unpacked(self, items, shape)  # if it is no iterable, Python raises
        return [*Unpacked(self, self.iter(value), shape)]


class Unpacked:
    """The items that the next assignment unpacks. For a starred target Python asks for the iterator of an iterator once more,
    when it makes the list of the remaining items.
    """

    __slots__ = ("scope", "items", "shape", "number", "is_asked")

    def __init__(self, scope: Any, items: Any, shape: tuple[Any, ...]) -> None:
        self.scope, self.items, self.shape, self.number, self.is_asked = scope, items, shape, 0, False

    def __iter__(self) -> Unpacked:
        items = self.items
        if not self.is_asked:
            self.items = iter(items)
        elif type(items) is Steps and is_a(self.scope.stage.sources.class_attr(type(items.value), "__iter__"), types.FunctionType):
            self.items = iter(self.scope.iter(items.value))
        self.is_asked = True
        return self

    def __next__(self) -> Any:
        item, number = next(self.items), self.number
        self.number += 1
        inner = self.shape[number] if number < len(self.shape) else None
        stage = self.scope.stage
        found = stage.lift_array(item) if inner is None else self.scope.unpack(item, inner)
        return stage.materialise(found) if stage.tracer.has_fallen_back else found
