"""Compares and describes values of the user's frame: a Traced value, a number, a tuple of values, or any other
object, which only equals itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.float_warnings import quietly
from .objects import SINGLE, UNBOUND, VIEWS_OF_DICTS, Traced, is_record, remade

RegionBreak = _core.RegionBreak
NUMBERS = frozenset({bool, int, float, complex})
ATOMS = frozenset({*NUMBERS, str, bytes, type(None), type(Ellipsis), range, slice})
PYTHON_DTYPES = {bool: "?", int: "i8", float: "f8", complex: "c16"}
INT64 = 1 << 63
EXACT_INTS = {"f": 1 << 24, "d": 1 << 53}  # smaller ints are exact, by the float's dtype
Size = int | Traced
UINT64 = np.dtype(np.uint64)  # of Python ints that exceed int64 and are not negative


def is_same(a: Any, b: Any) -> bool:
    """True if two values are equal: the same object, memory, int or number."""
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b):
        return False
    if cls is Traced:
        return a.is_same(b)
    if cls is float or cls is complex:
        return repr(a) == repr(b)  # distinguishes the sign of zero; NaN equals itself
    if cls in ATOMS:
        return bool(a == b)
    if is_a(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if is_record(cls):
        return len(a) == len(b) and all(map(is_same, a, b))
    return False


def is_array(value: Any) -> TypeGuard[Traced]:
    return type(value) is Traced and value.kind == "array"


def identity(array: Any) -> int:
    """An identifier of the array's memory. Several Traced may hold the same whole array."""
    return array.storage if array.is_whole else id(array)


def is_one(a: Any, b: Any) -> bool:
    """True if two values are identical; arrays must be the same object: `v[...]` is not `v`."""
    if is_record(type(a)) and type(a) is type(b):
        return len(a) == len(b) and all(map(is_one, a, b))
    if is_array(a) and is_array(b):
        return identity(a) == identity(b)
    return is_same(a, b)


def is_unchanged(a: Any, b: Any) -> bool:
    """True if an item is the same in each call. Two tuples that are equal now may come from two arguments."""
    return a is b or ((type(a) in SINGLE or not is_record(type(a))) and is_one(a, b))


def is_int(value: Any) -> bool:
    """True for a Python int, traced or not."""
    if type(value) is Traced:
        return value.kind == "python" and value.dtype == np.int64
    return type(value) is int


def is_bool(value: Any) -> bool:
    """True for a Python bool, traced or not."""
    if type(value) is Traced:
        return value.kind == "python" and value.dtype == np.bool_
    return type(value) is bool


def is_number(value: Any) -> TypeGuard[float]:
    """True for a constant that the graph can have."""
    if type(value) in NUMBERS:
        return type(value) is not int or -INT64 <= value < 2 * INT64
    return is_a(value, np.generic) and value.dtype.kind in "biufc"


def kind_of(value: Any) -> tuple[str, np.dtype] | None:
    """Kind and dtype of a number or Traced value."""
    if type(value) is Traced:
        return value.kind, value.dtype
    if type(value) in NUMBERS:
        is_large = type(value) is int and value >= INT64
        return "python", UINT64 if is_large else np.dtype(PYTHON_DTYPES[type(value)])
    if is_a(value, np.generic) and value.dtype.kind in "biufc":
        return "scalar", value.dtype
    return None


def in_words(value: Any) -> str:
    """A number for a reason: its value if it is a constant, and its class."""
    kind = kind_of(value)
    if kind is None or kind[0] == "array":
        return "an array" if kind else f"a {type(value).__name__}"
    if kind[0] == "scalar":
        return f"a NumPy {kind[1].name}"
    name = {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(kind[1].kind, "complex")
    return f"Python's {name}" if type(value) is Traced else f"Python's {name} {value!r}"


def is_tagged(value: Any) -> bool:
    """True for a number that is of one class or another, as a traced bool tells."""
    return type(value) is Traced and value.strong is not None


def classes_of(value: Any) -> set[tuple[str, np.dtype]]:
    """Kinds and dtypes that a number may have."""
    kind = kind_of(value)
    return {kind, ("python", value.weak)} if is_tagged(value) else {kind}  # type: ignore[arg-type]


def strength(value: Any, kind: tuple[str, np.dtype]) -> Any:
    """True if a number is of that kind, False if it is the other class of a tagged number; for a tagged one the traced
    bool.
    """
    if is_tagged(value):
        return value.strong
    its = kind_of(value)
    return its is not None and its[0] == kind[0] and (kind[0] == "scalar" or its[1] == kind[1])


def leaves(value: Any) -> list[Any]:
    """The values in nested tuples, in order."""
    if type(value) not in SINGLE and is_record(type(value)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def rebuilt(like: Any, items: Iterator[Any]) -> Any:
    """A value with like's structure and other leaves."""
    if type(like) not in SINGLE and is_record(type(like)):
        parts = [rebuilt(part, items) for part in like]
        return like if all(map(operator.is_, parts, like)) else remade(like, parts)  # an object that is unchanged stays
    return next(items)


def apart(made: Any, a: Any, b: Any, are_one: Callable[[Any, Any], bool], new: Callable[[Any, list[Any]], Any] = remade) -> Any:
    """A value that stands for two of its structure: a tuple in it is that of `a` only if it is that of `b`, too."""
    if type(made) in SINGLE or not is_record(type(made)):
        return made
    parts = [apart(*items, are_one, new) for items in zip(made, a, b, strict=True)]
    is_one = (made is not a or are_one(a, b)) and all(part is item for part, item in zip(parts, made, strict=True))
    return made if is_one else new(made, parts)


def have_same_structure(a: Any, b: Any) -> bool:
    """True for nested tuples of equal classes and lengths."""
    if not SINGLE.issuperset((type(a), type(b))) and (is_record(type(a)) or is_record(type(b))):
        same = type(a) is type(b) and len(a) == len(b)
        return same and all(map(have_same_structure, a, b))
    return True


def are_ints(a: tuple[str, np.dtype] | None, b: tuple[str, np.dtype] | None) -> bool:
    """True if both are kinds of Python ints: each may be u64 as long as the program checks that it is not negative.
    """
    kinds = (a, b)
    return all(k is not None and k[0] == "python" and k[1].kind in "iu" for k in kinds)


def lifted(tracer: Any, value: Any, kind: str, dtype: np.dtype) -> Any:
    """A number as a Traced value of that kind and dtype; None if it is not exactly representable. The program checks
    that an int that becomes a float is small.
    """
    if dtype == UINT64 and are_ints(kind_of(value), (kind, dtype)):
        if type(value) is not Traced and value < 0:
            return None
        return tracer.as_int(value if type(value) is Traced else tracer.lift(value), "u64")
    if type(value) is Traced:
        if value.kind == "python" and kind == "scalar" and value.dtype == dtype:
            return tracer.as_scalar(value)
        if value.kind == "python" and value.dtype == np.int64 and dtype.char in EXACT_INTS:
            return exact_float(tracer, value, kind, dtype)
        return value if (value.kind, value.dtype) == (kind, dtype) else None
    if not is_number(value):
        return None
    if is_a(value, complex | np.complexfloating) and dtype.kind != "c":
        return None
    try:
        new = quietly(dtype.type, value)
    except (OverflowError, ValueError):  # infinity as an int
        return None
    exactly = new.item()  # NumPy would round a Python float to float32 before the comparison
    if not (exactly == value or (value != value and new != new)):
        return None
    if kind == "python":
        return tracer.lift(new.item())
    if kind == "scalar":
        return tracer.lift(new)
    return None


def exact_float(tracer: Any, value: Any, kind: str, dtype: np.dtype) -> Any:
    """A traced int as a float, which is exact if the program's check holds."""
    number, limit = tracer.as_scalar(value), EXACT_INTS[dtype.char]
    if not (value.is_expression and all(map(tracer.is_positive, (limit - value, limit + value)))):
        small = tracer.apply("logical_and", number > -limit, number < limit)
        tracer.check(small, "an int that a float does not hold")
    number = tracer.cast(number, dtype)
    return tracer.as_python(number) if kind == "python" else tracer.as_scalar(number)


class NoValue:
    """The value of an unbound name, as a piece of a function returns it to the dispatcher."""

    def __repr__(self) -> str:
        return "UNBOUND"


NO_VALUE = NoValue()
__all__ = ["UNBOUND"]


# --- methods of the scope of the running function ---


class Hooks:
    """The scope of a captured function. Values are those of the user's frame: traced, or Python's."""

    __slots__ = ()

    stage: Any  # of the call
    sites: Any  # of the function
    file: str
    fn_globals: dict[str, Any]
    is_library: bool  # the function belongs to NumPy

    # Methods of the parts in `hooks`, by which one part or a function of `calls` refers to another.
    array_of: Callable[..., Any]
    as_text: Callable[..., Any]
    asked: Callable[..., Any]
    attr: Callable[..., Any]
    augment: Callable[..., Any]
    born: Callable[..., Any]
    call: Callable[..., Any]
    call_method: Callable[..., Any]
    check_budget: Callable[..., Any]
    _del_attr: Callable[..., Any]
    _del_item: Callable[..., Any]
    fall_back: Callable[..., Any]
    fall_back_for_flags: Callable[..., Any]
    _global: Callable[..., Any]
    gt: Callable[..., Any]
    _is_made: Callable[..., Any]
    is_one: Callable[..., Any]
    item: Callable[..., Any]
    item_slot: Callable[..., Any]
    items_of_view: Callable[..., Any]
    iter: Callable[..., Any]
    iter_unpacked: Callable[..., Any]
    key: Callable[..., Any]
    leave_to_numpy: Callable[..., Any]
    lifted_once: Callable[..., Any]
    lt: Callable[..., Any]
    members: Callable[..., Any]
    not_: Callable[..., Any]
    operand: Callable[..., Any]
    recurses: Callable[..., Any]
    _set_attr: Callable[..., Any]
    _set_item: Callable[..., Any]
    _set_plainly: Callable[..., Any]
    specialised: Callable[..., Any]
    star: Callable[..., Any]
    step: Callable[..., Any]
    symbolic: Callable[..., Any]
    test: Callable[..., Any]
    unpack: Callable[..., Any]
    use: Callable[..., Any]


def entries_in(value: Any) -> int:
    """The number of entries of a dict, set or view, which Python checks at each step of an iterator; 0 for other objects."""
    return len(value) if is_a(value, dict | set) or type(value) in VIEWS_OF_DICTS else 0
