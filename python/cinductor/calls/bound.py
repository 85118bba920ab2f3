"""Classes of Python's instructions, by which `_core.Bound` counts those of a function. They differ between versions of Python."""

from __future__ import annotations

import opcode

from .. import _core

BIT = {name: 1 << k for k, name in enumerate(_core.INSTRUCTION_CLASSES.split())}
CACHE = 0  # no instruction, since Python 3.11
JUMPS = frozenset(opcode.hasjabs)  # of Python 3.10
NAMES = {"FOR_ITER": BIT["ITERATES"], "EXTENDED_ARG": BIT["EXTENDS"], "LOAD_CONST": BIT["LOADS"]}


def class_of(name: str, number: int) -> int:
    """The class of one instruction."""
    found = NAMES.get(name, 0) | (BIT["COUNTS"] if number != CACHE else 0) | (BIT["JUMPS_TO"] if number in JUMPS else 0)
    found |= BIT["WORKS"] if name.startswith(("CALL", "BINARY", "COMPARE")) else 0
    found |= BIT["OPERATES"] if name.startswith(("BINARY", "INPLACE")) else 0
    return found | (BIT["JUMPS_BACK"] if "JUMP_BACKWARD" in name else 0)


def classes() -> bytes:
    """The class of each instruction, by its number."""
    names = {number: name for name, number in opcode.opmap.items()}
    return bytes([class_of(names.get(number, ""), number) for number in range(256)])


CLASSES = classes()
