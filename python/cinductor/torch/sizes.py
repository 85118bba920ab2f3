"""Converts torch's SymInts (sympy expressions) to texts of the core's expressions and symbols."""

from __future__ import annotations

import hashlib
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, statically_known_true
from torch.utils._sympy.functions import Max
from torch.utils._sympy.value_ranges import bound_sympy

from .values import Refused

LIKELY = 1024  # a size that data decide
# Ints that are made of floats, by the name of the sympy class, with the core's op that rounds.
ROUNDED = {"TruncToInt": "trunc", "FloorToInt": "floor", "CeilToInt": "ceil", "RoundToInt": "rint"}


class UnknownSize(Refused):
    """A size has no form in the core, or a decision needs one that only data give."""


def text_of(size: Any) -> int | str:
    """A size as the Builder takes it: an int, or the text of an expression."""
    if isinstance(size, torch.SymInt):
        size = size.node.expr
    if isinstance(size, sympy.Basic):
        return int(size) if size.is_Integer else expression(size)
    return int(size)


def expression(e: Any) -> str:
    """The text of a sympy expression of sizes."""
    name = type(e).__name__
    if e.is_Integer:
        return str(int(e))
    if e.is_Symbol or name in ROUNDED:
        return name_of(e)
    args = [expression(a) for a in e.args]
    if e.is_Add:
        return "(" + " + ".join(args) + ")"
    if e.is_Mul:
        return "*".join(args)
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "*".join([args[0]] * int(e.exp))
    if name in ("FloorDiv", "CleanDiv"):
        return f"(({args[0]})//({args[1]}))"
    if name in ("Mod", "PythonMod"):
        return f"(({args[0]}) % ({args[1]}))"
    if name == "ModularIndexing":
        return f"((({args[0]})//({args[1]})) % ({args[2]}))"
    if name in ("Max", "Min"):
        text = args[0]
        for other in args[1:]:
            text = f"{name.lower()}({text}, {other})"
        return text
    raise UnknownSize(f"a size is {e}, which has {name}")


def name_of(e: Any) -> str:
    """The core's name of a symbol, or of an int that is made of a float: the core has no arithmetic of floats in sizes."""
    return str(e.name) if e.is_Symbol else f"rounded_{hashlib.sha256(str(e).encode()).hexdigest()[:8]}"


def symbols_of(size: Any) -> list[Any]:
    """The symbols of a size or number, and the ints made of floats in it, inner ones first. A symbol that only such an int depends on is not among them."""
    e = size.node.expr if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) else size
    if not isinstance(e, sympy.Basic):
        return []
    inner = [] if type(e).__name__ in ROUNDED else [s for a in sorted(e.args, key=str) for s in symbols_of(a)]
    return [*dict.fromkeys(inner), *([e] if e.is_Symbol or type(e).__name__ in ROUNDED else [])]


def decide(condition: Any) -> bool:
    """The truth of a condition on sizes, for all calls of the graph.

    If neither the ranges of the symbols nor torch's guards answer, the sizes of the first call do, and the answer becomes
    a guard of torch's. Sizes for which the guard does not hold get another graph.
    """
    if isinstance(condition, bool):
        return condition
    for answer in (True, False):
        if statically_known_true(condition if answer else torch.sym_not(condition)):
            return answer
    if condition.node.shape_env.frozen:
        raise UnknownSize(f"{condition} is not known")
    try:
        return bool(condition)
    except GuardOnDataDependentSymNode:
        raise UnknownSize(f"data decide {condition}") from None


def is_known(condition: Any) -> bool:
    """True if a condition on sizes holds in all calls of the graph; False if it does not, or if data decide it."""
    try:
        return decide(condition)
    except UnknownSize:
        return False


def is_always(condition: Any) -> bool:
    """True if a condition holds for all values of the symbols, as far as torch knows without a guard."""
    return bool(statically_known_true(condition))


def is_equal(a: Any, b: Any) -> bool:
    """True if two sizes are equal for all values of their symbols, as far as is known without a guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if sympy.expand(_symbolic(a) - _symbolic(b)) == 0:
        return True
    return isinstance(a == b, torch.SymBool) and statically_known_true(a == b)


def are_equal(a: Any, b: Any) -> bool:
    """True if two lists of sizes are equal."""
    return len(a) == len(b) and all(is_equal(x, y) for x, y in zip(a, b, strict=True))


def hint(size: Any) -> int:
    """The value of a size when the graph was captured; of one that data decide, a likely one."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    if size.node.has_hint():
        return int(size.node.hint)
    e = size.node.expr
    return int(e.subs(dict.fromkeys(e.free_symbols, LIKELY)))


def of_elements(stride: Any) -> Any:
    """A stride of a tensor that has elements: torch writes Max(1, size) for its sizes."""
    if not isinstance(stride, torch.SymInt):
        return stride
    return stride.node.expr.replace(lambda e: isinstance(e, Max) and len(e.args) == 2 and e.args[0] == 1, lambda e: e.args[1])


def is_ragged(size: Any) -> bool:
    """True for the size of a nested tensor's axis along which its parts differ in size."""
    return isinstance(size, torch.SymInt) and (size.node.is_nested_int() or (size.node.has_hint() and isinstance(size.node.hint, torch.SymInt)))


def range_text(symbol: Any, env: Any) -> str:
    """`[2, inf)`: the values that a symbol, or an int made of a float, may have."""
    low, high = "0", "inf"
    known = None if env is None else env.var_to_range.get(symbol) if symbol.is_Symbol else bound_sympy(symbol, env.var_to_range)
    if known is not None:
        low = str(int(known.lower)) if known.lower.is_Integer and int(known.lower) > -(2**40) else "-inf"
        high = str(int(known.upper) + 1) if known.upper.is_Integer and int(known.upper) < 2**40 else "inf"
    return f"[{low}, {high})"


def _symbolic(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)
