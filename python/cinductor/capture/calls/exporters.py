"""Conversions of other libraries' objects to arrays: np.asarray(x), np.from_dlpack(x), x.numpy(), x.to_numpy(), x.values.

If a source reaches the object, the array is a source, too: each call makes it anew at its beginning, with the same
function, and reads and writes its memory. That needs two conditions. First, the conversion runs no Python code of the
user's, which could tell when it runs. Second, what it gives at the beginning is what it would give at its place: the
class exports its memory (`__dlpack__`, as in the array API standard), or the call has written nothing before.
Otherwise the conversion is a break. Columns (`table["name"]`) are read in the same way.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.class_lookup import is_a, module_defining, module_of
from ...base.signals import pass_on
from ..objects import (
    FREE_TYPES,
    MISSING,
    OPAQUE,
    VALUE_TYPES,
    Traced,
    attributes_of,
    is_numpys,
    why_not_array,
)

if TYPE_CHECKING:
    from ..kinds import Hooks

PROTOCOLS = ("__array_struct__", "__array_interface__", "__array__")  # by which NumPy converts an object
METHODS = frozenset({"numpy", "to_numpy", "__array__"})
COLUMN = "__getitem__"
READS = METHODS | {"values", COLUMN}  # methods and properties of a library written in Python
TO_ARRAYS = (np.asarray, np.asanyarray, np.array, np.ascontiguousarray, np.asfortranarray, np.copy)
# Libraries whose functions mostly end in C: one break for each, not one for each step before. They only call code of the user's
# that they are given.
CALLED_WHOLE = frozenset({"scipy", "pandas", "sklearn", "matplotlib", "networkx", "sympy", "torch"})


def is_called_whole(module: str) -> bool:
    """True if a module is part of one of these libraries."""
    return module.partition(".")[0] in CALLED_WHOLE


def converted(scope: Hooks, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a conversion or the column of a table that is a source of the call, or MISSING."""
    is_to_array = any(f is known for known in TO_ARRAYS)
    if is_to_array and args:
        array = taken(scope, np.asarray, args[0])
        return array if array is MISSING else scope.call(f, array, *args[1:], **kwargs)
    if f is np.from_dlpack:
        is_exported = len(args) == 1 and not kwargs and exports(scope, args[0])
        return taken(scope, f, args[0]) if is_exported else MISSING
    name = getattr(f, "__name__", None) if type(f) in (types.FunctionType, types.BuiltinMethodType) else None
    if name not in READS or any(type(v) not in VALUE_TYPES for v in (*args[type(f) is types.FunctionType :], *kwargs.values())):
        return MISSING
    if type(f) is types.BuiltinMethodType:
        return taken(scope, operator.methodcaller(name, *args, **kwargs), f.__self__, name) if name in METHODS else MISSING
    if not args or not is_called_whole(module_defining(f)):
        return MISSING
    owner, *rest = args
    if name == COLUMN:
        is_column = len(rest) == 1 and type(rest[0]) is str
        return taken(scope, operator.itemgetter(*rest), owner, name) if is_column else MISSING
    if name == "values":
        return taken(scope, operator.attrgetter(name), owner, name)
    return taken(scope, operator.methodcaller(name, *rest, **kwargs), owner, name)


def taken(scope: Hooks, read: Callable[[Any], Any], value: Any, name: str = "") -> Any:
    """The result of the function for an object, as a source of the call, or MISSING."""
    stage = scope.stage
    if type(value) in FREE_TYPES or type(value) is Traced or (source := stage.sources.source_of(value)) is None:
        return MISSING
    is_export, names = exports(scope, value), (name,) if name else PROTOCOLS
    if source == OPAQUE or stage.device or stage.tracer.effects or not stage.tracer.may_check() or stage.stores.of(value):
        return MISSING
    if not (is_export or runs_no_users_code(scope, value, PROTOCOLS)) or not runs_no_users_code(scope, value, names):
        return MISSING
    if not is_export and (stage.arrays.written or stage.tracer.in_region):
        return MISSING
    key = (source, name or read, repr(read))
    if is_export and key in stage.exported:
        return stage.exported[key][...]
    try:
        made = read(value)
    except Exception as error:
        pass_on(error)
        return MISSING  # at its place it raises again
    if name != COLUMN and (type(made) is not np.ndarray or why_not_array(made) is not None):
        return MISSING
    array = stage.lift_guarded(made, stage.sources.note_made(made, read, source))
    if is_export and type(array) is Traced:
        stage.exported[key] = array
    return array


def exports(scope: Hooks, value: Any) -> bool:
    """True if an object hands out its memory by DLPack, without code of the user's."""
    return type(value) not in FREE_TYPES and type(value) is not Traced and runs_no_users_code(scope, value, ("__dlpack__",))


def runs_no_users_code(scope: Hooks, value: Any, names: tuple[str, ...]) -> bool:
    """True if the class has one of these attributes, and those that it has are C or of a known library; guarded."""
    sources, cls = scope.stage.sources, type(value)
    if is_numpys(module_of(cls)) or not sources.tells_class(value) or not set(names).isdisjoint(attributes_of(value) or ()):
        return False
    found = [attr for attr in (sources.class_attr(cls, name) for name in names) if attr is not MISSING]
    return bool(found) and all(map(is_library_code, found))


def is_library_code(attr: Any) -> bool:
    """True for a method or property that is C, or Python of a known library."""
    if is_a(attr, property):
        attr = attr.fget
    return type(attr) in IN_C or (type(attr) is types.FunctionType and is_called_whole(module_defining(attr)))


IN_C = frozenset({types.MethodDescriptorType, types.GetSetDescriptorType})
