"""What the caller could see of a captured call, and cannot be taken back; and calls that go on in NumPy.

An effect is noted before it happens. While there is none, and no graph has run, the function itself can
answer the call: so a check may fail (`Tracer.may_check`), and a capture may begin again. What random
generators have drawn is put back then, and floating-point flags that were raised are NumPy's to warn
of.

Where a loop that Python runs needs a break in each trip, for little work, capture costs more than it
saves. What has been compiled until then is kept: values become real, also in the frames of functions
that are running, and from there on the rewritten code does what the user's own does. When nothing
worth while has been compiled, the call is begun again in NumPy.

So does one in which a mistake of ours is met behind an effect of the user's (`with_bailout`). Before
anything has happened the function itself answers a call that capture fails in. Behind an effect
nothing can begin again: then Python and NumPy are asked, on real values, for what rewritten code asked
of the stage. What raises there, too, is the user's, in NumPy's words; what does not was a mistake of
ours: one warning tells of it, and NumPy goes on with the call from that very step.

Invariant: no step is taken twice. Where something may have happened within it, the exception leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from .. import _core, float_warnings
from ..budget import MANY_NODES, why_spent
from ..errors import ConstraintViolation
from ..instance import is_a
from ..interrupt import is_interrupt
from ..numpy.random import set_state
from ..signals import Abandon, OverBudget, Suspect
from ..user import PACKAGE
from .boundary import Arrays, Materialiser, Stores
from .control.state import State
from .iterators import Items
from .objects import Traced
from .syntax.asking import STAGE

if TYPE_CHECKING:
    from .stage import Stage


class Effects:
    """Those of one call."""

    def __init__(self, tracer: _core.Tracer, state: State, arrays: Arrays, stores: Stores) -> None:
        self.tracer, self.state, self.arrays, self.stores = tracer, state, arrays, stores
        self.draws: dict[int, Any] = {}  # id -> a generator and its state before the call
        self.flags = 0  # of floating point, that have been looked at
        self.has_ended = False  # the function's own code, with a result

    def note(self, reason: str) -> None:
        """Python must run on every call: noted before it happens."""
        self.happens(self.tracer.note_effect, reason)

    def stop(self, reason: str, *given: Any) -> None:
        """A break: what is pending is run first. given: what others are to get; an iterator among it
        stands where somebody knows, or the call begins again while it can.
        """
        for value in given:
            if type(value) is Items:
                value.check()
        self.happens(self.tracer.note_break, reason)

    def happens(self, note: Callable[[str], None], reason: str) -> None:
        """Lists that are as long as a loop had trips get their items, for the call cannot begin again
        behind it; what waits for the end of the call is set.
        """
        for grown in [*self.state.lists.values()]:
            if grown.is_sized:
                grown.materialise(reason)
        note(reason)
        self.look_at_flags()
        self.tracer.effects += 1
        self.stores.flush()

    def look_at_flags(self) -> None:
        """What runs have raised floating-point flags until now: NumPy answers the call where it can,
        else it is warned of here.
        """
        new = self.take_flags()
        if not new:
            return
        if self.can_run_again() and self.undo_call():
            raise Suspect(new)
        float_warnings.give(self.tracer.last_program, new)

    def take_flags(self) -> int:
        """The floating-point flags raised since the last look that somebody wants to hear of."""
        new = self.tracer.float_flags & ~self.flags
        if not new or not float_warnings.is_looked_at(new) or self.tracer.in_region:
            return 0
        self.flags |= new
        return new

    def can_run_again(self) -> bool:
        """Whether the function may run once more: nothing outside of the call has been written."""
        is_late = self.has_ended and (self.arrays.writes_outside() or self.draws)
        return not is_late and not self.stores.has_given and self.tracer.effects == 0

    def abandon(self, reason: str) -> None:
        """Gives the call up while nothing has happened; otherwise breaks."""
        if self.tracer.in_region:
            self.tracer.note_break(reason)
        if self.tracer.effects == 0 and self.tracer.flushes == 0 and not self.arrays.written:
            raise Abandon(reason)
        self.stop(reason)

    def undo_call(self) -> bool:
        """Whether the function itself can run the call from its beginning: everything is as it was
        before it then.
        """
        return self.tracer.effects == 0 and self.undo()

    def undo(self) -> bool:
        """Arrays and generators as they were before the call, or False."""
        if not self.tracer.undo():
            return False
        for generator, state in self.draws.values():
            set_state(generator, state)
        return True


# --- calls that go on in NumPy ---


LITTLE = "many breaks for little work one after another"


def check_budget(stage: Stage) -> None:
    """Before a trip of a loop that Python runs: whether it is captured, too."""
    limit(stage)
    tracer = stage.tracer
    if stage.tracer.has_fallen_back or tracer.in_region or tracer.fullgraph or tracer.forbids_breaks:
        return None
    why = why_spent(tracer, stage.break_budget)
    if why is None:
        return None
    is_unrolled = tracer.nodes > MANY_NODES
    if (is_unrolled or not tracer.useful) and stage.effects.undo_call():
        raise OverBudget(why)
    return fall_back(stage)


def limit(stage: Stage) -> None:
    """Before a call or a trip: behind the limit of our own work NumPy goes on with the call. So it does
    where an effect has happened and the graph is half full: once it is full nothing could begin again.
    """
    is_half_full = stage.tracer.effects > 0 and stage.tracer.nodes > stage.most_nodes // 2
    if stage.own_work <= stage.limit and not is_half_full:
        return None
    if stage.tracer.has_fallen_back or stage.tracer.fullgraph:
        return None
    why = f"capture has taken longer than capture_limit ({stage.limit:g} s)"
    if is_half_full:
        why = f"the graph has half of the nodes of node_limit ({stage.most_nodes})"
    stage.why_over = why
    if stage.tracer.in_region or stage.tracer.forbids_breaks:
        raise _core.RegionBreak(why, "", 0)
    if stage.effects.undo_call():
        raise OverBudget(why)
    return fall_back(stage, why)


def fall_back(stage: Stage, why: str = LITTLE) -> None:
    """The rest of the call is Python's and NumPy's: nothing is traced any more."""
    for grown in [*stage.state.lists.values()]:
        grown.materialise()
    stage.effects.stop(f"{why}: the rest of the call runs in NumPy")
    stage.tracer.has_fallen_back = True
    concrete = Materialiser(stage)
    for frame in frames_of(stage):
        changed = {}
        for name, value in frame.f_locals.items():
            if not name.startswith("__ci_") or type(value) is Traced:
                try:
                    real = concrete.of(value)
                except (_core.InternalError, _core.RegionBreak):
                    # Of a block that is closed, and there maybe of its trip: nobody reads that name.
                    continue
                if real is not value:
                    changed[name] = real
        if changed:
            _core.set_locals(frame, changed)
    for scope in stage.scopes:
        scope.__class__ = stage.plain_hooks


def fall_back_for_flags(stage: Stage, value: Any) -> Any:
    """The flags of an array that are about to be set, or an array with them: what nothing traced
    knows of.
    """
    stage.effects.abandon("sets flags of an array")
    value = stage.materialise(value)
    fall_back(stage, "flags of an array are set")
    return value


def frames_of(stage: Stage) -> list[FrameType]:
    """The frames of rewritten functions that are running, the innermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if STAGE in frame.f_code.co_freevars:
            if getattr(frame.f_locals.get(STAGE), "stage", None) is stage:
                found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


# --- behind a mistake of ours ---


LAZY = frozenset({"for_", "iter", "star", "iter_unpacked", "unpack"})  # Python asks what is iterated later
STEADS: set[int] = set()  # ids of the code of objects that ask in the user's stead


def in_users_stead(cls: type) -> type:
    """Notes that the methods of a class do."""
    for method in vars(cls).values():
        parts = (method.fget, method.fset, method.fdel) if type(method) is property else (method,)
        STEADS.update(id(part.__code__) for part in parts if type(part) is FunctionType)
    return cls


def is_of_ours(error: BaseException) -> bool:
    """Whether an exception may be a mistake: those that say what capture cannot do are none, nor is
    what a signal's handler raises.
    """
    if is_interrupt(error):
        return False
    if is_a(error, _core.CinductorError):
        return is_a(error, _core.InternalError)
    return not is_a(error, MemoryError | RecursionError | ConstraintViolation)


def is_asked_by_users() -> bool:
    """Whether the code that asked the stage is rewritten code, not another step of ours."""
    frame = sys._getframe(2)
    while id(frame.f_code) in STEADS and frame.f_back is not None:
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(PACKAGE)


def with_bailout(method: Callable[..., Any]) -> Any:
    """The method of a scope, with NumPy's answer where it fails behind an effect; until there is one, C
    calls it as it is.
    """
    name = method.__name__

    def late(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        stage = self.stage
        if stage.tracer.has_fallen_back:  # since the frame has read this method
            return on_real_values(self, name, args, kwargs)
        state = stage.state
        before = stage.tracer.effects, stage.followed, state.changes
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            if (stage.tracer.effects, stage.followed, state.changes) != before:
                raise
            if stage.tracer.in_region or not is_of_ours(error):
                raise
            if not is_asked_by_users():
                raise
            reason = error
        return ask_python(self, name, args, kwargs, reason)

    return _core.Hook(method, late)


def on_real_values(scope: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What Python and NumPy do for rewritten code that asks for that."""
    real = scope.stage.materialise(args)
    named = {key: scope.stage.materialise(value) for key, value in kwargs.items()}
    return getattr(scope.stage.plain_hooks.like(scope), name)(*real, **named)


def ask_python(
    scope: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Any:
    """What Python and NumPy say to a step that has failed."""
    if name in LAZY:
        kind = type(scope.stage.materialise(args[0]))
        if not any(hasattr(kind, n) for n in ("__iter__", "__getitem__")):
            raise error
    result = on_real_values(scope, name, args, kwargs)
    go_on(scope.stage, error)
    return result


def lifted_once(stage: Stage, value: Any) -> Any:
    """A value of unknown origin, got by a step that is not taken twice."""
    try:
        return stage.lift(value)
    except Exception as error:
        if not stage.tracer.effects or stage.tracer.in_region or not is_of_ours(error):
            raise
        go_on(stage, error)
        return value


def go_on(stage: Stage, error: Exception) -> None:
    """The rest of the call is NumPy's, for a mistake of ours."""
    stage.tell(error)
    if not stage.tracer.has_fallen_back:
        fall_back(stage, "a mistake of cinductor's")
