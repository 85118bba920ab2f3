"""Evenly spaced numbers: arange and linspace by NumPy's own formulas, triangles of ones, window functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from ..base.float_warnings import quietly
from .create import array as make
from .create import constant, plain, wanted_dtype
from .surface import (
    NotCaptured,
    Traced,
    array,
    as_result,
    cast,
    function,
    normal_axis,
    operand,
    refuse,
    require,
    result_type,
    whole,
)

FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
MOST = 2.0**53  # the largest length of an array that a float64 represents


# --- arange -------------------------------------------------------------------------------------


@function("arange", creates=True)
def arange(
    t: Any, *args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any
) -> Any:
    """np.arange: start + i * delta, where delta is the difference of the first two values."""
    plain(like, device, "C")
    refuse(set(named) - {"start", "stop", "step"} or (named and len(args) > 1), "keywords")
    if named:
        start = args[0] if args else named.get("start", 0)
        args = (start, named["stop"], named.get("step", 1))
    if len(args) > 3:
        dtype, args = args[3], args[:3]
    if any(type(a) is Traced for a in args):
        bounds = (0, *args) if len(args) == 1 else args
        return arange_of_numbers(t, *bounds, dtype=dtype)
    few = quietly(np.arange, *args, dtype=dtype)
    made = wanted_dtype(few.dtype)
    n = few.shape[0]
    if n < 3 or made.kind in "bc":
        return constant(t, few)
    return steps(t, n, few[0], few[1] - few[0], made)


def steps(t: Any, n: Any, start: Any, delta: Any, made: np.dtype) -> Any:
    """start + i * delta for i below n."""
    index = t.iota((n,), 0)
    if made.kind in "iu":
        values = cast(t, index, made, "unsafe")
        is_plain = type(start) is not Traced and (start, delta) == (0, 1)
        return values if is_plain else values * delta + start
    wide = np.dtype("f4") if made == np.float16 else made
    values = cast(t, index, wide) * operand(t, delta, wide) + operand(t, start, wide)
    return cast(t, values, made)


def arange_of_numbers(t: Any, start: Any, stop: Any, step: Any = 1, *, dtype: Any) -> Any:
    """np.arange of numbers some of which are traced."""
    step = 1 if step is None else step
    if all(map(is_int, (start, stop, step))):
        ends = (as_int(t, value) for value in (start, stop, step))
        return arange_of_sizes(t, *ends, dtype=dtype)
    made = wanted_dtype(np.result_type(result_type(start, stop, step)) if dtype is None else dtype)
    bounds = (start, stop, step)
    refuse(made != FLOAT64, f"dtype {made}")
    refuse(any(getattr(b, "shape", ()) != () for b in bounds), "bounds that are arrays")
    start, stop, step = (operand(t, b, FLOAT64) for b in bounds)
    delta = t.apply("subtract", t.apply("add", start, step), start)
    length = t.apply("ceil", t.apply("divide", t.apply("subtract", stop, start), step))
    fits = t.apply("less", t.apply("absolute", length), MOST)
    require(t, t.as_scalar(fits), "a length that an array may have")
    length = cast(t, t.apply("maximum", length, np.float64(0)), INT64, "unsafe")
    return steps(t, t.define(length, 0, None), start, delta, made)


def arange_of_sizes(t: Any, start: Any, stop: Any, step: Any = 1, *, dtype: Any) -> Any:
    """np.arange of ints of which some are traced: the length is an expression of them."""
    made = wanted_dtype(np.dtype(int) if dtype is None else dtype)
    start, stop, step = (symbol(t, v) for v in (start, stop, step))
    is_traced = type(start) is Traced or type(step) is Traced
    if made.kind not in "iuf" or (made.kind == "f" and is_traced):
        raise NotCaptured("its length depends on a run-time value")
    if type(step) is Traced:
        if not t.is_positive(step):
            require(t, step > 0, "a step that is positive")
        stride = t.size_max(step, 1)
    else:
        stride = operator.index(step)
        refuse(stride == 0, "a step of zero")
    length = -((start - stop) // stride)
    index = t.iota((t.size_max(length, 0),), 0)
    wide = np.dtype("f4") if made == np.float16 else made
    values = cast(t, index, wide)
    if type(step) is Traced:
        values = values * step
    elif stride != 1:
        values = values * wide.type(stride)
    if type(start) is Traced or start != 0:
        values = values + (start if type(start) is Traced else wide.type(start))
    return cast(t, values, made)


def symbol(t: Any, value: Any) -> Any:
    """An int as an expression: a data-dependent one gets a symbol."""
    if type(value) is not Traced or value.is_expression:
        return value
    return t.define(cast(t, value, INT64), None, None)


def is_int(value: Any) -> bool:
    """True for a Python int, or a 64-bit integer of NumPy, for which arange gives the same."""
    if type(value) is Traced:
        is_pythons = value.kind == "python" and value.dtype.kind == "i"
        return is_pythons or (value.kind == "scalar" and value.dtype == INT64)
    return type(value) in (int, np.int64)


def as_int(t: Any, value: Any) -> Any:
    """The value as a Python int."""
    if type(value) is Traced:
        return t.as_python(value) if value.kind == "scalar" else value
    return int(value)


@function("tri", creates=True)
def tri(
    t: Any,
    N: Any,  # noqa: N803
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    *,
    like: Any = None,
) -> Any:
    """np.tri; NumPy's own source chooses the dtype of the indices by the sizes."""
    refuse(like is not None, "like=")
    made = wanted_dtype(dtype)
    narrow = [is_a(v, np.integer) and v.dtype != np.int64 for v in (N, M, k)]
    refuse(any(narrow), "sizes in integers that may overflow")
    rows = whole(N)
    shape = tuple(t.size_max(n, 0) for n in (rows, rows if M is None else whole(M)))
    return cast(t, np.greater_equal(t.iota(shape, 0) + whole(k), t.iota(shape, 1)), made)


# --- linspace -----------------------------------------------------------------------------------


@function("linspace", creates=True)
def linspace(
    t: Any,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """np.linspace, by NumPy's own formula."""
    plain(None, device, "C")
    num = whole(num)
    require(t, num >= 0, "a negative number of samples")
    bounds = [make(t, b) if is_a(b, list | tuple) else b for b in (start, stop)]
    varies = any(type(v) is Traced for v in (*bounds, num))
    if not varies and (num <= 64 or np.iscomplexobj(start) or np.iscomplexobj(stop)):
        made = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
        return (constant(t, made[0]), made[1]) if retstep else constant(t, made)
    require(t, not retstep or num > int(endpoint), "a step between no two points")
    values, step = traced_linspace(t, bounds, num, endpoint, dtype)
    if axis != 0:
        at = normal_axis(axis, values.ndim)
        values = t.permute(values, (*range(1, at + 1), 0, *range(at + 1, values.ndim)))
    return (values, step) if retstep else values


def traced_linspace(t: Any, bounds: list[Any], num: Any, endpoint: bool, dtype: Any) -> Any:
    """linspace in the graph: arange(num) * step + start, with an exact last value. Also returns the step. If a tiny
    difference gives a step of zero, NumPy's other formula is used.
    """
    dt = np.result_type(result_type(*bounds), 0.0)
    made = dt if dtype is None else wanted_dtype(dtype)
    refuse(dt == np.float16 or made.kind == "b", f"dtype {made}")
    start, stop = (operand(t, v, dt) for v in bounds)
    delta = t.apply("subtract", stop, start)
    div = num - 1 if endpoint else num
    index = cast(t, t.iota((num,), 0), dt)
    index = t.reshape(index, (num, *(1,) * delta.ndim))
    if type(div) is int and div <= 0:
        step: Any = np.nan
        values = t.apply("multiply", index, delta)
    else:
        parts = cast(t, t.size_max(div, 1), dt) if type(div) is Traced else dt.type(div)
        step = t.apply("divide", delta, parts)
        values = scaled(t, index, delta, step, parts)
        step = as_result(t, step)
    values = t.apply("add", values, start)
    if endpoint and (type(num) is Traced or num > 1):
        last = values[-1:] if type(num) is int else values[t.size_max(num - 1, 1) :]
        t.assign(last, stop)
    if made.kind in "iu" and made != dt:
        values = t.apply("floor", values)
    return (values if made == dt else cast(t, values, made, "unsafe")), step


def scaled(t: Any, index: Any, delta: Any, step: Any, parts: Any) -> Any:
    """index * step, or index / parts * delta if a step is zero: one division and one product, of which one is by 1.
    """
    is_zero = t.apply("equal", step, step.dtype.type(0))
    if step.ndim:
        is_zero = t.reduce("any", is_zero, None)
    one = step.dtype.type(1)
    divisor = t.apply("where", is_zero, parts, one)
    factor = t.apply("where", is_zero, delta, step)
    return t.apply("multiply", t.apply("divide", index, divisor), factor)


# --- windows ------------------------------------------------------------------------------------


def window(name: str) -> None:
    """Register a window function: a library call if its length varies."""
    f = getattr(np, name)

    def call(*arrays: Any) -> Any:
        *beta, out = arrays
        return f(out.shape[0], *(float(b) for b in beta))

    def handler(t: Any, M: Any, *beta: Any, **named: Any) -> Any:  # noqa: N803
        beta = (*beta, *named.values())
        refuse(
            type(M) is Traced and not (M.kind == "python" and is_int(M)), "a length that is no int"
        )
        if type(M) is not Traced and M != int(M):
            raise NotCaptured("a length that is no int")
        n = t.size_max(M, 0) if type(M) is Traced else max(int(M), 0)
        xs = [operand(t, b, FLOAT64) for b in beta]
        return t.extern(name, "", call, xs, (n,), FLOAT64)

    function(name)(handler)


for _name in ("hanning", "hamming", "blackman", "bartlett", "kaiser"):
    window(_name)


@function("i0")
def i0(t: Any, x: Any) -> Any:
    """np.i0: a library call."""
    given = array(t, x)
    refuse(given.dtype.kind == "c", "complex values")
    wide = given if given.dtype.kind == "f" else array(t, given, FLOAT64)

    def call(values: Any, _out: Any) -> Any:
        return np.i0(values)

    return t.extern("i0", "", call, [wide], wide.shape, wide.dtype, elementwise=True)
