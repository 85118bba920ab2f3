"""What a function became: the text of every level, guards, breaks with their reasons, timings."""

from __future__ import annotations

import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from . import _core
from .user import wrong

LEVELS = ("graph", "loops", "kernels", "procs", "wrapper", "source")

# How reasons begin, and what a user can do about them.
ADVICE = (
    (r"calls (print|builtins\.print)\b", "return the value and print it outside"),
    (
        r"a concrete value is needed by a condition",
        "np.where takes both ways; 'loops and branches' below has why the branch is Python's",
    ),
    (r"a concrete value is needed by (format|str)", "format it outside of the function"),
    (
        r"(changes a (list|dict|set)|sets an item of a|deletes) ?.*",
        "return what is new, and let the caller keep it",
    ),
    (r"sets the global", "pass it in and return it"),
    (r"calls time\.|calls [\w.]*perf_counter", "time the compiled function from outside"),
    (
        r"calls .*, which is (not captured|called as it is)|calls (numpy|scipy)\.",
        "it runs as it is; what stands before and behind it is compiled",
    ),
    (r"iterates over \d+ rows", "work on the whole array, or loop over range(len(x))"),
)


def advice_for(reason: str) -> str:
    """What can be done about a break, or ""."""
    return next((text for start, text in ADVICE if re.match(start, reason)), "")


class Break:
    """Where Python had to run, and why. source: the line as it is written, "" when nobody has it."""

    def __init__(self, reason: str, file: str, line: int) -> None:
        self.reason, self.file, self.line = reason, file, line

    @property
    def source(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class Explanation:
    """The report of one call. str() is readable; the parts are attributes.

    result: what the call returned.
    plain: why NumPy answered the call, or None. later: why calls like it will be left to NumPy, or
    None.
    programs: how many compiled graphs ran; program: the last one, whose levels are the texts graph,
    loops, kernels, procs ("" where kernels are printed as they are), wrapper (Python source, which
    options={"wrapper": "python"} runs) and source ("" without one), with kernels_count and
    externs_count. approximate: its functions that are within 4 ULP of NumPy's, as "sin of float64".
    guards: in words. breaks: list of Break, in the order in which they were met. regions: what
    became of loops and branches on traced values, as lines "file:line: for captured". replans: what
    captures of the call before this one had assumed and was given up, with the reasons.
    pieces: the lines "file:first-last" that later calls of a function that breaks have compiled, and
    which of them NumPy answers.
    specializations: why each that the compiled function has was made, the one used last first.
    recompiles: which guards calls of the compiled function failed, the latest last.
    timings: milliseconds and counts by name. rewritten: the function's source as capture runs it.
    """

    def __init__(self, job: Any, result: Any) -> None:
        self.name, self.place, self.result, self.plain = job.name, place_of(job.fn), result, job.why
        remembered = list(job.budget.plain.values())
        self.later: str | None = remembered[-1] if remembered else None
        self.breaks: list[Break] = []
        self.guards: list[str] = []
        self.recompiles: list[str] = []
        self.specializations: list[str] = []
        self.regions: list[str] = []
        self.replans: list[str] = []
        self.pieces: list[str] = [] if job.plan is None else job.plan.lines()
        self.timings: dict[str, Any] = {}
        self.rewritten = ""
        self.programs = 0
        self.program: Any = None
        outcome = job.last
        if outcome is not None:
            self.breaks = [Break(b.reason, b.file, b.line) for b in outcome.breaks]
            self.regions, self.replans = list(outcome.regions), list(outcome.replans)
            if self.plain is None or outcome.failed_check:
                self.program = outcome.program
        if outcome is not None and self.plain is None:
            self.timings = dict(outcome.info)
            self.programs = outcome.flushes
            if outcome.specialization is not None:
                self.guards = list(outcome.specialization.guards)
                self.program = outcome.specialization.program
                self.programs = max(self.programs, 1)

    def text(self, level: str) -> str:
        """One level of the last program: a level, a pass, ranges or json."""
        return "" if self.program is None else self.program.text(level)

    @property
    def kernels_count(self) -> int:
        """Kernels of the last program."""
        return 0 if self.program is None else self.program.kernels

    @property
    def why_host(self) -> str | None:
        """Why the CPU runs the last program, though a device was asked for; or None."""
        return None if self.program is None else self.program.why_host

    @property
    def approximate(self) -> list[str]:
        """Functions of the last program whose results are within 4 ULP of NumPy's."""
        return [] if self.program is None else self.program.approximate

    @property
    def externs_count(self) -> int:
        """Library calls of the last program."""
        return 0 if self.program is None else self.program.externs

    def __getattr__(self, name: str) -> Any:
        if name in LEVELS:
            return self.text(name)
        raise AttributeError(name)

    def __str__(self) -> str:
        parts = [f"{self.name}{self.place and ', '}{self.place}", *self._verdict(), ""]
        counted = Counter((b.file, b.line, b.reason) for b in self.breaks)
        lines = []
        for (file, line, reason), count in counted.items():
            times = f" ({count} times)" if count > 1 else ""
            lines += self._with_source(f"{file}:{line}: {reason}{times}")
            lines += ["    -> " + advice for advice in (advice_for(reason),) if advice]
        parts += section("Python runs here", lines)
        parts += section("later calls run these compiled, with Python between", self.pieces)
        regions = [
            line for r in sorted(self.regions, key=in_order) for line in self._with_source(r)
        ]
        parts += section("loops and branches", regions)
        parts += section("captured anew, for an assumption did not hold", self.replans)
        parts += section("guards: what a call must be like for this program", self.guards)
        made = [f"{k}. {why}" for k, why in enumerate(self.specializations, 1)]
        parts += section("specialisations, the one used last first", made)
        parts += section("calls that fitted none, the latest last", self.recompiles)
        parts += section("timings", self._timings())
        for level in LEVELS if self.program is not None else ():
            if text := self._short(self.text(level).rstrip("\n")):
                parts += section(level, text.split("\n"))
        if self.rewritten:
            parts += section("as captured", self.rewritten.split("\n"))
        return "\n".join(parts)

    def _verdict(self) -> list[str]:
        """What became of the call, and what will become of others."""
        if self.plain is not None:
            return [f"  runs in NumPy: {self.plain}"]
        if self.guards or not self.breaks:
            kernels, calls = self.kernels_count, self.externs_count
            names = self.approximate
            return [
                f"  compiled whole, no Python between: {plural(kernels, 'kernel')}, "
                f"{plural(calls, 'library call')}",
                *([f"  runs on the CPU: {self.why_host}"] if self.why_host else []),
                *([f"  within 4 ULP of NumPy: {', '.join(names)}"] if names else []),
            ]
        breaks = plural(len(self.breaks), "break")
        lines = [f"  in {plural(self.programs, 'compiled piece')}, with Python between: {breaks}"]
        if self.programs == 0:
            lines = [f"  nothing is compiled, Python does all of it: {breaks}"]
        if self.later is not None:
            lines.append(f"  later calls like it run in NumPy: {self.later}")
        return lines

    def _timings(self) -> list[str]:
        times = {k: v for k, v in self.timings.items() if k.endswith("_ms")}
        if self.timings.get("reused") and self.programs:
            return ["nothing was compiled: this process had the graph already"]
        if not times:
            return []
        words = {"capture": "tracing the function", "compile": "the C compiler"}
        if self.timings.get("from_cache"):
            words["compile"] = "the disk cache, which had the kernels"
        own = times.pop("total_ms", 0.0) - times.get("compile_ms", 0.0)
        lines = []
        for name in ("capture", "compile"):
            if f"{name}_ms" in times:
                lines.append(f"{times[f'{name}_ms']:8.1f} ms  {words[name]}")
        return [*lines, f"{own:8.1f} ms  from the graph to kernels"] if own > 0 else lines

    def _short(self, text: str) -> str:
        """Objects in the function's own file without its folder, and each once in a line."""
        folder = os.path.dirname(self.place.rpartition(":")[0])
        if folder:
            text = text.replace(f"@{folder}{os.sep}", "@")
        return re.sub(r"((?: @\S+:\d+)+)$", each_once, text, flags=re.M)

    def _with_source(self, text: str) -> list[str]:
        """A text that begins with file:line, and below it that line of the file."""
        found = re.match(r"(.+?):(\d+):", text)
        source = linecache.getline(found[1], int(found[2])).strip() if found else ""
        if found and self.place.startswith(found[1] + ":"):
            text = f"line {found[2]}{text[found.end() - 1 :]}"
        return [text, "    " + source] if source else [text]

    __repr__ = __str__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(self))


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A heading and its lines, when there are any."""
    body = ["  " + line if line else line for line in lines]
    return [f"{title}:", *body, ""] if body else []


def each_once(places: re.Match[str]) -> str:
    """Objects at the end of a line, without those that are there before."""
    return "".join(" " + place for place in dict.fromkeys(places[1].split()))


def in_order(region: str) -> tuple[str, int]:
    """Regions by file and line."""
    found = re.match(r"(.+?):(\d+):", region)
    return (found[1], int(found[2])) if found else ("", 0)


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def place_of(fn: Any) -> str:
    """Where a function is defined."""
    code = getattr(fn, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """See `cinductor.explain`."""
    from .compile import make

    settings: dict[str, Any] = dict.fromkeys(("dynamic", "mode", "backend", "device"))
    settings |= {"fullgraph": False, "options": {}}
    known = None
    if isinstance(fn, _core.CompiledFunction):
        known = fn._cinductor_job  # type: ignore[attr-defined]
        kept = fn.specializations
        settings = {**known.settings, "fullgraph": False}
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    if not callable(fn):
        raise TypeError(wrong("explain", "fn", fn, "a function or another callable"))
    compiled = make(fn, settings)
    job = compiled._cinductor_job
    job.is_for_show = True
    if known is not None:
        job.profile = known.profile.copy()
    result = compiled(*args, **kwargs)
    report = Explanation(job, result)
    if known is not None:
        report.recompiles = list(known.reasons)
        if known.plan is not None:
            report.pieces = known.plan.lines()
        race = known.budget.races.get(getattr(job.last, "kind", None))
        report.later = report.later or (race and race.why)
        report.specializations = [
            known.made.get(id(s), "")
            + (f"; answered by NumPy: {s.why_numpy}" if s.why_numpy else "")
            for s in kept
        ]
    from .capture.syntax.rewrite import NotRewritable, print_rewritten

    try:
        report.rewritten = print_rewritten(fn)
    except (NotRewritable, AttributeError):
        pass
    return report
