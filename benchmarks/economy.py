"""Measures the first minutes of a user: scenarios in each mode, in a process with an empty cache each, compared with plain NumPy.

    python benchmarks/economy.py [SCENARIO ...]     all scenarios if none is given
    python benchmarks/economy.py --native           seconds from a program's first call in "auto" to its first compiled one

For each mode it prints the wall time of all calls, a ratio to hindsight, and by how many milliseconds first calls were longer than in
NumPy (median and 95th percentile). The ratio is that of the time beyond 100 ms in "auto", and beyond 30 ms in "lazy". Hindsight is the sum
over functions of the smaller of two times: in plain NumPy, and in mode "now". The modes take turns, so that other load affects each alike.
"""

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import programs

import cinductor
from cinductor.calls import economy

MODES = ("plain", "now", "auto", "lazy")
FIXED = {"now": 0.0, "auto": 0.1, "lazy": 0.03}  # seconds
ROUNDS = 3  # processes of each mode, of which the median counts


def mandelbrot(n, limit):
    out = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            c = complex(-2 + 3 * j / n, -1.5 + 3 * i / n)
            z, k = 0j, 0
            while abs(z) < 2 and k < limit:
                z, k = z * z + c, k + 1
            out[i, j] = k
    return out


def distance(a, b):
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        before, row[0] = row[0], i + 1
        for j in range(len(b)):
            kept = row[j + 1]
            row[j + 1] = min(row[j] + 1, kept + 1, before + (a[i] != b[j]))
            before = kept
    return row[-1]


def heat(u, steps):
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def draws(n):
    import random

    total = 0
    for _ in range(n):
        total += random.uniform(0, 10)
    return total


def step(x, y, w1, w2):
    h = np.maximum(x @ w1, 0)
    e = h @ w2 - y
    g2 = h.T @ e
    g1 = x.T @ ((e @ w2.T) * (h > 0))
    return w1 - 1e-4 * g1, w2 - 1e-4 * g2, (e * e).mean()


def normalize(x):
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)


def score(x, w):
    return 1 / (1 + np.exp(-(x @ w)))


def ranks(x):
    return np.argsort(np.argsort(x)) / len(x)


# Each gives calls: a function, and its arguments.


def loops():
    rng = np.random.default_rng(0)
    yield mandelbrot, (60, 50)
    yield distance, (rng.integers(0, 4, 300), rng.integers(0, 4, 300))
    yield heat, (rng.random((60, 60)), 20)
    yield draws, (100_000,)


def notebook():
    for name, program in list(programs.load().items())[::7]:
        if not name.startswith("failures."):
            yield program.function, program.make(program.sizes[1], np.random.default_rng(0))


def training():
    rng = np.random.default_rng(0)
    x, y, w1, w2 = rng.random((64, 16)), rng.random((64, 4)), rng.random((16, 32)), rng.random((32, 4))
    for _ in range(1000):
        yield step, (x, y, w1, w2)


def server():
    rng = np.random.default_rng(0)
    for k in range(1500):
        n = 20 + 7 * int(rng.integers(50))
        x, w = rng.random((n, 8)), rng.random(8)
        yield (normalize, (x,)) if k % 3 == 0 else (score, (x, w)) if k % 3 == 1 else (ranks, (x[:, 0],))


def all_programs():
    for name, program in programs.load().items():
        if not name.startswith("failures."):
            yield program.function, program.make(program.sizes[1], np.random.default_rng(0))


def legendre():
    from numpy.polynomial import legendre as module

    for k in range(25):
        a, b = np.arange(1.0, 2 + k % 6), np.arange(1.0, 2 + k % 4)
        for function in (module.legmul, module.legadd, module.legval):
            yield function, (b, a) if function is not module.legval else (0.5, a)


SCENARIOS = {s.__name__: s for s in (loops, notebook, training, server, all_programs, legendre)}


def run(scenario, mode):
    """Seconds by function, of its first call and of all its calls with `compile`, and of everything."""
    made, rows, raised = {}, {}, []
    calls = list(SCENARIOS[scenario]())
    everything = 0.0
    for function, arguments in calls:
        began = time.perf_counter()
        if function not in made:
            made[function] = function if mode == "plain" else cinductor.compile(function, mode=mode)
        called = time.perf_counter()
        try:
            made[function](*arguments)
        except Exception as error:  # some programs raise: in each mode the same
            raised.append(f"{function.__qualname__}: {type(error).__name__}")
        ended = time.perf_counter()
        everything += ended - began
        row = rows.setdefault(f"{function.__module__}.{function.__qualname__}", [ended - called, 0.0])
        row[1] += ended - began
    print(json.dumps({"all": everything, "rows": rows, "raised": raised}))


def one_run(scenario, mode):
    """The times of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CINDUCTOR_CACHE_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
        command = [sys.executable, "-W", "ignore", __file__, "--one", scenario, mode]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(scenario):
    """By mode: the run whose time is the median."""
    found = {mode: [] for mode in MODES}
    for _ in range(ROUNDS):
        for mode in MODES:
            found[mode].append(one_run(scenario, mode))
    return {mode: sorted(runs, key=lambda one: one["all"])[len(runs) // 2] for mode, runs in found.items()}


def main(names):
    print(f"{'scenario':14}{'plain':>10}{'hindsight':>11}" + "".join(f"{m:>10} {'ratio':>6} {'first calls +':>15}" for m in MODES[1:]))
    for name in names:
        found = measured(name)
        for mode in MODES[1:]:
            assert found[mode]["raised"] == found["plain"]["raised"], (name, mode, found[mode]["raised"])
        plain = found["plain"]["rows"]
        best = sum(min(plain[f][1], found["now"]["rows"][f][1]) for f in plain)
        line = f"{name:14}{1e3 * found['plain']['all']:10.1f}{1e3 * best:11.1f}"
        for mode in MODES[1:]:
            more = [1e3 * (row[0] - plain[f][0]) for f, row in found[mode]["rows"].items()]
            high = float(np.quantile(more, 0.95))
            line += f"{1e3 * found[mode]['all']:10.1f} {max(found[mode]['all'] - FIXED[mode], 0) / best:6.2f} {statistics.median(more):7.2f} {high:7.1f}"
        print(line, flush=True)


def native():
    """Calls each program until one is compiled, and prints the seconds from the first call to that, and processor seconds of the C compiler.
    Programs that are not captured whole are left out.
    """
    took = {}
    importlib.import_module("cinductor.capture.session")
    economy.PURSE = float("inf")  # each program is as if it were alone in its process
    for name, program in programs.load().items():
        if name.startswith("failures."):
            continue
        compiled = cinductor.compile(program.function, mode="auto")
        rng = np.random.default_rng(0)
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        while not compiled.specializations and time.perf_counter() < began + 3:
            try:
                compiled(*program.make(program.sizes[0], rng))
            except Exception:  # some programs raise
                break
            if any(account.is_awaited for account in compiled.accounts()):
                time.sleep(1e-3)  # a caller that does something else in between
        ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        if compiled.specializations:
            took[name] = ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cinductor.wait()
    for what, k in (("seconds", 0), ("processor seconds of the C compiler", 1)):
        values = [t[k] for t in took.values()]
        late = sorted((t[k], name) for name, t in took.items() if t[k] > 0.15)
        print(f"{what}: {len(took)} programs, median {np.median(values):.3f}, p95 {np.quantile(values, 0.95):.3f}, above 0.15: {len(late)}")
        print("  " + " ".join(f"{name} {t:.2f}" for t, name in late[::-1][:12]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run(*sys.argv[2:])
    elif sys.argv[1:2] == ["--native"]:
        with warnings.catch_warnings(), np.errstate(all="ignore"), tempfile.TemporaryDirectory() as cache:
            warnings.simplefilter("ignore")
            cinductor.cache.set_directory(cache)
            native()
    else:
        main(sys.argv[1:] or SCENARIOS)
