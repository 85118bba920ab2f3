"""Tests functions that return values of one of several types: the program says which."""

import collections

import cases
import numpy as np
import pytest

import cinductor

X = np.arange(10.0)
Pair = collections.namedtuple("Pair", "low high")
CASES = []
case = cases.entering(CASES)


@case((X, 4.0), (X, 40.0), (X, 0.0), (X[:0], 1.0))
def find(x, wanted):
    for i in range(len(x)):
        if x[i] == wanted:
            return i
    return None


@case((2.0, 0.0, 5.0), (-1.0, 0.0, 5.0))
def root(c, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        if high - low < 1e-6:
            return middle
        if c * middle * middle > 2:
            high = middle
        else:
            low = middle


@case((X + 1, X), (X * 0, X))
def solve(a, b):
    if abs(a[0]) < 1e-12:
        return None
    return b / a[0]


@case((X,), (X * 0.125,), (X - 50,))
def in_words(x):
    total = x.sum()
    if total > 5:
        return "big", x * 2
    elif total < 0:
        return "negative"
    return "small", x, total


@case((X,), (X * 0.125,))
def itself_or_new(x):
    if x.sum() > 5:
        return x, 1
    return x


@case((X,), (X * 0.125,))
def dtypes(x):
    if x.sum() > 7:
        return x > 3
    return np.stack([x, x])


@case((X,), (X - 5,), (X - 20,))
def named(x):
    low, high = x.min(), x.max()
    if low >= 0:
        return Pair(low, high)
    if high < 0:
        return -1
    return Pair(low, high), x[x > 0]


@case((X.copy(),), (X * 0.125,))
def writes(x):
    if x.sum() > 5:
        x[0] = -1
        return None
    x += 1
    return x.sum()


@case((X,), (X - 5,))
def views(x):
    if x[0] < 0:
        return x[1:]
    return None


@case((X,), (X - 5,))
def lists(x):
    if x[0] < 0:
        return [x * 2, x.sum()]
    return {"x": x + 1}


@case((X,), (X - 5,), (X - 7.5,))
def numbers(x):
    if x[2] > 0:
        return 3
    if x[7] > 0:
        return 2.5
    return x[0]


@case((X,), (X - 6,), (X - 20,))
def mean_or_zero(x):
    total = n = 0
    for v in x:
        if v > 0:
            total += v
            n += 1
    return total / n if n else 0


@case((X,), (X - 5,), (X - 20,))
def one_of_three(x):
    return x * 2 if x[0] >= 0 else None if x[9] < 0 else ("some", x.sum())


@case((X, 3), (X, 30))
def of_a_helper(x, n):
    found = find(x, n)
    return -1 if found is None else found * 2


@case((X, 3), (X * 0, 3))
def in_a_loop(x, n):
    total = 0.0
    while True:
        total += x[n]
        if total > 20:
            return total, n
        n += 1
        if n >= x.size:
            return None


@case((X,), (X - 3,), (-X,))
def raises(x):
    if x[1] < -1:
        return None
    if x[1] < 0:
        raise ValueError(f"{x.size} elements")
    return x.sum()


def outcome(fn, args):
    try:
        return fn(*args)
    except ValueError as error:
        return repr(error)


def same(got, want, ours, theirs):
    assert type(got) is type(want)
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b, ours, theirs)
    elif isinstance(want, dict):
        same(list(got.items()), list(want.items()), ours, theirs)
    else:
        assert (got is ours) == (want is theirs) and np.array_equal(got, want)
        if isinstance(want, np.ndarray):
            assert got.dtype == want.dtype and np.shares_memory(got, ours) == np.shares_memory(want, theirs)


@case((X, 2), (X, 1), (X, 0), (X, 3))
def last_of_an_inner_loop(x, most):
    for _ in range(2):
        s, k = x[0], 0
        while True:
            if k >= most:
                break
            k += 1
            s = -1.5
    return s


@case((X, 7, 2.5), (X - 9, 8, 2.5), (X[:4], 9, 0.5), (X[:5] - 9, 9, 1.5))
def repeated(x, n, t):
    return np.array([n if x[0] >= 0 else t] * x.size), [n if x[1] >= 0 else t] * x.size


@case((np.uint64([2147483647]), 4294967295), (np.uint64([2147483647]), 16777217), (np.uint64([1 << 20]), 4294967295), (np.uint64([5]), 7))
def larger(x, n):
    return max(np.float32(x[0]), n), min(n, np.float32(x[0]))


@case((X, 1), (X[:9], 1), (X[:2], 1), (X[:1], 1), (X[:0], 1))
def inner_elements(x, k):
    x = x[k:-1]
    return x[x > 0]


@pytest.mark.parametrize("backend", ("c", "interp"))
@pytest.mark.parametrize("fn, calls", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_results(fn, calls, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for args in (*calls, *calls[::-1]):
        ours, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
        same(outcome(compiled, ours), outcome(fn, theirs), ours[0], theirs[0])
        assert np.array_equal(ours[0], theirs[0])


@pytest.mark.parametrize("fn", [find, root, solve, in_words, itself_or_new, dtypes, mean_or_zero, one_of_three], ids=lambda f: f.__name__)
def test_whole(fn):
    calls = dict(CASES)[fn]
    compiled = cinductor.compile(fn, fullgraph=True)
    for args in calls:
        compiled(*args)
    assert compiled._cinductor_job.captures <= 2
