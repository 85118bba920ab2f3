"""Products: library calls of NumPy's own on whole arrays, or element-wise products and sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .surface import array, as_result, function, in_place, into, refuse, result_type


def call_dot(a: Any, b: Any, out: Any) -> None:
    """out[...] = np.dot(a, b)"""
    out[...] = np.dot(a, b)


def call_vdot(a: Any, b: Any, out: Any) -> None:
    """out[...] = np.vdot(a, b)"""
    out[...] = np.vdot(a, b)


def call_inner(a: Any, b: Any, out: Any) -> None:
    """out[...] = np.inner(a, b)"""
    out[...] = np.inner(a, b)


def pair(t: Any, a: Any, b: Any) -> tuple[Any, Any, np.dtype]:
    """Both as arrays, and the dtype of their product."""
    x, y = array(t, a), array(t, b)
    dtype = result_type(x, y)
    return in_place(t, x, dtype), in_place(t, y, dtype), dtype


def is_number(a: Any) -> bool:
    """Whether an operand has no axes: lists and tuples have."""
    return not isinstance(a, list | tuple) and getattr(a, "ndim", 0) == 0


@function(np.dot)
def dot(t: Any, a: Any, b: Any, out: Any = None) -> Any:
    """np.dot"""
    if is_number(a) or is_number(b):
        return into(t, out, np.multiply(a, b))
    x, y, dtype = pair(t, a, b)
    k = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != k:
        raise ValueError("shapes")
    shape = (*x.shape[:-1], *y.shape[:-2], *(y.shape[-1:] if y.ndim > 1 else ()))
    return into(t, out, as_result(t, t.extern("dot", "", call_dot, [x, y], shape, dtype)))


@function(np.vdot)
def vdot(t: Any, a: Any, b: Any, /) -> Any:
    """np.vdot"""
    x, y, dtype = pair(t, a, b)
    if x.size != y.size:
        raise ValueError("sizes")
    return as_result(t, t.extern("vdot", "", call_vdot, [x, y], (), dtype))


@function(np.inner)
def inner(t: Any, a: Any, b: Any, /) -> Any:
    """np.inner"""
    if is_number(a) or is_number(b):
        return np.multiply(a, b)
    x, y, dtype = pair(t, a, b)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("shapes")
    shape = (*x.shape[:-1], *y.shape[:-1])
    return as_result(t, t.extern("inner", "", call_inner, [x, y], shape, dtype))


@function(np.einsum)
def einsum(t: Any, *operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """np.einsum given a string of subscripts: sums of one operand and outer products are taken
    apart,
    the rest is a library call."""
    refuse(kwargs, "keyword " + ", ".join(kwargs))
    refuse(not isinstance(operands[0], str), "subscripts that are lists")
    subscripts = operands[0].replace(" ", "")
    xs = [array(t, x) for x in operands[1:]]
    refuse("." in subscripts, "an ellipsis")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if not arrow:
        output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    if len(terms) != len(xs) or any(len(s) != x.ndim for s, x in zip(terms, xs, strict=True)):
        raise ValueError("subscripts")
    extent: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if extent.setdefault(letter, n) != n:
                refuse(1 in (n, extent[letter]), "extents that broadcast")
                raise ValueError("extents")
    if not set(output) <= set(extent) or len(set(output)) != len(output):
        raise ValueError("output")
    repeats = any(len(set(s)) != len(s) for s in terms)
    if len(xs) == 1 and out is None and set(output) == set(extent):  # NumPy gives a view
        refuse(repeats, "a diagonal that can be written to")
        return t.permute(xs[0], [terms[0].index(c) for c in output])
    dtype = result_type(*xs)
    xs = [in_place(t, x, dtype) for x in xs]
    shape = tuple(extent[c] for c in output)
    if not repeats and set(output) == set(extent):
        made = aligned_product(t, terms, xs, output)
        return into(t, out, made)
    key = f"{','.join(terms)}->{output}" + (" optimize" if optimize else "")
    path = bool(optimize)

    def call(*arrays: Any) -> None:
        *real, result = arrays
        result[...] = np.einsum(f"{','.join(terms)}->{output}", *real, optimize=path)

    made = t.extern("einsum", key, call, xs, shape, dtype)
    return into(t, out, as_result(t, made))


def aligned_product(t: Any, terms: list[str], xs: list[Any], output: str) -> Any:
    """The product of operands whose letters all stay: each is turned and widened to the output."""
    made = None
    for term, x in zip(terms, xs, strict=True):
        order = sorted(range(len(term)), key=lambda i: output.index(term[i]))
        x = t.permute(x, order)
        sizes = iter(x.shape)
        x = t.reshape(x, tuple(next(sizes) if c in term else 1 for c in output))
        made = x if made is None else np.multiply(made, x)
    return t.copy(made, "C") if len(xs) == 1 else made


if hasattr(np, "vecdot"):

    @function(np.linalg.vecdot)
    def vecdot(t: Any, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
        """np.linalg.vecdot is left to NumPy."""
        refuse(True, "is left to NumPy")


def linear_dtype(*xs: Any) -> np.dtype:
    """The dtype LAPACK computes in: float64 for integers; halves are refused by NumPy."""
    dtype = np.result_type(*(x.dtype for x in xs))
    if dtype == np.float16:
        raise TypeError("array type float16 is unsupported in linalg")
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def square(x: Any) -> None:
    """Raises unless x is a stack of square matrices; NumPy's own exception is raised instead."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("not square")


def whole_matrix(name: str, f: Any, to_real: bool = False, drops: int = 0) -> Any:
    """A handler for a function of one stack of square matrices: a library call. drops: axes the
    result has not. Raises numpy.linalg.LinAlgError where f does."""

    def call(a: Any, out: Any) -> None:
        out[...] = f(a)

    def handler(t: Any, a: Any) -> Any:
        x = array(t, a)
        square(x)
        dtype = linear_dtype(x)
        made = np.dtype(dtype.char.lower()) if to_real else dtype
        shape = x.shape[: x.ndim - drops]
        return as_result(t, t.extern(name, "", call, [in_place(t, x, dtype)], shape, made))

    return function(f)(handler)


whole_matrix("inv", np.linalg.inv)
whole_matrix("det", np.linalg.det, drops=2)


@function(np.linalg.cholesky)
def cholesky(t: Any, a: Any, /, *, upper: bool = False) -> Any:
    """np.linalg.cholesky: a library call. Raises numpy.linalg.LinAlgError where it does."""
    x = array(t, a)
    square(x)
    dtype = linear_dtype(x)
    options = {"upper": True} if upper else {}

    def call(a: Any, out: Any) -> None:
        out[...] = np.linalg.cholesky(a, **options)

    key = "upper" if upper else ""
    return t.extern("cholesky", key, call, [in_place(t, x, dtype)], x.shape, dtype)


@function(np.linalg.solve)
def solve(t: Any, a: Any, b: Any) -> Any:
    """np.linalg.solve: a library call. Raises numpy.linalg.LinAlgError for a singular matrix."""
    x, y = array(t, a), array(t, b)
    square(x)
    dtype = linear_dtype(x, y)
    is_vector = y.ndim == 1
    refuse(x.ndim != 2 or y.ndim > 2, "a stack of systems")
    if y.shape[0] != x.shape[0] or (y.ndim == 0):
        raise ValueError("shapes")

    def call(a: Any, b: Any, out: Any) -> None:
        out[...] = np.linalg.solve(a, b)

    operands = [in_place(t, x, dtype), in_place(t, y, dtype)]
    return t.extern("solve", "vector" if is_vector else "", call, operands, y.shape, dtype)
