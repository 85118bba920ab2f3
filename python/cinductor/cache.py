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


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Uses another directory from now on; None goes back to the default."""
    _core.set_cache_directory(None if path is None else os.fspath(path))
