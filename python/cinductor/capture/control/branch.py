"""Capture of branches: every arm runs on the state before the branch, and the end states are merged
(`merge`).

An `if` with elif is a branch whose else-arm is the rest. An arm that raises becomes a check that
it is not taken. The other arm then runs without a region, like the code around the branch; it is
never undone, because it may have effects. A test in the rest begins another branch.

Lazy operands are branches too: `and`, `or`, conditional expressions, min and max of numbers. An
operand that Python evaluates only sometimes is run in its own block. If it only computes
numbers, it is always computed and the value is selected; otherwise it becomes an arm of an `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ... import _core
from ...base.region_outcome import DECIDED
from ...base.signals import Replan
from ...base.user_frame import OWN_PREFIX, locals_of
from ..kinds import UNBOUND, Hooks, lifted, strength
from ..objects import Traced, contains_traced
from ..syntax.desugar import PREFIX
from ..syntax.stage_calls import Site
from .alias import Records
from .arms import End, Level
from .lattice import Joined, Same, join
from .merge import Merge
from .region import (
    Raising,
    Region,
    RegionBreak,
    Rerun,
    between_runs,
    is_condition,
    is_of_body,
    reason_of,
    truth,
    users_frame,
)
from .state import Snapshot


class Branch(Region):
    """An if on a traced condition."""

    def __init__(self, scope: Hooks, site: Site, condition: Traced | bool) -> None:
        super().__init__(scope, site)
        self.condition: Any = condition
        self.last = 2 * site.arms - 1
        self.raising = dict(site.raising)
        ours = (n for n in site.state if n.startswith(OWN_PREFIX) and n not in site.live_out)
        self.wanted = (*site.live_out, *ours)  # a loop reads its flag
        self.step = self.first = -1  # the step before the arm of the condition
        self.is_plain = self.is_over = False
        self.why: str | None = None  # the reason for which Python decides
        self.heads: dict[str, Any] | None = None

    def forget(self) -> None:
        super().forget()
        self.levels: list[Level] = []  # tests whose rest is being run

    def begin(self, names: dict[str, Any]) -> None:
        """Get the names of the frame before the branch."""
        self.start(names)
        self.open()

    def open(self) -> None:
        """Initialise: nothing has been run."""
        self.now = self.entry
        self.base: Snapshot | None = Snapshot(self.state)  # None: the current arm runs without a region
        self.state.active.append(self)
        self.pending: Any = truth(self.tracer, self.condition)
        self.next_step = self.first + 1

    @property
    def mark(self) -> Any:
        return self.base.graph  # type: ignore[union-attr]

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
        """Begin an arm, or the test of the next one."""
        if self.step % 2:
            if self.levels and self.levels[-1].else_block is None:
                self.levels[-1].open_arm(False)
        elif type(self.pending) is Traced:
            self.levels.append(Level(self.regions, self.pending, self.step, self.now))
            self.levels[-1].open_arm(True)
        return self.step

    def enter(self) -> tuple[Any, ...]:
        """The values of names at the head of this step."""
        if self.levels and self.step in self.raising:
            raise Raising(self.raising[self.step])
        values = self.values(self.now)
        if self.base is None:
            self.now = {}
            self.restores = not self.is_plain
        return values

    def test(self, value: object) -> None:
        """The test of the next arm."""
        value = self.scope.test(value)
        value = self.scope.specialised(value) if self.raising else self.scope.symbolic(value)
        if self.is_plain or type(value) is not Traced:
            self.pending = bool(value)
        else:
            self.pending = truth(self.tracer, value)

    @between_runs
    def leave(self, names: dict[str, Any]) -> None:
        """The names of the frame at the end of this step."""
        if self.base is not None:
            self.check_others(names)
        if self.step == self.last or (self.step % 2 == 0 and self.pending is True):
            self.finish(names)
        elif self.step % 2 == 0:
            level = self.levels[-1]
            level.then_end = level.close_arm(self, level.then_block, self.live(names))
            self.next_step = self.step + 1
        else:
            self.now = {name: names.get(name, UNBOUND) for name in self.site.state}
            self.next_step = self.step + (1 if self.pending is not False else 2)
            if self.base is None and type(self.pending) is Traced:
                self.condition, self.first = self.pending, self.step
                self.begin(names)

    def exit(self, names: dict[str, Any]) -> tuple[Any, ...]:
        """The values of names after the branch."""
        values = self.values(names if self.heads is None else self.heads)
        self.heads, self.now = None, {}
        return values

    def __exit__(self, kind: type[BaseException] | None, error: BaseException, traceback: object) -> bool:
        if kind is None or self.is_plain or self.is_over:
            return False
        if kind is Rerun and error.args[0] is self:
            return self.rerun(error.args[1:])
        try:
            if (reason := reason_of(error)) is not None:
                return self.fall_back(reason)
            if issubclass(kind, Raising):
                return self.give_way(error.args[0])
            if is_of_body(error):
                mistake = self.mistake_in(error)
                return self.give_way(kind.__name__) if mistake is None else self.fall_back(mistake)
        except RegionBreak as other:
            return self.fall_back(other.args[0])
        self.forget()
        return False

    def rerun(self, wants: Iterable[Callable[[Region], None]]) -> bool:
        """Start again with containers in columns; if they cannot be made, Python evaluates the condition."""
        self.drop()
        try:
            self.make_columns(wants)
        except RegionBreak as error:
            self.open()
            return self.fall_back(error.args[0])
        self.open()
        return True

    # --- end states ---

    def live(self, names: dict[str, Any]) -> dict[str, Any]:
        """Values of the names that are live after the branch."""
        return {name: names.get(name, UNBOUND) for name in self.wanted}

    def finish(self, names: dict[str, Any]) -> None:
        """Called after the rest of all tests was run: merge, from the innermost out."""
        names = self.live(names)
        while self.levels:
            level = self.levels.pop()
            end = level.close_arm(self, level.else_block, names)
            assert level.then_end is not None
            names = Merge(self, level, level.then_end, end).names(self.wanted)
            level.snapshot.end()
        self.heads = names
        self.end()
        self.regions.report(self.scope, self.site)

    def end(self) -> None:
        """End the branch."""
        self.is_over = True
        self.go_on()

    def go_on(self) -> None:
        """Run the rest without a region."""
        if self.base is not None:
            self.base.end()
            self.base = None
        self.forget()

    def give_way(self, name: str) -> bool:
        """The arm raises: add a check that it is not reached, and run the others."""
        if not self.levels:
            self.end()
            return False
        level = self.levels.pop()
        level.snapshot.undo()
        level.snapshot.end()
        condition = level.condition
        if self.tracer.sample_truth(condition) is not None:
            self.fail(f"sizes decide whether {name} is raised")
        if name == StopIteration.__name__:  # a result, for which a Python loop may wait
            self.fail("data decide where an iterator ends")
        if level.arm == self.step:
            condition = self.tracer.apply("logical_not", condition)
            self.next_step = self.step + 1
        else:
            self.pending = True
            self.next_step = level.arm
        self.now = level.head
        self.check(condition, f"no {name} is raised")
        if not self.levels:
            self.go_on()
        return True

    def drop(self) -> None:
        """Undo everything that has been run."""
        assert self.base is not None
        self.base.undo()
        self.base.end()
        self.base = None
        self.levels.clear()

    def fall_back(self, reason: str) -> bool:
        """Let Python evaluate the condition, if the runs can be undone."""
        if self.base is None:
            return False
        self.drop()
        self.forget_columns()
        self.is_plain = True
        self.step = self.first
        self.now = self.entry
        self.forget()
        self.restores = True
        reason = reason.removeprefix(BY_PYTHON)  # of an `if` inside
        self.why = BY_PYTHON + reason
        self.regions.report(self.scope, self.site, reason)
        return True

    def decide(self) -> bool:
        """The truth of the condition. In a region that needs a reason: why the arms are not one program."""
        try:
            return bool(self.condition)
        except RegionBreak as error:
            if self.why is None:
                raise
            raise RegionBreak(self.why, *error.args[1:]) from error

    def plain_step(self) -> int:
        """The steps of Python's `if`."""
        if self.step == self.first:
            self.pending = self.decide()
            self.step += 1 if self.pending else 2
        elif self.step % 2 == 0 or self.step == self.last:
            raise StopIteration
        else:
            self.step += 1 if self.pending else 2
        return self.step


class LateBranch(Branch):
    """An `if` whose first test is a false Python bool, with tests after it: it is Python's own until a test is
    traced.
    """

    def __init__(self, scope: Hooks, site: Site) -> None:
        super().__init__(scope, site, False)
        self.is_waiting = self.is_plain = True
        self.restores = False

    def test(self, value: object) -> None:
        """The test of the next arm; from the first traced one on this is a branch."""
        if self.is_waiting:
            value = self.scope.asked(value, self.site)
        if self.is_waiting and is_condition(value) and not self.scope.recurses(self.site.line):
            self.condition, self.first = value, self.step
            self.restores = True
        else:
            super().test(value)

    def leave(self, names: dict[str, Any]) -> None:
        if self.is_waiting:
            self.is_waiting = self.is_plain = False
            self.start(names)
            self.open()
        else:
            super().leave(names)


# --- lazy operands on traced conditions ---


VALUE, BY_PYTHON = "operand", f"{DECIDED}: "


class Condition(Region):
    """A conditional part of an expression with a traced condition."""

    def __init__(self, scope: Hooks, line: int, value: Traced) -> None:
        super().__init__(scope, Site(-1, "if", line, (), (), ()))
        self.entry, self.frame = {}, users_frame()
        self.others = {} if self.frame is None else locals_of(self.frame)
        self.condition = truth(self.tracer, value)
        self.level = Level(self.regions, self.condition, 0, {})

    @property
    def mark(self) -> Any:
        return self.level.snapshot.graph

    def fail(self, reason: str) -> NoReturn:
        """Give this attempt up: an enclosing construct runs without a region, or the call is restarted."""
        place = (self.scope.file, self.site.line)
        is_known = place in self.regions.decided
        if self.state.active or is_known or not self.tracer.may_check():
            super().fail(reason)
        raise Replan("decided", reason, place)

    def elsewhere(self) -> list[Any] | None:
        """Unknown here."""
        return None

    def is_alone(self, array: Traced, values: list[Any], records: Records | None = None) -> bool:
        """False: other references to the memory are unknown here."""
        return False

    def check_names(self) -> None:
        """An operand that binds a name is left to Python, because the name is only bound if it is evaluated."""
        now = {} if self.frame is None else locals_of(self.frame)
        for name, value in now.items():
            if value is self.others.get(name, UNBOUND) or name.startswith(OWN_PREFIX):
                continue
            if name.startswith(PREFIX) and not contains_traced(value or ()):
                continue  # parts for a pattern, which are not read elsewhere
            self.fail(f"an operand of a condition binds {name}")

    def check_operand(self) -> None:
        """An operand that binds a name, writes to memory or stores a list of before in other columns is left to Python.
        The list's contents are the same then, so no change of a container is seen.
        """
        self.check_names()
        self.check_written(self.level.snapshot.graph.written())
        before, now = self.level.snapshot.tables["lists"], self.state.lists
        other = [lists.container for key, lists in (*before.items(), *now.items()) if before.get(key) is not now.get(key)]
        if other and self.reached(other):
            self.fail("an operand of a condition changes a list")

    def check_written(self, written: list[Any]) -> None:
        """Refuse writes to memory, to which there may be references on Python's stack."""
        if written:
            self.scope.stage.give_up_draws(written, "an operand of a condition draws")
            self.fail("an operand of a condition writes to an array")

    def end_arm(self, block: _core.Block, value: object) -> End:
        """The operand's value; everything else is restored."""
        self.check_operand()
        return self.level.close_arm(self, block, {VALUE: value})

    def merge(self, first: End, second: End) -> Any:
        """The value of the expression."""
        (name,) = first.names
        value = Merge(self, self.level, first, second).names((name,))[name]
        self.level.snapshot.end()
        self.forget()
        return value


class Operand(Condition):
    """`a and b`, `a or b` between the evaluation of a and that of b."""

    def __init__(self, scope: Hooks, line: int, value: Traced, is_and: bool) -> None:
        super().__init__(scope, line, value)
        self.value, self.is_and = value, is_and
        self.level.open_arm(is_and)

    def __bool__(self) -> bool:
        return self.is_and

    def check_written(self, written: list[Any]) -> None:
        """An operand may draw: only draws refer to the state of a generator."""
        if not all(map(self.scope.stage.is_state, written)):
            super().check_written(written)

    def join(self, other: object) -> Any:
        """The value, given b's."""
        level = self.level
        mine = self.value
        evaluated = level.then_block if self.is_and else level.else_block
        ends = [self.end_arm(evaluated, other)]
        level.open_arm(not self.is_and)
        ends.append(self.end_arm(level.else_block if self.is_and else level.then_block, mine))
        if not self.is_and:
            ends.reverse()
        return self.known(self.merge(*ends), other)

    def known(self, value: object, other: object) -> Any:
        """The joined value, with the chosen operand's value in this call if sizes alone choose."""
        truth = self.tracer.sample_truth(self.value)
        if truth is not None and type(value) is Traced:
            self.tracer.note_sample(value, self.value, other if truth is self.is_and else self.value)
        return value


class Choice(Condition):
    """`a if c else b`: returns which operand is next, and opens the operand's block."""

    @property
    def first(self) -> bool:
        """a is evaluated next."""
        self.level.open_arm(True)
        return True

    @property
    def second(self) -> bool:
        """b is evaluated next."""
        level = self.level
        self.check_operand()
        level.then_block.close()
        level.snapshot.graph.forget()  # the condition that holds for a
        level.open_arm(False)
        return True

    def join(self, a: object, b: object, name: str = VALUE) -> Any:
        """The value, given both."""
        level = self.level
        self.check_operand()
        second = End(self.state, level.else_block, {name: b}, [])
        if self.diff(level.snapshot):
            self.fail("an operand of a condition changes something")
        level.else_block.close()  # the first operand must not use values of the second
        level.then_block.reopen()
        self.tracer.is_infeasible = level.snapshot.graph.is_infeasible
        first = End(self.state, level.then_block, {name: a}, [])
        level.then_block.close()
        level.restore()
        return self.merge(first, second)


def select(tracer: _core.Tracer, condition: Traced, a: object, b: object) -> Any:
    """a if the traced condition holds, else b; None if their types differ."""
    joined = join(tracer, a, b)
    if type(joined) is Same:
        return a
    if type(joined) is not Joined or joined.kind == "array":
        return None
    parts = [lifted(tracer, v, joined.kind, joined.dtype) for v in (a, b)]
    condition = truth(tracer, condition)
    value = tracer.select(condition, parts[0], parts[1], joined.kind)
    if joined.weak is None:
        return value
    bools = [strength(v, (joined.kind, joined.dtype)) for v in (a, b)]
    bools = [s if type(s) is Traced else tracer.lift(s) for s in bools]
    return tracer.tagged(value, tracer.select(condition, bools[0], bools[1], "python"), joined.weak)
