"""Tests draws from Python's random module: same numbers, same classes, same state of the generator afterwards."""

import math
import random
import threading

import numpy as np
import pytest

import cinductor

BACKENDS = ["c", "interp"]


def numbers(rng, n):
    """Each draw that is made without Python, with bounds that data decide, too."""
    s, k, a = 0, 0, np.zeros(n)
    for i in range(n):
        a[i] = rng.random() + rng.uniform(-1, 2) * rng.uniform(1.5, a[i - 1])
        k ^= rng.getrandbits(7) + rng.getrandbits(40)
        k += rng.randint(-3, 9) + rng.randrange(5) + rng.randrange(3, 50, 7) + rng.randint(1, k % 7 + 1)
        s += rng.gauss() + rng.gauss(2.0, 0.5) + rng.choice([1.5, 2.5, 4.0]) + rng.choice(a)
    return s, k, a


def several(rng, n):
    """Items of a sequence, with and without replacement."""
    s, few = 0, [3, 1, 4, 1, 5, 9, 2, 6]
    for _ in range(n):
        a, b = rng.sample(range(1000, 5000, 2), 2)
        c = rng.sample(few, 3)
        d = rng.choices(range(30), k=4)
        (e,) = rng.choices(few[:3], weights=[1, 5, 2])
        (f,) = rng.choices((2.5, 3.5), cum_weights=[1.5, 4.0])
        s += a * b + c[0] * c[2] + d[0] * d[3] * e + f
    return s, rng.sample(few, 8), rng.choices(few, k=3)


WRONG = [
    lambda rng: rng.choices([1, 2], weights=[1, 2], cum_weights=[1, 3]),
    lambda rng: rng.choices([1, 2], weights=[1]),
    lambda rng: rng.choices([1, 2], weights=[0, 0]),
    lambda rng: rng.choices([1, 2], cum_weights=[1, math.inf]),
    lambda rng: rng.choices([], k=1),
    lambda rng: rng.sample(range(3), 4),
    lambda rng: rng.sample([1, 2], -1),
]


@pytest.mark.parametrize("draw", WRONG)
def test_draws_that_raise(draw):
    def tried(f):
        try:
            return f(random.Random(1))
        except Exception as error:
            return type(error), str(error)

    assert tried(cinductor.compile(draw, backend="interp")) == tried(draw)


def by_python(rng, n):
    """Distributions that Python draws, between others."""
    a = np.zeros(n)
    for i in range(n):
        a[i] += rng.normalvariate(0, 1) + rng.expovariate(1.5) + rng.triangular(0, 1, 0.5) + rng.random()
        a[i] += rng.betavariate(1.5, 2) + rng.gammavariate(2.0, 1.0) + rng.lognormvariate(0, 1) + rng.gauss(0, 1)
        a[i] += rng.vonmisesvariate(0.5, 4) + rng.paretovariate(3) + rng.weibullvariate(1, 1.5) + rng.getrandbits(3)
    return a


def estimate(n):
    """The module's own functions."""
    inside, best = 0, 0
    for _ in range(n):
        x, y = random.random(), random.uniform(0, 1)
        if x * x + y * y <= 1:
            inside += 1
        if x > best:
            best = x
    return 4 * inside / n, best


def annealed(n):
    x, t = 5.0, 1.0
    for _ in range(n):
        y = x + random.uniform(-0.5, 0.5)
        if y * y < x * x or random.random() < math.exp((x * x - y * y) / t):
            x = y
        t *= 0.99
    return x


def seeded(n):
    random.seed(n)
    own = random.Random(n + 1)
    return sum(random.random() for _ in range(n)), own.random(), own.randint(1, 6)


def shuffled(n):
    a = np.arange(n)
    for _ in range(3):
        random.shuffle(a)
    for i in range(n - 1, 0, -1):
        j = random.randint(0, i)
        a[i], a[j] = a[j], a[i]
    return a


def is_same(a, b):
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [numbers, several, by_python])
def test_draws_of_a_generator(fn, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    one, other = random.Random(3), random.Random(3)
    for n in (40, 40, 700):
        assert is_same(compiled(one, n), fn(other, n))
        assert one.getstate() == other.getstate()
        assert one.gauss(0, 1) == other.gauss(0, 1)  # the kept number is part of the state


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [estimate, annealed, seeded, shuffled])
def test_functions_of_the_module(fn, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    for n in (30, 30, 700):
        random.seed(7)
        want, state = fn(n), random.getstate()
        random.seed(7)
        assert is_same(compiled(n), want)
        assert random.getstate() == state


def too_large(rng, x):
    total = 0
    for v in x:
        total += rng.randint(1, 6) * v
    return total


def refused(rng, n):
    return [rng.randint(1, n - 3) for _ in range(2)]


def test_a_check_that_fails_after_a_draw():
    """The generator is restored, and the original function draws."""
    for fn, args in ((too_large, [[5, 6], [2**62, 2**62]]), (refused, [5, 2])):
        compiled = cinductor.compile(fn, backend="interp")
        one, other = random.Random(3), random.Random(3)
        for given in (args[0], *args):
            outcomes = []
            for f, rng in ((compiled, one), (fn, other)):
                try:
                    outcomes.append(f(rng, given))
                except ValueError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]
            assert one.getstate() == other.getstate()


class Constant(random.Random):
    def random(self):
        return 0.5


def test_a_subclass_draws_through_python():
    def fn(rng, x):
        return x * rng.random() + rng.uniform(0, 2)

    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        assert np.array_equal(compiled(Constant(), np.ones(2)), fn(Constant(), np.ones(2)))


def test_threads_draw_through_python():
    """Another thread of Python could draw from the same generator meanwhile."""
    compiled = cinductor.compile(estimate, backend="interp")
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        random.seed(7)
        want = estimate(50)
        for _ in range(3):
            random.seed(7)
            assert compiled(50) == want
    finally:
        ended.set()
        other.join()


# --- draws that are part of loops ---


def in_operands(rng, n):
    s = 0.0
    for _ in range(n):
        if s < 3.0 or rng.random() < 0.5:
            s += 1.0
        if s > 1.0 and rng.gauss(0, 1) > 0.3:
            s -= 0.25
    return s


def in_an_expression(rng, n):
    s = 0.0
    for _ in range(n):
        s += rng.random() if s < 3.0 else rng.gauss(0, 1)
    return s


def in_a_condition(rng, n):
    k = 0
    while rng.random() < 1 - 1 / n:
        k += 1
    return k


def in_comprehensions(rng, n):
    return [rng.random() for _ in range(n)], sum(rng.gauss(0, 1) for _ in range(n))


def before_a_loop(rng, n):
    s = rng.random() + rng.gauss(0, 1)
    for _ in range(n):
        s += rng.gauss(0, 1) * rng.random()
    return s + rng.getrandbits(3) + rng.gauss(0, 1)


def with_others(rng, n):
    s = 0.0
    for _ in range(n):
        s += rng.random() + rng.expovariate(2.0)
    return s


def around_effects(rng, n):
    s = rng.gauss(0, 1)
    for _ in range(n):
        s += rng.gauss(0, 1) + rng.random()
    print(end="", flush=True)
    for _ in range(n):
        s += rng.gauss(0, 1) * rng.random()
    state = rng.getstate()[2]
    return s + rng.gauss(0, 1) + (state or 0.0)


def in_pythons_loop(rng, n):
    seen = set()
    while len(seen) < n:
        seen.add(rng.randrange(2 * n))
        seen.add(str(rng.random() > 0.5))
    return sorted(map(str, seen))


LOOPS = [in_operands, in_an_expression, in_a_condition, in_comprehensions, before_a_loop, with_others, around_effects, in_pythons_loop]


@pytest.mark.parametrize("fn", LOOPS)
@pytest.mark.parametrize("kept", [False, True])
def test_draws_in_loops(fn, kept):
    compiled = cinductor.compile(fn)
    for n in (21, 21, 40, 21):
        one, other = random.Random(n), random.Random(n)
        if kept:
            assert one.gauss(0, 1) == other.gauss(0, 1)
        assert is_same(compiled(one, n), fn(other, n))
        assert one.getstate() == other.getstate()


@pytest.mark.parametrize("fn", [numbers, estimate, annealed, before_a_loop, in_comprehensions, in_operands])
def test_loops_draw_without_calls(fn):
    given = (40,) if fn in (estimate, annealed) else (random.Random(3), 40)
    report = cinductor.explain(fn, *given)
    assert report.breaks == [] and "extern draw" not in report.graph


def test_one_generator_under_two_names():
    def fn(a, b, n):
        s = 0.0
        for _ in range(n):
            s += a.random() - 2 * b.random()
        return s

    compiled = cinductor.compile(fn)
    for _ in range(2):
        for one, other in ((random.Random(3), random.Random(4)), (random.Random(3),) * 2):
            copies = [random.Random(), random.Random()] if one is not other else [random.Random()] * 2
            for generator, copy in zip((one, other), copies, strict=True):
                copy.setstate(generator.getstate())
            assert compiled(one, other, 30) == fn(*copies, 30)
            assert (one.getstate(), other.getstate()) == tuple(copy.getstate() for copy in copies)


def test_threads_come_and_go():
    compiled = cinductor.compile(estimate)
    for has_other in (False, True, False, True):
        ended = threading.Event()
        other = threading.Thread(target=ended.wait)
        if has_other:
            other.start()
        try:
            random.seed(7)
            want, state = estimate(50), random.getstate()
            random.seed(7)
            assert compiled(50) == want and random.getstate() == state
        finally:
            ended.set()
            if has_other:
                other.join()
