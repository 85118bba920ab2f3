"""Assumptions under which a call is captured, and the next ones when a capture has disproved one."""

from __future__ import annotations

from .. import _core
from ..base.class_lookup import is_a
from ..base.records import NamedTuple
from ..base.region_outcome import ALL_IN_PYTHON
from ..base.signals import Replan

REPLANS = (Replan, _core.RegionBreak)
INSTEAD = {
    "dynamic": "sizes are numbers",
    "regions": ALL_IN_PYTHON,
    "sized_lists": "lists have as many items as in this call",
    "list_columns": "lists of numbers among the arguments are containers",
    "small_containers": "small lists, dicts and sets of numbers among the arguments are arrays",
    "draws_apart": "draws of generators outside of loops are computed like those inside",
    "inline_draws": "draws of generators are library calls",
    "leaves_open": "what sizes say is decided, with guards",
    "decided": "Python decides a condition",
}


class Assumptions(NamedTuple):
    """The assumptions under which a call is captured. If one fails, the call is captured without it, and it is never
    made again, so capture terminates.
    """

    backend: str
    dynamic: bool | None  # which sizes are symbols
    regions: bool  # loops and branches are captured
    break_budget: int | None  # number of runs after which NumPy runs the rest of the call
    sized_lists: bool = True  # a list's length may be a number of iterations
    list_columns: bool = True  # a long list of numbers among the arguments is an array of the program
    small_containers: bool = True  # data decide no key of a small dict or set among the arguments, nor how a short list grows
    draws_apart: bool = True  # draws outside of loops come after those inside
    inline_draws: bool = True  # no draw of these generators needs a library call
    leaves_open: bool = True  # the program evaluates conditions on sizes
    decided: frozenset[tuple[str, int]] = frozenset()  # conditions that Python evaluates

    def without(self, failure: BaseException) -> Assumptions | None:
        """Without the assumption that a failure refers to; None if it had been given up before."""
        given_up = failure.assumption if is_a(failure, Replan) else "regions"
        if given_up == "decided":
            less = self._replace(decided=self.decided | {failure.place})  # type: ignore[attr-defined]
        elif given_up == "dynamic" and self.dynamic:  # requested by the user
            less = self
        else:
            less = self._replace(**{given_up: False})  # type: ignore[arg-type]
        return None if less == self else less


def text_of(failure: BaseException) -> str:
    """The assumption that is given up, and why."""
    if not is_a(failure, Replan):
        return f"{INSTEAD['regions']}: {failure.args[0]}"
    where = "{}:{}: ".format(*failure.place) if failure.place else ""
    return f"{where}{INSTEAD[failure.assumption]}: {failure.args[0]}"


def why_failed(check: str) -> str:
    """The reason why NumPy runs a call that failed a check. The user's code has no name for a symbol ("u8 is out of range")."""
    name, _, rest = check.partition(" ")
    is_symbol = name[:1] == "u" and name[1:].isdecimal() and rest == "is out of range"
    beyond = "the data are beyond what the program was compiled for: a length, or an int, is too large for it"
    return f"a check failed: {beyond if is_symbol else check}"
