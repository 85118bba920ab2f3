"""Attribute reads: each gives a value and its source.

A source is the number of a row of `Sources`, which later calls read and guard, or one of three words:

    FIXED     the same object in each call: a guard says so, or its owner cannot change
    OWN       this call made or computed the value
    OPAQUE    code that capture does not follow returned it, after a break

A pair of both is the only result of a reader, and `Reads.attr` is the only place that turns one into a value of the user's frame.
The readers follow CPython: `object.__getattribute__`, and those of classes, modules, methods and super(). A class with any
other `__getattribute__` is a break.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a, module_of
from ...base.signals import READS_BASE, Abandon
from ...numpy.random import Draw, has_random_state, methods_that_draw
from ..containers import is_constant
from ..iterators import STAND_INS, Flat
from ..kinds import Hooks
from ..objects import (
    FIXED,
    FLAGS,
    MISSING,
    OPAQUE,
    OWN,
    PURE_TYPES,
    SLOTS,
    Traced,
    attributes_of,
    bound_method,
    defines,
    find_in_class,
    is_mutable,
    is_numpys,
    is_own,
    is_plain_getter,
    is_standard,
)
from ..sources import function_of
from ..syntax.rewrite import codes_in
from ..syntax.stage_calls import STAGE

if TYPE_CHECKING:
    from ..call_state import Stage


Read = tuple[Any, int]  # a value and its source
# Modules of Python whose names are guarded by identity, because they are functions and constants.
PURE_MODULES = frozenset({"math", "cmath", "operator", "functools", "itertools", "builtins"})
# Objects that no call makes.
LASTING = (type, types.ModuleType, np.ufunc, type(np.sum))
# Binding a descriptor of these kinds runs no user code.
METHOD_KINDS = frozenset({types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType})
FUNCTION = types.FunctionType
GETTER = object.__dict__["__getattribute__"]
METHODS_OWN = frozenset(name for name in vars(types.MethodType) if name != "__doc__")
OUR_NAMES = frozenset(name for name in dir(Traced) if not hasattr(np.ndarray, name))
# Enum's own properties, with the attribute of the member that each returns.
OF_MEMBERS = {enum.Enum.__dict__["value"].fget: "_value_", enum.Enum.__dict__["name"].fget: "_name_"}


class Reads(Hooks):
    """The methods of a scope that read attributes."""

    __slots__ = ()

    stage: Stage

    def attr(self, value: Any, name: str) -> Any:
        """value.name"""
        item, source = self.read(value, name)
        return item if source == OWN and type(item) is not np.ndarray else self.stage.lifting.enter(item, source)

    def read(self, value: Any, name: str) -> Read:
        """Return value.name and its source."""
        cls = type(value)
        reader = READERS.get(cls)
        if reader is not None:
            return reader(self, value, name)
        return self._read_class(value, name) if is_a(value, type) else self._read_object(value, name)

    # --- attributes of values of the call ---

    def _read_traced(self, value: Traced, name: str) -> Read:
        stage = self.stage
        stage.regions.note_class((value,))
        if value.kind == "python":  # a traced number has the attributes of an array, too
            getattr(value.__class__(), name)
        elif name == "base" and value.kind == "array":
            if not stage.tracer.in_region and stage.effects.undo_call():
                raise Abandon(READS_BASE)  # cinductor's arrays may be views of others
            stage.effects.abandon(READS_BASE)
            return stage.materialise(value).base, OPAQUE
        elif name == "flags":
            if not stage.regions.is_carried_by_value(value):
                return stage.effects.flags_without_contents(value), OWN
            stage.effects.abandon("reads flags of an array that may be one of several")
            return stage.materialise(value).flags, OWN
        elif name == "flat" and value.kind == "array":
            flat = Flat(value)
            self.stage.state.note_definition(flat.items)
            return flat, OWN
        elif name == "strides" and not self.is_library and not all(n > 1 for n in value.shape):
            stage.effects.stop("strides of an array that has an axis of at most one element")
            return stage.materialise(value).strides, OWN
        elif name in OUR_NAMES and value.kind == "array":
            getattr(np.empty(0), name)  # raises
        return getattr(value, name), OWN

    def _read_value(self, value: Any, name: str) -> Read:
        """An attribute of a value that is guarded as a whole, or a container's method."""
        return getattr(value, name), OWN

    def _read_slice(self, value: slice, name: str) -> Read:
        """A bound may be an object that changes; then no guard compares the slice."""
        is_bound = name in ("start", "stop", "step") and not is_constant(value)
        return self._at(value, name, getattr(value, name)) if is_bound else self._read_value(value, name)

    def _read_broadcast(self, value: Any, name: str) -> Read:
        if name in ("iters", "index", "reset", "__next__"):
            value = self.stage.effects.filled(value)
        return getattr(value, name), OWN

    def _read_flags(self, value: Any, name: str) -> Read:
        return getattr(self.stage.effects.flags_with(value, name), name), OWN

    def _read_flat(self, value: Flat, name: str) -> Read:
        return getattr(self.stage.materialise(value), name), OPAQUE

    def _read_stand_in(self, value: Any, name: str) -> Read:
        return getattr(self.stage.materialise(value), name), OWN

    def _read_function(self, value: types.FunctionType, name: str) -> Read:
        """A function that a captured call made is shown with the user's code, and without cinductor's own variable."""
        names = value.__code__.co_freevars
        if name not in ("__closure__", "__code__") or STAGE not in names:
            return self._read_object(value, name)
        if name == "__code__":
            return self._original_code(value), OWN
        cells = tuple(cell for held, cell in zip(names, value.__closure__ or (), strict=True) if held != STAGE) or None
        if self.stage.sources.source_of(value) is None:
            return cells, OWN
        self.stage.effects.stop("reads the closure of a function that an earlier call made")
        return cells, OPAQUE

    def _original_code(self, fn: types.FunctionType) -> types.CodeType:
        """The code of the user's for a function that a captured call made."""
        code = fn.__code__
        scope = (fn.__closure__ or ())[code.co_freevars.index(STAGE)].cell_contents
        found = [c for c in codes_in(scope.fn.__code__) if (c.co_name, c.co_firstlineno) == (code.co_name, code.co_firstlineno)]
        if len(found) != 1:
            self.stage.effects.abandon("reads the code of one of several functions of a line")
        return found[0] if len(found) == 1 else code

    # --- modules ---

    def _read_module(self, module: types.ModuleType, name: str) -> Read:
        stage, where = self.stage, module.__dict__
        own = where.get("__name__")
        value = where.get(name, MISSING)
        if value is MISSING and (is_numpys(own) or is_own(own)):
            try:
                getattr(module, name)  # NumPy and cinductor may import it now, and keep it there
            except AttributeError:
                if not self.is_library:
                    stage.sources.note_name(where, name, _core.MISSING)
                raise
            value = where.get(name, MISSING)
        if value is MISSING:
            return self._read_absent(module, where, name)
        if is_numpys(own) or own in PURE_MODULES:
            if not self.is_library:
                stage.sources.note_name(where, name, value)
            return value, FIXED
        cache = stage.globals.get(id(where))
        if cache is None:
            cache = stage.globals[id(where)] = (where, {})
        found = cache[1].get(name)
        if found is not None and found[0] is value:
            return found[1], OWN
        return self._global(where, cache[1], name, value), OWN

    def _read_absent(self, module: types.ModuleType, where: dict[str, Any], name: str) -> Read:
        """An attribute that a module's dict lacks: the class's, or the result of its `__getattr__` (PEP 562)."""
        stage = self.stage
        stage.sources.note_name(where, name, _core.MISSING)
        if find_in_class(types.ModuleType, name) is not MISSING:
            return self._at(module, name, getattr(module, name))
        getter = where.get("__getattr__", MISSING)
        if getter is MISSING:
            stage.sources.note_name(where, "__getattr__", _core.MISSING)
            return getattr(module, name), OWN  # raises
        made = self.call_method(self.attr(module, "__getattr__"), name)
        stage.learned |= name in where  # it has imported what the next capture finds
        return made, OWN

    # --- classes ---

    def _read_class(self, cls: type, name: str) -> Read:
        sources, meta = self.stage.sources, type(cls)
        if sources.class_attr(meta, "__getattribute__") is not type.__dict__["__getattribute__"]:
            return self._unknown(cls, name, "__getattribute__")
        above, found = sources.class_attr(meta, name), find_in_class(cls, name)
        if self._is_data(above):
            return self._bound(cls, name, above)
        if found is not MISSING:
            return self._read_in_class(cls, name, found)
        sources.class_attr(cls, name)
        if above is not MISSING:
            return self._bound(cls, name, above)
        getter = sources.class_attr(meta, "__getattr__")
        if getter is MISSING:
            return getattr(cls, name), OWN  # raises
        if getter is enum.EnumMeta.__dict__.get("__getattr__", MISSING):
            return self._at_class(cls, name, getattr(cls, name))
        return self._unknown(cls, name, "__getattr__")

    def _read_in_class(self, cls: type, name: str, found: Any) -> Read:
        """Bind an attribute of a class, or of one of its bases, to the class."""
        sources, kind = self.stage.sources, type(found)
        if not is_mutable(cls):
            return getattr(cls, name), FIXED
        if kind is classmethod and type(function_of(found.__func__)) is FUNCTION:
            where = sources.source("attr", sources.source_of_class(cls), name)
            sources.check_once(sources.source("attr", where, "__func__"), "is", found.__func__)
            return getattr(cls, name), FIXED
        getter = sources.class_attr(kind, "__get__")
        if type(getter) is FUNCTION and not is_standard(kind):
            self.stage.lifting.fix(found)
            return self.call_method(getter, found, None, cls), OWN
        if getter is MISSING or is_standard(kind) or is_numpys(module_of(kind)):
            return self._at_class(cls, name, getattr(cls, name))
        return self._unknown(cls, name, kind.__name__)

    def _at_class(self, cls: type, name: str, item: Any) -> Read:
        sources = self.stage.sources
        return (item, sources.source("attr", sources.source_of_class(cls), name))

    # --- objects ---

    def _read_object(self, value: Any, name: str) -> Read:
        stage, cls = self.stage, type(value)
        if name in methods_that_draw(cls):
            return Draw(self, value, name), OWN
        if has_random_state(value):
            return self._unknown(value, name, "state")  # which earlier draws change
        getter = stage.sources.class_attr(cls, "__getattribute__")
        if getter is not GETTER and not is_plain_getter(cls, getter):
            return self._unknown(value, name, "__getattribute__")
        if deferred := stage.stores.of(value):
            if name in deferred:
                return deferred[name], OWN
            if name == "__dict__":
                stage.effects.note(f"reads .__dict__ of a {cls.__name__}")
        try:
            return self._read_plain(value, name)
        except AttributeError:
            getter = stage.sources.class_attr(cls, "__getattr__")
            if getter is MISSING:
                raise
        stage.effects.stop(f"reads .{name} of a {cls.__name__} through its __getattr__")
        return bound_method(value, "__getattr__")(name), OPAQUE

    def _is_data(self, found: Any) -> bool:
        """True for an attribute of a class that has precedence over the object's own attributes."""
        return found is not MISSING and self.stage.sources.defines(type(found), "__set__")

    def _read_plain(self, value: Any, name: str) -> Read:
        """Read the attribute as object's `__getattribute__` does; raises its AttributeError."""
        found, own = self.stage.sources.class_attr(type(value), name), attributes_of(value)
        if type(own) is dict and name in own and not self._is_data(found):
            return self._at(value, name, own[name])
        if own is None and type(value).__dictoffset__ and not self._is_data(found):  # of a class in C, or with a `__dict__` of its own
            return self._unknown(value, name, "own attributes, which its class hides")
        return self._read_unset(value, name) if found is MISSING else self._bound(value, name, found)

    def _read_unset(self, value: Any, name: str, slot: Any = None) -> Read:
        """Raise an AttributeError, under a guard that the object still has no such attribute. slot: its empty slot. An
        attribute that a class in C keeps elsewhere (threading.local) is read in each call.
        """
        stage, own = self.stage, attributes_of(value)
        source = stage.sources.source_of(value)
        if source is not None and (slot is not None or own is not None):
            if source >= 0 and (slot is not None or type(own) is dict):
                stage.sources.guard_absent(source, name, slot)
            else:
                stage.effects.note(f"tests whether a {type(value).__name__} has an attribute")
        read = type(value).__getattribute__ if defines(type(value), "__getattr__") else getattr
        read(value, name)  # type: ignore[call-arg]
        return self._unknown(value, name, "class, which is written in C")

    def _bound(self, value: Any, name: str, found: Any) -> Read:
        """Bind an attribute of an object's class, whose lookup is guarded, to the object."""
        stage, cls, kind = self.stage, type(value), type(found)
        getter = BOUND.get(kind)
        if getter is not None:
            return getter(self, value, name, found)
        if kind in METHOD_KINDS:
            self._guard_unset(value, name)
            return getattr(value, name), FIXED
        if kind in SLOTS or kind.__name__ == "_tuplegetter":
            is_class = name == "__class__" and found is object.__dict__["__class__"]
            return (cls, FIXED) if is_class else self._read_slot(value, name, found)
        method = stage.sources.class_attr(kind, "__get__")
        if method is MISSING:
            is_made = stage.sources.source_of(value) is None
            return self._read_class(cls, name) if is_made else self._at(value, name, found)
        if type(method) is FUNCTION and not is_standard(kind) and not is_numpys(module_of(kind)):
            self._guard_unset(value, name)
            stage.lifting.fix(found)
            return self.call_method(method, found, value, cls), OWN
        return self._unknown(value, name, kind.__name__)

    def _read_slot(self, value: Any, name: str, slot: Any) -> Read:
        try:
            item = slot.__get__(value, type(value))
        except AttributeError:
            return self._read_unset(value, name, slot)
        return self._at(value, name, item)

    def _bound_function(self, value: Any, name: str, found: Any) -> Read:
        method = getattr(value, name)
        self._guard_method(value, name, method.__func__)
        return method, FIXED

    def _bound_class_method(self, value: Any, name: str, found: Any) -> Read:
        if type(function_of(found.__func__)) is not FUNCTION:
            return self._unknown(value, name, "classmethod")
        self._guard_method(value, name, found.__func__)
        return getattr(value, name), FIXED

    def _bound_static_method(self, value: Any, name: str, found: Any) -> Read:
        is_made = self.stage.sources.source_of(value) is None
        return (found.__func__, FIXED) if is_made else self._at(value, name, found.__func__)

    def _bound_property(self, value: Any, name: str, found: Any) -> Read:
        inner = OF_MEMBERS.get(found.fget)
        if inner is not None:
            return self.read(value, inner)
        getter = function_of(found.fget)
        if type(getter) is not FUNCTION:
            return self._unknown(value, name, type(found).__name__)
        return self.call_method(getter, value), OWN

    def _bound_cached(self, value: Any, name: str, found: Any) -> Read:
        getter = function_of(found.func)
        if type(getter) is not FUNCTION:
            return self._unknown(value, name, "cached_property")
        self._guard_unset(value, name)
        made = self.call_method(getter, value)
        self._set_attr(found.attrname, made, value)
        return made, OWN

    def _read_method(self, value: types.MethodType, name: str) -> Read:
        """A bound method has few attributes of its own; the others are its function's."""
        if name in METHODS_OWN:
            return self._bound(value, name, find_in_class(types.MethodType, name))
        return self.read(self.stage.lifting.fix(value.__func__), name)

    def _read_super(self, value: Any, name: str) -> Read:
        """super().name: looked up in the classes that follow `__thisclass__` in the MRO of `__self_class__`."""
        stage, owner = self.stage, value.__self__
        start, after = value.__self_class__, value.__thisclass__
        if start is None or name == "__class__":
            return self._bound(value, name, find_in_class(super, name))
        found = stage.sources.class_attr(start, name, after)
        if found is MISSING:
            return getattr(value, name), OWN  # an attribute of the super object itself, or raises
        kind = type(found)
        if kind in (FUNCTION, *METHOD_KINDS):
            return getattr(value, name), FIXED
        if kind is classmethod and type(function_of(found.__func__)) is FUNCTION:
            return getattr(value, name), FIXED
        if kind is staticmethod:
            return found.__func__, FIXED
        if kind is property and owner is not start and type(function_of(found.fget)) is FUNCTION:
            return self.call_method(function_of(found.fget), owner), OWN
        if stage.sources.class_attr(kind, "__get__") is MISSING:
            return found, FIXED
        return self._unknown(value, name, kind.__name__)

    def _unknown(self, value: Any, name: str, what: str) -> Read:
        self.stage.effects.stop(f"reads .{name} of a {type(value).__name__} through its {what}")
        return getattr(value, name), OPAQUE

    # --- sources and guards ---

    def _at(self, value: Any, name: str, item: Any) -> Read:
        """An attribute of the object itself: later calls read it from there."""
        sources = self.stage.sources
        source = sources.source_of(value)
        if source is None and is_a(value, LASTING):
            source = sources.source("const", value)
        if source is None:
            return item, OWN
        return (item, source if source == OPAQUE else sources.source("attr", source, name))

    def _guard_method(self, value: Any, name: str, found: Any) -> None:
        """Guard that an object has no attribute with the name of a method."""
        sources = self.stage.sources
        source = sources.source_of(value)
        if source is not None and source != OPAQUE and attributes_of(value) is not None:
            method = sources.source("attr", source, name)
            sources.check_once(sources.source("attr", method, "__func__"), "is", found)

    def _guard_unset(self, value: Any, name: str) -> None:
        """Guard that no attribute of the object's own hides the attribute of its class."""
        sources = self.stage.sources
        has_own = type(attributes_of(value)) is dict and id(value) not in self.stage.state.lists
        source = sources.source_of(value) if has_own else None
        if source is not None and source != OPAQUE:
            sources.guard_absent(source, name)


BOUND: dict[type, Callable[..., Read]] = {
    types.FunctionType: Reads._bound_function,
    classmethod: Reads._bound_class_method,
    staticmethod: Reads._bound_static_method,
    property: Reads._bound_property,
    types.DynamicClassAttribute: Reads._bound_property,
    type(enum.Enum.__dict__["value"]): Reads._bound_property,
    functools.cached_property: Reads._bound_cached,
}
READERS: dict[Any, Callable[..., Read]] = {
    **dict.fromkeys(PURE_TYPES, Reads._read_value),
    **dict.fromkeys(STAND_INS, Reads._read_stand_in),
    Traced: Reads._read_traced,
    slice: Reads._read_slice,
    FLAGS: Reads._read_flags,
    Flat: Reads._read_flat,
    np.broadcast: Reads._read_broadcast,
    types.FunctionType: Reads._read_function,
    types.ModuleType: Reads._read_module,
    types.MethodType: Reads._read_method,
    super: Reads._read_super,
}
