"""Loops and branches as functions, for those who want them explicit.

They are ordinary Python: in NumPy they run as written, and in a compiled function capture makes of
them what it makes of the same statements (a `for`, `while` or `if` of the graph). State is anything
that a local name may hold; several values travel as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

State = TypeVar("State")


def fori_loop(lower: int, upper: int, body: Callable[[int, State], State], init: State) -> State:
    """The state after `state = body(i, state)` for each i in range(lower, upper).

    As JAX's `lax.fori_loop`, but the state may change its dtype or shape from trip to trip where
    Python allows it, and arrays in it may be written in place. Raises what body raises.
    """
    state = init
    for i in range(lower, upper):
        state = body(i, state)
    return state


def while_loop(cond: Callable[[State], Any], body: Callable[[State], State], init: State) -> State:
    """The state after `state = body(state)` for as long as cond(state) is true.

    Raises what cond and body raise; ValueError where cond's result is an array of several elements.
    """
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

    Raises what the function called raises; ValueError where pred is an array of several elements.
    """
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
    Raises ValueError when there is nothing to scan (y is unknown then), or when length and xs
    disagree.
    """
    n = length if xs is None else len(xs)
    if n is None or (length is not None and length != n):
        raise ValueError(f"scan: length is {length}, xs has {n} rows")
    if n == 0:
        raise ValueError("scan: no rows, so the shape of the results is unknown")
    carry, y = f(init, None if xs is None else xs[0])
    first = np.asarray(y)
    ys = np.empty((n, *first.shape), first.dtype)
    ys[0] = first
    for i in range(1, n):
        carry, y = f(carry, None if xs is None else xs[i])
        ys[i] = y
    return carry, ys
