"""The processors that this process may use: its mask, and the quota of its control groups (cgroup v1 and v2)."""

from __future__ import annotations

import functools
import math
import os

GROUPS = "sys/fs/cgroup"


@functools.cache
def quota(root: str = "/") -> float:
    """Processors whose time the control groups of this process grant; infinity if they limit nothing. root: of the file system."""
    least = math.inf
    for line in text_of(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, kinds, path = (line.split(":", 2) + ["", ""])[:3]
        if kinds and "cpu" not in kinds.split(","):
            continue
        folder = os.path.join(root, GROUPS, kinds)
        least = min(least, granted(folder))
        for part in filter(None, path.split("/")):
            folder = os.path.join(folder, part)
            least = min(least, granted(folder))
    return least


def granted(folder: str) -> float:
    """Processors that one control group grants."""
    limit = text_of(os.path.join(folder, "cpu.max")).split()
    limit = limit or [text_of(os.path.join(folder, f"cpu.cfs_{name}_us")).strip() for name in ("quota", "period")]
    try:
        share = int(limit[0]) / int(limit[1])
    except (ValueError, IndexError, ZeroDivisionError):  # "max", or no such file
        return math.inf
    return share if share > 0 else math.inf


def text_of(path: str) -> str:
    """The contents of a file, or nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def count() -> float:
    """Processors that this process may use at a time."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(known, quota())
