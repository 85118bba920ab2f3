"""Builtins about a value as a whole: its text, its hash and copies of it."""

from __future__ import annotations

import copy
import types
from typing import TYPE_CHECKING, Any

from .. import identity
from ..objects import Traced
from .calls import dispatch, understands
from .functions import call_pure, call_unknown

if TYPE_CHECKING:
    from ..kinds import Hooks


@understands(hash, repr, ascii, format, str)
def _identified(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    sources = scope.stage.sources
    if args and identity.has_address(args[0], f is hash) is not None:
        return call_unknown(scope, f, args, kwargs)
    identity.note_order(sources, args)
    if args and f is hash:
        identity.note_hash(sources, args[0])
    return call_pure(scope, f, args, kwargs)


@understands(copy.copy, copy.deepcopy)
def _copy(scope: Hooks, f: Any, args: Any, kwargs: Any) -> Any:
    value, cls = args[0], type(args[0])
    if cls is Traced and value.kind == "array":
        return dispatch(scope, value.copy, ("K",), {})
    if cls in COPIED_AS_THEY_ARE or (cls is Traced and value.kind == "python"):
        return value
    return call_unknown(scope, f, args, kwargs)


# Classes whose objects `copy` returns as they are.
COPIED_AS_THEY_ARE = frozenset({type(None), bool, int, float, complex, str, bytes, types.FunctionType, types.BuiltinFunctionType})
