"""Runs programs of tests/programs with backend "cuda", twice at one size, and compares them with NumPy.

    python programs.py [NAME ...]

Prints one line for each: `ok` or `fail`, the name, and either that all of it ran on the GPU or why it ran on the
host. The GPU may be the emulated one.
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

import cinductor
from cinductor.capture import session


def compiled(function, **settings):
    return cinductor.compile(
        function, backend="cuda", device="cuda", options={"offload": "always"}, **settings
    )


def whereabouts(program, n):
    """The operations of the program that left the GPU."""
    arguments = program.make(n, np.random.default_rng(n))
    try:
        report = cinductor.explain(compiled(program.function), *arguments)
    except Exception as error:
        return f"raises {type(error).__name__}"
    if report.plain is not None:
        return f"runs in NumPy: {report.plain}"
    reasons = [f"break: {one.reason}" for one in report.breaks]
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
