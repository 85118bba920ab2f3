"""Classification of Python objects for capture: constant, guarded by identity, container, or
unknown.

This module runs no user code: it inspects classes without calling their methods.
"""

from __future__ import annotations

import array
import builtins
import enum
import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import HEAP, is_a, module_of
from ..base.records import NamedTuple
from .container_rows import MAPPINGS, VIEWS
from .made_lists import begins_with_numbers

Traced = _core.Traced
Method = type(_core.Tracer("", options={}).array(np.zeros(1)).sum)  # type: ignore[attr-defined]  # the bound method of a traced value
SEQUENCE_ITERATOR = type(iter(np.zeros(0)))
BOUND = (Method, types.MethodWrapperType)
CONSTANT_LEAVES = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic)
MISSING = object()
SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# Special values for the index of a source:
OPAQUE = -1  # an object that no source reaches
OWN = -2  # made or computed by this call
FIXED = -3  # the same object in each call


class Unbound:
    """The value of a name that is not bound, in a tuple of values."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()
UNBOUND_TEXT = (
    "cannot access local variable '{}' where it is not associated with a value"
    if sys.version_info >= (3, 11)
    else "local variable '{}' referenced before assignment"
)


class MaybeUnbound(NamedTuple):
    """The value of a name that only some paths bind; flag: whether one of them was taken."""

    value: Any
    flag: Any


# Immutable values that equal themselves: guarded by value.
VALUE_TYPES = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice})
NUMBER_TYPES = frozenset({float, complex})
DTYPE_TYPES = frozenset(type(np.dtype(c)) for c in np.typecodes["All"])
CONTAINER_TYPES = MAPPINGS | {list, tuple}
VIEWS_OF_DICTS = frozenset(VIEWS)
SHOWN = VIEWS_OF_DICTS | {np.ndarray}  # classes whose objects are read through a stand-in
# Types whose attributes and methods only read the value itself.
PURE_TYPES = frozenset(
    {
        *VALUE_TYPES,
        *NUMBER_TYPES,
        *DTYPE_TYPES,
        *(t for t in np.sctypeDict.values()),
        list,
        tuple,
        dict,
        set,
        frozenset,
        np.finfo,
        np.iinfo,
        np.broadcast,
        type(np.zeros(1).flags),
        *VIEWS_OF_DICTS,
    }
)
# Types that an operator, a test or a format may get without a check.
FREE_TYPES = frozenset(
    {
        Traced,
        *VALUE_TYPES,
        *NUMBER_TYPES,
        *DTYPE_TYPES,
        *np.sctypeDict.values(),
        type,
        types.FunctionType,
        types.BuiltinFunctionType,
        types.ModuleType,
        np.ufunc,
    }
)
# Functions and methods in C; the third is a method that is given its class.
METHODS_IN_C = frozenset({types.BuiltinFunctionType, types.MethodWrapperType, type(array.array("b").extend)})
IDENTITY_TYPES = frozenset(
    {
        *METHODS_IN_C,
        types.FunctionType,
        types.ModuleType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        types.ClassMethodDescriptorType,
        types.GenericAlias,
        np.ufunc,
        type(np.sum),
        type,
        _core.CompiledFunction,
    }
)
# Objects whose identity no guard needs to check: they have no settable attributes, or are looked up by identity.
STATELESS = (FREE_TYPES | IDENTITY_TYPES) - {types.FunctionType, _core.CompiledFunction}
KINDS = "biufc"


MAX_RANK = 32  # the maximal rank of a value in the graph


def has_owner(f: Any) -> bool:
    """True for a method in C of an object, which may change, or be another one in each call."""
    return f.__self__ is not None and not is_a(f.__self__, type | types.ModuleType)


def why_not_array(value: np.ndarray) -> str | None:
    """The reason why an exact ndarray is left to NumPy, or None: kernels require native numbers with strides that are
    multiples of the element size.
    """
    dtype = value.dtype
    if not _core.has_dtype(dtype) or not dtype.isnative:
        return f"an array of dtype {dtype.type.__name__ if dtype.char in 'qQ' else dtype}"
    if not value.flags.aligned:
        return "an array that is not aligned"
    if value.ndim > MAX_RANK:
        return f"an array of more than {MAX_RANK} axes"
    if not value.flags.forc:
        size = dtype.itemsize
        if any(s % size and n > 1 for s, n in zip(value.strides, value.shape, strict=True)):
            return "an array whose elements do not lie whole elements apart"
    return None


def find_in_class(cls: type, name: str, after: type | None = None) -> Any:
    """The attribute of a class as stored in its dictionaries, or MISSING; no descriptor is called. after: the class
    of the MRO after which super() searches.
    """
    mro = cls.__mro__
    for base in mro if after is None else mro[mro.index(after) + 1 :]:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def defines(cls: type, name: str) -> bool:
    """True if a class, or one of its bases, has an attribute of this name. Unlike `hasattr`, it runs no `__getattr__` of
    a metaclass.
    """
    return find_in_class(cls, name) is not MISSING


def attribute(value: Any, name: str) -> Any:
    """An attribute that capture itself wants to know, or None. No code of the user's runs, neither `__getattr__` nor a
    property of the class or metaclass.
    """
    if is_a(value, type):
        if (slot := type.__dict__.get(name)) is not None:
            try:
                return slot.__get__(value)
            except AttributeError:
                return None
        found = find_in_class(value, name)
    elif not is_users(type(value)):
        return getattr(value, name, None)
    else:
        own = attributes_of(value)
        found = own.get(name, MISSING) if type(own) is dict else MISSING
        found = find_in_class(type(value), name) if found is MISSING else found
        if type(found) in SLOTS:
            try:
                return found.__get__(value)  # type: ignore[union-attr]
            except AttributeError:
                return None
    return None if found is MISSING or defines(type(found), "__get__") else found


def bound_method(value: Any, name: str) -> Any:
    """The special method of an object, as Python's own lookup finds it in the class and binds it."""
    cls = type(value)
    found = find_in_class(cls, name)
    return found.__get__(value, cls) if defines(type(found), "__get__") else found


FLAGS = type(np.zeros(1).flags)
HOLDERS = (tuple, list, dict, set, frozenset)
READING = ("__iter__", "__getitem__", "__len__", "__getattribute__")


def is_native(cls: type, *hooks: str) -> bool:
    """True if these hooks of a container's class are Python's own or missing. A subclass may do anything in its
    hooks.
    """
    if cls in HOLDERS:
        return True
    known = [base.__dict__ for base in (*HOLDERS, object)]
    found = ((name, find_in_class(cls, name)) for name in hooks)
    return all(f is MISSING or any(own.get(n) is f for own in known) for n, f in found)


def attributes_of(value: Any) -> Any:
    """An object's own attributes, or None."""
    found = find_in_class(type(value), "__dict__")
    return found.__get__(value) if type(found) in SLOTS else None


def has_attributes_alone(cls: type) -> bool:
    """True if objects of the class only have a `__dict__` and slots, and no contents known to C code only."""
    return cls is not object and all(b is object or b.__flags__ & HEAP for b in cls.__mro__)


_slots: weakref.WeakKeyDictionary[type, tuple[types.MemberDescriptorType, ...]] = weakref.WeakKeyDictionary()


def slots_of(cls: type) -> tuple[types.MemberDescriptorType, ...]:
    """The slots of objects that otherwise only have a `__dict__`: `__slots__` of user classes."""
    found = _slots.get(cls)
    if found is None:
        bases = cls.__mro__ if has_attributes_alone(cls) else ()
        every = (place for base in bases for place in vars(base).values())
        found = tuple(place for place in every if type(place) is types.MemberDescriptorType)
        _slots[cls] = found
    return found


def is_slot_of(cls: type, found: Any) -> bool:
    """True if the class has a slot under this name."""
    return type(found) is types.MemberDescriptorType and any(found is slot for slot in slots_of(cls))


def own_place(value: Any, name: str) -> Any:
    """Where an object has an attribute of its own: its slot of this name, or its `__dict__`; None if it has neither."""
    found = find_in_class(type(value), name)
    return found if is_slot_of(type(value), found) else attributes_of(value)


def own_attribute(value: Any, name: str) -> Any:
    """The attribute that an object itself has in its `__dict__` or in a slot, or MISSING."""
    place = own_place(value, name)
    if type(place) is not types.MemberDescriptorType:
        return place.get(name, MISSING) if type(place) is dict else MISSING
    try:
        return place.__get__(value, type(value))
    except AttributeError:
        return MISSING


def in_slots(value: Any) -> list[Any]:
    """The values of an object's slots; UNBOUND for an empty slot."""
    cls, found = type(value), []
    for slot in slots_of(cls):
        try:
            found.append(slot.__get__(value, cls))
        except AttributeError:
            found.append(UNBOUND)
    return found


def is_tuple(cls: type) -> bool:
    """True for a tuple, or a subclass whose items are read like a tuple's."""
    return cls is tuple or (issubclass(cls, tuple) and is_native(cls, *READING))


SINGLE = {Traced, bool, int, float, complex, str, bytes, type(None), type(UNBOUND)}  # classes of no items, with those that capture has


def is_record(cls: type) -> bool:
    """True for a tuple or a named tuple, which can be rebuilt with other items without user code."""
    if cls in SINGLE:
        return False
    if cls is tuple or defines(cls, "__cinductor_call__"):
        return True
    if type(cls) is not type or not is_tuple(cls) or not defines(cls, "_fields"):
        return False
    new = cls.__new__
    where = getattr(new, "__globals__", {})
    is_made_so = (  # made by `namedtuple`, so its code only calls tuple's methods
        type(new) is types.FunctionType
        and new.__code__.co_names == ("_tuple_new",)
        and where.get("_tuple_new") is tuple.__new__
        and where.get("__builtins__") == {}
    )
    init = find_in_class(cls, "__init__")
    is_plain = init is object.__dict__["__init__"] and find_in_class(cls, "__del__") is MISSING
    return is_made_so and is_plain


def contains_items(value: Any) -> bool:
    """True for a list or dict, whose state is its items; the state of other objects is their attributes."""
    return type(value) is list or type(value) in MAPPINGS


def plain_class(value: dict[Any, Any]) -> Any:
    """The class whose methods read and set the items of a dict of any class without the user's methods."""
    return type(value) if type(value) in MAPPINGS else dict


def now_at(value: Any, place: Any) -> Any:
    """The item of a list or dict, or the attribute of an object's own, that `put` would replace, or MISSING."""
    if type(value) is list:
        return value[place]
    return value.get(place, MISSING) if contains_items(value) else own_attribute(value, place)


def put(value: Any, place: Any, item: Any) -> None:
    """Set an item of a list or dict, or an attribute."""
    if contains_items(value):
        value[place] = item
    else:
        setattr(value, place, item)


# Special methods that are not called when an object is compared, hashed, formatted, iterated, ...
INERT = frozenset(
    """__module__ __dict__ __weakref__ __doc__ __qualname__ __slots__ __annotations__ __annotate__
    __annotate_func__ __annotations_cache__ __firstlineno__ __static_attributes__ __match_args__
    __orig_bases__ __parameters__ __type_params__ __abstractmethods__ __dataclass_fields__
    __dataclass_params__ __init__ __new__ __post_init__ __init_subclass__ __class_getitem__ __del__
    __getnewargs__ __getnewargs_ex__ __getstate__ __setstate__ __reduce__ __reduce_ex__ __copy__
    __deepcopy__ __replace__ __signature__""".split()
)
# Classes whose methods run no user code except that of their items.
PLAIN_BASES = frozenset(
    {
        *(base for cls in PURE_TYPES | IDENTITY_TYPES | MAPPINGS for base in cls.__mro__),  # type: ignore[attr-defined]
        *(c for c in vars(builtins).values() if is_a(c, type) and issubclass(c, BaseException)),
        *(c for c in vars(enum).values() if is_a(c, type) and issubclass(c, enum.Enum)),
        *(np.ndarray, type(np._NoValue)),
    }
)
OF_PYTHON = frozenset({"collections", "enum"})  # modules in which methods of named tuples and enum members are pure


def has_hooks(cls: type) -> bool:
    """True if a protocol of such an object, other than attribute access, may run unknown code: comparison, hashing,
    truth, length, items or conversion.
    """
    return any(
        is_hook(name, found)
        for base in cls.__mro__
        if base not in PLAIN_BASES
        for name, found in base.__dict__.items()
    )


def is_unguarded(cls: type) -> bool:
    """True if no guard covers what Python reads of such an object: the value of a subclass of int or str, the items
    of a dict view.
    """
    is_value = issubclass(cls, (int, float, complex, str, bytes)) and not issubclass(cls, np.generic)
    return cls in VIEWS_OF_DICTS or (is_value and cls not in FREE_TYPES and not issubclass(cls, enum.Enum))


def is_users(cls: type) -> bool:
    """True if a class belongs to the user's code, or to a library written in Python."""
    return bool(cls.__flags__ & HEAP) and not is_numpys(module_of(cls))


IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def is_mutable(cls: type) -> bool:
    """True if attributes of the class may be set."""
    return not cls.__flags__ & IMMUTABLE


def is_hook(name: str, found: Any) -> bool:
    """True if Python itself calls this attribute of a class."""
    if not (name.startswith("__") and name.endswith("__")) or name in INERT:
        return False
    return getattr(found, "__globals__", {}).get("__name__") not in OF_PYTHON


def objects_in(value: Any) -> Iterable[Any]:
    """The objects in a container: of a dict the values, and the keys."""
    return [*value, *value.values()] if is_a(value, dict) else value


def hooked_in(values: Iterable[Any], depth: int = 8) -> type | None:
    """The first class with hooks among values and in the containers among them, or None."""
    classes = _core.classes_of(values) - FREE_TYPES
    found = next((cls for cls in classes if not issubclass(cls, type | types.UnionType) and has_hooks(cls)), None)
    if found is not None or not depth or not any(issubclass(cls, HOLDERS) for cls in classes):
        return found
    inner = (hooked_in(objects_in(value), depth - 1) for value in values if type(value) in classes and is_a(value, HOLDERS))
    return next((cls for cls in inner if cls is not None), None)


def key_with_hooks(value: Any) -> type | None:
    """The class of a dict key, or of an item of a frozenset, that a guard could not compare without user code, or
    None.
    """
    if is_a(value, dict):
        return hooked_in(dict.keys(value))
    return hooked_in([*frozenset.__iter__(value)]) if is_a(value, frozenset) else None


def leaves_in(
    values: Iterable[Any], seen: set[int] | None = None, paced: Callable[[Iterable[Any]], Iterator[Any]] = iter
) -> Iterator[Any]:
    """The objects among values, and in the lists, tuples and dicts among them, which are left out. paced:
    `Tracer.paced`, if they may be many.
    """
    for value in paced(values):
        cls = type(value)
        if cls in FREE_TYPES or not (cls in CONTAINER_TYPES or is_tuple(cls)):
            yield value
        elif len(value):
            seen = set() if seen is None else seen
            if id(value) not in seen:
                seen.add(id(value))
                yield from leaves_in(objects_in(value), seen, paced)


TRACED = frozenset({Traced})


def contains_traced(values: Collection[Any]) -> bool:
    """True if there is a traced value among values, or in the lists, tuples and dicts among them.
    """
    return not (TRACED.isdisjoint(map(type, values)) and TRACED.isdisjoint(map(type, leaves_in(values))))


def has_length(cls: type) -> bool:
    """True if Python asks an iterable for a length hint, which runs user code."""
    hints = (find_in_class(cls, name) for name in ("__len__", "__length_hint__"))
    return any(type(hint) is types.FunctionType for hint in hints)


def asks_length(value: Any) -> bool:
    """True if Python runs user code to find the length of an iterable before it makes a list."""
    if type(value) in (SEQUENCE_ITERATOR, reversed):  # these call methods of the sequence that they iterate
        return any(has_length(type(part)) for part in gc.get_referents(value))
    return type(value) is not Traced and has_length(type(value))


def is_internal(cls: type) -> bool:
    """True for a class of this package, whose objects are internal state."""
    return module_of(cls).partition(".")[0] == "cinductor"


# Types that NumPy reads directly: values that are guarded by value, callables, and NumPy's index objects.
_READABLE = (type, enum.Enum, np.generic, np.dtype, BaseException)
_CALLED = frozenset({types.MethodType, functools.partial, np.vectorize, type(np._NoValue)})
_INDEXED = frozenset(map(type, (np.r_, np.c_, np.mgrid, np.ogrid, np.s_)))
_UNGUARDED = VIEWS_OF_DICTS | {set, frozenset}
_is_foreign: dict[type, bool] = {np.ndarray: False}


def is_foreign(cls: type) -> bool:
    """True if NumPy reads something of such an object that no guard covers: its buffer, its items, the result of its
    __array__.
    """
    found = _is_foreign.get(cls)
    if found is None:
        is_known = cls in FREE_TYPES or cls in IDENTITY_TYPES or cls in _CALLED | _INDEXED | PURE_TYPES
        found = cls in _UNGUARDED or not (is_known or issubclass(cls, _READABLE))
        _is_foreign[cls] = found
    return found


def foreign_in(tracer: _core.Tracer, values: Iterable[Any]) -> str | None:
    """The first object for which is_foreign holds in nested tuples, lists and dicts, or None."""
    for value in leaves_in(values, None, tracer.paced):
        cls = type(value)
        if cls is np.ndarray and (why := why_not_array(value)) is not None:
            return why
        if cls not in FREE_TYPES and is_foreign(cls):
            return f"an object of class {cls.__name__}"
    return None


def is_numpys(module: str | None) -> bool:
    """True if a module's name belongs to NumPy."""
    return module is not None and (module == "numpy" or module.startswith("numpy."))


def is_own(module: str | None) -> bool:
    """True if a module's name belongs to cinductor."""
    return module is not None and module.partition(".")[0] == __name__.partition(".")[0]


def is_standard(cls: type) -> bool:
    """True if a class comes with Python."""
    return module_of(cls).partition(".")[0] in sys.stdlib_module_names and module_of(cls) != "__main__"


PLAIN_GETTERS = frozenset(
    cls.__getattribute__
    for cls in (object, tuple, list, dict, set, BaseException, types.SimpleNamespace)
)


PROXIES = frozenset({*weakref.ProxyTypes, super})  # their attributes are another object's


def is_plain_getter(cls: type, getter: Any) -> bool:
    """True if a class's __getattribute__ only runs code of Python, NumPy and descriptors."""
    if getter in PLAIN_GETTERS:
        return True
    is_known = (is_standard(cls) or is_numpys(module_of(cls))) and cls not in PROXIES
    return is_known and type(getter) is types.WrapperDescriptorType


def reads_plainly(cls: type) -> bool:
    """True if attributes of such objects are looked up in the ordinary way."""
    return cls.__getattribute__ in PLAIN_GETTERS  # type: ignore[comparison-overlap]


MAX_LEAVES = 256  # of a container among the arguments
MAX_LOOKED = 8  # containers and leaves visited per leaf that is allowed


def count_leaves(value: Any, limit: int) -> int:
    """The number of leaves of nested tuples, lists and dicts. Stops at the limit, which a container that contains
    itself reaches, too.
    """
    count = looked = 0
    stack = [value]
    while stack and count <= limit:
        item = stack.pop()
        looked += 1
        if looked > MAX_LOOKED * limit:
            return looked
        if is_a(item, tuple | list):
            count += not item
            stack.extend(item[: limit + 1])
        elif type(item) is dict:
            count += 1
            stack.extend(item.values() if len(item) <= limit else range(limit + 1))
        else:
            count += 1
    return count


def why_not_argument(value: Any, has_columns: bool = True) -> str | None:
    """The reason why NumPy runs a function with this argument, or None. has_columns: long lists that begin with numbers may be arrays."""
    cls = type(value)
    if cls is np.ndarray:
        return why_not_array(value)
    if cls in VALUE_TYPES or cls in NUMBER_TYPES:
        return None
    if is_a(value, np.ndarray):
        return f"a {cls.__name__}, which is a subclass of ndarray"
    if cls in (list, dict) or is_tuple(cls) or (is_a(value, list) and is_native(cls, *READING)):
        if count_leaves(value, MAX_LEAVES) > MAX_LEAVES:
            begins_column = has_columns and begins_with_numbers(value, MAX_LEAVES)
            return None if begins_column else f"a container of more than {MAX_LEAVES} leaves"
        if (hooked := key_with_hooks(value)) is not None:
            return f"a dict with keys of class {hooked.__name__}"
        items = value.values() if is_a(value, dict) else value
        return next((why for why in map(why_not_argument, items) if why), None)
    if not is_a(value, type) and defines(cls, "__next__"):
        return f"an iterator ({cls.__name__})"
    if cls in VIEWS_OF_DICTS:
        return f"a view of a dict ({cls.__name__})"
    return None


def remade(like: Any, items: list[Any]) -> Any:
    """A tuple or list of like's class with other items and like's attributes."""
    cls = type(like)
    if cls is tuple or cls is list:
        return cls(items)
    try:
        made = tuple.__new__(cls, items)
    except TypeError:  # a structure made in C
        return tuple(items)
    if own := attributes_of(like):
        made.__dict__.update(own)
    return made


def bounds_of(value: Any) -> tuple[Any, Any, Any]:
    """Start, stop and step of a slice or range."""
    return (value.start, value.stop, value.step)


# --- results that each call makes again ---
