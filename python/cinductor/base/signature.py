"""The parameters of a compiled function, to which `CompiledFunction` binds arguments."""

from __future__ import annotations

import types
from typing import Any

from .. import _core

POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY, VAR_KEYWORD = range(5)


def method_of(fn: Any) -> types.FunctionType | None:
    """The function that a bound method or a callable object calls with the object before the rest."""
    bound = type(fn) is types.MethodType
    method = fn.__func__ if bound else getattr(type(fn), "__call__", None)  # noqa: B004
    return method if type(method) is types.FunctionType else None


def signature_of(fn: Any) -> tuple[tuple[str, ...], tuple[int, ...], tuple[Any, ...]]:
    """Names, kinds and defaults of a function's parameters, but that of the object whose method it
    is; callables that Python does not write take anything.
    """
    if type(fn) is not types.FunctionType:
        method = method_of(fn)
        if method is not None and method.__code__.co_argcount > 0:
            with_self = signature_of(method)
            return with_self[0][1:], with_self[1][1:], with_self[2][1:]
        return ("args", "kwargs"), (VAR_POSITIONAL, VAR_KEYWORD), (_core.MISSING,) * 2
    code = fn.__code__
    n, m, k = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    own = code.co_varnames
    names = list(own[: n + k])
    kinds = [POSITIONAL_ONLY] * m + [POSITIONAL_OR_KEYWORD] * (n - m) + [KEYWORD_ONLY] * k
    given = (fn.__defaults__ or ())[-n:] if n else ()  # more than there are say nothing
    defaults: list[Any] = [_core.MISSING] * (n - len(given)) + list(given)
    if k:
        named = fn.__kwdefaults__ or {}
        defaults += [named.get(name, _core.MISSING) for name in names[n:]]
    extra = n + k
    if code.co_flags & 4:
        names.insert(n, own[extra])
        kinds.insert(n, VAR_POSITIONAL)
        defaults.insert(n, _core.MISSING)
        extra += 1
    if code.co_flags & 8:
        names.append(own[extra])
        kinds.append(VAR_KEYWORD)
        defaults.append(_core.MISSING)
    return tuple(names), tuple(kinds), tuple(defaults)
