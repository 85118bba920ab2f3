"""Which arrays the values that a loop carries may be, for all iterations.

At the head of an iteration, a carried array is its value at loop entry or the value that the previous
iteration ended with. The latter is memory from before the loop, another carried array, or an array made in
that iteration. From this, `Flow` derives which earlier memory each array may be, and which two arrays may be
the same, for all iterations. It also derives how many iterations must have run before an array can
be one made in the loop. A loop with a write that is visible under another name is not captured.
"""

from __future__ import annotations

from typing import Any

from ..kinds import is_same
from ..objects import Traced
from .alias import PeelFirstIteration, Source, may_differ_in_layout
from .loop_state import LoopState
from .phi import Value


class CarriedArray:
    """One array carried by value; ends: the arrays that it may be at the end of an iteration."""

    __slots__ = ("phi", "ends", "older", "passed", "before", "vague", "is_made", "may_differ_in_layout")

    def __init__(self, phi: Value, ends: list[Source], may_differ_in_layout: bool) -> None:
        self.phi, self.ends = phi, ends
        self.older: list[Any] = []  # of these, memory from before the loop,
        self.passed: list[int] = []  # and carried arrays, by number; the rest is made in an iteration
        self.before: dict[int, Any] = {}  # memory from before the loop that it may be at a head, by storage
        self.vague: set[int] = set()  # memory of which it may be one of several views
        self.is_made = False  # it may be another array
        self.may_differ_in_layout = may_differ_in_layout  # True if NumPy gives it another memory layout

    def learn(self, other: CarriedArray) -> bool:
        """Add what another one may be. Returns True if that is new."""
        count = len(self.before), len(self.vague), self.is_made, self.may_differ_in_layout
        for storage, value in other.before.items():
            if not is_same(self.before.setdefault(storage, value), value):
                self.vague.add(storage)
        self.vague |= other.vague
        self.is_made |= other.is_made
        self.may_differ_in_layout |= other.may_differ_in_layout
        return count != (len(self.before), len(self.vague), self.is_made, self.may_differ_in_layout)


class Flow:
    """The arrays that a loop carries by value; names: the values of names at the end of an iteration."""

    def __init__(self, carried: LoopState, names: dict[str, Any]) -> None:
        self.carried, self.loop = carried, carried.loop
        self.aliases, records = carried.regions.aliases, carried.state.records
        self.arrays: list[CarriedArray] = []
        self.test = carried.regions.count_test()
        held = [carried.entry[name] for name in carried.snapshot.containers]
        self.roots = [*self.loop.entry.values(), *held]
        for phi, leaf in zip(carried.values, carried.leaves_of(names), strict=True):
            if phi.type.kind == "array":
                differs_in_layout = any(may_differ_in_layout(records, value) for value in (leaf, phi.entry))
                self.arrays.append(CarriedArray(phi, self.aliases.sources(leaf), differs_in_layout))
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

    def may_differ_in_layout(self, value: Traced) -> bool:
        """True if a value of an iteration, or an array that it may be, has another memory layout in NumPy."""
        numbers = map(self.number_of, self.aliases.sources(value))
        is_carried = any(self.arrays[number].may_differ_in_layout for number in numbers if number is not None)
        return is_carried or may_differ_in_layout(self.carried.state.records, value)

    def is_before(self, source: Source) -> bool:
        """True for memory from before the loop."""
        return self.carried.snapshot.graph.had(source.array.whole)

    def find_memory(self) -> None:
        """For each array, find the memory from before the loop that it may use after any number of iterations."""
        for array in self.arrays:
            numbers = {self.number_of(end) for end in array.ends}
            array.passed = [number for number in numbers if number is not None]
            older = [end for end in array.ends if self.is_before(end)]
            array.older = [source.array for source in older]
            for source in (*self.aliases.sources(array.phi.entry), *older):
                value = source.array
                known = array.before.setdefault(value.storage, value)
                is_part = source.is_part or not value.is_whole and not is_same(value, array.phi.entry)
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
        pairs |= {(j, k) for j in numbers for k in numbers if share_memory(entries[j], entries[k])}
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
                raise PeelFirstIteration(f"{array.phi.name} shares memory that is written to")
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
            raise PeelFirstIteration("whether an array is another differs between iterations")
        for first in firsts:
            for second in seconds:
                if first is a and second is b:
                    continue
                if first.storage == second.storage:
                    raise PeelFirstIteration("whether an array is another differs between iterations")
                self.aliases.note_distinct(first, second)

    def is_written(self, array: CarriedArray) -> bool:
        """True if an iteration writes to it."""
        is_overwritten = array.phi.value.storage in self.aliases.overwritten
        return array.phi.value.version != array.phi.version or is_overwritten

    def check_written(self, number: int, array: CarriedArray) -> None:
        """Require that the array was made in the call and has one name, at the entry and after
        every iteration."""
        if array.may_differ_in_layout:
            self.loop.fail(f"{array.phi.name} is written to and has another memory layout or is read-only")
        if array.older or any((number, k) in self.pairs and k != number for k in range(len(self.arrays))):
            self.loop.fail(f"{array.phi.name} shares memory that is written to")
        for value in array.before.values():
            if not value.is_fresh:
                raise PeelFirstIteration("an array that is carried by value is written to")
            if not self.is_alone(value):
                raise PeelFirstIteration("names share memory that is written to")

    def is_alone(self, value: Traced) -> bool:
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
            Source(
                value,
                alone=self.is_alone(value),
                looped=array.is_made and storage not in array.vague,
                path=path,
                is_part=storage in array.vague,
            )
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

    def of_before(self, source: Source) -> Source:
        """An array that a name may be before the loop and, if no iteration runs, after it."""
        return Source(source.array, self.is_alone(source.array), looped=not source.is_part, is_part=source.is_part)

    def iterations_needed(self) -> list[int | None]:
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
        iterations_needed = self.iterations_needed() if made else []
        for number, value in made.items():
            needed, sources = iterations_needed[number], self.sources(number)
            if needed is not None:
                sources = [source for source in sources if source.alone]
                most = max(most, needed)
            self.aliases.add(value, sources)
            if self.arrays[number].may_differ_in_layout:
                self.aliases.loosen(value)
        for j, k in self.pairs:
            if j < k and j in made and k in made:
                self.aliases.link(made[j], made[k])
        return most


def share_memory(a: list[Source], b: list[Source]) -> bool:
    """True if two values may be one array."""
    return any(s.storage == t.storage and not s.excludes(t) for s in a for t in b)
