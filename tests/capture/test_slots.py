"""Tests stores to the slots of objects that outlive the call (`__slots__`, dataclasses with slots=True)."""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any

import numpy as np
import pytest
from test_classes import log, outcome, shown

import cinductor


class Held:
    __slots__ = ("total", "__count", "empty")

    def __init__(self, total=0.0):
        self.total, self.__count = total, 0

    def add(self, x):
        self.total = self.total + x.sum()
        self.__count += len(x)
        return self.total * self.__count


class HeldBelow(Held):
    __slots__ = ("more", "__dict__")


@dataclasses.dataclass(slots=True)
class Point:
    x: Any
    y: Any = 1.0


@dataclasses.dataclass(slots=True, frozen=True)
class Fixed:
    x: Any


class Loud:
    def __repr__(self):
        return "Loud()"

    def __del__(self):
        log.append("died")


def fills(held, x):
    held.empty = x * 2
    held.total = held.empty[0]
    return held.empty.sum() + held.total


def fills_and_asks(held, x):
    before = hasattr(held, "empty")
    held.empty = x + before
    return before, hasattr(held, "empty"), held.empty


def in_a_loop(held, x):
    for k in range(len(x)):
        if x[k] > 1.5:
            held.total += x[k]
    return held.total


def in_both(held, x):
    held.more, held.other = x + 1, x.sum()
    return held.more * held.other


def moved(held, x):
    held.x, held.y = held.y + x, held.x
    return held.x.sum()


def raises(held, x):
    held.total = x.sum()
    held.total = held.total / x[10]
    return held.total


def taken_away(held, x):
    held.empty = x
    del held.empty
    return x * 2


def two(held, x):
    other = held if x[0] > 1 else Held()
    other.total = x.max()
    return held.total + other.total


SLOTTED = {
    "method": (Held, Held.add), "empty slot": (Held, fills), "asked": (Held, fills_and_asks), "loop": (Held, in_a_loop),
    "subclass": (HeldBelow, in_both), "subclass's method": (HeldBelow, Held.add), "dataclass": (lambda: Point(2.0), moved),
    "frozen": (lambda: Fixed(2.0), lambda held, x: setattr(held, "x", x)), "raises": (Held, raises), "deleted": (Held, taken_away),
    "two": (Held, two), "item that dies": (lambda: Held(Loud()), fills),
}


@pytest.mark.parametrize("name", SLOTTED)
def test_slots_are_set_as_in_python(name: str) -> None:
    """Also where other code fills and empties slots between calls."""
    make, f = SLOTTED[name]

    def worlds(g):
        held, seen = make(), []
        for n in (3, 3, 4, 3, 5):
            seen.append(outcome(functools.partial(g, held), n))
            seen.append([shown(getattr(held, a, None)) for a in ("total", "_Held__count", "empty", "x", "y", "more", "other")])
            if type(held) is Held and n == 4:
                held.total, held.empty = np.float32(2.5), Loud()
            elif hasattr(held, "empty") and n == 3:
                del held.empty
        return seen

    for backend in "interp", "c":
        assert worlds(cinductor.compile(f, backend=backend)) == worlds(f)


def test_slots_need_no_python() -> None:
    for make, f in SLOTTED["method"], SLOTTED["empty slot"], SLOTTED["loop"], SLOTTED["dataclass"]:
        report = cinductor.explain(cinductor.compile(f), make(), np.arange(3.0))
        assert not report.breaks and report.kernels_count, f


class Hiding:
    """Its own attributes are not where `__dict__` says."""

    k = 1
    __dict__ = property(lambda self: {"k": 5})

    def m(self):
        return 3


@pytest.mark.parametrize("name, item", [("k", 7), ("m", lambda: 9), ("__module__", "elsewhere"), ("extra", 2)])
def test_attributes_that_a_class_hides(name, item):
    """Some classes in C have a dict of attributes for each object, and no `__dict__`: typing.TypeVar from Python 3.12 on."""

    def f(x, o):
        return x * 2, o.k, o.m(), o.__module__, hasattr(o, "extra"), getattr(o, "extra", None)

    value = Hiding()
    compiled = cinductor.compile(f)
    for _ in range(2):
        assert compiled(np.arange(3.0), value)[1:] == f(np.arange(3.0), value)[1:]
    setattr(value, name, item)
    for _ in range(2):
        assert compiled(np.arange(3.0), value)[1:] == f(np.arange(3.0), value)[1:]


def test_the_module_of_a_type_variable():
    variable = typing.TypeVar("variable")
    assert cinductor.compile(lambda x, v: (x * 2, v.__module__))(np.arange(3.0), variable)[1] == variable.__module__
