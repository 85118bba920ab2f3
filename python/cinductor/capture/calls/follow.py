"""Python functions that are followed into their rewritten code.

So are those in whose place compiled functions call others: the rows of `register_lowering`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ...user import PACKAGE
from ..stage import Stage
from ..syntax.asking import OURS, STAGE
from ..syntax.rewrite import NotRewritable, rewrite
from ..value.objects import FREE_TYPES, is_numpys
from .unknown import call_unknown, name_of

if TYPE_CHECKING:
    from ..value.hooks import Hooks


FOLLOWED_STANDARD = frozenset(
    ("dataclasses", name) for name in ("replace", "_replace", "fields", "_is_dataclass_instance")
)
FOLLOWED: set[Any] = set()  # functions of NumPy's that are captured from their source
# Libraries whose functions mostly end in C: one break each, not one for each step on the way there.
CALLED_WHOLE = frozenset({"scipy", "pandas", "sklearn", "matplotlib", "networkx", "sympy"})
MAX_DEPTH = 60
STDLIB = os.path.dirname(os.__file__) + os.sep


def call_function(
    scope: Hooks, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Follows a function into its rewritten code."""
    stage = scope.stage
    bound = stage.functions.get(id(f))
    if (own := scope_in(f)) is not None:
        if own.stage is not stage:  # what it reads and sets around it nobody would hear of
            return call_unknown(
                scope, f, args, kwargs, f"calls {name_of(f)}, which an earlier call has made"
            )
        bound = (f, f)
    elif bound is None:
        why = why_not_followed(f, scope)
        if why is None and stage.depth >= MAX_DEPTH:
            why = "is nested too deeply"
        if why is not None:
            return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)}, which {why}")
        try:
            bound = (f, bind(stage, f))
        except NotRewritable as reason:
            return call_unknown(
                scope, f, args, kwargs, f"calls {name_of(f)}, which is not followed: {reason}"
            )
        stage.functions[id(f)] = bound
    stage.depth += 1
    stage.followed += not scope.is_library
    try:
        return bound[1](*args, **kwargs)
    finally:
        stage.depth -= 1


def scope_in(f: types.FunctionType) -> Any:
    """The scope of a function of rewritten code, which only a comprehension in it may know; or None."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    if STAGE in cells:
        return cells[STAGE].cell_contents
    for name, cell in cells.items():
        if name.startswith(OURS):
            return scope_in(cell.cell_contents)
    return None


def why_not_followed(f: types.FunctionType, scope: Hooks) -> str | None:
    """Why a Python function is not followed, or None."""
    module, file = f.__module__ or "", f.__code__.co_filename
    if getattr(f, "__cinductor_disabled__", False):
        return "is disabled: " + f.__cinductor_disabled__
    if is_numpys(module):
        if f in FOLLOWED or is_numpys(scope.fn_globals.get("__name__")):
            return None
        return "is not captured"
    if module in ("__main__", "cinductor.control", "cinductor.numpy.written"):
        return None
    if file.startswith(PACKAGE):
        return "is cinductor's own"
    if (module, f.__name__) in FOLLOWED_STANDARD or f.__name__ in ("_replace", "_asdict", "_make"):
        return None
    if module.partition(".")[0] in CALLED_WHOLE:
        return "is called as it is"
    if file.startswith(STDLIB) and "site-packages" not in file:
        return "is in the standard library"
    if file.startswith("<frozen"):
        return "is in the standard library"
    return None


def bind(stage: Stage, f: types.FunctionType) -> types.FunctionType:
    """The rewritten function for this call; NotRewritable with a reason."""
    rewritten = rewrite(f)
    source = stage.source_of(f)
    if source not in stage.renewed and not is_numpys(f.__module__):
        body = (f.__code__, f.__defaults__, f.__kwdefaults__)
        stage.check_once(stage.source("const", f), "body", body)
    new = rewritten.bind(f, types.CellType(stage.hooks(stage, f, rewritten.sites)))
    for field in ("__defaults__", "__kwdefaults__"):
        values = getattr(f, field)
        if not values:
            continue
        source = stage.source_of(f)
        is_fixed = is_a(values, tuple) and source not in stage.renewed
        if is_fixed and all(type(v) in FREE_TYPES for v in values):
            continue
        if source is None or source < 0:
            source = stage.source("const", f)
        source = stage.source("attr", source, field)
        setattr(new, field, enter_items(stage, values, source))
    return new


def enter_items(stage: Stage, values: Any, source: int) -> Any:
    """Defaults, entered: numbers among them are constants of the function, unless the next call may
    have one of its own.
    """
    is_renewed = stage.sources[source][1] in stage.renewed
    is_fixed = is_a(values, tuple) and not is_renewed
    if is_fixed:
        stage.check_once(source, "is", values)
    else:
        stage.guard_length(values, source)

    def enter(key: Any, value: Any) -> Any:
        if type(value) in FREE_TYPES and not is_renewed:
            if not is_fixed:
                stage.check_once(stage.source("item", source, key), "is", value)
            return value
        return stage.lift_guarded(value, stage.source("item", source, key))

    if is_a(values, dict):
        return {k: enter(k, v) for k, v in values.items()}
    return tuple(enter(i, v) for i, v in enumerate(values))


# --- functions in whose place others are called ---


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
