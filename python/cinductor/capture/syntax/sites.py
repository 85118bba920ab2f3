"""Sites: the control flow of a rewritten function, one row for each construct that is a call.

A construct at work is an object of `plain_control` (or of a region being captured); its site says
what the source knows of it. Rows are made once by the rewriter and never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Site:
    """One for, while or if.

    Names are the function's own, and flags (`__ci_...`) that jumps have become. What functions
    inside load is always live; names declared global or nonlocal are in none of the tuples.
    """

    number: int
    kind: str  # for, while, if
    line: int
    col: int
    state: tuple[str, ...]  # names assigned in it, sorted
    carried: tuple[str, ...]  # those live at its head; the loop's own flag never is
    live_out: tuple[str, ...]  # those live behind it
    renewed: frozenset[str] = frozenset()  # loops: those live at its head where no trip runs
    target: Any = None  # for: the shape of the target, as `unpack` takes it
    flag: str | None = None  # loops: True where the loop shall end after this trip
    depth: int = 0  # loops: how many there are inside, each within the one before
    arms: int = 0  # if: how many tests it has
    has_else: bool = False
    raising: tuple[tuple[int, str], ...] = ()  # if: steps that end by raising, and what
    returned: frozenset[str] = frozenset()  # names nobody reads once the function is to return
    gathers: frozenset[str] = frozenset()  # lists that are filled, then handed to calls
    results: frozenset[str] = frozenset()  # and those that the user's function then returns
    maybe_unbound: frozenset[str] = frozenset()  # names that are asked for where they may have no value
    protected: bool = False  # it stands in a try or a with of its function
