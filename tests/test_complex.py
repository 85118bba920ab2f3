"""Functions of complex numbers, and library calls on matrices, against NumPy."""

import numpy as np
import pytest

import cinductor

BACKENDS = ["c", "interp"]


def compiled(function, backend):
    return cinductor.compile(function, backend=backend, fullgraph=True)


def numbers(dtype, scale):
    rng = np.random.default_rng(3)
    return (scale * (rng.normal(size=300) + 1j * rng.normal(size=300))).astype(dtype)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_exp(dtype, backend):
    z = numbers(dtype, 5)
    z[:6] = [0, 1j, -3, -0.5j, 709 if dtype == np.complex128 else 88, -2000 + 1j]
    got, want = compiled(np.exp, backend)(z), np.exp(z)
    assert got.dtype == want.dtype
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        assert np.all(np.abs(a - b) <= 4 * np.spacing(np.abs(b)))


def assert_same(got, want):
    """Both parts to the last bit; a NaN equals any NaN."""
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
    """Every pair of parts, and numbers."""
    with np.errstate(all="ignore"):
        z = np.empty((PARTS.size, PARTS.size), dtype)
        z.real, z.imag = PARTS[:, None], PARTS
    return np.concatenate([z.ravel(), numbers(dtype, 0.7)])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_powers(dtype, backend):
    """NumPy's products for small whole exponents, its answers for zero, and else the C library's."""
    real = np.array(REALS)
    exponents = np.concatenate([real, real + 0.5j, 1j * real, numbers(np.complex128, 2)[:40]]).astype(dtype)
    z = corners(dtype)
    power = compiled(lambda a, b: a**b, backend)
    with np.errstate(all="ignore"):
        for b in (exponents, np.array(EXPONENTS)):
            assert_same(power(z[:, None], b[None, :]), z[:, None] ** b[None, :])
        assert_same(compiled(lambda a: (0.4 + 0.9j) ** a, backend)(np.arange(9)), (0.4 + 0.9j) ** np.arange(9))


@pytest.mark.parametrize("exponent", [*EXPONENTS, 2.0, -1.0, 1.5, 2j])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_constant_powers(dtype, exponent):
    """Of arrays, whose square is a ufunc of its own, and of numbers."""
    z = corners(dtype)

    def of_numbers(z):
        return [z[k] ** exponent for k in range(0, 180, 9)]

    with np.errstate(all="ignore"):
        got, want = compiled(lambda z: z**exponent, "interp")(z), z**exponent
        is_whole = isinstance(exponent, int) or np.lib.NumpyVersion(np.__version__) < "2.3.0"
        if exponent == 2 and is_whole:  # a product, whose bits are NumPy's business
            got, want = got[np.isfinite(want)], want[np.isfinite(want)]
            np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps)
        else:
            assert_same(got, want)
        for a, b in zip(compiled(of_numbers, "interp")(z), of_numbers(z)):
            assert type(a) is type(b)
            assert_same(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("name, operands", [("inv", 1), ("det", 1), ("cholesky", 1), ("solve", 2)])
def test_library_calls_on_matrices(name, operands, dtype):
    a = np.random.default_rng(5).integers(1, 5, (6, 6)).astype(dtype)
    a = a @ a.T + 10 * np.eye(6, dtype=dtype)
    function, given = getattr(np.linalg, name), (a, a[:, 0].copy())[:operands]
    got, want = compiled(lambda *x: function(*x) * 2, "c")(*given), function(*given) * 2
    assert type(got) is type(want) and np.array_equal(got, want) and got.dtype == want.dtype


def test_a_singular_matrix():
    fn = cinductor.compile(lambda a, b: np.linalg.solve(a, b) + 1)
    fn(np.eye(3), np.ones(3))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            fn(np.ones((3, 3)), np.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        fn(np.ones((3, 2)), np.ones(3))
