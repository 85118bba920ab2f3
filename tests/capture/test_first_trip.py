"""Tests loops whose first iteration differs: a number is Python's before the loop and NumPy's after an iteration, or
the first iteration may end the loop.
"""

import numpy as np
import pytest

import cinductor

POINTS = [np.complex128(v) for v in (3 + 1j, 0.1, -1.5, 1 + 1j, -2 + 0.1j, 0.3 + 0.5j, 5j)]


def escape_from_complex(c, n):
    z = 0j
    for k in range(n):  # noqa: B007
        z = z * z + c
        if abs(z) > 2:
            break
    return k, z


def escape_from_int(c, n):
    z = 0
    for k in range(n):
        z = z * z + c
        if abs(z) > 2:
            return k
    return n, z


def otherwise(c, n):
    z = 0
    for k in range(n):  # noqa: B007
        z = z * z + c
        if abs(z) > 2:
            break
    else:
        k = -1
    return k, z


def one_trip_behind(c, n):
    z, w = 0.0, 1.0
    for _ in range(n):
        w = z
        z = z + c.real
    return z, w


def two_trips_behind(c, n):
    z, w, v = 0.0, 1.0, 2
    for _ in range(n):
        v, w = w, z
        z = z + c.real
    return z, w, v


def one_after_a_break(c, n):
    z, w = 0, 1
    for k in range(n):  # noqa: B007
        w = z
        z = z * z + c
        if abs(z) > 2:
            break
    return z, w, k


def leaves_out(c, n):
    z, s = 0, 0.0
    for k in range(n):  # noqa: B007
        z = z * z + c
        if z.real > 0.2:
            continue
        s += z.imag
        if abs(z) > 2:
            break
        s += 1
    return z, s, k


def while_it_stays(c, n):
    z, k = 0, 0
    while k < n:
        z = z * z + c
        if abs(z) > 2:
            break
        k += 1
    return z, k


def of_an_array(c, n):
    out = np.zeros(3, int)
    for i in range(3):
        z = 0
        for k in range(n):
            z = z * z + c * (i + 1)
            if abs(z) > 2:
                out[i] = k
                break
    return out


def of_many_points(c, n):
    """The last number of an iteration that may be the first one, which is before the region."""
    counts, last = np.zeros(3, np.int64), np.zeros(3)
    for i in range(3):
        z = 0
        for k in range(n):
            z = z * z + c / (i + 1)
            found = 3 * k + 1
            if abs(z) > 2:
                break
        counts[i], last[i] = k, found
    return counts, last


FUNCTIONS = [
    of_many_points, escape_from_complex, escape_from_int, otherwise, one_trip_behind, two_trips_behind, one_after_a_break, leaves_out,
    while_it_stays, of_an_array,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_a_loop_begins_with(function):
    compiled = cinductor.compile(function, backend="c", fullgraph=True)
    for n in (30, 1, 12, 2):
        for c in POINTS:
            with np.errstate(all="ignore"):
                assert repr(compiled(c, n)) == repr(function(c, n)), (c, n)
    if function is not one_after_a_break:  # data decide whether w is an int
        assert cinductor.stats()["functions"][function.__name__]["eager"] == 0


def class_in_a_branch(x):
    s, t = 0.5, 0.0
    for i in range(12):
        if x[i % len(x)] > 0.5:
            t += 1.0 if type(s) is float else 10.0
        s += x[0]
    return s, t


def class_in_an_operand(x):
    s, t = 0.5, 0.0
    for i in range(12):
        t += 1.0 if x[i % len(x)] > 0.5 and isinstance(s, np.floating) else 0.0
        s += x[0]
    return s, t


def appended_in_a_branch(x):
    s, r = 0.5, []
    for i in range(12):
        if x[i % len(x)] > 0.2:
            r.append(s)
        s += x[0]
    return s, r


def stored_by_default(x):
    n, s, o = len(x), 0.5, {3: 1.0, 1: 2.0}
    for _ in range(12):
        s += o.setdefault(n, s) * x[0]
    return s, list(o.items())


@pytest.mark.parametrize("backend, dynamic", [("interp", None), ("interp", True), ("c", True)])
@pytest.mark.parametrize("function", [class_in_a_branch, class_in_an_operand, appended_in_a_branch, stored_by_default])
def test_a_branch_asks_for_the_class_of_a_number_that_is_pythons_in_the_first_iteration(function, backend, dynamic):
    compiled = cinductor.compile(function, backend=backend, dynamic=dynamic)
    for n in (4, 5):
        x = np.arange(4.0 * n)[::-2] / n
        assert repr(compiled(x)) == repr(function(x))


def test_a_loop_inside_whose_iterations_are_known_in_the_first_iteration_alone():
    """The inner loop's iterations are known in the peeled first iteration only. In the others it may or may not
    create the number.
    """

    def chosen(x):
        o = []
        for v in x:
            if v > 0.3:
                o.append(v)
        return o

    def function(x):
        s, o = 0.0, chosen(x)
        while s < x.sum() + 3:
            s += 1
            for v in o:
                s += v
        return s

    compiled = cinductor.compile(function, backend="interp")
    for seed in range(4):
        x = np.random.default_rng(seed).random(4)
        assert repr(compiled(x)) == repr(function(x))


def test_an_iteration_that_may_end_a_loop_that_is_no_region():
    def function(x):
        o, s = {1, 2, 3}, 0.0
        for i in range(len(x)):
            s += o.difference_update({1, 9}) or 1.0
            if x[i] > 0.8:
                break
        return s, sorted(o)

    compiled = cinductor.compile(function, backend="interp")
    for n in (4, 4, 7, 5):
        for k in range(n + 1):
            x = np.where(np.arange(n) == k, 0.9, 0.1)
            assert repr(compiled(x)) == repr(function(x))


def returns_what_changes(x, t):
    for k in range(len(x)):
        if x[k] > t:
            return t, abs(k)
        t = -x.max()


def names_it_at_the_exit(x, t):
    for k in range(len(x)):
        if x[k] > t:
            found = k * t
            break
        t = -x.max()
    else:
        found = 3.0
    return found


def counts_by_itself(x, t):
    k = 0
    while True:
        if x[k] > t or k > 6:
            return k, t * x
        t = -x.max()
        k += 1


def a_number_and_then_a_product(x, t):
    c, k = t, 0
    while True:
        c, t = t, len(x) * 1000003
        if k >= 4 or 1 <= float(c):
            break
        k += 1
    return c, k


@pytest.mark.parametrize("t", [1.0, -3.0, 2, np.float64(2.0), np.int64(2)])
@pytest.mark.parametrize("fn", [returns_what_changes, names_it_at_the_exit, counts_by_itself, a_number_and_then_a_product])
@pytest.mark.parametrize("backend", ["interp", "c"])
def test_the_first_iteration_may_end_the_loop(fn, t, backend):
    """Code after the loop reads its values, which are of another type than those of later iterations."""
    compiled = cinductor.compile(fn, backend=backend)
    for first in (0, 3, 0, 3, 5):
        x = np.where(np.arange(8) == first, 1.5, -5.0)
        assert repr(compiled(x, t)) == repr(fn(x, t))


def exchanged(x, n):
    a, b, c = x.copy(), x.copy(), x * 2
    for _ in range(1, n):
        a, b, c = b, c, a
    print(end="", flush=True)
    return b, a, x


def exchanged_after_a_break(x, n):
    print(end="", flush=True)
    a, b = x * 2, x.copy()
    for _ in range(1, n):
        a, b = b, a
    return a, b


@pytest.mark.parametrize("fn", [exchanged, exchanged_after_a_break])
@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("backend", ["interp", "c"])
def test_arrays_that_a_loop_exchanges_are_returned(fn, dynamic, backend):
    compiled = cinductor.compile(fn, backend=backend, dynamic=dynamic)
    for n in (5, 5, 6, 3, 1, 2, 9):
        x = np.arange(4.0)
        assert repr(compiled(x, n)) == repr(fn(x, n))
