"""The report object: the text of every level, guards, breaks with their reasons, kernels with their costs, memory,
timings. `page.py` and `html.py` display it.
"""

from __future__ import annotations

import inspect
import json
import linecache
import os
import sys
import time
import types
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import module_of
from ..base.region_outcome import RegionOutcome
from ..base.user_frame import PACKAGE, wrong
from ..builds.racing import lines_of as lines_of_races
from ..compile import for_show, make
from . import costs, measure, timeline
from .html import document, fragment
from .page import LEVELS, full, page
from .programs import ProgramTexts, all_of
from .provenance import of_report
from .reasons import ReasonRow, hint_for, reason_of

OF_PROGRAM = ("kernels_count", "externs_count", "why_host", "approximate")
MAX_NESTED = 20
KEPT = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic)


class Break:
    """A place where Python had to run, and the reason. source: the source line, "" if it is not available."""

    def __init__(self, reason: str, file: str, line: int) -> None:
        self.reason, self.file, self.line = reason, file, line
        self.source = linecache.getline(file, line).strip()

    @property
    def row(self) -> ReasonRow:
        """Its family in the table of reasons."""
        return reason_of(self.reason)

    @property
    def hint(self) -> str:
        """Advice for this break, or ""."""
        return hint_for(self.reason)

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


SOURCES = PACKAGE + "numpy/"  # of functions that are captured in place of NumPy's and of the methods of containers


class Explanation:
    """The report of one call. str() is a page, `full()` all of it, `json()` the same for tools, `save(path)`
    a web page, which notebooks show by themselves; the parts are attributes. It pickles.

    result: the return value of the call. error: the text of the exception that it raised, or None.
    plain: the reason why NumPy ran the call, or None. later: the reason why NumPy will run similar calls, or None.
    unused: options of the function that have no effect here, with the reasons.
    programs: the number of compiled graphs that ran. program: the last of them. Its levels as text are graph,
    optimized (the graph after all passes), loops, kernels, procs, wrapper (Python source, which
    options={"wrapper": "python"} runs) and source. A level that the program does not have is "".
    kernels_count, externs_count: the numbers of its kernels and library calls.
    why_host: the reason why the program runs on the CPU although a device was asked for, or None.
    approximate: functions of the program that are within 4 ULP of NumPy's, as "sin of float64".
    costs: lines, bytes, operations and measured seconds of each kernel and library call.
    apart: the reasons why loops were not fused. copies: copies between devices.
    recordings: the recordings of the option graphs. memory: allocations over the time of a call. stats: the totals.
    guards: the conditions under which the specialisation is used again, in words.
    breaks: the Breaks in the order in which capture met them.
    regions: loops and branches on traced values, as lines "file:line: for captured".
    replans: assumptions of earlier captures of this call that did not hold, with the reasons.
    pieces: lines "file:first-last" of the parts into which breaks split the function, and if NumPy runs a part.
    specializations: the reason why each specialisation was compiled, most recently used first.
    recompiles: the guards that calls failed, the latest last.
    economy: what calls have paid for captures and builds, and what the next step waits for, or None.
    races: with max_autotune, the plans of each program with their median times, and the fastest.
    timings: milliseconds and counts by name. rewritten: the source of the function as capture runs it.
    """

    def __init__(self, job: Any, result: Any) -> None:
        self.name, self.place, self.result, self.plain = job.name, place_of(job.fn), result, job.why
        compiled = job.compiled and job.compiled()
        self.later: str | None = next(iter(job.reasons_for_numpy(compiled)), None) if compiled is not None else None
        self.unused: list[str] = list(job.unused)
        self.error: str | None = None
        self.breaks: list[Break] = []
        self.guards: list[str] = []
        self.recompiles: list[str] = []
        self.races: list[str] = []
        self.economy: str | None = None
        self.specializations: list[str] = []
        self.outcomes: list[RegionOutcome] = []  # of loops and branches
        self.replans: list[str] = []
        self.pieces: list[str] = [] if job.plan is None else job.plan.lines()
        self.timings: dict[str, Any] = {}
        self.rewritten = ""
        self.programs = 0
        self.program: Any = None
        self.specialization: Any = None
        self.why_not_measured: str | None = None
        self.ceilings: measure.Ceilings | None = None
        self.function_lines = lines_of(job.fn)
        self._take(job)
        self.parts: list[ProgramTexts] = all_of(self._programs(job), self.place)
        self._set_times({} if job.on_run is None else job.on_run.seconds)
        self._last = next((part for part in self.parts if part.program is self.program), None)
        for name, value in zip(OF_PROGRAM, facts_of(self.program)):
            setattr(self, name, value)

    kernels_count: int
    externs_count: int
    why_host: str | None
    approximate: list[str]

    def _take(self, job: Any) -> None:
        """Copy the results of the latest capture."""
        outcome = job.last
        if outcome is None:
            return
        self.breaks = [Break(b.reason, b.file, b.line) for b in outcome.breaks]
        self.replans = list(outcome.replans)
        is_unrolled = not self.breaks and outcome.specialization is not None  # later calls run the program alone
        self.outcomes = [region._replace(is_unrolled=is_unrolled) for region in outcome.regions if not region.file.startswith(SOURCES)]
        if self.plain is None or outcome.failed_check:
            self.program = outcome.program
        if self.plain is None:
            self.timings = dict(outcome.info)
            self.programs = outcome.flushes
            if outcome.specialization is not None:
                self.specialization = outcome.specialization
                self.guards = list(outcome.specialization.guards)
                self.program = outcome.specialization.program
                self.programs = max(self.programs, 1)

    @property
    def regions(self) -> list[str]:
        """Loops and branches on traced values, as lines."""
        return [str(region) for region in self.outcomes]

    def _programs(self, job: Any) -> list[Any]:
        """All programs that ran in the call: one if it is compiled whole, else those of its pieces."""
        if self.program is None or self.specialization is not None:
            return [] if self.program is None else [self.program]
        return list({id(p): p for p in (*job.segments, self.program)}.values())

    # --- the levels ---

    def text(self, level: str) -> str:
        """The text of a level of the last program: a level, a pass, ranges or json. Raises ValueError for other
        names.
        """
        return "" if self._last is None else self._last.text(level)

    def every_text(self, level: str) -> str:
        """The text of a level for all programs of the call."""
        texts = [(part.letter, part.text(level)) for part in self.parts]
        return "\n".join(f"# {letter}\n{text}" if letter else text for letter, text in texts if text)

    @property
    def graph(self) -> str:
        """The graph: operations on whole arrays."""
        return self.text("graph")

    @property
    def optimized(self) -> str:
        """The graph after all passes, your own included."""
        return self.text("optimized")

    @property
    def loops(self) -> str:
        """Loop nests, one for each array that is stored."""
        return self.text("loops")

    @property
    def kernels(self) -> str:
        """The nests of each kernel and how they run; then why others are not fused."""
        return self.text("kernels")

    @property
    def procs(self) -> str:
        """The statements of each kernel."""
        return self.text("procs")

    @property
    def wrapper(self) -> str:
        """The steps of one call as Python: allocate, launch, free, return."""
        return self.text("wrapper")

    @property
    def source(self) -> str:
        """The source of the kernels for the device's compiler."""
        return self.text("source")

    # --- what it costs ---

    @property
    def costs(self) -> list[costs.Cost]:
        """For each kernel and library call: lines, bytes, operations, seconds. For a call in pieces one run of each;
        its kernels are named a.k0, b.k0 and so on.
        """
        return [cost for part in self.parts for cost in part.counted[0]]

    @property
    def provenance(self) -> dict[str, Any]:
        """The nodes of the graph and the lines of the function from which each kernel and library call comes:
        `function`, `place`, `kernels` (`name`, `call`, `nodes`, `lines`), as written by CINDUCTOR_PROVENANCE.
        """
        return of_report(self)

    @property
    def apart(self) -> list[str]:
        """The reasons why loops were not fused, and why iterations do not run in parallel."""
        return [why for part in self.parts for why in part.counted[1]]

    @property
    def copies(self) -> list[str]:
        """For a program on several devices: its copies between them and with the host, in order."""
        return [copy for part in self.parts for copy in part.copies]

    @property
    def recordings(self) -> list[str]:
        """With the option `graphs`: for each partition the outcome of recording, or why it is not recorded."""
        return [text for part in self.parts for text in part.recordings]

    @property
    def memory(self) -> timeline.Footprint:
        """A static estimate of the memory that the program allocates over one call; of several programs the one that
        allocates most.
        """
        return max((part.counted[2] for part in self.parts), key=lambda made: made.peak, default=timeline.Footprint())

    @property
    def stats(self) -> dict[str, Any]:
        """Sums over the program, or over one run of each piece: kernels, calls (of libraries), nests, bytes,
        operations (of library calls only products count), seconds (None if one is unknown), peak_bytes, breaks,
        programs.
        """
        own = [cost for cost in self.costs if not cost.call]
        return {
            "programs": self.programs,
            "breaks": len(self.breaks),
            "kernels": len(own),
            "calls": len(self.costs) - len(own),
            "nests": sum(cost.nests for cost in own),
            "bytes": total(cost.bytes for cost in self.costs),
            "operations": total(cost.operations for cost in self.costs if cost.operations is not None or not cost.call),
            "seconds": total(cost.seconds for cost in self.costs) if self.costs else None,
            "peak_bytes": self.memory.peak,
        }

    def measure(self, *args: Any, **kwargs: Any) -> Explanation:
        """Time the kernels by calling the function again with these arguments, effects included, and return the
        report. Raises what the function raises, and RuntimeError if it cannot be called (for a report that was
        pickled, or a function that is not compiled whole).
        """
        if self.specialization is None or self._compiled is None:
            raise RuntimeError(f"{self.name} cannot be measured: Python is needed between its programs; cinductor.profile() times each")
        self._measure(lambda: self._compiled(*args, **kwargs))
        return self

    def _set_times(self, seconds: dict[Any, Any]) -> None:
        """Set the times of the programs between breaks."""
        for part in self.parts:
            part.set_times(seconds.get(part.program, {}))
        if any(cost.seconds is None for cost in self.costs):
            self.why_not_measured = measure.NOT_REPEATED

    _compiled: Any = None

    def _measure(self, call: Any) -> None:
        found = measure.times(call, self.program)
        if found is None:
            self.why_not_measured = "its device measures nothing, or NumPy runs the call"
        else:
            self.why_not_measured = None
            self.parts[-1].set_times(found)

    # --- as text, as data, as a page ---

    def __str__(self) -> str:
        return page(self)

    __repr__ = __str__

    def full(self) -> str:
        """The complete report as text: the page, guards, and every level."""
        return full(self)

    def data(self) -> dict[str, Any]:
        """The complete report as plain lists and dicts, which `json` writes."""
        broken = [
            {"reason": b.reason, "file": b.file, "line": b.line, "source": b.source, "hint": b.hint, "page": b.row.page}
            for b in self.breaks
        ]
        names = "name place error plain later programs why_host approximate guards regions replans pieces"
        names += " economy specializations recompiles races apart copies stats timings why_not_measured rewritten"
        return {
            **{name: getattr(self, name) for name in names.split()},
            "breaks": broken,
            "kernels": [cost.as_dict() for cost in self.costs],
            "memory": self.memory.as_dict(),
            "levels": {level: self.text(level) for level in LEVELS},
        }

    def json(self) -> str:
        """The complete report for tools: a JSON object with the texts of all levels."""
        return json.dumps(self.data(), indent=1)

    def _repr_html_(self) -> str:
        return fragment(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file: a web page, or by the extension .json or .txt (complete, as text). Raises
        OSError if that fails.
        """
        ending = os.path.splitext(os.fspath(path))[1]
        made = {".json": self.json, ".txt": self.full}.get(ending, lambda: document(self.name, fragment(self)))
        text = made()
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)

    def __getstate__(self) -> dict[str, Any]:
        """Texts instead of programs; the result if it consists of arrays and numbers."""
        left = {"program": None, "specialization": None, "_compiled": None}
        result = self.result if is_plain(self.result) else None
        return {**self.__dict__, **left, "result": result}


def is_plain(value: Any, depth: int = 0) -> bool:
    """True if a result only consists of arrays, numbers and texts and is not nested without end."""
    if type(value) in (list, tuple, dict):
        inside = [*value.keys(), *value.values()] if type(value) is dict else value
        return depth < MAX_NESTED and all(is_plain(item, depth + 1) for item in inside)
    return isinstance(value, KEPT) and module_of(type(value)) in ("builtins", "numpy")


def total(values: Any) -> Any:
    """The sum, or None if a value is unknown."""
    known = list(values)
    return None if any(value is None for value in known) else sum(known)


def facts_of(program: Any) -> tuple[Any, ...]:
    """The stored facts about a program: see OF_PROGRAM."""
    if program is None:
        return 0, 0, None, []
    return program.kernels, program.externs, program.why_host, program.approximate


def place_of(fn: Any) -> str:
    """File and line of a function's definition."""
    code = getattr(fn, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def lines_of(fn: Any) -> tuple[int, list[str]]:
    """The number of a function's first line, and its lines; none if its source is not available."""
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(fn))
    except (OSError, TypeError, ValueError):
        return 0, []
    return first, [line.rstrip("\n") for line in lines]


def explain(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Call fn once on these arguments and report what it was compiled to.

    The call is real, side effects included. To time the kernels, a call without side effects is repeated a few times; of a call
    with breaks each compiled piece that changes nothing is run again.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.
    *args, **kwargs
        The arguments of the call.

    Returns
    -------
    Explanation
        The text of every level (`graph`, `loops`, `kernels`, `procs`, `wrapper`, `source`), `costs` of each kernel, `memory`,
        `guards`, `breaks`, `regions` (loops and branches), `recompiles`, `timings` and `result`. Its str() is a page,
        `.full()` everything, `.json()` for tools, `.save(path)` a web page, which notebooks display directly. An exception
        of fn is in `error`.

    Raises
    ------
    TypeError
        If fn is not callable.
    """

    if is_of_torch(fn):
        from ..torch.report import explain as explain_torch

        return explain_torch(fn, args, kwargs)

    settings: dict[str, Any] = dict.fromkeys(("dynamic", "mode", "backend", "device"))
    settings |= {"fullgraph": False, "options": {}}
    known = None
    if isinstance(fn, _core.CompiledFunction):
        known = fn._cinductor_job  # type: ignore[attr-defined]
        kept, economy = fn.specializations, known.economy_of(fn)
        settings = {**known.settings, "fullgraph": False}
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    if not callable(fn):
        raise TypeError(wrong("explain", "fn", fn, "a function or another callable"))
    compiled = make(fn, settings)
    job = for_show(compiled)
    job.on_run = measure.Pieces()
    if known is not None:
        job.profile = known.profile.copy()
    report = called(compiled, job, args, kwargs)
    if known is not None:
        add_known(report, known, kept)
        report.economy = economy
    add_rewritten(report, fn)
    return report


def is_of_torch(fn: Any) -> bool:
    """True if torch compiles the function: a torch module, or a result of torch.compile."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    return module is not None and (hasattr(fn, "_torchdynamo_orig_callable") or isinstance(fn, module))


def of_program(name: str, program: Any) -> Explanation:
    """The report of a program that was not made from a function of Python's."""
    outcome = types.SimpleNamespace(
        breaks=(), replans=(), regions=(), specialization=None, program=program, failed_check=False, info={}, flushes=1
    )
    job = types.SimpleNamespace(name=name, fn=None, why=None, compiled=None, unused=(), plan=None, last=outcome, segments=(), on_run=None)
    report = Explanation(job, None)
    report.why_not_measured = "the program was not called by itself"
    return report


def of_latest(compiled: Any) -> Explanation:
    """The report of the latest capture of a compiled function. The function is not called, so there is no result."""
    job = compiled._cinductor_job
    report = Explanation(job, None)
    report.why_not_measured = f"cinductor.explain({job.name}, …) times them"
    add_known(report, job, compiled.specializations)
    report.economy = job.economy_of(compiled)
    add_rewritten(report, job.fn)
    return report


def add_known(report: Explanation, known: Any, kept: Any) -> None:
    """Add what the compiled function has recorded in all calls."""
    report.recompiles = list(known.reasons)
    report.races = lines_of_races(known, kept)
    if known.plan is not None:
        report.pieces = known.plan.lines()
    compiled = known.compiled and known.compiled()
    report.later = report.later or (compiled and compiled.why_not_split_calls)
    report.specializations = [
        known.made.get(id(s), "")
        + (f"; run by NumPy: {s.why_numpy}" if s.why_numpy else "")
        for s in kept
    ]


def add_rewritten(report: Explanation, fn: Any) -> None:
    from ..capture.syntax.rewrite import NotRewritable, print_rewritten

    try:
        report.rewritten = print_rewritten(fn)
    except (NotRewritable, AttributeError, TypeError):
        pass


def called(compiled: Any, job: Any, args: Any, kwargs: Any) -> Explanation:
    """The report of the one call; its kernels are timed if that leaves no trace."""
    began, result, error = time.perf_counter(), None, None
    try:
        result = compiled(*args, **kwargs)
        if inspect.iscoroutine(result):
            result.close()  # nothing awaits it
    except Exception as raised:
        error = raised
    seconds = time.perf_counter() - began
    job = answerer_of(job)
    report = Explanation(job, result)
    if error is not None:
        report.error = said_of(error)
        report.why_not_measured = "the call raised an exception"
        return report
    if report.specialization is None or report.program is None:
        return report
    report._compiled = compiled
    seconds -= sum(report.timings.get(f"{stage}_ms", 0.0) for stage in ("capture", "total")) / 1e3
    report.why_not_measured = measure.why_not(report.specialization, report.timings, seconds)
    if report.why_not_measured is None:
        report._measure(lambda: compiled(*args, **kwargs))
    return report


def answerer_of(job: Any) -> Any:
    """The job that ran a function's only call: another one for device arrays."""
    twins = list(getattr(job, "twins", {}).values())
    return twins[-1]._cinductor_job if twins else job


def said_of(error: Exception) -> str:
    """An exception in one line, with the place where it left the user's code."""
    tb, place = error.__traceback__, ""
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_filename.startswith(os.path.dirname(os.path.dirname(__file__))):
            place = f", at {code.co_filename}:{tb.tb_lineno}"
        tb = tb.tb_next
    return f"{type(error).__name__}: {error}{place}"
