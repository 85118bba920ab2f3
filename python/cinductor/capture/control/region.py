"""Common parts of captured loops and branches.

A construct runs its bodies on traced state, maybe several times, and makes one node of the graph
of them. Afterwards the user's frame has the names that Python would have set. A construct closes
what it opens. A run that cannot be captured raises RegionBreak. Then the innermost construct
that can run without a region goes back to its mark, where nodes, memory, names and containers
are restored, and Python runs it.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from ... import _core
from ...base.class_lookup import is_a
from ...base.interrupt import is_interrupt
from ...base.region_outcome import RegionOutcome
from ...base.signals import NotPaid, Signal, is_mistake
from ...base.user_frame import OWN_PREFIX, locals_of
from ..iterators import END, Items
from ..kinds import UNBOUND, is_one
from ..objects import SINGLE, Traced
from .alias import Aliases, PeelFirstIteration, Records, count_in
from .state import Change, Snapshot, State, reached

if TYPE_CHECKING:
    from ..kinds import Hooks
    from ..syntax.stage_calls import Site

RegionBreak = _core.RegionBreak
PACKAGE = __name__.partition(".")[0] + "."
ENTRY = "cinductor.capture.entry"  # it calls the outermost of the user's frames


class Raising(Signal):
    """Raised if an arm of a traced branch is about to raise an exception or to warn. Its text is
    not needed."""


MAX_RESTARTS = 64


class Rerun(Signal):
    """Raised if a construct must be captured again, because of a fact found in the middle of it: a list that becomes
    a buffer, or the rule by which an array grows.
    """


class Regions:
    """The active constructs of one captured call, and facts recorded about constructs."""

    def __init__(self, state: State) -> None:
        self.state, self.tracer = state, state.tracer
        self.made: list[weakref.ref[Any]] = []  # objects that are emptied at the end
        self.most_made = 64  # from which number on those that are gone are left out
        self.plans: dict[Any, Any] = {}  # of loops
        self.outcomes: dict[tuple[str, int, str], RegionOutcome] = {}
        self.aliases = Aliases(self.state)
        self.tests = 0  # number of tests decided by branches
        self.leaves_loops = False  # give up a capture whose loop breaks where there is no array
        self.decided: frozenset[tuple[str, int]] = frozenset()  # conditions that Python evaluates
        self.recursive: set[tuple[str, int]] = set()  # conditions that end recursions: file, line
        self.may_open = True

    def end(self) -> None:
        """The call is over: empty the objects of this folder, which refer to frames and values."""
        _core.let_go([*(made() for made in self.made), self.state, self], __package__, USERS)

    def note_made(self, made: object) -> None:
        """Record an object that is emptied at the end. No code of Python's runs when it dies, where Ctrl-C would be lost."""
        self.made.append(weakref.ref(made))
        if len(self.made) > self.most_made:
            self.made = [known for known in self.made if known() is not None]
            self.most_made = 2 * len(self.made) + 64

    def count_test(self) -> int:
        """A unique number for each test."""
        self.tests += 1
        return self.tests

    def is_carried_by_value(self, value: Traced) -> bool:
        """True if a loop or branch carries the array by value, so that NumPy may give it another
        memory layout."""
        if value.kind != "array" or value.storage in self.state.records:
            return value.kind == "array"
        loops = (region.carried for region in self.state.active if region.carried is not None)
        return any(value.storage == p.value.storage for carried in loops for p in carried.values)

    def step(self, scope: Hooks, items: Items) -> Any:
        """The next item of an iterator whose position an iteration may determine. Only for the function whose
        construct is being captured, because code that Python runs might take items without end.
        """
        self.state.before_change(items)
        position = items.position
        if type(position) is str:
            return next(items)
        items.check()
        if items.is_endless:
            items.move(position + 1)
            return items.get(position)
        left = items.length - position
        is_left, is_fixed = left > 0, type(left) is int or left.is_fixed
        is_own = self.state.active and self.state.active[-1].scope is scope
        if not is_fixed and not (is_own and self.tracer.may_check()):
            return next(items)
        if type(is_left) is Traced and not self.tracer.is_positive(left):
            if is_fixed:
                is_left = bool(is_left)
            else:
                self.tracer.check(is_left, "an iterator has another item")
        if type(is_left) is not Traced and not is_left:
            items.move(END)
            raise StopIteration
        items.move(position + 1)
        return items.get(position)

    def note_class(self, values: Iterable[Any]) -> None:
        """Called where the class of a number matters."""
        for value in values:
            self.tracer.resolve_class(value)
            if self.state.active:
                self.state.classes.append(value.kind if type(value) is Traced else type(value).__name__)

    def note_pythons(self) -> None:
        """Python runs a loop: if it breaks before an array has been met, capture is not worth its iterations."""
        if self.leaves_loops and not self.tracer.on_break:
            self.tracer.on_break = lambda reason: None if self.tracer.has_arrays else NotPaid(reason)

    def report(self, scope: Hooks, site: Site, reason: str = "") -> None:
        """Record the outcome of a construct, for explain: captured, or the reason why it is not."""
        place = (scope.file, site.line, site.kind)
        self.outcomes[place] = RegionOutcome(*place, reason)


USERS = ("container", "reached_by")  # attributes with the user's lists, which may hold millions of items, and nothing of this folder


def between_runs(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step of a construct before or after a run of user code: if it fails, the construct is not captured."""

    @functools.wraps(step)
    def guarded(self: Region, *args: object) -> Any:
        try:
            return step(self, *args)
        except PeelFirstIteration:
            raise
        except Exception as error:
            if is_interrupt(error):
                raise
            reason = reason_of(error) or f"{type(error).__name__}: {error}"
            raise RegionBreak(reason, self.scope.file, self.site.line) from error

    return guarded


def reason_of(error: BaseException) -> str | None:
    """The reason why a run cannot be captured, if an error gives one."""
    if is_a(error, RegionBreak):
        return str(error.args[0])
    return str(error) if is_a(error, _core.CinductorError) else None


def is_of_body(error: BaseException) -> bool:
    """True for an exception that a body or operand raises, as in Python. A failed check ends the call: pending work was lost."""
    return not is_a(error, (Signal, _core.CheckFailed)) and not is_interrupt(error)


def put_back(now: list[tuple[Change, Any]]) -> None:
    """Give containers their current contents, after a look at a snapshot's."""
    for change, contents in now:
        change.row.restore(change.container, contents)


def users_frame() -> Any:
    """The frame of the calling rewritten code, whose names a body or operand may change."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame = frame.f_back
    return frame


class Region:
    """One construct being captured."""

    restores = True
    restarts = 0  # for a container that is stored in columns
    is_loop = False
    carried: Any = None  # by a loop, from iteration to iteration
    levels: Any = ()  # of a branch: tests whose rest is being run
    plan: Any = None  # of a loop
    operands: tuple[Any, ...] = ()  # values without a name: the iterable of a loop
    frame: Any = None  # the user's, while runs are captured
    __exit__: Callable[[Any, BaseException, Any], bool]
    __next__: Callable[[], Any]

    @property
    def mark(self) -> Any:
        """The mark at its beginning."""
        raise NotImplementedError

    def __init__(self, scope: Hooks, site: Site) -> None:
        self.scope, self.site = scope, site
        self.regions: Regions = scope.stage.regions
        self.state, self.tracer = self.regions.state, self.regions.tracer
        self.regions.note_made(self)
        self.lists_before: dict[int, Any] | None = None  # lists that were columns before
        self.waited = len(self.state.waiting)  # operands on the stacks of frames at its beginning
        self.forget()
        outer = self.state.active[-1].key if self.state.active else None
        self.key = (outer, id(scope), site.number)

    def fail(self, reason: str) -> NoReturn:
        """Give this attempt up."""
        raise RegionBreak(reason, self.scope.file, self.site.line)

    # --- containers that are stored as columns ---

    def owners(self, container: object) -> list[Region]:
        """The active constructs from the outermost one on that knows the container."""
        active: list[Region] = self.state.active
        first = next((k for k, outer in enumerate(active) if outer.knows(container)), len(active))
        if first == len(active):
            self.fail("data decide how a list grows")
        return active[first:]

    def want(self, container: object, make: Callable[..., None], *given: object) -> NoReturn:
        """Restart the outermost construct that knows the container, after `make(container, *given, construct)` has stored it in
        columns. There is an end to this: a function that a construct keeps may refer to a container, and each run makes another one.
        """
        owner = self.owners(container)[0]
        owner.restarts += 1
        if owner.restarts > MAX_RESTARTS:
            self.fail("an item of a list changes that each iteration makes")
        raise Rerun(owner, functools.partial(make, container, *given))

    def make_columns(self, wants: Iterable[Callable[[Region], None]]) -> None:
        """Store containers in columns, outside of the construct."""
        if self.lists_before is None:
            self.lists_before = self.state.lists
        for want in wants:
            want(self)

    def forget_columns(self) -> None:
        """Turn containers that were stored in columns for it back into ordinary ones."""
        if self.lists_before is not None:
            self.state.put_lists_back(self.lists_before)

    def forget(self) -> None:
        """Drop the values of names: no run begins with them any more, and they would outlive the frame's own references."""
        self.frame = None
        self.entry: dict[str, Any] = {}  # the values of the site's names in which every run begins
        self.others: dict[str, Any] = {}  # those of the other names

    def start(self, names: dict[str, Any]) -> None:
        """The state in which every run begins."""
        self.frame = users_frame()
        state = frozenset(self.site.state)
        self.entry = {name: names.get(name, UNBOUND) for name in self.site.state}
        self.others = {
            name: value
            for name, value in names.items()
            if name not in state and not name.startswith(OWN_PREFIX)
        }

    def attempt_to(self, begin: Callable[[], Any]) -> Any:
        """Begin a run, as a step of __next__; a failure counts as one of the body."""
        try:
            return begin()
        except BaseException as error:
            if not self.__exit__(type(error), error, error.__traceback__):
                raise
        return self.__next__()

    def mistake_in(self, error: BaseException) -> str | None:
        """The reason if an exception is a mistake of cinductor, after a warning; None for one of the user's."""
        if not is_mistake(error):
            return None
        self.scope.stage.tell(error)
        return f"an internal error, {type(error).__name__}: {error}"

    def enter(self) -> tuple[Any, ...]:
        """The values of names at the head of a run."""
        raise NotImplementedError

    def __enter__(self) -> None:
        if self.restores and not (self.site.state or self.site.raising):
            self.enter()  # rewritten code has no names to set

    def diff(self, before: Snapshot) -> list[Change]:
        """The contents of visible containers that have changed since the snapshot."""
        if not (before.before or self.state.snapshots[before.depth :]):
            return []
        now = before.swap()
        seen = self.reached(change.container for change, _ in now)
        put_back(now)
        return [change for change, _ in now if id(change.container) in seen]

    def knows(self, container: object) -> bool:
        """True if the container will be there when the construct starts again: no run has made it. Cells are left out, because
        the names of frames have what they hold.
        """
        (begin,) = (snapshot for snapshot in self.state.snapshots if snapshot.graph is self.mark)
        now = begin.swap()
        is_known = bool(self.reached([container], has_cells=False))
        put_back(now)
        return is_known

    def reached(self, wanted: Iterable[Any], names: Iterable[Any] | None = None, has_cells: bool = True) -> set[int]:
        """Ids of the containers that are visible, through names before the construct or these.

        Invariant: the construct's code changes a container from before it only if something reaches that container. This is a name of
        its frame or of an enclosing one, a cell of a running function, the iterable of the construct, or an object that outlives the call.
        """
        roots = [*(self.entry.values() if names is None else names), *self.others.values()]
        roots += [*self.operands, *self.callers(), *(self.cells() if has_cells else ())]
        return reached(roots, wanted, self.state.sources.known, self.tracer.effects > 0)

    def callers(self) -> list[Any]:
        """The values that the calling frames refer to, and those on the stacks of all frames: what waits in
        expressions, and what the loops around iterate over."""
        values: list[Any] = []
        frame = self.frame
        while frame is not None and frame.f_globals.get("__name__") != ENTRY:
            names = locals_of(frame)
            values.extend(names.values() if frame is not self.frame else ())
            for name in [name for name in names if name.startswith(OWN_PREFIX)]:
                values.extend(getattr(names[name], "operands", ()))
            frame = frame.f_back
        values.extend(attributes for _, attributes in self.scope.stage.stores.objects.values())
        values.extend(lists.cells for lists in self.state.lists.values())
        values.extend(self.scope.stage.records.lists)
        values.extend(self.state.waiting[: self.waited])
        return values

    def cells(self) -> list[Any]:
        """Cells of running functions. A function that was made in the construct may set them, also one that no name refers to."""
        found: list[Any] = []
        frame = self.frame if self.state.cells else None
        while frame is not None and frame.f_globals.get("__name__") != ENTRY:
            found += self.state.cells_of(frame)
            frame = frame.f_back
        return found

    def elsewhere(self) -> list[Any] | None:
        """References besides the names of the construct's state; None if unknown."""
        if self.state.unseen:
            return None
        return [*self.others.values(), *self.callers()]

    def is_alone(self, array: Traced, values: list[Any], records: Records | None = None) -> bool:
        """True if at most one of the values, with what callers see, may be of that memory, made
        here."""
        if not array.is_fresh or array.storage <= self.state.unseen:
            return False
        seen = [*values, *self.others.values(), *self.callers()]
        known = self.state.records if records is None else records
        return count_in(known, seen, array.storage) <= 1

    def check_others(self, names: dict[str, Any]) -> None:
        """Check that names that the construct does not assign are unchanged."""
        code = None if self.frame is None else self.frame.f_code
        cells = () if code is None else (*code.co_cellvars, *code.co_freevars)  # the journal keeps these
        for name, value in self.others.items():
            now = names.get(name, UNBOUND)
            if now is not value and not is_one(now, value) and name not in cells:
                self.fail(f"{name} is changed by a function inside")

    def lifted(self, values: Iterable[Any]) -> list[Any]:
        """Values of which leaves are compared and carried."""
        lift = self.scope.stage.lifting.lift_tuple
        return [value if type(value) in SINGLE else lift(value) for value in values]

    def values(self, names: dict[str, Any]) -> tuple[Any, ...]:
        """The tuple that rewritten code assigns to the state's names."""
        return tuple(map(names.get, self.site.state, itertools.repeat(UNBOUND)))

    def check(self, condition: object, why: str) -> None:
        """Add a check node: if it fails the original function runs the call."""
        if condition is True:
            return
        if type(condition) is not Traced or not self.tracer.may_check():
            self.fail(f"{why} is known only when the program runs")
        self.tracer.check(truth(self.tracer, condition), why)


def is_condition(value: object) -> TypeGuard[Traced]:
    """True for a traced value with a truth that is only known at run time. An int of Python is known if it only
    depends on sizes, and after a break.
    """
    if type(value) is not Traced or not (value.ndim == 0 or value.size == 1):
        return False
    is_int = value.kind == "python" and value.dtype.kind == "i"
    return not is_int or type(value != 0) is Traced  # type: ignore[comparison-overlap]


def truth(tracer: _core.Tracer, value: Traced) -> Any:
    """A traced condition as a bool of rank 0."""
    if value.kind == "array":
        if value.ndim:
            value = tracer.reshape(value, ())
        value = tracer.as_scalar(value)
    return value if value.dtype == bool else value != 0  # type: ignore[comparison-overlap]
