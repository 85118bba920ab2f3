"""Tests interchanged loops and elements promoted to scalars. Results must equal Python's where this is done and where
it must not be done.
"""

from pathlib import Path

import numpy as np
import pytest

import cinductor


def lu(a):
    n = len(a)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]


def cholesky(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])


def product(a):
    """a[0] += a[1] @ a[2], as three loops."""
    n = a.shape[1]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                a[0, i, j] += a[1, i, k] * a[2, k, j]


def product_of_itself(a):
    """A row is computed from other columns of the same row."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                a[i, j] += a[i, k] * a[k, j]


def with_itself(a):
    """The last iteration of k reads the element that is being stored."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(j + 1):
                a[i, j] -= a[i, k] * 0.25


def running(a):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j - 1] * 0.5 + a[i, j]


def running_back(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 2, -1, -1):
            a[i, j] = a[i, j + 1] * 0.5 + a[i, j]


def running_two_back(a):
    for i in range(a.shape[0]):
        for j in range(2, a.shape[1]):
            a[i, j] = a[i, j - 1] * 0.5 + a[i, j - 2]


def running_overwritten(a):
    """Another store to the array comes between two stores of the promoted element."""
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j - 1] + 1
            a[i, j] = a[i, j] * 2
            a[i, 0] = a[i, j]


def where_positive(a):
    """The promoted element is only stored in some iterations."""
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            if a[i, j] > 0:
                a[i, 0] += a[i, j]


def into_the_next_row(a):
    """The last row has no iteration, and no element is promoted."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            a[i + 1, 0] += a[i, j]


def column_sums(a):
    """The row of sums is itself an operand, so the loops must not be interchanged."""
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            a[0, j] += a[i, j]


def shifted_columns(a):
    """A column reads what the previous column has stored."""
    for r in range(2):
        for j in range(1, a.shape[1]):
            for i in range(a.shape[0]):
                a[i, j] += a[i, j - 1] * r


def diagonal_neighbours(a):
    for r in range(2):
        for j in range(1, a.shape[1]):
            for i in range(1, a.shape[0]):
                a[i, j] += a[i - 1, j - 1] * r


def alternating(a):
    """Two elements are promoted at the same time."""
    for i in range(a.shape[0]):
        for j in range(2, a.shape[1]):
            a[i, 0], a[i, 1] = a[i, 1] + a[i, j], a[i, 0] * 0.5


def smallest_way(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += min(a[i - 1, j], a[i, j - 1] + 1, a[i - 1, j - 1])


SQUARES = [
    lu,
    cholesky,
    product_of_itself,
    with_itself,
    running,
    running_back,
    running_two_back,
    running_overwritten,
    where_positive,
    into_the_next_row,
    column_sums,
    shifted_columns,
    diagonal_neighbours,
    alternating,
    smallest_way,
]


def matrix(n, dtype):
    a = np.random.default_rng(n).integers(-3, 4, (n, n)).astype(dtype)
    return a @ a.T + 4 * n * np.eye(n, dtype=dtype)


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("fn", SQUARES)
def test_squares(fn, backend):
    for n, dtype in ((1, "f8"), (2, "f8"), (13, "f8"), (40, "f4"), (13, "f2")):
        want = matrix(n, dtype)
        got = want.copy()
        fn(want)
        cinductor.compile(fn, backend=backend, dynamic=False)(got)
        assert np.array_equal(got, want, equal_nan=True), (n, dtype)


@pytest.mark.parametrize("fn", SQUARES)
def test_squares_of_any_size(fn):
    call = cinductor.compile(fn, backend="interp", dynamic=True)
    for n in (12, 3, 1, 20):
        want = matrix(n, "f8")
        got = want.copy()
        fn(want)
        call(got)
        assert np.array_equal(got, want, equal_nan=True), n


@pytest.mark.parametrize("fn", [running, where_positive, column_sums, smallest_way])
def test_integers(fn):
    """Sums wrap around as NumPy's do."""
    want = np.full((9, 11), 2**62, np.int64) + np.arange(11)
    if fn is running:
        want = want.view(np.float64).copy()
    got = want.copy()
    with np.errstate(all="ignore"):
        fn(want)
        cinductor.compile(fn, dynamic=False)(got)
    assert np.array_equal(got, want, equal_nan=True)


def test_a_product_is_rows():
    want = np.random.default_rng(0).standard_normal((3, 20, 20))
    got = want.copy()
    product(want)
    report = cinductor.explain(product, got)
    assert np.array_equal(got, want)
    assert "do i0<20 {" in report.kernels


@pytest.mark.parametrize(
    "fn, is_held",
    [
        (cholesky, True),
        (running, True),
        (with_itself, False),
        (running_overwritten, False),
    ],
)
def test_what_is_allocated(fn, is_held):
    report = cinductor.explain(fn, matrix(20, "f8"))
    assert (" scalar[0]" in report.kernels) == is_held


def make_blocks(width):
    def sweep(a, blocks):
        """Goes down the rows, one block of columns after the other."""
        for t in range(blocks):
            for k in range(a.shape[0] - 1):
                a[k + 1, 8 * t : 8 * t + width] += a[k, 8 * t : 8 * t + width]

    return sweep


def from_neighbours(a, blocks):
    """Blocks that read a column of the next block."""
    for t in range(blocks):
        for k in range(a.shape[0] - 1):
            a[k + 1, 8 * t : 8 * t + 8] += a[k, 8 * t + 1 : 8 * t + 9]


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize(
    "sweep, is_parallel",
    [(make_blocks(8), True), (make_blocks(5), True), (make_blocks(9), False), (from_neighbours, False)],
)
def test_blocks_of_columns(sweep, is_parallel, dynamic):
    a = np.random.default_rng(3).random((200, 321))
    want = a.copy()
    sweep(want, 40)
    fn = cinductor.compile(sweep, backend="c", dynamic=dynamic, options={"threads": 4})
    for _ in range(5):
        got = a.copy()
        fn(got, 40)
        np.testing.assert_array_equal(got, want)
    report = cinductor.explain(fn, a.copy(), 40)
    if not dynamic:
        assert ("parallel" in report.procs) == is_parallel, report.procs


@pytest.mark.parametrize("arch", ["x86-64-v3", "x86-64-v4"])
def test_folds_in_order_at_each_level(arch):
    cpuinfo = Path("/proc/cpuinfo")
    if arch == "x86-64-v4" and not (cpuinfo.exists() and "avx512vl" in cpuinfo.read_text()):
        pytest.skip("no AVX-512")
    b = np.random.default_rng(1).random((30, 30))
    a = b @ b.T + 30 * np.eye(30)
    want = a.copy()
    cholesky(want)
    fn = cinductor.compile(cholesky, backend="c", options={"arch": arch})
    got = a.copy()
    fn(got)
    np.testing.assert_array_equal(got, want)


def test_bits_of_a_second_byte():
    """Masks that are compared with 0, and masks whose value is used."""

    def mixed(data):
        crc, count = 0x1D0F, 0
        for byte in data:
            crc ^= int(byte) << 8
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
            if crc & 0x0F00 == 0:
                count += 1
            count += (crc & 0x300) >> 8
            crc &= 0xFFFF
        return crc, count

    data = np.random.default_rng(2).integers(0, 256, 500).astype(np.uint8)
    fn = cinductor.compile(mixed, backend="c", fullgraph=True)
    assert fn(data) == mixed(data)
