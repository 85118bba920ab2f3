"""Describes this machine for a bug report: `python -m cinductor doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import warnings

import numpy as np

from . import __version__, _core, cache
from .compile import compile

WIDTH = 12


def row(name: str, text: str) -> str:
    """A line; further lines of its text stand under the first."""
    return f"{name:{WIDTH}}" + text.replace("\n", "\n" + " " * WIDTH)


def compiler() -> str:
    """The C compiler that builds kernels, with its version; or the names that were looked for."""
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
    """Where kernels are kept, and whether they can be."""
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
    """Its name and the instructions that NumPy's loops and kernels choose by."""
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    levels = [name for name in ("X86_V4", "AVX512_SKX", "X86_V3", "AVX2", "ASIMD") if features.get(name)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {' '.join(levels) or 'no vector extension'}; {cores} cores may be used"


def own_functions() -> str:
    """The functions that the default numerics computes by other routines than NumPy's."""
    rows = _core.own_functions()
    names = [f"{name} ({', '.join(np.dtype(c).name for c in types)})" for name, types in rows]
    text = "; ".join(names) if names else "none"
    others = "others have NumPy's: functions of one float16 from tables that NumPy's loops fill, the rest from these loops"
    return f'{text}\nnumerics="exact" leaves them to NumPy, too\n{others}'


RIGHT = "right"


def trial() -> str:
    """Runs one kernel with the C backend: RIGHT if it gives NumPy's result, else what happened."""
    x = np.linspace(0, 1, 1000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = compile(lambda x: (x * 2 + 1).sum(), backend="c", mode="now", options={"cache": False})(x)
        except Exception as error:
            return f"FAILED: {type(error).__name__}: {error}"
    said = "".join(f"\n{warning.message}" for warning in caught)
    if caught:
        return f"the C backend did not run:{said}"
    return RIGHT if result == (x * 2 + 1).sum() else "WRONG"


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
    rows.append(row("own bits", own_functions()))
    found = trial()
    rows.append(row("a kernel", found))
    return "\n".join(rows), found == RIGHT
