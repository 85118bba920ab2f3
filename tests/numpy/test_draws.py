"""Tests random draws that run inside the program because one C routine makes them: same numbers, same generator
state.
"""

import _thread
import signal
import sys
import threading

import numpy as np
import pytest

import cinductor

BACKENDS = ["c", "interp"]
BITS = ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"]


def all_kinds(rng, n):
    s, t = 0.0, 0
    for k in range(n):
        a = rng.random()
        b = rng.standard_normal()
        c = rng.normal(a, 2.0 + k)
        d = rng.normal()
        e = rng.uniform(-1.0, 2.0 + a)
        f = rng.uniform()
        t += rng.integers(0, 7 + k) + rng.integers(3, 4) + rng.integers(-(2**62), 2**62) % 5
        t += rng.integers(1, 6, endpoint=True) + rng.integers(9)
        s += a + b * c - d + e * f + (t % 3)
    return s, t


def mixed_with_arrays(rng, n):
    x = np.zeros(3)
    for _ in range(n):
        x = x + rng.random(3) * rng.random() + rng.integers(0, 9, 3)
        x = rng.permutation(x) + rng.exponential()
        if rng.random() < 0.5:
            x[rng.integers(0, 3)] += rng.normal()
    return x


def arrays(rng, n):
    s = np.zeros((2, 3))
    for k in range(n):
        s = s + rng.random((2, 3)) * rng.standard_normal((2, 3)) + rng.normal(k, 2.0, (2, 3))
        s += rng.uniform(-1.0, 2.0, 3) + rng.integers(0, 5 + k, (2, 3)) + rng.integers(2, 3, 3)
        s[0] += rng.integers(-(2**62), 2**62, 3) % 7 + rng.random((3,)) + rng.random(()) + rng.normal(size=3)
        s += rng.random((0, 3)).sum() + rng.random((2, 1, 3))[:, 0]
        s += rng.integers(0, 9, 3, dtype=np.int32) + rng.random(3, dtype=np.float32)
        s += rng.normal(s[0], 0.1) + rng.integers(s.astype(int).clip(0, 5), 9)
    return s


def estimate(rng, n):
    hits = 0
    for _ in range(n):
        a, b = rng.random(), rng.random()
        if a * a + b * b < 1.0:
            hits += 1
    return 4 * hits / n


def same(got, want):
    for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert type(a) is type(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def same_state(a, b):
    np.testing.assert_equal(a.bit_generator.state, b.bit_generator.state)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("fn", [all_kinds, mixed_with_arrays, arrays, estimate], ids=lambda f: f.__name__)
def test_bits_and_state(fn, bits, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    make = getattr(np.random, bits)
    for seed, n in ((0, 40), (1, 40), (2, 33), (3, 1)):
        ours, theirs = np.random.Generator(make(seed)), np.random.Generator(make(seed))
        same(compiled(ours, n), fn(theirs, n))
        same_state(ours, theirs)
        assert ours.random(dtype=np.float32) == theirs.random(dtype=np.float32)


def two(a, b, n):
    s = 0.0
    for _ in range(n):
        s += a.random() - b.normal(1.0, 0.5)
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_generators_that_share_their_bits(backend):
    compiled = cinductor.compile(two, backend=backend, fullgraph=True)
    for seed in range(3):
        pairs = []
        for f in (compiled, two):
            bits = np.random.PCG64(seed)
            a, b = np.random.Generator(bits), np.random.Generator(bits)
            pairs.append((f(a, b, 25), f(a, a, 25), bits.state))
        assert pairs[0] == pairs[1]


def uniform_alone(a, b, n):
    s = 0.0
    for _ in range(n):
        s += a.random() - 2 * b.uniform(1.0, 3.0)
    return s


def normal_before(a, b, n):
    s = b.normal()
    for _ in range(n):
        s -= a.random()
    return s, b.normal()


def some_of_an_array(a, b, n):
    s = 0.0
    for _ in range(n):
        s += a.random() - b.random(3).sum()
    return s


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("second", [np.random.Generator, np.random.RandomState], ids=["Generator", "RandomState"])
@pytest.mark.parametrize("fn", [two, uniform_alone, normal_before, some_of_an_array], ids=lambda f: f.__name__)
def test_generators_that_share_their_bits_in_later_calls_only(fn, second, backend):
    g = cinductor.compile(fn, backend=backend)
    for k, is_shared in enumerate((False, True, False, True, True)):
        made = []
        for f in (g, fn):
            bits = np.random.PCG64(k)
            a, b = np.random.Generator(bits), second(bits if is_shared else np.random.PCG64(9))
            made.append((f(a, b, 20 + k), f(a, a, 3), bits.state))
        assert made[0] == made[1]


class Half(np.random.PCG64):
    """A bit generator of a class that is not NumPy's."""


def test_other_classes_draw_through_python():
    compiled = cinductor.compile(all_kinds, backend="c")
    for make in (Half, np.random.PCG64):
        ours, theirs = np.random.Generator(make(4)), np.random.Generator(make(4))
        same(compiled(ours, 20), all_kinds(theirs, 20))
        same_state(ours, theirs)

    class Own(np.random.Generator):
        def random(self):
            return 0.25

    for _ in range(2):
        ours, theirs = Own(np.random.PCG64(4)), Own(np.random.PCG64(4))
        same(compiled(ours, 20), all_kinds(theirs, 20))
        same_state(ours, theirs)


def draws_one(rng, a, b, n):
    s = 0.0
    for _ in range(n):
        s += rng.random()
        s += rng.normal(a, b)
        s += rng.uniform(a, b)
    return s


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "bad", [(0.0, -1.0), (0.0, -0.0), (-1e308, 1e308), (np.inf, 1.0), (0.0, np.nan), (1.0, 0.5)]
)
def test_parameters_that_numpy_looks_at(bad, backend):
    compiled = cinductor.compile(draws_one, backend=backend, fullgraph=True)
    for a, b in ((0.0, 1.0), bad, (1.0, 2.0), bad, (-0.0, 0.0)):
        results = []
        for f in (compiled, draws_one):
            rng = np.random.default_rng(7)
            try:
                results.append((repr(f(rng, a, b, 5)), rng.bit_generator.state))
            except (ValueError, OverflowError) as error:
                results.append((type(error), str(error), rng.bit_generator.state))
        assert results[0] == results[1]


def bounds(rng, ends, n):
    s = 0
    for _ in range(n):
        s ^= rng.integers(ends[0], ends[1])
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds(backend):
    compiled = cinductor.compile(bounds, backend=backend, fullgraph=True)
    ends = [0, 1, 5, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, -1, -(2**63), 1]
    for low in ends:
        for high in ends:
            results = []
            for f in (compiled, bounds):
                rng = np.random.default_rng(7)
                try:
                    results.append((int(f(rng, np.array([low, high]), 5)), rng.bit_generator.state))
                except ValueError as error:
                    results.append((str(error), rng.bit_generator.state))
            assert results[0] == results[1], (low, high)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_that_fails_in_the_loop(backend):
    def fn(rng, x, n):
        s = 0.0
        for k in range(n):
            s += (
                rng.random() * x[rng.integers(0, 4) + x.shape[0] - 4 + (k // 20) * 9] + rng.normal()
            )
        return s

    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    for n in (20, 7, 25, 20, 30):
        results = []
        for f in (compiled, fn):
            rng = np.random.default_rng(5)
            try:
                results.append((repr(f(rng, np.arange(6.0), n)), rng.bit_generator.state))
            except IndexError as error:
                results.append((str(error), rng.bit_generator.state))
        assert results[0] == results[1]


def test_an_interrupt_gives_the_lock_back():
    compiled = cinductor.compile(estimate, backend="c", fullgraph=True)
    rng = np.random.default_rng(1)
    compiled(rng, 10)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled(rng, 10**10)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    taken = []
    other = threading.Thread(target=lambda: taken.append(rng.bit_generator.lock.acquire(False)))
    other.start()
    other.join()
    assert taken == [True]


def test_a_lock_that_another_thread_holds():
    """The draw waits for the lock, as NumPy does."""
    compiled = cinductor.compile(estimate, backend="c", fullgraph=True)
    rng, theirs = np.random.default_rng(1), np.random.default_rng(1)
    assert compiled(rng, 50) == estimate(theirs, 50)
    results = []
    with rng.bit_generator.lock:
        waiting = threading.Thread(target=lambda: results.append(compiled(rng, 50)))
        waiting.start()
        waiting.join(0.2)
        assert not results
    waiting.join()
    assert results == [estimate(theirs, 50)]
    same_state(rng, theirs)


def test_threads_that_share_a_generator():
    """Each number is drawn by exactly one thread."""

    def fn(rng, n):
        s = 0
        for _ in range(n):
            s += rng.integers(0, 2**40)
        return s

    compiled = cinductor.compile(fn, backend="c", fullgraph=True)
    rng, theirs = np.random.default_rng(1), np.random.default_rng(1)
    assert compiled(rng, 10) == fn(theirs, 10)
    sums = []
    threads = [threading.Thread(target=lambda: sums.append(compiled(rng, 3000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(sums) == fn(theirs, 12000)
    same_state(rng, theirs)


def names_called(function, *args):
    """Names of the Python functions that a profiler sees. From 3.12 on, whether a tool takes the function's lines is asked
    if there is a profiler.
    """
    names = []

    def is_asking(frame):
        return frame is not None and (frame.f_code.co_name == "is_watched" or is_asking(frame.f_back))

    def note(frame, event, _):
        if event == "call" and not is_asking(frame):
            names.append(
                frame.f_code.co_qualname
                if hasattr(frame.f_code, "co_qualname")
                else frame.f_code.co_name
            )

    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return names


def numbers(rng, n):
    s = 0.0
    for _ in range(n):
        s += rng.random() + rng.standard_normal() + rng.normal(1.0, 2.0) + rng.uniform(1.0, 2.0)
        s += rng.integers(0, 9) + rng.integers(0, 9, 2).sum() + rng.random((2, 2)).sum()
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_python_is_called(backend):
    compiled = cinductor.compile(numbers, backend=backend, fullgraph=True)
    rng = np.random.default_rng(3)
    compiled(rng, 30)
    if type(rng.bit_generator.lock) is not type(threading.Lock()):  # with NumPy before 2.4
        assert names_called(compiled, rng, 30) == []
    other = np.random.Generator(Half(3))
    assert names_called(compiled, other, 30).count("generator_at") == 7 * 30


def draws_and_forgets(rng, a):
    rng.integers(9)
    if a[0] > 3:
        rng.random()


def draws_before_a_break(rng, a):
    rng.random(3)
    print(end="")


@pytest.mark.parametrize("fn", [draws_and_forgets, draws_before_a_break], ids=lambda f: f.__name__)
def test_draws_that_are_not_read(fn):
    """A program without results draws, too."""
    compiled = cinductor.compile(fn, backend="interp")
    ours, theirs = np.random.default_rng(4), np.random.default_rng(4)
    for a in (np.ones(3), np.ones(3), 4 * np.ones(3), 4 * np.ones(3)):
        compiled(ours, a)
        fn(theirs, a)
        same_state(ours, theirs)


def test_permutation_of_nothing():
    compiled = cinductor.compile(lambda rng, a: a[rng.permutation(len(a))], backend="interp")
    for n in (3, 0, 1):
        assert compiled(np.random.default_rng(1), np.arange(n)).shape == (n,)


@pytest.mark.parametrize("low, high", [(0, 1), (0, 7), (-5, 2**20), (3, 2**32 + 3), (0, 2**40), (-(2**62), 2**62)])
def test_randint_draws_without_python(low, high):
    """Single numbers and arrays have np.random's own bits, and its state is what NumPy leaves."""

    def fn(n, low, high):
        s = 0
        for _ in range(n):
            s += np.random.randint(low, high) % 1000 + np.random.rand() * 0
        return s, np.random.randint(low, high, (3, 5)), np.random.rand()

    compiled = cinductor.compile(fn, fullgraph=True, backend="interp")
    for _ in range(2):
        np.random.seed(3)
        want, then = fn(40, low, high), np.random.get_state(legacy=False)
        np.random.seed(3)
        got, now = compiled(40, low, high), np.random.get_state(legacy=False)
        assert got[0] == want[0] and np.array_equal(got[1], want[1]) and got[2] == want[2]
        assert repr(now) == repr(then)
    for wrong in ((3, 3), (5, 1)):
        with pytest.raises(ValueError, match="low >= high"):
            compiled(40, *wrong)


def legacy_loop(n):
    s = 0.0
    for k in range(n):
        s += np.random.normal(s * 0, 2.0 + k) + np.random.randn() - np.random.uniform(-1, 2) * np.random.rand()
        s += np.random.exponential(1.5) + np.random.standard_normal() * np.random.random() + np.random.poisson(3)
    return s, np.random.normal(), np.random.exponential()


def legacy_arrays(n):
    x = np.zeros(n)
    for k in range(3):
        x += np.random.normal(k, 2, n) + np.random.randn(n) * np.random.exponential(2, n) + np.random.uniform(0, 2, n)
        x += np.random.normal(np.arange(n), 0.5) + np.random.standard_normal(n) * np.random.randn(2, n)[1]
    return x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [legacy_loop, legacy_arrays])
def test_what_only_the_legacy_generator_draws(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for n in (5, 0, 1, 4, 5):
        np.random.seed(n)
        np.random.randn(n)  # leaves a cached normal number, or none
        start = np.random.get_state()
        want, then = fn(n), np.random.get_state(legacy=False)
        np.random.set_state(start)
        got, now = compiled(n), np.random.get_state(legacy=False)
        same(got, want)
        np.testing.assert_equal(now, then)
    assert cinductor.explain(fn, 5).breaks == []


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), -0.0])
def test_legacy_parameters_that_numpy_looks_at(bad):
    def draw(n, a):
        return [np.random.normal(0, a) + np.random.exponential(a) for _ in range(n)]

    compiled = cinductor.compile(draw)
    for n, a in ((3, 1.0), (3, bad), (3, 2.0)):
        results = []
        for f in (draw, compiled):
            np.random.seed(3)
            try:
                results.append(f(n, a))
            except ValueError as error:
                results.append(str(error))
        assert repr(results[0]) == repr(results[1])


def test_no_python_draws_for_the_legacy_generator():
    def walk(n):
        x = np.zeros(n)
        for k in range(n):
            x[k] = np.random.normal(0, 1) + np.random.uniform(0, 1) - np.random.exponential(1)
        return x

    compiled = cinductor.compile(walk)
    compiled(300)
    if type(np.random.default_rng().bit_generator.lock) is not type(threading.Lock()):
        assert not any("generator_at" in name for name in names_called(compiled, 300))


def of_a_random_state(rng, n):
    s = 0.0
    for k in range(n):
        s += rng.rand() + rng.normal(0, 1 + k) - rng.uniform(-1, 1) * rng.randn() + rng.randint(5)
        s += rng.exponential(2.0) + rng.poisson(3) + rng.choice(4)
    return s, rng.permutation(n), rng.normal(size=(2, 3)), rng.random_sample(n), rng.standard_normal()


def of_one_that_is_made(n, seed):
    rng = np.random.RandomState(seed)
    x = rng.randn(n, 2)
    for k in range(n):
        x[k] *= rng.rand()
    return x


def stops(rng, x, n):
    s = 0.0
    for _ in range(n):
        s += rng.normal() + x[rng.randint(4)]
    return s


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_states(backend):
    compiled = cinductor.compile(of_a_random_state, backend=backend)
    for n in (5, 0, 9, 9):
        ours, theirs = np.random.RandomState(n), np.random.RandomState(n)
        same(compiled(ours, n), of_a_random_state(theirs, n))
        np.testing.assert_equal(ours.get_state(legacy=False), theirs.get_state(legacy=False))
    compiled = cinductor.compile(of_one_that_is_made, backend=backend)
    for n, seed in ((5, 3), (5, 3), (5, 4), (8, 0)):
        same(compiled(n, seed), of_one_that_is_made(n, seed))
    compiled = cinductor.compile(stops, backend=backend)
    for size in (4, 4, 2, 4):
        ours, theirs = np.random.RandomState(1), np.random.RandomState(1)
        outcomes = []
        for f, rng in ((stops, theirs), (compiled, ours)):
            try:
                outcomes.append(f(rng, np.arange(float(size)), 9))
            except IndexError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        np.testing.assert_equal(ours.get_state(legacy=False), theirs.get_state(legacy=False))
    shared = np.random.mtrand._rand
    compiled = cinductor.compile(lambda rng, n: (rng.normal(), np.random.normal(), rng.rand(n)), backend=backend)
    for _ in range(3):
        np.random.seed(2)
        got, now = compiled(shared, 3), np.random.get_state(legacy=False)
        np.random.seed(2)
        same(got, (np.random.normal(), np.random.normal(), np.random.rand(3)))
        np.testing.assert_equal(now, np.random.get_state(legacy=False))


def test_random_states_are_captured_whole():
    assert cinductor.explain(of_one_that_is_made, 5, 3).breaks == []
    assert cinductor.explain(of_a_random_state, np.random.RandomState(2), 5).breaks == []


def test_nothing_is_drawn_for_what_cannot_be_written():
    def shuffled(rng, x):
        rng.shuffle(np.broadcast_to(x, x.shape))

    compiled = cinductor.compile(shuffled, backend="interp")
    for _ in range(2):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match="read-only"):
            compiled(rng, np.arange(5.0))
        assert rng.random() == np.random.default_rng(0).random()


def test_a_list_of_the_callers_is_shuffled():
    def f(rng, items):
        other = [1, 2, 3, 4]
        rng.shuffle(items)
        rng.shuffle(other)
        return other

    for made in (lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)):
        compiled = cinductor.compile(f, backend="interp")
        for _ in range(3):
            rows = [[1.0, 2.0, 3.0, 4.0] for _ in range(2)]
            assert compiled(made(), rows[0]) == f(made(), rows[1])
            assert rows[0] == rows[1]
