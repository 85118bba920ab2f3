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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 7, 99, -1, -2, -3, -6])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_integer_powers(dtype, exponent, backend):
    z = numbers(dtype, 0.7)
    got, want = compiled(lambda z: z**exponent, backend)(z), z**exponent
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=8 * max(4, abs(exponent)) * np.finfo(dtype).eps)


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
