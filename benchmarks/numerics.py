"""Times the levels of the option `numerics` and NumPy, in alternation in one process.

    python benchmarks/numerics.py [--threads 1,2] [--programs softmax,sum] [--seconds 1] [--scale 1]

Runs the eleven programs of programs.py, row reductions, and programs limited by memory bandwidth. Prints the
median seconds of "close" for each, and how many times as fast "close" is as "numpy" (the default), "exact" and
NumPy itself.
"""

import argparse
import math
import statistics
import time

import numpy as np
import programs

import cinductor

LEVELS = ("close", "numpy", "exact")
ROWS = {
    "row sums": (lambda x: x.sum(axis=1), (2000, 2000)),
    "row sums f32": (lambda x: x.sum(axis=1), (2000, 2000), "f4"),
    "row means of squares": (lambda x: np.sqrt((x * x).mean(axis=-1)), (2000, 2000)),
    "row variances": (lambda x: x.var(axis=1), (2000, 1000)),
    "row maxima": (lambda x: x.max(axis=1), (4000, 1000)),
    "column sums": (lambda x: x.sum(axis=0), (2000, 2000)),
    "short rows": (lambda x: x.sum(axis=1), (200000, 10)),
    "sum": (lambda x: x.sum(), (4000000,)),
    "sum f32": (lambda x: x.sum(), (4000000,), "f4"),
    "sum of exp": (lambda x: np.exp(x).sum(), (1000000,)),
    "sum of exp f32": (lambda x: np.exp(x).sum(), (1000000,), "f4"),
    "norm": (lambda x: np.linalg.norm(x), (4000000,)),
    "triad": (lambda x: x * 2.5 + 1, (8000000,)),
    "difference": (lambda x: x[1:] - x[:-1], (8000000,)),
    "transposed": (lambda x: x[: len(x) // 2].T + x[len(x) // 2 :].T, (4000, 2000)),
    "exp f32": (lambda x: np.exp(x), (4000000,), "f4"),
    "tanh": (lambda x: np.tanh(x) * 2, (1000000,)),
}


def cases(scale):
    for name in programs.SHAPES:
        yield name, programs.function(name), programs.inputs(name, scale)
    for name, (fn, shape, *dtype) in ROWS.items():
        x = np.random.default_rng(0).random((max(2, int(shape[0] * scale)), *shape[1:]))
        yield name, fn, (x.astype(*dtype or ("f8",)),)


def turns(calls, seconds, most=60):
    """Median seconds of each function, called in alternation for the given time."""
    times = [[] for _ in calls]
    until = time.perf_counter() + seconds * len(calls)
    while len(times[0]) < 5 or (time.perf_counter() < until and len(times[0]) < most):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--programs", default="")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each call")
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    asked = [name for name in given.programs.split(",") if name]
    for threads in map(int, given.threads.split(",")):
        print(f"\n{threads} threads{'':18} close ms   numpy   exact   NumPy")
        found = []
        for name, fn, args in cases(given.scale):
            if asked and name not in asked:
                continue
            compiled = [
                cinductor.compile(fn, options={"numerics": level, "threads": threads})
                for level in LEVELS
            ]
            calls = [lambda f=f, args=args: f(*args) for f in (*compiled, fn)]
            for call in calls:
                call(), call(), call()
            close, *others = turns(calls, given.seconds)
            ratios = [close / other for other in others]
            found.append(ratios)
            print(f"{name:26} {close * 1e3:9.3f} " + " ".join(f"{r:7.2f}" for r in ratios), flush=True)
        means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*found, strict=True)]
        print(f"{'geometric mean':36} " + " ".join(f"{m:7.2f}" for m in means))


if __name__ == "__main__":
    main()
