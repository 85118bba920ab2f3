"""Factorisations and solvers written out, from Cholesky to power iteration."""

import numpy as np


def thomas(lower, diagonal, upper, right):
    """A tridiagonal system, element by element; the diagonal and right side are used up."""
    n = len(diagonal)
    for i in range(1, n):
        w = lower[i - 1] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        right[i] -= w * right[i - 1]
    x = np.empty(n)
    x[n - 1] = right[n - 1] / diagonal[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (right[i] - upper[i] * x[i + 1]) / diagonal[i]
    return x


def cyclic_reduction(a, b, c, d):
    """A tridiagonal system by halving: all even rows at once, for n = 2**k - 1."""
    n = b.shape[0]
    step = 1
    while 2 * step - 1 < n:
        i = np.arange(2 * step - 1, n, 2 * step)
        alpha = a[i] / b[i - step]
        gamma = c[i] / b[i + step]
        b[i] -= alpha * c[i - step] + gamma * a[i + step]
        d[i] -= alpha * d[i - step] + gamma * d[i + step]
        a[i] = -alpha * a[i - step]
        c[i] = -gamma * c[i + step]
        step *= 2
    x = np.zeros(n + 2)
    while step >= 1:
        i = np.arange(step - 1, n, 2 * step)
        low, high = np.maximum(i - step, -1), np.minimum(i + step, n)
        x[i + 1] = (d[i] - a[i] * x[low + 1] - c[i] * x[high + 1]) / b[i]
        step //= 2
    return x[1:-1]


def cholesky(a):
    """In place, three nested loops over elements."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])


def cholesky_by_columns(a):
    """The same with dot products of slices; the upper triangle is cleared."""
    low = np.zeros_like(a)
    for j in range(a.shape[1]):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        for i in range(j + 1, a.shape[0]):
            low[i, j] = (a[i, j] - np.dot(low[i, :j], low[j, :j])) / low[j, j]
    return low


def lu(a):
    """Doolittle's factors in place of the matrix."""
    n = len(a)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def lu_with_pivots(a):
    """Rows are exchanged for the largest pivot; gives the factors and the order of rows."""
    a = np.array(a, dtype=np.float64)
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n - 1):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            order[k], order[pivot] = order[pivot], order[k]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def gauss_jordan(a):
    """The inverse by elimination of whole rows beside the identity."""
    n = a.shape[0]
    work = np.hstack((a, np.eye(n)))
    for i in range(n):
        work[i] = work[i] / work[i, i]
        for j in range(n):
            if i != j:
                work[j] = work[j] - work[j, i] * work[i]
    return work[:, n:]


def bareiss(m):
    """The determinant of an integer matrix without fractions."""
    n = m.shape[0]
    sign, previous = 1, 1
    for k in range(n - 1):
        if m[k, k] == 0:
            for i in range(k + 1, n):
                if m[i, k] != 0:
                    m[[k, i]] = m[[i, k]]
                    sign = -sign
                    break
            else:
                return 0
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                m[i, j] = (m[i, j] * m[k, k] - m[i, k] * m[k, j]) // previous
        previous = m[k, k]
    return sign * m[n - 1, n - 1]


def gram_schmidt(a):
    """Classical: projections on all earlier columns at once."""
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        r[:k, k] = q[:, :k].T @ a[:, k]
        v = a[:, k] - q[:, :k] @ r[:k, k]
        r[k, k] = np.sqrt(np.sum(v * v))
        q[:, k] = v / r[k, k]
    return q, r


def modified_gram_schmidt(a):
    """Each new column is taken out of those that follow, in place."""
    n = a.shape[1]
    r = np.zeros((n, n), a.dtype)
    for k in range(n):
        r[k, k] = np.linalg.norm(a[:, k])
        a[:, k] /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[:, k], a[:, j])
            a[:, j] -= r[k, j] * a[:, k]
    return a, r


def householder(a):
    """QR by reflections; only R."""
    r = a.copy()
    m, n = r.shape
    for k in range(min(m - 1, n)):
        x = r[k:, k].copy()
        x[0] += np.copysign(np.sqrt((x**2).sum()), x[0])
        x /= np.sqrt((x**2).sum())
        r[k:, k:] -= 2.0 * np.outer(x, x @ r[k:, k:])
    return np.triu(r)


def forward_substitution(low, b):
    """A lower triangle, one row a step."""
    x = np.zeros_like(b)
    for i in range(low.shape[0]):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


def back_substitution(up, b):
    """An upper triangle with many right sides, element by element, in place."""
    n = b.shape[0]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            b[i] -= up[i, j] * b[j]
        b[i] /= up[i, i]
    return b


def conjugate_gradient(a, b, tolerance):
    """Until the residual is small, at most 2 n steps."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    old = r @ r
    for step in range(2 * len(b)):  # noqa: B007  (used after the loop)
        if np.sqrt(old) < tolerance:
            break
        ap = a @ p
        alpha = old / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / old) * p
        old = new
    return x, step


def jacobi_solver(a, b, sweeps):
    """Diagonally dominant systems by simultaneous displacement."""
    diagonal = np.diag(a)
    rest = a - np.diagflat(diagonal)
    x = np.zeros(len(b))
    for _ in range(sweeps):
        x = (b - rest.dot(x)) / diagonal
    return x


def gauss_seidel(a, b, x, sweeps):
    """Successive displacement, rows in order; the residual's largest element."""
    n = len(b)
    for _ in range(sweeps):
        for i in range(n):
            total = b[i]
            for j in range(n):
                if j != i:
                    total -= a[i, j] * x[j]
            x[i] = total / a[i, i]
    worst = 0.0
    for i in range(n):
        worst = max(worst, abs(b[i] - np.sum(a[i] * x)))
    return worst


def power_iteration(a, v, tolerance, limit=200):
    """The largest eigenvalue, until it settles."""
    value = 0.0
    for count in range(limit):
        w = a @ v
        v = w / np.linalg.norm(w)
        new = v @ a @ v
        if abs(new - value) < tolerance * abs(new):
            return new, v, count
        value = new
    raise ArithmeticError("no convergence")


def jacobi_eigenvalues(a, sweeps):
    """Rotations that clear one pair of elements after the other."""
    n = a.shape[0]
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                theta = 0.5 * np.arctan2(2.0 * a[p, q], a[q, q] - a[p, p])
                c, s = np.cos(theta), np.sin(theta)
                row_p, row_q = a[p].copy(), a[q].copy()
                a[p] = c * row_p - s * row_q
                a[q] = s * row_p + c * row_q
                column_p, column_q = a[:, p].copy(), a[:, q].copy()
                a[:, p] = c * column_p - s * column_q
                a[:, q] = s * column_p + c * column_q
    return np.sort(np.diagonal(a))


def csr_matvec(indptr, indices, values, x):
    """A sparse matrix times a vector; rows are slices that the data bounds."""
    y = np.empty(len(indptr) - 1, dtype=values.dtype)
    for i in range(len(indptr) - 1):
        row = slice(indptr[i], indptr[i + 1])
        y[i] = values[row] @ x[indices[row]]
    return y


def csr_by_elements(indptr, indices, values, x):
    """The same with two loops and a running sum."""
    y = np.zeros(indptr.size - 1, values.dtype)
    for i in range(y.size):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += values[k] * x[indices[k]]
    return y


def covariance(data):
    """Of the columns, by loops over the upper triangle."""
    count, n = data.shape
    data = data - data.mean(axis=0)
    out = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            out[i, j] = out[j, i] = np.sum(data[:, i] * data[:, j]) / (count - 1.0)
    return out


def matrix_power(a, exponent):
    """Repeated squaring with an integer exponent, in exact arithmetic modulo a prime."""
    result = np.eye(a.shape[0], dtype=a.dtype)
    while exponent:
        if exponent & 1:
            result = result @ a % 10007
        a = a @ a % 10007
        exponent >>= 1
    return result


def dominant(n, rng):
    """A matrix whose diagonal outweighs the rest."""
    return rng.random((n, n)) + n * np.eye(n)


def positive(n, rng):
    """A symmetric positive definite matrix."""
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n)


def sparse(n, rng):
    """A matrix in compressed rows, one of them empty, and a vector."""
    counts = rng.integers(1, 4, n)
    counts[n // 2] = 0
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return indptr, rng.integers(0, n, indptr[-1]), rng.random(indptr[-1]), rng.random(n)


PROGRAMS = [
    (thomas, lambda n, rng: (rng.random(n - 1), rng.random(n) + 3, rng.random(n - 1), rng.random(n)), (3, 8, 20), 0),
    (
        cyclic_reduction,
        lambda n, rng: (rng.random(2**n - 1), rng.random(2**n - 1) + 3, rng.random(2**n - 1), rng.random(2**n - 1)),
        (2, 3, 5),
        0,
    ),
    (cholesky, lambda n, rng: (positive(n, rng),), (3, 5, 8), 0),
    (cholesky_by_columns, lambda n, rng: (positive(n, rng),), (3, 5, 8), 1e-13),
    (lu, lambda n, rng: (dominant(n, rng),), (3, 5, 8), 0),
    (lu_with_pivots, lambda n, rng: (rng.random((n, n)),), (3, 5, 8), 0),
    (gauss_jordan, lambda n, rng: (dominant(n, rng),), (3, 5, 8), 0),
    (bareiss, lambda n, rng: (rng.integers(-9, 9, (n, n)) * (np.arange(n) > 0),), (3, 4, 6), 0),
    (gram_schmidt, lambda n, rng: (rng.random((n + 2, n)),), (3, 5, 8), 1e-12),
    (modified_gram_schmidt, lambda n, rng: (rng.random((n + 2, n)),), (3, 5, 7), 1e-12),
    (householder, lambda n, rng: (rng.random((n + 1, n)),), (3, 5, 8), 1e-12),
    (forward_substitution, lambda n, rng: (dominant(n, rng), rng.random(n)), (3, 6, 12), 1e-13),
    (back_substitution, lambda n, rng: (dominant(n, rng), rng.random((n, 3))), (3, 6, 12), 0),
    (conjugate_gradient, lambda n, rng: (positive(n, rng), rng.random(n), 1e-3), (3, 6, 12), 1e-9),
    (jacobi_solver, lambda n, rng: (dominant(n, rng), rng.random(n), 5), (3, 6, 12), 1e-13),
    (gauss_seidel, lambda n, rng: (dominant(n, rng), rng.random(n), np.zeros(n), 2), (3, 6, 9), 1e-13),
    (power_iteration, lambda n, rng: (positive(n, rng), rng.random(n), 1e-4), (3, 6, 12), 1e-9),
    (jacobi_eigenvalues, lambda n, rng: (positive(n, rng), 1), (3, 4, 6), 1e-12),
    (csr_matvec, sparse, (4, 8, 16), 1e-14),
    (csr_by_elements, sparse, (4, 8, 16), 0),
    (covariance, lambda n, rng: (rng.random((2 * n, n)),), (3, 5, 8), 1e-13),
    (matrix_power, lambda n, rng: (rng.integers(0, 10007, (n, n)), 5 + 7 * n), (2, 4, 7), 0),
]
