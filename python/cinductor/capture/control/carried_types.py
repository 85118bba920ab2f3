"""The types of what iterations of one loop carry, found by a fixed-point iteration, and capacities of their buffers.

Each leaf of a carried value has a type (`lattice.Type`): that of the value at the head and at the end of an
iteration, which must be equal or joinable. If they are not, an iteration is peeled. Known types only
become wider, so the analysis terminates.

A size that no iteration increases keeps its initial capacity. A size that goes from u to a*u + b
in each iteration is a**n*e + b*(a**n - 1)/(a - 1) after n iterations from e. Its buffer gets
that capacity, computed before the loop. Every iteration checks the capacity, so a wrongly guessed
rule wastes memory but is never unsafe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.records import NamedTuple
from ...base.user_frame import OWN_PREFIX
from ..kinds import UNBOUND, apart, have_same_structure, in_words, is_same, kind_of, leaves, rebuilt
from ..objects import SINGLE, MaybeUnbound, Traced, remade
from .alias import PeelFirstIteration, Unlike
from .lattice import (
    LARGE,
    OTHER,
    Buffered,
    Head,
    Joined,
    Length,
    Reason,
    Same,
    Type,
    grouped,
    is_as_weak,
    is_at_most,
    join,
    larger,
    type_of,
)
from .loop_state import LoopRegion, LoopState, Place
from .region import Rerun

# --- capacities ---


MAX_BITS = 62


class Rule(NamedTuple):
    """How a size grows: factor * size + more in each iteration."""

    place: Place
    factor: int
    more: Any


def capacity(types: Types, kind: Type, axis: int, sizes: tuple[Any, Any, Any]) -> Any:
    """An upper bound of a size, or None. The size is given at the loop's entry and at both ends of an iteration.

    The bound is the value at the entry if no iteration increases it, else a known bound, else one by the size's rule.
    """
    loop, tracer = types.loop, types.tracer
    entry, before, end = sizes
    mark, length = loop.snapshot.graph, kind.lengths.get(axis)  # type: ignore[union-attr]
    place = place_of(types, kind, axis)
    if place in loop.plan.capacities:
        return loop.plan.capacities[place]
    if is_at_most(tracer, end, before):
        return mark.most(entry) if length is None else length.capacity
    most = larger(tracer, entry, end, mark)
    if place is None or most is None or length is None or is_same(most, length.capacity):
        return most
    rule = tracer.as_line(end, length.now)
    if rule is None:
        return most
    more = mark.most(rule[1])
    trips = None if loop.is_while else loop.items.length
    is_far = type(trips) is int and rule[0] > 1 and trips * rule[0].bit_length() > MAX_BITS
    if trips is None or is_far or more is None:
        return None
    raise Rerun(loop, Rule(place, rule[0], more))


def row_capacity(types: Types, axes: list[int], entry: Traced, before: Traced, after: Traced) -> Any:
    """The number of elements of a flat buffer that holds the array in every iteration, if no
    iteration increases it. None if there is no such number, or if no flat buffer is needed
    because an array that varies along its first axis is contiguous anyway."""
    tracer, mark = types.tracer, types.loop.snapshot.graph  # type: ignore[union-attr]
    if axes == [0] or entry.ndim < 2 or not entry.is_c_order:
        return None
    pairs = zip(before.shape, after.shape, strict=True)
    if not all(is_at_most(tracer, b, a) for a, b in pairs):
        if not is_at_most(tracer, after.size, before.size):
            return None
    return mark.most(entry.size)


def place_of(types: Types, kind: Type, axis: int) -> Place | None:
    """The place where a known type is carried."""
    for name, row in types.carried.types_of.items():
        for number, known in enumerate(row):
            if known is kind:
                return name, number, axis
    return None


def grown(loop: LoopRegion, rule: Rule) -> Any:
    """The size after all iterations, or at the entry if that is larger. The entry is the loop's, even if the rule was
    found after peeled iterations.
    """
    tracer, trips = loop.tracer, loop.items.length
    name, number, axis = rule.place
    entry = leaves(loop.entry[name])[number].shape[axis]
    if rule.factor == 1:
        return entry + trips * tracer.size_max(rule.more, 0)
    power = rule.factor**trips
    size = power * entry + rule.more * ((power - 1) // (rule.factor - 1))
    if type(size) is Traced and not size.is_expression:
        size = tracer.define(size, None, None)
    return tracer.size_max(size, entry)


# --- types of carried leaves ---


class Types:
    """By name, the types of its leaves (None: one that does not change) in one loop being captured."""

    def __init__(self, carried: LoopState) -> None:
        self.carried, self.loop, self.tracer = carried, carried.loop, carried.tracer
        self.lengths: list[Length] = []  # of all arrays whose sizes change
        self.joined: list[str] = []  # names with another type at the loop's entry
        self.moved = False  # a change between an array and a flat buffer
        self.guessed = False  # sizes vary that may be constant
        self.tuples: dict[int, Any] = {}  # by id: tuples of the loop, each of which stands for several of Python's

    # --- names that become carried ---

    def recall(self, name: str, value: object) -> None:
        """Add a name that another capture of the loop carried."""
        parts = leaves(value)
        if all(kind_of(v) is not None and type(v) is Traced for v in parts):
            self.carried.types_of[name] = [type_of(v) for v in parts]

    def add_undefined(self, name: str, value: object) -> Any:
        """Give a name that is set before every read an arbitrary entry value; UNBOUND if it is not
        a number."""
        kinds: list[Any] = [kind_of(leaf) for leaf in leaves(value)]
        if any(kind is None or kind[0] == "array" for kind in kinds):
            return UNBOUND
        zeros = [np.zeros((), dtype)[()] for _, dtype in kinds]
        items = [z if k[0] == "scalar" else z.item() for z, k in zip(zeros, kinds, strict=True)]
        self.carried.types_of[name] = [Type(*kind) for kind in kinds]
        return rebuilt(value, iter(items))

    # --- names that are carried ---

    def widen(self, name: str, head: object, value: object) -> bool:
        """True if leaves that were unchanged so far change, or a new name does."""
        if value is UNBOUND or not have_same_structure(head, value):
            raise PeelFirstIteration(f"{name} changes its type")
        is_wider = False
        entries = leaves(self.carried.entry[name])
        types = self.carried.types_of.setdefault(name, [None] * len(entries))
        for k, (entry, before, after) in enumerate(zip(entries, leaves(head), leaves(value), strict=True)):
            if (wider := self.wider(name, types[k], entry, before, after)) is not None:
                types[k], is_wider = wider, True
        if is_wider:
            self.joined = [n for n, row in self.carried.types_of.items() if any(k is not None and k.joined for k in row)]
        return is_wider

    def wider(self, name: str, known: Type | None, entry: Traced, before: Traced, after: Traced) -> Type | None:
        """The type of a leaf from its values at the entry and at both ends of an iteration; None if the known one
        suffices.
        """
        answer = join(self.tracer, before, after, Head(entry, known, self.loop.plan.tags is True))
        if type(answer) is Reason:
            if answer.text == LARGE:
                self.loop.fail(f"{name} {LARGE}")
            if answer.text == OTHER:
                words = in_words(before), in_words(after)
                is_alike = words[0] == words[1]
                other = f"is another object at the end of an iteration ({words[0]})"
                raise (Unlike if answer.can_tag else PeelFirstIteration)(f"{name} {other if is_alike else 'changes its type from ' + ' to '.join(words)}")
            raise PeelFirstIteration(f"{name} {answer.text}")
        if type(answer) is Same:
            return None
        if type(answer) is Buffered or (known is not None and known.lengths):
            kind, axes = known or type_of(before), answer.axes if type(answer) is Buffered else []
            if not self.vary(kind, axes, entry, before, after):
                raise PeelFirstIteration(f"the array {name} changes its shape")
            return None if kind is known else kind
        assert type(answer) is Joined
        if known is not None and answer[:2] == (known.kind, known.dtype) and is_as_weak(answer, known):
            return None
        if answer.kind == "array":
            return type_of(before)
        is_joined = kind_of(entry)[0] == "python" and answer.kind == "scalar" and answer.weak is None  # type: ignore[index]
        return Type(answer.kind, answer.dtype, None, answer.weak, is_joined)

    # --- sizes of arrays ---

    def vary(self, kind: Type, axes: list[int], entry: Traced, before: Traced, after: Traced) -> bool:
        """True if an array may have its size at the end of an iteration; records its sizes, of which these differ."""
        axes = sorted({*axes, *kind.lengths})
        room = row_capacity(self, axes, entry, before, after)
        self.moved |= bool(kind.lengths) and not is_same(room, kind.room)
        kind.room = room
        ends: dict[int, tuple[Any, Any]] = {}
        for axis in axes:
            end = after.shape[axis]
            sizes = entry.shape[axis], before.shape[axis], end
            most = capacity(self, kind, axis, sizes)
            if most is None and room is None:
                return False
            ends[axis] = (end, most)
        if self.is_once(kind, before, after, axes):
            return False
        kind.ends = ends
        return True

    def is_once(self, kind: Type, before: Traced, after: Traced, axes: list[int]) -> bool:
        """True if only the first iteration seems to change the sizes, because they end as a value known before the
        loop. Sizes of a shrinking array are treated as varying.
        """
        loop, tracer = self.loop, self.tracer
        if not loop.may_peel or self.carried.flag:
            return False
        mark = loop.snapshot.graph  # type: ignore[union-attr]
        known = [k for k in axes if is_same(mark.most(after.shape[k]), after.shape[k])]
        if kind.lengths:
            is_news = any(axis not in kind.lengths for axis in known)
            return is_news or (self.guessed and len(known) == len(axes))
        is_smaller = after.size <= before.size
        if loop.plan.guess and (is_smaller is True or tracer.sample_truth(is_smaller)):
            self.guessed |= bool(known)
            return False
        return bool(known)

    def group(self) -> bool:
        """Find which sizes change together. True if that is new."""
        pairs = [
            (kind, leaf.shape)
            for name, types in self.carried.types_of.items()
            for leaf, kind in zip(leaves(self.carried.entry[name]), types, strict=True)
            if kind is not None and kind.ends
        ]
        lengths = grouped(pairs, self.lengths) if pairs or self.lengths else None
        has_moved, self.moved = self.moved, False
        if lengths is None:
            return has_moved
        self.lengths = lengths
        return True

    # --- which tuples names are ---

    def keeps_tuples(self, name: str, value: object) -> bool:
        """True if the name's tuples at the end of an iteration are those at its head, or the loop's."""
        return self.apart(name, value) is self.carried.entry[name]

    def split_tuples(self, name: str, value: object) -> bool:
        """Put tuples of the loop in place of the name's tuples that an iteration exchanged for others, even if their items are
        equal. Returns True if there are any.
        """
        entry = self.carried.entry
        before, entry[name] = entry[name], self.apart(name, value)
        return before is not entry[name]

    def apart(self, name: str, value: object) -> Any:
        entry, head = self.carried.entry[name], self.carried.head[name]
        if type(entry) in SINGLE or entry is value or not have_same_structure(head, value):
            return entry
        if name not in self.carried.snapshot.containers or type(entry) is not tuple:
            return apart(entry, head, value, self.are_one, self.own)
        assert type(value) is tuple
        parts = [apart(*items, self.are_one, self.own) for items in zip(entry, head, value, strict=True)]
        return entry if all(part is item for part, item in zip(parts, entry, strict=True)) else tuple(parts)

    def are_one(self, a: object, b: object) -> bool:
        """True if two tuples are one object to Python, or the first one is the loop's."""
        outside = self.loop.scope.stage.effects.outside
        return id(a) in self.tuples or outside(a) is outside(b)

    def own(self, like: object, items: list[Any]) -> Any:
        """A tuple of the loop."""
        made = remade(like, items)
        self.tuples[id(made)] = made
        return made


def is_undefined(name: str, value: object) -> bool:
    """True if a name that is unbound at the head may get an arbitrary value there, because it is not read."""
    return name.startswith(OWN_PREFIX) or type(value) is MaybeUnbound


def kinds_of(value: object) -> list[Any]:
    """Kinds and dtypes of a value's leaves; None if one is not a number."""
    return [kind_of(leaf) for leaf in leaves(value)]
