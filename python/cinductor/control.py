"""Loops and branches as functions, for those who want them explicit.

They are ordinary Python: in NumPy they run as written, and in a compiled function capture makes of
them what it makes of the same statements (a `for`, `while` or `if` of the graph). State is anything
that a local name may hold; several values travel as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .user import said, wrong

State = TypeVar("State")
INTEGERS = (int, np.integer, np.ndarray)


def fori_loop(lower: int, upper: int, body: Callable[[int, State], State], init: State) -> State:
    """The state after `state = body(i, state)` for each i in range(lower, upper).

    As JAX's `lax.fori_loop`, but the state may change its dtype or shape from trip to trip where
    Python allows it, and arrays in it may be written in place. Raises TypeError for what is no int
    or function, and what body raises.
    """
    if not isinstance(lower, INTEGERS):
        raise TypeError(wrong("fori_loop", "lower", lower, "an int"))
    if not isinstance(upper, INTEGERS):
        raise TypeError(wrong("fori_loop", "upper", upper, "an int"))
    if not callable(body):
        raise TypeError(wrong("fori_loop", "body", body, "a function of i and the state"))
    state = init
    for i in range(lower, upper):
        state = body(i, state)
    return state


def while_loop(cond: Callable[[State], Any], body: Callable[[State], State], init: State) -> State:
    """The state after `state = body(state)` for as long as cond(state) is true.

    Raises TypeError for what is no function, what cond and body raise, and ValueError where cond's
    result is an array of several elements.
    """
    if not callable(cond):
        raise TypeError(wrong("while_loop", "cond", cond, "a function of the state"))
    if not callable(body):
        raise TypeError(wrong("while_loop", "body", body, "a function of the state"))
    state = init
    while cond(state):
        state = body(state)
    return state


def cond(
    pred: Any,
    true_fn: Callable[..., State],
    false_fn: Callable[..., State],
    *operands: Any,
) -> State:
    """true_fn(*operands) if pred is true, else false_fn(*operands); only that one is called.

    Raises TypeError for what is no function, what the function called raises, and ValueError where
    pred is an array of several elements.
    """
    if not callable(true_fn):
        raise TypeError(wrong("cond", "true_fn", true_fn, "a function of the operands"))
    if not callable(false_fn):
        raise TypeError(wrong("cond", "false_fn", false_fn, "a function of the operands"))
    if pred:
        result = true_fn(*operands)
    else:
        result = false_fn(*operands)
    return result


def scan(
    f: Callable[[State, Any], tuple[State, Any]],
    init: State,
    xs: np.ndarray | None,
    length: int | None = None,
) -> tuple[State, np.ndarray]:
    """The last carry, and the stacked second results, of `carry, y = f(carry, x)` over xs' rows.

    xs: an array (n, …), or None: then f gets None, length times. f's second result: an array or
    number of the same shape and dtype in each trip, y; the stack has shape (n, *y.shape).
    Raises TypeError for arguments of another kind, ValueError when there is nothing to scan (y is
    unknown then), or when length and xs disagree.
    """
    if not callable(f):
        raise TypeError(wrong("scan", "f", f, "a function of the carry and a row"))
    if xs is None:
        if not isinstance(length, INTEGERS):
            raise TypeError(wrong("scan", "length", length, "an int, where xs is None"))
        n = length
    else:
        if not isinstance(xs, np.ndarray) or xs.ndim == 0:
            raise TypeError(wrong("scan", "xs", xs, "an array of at least one axis, or None"))
        n = xs.shape[0]
        if length is not None and length != n:
            raise ValueError(f"scan: length is {length}, xs has {n} rows")
    if n <= 0:
        raise ValueError("scan: no rows, so the shape of the results is unknown")
    pair = f(init, None if xs is None else xs[0])
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"scan: what f returned is {said(pair)}; wanted: (carry, y)")
    carry, y = pair
    first = np.asarray(y)
    ys = np.empty((n, *first.shape), first.dtype)
    ys[0] = first
    for i in range(1, n):
        carry, y = f(carry, None if xs is None else xs[i])
        ys[i] = y
    return carry, ys
