"""Warning filters and NumPy's errstate change between the calls of one compiled function, which is compared with Python."""

import contextlib
import random
import sys
import warnings

import numpy as np
import pytest
import test_ends
from ways import BY_NAME

import cinductor

X = np.arange(-1.0, 3.0)


def divides(x):
    return 1 / x


def divides_twice(x):
    y = 1 / x
    return y, np.log(x)


def divides_between(x):
    y = 1 / x
    print(end="", flush=True)
    return y, np.log(x)


def divides_in_place(x):
    x /= x - 1
    return x


def divides_in_a_loop(x):
    s = 0.0
    for v in x:
        s += np.log(v)
    return s


def divides_as_asked(x, how="ignore"):
    with np.errstate(divide=how, invalid=how):
        return np.log(x)


def warns_itself(x):
    if (x < 0).any():
        warnings.warn("negative", stacklevel=1)
    return np.sqrt(x)


PROGRAMS = [divides, divides_twice, divides_between, divides_in_place, divides_in_a_loop, divides_as_asked]
PROGRAMS += [warns_itself]


@contextlib.contextmanager
def world(rng):
    """Filters and an errstate, chosen at random."""
    with warnings.catch_warnings(record=True) as seen, contextlib.ExitStack() as stack:
        warnings.simplefilter(rng.choice(["default", "default", "ignore", "always", "error", "module"]))
        if rng.random() < 0.3:
            warnings.filterwarnings(rng.choice(["ignore", "always", "default"]), message=rng.choice(["divide", "invalid"]))
        if rng.random() < 0.4:
            how = {kind: rng.choice(["ignore", "warn", "raise"]) for kind in rng.sample(["divide", "invalid", "all"], 2)}
            stack.enter_context(np.errstate(**how))
        yield seen


def outcomes(fn, seed):
    """The results and warnings of several calls."""
    rng, made = random.Random(seed), []
    for _ in range(8):
        x = X + rng.randrange(3)
        with world(rng) as seen:
            try:
                result = fn(x)
            except (RuntimeWarning, UserWarning, FloatingPointError) as error:
                result = error
        made.append((repr(result), repr(x), [(str(w.message), w.lineno) for w in seen]))
    return made


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_warnings_of_a_changed_world(fn, seed, way):
    if way.is_device:
        pytest.skip("a GPU has no floating-point flags")
    assert outcomes(cinductor.compile(fn, **way.options(numerics="exact")), seed) == outcomes(fn, seed)


def once(fn, *calls):
    """The numbers of warnings of calls under filters that do not change between them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        numbers = []
        for call in calls:
            del seen[:]
            call(fn)
            numbers.append(len(seen))
    return numbers


@pytest.mark.parametrize("fn", PROGRAMS[:4], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["c", "interp", "broken, default"])
def test_what_was_ignored_was_not_given(fn, name):
    """A call under an errstate that ignores, or filters that do, is none that has warned."""

    def call(f):
        f(X.copy())

    def call_quietly(f):
        with np.errstate(all="ignore"):
            call(f)

    def call_unseen(f):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(f)

    for calls in ([call_quietly, call, call], [call_quietly, call_quietly, call], [call_unseen, call, call_unseen, call]):
        assert once(cinductor.compile(fn, **BY_NAME[name].settings), *calls) == once(fn, *calls)


def test_a_capture_gives_no_warning_again():
    """Filters are not seen to change when a function is captured, so a warning that was given once is not given again."""

    def call(f):
        f(X.copy())

    def captured(f):
        cinductor.compile(lambda x: x * len([*zip(iter([1, 2]), [3, 4])]), backend="interp")(X)

    for fn in (warns_itself, cinductor.compile(warns_itself, backend="interp")):
        assert once(fn, call, captured, call, call)[2:] == [0, 0]


# Where a program compares, it does not say that a value is invalid.
NAMED = [f for f in test_ends.FLOATS if f.__name__ not in ("warns_of_each_operation", "warns_and_stores_what_it_compares", "warns_where_it_compares")]


@pytest.mark.parametrize("fn", NAMED, ids=lambda f: f.__name__)
def test_changed_filters_of_functions_with_effects(fn):
    """Which kinds of warnings there are, for functions that cannot all be repeated."""
    compiled = cinductor.compile(fn)
    for action in ("ignore", "default", "default", "ignore", "default"):
        want = test_ends.outcome(fn, np.full(30, -1.0), action)
        got = test_ends.outcome(compiled, np.full(30, -1.0), action)
        assert {text.split(" encountered")[0] for text, *_ in got[1]} == {text.split(" encountered")[0] for text, *_ in want[1]}


def asks_for_its_caller(x):
    warnings.warn("from here", stacklevel=2)
    frame = sys._getframe(1)
    return frame.f_code.co_name, frame.f_lineno, frame.f_globals is globals(), (1 / x).sum()


@pytest.mark.parametrize("mode", ["now", "lazy", "auto"])
@pytest.mark.parametrize("size", [3, 0])
def test_the_caller_of_a_call_that_is_not_compiled(mode, size):
    found = []
    for fn in (asks_for_its_caller, cinductor.compile(asks_for_its_caller, mode=mode)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found.append([(fn(np.arange(float(size))), [(w.filename, w.lineno) for w in seen]) for _ in range(4)])
    assert repr(found[0]) == repr(found[1])


def with_errstate(x):
    return x + 1, np.errstate(all="ignore")


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_errstate_that_the_call_returns(backend):
    """The errstate holds an object that only NumPy makes."""
    compiled = cinductor.compile(with_errstate, backend=backend)
    for n in (3, 3, 4, 3):
        with compiled(np.ones(n))[1]:
            assert np.isinf(np.float64(1) / np.zeros(n)).all()


def tells(level):
    warnings.warn(f"from {level}", stacklevel=level)


def warns_far(x):
    y = x * 2
    tells(2)
    y = y + 1
    tells(4)
    return y.sum()


def asks_far(x):
    y = x * 2 + 1
    frames = [sys._getframe(k) for k in range(4)]
    return y.sum(), [(frame.f_code.co_name, frame.f_lineno) for frame in frames]


def around(fn, x):
    return fn(x)


def around_that(fn, x):
    return around(fn, x)


@pytest.mark.parametrize("fn", [warns_far, asks_far])
@pytest.mark.parametrize("is_split", [False, True])
def test_outer_callers(fn, is_split, request):
    """In each call: the first ones, those in pieces, and those of the function itself."""
    if is_split:
        request.getfixturevalue("pieces_are_compiled")
    found = []
    for f in (fn, cinductor.compile(fn, backend="interp")):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found.append([(around_that(f, np.arange(float(n))), [(w.filename, w.lineno) for w in seen]) for n in (5, 3, 5, 5, 3, 5)])
    assert repr(found[0]) == repr(found[1])
