"""Runs the tests of public packages with and without the packages' functions compiled, and reports the tests that
fail, hang or crash only when compiled.

    python tests/packages/run.py [--only-failing | --times | --whole] [SUITE ...]

Each run is a separate process. If it hangs or crashes, it is restarted after the test that was running. The exit
status is 1 if a test that `known.txt` does not list fails only when compiled. With --only-failing, only the tests
that failed compiled are run uncompiled. This is faster, and equivalent if tests do not depend on one another.
With --whole, it prints how many of the functions that the tests call are captured whole, and why the others are not.
This is faster with a PATH that has no C compiler, and no different.
With --times, it prints the seconds of the tests instead: uncompiled, compiled in the mode "lazy" with an empty cache,
and compiled again with the cache of that process. A second line has the processor time, and the number of captures.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

import numpy as np
from suites import SUITES, Suite

HERE = pathlib.Path(__file__).parent
TIMEOUT = 300  # seconds per test, on a machine that is busy
MAX_RESTARTS = 40
MOST_REASONS = 25  # that a table of reasons has
BAD = ("failed", "hang", "crash")


def known() -> dict[str, str]:
    """Tests that are known to fail when compiled, with the reason why this is correct."""
    rows = (HERE / "known.txt").read_text(encoding="utf-8").splitlines()
    pairs = (row.split("  # ") for row in rows if row and not row.startswith("#"))
    return {test.strip(): why.strip() for test, why in pairs}


class Run:
    """One run of a suite, with the result of each test."""

    def __init__(self, suite: Suite, is_compiled: bool, only: list[str] | None = None) -> None:
        self.suite, self.is_compiled, self.only = suite, is_compiled, only
        self.seconds = self.processor = 0.0  # of all tests, with what they set up
        self.captures = 0
        self.called: dict[str, dict[str, Any]] = {}  # the statistics of each compiled function that was called
        self.outcomes: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.ended: set[str] = set()

    def run(self) -> Run:
        """Run the suite with an empty cache."""
        with tempfile.TemporaryDirectory() as folder:
            return self.run_in(pathlib.Path(folder))

    def run_in(self, folder: pathlib.Path) -> Run:
        """Run the suite with the cache of a folder; restart after each test that ends the process."""
        for _ in range(MAX_RESTARTS):
            if self.once(folder) is None:
                break
        return self

    def once(self, folder: pathlib.Path) -> str | None:
        """Run one process. Return the test that ended it."""
        log, done, only = (folder / n for n in ("log", "done", "only"))
        log.write_text("")
        done.write_text("\n".join(self.ended))
        env = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "CINDUCTOR_CACHE_DIR": str(folder / "cache"),  # nothing is reused from an earlier run
            "CINDUCTOR_PACKAGES_LOG": str(log),
            "CINDUCTOR_PACKAGES_DONE": str(done),
            "CINDUCTOR_PACKAGES_COMPILE": ",".join(self.suite.compiled if self.is_compiled else ()),
            "CINDUCTOR_PACKAGES_METHODS": str(int(self.suite.methods)),
            "CINDUCTOR_PACKAGES_CALLS": str(int(self.suite.calls)),
        }
        if self.only is not None:
            only.write_text("\n".join(self.only))
            env["CINDUCTOR_PACKAGES_ONLY"] = str(only)
        made = subprocess.run(self.command(), env=env, cwd=folder, capture_output=True, text=True)
        if os.environ.get("CINDUCTOR_PACKAGES_OUTPUT"):
            print(made.stdout[-20000:], made.stderr[-5000:])
        return self.read(log, made)

    def command(self) -> list[str]:
        """The command that runs the tests."""
        root = pathlib.Path(np.__file__).parents[1]
        options = ["-q", "-p", "compiled", "-p", "no:cacheprovider", f"--rootdir={root}"]
        timeout = [f"--timeout={TIMEOUT}", "--timeout-method=thread"]
        left = ["-k", self.suite.leaves] if self.suite.leaves else []
        return [
            *(sys.executable, "-m", "pytest", *options, *timeout, *left),
            *("--pyargs", *self.suite.tests),
        ]

    def read(self, log: pathlib.Path, made: subprocess.CompletedProcess[str]) -> str | None:
        """Read the log of a process. Return the test during which it ended."""
        began: list[str] = []
        for line in log.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            test, outcome = row["test"], row["outcome"]
            if outcome == "took":
                self.seconds += row["seconds"]
                self.processor += row["processor"]
            elif outcome == "captured":
                self.captures += row["captures"]
            elif outcome == "called":
                self.called[test] = row["stats"]
            elif outcome == "began":
                began.append(test)
            elif outcome == "ended":
                self.ended.add(test)
            elif self.outcomes.get(test) != "failed":
                self.outcomes[test], self.why[test] = outcome, row["why"]
        if not began and not self.outcomes and made.returncode not in (0, 5):
            raise SystemExit(f"pytest failed:\n{made.stdout[-3000:]}{made.stderr[-3000:]}")
        last = next((t for t in began if t not in self.ended), None)
        if last is not None:
            self.ended.add(last)
            self.outcomes[last] = "hang" if "Timeout" in made.stderr + made.stdout else "crash"
            self.why[last] = f"exit status {made.returncode}"
        return last

    def bad(self) -> list[str]:
        """Tests that did not pass."""
        return [t for t, outcome in self.outcomes.items() if outcome in BAD]


def times(name: str) -> str:
    """A line of the seconds of a suite's tests, and of what compiled functions add to them, and one of processor time."""
    suite = SUITES[name]
    plain = Run(suite, False).run()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Run(suite, True).run_in(pathlib.Path(folder)) for _ in range(2))
    wall, processor = ([getattr(run, of) for run in (plain, first, second)] for of in ("seconds", "processor"))
    captures = f"{first.captures} and {second.captures} captures"
    return f"{name}: {ratios(wall)}\n{name}, processor: {ratios(processor)}; {captures}"


def whole(name: str) -> str:
    """The functions of a suite that are captured whole, of those that the tests call, and the reasons of the others."""
    called = Run(SUITES[name], True).run().called
    count, outside = sum(map(is_whole, called.values())), sum(map(is_outside, called.values()))
    called = {name: stats for name, stats in called.items() if not is_outside(stats)}
    reasons = Counter(why for stats in called.values() if not is_whole(stats) for why in set(whys_of(stats)))
    share = f"{count} of {len(called)} called functions whole ({100 * count / max(len(called), 1):.0f} %)"
    lines = [f"{name}: {share}, besides {outside} that only raise or get objects"]
    return "\n".join(lines + [f"  {n:4} {why}" for why, n in reasons.most_common(MOST_REASONS)])


def is_whole(stats: dict[str, Any]) -> bool:
    """True if a program, without breaks, answers calls of a function."""
    return bool(stats["specializations"]) and not stats["pieces"]


def is_outside(stats: dict[str, Any]) -> bool:
    """True for a function of which nothing is captured, because its calls only raise or get arrays of dtype object."""
    reasons = whys_of(stats)
    only_raises = bool(reasons) and all(why.startswith("it raised") for why in reasons)
    return not (stats["specializations"] or stats["pieces"]) and (only_raises or any("dtype object" in why for why in reasons))


def whys_of(stats: dict[str, Any]) -> list[str]:
    """The reasons of a function's breaks, and why NumPy answers its calls, without what differs from call to call."""
    return [why.partition(";")[0].partition(": ")[0] for why in (*stats["breaks"], *stats["numpy"])]


def ratios(seconds: list[float]) -> str:
    """The seconds without compiled functions, in the first process and in the second."""
    plain, first, second = seconds
    words = f"first {first / plain:.2f}, second {second / plain:.2f} of plain"
    return f"plain {plain:.2f} s, first process {first:.2f}, second {second:.2f}: {words}"


def newly_failing(name: str, only_failing: bool) -> tuple[int, list[tuple[str, str, str]]]:
    """The number of tests of a suite that passed uncompiled, and those that fail only when compiled: name, how, why.
    """
    suite = SUITES[name]
    compiled = Run(suite, True).run()
    bad = compiled.bad()
    if not bad and only_failing:
        return len(compiled.outcomes), []
    plain = Run(suite, False, bad if only_failing else None).run()
    lost = [t for t, o in plain.outcomes.items() if o == "passed" and t not in compiled.outcomes]
    rows = [(t, compiled.outcomes[t], compiled.why[t]) for t in bad if t not in plain.bad()]
    rows += [(t, "missing", "was not collected") for t in lost]
    return len((compiled if only_failing else plain).outcomes), rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=[*SUITES], metavar="SUITE")
    parser.add_argument("--only-failing", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    if given.whole:
        os.environ["CINDUCTOR_MODE"] = "now"
        for name in given.suites:
            print(whole(name), flush=True)
        return 0
    if given.times:
        os.environ["CINDUCTOR_MODE"] = "lazy"
        for name in given.suites:
            print(times(name), flush=True)
        return 0
    expected, count = known(), 0
    for name in given.suites:
        tests, rows = newly_failing(name, given.only_failing)
        news = [row for row in rows if row[0] not in expected]
        count += len(news)
        print(
            f"{name}: {tests} tests, {len(rows)} newly failing, {len(news)} not known", flush=True
        )
        for test, outcome, why in rows:
            print(f"  {outcome:8} {test}\n           {expected.get(test, why)}", flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
