"""Times reductions over rows of symbolic length and of constant length.

    python benchmarks/rows.py [--lengths 2,3,4] [--functions max,softmax] [--elements 1000000] [--seconds 0.3]

Calls of both alternate in one process on one thread, with --elements of float32. The minimum of each counts,
because other load only makes calls longer. Prints a table of symbolic / constant; --times adds the time of the
symbolic version in ns per element. --compile instead prints the CPU time of the compiler's processes for each
program, on rows of 10.
"""

import argparse
import multiprocessing
import resource
import time

import numpy as np

import cinductor

LENGTHS = [2, 3, 4, 8, 10, 16, 32, 64, 65, 100, 200, 300, 1000]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5))


FUNCTIONS = {
    "max": lambda x: x.max(axis=-1),
    "sum": lambda x: x.sum(axis=-1),
    "mean": lambda x: x.mean(axis=-1),
    "argmax": lambda x: x.argmax(axis=-1),
    "centred": lambda x: x - x.mean(axis=-1, keepdims=True),
    "norm": lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
    "softmax": softmax,
    "layernorm": layernorm,
    "distance": lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
}


def arguments(name, length, elements):
    """Rows of one array. For distances, rows of two arrays with different numbers of rows."""
    rng = np.random.default_rng(length)
    if name != "distance":
        return (rng.standard_normal((max(1, elements // length), length), dtype=np.float32),)
    side = max(2, int((elements / length) ** 0.5))
    return tuple(rng.standard_normal((side + k, length), dtype=np.float32) for k in range(2))


def least(functions, operands, seconds):
    """The minimum time of each function, called in alternation."""
    best, until, turns = [float("inf")] * len(functions), time.perf_counter() + seconds, 0
    while turns < 7 or time.perf_counter() < until:
        for k, fn in enumerate(functions):
            start = time.perf_counter()
            fn(*operands)
            best[k] = min(best[k], time.perf_counter() - start)
        turns += 1
    return best


def compare(name, length, options):
    """Seconds with symbolic and with constant length."""
    operands = arguments(name, length, options.elements)
    functions = [
        cinductor.compile(FUNCTIONS[name], backend="c", dynamic=dynamic, options={"threads": 1})
        for dynamic in (True, False)
    ]
    for fn in functions:
        fn(*operands)
    return least(functions, operands, options.seconds)


def compile_time(name, dynamic):
    """CPU milliseconds of the compiler's processes in the first call of a program."""
    fn = cinductor.compile(FUNCTIONS[name], backend="c", dynamic=dynamic, options={"cache": False})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cinductor.explain(fn, *arguments(name, 10, 1000))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def compile_times(names, runs=7):
    """A table of the minima over several first calls, each in a separate process."""
    print("| | symbolic, ms | static, ms |\n|---|---|---|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in names:
            cells = [
                min(pool.apply(compile_time, (name, dynamic)) for _ in range(runs))
                for dynamic in (True, False)
            ]
            print(f"| {name} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each pair")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    names, lengths = options.functions.split(","), [int(n) for n in options.lengths.split(",")]
    if options.compile:
        compile_times(names)
        return
    print(
        "| elements in a row |"
        + "".join(f" {n} |" for n in lengths)
        + "\n|---|"
        + "---|" * len(lengths)
    )
    for name in names:
        pairs = [compare(name, n, options) for n in lengths]
        print(f"| {name} |" + "".join(f" {a / b:.2f} |" for a, b in pairs), flush=True)
        if options.times:
            elements = [
                np.prod([a.shape[0] for a in arguments(name, n, options.elements)]) * n
                for n in lengths
            ]
            print(
                f"| {name}, ns | "
                + " | ".join(
                    f"{1e9 * a / e:.2f}" for (a, _), e in zip(pairs, elements, strict=True)
                )
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
