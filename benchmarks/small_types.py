"""Times programs over bools and small ints against NumPy, in turns in one process.

    python benchmarks/small_types.py [--threads 1,2] [--names sum,argmax] [--seconds 0.4]

Prints the lower quartile of cinductor's times in microseconds, and NumPy's time divided by it.
"""

import argparse
import math
import time

import numpy as np

import cinductor

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (2000, 2000)).astype("u1")
SHORTS = RNG.integers(-3000, 3000, (2000, 2000)).astype("i2")
RARE, NONE, FLOATS = BYTES > 250, np.zeros((2000, 2000), bool), RNG.random((1000, 1000)) * 100
CASES = {
    "count_nonzero of bools": (np.count_nonzero, RARE),
    "count_nonzero of rows": (lambda x: np.count_nonzero(x, axis=1), RARE),
    "count of u1 > 128": (lambda x: np.count_nonzero(x > 128), BYTES),
    "argmax of bools": (np.argmax, NONE),
    "argmax of u1": (np.argmax, BYTES),
    "argmin of i2": (np.argmin, SHORTS),
    "any": (np.any, NONE),
    "any of columns": (lambda x: np.any(x, axis=0), NONE),
    "sum of bools": (np.sum, RARE),
    "sum of u1": (np.sum, BYTES),
    "sum of i2": (np.sum, SHORTS),
    "sum of rows": (lambda x: x.sum(axis=1), BYTES),
    "sum of columns": (lambda x: x.sum(axis=0), BYTES),
    "mean of u1": (np.mean, BYTES),
    "tile": (lambda x: np.tile(x, (2, 2)), BYTES[:1000, :1000].copy()),
    "repeat": (lambda x: np.repeat(x, 3, axis=1), BYTES),
    "pad": (lambda x: np.pad(x, 5), BYTES),
    "full": (lambda x: np.full(x.shape, 7, "u1"), BYTES),
    "copy": (lambda x: x.copy(), BYTES),
    "-img": (lambda x: -x, BYTES),
    "img * 3 / 100": (lambda x: (x * 3 / 100).astype("u1"), BYTES),
    "x % 0.3": (lambda x: x % 0.3, FLOATS),
    "f4 to u1": (lambda x: x.astype("u1"), FLOATS.astype("f4")),
    "u1 to f4": (lambda x: x.astype("f4"), BYTES),
}


def turns(calls, seconds):
    times = [[] for _ in calls]
    until = time.perf_counter() + seconds
    while len(times[0]) < 7 or time.perf_counter() < until:
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [sorted(taken)[len(taken) // 4] for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--names", default="")
    parser.add_argument("--seconds", type=float, default=0.4, help="for each case")
    given = parser.parse_args()
    asked = [name for name in given.names.split(",") if name]
    for threads in map(int, given.threads.split(",")):
        ratios = []
        for name, (fn, x) in CASES.items():
            if asked and not any(word in name for word in asked):
                continue
            compiled = cinductor.compile(fn, mode="now", options={"threads": threads})
            for _ in range(3):
                assert np.array_equal(compiled(x), fn(x))
            ours, numpys = turns([lambda f=compiled, x=x: f(x), lambda f=fn, x=x: f(x)], given.seconds)
            ratios.append(numpys / ours)
            print(f"{threads:2} threads  {name:24} {ours * 1e6:9.1f} us {ratios[-1]:7.2f}", flush=True)
        print(f"{threads:2} threads  geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):22.2f}")


if __name__ == "__main__":
    main()
