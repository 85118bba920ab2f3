"""Objects live as long as in Python although a dispatcher and its pieces have frames of their own.

A piece is called only if the objects that its statements drop from the dispatcher's names die unseen (`are_unseen`);
else Python runs the statements in the dispatcher. A piece returns the objects of its dead names too (`left`), because
in Python the names refer to them until they are bound again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.user_frame import locals_of
from ..calls.calls import understands
from ..control.region import users_frame
from ..deaths import dies_unseen
from ..objects import FREE_TYPES, OPAQUE, Traced

if TYPE_CHECKING:
    from ..kinds import Hooks


def are_unseen(*values: Any) -> bool:
    """True if it makes no visible difference when these objects die."""
    return all([dies_unseen(value) for value in values])


def left(*names: str) -> tuple[Any, ...]:
    """The objects of these names of the piece that calls; None in place of one that dies unseen."""
    found = locals_of(users_frame())
    return tuple([None if dies_unseen(value) else value for value in map(found.get, names)])


@understands(left)
def _left(scope: Hooks, f: Any, names: Any, kwargs: Any) -> tuple[Any, ...]:
    found = locals_of(users_frame())
    return tuple([None if is_lost(scope, value) else value for value in map(found.get, names)])


def is_lost(scope: Hooks, value: Any) -> bool:
    """True if it makes no visible difference when the value dies, in this call and in later ones."""
    if type(value) is Traced:
        return not any(s == OPAQUE and not dies_unseen(v) and t.shares_storage(value) for v, s, t in scope.stage.arrays.known.values())
    source = scope.stage.sources.source_of(value)
    return (source is None or source == OPAQUE or type(value) in FREE_TYPES) and dies_unseen(value)
