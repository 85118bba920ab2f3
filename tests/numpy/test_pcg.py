"""Tests draws of NumPy's default generator in loops: the program has NumPy's numbers, and leaves NumPy's state."""

import threading
import warnings

import numpy as np
import pytest

import cinductor
from cinductor.numpy import pcg


def in_a_circle(g, n):
    count = 0
    for _ in range(n):
        x, y = g.random(), g.random()
        count += x * x + y * y < 1
    return count


def steps(g, n):
    x = 0
    for _ in range(n):
        x += 1 if g.integers(0, 2) == 0 else -1
    return x


def dice(g, n):
    found = np.zeros(7, np.int64)
    for _ in range(n):
        found[g.integers(1, 7)] += 1
    return found


def floats(g, n):
    total = 0.0
    for k in range(n):
        total += g.uniform(-1, 3) * g.uniform() + g.uniform(k, k + 0.5)
    return total


def of_varying_bounds(g, n):
    total = 0
    for k in range(1, n):
        total += g.integers(k) + g.integers(-k, 7)
    return total, type(total).__name__


def of_large_bounds(g, n):
    total = 0
    for _ in range(n):
        total += g.integers(0, 3_000_000_000)
    return total


def of_one_number(g, n):
    total = 0
    for _ in range(n):
        total += g.integers(5, 6)
    return total


def until(g, n):
    count = 0
    while g.random() > 1 / (n + 1):
        count += 1
    return count


def shuffled(g, n):
    a = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = g.integers(0, i + 1)
        a[i], a[j] = a[j], a[i]
    return a


def with_others(g, n):
    total = g.random(3).sum() + g.random()
    for _ in range(n):
        total += g.random() + g.normal() + g.random(2).sum() + g.integers(1 << 40)
    return total + g.random() + g.integers(3, endpoint=True)


def with_python(g, n):
    total = 0.0
    for _ in range(n):
        total += g.random()
        print(end="", flush=True)
    return total + g.random()


def that_raises(g, n):
    total = 0
    for k in range(n):
        total += g.integers(9 - k)
    return total


def of_one_that_is_no_source_first(g, n):
    total = 0.0
    for _ in range(n):
        total += g.normal() + g.random()
    return total


def of_ranges_of_zero(g, n):
    total = 0.0
    for k in range(n):
        total += g.uniform(0.0, 0.0 if k < 40 else -0.0)
    return total


def of_ranges_of_data(g, n):
    total = 0.0
    for high in np.array([1.0, 0.0, -0.0])[: 2 + n // 20]:
        total += g.uniform(0.0, high)
    return total


CASES = [in_a_circle, steps, dice, floats, of_varying_bounds, of_large_bounds, of_one_number, until, shuffled]


UNLIKE = [of_one_that_is_no_source_first, of_ranges_of_zero, of_ranges_of_data]


def outcome(f, *args):
    try:
        return repr(f(*args))
    except ValueError as error:
        return repr(error)


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("f", [*CASES, with_others, with_python, that_raises, *UNLIKE])
def test_numbers_and_states_are_numpys(f, backend):
    wanted, given = (np.random.default_rng(5) for _ in range(2))
    compiled = cinductor.compile(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (10, 10, 33, 4, 0, 57):
            assert outcome(f, wanted, n) == outcome(compiled, given, n)
            assert wanted.bit_generator.state == given.bit_generator.state


@pytest.mark.parametrize("f", [f for f in CASES if f is not until])
def test_loops_draw_without_calls(f):
    report = cinductor.explain(f, np.random.default_rng(1), 20)
    assert report.breaks == [] and report.externs_count == 0, report.replans


def test_two_generators_of_one_state():
    def f(a, b, n):
        total = 0.0
        for _ in range(n):
            total = total * 2 + a.random() - b.random()
        return total

    compiled = cinductor.compile(f)
    for _ in range(3):
        wanted, given = np.random.PCG64(3), np.random.PCG64(3)
        assert f(*map(np.random.Generator, [wanted] * 2), 9) == compiled(*map(np.random.Generator, [given] * 2), 9)
        assert wanted.state == given.state
    a, b = np.random.default_rng(1), np.random.default_rng(2)
    assert compiled(a, b, 9) == f(np.random.default_rng(1), np.random.default_rng(2), 9)


def test_the_state_is_looked_at_between_draws():
    def f(g, bits, n):
        total = 0.0
        for _ in range(n):
            total += g.random()
        raw, state = bits.random_raw(), bits.state
        for _ in range(n):
            total += g.random()
        return total, raw, state, g.bit_generator is bits

    compiled = cinductor.compile(f)
    wanted, given = (np.random.default_rng(8) for _ in range(2))
    for n in (3, 3, 7):
        assert f(wanted, wanted.bit_generator, n) == compiled(given, given.bit_generator, n)


@pytest.mark.parametrize("bits", [np.random.PCG64DXSM, np.random.MT19937, np.random.Philox])
def test_other_bit_generators(bits):
    compiled = cinductor.compile(in_a_circle)
    given = [np.random.Generator(kind(7)) for kind in (np.random.PCG64, bits, np.random.PCG64)]
    wanted = [np.random.Generator(kind(7)) for kind in (np.random.PCG64, bits, np.random.PCG64)]
    assert [compiled(g, 50) for g in given] == [in_a_circle(g, 50) for g in wanted]


def test_other_threads_may_draw():
    """While another thread of Python exists, NumPy draws, under its lock."""
    go, generator = threading.Event(), np.random.default_rng(1)
    thread = threading.Thread(target=go.wait)
    thread.start()
    try:
        with pytest.raises(ValueError, match="only NumPy can draw"):
            pcg.memory_of(generator)
        compiled, wanted = cinductor.compile(in_a_circle), np.random.default_rng(1)
        assert [compiled(generator, 40) for _ in range(2)] == [in_a_circle(wanted, 40) for _ in range(2)]
    finally:
        go.set()
        thread.join()
    assert compiled(generator, 40) == in_a_circle(wanted, 40) and generator.bit_generator.state == wanted.bit_generator.state
