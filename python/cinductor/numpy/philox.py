"""Draws of arrays of a NumPy Generator on a Philox, for programs of a device.

The bit generator is Philox4x64-10 (Salmon, Moraes, Dror & Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): a block
of four words depends on its counter and on the key alone. So a library call reads the state and advances it by the draw,
and the device computes each number from its position. The functions of SOURCES are captured.

A state is 13 words: the counter (4), the key (2), the block of that counter (4), how many of its words have been drawn,
whether the upper half of a word is left, and that half.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .shape import sizes

WORDS = 13
FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # of the key between rounds
KEYS = tuple(tuple(k * step % 2**64 for step in STEPS) for k in range(10))  # what each round adds to it
LOW = 0xFFFFFFFF
FLOAT32 = np.dtype(np.float32)


def upper_product(factor: Any, x: Any) -> Any:
    """The upper word of a product of two words."""
    a, b, c, d = x & LOW, x >> 32, factor & LOW, factor >> 32
    left, right = b * c, a * d
    middle = (a * c >> 32) + (left & LOW) + (right & LOW)
    return b * d + (left >> 32) + (right >> 32) + (middle >> 32)


def counter_at(state: Any, number: Any) -> Any:
    """The counters of blocks with these numbers, of which that of the state is 0."""
    a = state[0] + number
    carry = a < number
    b = state[1] + carry
    carry = carry & (b == 0)
    c = state[2] + carry
    return a, b, c, state[3] + (carry & (c == 0))


def round_of(block: Any, state: Any, k: Any) -> Any:
    """The block after round k."""
    a, b, c, d = block
    high, other = upper_product(FACTORS[0], a), upper_product(FACTORS[1], c)
    first, second = state[4] + KEYS[k][0], state[5] + KEYS[k][1]
    return other ^ b ^ first, c * FACTORS[1], high ^ d ^ second, a * FACTORS[0]


def block_at(state: Any, number: Any) -> Any:
    """The four words of blocks. The rounds are written one after another: a loop would be a loop of kernels."""
    block = round_of(round_of(counter_at(state, number), state, 0), state, 1)
    block = round_of(round_of(block, state, 2), state, 3)
    block = round_of(round_of(block, state, 4), state, 5)
    block = round_of(round_of(block, state, 6), state, 7)
    return round_of(round_of(block, state, 8), state, 9)


def words_from(state: Any, at: Any, count: Any) -> Any:
    """The words at these positions, all below `count`, after the next one that is drawn. They are stored, because a block
    is computed for four of them.
    """
    number = np.arange((count + 7) // 4 + 1).astype(np.uint64)
    a, b, c, d = block_at(state, number)
    is_drawn = number == 0  # a user may have set the block
    a, b = np.where(is_drawn, state[6], a), np.where(is_drawn, state[7], b)
    c, d = np.where(is_drawn, state[8], c), np.where(is_drawn, state[9], d)
    words = np.stack((a, b, c, d), axis=1).reshape(-1)
    found = np.maximum(at + (state[10] & 7).astype(np.int64), 0)
    return words[np.minimum(found, words.shape[0] - 1)]  # which changes nothing, and needs no check


def random(state: Any, shape: Any) -> Any:
    """random(shape): a word each."""
    count = math.prod(shape)
    word = words_from(state, np.arange(count), count)
    return ((word >> 11) * (1.0 / 9007199254740992.0)).reshape(shape)


def random_singles(state: Any, shape: Any) -> Any:
    """random(shape, dtype=float32): half a word each, the lower one first."""
    count, has_half = math.prod(shape), (state[11] & 1).astype(np.int64)
    half = np.maximum(np.arange(count) - has_half, 0)
    word = words_from(state, half >> 1, (count + 1) // 2)
    made = np.where(half & 1 == 0, word & LOW, word >> 32)
    made = np.where(np.arange(count) < has_half, state[12], made)
    return ((made >> 8).astype(np.float32) * np.float32(1.0 / 16777216.0)).reshape(shape)


def uniform(state: Any, shape: Any, low: Any, high: Any) -> Any:
    """uniform(low, high, shape)"""
    return low + (high - low) * random(state, shape)


def take(generator: Any, count: int, are_halves: bool) -> list[int]:
    """Return the state, and advance the generator by `count` numbers."""
    bits = generator.bit_generator
    with bits.lock:
        state = bits.state
        counter, key = state["state"]["counter"], state["state"]["key"]
        position, has_half = state["buffer_pos"], state["has_uint32"]
        found = [*counter.tolist(), *key.tolist(), *state["buffer"].tolist(), position, has_half, state["uinteger"]]
        words = max(0, (count - has_half + 1) // 2) if are_halves else count
        if words > 0:
            last = skip(bits, position, words)
            left = (last >> 32, (count - has_half) % 2) if are_halves else (state["uinteger"], has_half)
            bits.state = {**bits.state, "uinteger": left[0], "has_uint32": left[1]}
        elif are_halves and count:
            bits.state = {**state, "has_uint32": 0}
    return found


def skip(bits: Any, position: int, words: int) -> int:
    """Advance a bit generator, of whose block `position` words have been drawn; the last word that was skipped."""
    blocks = max(0, (position + words - 1) // 4)
    if blocks:
        bits.advance(blocks - 1)  # forgets the block, so that the next word is the first one of another
        words = position + words - 4 * blocks
    return int(bits.random_raw(words)[-1])


def is_philox(generator: Any) -> bool:
    """True for a Generator on a Philox, both of NumPy's own classes."""
    module: Any = sys.modules.get("numpy.random")
    return module is not None and type(generator) is module.Generator and type(generator.bit_generator) is module.Philox


class PhiloxDraws:
    """A generator whose arrays the device computes. scope: of the call. address: the generator's, for a library call."""

    def __init__(self, scope: Any, address: Any) -> None:
        self.scope, self.address = scope, address

    def drawn(self, t: Any, method: str, given: Sequence[Any], size: Any, dtype: np.dtype, find: Callable[[Any], Any]) -> Any:
        """An array of that size; None if NumPy draws it. find: returns the generator at an address."""
        if size is None or not all(type(v) in (int, float) for v in given):
            return None
        if method == "uniform" and not 0.0 <= float(given[1]) - float(given[0]) <= 1e308:
            return None
        shape, are_halves = sizes(size), dtype == FLOAT32
        count = self.scope.call(math.prod, shape)
        is_known = type(count) is int  # then the call need not be given it

        def call(address: Any, *rest: Any) -> None:
            *given, out = rest
            out[...] = take(find(address), count if is_known else int(given[0]), are_halves)

        operands = [self.address] if is_known else [self.address, count]
        key = f"{are_halves} {count if is_known else ''}"
        state = t.extern("draw_philox", key, call, operands, (WORDS,), np.dtype(np.uint64))
        if are_halves:
            return self.scope.call(random_singles, state, shape)
        return self.scope.call(SOURCES[method], state, shape, *map(float, given))


SOURCES: dict[str, Callable[..., Any]] = {"random": random, "uniform": uniform}
