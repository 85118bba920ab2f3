"""Saves the disk cache as one file and loads it on another machine: see `cinductor.cache.save` and `load`."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib

from .. import _core
from ..base.user_frame import wrong
from .trimming import ENTRY

MOST_BYTES = 1 << 30  # of one entry


def folder(what: str) -> str:
    """The folder of the cache. Raises OSError if there is none."""
    found = _core.cache_info()["directory"]
    if not found:
        raise OSError(f"{what}: there is no folder for the disk cache; CINDUCTOR_CACHE_DIR names one")
    return str(found)


def save(path: str | os.PathLike[str]) -> int:
    """See `cinductor.cache.save`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(wrong("save", "path", path, "a path"))
    place, count = folder("save"), 0
    target = os.path.abspath(os.fspath(path))
    handle, passing = tempfile.mkstemp(dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(os.listdir(place)):
                if ENTRY.fullmatch(name):
                    archive.write(os.path.join(place, name), name)
                    count += 1
        os.replace(passing, target)
    except BaseException:
        os.unlink(passing)
        raise
    return count


def load(path: str | os.PathLike[str]) -> int:
    """See `cinductor.cache.load`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(wrong("load", "path", path, "a path"))
    place = folder("load")
    os.makedirs(place, mode=0o700, exist_ok=True)
    try:
        with zipfile.ZipFile(path) as archive:
            rows = archive.infolist()
            for row in rows:  # all of them before the first one is written
                if not ENTRY.fullmatch(row.filename) or row.file_size > MOST_BYTES or row.header_offset < 0:
                    raise ValueError(f"load: {os.fspath(path)} is no cache: it has {row.filename!r}")
                check_contents(archive, row)
            return sum(keep(archive, row, place) for row in rows)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"load: {os.fspath(path)} is no cache that `save` has written: {error}") from None


def check_contents(archive: zipfile.ZipFile, row: zipfile.ZipInfo) -> None:
    """Read an entry to its end, which compares its check sum."""
    with archive.open(row) as entry:
        while entry.read(1 << 20):
            pass


def keep(archive: zipfile.ZipFile, row: zipfile.ZipInfo, place: str) -> bool:
    """Write an entry that does not exist yet, atomically. True if it was written. Its contents are checked when the
    entry is used, like those of any entry.
    """
    target = os.path.join(place, row.filename)
    if os.path.exists(target):
        return False
    handle, passing = tempfile.mkstemp(dir=place)  # readable by this user only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(archive.read(row))
        os.replace(passing, target)
    except BaseException:
        os.unlink(passing)
        raise
    return True
