"""Iterators made in the call that others get to see: they become Python's own over real values, from
where they stand.

Captured code may go on taking items of such an iterator: it is known by what it became then
(`Escapes.now`), so that nobody sees an item twice.
"""

from __future__ import annotations

import gc
import itertools
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ...instance import is_a, offered
from ...user import PACKAGE
from .items import Items, Range

# Iterators that say of what they are made and how far they are; those over a container hold it.
OVER_ITERATORS = (map, filter, zip, enumerate)
OVER_CONTAINERS = (
    *(type(iter(c)) for c in ([], (), {}, set(), "", b"", range(0))),
    *(type(iter(view)) for view in ({}.values(), {}.items())),
    *(type(reversed(c)) for c in ([], {}, {}.values(), {}.items(), range(0))),
    reversed,
)
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
MOST_LEFT = 65536  # items of an iterator that outlives the call
OTHERS = tuple(f for f in offered(itertools) if is_a(f, type))


class Called:
    """A function that Python itself may call, its calls still seen."""

    __slots__ = ("scope", "f", "dispatch")

    def __init__(self, scope: Any, f: Any, dispatch: Callable[..., Any]) -> None:
        self.scope, self.f, self.dispatch = scope, f, dispatch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.dispatch(self.scope, self.f, args, kwargs)


class Steps:
    """What is left of an iterator made in the call: `step` takes an item, and tells of it before."""

    __slots__ = ("value", "step")

    def __init__(self, value: Any, step: Callable[[Any], Any]) -> None:
        self.value, self.step = value, step

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        return self.step(self.value)

    def real(self, concrete: Any) -> Any:
        """The iterator itself."""
        return concrete.of(self.value)


class Walk:
    """The items of a sequence, seen one by one: `item` gives that of a position."""

    __slots__ = ("value", "item", "position")

    def __init__(self, value: Any, item: Callable[[int], Any]) -> None:
        self.value, self.item, self.position = value, item, 0

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> Any:
        if self.position >= len(self.value):  # as Python iterates a list that grows
            self.value = ()  # and one that grows behind its end
            raise StopIteration
        self.position += 1
        return self.item(self.position - 1)

    def real(self, concrete: Any) -> Iterator[Any]:
        """Python's own."""
        made = iter(concrete.of(self.value))
        made.__setstate__(self.position)  # type: ignore[attr-defined]
        return made


class Escaped:
    """An iterator made in the call, as code that is not captured sees it: of real values."""

    __slots__ = ("stage", "items", "__weakref__")

    def __init__(self, stage: Any, items: Any) -> None:
        self.stage = stage
        self.items = items

    def __iter__(self) -> Escaped:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        return item if self.stage is None else self.stage.materialise(item)

    def end(self) -> None:
        """The call ends."""
        if self.stage is not None:
            items, self.items = self.items, iter(())
            self.items = iter([self.stage.materialise(item) for item in itertools.islice(items, MOST_LEFT)])
            self.stage = None


class Asked:
    """The items of what nobody can look into: Python runs between them."""

    __slots__ = ("stage", "iterator")

    def __init__(self, stage: Any, iterator: Iterator[Any]) -> None:
        self.stage, self.iterator = stage, iterator

    def __iter__(self) -> Asked:
        return self

    def __next__(self) -> Any:
        self.stage.tracer.flush()
        return self.stage.lift(next(self.iterator))

    def real(self, concrete: Any) -> Iterator[Any]:
        """The one that is asked."""
        return self.iterator


def is_iterator(cls: type) -> bool:
    """An iterator, or a view of a dict, that may hold what was made in the call."""
    return cls in OURS or cls in OVER_ITERATORS + OVER_CONTAINERS + VIEWS + OTHERS


class Escapes:
    """The iterators of one call that others have, too, and what each has become."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.of: dict[int, tuple[Any, Any]] = {}
        self.left: list[weakref.ref[Escaped]] = []  # still to be taken in, while it can be

    def now(self, value: Any) -> Any:
        """An iterator made in the call: what it has become since others have it, too."""
        found = self.of.get(id(value))
        return value if found is None else found[1]

    def escape(self, concrete: Any, value: Any) -> Any:
        """What stands for the iterator outside of captured code."""
        if id(value) in self.of:
            return self.now(value)
        if type(value) is Called:
            return concrete.of(value.f)
        made = self.make(concrete, value)
        if made is None:
            if type(value) is Items:
                value.check()  # while the call can still begin anew
            self.stage.abandon(f"hands on a {type(value).__name__} made in the call")
            made = self.follow(value)
        if made is not value:
            self.of[id(value)] = (value, made)
            self.stage.known.setdefault(id(made), (made, -1))
        return made

    def make(self, concrete: Any, value: Any) -> Any:
        """Python's own, or what follows a generator; None where there is none like it."""
        cls = type(value)
        if cls in OVER_CONTAINERS + VIEWS:
            return over_container(concrete, value)
        if cls in OVER_ITERATORS:
            return over_iterators(concrete, value)
        if cls in OTHERS:
            return over_others(concrete, value)
        if cls is types.GeneratorType:
            return self.follow(value)
        return value.real(concrete) if cls in OURS else None

    def follow(self, value: Any) -> Any:
        """A generator of what the iterator gives, materialised."""
        made = Escaped(self.stage, value)
        self.left.append(weakref.ref(made))
        return (item for item in made)

    def end(self) -> None:
        """What iterators have still to give is made: whoever has one may go on with it behind the
        call.
        """
        for iterator in [*self.left]:
            if (found := iterator()) is not None:
                found.end()


STAND_INS = (Steps, Walk, Asked, Items)  # for iterators of Python's own
OURS = (*STAND_INS, Called, Range)
ATOMS = (int, float, complex, bool, str, bytes, type(None))


def over_container(concrete: Any, value: Any) -> Any:
    """An iterator over a list, a dict, ... or a view: what can be materialised in place stays what it is."""
    held = gc.get_referents(value)
    if all(concrete.of(part) is part for part in held):
        return value
    f, parts, *state = value.__reduce__()
    made = f(*(concrete.of(part) for part in parts))
    if state:
        made.__setstate__(state[0])
    return made


def over_iterators(concrete: Any, value: Any) -> Any:
    """map, zip and their like, over what they took their items from."""
    f, parts, *state = value.__reduce__()
    if f is map and is_door(parts[0]):
        return concrete.of(parts[1])
    real, real_state = concrete.of(parts), [concrete.of(s) for s in state]
    if real is parts and all(a is b for a, b in zip(state, real_state, strict=True)):
        return value
    made = f(*real)
    if state:
        made.__setstate__(real_state[0])
    return made


def over_others(concrete: Any, value: Any) -> Any:
    """Those of itertools, which say the same until Python 3.13."""
    if all(type(part) in ATOMS for part in gc.get_referents(value)):
        return value
    if type(value).__reduce__ is object.__reduce__:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return over_iterators(concrete, value)


def is_door(f: Any) -> bool:
    """A method of ours through which items enter."""
    code = getattr(getattr(f, "__func__", f), "__code__", None)
    return code is not None and code.co_filename.startswith(PACKAGE)
