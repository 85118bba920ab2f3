"""Tests functions and methods of Python's numbers on values known only at run time: exact, or a break with a reason."""

import cmath
import math
import operator
import warnings

import numpy as np
import pytest

import cinductor

INTS = [0, 1, 2, 3, 5, 7, 12, 20, 21, 62, 63, 64, -1, -6, 1000, 99999, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**61, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 3.0, 1e-310, 5e-324, 1e308, -1.7e308, 123456.789, math.inf, -math.inf, math.nan, 2.0**60, 0.1, 26.5]


def outcome(fn, *args):
    """The result of a call, or the type and text of its exception."""
    try:
        return fn(*args)
    except Exception as error:
        return type(error), str(error)


def agree(compiled, fn, *args):
    for _ in range(2):
        got, want = outcome(compiled, *args), outcome(fn, *args)
        assert repr(got) == repr(want) and type(got) is type(want), args


OF_INTS = {
    "gcd": lambda i, j: math.gcd(i, j),
    "gcd of three": lambda i, j: math.gcd(i, 12, j),
    "gcd of one": lambda i, j: math.gcd(i),
    "lcm": lambda i, j: math.lcm(i, j),
    "lcm of three": lambda i, j: math.lcm(i, 6, j),
    "isqrt": lambda i, j: math.isqrt(i),
    "factorial": lambda i, j: math.factorial(i),
    "comb": lambda i, j: math.comb(i, 2),
    "perm": lambda i, j: math.perm(i, 2),
    "bit_length": lambda i, j: i.bit_length(),
    "bit_count": lambda i, j: i.bit_count(),
    "conjugate": lambda i, j: i.conjugate(),
    "divmod": lambda i, j: divmod(i, j),
    "square": lambda i, j: i**2,
    "fifth power": lambda i, j: i**5,
    "power": lambda i, j: i**j,
    "two to the": lambda i, j: 2**j,
    "inverse": lambda i, j: i**-1,
    "pow with a modulus": lambda i, j: pow(i, 3, 7),
    "round": lambda i, j: round(i, -1),
    "add": operator.add,
}
OF_FLOATS = {
    "ldexp": lambda x, y: math.ldexp(x, 3),
    "ldexp by y": lambda x, y: math.ldexp(x, int(y)),
    "frexp": lambda x, y: math.frexp(x),
    "modf": lambda x, y: math.modf(x),
    "erf": lambda x, y: math.erf(x),
    "erfc": lambda x, y: math.erfc(x),
    "gamma": lambda x, y: math.gamma(x),
    "lgamma": lambda x, y: math.lgamma(x),
    "ulp": lambda x, y: math.ulp(x),
    "nextafter": lambda x, y: math.nextafter(x, y),
    "remainder": lambda x, y: math.remainder(x, y),
    "isclose": lambda x, y: math.isclose(x, y),
    "isclose within": lambda x, y: math.isclose(x, y, rel_tol=0.5, abs_tol=0.1),
    "is_integer": lambda x, y: x.is_integer(),
    "dist": lambda x, y: math.dist((x, 1.0), (y, 2.0)),
    "round": lambda x, y: round(x, 2),
    "fsum": lambda x, y: math.fsum([x, y, 0.1]),
    "complex": lambda x, y: complex(x, y),
    "parts": lambda x, y: (complex(x, y).real, complex(x, y).imag, complex(x, y).conjugate()),
    "cmath": lambda x, y: cmath.phase(complex(x, y)),
    "hex": lambda x, y: x.hex(),
}
MAY_BREAK = {"comb", "perm", "pow with a modulus", "round", "gamma", "lgamma", "remainder", "dist", "cmath", "hex"}


@pytest.mark.parametrize("name", OF_INTS)
def test_ints(name):
    fn = OF_INTS[name]

    def f(a):
        return fn(int(a[0]), int(a[1]))

    compiled = cinductor.compile(f, backend="interp")
    whole = cinductor.compile(f, backend="interp", fullgraph=True)
    for i in INTS:
        for j in INTS[:: 1 if i in (0, 3, -6) else 5]:
            if (name == "factorial" and i > 1000) or (name in ("power", "two to the") and abs(j) > 70):
                continue
            agree(compiled, f, np.array([i, j]))
    if name not in MAY_BREAK:
        agree(whole, f, np.array([12, 3]))


@pytest.mark.parametrize("name", OF_FLOATS)
def test_floats(name):
    fn = OF_FLOATS[name]

    def f(a):
        return fn(float(a[0]), float(a[1]))

    compiled = cinductor.compile(f, backend="interp")
    for x in FLOATS:
        for y in FLOATS[::3]:
            agree(compiled, f, np.array([x, y]))
    if name not in MAY_BREAK:
        agree(cinductor.compile(f, backend="interp", fullgraph=True), f, np.array([2.25, 3.0]))


@pytest.mark.parametrize("fn", [math.gcd, math.lcm, math.isqrt, math.factorial, operator.index, range, hex])
def test_numpys_bool_is_no_int(fn):
    for f in (lambda a: fn(a[0]), lambda a: fn(a[0] | a[1]), lambda a: (a.sum(), fn(a[0].item()))):
        for dtype in (bool, np.int8):
            agree(cinductor.compile(f, backend="interp"), f, np.array([1, 0], dtype))


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_item_of_a_range_that_has_none(backend):
    def f(a):
        raised = []
        for get in (lambda: all(a == a), lambda: float(a[:2]), lambda: range(a.size)[a[0]]):
            try:
                raised.append(get())
            except (TypeError, IndexError) as error:
                raised.append(str(error))
        return raised

    compiled = cinductor.compile(f, backend=backend)
    for a in (np.array([1.0]), np.array([1]), np.array([0]), np.array([2, 1])):
        agree(compiled, f, a)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_have_the_librarys_bits(name):
    """Also in compiled loops."""
    fn = getattr(math, name)

    def f(a, out):
        for i in range(len(a)):
            out[i] = fn(a[i])
        return out

    a = np.concatenate([np.random.default_rng(1).normal(size=500) * 3, FLOATS])
    for backend in ("c", "interp"):
        got = cinductor.compile(f, backend=backend, fullgraph=True)(a, np.empty_like(a))
        np.testing.assert_array_equal(got, f(a, np.empty_like(a)))


def test_fsum_of_arrays():
    def f(a):
        return math.fsum(a), math.fsum(a[::2]) + 1

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    rng = np.random.default_rng(2)
    for a in (rng.random(1000), rng.random(1000).astype("f4"), rng.integers(0, 9, 100), np.zeros(0), np.array([1e16, 1.0, -1e16])):
        agree(compiled, f, a)
    for a in (np.array([math.inf, -math.inf, 1.0]), np.array([1.7e308, 1.7e308, 1.0]), np.array([math.nan, 1.0, 2.0])):
        agree(cinductor.compile(f, backend="interp"), f, a)


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", [*COMPARISONS, operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, divmod])
@pytest.mark.parametrize("left", [np.float64(1.5), np.float32(1.5), np.int64(3), np.uint8(3), np.bool_(True), np.float16(2)])
def test_numpys_numbers_at_the_left(op, left):
    """The right operand is a number of either kind, or an array."""

    def f(x, i, a):
        return op(left, x), op(left, i), op(left, a[0]), op(left, a), op(a[1], left), op(x, left)

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    for x in (1.5, 2.0, -3.25):
        a = np.array([x, 1.5, 3.0])
        if left.dtype.kind == "b" and op in (operator.sub,):
            continue
        got, want = outcome(compiled, x, 3, a), outcome(f, x, 3, a)
        assert repr(got) == repr(want)


def test_a_break_says_why():
    def f(a):
        return math.gamma(a[0]) + a[1]

    with pytest.raises(cinductor.Unsupported, match="math.gamma, whose value only Python itself computes"):
        cinductor.compile(f, backend="interp", fullgraph=True)(np.array([2.5, 1.0]))
    compiled = cinductor.compile(f, backend="interp")
    for k in range(3):
        agree(compiled, f, np.array([2.5 + k, 1.0]))


@pytest.mark.parametrize("dtype", "f8 f4 i8 u1 c16 ?".split())
def test_numbers_of_arrays_repeat_sequences_or_refuse(dtype):
    """`[1, 2] * x.sum()` repeats the list; it is not a product of arrays."""
    programs = [
        lambda a: (1, 2) * a[1],
        lambda a: a[1] * [1, 2],
        lambda a: [1, 2] * a.max(),
        lambda a: "ab" * a[1],
        lambda a: a * [1, 2, 3],
        lambda a: a[1] + [1, 2],
    ]
    for f in programs:
        compiled = cinductor.compile(f, backend="interp")
        for a in (np.array([0, 1, 2]).astype(dtype), np.array([1, 3, 0]).astype(dtype)):
            assert repr(outcome(compiled, a)) == repr(outcome(f, a))


def test_sums_of_other_things():
    class Money:
        def __init__(self, k):
            self.k = k

        def __radd__(self, other):
            return other + self.k

    programs = [
        lambda a: sum([[a], [2]], []),
        lambda a: sum([Money(1), Money(2)], a[0]),
        lambda a: sum([1, 2.5], 3) + a,
        lambda a: sum(a, foo=1),
    ]
    for f in programs:
        compiled = cinductor.compile(f, backend="interp")
        for _ in range(2):
            assert repr(outcome(compiled, np.arange(3.0))) == repr(outcome(f, np.arange(3.0)))


def cut(x, whole):
    return x.astype(whole) * x.dtype.type(1), x.astype(whole).astype(x.dtype), x.astype(whole) // 2.5


def cut_one_by_one(x):
    made = []
    for k in range(len(x)):
        made.append(float(int(x[k])))
    return made, 1 / (float(int(x[0])) + np.float64(0)), int(x[1]) * -1.0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("whole", ["i2", "i4", "i8", "u4"])
def test_a_float_that_was_cut_to_an_int(dtype, whole):
    """The int has no signed zero, and floats out of range become the smallest int. gcc may fold the two casts into a
    rounding of the float, which differs in both.
    """
    values = np.array([-0.5, 0.5, -0.0, 0.9, 3.7, 100.2, -0.1], dtype)
    if whole in ("i4", "i8"):
        values = np.concatenate([values, np.array([np.nan, np.inf, -np.inf, 6e4, -7.5], dtype)])
    x = np.resize(values, 37)
    with np.errstate(all="ignore"):
        for got, want in zip(cinductor.compile(cut)(x, whole), cut(x, whole), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("whole", ["i1", "u1", "i2", "i4", "i8", "u8"])
def test_known_floats_that_no_int_holds(whole):
    """A C compiler that knows the float takes the nearest int; the processor, and so NumPy, does not."""

    def known(x):
        a, b, c = np.array([1e20, 2.0]), np.array([np.inf]), np.array([3e9, x[0], -1e30])
        return a.astype(whole), b.astype(whole), c.astype(whole), np.full(3, 7e9 * 4.0).astype(whole)

    with np.errstate(all="ignore"):
        for got, want in zip(cinductor.compile(known)(np.ones(2)), known(np.ones(2)), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_floats_that_were_cut_one_by_one():
    x = np.array([-0.5, -0.9, 0.3, -1.7, 2.2, -0.0, 1e10, -0.1, -3.0])
    with np.errstate(all="ignore"):
        assert repr(cinductor.compile(cut_one_by_one)(x)) == repr(cut_one_by_one(x))


def magnitudes(x):
    found, total, z = [], 0.0, 0j
    for i in range(len(x) - 1):
        z = z * z + complex(x[i], x[i + 1])
        found.append(abs(z))
        if abs(z) > 2:
            z = 0j
        total += abs(complex(x[i], x[i + 1]))
    return found, total, abs(complex(x[0], x[1]))


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_abs_of_complex_numbers_is_pythons(backend):
    compiled = cinductor.compile(magnitudes, backend=backend)
    draws = np.random.default_rng(3)
    for size in (3, 40, 40):
        x = draws.normal(size=size) * 10.0 ** draws.integers(-100, 100, size)
        x[::3] = draws.normal(size=len(x[::3]))
        assert repr(compiled(x)) == repr(magnitudes(x))
    assert not cinductor.explain(magnitudes, x).breaks
    for special in ([np.inf, 1], [np.nan, 1], [np.nan, -np.inf], [0.0, -0.0], [1e308, 1e308]):
        x = np.array(special)
        try:
            expected = repr(magnitudes(x))
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                compiled(x)
        else:
            assert repr(compiled(x)) == expected


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, -1e-300, 5e-324, 708.0, 710.0, 1e22, -750.0, math.inf, -math.inf, math.nan]
OF_ONE = [name for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt".split() if hasattr(math, name)]


@pytest.mark.parametrize("name", [*OF_ONE, "atan2"])
def test_functions_of_math_have_pythons_bits(name):
    """With NumPy's bits, a loop calls the C library, as Python does, and is captured. Elements for which the function raises
    are run by Python.
    """
    f = getattr(math, name)

    def each(x):
        out, total = np.zeros(len(x)), 0.0
        for k in range(len(x)):
            if x[k] != 2.0:
                out[k] = f(x[k], x[-k - 1]) if name == "atan2" else f(x[k])
            else:
                total += f(0.75, 0.5) if name == "atan2" else f(1.75) if name == "acosh" else f(0.75)
        return out, total

    def outcome(fn, x):
        try:
            return [v.tobytes() if type(v) is np.ndarray else v.hex() for v in fn(x)]
        except (ValueError, OverflowError) as error:
            return type(error), str(error)

    low, high = {"asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99), "acosh": (1, 60), "log1p": (-0.99, 60)}.get(
        name, (0.01, 60) if name.startswith("log") else (-60, 60)
    )
    for backend in ("c", "interp"):
        compiled = cinductor.compile(each, backend=backend, options={"numerics": "exact"})
        x = np.random.default_rng(0).uniform(low, high, 1000 if backend == "c" else 100)
        x[7] = 2.0
        report = cinductor.explain(compiled, x)
        assert report.plain is None and not report.breaks
        assert outcome(compiled, x) == outcome(each, x)
        for edge in EDGES:
            y = np.where(np.arange(len(x)) == 5, edge, x)
            assert outcome(compiled, y) == outcome(each, y), edge


def inverted(x, flag):
    total = 0
    for v in x:
        total += ~bool(v > 0)
    return x + ~flag, ~(len(x) > 2), operator.inv(flag), ~(x[0] > 0), ~len(x), total


@pytest.mark.parametrize("mode", ["now", "auto"])
def test_python_warns_of_an_inverted_bool_in_every_call(mode):
    compiled = cinductor.compile(inverted, mode=mode)
    for _ in range(3):
        seen = []
        for f in (inverted, compiled):
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                result = f(np.ones(3), True)
            seen.append((repr(result), [str(w.message) for w in given]))
        assert seen[0] == seen[1]
