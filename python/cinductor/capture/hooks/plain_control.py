"""Control flow of rewritten code on concrete values: what Python does, at little cost.

Every for, while and if of rewritten source is an object that Python iterates, one step a run of a
body, and that is entered around each such run. Here the steps are Python's own: nothing is
restored, nothing is merged, and the objects keep no state of the function's frame. Whatever has no
state at all is one shared object. `docs/architecture.md` has the form of the rewritten source.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..value.objects import FREE_TYPES, UNBOUND, UNBOUND_TEXT, MaybeUnbound


def generated(trips: Callable[..., Any], /, *args: Any) -> Any:
    """What a generator expression that runs as a loop comes to: a StopIteration that its code lets
    through is no end of it (PEP 479).
    """
    try:
        return trips(*args)
    except StopIteration as error:
        raise RuntimeError("generator raised StopIteration") from error


class Construct:
    """What the plain constructs share."""

    __slots__ = ()
    restores = False  # whether the frame's names are looked at and set

    def __enter__(self) -> None:
        """A run of a body begins."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """A run of a body ends; exceptions pass."""


class For(Construct):
    """A for loop: `item` is what the target gets."""

    __slots__ = ("items", "item")

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[None]:
        for item in self.items:
            self.item = item
            yield


class While(Construct):
    """A while loop: it goes on while its test does."""

    __slots__ = ("scope", "goes_on")

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.goes_on = True

    def __iter__(self) -> Iterator[None]:
        while self.goes_on:
            yield

    def test(self, value: Any) -> bool:
        """The test of this trip."""
        if type(value) not in FREE_TYPES:
            value = self.scope.test(value)
        self.goes_on = True if value else False
        return self.goes_on


class If(Construct):
    """An if with elif: steps are arms (even) and the tests before them (odd)."""

    __slots__ = ("scope", "holds", "last")

    def __init__(self, scope: Any, holds: Any, arms: int) -> None:
        self.scope = scope
        self.holds = holds
        self.last = 2 * arms - 1

    def __iter__(self) -> Iterator[int]:
        step = 0
        while not self.holds:
            step += 1
            yield step
            if step == self.last:
                return
            step += 1
        yield step

    def test(self, value: Any) -> None:
        """The test of the next arm."""
        if type(value) not in FREE_TYPES:
            value = self.scope.test(value)
        self.holds = True if value else False


class Decided(Construct):
    """An if with one test."""

    __slots__ = ("steps",)

    def __init__(self, step: int) -> None:
        self.steps = (step,)

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)


THEN, ELSE = Decided(0), Decided(1)


class PlainChoice:
    """Which operands of a conditional expression Python evaluates."""

    __slots__ = ("first", "second")

    def __init__(self, first: bool) -> None:
        self.first, self.second = first, not first


FIRST, SECOND = PlainChoice(True), PlainChoice(False)


class PlainOperand:
    """The first operand of `and` or `or` whose truth a method of its class has told."""

    __slots__ = ("value", "truth")

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth

    def __bool__(self) -> bool:
        return self.truth


class PlainControl:
    """The methods of `__ci__` for control flow."""

    __slots__ = ()
    lt, le = staticmethod(operator.lt), staticmethod(operator.le)
    gt, ge = staticmethod(operator.gt), staticmethod(operator.ge)
    eq, ne = staticmethod(operator.eq), staticmethod(operator.ne)
    UNBOUND = UNBOUND

    @staticmethod
    def decide(name: str, a: Any, b: Any) -> Any:
        """The comparison of that name."""
        return getattr(operator, name)(a, b)

    @staticmethod
    def bound(value: Any, name: str) -> Any:
        """The value of a name that may have none."""
        if type(value) is not MaybeUnbound:
            return value
        if not value.flag:
            raise UnboundLocalError(UNBOUND_TEXT.format(name))
        return value.value

    locals = staticmethod(builtins.locals)  # of the frame that calls it

    def for_(self, value: Any, number: int) -> Any:
        """for ... in value"""
        shape = self.sites[number].target
        return For(self.iter(value) if shape is None else self.iter_unpacked(value, shape))

    def while_(self, number: int) -> Any:
        """while ..."""
        return While(self)

    def if_(self, value: Any, number: int) -> Any:
        """if value: ... elif ..."""
        if type(value) not in FREE_TYPES:
            value = self.test(value)
        arms = self.sites[number].arms
        if arms == 1:
            return THEN if value else ELSE
        return If(self, True if value else False, arms)

    def bool_begin(self, value: Any, is_and: bool) -> Any:
        """The first operand of `and` or `or`: what Python shall test."""
        if type(value) in FREE_TYPES:
            return value
        told = self.test(value)
        return value if told is value else PlainOperand(value, bool(told))

    def bool_end(self, value: Any) -> Any:
        """The value of `and` or `or`, given what Python says it is."""
        return value.value if type(value) is PlainOperand else value

    def not_(self, value: Any) -> Any:
        """not value"""
        return not (value if type(value) in FREE_TYPES else self.test(value))

    def is_bool(self, value: Any, constant: bool) -> Any:
        """value is True, value is False"""
        return value is constant

    def is_one(self, a: Any, b: Any) -> bool:
        """a is b"""
        return a is b

    def then(self, value: Any) -> Any:
        """The condition of a conditional expression: which operands are evaluated."""
        return FIRST if (value if type(value) in FREE_TYPES else self.test(value)) else SECOND

    def choose(self, choice: Any, first: Any, second: Any) -> Any:
        """The value of a conditional expression."""
        return first if choice.first else second

    def holds(self, value: Any) -> Any:
        """The condition of an assertion."""
        return value if type(value) in FREE_TYPES else self.test(value)
