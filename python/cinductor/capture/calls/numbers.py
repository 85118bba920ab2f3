"""Functions of traced numbers: float, int, bool, round, pow, sum and Python's math, and functions composed of graph
operations, such as gcd, frexp and fsum.

Each gives Python's result to the last bit. Where the graph's arithmetic differs it adds a check: ints of more than
64 bits, and operands for which Python raises. If no check is possible, the call is a break with its reason.
"""

from __future__ import annotations

import cmath
import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a, offered
from ...numpy import twister
from ...numpy.surface import careful
from ..kinds import is_tagged
from ..objects import CONTAINER_TYPES, FREE_TYPES, VIEWS_OF_DICTS, Traced
from .calls import dispatch, understands, understands_family
from .consumers import FEW, line_of
from .functions import call_pure, call_unknown

if TYPE_CHECKING:
    from ..kinds import Hooks


COLLECTIONS = frozenset({*CONTAINER_TYPES, *VIEWS_OF_DICTS, set, frozenset, range})
ADDS_WITH_CARE = sys.version_info >= (3, 12)  # sum() of floats is compensated
ADDS_COMPLEX_WITH_CARE = sys.version_info >= (3, 14)  # also for complex numbers
ADDS_INTS_WITH_CARE = sum([1e16, 1, -1e16]) == 1  # also for ints added to floats, as in 3.14


def is_traced(*values: Any) -> bool:
    """True if one of the values is traced."""
    return any(type(v) is Traced for v in values)


@understands(operator.is_, operator.is_not)
def _is(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 2 or kwargs:
        return f(*args, **kwargs)  # raises
    return scope.is_one(*args) is (f is operator.is_)


@understands_family(*(f for f in offered(math) if callable(f)))
def _math(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """A function of the table in math.def, or one that Python itself computes."""
    if is_traced(*args) and not kwargs:
        result = scope.stage.tracer.number(f.__name__, f, args)
        if result is not NotImplemented:
            return result
    return call_pure(scope, f, args, kwargs)


@understands(math.trunc)
def _trunc(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's numbers have no __trunc__, except float64, which is a subclass of float."""
    if len(args) != 1 or kwargs or type(args[0]) is not Traced:
        return _math(scope, f, args, kwargs)
    if not is_a(args[0], float | int):
        return call_unknown(scope, f, args, kwargs)
    result = scope.stage.tracer.number("trunc", f, args)
    return int(args[0]) if result is NotImplemented else result


@understands(math.floor, math.ceil)
def _floor(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's integers and arrays have no __floor__ and no __ceil__, so Python rounds their float."""
    if len(args) == 1 and not kwargs and type(args[0]) is Traced and not is_a(args[0], float | int):
        number = scope.stage.tracer.number("float", float, args)
        args = args if number is NotImplemented else (number,)
    return _math(scope, f, args, kwargs)


@understands(math.log)
def _log(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 2 and is_traced(*args) and not kwargs:
        return _math(scope, f, args[:1], {}) / _math(scope, f, args[1:], {})
    return _math(scope, f, args, kwargs)


@understands(twister.log, twister.cos, twister.sin)
def _of_the_library(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """The C library's function, whatever the option numerics is."""
    tracer = scope.stage.tracer
    return tracer.as_python(tracer.apply(f"scalar_{f.__name__}", *args))


@understands(math.degrees, math.radians)
def _angle(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) == 1 and is_traced(*args) and not kwargs:
        factor = 180.0 / math.pi if f is math.degrees else math.pi / 180.0
        return _convert(scope, float, args, {}) * factor
    return call_pure(scope, f, args, kwargs)


@understands(math.hypot)
def _hypot(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) > 2 and is_traced(*args) and not kwargs:
        length: Any = args[0]
        for value in args[1:]:
            length = scope.stage.tracer.number("hypot", f, (length, value))
            if length is NotImplemented:  # Python does not combine them in pairs
                return call_pure(scope, f, args, kwargs)
        return length
    if len(args) == 1 and not kwargs:
        return _math(scope, math.fabs, args, {})
    return _math(scope, f, args, kwargs)


@understands(math.prod)
def _prod(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    items = list(scope.iter(args[0])) if args else []
    start = kwargs.get("start", 1)
    if len(args) == 1 and is_traced(start, *items) and not kwargs.keys() - {"start"}:
        return functools.reduce(lambda a, b: scope.operand(a) * scope.operand(b), items, start)
    return call_pure(scope, f, (items,) if args else (), kwargs)


@understands(float, int, bool)
def _convert(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return f(*args, **kwargs)
    value = args[0]
    if is_tagged(value):
        value = scope.stage.tracer.tagged(value, None)
        args = (value,)
    if type(value) is Traced:
        if value.kind == "python" and value.__class__ is f:
            return value
        if f is float and value.kind == "python" and value.dtype.kind in "iu":
            return value * 1.0
        result = scope.stage.tracer.number(f.__name__, f, args)
        return f(value) if result is NotImplemented else result
    if type(value) in FREE_TYPES:
        return f(value)
    return bool(scope.test(value)) if f is bool else call_pure(scope, f, args, kwargs)


@understands(complex)
def _complex(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """complex(re, im) of real numbers."""
    tracer = scope.stage.tracer
    if len(args) == 2 and not kwargs and is_traced(*args) and all(map(is_real, args)):
        parts = [tracer.cast(tracer.lift(a), np.complex128) for a in args]
        return tracer.as_python(tracer.apply("join_parts", *parts))
    return call_pure(scope, f, args, kwargs)


def is_real(value: Any) -> bool:
    """A float or an int, traced or not."""
    if type(value) is Traced:
        return value.kind != "array" and value.dtype.kind in "if"
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


@understands(round)
def _round(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or type(args[0]) is not Traced:
        return call_pure(scope, f, args, kwargs)
    value = args[0]
    if value.kind == "array" or not hasattr(value.__class__, "__round__"):
        return call_unknown(scope, f, args, kwargs)
    if len(args) + len(kwargs) > 2 or kwargs.keys() - {"ndigits"}:
        return f(0, *args[1:], **kwargs)  # raises
    digits = args[1] if len(args) > 1 else kwargs.get("ndigits")
    if digits is not None and type(digits) is not Traced:
        operator.index(digits)  # raises for an object that is not an int
    if digits is None:
        result = scope.stage.tracer.number("round", f, (value,))
        if result is not NotImplemented:
            return result
    elif value.strong is not None:
        scope.stage.regions.note_class(args[:1])
        return _round(scope, f, args, kwargs)
    elif value.kind == "scalar" and value.dtype.kind == "f":
        return dispatch(scope, value.round, (digits,), {})  # type: ignore[attr-defined]
    if value.kind == "scalar":
        return call_unknown(scope, f, args, kwargs)
    if value.is_fresh:
        reason = "rounds to decimal places, as only Python itself does"
        return call_unknown(scope, f, args, kwargs, reason)
    number = int(value) if is_a(value, int) else float(value)
    return f(number, *args[1:], **kwargs)


@understands(pow)
def _pow(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    given = (*args, *kwargs.values())
    traced = [v for v in given if type(v) is Traced] if len(given) > 2 else []
    if any(v.is_fresh or v.kind != "python" or v.dtype.kind not in "ib" for v in traced):
        return call_unknown(scope, f, args, kwargs, "a power with a modulus")
    if traced:
        args = tuple(operator.index(a) for a in args)
        kwargs = {k: v if v is None else operator.index(v) for k, v in kwargs.items()}
    return call_pure(scope, f, args, kwargs)


@understands(sum)
def _sum(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    if not args or len(args) > 2 or kwargs.keys() - {"start"}:
        return f(*args, **kwargs)  # raises
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if type(start) is int and start == 0 and (line := line_of(scope, args[:1], {}, "iufc")) is not None:
        if line.dtype.char in "fdlqFD" and line.shape[0] > FEW:
            return scope.call(np.add.accumulate, line)[-1] + start  # a sum of zeros has the sign of 0
    items: Any = scope.iter(args[0])
    if type(args[0]) in COLLECTIONS:  # no code of the user's runs between two items
        items = [*items]
        if all(type(v) in FREE_TYPES and type(v) is not Traced for v in (start, *items)):
            return f(items, start)
    if is_a(start, str | bytes | bytearray):
        return f(items, start)  # raises
    total, carry = start, (0j if _is_careful_complex(start) else 0.0) if ADDS_WITH_CARE else None
    for item in items:
        total, carry = sum_and_carry(scope, total, carry, item)
    return scope.stage.lift_array(sum_of(scope, total, carry))


def sum_and_carry(scope: Hooks, total: Any, carry: Any, item: Any) -> tuple[Any, Any]:
    """Add one item to a compensated sum. Returns the sum and its error term, for Python floats, and
    for complex numbers if Python adds these with compensation (the errors of both parts are one
    number). From the first item of another type on the error term is None."""
    total, item = scope.operand(total), scope.operand(item)
    if carry is None:
        return total + item, None
    for value in (total, item):
        if is_tagged(value) and not (_is_python(value, float) and value.weak.kind in "bi"):
            scope.stage.tracer.resolve_class(value)
    if _is_python(total, float):
        if _is_python(item, float):
            return _more(scope, total, carry, item)
        if is_a(item, int):
            return _more(scope, total, carry, item) if ADDS_INTS_WITH_CARE else (total + item, carry)
        new = sum_of(scope, total, carry) + item
        return new, 0j if _is_careful_complex(new) else None
    if _is_careful_complex(total):
        if _is_python(item, complex):
            pairs = zip(*(_parts(scope, v) for v in (total, carry, item)), strict=True)
            real, imag = (_more(scope, *pair) for pair in pairs)
            return _join(scope, real[0], imag[0]), _join(scope, real[1], imag[1])
        if is_a(item, float | int):
            (real, imag), (error, other) = _parts(scope, total), _parts(scope, carry)
            real, error = _more(scope, real, error, item)
            return _join(scope, real, imag), _join(scope, error, other)
        return sum_of(scope, total, carry) + item, None
    new = total + item
    if _is_careful_complex(new):
        return new, 0j
    is_int = _is_python(item, int) or _is_python(item, bool)
    return new, carry if is_int or _is_python(new, float) else None


def sum_of(scope: Hooks, total: Any, carry: Any) -> Any:
    """The sum including its error term."""
    if not (_is_python(total, float) or _is_careful_complex(total)):
        return total
    if carry is None or (type(carry) in (float, complex) and not carry):
        return total
    if not _is_python(total, float):
        pairs = zip(_parts(scope, total), _parts(scope, carry), strict=True)
        return _join(scope, *(sum_of(scope, *pair) for pair in pairs))
    if not is_traced(total, carry):
        return total + carry if math.isfinite(carry) else total
    t = scope.stage.tracer
    number, carry = t.as_scalar(t.lift(total)), t.as_scalar(t.lift(carry))
    counts = t.apply("logical_and", carry != 0, t.apply("isfinite", carry))
    result = t.as_python(t.apply("where", counts, number + carry, number))
    return t.tagged(result, total.strong, total.weak) if is_tagged(total) else result


def _more(scope: Hooks, total: Any, carry: Any, item: Any) -> tuple[Any, Any]:
    """A float with one more number added, and the error term: Neumaier's variant of Kahan's summation (ZAMM 54,
    1974), which Python uses for floats from 3.12 on, and for complex numbers from 3.14 on.
    """
    if not is_traced(total, carry, item):
        item = float(item)
        new = total + item
        big, small = (item, total) if abs(total) < abs(item) else (total, item)
        return new, carry + ((big - new) + small)
    t, result = scope.stage.tracer, total + item
    y, carry, x = (t.as_scalar(t.lift(v)) for v in (total, carry, item))
    x = t.cast(x, np.float64)
    new = y + x
    is_less = t.apply("less", abs(y), abs(x))
    big, small = t.apply("where", is_less, x, y), t.apply("where", is_less, y, x)
    error = carry + ((big - new) + small)
    for value in (total,) if ADDS_INTS_WITH_CARE else (total, item):
        if is_tagged(value):  # as long as it is an int, Python's sum has no error term
            error = t.apply("where", value.strong, error, carry)
    return result, t.as_python(error)


def _is_careful_complex(total: Any) -> bool:
    """True for a partial sum whose two parts are compensated."""
    return ADDS_COMPLEX_WITH_CARE and _is_python(total, complex)


def _parts(scope: Hooks, z: Any) -> tuple[Any, Any]:
    """The parts of a complex number."""
    if type(z) is not Traced:
        return z.real, z.imag
    t = scope.stage.tracer
    x = t.as_scalar(t.lift(z))
    return t.as_python(t.apply("real", x)), t.as_python(t.apply("imag", x))


def _join(scope: Hooks, real: Any, imag: Any) -> Any:
    """The complex number of two parts."""
    return _complex(scope, complex, (real, imag), {})


def _is_python(value: Any, kind: type) -> bool:
    """True for Python's own number of that kind, traced or not."""
    if type(value) is Traced:
        return value.kind == "python" and value.__class__ is kind
    return type(value) is kind


# --- functions composed of the graph's operations ---


INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
WIDE = 4.6e18  # float products below this fit 64 bits
EXACT = 1 << 53  # all smaller ints are exact floats
OWN_BITS = "whose value only Python itself computes"


class PythonComputes(Exception):
    """Raised if Python must compute the call."""


class Numbers:
    """Arithmetic on the numbers of one call, in the graph."""

    def __init__(self, scope: Hooks) -> None:
        self.scope, self.tracer = scope, scope.stage.tracer

    def whole(self, value: Any) -> Any:
        """An int in 64 bits."""
        if type(value) is Traced:
            if value.kind == "array" or value.dtype.kind not in "biu" or value.dtype == np.uint64:
                raise PythonComputes
            if value.dtype == bool and value.kind != "python":  # NumPy's has no __index__
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
        """Let Python compute the call unless the condition holds."""
        self.tracer.check(condition, why)

    def python(self, value: Any) -> Any:
        """A number of the graph as Python's."""
        return self.tracer.as_python(value)


def is_data(value: Any) -> bool:
    """True for a number only known at run time."""
    return type(value) is Traced and value.kind != "array" and not value.is_expression


def is_number(value: Any) -> bool:
    """True for a constant, also if it is an expression of sizes."""
    return type(value) is Traced and value.kind != "array"


def is_unknown(value: Any) -> bool:
    """True for a number that has no value in this call, because it is neither an argument nor computed from
    arguments.
    """
    return is_data(value) and (value.kind != "python" or value.is_fresh)


def in_graph(*functions: Any) -> Callable[[Any], Any]:
    """Register a function of numbers; it gets Numbers and the arguments if one of them is data."""

    def enter(compute: Callable[..., Any]) -> Any:
        def handle(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
            if not kwargs and any(map(is_number, args)) and scope.stage.tracer.may_check():
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
    """math.isqrt: the float square root is at most 1 off."""
    value = n.whole(value)
    n.check(n.greater_equal(value, 0), "isqrt of a negative number")
    n.check(n.less(value, 1 << 62), "an int of more than 62 bits")
    root = n.tracer.cast(n.sqrt(n.real(value)), INT64)
    root = n.where(n.greater(n.multiply(root, root), value), n.subtract(root, 1), root)
    more = n.add(root, 1)
    return n.python(n.where(n.less_equal(n.multiply(more, more), value), more, root))


@in_graph(math.factorial)
def factorial(n: Numbers, value: Any) -> Any:
    """math.factorial for results that fit 64 bits, from a table."""
    value = n.whole(value)
    table = np.array([math.factorial(k) for k in range(21)])
    inside = n.logical_and(n.greater_equal(value, 0), n.less(value, len(table)))
    n.check(inside, "a factorial of more than 64 bits")
    place = n.maximum(n.minimum(value, len(table) - 1), 0)
    return n.python(n.tracer.gather(n.scope.stage.constant(table), [0], [place]))


def bit_length(scope: Hooks, value: Any, args: Any) -> Any:
    """int.bit_length of an int that is an exact float."""
    n = Numbers(scope)
    size = n.absolute(n.whole(value))
    n.check(n.logical_and(n.less_equal(size, EXACT), n.greater_equal(size, 0)), "a large int")
    return n.python(n.tracer.cast(n.frexp_exponent(n.real(size)), INT64))


def bit_count(scope: Hooks, value: Any, args: Any) -> Any:
    """int.bit_count"""
    n = Numbers(scope)
    return n.python(n.bitwise_count(n.whole(value)))


# --- floats ---------------------------------------------------------------------------------------


def is_integer(scope: Hooks, value: Any, args: Any) -> Any:
    """float.is_integer"""
    n = Numbers(scope)
    x = n.real(value)
    return n.python(n.logical_and(n.isfinite(x), n.equal(n.floor(x), x)))


@in_graph(math.ldexp)
def ldexp(n: Numbers, x: Any, exponent: Any) -> Any:
    """math.ldexp"""
    if exponent.kind != "python" if type(exponent) is Traced else not is_a(exponent, int):
        raise PythonComputes  # it accepts no NumPy ints
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
    """math.ulp: the distance to the next larger number; for the largest to the next smaller one."""
    x = n.absolute(n.real(x))
    above, below = n.nextafter(x, math.inf), n.nextafter(x, 0.0)
    step = n.where(n.isfinite(above), n.subtract(above, x), n.subtract(x, below))
    return n.python(n.where(n.isfinite(x), step, x))


@understands(math.isclose)
def _isclose(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """math.isclose; Python computes it for run-time tolerances."""
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
    """math.fsum of an array, or of numbers: the program calls Python's function."""
    stage = scope.stage
    values = stage.lift_array(args[0]) if len(args) == 1 and not kwargs else None
    if is_a(values, list | tuple) and any(map(is_data, stage.lift_items(values))):
        values = scope.array_of(values)
    if type(values) is not Traced or values.kind != "array" or values.ndim != 1:
        return call_pure(scope, f, args, kwargs)
    if values.dtype.kind == "c" or not stage.tracer.may_check():
        return call_pure(scope, f, args, kwargs)
    made = careful(stage.tracer, "fsum", "", exact_sum, [values], (), FLOAT64)
    return Numbers(scope).python(made)


def exact_sum(values: Any, out: Any) -> None:
    """math.fsum into an array of rank 0."""
    out[...] = math.fsum(values)


# --- functions that only Python computes -----------------------------------------------------------


ONLY_PYTHONS = "gamma lgamma comb perm dist remainder sumprod fma"


@understands(*(getattr(math, name) for name in ONLY_PYTHONS.split() if hasattr(math, name)))
@understands(*(f for f in offered(cmath) if callable(f)))
def _only_pythons(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    """A break if an argument is data."""
    given = [*args, *kwargs.values()]
    given += [item for v in given if is_a(v, tuple | list) for item in v]
    if any(map(is_unknown, given)):
        name = f"{f.__module__}.{f.__name__}"
        return call_unknown(scope, f, args, kwargs, f"calls {name}, {OWN_BITS}")
    return call_pure(scope, f, args, kwargs)
