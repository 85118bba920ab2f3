"""Runs random programs of every generator for some time, in many processes, and writes down each one that differs.

    python tests/support/fuzz.py [--seconds 600] [--processes N] [--out FOLDER] [KIND ...]

Each process runs the programs of one kind, and is replaced after some of them by the kind that is due. One that ends by
itself counts as a failure of the program it ran. Prints how many programs each kind ran and the seeds of those that failed; the
folder has the output of each failure. The exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

os.environ.setdefault("CINDUCTOR_MODE", "now")
os.environ.setdefault("CINDUCTOR_CAPTURE_LIMIT", "inf")
os.environ.setdefault("CINDUCTOR_SAVED_CALLS", "0")

ALONE = 200  # programs of one process
TURN = 20  # seconds that a process counts from its start
STATES = ("run", "ok", "failed")
KINDS = {  # name: share of the time
    "arrays": 4,
    "loops": 3,
    "wide loops": 2,
    "lists": 2,
    "bound": 3,
    "operands": 4,
    "numbers": 4,
    "tuples": 3,
    "memory": 4,
    "sizes": 3,
    "state": 8,
    "changes": 2,
}


def checks():
    """By kind: runs the program of a seed and returns how many programs, or changes, that is."""
    import bound_generator
    import loop_generator
    import number_generator
    import operand_generator
    import size_generator
    import test_changing_world
    import test_fuzz
    import test_hidden_state
    import test_memory
    import test_tuples

    def generated(made, *ways):
        """A program runs in one of these ways, and by chance in others: more programs find more than more ways do."""
        return lambda seed, folder: test_fuzz.check_loops(seed, folder, [ways[seed % len(ways)]], made)

    return {
        "arrays": test_fuzz.check,
        "loops": generated(loop_generator.Generator, "interp", "dynamic", "unfused"),
        "wide loops": generated(loop_generator.Wide, "interp", "dynamic"),
        "lists": generated(loop_generator.Lists, "interp", "dynamic"),
        "bound": generated(bound_generator.Generator, "interp", "dynamic", "unfused"),
        "operands": generated(operand_generator.Generator, "interp", "dynamic"),
        "numbers": generated(number_generator.Generator, "interp", "dynamic"),
        "tuples": test_tuples.check,
        "memory": test_memory.check,
        "sizes": generated(size_generator.Generator, "dynamic", "stencil, dynamic", "c, dynamic"),
        "state": test_hidden_state.check,
        "changes": lambda seed, folder: test_changing_world.explore(
            test_changing_world.of_generator(seed, folder), seed, test_changing_world.TIMES, f"program {seed}"
        ),
    }


def compile_pieces():
    """Compile pieces however little they compute, as the tests' fixture does."""
    from cinductor.calls import budget, job
    from cinductor.capture.pieces import driver

    del driver.PieceJob.keep
    budget.LITTLE_WORK, job.Job.hand_over = 0, lambda *_: None


def work(kind: str, number: int) -> None:
    """Run programs of a kind until there are enough; print the seed before each, then its outcome."""
    import signal

    import refused
    import test_fuzz

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)], cores[(number + 1) % len(cores)]})
    check = checks()[kind]
    if number % 2 or kind not in ("state", "changes"):
        compile_pieces()
    signal.signal(signal.SIGALRM, test_fuzz.stop)
    for _ in range(ALONE):
        seed = int.from_bytes(os.urandom(4), "little")
        print("run", seed, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                with refused.none():
                    done = check(seed, Path(folder))
            except KeyboardInterrupt:
                raise
            except BaseException:
                print("failed", seed, repr(traceback.format_exc()[-12000:]), flush=True)
            else:
                print("ok", seed, done if type(done) is int else 1, flush=True)


class Worker:
    """A process that runs programs of one kind."""

    def __init__(self, kind: str, number: int, folder: Path):
        self.kind, self.number, self.began = kind, number, time.monotonic()
        # A compiler of a process that was ended may still write there.
        self.cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.out = (folder / f"worker{number}.txt").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", kind, "--number", str(number)],
            stdout=self.out,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "CINDUCTOR_CACHE_DIR": self.cache.name},
        )

    def outcomes(self, ended: bool):
        """(state, seed, rest) of each program; the last one is `died` if the process ended in the middle of it."""
        self.out.seek(0)
        own = (line.rstrip("\n").split(" ", 2) for line in self.out if line.endswith("\n"))
        lines = [[*line, ""] for line in own if line[0] in STATES]  # programs print, too
        found = [line for line in lines if line[0] != "run"]
        if ended and lines and lines[-1][0] == "run":
            found.append(["died", lines[-1][1], f"exit status {self.process.returncode}"])
        if ended and not lines:
            found.append(["died", "0", f"exit status {self.process.returncode} before the first program"])
        self.out.close()
        self.cache.cleanup()
        return found


def due(had: Counter[str], kinds: list[str]) -> str:
    """The kind that has had the fewest seconds for its share."""
    return min(kinds, key=lambda kind: had[kind] / KINDS[kind])


def run(kinds: list[str], seconds: float, processes: int, folder: Path) -> int:
    """Keep the processes busy until the time is over."""
    end, ran, failures, had = time.monotonic() + seconds, Counter(), [], Counter()

    def finish(worker: Worker, ended: bool) -> None:
        had[worker.kind] += time.monotonic() - worker.began - TURN
        for state, seed, rest, *_ in worker.outcomes(ended):
            if state == "ok":
                ran[worker.kind] += int(rest)
                continue
            failures.append(f"{worker.kind} {seed}: {state}")
            name = f"{worker.kind.replace(' ', '_')}_{seed}.txt"
            (folder / name).write_text(rest.encode().decode("unicode_escape", "replace"))

    def start(number: int) -> Worker:
        kind = due(had, kinds)
        had[kind] += TURN
        return Worker(kind, number, folder)

    workers = [start(k) for k in range(processes)]
    while time.monotonic() < end:
        time.sleep(0.2)
        for k, worker in enumerate(workers):
            if worker.process.poll() is not None:
                finish(worker, True)
                workers[k] = start(worker.number)
    for worker in workers:
        worker.process.kill()
        worker.process.wait()
        finish(worker, False)
    for kind in kinds:
        print(f"{kind}: {ran[kind]:,}")
    print(f"together: {ran.total():,}, failed: {len(failures)}")
    print(*sorted(failures), sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import folders  # noqa: F401  the tests' folders

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--work", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.number)
        sys.exit()
    place = given.out or Path(tempfile.mkdtemp(prefix="cinductor-fuzz-"))
    place.mkdir(parents=True, exist_ok=True)
    sys.exit(run(given.kinds or [*KINDS], given.seconds, given.processes, place))
