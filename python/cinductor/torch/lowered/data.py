"""Numbers that data decide, and assertions about them."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..emit import Emitter
from ..sizes import UnknownSize
from ..values import GraphValue, Unmapped
from . import meta
from .view import size_of

RELATIONS = {
    sympy.Eq: "equal",
    sympy.Ne: "not_equal",
    sympy.Lt: "less",
    sympy.Le: "less_equal",
    sympy.Gt: "greater",
    sympy.Ge: "greater_equal",
}


def item(emitter: Emitter, node: torch.fx.Node) -> Any:
    """The number in a tensor: an int becomes a symbol, a float is a value without axes."""
    out, x = meta(node), emitter.env[node.args[0]]
    number = emitter.reshape(x, ())
    if isinstance(out, torch.SymInt) and out.node.expr.is_Symbol:
        emitter.define(out, emitter.cast(number, torch.int64))
        return out
    if isinstance(out, torch.SymFloat) and x.dtype.is_floating_point:
        made = GraphValue(emitter.cast(number, torch.float64).number, torch.float64, (), is_weak=True)
        emitter.name_float(out, made)
        return made
    raise Unmapped(f"data decide a {type(out).__name__}")


def assert_scalar(emitter: Emitter, node: torch.fx.Node) -> None:
    condition = size_of(emitter, node.args[0])
    if isinstance(condition, GraphValue):
        emitter.check(emitter.cast(condition, torch.bool), str(node.args[1]))
    elif isinstance(condition, torch.SymBool):
        emitter.check(truth(emitter, condition.node.expr), str(node.args[1]))
    else:
        emitter.check(emitter.constant(bool(condition), torch.bool), str(node.args[1]))


def truth(emitter: Emitter, e: Any) -> GraphValue:
    """The value of a condition on sizes."""
    if e in (sympy.true, sympy.false):
        return emitter.constant(bool(e), torch.bool)
    if e.func in RELATIONS:
        return emitter.apply(RELATIONS[e.func], [emitter.value(s, torch.int64) for s in e.args])
    if isinstance(e, sympy.Not):
        return emitter.apply("logical_not", [truth(emitter, e.args[0])])
    if isinstance(e, (sympy.And, sympy.Or)):
        op = "logical_and" if isinstance(e, sympy.And) else "logical_or"
        made = truth(emitter, e.args[0])
        for other in e.args[1:]:
            made = emitter.apply(op, [made, truth(emitter, other)])
        return made
    raise UnknownSize(f"a condition is {e}")


def assert_tensor(emitter: Emitter, node: torch.fx.Node) -> None:
    message = str(node.args[1]) if len(node.args) > 1 else "an assertion"
    emitter.check(emitter.value(node.args[0], torch.bool), message)


def nothing(emitter: Emitter, node: torch.fx.Node) -> None:
    """Ranges of symbols, and dtypes and sizes of tensors: torch asserts them apart, and knows them when it compiles."""
