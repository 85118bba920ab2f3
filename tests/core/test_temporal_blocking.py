"""Tests temporal blocking: two iterations of a loop that makes a large array from another are fused. Here "large" is
one byte.
"""

import numpy as np
import pytest

import cinductor

EVERY = {"choices": "iteration_bytes=1,doubled_bytes=1,border_bytes=1"}


def jacobi(x, n):
    for _ in range(n):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        x = y
    return x


def heat(x, n):
    for t in range(n):
        y = x.copy()
        y[1:-1] = x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) + t
        x = y
    return x


def skewed(x, n):
    for _ in range(n):
        y = np.zeros_like(x)
        y[2:-1, 1:-3] = x[1:-2, :-4] * 0.5 + x[3:, 4:] - x[:-3, 2:-2]
        x = y
    return x


def around(x, n):
    """An element at one end depends on the other end, which is too far away: not fused."""
    for _ in range(n):
        y = np.empty_like(x)
        y[1:] = x[:-1] * 2
        y[0] = x[-1]
        x = y
    return x


def seen(x, n):
    """Another value reads the result of each iteration: not fused."""
    total = 0.0
    for _ in range(n):
        y = x.copy()
        y[1:-1] = (x[2:] + x[:-2]) * 0.5
        total = total + y[1]
        x = y
    return x, total


def dear(x, n):
    """Functions would be computed twice: not fused."""
    for _ in range(n):
        y = x.copy()
        y[1:-1] = np.exp(-x[2:]) + x[:-2]
        x = y
    return x


def lattice(x, n):
    for _ in range(n):
        y = x.copy()
        y[1:-1, 1:-1, 1:] = x[:-2, 1:-1, 1:] - x[1:-1, 2:, :-1]
        x = y
    return x


CASES = [
    (jacobi, (9, 12), True),
    (jacobi, (5, 4), True),
    (jacobi, (3, 3), True),
    (heat, (20,), True),
    (heat, (3, 7), True),
    (skewed, (9, 12), True),
    (around, (30,), False),
    (seen, (12,), False),
    (dear, (12,), False),
    (lattice, (5, 6, 4), True),
]


@pytest.mark.parametrize(("function", "shape", "is_composed"), CASES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_two_iterations_are_one(function, shape, is_composed, order):
    """Equal bits, for even and odd numbers of iterations."""
    x = np.asarray(np.random.default_rng(3).random(shape), order=order)
    for n in (18, 19):
        compiled = cinductor.compile(lambda a, n=n: function(a, n), dynamic=False, backend="interp", options=EVERY)
        given = x.copy(order="K")
        got, want = compiled(given), function(x, n)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_array_equal(g, w, strict=True)
        np.testing.assert_array_equal(given, x)
        report = cinductor.explain(compiled, x)
        assert (f"<{n} " not in report.procs + report.wrapper) == is_composed


def test_what_iterations_read_is_written_after_them():
    def weighted(x, w):
        y = x.copy()
        for _ in range(20):
            z = y.copy()
            z[1:-1] = (y[2:] + y[:-2]) * w[1:-1]
            y = z
        w[:] = y

    x, w = np.random.default_rng(4).random((2, 50))
    got, want = w.copy(), w.copy()
    cinductor.compile(weighted, dynamic=False, backend="interp", options=EVERY)(x, got)
    weighted(x, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 20, 33])
def test_a_number_of_iterations_that_varies(n):
    compiled = cinductor.compile(heat, dynamic=True, backend="interp", options=EVERY)
    for k in (n, 17):
        np.testing.assert_array_equal(compiled(np.arange(9.0) ** 2, k), heat(np.arange(9.0) ** 2, k))


# --- double buffering: an array that a loop replaces from within -----------------------------------


def heat_in_place(u, n):
    for t in range(n):
        u[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) - t


def one_row(u, n):
    for _ in range(n):
        u[1] = u[1][::-1] * 0.5 + u[0]


def waves(u, v, n):
    """The second update reads what the first one has stored in the same iteration."""
    for _ in range(n):
        u[1:-1] = u[:-2] + v[2:] * 0.5 - u[2:]
        v[1:-1] = v[:-2] - u[1:-1] * 0.25 + v[2:] + u[2:]


def folded(u, n):
    for _ in range(n):
        u[:, 0] = (u * 0.5).sum(axis=1)


def with_walls(u, n):
    """Two stores to the array in an iteration: it stays one buffer."""
    for _ in range(n):
        u[1:-1] = u[:-2] + u[2:] * 0.5
        u[0] = u[1]


def shifted(u, n):
    for _ in range(n):
        u[2:] = u[:-2] + u[2:]


def rows_in_turn(u, n):
    """Each iteration replaces another row: elements of the others would be old in one of two buffers."""
    for t in range(n % len(u) + 2):
        u[t] = np.minimum(u[t], u[t][::-1] + u[1])


def shrinking(u, n):
    for t in range(n % 3 + 3):
        u[t : 9 - t] = u[t : 9 - t] * 0.5 + u[t + 1 : 10 - t]


DOUBLED = [
    (rows_in_turn, [(25, 6)], False),
    (shrinking, [(12, 4)], False),
    (heat_in_place, [(9, 12)], True),
    (heat_in_place, [(3, 3)], False),
    (one_row, [(4, 7)], True),
    (waves, [(20,), (20,)], True),
    (folded, [(6, 5)], True),
    (with_walls, [(20,)], False),
    (shifted, [(5, 8)], True),
]


@pytest.mark.parametrize(("function", "shapes", "is_doubled"), DOUBLED)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("device", "backend", "dynamic"),
    [("cpu", "interp", False), ("cpu", "interp", True), ("cpu", "c", False), ("cuda", "interp", False)],
)
def test_loops_exchange_two_buffers(function, shapes, is_doubled, order, device, backend, dynamic):
    """NumPy's bits, also in elements outside the part that the loop replaces."""
    rng = np.random.default_rng(5)
    options = {"choices": "iteration_bytes=1,doubled_bytes=1,border_bytes=1,doubled_iterations=1"} | ({"offload": "always"} if device == "cuda" else {})
    for n in (18, 19):
        given = [np.asarray(rng.random(shape), order=order) for shape in shapes]
        compiled = cinductor.compile(function, dynamic=dynamic, device=device, backend=backend, options=options)
        got, want = [x.copy(order="K") for x in given], [x.copy(order="K") for x in given]
        assert compiled(*got, n) is function(*want, n) is None
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, strict=True)
        text = cinductor.explain(compiled, *given, n).text("double_buffering")
        assert ("swap" in text) == is_doubled or dynamic  # sizes that are not known may be large


@pytest.mark.parametrize(("function", "shapes", "_"), DOUBLED)
def test_views_keep_elements_between(function, shapes, _):
    """An array with gaps has no second buffer of its layout."""
    rng = np.random.default_rng(6)
    base = rng.random(tuple(2 * s for s in shapes[0]))
    got, want = base.copy(), base.copy()
    part = tuple(slice(0, 2 * s, 2) for s in shapes[0])
    others = [rng.random(shape) for shape in shapes[1:]]
    options = {"choices": "iteration_bytes=1,doubled_bytes=1,border_bytes=1,doubled_iterations=1"}
    cinductor.compile(function, dynamic=False, backend="interp", options=options)(got[part], *map(np.copy, others), 18)
    function(want[part], *map(np.copy, others), 18)
    np.testing.assert_array_equal(got, want)
