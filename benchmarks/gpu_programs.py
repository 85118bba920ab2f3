"""The programs of the GPU benchmark: plain NumPy functions, each with its inputs, sizes for one large GPU.

`PROGRAMS` maps a name to a `Program`. Every framework runs the same source; only the module behind the name `np`
changes (`bound_to`).
"""

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import programs

FLAT, IMAGE, SQUARE = (1 << 26,), (16384, 8192), (8192, 8192)
HALF, SINGLE, DOUBLE = "float16", "float32", "float64"


class Program(NamedTuple):
    """A function and its inputs.

    `make(rng, most)` returns the arguments; no axis is longer than `most`. `work` is the number of floating-point
    operations of matrix products, 0 for programs limited by memory. `writes`: the function changes its first argument.
    `unequal` is the share of integer results that may differ, because they depend on how floats are rounded.
    """

    function: Callable[..., Any]
    make: Callable[..., list[Any]]
    work: float
    writes: bool
    unequal: float
    skips: Sequence[str]


PROGRAMS: dict[str, Program] = {}


def floats(*shape: int, dtype: str = SINGLE, low: float = 0.1):
    """Makes values in [low, low + 1)."""
    return lambda rng, most: (rng.random([min(n, most) for n in shape], dtype=np.float32) + np.float32(low)).astype(dtype, copy=False)


def below(bound: int, *shape: int):
    """Makes integers in [0, bound)."""
    return lambda rng, most: rng.integers(0, min(bound, most), [min(n, most) for n in shape])


def program(*makers, work=0.0, writes=False, unequal=0.0, skips=()):
    """Registers a function. Frameworks in `skips` do not compile it, or need minutes."""

    def enter(function):
        def make(rng, most=1 << 62):
            return [maker(rng, most) for maker in makers]

        PROGRAMS[function.__name__] = Program(function, make, work, writes, unequal, skips)
        return function

    return enter


def bound_to(function, module):
    """Return the function with `np` bound to another array module; the code object stays."""
    if module is np:
        return function
    names = {**function.__globals__, "np": module}
    for name, value in function.__globals__.items():
        if name.startswith("part_"):
            names[name] = types.FunctionType(value.__code__, names, name)
    return types.FunctionType(function.__code__, names, function.__name__)


# The anchor programs of programs.py, at the sizes of a GPU.
for key, makers, operations in (
    ("fma_chain", [floats(*FLAT)] * 3, 0),
    ("black_scholes", [floats(*FLAT)] * 5, 0),
    ("softmax", [floats(*IMAGE)], 0),
    ("layernorm_gelu", [floats(*IMAGE), floats(IMAGE[1]), floats(IMAGE[1])], 0),
    ("sum_sq", [floats(*FLAT)], 0),
    ("col_norm", [floats(*IMAGE)], 0),
    ("rbf", [floats(2048, 64)] * 2, 3 * 2048 * 2048 * 64),
    ("jacobi", [floats(*IMAGE)], 0),
    ("mlp", [floats(4096, 4096), floats(4096, 16384), floats(16384), floats(16384, 4096), floats(4096)], 4 * 4096 * 4096 * 16384),
    ("attention", [floats(64, 512, 64)] * 3, 4 * 64 * 512 * 512 * 64),
    ("tiny", [floats(8)] * 2, 0),
):
    program(*makers, work=operations)(getattr(programs, key))


# Products.


@program(floats(4096, 4096), floats(4096, 4096), floats(4096), work=2 * 4096**3)
def product_bias_relu(x, w, b):
    return np.maximum(x @ w + b, 0)


@program(floats(4096, 1024), floats(1024, 4096), floats(4096), floats(4096, 4096), work=2 * 4096 * 4096 * 1024)
def product_gelu_residual(x, w, b, r):
    y = x @ w + b
    return r + 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


@program(floats(128, 512, 512), floats(128, 512, 512), work=2 * 128 * 512**3)
def batched_product(a, b):
    return a @ b


@program(floats(8192, 4096, dtype=HALF, low=-0.5), floats(4096, 4096, dtype=HALF, low=-0.5), work=2 * 8192 * 4096 * 4096)
def half_product(a, b):
    return a @ b


@program(
    floats(8192, 2048, dtype=HALF, low=-0.5),
    floats(2048, 4096, dtype=HALF, low=-0.5),
    floats(4096, dtype=HALF, low=-0.5),
    floats(8192, 4096, dtype=HALF, low=-0.5),
    work=2 * 8192 * 4096 * 2048,
)
def half_product_gelu(x, w, b, r):
    y = x @ w + b
    return r + np.float16(0.5) * y * (1 + np.tanh(np.float16(0.798) * (y + np.float16(0.0447) * y * y * y)))


@program(floats(*IMAGE), floats(IMAGE[1]))
def matrix_vector(a, x):
    return a @ x


@program(floats(*IMAGE), floats(IMAGE[0]))
def vector_matrix(a, x):
    return x @ a


@program(floats(4096, 2048), work=2 * 4096 * 2048**2)
def gram(x):
    return x.T @ x


@program(floats(64, 512, 512), floats(64, 512, 512), work=2 * 64 * 512**3)
def batched_einsum(a, b):
    return np.einsum("bik,bjk->bij", a, b)


@program(floats(512, 512, 64), floats(64, 512), work=2 * 512 * 512 * 64 * 512)
def last_axis_einsum(a, b):
    return np.einsum("ijk,kl->ijl", a, b)


def counted(n: int):
    """0, 1, 2, ...: torch would make these in the host's memory."""
    return lambda rng, most: np.arange(min(n, most))


def part_attention(q, k, v, i, scale):
    s = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
    s = np.where(i[:, None] >= i[None, :], s, -np.inf)
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return np.matmul(e / np.sum(e, axis=-1, keepdims=True), v)


@program(*[floats(32, 1024, 64)] * 3, counted(1024), work=4 * 32 * 1024 * 1024 * 64)
def causal_attention(q, k, v, i):
    return part_attention(q, k, v, i, np.float32(0.125))


@program(*[floats(16, 4096, 64, dtype=HALF, low=-0.5)] * 3, counted(4096), work=2 * 16 * 4096 * 4096 * 64)
def half_causal_attention(q, k, v, i):
    return part_attention(q, k, v, i, np.float16(0.125))


@program(floats(512, 512), floats(512), work=50 * 2 * 512 * 512)
def power_iteration(a, v):
    for _ in range(50):
        v = a @ v
        v = v / np.sqrt((v * v).sum())
    return v


# Data movement.


@program(floats(*SQUARE), floats(*SQUARE))
def transpose_add(x, y):
    return x.T + y


@program(floats(256, 512, 512))
def permute(x):
    return np.transpose(x, (2, 0, 1)) * 2


@program(floats(*SQUARE))
def roll(x):
    return np.roll(x, 1, axis=0) + np.roll(x, -1, axis=1)


@program(floats(8192, 8191))
def pad(x):
    return np.pad(x, 1)


@program(floats(1 << 24))
def concatenate(x):
    return np.concatenate([x, x * 2, x + 1])


@program(floats(*SQUARE))
def triangle(x):
    return np.tril(x[::-1, ::-1])


@program(floats(65536, 512), below(65536, 131072))
def embedding(table, i):
    return table[i] * 2


@program(floats(*FLAT), below(FLAT[0], 1 << 24))
def gather(x, i):
    return x[i] + 1


@program(floats(4096, 4096), below(4096, 4096, 512))
def take_along(x, i):
    return np.take_along_axis(x, i, axis=1)


@program(floats(*FLAT))
def compress(x):
    return x[x > 0.5] * 2


@program(floats(*FLAT))
def assign_by_mask(x):
    y = x.copy()
    y[y < 0.5] = 0
    return y


# Reductions and norms.


@program(floats(*IMAGE))
def column_sums(x):
    return x.sum(axis=0)


@program(floats(*IMAGE))
def row_variance(x):
    return x.var(axis=1)


@program(floats(*IMAGE))
def column_statistics(x):
    return x.mean(axis=0), x.std(axis=0)


@program(floats(*IMAGE))
def log_sum_exp(x):
    m = x.max(axis=1, keepdims=True)
    return np.log(np.exp(x - m).sum(axis=1)) + m[:, 0]


@program(floats(*IMAGE))
def argmax_rows(x):
    return x.argmax(axis=1)


@program(floats(*SQUARE))
def softmax_columns(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


@program(floats(*SQUARE))
def unit_rows(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@program(floats(*SQUARE))
def outer_sums(x):
    return x.sum(axis=0)[None] * x.sum(axis=1)[:, None] / x.sum()


@program(floats(8192, 4096, dtype=HALF), floats(4096, dtype=HALF), floats(4096, dtype=HALF))
def half_layer_norm(x, g, b):
    y = x.astype(np.float32)
    m = y.mean(axis=-1, keepdims=True)
    v = ((y - m) ** 2).mean(axis=-1, keepdims=True)
    return ((y - m) / np.sqrt(v + 1e-5) * g + b).astype(np.float16)


@program(floats(8192, 8192), below(8192, 8192))
def cross_entropy(x, label):
    m = x.max(axis=1, keepdims=True)
    s = np.log(np.exp(x - m).sum(axis=1)) + m[:, 0]
    return (s - x[np.arange(x.shape[0]), label]).mean()


@program(floats(*FLAT))
def any_hit(x):
    return (x > 2).any()


@program(floats(*FLAT))
def polynomial(x):
    return (((x + 2) * x + 3) * x + 4) * x + 5


# Scans, sorts, histograms.


@program(floats(*SQUARE))
def cumsum_rows(x):
    return np.cumsum(x, axis=1)


@program(below(9, *FLAT))
def cumsum_flat(x):
    return np.cumsum(x)


@program(floats(4096, 4096))
def cumsum_columns(x):
    return np.cumsum(x, axis=0)


@program(floats(4096, 4096), skips=("torch",))
def cummax_rows(x):
    return np.maximum.accumulate(x, axis=1)


@program(floats(4096, 4096))
def sort_rows(x):
    return np.sort(x, axis=1)


@program(floats(1 << 24))
def sort_flat(x):
    return np.sort(x)


@program(floats(2048, 4096))
def median_rows(x):
    return np.median(x, axis=1)


@program(below(1024, 1 << 24))
def bincount(i):
    return np.bincount(i, minlength=1024)


@program(below(1024, 1 << 24), floats(1 << 24), skips=("torch",))
def weighted_bincount(i, w):
    return np.bincount(i, weights=w, minlength=1024)


@program(lambda rng, most: np.sort(rng.random(min(most, 1 << 20), dtype=np.float32)), floats(1 << 22, low=0))
def searchsorted(a, v):
    return np.searchsorted(a, v)


@program(floats(1 << 16), below(1 << 16, 1 << 20), floats(1 << 20), skips=("torch", "jax"))
def add_at(x, i, w):
    y = x.copy()
    np.add.at(y, i, w)
    return y


# Stencils and loops.


def part_heat(u):
    return u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


@program(floats(4096, 4096), writes=True, skips=("jax",))
def heat_in_place(u):
    for _ in range(40):
        u[1:-1, 1:-1] = part_heat(u)
    return u


@program(floats(192, 192, 192), writes=True, skips=("jax",))
def heat_3d_in_place(u):
    for _ in range(20):
        u[1:-1, 1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1, 1:-1]
            + u[:-2, 1:-1, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:]
            + u[1:-1, 1:-1, :-2]
            - 6 * u[1:-1, 1:-1, 1:-1]
        )
    return u


@program(floats(*SQUARE))
def window_sum(x):
    y = np.zeros_like(x[1:-1, 1:-1])
    for i in range(3):
        for j in range(3):
            y += x[i : x.shape[0] - 2 + i, j : x.shape[1] - 2 + j]
    return y


@program(floats(4096, 4096))
def window_mean(x):
    return np.lib.stride_tricks.sliding_window_view(x, 9, axis=1).mean(axis=-1)


@program(floats(384, 384, 384))
def gradient_3d(x):
    return np.gradient(x, axis=0) + np.gradient(x, axis=1) + np.gradient(x, axis=2)


@program(floats(2048, 2048), skips=("jax",))
def life(x):
    g = (x > 0.6).astype(np.int32)
    for _ in range(20):
        n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
        g = ((n == 3) | ((g == 1) & (n == 2))).astype(np.int32)
    return g


def plane(rng, most):
    shape = [min(n, most) for n in (2048, 2048)]
    return (rng.random(shape) * 3 - 2 + 1j * (rng.random(shape) * 2 - 1)).astype(np.complex64)


@program(plane, unequal=1e-3, skips=("torch",))
def mandelbrot(c):
    z = np.zeros_like(c)
    n = np.zeros(c.shape, np.int32)
    for _ in range(50):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = np.where(inside, z * z + c, z)
        n = n + inside
    return n


@program(floats(8192, 3), floats(8192))
def n_body(p, m):
    d = p[None, :, :] - p[:, None, :]
    r = (d * d).sum(axis=-1) + np.float32(1e-3)
    return (d * (m * r**-1.5)[:, :, None]).sum(axis=1)


@program(floats(65536, 32), floats(256, 32), work=3 * 65536 * 256 * 32, unequal=1e-3)
def k_means(x, c):
    return ((x[:, None, :] - c[None, :, :]) ** 2).sum(axis=-1).argmin(axis=1)


# Transforms, convolutions, linear algebra.


@program(floats(4096, 4096))
def rfft_power(x):
    return np.abs(np.fft.rfft(x, axis=1)) ** 2


@program(floats(1 << 22))
def fft_flat(x):
    return np.fft.fft(x)


@program(floats(1 << 22), floats(65))
def convolve(x, k):
    return np.convolve(x, k)


def dominant(rng, most):
    n = min(2048, most)
    return rng.random((n, n), dtype=np.float32) + np.eye(n, dtype=np.float32) * n


@program(dominant, floats(2048), work=2 / 3 * 2048**3)
def solve(a, b):
    return np.linalg.solve(a, b)
