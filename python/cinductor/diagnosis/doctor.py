"""Describes this machine for a bug report: `python -m cinductor doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import __version__, _core, cache
from ..compile import compile

WIDTH = 12


def row(name: str, text: str) -> str:
    """A line of the report; further lines of its text are indented below."""
    return f"{name:{WIDTH}}" + text.replace("\n", "\n" + " " * WIDTH)


def compiler() -> str:
    """The C compiler for kernels, with its version; or the names that were searched."""
    variable = os.environ.get("CC", "").split()[:1]
    tried = [*variable, "cc", "gcc", "clang"]
    path = next(filter(None, map(shutil.which, tried)), None)
    if path is None:
        source = "$CC first" if variable else "$CC is not set"
        return f"not found: {', '.join(tried)} ({source}) on PATH={os.environ.get('PATH', '')}"
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path}: {error}"
    return f"{path}: {(done.stdout or done.stderr).strip().partition(chr(10))[0]}"


def disk_cache() -> str:
    """The folder for kernels, and whether it can be written."""
    found = cache.info()
    folder = found["directory"]
    if not folder:
        return "none: no folder can be written to"
    state = "can be written to" if os.access(folder, os.W_OK) else "CANNOT be written to"
    size = found["bytes"] / 1e6
    if found["serves_alone"]:
        state += "; usable without a compiler"
    return f"{folder}: {found['entries']} kernels, {size:.1f} MB; {state}"


def processor() -> str:
    """The name of the CPU and the instruction sets by which NumPy's loops and kernels are selected."""
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    levels = [name for name in ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2", "ASIMD") if features.get(name)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {' '.join(levels) or 'no vector extension'}; {cores} cores may be used"


def functions() -> str:
    """For each elementary function and dtype: whose code runs, and whether its bits are NumPy's."""
    found: dict[str, list[str]] = {}
    for name, char, way, source in _core.functions():
        text = {"vectors": f"vectors ({source})", "own": "OWN, within 4 ULP"}.get(way, way)
        found.setdefault(name, []).append(f"{np.dtype(char).name} {text}")
    rows = [f"{name:17}{'; '.join(ways)}" for name, ways in found.items()]
    said = 'NumPy\'s bits, except those marked OWN, which numerics="exact" leaves to NumPy, too'
    ways_said = "table: a value for each operand; vectors (X): cinductor's code, with the bits of X; NumPy's loop: NumPy is called"
    return "\n".join([said, ways_said, *rows])


def prove(log2_points: int = 32) -> Iterator[tuple[str, int, int]]:
    """Compare vectors with NumPy's loops: (function, operands, blocks of 512 that differ) of each.

    All 2^32 operands of a function of one float32, or 2^log2_points of them, and random ones of others. The
    results are kept in the disk cache, and later processes use vectors only if no operand differs.
    """
    for name, char, way, _ in _core.functions():
        if way != "vectors":
            continue
        is_whole = char == "f" and getattr(np, name).nin == 1
        points = 1 << (log2_points if is_whole else min(log2_points, 26))
        step = (1 << 32) // points if is_whole else 0
        most = min(1 << 13, points // 512)
        starts = range(0, points // 512, most)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = pool.map(
                lambda k: _core.check_function(name, char, k * 512 * step if step else k + 1, step, most)[0],  # noqa: B023
                starts,
            )
            found = sum(done)
        _core.note_proof(name, char, points, not found)
        yield f"{name} of {np.dtype(char).name}", points, found


RIGHT = "right"


def a_kernel(x: Any) -> Any:
    """A program of one kernel."""
    return (x * 2 + 1).sum()


def trial() -> str:
    """Run one kernel with the C backend. Returns RIGHT if it gives NumPy's result, else what happened."""
    x = np.linspace(0, 1, 1000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast: Any = compile(a_kernel, backend="c", mode="now", options={"cache": False})
        try:
            result = fast(x)
        except Exception as error:
            return f"FAILED: {type(error).__name__}: {error}"
    said = "".join(f"\n{warning.message}" for warning in caught)
    if caught or not any(made.program.backend == "cpu:c" for made in fast.specializations):
        return f"the C backend did not run{said and f':{said}'}"
    return RIGHT if result == a_kernel(x) else "WRONG"


def report() -> tuple[str, bool]:
    """All rows as text, and whether the C backend works."""
    made_of = f"cinductor {__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}"
    rows = [
        row("versions", f"{made_of}, {platform.platform()}"),
        row("processor", processor()),
        row("compiler", compiler()),
        row("cache", disk_cache()),
    ]
    for device, name, doc, why_not in _core.backends():
        rows.append(row(f"{name}", f"{device}: {why_not or 'can be used'} ({doc})"))
    rows.append(row("functions", functions()))
    found = trial()
    rows.append(row("a kernel", found))
    return "\n".join(rows), found == RIGHT
