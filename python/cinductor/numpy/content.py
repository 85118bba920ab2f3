"""Functions of the contents of arrays: copies, casts, Python numbers, and views of the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .linalg import dot
from .shape import layout, ravel
from .surface import (
    Traced,
    array,
    cast,
    converted,
    dtype_of,
    dummy,
    function,
    has_dtype,
    laid_out,
    left_to_numpy,
    method,
    operand,
    refuse,
)


@function("copy")
def copy(t: Any, a: Any, order: str = "K", subok: bool = False) -> Any:
    """np.copy"""
    return t.copy(array(t, a), layout(array(t, a), order))


@method("copy", "__copy__", "__deepcopy__")
def copy_method(t: Any, self: Any, order: Any = "C") -> Any:
    """ndarray.copy"""
    order = order if is_a(order, str) else "K"
    if self.kind == "scalar":
        return self
    return t.copy(self, layout(self, order))


@method("astype")
def astype(
    t: Any,
    self: Any,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """ndarray.astype"""
    wanted = dtype_of(dtype)
    refuse(not has_dtype(wanted), f"dtype {wanted}")
    refuse(order not in ("K",), f"order={order!r}")
    if not np.can_cast(self.dtype, wanted, casting):
        raise TypeError("casting")
    if wanted == self.dtype:
        if self.kind == "scalar":
            return self
        return t.copy(self, "K") if copy else self
    made = converted(t, laid_out(t, self) if self.kind == "array" else self, wanted)
    return t.as_scalar(made) if self.kind == "scalar" else made


@function("astype")
def astype_function(t: Any, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """np.astype"""
    return astype(t, x, dtype, copy=copy)


@method("fill")
def fill(t: Any, self: Any, value: Any, /) -> None:
    """ndarray.fill"""
    if type(value) is not Traced and not is_a(value, int | float | complex | np.generic):
        value = operand(t, value, self.dtype)
    if type(value) is Traced and value.ndim:
        np.empty((), value.dtype).fill(dummy(value))  # which not every version accepts
    t.assign(self, value)


PYTHONS = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}


@method("item")
def item(t: Any, self: Any, *args: Any) -> Any:
    """ndarray.item: a Python number."""
    if args:
        key = args[0] if len(args) == 1 else args
        flat = self if is_a(key, tuple) or self.ndim == 1 else ravel(t, self)
        element = flat[key]
        refuse(element.ndim > 0, "such an index")
    else:
        same = self.size == 1
        refuse(type(same) is Traced, "an array of unknown size")
        if not same:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        element = t.as_scalar(t.reshape(array(t, self), ())) if self.kind == "array" else self
    is_small = element.dtype.kind == "u" and element.dtype != np.uint64
    python = np.int64 if is_small else PYTHONS[element.dtype.kind]
    return t.as_python(cast(t, element, np.dtype(python)))


@method("view")
def view(t: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """ndarray.view of the same dtype: another array of the same memory."""
    dtype = args[0] if args else kwargs.get("dtype", self.dtype)
    refuse(
        self.kind != "array" or not (dtype is np.ndarray or same_dtype(dtype, self.dtype)),
        "it looks at an array's bytes",
    )
    return self[...]


def same_dtype(a: Any, b: np.dtype) -> bool:
    """True if the dtype argument is that dtype."""
    return not (is_a(a, type) and issubclass(a, np.ndarray)) and np.dtype(a) == b


MANY_NUMBERS = 64  # of a list in the program, each of which is a result


@method("tolist")
def tolist(t: Any, self: Any) -> Any:
    """ndarray.tolist for a few elements: Python numbers."""
    if self.ndim == 0:
        return item(t, self)
    known = all(type(n) is int for n in self.shape)
    refuse(not known, "a list of as many numbers as a size that varies")
    refuse(self.size > MANY_NUMBERS, f"a list of {self.size} numbers, more than {MANY_NUMBERS}")
    return [tolist(t, self[k]) for k in range(self.shape[0])]


method("tobytes", "dump", "dumps", "tofile", "__array__", "__reduce__")(
    left_to_numpy("it returns Python's own values")
)
method("getfield", "setflags", "byteswap", "newbyteorder", "resize", "setfield")(
    left_to_numpy("it looks at an array's bytes")
)


@method("dot")
def dot_method(t: Any, self: Any, b: Any, out: Any = None) -> Any:
    """ndarray.dot"""
    return dot(t, self, b, out)
