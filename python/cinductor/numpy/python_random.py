"""Draws from Python's random module: its functions, and methods of a random.Random.

The generator is the Mersenne Twister (Matsumoto and Nishimura, ACM TOMACS 8, 1998).

The draws that all others are made of (`random`, `getrandbits`, `randrange`) are captured from their source
(`twister`), with the generator's state as arrays. Other distributions are library calls: `gauss` needs no Python at run
time (pyext/program/python_draw.c), and Python itself draws from the others, so that the state afterwards is Python's.
The library calls have a copy of the state, so a call that needs one of them makes all draws in this way (assumption
`inline_draws`). Parameters are numbers of Python; with others the result has another class.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.class_lookup import is_a
from .composites import OF_DRAWS
from .generator_state import Words
from .index import INT64
from .random import FLOAT64, generator_at, number, shuffled
from .random import PYTHON_DRAWS as PYTHON_DRAWS
from .surface import Traced, library, refuse

MAX_BITS = 62
DISTRIBUTIONS = {
    "gauss": (0.0, 1.0),
    "normalvariate": (0.0, 1.0),
    "lognormvariate": (None, None),
    "expovariate": (None,),
    "triangular": (0.0, 1.0, None),
    "betavariate": (None, None),
    "gammavariate": (None, None),
    "vonmisesvariate": (None, None),
    "paretovariate": (None,),
    "weibullvariate": (None, None),
}


def python_draw(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Register a handler for the method of this name."""
    PYTHON_DRAWS[handler.__name__.removeprefix("python_")] = handler
    return handler


def drawn(t: Any, address: Any, method: str, values: list[Any], dtype: np.dtype, may_fail: bool = False) -> Any:
    """One number of a method of random.Random. address: of the generator, or its state."""
    if type(address) is Words:
        return address.drawn(method, values)
    values = [number(t, v, dtype) for v in values]

    def call(where: Any, *given: Any) -> Any:
        return getattr(generator_at(where), method)(*(v.item() for v in given[:-1]))

    made = library(t, may_fail)(f"draw_python_{method}", "", call, [address, *values], (), dtype)
    return t.as_python(made)


def by_library(address: Any, method: str) -> None:
    """Called before a library call that changes the state."""
    if type(address) is Words:
        address.give_up(method)


def is_pythons(value: Any) -> bool:
    """True for a real number of Python."""
    if type(value) is Traced:
        return value.kind == "python" and value.strong is None and value.dtype.kind in "if"
    return type(value) in (int, float)


def whole(value: Any) -> Any:
    """An int, as operator.index gives it."""
    if type(value) is Traced:
        refuse(value.kind == "array" or value.dtype != INT64 or value.strong is not None, "bounds that are no ints")
        return value if value.kind == "python" else value.tracer.as_python(value)
    refuse(not is_a(value, int | np.integer), "bounds that are no ints")
    return operator.index(value)


def below(t: Any, address: Any, n: Any) -> Any:
    """An int in [0, n)."""
    is_known = type(n) is int
    refuse(is_known and not 0 < n < 1 << MAX_BITS, "a range that is empty or very large")
    made = drawn(t, address, "randrange", [n], INT64, not is_known)
    # The drawn value is within the bounds, which is repeated here for code that uses it as an index.
    return t.as_python(t.apply("minimum", t.apply("maximum", made, 0), n - 1)) if is_known else made


@python_draw
def python_random(t: Any, address: Any) -> Any:
    """random.random"""
    return drawn(t, address, "random", [], FLOAT64)


@python_draw
def uniform(t: Any, address: Any, a: Any, b: Any) -> Any:
    """random.uniform"""
    return a + (b - a) * python_random(t, address)


@python_draw
def getrandbits(t: Any, address: Any, k: Any) -> Any:
    """random.getrandbits with a constant"""
    refuse(type(k) is not int or not 0 < k <= MAX_BITS, "so many bits")
    return drawn(t, address, "getrandbits", [k], INT64)


@python_draw
def randrange(t: Any, address: Any, start: Any, stop: Any = None, step: Any = 1) -> Any:
    """random.randrange"""
    if stop is None:
        refuse(type(step) is not int or step != 1, "a step without a stop")
        start, stop = 0, start
    start, stop, step = whole(start), whole(stop), whole(step)
    refuse(type(step) is not int or step < 1, "such a step")
    width = stop - start
    count = width if step == 1 else (width + step - 1) // step
    place = below(t, address, count)
    return start + (place if step == 1 else step * place)


@python_draw
def randint(t: Any, address: Any, a: Any, b: Any) -> Any:
    """random.randint"""
    return randrange(t, address, a, whole(b) + 1)


@python_draw
def choice(t: Any, address: Any, count: Any) -> Any:
    """The index of one of so many items, for random.choice."""
    return below(t, address, count)


@python_draw
def shuffle(t: Any, address: Any, x: Any) -> None:
    """random.shuffle of an array"""
    by_library(address, "shuffle")
    shuffled(t, address, x, {})


@python_draw
def seed(t: Any, address: Any, a: Any) -> None:
    """random.seed with an int"""
    given = whole(a)
    refuse(type(given) is int and abs(given) >= 1 << MAX_BITS, "such a seed")
    by_library(address, "seed")

    def call(where: Any, value: Any, out: Any) -> None:
        generator_at(where).seed(value.item())  # type: ignore[attr-defined]
        out[...] = 0

    t.extern("draw_python_seed", "", call, [address, number(t, given, INT64)], (), INT64)


def distribution(name: str, defaults: tuple[Any, ...]) -> None:
    """Register a method that draws a float."""

    def handler(t: Any, address: Any, *args: Any) -> Any:
        given = [*args, *defaults[len(args) :]]
        refuse(len(given) != len(defaults) or not all(map(is_pythons, given)), "such parameters")
        has_range = not any(type(v) is Traced for v in given[:2]) and given[:1] != given[1:2]
        refuse(name == "triangular" and not has_range, "such parameters")
        may_fail = name != "gauss"
        return drawn(t, address, name, given, FLOAT64, may_fail)

    PYTHON_DRAWS[name] = handler


for _name, _defaults in DISTRIBUTIONS.items():
    distribution(_name, _defaults)
PYTHON_DRAWS.update((name, source) for name, (source, _) in OF_DRAWS.items())  # captured from source
