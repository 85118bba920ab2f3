"""A report as a web page: one file without scripts that loads nothing from elsewhere."""

from __future__ import annotations

import io
import keyword
import linecache
import math
import os
import re
import time
import tokenize
from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING, Any

from . import measure, svg
from .page import (
    LEVELS,
    count_text,
    equal_kernels,
    lines_by_file,
    lines_text,
    plural_lines,
    refusals,
    row_of_equal,
    runs_of,
    scaled,
    size_text,
    time_text,
    verdict,
)
from .reasons import reason_of
from .style import SHEET

if TYPE_CHECKING:
    from .costs import Cost

TIMED = ["time", "bytes/s", "operations/s", "of the ceiling"]  # columns of kernels that were timed
SAMPLES = f"Times are the least of at least {measure.FEW} runs of the program, of equal kernels their sum."
MAX_PANELS, MAX_CHIPS = 6, 8  # boxes shown without scrolling, and chips after a line
STAGES = {
    "capture": "tracing the function",
    "passes": "passes over the graph",
    "lower": "loops",
    "schedule": "fusion",
    "wrap": "the program's lines",
    "emit": "printing kernels",
    "compile": "the C compiler",
    "load": "loading",
}


def document(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}: cinductor</title>"
        "<style>html { color-scheme: light dark; } body { margin: 0; background: #fff; }\n"
        "@media (prefers-color-scheme: dark) { body { background: #15181d; } }</style></head>\n"
        f"<body>{body}</body></html>\n"
    )


def fragment(report: Any) -> str:
    """The report without the page around it, for notebooks."""
    return Page(report).text()


class Page:
    """A report while it is made into a page. id: the prefix of all its names, because a notebook may have many."""

    def __init__(self, report: Any) -> None:
        self.report, self.id = report, f"c{time.time_ns():x}"
        self.costs = report.costs
        self.groups = equal_kernels(report)
        self.color = {cost.name: k % 8 for k, group in enumerate(self.groups) for cost in group}
        self.ceilings = report.ceilings
        if self.ceilings is None and report.program is not None and any(cost.seconds for cost in self.costs):
            self.ceilings = report.ceilings = measure.reached(measure.ceilings(), self.costs)

    def text(self) -> str:
        parts = [self.head(), self.source(), self.kernels(), self.fusion(), self.drawings(), self.calls(), self.levels()]
        return f'<div class="cinductor"><style>{SHEET}</style>{"".join(parts)}</div>'

    def head(self) -> str:
        report, stats = self.report, self.report.stats
        facts = [
            (stats["kernels"], "kernel" if stats["kernels"] == 1 else "kernels"),
            (stats["calls"], "library call" if stats["calls"] == 1 else "library calls"),
            (stats["breaks"], "break" if stats["breaks"] == 1 else "breaks"),
            (size_text(stats["bytes"]), "moved"),
            (count_text(stats["operations"]), "operations"),
            (size_text(stats["peak_bytes"]), "peak of memory"),
        ]
        if stats["seconds"] is not None:
            facts.append((time_text(stats["seconds"]), "in kernels"))
        if not self.costs:
            facts = facts[2:3]
        items = "".join(f"<li><b>{escape(str(value))}</b><span>{name}</span></li>" for value, name in facts)
        lines = "".join(f"<p>{escape(line.strip())}</p>" for line in verdict(report))
        place = f'<p class="soft"><code>{escape(report.place)}</code></p>' if report.place else ""
        return f'<h1>{escape(report.name)}</h1>{place}{lines}<ul class="facts">{items}</ul>'

    # --- source ---

    def source(self) -> str:
        """The user's lines, with the kernels and notes of each."""
        used, notes = self.kernels_by_line(), self.notes_by_line()
        own = self.report.place.rpartition(":")[0]
        first, lines = self.report.function_lines
        listings = [self.listing(own, first, lines, used, notes)] if lines else []
        inside = range(first, first + len(lines))
        others: dict[str, set[int]] = defaultdict(set)
        for file, number in (*used, *notes):
            if file and not (file == own and number in inside):
                others[file].update(range(max(number - 1, 1), number + 2))
        for file, numbers in sorted(others.items()):
            if any(linecache.getline(file, n).strip() for n in numbers):
                listings.append(f'<p class="soft"><code>{escape(file)}</code></p>')
                for start, count in runs_of(sorted(numbers)):
                    found = [linecache.getline(file, start + k).rstrip("\n") for k in range(count)]
                    listings.append(self.listing(file, start, found, used, notes))
        return f"<h2>Source</h2>{''.join(listings)}" if listings else ""

    def kernels_by_line(self) -> dict[tuple[str, int], list[str]]:
        """A chip for each group of equal kernels of a line."""
        used: dict[tuple[str, int], list[str]] = defaultdict(list)
        for group in self.groups:
            for place in dict.fromkeys(group[0].places):
                used[place].append(self.chip(group[0].name, len(group)))
        return used

    def seconds_by_line(self) -> dict[tuple[str, int], float]:
        """The time of each kernel, in equal parts for the lines that it computes."""
        found: dict[tuple[str, int], float] = defaultdict(float)
        for cost in self.costs:
            places = set(cost.places)
            for place in places:
                found[place] += (cost.seconds or 0.0) / len(places)
        return {place: seconds for place, seconds in found.items() if seconds}

    def notes_by_line(self) -> dict[tuple[str, int], list[str]]:
        """Breaks with their hints, and the outcomes of loops and branches."""
        notes: dict[tuple[str, int], list[str]] = defaultdict(list)
        counted: dict[tuple[str, int, str], int] = defaultdict(int)
        for b in self.report.breaks:
            counted[b.file, b.line, b.reason] += 1
        for (file, line, reason), count in counted.items():
            times = f" ({count} times)" if count > 1 else ""
            notes[file, line].append(f'<p class="note break">Python runs here: {escape(reason)}{times}{hint(reason)}</p>')
        for region in self.report.outcomes:
            if region.reason:
                said = f"{region.kind} {region.words}"
                notes[region.file, region.line].append(f'<p class="note">{escape(said)}{hint(region.reason)}</p>')
        return notes

    def marks_by_line(self) -> dict[tuple[str, int], str]:
        """A mark for each loop and branch that is compiled as one."""
        marks = {}
        for region in self.report.outcomes:
            if not region.reason:
                what = "branch" if region.kind == "if" else "loop"
                title = f"this {what} is {region.words} of the program"
                marks[region.file, region.line] = f'<span class="mark" title="{escape(title)}">{what}</span>'
        return marks

    def listing(
        self,
        file: str,
        first: int,
        lines: list[str],
        used: dict[tuple[str, int], list[str]],
        notes: dict[tuple[str, int], list[str]],
    ) -> str:
        rows, seconds, marks = [], self.seconds_by_line(), self.marks_by_line()
        for number, code in enumerate(highlighted(lines), first):
            found, said = used.get((file, number), []), notes.get((file, number), [])
            style = " broken" if any("break" in note for note in said) else " used" if found else ""
            chips = marks.get((file, number), "") + "".join(found)
            if len(found) > MAX_CHIPS:
                said, chips = [f'<p class="note chips">{chips}</p>', *said], ""
            took = seconds.get((file, number), 0.0)
            bar = f'<span class="bar" style="width:{100 * took / max(seconds.values()):.0f}%"></span>' if took else ""
            time_of_line = f'<span class="took">{bar}{time_text(took) if took else ""}</span>' if seconds else ""
            rows.append(
                f'<div class="row{style}" id="{self.id}-{self.anchor(file, number)}"><span class="number">{number}</span>{time_of_line}'
                f'<code>{code}</code><span class="chips">{chips}</span></div>' + "".join(said)
            )
        return f'<div class="listing">{"".join(rows)}</div>'

    def anchor(self, file: str, number: int) -> str:
        return re.sub(r"\W", "-", f"{os.path.basename(file)}-{number}")

    def chip(self, name: str, count: int = 1) -> str:
        times = f" ×{count}" if count > 1 else ""
        return f'<a class="chip k{self.color[name]}" href="#{self.id}-{name}">{name}{times}</a>'

    # --- kernels ---

    def kernels(self) -> str:
        if not self.costs:
            return ""
        titles = ["", "lines", "reads", "writes", "operations", "per byte"]
        titles += TIMED if self.is_timed else []
        rows = "".join(f"<tr>{self.cells(costs)}</tr>" for costs in self.groups)
        head = "".join(f"<th>{title}</th>" for title in titles)
        why = self.report.why_not_measured
        note = f'<p class="soft">Not timed: {escape(why)}</p>' if why else f'<p class="soft">{SAMPLES}</p>' if self.is_timed else ""
        cards = "".join(self.texts_of(*group) for group in self.groups)
        if len(self.groups) > MAX_PANELS:
            cards = f"<details><summary>texts of {len(self.groups)} kernels</summary>{cards}</details>"
        return f'<h2>Kernels</h2><div class="wide"><table><tr>{head}</tr>{rows}</table></div>{note}{cards}'

    @property
    def is_timed(self) -> bool:
        """True if the time of a kernel is known."""
        return any(cost.seconds for cost in self.costs)

    def cells(self, costs: list[Cost]) -> str:
        """The cells of equal kernels. Each of them can be linked to."""
        cost, *others = costs
        *_, read, written, operations, seconds = row_of_equal(self.report, costs)
        call = f" {escape(cost.call)}" if cost.call else ""
        anchors = "".join(f'<span id="{self.id}-{each.name}"></span>' for each in costs)
        count = f" ×{len(costs)}" if others else ""
        intensity = "" if cost.intensity is None else f"{cost.intensity:.3g}"
        row = [read, written, operations, intensity]
        fastest = min(costs, key=lambda cost: cost.seconds or math.inf)
        row += [seconds, *self.speeds(fastest), self.of_ceiling(fastest)] if self.is_timed else []
        links = self.links(cost)
        return f"<td>{anchors}{self.chip(cost.name)}{count}{call}</td><td>{links}</td>" + "".join(f"<td>{escape(text)}</td>" for text in row)

    def links(self, cost: Cost) -> str:
        """The lines of a kernel, as "3-5, 9", where each number is a link."""
        parts = []
        for file, numbers in lines_by_file(cost).items():
            for first, count in runs_of(numbers):
                ends = dict.fromkeys((first, first + count - 1))
                parts.append("-".join(f'<a href="#{self.id}-{self.anchor(file, line)}">{line}</a>' for line in ends))
        return ", ".join(parts)

    def speeds(self, cost: Cost) -> list[str]:
        """Bytes and operations per second."""
        if not cost.seconds or cost.is_per_iteration:
            return ["", ""]
        moved = size_text(cost.bytes / cost.seconds) if cost.bytes else ""
        return [moved, count_text(cost.operations / cost.seconds) if cost.operations else ""]

    def of_ceiling(self, cost: Cost) -> str:
        """The fraction of the machine's peak, for so many operations on so many bytes."""
        if self.ceilings is None or not cost.seconds or not cost.bytes or cost.is_most or cost.is_per_iteration:
            return ""
        least = max(cost.bytes / self.ceilings.bandwidth, (cost.operations or 0) / self.ceilings.operations)
        bound = "memory" if least == cost.bytes / self.ceilings.bandwidth else "arithmetic"
        part = 100 * least / cost.seconds
        if part > 100 and bound == "memory":
            return "in a cache"
        return f"{part:.0f} % of {bound}" if part >= 1 else f"below 1 % of {bound}"

    def texts_of(self, cost: Cost, *others: Cost) -> str:
        """The texts of a kernel at the levels at which it is one unit. others: equal kernels, whose texts are those of the levels."""
        letter, _, name = cost.name.rpartition(".")
        (program,) = [part for part in self.report.parts if part.letter == letter]
        texts = [("kernels", cost.text)]
        texts += [("procs", part_of(program.text("procs"), rf"^ *proc {name}(_\w+)?\(", r"^  \}$"))]
        texts += [("source", part_of(program.text("source"), rf"^{name}(_\w+)?\(", r"^\}$"))]
        shown = "".join(
            f"<details><summary>{level}</summary><pre>{escape(text)}</pre></details>" for level, text in texts if text
        )
        nests = f"{cost.nests} loop nests in one kernel" if cost.nests > 1 else "one loop nest"
        what = f"library call {escape(cost.call)}" if cost.call else nests
        where = escape(plural_lines(lines_text(self.report, cost)))
        launches = f", {cost.launches} launches in a call" if cost.launches not in (None, 1) else ""
        return (
            f'<div class="kernel">{self.chip(cost.name, 1 + len(others))} {what}, {where}{launches}; '
            f'<span class="soft">{escape(", ".join(cost.buffers))}</span><div class="texts">{shown}</div></div>'
        )

    def fusion(self) -> str:
        """The fused groups, and why they are not larger."""
        if not self.costs:
            return ""
        fused = []
        for first, *others in self.groups:
            if first.nests > 1:
                who = f"{self.chip(first.name)} {f'and {len(others)} like it have' if others else 'has'} {first.nests} loop nests"
                fused.append(f"<li>{who}: {escape(plural_lines(lines_text(self.report, first)))}</li>")
        apart = [f"<li>{self.linked(why)}</li>" for why in refusals(self.report)]
        together = f"<p>Fused:</p><ul class='plain'>{''.join(fused)}</ul>" if fused else "<p>Nothing was fused.</p>"
        title = f"<summary>what is not fused or not parallel, and what shares memory: {len(apart)}</summary>"
        others = f"<details>{title}<ul class='plain'>{''.join(apart)}</ul></details>" if apart else ""
        return f"<h2>Fusion</h2>{together}{others}"

    def linked(self, text: str) -> str:
        """A text in which the names of kernels are chips."""
        return re.sub(
            r"\b([a-z]+\.)?k\d+\b", lambda found: self.chip(found[0]) if found[0] in self.color else found[0], escape(text)
        )

    # --- drawings ---

    def drawings(self) -> str:
        parts = []
        dots = [
            svg.Dot(row_of_equal(self.report, group)[0], self.color[cost.name], cost.intensity, cost.operations / cost.seconds)
            for group in self.groups
            for cost in (min(group, key=lambda cost: cost.seconds or math.inf),)
            if cost.seconds and cost.operations and cost.intensity and not cost.is_per_iteration
        ]
        if dots:
            parts.append(f"<div><h2>Roofline</h2>{svg.roofline(dots, self.ceilings)}{self.about_ceilings()}</div>")
        memory = self.report.memory
        if memory.peak:
            shown = {cost.name: group[0].name for group in self.groups for cost in group}
            steps = [(shown.get(step.what, step.what), step.live) for step in memory.steps]
            which = "one call" if len(self.report.parts) < 2 else "the piece that allocates most"
            said = f"Static, of {which}. Arguments hold {size_text(memory.arguments)} more."
            if memory.unknown:
                said += f" Data decide the size of {', '.join(memory.unknown[:8])}: counted as nothing."
            drawn = svg.memory(steps, memory.peak_at)
            parts.append(f'<div><h2>Memory</h2>{drawn}<p class="soft">{escape(said)}</p></div>')
        names = {**STAGES, "capture": "the call, with its pieces"} if self.report.breaks else STAGES
        stages = [(name, self.report.timings.get(f"{key}_ms")) for key, name in names.items()]
        known = [(name, value) for name, value in stages if value]
        if known:
            cached = self.report.timings.get("from_cache")
            note = '<p class="soft">The disk cache had the kernels.</p>' if cached else ""
            parts.append(f"<div><h2>Compile time</h2>{svg.bars(known)}{note}</div>")
        return f'<div class="pair">{"".join(parts)}</div>' if parts else ""

    def about_ceilings(self) -> str:
        if self.ceilings is None:
            return '<p class="soft">The ceilings of this machine were not measured.</p>'
        bandwidth, operations = size_text(self.ceilings.bandwidth), scaled(self.ceilings.operations, "|K|M|G|T")
        return (
            f'<p class="soft">The ceilings were measured on this machine for float64: memory {bandwidth}/s (a sum of long arrays), '
            f"arithmetic {operations} operations a second (in registers, a product of matrices, or a kernel of this report). "
            "Kernels whose data are in a cache may exceed the ceiling of memory.</p>"
        )

    # --- calls ---

    def calls(self) -> str:
        """Guards, specialisations and recompiles."""
        report = self.report
        lists = (
            ("Specialisations, most recently used first", report.specializations),
            ("Calls that matched none, the latest last", report.recompiles),
            ("Plans timed by autotuning", report.races),
            ("Captured again, because an assumption did not hold", report.replans),
            ("Compiled pieces of later calls", report.pieces),
            ("Guards: conditions on a call for this program", report.guards),
        )
        parts = []
        for title, items in lists:
            if items:
                rows = "".join(f"<li>{escape(item)}{hint(item) if 'matched none' in title else ''}</li>" for item in items)
                parts.append(f'<p>{title}:</p><ul class="plain">{rows}</ul>')
        return f"<h2>Calls</h2>{''.join(parts)}" if parts else ""

    def levels(self) -> str:
        """A tab for each level that has a text."""
        texts = [(level, self.report.every_text(level)) for level in LEVELS]
        texts.append(("as captured", self.report.rewritten))
        shown = [(level, text) for level, text in texts if text]
        if not shown:
            return ""
        tabs, panes = [], []
        for k, (level, text) in enumerate(shown):
            name = f"{self.id}-level-{k}"
            checked = " checked" if k == 0 else ""
            tabs.append(f'<input type="radio" name="{self.id}-level" id="{name}"{checked}><label for="{name}">{level}</label>')
            panes.append(f"<pre>{escape(text)}</pre>")
        return f'<h2>Levels</h2><div class="tabs">{"".join(tabs)}{"".join(panes)}</div>'


def hint(reason: str) -> str:
    """Advice, with a link to the docs."""
    row = reason_of(reason)
    if not row.hint:
        return ""
    return f'<br><span class="hint">{escape(row.hint)}</span> <span class="soft">({link_to(row.page)})</span>'


def part_of(text: str, begin: str, end: str) -> str:
    """The part of a text from the first line that matches the start to the line that matches the end."""
    lines, parts, start = text.splitlines(), [], None
    for k, line in enumerate(lines):
        if start is None and re.match(begin, line):
            start = k
        elif start is not None and re.match(end, line):
            parts += lines[start : k + 1]
            start = None
    return "\n".join(parts)


def highlighted(lines: list[str]) -> list[str]:
    """Lines of Python as HTML, with keywords, strings and comments marked; unchanged if they cannot be parsed."""
    marks: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            style = style_of(token)
            (row, start), (last, end) = token.start, token.end
            for number in range(row, last + 1) if style else ():
                stop = end if number == last else len(lines[number - 1])
                marks[number].append((start if number == row else 0, stop, style))
    except (tokenize.TokenError, SyntaxError):
        pass
    return [marked(line, marks[number]) for number, line in enumerate(lines, 1)]


def style_of(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    return "key" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""


def marked(line: str, marks: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, style in marks:
        # Indentation is inside of the tag, because notebooks drop texts that consist of blanks.
        start = at if not line[at:start].strip() else start
        parts.append(f'{escape(line[at:start])}<span class="{style}">{escape(line[start:end])}</span>')
        at = end
    return "".join(parts) + escape(line[at:])


def link_to(page: str) -> str:
    """A link, or the command as text."""
    return f'<a href="{escape(page)}">{escape(page)}</a>' if page.startswith("https://") else escape(page)
