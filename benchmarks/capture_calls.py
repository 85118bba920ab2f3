"""Counts the Python calls and the files of the package that the first call of a small loop passes through.

    python benchmarks/capture_calls.py

Another loop is captured before, so that work done once per process is not counted. Nothing is read from the disk
cache. Steps of generators count as calls, and so do comprehensions in versions of Python that make functions of
them (before 3.12).
"""

from __future__ import annotations

import collections
import os
import sys
import tempfile
from typing import Any

PACKAGE = os.sep + "cinductor" + os.sep


def passed_through(call: Any) -> collections.Counter[tuple[str, str]]:
    """How often each function of the package was called, by file and name."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CINDUCTOR_CACHE_DIR"] = folder
        import numpy as np

        import cinductor

        def before(x: Any) -> Any:
            total = 0.0
            for i in range(x.shape[0]):
                if x[i] > 0:
                    total += x[i]
            return total

        def cumulative(x: Any) -> Any:
            for i in range(1, x.shape[0]):
                x[i] += x[i - 1]
            return x.sum()

        cinductor.compile(before, mode="now")(np.arange(5.0))
        compiled = cinductor.compile(cumulative, mode="now")
        found = passed_through(lambda: compiled(np.arange(10.0)))
        files: collections.Counter[str] = collections.Counter()
        for (file, _), count in found.items():
            files[file] += count
        made = sum(n for (_, name), n in found.items() if name.startswith("<"))
        print(f"{sum(files.values())} calls, {made} of them of comprehensions, in {len(files)} files")
        for file, count in files.most_common():
            print(f"{count:6} {file}")


if __name__ == "__main__":
    main()
