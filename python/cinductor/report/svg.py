"""Drawings of a report, as SVG: a roofline, memory over time, bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..base.records import NamedTuple
from .measure import Ceilings
from .page import scaled, size_text, time_text

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 26, 42


class Dot(NamedTuple):
    """A kernel in the roofline: operations per byte and operations per second."""

    name: str
    color: int
    intensity: float
    speed: float


def text(x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(words)}</text>'


def line(points: Sequence[tuple[float, float]], style: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" class="{style}"/>'


def drawing(parts: Sequence[str], title: str, height: float = HEIGHT) -> str:
    inside = "".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{inside}</svg>"
    )


class LogAxis:
    """A logarithmic axis between two powers of ten, over this many pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        self.low, self.high = math.floor(low - 0.15), math.ceil(high + 0.15)
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        step = max(1, (self.high - self.low) // 6)
        return [10.0**k for k in range(self.low, self.high + 1, step)]


def roofline(dots: Sequence[Dot], ceilings: Ceilings | None) -> str:
    """Operations per second over operations per byte, below the machine's peak."""
    speeds, intensities = [dot.speed for dot in dots], [dot.intensity for dot in dots]
    if ceilings:
        speeds += [ceilings.operations]
        intensities += [ceilings.operations / ceilings.bandwidth]
    x = LogAxis(intensities, LEFT, WIDTH - RIGHT)
    y = LogAxis(speeds, HEIGHT - BOTTOM, TOP)
    parts = []
    for value in x.ticks:
        parts += [line([(x.at(value), TOP), (x.at(value), HEIGHT - BOTTOM)], "axis")]
        parts += [text(x.at(value), HEIGHT - BOTTOM + 15, f"{value:g}")]
    for value in y.ticks:
        parts += [line([(LEFT, y.at(value)), (WIDTH - RIGHT, y.at(value))], "axis")]
        parts += [text(LEFT - 6, y.at(value) + 4, scaled(value, "|K|M|G|T"), "end")]
    parts += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "operations for each byte")]
    parts += [text(8, 12, "operations a second", "start")]
    if ceilings:
        parts += roofs(x, y, ceilings)
    circles = [(x.at(dot.intensity), y.at(dot.speed)) for dot in dots]
    taken = [(cx - 6, cy - 6, cx + 6, cy + 6) for cx, cy in circles]
    for dot, (cx, cy) in sorted(zip(dots, circles, strict=True), key=lambda pair: pair[1][1]):
        title = f"{dot.name}: {scaled(dot.speed, '|K|M|G|T')} operations a second, {dot.intensity:.3g} for each byte"
        parts += [f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="5.5" class="dot k{dot.color}"><title>{escape(title)}</title></circle>']
        parts += label(dot.name, cx, cy, taken)
    return drawing(parts, "roofline: speed of kernels below the ceilings of this machine")


def label(name: str, cx: float, cy: float, taken: list[tuple[float, float, float, float]]) -> list[str]:
    """The name of a dot at the nearest free position to its right or left, with a line to the dot if it is not next to it.

    taken: boxes of dots and labels (left, top, right, bottom), to which the label's is added. Without a free position there is no label.
    """
    wide = 7.5 * len(name)
    for shift in (0, -13, 13, -26, 26, -39, 39, -52, 52):
        for side in (1, -1) if cx < WIDTH - 80 else (-1, 1):
            left = cx + 9 if side > 0 else cx - 9 - wide
            box = (left, cy + shift - 6, left + wide, cy + shift + 6)
            inside = box[0] > LEFT and box[2] < WIDTH and box[1] > TOP - 8 and box[3] < HEIGHT - BOTTOM
            if inside and all(box[0] >= b[2] or b[0] >= box[2] or box[1] >= b[3] or b[1] >= box[3] for b in taken):
                taken.append(box)
                leader = [line([(cx, cy), (cx + 8 * side, cy + shift)], "axis")] if shift else []
                return [*leader, text(cx + 9 * side, cy + shift + 4, name, "start" if side > 0 else "end", "strong")]
    return []


def roofs(x: LogAxis, y: LogAxis, ceilings: Ceilings) -> list[str]:
    """The two ceilings: bandwidth up to the ridge, arithmetic after it."""
    low, high = 10.0**x.low, 10.0**x.high
    ridge = ceilings.operations / ceilings.bandwidth
    begin = max(low, 10.0**y.low / ceilings.bandwidth)
    slope = [(x.at(begin), y.at(begin * ceilings.bandwidth))] if begin < ridge else []
    flat = y.at(ceilings.operations)
    return [line([*slope, (x.at(ridge), flat), (x.at(high), flat)], "roof")]


def memory(steps: Sequence[tuple[str, int]], peak_at: int) -> str:
    """Live bytes after each step, with the peak marked."""
    top = max(live for _, live in steps) or 1
    width = (WIDTH - LEFT - RIGHT) / len(steps)
    base = HEIGHT - BOTTOM
    heights = [base - live / top * (base - TOP - 14) for _, live in steps]
    points: list[tuple[float, float]] = [(LEFT, base)]
    for k, height in enumerate(heights):
        points += [(LEFT + k * width, height), (LEFT + (k + 1) * width, height)]
    points.append((WIDTH - RIGHT, base))
    parts: list[str] = []
    for part in (0.0, 0.5, 1.0):
        at = base - part * (base - TOP - 14)
        parts += [line([(LEFT, at), (WIDTH - RIGHT, at)], "axis"), text(LEFT - 6, at + 4, size_text(top * part), "end")]
    parts.append(line(points, "area"))
    middle = LEFT + (peak_at + 0.5) * width
    anchor = "start" if middle < LEFT + 150 else "end" if middle > WIDTH - 170 else "middle"
    parts += [line([(middle, base), (middle, heights[peak_at])], "peak")]
    words = f"peak {size_text(top)}: {steps[peak_at][0]}"
    parts += [text(middle, heights[peak_at] - 6, words, anchor, "peak")]
    return drawing([*parts, *under(steps, width, base)], "memory over the steps of a call")


def under(steps: Sequence[tuple[str, int]], width: float, base: float) -> list[str]:
    """The names of the steps, as many as fit."""
    runs = [(k, what) for k, (what, _) in enumerate(steps) if " " not in what]
    parts, end = [], 0.0
    for k, what in runs:
        at = LEFT + (k + 0.5) * width
        if at - 4 * len(what) > end:
            parts.append(text(at, base + 15, what))
            end = at + 4 * len(what)
    return parts


def bars(rows: Sequence[tuple[str, float]], unit: float = 1e-3) -> str:
    """A bar for each stage, with its time; values are in units of this many seconds."""
    top = max(value for _, value in rows) or 1
    height, left = 22, 170
    parts = []
    for k, (name, value) in enumerate(rows):
        y = 8 + k * height
        wide = max(value / top * (WIDTH - left - 90), 1)
        parts += [text(left - 8, y + 12, name, "end")]
        parts += [f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="15" rx="2" class="k0"/>']
        parts += [text(left + wide + 6, y + 12, time_text(value * unit), "start", "strong")]
    return drawing(parts, "time by stage", 12 + len(rows) * height)
