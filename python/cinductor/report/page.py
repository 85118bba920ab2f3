"""A report as text: one page with the main points, or everything."""

from __future__ import annotations

import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .reasons import reason_of

if TYPE_CHECKING:
    from .costs import Cost

LEVELS = ("graph", "optimized", "loops", "kernels", "procs", "wrapper", "source")
MAX_LINES = 12  # of a section of the page
ANEW = "captured again, because an assumption did not hold"
FITTED_NONE = "calls that matched none, the latest last"
RACES = "plans timed by autotuning"
MADE = "specialisations, most recently used first"


def page(report: Any) -> str:
    """The text page: captured lines, breaks with reason and hint, kernels with lines, times."""
    parts = [*head(report), ""]
    parts += section("Python runs here", shortened(breaks(report)))
    parts += section("later calls run these compiled, with Python between", shortened(report.pieces))
    parts += section("loops and branches", shortened(regions(report)))
    parts += section(ANEW, shortened(report.replans))
    parts += section(MADE, shortened(made_for(report)))
    parts += section(FITTED_NONE, shortened(recompiles(report)))
    parts += section(RACES, shortened(report.races))
    parts += section("kernels", shortened(table(report)))
    parts += section("not fused or not parallel", shortened(refusals(report)))
    parts += section("copies between devices", shortened(report.copies))
    parts += section("recordings", shortened(report.recordings))
    parts += section("timings", timings(report))
    more = "more: .full(), .save('report.html'), and .graph .loops .kernels .procs .source .wrapper .guards .memory"
    return "\n".join([*parts, more if report.parts else "more: .full()", ""])


def full(report: Any) -> str:
    """The page without its limits; also guards, specialisations, memory and every level."""
    parts = [*head(report), ""]
    parts += section("Python runs here", breaks(report))
    parts += section("later calls run these compiled, with Python between", report.pieces)
    parts += section("loops and branches", regions(report))
    parts += section(ANEW, report.replans)
    parts += section("guards: what a call must be like for this program", report.guards)
    parts += section(MADE, made_for(report))
    parts += section(FITTED_NONE, recompiles(report))
    parts += section(RACES, report.races)
    parts += section("recordings", report.recordings)
    parts += section("costs", table(report))
    parts += section("memory", str(report.memory).splitlines())
    parts += section("timings", timings(report))
    for level in LEVELS:
        if text := short(report, report.every_text(level).rstrip("\n")):
            parts += section(level, text.split("\n"))
    if report.rewritten:
        parts += section("as captured", report.rewritten.split("\n"))
    return "\n".join(parts)


def head(report: Any) -> list[str]:
    return [f"{report.name}{report.place and ', '}{report.place}", *(f"  {line}" for line in verdict(report))]


def verdict(report: Any) -> list[str]:
    """Lines about the account of calls, the outcome of the call, and that of later calls."""
    lines = [report.economy] if report.economy else []
    if report.error is not None:
        lines.append(f"raised {report.error}")
    if report.plain is not None:
        hint = reason_of(report.plain).hint
        return [*lines, f"runs in NumPy: {report.plain}", *([f"  -> {hint}"] if hint else [])]
    lines += report.unused
    if report.guards or not report.breaks:
        if report.error is not None and not report.parts:
            return lines
        kernels, calls = plural(report.kernels_count, "kernel"), plural(report.externs_count, "library call")
        lines.append(f"compiled whole, no Python between: {kernels}, {calls}")
        if report.why_host:
            lines.append(f"runs on the CPU: {report.why_host}")
        if report.approximate:
            lines.append(f"within 4 ULP of NumPy: {', '.join(report.approximate)}")
        return lines
    count = plural(len(report.breaks), "break")
    if report.programs == 0:
        lines.append(f"nothing is compiled, Python does all of it: {count}")
    else:
        lines.append(f"in {plural(report.programs, 'compiled piece')}, with Python between: {count}")
    if report.later is not None:
        lines.append(f"later calls like it run in NumPy: {report.later}")
    return lines


def breaks(report: Any) -> list[str]:
    """Each break once, with its line, its source and advice."""
    counted = Counter((b.file, b.line, b.reason) for b in report.breaks)
    lines = []
    for (file, line, reason), count in counted.items():
        times = f" ({count} times)" if count > 1 else ""
        row = reason_of(reason)
        lines += with_source(report, f"{file}:{line}: {reason}{times}")
        lines += [f"    -> {row.hint} ({row.page})"] if row.hint else []
    return lines


def made_for(report: Any) -> list[str]:
    return [f"{k}. {why}" for k, why in enumerate(report.specializations, 1)]


def recompiles(report: Any) -> list[str]:
    """The guards that failed, and advice after the last of each family."""
    last = {reason_of(why): k for k, why in enumerate(report.recompiles)}
    lines = []
    for k, why in enumerate(report.recompiles):
        row = reason_of(why)
        lines += [why, *([f"    -> {row.hint} ({row.page})"] if row.hint and last[row] == k else [])]
    return lines


def regions(report: Any) -> list[str]:
    """Loops and branches with their outcomes. Advice that a break has is not repeated."""
    reported = {reason_of(b.reason).hint for b in report.breaks} | {""}
    lines = []
    for region in sorted(report.outcomes):
        row = reason_of(region.reason)
        lines += with_source(report, str(region))
        lines += [] if row.hint in reported else [f"    -> {row.hint} ({row.page})"]
        reported.add(row.hint)
    return lines


def table(report: Any) -> list[str]:
    """Kernels with their lines, bytes, operations and times. Kernels of the same lines and counts have one row, with
    the sum of their times.
    """
    rows = [row_of_equal(report, costs) for costs in equal_kernels(report)]
    if not rows:
        return []
    titles = ("", "lines", "reads", "writes", "operations", "time")
    rows = [titles, *rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(titles))]
    made = []
    for row in rows:
        texts = [text.ljust(w) if k < 2 else text.rjust(w) for k, (text, w) in enumerate(zip(row, widths))]
        made.append("  ".join(texts).rstrip())
    if report.why_not_measured is not None:
        made.append(f"not timed: {report.why_not_measured}")
    return made


def equal_kernels(report: Any) -> list[list[Cost]]:
    """Groups of kernels of the same lines and counts, in order of the first of each."""
    equal: dict[tuple[Any, ...], list[Cost]] = {}
    for cost in report.costs:
        equal.setdefault((cost.call, cost.nests, *cells(report, cost)[1:5]), []).append(cost)
    return list(equal.values())


def refusals(report: Any) -> list[str]:
    """Why loops are not fused or not parallel, by lines instead of names. Equal texts are one row, with their number."""
    counted = Counter(without_names(why) for why in report.apart)
    return [f"{why} (×{count})" if count > 1 else why for why, count in counted.items()]


def without_names(why: str) -> str:
    """A refusal in which buffers and loops that have lines are named by them: `line 8 and lines 9-10 are not fused: ...`."""
    why = STORED.sub(lambda match: stored_in_place(*match.groups()), why)
    why = re.sub(r"\bthe iterations of t\d+ \((lines? [^)]*)\)", r"the iterations of the loop at \1", why)
    why = re.sub(r"\b(?:t|buf)\d+ \((lines? [^)]*)\)", r"\1", why)
    return re.sub(r"^(lines? .*) and \1 are", r"two loop nests of \1 are", why)


STORED = re.compile(r"^\w+(?: \((lines? [^)]*)\))? is stored where \w+(?: \((lines? [^)]*)\))? was$")


def stored_in_place(later: str | None, earlier: str | None) -> str:
    """The words for a buffer that reuses the memory of another one. Each has the lines that compute it, if they are known."""
    return f"{later and f'the result of {later}' or 'a later result'} is stored where {earlier and f'that of {earlier}' or 'an earlier one'} was"


def row_of_equal(report: Any, costs: list[Cost]) -> tuple[str, ...]:
    """The row of kernels that differ in their names and times only: `k0 ×5`."""
    first, *others = costs
    row = cells(report, first)
    if not others:
        return row
    times = [cost.seconds for cost in costs]
    total = None if None in times else sum(seconds or 0 for seconds in times)
    return (f"{first.name} ×{len(costs)} {first.call}".rstrip(), *row[1:5], time_text(total))


def cells(report: Any, cost: Cost) -> tuple[str, ...]:
    name = f"{cost.name} {cost.call}".rstrip()
    counts = (size_text(cost.read), size_text(cost.written), count_text(cost.operations))
    most, each = "<=" if cost.is_most else "", " an iteration" if cost.is_per_iteration else ""
    shown = [text if text in ("?", "0", "0 B") else most + text + each for text in counts]
    return (name, lines_text(report, cost), *shown, time_text(cost.seconds))


def lines_text(report: Any, cost: Cost) -> str:
    """`3-5, 9` for the function's own file, with the file name for others."""
    own = report.place.rpartition(":")[0]
    parts = []
    for file, numbers in lines_by_file(cost).items():
        name = "" if file == own else f"{os.path.basename(file)}:"
        parts.append(name + ranges(numbers))
    return ", ".join(parts)


def lines_by_file(cost: Cost) -> dict[str, list[int]]:
    """The lines that a kernel computes, in order."""
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(set(cost.places)):
        by_file.setdefault(file, []).append(line)
    return by_file


def ranges(numbers: list[int]) -> str:
    """`3-5, 9`."""
    return ", ".join(f"{n}" if count == 1 else f"{n}-{n + count - 1}" for n, count in runs_of(numbers))


def plural_lines(text: str) -> str:
    return f"line{'s' if re.search('[-,]', text) else ''} {text}"


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """Starts and lengths of runs of neighbours."""
    runs: list[tuple[int, int]] = []
    for n in numbers:
        if runs and n == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((n, 1))
    return runs


def scaled(value: float, units: str, step: float = 1000) -> str:
    """A number with a unit, so that it has few digits."""
    names = units.split("|")
    while value >= step and len(names) > 1:
        value, names = value / step, names[1:]
    return f"{value:.3g} {names[0]}".rstrip() if value < 100 else f"{value:.0f} {names[0]}".rstrip()


def size_text(count: float | None) -> str:
    return "?" if count is None else scaled(count, "B|KB|MB|GB|TB")


def count_text(count: float | None) -> str:
    return "?" if count is None else scaled(count, "|K|M|G|T")


def time_text(seconds: float | None) -> str:
    return "" if seconds is None else scaled(seconds * 1e6, "us|ms|s")


def timings(report: Any) -> list[str]:
    """The time that compiling took."""
    times = {k: v for k, v in report.timings.items() if k.endswith("_ms")}
    if report.guards and not report.costs:
        return ["nothing was compiled: the result was computed while the function was traced"]
    if report.timings.get("reused") and report.programs:
        return ["nothing was compiled: this process had the graph already"]
    if not times:
        return []
    words = {"capture": "tracing the function", "compile": "the C compiler"}
    if report.breaks:
        words["capture"] = "the call: tracing, its compiled pieces, and Python between"
    if report.timings.get("from_cache"):
        words["compile"] = "the disk cache, which had the kernels"
    own = times.pop("total_ms", 0.0) - times.get("compile_ms", 0.0)
    lines = []
    for name in ("capture", "compile"):
        if f"{name}_ms" in times:
            lines.append(f"{times[f'{name}_ms']:8.1f} ms  {words[name]}")
    if own > 0:
        lines.append(f"{own:8.1f} ms  from the graph to kernels")
    if times.get("build_ms"):
        lines.append(f"{times['build_ms']:8.1f} ms  estimated for compiling, before the build")
        lines.append(f"{times['plain_ms']:8.3g} ms  estimated for the call in NumPy")
    return lines


def short(report: Any, text: str) -> str:
    """Objects in the function's own file without its folder; each once per line."""
    folder = os.path.dirname(report.place.rpartition(":")[0])
    if folder:
        text = text.replace(f"@{folder}{os.sep}", "@")
    return re.sub(r"((?: @\S+:\d+)+)$", each_once, text, flags=re.M)


def with_source(report: Any, text: str) -> list[str]:
    """A text that begins with file:line, followed by that line of the file."""
    found = re.match(r"(.+?):(\d+):", text)
    source = linecache.getline(found[1], int(found[2])).strip() if found else ""
    if found and report.place.startswith(found[1] + ":"):
        text = f"line {found[2]}{text[found.end() - 1 :]}"
    return [text, "    " + source] if source else [text]


def shortened(lines: list[str]) -> list[str]:
    """The lines, limited to the length of a section."""
    if len(lines) <= MAX_LINES:
        return lines
    return [*lines[: MAX_LINES - 1], f"... and {len(lines) - MAX_LINES + 1} lines more: .full()"]


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A heading and its lines, when there are any."""
    body = ["  " + line if line else line for line in lines]
    return [f"{title}:", *body, ""] if body else []


def each_once(places: re.Match[str]) -> str:
    """Objects at the end of a line, without those of earlier lines."""
    return "".join(" " + place for place in dict.fromkeys(places[1].split()))


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
