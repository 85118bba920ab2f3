"""The scope of functions that outlive the captured call they were made in."""

from __future__ import annotations

import operator
import sys
import types
from typing import Any

from ..value.objects import MISSING
from .plain_control import PlainControl
from .scope import Scope


class PlainScope(Scope):
    """Does the plain thing: nothing is traced any more."""

    __slots__ = ()

    @classmethod
    def like(cls, scope: Scope) -> PlainScope:
        """The plain scope of the same function."""
        new = object.__new__(cls)
        for name in ("stage", "fn", "fn_globals", "builtins", "cells", "cache", "sites", "file"):
            setattr(new, name, getattr(scope, name, None))
        new.stage = None
        return new

    def name(self, name: str) -> Any:
        value = self.fn_globals.get(name, MISSING)
        value = self.builtins.get(name, MISSING) if value is MISSING else value
        if value is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        return value

    def free(self, name: str, value: Any) -> Any:
        return value

    truth = local = use = operand = members = test = mapping = iter = star = context = staticmethod(
        lambda value: value
    )
    key = born = truth
    attr = staticmethod(getattr)
    item = staticmethod(operator.getitem)
    contains = staticmethod(lambda value, members: value in members)
    call = staticmethod(lambda f, /, *args, **kwargs: f(*args, **kwargs))
    iter_unpacked = unpack = staticmethod(lambda value, shape: value)
    augment = staticmethod(lambda name, value, other: getattr(operator, name)(value, other))
    decorator = staticmethod(lambda value: value)
    for_, while_, if_ = PlainControl.for_, PlainControl.while_, PlainControl.if_
    bool_begin = staticmethod(lambda value, is_and: value)
    bool_end = holds = staticmethod(lambda value: value)
    not_ = staticmethod(operator.not_)
    repeat, joined = staticmethod(operator.mul), staticmethod(operator.add)
    modulo = staticmethod(operator.mod)
    bound = staticmethod(PlainControl.bound)
    lt, le, gt = PlainControl.lt, PlainControl.le, PlainControl.gt
    ge, eq, ne = PlainControl.ge, PlainControl.eq, PlainControl.ne
    then, choose = PlainControl.then, PlainControl.choose

    def caught(self) -> None:
        pass

    leaves = caught

    def shares(self, names: Any) -> None:
        pass

    def _set_global(self, name: str, value: Any) -> None:
        self.fn_globals[name] = value

    def _del_global(self, name: str) -> None:
        if name not in self.fn_globals:
            raise NameError(f"name '{name}' is not defined", name=name)
        del self.fn_globals[name]

    def _set_free(self, name: str, value: Any) -> None:
        self.cells[name].cell_contents = value

    def _del_free(self, name: str) -> None:
        del self.cells[name].cell_contents

    def _set_attr(self, name: str, item: Any, value: Any) -> None:
        setattr(value, name, item)

    def _del_attr(self, name: str, value: Any) -> None:
        delattr(value, name)

    def _set_item(self, key: Any, item: Any, value: Any) -> None:
        value[key] = item

    def _del_item(self, key: Any, value: Any) -> None:
        del value[key]

    def import_module(self, name: str, is_last: bool) -> Any:
        top = __import__(name, self.fn_globals, None, None, 0)
        return sys.modules[name] if is_last else top

    def _module_attr(self, module: types.ModuleType, name: str) -> Any:
        return getattr(module, name)

    def import_name(self, module: str, name: str, level: int) -> Any:
        found = __import__(module, self.fn_globals, None, (name,), level)
        try:
            return getattr(found, name)
        except AttributeError:
            raise ImportError(f"cannot import name '{name}' from '{found.__name__}'") from None
