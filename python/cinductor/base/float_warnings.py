"""NumPy's floating-point warnings for flags raised by compiled code.

If the call can be restarted, NumPy runs it and warns. After a side effect or a write to an
argument it cannot. Then the warning is issued at the user's line for an operation of the program that can
raise the flag; if several can, for the likeliest.
"""

from __future__ import annotations

import contextvars
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .class_lookup import is_a

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = 1, 2, 4, 8
# Underflow gives no warning by default.
TEXTS = {
    DIVIDE: ("divide", "divide by zero"),
    OVERFLOW: ("over", "overflow"),
    UNDERFLOW: ("under", "underflow"),
    INVALID: ("invalid", "invalid value"),
}
QUIET = contextvars.Context()  # a context in which NumPy gives no warnings
QUIET.run(np.seterr, all="ignore")
LOGS = "log log2 log10 log1p"
# Operations that can set a flag for operands without it; the first words of a row are likelier.
RAISES = {
    DIVIDE: f"divide {LOGS} power floor_divide remainder fmod reciprocal arctanh",
    OVERFLOW: "exp exp2 expm1 power square multiply sinh cosh divide add subtract sum prod cast",
    UNDERFLOW: "exp exp2 expm1 power square multiply divide",
    INVALID: f"sqrt {LOGS} divide power arcsin arccos arccosh arctanh remainder floor_divide fmod "
    "subtract add multiply sum sin cos tan cast logaddexp logaddexp2 matmul dot einsum",
}
# Operations whose compiled code compares: a NaN, of which NumPy says nothing, sets INVALID there.
COMPARES = frozenset(
    "less less_equal greater greater_equal maximum minimum fmax fmin max min fmax_reduce fmin_reduce argmax argmin sign "
    "isfinite heaviside spacing floor_divide remainder fmod scalar_power arcsin arccos arctan frexp_mantissa frexp_exponent".split()
)
NODE = r"(?m)%\d+: (?!python)[^=]* = (?:extern )?(?:numpy_)?(\w+)\(.*@(.+?):(\d+)(?: quiet (\d+))?$"
DTYPE = r"((?:%|in)\d+): (?:\w+ )?(\w+)\[[^]]*\](?! = frexp_exponent)"  # an exponent is never NaN
CAST = r"(?m)%\d+: (?:\w+ )?[iu]\d+\[.*\] = cast\((\w+|%\d+)\)"  # to an int


def quietly(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call f(...) without NumPy warnings. NumPy's error state is a context variable and f runs in a context of its
    own, so nothing has to be restored, even if a signal ends the call.
    """
    return QUIET.copy().run(f, *args, **kwargs)


def quietened(quiet: int, asked: dict[str, Any]) -> int:
    """The flags that an errstate with these keywords ignores; quiet: those ignored outside of it."""
    for bit, (kind, _) in TEXTS.items():
        how = asked.get(kind) or asked.get("all")
        if how is not None:
            quiet = quiet | bit if how == "ignore" else quiet & ~bit
    return quiet


def reported(flags: int) -> int:
    """The flags for which NumPy would do something that filters do not ignore."""
    return flags & _core.flag_settings()[1]


def give(raised: dict[Any, int], flags: int) -> None:
    """Issue a warning for each of the flags, at an operation of the first program that has raised it and can. raised: the
    flags of each program. Raises if a filter turns a warning into an error.
    """
    asked: dict[str, Any] = {**np.geterr()}
    for bit, (kind, words) in TEXTS.items():
        if not flags & bit or asked[kind] in ("ignore", "log", "print"):
            continue
        found = next(filter(None, (likely_in(program, bit) for program, own in raised.items() if own & bit)), None)
        if found is None:
            continue
        name, file, line = found
        text = f"{words} encountered in {name}"
        if asked[kind] == "raise":
            raise FloatingPointError(text)
        where = globals_of(file)
        registry = where.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            text, RuntimeWarning, file, int(line), where.get("__name__", "<unknown>"), registry
        )


def likely_in(program: Any, bit: int) -> tuple[str, str, str] | None:
    """The operation of a program that most likely raised a flag, as for `likely`."""
    graph = program.text("graph")
    nodes = re.findall(NODE, graph)
    return likely(nodes if bit != INVALID else may_be_invalid(graph, nodes), bit)


def may_be_invalid(graph: str, nodes: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The operations of which NumPy may say that they met an invalid value. Where a NaN may have been compared, these are
    only the casts of floats to ints.
    """
    if COMPARES.isdisjoint(name for name, *_ in nodes):
        return nodes
    dtypes = dict(re.findall(DTYPE, graph))
    are_ints = any(dtypes.get(operand, "i")[0] in "fc" for operand in re.findall(CAST, graph))
    return [node for node in nodes if node[0] == "cast"] if are_ints else []


def likely(nodes: list[tuple[str, ...]], bit: int) -> tuple[str, str, str] | None:
    """The operation that most likely raised a flag, with file and line. None if that is one under an errstate that
    ignores the flag.
    """
    order = RAISES[bit].split()
    meant = [node for node in nodes if node[0] in order]
    if bit == INVALID and not meant:
        return None
    found = min(meant, key=lambda n: (order.index(n[0]), not int(n[3] or 0) & bit), default=("a compiled loop", "?", "1", ""))
    if int(found[3] or 0) & bit:
        return None
    names = {"sum": "reduce", "prod": "reduce"}
    return names.get(found[0], found[0]), found[1], found[2]


def globals_of(file: str) -> dict[str, Any]:
    """The globals of the innermost running function of a file, else those of its module (the function may have
    ended), else new ones.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:
        return frame.f_globals
    spaces = [vars(m) for m in [*sys.modules.values()] if is_a(m, types.ModuleType)]
    return next((space for space in spaces if space.get("__file__") == file), {})
