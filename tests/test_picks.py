"""Items of lists and tuples at places that data decide."""

import numpy as np
import pytest

import cinductor
from cinductor.testing import check

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
