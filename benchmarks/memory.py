"""Compares the peak memory of every program of tests/programs with NumPy's: the bytes allocated by one call.

NumPy's peak is measured by `tracemalloc`: arrays, temporaries, and Python's numbers and lists. cinductor's is
measured by `track_memory` and includes results. Other columns are the estimate in the first line of the program,
the peak without `reuse`, and the number of allocations in the program's text with and without `pools`. Temporaries
of library calls are only counted for NumPy. Prints a table, programs above NumPy first. With --check it fails if
more programs are above NumPy than --above says.
"""

import argparse
import os
import re
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
import folders  # noqa: F401
import programs

import cinductor

# Reasons why a program may allocate more than NumPy does.
CAUSES = {
    "linear_algebra.bareiss": "a copy of its argument, so that a failure in the middle leaves the caller's array unchanged",
    "fractals.mandelbrot_by_shrinking": "arrays that data shorten keep the capacity of their first size, twice, because two buffers alternate",
    "sorting.quick_select": "arrays that data shorten keep the capacity of their first size",
    "signals.run_lengths": "lists that grow have capacity for the largest possible number of items",
}


def quietly(fn, arguments):
    """Call the function and ignore its exceptions and warnings. True if it returned."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fn(*arguments)
        except Exception:
            return False
    return True


def peak_of_numpy(row, arguments):
    """The peak in bytes of a later call; None if it raises."""
    peaks = []

    def traced(*given):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        row.function(*given)
        peaks.append(tracemalloc.get_traced_memory()[1] - before)

    quietly(row.function, arguments())
    tracemalloc.start()
    try:
        quietly(traced, arguments())
    finally:
        tracemalloc.stop()
    return peaks[0] if peaks else None


def printed(call):
    """The text that the call writes to standard error, including that of C code."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


def peak_of_ours(row, arguments, backend, **options):
    """The peak in bytes; the estimated peak and whether sizes leave it open; the number of allocations in the text.
    """
    compiled = cinductor.compile(row.function, backend=backend, options={"track_memory": "log", **options})
    reports = []

    def explained(*given):
        reports.append(cinductor.explain(compiled, *given).wrapper)

    said = printed(lambda: quietly(compiled, arguments()) and quietly(explained, arguments()))
    found = [int(n) for n in re.findall(r"at most (\d+) bytes", said)]
    planned = re.findall(r"(at most|about) (\d+) bytes", "".join(reports))
    most = max(((int(n), word == "about") for word, n in planned), default=(0, False))
    return max(found, default=0), most, "".join(reports).count(" = empty(")


def measured(names, backend):
    """A row for each program that returns: name, NumPy's bytes, cinductor's bytes, the estimate, bytes without reuse,
    bytes without pools, allocations.
    """
    for name, row in programs.load().items():
        if names and name not in names:
            continue

        def arguments(row=row):
            return row.make(row.sizes[-1], np.random.default_rng(0))

        theirs = peak_of_numpy(row, arguments)
        if theirs is None:
            continue
        ours, planned, pooled = peak_of_ours(row, arguments, backend, pools=True)
        single, _, singles = peak_of_ours(row, arguments, backend, pools=False)
        apart, _, _ = peak_of_ours(row, arguments, backend, reuse=False)
        yield name, theirs, ours, planned, apart, single, (singles, pooled)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, as theme.function; all where none is named")
    parser.add_argument("--backend", default="interp", help="interp (the same plan without a compiler) or c")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "out")
    parser.add_argument("--above", type=int, default=len(CAUSES), help="programs that may hold more than NumPy")
    options = parser.parse_args()
    rows = sorted(measured(options.names, options.backend), key=lambda row: (row[2] <= row[1], row[0]))
    above = [row[0] for row in rows if row[2] > row[1]]
    lines = ["| program | NumPy | ours | estimate | without reuse | without pools | allocations | |", "|---|---|---|---|---|---|---|---|"]
    for name, theirs, ours, (planned, is_open), apart, single, (singles, pooled) in rows:
        word = "about " if is_open else ""
        lines.append(f"| {name} | {theirs:,} | {ours:,} | {word}{planned:,} | {apart:,} | {single:,} | {singles} → {pooled} | {CAUSES.get(name, '') if name in above else ''} |")
    less = sum(row[2] < row[4] for row in rows)
    worse = [row[0] for row in rows if row[2] > row[4] or (not row[3][1] and row[2] > row[3][0])]
    counts = [sum(row[6][k] for row in rows) for k in (0, 1)]
    above_single = sum(row[2] > row[5] for row in rows)
    lines.append(f"\nPools: {counts[0]} allocations are {counts[1]}; {above_single} programs hold more with them.")
    lines.append(f"\nBytes at most, on top of the arguments. {len(rows)} programs, {len(above)} above NumPy, {less} hold less with reuse.")
    options.out.mkdir(exist_ok=True)
    (options.out / "memory.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if worse or len(above) > options.above:
        sys.exit(f"above NumPy: {above}; above the estimate, or without reuse: {worse}")


if __name__ == "__main__":
    main()
