"""How long a call may take in Python at most, roughly, by its code and arguments alone: what is asked where a
capture takes long. Loops are taken to run as often as the largest number that the call is given.
"""

from __future__ import annotations

import dis
import types
from typing import Any

import numpy as np

INSTRUCTION, ELEMENT = 20e-9, 0.5e-9  # seconds
MOST_TRIPS = 1 << 40
DEEPEST = 4  # loops within each other, and calls
CALLS = ("CALL", "BINARY", "COMPARE")  # instructions that may do something to each element


def seconds_of(fn: Any, bound: tuple[Any, ...]) -> float:
    """The bound of one call."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    if code is None:
        return 0.0
    sizes, elements = [16], 0
    for value in bound:
        size, count = size_of(value)
        sizes.append(size)
        elements = max(elements, count)
    return of_code(code, getattr(fn, "__globals__", {}), min(max(sizes), MOST_TRIPS), elements, 0)


def size_of(value: Any) -> tuple[int, int]:
    """The largest number of trips that a value may stand for, and its elements."""
    if type(value) is np.ndarray:
        return max(value.shape, default=1), value.size
    if type(value) is int:
        return abs(value), 0
    if type(value) in (list, tuple, dict, str, set):
        return len(value), len(value)
    return 1, 0


def of_code(code: types.CodeType, known: dict[str, Any], trips: int, elements: int, depth: int) -> float:
    """The same of a code object, and of those within it and the functions that it names."""
    instructions = list(dis.get_instructions(code))
    loops = [(i.argval, i.offset) for i in instructions if "JUMP" in i.opname and is_backward(i)]
    trips = max([trips, *(c for c in code.co_consts if type(c) is int and c <= MOST_TRIPS)])
    total = 0.0
    for i in instructions:
        deep = min(sum(start <= i.offset <= end for start, end in loops), DEEPEST)
        each = INSTRUCTION + (ELEMENT * elements if i.opname.startswith(CALLS) else 0.0)
        total += each * float(trips) ** deep
    inner = [c for c in code.co_consts if type(c) is types.CodeType]
    named = (known.get(name) for name in code.co_names)
    inner += [f.__code__ for f in named if type(f) is types.FunctionType and f.__globals__ is known]
    if depth < DEEPEST:
        total += sum(of_code(c, known, trips, elements, depth + 1) for c in inner)
    return total


def is_backward(instruction: Any) -> bool:
    """Whether an instruction jumps to one before it."""
    return type(instruction.argval) is int and instruction.argval <= instruction.offset
