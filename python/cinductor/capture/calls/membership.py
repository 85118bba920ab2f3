"""`value in members` where something of it is traced.

Python asks a list or tuple item by item whether it is the value, or equals it; the running program
does the same with comparisons, joined by `or`. An object that is itself twice is found even if it is
NaN, which no comparison tells: where both may be NaN the program checks that they are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..control.region import is_condition, truth
from ..value.kinds import is_int, kind_of
from ..value.objects import Traced, holds_traced, hooked_in

if TYPE_CHECKING:
    from ..value.hooks import Hooks

MOST_MEMBERS = 64
EXACT = 1 << 53  # ints up to here are floats, too
UNEQUAL = frozenset({str, bytes, type(None), type(Ellipsis)})  # types that equal no number


def contains(scope: Hooks, value: Any, members: Any) -> Any:
    """value in members: a bool, traced where only the running program knows it."""
    cls = type(members)
    value = scope.use(value)
    if cls is Traced and members.ndim and is_number(value):
        return in_array(scope, value, members)
    if type(value) is not Traced and not (cls in (list, tuple) and holds_traced(members)):
        return is_in(scope, value, members)
    if is_number(value):
        found = None
        if cls is list or cls is tuple:
            found = among(scope, value, scope.stage.lift_items(members))
        elif cls is set or cls is frozenset:
            items = list(scope.use(members))
            if all(hashes_alike(value, item) for item in items):
                found = among(scope, value, items)
        elif cls is range and is_int(value):
            found = in_range(scope, value, members)
        if found is not None:
            return found
    return is_in(scope, value, members)


def is_in(scope: Hooks, value: Any, members: Any) -> bool:
    """As Python finds it; code of the user's that takes part is given real values."""
    members = scope.members(members)
    if hooked_in((value, members)) is not None:
        value, members = scope.stage.materialise(value), scope.stage.materialise(members)
    return value in members


def is_number(value: Any) -> bool:
    """A number of Python's or NumPy's, traced or not."""
    kind = kind_of(value)
    return kind is not None and kind[0] != "array"


def among(scope: Hooks, value: Any, items: Any) -> Any:
    """value in items, one after the other; None where Python has to compare them."""
    if len(items) > MOST_MEMBERS:
        return None
    stage = scope.stage
    found: Any = False
    unordered: list[Any] = []
    for item in items:
        if item is value:
            return True
        if type(item) in UNEQUAL:
            continue
        if not is_number(item):
            return None
        if may_be_nan(value) and may_be_nan(item):
            unordered.append(item)
        is_equal = value == item
        if not is_condition(is_equal):
            if is_equal:
                return True
            continue
        is_equal = truth(stage, is_equal)
        found = is_equal if found is False else either(stage, found, is_equal)
    for item in unordered:
        if not stage.may_check():
            return None
        is_same = either(stage, truth(stage, value == value), truth(stage, item == item))  # noqa: PLR0124
        if type(is_same) is Traced:
            stage.tracer.check(is_same, "membership of NaN")
        elif not is_same:
            return None
    return found if found is False else stage.tracer.as_python(found)


def either(stage: Any, a: Any, b: Any) -> Any:
    """a or b of truths."""
    if type(a) is not Traced or type(b) is not Traced:
        return a if a is True or b is False else b
    return stage.tracer.apply("logical_or", a, b)


def may_be_nan(value: Any) -> bool:
    """Whether a number can be NaN."""
    if type(value) is Traced:
        return value.dtype.kind in "fc"
    return bool(value != value)  # noqa: PLR0124


def hashes_alike(value: Any, item: Any) -> bool:
    """Whether a set finds the item exactly where it equals the value."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    if type(item) in UNEQUAL:
        return True
    if type(item) not in (bool, int, float):
        return False
    if dtype.kind in "biu":
        return type(item) is not float or kind == "python"
    return dtype.char == "d" and (type(item) is float or abs(item) <= EXACT)


def in_range(scope: Hooks, value: Any, members: range) -> Any:
    """An int in a range."""
    stage = scope.stage
    if not members:
        return False
    low, high = sorted((members[0], members[-1]))
    tests = [value >= low, value <= high]
    if abs(members.step) != 1:
        tests.append((value - low) % abs(members.step) == 0)
    found: Any = True
    for test in tests:
        if not is_condition(test):
            if not test:
                return False
            continue
        test = truth(stage, test)
        found = test if found is True else stage.tracer.apply("logical_and", found, test)
    return found if found is True else stage.tracer.as_python(found)


def in_array(scope: Hooks, value: Any, members: Any) -> Any:
    """value in an array: whether any element equals it, as NumPy has it."""
    found = (members == value).any()
    return scope.stage.tracer.as_python(found) if type(found) is Traced else bool(found)
