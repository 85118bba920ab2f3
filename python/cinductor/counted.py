"""What `stats` and `cache.info` tell, by keys: for those who check types."""

from __future__ import annotations

from typing import TypedDict


class Counters(TypedDict):
    """What `stats` counts."""

    calls: int
    captures: int
    recompiles: int
    specializations: int
    pieces: int
    eager: int
    replayed: int


class FunctionStats(Counters):
    """Of the functions of one name."""

    reasons: list[str]
    races: list[str]
    numpy: list[str]


class Stats(Counters):
    """Of all functions, and by name."""

    functions: dict[str, FunctionStats]


class CacheInfo(TypedDict):
    """What `cache.info` tells. directory: "" where there is none; hits, misses, stores, rejected (damaged
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
