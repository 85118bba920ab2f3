"""The structure in which a captured function returns its results: tuples, lists and dicts of results, constants and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._core import Unsupported

# Kinds of pieces, as csrc's binding numbers them (pyext/replay/result.h).
CONSTANT, ARGUMENT, RESULT, VIEW_OF_RESULT, VIEW_OF_ARGUMENT, SIZE, TUPLE, LIST, DICT = range(9)
REFUSED = {
    VIEW_OF_RESULT: "a part of an array that the call makes; return a copy of it",
    VIEW_OF_ARGUMENT: "a part of an argument; return a copy of it",
    SIZE: "a size of an argument; the caller has it",
}


class ResultPiece(NamedTuple):
    """One piece of a result, as `Specialization.saved` has it."""

    kind: int
    number: int  # of the program's result, or of the source
    memo: int
    value_kind: int  # 0: an array, 1: NumPy's scalar, 2: Python's number
    object: Any  # a constant, or the class of a container
    keys: Any  # of a dict
    items: tuple[int, ...]  # the pieces of a container
    dtype: int
    rank: int
    layout: tuple[Any, ...]  # of a view: sizes, strides and offset in bytes
    access: int  # of a view: what a write to it does
    is_whole: int


def structure(rows: Sequence[tuple[Any, ...]], leaf: Callable[[ResultPiece], Any], at: int = 0) -> Any:
    """The result, with `leaf(piece)` in place of each constant, argument and result. Raises Unsupported for other pieces."""
    piece = ResultPiece(*rows[at])
    inside = [structure(rows, leaf, number) for number in piece.items]
    if piece.kind == TUPLE and piece.object is tuple:
        return tuple(inside)
    if piece.kind == LIST and piece.object is list:
        return inside
    if piece.kind == DICT and piece.object is dict:
        return dict(zip(piece.keys, inside, strict=True))
    if piece.kind not in (CONSTANT, ARGUMENT, RESULT):
        raise Unsupported(f"the function returns {REFUSED.get(piece.kind, 'a container or an object of a class of its own')}")
    return leaf(piece)
