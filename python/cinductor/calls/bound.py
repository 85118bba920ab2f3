"""Bound of the time of a call in Python, from its bytecode and its arguments alone. A loop is assumed to run as often as the largest number
that the call is given.
"""

from __future__ import annotations

import functools
import opcode
import types
from typing import Any

import numpy as np

INSTRUCTION, ELEMENT = 20e-9, 0.5e-9  # seconds
MOST_TRIPS = 10**9  # a larger number is a mask, or a seed
DEEPEST = 4  # loops within each other, and calls
CACHE = 0  # no instruction, since Python 3.11
WORKING = {op for name, op in opcode.opmap.items() if name.startswith(("CALL", "BINARY", "COMPARE"))}
BACKWARD = {op for name, op in opcode.opmap.items() if "JUMP_BACKWARD" in name}
ABSOLUTE = set(opcode.hasjabs)  # jumps of Python 3.10


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
    """The largest number of iterations that a value may stand for, and its elements."""
    if type(value) is np.ndarray:
        return max(value.shape, default=1), value.size
    if type(value) is int:
        return (abs(value) if abs(value) <= MOST_TRIPS else 1), 0
    if type(value) in (list, tuple, dict, str, set):
        return len(value), len(value)
    return 1, 0


@functools.lru_cache(1024)
def counts_of(code: types.CodeType) -> tuple[tuple[int, int], ...]:
    """By the number of loops around them: instructions, and those of them that may work on each element."""
    raw = code.co_code
    ends, arg = [0] * (len(raw) // 2 + 1), 0  # where loops begin and end
    for at in range(0, len(raw), 2):
        op, arg = raw[at], arg << 8 | raw[at + 1]
        if op == opcode.EXTENDED_ARG:
            continue
        target = at + 2 - 2 * arg if op in BACKWARD else 2 * arg if op in ABSOLUTE else at + 2
        if target <= at:
            ends[max(target, 0) // 2] += 1
            ends[at // 2 + 1] -= 1
        arg = 0
    made, depth = [[0, 0] for _ in range(DEEPEST + 1)], 0
    for op, change in zip(raw[::2], ends, strict=False):
        depth += change
        row = made[min(depth, DEEPEST)]
        row[0] += op != CACHE
        row[1] += op in WORKING
    return tuple((count, working) for count, working in made)


def of_code(code: types.CodeType, known: dict[str, Any], trips: int, elements: int, depth: int) -> float:
    """The bound of a code object, of those within it, and of the functions that it names."""
    trips = max([trips, *(c for c in code.co_consts if type(c) is int and c <= MOST_TRIPS)])
    total = sum(
        (INSTRUCTION * count + ELEMENT * elements * working) * float(trips) ** deep
        for deep, (count, working) in enumerate(counts_of(code))
    )
    inner = [c for c in code.co_consts if type(c) is types.CodeType]
    named = (known.get(name) for name in code.co_names)
    inner += [f.__code__ for f in named if type(f) is types.FunctionType and f.__globals__ is known]
    if depth < DEEPEST:
        total += sum(of_code(c, known, trips, elements, depth + 1) for c in inner)
    return total
