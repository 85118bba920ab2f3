"""What the caller could see of a captured call, and cannot be taken back.

An effect is noted before it happens. While there is none, and no graph has run, the function itself can
answer the call: so a check may fail (`Tracer.may_check`), and a capture may begin again. What random
generators have drawn is put back then, and floating-point flags that were raised are NumPy's to warn
of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core, float_warnings
from ..numpy.random import set_state
from ..signals import Abandon, Suspect
from .boundary import Arrays, Stores
from .control.state import State
from .iterators import Items


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
