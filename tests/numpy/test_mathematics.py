"""Tests functions of Python's math module on traced numbers: Python's values, types and exceptions."""

import math

import numpy as np
import pytest

import cinductor
from cinductor import testing

NUMBERS = (
    0.5,
    -0.5,
    2.5,
    3.5,
    -7.25,
    0.0,
    -0.0,
    1.0,
    40.0,
    1e3,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
)
ONE = """sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh isnan isinf isfinite floor ceil trunc fabs degrees radians cbrt exp2""".split()
UNARY = [getattr(math, name) for name in ONE if hasattr(math, name)] + [
    float,
    int,
    bool,
    round,
    abs,
]
BINARY = [math.atan2, math.hypot, math.copysign, math.fmod, math.pow, math.log]


def outcome(fn, *args):
    """The result of a call, or the type and text of its exception."""
    try:
        value = fn(*args)
    except Exception as error:
        return type(error), str(error)
    return value


def agree(found, expected):
    if isinstance(expected, float) and not isinstance(expected, np.generic):
        assert type(found) is type(expected)
        if math.isfinite(expected) and expected:
            assert abs(found - expected) <= 4 * math.ulp(expected)
        else:
            assert repr(found) == repr(expected)
    else:
        assert type(found) is type(expected) and repr(found) == repr(expected)


@pytest.mark.parametrize("fn", UNARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["argument", "element", "small element", "integer"])
def test_one_number(fn, kind):
    """As an argument, and as an element of an array, which is only known at run time."""

    def of_argument(x):
        return fn(x)

    def of_element(x):
        return fn(x[0])

    if kind == "integer":
        values = [np.array([v]) for v in (0, 1, -3, 12)]
    elif kind == "argument":
        values = NUMBERS
    else:
        dtype = np.float64 if kind == "element" else np.float32
        with np.errstate(over="ignore"):
            values = [np.array([v], dtype) for v in NUMBERS]
    original = of_argument if kind == "argument" else of_element
    compiled = cinductor.compile(original, backend="interp")
    for value in values:
        for _ in range(2):
            agree(outcome(compiled, value), outcome(original, value))


@pytest.mark.parametrize("fn", BINARY, ids=lambda f: f.__name__)
def test_two_numbers(fn):
    def f(x, y):
        return fn(x, y)

    def g(x, i):
        return fn(x[i], x[1])

    for original in (f, g):
        compiled = cinductor.compile(original, backend="interp")
        for a in NUMBERS[::2]:
            for b in (0.5, -2.0, 0.0, 3.0, math.inf):
                args = (a, b) if original is f else (np.array([a, b]), 0)
                agree(outcome(compiled, *args), outcome(original, *args))


def test_no_value_is_compiled_in():
    def f(a, x, y):
        return a * math.sqrt(x) + math.fmod(y, 2.5) * round(x) + math.copysign(x, -y) + float(int(y))

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    a = np.arange(4.0)
    for k in range(1, 60):
        np.testing.assert_array_equal(compiled(a, k / 7, k / 3), f(a, k / 7, k / 3))
    assert len(compiled.specializations) == 1


@pytest.mark.filterwarnings("ignore:cinductor")
def test_bits_are_pythons():
    def f(a, x, y):
        return a * math.sqrt(x) + math.sin(y) * round(x) + math.hypot(x, y, 2.0) + float(int(y))

    compiled = cinductor.compile(f, backend="interp", options={"numerics": "exact"})
    a = np.arange(4.0)
    for k in range(1, 60):
        np.testing.assert_array_equal(compiled(a, k / 7, k / 3), f(a, k / 7, k / 3))


def test_elements_stay_in_the_graph():
    def f(a, out):
        total = 0.0
        for i in range(4):
            x = float(a[i])
            out[i] = math.floor(-x * x) + int(x) + round(x) + math.floor(x / 2)
            total += math.sqrt(abs(x))
        return total, math.prod(a), sum(a)

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    a = np.array([0.5, 1.5, -2.5, 7.75])
    for _ in range(2):
        one, two = np.zeros(4), np.zeros(4)
        found, expected = compiled(a, one), f(a, two)
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(found, expected)
        assert [type(v) for v in found] == [type(v) for v in expected]


def test_what_raises_leaves_arguments_as_python_does():
    def f(a):
        a[0] = 5.0
        a[1] = math.sqrt(a[2])
        a[3] = 6.0
        return a

    compiled = cinductor.compile(f, backend="interp")
    for last in (4.0, 9.0, -1.0, 16.0, -4.0):
        one, two = np.array([0.0, 0.0, last, 0.0]), np.array([0.0, 0.0, last, 0.0])
        a, b = outcome(compiled, one), outcome(f, two)
        assert repr(a) == repr(b) and one.tolist() == two.tolist()


def test_big_ints_and_digits():
    def f(x):
        return math.floor(x), round(x, 1), round(x, -1), pow(7, int(x) % 5, 5)

    compiled = cinductor.compile(f, backend="interp")
    for x in (1e20, 2.25, -31.5, 2.25):
        assert compiled(x) == f(x) and [type(v) for v in compiled(x)] == [int, float, float, int]


def test_functions_are_known_by_identity():
    def f(x, sqrt):
        return sqrt(x)

    compiled = cinductor.compile(f, backend="interp")
    assert compiled(4.0, math.sqrt) == 2.0
    assert compiled(4.0, lambda x: x + 1) == 5.0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: float(x.sum()),
        lambda x: np.allclose(x, x),
        lambda x: x * float(x.max()) + int(x[0]),
        lambda x: bool((x > 1).any()),
        lambda x: math.hypot(x[0], x[1], x[2]) * x,
        lambda x: (math.degrees(x[0]), math.radians(x[1]), math.prod(x)),
    ],
)
def test_what_is_whole(fn):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    x = np.array([1.5, 2.25, -0.5])
    for k in (1, 2, 3):
        found, expected = compiled(x * k), fn(x * k)
        np.testing.assert_array_equal(found, expected)
        assert type(found) is type(expected)
    assert len(compiled.specializations) == 1


def whole_numbers(x, t):
    print("", end="")  # no check can fail after it
    s = x[0]
    return math.trunc(s), math.floor(s), math.ceil(s), round(s), int(s), math.trunc(t), math.floor(t)


@pytest.mark.parametrize("value", [1.5, -1.5, 1e300, float("nan"), float("inf")])
def test_whole_numbers_after_a_break(value):
    testing.check(whole_numbers, np.array([value, 2]), value, backend="interp")
    testing.check(whole_numbers, np.array([value, 2]), np.float64(value), backend="interp")


def rounded(x):
    print("", end="")
    total = 0.0
    for e in x:
        if e > 0:
            total += e
    return round(total, 1), round(total)


@pytest.mark.parametrize("x", [[1.26, 2], [-1.5, -2]])
def test_rounded_number_of_either_class(x):
    testing.check(rounded, np.array(x), backend="interp")
