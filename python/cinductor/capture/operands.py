"""Values that Python's own code reads.

An operator, a hash, a format or a pure function gets the value itself and may read all of it (`use`). So
everything in it that came from outside of the call is guarded, also inside of containers that the call has made.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..base.class_lookup import is_a
from .call_state import Stage
from .control import list_buffer
from .iterators import Flat
from .kinds import Hooks
from .objects import (
    FREE_TYPES,
    HOLDERS,
    MISSING,
    NUMBER_TYPES,
    SHOWN,
    Traced,
    bound_method,
    find_in_class,
    has_hooks,
    hooked_in,
    is_standard,
    is_unguarded,
    objects_in,
)


def use(stage: Stage, value: Any) -> Any:
    """The value for code in which Python reads all of it."""
    if type(value) in SHOWN:
        return stage.lifting.shown(value)
    hooked = hook_of(stage, value)
    if hooked is not None:
        stage.effects.stop(f"an operator of class {hooked.__name__}", value)
        return stage.materialise(value)
    return value


def operand(scope: Hooks, value: Any) -> Any:
    """One of two operands that Python reads: an operator of the user is evaluated by `binary`, whatever the other operand is.
    """
    if type(value) in SHOWN:
        return scope.stage.lifting.shown(value)
    hooked = hook_of(scope.stage, value)
    return value if hooked is None else Hooked(scope, value, hooked)


class Hooked:
    """An operand whose class has the user's own operators, which must not see traced values."""

    __slots__ = ("scope", "value", "cls")
    __array_ufunc__ = None  # so that arrays leave the operation to its operators

    def __init__(self, scope: Hooks, value: Any, cls: type) -> None:
        self.scope, self.value, self.cls = scope, value, cls

    def apply(self, name: str, left: Any, right: Any) -> Any:
        """The operator on the values that the operands stand for."""
        copies = self.scope.stage.lifting.copies
        values = (copies.get(id(v), (v, real(v)))[1] for v in (left, right))
        if name in COMPARISONS:
            return compared(self.scope, getattr(operator, name), *values)
        return binary(self.scope, name, self.cls, *values)


class StoredList(Hooked):
    """A list that is stored as columns, as an operand: a sum of lists joins the columns, other operators read the items."""

    __slots__ = ()

    def apply(self, name: str, left: Any, right: Any) -> Any:
        """The operator; the other operand may be such a list, too."""
        given = [v.value if type(v) is StoredList else v for v in (left, right)]
        if name == "add" and all(type(v) is list for v in given):
            made = list_buffer.joined(self.scope, *given)
            if made is not None:
                return made
        lifting = self.scope.stage.lifting
        return getattr(operator, f"__{name}__")(*(lifting.operand(v.value) if type(v) is StoredList else v for v in (left, right)))


StoredList.__name__ = "list"  # in reasons


def real(value: Any) -> Any:
    """The operand itself."""
    return value.value if is_a(value, Hooked) else value


def add_operator(name: str) -> None:
    """Add an operator of two operands, in both orders."""
    setattr(Hooked, f"__{name}__", lambda self, other: self.apply(name, self, other))
    setattr(Hooked, f"__r{name}__", lambda self, other: self.apply(name, other, self))


def add_comparison(name: str) -> None:
    """Add a comparison. Python evaluates x < y as y > x if x leaves it to y."""
    setattr(Hooked, f"__{name}__", lambda self, other: self.apply(name, self, other))


def add_unary(name: str) -> None:
    """Add an operator of one operand."""
    setattr(Hooked, f"__{name}__", lambda self: unary(self.scope, name, self.cls, self.value))


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
COMPARISONS = {"lt": ("gt", "<"), "le": ("ge", "<="), "gt": ("lt", ">"), "ge": ("le", ">="), "eq": ("eq", ""), "ne": ("ne", "")}
for name in SYMBOLS:
    add_operator(name)
for name in COMPARISONS:
    add_comparison(name)
for name in "neg pos invert".split():
    add_unary(name)

# Classes whose own operators return NotImplemented for each object of another class that is not derived from them.
NUMBERS = frozenset({int, float, complex, bool})
WITH_OWN_ORDER: frozenset[type] = NUMBERS | {str, bytes, type(None)}
OF_OBJECT = {f"__{name}__": object.__dict__[f"__{name}__"] for name in COMPARISONS}
IN_PLACE = frozenset(f"__i{name}__" for name in SYMBOLS)

Try = tuple[str, Any, Any]  # a method's name, the object that has it, and the other operand


def unary(scope: Hooks, name: str, hooked: type, value: Any) -> Any:
    """An operator of one operand, whose class may have the user's own."""
    stage = scope.stage
    method = stage.sources.class_attr(type(value), f"__{name}__")
    if type(method) is types.FunctionType:
        return scope.call_method(method, value)
    stage.effects.stop(f"an operator of class {hooked.__name__}", value)
    return stage.lift(getattr(operator, name)(stage.materialise(value)))


def binary(scope: Hooks, name: str, hooked: type, left: Any, right: Any) -> Any:
    """left op right, in the order of Python's data model (3.3.8): the right operand's method comes first if its class is
    derived from the left one's and overrides it.
    """
    sources, first, second = scope.stage.sources, type(left), type(right)
    tries = [(f"__{name}__", left, right)]
    if first is not second:
        key = f"__r{name}__"
        is_derived = issubclass(second, first)
        overrides = is_derived and sources.class_attr(second, key) is not sources.class_attr(first, key)
        tries.insert(0 if overrides else 1, (key, right, left))
    found = tried(scope, hooked, tries, NUMBERS, getattr(operator, f"__{name}__"), left, right)
    if found is NotImplemented:
        raise TypeError(f"unsupported operand type(s) for {SYMBOLS[name]}: {class_name(left)} and {class_name(right)}")
    return found


def in_place(scope: Hooks, name: str, hooked: type, value: Any, other: Any) -> Any:
    """value op= other; name: iadd, for example."""
    stage, key = scope.stage, f"__{name}__"
    method = method_of(stage, key, value, other, NUMBERS)
    if type(method) is types.FunctionType:
        made = scope.call_method(method, value, other)
        return made if made is not NotImplemented else binary(scope, name[1:], hooked, value, other)
    if method is MISSING:
        return binary(scope, name[1:], hooked, value, other)
    stage.effects.stop(f"an operator of class {hooked.__name__}")
    if stage.sources.source_of(value) is not None:
        stage.change(value, f"changes a {type(value).__name__} in place")
    return scope.lifted_once(getattr(operator, name)(stage.materialise(value), stage.materialise(other)))


def compared(scope: Hooks, relation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The result of a comparison that runs user code; NotImplemented if it runs none."""
    hooks = [hook_of(scope.stage, v) for v in (left, right) if type(v) not in FREE_TYPES]
    hooked = next((cls for cls in hooks if cls is not None), None)
    if hooked is None:
        return NotImplemented
    name, first, second = relation.__name__, type(left), type(right)
    reflected, symbol = COMPARISONS[name]
    tries = [(f"__{name}__", left, right), (f"__{reflected}__", right, left)]
    if first is not second and issubclass(second, first):
        tries.reverse()
    found = tried(scope, hooked, tries, WITH_OWN_ORDER, relation, left, right)
    if found is not NotImplemented:
        return found
    if not symbol:
        return (left is right) == (name == "eq")
    raise TypeError(f"{symbol!r} not supported between instances of {class_name(left)} and {class_name(right)}")


def tried(
    scope: Hooks, hooked: type, tries: list[Try], alone: frozenset[type], op: Callable[[Any, Any], Any], left: Any, right: Any
) -> Any:
    """The first result of the methods that is not NotImplemented, else NotImplemented. Methods that are functions are
    captured. alone: classes whose methods need no call. op: the operator, which Python evaluates if the first method that
    is called is no function.
    """
    stage, has_called = scope.stage, False
    for key, owner, other in tries:
        method = method_of(stage, key, owner, other, alone)
        if method is MISSING:
            continue
        if type(method) is types.FunctionType:
            made = scope.call_method(method, owner, other)
            if key == "__ne__" and made is not NotImplemented and method is not stage.sources.class_attr(type(owner), key):
                made = scope.not_(made)
        else:
            stage.effects.stop(f"an operator of class {hooked.__name__}", left, right)
            if not has_called:
                return stage.lift(op(stage.materialise(left), stage.materialise(right)))
            owner = stage.materialise(owner)
            made = stage.lift(bound_method(owner, key)(stage.materialise(other)))
        if made is not NotImplemented:
            return made
        has_called = True
    return NotImplemented


def method_of(stage: Stage, key: str, owner: Any, other: Any, alone: frozenset[type]) -> Any:
    """The method of an operand's class, or MISSING if it has none or Python would get NotImplemented from it."""
    cls, sources = type(owner), stage.sources
    if cls is Traced:
        cls = float if owner.kind == "python" else np.ndarray
    if cls in alone and not is_a(other, cls):
        return MISSING
    if cls is Flat:
        return cls
    if issubclass(cls, np.ndarray | np.generic):  # an array leaves no in-place operator to the other operand's class
        is_left = sources.class_attr(type(other), "__array_ufunc__") is None
        return MISSING if is_left and not (key in IN_PLACE and issubclass(cls, np.ndarray)) else cls
    method = sources.class_attr(cls, key)
    if key == "__ne__" and method is OF_OBJECT[key]:  # the opposite of __eq__
        key, method = "__eq__", sources.class_attr(cls, "__eq__")
    return MISSING if method is OF_OBJECT.get(key, MISSING) else method


def class_name(value: Any) -> str:
    """The name of a value's class in a message of Python's."""
    cls = (float if value.kind == "python" else np.ndarray) if type(value) is Traced else type(value)
    return repr(_core.type_name(cls))


def hook_of(stage: Stage, value: Any) -> type | None:
    """The class whose user code would run when Python reads a value, or None; then everything in it from outside of
    the call is guarded.
    """
    cls = type(value)
    stage.sources.sees_objects = True  # Python first tests whether two objects are identical
    hooked = None
    if cls is Flat or cls is np.flatiter:  # compares its elements
        return np.flatiter
    if is_a(value, HOLDERS) and not has_hooks(cls):
        hooked = guard_inside(stage, value, set())
        if hooked is None and (cls is not dict or value):
            hooked = hooked_in((value,))
    elif is_a(value, type):
        hooked = cls if has_hooks(cls) and not is_standard(cls) else None
    elif stage.sources.has_hooks(cls) or has_unguarded(stage, value):
        hooked = cls
    return hooked


def has_unguarded(stage: Stage, value: Any) -> bool:
    """True if Python reads something of the value that no guard covers, such as the attributes of the caller's
    exceptions, which may be set.
    """
    is_set = is_a(value, BaseException) and stage.sources.source_of(value) is not None
    return is_set or is_unguarded(type(value))


def guard_inside(stage: Stage, value: Any, seen: set[int]) -> type | None:
    """Guard everything in a container that came from outside, and give growing lists their items. Returns the first
    class of an item for which that is impossible, or None.
    """
    source = stage.sources.source_of(value)
    if source is not None:
        if source >= 0:
            guard_all(stage, value, source)
        return None
    if id(value) in seen:
        return None
    seen.add(id(value))
    found = None
    for item in objects_in(value):
        if type(item) in FREE_TYPES:
            continue
        if is_a(item, HOLDERS) and not has_hooks(type(item)):
            found = guard_inside(stage, item, seen) or found
        elif has_unguarded(stage, item):
            found = found or type(item)
    return found


def guard_all(stage: Stage, value: Any, source: int) -> None:
    """Guard everything in a container that Python itself will read."""
    if is_a(value, set | frozenset):
        stage.sources.check(source, "equals", type(value)(value))
        return
    if stage.stores.of(value):
        stage.effects.stop(f"a {type(value).__name__} is used as a whole whose items are set")
    stage.sources.guard_length(value, source)
    pairs = value.items() if is_a(value, dict) else enumerate(value)
    for key, item in list(pairs):
        inner = stage.sources.source("item", source, key)
        if type(item) is np.ndarray:
            stage.effects.stop("a container of arrays is used as a whole")
        elif type(item) in NUMBER_TYPES or is_a(item, int | np.generic):
            stage.sources.check(inner, "equals", item)
            stage.sources.guard_nan(item, inner)
        else:
            stage.lift_guarded(item, inner)
            if has_unguarded(stage, item):
                stage.effects.stop(f"a container of a {type(item).__name__} is used as a whole")
            if not is_a(item, HOLDERS):
                continue
            if not has_hooks(type(item)):
                guard_all(stage, item, inner)
            else:
                stage.effects.stop(f"an operator of class {type(item).__name__}")


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs). A method of C code is called as Python does it in `value.method(...)`: through the class, which
    messages about keywords name.
    """
    if kwargs and type(f) is types.BuiltinMethodType:
        owner = f.__self__
        found = find_in_class(type(owner), f.__name__)
        if type(found) is types.MethodDescriptorType:
            return found(owner, *args, **kwargs)
    return f(*args, **kwargs)
