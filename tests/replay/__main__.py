"""Saves what one build compiles and computes for a corpus of programs, and compares the files of two builds.

    python tests/replay save FILE [GROUP ...]     with the python of the build
    python tests/replay compare BEFORE AFTER      shows differences by level; exit status 1 if bits differ

`make replay BASE=<commit>` does both, for that commit and for the current tree. A file has a line for each call:
the texts of all compiled levels, a hash of all bits of its result and of its arguments after the call, and its
time. Calls that compile nothing are timed five times, and the minimum is stored. The group `captures` only stores
the results of capture, for all programs and for the seeds of every generator: graphs, guards, recipes of results,
breaks, and the regions that loops and branches became.
"""

from __future__ import annotations

import collections
import difflib
import gc
import gzip
import hashlib
import json
import math
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

CAPTURE = ["regions", "breaks", "guards", "recipe"]  # levels that are not texts of the core
LEVELS = [*CAPTURE, "graph", "dce", "loops", "kernels", "procs", "wrapper", "source"]
SHOWN = 3  # differences printed per level
ALL = ["programs", "operations", "generated", "graphs"]
TIMED = 5
LONGEST = 30  # seconds per call
SECTION = re.compile(r"^--- (\w+)\n", re.M)


# --- save ---


def save(path: Path, groups: list[str]) -> int:
    """Runs the corpus and writes down what happened."""
    with tempfile.TemporaryDirectory(prefix="replay-") as name:
        folder = Path(name)
        os.environ["CINDUCTOR_CACHE_DIR"] = str(folder / "cache")
        os.environ["CINDUCTOR_CAPTURE_LIMIT"] = "inf"
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGALRM, stop)
        from cases import CAPTURED, WAYS, cases

        captured: dict[str, list[str]] = collections.defaultdict(list)
        levels = settle(captured, groups == ["captures"])
        path.parent.mkdir(parents=True, exist_ok=True)
        dump = Dump(folder / "dump", captured)
        gc.disable()  # collected at fixed points only: a program that has died is compiled again, so its death must not depend on timing
        with gzip.open(path, "wt") as out:
            print(json.dumps({"levels": levels}), file=out)
            for number, (group, case, make) in enumerate(cases(folder)):
                if number % 64 == 0:
                    gc.collect()
                if group not in (groups or ALL):
                    continue
                for way, options in (CAPTURED if group == "captures" else WAYS).items():
                    for record in run_case(make, options, dump, group != "captures"):
                        print(json.dumps({"key": f"{group}: {case}, {way}, {record.pop('call')}", **record}), file=out)
                print(f"\r{group}: {case}".ljust(79), end="", file=sys.stderr)
    print(file=sys.stderr)
    return 0


def settle(captured: dict[str, list[str]], is_capture_only: bool) -> list[str]:
    """Remove every dependence on time: all pieces are compiled, none is timed against NumPy. Results of captures are
    recorded. Returns the levels of this build.
    """
    import cinductor
    from cinductor.capture import session

    try:
        from cinductor.calls import budget
        from cinductor.capture.pieces import driver
    except ImportError:  # a build without these functions
        from cinductor import race as budget
        from cinductor.capture import driver

    keep = session.keep

    def noted(job: Any, compiled: Any, stage: Any, outcome: Any, specialization: Any) -> None:
        captured["regions"] += map(str, outcome.regions)
        captured["breaks"] += [f"{b.reason}, line {b.line}" for b in outcome.breaks]
        if specialization is not None:
            captured["guards"] += specialization.guards
            captured["recipe"] += map(text_of_piece, specialization.recipe)
        keep(job, compiled, stage, outcome, specialization)

    session.keep = noted
    if "keep" in vars(driver.PieceJob):
        del driver.PieceJob.keep
    budget.LITTLE_WORK = session.LITTLE_WORK = 0
    budget.PIECES = 1 << 30
    if "cinductor.calls.job" in sys.modules:
        sys.modules["cinductor.calls.job"].Job.hand_over = lambda *_: None
    levels = ["graph"] if is_capture_only else LEVELS[len(CAPTURE) :]
    try:
        cinductor.compile(lambda x: x + 1, options={"dump": ",".join(levels)})(1.0)
    except ValueError:
        levels.remove("procs")
    captured.clear()
    os.environ["CINDUCTOR_DUMP"] = ",".join(levels)
    cinductor.config.dump = ",".join(levels)
    return [*CAPTURE, *levels]


class Dump:
    """The stderr output of the process while something runs, and the captured output."""

    def __init__(self, path: Path, captured: dict[str, list[str]]) -> None:
        self.file, self.captured = path.open("w+b"), captured

    def of(self, call: Any) -> tuple[Any, str]:
        """The result of a call, and the text that was written."""
        self.file.seek(0)
        self.file.truncate()
        self.captured.clear()
        kept = os.dup(2)
        sys.stderr.flush()
        os.dup2(self.file.fileno(), 2)
        try:
            made = call()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
        self.file.seek(0)
        return made, self.file.read().decode(errors="replace")


def text_of_piece(row: tuple[Any, ...]) -> str:
    """A piece of a recipe, without objects that have no text of their own."""
    kind, number, memo, value_kind, given, _, *rest = row
    is_plain = given is None or type(given) in (int, float, str)
    return f"{kind} {number} {memo} {value_kind} {given if is_plain else getattr(given, '__name__', type(given).__name__)} {rest}"


def run_case(make: Any, options: dict[str, Any], dump: Dump, is_timed: bool) -> list[dict[str, Any]]:
    """A record for each call of a case."""
    records = []
    for name, call in make(options):
        began = time.perf_counter()
        (result, error), text = dump.of(lambda call=call: outcome(call))
        seconds = time.perf_counter() - began
        made = {level: "".join(f"{line}\n" for line in lines) for level, lines in dump.captured.items()}
        levels = {level: without_places(text) for level, text in (made | sections(text)).items()}
        record = {"call": name, "bits": bits_of(result), "error": error, "seconds": seconds, "levels": levels}
        if is_timed and not levels and error is None:
            record["seconds"] = min([seconds, *(timed(call) for _ in range(TIMED - 1))])
        records.append(record)
    return records


def without_places(text: str) -> str:
    """A text without addresses and folders, so that it does not depend on the process and the tree."""
    return re.sub(r"\b0x[0-9a-f]{6,}\b|/(?:[\w.-]+/)+(?=\w+\.py\b)", "", text)


class Endless(BaseException):
    """A call takes too long."""


def stop(*_: Any) -> None:
    raise Endless


def outcome(call: Any) -> tuple[Any, str | None]:
    signal.alarm(LONGEST)
    try:
        return call(), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a failed check is not an Exception
        return None, f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def timed(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def sections(text: str) -> dict[str, str]:
    """The texts of each level; those of several programs are concatenated."""
    found: dict[str, str] = collections.defaultdict(str)
    parts = SECTION.split(text)
    for level, body in zip(parts[1::2], parts[2::2]):
        found[level] += body
    return found


def bits_of(value: Any) -> str:
    """A hash of kinds, dtypes, shapes and all bits of a value. All NaN are equal."""
    seen = hashlib.sha256()
    note(value, seen.update, 0)
    return seen.hexdigest()[:16]


def note(value: Any, add: Any, depth: int) -> None:
    import numpy as np

    add(type(value).__name__.encode())
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        add(f"{value.dtype}{value.shape}".encode())
        items = np.asarray(value)
        if items.dtype.kind in "fc":
            items = np.where(items == items, items, np.nan).astype(items.dtype)
        add(items.tobytes())
    elif isinstance(value, list | tuple | np.ndarray):
        for item in value:
            note(item, add, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            add(repr(key).encode())
            note(item, add, depth + 1)
    elif isinstance(value, np.random.Generator):
        add(repr(value.bit_generator.state).encode())
    elif hasattr(value, "__dict__") and depth < 8 and not callable(value):
        note(vars(value), add, depth + 1)
    elif type(value).__repr__ is not object.__repr__ and not callable(value):
        add(re.sub(r"0x[0-9a-f]+", "", repr(value)).encode())


# --- compare ---


def load(path: Path) -> tuple[list[str], dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        head = json.loads(next(lines))
        records: dict[str, Any] = {}
        for line in lines:
            record = json.loads(line)
            key = record.pop("key")
            records[f"{key} again" if key in records else key] = record
        return head["levels"], records


def compare(before: Path, after: Path) -> int:
    """Print the differences, the highest level first: it causes those below."""
    (levels, old), (new_levels, new) = load(before), load(after)
    print(f"{len(old)} calls before, {len(new)} after; {len(old.keys() ^ new.keys())} in one of both only")
    both = [key for key in old if key in new]
    for level in (level for level in LEVELS if level in levels and level in new_levels):
        pairs = [(key, old[key]["levels"].get(level, ""), new[key]["levels"].get(level, "")) for key in both]
        show(level, [(key, a, b) for key, a, b in pairs if a != b], len(both))
    for what in ("error", "bits"):
        pairs = [(key, old[key][what], new[key][what]) for key in both]
        show(what, [(key, str(a), str(b)) for key, a, b in pairs if a != b], len(both))
    show_times(old, new, both)
    return int(any(old[key]["bits"] != new[key]["bits"] for key in both))


def show(what: str, differing: list[tuple[str, str, str]], count: int) -> None:
    print(f"\n{what}: {len(differing)} of {count} differ")
    for key, a, b in differing[:SHOWN]:
        print(f"  {key}")
        lines = [*difflib.unified_diff(a.splitlines(), b.splitlines(), lineterm="", n=1)][2:]
        print("".join(f"    {line}\n" for line in lines[:24]), end="")


def show_times(old: dict[str, Any], new: dict[str, Any], both: list[str]) -> None:
    """Ratios of times, after to before: of calls that compiled, and of later calls."""
    kinds = {"calls that compile": True, "calls of what is compiled": False}
    for kind, compiles in kinds.items():
        ratios = sorted(
            (new[key]["seconds"] / old[key]["seconds"], key)
            for key in both
            if ", interp" not in key and bool(old[key]["levels"]) == compiles == bool(new[key]["levels"])
        )
        if not ratios:
            continue
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        worst = ", ".join(f"{ratio:.2f} {key}" for ratio, key in ratios[:-4:-1])
        print(f"\n{kind}: {len(ratios)}, geometric mean of after / before {mean:.3f}; the worst {worst}")


def main(arguments: list[str]) -> int:
    if len(arguments) >= 2 and arguments[0] == "save":
        return save(Path(arguments[1]), arguments[2:])
    if len(arguments) == 3 and arguments[0] == "compare":
        return compare(Path(arguments[1]), Path(arguments[2]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
