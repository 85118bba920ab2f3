"""Counts the Python calls of the package in compiling, first calls and later calls of five small programs.

    python benchmarks/capture_calls.py           prints the counts, and the files that the loop's first call passes through
    python benchmarks/capture_calls.py --check   fails if a count is above its limit in call_limits.txt
    python benchmarks/capture_calls.py --lower   writes lower limits where counts have fallen; it never raises one

A copy of each program is captured before, so that work done once per process is not counted. Nothing is read from the disk
cache, and the interpreter runs the programs. Steps of generators count as calls, and so do comprehensions
in versions of Python that make functions of them (before 3.12); the limits leave both out.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = os.sep + "cinductor" + os.sep
LIMITS = Path(__file__).with_name("call_limits.txt")
OTHERS_MORE = 1.05  # what versions of Python other than that of the limits may have more
Counts = collections.Counter[tuple[str, str]]


def cumulative(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    return x.sum()


def positive(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total += x[i]
    return total


def chosen(x: Any) -> Any:
    return np.where(x > 0, x, 0).sum(axis=0)


def pointwise(x: Any) -> Any:
    return np.sqrt(x * 2 + 1) - x


def scaled(x: Any, by: float) -> Any:
    return x * by


def of_parts(x: Any) -> Any:
    parts = [scaled(x, 2.0), scaled(x, 3.0)]
    table = {"first": parts[0], "second": parts[1]}
    return table["first"] + table["second"]


PROGRAMS = (cumulative, positive, chosen, pointwise, of_parts)


def passed_through(call: Any) -> Counts:
    """How often each function of the package was called, by file and name."""
    found: Counts = collections.Counter()

    def note(frame: Any, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and PACKAGE in code.co_filename:
            found[code.co_filename.rpartition(PACKAGE)[2], code.co_name] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def copied(folder: str, name: str) -> tuple[Callable[..., Any], ...]:
    """The programs from a copy of this file."""
    path = Path(folder, f"{name}.py")
    path.write_text(Path(__file__).read_text())
    spec = importlib.util.spec_from_file_location(name, path)
    module: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module  # as an import does: what a module refers to is not searched
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module.PROGRAMS


def counted(folder: str) -> dict[str, dict[str, Counts]]:
    """The calls of `compile`, of the first call and of a later one of each program."""
    import cinductor

    settings = {"mode": "now", "backend": "interp"}
    for f in copied(folder, "before"):
        cinductor.compile(f, **settings)(np.arange(5.0))
    found: dict[str, dict[str, Counts]] = {}
    for f in copied(folder, "measured"):
        made: list[Any] = []
        x = np.arange(10.0)
        steps = found[f.__name__] = {"compile": passed_through(lambda f=f, made=made: made.append(cinductor.compile(f, **settings)))}
        steps["first call"] = passed_through(lambda made=made, x=x: made[0](x))
        made[0](x)
        steps["later call"] = passed_through(lambda made=made, x=x: made[0](x))
    return found


def without_comprehensions(found: Counts) -> int:
    """The number of calls of functions that have a name."""
    return sum(n for (_, name), n in found.items() if not name.startswith("<"))


def read_limits() -> tuple[str, dict[str, int]]:
    """The version of Python that was counted, and the limits by program and step."""
    rows = [line for line in LIMITS.read_text().splitlines() if line and not line.startswith("#")]
    version, *limits = rows
    return version, {key: int(limit) for key, limit in (row.rsplit(" = ", 1) for row in limits)}


def over_limits(counts: dict[str, int]) -> list[str]:
    """The counts that are too large."""
    version, limits = read_limits()
    more = 1.0 if version == "{}.{}".format(*sys.version_info) else OTHERS_MORE
    return [f"{key}: {n} calls, at most {limits[key]} are allowed" for key, n in counts.items() if n > limits[key] * more]


def lower_limits(counts: dict[str, int]) -> None:
    """Write the limits that have fallen."""
    head = [line for line in LIMITS.read_text().splitlines() if line.startswith("#")]
    version, limits = read_limits()
    rows = [f"{key} = {min(n, limits.get(key, n))}" for key, n in counts.items()]
    LIMITS.write_text("\n".join([*head, version, *rows]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="fail if a count is above its limit")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CINDUCTOR_CACHE_DIR"] = folder
        found = counted(folder)
    counts = {f"{name}, {step}": without_comprehensions(calls) for name, steps in found.items() for step, calls in steps.items()}
    over = over_limits(counts) if options.check else []
    if options.lower:
        lower_limits(counts)
    if options.check or options.lower:
        sys.exit("\n".join(over) if over else 0)
    for key, count in counts.items():
        print(f"{count:6} {key}")
    files: collections.Counter[str] = collections.Counter()
    for (file, _), count in found["cumulative"]["first call"].items():
        files[file] += count
    print(f"\nfirst call of cumulative: {sum(files.values())} calls with comprehensions, in {len(files)} files")
    for file, count in files.most_common():
        print(f"{count:6} {file}")


if __name__ == "__main__":
    main()
