"""Programs for several devices: meshes, sharded arrays and collectives, in one process or in several.

    from cinductor.distributed import Mesh, P, all_reduce, shard_map

    mesh = Mesh((2,), ("x",), devices="cuda")
    mean = shard_map(lambda x: all_reduce(x.sum(), "x") / 1000, mesh, in_specs=P("x"), out_specs=P())
    print(mean(np.ones(1000)).numpy())

GPUs need NCCL: the extra `cinductor[nccl]`, or the library that torch brings.
"""

from __future__ import annotations

from .collectives import (
    all_gather,
    all_reduce,
    axis_index,
    axis_size,
    broadcast,
    halo_exchange,
    reduce_scatter,
    send_recv,
)
from .mesh import Mesh
from .rendezvous import initialize, shutdown
from .sharding import P, ShardedArray, shard, shard_map

__all__ = [
    "Mesh",
    "P",
    "ShardedArray",
    "all_gather",
    "all_reduce",
    "axis_index",
    "axis_size",
    "broadcast",
    "halo_exchange",
    "initialize",
    "reduce_scatter",
    "send_recv",
    "shard",
    "shard_map",
    "shutdown",
]
