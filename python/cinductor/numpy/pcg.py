"""Draws of a NumPy Generator from the state of its PCG64, written with arrays.

The bit generator is PCG XSL RR 128/64 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
Algorithms for Random Number Generation", 2014); ints below a bound are made as by Lemire (ACM TOMACS 29, 2019). Calls are
captured from this source, so that loops that draw are loops over arrays. state: the low and the high word of the state, and
of the increment. half: 1 and the upper half of the last word if it is left, else 0.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MAX_SPAN = 0xFFFFFFFE  # of ints that are made of half a word


def word(state: Any) -> Any:
    """A random uint64: state = state * 0x2360ED051FC65DA44385DF649FCCF645 + increment, and its permutation."""
    low, high = state[0], state[1]
    a, b = low & 0xFFFFFFFF, low >> 32
    first, left, right = a * 0x9FCCF645, a * 0x4385DF64, b * 0x9FCCF645
    middle = (first >> 32) + (left & 0xFFFFFFFF) + (right & 0xFFFFFFFF)
    carried = b * 0x4385DF64 + (left >> 32) + (right >> 32) + (middle >> 32)
    high = high * 0x4385DF649FCCF645 + low * 0x2360ED051FC65DA4 + carried + state[3]
    low = low * 0x4385DF649FCCF645 + state[2]
    high = high + (low < state[2])
    state[0] = low
    state[1] = high
    mixed, rotation = high ^ low, high >> 58
    return (mixed >> rotation) | (mixed << ((64 - rotation) & 63))


def half_word(state: Any, half: Any) -> Any:
    """A random uint64 of 32 bits."""
    if half[0] != 0:
        half[0] = 0
        return np.uint64(half[1])
    made = word(state)
    half[0] = 1
    half[1] = made >> 32
    return made & 0xFFFFFFFF


def random(state: Any, half: Any) -> float:
    """random()"""
    return float(word(state) >> 11) * (1.0 / 9007199254740992.0)


def uniform(state: Any, half: Any, low: Any, high: Any) -> float:
    """uniform(low, high)"""
    span = float(high) - float(low)
    if math.copysign(1.0, span) < 0 or not span <= 1e308:  # NumPy refuses a range of -0.0
        raise OverflowError("such a range")
    return float(low) + span * random(state, half)


def integers(state: Any, half: Any, low: Any, high: Any) -> Any:
    """integers(low, high)"""
    span = np.int64(int(high) - int(low))  # of sizes a value, which is checked where it is drawn, so no size needs a guard
    if span < 1 or span > MAX_SPAN:
        raise ValueError("such a range")
    if span == 1:
        return np.int64(int(low))
    factor = np.uint64(span)
    made = half_word(state, half) * factor
    if (made & 0xFFFFFFFF) < factor:
        least = (0x100000000 - factor) % factor
        while (made & 0xFFFFFFFF) < least:
            made = half_word(state, half) * factor
    return np.int64(int(low) + int(made >> 32))


def may_draw(method: str, given: Sequence[Any]) -> bool:
    """False if constant bounds are those of another algorithm, or NumPy refuses them."""
    return method != "integers" or not all(type(v) is int for v in given) or 1 <= given[1] - given[0] <= MAX_SPAN


class Pcg64Memory(ctypes.Structure):
    """pcg64_state of NumPy's sources."""

    _fields_ = [("words", ctypes.POINTER(ctypes.c_uint64)), ("half", ctypes.c_uint32 * 2)]


WORDS = ctypes.c_uint64 * 4


def memory_of(generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """The state of a generator as arrays over its memory. ValueError if only NumPy can draw from it now."""
    if not is_pcg(generator) or len(sys._current_frames()) > 1 or not is_stored_as_words():
        raise ValueError("only NumPy can draw from this generator now")
    return arrays_over(generator)


def arrays_over(generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """The memory of the state, whatever it is."""
    memory = Pcg64Memory.from_address(generator.bit_generator.ctypes.state_address)
    words = WORDS.from_address(ctypes.addressof(memory.words.contents))
    words.owner = memory.owner = generator  # type: ignore[attr-defined]  # which frees the memory
    return np.frombuffer(words, np.uint64), np.frombuffer(memory, np.uint32, 2, ctypes.sizeof(ctypes.c_void_p))


@functools.cache
def is_stored_as_words() -> bool:
    """True if this NumPy stores states of 128 bits in two words, the low one first, and no structure has changed."""
    generator = np.random.Generator(np.random.PCG64(1))
    generator.integers(9)
    state, half = arrays_over(generator)
    numbers = [int(state[k]) | int(state[k + 1]) << 64 for k in (0, 2)]
    known = generator.bit_generator.state
    return [*numbers, *half.tolist()] == [*known["state"].values(), known["has_uint32"], known["uinteger"]]


def is_pcg(generator: Any) -> bool:
    """True for a Generator on a PCG64, both of NumPy's own classes."""
    module: Any = sys.modules.get("numpy.random")
    return module is not None and type(generator) is module.Generator and type(generator.bit_generator) is module.PCG64


SOURCES: dict[str, Callable[..., Any]] = {"random": random, "uniform": uniform, "integers": integers}
