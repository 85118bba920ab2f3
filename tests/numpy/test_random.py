"""Tests draws from a Generator argument: the same numbers, and the same state after the call."""

import numpy as np
import pytest

import cinductor

BACKENDS = ["c", "interp"]


def sums(rng, x):
    return x + rng.random(4) * 2 + rng.random()


def kinds(rng, x):
    return (
        rng.random(3, dtype=np.float32),
        rng.integers(0, 9, (2, 3)),
        rng.integers(5),
        rng.normal(x[0], 2.0, 4),
        rng.standard_normal((2, 2)),
        rng.uniform(-1.0, 1.0, 3),
        rng.exponential(2.0, size=2),
        rng.permutation(x),
        rng.permutation(6),
        rng.random(),
        rng.normal(),
    )


def indices(rng, x):
    picked = x[rng.integers(0, 4, 20)]
    order = np.arange(6)
    rng.shuffle(order)
    return picked.mean(), order, x[rng.integers(4)]


def walk(rng, x):
    for _ in range(20):
        x = x + np.where(rng.random(4) < 0.5, -1.0, 1.0)
    return x


def inside(rng, x):
    hits = 0
    for _ in range(30):
        a, b = rng.random(), rng.random()
        if a * a + b * b < 1.0:
            hits += 1
    return hits, x


def distributions(rng, x):
    p = x + 1
    return (
        rng.poisson(3.0, 5),
        rng.poisson(p),
        rng.poisson(2.5),
        rng.binomial(9, 0.25, 4),
        rng.binomial(np.array([3, 5]), 0.5),
        rng.beta(2.0, 3.0, (2, 2)),
        rng.gamma(p, 2.0),
        rng.gamma(2.0),
        rng.exponential(p),
        rng.normal(x, p),
        rng.normal(x, 1.0, (3, 4)),
        rng.uniform(x, p),
        rng.lognormal(sigma=0.5, size=3),
        rng.laplace(size=2),
        rng.standard_t(3.0, 2),
        rng.triangular(0.0, 1.0, 3.0, 2),
        rng.weibull(2.0, 2),
        rng.geometric(0.5, 2),
        rng.standard_gamma(2.0, size=3),
        rng.standard_cauchy(2),
        rng.standard_exponential(2),
        rng.rayleigh(1.0),
    )


def arrangements(rng, x):
    table = np.arange(12.0).reshape(4, 3)
    rng.shuffle(table)
    turned = rng.permutation(table, axis=1)
    return (
        table,
        turned,
        rng.choice(5),
        rng.choice(x),
        rng.choice(7, 4, replace=False),
        rng.choice(x, (2, 3)),
        rng.choice(table, 2, axis=0),
        rng.choice(4, 6, p=np.full(4, 0.25)),
        rng.integers(0, 9, 4, dtype=np.int32),
        rng.integers(1, 6, 5, endpoint=True),
        rng.integers(np.array([1, 5]), 9),
        rng.multivariate_normal(np.zeros(2), np.eye(2), 3),
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [distributions, arrangements, sums, kinds, indices, walk, inside], ids=lambda f: f.__name__)
def test_draws(fn, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    for seed in range(3):
        ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        got, want = compiled(ours, np.arange(4.0)), fn(theirs, np.arange(4.0))
        for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)
        assert ours.bit_generator.state == theirs.bit_generator.state
    assert len(compiled.specializations) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_that_fails_behind_a_draw(backend):
    """The draws of a call happen once, even if a check after them fails."""

    def fn(rng, x, i):
        return rng.random() + x[i]

    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    for i in ([0, 99], [0, 1], [2, 3], [0, 99], [3, 0]):
        ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
        results = []
        for f, rng in ((compiled, ours), (fn, theirs)):
            try:
                results.append(f(rng, np.arange(4.0), np.array(i)).tolist())
            except IndexError as error:
                results.append(str(error))
        assert results[0] == results[1]
        assert ours.bit_generator.state == theirs.bit_generator.state


def legacy(x):
    np.random.seed(3)
    a = np.random.rand(3), np.random.rand(), np.random.randn(2, 2), np.random.random(2)
    np.random.shuffle(x)
    return (
        *a,
        x,
        np.random.normal(0.0, 2.0, 3),
        np.random.uniform(-1.0, 1.0, (2, 2)),
        np.random.randint(0, 9, 4),
        np.random.randint(7),
        np.random.choice(5, 3),
        np.random.choice(x, 2, replace=False),
        np.random.permutation(5),
        np.random.poisson(2.0, 2),
        np.random.random_sample(),
        np.random.standard_normal(3),
        np.random.binomial(5, 0.5),
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_generator_behind_functions(backend):
    compiled = cinductor.compile(legacy, backend=backend, fullgraph=True)
    for _ in range(2):
        want, state = legacy(np.arange(4.0)), np.random.get_state(legacy=False)
        got = compiled(np.arange(4.0))
        for a, b in zip(got, want):
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)
        np.testing.assert_equal(np.random.get_state(legacy=False), state)
    assert len(compiled.specializations) == 1


def test_a_check_that_fails_after_a_draw_from_the_global_generator():
    def fn(x, i):
        return np.random.normal() + x[i]

    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    for i in ([0, 99], [0, 1], [2, 3], [0, 99], [3, 0]):
        results = []
        for f in (compiled, fn):
            np.random.seed(5)
            try:
                results.append(f(np.arange(4.0), np.array(i)).tolist())
            except IndexError as error:
                results.append(str(error))
            results[-1] = (results[-1], np.random.rand())
        assert results[0] == results[1]
