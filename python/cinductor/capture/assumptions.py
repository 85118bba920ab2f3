"""Assumptions under which a call is captured, and the next ones when a capture has disproved one."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from ..class_lookup import is_a
from ..signals import Replan

REPLANS = (Replan, _core.RegionBreak)
INSTEAD = {
    "dynamic": "sizes are numbers",
    "regions": "Python runs all loops and branches",
    "sized_lists": "lists have as many items as in this call",
    "leaves_open": "what sizes say is decided, with guards",
    "decided": "Python decides a condition",
}


class Assumptions(NamedTuple):
    """How a call is captured. A capture in which an assumption does not hold is followed by one
    without it, and none is ever assumed again: so the captures of a call have an end.
    """

    backend: str
    dynamic: bool | None  # which sizes are symbols
    regions: bool  # whether loops and branches are captured
    break_budget: int | None  # runs after which the rest of the call is NumPy's
    sized_lists: bool = True  # whether lists may be as long as a loop has trips
    leaves_open: bool = True  # whether the program finds out what sizes say
    decided: frozenset[tuple[str, int]] = frozenset()  # conditions that Python decides

    def without(self, failure: BaseException) -> Assumptions | None:
        """Without the one that a failure speaks of; None where that had been given up."""
        given_up = failure.assumption if is_a(failure, Replan) else "regions"  # type: ignore[attr-defined]
        if given_up == "decided":
            less = self._replace(decided=self.decided | {failure.place})  # type: ignore[attr-defined]
        elif given_up == "dynamic" and self.dynamic:  # which the user has asked for
            less = self
        else:
            less = self._replace(**{given_up: False})
        return None if less == self else less


def text_of(failure: BaseException) -> str:
    """What is assumed no more, and why."""
    if not is_a(failure, Replan):
        return f"{INSTEAD['regions']}: {failure.args[0]}"
    where = "{}:{}: ".format(*failure.place) if failure.place else ""  # type: ignore[attr-defined]
    return f"{where}{INSTEAD[failure.assumption]}: {failure.args[0]}"  # type: ignore[attr-defined]
