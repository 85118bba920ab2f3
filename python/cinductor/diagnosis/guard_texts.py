"""Guards in words: the conditions of a specialisation on a call, and the one that a call fails.

C calls `guards` and `why_not` with its guards as rows (pyext/replay/guards_text.c). The kinds of sources and checks are
those of pyext/replay/guards.def.
"""

from __future__ import annotations

import enum
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.array_flags import ALIGNED, C_CONTIGUOUS, WRITEABLE
from ..base.class_lookup import is_a, module_of
from ..base.records import NamedTuple
from ..base.signals import pass_on

LONGEST, FIRST, LAST = 60, 40, 15  # characters of a value
SIGNS = ("==", "!=", "<=", "<")
SHOWN = (int, float, complex, str, type(None), np.generic)  # classes of values that are written out

Row = tuple[Any, ...]


class Check(NamedTuple):
    """A condition; the last six describe an array. source: -1 for a condition on several things."""

    kind: str
    source: int
    a: Any
    b: Any
    other: int
    length: int
    dtype: Any
    sizes: Row
    strides: Row
    looks_at_strides: bool
    flags: int
    wanted: int


class Failure(NamedTuple):
    """The condition that a call fails, by number, the property in which the value differs, and two numbers."""

    what: str
    number: int
    where: tuple[str, int] = ("", 0)
    value: Any = None
    first: int = 0
    second: int = -1


def guards(rows: Row) -> list[str]:
    """All conditions of a specialisation."""
    known = Guards(*rows)
    return [known.text(Check(*check)) for check in known.checks] + list(map(known.placed, known.relations))


def why_not(rows: Row, failure: Row) -> str:
    """The condition that a call fails, with the value that it has."""
    known, failed = Guards(*rows), Failure(*failure)
    if failed.what == "source":
        return f"{known.source(failed.number)} is missing"
    if failed.what == "relation":
        return known.relation_failure(known.relations[failed.number], failed.first, failed.second)
    return known.check_failure(Check(*known.checks[failed.number]), failed)


class Guards:
    """The guards of one specialisation; names: of the function's parameters, where: its line."""

    def __init__(self, names: Any, where: Any, sources: list[Row], symbols: list[Row], checks: list[Row], relations: list[Row]) -> None:
        self.names: tuple[Any, ...] = names or ()
        self.where: str = where or ""
        self.sources, self.checks, self.relations = sources, checks, relations
        self.symbols = {name: (source, axis) for name, source, axis, *_ in symbols}

    # --- sources and sizes ---

    def source(self, number: int) -> str:
        """A source as the user would write it."""
        kind, start, value, key = self.sources[number]
        if kind == "arg":
            return str(self.names[start]) if start < len(self.names) else f"argument {start}"
        if kind == "global":
            return f"global {key}"
        if kind == "cell":
            return "a closure's variable" if key is None else str(key)
        if kind in ("const", "made"):
            return f"{name_of_constant(value)}{'(...)' if kind == 'made' else ''}"
        outer = self.source(start)
        if kind == "attr" and key == "__self__" and type(self.sources[start][2]) is types.MethodType:
            return "self"
        texts = {"attr": f"{outer}.{key}", "item": f"{outer}[{key!r}]", "closure": f"{key} in {outer}", "address": f"id({outer})"}
        return texts[kind]

    def symbol(self, name: str) -> str:
        """The size or int that a symbol stands for."""
        source, axis = self.symbols.get(name, (-1, 0))
        if not 0 <= source < len(self.sources):
            return name
        if axis <= _core.PADDING_AXIS:
            return f"{self.source(source)}.padding[{_core.PADDING_AXIS - axis}]"
        return f"{self.source(source)}.shape[{axis}]" if axis >= 0 else self.source(source)

    def size(self, size: Any, defined: str = "any") -> str:
        """A size: a number, the text of an expression, or None for the value of a symbol."""
        if size is None:
            return defined
        return re.sub(r"[A-Za-z_]\w*", lambda found: self.symbol(found[0]), str(size))

    def sizes(self, sizes: Row) -> str:
        """Sizes as a tuple."""
        return f"({', '.join(map(self.size, sizes))}{',' * (len(sizes) == 1)})"

    def place(self, file: str = "", line: int = 0) -> str:
        """The line that made a guard, if it is known, else that of the function."""
        return f"{os.path.basename(file)}:{line}" if file else self.where

    def was_is(self, what: str, before: str, place: str, now: str) -> str:
        return f"{what} was {before} when compiled{' at ' * bool(place)}{place}, is {now} now"

    # --- checks ---

    def text(self, check: Check) -> str:
        """A condition in words."""
        wanted = WANTED[check.kind](self, check)
        if check.source < 0:
            return wanted
        return f"{self.source(check.source)} is {wanted}" + (f" ({check.b})" if is_placed(check) else "")

    def check_failure(self, check: Check, failed: Failure) -> str:
        if check.source < 0:
            return names_failure(check, failed.first) if check.kind == "names" else BROKEN[check.kind]
        name, value = self.source(check.source), failed.value
        if check.kind == "array" and failed.where[0] != "class":
            return self.array_failure(check, failed, name)
        place = str(check.b) if is_placed(check) else self.where
        return self.was_is(name, WANTED[check.kind](self, check), place, FOUND.get(check.kind, found_value)(check, failed.where[0], value))

    def layout(self, check: Check) -> str:
        if check.looks_at_strides:
            return f"strides {self.sizes(check.strides)}"
        return "contiguous" if check.flags & C_CONTIGUOUS else "contiguous in Fortran order"

    def array(self, check: Check) -> str:
        writable, aligned = check.wanted & WRITEABLE, check.wanted & ALIGNED
        text = f"an array of {check.dtype}, shape {self.sizes(check.sizes)}, {self.layout(check)}"
        return text + ", writable" * bool(writable) + ", not aligned" * (not aligned)

    def array_failure(self, check: Check, failed: Failure, name: str) -> str:
        """The attribute in which an array differs."""
        array, (where, axis) = failed.value, failed.where
        if where in ("size", "one"):
            other = "" if failed.second < 0 else f" and not {failed.second}"
            before = self.size(check.sizes[axis]) if where == "size" else "more than 1"
            return self.was_is(f"{name}.shape[{axis}]", before, self.where, f"{array.shape[axis]}{other}")
        flag = {"writeable": WRITEABLE, "aligned": ALIGNED}.get(where, 0)
        what, before, now = {
            "rank": ("ndim", len(check.sizes), array.ndim),
            "dtype": ("dtype", check.dtype, array.dtype),
            "layout": ("layout", self.layout(check), f"strides {array.strides}"),
        }.get(where, (f"flags.{where}", bool(check.wanted & flag), getattr(array.flags, where, None)))
        return self.was_is(f"{name}.{what}", before, self.where, now)

    # --- relations of sizes ---

    def relation(self, row: Row) -> str:
        sign, left, right, *_ = row
        return f"{self.size(left)} {SIGNS[sign]} {self.size(right)}"

    def placed(self, row: Row) -> str:
        """A relation with its line."""
        *_, is_usual, file, line = row
        return f"{'usually ' * is_usual}{self.relation(row)} ({self.place(file, line)})" if file else self.relation(row)

    def relation_failure(self, row: Row, left: int, right: int) -> str:
        sign, first, second, _, file, line = row
        place = self.place(file, line)
        if SIGNS[sign] == "==" and is_number(second):
            return self.was_is(self.size(first), second, place, str(left))
        now = right if is_number(first) else left if is_number(second) else f"{left} and {right}"
        return f"{self.relation(row)} held when compiled{' at ' * bool(place)}{place}, and does not now: {now}"


def is_number(text: str) -> bool:
    """True for the text of a number."""
    return text.lstrip("-").isdigit()


def is_placed(check: Check) -> bool:
    """True if a check has the line that compared the value."""
    return check.kind == "equals" and check.b is not None


# --- values and classes ---


def attribute(value: Any, name: str) -> Any:
    """An attribute that functions, classes and modules have, or None. No hook of the user's is called."""
    try:
        return type.__dict__[name].__get__(value) if is_a(value, type) else object.__getattribute__(value, name)
    except AttributeError:
        return None


def name_of_class(cls: type) -> str:
    """The name of a class: with the module, if it is Python's or NumPy's own."""
    module, name = module_of(cls), str(attribute(cls, "__name__"))
    is_own = module not in ("builtins", "__main__") and module.partition(".")[0] in ("numpy", *sys.stdlib_module_names)
    return f"{module}.{name}" if is_own else name


def of_class(cls: type) -> str:
    """A value of a class."""
    name = "array" if cls is np.ndarray else name_of_class(cls)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def of_value(value: Any) -> str:
    """A value as the user would write it, shortened; its class if it cannot be written."""
    try:
        text = repr(value)
    except Exception as error:
        pass_on(error)
        return of_class(type(value))
    return f"{text[:FIRST]}...{text[-LAST:]}" if len(text) > LONGEST else text


def of_object(value: Any) -> str:
    """An object by its name."""
    if is_a(value, enum.Enum):
        return str(value)
    is_module = is_a(value, types.ModuleType)
    name = attribute(value, "__name__" if is_module else "__qualname__")
    if name is None:
        return f"the same {name_of_class(type(value))} object"
    return f"the {'module' if is_module else 'class' if is_a(value, type) else 'function'} {name}"


def of_code(code: types.CodeType) -> str:
    """A function by its name and the line of its code."""
    return f"the function {code.co_name} of {os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def name_of_constant(value: Any) -> str:
    """A function by its name, otherwise the compiled callable, whose attributes the user knows as self's."""
    name = None if type(value) is types.MethodType else attribute(value, "__qualname__")
    return "self" if name is None else str(name)


def of_lacking(g: Guards, check: Check) -> str:
    is_slot = is_a(check.a, types.MemberDescriptorType | types.GetSetDescriptorType)
    return f"an object with an empty slot {check.a.__name__}" if is_slot else f"a dict without {check.a!r}"


def of_keys(g: Guards, check: Check) -> str:
    return f"a {name_of_class(check.a)} with keys {check.b!r}" if check.b else f"an empty {name_of_class(check.a)}"


WANTED: dict[str, Callable[[Guards, Check], str]] = {
    "array": Guards.array,
    "size": lambda g, c: g.size(c.sizes[0], "an int"),
    "type": lambda g, c: of_class(c.a),
    "word": lambda g, c: "an int of 64 bits without a sign",
    "equals": lambda g, c: of_value(c.a),
    "differs": lambda g, c: f"none of {c.a!r}",
    "is": lambda g, c: of_object(c.a),
    "same": lambda g, c: f"the same object as {g.source(c.other)}",
    "other": lambda g, c: f"another object than {g.source(c.other)}",
    "outside": lambda g, c: f"no item of {g.source(c.other)}",
    "function": lambda g, c: of_code(c.a),
    "body": lambda g, c: of_code(c.a[0]),
    "len": lambda g, c: f"a {name_of_class(c.a)} of {c.length} item{'s' * (c.length != 1)}",
    "keys": of_keys,
    "lacks": of_lacking,
    "loses": lambda g, c: f"a container whose item {getattr(c.a, '__name__', c.a)!r} runs no code when it dies",
    "names": lambda g, c: names_text(c),
    "apart": lambda g, c: "no two objects or NaNs are one",
    "disjoint": lambda g, c: "arrays that are written share no memory with others",
}
BROKEN = {"apart": "two objects or NaNs are one", "disjoint": "an array that is written shares memory with another"}


# --- the value that a call has ---


def found_value(check: Check, where: str, value: Any) -> str:
    """Numbers and texts as they are, else the class."""
    return of_value(value) if is_a(value, SHOWN) else of_class(type(value))


def found_number(check: Check, where: str, value: Any) -> str:
    is_pythons = is_a(value, int | float | complex) and not is_a(value, np.generic)
    return f"the {name_of_class(type(value))} {of_value(value)}" if is_pythons else found_value(check, where, value)


def found_another(check: Check, where: str, value: Any) -> str:
    text, cls = found_value(check, where, value), type(value)
    return f"another {'array' if cls is np.ndarray else name_of_class(cls)}" if text == of_class(cls) else text


def found_object(check: Check, where: str, value: Any) -> str:
    has_name = is_a(value, enum.Enum | types.ModuleType) or attribute(value, "__qualname__") is not None
    return of_object(value) if has_name else found_another(check, where, value)


def found_function(check: Check, where: str, value: Any) -> str:
    if where == "code":
        return of_code(value.__code__)
    return found_value(check, where, value) if where == "class" else f"one with other {where}"


FOUND: dict[str, Callable[[Check, str, Any], str]] = {
    "type": found_number,
    "equals": lambda c, where, value: of_value(value) if type(value) is type(c.a) else found_value(c, where, value),
    "is": found_object,
    "same": found_another,
    "other": lambda c, where, value: "that very object",
    "outside": lambda c, where, value: "that very object",
    "function": found_function,
    "body": found_function,
    "len": lambda c, where, value: f"one of {len(value)}" if where == "length" else found_value(c, where, value),
    "keys": lambda c, where, value: found_value(c, where, value) if where == "class" else f"one with {tuple(value)!r}",
    "lacks": lambda c, where, value: "one that has it",
}


# --- names in modules and classes ---


def of_space(space: Any) -> str:
    """The name of a module or class."""
    if is_a(space, type):
        return f"class {name_of_class(space)}"
    name = space.get("__name__")
    return f"module {name}" if is_a(name, str) else "the globals"


def of_name(name: Any) -> str:
    """A name that was looked up: (name, class) for the lookup of super(), a class for a base."""
    if type(name) is tuple:
        return f"super().{name[0]}"
    return f"base {name_of_class(name)}" if is_a(name, type) else str(name)


def names_text(check: Check) -> str:
    """The names of a namespace that have a value, or those that have none."""
    space, pairs = of_space(check.a), list(zip(check.b[::2], check.b[1::2], strict=True))
    named = [(of_name(name), value) for name, value in pairs if name is not None]
    has = [name for name, value in named if value is not _core.MISSING]
    lacks = [name for name, value in named if value is _core.MISSING]
    if has:
        return f"{space} has the same {', '.join(has)}"
    if not is_a(check.a, dict):
        return f"{space} has no {', '.join(lacks)}"
    words = "is Python's own: no global has that name" if len(lacks) < 2 else "are Python's own: no global has these names"
    return f"{', '.join(lacks)} {words}"


def names_failure(check: Check, which: int) -> str:
    """The name that has changed, by the place of its pair; -1 if it has changed back."""
    if which < 0:
        return names_text(check)
    name, value = check.b[which : which + 2]
    if name is None:
        return f"{of_space(check.a)} has got special methods"
    if value is _core.MISSING and is_a(check.a, dict):
        return f"global {name} is set, and hides Python's own"
    return f"{of_name(name)} of {of_space(check.a)} is another now"
