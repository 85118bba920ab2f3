"""Tests functions that break: they are split at the breaks, and the pieces between are compiled."""

import functools
import gc
import itertools
import linecache
import random
import threading
import traceback
import warnings
import weakref

import numpy as np
import pytest
from control_generator import Generator
from test_rewrite import behaviour, load

import cinductor
from cinductor.calls.job import Job
from cinductor.capture.pieces import driver
from cinductor.testing import assert_same


def split(fn, lines, monkeypatch):
    """The function split at these lines, with pieces that Python runs; None if it is not split."""
    monkeypatch.setattr(driver, "make_piece", lambda plain, *_: plain)
    plan = driver.SplitPlan(Job(fn, {"fullgraph": False, "mode": None, "options": None}), fn)
    for line in lines:
        plan.marks.add(line, False)
    plan.split()
    plan.is_tried = True
    return plan if plan.driver is not None else None


@pytest.mark.parametrize("part", range(10))
def test_random_control_flow_is_split(part, monkeypatch):
    made = 0
    for seed in range(part * 40, part * 40 + 40):
        name, source = f"<split {seed}>", Generator(seed).source()
        fn = load(source, name)
        rng = random.Random(seed)
        count = source.count("\n")
        lines = [rng.randrange(2, count + 1) for _ in range(rng.randrange(1, 6))]
        try:
            plan = split(fn, lines, monkeypatch)
        finally:
            linecache.cache.pop(name)
        if plan is None:
            continue
        made += len(plan.pieces)
        for args in ((1, 2), (0, -1), (None, 3)):
            got = behaviour(lambda *a, plan=plan: plan.run(a, {}), name, *args)
            assert got == behaviour(fn, name, *args), f"{lines}\n{source}"
    assert made > 20


SOURCES = {
    "a handler reads what was bound before the exception": """
def f(a, b, log):
    kept = 0
    try:
        log(1)
        kept = a + 5
        c = 10 // b + kept
        log(c)
    except ZeroDivisionError:
        log(kept)
    return kept
""",
    "a manager swallows an exception after a binding": """
def f(a, b, log):
    kept = 0
    with Quiet(log):
        kept = b * 2 + 1
        if kept < 100:
            raise ValueError(kept)
        log(0)
    return kept + 1
""",
    "a name that may have no value": """
def f(a, b, log):
    log(0)
    for k in range(b):
        last = k * 2
    log(1)
    return last if a == 1 else 7
""",
    "a name that may be unbound stays unbound": """
def f(a, b, log):
    log(0)
    for k in range(b):
        last = k * 2
    log(1)
    try:
        return last + 1
    except UnboundLocalError as error:
        log(str(error))
""",
    "a name that loses its value on the way": """
def f(a, b, log):
    c = b + 1
    log(c)
    if b > 0:
        del c
        d = b + 2
    log(2)
    return c + 1
""",
    "a function inside reads what is bound later": """
def f(a, b, log):
    c = b + 1
    def g():
        return c + b
    log(g())
    c = b * 5
    log(g())
    c = c + 1
    return g() + c
""",
    "a function inside binds": """
def f(a, b, log):
    c = b + 1
    def g():
        nonlocal c
        c += 1
        return c
    log(0)
    d = c * 2 + g()
    log(d)
    return c * 3 + d
""",
    "a lambda made in each iteration": """
def f(a, b, log):
    made = []
    for k in range(3):
        t = k * 2 + b
        made.append(lambda: t + k)
        log(k)
    return [m() for m in made]
""",
    "a generator that is run later": """
def f(a, b, log):
    c = b * 2
    later = (c + k for k in range(3))
    log(0)
    c = c + 10
    log(1)
    return list(later)
""",
    "globals are set": """
def f(a, b, log):
    global COUNT
    COUNT = b * 3
    log(COUNT)
    COUNT = COUNT + 1
    c = COUNT * 2
    log(c)
    return COUNT + c
""",
    "the order of effects within a statement": """
def f(a, b, log):
    c = [1, 2, 3]
    def take(k=0):
        log(k)
        return c.pop() + k
    d = log(take(b) + c[-1]) + log(take(1) * 2) + len(c)
    log(f"{take(5) + 1} {len(c) + 1}")
    return d, c
""",
    "jumps out of code between pieces": """
def f(a, b, log):
    total = 0
    for k in range(6):
        log(k)
        total += k * 2
        if total > 9:
            return total + 100
        if k % 2 == b:
            continue
        total = total - 1
    else:
        total = -total
    while True:
        log(total)
        total = total * 2 + 1
        if total > 40 or total < -40:
            break
    return total
""",
    "a test that is computed before its construct": """
def f(a, b, log):
    k = 0
    while log(k) + k * 2 < 9:
        if log(b) + k > 3:
            log("large")
        elif log(b + 1) + k > 2:
            log("middle")
        else:
            log("small")
        k += 1
        if k == b + 1:
            continue
        log(k * 10)
    return k
""",
    "unpacked, starred and keyword arguments": """
def f(a, b, log):
    def g(*args, **named):
        log((args, sorted(named.items())))
        return b * 2
    c = g(b + 1, *[b * 2, b * 3], key=b - 1, **{"d": b + 4})
    x, (y, *z) = g(b * 2, e=b * 3), [b + 1, b + 2, b + 3]
    log(x + y)
    x += g(b + 1) + g(b + 2)
    return c, x, y, z
""",
}


@pytest.mark.parametrize("case", SOURCES)
def test_what_is_split_does_the_same(case, monkeypatch):
    source = SOURCES[case].lstrip()
    name = f"<{case}>"
    fn = load(source, name)
    count = source.count("\n")
    logs = [k for k, line in enumerate(source.split("\n"), 1) if "log(" in line]
    ways = [logs, [*logs, *logs], [*logs] * 3, *([k] for k in range(2, count + 1))]
    made = 0
    for lines in ways:
        plan = split(fn, lines, monkeypatch)
        if plan is None:
            continue
        made += len(plan.pieces)
        for args in ((1, 2), (0, 0), (2, 1), (1, -1)):
            got = behaviour(lambda *a, plan=plan: plan.run(a, {}), name, *args)
            assert got == behaviour(fn, name, *args), (lines, args)
    linecache.cache.pop(name)
    assert made


# --- compiled -------------------------------------------------------------------------------------

SEEN = []
WEIGHTS = {0: 1.0, 1: 2.0, 2: 0.5}


def plan_of(compiled):
    return compiled._cinductor_job.plan


def printed(x, w):
    y = np.sqrt((x @ w) ** 2 + 1) + x
    print(f"mean {y.mean():.3f} of", y.shape)
    z = np.sqrt(y * y + 3) * y.mean()
    return z.sum(axis=1), y


def asked(x, w):
    y = np.sqrt(x * x + w)
    k = y.max().item()
    SEEN.append(k)
    return (y / k + np.sin(y)).sum()


def kept(x, w):
    y = np.sqrt(np.abs(x * w)) + x
    SEEN.append(float(y.sum()))
    x[0] = y[1]
    return x[1:], y * y + np.sqrt(y * y + 1)


def looked_up(x, w):
    k = int(x[0, 0] * 3) % 3
    s = WEIGHTS[k]
    return np.sqrt((x * s) ** 2 + 2) + np.sqrt(w * w + s)


def in_a_loop(x, w):
    errors = []
    for k in range(12):
        new = 0.5 * (x + w / (x * x + 1))
        error = np.abs(new - x).max()
        errors.append(float(error))
        if k % 4 == 1:
            print(k, error, flush=True)
        x = new
        if error < 1e-3:
            break
    else:
        k = -1
    return x, errors, k


def inner(x, w):
    y = (x * w).sum(axis=0)
    print(round(y[0], 4))
    return y * 2


def in_a_helper(x, w):
    y = x * 2 + w
    z = inner(y - 1, w * 2) + inner(x, w)
    return z + y[0]


def raises(x, w):
    y = x * w + 1
    print(y[0, 0])
    z = y[: len(y) // 2] * 2
    return z @ y[:, :3] + z[100, 0]


def frames(error):
    return [(t.name, t.lineno) for t in traceback.extract_tb(error.__traceback__)]


def raised_again(x, w):
    y = x * w + 1
    print(y[0, 0])
    try:
        z = y[: len(y) // 2] * 2
        z = z @ y[:, :3] + z[100, 0]
    except IndexError as error:
        SEEN.append(frames(error))
        raise ValueError("of another kind") from error
    return z


def handled(x, w):
    y = x * w + 1
    print(y[0, 0])
    z = y * 2
    try:
        z = z[:3] * 2 + z[100, 0]
    except (IndexError, TypeError) as error:
        SEEN.append(frames(error))
        print("handled")
        z = z + 1
    return z * 2


def partial_made(x, w):
    step = functools.partial(np.multiply, w + 1)
    y = step(x) + 1
    print(1)
    return step(y) * 2


def function_made(x, w):
    double = lambda a: np.sqrt(a * a + 1) * 2  # noqa: E731
    y = double(x) + w
    print(len(y))
    return double(y) * w


def iterator_made(x, w):
    numbers = iter(range(5))
    y = x * w + next(numbers)
    print(1)
    return y + next(numbers)


def state_in_a_tuple(x, w):
    state = x, np.zeros_like(x), 0
    for _ in range(4):
        a, v, n = state
        v = 0.9 * v - 0.1 * (a - w)
        state = a + v, v, n + 1
        print(n)
    return state


def views_held(x, w):
    row, inner = x[0], x[1:-1, 1:-1]
    print(row.shape)
    inner += w[1:-1, 1:-1]
    row[:] = inner[0].sum()
    print(round(x[0, 0], 3))
    x *= 2
    return row, inner, x


def early(x, w):
    y = x * w
    for k in range(5):
        y = y * 0.5 + np.roll(y, 1, 0)
        print(k)
        if k == 2 and len(y) > 15:
            return y[0], k
    try:
        z = y[:, 100] + 1
    except IndexError as error:
        SEEN.append(str(error))
        z = y[:, 0] + 1
    return z


class Model:
    def __init__(self):
        self.scale, self.seen = 2.0, []

    def step(self, x, w):
        y = np.sqrt(x * x + self.scale) + w
        self.seen.append(y.max())
        self.scale *= 0.5
        return y * self.scale


def args(n=12, dtype=float):
    rng = np.random.default_rng(n)
    return (rng.random((n, n)) + 0.1).astype(dtype), (rng.random((n, n)) + 0.1).astype(dtype)


def outcome(fn, capsys, *given):
    """The result, exception, output and kept values, and the arguments after the call."""
    given = [a.copy() for a in given]
    SEEN.clear()
    try:
        result = fn(*given)
    except Exception as error:
        lines = [(t.name, t.lineno) for t in traceback.extract_tb(error.__traceback__)][1:]
        result = type(error), str(error), lines, error.__cause__ and frames(error.__cause__)
    return result, capsys.readouterr().out, list(SEEN), given


@pytest.fixture(params=["interp", "c"])
def backend(request, pieces_are_compiled):
    return request.param


BROKEN = [printed, asked, kept, looked_up, in_a_loop, in_a_helper, raises, raised_again, handled, partial_made]
BROKEN += [function_made, iterator_made, state_in_a_tuple, views_held, early]


# Where a function breaks does not depend on the backend of its pieces; some are compiled to C.
@pytest.mark.parametrize(
    "fn, backend",
    [*((fn, "interp") for fn in BROKEN), *((fn, "c") for fn in (in_a_loop, raises, views_held, function_made))],
    indirect=["backend"],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_calls_with_breaks(fn, backend, capsys):
    compiled = cinductor.compile(fn, backend=backend)
    for n in (12, 12, 12, 12, 20, 20, 12):
        for dtype in (float, np.float32):
            got, want = (outcome(f, capsys, *args(n, dtype)) for f in (compiled, fn))
            assert_same(got, want)
    job, plan = compiled._cinductor_job, plan_of(compiled)
    if fn not in (raises, raised_again, handled, function_made, iterator_made):  # these calls are run by NumPy
        assert plan.driver is not None and plan.pieces and job.captures == 1
        before = plan.captures()
        compiled(*args())
        assert plan.captures() == before


def test_objects_keep_what_they_are(backend):
    ours, theirs = Model(), Model()
    compiled = cinductor.compile(Model.step, backend=backend)
    for _ in range(5):
        assert_same(compiled(ours, *args()), theirs.step(*args()))
    assert_same(ours.seen, theirs.seen)
    assert ours.scale == theirs.scale and plan_of(compiled).driver is not None


def test_a_bound_method(backend):
    ours, theirs = Model(), Model()
    compiled = cinductor.compile(ours.step, backend=backend)
    for _ in range(5):
        assert_same(compiled(*args()), theirs.step(*args()))
    assert ours.scale == theirs.scale and plan_of(compiled).driver is not None


def test_results_are_views_and_arguments_as_ever(backend):
    def f(x, y):
        a = x[1:]
        a += 1
        print(end="", flush=True)
        b = a[1:]
        b *= y
        return x, a, b, y

    compiled = cinductor.compile(f, backend=backend)
    for _ in range(4):
        x, y = np.arange(8.0), 3.0
        got, want = compiled(x, y), f(np.arange(8.0), y)
        assert_same(got, want)
        assert got[0] is x and got[1].base is x and np.shares_memory(got[2], x)


def is_owner(a):
    return a.base is None


def test_the_base_of_a_view_of_a_temporary(backend):
    """A piece returned an array of its own, whose `.base` is None."""

    def own(a):
        print(end="", flush=True)
        rolled = np.roll(a, 1)
        return rolled.base is None, a.base is None

    def in_an_arm(a):
        print(end="", flush=True)
        rolled = np.roll(a, 1)
        return rolled.base is None if len(a) < 5 else a.sum()

    def called(a):
        print(end="", flush=True)
        rolled = np.roll(a, 1)
        return is_owner(rolled), is_owner(a)

    for fn in (own, in_an_arm, called):
        compiled = cinductor.compile(fn, backend=backend)
        for size in (8, 8, 8, 4, 4, 4):
            assert compiled(np.arange(float(size))) == fn(np.arange(float(size)))


def test_what_is_random_comes_in_order(backend):
    def f(rng, x):
        a = rng.random(5) + x
        print(end="", flush=True)
        b = rng.normal(size=3) * a.sum()
        c = rng.random()
        SEEN.append(rng.integers(10))
        return a, b, c, rng.random(2)

    compiled = cinductor.compile(f, backend=backend)
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(4):
        assert_same(compiled(ours, np.ones(5)), f(theirs, np.ones(5)))


def test_threads(backend):
    fn = in_a_loop
    compiled, want = cinductor.compile(fn, backend=backend), fn(*args())
    wrong = []

    def work():
        for _ in range(10):
            try:
                assert_same(compiled(*args()), want)
            except AssertionError as error:
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_fullgraph_raises_at_the_first(backend):
    with pytest.raises(
        cinductor.Unsupported, match=r"test_pieces.py:\d+: a concrete value is needed by format"
    ):
        cinductor.compile(printed, backend=backend, fullgraph=True)(*args())


def take_turns(x, names):
    total = 0.0
    for name in names:
        total += (x * len(name)).sum() if name > "b" else x[0]
        print(end=name[:0])
    return total


TURNS = [f"{chr(97 + k % 26)}{k}" for k in range(60)]


@pytest.mark.parametrize("on_limit", ["dynamic", "eager"])
def test_a_tuple_of_names_that_take_turns(backend, on_limit):
    """A piece whose constants differ in each iteration is left to NumPy, with one warning in total."""
    compiled = cinductor.compile(take_turns, backend=backend, options={"on_limit": on_limit})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(6):
            args = np.arange(9.0), TURNS
            assert_same(compiled(*args), take_turns(*args))
    (text,) = (str(w.message) for w in caught)
    line = take_turns.__code__.co_firstlineno + 3
    where = f"test_pieces.py:{line}-{line + 1}, between two breaks"
    assert text.startswith(f"cinductor: take_turns ({where}) has 8 specialisations")
    assert "name was 'h7' when compiled" in text and "is 'i8' now" in text
    assert caught[0].filename == __file__
    (job,) = (p._cinductor_job for p in plan_of(compiled).made.values() if p._cinductor_job.is_left)
    assert job.captures == (9 if on_limit == "dynamic" else 8)


def test_a_limit_of_a_piece_that_is_an_error(backend):
    compiled = cinductor.compile(take_turns, backend=backend, options={"on_limit": "error"})
    with pytest.raises(RuntimeError, match=r"take_turns \(test_pieces.py:[-\d]+, between .* has 8 spec"):
        for _ in range(6):
            compiled(np.arange(9.0), TURNS)


def test_dropped_functions_free_their_pieces(backend):
    def make():
        compiled = cinductor.compile(lambda_free(), backend=backend)
        for _ in range(3):
            compiled(*args())
        return [weakref.ref(p) for p in plan_of(compiled).pieces]

    def lambda_free():
        def f(x, w):
            y = x * w + 1
            print(end="", flush=True)
            return y * 2

        return f

    refs = make()
    gc.collect()
    assert refs and all(r() is None for r in refs)


def test_a_driver_that_has_won_is_called_at_once(monkeypatch):
    """Once timing has selected the split function, it is called directly. Exceptions leave it as they leave the
    function; a new split drops it.
    """
    compiled = cinductor.compile(in_a_loop, backend="interp")
    monkeypatch.delattr(driver.PieceJob, "keep")  # times pieces against NumPy
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    monkeypatch.setattr(driver.SplitPlan, "is_inexact", True)  # NumPy may run no calls
    for _ in range(90):
        assert_same(compiled(*args()), in_a_loop(*args()))
    job = compiled._cinductor_job
    misses, calls = job.misses, compiled.calls
    for _ in range(3):
        assert_same(compiled(*args()), in_a_loop(*args()))
    assert job.misses == misses and compiled.calls == calls + 3
    with pytest.raises(ValueError, match="broadcast") as caught:
        compiled(args(12)[0], args(12)[0][:5])
    entries = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [(e.name, e.line) for e in entries] == [
        ("in_a_loop", "new = 0.5 * (x + w / (x * x + 1))")
    ]
    plan_of(compiled).split()
    assert_same(compiled(*args()), in_a_loop(*args()))
    assert job.misses == misses + 2


def test_explain_and_stats_show_pieces(backend):
    compiled = cinductor.compile(kept, backend=backend)
    for _ in range(3):
        compiled(*args())
    first = kept.__code__.co_firstlineno
    report = cinductor.explain(compiled, *args())
    assert [p.split("test_pieces.py:")[1] for p in report.pieces] == [
        f"{first + 1}-{first + 2}",
        f"{first + 3}-{first + 4}",
    ]
    assert "later calls run these compiled, with Python between" in str(report)
    assert cinductor.stats()["functions"]["kept"]["pieces"] == 2
    SEEN.clear()


def test_functions_inside_are_named_as_ever(backend):
    def f(x):
        def inner(a):
            return a * 2

        print(end="", flush=True)
        return inner, inner(x), (lambda: 1)

    compiled = cinductor.compile(f, backend=backend)
    for _ in range(4):
        got, want = compiled(np.ones(4000)), f(np.ones(4000))
        assert got[0].__qualname__ == want[0].__qualname__ and got[0].__name__ == "inner"
        assert got[2].__qualname__ == want[2].__qualname__
        assert_same(got[1], want[1])
        assert_same(got[0](np.ones(3)), want[0](np.ones(3)))


class Hashed:
    """Records calls of its `__hash__`."""

    asked = 0

    def __hash__(self):
        Hashed.asked += 1
        return 1

    def __eq__(self, other):
        return True


KEY = Hashed()


def hashes(x):
    y = x * 2
    t = {Hashed(): 2.0}[KEY]
    y[0] = t
    return y.sum(), Hashed.asked


def looks_into_a_list(x):
    o = []
    s = x.sum()
    if s > 1:
        o.append([s])
    return s + len(repr((list(o), len(o))))


def returns_a_generator_that_was_used(x):
    it = (v + 0.25 for v in x)
    s = np.fromiter(itertools.islice(it, 2), float).sum()
    return s, list(itertools.islice(it, 6))


def hands_a_generator_on_in_a_cell(x):
    it = (v + 0.25 for v in x)

    def inner(v):
        return v + np.fromiter(itertools.islice(it, 2), float).sum()

    if x[0] > 0.4:
        s = inner(0.0)
    else:
        s = inner(0.0) - 1
    return s, list(itertools.islice(it, 6))


@pytest.mark.parametrize(
    "f",
    [hashes, looks_into_a_list, returns_a_generator_that_was_used, hands_a_generator_on_in_a_cell],
)
def test_what_goes_from_piece_to_piece(f):
    """Hooks run as often as in Python, lists are read to the last item, and iterators keep their position."""
    compiled = cinductor.compile(f, backend="interp")
    for k, n in enumerate((4, 5, 3, 5, 7)):
        x = np.random.default_rng(k).random(n)
        Hashed.asked = 0
        want = f(x)
        Hashed.asked = 0
        assert repr(compiled(x)) == repr(want)


def counts_bytes(x, kept):
    kept.append(1)
    counts = [0, 0]
    total = 0
    for i in range(len(x)):
        if 3 <= int(x[i]) <= 90:
            counts[1] += 1
        total += int(x[i])
    return total, counts


def shifts_letters(x, kept):
    text = x.astype(np.uint8).tobytes()
    print(end="", flush=True)
    letters = np.frombuffer(text, np.uint8)
    made = np.empty(len(letters), np.uint8)
    for i in range(len(letters)):
        c = int(letters[i])
        if 97 <= c <= 122:
            c = (c - 97 + 3) % 26 + 97
        made[i] = c
    return made.tobytes()


@pytest.mark.usefixtures("pieces_are_compiled")
@pytest.mark.parametrize("fn", [counts_bytes, shifts_letters])
def test_a_loop_over_ints_after_a_break_is_a_piece(fn):
    """Python ints need checks, which may not fail after a break. A new piece starts where checks may fail again."""
    compiled = cinductor.compile(fn, backend="interp")
    for low, high, n in ((0, 120, 300), (-9, 120, 300), (0, 120, 300), (0, 1 << 62, 300), (0, 9, 20), (0, 9, 0)):
        x = np.random.default_rng(n).integers(low, high, n)
        for _ in range(2):
            ours, theirs = [], []
            assert repr(compiled(x, ours)) == repr(fn(x, theirs))
            assert ours == theirs
    plan = compiled._cinductor_job.plan
    assert plan.pieces and all(piece.specializations for piece in plan.pieces[-1:])


def named_in_a_branch(x):
    if len(x):
        y = x.sum()
    print(end="", flush=True)
    try:
        return y
    except NameError:
        return "none"


def named_in_a_generator(x):
    s = sum((y := v) * 2 for v in x)
    print(end="", flush=True)
    try:
        return s, y
    except NameError:
        return s


@pytest.mark.parametrize("fn", [named_in_a_branch, named_in_a_generator])
def test_a_piece_may_leave_a_name_without_a_value(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for n in (0, 0, 3, 0, 4, 3):
        x = np.arange(n) + 0.5
        assert repr(compiled(x)) == repr(fn(x))


def test_a_piece_that_differs_in_each_iteration_is_left_at_once(monkeypatch):
    """One call has many iterations: those after the limit ask no capture."""
    asked, ask = [], Job.why_no_more
    monkeypatch.setattr(Job, "why_no_more", lambda *given: asked.append(0) or ask(*given))

    def counted(table, x, limit):
        total, k, n = 0.0, 0, len(x)
        while total < limit:
            total += x[k % n]
            k += 1
            table[k % 7] = table.get(k % 7, 0) + 1
        return total, k

    compiled, x = cinductor.compile(counted, mode="now"), np.full(1000, 0.5)
    for limit in (2000.0, 2000.0, 2000.0):
        got, want = {}, {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert compiled(got, x, limit) == counted(want, x, limit) and got == want
    assert 8 < len(asked) < 200


def heaviest(w, v, capacity):
    print(end="", flush=True)
    best = np.zeros(capacity + 1)
    for i in range(len(w)):
        with_i = best[: capacity + 1 - w[i]] + v[i]
        better = with_i > best[w[i] :]
        best[w[i] :] = np.where(better, with_i, best[w[i] :])
    return best[-1]


def test_a_loop_after_a_break_is_a_piece_although_arrays_are_small():
    """After an effect no check is possible, so slices by data break; a piece has no effect before it, and captures the loop."""
    w, v = np.array([3, 5, 2, 7, 4] * 4), np.arange(20) + 0.5
    compiled = cinductor.compile(heaviest)
    for _ in range(3):
        assert compiled(w, v, 30) == heaviest(w, v, 30)
    pieces = compiled._cinductor_job.plan.pieces
    assert [s for p in pieces for s in p.specializations] and not any(p._cinductor_job.plan for p in pieces)


INNER = {
    "even": "def even(n):\n        return step(n) if n else x * calls[0]",
    "step": "def step(n):\n        calls[0] += 1\n        return odd(n - 1) + k",
    "odd": "odd = lambda n: even(n - 1) if n else (k for k in x)",
}
BREAKS = 'print(end="", flush=True)'


@pytest.mark.usefixtures("pieces_are_compiled")
@pytest.mark.parametrize("order", [*itertools.permutations(INNER)], ids="-".join)
@pytest.mark.parametrize("at", range(4))
def test_functions_that_call_later_ones_across_a_break(order, at):
    """A function sees a name that is bound after it was made, in another piece."""
    lines = [INNER[name] for name in order]
    body = "\n    ".join(["calls = [0]", *lines[:at], BREAKS, *lines[at:], "k = x.sum()", "y = even(4) * 2", BREAKS, "return y + even(2), calls"])
    fn = load(f"def f(x):\n    {body}\n", f"<inner {order} {at}>")
    compiled = cinductor.compile(fn, backend="interp")
    for n in (3, 3, 4, 3):
        x = np.arange(float(n))
        assert repr(compiled(x)) == repr(fn(x))
