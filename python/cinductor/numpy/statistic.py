"""Medians, quantiles, histograms and interpolation, as library calls of NumPy; medians of few elements use
network.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from ..base.user_frame import call_in_place
from .index import INT64
from .library import packed
from .network import median_of_few
from .surface import (
    NotCaptured,
    Traced,
    any_varies,
    array,
    as_result,
    cast,
    fold,
    function,
    has_dtype,
    in_place,
    into,
    library,
    lying,
    normal_axes,
    of_numpy,
    operand,
    rank,
    refuse,
    require,
    require_same,
    usually_positive,
    weak,
)

UNSET = np._NoValue
FLOAT64 = np.dtype(np.float64)


# --- order statistics ---------------------------------------------------------------------------


def left_shape(x: Any, axis: Any, keepdims: bool) -> tuple[Any, ...]:
    """The shape of a result reduced along axes."""
    folded = normal_axes(axis, x.ndim)
    if keepdims:
        return tuple(1 if k in folded else n for k, n in enumerate(x.shape))
    return tuple(n for k, n in enumerate(x.shape) if k not in folded)


def small_result(f: Callable[..., Any], *args: Any, **kwargs: Any) -> np.dtype:
    """The dtype of a result, found by calling NumPy on a small array."""
    dtype = np.asarray(f(*args, **kwargs)).dtype
    refuse(not has_dtype(dtype), f"dtype {dtype}")
    return dtype


def given_axis(axis: Any) -> Any:
    """An axis, or several, as constants."""
    return tuple(int(k) for k in axis) if is_a(axis, list | tuple) else axis


def median_of(name: str) -> None:
    """Register np.median or np.nanmedian."""
    f = getattr(np, name)

    def handler(
        t: Any,
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:
        x, axis = array(t, a), given_axis(axis)
        keep = keepdims is not UNSET and bool(keepdims)
        refuse(overwrite_input or (keep and x.ndim == 0), "overwrite_input=, or no axis to keep")
        few = median_of_few(x, axis, keep) if name == "median" else None
        if few is not None:
            made = in_order_of(t, few, x, axis, keep)
            return into(t, out, made if keep else as_result(t, made))
        shape = left_shape(x, axis, keep)
        require(t, usually_positive(t, x.size), "an empty array warns")
        dtype = small_result(f, np.ones(1, x.dtype))

        def call(values: Any, result: Any) -> None:
            result[...] = call_in_place(f, (values,), {"axis": axis, "keepdims": keep})

        made = in_order_of(t, t.extern(name, f"{axis} {keep}", call, [x], shape, dtype), x, axis, keep)
        return into(t, out, as_result(t, made))

    function(name)(handler)


def in_order_of(t: Any, made: Any, x: Any, axis: Any, keep: bool) -> Any:
    """The medians of x in NumPy's memory order: NumPy merges several axes into the last one, and reduces a copy in the order
    of the array."""
    axes = normal_axes(axis, x.ndim)
    left = [k for k in range(x.ndim) if k not in axes]
    if len(left) < 2:
        return made
    order = list(range(x.ndim))
    for at, k in enumerate(left):  # swapped in turn, as NumPy does
        order[at], order[k] = order[k], order[at]
    moved = t.permute(x, order)
    if len(axes) > 1:
        moved = t.reshape(moved, (*(x.shape[k] for k in left), -1))
    one = moved[(*(slice(None),) * len(left), 0)]
    if keep:
        one = one[tuple(None if k in axes else slice(None) for k in range(x.ndim))]
    return lying(t, made, "K", one)


def quantile_of(name: str) -> None:
    """Register np.percentile, np.quantile or a similar function; the quantiles may vary."""
    f = getattr(np, name)

    def handler(
        t: Any,
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        x, axis = array(t, a), given_axis(axis)
        keep = keepdims is not UNSET and bool(keepdims)
        refuse(overwrite_input or weights is not None, "such a quantile")
        varies = not is_fixed(q)
        wanted = array(t, q) if varies else np.asarray(q)
        refuse(wanted.dtype.kind not in "fiu", "such quantiles")
        require(t, usually_positive(t, x.size), "an empty array warns")
        is_weak = varies and type(q) is Traced and q.kind == "python"
        probe = q if not varies else np.zeros(wanted.ndim * (1,), wanted.dtype)
        probe = probe.item() if is_weak else probe
        dtype = small_result(f, np.ones(1, x.dtype), probe, method=method)
        fixed = None if varies else q

        def call(values: Any, *rest: Any) -> None:
            *asked, result = rest
            given = fixed if not asked else asked[0].item() if is_weak else asked[0]
            found = f(values, given, axis=axis, method=method, keepdims=keep)
            result[...] = found if in_order else found.transpose(inner)

        left = left_shape(x, axis, keep)
        shape = (*wanted.shape, *left)
        # NumPy stores the quantiles of a row next to each other if it skips NaN.
        in_order = not name.startswith("nan") or not left or not wanted.ndim
        inner = (*range(wanted.ndim, len(shape)), *range(wanted.ndim))
        key = f"{varies} {is_weak} {fixed!r} {axis} {method} {keep} {in_order}"
        xs = [x, wanted] if varies else [x]
        stored = shape if in_order else (*left, *wanted.shape)
        made = library(t, varies)(name, key, call, xs, stored, dtype)  # in [0, 1], or up to 100
        if not in_order:
            made = t.permute(made, tuple(inner.index(axis) for axis in range(len(shape))))
        return into(t, out, as_result(t, made))

    function(name)(handler)


def is_fixed(q: Any) -> bool:
    """True for constants, and lists of constants."""
    return is_a(q, list | tuple) and all(map(is_fixed, q)) or type(q) in (int, float)


for _name in ("median", "nanmedian"):
    median_of(_name)
for _name in ("percentile", "quantile", "nanpercentile", "nanquantile"):
    quantile_of(_name)


# --- interpolation ------------------------------------------------------------------------------


@function("interp")
def interp(
    t: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """np.interp"""
    values, where, what = (array(t, v) for v in (x, xp, fp))
    refuse(values.dtype.kind == "c" or where.dtype.kind == "c", "complex places")
    if where.ndim != 1 or what.ndim != 1:
        raise ValueError("fp and xp are not of the same length.")
    require_same(t, where.shape[0], what.shape[0])
    dtype = np.dtype(np.complex128 if what.dtype.kind == "c" else np.float64)
    xs = [in_place(t, values, FLOAT64), in_place(t, where, FLOAT64), in_place(t, what, dtype)]
    named = {"left": left, "right": right, "period": period}
    named = {k: v for k, v in named.items() if v is not None}
    varying = [k for k, v in named.items() if type(v) is Traced]
    fixed = {k: v for k, v in named.items() if k not in varying}
    xs += [operand(t, named[k], FLOAT64 if k == "period" else dtype) for k in varying]

    @of_numpy
    def call(*arrays: Any) -> Any:
        given = arrays[:-1]
        more = {k: v[()] for k, v in zip(varying, given[3:], strict=True)}
        return np.interp(*given[:3], **fixed, **more)

    key = f"{sorted(fixed.items())!r} {varying}"
    require(t, usually_positive(t, where.shape[0]), "no places")
    refuse(fixed.get("period") == 0, "period=0")
    call_it = library(t, "period" in varying)
    return as_result(t, call_it("interp", key, call, xs, values.shape, dtype))


@function("gradient")
def gradient(t: Any, f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """np.gradient with coordinate arrays; otherwise it is captured from NumPy's own source."""
    x, places = array(t, f), [v for v in varargs if rank(v) > 0]
    refuse(not places or x.ndim == 0, "equal steps")
    axes = normal_axes(axis, x.ndim)
    if len(varargs) not in (1, len(axes)):
        raise TypeError("invalid number of arguments")
    dtype = x.dtype if x.dtype.kind in "fc" else FLOAT64
    results = []
    for k, axis_ in enumerate(axes):
        step = varargs[k] if len(varargs) > 1 else varargs[0]
        results.append(gradient_along(t, x, step, axis_, edge_order, dtype))
    return results[0] if len(results) == 1 else tuple(results)


def gradient_along(t: Any, x: Any, step: Any, axis: int, order: int, dtype: np.dtype) -> Any:
    """np.gradient along one axis: a library call."""
    given = array(t, step) if rank(step) else operand(t, step, FLOAT64)
    if given.ndim and (given.ndim > 1 or given.shape[0] != x.shape[axis]):
        raise ValueError("distances")

    require(t, x.shape[axis] > order, "an array too small for such differences")

    def call(values: Any, places: Any, _out: Any) -> Any:
        return np.gradient(values, places, axis=axis, edge_order=order)

    return lying(t, t.extern("gradient", f"{axis} {order}", call, [x, given], x.shape, dtype), "K", x)


# --- histograms ---------------------------------------------------------------------------------


def limits(t: Any, x: Any, given: Any) -> tuple[Any, list[Any]]:
    """The range of a histogram of x: constants, and operands for numbers that vary."""
    if given is None:
        return None, []
    low, high = given
    same = edge_type(weak(low), x.dtype) == edge_type(weak(high), x.dtype) == edge_type(0.0, x.dtype)
    odd = [is_a(v, np.integer) or (type(v) is int and abs(v) > 2**62) for v in (low, high)]
    refuse(not same or any(odd), "a range whose numbers decide the dtype of the edges")
    if type(low) is not Traced and type(high) is not Traced:
        return (float(low), float(high)), []
    return None, [operand(t, low, FLOAT64), operand(t, high, FLOAT64)]


def edge_type(limit: Any, dtype: np.dtype) -> np.dtype:
    """The dtype that NumPy's source finds for the edges if a number limits the range."""
    found = np.result_type(limit, dtype)
    return np.result_type(found, 0.0) if found.kind in "biu" else found


@function("histogram")
def histogram(
    t: Any,
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  (NumPy's name)
    density: Any = None,
    weights: Any = None,
) -> Any:
    """np.histogram with a number of bins or with edges: counts and edges by one library call."""
    x = array(t, a)
    refuse(is_a(bins, str) or x.dtype.kind == "c", "such bins")
    refuse(x.dtype.kind == "b", "bools, of which NumPy warns")
    fixed, given = limits(t, x, range)
    weight = [] if weights is None else [array(t, weights)]
    if type(bins) is Traced and bins.ndim == 0 and not bins.is_expression:
        bins = operator.index(bins)  # the number is guarded
    edges = [] if rank(bins) == 0 else [array(t, bins)]
    if edges and edges[0].ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    if not edges and bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    n = edges[0].shape[0] - 1 if edges else bins if type(bins) is Traced else operator.index(bins)
    count = [operand(t, n, INT64)] if type(n) is Traced and not edges else []
    probe = np.histogram(
        np.ones(1, x.dtype),
        1,
        density=density,
        weights=np.ones(1, weight[0].dtype) if weight else None,
    )
    for made in probe:
        refuse(not has_dtype(made.dtype), f"dtype {made.dtype}")
    has = (bool(weight), bool(edges or count), bool(given))
    number = None if has[1] else n

    def call(values: Any, *rest: Any) -> Any:
        left = list(rest)
        by = left.pop(0) if has[0] else None
        where = left.pop(0) if has[1] else number
        span = (float(left[0]), float(left[1])) if has[2] else fixed
        found = np.histogram(values, where if np.ndim(where) else int(where), span, density, by)
        return found[:1] if np.ndim(where) else found

    key = f"{has} {fixed} {density} {number}"
    xs = [x, *weight, *edges, *count, *given]
    if edges:
        counts = packed(t, "histogram", key, call, xs, [(n,)], [probe[0].dtype])[0]
        return counts, edges[0]
    shapes, dtypes = [(n,), (n + 1,)], [probe[0].dtype, probe[1].dtype]
    if dtypes[0] == INT64:  # counts are exact in float64, but not in narrower floats
        refuse(type(x.size) is int and x.size > 2**53, "so many elements")
        dtypes = [np.dtype(np.float64), dtypes[1]]
    counts, made = packed(t, "histogram", key, call, xs, shapes, dtypes)
    return cast(t, counts, probe[0].dtype, "unsafe"), made


@function("histogram_bin_edges")
def histogram_bin_edges(
    t: Any,
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  (NumPy's name)
    weights: Any = None,
) -> Any:
    """np.histogram_bin_edges"""
    refuse(weights is not None, "weights=")
    return histogram(t, a, bins, range)[1]


@function("histogramdd")
def histogramdd(
    t: Any,
    sample: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002  (NumPy's name)
    density: Any = None,
    weights: Any = None,
) -> Any:
    """np.histogramdd: counts and the edges of each axis by one library call."""
    if type(sample) is Traced:
        refuse(sample.ndim != 2 or type(sample.shape[1]) is not int, "such a sample")
        columns = [sample[:, k] for k in np.arange(sample.shape[1]).tolist()]
    else:
        columns = [array(t, c) for c in sample]
    number = len(columns)
    each = [bins] * number if rank(bins) == 0 and not is_a(bins, list) else list(bins)
    if len(each) != number:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    if any(type(b) is Traced and b.ndim == 0 for b in each):
        raise NotCaptured("a number of bins that varies")
    edges = [array(t, b) if rank(b) else int(b) for b in each]
    refuse(range is not None and any_varies(range), "a range that varies")
    refuse(any(c.ndim != 1 or c.dtype.kind not in "fiu" for c in columns), "such a sample")
    sizes = [e + 1 if is_a(e, int) else e.shape[0] for e in edges]
    arrays = [e for e in edges if not is_a(e, int)]
    weight = [] if weights is None else [in_place(t, weights, FLOAT64)]

    def call(*given: Any) -> Any:
        left = list(given)
        points = [left.pop(0) for _ in columns]
        where = [e if is_a(e, int) else left.pop(0) for e in counts]
        by = left.pop(0) if weight_given else None
        found, made = np.histogramdd(points, where, range, density, by)
        return [found, *made]

    counts = [e if is_a(e, int) else None for e in edges]
    weight_given = bool(weight)
    ones = np.ones((1, number), np.result_type(*(c.dtype for c in columns)))
    made_edges = np.histogramdd(ones, 1, range)[1]
    dtypes = [FLOAT64] + [made.dtype if is_a(e, int) else e.dtype for e, made in zip(edges, made_edges, strict=True)]
    key = f"{counts} {range} {density} {weight_given}"
    shapes = [tuple(n - 1 for n in sizes), *((n,) for n in sizes)]
    found, *made = packed(t, "histogramdd", key, call, [*columns, *arrays, *weight], shapes, dtypes)
    if density:
        return found, made
    padded = t.empty(tuple(n + 1 for n in sizes), found.dtype)  # NumPy's result is a view of such an array
    core = padded[(slice(1, -1),) * number]
    t.assign(core, found)
    return core, made


# --- means --------------------------------------------------------------------------------------


@function("average")
def average(
    t: Any,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = UNSET,
) -> Any:
    """np.average with weights; without, it is captured from NumPy's own source."""
    refuse(weights is None, "no weights")
    x, weight = array(t, a), array(t, weights)
    axes = normal_axes(axis, x.ndim)
    if weight.shape != x.shape:
        if axis is None or weight.shape != tuple(x.shape[k] for k in axes):
            raise TypeError("weights")
        refuse(len(axes) != 1, "weights of several axes")
        weight = t.reshape(weight, tuple(n if k in axes else 1 for k, n in enumerate(x.shape)))
    more = {} if keepdims is UNSET else {"keepdims": keepdims}
    wide = [FLOAT64] if x.dtype.kind in "biu" else []
    dtype = np.result_type(x.dtype, weight.dtype, *wide)
    total = fold(np.add, "reduce", weight, axis=axis if weight.shape == x.shape else axes, dtype=dtype, **more)
    zero = np.equal(total, 0.0)
    require(t, np.logical_not(np.any(zero)), "weights that do not sum to zero")
    product = np.multiply(x, weight, dtype=dtype)
    made = np.true_divide(fold(np.add, "reduce", product, axis=axis, **more), total)
    if not returned:
        return made
    if total.shape != made.shape:
        total = t.copy(t.expand(array(t, total), made.shape), "C")
    return made, total
