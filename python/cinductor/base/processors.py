"""The processors that this process may use: its mask, and the quota of its control groups (cgroup v1 and v2)."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator

from .signals import pass_on


@functools.cache
def quota(root: str = "/") -> float:
    """Processors whose time the control groups of this process grant; infinity if they limit nothing. root: of the file system."""
    return min(map(granted, folders_of_groups(root)), default=math.inf)


def folders_of_groups(root: str) -> Iterator[str]:
    """The folders of control groups around this process that may limit its time, as they are mounted: cgroups(7)."""
    paths = {}
    for line in text_of(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, kinds, path = (line.split(":", 2) + ["", ""])[:3]
        paths.update(dict.fromkeys(kinds.split(","), path))
    for line in text_of(os.path.join(root, "proc/self/mountinfo")).splitlines():
        fields, _, system = line.partition(" - ")
        place, (kind, *_, options) = fields.split(), system.split() or ("", "")
        name = {"cgroup2": "", "cgroup": "cpu"}.get(kind, "none")
        if name not in paths or name not in ("", *options.split(",")):
            continue
        folder = os.path.join(root, place[4].lstrip("/"))
        yield folder
        for part in filter(None, paths[name].removeprefix(place[3].rstrip("/")).split("/")):
            folder = os.path.join(folder, part)
            yield folder


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
    except (OSError, ValueError) as error:
        pass_on(error)
        return ""


def count() -> float:
    """Processors that this process may use at a time."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(known, quota())
