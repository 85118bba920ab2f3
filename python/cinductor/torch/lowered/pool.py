"""Averages and maxima over windows: pooling with static kernel sizes."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import torch

from ..emit import Emitter
from ..promote import computation_dtype
from ..sizes import is_always
from ..values import GraphValue
from . import argument, meta
from .create import padded
from .index import inside
from .point import towards_zero

STEP = {"sum": "add", "max": "maximum"}
MAX_ELEMENTS = 16  # of a window along an axis that are combined one by one


def average(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """avg_pool: windows that may reach beyond the array are padded with zeros; each sum is divided by the window's size.

    The size counts the padding or not, but never what lies beyond it (with ceil_mode).
    """
    out, x, rank = meta(node), emitter.env[node.args[0]], _rank(node)
    steps = [_each(node, name, rank) for name in ("kernel_size", "stride", "padding")]
    first, counts = len(x.sizes) - rank, []
    total = emitter.cast(x, computation_dtype(out.dtype) if out.dtype.is_floating_point else out.dtype)
    for k, (kernel, stride, padding) in enumerate(zip(*steps, strict=True)):
        axis, count = first + k, out.size(first + k)
        counts.append(_count(emitter, node, x.sizes[axis], count, kernel, stride, padding))
        total = _reduced(emitter, "sum", framed(emitter, node, total, axis, count, kernel, stride, padding), axis, count, kernel, stride)
    divisor = argument(node, "divisor_override")
    by = emitter.constant(divisor, torch.int64) if divisor else _product(emitter, counts)
    return emitter.cast(_divided(emitter, total, emitter.cast(by, total.dtype)), out.dtype)


def adaptive(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """Averages over windows that cover the array; their sizes differ by at most one along an axis."""
    out, x = meta(node), emitter.env[node.args[0]]
    first, counts = len(x.sizes) - len(node.args[1]), []
    total = emitter.cast(x, computation_dtype(out.dtype))
    for axis in range(first, len(x.sizes)):
        size, wanted = x.sizes[axis], out.size(axis)
        if is_always(size % wanted == 0):
            shape = (*total.sizes[:axis], wanted, size // wanted, *total.sizes[axis + 1 :])
            total, count = emitter.reshape(total, shape), emitter.value(size // wanted, torch.int64)
        else:
            total, count = _masked(emitter, total, axis, size, wanted)
        total = emitter.fold("sum", total, [axis + 1], False)
        counts.append(count)
    return emitter.cast(_divided(emitter, total, emitter.cast(_product(emitter, counts), total.dtype)), out.dtype)


def gradient_of_average(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """avg_pool's: each quotient of a gradient and its window's size is added at all elements of the window."""
    out, rank = meta(node), _rank(node)
    g = emitter.value(node.args[0], computation_dtype(out.dtype))
    steps = [_each(node, name, rank) for name in ("kernel_size", "stride", "padding")]
    first, divisor = out.dim() - rank, argument(node, "divisor_override")
    rows = list(enumerate(zip(*steps, strict=True), first))
    counts = [_count(emitter, node, out.size(axis), g.sizes[axis], kernel, stride, padding) for axis, (kernel, stride, padding) in rows]
    by = emitter.constant(divisor, torch.int64) if divisor else _product(emitter, counts)
    g = _divided(emitter, g, emitter.cast(by, g.dtype))
    for axis, (kernel, stride, padding) in rows:
        g = _spread(emitter, g, axis, out.size(axis), kernel, stride, padding)
    return emitter.cast(g, out.dtype)


def _spread(emitter: Emitter, g: GraphValue, axis: int, size: Any, kernel: int, stride: int, padding: int) -> GraphValue:
    """Each element of an axis added at all places of its window in an axis of that size."""
    before, after = g.sizes[:axis], g.sizes[axis + 1 :]
    ones = (1,) * len(after)
    step = emitter.reshape(emitter.iota(stride), (stride, *ones))
    g = emitter.reshape(g, (*before, g.sizes[axis], 1, *after))
    first = min(kernel, stride)  # in each step as many places as the windows that begin there do not share
    inside = emitter.apply("less", [step, emitter.constant(first, torch.int64)])
    g = emitter.apply("where", [inside, g, emitter.constant(0, g.dtype)])
    g = emitter.reshape(g, (*before, g.sizes[axis] * stride, *after))
    parts = -(-kernel // stride)
    rest = kernel - (parts - 1) * stride
    made = None
    for k in range(parts):  # the window's k-th run of `stride` places; the last one is shorter
        part = g
        if k == parts - 1 and k and rest < stride:
            place = emitter.reshape(emitter.apply("remainder", [emitter.iota(g.sizes[axis]), emitter.constant(stride, torch.int64)]), (g.sizes[axis], *ones))
            part = emitter.apply("where", [emitter.apply("less", [place, emitter.constant(rest, torch.int64)]), g, emitter.constant(0, g.dtype)])
        start = k * stride - padding
        widths = [0] * len(g.sizes), [0] * len(g.sizes)
        widths[0][axis], widths[1][axis] = start, size - start - g.sizes[axis]
        part = padded(emitter, part, *widths)
        made = part if made is None else emitter.apply("add", [made, part])
    return made  # type: ignore[return-value]


def gradient_of_adaptive(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """adaptive_avg_pool's: each element is in few windows."""
    out, g = meta(node), emitter.value(node.args[0], computation_dtype(meta(node).dtype))
    for axis in range(out.dim() - _rank(node), out.dim()):
        size, wanted = out.size(axis), g.sizes[axis]
        if is_always(size % wanted == 0):
            count = emitter.value(size // wanted, g.dtype)
            shape = (*g.sizes[: axis + 1], 1, *g.sizes[axis + 1 :])
            g = emitter.reshape(emitter.apply("divide", [g, count]), shape)
            g = emitter.expand(g, [size // wanted if k == axis + 1 else s for k, s in enumerate(shape)])
            g = emitter.reshape(g, (*g.sizes[:axis], size, *g.sizes[axis + 2 :]))
        else:
            inside, count = _covered(emitter, size, wanted)
            ones = (1,) * (len(g.sizes) - axis - 1)
            g = emitter.apply("divide", [g, emitter.cast(emitter.reshape(count, (wanted, *ones)), g.dtype)])
            value = emitter.reshape(g, (*g.sizes[: axis + 1], 1, *g.sizes[axis + 1 :]))
            value = emitter.apply("where", [emitter.reshape(inside, (wanted, size, *ones)), value, emitter.constant(0, g.dtype)])
            g = emitter.fold("sum", value, [axis], False)
    return emitter.cast(g, out.dtype)


def _covered(emitter: Emitter, size: Any, wanted: Any) -> tuple[GraphValue, GraphValue]:
    """Which places of an axis each of the windows covers, and how many."""

    def below(more: Any) -> GraphValue:
        """The quotient (size * k + more) // wanted of the window with number k."""
        scaled = emitter.apply("multiply", [emitter.iota(wanted), emitter.value(size, torch.int64)])
        return emitter.apply("floor_divide", [emitter.apply("add", [scaled, emitter.value(more, torch.int64)]), emitter.value(wanted, torch.int64)])

    start, end = below(0), below(size + wanted - 1)
    place = emitter.iota(size)
    column = [emitter.reshape(v, (wanted, 1)) for v in (start, end)]
    inside = emitter.apply("logical_and", [emitter.apply("less_equal", [column[0], place]), emitter.apply("less", [place, column[1]])])
    return inside, emitter.apply("subtract", [end, start])


def _masked(emitter: Emitter, x: GraphValue, axis: int, size: Any, wanted: Any) -> tuple[GraphValue, GraphValue]:
    """For each window a copy of the axis with zeros outside of the window; and the number of elements of each window."""
    inside, count = _covered(emitter, size, wanted)
    inside = emitter.reshape(inside, (wanted, size, *(1,) * (len(x.sizes) - axis - 1)))
    value = emitter.reshape(x, (*x.sizes[:axis], 1, *x.sizes[axis:]))
    return emitter.apply("where", [inside, value, emitter.constant(0, x.dtype)]), count


def _each(node: torch.fx.Node, name: str, rank: int) -> list[int]:
    """A number for each axis: of one that is given for all, or the kernel's size where a stride is missing."""
    given = argument(node, name)
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    given = given or _each(node, "kernel_size", rank)
    return given * rank if len(given) == 1 else given


def framed(
    emitter: Emitter, node: torch.fx.Node, x: GraphValue, axis: int, count: Any, reach: int, stride: int, padding: int, outside: Any = 0
) -> GraphValue:
    """The array padded with the value `outside`: `padding` elements before it, and after it as many as the windows reach.

    For a size that is not known, the most that windows of any size reach: whether they do depends on the remainder of the size.
    """
    beyond = (count - 1) * stride + reach - padding - x.sizes[axis]
    beyond = max(beyond, 0) if isinstance(beyond, int) else padding + (stride - 1 if argument(node, "ceil_mode") else 0)
    if not padding and not beyond:
        return x
    rank = range(len(x.sizes))
    return padded(emitter, x, [padding if k == axis else 0 for k in rank], [beyond if k == axis else 0 for k in rank], outside)


def windows(emitter: Emitter, x: GraphValue, axis: int, count: Any, reach: Any, stride: int, dilation: int = 1) -> GraphValue:
    """The windows along an axis, their elements in a new last axis: each `dilation`-th of the `reach` elements."""
    whole = [s - reach + 1 if k == axis else s for k, s in enumerate(x.sizes)] + [reach]
    made = emitter.along(emitter.put("window", [x], x.dtype, whole, axes=[axis]), axis, 0, stride, count)
    return made if dilation == 1 else emitter.along(made, len(whole) - 1, 0, dilation, (reach - 1) // dilation + 1)


def elements(emitter: Emitter, x: GraphValue, axis: int, count: Any, kernel: int, stride: int, dilation: int = 1) -> list[GraphValue]:
    """The first element of each window along an axis, the second of each, and so on."""
    return [emitter.along(x, axis, k * dilation, stride, count) for k in range(kernel)]


def _reduced(emitter: Emitter, op: str, x: GraphValue, axis: int, count: Any, kernel: int, stride: int) -> GraphValue:
    """The sum or maximum of each window along an axis. Few elements are combined one by one, for many windows at a time."""
    if kernel > MAX_ELEMENTS:
        return emitter.fold(op, windows(emitter, x, axis, count, kernel, stride), [len(x.sizes)], False)
    return functools.reduce(lambda a, b: emitter.apply(STEP[op], [a, b]), elements(emitter, x, axis, count, kernel, stride))


def maximum(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue | None]:
    """max_pool: the largest element of each window, and its place in the array if the graph reads it. NaN is the largest."""
    x, rank = emitter.env[node.args[0]], _rank(node)
    out, first = meta(node)[0], len(x.sizes) - rank
    steps = [_each(node, name, rank) for name in ("kernel_size", "stride", "padding", "dilation")]
    value, place = x, None
    if any(user.args[1] == 1 for user in node.users):
        sizes = x.sizes[first:]
        place = emitter.expand(emitter.reshape(emitter.iota(math.prod(sizes)), sizes), x.sizes)
    for k in reversed(range(rank)):
        (kernel, stride, padding, dilation), count = (row[k] for row in steps), out.size(first + k)
        reach = (kernel - 1) * dilation + 1
        value = framed(emitter, node, value, first + k, count, reach, stride, padding, _least(x.dtype))
        if place is not None:
            place = framed(emitter, node, place, first + k, count, reach, stride, padding, -1)
        value, place = _largest(emitter, value, place, first + k, count, kernel, stride, dilation)
    return [value, place]


def _largest(
    emitter: Emitter, value: GraphValue, place: GraphValue | None, axis: int, count: Any, kernel: int, stride: int, dilation: int
) -> tuple[GraphValue, GraphValue | None]:
    """The largest of each window along an axis, and its place: of the first one; of the last NaN. A place of -1 is outside."""
    if place is None and dilation == 1:
        return _reduced(emitter, "max", value, axis, count, kernel, stride), None
    largest, *others = elements(emitter, value, axis, count, kernel, stride, dilation)
    if place is None:
        return functools.reduce(lambda a, b: emitter.apply("maximum", [a, b]), others, largest), None
    at, *places = elements(emitter, place, axis, count, kernel, stride, dilation)
    for other, there in zip(others, places, strict=True):
        is_first = emitter.apply("less", [at, emitter.constant(0, torch.int64)])
        is_next = emitter.apply("logical_or", [emitter.apply("greater", [other, largest]), emitter.apply("isnan", [other])])
        is_next = emitter.apply("logical_or", [is_next, is_first])
        at, largest = emitter.apply("where", [is_next, there, at]), emitter.apply("maximum", [largest, other])
    return largest, at


def gradient_of_maximum(emitter: Emitter, node: torch.fx.Node) -> GraphValue:
    """max_pool's: each element is added at the place from which the maximum came."""
    out, indices, rank = meta(node), emitter.env[argument(node, "indices")], _rank(node)
    g = emitter.value(node.args[0], computation_dtype(out.dtype))
    kernel, stride, padding, dilation = (_each(node, name, rank) for name in ("kernel_size", "stride", "padding", "dilation"))
    windows_of_place = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    if set(dilation) != {1} or math.prod(windows_of_place) > MAX_ELEMENTS:
        return emitter.cast(_scattered(emitter, g, indices, tuple(out.size()), rank), out.dtype)
    sizes = out.size()[-rank:]
    place = emitter.reshape(emitter.iota(math.prod(sizes)), sizes)
    terms = []
    for windows_before in itertools.product(*(reversed(range(n)) for n in windows_of_place)):
        value, source = g, indices
        for axis, (before, size, step, pad) in enumerate(zip(windows_before, sizes, stride, padding, strict=True), out.dim() - rank):
            value = _of_window(emitter, value, axis, size, step, before * step - pad, 0)
            source = _of_window(emitter, source, axis, size, step, before * step - pad, -1)
        terms.append(emitter.apply("where", [emitter.apply("equal", [source, place]), value, emitter.constant(0, g.dtype)]))
    return emitter.cast(functools.reduce(lambda a, b: emitter.apply("add", [a, b]), terms), out.dtype)


def _of_window(emitter: Emitter, x: GraphValue, axis: int, size: Any, stride: int, start: int, outside: Any) -> GraphValue:
    """For each place along an axis the element of one window that the place is in: the first one's places begin at `start`."""
    count, rank = x.sizes[axis], range(len(x.sizes))
    x = emitter.expand(emitter.reshape(x, (*x.sizes[: axis + 1], 1, *x.sizes[axis + 1 :])), (*x.sizes[: axis + 1], stride, *x.sizes[axis + 1 :]))
    x = emitter.reshape(x, (*x.sizes[:axis], count * stride, *x.sizes[axis + 2 :]))
    beyond = size - start - count * stride
    return padded(emitter, x, [start if k == axis else 0 for k in rank], [beyond if k == axis else 0 for k in rank], outside)


def _scattered(emitter: Emitter, g: GraphValue, indices: GraphValue, sizes: tuple[Any, ...], rank: int) -> GraphValue:
    images, pixels, count = math.prod(sizes[:-rank]), math.prod(sizes[-rank:]), math.prod(indices.sizes[-rank:])
    rows = emitter.reshape(emitter.iota(images), (images, 1))
    base = emitter.copy(emitter.expand(emitter.constant(0, g.dtype), (images, pixels)))
    at = inside(emitter, emitter.reshape(indices, (images, count)), pixels)
    made = emitter.put("scatter", [base, base, emitter.reshape(g, (images, count)), rows, at], g.dtype, base.sizes, axes=[0, 1], combine="add")
    return emitter.reshape(made, sizes)


def _least(dtype: torch.dtype) -> Any:
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _count(emitter: Emitter, node: torch.fx.Node, size: Any, count: Any, kernel: int, stride: int, padding: int) -> GraphValue:
    """How many elements each window along an axis counts."""

    def number(x: Any) -> GraphValue:
        return emitter.value(x, torch.int64)

    start = emitter.apply("subtract", [emitter.apply("multiply", [emitter.iota(count), number(stride)]), number(padding)])
    end = emitter.apply("minimum", [emitter.apply("add", [start, number(kernel)]), number(size + padding)])
    if not argument(node, "count_include_pad"):
        start, end = emitter.apply("maximum", [start, number(0)]), emitter.apply("minimum", [end, number(size)])
    return emitter.apply("subtract", [end, start])


def _product(emitter: Emitter, counts: list[GraphValue]) -> GraphValue:
    """The sizes of windows from the counts along each axis, which are arrays or numbers."""
    made = counts[0]
    for other in counts[1:]:
        made = emitter.apply("multiply", [emitter.reshape(made, (*made.sizes, 1)) if made.sizes else made, other])
    return made


def _divided(emitter: Emitter, total: GraphValue, by: GraphValue) -> GraphValue:
    if total.dtype.is_floating_point:
        return emitter.apply("divide", [total, by])
    return towards_zero(emitter, total, by, emitter.apply("floor_divide", [total, by]))


def _rank(node: torch.fx.Node) -> int:
    """The number of pooled axes."""
    return 3 if "3d" in str(node.target) else 2
