"""Tests numbers that are of one class on one path and of another on another path: each operator follows the rules of the
class at run time.
"""

import math

import numpy as np
import pytest

import cinductor
from cinductor import testing

ARRAYS = [np.array(v) for v in ([3, -4, 5], [-3, -4, -5], [2**62, 2**62, 7], [-(2**62), 3, -(2**62)])]


def summed(x):
    """0, or a sum that NumPy made."""
    total = 0
    for i in range(len(x)):
        if x[i] > 0:
            total += x[i]
    return total


OPERATORS = {
    "plus int": lambda b: b + 1,
    "int minus": lambda b: 7 - b,
    "times int": lambda b: b * 3,
    "plus float": lambda b: b + 0.5,
    "times float": lambda b: 2.5 * b,
    "by float": lambda b: b / 2.0,
    "negative": lambda b: -b,
    "absolute": lambda b: abs(b),
    "floor": lambda b: b // 3,
    "rest": lambda b: b % -5,
    "itself": lambda b: b + b,
    "square": lambda b: b**2,
    "less": lambda b: b < 4,
    "equal": lambda b: 0.0 == b,
    "in arithmetic": lambda b: (b + 1) * 0.25 - b,
    "in a choice": lambda b: b - 1 if b > 5 else b + 1.0,
    "with an array": lambda b: (b + 2) * np.ones(2),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("backend", ("c", "interp"))
@pytest.mark.parametrize("name", OPERATORS)
def test_ints(name, backend):
    """If a value exceeds 64 bits, the original function runs: Python's int grows, NumPy's wraps around."""

    def f(x):
        return OPERATORS[name](summed(x))

    fn = cinductor.compile(f, backend=backend)
    for x in (*ARRAYS, *ARRAYS):
        got, want = fn(x), f(x)
        assert type(got) is type(want) and np.array_equal(got, want)
    if "choice" not in name:
        cinductor.compile(f, backend=backend, fullgraph=True)(ARRAYS[0])


# --- an int on one path, and a float on the other ---------------------------------------------------------


def biggest(x):
    best = 0
    for v in x:
        if v > best:
            best = v
    return best


def clamped(x):
    low = 3
    for i in range(len(x)):
        low = min(low, x[i])
        if low < -3:
            low = -3
    return low


def counted(x):
    """An int that is data."""
    n = 0
    for v in x:
        if v > 0:
            n += 1
        elif v < -3:
            n = v
    return n


def rooted(x):
    """Python's own float."""
    total = 0
    for i in range(len(x)):
        if x[i] > 0:
            total += math.sqrt(x[i])
    return total


FLOATS = [np.array(v, float) for v in ([3, -4, 5.5], [-3, -4, -5], [0.0, -0.0, -1], [np.nan, 2, 3], [2, np.inf, 1], [3, 1e17, 1])]
WHOLE = {
    **{name: f for name, f in OPERATORS.items() if name != "in a choice"},
    "minus zero": lambda b: 1.0 * (b * -1),
    "floor down": lambda b: b // -3,
    "by int": lambda b: b / 4,
    "large": lambda b: b * 2**30 + b,
    "many": lambda b: b + 2**53,
    "itself twice": lambda b: b * b,
    "with float64": lambda b: b + np.float64(0.1),
    "stored": lambda b: np.array([0.5, 1.0]) * b,
    "root": lambda b: math.sqrt(abs(b)),
    "as float": lambda b: float(b),
    "truth": lambda b: (bool(b), not b),
    "limit": lambda b: np.maximum(b, 0.5),
    "square": lambda b: b**2,
    "cube": lambda b: 2 * b**3 - b,
}
BY_CLASS = {
    "one of three": lambda b: max(b, 0.5),
    "with int64": lambda b: b + np.int64(3),
    "with ints": lambda b: b * np.arange(3),
    "with float32": lambda b: b * np.ones(2, np.float32),
    "absolute": lambda b: np.abs(b),
    "array": lambda b: (np.array([b, 1]), np.full(2, b), np.where(np.arange(2) > 0, b, 0)),
    "class": lambda b: (type(b), isinstance(b, int), hasattr(b, "is_integer"), hasattr(b, "dtype")),
    "text": lambda b: f"{b}",
    "choice": lambda b: b - 1 if b > 5 else b + 1.0,
    "items": lambda b: [b, (b, -b), {"b": b}],
    "quotients": lambda b: divmod(b, 3),
    "rounded": lambda b: round(b, 1),
}


def is_alike(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(is_alike, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


def outcome(fn, *args):
    try:
        return fn(*args)
    except (ValueError, OverflowError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("backend", ("c", "interp"))
@pytest.mark.parametrize(
    "made, dtype",
    [*((made, "f8") for made in (biggest, clamped, counted, rooted)), (biggest, "f4"), (clamped, "f4"), (biggest, "u1")],
)
def test_an_int_or_a_float(made, dtype, backend):
    """The class of each result is Python's, and an int has no negative zero."""
    wanted = WHOLE if dtype == "f8" else {"number": lambda b: b, "less": lambda b: (b < 4, 2 >= b)}

    def f(x):
        b = made(x)
        return [op(b) for op in wanted.values()]

    fn = cinductor.compile(f, backend=backend)
    for x in (*FLOATS, *FLOATS[:2]):
        x = np.clip(np.nan_to_num(x), 0, 200).astype(dtype) if dtype == "u1" else x.astype(dtype)
        got, want = fn(x), f(x)
        assert is_alike(got, want), [p for p in zip(wanted, got, want, strict=True) if not is_alike(*p[1:])]
    cinductor.compile(f, backend=backend, fullgraph=True)(FLOATS[0].astype(dtype))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", BY_CLASS)
def test_what_depends_on_the_class(name):
    def f(x):
        return BY_CLASS[name](biggest(x))

    fn = cinductor.compile(f, backend="interp")
    for x in (*FLOATS, *FLOATS[:2]):
        assert is_alike(outcome(fn, x), outcome(f, x))


def test_in_the_loop():
    """The perceptron: its bias starts as a Python number and becomes NumPy's."""

    def train(rows, labels, epochs):
        weights, bias, mistakes = np.zeros(rows.shape[1]), 0, 0
        for _ in range(epochs):
            mistakes = 0
            for row, label in zip(rows, labels, strict=True):
                if label * (row @ weights + bias) <= 0:
                    weights += label * row
                    bias += label
                    mistakes += 1
            if mistakes == 0:
                break
        return weights, bias, mistakes

    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, (30, 3)).astype(float)
    fn = cinductor.compile(train, fullgraph=True)
    for shift in (0.5, -9.0):
        labels = np.where(rows[:, 0] - rows[:, 1] > shift, 1, -1)
        for got, want in zip(fn(rows, labels, 15), train(rows, labels, 15), strict=True):
            assert type(got) is type(want) and np.array_equal(got, want)


# --- bools, results, and operations that only one of the two kinds has ----------------------------------


def operands_of_words(x, flag):
    """`and` and `or` return one of their operands, whatever its class."""
    b, c = x[0] < x[1], float(x[0]) < float(x[2])
    return b and flag, b or flag, flag and b, flag or b, b and c, b or c, c and b, c or b


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("x", [[1.0, 2, 3], [2.0, 1, 3], [3.0, 2, 1], [2.0, 3, 1]])
def test_words_give_an_operand(x, flag):
    testing.check(operands_of_words, np.array(x), flag, backend="interp")


def bools_in_arithmetic(x, flag):
    b = x[0] < x[1] and flag
    return b + 1, 3 - b, b * 2.5, b & flag, b | (x[1] > 0), b ^ b, b == flag, x + b, -(b + 2), not b


@pytest.mark.parametrize("x", [[1.0, 2, 3], [2.0, 1, 3]])
def test_bools_in_arithmetic(x):
    testing.check(bools_in_arithmetic, np.array(x), True, backend="interp")


def returned_from_a_loop(x, y, s):
    print("", end="")
    s, t = float(s), x[1]
    for i in range(12):
        s -= 2
        if x[i] < 5:
            return (t if (y > 2).any() else s), i
        x[2] -= t
    return x, s


@pytest.mark.parametrize("x", [[1.0] * 12, [6.0] * 5 + [1.0] * 7])
@pytest.mark.parametrize("y", [1.0, 100.0])
def test_returned_from_a_loop(x, y):
    testing.check(returned_from_a_loop, np.array(x), np.full(3, y), 1, backend="interp")


def divided_after_a_loop(x, n, d):
    total = 0.0
    for v in x:
        if v > 0:
            total += v
    return total / n, total // n, total % n, total**d, x * 2


@pytest.mark.parametrize("x", [[1.0, 2, 3], [-1.0, -2, -3]])
@pytest.mark.parametrize("n", [3, 0, 2.5])
def test_divided_after_a_loop(x, n):
    """A data-dependent divisor is checked. An operation that the two kinds of numbers do not share runs after a
    break, where the kind is known.
    """
    testing.check(divided_after_a_loop, np.array(x), n, 3, backend="interp")


def divided_after_a_break(x, k):
    total = 0
    print("", end="")
    for v in x:
        if v > 0:
            total += v
    half = total / k
    print("", end="")
    return half, total // k, type(total), isinstance(total, int), x * half


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32"])
@pytest.mark.parametrize("x", [[1, 2, 3], [-1, -2, -3]])
def test_divided_after_a_break(x, dtype):
    """The call cannot be restarted, so no check may fail: the number is computed first."""
    testing.check(divided_after_a_break, np.array(x, dtype), 2, backend="interp")


def set_in_an_inner_loop(x, n):
    """n: the number of inner iterations is the argument, or an element of it."""
    total, trips = 0, int(n[0]) if isinstance(n, np.ndarray) else n - 2
    for i in range(len(x)):
        for _ in range(trips):
            total = x[i]
        total *= 2
    return total


def set_in_a_loop_of_its_own_length(x, n):
    total = 0
    for i in range(len(x)):
        for _ in range(int(n[i % 2])):
            total = x[i]
        total *= 2
    return total


def set_in_an_inner_while(x, n):
    total = 0
    for i in range(len(x)):
        k = 0
        while x[k] < n[i % 2]:
            total = x[i]
            k += 1
        total *= 2
    return total


def set_in_the_innermost_loop(x, n):
    total, trips = 0, int(n[0])
    for i in range(len(x)):
        for _ in range(len(x) - 1):
            for _ in range(trips):
                total = x[i]
            total *= 2
        total += 1
    return total


def is_reset_in_an_inner_loop(x, n):
    total, trips = 0, int(n[0])
    for i in range(len(x)):
        last = 0
        for _ in range(trips):
            last = x[i]
        total += last
    return total


@pytest.mark.parametrize(
    "fn",
    (
        set_in_an_inner_loop,
        set_in_a_loop_of_its_own_length,
        set_in_an_inner_while,
        set_in_the_innermost_loop,
        is_reset_in_an_inner_loop,
    ),
)
@pytest.mark.parametrize("first", (0, 3))
def test_inner_loops_of_no_iterations(fn, first):
    """Such a loop leaves an int from before the outer loop a Python int, whatever later outer iterations start with.
    """
    compiled = cinductor.compile(fn, backend="interp")
    data = [np.array(n) for n in ((first, 2), (0, 0), (2, 0), (0, 2), (3, 1))]
    for n in (*data, *data):
        x = np.arange(20.0) * 0.5
        got, want = compiled(x, n), fn(x, n)
        assert type(got) is type(want) and got == want


@pytest.mark.parametrize("dynamic", (False, True))
def test_inner_loops_of_no_iterations_of_an_argument(dynamic):
    compiled = cinductor.compile(set_in_an_inner_loop, backend="interp", dynamic=dynamic)
    for n in (5, 6, 2, 0, 4, 1, 7):
        got, want = compiled(np.arange(20.0), n), set_in_an_inner_loop(np.arange(20.0), n)
        assert type(got) is type(want) and got == want


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("dynamic", (False, True))
def test_a_number_of_either_class_is_stored_where_it_fits(dynamic, backend):
    """Python's int raises, NumPy's wraps around."""

    def f(u, s):
        u[s > 2] = min((s > 1).sum(), int(s[0]))
        return u

    compiled = cinductor.compile(f, backend=backend, dynamic=dynamic)
    for first in (1, -128, 5, -3, 2):
        s = np.array([first, 3, 4, -5])
        results = []
        for fn in (compiled, f):
            u = np.arange(4).astype(np.uint64)
            try:
                results.append(fn(u, s).tolist())
            except OverflowError as error:
                results.append((str(error), u.tolist()))
        assert results[0] == results[1]


def result_or_error(fn, *args):
    try:
        return repr(fn(*args))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: s + (1.0, 2.0),
        lambda s: [1.0] + s,
        lambda s: s - [1.0],
        lambda s: s < (1.0, 2.0),
        lambda s: (s == (1.0, 2.0), s != [3.0], [2.0] == s),
        lambda s: s + "text",
        lambda s: s * None,
    ],
)
@pytest.mark.parametrize("backend", ["interp", "c"])
def test_a_number_of_either_class_and_what_is_no_number(fn, backend):
    """Python's numbers have no operators with a list, and NumPy's make an array of it."""

    def largest(x):
        return fn(max(1.0, x[0]))

    compiled = cinductor.compile(largest, backend=backend)
    for value in (0.5, 3.0, 0.25):
        x = np.array([value])
        assert result_or_error(compiled, x) == result_or_error(largest, x)
