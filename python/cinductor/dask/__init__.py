"""Functions of dask arrays in fused blocks, and the caches of workers. Needs the extra `cinductor[dask]`.

    f = cinductor.dask.compile(fn)          # fn: ordinary NumPy code, written for whole arrays
    y = f(x)                                # x, y: dask arrays; each block runs fused kernels
    cinductor.dask.share_cache(client)      # workers get the kernels that this process has

A function from `cinductor.compile` also runs as it is in `map_blocks`, `blockwise`, `delayed` and in clusters.
"""

from __future__ import annotations

from .clusters import CacheOfClient as CacheOfClient
from .clusters import share_cache
from .functions import compile

__all__ = ["compile", "share_cache"]
