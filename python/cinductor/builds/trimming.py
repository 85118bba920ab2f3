"""The size limit of the disk cache: entries used longest ago are removed first.

The time of an entry's last use is its file's time of change: reading an entry sets it (csrc/host/cache.c). A process looks at the
folder after its first stored kernel and then after every `EVERY`-th, in the thread that compiled. The first look is left out if a process has
looked within the last `PAUSE` seconds, because a look takes a second for 50,000 files. The time of the file `LOOKED` is that of the last first look.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import NamedTuple

from .. import _core

ENTRY = re.compile(r"[0-9a-f]{64}\.[a-z]{2,16}")  # kernels, what is known of them, captures, sizes

EVERY = 64  # kernels that a process stores between two looks at the folder
PAUSE = 600
LOOKED = "last.look"
SLACK = 0.9  # of the limit remains, so that the next kernel does not trim again
_seen = [0]  # kernels that were stored at the last look


class Entry(NamedTuple):
    """One file of the cache."""

    last_use: float  # seconds since 1970
    size: int
    path: str


def entries(folder: str) -> list[Entry]:
    """The entries of a folder, the one used longest ago first."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process may have removed it
                if ENTRY.fullmatch(file.name):
                    status = file.stat(follow_symlinks=False)
                    found.append(Entry(status.st_mtime, status.st_size, file.path))
    return sorted(found)


def remove(chosen: list[Entry]) -> int:
    """Remove entries; returns how many were there."""
    count = 0
    for entry in chosen:
        with contextlib.suppress(OSError):
            os.unlink(entry.path)
            count += 1
    return count


def trim(most_bytes: int) -> int:
    """Remove entries used longest ago until the others have at most this many bytes; returns how many were removed."""
    found = entries(_core.cache_directory())
    left, chosen = sum(entry.size for entry in found), []
    for entry in found:
        if left <= most_bytes:
            break
        left -= entry.size
        chosen.append(entry)
    return remove(chosen)


def keep_within(megabytes: int) -> None:
    """Called after a capture: enforce the limit if enough kernels were stored since the last time. 0: no limit."""
    stores = _core.cache_stores()
    if megabytes and stores and (_seen[0] == 0 or abs(stores - _seen[0]) >= EVERY):
        is_first, _seen[0] = _seen[0] == 0, stores
        folder = _core.cache_directory()
        if (not is_first or is_due(folder)) and sum(entry.size for entry in entries(folder)) > megabytes * 1_000_000:
            trim(int(SLACK * megabytes * 1_000_000))


def is_due(folder: str) -> bool:
    """True if no process has looked at the folder for a while; this one does now."""
    path = os.path.join(folder, LOOKED)
    with contextlib.suppress(OSError):
        if abs(time.time() - os.stat(path).st_mtime) < PAUSE:
            return False
    with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
        file.write("the time of this file is that of the latest look at the folder\n")
    return True
