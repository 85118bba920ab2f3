"""The entry of a call into capture, and its end.

Arguments become traced, and the function is replaced by the rewritten one. Its result is materialised, and a
recipe is made for later calls. Parts that a recipe cannot make again are materialised first; then Python has to
run in each call, and the stage has the reason.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from ..base.deferred import DeferredCall, DeferredChoice, DeferredObject, choose, view_of
from ..base.signals import Abandon, Replan
from ..base.signature import KEYWORD_ONLY, VAR_KEYWORD, VAR_POSITIONAL, method_of
from ..numpy.twister import keep_normal
from .call_state import Stage
from .calls.calls import dispatch
from .calls.functions import bind
from .container_rows import MAPPINGS, ROWS
from .containers import is_constant
from .control import given_mappings, list_columns
from .deaths import WITHOUT_REFERENTS, why_not_saved
from .effects import Materialiser
from .iterators import TracedBytes, bytes_in, is_iterator
from .objects import (
    BOUND,
    CONSTANT_LEAVES,
    CONTAINER_TYPES,
    DTYPE_TYPES,
    IDENTITY_TYPES,
    METHODS_IN_C,
    MISSING,
    UNBOUND,
    Traced,
    attributes_of,
    bounds_of,
    contains_items,
    find_in_class,
    has_attributes_alone,
    has_owner,
    hooked_in,
    in_slots,
    is_record,
    is_tuple,
    put,
    remade,
    slots_of,
)
from .records import emitted
from .syntax.names import MEASURES, Names, Uses
from .syntax.rewrite import NOT_FOUND, NotRewritable, find_function, rewrite

if TYPE_CHECKING:
    from ..calls.job import Job


def arguments_of(job: Job, bound: tuple[Any, ...]) -> list[Any]:
    """The argument values, with those of *args and **kwargs individually."""
    values: list[Any] = []
    for kind, value in zip(job.kinds, bound, strict=True):
        if kind == VAR_POSITIONAL:
            values.extend(value)
        elif kind == VAR_KEYWORD:
            values.extend(value.values())
        else:
            values.append(value)
    return values


def call(job: Job, stage: Stage, bound: tuple[Any, ...]) -> Any:
    """Runs the function on traced arguments."""
    fn = job.fn
    if type(fn) is not types.FunctionType:
        target: Callable[..., Any] = lift_callable(stage, fn)
        stage.tracer.code = code_of_method(fn)
        scope = stage.hooks(stage, anchor)
        stage.depth = -1  # so that the user's function has depth 0
        positional, named = lift_arguments(job, stage, bound)
        stage.runs = True
        return dispatch(scope, target, tuple(positional), named)
    stage.sources.known.setdefault(id(fn), (fn, stage.sources.source("const", fn)))
    try:
        new = bind(stage, fn)
        stage.tracer.code = new.__code__
    except NotRewritable as reason:
        return refuse(job, str(reason))
    stage.functions[id(fn)] = (fn, new)
    positional, named = lift_arguments(job, stage, bound)
    stage.runs = True
    return new(*positional, **named)


def code_of_method(fn: Any) -> types.CodeType | None:
    """The code that capture runs for a method or a callable object."""
    method = method_of(fn)
    try:
        return None if method is None else rewrite(method).code
    except NotRewritable:
        return None


def refuse(job: Job, reason: str) -> Any:
    """Run a function that cannot be rewritten in Python. Warn if the user could not have expected
    that."""
    if reason == NOT_FOUND:
        reason += (
            " (what is typed at >>> or made by exec has none), and its bytecode cannot be decompiled;"
            " define it in a file or a notebook's cell"
        )
        job.warn_once("source", f"{job.title} runs in NumPy: {reason}")
    raise Abandon(reason) from None


def anchor() -> None:
    """A function with empty globals, from which callables that are not functions are called."""


def lift_callable(stage: Stage, fn: Any) -> Any:
    """A callable object, lifted as a constant."""
    source = stage.sources.source("const", fn)
    if is_a(fn, types.MethodType):
        stage.lift_guarded(fn.__func__, stage.sources.source("attr", source, "__func__"))
        stage.lift_guarded(fn.__self__, stage.sources.source("attr", source, "__self__"))
        return fn
    return stage.lift_guarded(fn, source)


def lift_arguments(
    job: Job, stage: Stage, bound: tuple[Any, ...]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as the function's frame gets them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    scope = stage.hooks(stage, anchor)
    for i, value in enumerate(bound):  # sizes before ints, which may equal one
        if type(value) is np.ndarray:
            stage.lift_guarded(value, stage.sources.source("arg", i))
    for i, (name, kind, value) in enumerate(zip(job.names, job.kinds, bound, strict=True)):
        source = stage.sources.source("arg", i)
        if kind in (VAR_POSITIONAL, VAR_KEYWORD):
            items = stage.items_of(value, source)
            for key, item in zip(value if kind == VAR_KEYWORD else range(len(value)), items, strict=True):
                list_columns.enter(scope, item, stage.sources.source("item", source, key))
            positional += items if kind == VAR_POSITIONAL else []
            named.update(zip(value, items, strict=True) if kind == VAR_KEYWORD else ())
        elif kind == KEYWORD_ONLY:
            named[name] = lift_argument(job.fn, scope, name, value, source)
        else:
            positional.append(lift_argument(job.fn, scope, name, value, source))
    return positional, named


def lift_argument(fn: Any, scope: Any, name: str, value: Any, source: int) -> Any:
    """Lift one argument. A bytes object that is long or varies, and of which only items are read, becomes an array; a long list
    of numbers is read as one.
    """
    stage = scope.stage
    if type(value) is list:
        value = stage.lift_guarded(value, source)
        list_columns.enter(scope, value, source)
        return value
    if type(value) in given_mappings.GIVEN and (len(value) > list_columns.FEW or not stage.has_small_containers):
        value = stage.lift_guarded(value, source)
        given_mappings.enter(scope, value, source)
        return value
    if type(value) is not bytes or type(fn) is not types.FunctionType or stage.symbols is None:
        return stage.lift_guarded(value, source)
    has_builtins = MEASURES.isdisjoint(fn.__globals__)
    is_decomposed = has_builtins and name in bytes_read_of(fn.__code__, fn.__qualname__)
    is_long = len(value) > list_columns.FEW
    if not is_decomposed or not stage.symbols.are_data(value, stage.sources.place(source), is_long):
        return stage.lift_guarded(value, source)
    stage.sources.check(source, "type", bytes)
    array = stage.sources.make(bytes_in, source, value)
    return TracedBytes(value, stage.lift_guarded(array, stage.sources.source_of(array)))


@functools.lru_cache(maxsize=256)
def bytes_read_of(code: types.CodeType, qualname: str) -> frozenset[str]:
    """The parameters of which the function only reads items."""
    node = find_function(code, qualname)
    is_free = MEASURES.isdisjoint((*code.co_cellvars, *code.co_freevars))
    return Uses(node, Names(node)).octets() if node is not None and is_free else frozenset()


# --- the end of a captured call ---


MAX_OTHERS = 32  # other objects of the class of one that is stored to
LEAVES = IDENTITY_TYPES | {range, slice, frozenset}  # results whose parts are not described one by one


def place_of_function(fn: Any) -> tuple[str, int]:
    """File and line of a function; if it has none, of its class."""
    code = getattr(fn, "__code__", None)
    return ("?", 0) if code is None else (code.co_filename, code.co_firstlineno)


def finish(job: Job, stage: Stage, result: Any) -> tuple[Any, Any]:
    """End the capture: the real result and a specialisation, or None if Python must run in each call."""
    stage.runs = False
    reached: dict[int, int] = {}
    stage.effects.fill_cells()
    result = with_stores(stage, result)
    stage.stores.has_given |= type(result) is DeferredCall
    leaves = traced_in(result, set())
    stage.regions.aliases.before_return(leaves)
    needed_python, given = stage.tracer.needs_python, result
    result = Returned(stage, reached).of(given)
    if stage.tracer.needs_python and not needed_python:
        result = Returned(stage, reached).of(given)  # whose lists were copies
    stage.escapes.end()
    if not stage.tracer.needs_python:
        stage.arrays.check_disjoint()
    for source, value, *kind in stage.tracer.specialized:
        stage.sources.check(source, *(kind or ["equals"]), value)
    if stage.symbols is not None:
        stage.symbols.finish()
    stage.sources.check_all()
    stage.tracer.on_flags = None if stage.device else stage.effects.leaves_to_numpy
    made, specialization = stage.tracer.finish(stage.sources.rows, stage.sources.checks, result, reached)
    if made is not _core.MISSING:
        stage.tracer.effects += stage.stores.has_given  # what has been stored stays
        stage.effects.check_handed_out(made)
    why = f"returns {specialization}" if type(specialization) is str else why_not_saved(stage.sources.checks)
    if why is not None:
        stage.why_again, specialization = why, None
        if job.settings["fullgraph"] and stage.effects.undo():
            file, line = place_of_function(job.fn)
            raise _core.Unsupported(f"{file}:{line}: {stage.why_again} ({job.why_whole})")
    return made, specialization


def traced_in(value: Any, seen: set[int]) -> list[Any]:
    """The traced values in a result."""
    if type(value) is Traced:
        return [value]
    if type(value) in ROWS:
        items = list(ROWS[type(value)].items(value))
    elif is_a(value, list | frozenset) or is_tuple(type(value)):
        items = list(value)
    elif type(value) is slice:
        items = [value.start, value.stop, value.step]
    elif is_a(value, dict) or is_instance(value):
        items = list((value if is_a(value, dict) else attributes_of(value) or {}).values())
        items += [] if is_a(value, dict) else in_slots(value)
    else:
        return []
    if id(value) in seen or WITHOUT_REFERENTS.issuperset(map(type, items)):
        return []
    seen.add(id(value))
    return [found for item in items for found in traced_in(item, seen)]


class Returned:
    """Describes the result of a call for replay. An object that replay cannot make becomes a real one, and Python runs each call then.

    reached: the sources of parts that outlive the call, by id. seen: the parts that the call has made, by id.
    """

    def __init__(self, stage: Stage, reached: dict[int, int]) -> None:
        self.tracer, self.state, self.lifting, self.effects = stage.tracer, stage.state, stage.lifting, stage.effects
        self.aliases, self.reached = stage.regions.aliases, reached
        self.seen: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """The description of a result, or of a part of one."""
        cls = type(value)
        if cls is Traced:
            return self.traced(value)
        if cls is np.ndarray:
            return self.lifting.lift_array(value)
        if cls in CONSTANT_LEAVES or is_a(value, np.generic) or cls in DTYPE_TYPES:
            return value
        if cls in BOUND and type(value.__self__) is Traced:
            return self.real(value, "a method of an array")
        if id(value) in self.state.lists and id(value) not in self.seen:
            self.seen[id(value)] = value
            return self.of(DeferredObject(self.state.lists[id(value)].recipe()))
        real = self.effects.remade.get(id(value), (None, value))[1]  # the caller's tuple, of which this one has the items
        source = self.state.sources.source_of(real)
        if source is None:
            return self.leaf(value) if cls in LEAVES or is_a(value, type) or is_iterator(cls) else self.made(value)
        if source >= 0:
            self.reached[id(real)] = source
        elif not self.tracer.needs_python:
            self.effects.note(f"returns a {cls.__name__} that no guard reaches")
        return real

    def all(self, values: Iterable[Any]) -> list[Any]:
        """The descriptions of parts."""
        return [self.of(value) for value in values]

    def real(self, value: Any, what: str) -> Any:
        """The real object, for a result that replay cannot make."""
        self.effects.note(f"returns {what}")
        return self.effects.materialise(value)

    def traced(self, value: Traced) -> Any:
        """A traced value: itself, or how a later call makes it of others."""
        if value.strong is not None and not self.tracer.may_check():
            return self.effects.materialise(value)
        if id(value) in self.seen:
            return self.seen[id(value)]
        choice = self.aliases.choice(value) if self.state.choices else None
        self.seen[id(value)] = value.as_data()  # which a choice or a view may have
        if value.strong is not None:
            self.seen[id(value)] = either_class(self.tracer, value)
        elif choice is not None:
            self.seen[id(value)] = self.made(choice)
        elif has_layout_of_data(value):
            self.seen[id(value)] = self.made(view_of(value))
        return self.seen[id(value)]

    def leaf(self, value: Any) -> Any:
        """An object without items that could be described: the same in each call, unless the call has made it or its parts."""
        cls, name = type(value), type(value).__name__
        if cls is slice and any(type(v) is Traced for v in bounds_of(value)):
            return DeferredObject((slice, *self.all(bounds_of(value))))
        if cls is frozenset and any(type(v) is Traced for v in value):
            return self.real(value, "a frozenset of traced numbers")
        if cls in METHODS_IN_C and has_owner(value):
            if type(value.__self__) in CONTAINER_TYPES:
                return DeferredObject((getattr, self.of(value.__self__), value.__name__))
            return self.real(value, f"a method of a {type(value.__self__).__name__}")
        if cls is types.FunctionType or (cls in (slice, frozenset) and not is_constant(value)):
            return self.real(value, f"a {'function' if cls is types.FunctionType else name} made in the call")
        if cls not in LEAVES and not is_a(value, type):
            self.effects.abandon(f"returns a {name} made in the call")
            return self.effects.materialise(value)
        return value

    def made(self, value: Any) -> Any:
        """A generator, a container or an object that the call has made."""
        cls, tracer = type(value), self.tracer
        if cls is types.GeneratorType and self.effects.is_captured(value):
            self.effects.abandon("returns a generator made in the call")
            return self.effects.materialise(value)
        if id(value) in self.seen and not is_a(value, tuple):
            return self.real(value, "one container twice")
        if (cls in (list, dict) and tracer.needs_python) or id(value) in self.effects.remade:
            return self.effects.materialise(value)  # other code may have that very object
        self.seen[id(value)] = value
        if is_a(value, DeferredCall):
            return cls((value[0], *self.all(value[1:])))
        if cls is list or (is_record(cls) and not attributes_of(value)):
            items = self.all(tracer.paced(value))
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else remade(value, items)
        if cls in MAPPINGS:
            if (hooked := hooked_in(value)) is not None:  # filling it calls the user's hashes
                return self.real(value, f"a {cls.__name__} with keys of class {hooked.__name__}")
            Materialiser(self.effects).fill_keys(value)
        if cls is dict:
            items_of = {key: self.of(item) for key, item in tracer.paced(value.items())}
            return value if all(items_of[key] is item for key, item in value.items()) else items_of
        build = ROWS[cls].build if cls in ROWS else None
        if build is not None and not tracer.needs_python and not attributes_of(value):
            return self.of(DeferredObject(build(value, [*ROWS[cls].items(value)])))
        if is_instance(value) and not tracer.needs_python:
            own = {k: self.of(v) for k, v in (attributes_of(value) or {}).items()}
            slots = [v if v is UNBOUND else self.of(v) for v in in_slots(value)]
            return DeferredObject((instance, cls, own, *slots))
        return self.real(value, f"an object of class {cls.__name__}")


def with_stores(stage: Stage, result: Any) -> Any:
    """The result together with the deferred stores to objects that outlive the call."""
    if (taken := stage.records.take()) is not None:
        if not all(are_distinct(stage, target) for target in taken[1]):
            raise Replan("list_columns", "one of many objects grows")
        result = DeferredCall((emitted, result, *taken))
    waiting = stage.stores.waiting() if stage.stores.objects else []
    lists = [value for value, _ in waiting if is_a(value, list)]
    columns = list_columns.changed(stage.state, lists) if stage.state.lists or lists else []
    if stage.effects.normals:
        columns += stage.effects.take_normals()
    if not (pairs := [*waiting, *columns]):
        return result
    for value, places in pairs:
        if not are_distinct(stage, value):
            kind = "items" if contains_items(value) else "attributes"
            which = f" ({next(iter(places))!r})" if type(places) is dict else ""
            stage.effects.note(f"sets {kind}{which} of one of many objects")
            stored(result, *((stage.materialise(part) for part in pair) for pair in columns))  # type: ignore[arg-type]
            return result
    stage.stores.take()
    return DeferredCall((stored, result, *pairs))


def are_distinct(stage: Stage, value: Any) -> bool:
    """Guard that objects which differ in this call differ in later calls. False: there are too many."""
    cls, mine = type(value), stage.sources.source_of(value)
    others = []
    for other, source in list(stage.sources.known.values()):
        if other is value or source < 0 or is_a(other, type) or type(other) is object:
            continue
        is_made = stage.sources.rows[source][0] == "made"
        if not is_made and (is_a(other, cls) or issubclass(cls, type(other))):
            others.append(source)
    if len(others) > MAX_OTHERS:
        return False
    for source in others:
        stage.sources.check(mine, "other", source)
    return True


def stored(result: Any, *pairs: tuple[Any, dict[Any, Any]]) -> Any:
    """Perform the stores; return the result."""
    for value, places in pairs:
        if type(places) is np.ndarray:  # type: ignore[comparison-overlap]
            (store_items if type(value) is list else keep_normal)(value, places)
            continue
        if type(places) is list:  # type: ignore[comparison-overlap]
            given_mappings.store_entries(value, *places)
            continue
        for place, item in places.items():
            put(value, place, item)
    return result


def store_items(value: list[Any], array: np.ndarray) -> None:
    """Store the numbers of an array in the list that it was made of, which may have been shorter or longer."""
    del value[len(array) :]
    count = len(value)
    if count:
        _core.store_column(value, array[:count])
    value.extend(array[count:].tolist())


def either_class(tracer: _core.Tracer, value: Any) -> DeferredChoice:
    """A number of one class or another: the program says which, and it is rebuilt."""
    number = tracer.tagged(value, None)
    pythons = tracer.as_python(tracer.cast(number, value.weak))
    return DeferredChoice((choose, tracer.as_python(value.strong), number, pythons))


def instance(cls: type, attributes: dict[str, Any], *slots: Any) -> Any:
    """An object of a user's class with these attributes, made without its __init__."""
    made = object.__new__(cls)  # type: ignore[var-annotated]
    if attributes:
        attributes_of(made).update(attributes)
    for slot, value in zip(slots_of(cls), slots, strict=True):
        if value is not UNBOUND:
            slot.__set__(made, value)
    return made


def is_instance(value: Any) -> bool:
    """True for an object of a user's class that only consists of its attributes."""
    cls = type(value)
    return (
        find_in_class(cls, "__new__") is object.__dict__["__new__"]
        and has_attributes_alone(cls)
        and find_in_class(cls, "__del__") is MISSING
    )


def has_layout_of_data(value: Any) -> bool:
    """True for a view whose layout depends on data."""
    if value.kind != "array" or value.whole is value:
        return False
    layout = (*value.shape, *value.strides, value.offset)
    fixed = (n.is_fixed for n in layout if type(n) is Traced)
    return not all(fixed)
