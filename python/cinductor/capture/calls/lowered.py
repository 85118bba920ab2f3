"""Functions in whose place compiled functions call others: the rows of `register_lowering`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .follow import call_function

if TYPE_CHECKING:
    from ..value.hooks import Hooks

ROWS: dict[int, tuple[Any, Callable[..., Any], Any]] = {}  # id of a function -> it, the other one, its registration


def instead_of(scope: Hooks, f: Any) -> Callable[..., Any] | None:
    """What is called in the place of f, or None; not inside of itself, where f is f."""
    row = ROWS.get(id(f))
    if row is None or not row[2].is_on or id(f) in scope.stage.lowering:
        return None
    return row[1]


def call_lowered(scope: Hooks, f: Any, other: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of the other one."""
    inside = scope.stage.lowering
    inside.add(id(f))
    try:
        return call_function(scope, other, args, kwargs)
    finally:
        inside.discard(id(f))
