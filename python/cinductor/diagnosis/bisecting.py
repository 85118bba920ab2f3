"""Finds the part of the compiler that changes a result, by compiling a function repeatedly with less and less of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..base.user_frame import wrong
from ..compile import for_show, make
from ..errors import AccuracyError
from ..extensions import registering
from ..extensions.passes import list_passes
from ..testing import assert_same, outcome

MOST = 1_000_000_000  # the upper limit of the options
APPROXIMATE_ULP = 4


@dataclass(frozen=True)
class Finding:
    r"""The result of `bisect`.

    Attributes
    ----------
    kind : str
        "none", "lowering", "pass", "fusion", "kernel" or "rest".
    name : str
        Of the pass, the lowering, the groups or the kernel.
    place : str
        The user's line if there is one.
    difference : str
        From NumPy's result, with the whole compiler.
    calls : int
        Number of compiled calls made.
    """

    kind: str
    name: str
    place: str
    difference: str
    calls: int

    def __str__(self) -> str:
        if self.kind == "none":
            return f"nothing differs from NumPy's result ({self.calls} compiled calls)"
        where = f" at {self.place}" if self.place else ""
        what = {
            "rest": "no lowering, pass, fusion or kernel by itself: capture, a needed pass or a nest",
            "fusion": f"the fusion of {self.name}",
        }.get(self.kind, f"the {self.kind} {self.name}")
        return f"{what}{where} changes the result: {self.difference} ({self.calls} compiled calls)"


class Trials:
    """Calls of one function, compiled with additional options."""

    def __init__(self, fn: Any, settings: dict[str, Any], args: Any, kwargs: Any) -> None:
        self.fn, self.settings = fn, settings
        self.args, self.kwargs = args, kwargs
        self.count = 0
        self.texts: list[Any] = []  # of the latest call: its programs
        self.expected = self.called(fn)

    def called(self, fn: Any) -> Any:
        """Result, exception and arguments of a call on copies."""
        args, kwargs = copy.deepcopy((self.args, self.kwargs))
        result, error = outcome(lambda: fn(*args, **kwargs), ())
        return result, error, args, kwargs

    def difference(self, backend: str | None = None, **options: Any) -> str | None:
        """The difference between a compiled call and NumPy. Raises Unsupported if NumPy runs the call."""
        settings = {**self.settings, "options": {**self.settings["options"], **options}}
        settings["backend"] = backend or settings["backend"]
        compiled = make(self.fn, settings, is_users=False)
        job = for_show(compiled)
        self.count += 1
        result, error, args, kwargs = self.called(compiled)
        last = job.last
        if last is None or (last.specialization is None and not last.flushes):
            raise _core.Unsupported(f"bisect: NumPy runs this call: {job.why or 'nothing is compiled'}")
        self.texts = [p for p in (last.program, *job.segments) if p is not None]
        ulp = APPROXIMATE_ULP if any(p.approximate for p in self.texts) else 0
        wanted, wanted_error, wanted_args, wanted_kwargs = self.expected
        try:
            if (type(error), str(error)) != (type(wanted_error), str(wanted_error)):
                raise AccuracyError(f"{error!r} instead of {wanted_error!r}")
            assert_same(result, wanted, ulp)
            assert_same(args, wanted_args, ulp, "arguments")
            assert_same(kwargs, wanted_kwargs, ulp, "arguments")
        except AccuracyError as differs:
            return str(differs)
        return None


def first_bad(most: int, is_bad: Callable[[int], bool]) -> int:
    """The smallest bad number, given that 0 is good and `most` is bad."""
    low, high = 0, 1
    while high < most and not is_bad(high):
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_bad(middle) else (middle, high)
    return high


def find_lowering(trials: Trials) -> tuple[str, str] | None:
    """The registered lowering that causes the difference."""
    rows = [row for row in registering.TABLE.values() if row.kind == "lowering"]
    try:
        for row in rows:
            row.is_on = False
        if not rows or trials.difference() is not None:
            return None
        for row in rows:
            row.is_on = True
            if trials.difference() is not None:
                return row.name, ""
    finally:
        for row in rows:
            row.is_on = True
    return None


def find_pass(trials: Trials) -> tuple[str, str] | None:
    """The first pass after which the result differs."""
    skipped = trials.settings["options"].get("skip_passes", "").replace(",", " ").split()
    passes = [*list_passes(), *list_passes("loops"), *list_passes("procs")]
    names = [p.name for p in passes if not p.is_needed and p.name not in skipped]
    all_off = ",".join([*skipped, *names])
    if trials.difference(skip_passes=all_off) is not None:
        return None
    count = first_bad(
        len(names), lambda n: trials.difference(skip_passes=",".join([*skipped, *names[n:]])) is not None
    )
    return names[count - 1], ""


def find_fusion(trials: Trials) -> tuple[str, str] | None:
    """The first fusion of groups after which the result differs."""
    if trials.difference(fusion_limit=0) is not None:
        return None
    count = first_bad(MOST, lambda n: trials.difference(fusion_limit=n) is not None)
    trials.difference(fusion_limit=count)
    for program in trials.texts:
        found = re.search(rf"^{count}: (.*?)(?:  @(.*))?$", program.text("joins"), re.MULTILINE)
        if found is not None:
            return found[1], found[2] or ""
    return f"pair {count}", ""


def find_kernel(trials: Trials) -> tuple[str, str] | None:
    """The last kernel that the interpreter must run for a correct result."""
    if trials.settings["backend"] == "interp" or trials.difference(interpreted_kernels=MOST) is not None:
        return None
    count = first_bad(MOST, lambda n: trials.difference(interpreted_kernels=n) is None)
    name = f"k{count - 1}"
    for program in trials.texts:
        found = re.search(rf"^ *{name}: .*?(?:  @(\S+:\d+).*)?$", program.text("kernels"), re.MULTILINE)
        if found is not None:
            return name, found[1] or ""
    return name, ""


STEPS = (("lowering", find_lowering), ("pass", find_pass), ("fusion", find_fusion), ("kernel", find_kernel))


def bisect(fn: Any, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Finding:
    """Find the lowering, pass, fusion or kernel that makes the result differ from NumPy's.

    fn is called on copies of the arguments, by NumPy and compiled, a few dozen times, each time with less of the compiler. So it
    should have no side effects except writes to them. Results, exceptions and written arguments are compared bit for bit, or within 4
    ULP if the program has functions that may differ from NumPy's.

    Parameters
    ----------
    fn : callable
        A function, or a compiled one, whose options apply.
    *args, **kwargs
        The arguments of the call.
    options : dict, optional
        As in `compile`.

    Returns
    -------
    Finding
        `kind` is "none" (no difference), "lowering", "pass", "fusion", "kernel" or "rest" (capture, a needed pass or
        lowering). `name`, `place` and `difference` have details, str() everything.

    Raises
    ------
    TypeError
        If fn is not callable.
    """
    if not callable(fn):
        raise TypeError(wrong("bisect", "fn", fn, "a function or another callable"))
    settings: dict[str, Any] = dict.fromkeys(("dynamic", "mode", "backend", "device"))
    settings |= {"fullgraph": False, "options": {}}
    if isinstance(fn, _core.CompiledFunction):
        settings |= fn._cinductor_job.settings  # type: ignore[attr-defined]
        fn = fn.__wrapped__  # type: ignore[attr-defined]
    settings["options"] = {**settings["options"], **(options or {}), "cache": False}
    trials = Trials(fn, settings, args, kwargs)
    difference = trials.difference()
    if difference is None:
        return Finding("none", "", "", "", trials.count)
    for kind, find in STEPS:
        found = find(trials)
        if found is not None:
            return Finding(kind, *found, difference, trials.count)
    return Finding("rest", "", "", difference, trials.count)
