"""Nodes of an FX graph: their values, and the lines of the model from which they come."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import snapshot_fake
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten


def is_nothing(node: torch.fx.Node, val: Any) -> bool:
    """True if no result of a call of ATen has an element, in all calls of the graph."""
    results = val if isinstance(val, (tuple, list)) else [val]
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    return bool(results) and all(isinstance(v, torch.Tensor) and any(isinstance(s, int) and s == 0 for s in v.size()) for v in results)


def sizes_in(val: Any) -> list[Any]:
    """The sizes of tensors, and the ints, that a node gives."""
    if isinstance(val, (tuple, list)):
        return [s for v in val for s in sizes_in(v)]
    return [val] if isinstance(val, torch.SymInt) else [*val.size()] if isinstance(val, torch.Tensor) else []


def is_write(node: torch.fx.Node) -> bool:
    """True if the call writes to an input of the graph."""
    return node.target is aten.copy_.default and getattr(node.args[0], "op", "") == "placeholder"


def line_of(node: torch.fx.Node) -> tuple[str | None, int]:
    """The model's line from which a node comes: the innermost of its stack trace."""
    trace = node.meta.get("stack_trace") or (node.stack_trace or "")
    for text in reversed(trace.splitlines()):
        text = text.strip()
        if text.startswith('File "'):
            path, _, rest = text[6:].partition('", line ')
            number = rest.partition(",")[0]
            return path, int(number) if number.isdigit() else 0
    return None, 0


def put(graph: torch.fx.Graph, op: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
    """A new node, with the value that torch's meta function gives. Tensors of the graph are fake, in the current mode."""
    node = graph.call_function(op, args, kwargs)
    # As for torch's own nodes: a view that autograd knows could not be kept in its cache.
    node.meta["val"] = snapshot_fake(op(*tree_map_only(torch.fx.Node, lambda n: n.meta["val"], args), **kwargs))
    return node
