"""Tests functions of complex numbers, and library calls on complex matrices, against NumPy."""

import platform
import sys

import numpy as np
import pytest
import ways

import cinductor
from cinductor import _core


def compiled(function, way):
    return way.compile(function, fullgraph=True)


def numbers(dtype, scale):
    rng = np.random.default_rng(3)
    return (scale * (rng.normal(size=300) + 1j * rng.normal(size=300))).astype(dtype)


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_exp(dtype, way):
    z = numbers(dtype, 5)
    z[:6] = [0, 1j, -3, -0.5j, 709 if dtype == np.complex128 else 88, -2000 + 1j]
    got, want = compiled(np.exp, way)(z), np.exp(z)
    assert got.dtype == want.dtype
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        assert np.all(np.abs(a - b) <= 4 * np.spacing(np.abs(b)))


@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.mean])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_points_and_reductions_in_vectors(dtype, reduce):
    """Vector lanes are summed in NumPy's order, which shuffles them."""
    z = numbers(dtype, 0.1)
    for x, axis in ((z[:8], None), (z[:40], None), (z[:297].reshape(9, 33), 0), (z.reshape(-1, 60), 1)):
        values, got = compiled(lambda z, axis=axis: (np.exp(z), reduce(np.exp(z), axis=axis)), ways.BY_NAME["c"])(x)
        assert_same(got, reduce(values, axis=axis))


def assert_same(got, want):
    """Both parts are equal to the last bit; a NaN equals any NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        wrong = ~(((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b)))
        assert not wrong.any(), (got[wrong][:4], want[wrong][:4])


PARTS = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -0.3, 3.0, -7.0, 1e-300, 1e300, np.inf, -np.inf, np.nan])
EXPONENTS = [0, 1, 2, 3, 4, 5, 7, 15, 31, 99, 100, -1, -2, -3, -5, -99, -100]
REALS = [*EXPONENTS, -0.0, 0.5, -0.5, 1.5, 2.0000001, np.inf, -np.inf, np.nan]


def corners(dtype):
    """All pairs of special parts, and some numbers."""
    with np.errstate(all="ignore"):
        z = np.empty((PARTS.size, PARTS.size), dtype)
        z.real, z.imag = PARTS[:, None], PARTS
    return np.concatenate([z.ravel(), numbers(dtype, 0.7)])


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_powers(dtype, way):
    """NumPy multiplies for small integer exponents, has special cases for zero, and calls the C library for the rest.
    """
    real = np.array(REALS)
    exponents = np.concatenate([real, real + 0.5j, 1j * real, numbers(np.complex128, 2)[:40]]).astype(dtype)
    z = corners(dtype)
    power = compiled(lambda a, b: a**b, way)
    with np.errstate(all="ignore"):
        for b in (exponents, np.array(EXPONENTS)):
            assert_same(power(z[:, None], b[None, :]), z[:, None] ** b[None, :])
        assert_same(compiled(lambda a: (0.4 + 0.9j) ** a, way)(np.arange(9)), (0.4 + 0.9j) ** np.arange(9))


@pytest.mark.parametrize("exponent", [*EXPONENTS, 2.0, -1.0, 1.5, 2j])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_constant_powers(dtype, exponent):
    """Of arrays, for which NumPy computes the square by another ufunc, and of numbers."""
    z = corners(dtype)

    def of_numbers(z):
        return [z[k] ** exponent for k in range(0, 180, 9)]

    with np.errstate(all="ignore"):
        assert_same(compiled(lambda z: z**exponent, ways.BY_NAME["interp"])(z), z**exponent)
        for a, b in zip(compiled(of_numbers, ways.BY_NAME["interp"])(z), of_numbers(z)):
            assert type(a) is type(b)
            assert_same(a, b)


def special(dtype):
    """All pairs of parts that show limits, zeros, infinities and angles."""
    info = np.finfo(dtype)
    root, log = np.sqrt(info.max), np.log(info.max)
    rest = [0.5, -2.5, 3.0, info.tiny, -info.smallest_subnormal, info.max, -info.max, root, -1.5 * root, log, 1.2 * log, -1.2 * log, 1e-5]
    parts = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, *rest])
    z = np.empty((parts.size, parts.size), dtype)
    z.real, z.imag = parts[:, None], parts
    return z.ravel()


def assert_near(got, want):
    """Finite values are within 4 ULP. Zeros and infinities have the same sign, and NaN is at the same positions."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    for part in ("real", "imag") if want.dtype.kind == "c" else ("real",):
        a, b = getattr(got, part), getattr(want, part)
        near = np.abs(a - b) <= 4 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
        right = (a == b) & (np.signbit(a) == np.signbit(b)) | (a != a) & (b != b) | (near & np.isfinite(b) & (b != 0))
        assert right.all(), (got[~right][:4], want[~right][:4])


OWN = {row for row in _core.functions() if row[2] == "own"}


def is_own(name, dtype):
    """True if the function is cinductor's own by default on this machine."""
    name, char = ("arctan2", np.dtype(dtype).char.lower()) if name == "angle" else (name, np.dtype(dtype).char)
    return (name, char, "own", "") in OWN


OF_ONE = """
    square reciprocal negative positive conjugate sign real imag isnan isinf isfinite logical_not iscomplex isreal absolute angle exp2 expm1
    log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh
    exp
""".split()
PAIRS = "add subtract multiply divide equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor".split()


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_special_values(dtype, way):
    """Every function at every pair of special parts; functions of two arguments at all pairs of these."""
    z, x, y = special(dtype), numbers(dtype, 1), numbers(dtype, 20)[::-1].copy()
    one = compiled(lambda z: [getattr(np, name)(z) for name in OF_ONE], way)
    two = compiled(lambda a, b: [getattr(np, name)(a, b) for name in PAIRS], way)
    with np.errstate(all="ignore"):
        for given in (z, x, y):
            for name, got in zip(OF_ONE, one(given), strict=True):
                (assert_near if is_own(name, dtype) else assert_same)(got, getattr(np, name)(given))
        for a, b in ((z[:, None], z), (x, y), (x, y[5]), (y[:40, None], x[3:])):
            for name, got in zip(PAIRS, two(a, b), strict=True):
                assert_same(got, getattr(np, name)(a, b))


@pytest.mark.ways(*ways.CPU)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_products(dtype, way):
    """Products of arrays use an FMA (one rounding of a part) where NumPy's loops do; products of scalars never do."""

    def of_arrays(a, b):
        c = a.copy()
        c *= b
        return a * b, np.multiply(a[::2], b[1::2]), c, np.square(a), a**2, a * b[0], b[1] * a, a.reshape(2, -1) * b.reshape(2, -1), a * a.conj()

    def of_numbers(a, b):
        out = np.empty_like(a)
        for i in range(a.size):
            out[i] = a[i] * b[i] + a[i] ** 2
        return out, a[0] * b[1], a[4] * 2.5, a[1] / b[1]

    a, b = numbers(dtype, 1), numbers(dtype, 20)[::-1].copy()
    for function in (of_arrays, of_numbers):
        for got, want in zip(compiled(function, way)(a, b), function(a, b), strict=True):
            assert_same(got, want)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_products_of_numbers_are_exact(dtype):
    """An operator multiplies two numbers, of Python or NumPy, without an FMA: such programs may follow calls in NumPy."""

    def of_numpys(a, b):
        out = np.empty_like(a)
        for i in range(a.size):
            out[i] = a[i] * b[i] * a[i]
        return out

    def of_pythons(a, b):
        out = np.empty(a.size, dtype=np.complex128)
        for i in range(a.size):
            z = complex(a.real[i], a.imag[i])
            out[i] = z * complex(b.real[i], b.imag[i]) * z
        return out

    z = corners(dtype)
    a, b = (np.ascontiguousarray(v).ravel() for v in np.broadcast_arrays(z.ravel()[:, None], z.ravel()[None, ::7]))
    for function in (of_numpys, of_pythons):
        fast = cinductor.compile(function, mode="now")
        with np.errstate(all="ignore"):
            got, want = fast(a, b), function(a, b)
        (program,) = fast.specializations
        if not program.is_inexact:
            assert_same(got, want)
        else:  # Python follows C's rules for infinite numbers, or was compiled for a processor that has an FMA
            assert sys.version_info >= (3, 14) or platform.machine() != "x86_64"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("name, operands", [("inv", 1), ("det", 1), ("cholesky", 1), ("solve", 2)])
def test_library_calls_on_matrices(name, operands, dtype):
    a = np.random.default_rng(5).integers(1, 5, (6, 6)).astype(dtype)
    a = a @ a.T + 10 * np.eye(6, dtype=dtype)
    function, given = getattr(np.linalg, name), (a, a[:, 0].copy())[:operands]
    got, want = compiled(lambda *x: function(*x) * 2, ways.BY_NAME["c"])(*given), function(*given) * 2
    assert type(got) is type(want) and np.array_equal(got, want) and got.dtype == want.dtype


def test_a_singular_matrix():
    fn = cinductor.compile(lambda a, b: np.linalg.solve(a, b) + 1)
    fn(np.eye(3), np.ones(3))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            fn(np.ones((3, 3)), np.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        fn(np.ones((3, 2)), np.ones(3))
