"""The outcome of a loop or branch on traced values: captured, or run by Python for a reason."""

from __future__ import annotations

from .records import NamedTuple

IN_PYTHON = "runs in Python, one iteration at a time"
ALL_IN_PYTHON = "Python runs all loops and branches"
DECIDED = "decided by Python"
UNROLLED = "is unrolled, one copy of its body for each iteration"


class RegionOutcome(NamedTuple):
    """kind: "for", "while" or "if"; "" for all loops and branches of a function. reason: why it is not captured, ""
    if it is. is_unrolled: its iterations are part of a program without Python between them.
    """

    file: str
    line: int
    kind: str
    reason: str = ""
    is_unrolled: bool = False

    @property
    def words(self) -> str:
        """The outcome in words, as "captured"."""
        if not self.reason:
            return "captured"
        how = {"": ALL_IN_PYTHON, "if": DECIDED}.get(self.kind, UNROLLED if self.is_unrolled else IN_PYTHON)
        return f"{how}: {self.reason}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind} {self.words}".replace("  ", " ", not self.kind)
