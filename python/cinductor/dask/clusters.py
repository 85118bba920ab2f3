"""Kernels of this process for the workers of a cluster: files of the disk cache, whose names are hashes of what they were built from."""

from __future__ import annotations

import io
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

from distributed import WorkerPlugin

from .. import _core
from ..builds.archive import pack, unpack
from ..builds.trimming import entries
from .blocks import BlockProgram


def started() -> float:
    """When this process began, in seconds since 1970."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # since the machine was started
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK") - 1


class CacheOfClient(WorkerPlugin):  # type: ignore[misc]
    """Adds entries of the client's disk cache to a worker's, also when a worker is started again.

    An entry is found by the hash of its source, compiler and processor level, so a worker with another processor builds its own.
    """

    name = "cinductor-cache"
    idempotent = False

    def __init__(self, bundle: bytes) -> None:
        self.bundle = bundle

    def setup(self, worker: Any) -> None:
        """Add the entries that the worker's cache does not have. A cache that cannot be written is left as it is."""
        try:
            unpack(io.BytesIO(self.bundle), "the client's cache")
        except OSError as error:
            logging.getLogger("cinductor.cache").warning("kernels of the client were not stored: %s", error)


def share_cache(client: Any, *collections: Any, everything: bool = False) -> int:
    """Give all workers of a cluster, present and future, the kernels and captures that this process has used.

    Workers then need no compiler. The entries are code: workers trust the client, as they do for tasks.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    *collections
        Results of functions from `cinductor.dask.compile`, whose programs are built here first.
    everything : bool
        Send the whole disk cache, instead of the entries used since this process began.

    Returns
    -------
    int
        The number of entries.

    Raises
    ------
    OSError
        If this process has no disk cache.
    """
    folder = _core.cache_directory()
    if not folder:
        raise OSError("share_cache: there is no folder for the disk cache; CINDUCTOR_CACHE_DIR names one")
    for program in {program.text: program for program in programs_of(collections)}.values():
        program.program()
    bundle, since = io.BytesIO(), started()
    count = pack([e.path for e in entries(folder) if everything or e.last_use >= since], bundle)
    client.register_plugin(CacheOfClient(bundle.getvalue()))
    return count


def programs_of(collections: tuple[Any, ...]) -> Iterator[BlockProgram]:
    """The programs of blocks in the graphs of collections."""
    for collection in collections:
        for task in dict(collection.__dask_graph__()).values():
            if type(task) is tuple and isinstance(task[0], BlockProgram):
                yield task[0]
