"""Tests everyday NumPy idioms, one feature per case: captured whole, with NumPy's results."""

import copy
import dataclasses
import threading

import cases
import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []
RNG = np.random.default_rng
X = RNG(1).random(5)
A = RNG(1).random((4, 5))
ROWS = RNG(2).integers(0, 3, (30, 2))
case = cases.entering(CASES)


# --- an array's elements, converted to single numbers ------------------------------------------

LAYOUTS = [(A,), (A.T,), (RNG(1).random((8, 10))[::2, ::-2],), (np.arange(20).reshape(4, 5),)]


@case(*LAYOUTS)
def flat_items(x):
    return x.flat[3] + x.flat[2:5].sum(), x.flat[-1], x.flat[[1, 2]]


@case(*LAYOUTS)
def flat_stores(x):
    if x.flags.c_contiguous:
        x.flat[3] = 7
        x.flat[::4] = 1
        x.flat[1:3] = np.array([5, 6])
        x.flat[2:4] *= 2
    return x


@case(*LAYOUTS, (np.zeros((0, 3)),))
def flat_loop(x):
    s = 0.0
    for v in x.flat:
        s += v
    return s, len(x.flat), np.array(x.flat), np.sum(x.flat)


@case((A,), (A.T,))
def flat_held(x):
    f = x.flat
    s = 0.0
    for i in range(0, len(f), 2):
        s += f[i]
    for i, v in enumerate(x.flat):
        if v > 0.5:
            return i, s
    return -1, s


@case((A,), (A.T,), (np.zeros((0, 3)),))
def flat_is_one_iterator(x):
    f, s = x.flat, 0.0
    for v in f:
        s += v
        if v > 0.5:
            break
    for v in f:
        s -= v
    g = x.flat
    pairs = [a + b for a, b in zip(g, g, strict=False)]
    return s, pairs, x.flat[1:].sum()


@case((A, A.T), (A.T, A))
def flat_pairs(x, y):
    s = 0.0
    for a, b in zip(x.flat, y.flat, strict=True):
        s += a * b
    return s


@case((X,))
def few_numbers(x):
    a, b, *rest = x.tolist()
    return a * b - sum(rest), (x > 0.5).tolist(), x.reshape(1, 5).tolist(), x.sum().tolist()


# --- generators made inside of the function -------------------------------------------------------


@case((X,))
def seeded(x):
    rng = np.random.default_rng(3)
    s = x + rng.normal(size=5)
    for k in range(20):
        s[k % 5] += rng.random() * k
    return s, rng.integers(0, 9, 4)


@case(*((X, k) for k in (0, 1, 2, 3, 50)))
def seeded_by_an_argument(x, seed):
    rng = np.random.default_rng(seed)
    return x + rng.random(5), np.random.default_rng(seed=seed).random()


def draw_two(seed):
    return np.random.default_rng(seed).random(2)


@case((X,))
def seeded_in_a_helper(x):
    return draw_two(1) + draw_two(2) + draw_two(1)


@case((X, RNG(2)), (X, 4))
def generator_or_seed(x, rng):
    rng = np.random.default_rng(rng)
    return x + rng.random(5)


@case((RNG(5),))
def more_distributions(rng):
    return (
        rng.dirichlet([1, 2, 3.0]),
        rng.dirichlet(np.ones(3), 4),
        rng.multinomial(5, [0.2, 0.8]),
        rng.multinomial(5, [0.2, 0.8], (2, 2)),
        rng.negative_binomial(3, 0.5, 4),
        rng.hypergeometric(3, 4, 5, 6),
        rng.noncentral_f(3.0, 4.0, 1.0),
        rng.binomial(5, 0.5, 3),
    )


# --- functions and classes --------------------------------------------------------------------


@case((ROWS,), (ROWS.astype(float),), (np.where(RNG(2).random((30, 2)) > 0.5, np.nan, 1.0),))
def distinct_rows(x):
    every = np.unique(x, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return np.unique(x, axis=0), every, np.unique(x, axis=1, return_counts=True)


@case((RNG(2).integers(0, 2, (20, 2, 2)),), (np.zeros((0, 3)),), (np.asfortranarray(ROWS),))
def distinct_slices(x):
    return np.unique(x, axis=-1), np.unique(x, axis=-1, return_inverse=True)


@case((A, A.T, RNG(3).random((5, 6))))
def contractions(a, b, c):
    return (
        np.einsum("ij,jk", a, b),
        np.einsum("ij,jk", a, b, optimize=True),
        np.einsum("ij,jk->ki", a, c),
        np.einsum("ij,jk,kl->il", a, b, a, optimize=True),
        np.einsum("...i,ij->...j", a, c, optimize=True),
        np.einsum("ij,ij->i", a, a),
    )


@case((X,))
def memory_of_a_shape(x):
    y = np.ndarray((2, 5), dtype=x.dtype)
    y[:] = x
    return y, np.ndarray(3, np.int32).shape


@case((X - 0.5,), (-X,))
def view_of_found_elements(x):
    found = x[x > 0]
    return found, found.reshape(-1, 1), found[1:], found[::2], np.nonzero(x.reshape(1, -1))


@case((A,), (A.T,), (A[::2, ::-1],))
def row_that_data_choose(x):
    return x[np.argmax(x[:, 0])], x[: int(x[0, 0] > 0)], x


MASKS = [
    (x.copy(order="K"), RNG(2).random(x.shape) > p) for x in (A, A.T, A[::2]) for p in (0.5, 2.0)
]


@case(*MASKS)
def stores_at_a_mask(x, mask):
    y = np.zeros((*x.shape, 3))
    y[mask] = np.arange(3.0)
    y[mask] += x[mask][:, None]
    for k in range(20):
        x[mask] = x[mask] * 0.5 + k
    return y


@dataclasses.dataclass
class Derived:
    a: np.ndarray
    scale: dataclasses.InitVar[float] = 2.0
    b: float = 1.0

    def __post_init__(self, scale):
        self.total = 0.0
        for k in range(self.a.shape[0]):
            self.total += self.a[k] * scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: np.ndarray
    b: float = 2.0


@case((X,), (np.arange(30.0),))
def derived_attributes(x):
    d = Derived(x * 2, 3.0)
    return d.total, d.b, dataclasses.replace(Frozen(x), b=4.0)


# --- exceptions -------------------------------------------------------------------------------


@case((X,), (-X,), (X[:2],), (X,))
def message_with_values(x):
    if x.shape[0] < 3:
        raise ValueError("few")
    if np.any(x < 0):
        low = x.min()
        raise ValueError(f"negative {low}")
    return np.sqrt(x)


@case((X * 9,), (X,), (X * 90,), (-X * 90,))
def raise_in_any_arm(x):
    m = x.mean()
    if m > 10:
        y = x * 2
    elif m < -10:
        raise RuntimeError(f"{m:.3f}")
    elif m > 1:
        y = x + 1
    else:
        raise KeyError(f"{m:.3f}")
    return y * m


@case((np.arange(50.0),), (np.where(np.arange(50) == 30, -1.0, 1.0),))
def raise_in_a_loop(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError(f"at {i}: {x[i]}")
        s += x[i]
    return s


@case((X,), (-X,))
def raised_and_caught(x):
    try:
        if x.min() < 0:
            raise ValueError(f"{x.min():.3f}")
        return x * 2
    except ValueError as error:
        return str(error)


def outcome(fn, args):
    """The result or the exception, and the arguments after the call."""
    args = copy.deepcopy(args)
    try:
        result = fn(*args)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    args = [a.bit_generator.state if isinstance(a, np.random.Generator) else a for a in args]
    return result, [str(a) if isinstance(a, dict) else a for a in args]


@pytest.mark.parametrize(("fn", "inputs"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_idiom(fn, inputs):
    compiled = cinductor.compile(fn, backend="interp")
    for args in inputs:
        expected = outcome(fn, args)
        for _ in range(2):
            assert_same(outcome(compiled, args), expected)
    assert compiled.specializations


def test_a_generator_made_inside_belongs_to_its_call():
    compiled, wanted, wrong = cinductor.compile(seeded), seeded(X), []

    def work():
        for _ in range(50):
            if not np.array_equal(compiled(X)[0], wanted[0]):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    fresh = cinductor.compile(lambda: np.random.default_rng().random(3), backend="interp")
    assert len({fresh().tobytes() for _ in range(4)}) == 4


def test_a_generator_made_inside_may_be_returned():
    def fn():
        rng = np.random.default_rng(7)
        return rng, rng.random()

    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        (rng, value), (expected, wanted) = compiled(), fn()
        assert value == wanted
        assert rng.random() == expected.random()
    assert compiled.specializations


def test_why_regions_were_given_up_is_said():
    def fn(x):
        if x.max() > 2:
            y = x * 3
        else:
            y = x
        return y

    report = cinductor.explain(fn, X)
    assert "an array that may be one of several is returned" in report.regions[0]
