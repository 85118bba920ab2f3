"""Notes about a function's calls, from one process to the next: the captures that failed, the seconds that kinds of calls have taken in
NumPy, and the times of programs that were compared with NumPy. They are stored next to the function's saved calls.

    failures 1
    spent DIGEST 0.0123                   a kind of calls, and seconds in NumPy
    times DIGEST 1.2e-05 9e-06            a saved call, and seconds of the fastest, compiled and in NumPy
    owed DIGEST 0.0123                    a saved call whose kernels no compiler has built, and seconds of runs on stencils before one does

Notes are read in a function's first call, and written when the process ends.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from . import saved
from .dynamic import kind_text

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
        self.owed: dict[str, float] = {}
        self.accounts: list[tuple[str, Any]] = []  # of this process: the kind of calls, and the account
        self.programs: dict[str, Any] = {}
        key = key_of(job) if saved.has_calls(job) else None
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
        elif parts[0] == "owed" and len(parts) == 3:
            self.owed[parts[1]] = max(float(parts[2]), 0.0)
        elif parts[0] == "times" and len(parts) == 4:
            self.times[parts[1]] = float(parts[2]), float(parts[3])

    def open(self, account: Any, bound: tuple[Any, ...]) -> None:
        """Add to a new account the seconds that earlier processes have spent."""
        if len(self.accounts) >= MOST:
            return
        kind = kind_text(bound)
        self.accounts.append((kind, account))
        if self.spent:
            account.spent += self.spent.get(digest_of(kind), 0.0)

    def note(self, specialization: Any, text: str) -> str:
        """Remember the program of a saved call. Returns the call's digest."""
        if len(self.programs) >= MOST:
            self.programs.clear()
        digest = digest_of(text)
        self.programs[digest] = specialization
        return digest

    def owed_by(self, text: str) -> float | None:
        """Seconds of runs on stencils that a saved call owes before its kernels are built; None if they are in the cache."""
        return self.owed.get(digest_of(text)) if self.owed else None

    def judge(self, specialization: Any, text: str) -> None:
        """Have the program of a saved call compared with NumPy, unless the result is known or a compiler is still to build it."""
        digest = self.note(specialization, text)
        if digest in self.owed:
            return
        compiled, numpy = self.times.get(digest, (0.0, 0.0))
        specialization.compare(numpy, 0, compiled)

    def lines(self, failures: int) -> list[str]:
        """The text for the next process."""
        spent = {digest: FADED * seconds for digest, seconds in self.spent.items()}
        for kind, account in self.accounts:
            if self.spent or account.spent >= LEAST:
                spent[digest_of(kind)] = account.spent
        owed = self.owed | {digest: s.program.owed for digest, s in self.programs.items()}
        times = self.times | {d: t for d, s in self.programs.items() if (t := s.times) is not None}
        found = [f"failures {failures}"] if failures else []
        found += [f"spent {digest} {seconds:.3g}" for digest, seconds in spent.items() if seconds >= LEAST]
        found += [f"owed {digest} {seconds:.3g}" for digest, seconds in owed.items() if seconds is not None]
        return found + [f"times {digest} {own:.3g} {numpy:.3g}" for digest, (own, numpy) in times.items()]

    def write(self, job: Any) -> None:
        """Write the notes, at the end of the process."""
        lines = self.lines(job.economy.failures)[-2 * MOST :]
        if (lines or self.is_known) and (key := key_of(job)) is not None:
            saved.write(key, "\n".join(lines))


def key_of(job: Any) -> str | None:
    """The key of a function's notes, which is that of its saved calls in another order; None: nothing is read or written."""
    key: str | None = job.first_key
    return None if key is None else key[: saved.NAME] + key[: saved.NAME - 1 : -1]


def digest_of(text: str) -> str:
    """A short name of a kind of calls, or of a saved call."""
    return str(_core.sha256(text.encode("utf-8", "surrogatepass")))[:16]
