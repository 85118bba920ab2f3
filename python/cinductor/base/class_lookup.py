"""Finds the class of an object, and the package that defines a function, without running the user's code."""

from __future__ import annotations

import sys
import types
from typing import Any

from .._core import is_a as is_a

MODULE, NAME = type.__dict__["__module__"], type.__dict__["__name__"]
HEAP = 1 << 9  # the flag of classes whose attributes may be set, as those written in Python


def module_of(cls: type) -> str:
    """The name of the module of a class, read from the class itself: its metaclass may have a property of that name. Empty
    if the class has something else there.
    """
    try:
        found = MODULE.__get__(cls)
    except AttributeError:
        return ""
    return found if type(found) is str else ""


BUILTIN = frozenset({types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType})


def module_defining(f: Any) -> str:
    """The module that defines a function or class, "" for other objects. A function's attribute `__module__` may be copied from another one."""
    cls = type(f)
    if module_of(cls) == "numpy":  # a ufunc, or a dispatcher to a Python function
        f = getattr(f, "_implementation", f)
        cls = type(f)
        if cls is not types.FunctionType:
            return "numpy"
    if cls is types.FunctionType or NAME.__get__(cls) == "cython_function_or_method":  # as NumPy's functions of random numbers
        return str(f.__globals__.get("__name__"))
    if is_a(f, type):
        return module_of(f)
    if cls in BUILTIN:  # a method of an object, as [].append, has no module
        return str(f.__module__) if cls is types.BuiltinFunctionType else module_of(f.__objclass__)
    return ""


def package_of(f: Any) -> str:
    """The library that defines a function or class, "" if it is the user's. What a name of a library stands for may be anyone's."""
    package = module_defining(f).partition(".")[0]
    is_known = package in LIBRARIES or (package in sys.stdlib_module_names and package != "__main__")
    return package if is_known else ""


LIBRARIES = frozenset({"numpy", __name__.partition(".")[0]})


class Record:
    """Values with names, in order. Not a named tuple, because Python would compile code for it in each process, and
    importing the package has to be fast.
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def offered(module: Any) -> list[Any]:
    """The objects that a module has under public names. Others, such as its loader, belong to Python."""
    return [value for name, value in vars(module).items() if not name.startswith("_")]
