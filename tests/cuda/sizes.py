"""Functions by backend "cuda" with symbolic sizes, beside NumPy: one line each. `all`: large sizes too.

Each is compiled once and called at every size; a second capture would be a failure of its own.
"""

import sys
import warnings

import numpy as np

import cinductor


def loop_over_rows(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * i + x[0]
    return x


def triangle(x):
    n = len(x)
    s = x[:1].sum()
    for i in range(n):
        for j in range(i, n):
            s = s + x[j] * 0.5
    return s


def prefix(x):
    for i in range(1, len(x)):
        x[i] = x[i] + x[i - 1]
    return x


FUNCTIONS = {
    "pointwise": lambda x: np.maximum(x * 2 + 1, 0),
    "broadcast": lambda x: x[:, None] * x[None, :7],
    "sum": lambda x: x.sum(),
    "mean and spread": lambda x: (x - x.mean()) / np.sqrt((x * x).sum() + 1),
    "any": lambda x: (x > 3).any(),
    "rows": lambda x: np.stack([x, x * 2]).sum(axis=1),
    "columns": lambda x: np.stack([x, x * 2]).sum(axis=0),
    "reversed": lambda x: x[::-1] + x,
    "neighbours": lambda x: x[1:] - x[:-1],
    "concatenate": lambda x: np.concatenate([x, x[:3]]),
    "cumsum": lambda x: np.cumsum(x),
    "gather": lambda x: x[np.arange(len(x))[::-1]],
    "compress": lambda x: x[x > 0.5] * 2,
    "where": lambda x: np.flatnonzero(x > 0.5),
    "scatter": lambda x: np.bincount((np.arange(len(x)) % 7), weights=x, minlength=7),
    "sort by rank": lambda x: x[np.argsort(x)],
    "a branch": lambda x: np.exp(-x) if x.sum() > 3 else x * 2,
}
# Of two sizes: large enough for kernels made for classes of sizes, rows that are aligned and rows that are not.
PLANES = {
    "scaled": lambda x: x * 2 + 1,
    "broadcast in a plane": lambda x: x * x[0] + 1,
    "sums of rows": lambda x: x.sum(axis=1),
    "sums of columns": lambda x: x.sum(axis=0),
    "softmax": lambda x: softmax(x),
    "transposed": lambda x: x.T + 1,
    "half of each row": lambda x: x[:, ::2] - x[:, 1::2].mean(),
    "a view": lambda x: x.reshape(-1)[1:] * 3,
    "places": lambda x: x.argmax(axis=1) + x.argmin(),
}
SHAPES = (
    (5, 8),
    (300, 256),
    (301, 257),
    (304, 264),
    (40, 4096),
    (4096, 40),
    (70000, 2),
    (2, 70000),
    (0, 8),
    (1, 70000),
)
# On the emulator, where each of the 528 blocks of a sum takes its time.
FEW = ("pointwise", "sum", "neighbours", "cumsum", "gather", "scaled", "transposed")
LOOPS = {"loop over rows": loop_over_rows, "triangle": triangle, "prefix": prefix}


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def is_near(got, want):
    got, want = np.asarray(got), np.asarray(want)
    return (
        got.shape == want.shape
        and got.dtype == want.dtype
        and np.allclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True)
    )


def run(name, function, sizes):
    settings = {"device": "cuda", "options": {"offload": "always"}}
    fn = cinductor.compile(function, backend="cuda", dynamic=True, **settings)
    for n in sizes:
        x = (
            np.sin(np.arange(np.prod(n))).reshape(n)
            if isinstance(n, tuple)
            else np.linspace(0, 1, n)
        )
        try:
            want = function(x.copy())
        except (ValueError, IndexError):
            continue
        got = fn(x.copy())
        if not is_near(got, want):
            return f"fail {name} at {n}: {str(got)[:100]} instead of {str(want)[:100]}"
    captures = cinductor.stats()["functions"][fn.__name__]["captures"]
    cinductor.reset() if hasattr(cinductor, "reset") else None
    return f"ok {name} captures {captures}"


def main():
    warnings.simplefilter("ignore")
    every = len(sys.argv) > 1
    sizes = (64, 7, 2, 1, 0, 1000, 1_000_000) if every else (64, 0, 1000)
    shapes = SHAPES if every else SHAPES[:1] + SHAPES[-2:-1]
    with np.errstate(all="ignore"):
        for name, function in FUNCTIONS.items():
            if every or name in FEW:
                print(run(name, function, sizes), flush=True)
        for name, function in PLANES.items():
            if every or name in FEW:
                print(run(name, function, shapes), flush=True)
        for name, function in LOOPS.items():
            print(run(name, function, sizes[:6]), flush=True)


if __name__ == "__main__":
    main()
