"""Values that cross to code that is not captured, and the arrays that came from there.

What was made in the call (containers, objects, functions) stays the object it is, with real things
in it; what cannot be changed (a tuple, a partial) is made again where something in it was traced.
What outlives the call holds nothing traced and is left alone.

Of the arrays that a call knows one object has one traced array. Where arrays lie is looked at from
the first write on: while none of them overlap, a traced write is seen by all that it concerns; later
calls are guarded to be so too.

An operator, a hash, a format or a pure function is given a value as it is, and reads it all (`use`).
What of it came from outside the call is guarded to the last item, also inside of containers that the
call has made.

An attribute of an object that outlives the call, or what is in a list or under a key of a dict, is set
there only when the call returns, and when a later call does that replays it; until then captured code
reads what is to be stored (`Stores`). Whatever is not captured may look at the object: before it runs
all is set. Invariant: an object has the attributes and a container the places that it had before.
"""

from __future__ import annotations

import collections
import functools
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..instance import is_a
from .iterators import Flat, Octets, is_iterator
from .objects import (
    BOUND,
    FLAGS,
    FREE_TYPES,
    HOLDERS,
    NUMBER_TYPES,
    OPAQUE,
    Traced,
    attributes_of,
    bounds_of,
    find_in_class,
    has_hooks,
    holds_items,
    hooked_in,
    is_record,
    is_standard,
    is_unguarded,
    put,
    reads_plainly,
    remade,
    why_not_array,
)
from .syntax.asking import OURS, STAGE

if TYPE_CHECKING:
    from .stage import Stage


OPENED = (types.FunctionType, slice)  # among what an operator may be given unseen


class Materialiser:
    """Makes values real; those that hold one object hold one object behind it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.made: dict[int, tuple[Any, Any]] = {}  # by id: the value, and what it was made

    def of(self, value: Any) -> Any:
        """The value with everything traced materialised: containers made in the call in place."""
        cls = type(value)
        if cls is Flat:
            return value.real(self.stage)
        if cls is Octets:
            return value.value
        if cls is Traced:
            return self.stage.arrays.real(value)
        if (cls in FREE_TYPES and cls not in OPENED) or is_a(value, type):
            return value
        if id(value) not in self.made:
            self.made[id(value)] = (value, value)  # what holds itself finds itself
            self.made[id(value)] = (value, self.make(value))
        return self.made[id(value)][1]

    def make(self, value: Any) -> Any:
        """What stands for an object, or the object with other things in it."""
        cls = type(value)
        if is_record(cls):
            return self.record(value)
        if cls is slice:
            return slice(*map(self.of, bounds_of(value)))
        if cls is np.broadcast:
            return self.stage.filled(value)
        if cls is FLAGS:
            return self.stage.hollow.get(id(value), (value, lambda: value))[1]()
        if cls is types.FunctionType:
            return self.plain_function(value)
        if cls is types.MethodType:
            self.of(value.__self__)
        elif self.stage.sources.source_of(value) is not None:
            return value
        elif cls is functools.partial:
            return self.partial(value)
        elif cls in BOUND and (
            type(value.__self__) is Traced or is_iterator(type(value.__self__))
        ):
            return getattr(self.of(value.__self__), value.__name__)
        elif cls is frozenset:
            _core.exchange_items(value, [self.of(v) for v in value])
        elif is_iterator(cls) or cls is types.GeneratorType:
            return self.stage.escapes.escape(self, value)
        else:
            self.fill(value)
        return value

    def record(self, value: Any) -> Any:
        """A tuple: its items cannot be set, its attributes can."""
        items = [self.of(v) for v in value]
        if own := attributes_of(value):
            self.fill(own)
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else remade(value, items)

    def partial(self, value: Any) -> Any:
        """A partial made in this call: its parts cannot be set."""
        parts = [value.func, *value.args, *value.keywords.values()]
        real = [self.of(part) for part in parts]
        if all(a is b for a, b in zip(real, parts, strict=True)):
            return value
        count = 1 + len(value.args)
        named = dict(zip(value.keywords, real[count:], strict=True))
        return functools.partial(*real[:count], **named)

    def fill(self, value: Any) -> None:
        """Makes real, in place, what an object made in this call holds."""
        if is_a(value, list) or type(value) is collections.deque:
            put = list.__setitem__ if is_a(value, list) else collections.deque.__setitem__
            for i, item in enumerate([*value]):
                if (new := self.of(item)) is not item:
                    put(value, i, new)
        elif is_a(value, dict):
            self.fill_keys(value)
            for key, item in list(value.items()):
                if (new := self.of(item)) is not item:
                    dict.__setitem__(value, key, new)
        elif is_a(value, set):
            _core.exchange_items(value, [self.of(v) for v in set.__iter__(value)])
        elif type(value) is functools.partial:
            return
        else:
            attributes = attributes_of(value)
            if type(attributes) is dict:
                self.fill(attributes)
            for cls in type(value).__mro__:
                for slot in list(cls.__dict__.values()):
                    if type(slot) is types.MemberDescriptorType:
                        self.fill_slot(value, slot)

    def fill_keys(self, value: dict[Any, Any]) -> None:
        """Makes real what a dict is searched by."""
        keys = [self.of(key) for key in value]
        if not all(a is b for a, b in zip(keys, value, strict=True)):
            items = list(value.values())
            dict.clear(value)
            dict.update(value, zip(keys, items, strict=True))

    def fill_slot(self, value: Any, slot: Any) -> None:
        try:
            item = slot.__get__(value)
            new = self.of(item)
            if new is not item:
                slot.__set__(value, new)
        except (AttributeError, TypeError):
            return

    def plain_function(self, fn: types.FunctionType) -> Any:
        """A function made in this call, for use outside of it: its scope does the plain thing."""
        around = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        if not any(name.startswith(OURS) for name in around):
            return fn
        scope = around[STAGE].cell_contents if STAGE in around else None
        if scope is not None and scope.stage is not self.stage:
            return fn  # of an earlier call
        cells = []
        for name, cell in around.items():
            if name == STAGE:
                cell = types.CellType(self.stage.plain_hooks.like(cell.cell_contents))
            else:
                self.fill_cell(cell)
            cells.append(cell)
        defaults = fn.__defaults__ and self.of(fn.__defaults__)
        new = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, defaults, tuple(cells))
        if fn.__kwdefaults__:
            new.__kwdefaults__ = {k: self.of(v) for k, v in fn.__kwdefaults__.items()}
        new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
        new.__dict__.update(fn.__dict__)
        self.annotate(new, fn)
        return new

    def annotate(self, new: types.FunctionType, fn: types.FunctionType) -> None:
        """Gives new the annotations of fn and its type parameters, where this Python has those.
        Annotations that wait to be asked for (3.14) go on waiting: they may name what comes later.
        """
        waiting = getattr(fn, "__annotate__", None)
        if waiting is None:
            new.__annotations__ = fn.__annotations__
            self.fill(new.__annotations__)
        else:
            new.__annotate__ = self.of(waiting)  # type: ignore[attr-defined]
            for cell in getattr(waiting, "__closure__", None) or ():
                self.fill_cell(cell)
        if hasattr(fn, "__type_params__"):
            new.__type_params__ = fn.__type_params__  # type: ignore[attr-defined]

    def fill_cell(self, cell: types.CellType) -> None:
        try:
            item = cell.cell_contents
        except ValueError:  # it is empty
            return
        cell.cell_contents = self.of(item)


# --- the arrays of a call ---


byte_bounds = np.lib.array_utils.byte_bounds


class Arrays:
    """Those of one call."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.known: dict[int, tuple[np.ndarray, int, Traced]] = {}  # by id; with their sources
        self.bounds: list[tuple[int, int]] | None = None
        self.written: dict[int, Traced] = {}  # by id
        self.overlap = False

    def lift_guarded(self, value: np.ndarray, source: int) -> Any:
        """The Traced of an array that a source reaches."""
        stage, tracer = self.stage, self.stage.tracer
        found = self.known.get(id(value))
        if found is not None:
            if source >= 0 and found[1] >= 0 and source != found[1]:
                stage.sources.check(source, "same", found[1])
            return found[2]
        if (why := why_not_array(value)) is not None:
            stage.sources.known[id(value)] = (value, source)
            stage.effects.note(f"{why} is read")
            return value
        sizes = paddings = None
        if source >= 0 and stage.symbols is not None:
            words = stage.sources.place(source)
            sizes = stage.symbols.of_array(value, source, words)
            paddings = stage.symbols.of_paddings(value, source, words, sizes)
        traced = tracer.array(value, source, sizes, paddings)
        if source >= 0:
            is_symbolic = sizes is not None or paddings is not None
            shown = traced if is_symbolic else value
            flags = value.flags
            stage.sources.check(source, "array", value.dtype, shown.shape, shown.strides, flags.writeable, flags.aligned)
        self.add(value, source, traced)
        if self.overlap and self.written:
            tracer.note_break("an array that overlaps one written to is read")
        return traced

    def add(self, value: np.ndarray, source: int, traced: Traced) -> None:
        """An object and what stands for it."""
        self.known[id(value)] = (value, source, traced)
        if self.bounds is not None:
            self.add_bounds(value)

    def real(self, traced: Traced) -> Any:
        """The object that a traced value stands for, made now if there is none yet."""
        real = traced.materialise()
        if type(real) is np.ndarray and id(real) not in self.known:
            self.add(real, OPAQUE, traced)
        return real

    def is_callers(self, traced: Any) -> bool:
        """Whether a traced array stands for an object that code outside of the call may hold."""
        return any(t is traced for _, _, t in self.known.values())

    def note_distinct(self, a: Any, b: Any) -> None:
        """Arrays that are not one object are not in later calls."""
        sources = [s for _, s, t in self.known.values() if s >= 0 and (t is a or t is b)]
        key = (*sources, "other")
        if len(sources) == 2 and key not in self.stage.sources.checked:
            self.stage.sources.checked.add(key)
            self.stage.sources.check(sources[0], "other", sources[1])

    # --- writes ---

    def add_bounds(self, array: np.ndarray) -> None:
        """Compares where it lies with where the others do."""
        if array.size == 0:
            return
        low, high = byte_bounds(array)
        if any(low < other[1] and other[0] < high for other in self.bounds):  # type: ignore[union-attr]
            self.overlap = True
        self.bounds.append((low, high))  # type: ignore[union-attr]

    def before_write(self, target: Any) -> bool:
        """Called before a traced array is written to. True: the write must be made in memory at
        once, for arrays that the call knows by several names overlap.
        """
        if self.bounds is None:
            self.bounds = []
            for array, _, _ in list(self.known.values()):
                self.add_bounds(array)
        if type(target) is Traced:
            self.stage.regions.aliases.before_write(target)
            self.written[id(target)] = target
        if self.overlap:
            self.stage.effects.stop("arrays overlap, and one is written to")
        return self.overlap

    def writes_outside(self) -> bool:
        """Whether an array that outlives the call was written to."""
        return any(self.is_written(t) for _, source, t in self.known.values() if source != OPAQUE)

    def is_written(self, traced: Traced) -> bool:
        return any(map(traced.shares_storage, self.written.values()))

    def check_disjoint(self) -> None:
        """Guards that written arguments overlap no other, as they did not in this call."""
        sources = {s: t for _, s, t in self.known.values() if s >= 0}
        rows = self.stage.sources.rows
        written = tuple([s for s, t in sources.items() if self.is_written(t)])
        others = tuple([s for s in sources if rows[s][0] != "const"])
        if written and len(others) > 1:
            self.stage.sources.check("disjoint", written, others)


# --- values that Python looks into by itself ---


def use(stage: Stage, value: Any) -> Any:
    """What Python is going to look into by itself."""
    if type(value) is np.ndarray:
        return stage.arrays.lift_guarded(value, OPAQUE)
    hooked = hook_of(stage, value)
    if hooked is not None:
        stage.effects.stop(f"an operator of class {hooked.__name__}", value)
        return stage.materialise(value)
    return value


def operand(stage: Stage, value: Any) -> Any:
    """One of two operands that Python is going to look into: the user's operator is given real values,
    whatever the other is.
    """
    if type(value) is np.ndarray:
        return stage.arrays.lift_guarded(value, OPAQUE)
    hooked = hook_of(stage, value)
    return value if hooked is None else Hooked(stage, value, hooked)


def compared(stage: Stage, relation: Callable[[Any, Any], Any], *values: Any) -> Any:
    """What a comparison in which code of the user's takes part gives; NotImplemented where none does."""
    hooks = [hook_of(stage, v) for v in values if type(v) not in FREE_TYPES]
    hooked = next((cls for cls in hooks if cls is not None), None)
    if hooked is None:
        return NotImplemented
    stage.effects.stop(f"an operator of class {hooked.__name__}", *values)
    return stage.lift(relation(*map(stage.materialise, values)))


class Hooked:
    """An operand whose class has operators of the user's: they see nothing that is traced."""

    __slots__ = ("stage", "value", "cls")
    __array_ufunc__ = None  # arrays leave the operator to it

    def __init__(self, stage: Stage, value: Any, cls: type) -> None:
        self.stage, self.value, self.cls = stage, value, cls

    def apply(self, op: Callable[[Any, Any], Any], *values: Any) -> Any:
        """op(*values), real ones."""
        self.stage.effects.stop(f"an operator of class {self.cls.__name__}")
        real = [self.stage.materialise(v.value if type(v) is Hooked else v) for v in values]
        return self.stage.lift(op(*real))


def add_operator(name: str, op: Callable[[Any, Any], Any]) -> None:
    """An operator of two operands, from both sides."""
    setattr(Hooked, f"__{name}__", lambda self, other: self.apply(op, self, other))
    setattr(Hooked, f"__r{name}__", lambda self, other: self.apply(op, other, self))


for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split():
    add_operator(name, getattr(operator, f"__{name}__"))


def hook_of(stage: Stage, value: Any) -> type | None:
    """The class whose code of the user's runs when Python looks into a value, or None: then what of it
    came from outside is guarded.
    """
    cls = type(value)
    stage.sources.sees_objects = True  # Python asks first whether two are one
    hooked = None
    if is_a(value, HOLDERS) and not has_hooks(cls):
        hooked = guard_inside(stage, value, set())
        if hooked is None and (cls is not dict or value):
            hooked = hooked_in((value,))
    elif is_a(value, type):
        hooked = cls if has_hooks(cls) and not is_standard(cls) else None
    elif stage.sources.has_hooks(cls) or has_unguarded(stage, value):
        hooked = cls
    return hooked


def has_unguarded(stage: Stage, value: Any) -> bool:
    """Whether Python reads something of it that nothing guards; of the caller's exceptions what they
    hold, which may be set.
    """
    is_set = is_a(value, BaseException) and stage.sources.source_of(value) is not None
    return is_set or is_unguarded(type(value))


def guard_inside(stage: Stage, value: Any, seen: set[int]) -> type | None:
    """Guards what a container holds that came from outside, and gives lists that grow their items. The
    first class of an item of which that cannot be done, or None.
    """
    source = stage.sources.source_of(value)
    if source is not None:
        if source >= 0:
            guard_all(stage, value, source)
        return None
    if id(value) in seen:
        return None
    seen.add(id(value))
    found = None
    items = [*value, *value.values()] if is_a(value, dict) else value
    for item in items:
        if type(item) in FREE_TYPES:
            continue
        if is_a(item, HOLDERS) and not has_hooks(type(item)):
            found = guard_inside(stage, item, seen) or found
        elif has_unguarded(stage, item):
            found = found or type(item)
    return found


def guard_all(stage: Stage, value: Any, source: int) -> None:
    """Guards everything in a container that Python itself is going to read."""
    if is_a(value, set | frozenset):
        stage.sources.check(source, "equals", type(value)(value))
        return
    if stage.stores.of(value):
        stage.effects.stop(f"a {type(value).__name__} is used as a whole whose items are set")
    stage.sources.guard_length(value, source)
    pairs = value.items() if is_a(value, dict) else enumerate(value)
    for key, item in list(pairs):
        inner = stage.sources.source("item", source, key)
        if type(item) is np.ndarray:
            stage.effects.stop("a container of arrays is used as a whole")
        elif type(item) in NUMBER_TYPES or is_a(item, int | np.generic):
            stage.sources.check(inner, "equals", item)
        else:
            stage.lift_guarded(item, inner)
            if has_unguarded(stage, item):
                stage.effects.stop(f"a container of a {type(item).__name__} is used as a whole")
            if not is_a(item, HOLDERS):
                continue
            if not has_hooks(type(item)):
                guard_all(stage, item, inner)
            else:
                stage.effects.stop(f"an operator of class {type(item).__name__}")


# --- attributes and items that wait for the end of the call ---


KEYS = (str, int, bool, bytes, type(None))  # what is hashed and compared without the user's code
NAMESPACES = ("__dict__", "__globals__")  # dicts that are read in other ways, too


class Stores:
    """Those of one call: by the id of an object, the object and its attributes or items."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.has_given = False  # something was set, or will be with the result
        self.objects: dict[int, tuple[Any, dict[Any, Any]]] = {}

    def may_wait(self, value: Any, name: str) -> bool:
        """Whether an attribute of an object that outlives the call can wait for the end of it: only
        captured code could see the difference, and that is told.
        """
        cls, source = type(value), self.stage.sources.source_of(value)
        if source is None or source < 0 or not self.stage.tracer.may_check():
            return False
        if type(attributes_of(value)) is not dict or not reads_plainly(cls):
            return False
        is_plain = cls.__setattr__ is object.__setattr__
        return is_plain and not hasattr(type(find_in_class(cls, name)), "__set__")

    def may_wait_at(self, value: Any, key: Any) -> bool:
        """The same of an item; a place that a dict has not is an effect."""
        source = self.stage.sources.source_of(value)
        if source is None or source < 0 or not self.stage.tracer.may_check():
            return False
        if type(value) is list:
            return type(key) is int and -len(value) <= key < len(value)
        kind, *parts = self.stage.sources.rows[source]
        if type(value) is not dict or (kind == "attr" and parts[1] in NAMESPACES):
            return False
        parts = list(key) if type(key) is tuple else [key]
        return all(type(part) in KEYS for part in parts) and key in value

    def of(self, value: Any) -> dict[Any, Any]:
        """What waits of an object; of a list by places from its start."""
        found = self.objects.get(id(value))
        return {} if found is None else found[1]

    def add(self, value: Any, place: Any, item: Any) -> None:
        """Sets an attribute or item at the end of the call, and of later ones. A loop carries what
        it was before, so that is read when nothing has been stored yet.
        """
        stage = self.stage
        stage.sources.sees_objects = True  # what is read of another would have changed, too
        if type(value) is list:
            stage.sources.guard_length(value, stage.sources.source_of(value))  # type: ignore[arg-type]
            place = place % len(value)
        waiting = self.objects.setdefault(id(value), (value, {}))[1]
        now = value if holds_items(value) else attributes_of(value)
        if stage.state.snapshots and place not in waiting and (type(now) is list or place in now):
            kind = "item" if holds_items(value) else "attr"
            source = stage.sources.source(kind, stage.sources.source_of(value), place)
            waiting[place] = stage.lift_guarded(now[place], source)
            stage.state.amend(waiting, place)
        stage.state.before_change(waiting)
        waiting[place] = item

    def waiting(self) -> list[tuple[Any, dict[Any, Any]]]:
        """The objects of which something waits for the end of the call, with what changes."""
        pairs = []
        for value, places in self.objects.values():
            kind = "item" if holds_items(value) else "attr"
            changed = {}
            for place, item in places.items():
                key = (place,) if kind == "attr" else (type(place), place)
                entered = self.stage.sources.entered_by(kind, self.stage.sources.source_of(value), *key)
                if entered is None or entered[1] is not item:
                    changed[place] = item
            if changed:
                pairs.append((value, changed))
        return pairs

    def flush(self) -> None:
        """Sets what waits: code that is not captured may look at it."""
        for value, places in self.take():
            for place, item in places.items():
                put(value, place, self.stage.materialise(item))

    def take(self) -> list[tuple[Any, dict[Any, Any]]]:
        """The objects with what waits, which is the caller's now."""
        pairs = self.waiting()
        self.objects = {}
        self.has_given |= bool(pairs)
        return pairs
