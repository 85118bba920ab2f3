"""Memory over the time of a program, counted from its lines: allocations, reuse and releases.

A static estimate for one call and one iteration of each loop. It excludes arguments, which the caller owns, and
scratch memory of kernels. Buffers of a data-dependent size count as 0 and are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import sizes
from .costs import elements_of, itemsize


@dataclass
class MemoryStep:
    """A line that allocates, frees or runs. live: bytes after it."""

    what: str
    live: int
    change: int


@dataclass
class Footprint:
    r"""The steps of one call.

    peak: the largest number of live bytes, first reached at step peak_at; arguments: bytes of the arguments; unknown:
    buffers of data-dependent size.
    """

    steps: list[MemoryStep] = field(default_factory=list)
    arguments: int = 0
    unknown: list[str] = field(default_factory=list)

    @property
    def peak(self) -> int:
        return max((step.live for step in self.steps), default=0)

    @property
    def peak_at(self) -> int:
        return next((k for k, step in enumerate(self.steps) if step.live == self.peak), 0)

    def as_dict(self) -> dict[str, Any]:
        steps = [vars(step) for step in self.steps]
        return {"peak": self.peak, "peak_at": self.peak_at, "arguments": self.arguments, "steps": steps, "unknown": self.unknown}

    def __str__(self) -> str:
        """A line for each step."""
        rows = []
        for k, step in enumerate(self.steps):
            mark = "  <- peak" if self.peak and k == self.peak_at else ""
            rows.append(f"{step.live:14,}  {step.what}{mark}")
        return "\n".join(rows)


class LineWalk:
    """Counts the memory of one program, line by line."""

    def __init__(self, names: dict[str, int], named: Callable[[str], str], calls: Iterable[str]) -> None:
        self.names, self.named, self.held, self.memory = names, named, dict[str, int](), Footprint()
        self.calls = iter(calls)

    def note(self, what: str, change: int = 0) -> None:
        self.memory.steps.append(MemoryStep(what, sum(self.held.values()), change))

    def line(self, line: dict[str, Any]) -> None:
        kind, buffer = line["line"], line.get("buffer", "")
        if kind in ("alloc", "alloc_result"):
            size = sizes.value_of(line["bytes"], self.names)
            if size is None:
                self.memory.unknown.append(buffer)
            self.held[buffer] = size or 0
            self.note(f"allocate {buffer}", size or 0)
        elif kind == "reuse":
            self.held[buffer] = self.held.pop(line["from"], 0)
            self.note(f"{buffer} takes over {line['from']}")
        elif kind == "free":
            self.note(f"free {buffer}", -self.held.pop(buffer, 0))
            self.memory.steps[-1].live = sum(self.held.values())
        elif kind == "launch":
            self.note(self.named(f"k{line['kernel']}"))
        elif kind == "extern":
            self.note(next(self.calls, line["name"]))


def walk(program: dict[str, Any], names: dict[str, int], named: Callable[[str], str], calls: Iterable[str]) -> Footprint:
    """The memory of a program, from its JSON and the values of its sizes.

    named: the name of a kernel in the report. calls: the names of the library calls, in the program's order.
    """
    way = LineWalk(names, named, calls)
    for line in program["lines"]:
        way.line(line)
    for buffer in program["buffers"]:
        if buffer["kind"] == "input":
            way.memory.arguments += (elements_of(buffer, names) or 0) * itemsize(buffer["dtype"])
    return way.memory
