"""Runs functions with symbolic sizes with backend "cuda" and compares them with NumPy; prints one line for each.

Each function is compiled once and called at every size; a second capture counts as a failure. `all` adds large
sizes.
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


def exchanged(x):
    """A point needs only its own element, of two arrays that change places."""
    a, b = x * 2, x + 1
    for i in range(3):
        for j in range(2):
            a, b = b * 0.5 - a, a + i * j
        a = np.where(a < b, a, x)
    return a * b


def in_place(x):
    """The second loop reads other points, the first does not."""
    for i in range(5):
        x += i * 0.25
        x[x > 0.5] -= 0.5
    for _ in range(2):
        x[:] = x[::-1] + 1
    return x


def shrinking(x):
    """Sizes that a loop carries; where they are known, from the iteration's number."""
    for _ in range(3):
        x = x[1:-1] * 0.5 + x[2:]
    for _ in range(2):
        x = np.concatenate([x, x[:1], x])
    return x * x.shape[0]


# The function, and whether the emulator runs it: a sum has 528 blocks, which take long.
FUNCTIONS = {
    "pointwise": (True, lambda x: np.maximum(x * 2 + 1, 0)),
    "broadcast": (False, lambda x: x[:, None] * x[None, :7]),
    "sum": (True, lambda x: x.sum()),
    "mean and spread": (False, lambda x: (x - x.mean()) / np.sqrt((x * x).sum() + 1)),
    "any": (False, lambda x: (x > 3).any()),
    "rows": (False, lambda x: np.stack([x, x * 2]).sum(axis=1)),
    "columns": (False, lambda x: np.stack([x, x * 2]).sum(axis=0)),
    "reversed": (False, lambda x: x[::-1] + x),
    "neighbours": (True, lambda x: x[1:] - x[:-1]),
    "concatenate": (False, lambda x: np.concatenate([x, x[:3]])),
    "cumsum": (True, lambda x: np.cumsum(x)),
    "gather": (True, lambda x: x[np.arange(len(x))[::-1]]),
    "compress": (False, lambda x: x[x > 0.5] * 2),
    "where": (False, lambda x: np.flatnonzero(x > 0.5)),
    "scatter": (False, lambda x: np.bincount((np.arange(len(x)) % 7), weights=x, minlength=7)),
    "counts": (True, lambda x: np.bincount(np.arange(len(x)) % 7, minlength=7)),
    "sort by rank": (False, lambda x: x[np.argsort(x)]),
    "a branch": (False, lambda x: np.exp(-x) if x.sum() > 3 else x * 2),
}
# Two sizes: large enough for variants by size class, with aligned and unaligned rows.
PLANES = {
    "scaled": (True, lambda x: x * 2 + 1),
    "broadcast in a plane": (False, lambda x: x * x[0] + 1),
    "sums of rows": (False, lambda x: x.sum(axis=1)),
    "sums of columns": (False, lambda x: x.sum(axis=0)),
    "softmax": (False, lambda x: softmax(x)),
    "transposed": (True, lambda x: x.T + 1),
    "half of each row": (False, lambda x: x[:, ::2] - x[:, 1::2].mean()),
    "a view": (False, lambda x: x.reshape(-1)[1:] * 3),
    "places": (False, lambda x: x.argmax(axis=1) + x.argmin()),
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
LOOPS = {"loop over rows": loop_over_rows, "triangle": triangle, "prefix": prefix, "exchanged": exchanged, "in place": in_place, "shrinking": shrinking}


def softmax(x, axis=1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


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


def run_arrays(name, function, sizes):
    """Arrays of the device, which calls write: no call may hand their addresses to NumPy, whatever the size, and where float
    flags are exceptions.
    """
    fn = cinductor.compile(function)
    for n in sizes:
        for flags in ("ignore", "raise"):
            x = np.linspace(0, 1, n)
            given = cinductor.to_device(x)
            try:
                want = function(x)
            except (ValueError, IndexError):
                continue
            with np.errstate(all=flags):
                got = fn(given)
            got = got.numpy() if isinstance(got, cinductor.Array) else got
            if not is_near(got, want) or not is_near(given.numpy(), x):
                return f"fail {name} on arrays at {n}, {flags}: {str(got)[:100]} instead of {str(want)[:100]}"
    return f"ok {name} on arrays"


def spread(x, axis=1):
    return (x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True)


def columns(function):
    """Of a transposed array, whose columns are the rows of `x`."""
    return lambda x: function(np.ascontiguousarray(x.T), 0).T


def run_online(name, function, shape):
    """Two reductions of a row in one pass, with NaN and infinities among the values."""
    x = np.sin(np.arange(np.prod(shape)) * 0.37).reshape(shape) + np.arange(shape[0])[:, None] * 1e3
    x[1, ::3], x[2, 5] = -np.inf, np.nan
    options = {"offload": "always", "choices": "online_bytes=1,online_exp_bytes=1"}
    want = function(x.copy())
    for dynamic in (False, True):  # a row of symbolic length is split
        fn = cinductor.compile(function, backend="cuda", device="cuda", dynamic=dynamic, options=options)
        if not is_near(got := fn(x.copy()), want):
            return f"fail {name} online, {dynamic=}: {str(got)[:100]}"
    return f"ok {name} online"


# Split scans: the ufunc, axis, shape, thresholds, and other lengths of the same rows. "" keeps the GPU's thresholds,
# for long rows.
SHORT = "scan_row_chunk=64, scan_column_chunk=16, scan_chunks=2"
PARTS = (
    (np.add, 1, (2, 33_000), "", ()),
    (np.add, 0, (2100, 3), "", ()),
    (np.add, 0, (100, 70), SHORT, ()),
    (np.add, 1, (100, 40, 3), "scan_column_chunk=4, scan_chunks=2", ()),
    (np.maximum, 0, (33, 3), SHORT, (0, 15, 257)),
    (np.add, 1, (2, 130), SHORT, (0, 63, 700)),
)


def run_parts(scan, axis, shape, choices, lengths):
    """Split scans of few long rows, with and without a remainder after the last full chunk, for varying lengths."""

    def function(x):
        return scan.accumulate(x, axis=axis)

    settings = {"device": "cuda", "options": {"offload": "always", "choices": choices}}
    fn = cinductor.compile(function, backend="cuda", **settings)
    for length in (shape[axis], *lengths):
        sizes = (*shape[:axis], length, *shape[axis + 1 :])
        x = np.arange(np.prod(sizes)) * 7 % 11 - 5 + np.arange(np.prod(sizes)) / 50
        x = x.reshape(sizes)
        for k in range(x.ndim):
            mark = cinductor.mark_dynamic if lengths and k == axis else cinductor.mark_static
            mark(x, k)
        if not is_near(got := fn(x), want := scan.accumulate(x, axis=axis)):
            return f"fail scan in parts {sizes}: {str(got)[:100]} instead of {str(want)[:100]}"
    stats = cinductor.stats()["functions"][fn.__qualname__]
    if stats["captures"] > 1:
        return f"fail scan in parts {shape}: {stats['captures']} captures"
    if "  k2: " not in (text := cinductor.explain(fn, x).kernels):
        return f"fail scan in parts {shape}: {text}"
    return f"ok scan in parts {shape}"


def main():
    warnings.simplefilter("ignore")
    every = len(sys.argv) > 1
    sizes = (64, 7, 2, 1, 0, 1000, 1_000_000) if every else (64, 0, 1000)
    shapes = SHAPES if every else SHAPES[:1] + SHAPES[-2:-1]
    with np.errstate(all="ignore"):
        for functions, chosen in ((FUNCTIONS, sizes), (PLANES, shapes)):
            for name, (is_quick, function) in functions.items():
                if every or is_quick:
                    print(run(name, function, chosen), flush=True)
        for name, function in (("softmax", softmax), ("spread", spread)):
            print(run_online(name, function, (4, 70_000 if every else 3000)), flush=True)
            print(run_online(f"{name} of columns", columns(function), (70, 3000 if every else 290)), flush=True)
        for case in PARTS:
            print(run_parts(*case), flush=True)
        for name, function in LOOPS.items():
            print(run(name, function, sizes[:6]), flush=True)
            print(run_arrays(name, function, (64, 7, 2, 1, 0, 1000) if every else (64, 1, 0, 7)), flush=True)


if __name__ == "__main__":
    main()
