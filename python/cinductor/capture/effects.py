"""Side effects of a captured call that cannot be undone, and values that leave the call.

An effect is recorded before it happens. As long as there is none, and no graph has run, the original function can
run the call. So a check may fail (`Tracer.may_check`), and a capture may restart. In this case the state of random
generators is restored, and NumPy warns about floating-point flags that were raised.

Each array of a call is one object with one traced array. Overlaps are checked from the first write on: if no
arrays overlap, a traced write reaches every reader, and later calls are guarded to be the same.

A store to an attribute of an object that outlives the call, or to an item of a list or dict, is deferred until the
call returns or a later call replays it. Until then captured code reads the deferred value (`Stores`). Code that is
not captured may look at the object, so all stores are performed before it runs. Invariant: the order of an
object's attributes and of a container's items is unchanged.

Containers, objects and functions made in the call keep their identity after an effect and then contain real
values. Immutable ones (a tuple, a partial) are recreated if they contained a traced value. Objects that outlive
the call contain nothing traced and are left alone. An object that other code may have counts as one of these from
then on, so each later change of it is an effect.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base import float_warnings
from ..base.class_lookup import is_a
from ..base.signals import Abandon, Suspect
from ..calls.overtaking import MAX_SAVED, Changes
from ..numpy import surface, twister
from ..numpy.random import Draw, set_state
from . import deaths
from .container_rows import ROWS, base_of
from .containers import row_of
from .control.alias import Aliases
from .control.state import OPENED, SHOWN, State, atoms
from .iterators import Escaped, Flat, Items, SharedIterators, TracedBytes, is_iterator
from .kinds import NoValue
from .known_arrays import Arrays
from .objects import (
    BOUND,
    FLAGS,
    FREE_TYPES,
    METHODS_IN_C,
    OPAQUE,
    Traced,
    attributes_of,
    bounds_of,
    hooked_in,
    is_internal,
    is_record,
    plain_class,
    put,
    remade,
)
from .sources import Sources
from .stores import Stores
from .syntax.stage_calls import OWN_PREFIX, STAGE

# --- effects ---


class Effects:
    """The effects of one call. plain_hooks: the class of scopes that do not capture."""

    def __init__(
        self, tracer: _core.Tracer, sources: Sources, state: State, aliases: Aliases, plain_hooks: Any
    ) -> None:
        self.tracer, self.sources, self.state, self.aliases = tracer, sources, state, aliases
        self.arrays, self.stores, self.escapes = Arrays(sources), Stores(tracer, sources), SharedIterators()
        self.plain_hooks = plain_hooks
        self.given: dict[int, tuple[Any, Any]] = {}  # by the id of a function: what other code has in place of it, and the function
        self.remade: dict[int, tuple[Any, Any]] = {}  # id -> a tuple with traced values, and the real one that other code has
        self.twins: dict[int, tuple[Any, Any]] = {}  # by the id of a real tuple: what `remade` has of it
        self.handed_out: set[int] = set()  # ids of objects made in the call that other code may have
        self.without_contents: dict[int, tuple[Any, Any]] = {}  # a broadcast or flags object, with what it was made from
        self.normals: dict[int, tuple[Any, Any, Any]] = {}  # id -> a generator of Python, the array of its kept number, and its version
        self.draws: dict[int, Any] = {}  # id -> a generator and its state before the call
        self.flags = 0  # float flags that have been reported
        self.flush_records: Callable[[Any], None] = lambda materialise: None  # set by the stage
        self.why_whole = ""  # as the stage's
        self.has_ended = False  # the function's own code has returned a result
        self.is_preparing = False  # an effect's deferred work is being done

    def note(self, reason: str) -> None:
        """Record an effect before it happens: Python must then run in each call."""
        self.happens(self.tracer.note_effect, reason)

    def stop(self, reason: str, *given: Any) -> None:
        """Break: run the pending graph first. given: values that leave the call. If an iterator among them has an unknown
        position, the call restarts while that is possible.
        """
        for value in given:
            if type(value) is Items:
                value.check()
        self.happens(self.tracer.note_break, reason)

    def change(self, value: Any, reason: str) -> None:
        """Record a change of an object. Arrays that read the memory of a container of numbers are computed before."""
        (self.stop if row_of(value).is_memory else self.note)(reason)

    def happens(self, note: Callable[[str], None], reason: str) -> None:
        """Prepare for an effect, after which the call cannot restart: lists whose length is a number of iterations
        get their items, and deferred stores are performed. What is materialised for that may need a break, which
        only runs the graph: the preparation goes on after it.
        """
        if self.tracer.is_dry:
            raise _core.Unsupported(f"only a call can do this: it {reason} ({self.why_whole})")
        if self.is_preparing:
            note(reason)
            return
        for grown in [*self.state.lists.values()]:
            grown.before_effect(reason)
        note(reason)
        self.look_at_flags()
        self.is_preparing = True
        try:
            self.flush_records(self.materialise)
            self.tracer.effects += 1
            self.flush()
        finally:
            self.is_preparing = False
        self.state.keep_changes()
        self.forget_tuples()
        deaths.let_go(self.tracer, self.sources, self.arrays)
        self.handed_out &= self.sources.known.keys()

    def flush(self) -> None:
        """Perform deferred stores, because uncaptured code may read the objects."""
        for value, places in self.stores.take():
            for place, item in places.items():
                put(value, place, self.materialise(item))
        for generator, array in self.take_normals() if self.normals else ():
            twister.keep_normal(generator, self.materialise(array))
        self.fill_cells()

    def take_normals(self) -> list[tuple[Any, Any]]:
        """The generators whose kept number has changed, with its array."""
        changed = [(generator, array) for generator, array, before in self.normals.values() if array.version != before]
        self.normals.clear()
        return changed

    def fill_cells(self) -> None:
        """Materialise again what functions refer to that other code has: Python itself sets the names of a frame."""
        for key in deaths.alone_in(self.given):
            del self.given[key]
        concrete = Materialiser(self)
        for given, _ in [*self.given.values()]:
            concrete.fill_cells(given)

    def before_write(self, target: Any) -> bool:
        """Called before a traced array is written. True: the write must be made in memory at once, because arrays
        that the call knows by several names overlap, or NumPy warns of it.
        """
        arrays = self.arrays
        arrays.look_at_memory()
        if type(target) is Traced:
            self.aliases.before_write(target)
            arrays.written[id(target)] = target
            if target.warns_of_writes:
                self.stop("a write to a result of broadcast_arrays")
                return True
        if arrays.overlap:
            self.stop("arrays overlap, and one is written to")
        return arrays.overlap

    def look_at_flags(self) -> None:
        """Check the floating-point flags raised so far. If the call can restart, NumPy runs it;
        otherwise the warning is issued here."""
        if new := self.undone_for_flags(self.can_run_again()):
            raise Suspect(new)

    def leaves_to_numpy(self) -> bool:
        """True if NumPy shall run the call for its warnings, which is undone then, before its result is made. A call that
        changes nothing is rather repeated, after that.
        """
        changes = self.stores.has_given or self.draws or self.arrays.writes_outside()
        return bool(changes and self.undone_for_flags(True))

    def undone_for_flags(self, may_undo: bool) -> int:
        """The floating-point flags raised so far that must be reported, if the call was undone for them. Otherwise the
        warnings are issued here.
        """
        raised = {**self.tracer.raised}
        new = self.take_flags()
        if not new or (may_undo and self.undo_call()):
            return new
        float_warnings.give(raised, new)
        return 0

    def take_flags(self) -> int:
        """The float flags raised since the last call of this method that must be reported."""
        tracer = self.tracer
        if tracer.in_region or not tracer.float_flags & ~self.flags:
            return 0
        reported = float_warnings.reported(tracer.float_flags)
        tracer.float_flags = reported  # the others were raised inside of an errstate that ignores them
        tracer.raised.clear()
        new = reported & ~self.flags
        self.flags |= new
        return new

    def can_run_again(self) -> bool:
        """True if the function may run once more, because nothing outside of the call was written."""
        is_late = self.has_ended and (self.arrays.writes_outside() or self.draws)
        return not is_late and not self.stores.has_given and self.tracer.effects == 0

    def changes(self) -> Changes | None:
        """The arrays and generators that the call changes; None if it changes more, or they cannot be restored."""
        written = [(value, source) for value, source, t in self.arrays.known.values() if self.arrays.is_written(t)]
        arrays = [value for value, _ in written]
        is_more = any(source == OPAQUE for _, source in written) or self.stores.has_given or self.tracer.effects
        return None if is_more or sum(array.nbytes for array in arrays) > MAX_SAVED else Changes(arrays, list(self.draws.values()))

    def abandon(self, reason: str) -> None:
        """Give up the call if nothing has happened; otherwise break."""
        if self.tracer.in_region:
            self.tracer.note_break(reason)
        if self.tracer.effects == 0 and self.tracer.flushes == 0 and not self.arrays.written:
            raise Abandon(reason)
        self.stop(reason)

    def undo_call(self) -> bool:
        """True if the original function can run the call from its beginning, because everything was restored."""
        return self.tracer.effects == 0 and self.undo()

    def undo(self) -> bool:
        """Restore arrays and generators to their state before the call; False if that is impossible."""
        if not self.tracer.undo():
            return False
        for generator, state in self.draws.values():
            set_state(generator, state)
        return True

    # --- values that leave ---

    def check_handed_out(self, *values: Any) -> None:
        """Refuse to let anything of cinductor's leave the call in these values, or in an object that other code may have."""
        known = self.sources.known
        roots = [*values, *(known[key][0] for key in self.handed_out if key in known)]
        closed = {key: value for key, (value, source) in known.items() if source != OPAQUE}
        own = _core.own_in(roots, closed, atoms() | FRAMES, SHOWN, frozenset({Escaped, NoValue, self.plain_hooks}))
        if own is not None:
            raise _core.InternalError(f"a {type(own).__name__} of cinductor would leave the call")

    def is_captured(self, generator: types.GeneratorType[Any, Any, Any]) -> bool:
        """True if a generator made in the call may have traced values. When NumPy runs the rest, only one of rewritten code may."""
        return not self.tracer.has_fallen_back or STAGE in generator.gi_code.co_freevars

    def materialise(self, value: Any) -> Any:
        """The value with everything traced materialised."""
        return value if type(value) in ATOMS else Materialiser(self).of(value)

    def note_tuple(self, made: Any, real: Any) -> None:
        """Record the real tuple that other code has in place of one that the call has made."""
        self.remade[id(made)] = self.twins[id(real)] = made, real

    def forget_tuples(self) -> None:
        """Forget the tuples with traced values that only the records refer to."""
        for key in deaths.alone_in(self.remade):
            pair = self.remade.pop(key)
            if self.twins.get(id(pair[1])) is pair:
                del self.twins[id(pair[1])]

    def outside(self, value: Any) -> Any:
        """The object that other code has in place of a function or a tuple."""
        found = self.given.get(id(value))
        return self.remade.get(id(value), (None, value))[1] if found is None else found[0]

    def exchanged(self, value: Any) -> Any:
        """The real value in place of one that has waited since before Python began to run the rest of the call."""
        cls = type(value)
        is_remade = cls is Traced or cls in FILLED or is_record(cls)
        return self.materialise(value) if is_remade else self.escapes.now(value)

    def broadcast_without_contents(self, args: tuple[Any, ...]) -> np.broadcast:
        """np.broadcast of traced values: its shape is known; its items are made on demand."""
        empty = np.broadcast(*map(surface.dummy, args))
        self.without_contents[id(empty)] = (empty, args)
        return empty

    def filled(self, value: np.broadcast) -> np.broadcast:
        """The np.broadcast with its items."""
        if id(value) not in self.without_contents:
            return value
        self.stop("reads the items of np.broadcast")
        empty, args = self.without_contents[id(value)]
        if type(args) is tuple:
            args = np.broadcast(*map(self.materialise, args))
            self.without_contents[id(value)] = (empty, args)  # keep the identity, because it may be iterated
        return args

    def flags_without_contents(self, array: Any) -> Any:
        """The flags of a traced array; the real flags object is made when other code may see it."""
        empty = array.flags
        self.without_contents[id(empty)] = (empty, array)
        return empty

    def flags_with(self, flags: Any, name: Any) -> Any:
        """The object that has the flag of this name: the real array's flags unless the traced array knows it."""
        if id(flags) in self.without_contents and str(name).lower() not in KNOWN_FLAGS:
            self.stop(f"reads the flag {name} of an array")
            return self.real_flags(flags)
        return flags

    def real_flags(self, value: Any) -> Any:
        """The flags of the real array if `value` is a stand-in for them, otherwise `value`."""
        found = self.without_contents.get(id(value))
        return value if found is None else self.materialise(found[1]).flags


# Flags that follow from strides, guards and types; whether an array owns its memory does not.
KNOWN_FLAGS = frozenset(
    "c c_contiguous contiguous f f_contiguous fortran fnc forc farray fa carray ca behaved b a aligned w writeable".split()
)
FRAMES = frozenset({types.FrameType, types.TracebackType})  # of captured code, where its names have traced values
HELD = frozenset(cls for cls, row in ROWS.items() if not row.is_memory)  # containers that may hold traced values
FILLED = (types.FunctionType, slice)  # may hold traced values, although operators take them without inspection
ATOMS = deaths.WITHOUT_REFERENTS - {object}  # hold nothing that a call could have made


class Materialiser:
    """Makes values real. Values that share an object still share it afterwards, also those that were made real before."""

    def __init__(self, effects: Effects) -> None:
        self.effects, self.paced = effects, effects.tracer.paced
        self.made: dict[int, tuple[Any, Any]] = {}  # id -> the value and its replacement

    def of(self, value: Any) -> Any:
        """The value with everything traced materialised; containers made in the call are changed in place."""
        cls = type(value)
        if cls is Flat:
            return value.real(self)
        if cls is TracedBytes:
            return value.value
        if cls is Traced:
            return self.effects.arrays.real(value)
        if cls is Draw:
            return value.real()
        if cls in METHODS_IN_C and type(value.__self__) in HELD:
            self.of(value.__self__)  # a method of a container
        if (cls in FREE_TYPES and cls not in FILLED) or cls is np.ndarray or is_a(value, type):
            return value
        if is_internal(cls) and cls not in OPENED:
            return value  # a compiled function: its state is not the call's
        if id(value) not in self.made:
            self.made[id(value)] = (value, value)  # for a container that contains itself
            self.made[id(value)] = (value, self.make(value))
        return self.made[id(value)][1]

    def make(self, value: Any) -> Any:
        """The replacement of an object, or the object itself with replaced contents."""
        cls = type(value)
        if is_record(cls):
            return self.record(value)
        if cls is slice:
            return slice(*map(self.of, bounds_of(value)))
        if cls is np.broadcast:
            return self.effects.filled(value)
        if cls is FLAGS:
            return self.effects.real_flags(value)
        if cls is types.FunctionType:
            return self.plain_function(value)
        if cls is types.MethodType:
            return self.method(value)
        if self.effects.sources.source_of(value) is not None:
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
            return self.effects.escapes.escape(self, value)
        else:
            self.fill(value)
            self.fill_held(value)
        return value

    def fill_held(self, value: Any) -> None:
        """Materialise, in place, containers that an object holds in its C part: a view's dict, the arguments of an
        exception.
        """
        if is_a(value, BaseException):
            value.args = self.of(value.args)
        if type(value) not in HELD:
            for part in gc.get_referents(value):
                if type(part) in HELD:
                    self.of(part)

    def record(self, value: Any) -> Any:
        """A tuple: its items cannot be set, its attributes can."""
        items = [self.of(v) for v in value]
        if own := attributes_of(value):
            self.fill(own)
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        if (known := self.effects.remade.get(id(value))) is not None:
            return known[1]
        real = remade(value, items)
        if not self.effects.arrays.is_over:
            self.effects.note_tuple(value, real)
        return real

    def method(self, value: types.MethodType) -> types.MethodType:
        """A bound method: its parts cannot be set."""
        function, owner = self.of(value.__func__), self.of(value.__self__)
        same = function is value.__func__ and owner is value.__self__
        return value if same else types.MethodType(function, owner)

    def partial(self, value: Any) -> Any:
        """A partial made in this call: its parts cannot be set."""
        parts = [value.func, *value.args, *value.keywords.values()]
        real = [self.of(part) for part in parts]
        if all(a is b for a, b in zip(real, parts, strict=True)):
            return value
        count = 1 + len(value.args)
        named = dict(zip(value.keywords, real[count:], strict=True))
        return functools.partial(*real[:count], **named)  # type: ignore[misc, operator]

    def fill(self, value: Any) -> None:
        """Materialise, in place, the contents of an object made in this call. Other code may have it from here on."""
        known, handed_out = self.effects.sources.known, self.effects.handed_out
        if self.effects.arrays.is_over or id(value) in handed_out:
            return self.fill_parts(value)
        is_new = id(value) not in known
        self.effects.sources.note_opaque(value)  # before its contents, which may refer to it
        handed_out.add(id(value))
        try:
            return self.fill_parts(value)
        except BaseException:  # a region's run is given up: other code does not have it yet
            handed_out.discard(id(value))
            if is_new:
                known.pop(id(value), None)
            raise

    def fill_parts(self, value: Any) -> None:
        """Materialise, in place, the contents of an object."""
        base = base_of(type(value))
        if row_of(value).is_memory:
            return
        if is_a(value, dict):
            self.fill_keys(value)
            self.fill_values(value)
            for name in ROWS[base].held:
                setattr(value, name, self.of(getattr(value, name)))
            if attributes := attributes_of(value):
                self.fill(attributes)
        elif is_a(value, set):
            _core.exchange_items(value, [self.of(v) for v in self.paced(set.__iter__(value))])
        elif base is not None and not ROWS[base].is_memory:
            if ATOMS.issuperset(map(type, value)):  # of millions of numbers none is looked at alone
                return
            for i, item in enumerate(self.paced([*value])):
                if (new := self.of(item)) is not item:
                    base.__setitem__(value, i, new)
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
        """Materialise the keys of a dict."""
        if ATOMS.issuperset(map(type, value)):
            return
        keys = [self.of(key) for key in self.paced(value)]
        if not all(a is b for a, b in zip(keys, value, strict=True)):
            items = list(value.values())
            plain_class(value).clear(value)
            plain_class(value).update(value, zip(keys, items, strict=True))

    def fill_values(self, value: dict[Any, Any]) -> None:
        """Materialise the values of a dict. Keys with a hash of the user's are not hashed again: `fromkeys` and `update` of
        dicts copy the hashes.
        """
        if ATOMS.issuperset(map(type, value.values())):
            return
        real = {k: new for k, item in enumerate(self.paced(value.values())) if (new := self.of(item)) is not item}
        if not real:
            return
        if hooked_in(value) is None:
            for k, key in enumerate(list(value)):
                if k in real:
                    plain_class(value).__setitem__(value, key, real[k])
            return
        keys = dict.fromkeys(value)
        for k, item in reversed([*enumerate(value.values())]):
            dict.update(value, dict.fromkeys(keys, real.get(k, item)))
            keys.popitem()

    def fill_slot(self, value: Any, slot: Any) -> None:
        try:
            item = slot.__get__(value)
            new = self.of(item)
            if new is not item:
                slot.__set__(value, new)
        except (AttributeError, TypeError):
            return

    def plain_function(self, fn: types.FunctionType) -> Any:
        """A function made in this call, for use outside of it: its scope only does what Python does."""
        around = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        if not any(name.startswith(OWN_PREFIX) for name in around):
            if self.effects.sources.source_of(fn) is None:
                self.fill_function(fn)
            return fn
        scope = around[STAGE].cell_contents if STAGE in around else None
        if scope is not None and getattr(scope.stage, "tracer", None) is not self.effects.tracer:
            return fn  # made by an earlier call
        if id(fn) in self.effects.given:
            return self.effects.given[id(fn)][0]
        cells = []
        for name, cell in around.items():
            cells.append(types.CellType(self.effects.plain_hooks.like(cell.cell_contents)) if name == STAGE else cell)
        defaults = fn.__defaults__ and self.of(fn.__defaults__)
        new = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, defaults, tuple(cells))
        if fn.__kwdefaults__:
            new.__kwdefaults__ = {k: self.of(v) for k, v in fn.__kwdefaults__.items()}
        new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
        self.fill(fn.__dict__)
        new.__dict__ = fn.__dict__  # both functions share one dict, so that an attribute set on either is seen on both
        self.annotate(new, fn)
        if not self.effects.arrays.is_over:
            self.effects.given[id(fn)] = (new, fn)
        self.fill_cells(new)
        return new

    def fill_function(self, fn: types.FunctionType) -> None:
        """Materialise, in place, what a function refers to that needs nothing of cinductor's."""
        self.fill_cells(fn)
        if fn.__defaults__ and (defaults := self.of(fn.__defaults__)) is not fn.__defaults__:
            fn.__defaults__ = defaults
        if fn.__kwdefaults__:
            self.fill(fn.__kwdefaults__)
        self.fill(fn.__dict__)
        self.annotate(fn, fn)

    def annotate(self, new: types.FunctionType, fn: types.FunctionType) -> None:
        """Copy fn's annotations and, if this Python has them, its type parameters to new. Lazily evaluated
        annotations (3.14) stay lazy, because they may refer to later definitions.
        """
        waiting = getattr(fn, "__annotate__", None)
        if waiting is None:
            new.__annotations__ = fn.__annotations__
            self.fill(new.__annotations__)
        else:
            new.__annotate__ = self.of(waiting)  # type: ignore[attr-defined]
            self.fill_cells(waiting)
        if hasattr(fn, "__type_params__"):
            new.__type_params__ = fn.__type_params__  # type: ignore[attr-defined]

    def fill_cells(self, fn: Any) -> None:
        """Materialise the values of the names that a function shares with others."""
        names = getattr(getattr(fn, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(fn, "__closure__", None) or (), strict=False):
            try:
                item = cell.cell_contents
            except ValueError:  # an empty cell
                continue
            if name != STAGE and (new := self.of(item)) is not item:
                cell.cell_contents = new
