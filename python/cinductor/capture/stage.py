"""The stage of one call: where every concrete value came from, and what the traced call is told.

A value that Python meets in the call is an argument, a guarded read (with its source), the result
of something pure, or unknown. `known` has the objects that outlive the call, by id, with the source
that reaches them (OPAQUE: none does); an object that is not in it was made in this call. Arrays
reach the user's frame only as Traced values, so no array work happens unseen. An effect is noted
before it happens; what a call that is not understood is given has been made concrete first.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core, float_warnings
from ..dynamic import Symbols, place_of
from ..instance import is_a
from ..numpy import surface
from ..numpy.random import set_state
from ..signals import Abandon, Suspect
from .boundary import Arrays, Materialiser, Stores
from .control.region import Regions
from .control.state import State
from .iterators import Escapes, Items
from .objects import (
    CONTAINER_TYPES,
    DTYPE_TYPES,
    FREE_TYPES,
    IDENTITY_TYPES,
    IN_COLUMNS,
    MISSING,
    NUMBER_TYPES,
    OPAQUE,
    VALUE_TYPES,
    Traced,
    find_in_class,
    has_hooks,
    is_plain_getter,
    is_record,
    is_standard,
    is_tuple,
    is_users,
    key_with_hooks,
    remade,
    why_not_array,
)

# Attributes by which functions and partials are looked into.
PARTS = frozenset({"func", "args", "keywords", "__defaults__", "__kwdefaults__"})


def is_made_anew(fn: types.FunctionType) -> bool:
    """Whether a function is a lambda or one inside of another: each run of its line makes one."""
    return "<" in fn.__qualname__ and not fn.__dict__


class Stage:
    """State of one captured call."""

    clock = staticmethod(time.thread_time)

    def __init__(
        self,
        tracer: _core.Tracer,
        symbols: Symbols | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.tracer = tracer
        self.symbols = symbols
        self.names = names  # of the parameters
        self.runs_on = "cpu"  # the device that the program is made for
        self.device: str | None = None  # whose memory arrays are in; None: the host's
        self.sources: list[tuple[Any, ...]] = []
        self.checks: list[tuple[Any, ...]] = []
        self.draws: dict[int, Any] = {}  # id -> a generator and its state before the call
        self.source_ids: dict[Any, int] = {}
        self.known: dict[int, tuple[Any, int]] = {}
        self.entered: dict[int, tuple[Any, Any]] = {}
        self.globals: dict[int, tuple[dict[str, Any], dict[str, tuple[Any, Any]]]] = {}
        self.checked: set[Any] = set()
        # By id: dicts of modules and classes in which names were looked up, with what was found.
        self.namespaces: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self.objects: list[int] = []  # sources of those that are not known by who they are
        self.sees_objects = False  # whether it may matter that no two of them are one
        self.functions: dict[int, tuple[Any, Any]] = {}
        self.scopes: list[Any] = []
        self.renewed: set[int] = set()  # sources of functions of which another call may have its own
        self.arrays = Arrays(self)
        self.hollow: dict[int, tuple[Any, Any]] = {}  # a broadcast, flags -> what makes the real one
        self.effects = 0
        self.followed = 0  # functions of the user's that were begun
        self.depth = 0
        self.captures = True  # loops and branches
        self.leaves_open = True  # what sizes say in a condition
        self.has_left_open = False  # it has happened
        self.limit = math.inf  # seconds of our own work
        self.most_nodes = sys.maxsize  # of the pending graph
        self.began, self.others = self.clock(), 0.0  # of this thread; seconds of the user's own
        self.why_over = ""  # a limit has been reached
        self.flags = 0  # of floating point, that have been looked at
        self.runs = False  # the function's own code
        self.has_ended = False  # that, with a result
        self.errstates: dict[int, Any] = {}  # made in the call, with their keywords
        self.break_budget: int | None = None  # as many runs were worth while in a call like this one
        self.has_fallen_back = False  # the rest of the call runs in NumPy
        self.stores = Stores(self)
        self.learned = False  # something that the next capture of such a call will use
        self.why_again: str | None = None  # a later call cannot be answered by what was compiled
        self.state = State(self)
        self.regions = Regions(self)
        self.lowering: set[int] = set()  # functions that others are called for just now
        self.escapes = Escapes(self)
        self.hooks: Any = None  # the class of scopes that trace; that of those which no longer do
        self.plain_hooks: Any = None
        self.tell: Callable[[Exception], None] = str  # the user of a mistake

    # --- sources and guards ---

    def source(self, kind: str, *parts: Any) -> int:
        """The number of a source, made when first asked for."""
        if kind == "item":
            key: Any = (kind, parts[0], type(parts[1]), parts[1])
        elif kind in ("attr", "closure", "address"):
            key = (kind, *parts)
        elif kind == "global":
            key = (kind, id(parts[0]), parts[1])
        elif kind == "made":
            key = (kind, len(self.sources))
        else:
            key = (kind, id(parts[0]) if kind != "arg" else parts[0])
        found = self.source_ids.get(key)
        if found is None:
            found = len(self.sources)
            self.sources.append((kind, *parts))
            self.source_ids[key] = found
        return found

    def is_given(self, source: int) -> bool:
        """Whether the source is an argument, or part of one that is made again as easily: what is
        there in the next call may be another object that is the same to the program.
        """
        kind, *parts = self.sources[source] if source >= 0 else ("const",)
        if kind in ("item", "closure") or (kind == "attr" and parts[1] in PARTS):
            return self.is_given(parts[0])
        return kind == "arg"

    def source_of_free(self, fn: types.FunctionType, name: str) -> int:
        """The source of a name of a function around fn."""
        number = fn.__code__.co_freevars.index(name)
        source = self.source_of(fn)
        if source in self.renewed:
            return self.source("closure", source, number, name)
        return self.source("cell", fn.__closure__[number], name)  # type: ignore[index]

    def check(self, *check: Any) -> None:
        """Adds a guard."""
        self.checks.append(check)

    def check_once(self, source: int, kind: str, *rest: Any) -> None:
        """Adds a guard of that kind on that source unless it has one."""
        key = (source, kind)
        if key not in self.checked:
            self.checked.add(key)
            self.checks.append((source, kind, *rest))

    def note_name(self, space: Any, name: str | None, value: Any) -> None:
        """Guards what a name is in the dict of a module or in a class: MISSING, that there is none.
        No name: that a function of the namespace gives a false value.
        """
        self.namespaces.setdefault(id(space), (space, {}))[1][name] = value

    def check_all(self) -> None:
        """Adds the guards of all names, and that objects are as many, where that may be seen."""
        for space, found in self.namespaces.values():
            self.checks.append(("names", space, tuple(itertools.chain(*found.items()))))
        if self.sees_objects and len(self.objects) > 1:
            self.checks.append(("apart", tuple(self.objects)))

    def class_attr(self, cls: type, name: str) -> Any:
        """The attribute of a class as its dictionaries have it, or MISSING, guarded."""
        found = find_in_class(cls, name)
        if is_users(cls):
            self.note_name(cls, name, _core.MISSING if found is MISSING else found)
        return found

    def has_hooks(self, cls: type) -> bool:
        """Whether such an object has methods of its own for Python's protocols, guarded."""
        found = has_hooks(cls)
        if not found and is_users(cls):
            self.note_name(cls, None, has_hooks)
        return found

    def tells_class(self, value: Any) -> bool:
        """Whether no code of the user's says of which class such an object is, guarded."""
        cls = type(value)
        if cls in FREE_TYPES or cls in IDENTITY_TYPES or (is_a(value, type) and is_standard(cls)):
            return True
        if self.class_attr(cls, "__class__") is not object.__dict__["__class__"]:
            return False
        return is_plain_getter(cls, self.class_attr(cls, "__getattribute__"))

    def source_of_int(self, value: Any) -> int | None:
        """The source that an int is read from, itself and nothing computed of it."""
        if type(value) is int:
            return self.source("const", value)
        return next((s for s, (_, new) in self.entered.items() if new is value), None)

    def make(self, f: Any, source: int, *given: Any) -> Any:
        """f(value), or f() where the source is -1: each call of the program makes its own."""
        if not given and source >= 0:
            given = (self.value_of(source),)
        made = f(*given)
        self.known[id(made)] = (made, self.source("made", f, source))
        return made

    def value_of(self, source: int) -> Any:
        """What an int's source gave in this call."""
        kind, first = self.sources[source][:2]
        return first if kind == "const" else self.entered[source][0]

    def entered_by(self, *key: Any) -> tuple[Any, Any] | None:
        """What a source of that key, if there is one, gave: as it was and as the frame has it."""
        return self.entered.get(self.source_ids.get(key, OPAQUE))

    def place(self, source: int) -> str:
        """A source in the user's words."""
        return place_of(self.sources, source, self.names)

    def source_of(self, value: Any) -> int | None:
        """The source that reaches an object, OPAQUE, or None for one made in this call."""
        found = self.known.get(id(value))
        if found is None:
            return None
        if found[1] == IN_COLUMNS:
            self.state.lists[id(value)].materialise()
            return self.source_of(value)
        return found[1]

    # --- values that enter ---

    def lift_guarded(self, value: Any, source: int) -> Any:
        """What the user's frame gets for a value read from a source; guards what replay relies
        on. In a call that goes on in NumPy, the value itself.
        """
        if self.has_fallen_back:
            return value
        found = self.entered.get(source)
        if found is not None and found[0] is value:
            return found[1]
        new = self._lift_guarded(value, source)
        self.entered[source] = (value, new)
        return new

    def _lift_guarded(self, value: Any, source: int) -> Any:
        cls = type(value)
        if cls is np.ndarray:
            return self.arrays.lift_guarded(value, source)
        if cls in NUMBER_TYPES:
            self.check(source, cls.__name__)
            return self.tracer.scalar(value, source)
        if cls is int and self.symbols is not None:
            size = self.symbols.of_int(value, source, self.place(source))
            if size is not None:
                self.check(source, "size", size)
                return self.tracer.scalar(value, source, size)
            if self.is_given(source) and self.symbols.is_uint64(value, self.place(source)):
                self.check(source, "word")
                return self.tracer.scalar(value, source)
        if cls in VALUE_TYPES or cls in DTYPE_TYPES:
            self.check(source, "equals", value)
            return value
        before = self.known.get(id(value))
        if before is not None:
            if before[1] >= 0 and before[1] != source:
                self.check(source, "same", before[1])
            return value
        if (hooked := key_with_hooks(value)) is not None:
            self.stop(f"a {cls.__name__} with keys of class {hooked.__name__}")
            return self.lift(value)
        if cls is types.FunctionType and is_made_anew(value) and self.is_given(source):
            has = (value.__defaults__ is not None) + 2 * (value.__kwdefaults__ is not None)
            self.check(source, "function", value.__code__, value.__globals__, has)
            self.renewed.add(source)
        elif cls in IDENTITY_TYPES or is_a(value, type | enum.Enum):
            self.check(source, "is", value)
        elif is_a(value, np.generic):
            return self._enter_numpy_scalar(value, source)
        elif cls is functools.partial and self.is_given(source):
            self.check(source, "type", cls)
            self.renewed.add(source)
        elif cls is functools.partial or cls is functools._lru_cache_wrapper:
            self.check(source, "is", value)
        elif cls is frozenset:
            self.check(source, "equals", value)
        elif cls is types.MethodType:
            self.check(source, "type", cls)
            self.lift_guarded(value.__func__, self.source("attr", source, "__func__"))
            self.lift_guarded(value.__self__, self.source("attr", source, "__self__"))
        elif is_a(value, np.ndarray):
            self.effect(f"an array of class {cls.__name__} is read")
        else:
            self.check_once(source, "type", cls)
            self.objects.append(source)
        self.known[id(value)] = (value, source)
        return value

    def _enter_numpy_scalar(self, value: np.generic, source: int) -> Any:
        if np.dtype(type(value)).kind in "biufc" and value.dtype.itemsize <= 16:
            try:
                traced = self.tracer.scalar(value, source)
            except TypeError:
                pass
            else:
                self.check(source, "type", type(value))
                return traced
        self.check(source, "equals", value)
        return value

    def lift(self, value: Any) -> Any:
        """What the user's frame gets for a value of unknown origin."""
        cls = type(value)
        if cls is np.ndarray:
            return self.lift_array(value)
        if cls in FREE_TYPES or is_a(value, type):
            return value
        if is_record(cls):
            if any(type(v) is np.ndarray for v in value):
                items = [self.lift(v) for v in value]
                return remade(value, items)
            return value
        if id(value) not in self.known:
            self.known[id(value)] = (value, OPAQUE)
        return value

    def lift_array(self, value: Any) -> Any:
        """A value found in a container made in this call: real arrays become traced again."""
        is_real = type(value) is np.ndarray and not self.has_fallen_back
        return self.arrays.lift_guarded(value, OPAQUE) if is_real else value

    def constant(self, value: np.ndarray) -> Any:
        """A new traced array with the contents of an array computed from constants alone."""
        if (why := why_not_array(value)) is not None:
            self.effect(f"makes {why}")
            self.known[id(value)] = (value, OPAQUE)
            return value
        kept = value.copy(order="K") if self.device is None else _core.device_array(value, self.device)
        kept.flags.writeable = False
        source = self.source("const", kept)
        traced = self.tracer.array(kept, source)
        self.entered[source] = (kept, traced)
        return self.tracer.copy(traced, "K")

    # --- effects ---

    def may_check(self) -> bool:
        """Whether the function itself can still answer the call when a check fails."""
        return self.tracer.may_check()

    def effect(self, reason: str) -> None:
        """Python must run on every call: noted before it happens."""
        self.begin_effects(reason)
        self.tracer.note_effect(reason)
        self.look_at_flags()
        self.effects += 1
        self.tracer.has_effects = True
        self.stores.flush()

    def begin_effects(self, reason: str) -> None:
        """What could still be looked at behind an effect, when the call cannot be begun again."""
        for grown in [*self.state.lists.values()]:
            if grown.is_sized:
                grown.materialise(reason)

    def stop(self, reason: str, *given: Any) -> None:
        """A break: what is pending is run first. given: what others are to get; an iterator among it
        stands where somebody knows, or the call begins again while it can.
        """
        for value in given:
            if type(value) is Items:
                value.check()
        self.begin_effects(reason)
        self.tracer.note_break(reason)
        self.look_at_flags()
        self.effects += 1
        self.tracer.has_effects = True
        self.stores.flush()

    def outside(self, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of what is not captured, whose time is the user's own."""
        began = self.clock()
        try:
            return f(*args, **kwargs)
        finally:
            self.others += self.clock() - began

    @property
    def own_work(self) -> float:
        """Seconds that the capture has taken until now, beside the work that it traces."""
        return self.clock() - self.began - self.others - self.tracer.seconds

    def look_at_flags(self) -> None:
        """What runs have raised floating-point flags until now: NumPy answers the call where it can,
        else it is warned of here.
        """
        new = self.take_flags()
        if not new:
            return
        if self.can_run_again() and self.undo_call():
            raise Suspect(new)
        float_warnings.give(self.tracer.last_program, new)

    def take_flags(self) -> int:
        """The floating-point flags raised since the last look that somebody wants to hear of."""
        new = self.tracer.float_flags & ~self.flags
        if not new or not float_warnings.is_looked_at(new) or self.tracer.in_region:
            return 0
        self.flags |= new
        return new

    def can_run_again(self) -> bool:
        """Whether the function may run once more: nothing outside of the call has been written."""
        is_late = self.has_ended and (self.arrays.writes_outside() or self.draws)
        return not is_late and not self.stores.has_given and self.effects == 0

    def abandon(self, reason: str) -> None:
        """Gives the call up while nothing has happened; otherwise breaks."""
        if self.tracer.in_region:
            self.tracer.note_break(reason)
        if self.effects == 0 and self.tracer.flushes == 0 and not self.arrays.written:
            raise Abandon(reason)
        self.stop(reason)

    def undo_call(self) -> bool:
        """Whether the function itself can run the call from its beginning: everything is as it was
        before it then.
        """
        return self.effects == 0 and self.undo()

    def undo(self) -> bool:
        """Arrays and generators as they were before the call, or False."""
        if not self.tracer.undo():
            return False
        for generator, state in self.draws.values():
            set_state(generator, state)
        return True

    def close(self) -> None:
        """The call is over. What it was made of refers to each other, and to the arguments: all of that
        is let go of here, so that arguments live no longer than Python has them.
        """
        for scope in self.scopes:
            scope.stage = None
        self.regions.end()
        self.tracer.close()
        self.__dict__.clear()

    # --- values that leave ---

    def materialise(self, value: Any) -> Any:
        """The value with everything traced materialised."""
        return Materialiser(self).of(value)

    def concrete_keys(self, value: dict[Any, Any]) -> None:
        """The keys of a dict materialised."""
        Materialiser(self).fill_keys(value)

    def forced(self, value: Any) -> Any:
        """The value materialised; calls in which it is another are not alike, or need Python."""
        if type(value) is Traced and not self.tracer.in_region:
            if value.kind == "array":
                self.tracer.note_break("the values of an array are asked for")
            else:
                hash(value)
        return self.materialise(value)

    def hollow_broadcast(self, args: tuple[Any, ...]) -> np.broadcast:
        """np.broadcast of traced values: its shape is known, its items when they are asked for."""
        hollow = np.broadcast(*(surface.dummy(a) for a in args))
        fill = functools.cache(lambda: np.broadcast(*(self.materialise(a) for a in args)))
        self.hollow[id(hollow)] = (hollow, fill)
        return hollow

    def hollow_flags(self, value: Any) -> Any:
        """The flags of a traced array: those of its own come when others get to see them."""
        hollow = value.flags
        self.hollow[id(hollow)] = (hollow, lambda: self.materialise(value).flags)
        return hollow

    def filled(self, value: np.broadcast) -> np.broadcast:
        """The np.broadcast with its items."""
        found = self.hollow.get(id(value))
        if found is None:
            return value
        self.stop("reads the items of np.broadcast")
        return found[1]()

    # --- containers ---

    def guard_length(self, value: Any, source: int) -> None:
        """Guards type and length of a list, tuple or set, or the keys of a dict."""
        if is_a(value, dict):
            self.check_once(source, "keys", type(value), tuple(value))
        else:
            self.check_once(source, "len", type(value), len(value))

    def items_of(self, value: Any, source: int) -> list[Any]:
        """The items of a list or tuple that a source reaches, entered; of a dict its values."""
        self.guard_length(value, source)
        pairs = list(value.items() if is_a(value, dict) else enumerate(value))
        waiting = self.stores.of(value)
        return [
            waiting[k] if k in waiting else self.lift_guarded(v, self.source("item", source, k))
            for k, v in pairs
        ]

    def lift_items(self, value: Any) -> Any:
        """A container with traced items: a copy of one that outlives the call, else itself."""
        source = self.source_of(value)
        if source is None:
            return value
        if source == OPAQUE:
            if is_a(value, dict):
                return self.lifted_items(value)
            return remade(value, [self.lift(v) for v in value])
        items = self.items_of(value, source)
        if is_a(value, dict):
            return dict(zip(value, items, strict=True))
        return remade(value, items)

    def lifted_items(self, value: dict[Any, Any]) -> dict[Any, Any]:
        """A copy of a dict of unknown origin; no key is hashed without need."""
        made = dict.copy(value)
        for key, item in value.items():
            if (new := self.lift(item)) is not item:
                made[key] = new
        return made

    def lift_nested(self, value: Any) -> Any:
        """Nested tuples, lists and dicts with their arrays traced, for a function that reads
        all.
        """
        cls = type(value)
        if cls is np.ndarray:
            return self.arrays.lift_guarded(value, OPAQUE)
        if cls in CONTAINER_TYPES or is_tuple(cls):
            if id(value) in self.state.lists:
                return self.state.lists[id(value)].array
            inside = self.lift_items(value)
            if is_a(inside, dict):
                return {k: self.lift_nested(v) for k, v in inside.items()}
            items = [self.lift_nested(v) for v in inside]
            if all(a is b for a, b in zip(items, inside, strict=True)):
                return inside
            return remade(inside, items)
        return value
