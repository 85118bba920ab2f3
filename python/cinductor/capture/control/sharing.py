"""Which memory the arrays are that a loop's trips hand to each other.

At the head of a trip an array carried by value is what it was at the loop's entry, or what the trip
before ended with: memory of before the loop, another array carried, or what that trip made. From
this follow, for all trips, which memory of before each may be, which two may be one array, and how
many trips there must be for an array to be one that trips have made. A write that another name
would see is no region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..value.state import is_same, leaves
from .aliases import Source, is_loose
from .region import Peel

if TYPE_CHECKING:
    from .carry import Carried


class Array:
    """One array carried by value; ends: what it may be at the end of a trip."""

    __slots__ = (
        *("name", "param", "entry", "version", "ends", "kept", "passed"),
        *("before", "vague", "is_made", "is_loose"),
    )

    def __init__(self, name: str, param: Any, entry: Any, version: int, ends: list[Any]) -> None:
        self.name, self.param, self.entry, self.version = name, param, entry, version
        self.ends = ends
        self.kept: list[Any] = []  # of these, memory of before the loop,
        self.passed: list[int] = []  # and arrays carried, by number; the rest a trip makes
        self.before: dict[int, Any] = {}  # memory of before that it may be at a head, by storage
        self.vague: set[int] = set()  # that of which it may be one of several views
        self.is_made = False  # whether it may be another
        self.is_loose = False  # whether it lies otherwise in NumPy's memory

    def learn(self, other: Array) -> bool:
        """It may be what another was; whether that is news."""
        count = len(self.before), len(self.vague), self.is_made, self.is_loose
        for storage, value in other.before.items():
            if not is_same(self.before.setdefault(storage, value), value):
                self.vague.add(storage)
        self.vague |= other.vague
        self.is_made |= other.is_made
        self.is_loose |= other.is_loose
        return count != (len(self.before), len(self.vague), self.is_made, self.is_loose)


class Sharing:
    """The arrays that a loop carries by value; names: what names are at the end of a trip."""

    def __init__(self, carried: Carried, names: dict[str, Any]) -> None:
        self.carried, self.loop = carried, carried.loop
        self.aliases = carried.regions.aliases
        self.arrays: list[Array] = []
        self.numbers: dict[tuple[str, int], int] = {}  # by name and place in it
        held = [carried.entry[name] for name in carried.contents.containers]
        self.roots = [*self.loop.entry.values(), *held]
        self.collect(names)
        self.find_memory()
        self.pairs = self.find_pairs()

    def collect(self, names: dict[str, Any]) -> None:
        """The arrays among what is carried."""
        carried = self.carried
        values = iter(carried.values)
        for name, types in carried.types.of.items():
            for place, (leaf, kind) in enumerate(zip(leaves(names[name]), types, strict=True)):
                if kind is None:
                    continue
                value = next(values)
                if kind.kind == "array":
                    self.numbers[name, place] = len(self.arrays)
                    ends = self.aliases.sources(leaf)
                    self.arrays.append(Array(name, value.value, value.entry, value.version, ends))
                    ways = (leaf, value.entry)
                    self.arrays[-1].is_loose = any(is_loose(self.aliases.records, v) for v in ways)

    def number_of(self, source: Source) -> int | None:
        """Which of the arrays carried has that memory at the head of a trip."""
        for number, array in enumerate(self.arrays):
            if array.param.storage == source.storage:
                return number
        return None

    def is_before(self, source: Source) -> bool:
        """Whether it is memory of before the loop."""
        return self.carried.tracer.is_before(source.array.whole, self.loop.attempt.mark)

    def find_memory(self) -> None:
        """What each may be of before, after any number of trips."""
        for array in self.arrays:
            numbers = {self.number_of(end) for end in array.ends}
            array.passed = [number for number in numbers if number is not None]
            array.kept = [end.array for end in array.ends if self.is_before(end)]
            entry = [source.array for source in self.aliases.sources(array.entry)]
            for value in (*entry, *array.kept):
                known = array.before.setdefault(value.storage, value)
                is_part = not value.is_whole and not is_same(value, array.entry)
                if is_part or not is_same(value, known):
                    array.vague.add(value.storage)
            array.is_made = len(array.ends) > len(array.kept) + len(array.passed)
        grows = True
        while grows:
            grows = False
            for array in self.arrays:
                for number in array.passed:
                    grows |= array.learn(self.arrays[number])

    def find_pairs(self) -> set[tuple[int, int]]:
        """Which two may be one array at the head of a trip."""
        numbers = range(len(self.arrays))
        entries = [self.aliases.sources(array.entry) for array in self.arrays]
        pairs = {(j, k) for j in numbers for k in numbers if j == k}
        pairs |= {(j, k) for j in numbers for k in numbers if meet(entries[j], entries[k])}
        while True:
            more = {(j, k) for j in numbers for k in numbers if self.may_end_as_one(j, k, pairs)}
            if more <= pairs:
                return pairs
            pairs |= more

    def may_end_as_one(self, j: int, k: int, pairs: set[tuple[int, int]]) -> bool:
        """Whether a trip may end with one array in two places."""
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
        """Raises where a trip writes to memory that another name has, too."""
        bound = self.carried.bound
        written = {h.storage for h in self.carried.written if h.version != bound[h.storage]}
        for number, array in enumerate(self.arrays):
            if any(value.storage in written for value in array.kept):
                self.loop.fail(f"{array.name} shares memory that is written to")
            if written & array.before.keys():
                raise Peel(f"{array.name} shares memory that is written to")
            if self.is_written(array):
                self.check_written(number, array)
        for a, b in self.carried.distinct:
            self.check_distinct(a, b)

    def check_distinct(self, a: Any, b: Any) -> None:
        """Two objects of one trip, of which one is carried, are two in every trip."""
        j, k = self.number_of(Source(a)), self.number_of(Source(b))
        firsts = [a] if j is None else list(self.arrays[j].before.values())
        seconds = [b] if k is None else list(self.arrays[k].before.values())
        if j is not None and k is not None and j != k and (j, k) in self.pairs:
            raise Peel("whether an array is another differs from trip to trip")
        for first in firsts:
            for second in seconds:
                if first is a and second is b:
                    continue
                if first.storage == second.storage:
                    raise Peel("whether an array is another differs from trip to trip")
                self.aliases.note_distinct(first, second)

    def is_written(self, array: Array) -> bool:
        """Whether a trip writes to it."""
        is_overwritten = array.param.storage in self.aliases.overwritten
        return array.param.version != array.version or is_overwritten

    def check_written(self, number: int, array: Array) -> None:
        """It was made in the call, and has one name, at the entry and behind every trip."""
        if array.is_loose:
            self.loop.fail(f"{array.name} is written to and lies otherwise in memory")
        if array.kept or any((number, k) in self.pairs and k != number for k in self.others()):
            self.loop.fail(f"{array.name} shares memory that is written to")
        for value in array.before.values():
            if not value.is_fresh:
                raise Peel("an array that is carried by value is written to")
            if not self.is_alone(value):
                raise Peel("names share memory that is written to")

    def others(self) -> range:
        return range(len(self.arrays))

    def is_alone(self, value: Any) -> bool:
        """Memory of the call's own that one name has."""
        return self.loop.is_alone(value, self.roots)

    # --- behind the loop ---

    def sources(self, number: int) -> list[Source]:
        """What one may be behind the loop, of what there was before it."""
        array = self.arrays[number]
        sources = [self.of_before(value) for value in array.before.values()]
        return [
            source._replace(looped=array.is_made and source.storage not in array.vague)
            for source in sources
        ]

    def of_entry(self, value: Any) -> list[Source]:
        """What a value of before the loop is behind it if no trip runs."""
        return [self.of_before(source.array) for source in self.aliases.sources(value)]

    def of_before(self, value: Any) -> Source:
        return Source(value, self.is_alone(value), True)

    def trips_needed(self) -> list[int | None]:
        """For each array, how many trips rule out that it is one of before which others know; 0:
        nobody would see it, None: any number of trips may leave it so.
        """
        count = len(self.arrays)
        known = [
            not all(self.is_alone(source.array) for source in self.aliases.sources(array.entry))
            for array in self.arrays
        ]
        needed: list[int | None] = [int(is_known) for is_known in known]
        for trip in range(1, 2 * count + 1):
            known = [
                any(known[number] for number in array.passed)
                or not all(map(self.is_alone, array.kept))
                for array in self.arrays
            ]
            for number, is_known in enumerate(known):
                if is_known:  # a way through more arrays than there are goes round in a circle
                    needed[number] = trip + 1 if trip < count else None
        return needed

    def note(self, made: dict[int, Any]) -> int:
        """Notes what the values behind the loop, by number, may be; how many trips there must be."""
        most = 0
        trips_needed = self.trips_needed()
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
    """Whether two values may be one array."""
    return any(s.storage == t.storage and not s.excludes(t) for s in a for t in b)
