"""Runs programs of tests/programs in the way of this process (ways.py), twice at one size, and compares them with NumPy.

    python run_programs.py [NAME ...]

Prints one line for each: `ok` or `fail`, the name, and either that all of it ran on the device or why it ran on the
host. CINDUCTOR_TEST_WAYS names the way: a GPU, which may be the emulated one, or a device from outside of the tree.
"""

import copy
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import folders  # noqa: F401
import programs
import test_programs
import ways

import cinductor
from cinductor.capture import session

compiled = ways.WAYS[0].compile


def whereabouts(program, n):
    """The operations of the program that left the device."""
    arguments = program.make(n, np.random.default_rng(n))
    try:
        report = cinductor.explain(compiled(program.function), *arguments)
    except Exception as error:
        return f"raises {type(error).__name__}"
    if report.plain is not None:
        return f"runs in NumPy: {report.plain}"
    reasons = [f"break: {one.reason}" for one in report.breaks]
    reasons += [f"on the host: {report.why_host}"] if report.why_host else []
    if report.programs and report.externs_count:
        reasons.append(f"{report.externs_count} library calls")
    return "; ".join(reasons) if reasons else f"whole, {report.kernels_count} kernels"


def run(name, program):
    n = sorted(program.sizes)[1]
    fn = compiled(program.function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        where = whereabouts(program, n)
        try:
            test_programs.check(program, fn, [n], tolerance=program.tolerance)
        except AssertionError as error:
            return f"fail {name} {where}: {' '.join(str(error).split())[:400]}"
    if "CompileError" in where:
        return f"fail {name} {where}"
    return f"ok {name} {where}"


def main():
    session.LITTLE_WORK = 0
    every = programs.load()
    for name in sys.argv[1:] or every:
        print(run(name, copy.copy(every[name])), flush=True)


if __name__ == "__main__":
    main()
