"""What patterns ask: whether a value is such a sequence, mapping or instance, and its parts.

The class of a value is known, and says all but the number of items; parts are read like those that
the user reads, with the guards of such reads. Each function gives None or a tuple of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...instance import is_a
from ..value.objects import MISSING, Traced, is_tuple

if TYPE_CHECKING:
    from ..value.hooks import Hooks

IS_SEQUENCE, IS_MAPPING, IS_ITSELF = 1 << 5, 1 << 6, 1 << 22  # bits of CPython's tp_flags


def sequence(
    scope: Hooks, value: Any, before: int, behind: int, has_star: bool | None
) -> tuple[Any, ...] | None:
    """The first and the last items; between them a list of the others, if has_star. None: there
    are no others.
    """
    if type(value) is Traced or not type(value).__flags__ & IS_SEQUENCE:
        return None
    count = int(scope.call(len, value))
    if count < before + behind or (has_star is None and count > before):
        return None
    if type(value) not in (list, tuple) and not is_tuple(type(value)) and has_star is not False:
        items = list(scope.iter(value))
        count = len(items)
    else:
        wanted = range(count) if has_star else (*range(before), *range(count - behind, count))
        items = [scope.item(value, k) for k in wanted]
    if not has_star:
        return tuple(items)
    return (*items[:before], items[before : count - behind], *items[count - behind :])


def mapping(
    scope: Hooks, value: Any, keys: tuple[Any, ...], has_rest: bool
) -> tuple[Any, ...] | None:
    """The values of keys; behind them, if has_rest, a dict of the others."""
    if type(value) is Traced or not type(value).__flags__ & IS_MAPPING:
        return None
    if len(set(keys)) < len(keys):
        twice = next(k for k in keys if keys.count(k) > 1)
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    get = scope.attr(value, "get") if keys else None
    found = []
    for key in keys:
        found.append(scope.call(get, key, MISSING))
        if found[-1] is MISSING:
            return None
    if not has_rest:
        return tuple(found)
    rest = scope.call(dict, value)
    return (*found, {k: v for k, v in rest.items() if k not in keys})


def instance(
    scope: Hooks, value: Any, cls: Any, count: int, names: tuple[str, ...]
) -> tuple[Any, ...] | None:
    """The attributes that the class counts, and those of names."""
    if not is_a(cls, type):
        raise TypeError("called match pattern must be a class")
    if not scope.call(isinstance, value, cls):
        return None
    own: Any = getattr(cls, "__match_args__", MISSING)
    is_itself = own is MISSING and bool(cls.__flags__ & IS_ITSELF)
    own = () if own is MISSING else own
    if type(own) is not tuple:
        kind = type(own).__name__
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {kind})")
    allowed = 1 if is_itself else len(own)
    if count > allowed:
        plural = "" if allowed == 1 else "s"
        text = f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
        raise TypeError(text)
    wanted = (*(() if is_itself else own[:count]), *names)
    for k, name in enumerate(wanted):
        if not is_a(name, str):
            text = f"__match_args__ elements must be strings (got {type(name).__name__})"
            raise TypeError(text)
        if name in wanted[:k]:
            text = f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}"
            raise TypeError(text)
    try:
        found = [scope.attr(value, name) for name in wanted]
    except AttributeError:
        return None
    return (value, *found) if is_itself and count else tuple(found)


PATTERNS: dict[str, Callable[..., tuple[Any, ...] | None]] = {
    "sequence": sequence,
    "mapping": mapping,
    "instance": instance,
}
