"""Tests items of lists and tuples at indices that depend on data."""

import numpy as np
import pytest
from test_regions import outcome, same

import cinductor
from cinductor.testing import check

RNG = np.random.default_rng(0)
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
GAINS = (0.5, 1.5, -2.0)


def item(x, values):
    return values[np.argmax(x)]


def moves(x, k):
    y, p = 0, 0
    path = []
    for i in range(k):
        dy, dx = MOVES[np.argmax(x[i % len(x)])]
        y += dy
        p += dx
        path.append((y, p))
    return y, p, np.array(path)


def gains(x, k):
    s = 0.0
    for i in range(len(x)):
        s += GAINS[i % 3] * GAINS[k[i]]
    return s


def from_both_ends(k):
    nested = [(1, (2.0, True)), (3, (4.0, False))]
    return [1, 2, 3][k[0]], (1.5, 2.5)[k[1]], nested[k[2]], [np.float32(1), np.float32(2)][k[1]]


def computed(a, b, k):
    return [a, b, a + b][k[0]], [a, a * 2, 0.0][k[1]]


def changed(x):
    best = [0, 0, 0]
    for i in range(len(x)):
        best[i % 3] = best[int(x[i])] + i
    return best


def arrays(x, k):
    rows = [x, x * 2]
    rows[k[0]] += 1
    return x, rows[k[0]]


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_picks(backend):
    x = np.random.default_rng(0).random((30, 4))
    compiled = cinductor.compile(item, backend=backend)
    for values in (
        [1.0, 2.0, 3.0, 4.0],
        (1, 2, 3, 4),
        ["a", 2, 3, None],
        [1, 2.0, 3, 4],
        [1, 2],
        (),
    ):
        check(item, x[0], values, compiled=compiled)
    check(moves, x, 30, backend=backend)
    check(moves, x, 0, backend=backend)
    for many in (3, 4):
        check(gains, x[:, 0].copy(), np.arange(30) % many, backend=backend)
    compiled = cinductor.compile(from_both_ends, backend=backend)
    for k in ([0, 0, 0], [1, 1, 1], [-1, -2, -1], [3, 0, 0], [-4, 0, 0], [0, 2, 0], [0, 0, -3]):
        check(from_both_ends, np.array(k), compiled=compiled)
        check(from_both_ends, np.array(k, np.int8), compiled=compiled)
    compiled = cinductor.compile(computed, backend=backend)
    for k in ([0, 1], [2, 2], [1, 0]):
        check(computed, 1.5, 2.5, np.array(k), compiled=compiled)
        check(computed, 1, 2, np.array(k), compiled=compiled)


def test_what_stays_pythons():
    check(changed, np.array([0, 1, 2, 1, 0, 2, 2, 1, 1, 1, 2]), backend="interp")
    for k in (0, 1):
        check(arrays, np.ones(3), np.array([k]), backend="interp")


def test_are_captured_whole():
    x = np.random.default_rng(0).random((30, 4))
    for fn, args in (
        (item, (x[0], (1, 2, 3, 4))),
        (moves, (x, 30)),
        (gains, (x[:, 0].copy(), np.arange(30) % 3)),
    ):
        assert cinductor.explain(fn, *args).breaks == []


def steps_of_data(x):
    first = np.arange(0, 10, x[0]), np.arange(x[0], x[1], x[2])
    return (
        first,
        np.arange(x[1]),
        np.arange(x[1], 20, np.int64(3), dtype=np.int32),
        np.arange(x[1], -3, -1),
    )


def test_ranges_of_data():
    assert cinductor.explain(steps_of_data, np.array([1, 5, 2])).breaks == []
    compiled = cinductor.compile(steps_of_data, backend="interp")
    for x in ([1, 5, 2], [2, 9, 3], [3, 0, 1], [-1, 4, -2], [0, 3, 0], [4, -5, 2]):
        check(steps_of_data, np.array(x), compiled=compiled)
        check(steps_of_data, np.array(x, np.int32), compiled=compiled)


# --- items of lists that are set at a data-dependent index --------------------------------------------------


def counts(q, n):
    size = [1] * n
    for a in q:
        size[a] += 1
    return size


def counts_in_order(q, n):
    size, seen = [0] * 10, 0
    for i in range(len(q)):
        k = int(q[i])
        size[k] = size[k] + i
        seen += size[3]
    return np.array(size), seen, size[-1], len(size)


def joins_sets(q, n):
    parent, groups = list(range(20)), 20
    for i in range(len(q) - 1):
        x, y = int(q[i]), int(q[i + 1])
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        while parent[y] != y:
            y = parent[y]
        if x != y:
            parent[x] = y
            groups -= 1
    return groups, parent


def floats_at_places(q, n):
    best = [float("inf")] * 12
    for i in range(len(q)):
        if i * 0.5 < best[q[i]]:
            best[q[i]] = i * 0.5
    return best


def pairs_at_places(q, n):
    last = [(0, -1)] * 12
    for i in range(len(q)):
        count, _ = last[q[i]]
        last[q[i]] = (count + 1, i)
    return last


def of_two_names(q, n):
    size = [0] * 12
    other = size
    for a in q:
        size[a] += 1
        other[0] += other[a]
    return size, other is size


def of_many_items(q, n):
    size = [2] * 6000
    for a in q:
        size[a * 7] += size[a]
    return size[:20], np.array(size).sum()


def under_a_condition(q, n):
    flags = [False] * 12
    for a in q:
        if not flags[a]:
            flags[a] = True
    return flags


STORED = [counts, counts_in_order, joins_sets, floats_at_places, pairs_at_places, of_two_names, of_many_items, under_a_condition]


def of_another_type(q, n):
    size = [0] * 12
    for a in q:
        size[a] += 0.5
    return size


def numbers_of_numpys(q, n):
    size = [0] * 12
    for a in q:
        size[a] = a
    return size


def of_several_types(q, n):
    size = [0, 1.5] * 6
    for a in q:
        size[a] += 1
    return size


def in_lists(q, n):
    table = [[0] * 12 for _ in range(12)]
    for i in range(len(q) - 1):
        table[q[i]][q[i + 1]] += 1
    return table


def also_grows(q, n):
    size = [0] * 12
    for a in q:
        size[a] += 1
        if size[a] > 1:
            size.append(int(a))
    return size


def by_a_float(q, n):
    size = [0] * 12
    for a in q * 1.0:
        size[a] += 1
    return size


def by_a_slice(q, n):
    size = [0] * 12
    for a in q:
        size[a : a + 1] = [5, 6]
    return size


def beyond_64_bits(q, n):
    size = [1] * 12
    for a in q:
        size[a] *= 1000003
    return size


def empty(q, n):
    size = []
    for a in q:
        size[a] = 1
    return size


OTHER_STORES = [of_another_type, numbers_of_numpys, of_several_types, in_lists, also_grows, by_a_float, by_a_slice, beyond_64_bits, empty]
PLACES = [RNG.integers(0, 9, 30), RNG.integers(-9, 9, 30), RNG.integers(0, 9, 0), RNG.integers(0, 9, 30).astype(np.uint8), RNG.integers(0, 9, 30) + 5]


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", STORED)
def test_stores_are_captured_whole(fn, dynamic):
    """If an index is out of range, the original function runs."""
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic, fullgraph=True)
    for q in PLACES:
        for _ in range(2):
            same(outcome(compiled, (q, 12)), outcome(fn, (q, 12)))


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("fn", [*STORED, *OTHER_STORES])
def test_stores_are_pythons(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for q in PLACES:
        for n in (12, 12, 20):
            same(outcome(compiled, (q, n)), outcome(fn, (q, n)))
