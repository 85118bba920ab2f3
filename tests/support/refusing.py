"""Refuses one step of a capture, as failing allocations are injected: the n-th step raises what capture raises where it cannot
go on. A call has to give what Python gives, whichever step it is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from cinductor import _core
from cinductor.capture import call_state, session
from cinductor.capture.effects import Materialiser

EVERY = 16  # `Tracer.on_step` is called after each 16 steps
WHY = "the test refuses this step"


def past_the_limit(stage: Any, is_hook: bool | None) -> bool:
    """The capture has taken its time."""
    stage.limit, stage.allowance = -1.0, None
    call_state.limit(stage, is_hook)
    return True


def is_making_real() -> bool:
    """True while values are made real: that captures nothing, so nothing is refused there."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code is not Materialiser.of.__code__:
        frame = frame.f_back
    return frame is not None


def region_breaks(stage: Any, is_hook: bool | None) -> bool:
    """A value cannot be captured, in a loop or branch or outside."""
    if not stage.tracer.in_region and (is_hook is not False or is_making_real()):
        return False
    raise _core.RegionBreak(WHY, "", 0)


def unsupported(stage: Any, is_hook: bool | None) -> bool:
    """A value is outside of what graphs represent."""
    if is_hook is not False or is_making_real():
        return False
    raise _core.Unsupported(WHY)


WAYS = {"limit": past_the_limit, "break": region_breaks, "unsupported": unsupported}


class Refusal:
    """One refusal; `has_happened` says if the call had that many steps."""

    def __init__(self, way: str, number: int) -> None:
        self.refuse, self.calls, self.offset = WAYS[way], number // EVERY, number % EVERY
        self.has_happened = False

    def at_step(self, stage: Any, is_hook: bool | None) -> None:
        if self.has_happened:
            return
        self.calls -= 1
        if self.calls < 0:
            self.has_happened = True
            self.has_happened = self.refuse(stage, is_hook)


@contextlib.contextmanager
def at(way: str, number: int) -> Iterator[Refusal]:
    """Refuse the step of that number in the captures of a call."""
    refusal, begin, limit = Refusal(way, number), session.begin, session.limit

    def offset(*args: Any) -> Any:
        stage = begin(*args)
        stage.tracer.steps = EVERY - 1 - refusal.offset
        return stage

    session.begin, session.limit = offset, refusal.at_step
    try:
        yield refusal
    finally:
        session.begin, session.limit = begin, limit
