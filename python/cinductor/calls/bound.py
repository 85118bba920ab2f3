"""Bound of the time of a call in Python, from its bytecode and its arguments alone. A loop is assumed to run as often as the largest number
that the call is given, or that the code has. Operands of arithmetic and masks (0xFFFF) are no such numbers.
"""

from __future__ import annotations

import functools
import itertools
import opcode
import re
import types
from typing import Any

import numpy as np

from ..base.records import NamedTuple

INSTRUCTION, ON_ARRAY, ELEMENT = 20e-9, 150e-9, 0.5e-9  # seconds; of an instruction that may work on an array, and on each element
MAX_ITERATIONS = 10**9  # a larger number is a mask, or a seed
DEEPEST = 4  # loops within each other, and calls
CACHE = 0  # no instruction, since Python 3.11
WORKING = {op for name, op in opcode.opmap.items() if name.startswith(("CALL", "BINARY", "COMPARE"))}
BACKWARD = {op for name, op in opcode.opmap.items() if "JUMP_BACKWARD" in name}
ABSOLUTE = set(opcode.hasjabs)  # jumps of Python 3.10
LOOPING = BACKWARD | ABSOLUTE
ITERATING = {opcode.opmap["FOR_ITER"], opcode.EXTENDED_ARG}
OPERATORS = {op for name, op in opcode.opmap.items() if name.startswith(("BINARY", "INPLACE"))}
LOAD_CONST = opcode.opmap["LOAD_CONST"]
LEAST = 16  # iterations of a while
NOT_WORKING = bytes(set(range(256)) - WORKING)


def any_of(ops: set[int]) -> bytes:
    """The pattern of one of these instructions."""
    return b"[%b]" % b"".join(b"\\x%02x" % op for op in sorted(ops))


# A jump back, or a constant that is an operand at once, after the instructions that extend its argument.
JUMPS = b"%b*(?:%b|%b(?=%b))" % tuple(map(any_of, ({opcode.EXTENDED_ARG}, LOOPING, {LOAD_CONST}, OPERATORS)))


class Bound:
    """The bound of a function's calls. It is made in the first call: the functions that the code names by then are counted with it.

    A loop runs over an axis: in the outermost one all elements are worked on once. known: the global names of the code. todo: code objects,
    with the largest int around them that may be a number of iterations, and how deep they are within others.
    """

    __slots__ = ("known", "constant", "terms")

    def __init__(self, known: dict[str, Any], todo: list[tuple[types.CodeType, int, int]]) -> None:
        self.known = known
        found: dict[tuple[int, int], Counts] = {}  # by the iterations that a loop has at least, and the largest such int
        while todo:
            code, constant, depth = todo.pop()
            facts = facts_of(code)
            constant = max(constant, facts.constant)
            key = facts.least, constant
            both = itertools.zip_longest(found.get(key, ()), facts.counts, fillvalue=(0, 0))
            found[key] = tuple([(a[0] + b[0], a[1] + b[1]) for a, b in both])
            if depth == 0:
                self.constant = constant
            if depth == DEEPEST:
                continue
            for each in code.co_consts:
                if type(each) is types.CodeType:
                    todo.append((each, constant, depth + 1))
            for name in code.co_names:
                each = known.get(name)
                if type(each) is types.FunctionType and each.__globals__ is known:
                    todo.append((each.__code__, constant, depth + 1))
        self.terms = list(found.items())

    def seconds(self, bound: tuple[Any, ...]) -> float:
        """The bound of one call."""
        if not self.terms:
            return 0.0
        largest, elements, total = 1, 0, 0.0
        given: list[tuple[types.CodeType, int, int]] = []
        for value in bound:
            cls, size, count = type(value), 1, 0  # of iterations that it may stand for, and elements
            if cls is np.ndarray:
                size, count = max(value.shape, default=1), value.size
            elif cls is int:
                size = abs(value) if abs(value) <= MAX_ITERATIONS else 1
            elif cls in (list, tuple, dict, str, set):
                size = count = len(value)
            elif cls is types.FunctionType:
                given.append((value.__code__, self.constant, 1))
            largest, elements = max(largest, size), max(elements, count)
        trips, each = min(largest, MAX_ITERATIONS), ON_ARRAY if elements else 0.0
        for (least, constant), counts in self.terms + (Bound(self.known, given).terms if given else []):
            runs, around, before = float(max(trips, constant, least)), 1.0, 1.0
            for count, working in counts:
                total += (INSTRUCTION * count + each * working) * around + ELEMENT * elements * working * before
                around, before = around * runs, around
        return total


Counts = tuple[tuple[int, int], ...]  # by the number of loops around: instructions, and those that may work on each element


class CodeFacts(NamedTuple):
    """Properties of a code object that the time of a call follows from."""

    counts: Counts
    least: int  # iterations of a loop
    constant: int  # the largest int that may be a number of iterations


@functools.lru_cache(1024)
def facts_of(code: types.CodeType) -> CodeFacts:
    """The facts of a code object, without those within it."""
    raw, constants = code.co_code, {c for c in code.co_consts if type(c) is int and c <= MAX_ITERATIONS and c & (c + 1)}
    ops = raw[::2]
    if LOOPING.isdisjoint(ops):
        return CodeFacts(((len(ops) - ops.count(CACHE), len(ops.translate(None, NOT_WORKING))),), 1, max(constants, default=1))
    jumps, least = {}, 1  # the last jump to each head of a loop
    for found in re.finditer(JUMPS, ops):
        at = found.end() - 1
        op, arg = ops[at], int.from_bytes(raw[2 * found.start() + 1 : 2 * at + 2 : 2], "big")
        target = at + 1 - arg if op in BACKWARD else arg if op in ABSOLUTE else at + 1
        if target <= at:
            jumps[max(target, 0)] = at
            least = least if ops[target] in ITERATING else LEAST
        elif op == LOAD_CONST:
            constants.discard(code.co_consts[arg])
    changes = {0: 0}  # of the number of loops around
    for head, end in loops_of(jumps):
        changes[head] = changes.get(head, 0) + 1
        changes[end + 1] = changes.get(end + 1, 0) - 1
    made, depth, places = [[0, 0] for _ in range(DEEPEST + 1)], 0, sorted(changes)
    for at, end in zip(places, [*places[1:], len(ops)], strict=True):
        depth += changes[at]
        row, part = made[min(depth, DEEPEST)], ops[at:end]
        row[0] += len(part) - part.count(CACHE)
        row[1] += len(part.translate(None, NOT_WORKING))
    return CodeFacts(tuple((count, working) for count, working in made), least, max(constants, default=1))


def loops_of(jumps: dict[int, int]) -> list[list[int]]:
    """Where loops begin and end, from the last jump to each head. One loop may have two heads: `continue` jumps to the
    condition of a `while`, and the end of its body to the body. Two loops only overlap if one is in the other.
    """
    found: list[list[int]] = []
    for head, end in sorted(jumps.items()):
        for loop in reversed(found):
            if loop[0] < head <= loop[1] < end:
                loop[1] = end
                break
        else:
            found.append([head, end])
    return found
