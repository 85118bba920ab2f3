"""torch.cond, while_loop and scan as regions of the core. Their branches and bodies are graphs of their own, emitted into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..emit import Emitter
from ..sizes import decide, text_of
from ..values import GraphValue, Refused, Unmapped
from . import meta
from .data import truth

higher_order = torch.ops.higher_order


def cond(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    condition, *branches, operands = node.args
    given, wanted = _values(emitter, operands), _tensors(meta(node))
    test = _truth(emitter, emitter.env[condition] if isinstance(condition, torch.fx.Node) else condition)
    blocks = [emitter.block([], lambda _, branch=branch: _made(emitter, branch, given, wanted)) for branch in branches]
    return emitter.region("if", [test], blocks, wanted)


def while_loop(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    condition, body, start, more = node.args
    carried, given, wanted = _copies(emitter, start), _values(emitter, more), _tensors(meta(node))
    return emitter.repeat(
        carried,
        lambda values: _truth(emitter, _run(emitter, condition, values + given)[0]),
        lambda values: _made(emitter, body, values + given, wanted),
    )


def scan(emitter: Emitter, node: torch.fx.Node) -> list[GraphValue]:
    """Each iteration takes one element of each operand along axis 0, and stores one of each stacked result."""
    body, init, xs, more = node.args
    carried, operands, given, wanted = _copies(emitter, init), _values(emitter, xs), _values(emitter, more), _tensors(meta(node))
    n, count = len(carried), operands[0].sizes[0] if operands else 0
    if decide(count == 0):
        raise Unmapped("a scan of nothing")
    stacked = [emitter.copy(emitter.expand(emitter.constant(0, w.dtype), w.sizes)) for w in wanted[n:]]
    each = wanted[:n] + [GraphValue(-1, w.dtype, w.sizes[1:]) for w in wanted[n:]]

    def step(values: list[GraphValue]) -> list[GraphValue]:
        number, before, rows = emitter.cast(values[0], torch.int64), values[1 : 1 + n], values[1 + n :]
        taken = [emitter.put("gather", [x, number], x.dtype, x.sizes[1:], axes=[0]) for x in operands]
        made = _made(emitter, body, before + taken + given, each)
        stored = [emitter.put("scatter", [r, r, v, number], r.dtype, r.sizes, axes=[0]) for r, v in zip(rows, made[n:], strict=True)]
        return made[:n] + stored

    block = emitter.block(carried + stacked, step, has_number=True)
    return emitter.region("for", carried + stacked, [block], wanted, text_of(count), f"t{block}")


LOWERINGS = {higher_order.cond: cond, higher_order.while_loop: while_loop, higher_order.scan: scan}


def _values(emitter: Emitter, given: Sequence[Any]) -> list[Any]:
    """The operands of a branch or body: values, sizes and numbers."""
    return [emitter.env[x] if isinstance(x, torch.fx.Node) else x for x in given]


def _copies(emitter: Emitter, given: Sequence[Any]) -> list[GraphValue]:
    """Initial values of a loop, in C order."""
    values = _values(emitter, given)
    if any(not isinstance(v, GraphValue) or v.is_weak for v in values):
        raise Unmapped("a loop carries a number of Python")
    return [emitter.copy(v) for v in values]


def _tensors(val: Any) -> list[GraphValue]:
    """Values with the types of a call's results, which are not made yet."""
    if any(not isinstance(v, torch.Tensor) for v in val):
        raise Unmapped("a result is no tensor")
    return [GraphValue(-1, v.dtype, tuple(v.size())) for v in val]


def _truth(emitter: Emitter, condition: Any) -> GraphValue:
    if isinstance(condition, torch.SymBool):
        return truth(emitter, condition.node.expr)
    return emitter.reshape(emitter.value(condition, torch.bool), ())


def _made(emitter: Emitter, body: torch.fx.Node, operands: list[Any], wanted: list[GraphValue]) -> list[GraphValue]:
    """The results of a branch or body in the types that all blocks of the region give."""
    made = _run(emitter, body, operands)
    return [emitter.copy(emitter.expand(emitter.cast(m, w.dtype), w.sizes)) for m, w in zip(made, wanted, strict=True)]


def _run(emitter: Emitter, body: torch.fx.Node, operands: list[Any]) -> list[Any]:
    """Emits the graph of a branch or body into the open block; returns its results."""
    graph, left, symbols = emitter.env[body], iter(operands), set(emitter.symbols)
    try:
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                emitter.env[node] = next(left)
            elif node.op == "output":
                results = node.args[0]
                return _values(emitter, results if isinstance(results, (list, tuple)) else [results])
            elif node.op == "get_attr":
                emitter.attribute(node, graph)
            else:
                emitter.call(node)
            if emitter.symbols != symbols:
                raise Unmapped("data decide a size in a branch or body")
    except Refused as refusal:
        raise Unmapped(str(refusal)) from None
    raise Unmapped("a branch or body without results")
