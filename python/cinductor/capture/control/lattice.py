"""What two numbers become where they meet: the one join of them.

At a loop's head what its first trip begins with meets what a trip ends with; behind a branch the two
arms meet; in an expression, two operands. Python's numbers are weak and NumPy's strong, which can be
seen: nothing is promoted. A weak one that equals a strong one of its class exactly meets it as a
tagged number, whose bool says which it is; at a loop's head as a strong one, which is right behind a
trip, so that there has to be one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..value.kinds import UINT64, are_ints, is_number, is_of_class, kind_of, lifted, strength
from ..value.objects import Traced

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
