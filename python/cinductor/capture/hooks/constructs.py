"""Control flow of rewritten code: Python's behaviour at low cost, and regions during capture.

Every `for`, `while` and `if` of rewritten source is an object. Python iterates over it, one step per run
of the body, and enters it as a context manager around each run. On concrete values the steps are
Python's own: nothing is saved or merged, and the object keeps no frame state. Objects without any
state are shared. `docs/architecture.md` shows the rewritten source.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import numpy as np

from ...base.class_lookup import is_a
from ...base.signals import Replan
from ...base.user_frame import locals_of
from .. import operands
from ..call_state import check_budget
from ..control import branch as branches
from ..control import loop as loops
from ..control import tuples
from ..control.list_columns import before_identity
from ..control.region import Region, RegionBreak, is_condition, truth, users_frame
from ..iterators import Items
from ..kinds import Hooks
from ..objects import (
    FREE_TYPES,
    SHOWN,
    UNBOUND,
    UNBOUND_TEXT,
    MaybeUnbound,
    Traced,
    contains_traced,
    defines,
    has_hooks,
    is_record,
)
from ..syntax.jumps import VALUE


def generated(trips: Callable[..., Any], /, *args: Any) -> Any:
    """The result of a generator expression that runs as a loop. A StopIteration from its code does
    not end it but becomes a RuntimeError, as in Python (PEP 479)."""
    try:
        return trips(*args)
    except StopIteration as error:
        raise RuntimeError("generator raised StopIteration") from error


class Construct:
    """Common base of the plain constructs."""

    __slots__ = ()
    restores = False  # the frame's names are read and set

    def __enter__(self) -> None:
        """A run of a body begins."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """A run of a body ends; exceptions pass."""


class For(Construct):
    """A for loop: `item` is assigned to the target."""

    __slots__ = ("items", "item")

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items

    @property
    def operands(self) -> tuple[Any, ...]:
        """The values without a name: what the loop iterates over."""
        return (self.items,)

    def __iter__(self) -> Iterator[None]:
        for item in self.items:
            self.item = item
            yield


class While(Construct):
    """A while loop: it continues while its test is true."""

    __slots__ = ("scope", "goes_on")

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.goes_on = True

    def __iter__(self) -> Iterator[None]:
        while self.goes_on:
            yield

    def test(self, value: Any) -> bool:
        """The test of this iteration."""
        if type(value) not in FREE_TYPES:
            value = self.scope.test(value)
        self.goes_on = True if value else False
        return self.goes_on


class If(Construct):
    """An if with elif: steps are arms (even) and the tests before them (odd)."""

    __slots__ = ("scope", "is_true", "last")

    def __init__(self, scope: Any, is_true: Any, arms: int) -> None:
        self.scope = scope
        self.is_true = is_true
        self.last = 2 * arms - 1

    def __iter__(self) -> Iterator[int]:
        step = 0
        while not self.is_true:
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
        self.is_true = True if value else False


class Decided(Construct):
    """An if with one test."""

    __slots__ = ("steps",)

    def __init__(self, step: int) -> None:
        self.steps = (step,)

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)


THEN, ELSE = Decided(0), Decided(1)


class PlainChoice:
    """The operands of a conditional expression that Python evaluates."""

    __slots__ = ("first", "second")

    def __init__(self, first: bool) -> None:
        self.first, self.second = first, not first


FIRST, SECOND = PlainChoice(True), PlainChoice(False)


class PlainOperand:
    """An operand of `and` or `or`, whose truth its class's method has returned."""

    __slots__ = ("value", "truth")

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth

    def __bool__(self) -> bool:
        return self.truth


class PlainControl(Hooks):
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

    @staticmethod
    def locals() -> dict[str, Any]:
        """The names of the calling frame, to which nothing else then refers for longer. Without regions: one that has
        itself among its names would not die with the frame.
        """
        return {name: value for name, value in locals_of(sys._getframe(1)).items() if not is_a(value, Region)}

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
        if type(value) in FREE_TYPES or type(value) is PlainOperand:
            return value
        told = self.test(value)
        is_seen = told is not value or (type(value) is not Traced and has_hooks(type(value)))
        return PlainOperand(value, bool(told)) if is_seen else value

    def bool_end(self, value: Any, is_test: bool | None = None) -> Any:
        """The value of `and` or `or`, given what Python says it is. is_test: nothing but its truth is used. False: its truth
        is, and then perhaps the value. None: it is not tested at once.
        """
        return value.value if type(value) is PlainOperand and is_test is None else value

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

    def choose_result(self, choice: Any, first: Any, second: Any) -> Any:
        """The value of a conditional expression that the function returns at once."""
        return self.choose(choice, first, second)

    def assertion(self, value: Any) -> Any:
        """The condition of an assertion."""
        return value if type(value) in FREE_TYPES else self.test(value)


# --- captured functions: as in Python if Python can decide ---


EQUALITIES = (operator.eq, operator.ne)
MAX_RECURSIONS = 6  # of a function in its own arms: each doubles the number of arms


def count_frames(frame: FrameType) -> int:
    """How many frames run the same function as this one."""
    code, count = frame.f_code, 0
    at: FrameType | None = frame
    while at is not None:
        count += at.f_code is code
        at = at.f_back
    return count


def is_complex(value: Any) -> bool:
    """True for a Python complex number."""
    if type(value) is not Traced:
        return type(value) is complex
    return value.kind == "python" and value.dtype == np.complex128


def is_double(stage: Any, value: Any) -> bool:
    """True for an np.float64, which is a float to Python's numbers."""
    if type(value) is not Traced or value.dtype != np.float64:
        return type(value) is np.float64
    stage.regions.note_class((value,))
    return value.kind == "scalar"


class Unrolled(For):
    """A loop of few iterations that Python runs during capture. Once NumPy runs the rest of the call, its items are
    real.
    """

    __slots__ = ("stage",)

    def __init__(self, stage: Any, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.stage = stage

    def __iter__(self) -> Iterator[None]:
        for item in self.stage.taken(self.items) if type(self.items) is Items else self.items:
            self.before_iteration()
            self.item = self.stage.materialise(item) if self.stage.tracer.has_fallen_back else item
            yield

    def before_iteration(self) -> None:
        pass


class Watched(Unrolled):
    """A loop that Python runs during capture; it checks the limits of the capture in each iteration."""

    __slots__ = ()

    def before_iteration(self) -> None:
        check_budget(self.stage)


class WatchedWhile(While):
    """Like the watched `for`, for a `while` loop."""

    __slots__ = ()

    def __iter__(self) -> Iterator[None]:
        while self.goes_on:
            check_budget(self.scope.stage)
            yield


def has_changed(items: Items) -> bool:
    """True if each step raises, because a dict has changed its size."""
    try:
        return items.length is None
    except RuntimeError:
        return True


COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def comparison(relation: Any) -> Any:
    """The method for a comparison."""

    def compared(self: TracedControl, a: Any, b: Any) -> Any:
        return self.compare(relation, a, b)

    compared.__name__ = relation.__name__
    return compared


class TracedControl(PlainControl):
    """The methods of `__ci__` for control flow in a captured call."""

    __slots__ = ()

    lt, le, gt, ge, eq, ne = map(comparison, COMPARISONS)

    def decide(self, name: str, a: Any, b: Any) -> Any:  # type: ignore[override]
        """A comparison of sizes that must be decided now."""
        return self.compare(getattr(operator, name), a, b, is_open=False)

    def compare(self, relation: Any, a: Any, b: Any, is_open: bool = True) -> Any:
        """A comparison. If is_open, a comparison of sizes is left to the program."""
        a, b = (operands.use(self.stage, v) if type(v) in SHOWN else v for v in (a, b))
        found = operands.compared(self, relation, a, b)
        if found is not NotImplemented:
            return found
        if self.stage is not None:
            a, b = (v if type(v) in FREE_TYPES else self.stage.lifting.own(v) for v in (a, b))
        if type(a) is type(b) and type(a) in tuples.COMPARED and contains_traced((a, b)):
            return tuples.compare_containers(self, self.compare, relation, a, b)
        if relation in EQUALITIES and is_complex(a) and is_double(self.stage, b):
            found = relation(a, b)
            return self.stage.tracer.as_python(found) if type(found) is Traced else found
        is_of_sizes = (type(a) is Traced and a.is_expression) or (
            type(b) is Traced and b.is_expression
        )
        if not (is_of_sizes and is_open and self.may_leave_open()):
            return relation(a, b)
        tracer = self.stage.tracer
        tracer.leaves_open = True
        try:
            value = relation(a, b)
        finally:
            tracer.leaves_open = False
        if tracer.sample_truth(value) is not None:
            self.leave_open()
        return value

    def leave_open(self) -> None:
        """Record that the call could also be captured with guards."""
        if not self.stage.has_left_open:
            self.stage.has_left_open = True
            # If this call's sizes decide, with a guard, no break is allowed.
            self.stage.tracer.on_break = functools.partial(Replan, "leaves_open")

    def may_leave_open(self) -> bool:
        """True if the program may evaluate a condition on sizes, because the call could still be captured
        differently. In NumPy's own source, sizes select algorithms or errors, so they are decided.
        """
        stage = self.stage
        return stage.captures and stage.leaves_open and stage.tracer.may_check() and not self.is_library

    def bound(self, value: Any, name: str) -> Any:  # type: ignore[override]
        """The value of a name that may be unbound: the program checks that it is bound."""
        if type(value) is not MaybeUnbound:
            return value
        if type(value.flag) is Traced and self.stage.tracer.may_check():
            self.stage.tracer.check(truth(self.stage.tracer, value.flag), f"{name} is bound")
            return value.value
        return PlainControl.bound(value, name)

    def specialised(self, value: Any) -> Any:
        """A condition. If it only depends on sizes it is guarded, because otherwise an exception is raised."""
        sample = self.stage.tracer.sample_truth(value)
        return value if sample is None else bool(value)

    def symbolic(self, value: Any) -> Any:
        """A condition: for a list that is stored as columns, whether it has items. A test of a size against zero is left to
        the program.
        """
        if self.stage.state.lists and (grown := self.stage.state.grown(value)) is not None:
            value = grown.truth
        is_size = type(value) is Traced and value.is_expression
        return self.compare(operator.ne, value, 0) if is_size else value

    def asked(self, value: Any, site: Any) -> Any:
        """The test of an `if`."""
        return self.specialised(value) if site.raising else self.symbolic(value)

    def for_(self, value: Any, number: int) -> Any:
        site = self.sites[number]
        value = self.stage.escapes.now(value)
        items = self.stage.numbered(value) if self.stage.captures else None
        iterator = value if type(value) is Items else None
        if items is None and iterator is not None and type(iterator.position) is not str:
            items = iterator.rest(self.stage.tracer)
        if items is None or (callable(items.size) and has_changed(items)):
            if self.stage.captures and iterator is None and defines(type(value), "__next__"):
                self.stage.regions.report(self, site, f"the items of this {type(value).__name__} cannot be indexed")
            return Watched(self.stage, super().for_(value, number).items)
        is_short = type(items.length) is int and items.length <= loops.UNROLL >> site.depth
        if is_short and (site.flag is None or items.length == 0):
            shape = site.target
            each = iter(items) if iterator is None else self.iter(iterator)
            return Unrolled(self.stage, each if shape is None else (self.unpack(v, shape) for v in each))
        if iterator is not None:
            self.stage.state.before_change(iterator)
        return loops.Loop(self, site, items, loops.WATCH if is_short else loops.REGION, iterator)

    def while_(self, number: int) -> Any:
        if not self.stage.captures:
            return WatchedWhile(self)
        return loops.Loop(self, self.sites[number], None, loops.WATCH)

    def if_(self, value: Any, number: int) -> Any:
        site = self.sites[number]
        value = self.asked(value, site)
        if is_condition(value) and self.stage.captures:
            if not self.recurses(site.line):
                return branches.Branch(self, site, value)
        made = super().if_(value, number)
        if type(made) is If and not made.is_true and self.stage.captures:
            return branches.LateBranch(self, site)
        return made

    def recurses(self, line: int) -> bool:
        """True if data end a recursion through a condition on this line, so that Python evaluates it."""
        key, regions = (self.file, line), self.stage.regions
        if key not in regions.recursive:
            if not self.stage.tracer.in_region or count_frames(users_frame()) < MAX_RECURSIONS:
                return False
            regions.recursive.add(key)
        if self.stage.tracer.in_region:
            raise RegionBreak("data decide when a recursion ends", self.file, line)
        check_budget(self.stage)
        return True

    def is_open(self, line: int) -> bool:
        """True if an expression on the line that cannot be captured can be handled differently: by an enclosing
        construct, or by capturing the call again.
        """
        stage = self.stage
        is_refused = (self.file, line) in stage.regions.decided
        is_undoable = stage.tracer.may_check() or stage.tracer.in_region
        return stage.captures and is_undoable and not is_refused

    def bool_begin(self, value: Any, is_and: bool) -> Any:
        conditions = self.stage.state.conditions
        line = users_frame().f_lineno
        if is_condition(value) and self.is_open(line) and not self.recurses(line):
            value = branches.Operand(self, line, value, is_and)
            conditions.append((self, value))
            return value
        conditions.append((self, None))
        return super().bool_begin(value, is_and)

    def bool_end(self, value: Any, is_test: bool | None = None) -> Any:
        if self.stage.tracer.has_fallen_back:  # fallen back after the frame read this method: Python runs it
            return super().bool_end(value, is_test)
        conditions = self.stage.state.conditions
        scope, operand = conditions.pop()
        while scope is not self:
            scope, operand = conditions.pop()
        if operand is None:
            return super().bool_end(value, is_test)
        if type(value) is PlainOperand:
            value = value.truth if is_test else value.value
        return operand.join(value)

    def truth(self, value: Any) -> Any:
        """An operand of `and` or `or` of which only the truth is used; a value whose truth Python knows stays."""
        value = self.symbolic(value)
        if is_condition(value) and self.stage.captures:
            return self.stage.tracer.as_python(truth(self.stage.tracer, value))
        return value

    def not_(self, value: Any) -> Any:
        value = self.symbolic(value)
        if is_condition(value) and self.stage.captures:
            tracer, sample = self.stage.tracer, self.stage.tracer.sample_truth(value)
            opposite = tracer.apply("logical_not", truth(self.stage.tracer, value))
            opposite = tracer.as_python(opposite)
            if sample is not None:
                tracer.note_sample(opposite, value, not sample)
            return opposite
        return super().not_(value)

    def is_bool(self, value: Any, constant: bool) -> Any:
        if type(value) is not Traced:
            return value is constant
        self.stage.tracer.resolve_class(value)
        if value.kind != "python" or value.dtype != bool:
            return False
        return value if constant else self.not_(value)

    def kind_of_bool(self, value: Any) -> str | None:
        """The kind of a truth value: there is one True and one False of Python's, and one of each of NumPy's. None: another value."""
        if type(value) is not Traced:
            return {bool: "python", np.bool_: "scalar"}.get(type(value))
        self.stage.tracer.resolve_class(value)
        return value.kind if value.dtype == bool and value.kind != "array" else None

    def is_one(self, a: Any, b: Any) -> bool:
        if self.stage is None:  # the call is over
            return a is b
        sources, lists = self.stage.sources, self.stage.state.lists
        a, b = map(self.stage.escapes.now, (a, b))
        if lists:
            before_identity(self.stage.state, a, b)
        a, b = map(self.stage.effects.outside, (a, b))
        if Traced in (type(a), type(b)) and (kind := self.kind_of_bool(a)) is not None and (other := self.kind_of_bool(b)) is not None:
            equal = kind == other and operator.eq(a, b)
            return self.stage.tracer.as_python(equal) if type(equal) is Traced else equal
        sources.sees_objects = True
        if (is_same := sources.are_one(a, b)) is not None:
            return is_same
        if type(a) is Traced and type(b) is Traced and a is not b:
            self.stage.arrays.note_distinct(a, b)
            self.stage.regions.aliases.note_distinct(a, b)
        is_open = self.stage.chooses_tuples and self.stage.captures and not self.stage.tracer.effects
        if is_open and a is not b and type(a) is type(b) and is_record(type(a)):
            raise Replan("regions", "`is` compares tuples, one of which data may choose")
        return a is b

    def then(self, value: Any) -> Any:
        value = self.symbolic(value)
        line = users_frame().f_lineno
        if is_condition(value) and self.is_open(line) and not self.recurses(line):
            return branches.Choice(self, line, value)
        return super().then(value)

    def choose(self, choice: Any, first: Any, second: Any) -> Any:
        return super().choose(choice, first, second) if type(choice) is PlainChoice else choice.join(first, second)

    def choose_result(self, choice: Any, first: Any, second: Any) -> Any:
        if type(choice) is PlainChoice:
            return super().choose_result(choice, first, second)
        return choice.join(first, second, VALUE)

    def assertion(self, value: Any) -> Any:
        if is_condition(value) and self.stage.captures and self.stage.tracer.may_check():
            self.stage.tracer.check(truth(self.stage.tracer, value), "an assertion")
            return True
        return super().assertion(value)


__all__ = ["TracedControl", "Traced"]
