"""The end of a captured call: what the function returned, materialised, and as a recipe for later calls.

What a recipe cannot make again has been materialised before: then Python has to run in each call, and
the stage knows why.
"""

from __future__ import annotations

import collections
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..instance import is_a
from .value.handed import is_iterator
from .value.objects import (
    BOUND,
    CONSTANT_LEAVES,
    DTYPE_TYPES,
    IDENTITY_TYPES,
    MISSING,
    UNBOUND,
    DeferredCall,
    Traced,
    attributes_of,
    bounds_of,
    choose,
    find_in_class,
    has_attributes_alone,
    holds_items,
    hooked_in,
    in_slots,
    is_record,
    is_tuple,
    put,
    remade,
    slots_of,
)

if TYPE_CHECKING:
    from ..job import Job
    from .stage import Stage

MOST_OTHERS = 32  # objects of a class beside the one that is stored to


def place_of_function(fn: Any) -> tuple[str, int]:
    """File and line of a function; of what has none, of its class."""
    code = getattr(fn, "__code__", None)
    return ("?", 0) if code is None else (code.co_filename, code.co_firstlineno)


def finish(job: Job, stage: Stage, result: Any) -> tuple[Any, Any]:
    """Ends the capture: the real result and a specialisation, or None when Python must run
    again.
    """
    stage.runs = False
    reached: dict[int, int] = {}
    result = with_stores(stage, result)
    leaves = traced_in(result, set())
    stage.regions.aliases.before_return(leaves)
    result = returnable(stage, result, reached, {})
    stage.handed.end()
    if not stage.tracer.needs_python:
        stage.arrays.check_disjoint()
    for source, value, *kind in stage.tracer.specialized:
        stage.check(source, *(kind or ["equals"]), value)
    if stage.symbols is not None:
        stage.symbols.finish()
    stage.check_all()
    made, specialization = stage.tracer.finish(stage.sources, stage.checks, result, reached)
    if type(specialization) is str:
        stage.why_again, specialization = f"returns {specialization}", None
        if job.settings["fullgraph"] and stage.undo():
            file, line = place_of_function(job.fn)
            raise _core.Unsupported(f"{file}:{line}: {stage.why_again} (fullgraph=True)")
    return made, specialization


def traced_in(value: Any, seen: set[int]) -> list[Any]:
    """The traced values in a result."""
    if type(value) is Traced:
        return [value]
    if is_a(value, list | frozenset | collections.deque) or is_tuple(type(value)):
        items = list(value)
    elif type(value) is slice:
        items = [value.start, value.stop, value.step]
    elif is_a(value, dict) or is_instance(value):
        items = list((value if is_a(value, dict) else attributes_of(value) or {}).values())
        items += [] if is_a(value, dict) else in_slots(value)
    else:
        return []
    if id(value) in seen:
        return []
    seen.add(id(value))
    return [found for item in items for found in traced_in(item, seen)]


def returnable(stage: Stage, value: Any, reached: dict[int, int], seen: dict[int, Any]) -> Any:
    """The result with what replay cannot make turned into real objects (then Python must run)."""
    cls = type(value)
    if cls is Traced:
        if value.strong is not None:
            if not stage.may_check():
                return stage.materialise(value)
            if id(value) not in seen:
                seen[id(value)] = either_class(stage, value)
            return seen[id(value)]
        if id(value) not in seen and is_loose(stage, value):
            seen[id(value)] = view_call(stage, value, reached, seen)
        return seen.get(id(value)) or stage.tracer.as_data(value)
    if cls is np.ndarray:
        return stage.lift_array(value)
    if cls in CONSTANT_LEAVES or is_a(value, np.generic) or cls in DTYPE_TYPES:
        return value
    if cls in BOUND and type(value.__self__) is Traced:
        stage.effect("returns a method of an array")
        return stage.materialise(value)
    if id(value) in stage.state.growing:
        return DeferredCall(stage.state.growing[id(value)].recipe())
    if id(value) in stage.state.sized_lists:
        return returnable(stage, stage.state.sized_lists[id(value)].recipe(), reached, seen)
    source = stage.source_of(value)
    if source is not None:
        if source >= 0:
            reached[id(value)] = source
        return value
    if cls is slice and any(type(v) is Traced for v in bounds_of(value)):
        return DeferredCall((slice, *(returnable(stage, v, reached, seen) for v in bounds_of(value))))
    if cls is frozenset and any(type(v) is Traced for v in value):
        stage.effect("returns a frozenset of traced numbers")
        return stage.materialise(value)
    if cls in IDENTITY_TYPES or is_a(value, type) or cls in (range, slice, frozenset):
        if cls is types.FunctionType:
            stage.effect("returns a function made in the call")
            return stage.materialise(value)
        if cls in (slice, frozenset) and traced_in(value, set()):
            stage.effect(f"returns a {cls.__name__} made in the call")
            return stage.materialise(value)
        return value
    if is_iterator(cls):
        stage.abandon(f"returns a {cls.__name__} made in the call")
        return stage.materialise(value)
    if cls is types.GeneratorType:
        stage.abandon("returns a generator made in the call")
        if stage.handed.now(value) is not value:
            return stage.handed.now(value)
        items = [stage.materialise(v) for v in value]
        return (v for v in items)
    if id(value) in seen and not is_a(value, tuple):
        stage.effect("returns one container twice")
        return stage.materialise(value)
    seen[id(value)] = value
    if cls is DeferredCall:
        return DeferredCall((value[0], *(returnable(stage, v, reached, seen) for v in value[1:])))
    if cls is list or (is_record(cls) and not attributes_of(value)):
        items = [returnable(stage, v, reached, seen) for v in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else remade(value, items)
    if cls is dict and (hooked := hooked_in(value)) is not None:  # who fills it asks for hashes
        stage.effect(f"returns a dict with keys of class {hooked.__name__}")
        return stage.materialise(value)
    if cls is dict:
        stage.concrete_keys(value)
        for key, item in value.items():
            value[key] = returnable(stage, item, reached, seen)
        return value
    if cls is collections.deque and not stage.tracer.needs_python:
        items = [returnable(stage, v, reached, seen) for v in value]
        return DeferredCall((collections.deque, items, value.maxlen))
    if is_instance(value) and not stage.tracer.needs_python:
        own = {k: returnable(stage, v, reached, seen) for k, v in (attributes_of(value) or {}).items()}
        slots = [v if v is UNBOUND else returnable(stage, v, reached, seen) for v in in_slots(value)]
        return DeferredCall((instance, cls, own, *slots))
    stage.effect(f"returns an object of class {cls.__name__}")
    return stage.materialise(value)


def with_stores(stage: Stage, result: Any) -> Any:
    """The result, and what has waited for it in objects that outlive the call."""
    pairs = stage.stores.waiting()
    for value, places in pairs:
        if not are_distinct(stage, value):
            kind = "items" if holds_items(value) else "attributes"
            stage.effect(f"sets {kind} ({next(iter(places))!r}) of one of many objects")
            return result
    stage.stores.take()
    return DeferredCall((stored, result, *pairs)) if pairs else result


def are_distinct(stage: Stage, value: Any) -> bool:
    """Another call may give one object twice: it is guarded that the others are others. False: they
    are too many.
    """
    cls, mine = type(value), stage.source_of(value)
    others = []
    for other, source in list(stage.known.values()):
        if other is value or source < 0 or is_a(other, type) or type(other) is object:
            continue
        is_made = stage.sources[source][0] == "made"
        if not is_made and (is_a(other, cls) or issubclass(cls, type(other))):
            others.append(source)
    if len(others) > MOST_OTHERS:
        return False
    for source in others:
        stage.check(mine, "other", source)
    return True


def stored(result: Any, *pairs: tuple[Any, dict[Any, Any]]) -> Any:
    """Sets attributes and items; the result."""
    for value, places in pairs:
        for place, item in places.items():
            put(value, place, item)
    return result


def either_class(stage: Stage, value: Any) -> DeferredCall:
    """A number that is NumPy's or Python's: the program says which, and it is made anew."""
    number = stage.tracer.tagged(value, None)
    wide = np.dtype(np.float64) if value.dtype.kind == "f" else value.dtype
    pythons = stage.tracer.as_python(stage.tracer.cast(number, wide))
    return DeferredCall((choose, stage.tracer.as_python(value.strong), number, pythons))


def instance(cls: type, attributes: dict[str, Any], *slots: Any) -> Any:
    """An object of a class of the user's with these attributes, without its __init__."""
    made = object.__new__(cls)
    if attributes:
        made.__dict__.update(attributes)
    for slot, value in zip(slots_of(cls), slots, strict=True):
        if value is not UNBOUND:
            slot.__set__(made, value)
    return made


def is_instance(value: Any) -> bool:
    """An object of a class of the user's that is nothing but its attributes."""
    cls = type(value)
    return (
        type(cls) is type
        and cls.__new__ is object.__new__
        and has_attributes_alone(cls)
        and find_in_class(cls, "__del__") is MISSING
    )


def is_loose(stage: Stage, value: Any) -> bool:
    """A view whose layout data decide."""
    if value.kind != "array" or value.whole is value:
        return False
    layout = (*value.shape, *value.strides, value.offset)
    fixed = (n.is_fixed for n in layout if type(n) is Traced)
    return not all(fixed)


def view_call(stage: Stage, value: Any, reached: dict[int, int], seen: dict[int, Any]) -> DeferredCall:
    """How a later call makes such a view."""
    layout = (value.shape, value.strides, value.offset)
    parts = (returnable(stage, part, reached, seen) for part in (value.whole, *layout))
    return DeferredCall((view, value.dtype, value.flags_now.writeable, *parts))


def view(
    dtype: np.dtype,
    writable: bool,
    whole: np.ndarray,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
) -> np.ndarray:
    """Part of an array's memory."""
    if whole.size == 0 and not any(whole.strides):
        strides, offset = (0,) * len(shape), 0
    return _core.view(whole, dtype, shape, strides, offset, writable)
