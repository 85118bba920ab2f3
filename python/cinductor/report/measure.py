"""Times the kernels of a program by running it again, and measures the peak performance of this machine."""

from __future__ import annotations

import functools
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..base.records import NamedTuple
from ..compile import compile

if TYPE_CHECKING:
    from .costs import Cost

BUDGET = 0.02  # seconds for runs after the first
FEW, MAX_RUNS = 3, 20
MANY = 1000  # operations of a graph whose texts take long to make
LONG = 1.0  # seconds of a call that is not repeated unless requested
NOT_REPEATED = (
    "a piece that changes something, draws random numbers, takes long or runs on a device is not repeated; cinductor.profile() times each piece"
)


def why_not(specialization: Any, timings: dict[str, Any], seconds: float) -> str | None:
    """The reason why a call that takes this long cannot be repeated for timing, or None."""
    if seconds > LONG:
        return f"the call took {seconds:.1f} s; report.measure(*args) makes it again"
    if timings.get("nodes", 0) > MANY:
        return f"it has {timings['nodes']} operations; report.measure(*args) times them"
    if any(kind == "call" for kind, *_ in specialization.recipe):
        return "it changes objects of its caller; report.measure(*args) does so again"
    program = json.loads(specialization.program.text("json"))
    if any("written" in buffer for buffer in program["buffers"]):
        return "it writes to what it is given; report.measure(*args) does so again"
    if any(line.get("name", "").startswith("draw_") for line in program["lines"]):
        return "it draws random numbers; report.measure(*args) draws more"
    return None


def times(call: Any, program: Any) -> dict[tuple[str, int], float] | None:
    """Seconds of each kernel ("k") and library call ("e") in one call: the minimum of several. None if the program
    cannot be observed, or did not run.
    """
    runs: list[dict[tuple[str, int], float]] = []

    def note(letter: str, number: int, began: int, ended: int) -> None:
        runs[-1][letter, number] += (ended - began) / 1e9

    if not program.observe(note):
        return None
    try:
        began = time.perf_counter()
        least, long = 1, began + LONG / FEW
        while len(runs) < least or (time.perf_counter() < began + BUDGET and len(runs) < MAX_RUNS):
            runs.append(defaultdict(float))
            call()
            least = FEW if time.perf_counter() < long else 1
    finally:
        program.observe(None)
    answered = [run for run in runs if run]
    if not answered:
        return None
    return {key: min(run.get(key, 0.0) for run in answered) for key in answered[0]}


class Pieces:
    """Times the programs between breaks, when the call that is explained runs them. A call without breaks is timed by
    repeating it.
    """

    def __init__(self) -> None:
        self.seconds: dict[Any, dict[tuple[str, int], float]] = {}  # by program

    def __call__(self, tracer: Any, program: Any, seconds: float, run_again: Any) -> None:
        is_short = seconds <= LONG and tracer.info.get("nodes", 0) <= MANY
        if tracer.breaks and is_short and program not in self.seconds:
            self.seconds[program] = times(run_again, program) or {}


class Ceilings(NamedTuple):
    """The measured peak performance: bytes and float64 operations per second."""

    bandwidth: float
    operations: float


def add(a: Any, b: Any, out: Any) -> None:
    out[:] = a + b


def multiply_and_add(x: Any) -> Any:
    a, b, c, d = x, x + 0.25, x + 0.5, x + 0.75
    for _ in range(8):
        a, b, c, d = a * 0.99 + 0.01, b * 0.98 + 0.02, c * 0.97 + 0.03, d * 0.96 + 0.04
        a, b, c, d = a * 0.95 + 0.05, b * 0.94 + 0.06, c * 0.93 + 0.07, d * 0.92 + 0.08
    return a + b + c + d


def reached(found: Ceilings | None, kernels: Sequence[Cost]) -> Ceilings | None:
    """The ceilings, of which that of arithmetic is not below the fastest kernel: other programs may have run while it was measured."""
    if found is None:
        return None
    speeds = [cost.operations / cost.seconds for cost in kernels if cost.operations and cost.seconds and not cost.is_per_iteration]
    return found._replace(operations=max([found.operations, *speeds]))


SIDE = 384
PER_ELEMENT = 3 + 8 * 16 + 3  # operations per element of that function


@functools.cache
def ceilings() -> Ceilings | None:
    """The peak performance, measured once per process by kernels of cinductor and a product of NumPy; None without a
    C compiler.
    """
    if any(row[1] == "c" and row[3] for row in _core.backends("cpu")):
        return None
    large, small = np.ones(1 << 22), np.linspace(0, 1, 1 << 18)
    out = np.empty_like(large)
    moving, computing = (compile(fn, dynamic=False, mode="now") for fn in (add, multiply_and_add))
    moved = 3 * large.nbytes / least_of(lambda: moving(large, large, out))
    done = PER_ELEMENT * small.size / least_of(lambda: computing(small))
    square = small[: SIDE * SIDE].reshape(SIDE, SIDE)
    product = 2 * SIDE**3 / least_of(lambda: square @ square)
    return Ceilings(moved, max(done, product))


def least_of(call: Any) -> float:
    """Seconds of the fastest call after the first."""
    call()
    found = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)
