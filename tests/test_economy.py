"""Captures and builds wait until calls in NumPy have paid for them: the law, with a clock that tests step."""

import numpy as np
import pytest

import cinductor
from cinductor import budget
from cinductor.bound import seconds_of
from cinductor.capture.stage import Stage

X = np.linspace(0.0, 1.0, 50)


@pytest.fixture(autouse=True)
def auto():
    """The mode that users have."""
    with cinductor.config.patch(economy="auto"):
        yield


@pytest.fixture
def clock(monkeypatch):
    """What calls in NumPy take: each step is as long as the test says."""

    class Clock:
        now, step = 0.0, 0.0

        def __call__(self):
            self.now += self.step
            return self.now

    made = Clock()
    monkeypatch.setattr(budget.Race, "clock", staticmethod(made))
    return made


def broken(x, n):
    y = x * 2 + 1
    print(end="")
    return (y - n).sum()


def is_same(got, want):
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def built():
    """Objects that a compiler has made for this process."""
    return cinductor.cache.info()["misses"]


def test_pieces_are_built_when_calls_have_paid(clock, monkeypatch):
    monkeypatch.setattr("cinductor.budget.LITTLE_WORK", 0)
    compiled, before = cinductor.compile(broken), built()
    job = compiled._cinductor_job
    clock.step = 1e-3
    for _ in range(6):
        is_same(compiled(X, 0.5), broken(X, 0.5))
    assert job.captures == 1 and built() == before
    (race,) = job.budget.races.values()
    assert race.is_paying and race.spent == pytest.approx(5e-3)
    clock.step = race.due
    is_same(compiled(X, 0.5), broken(X, 0.5))
    assert not race.is_paying
    for _ in range(4):
        is_same(compiled(X, 0.5), broken(X, 0.5))
    assert built() > before


@pytest.mark.parametrize("size", [50, 1 << 22])
def test_a_piece_is_built_at_once_where_its_run_takes_longer(clock, size):
    def fn(x):
        print(end="")
        return np.exp(x) + x * 1.5

    x = np.linspace(0.0, 1.0, size)
    compiled = cinductor.compile(fn, options={"numerics": "exact"})
    is_same(compiled(x), fn(x))
    last = compiled._cinductor_job.last
    assert (last.unbuilt == 0) == (last.plain >= 1e-3 * last.info["build_ms"])
    assert size > 50 or last.unbuilt > 0


def test_new_kinds_pay_where_captures_have_failed(clock):
    compiled = cinductor.compile(broken)
    clock.step = 1e-3
    for k in range(1, 9):
        x = np.arange(float(1 << k))
        is_same(compiled(x, 0.5), broken(x, 0.5))
    assert compiled._cinductor_job.captures == 1


def test_each_capture_that_fails_is_four_times_dearer():
    made = budget.Budget()
    prices = []
    for _ in range(3):
        made.note_capture(False)
        prices.append(made.price)
    assert prices == [budget.PRICE * budget.BACKOFF**k for k in range(3)]
    made.note_capture(True)
    assert made.price == prices[1]
    for _ in range(5):
        made.note_capture(True)
    assert made.price == 0


@pytest.fixture
def slow(monkeypatch):
    """Captures whose own work takes a millisecond at each look at the clock."""
    now = 0.0

    def clock():
        nonlocal now
        now += 1e-3
        return now

    monkeypatch.setattr(Stage, "clock", staticmethod(clock))


def many_calls(x):
    def one(x):
        return x * 1.5

    for _ in range(6):
        x = one(one(one(one(one(one(one(x)))))))
        x = one(one(one(one(one(one(one(x)))))))
        x = one(one(one(one(one(one(one(x)))))))
    return x


def test_a_capture_takes_no_longer_than_was_paid(slow, clock, monkeypatch):
    """NumPy answers until it is paid for; then the whole is compiled, with the same bits."""
    monkeypatch.setattr("cinductor.budget.PRICE", 0.02)
    compiled = cinductor.compile(many_calls)
    job = compiled._cinductor_job
    clock.step = 1.0
    is_same(compiled(X), many_calls(X))
    assert not compiled.specializations and "paid for" in job.why
    assert not job.budget.plain and not job.warned
    is_same(compiled(X), many_calls(X))
    is_same(compiled(X), many_calls(X))
    assert job.captures == 2 and compiled.specializations
    assert job.budget.failures == 0


def test_what_a_capture_may_take():
    def allowance(most, spent, bound=0.0):
        return budget.Allowance(most, spent, lambda: bound)

    assert allowance(0.5, None).left(True) == 0.5
    assert allowance(0.5, 0.0).left(True) == budget.PRICE
    assert allowance(0.5, 0.2).left(True) == 0.2
    assert allowance(0.5, 3.0).left(True) == 0.25  # another attempt has as much
    made = allowance(0.5, 0.0, bound=0.3)
    assert made.raise_by_bound() and made.left(False) == 0.3
    made.used = 0.1
    assert made.left(False) == pytest.approx(0.2) and not made.raise_by_bound()
    assert not allowance(0.5, None, bound=1.0).raise_by_bound()


def test_now_waits_for_nothing(clock, monkeypatch):
    monkeypatch.setattr("cinductor.budget.LITTLE_WORK", 0)
    compiled = cinductor.compile(broken, mode="now")
    assert not compiled._cinductor_job.pays
    clock.step = 1e-3
    compiled(X, 0.5)
    assert not any(race.is_paying for race in compiled._cinductor_job.budget.races.values())
    compiled = cinductor.compile(broken)
    compiled(X, 0.5)
    assert "another capture pays" in str(cinductor.stats()["functions"]["broken"]["numpy"])
    for settings in (dict(fullgraph=True), dict(options={"numerics": "close"})):
        assert not cinductor.compile(broken, **settings)._cinductor_job.pays


def test_the_bound_follows_loops_and_sizes():
    def straight(x):
        return x + 1

    def loop(n):
        s = 0
        for k in range(n):
            s += k
        return s

    def loops(n):
        s = 0
        for _ in range(n):
            for j in range(n):
                s += j
        return s

    assert seconds_of(straight, (1,)) < 1e-5
    assert seconds_of(loop, (10**6,)) > 0.02 > seconds_of(loop, (10,))
    assert seconds_of(loops, (10**4,)) > 100 * seconds_of(loop, (10**4,))
    assert seconds_of(straight, (np.zeros(10**8),)) > 0.02
    assert seconds_of(len, ()) == 0


def test_estimates_follow_the_work():
    """In the report, of a capture; not how long it is, but how it grows."""

    def fn(x):
        return np.exp(x) + x

    small, large = (cinductor.explain(fn, np.ones(n)).timings for n in (100, 10**6))
    assert large["plain_ms"] > 100 * small["plain_ms"] > 0
    assert large["build_ms"] == pytest.approx(small["build_ms"], rel=0.5)
