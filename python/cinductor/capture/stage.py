"""The stage of one call: what its parts are, and how values enter.

Arrays reach the user's frame only as Traced values, so no array work happens unseen. What comes from
outside is lifted: guarded, where a source says where it came from (`sources`). What a call that is not
understood is given has been made real first (`boundary`), and what that call may do is an effect
(`effects`).
"""

from __future__ import annotations

import enum
import functools
import math
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..dynamic import Symbols
from ..instance import is_a
from ..numpy import surface
from .boundary import Arrays, Materialiser, Stores
from .control.region import Regions
from .control.state import State
from .effects import Effects
from .iterators import Escapes
from .objects import (
    CONTAINER_TYPES,
    DTYPE_TYPES,
    FREE_TYPES,
    IDENTITY_TYPES,
    NUMBER_TYPES,
    OPAQUE,
    VALUE_TYPES,
    Traced,
    is_record,
    is_tuple,
    key_with_hooks,
    remade,
    why_not_array,
)
from .sources import Sources


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
        self.sources = Sources(names)
        self.runs_on = "cpu"  # the device that the program is made for
        self.device: str | None = None  # whose memory arrays are in; None: the host's
        self.globals: dict[int, tuple[dict[str, Any], dict[str, tuple[Any, Any]]]] = {}
        self.functions: dict[int, tuple[Any, Any]] = {}
        self.scopes: list[Any] = []
        self.arrays = Arrays(self)
        self.hollow: dict[int, tuple[Any, Any]] = {}  # a broadcast, flags -> what makes the real one
        self.followed = 0  # functions of the user's that were begun
        self.depth = 0
        self.captures = True  # loops and branches
        self.leaves_open = True  # what sizes say in a condition
        self.has_left_open = False  # it has happened
        self.limit = math.inf  # seconds of our own work
        self.most_nodes = sys.maxsize  # of the pending graph
        self.began, self.others = self.clock(), 0.0  # of this thread; seconds of the user's own
        self.why_over = ""  # a limit has been reached
        self.runs = False  # the function's own code
        self.errstates: dict[int, Any] = {}  # made in the call, with their keywords
        self.break_budget: int | None = None  # as many runs were worth while in a call like this one
        self.stores = Stores(self)
        self.learned = False  # something that the next capture of such a call will use
        self.why_again: str | None = None  # a later call cannot be answered by what was compiled
        self.state = State(tracer, self.sources)
        self.effects = Effects(tracer, self.state, self.arrays, self.stores)
        self.regions = Regions(self)
        self.lowering: set[int] = set()  # functions that others are called for just now
        self.escapes = Escapes(self)
        self.hooks: Any = None  # the class of scopes that trace; that of those which no longer do
        self.plain_hooks: Any = None
        self.tell: Callable[[Exception], None] = str  # the user of a mistake

    # --- values that enter ---

    def lift_guarded(self, value: Any, source: int) -> Any:
        """What the user's frame gets for a value read from a source; guards what replay relies
        on. In a call that goes on in NumPy, the value itself.
        """
        if self.tracer.has_fallen_back:
            return value
        found = self.sources.entered.get(source)
        if found is not None and found[0] is value:
            return found[1]
        new = self._lift_guarded(value, source)
        self.sources.entered[source] = (value, new)
        return new

    def _lift_guarded(self, value: Any, source: int) -> Any:
        cls, sources = type(value), self.sources
        if cls is np.ndarray:
            return self.arrays.lift_guarded(value, source)
        if cls in NUMBER_TYPES:
            sources.check(source, cls.__name__)
            return self.tracer.scalar(value, source)
        if cls is int and self.symbols is not None:
            size = self.symbols.of_int(value, source, sources.place(source))
            if size is not None:
                sources.check(source, "size", size)
                return self.tracer.scalar(value, source, size)
            if sources.is_given(source) and self.symbols.is_uint64(value, sources.place(source)):
                sources.check(source, "word")
                return self.tracer.scalar(value, source)
        if cls in VALUE_TYPES or cls in DTYPE_TYPES:
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
        if cls is types.FunctionType and is_made_anew(value) and sources.is_given(source):
            has = (value.__defaults__ is not None) + 2 * (value.__kwdefaults__ is not None)
            sources.check(source, "function", value.__code__, value.__globals__, has)
            sources.renewed.add(source)
        elif cls in IDENTITY_TYPES or is_a(value, type | enum.Enum):
            sources.check(source, "is", value)
        elif is_a(value, np.generic):
            return self._lift_numpy_scalar(value, source)
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
        sources.known[id(value)] = (value, source)
        return value

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
        self.sources.note_opaque(value)
        return value

    def lift_array(self, value: Any) -> Any:
        """A value found in a container made in this call: real arrays become traced again."""
        is_real = type(value) is np.ndarray and not self.tracer.has_fallen_back
        return self.arrays.lift_guarded(value, OPAQUE) if is_real else value

    def constant(self, value: np.ndarray) -> Any:
        """A new traced array with the contents of an array computed from constants alone."""
        if (why := why_not_array(value)) is not None:
            self.effects.note(f"makes {why}")
            self.sources.known[id(value)] = (value, OPAQUE)
            return value
        kept = value.copy(order="K") if self.device is None else _core.device_array(value, self.device)
        kept.flags.writeable = False
        source = self.sources.source("const", kept)
        traced = self.tracer.array(kept, source)
        self.sources.entered[source] = (kept, traced)
        return self.tracer.copy(traced, "K")

    # --- its time, and its end ---

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

    def materialise_keys(self, value: dict[Any, Any]) -> None:
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
        self.effects.stop("reads the items of np.broadcast")
        return found[1]()

    # --- containers ---

    def items_of(self, value: Any, source: int) -> list[Any]:
        """The items of a list or tuple that a source reaches, entered; of a dict its values."""
        self.sources.guard_length(value, source)
        pairs = list(value.items() if is_a(value, dict) else enumerate(value))
        waiting = self.stores.of(value)
        return [
            waiting[k] if k in waiting else self.lift_guarded(v, self.sources.source("item", source, k))
            for k, v in pairs
        ]

    def lift_items(self, value: Any) -> Any:
        """A container with traced items: a copy of one that outlives the call, else itself."""
        source = self.sources.source_of(value)
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
