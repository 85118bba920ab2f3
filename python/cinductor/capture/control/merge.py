"""Merges the end states of the two arms of a branch, one value at a time.

An arm ends with values of names, versions of memory and items appended to lists (`End`), which its block keeps.
Values that are equal in both arms stay. Values that differ become a pair, of which the branch selects one
(`Pair`). Each arm has a side of the pair: a value at its end, or one that it makes to match the other arm. Arrays
of two shapes are stored in buffers with capacity for both. A name that one arm does not bind is checked when it is
read.

If both arms only compute numbers, their blocks are spliced into the surrounding block, and each pair is a `where`.
Otherwise the blocks become the arms of a region, whose results are those of the pairs in order, then versions of
memory.

The graph passes an array on by value. If the array is returned, the caller sees which object it is. So the merge
records a `DeferredChoice` of two objects. Each is an array from before the branch, a view of one, a choice of these, or the
merged array itself (`OWN`). The latter stands for an array that the arm has made. The numbers of a view are results of the
branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.class_lookup import is_a
from ...base.deferred import DeferredChoice, choose, view
from ...base.user_frame import OWN_PREFIX
from ..kinds import (
    UINT64,
    UNBOUND,
    Size,
    apart,
    have_same_structure,
    in_words,
    is_number,
    is_same,
    kind_of,
    leaves,
    rebuilt,
    strength,
)
from ..objects import CONSTANT_LEAVES, SINGLE, MaybeUnbound, Traced, is_record
from ..syntax.jumps import RETURN, VALUE
from . import lattice
from .alias import OWN, Objects, Source, arrays_in, may_differ_in_layout, sources_in
from .arms import (
    ArmValue,
    End,
    Level,
    Side,
    as_joined,
    constant,
    flag,
    in_buffer,
    is_alike,
    of_size,
    plain_value,
    undefined,
)
from .lattice import OTHER, Answer, Buffered, Joined, Reason, Same, join
from .list_append import Maybe
from .phi import Memory, Phi, make_region
from .region import Region


class Result:
    """A leaf that the graph selects, by number; strong: that of the bool for a tagged number; weak: its dtype if it is
    Python's.
    """

    __slots__ = ("number", "strong", "weak")

    def __init__(self, number: int) -> None:
        self.number = number
        self.strong: int | None = None
        self.weak: Any = None


SINGLE.add(Result)

# --- pairs of values ---


class Pair(Phi):
    """A part for each arm, of which the branch selects one; values: the leaves that they stand for."""

    __slots__ = ("values", "parts")

    def __init__(self, *values: object) -> None:
        self.values = values
        self.parts = tuple([value if is_a(value, Side) else constant(value) for value in values])

    def kinds(self, operands: list[Any]) -> list[str]:
        kinds = [part.kind for part in self.parts if part.kind is not None]
        return ["scalar" if "scalar" in kinds else kinds[0]]


class Merge:
    """Merges the end states of two arms."""

    def __init__(self, region: Region, level: Level, first: End, second: End) -> None:
        self.region, self.level = region, level
        self.tracer = region.tracer
        self.ends = (first, second)
        self.blocks = (level.then_block, level.else_block)
        self.pairs: list[Pair] = []
        self.lengths: list[tuple[lattice.Length, int]] = []  # with the numbers of their results
        self.choices: list[tuple[int, DeferredChoice]] = []  # of objects, with the numbers of their results
        self.flags: tuple[Any, Any] | None = None  # of the arm that is taken
        self.checks: list[tuple[bool, str]] = []
        self.listed: set[int] = set()  # results in a list, whatever else refers to them

    def names(self, wanted: tuple[str, ...]) -> dict[str, Any]:
        """The values of names after the branch, and the versions of memory."""
        snapshot = self.level.snapshot
        before = snapshot.names()
        for end, block in zip(self.ends, self.blocks, strict=True):
            if kept := {n: v for n, v in before.items() if n not in end.names}:
                end.add(block, kept)
        for name in (*wanted, *snapshot.containers):
            values = [end.names.get(name, UNBOUND) for end in self.ends]
            for end, block, value, new in zip(self.ends, self.blocks, values, self.region.lifted(values), strict=True):
                if values[0] is not values[1]:
                    self.region.scope.stage.chooses_tuples |= type(value) not in SINGLE and is_record(type(value))
                    if new is not value:
                        end.add(block, {name: new})
        self.check_objects((*wanted, *snapshot.containers))
        plan = {name: self.plan(name) for name in (*wanted, *snapshot.containers)}
        appended = self.plan_appended()
        handles: dict[int, Any] = {}
        for end in self.ends:
            handles.update({handle.storage: handle for handle, _ in end.written})
        made = self.choose_all(list(handles.values()))
        self.note_known(made)
        self.note_sources(made)
        if self.choices:
            self.note_choices(made)
        names: dict[str, Any] = {}
        for name, value in plan.items():
            if value is UNBOUND:
                names[name] = value
                continue
            names[name] = rebuilt(value, iter([self.made(p, made) for p in leaves(value)]))
        for grown, item in appended:
            value = self.resolved(item.value, made)
            self.region.state.before_change(grown.container)
            grown.container.append(Maybe(value, self.made(item.flag, made), item.truths))
        level = self.level
        for is_then, name in self.checks:
            bound = (
                level.condition if is_then else self.tracer.apply("logical_not", level.condition)
            )
            self.region.check(bound, f"{name} is bound")
        snapshot.refill(names)
        return {name: names[name] for name in wanted}

    def check_objects(self, names: tuple[str, ...]) -> None:
        """Raise if a name has different objects with the same memory in the two arms."""
        compared = Objects(self.level.snapshot)
        for name in names:
            if not self.is_dead(name):
                compared.add(name, *[[*map(plain_value, leaves(end.names.get(name, UNBOUND)))] for end in self.ends])
        if (found := compared.distinguishable(self.region.elsewhere)) is not None:
            self.region.fail(f"{found} is another view of its array in each branch")

    def plan_appended(self) -> list[tuple[Any, Maybe]]:
        """The items that the arms appended to lists, with a Result for each leaf that the graph selects."""
        plan = []
        for which, end in enumerate(self.ends):
            for grown, items in end.appended:
                item = items[0].value
                like = rebuilt(item, map(plain_value, leaves(item)))
                taken = [t != bool(which) for t in grown.truths(self.level.condition, like)]
                for item in items:
                    values, flags = (item.value, UNBOUND), (flag(item.flag), flag(False))
                    value = self.plan_dead("an item", *(values[::-1] if which else values))
                    is_there = self.want(*(flags[::-1] if which else flags))
                    self.listed |= {v.number for v in leaves(value) if type(v) is Result}
                    pairs = zip(taken, item.truths or taken, strict=True)
                    plan.append((grown, Maybe(value, is_there, [a and b for a, b in pairs])))
        return plan

    def resolved(self, value: object, made: list[Any]) -> Any:
        """A value after the branch."""
        return rebuilt(value, iter([self.made(p, made) for p in leaves(value)]))

    def made(self, part: object, made: list[Any]) -> Any:
        """A leaf after the branch."""
        if type(part) is not Result:
            return part
        value = made[part.number]
        return value if part.strong is None else self.tracer.tagged(value, made[part.strong], part.weak)

    def note_known(self, made: list[Any]) -> None:
        """If sizes choose, a number that is concretized has the value of this call, with a guard."""
        sample = self.tracer.sample_truth(self.level.condition)
        if sample is None:
            return
        for value, pair in zip(made, self.pairs, strict=True):
            chosen = pair.parts[0 if sample else 1].sample
            if type(value) is Traced and value.kind == "python":
                self.tracer.note_sample(value, self.level.condition, chosen)

    def plan(self, name: str) -> Any:
        """The merged value, with a Result for each leaf that the graph selects."""
        a, b = (end.names.get(name, UNBOUND) for end in self.ends)
        if a is UNBOUND and b is UNBOUND:
            return UNBOUND
        if name in self.region.site.maybe_unbound and (maybe_unbound := self.plan_maybe_unbound(name, a, b)):
            return maybe_unbound
        if a is UNBOUND or b is UNBOUND:
            return self.plan_unbound(name, a, b)
        if self.is_dead(name):
            is_first = self.ends[0].names.get(RETURN) is True
            return self.plan_dead(name, *((UNBOUND, b) if is_first else (a, UNBOUND)))
        if name.startswith(OWN_PREFIX) and name != VALUE:
            return self.plan_flag(a, b)
        return self.plan_either_way(name, a, b)

    def is_dead(self, name: str) -> bool:
        """True if one arm returns and the name is not read after that."""
        returns = [end.names.get(RETURN) is True for end in self.ends]
        return returns[0] != returns[1] and name in self.region.site.returned

    def is_one_of_before(self, a: object, b: object) -> bool:
        """True if an arm returns an array from before the branch and the other arm a different one: it needs no copy."""
        arrays = [part.value for part in (a, b) if type(part) is ArmValue and part.kind == "array" and part.value.is_whole]
        if any(type(part) is ArmValue and type(part.object) is DeferredChoice for part in (a, b)):
            return False
        return any(map(self.level.snapshot.graph.had, arrays)) and not is_same(plain_value(a), plain_value(b))

    def plan_either(self, a: object, b: object) -> Any:
        """One of two results, which the code that returns it rebuilds."""
        for part in (*leaves(a), *leaves(b)):
            is_plain = part is choose or part is view or is_a(part, (*CONSTANT_LEAVES, np.dtype))
            if type(part) is not ArmValue and not is_plain:
                self.region.fail("a result is of another type in each branch")
        a, b = (rebuilt(v, (self.older(leaf, n) for leaf in leaves(v))) for n, v in enumerate((a, b)))
        taken = self.taken()
        first = self.plan_dead("the result", a, UNBOUND)
        return DeferredChoice((choose, taken, first, self.plan_dead("the result", UNBOUND, b)))

    def taken(self) -> Result:
        """A bool that is True after the first arm."""
        if self.flags is None:
            self.flags = flag(True), flag(False)
        return self.want(*self.flags)

    def older(self, part: object, which: int) -> Any:
        """The object that an array is in an arm, if it is known."""
        if type(part) is not ArmValue or part.kind != "array":
            return part
        known = self.object_of(part, self.ends[which])
        is_known = known is not None and not any(leaf is OWN for leaf in leaves(known))
        return self.after(known, which) if is_known else part

    def plan_choice(self, number: int, a: object, b: object) -> None:
        """Plan the choice for a returned array, unless both arms make it, or the objects are unknown."""
        if type(a) is not ArmValue or type(b) is not ArmValue or {a.kind, b.kind} != {"array"}:
            return
        found = [self.object_of(part, end) for part, end in zip((a, b), self.ends, strict=True)]
        if any(value is None for value in found) or all(value is OWN for value in found):
            return
        objects = [self.after(value, which) for which, value in enumerate(found)]
        self.choices.append((number, DeferredChoice((choose, self.taken(), *objects))))

    def object_of(self, part: ArmValue, end: End) -> Any:
        """The object that an array is at the end of an arm, in terms of arrays from before the branch; None if it is unknown."""
        array, had = part.value, self.level.snapshot.graph.had
        if all(map(had, arrays_in(part.object))):
            return part.object  # the merged array has the value of one that is made in the arm
        is_made = not any(s.is_part or had(s.array.whole) for s in sources_in(end.records, array))
        return OWN if is_made and part.object is array and not may_differ_in_layout(end.records, array) else None

    def after(self, value: object, which: int) -> Any:
        """An object of an arm in terms of results of the branch."""
        want = self.want_undefined
        return rebuilt(value, iter([want("a view", p, bool(which)) if type(p) is ArmValue else p for p in leaves(value)]))

    def plan_maybe_unbound(self, name: str, a: object, b: object) -> MaybeUnbound | None:
        """Numbers that one path does not bind, with the bool that says whether they are bound."""
        pairs = [v if type(v) is MaybeUnbound else MaybeUnbound(v, v is not UNBOUND) for v in (a, b)]
        flags = [flag(v.flag) for v in pairs]
        parts = [leaf for v in pairs if v.value is not UNBOUND for leaf in leaves(v.value)]
        are_numbers = all(
            v.kind != "array" and v.strong is None if type(v) is ArmValue else is_number(v)
            for v in parts
        )
        if all(v.flag is True for v in pairs) or not are_numbers:
            return None
        value = self.plan_either_way(name, *(v.value for v in pairs))
        return MaybeUnbound(value, self.want(*flags))

    def plan_either_way(self, name: str, a: object, b: object) -> Any:
        """A value that one arm has, or both."""
        if a is UNBOUND or b is UNBOUND:
            return self.plan_dead(name, a, b)
        pairs = list(zip(leaves(a), leaves(b), strict=False))
        answers: list[Answer] = [self.join(x, y) for x, y in pairs]
        if not have_same_structure(a, b):
            pairs, answers = [(None, None)], [Reason(OTHER)]
        if name == VALUE and self.region.scope.stage.depth == 0:  # otherwise the caller continues with one value
            if any(type(answer) is Reason for answer in answers) or any(self.is_one_of_before(*p) for p in pairs):
                return self.plan_either(a, b)
        parts = [self.place(name, answer, x, y) for answer, (x, y) in zip(answers, pairs, strict=True)]
        for part, pair in zip(parts, pairs, strict=True):
            if name == VALUE and type(part) is Result:
                self.plan_choice(part.number, *pair)
        made = rebuilt(a, iter(parts))
        return made if a is b or type(a) in SINGLE else apart(made, a, b, self.are_one)

    def are_one(self, a: object, b: object) -> bool:
        """True if two tuples are one object to Python."""
        outside = self.region.scope.stage.effects.outside
        return outside(a) is outside(b)

    def plan_unbound(self, name: str, a: object, b: object) -> Any:
        if not name.startswith(OWN_PREFIX):
            self.checks.append((b is UNBOUND, name))
        return self.plan_dead(name, a, b)

    def plan_dead(self, name: str, a: object, b: object) -> Any:
        """The value of one arm; it is not read after the other arm."""
        bound = b if a is UNBOUND else a
        parts = []
        for part in leaves(bound):
            if type(part) is not ArmValue or self.is_written(part):
                parts.append(plain_value(part))
                continue
            result = self.want_undefined(name, part, a is UNBOUND)
            if part.strong is not None:
                result.strong = self.want_undefined(name, part.strong, a is UNBOUND).number
                result.weak = part.value.weak
            parts.append(result)
        return rebuilt(bound, iter(parts))

    def is_written(self, part: ArmValue) -> bool:
        """True if it is an array from before the branch to which an arm writes."""
        if part.kind != "array" or not part.value.is_whole:
            return False
        written = [handle for end in self.ends for handle, _ in end.written]
        return any(handle.storage == part.value.storage for handle in written)

    def want_undefined(self, name: str, part: ArmValue, is_first: bool) -> Result:
        """The value of one arm; in the other one (first or second) it is never read."""
        lengths: dict[int, lattice.Length] = {}
        shape = list(part.value.shape) if part.kind == "array" else []
        for axis, size in enumerate(shape):
            most = self.level.snapshot.graph.most(size)
            if most is None:
                self.region.fail(f"the size of {name} is known only in one branch")
            if not is_same(most, size):
                lengths[axis] = self.length(name, *((0, size) if is_first else (size, 0)))
                shape[axis] = most
        value = in_buffer(part, tuple(shape), lengths) if lengths else part
        nothing = undefined(part, tuple(shape))
        return self.want(*((nothing, value) if is_first else (value, nothing)))

    def plan_flag(self, a: object, b: object) -> Any:
        if a is b and type(a) is bool:
            return a
        return self.want(*(flag(v) for v in (a, b)))

    def join(self, a: object, b: object) -> Answer:
        """Join one leaf of both arms."""
        nodes = (a.node, b.node) if type(a) is type(b) is ArmValue else ()
        return join(self.tracer, plain_value(a), plain_value(b), nodes=nodes)

    def place(self, name: str, answer: Answer, a: object, b: object) -> Any:
        """The leaf after the branch, or its Result."""
        if type(answer) is Same:
            return answer.value  # from before the arms
        if type(answer) is Buffered and type(a) is ArmValue and type(b) is ArmValue:
            return self.join_sizes(name, answer.axes, a, b)
        if type(answer) is Reason:
            words = [in_words(plain_value(v)) for v in (a, b)]
            where = f": {words[0]} and {words[1]}" if words[0] != words[1] else ""
            if answer.text == OTHER:
                self.region.fail(f"{name} is of another type in each branch{where}")
            self.region.fail(f"{name} {answer.text}")
        assert type(answer) is Joined
        if answer.weak is not None:
            return self.tag(a, b, answer)
        if answer.dtype == UINT64 and kind_of(plain_value(a)) != kind_of(plain_value(b)):
            return self.want(as_joined(a, answer), as_joined(b, answer))
        return self.want(a, b)

    def join_sizes(self, name: str, axes: list[int], a: ArmValue, b: ArmValue) -> Any:
        """Store arrays of two shapes in buffers with capacity for both."""
        shape: list[Any] = list(a.value.shape)
        lengths: dict[int, lattice.Length] = {}
        for axis in axes:
            lengths[axis] = self.length(name, a.value.shape[axis], b.value.shape[axis])
            shape[axis] = lengths[axis].capacity
        return self.want(*(in_buffer(v, tuple(shape), lengths) for v in (a, b)))

    def tag(self, a: object, b: object, joined: Joined) -> Result:
        """A tagged number."""
        value = self.want(*(v if is_alike(v, joined) else as_joined(v, joined) for v in (a, b)))
        known = []
        for v in (a, b):
            bool_of = v.strong if type(v) is ArmValue else None
            known.append(flag(strength(plain_value(v), (joined.kind, joined.dtype)) if bool_of is None else bool_of))
        value.strong, value.weak = self.want(*known).number, joined.weak
        return value

    def note_choices(self, made: list[Any]) -> None:
        """Record the objects among which data choose each returned array."""
        state = self.region.state
        state.put(choices=state.choices | {made[n].storage: self.resolved(choice, made) for n, choice in self.choices})

    def note_sources(self, results: list[Any]) -> None:
        """Record that a merged array may be memory from before the branch, or that of another result."""
        aliases, mark = self.region.regions.aliases, self.level.snapshot.graph
        made: list[dict[int, list[Any]]] = [{}, {}]  # in each arm: storage -> results that have it
        for number, (value, pair) in enumerate(zip(results, self.pairs, strict=True)):
            if all(part.is_small for part in pair.parts):
                continue
            sources: list[Source] = []
            if any(self.may_differ_in_layout(part, end) for part, end in zip(pair.parts, self.ends, strict=True)):
                aliases.loosen(value)
            for which, (part, end) in enumerate(zip(pair.parts, self.ends, strict=True)):
                array = part.array
                if array is None:
                    continue
                for source in sources_in(end.records, array.value):
                    if not mark.had(source.array.whole):
                        made[which].setdefault(source.storage, []).append(value)
                        continue
                    is_alone = number not in self.listed and self.is_alone(source.array, end)
                    path = ((self.level.number, which), *source.path)
                    sources.append(source._replace(alone=is_alone, path=path))
            aliases.add(value, sources)
        for values in (*made[0].values(), *made[1].values()):
            for other in values[1:]:
                aliases.link(other, values[0])

    def may_differ_in_layout(self, part: Side, end: End) -> bool:
        """True if the array's memory layout differs at the end of the arm."""
        array = part.array
        return array is not None and may_differ_in_layout(end.records, array.value)

    def is_alone(self, array: Traced, end: End) -> bool:
        """True for memory that only one name has at the end of the arm."""
        ends = [plain_value(v) for value in end.names.values() for v in leaves(value)]
        return self.region.is_alone(array, ends, end.records)

    # --- the graph ---

    def want(self, a: object, b: object) -> Result:
        """The result for two parts, of which the branch selects one."""
        for number, pair in enumerate(self.pairs):
            if pair.values[0] is a and pair.values[1] is b:
                return Result(number)
        self.pairs.append(Pair(a, b))
        return Result(len(self.pairs) - 1)

    def length(self, name: str, a: Size, b: Size) -> lattice.Length:
        """The number that says which of two sizes an array has."""
        length = lattice.find([length for length, _ in self.lengths], a, b)
        if length is None:
            most = lattice.larger(self.tracer, a, b, self.level.snapshot.graph)
            if most is None:
                self.region.fail(f"{name} is of another shape in each branch")
            length = lattice.Length(a, b, most)
            self.lengths.append((length, self.want(of_size(a), of_size(b)).number))
        return length

    def choose_all(self, handles: list[Any]) -> list[Any]:
        """One value for each pair; the handles of written memory get their new versions."""
        made = self.choose(handles)
        for length, number in self.lengths:
            length.define(self.tracer, made[number])
        return [self.read(value, pair) for value, pair in zip(made, self.pairs, strict=True)]

    def read(self, value: Traced, pair: Pair) -> Any:
        """A result; if the region's buffer has spare capacity, a separate array."""
        lengths = next((part.lengths for part in pair.parts if part.lengths is not None), None)
        return value if lengths is None else lattice.read(self.tracer, value, lengths)

    def choose(self, handles: list[Any]) -> list[Any]:
        """The values as results of the region, or selected by `where`."""
        if not self.pairs and not handles and not any(block.has_effects for block in self.blocks):
            return []
        harmless = all(block.is_harmless for block in self.blocks)
        is_small = all(part.is_small for pair in self.pairs for part in pair.parts)
        if harmless and is_small and not handles:
            return self.select()
        return self.make_region(handles)

    def select(self) -> list[Any]:
        for block in self.blocks:
            block.splice()
        made = []
        for pair in self.pairs:
            parts = [part.here(self.region) for part in pair.parts]
            made.append(self.tracer.select(self.level.condition, *parts, *pair.kinds([])))
        return made

    def make_region(self, handles: list[Any]) -> list[Any]:
        for which, block in enumerate(self.blocks):
            written = {handle.storage: value for handle, value in self.ends[which].written}
            block.reopen()
            for pair in self.pairs:
                first = pair.parts[0]
                like = first.node if which and type(first) is ArmValue else None
                pair.parts[which].put(self.region, block, like)
            for handle in handles:
                end = written.get(handle.storage)
                block.result(handle if end is None else end.node, handle)
            block.close()
        memory = [Memory(handle) for handle in handles]
        make_region(self.tracer, "if", self.blocks, [*self.pairs, *memory], self.level.condition)
        for phi in memory:
            phi.rebuild()
        return [pair.made[0] for pair in self.pairs]
