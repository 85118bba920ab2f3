"""Types at joins: what two values become where control flow merges, for numbers and for arrays of varying size.

Values are joined at a loop head (entry with the end of an iteration), after a branch (its two arms),
and in an expression (two operands).

Numbers
    Python numbers are weakly typed and NumPy numbers strongly typed, which is visible, so nothing is
    promoted. Numbers of two classes become a tagged number, with a bool that says which it is: a
    Python number and NumPy's of its class; an int and another number that has its value exactly. At
    a loop head a weak number joined with a strong one of its class becomes strong; this is right only
    after an iteration, so the loop must run at least once.

Arrays of varying size
    They are stored in the first elements of a buffer, whose size is an upper bound in terms of values
    outside of the loop or branch. The actual size is a carried number, and a symbol inside. Arrays that
    begin and end with equal sizes share the symbol: after `z, c = z[stay], c[stay]`, z and c still
    have equal sizes in the next iteration. The buffer has the array's axes, each with its maximum, or it
    is flat. A flat buffer holds the array contiguously; use it if one axis grows as another shrinks, and
    only the product is bounded: `(a // 2) * (2 * b) <= a * b`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from ... import _core
from ...base.records import NamedTuple
from ..kinds import (
    EXACT_INTS,
    UINT64,
    Size,
    are_ints,
    is_array,
    is_number,
    is_same,
    is_tagged,
    kind_of,
    lifted,
)
from ..objects import Traced

OTHER = "is of another type"
LARGE = "is no 64-bit number"
RESHAPED = "changes its shape"
TAGGED = "fdDlq?"  # dtypes of numbers that Python has, too
EXACT_FOR_INTS = "fdbhilqBHIL"  # dtypes that have the values of small ints exactly


# --- what two values become ---


class Same(NamedTuple):
    """Both are this value."""

    value: Any


class Joined(NamedTuple):
    """A Phi of this kind and dtype can be both; if weak is set, it is a tagged number, which may be Python's of that
    dtype.
    """

    kind: str
    dtype: np.dtype
    weak: np.dtype | None = None


class Buffered(NamedTuple):
    """Both are the first elements of an array that is as large as the larger one along these axes."""

    axes: list[int]


class Reason(NamedTuple):
    """No value can be both. can_tag: but for a tagged number."""

    text: str
    can_tag: bool = False


Answer = Same | Joined | Buffered | Reason


class Head(NamedTuple):
    """A leaf at a loop head: its value in the first iteration, and its type so far. tags: it may be a tagged number."""

    entry: object
    type: Type | None = None
    tags: bool = False


def join(tracer: _core.Tracer, a: object, b: object, head: Head | None = None, nodes: tuple[Any, ...] = ()) -> Answer:
    """Join two leaves. head: b is what an iteration ends with that begins with a. nodes: those of arrays in
    closed blocks.
    """
    known = None if head is None else head.type
    if known is None and is_same(a, b):
        return Same(a)
    if head is not None and not is_array(a):
        a = head.entry
    kinds: set[Any] = {kind_of(a), kind_of(b)}
    if None in kinds:
        return Reason(OTHER)
    if known is not None:
        kinds.add((known.kind, known.dtype))
    if "array" in next(zip(*kinds, strict=True)):
        if len(kinds) == 1 and type(a) is Traced and type(b) is Traced:
            return join_arrays(tracer, a, b, head, nodes or (a, b))
        return Reason(OTHER)
    tagged: list[Any] = [number for number in (a, b) if is_tagged(number)] + ([] if known is None or known.weak is None else [known])
    classes = kinds | {("python", number.weak) for number in tagged}
    if len(classes) == 1:
        is_known = all(type(v) is Traced or is_number(v) for v in (a, b))
        return Joined(*kinds.pop()) if is_known else Reason(LARGE)
    if all(map(are_ints, classes, classes)):
        is_unsigned = all(tracer.may_check() if type(v) is Traced else is_number(v) and v >= 0 for v in (a, b))
        return Joined("python", UINT64) if is_unsigned else Reason(OTHER)
    if head is not None and not tagged:
        dtypes = {dtype for kind, dtype in kinds if kind == "scalar"}
        if len(dtypes) == 1 and kind_of(b)[0] == "scalar" and can_become_strong(tracer, a, *dtypes):  # type: ignore[index]
            return Joined("scalar", *dtypes)
    joined = of_classes(classes)
    can = joined is not None and all(can_lift(tracer, v, joined) for v in (a, b))
    if can and head is not None and not (tagged or head.tags):
        return Reason(OTHER, True)
    return joined if can else Reason(OTHER)  # type: ignore[return-value]


def of_classes(classes: set[tuple[str, Any]]) -> Joined | None:
    """The tagged number that may have these two classes."""
    if len(classes) != 2:
        return None
    weak, strong = sorted(classes, key=lambda k: (k[0] == "scalar", k[1].kind == "f"))
    if weak[0] != "python" or weak == strong or weak[1] == UINT64:
        return None
    if strong[0] == "python":
        is_alike = weak[1] == np.int64 and strong[1] == np.float64
    elif weak[1].kind == strong[1].kind and strong[1].char in TAGGED:
        is_alike = True
    else:
        is_alike = weak[1] == np.int64 and strong[1].char in EXACT_FOR_INTS
    return Joined(*strong, weak[1]) if is_alike else None


def can_become_strong(tracer: object, value: object, dtype: np.dtype) -> bool:
    """True if a number at a loop's entry can be NumPy's from there on. That an int is not a float cannot be observed after
    an iteration.
    """
    if kind_of(value)[1] == dtype:  # type: ignore[index]
        return True
    return type(value) is not Traced and lifted(tracer, value, "scalar", dtype) is not None


def join_arrays(tracer: _core.Tracer, a: Traced, b: Traced, head: Head | None, nodes: tuple[Any, ...]) -> Answer:
    """Join two arrays of one dtype."""
    if head is not None and (fitted := b.fitted(a)) is not None and tracer.varying(a, fitted) == []:
        return Joined("array", a.dtype)
    axes = tracer.varying(*nodes)
    if axes is None:
        return Reason(OTHER if head is None else RESHAPED)
    if head is not None:
        axes = [k for k in axes if (a.shape[k] == b.shape[k]) is not True]
    return Buffered(axes) if axes else Joined("array", a.dtype)


def can_lift(tracer: _core.Tracer, value: object, joined: Joined | Type) -> bool:
    """True if a number has one of the two classes, and the tagged number can have its value."""
    if type(value) is Traced:
        if value.dtype == joined.dtype:
            return True
        is_checked = joined.dtype.char in EXACT_INTS and tracer.may_check()
        return is_checked and value.kind == "python" and value.dtype == np.int64
    return lifted(tracer, value, joined.kind, joined.dtype) is not None


# --- arrays of different sizes ---


class Length:
    """A size that varies: at the entry and at the end of an iteration (or at the ends of two arms);
    its capacity is None where only that of a product is known."""

    __slots__ = ("entry", "end", "capacity", "old", "param", "now")

    def __init__(self, entry: Size, end: Size, capacity: Size | None, old: Length | None = None) -> None:
        self.entry, self.end, self.capacity, self.old = entry, end, capacity, old
        self.param: Any = None  # the number
        self.now: Any = None  # the symbol that is its value

    def define(self, tracer: _core.Tracer, number: Traced) -> Any:
        """The number as a size, from here on."""
        self.now = tracer.define(number, 0, self.capacity, True)
        return self.now


def larger(tracer: _core.Tracer, entry: object, end: object, mark: _core.Mark) -> Any:
    """A size from before the mark that is at least both; None if there is none."""
    most = mark.most(end)
    if most is None or (entry := mark.most(entry)) is None:
        return None
    return tracer.size_max(entry, most)


def is_at_most(tracer: _core.Tracer, size: object, other: object) -> bool:
    """True if a size is known not to be larger than another."""
    return is_same(tracer.size_max(size, other), other)


def find(lengths: list[Length], entry: object, end: object, old: Length | None = None) -> Length | None:
    """The length with these values at the entry and the end."""
    for length in lengths:
        if length.old is old and is_same(length.entry, entry) and is_same(length.end, end):
            return length
    return None


def grouped(kinds: list[tuple[Any, Any]], now: list[Length]) -> list[Length] | None:
    """Set in the types the lengths of arrays, given as types and shapes at the entry, that change together; None if
    nothing changes.
    """
    groups: list[Length] = []
    found: list[tuple[Any, dict[int, Length]]] = []
    for kind, shape in kinds:
        mine = {}
        for axis, (end, most) in kind.ends.items():
            old, entry = kind.lengths.get(axis), shape[axis]
            length = find(groups, entry, end, old)
            if length is None:
                length = Length(entry, end, most, old)
                groups.append(length)
            elif length.capacity is None:
                length.capacity = most
            mine[axis] = length
        found.append((kind, mine))
    olds = [group.old for group in groups]
    if len(groups) == len(now) and all(
        old is not None and is_same(group.capacity, old.capacity)
        for group, old in zip(groups, olds, strict=True)
    ):
        for group in groups:
            group.old.end = group.end  # type: ignore[union-attr]
        return None
    for kind, mine in found:
        kind.lengths = mine
    for group in groups:
        group.old = None
    return groups


def first_part(tracer: _core.Tracer, buffer: Traced, shape: tuple[Any, ...]) -> Any:
    """The view of a buffer's first elements; for a flat buffer with that shape."""
    if buffer.ndim == len(shape):
        return tracer.slice(buffer, (0,) * len(shape), (1,) * len(shape), shape)
    return tracer.reshape(tracer.slice(buffer, (0,), (1,), (tracer.count(shape),)), shape)


def read(tracer: _core.Tracer, buffer: Traced, lengths: dict[int, Length], sizes: tuple[Size, ...] | None = None) -> Any:
    """The array in a buffer; sizes: along axes that do not vary, for a flat buffer. If it may be returned, it is a
    copy.
    """
    sizes = buffer.shape if sizes is None else sizes
    shape = tuple(lengths[k].now if k in lengths else n for k, n in enumerate(sizes))
    view = first_part(tracer, buffer, shape)
    return view.detached() if tracer.in_region else tracer.copy(view, "K")


def write(tracer: _core.Tracer, buffer: Traced, value: Traced, lengths: Container[int]) -> None:
    """Puts an array into a buffer; lengths: the axes that vary."""
    shape = value.shape
    if buffer.ndim == len(shape):
        pairs = zip(shape, buffer.shape, strict=True)
        shape = tuple(mine if k in lengths else whole for k, (mine, whole) in enumerate(pairs))
    tracer.assign(first_part(tracer, buffer, shape), value)


def number_of(tracer: _core.Tracer, size: object) -> Any:
    """A size as a value that a region passes on."""
    return tracer.lift(size) if type(size) is int else size


# --- types of carried leaves ---


class Type:
    """The type of a leaf carried by value.

    `like` is a Traced array of this type. `lengths` has its varying sizes by axis, and `ends` their values at the end,
    with the bounds for all iterations. `room` is the capacity of a flat buffer. A number with a `weak` dtype is tagged; a
    `joined` one is Python's at the loop's entry and NumPy's in each iteration.
    """

    __slots__ = ("kind", "dtype", "like", "weak", "joined", "lengths", "ends", "room")

    def __init__(
        self, kind: str, dtype: np.dtype, like: Traced | None = None, weak: np.dtype | None = None, joined: bool = False
    ) -> None:
        self.kind, self.dtype, self.like = kind, dtype, like
        self.weak, self.joined = weak, joined
        self.lengths: dict[int, Length] = {}
        self.ends: dict[int, tuple[Any, Any]] = {}
        self.room: Size | None = None


def is_as_weak(a: Type | Joined | Traced, b: Type | Joined | Traced) -> bool:
    """True if both have no weak dtype, or the same one. `==` alone takes None for float64, NumPy's default dtype."""
    return (a.weak is None) == (b.weak is None) and (a.weak is None or a.weak == b.weak)


def type_of(value: Traced) -> Type:
    """The type of a traced value as it is."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    return Type(kind, dtype, value if kind == "array" else None, value.weak)


def at_entry(leaf: object, kind: Type | None) -> Type | None:
    """A leaf's type at the loop's entry, although later iterations start with NumPy's."""
    if kind is None or kind.kind != "scalar" or kind.weak is not None:
        return kind
    return Type(*kind_of(leaf))  # type: ignore[misc]
