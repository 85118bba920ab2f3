"""Autotuning of plans: `max_autotune`, `benchmark_fusion` and `multi_kernel`.

An alternative is the program with other options, thresholds or fusions (csrc/api/alternatives.h): another plan
that gives the same bits. The first call that a program runs by itself starts a thread, which plans the
alternatives and builds a few that differ; meanwhile the default plan runs. Then calls are run by one plan after
another and timed (pyext/replay/race.c). Each call runs once, by one plan, so effects happen as often as they
should. The winner is stored in the disk cache, under the digest of the plan and a description of the machine; a
later process starts with it.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .background import beside
from .config import OPTIONS, RACED
from .saved import stamp

if TYPE_CHECKING:
    from .job import Job

OWN = "default"  # the name of a program's own plan
MOST = 8  # alternatives of one program that are built
MOST_PLANNED = 64  # that are looked at
MOST_HELD, LITTLE = 2, 1 << 20  # times what the default plan holds; bytes that count for nothing
MOST_SECONDS = 30.0  # of planning and building, after which no other one is begun
KINDS = {
    option: frozenset(kinds.split())
    for option, kinds in zip(RACED, ("kernel fusion program", "fusion", "kernel"), strict=True)
}


class Plan(NamedTuple):
    """One plan of a race: what differs from the program's own ("default"), and why it takes no part, or None."""

    name: str
    why: str | None


class SizeClass(NamedTuple):
    """A race among calls of a class of sizes. number: their arrays have from 8**number elements on, 0 where
    sizes are numbers; winner: a plan's name, or None while it is not known; calls; times: by plan the calls
    that were timed and their median in seconds.
    """

    number: int
    winner: str | None
    calls: int
    times: dict[str, tuple[int, float]]


class PlanRace(NamedTuple):
    """The state of an autotuning trial; str() is a table."""

    plans: tuple[Plan, ...]
    classes: tuple[SizeClass, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """A line for each class of sizes and for each plan in it, then those that take no part."""
        found = []
        for heat in self.classes:
            sizes = f"from {8**heat.number} elements on, " if heat.number else ""
            known = "not decided yet" if heat.winner is None else f"{heat.winner} wins"
            found.append(f"{sizes}{heat.calls} calls: {known}")
            for name, (count, seconds) in heat.times.items():
                if count:
                    found.append(f"  {name}: {1e6 * seconds:.4g} us, the median of {count}")
        return found + [f"{p.name} takes no part: {p.why}" for p in self.plans if p.why is not None]


def race_of(specialization: Any) -> PlanRace | None:
    """The trial of a specialization; None if there is none, or if it has not begun."""
    rows = specialization.race_rows
    if rows is None:
        return None
    plans = tuple(Plan(*row) for row in rows[0])
    classes = []
    for number, winner, calls, times in rows[1]:
        seconds = {p.name: (count, 1e-9 * ns) for p, (count, ns) in zip(plans, times, strict=True)}
        classes.append(SizeClass(number, winner, calls, seconds))
    return PlanRace(plans, tuple(classes))


def lines_of(job: Job, specializations: Any) -> list[str]:
    """What is known of the races of a function's programs, the one used last first; why there is none where one
    was asked for.
    """
    races = [race_of(s) for s in specializations]
    found = [line for race in races if race is not None for line in race.lines()]
    return found or ([job.unraced] if job.unraced else [])


# --- what is raced --------------------------------------------------------------------------------


def kinds_of(options: dict[str, Any]) -> frozenset[str]:
    """The kinds of alternatives that options ask for."""
    return frozenset().union(*(kinds for name, kinds in KINDS.items() if options[name]))


def enter(job: Job, specialization: Any) -> None:
    """Has a specialisation raced where the function's options say so."""
    if job.is_for_show or not kinds_of(job.options()):
        return
    program = specialization.program
    why = why_not(program)
    if why is None:
        specialization.ask_for_race(partial(ask, job))
    else:
        job.unraced = why


def why_not(program: Any) -> str | None:
    """Why a program has no race, or None."""
    if program is None:
        return "nothing is computed"
    if program.backend != "cpu:c":
        return f"programs of {program.backend} are not raced"
    if program.option_values["wrapper"] != "c":
        return "it runs by its printed wrapper"
    return None


def ask(job: Job, specialization: Any) -> None:
    """In the first call: somebody shall look for alternatives, beside it."""
    beside.add(partial(prepare, job, specialization))


def fixed_of(job: Job) -> frozenset[str]:
    """Options and thresholds that the user has set: these are no question."""
    given = job.options()
    names = {n for n, value in given.items() if value != OPTIONS[n].default}
    choices = (part.partition("=")[0] for part in given["choices"].replace(",", " ").split())
    return frozenset((*names, *job.settings["options"], *choices))


def changed(options: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """Options in which one, or a threshold, is another."""
    if name not in options:
        choices = ", ".join(filter(None, (options["choices"], f"{name}={value}")))
        return {**options, "choices": choices}
    kind = type(options[name])
    return {**options, name: value if kind is str else kind(int(value))}


def prepare(job: Job, specialization: Any) -> None:
    """Plans and builds the alternatives of a program, and begins their race."""
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
    specialization.race(plans, known, partial(decided, job, key))


def built(
    job: Job, program: Any, options: dict[str, Any], digest: str, held: int, wanted: list[Any]
) -> list[Any]:
    """Name, program and None, or None and why, of each alternative that is another plan."""
    last, seen = time.monotonic() + MOST_SECONDS, {digest}
    most = max(LITTLE, held if program.writes else MOST_HELD * held)  # who has written cannot restart
    found: list[tuple[str, Any, str | None]] = []
    for name, value in wanted[:MOST_PLANNED]:
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
            why = f"{type(error).__name__}: {error}"
        found.append((f"{name}={value}", made, why))
        if why is not None:
            log(job, f"{name}={value} takes no part: {why}")
    return found


# --- what is kept ---------------------------------------------------------------------------------


def decided(job: Job, key: str | None, specialization: Any, number: int) -> None:
    """A race is over, in the call that decided it."""
    beside.add(partial(keep, job, specialization, key))


def keep(job: Job, specialization: Any, key: str | None) -> None:
    """Writes down who has won."""
    race = race_of(specialization)
    assert race is not None
    winners = {heat.number: heat.winner for heat in race.classes if heat.winner is not None}
    log(job, "; ".join(race.lines()))
    if key is not None:
        known = {**read(key), **winners}
        _core.write_call(key, "\n".join(f"{number} {name}" for number, name in known.items()))


def read(key: str | None) -> dict[int, str]:
    """The earlier winners, by size class."""
    text = None if key is None else _core.read_call(key)
    parts = (line.split() for line in (text or "").splitlines())
    return {int(p[0]): p[1] for p in parts if len(p) == 2 and p[0].isascii() and p[0].isdecimal()}


_machine: list[str] = []


def machine() -> str:
    """Everything besides the program that a time depends on: the package, NumPy, the CPUs."""
    if not _machine:
        try:
            with open("/proc/cpuinfo") as file:
                model = next((line for line in file if line.startswith("model name")), "")
        except OSError:
            model = ""
        _machine.append(f"{stamp()} {model.strip()} {len(os.sched_getaffinity(0))}")
    return _machine[0]


def key_of(digest: str, wanted: list[Any]) -> str:
    """Where the winners among some alternatives of a plan are kept."""
    return str(_core.sha256(f"race {machine()} {digest} {wanted!r}".encode()))


def log(job: Job, text: str) -> None:
    """A line of the log of races, where somebody listens."""
    say(f"{job.name}: {text}")


def say(text: str) -> None:
    """Log a text about autotuning."""
    import logging

    logging.getLogger("cinductor.races").debug("%s", text)
