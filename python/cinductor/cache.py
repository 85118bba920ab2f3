"""The disk cache of compiled kernels: `$CINDUCTOR_CACHE_DIR`, or else the user's cache directory (XDG)."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from .diagnosis.stats_types import CacheInfo


def info() -> CacheInfo:
    """Return where the cache is and what it contains.

    Returns
    -------
    CacheInfo
        A dict with the folder, the number of entries and their bytes.
    """
    found: CacheInfo = _core.cache_info()
    return found


def clear(older: float | None = None) -> int:
    """Remove entries. Kernels in use stay loaded.

    Parameters
    ----------
    older : float, optional
        Only those that were not used for this many days; None: all.

    Returns
    -------
    int
        The number of removed entries.

    Raises
    ------
    TypeError, ValueError
        If older is not a number; if it is negative.
    """
    if older is None:
        return _core.cache_clear()
    from .builds.trimming import check_amount, entries, remove

    check_amount("clear", "older", older)
    last = time.time() - 86_400 * older
    return remove([entry for entry in entries(_core.cache_info()["directory"]) if entry.last_use < last])


def trim(megabytes: float) -> int:
    """Remove the entries used longest ago until the others have at most this size.

    The option `cache_limit` does this by itself from 5,000 megabytes on.

    Parameters
    ----------
    megabytes : float
        The size that may remain.

    Returns
    -------
    int
        The number of removed entries.

    Raises
    ------
    TypeError, ValueError
        If megabytes is not a number; if it is negative.
    """
    from .builds.trimming import check_amount
    from .builds.trimming import trim as run

    check_amount("trim", "megabytes", megabytes)
    return run(int(megabytes * 1_000_000))


def save(path: str | os.PathLike[str]) -> int:
    """Write the whole cache to one file.

    A process with the same versions of cinductor, NumPy and Python, on a processor of the same level, can `load` it, also without a
    compiler.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    int
        The number of entries.

    Raises
    ------
    OSError
        If there is no cache folder, or the file cannot be written.
    """
    from .builds.archive import save as run

    return run(path)


def load(path: str | os.PathLike[str]) -> int:
    """Add the entries of a file written by `save` to the cache.

    The file is code that later processes run: load it only if you would run its author's programs.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    int
        The number of new entries.

    Raises
    ------
    ValueError
        If the file was not written by `save`; nothing is added.
    OSError
        If it cannot be read, or the cache cannot be written.
    """
    from .builds.archive import load as run

    return run(path)


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Use another folder from now on.

    Parameters
    ----------
    path : path or None
        The folder; None: the default one.
    """
    _core.set_cache_directory(None if path is None else os.fspath(path))
