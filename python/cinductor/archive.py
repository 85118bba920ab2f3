"""Saves the disk cache as one file and loads it on another machine: see `cinductor.cache.save` and `load`."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile

from . import _core
from .user_frame import wrong

# Kernels of a processor or card, what is known of them, captures, learnt sizes.
ENTRY = re.compile(r"[0-9a-f]{64}\.[a-z]{2,16}")
MOST_BYTES = 1 << 30  # of one entry


def folder(what: str) -> str:
    """The cache's. Raises OSError where there is none."""
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
                if not ENTRY.fullmatch(row.filename) or row.file_size > MOST_BYTES:
                    raise ValueError(f"load: {os.fspath(path)} is no cache: it has {row.filename!r}")
            return sum(keep(archive, row, place) for row in rows)
    except zipfile.BadZipFile as error:
        raise ValueError(f"load: {os.fspath(path)} is no cache that `save` has written: {error}") from None


def keep(archive: zipfile.ZipFile, row: zipfile.ZipInfo, place: str) -> bool:
    """Writes an entry that is not there, all of it or nothing; whether it was not. What it holds is checked
    as any entry is, when it is used.
    """
    target = os.path.join(place, row.filename)
    if os.path.exists(target):
        return False
    handle, passing = tempfile.mkstemp(dir=place)  # for this user alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(archive.read(row))
        os.replace(passing, target)
    except BaseException:
        os.unlink(passing)
        raise
    return True
