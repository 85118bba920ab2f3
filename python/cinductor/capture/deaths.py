"""Objects die when Python's would, where the user's code can see it.

Tables of a call keep objects alive. Code that is not captured can see that: an array that is alive holds a buffer, a
weak reference still has its object, and `__del__` does not run. So the tables drop what nothing else refers to before
such code runs. If a death runs code of the user's, Python runs the rest of the call, because that code may
change anything that is read afterwards.
"""

from __future__ import annotations

import builtins
import dis
import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a, module_of
from .objects import FREE_TYPES, IDENTITY_TYPES, MISSING, OPAQUE, find_in_class

if TYPE_CHECKING:
    from .known_arrays import Arrays
    from .sources import Sources

LIFETIMES = frozenset({"weakref", "_weakref", "_weakrefset", "gc"})  # modules that observe when objects die
LASTING = type | types.CodeType  # what reaches these does not keep them alive alone
TRACKED = 1 << 14  # the flag of classes whose objects tell the garbage collector what they hold
FREE: frozenset[Any] = FREE_TYPES
WITHOUT_REFERENTS = frozenset(cls for cls in FREE if not cls.__flags__ & TRACKED and not issubclass(cls, np.void | np.dtype)) | {object}
UNSEARCHED = WITHOUT_REFERENTS | {type, types.CodeType}  # also those whose objects are LASTING
STANDARD = frozenset(sys.stdlib_module_names) - {"builtins"}  # a class in C without a module is of this one, too
# Untracked classes of which the collector knows all that their objects hold, as those of STANDARD.
TOLD = frozenset(
    {
        *(base for cls in WITHOUT_REFERENTS for base in cls.__mro__),
        *(cls for cls in vars(builtins).values() if is_a(cls, type)),
        *(type(iter(range(most))) for most in (1, 1 << 70)),
        type(np.empty(0).__array_struct__),  # a capsule: generators of random numbers have one, with a pointer to their state
        *IDENTITY_TYPES,
    }
)
MAX_REACHED = 10_000  # objects; what reaches more may reach anything
FEW_REACHED = 300  # the same where each call asks
CALLBACK = vars(weakref.ref)["__callback__"].__get__  # of a weak reference, whatever its class says
PARTS = (tuple, list)  # of a guard
UNTOLD = np.ndarray | np.void | np.dtype  # NumPy does not tell the garbage collector what these hold
OWNERS = frozenset({np.ndarray, type(None)})  # what owns an array's memory, if no buffer is locked
NAME = __name__.partition(".")[0]
# Instructions that only code with a handler, a `finally` or a `with` has.
HANDLING = {dis.opmap[name] for name in ("PUSH_EXC_INFO", "SETUP_FINALLY", "SETUP_WITH") if dis.opmap.get(name, 256) < 256}


def has_finalizer(cls: type) -> bool:
    """True if the class has `__del__`. That of compiled functions is cinductor's own, which no user sees."""
    return cls is not _core.CompiledFunction and find_in_class(cls, "__del__") is not MISSING


def sees_deaths(f: Any, module: Any) -> bool:
    """True if the time when an object dies matters to a call of `f`."""
    if is_a(f, type) and has_finalizer(f):
        return True
    return f is sys.getrefcount or (is_a(module, str) and module in LIFETIMES)


def handles(code: types.CodeType) -> bool:
    """True if the code of a generator may run on when it is closed."""
    return not HANDLING.isdisjoint(code.co_code[::2])


def runs_code(value: Any) -> bool:
    """True if code of the user's may run when the object dies, because of it or of something that it reaches."""
    return reaches(value, ends_with_code, MAX_REACHED)


def dies_unseen(value: Any) -> bool:
    """True if it makes no visible difference when the object dies: neither it nor anything that it reaches runs code when it
    dies, has a weak reference, or locks a buffer.
    """
    cls = type(value)
    if cls is np.ndarray and (dtype := value.dtype).metadata is None and dtype.names is None:  # without another look at its class
        base = value.base
        is_unseen = type(base) in OWNERS and not dtype.hasobject and not weakref.getweakrefcount(value)
        return is_unseen and (base is None or dies_unseen(base))
    return cls in WITHOUT_REFERENTS or not reaches(value, is_watched, FEW_REACHED)


def reaches(value: Any, is_wanted: Callable[[Any], bool], most: int) -> bool:
    """True if such an object is reached from the value, or more objects than `most`."""
    seen: set[int] = set()
    left = [value]
    while left:
        one = left.pop()
        if id(one) in seen or type(one) in WITHOUT_REFERENTS or lasts(one) or is_cinductors(type(one)):
            continue
        seen.add(id(one))
        held = referents(one)
        if held is None or len(seen) > most or is_wanted(one):
            return True
        if not WITHOUT_REFERENTS.issuperset(map(type, held)):  # of millions of numbers none is looked at alone
            left += held
    return False


def referents(value: Any) -> list[Any] | None:
    """The objects that a value refers to. None if they are unknown: for records of objects, and for classes in C without
    support of the garbage collector, also as bases.
    """
    if is_a(value, UNTOLD):
        return referents_of_numpys(value)
    return gc.get_referents(value) if all([cls is object or tells_collector(cls) for cls in type(value).__mro__]) else None


def tells_collector(cls: type) -> bool:
    """True if the garbage collector knows what the part of an object holds that this class defines."""
    if cls.__flags__ & TRACKED or "__slots__" in cls.__dict__:  # the latter is of a class written in Python
        return True
    return cls in TOLD or module_of(cls).partition(".")[0] in STANDARD


def referents_of_numpys(value: Any) -> list[Any] | None:
    """Like `referents`, for an array, a record or a dtype."""
    if is_a(value, np.dtype):
        return [value.metadata, *(field[0] for field in (value.fields or {}).values()), *(value.subdtype or ())[:1]]
    held = [*gc.get_referents(value), value.base, value.dtype]  # the first are of classes written in Python
    if value.dtype == object:
        return held + list(np.ndarray.flat.__get__(value))
    return None if value.dtype.hasobject else held


def lasts(value: Any) -> bool:
    """True if the object lives on without the value from which it is reached: a module, its namespace, a class."""
    if is_a(value, types.ModuleType):
        value = object.__getattribute__(value, "__dict__")
    elif type(value) is not dict:
        return is_a(value, LASTING)
    name = value.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return type(module) is types.ModuleType and module.__dict__ is value


def is_cinductors(cls: type) -> bool:
    """True for the classes of values that stand for the user's in a captured call."""
    return module_of(cls).partition(".")[0] == NAME


def ends_with_code(value: Any) -> bool:
    """True if code of the user's runs when this object dies."""
    if is_a(value, types.GeneratorType):  # it is closed, with what its frame has by then
        return value.gi_frame is not None
    if has_finalizer(type(value)):
        return True
    return weakref.getweakrefcount(value) > 0 and any(has_callback(ref, value) for ref in weakref.getweakrefs(value))


def has_callback(ref: Any, value: Any) -> bool:
    """True if this weak reference to the value, or proxy of it, has a callback. A proxy passes every attribute on to the
    value, and the value has at most one proxy without a callback.
    """
    if is_a(ref, weakref.ProxyTypes):
        return ref is not weakref.proxy(value)
    return CALLBACK(ref) is not None


def is_watched(value: Any) -> bool:
    """True if it is visible that this object dies now."""
    if is_a(value, types.GeneratorType):
        return value.gi_frame is not None and handles(value.gi_code)
    if is_a(value, np.ndarray) and (value.dtype.hasobject or type(value.base) not in OWNERS):
        return True
    return weakref.getweakrefcount(value) > 0 or has_finalizer(type(value))


def why_not_saved(checks: list[tuple[Any, ...]]) -> str | None:
    """The reason why guards may not be kept, or None. They keep the objects that they compare alive, and what these reach.
    """
    compared: list[Any] = []
    for check in checks:
        compared += check[2:] if check[0] == "names" else check[1:]  # modules and classes, whose names these are, live on
    for value in compared:
        if type(value) in PARTS:
            compared += value
        elif type(value) in UNSEARCHED or (is_a(value, np.dtype) and value.isbuiltin == 1):
            continue
        elif (why := why_outlives(value)) is not None:
            return f"compares a {why}"
    return None


def why_outlives(value: Any) -> str | None:
    """The class of an object that would outlive the user's own reference, with the reason."""
    name = type(value).__name__
    if has_finalizer(type(value)):
        return f"{name}, which has __del__"
    return f"{name} that may keep an object with __del__ alive" if reaches(value, has_users_finalizer, MAX_REACHED) else None


def has_users_finalizer(value: Any) -> bool:
    """True if the class has a `__del__` of the user's code, not one in C like a file's."""
    return is_a(find_in_class(type(value), "__del__"), types.FunctionType)


def let_go(tracer: _core.Tracer, sources: Sources, arrays: Arrays) -> None:
    """Drop the objects to which nothing but the tables of the call refers. Arrays that a source reaches stay, because
    guards compare their memory.
    """
    known, entered, refs, own = sources.known, sources.entered, sys.getrefcount, refs_in_table()
    more = Counter(id(entered[source][0]) for source in sources.repeated)
    is_done = False
    while not is_done:
        dead = [
            (key, source)
            for key, (value, source) in known.items()
            if refs(value) <= own + 2 * ((entered.get(source, (None,))[0] is value) + more[key])  # a pair in `entered` has it twice
        ]
        for key, source in dead:
            entered.pop(source, None)
            sources.repeated.discard(source)
            del known[key]
        let_go_repeated(sources)
        is_done = not let_go_arrays(tracer, arrays, own) and not dead


def let_go_repeated(sources: Sources) -> None:
    """Drop the other sources of objects that are known no more."""
    for source in [s for s in sources.repeated if id(sources.entered[s][0]) not in sources.known]:
        sources.repeated.remove(source)
        del sources.entered[source]


def refs_in_table() -> int:
    """The number that getrefcount returns for an object in a table: the entry of the table, the name `value` of the loop over
    the table, and the argument of getrefcount. It is counted for a new object, because Python versions differ.
    """
    refs = sys.getrefcount
    return [refs(value) for _, (value, _) in {0: (object(), 0)}.items()][0]


def alone_in(table: dict[int, tuple[Any, Any]]) -> list[int]:
    """The keys of the objects to which nothing but the table refers."""
    refs, own = sys.getrefcount, refs_in_table()
    return [key for key, (value, _) in table.items() if refs(value) <= own]


def let_go_arrays(tracer: _core.Tracer, arrays: Arrays, own: int) -> bool:
    """Drop such arrays of no source. What has the memory of one that was written to counts as written instead."""
    known, written, refs = arrays.known, arrays.written, sys.getrefcount
    dead = [
        key
        for key, (value, source, traced) in known.items()
        if source == OPAQUE
        and refs(value) <= own + 1  # one more: the traced value refers to its object
        and (others := refs(traced) - own - (id(traced) in written)) <= 1  # besides both tables; one may be the tracer's
        and tracer.let_go(traced, others)
    ]
    for key in dead:
        traced = known.pop(key)[2]
        if written.pop(id(traced), None) is not None:
            written.update((id(t), t) for _, _, t in known.values() if t.shares_storage(traced))
    if dead and arrays.bounds is not None:
        arrays.bounds = None  # other arrays may get the memory
        arrays.look_at_memory()
    return bool(dead)


def forget(tracer: _core.Tracer, sources: Sources, arrays: Arrays) -> None:
    """Drop the objects that no source reaches, and those whose death runs code: nothing is traced any more."""
    arrays.is_over = True
    sources.checks.clear()
    tables: list[dict[int, Any]] = [arrays.known, sources.known]
    for table in tables:
        for key, (_, source, *traced) in [(key, entry) for key, entry in table.items() if entry[1] == OPAQUE or runs_code(entry[0])]:
            if traced:
                tracer.let_go(traced[0], 0)
            del table[key]
            sources.entered.pop(source, None)
    let_go_repeated(sources)
