"""Sharded programs for meshes of two members, with what NumPy makes of the whole arrays; for the dummy device and for GPUs."""

import numpy as np

from cinductor.distributed import (
    P,
    ShardedArray,
    all_gather,
    all_reduce,
    axis_index,
    axis_size,
    broadcast,
    halo_exchange,
    reduce_scatter,
    send_recv,
    shard_map,
)

RNG = np.random.default_rng(5)
X = RNG.normal(size=(12, 6))
V = RNG.normal(size=40)
W = RNG.normal(size=(6, 4))
LONG = RNG.normal(size=(48, 6))  # of which a border is a small part


def heat(u, steps):
    """Steps of a heat equation on this member's rows."""
    for _ in range(steps):
        v = halo_exchange(u, "x")
        u = v[1:-1] + 0.1 * (v[2:] + v[:-2] - 2 * v[1:-1])
    return u


def plain_heat(u, steps):
    for _ in range(steps):
        v = np.pad(u, ((1, 1), (0, 0)))
        u = v[1:-1] + 0.1 * (v[2:] + v[:-2] - 2 * v[1:-1])
    return u


def k_means(points, centers):
    """A step of k-means on this member's points."""
    own = (((points[:, None] - centers) ** 2).sum(2).argmin(1)[:, None] == np.arange(len(centers))).astype(points.dtype)
    sums, counts = all_reduce(own.T @ points, "x"), all_reduce(own.sum(0), "x")
    return sums / np.maximum(counts, 1)[:, None]


def plain_k_means(points, centers):
    own = (((points[:, None] - centers) ** 2).sum(2).argmin(1)[:, None] == np.arange(len(centers))).astype(points.dtype)
    return own.T @ points / np.maximum(own.sum(0), 1)[:, None]


def softmax(x):
    """Over the axis that is divided."""
    e = np.exp(x - all_reduce(x.max(), "x", "max"))
    return e / all_reduce(e.sum(), "x")


def conjugate_gradients(b):
    """Solves a tridiagonal system whose unknowns are divided, until the residual is small: a loop that data end."""
    x, r = np.zeros_like(b), b
    p, rr, count = r, all_reduce((r * r).sum(), "x"), 0
    while rr > 1e-20 and count < 100:
        v = halo_exchange(p, "x")
        ap = 3 * p - v[2:] - v[:-2]
        step = rr / all_reduce((p * ap).sum(), "x")
        x, r = x + step * p, r - step * ap
        new = all_reduce((r * r).sum(), "x")
        p, rr, count = r + new / rr * p, new, count + 1
    return x


def tridiagonal(b):
    return np.linalg.solve(3 * np.eye(len(b)) - np.eye(len(b), k=1) - np.eye(len(b), k=-1), b)


def beside(x, y):
    """Two collectives, and kernels that need neither."""
    total, z = all_reduce(np.exp(x), "x"), np.sin(y) * 2
    most, w = all_reduce(y, "x", "max"), np.cumsum(x, 0)
    return total + 1, z + w, most


def halves(x):
    return x.reshape(2, len(x) // 2, *x.shape[1:])


# name -> the function of a part, how arguments and results lie, whole arguments, the function of whole arrays
CASES = {
    "sum of everything": (lambda x: all_reduce(x.sum(), "x"), P("x"), P(), (X,), lambda x: x.sum()),
    "pointwise": (lambda x, k: np.tanh(x) * k + axis_size("x"), (P("x"), None), P("x"), (X, 3.0), lambda x, k: np.tanh(x) * k + 2),
    "columns": (lambda x: x + axis_index("x"), P(None, "x"), P(None, "x"), (X,), lambda x: x + np.arange(2).repeat(3)),
    **{
        f"{op} of {dtype}": (
            lambda x, op=op: all_reduce(x, "x", op),
            P("x"),
            P(),
            ((np.abs(X) * 4 + 1).astype(dtype),),
            lambda x, op=op: getattr(np, op)(halves(x), axis=0).astype(x.dtype),
        )
        for op, dtype in [("sum", "f4"), ("sum", "f8"), ("prod", "f8"), ("max", "f4"), ("min", "f8")]
    },
    "gather": (lambda x: all_gather(x * 2, "x"), P("x"), P(), (X,), lambda x: x * 2),
    "gather columns": (lambda x: all_gather(x, "x", axis=-1), P(None, "x"), P(), (X,), lambda x: x),
    "gather bools": (lambda x: all_gather(x > 0, "x"), P("x"), P(), (X,), lambda x: x > 0),
    "scatter": (lambda x: reduce_scatter(x, "x"), P("x"), P("x"), (X,), lambda x: halves(x).sum(0)),
    "scatter columns": (lambda x: reduce_scatter(x, "x", "max", axis=1), P("x"), P(None, "x"), (X,), lambda x: halves(x).max(0)),
    "broadcast": (lambda x: broadcast(x.T, "x", root=1), P("x"), P(), (X,), lambda x: halves(x)[1].T),
    "exchange": (lambda x: send_recv(x[::-1], "x", [(0, 1), (1, 0)]), P("x"), P("x"), (V,), lambda x: halves(x)[::-1, ::-1].ravel()),
    "halo": (lambda x: halo_exchange(x, "x", 2)[3:], P("x"), P("x"), (V,), lambda x: np.concatenate([x[1:22], x[21:], np.zeros(2)])),
    "periodic": (lambda x: halo_exchange(x, "x", periodic=True), P("x"), P("x"), (V,), lambda x: np.concatenate([x[-1:], x[:21], x[19:], x[:1]])),
    "heat equation": (heat, (P("x"), None), P("x"), (X, 4), plain_heat),
    "borders first": (heat, (P("x"), None), P("x"), (LONG, 4), plain_heat),
    "borders of the next iteration": (heat, (P("x"), None), P("x"), (LONG, 12), plain_heat),
    "k-means": (k_means, (P("x"), P()), P(), (X, X[:3] + 0.1), plain_k_means),
    "softmax": (softmax, P("x"), P("x"), (V,), lambda x: np.exp(x) / np.exp(x).sum()),
    "product of rows": (lambda x, w: x @ w, (P("x"), P()), P("x"), (X, W), np.matmul),
    "product of columns": (lambda x, w: all_reduce(x @ w, "x"), (P(None, "x"), P("x")), P(), (X, W), np.matmul),
    "conjugate gradients": (conjugate_gradients, P("x"), P("x"), (V,), tridiagonal),
    "beside kernels": (
        beside,
        P("x"),
        (P(), P("x"), P()),
        (X, X[::-1].copy()),
        lambda x, y: (np.exp(halves(x)).sum(0) + 1, np.sin(y) * 2 + np.cumsum(halves(x), 1).reshape(x.shape), halves(y).max(0)),
    ),
}


def check(mesh, name):
    """Raise AssertionError unless the sharded program of a name gives NumPy's result, twice."""
    fn, ins, outs, arguments, plain = CASES[name]
    sharded, want = shard_map(fn, mesh, ins, outs), plain(*arguments)
    for _ in range(2):
        got = sharded(*arguments)
        pairs = zip(got, want, strict=True) if type(got) is tuple else [(got, want)]
        for g, w in pairs:
            assert type(g) is ShardedArray and g.shape == np.shape(w) and g.dtype == np.asarray(w).dtype, (g, np.shape(w))
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-5 if g.dtype == np.float32 else 1e-9, atol=1e-12, err_msg=name)
