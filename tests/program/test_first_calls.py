"""Tests first calls: from many threads at once, of many kinds, with and without a compiler."""

import functools
import random
import sys
import threading

import numpy as np
import pytest
from stencils import WHY_NO_STENCILS
from test_robustness import PROGRAM, run, warnings_in

import cinductor
from cinductor.base.user_frame import PACKAGE
from cinductor.calls import budget, job, saved, turn
from cinductor.capture import session
from cinductor.capture.pieces import driver

X = np.arange(100.0)


def all_at_once(calls):
    """Call all functions at the same time, on threads; return their results."""
    results, gate = [None] * len(calls), threading.Barrier(len(calls))

    def run(k, fn):
        gate.wait()
        results[k] = fn()

    threads = [threading.Thread(target=run, args=(k, fn)) for k, fn in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return results


def captures(compiled):
    return compiled._cinductor_job.captures


def test_threads_that_make_the_same_first_call_compile_once(monkeypatch):
    monkeypatch.setattr(turn, "MAX_WAIT", 60)
    f = cinductor.compile(lambda x: (x * 2 + 1).sum(), backend="c")
    for result in all_at_once([lambda: f(X)] * 8):
        assert result == (X * 2 + 1).sum()
    assert captures(f) == len(f.specializations) == 1 and f._cinductor_job.counts["eager"] == 0


def test_threads_whose_calls_differ_compile_each_kind_once():
    f = cinductor.compile(lambda x: x * 2 + 1, backend="interp")
    arrays = [X.astype(t) for t in ("f4", "f8", "i4", "i8") for _ in range(2)]
    for x, result in zip(arrays, all_at_once([lambda x=x: f(x) for x in arrays])):
        assert np.array_equal(result, x * 2 + 1) and result.dtype == (x * 2 + 1).dtype
    assert captures(f) == len(f.specializations) == 4


def test_no_thread_waits_where_python_runs_in_a_capture(monkeypatch):
    """Each call waits for the other one in Python code. If a thread waited for the other's capture, this would
    deadlock.
    """
    monkeypatch.setattr(turn, "MAX_WAIT", 60)
    gate = threading.Barrier(2)

    def fn(x):
        y = x * 2
        gate.wait(15)
        return y + 1

    f = cinductor.compile(fn, backend="interp")
    for result in all_at_once([lambda: f(X)] * 2):
        assert np.array_equal(result, X * 2 + 1)


def test_a_capture_that_takes_too_long_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(turn, "MAX_WAIT", 0.05)
    f = cinductor.compile(lambda x: x * 2 + 1, backend="interp")
    own = f._cinductor_job.turn
    assert own.take()
    results = all_at_once([lambda: f(X)] * 3)
    own.give()
    assert all(np.array_equal(r, X * 2 + 1) for r in results)
    assert captures(f) == 0 and f._cinductor_job.counts["eager"] == 3
    f(X)
    assert captures(f) == 1


def test_a_turn_is_free_in_a_new_process(monkeypatch):
    own = turn.Turn()
    assert own.take()
    own.process = -1  # as if this were a fork of the process that captured
    assert all_at_once([own.take]) == [True]


# --- kinds of calls -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error::cinductor.CinductorWarning")
def test_dtypes_ranks_and_texts_are_no_recompiles_that_count():
    f = cinductor.compile(
        lambda x, how: x + 1 if how == "up" else x * 2, backend="interp", options={"recompile_limit": 2}
    )
    kinds = [np.dtype(t) for t in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "c16")]
    for dtype in kinds:
        for x in (np.ones(3, dtype), np.ones((2, 2), dtype)):
            assert f(x, "up").tobytes() == (x + 1).tobytes()
            assert f(x, "else").tobytes() == (x * 2).tobytes()
    assert captures(f) == len(f.specializations) == 4 * len(kinds)


def test_sizes_count_for_each_dtype():
    f = cinductor.compile(
        lambda x: x + 1, backend="interp", dynamic=False, options={"recompile_limit": 2, "on_limit": "eager"}
    )
    with pytest.warns(cinductor.CinductorWarning, match="2 specialisations, recompile_limit") as caught:
        for n in range(2, 6):
            f(np.ones(n)), f(np.ones(n, "f4"))
    assert len(caught) == 1 and captures(f) == len(f.specializations) == 4


# --- without a compiler ---------------------------------------------------------------------------

UNBUILT = "interp" if WHY_NO_STENCILS else "stencil"
WITHOUT = {"PATH": "/nonexistent", "CC": None}
BACKENDS = """
print("backend", g.specializations[0].program.backend, g.specializations[0].is_trying)
"""


def test_a_warm_cache_answers_without_a_compiler(tmp_path):
    for env in ({}, WITHOUT):
        lines = run(tmp_path, program=PROGRAM + BACKENDS, **env)
        assert warnings_in(lines) == [] and "backend cpu:c False" in lines


def test_words_of_cc_are_part_of_what_the_cache_remembers(tmp_path):
    run(tmp_path, CC="gcc -fno-ipa-icf")
    lines = run(tmp_path, program=PROGRAM + BACKENDS, **WITHOUT)
    assert warnings_in(lines) == [] and "backend cpu:c False" in lines


def test_what_the_cache_has_not_is_made_without_a_compiler_and_tried_against_numpy(tmp_path):
    run(tmp_path)
    others = "cinductor.compile(lambda a: a * 3)(3.0), cinductor.explain(lambda a: a * 4, 4.0)\n"
    lines = run(tmp_path, program=PROGRAM.replace("a * b + 1", "a - b") + BACKENDS + others, **WITHOUT)
    assert f"backend cpu:{UNBUILT} True" in lines
    (text,) = warnings_in(lines)  # one of a process
    assert "no C compiler" in text and "gcc" in text


def test_a_damaged_note_is_as_none(tmp_path):
    run(tmp_path)
    (note,) = tmp_path.glob("*.note")
    note.write_bytes(note.read_bytes()[:-1])
    lines = run(tmp_path, program=PROGRAM + BACKENDS, **WITHOUT)
    assert f"backend cpu:{UNBUILT} True" in lines and len(warnings_in(lines)) == 1


def test_a_cleared_cache_is_not_used(tmp_path):
    lines = run(tmp_path, program=PROGRAM + "print(cinductor.cache.clear(), cinductor.cache.info())")
    assert lines[-1].startswith("1 ") and "'serves_alone': False" in lines[-1]
    assert not list(tmp_path.glob("*.note"))


FUNCTIONS = """
import numpy as np, cinductor, warnings
warnings.simplefilter("ignore")
x = np.linspace(0.1, 5, 1000)
for fn in (np.sin, np.cos, np.tan, lambda x: np.hypot(x, 2) ** 1.5, lambda x: np.arctan2(x, 2).sum()):
    g = cinductor.compile(lambda x: fn(x) + 1)
    for _ in range(30):
        assert g(x).tobytes() == (fn(x) + 1).tobytes(), fn
print("same")
"""


def test_what_is_interpreted_has_numpys_bits_so_that_numpy_may_answer(tmp_path):
    assert run(tmp_path, program=FUNCTIONS, **WITHOUT)[-1] == "same"


# --- any sizes ------------------------------------------------------------------------------------


def test_a_program_for_any_size_is_tried_against_numpy_in_each_class_of_sizes():
    def fn(x):
        return x * 2 + 1

    f = cinductor.compile(fn, dynamic=True, backend="c")
    f(X)
    (made,) = f.specializations
    assert not made.is_trying  # no call of that size has been replayed
    for x in (X, np.arange(5000.0)):
        for _ in range(2):  # the first opens the trial, the second is timed
            f(x)
        assert made.is_trying
        for _ in range(90):
            assert np.array_equal(f(x), fn(x))
        assert not made.is_trying
    assert f.specializations == (made,)


def calls_in(fn, *args):
    """The number of Python functions of the package that a first call runs."""
    compiled, count = cinductor.compile(fn, backend="interp"), 0

    def note(frame, event, arg):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(note)
    try:
        compiled(*args)
    finally:
        sys.setprofile(None)
    return count


def test_what_a_capture_runs_does_not_depend_on_iterations_and_grows_with_statements():
    def once(x):
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]
        return x.sum()

    def twice(x):
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]
        return x.sum()

    def empty(x):
        return x.sum()

    def before(x):
        for i in range(x.shape[0]):
            x[i] *= 2
        return x.sum()

    calls_in(before, X)  # work done once per process, and again after `cinductor.reset`
    few = calls_in(once, X)
    assert abs(calls_in(once, X) - calls_in(once, np.arange(1000.0))) < 20  # the function is rewritten already
    assert calls_in(twice, X) - few < 1.3 * (few - calls_in(empty, X))
    assert few < 1300


class Driver:
    def __init__(self, call, of):
        self.call = call
        functools.update_wrapper(self, of, tuple("__name__ __qualname__ __code__ __globals__ __defaults__ __kwdefaults__ __closure__".split()), ())

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)


class Between:
    """Calls `act` between two bytecodes of the code that manages compiled functions, as another thread might."""

    FILES = {module.__file__ for module in (job, budget, saved, session, driver)}

    def __init__(self, monkeypatch):
        self.count, self.at, self.act = 0, None, None
        for cls, name in ((job.Job, "answer"), (driver.PieceJob, "answer"), (driver.SplitPlan, "run")):
            monkeypatch.setattr(cls, name, self.traced(getattr(cls, name), self.enter))
        function = driver.SplitPlan.function

        def untraced(plan, node, cells):  # pieces are not captured while a tool looks at lines
            made = function(plan, node, cells)
            return made if made is None or len(cells) == 1 else Driver(self.traced(made, None), made)

        monkeypatch.setattr(driver.SplitPlan, "function", untraced)

    def traced(self, fn, tracer):
        def call(*args, **kwargs):
            before = sys.gettrace()
            sys.settrace(tracer)
            try:
                return fn(*args, **kwargs)
            finally:
                sys.settrace(before)

        return call

    def enter(self, frame, event, arg):
        frame.f_trace_opcodes = frame.f_code.co_filename in self.FILES
        return self.step if frame.f_trace_opcodes else None

    def step(self, frame, event, arg):
        self.count += event == "opcode"
        if self.count == self.at and event == "opcode":
            sys.settrace(None)
            self.act()
            sys.settrace(self.enter)
        return self.step


def whole(x, k):
    return np.sqrt(x * x + k).sum(axis=0)


def inner(x):
    print(end="")
    return np.sin(x) * 2 + np.sqrt(x)


def broken(x, k):
    y = inner(x)
    print(end="")
    return np.cos(y) * np.exp(-y * y) + k * inner(x)


@pytest.mark.filterwarnings("error:.*please report it")
@pytest.mark.parametrize("act", ["reset", "call"])
@pytest.mark.parametrize("fn", [whole, broken])
def test_another_thread_acts_between_any_two_steps(monkeypatch, fn, act):
    """Resets all compiled functions, or calls this one with other sizes, in the middle of its calls."""
    monkeypatch.setattr(turn, "MAX_WAIT", 0.0)
    between, draw, errors = Between(monkeypatch), random.Random(0), []

    def calls(f, sizes):
        for k, n in sizes:
            x = np.arange(2.0, 2 + n) + np.zeros((200, 1))
            np.testing.assert_allclose(f(x, k), fn(x, k), rtol=1e-14)

    def others():
        def other():
            try:
                calls(f, [(2, 2), (7, 7), (9, 9)])
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    between.act = cinductor.reset if act == "reset" else others
    sizes = [(0, 3), (1, 3), (1, 4), (2, 5), (0, 1), (0, 3), (0, 3), (0, 3), (3, 6)] * 2
    total = None
    for _ in range(24 if act == "reset" else 6):
        between.count = 0
        f = cinductor.compile(fn, backend="interp", options={"cache": False})
        calls(f, sizes)
        total = total or between.count
        between.at = draw.randrange(1, total)
    assert total > (3000 if sys.version_info < (3, 12) else 2900) and not errors  # comprehensions are no calls in later versions
