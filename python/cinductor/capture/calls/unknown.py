"""What is called: its name, and calls that are made on concrete values."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ...instance import is_a
from ..value.objects import MISSING, Method, find_in_class
from .opaque import call_of, learn, make

if TYPE_CHECKING:
    from ..value.hooks import Hooks

DEBUGGERS = frozenset({"pdb", "ipdb", "pudb"})
LIFETIMES = frozenset({"weakref", "_weakref", "_weakrefset", "gc"})  # who see objects die
BOUND_KINDS = frozenset({types.MethodWrapperType, Method})


def name_of(f: Any) -> str:
    """How a report calls what is called."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
    module = getattr(f, "__module__", None)
    owner = getattr(f, "__self__", None)
    if owner is not None and not is_a(owner, types.ModuleType | type):
        module = None if "." in name else type(owner).__name__
    return f"{module}.{name}" if module and module != "builtins" else name


def call_unknown(
    scope: Hooks,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str = "",
    is_pure: bool = False,
) -> Any:
    """A break: pending work is run, the call gets real values, its result is of unknown origin.
    is_pure: it does nothing but compute it.
    """
    stage = scope.stage
    opaque = call_of(f, args, kwargs)
    if opaque is not None and (made := make(scope, opaque)) is not None:
        return made
    module = getattr(f, "__module__", None)
    if is_a(module, str) and module.partition(".")[0] in DEBUGGERS:
        stage.abandon(f"calls {name_of(f)}")  # which is to stop in the user's own frame
    if sees_deaths(f, module):
        why = f"calls {name_of(f)}, which sees objects die"
        stage.abandon(why)
        scope.fall_back(why)
        return scope.call(f, *stage.materialise(args), **stage.materialise(kwargs))
    if is_pure:
        stage.tracer.note_break(reason)
    else:
        stage.stop(reason or f"calls {name_of(f)}", *args, *kwargs.values())
    args = tuple(stage.materialise(a) for a in args)
    kwargs = {k: stage.materialise(v) for k, v in kwargs.items()}
    owner = getattr(f, "__self__", None)
    if type(f) is types.MethodType or type(f) in BOUND_KINDS or type(f) is types.FunctionType:
        f = stage.materialise(f)
    elif owner is not None and stage.source_of(owner) is None:
        stage.materialise(owner)
    result = stage.outside(f, args, kwargs)
    if opaque is not None:
        learn(scope, opaque, (*args, *kwargs.values()), result)
    return scope.lifted_once(result)


def sees_deaths(f: Any, module: Any) -> bool:
    """Whether it matters when an object dies: what is captured may hold it for longer."""
    if is_a(f, type) and find_in_class(f, "__del__") is not MISSING:
        return True
    return f is sys.getrefcount or (is_a(module, str) and module in LIFETIMES)


def call_with_foreign(
    scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], foreign: str
) -> Any:
    """A call of NumPy's that is given an object which only it knows how to read."""
    return call_unknown(scope, f, args, kwargs, f"calls {name_of(f)} with {foreign}")


def call_pure(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the values it is given, which Python itself reads."""
    args = tuple(scope.use(a) for a in args)
    kwargs = {k: scope.use(v) for k, v in kwargs.items()}
    if any(type(a) is np.ndarray for a in args):  # ours are traced
        return call_unknown(scope, f, args, kwargs)
    return scope.stage.lift_array(f(*args, **kwargs))
