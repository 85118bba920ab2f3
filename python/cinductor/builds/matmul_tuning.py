"""Decides whether a matrix product is computed by cinductor's own kernel or by NumPy's BLAS.

This only applies if numerics allows another order of addition (`close` and `fast`). The smallest products are
computed by cinductor, because a BLAS call costs more than they do. For others both are timed, once per process for
each class of shapes; sizes are rounded down to powers of two. Which is faster depends on the library and on the
number of threads, and element-wise operations around cinductor's product are fused with it.
"""

from __future__ import annotations

import re
import time

import numpy as np

from .. import _core

LITTLE = 2_048  # multiplications; fewer take less time than a BLAS call
MUCH = 1 << 25  # in one matrix of the batch; from here on the kernel that is timed has these sizes, not any
ENOUGH = 1 << 30  # of larger products a part is timed
ALIKE = 1.05  # accepted ratio to BLAS, because fusing with the product saves more than that
RUNS, FEW = 7, 3  # the second for products of MUCH

_known: dict[tuple[object, ...], bool] = {}  # classes of shapes that were timed


def are_faster(
    dtype: str, count: int, rows: int, steps: int, columns: int, left: int, right: int
) -> bool:
    """True if `count` products of rows×steps by steps×columns matrices are faster with cinductor's kernel. dtype:
    "f32" or "f64"; left, right: the factor is transposed in memory.
    """
    work = rows * steps * columns
    if work <= LITTLE:
        return True
    sizes = [max(1, 1 << (size.bit_length() - 1)) for size in (count, rows, steps, columns)]
    while sizes[1] * sizes[2] * sizes[3] > ENOUGH:
        sizes[sizes.index(max(sizes[1:]), 1)] //= 2
    sizes[0] = min(sizes[0], max(1, MUCH // work))
    kind = (dtype, *sizes, left, right)
    if kind not in _known:
        _known[kind] = _is_faster(dtype, sizes, left, right)
    return _known[kind]


def _text(dtype: str, left: int, right: int, sizes: list[int]) -> str:
    """The text of a graph for a batch of products of any size, or of these if they are large."""
    first = ("s0,s2,s1", "[0,2,1]") if left else ("s0,s1,s2", "")
    second = ("s0,s3,s2", "[0,2,1]") if right else ("s0,s2,s3", "")
    lines = [
        "symbols {s0 in [1, inf), s1 in [2, inf), s2 in [2, inf), s3 in [2, inf)}",
        f"graph product(in0: {dtype}[{first[0]}], in1: {dtype}[{second[0]}]) {{",
    ]
    names = ["in0", "in1"]
    for k, (shape, axes) in enumerate((("s0,s1,s2", first[1]), ("s0,s2,s3", second[1]))):
        if axes:
            lines.append(
                f"  %{k}: {dtype}[{shape}] order [0,2,1] = permute(in{k}, axes={axes})"
            )
            names[k] = f"%{k}"
    lines.append(f"  %2: {dtype}[s0,s1,s3] = product({names[0]}, {names[1]})")
    if sizes[1] * sizes[2] * sizes[3] >= MUCH:
        lines = [re.sub(r"\bs(\d)\b", lambda name: str(sizes[int(name[1])]), line) for line in lines[1:]]
    return "\n".join([*lines, "  return %2", "}", ""])


def _is_faster(dtype: str, sizes: list[int], left: int, right: int) -> bool:
    count, rows, steps, columns = sizes
    kind = np.dtype({"f32": "f4", "f64": "f8"}[dtype])
    a = np.full((count, steps, rows) if left else (count, rows, steps), 0.5, kind)
    b = np.full((count, columns, steps) if right else (count, steps, columns), 0.25, kind)
    options = {"numerics": "close", "threads": 0}
    runs = RUNS if rows * steps * columns < MUCH else FEW
    try:
        _, _, ours = _core.compile_text(_text(dtype, left, right, sizes), [a, b], options=options, runs=runs)
    except _core.CinductorError:
        return False
    x = a.transpose(0, 2, 1) if left else a
    y = b.transpose(0, 2, 1) if right else b
    theirs = min(_seconds(x, y) for _ in range(runs))
    return bool(ours <= ALIKE * theirs)


def _seconds(x: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    np.matmul(x, y)
    return time.perf_counter() - start
