"""Tests that an internal error does not change a call: after a side effect, NumPy continues from the step that
failed.

A function of each layer is patched to raise once, after the first effect. There must be one warning, and every
effect must happen once and in order.
"""

import linecache
import math
import warnings

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.capture import boundary, effects, session
from cinductor.capture import operands as whole
from cinductor.capture.calls import functions as follow
from cinductor.capture.control import branch, loop
from cinductor.capture.hooks import attributes, scope, subscripts
from cinductor.capture.pieces import driver
from cinductor.numpy import surface
from cinductor.testing import assert_same

seen = []


def note(value):
    """A side effect of Python."""
    seen.append(value)


note.__cinductor_disabled__ = "an effect"


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def of(self, x):
        return x * self.factor


def helper(x):
    return x + 1


def straight(x, y):
    note("a")
    z = x * 2 + y
    w = np.where(z > 1, helper(z), -z)
    note("b")
    w[0] = z.max()
    y[1:] = w[:-1]
    return w, y, w.sum() + Scaled(3).of(z)[0]


def with_handlers(x, y):
    note("a")
    try:
        z = x[np.argmax(x)] / y.shape[0]
        v = np.cumsum(y)
        y[-1] = z
    except Exception as error:
        note(repr(error))
        z, v = -1, x
    finally:
        note("f")
    return {"v": v, "z": z}, y


def with_loops(x, y):
    note("a")
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            s += x[i] * y[i]
        else:
            s -= 1
        y[i] = s
    note(float(s))
    for k in range(3):
        if s > k:
            y[k] = k
    return s, y


def with_later_operands(x, y):
    note("a")
    first = x * changed(x)
    x += 1
    return first + y, x


def changed(x):
    y = x + 1
    note("b")
    return y * np.abs(x)


PROGRAMS = (straight, with_handlers, with_loops, with_later_operands)
PLACES = {
    "names": (scope.Scope, "_global"),
    "calls": (scope, "dispatch"),
    "functions": (follow, "bind"),
    "attributes": (attributes.Attributes, "_get_attr"),
    "operands": (whole, "hook_of"),
    "entering": (boundary.Lifting, "lift_guarded"),
    "arrays": (boundary.Lifting, "array"),
    "writes": (effects.Effects, "before_write"),
    "indices": (subscripts.Subscripts, "_key"),
    "loops": (loop.Loop, "close_run"),
    "trips": (loop.Loop, "open_run"),
    "branches": (branch.Branch, "finish"),
    "arms": (branch.Level, "open_arm"),
    "results": (session, "finish"),
    "plans": (driver, "plan_of"),
    "outcomes": (session, "keep"),
}


def plant(monkeypatch, place, error, nth):
    """Make the function raise at its nth call after the first effect. Return a list that counts the failures."""
    owner, name = PLACES[place]
    original, planted = getattr(owner, name), []
    count = 0

    def raising(*args, **kwargs):
        nonlocal count
        count += bool(seen)
        if count == nth and seen and not planted:
            planted.append(name)
            raise error("planted")
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, raising)
    return planted


def inputs():
    return np.array([0.1, 0.7, 0.3, 0.9]), np.array([1.0, 2.0, 3.0, 4.0])


def told(fn):
    """The result of a call, its changes to arguments, its effects and its warnings."""
    arguments = inputs()
    seen.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fn(*arguments)
    return result, arguments, list(seen), [str(w.message) for w in caught]


def is_same(a, b):
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and is_same(list(a.values()), list(b.values()))
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


ERRORS = (_core.InternalError, KeyError, TypeError)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("place", PLACES)
def test_a_mistake_after_an_effect(place, program, monkeypatch):
    """At each place every error happens at every call: each time in another program, and all in the one that handles errors."""
    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    result, arguments, effects, _ = told(program)
    for number, nth in enumerate((1, 2, 3, 5), PROGRAMS.index(program)):
        for error in ERRORS if program is with_handlers else (ERRORS[number % len(ERRORS)],):
            f = cinductor.compile(program, backend="interp")
            with monkeypatch.context() as patch:
                planted = plant(patch, place, error, nth)
                mine = told(f)
                assert is_same(mine[0], result)
                assert is_same(mine[1], arguments)
                assert mine[2] == effects
                assert len(mine[3]) <= 1
                assert all("runs in NumPy" in text and "planted" in text for text in mine[3])
                assert planted or not mine[3]
            again = told(f)
            assert is_same(again[:3], (result, arguments, effects)) and not again[3]


def handled(x, y):
    try:
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * y[i] if x[i] > 0.5 else 1.0
    except Exception as error:
        return repr(error)
    return s


@pytest.mark.parametrize("error", [TypeError, AttributeError, ValueError])
@pytest.mark.parametrize(
    "owner, name",
    [
        (loop.Loop, "close_run"),
        (loop.Loop, "open_run"),
        (branch.Branch, "finish"),
        (branch.Level, "open_arm"),
    ],
)
def test_no_handler_of_the_users_sees_a_mistake(owner, name, error, monkeypatch):
    """The error is raised before any effect, so the original function runs from the start."""
    space = {"error": error}
    code = compile("def raising(*args):\n    raise error('planted')", loop.__file__, "exec")
    exec(code, space)
    monkeypatch.setattr(owner, name, space["raising"])
    assert told(cinductor.compile(handled, backend="interp"))[0] == told(handled)[0]


def test_internal_methods_raise_what_no_handler_catches():
    tracer = _core.Tracer("f", options={}, backend="interp")
    x = tracer.array(np.ones(3), 0)
    for misuse in (
        lambda: tracer.as_python(1),
        lambda: tracer.varying(1, x),
        lambda: x.detached(),
        lambda: tracer.select(x, 1, 2, "scalar"),
    ):
        with pytest.raises(_core.InternalError):
            misuse()


def test_a_mistake_is_told_of(monkeypatch):
    planted = plant(monkeypatch, "calls", KeyError, 2)
    f = cinductor.compile(with_handlers, backend="interp")
    texts = told(f)[3]
    assert planted and len(texts) == 1 and "please report it" in texts[0]
    assert not told(f)[3]


def stepped(x, a):
    note("a")
    return x[::a], x[a:] * 2


def cut(x, a):
    note("a")
    return x[:a], x[1:a:2], x.reshape(2, 2)[::a, ::a]


def result_or_error(run, *given):
    try:
        return run(*given)
    except Exception as error:
        return type(error).__name__, str(error)


def spread(x, a):
    note("a")
    return np.broadcast_to(x, (a, 4)).shape, np.broadcast_to(x[:1], (a,)).shape


NUMBERS = [2**63 - 1, -(2**63), 2**61, 2**60, np.uint64(2**64 - 1), np.int64(2**63 - 1)]
CASES = [(function, n) for function in (stepped, cut, spread) for n in NUMBERS if function is not spread or type(n) is int]


@pytest.mark.parametrize(("function", "number"), CASES)
def test_a_size_beyond_64_bits_is_a_limit(function, number):
    """NumPy runs the rest of the call, whose effects happen once, and nothing asks to report it."""
    f = cinductor.compile(function, backend="interp")
    seen.clear()
    for _ in range(3):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            got, want = (result_or_error(run, np.arange(4.0), number) for run in (f, function))
        assert not [w for w in given if "report" in str(w.message)]
        assert_same(got, want)
        assert seen == ["a", "a"]
        seen.clear()


def in_a_loop(x):
    s = 0.0
    for v in x:
        s += np.clip(v, 0, 1)
    return s


def in_a_branch(x):
    s = 0.0
    if x.sum() > 1:
        s += np.clip(x[0], 0, 1)
    return s


def in_a_try(x):
    try:
        return np.clip(x, 0, 1)
    except NameError:
        return -1


def unknown_name(x):
    s = 0.0
    for v in x:
        s += v * is_undefined_everywhere  # noqa: F821
    return s


@pytest.mark.parametrize("program", [in_a_loop, in_a_branch, in_a_try, unknown_name])
def test_an_internal_name_that_is_not_found(program, monkeypatch):
    """A warning names a mistake of the library. A name that the function does not find is its own exception."""

    def handler(t, *args, **kwargs):
        return no_name_of_the_library  # noqa: F821

    handler.__code__ = handler.__code__.replace(co_filename=scope.__file__)
    monkeypatch.setattr(surface.functions_by_id[id(np.clip)], "handler", handler)
    compiled = cinductor.compile(program, backend="interp")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert shown(compiled) == shown(program)
    if program is unknown_name:
        assert not heard
    else:
        assert len(heard) == 1 and "no_name_of_the_library" in str(heard[0].message)


def shown(fn):
    """The result or the exception of a call, in words."""
    try:
        return repr(fn(np.arange(3.0)))
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("error", [ValueError, _core.InternalError])
def test_a_mistake_before_the_function_runs(error, monkeypatch):
    def raising(*args):
        raise error("planted")

    monkeypatch.setattr("cinductor.capture.entry.bind", raising)
    result, arguments, effects, _ = told(straight)
    f = cinductor.compile(straight, backend="interp")
    mine = told(f)
    assert is_same(mine[:3], (result, arguments, effects))
    assert len(mine[3]) == 1 and "planted" in mine[3][0]


@pytest.mark.parametrize(
    "statement", ["d[2]", "[0, 1][i]", "x @ np.ones(7)", "int('x')", "x.nothing"]
)
def test_what_raises_in_numpy_is_the_users(statement):
    """An exception of the user's own code is not an internal error: nothing is abandoned."""
    source = f"""
def f(x, i):
    note("a")
    d = {{1: x}}
    try:
        {statement}
    except Exception as error:
        note((type(error), str(error)))
    for k in range(x.shape[0]):
        x[k] = x[k] * 2
    return x
"""
    space = {"note": note, "np": np}
    linecache.cache["<users>"] = (len(source), None, source.splitlines(True), "<users>")
    exec(compile(source, "<users>", "exec"), space)
    answers = []
    for fn in (space["f"], cinductor.compile(space["f"], backend="interp")):
        seen.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("error", cinductor.CinductorWarning)
            answers.append((fn(np.arange(3.0), 5).tolist(), list(seen)))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("effect", [False, True])
def test_what_a_library_call_raises_at_the_end_is_the_users(effect):
    def program(x):
        if effect:
            note("a")
        return math.fsum(x) + 1

    large = np.array([1.7e308, 1.7e308, 1.0])
    for f in (program, cinductor.compile(program, backend="interp")):
        seen.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("error", cinductor.CinductorWarning)
            with pytest.raises(OverflowError, match="intermediate overflow"):
                f(large)
        assert seen == ["a"] * effect


CAUGHT = (
    "x[99]",
    "x + np.ones(3)",
    "x[:2] = x",
    "x.reshape(3, 100)",
    "x.sum(axis=5)",
    "np.split(x, 3 if len(x) % 3 else 5)",
    "np.linalg.cholesky(x)",
    "np.einsum('ij,k', x, x)",
    "x @ np.ones(100)",
    "np.add(x, 1, out=np.zeros(100))",
    "x[0] @ x[1]",
    "x[x > 2][99]",
    "x[x > 2] + np.ones(99)",
    "x[x > 1] = np.ones(99)",
    "(x[:, None] * x)[-99]",
    "np.quantile(x, x[0] - 2)",
    "np.random.default_rng(3).normal(scale=x[0] - 2)",
    "np.add.reduceat(x, [int(x[0]) + 99])",
    "np.add.reduce(x, where=[True] * 99)",
)


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("statement", CAUGHT)
def test_a_handler_is_told_what_numpy_says(statement, effect):
    """The message has this call's sizes and data, and the contexts are NumPy's."""
    source = f"""
def f(x):
    {"note('a')" if effect else "pass"}
    try:
        y = 1
        {statement}
    except Exception as error:
        return str(error), [type(e) for e in (error.__context__, error.__cause__)], error.__suppress_context__
    finally:
        note("b")
"""
    space = {"note": note, "np": np}
    linecache.cache[source] = (len(source), None, source.splitlines(True), source)
    exec(compile(source, source, "exec"), space)
    for options in ({}, {"dynamic": True}):
        compiled = cinductor.compile(space["f"], backend="interp", **options)
        for n in (8, 8, 5, 6, 8, 7):
            answers = []
            for fn in (space["f"], compiled):
                seen.clear()
                answers.append((fn(np.arange(float(n))), list(seen)))
            assert answers[0] == answers[1]
