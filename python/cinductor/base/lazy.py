"""Loads modules of the package at their first use.

`load` is for a module that its caller's modules use: all other imports go one way. `late_modules` is for modules of a package that the
first call of most functions does not need: `from package import module` gives a `LateModule` in place of one that has not been imported.
Then nothing else may import names from it when it is imported itself.
"""

import gc
import importlib
import sys
from collections.abc import Callable
from typing import Any


def load(name: str) -> Any:
    """The module `cinductor.<name>`. Nothing that an import makes is garbage, so none is searched for meanwhile."""
    path = f"cinductor.{name}"
    is_paused = path not in sys.modules and gc.isenabled()
    if is_paused:
        gc.disable()
    try:
        return importlib.import_module(path)
    finally:
        if is_paused:
            gc.enable()


class LateModule:
    """A module that is imported when one of its names is read or assigned."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        module = sys.modules.get(self._path)
        return getattr(module if hasattr(module, name) else importlib.import_module(self._path), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self._path), name, value)


def late_modules(package: str, *modules: str) -> Callable[[str], Any]:
    """`__getattr__` of a package some of whose modules are imported at their first use."""

    def find(name: str) -> Any:
        if name in modules:
            return LateModule(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
