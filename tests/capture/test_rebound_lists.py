"""Tests lists that iterations rebind, and lists of Python's numbers in which NumPy's are stored: captured whole, with the
objects and classes that Python gives.
"""

import copy
import heapq

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 4, 9), RNG.integers(0, 4, 12)
WEIGHTS, VALUES = RNG.integers(1, 9, 6), RNG.integers(1, 30, 6)
EDGES, NEAR = RNG.integers(0, 12, (9, 2)), (RNG.random((9, 9)) < 0.3).astype(np.int64)
COSTS = np.where(RNG.random((7, 7)) < 0.5, RNG.random((7, 7)), np.inf)
X = RNG.random(8)


def edits_exchanged(a, b):
    before, now = list(range(len(b) + 1)), [0] * (len(b) + 1)
    for i in range(1, len(a) + 1):
        now[0] = i
        for j in range(1, len(b) + 1):
            now[j] = min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]))
        before, now = now, before
    return before[-1], now


def edits_made(a, b):
    before = list(range(len(b) + 1))
    for i, x in enumerate(a):
        now = [i + 1]
        for j, y in enumerate(b):
            now.append(min(before[j + 1] + 1, now[j] + 1, before[j] + int(x != y)))
        before = now
    return before


def until_equal(a, b):
    now, k = [float(v) for v in a], 0
    while max(now) - min(now) > 0.5 and k < 40:
        now, k = [(now[j - 1] + now[j]) / 2 for j in range(len(now))], k + 1
    return now, k, b


def life(n):
    cells = [[0] * 5 for _ in range(5)]
    cells[1][2] = cells[2][3] = cells[3][1] = cells[3][2] = cells[3][3] = 1
    for _ in range(n):
        new = [[0] * 5 for _ in range(5)]
        for i in range(5):
            for j in range(5):
                count = sum(cells[(i + p) % 5][(j + q) % 5] for p in (-1, 0, 1) for q in (-1, 0, 1) if p or q)
                new[i][j] = 1 if count == 3 or (count == 2 and cells[i][j]) else 0
        cells = new
    return cells


def levels(near):
    found, front, level = [-1] * len(near), [0], 0
    found[0] = 0
    while front:
        level += 1
        new = []
        for u in front:
            for v in range(len(near)):
                if near[u, v] and found[v] < 0:
                    found[v] = level
                    new.append(v)
        front = new
    return found, level


def pascal(n):
    row = [1]
    for _ in range(n):
        new = [1]
        for j in range(len(row) - 1):
            new.append(row[j] + row[j + 1])
        new.append(1)
        row = new
    return row


def knapsack(weights, values, most):
    best = [0] * (most + 1)
    for i in range(len(weights)):
        for c in range(most, weights[i] - 1, -1):
            if best[c - weights[i]] + values[i] > best[c]:
                best[c] = best[c - weights[i]] + values[i]
    return best[-1], best


def unions(n, edges):
    parent, size = list(range(n)), [1] * n
    for a, b in edges:
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a != b:
            if size[a] < size[b]:
                a, b = b, a
            parent[b] = a
            size[a] += size[b]
    return parent, size, max(size)


def shortest(costs):
    found = [float("inf")] * len(costs)
    found[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        cost, u = heapq.heappop(heap)
        if cost > found[u]:
            continue
        for v in range(len(costs)):
            new = cost + costs[u, v]
            if new < found[v]:
                found[v] = new
                heapq.heappush(heap, (new, v))
    return found


def smoothed(x):
    a, b = [0.0] * len(x), list(x)
    for _ in range(9):
        for j in range(1, len(x) - 1):
            a[j] = (b[j - 1] + b[j + 1]) / 2
        a, b = b, a
    return a, b


def steps_among_pairs(x):
    pairs = [(0, 1.0)]
    for k in range(len(x)):
        if x[k] > 0.4:
            pairs.append((k, x[k]))
    return pairs, pairs[-1][1], len(pairs)


def an_int_or_a_float(x):
    out = [0]
    for v in x:
        if v > 0.6:
            out.append(1)
        elif v > 0.2:
            out.append(float(v))
    return out, np.array(out), sum(out)


WHOLE = [
    (edits_exchanged, A, B),
    (edits_exchanged, A[:1], B),
    (edits_made, A, B),
    (until_equal, A, B),
    (life, 5),
    (levels, NEAR),
    (pascal, 12),
    (knapsack, WEIGHTS, VALUES, 20),
    (unions, 12, EDGES),
    (shortest, COSTS),
    (smoothed, X),
    (steps_among_pairs, X),
]


# --- something else has one of the lists, so it matters which object a name has ---


def kept_in_a_list(n):
    a, b, seen = [0, 1], [2, 3], []
    for k in range(n):
        a[0] += k
        seen.append(a)
        a, b = b, a
    return seen, seen[:1] == [a], b


def kept_under_a_name(n):
    a, b = [0, 1], [2, 3]
    first = a
    for k in range(n):
        b[1] = a[0] + k
        a, b = b, a
    first[0] = 7
    return first, a, b


def kept_by_a_function(n):
    a, b = [0, 1], [2, 3]
    first = lambda old=a: old[0]  # noqa: E731
    for k in range(n):
        a[0] += k + first()
        a, b = b, a
    return a, b, first()


def one_list_of_two_names(n):
    a, b = [0, 1], [2, 3]
    for k in range(n):
        b = [a[0] + k, a[1]]
        a = b
        a[1] += 1
    b[0] = 9
    return a, b, a is b


def arguments_change_places(a, b, n):
    for k in range(n):
        a[0] += b[0] + k
        a, b = b, a
    return a, b


def rows_of_one_list(n):
    row = [0, 0]
    rows = [row, row]
    for k in range(n):
        rows[0][k % 2] += k
        rows = [rows[0], [k, k]]
    return rows, row


SHARED = [
    *((f, n) for f in (kept_in_a_list, kept_under_a_name, kept_by_a_function, one_list_of_two_names, rows_of_one_list) for n in (0, 1, 4)),
    (arguments_change_places, [1, 2], [3, 4], 3),
    (an_int_or_a_float, X),
]


def outcome(fn, args):
    """The result of a call, the identities of its lists and of the arguments, and the arguments after it."""
    args = copy.deepcopy(args)
    made = fn(*args)
    lists = [v for v in [*(made if isinstance(made, tuple) else (made,)), *args] if isinstance(v, list)]
    return made, [[a is b for a in lists] for b in lists], args


@pytest.mark.parametrize("options", [{"backend": "interp"}, {"backend": "c"}, {"backend": "interp", "dynamic": True}], ids=["interp", "c", "dynamic"])
@pytest.mark.parametrize("fn, args, whole", [*((f, args, True) for f, *args in WHOLE), *((f, args, False) for f, *args in SHARED)], ids=lambda v: getattr(v, "__name__", ""))
def test_lists(fn, args, whole, options):
    compiled = cinductor.compile(fn, fullgraph=whole, **options)
    for _ in range(3):
        assert_same(outcome(compiled, args), outcome(fn, args))
    if whole:
        assert not [r for r in cinductor.explain(fn, *copy.deepcopy(args), **options).regions if "captured" not in r]
