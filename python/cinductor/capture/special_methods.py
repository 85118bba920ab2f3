"""Python's checks of the results of special methods that a captured call has traced."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ..base import user_frame
from ..base.class_lookup import is_a
from ..numpy.surface import NotCaptured, dummy, require
from .objects import Traced

if TYPE_CHECKING:
    from .call_state import Stage
    from .kinds import Hooks

DEPRECATED_INDEX = (
    "__index__ returned non-int (type {}).  The ability to return an instance of a strict subclass of int is deprecated, "
    "and may be removed in a future version of Python."
)


class Returning:
    """An object whose special methods return one value, so that Python itself checks the value."""

    __slots__ = ("made",)

    def __init__(self, made: Any) -> None:
        self.made = made

    def __bool__(self) -> bool:
        return self.made

    def __len__(self) -> int:
        return self.made

    def __index__(self) -> int:
        return self.made

    def __iter__(self) -> Any:
        return self.made


def truth(made: Any) -> Any:
    """The truth of an object whose `__bool__` returned a value; raises like Python."""
    found = bool(Returning(dummy(made)))
    return made if type(made) is Traced else found


def length(scope: Hooks, made: Any) -> Any:
    """The length of an object whose `__len__` returned a value; raises like Python."""
    if type(made) is not Traced:
        return len(Returning(made))
    len(Returning(dummy(made)))
    number = scope.call(int, made)
    try:
        require(scope.stage.tracer, number >= 0, "a length below zero")
        return number
    except NotCaptured:
        pass
    return len(Returning(scope.stage.materialise(number)))


def index(stage: Stage, made: Any) -> int:
    """The index that an `__index__` returned; raises and warns like Python."""
    if is_a(made, int) and type(made) is not int:
        stage.effects.abandon(f"warns of an index of class {type(made).__name__}")
        user_frame.give(DEPRECATED_INDEX.format(type(made).__name__), DeprecationWarning)
        return int.__index__(made)
    return operator.index(Returning(made))


def iterator(made: Any) -> Any:
    """The iterator that an `__iter__` returned; raises like Python."""
    iter(Returning(dummy(made)))
    return made
