"""State of one captured call, and calls that continue in NumPy.

Components are created in order, each from the ones before it; no component knows the `Stage`. Values
enter through `boundary` and leave through `effects`.

Fallback
    If a loop that Python executes breaks in every iteration and does little work, capture costs
    more than it saves. The work compiled so far is kept: values become real, also in the frames
    of running functions, and the rewritten code then does what the original does. If nothing worth
    compiling has run, the call is restarted uncompiled.

Bail-out (`with_bailout`)
    An internal error before any side effect restarts the call with the original function. After
    a side effect the call cannot be restarted. The failing step is then repeated on real values
    by Python and NumPy. If it raises there too, the exception is the user's. Otherwise it was a
    bug in cinductor: one warning reports it, and the call continues in NumPy from that step.
    A step that cannot be captured (`RegionBreak`, `Unsupported`) outside of regions is repeated in the same way, without a
    warning. If it may run functions of the user's, it is undone first.

Invariant: no step runs twice. If part of a step may already have happened, the exception propagates.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.interrupt import is_interrupt
from ..base.signals import NotPaid, OverBudget, Replan
from ..base.user_frame import PACKAGE, call_in_place, locals_of
from ..calls.budget import MANY_NODES, Allowance, is_for_pieces, why_spent
from ..calls.dynamic import Symbols
from ..errors import ConstraintViolation
from .boundary import Lifting
from .containers import name_of_view
from .control.region import Regions
from .control.state import Snapshot, State
from .deaths import forget, runs_code
from .effects import Effects, Materialiser
from .iterators import Items, items_of
from .objects import (
    FREE_TYPES,
    MISSING,
    OPAQUE,
    VIEWS_OF_DICTS,
    Traced,
    defines,
    now_at,
    put,
    why_not_array,
)
from .records import Records
from .sources import Sources
from .syntax.stage_calls import STAGE

if TYPE_CHECKING:
    from .assumptions import Assumptions


class Stage:
    """The state of one captured call. hooks, plain_hooks: the scope class that traces, and the one that does not. way: what is
    assumed.
    """

    clock = staticmethod(time.thread_time)
    runs_on = "cpu"  # the device for which the program is made
    device: str | None = None  # the device of the arrays; None for the host
    draws_outside = 0  # of loops and branches, captured from their source
    inlined = 0  # number of user functions that were entered
    depth = 0
    is_odd_call = False  # of the compiled functions that are captured from a source
    has_left_open = False  # a condition was left to the program
    chooses_tuples = False  # a tuple of the program stands for one of several: `is` cannot tell which
    limit = math.inf  # seconds of capture work
    why_whole = ""  # why NumPy may not continue
    allowance: Allowance | None = None  # of the capture, in all its attempts
    most_nodes = sys.maxsize  # of the pending graph
    all_work: float | None = None  # seconds of capture work, once NumPy runs the rest of the call
    why_over = ""  # reason, if a limit has been reached
    iterations = 0  # that Python has run in captured loops and branches
    runs = False  # the function's own code is running
    learned = False  # something was recorded that the next capture of such a call will use
    why_again: str | None = None  # why later calls cannot use the compiled program

    def call_of(self, nanoseconds: int) -> int:
        """`Tracer.call` for operations that stand for a call of a compiled function, which takes so long: of the outermost one."""
        if self.tracer.call or not nanoseconds:
            return self.tracer.call
        self.is_odd_call = not self.is_odd_call
        return 2 * nanoseconds + self.is_odd_call

    def call_in(self, module: str | None, name: str, compiled: dict[str, int]) -> int:
        """`Tracer.call` in a captured function: what a function of the user's takes is counted, also where a compiled one calls it."""
        if module is None or not module.startswith("cinductor."):
            return 0
        return self.call_of(compiled.get(name, 0) if module == "cinductor.numpy.composites" else 0)

    def __init__(
        self,
        tracer: _core.Tracer,
        symbols: Symbols | None,
        names: tuple[str, ...],
        hooks: Any,
        plain_hooks: Any,
        way: Assumptions,
    ) -> None:
        self.tracer = tracer
        self.symbols = symbols
        self.hooks = hooks
        self.plain_hooks = plain_hooks
        self.sources = Sources(names)
        self.state = State(tracer, self.sources)
        self.regions = Regions(self.state)
        self.regions.may_open, self.regions.decided = way.sized_lists, way.decided
        self.effects = Effects(tracer, self.sources, self.state, self.regions.aliases, plain_hooks)
        self.arrays, self.stores, self.escapes = self.effects.arrays, self.effects.stores, self.effects.escapes
        self.materialise = self.effects.materialise
        lifting = self.lifting = Lifting(tracer, symbols, self.sources, self.state, self.effects)
        self.lift, self.lift_array, self.lift_guarded = lifting.lift, lifting.lift_array, lifting.lift_guarded
        self.items_of, self.lift_items, self.lift_nested = lifting.items_of, lifting.lift_items, lifting.lift_nested
        self.records = Records(tracer, self.state)
        self.effects.flush_records = self.records.flush
        self.globals: dict[int, tuple[dict[str, Any], dict[str, tuple[Any, Any]]]] = {}
        self.functions: dict[int, tuple[Any, Any]] = {}
        self.draw_states: dict[int, Any] = {}  # source of a generator -> its state as arrays, and the sources of its methods
        self.exported: dict[Any, Traced] = {}  # arrays that objects of other libraries hand out, by source and conversion
        self.codes: dict[int, Any] = {}  # of functions that rewritten code makes, by id
        self.scopes: list[Any] = []
        self.captures = way.regions  # capture loops and branches
        self.has_list_columns = way.list_columns  # long lists of numbers among the arguments are columns
        self.has_small_containers = way.small_containers  # short lists, dicts and sets among the arguments are no columns
        self.inlines_draws = way.inline_draws  # draws may be captured from their source
        self.has_draws_apart = way.draws_apart  # outside of loops and branches they are library calls, until one is captured
        self.leaves_open = way.leaves_open  # leave conditions on sizes to the program
        self.began, self.others = self.clock(), 0.0  # of this thread; seconds in the user's own code
        self.errstates: dict[int, Any] = {}  # made in the call, with their keywords
        self.break_budget = way.break_budget  # number of runs that were useful in an earlier call of this kind
        self.lowering: set[int] = set()  # functions whose replacement is being called
        self.tell: Callable[[Exception], object] = str  # reports an internal error to the user

    # --- time, and the end ---

    def outside(self, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of uncaptured code, whose time belongs to the user. It may look at the frame that calls it."""
        began = self.clock()
        try:
            return call_in_place(f, args, kwargs)
        finally:
            self.others += self.clock() - began

    @property
    def own_work(self) -> float:
        """Seconds that the capture has taken, without the work that it traces."""
        if self.all_work is not None:
            return self.all_work
        return self.clock() - self.began - self.others - self.tracer.seconds

    def close(self) -> None:
        """End the call. Its objects refer to each other, and to the arguments. All references are dropped here, so
        that arguments do not live longer than in Python.
        """
        for scope in self.scopes:
            scope.stage = None
        self.regions.end()
        self.tracer.close()
        self.__dict__.clear()

    # --- values that enter and leave ---

    def constant(self, value: np.ndarray) -> Any:
        """A new traced array with the contents of an array computed from constants alone."""
        if (why := why_not_array(value)) is not None:
            self.effects.note(f"makes {why}")
            self.sources.known[id(value)] = (value, OPAQUE)
            return value
        kept = value.copy(order="K") if self.device is None else _core.device_array(value, self.device)
        kept.flags.writeable = False
        source = self.sources.source("const", kept)
        traced = self.tracer.array(kept, source)
        self.sources.entered[source] = (kept, traced)
        return self.tracer.copy(traced, "K")

    def numbered(self, value: Any) -> Items | None:
        """The items by index; None if Python has to iterate over the value."""
        value = self.escapes.now(value)
        if not self.state.lists or (grown := self.state.grown(value)) is None:
            return items_of(self.lift_array(value))
        return grown.items_of_view(name_of_view(value)) if type(value) in VIEWS_OF_DICTS else grown.items_now

    def give_up_draws(self, written: list[Any], why: str) -> None:
        """Capture the call with library calls for draws if only draws write to these arrays, and that is possible."""
        if self.inlines_draws and self.tracer.effects == 0 and all(map(self.is_state, written)):
            raise Replan("inline_draws", why)

    def is_state(self, array: Any) -> bool:
        """True if an array is a part of the state of a generator of Python, to which only draws refer."""
        states = [part for arrays, _ in self.draw_states.values() for part in arrays] + [kept for _, kept, _ in self.effects.normals.values()]
        return any(array.storage == state.storage for state in states)

    @property
    def may_assume_columns(self) -> bool:
        """True if a container may be columns that captured code alone may look at: the call can be captured in another way."""
        return self.has_list_columns and self.tracer.effects == 0

    @property
    def progress(self) -> tuple[int, ...]:
        """Counts of what cannot simply be repeated: effects, functions of the user's that were entered, changes of objects."""
        return self.tracer.effects, self.inlined, self.state.changes

    def repeated(self, step: Callable[..., Any], *args: Any) -> Any:
        """The result of a step of rewritten code that is no hook. If it fails after an effect and outside of regions, before it has
        changed anything, NumPy runs the rest of the call, and the step is repeated.
        """
        attempt = Attempt(self.progress, None)
        try:
            return step(*args)
        except (_core.CinductorError, _core.RegionBreak) as error:
            if not self.tracer.effects or self.tracer.in_region or not (is_limit(self, error) or is_internal_error(error)):
                raise
            if not attempt.is_undone(self.progress):
                raise
            reason = error
        go_on(self, reason)
        return step(*args)

    def taken(self, items: Items) -> Iterator[Any]:
        """The items, one by one."""
        while True:
            try:
                item = self.repeated(next, items)
            except StopIteration:
                return
            yield item

    def length_now(self, value: Any) -> int:
        """The length of a container that is iterated. If a buffer has got the items since the iterator was made, they are put
        back: the iterator reads the container.
        """
        self.state.put_back(value)
        return len(value)

    def forced(self, value: Any) -> Any:
        """The value, materialised; calls with another value are of a different kind, or need Python."""
        if type(value) is Traced and not self.tracer.in_region:
            if value.kind == "array":
                self.tracer.note_break("the values of an array are asked for")
            else:
                hash(value)
        return self.materialise(value)

    def store(self, value: Any, place: Any, item: Any) -> None:
        """Defer a store to an attribute or item, unless code runs when what it replaces dies."""
        place = place % len(value) if type(value) is list else place
        old = MISSING if place in self.stores.of(value) else now_at(value, place)
        if old is MISSING or not end_before(self, old):
            self.lifting.store(value, place, item)
        else:
            put(value, place, self.materialise(item))

    def change(self, value: Any, reason: str) -> None:
        """Record that an object loses items."""
        if not self.ends_before_loss(value):
            self.effects.change(value, reason)

    def ends_before_loss(self, value: Any) -> bool:
        """Let Python take over before an object loses items or attributes, if code runs when one that was read dies."""
        rows, source = self.sources.rows, self.sources.source_of(value)
        known: list[Any] = [*self.sources.known.values(), *self.effects.arrays.known.values()]
        read = [one for one, at, *_ in known if at >= 0 and rows[at][1] == source and rows[at][0] in PARTS]
        return any([end_before(self, one) for one in read])


# --- calls that continue in NumPy ---


LITTLE = "many breaks for little work one after another"
REST = ": the rest of the call runs in NumPy"
PARTS = ("item", "attr")  # kinds of sources
MOST_ITERATIONS = 100_000  # that Python runs in loops and branches of one capture: about half a second
PATIENCE = 20  # times capture_limit, if the user requires one graph


def check_budget(stage: Stage) -> None:
    """Check, before an iteration of a loop that Python runs, whether it is captured."""
    tracer = stage.tracer
    if tracer.in_region and not tracer.has_fallen_back:
        return count_iteration(stage)
    if tracer.has_fallen_back or tracer.fullgraph or tracer.forbids_breaks:
        return None
    if is_for_pieces(tracer):
        return fall_back(stage, "values are needed after an earlier break")
    why = why_spent(tracer, stage.break_budget)
    if why is None:
        return None
    is_unrolled = tracer.nodes > MANY_NODES
    if (is_unrolled or not tracer.useful) and stage.effects.undo_call():
        raise OverBudget(why)
    return fall_back(stage)


def count_iteration(stage: Stage) -> None:
    """Count an iteration that Python runs in a loop or branch which is captured. The call may never run that arm or body, so that the
    loop may be one that does not end.
    """
    stage.iterations += 1
    if stage.iterations > MOST_ITERATIONS:
        raise _core.RegionBreak(f"Python runs more than {MOST_ITERATIONS} iterations in loops or branches that are captured", "", 0)


def limit(stage: Stage, is_hook: bool | None) -> None:
    """Check the limits after a number of steps (`Tracer.on_step`): calls of hooks, traced values, and items that capture handles one by one.
    After the time limit NumPy runs the call, or the rest of it; the latter only between operations of the user's code, which a hook that
    runs none of it (is_hook: None) does not end.
    This also happens if an effect has happened and the graph is half full, because a full graph can no longer restart.
    With fullgraph NumPy may not continue, and a capture may take longer."""
    tracer = stage.tracer
    most = stage.limit * (PATIENCE if tracer.fullgraph else 1)
    is_half_full = tracer.effects > 0 and tracer.nodes > stage.most_nodes // 2
    if stage.own_work <= most and not is_half_full:
        return None
    allowance = stage.allowance
    if allowance is not None and not is_half_full and allowance.raise_by_bound():
        most = stage.limit = allowance.left(stage.captures)
        if stage.own_work <= most:
            return None
    may_continue = bool(is_hook) and is_asked_by_users()
    if allowance is not None and not is_half_full and allowance.seconds < allowance.most:
        return postpone(stage, allowance, may_continue)
    why = f"capture has taken longer than capture_limit ({allowance.most if allowance else stage.limit:g} s)"
    if tracer.fullgraph:
        raise _core.Unsupported(f"{why}, {PATIENCE} times over ({stage.why_whole})")
    if is_half_full:
        why = f"the graph has half of the nodes of node_limit ({stage.most_nodes})"
    stage.why_over = why
    if tracer.in_region or tracer.forbids_breaks:
        raise _core.RegionBreak(why, "", 0)
    if stage.effects.undo_call():
        raise OverBudget(why)
    return fall_back(stage, why) if may_continue else None


def postpone(stage: Stage, allowance: Allowance, may_continue: bool) -> None:
    """The capture has taken what calls have paid for: NumPy runs this one, and the next."""
    why = f"capture has taken the {1e3 * allowance.seconds:.3g} ms that calls have paid for"
    if stage.effects.undo_call():
        raise NotPaid(why)
    if stage.tracer.in_region or stage.tracer.forbids_breaks:
        raise _core.RegionBreak(why, "", 0)
    return fall_back(stage, why) if may_continue else None


def fall_back(stage: Stage, why: str = LITTLE) -> None:
    """Let Python and NumPy run the rest of the call: nothing is traced any more."""
    for grown in reversed([*stage.state.lists.values()]):  # a dict comes after its entries, and reads them
        grown.materialise()
    stage.effects.stop(f"{why}{REST}")
    stage.tracer.has_fallen_back = True
    stage.all_work = stage.own_work
    make_real(stage)
    for scope in stage.scopes:
        scope.__class__ = stage.plain_hooks
    stage.state.waiting.clear()  # operands die when Python's would
    stage.effects.forget_tuples()  # of the others a tuple waits on Python's stack
    forget(stage.tracer, stage.sources, stage.arrays)


def make_real(stage: Stage) -> None:
    """Make the names of running functions real, and what waits on Python's stack: the contents of objects that can be changed are
    exchanged here, other values when they are used (`Scope.made`).
    """
    concrete = Materialiser(stage.effects)
    for frame in frames_of(stage):
        changed = {}
        for name, value in locals_of(frame).items():
            if (real := real_or_none(concrete, value)) is not None and real is not value:
                changed[name] = real
        if changed:
            _core.set_locals(frame, changed)
    for value in stage.state.waiting:
        real_or_none(concrete, value)


def real_or_none(concrete: Materialiser, value: Any) -> Any:
    """The value made real; None for a value of a closed block, which no code reads any more."""
    try:
        return concrete.of(value)
    except (_core.InternalError, _core.RegionBreak):
        return None


def fall_back_for_flags(stage: Stage, value: Any) -> Any:
    """Let NumPy run the rest before the flags of an array, or an array that has them, are set: traced values cannot
    represent that.
    """
    stage.effects.abandon("sets flags of an array")
    value = stage.materialise(value)
    fall_back(stage, "flags of an array are set")
    return value


def end_before(stage: Stage, value: Any) -> bool:
    """Let Python and NumPy run the rest if code of the user's runs when the value dies; False if none does."""
    if not runs_code(value):
        return False
    why = f"the user's code runs when a {type(value).__name__} dies"
    stage.effects.abandon(why)
    if not stage.tracer.has_fallen_back:
        fall_back(stage, why)
    return True


def frames_of(stage: Stage) -> list[FrameType]:
    """The running frames of rewritten functions, the innermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if STAGE in frame.f_code.co_freevars:
            if getattr(locals_of(frame).get(STAGE), "stage", None) is stage:
                found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


# --- after an internal error ---


REPLACEMENTS: set[int] = set()  # ids of the code of objects that call the stage on the user's behalf


def in_users_stead(cls: type) -> type:
    """Record that the methods of a class call the stage on the user's behalf."""
    for method in vars(cls).values():
        parts = (method.fget, method.fset, method.fdel) if type(method) is property else (method,)
        REPLACEMENTS.update(id(part.__code__) for part in parts if type(part) is FunctionType)
    return cls


def is_internal_error(error: BaseException) -> bool:
    """True if an exception may be an internal error: not one that reports what capture cannot do, or one raised by a
    signal handler.
    """
    if is_interrupt(error) or is_a(error, _core.RegionBreak):
        return False
    if is_a(error, _core.CinductorError):
        return is_a(error, _core.InternalError)
    return not is_a(error, MemoryError | RecursionError | ConstraintViolation)


LIMITS = (_core.Unsupported, OverflowError, _core.RegionBreak)


def is_limit(stage: Stage, error: BaseException) -> bool:
    """True if an exception says what capture cannot do, such as a size that does not fit in 64 bits, and NumPy may do it."""
    return type(error) in LIMITS and not (stage.tracer.fullgraph or stage.tracer.forbids_breaks)


def is_asked_by_users() -> bool:
    """True if the caller of the stage is rewritten code, not another part of cinductor."""
    frame = sys._getframe(2)  # of the caller's caller
    while id(frame.f_code) in REPLACEMENTS and frame.f_back is not None:
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(PACKAGE)


def runs_others(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if a call of what is no function of the user's may run some on the way: an argument is called, or gives items of one."""
    given = (*args[1:], *kwargs.values())
    return type(args[0]) is not FunctionType and any(callable(value) or is_a(value, Items | GeneratorType) for value in given)


class Attempt:
    """A step after an effect that may fail. snapshot: of one that runs functions of the user's, which is undone as a whole then.
    before: `Stage.progress` at its beginning.
    """

    __slots__ = ("before", "snapshot")

    def __init__(self, before: tuple[int, ...], snapshot: Snapshot | None) -> None:
        self.before, self.snapshot = before, snapshot

    def end(self) -> None:
        """The step has succeeded."""
        if self.snapshot is not None:
            self.snapshot.end()

    def is_undone(self, now: tuple[int, ...]) -> bool:
        """True if the step may be repeated: it has changed nothing, or that could be undone."""
        if self.snapshot is None:
            return now == self.before
        can_undo = self.snapshot.can_undo
        if can_undo:
            self.snapshot.drop()
        self.snapshot.end()
        return can_undo


def with_bailout(method: Callable[..., Any], kind: str) -> Any:
    """A method of a scope that lets NumPy run the step if it fails after an effect; until there is an effect, C calls
    the method directly. kind: "lazy" if Python iterates over its result later, "quiet" if it evaluates nothing of the user's.
    Such a method never makes Python run the rest of the call. An "operand" is one that also returns values of `FREE_TYPES`.
    """
    name = method.__name__

    def late(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        stage = self.stage
        if stage.tracer.has_fallen_back:  # fallen back after the frame read this method
            return on_real_values(self, name, args, kwargs)
        may_undo = name == "call" and not stage.tracer.in_region and runs_others(args, kwargs)
        attempt = Attempt(stage.progress, Snapshot(stage.state, True) if may_undo else None)
        try:
            result = method(self, *args, **kwargs)
        except (Exception, _core.RegionBreak) as error:
            if stage.tracer.in_region or not (is_limit(stage, error) or is_internal_error(error)):
                raise
            if not (is_asked_by_users() and attempt.is_undone(stage.progress)):
                raise
            reason = error
        else:
            attempt.end()
            return result
        if kind == "lazy":
            check_iterable(stage.materialise(args[0]), reason)
        result = on_real_values(self, name, args, kwargs)
        go_on(stage, reason)
        return result

    passed = FREE_TYPES if kind == "operand" else frozenset()
    return _core.Hook(None if name == "made" else method, late, kind in ("quiet", "operand"), passed)


def on_real_values(scope: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation of rewritten code in Python and NumPy."""
    real = scope.stage.materialise(args)
    named = {key: scope.stage.materialise(value) for key, value in kwargs.items()}
    plain = scope if type(scope) is scope.stage.plain_hooks else scope.stage.plain_hooks.like(scope)
    return getattr(plain, name)(*real, **named)


def check_iterable(value: object, error: BaseException) -> None:
    """Raise the error if Python cannot iterate over a value."""
    if not any(defines(type(value), name) for name in ("__iter__", "__getitem__")):
        raise error


def lifted_once(stage: Stage, value: Any) -> Any:
    """A value of unknown origin, from a step that must not be repeated. Python runs the rest if the value's death runs
    code of the user's, which may change whatever is read afterwards.
    """
    try:
        if runs_code(value) and not stage.tracer.has_fallen_back:
            fall_back(stage, f"the user's code runs when a {type(value).__name__} dies")
        return stage.lift(value)
    except (Exception, _core.RegionBreak) as error:
        if not stage.tracer.effects or stage.tracer.in_region or not (is_limit(stage, error) or is_internal_error(error)):
            raise
        go_on(stage, error)
        return value


def go_on(stage: Stage, error: BaseException) -> None:
    """Let NumPy run the rest of the call after an internal error, or at a limit of capture."""
    why = "an internal error of cinductor"
    if is_limit(stage, error):
        why = str(error.args[0]) if error.args else type(error).__name__
    elif is_a(error, Exception):
        stage.tell(error)
    if not stage.tracer.has_fallen_back:
        fall_back(stage, why)
