"""Autotuning of plans: `max_autotune`, `benchmark_fusion` and `multi_kernel`.

An alternative is the program with other options, thresholds or fusions (csrc/api/alternatives.h): another plan
that gives the same bits. The first call that a program runs by itself starts a thread, which plans the
alternatives and builds a few that differ; meanwhile the default plan runs. Then calls are run by one plan after
another and timed (pyext/replay/autotune.c). Each call runs once, by one plan, so effects happen as often as they
should. The winner is stored in the disk cache, under the digest of the plan and a description of the machine; a
later process starts with it.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from .. import _core
from ..base.records import NamedTuple
from ..base.signals import pass_on
from ..calls.saved import stamp
from ..config import OPTIONS, RACED
from .background import beside

OWN = "default"  # the name of the default plan
MOST = 8  # alternatives of one program that are built
MAX_PLANNED = 64  # alternatives that are planned
MAX_HELD, LITTLE = 2, 1 << 20  # memory relative to the default plan; bytes that are always allowed
MAX_SECONDS = 30.0  # seconds for planning and building, after which no other build is started
KINDS = {
    option: frozenset(kinds.split())
    for option, kinds in zip(RACED, ("kernel fusion program", "fusion", "kernel"), strict=True)
}


class Plan(NamedTuple):
    """One plan of a trial: its differences from the default plan ("default"), and the reason why it takes no part, or
    None.
    """

    name: str
    why: str | None


class SizeClass(NamedTuple):
    r"""The trial for one size class.

    Attributes
    ----------
    number : int
        The arrays of its calls have 8**number or more elements; 0 for constant sizes.
    winner : str or None
        The name of a plan; None while undecided.
    calls : int
    times : dict
        For each plan the number of timed calls and their median in seconds.
    """

    number: int
    winner: str | None
    calls: int
    times: dict[str, tuple[int, float]]


class PlanTiming(NamedTuple):
    """The state of an autotuning trial; str() is a table."""

    plans: tuple[Plan, ...]
    classes: tuple[SizeClass, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """A line for each size class and for each plan in it, then the plans that take no part."""
        found = []
        for heat in self.classes:
            sizes = f"from {8**heat.number} elements on, " if heat.number else ""
            known = "not decided yet" if heat.winner is None else f"{heat.winner} wins"
            found.append(f"{sizes}{heat.calls} calls: {known}")
            for name, (count, seconds) in heat.times.items():
                if count:
                    found.append(f"  {name}: {1e6 * seconds:.4g} us, the median of {count}")
        return found + [f"{p.name} takes no part: {p.why}" for p in self.plans if p.why is not None]


def race_of(specialization: Any) -> PlanTiming | None:
    """The trial of a specialization; None if there is none, or if it has not begun."""
    rows = specialization.autotune_rows
    if rows is None:
        return None
    plans = tuple(Plan(*row) for row in rows[0])
    classes = []
    for number, winner, calls, times in rows[1]:
        seconds = {p.name: (count, 1e-9 * ns) for p, (count, ns) in zip(plans, times, strict=True)}
        classes.append(SizeClass(number, winner, calls, seconds))
    return PlanTiming(plans, tuple(classes))


def lines_of(job: Any, specializations: Any) -> list[str]:
    """The trials of a function's programs, the most recently used first; the reason if there is none where one was
    requested.
    """
    races = [race_of(s) for s in specializations]
    found = [line for race in races if race is not None for line in race.lines()]
    return found or ([job.unraced] if job.unraced else [])


# --- which programs are timed ---------------------------------------------------------------------


def kinds_of(options: dict[str, Any]) -> frozenset[str]:
    """The kinds of alternatives that the options request."""
    return frozenset().union(*(kinds for name, kinds in KINDS.items() if options[name]))


def enter(job: Any, specialization: Any) -> None:
    """Start a trial for a specialisation if the function's options request it."""
    if job.is_for_show or not kinds_of(job.options()):
        return
    program = specialization.program
    why = why_not(program)
    if why is None:
        specialization.request_autotuning(partial(ask, job))
    else:
        job.unraced = why


def why_not(program: Any) -> str | None:
    """The reason why a program's plans are not timed, or None."""
    if program is None:
        return "nothing is computed"
    if program.backend != "cpu:c":
        return f"programs of {program.backend} are not raced"
    if program.option_values["wrapper"] != "c":
        return "it runs by its printed wrapper"
    return None


def ask(job: Any, specialization: Any) -> None:
    """Called in the first call: queues the search for alternatives on another thread."""
    beside.add(partial(prepare, job, specialization))


def fixed_of(job: Any) -> frozenset[str]:
    """Options and thresholds that the user has set; they are not varied."""
    given = job.options()
    names = {n for n, value in given.items() if value != OPTIONS[n].default}
    choices = (part.partition("=")[0] for part in given["choices"].replace(",", " ").split())
    return frozenset((*names, *job.settings["options"], *choices))


def changed(options: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """The options with one option or threshold changed."""
    if name not in options:
        choices = ", ".join(filter(None, (options["choices"], f"{name}={value}")))
        return {**options, "choices": choices}
    kind = type(options[name])
    return {**options, name: value if kind is str else kind(int(value))}


def prepare(job: Any, specialization: Any) -> None:
    """Plan and build the alternatives of a program, and begin the trial."""
    program = specialization.program
    options = dict(program.option_values)
    digest, rows, held = _core.plan(program, options)
    kinds, fixed = kinds_of(options), fixed_of(job)
    wanted = [row[1:] for row in rows if row[0] in kinds and row[1] not in fixed]
    key = key_of(digest, wanted) if job.option("cache") else None
    known = read(key)
    if not program.is_symbolic and 0 in known:
        wanted = [row for row in wanted if "=".join(row) == known[0]]
    plans = [(OWN, program, None), *built(job, program, options, digest, held, wanted)]
    specialization.autotune(plans, known, partial(decided, job, key))
    if options["max_autotune"]:  # NumPy is a candidate: the fastest plan is compared with it
        specialization.compare(0.0, 0)


def built(
    job: Any, program: Any, options: dict[str, Any], digest: str, held: int, wanted: list[Any]
) -> list[Any]:
    """(name, program, None) or (name, None, reason) for each alternative whose plan differs."""
    last, seen = time.monotonic() + MAX_SECONDS, {digest}
    most = max(LITTLE, held if program.writes else MAX_HELD * held)  # a call that has written cannot restart
    found: list[tuple[str, Any, str | None]] = []
    for name, value in wanted[:MAX_PLANNED]:
        if sum(row[2] is None for row in found) == MOST or time.monotonic() > last or beside.is_ending:
            break
        other, made, why = changed(options, name, value), None, None
        try:
            plan, _, bytes_ = _core.plan(program, other)
            if plan in seen:
                continue
            seen.add(plan)
            if bytes_ > most:
                why = f"it would hold {bytes_} bytes, the default plan {held}"
            else:
                made = _core.recompile(program, other, "c", ())
        except Exception as error:
            pass_on(error)
            why = f"{type(error).__name__}: {error}"
        found.append((f"{name}={value}", made, why))
        if why is not None:
            log(job, f"{name}={value} takes no part: {why}")
    return found


# --- winners on disk ------------------------------------------------------------------------------


def decided(job: Any, key: str | None, specialization: Any, number: int) -> None:
    """Called in the call that has decided a trial."""
    beside.add(partial(keep, job, specialization, key))


def keep(job: Any, specialization: Any, key: str | None) -> None:
    """Store the winner."""
    race = race_of(specialization)
    assert race is not None
    winners = {heat.number: heat.winner for heat in race.classes if heat.winner is not None}
    log(job, "; ".join(race.lines()))
    if key is not None:
        known = {**read(key), **winners}
        _core.write_call(key, "\n".join(f"{number} {name}" for number, name in known.items()))


def read(key: str | None) -> dict[int, str]:
    """The stored winners, by size class."""
    text = None if key is None else _core.read_call(key)
    parts = (line.split() for line in (text or "").splitlines())
    return {int(p[0]): p[1] for p in parts if len(p) == 2 and p[0].isascii() and p[0].isdecimal()}


_machine: list[str] = []


def machine() -> str:
    """Everything besides the program on which a time depends: the package, NumPy, the CPUs."""
    if not _machine:
        try:
            with open("/proc/cpuinfo") as file:
                model = next((line for line in file if line.startswith("model name")), "")
        except OSError as error:
            pass_on(error)
            model = ""
        _machine.append(f"{stamp()} {model.strip()} {len(os.sched_getaffinity(0))}")
    return _machine[0]


def key_of(digest: str, wanted: list[Any]) -> str:
    """The key of the winners among these alternatives of a plan."""
    return str(_core.sha256(f"race {machine()} {digest} {wanted!r}".encode()))


def log(job: Any, text: str) -> None:
    """Log a line about autotuning, if there is a listener."""
    say(f"{job.name}: {text}")


def say(text: str) -> None:
    """Log a text about autotuning."""
    import logging

    logging.getLogger("cinductor.races").debug("%s", text)
