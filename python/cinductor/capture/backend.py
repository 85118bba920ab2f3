"""Which backend a function is compiled with, also where there is no C compiler."""

from __future__ import annotations

import functools

from .. import _core
from ..calls.job import Job
from ..config import user_backend

TOLD: set[str] = set()  # the reason of the warning that there is no C compiler


def choose_backend(job: Job) -> str:
    """The requested backend, or one that needs no compiler if the default one is not available."""
    backend, device = job.settings["backend"], job.settings["device"] or "cpu"
    if user_backend(backend):
        return "interp"  # nothing is built; the user's function runs the graph instead of the interpreter
    if backend is not None or device != "cpu":
        return backend or ""
    why = why_not_available("c")
    if why is None or (job.option("cache") and _core.cache_info()["serves_alone"]):
        return ""  # the disk cache may contain the kernels
    warn_of_no_compiler(job, why)
    return without_compiler(job)


def without_compiler(job: Job) -> str:
    """The fastest backend that needs no compiler: of stencils, if this processor has them."""
    has_stencils = job.option("stencils") and why_not_available("stencil") is None
    return "stencil" if has_stencils else "interp"


def warn_of_no_compiler(job: Job, why: str) -> None:
    """Warn once in a process that there is no C compiler."""
    if not TOLD:
        TOLD.add(why)
        is_interpreted = without_compiler(job) == "interp"
        how = "are run by the interpreter backend, without a speed-up" if is_interpreted else "run on kernels of stencils, which are slower"
        job.warn_once("compiler", f"{job.name} and later functions {how}: {why} (install gcc or clang, or set CC to a C compiler)")


@functools.cache
def why_not_available(backend: str) -> str | None:
    """The reason why a backend is not available. Computed once, because the default one searches for programs."""
    return next((why for _, name, _, why in _core.backends("cpu") if name == backend), None)
