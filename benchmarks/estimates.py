"""How good the estimates are by which pieces are built: of every program of tests/programs what NumPy takes, measured,
beside what the graph's estimate says; and of the builds what they take.

    python benchmarks/estimates.py [SIZE]      0, 1 or 2 of each program's three sizes; 1 where none is given
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import cinductor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import programs

LONG = 0.5  # seconds: no second call is timed
RUNS = 5


def seconds_in_numpy(program, size):
    """The best of several calls, each with arguments of its own."""
    best = float("inf")
    for _ in range(RUNS):
        arguments = program.make(size, np.random.default_rng(0))
        began = time.perf_counter()
        try:
            program.function(*arguments)
        except Exception:
            return None
        best = min(best, time.perf_counter() - began)
        if best > LONG:
            break
    return best


def estimate_of(program, size):
    """What the report of a capture says; None where it is not captured whole."""
    report = cinductor.explain(program.function, *program.make(size, np.random.default_rng(0)))
    return report.timings if report.timings.get("plain_ms") and not report.breaks else None


def spread(factors):
    """Part within a factor of 3, and what 5 and 95 of a hundred are below."""
    within = sum(1 / 3 <= f <= 3 for f in factors) / len(factors)
    low, high = np.quantile(factors, [0.05, 0.95])
    return f"{100 * within:.0f} % within a factor of 3; 5 to 95 %: {low:.2f} to {high:.2f} of what is true"


def main(which):
    plain, builds = {}, []
    for name, program in programs.load().items():
        size = program.sizes[which]
        measured = seconds_in_numpy(program, size)
        timings = estimate_of(program, size)
        if measured is None or timings is None:
            continue
        plain[name] = 1e-3 * timings["plain_ms"] / measured
        if timings.get("children"):
            builds.append(timings["build_ms"] / timings["total_ms"])
        print(f"{name:45} NumPy {1e3 * measured:9.3f} ms, estimated {plain[name]:8.2f} of it", flush=True)
    print(f"plain:  {len(plain)} programs, {spread(list(plain.values()))}")
    if builds:
        print(f"builds: {len(builds)}, {spread(builds)}")


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
