"""Tests that loops and branches become regions of the graph: right, captured whole, and with a graph whose size does
not depend on the number of iterations.
"""

import copy

import cases
import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.capture.control import carry
from cinductor.capture.control.phi import Phi, make_region


def check(fn, *args, backend="interp", calls=2):
    """Compile fn and call it with copies of the arguments; it must be captured whole and equal NumPy. Return the
    compiled function.
    """
    compiled = cinductor.compile(fn, fullgraph=True, backend=backend)
    for _ in range(calls):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        same(outcome(compiled, ours), outcome(fn, theirs))
        same(ours, theirs)
    return compiled


def outcome(fn, args):
    try:
        return fn(*args)
    except Exception as error:
        return type(error), str(error)


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
    elif isinstance(want, dict):
        same([*got.items()], [*want.items()])
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want or got != got


def nodes(fn, *args):
    compiled = cinductor.compile(fn, fullgraph=True, backend="interp", dynamic=False)
    compiled(*copy.deepcopy(args))
    return compiled._cinductor_job.last.info["nodes"]


# --- programs -----------------------------------------------------------------------------------------------

CASES = []
case = cases.entering(CASES)


X = np.arange(20.0) - 4


@case(X)
def sum_of_elements(x):
    s = 0
    for i in range(len(x)):
        s += x[i]
    return s


@case(X, np.zeros(20))
def writes_elements(x, y):
    for i in range(20):
        y[i] = x[i] * 2
    return y


@case(X / 9)
@case(X[:1])
@case(X + 100)
def sum_of_small_pairs(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            if x[j] > 0.5:
                continue
            total += x[i] * x[j]
    return total


@case(X)
def largest(x):
    m = x[0]
    for v in x:
        if v > m:
            m = v
    return m


@case(np.float64(100.0))
def halves(x):
    n = 0
    while x > 1e-3:
        x = x / 2
        n += 1
    return x, n


@case(np.arange(10.0), np.zeros(10), 21)
def two_buffers(a, b, steps):
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[2:]) * 0.5
        a, b = b, a
    return a, b


@case(np.ones(3), np.arange(3.0))
@case(-np.ones(3), np.arange(3.0) + 9)
@case(-np.ones(3), np.arange(3.0) - 9)
def three_arms(x, y):
    if x.sum() > 0:
        z = y * 2
        y[0] = 5
        k = 1
    elif y[1] > 3:
        z = y + 1
        k = 2
    else:
        z = y.copy()
        k = 3
    return z, k


@case(X)
@case(X - 100)
def early_return(x):
    for i in range(len(x)):
        if x[i] > 10:
            return i
    return -1


@case(np.eye(12) * 2 + np.tri(12), np.arange(12.0))
def triangle(a, b):
    n = len(b)
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return x


@case(np.arange(5.0), np.ones(2), np.zeros(2))
@case(np.arange(5.0), np.zeros(2), np.ones(2))
@case(np.arange(5.0) + 9, np.ones(2), np.ones(2))
def lazy_operands(x, a, b):
    y = x[0] if a[0] > b[0] else x[1]
    if a[0] > 0 and b[0] > 0 or x[0] > 4:
        y = y + 1
    return max(y, x[2])


@case(np.arange(5.0))
def until_small(x):
    n = 0
    while True:
        x = x * 0.5
        n += 1
        if x.max() < 0.1:
            break
    return x, n


@case(np.arange(3.0))
@case(np.arange(3.0) - 1)
def raises(x):
    if x[0] < 0:
        raise ValueError("negative")
    return np.sqrt(x)


@case(np.arange(4.0))
@case(np.arange(4.0) - 9)
def bound_on_one_path(x):
    if x.sum() > 0:
        y = x + 1
    return y


@case(X)
def last_of_everything(x):
    for i, v in enumerate(x):
        row = x[i:]
        double = v * 2
    return i, v, double, row.sum()


@case(X)
def skips_and_stops(x):
    total, seen = x[0], 0
    for v in x:
        if v < 0:
            continue
        if v > 12:
            break
        total += v
        seen += 1
    else:
        seen = -1
    return total, seen


@case(np.arange(12.0), 3)
def python_numbers(x, k):
    a, b, t = 1, 0.5, 0.0
    for i in range(12):
        a += k
        t += b * i
        x[i] += a
    return x, a, t


@case(X)
@case(-np.abs(X) - 1)
@case(X.astype(np.float32))
def sum_of_some(x):
    total = 0.0
    for v in x:
        if v > 0:
            total += v
    return total


@case(X)
@case(-np.abs(X))
def running_extremes(x):
    most, least, k = 0.0, np.inf, 0
    for i in range(len(x)):
        most = max(most, abs(x[i]))
        if x[i] < least:
            least = x[i]
            k = i
    return most, least, k


@case(X)
@case(-X)
def gain(x):
    g = 1.0
    if x[0] > 0:
        g = x[0] * 2
    return x * g, (g + 1) / 2


@case(X)
def a_first_iteration_of_its_own_in_a_loop_that_is_come_to_again(x):
    total, seen = 0.0, []
    for _ in range(2):
        for v in x:
            total += np.sum(x)
            if v > 1e9:
                break
        seen.append(total)
    return seen


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn, args", CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)])
def test_programs(fn, args, backend):
    check(fn, *args, backend=backend)


# --- the size of graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", [sum_of_elements, largest, early_return, skips_and_stops, last_of_everything])
def test_size_does_not_depend_on_iterations(fn):
    assert nodes(fn, np.arange(9.0)) == nodes(fn, np.arange(1000.0))


@pytest.fixture
def runs(monkeypatch):
    """The loops whose bodies were run, once for each run."""
    found, count = [], carry.Carried.count_run
    monkeypatch.setattr(carry.Carried, "count_run", lambda self: (found.append(self.loop.site.line), count(self)))
    return found


def test_a_loop_expects_what_its_source_shows(runs):
    """Its body runs once, because the first run knows which arrays are written, and that a jump may end the loop."""
    def prefix(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]
        return x

    def in_place(x, y):
        for i in range(len(y)):
            x += y[i]
        return x

    def rows(x):
        for i in range(1, len(x)):
            x[i][0] = x[i - 1][0] + 1
        return x

    def until(x):
        for i in range(len(x)):
            x[i] *= 2
            if x[i] > 8:
                break
        return x

    def first_above(x):
        for i in range(len(x)):
            if x[i] > 3:
                return i

    cases = [(prefix, (X,)), (in_place, (X, X)), (rows, (X.reshape(10, 2),)), (until, (X,)), (first_above, (X,))]
    for number, (fn, args) in enumerate(cases):
        check(fn, *args, calls=1)
        assert len(runs) == number + 1, fn


def test_what_a_loop_does_not_write_to_is_not_carried(runs):
    """A loop may store in a branch that its arguments decide, or in an array that it makes itself."""
    def never(x, y):
        total = 0.0
        for i in range(len(x)):
            if y is None:
                x[i] = 0
            total = total + x[i]
        return total

    def of_its_own(x):
        total = 0.0
        for i in range(len(x)):
            y = x * i
            y[0] = 3
            total = total + y.sum()
        return total

    def by_chance(x):
        for i in range(len(x)):
            if x[i] < 0:
                x[i] = 0
        return x

    def never_ends(x, most):
        total = 0.0
        for i in range(len(x)):
            if len(x) > most:
                break
            total = total + x[i]
        return total

    for fn, args in ((never, (X, 1)), (of_its_own, (X,)), (never_ends, (X, 100))):
        program = check(fn, *args).specializations[0].program
        assert not program.writes and " while" not in program.text("graph")
        assert len(runs) == (3 if fn is never_ends else 2)
        runs.clear()
    assert check(by_chance, X).specializations[0].program.writes and len(runs) == 1


def test_nests_cost_a_sum(runs):
    """Each outer loop traces its body a few times, because the results of inner searches are remembered."""
    def quiet(x):
        for a in range(9):
            for b in range(9):
                for c in range(9):
                    for d in range(9):
                        for e in range(9):
                            x[a] += x[b] * x[c] - x[d] / x[e]
        return x

    assert nodes(quiet, np.ones(9)) < 100
    assert len(runs) == 5


# --- kernels of regions ---------------------------------------------------------------------------------------


def test_going_back_leaves_no_trace():
    tracer = _core.Tracer("f", options={}, backend="interp")
    real = np.arange(4.0)
    x = tracer.array(real, 0)
    kept = x + 1
    mark = tracer.mark()
    x[1:] = kept[1:] * 2
    assert [t.storage for t in mark.written()] == [x.storage]
    dead = x * 3
    mark.restore()
    assert mark.written() == []
    with pytest.raises(_core.RegionBreak):
        dead + 1
    tracer.flush()
    np.testing.assert_array_equal(real, np.arange(4.0))
    np.testing.assert_array_equal(kept.materialise(), np.arange(4.0) + 1)
    assert not mark.is_valid


def test_a_block_is_built_apart():
    tracer = _core.Tracer("f", options={}, backend="interp")
    real = np.arange(4.0)
    x = tracer.array(real, 0)
    mark = tracer.mark()
    block = tracer.block()
    index = block.index(4)
    block.bind(x)
    x[index] += 1
    with pytest.raises(_core.RegionBreak):
        float(x[0])
    assert block.work and tracer.in_region
    block.result(x)
    block.close()
    mark.restore()
    (after,) = tracer.region("for", (block,), (x,), ("array",))
    x.set_version(after)
    tracer.flush()
    np.testing.assert_array_equal(real, np.arange(4.0) + 1)


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("first", [0, 1])
def test_blocks_that_die_open(backend, first):
    """Later nodes are built in the block around them, and cannot use their values."""
    tracer = _core.Tracer("f", options={}, backend=backend)
    x = tracer.array(np.arange(4.0), 0)
    blocks = [tracer.block()]
    inside = [x + 1]
    blocks.append(tracer.block())
    inside.append(x + 2)
    del blocks[first]
    assert tracer.in_region
    del blocks[0]
    assert not tracer.in_region
    for value in inside:
        with pytest.raises(_core.RegionBreak):
            value * 2
    after = x * 3
    tracer.flush()
    np.testing.assert_array_equal(after.materialise(), np.arange(4.0) * 3)


def test_explain_says_what_became_of_loops():
    def f(x):
        for i in range(len(x)):
            x[i] += 1
        for name in range(20):
            str(name)
            x[0] += 1
        return x

    report = cinductor.explain(f, np.zeros(12))
    assert any("for captured" in line for line in report.regions)
    assert any("one copy of its body for each iteration: a concrete value is needed by str()" in line for line in report.regions)
    assert all(__file__ in line for line in report.regions)


def test_a_peeled_iteration():
    """The first iteration turns ints into floats; the others are one region. They were once unrolled."""

    def loop(x, n):
        for _ in range(n):
            x = x * 0.5
        return x

    def until(x, tolerance):
        error = 10.0
        while error > tolerance:
            x = x * 0.5
            error = np.abs(x).max()
        return x

    check(loop, np.arange(5), 20)
    check(until, np.arange(5), 0.1)
    assert nodes(loop, np.arange(5), 30) == nodes(loop, np.arange(5), 500)


def late(x, mode):
    """A chain of tests, of which only later ones read the array."""
    if mode == "double":
        y = x * 2
    elif x[0] > 0:
        y = x + 1
    elif mode == "minus":
        y = -x
    elif x[1] > 0:
        y = x - 1
    else:
        y = x.copy()
    return y


def late_in_a_loop(x):
    """The neighbours of an element with wrap-around: the first test is false for the last element."""

    def wrapped(v, n):
        if v < 0:
            return v + n
        elif v < n:
            return v
        else:
            return v - n

    n, y = len(x), np.zeros(len(x))
    for i in range(n):
        for k in range(i - 1, i + 2):
            y[i] += x[wrapped(k, n)] * (k - i + 2)
    return y


def late_and_raising(x, mode):
    """One of the later branches raises."""
    if mode:
        x = x * 2
    elif x.sum() > 0:
        x = x + 1
    elif x.min() < -5:
        raise ValueError("too small")
    return x * 3


@pytest.mark.parametrize("mode", ["double", "minus", "none"])
def test_a_first_test_that_is_known_hides_no_later_one(mode):
    """Every test after one that is false without reading the array once became a break."""
    for x in ([1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0]):
        check(late, np.array(x), mode)


def test_wrapped_neighbours_are_one_loop():
    report = cinductor.explain(cinductor.compile(late_in_a_loop, backend="interp"), np.arange(30.0))
    assert not any("one iteration at a time" in line for line in report.regions), report
    for n in (0, 1, 2, 30):
        check(late_in_a_loop, np.arange(1.0, n + 1))


def test_a_later_arm_that_raises():
    for x in ([1.0, 2.0], [-1.0, 0.5], [-9.0, 2.0]):
        for mode in (False, True):
            check(late_and_raising, np.array(x), mode)


def test_a_later_arm_that_python_must_run(capsys):
    def fn(x, mode):
        if mode:
            return x
        elif x[0] > 0:
            print("positive")
            x = x + 1
        elif x[1] > 0:
            x = x - 1
        return x * 2

    compiled = cinductor.compile(fn, backend="interp")
    for x in ([1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0]):
        for _ in range(2):
            same(compiled(np.array(x), False), fn(np.array(x), False))
            assert capsys.readouterr().out == "positive\n" * (2 * (x[0] > 0))


def test_a_loop_that_hands_on_a_long_list():
    """Looking up a carried value must not take time linear in their number."""

    def turned(x, count):
        out, s = [3.0, 1.0, 2.0] * count, 0.0
        while s < x.sum() + 3:
            s += 1 + abs(out.reverse() or out[0])
        return s, out

    x = np.arange(4.0) / 8
    for count, how in ((4, "captured"), (300, "carries more than")):
        compiled = cinductor.compile(turned, backend="interp", dynamic=False)
        for _ in range(2):
            same(compiled(x, count), turned(x, count))
        assert how in str(cinductor.explain(compiled, x, count))


class Recorder:
    """A tracer that numbers the regions and carried values instead of making them."""

    def region(self, op, blocks, operands, kinds):
        self.seen = op, operands, kinds
        return tuple(range(len(kinds)))


class Wide(Phi):
    def __init__(self, *names):
        self.names = names

    def operands(self, tracer):
        return [*self.names]

    def kinds(self, operands):
        return ["array" for _ in self.names]


def test_each_phi_is_given_its_own():
    """Each phi gets its own positions; the branches of an `if` start with only the condition."""
    tracer, phis = Recorder(), [Wide("a"), Wide(), Wide("b", "c"), Wide("d")]
    make_region(tracer, "for", (), phis)
    assert tracer.seen == ("for", ("a", "b", "c", "d"), ("array",) * 4)
    assert [phi.made for phi in phis] == [[0], [], [1, 2], [3]]
    make_region(tracer, "if", (), phis, "condition")
    assert tracer.seen[1] == ("condition",) and [phi.made for phi in phis] == [[0], [], [1, 2], [3]]


def test_a_loop_without_end_in_an_arm_that_is_not_taken():
    """Capture runs it, and gives the branch up after a number of iterations."""

    def f(x, n):
        count = 1
        if x[0] > 0:
            y = x + 1
        elif n != 8:
            y = x
            for _ in range(3):
                for _ in range(count):
                    count += 10**4
        else:
            y = x - 1
        return y * 2, count

    compiled = cinductor.compile(f, options={"capture_limit": float("inf")})
    for _ in range(3):
        made, count = compiled(np.ones(5), 3)
        assert made.tolist() == [4.0] * 5 and count == 1
    assert "more than 100000 iterations" in str(compiled.explain(np.ones(5), 3).full())
