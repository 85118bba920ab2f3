"""A call that goes on in NumPy.

Where a loop that Python runs needs a break in each trip, for little work, capture costs more than it
saves. What has been compiled until then is kept: values become real, also in the frames of functions
that are running, and from there on the rewritten code does what the user's own does. When nothing
worth while has been compiled, the call is begun anew in NumPy.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ... import _core
from ...budget import MANY_NODES, why_spent
from ..failure import OverBudget
from ..materialise import Materialiser
from ..stage import Stage
from ..syntax.asking import STAGE
from ..value.objects import Traced

LITTLE = "many breaks for little work one after another"


def check_budget(stage: Stage) -> None:
    """Before a trip of a loop that Python runs: whether it is captured, too."""
    limit(stage)
    tracer = stage.tracer
    if stage.has_fallen_back or tracer.in_region or tracer.fullgraph or tracer.forbids_breaks:
        return None
    why = why_spent(tracer, stage.break_budget)
    if why is None:
        return None
    is_unrolled = tracer.nodes > MANY_NODES
    if (is_unrolled or not tracer.useful) and stage.undo_call():
        raise OverBudget(why)
    return fall_back(stage)


def limit(stage: Stage) -> None:
    """Before a call or a trip: behind the limit of our own work NumPy goes on with the call. So it does
    where an effect has happened and the graph is half full: once it is full nothing could begin anew.
    """
    is_half_full = stage.effects > 0 and stage.tracer.nodes > stage.most_nodes // 2
    if stage.own_work <= stage.limit and not is_half_full:
        return None
    if stage.has_fallen_back or stage.tracer.fullgraph:
        return None
    why = f"capture has taken longer than capture_limit ({stage.limit:g} s)"
    if is_half_full:
        why = f"the graph has half of the nodes of node_limit ({stage.most_nodes})"
    stage.why_over = why
    if stage.tracer.in_region or stage.tracer.forbids_breaks:
        raise _core.RegionBreak(why, "", 0)
    if stage.undo_call():
        raise OverBudget(why)
    return fall_back(stage, why)


def fall_back(stage: Stage, why: str = LITTLE) -> None:
    """The rest of the call is Python's and NumPy's: nothing is traced any more."""
    for grown in [*stage.state.growing.values()]:
        grown.look()
    stage.stop(f"{why}: the rest of the call runs in NumPy")
    stage.has_fallen_back = stage.tracer.has_fallen_back = True
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
    stage.abandon("sets flags of an array")
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
