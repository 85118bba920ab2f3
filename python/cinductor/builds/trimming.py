"""The size limit of the disk cache: entries used longest ago are removed first.

The time of an entry's last use is its file's time of change: reading an entry sets it (csrc/host/cache.c). A process looks at the
folder after its first stored kernel and then after every `EVERY`-th, in the thread that compiled. The first look is left out if a process has
looked within the last `PAUSE` seconds, because a look takes a second for 50,000 files. The time of the file `LOOKED` is that of the last look.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Any

from .. import _core
from ..base.class_lookup import is_a
from ..base.records import NamedTuple
from ..base.signals import pass_on
from ..base.user_frame import wrong

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


def check_amount(function: str, name: str, value: Any) -> None:
    """Raise TypeError if an argument is not a number, and ValueError if it is negative or NaN."""
    if not is_a(value, int | float) or not value >= 0:
        error = ValueError if is_a(value, int | float) else TypeError
        raise error(wrong(f"cache.{function}", name, value, "a number of at least 0"))


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
    is_first = _seen[0] == 0
    if not megabytes or not stores or (not is_first and abs(stores - _seen[0]) < EVERY):
        return
    _seen[0], folder = stores, _core.cache_directory()
    if not folder or (is_first and not is_due(folder)):
        return
    note_look(folder)
    if sum(entry.size for entry in entries(folder)) > megabytes * 1_000_000:
        trim(int(SLACK * megabytes * 1_000_000))


def is_due(folder: str) -> bool:
    """True if no process has looked at the folder for a while."""
    try:
        return abs(time.time() - os.stat(os.path.join(folder, LOOKED)).st_mtime) >= PAUSE
    except OSError as error:
        pass_on(error)
        return True


def note_look(folder: str) -> None:
    """Set the time of the last look. In a folder that cannot be written, each process looks."""
    with contextlib.suppress(OSError), open(os.path.join(folder, LOOKED), "w", encoding="ascii") as file:
        file.write("the time of this file is that of the last look at the size of the folder\n")
