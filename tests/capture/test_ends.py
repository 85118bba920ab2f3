"""Tests how calls end: capture always terminates, internal objects stay inside, and an exception from outside ends a
call without leaving anything behind.
"""

import collections
import functools
import gc
import importlib
import itertools
import re
import signal
import subprocess
import sys
import types
import warnings
import weakref

import numpy as np
import pytest
from breaks import after_an_effect

import cinductor
from cinductor import _core
from cinductor.base import float_warnings, processors
from cinductor.base.signals import Replan
from cinductor.builds import trimming
from cinductor.calls import dynamic
from cinductor.capture import entry, session
from cinductor.capture.call_state import Stage
from cinductor.capture.control.region import Regions
from cinductor.capture.effects import Effects
from cinductor.capture.objects import put

pytestmark = pytest.mark.filterwarnings("error:cinductor")
Tracer = _core.Tracer
X = np.random.default_rng(0).integers(-40, 40, 12) / 16  # sums of these are exact


def alike(got, want):
    """Equal, and of the same kinds."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            alike(a, b)
    elif isinstance(want, dict):
        alike(list(got.items()), list(want.items()))
    elif isinstance(want, np.ndarray | np.generic):
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)
    else:
        assert got == want


# --- captures of a call ---------------------------------------------------------------------------


def test_no_assumption_is_given_up_twice():
    """Every restart of a capture drops an assumption, so capture terminates."""
    failures = [
        Replan("dynamic", "it breaks"),
        Replan("leaves_open", "it breaks"),
        Replan("sized_lists", "a list"),
        Replan("decided", "no one value", ("file", 1)),
        Replan("decided", "no one value", ("file", 2)),
        _core.RegionBreak("it breaks", "file", 1),
    ]
    for order in itertools.permutations(failures):
        way = session.Assumptions("", None, True, None)
        for failure in order:
            way = way.without(failure)
            assert way is not None and way.without(failure) is None
        assert all(way.without(failure) is None for failure in order)
    assert session.Assumptions("", False, True, None).without(failures[0]) is None
    assert session.Assumptions("", True, True, None).without(failures[0]) is None


def test_explain_says_what_was_assumed_in_vain():
    """The capture that is shown makes fewer assumptions than the first; the reason for the restart is shown, too."""

    def program(x, c):
        v = x if c[0] > 0 else 3
        return v * 2

    report = cinductor.explain(cinductor.compile(program, backend="interp"), np.ones(3), np.ones(1))
    (line,) = report.replans
    assert line.endswith("Python decides a condition: operand is of another type in each branch: an array and Python's int 3")
    assert line in str(report)


def test_reasons_name_the_number_of_another_type():
    def program(x):
        best = 0
        for i in range(len(x)):
            if x[i] > 3:
                best = x[i:]
        return best

    report = str(cinductor.explain(cinductor.compile(program, backend="interp"), np.arange(20.0)))
    assert "decided by Python: best is of another type in each branch: an array and Python's int 0" in report


@pytest.mark.parametrize("signal", [Replan("dynamic", "s"), Replan("leaves_open", "u"), Replan("sized_lists", "l")])
def test_a_failure_that_repeats_itself_ends_in_numpy(signal, monkeypatch):
    captures = []

    def failing(*args):
        captures.append(args)
        raise signal

    monkeypatch.setattr(session, "capture", failing)
    compiled = cinductor.compile(lambda x: x + 1)
    with pytest.warns(RuntimeWarning, match="an assumption that was given up did not hold"):
        alike(compiled(X), X + 1)
    assert len(captures) <= 4


def trimmed(a):
    nz = np.argwhere(a)
    if nz.size == 0:
        start = stop = np.array([], dtype=np.intp)
    else:
        start, stop = nz.min(axis=0), nz.max(axis=0)
    stop += 1
    if start.size == 0:
        start = stop = np.zeros(a.ndim, dtype=np.intp)
    sl = tuple(slice(start[k], stop[k]) for k in range(a.ndim))
    return a[sl]


@pytest.mark.parametrize("fn", [trimmed, np.trim_zeros._implementation], ids=["own", "numpys"])
def test_trim_zeros(fn):
    compiled = cinductor.compile(fn)
    ones = [np.pad(np.ones((2,) * n), (2, 1)) for n in range(4)]
    zeros = [np.zeros((3,) * n) for n in range(4)]
    for a in (ones[3], ones[3], *ones, *zeros, *ones, *zeros):
        alike(compiled(a), fn(a))


class Countdown:
    """Not known to capture: iterating it is a break."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


MADE = {  # values that one piece makes of traced values, and others use
    "slice": "slice(n.sum(), n.max() + 3)",
    "frozenset": "frozenset([n[0], n[1]])",
    "range": "range(int(n[0]), int(n[1]) + 4)",
    "map": "map(float, x)",
    "map of two": "map(lambda a, b: a * b, x, x[::-1])",
    "zip": "zip(x, x * 2)",
    "enumerate": "enumerate(x * 2)",
    "reversed": "reversed([x[0], x[1]])",
    "filter": "filter(lambda v: v > 0, x)",
    "iter": "iter([x[0], x * 2])",
    "rows": "iter(x.reshape(3, 4))",
    "generator": "(v * 2 for v in x)",
    "chain": "itertools.chain([x[0]], x * 2)",
    "islice": "itertools.islice((v + 1 for v in x), 2, 6)",
    "partial": "functools.partial(np.add, x * 2)",
    "method": "(x * 2).sum",
    "nested": "[(slice(n[0], None), {'k': iter([x[0]])})]",
}
USES = {
    "a break": "print(end='')",
    "an unknown iterator": "k = list(zip(given, x))",
    "an effect": "log.append(x.sum())",
}


def used(value, x):
    """Everything that a value contains."""
    if isinstance(value, slice):
        return (value.start, value.stop), x[value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [used(v, x) for v in value]
    if isinstance(value, dict):
        return [used(v, x) for v in value.values()]
    if hasattr(value, "__iter__"):
        return [used(v, x) for v in value] if not isinstance(value, np.ndarray) else value
    if callable(value):
        return value(x) if "add" in repr(value) else value()
    return value


@pytest.fixture
def written(tmp_path):
    """Makes a function of source text, which capture can read."""
    count = itertools.count()

    def make(source, **names):
        path = tmp_path / f"made_{next(count)}.py"
        path.write_text(source)
        where = {"np": np, "itertools": itertools, "functools": functools, "used": used, **names}
        exec(compile(source, str(path), "exec"), where)  # of this file's own text
        return where["f"]

    return make


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", MADE)
def test_containers_of_traced_values_cross_a_break(made, use, written):
    source = f"""
def f(x, n, given, log):
    value = {MADE[made]}
    {USES[use]}
    y = x + 1
    return used(value, y), y
"""
    fn = written(source)
    compiled = cinductor.compile(fn, options={"verify": True})
    n = np.array([1, 2, 3])
    for _ in range(4):
        ours, theirs = [], []
        alike(compiled(X, n, Countdown(3), ours), fn(X, n, Countdown(3), theirs))
        alike(ours, theirs)


@pytest.mark.parametrize("made", MADE)
def test_containers_of_traced_values_are_returned(made, written):
    fn = written(f"def f(x, n):\n    print(end='')\n    y = x + 1\n    return {MADE[made]}, y\n")
    compiled = cinductor.compile(fn)
    n = np.array([1, 2, 3])
    for _ in range(4):
        got, want = compiled(X, n), fn(X, n)
        alike(got[1], want[1])
        alike(used(got[0], X), used(want[0], X))


Named = collections.namedtuple("Named", "first second")
GROWN = {  # what is there before a loop, and what an iteration does with a number that is positive
    "numbers": ("[]", "grown.append(v)"),
    "pairs": ("[]", "grown.append((v, int(v)))"),
    "pairs of constants": ("[]", "grown.append((1, 2))"),
    "nested": ("[]", "grown.append((v, (int(v), (1, v > 1))))"),
    "named": ("[]", "grown.append(Named(v, int(v)))"),
    "named in pairs": ("[]", "grown.append((Named(v, 1), Named(int(v), v)))"),
    "with an empty part": ("[]", "grown.append((v, ()))"),
    "a deque": ("collections.deque()", "grown.append(v)"),
    "a deque of pairs": ("collections.deque()", "grown.append((v, (1, int(v))))"),
    "a dict": ("{}", "grown[int(v)] = v"),
    "a dict of pairs": ("{}", "grown[int(v), 1] = (v, 2.0)"),
    "a set": ("set()", "grown.add(int(v))"),
    "a set of before": ("{1, 1000, 5}", "grown.add(int(v))"),
    "a list of lists": ("[[0.0] * 3 for _ in range(4)]", "grown[int(v) % 4][int(v) % 3] += v"),
}
LOOKS = {
    "none": "None",
    "identity": "pair is other, named is twin",
    "length": "len(grown), bool(grown)",
    "items": "list(grown)",
    "a change": "grown.clear()",
    "handed out": "log.append(grown)",
}


@pytest.mark.parametrize("effect", ["pass", *USES.values()])
@pytest.mark.parametrize("made", GROWN)
def test_what_data_fill_crosses_an_effect(made, effect, written):
    """Whatever a container is in the program, an effect can follow: then it gets its items, or the loop has not been captured."""
    before, step = GROWN[made]
    for look in LOOKS.values():
        source = f"""
def f(x, given, log, pair, other, named, twin):
    grown = {before}
    for v in x:
        if v > 0:
            {step}
    {effect}
    seen = {look}
    return seen, grown, x * 2
"""
        fn = written(source, collections=collections, Named=Named)
        compiled = cinductor.compile(fn)
        for x in (X, X, X[:0]):
            ours, theirs = [], []
            pairs = (1, 2), (1.5, 2), Named(1, 2), Named(2, 1)
            want, got = (function(x, Countdown(3), log, *pairs) for function, log in ((fn, theirs), (compiled, ours)))
            alike(got, want)
            alike(ours, theirs)


REBOUND = {  # each iteration of the outer loop makes the list to which the inner loop stores
    "a name": "for _ in range(n):\n        r = [0.0] * 7\n        STORE",
    "a cell": "for _ in range(n):\n        r = [0.0] * 7\n        out.append(lambda: r[0])\n        STORE",
    "exchanged": "for _ in range(n):\n        s, r = [x.max()] * 7, [0.0] * 7\n        out.append(lambda: r[0])\n        STORE\n            r, s = s, r",
    "in a list": "for _ in range(n):\n        r = [0.0] * 7\n        out.append(r)\n        STORE",
    "a name of the caller": "def inner():\n        nonlocal r\n        for _ in range(n):\n          r = [0.0] * 7\n          STORE\n    inner()",
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("made", REBOUND)
def test_capture_ends_where_an_iteration_makes_a_list(made, dynamic, written):
    body = REBOUND[made].replace("STORE", "for k in range(len(x)):\n            r[int(x[k]) % 7] = 2 * x[k]")
    source = f"def f(x, n):\n    out, r = [], [1.0]\n    {body}\n    return r, [o() if callable(o) else o for o in out]\n"
    fn = written(source)
    compiled = cinductor.compile(fn, dynamic=dynamic)
    x = abs(X)
    for _ in range(3):
        alike(compiled(x, 4), fn(x, 4))


# --- exceptions from outside ----------------------------------------------------------------------


def a_loop(x, y):
    total = 0.0
    for i in range(1, len(x)):
        x[i] = x[i] + x[i - 1]
        total = total + x[i]
    return total


def a_branch(x, y):
    if x[0] > 0:
        x[1] = y[0]
        z = x * 2
    elif x[1] > 0:
        z = y - 1
    else:
        z = x + y
    return z


def inner(x, k):
    for i in range(3):
        if x[i] > 0:
            x = x * 2
        else:
            x = x + k
    return x


def nested_calls(x, y):
    def add(v):
        return inner(v, 1.0) + y

    return [add(x), add(y), max(x[0], y[0])]


def breaks(x, y):
    x[0] = 5.0
    print(end="", flush=True)
    x[1] = 6.0
    print(end="", flush=True)
    y[0] = x.max()
    return x + y


def containers(x, y):
    rows, info = [], {"low": 0.0}
    for i in range(len(x)):
        if x[i] > 0:
            rows.append(x[i] * 2)
        info["low"] = np.minimum(info["low"], x[i])
    y[:] = info["low"]
    return rows, info


def a_while(x, y):
    k = 0
    while x[k] < 2 and k < 8:
        try:
            y[k] = x[k] * 2
        except IndexError:
            y[k] = 0
        k += 1
    return k


def flushes(x, y):
    x += 1
    if float(x[3]) > 100:
        return x
    y -= x
    return bool((y > 0).any()), [v for v in y]


class Ended(Exception):
    """Raised like the time limit of a test."""


class Left(BaseException):
    """An exception that `except Exception` does not catch."""


FNS = [a_loop, a_branch, nested_calls, breaks, containers, a_while, flushes]
ENDS = [KeyboardInterrupt, SystemExit, Ended, TimeoutError, Left, MemoryError]
POINTS = 12  # for each function and exception: 504


def states_of(fn, args):
    """The arguments at each line of the function."""
    args = [a.copy() for a in args]
    states = [[a.copy() for a in args]]

    def trace(frame, event, arg):
        states.append([a.copy() for a in args])
        return trace

    sys.settrace(trace)
    try:
        fn(*args)
    finally:
        sys.settrace(None)
    return states + [args]


def with_signal_at(point, fn, *args):
    """Make a call in which a signal arrives at one of its events. Return the number of events."""
    count = 0

    def look(frame, event, arg):
        nonlocal count
        count += 1
        if count == point:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGUSR1)

    sys.setprofile(look)
    try:
        fn(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture
def handler():
    """Installs a signal handler that raises."""
    before = signal.getsignal(signal.SIGUSR1)

    def install(error):
        def handle(number, frame):
            raise error

        signal.signal(signal.SIGUSR1, handle)

    yield install
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("error", ENDS, ids=lambda e: e.__name__)
@pytest.mark.parametrize("fn", FNS, ids=lambda f: f.__name__)
def test_an_exception_from_a_handler_ends_the_call(fn, error, handler, monkeypatch):
    args = [X[:10].copy(), np.arange(10.0)]
    states, want = states_of(fn, args), fn(*[a.copy() for a in args])
    numpys = np.geterr()

    def compiled():
        return cinductor.compile(fn, backend="interp")

    with_signal_at(0, compiled(), *[a.copy() for a in args])
    events = with_signal_at(0, compiled(), *[a.copy() for a in args])
    handler(error)
    lost = []  # raised while a generator is closed by its destructor, where Python itself drops exceptions
    monkeypatch.setattr(sys, "unraisablehook", lambda hooked: lost.append((hooked.exc_type, type(hooked.object))))
    for number in range(POINTS):
        at = 1 + (events - 1) * (2 * number + 1) // (2 * POINTS)
        caught = None
        while caught is None:
            lost.clear()
            ours, made = [a.copy() for a in args], compiled()
            try:
                count = with_signal_at(at, made, *ours)
                assert count < at or lost == [(error, types.GeneratorType)], at
                at = count if count < at else at + 1  # the first calls of a process have more events
            except BaseException as raised:
                caught = raised
        assert type(caught) is error and np.geterr() == numpys
        assert any(all(map(np.array_equal, ours, state)) for state in states), (at, ours)
        ours = [a.copy() for a in args]
        for _ in range(2):
            alike(made(*ours), want)
            alike(ours, states[-1])
            ours = [a.copy() for a in args]


@pytest.mark.parametrize(
    "module, name, read",
    [(dynamic, "open", lambda: dynamic.Profile().load("profile")), (dynamic.os, "replace", lambda: dynamic.Profile().save("profile")),
     (trimming.os, "stat", lambda: trimming.is_due(".")), (processors, "open", lambda: processors.text_of("text"))],
    ids=["load", "save", "trimming", "text"],
)  # fmt: skip
def test_a_timer_ends_the_use_of_a_file(module, name, read, handler, monkeypatch, tmp_path):
    """TimeoutError is an OSError, which says of a file that it is absent."""
    handler(TimeoutError)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, name, lambda *args, **kwargs: signal.raise_signal(signal.SIGUSR1), raising=False)
    with pytest.raises(TimeoutError):
        read()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Left, Ended])
def test_what_a_function_raises_itself(error):
    """A `raise` in a branch that is not taken has no effect. In one that is taken, everything before it has happened.
    """

    def give_up():
        raise error("enough")

    def fn(x, log):
        log.append(len(x))
        x[1] = 7
        if x[0] > 0:
            x[2] = 8
            give_up()
        x[3] = 9
        return x * 2

    compiled = cinductor.compile(fn)
    for first in (-1.0, 1.0, -1.0, 1.0):
        ours, theirs = np.full(5, first), np.full(5, first)
        for run, x, log in ((compiled, ours, our_log := []), (fn, theirs, their_log := [])):
            if first > 0:
                with pytest.raises(error, match="enough"):
                    run(x, log)
            else:
                run(x, log)
        alike(ours, theirs)
        alike(our_log, their_log)


# --- what is left ---------------------------------------------------------------------------------


def raises(x, y):
    print(end="", flush=True)
    if x.sum() > -1e9:
        raise ValueError("too large")


def raises_at_once(x, y):
    return x[len(x) + 5]


def raises_in_a_handler(x, y):
    try:
        return x + y[np.array([1000])]
    except IndexError as error:
        raise KeyError("inside") from error


def handles(x, y):
    try:
        x = x.reshape(7)
    except ValueError:
        x = x * 2
    return x


def halves(x):
    return x.sum() if x.size < 3 else halves(x[: x.size // 2]) + halves(x[x.size // 2 :])


def recursion(x, y):
    return halves(x) + y


def closures(x, y):
    total = 0.0

    def add(v):
        nonlocal total
        total = total + v.sum()
        return lambda k: v + k

    return add(x)(1), add(y)(2), total


def lazily(x, y):
    doubled = (v * 2 for v in x)
    print(end="", flush=True)
    return [next(doubled), sum(doubled)], list(map(lambda v: v + 1, y))


def keeps_on(x, y):
    found = []
    for k in range(len(x)):
        print(end="", flush=True)
        if x[k] > 0:
            found.append(x[k : k + 2])
    return found, [v for v in y]


class Held:
    def __init__(self, x):
        self.x = x


def objects(x, y):
    held = Held(x)
    held.y = {"rows": [y, held.x * 2]}
    print(end="", flush=True)
    return held.y["rows"][1] + held.x


def data_decide(x, y):
    k = 0
    while x[k % 10] < 1e9 and k < 30:
        k = k + 1 + int(x[k % 10] > 1e6)
    return k, x[x > 0], np.flatnonzero(y)


def hollow(x, y):
    z = x * 2
    return z.flags.owndata, np.broadcast(z, y[:, None]).shape, z + y


LEFT = [hollow, raises, raises_at_once, raises_in_a_handler, handles, recursion, closures, lazily, keeps_on]
LEFT += [objects, data_decide, *FNS]


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", LEFT, ids=lambda f: f.__name__)
def test_arguments_die_when_pythons_would(fn, dynamic, no_collector):
    """With the default backend if sizes are recorded; with symbolic sizes only the kernels would differ."""
    compiled = cinductor.compile(fn, dynamic=dynamic, backend="interp" if dynamic else None)
    for size in (10, 10, 12, 12, 14, 10):
        args = [np.arange(float(size)) - 3, np.arange(float(size))]
        seen = [weakref.ref(a) for a in args]
        try:
            compiled(*args)
        except (ValueError, IndexError, KeyError):
            pass
        del args
        assert [s() is None for s in seen] == [True, True], size


def test_the_last_call_keeps_nothing(no_collector):
    """Not even if it broke, raised, or was run by NumPy."""
    x = np.arange(1000.0)
    seen, compiled = weakref.ref(x), cinductor.compile(lambda x: raises(x, x))
    for _ in range(9):
        with pytest.raises(ValueError, match="too large"):
            compiled(x)
    del x
    assert seen() is None


def test_what_capture_makes_dies_with_it(no_collector):
    """Tracers, regions and traced values are freed by reference counts, without the garbage collector."""
    for fn in LEFT:
        compiled = cinductor.compile(fn)
        for _ in range(2):
            try:
                compiled(np.arange(10.0) - 3, np.arange(10.0))
            except (ValueError, IndexError, KeyError):
                pass
    left = [type(o).__name__ for o in gc.get_objects() if type(o) in (Stage, Regions, Effects, Tracer)]
    assert left == []


# --- the library's own warnings -------------------------------------------------------------------


def fails_to_compile(monkeypatch):
    """Every call has a warning to give."""

    def failing(*args):
        raise session.Retry(_core.InternalError("planted"))

    monkeypatch.setattr(session, "attempt", failing)


def counted(x, noted):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = noted(x)
    return y, len(caught)


def forbidden(x, noted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return noted(x), 0


@pytest.mark.parametrize("outer", [counted, forbidden])
def test_a_function_that_looks_at_warnings_sees_none_of_cinductors(outer, monkeypatch):
    fails_to_compile(monkeypatch)
    inner, whole = cinductor.compile(lambda x: x + 1), cinductor.compile(outer)
    with pytest.warns(cinductor.CinductorWarning) as told:
        y, count = whole(X, inner)
    alike(y, X + 1)
    assert count == 0 and len(told) == 2  # one for each function
    whole(X, inner)


def test_what_forbids_all_warnings_forbids_none_of_cinductors(monkeypatch, capsys):
    fails_to_compile(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alike(cinductor.compile(lambda x: x + 1)(X), X + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cinductor.CinductorWarning)
        with pytest.raises(cinductor.CinductorWarning, match="runs in NumPy"):
            cinductor.compile(lambda x: x + 2)(X)
    assert issubclass(cinductor.CinductorWarning, RuntimeWarning)


def test_filters_that_stay_changed(monkeypatch):
    """The change is not attributed to the library."""
    fails_to_compile(monkeypatch)

    def changing(x):
        warnings.simplefilter("error")
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        alike(cinductor.compile(changing)(X), X + 1)
    assert not caught


# --- NumPy's warnings -----------------------------------------------------------------------------


def forbids_inside(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.log(x)
        except RuntimeWarning as error:
            return str(error)


def raises_inside(x):
    print(end="", flush=True)
    with np.errstate(all="raise"):
        try:
            return np.sqrt(x) / 0
        except FloatingPointError as error:
            return str(error)


def counts_inside(x):
    print(end="", flush=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = np.sqrt(x)
    return y, [str(w.message) for w in caught]


def warns_within(x):
    with np.errstate(invalid="ignore"):
        y = np.sqrt(x)
        with np.errstate(invalid="warn"):
            z = np.log(x)
    return y, z


def sets_within(x):
    with np.errstate(over="ignore"):
        np.seterr(invalid="ignore")
        y = np.sqrt(x)
        np.seterr(invalid="warn")
        z = np.log(x)
    with np.errstate(over="ignore"):
        np.seterr(invalid="ignore")
        return y, z, np.sqrt(x)


def sets_and_leaves(x):
    with np.errstate(divide="warn"):
        np.seterr(over="ignore")
        y = np.sqrt(x) + np.exp(x * -1e5)
    return y


def warns_before_a_break(x):
    y = np.sqrt(x)
    print(end="", flush=True)
    return y


def warns_after_a_break(x):
    print(end="", flush=True)
    return np.log(x)


def warns_between(x):
    a = np.exp(x * -1e5)
    print(end="", flush=True)
    b = np.sqrt(x)
    print(end="", flush=True)
    return a, b


def warns_and_writes(x):
    x[:] = np.sqrt(x)


def writes_and_breaks(x):
    x /= 0
    print(end="", flush=True)
    return x


def warns_whole(x):
    return np.sqrt(x) + 1


def warns_in_a_loop(x):
    total = 0.0
    for k in range(4):
        total = total + np.sqrt(x[k])
    return total


KEPT, LOGGED = {"calls": 0}, []
calls = 0


def warns_and_stores(x):
    KEPT["calls"] += 1
    return np.sqrt(x)


def warns_and_sets(x):
    warns_and_sets.calls += 1
    return np.sqrt(x) + warns_and_sets.calls


warns_and_sets.calls = 0


def warns_and_appends(x):
    LOGGED.append(x[0])
    return np.sqrt(x)


def warns_and_appends_in_a_loop(x):
    for value in x[:4]:
        if value < 2:
            LOGGED.append(value)
    return 1 / (x - x)


def warns_and_makes_a_list(x):
    made = []
    for value in x[:4]:
        if value < 2:
            made.append(np.log(value) - np.sqrt(value))
    return made


def warns_and_counts(x):
    global calls
    calls += 1
    return np.sqrt(x)


added_by_python = np.frompyfunc(lambda a, b: LOGGED.append(a) or a + b, 2, 1)


def warns_after_python(x):
    y = added_by_python(x[:2], 1.0)
    return y.astype(float), float(added_by_python.reduce(x[:3])), np.sqrt(x)


def warns_of_each_operation(x):
    x[0] *= 3.0
    return np.log(x), np.log2(x), np.arccos(x * 9), np.sqrt(x) * 2, x / 0


def warns_where_it_compares(x):
    x[0] *= 3.0
    least = x.min()
    return (x / 0 > np.log(x)), np.sqrt(x - 5) / 0.0, (x > least).any()


def warns_and_stores_what_it_compares(x):
    KEPT["logs"] = np.log(x)
    KEPT["calls"] += bool(KEPT["logs"][0] > -5)
    return np.sqrt(x).max()


def warns_and_draws(x):
    return np.sqrt(x) * np.random.default_rng(3).random(), drawn_from.random() + np.log(x[0])


drawn_from = np.random.default_rng(0)

FLOATS = [forbids_inside, raises_inside, counts_inside, warns_before_a_break, warns_after_a_break]
FLOATS += [warns_within, sets_within, sets_and_leaves, warns_between, warns_and_writes, writes_and_breaks, warns_whole, warns_in_a_loop]
FLOATS += [warns_and_stores, warns_and_sets, warns_and_appends, warns_and_counts, warns_and_appends_in_a_loop, warns_after_python]
FLOATS += [warns_and_makes_a_list, warns_of_each_operation, warns_where_it_compares, warns_and_stores_what_it_compares, warns_and_draws]


def kept():
    """The effects of the functions above, besides their results."""
    return KEPT["calls"], warns_and_sets.calls, len(LOGGED), calls


def outcome(fn, x, action):
    before = kept()
    drawn_from.bit_generator.state = np.random.default_rng(5).bit_generator.state
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action, RuntimeWarning)
        try:
            result = fn(x)
        except (RuntimeWarning, FloatingPointError) as error:
            result = repr(error)
    done = [now - then for now, then in zip(kept(), before, strict=True)]
    changed = x.tobytes(), drawn_from.bit_generator.state
    return result, [(str(w.message), w.category, w.filename) for w in caught], done, np.geterr(), changed


@pytest.mark.parametrize("size", [30, 30000])
@pytest.mark.parametrize("fn", FLOATS, ids=lambda f: f.__name__)
def test_numpys_warnings_come_in_every_call(fn, size):
    """They are given, or raised if they are errors, by the first call, by pieces and by programs. What the function
    changes besides is changed once. With the default filter the first call has them, once a line.
    """
    for value in (-1.0, 1.0):
        KEPT["calls"] = warns_and_sets.calls = 0
        want = outcome(fn, np.full(size, value), "default")
        warns_and_sets.calls = 0
        assert outcome(cinductor.compile(fn), np.full(size, value), "default")[1:] == want[1:]
    for action in ("always", "error"):
        compiled = cinductor.compile(fn)
        for value in (-1.0, -1.0, 1.0, -1.0, -1.0) if size == 30 else (1.0, 1.0, -1.0, -1.0, -1.0):
            KEPT["calls"] = warns_and_sets.calls = 0
            want = outcome(fn, np.full(size, value), action)
            warns_and_sets.calls = 0
            got = outcome(compiled, np.full(size, value), action)
            assert got[1:] == want[1:]
            alike(got[0], want[0])
            assert want[1] or isinstance(want[0], str) or fn is counts_inside or value > 0


@pytest.mark.parametrize("of", [lambda x: np.clip(x, 0, "a"), lambda x: np.where(x > 2, "a", x)])
@pytest.mark.parametrize("changed", [after_an_effect, lambda fn: fn])
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_a_text_among_operands_is_no_name_of_a_dtype(of, changed):
    made = []
    for call in (of, cinductor.compile(changed(of))):
        try:
            made.append(call(np.arange(4.0)).tolist())
        except TypeError as error:
            made.append(str(error))
    assert made[0] == made[1]


def stores_twice(x, kept):
    kept["sum"] = x.sum()
    kept["max"] = x.max()
    return x + 1


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_a_call_whose_stores_fail_is_not_repeated(backend, monkeypatch):
    """The stores before the failure have been performed, so NumPy must not run the call."""
    compiled, kept = cinductor.compile(stores_twice, backend=backend), {"sum": 0.0, "max": 0.0}
    for _ in range(2):
        compiled(X, kept)

    def put_one(value, place, item):
        if place == "max":
            raise MemoryError
        put(value, place, item)

    monkeypatch.setattr(entry, "put", put_one)
    with pytest.raises(MemoryError):
        compiled(X + 1, kept)
    assert kept == {"sum": (X + 1).sum(), "max": X.max()}


def compares_before_an_addition(x):
    print(end="", flush=True)
    n = 0
    for i in range(len(x)):
        n += (x[i], 1) < (x[i], 2)
    return n


OF_NANS = {
    "a test": lambda x: x > x.mean(),
    "max": lambda x: (x.max(), np.nanmin(x), x.argmax(), np.maximum(x, 0), np.clip(x, 0, 1)),
    "a division": lambda x: (x // 2, x % 2, np.fmod(x, 3), np.sign(x), np.arctan(x), x**0.5),
    "a sum": lambda x: (x.sum(), np.sqrt(x), np.exp(x), np.sort(x), x * 2, np.isfinite(x)),
    "a piece": lambda x: (max(x[1], 1.0), x.tolist(), np.sort(x)),
    "another piece": compares_before_an_addition,
    "an order": lambda x: (np.median(x), np.unique(x), np.ptp(x), np.frexp(x), np.float_power(x, 2)),
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("of", OF_NANS.values(), ids=OF_NANS)
def test_a_nan_that_is_compared_gives_no_warning(of, backend):
    """NumPy gives none either. The call is not repeated, because it writes to its argument."""

    def fn(x):
        x[0] = 1
        return of(x)

    compiled = cinductor.compile(fn, backend=backend)
    for start in (2.0, np.nan, np.nan):
        got = outcome(compiled, np.array([start, start, 3.0]), "always")
        want = outcome(fn, np.array([start, start, 3.0]), "always")
        assert got[1] == want[1] == []


UFUNCS = {f for f in vars(np).values() if isinstance(f, np.ufunc) and any(t.startswith("d" * f.nin + "->") for t in f.types)}
UFUNCS = sorted((f for f in UFUNCS if not f.signature), key=lambda f: f.__name__)


def is_quiet(compiled):
    """True if no operation of the program is one that compares."""
    nodes = re.findall(float_warnings.NODE, compiled.specializations[0].program.text("graph"))
    return float_warnings.COMPARES.isdisjoint(name for name, *_ in nodes)


def test_no_ufunc_gives_a_warning_of_its_own_for_nan():
    """Compiled code may set the flag where NumPy's loop does not; the operations that do are named. One program of the
    C backend has all others.
    """
    quiet = []

    def of_all(x, fs):
        x[0] = x[1]
        return [f(*[x] * f.nin) for f in fs]

    def check(fs, backend):
        fn = functools.partial(of_all, fs=fs)
        compiled = cinductor.compile(lambda x: of_all(x, fs), backend=backend)
        outcome(compiled, np.full(5, 0.5), "always")
        got, want = (outcome(run, np.full(5, np.nan), "always")[1] for run in (compiled, fn))
        assert got == want, fs
        return not want and is_quiet(compiled)

    for f in UFUNCS:
        if check((f,), "interp"):
            quiet.append(f)
    assert len(quiet) > len(UFUNCS) / 2 and check(tuple(quiet), "c")
    names = {row[0] for row in _core.ops()}
    assert float_warnings.COMPARES <= names and all(names.issuperset(row.split()) for row in float_warnings.RAISES.values())


def changed_most(x, w):
    return np.abs(0.5 * (x + w / (x * x + 1)) - x).max()


@pytest.mark.parametrize("left", [np.nan, np.inf])
def test_old_contents_of_memory_raise_no_flag(left):
    """Vector lanes of a strip without an element compute with arbitrary contents, which must not set float flags."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        compiled = cinductor.compile(changed_most, backend="interp")
        for n in (5, 12):
            x, w = rng.random((n, n)).astype(dtype), rng.random((n, n)).astype(dtype)
            for _ in range(3):
                for size in (2, 8, 20, 60, 200, 600, 2000, 5000, 20000):
                    [np.full(size, left) for _ in range(20)]  # freed memory contains it
                alike(compiled(x, w), changed_most(x, w))
        assert compiled._cinductor_job.flags == 0


# --- how long a capture may take ------------------------------------------------------------------


def helper(v, k):
    return v * 2 + k


def many_calls(x, log):
    for k in range(40):
        x = helper(x, k)
        log.append(k)
        print(end="", flush=True)
    return x


def a_region_of_calls(x, log):
    total = 0.0
    for k in range(len(x)):
        if x[k] > 0:
            total = total + helper(x[k], 1)
    log.append(len(x))
    return total


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock that advances by 40 ms at each reading."""
    count = itertools.count()
    monkeypatch.setattr(Stage, "clock", staticmethod(lambda: next(count) / 25))


@pytest.mark.parametrize("limit", [0, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("fn", [many_calls, a_region_of_calls], ids=lambda f: f.__name__)
def test_numpy_goes_on_after_the_limit(fn, limit, slow_clock, monkeypatch):
    """NumPy runs the rest. Every effect happens once and in order, and the user is warned once."""
    monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)
    compiled = cinductor.compile(fn, options={"capture_limit": limit})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            ours, theirs = [], []
            alike(compiled(X, ours), fn(X, theirs))
            alike(ours, theirs)
    texts = [str(w.message) for w in told]
    job = compiled._cinductor_job
    if fn is many_calls or limit == 0:
        assert len(texts) == 1 and "capture_limit" in texts[0]
        assert job.captures == 1 and any("capture_limit" in why for why in job.reasons_for_numpy(job.compiled()))
    else:
        assert len(texts) <= 1


def test_the_limit_holds_for_a_recursion_as_a_whole(slow_clock):
    """NumPy runs a call whose capture was given up, and calls of the same function in it are not captured for as long again."""

    def sort(x):
        middle = len(x) // 2
        if middle > 1:
            whole(x[:middle])
            whole(x[middle:])
        for k in range(1, len(x)):
            while k > 0 and x[k] < x[k - 1]:
                x[k], x[k - 1] = x[k - 1], x[k]
                k -= 1

    whole = cinductor.compile(sort, options={"capture_limit": 0.4})
    economy, rng = whole._cinductor_job.economy, np.random.default_rng(0)
    for size in (64, 65):
        before, x = economy.captured, rng.random(size)
        want = np.sort(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cinductor.CinductorWarning)
            whole(x)
        alike(x, want)
        assert economy.captured - before < 3 * 0.4  # each capture goes on for some readings


def test_the_reason_is_explained(slow_clock):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cinductor.CinductorWarning)
        with cinductor.config.patch(capture_limit=0.1):
            report = cinductor.explain(many_calls, X, [])
    assert "capture_limit" in str(report)


def test_the_users_own_time_does_not_count(monkeypatch):
    now = 0.0
    monkeypatch.setattr(Stage, "clock", staticmethod(lambda: now))

    def unknown(x):
        nonlocal now
        now += 100.0
        return x + 1

    unknown.__cinductor_disabled__ = "takes long"

    def fn(x):
        for _ in range(5):
            x = unknown(x) * 2
        return x

    compiled = cinductor.compile(fn, options={"capture_limit": 1})
    alike(compiled(X), fn(X))
    assert not compiled._cinductor_job.warned


@pytest.mark.parametrize("value", [-1, float("nan"), "1", None, True])
def test_limits_that_are_none(value):
    with pytest.raises((TypeError, ValueError), match="capture_limit"):
        cinductor.compile(many_calls, options={"capture_limit": value})
    assert [o.default for o in cinductor.list_options() if o.name == "capture_limit"] == [0.5]


def test_a_warning_that_is_given_once_is_asked_for_once():
    """With the default filter, NumPy runs one call so that the warning is given; other calls are compiled."""
    compiled = cinductor.compile(warns_before_a_break)
    x = np.full(30000, -1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(4):
            alike(compiled(x), np.sqrt(x))
    assert [str(w.message) for w in caught][:1] == ["invalid value encountered in sqrt"]
    assert compiled._cinductor_job.captures < 4


def divided_in_place(a, b):
    with np.errstate(invalid="ignore"):
        return np.divide(a, b, out=a)


def divided_and_written(a, b):
    with np.errstate(all="ignore"):
        c = a / b
    a[...] = c
    return a


def divided_in_both(a, b):
    with np.errstate(invalid="ignore"):
        c = a / b
    a[...] = np.log(a - 1)
    return c


@pytest.mark.parametrize("f", [divided_in_place, divided_and_written, divided_in_both])
def test_what_an_errstate_ignores_is_no_warning_after_a_write(f):
    def warned(fn):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fn(np.zeros(3), np.zeros(3))
        return [str(w.message) for w in seen]

    compiled = cinductor.compile(f)
    for _ in range(3):
        assert warned(compiled) == warned(f)


def test_notices_are_not_counted_among_warnings_of_others():
    code = """
import logging, warnings, numpy as np, cinductor
logging.basicConfig()
f = cinductor.compile(lambda x: x + 1, dynamic=False, options={"recompile_limit": 1})
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for k in range(1, 5):
        f(np.zeros(k))
print(len(seen))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    f = cinductor.compile(lambda x: x + 1, dynamic=False, options={"recompile_limit": 1})
    for k in range(1, 5):
        f(np.zeros(k))
print(len(seen))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n1\n"
    assert done.stderr.count("WARNING:cinductor") == 1


ELSEWHERE = """
import numpy as np

def within(x):
    old = np.seterr(all="ignore")
    a = np.log(x - 9)
    np.seterr(**old)
    return a, np.sqrt(x - 9)

def over(x):
    old = np.seterr(invalid="ignore")
    a = np.log(x - 9)
    np.seterr(**old)
    return a, 1 / (x * 0)

def behind(x, log):
    log.append(1)
    return np.sqrt(x - 9)
"""


@pytest.mark.parametrize("name", ["within", "over", "behind"])
def test_warnings_of_a_module_whose_functions_have_all_ended(name, tmp_path, monkeypatch):
    """A floating-point error ignored by an errstate gives no warning later either."""
    (tmp_path / "elsewhere_that_warns.py").write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(str(tmp_path))
    fn = getattr(importlib.import_module("elsewhere_that_warns"), name)
    more = ([],) if name == "behind" else ()
    compiled = cinductor.compile(fn)
    for _ in range(3):
        want = outcome(lambda x: fn(x, *more), np.ones(4), "always")[1]
        assert outcome(lambda x: compiled(x, *more), np.ones(4), "always")[1] == want and want
    monkeypatch.delitem(sys.modules, "elsewhere_that_warns")


CAUGHT = {
    "a keyword in twos": lambda x: around(x, k=1, **{"k": 2}),
    "no iterable": lambda x: around(*3),
    "no mapping": lambda x: around(x, **3),
    "a pair of three": lambda x: dict([(1, 2, 3)]),
    "no pair": lambda x: dict([(1, 2), 3]),
    "no pair but a number": lambda x: dict([x[0]]),
    "a key that is a list": lambda x: dict([([], x)]),
    "too many": lambda x: around(x, 1, 2),
    "a list of no iterable": lambda x: [*3],
}


def around(x, k=0):
    return x + k


@pytest.mark.parametrize("name", CAUGHT)
def test_texts_of_caught_errors_name_the_users_function(name):
    """A message named the method of cinductor that a call is rewritten to."""

    def program(x):
        try:
            return CAUGHT[name](x)
        except TypeError as error:
            return str(error)
        except ValueError as error:
            return str(error), error.args

    compiled = cinductor.compile(program, backend="interp")
    for _ in range(2):
        assert compiled(np.arange(3.0)) == program(np.arange(3.0))
