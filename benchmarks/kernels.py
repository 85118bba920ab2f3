"""Times kernels of scans, compressions, scatters, transposes and products on the CPU, with NumPy and, if installed,
Numba.

    python benchmarks/kernels.py [--only scan,product] [--seconds 1.0] [--scale 1.0] [--options templates=always]

The calls alternate in one process, and medians are compared. Prints a table of NumPy / cinductor, and Numba /
cinductor; `asked` is the target for two threads. --scale makes arrays smaller. Products are measured with
numerics="close", where cinductor may use its own kernels. --work counts CPU time instead of wall time, for a
machine under load: two threads that share work evenly then take twice the wall time.
"""

import argparse
import statistics
import time

import numpy as np

import cinductor

try:
    import numba
except ImportError:
    numba = None


def add_at(counts, where, what):
    np.add.at(counts, where, what)
    return counts


def loops():
    """Loops for Numba, where it does not compile NumPy's expression."""

    @numba.njit(parallel=True)
    def row_scan(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            run = x.dtype.type(0)
            for j in range(x.shape[1]):
                run += x[i, j]
                out[i, j] = run
        return out

    @numba.njit
    def flat_scan(x):
        return np.cumsum(x)

    @numba.njit
    def pack(x):
        return x[x > 0.5] * 2

    @numba.njit
    def weighted(where, what):
        out = np.zeros(1000)
        for k in range(where.size):
            out[where[k]] += what[k]
        return out

    @numba.njit(parallel=True)
    def turned(x):
        out = np.empty((x.shape[1], x.shape[0]), x.dtype)
        for i in numba.prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = x[j, i]
        return out

    @numba.njit(parallel=True)
    def turned_sum(x, y):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = x[i, j] + y[j, i]
        return out

    return {
        "row_scan_f64": row_scan,
        "row_scan_f32": row_scan,
        "row_scan_i64": row_scan,
        "flat_scan_i64": flat_scan,
        "flat_scan_i32": flat_scan,
        "pack": pack,
        "weighted_bincount": weighted,
        "transpose": turned,
        "transposed_sum": turned_sum,
    }


def cases(scale):
    """Name -> (target as a fraction of NumPy's time, function, arguments, numerics)."""
    rng = np.random.default_rng(0)
    side, long = int(4096 * scale), int((1 << 24) * scale)
    f64, half = rng.standard_normal((side, side)), rng.standard_normal((side // 2, side // 2))
    flat, bins = rng.random(long), rng.integers(0, 1000, long)
    weights = rng.random(long)
    counts, some = np.zeros(1000), (bins[: long // 4], weights[: long // 4])
    found = {
        "row_scan_f64": (6, lambda x: np.cumsum(x, axis=1), (f64,)),
        "row_scan_f32": (6, lambda x: np.cumsum(x, axis=1), (f64.astype("f4"),)),
        "row_scan_i64": (6, lambda x: np.cumsum(x, axis=1), ((100 * f64).astype("i8"),)),
        "flat_scan_i64": (2.5, lambda x: np.cumsum(x), (bins,)),
        "flat_scan_i32": (2.5, lambda x: np.cumsum(x, dtype="i4"), (bins.astype("i4"),)),
        "pack": (6, lambda x: x[x > 0.5] * 2, (flat,)),
        "weighted_bincount": (3.5, lambda w, x: np.bincount(w, x, minlength=1000), (bins, weights)),
        "add_at": (3, add_at, (counts, *some)),
        "transpose": (3, lambda x: x.T.copy(), (f64,)),
        "transposed_sum": (6, lambda a, y: a + y.T, (half, half.copy())),
        "both_sums": (3, lambda x: (x.sum(0), x.sum(1)), (f64,)),
        "argmax_rows_f32": (1, lambda x: x.argmax(axis=1), (f64.astype("f4"),)),
        "argmax_flat_f32": (1, lambda x: x.argmax(), (flat.astype("f4"),)),
    }
    return {name: (*row, "numpy") for name, row in found.items()} | products(rng)


def layer(x, w, b):
    return np.maximum(x @ w + b, 0)


def products(rng):
    """Shapes for which the overhead of a library call is large, or for which the library is not optimised."""
    shapes = {"small": ((32, 32), (32, 32)), "thin": ((4096, 64), (64, 8)), "wide": ((8, 512), (512, 64))}
    shapes |= {"stacked": ((1000, 16, 16), (1000, 16, 16)), "middle": ((256, 256), (256, 256))}
    made = {}
    for name, (a, b) in shapes.items():
        arrays = [rng.standard_normal(shape, dtype="f4") for shape in (a, b, b[-1:])]
        made[f"product_{name}"] = (1, lambda x, w, _: x @ w, arrays, "close")
        made[f"layer_{name}"] = (1, layer, arrays, "close")
    return made


def medians(functions, arguments, seconds, clock):
    """The median time of each function, called in alternation."""
    times, until = [[] for _ in functions], time.perf_counter() + seconds
    while len(times[0]) < 5 or time.perf_counter() < until:
        for taken, fn in zip(times, functions, strict=True):
            start = clock()
            fn(*arguments)
            taken.append(clock() - start)
    return [statistics.median(taken) for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--options", default="", help="name=value, with commas between")
    parser.add_argument("--work", action="store_true", help="seconds of processors, not of the clock")
    asked = parser.parse_args()
    pairs = [item.split("=") for item in asked.options.split(",") if item]
    options = {name: int(value) if value.isdigit() else value for name, value in pairs}
    clock = time.process_time if asked.work else time.perf_counter
    peers = loops() if numba else {}
    print(f"{'':20} {'asked':>6} {'NumPy/':>7} {'Numba/':>7} {'ours ms':>9}")
    for name, (goal, fn, arguments, numerics) in cases(asked.scale).items():
        if asked.only and not any(part in name for part in asked.only.split(",")):
            continue
        ours = cinductor.compile(fn, options={"numerics": numerics, **options})
        functions = [ours, fn, *([peers[name]] if name in peers else [])]
        for each in functions:
            each(*arguments)
        taken = medians(functions, arguments, asked.seconds, clock)
        other = f"{taken[2] / taken[0]:7.2f}" if len(taken) > 2 else f"{'':>7}"
        print(f"{name:20} {goal:6} {taken[1] / taken[0]:7.2f} {other} {1e3 * taken[0]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
