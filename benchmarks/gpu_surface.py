"""Times forty-seven short NumPy programs on GPU arrays with cinductor and CuPy, from the same source.

    python benchmarks/gpu_surface.py [NAME ...]

A figure is the median of batches of calls between two waits for the device; the last column is CuPy's time divided
by cinductor's. Results are compared with NumPy's: `ties` if equal elements come in another order.
"""

import sys
import time

import cupy
import numpy as np

import cinductor

RANDOM = np.random.default_rng(0)
N = 1 << 24
PROGRAMS = {}


def floats(*shape):
    return RANDOM.random(shape, dtype=np.float32) + np.float32(0.1)


def below(n, *shape):
    return RANDOM.integers(0, n, shape)


def program(make):
    """Registers a function with the function that makes its arguments."""

    def enter(fn):
        PROGRAMS[fn.__name__] = fn, make
        return fn

    return enter


@program(lambda: [floats(4096, 4096)])
def cumsum0(x):
    return np.cumsum(x, axis=0)


@program(lambda: [floats(4096, 4096)])
def softmax0(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


@program(lambda: [floats(4096, 4096)])
def argmax1(x):
    return np.argmax(x, axis=1)


@program(lambda: [floats(4096, 4096)])
def argmax_flat(x):
    return np.argmax(x)


@program(lambda: [floats(4096, 4096)])
def var0(x):
    return x.var(axis=0)


@program(lambda: [floats(4096, 4096)])
def std_all(x):
    return x.std()


@program(lambda: [floats(N)])
def sort(x):
    return np.sort(x)


@program(lambda: [floats(4096, 1024)])
def sort_rows(x):
    return np.sort(x, axis=1)


@program(lambda: [floats(1 << 22)])
def argsort(x):
    return np.argsort(x)


@program(lambda: [below(1000, 1 << 22)])
def unique(x):
    return np.unique(x)


@program(lambda: [floats(4096, 4096)])
def median0(x):
    return np.median(x, axis=0)


@program(lambda: [floats(N)])
def nonzero(x):
    return np.nonzero(x > 0.9)[0]


@program(lambda: [floats(N)])
def mask_assign(x):
    y = x.copy()
    y[y < 0.5] = 0
    return y


@program(lambda: [floats(N)])
def diff(x):
    return np.diff(x)


@program(lambda: [floats(4096, 4096)])
def roll2(x):
    return np.roll(x, 1, axis=0) + np.roll(x, -1, axis=1)


@program(lambda: [floats(4096, 4096)])
def pad(x):
    return np.pad(x, 1)


@program(lambda: [floats(N)] * 1)
def concat(x):
    return np.concatenate([x, x * 2, x + 1])


@program(lambda: [floats(4096, 4096)])
def flip_tril(x):
    return np.tril(x[::-1, ::-1])


@program(lambda: [floats(2048, 2048), floats(2048, 2048)])
def matmul(a, b):
    return a @ b


@program(lambda: [floats(64, 256, 256), floats(64, 256, 256)])
def bmm(a, b):
    return a @ b


@program(lambda: [floats(2048, 2048), floats(2048)])
def matvec(a, b):
    return a @ b


@program(lambda: [floats(512, 512, 64), floats(64, 512)])
def einsum(a, b):
    return np.einsum("ijk,kl->ijl", a, b)


@program(lambda: [floats(1 << 20)])
def fft(x):
    return np.fft.fft(x)


@program(lambda: [floats(1024, 1024)])
def solve(a):
    return np.linalg.solve(a + np.eye(1024, dtype="f4") * 1024, a[0])


@program(lambda: [floats(N), below(N, 1 << 22)])
def scatter_set(x, i):
    y = x.copy()
    y[i] = 0.0
    return y


@program(lambda: [below(1000, N)])
def histogram(x):
    return np.bincount(x, minlength=1000)


@program(lambda: [below(1000, 1 << 22), floats(1 << 22)])
def wbincount(i, w):
    return np.bincount(i, weights=w, minlength=1000)


@program(lambda: [floats(1 << 16), below(1 << 16, 1 << 20), floats(1 << 20)])
def add_at(x, i, w):
    y = x.copy()
    np.add.at(y, i, w)
    return y


@program(lambda: [np.sort(floats(1 << 20)), floats(1 << 20)])
def searchsorted(a, v):
    return np.searchsorted(a, v)


@program(lambda: [floats(1024, 1024)])
def life(x):
    g = (x > 0.5).astype(np.int32)
    for _ in range(20):
        n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
        g = ((n == 3) | ((g == 1) & (n == 2))).astype(np.int32)
    return g


@program(lambda: [floats(1024, 1024)])
def heat(u):
    u = u.copy()
    for _ in range(50):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return u


@program(lambda: [(floats(512, 512) * 2 - 1.5) + 1j * (floats(512, 512) * 2 - 1)])
def mandel(c):
    z = np.zeros_like(c)
    n = np.zeros(c.shape, np.int32)
    for _ in range(50):
        m = np.abs(z) < 2
        z = np.where(m, z * z + c, z)
        n += m
    return n


@program(lambda: [floats(2048, 3)])
def nbody(p):
    d = p[:, None, :] - p[None, :, :]
    r = (d**2).sum(-1) + 1e-3
    return (d * (r**-1.5)[:, :, None]).sum(1)


@program(lambda: [floats(65536, 16), floats(64, 16)])
def kmeans(x, c):
    d = ((x[:, None, :] - c[None]) ** 2).sum(-1)
    return d.argmin(1)


@program(lambda: [floats(4096, 4096)])
def logsumexp(x):
    m = x.max(1, keepdims=True)
    return np.log(np.exp(x - m).sum(1)) + m[:, 0]


@program(lambda: [floats(N)])
def polyval(x):
    return np.polyval([1.0, 2.0, 3.0, 4.0, 5.0], x)


@program(lambda: [floats(4096, 1024)])
def cummax(x):
    return np.maximum.accumulate(x, axis=1)


@program(lambda: [floats(4096, 4096)])
def outer_sum(x):
    return (x.sum(0)[None] * x.sum(1)[:, None]) / x.sum()


@program(lambda: [floats(4096, 4096), below(4096, 4096, 128)])
def take_along(x, i):
    return np.take_along_axis(x, i, axis=1)


@program(lambda: [floats(4096, 1025)])
def windows(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 9, axis=1)
    return w.mean(-1)


@program(lambda: [floats(1 << 20), floats(65)])
def convolve(x, k):
    return np.convolve(x, k)


@program(lambda: [floats(4096, 4096)])
def percentile(x):
    return np.percentile(x, 90, axis=1)


@program(lambda: [floats(N)])
def running(x):
    s = np.cumsum(x.astype("f8"))
    return (s[100:] - s[:-100]) / 100


@program(lambda: [floats(512, 512)])
def power_iter(a):
    v = np.ones(512, np.float32)
    for _ in range(50):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v


@program(lambda: [floats(N)])
def count_where(x):
    return np.count_nonzero(x > 0.5), x[x > 0.5].sum()


@program(lambda: [floats(256, 256, 256)])
def grad3(x):
    return np.gradient(x, axis=0) + np.gradient(x, axis=1) + np.gradient(x, axis=2)


@program(lambda: [floats(4096, 4096)])
def norm_rows(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@program(lambda: [floats(8192)])
def collatz(x):
    n = (x * 1000).astype(np.int64) + 1
    s = np.zeros_like(n)
    while (n > 1).any():
        s += n > 1
        n = np.where(n > 1, np.where(n % 2 == 0, n // 2, 3 * n + 1), n)
    return s


def measure(call, wait):
    """Milliseconds of one call."""
    for _ in range(2):
        call()
        wait()
    began = time.perf_counter()
    call()
    wait()
    calls = max(1, min(50, int(0.03 / max(time.perf_counter() - began, 1e-6))))
    found = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        found.append((time.perf_counter() - began) / calls)
    return 1e3 * sorted(found)[1]


def on_host(value):
    return [
        v.numpy() if hasattr(v, "numpy") else v
        for v in (value if isinstance(value, tuple) else (value,))
    ]


def is_right(got, want):
    pairs = zip(on_host(got), on_host(want), strict=True)
    return all(np.allclose(a, b, rtol=2e-3, atol=1e-3) for a, b in pairs)


def own(fn, arrays):
    compiled, there = cinductor.compile(fn), [cinductor.to_device(a) for a in arrays]
    right = is_right(compiled(*there), fn(*arrays))
    return measure(lambda: compiled(*there), cinductor.synchronize), right


def peer(fn, arrays):
    there = [cupy.asarray(a) for a in arrays]
    return measure(lambda: fn(*there), cupy.cuda.get_current_stream().synchronize)


def main():
    ratios = []
    print("| program | cinductor ms | CuPy ms | CuPy / cinductor |")
    print("|---|---|---|---|")
    for name in sys.argv[1:] or PROGRAMS:
        fn, make = PROGRAMS[name]
        arrays = make()
        ms, right = own(fn, arrays)
        try:
            other = peer(fn, arrays)
        except (TypeError, NotImplementedError) as error:  # CuPy does not support this call
            print(f"| {name} | {ms:.3f} | {type(error).__name__} | |", flush=True)
            continue
        ratios.append(other / ms)
        note = "" if right else " (ties)" if name == "argsort" else " WRONG"
        print(f"| {name} | {ms:.3f}{note} | {other:.3f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\n{len(ratios)} programs, geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
