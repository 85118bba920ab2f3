"""Attribute stores and deletions of a captured function, and context managers. Reads are in `reads`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...base.class_lookup import is_a
from ...base.float_warnings import quietened
from ...base.user_frame import hide_our_frames
from ...numpy.elementwise import set_part
from ...numpy.surface import NotCaptured
from ..call_state import fall_back_for_flags, in_users_stead
from ..objects import FLAGS, Traced, attributes_of, bound_method, is_slot_of
from ..sources import function_of
from .reads import Reads

if TYPE_CHECKING:
    from ..boundary import Lifting


PLAIN_SETTERS = (object.__setattr__, types.SimpleNamespace.__setattr__)
PLAIN_DELETERS = (object.__delattr__, types.SimpleNamespace.__delattr__)
WARNS_OF_SHAPE = np.lib.NumpyVersion(np.__version__) >= "2.5.0"  # setting it gives a warning in each call


class Attributes(Reads):
    """The methods of a scope for attributes."""

    __slots__ = ()

    fall_back: Callable[[str], None]

    def attr_slot(self, value: Any, name: str) -> Slot:
        """The slot value.name"""
        return Slot(self._get_attr, self._set_attr, self._del_attr, name, value)

    def _get_attr(self, name: str, value: Any) -> Any:
        return self.attr(value, name)

    def _set_attr(self, name: str, item: Any, value: Any) -> None:
        stage, cls = self.stage, type(value)
        if cls is Traced:
            return self._set_array_attr(name, item, value)
        if cls is FLAGS:
            return setattr(self.fall_back_for_flags(value), name, item)
        found, setter = (stage.sources.class_attr(cls, key) for key in (name, "__setattr__"))
        if type(found) is property and type(function_of(found.fset)) is types.FunctionType and type(setter) is types.WrapperDescriptorType:
            self.call_method(function_of(found.fset), value, item)
            return None
        if setter in PLAIN_SETTERS and self._is_own(value, name):
            return self._set_plainly(name, item, value)
        if stage.stores.may_wait(value, name):
            return stage.store(value, name, item)
        if not stage.ends_before_loss(value):
            stage.effects.note(f"sets .{name} of a {cls.__name__}")
        if setter is not object.__setattr__ or stage.sources.defines(type(found), "__set__"):
            stage.tracer.flush()
            stage.materialise(value)
        return setattr(value, name, stage.materialise(item))

    def _is_elsewhere(self, value: Any) -> bool:
        """True if code that is not captured may have the object, or its attributes."""
        sources = self.stage.sources
        if sources.source_of(value) is not None or is_a(value, type | types.ModuleType):
            return True
        return type(value) is types.FunctionType and sources.source_of(value.__dict__) is not None

    def _is_own(self, value: Any, name: str) -> bool:
        """True if object's method would set the attribute of an object made in the call, and call nothing."""
        sources, cls = self.stage.sources, type(value)
        if self._is_elsewhere(value):
            return False
        found = sources.class_attr(cls, name)
        return is_slot_of(cls, found) or not sources.defines(type(found), "__set__")

    def _set_plainly(self, name: str, item: Any, value: Any) -> None:
        """Set an attribute of an object made in the call as object's method does."""
        stage, cls = self.stage, type(value)
        if self._is_own(value, name):
            self._touch_attributes(value, is_slot_of(cls, stage.sources.class_attr(cls, name)))
        else:
            stage.effects.note(f"sets .{name} of a {cls.__name__}")
            stage.tracer.flush()
            stage.materialise(value)
            item = stage.materialise(item)
        set_by = cls.__setattr__ if cls.__setattr__ in PLAIN_SETTERS else object.__setattr__  # type: ignore[comparison-overlap]
        set_by(value, name, item)  # type: ignore[call-arg]

    def fall_back_for_flags(self, value: Any) -> Any:
        """Let NumPy run the rest before flags, or an array that has them, are set."""
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
        if value.kind == "array" and name == "shape" and not WARNS_OF_SHAPE and not stage.arrays.is_callers(value):
            stage.state.before_change(value)
            try:
                value.shape = item
            except (TypeError, ValueError, AttributeError):
                pass  # NumPy raises its own exception
            else:
                return
        if value.kind == "array" and name in ("real", "imag", "flat"):
            item = stage.lift_nested(item)
            if not stage.effects.before_write(value):
                try:
                    return set_part(stage.tracer, value, name, item)
                except (NotCaptured, TypeError, ValueError, _core.Unsupported):
                    pass
            stage.effects.stop(f"assigns .{name} of an array")
        else:
            stage.effects.abandon(f"assigns .{name} of an array")
            self.fall_back(f"assigns .{name} of an array")  # no traced value stands for that object any more
        setattr(stage.materialise(value), name, stage.materialise(item))

    def _del_attr(self, name: str, value: Any) -> None:
        found, deleter = (self.stage.sources.class_attr(type(value), key) for key in (name, "__delattr__"))
        if type(found) is property and type(function_of(found.fdel)) is types.FunctionType and type(deleter) is types.WrapperDescriptorType:
            self.call_method(function_of(found.fdel), value)
            return
        is_slot = is_slot_of(type(value), found)
        is_plain = is_slot or not self.stage.sources.defines(type(found), "__delete__")
        is_plain &= deleter in PLAIN_DELETERS
        if self.stage.sources.source_of(value) is not None or type(value) is Traced or not is_plain:
            if not self.stage.ends_before_loss(value):
                self.stage.effects.note(f"deletes .{name} of a {type(value).__name__}")
        else:
            self._touch_attributes(value, is_slot)
        delattr(value, name)


# --- slots, and context managers ---


@in_users_stead
class Slot:
    """A place that can be assigned: `slot.value = v`, `del slot.value`, `slot.load().augment(op, v)`."""

    __slots__ = ("get", "put", "remove", "key", "owner", "current")

    def __init__(self, get: Any, put: Any, remove: Any, key: Any, *owner: Any) -> None:
        self.get, self.put, self.remove = get, put, remove
        self.key, self.owner = key, owner

    @property
    def value(self) -> Any:
        return self.get(self.key, *self.owner)

    @value.setter
    def value(self, item: Any) -> None:
        stage = self.get.__self__.stage
        if stage is not None and stage.tracer.has_fallen_back:  # the value may have waited on Python's stack
            item = stage.effects.exchanged(item)
        self.put(self.key, item, *self.owner)

    @value.deleter
    def value(self) -> None:
        self.remove(self.key, *self.owner)

    def load(self) -> Slot:
        """Read the current value."""
        self.current = self.get(self.key, *self.owner)
        return self

    @property
    def waiting(self) -> tuple[Any, ...]:
        """The values that Python has on its stack between `load` and `augment`."""
        return self.current, self.key, *self.owner

    def augment(self, name: str, other: Any) -> None:
        """The rest of `place op= other`."""
        scope = self.get.__self__
        if scope.stage is not None and scope.stage.tracer.has_fallen_back:
            self.current = scope.stage.effects.exchanged(self.current)
        new = scope.augment(name, self.current, other)
        owner = self.owner[0] if self.owner else None
        is_array = new is self.current and type(new) is Traced and new.kind == "array"
        if is_array and type(owner) is Traced and new.shares_storage(owner):
            return  # a view of the owner was written; a copy, as x[mask] gives, must be stored
        self.put(self.key, new, *self.owner)


@in_users_stead
class Managed:
    """A context manager; the pending graph is run before and after its methods, which Python looks up in this order."""

    def __init__(self, lifting: Lifting, manager: Any) -> None:
        self.lifting = lifting
        self.enter, self.exit = (bound_method(manager, name) for name in ("__enter__", "__exit__"))

    def __enter__(self) -> Any:
        return self.lifting.lift(self.enter())

    def __exit__(self, *error: Any) -> Any:
        self.lifting.tracer.flush()
        self.lifting.tracer.concretize_shown()
        try:
            self.lifting.effects.look_at_flags()  # before the manager may set what becomes of them
        except (RuntimeWarning, FloatingPointError) as raised:
            if not self.leave(raised):
                raise
            return True
        return self.exit(*error) if error[1] is None else self.leave(error[1])

    def leave(self, error: BaseException) -> Any:
        """The manager is told of an exception."""
        hide_our_frames(error)
        return self.exit(type(error), error, error.__traceback__)

@in_users_stead
class TracedErrstate:
    """An errstate scope: operations inside are recorded with the floating-point flags that it ignores."""

    def __init__(self, tracer: _core.Tracer, errstate: Any, asked: dict[str, Any]) -> None:
        self.tracer, self.errstate, self.asked, self.around = tracer, errstate, asked, 0

    def __enter__(self) -> Any:
        tracer = self.tracer
        self.around, tracer.quiet = tracer.quiet, quietened(tracer.quiet, self.asked)
        return self.errstate.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self.tracer.quiet = self.around
        return self.errstate.__exit__(*error)
