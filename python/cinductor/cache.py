"""The disk cache of compiled kernels: `$CINDUCTOR_CACHE_DIR`, else the user's cache directory
(XDG).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from .counted import CacheInfo


def info() -> CacheInfo:
    """Where the cache is and what it holds."""
    found: CacheInfo = _core.cache_info()
    return found


def clear() -> int:
    """Removes every entry and returns how many there were. Kernels in use stay loaded."""
    return _core.cache_clear()


def save(path: str | os.PathLike[str]) -> int:
    """Writes all that the cache has into one file, and returns how many entries that were. A process with the
    same versions of cinductor, NumPy and Python, on a processor of the same kind, finds them by `load`, without
    a compiler, too. OSError: there is no folder, or the file cannot be written.
    """
    from .archive import save as run

    return run(path)


def load(path: str | os.PathLike[str]) -> int:
    """Takes what `save` has written into the cache, and returns how many entries are new. It is code that later
    processes run: load no file of those whose programs you would not run. ValueError: it is no such file, and
    nothing is taken; OSError: it cannot be read, or nothing can be written.
    """
    from .archive import load as run

    return run(path)


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Uses another directory from now on; None goes back to the default."""
    _core.set_cache_directory(None if path is None else os.fspath(path))
