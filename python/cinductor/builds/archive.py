"""Saves the disk cache as one file and loads it on another machine: see `cinductor.cache.save` and `load`."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from .. import _core
from ..base.user_frame import wrong
from .trimming import ENTRY

DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)  # raised by `zipfile`
MAX_BYTES = 1 << 30  # of one entry


def folder(what: str) -> str:
    """The folder of the cache. Raises OSError if there is none."""
    found = _core.cache_info()["directory"]
    if not found:
        raise OSError(f"{what}: there is no folder for the disk cache; CINDUCTOR_CACHE_DIR names one")
    return str(found)


@contextlib.contextmanager
def replacing(target: str) -> Iterator[IO[bytes]]:
    """A file, readable by this user only, that takes the place of the target at the end; a failure leaves the old one."""
    try:
        handle, passing = tempfile.mkstemp(dir=os.path.dirname(target))
    except OSError as error:
        error.filename = target  # the caller's, and not the temporary file's
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(passing, target)
    except BaseException:
        os.unlink(passing)
        raise


def save(path: str | os.PathLike[str]) -> int:
    """See `cinductor.cache.save`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(wrong("save", "path", path, "a path"))
    place = folder("save")
    target = os.path.abspath(os.fspath(path))
    with replacing(target) as file:
        return pack(sorted(os.path.join(place, name) for name in os.listdir(place)), file)


def pack(paths: list[str], file: IO[bytes]) -> int:
    """Write those of the files that are entries. Returns their number; a file that another process removes is left out."""
    count = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            if ENTRY.fullmatch(os.path.basename(path)):
                with contextlib.suppress(FileNotFoundError):
                    archive.write(path, os.path.basename(path))
                    count += 1
    return count


def load(path: str | os.PathLike[str]) -> int:
    """See `cinductor.cache.load`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(wrong("load", "path", path, "a path"))
    with open(path, "rb") as file:
        return unpack(file, os.fspath(path))


def unpack(file: IO[bytes], name: str) -> int:
    """Add the entries of an archive to the cache, after all of them were checked. Returns the number of new ones."""
    place = folder("load")
    os.makedirs(place, mode=0o700, exist_ok=True)
    try:
        with zipfile.ZipFile(file) as archive:
            rows = archive.infolist()
            for row in rows:
                if not ENTRY.fullmatch(row.filename) or row.file_size > MAX_BYTES or row.header_offset < 0:
                    raise ValueError(f"load: {name} is no cache: it has {row.filename!r}")
                check_contents(archive, row)
            return sum(keep(archive, row, place) for row in rows)
    except DAMAGED as error:
        raise ValueError(f"load: {name} is no cache that `save` has written: {error}") from None


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
    with replacing(target) as file:
        file.write(archive.read(row))
    return True
