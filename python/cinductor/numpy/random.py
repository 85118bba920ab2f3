"""Draws from a Generator: library calls in program order.

The generator is not part of the program: each call finds its own by its address, which the program
gets as a number. When a check fails, generators go back to where they were before the call, for then
the function itself draws.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .index import INT64
from .shape import sizes
from .surface import Traced, array, refuse

FLOAT64 = np.dtype(np.float64)
DRAWS: dict[str, Callable[..., Any]] = {}


class Draw:
    """A bound method of a Generator, read but not called yet."""

    __slots__ = ("scope", "generator", "name")

    def __init__(self, scope: Any, generator: Any, name: str) -> None:
        self.scope, self.generator, self.name = scope, generator, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.scope.call(self, *args, **kwargs)


def draw(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Enters a handler for the method of its name."""
    DRAWS[handler.__name__] = handler
    return handler


def generator_at(address: Any) -> np.random.Generator:
    """The generator, which the caller of the program keeps alive."""
    return ctypes.cast(int(address), ctypes.py_object).value  # type: ignore[no-any-return]


def library_draw(method: str, fixed: dict[str, Any], has_size: bool) -> Callable[..., None]:
    """out[...] = generator.method(*values, size, **fixed)"""

    def call(address: Any, *rest: Any) -> None:
        *values, out = rest
        given = [v if v.ndim else v[()] for v in values]
        more = {"size": out.shape, **fixed} if has_size else fixed
        out[...] = getattr(generator_at(address), method)(*given, **more)

    return call


def drawn(
    t: Any,
    address: Any,
    method: str,
    values: list[Any],
    size: Any,
    dtype: np.dtype,
    /,
    **fixed: Any,
) -> Any:
    """A draw of that shape; without one it is a number: Python's float, or a NumPy scalar."""
    shape = () if size is None else sizes(size)
    refuse(any(type(n) is int and n < 0 for n in shape), "a negative size")
    key = f"{sorted(fixed.items())} {size is None}"
    call = library_draw(method, fixed, size is not None)
    made = t.extern("draw_" + method, key, call, [address, *values], shape, dtype)
    if size is not None:
        return made
    return t.as_python(made) if dtype == FLOAT64 else t.as_scalar(made)


def number(t: Any, value: Any, dtype: np.dtype) -> Any:
    """A parameter of a distribution that is one number."""
    refuse(not isinstance(value, int | float | np.number | Traced), "parameters that are arrays")
    refuse(type(value) is Traced and value.ndim > 0, "parameters that are arrays")
    if type(value) is Traced:
        refuse(value.dtype.kind not in "biu" and dtype == INT64, "bounds that are floats")
        return t.cast(value, dtype)
    return t.lift(dtype.type(value))


@draw
def random(t: Any, address: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
    """Generator.random"""
    wanted = np.dtype(dtype)
    refuse(out is not None or (size is None and wanted != FLOAT64), "out= or dtype=")
    return drawn(t, address, "random", [], size, wanted, dtype=wanted.type)


@draw
def standard_normal(
    t: Any, address: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
) -> Any:
    """Generator.standard_normal"""
    wanted = np.dtype(dtype)
    refuse(out is not None or (size is None and wanted != FLOAT64), "out= or dtype=")
    return drawn(t, address, "standard_normal", [], size, wanted, dtype=wanted.type)


@draw
def normal(t: Any, address: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Generator.normal"""
    values = [number(t, loc, FLOAT64), number(t, scale, FLOAT64)]
    return drawn(t, address, "normal", values, size, FLOAT64)


@draw
def uniform(t: Any, address: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Generator.uniform"""
    values = [number(t, low, FLOAT64), number(t, high, FLOAT64)]
    return drawn(t, address, "uniform", values, size, FLOAT64)


@draw
def exponential(t: Any, address: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """Generator.exponential"""
    return drawn(t, address, "exponential", [number(t, scale, FLOAT64)], size, FLOAT64)


@draw
def integers(
    t: Any,
    address: Any,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Any:
    """Generator.integers"""
    low, high = (0, low) if high is None else (low, high)
    wanted = np.dtype(dtype)
    refuse(wanted != INT64 or endpoint, "dtype= or endpoint=")
    made = drawn(
        t, address, "integers", [number(t, low, INT64), number(t, high, INT64)], size, INT64
    )
    bounds = [low, high]
    if not all(type(b) is int for b in bounds):
        return made
    # What is drawn lies between the bounds: said once more, for whoever indexes with it.
    inside = t.apply("minimum", t.apply("maximum", made, low), high - 1)
    return inside if size is not None else t.as_scalar(inside)


@draw
def permutation(t: Any, address: Any, x: Any, axis: int = 0) -> Any:
    """Generator.permutation of one axis, or of the numbers below one."""
    if type(x) is Traced and x.ndim == 0 or isinstance(x, int | np.integer):
        x = np.arange(x) if type(x) is not Traced else t.iota((x,), 0)
    given = array(t, x)
    refuse(axis != 0 or given.ndim != 1, "several axes")
    call = library_draw("permutation", {}, False)
    return t.extern("draw_permutation", "", call, [address, given], given.shape, given.dtype)


@draw
def shuffle(t: Any, address: Any, x: Any, axis: int = 0) -> None:
    """Generator.shuffle of one axis."""
    refuse(type(x) is not Traced or x.ndim != 1 or axis != 0, "such an array")

    def call(where: Any, given: Any, out: Any) -> None:
        out[...] = given
        generator_at(where).shuffle(out)

    t.assign(x, t.extern("draw_shuffle", "", call, [address, x], x.shape, x.dtype))
