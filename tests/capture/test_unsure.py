"""Tests names that only some paths bind: the program computes whether they are bound, and checks it where they are
read.
"""

import numpy as np
import pytest
from test_open_sizes import agree, captures

import cinductor


def first_large(x):
    for i in range(len(x)):
        if x[i] > 0.5:
            found = i
            break
    return found


def last_large(x):
    for i in range(len(x)):
        if x[i] > 0.5:
            found = x[i] * 2
    return found


def by_chains(x):
    if x[0] > 0.5:
        a = x[1]
    if x[1] > 0.5:
        a = x[2]
        b = 3
    elif x[1] > 0.3:
        b = 4
    a += 1
    return a, b


def a_pair(x):
    for i in range(len(x)):
        if x[i] > 0.2:
            if i > 3:
                best = i, x[i]
            else:
                low = x[i]
    return best, low, [best[0] for _ in range(2)]


def in_a_while(x):
    k = 0
    while k < len(x):
        if x[k] > 0.5:
            y = x[k]
        k += 1
    return y * 2


def read_in_later_iterations(x):
    total = 0.0
    for i in range(len(x)):
        if i == 2:
            mark = x[i]
        if i > 4:
            total += mark
    return total


def in_two_loops(x):
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 0.4:
                where = i + j
    return where


def bound_again(x):
    for i in range(len(x)):
        if x[i] > 0.5:
            v = x[i]
    v = x.max()
    if v > 1:
        v = v * 2
    return v


def an_array(x):
    for i in range(len(x)):
        if x[i] > 0.1:
            row = x[:2] * i
    return row


def deleted(x):
    for i in range(len(x)):
        if x[i] > 0.1:
            v = x[i]
            if i > 5:
                del v
                v = 2.0
    return v


def in_a_function_inside(x):
    def largest():
        return found

    for i in range(len(x)):
        if x[i] > 0.5:
            found = x[i]
    return largest()


def by_sizes(x):
    if len(x) > 3:
        k = 2
    return x * k


def in_a_loop_that_its_first_iteration_ends(x):
    s, i = 1, 0
    while True:
        if len(x) > 2:
            s = 0.75
        if i >= 3 or x[0] > 0.5:
            break
        i += 1
        if (x > s).any():
            s = np.float64(-1.5)
        if i > 1:
            row = x * 2
    return row, s


def after_a_return_in_the_first_iteration(x):
    s, i = 1, 0
    while True:
        s = 0.75 if len(x) > 2 else s
        if len(x) == 0 or x[0] > 0.5:
            break
        i += 1
        if (x > s).any() or i > 4:
            s = x[0] - 0
            if i > 0:
                return x[i % len(x)], s
            row = np.zeros_like(x)
    return row, s


NUMBERS = [
    first_large,
    last_large,
    by_chains,
    a_pair,
    in_a_while,
    read_in_later_iterations,
    in_two_loops,
    bound_again,
]
OTHERS = [
    an_array,
    deleted,
    in_a_function_inside,
    by_sizes,
    in_a_loop_that_its_first_iteration_ends,
    after_a_return_in_the_first_iteration,
]


def data(n):
    return (
        np.arange(n) / max(n, 1),
        np.zeros(n),
        np.ones(n),
        np.ones(n) * 0.4,
        -np.arange(n) % 3 * 0.3,
    )


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", [*NUMBERS, *OTHERS])
def test_read_as_python_reads_them(fn, dynamic):
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp")
    for n in (20, 9, 12, 0, 1, 3, 40):
        for x in data(n):
            agree(compiled, x)


@pytest.mark.parametrize("fn", NUMBERS)
def test_numpy_answers_only_what_raises(fn):
    compiled = cinductor.compile(fn, dynamic=True, backend="interp")
    raised = 0
    for n in (20, 9, 12, 40, 30):
        for x in data(n):
            try:
                fn(x.copy())
            except UnboundLocalError:
                raised += 1
            agree(compiled, x)
    assert captures(compiled) == 1 and compiled.failed_checks <= raised


def test_a_break_after_a_name_that_may_have_no_value():
    said = []

    def f(x):
        for i in range(len(x)):
            if x[i] > 0.5:
                found = x[i]
        said.append(len(x))
        if x.sum() > 0.7:
            return found
        return 0.0

    compiled = cinductor.compile(f, backend="interp")
    for n in (20, 9, 12):
        for x in data(n):
            agree(compiled, x)
