"""Tests the choice between compiled library calls and NumPy: both are timed in the first calls, and the faster one
runs later calls. Both give the same bits.
"""

import numpy as np
import pytest

import cinductor

CALLS = 12
RNG = np.random.default_rng(1)
A, V = RNG.random((4, 4)), RNG.random(50)


def decided(fn, *args):
    """The compiled function, called until the faster way is known."""
    compiled = cinductor.compile(fn)
    results = [compiled(*args) for _ in range(2 * CALLS + 3)]
    return compiled, results


def test_small_library_calls_are_numpys():
    def fn(a):
        return np.linalg.svd(a)

    compiled, results = decided(fn, A)
    for result in results:
        for part, expected in zip(result, fn(A)):
            assert part.tobytes() == expected.tobytes()
    (specialization,) = compiled.specializations
    why = specialization.why_numpy
    assert why is None or "faster" in why
    if why is not None:
        assert why in str(cinductor.explain(compiled, A))


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: np.exp(np.linalg.inv(a) * 1j),
        lambda a: np.exp(np.linalg.inv(a) * 1j).sum(),
        lambda a: np.linalg.inv(a) * (1 + 2j),
    ],
    ids=["mathematics", "a sum", "complex"],
)
def test_what_has_other_bits_is_no_question(fn):
    compiled, results = decided(fn, A)
    assert compiled.specializations[0].why_numpy is None
    assert len({np.asarray(r).tobytes() for r in results[1:]}) == 1


def test_what_is_raised_is_no_time():
    compiled = cinductor.compile(lambda a: np.linalg.inv(a))
    good, bad = np.eye(3), np.zeros((3, 3))
    for k in range(40):
        if k % 3 == 0:
            with pytest.raises(np.linalg.LinAlgError):
                compiled(bad)
        else:
            assert np.array_equal(compiled(good), good)


def test_draws_are_the_same_in_both_ways():
    def fn(rng):
        return (
            rng.random(20),
            rng.normal(1.0, 2.0, (3, 4)),
            rng.integers(0, 9, 5),
            rng.uniform(size=3),
        )

    compiled = cinductor.compile(fn)
    mine, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(40):
        for a, b in zip(compiled(mine), fn(theirs)):
            assert np.array_equal(a, b) and a.dtype == b.dtype
    np.testing.assert_equal(mine.bit_generator.state, theirs.bit_generator.state)


def test_the_global_state_draws_without_python():
    def fn():
        return (
            np.random.rand(7),
            np.random.randn(3),
            np.random.random_sample((2, 2)),
            np.random.rand(),
        )

    compiled = cinductor.compile(fn)
    for seed in range(40):
        np.random.seed(seed)
        got = compiled()
        after = np.random.get_state()[2]
        np.random.seed(seed)
        for a, b in zip(got, fn()):
            assert np.array_equal(a, b) and type(a) is type(b)
        assert after == np.random.get_state()[2]


def in_pieces(x):
    print(end="")
    total = x.sum()
    print(end="")
    return total * np.exp(x).mean(), x @ x


def in_a_loop(x):
    total = 0.0
    for k in range(6):
        print(end="")
        total += np.sin(x + k).sum()
    return total


def mean_of(x):
    print(end="")
    return x.mean()


def in_a_helper(x):
    a, b = mean_of(x), mean_of(x + 0)
    return a, b, a <= b


def with_a_library(x):
    return np.linalg.solve(np.eye(len(x)) + np.outer(x, x), x).sum()


def with_warnings(x):
    y = np.log(x - x[0])
    print(end="")
    return y[1:].sum(), (x / 0).sum()


def as_text(x):
    return repr(x.sum()), repr(np.tanh(x).sum())


def bits_of(result):
    if isinstance(result, tuple):
        return tuple(map(bits_of, result))
    return result if isinstance(result, str) else np.asarray(result).tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("n", [5, 37, 301])
@pytest.mark.parametrize(
    "f",
    [in_pieces, in_a_loop, in_a_helper, with_a_library, with_warnings, as_text],
    ids=lambda f: f.__name__,
)
def test_every_call_gives_the_same_bits(f, n, backend):
    """NumPy is faster for some of these pieces, but rounds sums differently. The way that runs the first call must
    run all.
    """
    x = np.random.default_rng(n).random(n)
    compiled = cinductor.compile(f, backend=backend)
    assert len({bits_of(compiled(x)) for _ in range(40)}) == 1


def test_a_long_list_of_which_little_is_read_is_numpys():
    """Each compiled call would look through the list, and each look at guards, too."""

    def fn(items):
        return items[0] + items[-1]

    compiled, items = cinductor.compile(fn), list(range(100_000))
    assert [compiled(items) for _ in range(30)] == [fn(items)] * 30
    (specialization,) = compiled.specializations
    hits = specialization.hits
    assert [compiled(items) for _ in range(1500)] == [fn(items)] * 1500
    assert "faster" in specialization.why_numpy and specialization.hits == hits
    items[0] = 5
    assert compiled(items) == fn(items)
    items.append("text")
    with pytest.raises(TypeError):
        compiled(items)
