"""Which memory an array may be.

Branches and loops hand arrays on by value: in the graph what an `if` merges, or a trip hands to the
next, is an array of its own; in NumPy it is one of several of before. Nobody can tell as long as
none of them is written to, nor returned as itself. So for every such array it is known which
others it may be, and whether an other is `alone`: made in the call, and known by no name but the one
whose value was merged. One that is alone may be written to under the new name, and is then noted as
overwritten, for the loop whose trips were handed it.

The lists are closed: what a value may be has in it what those values may be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _core
from ..value.objects import Traced
from ..value.state import is_same, references

RegionBreak = _core.RegionBreak
Path = tuple[tuple[int, int], ...]  # the tests that were decided, the last first, and which way
MOST_PATHS = 8  # to one array, told apart


class Source(NamedTuple):
    """An array that a value may be; looped: how often a loop runs decides whether it is; loose: it
    is the value itself, and lies otherwise in NumPy's memory.
    """

    array: Any
    alone: bool = False
    looped: bool = False
    loose: bool = False
    path: Path = ()

    @property
    def storage(self) -> int:
        return self.array.storage

    def excludes(self, other: Source) -> bool:
        """Whether no run of the program goes both ways."""
        ways = dict(self.path)
        return any(ways.get(test, way) != way for test, way in other.path)


Records = dict[int, tuple[Any, list[Source]]]  # by storage: a value, and what it may be


def distinct(sources: list[Source]) -> list[Source]:
    """Each array once in each way, however many paths lead to it: two that only the last test tells
    apart are one without it, and of many what all have in common stays.
    """
    found: dict[Any, tuple[Source, set[Path]]] = {}
    for source in sources:
        way = (id(source.array), source.alone, source.looped, source.loose)
        found.setdefault(way, (source, set()))[1].add(source.path)
    return [source._replace(path=p) for source, paths in found.values() for p in joined(paths)]


def joined(paths: set[Path]) -> list[Path]:
    """The fewest paths that are known to say the same, in order."""
    left = set(paths)
    kept: list[Path] = []
    while left:
        path = min(left, key=lambda p: (len(p), p))
        left.remove(path)
        if path and (other := ((path[0][0], 1 - path[0][1]), *path[1:])) in left:
            left.remove(other)
            left.add(path[1:])
        elif not any(set(other) <= set(path) for other in kept):
            kept.append(path)
    if len(kept) <= MOST_PATHS:
        return kept
    return [tuple(test for test in kept[0] if all(test in path for path in kept))]


def sources_in(records: Records, value: Any) -> list[Source]:
    """The arrays that a value may be, itself first."""
    found = records.get(value.storage)
    return [Source(value)] if found is None else [Source(value), *found[1]]


def is_loose(records: Records, value: Any) -> bool:
    """Whether memory made in this call has the value with gaps or backwards, where one handed on by
    value has it densely. What Python's caller has is a source anyway.
    """
    if any(source.loose for source in sources_in(records, value)):
        return True
    return value.whole.is_fresh and not value.is_dense


def count_in(records: Records, roots: list[Any], storage: int) -> int:
    """How many values among these, and in containers that they reach, may be of that memory."""
    storages = {storage}
    for other, (_, sources) in records.items():
        if any(source.storage == storage for source in sources):
            storages.add(other)
    return references(roots, lambda value: value.storage in storages)


class Aliases:
    """What is known of the values of one call."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.records: Records = {}  # replaced, never changed
        self.overwritten: set[int] = set()  # storages that were alone, written to as another value

    def set_records(self, records: Records) -> None:
        """What was known at another time."""
        self.records = records
        self.stage.tracer.forbids_breaks = any(map(self.is_shared, records))

    def is_shared(self, storage: int) -> bool:
        """Whether it may be an array that another name has."""
        return not all(source.alone for source in self.records[storage][1])

    def sources(self, value: Any) -> list[Source]:
        """The arrays that a value may be, itself first."""
        return sources_in(self.records, value)

    def add(self, value: Any, sources: list[Source]) -> None:
        """The value may be one of several arrays, by value."""
        if not sources:
            return
        sources = distinct([*self.records.get(value.storage, (value, []))[1], *sources])
        is_shared = not all(source.alone for source in sources)
        if is_shared and not (self.stage.may_check() or self.stage.tracer.in_region):
            raise RegionBreak("an array that may be one of several", "", 0)
        self.set_records({**self.records, value.storage: (value, sources)})

    def link(self, a: Any, b: Any) -> None:
        """Two values may be one array."""
        self.add(a, [source._replace(alone=False) for source in self.sources(b)])

    def loosen(self, value: Any) -> None:
        """The value lies otherwise in NumPy's memory."""
        self.add(value, [Source(value, loose=True)])

    def forget(self, values: list[Any]) -> None:
        """Values that nobody can reach any more."""
        gone = {v.storage for v in values if type(v) is Traced and v.kind == "array"}
        if gone & self.records.keys():
            self.set_records({k: v for k, v in self.records.items() if k not in gone})

    # --- where it matters ---

    def before_write(self, target: Any) -> None:
        """A write to an array that may be another, or that another may be."""
        for storage, (_, sources) in self.records.items():
            is_it = target.storage == storage
            for source in sources:
                if not source.alone and (is_it or target.storage == source.storage):
                    raise RegionBreak("a write to an array that may be one of several", "", 0)
                if is_it:
                    self.overwritten.add(source.storage)

    def note_distinct(self, a: Any, b: Any) -> None:
        """Somebody asked whether two values are one object, and they are not: nor is anything that
        they may be, now and in each trip of the loops at work.
        """
        for source in self.sources(a):
            for other in self.sources(b):
                is_itself = source.array is a and other.array is b
                if source.excludes(other):
                    continue
                if source.storage == other.storage and not is_itself:
                    raise RegionBreak("whether an array is another of several", "", 0)
                for loop in self.stage.regions.active:
                    if loop.carried is not None:
                        loop.carried.note_distinct(source.array, other.array)

    def before_return(self, results: list[Any]) -> None:
        """An array that may be one of several is returned by value, where nobody can tell: it was
        made in this call, and is returned, if at all, as this one. Where a loop that runs decides, it
        is another if it has other items; the program checks that.
        """
        taken: dict[int, list[Source]] = {}  # by storage
        shared: list[tuple[Any, Source]] = []
        for value in {result.storage: result for result in results}.values():
            sources = self.sources(value.whole)
            for source in sources:
                if not all(map(source.excludes, taken.get(source.storage, ()))):
                    raise RegionBreak("an array that may be one of several is returned", "", 0)
            for source in sources:
                taken.setdefault(source.storage, []).append(source)
            shared += [(value.whole, source) for source in sources[1:] if not source.alone]
        for value, source in shared:
            if self.stage.effects or not self.is_like(value, source):
                self.check_other(value, source)

    def is_like(self, value: Any, source: Source) -> bool:
        """Whether nobody could tell the value from an array that it may be."""
        is_fresh = source.array.is_fresh and not source.loose
        return is_fresh and self.stage.tracer.same_type(value, source.array) == 1

    def check_other(self, value: Any, source: Source) -> None:
        """Checks that the value is not that array."""
        array, tracer = source.array, self.stage.tracer
        if source.loose:
            raise RegionBreak("an array that lies otherwise in memory is returned", "", 0)
        is_alike = (value.dtype, value.ndim) == (array.dtype, array.ndim)
        if not (source.looped and is_alike and self.stage.may_check()):
            raise RegionBreak("an array that may be one of several is returned", "", 0)
        sizes = [(n, m) for n, m in zip(value.shape, array.shape, strict=True) if not is_same(n, m)]
        differs = tracer.lift(False)
        for n, m in sizes:
            n, m = (tracer.lift(size) if type(size) is int else size for size in (n, m))
            differs = tracer.apply("logical_or", differs, tracer.apply("not_equal", n, m))
        if not sizes:
            others = value != array
            if value.dtype.kind in "fc":
                others &= (value == value) | (array == array)  # a NaN is itself
            differs = others.any()
        tracer.check(differs, "a trip makes another array")
