"""Ufuncs for which the graph has no operation: NumPy's own ufuncs, called on whole arrays.

Operands are cast before the call to the dtypes of the loop that NumPy would choose, so it is the same loop. If one
call computes several results, they are returned in one flat array and cut from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .surface import (
    NO_OUT,
    PARTS,
    NotCaptured,
    Traced,
    are_axes,
    array,
    as_result,
    careful,
    cast,
    check_out,
    converted,
    function,
    has_dtype,
    in_place,
    into,
    is_out,
    library,
    lying,
    normal_axes,
    normal_axis,
    operand,
    refuse,
    require,
    require_same,
    usually_positive,
)

# --- several results ----------------------------------------------------------------------------


def packed(
    t: Any,
    name: str,
    key: str,
    call: Callable[..., Sequence[Any]],
    xs: Sequence[Any],
    shapes: Sequence[tuple[Any, ...]],
    dtypes: Sequence[np.dtype],
) -> list[Any]:
    """The results of call(*xs), with these shapes and dtypes, all exact in the widest dtype."""
    wide = np.result_type(*dtypes)
    counts = [math.prod(shape) for shape in shapes]

    def fill(*arrays: Any) -> None:
        *given, out = arrays
        at = 0
        for result in call(*given):
            size = np.size(result)
            out[at : at + size] = np.reshape(result, -1)
            at += size

    whole = careful(t, name, key, fill, xs, (sum(counts),), wide)
    results, at = [], 0
    for shape, dtype, count in zip(shapes, dtypes, counts, strict=True):
        part = t.reshape(whole[at : at + count], shape)
        if dtype.kind != "c" and wide.kind == "c":
            part = part.real
        results.append(t.copy(part, "C") if dtype == part.dtype else cast(t, part, dtype, "unsafe"))
        at = at + count
    return results


# --- ufuncs -------------------------------------------------------------------------------------


def weak_type(value: Any) -> Any:
    """A stand-in for an operand when the dtypes of a ufunc are resolved."""
    if type(value) is Traced:
        return type(value.dtype.type(0).item()) if value.kind == "python" else value.dtype
    return type(value) if type(value) in (int, float, complex) else np.asarray(value).dtype


def loop_dtypes(ufunc: Any, args: Sequence[Any], signature: Any) -> tuple[np.dtype, ...]:
    """The dtypes of the loop that NumPy runs for these operands."""
    given = [weak_type(a) for a in args] + [None] * ufunc.nout
    more = {} if signature is None else {"signature": signature}
    found = ufunc.resolve_dtypes(tuple(given), **more)
    for dtype in found:
        refuse(not has_dtype(dtype), f"dtype {dtype}")
    for value, dtype in zip(args, found, strict=False):  # bools are computed as C longs
        is_int = type(value) is Traced and value.kind == "python" and value.dtype.kind in "iu"
        refuse(dtype.kind == "b" and (is_int or type(value) is int), "an int that is to be a bool")
    return found  # type: ignore[no-any-return]


def core_shape(ufunc: Any, xs: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The shape over which a generalized ufunc loops, and the shape of each result."""
    inputs, output = ufunc.signature.replace(" ", "").split("->")
    names = [term.strip("()").split(",") for term in inputs.split("),(")]
    extent: dict[str, Any] = {}
    outer: list[tuple[Any, ...]] = []
    for x, term in zip(xs, names, strict=True):
        core = [n for n in term if n]
        if x.ndim < len(core):
            raise ValueError("core dimensions")
        split = x.ndim - len(core)
        outer.append(tuple(x.shape[:split]))
        for n, size in zip(core, x.shape[split:], strict=True):
            same = extent.setdefault(n, size) == size
            refuse(type(same) is Traced, "sizes that data decide")
            if not same:
                raise ValueError("core dimension")
    made = tuple(extent[n] for n in output.strip("()").split(",") if n)
    refuse(any(type(n) is Traced for shape in outer for n in shape), "a stack of unknown size")
    return np.broadcast_shapes(*outer), made


def ufunc_call(ufunc: Any, position: int, dtypes: tuple[np.dtype, ...]) -> Callable[..., None]:
    """out[...] = ufunc(*operands) by the loop for these dtypes, or one of its results"""

    def call(*arrays: Any) -> None:
        *given, out = arrays
        if ufunc.nout == 1:
            ufunc(*given, out=out, signature=dtypes)
        else:
            out[...] = ufunc(*given, signature=dtypes)[position]

    return call


def called(t: Any, ufunc: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """ufunc(*args, out=, where=, dtype=)"""
    kwargs = dict(kwargs)
    outs, where = kwargs.pop("out", None), kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    refuse(kwargs, "keyword " + ", ".join(kwargs))
    refuse(len(args) != ufunc.nin, "results among the operands")
    outs = outs if is_a(outs, tuple) else (outs,) * ufunc.nout
    refuse(where is not True and any(o is None for o in outs), "where= without out=")
    refuse(len({o is None for o in outs}) > 1, "an out= for one of two results")
    signature = None if dtype is None else (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    dtypes = loop_dtypes(ufunc, args, signature)
    # NumPy casts the arrays: the bits of a power depend on the strides that its exponents have before the cast.
    by_numpy = signature is None and ufunc.signature is None
    xs = [
        a if type(a) is Traced and (a.dtype == d or by_numpy and a.kind == "array") else operand(t, a, d)
        for a, d in zip(args, dtypes, strict=False)
    ]
    if ufunc.signature is None:
        shape = t.broadcast(xs)
    else:
        xs = [array(t, x) for x in xs]
        refuse(any(x.is_view_of_part for x in xs), PARTS)
        shape = sum(core_shape(ufunc, xs), ())
    for out, made in zip(outs, dtypes[ufunc.nin :], strict=True):
        if out is not None:
            check_out(out, shape, made, True)
    key = " ".join(d.char for d in dtypes)
    results = []
    for k, (out, made) in enumerate(zip(outs, dtypes[ufunc.nin :], strict=True)):
        call = ufunc_call(ufunc, k, dtypes)
        parts = (f"ufunc_{ufunc.__name__}", f"{key} {k}", call, xs, shape, made)
        may_fail = ufunc is np.power and made.kind in "iu"
        value = library(t, may_fail)(*parts, elementwise=ufunc.signature is None)
        if where is not True:
            mask = operand(t, where, np.dtype(bool))
            value = t.apply("where", mask, cast(t, value, out.dtype), out)
        results.append(into(t, out, value, True) if out is not None else as_result(t, value))
    return results[0] if ufunc.nout == 1 else tuple(results)


def folded(t: Any, ufunc: Any, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """ufunc.reduce, accumulate or reduceat. The order depends on the operand's memory layout, and
    the parts of a complex number are laid out differently in an operand of a library call."""
    names = ["array", "indices"] if method == "reduceat" else ["array"]
    given = {**dict(zip([*names, "axis", "dtype", "out"], args, strict=False)), **kwargs}
    x, indices = array(t, given.pop("array")), given.pop("indices", None)
    refuse(x.is_view_of_part, PARTS)
    axis, out = given.pop("axis", 0), given.pop("out", None)
    if is_a(out, tuple):
        (out,) = out
    refuse(not are_axes(axis), "an axis that is no int")
    refuse(out is not None and not is_out(out), NO_OUT)
    is_truth = all(loop.endswith("?") for loop in ufunc.types)
    if out is not None and given.get("dtype") is None and not is_truth:
        given["dtype"] = np.promote_types(x.dtype, out.dtype)  # the dtype in which NumPy computes
    loses = given.get("dtype") is not None and np.dtype(given["dtype"]).kind not in "c?"
    refuse(loses and x.dtype.kind == "c", "a cast of complex numbers to real ones, of which NumPy warns")
    if method == "reduce":
        made = as_result(t, reduced(t, ufunc, x, axis, given))
        return made if out is None else into(t, out, converted(t, made, out.dtype))
    dtype = given.pop("dtype", None)
    refuse(given, "keyword " + ", ".join(given))
    refuse(axis is None and x.ndim != 1, "several axes")
    axis = normal_axis(0 if axis is None else axis, x.ndim)
    like = getattr(ufunc, method)(
        *([np.ones(1, x.dtype)] + [[0]] * (indices is not None)), 0, dtype
    )
    refuse(not has_dtype(like.dtype), f"dtype {like.dtype}")
    xs, shape = [x], x.shape
    if method == "reduceat":
        xs.append(in_place(t, indices, np.dtype(np.intp)))
        shape = (*x.shape[:axis], xs[1].shape[0], *x.shape[axis + 1 :])

    def call(*arrays: Any) -> None:
        *operands, result = arrays
        getattr(ufunc, method)(*operands, axis=axis, dtype=dtype, out=result)

    key = f"{method} {axis} {dtype} {x.dtype.char}"
    name = f"ufunc_{ufunc.__name__}"
    call_it = library(t, method == "reduceat")  # its indices may be out of range
    made = call_it(name, key, call, xs, shape, like.dtype, elementwise=method == "accumulate")
    if method == "reduceat":  # the strides of its axis say nothing
        first = x[(*(slice(None),) * axis, slice(0, 1))]
        made = lying(t, made, "K", t.apply("logical_not", t.expand(first, shape)))
    made = as_result(t, made)
    return made if out is None else into(t, out, converted(t, made, out.dtype))


def reduced(t: Any, ufunc: Any, x: Any, axis: Any, given: dict[str, Any]) -> Any:
    """ufunc.reduce(x, axis, dtype=, keepdims=, initial=, where=)."""
    dtype, keepdims = given.pop("dtype", None), bool(given.pop("keepdims", False))
    more = {"initial": given.pop("initial")} if "initial" in given else {}
    mask = given.pop("where", True)
    refuse(given, "keyword " + ", ".join(given))
    refuse(type(more.get("initial")) is Traced, "initial= of data")
    axes = tuple(normal_axes(axis, x.ndim))
    like = ufunc.reduce(np.ones(1, x.dtype), 0, dtype, **more)
    refuse(not has_dtype(like.dtype), f"dtype {like.dtype}")
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    xs = [x] if mask is True else [x, in_place(t, mask, np.dtype(bool))]
    if mask is not True:
        refuse(xs[1].ndim > x.ndim, "where= with more axes")
        wide = t.broadcast(xs)
        for k in range(x.ndim):
            require_same(t, wide[k], x.shape[k])
    if ufunc.identity is None and "initial" not in more:
        refuse(mask is not True, "where= without initial=")
        for k in axes:
            require(t, usually_positive(t, x.shape[k]), "a fold of nothing")

    def call(*arrays: Any) -> None:
        array, *masks, result = arrays
        where = {"where": masks[0]} if masks else {}
        # The order of floating-point additions is that of a new result.
        result[...] = ufunc.reduce(array, axes, dtype, None, True, **more, **where)

    key = f"reduce {axes} {dtype} {more} {len(xs)} {x.dtype.char}"
    made = t.extern(f"ufunc_{ufunc.__name__}", key, call, xs, kept, like.dtype, elementwise=True)
    return made if keepdims else made[tuple(0 if k in axes else slice(None) for k in range(x.ndim))]


def outer(t: Any, ufunc: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """ufunc.outer"""
    a, b = (array(t, v) for v in args)
    return called(t, ufunc, [t.reshape(a, (*a.shape, *(1,) * b.ndim)), b], kwargs)


def overrides(cls: type) -> bool:
    """True if a class, such as a subclass of ndarray, overrides ufuncs."""
    if cls is Traced or cls is np.ndarray or issubclass(cls, np.generic):
        return False
    return hasattr(cls, "__array_ufunc__")


@function("ufunc")
def library_ufunc(
    t: Any, ufunc: Any, method: str, args: Sequence[Any], kwargs: dict[str, Any] | None
) -> Any:
    """Any method of a ufunc; NotCaptured if only NumPy can interpret the call."""
    refuse(ufunc.nin + ufunc.nout > 8 or type(ufunc) is not np.ufunc, "such a ufunc")
    overriding = next((type(a).__name__ for a in args if overrides(type(a))), None)
    refuse(overriding is not None, f"{overriding} has ufuncs of its own")
    try:
        if method == "__call__":
            return called(t, ufunc, args, kwargs or {})
        if method == "outer":
            return outer(t, ufunc, args, kwargs or {})
        refuse(method not in ("reduce", "accumulate", "reduceat"), f"the method {method}")
        return folded(t, ufunc, method, args, kwargs or {})
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise NotCaptured(str(error)) from error
