"""Collectives of `cinductor.distributed` in a captured call: nodes of the graph, and positions in the mesh as numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...numpy.surface import NotCaptured, array
from ..objects import Traced, contains_traced
from .calls import dispatch, understands
from .functions import call_unknown

if TYPE_CHECKING:
    from ..kinds import Hooks

MODULE, MEMBERS = "cinductor.distributed.collectives", "cinductor.distributed.mesh"


def guard_member(scope: Hooks) -> None:
    """Guard that later calls are made by the same member of the same mesh, for which the program is compiled."""
    sources, identity = scope.stage.sources, sys.modules[MEMBERS].identity
    if (identity, "equals") not in sources.checked:
        sources.checked.add((identity, "equals"))
        sources.check(sources.source("made", identity, -1), "equals", identity())


@understands(*(getattr(sys.modules[MODULE], name) for name in ("axis_index", "axis_size")))
def call_position(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A number: the program is compiled for one member of the mesh."""
    guard_member(scope)
    return f(*args, **kwargs)


@understands(*(getattr(sys.modules[MODULE], name) for name in ("all_reduce", "stack_members", "reduce_own", "broadcast", "send_recv")))
def call_collective(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A node of the graph. If that is impossible the function is called, so that it raises its own exception."""
    named = {"x": args[0], **kwargs} if args else dict(kwargs)
    x, rest = named.pop("x", None), (*args[1:], *named.values())
    if type(x) is not Traced or contains_traced(rest):
        return call_unknown(scope, f, args, kwargs)
    guard_member(scope)
    try:
        return make_collective(scope, f, x, args[1:], named)
    except (NotCaptured, TypeError, ValueError, RuntimeError, _core.Error) as error:
        reason = f"calls {f.__name__}: {error}"
    return call_unknown(scope, f, args, kwargs, reason)


def make_collective(scope: Hooks, f: Any, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The library call. Along an axis of one member it is a copy."""
    module, t = sys.modules[MODULE], scope.stage.tracer
    x = array(t, x)
    call = module.PLANS[f](x, *args, **kwargs)
    axis = args[0] if args else kwargs["axis_name"]
    if call.members == 1:
        is_sent = call.name != "send_recv" or call.key
        return t.copy(t.reshape(x, call.shape), "C") if is_sent else dispatch(scope, np.zeros_like, (x,), {})
    key = f"{module.current().group(axis)} {call.key}".rstrip()
    x = x if x.flags_now.c_contiguous else t.copy(x, "C")
    return t.extern(call.name, key, module.on_host(axis, call), [x], call.shape, x.dtype)
