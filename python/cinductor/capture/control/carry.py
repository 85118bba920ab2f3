"""The state that iterations of a loop pass to each other, found by a fixed-point iteration, and its region.

`open` makes the state at the head of an iteration; `learn` compares it with the state at its end. A name is
unchanged, an int that grows by a constant (`steps`), or carried by value (`lattice`; in the region `phi`). Written
memory is carried as versions of the same array. Carrying by value is only right if no write through one name is
visible under another: such a loop is not captured. Arrays that are swapped are captured, by running the body once
for each arrangement within one iteration of the region.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _core
from ..kinds import UNBOUND, is_array, is_int, is_one, is_same, kind_of, leaves, rebuilt
from ..objects import SINGLE, Traced, is_record
from . import lattice, list_buffer
from .alias import Objects, PeelFirstIteration
from .carried_types import Types, is_undefined, kinds_of
from .flow import Flow
from .lattice import Type, at_entry
from .list_append import AppendedItems
from .live_out import Last, Trips
from .loop_state import LoopRegion, LoopState
from .phi import Memory, Number, Phi, Value, make_region
from .region import truth
from .state import Change, value_of

MAX_PERIOD = 6
# Facts that runs of a body can find, once each: the period, the flag, weak types at the entry, the last iteration.
WAYS = 6
NUMBER_TYPES = 3  # a Python number, one of NumPy or of 64 bits without sign, and a tagged one
SIZE_TYPES = 3  # a fixed size, one with a capacity, and one in a flat buffer
MAX_CARRIED = 512  # because each value is searched among all others


class Carried(LoopState):
    """Finds what the iterations of one loop pass to each other."""

    def __init__(self, loop: LoopRegion) -> None:
        super().__init__(loop)
        self.regions.note_made(self)
        self.types = Types(self)
        self.steps: dict[str, Any] = {}
        self.no_steps: set[str] = set()
        self.first_trace: Any = None  # of a run that starts like the loop's first iteration
        self.first_ends: dict[str, Any] = {}
        self.is_weak = self.was_weak = False  # this run has Python's numbers where iterations make NumPy's
        self.is_endless = False  # only its flag ends it, which no iteration before the region has set
        self.expected: set[int] = set()  # of `written`, those that no run has written to yet
        self.appends: dict[int, AppendedItems] = {}
        self.trips = Trips()
        self.runs, self.most_runs = 0, WAYS
        renewed = {n for n in loop.site.renewed if kind_of(self.entry[n]) is not None}
        if renewed and (loop.is_while or not self.runs_once()):
            renewed = set()
        kept = () if loop.ended is False else loop.site.live_out  # if no iteration of the region runs
        self.names = tuple(dict.fromkeys([n for n in (*loop.site.carried, *kept) if n not in renewed]))
        self.recall()

    def recall(self) -> None:
        """Start with the final state of an earlier capture of the loop."""
        for name in self.loop.plan.names:
            value = self.entry.get(name, UNBOUND)
            if value is UNBOUND or not is_int(value):
                self.types.recall(name, value)
        known = self.loop.plan.written
        values = [self.entry.get(n, self.loop.others.get(n)) for n in (self.loop.site.stored if known is None else known)]
        for array in sorted([value.whole for value in values if is_array(value)], key=lambda array: array.storage):
            self.add_written(array)
        self.expected = {*self.written} if known is None else set()

    def remember(self) -> None:
        """Record the state for the next capture, in another run of an enclosing loop."""
        plan = self.loop.plan
        plan.names = list(self.types_of)
        plan.written = [
            name
            for name, value in {**self.loop.others, **self.entry}.items()
            if type(value) is Traced and value.storage in self.written
        ]

    def add_written(self, handle: Traced) -> bool:
        is_new = handle.storage not in self.written
        self.written.setdefault(handle.storage, handle)
        return is_new

    # --- the head of an iteration ---

    def count_run(self) -> None:
        """Each run but the last finds a way in which iterations end, or a wider type of a leaf."""
        self.runs += 1
        if self.runs == WAYS:
            types = [kind for row in self.types_of.values() for kind in row if kind is not None]
            found = len(self.names) + len(self.written) + len(self.appends) + len(types)
            axes = sum(0 if kind.like is None else kind.like.ndim for kind in types)
            self.most_runs = WAYS + NUMBER_TYPES * found + SIZE_TYPES * axes
        if self.runs > self.most_runs:
            self.loop.fail("the state carried between iterations keeps changing")

    def open(self) -> dict[str, Any]:
        """Open the blocks of a run; returns the values of names at its head."""
        self.count_run()
        for handle in self.written.values():  # inputs must enter the graph outside of the region
            handle.prepare()
        site = self.loop.site
        is_counted = bool(self.steps or self.types.joined)
        for name in site.live_out:  # an iteration makes it, or at least one must run
            is_counted |= name not in self.names or self.entry[name] is UNBOUND
        for name, types in self.types_of.items():
            is_counted |= self.is_live_after(name) and any(k and k.kind == "array" for k in types)
        self.cond: Any = None
        self.body: Any = None
        self.counter: Any = None
        self.flag_phi: Any = None
        self.iterations_made = None
        self.turn = 0
        self.distinct.clear()
        self.trips.open()
        block = self.tracer.block()
        if self.is_while:
            self.cond = block
            if is_counted or not self.loop.is_while:
                self.counter = self.count(block.param("i8", "scalar"))
            if self.flag:
                self.flag_phi = self.watch_flag(block.param("?", "python"))
        else:
            self.body = block
            self.trip = block.index(self.extent)
        head = self.make_head(block)
        if self.is_while and not self.loop.is_while:
            self.open_body(None)
        elif self.is_while and self.counter is not None:
            self.trip = self.tracer.define(self.counter.head, 0, None)
        for name, step in self.steps.items():
            head[name] = self.entry[name] + self.trip * step
        self.snapshot.refill(head)
        for grown in self.appends.values():
            grown.open()
        self.head = head
        return head

    def make_head(self, block: _core.Block) -> dict[str, Any]:
        carried = frozenset((*self.names, *self.snapshot.containers))
        head = {n: v if n in carried else UNBOUND for n, v in self.entry.items()}
        self.lengths = [self.vary(block, length) for length in self.types.lengths]
        self.values = [
            Value((name, position), leaf, kind)
            for name in self.types_of
            for position, (leaf, kind) in enumerate(self.kinds(name))
            if kind is not None
        ]
        for value in self.values:
            value.open(self.tracer, block)
        head.update(self.names_of(value.head for value in self.values))
        if sum(len(value.params) for value in self.values) > MAX_CARRIED:
            self.loop.fail(f"it carries more than {MAX_CARRIED} values")
        for handle in self.written.values():
            block.bind(handle)
        self.bound = {storage: handle.version for storage, handle in self.written.items()}
        return head

    def kinds(self, name: str) -> list[tuple[Any, Type | None]]:
        """A name's leaves at the entry, and their types at the head of this run."""
        pairs = list(zip(leaves(self.entry[name]), self.types_of[name], strict=True))
        return [(leaf, at_entry(leaf, kind)) for leaf, kind in pairs] if self.is_weak else pairs

    def count(self, param: Traced) -> Number:
        """The counter of iterations."""
        tracer = self.tracer
        return Number(param, lambda: tracer.lift(0, "i8"), lambda: tracer.apply("add", param, 1))

    def watch_flag(self, param: Traced) -> Number:
        """Carry the flag that ends the loop."""

        def end() -> Any:
            value = self.ends_of_names[self.loop.site.flag or ""]
            is_traced = type(value) is Traced
            return truth(self.tracer, value) if is_traced else self.tracer.lift(value)

        def entry() -> Any:
            ended = self.loop.ended
            return truth(self.tracer, ended) if type(ended) is Traced else self.tracer.lift(False)

        return Number(param, entry, end)

    def vary(self, block: _core.Block, length: lattice.Length) -> Number:
        """Carry a size that changes."""
        tracer, head = self.tracer, block.param("i8", "python")
        length.define(tracer, head)
        return Number(
            head,
            lambda: lattice.number_of(tracer, length.entry),
            lambda: lattice.number_of(tracer, length.end),
        )

    def names_of(self, parts: Iterable[Any]) -> dict[str, Any]:
        """The values of carried names, given those of their changing leaves."""
        left = iter(parts)
        return {
            name: rebuilt(
                self.entry[name],
                (
                    leaf if kind is None else next(left)
                    for leaf, kind in zip(leaves(self.entry[name]), kinds, strict=True)
                ),
            )
            for name, kinds in self.types_of.items()
        }

    def open_body(self, test: object) -> bool:
        """Close the block of a while's condition and open that of its body."""
        condition, apply = None, self.tracer.apply
        self.is_endless = test is not None and type(test) is not Traced and self.loop.ended is False
        if type(test) is Traced:
            condition = truth(self.tracer, test)
        elif test is not None and not test:
            self.loop.fail("the loop runs no iteration")
        if not self.loop.is_while:
            condition = apply("less", self.counter.head, self.extent)
        if self.flag_phi is not None:
            goes_on = apply("logical_not", self.flag_phi.head)
            condition = goes_on if condition is None else apply("logical_and", condition, goes_on)
        if condition is None:
            condition = self.tracer.lift(True)
        if other := [h for h in self.snapshot.graph.written() if h.storage not in self.written]:
            self.loop.scope.stage.give_up_draws(other, "the condition of a loop draws")
            self.loop.fail("the condition writes to an array")
        if test is not None:
            self.check_condition()
        self.cond.result(condition)
        self.cond.close(True)
        self.body = self.tracer.block()
        if type(test) is Traced:
            self.tracer.assume(test)
        if not self.loop.is_while:
            self.trip = self.tracer.define(self.counter.head, 0, self.extent)
        return True

    def note_distinct(self, a: Traced, b: Traced) -> None:
        """Two arrays are different objects in this iteration. If one is carried, they must differ in each."""
        known = {(x.storage, y.storage) for x, y in self.distinct}
        if (a.storage, b.storage) in known:
            return
        if any(v.value.storage in (a.storage, b.storage) for v in self.values):
            self.distinct.append((a, b))

    def next_run(self) -> bool:
        """True if the body must run again in this iteration."""
        self.turn += 1
        if self.turn < self.period:
            return True
        self.turn = 0
        return False

    # --- the end of an iteration ---

    def learn(self, names: dict[str, Any]) -> bool:
        """Compare the state at the end of an iteration with that at its head. Returns False if it must be run again.
        """
        loop = self.loop
        loop.check_others(names)
        names = self.ends_of_names = {**names, **self.diff_containers()}
        changed = {n: names[n] for n in (*loop.site.state, *self.snapshot.containers) if n in names and names[n] is not self.head.get(n)}
        names.update(zip(changed, loop.lifted(changed.values()), strict=True))
        if self.body is None:
            loop.fail("the loop runs no iteration")
        if self.is_weak:
            self.first_trace, self.is_weak = self.trace(), False
            return False
        if self.record_flag(names):
            return False
        changed = {
            name: names.get(name, UNBOUND)
            for name in (*self.names, *self.snapshot.containers)
            if name not in self.types_of
            and name not in self.steps
            and (self.head[name] is not UNBOUND or is_undefined(name, names.get(name)))
            and names.get(name, UNBOUND) is not self.head[name]
            and not (is_same(names.get(name, UNBOUND), self.head[name]) and self.types.keeps_tuples(name, names[name]))
        }
        unwritten = {storage for storage in self.expected if self.written[storage].version == self.bound[storage]}
        for storage in unwritten:
            del self.written[storage]
        self.expected = set()
        written = [handle for handle in self.snapshot.graph.written() if handle.storage not in unwritten]
        if changed and (self.rotates(changed, written) or self.alternates(changed)):
            return False
        is_wider = self.grows or bool(unwritten)
        for handle in written:
            is_wider |= self.add_written(handle)
        for name, value in changed.items():
            self.carry(name, value)
            is_wider = True
        is_wider |= bool(self.steps) and self.carry_unsteady(names)
        for name in self.types_of:
            if name not in changed:
                is_wider |= self.types.widen(name, self.head[name], names.get(name, UNBOUND))
                is_wider |= type(self.head[name]) not in SINGLE and self.types.split_tuples(name, names.get(name, UNBOUND))
        is_wider |= self.types.group()
        trace = self.trace()
        if self.first_trace is None:
            self.first_trace, self.first_ends = trace, names
        return not is_wider and self.decide_names(names, trace)

    def carry_unsteady(self, names: dict[str, Any]) -> bool:
        """Carry ints by value that did not grow by their step. Returns True if there are any."""
        unsteady = [name for name, step in self.steps.items() if not is_same(names.get(name, UNBOUND), self.head[name] + step)]
        for name in unsteady:
            del self.steps[name]
            self.no_steps.add(name)
            self.carry(name, names.get(name, UNBOUND))
        return bool(unsteady)

    def decide_names(self, names: dict[str, Any], trace: object) -> bool:
        """After a run that found nothing new, decide what is live after the loop. Returns False if the body must be run again."""
        compared = Objects(self.snapshot)
        for name in (*self.names, *self.snapshot.containers):
            compared.add(name, leaves(self.head[name]), leaves(names.get(name)))
        compared.others += [names.get(n) for n in self.loop.site.live_out if n not in self.names]
        if (moved := compared.distinguishable(self.loop.elsewhere)) is not None:
            raise PeelFirstIteration(f"{moved} is another view of its array in each iteration")
        if self.types.joined and self.assumes_weak(names, trace == self.first_trace):
            return False
        self.flow = Flow(self, names)
        self.last = Last(self, self.flow)
        late = self.last.sort_names(names)
        return True if late is None else self.leave_last_iteration(late)

    def assumes_weak(self, names: dict[str, Any], is_alike: bool) -> bool:
        """True if the next run must start like the loop's first iteration, with other types than later ones, because
        computations with constants could depend on them. is_alike: this run left the same trace.
        """
        if not self.ends_alike(names):
            raise PeelFirstIteration("values are of another type at the end of the loop's first iteration")
        if not is_alike and not self.was_weak:
            self.is_weak = self.was_weak = True
            return True
        if not (is_alike and self.trips.are_known()):
            raise PeelFirstIteration("values are of another type at the loop's entry")
        return False

    def ends_alike(self, names: dict[str, Any]) -> bool:
        """True if an iteration leaves the same kinds of numbers, Python's or NumPy's, as the first."""
        wanted = {n for n in names if n in self.types_of or self.is_live_after(n)}
        return all(kinds_of(self.first_ends.get(n)) == kinds_of(names[n]) for n in wanted)

    def trace(self) -> Any:
        """The parts of a run that may depend on the kinds of numbers: computed values, queried classes, appended
        items.
        """
        seen = self.snapshot.since("classes")
        return self.body.trace, seen, list(map(AppendedItems.kinds_now, self.appends.values()))

    def diff_containers(self) -> dict[str, Any]:
        """The contents, at the end of an iteration, of the containers that it changed."""
        loop = self.loop
        self.grows = False
        for change in loop.diff(self.snapshot):
            container = change.container
            if id(container) in self.appends:
                self.appends[id(container)].learn()
                continue
            if change.appended:
                self.grow(change)
                continue
            if self.snapshot.has(container) or change.is_nothing:
                continue
            if not change.keeps_places:
                loop.fills |= change.fills
                if not loop.plan.peel and list_buffer.may_be_columns(loop.tracer, container, change.before):
                    list_buffer.want_buffer(loop, container, change.before[0], change.before)
                raise PeelFirstIteration("the body adds to a container or takes from it")
            name = self.snapshot.name_of(container)
            (self.entry[name],) = (self.head[name],) = loop.lifted([value_of(container, change.before)])
        for name, container in self.snapshot.containers.items():
            if len(leaves(value_of(container))) != len(leaves(self.entry[name])):
                loop.fail("the body adds to a container or takes from it")
        return self.snapshot.names()

    def check_condition(self) -> None:
        """Raise if a while's condition, which runs once more than the body, changed anything."""
        for change in self.loop.diff(self.snapshot):
            is_nothing, container = change.is_nothing, change.container
            if self.snapshot.has(container):
                is_nothing = is_one(self.head[self.snapshot.name_of(container)], value_of(container))
            if not is_nothing:
                self.loop.fail("the condition changes a container, or a name of a function around")

    def grow(self, change: Change) -> None:
        """Record that iterations append to a list."""
        loop, container = self.loop, change.container
        if self.is_while or loop.site.flag is not None or type(container) is not list:
            list_buffer.want_buffer(loop, container, change.appended[0])
        grown = AppendedItems(self, container, change.before)
        if grown.is_open and not grown.may_open:
            if type(self.extent) is not int and len(self.state.active) > 1:
                list_buffer.want_buffer(loop, container, change.appended[0])
            grown.close()
        self.appends[id(container)], self.grows = grown, True

    def record_flag(self, names: dict[str, Any]) -> bool:
        """True if the loop was found to end by its flag, or not to end by the one that it was expected to set."""
        flag, is_expected, self.expects_flag = self.loop.site.flag, self.expects_flag, False
        value = names.get(flag, False) if flag else False
        if value is True:
            self.loop.fail("the loop ends in its first iteration")
        if type(value) is not Traced and is_expected:
            self.flag, self.is_while = False, self.loop.is_while
            return True
        if type(value) is not Traced or self.flag:
            return False
        if self.period > 1:
            self.loop.fail("arrays change places in a loop that may end early")
        self.flag = self.is_while = True
        return True

    def rotates(self, changed: dict[str, Any], written: list[Any]) -> bool:
        """True if written arrays were swapped."""
        held = {handle.storage for handle in written}
        sources: dict[str, str] = {}
        for name, value in changed.items():
            if type(value) is not Traced or value.kind != "array":
                continue
            for other in changed:
                if is_same(value, self.head[other]):
                    sources[name] = other
        if not any(self.head[name].storage in held for name in sources.values()):
            return False
        if sorted(sources) != sorted(sources.values()):
            self.loop.fail("names share memory that is written to")
        period, now = 1, dict(sources)
        while any(a != b for a, b in now.items()):
            now = {name: sources[other] for name, other in now.items()}
            period += 1
            if period > MAX_PERIOD:
                self.loop.fail("arrays change places")
        if self.period > 1 or self.flag or self.loop.is_while:
            self.loop.fail("arrays change places")
        self.repeat(period)
        return True

    def alternates(self, changed: dict[str, Any]) -> bool:
        """True if iterations pass on arrays in C order and in another order alternately: `a = a.T * 2`."""
        if self.period > 1 or self.flag or self.loop.is_while or self.loop.tail:
            return False
        for name, value in changed.items():
            pairs = zip(leaves(self.head[name]), leaves(value), strict=False)
            arrays = [(a, b) for a, b in pairs if is_array(a) and is_array(b)]
            if any(a.ndim == b.ndim > 1 and a.is_c_order != b.is_c_order for a, b in arrays):
                self.repeat(2)
                return True
        return False

    def repeat(self, period: int) -> None:
        """From here on run the body that often in one iteration of the region."""
        self.period, self.names = period, self.loop.site.carried
        rest = self.loop.extent % period
        self.loop.tail += int(rest)
        self.assumptions.append(lambda: int(rest))

    def carry(self, name: str, value: object) -> None:
        """Carry a name that an iteration changed."""
        head = self.head[name]
        if head is UNBOUND and is_undefined(name, value):
            undefined = self.types.add_undefined(name, value)
            if undefined is not UNBOUND:
                self.entry[name] = undefined
                return
        if head is UNBOUND or value is UNBOUND:
            raise PeelFirstIteration(f"{name} is bound in one iteration and not in another")
        if is_int(head) and is_int(value) and name not in self.no_steps:
            step = value - head
            if type(step) is int or (type(step) is Traced and step.is_fixed):
                self.steps[name] = step
                return
        self.types.widen(name, head, value)
        if type(value) not in SINGLE and is_record(type(value)):
            self.loop.scope.stage.chooses_tuples = True
            self.types.split_tuples(name, value)

    # --- names that only iterations bind ---

    def leave_last_iteration(self, name: str) -> bool:
        loop = self.loop
        if self.is_while or loop.tail >= self.period or not self.runs_once():
            loop.fail(f"{name} is used after the loop with its value of the last iteration")
        extent = self.extent
        self.assumptions.append(lambda: self.runs_once(extent))
        loop.tail += self.period
        return False

    # --- the region ---

    def finish(self) -> dict[str, Any]:
        """Make the region; returns the values of names after the loop."""
        loop, body, tracer = self.loop, self.body, self.tracer
        names = self.ends_of_names
        self.flow.check()
        for grown in self.appends.values():
            grown.check(names)
        if body.work == 0 and not self.written and not self.is_while:
            if type(self.extent) is int:
                loop.fail("it does no array work")
        first = self.cond if self.is_while else body
        for value, leaf in zip(self.values, self.leaves_of(names), strict=True):
            value.end(tracer, leaf)
        self.heads = [phi for phi in (self.counter, self.flag_phi) if phi is not None]
        self.memory = [*map(Memory, self.written.values())]
        for phi in (*self.heads, *self.lengths, *self.values, *self.memory):
            phi.results(tracer, body, first)
        self.last.finish(body, first)
        for grown in self.appends.values():
            grown.finish(body)
        self.snapshot.rewind()
        for assumption in self.assumptions:
            assumption()
        if self.types.joined:
            self.check_iteration_counts()
        exits = self.make_region()
        self.snapshot.refill(exits)
        return exits

    def make_region(self) -> dict[str, Any]:
        tracer, site = self.tracer, self.loop.site
        needs_iterations = int(self.last.needs_iteration())
        phis: list[Phi] = [*self.heads, *self.lengths, *self.values, *self.memory, *self.last.phis]
        phis += [item for grown in self.appends.values() for item in grown.items]
        blocks = (self.cond, self.body) if self.is_while else (self.body,)
        make_region(tracer, "while" if self.is_while else "for", blocks, phis)
        kept = {*self.names, *self.snapshot.containers}
        exits = {n: self.entry[n] if n in kept else UNBOUND for n in {*site.state, *kept}}
        trips = self.extent if not self.is_while else None
        counter = self.counter.made[0] if self.counter is not None else None
        if counter is not None:
            if any(self.is_live_after(name) for name in self.steps):
                trips = tracer.define(counter, 0, None)
        if site.flag:
            exits[site.flag] = self.flag_phi.made[0] if self.flag_phi is not None else False
        for length, phi in zip(self.types.lengths, self.lengths, strict=True):
            length.define(tracer, phi.made[0])
        exits.update(self.names_of([value.behind(tracer) for value in self.values]))
        for memory in self.memory:
            memory.rebuild()
        exits.update(self.last.exits())
        for grown in self.appends.values():
            grown.exits(exits)
        made_arrays = {
            number: leaves(exits[array.phi.name])[array.phi.position]
            for number, array in enumerate(self.flow.arrays)
            if self.is_live_after(array.phi.name)
        }
        needs_iterations = max(needs_iterations, self.flow.note(made_arrays))
        for name, step in self.steps.items():
            exits[name] = UNBOUND if trips is None else self.entry[name] + trips * step
        self.make_iterations(needs_iterations, counter)
        self.iterations_made = counter if self.period == 1 else None
        for one in phis:  # values that are live at a break are returned
            one.made.clear()
        return exits

    # --- required iterations ---

    def make_iterations(self, count: int, counter: object) -> None:
        """After the region: require that it ran that many iterations, or one if iterations determine types."""
        loop = self.loop
        makes_types = any(map(self.is_live_after, self.types.joined))
        count = max(count, makes_types)
        if count <= int(self.is_endless):
            return
        if counter is not None:
            enough = self.tracer.apply("greater_equal", counter, count)
            loop.check(enough, "the loop runs an iteration")
        elif self.is_while or not loop.makes_iteration(self.extent - (count - 1)):
            loop.check(False, "the loop runs an iteration")
        if makes_types and (self.is_while or type(self.extent) is not int):
            self.notify_iteration(loop.key, None if self.is_while else self.extent)

    def notify_iteration(self, key: object, extent: object) -> None:
        """Notify the enclosing loop."""
        for region in reversed(self.state.active):
            outer = region.carried
            if outer is not None and outer is not self:
                outer.trips.note(key, extent, outer.snapshot.graph)
                return

    def check_iteration_counts(self) -> None:
        """Check requirements that the last run dropped, if the first iteration's numbers have another type."""
        for key, extent in self.trips.dropped():
            if not self.loop.makes_iteration(extent):
                self.loop.fail("a loop inside runs no iteration")
            self.notify_iteration(key, extent)
