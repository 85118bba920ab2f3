"""Items that a captured function reads, sets and deletes.

An item of a container that outlives the call is read with a guard; a store to it is deferred to the end of the
call (`Stores`) or is an effect. A container made in the call is Python's own and contains traced values. An index
is inspected before an array gets it.

An item of a list or tuple at a data-dependent position is read from an array of the items. These must be numbers
of one type, or tuples of one structure with such numbers, so that the copy cannot be told from the object in the
list. An array among the items must be selected by Python, because its identity matters.

`array.flat` means the elements by one index, in C order. They are found through the array's own axes, so reads and
writes access the array's memory in every layout. If the flatiter object itself is needed, NumPy's is used.
"""

from __future__ import annotations

import contextlib
import math
import operator
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a, module_of
from ...numpy.index import flat as raveled
from .. import operands, special_methods
from ..call_state import fall_back_for_flags
from ..calls.numpy_calls import constants
from ..container_rows import ROWS
from ..containers import is_constant
from ..control import list_buffer, list_columns
from ..control.given_mappings import item_or_default, want_mapping
from ..control.mappings import Mapping, is_open_key
from ..iterators import Flat, Range, TracedBytes
from ..kinds import Hooks, have_same_structure, kind_of, leaves, rebuilt
from ..objects import (
    CONTAINER_TYPES,
    FLAGS,
    FREE_TYPES,
    MISSING,
    OPAQUE,
    PURE_TYPES,
    VIEWS_OF_DICTS,
    Traced,
    bounds_of,
    find_in_class,
    has_hooks,
    hooked_in,
    is_foreign,
    is_numpys,
    is_standard,
    is_tuple,
)
from .attributes import Slot

if TYPE_CHECKING:
    from ..call_state import Stage


INDEX_TRICKS = frozenset(
    {"nd_grid", "MGridClass", "OGridClass", "RClass", "CClass", "IndexExpression"}
)


def is_constant_key(key: Any) -> bool:
    """True for numbers and slices of numbers."""
    if type(key) is tuple:
        return all(map(is_constant_key, key))
    if type(key) is slice:
        return all(map(is_constant_key, (key.start, key.stop, key.step)))
    return type(key) in (int, float, complex, type(None))


BOUNDS = frozenset({int, type(None)})
PLAIN_INDEXES = FREE_TYPES - {slice, Traced}  # Python raises its own exception for those that are not an index


def may_count(key: Any) -> bool:
    """True if Python accepts a traced value as an index of a sequence, or NumPy raises."""
    return key.kind == "array" or key.dtype.kind in "iu" or (key.dtype == bool and key.kind == "python")


def has_own_index(key: Any) -> bool:
    """True if a method in Python converts the key to an int."""
    return type(key) not in FREE_TYPES and type(find_in_class(type(key), "__index__")) is types.FunctionType


class Subscripts(Hooks):
    """The methods of a scope for items."""

    __slots__ = ()

    stage: Stage

    def slice(self, *bounds: Any) -> Any:
        """start:stop:step. The code that uses the slice converts its bounds to ints."""
        return slice(*bounds)

    def _index(self, key: Any) -> Any:
        """An index in which objects with `__index__` are replaced by ints."""
        cls = type(key)
        if cls is Traced:
            return key if may_count(key) else self.stage.materialise(key)  # so that Python raises its own exception
        if cls is slice:
            if BOUNDS.issuperset(map(type, (key.start, key.stop, key.step))):
                return key
            bounds = bounds_of(key) if is_constant(key) else tuple(self.attr(key, name) for name in ("start", "stop", "step"))
            if all(type(b) in FREE_TYPES and type(b) is not Traced for b in bounds):
                return key
            return slice(*(self._index(b) for b in bounds))
        if cls in FREE_TYPES:
            return key
        if is_a(key, int):
            if self.stage.sources.source_of(key) is not None:
                self.stage.effects.stop(f"an index is of class {cls.__name__}")  # no guard covers its value
            return int.__index__(key)  # the __index__ of a subclass is not called
        method = self.stage.sources.class_attr(cls, "__index__")
        if type(method) is types.FunctionType:
            made = self.call_method(method, key)
            if type(made) is Traced and made.kind == "python" and made.dtype.kind in "iu":
                return made
            return special_methods.index(self.stage, self.stage.forced(made))
        if self.stage.sources.has_hooks(cls):
            self.stage.effects.stop(f"an index is of class {cls.__name__}")
            return self.stage.materialise(key)
        return key

    def _place(self, value: Any, key: Any) -> Any:
        """A key of a dict, or an index of a sequence."""
        if not is_a(value, dict):
            return key if type(key) in PLAIN_INDEXES else self._index(key)
        if id(value) in self.stage.state.lists:
            return key
        hooked = hooked_in((key,)) if type(key) not in FREE_TYPES else None
        if hooked is None and self.stage.sources.source_of(value) is None:
            hooked = hooked_in(value)
        if hooked is not None:
            self.stage.effects.stop(f"searches for a key of class {hooked.__name__}")
            return self.stage.materialise(key)
        return key

    def _want_columns(self, value: Any, key: Any) -> None:
        """Restart the enclosing loop or branch with the list as columns, if data decide which item is read or stored."""
        if type(value) is list and is_arg_position(self, key) and self.stage.tracer.in_region:
            self._want_buffer(value)
            list_columns.want_table(self, value)

    def _want_buffer(self, value: list[Any]) -> None:
        """If the call has made a list of numbers, restart the enclosing loop or branch with the list as columns."""
        stage = self.stage
        if stage.tracer.in_region and stage.sources.source_of(value) is None and list_buffer.may_be_columns(stage.tracer, value, value):
            list_buffer.want_buffer(stage.state.active[-1], value, value[0])

    def item(self, value: Any, key: Any) -> Any:
        """value[key]"""
        cls = type(value)
        stage = self.stage
        if cls is Traced:
            if value.ndim == 0 and has_own_index(key):
                return stage.materialise(value)[key]  # raises without calling `__index__`
            if type(key) not in FREE_TYPES or type(key) is slice:
                key = self._key(key)
            return value[key]
        if cls in CONTAINER_TYPES or is_tuple(cls):
            return self._contained(value, self._place(value, key))
        if cls is np.ndarray:
            array = stage.lift_array(value)
            return stage.lift(value[stage.materialise(key)]) if array is value else self.item(array, key)
        if cls is FLAGS:
            return stage.effects.flags_with(value, key)[key]
        if cls is Flat:
            return read_flat(self, value, key if type(key) in FREE_TYPES else self._key(key))
        if cls is TracedBytes:
            return value.item(key if type(key) in FREE_TYPES else self._key(key))
        if id(value) in stage.state.lists and not is_a(value, dict):
            return stage.state.lists[id(value)].item(self._index(key))
        if cls in ROWS and self._is_made(value):
            return self._made_item(value, key)
        return self._item_of_object(value, key)

    def _contained(self, value: Any, key: Any) -> Any:
        """An item of a list, tuple or dict."""
        stage = self.stage
        grown = stage.state.lists.get(id(value))
        if grown is not None:
            return grown.item(key)
        if is_open_key(self, value, key):
            want_mapping(self, value, key)
        source = stage.sources.source_of(value)
        if source != OPAQUE and not is_a(value, dict) and is_arg_position(self, key):
            if (picked := pick(self, value, key)) is not MISSING:
                return picked
            self._want_columns(value, key)
        if source is None:
            item = value[key]
            return item if type(item) in FREE_TYPES else stage.lift_array(item)
        if source == OPAQUE:
            return stage.lift(value[stage.materialise(key)])
        return self._guarded_item(value, key, source)

    def _item_of_object(self, value: Any, key: Any) -> Any:
        """An item of a range, a text, a class, or of an object with a `__getitem__`."""
        cls, stage = type(value), self.stage
        if cls is range and is_arg_position(self, key) and len(value) <= MAX_OF_RANGE:
            with contextlib.suppress(IndexError):  # the range raises its own
                return stage.tracer.as_python(self.item(self.call(np.arange, value.start, value.stop, value.step), key))
        if cls in PURE_TYPES or is_a(value, types.GenericAlias):
            return value[self._index(key) if hasattr(cls, "__getitem__") else key]
        if is_a(value, type) and not has_hooks(cls):
            made = stage.sources.class_attr(value, "__class_getitem__")
            is_users = is_a(made, classmethod) and not is_standard(value)
            return self.call(self.attr(value, "__class_getitem__"), key) if is_users else value[key]  # type: ignore[index]
        if cls.__name__ in INDEX_TRICKS and is_numpys(module_of(cls)) and is_constant_key(key):
            return constants(self, value[key])
        method = stage.sources.class_attr(cls, "__getitem__")
        if type(method) is types.FunctionType:
            return self.call_method(method, value, key)
        if is_numpys(module_of(cls)) and cls.__name__ in INDEX_TRICKS:
            return self.call_method(value.__getitem__, key)
        stage.effects.stop(f"reads an item of a {cls.__name__}")
        return stage.lift(value[stage.materialise(key)])

    def _is_made(self, value: Any) -> bool:
        """True if the call has made a container."""
        return id(value) in self.stage.state.lists or self.stage.sources.source_of(value) is None

    def _made_item(self, value: Any, key: Any, is_stored: bool = True) -> Any:
        """An item of a container that the call has made. is_stored: if it is absent, its default may be stored."""
        stage, missing = self.stage, ROWS[type(value)].missing
        if missing is None:
            picked = pick(self, [*value], key) if is_arg_position(self, key) else MISSING
            return stage.lift_array(value[self._place(value, key)]) if picked is MISSING else picked
        return item_or_default(self, value, self._place(value, key), missing(value), is_stored)

    def _guarded_item(self, value: Any, key: Any, source: int) -> Any:
        stage = self.stage
        if type(key) is Traced:
            is_position = not is_a(value, dict) and key.dtype.kind in "iu"
            key = operator.index(key) if is_position else stage.forced(key)
        if type(key) is slice:
            return stage.lift_items(value)[key]
        if waiting := stage.stores.of(value):
            place = key % len(value) if type(value) is list and type(key) is int else key
            if place in waiting and (is_a(value, dict) or -len(value) <= key < len(value)):
                return waiting[place]
        try:
            item = value[key]
        except LookupError:
            stage.sources.guard_length(value, source)
            raise
        if type(key) not in (int, str, bool) and not is_a(key, tuple):
            stage.sources.guard_length(value, source)
        return stage.lift_guarded(item, stage.sources.source("item", source, key))

    def _key(self, key: Any) -> Any:
        """An index whose parts have all been inspected."""
        if type(key) is tuple and self.stage.sources.source_of(key) is None:
            return tuple(map(self._key, key))
        if type(key) in FREE_TYPES or has_own_index(key):
            return self._index(key)
        if type(key) in VIEWS_OF_DICTS:
            return key  # hashed by identity
        if type(key) in CONTAINER_TYPES:
            return self.stage.lift_nested(key)
        if type(key) is Range:
            return self.call(np.arange, key.start, key.stop, key.step)
        if is_foreign(type(key)):
            self.stage.effects.stop(f"an index is of class {type(key).__name__}")
            return self.stage.materialise(key)
        return operands.use(self.stage, key)

    def item_slot(self, value: Any, key: Any) -> Slot:
        """The slot value[key]"""
        return Slot(self._get_item, self._set_item, self._del_item, key, value)

    def _get_item(self, key: Any, value: Any) -> Any:
        """value[key] in value[key] += x, which stores an item in any case."""
        if type(value) in ROWS and ROWS[type(value)].missing is not None and self._is_made(value):
            return self._made_item(value, key, is_stored=False)
        return self.item(value, key)

    def _set_item(self, key: Any, item: Any, value: Any) -> None:
        stage, cls = self.stage, type(value)
        if cls is FLAGS:
            value = fall_back_for_flags(stage, value)
            value[key] = item
            return
        if cls is np.ndarray:
            value = stage.lift_array(value)
            cls = type(value)
        if cls is Traced:
            self._set_elements(value, key, item)
            return
        if cls is Flat:
            key = key if type(key) in FREE_TYPES else self._key(key)
            return write_flat(self, value, key, self.array_of(item))
        if cls in ROWS or is_a(value, list | dict):
            key = self._place(value, key)
        if id(value) in stage.state.lists:
            stage.state.lists[id(value)].set_item(key, item)
            return
        if cls is list and type(key) is slice:
            if id(item) in stage.state.lists:
                self._want_buffer(value)
            if is_iterable(stage, item):
                item = [*self.iter(item)]  # Python would read a list whose items are in columns
        if type(item) is Traced and cls in ROWS and ROWS[cls].is_memory:
            stage.sources.note_opaque(value)
        self._want_columns(value, key)
        if is_open_key(self, value, key):
            want_mapping(self, value, key, item)
        self._set_item_of_object(value, key, item)

    def _set_elements(self, value: Traced, key: Any, item: Any) -> None:
        """Set elements of an array."""
        stage = self.stage
        if type(key) not in FREE_TYPES or type(key) is slice:
            key = self._key(key)
        if type(item) in (list, tuple) and axes_of(item) > axes_at(value, key):
            stage.effects.stop("a list with more axes than its place is stored")
            stage.materialise(value)[stage.materialise(key)] = stage.materialise(item)  # raises
            return
        if type(item) not in FREE_TYPES:
            item = self.array_of(item, value.dtype)
        if stage.effects.before_write(value):
            stage.materialise(value)[stage.materialise(key)] = stage.materialise(item)
        else:
            value[key] = item

    def _set_item_of_object(self, value: Any, key: Any, item: Any) -> None:
        """Set an item of a container, or of an object with a `__setitem__`: now, at the end of the call, or at a break."""
        cls, stage = type(value), self.stage
        source, method = stage.sources.source_of(value), stage.sources.class_attr(cls, "__setitem__")
        if source is None and cls in ROWS:
            stage.state.before_change(value)
            value[key] = item
        elif type(method) is types.FunctionType:
            self.call_method(method, value, key, item)
        elif stage.stores.may_wait_at(value, key):
            stage.store(value, key, item)
        else:
            stage.change(value, f"sets an item of a {cls.__name__}")
            if source is None or cls not in (list, dict):
                stage.tracer.flush()
            value[stage.materialise(key)] = stage.materialise(item)

    def array_of(self, value: Any, dtype: Any = None) -> Any:
        """Sequences that contain traced values, as the array that NumPy would make of them."""
        value = self.stage.lift_nested(value)
        return self.call(np.array, value, dtype) if is_a(value, list | tuple) else value

    def _del_item(self, key: Any, value: Any) -> None:
        stage, cls = self.stage, type(value)
        method = self.stage.sources.class_attr(cls, "__delitem__")
        if type(method) is types.FunctionType:
            self.call_method(method, value, key)
            return
        if cls in ROWS or is_a(value, list | dict):
            key = self._place(value, key)
        if is_a(grown := stage.state.lists.get(id(value)), Mapping):
            grown.remove("__delitem__", (key,))
            return
        if is_open_key(self, value, key):
            want_mapping(self, value, key)
        if stage.sources.source_of(value) is not None or cls not in ROWS:
            stage.change(value, f"deletes an item of a {cls.__name__}")
        else:
            stage.state.before_change(value)
        del value[stage.materialise(key)]


def is_iterable(stage: Stage, value: Any) -> bool:
    """True if Python can iterate over a value."""
    return value.ndim > 0 if type(value) is Traced else any(stage.sources.defines(type(value), n) for n in ("__iter__", "__getitem__"))


def axes_of(item: Any) -> Any:
    """The number of axes that NumPy gives a nested list."""
    if type(item) not in (list, tuple):
        return getattr(item, "ndim", 0)
    return 1 + (axes_of(item[0]) if len(item) else 0)


def axes_at(value: Traced, key: Any) -> Any:
    """The number of axes of a view, to which NumPy stores no list with more: lists are not broadcast like arrays. Infinite
    for other keys.
    """
    parts = key if type(key) is tuple else (key,)
    others = [part for part in parts if not (part is None or part is Ellipsis or type(part) is slice)]
    return value.ndim + sum(part is None for part in parts) - len(others) if all(map(is_index, others)) else math.inf


def is_index(part: Any) -> bool:
    """True for a single int of a key."""
    if type(part) is Traced:
        return part.ndim == 0 and part.dtype.kind in "iu"
    return is_a(part, int | np.integer) and type(part) is not bool


# --- items at a data-dependent index ---


MAX_CONSTANTS, MAX_TRACED = 1024, 64  # items
MAX_OF_RANGE = 1 << 32


def is_arg_position(scope: Hooks, key: Any) -> bool:
    """True for a number that is only known at run time."""
    if type(key) is not Traced or key.kind == "array" or key.dtype.kind not in "iu":
        return False
    return not key.is_expression or scope.stage.tracer.in_region


def pick(scope: Hooks, value: Any, key: Any) -> Any:
    """value[key], or MISSING if Python has to select it."""
    stage = scope.stage
    is_known = stage.sources.source_of(value) is not None
    if not 0 < len(value) <= (MAX_TRACED if is_known else MAX_CONSTANTS):
        return MISSING
    if not all(type(v) in (int, float, complex, bool, tuple, Traced) for v in value):
        return MISSING
    items = [*map(stage.lifting.lift_tuple, stage.lift_items(value))]
    rows, like = [leaves(item) for item in items], items[0]
    kinds = [kind_of(leaf) for leaf in rows[0]]
    if not kinds or any(kind is None or kind[0] == "array" for kind in kinds):
        return MISSING
    for item, row in zip(items, rows, strict=True):
        if not have_same_structure(item, like) or [kind_of(leaf) for leaf in row] != kinds:
            return MISSING
    traced = [leaf for row in rows for leaf in row if type(leaf) is Traced]
    if len(rows) > MAX_TRACED and traced or any(leaf.strong is not None for leaf in traced):
        return MISSING
    if type(like) is tuple:
        if not stage.captures:  # Python tells the objects apart
            return MISSING
        stage.chooses_tuples = True
    parts = []
    for column, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        part = scope.item(scope.call(np.array, list(column), kind[1]), key)  # type: ignore[index]
        is_pythons = kind[0] == "python"  # type: ignore[index]
        parts.append(stage.tracer.as_python(part) if is_pythons else part)
    return rebuilt(like, iter(parts))


# --- array.flat ---


def counts_elements(key: Any) -> bool:
    """True for a key of array.flat that means what it means for an array of rank 1."""
    if type(key) is list:
        return all(type(k) is not slice and counts_elements(k) for k in key)
    if type(key) is Traced:
        return key.dtype.kind in "iu" or (key.dtype == bool and key.ndim == 1)
    return type(key) in (int, slice) or is_a(key, np.integer)


def read_flat(scope: Hooks, flat: Flat, key: Any) -> Any:
    """flat[key]: a number, or a copy. NumPy's own goes back to its start."""
    if counts_elements(key) and flat.is_fresh(scope.stage.effects):
        line = raveled(scope.stage.tracer, flat.array)
        found = line[key]
        if type(found) is not Traced or found.kind != "array":
            return found
        return scope.stage.tracer.copy(found, "C")
    return scope.stage.lift(scope.stage.materialise(flat)[scope.stage.materialise(key)])


def write_flat(scope: Hooks, flat: Flat, key: Any, value: Any) -> None:
    """flat[key] = value"""
    stage, array = scope.stage, flat.array
    if array.is_readonly:
        raise ValueError("underlying array is read-only")
    if counts_elements(key) and flat.is_fresh(stage.effects) and not stage.effects.before_write(array):
        is_number = np.ndim(value) == 0 if type(value) is not Traced else value.ndim == 0
        is_own = type(value) is Traced and value.kind == "array" and value.shares_storage(array)
        line = array if array.ndim == 1 and not is_own else None  # NumPy reads its operand while it writes
        if line is None and array.flags_now.c_contiguous and not is_own:
            line = stage.tracer.reshape(array, (array.size,))
        if line is not None and (is_number or has_shape(value, line[key])):
            line[key] = value
            return
    stage.materialise(flat)[stage.materialise(key)] = stage.materialise(value)


def has_shape(value: Any, place: Any) -> bool:
    """True if a value has as many elements as the destination; NumPy repeats shorter ones."""
    return type(value) is Traced and value.shape == place.shape and type(value.size) is int
