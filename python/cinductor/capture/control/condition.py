"""Lazy operands on traced conditions: `and`, `or`, conditional expressions, min and max of numbers.

An operand that Python evaluates only sometimes is run in a block of its own. When it only computes
numbers it is computed always, and the value is selected; otherwise it becomes an arm of an `if`.
"""

from __future__ import annotations

from typing import Any

from ...signals import Replan
from ..syntax.asking import Site
from ..syntax.matches import PREFIX
from ..value.kinds import lifted, strength
from ..value.objects import UNBOUND, Traced, holds_traced
from .alias import Records
from .arms import End
from .branch import Level
from .lattice import join
from .merge import Merge
from .region import Region, truth, users_frame

VALUE = "operand"


class Condition(Region):
    """A place in an expression where a traced condition chooses."""

    def __init__(self, scope: Any, line: int, value: Any) -> None:
        super().__init__(scope, Site(-1, "if", line, 0, (), (), ()))
        self.entry, self.frame = {}, users_frame()
        self.others = {} if self.frame is None else dict(self.frame.f_locals)
        self.condition = truth(self.stage, value)
        self.level = Level(self, self.condition, 0, {})

    def fail(self, reason: str) -> Any:
        """Gives this attempt up: in no construct that could do without a region, all of the call."""
        place = (self.scope.file, self.site.line)
        is_known = place in self.regions.decided
        if self.state.active or is_known or not self.stage.may_check():
            super().fail(reason)
        raise Replan("decided", reason, place)

    def elsewhere(self) -> list[Any] | None:
        """Not known here."""
        return None

    def is_alone(self, array: Any, values: list[Any], records: Records | None = None) -> bool:
        """What else refers to memory is not known here."""
        return False

    def check_names(self) -> None:
        """An operand that binds a name is Python's: where it is not evaluated the name is not
        bound.
        """
        now = {} if self.frame is None else self.frame.f_locals
        for name, value in now.items():
            if value is self.others.get(name, UNBOUND) or name.startswith("__ci_"):
                continue
            if name.startswith(PREFIX) and not holds_traced(value or ()):
                continue  # parts for a pattern: nothing else reads them
            self.fail(f"an operand of a condition binds {name}")

    def end_arm(self, block: Any, value: Any) -> End:
        """The operand's value, and everything as before it."""
        self.check_names()
        if self.level.attempt.mark.written():
            self.fail("an operand of a condition writes to an array")
        return self.level.close_arm(block, {VALUE: value})

    def merge(self, first: End, second: End) -> Any:
        """The value of the expression."""
        value = Merge(self, self.level, first, second).names((VALUE,))[VALUE]
        self.level.attempt.end()
        return value


class Operand(Condition):
    """`a and b`, `a or b` between the evaluation of a and that of b."""

    def __init__(self, scope: Any, line: int, value: Any, is_and: bool) -> None:
        super().__init__(scope, line, value)
        self.value, self.is_and = value, is_and
        self.level.open_arm(is_and)

    def __bool__(self) -> bool:
        return self.is_and

    def join(self, other: Any) -> Any:
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

    def known(self, value: Any, other: Any) -> Any:
        """The value with its truth in this call, where sizes alone tell."""
        mine = self.tracer.sample_truth(self.value)
        if mine is not None and type(value) is Traced:
            self.tracer.note_sample(value, self.value, other if mine is self.is_and else mine)
        return value


class Choice(Condition):
    """`a if c else b`: asked which operand is next, it opens the operand's block."""

    @property
    def first(self) -> bool:
        """a is evaluated next."""
        self.level.open_arm(True)
        return True

    @property
    def second(self) -> bool:
        """b is evaluated next."""
        level = self.level
        self.check_names()
        if level.attempt.mark.written():
            self.fail("an operand of a condition writes to an array")
        self.state.close(level.then_block)
        self.state.forget(level.attempt.nfacts)  # that a is evaluated
        level.open_arm(False)
        return True

    def join(self, a: Any, b: Any) -> Any:
        """The value, given both."""
        level = self.level
        self.check_names()
        written = level.attempt.mark.written()
        second = End(self.state, level.else_block, {VALUE: b}, written)
        if second.written or self.changes(level.attempt):
            self.fail("an operand of a condition changes something")
        self.state.close(level.else_block)  # the first operand sees nothing of the second's
        self.state.reopen(level.then_block)
        self.tracer.is_infeasible = level.attempt.is_infeasible
        first = End(self.state, level.then_block, {VALUE: a}, [])
        self.state.close(level.then_block)
        level.attempt.undo()
        return self.merge(first, second)


def select(stage: Any, condition: Any, a: Any, b: Any) -> Any:
    """a where the traced condition holds, else b; None where they are not of one type."""
    tracer = stage.tracer
    joined = join(tracer, a, b, False, stage.may_check())
    if type(joined) is str:
        return None
    parts = [lifted(tracer, v, joined.kind, joined.dtype) for v in (a, b)]
    condition = truth(stage, condition)
    value = tracer.select(condition, *parts, joined.kind)
    if not joined.tagged:
        return value
    bools = [s if type(s) is Traced else tracer.lift(s) for s in map(strength, (a, b))]
    return tracer.tagged(value, tracer.select(condition, *bools, "python"))
