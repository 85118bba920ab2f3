"""What the arms of a branch end with, made one value each.

An arm ends with values of names, versions of memory and items appended to lists (`End`). Of two
ends what is the same stays; what differs is a pair of which the branch chooses one (`Pair`). Arrays
of two shapes lie in buffers that have room for both. A name that one arm does not bind is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ..syntax.jumps import RETURN, VALUE
from ..value.kinds import (
    UINT64,
    UNBOUND,
    have_same_structure,
    is_array,
    is_number,
    is_same,
    kind_of,
    leaves,
    rebuilt,
    strength,
)
from ..value.objects import CONSTANT_LEAVES, DeferredCall, MaybeUnbound, Traced, choose
from . import varying
from .alias import Objects, Source, is_loose, sources_in
from .arms import (
    ArmValue,
    Bool,
    End,
    InBuffer,
    Pairs,
    Result,
    Undefined,
    Unsigned,
    unheld,
)
from .lattice import OTHER, Joined, join
from .list_columns import Maybe
from .region import Region

if TYPE_CHECKING:
    from .branch import Level

OURS = "__ci_"


class Merge:
    """Makes one value of each pair that two arms end with."""

    def __init__(self, region: Region, level: Level, first: End, second: End) -> None:
        self.region, self.level = region, level
        self.tracer = region.tracer
        self.ends = (first, second)
        self.pairs = Pairs(region, level, self.ends)
        self.checks: list[tuple[bool, str]] = []
        self.listed: set[int] = set()  # results that a list has, whoever has them besides

    def names(self, wanted: tuple[str, ...]) -> dict[str, Any]:
        """The values of names behind the branch, and the memory's versions."""
        contents = self.level.contents
        for end, block in zip(self.ends, self.pairs.blocks, strict=True):
            kept = {n: v for n, v in contents.names().items() if n not in end.names}
            if kept:
                end.add(self.region.state, block, kept)
        self.check_objects((*wanted, *contents.containers))
        plan = {name: self.plan(name) for name in (*wanted, *contents.containers)}
        appended = self.plan_appended()
        handles: dict[int, Any] = {}
        for end in self.ends:
            handles.update({handle.storage: handle for handle, _ in end.written})
        made = self.pairs.make(list(handles.values()))
        self.note_known(made)
        self.note_sources(made)
        names: dict[str, Any] = {}
        for name, value in plan.items():
            if value is UNBOUND:
                names[name] = value
                continue
            names[name] = rebuilt(value, iter([self.made(p, made) for p in leaves(value)]))
        for grown, item in appended:
            value = rebuilt(item.value, iter([self.made(p, made) for p in leaves(item.value)]))
            self.region.state.before_change(grown.container)
            grown.container.append(Maybe(value, self.made(item.flag, made), item.truths))
        level = self.level
        for is_then, name in self.checks:
            bound = (
                level.condition if is_then else self.tracer.apply("logical_not", level.condition)
            )
            self.region.check(bound, f"{name} is bound")
        contents.refill(self.region.state, names)
        return {name: names[name] for name in wanted}

    def check_objects(self, names: tuple[str, ...]) -> None:
        """Raises where a name has one object in the one arm and another in the other, of one memory."""
        places = Objects(self.region, self.level.contents)
        for name in names:
            a, b = (end.names.get(name, UNBOUND) for end in self.ends)
            if self.is_dead(name):
                continue
            a, b = (rebuilt(value, map(unheld, leaves(value))) for value in (a, b))
            places.add(name, a, b)
        if (name := places.distinguishable()) is not None:
            self.region.fail(f"{name} is another view of its array in each branch")

    def plan_appended(self) -> list[tuple[Any, Maybe]]:
        """What the arms appended to lists, with a Result where the graph decides."""
        plan = []
        for which, end in enumerate(self.ends):
            for grown, items in end.appended:
                item = items[0].value
                like = rebuilt(item, map(unheld, leaves(item)))
                taken = [t != bool(which) for t in grown.truths(self.level.condition, like)]
                for item in items:
                    values, flags = (item.value, UNBOUND), (Bool(item.flag), Bool(False))
                    value = self.plan_dead("an item", *(values[::-1] if which else values))
                    flag = self.pairs.want(*(flags[::-1] if which else flags))
                    self.listed |= {v.number for v in leaves(value) if type(v) is Result}
                    pairs = zip(taken, item.truths or taken, strict=True)
                    plan.append((grown, Maybe(value, flag, [a and b for a, b in pairs])))
        return plan

    def made(self, part: Any, made: list[Any]) -> Any:
        """A leaf behind the branch."""
        if type(part) is not Result:
            return part
        value = made[part.number]
        return value if part.strong is None else self.tracer.tagged(value, made[part.strong])

    def note_known(self, made: list[Any]) -> None:
        """Where sizes choose, whoever forces a number gets this call's, with a guard."""
        sample = self.tracer.sample_truth(self.level.condition)
        if sample is None:
            return
        for value, pair in zip(made, self.pairs.all, strict=True):
            chosen = pair.parts[0 if sample else 1].sample
            if type(value) is Traced and value.kind == "python":
                self.tracer.note_sample(value, self.level.condition, chosen)

    def plan(self, name: str) -> Any:
        """The merged value, with a Result where the graph decides."""
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
        if name.startswith(OURS) and name != VALUE:
            return self.plan_flag(a, b)
        if name == VALUE and not self.is_one_value(a, b):
            return self.plan_either(a, b)
        return self.plan_either_way(name, a, b)

    def is_dead(self, name: str) -> bool:
        """Whether one arm returns, and nobody reads the name then."""
        returns = [end.names.get(RETURN) is True for end in self.ends]
        return returns[0] != returns[1] and name in self.region.site.returned

    def is_one_value(self, a: Any, b: Any) -> bool:
        """Whether two results can be one value; so they must be where a caller goes on with it."""
        if self.region.stage.depth > 0:
            return True
        pairs = list(zip(leaves(a), leaves(b), strict=False))
        return have_same_structure(a, b) and all(
            self.is_one_type(x, y) and not self.is_one_of_before(x, y) for x, y in pairs
        )

    def is_one_of_before(self, a: Any, b: Any) -> bool:
        """Whether an arm gives back an array of before the branch, and the other another one."""
        is_older = any(type(part) is ArmValue and self.older(part) is not part for part in (a, b))
        return is_older and not is_same(unheld(a), unheld(b))

    def is_one_type(self, a: Any, b: Any) -> bool:
        values = unheld(a), unheld(b)
        if is_same(*values) or any(map(is_array, values)):
            return is_same(*values) or kind_of(values[0]) == kind_of(values[1])
        return type(join(self.tracer, *values, False, self.region.stage.may_check())) is Joined

    def plan_either(self, a: Any, b: Any) -> Any:
        """One of two results, which are made anew by whoever returns it."""
        for part in (*leaves(a), *leaves(b)):
            is_plain = part is choose or is_a(part, CONSTANT_LEAVES)
            if part.strong if type(part) is ArmValue else not is_plain:
                self.region.fail("a result is of another type in each branch")
        a, b = (rebuilt(v, map(self.older, leaves(v))) for v in (a, b))
        taken = self.pairs.want(Bool(True), Bool(False))
        first = self.plan_dead("the result", a, UNBOUND)
        return DeferredCall((choose, taken, first, self.plan_dead("the result", UNBOUND, b)))

    def older(self, part: Any) -> Any:
        """An array of before the branch as it is, whatever arm is taken."""
        if type(part) is not ArmValue or part.kind != "array" or not part.value.is_whole:
            return part
        mark = self.level.attempt.mark
        return part.value if mark.had(part.value) else part

    def plan_maybe_unbound(self, name: str, a: Any, b: Any) -> MaybeUnbound | None:
        """Numbers that a path does not bind, with the bool that says whether they have a value."""
        pairs = [v if type(v) is MaybeUnbound else MaybeUnbound(v, v is not UNBOUND) for v in (a, b)]
        flags = [Bool(v.flag) for v in pairs]
        parts = [leaf for v in pairs if v.value is not UNBOUND for leaf in leaves(v.value)]
        are_numbers = all(
            v.kind != "array" and v.strong is None if type(v) is ArmValue else is_number(v)
            for v in parts
        )
        if all(v.flag is True for v in pairs) or not are_numbers:
            return None
        value = self.plan_either_way(name, *(v.value for v in pairs))
        return MaybeUnbound(value, self.pairs.want(*flags))

    def plan_either_way(self, name: str, a: Any, b: Any) -> Any:
        """A value that one arm has, or both."""
        if a is UNBOUND or b is UNBOUND:
            return self.plan_dead(name, a, b)
        if not have_same_structure(a, b):
            self.region.fail(f"{name} is of another type in each branch")
        parts = [self.join(name, x, y) for x, y in zip(leaves(a), leaves(b), strict=True)]
        return rebuilt(a, iter(parts))

    def plan_unbound(self, name: str, a: Any, b: Any) -> Any:
        if not name.startswith(OURS):
            self.checks.append((b is UNBOUND, name))
        return self.plan_dead(name, a, b)

    def plan_dead(self, name: str, a: Any, b: Any) -> Any:
        """One arm's value; behind the other, which has none, nobody looks."""
        bound = b if a is UNBOUND else a
        parts = []
        for part in leaves(bound):
            if type(part) is not ArmValue or self.is_written(part):
                parts.append(unheld(part))
                continue
            result = self.want_undefined(name, part, a is UNBOUND)
            if part.strong is not None:
                result.strong = self.want_undefined(name, part.strong, a is UNBOUND).number
            parts.append(result)
        return rebuilt(bound, iter(parts))

    def is_written(self, part: ArmValue) -> bool:
        """Whether it is an array of before the branch to which an arm writes."""
        if part.kind != "array" or not part.value.is_whole:
            return False
        written = [handle for end in self.ends for handle, _ in end.written]
        return any(handle.storage == part.value.storage for handle in written)

    def want_undefined(self, name: str, part: ArmValue, is_first: bool) -> Result:
        """The value in one arm; in the other, the first or the second, nobody looks at it."""
        lengths: dict[int, varying.Length] = {}
        shape = list(part.value.shape) if part.kind == "array" else []
        for axis, size in enumerate(shape):
            most = self.level.attempt.mark.most(size)
            if most is None:
                self.region.fail(f"the size of {name} is known only in one branch")
            if not is_same(most, size):
                lengths[axis] = self.pairs.length(*((0, size) if is_first else (size, 0)))
                shape[axis] = most
        value = InBuffer(part, tuple(shape), lengths) if lengths else part
        undefined = Undefined(part, tuple(shape))
        return self.pairs.want(*((undefined, value) if is_first else (value, undefined)))

    def plan_flag(self, a: Any, b: Any) -> Any:
        if a is b and type(a) is bool:
            return a
        return self.pairs.want(*(Bool(v) for v in (a, b)))

    def join(self, name: str, a: Any, b: Any) -> Any:
        """One leaf of both arms."""
        if is_same(unheld(a), unheld(b)):
            return unheld(a)  # it was there before the arms
        values = unheld(a), unheld(b)
        if all(map(is_array, values)) and kind_of(values[0]) == kind_of(values[1]):
            is_alike = self.tracer.varying(a.node, b.node) == []
            return self.pairs.want(a, b) if is_alike else self.join_sizes(name, a, b)
        joined = join(self.tracer, *values, False, self.region.stage.may_check())
        if type(joined) is str:
            where = " in each branch" if joined is OTHER else ""
            self.region.fail(f"{name} {joined}{where}")
        if joined.tagged:
            return self.tag(a, b, joined.dtype)
        if joined.dtype == UINT64 and kind_of(values[0]) != kind_of(values[1]):
            return self.pairs.want(Unsigned(a), Unsigned(b))
        return self.pairs.want(a, b)

    def join_sizes(self, name: str, a: ArmValue, b: ArmValue) -> Any:
        """Arrays of two shapes lie in buffers that are large enough for both."""
        axes = self.tracer.varying(a.node, b.node)
        if axes is None:
            self.region.fail(f"{name} is of another type in each branch")
        shape = list(a.value.shape)
        lengths: dict[int, varying.Length] = {}
        for axis in axes:
            length = self.pairs.length(a.value.shape[axis], b.value.shape[axis])
            if length is None:
                self.region.fail(f"{name} is of another shape in each branch")
            lengths[axis] = length
            shape[axis] = length.capacity
        return self.pairs.want(*(InBuffer(v, tuple(shape), lengths) for v in (a, b)))

    def tag(self, a: Any, b: Any, dtype: Any) -> Result:
        """NumPy's number of the dtype, with the bool that says whether it is not Python's."""
        parts = [v if type(v) is ArmValue else dtype.type(v) for v in (a, b)]
        value = self.pairs.want(*parts)
        known = []
        for v in (a, b):
            is_tagged = type(v) is ArmValue and v.strong is not None
            known.append(Bool(v.strong if is_tagged else strength(unheld(v))))
        value.strong = self.pairs.want(*known).number
        return value

    def note_sources(self, results: list[Any]) -> None:
        """A merged array may be memory of before, or that of another result."""
        aliases, mark = self.region.regions.aliases, self.level.attempt.mark
        made: list[dict[int, list[Any]]] = [{}, {}]  # in each arm: storage -> results that have it
        for number, (value, pair) in enumerate(zip(results, self.pairs.all, strict=True)):
            sources: list[Source] = []
            if any(self.is_loose(part, end) for part, end in zip(pair.parts, self.ends, strict=True)):
                aliases.loosen(value)
            for which, (part, end) in enumerate(zip(pair.parts, self.ends, strict=True)):
                held = part.array
                if held is None:
                    continue
                for source in sources_in(end.records, held.value):
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

    def is_loose(self, part: Any, end: End) -> bool:
        """Whether an array lies otherwise in memory where the arm ends."""
        held = part.array
        return held is not None and is_loose(end.records, held.value)

    def is_alone(self, array: Any, end: End) -> bool:
        """Memory that only one name still has where the arm ends."""
        ends = [unheld(v) for value in end.names.values() for v in leaves(value)]
        return self.region.is_alone(array, ends, end.records)
