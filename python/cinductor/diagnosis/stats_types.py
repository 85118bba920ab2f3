"""The types of the results of `stats` and `cache.info`, and the counting of `stats`."""

from __future__ import annotations

import weakref
from typing import Any, TypedDict


class Counters(TypedDict):
    """The counters of `stats`."""

    calls: int
    captures: int
    recompiles: int
    specializations: int
    pieces: int
    eager: int
    replayed: int


class EconomyStats(TypedDict):
    """Seconds: of calls that NumPy has run until captures and builds were paid for, of captures, and of builds in the background."""

    plain: float
    captured: float
    built: float


class FunctionStats(Counters):
    """The counters of the functions of one name."""

    economy: EconomyStats
    reasons: list[str]
    races: list[str]
    numpy: list[str]


class Stats(Counters):
    """The counters of all functions, and by name."""

    economy: EconomyStats
    functions: dict[str, FunctionStats]


class CacheInfo(TypedDict):
    r"""The result of `cache.info`.

    directory: "" if there is none; hits, misses, stores, rejected (damaged entries): of this process; serves_alone:
    it is used without a compiler, too.
    """

    directory: str
    entries: int
    bytes: int
    serves_alone: bool
    hits: int
    misses: int
    stores: int
    rejected: int


COUNTERS = ("calls", "captures", "recompiles", "specializations", "pieces", "eager", "replayed")
SPENT = ("plain", "captured", "built")
alive: dict[int, weakref.ref[Any]] = {}  # compiled functions by id; other threads compile while this is iterated
gone = dict.fromkeys(COUNTERS, 0)  # of functions that no longer exist, since `forget`


def row_of(compiled: Any) -> dict[str, int]:
    """The counters of one compiled function."""
    job = compiled._cinductor_job
    plan = job.plan
    return {
        "calls": compiled.calls,
        "captures": job.counts["captures"],
        "recompiles": job.counts["recompiles"],
        "specializations": len(compiled.specializations),
        "pieces": 0 if plan is None else len(plan.pieces),
        "eager": job.counts["eager"] + compiled.failed_checks + compiled.plain_calls,
        "replayed": sum(part["replayed"] for program in programs_of(compiled) for part in program.recordings or ()),
    }


def programs_of(compiled: Any) -> list[Any]:
    """The programs that calls of the function run: its own, those of its pieces, and those for device arrays."""
    job = compiled._cinductor_job
    own = [*(one.program for one in compiled.specializations), *vars(job).get("segments", ())]
    twins = [program for twin in job.__dict__.get("twins", {}).values() for program in programs_of(twin)]
    return list({id(program): program for program in (*own, *twins) if program is not None}.values())


def retire(compiled: Any) -> None:
    """A compiled function is deleted: its counters are added to the totals."""
    alive.pop(id(compiled), None)
    for name, count in row_of(compiled).items():
        gone[name] += count if name not in ("specializations", "pieces") else 0


def forget(functions: list[Any]) -> None:
    """Reset all counters to 0."""
    gone.update(dict.fromkeys(COUNTERS, 0))
    for compiled in functions:
        compiled.calls = compiled.failed_checks = compiled.plain_calls = 0
        compiled._cinductor_job.counts = dict.fromkeys(compiled._cinductor_job.counts, 0)
