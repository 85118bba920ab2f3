"""Compares the plans found by max_autotune with the default plan, for the programs of tests/programs.

    python benchmarks/races.py [--times 4] [--seconds 2] [--bits] [names]

Each program is compiled as usual and with mode="max-autotune-no-cudagraphs", with arguments --times as large as in
tests. It is called until its trials are decided, or for --seconds. Then calls of both versions alternate, on
copies of the arguments that are not timed, and medians are compared. Prints a table of the programs where an
alternative won, the geometric mean and the worst of all. --bits times nothing: it builds each alternative
separately and compares results, exceptions and written arguments with those of the default plan, byte for byte.
"""

import argparse
import copy
import math
import pickle
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
import folders  # noqa: F401
import programs
from race_plans import alternatives

import cinductor
from cinductor.builds import racing

MODE = "max-autotune-no-cudagraphs"
PAIRS, FEW_PAIRS, LONG = 31, 5, 0.05  # pairs of calls; pairs for programs that take longer than LONG seconds


def outcome(fn, arguments):
    """The result or exception of a call, and its arguments afterwards, as bytes."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = fn(*arguments)
        except Exception as error:
            result = repr(error)
    return pickle.dumps(plain((result, arguments)))


def plain(value):
    """Nested tuples of bytes and texts."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, np.asarray(value).tobytes()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    return "" if callable(value) else repr(value)


def seconds_of(fn, arguments):
    given = copy.deepcopy(arguments)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        try:
            fn(*given)
        except Exception:  # many programs raise for some arguments
            pass
        return time.perf_counter() - began


def races_of(compiled):
    return [found for s in compiled.specializations if (found := racing.race_of(s)) is not None]


def is_decided(compiled):
    races = races_of(compiled)
    return bool(races) and all(r.classes and all(h.winner is not None for h in r.classes) for r in races)


def race(compiled, arguments, seconds):
    """Call until all trials are decided, or for the given time after the builds are done. True if there was a trial.
    """
    for _ in range(40):  # NumPy may be timed first, and may be faster
        seconds_of(compiled, arguments)
        racing.beside.wait()
        if races_of(compiled):
            break
    last = time.perf_counter() + seconds
    while races_of(compiled) and not is_decided(compiled) and time.perf_counter() < last:
        seconds_of(compiled, arguments)
    return bool(races_of(compiled))


def timed(row, times, seconds):
    """Seconds of the default and of max-autotune, and the winners; None if there are no alternatives."""
    arguments = row.make(times * row.sizes[-1], np.random.default_rng(0))
    default, raced = cinductor.compile(row.function), cinductor.compile(row.function, mode=MODE)
    if not race(raced, arguments, seconds):
        return None
    is_long = seconds_of(default, arguments) + seconds_of(raced, arguments) > 2 * LONG
    for _ in range(2 if is_long else 30):  # NumPy is timed here, too
        seconds_of(default, arguments)
    pairs = []
    for k in range(FEW_PAIRS if is_long else PAIRS):
        order = (default, raced) if k % 2 else (raced, default)
        found = {id(fn): seconds_of(fn, arguments) for fn in order}
        pairs.append((found[id(default)], found[id(raced)]))
    winners = [h.winner or "open" for r in races_of(raced) for h in r.classes]
    own, best = (statistics.median(column) for column in zip(*pairs, strict=True))
    return own, best, ", ".join(winners)


def compare_bits(name, row, options):
    """The number of alternatives, and a line for each that differs."""
    def made():
        return row.make(row.sizes[-1], np.random.default_rng(0))

    default = cinductor.compile(row.function, options=options)
    expected = outcome(default, made())
    programs_ = [s.program for s in default.specializations if s.program is not None]
    count, wrong = 0, []
    for program in programs_:
        for words, changes in alternatives(program):
            count += 1
            forced = cinductor.compile(row.function, options={**options, **changes})
            if outcome(forced, made()) != expected:
                wrong.append(f"{name}: {words} gives other bits")
    return count, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, as theme.function; all where none is named")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--bits", action="store_true")
    parser.add_argument("--numerics", default="numpy")
    given = parser.parse_args()
    rows = {n: row for n, row in programs.load().items() if not given.names or n in given.names}
    if given.bits:
        found = [compare_bits(n, row, {"numerics": given.numerics}) for n, row in rows.items()]
        wrong = [line for _, lines in found for line in lines]
        print(f"{sum(count for count, _ in found)} alternatives of {len(rows)} programs; {len(wrong)} with other bits")
        sys.exit("\n".join(wrong) if wrong else 0)
    ratios, quiet, won = {}, 0, 0
    print("| program | default | max-autotune | faster | winner |\n|---|---|---|---|---|")
    for name, row in rows.items():
        found = timed(row, given.times, given.seconds)
        if found is None:
            quiet += 1
            continue
        own, best, winners = found
        ratios[name] = own / best
        if not set(winners.split(", ")) <= {"default", "open"}:
            won += 1
            print(f"| {name} | {1e6 * own:.0f} µs | {1e6 * best:.0f} µs | {own / best:.2f}× | {winners} |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    worst = sorted(ratios, key=ratios.get)[:5]
    print(f"\n{len(ratios)} programs raced, {quiet} not; an alternative won in {won}. Geometric mean {mean:.3f}×; the slowest: "
          + ", ".join(f"{n} {ratios[n]:.2f}×" for n in worst))


if __name__ == "__main__":
    main()
