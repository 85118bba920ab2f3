"""Tests loops that cannot be captured, loops that never end, and what user code around them observes."""

import os
import signal
import threading
import types

import numpy as np
import pytest

import cinductor
from cinductor.base.interrupt import is_interrupt
from cinductor.testing import assert_same


def interrupted(call, after=0.5):
    """Interrupt the call by Ctrl-C; it must end soon."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def endless_in_a_kernel(x):
    while x[0] >= 0:
        x[1] += 1
    return x


def endless_around_kernels(x):
    y = x @ x.T
    while y.sum() > -1:
        y = np.abs(np.sin(y @ y))
    return y


def endless_and_shrinking(x):
    n = 0
    while len(x):
        x = x[x < 1]
        n += 1
    return n


CASES = [(endless_in_a_kernel, np.zeros(9)), (endless_around_kernels, np.eye(80)), (endless_and_shrinking, np.zeros(50))]


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn, x", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_a_loop_without_end_is_interrupted(fn, x, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    given = x.copy()
    interrupted(lambda: compiled(given))
    ended = x - 1 if fn is endless_in_a_kernel else x[:0]
    if fn is not endless_around_kernels:  # the compiled function still works
        np.testing.assert_array_equal(compiled(ended.copy()), fn(ended.copy()))


def test_equal_code_of_another_file_is_no_signal_handler():
    def handler(number, frame):
        raise ValueError

    other = types.FunctionType(handler.__code__.replace(co_filename="other"), globals())
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for function in (handler, other):
            with pytest.raises(ValueError) as raised:
                function(0, None)
            assert is_interrupt(raised.value) == (function is handler)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_graph_that_is_too_large_names_the_loop():
    def fills(x):
        kept = ()
        for i in range(len(x)):
            kept = (kept, x[i] * 2)
        return kept

    compiled = cinductor.compile(fills, backend="interp", options={"node_limit": 100})
    x = np.arange(60.0)
    assert compiled(x) == fills(x)
    line = fills.__code__.co_firstlineno + 2
    (why,) = compiled._cinductor_job.reasons_for_numpy(compiled)
    assert f"{__file__}:{line + 1} alone made" in why and f"in the loop at {__file__}:{line}, which runs in Python, one iteration at a time" in why
    assert "node_limit" in why
    assert compiled(x[:10]) == fills(x[:10])
    with pytest.raises(cinductor.Unsupported, match="too large"):
        cinductor.compile(fills, backend="interp", fullgraph=True, options={"node_limit": 100})(x)


def test_a_list_that_is_too_long():
    """The loop is captured, but its result has more items than a graph may have."""

    def fills(x):
        kept = []
        for i in range(len(x)):
            kept.append(x[i] * 2)
        return kept

    x = np.arange(60.0)
    assert cinductor.compile(fills, backend="interp", options={"node_limit": 100})(x) == fills(x)


def doubles(x):
    held, s = [v for v in x], 0.0
    print(end="", flush=True)
    for k in range(9):
        held.extend(held)
        for v in held[:: 2**k]:
            s += v * k
    return s, len(held)


def test_after_an_effect_numpy_goes_on_before_the_graph_is_full():
    x = np.arange(5) / 3
    compiled = cinductor.compile(doubles, backend="interp", options={"node_limit": 100, "capture_limit": 1000})
    with pytest.warns(cinductor.CinductorWarning, match=r"runs on in NumPy: the graph has half of the nodes of node_limit \(100\)"):
        assert compiled(x) == doubles(x)
    assert compiled(x) == doubles(x)


def test_a_bare_except_sees_no_internal_exception():
    def caught(x):
        seen = 0
        total = 0.0
        for i in range(len(x)):
            try:
                total += x[i]
                if x[i] > 1e9:
                    total = x
            except:  # noqa: E722
                seen += 1
        return total, seen

    def caught_around(x):
        try:
            while x[0] > 0:
                x = x[1:] if x[0] > 3 else x * 0.5 - 0.1
                if len(x) < 2:
                    raise ValueError("few")
        except BaseException as error:
            return type(error).__name__, x
        finally:
            x = x + 1
        return x

    x = np.arange(12.0)
    for fn in (caught, caught_around):
        for args in (x, x + 2, x - 30):
            compiled = cinductor.compile(fn, backend="interp")
            for _ in range(2):
                want, got = fn(args.copy()), compiled(args.copy())
                assert repr(got) == repr(want)


# --- names that a test binds, and loops that only a jump leaves --------------------------------------


def named_in_the_test(x):
    k = 0
    while (most := x.max()) > 1:
        x = x - 1 if k > 3 else x * 0.7
        k += 1
    return x, k, most


def named_with_else(x):
    while (most := x.max()) > 1:
        if most > 30:
            break
        x = x * 0.7
    else:
        most = most + 100
    return x, most


def named_in_a_loop(x):
    total = 0.0
    for i in range(9):
        while (most := x[i] + total) > 2:
            if most > 40:
                break
            x[i] -= 0.5
            if most > 20:
                continue
            x[i] -= 0.25
        else:
            total += most
            continue
        total -= 1
    return x, total, most


def left_by_a_break(x):
    k = 0
    while True:
        most = x.max()
        if not most > 1:
            break
        x = x - 1 if k > 3 else x * 0.7
        k += 1
    return most, k


def left_by_a_return(x):
    x = x.copy()
    while True:
        most = x.max()
        if most < 1:
            return x, most
        x *= 0.7


ENDS = [named_in_the_test, named_with_else, named_in_a_loop, left_by_a_break, left_by_a_return]


@pytest.mark.parametrize("fn", ENDS, ids=[fn.__name__ for fn in ENDS])
def test_a_name_is_after_a_loop_what_its_last_test_made_it(fn):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    for scale in (0.0, 1.0, 3.0, 7.0):
        x = np.linspace(0.1, 9, 9) * scale
        assert_same(compiled(x.copy()), fn(x.copy()))


# --- arrays that change places -----------------------------------------------------------------------


def two_in_turn(u, n):
    v = np.empty_like(u)
    for k in range(n):
        v[...] = u * 0.5 + k
        u, v = v, u
    return u, v if n else None


def three_in_turn(u, n):
    a, b, c = u.copy(), u * 2, u * 3
    for k in range(n):
        a[...] = b + c * 0.25 + k
        a, b, c = b, c, a
    return a, b, c


def three_and_the_last_iteration(u, n):
    a, b, c = u.copy(), u * 2, u * 3
    seen = None
    for k in range(n):
        seen = a[:2]
        a[...] = b + c * 0.25 + k
        a, b, c = b, c, a
    return a, b, c, seen


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", [two_in_turn, three_in_turn, three_and_the_last_iteration], ids=lambda fn: fn.__name__)
def test_arrays_that_change_places(fn, dynamic):
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for n in (9, 10, 11, 12, 0, 1, 2, 3, 20, 21, 22) if dynamic else (9, 10, 11, 12, 0, 1, 2):
        given, expected = np.arange(4.0), np.arange(4.0)
        assert_same(compiled(given, n), fn(expected, n))
        assert_same(given, expected)


# --- names that iterations pass on unchanged ------------------------------------------------------------


def swapped_then_written(x, y, n):
    for _ in range(n):
        x, y = y, x
    y[0] = 7
    return y


def swapped(x, y, n):
    for _ in range(n):
        x, y = y, x
    return x


def sums_handed_on(a, b, n):
    for _ in range(n):
        a, b = b, a + b
    return a, b


def sums_handed_on_then_written(a, b, n):
    for _ in range(n):
        a, b = b, a + b
    a[0] = 9
    return b


def three_handed_on(a, b, c, n):
    for _ in range(n):
        a, b, c = b, c, a + c
    return a


def made_and_handed_on(a, n):
    p = a * 1
    q = a * 2
    for _ in range(n):
        p, q = q, p + q
    p[0] = 5
    return p, q


def an_argument_at_last(a, b, n):
    x = a * 2
    for _ in range(n):
        x, a = a, b
    x[0] = 3
    return x


def views_change_places(a, b, n):
    for _ in range(n):
        a, b = b[::-1], a
    b[0] = 3
    return a, b


def handed_on_while(x, y, t):
    while x.sum() < t:
        x, y = y, x + 1
    y[0] = -1
    return x, y


HANDED_ON = [
    swapped_then_written,
    swapped,
    sums_handed_on,
    sums_handed_on_then_written,
    three_handed_on,
    made_and_handed_on,
    an_argument_at_last,
    views_change_places,
    handed_on_while,
]


def memory(results, arguments):
    """Which results are arguments, and which share their memory."""
    results = results if isinstance(results, tuple) else (results,)
    return [(r is a, np.shares_memory(r, a)) for r in results for a in arguments]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", HANDED_ON, ids=lambda fn: fn.__name__)
def test_arrays_that_are_handed_on_stay_themselves(fn, dynamic):
    """After any number of iterations, a name may be an argument itself. Then it is the same object, and writes go to
    it.
    """
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    count = fn.__code__.co_argcount - 1
    for n in (9, 10, 0, 1, 2, 3, 20):
        given = [np.arange(4.0) * (k + 1) for k in range(count)]
        expected = [a.copy() for a in given]
        got, want = compiled(*given, n), fn(*expected, n)
        assert_same(got, want)
        assert_same(given, expected)
        assert memory(got, given) == memory(want, expected)


# --- data-dependent iterations around statements that only Python can run ---------------------------------


def counted_by_a_mask(y, t):
    n = len(y[y > t])
    for _ in range(n):
        print(end="", flush=True)
    return y, n


def counted_after_an_effect(y, t):
    print(end="", flush=True)
    n = len(y[y > t])
    for _ in range(n):
        print(end="", flush=True)
    return y, n


def counted_before_an_effect(y, t):
    n = y[y > t].shape[0]
    print(end="", flush=True)
    z = np.zeros(n)
    for i in range(n):
        z[i] = i
        print(end="", flush=True)
    return z, n


COUNTED = [counted_by_a_mask, counted_after_an_effect, counted_before_an_effect]


@pytest.mark.parametrize("fn", COUNTED, ids=lambda fn: fn.__name__)
def test_a_count_outlives_what_was_counted(fn, pieces_are_compiled):
    compiled = cinductor.compile(fn, backend="interp")
    for y in (np.array([5.0]), np.array([1.0, 2, 3]), np.arange(12.0), np.zeros(0)):
        for _ in range(2):
            assert_same(compiled(y.copy(), 1.0), fn(y.copy(), 1.0))


def rotated_after_an_effect(x, t, k):
    """The last loops of the inner name run fewer iterations than the first ones need before their regions."""
    for i in range(len(x)):
        first = []
        if k:
            first.append(t)
        print(end="", flush=True)
        s = first[-1] if first else x[0]
        b, c = np.zeros_like(x), np.zeros_like(x)
        for _ in range(i, len(x)):
            a = (b + c) * 0.5 + s
            a, b, c = b, c, a
    return a, b, c


def test_a_loop_may_run_fewer_iterations_than_before_its_region():
    compiled = cinductor.compile(rotated_after_an_effect, backend="interp", dynamic=True)
    for n in (7, 7, 3, 1, 12):
        x = np.arange(1, 1 + n).astype(np.float32)
        for k in (3, 0):
            got, want = (fn(x.copy(), np.float64(1.5), k) for fn in (compiled, rotated_after_an_effect))
            assert_same(got, want)
