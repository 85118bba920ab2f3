"""Element-wise functions that are not ufuncs of the C module."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    Traced,
    array,
    as_result,
    cast,
    function,
    into,
    is_out,
    left_to_numpy,
    lying,
    memory_order,
    method,
    operand,
    rank,
    refuse,
    result_type,
    whole,
)

BOOL = np.dtype(bool)


def as_it_lies(t: Any, x: Any, dtype: np.dtype) -> Any:
    """An operand of that dtype; itself if it is an array of it, because its layout decides about the result's."""
    is_one = type(x) is Traced and x.kind == "array" and x.dtype == dtype
    return x if is_one else operand(t, x, dtype)


@function("where")
def where(t: Any, condition: Any, /, *choice: Any) -> Any:
    """np.where: returns an array also for rank 0. With one argument its shape depends on data."""
    if not choice:
        return np.nonzero(condition)
    x, y = choice
    x, y = (array(t, v) if is_a(v, list | tuple | np.ndarray) else v for v in (x, y))
    dtype = result_type(x, y)
    made = t.apply("where", *(as_it_lies(t, v, d) for v, d in ((condition, BOOL), (x, dtype), (y, dtype))))
    if made.kind == "array":
        return made
    result = t.empty((), dtype)  # NumPy returns an array for scalars, too
    t.assign(result, made)
    return result


@function("clip")
def clip(
    t: Any,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **kwargs: Any,
) -> Any:
    """np.clip and ndarray.clip: NaN wins, and a maximum below the minimum wins over it."""
    refuse(kwargs, "keyword " + ", ".join(kwargs))
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    if (min is not None and a_min is not None) or (max is not None and a_max is not None):
        raise ValueError("given twice")
    x = a if type(a) is Traced and a.kind != "python" else array(t, a)
    given = [v for v in (x, low, high) if v is not None]
    dtype = result_type(*given)
    if low is None and high is None:
        return into(t, out, np.positive(x))
    made = cast(t, x, dtype) if x.dtype != dtype else x
    if KEEPS_ZEROS and low is not None and high is not None and dtype.char in "fd":
        low, high = fit(t, low, dtype), fit(t, high, dtype)
        if rank(low) == rank(high) == 0:
            made = np.where(is_beyond(np.less, made, low), low, made)
            made = np.where(is_beyond(np.greater, made, high), high, made)
            return into(t, out, made if made.ndim else t.as_scalar(made), True)
    if low is not None:
        made = np.maximum(made, fit(t, low, dtype))
    if high is not None:
        made = np.minimum(made, fit(t, high, dtype))
    return into(t, out, made, True)


# For a number between two others, NumPy's loop keeps the sign of a zero that equals a bound.
KEEPS_ZEROS = bool(np.signbit(np.clip(-np.zeros(1), 0.0, 1.0))[0])


def is_beyond(compare: Any, x: Any, bound: Any) -> Any:
    """Where a bound replaces a value; a NaN bound always does."""
    known = type(bound) is not Traced and bound == bound
    return compare(x, bound) if known else np.logical_or(compare(x, bound), np.isnan(bound))


def fit(t: Any, bound: Any, dtype: np.dtype) -> Any:
    """A bound in the dtype of the result."""
    if type(bound) is Traced:
        return bound if bound.dtype == dtype or bound.kind == "python" else cast(t, bound, dtype)
    if is_a(bound, bool | int | float | complex):
        return bound
    return array(t, bound)


@method("clip")
def clip_method(
    t: Any, self: Any, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """ndarray.clip"""
    return clip(t, self, min, max, out, **kwargs)


_integers = np.ones(1, np.intp)
ROUNDS_TO_ITSELF = _integers.round() is _integers  # from NumPy 2.4 on, arrays of integers are copied


@function("round", "around")
@method("round")
def round_(t: Any, a: Any, decimals: int = 0, out: Any = None) -> Any:
    """np.round: scaled by a power of ten, rounded half to even, scaled back, as NumPy does."""
    x = a if type(a) is Traced and a.kind != "python" else array(t, a)
    decimals = int(decimals) if type(decimals) is bool else whole(decimals)
    kind = x.dtype.kind
    refuse(kind == "b", f"dtype {x.dtype}")
    if kind == "c":
        parts = [round_(t, part, decimals) for part in (x.real, x.imag)]
        made = complex_of(t, *parts)
        return into(t, out, made) if out is not None or x.ndim < 2 else lying(t, made, "K", x)
    if kind in "iu":
        refuse(decimals < 0, "integers are rounded in float64")
        if out is not None or x.ndim == 0:
            return into(t, out, +x)
        return x if ROUNDS_TO_ITSELF else t.copy(x, "K")
    if decimals == 0:
        return into(t, out, np.rint(x))
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        made = np.true_divide(np.rint(np.multiply(x, scale)), scale)
    else:
        made = np.multiply(np.rint(np.true_divide(x, scale)), scale)
    if out is None and x.ndim > 1:  # NumPy allocates it in one of these orders
        return lying(t, made, memory_order(x))
    return into(t, out, made)


def complex_of(t: Any, real: Any, imag: Any) -> Any:
    """A complex number with these parts."""
    real, imag = array(t, real), array(t, imag)
    dtype = np.result_type(real.dtype, np.complex64)
    made = t.extern("complex", "", call_complex, [real, imag], real.shape, dtype)
    return as_result(t, made)


def call_complex(real: Any, imag: Any, out: Any) -> None:
    """Set the parts of out."""
    out.real = real
    out.imag = imag


def set_part(t: Any, x: Any, name: str, value: Any) -> None:
    """x.real = value, x.imag = value, or x.flat = value, for one number, or as many as x has."""
    if name == "flat":
        is_array = type(value) is Traced and value.kind == "array"
        given = value if is_array else array(t, operand(t, value, x.dtype))
        refuse(not x.flags_now.c_contiguous, "an array that is not contiguous")
        refuse(given.shares_storage(x), "values that NumPy reads while it writes")
        refuse(
            given.ndim and given.size is not x.size and given.size != x.size, "values that repeat"
        )
        t.assign(t.reshape(x, (x.size,)), t.reshape(given, (given.size,)) if given.ndim else given)
    elif x.dtype.kind != "c":
        refuse(name == "imag", "a real array has no imaginary part")
        t.assign(x, stored(t, x, value))
    else:
        part = x.real if name == "real" else x.imag
        new = t.empty(x.shape, part.dtype)
        t.assign(new, stored(t, part, value))
        parts = (new, x.imag) if name == "real" else (x.real, new)
        t.assign(x, complex_of(t, *parts))


def stored(t: Any, x: Any, value: Any) -> Any:
    """A value converted for a store to x."""
    refuse(getattr(value, "dtype", np.dtype(float)).kind == "c", "complex values")
    return operand(t, value, x.dtype)


@function("copyto", writes=True)
def copyto(t: Any, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """np.copyto"""
    if type(dst) is Traced and dst.kind != "array":
        raise TypeError("no array")
    refuse(type(dst) is not Traced, "the destination is not an array of this call")
    src = array(t, src) if is_a(src, list | tuple | np.ndarray) else src
    if type(src) in (bool, int, float, complex):
        np.copyto(np.zeros((), dst.dtype), src, casting)  # raises NumPy's exception
    elif not np.can_cast(dummy_dtype(src), dst.dtype, casting):
        raise TypeError("casting")
    value = operand(t, src, dst.dtype)
    if where is not True:
        mask = operand(t, where, np.dtype(bool))
        value = t.apply("where", mask, value, dst)
    t.assign(dst, value)


def dummy_dtype(value: Any) -> Any:
    """The dtype from which a cast starts."""
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


@function("putmask", writes=True)
def putmask(t: Any, a: Any, /, mask: Any, values: Any) -> None:
    """np.putmask with one value, or with as many as the array has."""
    if not is_out(a):
        raise TypeError("no array")
    shape = getattr(values, "shape", ())
    refuse(shape not in ((), a.shape), "the values repeat")
    refuse(getattr(mask, "shape", None) != a.shape, "a mask of another shape")
    if is_a(values, list | tuple):
        values = operand(t, values, a.dtype)
    is_array = is_a(values, np.ndarray) or (type(values) is Traced and values.kind == "array")
    copyto(t, a, values, "safe" if is_array else "unsafe", mask)


@method("conj", "conjugate")
def conj(t: Any, self: Any, out: Any = None, /) -> Any:
    """ndarray.conj"""
    if self.kind == "python" and self.dtype.kind != "b" and out is None:
        is_complex = self.dtype.kind == "c"
        return t.as_python(t.apply("conjugate", self)) if is_complex else self
    return into(t, out, np.conjugate(self) if self.dtype.kind == "c" else self, True)


@function("iscomplexobj", "isrealobj")
def is_complex(t: Any, x: Any) -> bool:
    """np.iscomplexobj"""
    return x.dtype.kind == "c"


@function("isrealobj")
def is_real(t: Any, x: Any) -> bool:
    """np.isrealobj"""
    return x.dtype.kind != "c"


function("may_share_memory", "shares_memory")(left_to_numpy("looks at addresses"))
