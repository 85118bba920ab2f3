"""One compiled program of a report: its texts, and the counts made from them. It can be pickled, as texts."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from . import costs, kernels, timeline
from .page import LEVELS, plural_lines, ranges


class ProgramTexts:
    r"""The texts of a program at each level.

    letter: the prefix of its kernels' names if a report has several programs, else "". place: the function's
    position, for kernels that have none.
    """

    def __init__(self, program: Any, letter: str, place: str) -> None:
        self.program, self.letter, self.place = program, letter, place
        self.texts: dict[str, str] = {}

    def text(self, level: str) -> str:
        """The text of a level. Raises ValueError for an unknown level."""
        if level not in self.texts:
            self.texts[level] = self.program.text(level)
        return self.texts[level]

    @functools.cached_property
    def counted(self) -> tuple[list[costs.Cost], list[str], timeline.Footprint]:
        """The cost of each kernel and library call; why loops are not fused; memory over time."""
        program = json.loads(self.text("json"))
        found, apart = kernels.read(self.text("kernels"))
        counter = costs.Counter(self.text("graph"), self.text("kernels"), program)
        made = [counter.kernel(kernel) for kernel in found]
        costs.place_all(made, found, self.place)
        for cost in made:
            cost.name = self.named(cost.name)
        lines = lines_of_names(found, made)
        apart = [re.sub(r"\bk\d+\b", lambda match: self.named(match[0]), with_lines(why, lines)) for why in apart]
        return made, apart, timeline.walk(program, counter.names, self.named, [k.call for k in found if k.call])

    @property
    def copies(self) -> list[str]:
        """Copies between devices, and between them and the host, in order."""
        program = json.loads(self.text("json"))
        sides = {b["name"]: f"device {b['device']}" if "device" in b else "host" for b in program["buffers"]}
        if not any("device" in b for b in program["buffers"]):
            return []
        made = [line for line in program["lines"] if line["line"].startswith("copy_")]
        return [f"{c['from']} from {sides[c['from']]} to {sides[c['buffer']]}, {c['bytes']} bytes" for c in made]

    @functools.cached_property
    def recordings(self) -> list[str]:
        """With the option `graphs`: the outcome of recording each partition."""
        return [as_words(number, part) for number, part in enumerate(self.program.recordings or ())]

    def named(self, kernel: str) -> str:
        return f"{self.letter}.{kernel}" if self.letter else kernel

    def set_times(self, seconds: dict[tuple[str, int], float]) -> None:
        """Set measured times, by letter and number of kernels and library calls."""
        costs.time_all(self.counted[0], json.loads(self.text("json")), seconds)

    def __getstate__(self) -> dict[str, Any]:
        for level in (*LEVELS, "json") if self.program is not None else ():
            self.text(level)
        return {**self.__dict__, "program": None, "counted": self.counted, "recordings": self.recordings}


def as_words(number: int, part: dict[str, Any]) -> str:
    """The outcome of recording a partition, in words."""
    runs = part["replayed"] + part["launched"]
    what = f"p{number}: {part['launches']} launches, replayed in {part['replayed']} of {runs} runs"
    if part["copied"]:
        what += f", {part['copied']} of its arguments copied"
    return f"{what}; not recorded: {part['why_not']}" if part["why_not"] else what


def all_of(programs: list[Any], place: str) -> list[ProgramTexts]:
    """Programs in the order of their first lines."""
    if len(programs) < 2:
        return [ProgramTexts(program, "", place) for program in programs]
    first = sorted(programs, key=first_line)
    return [ProgramTexts(program, letter_of(number), place) for number, program in enumerate(first)]


def first_line(program: Any) -> tuple[str, int]:
    found = re.findall(r" @(\S+?):(\d+)", program.text("graph"))
    return min(((file, int(line)) for file, line in found), default=("", 0))


def letter_of(number: int) -> str:
    """a, b, … z, aa, ab, …"""
    before, last = divmod(number, 26)
    return (letter_of(before - 1) if before else "") + chr(ord("a") + last)


def lines_of_names(read: list[kernels.Kernel], made: list[costs.Cost]) -> dict[str, str]:
    """The lines of the user's code for names that only the text of kernels has: loops, and buffers that kernels store."""
    found: dict[str, str] = {}
    for kernel, cost in zip(read, made, strict=True):
        stored = [access.buffer for nest in kernel.nests for access in nest.accesses if access.is_store]
        for name in (*re.findall(r"\bfor (t\d+)<", kernel.text), *stored, kernel.result):
            found.setdefault(name, ranges(sorted({line for _, line in cost.places})))
    return found


def with_lines(why: str, lines: dict[str, str]) -> str:
    """A text in which such names are followed by their lines."""

    def named(match: re.Match[str]) -> str:
        where = lines.get(match[0])
        return f"{match[0]} ({plural_lines(where)})" if where else match[0]

    return re.sub(r"\b(t|buf)\d+\b", named, why)
