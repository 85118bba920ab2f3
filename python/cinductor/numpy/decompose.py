"""Matrix decompositions and systems of linear equations, as library calls with several results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .library import packed
from .linalg import linear_dtype, square
from .surface import Traced, array, as_result, careful, cast, function, in_place, refuse, require


@functools.cache
def result_of(f: Any) -> Any:
    """The class of what one of NumPy's functions returns."""
    return type(f(np.eye(1)))


def stack_of(t: Any, a: Any, is_square: bool = False) -> tuple[Any, np.dtype, np.dtype]:
    """A batch of matrices in the dtype in which LAPACK computes, that dtype, and the dtype of its parts."""
    x = array(t, a)
    if x.ndim < 2:
        raise ValueError("not a matrix")
    if is_square:
        square(x)
    dtype = linear_dtype(x)
    return in_place(t, x, dtype), dtype, np.dtype(dtype.char.lower())


def single(t: Any, name: str, key: str, f: Any, x: Any, shape: Any, dtype: np.dtype) -> Any:
    """A library call with one result."""

    def call(a: Any, _out: Any) -> Any:
        return f(a)

    return careful(t, name, key, call, [x], shape, dtype)


@function("linalg.svd")
def svd(
    t: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """np.linalg.svd"""
    refuse(hermitian, "hermitian=")
    x, dtype, real = stack_of(t, a)
    *outer, m, n = x.shape
    k = t.size_min(m, n)
    if not compute_uv:
        f = np.linalg.svdvals
        return single(t, "svdvals", "", f, x, (*outer, k), real)
    full = bool(full_matrices)
    shapes = [(*outer, m, m if full else k), (*outer, k), (*outer, n if full else k, n)]

    def call(a: Any) -> Any:
        return np.linalg.svd(a, full)

    return result_of(np.linalg.svd)(*packed(t, "svd", f"{full}", call, [x], shapes, [dtype, real, dtype]))


@function("linalg.svdvals")
def svdvals(t: Any, x: Any, /) -> Any:
    """np.linalg.svdvals"""
    return svd(t, x, compute_uv=False)


@function("linalg.eigh")
def eigh(t: Any, a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """np.linalg.eigh"""
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    x, dtype, real = stack_of(t, a, True)

    def call(a: Any) -> Any:
        return np.linalg.eigh(a, UPLO)

    return result_of(np.linalg.eigh)(*packed(t, "eigh", UPLO, call, [x], [x.shape[:-1], x.shape], [real, dtype]))


@function("linalg.eigvalsh")
def eigvalsh(t: Any, a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """np.linalg.eigvalsh"""
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    x, _, real = stack_of(t, a, True)
    return single(t, "eigvalsh", UPLO, lambda a: np.linalg.eigvalsh(a, UPLO), x, x.shape[:-1], real)


@function("linalg.eig")
def eig(t: Any, a: Any) -> Any:
    """np.linalg.eig. For a real matrix the dtype of the result depends on the values; the program uses the dtype
    found in this call.
    """
    x, dtype, _ = stack_of(t, a, True)
    wide = np.result_type(dtype, np.complex64)

    def call(a: Any) -> Any:
        return np.linalg.eig(a)

    made = packed(t, "eig", "", call, [x], [x.shape[:-1], x.shape], [wide, wide])
    return result_of(np.linalg.eig)(*(as_found(t, a, part, made[0], dtype) for part in made))


@function("linalg.eigvals")
def eigvals(t: Any, a: Any) -> Any:
    """np.linalg.eigvals, as np.linalg.eig"""
    x, dtype, _ = stack_of(t, a, True)
    wide = np.result_type(dtype, np.complex64)
    made = single(t, "eigvals", "", np.linalg.eigvals, x, x.shape[:-1], wide)
    return as_found(t, a, made, made, dtype)


def as_found(t: Any, given: Any, made: Any, values: Any, dtype: np.dtype) -> Any:
    """The complex result for a matrix of that dtype; real, if all eigenvalues were."""
    if dtype.kind == "c":
        return made
    known = given.known() if type(given) is Traced else given
    refuse(known is None, "data decide whether its results are complex")
    is_real = np.linalg.eigvals(known).dtype.kind != "c"
    none = t.reduce("all", t.apply("equal", values.imag, 0), None)
    require(t, none if is_real else t.apply("logical_not", none), "eigenvalues that are real")
    if not is_real:
        return made
    return made.real if dtype == np.float64 else cast(t, made.real, dtype)  # NumPy computes in complex128


@function("linalg.qr")
def qr(t: Any, a: Any, mode: str = "reduced") -> Any:
    """np.linalg.qr"""
    refuse(mode not in ("reduced", "complete", "r"), f"mode={mode!r}")
    x, dtype, _ = stack_of(t, a)
    *outer, m, n = x.shape
    k = m if mode == "complete" else t.size_min(m, n)
    if mode == "r":
        return single(t, "qr", mode, lambda a: np.linalg.qr(a, "r"), x, (*outer, k, n), dtype)

    def call(a: Any) -> Any:
        return np.linalg.qr(a, mode)

    return result_of(np.linalg.qr)(*packed(t, "qr", mode, call, [x], [(*outer, m, k), (*outer, k, n)], [dtype, dtype]))


@function("linalg.slogdet")
def slogdet(t: Any, a: Any) -> Any:
    """np.linalg.slogdet"""
    x, dtype, real = stack_of(t, a, True)
    shape = x.shape[:-2]
    made = packed(t, "slogdet", "", np.linalg.slogdet, [x], [shape, shape], [dtype, real])
    return result_of(np.linalg.slogdet)(*(as_result(t, part) for part in made))


@function("linalg.solve")
def solve(t: Any, a: Any, b: Any) -> Any:
    """np.linalg.solve: a library call."""
    x, y = array(t, a), array(t, b)
    square(x)
    dtype = linear_dtype(x, y)
    is_vector = y.ndim == 1
    if y.ndim == 0:
        raise ValueError("shapes")
    outer: tuple[Any, ...] = x.shape[:-2]
    if not is_vector and (x.ndim > 2 or y.ndim > 2):
        refuse(any(type(n) is not int for n in (*outer, *y.shape)), "a stack of unknown size")
        outer = np.broadcast_shapes(outer, y.shape[:-2])
    if y.shape[0 if is_vector else -2] != x.shape[-1]:
        raise ValueError("shapes")

    def call(a: Any, b: Any, _out: Any) -> Any:
        return np.linalg.solve(a, b)

    shape = (*outer, x.shape[-1]) if is_vector else (*outer, *y.shape[-2:])
    operands = [in_place(t, x, dtype), in_place(t, y, dtype)]
    return careful(t, "solve", "vector" if is_vector else "", call, operands, shape, dtype)


@function("linalg.lstsq")
def lstsq(t: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    """np.linalg.lstsq. There are residuals if there are more equations than unknowns, which must then be independent.
    """
    x, y = array(t, a), array(t, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ValueError("shapes")
    dtype = linear_dtype(x, y)
    real = np.dtype(dtype.char.lower())
    m, n = x.shape
    over = m > n
    refuse(type(over) is not bool, "sizes that data decide")
    refuse(type(m) is int and m == 0 or type(n) is int and n == 0, "an empty system")
    columns = y.shape[1:]
    residuals = ((columns or (1,)) if over else (0,), real)
    operands = [in_place(t, x, dtype), in_place(t, y, dtype)]
    varies = rcond is not None and type(rcond) is not float
    if varies:
        refuse(not hasattr(rcond, "dtype") and not is_a(rcond, int), "such an rcond")
        operands.append(cast(t, t.lift(rcond), np.dtype(np.float64)))
    fixed = None if varies else rcond

    def call(a: Any, b: Any, *rest: Any) -> Any:
        x, sums, rank, s = np.linalg.lstsq(a, b, float(rest[0]) if rest else fixed)
        if over and sums.size == 0:
            sums = np.zeros(b.shape[1:] or 1)
        return x, sums, rank, s

    shapes = [(n, *columns), residuals[0], (), (t.size_min(m, n),)]
    dtypes = [dtype, real, np.dtype(np.int32), real]
    key = f"{over} {varies} {fixed}"
    wide = [dtype, real, real, real]
    made, sums, rank, s = packed(t, "lstsq", key, call, operands, shapes, wide)
    rank = t.as_scalar(cast(t, rank, dtypes[2], "unsafe"))
    if over:
        require(t, rank == n, "independent equations")
    return made, sums, rank, s
