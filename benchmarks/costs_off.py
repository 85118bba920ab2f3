"""What reports, logs, traces and profiles cost while nobody listens, in instructions, counted by callgrind.

    python benchmarks/costs_off.py

Warm calls: two processes make 2,000 and 22,000 of them, and the difference is 20,000 calls alone. "never
there" has not loaded any of it; in "off again" a report has been made, all logs, a trace and a profile have
been on, and are off. First calls: captures of 20 functions by the interpreter, which starts no compiler;
"taken out" has what tells listeners of a capture replaced by nothing at all.
"""

import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
import logging, sys
import numpy as np
import cinductor
from cinductor import events

how, calls, captures = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = np.linspace(0.0, 1.0, 32)


def f(a, b):
    return np.sqrt(a * 2 + b).sum(), a - b


fast = cinductor.compile(f, backend="interp" if captures else None)
if how == "off again":
    from cinductor.tracing import Trace

    handler = logging.StreamHandler(open(__import__("os").devnull, "w"))
    logging.getLogger("cinductor").addHandler(handler)
    cinductor.set_logs("all")
    events.listeners.append(trace := Trace(sys.argv[4]))
    fast(x, x)
    with cinductor.profile():
        fast(x, x)
    str(cinductor.explain(fast, x, x))
    events.listeners.remove(trace)
    cinductor.set_logs()
    logging.getLogger("cinductor").removeHandler(handler)
if how == "taken out":
    events.begin = lambda job: 0
    events.end = lambda job, began: None
for _ in range(captures):
    cinductor.compile(lambda a, b: (np.sqrt(a * 2 + b).sum(), a - b), backend="interp")(x, x)
if not captures:
    for _ in range(20):
        fast(x, x)
    for _ in range(calls):
        fast(x, x)
"""


def instructions(folder: str, how: str, calls: int, captures: int) -> int:
    """Of one process, with all that its start costs."""
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}"]
    words = [sys.executable, os.path.join(folder, "program.py"), how, str(calls), str(captures)]
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": os.path.join(folder, "cache"), "PYTHONHASHSEED": "0"}
    env |= {"CINDUCTOR_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CINDUCTOR_SAVED_CALLS": "0"}
    done = subprocess.run(
        [*valgrind, *words, os.path.join(folder, "trace")], env=env, capture_output=True, text=True, check=True
    )
    [line] = [line for line in done.stderr.splitlines() if "Collected" in line]
    return int(line.rpartition(":")[2])


def rate(folder: str, how: str, calls: tuple[int, int], captures: tuple[int, int]) -> float:
    """Instructions of one call, or of one capture, more."""
    few, many = (instructions(folder, how, *pair) for pair in zip(calls, captures, strict=True))
    return (many - few) / ((calls[1] - calls[0]) + (captures[1] - captures[0]))


def main() -> None:
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not there")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as out:
            out.write(PROGRAM)
        instructions(folder, "never there", 0, 0)  # fills the cache
        never = rate(folder, "never there", (2000, 22000), (0, 0))
        again = rate(folder, "off again", (2000, 22000), (0, 0))
        captured = rate(folder, "never there", (0, 0), (5, 25))
        without = rate(folder, "taken out", (0, 0), (5, 25))
    print("| instructions of | without | with, off | more |\n|---|---|---|---|")
    print(f"| a warm call | {never:,.1f} | {again:,.1f} | {100 * (again / never - 1):+.2f} % |")
    print(f"| a capture | {without:,.0f} | {captured:,.0f} | {100 * (captured / without - 1):+.2f} % |")


if __name__ == "__main__":
    main()
