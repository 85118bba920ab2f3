"""Alias analysis: which memory, and which object, an array may be.

Branches and loops pass arrays by value. In the graph, the result of an `if`, or the value that one
iteration passes to the next, is a separate array. In NumPy it is one of several existing arrays. The
difference is visible only if one of them is written to or returned. So each such array has a list of
the arrays that it may be (`Source`). A source is `alone` if it was made in the call and has no
name other than the merged one. Such an array may be written to under the new name; it is then marked
as overwritten, so that an enclosing loop does not use its old value. The lists are transitively closed.

Memory does not determine the object: `v = v[...]` rebinds v to a new object over the same memory. Two
objects with the same memory may be exchanged only if the program cannot tell them apart (`Objects`): by
`is`, by a returned value, or in a container.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core
from ...base.records import NamedTuple
from ..kinds import identity, is_array, is_same, leaves, rebuilt
from ..objects import Traced
from .state import Snapshot, State, any_shared, references

RegionBreak = _core.RegionBreak
Path = tuple[tuple[int, int], ...]  # the tests that were decided, the last first, and their outcomes
OWN = "the merged array"  # in a choice
MAX_PATHS = 8  # that are distinguished for one array


class Source(NamedTuple):
    """An array that a value may be. looped: this depends on the number of iterations of a loop; differs_in_layout: the value is
    the array itself, but has another memory layout in NumPy, or is read-only there. is_part: the value may be any view of the
    array.
    """

    array: Traced
    alone: bool = False
    looped: bool = False
    differs_in_layout: bool = False
    path: Path = ()
    is_part: bool = False

    @property
    def storage(self) -> int:
        return self.array.storage

    def as_part(self) -> Source:
        """The array, of which the value may be any view."""
        return self._replace(looped=False, is_part=True)

    def excludes(self, other: Source) -> bool:
        """True if no run of the program takes both paths."""
        ways = dict(self.path)
        return any(ways.get(test, way) != way for test, way in other.path)


Records = dict[int, tuple[Any, list[Source]]]  # by storage: a value, and the arrays that it may be


def distinct(sources: list[Source]) -> list[Source]:
    """Each array once for each path. Two paths that only differ in the last test are merged to one without it; of
    many paths only their common tests stay.
    """
    found: dict[Any, tuple[Source, set[Path]]] = {}
    for source in sources:
        way = (id(source.array), source.alone, source.looped, source.differs_in_layout, source.is_part)
        found.setdefault(way, (source, set()))[1].add(source.path)
    return [source._replace(path=p) for source, paths in found.values() for p in joined(paths)]


def joined(paths: set[Path]) -> list[Path]:
    """The fewest paths that are equivalent to these, in order."""
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
    if len(kept) <= MAX_PATHS:
        return kept
    return [tuple(test for test in kept[0] if all(test in path for path in kept))]


def sources_in(records: Records, value: Traced) -> list[Source]:
    """The arrays that a value may be, itself first. A view of a value is a part of what the value may be."""
    found = records.get(value.storage, (value, []))[1]
    return [Source(value), *(found if value.is_whole else [source.as_part() for source in found])]


def may_differ_in_layout(records: Records, value: Traced) -> bool:
    """True if memory made in this call has the value with gaps, reversed or read-only, while passing it on by value
    makes it dense and writable. Memory of Python's caller is a source anyway.
    """
    if any(source.differs_in_layout for source in sources_in(records, value)):
        return True
    return value.whole.is_fresh and (value.is_readonly or not value.is_dense)


def count_in(records: Records, roots: list[Any], storage: int) -> int:
    """The number of values among these, and in containers that they reach, that may use this memory."""
    storages = {storage}
    for other, (_, sources) in records.items():
        if any(source.storage == storage for source in sources):
            storages.add(other)
    return references(roots, lambda value: value.storage in storages)


def arrays_in(value: object) -> list[Traced]:
    """The arrays in a choice, or in several."""
    return [leaf for leaf in leaves(value) if type(leaf) is Traced and leaf.kind == "array"]


class Aliases:
    """The aliases of the values of one call."""

    def __init__(self, state: State) -> None:
        self.state, self.tracer = state, state.tracer
        self.overwritten: set[int] = set()  # storages that had one name and were written to as another value

    def sources(self, value: Traced) -> list[Source]:
        """The arrays that a value may be, itself first."""
        return sources_in(self.state.records, value)

    def add(self, value: Traced, sources: list[Source]) -> None:
        """The value may be one of several arrays, by value."""
        if not sources:
            return
        sources = distinct([*self.state.records.get(value.storage, (value, []))[1], *sources])
        records = {**self.state.records, value.storage: (value, sources)}
        is_late = not (self.tracer.may_check() or self.tracer.in_region)
        if is_late and any_shared(records):
            raise RegionBreak("an array that may be one of several", "", 0)
        self.state.put(records=records)

    def link(self, a: Traced, b: Traced) -> None:
        """Two values may be one array."""
        self.add(a, [source._replace(alone=False) for source in self.sources(b)])

    def loosen(self, value: Traced) -> None:
        """Record that the value has another memory layout or is read-only in NumPy."""
        self.add(value, [Source(value, differs_in_layout=True)])

    def forget(self, values: list[Any]) -> None:
        """Forget values that can no longer be reached."""
        gone = {v.storage for v in values if type(v) is Traced and v.kind == "array"}
        if gone & self.state.records.keys():
            self.state.put(records={k: v for k, v in self.state.records.items() if k not in gone})

    # --- uses ---

    def before_write(self, target: Traced) -> None:
        """Called before a write to an array that may be another one, or that another one may be."""
        for storage, (_, sources) in self.state.records.items():
            is_it = target.storage == storage
            for source in sources:
                if not source.alone and (is_it or target.storage == source.storage):
                    raise RegionBreak("a write to an array that may be one of several", "", 0)
                if is_it:
                    self.overwritten.add(source.storage)

    def note_distinct(self, a: Traced, b: Traced) -> None:
        """Record that two values were compared and are different objects: then so are all arrays that they may be,
        now and in each iteration of the current loops.
        """
        for source in self.sources(a):
            for other in self.sources(b):
                is_itself = source.array is a and other.array is b
                if source.excludes(other):
                    continue
                if source.storage == other.storage and not is_itself:
                    raise RegionBreak("whether an array is another of several", "", 0)
                for loop in self.state.active:
                    if loop.carried is not None:
                        loop.carried.note_distinct(source.array, other.array)

    def before_return(self, results: list[Any]) -> None:
        """Return an array that may be one of several by value if this is not visible: the array was
        made in this call and is returned only in this place. If the number of iterations
        decides, different items show which array it is, and the program checks that."""
        taken: dict[int, list[Source]] = {}  # by storage
        shared: list[tuple[Any, Source]] = []
        if self.state.choices:
            results = [*results, *arrays_in(tuple(map(self.choice, results)))]
        views = {result.storage for result in results if not result.is_whole}
        for value in {result.storage: result for result in results}.values():
            sources = self.sources(value.whole)
            if value.storage in self.state.choices and value.storage not in views and (choice := self.choice(value)) is not None:
                known = {value.storage, *(source.storage for array in arrays_in(choice) for source in self.sources(array))}
                sources = [source for source in sources if source.storage not in known]
            for source in sources:
                if not all(map(source.excludes, taken.get(source.storage, ()))):
                    raise RegionBreak("an array that may be one of several is returned", "", 0)
            for source in sources:
                taken.setdefault(source.storage, []).append(source)
            shared += [(value.whole, source) for source in sources[1:] if not source.alone]
        for value, source in shared:
            if self.tracer.effects or not self.is_like(value, source):
                self.check_other(value, source)

    def choice(self, value: Traced) -> Any:
        """The objects among which data choose this array, unless one of them has been written to as another value."""
        choice = self.state.choices.get(value.storage) if value.kind == "array" and value.is_whole else None
        if choice is None or any(array.storage in self.overwritten for array in (value, *arrays_in(choice))):
            return None
        return rebuilt(choice, iter([value if leaf is OWN else leaf for leaf in leaves(choice)]))

    def is_like(self, value: Traced, source: Source) -> bool:
        """True if the value cannot be distinguished from an array that it may be."""
        is_fresh = source.array.is_fresh and not source.differs_in_layout and not source.is_part
        sizes = self.tracer.varying(value, source.array)
        return is_fresh and (sizes == [] or (sizes is not None and not source.looped))

    def check_other(self, value: Traced, source: Source) -> None:
        """Check that the value is not that array."""
        array, tracer = source.array, self.tracer
        if source.differs_in_layout:
            raise RegionBreak("an array with another memory layout or other flags is returned", "", 0)
        is_alike = (value.dtype, value.ndim) == (array.dtype, array.ndim)
        if not (source.looped and is_alike and self.tracer.may_check()):
            raise RegionBreak("an array that may be one of several is returned", "", 0)
        sizes = [(n, m) for n, m in zip(value.shape, array.shape, strict=True) if not is_same(n, m)]
        differs = tracer.lift(False)
        for n, m in sizes:
            both = [tracer.lift(size) if type(size) is int else size for size in (n, m)]
            differs = tracer.apply("logical_or", differs, tracer.apply("not_equal", *both))
        if not sizes:
            others: Any = value != array
            if value.dtype.kind in "fc":
                others &= (value == value) | (array == array)  # a NaN equals itself
            differs = others.any()
        tracer.check(differs, "an iteration makes another array")


# --- loops ---


class PeelFirstIteration(Exception):
    """Raised if the first iteration of a loop differs from later ones."""


class Unlike(PeelFirstIteration):
    """They differ in the class of a number, which a tagged number may have."""


# --- identity of objects ---

Pair = tuple[str, Any, Any]  # a place, and its values on the two paths


class Objects:
    """The objects of all places on two paths; others: the objects of either path."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.pairs: list[Pair] = []
        self.others: list[Any] = []
        self.containers = snapshot.containers  # their contents are added

    def add(self, name: str, firsts: list[Any], seconds: list[Any]) -> None:
        """The leaves of a name, or of the items of a container."""
        if len(firsts) != len(seconds):
            self.others += firsts + seconds
            return
        for x, y in zip(firsts, seconds, strict=True):
            if is_array(x) and is_array(y):
                self.pairs.append((name, x, y))
            else:
                self.others += (x, y)

    def distinguishable(self, references_elsewhere: Callable[[], list[Any] | None]) -> str | None:
        """A place that has two distinguishable objects with the same memory."""
        names: dict[int, str] = {}  # of those objects
        for name, a, b in self.pairs:
            if identity(a) != identity(b) and is_same(a, b):
                names.setdefault(identity(a), name)
                names.setdefault(identity(b), name)
                if any(x.is_whole and not x.is_fresh for x in (a, b)):
                    return name  # the caller has a reference to one of them
        elsewhere = references_elsewhere() if names else []
        if not names or elsewhere is None:
            return next(iter(names.values()), None)
        twins: tuple[dict[int, int], ...] = ({}, {})
        for name, a, b in self.pairs:
            key, other = identity(a), identity(b)
            is_alike = twins[0].setdefault(key, other) == other
            is_alike &= twins[1].setdefault(other, key) == key
            if not is_alike and (key in names or other in names):
                return name

        def is_meant(value: object) -> bool:
            return is_array(value) and identity(value) in names

        others = [*self.others, *elsewhere]
        is_known = references(others, is_meant, self.containers.values()) > 0
        return next(iter(names.values())) if is_known else None
