"""Tests lists of numbers whose length is a size: a buffer inside the program, a list for calls and results."""

import numpy as np
import pytest
from test_open_sizes import agree, captures

import cinductor

SIZES = (9, 0, 1, 2, 5, 30)


def ways(coins, amount):
    found = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            found[total] += found[total - coin]
    return np.array(found)


def fibonacci(coins, n):
    f = [1.0, 1.0] + n * [0.0]
    for k in range(2, n + 2):
        f[k] = f[k - 1] + f[k - 2]
    return f[n], f


def counted(coins, n):
    seen = [False] * n
    for k in range(0, n, 2):
        seen[k] = True
    total = 0
    for flag in seen:
        total += flag
    return total, len(seen), seen


def of_an_array(coins, n):
    x = np.arange(n) * 0.5
    held = [0.0] * len(x)
    for k in range(len(x)):
        held[k] = float(x[k]) * 2
    return np.array(held + [1.0])


def is_appended_to(coins, n):
    held = [0] * n
    held.append(3)
    return held


def is_sorted(coins, n):
    held = [1] * n + [0]
    held.sort()
    return held, sum(held), max(held)


def of_lists(coins, n):
    table = [[0] * n for _ in range(3)]
    table[1][0] = 5
    return table


def of_arrays(coins, n):
    held = [np.zeros(2)] * n
    return held


def of_several(coins, n):
    return [1, 2] * n, [None] * n, ["a"] * n


def negative(coins, n):
    return [1] * (n - 4), len([0] * (2 - n))


def in_slices(coins, n):
    held = [1] + [0] * n
    held[0:1] = [5, 6]
    return held, held[1:], held[::-1]


def mixed_items(coins, n):
    return [1.5] + [0] * n, [True] + [0] * n


def too_large(coins, n):
    held = [1] * (n + 1)
    for k in range(n):
        held[k + 1] = held[k] * 1000003
    return held


WHOLE = [ways, fibonacci, counted, of_an_array]
OTHERS = [
    is_appended_to,
    is_sorted,
    of_lists,
    of_arrays,
    of_several,
    negative,
    in_slices,
    mixed_items,
    too_large,
]


@pytest.mark.parametrize("fn", WHOLE)
def test_one_program(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in SIZES:
        agree(compiled, [1, 2, 5], n)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", [*WHOLE, *OTHERS])
def test_right_whatever_is_done_with_them(fn, dynamic):
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp")
    for n in (*SIZES, 7, 9):
        agree(compiled, [1, 2, 5], n)


def after_a_break(x):
    """The list of each iteration is converted to an array, which a loop can only do without reading the list."""
    x[[0, -1]] += 1
    print(end="", flush=True)
    made = None
    for _ in range(len(x)):
        made = np.array([2 * k for k, _ in enumerate(x)])
    return made


def settled_in_between(x):
    """Python evaluates the first operand of an `or` that would otherwise be captured."""
    n = 0
    kept = [x]
    while n < len(x) and kept[0] is x:
        n += 1
        made = np.array([v for v in x if v > -1.5] or [0.0])
        print(end="", flush=True)
    return made


@pytest.mark.usefixtures("pieces_are_compiled")
@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", [after_a_break, settled_in_between])
def test_where_python_runs_in_between(fn, dynamic):
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp")
    for n in (12, 12, 40, 7):
        ours, theirs = np.arange(n) * 1.0, np.arange(n) * 1.0
        np.testing.assert_array_equal(compiled(ours), fn(theirs))
        np.testing.assert_array_equal(ours, theirs)
