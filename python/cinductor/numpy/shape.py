"""Functions that rearrange elements: views where NumPy returns views, copies where it copies."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import user_frame
from ..base.class_lookup import is_a
from .surface import (
    Traced,
    are_axes,
    array,
    fold,
    function,
    method,
    normal_axes,
    normal_axis,
    refuse,
    usually_positive,
    whole,
)


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints."""
    try:
        return (whole(shape),)
    except TypeError:
        if not is_a(shape, Sequence | np.ndarray | Traced):
            raise
        return tuple(whole(n) for n in shape)


@function("reshape")
def reshape(t: Any, a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Any:
    """np.reshape"""
    x = array(t, a)
    shape = sizes(shape)
    if any(type(n) is int and n < -1 for n in shape):
        raise ValueError("reshape")
    if order == "A":
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    refuse(order not in ("C", "F"), f"order={order!r}")
    refuse(copy is False, "copy=False")
    if copy:
        x = t.copy(x, order)
    if order == "F":
        return turn(t, t.reshape(turn(t, x), shape[::-1]))
    if type(a) is Traced and a.kind == "scalar" and not shape:
        return a
    return t.reshape(x, shape)


@method("reshape")
def reshape_method(t: Any, self: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    """ndarray.reshape"""
    refuse(not shape, "no shape")
    return reshape(t, self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def layout(x: Any, order: str) -> str:
    """The order that 'A' stands for; others unchanged."""
    if order == "A":
        return "F" if x.flags_now.f_contiguous and not x.flags_now.c_contiguous else "C"
    refuse(order not in ("C", "F", "K"), f"order={order!r}")
    return order


def turn(t: Any, x: Any) -> Any:
    """The axes in reverse order."""
    return t.permute(x, tuple(range(x.ndim))[::-1]) if x.ndim > 1 else x


@function("ravel")
@method("ravel")
def ravel(t: Any, a: Any, order: str = "C") -> Any:
    """np.ravel: a view if the elements are contiguous."""
    return in_one_axis(t, array(t, a), order, is_called_by_numpy())


def in_one_axis(t: Any, x: Any, order: str = "C", is_read: bool = True) -> Any:
    """The elements along one axis. is_read: the caller does not distinguish a view from a copy."""
    if order in ("K", "A"):
        flags = x.flags_now if is_read else x.flags
        if order == "K" and not flags.c_contiguous and not flags.f_contiguous:
            strides = x.strides
            refuse(
                not all(usually_positive(t, s) for s in strides),
                "order='K' of strides that are not positive",
            )
            x = t.permute(x, sorted(range(x.ndim), key=lambda k: -strides[k]))
            order = "C"
        else:
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    refuse(order not in ("C", "F"), f"order={order!r}")
    x = x if order == "C" else turn(t, x)
    if x.flags_now.c_contiguous if is_read else x.is_in_order:
        return t.reshape(x, (-1,))
    return t.reshape(t.copy(x, "C"), (-1,)).detached()


def is_called_by_numpy() -> bool:
    """True if a traced function of NumPy is running, which only reads the result of ravel."""
    found = user_frame.frame()
    return found is not None and str(found.f_globals.get("__name__")).startswith("numpy.")


@method("flatten")
def flatten(t: Any, self: Any, order: str = "C") -> Any:
    """ndarray.flatten: always a copy."""
    order = layout(self, order)
    refuse(order == "K" and not self.flags_now.c_contiguous, "order='K'")
    x = turn(t, self) if order == "F" else self
    return t.reshape(t.copy(x, "C"), (self.size,)).detached()


@function("transpose")
def transpose(t: Any, a: Any, axes: Any = None) -> Any:
    """np.transpose"""
    x = array(t, a)
    if type(a) is Traced and a.kind == "scalar" and not axes:
        return a
    if axes is None:
        return t.permute(x, tuple(range(x.ndim))[::-1])
    axes = tuple(normal_axis(operator.index(i), x.ndim) for i in sizes(axes))
    if len(axes) != x.ndim or len(set(axes)) != x.ndim:
        raise ValueError("axes")
    return t.permute(x, axes)


@method("transpose")
def transpose_method(t: Any, self: Any, *axes: Any) -> Any:
    """ndarray.transpose"""
    if len(axes) == 1:
        return transpose(t, self, axes[0])
    return transpose(t, self, axes or None)


@function("swapaxes")
def swapaxes(t: Any, a: Any, axis1: int, axis2: int) -> Any:
    """np.swapaxes"""
    x = array(t, a)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    axes = list(range(x.ndim))
    axes[i], axes[j] = j, i
    return t.permute(x, axes)


@method("swapaxes")
def swapaxes_method(t: Any, self: Any, axis1: int, axis2: int, /) -> Any:
    """ndarray.swapaxes"""
    return swapaxes(t, self, axis1, axis2)


@function("squeeze")
@method("squeeze")
def squeeze(t: Any, a: Any, axis: Any = None) -> Any:
    """np.squeeze"""
    x = array(t, a)
    if axis is None:
        dropped = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        refuse(not are_axes(axis), "an axis that is no int")
        dropped = normal_axes(axis, x.ndim)
        if any(x.shape[i] != 1 for i in dropped):
            raise ValueError("squeeze")
    if not dropped:
        return a if type(a) is Traced and a.kind != "python" else x
    return t.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in dropped))


@function("expand_dims")
def expand_dims(t: Any, a: Any, axis: Any) -> Any:
    """np.expand_dims"""
    x = array(t, a)
    axis = axis if is_a(axis, tuple | list) else (axis,)
    axes = normal_axes(tuple(axis), len(axis) + x.ndim)
    rest = iter(x.shape)
    shape = [1 if i in axes else next(rest) for i in range(len(axis) + x.ndim)]
    return t.reshape(x, shape)


@function("broadcast_to", creates=True)
def broadcast_to(t: Any, array_: Any, shape: Any, subok: bool = False) -> Any:
    """np.broadcast_to: a view that cannot be written to."""
    x = array(t, array_)
    shape = sizes(shape)
    known = [int(n) for n in shape if type(n) is not Traced]
    if len(known) == len(shape) and (min(known, default=0) < 0 or math.prod(known) * x.dtype.itemsize >= 2**63):
        np.broadcast_to(np.empty((), x.dtype), shape)  # raises NumPy's exception
    return t.expand(x, shape)


@function("broadcast_arrays", creates=True)
def broadcast_arrays(t: Any, *args: Any, subok: bool = False) -> Any:
    """np.broadcast_arrays: views that warn when they are written to."""
    xs = [array(t, a) for a in args]
    shape = t.broadcast(xs)
    return tuple(x if x.shape == shape else t.broadcast_view(x, shape) for x in xs)


@function("diagonal")
@method("diagonal")
def diagonal(t: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """np.diagonal: a view that cannot be written to."""
    x = array(t, a)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    if x.ndim < 2 or i == j:
        raise ValueError("diagonal")
    return t.diagonal(x, i, j, whole(offset))


@function("lib.stride_tricks.sliding_window_view", creates=True)
def sliding_window_view(
    t: Any,
    x: Any,
    window_shape: Any,
    axis: Any = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Any:
    """np.lib.stride_tricks.sliding_window_view: a view that cannot be written to."""
    refuse(writeable, "a view of windows that can be written to")
    view, lengths = array(t, x), sizes(window_shape)
    axes = normal_windows(axis, view.ndim)
    if len(axes) != len(lengths) or any(type(n) is int and n < 0 for n in lengths):
        raise ValueError("sliding_window_view")
    for k, n in zip(axes, lengths, strict=True):
        fits = n <= view.shape[k]
        refuse(type(fits) is Traced, "a window whose length only the running program knows")
        if not fits:
            raise ValueError("sliding_window_view")
        view = t.window(view, k, n)
    return view if lengths else t.expand(view, view.shape)


def normal_windows(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes along which windows run, possibly some axis several times."""
    if axis is None:
        return tuple(range(ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim, allow_duplicate=True)


@function("trace")
@method("trace")
def trace(
    t: Any,
    a: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """np.trace"""
    return fold(np.add, "reduce", diagonal(t, a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@function("diag")
def diag(t: Any, v: Any, k: int = 0) -> Any:
    """np.diag: a matrix with this diagonal, or the diagonal of a matrix."""
    x = array(t, v)
    if x.ndim == 2:
        return diagonal(t, x, k)
    if x.ndim != 1:
        raise ValueError("diag")
    k = operator.index(k)
    n = x.shape[0] + abs(k)
    made = t.full((n, n), x.dtype.type(0), x.dtype)
    part = made[: n - k, k:] if k >= 0 else made[-k:, : n + k]
    mask = np.equal(t.iota(part.shape, 0), t.iota(part.shape, 1))
    t.assign(part, t.apply("where", mask, t.reshape(x, (x.shape[0], 1)), part))
    return made


@function("diagflat")
def diagflat(t: Any, v: Any, k: int = 0) -> Any:
    """np.diagflat: a matrix with the elements of v on a diagonal."""
    return diag(t, in_one_axis(t, array(t, v)), k)


@function("fill_diagonal", writes=True)
def fill_diagonal(t: Any, a: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal of a matrix, with one value, or as many as the diagonal has."""
    refuse(type(a) is not Traced, "the array is not one of this call")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    refuse(a.ndim != 2 or wrap, "more than two axes, or wrapped")
    value = array(t, val) if is_a(val, list | tuple | np.ndarray) else val
    n = getattr(value, "ndim", 0)
    refuse(n > 1 or (n == 1 and value.shape[0] != min(a.shape)), "values that repeat")
    t.assign(t.diagonal(a, 0, 1, 0, True), value)


@function("rot90")
def rot90(t: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """np.rot90"""
    x = array(t, m)
    i, j = (normal_axis(operator.index(a), x.ndim) for a in axes)
    if i == j:
        raise ValueError("axes")
    back = (slice(None),) * j + (slice(None, None, -1),)
    first = (slice(None),) * i + (slice(None, None, -1),)
    k %= 4
    if k == 0:
        return x[:]
    if k == 2:
        return x[first][back]
    return swapaxes(t, x[back], i, j) if k == 1 else swapaxes(t, x, i, j)[back]
