"""Draws from a Generator argument: the same numbers, and the same state afterwards."""

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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [sums, kinds, indices, walk, inside], ids=lambda f: f.__name__)
def test_draws(fn, backend):
    compiled = cinductor.compile(fn, backend=backend, fullgraph=True)
    for seed in range(3):
        ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        got, want = compiled(ours, np.arange(4.0)), fn(theirs, np.arange(4.0))
        for a, b in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-15)
        assert ours.bit_generator.state == theirs.bit_generator.state
    assert len(compiled.specializations) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_that_fails_behind_a_draw(backend):
    """The draws of a call happen once, whatever is wrong with what follows."""

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
