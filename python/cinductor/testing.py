"""Helpers for tests: run a function compiled and plain on the same inputs and compare, to the last bit where this is
promised.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import compile
from .errors import AccuracyError


def assert_same(actual: Any, expected: Any, ulp: int = 0, where: str = "result") -> None:
    """Compare two results: type, dtype, shape, strides of axes with several elements, structure and values.

    Parameters
    ----------
    actual, expected : object
        Arrays, numbers, or containers of them. A NaN equals any NaN.
    ulp : int
        The allowed difference of floating-point values; 0: every bit counts, also the sign of a zero.
    where : str
        The name of the values in the message.

    Raises
    ------
    AccuracyError
        The two differ; the message names the first difference.
    """
    if type(actual) is not type(expected):
        raise AccuracyError(f"{where}: type {type(actual)} instead of {type(expected)}")
    if isinstance(expected, tuple | list):
        if len(actual) != len(expected):
            raise AccuracyError(f"{where}: length {len(actual)} instead of {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, b, ulp, f"{where}[{i}]")
    elif isinstance(expected, dict):
        if list(actual) != list(expected):
            raise AccuracyError(f"{where}: keys {list(actual)} instead of {list(expected)}")
        for key in expected:
            assert_same(actual[key], expected[key], ulp, f"{where}[{key!r}]")
    elif isinstance(expected, np.ndarray | np.generic):
        assert_array(actual, expected, ulp, where)
    elif hasattr(expected, "__dataclass_fields__"):
        assert_same(vars(actual), vars(expected), ulp, where)
    elif isinstance(expected, float | complex):
        assert_array(np.asarray(actual), np.asarray(expected), ulp, where)
    elif actual != expected:
        raise AccuracyError(f"{where}: {actual!r} instead of {expected!r}")


def assert_array(actual: Any, expected: Any, ulp: int, where: str) -> None:
    """Compare two arrays or NumPy scalars.

    Parameters
    ----------
    actual, expected : ndarray or numpy.generic
    ulp : int
        The allowed difference of floating-point values.
    where : str
        The name of the values in the message.

    Raises
    ------
    AccuracyError
        The two differ.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        raise AccuracyError(
            f"{where}: {actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
        )
    if type(expected) is np.ndarray and expected.size:
        steps = [[s for s, n in zip(v.strides, v.shape, strict=True) if n > 1] for v in (actual, expected)]
        if steps[0] != steps[1]:
            raise AccuracyError(f"{where}: strides {actual.strides} instead of {expected.strides}")
    a, b = np.atleast_1d(actual), np.atleast_1d(expected)
    for part in ("real", "imag") if b.dtype.kind == "c" else ("real",):
        x, y = getattr(a, part), getattr(b, part)
        bad = x != y
        if y.dtype.kind == "f":
            bad &= ~(np.isnan(x) & np.isnan(y))
            bad |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y)) & (ulp == 0)
            if ulp:
                with np.errstate(all="ignore"):
                    near = np.abs(x - y) <= ulp * np.spacing(np.maximum(np.abs(x), np.abs(y)))
                bad &= ~(near & np.isfinite(x) & np.isfinite(y))
        if bad.any():
            i = tuple(int(n[0]) for n in np.nonzero(bad))
            raise AccuracyError(
                f"{where}: {int(bad.sum())} of {bad.size} values differ; at {i} "
                f"{x[i]!r} instead of {y[i]!r}"
            )


def check(fn: Callable[..., Any], *args: Any, ulp: int = 0, calls: int = 2, **settings: Any) -> Any:
    """Run a function plain and compiled on copies of the arguments, and compare results, exceptions and arguments.

    Parameters
    ----------
    fn : callable
    *args : object
        The arguments of each call, copied for it.
    ulp : int
        The allowed difference of floating-point values.
    calls : int
        The number of calls.
    **settings : object
        Those of `compile`, or a compiled function as `compiled=`.

    Returns
    -------
    callable
        The compiled function.

    Raises
    ------
    AccuracyError
        A result, an exception or an argument after a call differs.
    """
    compiled = settings.pop("compiled", None) or compile(fn, **{"mode": "now", **settings})
    for number in range(calls):
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        expected, expected_error = outcome(fn, theirs)
        actual, actual_error = outcome(compiled, mine)
        where = f"call {number + 1}"
        if type(actual_error) is not type(expected_error):
            raise AccuracyError(
                f"{where}: {actual_error!r} instead of {expected_error!r}"
            ) from actual_error
        if str(actual_error) != str(expected_error):
            raise AccuracyError(f"{where}: {actual_error} instead of {expected_error}")
        assert_same(actual, expected, ulp, where)
        assert_same(mine, theirs, ulp, where + ", arguments")
    return compiled


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Call a function without warnings.

    Parameters
    ----------
    fn : callable
    args : tuple
        Its arguments.

    Returns
    -------
    tuple
        The result and None, or None and the exception that the call raised.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args), None
        except Exception as error:
            return None, error
