"""Functions that make arrays. With traced values, or for sizes worth compiling, they become part of the graph; arrays
of constants are inputs whose contents never change.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .shape import sizes
from .surface import (
    Traced,
    as_result,
    boxed,
    cast,
    converted,
    dtype_of,
    function,
    has_dtype,
    is_one,
    is_out,
    lying,
    memory_order,
    method,
    operand,
    refuse,
    whole,
)

UNSET = np._NoValue


def wanted_dtype(dtype: Any) -> np.dtype:
    """A dtype argument; raises NotCaptured if it cannot be compiled."""
    made = dtype_of(dtype)
    refuse(not has_dtype(made), f"dtype {made}")
    return made


def plain(like: Any, device: Any, order: str) -> str:
    """Refuse like= and devices; return the order as C or F."""
    refuse(like is not None, "like=")
    if device not in (None, "cpu"):
        raise ValueError("device")
    refuse(order not in ("C", "F", "K", "A"), f"order={order!r}")
    return "F" if order == "F" else "C"


def filled(value: int, usual: Any) -> Any:
    """A handler for np.zeros and np.ones."""

    def handler(
        t: Any,
        shape: Any,
        dtype: Any = usual,
        order: str = "C",
        *,
        device: Any = None,
        like: Any = None,
    ) -> Any:
        made = wanted_dtype(float if dtype is None else dtype)
        return t.full(checked(sizes(shape)), made.type(value), made, plain(like, device, order))

    return handler


function("zeros", creates=True)(filled(0, float))
function("ones", creates=True)(filled(1, None))


@function("empty", creates=True)
def empty(
    t: Any,
    shape: Any,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.empty"""
    return t.empty(checked(sizes(shape)), wanted_dtype(dtype), plain(like, device, order))


ADDRESSES = 1 << 47  # bytes in the address space of a process


def checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without negative sizes. NumPy raises for a shape that no memory can hold, even if it is not used."""
    if (
        any(type(n) is int and n < 0 for n in shape) or len(shape) > 32
    ):  # traced sizes are checked by the tracer
        raise ValueError("negative dimensions are not allowed")
    refuse(math.prod(n for n in shape if type(n) is int) >= ADDRESSES, "an array that no memory can hold")
    return shape


@function("full", creates=True)
def full(
    t: Any,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.full"""
    order = plain(like, device, order)
    if is_a(fill_value, list | tuple | np.ndarray):
        fill_value = array(t, fill_value)
    if dtype is None:
        dtype = getattr(fill_value, "dtype", None) or np.asarray(fill_value).dtype
    made = wanted_dtype(dtype)
    if type(fill_value) is Traced:
        new = t.empty(checked(sizes(shape)), made, order)
        t.assign(new, operand(t, fill_value, made))
        return new
    return t.full(checked(sizes(shape)), np.full((), fill_value, made)[()], made, order)


def like_order(x: Any, order: str) -> str:
    """The layout of an array made like another: C, F, or K for its stride order."""
    if order == "A":
        return memory_order(x)
    return order


def like_shape(x: Any, shape: Any, order: str) -> tuple[tuple[int, ...], str]:
    """Shape and layout of an array made like x."""
    if shape is None:
        return x.shape, like_order(x, order)
    shape = sizes(shape)
    loses = order == "K" and (len(shape) != x.ndim or x.is_in_order)
    return checked(shape), "C" if loses else like_order(x, order)


@function("full_like", creates=True)
def full_like(
    t: Any,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.full_like"""
    x = a if type(a) is Traced else array(t, a)
    made = wanted_dtype(x.dtype if dtype is None else dtype)
    size, order = like_shape(x, shape, order)
    if type(fill_value) is Traced or is_a(fill_value, list | tuple):
        new = t.empty(size, made, order, x)
        t.assign(new, operand(t, fill_value, made))
        return new
    return t.full(size, np.full((), fill_value, made)[()], made, order, x)


def filled_like(value: int) -> Any:
    """A handler for np.zeros_like and np.ones_like."""

    def handler(
        t: Any,
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        return full_like(t, a, value, dtype, order, subok, shape)

    return handler


function("zeros_like", creates=True)(filled_like(0))
function("ones_like", creates=True)(filled_like(1))


@function("empty_like", creates=True)
def empty_like(
    t: Any,
    prototype: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.empty_like"""
    x = prototype if type(prototype) is Traced else array(t, prototype)
    size, order = like_shape(x, shape, order)
    return t.empty(size, wanted_dtype(x.dtype if dtype is None else dtype), order, x)


@function("eye", creates=True)
def eye(
    t: Any,
    N: int,
    M: Any = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,  # noqa: N803
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.eye"""
    made = wanted_dtype(dtype)
    refuse(plain(like, device, order) != "C", f"order={order!r}")
    rows = whole(N)
    columns = rows if M is None else whole(M)
    shape = checked((rows, columns))
    where = np.equal(t.iota(shape, 0) + whole(k), t.iota(shape, 1))
    return cast(t, where, made)


@function("identity", creates=True)
def identity(t: Any, n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """np.identity"""
    return eye(t, n, dtype=float if dtype is None else dtype, like=like)


def constant(t: Any, value: np.ndarray) -> Any:
    """A constant array, which the graph stores as one value or by its elements."""
    refuse(not has_dtype(value.dtype), f"dtype {value.dtype}")
    if value.size == 0:
        return t.empty(value.shape, value.dtype)
    first = value.flat[0]
    if value.size <= 1 << 20 and (value.tobytes() == first.tobytes() * value.size):
        return t.full(value.shape, first, value.dtype)
    if value.ndim == 1 and value.size <= 4:
        return t.concat([t.full((1,), v, value.dtype) for v in value], 0)
    return make_constant(t, value)


def make_constant(t: Any, value: np.ndarray) -> Any:
    """An input whose contents never change, if a call is being captured."""
    return t.lift(value, None, True) if t.constant is None else t.constant(value)


@function("array", creates=True)
def array(
    t: Any,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """np.array of numbers, arrays and nested sequences of them."""
    plain(like, None, order)
    refuse(copy not in (None, True, False), "such a copy=")
    x = object
    if copy is False and not is_out(x) and type(x) is not np.ndarray:
        raise ValueError("a copy is needed")
    if type(x) is Traced:
        made = x.dtype if dtype is None else wanted_dtype(dtype)
        is_array = x.kind == "array"
        new = in_order(t, x, made, order, copy) if is_array else boxed(t, converted(t, x, made))
    elif is_sequence(x) and any_traced(x):
        new = stack_nested(t, x, None if dtype is None else wanted_dtype(dtype))
    else:
        refuse(order == "F", "order='F'")
        value = np.array(x, dtype=dtype, copy=True)
        new = constant(t, value)
    if new.ndim < ndmin:
        new = t.reshape(new, (1,) * (ndmin - new.ndim) + tuple(new.shape))
    return new


def in_order(t: Any, x: Any, dtype: np.dtype, order: str, copy: Any) -> Any:
    """An array in that order: itself if it has dtype and order and no copy is asked for."""
    is_row = sum(is_one(n) for n in x.shape) >= x.ndim - 1  # then it is contiguous in both orders
    is_any = copy or order in ("K", "A")
    fits = is_any or (x.is_in_order if order == "C" or is_row else x.flags.f_contiguous)
    if dtype == x.dtype and fits and not copy:
        return x
    refuse(copy is False, "copy=False")
    order = like_order(x, order)
    return t.copy(x, order) if dtype == x.dtype else lying(t, converted(t, x, dtype), order, x)


def is_sequence(x: Any) -> bool:
    """True if NumPy iterates it."""
    return is_a(x, list | tuple | range)


def any_traced(x: Any) -> bool:
    """True if a nested sequence contains traced values."""
    return any(any_traced(v) if is_sequence(v) else type(v) is Traced for v in x)


def leaves(x: Any) -> list[Any]:
    """The leaves of a nested sequence."""
    return [leaf for v in x for leaf in leaves(v)] if is_sequence(x) else [x]


def stack_nested(t: Any, x: Any, dtype: Any) -> Any:
    """A nested sequence of traced and concrete values as one array of a dtype, or of their common dtype. Python's
    numbers are only weak if there is nothing else.
    """
    if dtype is None:
        dtype = np.result_type(
            *(v.dtype if hasattr(v, "dtype") else np.asarray(v).dtype for v in leaves(x))
        )
    refuse(not has_dtype(dtype), f"dtype {dtype}")

    def build(item: Any) -> Any:
        if not is_sequence(item):
            return element(t, item, dtype)
        parts = [build(v) for v in item]
        if not parts or any(p.shape != parts[0].shape for p in parts):
            raise ValueError("inhomogeneous")
        return t.concat([t.reshape(p, (1, *p.shape)) for p in parts], 0)

    return lying(t, build(x), "C")


def element(t: Any, value: Any, dtype: np.dtype) -> Any:
    """A list item as an element of its array: numbers must fit, arrays are cast."""
    if type(value) is Traced and value.kind != "array":
        refuse(not t.fits(value, dtype), "numbers that may not fit")
    elif is_a(value, np.generic) and dtype.kind in "iu":
        value = value.item()
    return operand(t, value, dtype)


@function("asarray", "asanyarray", creates=True)
def asarray(
    t: Any,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    """np.asarray"""
    plain(like, device, order or "K")
    refuse(copy is False, "copy=False")
    return array(t, a, dtype, copy=copy, order=order or "K")


@function("ascontiguousarray", creates=True)
def ascontiguousarray(t: Any, a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.ascontiguousarray: at least one dimension."""
    x = asarray(t, a, dtype, "C", like=like)
    return t.reshape(x, (1,)) if x.ndim == 0 else x


@function("asfortranarray", creates=True)
def asfortranarray(t: Any, a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.asfortranarray: at least one dimension."""
    x = asarray(t, a, dtype, "F", like=like)
    return t.reshape(x, (1,)) if x.ndim == 0 else x


@method("__array_wrap__")
def array_wrap(t: Any, self: Any, value: Any, *args: Any) -> Any:
    """ndarray.__array_wrap__"""
    return as_result(t, value) if len(args) > 1 and args[1] else value
