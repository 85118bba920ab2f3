"""What a function became: the text of every level, guards, breaks with their reasons, timings."""

from __future__ import annotations

import os
from typing import Any

from . import _core

LEVELS = ("graph", "loops", "kernels", "wrapper", "python", "source")


class Break:
    """Where Python had to run, and why."""

    def __init__(self, reason: str, file: str, line: int) -> None:
        self.reason, self.file, self.line = reason, file, line

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class Explanation:
    """The report of one call. str() is readable; the parts are attributes.

    result: what the call returned.
    plain: why the function ran in NumPy, or None.
    programs: how many compiled graphs ran; program: the last one, whose levels are the texts graph,
    loops, kernels, wrapper, python and source ("" without one), with kernels_count and
    externs_count.
    guards: in words. recompiles: which guards calls of the compiled function failed, the latest last.
    breaks: list of Break. regions: what became of loops and branches on traced values, as lines
    "file:line: for captured". timings: milliseconds and counts by name.
    rewritten: the function's source as capture runs it.
    """

    def __init__(self, name: str, result: Any, outcome: Any, plain: str | None) -> None:
        self.name, self.result, self.plain = name, result, plain
        self.breaks: list[Break] = []
        self.guards: list[str] = []
        self.recompiles: list[str] = []
        self.regions: list[str] = []
        self.timings: dict[str, Any] = {}
        self.rewritten = ""
        self.programs = 0
        self.program: Any = None
        if outcome is not None:
            self.breaks = [Break(b.reason, b.file, b.line) for b in outcome.breaks]
            self.regions = list(outcome.regions)
            self.timings = dict(outcome.info)
            self.program = outcome.program
            self.programs = outcome.flushes
            if outcome.specialization is not None:
                self.guards = list(outcome.specialization.guards)
                self.program = outcome.specialization.program
                self.programs = max(self.programs, 1)

    def text(self, level: str) -> str:
        """One level of the last program: graph, loops, kernels, wrapper, python, json or source."""
        return "" if self.program is None else self.program.text(level)

    @property
    def kernels_count(self) -> int:
        """Kernels of the last program."""
        return 0 if self.program is None else self.program.kernels

    @property
    def externs_count(self) -> int:
        """Library calls of the last program."""
        return 0 if self.program is None else self.program.externs

    def __getattr__(self, name: str) -> Any:
        if name in LEVELS:
            return self.text(name)
        raise AttributeError(name)

    def __str__(self) -> str:
        parts = [f"cinductor.explain({self.name})", ""]
        if self.plain is not None:
            parts += [f"runs in NumPy: {self.plain}", ""]
        parts.append(f"{self.programs} compiled graph(s), {len(self.breaks)} break(s)")
        parts += [f"  {b!r}" for b in self.breaks]
        if self.regions:
            parts += ["", "loops and branches:", *(f"  {line}" for line in self.regions)]
        if self.guards:
            parts += ["", "guards:", *(f"  {g}" for g in self.guards)]
        if self.recompiles:
            parts += ["", "recompiled for:", *(f"  {r}" for r in self.recompiles)]
        if self.timings:
            parts += ["", "timings:", *(f"  {k}: {v}" for k, v in self.timings.items())]
        if self.rewritten:
            parts += ["", "as captured:", indent(self.rewritten)]
        for level in LEVELS if self.program is not None else ():
            parts += ["", level + ":", indent(self.text(level))]
        return "\n".join(parts) + "\n"

    __repr__ = __str__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(self))


def indent(text: str) -> str:
    """Lines, each two columns to the right."""
    return "\n".join("  " + line if line else line for line in text.rstrip("\n").split("\n"))


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """See `cinductor.explain`."""
    from .compile import make

    settings: dict[str, Any] = dict.fromkeys(("dynamic", "mode", "backend", "device"))
    settings |= {"fullgraph": False, "options": {}}
    known = None
    if isinstance(fn, _core.CompiledFunction):
        known = fn._cinductor_job  # type: ignore[attr-defined]
        settings = {**known.settings, "fullgraph": False}
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    compiled = make(fn, settings)
    job = compiled._cinductor_job
    if known is not None:
        job.profile = known.profile.copy()
    result = compiled(*args, **kwargs)
    plain = next(iter(job.plain.values()), None) if job.last is None else None
    report = Explanation(job.name, result, job.last, plain)
    report.recompiles = [] if known is None else list(known.reasons)
    from .capture.rewrite import NotRewritable, print_rewritten

    try:
        report.rewritten = print_rewritten(fn)
    except (NotRewritable, AttributeError):
        pass
    return report
