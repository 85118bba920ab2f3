"""Decides whether a function that needs Python is worth compiling. One `Budget` per function makes all these
decisions.

Capture pays if array work is done without Python in between. A call that needs Python costs a capture, or a
dispatch for each piece. So calls with little work run in NumPy at once (`is_little`), and so does the rest of a
call after a loop that breaks in every iteration (`why_spent`). Pieces are made if they can save something
(`is_worth_pieces`). Whether they do cannot be predicted: calls of one kind are timed both ways, and the faster way
runs the later ones (`Race`; for programs of library calls `pyext/replay/trial.c`). Both ways give the same
results; if bits may differ, nothing is timed. `explain` and `stats` report the reason of each decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from .._core import kind_of

# Element-operations below which a function that needs Python in each call runs in NumPy. Tracing costs tens of
# microseconds; a function that can be split costs a dispatch for each piece.
LITTLE_WORK = 400_000
LITTLE_IN_PIECES = 2_000
MANY_NODES = 3000  # nodes made by a loop that Python runs: compiling takes seconds, NumPy takes much less
MANY_RUNS = 16  # consecutive runs of little work before their use is questioned
PIECES, NUMPY = 3, 2  # calls timed per round; the minimum counts
ROUNDS = 4  # rounds while short calls take similar times both ways, because of other load
SHORT = 5e-3  # seconds
CLEAR = 1.5  # times slower; then no further round is needed
MOST_COMPILES = 4  # calls in pieces that compile something, before these count as their time
MOST_KEPT = 256  # calls, and kinds of calls, about which something is recorded
COMPARED = 12  # calls in NumPy after which their time is known
FIRST = 15e-3  # seconds that a capture may take before calls have paid for one


class Budget:
    """Decisions about calls of one function that need Python, raise, or break."""

    def __init__(self) -> None:
        self.plain: dict[bytes, str] = {}  # kinds of calls that run in NumPy -> why
        self.races: dict[Any, Race] = {}  # by kinds of calls that need Python each time

    def remember(self, bound: tuple[Any, ...], why: str, kind: bytes | None = None) -> None:
        """Let calls like this one run in NumPy. kind: that of the call before it changed its arguments."""
        if len(self.plain) > MOST_KEPT:
            self.plain.clear()
        self.plain[kind or kind_of(bound)] = why

    def race(self, kind: Any) -> Race:
        """The timing state of a kind of calls that need Python each time."""
        if len(self.races) > MOST_KEPT:
            self.races.clear()
        return self.races.setdefault(kind, Race())

    def give_up(self, bound: tuple[Any, ...], kind: Any, why: str) -> None:
        """Let calls of this kind run in NumPy: their compiled pieces are not worth timing."""
        self.remember(bound, why)
        self.race(kind).why = why

    def race_for(self, bound: tuple[Any, ...]) -> Race | None:
        """The timing state by which the next call like this one runs in NumPy."""
        race = self.races.get(likeness(bound)) if self.races else None
        return race if race is not None and race.is_numpys_turn else None

    @property
    def is_decided(self) -> bool:
        """True if no calls are timed any more."""
        return all(race.is_over for race in list(self.races.values()))

    def reasons(self, specializations: list[Any]) -> list[str]:
        """The reasons why NumPy runs calls, each once."""
        whys = [*self.plain.values(), *(race.why for race in list(self.races.values()))]
        return [*dict.fromkeys(w for w in (*whys, *(s.why_numpy for s in specializations)) if w)]


def is_little(work: int) -> bool:
    """True if the number of element-operations is too small for the cost of Python in each call."""
    return work < LITTLE_WORK


def is_worth_pieces(work: int) -> bool:
    """True if a function with this many is split at its breaks."""
    return work >= min(LITTLE_IN_PIECES, LITTLE_WORK)


def why_spent(tracer: Any, break_budget: int | None) -> str | None:
    """Why NumPy should run the rest of the call, checked before an iteration of a loop that Python runs while it is
    traced. break_budget: the number of runs that were useful in an earlier call of this kind.
    """
    if tracer.nodes > MANY_NODES:
        return f"a loop has been unrolled into {tracer.nodes} operations"
    is_spent = break_budget is not None and tracer.flushes >= break_budget
    if not is_spent and tracer.flushes - tracer.useful < MANY_RUNS:
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


class Race:
    """Times of one kind of call, in pieces and in NumPy. Threads may record times concurrently; some more are then
    recorded.
    """

    clock = staticmethod(time.perf_counter)
    __slots__ = ("pieces", "numpy", "compiles", "why", "break_budget")

    def __init__(self) -> None:
        self.pieces: list[float] = []  # seconds
        self.numpy: list[float] = []
        self.compiles = 0
        self.why: str | None = None  # NumPy runs calls from now on
        self.break_budget: int | None = None  # number of runs after which NumPy runs the rest

    @property
    def round(self) -> int:
        """The number of completed rounds."""
        return len(self.numpy) // NUMPY

    @property
    def is_over(self) -> bool:
        """True if the faster way is known."""
        if self.why is not None or self.round == 0:
            return self.why is not None
        own, pieces = min(self.numpy), min(self.pieces)
        is_clear = max(own, pieces) > CLEAR * min(own, pieces) or pieces > SHORT
        return len(self.numpy) % NUMPY == 0 and (is_clear or self.round >= ROUNDS)

    @property
    def is_numpys_turn(self) -> bool:
        """True if NumPy runs the next call, to be timed or because it is faster."""
        is_timed = len(self.pieces) >= PIECES * (self.round + 1)
        return self.why is not None or (is_timed and not self.is_over)

    def note_pieces(self, seconds: float, compiled: bool) -> None:
        """Record the time of a call in pieces."""
        self.compiles += compiled
        if len(self.pieces) < PIECES * (self.round + 1) and not self.is_over:
            if not compiled or self.compiles > MOST_COMPILES:
                self.pieces.append(seconds)

    def note_numpy(self, seconds: float) -> None:
        """Record the time of a call in NumPy."""
        if self.why is not None:
            return
        self.numpy.append(seconds)
        own, pieces = min(self.numpy), min(self.pieces)
        if self.is_over and own <= pieces:
            self.why = (
                f"Python is needed in each call, and in compiled pieces it took {1e3 * pieces:.3g} "
                f"ms, in NumPy {1e3 * own:.3g} ms"
            )


class Allowance:
    """The seconds of its own that a capture may take in all its attempts.

    They are few, or as many as calls of its kind have taken in NumPy, or as many as this call may take, and never more
    than `most`, the option capture_limit. pays: False if capture waits for nothing. account: that of the call's kind, or
    None. bound: returns the seconds that this call may take.
    """

    def __init__(self, most: float, pays: bool, account: Any, bound: Callable[[], float]) -> None:
        self.most, self.pays, self.account, self.bound = most, pays, account, bound
        spent = account.spent if account is not None else 0.0
        self.is_paid = spent > 0  # pieces are built
        has_program = account is not None and account.program is not None  # a capture of this kind was whole
        self.seconds = most if has_program or not pays else min(most, max(FIRST, spent))
        self.is_asked = not pays  # the bound
        self.used = 0.0

    def left(self, regions: bool) -> float:
        """For the next attempt. One with regions leaves half of the most for another without."""
        if not self.pays:
            return self.most
        return min(self.seconds, self.most / (2 if regions else 1)) - self.used

    def raise_by_bound(self) -> bool:
        """Return True if the bound of the call allows more seconds."""
        before, is_first = self.seconds, not self.is_asked
        self.is_asked = True
        if is_first and before < self.most:
            self.seconds = min(self.most, max(before, self.bound()))
        return self.seconds > before


def likeness(bound: tuple[Any, ...]) -> Any:
    """The key of a kind of calls. The first items of a container stand for the others, which may change from call to
    call.
    """

    return tuple([part_of(v, 0) for v in bound])


def part_of(value: Any, depth: int) -> Any:
    """The key of one value."""
    cls = type(value)
    if cls is np.ndarray:
        return (cls, value.dtype, *map(int.bit_length, value.shape))
    if cls is int:
        return (cls, value.bit_length())
    if cls in (bool, type(None)):
        return value
    if cls is str:
        return (cls, len(value).bit_length())
    if cls in (tuple, list, dict) and depth < 4:
        items = value.items() if cls is dict else value
        return (cls, len(value).bit_length(), *(part_of(v, depth + 1) for v in islice(items, 8)))
    return cls

