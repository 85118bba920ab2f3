"""Notes about a function's calls, from one process to the next: the captures that failed, the seconds that kinds of calls have taken in
NumPy, and the times of programs that were compared with NumPy. They are stored next to the function's saved calls.

    failures 1
    spent DIGEST 0.0123                   a kind of calls, and seconds in NumPy
    times DIGEST 12 1.2e-05 9e-06         a saved call; calls, and seconds of the fastest, compiled and in NumPy

Notes are read in a function's first call, and written when the process ends.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from .. import _core
from . import saved
from .dynamic import DEEPEST, MAX_ITEMS

LEAST = 3e-3  # seconds in NumPy about which a later process is told: loading a program takes as long
FADED = 0.5  # of what earlier processes have spent
MOST = 64  # kinds, and saved calls
MAX_FAILURES = 3


class EconomyNotes:
    """The notes of one function."""

    def __init__(self, job: Any) -> None:
        self.failures = 0
        self.spent: dict[str, float] = {}
        self.times: dict[str, tuple[float, float]] = {}
        self.accounts: list[tuple[Any, Any]] = []  # of this process: the kind of calls, and the account
        self.programs: dict[str, Any] = {}
        key = key_of(job) if saved.has_calls() else None
        text = _core.read_call(key) if key is not None and saved.is_there(key) else None
        self.is_known = text is not None
        for line in (text or "").splitlines():
            try:
                self.read(line.split())
            except ValueError:  # another writer's, or half of a file
                continue

    def read(self, parts: list[str]) -> None:
        """Take over one line of the text of an earlier process."""
        if parts[0] == "failures":
            self.failures = min(max(int(parts[1]), 0), MAX_FAILURES)
        elif parts[0] == "spent" and len(parts) == 3:
            self.spent[parts[1]] = max(float(parts[2]), 0.0)
        elif parts[0] == "times" and len(parts) == 4:
            self.times[parts[1]] = float(parts[2]), float(parts[3])

    def open(self, account: Any, bound: tuple[Any, ...]) -> None:
        """Begin a new account with the seconds that earlier processes have spent."""
        if len(self.accounts) >= MOST:
            return
        kind = tuple([part_of(v, 0) for v in bound])
        self.accounts.append((kind, account))
        if self.spent:
            account.spent = self.spent.get(digest_of(text_of(kind)), 0.0)

    def note(self, specialization: Any, text: str) -> str:
        """Remember the program of a saved call. Returns the call's digest."""
        if len(self.programs) >= MOST:
            self.programs.clear()
        digest = digest_of(text)
        self.programs[digest] = specialization
        return digest

    def judge(self, specialization: Any, text: str) -> None:
        """Have the program of a saved call compared with NumPy, unless the result is known."""
        digest = self.note(specialization, text)
        compiled, numpy = self.times.get(digest, (0.0, 0.0))
        specialization.compare(numpy, 0, compiled)

    def lines(self, failures: int) -> list[str]:
        """The text for the next process."""
        spent = {digest: FADED * seconds for digest, seconds in self.spent.items()}
        for kind, account in self.accounts:
            if self.spent or account.spent >= LEAST:
                spent[digest_of(text_of(kind))] = account.spent
        times = self.times | {d: t for d, s in self.programs.items() if (t := s.times) is not None}
        found = [f"failures {failures}"] if failures else []
        found += [f"spent {digest} {seconds:.3g}" for digest, seconds in spent.items() if seconds >= LEAST]
        return found + [f"times {digest} {own:.3g} {numpy:.3g}" for digest, (own, numpy) in times.items()]

    def write(self, job: Any) -> None:
        """Write the notes, at the end of the process."""
        lines = self.lines(job.economy.failures)[-2 * MOST :]
        if (lines or self.is_known) and (key := key_of(job)) is not None:
            saved.write(key, "\n".join(lines))


def key_of(job: Any) -> str | None:
    """The key of a function's notes, which is that of its saved calls in another order; None: nothing is read or written."""
    key: str | None = job.first_key
    return None if key is None else key[::-1]


def part_of(value: Any, depth: int) -> Any:
    """The part of a kind of calls that describes one argument. The first items of a container stand for the others, which may change from
    call to call.
    """
    cls = type(value)
    if cls is np.ndarray:
        return (cls, value.dtype, *map(int.bit_length, value.shape))
    if cls is int:
        return (cls, value.bit_length())
    if cls in (bool, type(None)):
        return value
    if cls is str:
        return (cls, len(value).bit_length())
    if cls in (tuple, list, dict) and depth < DEEPEST:
        items = value.items() if cls is dict else value
        return (cls, len(value).bit_length(), *(part_of(v, depth + 1) for v in islice(items, MAX_ITEMS)))
    return cls


def text_of(kind: Any) -> str:
    """The text of a kind of calls. It runs no code of the user's."""
    if type(kind) is tuple:
        return f"({', '.join(map(text_of, kind))})"
    return type.__repr__(kind) if isinstance(kind, type) else repr(kind)


def digest_of(text: str) -> str:
    """A short name of a kind of calls, or of a saved call."""
    return str(_core.sha256(text.encode("utf-8", "surrogatepass")))[:16]
