"""Tests operations on two kinds of numbers: unsigned with signed integers, zeros of both signs, powers. Results must
be NumPy's and Python's.
"""

import functools
import itertools
import math
import subprocess

import numpy as np
import pytest
import ways
from numpy.lib.stride_tricks import as_strided

import cinductor
from cinductor import testing

UNSIGNED = np.array([0, 1, 5, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
SIGNED = np.array([0, 1, -1, 5, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
EVERY = np.repeat(UNSIGNED, SIGNED.size), np.tile(SIGNED, UNSIGNED.size)
INTS = [0, 5, -1, 255, 256, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, -(2**63), -(2**63) - 1, -(2**70)]


def whole(function, way):
    return way.compile(function, fullgraph=True)


def six(u, s):
    return u > s, u < s, u >= s, u <= s, u == s, u != s, s > u, s < u, s >= u, s <= u, s == u, s != u


# --- unsigned with signed integers --------------------------------------------------------------


@pytest.mark.ways(*ways.CPU)
def test_signs_compare_by_value(way):
    """Arrays and NumPy scalars of all widths, in both orders."""
    u, s = EVERY
    compiled = whole(six, way)
    for other in (s, s[2], s[3], s.astype(np.int32), s.astype(np.int8), s > 0, s.astype(float), np.float32(2**63)):
        testing.check(six, u, other, compiled=compiled)
    testing.check(six, u[9], s, compiled=compiled)
    scalars = whole(six, way)
    for a, b in itertools.product(UNSIGNED[::3], SIGNED[::2]):
        testing.check(six, a, b, compiled=scalars, calls=1)


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint8, np.int8])
def test_any_int_of_pythons_compares(kind):
    """Constant and varying ints. One that the dtype cannot hold is greater or less than every element."""
    values = (EVERY[0] if kind is np.uint64 else EVERY[1]).astype(kind)
    for operand in (values, values[5]):
        for number in INTS:
            fixed = functools.partial(six, s=number)
            testing.check(fixed, operand, compiled=whole(fixed, ways.BY_NAME["interp"]), calls=1)
    for way in (ways.BY_NAME["c"], ways.BY_NAME["interp"]):
        for operand in (values, values[5]):
            compiled = way.compile(six)
            for number in INTS:
                testing.check(six, operand, number, compiled=compiled)


def called(u, s):
    out, real = np.zeros(u.shape, bool), np.zeros(u.shape)
    np.greater(u, s, out=out)
    np.less(s, u, out=real, where=out)
    parts = np.equal(u, s, dtype=bool), np.not_equal(s, u, casting="safe"), np.less_equal.outer(s[:9], u[::7])
    return out, real, parts, np.greater_equal(u, s, where=u > 3, out=np.ones(u.shape, bool)), np.less(u, -1, out=np.ones(u.shape))


def chosen(u, s):
    picked = np.where(u > s, u, s), np.select([u > s, s == u], [u, s], -1), u[s < u], s[u <= s], (u >= s).sum(), np.argmax(s < u)
    x, y = u.copy(), s.copy()
    x[x > s] = 7
    y[y < u] = -7
    return picked, x, y, np.maximum(u, s), np.fmin(s, u), ((s < u) & (u <= 2**63) | (u == s)).all(), np.clip(u, s, s)


def searched(u, s):
    found = np.isin(u, s), np.isin(s, u), np.isin(s, [2**63, 5]), np.searchsorted(u, s), np.setdiff1d(u, s), np.array_equal(u, s)
    rounded = np.isin([2**53, 2**53 + 1, s[0]], np.arange(40) / 2)  # two ints that become one float
    return found, rounded, s[1] in u, u[3] in s, s[2] in u, -1 in u, 2**63 in s, 2**64 - 1 in u, np.digitize(u, np.sort(s))


def counted(u, s):
    n, best, last, k = 0, s[0], u[0], 0
    for k in range(len(u)):
        if u[k] > s[k]:
            n += 1
        n += 100 * (s[k] >= last) + 10000 * (u[k] == s[-1])
        best = s[k] if u[k] >= best else best
        last = u[k]
    k = 0
    while k < len(u) and u[k] > s[k]:
        k += 1
    return n, best, k, sum(1 for a, b in zip(u, s) if a > b), any(a < b for a, b in zip(u, s))


def kept(u, s):
    a, b = u[-1], s[2]
    order = sorted(range(4), key=lambda k: u[k] if k % 2 else s[k])
    return order, max(a, b), min(b, a, 3), sorted([a, b, -2]), a if a > b else b, b in (a, -1), 0 <= b < a, max([b, a])


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("function", [called, chosen, searched, counted, kept])
def test_where_signs_meet(function, way):
    compiled = way.compile(function)
    for u, s in (EVERY, (UNSIGNED, SIGNED), (UNSIGNED[3:], SIGNED[2:7])):
        testing.check(function, u, s, compiled=compiled)


@pytest.mark.parametrize("name", ["logical_and", "logical_xor", "ldexp"])
def test_an_int_that_no_c_long_holds(name):
    """NumPy converts it to a C long if its loop is for bools."""
    function = getattr(np, name)
    compiled = cinductor.compile(lambda x, n: function(x, n), backend="interp")
    for number in (3, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**64):
        testing.check(lambda x, n: function(x, n), np.arange(3.0), number, compiled=compiled)


# --- zeros --------------------------------------------------------------------------------------

ZEROS = [v.ravel() for v in np.meshgrid(*[[0.0, -0.0, 1.0, np.nan]] * 3)]


def extremes(x, y, z):
    return np.maximum(x, y), np.minimum(x, y), np.fmax(x, y), np.fmin(x, y), np.maximum(x, 0), np.maximum(0, x), np.minimum(x, -0.0), np.clip(x, y, z)


def clipped(x, y, z):
    numbers = np.clip(x, 0, 1), np.clip(x, 0.0, 1.0), x.clip(-1, -0.0), np.clip(x, np.nan, 1), np.clip(x, 0, np.nan), np.clip(x, y[1], z[0])
    return numbers, np.clip(x, 0, None), np.clip(x, None, -0.0), np.clip(x, y, 1), np.clip(x, y[3], 1)


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_zeros_of_extremes(dtype, way):
    """Which of 0 and -0 is returned. (NumPy's fmax and fmin differ between whole vectors and the remainder of an
    array.)
    """
    x, y, z = (v.astype(dtype) for v in ZEROS)
    for function in (extremes, clipped):
        got, want = whole(function, way)(x, y, z), function(x, y, z)
        skipped = (2, 3) if dtype != "e" and function is extremes else ()
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            if k not in skipped:
                testing.assert_same(a, b)


# --- powers -------------------------------------------------------------------------------------

EXPONENTS = [0, 1, 2, 3, 4, 5, -1, -2, -3, 0.5, 1.5, -0.5, -1.5, 2.0, -1.0, 2.5, 0.1, 1 / 3]


def of_elements(x, e):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = x[i] ** e
    return y


def of_pythons(x, e):
    total = 0.0
    for v in x:
        total += (1 - float(v)) ** -2 + abs(float(v)) ** e + float(v) ** 3
    return total, abs(float(x[1])) ** e, x[2] ** e, x.sum() ** 2


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_powers_of_numbers(dtype, way):
    """Powers of scalars are the C library's, in loops, as constants, in the first call and later; but squares in
    loops are products.
    """
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(0.01, 9, 500), rng.normal(size=300), 10 ** rng.uniform(-30, 30, 200)])
    special = [0.0, -0.0, 1.0, -1.0, -8.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 2.0**-537, 2.0**500]
    with np.errstate(all="ignore"):
        x = np.concatenate([x, special]).astype(dtype)
        chosen = EXPONENTS if way.name == "interp" else EXPONENTS[1::3]
        constant = whole(lambda x: [of_elements(x, e) for e in chosen], way)
        for a, e in zip(constant(x), chosen, strict=True):
            testing.assert_same(a, x * x if e == 2 else of_elements(x, e))
        compiled = way.compile(of_elements)
        for e in (3, 2.5, np.float32(1.5), -1):
            testing.check(of_elements, x, e, compiled=compiled, calls=1)
        compiled = way.compile(of_pythons)
        for e in (3, 0.5, -1.5):
            testing.check(of_pythons, x[:500], e, compiled=compiled)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_a_power_is_the_same_in_every_call(kind):
    functions = lambda b: (1 - b) ** 2, lambda b: (1 - b) ** 3, lambda b: (1 - b) ** -1, lambda b: (1 - b) ** 0.5
    for function in functions:
        compiled = cinductor.compile(function)
        for b in np.random.default_rng(2).random(150):
            assert {compiled(kind(b)) for _ in range(3)} == {function(kind(b))}


def test_lists_of_large_ints():
    """The dtype of the list's array depends on all of them, however long the list is."""

    def appended(u):
        kept = []
        for k in range(len(u)):
            kept.append(int(u[k]))
        return np.array(kept), np.stack(kept), max(kept)

    compiled = cinductor.compile(appended, backend="interp")
    for values in ([1, 2, 5], [2**63, 2**64 - 1], [7, 8, 9, 10], [1, 2**63, 3], list(range(12))):
        testing.check(appended, np.array(values, np.uint64), compiled=compiled)
    compiled = cinductor.compile(lambda n, x: np.array([n] * x.size), backend="interp")
    for size, n in [(7, 3), (12, 2**63), (40, 254), (4, 2**64 - 1), (5, 2**64), (6, -1)] * 2:
        testing.check(lambda n, x: np.array([n] * x.size), n, np.zeros(size), compiled=compiled)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_powers_of_arrays_by_one_number(dtype):
    """Exponents for which NumPy has a faster way, as constants, numbers and arrays of one element, to the bit. -inf
    and -0 distinguish these ways.
    """
    x = np.array([2.25, 3.3, 0.7, -0.0, 0.0, np.inf, -np.inf, np.nan, 1e-5]).astype(dtype)
    with np.errstate(all="ignore"):
        for e in (2, 0.5, -1, 1, 0, 2.0, -1.0):
            strong = np.dtype(dtype).type(e)
            for form in (lambda x: x**e, lambda x: np.power(x, e), lambda x: np.power(x, strong), lambda x: np.float_power(x, e)):  # noqa: B023
                testing.assert_same(whole(form, ways.BY_NAME["interp"])(x), form(x))
            for form in (lambda x, e: x**e, np.power):
                testing.check(lambda x, e: form(x, e), x, strong, backend="interp")  # noqa: B023


# --- layouts and sources of arrays --------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True])
def test_strides_of_what_overlaps(dynamic):
    """New arrays have NumPy's layout, even if strides of an argument have common factors with its sizes."""
    base = np.arange(100.0)[50:]
    shapes = [((2, 2, 3), (8, 24, 16)), ((2, 3, 2), (8, 16, 24)), ((0, 3), (8, 8)), ((4, 3), (8, 8)), ((3, 0), (8, 8)), ((0, 3), (24, 8)), ((3, 3), (16, 8)), ((2, 3), (0, 8))]
    for (shape, strides), function in itertools.product(shapes, (lambda v: v + 1, np.empty_like, lambda v: v.astype("f4"), lambda v: v.T * 2)):
        v = as_strided(base, shape, strides)
        got = cinductor.compile(lambda v: function(v), backend="interp", dynamic=dynamic)(v)  # noqa: B023
        assert (got.shape, got.strides) == (function(v).shape, function(v).strides), (shape, strides)


def test_a_list_is_no_number():
    def compared(a, b, n):
        return [a, 3, b] == bool(n), (a, 3) == n, n == [1], n != (n,), a == [a, 2]

    for n in (0, 1, 5):
        compiled = cinductor.compile(compared, backend="interp")
        for m, (a, b) in itertools.product((n, 3), ((np.int8(3), 4), (2, np.uint64(5)))):
            testing.check(compared, a, b, m, compiled=compiled)


DIVISIONS = [lambda x: x // 0, lambda x: x % 0, lambda x: np.fmod(x, 0), lambda x: np.divmod(x, 0), lambda x: np.zeros((x.size, 0)).mean(1), lambda x: np.tile(x[:0], (2, 2)).reshape(2, -1)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("number", range(len(DIVISIONS)))
def test_no_source_divides_by_zero(number, dynamic, tmp_path):
    with np.errstate(all="ignore"):
        report = cinductor.explain(cinductor.compile(DIVISIONS[number], backend="c", dynamic=dynamic), np.arange(6))
        testing.assert_same(report.result, DIVISIONS[number](np.arange(6)))
    path = tmp_path / "kernels.c"
    path.write_text(report.source)
    done = subprocess.run(["cc", "-std=gnu11", "-O1", "-march=native", "-Werror=div-by-zero", "-c", path, "-o", tmp_path / "kernels.o"], capture_output=True, text=True)
    assert done.returncode == 0 and "division by zero" not in done.stderr, done.stderr


ONE_INT = {
    "round": lambda a: np.round(a), "around": lambda a: np.around(123, a), "tens": lambda a: np.round(a, -1),
    "squeeze": lambda a: np.squeeze(a), "copy": lambda a: np.copy(a), "ravel": lambda a: np.ravel(a),
    "reshape": lambda a: np.reshape(a, ()), "transpose": lambda a: np.transpose(a), "abs": lambda a: np.abs(a),
    "sum": lambda a: np.sum(a), "mean": lambda a: np.mean(a), "max": lambda a: np.max(a), "clip": lambda a: np.clip(a, 0, 5),
    "where": lambda a: np.where(a > 0, a, 0), "array": lambda a: np.array(a), "conj": lambda a: np.conj(a),
    "real": lambda a: np.real(a), "imag": lambda a: np.imag(a), "sort": lambda a: np.sort([a, 1]), "cumsum": lambda a: np.cumsum(a),
    "size": lambda a: np.size(a), "ndim": lambda a: np.ndim(a), "fix": lambda a: np.fix(a), "square": lambda a: np.square(a),
    "repeat": lambda a: np.repeat(a, 2), "at least": lambda a: np.atleast_1d(a), "full": lambda a: np.full(2, a),
    "like": lambda a: np.zeros_like(a), "isnan": lambda a: np.isnan(a), "nan to num": lambda a: np.nan_to_num(a),
    "positive": lambda a: np.positive(a), "median": lambda a: np.median(a), "ptp": lambda a: np.ptp([a, 1]),
}  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", ONE_INT)
def test_functions_of_one_int_give_what_numpy_gives(name, dynamic):
    """Also when the int has become a symbol."""
    compiled = cinductor.compile(ONE_INT[name], backend="interp", dynamic=dynamic)
    for value in (-30, -20, 7, 5):
        want, got = ONE_INT[name](value), compiled(value)
        assert type(got) is type(want) and repr(got) == repr(want)


@pytest.mark.parametrize("backend", ["c", "interp"])
def test_a_sum_of_minus_zero_is_zero(backend):
    """NumPy's sum starts from 0, also for a number and over no axes."""
    zeros = (-0.0, np.array(-0.0), np.float32(-0.0), np.array([[-0.0]]), np.array(complex(-0.0, -0.0)))
    for f in (np.sum, np.mean, np.add.reduce, np.nansum, np.nanmean, lambda x: np.sum(x, axis=()), lambda x: np.sum(x, keepdims=True)):
        compiled = cinductor.compile(lambda x, f=f: f(x), backend=backend)
        for zero in zeros:
            for _ in range(2):
                assert repr(compiled(zero)) == repr(f(zero))


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_the_magnitude_of_numpys_complex_numbers(dtype):
    """abs() of a NumPy complex scalar is the C library's hypot, not the loop of np.absolute."""

    def each(z):
        sizes = np.zeros(len(z), z.real.dtype)
        for k in range(len(z)):
            sizes[k] = abs(z[k])
        return sizes

    parts = np.random.default_rng(0).normal(size=(2, 200))
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    one = cinductor.compile(lambda z: abs(z), options={"numerics": "exact"})
    want = np.array([abs(v) for v in z])
    assert np.array([one(v) for v in z]).tobytes() == want.tobytes()
    assert cinductor.compile(each, options={"numerics": "exact"})(z).tobytes() == want.tobytes()


def test_what_python_and_numpy_refuse():
    ldexp = cinductor.compile(lambda n: math.ldexp(2.5, n), backend="interp")
    assert ldexp(3) == 20.0 and ldexp(2) == 10.0
    for n in (np.int64(3), np.int64(4)):
        with pytest.raises(TypeError, match="Expected an int as second argument to ldexp"):
            ldexp(n)

    def unused(x):
        np.empty(2**60 - 1)
        return x + 1

    compiled = cinductor.compile(unused, backend="interp")
    for _ in range(2):
        with pytest.raises((MemoryError, ValueError)):
            compiled(np.ones(3))
