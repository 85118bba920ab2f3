"""Functions that join, repeat and split arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .search import repeated
from .shape import broadcast_arrays, in_one_axis, sizes
from .surface import (
    Traced,
    array,
    common_type,
    converted,
    dtype_of,
    function,
    into,
    is_one,
    is_pythons,
    laid_out,
    lying,
    method,
    normal_axis,
    rank,
    refuse,
    usually_positive,
    whole,
)

MOST_SIDE_BY_SIDE = 32  # copies of an element that one vector loop stores: a load for each result costs more up to there


def parts_of(arrays: Any) -> list[Any]:
    """The parts to join: the items of a sequence, or the rows of an array."""
    return [arrays[i] for i in range(len(arrays))] if type(arrays) is Traced else list(arrays)


@function("concatenate", "concat")
def concatenate(
    t: Any,
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """np.concatenate"""
    given = parts_of(arrays)
    xs = [array(t, x) for x in given]
    if not xs:
        raise ValueError("nothing")
    wanted = dtype_of(dtype) if dtype is not None else common_type(given, xs)
    if axis is None:
        xs, axis = [t.reshape(x, (x.size,)) for x in xs], 0
    axis = normal_axis(axis, xs[0].ndim)
    for part, x in zip(given, xs, strict=True):
        pairs = zip(x.shape, xs[0].shape, strict=False)  # symbolic sizes are compared later
        differs = [type(a) is type(b) is int and a != b for a, b in pairs]
        fits = x.ndim == xs[0].ndim and not any(differs[:axis] + differs[axis + 1 :])
        if not fits or not (is_pythons(part) or np.can_cast(x.dtype, wanted, casting)):
            raise ValueError("concatenate")
    refuse(type(out) is Traced and any(x.shares_storage(out) for x in xs), "out= that shares memory with the parts")
    return into(t, out, end_to_end(t, xs, wanted, axis))


def end_to_end(t: Any, xs: list[Any], dtype: np.dtype, axis: int) -> Any:
    """Concatenate the arrays, with the layout of NumPy's result."""
    return t.concat([converted(t, filled_part(t, laid_out(t, x), x), dtype) for x in xs], axis)


def filled_part(t: Any, laid: Any, x: Any) -> Any:
    """`laid`, or for an empty x of which it is a copy: no elements of an array in x's order, because the strides of an empty array
    say nothing.
    """
    if laid is x or not any(type(n) is int and n == 0 for n in x.shape):
        return laid
    refuse(any(type(s) is Traced for s in x.strides), "an empty part of a repeated array whose strides vary")
    axes = sorted(range(x.ndim), key=lambda k: -abs(x.strides[k]))
    known = [2 if type(n) is int and n == 0 else n for n in x.shape]  # an axis of size 1 would have no order
    filled = t.empty([known[k] for k in axes], x.dtype, "C")
    return np.transpose(filled, np.argsort(axes).tolist())[tuple(slice(0, n) for n in x.shape)]


@function("stack")
def stack(
    t: Any,
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """np.stack; NumPy's own source would put shapes into a set."""
    xs = [array(t, x) for x in parts_of(arrays)]
    if not xs or any(x.ndim != xs[0].ndim for x in xs):
        raise ValueError("all input arrays must have the same shape")
    axis = normal_axis(axis, xs[0].ndim + 1)
    parts = [t.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return concatenate(t, parts, axis, out, dtype=dtype, casting=casting)


@function("meshgrid")
def meshgrid(
    t: Any, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    """np.meshgrid; NumPy's own source would compare shapes with each other."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    xs = [array(t, x) for x in xi]
    grids = []
    for k, x in enumerate(xs):
        at = 1 - k if indexing == "xy" and k < 2 and len(xs) > 1 else k
        grids.append(t.reshape(x, (1,) * at + (x.size,) + (1,) * (len(xs) - 1 - at)))
    if not sparse and xs:
        shape = t.broadcast(grids)
        grids = [t.expand(grid, shape) for grid in grids] if copy else list(broadcast_arrays(t, *grids))
    return tuple(t.copy(grid, "C") if copy else grid for grid in grids)


@function("repeat")
@method("repeat")
def repeat(t: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    """np.repeat with one number for all elements."""
    x = array(t, a)
    if not is_a(repeats, int | np.integer):
        return repeated(t, x, repeats, axis)
    repeats = whole(repeats)
    if repeats < 0:
        raise ValueError("negative")
    if axis is None:
        x, axis = t.reshape(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    whole_ = (*before, n * repeats, *after)
    if type(repeats) is int and 1 < repeats <= MOST_SIDE_BY_SIDE and all(map(is_one, after)):
        made = t.empty(whole_, x.dtype)
        copies = t.reshape(made, (*x.shape, repeats))
        for k in range(repeats):
            t.assign(copies[..., k], x)
        return made
    spread = t.expand(t.reshape(x, (*before, n, 1, *after)), (*before, n, repeats, *after))
    return t.reshape(t.copy(spread, "C"), whole_).detached()


@function("tile")
def tile(t: Any, A: Any, reps: Any) -> Any:  # noqa: N803
    """np.tile: insert an axis of copies before each axis, then reshape."""
    x, counts = array(t, A), sizes(reps)
    if not x.flags_now.c_contiguous or all(map(is_one, counts)):
        numbers_first = sorted(counts, key=lambda n: type(n) is not int)
        if all(n == 1 for n in numbers_first):
            return t.reshape(t.copy(x, "K"), (1,) * (len(counts) - x.ndim) + x.shape)
    rank = max(x.ndim, len(counts))
    extents = (1,) * (rank - x.ndim) + x.shape
    counts = (1,) * (rank - len(counts)) + counts
    if any(type(n) is int and n < 0 for n in counts):
        raise ValueError("negative dimensions are not allowed")
    spread = t.reshape(x, [n for m in extents for n in (1, m)])
    spread = t.expand(spread, [n for pair in zip(counts, extents, strict=True) for n in pair])
    whole_ = [n * m for n, m in zip(counts, extents, strict=True)]
    return t.reshape(t.copy(spread, "C"), whole_)


@function("roll")
def roll(t: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    """np.roll: elements leave at one end of an axis and enter at the other."""
    x = array(t, a)
    if axis is None:
        flat = roll(t, in_one_axis(t, x), shift, 0)
        return t.reshape(flat, x.shape)
    if x.ndim == 0:
        raise ValueError("NumPy finds no part to move")
    shift, axis = (tuple(v) if is_a(v, list) else v for v in (shift, axis))
    refuse(not is_int_or_tuple(shift) or not is_int_or_tuple(axis), "shifts that are an array")
    shifts = shift if is_a(shift, tuple) else (shift,)
    axes = axis if is_a(axis, tuple) else (axis,)
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    count = max(len(shifts), len(axes))
    total: dict[int, Any] = {}
    for i in range(count if axes and shifts else 0):
        k = normal_axis(axes[i % len(axes)], x.ndim)
        total[k] = total.get(k, 0) + shifts[i % len(shifts)]
    made = x
    for k, by in total.items():
        n = made.shape[k]
        has_some = usually_positive(t, n)
        if has_some is False or (type(by) is int and type(n) is int and by % n == 0):
            continue
        front = (slice(None),) * k
        if type(by) is int and type(n) is Traced and usually_positive(t, n - abs(by) + 1) is True:
            at = n - by if by > 0 else -by
        else:
            at = n - by % (n if has_some is True else t.size_max(n, 1))
        made = t.concat([made[(*front, slice(at, None))], made[(*front, slice(None, at))]], k)
    return t.copy(x, "K") if made is x else lying(t, made, "K", x)


def is_int_or_tuple(value: Any) -> bool:
    """An int, or a tuple of ints; varying ones are traced."""
    if is_a(value, tuple):
        return all(is_int_or_tuple(v) and not is_a(v, tuple) for v in value)
    return is_a(value, int) or (type(value) is Traced and value.dtype.kind == "i")


@function("array_split")
def array_split(t: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """np.array_split: views."""
    x = array(t, ary)
    axis = normal_axis(axis, x.ndim)
    n = x.shape[axis]
    try:
        cuts = [operator.index(i) for i in indices_or_sections]
    except TypeError:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("sections") from None
        cuts = even_cuts(t, n, sections)
    before = (slice(None),) * axis
    return [x[(*before, slice(a, b))] for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def even_cuts(t: Any, n: Any, sections: int) -> list[Any]:
    """The positions that split an axis into sections, of which the first few have one more element."""
    cuts: list[Any] = []
    at: Any = 0
    for k in range(1, sections):
        at = at + (n + sections - k) // sections
        if type(at) is Traced:
            t.assume((at, "<=", n))
        cuts.append(at)
    return cuts


@function("split")
def split(t: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """np.split: parts of equal size, or at given indices."""
    if rank(indices_or_sections) == 0:
        x = ary if hasattr(ary, "shape") else None  # NumPy does not accept lists here
        if x is None:
            raise AttributeError("shape")
        if x.shape[normal_axis(axis, x.ndim)] % indices_or_sections:
            raise ValueError("sections")
    return array_split(t, ary, indices_or_sections, axis)


@function("kron")
def kron(t: Any, a: Any, b: Any) -> Any:
    """np.kron: a product of both with interleaved axes, reshaped."""
    x, y = array(t, a), array(t, b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y)
    nd = max(x.ndim, y.ndim)
    xs = (1,) * (nd - x.ndim) + x.shape
    ys = (1,) * (nd - y.ndim) + y.shape
    wide = np.multiply(
        t.reshape(x, [n for m in xs for n in (m, 1)]), t.reshape(y, [n for m in ys for n in (1, m)])
    )
    return t.reshape(wide, [m * n for m, n in zip(xs, ys, strict=True)])
