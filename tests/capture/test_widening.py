"""Tests arrays that grow in each iteration by a rule: one program, with space for the final size, equal to NumPy.

If there is no rule, or the number of iterations is not known, the result must still be right.
"""

import numpy as np
import pytest
from test_open_sizes import agree, captures

import cinductor

SIZES = (9, 0, 1, 2, 3, 12, 40)
FEW = (5, 0, 1, 2, 3, 7, 10)


def appended(x):
    y = np.zeros(0)
    for v in x:
        y = np.append(y, v * 2)
    return y


def rows_appended(x):
    table = np.zeros((1, 3))
    for k in range(len(x)):
        table = np.vstack((table, np.full((2, 3), x[k])))
    return table, table.shape[0]


def in_front(x):
    y = x[:2] * 1.0
    for v in x:
        y = np.concatenate(([v], y, y[-1:]))
    return y


def some_of_them(x):
    y = np.ones(1)
    for v in x:
        if v > 1.0:
            y = np.append(y, v)
    return y


def until_it_is_long(x):
    y = np.zeros(2)
    for v in x:
        y = np.append(y, v)
        if y.sum() > 12.0:
            break
    return y


def with_its_sums(x):
    y, sums = np.ones(1), np.zeros(1)
    for v in x:
        y = np.append(y, v)
        sums = np.append(sums, y.sum())
    return y, sums, y * sums


def in_two_loops(x):
    y = np.zeros(1)
    for v in x[:5]:
        for w in x[:3]:
            y = np.append(y, v * w)
    return y


def while_it_is_short(x):
    y = x[:1] * 1.0
    while y.sum() < 9.0 and y.size < 30:
        y = np.append(y, y.size)
    return y


def shrinks_and_grows(x):
    y = x * 1.0
    for k in range(len(x)):
        y = y[: len(y) // 2] if k % 2 else np.append(y, k)
    return y


def changes_its_type(x):
    y = np.zeros(1, np.int64)
    for v in x:
        y = np.append(y, v)
    return y


def doubled(n, x):
    y = x[:1]
    for k in range(n):
        y = np.concatenate((y, y + k))
    return y


def between(n, x):
    y = x[:2]
    for _ in range(n):
        finer = np.empty(2 * y.size - 1)
        finer[::2] = y
        finer[1::2] = 0.5 * (y[1:] + y[:-1])
        y = finer
    return y


def tripled_and_more(n, x):
    y = x[:1]
    for _ in range(n):
        y = np.concatenate((y, x[:2], y, y * 2))
    return y.sum(), y.size


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [appended, rows_appended, in_front, until_it_is_long, with_its_sums])
def test_one_program_for_any_number_of_iterations(fn, backend):
    compiled = cinductor.compile(fn, dynamic=True, backend=backend)
    for n in SIZES:
        agree(compiled, np.arange(n) * 0.5)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons
    assert any(
        "for captured" in r or "while captured" in r for r in map(str, compiled._cinductor_job.last.regions)
    )


@pytest.mark.parametrize("fn", [doubled, between, tripled_and_more])
def test_one_program_for_any_power(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    for n in FEW if fn is not tripled_and_more else FEW[:-1]:
        agree(compiled, n, np.arange(4) + 0.5)
    assert captures(compiled) == 1, compiled._cinductor_job.reasons


def shorter_in_each_iteration(x, seen, k):
    y = x.copy()
    for i in range(len(x)):
        seen[i] += k
        y = y[1:]
    return 1


@pytest.mark.parametrize("dynamic", [True, None])
def test_a_rule_found_after_iterations_that_were_peeled_off(dynamic):
    """The capacity was computed from the array before the peeled iterations, which was too short."""
    compiled = cinductor.compile(shorter_in_each_iteration, dynamic=dynamic, backend="interp")
    for n in (7, 7, 5, 3, 0, 1):
        agree(compiled, np.arange(n) * 0.5, np.zeros(n, bool), 3)


OTHERS = [some_of_them, in_two_loops, while_it_is_short, shrinks_and_grows, changes_its_type]


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", [*OTHERS, appended, in_front])
def test_right_however_they_grow(fn, dynamic):
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp")
    for n in SIZES:
        agree(compiled, np.arange(n) * 0.5)
