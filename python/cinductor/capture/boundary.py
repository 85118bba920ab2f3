"""Lifts values into a call.

Arrays reach the user's frame only as Traced values, so every array operation is seen. A value from outside of the
call is lifted: if it has a source (`sources`), it is guarded.
"""

from __future__ import annotations

import enum
import functools
import operator
import types
from typing import Any

import numpy as np

from .. import _core
from ..base.array_flags import WRITEABLE
from ..base.class_lookup import is_a
from ..calls.dynamic import Symbols
from .container_rows import ROWS, VIEWS, with_items
from .containers import dict_of, is_constant, keys_of_view, name_of_view
from .control.state import State
from .effects import Effects
from .objects import (
    CONTAINER_TYPES,
    DTYPE_TYPES,
    FIXED,
    FREE_TYPES,
    IDENTITY_TYPES,
    METHODS_IN_C,
    MISSING,
    NUMBER_TYPES,
    OPAQUE,
    OWN,
    STATELESS,
    VALUE_TYPES,
    VIEWS_OF_DICTS,
    contains_items,
    has_owner,
    is_record,
    is_tuple,
    key_with_hooks,
    now_at,
    plain_class,
    remade,
    why_not_array,
)
from .sources import INEXACT, Sources

READ_BY_ENUM = ("_name_", "_value_")  # attributes of a member that the methods of module enum read


def is_made_again(fn: types.FunctionType) -> bool:
    """True for a lambda or an inner function: each run of its line makes a new one."""
    return "<" in fn.__qualname__ and not fn.__dict__


class Lifting:
    """Lifts values into one call."""

    def __init__(
        self, tracer: _core.Tracer, symbols: Symbols | None, sources: Sources, state: State, effects: Effects
    ) -> None:
        self.tracer, self.symbols, self.sources = tracer, symbols, sources
        self.state, self.effects = state, effects
        self.copies: dict[int, tuple[Any, Any]] = {}  # by id: operands that are copies of the caller's containers, and these

    def lift_guarded(self, value: Any, source: int) -> Any:
        """The value that the user's frame gets for a value read from a source; adds the guards on which replay
        relies. If NumPy runs the rest of the call, this is the value itself.
        """
        if self.tracer.has_fallen_back:
            return value
        if (known := self.effects.twins.get(id(value))) is not None:
            return known[0]  # made in the call, which therefore runs in Python each time
        found = self.sources.entered.get(source)
        if found is not None and found[0] is value:
            return found[1]
        new = self.sources.same_nan(value, source) if type(value) in INEXACT else None
        new = self._lift_guarded(value, source) if new is None else new
        self.sources.enter(source, value, new)
        return new

    def _lift_guarded(self, value: Any, source: int) -> Any:
        cls, sources = type(value), self.sources
        if cls is np.ndarray:
            return self.array(value, source)
        if cls in NUMBER_TYPES:
            sources.check(source, cls.__name__)
            return self.tracer.scalar(value, source)
        if cls is int and self.symbols is not None and (number := self._lift_int(value, source, self.symbols)) is not None:
            return number
        if (cls in VALUE_TYPES or cls in DTYPE_TYPES) and (cls is not slice or is_constant(value)):
            sources.check(source, "equals", value)
            return value
        before = sources.known.get(id(value))
        if before is not None:
            if before[1] >= 0 and before[1] != source:
                sources.check(source, "same", before[1])
            return value
        if (hooked := key_with_hooks(value)) is not None:
            self.effects.stop(f"a {cls.__name__} with keys of class {hooked.__name__}")
            return self.lift(value)
        if is_a(value, np.generic) and not is_a(value, enum.Enum):
            return self._lift_numpy_scalar(value, source)
        self._guard_object(value, source)
        sources.known[id(value)] = (value, source)
        return value

    def _lift_int(self, value: int, source: int, symbols: Symbols) -> Any:
        """An int that is a size of the program, or one of 64 bits without sign; None for others."""
        size = symbols.of_int(value, source, self.sources.place(source))
        if size is not None:
            self.sources.check(source, "size", size)
            return self.tracer.scalar(value, source, size)
        if self.sources.is_given(source) and symbols.is_uint64(value, self.sources.place(source)):
            self.sources.check(source, "word")
            return self.tracer.scalar(value, source)
        return None

    def _guard_object(self, value: Any, source: int) -> None:
        """Guard an object: a function or class by identity, others by their class, and what they refer to if it may differ."""
        cls, sources = type(value), self.sources
        if cls is types.FunctionType and is_made_again(value) and sources.is_given(source):
            has = (value.__defaults__ is not None) + 2 * (value.__kwdefaults__ is not None)
            sources.check(source, "function", value.__code__, value.__globals__, has)
            sources.renewed.add(source)
        elif cls in METHODS_IN_C and has_owner(value) and not is_a(value.__self__, np.ndarray | np.generic):
            sources.check(source, "type", cls)
            sources.check(sources.source("attr", source, "__name__"), "equals", value.__name__)
            self.lift_guarded(value.__self__, sources.source("attr", source, "__self__"))
        elif cls in IDENTITY_TYPES or is_a(value, type | enum.Enum):
            sources.check(source, "is", value)
            if is_a(value, enum.Enum | enum.EnumMeta):
                self._guard_enum(value, source)
        elif cls is functools.partial and sources.is_given(source):
            sources.check(source, "type", cls)
            sources.renewed.add(source)
        elif cls is functools.partial or cls is functools._lru_cache_wrapper:
            sources.check(source, "is", value)
        elif cls is frozenset:
            sources.check(source, "equals", value)
        elif cls is types.MethodType:
            sources.check(source, "type", cls)
            self.lift_guarded(value.__func__, sources.source("attr", source, "__func__"))
            self.lift_guarded(value.__self__, sources.source("attr", source, "__self__"))
        elif is_a(value, np.ndarray):
            self.effects.note(f"an array of class {cls.__name__} is read")
        else:
            sources.check_once(source, "type", cls)
            sources.objects.append(source)

    def _guard_enum(self, value: Any, source: int) -> None:
        """Guard the attributes that the methods of module enum read of a member, or the members of a class."""
        sources = self.sources
        for name in READ_BY_ENUM if is_a(value, enum.Enum) else ():
            held = vars(value).get(name)
            sources.check(sources.source("attr", source, name), "equals" if type(held) in VALUE_TYPES else "is", held)
        if is_a(value, enum.EnumMeta):
            sources.guard_length(vars(value)["_member_map_"], sources.source("attr", source, "_member_map_"))

    def enter(self, value: Any, source: int) -> Any:
        """Return an attribute that was read, as the user's frame gets it."""
        if source >= 0:
            return self.lift_guarded(value, source)
        return self.fix(value) if source == FIXED else self.lift_array(value) if source == OWN else self.lift(value)

    def fix(self, value: Any) -> Any:
        """An object that is the same in each call, although its contents and attributes may change."""
        cls = type(value)
        if cls in STATELESS or is_a(value, type) or id(value) in self.sources.known:
            return value
        if cls is types.MethodType:
            self.fix(value.__func__)
            return value
        return self.lift_guarded(value, self.sources.source("const", value))

    def _lift_numpy_scalar(self, value: np.generic, source: int) -> Any:
        if np.dtype(type(value)).kind in "biufc" and value.dtype.itemsize <= 16:
            try:
                traced = self.tracer.scalar(value, source)
            except TypeError:
                pass
            else:
                self.sources.check(source, "type", type(value))
                return traced
        self.sources.check(source, "equals", value)
        return value

    def lift(self, value: Any) -> Any:
        """The value that the user's frame gets for a value of unknown origin."""
        if self.tracer.has_fallen_back:
            return value
        cls = type(value)
        if cls is np.ndarray:
            return self.lift_array(value)
        if (cls in FREE_TYPES and cls is not types.FunctionType) or is_a(value, type):
            return value
        if is_record(cls):
            if (known := self.effects.twins.get(id(value))) is not None:
                return known[0]
            items = [self.lift(v) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else self.inside(value, items)
        self.sources.note_opaque(value)
        return value

    def lift_array(self, value: Any) -> Any:
        """A value found in a container made in this call: real arrays, and tuples that other code has of the call's, become traced
        again.
        """
        if self.tracer.has_fallen_back:
            return value
        return self.array(value, OPAQUE) if type(value) is np.ndarray else self.effects.twins.get(id(value), (value,))[0]

    def array(self, value: np.ndarray, source: int) -> Any:
        """The Traced value for an array that a source reaches."""
        arrays, sources = self.effects.arrays, self.sources
        found = arrays.known.get(id(value))
        if found is not None:
            if source >= 0 and found[1] >= 0 and source != found[1]:
                sources.check(source, "same", found[1])
            return found[2]
        if (why := why_not_array(value)) is not None:
            sources.known[id(value)] = (value, source)
            self.effects.note(f"{why} is read")
            return value
        sizes = paddings = None
        if source >= 0 and self.symbols is not None:
            words = sources.place(source)
            sizes = self.symbols.of_array(value, source, words)
            paddings = self.symbols.of_paddings(value, source, words, sizes)
        traced = self.tracer.array(value, source, sizes, paddings)
        if source >= 0:
            is_symbolic = sizes is not None or paddings is not None
            shown = traced if is_symbolic else value
            is_writable = value.flags.num & WRITEABLE != 0  # NumPy may warn if it is read as an attribute
            sources.check(source, "array", value.dtype, shown.shape, shown.strides, is_writable, value.flags.aligned)
        arrays.add(value, source, traced)
        if arrays.overlap and arrays.written:
            self.tracer.note_break("an array that overlaps one written to is read")
        return traced

    # --- containers ---

    def items_of(self, value: Any, source: int) -> list[Any]:
        """The lifted items of a list or tuple that a source reaches; of a dict its values."""
        self.sources.guard_length(value, source)
        pairs = list(value.items() if is_a(value, dict) else enumerate(value))
        waiting = self.effects.stores.of(value)
        return [
            waiting[k] if k in waiting else self.lift_guarded(v, self.sources.source("item", source, k))
            for k, v in pairs
        ]

    def lift_items(self, value: Any) -> Any:
        """A container with traced items: a copy if it outlives the call, else itself."""
        source = self.sources.source_of(value)
        if type(value) in VIEWS_OF_DICTS and (grown := self.state.grown(value)) is not None:
            grown.materialise("a dict or set is looked at through a view")
        if source is None:
            return value
        if type(value) in VIEWS_OF_DICTS:
            shown = dict_of(value)
            if source != OPAQUE and self.sources.source_of(shown) is None:  # no guard reaches its items
                self.effects.stop(f"iterates a {type(value).__name__}")
            self.sources.note_opaque(shown)
            lifted, plain = self.lift_items(shown), VIEWS[type(value)]
            if plain is not plain_class(shown):
                lifted = {k: lifted[k] for k in keys_of_view(value)}
            return getattr(plain, name_of_view(value))(lifted)
        if source == OPAQUE:
            if is_a(value, dict):
                return self.lifted_items(value)
            known = self.effects.twins.get(id(value))
            return self.inside(value, [self.lift(v) for v in value]) if known is None else known[0]
        items = self.items_of(value, source)
        if is_a(value, dict):
            plain = plain_class(value)
            return plain(zip(plain.__iter__(value), items, strict=True))
        return self.inside(value, items)

    def lift_tuple(self, value: Any) -> Any:
        """A tuple whose leaves loops and branches may compare and carry: those that the caller determines are guarded."""
        if not is_record(type(value)):
            return value
        inside = self.lift_items(value)
        items = [*map(self.lift_tuple, inside)]
        if all(map(operator.is_, items, inside)):
            return inside
        return remade(value, items) if inside is value else self.inside(inside, items)  # the call has made it, or the caller

    def inside(self, value: Any, items: list[Any]) -> Any:
        """A tuple or list with traced items in place of one that other code has; a tuple is that one again where it leaves."""
        made = remade(value, items)
        if is_a(value, tuple):
            self.effects.remade[id(made)] = made, self.effects.outside(value)
        return made

    def shown(self, value: Any) -> Any:
        """The traced stand-in of an array, or the view of a dict with its present items, traced."""
        return self.array(value, OPAQUE) if type(value) is np.ndarray else self.lift_items(value)

    def operand(self, value: Any) -> Any:
        """A container as an operand: Python's own operator gets traced items, one of the user's the container itself."""
        made = self.lift_items(value)
        if made is not value:
            self.copies[id(made)] = (made, value)
        return made

    def own(self, value: Any, around: tuple[Any, ...] = ()) -> Any:
        """A container for a comparison, which begins with identity: arrays, tuples and NaNs that other code has are those that the
        call has in their place. around: the containers around it.
        """
        cls = type(value)
        if cls in INEXACT and value != value:
            return self.sources.version_of(value)
        if cls in FREE_TYPES or self.tracer.has_fallen_back or any(value is v for v in around):
            return value
        if cls is np.ndarray:
            known = self.effects.arrays.known.get(id(value))
            return value if known is None else known[2]
        if (pair := self.effects.twins.get(id(value))) is not None:
            return pair[0]
        row = ROWS.get(cls)
        if not (is_record(cls) if row is None else row.places(value) is not None):
            return value
        items = list(value if row is None else row.items(value))
        own = [self.own(v, (*around, value)) for v in items]
        if all(a is b for a, b in zip(items, own, strict=True)):
            return value
        return remade(value, own) if row is None else with_items(value, own)

    def lifted_items(self, value: dict[Any, Any]) -> dict[Any, Any]:
        """A copy of a dict of unknown origin; keys are only hashed if necessary."""
        plain = plain_class(value)
        made: dict[Any, Any] = plain.copy(value)
        for key, item in plain.items(value):
            if (new := self.lift(item)) is not item:
                made[key] = new
        return made

    def lift_nested(self, value: Any) -> Any:
        """Nested tuples, lists and dicts with traced arrays, for a function that reads everything."""
        cls = type(value)
        if cls is np.ndarray:
            return self.array(value, OPAQUE)
        if cls in CONTAINER_TYPES or is_tuple(cls):
            if id(value) in self.state.lists and (made := self.state.lists[id(value)].array) is not None:
                return made
            inside = self.lift_items(value)
            if is_a(inside, dict):
                return {k: self.lift_nested(v) for k, v in self.tracer.paced(inside.items())}
            items = [self.lift_nested(v) for v in self.tracer.paced(inside)]
            if all(a is b for a, b in zip(items, inside, strict=True)):
                return inside
            return remade(inside, items)
        return value

    # --- deferred stores ---

    def store(self, value: Any, place: Any, item: Any) -> None:
        """Defer a store to an attribute or item to the end of the call, also in later calls. A loop carries the old
        value, so it is read if nothing was stored before.
        """
        sources, stores = self.sources, self.effects.stores
        sources.sees_objects = True  # a store to one object could be visible through another
        if type(value) is list:
            sources.guard_length(value, sources.source_of(value))  # type: ignore[arg-type]
            place = place % len(value)
        waiting = stores.objects.setdefault(id(value), (value, {}))[1]
        if place not in waiting:
            sources.guard_loss(value, place)
        if self.state.snapshots and place not in waiting and (now := now_at(value, place)) is not MISSING:
            kind = "item" if contains_items(value) else "attr"
            source = sources.source(kind, sources.source_of(value), place)
            waiting[place] = self.lift_guarded(now, source)
            self.state.amend(waiting, place)
        self.state.before_change(waiting)
        waiting[place] = item
