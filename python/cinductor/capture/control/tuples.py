"""Comparisons of tuples of numbers that are only known at run time, as Python compares tuples: the first unequal pair
decides, and without one the lengths do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import _core
from ..kinds import is_number
from ..objects import Traced
from .branch import select

Relation = Callable[[Any, Any], Any]
Compare = Callable[[Relation, Any, Any], Any]


def compare_tuples(
    tracer: _core.Tracer, compare: Compare, relation: Relation, a: tuple[Any, ...], b: tuple[Any, ...]
) -> Any:
    """relation(a, b) as one value of the program; NotImplemented if Python has to compare them. compare(relation, x, y)
    compares two items.
    """
    pairs = [*zip(a, b)]
    if not tracer.may_check() or not all(map(are_comparable, pairs)):
        return NotImplemented
    found = relation(len(a), len(b))
    for x, y in reversed(pairs):
        is_equal = compare_items(tracer, compare, operator.eq, x, y)
        if is_equal is NotImplemented:
            return NotImplemented
        if relation in (operator.eq, operator.ne):
            differs: Any = relation is operator.ne
        else:
            differs = compare_items(tracer, compare, relation, x, y)
        if type(is_equal) is Traced:
            found = select(tracer, is_equal, found, differs)
        elif not is_equal:
            found = differs
        if found is None or differs is NotImplemented:
            return NotImplemented
    return found


def are_comparable(pair: tuple[Any, Any]) -> bool:
    """True for two numbers, and for two tuples of such numbers; complex numbers have no order."""
    if all(type(v) is tuple for v in pair):
        return all(map(are_comparable, zip(*pair)))
    return all(v.ndim == 0 and v.dtype.kind != "c" if type(v) is Traced else is_number(v) for v in pair)


def compare_items(tracer: _core.Tracer, compare: Compare, relation: Relation, x: object, y: object) -> Any:
    """A comparison of two items. Python takes an object to equal itself, so that a NaN may equal itself or not: the
    program stops at a pair of them, and Python compares.
    """
    if type(x) is tuple and type(y) is tuple:
        return compare_tuples(tracer, compare, relation, x, y)
    if relation is operator.eq and all(type(v) is Traced and v.dtype.kind == "f" for v in (x, y)):
        is_number_in = [tracer.apply("equal", v, v) for v in (x, y)]
        tracer.check(tracer.apply("logical_or", *is_number_in), "a NaN is compared with itself")
    return compare(relation, x, y)
