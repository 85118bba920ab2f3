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
import re
import types
from typing import Any

import numpy as np

from .. import _core
from ..dynamic import Symbols, place_of
from ..numpy import surface
from .region.region import GROWING, Regions
from .value.items import Flat
from .value.objects import (
    CONTAINER_TYPES,
    DTYPE_TYPES,
    FREE_TYPES,
    IDENTITY_TYPES,
    NUMBER_TYPES,
    VALUE_TYPES,
    Traced,
    find_in_class,
    has_operators,
    reads_plainly,
    why_not_array,
)

OPAQUE = -1
# Attributes by which functions and partials are looked into.
PARTS = frozenset({"func", "args", "keywords", "__defaults__", "__kwdefaults__"})
TRACED = f"{Traced.__module__}.{Traced.__qualname__}"
byte_bounds = np.lib.array_utils.byte_bounds


class Abandon(BaseException):
    """The call cannot be captured and nothing has happened yet: the function itself shall run."""


class Raised(BaseException):
    """An exception left the function, or was caught by it that NumPy would have worded in another
    way, before anything happened that cannot be undone.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


OURS = re.compile(r"\bcinductor\.capture\.[\w.]+\(\)")  # what stands for the function in a call


def names_traced(error: BaseException | None) -> bool:
    """Whether a message names what is the library's own, which Python and NumPy name otherwise."""
    if type(error) not in (TypeError, AttributeError):
        return False
    text = str(error)
    return TRACED in text or OURS.search(text) is not None


def reword(error: BaseException) -> None:
    """Where the function cannot be run again for NumPy's own message: nearly all are arrays."""
    error.args = tuple(
        OURS.sub("function", a.replace(TRACED, "numpy.ndarray")) if isinstance(a, str) else a
        for a in error.args
    )


class Tired(Abandon):
    """There is too little work in the call: the function itself shall run, now and for its like."""


def is_made_anew(fn: types.FunctionType) -> bool:
    """Whether a function is a lambda or one inside of another: each run of its line makes one."""
    return "<" in fn.__qualname__ and not fn.__dict__


class Stage:
    """State of one captured call."""

    def __init__(
        self,
        tracer: _core.Tracer,
        symbols: Symbols | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.tracer = tracer
        self.symbols = symbols
        self.names = names  # of the parameters
        self.sources: list[tuple[Any, ...]] = []
        self.checks: list[tuple[Any, ...]] = []
        self.draws: dict[int, Any] = {}  # id -> a generator and its state before the call
        self.source_ids: dict[Any, int] = {}
        self.known: dict[int, tuple[Any, int]] = {}
        self.entered: dict[int, tuple[Any, Any]] = {}
        self.globals: dict[int, tuple[dict[str, Any], dict[str, tuple[Any, Any]]]] = {}
        self.checked: set[Any] = set()
        self.functions: dict[int, tuple[Any, Any]] = {}
        self.scopes: list[Any] = []
        self.anew: set[int] = set()  # sources of functions of which another call may have its own
        self.array_ids: dict[int, tuple[np.ndarray, int, Traced]] = {}
        self.bounds: list[tuple[int, int, np.ndarray]] | None = None
        self.handed_out: list[np.ndarray] = []
        self.written: list[Traced] = []
        self.hollow: dict[int, tuple[np.broadcast, Any]] = {}  # -> what makes it with its items
        self.overlap = False
        self.effects = 0
        self.depth = 0
        self.captures = True  # loops and branches
        self.leaves_open = True  # what sizes say in a condition
        self.has_left_open = False  # it has happened
        self.runs = False  # the function's own code
        self.settles: int | None = None  # as many runs were worth while in a call like this one
        self.is_settled = False  # the rest of the call runs in NumPy
        self.stores: dict[int, tuple[Any, dict[str, Any]]] = {}  # attributes to be set at the end
        self.learned = False  # something that the next capture of such a call will use
        self.why_again: str | None = None  # a later call cannot be answered by what was compiled
        self.regions = Regions(self)

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
        """Whether the source is an argument, or part of one that is made anew as easily: what is
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
        if source in self.anew:
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

    def source_of_int(self, value: Any) -> int | None:
        """The source that an int is read from, itself and nothing computed of it."""
        if type(value) is int:
            return self.source("const", value)
        return next((s for s, (_, new) in self.entered.items() if new is value), None)

    def make(self, f: Any, source: int) -> Any:
        """f(value), or f() where the source is -1: each call of the program makes its own."""
        given = () if source < 0 else (self.value_of(source),)
        made = f(*given)
        self.known[id(made)] = (made, self.source("made", f, source))
        return made

    def value_of(self, source: int) -> Any:
        """What an int's source gave in this call."""
        kind, first = self.sources[source][:2]
        return first if kind == "const" else self.entered[source][0]

    def place(self, source: int) -> str:
        """A source in the user's words."""
        return place_of(self.sources, source, self.names)

    def source_of(self, value: Any) -> int | None:
        """The source that reaches an object, OPAQUE, or None for one made in this call."""
        found = self.known.get(id(value))
        if found is None:
            return None
        if found[1] == GROWING:
            self.regions.growing[id(value)].look()
            return self.source_of(value)
        return found[1]

    # --- values that enter ---

    def enter(self, value: Any, source: int) -> Any:
        """What the user's frame gets for a value read from a source; guards what replay relies
        on.
        """
        found = self.entered.get(source)
        if found is not None and found[0] is value:
            return found[1]
        new = self._enter(value, source)
        self.entered[source] = (value, new)
        return new

    def _enter(self, value: Any, source: int) -> Any:
        cls = type(value)
        if cls is np.ndarray:
            return self.enter_array(value, source)
        if cls in NUMBER_TYPES:
            self.check(source, cls.__name__)
            return self.tracer.scalar(value, source)
        if cls is int and self.symbols is not None:
            text = self.symbols.of_int(value, source, self.place(source))
            if text is not None:
                self.check(source, "size", text)
                return self.tracer.scalar(value, source, text)
        if cls in VALUE_TYPES or cls in DTYPE_TYPES:
            self.check(source, "equals", value)
            return value
        before = self.known.get(id(value))
        if before is not None:
            if before[1] >= 0 and before[1] != source:
                self.check(source, "same", before[1])
            return value
        if cls is types.FunctionType and is_made_anew(value) and self.is_given(source):
            has = (value.__defaults__ is not None) + 2 * (value.__kwdefaults__ is not None)
            self.check(source, "function", value.__code__, value.__globals__, has)
            self.anew.add(source)
        elif cls in IDENTITY_TYPES or isinstance(value, type | enum.Enum):
            self.check(source, "is", value)
        elif isinstance(value, np.generic):
            return self._enter_numpy_scalar(value, source)
        elif cls is functools.partial and self.is_given(source):
            self.check(source, "type", cls)
            self.anew.add(source)
        elif cls is functools.partial or cls is functools._lru_cache_wrapper:
            self.check(source, "is", value)
        elif cls is frozenset:
            self.check(source, "equals", value)
        elif cls is types.MethodType:
            self.check(source, "type", cls)
            self.enter(value.__func__, self.source("attr", source, "__func__"))
            self.enter(value.__self__, self.source("attr", source, "__self__"))
        elif isinstance(value, np.ndarray):
            self.effect(f"an array of class {cls.__name__} is read")
        else:
            self.check_once(source, "type", cls)
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

    def enter_array(self, value: np.ndarray, source: int) -> Any:
        """The Traced of an array that a source reaches."""
        found = self.array_ids.get(id(value))
        if found is not None:
            if source >= 0 and found[1] >= 0 and source != found[1]:
                self.check(source, "same", found[1])
            return found[2]
        if (why := why_not_array(value)) is not None:
            self.known[id(value)] = (value, source)
            self.effect(f"{why} is read")
            return value
        sizes = None
        if source >= 0 and self.symbols is not None:
            sizes = self.symbols.of_array(value, source, self.place(source))
        traced = (
            self.tracer.array(value, source, sizes) if sizes else self.tracer.array(value, source)
        )
        if source >= 0:
            layout = self.tracer.layout(traced) if sizes else (value.shape, value.strides)
            flags = value.flags
            self.check(source, "array", value.dtype, *layout, flags.writeable, flags.aligned)
        self.array_ids[id(value)] = (value, source, traced)
        if self.bounds is not None:
            self._add_bounds(value)
            if self.overlap and self.written:
                self.tracer.note_break("an array that overlaps one written to is read")
        return traced

    def tell_apart(self, a: Any, b: Any) -> None:
        """Arrays that are not one object are not in later calls."""
        sources = [s for _, s, t in self.array_ids.values() if s >= 0 and (t is a or t is b)]
        key = (*sources, "other")
        if len(sources) == 2 and key not in self.checked:
            self.checked.add(key)
            self.check(sources[0], "other", sources[1])

    def adopt(self, value: Any) -> Any:
        """What the user's frame gets for a value of unknown origin."""
        cls = type(value)
        if cls is np.ndarray:
            return self.enter_array(value, OPAQUE)
        if cls in FREE_TYPES or isinstance(value, type):
            return value
        if isinstance(value, tuple):
            if any(type(v) is np.ndarray for v in value):
                items = [self.adopt(v) for v in value]
                return self.remake(value, items)
            return value
        if id(value) not in self.known:
            self.known[id(value)] = (value, OPAQUE)
        return value

    def wrap(self, value: Any) -> Any:
        """A value found in a container made in this call: real arrays become traced again."""
        return self.enter_array(value, OPAQUE) if type(value) is np.ndarray else value

    @staticmethod
    def remake(like: Any, items: list[Any]) -> Any:
        """A tuple or list of like's class with other items."""
        cls = type(like)
        if cls is tuple or cls is list:
            return cls(items)
        return cls._make(items) if hasattr(cls, "_make") else cls(items)

    def constant(self, value: np.ndarray) -> Any:
        """A new traced array with the contents of an array computed from constants alone."""
        if (why := why_not_array(value)) is not None:
            self.effect(f"makes {why}")
            self.known[id(value)] = (value, OPAQUE)
            return value
        kept = value.copy(order="K")
        kept.flags.writeable = False
        source = self.source("const", kept)
        traced = self.tracer.array(kept, source)
        self.entered[source] = (kept, traced)
        return self.tracer.copy(traced, "K")

    # --- effects ---

    def may_check(self) -> bool:
        """Whether the function itself can still answer the call when a check fails."""
        return self.effects == 0 and self.tracer.flushes == 0

    def effect(self, reason: str) -> None:
        """Python must run on every call: noted before it happens."""
        self.begin_effects(reason)
        self.tracer.note_effect(reason)
        self.effects += 1
        self.store_all()

    def begin_effects(self, reason: str) -> None:
        """What could still be looked at behind an effect, when the call cannot be begun anew."""
        for opened in [*self.regions.opened.values()]:
            opened.look(self, reason)

    def stop(self, reason: str) -> None:
        """A break: what is pending is run first."""
        self.begin_effects(reason)
        self.tracer.note_break(reason)
        self.effects += 1
        self.store_all()

    def may_defer(self, value: Any, name: str) -> bool:
        """Whether an attribute of an object that outlives the call can wait for the end of it: only
        captured code could see the difference, and that is told.
        """
        cls, source = type(value), self.source_of(value)
        if source is None or source < 0 or not self.may_check():
            return False
        if type(getattr(value, "__dict__", None)) is not dict or not reads_plainly(cls):
            return False
        is_plain = cls.__setattr__ is object.__setattr__
        return is_plain and not hasattr(type(find_in_class(cls, name)), "__set__")

    def deferred(self, value: Any) -> dict[str, Any]:
        """The attributes of an object that wait for the end of the call."""
        found = self.stores.get(id(value))
        return {} if found is None else found[1]

    def defer(self, value: Any, name: str, item: Any) -> None:
        """Sets an attribute at the end of the call, and of later ones. A loop carries what it was
        before, so that is read when nothing has been stored yet.
        """
        attributes = self.stores.setdefault(id(value), (value, {}))[1]
        if self.regions.touched and name not in attributes and name in value.__dict__:
            source = self.source("attr", self.source_of(value), name)
            attributes[name] = self.enter(value.__dict__[name], source)
            for touched in self.regions.touched:
                touched.amend(attributes, name)
        self.regions.touch(attributes)
        attributes[name] = item

    def waiting(self) -> list[tuple[Any, dict[str, Any]]]:
        """The objects whose attributes wait for the end of the call, with those that change."""
        pairs = []
        for value, attributes in self.stores.values():
            changed = {}
            for name, item in attributes.items():
                key = ("attr", self.source_of(value), name)
                entered = self.entered.get(self.source_ids.get(key, OPAQUE))
                if entered is None or entered[1] is not item:
                    changed[name] = item
            if changed:
                pairs.append((value, changed))
        return pairs

    def store_all(self) -> None:
        """Sets the attributes that wait: code that is not captured may look at them."""
        pairs, self.stores = self.waiting() if self.stores else (), {}
        for value, attributes in pairs:
            for name, item in attributes.items():
                setattr(value, name, self.concrete(item))

    def abandon(self, reason: str) -> None:
        """Gives the call up while nothing has happened; otherwise breaks."""
        if self.tracer.in_region:
            self.tracer.note_break(reason)
        if self.effects == 0 and self.tracer.flushes == 0 and not self.written:
            raise Abandon(reason)
        self.stop(reason)

    def undo(self) -> bool:
        """Arrays and generators as they were before the call, or False."""
        if not self.tracer.undo():
            return False
        for generator, state in self.draws.values():
            generator.bit_generator.state = state
        return True

    def concrete(self, value: Any, memo: dict[int, Any] | None = None) -> Any:
        """The value with everything traced made real: containers made in the call in place."""
        cls = type(value)
        if cls is Flat:
            return value.real(self)
        if cls is Traced:
            real = value.concrete()
            if type(real) is np.ndarray and id(real) not in self.array_ids:
                self.array_ids[id(real)] = (real, OPAQUE, value)
                if self.bounds is not None:
                    self._add_bounds(real)
            return real
        if cls in FREE_TYPES and cls is not types.FunctionType or isinstance(value, type):
            return value
        memo = {} if memo is None else memo
        if id(value) in memo:
            return memo[id(value)]
        memo[id(value)] = value
        if isinstance(value, tuple):
            items = [self.concrete(v, memo) for v in value]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                memo[id(value)] = value = self.remake(value, items)
        elif cls is slice:
            return slice(*(self.concrete(v) for v in (value.start, value.stop, value.step)))
        elif cls is np.broadcast:
            return self.filled(value)
        elif cls is types.FunctionType:
            memo[id(value)] = value = self._plain_function(value, memo)
        elif cls is types.MethodType:
            self.concrete(value.__self__, memo)
        elif cls is functools.partial and id(value) not in self.known:
            memo[id(value)] = value = self._concrete_partial(value, memo)
        elif cls is types.GeneratorType and id(value) not in self.known:
            return (self.concrete(v) for v in value)
        elif id(value) not in self.known:
            self._concrete_inside(value, memo)
        return value

    def _concrete_partial(self, value: Any, memo: dict[int, Any]) -> Any:
        """A partial made in this call: its parts cannot be set."""
        parts = [value.func, *value.args, *value.keywords.values()]
        real = [self.concrete(part, memo) for part in parts]
        if all(a is b for a, b in zip(real, parts, strict=True)):
            return value
        count = 1 + len(value.args)
        named = dict(zip(value.keywords, real[count:], strict=True))
        return functools.partial(*real[:count], **named)

    def _concrete_inside(self, value: Any, memo: dict[int, Any]) -> None:
        """Makes real, in place, what an object made in this call holds."""
        if isinstance(value, list):
            for i, item in enumerate(value):
                if (new := self.concrete(item, memo)) is not item:
                    list.__setitem__(value, i, new)
        elif isinstance(value, dict):
            for key, item in list(value.items()):
                if (new := self.concrete(item, memo)) is not item:
                    dict.__setitem__(value, key, new)
        elif isinstance(value, set | frozenset) or type(value) is functools.partial:
            return
        else:
            attributes = getattr(value, "__dict__", None)
            if type(attributes) is dict:
                self._concrete_inside(attributes, memo)
            for cls in type(value).__mro__:
                for name, slot in list(cls.__dict__.items()):
                    if type(slot) is types.MemberDescriptorType:
                        self._concrete_slot(value, name, slot, memo)

    def _concrete_slot(self, value: Any, name: str, slot: Any, memo: dict[int, Any]) -> None:
        try:
            item = slot.__get__(value)
            new = self.concrete(item, memo)
            if new is not item:
                slot.__set__(value, new)
        except (AttributeError, TypeError):
            return

    def _plain_function(self, fn: types.FunctionType, memo: dict[int, Any]) -> Any:
        """A function made in this call, for use outside of it: its stage does the plain thing."""
        from .plain import PlainScope
        from .rewrite.rewrite import STAGE

        if STAGE not in fn.__code__.co_freevars:
            return fn
        cells = []
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            if name == STAGE:
                cell = types.CellType(PlainScope.like(cell.cell_contents))
            else:
                try:
                    item = cell.cell_contents
                except ValueError:
                    pass
                else:
                    cell.cell_contents = self.concrete(item, memo)
            cells.append(cell)
        defaults = fn.__defaults__ and self.concrete(fn.__defaults__, memo)
        new = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, defaults, tuple(cells))
        if fn.__kwdefaults__:
            new.__kwdefaults__ = {k: self.concrete(v) for k, v in fn.__kwdefaults__.items()}
        new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
        new.__dict__.update(fn.__dict__)
        return new

    # --- writes ---

    def _add_bounds(self, array: np.ndarray) -> None:
        if self.bounds is None or array.size == 0:
            return
        low, high = byte_bounds(array)
        if any(low < other[1] and other[0] < high for other in self.bounds):
            self.overlap = True
        self.bounds.append((low, high, array))

    def before_write(self, target: Any) -> bool:
        """Called before a traced array is written to. True: the write must be made in memory at
        once,
        for arrays that the call knows by several names overlap."""
        if self.bounds is None:
            self.bounds = []
            for array, _, _ in list(self.array_ids.values()):
                self._add_bounds(array)
        if type(target) is Traced:
            self.regions.aliases.before_write(target)
        if type(target) is Traced and not any(target is t for t in self.written):
            self.written.append(target)
        if self.overlap:
            self.stop("arrays overlap, and one is written to")
        return self.overlap

    def writes_outside(self) -> bool:
        """Whether an array that outlives the call was written to."""
        reached = [t for _, source, t in self.array_ids.values() if source != OPAQUE]
        return any(w.shares_storage(t) for w in self.written for t in reached)

    def check_disjoint(self) -> None:
        """Guards that written arguments overlap no other, as they did not in this call."""
        sources = {s: t for _, s, t in self.array_ids.values() if s >= 0}
        written = tuple(
            s for s, t in sources.items() if any(w.shares_storage(t) for w in self.written)
        )
        others = tuple(s for s in sources if self.sources[s][0] != "const")
        if written and len(others) > 1:
            self.check("disjoint", written, others)

    def hollow_broadcast(self, args: tuple[Any, ...]) -> np.broadcast:
        """np.broadcast of traced values: its shape is known, its items when they are asked for."""
        hollow = np.broadcast(*(surface.dummy(a) for a in args))
        fill = functools.cache(lambda: np.broadcast(*(self.concrete(a) for a in args)))
        self.hollow[id(hollow)] = (hollow, fill)
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
        if isinstance(value, dict):
            self.check_once(source, "keys", type(value), tuple(value))
        else:
            self.check_once(source, "len", type(value), len(value))

    def items_of(self, value: Any, source: int) -> list[Any]:
        """The items of a list or tuple that a source reaches, entered; of a dict its values."""
        self.guard_length(value, source)
        if isinstance(value, dict):
            return [self.enter(v, self.source("item", source, k)) for k, v in value.items()]
        return [self.enter(v, self.source("item", source, i)) for i, v in enumerate(value)]

    def shallow(self, value: Any) -> Any:
        """A container with traced items: a copy of one that outlives the call, else itself."""
        source = self.source_of(value)
        if source is None:
            return value
        if source == OPAQUE:
            if isinstance(value, dict):
                return {k: self.adopt(v) for k, v in value.items()}
            return self.remake(value, [self.adopt(v) for v in value])
        items = self.items_of(value, source)
        if isinstance(value, dict):
            return dict(zip(value, items, strict=True))
        return self.remake(value, items)

    def deep(self, value: Any) -> Any:
        """Nested tuples, lists and dicts with their arrays traced, for a function that reads
        all.
        """
        cls = type(value)
        if cls is np.ndarray:
            return self.enter_array(value, OPAQUE)
        if cls in CONTAINER_TYPES or isinstance(value, tuple):
            if id(value) in self.regions.growing:
                return self.regions.growing[id(value)].array
            inside = self.shallow(value)
            if isinstance(inside, dict):
                return {k: self.deep(v) for k, v in inside.items()}
            items = [self.deep(v) for v in inside]
            if all(a is b for a, b in zip(items, inside, strict=True)):
                return inside
            return self.remake(inside, items)
        return value

    def guard_all(self, value: Any, source: int) -> None:
        """Guards everything in a container that Python itself is going to read."""
        if isinstance(value, set | frozenset):
            self.check(source, "equals", type(value)(value))
            return
        self.guard_length(value, source)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(pairs):
            inner = self.source("item", source, key)
            if type(item) is np.ndarray:
                self.stop("a container of arrays is used as a whole")
            elif type(item) in NUMBER_TYPES or isinstance(item, int | np.generic):
                self.check(inner, "equals", item)
            else:
                self.enter(item, inner)
                if type(item) in CONTAINER_TYPES or isinstance(item, tuple | set):
                    self.guard_all(item, inner)

    def use(self, value: Any) -> Any:
        """An operand that Python is going to look into by itself."""
        cls = type(value)
        if cls is np.ndarray:
            return self.enter_array(value, OPAQUE)
        if isinstance(value, list | tuple | dict | set | frozenset):
            source = self.source_of(value)
            if source is not None and source >= 0:
                self.guard_all(value, source)
        elif isinstance(value, type | enum.Enum | np.generic | BaseException):
            return value
        elif has_operators(cls) and cls not in IDENTITY_TYPES:
            self.stop(f"an operator of class {cls.__name__}")
            return self.concrete(value)
        return value
