"""Values that cross to code that is not captured, and the arrays that came from there.

What was made in the call (containers, objects, functions) stays the object it is, with real things
in it; what cannot be changed (a tuple, a partial) is made again where something in it was traced.
What outlives the call holds nothing traced and is left alone.

Of the arrays that a call knows one object has one traced array. Where arrays lie is looked at from the first write on: while none of
them overlap, a traced write is seen by all that it concerns; later calls are guarded to be so too.
"""

from __future__ import annotations

import collections
import functools
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..instance import is_a
from .syntax.asking import OURS, STAGE
from .value.handed import is_iterator
from .value.items import Flat, Octets
from .value.objects import (
    BOUND,
    FLAGS,
    FREE_TYPES,
    OPAQUE,
    Traced,
    attributes_of,
    bounds_of,
    is_record,
    remade,
    why_not_array,
)

if TYPE_CHECKING:
    from .stage import Stage


HOLDERS = (types.FunctionType, slice)  # among what an operator may be given unseen


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
        if (cls in FREE_TYPES and cls not in HOLDERS) or is_a(value, type):
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
        elif self.stage.source_of(value) is not None:
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
            return self.stage.handed.hand(self, value)
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
        self.written: list[Traced] = []
        self.overlap = False

    def lift_guarded(self, value: np.ndarray, source: int) -> Any:
        """The Traced of an array that a source reaches."""
        stage, tracer = self.stage, self.stage.tracer
        found = self.known.get(id(value))
        if found is not None:
            if source >= 0 and found[1] >= 0 and source != found[1]:
                stage.check(source, "same", found[1])
            return found[2]
        if (why := why_not_array(value)) is not None:
            stage.known[id(value)] = (value, source)
            stage.effect(f"{why} is read")
            return value
        sizes = paddings = None
        if source >= 0 and stage.symbols is not None:
            words = stage.place(source)
            sizes = stage.symbols.of_array(value, source, words)
            paddings = stage.symbols.of_paddings(value, source, words, sizes)
        traced = tracer.array(value, source, sizes, paddings)
        if source >= 0:
            is_symbolic = sizes is not None or paddings is not None
            shown = traced if is_symbolic else value
            flags = value.flags
            stage.check(source, "array", value.dtype, shown.shape, shown.strides, flags.writeable, flags.aligned)
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
        if len(sources) == 2 and key not in self.stage.checked:
            self.stage.checked.add(key)
            self.stage.check(sources[0], "other", sources[1])

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
            if not any(target is t for t in self.written):
                self.written.append(target)
        if self.overlap:
            self.stage.stop("arrays overlap, and one is written to")
        return self.overlap

    def writes_outside(self) -> bool:
        """Whether an array that outlives the call was written to."""
        return any(self.is_written(t) for _, source, t in self.known.values() if source != OPAQUE)

    def is_written(self, traced: Traced) -> bool:
        return any(map(traced.shares_storage, self.written))

    def check_disjoint(self) -> None:
        """Guards that written arguments overlap no other, as they did not in this call."""
        sources = {s: t for _, s, t in self.known.values() if s >= 0}
        written = tuple(s for s, t in sources.items() if self.is_written(t))
        others = tuple(s for s in sources if self.stage.sources[s][0] != "const")
        if written and len(others) > 1:
            self.stage.check("disjoint", written, others)
