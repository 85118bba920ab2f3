"""What becomes of a failure of ours behind an effect of the user's.

Before anything has happened the function itself answers a call that capture fails in. Behind an effect
nothing can begin anew: then Python and NumPy are asked, on real values, for what rewritten code asked
of the stage. What raises there, too, is the user's, in NumPy's words; what does not was a mistake of
ours: one warning tells of it, and NumPy goes on with the call from that very step.

Invariant: no step is taken twice. Where something may have happened within it, the exception leaves.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _core
from ...errors import ConstraintViolation
from ...instance import is_a
from ...interrupt import is_interrupt
from ...user import PACKAGE
from .fallback import fall_back

if TYPE_CHECKING:
    from ..stage import Stage
    from .scope import Scope

LAZY = frozenset({"for_", "iter", "star", "iter_unpacked", "unpack"})  # Python asks what is iterated later
PLACES = PACKAGE + "capture/hooks/slot.py"  # which asks in the user's stead


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
    while frame.f_code.co_filename == PLACES and frame.f_back is not None:
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(PACKAGE)


def with_bailout(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a scope, with NumPy's answer where it fails behind an effect."""
    name = method.__name__

    @functools.wraps(method)
    def asked(self: Scope, /, *args: Any, **kwargs: Any) -> Any:
        stage = self.stage
        if stage is None:
            return method(self, *args, **kwargs)
        if stage.has_fallen_back:  # since the frame has read this method
            return on_real_values(self, name, args, kwargs)
        state = stage.state
        effects, followed, changes = stage.effects, stage.followed, state.changes
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            is_done = (stage.effects, stage.followed, state.changes) != (effects, followed, changes)
            if not effects or is_done:
                raise
            if stage.tracer.in_region or not is_of_ours(error):
                raise
            if not is_asked_by_users():
                raise
            reason = error
        return ask_python(self, name, args, kwargs, reason)

    return asked


def on_real_values(scope: Scope, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What Python and NumPy do for rewritten code that asks for that."""
    real = scope.stage.materialise(args)
    named = {key: scope.stage.materialise(value) for key, value in kwargs.items()}
    return getattr(scope.stage.plain_hooks.like(scope), name)(*real, **named)


def ask_python(
    scope: Scope, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
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
        if not stage.effects or stage.tracer.in_region or not is_of_ours(error):
            raise
        go_on(stage, error)
        return value


def go_on(stage: Stage, error: Exception) -> None:
    """The rest of the call is NumPy's, for a mistake of ours."""
    stage.tell(error)
    if not stage.has_fallen_back:
        fall_back(stage, "a mistake of cinductor's")
