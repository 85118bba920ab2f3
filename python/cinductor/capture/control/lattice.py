"""What two numbers become where they meet, the one join of them; and the types of what loops carry.

At a loop's head what its first trip begins with meets what a trip ends with; behind a branch the two
arms meet; in an expression, two operands. Python's numbers are weak and NumPy's strong, which can be
seen: nothing is promoted. A weak one that equals a strong one of its class exactly meets it as a
tagged number, whose bool says which it is; at a loop's head as a strong one, which is right behind a
trip, so that there has to be one.

What a loop's trips hand to each other by value has a type for each leaf of a name's value. It is that of the value at the head of a trip and at its end; both must be it exactly, or be it
once a join is made (Python's number as NumPy's, an array in a buffer with room for more). Where they
cannot, a trip is peeled. A type once known only becomes wider, so that learning ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..value.kinds import (
    UINT64,
    UNBOUND,
    are_ints,
    have_same_structure,
    is_array,
    is_number,
    is_of_class,
    is_same,
    kind_of,
    leaves,
    lifted,
    rebuilt,
    strength,
)
from ..value.objects import Traced
from . import varying
from .region import Peel

if TYPE_CHECKING:
    from .carry import Carried


OTHER = "is of another type"
LARGE = "is no 64-bit number"
TAGGED = "fdDlq?"  # dtypes whose numbers Python has as well


class Joined(NamedTuple):
    """The type in which two numbers meet."""

    kind: str
    dtype: Any
    tagged: bool = False


def join(tracer: Any, a: Any, b: Any, at_head: bool, may_check: bool) -> Joined | str:
    """That type, or why there is none. at_head: a is what a loop's first trip begins with, b what a
    trip ends with. may_check: whether the program may find out what is not known.
    """
    kinds = kind_of(a), kind_of(b)
    if kinds[0] is None or kinds[1] is None or "array" in (kinds[0][0], kinds[1][0]):
        return OTHER
    is_tagged = any(type(strength(v)) is Traced for v in (a, b))
    if kinds[0] == kinds[1] and not is_tagged:
        is_known = all(type(v) is Traced or is_number(v) for v in (a, b))
        return Joined(*kinds[0]) if is_known else LARGE
    if are_ints(*kinds):
        return Joined("python", UINT64) if are_unsigned((a, b), may_check) else OTHER
    dtypes = {kind[1] for kind in kinds if kind[0] == "scalar"}
    if len(dtypes) != 1:
        return OTHER
    (dtype,) = dtypes
    if at_head:
        return join_at_head(tracer, a, b, dtype, is_tagged)
    can_meet = dtype.char in TAGGED and all(can_lift(tracer, v, dtype) for v in (a, b))
    return Joined("scalar", dtype, tagged=True) if can_meet else OTHER


def join_at_head(tracer: Any, entry: Any, end: Any, dtype: Any, is_tagged: bool) -> Joined | str:
    """A number that is strong behind a trip, or may be."""
    if kind_of(end)[0] != "scalar":  # type: ignore[index]
        return OTHER
    if is_tagged:
        can_meet = can_lift(tracer, entry, dtype)
        return Joined("scalar", dtype, tagged=True) if can_meet else OTHER
    is_exact = kind_of(entry)[1] == dtype or lifted(tracer, entry, "scalar", dtype) is not None  # type: ignore[index]
    return Joined("scalar", dtype) if is_exact else OTHER


def can_lift(tracer: Any, value: Any, dtype: Any) -> bool:
    """Whether a number is NumPy's of that dtype, or exactly as much and of its class."""
    if not is_of_class(kind_of(value), dtype):
        return False
    if type(value) is Traced:
        return value.kind != "array" and value.dtype == dtype
    return lifted(tracer, value, "scalar", dtype) is not None


def are_unsigned(values: tuple[Any, ...], may_check: bool) -> bool:
    """Whether Python's ints can be those of [0, 2**64), which the program checks."""
    return all(may_check if type(v) is Traced else v >= 0 for v in values)


# --- what a loop's trips hand to each other, leaf by leaf ---


class Type:
    """The type of a leaf carried by value; like: a Traced array that has it; lengths: those of its
    sizes that change, by axis; ends: with what, and what is enough for all trips; room: where it
    lies in a row, for how many elements.
    """

    __slots__ = ("kind", "dtype", "like", "tagged", "lengths", "ends", "room")

    def __init__(self, kind: str, dtype: Any, like: Any = None, tagged: bool = False) -> None:
        self.kind, self.dtype, self.like = kind, dtype, like
        self.tagged = tagged  # Python's number or NumPy's: a bool that says which goes with it
        self.lengths: dict[int, varying.Length] = {}
        self.ends: dict[int, tuple[Any, Any]] = {}
        self.room: Any = None


def type_of(value: Any) -> Type:
    """That of a traced value, as it stands."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    return Type(kind, dtype, value if kind == "array" else None, value.strong is not None)


def at_entry(leaf: Any, kind: Type | None) -> Type | None:
    """A leaf's type where the loop's first trip begins, though the others begin with NumPy's."""
    if kind is None or kind.kind != "scalar" or kind.tagged:
        return kind
    return Type(*kind_of(leaf))  # type: ignore[misc]


class Types:
    """By name, the types of its leaves (None: one that does not change) in one loop being captured."""

    def __init__(self, carried: Carried) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.of: dict[str, list[Type | None]] = {}
        self.lengths: list[varying.Length] = []  # of all arrays whose sizes change
        self.joined: set[str] = set()  # names that are of another type at the loop's entry
        self.moved = False  # an array to a row, or out of it
        self.guessed = False  # sizes vary that may not

    # --- names that become known ---

    def recall(self, name: str, value: Any) -> None:
        """A name that another capture of the loop carried."""
        parts = leaves(value)
        if all(kind_of(v) is not None and type(v) is Traced for v in parts):
            self.of[name] = [type_of(v) for v in parts]

    def add(self, name: str, head: Any, value: Any) -> None:
        """A name that a trip changed."""
        if not have_same_structure(head, value):
            raise Peel(f"{name} changes its type")
        pairs = zip(leaves(head), leaves(value), strict=True)
        self.of[name] = [None if is_same(a, b) else self.join(name, a, b) for a, b in pairs]

    def add_undefined(self, name: str, value: Any) -> Any:
        """A name that nobody reads before it is set begins with anything: that, or UNBOUND for what
        is no number.
        """
        kinds = [kind_of(leaf) for leaf in leaves(value)]
        if any(kind is None or kind[0] == "array" for kind in kinds):
            return UNBOUND
        zeros = [np.zeros((), dtype)[()] for _, dtype in kinds]  # type: ignore[misc]
        items = [z if k[0] == "scalar" else z.item() for z, k in zip(zeros, kinds, strict=True)]
        self.of[name] = [Type(*kind) for kind in kinds]  # type: ignore[misc]
        return rebuilt(value, iter(items))

    def join(self, name: str, before: Any, after: Any) -> Type:
        """The type of a leaf that was one thing at the entry and is another behind a trip."""
        old, new = kind_of(before), kind_of(after)
        if is_array(before) and old == new:
            kind = Type(*new, before)
            if not self.fits(after, before) and not self.vary(kind, before, before, after):
                raise Peel(f"the array {name} changes its shape")
            return kind
        joined = join(self.tracer, before, after, True, self.loop.stage.may_check())
        if joined is LARGE:
            self.loop.fail(f"{name} {LARGE}")
        if type(joined) is str:
            raise Peel(f"{name} changes its type")
        if old[0] == "python" and joined.kind == "scalar" and not joined.tagged:
            self.joined.add(name)
        return Type(joined.kind, joined.dtype, tagged=joined.tagged)

    # --- names that are known ---

    def widen(self, name: str, head: Any, value: Any) -> bool:
        """Whether leaves that did not change so far, do."""
        types = self.of[name]
        if value is UNBOUND or not have_same_structure(head, value):
            raise Peel(f"{name} changes its type")
        is_wider = False
        entries = leaves(self.carried.entry[name])
        for k, (before, after) in enumerate(zip(leaves(head), leaves(value), strict=True)):
            kind = types[k]
            if kind is not None:
                wider = self.wider(name, kind, entries[k], before, after)
            else:
                wider = None if is_same(before, after) else self.join(name, before, after)
            if wider is not None:
                types[k], is_wider = wider, True
        return is_wider

    def wider(self, name: str, kind: Type, entry: Any, before: Any, after: Any) -> Type | None:
        """The type of a leaf that has one, where that is no longer enough."""
        if kind.kind == "array":
            is_array = type(after) is Traced and after.kind == "array"
            if not is_array or not self.holds(kind, entry, before, after):
                raise Peel(f"the array {name} changes its shape or type")
        elif kind.tagged:
            if not can_lift(self.tracer, after, kind.dtype):
                raise Peel(f"{name} changes its type")
        elif type(after) is Traced and after.strong is not None:
            if kind.dtype != after.dtype or not can_lift(self.tracer, entry, kind.dtype):
                raise Peel(f"{name} changes its type")  # an entry that is an int is no float
            self.joined.discard(name)
            return Type("scalar", kind.dtype, tagged=True)
        elif kind_of(after) != (kind.kind, kind.dtype):
            if not are_ints(kind_of(after), (kind.kind, kind.dtype)):
                raise Peel(f"{name} changes its type")
            if not are_unsigned((entry, after), self.loop.stage.may_check()):
                raise Peel(f"{name} changes its type")
            return None if kind.dtype == UINT64 else Type("python", UINT64)
        elif not self.is_exact(kind, after):
            raise Peel(f"{name} changes its type")
        return None

    def is_exact(self, kind: Type, value: Any) -> bool:
        """Whether a number is one of 64 bits."""
        if type(value) is Traced or not is_number(value):
            return True
        return lifted(self.tracer, value, kind.kind, kind.dtype) is not None

    # --- sizes of arrays ---

    def fits(self, after: Any, before: Any) -> bool:
        """Whether an array can be handed on in the place of another."""
        fitted = self.tracer.fitted(after, before)
        return fitted is not None and self.tracer.varying(before, fitted) == []

    def holds(self, kind: Type, entry: Any, before: Any, after: Any) -> bool:
        """Whether an array is of the type, or of one with sizes that vary."""
        if not kind.lengths and self.fits(after, before):
            return True
        return self.vary(kind, entry, before, after)

    def vary(self, kind: Type, entry: Any, before: Any, after: Any) -> bool:
        """Whether an array may be as large as it is at the end of a trip; notes its sizes."""
        axes = varying.axes_that_vary(self.tracer, before, after)
        if axes is None:
            return False
        axes = sorted({*axes, *kind.lengths})
        room = varying.row_capacity(self, kind, axes, entry, before, after)
        self.moved |= bool(kind.lengths) and not is_same(room, kind.room)
        kind.room = room
        ends: dict[int, tuple[Any, Any]] = {}
        for axis in axes:
            end = after.shape[axis]
            sizes = entry.shape[axis], before.shape[axis], end
            most = varying.capacity(self, kind, axis, sizes)
            if most is None and room is None:
                return False
            ends[axis] = (end, most)
        if self.is_once(kind, before, after, axes):
            return False
        kind.ends = ends
        return True

    def is_once(self, kind: Type, before: Any, after: Any, axes: list[int]) -> bool:
        """Whether the first trip alone seems to change the sizes, for they end as something that
        is known before the loop. Those of an array that becomes smaller are tried as ones that vary.
        """
        loop, tracer = self.loop, self.tracer
        if not loop.may_peel or self.carried.flag:
            return False
        mark = loop.attempt.mark  # type: ignore[union-attr]
        known = [k for k in axes if is_same(mark.most(after.shape[k]), after.shape[k])]
        if kind.lengths:
            is_news = any(axis not in kind.lengths for axis in known)
            return is_news or (self.guessed and len(known) == len(axes))
        is_smaller = after.size <= before.size
        if loop.may_guess and (is_smaller is True or tracer.sample_truth(is_smaller)):
            self.guessed |= bool(known)
            return False
        return bool(known)

    def group(self) -> bool:
        """Finds which sizes change alike; whether that is news."""
        pairs = [
            (kind, leaf.shape)
            for name, types in self.of.items()
            for leaf, kind in zip(leaves(self.carried.entry[name]), types, strict=True)
            if kind is not None and kind.ends
        ]
        lengths = varying.grouped(pairs, self.lengths)
        has_moved, self.moved = self.moved, False
        if lengths is None:
            return has_moved
        self.lengths = lengths
        return True
