"""Counts the instructions that reports, logs, traces and profiles cost when they are off, with callgrind.

One process under callgrind makes the same calls several times and writes the counter to a file between them
(`callgrind_control`, whose own instructions are subtracted). It measures warm calls twice: before any of these
modules is loaded, and after a report has been made and all logs, a trace and a profile have been on and off again.
It measures captures on the interpreter, which starts no compiler: as they are, and with the functions that notify
listeners replaced by empty ones.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

CALLS, CAPTURES = 20000, 20

PROGRAM = f"""
import logging, os, subprocess, sys
import numpy as np
import cinductor
from cinductor.diagnosis import events

x = np.linspace(0.0, 1.0, 32)


def f(a, b):
    return np.sqrt(a * 2 + b).sum(), a - b


def mark(name):
    subprocess.run(["callgrind_control", "--dump=" + name, str(os.getpid())], check=True, capture_output=True)


def calls():
    for _ in range({CALLS}):
        fast(x, x)


def captures():
    for _ in range({CAPTURES}):
        cinductor.compile(lambda a, b: (np.sqrt(a * 2 + b).sum(), a - b), backend="interp")(x, x)


def nothing():
    pass


def counted(name, work):
    mark("before")
    work()
    mark(name)


def on_and_off():
    from cinductor.diagnosis.tracing import Trace

    handler = logging.StreamHandler(open(os.devnull, "w"))
    logging.getLogger("cinductor").addHandler(handler)
    cinductor.set_logs("all")
    events.listeners.append(trace := Trace(sys.argv[1]))
    cinductor.compile(f)(x, x)
    with cinductor.profile():
        fast(x, x)
    str(cinductor.explain(fast, x, x))
    events.listeners.remove(trace)
    cinductor.set_logs()
    logging.getLogger("cinductor").removeHandler(handler)


fast = cinductor.compile(f)
calls()
counted("nothing", nothing)
counted("call never", calls)
on_and_off()
counted("call again", calls)
captures()
begin, end = events.begin, events.end
for _ in range(2):
    events.begin, events.end = begin, end
    counted("capture with", captures)
    events.begin, events.end = (lambda job: 0), (lambda job, began: None)
    counted("capture without", captures)
"""


def counts(folder: str) -> dict[str, int]:
    """Instructions between two marks, by the name of the second mark; the minimum over marks of one name."""
    with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as out:
        out.write(PROGRAM)
    written = os.path.join(folder, "callgrind.out")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={written}", sys.executable]
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": os.path.join(folder, "cache"), "PYTHONHASHSEED": "0"}
    env |= {"CINDUCTOR_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CINDUCTOR_SAVED_CALLS": "0"}
    words = [os.path.join(folder, "program.py"), os.path.join(folder, "trace")]
    subprocess.run([*command, *words], env=env, check=True, capture_output=True)
    found: dict[str, int] = {}
    for name in os.listdir(folder):
        if name.startswith("callgrind.out."):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                text = file.read()
            mark = re.search(r"^desc: Trigger: dump (.*)$", text, re.M)
            total = re.search(r"^summary: (\d+)$", text, re.M)
            if mark and total:
                found[mark[1]] = min(found.get(mark[1], sys.maxsize), int(total[1]))
    return found


def main() -> None:
    if shutil.which("callgrind_control") is None:
        sys.exit("valgrind is not there")
    with tempfile.TemporaryDirectory() as folder:
        found = counts(folder)
    print("| instructions of | without | with, off | more |\n|---|---|---|---|")
    for what, without, off, count in (
        ("a warm call", "call never", "call again", CALLS),
        ("a capture", "capture without", "capture with", CAPTURES),
    ):
        before, after = ((found[name] - found["nothing"]) / count for name in (without, off))
        print(f"| {what} | {before:,.0f} | {after:,.0f} | {100 * (after / before - 1):+.2f} % |")


if __name__ == "__main__":
    main()
