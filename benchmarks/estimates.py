"""Measures the estimates by which programs are built or not: for each program of tests/programs, NumPy's time and the graph's estimate of
it; for each build, its time and the estimate.

    python benchmarks/estimates.py [SIZE] [--build] [--record]

SIZE is 0, 1 or 2: which of each program's three sizes; 1 by default. Builds are measured with --build. With --record, NumPy's times are
written where a test reads them; the machine must be idle.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
import call_estimates
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


def spread(factors):
    """Part within a factor of 3, and what 5 and 95 of a hundred are below."""
    within = sum(1 / 3 <= f <= 3 for f in factors) / len(factors)
    low, high = np.quantile(factors, [0.05, 0.95])
    return f"{100 * within:.0f} % within a factor of 3; 5 to 95 %: {low:.2f} to {high:.2f} of what is true"


def main(which, builds, records):
    plain, ruled, built, times = [], [], [], {}
    for name, program in programs.load().items():
        size = program.sizes[which]
        measured = seconds_in_numpy(program, size)
        found = call_estimates.estimates_of(program, size)
        if measured is None or found is None:
            continue
        times[name] = measured
        plain.append(found[0] / measured)
        ruled.append(found[1] / measured)
        text = f"{name:45} NumPy {1e3 * measured:9.3f} ms, estimated {plain[-1]:8.2f} and {ruled[-1]:8.2f} of it"
        if builds:
            began = time.perf_counter()
            found[3].build()
            built.append(found[2] / (time.perf_counter() - began))
            text += f"; build {built[-1]:.2f}"
        print(text, flush=True)
    print(f"by the graph: {len(plain)} programs, {spread(plain)}")
    print(f"by the rule:  {len(ruled)} programs, {spread(ruled)}")
    if records:
        call_estimates.TIMES.write_text("".join(f"{name} {1e6 * seconds:.1f}\n" for name, seconds in times.items()))
    if built:
        print(f"builds:       {len(built)}, {spread(built)}")


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rest = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
        main(int(rest[0]) if rest else 1, "--build" in sys.argv, "--record" in sys.argv)
