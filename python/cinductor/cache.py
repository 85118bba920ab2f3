"""The disk cache of compiled kernels: `$CINDUCTOR_CACHE_DIR`, else the user's cache directory
(XDG).
"""

from __future__ import annotations

import os
from typing import TypedDict

from . import _core


class Info(TypedDict):
    """What `info` tells. directory: "" where there is none; hits, misses, stores, rejected (damaged
    entries): of this process; serves_alone: without a compiler, too.
    """

    directory: str
    entries: int
    bytes: int
    serves_alone: bool
    hits: int
    misses: int
    stores: int
    rejected: int


def info() -> Info:
    """Where the cache is and what it holds."""
    found: Info = _core.cache_info()
    return found


def clear() -> int:
    """Removes every entry and returns how many there were. Kernels in use stay loaded."""
    return _core.cache_clear()


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Uses another directory from now on; None goes back to the default."""
    _core.set_cache_directory(None if path is None else os.fspath(path))
