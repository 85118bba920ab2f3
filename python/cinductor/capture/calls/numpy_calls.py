"""Calls of NumPy: ufuncs, functions and methods of the surface, and random draws."""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a
from ...base.signals import Replan
from ...base.user_frame import call_in_place
from ...numpy import composites, pcg, philox, surface, twister
from ...numpy.generator_state import Words, give_up_words, is_python_generator, memory_reader
from ...numpy.index import flat as raveled
from ...numpy.index import ufunc_at
from ...numpy.python_random import PYTHON_DRAWS
from ...numpy.random import (
    DRAWS,
    GLOBAL,
    LEGACY,
    WRITING_DRAWS,
    Draw,
    is_python_global,
    state_of,
)
from ..control.backings import JOINS, array_of
from ..iterators import Flat
from ..kinds import is_tagged
from ..objects import FREE_TYPES, Traced, contains_traced, foreign_in
from .functions import call_function, call_unknown, call_with_foreign, name_of

if TYPE_CHECKING:
    from ..call_state import Stage
    from ..kinds import Hooks

MAX_OUTSIDE = 16  # draws outside of loops that are captured from their source
MAX_DRAWN = 1024  # items of `random.sample` and `random.choices`
NUMBER_METHODS: dict[str, Any] = {}  # methods that Python's numbers have and arrays lack
ufunc = np.ufunc


WARN_OF_THREE = (np.minimum, np.maximum)  # NumPy warns in each call of a third positional argument


def call_ufunc(scope: Hooks, f: ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc: traced if an operand is."""
    stage = scope.stage
    if runs_python(f) or (len(args) > 2 and f in WARN_OF_THREE):
        return call_unknown(scope, f, args, kwargs)
    if not FREE_TYPES.issuperset(map(type, (*args, *kwargs.values()))):
        if (foreign := foreign_in(stage.tracer, (*args, *kwargs.values()))) is not None:
            return call_with_foreign(scope, f, args, kwargs, foreign)
        if not FREE_TYPES.issuperset(map(type, args)):
            args = (*(scope.array_of(a) for a in args[: f.nin]), *map(stage.lift_nested, args[f.nin :]))
    if kwargs:
        kwargs = {k: stage.lift_nested(v) for k, v in kwargs.items() if v is not np._NoValue}
        if kwargs.get("out") is ...:  # an array also where NumPy would return a scalar
            del kwargs["out"]
            return as_array(scope, call_ufunc(scope, f, args, kwargs))
    outs: Any = kwargs.get("out") if kwargs else None
    outs = outs if is_a(outs, tuple) else (outs,)
    if len(args) > f.nin:
        outs = (*outs, *args[f.nin :])
    for out in outs:
        if out is not None and type(out) is Traced and stage.effects.before_write(out):
            return eager(scope, f, args, kwargs, out)
    if contains_traced((*args, *kwargs.values())):
        return f(*args, **kwargs)
    return constants(scope, call_in_place(f, args, kwargs))


def runs_python(f: ufunc) -> bool:
    """True if a function in Python computes the elements, as in the result of np.frompyfunc: it may have effects."""
    return f.ntypes == 1 and "O" in f.types[0]


def lifted(stage: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with traced arrays, also inside of lists, tuples and dicts."""
    real = {k: v if type(v) in FREE_TYPES else stage.lift_nested(v) for k, v in kwargs.items()} if kwargs else kwargs
    return tuple([a if type(a) in FREE_TYPES else stage.lift_nested(a) for a in args]), real


def as_array(scope: Hooks, value: Any) -> Any:
    """A result of `out=...`."""
    if is_a(value, tuple):
        return tuple(as_array(scope, v) for v in value)
    return surface.array(scope.stage.tracer, value)


def eager(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """A call that writes to overlapping memory: made immediately on real arrays."""
    stage = scope.stage
    result = call_in_place(f, tuple(map(stage.materialise, args)), {k: stage.materialise(v) for k, v in kwargs.items()})
    return out if result is stage.materialise(out) else stage.lift(result)


def constants(scope: Hooks, value: Any) -> Any:
    """The result of a pure NumPy function of constants."""
    if type(value) is np.ndarray:
        return scope.stage.constant(value)
    if type(value) is tuple or type(value) is list:
        return type(value)(constants(scope, v) for v in value)
    return value


def is_dense(value: Any) -> bool:
    """False if the result of a pure NumPy function is, or contains, a view with gaps, reversed axes or limited writes."""
    if type(value) is tuple or type(value) is list:
        return all(map(is_dense, value))
    if type(value) is not np.ndarray or value.flags.owndata:
        return True
    return value.strides == value.copy(order="K").strides and value.flags.writeable  # which may warn


def nested(value: Any) -> Iterator[Any]:
    """The items of nested lists and tuples."""
    for item in value:
        if type(item) in (list, tuple):
            yield from nested(item)
        else:
            yield item


def call_surface(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function of the surface."""
    stage = scope.stage
    if not FREE_TYPES.issuperset(map(type, (*args, *kwargs.values()))):
        if f in JOINS and len(args) == 1 and not kwargs and type(args[0]) is list:
            if (made := array_of(stage.state, args[0])) is not None:
                return made
        if any(type(a) is Flat for a in args):
            if f in COPIES and type(args[0]) is Flat:  # the copy shares memory with the array
                if len(args) > 1 or kwargs.keys() - {"dtype"}:
                    return call_unknown(scope, f, args, kwargs)
                f = np.asarray
            args = tuple(line_of(stage.tracer, a.array) if type(a) is Flat else a for a in args)
        if (foreign := foreign_in(stage.tracer, (*args, *kwargs.values()))) is not None:
            return call_with_foreign(scope, f, args, kwargs, foreign)
        args, kwargs = lifted(stage, args, kwargs)
    row = surface.functions_by_id[id(f)]
    if type(out := row.out_of(args, kwargs)) is Traced and stage.effects.before_write(out):
        return eager(scope, f, args, kwargs, out)
    stage.regions.note_class(args)
    for a in args:
        if type(a) in (list, tuple):  # the array's dtype follows from the classes of its items
            stage.regions.note_class([v for v in nested(a) if is_tagged(v)])
    if row.handler is None:
        return call_source(scope, row, args, kwargs)
    if row.writes and args and type(args[0]) is Traced and stage.effects.before_write(args[0]):
        return eager(scope, f, args, kwargs, args[0])
    if not row.creates and not contains_traced((*args, *kwargs.values())):
        made = call_in_place(f, args, kwargs)
        if is_dense(made):
            return constants(scope, made)
    try:
        return row.call(stage.tracer, args, kwargs)
    except surface.NotCaptured as error:
        why = f"calls {name_of(f)}: {error}"
    if row.follow is not None:
        return call_source(scope, row, args, kwargs)
    is_pure = not row.writes and not kwargs and f.__module__ != "numpy.random"
    return call_unknown(scope, f, args, kwargs, why, is_pure and not takes_functions(args))


def call_source(scope: Hooks, row: surface.Row, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy function that is captured from its source or from a substitute; NumPy's own
    function if that refuses."""
    try:
        return call_function(scope, row.follow, args, kwargs)
    except composites.Otherwise:
        pass
    return call_unknown(scope, row.function, args, kwargs)


COPIES = (np.array, np.copy)


def line_of(tracer: Any, array: Traced) -> Any:
    """The array that NumPy makes from array.flat, whose position stays: a view if the elements are contiguous,
    otherwise a copy that is read-only, because writes to it would be lost.
    """
    if array.flags.c_contiguous:
        return tracer.reshape(array, (array.size,))
    return tracer.expand(tracer.copy(raveled(tracer, array), "C"), (array.size,))


def takes_functions(args: tuple[Any, ...]) -> bool:
    """True if something among the arguments may run code of the user's."""
    return any(callable(a) or type(a) not in FREE_TYPES for a in args)


def call_array_method(
    scope: Hooks, f: Any, owner: Traced, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a traced value."""
    stage = scope.stage
    if (foreign := foreign_in(stage.tracer, (*args, *kwargs.values()))) is not None:
        return call_with_foreign(scope, getattr(stage.materialise(owner), name), args, kwargs, foreign)
    args, kwargs = lifted(stage, args, kwargs)
    row = surface.methods.get(name)
    out = kwargs.get("out") if row is None else row.out_of((owner, *args), kwargs)
    if type(out) is Traced and stage.effects.before_write(out):
        return eager(scope, getattr(stage.materialise(owner), name), args, kwargs, out)
    if name == "setflags":
        return scope.fall_back_for_flags(owner).setflags(*args, **kwargs)
    if name in surface.WRITING_METHODS and stage.effects.before_write(owner):
        return eager(scope, getattr(stage.materialise(owner), name), args, kwargs, owner)
    if name in NUMBER_METHODS and not args and not kwargs and stage.tracer.may_check():
        if owner.kind != "array" and hasattr(owner.__class__, name):
            return NUMBER_METHODS[name](scope, owner, args)
    if row is None:
        return stage.lift(f(*args, **kwargs))  # the traced value itself breaks
    try:
        return row.method(stage.tracer, owner, args, kwargs)
    except surface.NotCaptured as error:
        why = f"calls ndarray.{name}: {error}"
    if name in surface.WRITING_METHODS or kwargs:
        stage.effects.stop(why)
    else:
        stage.tracer.note_break(why)
    real = getattr(stage.materialise(owner), name)
    return stage.lift(call_in_place(real, stage.materialise(args), stage.materialise(kwargs)))


def call_ufunc_method(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Methods such as np.add.reduce."""
    stage = scope.stage
    if runs_python(f.__self__):
        return call_unknown(scope, f, args, kwargs)
    if (foreign := foreign_in(stage.tracer, (*args, *kwargs.values()))) is not None:
        return call_with_foreign(scope, f, args, kwargs, foreign)
    if f.__name__ == "at":  # its index may be a tuple, which is not an array
        args = tuple(stage.lift_nested(a) for a in args)
        if (
            args
            and type(args[0]) is Traced
            and not stage.effects.before_write(args[0])
            and not kwargs
        ):
            return call_ufunc_at(scope, f, args)
        return call_unknown(scope, f, args, kwargs)
    arrays = 1 if f.__name__ in ("reduce", "accumulate") else 2
    args = (*map(scope.array_of, args[:arrays]), *map(stage.lift_nested, args[arrays:]))
    kwargs = {k: stage.lift_nested(v) for k, v in kwargs.items()}
    if (out := kwargs.get("out")) is ...:
        del kwargs["out"]
        return as_array(scope, call_ufunc_method(scope, f, args, kwargs))
    if type(out) is Traced and stage.effects.before_write(out):
        return eager(scope, f, args, kwargs, out)
    if contains_traced(args) or contains_traced(kwargs.values()):
        return f(*args, **kwargs)
    return constants(scope, call_in_place(f, args, kwargs))


def draws_of(generator: Any) -> dict[str, Callable[..., Any]]:
    """The handlers of a generator's methods."""
    if is_python_generator(generator):
        return PYTHON_DRAWS
    return LEGACY if generator is GLOBAL or type(generator) is np.random.RandomState else DRAWS


def call_draw(scope: Hooks, f: Draw, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a generator of NumPy or Python that later calls can find."""
    stage = scope.stage
    if f.name in composites.OF_DRAWS and is_python_generator(f.generator):
        return call_of_draws(scope, f, args, kwargs)
    is_global = f.generator is GLOBAL or is_python_global(f.generator)
    source = stage.sources.source("const", f.generator) if is_global else stage.sources.source_of(f.generator)
    method = getattr(f.generator, f.name)
    if source is None or source < 0:
        return call_unknown(scope, method, args, kwargs)
    if (foreign := foreign_in(stage.tracer, (*args, *kwargs.values()))) is not None:
        return call_with_foreign(scope, method, args, kwargs, foreign)
    real, named = lifted(stage, args, kwargs)
    target = real[0] if real else named.get("x")
    writes = f.name in WRITING_DRAWS and type(target) is Traced
    if writes and stage.effects.before_write(target):
        return call_unknown(scope, method, args, kwargs)
    address: Any = words_of(scope, f.generator, source, f.name)
    try:
        if address is None:
            if not is_python_generator(f.generator) and any(methods is pcg.SOURCES for _, methods in stage.draw_states.values()):
                give_up_words(stage, f.name)
            if id(f.generator) not in stage.effects.draws:
                stage.effects.draws[id(f.generator)] = (f.generator, state_of(f.generator))
            address = stage.tracer.scalar(id(f.generator), stage.sources.source("address", source))
            if stage.runs_on != "cpu" and f.name in philox.SOURCES and philox.is_philox(f.generator):
                stage.lift_guarded(f.generator.bit_generator, stage.sources.source("attr", source, "bit_generator"))
                address = philox.PhiloxDraws(scope, address)
        if f.name == "choice" and is_python_generator(f.generator):
            return scope.item(args[0], PYTHON_DRAWS[f.name](stage.tracer, address, scope.call(len, *args)))
        return draws_of(f.generator)[f.name](stage.tracer, address, *real, **named)
    except (surface.NotCaptured, TypeError, ValueError, OverflowError) as error:
        why = f"calls {name_of(method)}: {error}"
    return call_unknown(scope, method, args, kwargs, why)  # whose exceptions have no context


def words_of(scope: Hooks, generator: Any, source: int, name: str) -> Words | None:
    """The state of a generator as arrays of the call, over its memory; None if the draws of a method are library calls. One
    kind of draws does not see what the other one has changed until there is an effect. Generators of NumPy may share a state.
    """
    stage = scope.stage
    may_read = stage.inlines_draws and stage.device is None and stage.tracer.may_check()  # the memory is the host's
    reader = memory_reader(generator) if may_read else None
    if reader is None or (reader[1] is pcg.SOURCES and name not in pcg.SOURCES):
        return None
    memory_of, methods = reader
    if source not in stage.draw_states:
        if not stage.tracer.in_region and stage.has_draws_apart:
            return None
        try:
            memory = memory_of(generator)
        except ValueError:
            stage.inlines_draws = False
            return None
        has_own_state = is_python_generator(generator)
        if any(f is generator or not (has_own_state or is_python_generator(f)) for f, _ in stage.effects.draws.values()):
            assumption = "draws_apart" if stage.has_draws_apart else "inline_draws"
            raise Replan(assumption, "a loop or branch draws, after a draw outside of it")
        made = stage.sources.note_made(memory, memory_of, source)
        stage.lift_guarded(memory, made)
        arrays = tuple(stage.lift_guarded(part, stage.sources.source("item", made, k)) for k, part in enumerate(memory))
        stage.draw_states[source] = arrays, methods
    elif not stage.tracer.in_region:
        stage.draws_outside += 1
        if stage.draws_outside > MAX_OUTSIDE:
            raise Replan("inline_draws", "Python runs a loop that draws")
    return Words(scope, stage.draw_states[source][0], methods, functools.partial(normal_of, stage, generator, source))


def normal_of(stage: Stage, generator: Any, source: int) -> Any:
    """The array with the number that a generator keeps, which is stored in it when the call returns or at an effect; None if
    there has been an effect, or it is no float.
    """
    if id(generator) not in stage.effects.normals:
        try:
            made = None if stage.tracer.effects else twister.normal_of(generator)
        except ValueError:
            made = None
        if made is None:
            return None
        array = stage.lift_guarded(made, stage.sources.note_made(made, twister.normal_of, source))
        stage.effects.normals[id(generator)] = (generator, array, array.version)
    return stage.effects.normals[id(generator)][1]


def call_of_draws(scope: Hooks, f: Draw, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of random.Random that draws several items of a sequence: its source is captured."""
    source, draw = composites.OF_DRAWS[f.name]
    count = kwargs.get("k", args[1] if len(args) > 1 and f.name == "sample" else 1)
    population = scope.stage.lift_array(args[0]) if args else None
    is_known = type(population) in (list, tuple, range) and type(count) is int and count <= MAX_DRAWN
    if not is_known or "counts" in kwargs:
        return call_unknown(scope, getattr(f.generator, f.name), args, kwargs)
    return call_function(scope, source, (getattr(f.generator, draw), population, *args[1:]), kwargs)


VECTORIZE = ("otypes", "excluded", "signature", "cache", "pyfunc", "_ufunc")  # attributes of np.vectorize's object


def call_vectorized(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of np.vectorize's object: a loop over elements that inlines its function."""
    stage = scope.stage
    otypes, excluded, signature, cache, function, kept = (scope.attr(f, name) for name in VECTORIZE)
    otypes = [] if otypes is None else [*scope.iter(otypes)]  # a text, or from NumPy 2.5 on a list
    args = tuple(stage.lift_nested(a) for a in args)
    plain = not kwargs and scope.not_(excluded) and signature is None and not cache and len(otypes) <= 1
    has_array = any(type(a) is Traced and a.ndim and stage.tracer.is_positive(a.size) for a in args)
    is_inlined = plain and has_array and type(function) is types.FunctionType
    is_kept = is_inlined and otypes and len(args) not in kept and stage.tracer.in_region  # in an arm that may not run
    if not is_inlined or is_kept or (otypes and not is_called_by(kept, function, len(args))):
        return call_unknown(scope, f, args, kwargs)
    dtype = np.dtype(otypes[0]) if otypes else None
    return call_function(scope, composites.vectorized, (function, dtype, *args), {})  # type: ignore[arg-type]


def is_called_by(kept: dict[int, Any], function: Any, count: int) -> bool:
    """True if np.vectorize's object calls this function, which is its `pyfunc`. If it has dtypes, its first call keeps the
    function that it calls for so many arguments, and later ones call that. kept: these functions.
    """
    called = kept.setdefault(count, np.frompyfunc(function, count, 1))
    return any(part is function for part in gc.get_referents(called))


def call_ufunc_at(scope: Hooks, f: Any, args: tuple[Any, ...]) -> Any:
    """np.add.at and similar methods."""
    row = surface.Row(f, "").fill(lambda t, *given: ufunc_at(t, f.__self__, *given))
    try:
        return row.call(scope.stage.tracer, args, {})
    except surface.NotCaptured as error:
        why = f"calls {name_of(f)}: {error}"
    return call_unknown(scope, f, args, {}, why)


def call_numpy_scalar(
    scope: Hooks, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """np.float32(x)"""
    if (foreign := foreign_in(scope.stage.tracer, args)) is not None:
        return call_with_foreign(scope, cls, args, kwargs, foreign)
    if len(args) == 1 and not kwargs:
        value = scope.array_of(args[0]) if type(args[0]) in (list, tuple) else args[0]
        if type(value) is Traced:
            try:
                return surface.scalar_of(scope.stage.tracer, cls, value)
            except surface.NotCaptured as error:
                why = f"calls {name_of(cls)}: {error}"
            return call_unknown(scope, cls, (value,), {}, why)
    if any(type(a) is Traced for a in (*args, *kwargs.values())):
        return call_unknown(scope, cls, args, kwargs, f"calls {name_of(cls)} with a computed value")
    return constants(scope, cls(*(scope.use(a) for a in args), **kwargs))
