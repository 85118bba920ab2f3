"""The structure in which a captured function returns its results: tuples, lists and dicts of results, constants and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import Unsupported
from ..base.records import NamedTuple

CONSTANT, ARGUMENT, RESULT, NEW = "constant", "source", "return", "new"  # kinds of pieces, as the rows of a recipe name them
REFUSED = {
    "view of return": "a part of an array that the call makes; return a copy of it",
    "view of source": "a part of an argument; return a copy of it",
    "size": "a size of an argument; the caller has it",
}


class ResultPiece(NamedTuple):
    """One piece of a result, as `Specialization.saved` has it."""

    kind: str
    number: int  # of the program's result, or of the source
    memo: int
    value_kind: int  # 0: an array, 1: NumPy's scalar, 2: Python's number
    object: Any  # a constant, or the class of a container
    keys: Any  # of a dict; the function of a call
    items: tuple[int, ...]  # the pieces of a container
    dtype: int
    rank: int
    layout: tuple[Any, ...]  # of a view: sizes, strides and offset in bytes
    access: int  # of a view: what a write to it does
    is_whole: int


def structure(
    rows: Sequence[tuple[Any, ...]],
    leaf: Callable[[ResultPiece], Any],
    either: Callable[[Any, Any, Any], Any] | None = None,
    at: int = 0,
) -> Any:
    """The result, with `leaf(piece)` in place of each constant, argument and result, and `either(is_first, first, second)`
    in place of one of two results. Raises Unsupported for other pieces.
    """
    piece = ResultPiece(*rows[at])
    inside = [structure(rows, leaf, either, number) for number in piece.items]
    if piece.kind == "tuple" and piece.object is tuple:
        return tuple(inside)
    if piece.kind == "list" and piece.object is list:
        return inside
    if piece.kind == "dict" and piece.object is dict:
        return dict(zip(piece.keys, inside, strict=True))
    if piece.kind == NEW and either is not None and piece.object.is_choice:
        return either(*inside)
    if piece.kind not in (CONSTANT, ARGUMENT, RESULT):
        raise Unsupported(f"the function returns {REFUSED.get(piece.kind, 'a container or an object of a class of its own')}")
    return leaf(piece)
