"""`profile`: times each kernel and library call of compiled functions while a with statement runs."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from typing import Any

from ..base.records import NamedTuple
from ..compile import functions
from ..report.page import ranges, time_text
from ..report.programs import ProgramTexts
from . import events


class Span(NamedTuple):
    """Something that ran, in nanoseconds of time.perf_counter_ns. number, letter: of a kernel or library call."""

    program: int
    letter: str
    number: int
    began: int
    ended: int
    thread: int


class ProfileRow(NamedTuple):
    """One kernel or library call of one function. lines: as `model.py:3-5`."""

    function: str
    name: str
    lines: str
    calls: int
    seconds: float


class KernelProfile(events.Listener):
    """See `cinductor.profile`. rows: a ProfileRow for each, the longest first; compiling: functions with the seconds
    of their captures.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.captures: list[tuple[str, int, int, int]] = []
        self.programs: dict[int, tuple[str, Any]] = {}
        self.names: dict[tuple[int, str, int], tuple[str, str]] = {}
        self.functions: dict[int, str] = {}
        self.is_on = False

    def __enter__(self) -> KernelProfile:
        if self.is_on:
            raise RuntimeError("this profile is running already")
        self.is_on = True
        for compiled in functions():
            self.watch_function(compiled)
        events.listeners.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        self.is_on = False
        if self in events.listeners:
            events.listeners.remove(self)
        for number, (_, program) in self.programs.items():
            program.observe(None)
            self.note_names(number, program)
        self.programs.clear()

    def watch_function(self, compiled: Any) -> None:
        """Observe all programs that the function runs from now on."""
        job = compiled._cinductor_job
        plan = job.plan
        for specialization in compiled.specializations:
            self.watch(job.name, specialization.program)
        for piece in [] if plan is None else plan.pieces:
            self.watch_function(piece)

    def watch(self, name: str, program: Any) -> None:
        number = id(program)  # unique while it is in programs
        if program is None or number in self.programs:
            return

        def note(letter: str, which: int, began: int, ended: int) -> None:
            self.spans.append(Span(number, letter, which, began, ended, threading.get_ident()))

        if program.observe(note):
            self.programs[number] = name, program

    def end(self, event: events.CaptureEvent) -> None:
        """A capture has ended: record its time, and observe its programs."""
        job, outcome = event.job, event.job.last
        self.captures.append((job.title, event.began, event.ended, threading.get_ident()))
        if outcome is not None and outcome.specialization is not None:
            self.watch(job.name, outcome.specialization.program)

    def note_names(self, number: int, program: Any) -> None:
        """Record the names of kernels and library calls, and their origins."""
        name, _ = self.programs[number]
        texts = ProgramTexts(program, "", "")
        calls = iter(json.loads(texts.text("json"))["lines"])
        for cost in texts.counted[0]:
            if cost.call:
                letter, which = "e", next(line["number"] for line in calls if line["line"] == "extern")
            else:
                letter, which = "k", int(cost.name[1:])
            self.names[number, letter, which] = cost.call or cost.name, places_text(cost.places)
        self.functions[number] = name

    @property
    def rows(self) -> list[ProfileRow]:
        found: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for span in self.spans:
            name, lines = self.names.get(span[:3], (f"{span.letter}{span.number}", ""))
            found[self.function_of(span), name, lines].append(span.ended - span.began)
        rows = [ProfileRow(*key, len(times), sum(times) / 1e9) for key, times in found.items()]
        return sorted(rows, key=lambda row: -row.seconds)

    def function_of(self, span: Span) -> str:
        return self.functions.get(span.program, "")

    @property
    def compiling(self) -> dict[str, float]:
        total: dict[str, float] = defaultdict(float)
        for name, began, ended, _ in self.captures:
            total[name] += (ended - began) / 1e9
        return dict(total)

    def __str__(self) -> str:
        """A table."""
        rows = self.rows
        whole = sum(row.seconds for row in rows) or 1
        table = [("time", "part", "calls", "each", "kernel", "function", "lines")]
        for row in rows:
            part, each = f"{100 * row.seconds / whole:.0f} %", time_text(row.seconds / row.calls)
            table.append((time_text(row.seconds), part, str(row.calls), each, row.name, row.function, row.lines))
        widths = [max(len(line[k]) for line in table) for k in range(7)]
        lines = [
            "  ".join(text.rjust(w) if k < 4 else text.ljust(w) for k, (text, w) in enumerate(zip(line, widths))).rstrip()
            for line in table
        ]
        lines += [f"captured and compiled: {name}, {time_text(seconds)}" for name, seconds in self.compiling.items()]
        return "\n".join(lines) if len(lines) > 1 else "no compiled function ran"

    __repr__ = __str__

    def trace(self) -> dict[str, Any]:
        """The profile for chrome://tracing and Perfetto, as a dict to be written as JSON."""
        made = []
        for span in self.spans:
            name, lines = self.names.get(span[:3], (f"{span.letter}{span.number}", ""))
            title = f"{name} {lines}".rstrip()
            made.append(event_of(title, self.function_of(span), span.began, span.ended, span.thread))
        for name, began, ended, thread in self.captures:
            made.append(event_of(f"compile {name}", "compile", began, ended, thread))
        return {"traceEvents": made, "displayTimeUnit": "ns"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file. Raises OSError if that fails."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)


def event_of(name: str, category: str, began: int, ended: int, thread: int) -> dict[str, Any]:
    """A complete event of the Chrome format: microseconds."""
    times = {"ts": began / 1e3, "dur": (ended - began) / 1e3}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": os.getpid(), "tid": thread}


def places_text(places: list[tuple[str, int]]) -> str:
    """`model.py:3-5`."""
    by_file: dict[str, set[int]] = defaultdict(set)
    for file, line in places:
        by_file[os.path.basename(file)].add(line)
    return ", ".join(f"{file}:{ranges(sorted(lines))}" for file, lines in by_file.items())


def profile() -> KernelProfile:
    """Time each kernel and library call of compiled functions while a with statement runs.

    Programs run by their printed wrapper meanwhile, a microsecond or two slower for each kernel, with the same results. Float
    warnings of kernels are not given, and devices with their own memory are not timed.

    Returns
    -------
    KernelProfile
        A context manager with `rows`; its str() is a table, and `save("trace.json")` writes a trace for chrome://tracing and
        Perfetto.

    Examples
    --------
    >>> with cinductor.profile() as found:
    ...     f(x)
    >>> print(found)
    """
    return KernelProfile()
