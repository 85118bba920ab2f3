"""Comparisons of containers of numbers that are only known at run time. Python compares items by identity first, so a NaN
may equal itself or not: a program whose numbers are objects of no identity stops at a pair of NaNs, and Python compares.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from ... import _core
from ..kinds import Hooks, is_number
from ..objects import Traced
from .branch import select

Relation = Callable[[Any, Any], Any]
Compare = Callable[[Relation, Any, Any], Any]
Items = tuple[Any, ...] | list[Any]
SEQUENCES = frozenset({tuple, list})
COMPARED = SEQUENCES | {dict}


def compare_containers(scope: Hooks, compare: Compare, relation: Relation, a: object, b: object) -> Any:
    """relation(a, b) for two tuples, lists or dicts with traced items. compare(relation, x, y) compares two items."""
    if is_sequence(a) and is_sequence(b):
        found = compare_sequences(scope, compare, relation, a, b)
        if found is not NotImplemented:
            return found
    if not may_compare(scope, nans_in(a, b)):
        a, b = scope.stage.materialise(a), scope.stage.materialise(b)
    return relation(a, b)


def is_sequence(value: object) -> TypeGuard[Items]:
    """True for a tuple or a list of Python's own."""
    return type(value) in SEQUENCES


def compare_sequences(scope: Hooks, compare: Compare, relation: Relation, a: Items, b: Items) -> Any:
    """relation(a, b) for two sequences as one value of the program: the first unequal pair decides, and without one the
    lengths do. NotImplemented if Python has to compare them.
    """
    pairs = [*zip(a, b)]
    if not scope.stage.tracer.may_check() or not all(map(are_comparable, pairs)):
        return NotImplemented
    found = relation(len(a), len(b))
    for x, y in reversed(pairs):
        is_equal = compare_items(scope, compare, operator.eq, x, y)
        if is_equal is NotImplemented:
            return NotImplemented
        if relation in (operator.eq, operator.ne):
            differs: Any = relation is operator.ne
        else:
            differs = compare_items(scope, compare, relation, x, y)
        if type(is_equal) is Traced:
            found = select(scope.stage.tracer, is_equal, found, differs)
        elif not is_equal:
            found = differs
        if found is None or differs is NotImplemented:
            return NotImplemented
    return found


def are_comparable(pair: tuple[Any, Any]) -> bool:
    """True for two numbers, and for two sequences of such numbers; complex numbers have no order."""
    if type(pair[0]) is type(pair[1]) and type(pair[0]) in SEQUENCES:
        return all(map(are_comparable, zip(*pair)))
    return all(v.ndim == 0 and v.dtype.kind != "c" if type(v) is Traced else is_number(v) for v in pair)


def compare_items(scope: Hooks, compare: Compare, relation: Relation, x: object, y: object) -> Any:
    """A comparison of two items; one object equals itself."""
    if is_sequence(x) and is_sequence(y):
        return compare_sequences(scope, compare, relation, x, y)
    if relation is operator.eq:
        if x is y:
            return True
        refuse_nans(scope.stage.tracer, nans_in(x, y))
    return compare(relation, x, y)


def may_both_be_nan(x: object, y: object) -> bool:
    """True if two numbers, one of them of the program, can be NaN."""
    return Traced in (type(x), type(y)) and may_be_nan(x) and may_be_nan(y)


def may_be_nan(value: object) -> bool:
    """True if a number can be NaN."""
    if type(value) is Traced:
        return value.ndim == 0 and value.dtype.kind in "fc"
    return is_number(value) and bool(value != value)


def refuse_nans(tracer: _core.Tracer, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Let the program stop where both numbers of a pair are NaN."""
    for x, y in pairs:
        is_number_in = [tracer.apply("equal", v, v) for v in (x, y) if type(v) is Traced]
        tracer.check(tracer.apply("logical_or", is_number_in[0], is_number_in[-1]), "a NaN is compared with itself")


def may_compare(scope: Hooks, pairs: Iterable[tuple[Any, Any]]) -> bool:
    """True if Python may compare the items: the program stops where a pair of them are NaN. False if the items must be real."""
    found = [*pairs]
    if found and not scope.stage.tracer.may_check():
        scope.stage.effects.stop("compares items that may be NaN")
        return False
    refuse_nans(scope.stage.tracer, found)
    return True


def nans_in(a: object, b: object) -> Iterable[tuple[Any, Any]]:
    """The pairs of items of two containers that may both be NaN and are different objects."""
    if a is b:
        return
    if type(a) is dict and type(b) is dict:
        for key in a.keys() & b.keys():
            yield from nans_in(a[key], b[key])
    elif is_sequence(a) and is_sequence(b):
        for x, y in zip(a, b):
            yield from nans_in(x, y)
    elif may_both_be_nan(a, b):
        yield a, b


def nans_among(items: Iterable[Any], value: object) -> Iterable[tuple[Any, Any]]:
    """The pairs of an item and a value that may both be NaN and are different objects."""
    for item in items:
        yield from nans_in(item, value)
