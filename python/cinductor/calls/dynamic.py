"""Decides which sizes are symbols, from declarations and from earlier calls.

A size is a compile-time constant until it is declared dynamic (`mark_dynamic`, `dynamic=True`), or two captures of
one function have seen different ones in the same place. A place is written as by the user: "x", "x[0]",
"self.weights". The sizes that a function has seen are its `Profile`, which is stored in the disk cache, so that a
later process starts with it.

Sizes that were equal in every capture share one symbol, which the guards check. So do an int argument and an
extent that was equal to it, or less by one. A size that is 1 while a call is captured is a constant, because
broadcasting against it changes the program. A program captured at another size also accepts 1, unless a guard
refuses it.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from itertools import islice
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.signals import Replan, Signal, pass_on
from ..base.user_frame import wrong

# The key of a size: ("x:2", 0) is axis 0 of x if x has two axes, ("n", None) the int n. Strides and paddings of its
# axes are at ("x:2 stride", 0) and ("x:2 padding", 0).
Place = tuple[str, int | None]
Size = Any  # an int, or a traced one that is an expression of symbols
LARGEST_INT = 1 << 48  # a larger int argument is a number, not a size
KEPT_CAPTURES = 8
DEEPEST, MAX_ITEMS = 4, 8  # containers within each other, and their first items, whose sizes plain calls show
NUMBERS = {type(None)}  # dtypes for which no size is a symbol
VERSION = 1
SUFFIX = ".shapes"


def is_padding(place: Place) -> bool:
    """True for the key of a padding: the memory between two steps of an axis."""
    return place[0].endswith(" padding")


class Mark:
    """A declaration about one axis: kind is "dynamic", "static" or "unbacked"."""

    __slots__ = ("kind", "low", "high")

    def __init__(self, kind: str, low: int = 0, high: int | None = None) -> None:
        self.kind, self.low, self.high = kind, low, high


# Arrays cannot have attributes: id -> weak reference to the array, and its marks by axis.
_marks: dict[int, tuple[weakref.ref[np.ndarray], dict[int, Mark]]] = {}


def mark(x: Any, dim: Any, made: Mark) -> None:
    function = f"mark_{made.kind}"
    if not is_a(x, np.ndarray):
        raise TypeError(wrong(function, "x", x, "an array"))
    every = made.kind == "static"
    axes = dim if is_a(dim, tuple | list) else (dim,)
    if dim is None and every:
        axes = range(x.ndim)
    for axis in axes:
        if not is_a(axis, int | np.integer) or is_a(axis, bool):
            or_none = ", or None for every axis" if every else ""
            raise TypeError(wrong(function, "dim", axis, f"an int or a tuple of ints{or_none}"))
        if not -x.ndim <= axis < x.ndim:
            wanted = f"an axis from {-x.ndim} to {x.ndim - 1}" if x.ndim else "an array with axes"
            raise IndexError(wrong(function, "dim", axis, wanted))
        size = x.shape[axis]
        if size < made.low or (made.high is not None and size > made.high):
            raise ValueError(
                f"{function}: axis {axis} has size {size}, outside of {range_text(made)}"
            )
    found = _marks.get(id(x))
    if found is None or found[0]() is not x:
        key = id(x)
        found = _marks[key] = weakref.ref(x, lambda _: _marks.pop(key, None)), {}
    for axis in axes:
        found[1][int(axis) % x.ndim] = made


def marks_of(x: np.ndarray) -> dict[int, Mark]:
    """The marks of an array by axis."""
    found = _marks.get(id(x))
    return found[1] if found is not None and found[0]() is x else {}


def mark_dynamic(
    x: np.ndarray, dim: int | tuple[int, ...], *, min: int | None = None, max: int | None = None
) -> None:
    """Declare that a size differs from call to call: the first program already accepts any.

    The mark belongs to this array object and to the argument it is passed for: other arrays there are checked against it. A call with
    a size outside the range raises ValueError. So does a function that works for one size only; the message names the line.

    Parameters
    ----------
    x : ndarray
        An array with which a compiled function will be called.
    dim : int or tuple of int
        Its axis or axes.
    min, max : int, optional
        The range of sizes, which lets the compiler omit cases.

    Raises
    ------
    TypeError, IndexError, ValueError
        For arguments of other types, axes that do not exist, and ranges without the size.
    """
    for name, value in (("min", min), ("max", max)):
        if value is not None and (not is_a(value, int | np.integer) or value is True):
            raise TypeError(wrong("mark_dynamic", name, value, "an int or None"))
    low = 0 if min is None else int(min)
    if low < 0:
        raise ValueError(wrong("mark_dynamic", "min", low, "at least 0"))
    if max is not None and max < low:
        raise ValueError(f"mark_dynamic: min is {low}, max is {max}; wanted: min <= max")
    mark(x, dim, Mark("dynamic", low, None if max is None else int(max)))


def mark_unbacked(x: np.ndarray, dim: int | tuple[int, ...]) -> None:
    """Like `mark_dynamic`, but decide nothing from the size of this call, 0 and 1 included.

    One program accepts all sizes. A test of the size is a branch of the program, and sizes that must be equal are compared when it
    runs. If Python needs the number itself, the call raises ValueError, which names the line.

    Parameters
    ----------
    x : ndarray
        An array with which a compiled function will be called.
    dim : int or tuple of int
        Its axis or axes.

    Raises
    ------
    TypeError, IndexError
        If x is not an array or dim not an int; if the array has no such axis.
    """
    mark(x, dim, Mark("unbacked"))


def may_be_marked(values: tuple[Any, ...]) -> bool:
    """True if an array among the arguments, or inside of one, may have a marked size."""
    if not _marks:
        return False
    return any(marks_of(v) if type(v) is np.ndarray else is_a(v, tuple | list | dict) for v in values)


def any_unbacked(values: tuple[Any, ...]) -> bool:
    """True if a size of an argument is marked unbacked."""
    arrays = [v for v in values if type(v) is np.ndarray] if _marks else []
    return any(m.kind == "unbacked" for x in arrays for m in marks_of(x).values())


def mark_static(x: np.ndarray, dim: int | tuple[int, ...] | None = None) -> None:
    """Declare that a size is a compile-time constant, whatever later calls show.

    Parameters
    ----------
    x : ndarray
        An array with which a compiled function will be called.
    dim : int or tuple of int, optional
        Its axis or axes; None: all.

    Raises
    ------
    TypeError, IndexError
        If x is not an array or dim not an int; if the array has no such axis.
    """
    mark(x, dim, Mark("static"))


def range_text(m: Mark) -> str:
    """The range of a mark, for messages."""
    return f"the marked range [{m.low}, {'inf)' if m.high is None else f'{m.high}]'}"


def kind_text(value: Any, has_sizes: bool = True, depth: int = 0) -> str:
    """The kind of a value, or of a call with these arguments, as text: types and, unless has_sizes is false, the powers of two of sizes and
    ints. The first items of a container stand for the others, which may change from call to call. It runs no code of the user's.
    """
    cls = type(value)
    if cls is np.ndarray:
        return f"{value.dtype.str}{[*map(int.bit_length, value.shape)] if has_sizes else value.ndim}"
    if cls is int or cls is str:
        return f"{cls.__name__}{(value if cls is int else len(value)).bit_length() if has_sizes else ''}"
    if cls in (bool, type(None)):
        return repr(value)
    if cls in (tuple, list, dict) and depth <= DEEPEST:
        items = islice(value.items() if cls is dict else value, MAX_ITEMS)
        many = len(value).bit_length() if has_sizes else ""
        return f"{cls.__name__}{many}({' '.join([kind_text(v, has_sizes, depth + 1) for v in items])})"
    return ascii(type.__repr__(cls))


class Profile:
    r"""The sizes and ints of one function's calls that captures have seen, and the economy.

    dynamic: places whose size or value differed. fixed: ints for which the function is compiled one by one. marks:
    declarations by place. history: the sizes seen in each capture, and in the first calls that NumPy ran.
    """

    def __init__(self) -> None:
        self.dynamic: set[Place] = set()
        self.fixed: set[Place] = set()
        self.marks: dict[Place, Mark] = {}
        self.history: list[dict[Place, int]] = []
        self.first: dict[Place, int] = {}  # the size or int that each place had when it was seen first
        self.is_loaded = False
        self.is_changed = False

    def copy(self) -> Profile:
        """A copy that records independently from here on."""
        other = Profile()
        other.dynamic, other.fixed, other.marks = set(self.dynamic), set(self.fixed), {**self.marks}
        other.history, other.first, other.is_loaded = list(self.history), {**self.first}, self.is_loaded
        return other

    def begin(self) -> dict[Place, int]:
        """A record for a new capture."""
        record: dict[Place, int] = {}
        self.history = [*self.history[1 - KEPT_CAPTURES :], record]
        return record

    def add(self, sizes: dict[Place, int]) -> None:
        """Record the sizes of a program that an earlier process has saved."""
        self.history.append(sizes)
        self.first = sizes | self.first

    def observe(self, record: dict[Place, int], place: Place, size: int) -> None:
        """Record a size of this capture."""
        record[place] = size
        if self.first.setdefault(place, size) != size and place not in self.dynamic:
            self.dynamic.add(place)
            self.is_changed = True

    def learn(self, names: tuple[str, ...], bound: tuple[Any, ...]) -> None:
        """Record the sizes and ints of a call that the original function runs."""
        record = self.begin()
        for words, value in zip(names, bound, strict=True):
            self.look_at(record, words, value, 0)

    def look_at(self, record: dict[Place, int], words: str, value: Any, depth: int) -> None:
        """Record the sizes of one value. words: its place. It runs no code of the user's."""
        cls = type(value)
        if cls is np.ndarray:
            for axis, size in enumerate(value.shape):
                self.observe(record, (f"{words}:{value.ndim}", axis), size)
        elif cls is int:
            self.observe(record, (words, None), value)
        elif cls in (tuple, list, dict) and depth < DEEPEST:
            items = value.items() if cls is dict else enumerate(value)
            for key, item in islice(items, MAX_ITEMS):
                if cls is not dict or type(key) in (str, int):
                    self.look_at(record, f"{words}[{key!r}]", item, depth + 1)

    def were_equal(self, a: Place, b: Place, difference: int = 0) -> bool:
        """True if a was b + difference in every capture that had both. A difference other than 0 requires two
        captures with different sizes.
        """
        met = [(h[a], h[b]) for h in self.history if a in h and b in h]
        return all(x == y + difference for x, y in met) and (not difference or len(set(met)) > 1)

    # --- the disk ---

    def load(self, path: str | None) -> None:
        """Load what an earlier process has recorded. An unreadable file is treated as missing."""
        self.is_loaded = True
        if path is None:
            return
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            import json  # imported here because importing the package has to be fast

            data = json.loads(text)
            if data["version"] == VERSION:
                self.dynamic |= {(str(p), a if a is None else int(a)) for p, a in data["dynamic"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            pass_on(error)

    def save(self, path: str | None) -> None:
        """Write what is dynamic to a temporary file and rename it."""
        self.is_changed = False
        if path is None:
            return
        import json

        places = sorted(self.dynamic, key=lambda p: (p[0], -1 if p[1] is None else p[1]))
        new = f"{path.removesuffix(SUFFIX)}.tmp-{os.urandom(3).hex()}"
        try:
            with open(new, "x", encoding="utf-8") as file:
                json.dump({"version": VERSION, "dynamic": places}, file)
            os.replace(new, path)
        except OSError as error:
            pass_on(error)


def profile_path(fn: Any, directory: str) -> str | None:
    """The file of a function's profile. The key is the function's code, not its position."""
    code = getattr(fn, "__code__", None)
    if code is None or not directory:
        return None
    parts = [f"{getattr(fn, '__module__', '')}:{fn.__qualname__}:".encode()]
    add_code(parts, code)
    return os.path.join(directory, _core.sha256(b"".join(parts)) + SUFFIX)


def add_code(parts: list[bytes], code: Any) -> None:
    """Hash code, names and constants, also of inner functions."""
    parts.append(code.co_code)
    parts.append(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            add_code(parts, constant)
        elif not is_a(constant, frozenset):  # the order of a frozenset differs between processes
            parts.append(repr(constant).encode())


class UnbackedForced(Signal):
    """The value of an unbacked size is needed. args: its name, file, line, and the operation."""


class Symbols:
    """The symbols of one capture."""

    def __init__(
        self,
        tracer: _core.Tracer,
        profile: Profile,
        dynamic: bool | None,
        may_break: bool = False,
    ) -> None:
        self.tracer, self.profile, self.dynamic = tracer, profile, dynamic
        self.may_break = may_break  # it breaks with constant sizes, too
        self.made: list[tuple[str, Size, int, Place]] = []  # name, size, value, place
        self.marked: dict[str, str] = {}  # name -> its place in words
        self.unbacked: set[str] = set()  # those by which nothing is decided until a break
        self.record = profile.begin()

    def of_array(self, value: np.ndarray, source: int, words: str) -> tuple[Size | None, ...] | None:
        """The sizes of an array that a source reaches, if one of them is a symbol."""
        marks = marks_of(value)
        sizes = tuple(
            self.of_axis((f"{words}:{value.ndim}", axis), source, size, marks.get(axis), words)
            for axis, size in enumerate(value.shape)
        )
        return None if NUMBERS.issuperset(map(type, sizes)) else sizes

    def of_axis(
        self, place: Place, source: int, size: int, mark: Mark | None, words: str
    ) -> Size | None:
        """The symbol of one axis, or None for a constant."""
        profile = self.profile
        profile.observe(self.record, place, size)
        if mark is not None:
            profile.marks[place] = mark
        mark = profile.marks.get(place)
        if mark is not None and mark.kind != "static":
            words = f"{words}.shape[{place[1]}]"
            if size < mark.low or (mark.high is not None and size > mark.high):
                from ..errors import ConstraintViolation

                raise ConstraintViolation(f"{words} is {size}, outside of {range_text(mark)}")
            return self.declare(place, source, size, mark, words)
        if mark is not None or self.dynamic is False or size < 2:
            return None
        if place in profile.dynamic or self.dynamic is True:
            return self.shared(place, size, source)
        return None

    def of_paddings(
        self, value: np.ndarray, source: int, words: str, sizes: tuple[Size | None, ...] | None
    ) -> tuple[Size | None, ...] | None:
        """The paddings of a subarray of a larger array: for each axis a text if its stride follows from the sizes and
        a padding, the memory before each next step.
        """
        flags = value.flags
        if flags.c_contiguous or flags.f_contiguous or self.dynamic is False:
            return None
        paddings = tuple(
            self.of_padding(value, axis, padding, source, words, sizes)
            for axis, padding in enumerate(_core.paddings(value))
        )
        return None if NUMBERS.issuperset(map(type, paddings)) else paddings

    def of_padding(
        self,
        value: np.ndarray,
        axis: int,
        padding: int,
        source: int,
        words: str,
        sizes: tuple[Size | None, ...] | None,
    ) -> Size | None:
        """The padding of one axis, or None if its stride is constant. A stride or padding that had one value in all
        captures is constant. One that differed is a symbol; so is a padding around symbolic sizes.
        """
        if padding < 0:
            return None
        words, stride = f"{words}:{value.ndim}", abs(value.strides[axis])
        at, beside = (f"{words} padding", axis), (f"{words} stride", axis)
        profile = self.profile
        is_first = not any(at in before for before in profile.history)
        profile.observe(self.record, at, padding)
        profile.observe(self.record, beside, stride)
        inside = [k for k, s in enumerate(value.strides) if abs(s) < stride and value.shape[k] != 1]
        is_around = sizes is not None and any(sizes[k] is not None for k in inside)
        differs = at in profile.dynamic and beside in profile.dynamic
        if differs or (is_first and (is_around or (self.dynamic is True and bool(inside)))):
            return self.shared(at, padding, source)
        return padding if is_around and beside in profile.dynamic else None

    def of_int(self, value: int, source: int, words: str) -> Size | None:
        """The size for an int argument, or None if it is just a number."""
        place = (words, None)
        self.profile.observe(self.record, place, value)
        if self.dynamic is False or abs(value) > LARGEST_INT or place in self.profile.fixed:
            return None
        if place in self.profile.dynamic or (self.dynamic is True and abs(value) > 1):
            return self.shared(place, value, source, less=1)
        return None

    def is_uint64(self, value: int, words: str) -> bool:
        """True for an int argument that is too large for a size and is data, like a float."""
        place = (words, None)
        varies = place in self.profile.dynamic or self.dynamic is True
        return varies and place not in self.profile.fixed and LARGEST_INT < value < 1 << 64

    def are_data(self, value: bytes, words: str, is_long: bool) -> bool:
        """True if a bytes object is data, like an array, because it is long or has differed between calls."""
        import zlib

        place = (f"bytes {words}", None)
        self.profile.observe(self.record, place, zlib.crc32(value))
        return self.dynamic is not False and (self.dynamic is True or is_long or place in self.profile.dynamic)

    def shared(self, place: Place, size: int, source: int, less: int = 0) -> Size:
        """A symbol that was always equal, or larger by at most `less`; else a new one."""
        for difference in range(less + 1):
            for name, symbol, value, other in self.made:
                if value != size + difference or name in self.marked:
                    continue
                if is_padding(other) != is_padding(place):
                    continue
                if self.profile.were_equal(other, place, difference):
                    return symbol - difference if difference else symbol
        return self.declare(place, source, size)

    def declare(
        self, place: Place, source: int, size: int, mark: Mark | None = None, words: str = ""
    ) -> Size:
        """Make a new symbol."""
        name = f"s{len(self.made)}"
        low, high = 0, None
        if place[1] is None:
            low, high = 0 if size >= 0 else -LARGEST_INT, LARGEST_INT
        if mark is not None:
            low, high = mark.low, mark.high
            self.marked[name] = words
        axis = -1 if place[1] is None else place[1]
        if is_padding(place):
            axis = _core.PADDING_AXIS - axis
        is_unbacked = mark is not None and mark.kind == "unbacked"
        self.unbacked |= {name} if is_unbacked else set()
        symbol = self.tracer.symbol(name, source, axis, size, low, high, is_unbacked)
        self.tracer.on_concretize = UnbackedForced
        if self.dynamic is None and mark is None and not self.may_break:
            # With constant sizes a break would not be allowed either; that they are symbols was cinductor's choice.
            self.tracer.on_break = functools.partial(Replan, "dynamic")
        self.made.append((name, symbol, size, place))
        return symbol

    def denied(self, error: UnbackedForced) -> Exception:
        """The exception for the user if an unbacked size is needed as a number."""
        name, file, line, who = error.args
        where = f"{os.path.basename(file)}:{line}" if file else "the function"
        from ..errors import ConstraintViolation

        return ConstraintViolation(
            f"{self.marked[name]} was marked unbacked, but {where} needs its value, for {who}"
        )

    def finish(self) -> None:
        """Record what was decided by sizes. Raises ValueError if the function only works for the value of a marked
        size.
        """
        places = {name: place for name, _, _, place in self.made}
        for names, is_symbol, text, file, line in self.tracer.fixed_sizes() if self.made else ():
            for name in names:
                if name in self.marked and name not in self.unbacked:
                    words = self.marked[name]
                    where = f"{os.path.basename(file)}:{line}" if file else "the function"
                    condition = re.sub(rf"\b{name}\b", words, text)
                    from ..errors import ConstraintViolation

                    raise ConstraintViolation(
                        f"{words} was marked dynamic, but {where} is right only where {condition}"
                    )
            if is_symbol and names[0] in places and places[names[0]][1] is None:
                self.profile.fixed.add(places[names[0]])


def place_of(sources: list[tuple[Any, ...]], number: int, names: tuple[str, ...]) -> str:
    """A source in the user's words, equal in every process."""
    kind, *parts = sources[number]
    if kind == "arg":
        return names[parts[0]] if parts[0] < len(names) else f"argument {parts[0]}"
    if kind == "global":
        return f"global {parts[1]}"
    if kind == "cell" and len(parts) > 1:
        return str(parts[1])
    if kind == "closure":
        return f"{parts[2]} in {place_of(sources, parts[0], names)}"
    if kind == "attr":
        return f"{place_of(sources, parts[0], names)}.{parts[1]}"
    if kind == "item":
        return f"{place_of(sources, parts[0], names)}[{parts[1]!r}]"
    return f"{kind} {number}"
