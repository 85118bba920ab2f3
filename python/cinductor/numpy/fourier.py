"""Fourier transforms: library calls of numpy.fft, each along one axis. Transforms along several axes are one call for each
axis, in NumPy's order, so that a device needs no more. The shapes of results are expressions of those of the operands, so
that sizes may vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from .index import INT64
from .shape import sizes
from .surface import (
    Traced,
    array,
    cast,
    function,
    has_dtype,
    into,
    laid_out,
    library,
    normal_axis,
    refuse,
    require,
    usually_positive,
    whole,
)

HALVES = frozenset({"rfft", "ihfft"})  # results have n // 2 + 1 elements along the axis
DOUBLES = frozenset({"irfft", "hfft"})  # results have 2 * (n - 1) elements, unless n is given


def result_dtype(f: Any, dtype: np.dtype) -> np.dtype:
    """The dtype of a transform, found by calling NumPy on a small array."""
    made = f(np.zeros(2, dtype)).dtype
    refuse(not has_dtype(made), f"dtype {made}")
    return made  # type: ignore[no-any-return]


def made_size(name: str, given: Any, n: Any) -> Any:
    """The size of a result's transformed axis; n: the requested one, or None."""
    if name in DOUBLES:
        return 2 * (given - 1) if n is None else n
    n = given if n is None else n
    return n // 2 + 1 if name in HALVES else n


def require_elements(t: Any, name: str, given: Any, n: Any) -> None:
    """NumPy refuses to transform or return empty axes."""
    if type(n) is not Traced:
        least = given - 1 if name in DOUBLES else given
        require(t, usually_positive(t, least) if n is None else n > 0, "a transform of nothing")


def transform(t: Any, name: str, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
    """Transform along one axis."""
    f = getattr(np.fft, name)
    x = laid_out(t, array(t, a))
    axis = normal_axis(axis, x.ndim)
    given = x.shape[axis]
    n = None if n is None else whole(n)
    if (type(n) is int and n < 1) or norm not in (None, "backward", "ortho", "forward"):
        raise ValueError("n or norm")
    require_elements(t, name, given, n)
    size = made_size(name, given, n)
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    varies = type(n) is Traced
    is_whole = type(n) is int and type(given) is int and n == (2 * (given - 1) if name in DOUBLES else given)
    fixed = None if varies or is_whole else n

    def call(values: Any, *rest: Any) -> None:
        *length, result = rest
        made = f(values, int(length[0]) if length else fixed, axis, norm, out=result)
        if made is not result:  # some functions ignore out=
            result[...] = made

    xs = [x, cast(t, t.lift(n), INT64)] if varies else [x]
    key = f"{varies} {fixed} {axis} {norm}"
    return library(t, varies)(f"fft_{name}", key, call, xs, shape, result_dtype(f, x.dtype), elementwise=True)


def one_axis(name: str) -> None:
    """Register a transform along one axis."""

    def handler(
        t: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None
    ) -> Any:
        return into(t, out, transform(t, name, a, n, axis, norm))

    function(f"fft.{name}")(handler)


def several_axes(name: str) -> None:
    """Register a transform along several axes: of the last axis first, or last if its result is real."""
    base = name[:-1]
    is_plane, is_inverse = name.endswith("2"), base in DOUBLES
    others = "ifft" if is_inverse or base == "ifft" else "fft"

    def handler(
        t: Any,
        a: Any,
        s: Any = None,
        axes: Any = (-2, -1) if is_plane else None,
        norm: Any = None,
        out: Any = None,
    ) -> Any:
        x = laid_out(t, array(t, a))
        wanted = None if s is None else sizes(s)
        refuse(wanted is not None and (axes is None or any(type(n) is Traced for n in wanted)), "s")
        along = [normal_axis(k, x.ndim) for k in (range(x.ndim) if axes is None else axes)]
        refuse(len(set(along)) != len(along) or not along, "axes that repeat")
        if wanted is not None and len(wanted) != len(along):
            raise ValueError("Shape and axes have different lengths.")
        asked = [None] * len(along) if wanted is None else [x.shape[k] if n == -1 else n for n, k in zip(wanted, along, strict=True)]
        steps = list(zip([others] * (len(along) - 1) + [base], asked, along, strict=True))
        for step, n, axis in steps if is_inverse else reversed(steps):
            x = transform(t, step, x, n, axis, norm)
        return into(t, out, x)

    function(f"fft.{name}")(handler)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    one_axis(_name)
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    several_axes(_name)
