"""Saved calls as lines of text, and the names of the objects in them.

A line is a letter and a value; a tuple or list is followed by the lines of its items:

    N T F E M V       None, True, False, ..., no value, NumPy's own for no value
    i f s b           an int; a float or complex number, by its bits; a text; bytes
    t l               a tuple, a list, with its number of items
    D n               a dtype; a NumPy number
    g o k             the function's namespace; the function itself; one of its cells, by number
    m v               a module; a module's namespace
    @                 an object of NumPy, Python or this package, by module and name
    w                 NumPy's implementation function that such a function dispatches to
    u                 a function of the user, by module and name, whose code a check compares
    a                 the value of a source, by the source's number
    C                 a closure made by this package: the position of its code, then its cells

Other objects are not saved. Each name is looked up in the process that reads it, and compared.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base import deferred
from ..base.class_lookup import HEAP, is_a
from ..base.user_frame import PACKAGE

UNKNOWN = object()  # the value of a source that only a call has
DEFAULTS = ("__defaults__", "__kwdefaults__")
KEPT_SOURCES = ("arg", "global", "cell", "attr", "item", "const", "address")
SINGLES: dict[str, Any] = {
    **{"N": None, "T": True, "F": False, "E": ..., "M": _core.MISSING, "V": np._NoValue},
    **{"!": deferred.DeferredChoice, "?": deferred.choose},
}
LETTERS = {id(value): letter for letter, value in SINGLES.items()}
NUMPYS = os.path.dirname(np.__file__) + os.sep
# Objects besides classes that may be referred to by module and name.
NAMED = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum))
CLOSURES = "cinductor.numpy."  # modules whose closures can be saved, with the values of their cells
LOCALS = "<locals>."
# Exceptions raised when a malformed line is read.
UNREADABLE = (StopIteration, ValueError, TypeError, LookupError, AttributeError, OverflowError)


class NotSaved(Exception):
    """The call is not saved, or a saved one does not fit this process."""


# --- names for objects ----------------------------------------------------------------------------


def value_of(source: tuple[Any, ...], values: list[Any], bound: tuple[Any, ...]) -> Any:
    """The value of a source in this process, if that runs no code of the user; values: of earlier sources."""
    kind, *parts = source
    if kind == "arg":
        return bound[parts[0]]
    if kind == "const":
        return parts[0]
    if kind == "global":
        return parts[0].get(parts[1], UNKNOWN)
    if kind == "attr" and type(values[parts[0]]) is types.ModuleType:
        return vars(values[parts[0]]).get(parts[1], UNKNOWN)
    if kind == "attr" and type(values[parts[0]]) is types.FunctionType and parts[1] in DEFAULTS:
        return getattr(values[parts[0]], parts[1])
    if kind == "item" and type(values[parts[0]]) in (tuple, dict) and type(parts[1]) in (int, str):
        try:
            return values[parts[0]][parts[1]]
        except LookupError:
            pass
    if kind == "cell":
        try:
            return parts[0].cell_contents
        except ValueError:
            pass
    return UNKNOWN


def module_at(name: Any) -> Any:
    """An imported module, or one of NumPy's own, which NumPy imports on demand."""
    if type(name) is not str:
        return None
    if name.startswith("numpy.") and name not in sys.modules and "._" not in name:
        try:
            importlib.import_module(name)
        except ImportError:
            return None
    return sys.modules.get(name)


def namespace(name: Any) -> dict[str, Any] | None:
    """The names of an imported module."""
    module = module_at(name)
    return None if module is None else vars(module)


def find(module: Any, name: Any) -> Any:
    """The object with this name in the module, or None."""
    found: Any = module_at(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def where_it_stands(value: Any, is_original: Callable[[str, Any], bool]) -> str | None:
    """Module and name of an object, if it may be referred to by these; else None."""
    if type(value) not in NAMED and not is_a(value, type):
        return None  # reading its name might run code of the user
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    for module in (getattr(value, "__module__", None), "numpy", "builtins"):
        if type(module) is not str or type(name) is not str or module not in sys.modules:
            continue
        # Objects of capture are never saved, because that would import it.
        if module.startswith("cinductor.capture") or not is_original(module, value):
            continue
        if find(module, name) is value:
            return f"{module} {name}"
    return None


def found_at(place: str, is_it: Callable[[str, Any], bool]) -> Any:
    """The object with this module and name, if it is still the same; else None."""
    found = find(*place.split())
    return found if where_it_stands(found, is_it) == place else None


def where_it_is_inside(value: Any) -> str | None:
    """Module and name of the implementation that a NumPy function calls after it dispatched `__array_function__`."""
    if type(value) is not types.FunctionType or str(value.__module__).partition(".")[0] != "numpy":
        return None
    outer = find(value.__module__, value.__qualname__)
    return where_it_stands(outer, is_original) if getattr(outer, "_implementation", None) is value else None


def place_of_closure(value: Any) -> str | None:
    """Module, path and line of a closure's code, if these identify it except for its cells."""
    if type(value) is not types.FunctionType or value.__defaults__ or value.__kwdefaults__:
        return None
    module, code = str(value.__module__), value.__code__
    place = f"{module} {value.__qualname__.replace(LOCALS, '')} {code.co_firstlineno}"
    return place if module.startswith(CLOSURES) and code_at(place) is code else None


def code_at(place: str) -> types.CodeType | None:
    """The code of a function nested in other functions of a cinductor module."""
    module, path, line = place.split()
    if not module.startswith(CLOSURES):
        return None
    try:
        names = vars(importlib.import_module(module))
    except ImportError:
        return None
    first, *inner = path.split(".")
    code = getattr(names.get(first), "__code__", None)
    for name in inner:
        held = [c for c in getattr(code, "co_consts", ()) if type(c) is types.CodeType and c.co_name == name]
        exact = [c for c in held if c.co_firstlineno == int(line)]
        code = exact[0] if len(exact) == 1 else held[0] if len(held) == 1 else None
    return code if inner and code is not None and code.co_firstlineno == int(line) else None


def is_original(module: str, value: Any) -> bool:
    """True if it is an object that Python, NumPy or this package has made, with its original class, name and file."""
    package = module.partition(".")[0]
    value = value._implementation if type(value) is type(np.sum) else value  # type: ignore[attr-defined]
    cls = type(value)
    if cls is types.FunctionType:
        return str(value.__code__.co_filename).startswith((PACKAGE, NUMPYS))
    if package in ("numpy", "cinductor"):
        return cls in (np.ufunc, types.BuiltinFunctionType) or is_a(value, type)
    is_static = is_a(value, type) and not value.__flags__ & HEAP
    return (cls is types.BuiltinFunctionType or is_static) and package in sys.stdlib_module_names


def is_users(module: str, value: Any) -> bool:
    """True for a function whose code a check compares."""
    return type(value) is types.FunctionType


# --- code ------------------------------------------------------------------------------------------


def digest_of(code: types.CodeType) -> str:
    """A hash of a code object with its constants and lines."""
    parts: list[str] = []
    add_code(parts, code)
    return _core.sha256("\n".join(parts).encode("utf-8", "surrogatepass"))


def add_code(parts: list[str], code: types.CodeType) -> None:
    parts += [code.co_code.hex(), code.co_linetable.hex(), getattr(code, "co_exceptiontable", b"").hex()]
    numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    parts.append(repr((*numbers, *names, code.co_name, code.co_filename, code.co_firstlineno)))
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            add_code(parts, constant)
        elif type(constant) is frozenset:  # the order of a frozenset differs between processes
            parts.append(f"frozenset {sorted(map(repr, constant))}")
        else:
            parts.append(repr(constant))


# --- a call as lines of text ----------------------------------------------------------------------


class LineWriter:
    """Writes values as lines; fn: the compiled function. Raises NotSaved."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.lines: list[str] = []
        self.sources: list[tuple[Any, ...]] = []
        self.values: list[Any] = []  # values of the sources
        self.known: set[int] = set()  # ids of functions whose code a check compares

    def put(self, *values: Any) -> None:
        """Append the lines of values: a letter and a value, then the lines of the items."""
        _core.put_lines(self.lines, values, LETTERS, self.name_of)

    def name_of(self, value: Any) -> str:
        """The line of an object that is neither an int nor a tuple or list: of most its name."""
        cls = type(value)
        if type(value) is str:
            return "s" + value.replace("\\", "\\\\").replace("\n", "\\n")
        if cls in (float, complex):  # by their bits: a NaN has a payload
            return f"f{np.array(value).dtype.str} {np.array(value).tobytes().hex()}"
        if cls is bytes:
            return f"b{value.hex()}"
        if is_a(value, np.dtype) and value.isbuiltin == 1:
            return f"D{value.str}"
        if is_a(value, np.generic) and value.dtype.isbuiltin == 1 and value.dtype.kind in "biufc":
            return f"n{value.dtype.str} {value.tobytes().hex()}"
        if value is self.fn.__globals__:
            return "g"
        if value is self.fn:
            return "o"
        named = value if cls is dict else vars(value) if cls is types.ModuleType else {}
        name = named.get("__name__")
        if cls is dict and value is namespace(name):
            return f"v{name}"
        if cls is types.ModuleType and sys.modules.get(value.__name__) is value:
            return f"m{name}"
        if cls is types.CellType:
            return f"k{self.number_of_cell(value)}"
        if (place := where_it_stands(value, is_original)) is not None:
            return f"@{place}"
        if (place := where_it_is_inside(value)) is not None:
            return f"w{place}"
        if (place := place_of_closure(value)) is not None:
            return self.closure(value, place)
        if cls is not types.FunctionType or id(value) not in self.known:
            raise NotSaved
        place = where_it_stands(value, is_users)
        return self.source_of(value) if place is None else f"u{place}"

    def closure(self, value: types.FunctionType, place: str) -> str:
        """A function that one of this package has made: where its code is, and what it was made with."""
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        outside, self.lines = self.lines, [f"C{place} {len(cells)}"]
        for held in cells:  # the dict of keywords belongs to the function
            is_dict = type(held) is dict
            self.put(is_dict, [*held.keys(), *held.values()] if is_dict else held)
        own, self.lines = self.lines, outside
        return "\n".join(own)

    def number_of_cell(self, value: types.CellType) -> int:
        """The index of a cell among the function's own."""
        for number, cell in enumerate(self.fn.__closure__ or ()):
            if cell is value:
                return number
        raise NotSaved

    def source_of(self, value: Any) -> str:
        """A source by which a later call reaches an object."""
        for number, (source, found) in enumerate(zip(self.sources, self.values, strict=True)):
            if found is value and source[0] != "const":
                return f"a{number}"
        raise NotSaved


class CallWriter(LineWriter):
    """Writes one call. Raises NotSaved."""

    def __init__(self, fn: types.FunctionType, bound: tuple[Any, ...], parts: tuple[Any, ...]) -> None:
        super().__init__(fn)
        self.sources, checks = parts[:2]
        for source in self.sources:
            if source[0] not in KEPT_SOURCES:
                raise NotSaved
            self.values.append(value_of(source, self.values, bound))
        self.known = {id(fn)} | {id(self.values[c[0]]) for c in checks if c[1] in CODED}
        checks = [with_digest(check) if check[1] in CODED else check for check in checks]
        self.put(len(self.sources), *self.sources, checks, *parts[2:])


CODED = ("body", "function")  # checks of a function's code


def with_digest(check: tuple[Any, ...]) -> tuple[Any, ...]:
    """The check with the digest of the code in place of the code, and defaults as tuples."""
    if check[1] == "function":
        return (*check[:2], digest_of(check[2]), *check[3:])
    code, defaults, named = check[2]
    return (*check[:2], digest_of(code), defaults, as_tuple(named))


def as_tuple(named: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if named is None else tuple(named.items())


class LineReader:
    """Reads values. Raises NotSaved if something is missing or has changed."""

    def __init__(self, fn: Any, text: str) -> None:
        self.fn, self.lines = fn, iter(text.split("\n"))
        self.values: list[Any] = []

    def take(self) -> Any:
        """Read the next value."""
        line = next(self.lines)
        letter, text = line[0], line[1:]
        if letter in SINGLES:
            return SINGLES[letter]
        if letter in "tl":
            items = [self.take() for _ in range(int(text))]
            return tuple(items) if letter == "t" else items
        found = READERS[letter](self, text)
        if found is None or found is UNKNOWN:
            raise NotSaved
        return found

    def closure(self, text: str) -> Any:
        """Make a closure of this package with its cells."""
        place, _, count = text.rpartition(" ")
        code = code_at(place)
        if code is None or len(code.co_freevars) != int(count):
            raise NotSaved
        cells = []
        for _ in code.co_freevars:
            is_dict, held = self.take(), self.take()
            half = len(held) // 2 if is_dict else 0
            cells.append(types.CellType(dict(zip(held[:half], held[half:], strict=True)) if is_dict else held))
        space = vars(importlib.import_module(place.split()[0]))
        return types.FunctionType(code, space, code.co_name, None, tuple(cells))


class CallReader(LineReader):
    """Reads one call."""

    def __init__(self, fn: types.FunctionType, bound: tuple[Any, ...], text: str) -> None:
        super().__init__(fn, text)
        sources: list[Any] = []
        for _ in range(self.take()):
            sources.append(self.take())
            self.values.append(value_of(sources[-1], self.values, bound))
        checks = [self.with_own(check) for check in self.take()]
        inputs, pieces, graph, self.symbols, relations, self.calls, self.sizes = [self.take() for _ in range(7)]
        self.parts = (sources, checks, inputs, pieces, graph, relations)

    def with_own(self, check: tuple[Any, ...]) -> tuple[Any, ...]:
        """The check with the function's current code, which must be unchanged, or with the current number or text."""
        if check[0] == "names" and type(check[1]) is dict:
            return (*check[:2], tuple(own_items(check[1], check[2])))
        if check[1] == "is" and are_same(check[2], self.values[check[0]]):
            return (*check[:2], self.values[check[0]])
        if check[1] not in ("body", "function"):
            return check
        fn = self.values[check[0]]
        if type(fn) is not types.FunctionType or digest_of(fn.__code__) != check[2]:
            raise NotSaved
        if check[1] == "function":
            return (*check[:2], fn.__code__, *check[3:])
        if not are_same(check[3], fn.__defaults__) or not are_same(check[4], as_tuple(fn.__kwdefaults__)):
            raise NotSaved
        return (*check[:2], (fn.__code__, fn.__defaults__, fn.__kwdefaults__))


READERS: dict[str, Callable[[LineReader, str], Any]] = {
    "i": lambda r, text: int(text),
    "f": lambda r, text: np.frombuffer(bytes.fromhex(text.split()[1]), text.split()[0])[0].item(),
    "s": lambda r, text: "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\")),
    "b": lambda r, text: bytes.fromhex(text),
    "D": lambda r, text: np.dtype(text),
    "n": lambda r, text: np.frombuffer(bytes.fromhex(text.split()[1]), text.split()[0])[0],
    "g": lambda r, text: r.fn.__globals__,
    "o": lambda r, text: r.fn,
    "v": lambda r, text: namespace(text),
    "m": lambda r, text: module_at(text),
    "k": lambda r, text: (r.fn.__closure__ or ())[int(text)],
    "a": lambda r, text: r.values[int(text)],
    "@": lambda r, text: found_at(text, is_original),
    "w": lambda r, text: getattr(found_at(text, is_original), "_implementation", None),
    "u": lambda r, text: found_at(text, is_users),
    "C": lambda r, text: r.closure(text),
}


def own_items(space: dict[str, Any], pairs: tuple[Any, ...]) -> Iterator[Any]:
    """Names and values of a module; numbers and texts are the current objects."""
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        yield name
        found = space.get(name) if name is not None else None
        yield found if are_same(value, found) else value


def are_same(a: Any, b: Any) -> bool:
    """True for the same object, or numbers or texts of equal class and value, also inside of tuples."""
    if a is b or type(a) is not type(b):
        return a is b
    if type(a) is tuple:
        return len(a) == len(b) and all(map(are_same, a, b))
    is_plain = type(a) in (int, float, complex, str, bytes) or is_a(a, np.generic)
    return is_plain and repr(a) == repr(b)


# --- library calls alone --------------------------------------------------------------------------


def calls_as_text(calls: list[Any]) -> str:
    """The callees of library calls, as in `Program.library_calls`; "" if one of them has no name.
    """
    writer = LineWriter(make_known)  # its names are used nowhere else
    try:
        writer.put(calls)
    except NotSaved:
        return ""
    return "\n".join(writer.lines)


def make_known(text: str) -> None:
    """Library calls that were written down are known from here on. Raises ValueError where one is none."""
    try:
        for call in LineReader(make_known, text.rstrip("\n")).take():
            _core.add_extern(*call)
    except (NotSaved, *UNREADABLE) as error:
        raise ValueError(f"these are no library calls that this version has: {error!r}") from None
