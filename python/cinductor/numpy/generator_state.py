"""The state of a generator as arrays of the call, for draws that are captured from their source."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import _core
from ..base.signals import Replan
from . import pcg, twister
from .surface import NotCaptured


def is_python_generator(value: Any) -> bool:
    """True for a generator of Python's random module, without a subclass's methods."""
    module: Any = sys.modules.get("random")
    return module is not None and type(value) is module.Random


class Words:
    """The state of a generator in a call, as arrays: of the words of a bit generator, and of what else it keeps. sources: the
    methods that are captured from their source. normal: returns the array of the number that Python's gauss keeps, or None.
    """

    def __init__(self, scope: Any, arrays: tuple[Any, ...], sources: dict[str, Callable[..., Any]], normal: Callable[[], Any]) -> None:
        self.scope, self.arrays, self.sources, self.normal = scope, arrays, sources, normal

    def drawn(self, method: str, values: Sequence[Any]) -> Any:
        """One number, by the method's source."""
        if method not in self.sources:
            self.give_up(method)
        arrays = self.arrays
        if method in twister.WITH_NORMAL:
            if (normal := self.normal()) is None:
                self.give_up(method)
            arrays = (*arrays, normal)
        return self.scope.call(self.sources[method], *arrays, *values)

    def give_up(self, method: str) -> NoReturn:
        give_up_words(self.scope.stage, method)


def give_up_words(stage: Any, method: str) -> NoReturn:
    """Make all draws of the call library calls, as those of the method are, which have the state as a whole."""
    if stage.tracer.effects:
        raise NotCaptured(f"{method} after an effect")
    raise Replan("inline_draws", f"{method} is a library call")


def memory_reader(generator: Any) -> tuple[Callable[[Any], Any], dict[str, Callable[..., Any]]] | None:
    """A function that reads the state of a generator as arrays, and the methods that draw from these; None without a source."""
    if is_python_generator(generator):
        return _core.twister_memory, twister.SOURCES
    return (pcg.memory_of, pcg.SOURCES) if pcg.is_pcg(generator) else None
