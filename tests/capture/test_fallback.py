"""Tests calls that continue in NumPy after many breaks: the pieces compiled until then are kept."""

import functools
import warnings

import numpy as np
import pytest

import cinductor
from cinductor.calls import budget
from cinductor.capture import call_state as fallback
from cinductor.capture import session
from cinductor.testing import assert_same, check


def needleman(a, b, gap=-2):
    """Alignment by a table, then the path back through it: its steps depend on data and are kept in a list."""
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=np.int32)
    table[:, 0] = gap * np.arange(n + 1)
    table[0, :] = gap * np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = 1 if a[i - 1] == b[j - 1] else -1
            table[i, j] = max(table[i - 1, j - 1] + s, table[i - 1, j] + gap, table[i, j - 1] + gap)
    i, j, out = n, m, []
    while i > 0 or j > 0:
        print(end="", flush=True)  # a statement that Python runs
        s = 1 if i > 0 and j > 0 and a[i - 1] == b[j - 1] else -1
        if i > 0 and j > 0 and table[i, j] == table[i - 1, j - 1] + s:
            out.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif i > 0 and table[i, j] == table[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return table, out[::-1]


def sequences(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, n), rng.integers(0, 4, n + 3)


@pytest.fixture
def fallen(monkeypatch):
    """How often a call continued in NumPy. Functions are not split at their breaks; otherwise only the first call
    would continue in NumPy.
    """
    times = []
    monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)

    def noted(stage, fall_back=fallback.fall_back):
        times.append(len(stage.tracer.breaks))
        fall_back(stage)

    monkeypatch.setattr(fallback, "fall_back", noted)
    return times


def test_the_table_is_compiled_and_the_way_back_is_numpys(fallen, calls_are_captured):
    fn = cinductor.compile(needleman)
    for _ in range(3):
        assert_same(fn(*sequences(60)), needleman(*sequences(60)))
    assert len(fallen) == 3
    assert fallen[0] >= budget.MANY_RUNS and fallen[1] < 5  # later calls start with the decision
    assert fn._cinductor_job.last.flushes < 5


def test_nothing_worth_while_was_compiled(fallen):
    """The call is restarted in NumPy."""

    def steps(a, n):
        found = 0
        for i in range(n):
            a[i % 5] += 1
            if len(f"{a[1]}") > 3:
                found += 1
        return found

    fn = cinductor.compile(steps)
    for _ in range(2):
        ours, theirs = np.zeros(5), np.zeros(5)
        assert fn(ours, 100) == steps(theirs, 100)
        assert_same(ours, theirs)
    job = fn._cinductor_job
    assert not fallen and job.captures == 1 and len(job.last.breaks) == budget.MANY_RUNS


def body(x, n, act):
    """Work worth compiling, then many small steps."""
    for i in range(1, len(x)):
        x[i] = x[i] + x[i - 1]
    y, held, pairs = x * 2, x[1:4], []
    table = {"x": x, "rows": [y, held]}

    def inner(k):
        nonlocal y
        y = y + act(table["rows"][1], k)
        return y[k % 4]

    total = x.sum()
    for k in range(n):
        print(end="", flush=True)
        held[k % 3] += 1
        pairs.append((k, inner(k), [x[k % 5], total]))
        total = total + x[0]
    return x, y, held, pairs, table, total


def test_names_cells_containers_and_views(fallen):
    fn = cinductor.compile(functools.partial(body, act=lambda row, k: row[k % 3] * 0.5))
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 100, 40).astype(float)
        ours, theirs = x.copy(), x.copy()
        got = fn(ours, 40)
        want = body(theirs, 40, lambda row, k: row[k % 3] * 0.5)
        assert_same(ours, theirs)
        assert_same(got[:4], want[:4])
        assert_same(got[5], want[5])
        assert got[0] is ours and got[2].base is ours and got[4]["x"] is ours
        assert got[4]["rows"][1] is got[2]
    assert fallen


def test_branches_are_little_work_too(fallen, calls_are_captured):
    def counted(x):
        for i in range(1, len(x)):
            x[i] = max(x[i], x[i - 1])
        low = high = 0.0
        for k in range(100):
            print(end="", flush=True)
            if x[k % 7] > k:
                low += x[k % 5]
            else:
                high += x[k % 3]
        return low, high

    fn = cinductor.compile(counted)
    for _ in range(2):
        assert_same(fn(np.arange(400.0)), counted(np.arange(400.0)))
    assert len(fallen) == 2


def test_loops_that_python_runs_from_the_start(fallen, monkeypatch, calls_are_captured):
    """A call whose loops could not be captured is captured again without regions."""

    def no_regions(job, args, way, allowance, begin=session.begin):
        return begin(job, args, way._replace(regions=False), allowance)

    def searched(x):
        big, small, k = np.sort(np.repeat(x, 3000)), x.copy(), 0
        while small[k % 7] < 100 and k < 60:
            print(end="", flush=True)
            small[k % 5] += k
            k += 1
        return big[::999], small, k

    monkeypatch.setattr(session, "begin", no_regions)
    fn = cinductor.compile(searched)
    for _ in range(2):
        assert_same(fn(np.arange(40.0)), searched(np.arange(40.0)))
    assert len(fallen) == 2


def test_an_exception_in_the_rest(fallen):
    """Effects before it stay, as in Python."""

    def failing(x, log):
        for i in range(1, len(x)):
            x[i] += x[i - 1]
        for k in range(100):
            print(end="", flush=True)
            x[k] = -1
            log.append((k, x[k : k + 2]))
        return x

    fn = cinductor.compile(failing)
    for _ in range(2):
        ours, theirs = np.ones(50), np.ones(50)
        with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
            fn(ours, our_log := [])
        with pytest.raises(IndexError):
            failing(theirs, their_log := [])
        assert_same(ours, theirs)
        assert_same(our_log, their_log)
        assert all(view.base is ours for _, view in our_log)


def test_callers_and_loops_around_go_on_too(fallen):
    def step(x, k):
        found = []
        for j in range(30):
            print(end="", flush=True)
            found.append(x[j] + k)
        return found

    def outer(x, rounds):
        every = []
        for i in range(1, len(x)):
            x[i] = x[i] * 0.5 + x[i - 1]
        for row, k in zip(x.reshape(4, -1), range(rounds), strict=False):
            every += step(x, k) + [row, row.sum()]
        return [v for v in x], every

    fn = cinductor.compile(outer)
    for n in (40, 80):
        ours, theirs = np.ones(n), np.ones(n)
        assert_same(fn(ours, 3), outer(theirs, 3))
        assert_same(ours, theirs)
    assert fallen


def test_numpys_warnings_of_the_rest(fallen):
    def noisy(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1] * 0.5
        found = []
        with np.errstate(over="ignore"):
            for k in range(60):
                print(end="", flush=True)
                found.append(x[k % 7] / (k - 50) * 1e308)
        return found

    fn = cinductor.compile(noisy)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            got = fn(np.ones(40))
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            want = noisy(np.ones(40))
        assert_same(got, want)
        assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]
    assert fallen


def test_explain_says_so():
    report = cinductor.explain(needleman, *sequences(60))
    assert "the rest of the call runs in NumPy" in report.breaks[-1].reason


def test_calls_that_are_not_split_pay_for_the_next_capture(fallen, calls_take_a_microsecond):
    fn = cinductor.compile(needleman)
    for _ in range(4):
        assert_same(fn(*sequences(60)), needleman(*sequences(60)))
    job, (account,) = fn._cinductor_job, fn.accounts()
    assert job.captures == 1 and account.due == job.economy.price and job.reasons_for_numpy(fn)
    account.spent = account.due
    assert_same(fn(*sequences(60)), needleman(*sequences(60)))
    assert job.captures == 2 and account.due == job.economy.price


def first_above(v, limit):
    for i in range(len(v)):
        if v[i] > limit:
            return i
    return -1


def looks_again(v):
    found = []
    for k in range(40):
        found.append(first_above(v, k * 0.5))
        print(end="", flush=True)
    return found


def test_symbols_of_data_have_no_names_of_their_own(monkeypatch):
    """The piece of each iteration uses a new symbol for its count, but all are one program."""
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    v = np.arange(1 << 18) / 4
    with warnings.catch_warnings():
        warnings.simplefilter("error", cinductor.CinductorWarning)  # many different pieces give a warning
        fn = cinductor.compile(looks_again, backend="c", options={"recompile_limit": 1})
        assert fn(v) == fn(v) == looks_again(v)
    assert "the rest of the call" not in fn._cinductor_job.last.breaks[-1].reason


@pytest.mark.parametrize("dynamic", [False, True])
def test_little_loops_are_little_work(fallen, dynamic, monkeypatch):
    """A loop of few iterations costs less than a break, whether their number is a constant or a size."""

    def program(v):
        for i in range(1, len(v)):
            v[i] += v[i - 1] * 0.5
        return looks_again(v), v

    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    fn = cinductor.compile(program, backend="interp", dynamic=dynamic)
    assert_same(fn(np.arange(20.0)), program(np.arange(20.0)))
    assert fallen or "little work" in fn._cinductor_job.why


def pieces_of(x):
    for i in range(len(x)):
        yield x[i : i + 1], i


def in_a_generator(x):
    out = np.zeros(len(x))
    for part, i in pieces_of(x):
        out[i] = part.sum() * 2
    return out


def after_it(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = float(x[i:].max()) + abs(x).sum()
    return out


def one_in_the_other(x):
    """The global `after_it` is read before the inner call makes the rest of the outer call run in NumPy."""
    return after_it(in_a_generator(x) + 1)


def test_nothing_is_traced_after_the_call_that_falls_back():
    x = np.random.default_rng(0).random(60)
    report = cinductor.explain(one_in_the_other, x)
    lines = range(after_it.__code__.co_firstlineno, one_in_the_other.__code__.co_firstlineno)
    assert any("the rest of the call runs in NumPy" in b.reason for b in report.breaks)
    assert [b.reason for b in report.breaks if b.line in lines] == []
    compiled = cinductor.compile(one_in_the_other, backend="interp")
    for _ in range(6):
        assert np.array_equal(compiled(x), one_in_the_other(x))


def rows_of_an_argument(b, M):
    for v in M.T:
        for _ in b:
            v[:] = 2
            b[1] += 1


def rows_of_a_generator(b, M):
    for v in (row for row in M.T):
        for _ in b:
            v[:] = 2
            b[1] += 1


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [rows_of_an_argument, rows_of_a_generator])
def test_writes_are_in_order_when_numpy_runs_the_rest(fn, backend):
    """The arguments overlap, so each write is a break, and after some NumPy runs the rest; the outer loop is unrolled."""
    compiled = cinductor.compile(fn, backend=backend)
    for n in (16, 5, 16):
        M, N = np.ones((n, 3)), np.ones((n, 3))
        compiled(M[:, 2], M)
        fn(N[:, 2], N)
        assert np.array_equal(M, N)


def steps_down(x, y, q, m):
    """The last class of s is known after the first iteration, so that one is peeled off; its breaks are many."""
    s = trip = 0
    while (y > s).any():
        trip += 1
        left = 0
        while left < m:
            left += 1
            c, s = divmod(0, q.sum())
            j = 2 if y[:c].copy().min(initial=9.0) else 3
        x[trip] *= j
    return x, s


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("size", [5, 9, 20])
def test_a_peeled_iteration_that_falls_back(size, backend):
    """Nothing could be undone after it, but the loop was captured: its next iteration ran twice."""
    y, q = np.arange(-4.0, 5), np.array([-3, 4, -2])
    compiled = cinductor.compile(steps_down, backend=backend)
    for m in (9, 4, 9):
        check(steps_down, np.arange(1.0, size), y, q, m, compiled=compiled)
