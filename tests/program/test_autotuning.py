"""Tests autotuning of plans: max_autotune, benchmark_fusion, multi_kernel.

A fake clock sets the time of each plan, and so decides which one wins; nothing is really timed.
"""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import programs
import pytest
from race_plans import alternatives

import cinductor
from cinductor import _core
from cinductor.builds import background, racing

RNG = np.random.default_rng(5)
X, Y = RNG.random((64, 96)), RNG.random((64, 96))
MODE = "max-autotune-no-cudagraphs"
MANY = 400  # calls, enough to decide any trial here


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def scaled(x, y):
    return np.maximum(x * y + 1, 0) * 0.5 + x


@pytest.fixture(autouse=True)
def no_test_knows_of_another(monkeypatch, request):
    """Winners are stored per kind of machine, so they are cleared between tests."""
    monkeypatch.setattr(racing, "_machine", [request.node.name])
    yield
    racing.beside.wait()


@pytest.fixture
def clock():
    """The time of a call of each plan: a dict by names, or by names and classes (default 1000); and a dict that
    counts the timed calls.
    """
    said, asked = {}, {}

    def take(name, number):
        asked[name] = asked.get(name, 0) + 1
        return said.get((name, number), said.get(name, 1000))

    _core.set_autotune_clock(take)
    yield said, asked
    _core.set_autotune_clock(None)


def begun(fn, *args, **settings):
    """A compiled function whose alternatives are built."""
    compiled = cinductor.compile(fn, **({"mode": MODE} | settings))
    compiled(*args)
    compiled(*args)
    racing.beside.wait()
    return compiled


def race(compiled):
    return racing.race_of(compiled.specializations[0])


def run(compiled, *args, calls=MANY):
    """Call until the winner is decided. All calls give NumPy's bits."""
    expected = compiled.__wrapped__(*args)
    for _ in range(calls):
        np.testing.assert_array_equal(compiled(*args), expected)
        if race(compiled).classes[-1].winner is not None:
            break
    return race(compiled).classes[-1].winner


def names(compiled):
    return [plan.name for plan in race(compiled).plans]


# --- who wins -------------------------------------------------------------------------------------


def test_the_first_calls_wait_for_nothing():
    compiled = cinductor.compile(softmax, mode=MODE)
    compiled(X)
    assert race(compiled) is None and compiled.specializations[0].hits == 0
    racing.beside.wait()
    assert race(compiled) is None  # one call does not justify a build
    compiled(X)
    racing.beside.wait()
    assert race(compiled).plans[0] == ("default", None) and len(race(compiled).plans) > 2


def test_the_fastest_answers(clock):
    said, asked = clock
    compiled = begun(softmax, X)
    said["apart=1"] = 700
    assert run(compiled, X) == "apart=1"
    (heat,) = race(compiled).classes
    counts = dict(asked)
    run(compiled, X, calls=20)
    assert asked == counts  # no more calls are timed
    assert heat.times["apart=1"] == (9, pytest.approx(7e-7)) and heat.times["default"] == (9, pytest.approx(1e-6))


def test_the_winner_is_compared_with_numpy(clock):
    """NumPy is a candidate of max_autotune where it has the same bits."""
    compiled = begun(scaled, X, Y)
    (specialization,) = compiled.specializations
    assert specialization.is_trying and compiled.plain_calls == 0  # not while plans are raced
    run(compiled, X, Y)
    assert compiled.plain_calls == 0
    for _ in range(60):
        np.testing.assert_array_equal(compiled(X, Y), scaled(X, Y))
    assert not specialization.is_trying


def test_a_little_better_is_not_enough(clock):
    said, _ = clock
    compiled = begun(softmax, X)
    said.update(dict.fromkeys(names(compiled), 970), default=1000)
    assert run(compiled, X) == "default"


def test_the_best_runs_against_the_default_once_more(clock):
    """A plan that was fast by chance loses the final comparison with the default."""
    said, asked = clock
    compiled = begun(softmax, X)
    said["apart=1"] = 700
    while asked.get("apart=1", 0) < 10:  # a single call is no result, nine are
        compiled(X)
    said["apart=1"] = 1100
    assert run(compiled, X) == "default"


def test_slower_ones_take_little_of_the_time(clock):
    said, asked = clock
    compiled = begun(softmax, X)
    said.update(dict.fromkeys(names(compiled), 20_000), default=1000)
    for _ in range(MANY):
        compiled(X)
    slow = sum(count for name, count in asked.items() if name != "default")
    assert slow * 19_000 <= 0.1 * (asked["default"] * 1000 + slow * 20_000) + 20_000
    assert asked["default"] > 0.9 * MANY


def test_classes_of_sizes_have_races_of_their_own(clock):
    said, _ = clock

    def waves(x, y):  # not NumPy's bits, so it is not timed against NumPy
        return np.maximum(np.sin(x) * y + 1, 0)

    compiled = begun(waves, X, Y, dynamic=True, options={"numerics": "close"})
    said.update({("threads=1", 2): 500, ("threads=1", 4): 2000, ("flat_tile=4096", 4): 500})
    for x in (X, RNG.random((8, 9))):
        first = compiled(x, x)
        for _ in range(MANY):
            np.testing.assert_array_equal(compiled(x, x), first)
    heats = {heat.number: heat.winner for heat in race(compiled).classes}
    assert heats == {4: "flat_tile=4096", 2: "threads=1"}
    assert race(compiled).lines()[0].startswith("from 64 elements on, ")


# --- which plans take part --------------------------------------------------------------------------


def test_options_say_which_kinds_take_part():
    kinds = {}
    for option in ("benchmark_fusion", "multi_kernel", "max_autotune"):
        compiled = begun(softmax, X, mode=None, options={option: True, "choices": ""})
        program = compiled.specializations[0].program
        rows = {f"{n}={v}": kind for kind, n, v in _core.plan(program, program.option_values)[1]}
        kinds[option] = {rows[name] for name in names(compiled)[1:]}
    assert kinds == {"benchmark_fusion": {"fusion"}, "multi_kernel": set(), "max_autotune": {"fusion", "program"}}
    compiled = begun(scaled, X, Y, mode=None, options={"multi_kernel": True})
    assert names(compiled) == ["default", "flat_tile=256", "flat_tile=4096"]


def test_what_the_user_has_set_is_no_question():
    free = names(begun(scaled, X, Y))
    assert {"threads=1", "flat_tile=256"} <= set(free)
    fixed = names(begun(scaled, X, Y, options={"threads": 0, "choices": "flat_tile=512"}))
    assert not [name for name in fixed if name.startswith(("threads", "flat_tile"))]


def test_what_has_no_race_says_why():
    compiled = begun(softmax, X, backend="interp")
    assert race(compiled) is None
    assert cinductor.explain(compiled, X).races == ["programs of cpu:interp are not raced"]
    plain = begun(softmax, X, mode=None)
    assert race(plain) is None and cinductor.explain(plain, X).races == []


def test_an_alternative_that_cannot_be_built_takes_no_part(clock, monkeypatch, caplog):
    said, _ = clock
    own = _core.recompile

    class Planted:
        def __getattr__(self, name):
            return getattr(_core, name)

        def recompile(self, program, options, *rest):
            if options["apart"]:
                raise cinductor.CompileError("planted")
            return own(program, options, *rest)

    monkeypatch.setattr(racing, "_core", Planted())
    caplog.set_level("DEBUG", "cinductor.races")
    compiled = begun(softmax, X)
    said["fusion=0"] = 500
    assert run(compiled, X) == "fusion=0"
    whys = dict(race(compiled).plans)
    assert whys["apart=1"] == "CompileError: planted" and whys["fusion=0"] is None
    assert "softmax: apart=1 takes no part: CompileError: planted" in caplog.text
    assert "apart=1 takes no part: CompileError: planted" in race(compiled).lines()


def test_a_plan_with_a_much_larger_peak_takes_no_part(monkeypatch):
    compiled = begun(softmax, X)
    assert not any(why for _, why in race(compiled).plans)
    monkeypatch.setattr(racing, "MAX_HELD", 0)
    monkeypatch.setattr(racing, "LITTLE", 1000)
    whys = dict(race(begun(softmax, X, dynamic=False)).plans)
    assert whys.pop("default") is None and whys
    assert all(why.endswith(f" bytes, the default plan {X.nbytes}") for why in whys.values())


def test_a_plan_that_fails_in_a_call_takes_no_part_any_more(clock):
    """The default plan computes the result of that call."""
    said, _ = clock
    x = np.where(X > 0.5, np.nan, X)
    compiled = cinductor.compile(lambda x: x * 2 + 1)
    compiled(x)
    (specialization,) = compiled.specializations
    own = specialization.program
    bad = _core.recompile(own, {**own.option_values, "nan_asserts": True}, "c", ())
    over = []
    specialization.autotune([("default", own, None), ("bad", bad, None)], {}, lambda *what: over.append(what))
    said["bad"] = 1
    for _ in range(5):
        np.testing.assert_array_equal(compiled(x), x * 2 + 1)
    plans, ((number, winner, *_),) = specialization.autotune_rows
    assert winner == "default" and over == [(specialization, number)] and number == 0
    assert plans[0] == ("default", None) and "NaN" in plans[1][1]


def test_plans_whose_results_lie_elsewhere_take_no_part():
    compiled = cinductor.compile(lambda x: x * 2 + 1)
    compiled(X)
    other = cinductor.compile(lambda x: (x * 2, x + 1))
    other(X)
    (specialization,) = compiled.specializations
    own, strange = specialization.program, other.specializations[0].program
    specialization.autotune([("default", own, None), ("strange", strange, None)], {}, print)
    assert dict(specialization.autotune_rows[0])["strange"] == "its results are stored in other memory"
    np.testing.assert_array_equal(compiled(X), X * 2 + 1)
    with pytest.raises(ValueError, match="the first plan of a race is the program's own"):
        other.specializations[0].autotune([("default", own, None)], {}, print)


# --- every plan gives the same --------------------------------------------------------------------


PROGRAMS = programs.load()


@pytest.mark.parametrize("name", "nets.attention nets.batch_norm stencils.heat_3d".split())
def test_alternatives_give_the_same_bits(name):
    """For some programs; `benchmarks/races.py --bits` checks all with the C compiler."""
    fn, make, sizes, _ = PROGRAMS[name]

    def outcome(options):
        compiled = cinductor.compile(fn, backend="interp", options=options)
        arguments = make(sizes[1], np.random.default_rng(3))
        return compiled, programs_bits(compiled(*arguments)), programs_bits(arguments)

    plain, *expected = outcome({})
    found = [outcome(options)[1:] for _, options in alternatives(plain.specializations[0].program)]
    assert found and all(got == tuple(expected) for got in found)


def programs_bits(value):
    """Arrays and numbers in tuples and lists, as bytes."""
    if isinstance(value, tuple | list):
        return [programs_bits(item) for item in value]
    return np.asarray(value).tobytes() if isinstance(value, np.ndarray | np.generic | float | int) else None


# --- effects, threads, processes ------------------------------------------------------------------


def test_effects_happen_once_a_call(clock, monkeypatch):
    monkeypatch.setattr(racing, "MOST", 2)

    def fn(x, rng):
        x += 1
        y = np.exp(x - x.max(axis=1, keepdims=True))
        return y / y.sum(axis=1, keepdims=True) + rng.random(96)

    x, expected = X.copy(), X.copy()
    mine, theirs = np.random.default_rng(3), np.random.default_rng(3)
    compiled = cinductor.compile(fn, mode=MODE)
    for k in range(120):
        np.testing.assert_array_equal(compiled(x, mine), fn(expected, theirs))
        if k == 60:
            racing.beside.wait()
    np.testing.assert_array_equal(x, expected)
    assert race(compiled).classes[0].winner is not None


def test_two_threads_race(clock):
    compiled, expected, wrong = begun(softmax, X), softmax(X), []

    def call():
        for _ in range(MANY):
            if not np.array_equal(compiled(X), expected):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and run(compiled, X) == "default"


def test_calls_that_fail_their_checks_are_no_times(clock, monkeypatch):
    """They are not counted as times of a plan; other calls decide."""
    monkeypatch.setattr(racing, "MOST", 1)

    def picked(x, k):
        return np.exp(x - x.max(axis=1, keepdims=True))[k]

    compiled, good, bad = begun(picked, X, np.array([3])), np.array([3]), np.array([64])
    clock[0]["threads=1"] = 500
    for _ in range(200):
        with pytest.raises(IndexError, match="index 64 is out of bounds"):
            compiled(X, bad)
        np.testing.assert_array_equal(compiled(X, good), picked(X, good))
    assert race(compiled).classes[0].winner == "threads=1"


def test_a_race_is_decided_once(clock):
    """Another compile of the same function starts with the winner and builds no other plan."""
    said, asked = clock
    said["apart=1"] = 700
    assert run(begun(softmax, X), X) == "apart=1"
    racing.beside.wait()
    asked.clear()
    again = begun(softmax, X)
    assert run(again, X) == "apart=1" and names(again) == ["default", "apart=1"] and not asked
    assert names(begun(softmax, X, options={"cache": False})) != ["default", "apart=1"]


def test_a_race_keeps_nothing_alive():
    compiled = begun(softmax, X)
    compiled(X)
    gone = weakref.ref(compiled), weakref.ref(compiled._cinductor_job)
    del compiled
    gc.collect()
    assert [one() for one in gone] == [None, None]


PROGRAM = """
import os, sys
import numpy as np
import cinductor
from cinductor import _core
from cinductor.builds import racing

def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)

_core.set_autotune_clock(lambda name, number: 700 if name == "apart=1" else 1000)
f, x = cinductor.compile(softmax, mode="max-autotune-no-cudagraphs"), np.ones((64, 96))
f(x), f(x)
if sys.argv[1] == "leave":
    sys.exit()
racing.beside.wait()
if sys.argv[1] == "fork" and os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
for _ in range(400):
    f(x)
racing.beside.wait()
race = racing.race_of(f.specializations[0])
print(race.classes[0].winner, len(race.plans) > 2)
"""


def test_processes(tmp_path):
    """The first process ends while its alternatives are built, a fork of the second decides, and the third starts
    with the winner.
    """
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
    said = []
    for how in ("leave", "fork", "again"):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(file), how], env=env, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        said.append(done.stdout)
    assert said == ["", "apart=1 True\n", "apart=1 False\n"]


def test_a_build_that_the_end_of_the_process_interrupts_says_nothing(monkeypatch):
    """For example a C compiler that is running when the process ends."""
    beside, has_begun, uncaught = background.Beside(), threading.Event(), []
    monkeypatch.setattr(sys, "unraisablehook", uncaught.append)

    def build():
        has_begun.set()
        while not beside.is_ending:
            has_begun.wait(0.001)
        raise KeyboardInterrupt("interrupted while compiling")

    beside.add(build)
    has_begun.wait()
    beside.end()  # waits for the thread
    assert not uncaught


# --- what is reported --------------------------------------------------------------------------------


def test_reports_tell_of_races(clock, caplog):
    said, _ = clock
    caplog.set_level("DEBUG", "cinductor.races")
    compiled = begun(softmax, X)
    said["apart=1"] = 700
    run(compiled, X)
    racing.beside.wait()
    report = cinductor.explain(compiled, X)
    assert "plans timed by autotuning:" in str(report) and "apart=1: 0.7 us, the median of 9" in report.full()
    assert report.races == report.data()["races"] == race(compiled).lines()
    assert any("calls: apart=1 wins" in line for line in report.races)
    assert "Plans timed by autotuning" in report._repr_html_()
    assert report.races[0] in cinductor.stats()["functions"]["softmax"]["races"]
    assert "apart=1 wins" in caplog.text


# --- fusions that are switched off --------------------------------------------------------------------


def test_joins_are_told_apart():
    plain = cinductor.compile(softmax)
    plain(X)
    joins = plain.specializations[0].program.text("joins").splitlines()
    assert [line.partition(":")[0] for line in joins] == ["1", "2", "3"]
    parted = cinductor.compile(softmax, options={"apart": "1, 3"})
    np.testing.assert_array_equal(parted(X), softmax(X))
    program = parted.specializations[0].program
    numbers = [line.partition(":")[0] for line in program.text("joins").splitlines()]
    assert "1" not in numbers and "3" not in numbers and "the option apart names their join" in program.text("kernels")


@pytest.mark.parametrize("value, error", [("one", ValueError), ("0", ValueError), ("-1", ValueError), (3, TypeError)])
def test_what_is_no_join_is_refused(value, error):
    with pytest.raises(error, match="option 'apart'"):
        cinductor.compile(softmax, options={"apart": value})
