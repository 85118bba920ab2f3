"""Reads kernels from the text of the level `kernels`: what they access and compute.

A kernel is a list of nests. A nest has its axes, outermost first, and the loads, stores and operations of its
body. `docs/ir.md` describes the text; csrc/ir/kernel_text.c prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PLACE = re.compile(r' @("[^"]*"|\S+?):(\d+)')
KERNEL = re.compile(r"(k\d+): (?:on \d+ )?(?:template \w+ )?(.*)")
NEST = re.compile(r"(\w+)(?: (?:memory|local|row|register|scalar))?\[(.*?)\] = (.*)\{$")
OPERATION = re.compile(r"%\d+: \w+ = (\w+) ?(.*)")
CALL = re.compile(r"extern \"?([\w.:]+)\"?\((.*?)\)(?: key .*?)? -> (\w+)(?:$| @)")
# Operations of a body that move or name values, and compute nothing.
MOVES = ("load", "index", "const", "cast", "bind")


@dataclass
class Access:
    """One load or store: the buffer, the index as an expression, and whether it depends on data."""

    buffer: str
    index: str
    is_store: bool
    is_indirect: bool


@dataclass
class Nest:
    """One loop nest. axes: names and extents, outermost first; folded: the axes that it reduces."""

    axes: list[tuple[str, str]]
    accesses: list[Access]
    operations: int  # per point, without the reduction's own
    combines: bool  # adds each element to the destination or an accumulator
    may_not_run: bool  # inside of an `if`
    repeats: bool  # inside of a `while`, whose number of iterations depends on data


@dataclass
class Kernel:
    r"""One kernel or library call.

    call: the library's name, "" for a kernel of cinductor; operands: of a call, as written. outer: the loops of the
    program around it. text: its lines.
    """

    name: str
    call: str = ""
    operands: list[str] = field(default_factory=list)
    result: str = ""
    places: list[tuple[str, int]] = field(default_factory=list)
    takes: list[str] = field(default_factory=list)
    nests: list[Nest] = field(default_factory=list)
    outer: list[tuple[str, str]] = field(default_factory=list)
    may_not_run: bool = False
    repeats: bool = False
    text: str = ""


@dataclass
class Frame:
    """An open brace: its axes, and unknowns."""

    axes: list[tuple[str, str]]
    word: str  # for, if, while
    kernel: Kernel | None = None
    nest: Nest | None = None


def is_indirect(index: str) -> bool:
    """True if the element depends on data."""
    return re.search(r"\bat\d", index) is not None


def split_outside(text: str, separator: str = ",") -> list[str]:
    """The parts between separators outside of parentheses and brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def axes_of(head: str) -> list[tuple[str, str]]:
    """The axes between a word and the brace: `for i0<4096, i1<8 {`, `loop t0<s0 parallel {`."""
    found = []
    for part in split_outside(head.partition("{")[0]):
        if match := re.search(r"(?:^|\s)(\w+)<(.*?)(?: parallel)?$", part):
            found.append((match[1], match[2]))
    return found


def places_of(line: str) -> list[tuple[str, int]]:
    return [(file.strip('"'), int(number)) for file, number in PLACE.findall(line)]


class KernelReader:
    """The lines of one text, one after another."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.kernels: list[Kernel] = []
        self.kernel: Kernel | None = None
        self.refusals: list[str] = []

    def read(self, line: str) -> None:
        text = line.strip()
        if text.startswith("# "):
            self.refusals.append(text[2:])
        elif match := KERNEL.fullmatch(text):
            self.begin(match[1], match[2])
        elif text.startswith("}"):
            self.close(text)
        elif self.frames and self.frames[-1].nest is not None:
            self.operation(self.frames[-1].nest, text)
        elif text.startswith("takes ") and self.kernel:
            words = text[6:].partition(";")[0].split(", ")
            self.kernel.takes = [word.removeprefix("out ") for word in words]
        elif self.kernel and (match := NEST.match(text)):
            self.open_nest(match[1], match[2], match[3])
        elif text.endswith("{") or "{ " in text:
            word = text.split(" ")[0]
            self.frames.append(Frame(axes_of(text), word))

    def begin(self, name: str, rest: str) -> None:
        """The start of a kernel, a library call, a check, or a loop around kernels."""
        kernel = Kernel(name, places=places_of(rest), outer=self.axes())
        kernel.may_not_run, kernel.repeats = self.stands_in("if"), self.stands_in("while")
        if match := CALL.match(re.sub(r"  @.*", "", rest)):
            kernel.call, kernel.result = match[1], match[3]
            kernel.operands = split_outside(match[2])
            self.kernels.append(kernel)
        elif rest.startswith("for"):
            self.kernels.append(kernel)
            self.kernel = kernel
            self.frames.append(Frame(axes_of(rest), "for", kernel))
        elif rest.partition(" @")[0].rstrip().endswith("{"):
            self.frames.append(Frame(axes_of(rest), rest.split(" ")[0]))

    def axes(self) -> list[tuple[str, str]]:
        """The axes of all open frames, outermost first."""
        return [axis for frame in self.frames for axis in frame.axes]

    def stands_in(self, word: str) -> bool:
        return any(frame.word == word for frame in self.frames)

    def open_nest(self, buffer: str, index: str, how: str) -> None:
        assert self.kernel is not None
        nest = Nest(
            self.axes()[len(self.kernel.outer) :],
            [Access(buffer, index, True, is_indirect(index))],
            0,
            " over " in how or bool(re.match(r"(?!distinct)\w", how)),
            self.stands_in("if") and not self.kernel.may_not_run,
            self.stands_in("while") and not self.kernel.repeats,
        )
        self.kernel.nests.append(nest)
        self.frames.append(Frame([], "nest", nest=nest))

    def operation(self, nest: Nest, text: str) -> None:
        match = OPERATION.match(text)
        if match is None:
            return
        if match[1] == "load":
            buffer, _, index = match[2].rstrip("]").partition("[")
            nest.accesses.append(Access(buffer, index, False, is_indirect(index)))
        nest.operations += match[1] not in MOVES

    def close(self, text: str) -> None:
        frame = self.frames.pop() if self.frames else None
        if text.endswith("{"):  # `} else {`, `} test buf3 {`: continues the same construct
            self.frames.append(Frame([], frame.word if frame else "if"))
        elif frame is not None and frame.kernel is not None:
            self.kernel = None


def read(text: str) -> tuple[list[Kernel], list[str]]:
    """The kernels and library calls of a text, in its order, and why some nests are not fused."""
    reader, owner, lines = KernelReader(), None, []
    for line in text.splitlines():
        reader.read(line)
        if reader.kernel is not owner and owner is not None:
            owner.text = undented([*lines, line])
            owner, lines = None, []
        if reader.kernel is not None:
            owner = reader.kernel
            lines.append(line)
    for kernel, line in zip((k for k in reader.kernels if k.call), calls_in(text)):
        kernel.text = line
    return reader.kernels, reader.refusals


def calls_in(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if re.match(r"\s*k\d+: (?:on \d+ )?extern ", line))


def undented(lines: list[str]) -> str:
    """The lines without the indentation of the first."""
    first = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[first:] for line in lines)
