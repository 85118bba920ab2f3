"""Numbers: values of the graph that Python's operators compute with, so that a function reads as its formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..emit import Emitter
from ..values import GraphValue
from ..writer import broadcast


class GraphNumber:
    """An element-wise value. Python numbers with it are constants of its dtype."""

    def __init__(self, emitter: Emitter, value: GraphValue):
        self.emitter, self.value = emitter, value

    def apply(self, op: str, *others: Any) -> GraphNumber:
        """An op of the core on this value and others."""
        return GraphNumber(self.emitter, self.emitter.apply(op, [self.value, *(self.like(x) for x in others)]))

    def like(self, x: Any) -> GraphValue:
        return self.emitter.value(x.value if isinstance(x, GraphNumber) else x, self.value.dtype)

    def to(self, dtype: torch.dtype) -> GraphNumber:
        return GraphNumber(self.emitter, self.emitter.cast(self.value, dtype))

    def part(self, name: str) -> GraphNumber:
        """The part "real" or "imag" of a complex number."""
        x = self.value
        return GraphNumber(self.emitter, self.emitter.put(name, [x], x.dtype.to_real(), x.sizes))

    def __add__(self, x: Any) -> GraphNumber:
        return self.apply("add", x)

    def __sub__(self, x: Any) -> GraphNumber:
        return self.apply("subtract", x)

    def __mul__(self, x: Any) -> GraphNumber:
        return self.apply("multiply", x)

    def __truediv__(self, x: Any) -> GraphNumber:
        return self.apply("divide", x)

    def __rsub__(self, x: Any) -> GraphNumber:
        return GraphNumber(self.emitter, self.like(x)) - self

    def __rtruediv__(self, x: Any) -> GraphNumber:
        return GraphNumber(self.emitter, self.like(x)) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> GraphNumber:
        return self.apply("negative")

    def __abs__(self) -> GraphNumber:
        return self.apply("absolute")

    def __lt__(self, x: Any) -> GraphNumber:
        return self.apply("less", x)

    def __le__(self, x: Any) -> GraphNumber:
        return self.apply("less_equal", x)

    def __gt__(self, x: Any) -> GraphNumber:
        return self.apply("greater", x)

    def __ge__(self, x: Any) -> GraphNumber:
        return self.apply("greater_equal", x)

    def equals(self, x: Any) -> GraphNumber:
        return self.apply("equal", x)

    def __and__(self, x: Any) -> GraphNumber:
        return self.apply("logical_and", x)

    def __or__(self, x: Any) -> GraphNumber:
        return self.apply("logical_or", x)

    def __invert__(self) -> GraphNumber:
        return self.apply("logical_not")


def function(op: str) -> Callable[..., GraphNumber]:
    """An op of the core as a function of numbers."""

    def apply(x: GraphNumber, *others: Any) -> GraphNumber:
        return x.apply(op, *others)

    return apply


exp, log, log1p, sqrt, power = (function(op) for op in ("exp", "log", "log1p", "sqrt", "power"))
sin, cos, tan, arccos = (function(op) for op in ("sin", "cos", "tan", "arccos"))
erf, erfc, floor, trunc, isnan = (function(op) for op in ("erf", "erfc", "floor", "trunc", "isnan"))
copysign, fma = function("copysign"), function("fma")


def where(condition: GraphNumber, a: Any, b: Any) -> GraphNumber:
    """Elements of a where the condition holds, else of b; one of them is a GraphNumber."""
    emitter = condition.emitter
    dtype = (a if isinstance(a, GraphNumber) else b).value.dtype
    values = [emitter.value(x.value if isinstance(x, GraphNumber) else x, dtype) for x in (a, b)]
    return GraphNumber(emitter, emitter.apply("where", [condition.value, *values]))


def join(real: GraphNumber, imag: GraphNumber, dtype: torch.dtype) -> GraphNumber:
    """A complex number of its parts: the core's op takes the real part of each operand."""
    return real.to(dtype).apply("join_parts", imag.to(dtype))


def repeat(test: Callable[..., GraphNumber], step: Callable[..., Sequence[Any]], *carried: GraphNumber) -> list[GraphNumber]:
    """The values that remain when the test holds for no element any more; step makes the next ones.

    All carried values get the sizes of their broadcast.
    """
    emitter = carried[0].emitter
    sizes = broadcast([c.value.sizes for c in carried])
    start = [emitter.expand(c.value, sizes) for c in carried]

    def numbers(values: list[GraphValue]) -> list[GraphNumber]:
        return [GraphNumber(emitter, v) for v in values]

    def any_continues(values: list[GraphValue]) -> GraphValue:
        return emitter.fold("any", test(*numbers(values)).value, list(range(len(sizes))), False)

    def following(values: list[GraphValue]) -> list[GraphValue]:
        made = zip(step(*numbers(values)), start, strict=True)
        return [emitter.expand(emitter.value(m.value, s.dtype), sizes) for m, s in made]

    return numbers(emitter.repeat(start, any_continues, following))
