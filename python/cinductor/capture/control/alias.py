"""Alias analysis: which memory, and which object, an array may be.

Branches and loops pass arrays by value. In the graph, the result of an `if`, or the value that one
iteration passes to the next, is a separate array. In NumPy it is one of several existing arrays. The
difference is visible only if one of them is written to or returned. So each such array has a list of
the arrays that it may be (`Source`). A source is `alone` if it was made in the call and has no
name other than the merged one. Such an array may be written to under the new name; it is then marked
as overwritten, so that an enclosing loop does not use its old value. The lists are transitively closed.

At the head of an iteration, a carried array is its value at loop entry or the value that the previous
iteration ended with. The latter is memory from before the loop, another carried array, or an array made in
that iteration. From this, `Flow` derives which earlier memory each array may be, and which two arrays may be
the same, for all iterations. It also derives how many iterations must have run before an array can
be one made in the loop. A loop with a write that is visible under another name is not captured.

Memory does not determine the object: `v = v[...]` rebinds v to a new object over the same memory. Two
objects with the same memory may be exchanged only if the program cannot tell them apart (`Objects`): by
`is`, by a returned value, or in a container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core
from ...base.records import NamedTuple
from ..kinds import identity, is_array, is_same, leaves
from ..objects import Traced
from .state import State, any_shared, references

if TYPE_CHECKING:
    from .carry import Carried
    from .phi import Value
    from .region import Region
    from .state import Snapshot

RegionBreak = _core.RegionBreak
Path = tuple[tuple[int, int], ...]  # the tests that were decided, the last first, and their outcomes
MAX_PATHS = 8  # that are distinguished for one array


class Source(NamedTuple):
    """An array that a value may be. looped: this depends on the number of iterations of a loop; loose: the value is
    the array itself, but has another memory layout in NumPy, or is read-only there.
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
        way = (id(source.array), source.alone, source.looped, source.loose)
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


def sources_in(records: Records, value: Any) -> list[Source]:
    """The arrays that a value may be, itself first."""
    found = records.get(value.storage)
    return [Source(value)] if found is None else [Source(value), *found[1]]


def is_loose(records: Records, value: Any) -> bool:
    """True if memory made in this call has the value with gaps, reversed or read-only, while passing it on by value
    makes it dense and writable. Memory of Python's caller is a source anyway.
    """
    if any(source.loose for source in sources_in(records, value)):
        return True
    return value.whole.is_fresh and (value.is_readonly or not value.is_dense)


def count_in(records: Records, roots: list[Any], storage: int) -> int:
    """The number of values among these, and in containers that they reach, that may use this memory."""
    storages = {storage}
    for other, (_, sources) in records.items():
        if any(source.storage == storage for source in sources):
            storages.add(other)
    return references(roots, lambda value: value.storage in storages)


class Aliases:
    """The aliases of the values of one call."""

    def __init__(self, state: State) -> None:
        self.state, self.tracer = state, state.tracer
        self.overwritten: set[int] = set()  # storages that had one name and were written to as another value

    def sources(self, value: object) -> list[Source]:
        """The arrays that a value may be, itself first."""
        return sources_in(self.state.records, value)

    def add(self, value: Any, sources: list[Source]) -> None:
        """The value may be one of several arrays, by value."""
        if not sources:
            return
        sources = distinct([*self.state.records.get(value.storage, (value, []))[1], *sources])
        records = {**self.state.records, value.storage: (value, sources)}
        is_late = not (self.tracer.may_check() or self.tracer.in_region)
        if is_late and any_shared(records):
            raise RegionBreak("an array that may be one of several", "", 0)
        self.state.put(records=records)

    def link(self, a: object, b: object) -> None:
        """Two values may be one array."""
        self.add(a, [source._replace(alone=False) for source in self.sources(b)])

    def loosen(self, value: object) -> None:
        """Record that the value has another memory layout or is read-only in NumPy."""
        self.add(value, [Source(value, loose=True)])

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

    def note_distinct(self, a: object, b: object) -> None:
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
        for value in {result.storage: result for result in results}.values():
            sources = self.sources(value.whole)
            for source in sources:
                if not all(map(source.excludes, taken.get(source.storage, ()))):
                    raise RegionBreak("an array that may be one of several is returned", "", 0)
            for source in sources:
                taken.setdefault(source.storage, []).append(source)
            shared += [(value.whole, source) for source in sources[1:] if not source.alone]
        for value, source in shared:
            if self.tracer.effects or not self.is_like(value, source):
                self.check_other(value, source)

    def is_like(self, value: object, source: Source) -> bool:
        """True if the value cannot be distinguished from an array that it may be."""
        is_fresh = source.array.is_fresh and not source.loose
        return is_fresh and self.tracer.varying(value, source.array) == []

    def check_other(self, value: Any, source: Source) -> None:
        """Check that the value is not that array."""
        array, tracer = source.array, self.tracer
        if source.loose:
            raise RegionBreak("an array with another memory layout or other flags is returned", "", 0)
        is_alike = (value.dtype, value.ndim) == (array.dtype, array.ndim)
        if not (source.looped and is_alike and self.tracer.may_check()):
            raise RegionBreak("an array that may be one of several is returned", "", 0)
        sizes = [(n, m) for n, m in zip(value.shape, array.shape, strict=True) if not is_same(n, m)]
        differs = tracer.lift(False)
        for n, m in sizes:
            n, m = (tracer.lift(size) if type(size) is int else size for size in (n, m))
            differs = tracer.apply("logical_or", differs, tracer.apply("not_equal", n, m))
        if not sizes:
            others = value != array
            if value.dtype.kind in "fc":
                others &= (value == value) | (array == array)  # a NaN equals itself
            differs = others.any()
        tracer.check(differs, "an iteration makes another array")


# --- arrays that iterations of a loop pass on ---


class Peel(Exception):
    """Raised if the first iteration of a loop differs from later ones."""


class Unlike(Peel):
    """They differ in the class of a number, which a tagged number may have."""


class CarriedArray:
    """One array carried by value; ends: the arrays that it may be at the end of an iteration."""

    __slots__ = ("phi", "ends", "older", "passed", "before", "vague", "is_made", "is_loose")

    def __init__(self, phi: Value, ends: list[Source], is_loose: bool) -> None:
        self.phi, self.ends = phi, ends
        self.older: list[Any] = []  # of these, memory from before the loop,
        self.passed: list[int] = []  # and carried arrays, by number; the rest is made in an iteration
        self.before: dict[int, Any] = {}  # memory from before the loop that it may be at a head, by storage
        self.vague: set[int] = set()  # memory of which it may be one of several views
        self.is_made = False  # it may be another array
        self.is_loose = is_loose  # True if NumPy gives it another memory layout

    def learn(self, other: CarriedArray) -> bool:
        """Add what another one may be. Returns True if that is new."""
        count = len(self.before), len(self.vague), self.is_made, self.is_loose
        for storage, value in other.before.items():
            if not is_same(self.before.setdefault(storage, value), value):
                self.vague.add(storage)
        self.vague |= other.vague
        self.is_made |= other.is_made
        self.is_loose |= other.is_loose
        return count != (len(self.before), len(self.vague), self.is_made, self.is_loose)


class Flow:
    """The arrays that a loop carries by value; names: the values of names at the end of an iteration."""

    def __init__(self, carried: Carried, names: dict[str, Any]) -> None:
        self.carried, self.loop = carried, carried.loop
        self.aliases, records = carried.regions.aliases, carried.state.records
        self.arrays: list[CarriedArray] = []
        self.test = carried.regions.count_test()
        held = [carried.entry[name] for name in carried.snapshot.containers]
        self.roots = [*self.loop.entry.values(), *held]
        for phi, leaf in zip(carried.values, carried.leaves_of(names), strict=True):
            if phi.type.kind == "array":
                loose = any(is_loose(records, value) for value in (leaf, phi.entry))
                self.arrays.append(CarriedArray(phi, self.aliases.sources(leaf), loose))
        self.pairs: set[tuple[int, int]] = set()  # pairs that may be the same array at the head of an iteration
        if self.arrays:
            self.find_memory()
            self.pairs = self.find_pairs()

    def number_of(self, source: Source) -> int | None:
        """The index of the carried array that has this memory at the head of an iteration."""
        for number, array in enumerate(self.arrays):
            if array.phi.value.storage == source.storage:
                return number
        return None

    def is_before(self, source: Source) -> bool:
        """True for memory from before the loop."""
        return self.carried.snapshot.graph.had(source.array.whole)

    def find_memory(self) -> None:
        """For each array, find the memory from before the loop that it may use after any number of iterations."""
        for array in self.arrays:
            numbers = {self.number_of(end) for end in array.ends}
            array.passed = [number for number in numbers if number is not None]
            array.older = [end.array for end in array.ends if self.is_before(end)]
            entry = [source.array for source in self.aliases.sources(array.phi.entry)]
            for value in (*entry, *array.older):
                known = array.before.setdefault(value.storage, value)
                is_part = not value.is_whole and not is_same(value, array.phi.entry)
                if is_part or not is_same(value, known):
                    array.vague.add(value.storage)
            array.is_made = len(array.ends) > len(array.older) + len(array.passed)
        grows = True
        while grows:
            grows = False
            for array in self.arrays:
                for number in array.passed:
                    grows |= array.learn(self.arrays[number])

    def find_pairs(self) -> set[tuple[int, int]]:
        """Find the pairs of arrays that may be the same at the head of an iteration."""
        numbers = range(len(self.arrays))
        entries = [self.aliases.sources(array.phi.entry) for array in self.arrays]
        pairs = {(j, k) for j in numbers for k in numbers if j == k}
        pairs |= {(j, k) for j in numbers for k in numbers if meet(entries[j], entries[k])}
        while True:
            more = {(j, k) for j in numbers for k in numbers if self.may_end_as_one(j, k, pairs)}
            if more <= pairs:
                return pairs
            pairs |= more

    def may_end_as_one(self, j: int, k: int, pairs: set[tuple[int, int]]) -> bool:
        """True if an iteration may end with one array in both places."""
        for a in self.arrays[j].ends:
            for b in self.arrays[k].ends:
                if a.excludes(b):
                    continue
                m, n = self.number_of(a), self.number_of(b)
                if m is not None and n is not None:
                    is_one = (m, n) in pairs
                elif m is not None or n is not None:
                    number, other = (m, b) if n is None else (n, a)
                    is_one = other.storage in self.arrays[number].before  # type: ignore[index]
                else:
                    is_one = a.storage == b.storage
                if is_one:
                    return True
        return False

    # --- writes ---

    def check(self) -> None:
        """Raise if an iteration writes to memory that another name has, too."""
        bound = self.carried.bound
        written = {s for s, h in self.carried.written.items() if h.version != bound[s]}
        for number, array in enumerate(self.arrays):
            if any(value.storage in written for value in array.older):
                self.loop.fail(f"{array.phi.name} shares memory that is written to")
            if written & array.before.keys():
                raise Peel(f"{array.phi.name} shares memory that is written to")
            if self.is_written(array):
                self.check_written(number, array)
        for a, b in self.carried.distinct:
            self.check_distinct(a, b)

    def check_distinct(self, a: Traced, b: Traced) -> None:
        """Two different objects of one iteration, one of them carried, must differ in every iteration."""
        j, k = self.number_of(Source(a)), self.number_of(Source(b))
        firsts = [a] if j is None else list(self.arrays[j].before.values())
        seconds = [b] if k is None else list(self.arrays[k].before.values())
        if j is not None and k is not None and j != k and (j, k) in self.pairs:
            raise Peel("whether an array is another differs between iterations")
        for first in firsts:
            for second in seconds:
                if first is a and second is b:
                    continue
                if first.storage == second.storage:
                    raise Peel("whether an array is another differs between iterations")
                self.aliases.note_distinct(first, second)

    def is_written(self, array: CarriedArray) -> bool:
        """True if an iteration writes to it."""
        is_overwritten = array.phi.value.storage in self.aliases.overwritten
        return array.phi.value.version != array.phi.version or is_overwritten

    def check_written(self, number: int, array: CarriedArray) -> None:
        """Require that the array was made in the call and has one name, at the entry and after
        every iteration."""
        if array.is_loose:
            self.loop.fail(f"{array.phi.name} is written to and has another memory layout or is read-only")
        if array.older or any((number, k) in self.pairs and k != number for k in range(len(self.arrays))):
            self.loop.fail(f"{array.phi.name} shares memory that is written to")
        for value in array.before.values():
            if not value.is_fresh:
                raise Peel("an array that is carried by value is written to")
            if not self.is_alone(value):
                raise Peel("names share memory that is written to")

    def is_alone(self, value: Any) -> bool:
        """True for memory made in the call that only one name has. Memory from before the loop that an iteration
        reaches in another way than through a carried array has a name besides the carried one.
        """
        is_reached = any(value.storage == older.storage for array in self.arrays for older in array.older)
        return not is_reached and self.loop.is_alone(value, self.roots)

    # --- after the loop ---

    def sources(self, number: int) -> list[Source]:
        """The arrays from before the loop that one may be after it."""
        array = self.arrays[number]
        path = ((self.test, self.group_of(number)),)
        return [
            self.of_before(value)._replace(looped=array.is_made and storage not in array.vague, path=path)
            for storage, value in array.before.items()
        ]

    def group_of(self, number: int) -> int:
        """The number of the first array that this one may be, directly or through others. Arrays of two groups are
        two arrays after every iteration, so a run in which one has some memory is a path that excludes the other.
        """
        group, left = {number}, [number]
        while left:
            j = left.pop()
            more = {k for k in range(len(self.arrays)) if (j, k) in self.pairs or (k, j) in self.pairs} - group
            group |= more
            left += more
        return min(group)

    def of_before(self, value: object) -> Source:
        return Source(value, self.is_alone(value), True)

    def trips_needed(self) -> list[int | None]:
        """For each array, the number of iterations after which it cannot be an earlier array that
        is visible elsewhere. 0: it is not visible; None: no number of iterations rules it out."""
        count = len(self.arrays)
        known = [
            not all(self.is_alone(source.array) for source in self.aliases.sources(array.phi.entry))
            for array in self.arrays
        ]
        needed: list[int | None] = [int(is_known) for is_known in known]
        for trip in range(1, 2 * count + 1):
            known = [bool(array.older) or any(known[number] for number in array.passed) for array in self.arrays]
            for number, is_known in enumerate(known):
                if is_known:  # a path through more arrays than exist contains a cycle
                    needed[number] = trip + 1 if trip < count else None
        return needed

    def note(self, made: dict[int, Any]) -> int:
        """Record which arrays the values after the loop may be, and how many iterations are required."""
        most = 0
        trips_needed = self.trips_needed() if made else []
        for number, value in made.items():
            needed, sources = trips_needed[number], self.sources(number)
            if needed is not None:
                sources = [source for source in sources if source.alone]
                most = max(most, needed)
            self.aliases.add(value, sources)
            if self.arrays[number].is_loose:
                self.aliases.loosen(value)
        for j, k in self.pairs:
            if j < k and j in made and k in made:
                self.aliases.link(made[j], made[k])
        return most


def meet(a: list[Source], b: list[Source]) -> bool:
    """True if two values may be one array."""
    return any(s.storage == t.storage and not s.excludes(t) for s in a for t in b)


# --- identity of objects ---

Pair = tuple[str, Any, Any]  # a place, and its values on the two paths


class Objects:
    """The objects of all places on two paths; others: the objects of either path."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.pairs: list[Pair] = []
        self.others: list[Any] = []
        self.containers = snapshot.containers  # their contents are added

    def add(self, name: str, a: Any, b: Any) -> None:
        """A name, or the items of a container."""
        firsts, seconds = leaves(a), leaves(b)
        if len(firsts) != len(seconds):
            self.others += firsts + seconds
            return
        for x, y in zip(firsts, seconds, strict=True):
            if is_array(x) and is_array(y):
                self.pairs.append((name, x, y))
            else:
                self.others += (x, y)

    def distinguishable_in(
        self, region: Region, carried: tuple[str, ...], head: dict[str, Any], end: dict[str, Any]
    ) -> str | None:
        """A carried name whose objects at the head and the end of an iteration could be distinguished."""
        for name in (*carried, *self.containers):
            self.add(name, head[name], end.get(name))
        self.others += [end.get(n) for n in region.site.live_out if n not in carried]
        return self.distinguishable(region)

    def distinguishable(self, region: Region) -> str | None:
        """A place that has two distinguishable objects with the same memory."""
        names: dict[int, str] = {}  # of those objects
        for name, a, b in self.pairs:
            if identity(a) != identity(b) and is_same(a, b):
                names.setdefault(identity(a), name)
                names.setdefault(identity(b), name)
                if any(x.is_whole and not x.is_fresh for x in (a, b)):
                    return name  # the caller has a reference to one of them
        elsewhere = region.elsewhere() if names else []
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
