"""Times reads and writes at data-dependent indices on a million elements, in NumPy and compiled.

    python benchmarks/indexing.py [--threads 1] [--cases scatter,take] [--size 1000000] [--out DIRECTORY]

NumPy and compiled calls alternate, so that other load on the machine affects both; every figure is a median.
Arguments that a case writes to are not copied between calls, so each case is written to give the same result
however often it has run.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def scatter(x, i, v):
    x[i] = v


def scatter_constant(x, i):
    x[i] = 0.0


def scatter_add(x, i, v):
    np.add.at(x, i, v)


def scatter_2d(m, i, j, v):
    m[i, j] = v


def mask_assign(x):
    x[x > 0.9] = 0.95


def mask_assign_array(x, mask, v):
    x[mask] = v


def mask_add(x, mask):
    x[mask] *= 1.0


def gather(x, i):
    return x[i]


def take(x, i):
    return np.take(x, i)


def take_clip(x, i):
    return x.take(i, mode="clip")


def take_rows(m, k):
    return m[k]


def compress(x, mask):
    return x[mask]


def compress_computed(x):
    return x[x > 0.5]


def nonzero(mask):
    return np.nonzero(mask)[0]


def flatnonzero(x):
    return np.flatnonzero(x > 0.5)


def bincount(k):
    return np.bincount(k, minlength=1000)


def bincount_weights(k, v):
    return np.bincount(k, weights=v, minlength=1000)


def gather_sum(x, i, v):
    return (x[i] * v).sum()


def put_along(m, order, w):
    np.put_along_axis(m, order, w, axis=1)


def make(n):
    """The arguments by name."""
    rng = np.random.default_rng(1)
    side = int(n**0.5)
    i = rng.integers(0, n, n)
    m = rng.random((side, side))
    return {
        "x": rng.random(n),
        "v": rng.random(n),
        "i": i,
        "j": rng.integers(0, side, n),
        "k": rng.integers(0, 1000, n),
        "mask": rng.random(n) > 0.5,
        "m": m,
        "order": np.argsort(m, axis=1),
        "w": np.sort(m, axis=1),
    }


CASES = [
    *(scatter, scatter_constant, scatter_add, scatter_2d, mask_assign, mask_assign_array, mask_add),
    *(gather, take, take_clip, take_rows, compress, compress_computed, nonzero, flatnonzero),
    *(bincount, bincount_weights, gather_sum, put_along),
]


def arguments_of(case, values, n):
    """The arguments of a case, with indices limited to the sizes of its matrix and rows."""
    side = values["m"].shape[0]
    names = case.__code__.co_varnames[: case.__code__.co_argcount]
    own = {name: values[name] for name in names}
    if "m" in own and "i" in own:
        own["i"] = own["i"] % side
    if case is mask_assign_array:
        own["v"] = values["v"][: int(values["mask"].sum())]
    if case is take_rows:
        own["k"] = values["k"][:side] % side
    return [a.copy() for a in own.values()]


def measure(case, n, least=0.6):
    """Median times of NumPy and of cinductor, and whether both give the same result."""
    import cinductor

    values = make(n)
    theirs, ours = arguments_of(case, values, n), arguments_of(case, values, n)
    compiled = cinductor.compile(case, fullgraph=True)
    for _ in range(3):
        want, got = case(*theirs), compiled(*ours)
    same = np.array_equal(got, want) if want is not None else True
    if case is gather_sum:
        same = bool(np.isclose(got, want, rtol=1e-12))
    same &= all(np.allclose(a, b, rtol=1e-12) for a, b in zip(theirs, ours, strict=True))
    times = [], []
    until = time.perf_counter() + least
    while time.perf_counter() < until or len(times[0]) < 9:
        for found, fn, args in zip(times, (case, compiled), (theirs, ours), strict=True):
            begin = time.perf_counter()
            result = fn(*args)
            found.append(time.perf_counter() - begin)
            del result
    return statistics.median(times[0]), statistics.median(times[1]), same


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default=os.environ.get("CINDUCTOR_THREADS", "1"))
    parser.add_argument("--cases", default=",".join(case.__name__ for case in CASES))
    parser.add_argument("--size", type=int, default=1000000)
    parser.add_argument("--out", type=Path, default=HERE / "out")
    options = parser.parse_args()
    os.environ["CINDUCTOR_THREADS"] = options.threads
    named = {case.__name__: case for case in CASES}
    lines = ["| case | NumPy ms | cinductor ms | × |", "|---|---|---|---|"]
    for name in options.cases.split(","):
        base, ours, same = measure(named[name], options.size)
        wrong = "" if same else " **wrong**"
        lines.append(f"| {name} | {1e3 * base:.3g} | {1e3 * ours:.3g} | {base / ours:.2f}{wrong} |")
        print(lines[-1], file=sys.stderr, flush=True)
    heading = f"{options.size} float64, {options.threads} thread(s) of {os.cpu_count()}; NumPy {np.__version__}. × is speed relative to NumPy."
    text = heading + "\n\n" + "\n".join(lines)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "indexing.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
