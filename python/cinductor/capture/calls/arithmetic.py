"""Functions of traced numbers that are made of the graph's operations: whole numbers, floats taken
apart, sums without rounding.

Each gives Python's own result to the last bit, and checks what the graph's arithmetic has not: ints
of more than 64 bits, and what Python raises for. What has neither is a break with its reason.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a, offered
from ..value.objects import Traced
from . import mathematics as mathematics  # its handlers, some of which those here replace
from .calls import understands
from .numpys import understands_method
from .unknown import call_pure, call_unknown

if TYPE_CHECKING:
    from ..value.hooks import Hooks

INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
WIDE = 4.6e18  # products below, computed in floats, fit 64 bits
EXACT = 1 << 53  # ints up to here are floats, too
OWN_BITS = "whose value only Python itself computes"


class PythonComputes(Exception):
    """Python itself computes the call."""


class Numbers:
    """Arithmetic on the numbers of one call, in the graph."""

    def __init__(self, scope: Hooks) -> None:
        self.scope, self.tracer = scope, scope.stage.tracer

    def whole(self, value: Any) -> Any:
        """An int as 64 bits."""
        if type(value) is Traced:
            if value.kind == "array" or value.dtype.kind not in "biu" or value.dtype == np.uint64:
                raise PythonComputes
            return self.tracer.cast(value, INT64)
        if not is_a(value, int | np.integer) or abs(int(value)) > EXACT:
            raise PythonComputes
        return self.tracer.lift(np.int64(value))

    def real(self, value: Any) -> Any:
        """A number as a float."""
        if type(value) is Traced:
            if value.kind == "array" or value.dtype.kind not in "biuf":
                raise PythonComputes
            return self.tracer.cast(value, FLOAT64)
        if not is_a(value, bool | int | float | np.floating | np.integer):
            raise PythonComputes
        return self.tracer.lift(np.float64(value))

    def __getattr__(self, op: str) -> Callable[..., Any]:
        return functools.partial(self.tracer.apply, op)

    def check(self, condition: Any, why: str) -> None:
        """Python itself computes the call where the condition does not hold."""
        self.tracer.check(condition, why)

    def python(self, value: Any) -> Any:
        """A number of the graph as Python's."""
        return self.tracer.as_python(value)


def is_data(value: Any) -> bool:
    """A number that only the running program knows."""
    return type(value) is Traced and value.kind != "array" and not value.is_expression


def is_number(value: Any) -> bool:
    """A number of the program's; that of sizes, too."""
    return type(value) is Traced and value.kind != "array"


def is_unknown(value: Any) -> bool:
    """A number that has no value in this call: it is no argument, and was not made of arguments."""
    return is_data(value) and (value.kind != "python" or value.is_fresh)


def in_graph(*functions: Any) -> Callable[[Any], Any]:
    """Enters a function of numbers, called with Numbers and the arguments where one is data."""

    def enter(compute: Callable[..., Any]) -> Any:
        def handle(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
            if not kwargs and any(map(is_number, args)) and scope.stage.may_check():
                try:
                    return compute(Numbers(scope), *args)
                except (PythonComputes, TypeError):
                    pass
            return call_pure(scope, f, args, kwargs)

        understands(*functions)(handle)
        return compute

    return enter


# --- ints -----------------------------------------------------------------------------------------


@in_graph(math.gcd)
def gcd(n: Numbers, *values: Any) -> Any:
    """math.gcd"""
    found = functools.reduce(n.gcd, map(n.whole, values))
    found = n.absolute(found)
    n.check(n.greater_equal(found, 0), "an int of more than 64 bits")
    return n.python(found)


@in_graph(math.lcm)
def lcm(n: Numbers, *values: Any) -> Any:
    """math.lcm"""

    def pair(a: Any, b: Any) -> Any:
        sizes = [n.absolute(n.real(v)) for v in (a, b, n.maximum(n.absolute(n.gcd(a, b)), 1))]
        size = n.divide(n.multiply(sizes[0], sizes[1]), sizes[2])
        n.check(n.less(size, WIDE), "an int of more than 64 bits")
        return n.lcm(a, b)

    found = n.absolute(functools.reduce(pair, map(n.whole, values)))
    n.check(n.greater_equal(found, 0), "an int of more than 64 bits")
    return n.python(found)


@in_graph(math.isqrt)
def isqrt(n: Numbers, value: Any) -> Any:
    """math.isqrt: the float's root, which is off by one at most."""
    value = n.whole(value)
    n.check(n.greater_equal(value, 0), "isqrt of a negative number")
    n.check(n.less(value, 1 << 62), "an int of more than 62 bits")
    root = n.tracer.cast(n.sqrt(n.real(value)), INT64)
    root = n.where(n.greater(n.multiply(root, root), value), n.subtract(root, 1), root)
    more = n.add(root, 1)
    return n.python(n.where(n.less_equal(n.multiply(more, more), value), more, root))


@in_graph(math.factorial)
def factorial(n: Numbers, value: Any) -> Any:
    """math.factorial of what fits 64 bits, by a table."""
    value = n.whole(value)
    table = np.array([math.factorial(k) for k in range(21)])
    inside = n.logical_and(n.greater_equal(value, 0), n.less(value, len(table)))
    n.check(inside, "a factorial of more than 64 bits")
    place = n.maximum(n.minimum(value, len(table) - 1), 0)
    return n.python(n.tracer.gather(n.scope.stage.constant(table), [0], [place]))


@understands_method("bit_length")
def bit_length(scope: Hooks, value: Any, args: Any) -> Any:
    """int.bit_length of what a float holds exactly."""
    n = Numbers(scope)
    size = n.absolute(n.whole(value))
    n.check(n.logical_and(n.less_equal(size, EXACT), n.greater_equal(size, 0)), "a large int")
    return n.python(n.tracer.cast(n.frexp_exponent(n.real(size)), INT64))


@understands_method("bit_count")
def bit_count(scope: Hooks, value: Any, args: Any) -> Any:
    """int.bit_count"""
    n = Numbers(scope)
    return n.python(n.bitwise_count(n.whole(value)))


# --- floats ---------------------------------------------------------------------------------------


@understands_method("is_integer")
def is_integer(scope: Hooks, value: Any, args: Any) -> Any:
    """float.is_integer"""
    n = Numbers(scope)
    x = n.real(value)
    return n.python(n.logical_and(n.isfinite(x), n.equal(n.floor(x), x)))


@in_graph(math.ldexp)
def ldexp(n: Numbers, x: Any, exponent: Any) -> Any:
    """math.ldexp"""
    x, places = n.real(x), n.whole(exponent)
    y = n.ldexp(x, n.real(n.maximum(n.minimum(places, 5000), -5000)))
    fits = n.logical_or(n.isfinite(y), n.logical_not(n.isfinite(x)))
    n.check(fits, "a number out of range")
    return n.python(y)


@in_graph(math.frexp)
def frexp(n: Numbers, x: Any) -> Any:
    """math.frexp"""
    x = n.real(x)
    exponent = n.tracer.cast(n.frexp_exponent(x), INT64)
    return n.python(n.frexp_mantissa(x)), n.python(exponent)


@in_graph(math.modf)
def modf(n: Numbers, x: Any) -> Any:
    """math.modf"""
    x = n.real(x)
    return n.python(n.modf_fraction(x)), n.python(n.trunc(x))


@in_graph(math.ulp)
def ulp(n: Numbers, x: Any) -> Any:
    """math.ulp: the distance to the next larger one, or of the largest to the one before."""
    x = n.absolute(n.real(x))
    above, below = n.nextafter(x, math.inf), n.nextafter(x, 0.0)
    step = n.where(n.isfinite(above), n.subtract(above, x), n.subtract(x, below))
    return n.python(n.where(n.isfinite(x), step, x))


@understands(math.isclose)
def _isclose(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """math.isclose; tolerances that are data are Python's."""
    relative, absolute = kwargs.get("rel_tol", 1e-9), kwargs.get("abs_tol", 0.0)
    is_known = type(relative) is float and type(absolute) is float and min(relative, absolute) >= 0
    if len(args) != 2 or not is_known or not any(map(is_data, args)):
        return call_pure(scope, f, args, kwargs)
    n = Numbers(scope)
    try:
        a, b = map(n.real, args)
    except PythonComputes:
        return call_pure(scope, f, args, kwargs)
    distance = n.absolute(n.subtract(b, a))
    near = n.less_equal(distance, absolute)
    for size in (b, a):
        most = n.absolute(n.multiply(size, relative))
        near = n.logical_or(near, n.less_equal(distance, most))
    finite = n.logical_and(n.isfinite(a), n.isfinite(b))
    return n.python(n.logical_or(n.equal(a, b), n.logical_and(finite, near)))


@understands(math.fsum)
def _fsum(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """math.fsum of an array, or of numbers: Python's own, called by the program."""
    stage = scope.stage
    values = stage.lift_array(args[0]) if len(args) == 1 and not kwargs else None
    if is_a(values, list | tuple) and any(map(is_data, stage.lift_items(values))):
        values = scope.array_of(values)
    if type(values) is not Traced or values.kind != "array" or values.ndim != 1:
        return call_pure(scope, f, args, kwargs)
    if values.dtype.kind == "c":
        return call_pure(scope, f, args, kwargs)
    made = stage.tracer.extern("fsum", "", exact_sum, [values], (), FLOAT64)
    return Numbers(scope).python(made)


def exact_sum(values: Any, out: Any) -> None:
    """math.fsum into an array without dimensions."""
    out[...] = math.fsum(values)


# --- what only Python has -------------------------------------------------------------------------


ONLY_PYTHONS = "gamma lgamma comb perm dist remainder sumprod fma"


@understands(*(getattr(math, name) for name in ONLY_PYTHONS.split() if hasattr(math, name)))
@understands(*(f for f in offered(cmath) if callable(f)))
def _only_pythons(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """A break where an argument is data."""
    given = [*args, *kwargs.values()]
    given += [item for v in given if is_a(v, tuple | list) for item in v]
    if any(map(is_unknown, given)):
        name = f"{f.__module__}.{f.__name__}"
        return call_unknown(scope, f, args, kwargs, f"calls {name}, {OWN_BITS}")
    return call_pure(scope, f, args, kwargs)
