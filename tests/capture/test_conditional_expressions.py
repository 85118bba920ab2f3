"""Tests that the operands of a conditional expression are separate branches. Neither sees a value that the other
computed, although both start with the same names.
"""

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same, check


def part(i, p, q, w):
    j = i[0]
    return p[j:].sum() if w.sum() > 0 else q[j:].sum()


def parts(i, p, q, w):
    s = 0
    for k in range(9):
        j = i[k]
        s += p[j:].sum() if w[k] > 0 else (q[j:] * 2).sum()
    return s


def element(i, p, q, w):
    j = i[0]
    return p[j] if w.sum() > 0 else q[j]


def masked(i, p, q, w):
    m = p > 0
    return p[m].sum() if w.sum() > 0 else (q[m] * 2).sum()


def views(i, p, q, w):
    v = p.reshape(2, 3).T
    return (v + 1).sum() if w.sum() > 0 else (v[0] + 2).sum()


def views_of_views(i, p, q, w):
    n, s = 0, 0
    while n < 2:
        v = p.reshape(3, 2).T[0]
        u = v.reshape(-1, 1)[1:, 0]
        n += 1
        z = u if w[n] > 0 else v
        s += z.sum()
    return s


def views_that_go_around(i, p, q, w):
    u = q.ravel("K")
    a, z = p, 0
    for _ in range(3):
        n = 0
        while n < 1 and q[0] < 6:
            n += 1
            v = u if (w > 1).all() else a
            z = z + v.shape[0]
        a = p.reshape(3, 2).T[0]
        u = a.reshape(-1, 1)[1:, 0]
    return u.sum() + z


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize(
    "program", [part, parts, element, masked, views, views_of_views, views_that_go_around]
)
def test_operands_share_nothing(program, backend):
    rng = np.random.default_rng(0)
    compiled = cinductor.compile(program, backend=backend)
    for sign in (1, -1, 0, 1):
        w = rng.integers(-2, 3, 9) if sign == 0 else np.full(9, 2 * sign)
        i, p, q = rng.integers(1, 5, 9), rng.integers(-9, 9, 6), rng.integers(-9, 6, 6)
        q[0] = 1
        assert_same(compiled(i, p, q, w), program(i, p, q, w))
    assert cinductor.explain(compiled, i, p, q, w).breaks == []


def bound_in_an_operand(x, p):
    if p[0] == 1 and (n := p[1]) > x[0]:
        return x
    return x + n


def bound_in_an_iteration(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0 and (pair := (x[i], 2))[0] < 3:
            total += pair[0] * pair[1]
    return total


def bound_in_an_arm(x):
    y = (n := x[1]) if x[0] > 1 else x[0]
    return y, n


def test_what_binds_a_name_only_sometimes():
    compiled = cinductor.compile(bound_in_an_operand, backend="interp")
    for pair in ((1, 0.0), (1, 5.0), (2, 0.0), (3, 1.0)):
        check(bound_in_an_operand, np.array([2.0, 3]), pair, compiled=compiled)
    for fn in (bound_in_an_iteration, bound_in_an_arm):
        compiled = cinductor.compile(fn, backend="interp")
        for x in ([2.0, 3, -1, 4], [0.0, 1, 2, 3], [-1.0, -2]):
            check(fn, np.array(x), compiled=compiled)


def add_all(items, more):
    for item in more:
        items.append(item)


def grown(x):
    items, others = [], []
    for v in x:
        if v > 0:
            items.append(v)
            others.append(v)
    first = add_all(items, items[:]) if x[0] > 1 else None
    second = x[1] > 1 or add_all(others, others[:])
    return len(items), len(others), first, second


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_operand_that_stores_a_list_in_other_columns(backend):
    compiled = cinductor.compile(grown, backend=backend)
    for x in ([2.0, 1, 3, -1], [1.0, 3, -2], [2.0, 2]):
        check(grown, np.array(x), compiled=compiled)


def extremes(x):
    lowest = np.inf
    for k in range(len(x)):
        lowest = min(lowest, x[k])
    first = min(np.inf, x[0]), max(float("nan"), x[0]), min(2**70, x[0]), max(-1e300, x[0])
    return lowest, first, np.inf if x[0] > 2 else x[0], 1j if x[0] > 1 else x[0]


@pytest.mark.parametrize("dtype", ["i8", "u1", "f4", "f8", "?"])
def test_numbers_that_a_dtype_has_not(dtype):
    compiled = cinductor.compile(extremes, backend="interp")
    for x in (np.arange(9)[::-1], np.arange(20), np.ones(3)):
        check(extremes, x.astype(dtype), compiled=compiled)


def first_true(b, k, t):
    k = k & 7
    i = k or t
    return (b, b + 1)[i], range(i), f"{i}"


def last_true(b, k, t):
    k = k & 7
    i = t and k
    return b[i], (b, b + 1)[i], [i] * i


@pytest.mark.parametrize("fn", [first_true, last_true])
def test_python_takes_the_operand_that_sizes_choose(fn):
    compiled = cinductor.compile(fn, backend="interp", dynamic=True)
    for k in (2, 1, 0, 3, -1, 1):
        check(fn, np.arange(5.0), k, 1.5, compiled=compiled)
