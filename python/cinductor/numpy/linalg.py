"""Matrix products: library calls of NumPy on whole arrays, or element-wise products and sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    PARTS,
    array,
    as_result,
    careful,
    function,
    in_place,
    into,
    refuse,
    require_same,
    result_type,
)


def call_dot(a: Any, b: Any, _out: Any) -> Any:
    """np.dot(a, b)"""
    return np.dot(a, b)


def call_vdot(a: Any, b: Any, _out: Any) -> Any:
    """np.vdot(a, b)"""
    return np.vdot(a, b)


def call_inner(a: Any, b: Any, _out: Any) -> Any:
    """np.inner(a, b)"""
    return np.inner(a, b)


def pair(t: Any, a: Any, b: Any) -> tuple[Any, Any, np.dtype]:
    """Both as arrays, and the dtype of their product."""
    x, y = array(t, a), array(t, b)
    refuse(x.is_view_of_part or y.is_view_of_part, PARTS)
    dtype = result_type(x, y)
    return in_place(t, x, dtype), in_place(t, y, dtype), dtype


def is_number(a: Any) -> bool:
    """True for an operand of rank 0; lists, tuples and ranges have axes."""
    return not is_a(a, list | tuple | range) and getattr(a, "ndim", 0) == 0


def scaled(t: Any, name: str, call: Any, a: Any, b: Any) -> Any:
    """A product with a number. For floats it is BLAS's, in which 0 times infinity is 0, and so is -0. Of a matrix it has C
    order then; other products are ufuncs.
    """
    x, y, dtype = pair(t, a, b)
    if dtype.kind not in "fc":
        return np.multiply(x, y)
    shape = y.shape if x.ndim == 0 else x.shape
    is_blas = dtype.char in "fdFD" and len(shape) <= 2
    return as_result(t, t.extern(name, "", call, [x, y], shape, dtype, elementwise=not is_blas))


@function("dot")
def dot(t: Any, a: Any, b: Any, out: Any = None) -> Any:
    """np.dot"""
    x, y, dtype = pair(t, a, b)
    refuse(out is not None and not out.flags_now.c_contiguous, "out= of another order")
    if is_number(a) or is_number(b):
        return into(t, out, scaled(t, "dot", call_dot, a, b))
    k = y.shape[-2] if y.ndim > 1 else y.shape[0]
    require_same(t, x.shape[-1], k)
    shape = (*x.shape[:-1], *y.shape[:-2], *(y.shape[-1:] if y.ndim > 1 else ()))
    return as_result(t, into(t, out, t.extern("dot", "", call_dot, [x, y], shape, dtype)))


@function("vdot")
def vdot(t: Any, a: Any, b: Any, /) -> Any:
    """np.vdot"""
    x, y, dtype = pair(t, a, b)
    require_same(t, x.size, y.size)
    return as_result(t, t.extern("vdot", "", call_vdot, [x, y], (), dtype))


@function("inner")
def inner(t: Any, a: Any, b: Any, /) -> Any:
    """np.inner"""
    if is_number(a) or is_number(b):
        return scaled(t, "inner", call_inner, a, b)
    x, y, dtype = pair(t, a, b)
    require_same(t, x.shape[-1], y.shape[-1])
    shape = (*x.shape[:-1], *y.shape[:-1])
    return as_result(t, t.extern("inner", "", call_inner, [x, y], shape, dtype))


@function("linalg.vecdot")
def vecdot(t: Any, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """np.linalg.vecdot"""
    refuse(axis != -1, "axis=")
    return np.vecdot(array(t, x1), array(t, x2))


def linear_dtype(*xs: Any) -> np.dtype:
    """The dtype in which LAPACK computes: float64 for integers; NumPy refuses halves."""
    dtype = np.result_type(*(x.dtype for x in xs))
    if any(x.dtype == np.float16 for x in xs):
        raise TypeError("array type float16 is unsupported in linalg")
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def square(x: Any) -> None:
    """Raise unless x is a batch of square matrices; NumPy's own exception replaces it."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("not square")


def whole_matrix(name: str, f: Any, to_real: bool = False, drops: int = 0) -> Any:
    """A handler for a function of one batch of square matrices: a library call. drops: number of axes that the result
    lacks.
    """

    def call(a: Any, _out: Any) -> Any:
        return f(a)

    def handler(t: Any, a: Any) -> Any:
        x = array(t, a)
        square(x)
        dtype = linear_dtype(x)
        made = np.dtype(dtype.char.lower()) if to_real else dtype
        shape = x.shape[: x.ndim - drops]
        xs = [in_place(t, x, dtype)]
        return as_result(t, careful(t, name, "", call, xs, shape, made))

    return function(f"linalg.{name}")(handler)


whole_matrix("inv", np.linalg.inv)
whole_matrix("det", np.linalg.det, drops=2)


@function("linalg.cholesky")
def cholesky(t: Any, a: Any, /, *, upper: bool = False) -> Any:
    """np.linalg.cholesky: a library call."""
    x = array(t, a)
    square(x)
    dtype = linear_dtype(x)
    options = {"upper": True} if upper else {}

    def call(a: Any, _out: Any) -> Any:
        return np.linalg.cholesky(a, **options)

    key = "upper" if upper else ""
    return careful(t, "cholesky", key, call, [in_place(t, x, dtype)], x.shape, dtype)
