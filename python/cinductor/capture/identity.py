"""Finds reads of what only one object or one process has: an address, the hash of a text, the order of a set.

A text or a hash that has the address of an object differs from call to call, so Python computes it in each call. Hashes of
texts, and the order of sets of them, differ from process to process, so a capture that has read them is not saved.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.class_lookup import is_a, module_of
from .container_rows import ROWS
from .objects import (
    FREE_TYPES,
    HOLDERS,
    NUMBER_TYPES,
    SHOWN,
    has_hooks,
    is_numpys,
    objects_in,
)
from .sources import Sources

FUNCTIONS = frozenset({types.FunctionType, types.BuiltinFunctionType})
BY_VALUE = (FREE_TYPES | SHOWN | {range, slice, type(Ellipsis), type(NotImplemented)}) - FUNCTIONS
SETS = frozenset({set, frozenset})
NUMBERS = frozenset({bool, int, float, complex})
MAX_DEPTH = 8  # of containers in each other


def has_address(value: Any, is_hash: bool = False, depth: int = MAX_DEPTH) -> type | None:
    """The class of the first object whose address is in the text, or in the hash, of a value; None if there is none."""
    cls = type(value)
    if cls in BY_VALUE:
        is_nan = is_hash and cls in NUMBER_TYPES and value != value  # noqa: PLR0124  # the hash of a NaN is its address
        return cls if is_nan else None
    if is_a(value, type | types.ModuleType | BaseException) or (has_hooks(cls) and not is_a(value, HOLDERS)):
        return None
    if cls is types.BuiltinFunctionType:
        return None if is_a(value.__self__, types.ModuleType) else cls
    if is_a(value, HOLDERS) or cls in ROWS:
        if not depth:
            return cls  # not looked into
        return next((found for item in objects_in(value) if (found := has_address(item, is_hash, depth - 1)) is not None), None)
    return None if is_numpys(module_of(cls)) else cls


def note_hash(sources: Sources, value: Any) -> None:
    """Python hashes a value."""
    if not is_number(value):
        sources.sees_process = True


def note_order(sources: Sources, values: Iterable[Any]) -> None:
    """Python reads the order of the sets among values, and in the containers among them."""
    sources.sees_process = sources.sees_process or any(map(has_order, values))


def has_order(value: Any, depth: int = MAX_DEPTH) -> bool:
    """True if a value is, or has in it, a set whose order depends on hashes of texts or addresses."""
    if type(value) in BY_VALUE or not is_a(value, HOLDERS):
        return False
    if is_a(value, set | frozenset):
        return not all(map(is_number, value))
    return not depth or any(has_order(item, depth - 1) for item in objects_in(value))


def is_number(value: Any) -> bool:
    """True if a value's hash is the same in each process: a number that is not NaN, or a tuple of numbers."""
    if is_a(value, tuple | frozenset):
        return all(map(is_number, value))
    return (type(value) in NUMBERS or is_a(value, np.number | np.bool_)) and value == value  # noqa: PLR0124
