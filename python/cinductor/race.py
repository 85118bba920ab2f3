"""Whether the compiled pieces of a call are worth it when Python runs between them every time.

Nobody can tell beforehand: it is measured. Calls of one kind are timed in pieces first, those that
compile something left out, then in NumPy; the faster way answers from then on. Calls are of one kind
when their sizes and ints are alike within a factor of two. Both ways give the same results.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import Any

import numpy as np

PIECES, NUMPY = 3, 2  # calls that are timed in a round: the best of all counts
ROUNDS = 4  # while short calls take about as long in both ways: the machine does other things, too
SHORT = 5e-3  # seconds
CLEAR = 1.5  # times slower: no other round is needed
MOST_COMPILES = 4  # calls in pieces that compiled something, before that counts as their time


class Race:
    """What is known of one kind of call. Threads may note times at once: a few more are kept then."""

    clock = staticmethod(time.perf_counter)
    __slots__ = ("pieces", "numpy", "compiles", "why", "break_budget")

    def __init__(self) -> None:
        self.pieces: list[float] = []  # seconds
        self.numpy: list[float] = []
        self.compiles = 0
        self.why: str | None = None  # NumPy answers from now on
        self.break_budget: int | None = None  # after so many pieces the rest of a call is NumPy's

    @property
    def round(self) -> int:
        """Rounds that have been run."""
        return len(self.numpy) // NUMPY

    @property
    def is_over(self) -> bool:
        """Whether it is known who is faster."""
        if self.why is not None or self.round == 0:
            return self.why is not None
        own, pieces = min(self.numpy), min(self.pieces)
        is_clear = max(own, pieces) > CLEAR * min(own, pieces) or pieces > SHORT
        return len(self.numpy) % NUMPY == 0 and (is_clear or self.round >= ROUNDS)

    @property
    def is_numpys_turn(self) -> bool:
        """Whether the next call is NumPy's, to be timed or because it has won."""
        is_timed = len(self.pieces) >= PIECES * (self.round + 1)
        return self.why is not None or (is_timed and not self.is_over)

    def note_pieces(self, seconds: float, compiled: bool) -> None:
        """A call in pieces has been made."""
        self.compiles += compiled
        if len(self.pieces) < PIECES * (self.round + 1) and not self.is_over:
            if not compiled or self.compiles > MOST_COMPILES:
                self.pieces.append(seconds)

    def note_numpy(self, seconds: float) -> None:
        """A call has been made in NumPy."""
        if self.why is not None:
            return
        self.numpy.append(seconds)
        own, pieces = min(self.numpy), min(self.pieces)
        if self.is_over and own <= pieces:
            self.why = (
                f"Python is needed in each call, and in compiled pieces it took {1e3 * pieces:.3g} "
                f"ms, in NumPy {1e3 * own:.3g} ms"
            )


def likeness(bound: tuple[Any, ...]) -> Any:
    """What calls of one kind have in common. Of containers the first items stand for the others:
    those may change from call to call.
    """

    return tuple(kind_of(v, 0) for v in bound)


def kind_of(value: Any, depth: int) -> Any:
    """The same of one value."""
    cls = type(value)
    if cls is np.ndarray:
        return (cls, value.dtype, *(n.bit_length() for n in value.shape))
    if cls is int:
        return (cls, value.bit_length())
    if cls in (bool, type(None)):
        return value
    if cls is str:
        return (cls, len(value).bit_length())
    if cls in (tuple, list, dict) and depth < 4:
        items = value.items() if cls is dict else value
        return (cls, len(value).bit_length(), *(kind_of(v, depth + 1) for v in islice(items, 8)))
    return cls
