"""Branches being captured: every arm runs on the state before the branch, and what they end with is
merged (`merge`).

An `if` with elif is a branch whose else-arm is the rest. An arm that raises is a check that it is
not taken; the other arm then runs in the open.
"""

from __future__ import annotations

from typing import Any

from ... import _core
from ...interrupt import is_interrupt
from ...signals import Signal
from ..value.kinds import UNBOUND
from ..value.objects import Traced
from . import list_buffer
from .arms import End
from .list_columns import owner_of
from .merge import OURS, Merge
from .region import (
    Raising,
    Region,
    RegionBreak,
    Rerun,
    between_runs,
    is_condition,
    truth,
)
from .state import Attempt, Contents, value_of


class Level:
    """One test: the arm it guards, and the rest."""

    def __init__(self, region: Region, condition: Any, arm: int, head: dict[str, Any]) -> None:
        self.region, self.condition = region, condition
        self.arm, self.head = arm, head
        self.number = region.regions.count_test()
        self.attempt = Attempt(region.state)
        self.then_block: Any = None
        self.else_block: Any = None
        self.then_end: End | None = None
        self.contents = Contents()

    def open_arm(self, is_then: bool) -> None:
        """Opens an arm's block, in which the condition is known."""
        block = self.region.state.open()
        self.region.state.assume(self.condition, is_then)
        tracer = self.region.tracer
        sample = tracer.sample_truth(self.condition)
        is_contrary = sample is not None and sample is not is_then
        tracer.is_infeasible = self.attempt.is_infeasible or is_contrary
        if is_then:
            self.then_block = block
        else:
            self.else_block = block

    def close_arm(self, block: Any, names: dict[str, Any]) -> End:
        """What the arm ended with; everything is as before it again."""
        region = self.region
        appended: list[tuple[Any, list[Any]]] = []
        names = {**names, **self.look_at_contents(appended)}
        end = End(region.state, block, names, self.attempt.mark.written())
        for grown, items in appended:
            end.append(block, grown, items)
        self.attempt.undo()
        return end

    def look_at_contents(self, appended: list[Any]) -> dict[str, Any]:
        """What the containers that the arm changed hold at its end; notes what was appended."""
        names = {}
        for change in self.region.changes(self.attempt):
            if change.is_nothing:
                continue
            if items := change.appended:
                appended.append((owner_of(self.region, change), items))
                continue
            if not change.keeps_places:
                self.region.fail("a branch adds to a container or takes from it")
            names[self.contents.name_of(change.container)] = value_of(change.container)
        return names


class Branch(Region):
    """An if on a traced condition."""

    def __init__(self, scope: Any, site: Any, condition: Any) -> None:
        super().__init__(scope, site)
        self.condition = condition
        self.last = 2 * site.arms - 1
        self.raising = dict(site.raising)
        ours = (n for n in site.state if n.startswith(OURS) and n not in site.live_out)
        self.wanted = (*site.live_out, *ours)  # a loop looks at its flag
        self.step = self.first = -1  # the step before the arm of the condition
        self.levels: list[Level] = []  # tests whose rest is being run
        self.is_plain = self.is_over = False
        self.heads: dict[str, Any] | None = None
        self.asked: list[Any] = []  # lists to be made of buffers: `list_buffer`
        self.growing = self.state.growing

    def begin(self, names: dict[str, Any]) -> None:
        """The names of the frame before the branch."""
        self.start(names)
        self.open()

    def open(self) -> None:
        """Nothing of it has been run."""
        self.now = self.entry
        self.base = Attempt(self.state)
        self.state.active.append(self)
        self.pending: Any = truth(self.stage, self.condition)
        self.next_step = self.first + 1

    @property
    def mark(self) -> Any:
        return self.base.mark

    # --- the protocol of rewritten code ---

    def __iter__(self) -> Branch:
        return self

    def __next__(self) -> int:
        if self.is_over:
            raise StopIteration
        if self.is_plain:
            return self.plain_step()
        self.step = self.next_step
        return self.attempt_to(self.open_step)

    @between_runs
    def open_step(self) -> int:
        """An arm begins, or the test of the next."""
        if self.step % 2:
            if self.levels and self.levels[-1].else_block is None:
                self.levels[-1].open_arm(False)
        elif type(self.pending) is Traced:
            self.levels.append(Level(self, self.pending, self.step, self.now))
            self.levels[-1].open_arm(True)
        return self.step

    def enter(self) -> tuple[Any, ...]:
        """The values of names at the head of this step."""
        if self.is_plain:
            self.restores = False
        if self.levels and self.step in self.raising:
            raise Raising(self.raising[self.step])
        return self.values(self.now)

    def test(self, value: Any) -> None:
        """The test of the next arm."""
        value = self.scope.test(value)
        value = self.scope.specialised(value) if self.raising else self.scope.symbolic(value)
        if self.is_plain or type(value) is not Traced:
            self.pending = bool(value)
        else:
            self.pending = truth(self.stage, value)

    @between_runs
    def leave(self, names: dict[str, Any]) -> None:
        """The names of the frame at the end of this step."""
        self.check_others(names)
        if self.step == self.last or (self.step % 2 == 0 and self.pending is True):
            self.finish(names)
        elif self.step % 2 == 0:
            level = self.levels[-1]
            level.then_end = level.close_arm(level.then_block, self.live(names))
            self.next_step = self.step + 1
        else:
            self.now = {name: names.get(name, UNBOUND) for name in self.site.state}
            self.next_step = self.step + (1 if self.pending is not False else 2)

    def exit(self, names: dict[str, Any]) -> tuple[Any, ...]:
        """The values of names behind the branch."""
        return self.values(names if self.heads is None else self.heads)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if kind is None or self.is_plain or self.is_over:
            return False
        if kind is Rerun and error.args[0] is self:
            self.drop()
            list_buffer.make(self)
            self.open()
            return True
        try:
            if issubclass(kind, RegionBreak):
                return self.fall_back(error.args[0])
            if issubclass(kind, _core.CinductorError):
                return self.fall_back(str(error))
            if issubclass(kind, Raising):
                return self.give_way(error.args[0])
            if not issubclass(kind, Signal) and not is_interrupt(error):
                return self.give_way(kind.__name__)
        except RegionBreak as other:
            return self.fall_back(other.args[0])
        return False

    # --- ends ---

    def live(self, names: dict[str, Any]) -> dict[str, Any]:
        """Values of the names that are live behind the branch."""
        return {name: names.get(name, UNBOUND) for name in self.wanted}

    def finish(self, names: dict[str, Any]) -> None:
        """The rest of all tests is run: merges, from the innermost out."""
        names = self.live(names)
        while self.levels:
            level = self.levels.pop()
            end = level.close_arm(level.else_block, names)
            assert level.then_end is not None
            names = Merge(self, level, level.then_end, end).names(self.wanted)
            level.attempt.end()
        self.heads = names
        self.base.end()
        self.is_over = True
        self.regions.report(self.scope, self.site, "captured")

    def give_way(self, name: str) -> bool:
        """The step raises: it is checked that it is not reached, and the others are run."""
        if not self.levels:
            self.is_over = True
            self.base.end()
            return False
        level = self.levels.pop()
        level.attempt.undo()
        level.attempt.end()
        condition = level.condition
        if self.tracer.sample_truth(condition) is not None:
            self.fail(f"sizes decide whether {name} is raised")
        if name == StopIteration.__name__:  # an answer: a loop of Python's may wait for it
            self.fail("data decide where an iterator ends")
        if level.arm == self.step:
            condition = self.tracer.apply("logical_not", condition)
            self.next_step = self.step + 1
        else:
            self.pending = True
            self.next_step = level.arm
        self.now = level.head
        self.check(condition, f"no {name} is raised")
        return True

    def drop(self) -> None:
        """What has been run is undone."""
        self.base.undo()
        self.base.end()
        self.levels.clear()

    def fall_back(self, reason: str) -> bool:
        """Python decides."""
        self.drop()
        self.state.put(growing=self.state.still_growing(self.growing))
        self.is_plain = True
        self.step = self.first
        self.now = self.entry
        self.restores = True
        self.regions.report(self.scope, self.site, f"decided by Python: {reason}")
        return True

    def plain_step(self) -> int:
        """The steps of Python's own if."""
        if self.step == self.first:
            self.pending = bool(self.condition)
            self.step += 1 if self.pending else 2
        elif self.step % 2 == 0 or self.step == self.last:
            raise StopIteration
        else:
            self.step += 1 if self.pending else 2
        return self.step


class LateBranch(Branch):
    """An if whose first test is false, with tests behind it: Python's own until one is traced."""

    def __init__(self, scope: Any, site: Any) -> None:
        super().__init__(scope, site, False)
        self.is_waiting = self.is_plain = True
        self.restores = False

    def test(self, value: Any) -> None:
        """The test of the next arm; from a traced one on this is a branch."""
        if self.is_waiting:
            value = self.scope.asked(value, self.site)
        is_plain = not self.is_waiting or not is_condition(value)
        if is_plain or self.scope.recurses(self.site.line):
            super().test(value)
        else:
            self.condition, self.first = value, self.step
            self.restores = True

    def leave(self, names: dict[str, Any]) -> None:
        if self.is_waiting:
            self.is_waiting = self.is_plain = False
            self.start(names)
            self.open()
        else:
            super().leave(names)
