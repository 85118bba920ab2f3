"""Records where the values of a call came from, and the guards of later calls.

A value that the function sees is an argument, a guarded read (with its source), the result of a pure function, or
unknown. `known` has the objects that outlive the call, by id, with the source that reaches them (OPAQUE if there
is none); an object that is not in it was made in this call. A source is the index of a row that says how to find
the value from the arguments. A guard is a check of a source.
"""

from __future__ import annotations

import abc
import enum
import itertools
import types
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..calls.dynamic import place_of
from .objects import (
    FREE_TYPES,
    IDENTITY_TYPES,
    MISSING,
    NUMBER_TYPES,
    OPAQUE,
    VALUE_TYPES,
    find_in_class,
    has_hooks,
    is_mutable,
    is_plain_getter,
    is_standard,
    is_users,
    own_place,
)

# Values whose guards by value do not determine their identity.
COPIED: frozenset[Any] = (VALUE_TYPES | NUMBER_TYPES | frozenset(np.sctypeDict.values())) - {bool, type(None), type(Ellipsis), type(NotImplemented)}
# Numbers that do not equal themselves if they are NaN or NaT.
INEXACT = frozenset({float, complex, np.datetime64, np.timedelta64, *(t for t in set(np.sctypeDict.values()) if issubclass(t, np.inexact))})
# Attributes through which functions and partials are inspected.
PARTS = frozenset({"func", "args", "keywords", "__defaults__", "__kwdefaults__"})

EMPTY_CELL, CONTENTS = types.CellType(), types.CellType.__dict__["cell_contents"]


def function_of(value: Any) -> Any:
    """The function that a compiled function was made of; other values unchanged. Its calls are captured as the function's."""
    function = getattr(value, "__wrapped__", None) if type(value) is _core.CompiledFunction else None
    return function if type(function) is types.FunctionType else value


class Sources:
    """The sources and guards of one call; names: of the parameters."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names
        self.rows: list[tuple[Any, ...]] = []
        self.source_ids: dict[Any, int] = {}
        self.checks: list[tuple[Any, ...]] = []
        self.checked: set[Any] = set()
        self.known: dict[int, tuple[Any, int]] = {}
        self.hidden: dict[int, Any] = {}  # by id of a list: the buffer that has its items
        self.entered: dict[int, tuple[Any, Any]] = {}  # source -> the value, and the frame's version of it
        self.repeated: set[int] = set()  # those of `entered` whose object is in `known` with another source
        # By id: dicts of modules and classes in which names were looked up, with the results.
        self.namespaces: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self.objects: list[int] = []  # sources of objects that are not guarded by identity
        self.numbers: list[int] = []  # sources of numbers that may be NaN
        self.sees_objects = False  # identity of these objects may matter
        self.sees_process = False  # a hash or an order was read that another process does not have
        self.renewed: set[int] = set()  # sources of functions that another call may replace

    def source(self, kind: str, *parts: Any) -> int:
        """The index of a source, which is added at its first use."""
        if kind == "item":
            key: Any = (kind, parts[0], type(parts[1]), parts[1])
        elif kind in ("attr", "closure", "address"):
            key = (kind, *parts)
        elif kind == "global":
            key = (kind, id(parts[0]), parts[1])
        elif kind == "made":
            key = (kind, len(self.rows))
        else:
            key = (kind, id(parts[0]) if kind != "arg" else parts[0])
        found = self.source_ids.get(key)
        if found is None:
            found = len(self.rows)
            self.rows.append((kind, *parts))
            self.source_ids[key] = found
        return found

    def is_given(self, source: int) -> bool:
        """True if the source is an argument, or a part of one that a caller may rebuild as easily: the next call may
        have an equal object instead.
        """
        kind, *parts = self.rows[source] if source >= 0 else ("const",)
        if kind in ("item", "closure") or (kind == "attr" and parts[1] in PARTS):
            return self.is_given(parts[0])
        return kind == "arg"

    def source_of_free(self, fn: types.FunctionType, name: str) -> int:
        """The source of a name of a function that encloses fn."""
        number = fn.__code__.co_freevars.index(name)
        source = self.source_of(fn)
        if source in self.renewed:
            return self.source("closure", source, number, name)
        return self.source("cell", fn.__closure__[number], name)  # type: ignore[index]

    def check(self, *check: Any) -> None:
        """Add a guard."""
        self.checks.append(check)

    def check_once(self, source: int, kind: str, *rest: Any) -> None:
        """Add a guard of that kind on that source unless there is one."""
        key = (source, kind)
        if key not in self.checked:
            self.checked.add(key)
            self.checks.append((source, kind, *rest))

    def note_name(self, space: Any, name: Any, value: Any) -> None:
        """Guard the value of a name in a module's dict or a class; MISSING means that there is none. Without a name:
        a function of the namespace must return a false value. With a name and a class: the lookup of super().
        """
        self.namespaces.setdefault(id(space), (space, {}))[1][name] = value

    def check_all(self) -> None:
        """Add the guards of all names, and, if identity matters, that objects and NaNs are distinct as in this call."""
        for space, found in self.namespaces.values():
            self.checks.append(("names", space, tuple(itertools.chain(*found.items()))))
        apart = [*(self.objects if self.sees_objects else ()), *self.numbers]
        if len(apart) > 1:
            self.checks.append(("apart", tuple(apart)))

    def class_attr(self, cls: type, name: str, after: type | None = None) -> Any:
        """The attribute of a class as stored in its dictionaries, or MISSING; guarded. after: as for `find_in_class`.
        For a compiled function, the function that it was made of.
        """
        found = find_in_class(cls, name, after)
        if is_mutable(cls):
            key = name if after is None else (name, after)
            self.note_name(cls, key, _core.MISSING if found is MISSING else found)
        return function_of(found) if type(found) is _core.CompiledFunction else found

    def defines(self, cls: type, name: str) -> bool:
        """True if the class has an attribute of this name; guarded."""
        return self.class_attr(cls, name) is not MISSING

    def tells_base(self, cls: Any, base: Any) -> bool:
        """True if nothing but the MRO of a class decides whether it is a subclass of the other one; guarded. Classes can be
        registered with an ABC.
        """
        if not is_a(cls, type) or not is_mutable(cls):
            return True
        is_base = base in cls.__mro__
        self.note_name(cls, base, is_base)
        return is_base or not is_a(base, abc.ABCMeta)

    def guard_bases(self, cls: type) -> None:
        """Guard that the class has the same classes in its MRO, which decide what handles an exception of it."""
        if is_mutable(cls):
            self.check_once(self.source("attr", self.source_of_class(cls), "__mro__"), "is", cls.__mro__)

    def has_hooks(self, cls: type) -> bool:
        """True if such an object has its own methods for Python's protocols; guarded."""
        found = has_hooks(cls)
        if not found and is_users(cls):
            self.note_name(cls, None, has_hooks)
        return found

    def tells_class(self, value: Any) -> bool:
        """True if no user code decides the class that such an object reports; guarded."""
        cls = type(value)
        if cls in FREE_TYPES or cls in IDENTITY_TYPES or (is_a(value, type) and is_standard(cls)):
            return True
        if self.class_attr(cls, "__class__") is not object.__dict__["__class__"]:
            return False
        return is_plain_getter(cls, self.class_attr(cls, "__getattribute__"))

    def same_nan(self, value: Any, source: int) -> Any:
        """The frame's version of a NaN if it has one, guarded: containers take a NaN for the item that is the same object,
        and for no other. None for other numbers of classes in INEXACT.
        """
        for first, (real, new) in self.entered.items() if value != value else ():
            if real is value:
                self.check(source, "same", first)
                return new
        self.numbers.append(source)
        return None

    def guard_nan(self, value: Any, source: int) -> None:
        """Guard which NaNs are the same object as one in a container that Python reads as a whole."""
        if type(value) in COPIED and value != value and source not in self.entered:
            new = self.same_nan(value, source)
            self.enter(source, value, value if new is None else new)

    def version_of(self, value: Any) -> Any:
        """The frame's version of a NaN of the caller's; the value itself if it is another one."""
        return next((new for real, new in self.entered.values() if real is value), value)

    def original_of(self, version: Any, made: Any) -> Any:
        """The NaN of the caller's that a version stands for; `made` if there is none."""
        return next((real for real, new in self.entered.values() if new is version), made)

    def source_of_int(self, value: Any) -> int | None:
        """The source of an int that was read and is not computed."""
        if type(value) is int:
            return self.source("const", value)
        return next((s for s, (_, new) in self.entered.items() if new is value), None)

    def are_one(self, a: Any, b: Any) -> bool | None:
        """True if two numbers or texts from sources are one object, which is guarded; None if one of them has no
        source.
        """
        both = [self.sources_of_value(value) for value in (a, b)]
        if not all(both):
            return None
        is_same = self.entered[both[0][0]][0] is self.entered[both[1][0]][0]
        for first, second in itertools.product(*both):
            if first != second and (first, "one", second) not in self.checked:
                self.checked.add((first, "one", second))
                self.check(first, "same" if is_same else "other", second)
        return is_same

    def sources_of_value(self, value: Any) -> list[int]:
        """The sources of a number or text, of which Python may have several equal objects."""
        found = [s for s, (real, new) in self.entered.items() if new is value and type(real) in COPIED]
        return [s for s in found if self.rows[s][0] != "const"]

    def make(self, f: Any, source: int, *given: Any) -> Any:
        """f(value), or f() if the source is -1: each call of the program makes its own."""
        if not given and source >= 0:
            given = (self.value_of(source),)
        made = f(*given)
        self.note_made(made, f, source)
        return made

    def note_made(self, made: Any, f: Any, source: int) -> int:
        """The source of an object that f has made of another source's value."""
        number = self.source("made", f, source)
        self.known[id(made)] = (made, number)
        return number

    def value_of(self, source: int) -> Any:
        """The value of an int's source in this call."""
        kind, first = self.rows[source][:2]
        return first if kind == "const" else self.entered[source][0]

    def enter(self, source: int, value: Any, new: Any) -> None:
        """Record the value of a source, and the frame's version of it."""
        self.entered[source] = (value, new)
        if self.known.get(id(value), (None, source))[1] == source:
            self.repeated.discard(source)
        else:
            self.repeated.add(source)

    def entered_by(self, *key: Any) -> tuple[Any, Any] | None:
        """The value of the source with this key, if there is one: the original and the frame's version."""
        return self.entered.get(self.source_ids.get(key, OPAQUE))

    def place(self, source: int) -> str:
        """A source in the user's notation."""
        return place_of(self.rows, source, self.names)

    def source_of(self, value: Any) -> int | None:
        """The source that reaches an object, OPAQUE, or None for an object made in this call. A list whose items are
        in a buffer gets them first. No call makes a member of an Enum, wherever this one got it from.
        """
        if self.hidden and (hiding := self.hidden.get(id(value))) is not None:
            hiding.materialise()
        found = self.known.get(id(value))
        if found is None:
            return self.source("const", value) if is_a(value, enum.Enum) else None
        return found[1]

    def source_of_class(self, cls: type) -> int:
        """The source of a class: if no argument reaches it, the class itself."""
        source = self.source_of(cls)
        return self.source("const", cls) if source is None or source == OPAQUE else source

    def note_opaque(self, value: Any) -> None:
        """Record an object that no source reaches."""
        if id(value) not in self.known and id(value) not in self.hidden:
            self.known[id(value)] = (value, OPAQUE)

    def guard_absent(self, source: int, name: str, slot: Any = None) -> None:
        """Guard that an object has no attribute of its own with this name: none in its `__dict__`, or an empty slot."""
        source = self.source("attr", source, "__dict__") if slot is None else source
        if (source, "lacks", name) not in self.checked:
            self.checked.add((source, "lacks", name))
            self.check(source, "lacks", name if slot is None else slot)

    def guard_loss(self, value: Any, place: Any) -> None:
        """Guard that no code of the user's runs when an item or attribute of an object is replaced."""
        source = self.source_of(value)
        assert source is not None
        if not is_a(value, list | dict):
            own = own_place(value, place)
            source, place = (source, own) if type(own) is types.MemberDescriptorType else (self.source("attr", source, "__dict__"), place)
        if (source, "loses", place) not in self.checked:
            self.checked.add((source, "loses", place))
            self.check(source, "loses", place)

    def guard_empty_cells(self, fn: types.FunctionType) -> None:
        """Guard that names of functions around fn have no value: reading one raises before any hook sees it."""
        source = self.source_of(fn)
        for number, cell in enumerate(fn.__closure__ or ()) if source is not None else ():
            if cell == EMPTY_CELL:
                closure = () if source == OPAQUE else (self.source("attr", source, "__closure__"), number)
                self.guard_absent(self.source("item", *closure) if closure else self.source("const", cell), CONTENTS.__name__, CONTENTS)

    def is_read(self, source: int) -> bool:
        """True if an item or the length of a container was read."""
        is_item = any((row[0] == "item" and row[1] == source) or (row[0] == "made" and row[2] == source) for row in self.rows)
        return is_item or (source, "len") in self.checked or (source, "keys") in self.checked

    def guard_length(self, value: Any, source: int) -> None:
        """Guard the type and length of a list, tuple or set, or the keys of a dict."""
        if is_a(value, dict):
            self.check_once(source, "keys", type(value), tuple(value))
        else:
            self.check_once(source, "len", type(value), len(value))
