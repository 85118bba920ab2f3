"""Tests arrays whose sizes change from iteration to iteration or differ between branches, and names that only the
last iteration binds.
"""

import copy

import cases
import numpy as np
import pytest
from test_regions import check, nodes, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []
case = cases.entering(CASES)


X = np.arange(20.0) * 7 % 11 - 3


@case(X, 4.0)
@case(X + 100, 4.0)
@case(X[:0], 4.0)
def while_any_are_left(live, limit):
    trips = 0
    while len(live):
        live = live * 0.5
        live = live[np.abs(live) > limit]
        trips += 1
    return live, trips


@case(X)
def sizes_in_conditions(x):
    total = 0.0
    while x.size > 3:
        total += x[0] + x[-1]
        x = x[x > x.min()]
    return total, x


@case(X, X[::-1].copy(), np.arange(20))
def several_shrink_together(a, b, where):
    counts = np.zeros(20, np.int64)
    for k in range(12):
        a = a + b
        stay = np.abs(a) < 20
        counts[where[~stay]] = k + 1
        a, b, where = a[stay], b[stay], where[stay]
    return counts, a, b


@case(X, 3)
@case(X[:9], 8)
def masks_written_twice(x, n):
    y = x * 2
    for _ in range(n):
        x, y = x[x > x.min()], y[x > x.min()]
        x = x + y
    return x.sum(), y


@case(X.astype(np.int64) + 4, 30)
def sieve(numbers, n):
    found = np.zeros(n, np.int64)
    k = 0
    numbers = numbers[numbers > 1]
    while len(numbers):
        p = numbers[0]
        found[k] = p
        k += 1
        numbers = numbers[numbers % p != 0]
    return found[:k]


@case(np.outer(X, X[:7]), 5)
@case(np.asfortranarray(np.outer(X, X[:7])), 5)
def rows_shrink(a, n):
    for _ in range(n):
        a = a[a.sum(axis=1) > a.sum(axis=1).min()]
        a = a - 1
    return a


@case(np.add.outer(np.arange(12), np.arange(12)) % 5 == 0)
@case(np.zeros((12, 12), bool))
def frontier_grows_and_shrinks(edges):
    n = len(edges)
    seen = np.zeros(n, bool)
    seen[0] = True
    frontier = np.array([0])
    depth = 0
    while len(frontier):
        reached = edges[frontier].any(axis=0) & ~seen
        seen |= reached
        frontier = np.flatnonzero(reached)
        depth += 1
    return seen, depth


@case(X, 1)
@case(X, -1)
def branches_of_two_sizes(x, sign):
    if x[0] * sign > 0:
        y = x[x > 0]
    else:
        y = x[:5]
    return y + 1, y.sum(), len(y)


@case(X)
@case(-X)
def branches_that_share_a_size(x):
    a, b = x[1:], x[:-1]
    if x[1] > x[2]:
        a, b = a[a > b], b[a > b]
    return a * b


@case(X, 0.5)
def inner_loops_over_what_is_left(x, t):
    out = 0.0
    for _ in range(10):
        for i in range(len(x)):
            out = out * t + x[i]
        x = x[1:][x[1:] > x[0]]
    return out


@case(X)
def written_while_it_shrinks(x):
    live = x.copy()
    for k in range(10):
        live[live < 0] += 3
        live = live[live < 7 - k]
        if len(live) > 2:
            live[1] = -1.0
    return live


@case(X)
def until_two_are_left(x):
    while True:
        if len(x) < 3:
            return x
        x = x[x != x.max()]


@case(np.zeros(3), 9)
def the_last_mask(x, n):
    for k in range(n):
        big = (x + np.arange(3.0) * k) > 8
        which = np.flatnonzero(big)
        x = x + 1
    return big, which, x


@case(X, 3.0)
@case(X, 300.0)
def returns_a_tuple_from_a_loop(x, limit):
    for i in range(len(x)):
        y = x[:4] * i
        if y.sum() > limit:
            return i, y, (x[i], "found")
    return -1, x[:4] * 0, (x[0], "found")


@case(np.outer(X, X))
def the_last_row_is_a_view(a):
    for i in range(len(a)):
        row = a[i]
        a[0] += row
    row[1] = 99
    return row.sum()


@case(np.outer(X, X), 4)
@case(np.outer(X, X), 0)
def the_last_view_of_some(a, n):
    row = a[0]
    for i in range(n):
        row = a[i, ::2]
    return row + 1


@case(X)
def the_last_index(x):
    for i in range(len(x)):
        x[i] += 1
    return i


@case(X)
def carried_arrays_are_returned_early(x):
    old = x * 0
    while True:
        new = np.minimum(old + 1, x)
        if np.array_equal(old, new):
            return old, bool(old.any())
        old = new


@case(X)
@case(X[:1])
@case(X[:0])
def written_whole_before_it_shrinks(x):
    x = x + 0
    for i in range(4):
        x[:] = x * 2
        x[1:][:2] += i
        x = x[x != 6]
    return x


@case(X, X * 2)
@case(X[:1], X[:1])
@case(X[:0], X[:0])
def exchanged_with_the_one_before(x, y):
    last = x
    for _ in range(10):
        x = last
        last = y[y != y]
    return x.sum(), last


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize(
    "fn, args", CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)]
)
def test_programs(fn, args, backend):
    check(fn, *args, backend=backend)


@pytest.mark.parametrize(
    "fn, args", [c for c in CASES if isinstance(c[1][0], np.ndarray) and c[1][0].ndim == 1]
)
def test_sizes_become_symbols(fn, args):
    compiled = cinductor.compile(fn, backend="interp", dynamic=True)
    for n in (20, 13, 5, 17):
        ours, theirs = (
            tuple(a[:n].copy() if isinstance(a, np.ndarray) else a for a in args) for _ in range(2)
        )
        same(outcome(compiled, ours), outcome(fn, theirs))
        same(ours, theirs)


@pytest.mark.parametrize(
    "fn", [while_any_are_left, until_two_are_left, the_last_index, written_while_it_shrinks]
)
def test_size_does_not_depend_on_iterations(fn):
    def args(n):
        given = [np.arange(n) * 1.5, np.arange(n) - 4.0, np.arange(n)]
        return (given[0], 1.0) if fn is while_any_are_left else given[: fn.__code__.co_argcount]

    assert nodes(fn, *args(30)) == nodes(fn, *args(900)) < 150


def test_a_view_that_is_last_shares_memory():
    def last_row(a):
        for i in range(len(a)):
            row = a[i]
            row *= 2
        return row

    compiled = cinductor.compile(last_row, fullgraph=True, backend="interp")
    for _ in range(3):
        a = np.ones((12, 3))
        row = compiled(a)
        assert np.shares_memory(row, a) and row.base is a
        row[:] = 7
        assert (a[-1] == 7).all() and (a[:-1] == 2).all()


def test_what_may_be_the_argument_is_not_returned_as_another():
    def f(x, n):
        y = x
        while n > 0:
            y = y[y > y.min()] if len(y) else y + 1
            n = n - x[0]
        return y

    compiled = cinductor.compile(f, backend="interp")
    for n in (-1.0, 3.0):
        x = np.array([1.0, 2.0, 3.0, 2.0, 5.0])
        got, want = compiled(x, np.float64(n)), f(copy.copy(x), np.float64(n))
        same(got, want)
        assert (got is x) == (n < 0)


PRODUCTS = {
    "dot": lambda a, b: np.dot(a, b),
    "rows": lambda a, b: np.dot(a[:, None] * np.ones(3), np.ones((3, 2))) if a.ndim else b,
    "inner": lambda a, b: np.inner(a, b),
    "vdot": lambda a, b: np.vdot(a, b),
    "einsum": lambda a, b: np.einsum("i,i", a, b),
    "interp": lambda a, b: np.interp([0.5, 2.5], a, b),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_sizes_that_data_decide(name):
    """The program compares the sizes. If they differ, NumPy raises."""

    def product(x, y):
        return PRODUCTS[name](x[x > 2], y[y < 3])

    rng = np.random.default_rng(0)
    fn = cinductor.compile(product, fullgraph=True)
    for n in (20, 20, 31):
        x = rng.permutation(n).astype(float) + 3 - n // 2
        same(fn(x, 5 - x), product(x, 5 - x))
    if name != "rows":
        for call in (fn, product):
            with pytest.raises(ValueError):
                call(x, x)


def test_what_an_arm_leaves_of_a_block():
    """As in np.histogram: the capacity for the selected elements depends on the iteration."""

    def f(a, high):
        n = np.zeros(10, np.intp)
        for i in range(0, len(a), 16):
            part = a[i : i + 16]
            keep = part <= high
            if not np.logical_and.reduce(keep):
                part = part[keep]
            n += np.bincount(part.astype(np.intp), minlength=10)
        return n

    for backend in ("c", "interp"):
        compiled = cinductor.compile(f, backend=backend)
        for size, high in ((10, 9.0), (100, 9.0), (100, 4.0), (47, 0.5), (0, 1.0)):
            a = np.random.default_rng(size).random(size) * 9
            np.testing.assert_array_equal(compiled(a, high), f(a, high))


def joined_after_a_write(a, b, table):
    b[0] += 1
    flat = table.reshape(-1)
    chosen = a[a != 0.5]
    for _ in range(table.shape[0]):
        if b[0] > 0.5:
            chosen = np.concatenate([chosen, flat])
    return chosen


def test_a_merged_size_after_an_effect():
    """Python runs the `if`: a bound of the merged size is computed without running what precedes."""
    compiled = cinductor.compile(joined_after_a_write, backend="interp", dynamic=True)
    for first in (0.0, 1.0, -3.0):
        got, want = (np.arange(48.0).reshape(3, 16) + first for _ in range(2))
        same(compiled(np.arange(16.0), got.T[:, 0], got.T), joined_after_a_write(np.arange(16.0), want.T[:, 0], want.T))
        same(got, want)
