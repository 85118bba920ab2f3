"""Loops and branches as functions, for code that wants them explicit.

They are ordinary Python. In NumPy they run as written; in a compiled function they are captured like the
corresponding statements (a `for`, `while` or `if` of the graph). The state is any value of a local name; several
values are passed as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..base.user_frame import said, wrong

State = TypeVar("State")
INTEGERS = (int, np.integer, np.ndarray)


def fori_loop(lower: int, upper: int, body: Callable[[int, State], State], init: State) -> State:
    """Return the state after `state = body(i, state)` for each i in range(lower, upper).

    Like JAX's `lax.fori_loop`, except that the state may change its dtype or shape between iterations where Python allows it, and its
    arrays may be written in place.

    Parameters
    ----------
    lower, upper : int
        The range.
    body : callable
        Takes i and the state, returns the next state.
    init : object
        The first state: anything that a local name may have; several values as a tuple.

    Returns
    -------
    object
        The last state.

    Raises
    ------
    TypeError
        For arguments of other types.
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
    """Return the state after `state = body(state)` while cond(state) is true.

    Parameters
    ----------
    cond, body : callable
        Take the state. cond returns a bool, body the next state.
    init : object
        The first state.

    Returns
    -------
    object
        The last state.

    Raises
    ------
    TypeError
        If cond or body is not callable.
    ValueError
        If cond returns an array of several elements.
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
    r"""Call true_fn with the operands if pred is true, else false_fn.

    Parameters
    ----------
    pred : bool
        The condition.
    true_fn, false_fn : callable
        Take the operands. Only one is called.
    \*operands
        Its arguments.

    Returns
    -------
    object
        The result of the function that was called.

    Raises
    ------
    TypeError
        If true_fn or false_fn is not callable.
    ValueError
        If pred is an array of several elements.
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
    """Run `carry, y = f(carry, x)` over the rows of xs.

    Parameters
    ----------
    f : callable
        Takes the carry and a row, returns the next carry and y: an array or number of the same shape and dtype each time.
    init : object
        The first carry.
    xs : ndarray of shape (n, ...), or None
        None: f gets None, length times.
    length : int, optional
        The number of iterations, if xs is None.

    Returns
    -------
    carry : object
        The last carry.
    ys : ndarray of shape (n, ...)
        The stacked y.

    Raises
    ------
    TypeError, ValueError
        For arguments of other types; if there are no rows (the shape of y is unknown), or length and xs disagree.
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
