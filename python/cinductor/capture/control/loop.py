"""Loops being captured: one body of the graph for all iterations.

The first run of the body is optimistic: names and memory are what they are at the loop's entry.
What a run changed is carried by the next: an int as entry + step * iteration, anything else as a
value that each iteration hands to the next (`carry`). Runs end when nothing new is learnt; then
the region is made. An iteration whose types differ from those of later iterations is peeled off
before the region, and the last one after it when a name is to be what only that iteration makes
it.

A while whose tests are known is run by Python until it has recorded work in a few iterations;
then it is undone and captured. What cannot be captured is undone too, and Python runs it,
iteration by iteration; the reason is reported.
"""

from __future__ import annotations

from typing import Any

from ...base.class_lookup import is_a
from ...base.signals import Signal
from ..iterators import END, UNKNOWN, Items
from ..kinds import Hooks, Size, is_same
from ..objects import Traced
from ..syntax.stage_calls import Site
from . import carried_types
from .alias import PeelFirstIteration, Unlike
from .carry import Carried
from .list_append import AppendedItems
from .list_buffer import with_lists_of_head
from .loop_state import LoopPlan, LoopRegion
from .region import RegionBreak, Rerun, between_runs, is_of_body, reason_of, truth
from .state import Snapshot

UNROLL = 8  # known iterations that are unrolled; half as many for each inner loop
PATIENCE = 3  # iterations of a while with known tests that may record work
MAX_WATCHED = 4096

PLAIN, WATCH, PEEL, REGION, TAIL, DONE = "plain", "watch", "peel", "region", "tail", "done"


class Ended(Signal):
    """A loop ends in the middle of taking its next item."""


class Loop(LoopRegion):
    """A for over numbered items, or (items None) a while, which has none."""

    def __init__(
        self, scope: Hooks, site: Site, items: Items | None, phase: str, iterator: Items | None = None
    ) -> None:
        super().__init__(scope, site)
        self.iterator = iterator  # the iterator of the items, if other code may have it
        self.gone = 0 if iterator is None else iterator.position  # items taken before the loop
        self.items = Items(None, lambda index: None) if items is None else items
        self.operands = (self.items, iterator)
        self.is_while = items is None
        self.plan: LoopPlan = self.regions.plans.setdefault(self.key, LoopPlan())
        self.plan.begin()
        self.phase = PLAIN if self.plan.plain else PEEL if phase == REGION and self.plan.peel else phase
        self.position = self.trips = self.worked = self.worked_iterations = 0
        self.goes_on = True
        self.ended: Any = False  # an iteration before the region has ended the loop
        self.fills = False  # a bounded deque was seen to grow
        self.tail = 0
        self.wanted: tuple[Any, ...] = ()  # a list that becomes a buffer, or a rule by which an array grows
        self.base: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        self.grown: list[AppendedItems] = []  # lists to which the region appends
        self.heads: Any = None  # names for the next plain run
        self.now: Any = {}
        self.restores = self.phase != PLAIN

    def forget(self) -> None:
        super().forget()
        carried, self.carried = self.carried, None
        if carried is not None:
            vars(carried).clear()  # its parts refer to it

    # --- the protocol of rewritten code ---

    def begin(self, names: dict[str, Any]) -> None:
        """Get the names of the frame before the loop."""
        self.now = names
        self.base = Snapshot(self.state, True, names)
        if self.phase == PEEL and not self.is_while and not self.may_make_iteration(self.items.length):
            self.plan.peel, self.phase = 0, REGION  # iterations were peeled when more was known
        if self.phase in (PEEL, REGION):
            self.move(UNKNOWN)

    def __iter__(self) -> Loop:
        return self

    def __next__(self) -> Any:
        if self.phase == PEEL and self.tracer.has_fallen_back:  # nothing can be captured, or undone, any more
            self.phase = PLAIN
            self.keep_names()
            self.move(self.position)
        if self.phase == PEEL and (self.position == self.plan.peel or not self.goes_on):
            self.phase = REGION if self.goes_on else DONE
        if self.phase == REGION:
            self.restores = True
            return self.attempt_to(self.open_run)
        if self.phase == PLAIN and not self.restores:
            self.scope.check_budget()
        if self.phase in (PLAIN, WATCH) and self.iterator is not None:
            self.position = self.position_in(self.iterator)
        if self.ends():
            if not self.is_early:
                self.move(END)
            self.conclude()
            raise StopIteration
        if self.tracer.has_fallen_back and self.phase == PLAIN and not self.restores:
            self.hand_over()

    def hand_over(self) -> None:
        """NumPy continues the call: from this iteration on the loop is Python's own."""
        left: Any = None
        if not self.is_while:
            left = self.iterator  # other code may have it
            if left is None:
                if self.items.made is None:  # Python has no iterator of this kind
                    return
                self.items.move(self.position)
                left = self.items
            left = self.scope.stage.materialise(left)
        self.conclude()
        self.__class__ = LeftWhile if self.is_while else Left
        self.left = left
        self.__next__()

    def position_in(self, iterator: Items) -> Any:
        """The number of items taken: the body may take some, too."""
        iterator.check()
        return self.items.length if iterator.position is END else iterator.position - self.gone

    def move(self, position: Size | str) -> None:
        """Set the position of the iterator that supplies the items."""
        if self.iterator is not None:
            is_moved = type(position) is not str and not is_same(self.gone, 0)
            self.iterator.move(self.gone + position if is_moved else position)  # type: ignore[operator]

    def ends(self) -> bool:
        """True if there is no further iteration."""
        if self.phase == PLAIN and self.ended is not False:  # no region followed that iteration
            self.goes_on, self.ended = not bool(self.ended), False
        if self.phase == DONE or not self.goes_on:
            return True
        if self.is_while or self.phase == TAIL:
            return False
        length = self.items.length
        if self.phase == PEEL and type(length) is Traced:
            if self.makes_iteration(left := length - self.position):
                return False
            if type(left > 0) is Traced:
                self.stop_peeling("whether the loop runs an iteration is known only when the program runs")
        return self.position >= int(length)

    def stop_peeling(self, reason: str) -> None:
        """Python goes on with the loop, after the iterations that ran before the region. An enclosing region is given up."""
        if self.tracer.in_region:
            self.fail(reason)
        self.run_plain(reason, self.position, self.now)

    @property
    def is_early(self) -> bool:
        """True if it has ended before its items did, or may have."""
        return not self.goes_on or (self.phase == DONE and self.site.flag is not None)

    def enter(self) -> tuple[Any, ...]:
        """The values of names at the head of this run."""
        heads, now = self.heads, self.now
        if self.phase == PLAIN:
            self.keep_names()
        self.heads, self.now = None, {}
        return self.values(now if heads is None else heads)

    def keep_names(self) -> None:
        """From here on the names stay in the frame. Values that it no longer has must be able to die."""
        self.restores, self.heads, self.now = False, None, {}

    @property
    def item(self) -> Any:
        """The item for the target of a `for`."""
        index = self.carried.index if self.phase == REGION else self.position
        self.position += self.phase != REGION
        if self.phase in (PLAIN, WATCH):
            self.move(self.position)
        if self.phase == TAIL:
            index = self.items.length - self.tail
        elif self.phase == REGION and self.plan.peel:
            index = index + self.plan.peel
        try:
            value = self.scope.stage.repeated(self.items.get, index) if self.tracer.effects else self.items.get(index)
        except StopIteration:  # of a function that map calls
            if self.phase == REGION:
                raise
            raise Ended(self) from None
        if self.tracer.has_fallen_back:
            value = self.scope.stage.materialise(value)
        shape = self.site.target
        return value if shape is None else self.scope.unpack(value, shape)

    def test(self, value: object) -> bool:
        """The test of a while."""
        value = self.scope.symbolic(self.scope.test(value))
        if self.phase == REGION:
            return self.carried.open_body(value)
        if type(value) is Traced and self.phase == WATCH:
            self.restart()
        self.goes_on = bool(value)
        return self.goes_on

    @between_runs
    def leave(self, names: dict[str, Any]) -> None:
        """The names of the frame at the end of this run."""
        self.now = names
        if self.phase == REGION:
            self.close_run(names)
            return
        self.position += self.is_while
        flag = names.get(self.site.flag or "", False)
        if type(flag) is Traced and self.phase == WATCH:
            self.restart()
        if type(flag) is Traced and self.phase == PEEL and self.position == self.plan.peel:
            self.ended, flag = flag, False  # the region then runs no iteration
        if flag is not False and bool(flag):
            self.goes_on = False
        if self.phase == WATCH and self.is_while and self.goes_on:
            self.watch()
        if self.phase == TAIL:
            self.tail -= 1
            self.phase = TAIL if self.tail else DONE

    def exit(self, names: dict[str, Any]) -> tuple[Any, ...]:
        """The values of names after the loop."""
        heads = self.heads
        self.keep_names()
        for grown in self.grown:
            grown.make_real()
        return self.values(names if heads is None else heads)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException, traceback: object) -> bool:
        if kind is None:
            return False
        if kind is Ended and error.args[0] is self:
            self.goes_on = False
            return True
        is_rerun = kind is Rerun and error.args[0] is self
        if self.phase != REGION:
            return is_rerun and self.rerun_as(REGION)  # it was being watched
        if is_rerun:
            self.carried.turn = 0
            self.snapshot.drop()  # type: ignore[union-attr]
            self.wanted = error.args[1:]
            if self.wanted:
                self.start_over()
                if type(self.wanted[0]) is carried_types.Rule and self.plan.peel and self.rerun_as(REGION):
                    self.plan.peel = 0
            return True
        is_internal = is_of_body(error)
        is_weak = self.carried is not None and self.carried.is_weak
        if is_a(error, PeelFirstIteration) or (is_weak and is_internal):
            return self.tag(error) or self.peel_one() or self.fall_back(str(error), error)
        if (reason := reason_of(error)) is not None:
            return self.fall_back(reason, error)
        if is_internal:
            return self.fall_back(self.mistake_in(error) or f"the body raises {kind.__name__}", error)
        self.forget()
        return False

    def conclude(self) -> None:
        """No more iterations."""
        if self.base is not None:
            self.base.end()
            self.base = None

    # --- other ways to run the loop ---

    def rerun_as(self, phase: str) -> bool:
        """Go back to the loop's beginning; False if that is impossible."""
        if self.base is None:
            return False
        self.base.graph.unwind()
        if not self.base.can_undo:
            return False
        self.base.drop()
        self.snapshot = self.lists_before = None
        self.phase = PEEL if phase == REGION and self.plan.peel else phase
        self.position = self.tail = 0
        self.goes_on, self.ended = True, False
        self.move(UNKNOWN)
        self.now = self.heads = self.base.names_before
        self.restores = True
        return True

    def restart(self) -> None:
        """Capture the loop instead, from its beginning, if there was no effect since."""
        if self.base is not None and self.base.can_undo:
            raise Rerun(self)
        self.conclude()
        self.phase = PLAIN

    def watch(self) -> None:
        """Count the iterations that recorded work: after enough of them the loop is captured."""
        self.trips += 1
        if self.base is None or not self.base.can_undo or self.trips > MAX_WATCHED:
            self.conclude()
            self.phase = PLAIN
            self.keep_names()
            return
        work = self.base.graph.work
        self.worked_iterations += work > self.worked
        self.worked = work
        if self.worked_iterations >= PATIENCE:
            raise Rerun(self)

    def peel_one(self) -> bool:
        """Runs one more iteration before the region."""
        if not self.may_peel or not self.rerun_as(PEEL):
            return False
        self.plan.peel += 1
        self.plan.names.clear()
        return True

    def tag(self, error: BaseException) -> bool:
        """Retry with tagged numbers, in a loop whose first iteration cannot run before the region: data may end a while."""
        if not (is_a(error, Unlike) and self.is_while and self.tracer.in_region and self.plan.tags is None):
            return False
        self.snapshot.drop()  # type: ignore[union-attr]
        self.start_over()
        self.plan.tags = True
        return True

    def fall_back(self, reason: str, error: BaseException) -> bool:
        """Retry without guesses, if some were made; else let Python run the loop if possible; else an enclosing
        construct runs without a region.
        """
        if self.snapshot is not None:  # between two runs there is nothing to restore
            self.snapshot.drop()
            self.start_over()
        if self.plan.guess and self.carried is not None and self.carried.types.guessed:
            self.plan.guess = False
            return True
        if self.plan.tags and self.carried is not None:
            self.plan.tags = False
            return True
        if self.carried is not None and self.carried.expects_flag:
            self.plan.may_end = False
            return True
        self.forget_columns()
        before = self.entry
        self.forget()
        is_open = self.is_while or type(self.items.length) is Traced
        if self.tracer.in_region and is_open:
            if is_a(error, RegionBreak):
                return False
            raise RegionBreak(reason, self.scope.file, self.site.line) from None
        self.run_plain(reason, self.plan.peel, before)
        return True

    def run_plain(self, reason: str, position: int, names: dict[str, Any]) -> None:
        """Python runs the loop from this iteration on, which begins with these names."""
        self.plan.plain = reason
        self.regions.note_pythons()
        self.regions.report(self.scope, self.site, reason)
        self.phase = PLAIN
        self.position, self.tail = position, 0
        self.move(position)
        self.heads = names
        self.restores = True

    # --- runs of the body ---

    def start_over(self) -> None:
        """Begin the fixed-point search again."""
        self.snapshot.end()  # type: ignore[union-attr]
        self.snapshot, self.now = None, {**self.others, **self.entry}
        self.tail = 0

    @between_runs
    def open_run(self) -> None:
        """Begin a run of the region: the state at the head of an iteration."""
        if self.snapshot is None:
            self.start(self.now)
            for rule in [want for want in self.wanted if type(want) is carried_types.Rule]:
                self.plan.capacities[rule.place] = carried_types.grown(self, rule)
            if self.wanted:
                self.make_columns(want for want in self.wanted if type(want) is not carried_types.Rule)
                self.wanted = ()
            self.snapshot = Snapshot(self.state)
            self.carried = Carried(self)
        elif self.carried.turn:
            self.heads = self.now
            return
        self.state.active.append(self)
        self.heads = self.carried.open()

    def close_run(self, names: dict[str, Any]) -> None:
        """Learn from a run; make the region if there was nothing to learn."""
        carried = self.carried
        assert carried is not None and self.snapshot is not None
        if carried.next_run():
            return
        if not carried.learn(with_lists_of_head(self, carried.head, carried.names, names)):
            self.snapshot.drop()
            return
        self.now = carried.finish()
        self.snapshot.end()
        self.snapshot = self.lists_before = None
        carried.remember()
        made, self.grown = carried.iterations_made, [*carried.appends.values()]
        self.forget()
        if self.iterator is not None and self.site.flag is not None and made is not None:
            self.move(self.plan.peel + self.tracer.as_python(made))
        self.heads = self.now
        self.regions.report(self.scope, self.site)
        self.phase = TAIL if self.tail else DONE


class Left(Loop):
    """A for loop that NumPy continues: as in Python, over its own iterator."""

    item: Any = None

    def __next__(self) -> None:
        self.item = next(self.left)

    def __exit__(self, kind: object, error: object, traceback: object) -> Any:
        return False

    __enter__ = Loop.conclude  # nothing to do


class LeftWhile(Left):
    """Like the class above, for a `while` loop."""

    def __next__(self) -> None:
        if not self.goes_on:
            raise StopIteration

    def test(self, value: object) -> bool:
        self.goes_on = bool(value)
        return self.goes_on


__all__ = ["UNROLL", "Loop", "truth"]
