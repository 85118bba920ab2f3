"""Functions that rearrange: views where NumPy makes views, copies where it copies."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .surface import (
    Traced,
    array,
    dtype_of,
    function,
    into,
    is_one,
    method,
    normal_axes,
    normal_axis,
    operand,
    refuse,
    result_type,
    whole,
)


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints."""
    try:
        return (whole(shape),)
    except TypeError:
        if not isinstance(shape, Sequence | np.ndarray | Traced):
            raise
        return tuple(whole(n) for n in shape)


@function(np.reshape)
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
    return t.reshape(x, shape)


@method("reshape")
def reshape_method(t: Any, self: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    """ndarray.reshape"""
    refuse(not shape, "no shape")
    return reshape(t, self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def turn(t: Any, x: Any) -> Any:
    """The axes in reverse."""
    return t.permute(x, tuple(range(x.ndim))[::-1]) if x.ndim > 1 else x


@function(np.ravel)
@method("ravel")
def ravel(t: Any, a: Any, order: str = "C") -> Any:
    """np.ravel: a view where the elements lie in order."""
    x = array(t, a)
    if order in ("K", "A"):
        flags = x.flags
        if order == "K" and not flags.c_contiguous and not flags.f_contiguous:
            strides = x.strides
            refuse(
                not all(t.usually_positive(s) for s in strides),
                "order='K' of strides that are not positive",
            )
            x = t.permute(x, sorted(range(x.ndim), key=lambda k: -strides[k]))
            x = x if x.flags.c_contiguous else t.copy(x, "C")
            order = "C"
        else:
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    refuse(order not in ("C", "F"), f"order={order!r}")
    x = x if order == "C" else turn(t, x)
    return t.reshape(x if x.flags.c_contiguous else t.copy(x, "C"), (x.size,))


@method("flatten")
def flatten(t: Any, self: Any, order: str = "C") -> Any:
    """ndarray.flatten: always a copy."""
    order = layout(self, order)
    refuse(order == "K" and not self.flags.c_contiguous, "order='K'")
    x = turn(t, self) if order == "F" else self
    return t.reshape(t.copy(x, "C"), (self.size,))


@function(np.transpose)
def transpose(t: Any, a: Any, axes: Any = None) -> Any:
    """np.transpose"""
    x = array(t, a)
    if axes is None:
        return turn(t, x)
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


@function(np.swapaxes)
@method("swapaxes")
def swapaxes(t: Any, a: Any, axis1: int, axis2: int) -> Any:
    """np.swapaxes"""
    x = array(t, a)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    axes = list(range(x.ndim))
    axes[i], axes[j] = j, i
    return t.permute(x, axes)


@function(np.squeeze)
@method("squeeze")
def squeeze(t: Any, a: Any, axis: Any = None) -> Any:
    """np.squeeze"""
    x = array(t, a)
    if axis is None:
        dropped = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        dropped = normal_axes(axis, x.ndim)
        if any(x.shape[i] != 1 for i in dropped):
            raise ValueError("squeeze")
    return t.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in dropped))


@function(np.expand_dims)
def expand_dims(t: Any, a: Any, axis: Any) -> Any:
    """np.expand_dims"""
    x = array(t, a)
    axis = axis if isinstance(axis, tuple | list) else (axis,)
    axes = normal_axes(tuple(axis), len(axis) + x.ndim)
    rest = iter(x.shape)
    shape = [1 if i in axes else next(rest) for i in range(len(axis) + x.ndim)]
    return t.reshape(x, shape)


@function(np.broadcast_to)
def broadcast_to(t: Any, array_: Any, shape: Any, subok: bool = False) -> Any:
    """np.broadcast_to: a view that cannot be written to."""
    x = array(t, array_)
    shape = sizes(shape)
    return t.expand(x, shape)


@function(np.broadcast_arrays)
def broadcast_arrays(t: Any, *args: Any, subok: bool = False) -> Any:
    """np.broadcast_arrays"""
    xs = [array(t, a) for a in args]
    shape = t.broadcast(xs)
    return tuple(x if x.shape == shape else t.expand(x, shape) for x in xs)


@function(np.concatenate, np.concat)
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
    if type(arrays) is Traced:
        arrays = [arrays[i] for i in range(len(arrays))]
    xs = [array(t, x) for x in arrays]
    if not xs:
        raise ValueError("nothing")
    wanted = dtype_of(dtype) if dtype is not None else result_type(*xs)
    if axis is None:
        xs, axis = [t.reshape(x, (x.size,)) for x in xs], 0
    axis = normal_axis(axis, xs[0].ndim)
    for x in xs:
        pairs = zip(x.shape, xs[0].shape, strict=False)  # sizes that are symbols are compared later
        differs = [type(a) is type(b) is int and a != b for a, b in pairs]
        fits = x.ndim == xs[0].ndim and not any(differs[:axis] + differs[axis + 1 :])
        if not fits or not np.can_cast(x.dtype, wanted, casting):
            raise ValueError("concatenate")
    return into(t, out, t.concat([t.cast(x, wanted) for x in xs], axis))


@function(np.stack)
def stack(
    t: Any,
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """np.stack; NumPy's own source puts shapes into a set."""
    if type(arrays) is Traced:
        arrays = [arrays[i] for i in range(len(arrays))]
    xs = [array(t, x) for x in arrays]
    if not xs or any(x.ndim != xs[0].ndim for x in xs):
        raise ValueError("all input arrays must have the same shape")
    axis = normal_axis(axis, xs[0].ndim + 1)
    parts = [t.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return concatenate(t, parts, axis, out, dtype=dtype, casting=casting)


@function(np.meshgrid)
def meshgrid(t: Any, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """np.meshgrid; NumPy's own source compares shapes with each other."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    xs = [array(t, x) for x in xi]
    grids = []
    for k, x in enumerate(xs):
        at = 1 - k if indexing == "xy" and k < 2 and len(xs) > 1 else k
        grids.append(t.reshape(x, (1,) * at + (x.size,) + (1,) * (len(xs) - 1 - at)))
    if not sparse and xs:
        shape = t.broadcast(grids)
        grids = [t.expand(grid, shape) for grid in grids]
    return tuple(t.copy(grid, "C") if copy else grid for grid in grids)


@function(np.repeat)
@method("repeat")
def repeat(t: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    """np.repeat by one number for all."""
    x = array(t, a)
    if not isinstance(repeats, int | np.integer):
        from .search import repeated

        return repeated(t, x, repeats, axis)
    repeats = whole(repeats)
    if repeats < 0:
        raise ValueError("negative")
    if axis is None:
        x, axis = t.reshape(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    spread = t.expand(t.reshape(x, (*before, n, 1, *after)), (*before, n, repeats, *after))
    return t.reshape(t.copy(spread, "C"), (*before, n * repeats, *after))


@function(np.tile)
def tile(t: Any, A: Any, reps: Any) -> Any:  # noqa: N803
    """np.tile: an axis of copies before each axis, reshaped."""
    x, counts = array(t, A), sizes(reps)
    if not x.flags.c_contiguous or all(map(is_one, counts)):
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


@function(np.diagonal)
@method("diagonal")
def diagonal(t: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """np.diagonal: a view that cannot be written to."""
    x = array(t, a)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    if x.ndim < 2 or i == j:
        raise ValueError("diagonal")
    return t.diagonal(x, i, j, whole(offset))


@function(np.lib.stride_tricks.sliding_window_view)
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
    """The axes that windows run along, maybe one of them several times."""
    if axis is None:
        return tuple(range(ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim, allow_duplicate=True)


@function(np.trace)
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
    return np.add.reduce(diagonal(t, a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@function(np.diag)
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


@function(np.roll)
def roll(t: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    """np.roll: what leaves at one end of an axis comes in at the other."""
    x = array(t, a)
    if axis is None:
        flat = roll(t, ravel(t, x), shift, 0)
        return t.reshape(flat, x.shape)
    shift, axis = (tuple(v) if isinstance(v, list) else v for v in (shift, axis))
    refuse(not is_int_or_tuple(shift) or not is_int_or_tuple(axis), "shifts that are an array")
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = axis if isinstance(axis, tuple) else (axis,)
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
        has_some = t.usually_positive(n)
        if has_some is False or (type(by) is int and type(n) is int and by % n == 0):
            continue
        front = (slice(None),) * k
        if type(by) is int and type(n) is Traced and t.usually_positive(n - abs(by) + 1) is True:
            at = n - by if by > 0 else -by
        else:
            at = n - by % (n if has_some is True else t.size_max(n, 1))
        made = t.concat([made[(*front, slice(at, None))], made[(*front, slice(None, at))]], k)
    return t.copy(x, "K") if made is x else made


def is_int_or_tuple(value: Any) -> bool:
    """An int, or a tuple of ints; those that vary are traced."""
    if isinstance(value, tuple):
        return all(is_int_or_tuple(v) and not isinstance(v, tuple) for v in value)
    return isinstance(value, int) or (type(value) is Traced and value.dtype.kind == "i")


@function(np.diagflat)
def diagflat(t: Any, v: Any, k: int = 0) -> Any:
    """np.diagflat: a matrix with the elements of v on a diagonal."""
    return diag(t, ravel(t, v), k)


@function(np.fill_diagonal, writes=True)
def fill_diagonal(t: Any, a: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal of a matrix, with one value, or as many as the diagonal has."""
    refuse(type(a) is not Traced, "the array is not one of this call")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    refuse(a.ndim != 2 or wrap, "more than two axes, or wrapped")
    n = min(a.shape)
    block = a[:n, :n]
    value = array(t, val)
    refuse(value.ndim > 1 or (value.ndim == 1 and value.shape[0] != n), "values that repeat")
    if value.ndim == 1:
        value = t.reshape(value, (n, 1))
    mask = np.equal(t.iota(block.shape, 0), t.iota(block.shape, 1))
    t.assign(block, t.apply("where", mask, t.cast(value, a.dtype), block))


@function(np.rot90)
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


@function(np.array_split)
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
    """Where an axis is cut into sections of which the first few have one element more."""
    cuts: list[Any] = []
    at: Any = 0
    for k in range(1, sections):
        at = at + (n + sections - k) // sections
        if type(at) is Traced:
            t.assume((at, "<=", n))
        cuts.append(at)
    return cuts


@function(np.split)
def split(t: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """np.split: parts of one size, or at the indices given."""
    if isinstance(indices_or_sections, int | np.integer):
        x = ary if hasattr(ary, "shape") else None  # NumPy takes no lists here
        if x is None:
            raise AttributeError("shape")
        if x.shape[normal_axis(axis, x.ndim)] % indices_or_sections:
            raise ValueError("sections")
    return array_split(t, ary, indices_or_sections, axis)


@function(np.kron)
def kron(t: Any, a: Any, b: Any) -> Any:
    """np.kron: a product of both with axes of one between, reshaped."""
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


@function(np.copy)
def copy(t: Any, a: Any, order: str = "K", subok: bool = False) -> Any:
    """np.copy"""
    return t.copy(array(t, a), layout(array(t, a), order))


@method("copy", "__copy__", "__deepcopy__")
def copy_method(t: Any, self: Any, order: Any = "C") -> Any:
    """ndarray.copy"""
    order = order if isinstance(order, str) else "K"
    if self.kind == "scalar":
        return self
    return t.copy(self, layout(self, order))


def layout(x: Any, order: str) -> str:
    """The order 'A' means, others as they are."""
    if order == "A":
        return "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    refuse(order not in ("C", "F", "K"), f"order={order!r}")
    return order


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
    from .surface import DTYPES

    refuse(wanted not in DTYPES, f"dtype {wanted}")
    refuse(order not in ("K",), f"order={order!r}")
    if not np.can_cast(self.dtype, wanted, casting):
        raise TypeError("casting")
    if wanted == self.dtype:
        if self.kind == "scalar":
            return self
        return t.copy(self, "K") if copy else self
    made = t.cast(self, wanted)
    return t.as_scalar(made) if self.kind == "scalar" else made


if hasattr(np, "astype"):

    @function(np.astype)
    def astype_function(
        t: Any, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None
    ) -> Any:
        """np.astype"""
        return astype(t, x, dtype, copy=copy)


@method("fill")
def fill(t: Any, self: Any, value: Any) -> None:
    """ndarray.fill"""
    t.assign(self, operand(t, value, self.dtype))


PYTHONS = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64, "c": np.complex128}


@method("item")
def item(t: Any, self: Any, *args: Any) -> Any:
    """ndarray.item: a number of Python's."""
    if args:
        key = args[0] if len(args) == 1 else args
        flat = self if isinstance(key, tuple) or self.ndim == 1 else ravel(t, self)
        element = flat[key]
        refuse(element.ndim > 0, "such an index")
    else:
        same = self.size == 1
        refuse(type(same) is Traced, "an array of unknown size")
        if not same:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        element = t.as_scalar(t.reshape(array(t, self), ())) if self.kind == "array" else self
    refuse(element.dtype == np.uint64, "an int that may be beyond 64 bits")
    return t.as_python(t.cast(element, np.dtype(PYTHONS[element.dtype.kind])))


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
    """Whether what is given for a dtype is that one."""
    return not (isinstance(a, type) and issubclass(a, np.ndarray)) and np.dtype(a) == b


MANY_NUMBERS = 64  # of a list in the program: each is one of its results


@method("tolist")
def tolist(t: Any, self: Any) -> Any:
    """ndarray.tolist of a few elements: numbers of Python's."""
    if self.ndim == 0:
        return item(t, self)
    known = all(type(n) is int for n in self.shape)
    refuse(not known, "a list of as many numbers as a size that varies")
    refuse(self.size > MANY_NUMBERS, f"a list of {self.size} numbers, more than {MANY_NUMBERS}")
    return [tolist(t, self[k]) for k in range(self.shape[0])]


@method("tobytes", "dump", "dumps", "tofile", "__array__", "__reduce__")
def to_python(t: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Methods that answer with Python's own objects."""
    refuse(True, "it answers with Python's own values")


@method("getfield", "setflags", "byteswap", "newbyteorder", "resize", "setfield")
def reinterpret(t: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Methods that look at bytes."""
    refuse(True, "it looks at an array's bytes")


@method("dot")
def dot_method(t: Any, self: Any, b: Any, out: Any = None) -> Any:
    """ndarray.dot"""
    from .linalg import dot

    return dot(t, self, b, out)
