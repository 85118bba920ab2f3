"""Rows of aten.rows that are functions: each takes the emitter and an FX node, and returns its values."""

from __future__ import annotations

from typing import Any

import torch


def meta(x: Any) -> Any:
    """The fake tensor, size or number of a node; other objects unchanged."""
    return x.meta["val"] if isinstance(x, torch.fx.Node) else x


def sizes(x: Any) -> tuple[Any, ...]:
    return tuple(meta(x).size())


def argument(node: torch.fx.Node, name: str) -> Any:
    """An argument of a call by its name in the op's schema."""
    for k, a in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if a.name == name:
            if not a.kwarg_only and k < len(node.args):
                return node.args[k]
            return node.kwargs.get(name, a.default_value)
    raise AttributeError(f"{node.target} has no argument {name}")


def has_argument(node: torch.fx.Node, name: str) -> bool:
    return any(a.name == name for a in node.target._schema.arguments)  # type: ignore[union-attr]
