"""Decides whether a function that needs Python is worth compiling.

Capture pays if array work is done without Python in between. A call that needs Python costs a capture, or a
dispatch for each piece. Pieces are made if they can save something (`is_worth_pieces`). Whether they do cannot be
predicted: calls are timed both ways, and the faster way runs the later ones (`pyext/replay/numpy_timing.c`). If nothing
was compiled after a call, NumPy runs later ones until that has taken as long as another capture costs (`economy.py`).
It also runs the rest of a call after a loop that breaks in every iteration (`why_spent`). Both ways give the same
results; if bits may differ, nothing is timed. `explain` and `stats` report the reason of each decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Element-operations below which a function that needs Python in each call runs in NumPy. Tracing costs tens of
# microseconds; a function that can be split costs a dispatch for each piece.
LITTLE_WORK = 400_000
LITTLE_IN_PIECES = 2_000
MANY_NODES = 3000  # nodes made by a loop that Python runs: compiling takes seconds, NumPy takes much less
MANY_RUNS = 16  # consecutive runs of little work before their use is questioned
CAPTURE = 15e-3  # seconds in NumPy after which a kind is captured, and that a capture may take before calls have paid for one


def is_little(work: int) -> bool:
    """True if the number of element-operations is too small for the cost of Python in each call."""
    return work < LITTLE_WORK


def is_worth_pieces(work: int, breaks: list[Any]) -> bool:
    """True if a function with this many is split at its breaks, or if a piece may have a loop that no call has captured."""
    return work >= min(LITTLE_IN_PIECES, LITTLE_WORK) or any(map(needs_no_break, breaks))


def why_spent(tracer: Any, break_budget: int | None) -> str | None:
    """Why NumPy should run the rest of the call, checked before an iteration of a loop that Python runs while it is
    traced. break_budget: the number of runs that were useful in an earlier call of this kind.
    """
    if tracer.nodes > MANY_NODES:
        return f"a loop has been unrolled into {tracer.nodes} operations"
    is_spent = break_budget is not None and tracer.flushes >= break_budget
    if not tracer.breaks or not is_spent and tracer.flushes - tracer.useful < MANY_RUNS:
        return None
    line = f"{tracer.breaks[-1].file}:{tracer.breaks[-1].line}"
    return f"too many breaks for too little work (the last one at {line})"


def needs_no_break(b: Any) -> bool:
    """True if a break only happened because no check was possible; at the start of a piece every check is possible.
    """
    return getattr(b, "is_late", False) and b.reason.startswith("a concrete value is needed by")


def is_for_pieces(tracer: Any) -> bool:
    """True if a loop breaks in each iteration in a way that pieces would not."""
    last = tracer.breaks[-MANY_RUNS:]
    return len(last) == MANY_RUNS and all(map(needs_no_break, reversed(last)))


class Allowance:
    """The seconds of its own that a capture may take in all its attempts.

    They are few, or as many as calls of its kind have taken in NumPy, or as many as this call may take, and never more
    than `most`, the option capture_limit. pays: False if capture waits for nothing. account: that of the call's kind, or
    None. bound: returns the seconds that this call may take. used: what captures of the function have taken in a call that is
    in progress and contains this one: the limit holds for a recursion as a whole.
    """

    def __init__(self, most: float, pays: bool, account: Any, bound: Callable[[], float], used: float = 0.0) -> None:
        self.most, self.pays, self.account, self.bound = most, pays, account, bound
        spent = account.spent if account is not None else 0.0
        self.is_paid = spent > 0  # pieces are built
        has_program = account is not None and account.program is not None  # a capture of this kind was whole
        self.seconds = most if has_program or not pays else min(most, max(CAPTURE, spent))
        self.is_asked = not pays  # the bound
        self.used = used

    def left(self, regions: bool) -> float:
        """For the next attempt. One with regions leaves half of the most for another without, if calls pay for both."""
        return min(self.seconds, self.most / (2 if regions and self.pays else 1)) - self.used

    def raise_by_bound(self) -> bool:
        """Return True if the bound of the call allows more seconds."""
        before, is_first = self.seconds, not self.is_asked
        self.is_asked = True
        if is_first and before < self.most:
            self.seconds = min(self.most, max(before, self.bound()))
        return self.seconds > before
