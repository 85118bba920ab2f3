"""`python -m cinductor bench`: a function compiled, in NumPy and by other compilers, with spreads and differences."""

from __future__ import annotations

import statistics
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..base.records import NamedTuple

LEAST, MOST = 5, 1000  # calls that are timed
OTHERS = ("numba", "jax", "torch")


class Times(NamedTuple):
    """Timed calls, in seconds. Each call gets new arguments, whose making takes no part."""

    first: float
    calls: list[float]

    def line(self, name: str) -> str:
        """One row of the table."""
        low, middle, high = min(self.calls), statistics.median(self.calls), max(self.calls)
        return (
            f"{name:10} {1e3 * middle:10.3f} ms   from {1e3 * low:.3f} to {1e3 * high:.3f} in {len(self.calls)} calls,"
            f" first call {1e3 * self.first:.1f} ms"
        )


def timed(call: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], budget: float) -> Times:
    """Time calls for about `budget` seconds."""

    def once() -> float:
        made = arguments()
        began = time.perf_counter()
        result = call(*made)
        wait(result)
        return time.perf_counter() - began

    calls: list[float] = []
    first, until = once(), time.perf_counter() + budget
    while len(calls) < LEAST or (time.perf_counter() < until and len(calls) < MOST):
        calls.append(once())
    return Times(first, calls)


def wait(result: Any) -> None:
    """Arrays of JAX are computed after the call."""
    for leaf in leaves(result):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()


def leaves(value: Any) -> Iterator[Any]:
    """The values inside of containers, one by one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def difference(got: Any, want: Any) -> str:
    """In what two results differ: "" for equal bits, the largest distance in ULP, or what else is different."""
    ours, theirs = list(leaves(got)), list(leaves(want))
    if len(ours) != len(theirs):
        return f"{len(ours)} values instead of {len(theirs)}"
    worst = 0.0
    for a, b in zip(ours, theirs):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{list(x.shape)} instead of {y.dtype}{list(y.shape)}"
        if x.dtype.kind in "fc":
            worst = max(worst, ulp(x, y))
        elif not np.array_equal(x, y):
            return f"other values of {x.dtype}"
    return f"the largest difference is {worst:.3g} ULP" if worst else ""


def ulp(x: Any, y: Any) -> float:
    """The largest distance of floats in units of the last place; inf where one is NaN, or infinite, and the other is not."""
    if x.dtype.kind == "c":
        return max(ulp(x.real, y.real), ulp(x.imag, y.imag))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if np.all(same):
        return 0.0
    with np.errstate(all="ignore"):
        steps = np.abs(x.astype("f8") - y.astype("f8")) / np.spacing(np.maximum(np.abs(x), np.abs(y))).astype("f8")
    steps = np.where(same, 0.0, np.where(np.isfinite(steps), steps, np.inf))
    return float(steps.max())


def other(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as another compiler has it. Raises ImportError where that is not installed."""
    if name == "numba":
        import numba  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return numba.njit(fn)  # type: ignore[no-any-return]
    if name == "torch":
        import torch  # type: ignore[import-not-found,unused-ignore]

        return torch.compile(fn)  # type: ignore[no-any-return]
    import jax  # type: ignore[import-not-found,import-untyped,unused-ignore]

    jax.config.update("jax_enable_x64", True)
    space = {key: jax.numpy if value is np else value for key, value in fn.__globals__.items()}
    return jax.jit(types.FunctionType(fn.__code__, space, fn.__name__, fn.__defaults__, fn.__closure__))  # type: ignore[no-any-return]


def compared(
    names: list[str], fn: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], budget: float
) -> Iterator[str]:
    """A line for each of the others, which may be absent or refuse the function."""
    for name in names:
        try:
            yield timed(other(name, fn), arguments, budget).line(name)
        except ImportError:
            yield f"{name:10} is not installed"
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            yield f"{name:10} refuses it: {type(error).__name__}: {lines[0][:160]}"
