"""Finds the places that a function can reach, and changes them, for tests/capture/test_changing_world.py.

A place is a name of a module, an attribute of an object, class or function, defaults, constants of code, a cell,
or an item of a list or dict. The class of an object, its bases, and names that a class does not have yet are
places, too.
"""

import copy
import enum
import functools
import inspect
import sys
import types

import numpy as np

from cinductor.capture.deaths import dies_unseen

MISSING = object()
IN_PYTHON = 1 << 9  # the flag of classes that are written in Python
MOST = 400  # values inspected by one search
# Names that Python keeps in classes and modules, and names that cannot be set.
UNTOUCHED = frozenset(
    """__dict__ __weakref__ __module__ __slots__ __annotations__ __orig_bases__ __parameters__ __static_attributes__ __firstlineno__
    __abstractmethods__ _abc_impl __dataclass_fields__ __dataclass_params__ _member_map_ _member_names_ _value2member_map_ __new__
    _member_type_ _use_args_ _new_member_ _generate_next_value_ _unhashable_values_ _value_repr_ __hash__
    _hashable_values_ _sort_order_ __objclass__ __builtins__ __loader__ __spec__ __file__ __cached__ __package__ __name__
    LOG _name_ __annotate_func__ __annotations_cache__ __replace__""".split()
)


class Place:
    r"""A name of the place, its value, and a function that sets another value (None if it cannot be set).

    like: a value of the type that a missing value should have.
    """

    def __init__(self, name, value, put=None, like=1.0, can_miss=False):
        self.name, self.value, self.put, self.like, self.can_miss = name, value, put, like, can_miss


def item(name, owner, key):
    """owner[key], which may be missing."""

    def put(value):
        if value is MISSING:
            del owner[key]
        else:
            owner[key] = value

    value = owner.get(key, MISSING) if isinstance(owner, dict) else owner[key]
    return Place(f"{name}[{key!r}]", value, put, can_miss=isinstance(owner, dict))


def attribute(name, owner, key, value, like=1.0, can_miss=False):
    """owner.key, where the owner itself has the value, or may come to have it."""

    def put(value):
        if value is MISSING:
            delattr(owner, key)
        else:
            setattr(owner, key, value)

    return Place(f"{name}.{key}", value, put, like, can_miss)


def is_in_library(module):
    top = str(module).partition(".")[0]
    return top in sys.stdlib_module_names or top in ("numpy", "cinductor")


def is_users(cls):
    """A class that is written in Python, and by no library."""
    return bool(cls.__flags__ & IN_PYTHON) and not is_in_library(cls.__module__)


# --- the walk ---------------------------------------------------------------------------------------


def names_in(code):
    """The names that code, and the code inside it, looks up in a namespace."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return dict.fromkeys([*code.co_names, *(name for c in inner for name in names_in(c))])


def attributes_in(code):
    """The names in code that may be attributes, those in strings included."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    texts = [c for c in code.co_consts if type(c) is str and c.isidentifier()]
    return [*code.co_names, *texts, *(name for c in inner for name in attributes_in(c))]


def of_function(name, fn):
    space = fn.__globals__
    own = space["__builtins__"]
    own = own if isinstance(own, dict) else vars(own)
    for key in names_in(fn.__code__):
        if key in UNTOUCHED:
            continue
        if key in space:
            yield item("globals", space, key)
        elif key not in own:  # an attribute's name, or a global that is missing
            yield item("globals", space, key)
        elif callable(own.get(key)) and not isinstance(own[key], type):
            place = item("globals", space, key)
            place.like = own[key]
            yield place
    for key, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        if cell != types.CellType():
            yield Place(f"{name} cell {key}", cell.cell_contents, functools.partial(setattr, cell, "cell_contents"))
    if fn.__defaults__ and dies_unseen(fn.__defaults__):  # a compiled function drops its former defaults late
        yield attribute(name, fn, "__defaults__", fn.__defaults__)
    for key in fn.__kwdefaults__ or () if dies_unseen(fn.__kwdefaults__) else ():
        yield item(f"{name}.__kwdefaults__", fn.__kwdefaults__, key)
    for key in ("__name__", "__qualname__", "__doc__"):
        yield attribute(name, fn, key, getattr(fn, key))
    for key in fn.__dict__:
        yield item(f"{name}.__dict__", fn.__dict__, key)
    if any(type(c) is float for c in fn.__code__.co_consts):
        yield attribute(name, fn, "__code__", fn.__code__)


# Special methods that a class may come to have.
PROTOCOLS = {
    "__iter__": lambda self: iter((1.0, 2.0)),
    "__len__": lambda self: 2,
    "__bool__": lambda self: False,
    "__getitem__": lambda self, key: (1.0, 2.0, 3.0)[key],
    "__contains__": lambda self, value: True,
    "__call__": lambda self, *values: 3.0,
    "__add__": lambda self, other: other * 2,
    "__radd__": lambda self, other: other * 3,
    "__float__": lambda self: 2.5,
    "__index__": lambda self: 1,
    "__getattr__": lambda self, name: 4.0,
    "__enter__": lambda self: 2.0,
    "__exit__": lambda self, *error: False,
}


def of_class(name, cls):
    is_enum = isinstance(cls, enum.EnumMeta)
    for key, value in [*vars(cls).items()]:
        if key not in UNTOUCHED and not (is_enum and isinstance(value, cls)):
            yield attribute(name, cls, key, value)
    for key in ("__name__", "__qualname__"):
        yield attribute(name, cls, key, getattr(cls, key))
    for base in cls.__mro__[1:]:  # attributes that it inherits and may define itself
        for key, value in vars(base).items() if is_users(base) and not is_enum else ():
            if key not in UNTOUCHED and key not in vars(cls):
                yield attribute(name, cls, key, MISSING, value)
    for key, like in PROTOCOLS.items() if not is_enum else ():
        if not hasattr(cls, key) and not issubclass(cls, BaseException):
            yield attribute(name, cls, key, MISSING, like)
    if cls.__bases__ != (object,) and not is_enum:
        yield attribute(name, cls, "__bases__", cls.__bases__)
    for key, member in cls.__members__.items() if is_enum else ():
        yield attribute(f"{name}.{key}", member, "_value_", member._value_)
        yield from of_object(f"{name}.{key}", member, [k for k, v in vars(cls).items() if type(v) in (types.FunctionType, functools.cached_property)])
    for base in (*cls.__bases__, type(cls)):
        yield Place(f"{name} base {base.__name__}", base)


def of_object(name, value, wanted):
    """wanted: names that functions look up. An object with a `__dict__` can get an attribute of each."""
    cls = type(value)
    for key, held in [*getattr(value, "__dict__", {}).items()]:
        yield attribute(name, value, key, held, can_miss=True)
    for key in wanted if type(getattr(value, "__dict__", None)) is dict else ():
        if key not in UNTOUCHED and inspect.getattr_static(value, key, MISSING) is MISSING:
            yield attribute(name, value, key, MISSING)
    for key, slot in [pair for base in cls.__mro__ for pair in vars(base).items()]:
        if type(slot) is types.MemberDescriptorType and is_users(slot.__objclass__):
            yield attribute(name, value, key, getattr(value, key, MISSING), can_miss=True)
    if is_users(cls) and not isinstance(value, enum.Enum | tuple | BaseException):
        yield attribute(name, value, "__class__", cls)
    yield Place(f"type({name})", cls)


def of_module(name, module):
    """Only modules of the program. Modules of Python and NumPy are shared by both worlds and by capture."""
    if module.__name__ in sys.modules:
        return
    for key in [*vars(module)]:
        if key == "__getattr__" or not key.startswith("__"):
            yield item(name, vars(module), key)


PARTS = {
    types.MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget",),
    functools.partial: ("func", "keywords"),
    functools.cached_property: ("func",),
}


def inside(name, value, wanted):
    """The places in a value, and values that only lead to other places. wanted: as for `of_object`."""
    cls = type(value)
    for part in PARTS.get(cls, ()):
        yield Place(f"{name}.{part}", getattr(value, part))
    if cls is types.FunctionType:
        yield from () if is_in_library(value.__globals__.get("__name__")) else of_function(name, value)
    elif cls is types.ModuleType:
        yield from of_module(name, value)
    elif cls is list:
        yield from (item(name, value, k) for k in range(min(len(value), 8)))
        yield Place(f"items of {name}", [*value], functools.partial(value.__setitem__, slice(None)))
    elif cls is dict:
        yield from (item(name, value, key) for key in [*value][:8])
    elif cls is tuple:
        yield from (Place(f"{name}[{k}]", part) for k, part in enumerate(value[:8]))
    elif isinstance(value, type):
        yield from of_class(name, value) if is_users(value) else ()
    elif cls in (types.SimpleNamespace, np.vectorize) or is_users(cls):
        yield from of_object(name, value, wanted)


def places(fn, given):
    """Every place that is reached from a function and its arguments, by name."""
    todo = [Place("function", fn), *(item("arguments", given, k) for k in range(len(given)))]
    seen, found, wanted = set(), {}, {}
    for at in todo:
        if type(at.value) is types.FunctionType and not is_in_library(at.value.__globals__.get("__name__")):
            wanted |= dict.fromkeys(attributes_in(at.value.__code__))
        if at.put is not None:
            found.setdefault(at.name, at)
        if id(at.value) not in seen and len(todo) < MOST and not at.name.startswith("items of "):
            seen.add(id(at.value))
            todo += inside(at.name, at.value, [*wanted])
    return found


# --- changes ----------------------------------------------------------------------------------------


def more(result):
    """Another value of the result, if it is a number or an array."""
    return result + 1 if type(result) in (int, float) or isinstance(result, np.ndarray | np.floating) else result


def changed_function(fn):
    """A function that returns something else, or has another effect."""

    def changed(*args, **kwargs):
        return more(fn(*args, **kwargs))

    def changed_init(self, *args, **kwargs):
        fn(self, *args, **kwargs)
        for key, value in [*vars(self).items()]:
            setattr(self, key, more(value))

    return changed_init if getattr(fn, "__name__", "") in ("__init__", "__post_init__") else changed


def changed_class(cls, random):
    """A subclass that overrides one attribute."""
    found = {key: value for base in reversed(cls.__mro__) if is_users(base) for key, value in vars(base).items()}
    names = sorted(key for key in found if key not in UNTOUCHED and not key.startswith("__"))
    if not names or isinstance(cls, enum.EnumMeta):
        return cls
    key = random.choice(names)
    slots = {} if any("__dict__" in vars(base) for base in cls.__mro__) else {"__slots__": ()}
    return type(cls)(cls.__name__, (cls,), {key: other(found[key], random), **slots})


def changed_base(cls, random):
    """A subclass, or a class that is none and has the same attributes."""
    if not is_users(cls) or random.random() < 0.5:
        return changed_class(cls, random)
    return type(cls)(cls.__name__, cls.__bases__, {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")})


def changed_code(code, random):
    numbers = [k for k, c in enumerate(code.co_consts) if type(c) is float]
    k = random.choice(numbers)
    return code.replace(co_consts=(*code.co_consts[:k], code.co_consts[k] + 1.0, *code.co_consts[k + 1 :]))


def changed_object(value, random):
    """A copy of the object with one attribute changed; the object itself if its class has no copies."""
    try:
        made = copy.copy(value)
    except Exception:
        return value
    for key, held in getattr(made, "__dict__", {}).items():
        made.__dict__[key] = other(held, random)
    return made


def changed_item(value, random):
    k = random.randrange(len(value))
    return type(value)([*value[:k], other(value[k], random), *value[k + 1 :]])


OTHERS = {
    type(None): lambda value, random: 1.0,
    bool: lambda value, random: not value,
    int: lambda value, random: random.choice([value + 1, value + 2, float(value)]),
    float: lambda value, random: random.choice([value + 1.5, -value, int(value) + 3 if value == value else 3, np.float32(value + 1)]),
    str: lambda value, random: value + "z",
    tuple: lambda value, random: changed_item(value, random) if value else (1.0,),
    list: lambda value, random: random.choice([[*value, 5.0], value[:-1], changed_item(value, random) if value else [1]]),
    dict: lambda value, random: {key: other(held, random) for key, held in value.items()},
    np.timedelta64: lambda value, random: np.timedelta64(int(value.astype(int)), random.choice("mhs")),
    np.datetime64: lambda value, random: np.datetime64(int(value.astype(int)), random.choice("mhs")),
    types.FunctionType: lambda value, random: changed_function(value),
    types.BuiltinFunctionType: lambda value, random: changed_function(value),
    types.CodeType: changed_code,
    staticmethod: lambda value, random: staticmethod(changed_function(value.__func__)),
    classmethod: lambda value, random: classmethod(changed_function(value.__func__)),
    property: lambda value, random: property(changed_function(value.fget)),
    np.void: lambda value, random: np.frombuffer(value.tobytes(), [(n, value.dtype[n]) for n in reversed(value.dtype.names)])[0],
}


CLASSES = [float, str, KeyError, ArithmeticError, np.float32]  # that take the place of another class of a library


def other(value, random):
    """A different value of the same kind, or the value itself if there is none."""
    found = OTHERS.get(type(value))
    if found is not None:
        return found(value, random)
    if isinstance(value, np.dtype):
        return np.dtype("f8" if value != np.dtype("f8") else "f4")
    if type(value) is np.ndarray:
        return random.choice([value + 1, value.astype("f4")]) if value.dtype.kind in "iuf" else value
    if isinstance(value, np.number):
        return random.choice([type(value)(value + 1), np.complex64(value + 1)])
    if isinstance(value, type):
        return changed_class(value, random) if is_users(value) else random.choice(CLASSES)
    return changed_object(value, random) if is_users(type(value)) and not isinstance(value, enum.Enum) else value


def other_at(place, random):
    """The new value of a place; MISSING if it is deleted."""
    if place.name.endswith(".__bases__"):
        k = random.randrange(len(place.value))
        return (*place.value[:k], changed_base(place.value[k], random), *place.value[k + 1 :])
    if place.value is MISSING:
        return other(place.like, random)
    if place.can_miss and random.random() < 0.1:
        return MISSING
    return other(place.value, random)
