"""Attributes read, set and deleted by a captured function: what a later call would find there again.

A read is guarded by the path it was reached by, or by the class where the class decides; what code
of the user's computes (a property, a cached one) is followed; what nobody can see through is a break.
"""

from __future__ import annotations

import collections
import enum
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...float_warnings import quietened
from ...instance import is_a
from ...numpy.elementwise import set_part
from ...numpy.random import Draw, methods_that_draw
from ...numpy.surface import NotCaptured
from ...signals import Abandon
from ..iterators import STAND_INS, Flat
from ..objects import (
    FLAGS,
    FREE_TYPES,
    MISSING,
    OPAQUE,
    PURE_TYPES,
    SLOTS,
    Traced,
    attributes_of,
    find_in_class,
    is_numpys,
    is_slot_of,
    reads_plainly,
)
from ..stage import fall_back_for_flags, in_users_stead

if TYPE_CHECKING:
    from ..boundary import Lifting
    from ..stage import Stage


PURE_MODULES = frozenset({"math", "cmath", "operator", "functools", "itertools", "builtins"})
METHOD_KINDS = frozenset(
    {types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType}
)
CALLABLE_KINDS = frozenset({types.MethodType, types.MethodWrapperType})
OUR_NAMES = frozenset(name for name in dir(Traced) if not hasattr(np.ndarray, name))
# Classes whose attributes are functions of the value.
PLAIN_SETTERS = (object.__setattr__, types.SimpleNamespace.__setattr__)
PLAIN_DELETERS = (object.__delattr__, types.SimpleNamespace.__delattr__)
WARNS_OF_SHAPE = np.lib.NumpyVersion(np.__version__) >= "2.5.0"  # that it is set, in every call
VALUE_CLASSES = (enum.Enum, np.generic, np.dtype)


class Attributes:
    """The methods of a scope for attributes."""

    __slots__ = ()

    stage: Stage
    fall_back: Callable[[str], None]

    def attr(self, value: Any, name: str) -> Any:
        """value.name"""
        cls = type(value)
        if cls is Traced or cls in PURE_TYPES:
            if cls is Traced:
                self.stage.regions.note_class((value,))
                if name == "base" and value.kind == "array":
                    if not self.stage.tracer.in_region and self.stage.effects.undo_call():
                        raise Abandon("reads .base of an array")  # ours may be views of others
                    self.stage.effects.abandon("reads .base of an array")
                    return self.stage.lift(self.stage.materialise(value).base)
                if name == "flags" and self.stage.regions.is_carried_by_value(value):
                    self.stage.effects.abandon("reads flags of an array that may be one of several")
                    return self.stage.materialise(value).flags
                if name == "flags":
                    return self.stage.effects.hollow_flags(value)
                if name == "flat" and value.kind == "array":
                    return Flat(value)
                if name in OUR_NAMES and value.kind == "array":
                    getattr(np.empty(0), name)  # raises
                if value.kind == "python":  # a traced one has an array's attributes besides
                    getattr(value.__class__(), name)
            if cls is np.broadcast and name in ("iters", "index", "reset", "__next__"):
                value = self.stage.effects.filled(value)
            return getattr(value, name)
        if cls is collections.deque and self.stage.sources.source_of(value) is None:
            return getattr(value, name)
        if cls is types.ModuleType:
            return self._module_attr(value, name)
        if is_a(value, type):
            return self._class_attr(value, name)
        if cls is Flat:
            return self.stage.lift(getattr(value.real(self.stage.effects), name))
        if cls in STAND_INS:
            return getattr(self.stage.materialise(value), name)
        return self._object_attr(value, name)

    def _module_attr(self, module: types.ModuleType, name: str) -> Any:
        where = module.__dict__
        own = where.get("__name__")
        value = where.get(name, MISSING)
        if is_numpys(own) or own in PURE_MODULES:
            if value is not MISSING and not self.is_library:
                self.stage.sources.note_name(where, name, value)
            return getattr(module, name)
        if value is MISSING:
            return self.stage.lift(getattr(module, name))
        cache = self.stage.globals.get(id(where))
        if cache is None:
            cache = self.stage.globals[id(where)] = (where, {})
        found = cache[1].get(name)
        if found is not None and found[0] is value:
            return found[1]
        return self._global(where, cache[1], name, value)

    def _class_attr(self, cls: type, name: str) -> Any:
        stage = self.stage
        value = getattr(cls, name)
        if is_numpys(cls.__module__) or cls.__module__ == "builtins" or name.startswith("__"):
            return stage.lift_array(value)
        source = stage.sources.source_of(cls)
        if source is None or source == OPAQUE:
            source = stage.sources.source("const", cls)
        source = stage.sources.source("attr", source, name)
        if is_a(value, types.MethodType):  # a class method: made again by each read
            stage.sources.check_once(stage.sources.source("attr", source, "__func__"), "is", value.__func__)
            return value
        return stage.lift_guarded(value, source)

    def _object_attr(self, value: Any, name: str) -> Any:
        stage, cls = self.stage, type(value)
        if not reads_plainly(cls):
            return self._hooked_attr(value, name)
        if deferred := stage.stores.of(value):
            if name in deferred:
                return deferred[name]
            if name == "__dict__":
                stage.effects.note(f"reads .__dict__ of a {cls.__name__}")
        found = stage.sources.class_attr(cls, name)
        kind = type(found)
        own = attributes_of(value)
        is_data = found is not MISSING and hasattr(kind, "__set__")
        if type(own) is dict and name in own and not is_data:
            return self._read(value, name, own[name])
        if found is MISSING:
            if stage.sources.class_attr(cls, "__getattr__") is not MISSING:
                return self._unknown_attr(value, name, "__getattr__")
            return getattr(value, name)  # raises
        if kind is property and type(found.fget) is types.FunctionType:
            self._guard_class(cls, name, found)
            return self.call(found.fget, value)
        if kind is functools.cached_property and type(found.func) is types.FunctionType:
            self._guard_class(cls, name, found)
            made = self.call(found.func, value)
            self._set_attr(found.attrname, made, value)
            return made
        if kind is types.FunctionType:
            self._guard_method(value, cls, name, found)
            return getattr(value, name)
        if name == "__dict__":
            return self._read(value, name, own)
        if kind in SLOTS and is_a(value, BaseException):
            return self._read(value, name, getattr(value, name))
        if name.startswith("__"):
            return stage.lift_array(getattr(value, name))
        if kind is classmethod:
            self._guard_method(value, cls, name, found.__func__)
            return getattr(value, name)
        if kind is staticmethod:
            return self._read(value, name, getattr(value, name))
        if kind is types.MemberDescriptorType or kind.__name__ == "_tuplegetter":
            return self._read(value, name, getattr(value, name))
        if not hasattr(kind, "__get__"):
            if stage.sources.source_of(value) is None:
                return self._class_attr(cls, name)
            return self._read(value, name, found)
        if is_a(value, VALUE_CLASSES) or kind in METHOD_KINDS:
            return getattr(value, name)
        if name in methods_that_draw(cls):
            return Draw(self, value, name)
        return self._unknown_attr(value, name, kind.__name__)

    def _hooked_attr(self, value: Any, name: str) -> Any:
        cls = type(value)
        if name in methods_that_draw(cls):
            return Draw(self, value, name)
        if cls is super or cls in FREE_TYPES or cls in CALLABLE_KINDS or is_numpys(cls.__module__):
            return self.stage.lift_array(getattr(value, name))
        return self._unknown_attr(value, name, "__getattribute__")

    def _unknown_attr(self, value: Any, name: str, what: str) -> Any:
        self.stage.effects.stop(f"reads .{name} of a {type(value).__name__} through its {what}")
        return self.stage.lift(getattr(value, name))

    def _guard_method(self, value: Any, cls: type, name: str, found: Any) -> None:
        """A method of a class of the user's may be replaced between two calls."""
        stage = self.stage
        source = stage.sources.source_of(value)
        if source == OPAQUE or is_numpys(cls.__module__):
            return
        if source is not None:  # the object itself may have got an attribute of that name, too
            method = stage.sources.source("attr", source, name)
            stage.sources.check_once(stage.sources.source("attr", method, "__func__"), "is", found)
        elif type(bound := getattr(cls, name)) is types.MethodType:
            where = stage.sources.source("attr", stage.sources.source("const", cls), name)
            stage.sources.check_once(stage.sources.source("attr", where, "__func__"), "is", bound.__func__)
        else:
            self._guard_class(cls, name, found)

    def _guard_class(self, cls: type, name: str, found: Any) -> None:
        """Guards an attribute of a class, reached through the class."""
        stage = self.stage
        if not is_numpys(cls.__module__):
            where = stage.sources.source("attr", stage.sources.source("const", cls), name)
            stage.sources.check_once(where, "is", found)

    def _read(self, value: Any, name: str, item: Any) -> Any:
        stage = self.stage
        source = stage.sources.source_of(value)
        if source is None:
            return stage.lift_array(item)
        if source == OPAQUE:
            return stage.lift(item)
        return stage.lift_guarded(item, stage.sources.source("attr", source, name))

    def attr_slot(self, value: Any, name: str) -> Slot:
        """The place value.name"""
        return Slot(self._get_attr, self._set_attr, self._del_attr, name, value)

    def _get_attr(self, name: str, value: Any) -> Any:
        return self.attr(value, name)

    def _set_attr(self, name: str, item: Any, value: Any) -> None:
        stage, cls = self.stage, type(value)
        if cls is Traced:
            return self._set_array_attr(name, item, value)
        if cls is FLAGS:
            return setattr(self.fall_back_for_flags(value), name, item)
        found = find_in_class(cls, name)
        if type(found) is property and type(found.fset) is types.FunctionType:
            self._guard_class(cls, name, found)
            self.call(found.fset, value, item)
            return None
        if stage.sources.source_of(value) is None and not is_a(value, type | types.ModuleType):
            is_slot = is_slot_of(cls, found)
            if cls.__setattr__ in PLAIN_SETTERS and (is_slot or not hasattr(type(found), "__set__")):
                self._touch_attributes(value, is_slot)
                return setattr(value, name, item)
        if stage.stores.may_wait(value, name):
            return stage.lifting.store(value, name, item)
        stage.effects.note(f"sets .{name} of a {cls.__name__}")
        if cls.__setattr__ is not object.__setattr__ or hasattr(type(found), "__set__"):
            stage.tracer.flush()
            stage.materialise(value)
        return setattr(value, name, stage.materialise(item))

    def fall_back_for_flags(self, value: Any) -> Any:
        """Flags, or an array, that are about to be set."""
        return fall_back_for_flags(self.stage, value)

    def _touch_attributes(self, value: Any, is_slot: bool) -> None:
        """Called before an attribute of an object made in the call is set or deleted."""
        state = self.stage.state
        if is_slot:
            state.before_change(value)
        elif state.snapshots:
            own = attributes_of(value)
            if type(own) is not dict:
                return self.stage.effects.stop(f"sets an attribute of a {type(value).__name__}")
            state.before_change(own)

    def _set_array_attr(self, name: str, item: Any, value: Traced) -> None:
        stage = self.stage
        if name == "shape" and not WARNS_OF_SHAPE and not stage.arrays.is_callers(value):
            stage.state.before_change(value)
            try:
                value.shape = item
            except (TypeError, ValueError, AttributeError):
                pass  # NumPy shall say it in its own words
            else:
                return
        if name in ("real", "imag", "flat"):
            item = stage.lift_nested(item)
            if not stage.effects.before_write(value):
                try:
                    return set_part(stage.tracer, value, name, item)
                except (NotCaptured, TypeError, ValueError, _core.Unsupported):
                    pass
            stage.effects.stop(f"assigns .{name} of an array")
        else:
            stage.effects.abandon(f"assigns .{name} of an array")
            self.fall_back(f"assigns .{name} of an array")  # nothing traced is that object any more
        setattr(stage.materialise(value), name, stage.materialise(item))

    def _del_attr(self, name: str, value: Any) -> None:
        found = find_in_class(type(value), name)
        if type(found) is property and type(found.fdel) is types.FunctionType:
            self._guard_class(type(value), name, found)
            self.call(found.fdel, value)
            return
        is_slot = is_slot_of(type(value), found)
        is_plain = is_slot or not hasattr(type(found), "__delete__")
        is_plain &= type(value).__delattr__ in PLAIN_DELETERS
        if self.stage.sources.source_of(value) is not None or type(value) is Traced or not is_plain:
            self.stage.effects.note(f"deletes .{name} of a {type(value).__name__}")
        else:
            self._touch_attributes(value, is_slot)
        delattr(value, name)


# --- objects that are stored to, and context managers ---


@in_users_stead
class Slot:
    """A place that is stored to: `slot.value = v`, `del slot.value`, `slot.load().augment(op,
    v)`.
    """

    __slots__ = ("get", "put", "remove", "key", "owner", "current")

    def __init__(self, get: Any, put: Any, remove: Any, key: Any, *owner: Any) -> None:
        self.get, self.put, self.remove = get, put, remove
        self.key, self.owner = key, owner

    @property
    def value(self) -> Any:
        return self.get(self.key, *self.owner)

    @value.setter
    def value(self, item: Any) -> None:
        self.put(self.key, item, *self.owner)

    @value.deleter
    def value(self) -> None:
        self.remove(self.key, *self.owner)

    def load(self) -> Slot:
        """Reads the place now."""
        self.current = self.get(self.key, *self.owner)
        return self

    def augment(self, name: str, other: Any) -> None:
        """The rest of `place op= other`."""
        new = self.get.__self__.augment(name, self.current, other)
        owner = self.owner[0] if self.owner else None
        is_array = new is self.current and type(new) is Traced and new.kind == "array"
        if is_array and type(owner) is Traced and new.shares_storage(owner):
            return  # a view of the owner was written; what x[mask] gave is a copy to be stored
        self.put(self.key, new, *self.owner)


@in_users_stead
class Managed:
    """A context manager around whose methods pending work is run."""

    def __init__(self, lifting: Lifting, manager: Any) -> None:
        self.lifting, self.manager = lifting, manager

    def __enter__(self) -> Any:
        return self.lifting.lift(type(self.manager).__enter__(self.manager))

    def __exit__(self, *error: Any) -> Any:
        self.lifting.tracer.flush()
        self.lifting.tracer.force_shown()
        return type(self.manager).__exit__(self.manager, *error)


@in_users_stead
class Quiet:
    """An errstate around operations: they are noted with what nobody wants to hear of."""

    def __init__(self, tracer: _core.Tracer, errstate: Any, asked: dict[str, Any]) -> None:
        self.tracer, self.errstate, self.asked, self.around = tracer, errstate, asked, 0

    def __enter__(self) -> Any:
        tracer = self.tracer
        self.around, tracer.quiet = tracer.quiet, quietened(tracer.quiet, self.asked)
        return self.errstate.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self.tracer.quiet = self.around
        return self.errstate.__exit__(*error)
