"""Draws of Python's random module from the state of its generator, written with arrays.

The generator is the Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998). Calls are captured from this
source, so that loops that draw are loops over arrays. words: the 624 words of the state; index: an array with the index
of the next one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

TWO_PI = 2.0 * math.pi


def refill(words: Any) -> None:
    """Make the next 624 words."""
    for k in range(624):
        y = (words[k] & 0x80000000) | (words[(k + 1) % 624] & 0x7FFFFFFF)
        words[k] = words[(k + 397) % 624] ^ (y >> 1) ^ ((y & 1) * 0x9908B0DF)


def word(words: Any, index: Any) -> Any:
    """A random uint32."""
    if index[0] >= 624:
        refill(words)
        index[0] = 0
    y = words[index[0]]
    index[0] += 1
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


def random(words: Any, index: Any) -> float:
    """random()"""
    high = word(words, index) >> 5
    low = word(words, index) >> 6
    return (float(high) * 67108864.0 + float(low)) * (1.0 / 9007199254740992.0)


def getrandbits(words: Any, index: Any, count: int) -> int:
    """getrandbits(count), of 1 to 62 bits"""
    low = word(words, index)
    if count <= 32:
        return int(low >> (32 - count))
    return int(low) | (int(word(words, index) >> (64 - count)) << 32)


def below(words: Any, index: Any, n: int) -> int:
    """An int in [0, n): numbers that are too large are drawn again."""
    if n <= 0:
        raise ValueError("an empty range")
    count, rest = 0, n
    while rest > 0:
        count += 1
        rest >>= 1
    made = getrandbits(words, index, count)
    while made >= n:
        made = getrandbits(words, index, count)
    return made


# Functions of the C library, as Python's math has them: the kept number is a part of the state.


def log(x: float) -> float:
    """math.log"""
    return math.log(x)


def cos(x: float) -> float:
    """math.cos"""
    return math.cos(x)


def sin(x: float) -> float:
    """math.sin"""
    return math.sin(x)


def gauss(words: Any, index: Any, kept: Any, mean: float, deviation: float) -> float:
    """gauss(mean, deviation): pairs, by Box and Muller. kept: the second number of a pair, and 1.0 if there is one."""
    if kept[1] > 0.0:
        number = float(kept[0])
        kept[1] = 0.0
    else:
        angle = random(words, index) * TWO_PI
        radius = float(np.sqrt(-2.0 * log(1.0 - random(words, index))))
        number = cos(angle) * radius
        kept[0] = sin(angle) * radius
        kept[1] = 1.0
    return mean + number * deviation


def normal_of(generator: Any) -> np.ndarray:
    """The number that the generator keeps for gauss, and whether there is one."""
    kept = generator.gauss_next
    if kept is not None and type(kept) is not float:
        raise ValueError("the number that the generator keeps is no float")
    return np.array([0.0, 0.0] if kept is None else [kept, 1.0])


def keep_normal(generator: Any, kept: np.ndarray) -> None:
    """Store the number in the generator."""
    generator.gauss_next = kept.item(0) if kept[1] else None


WITH_NORMAL = frozenset({"gauss"})
SOURCES: dict[str, Callable[..., Any]] = {"random": random, "getrandbits": getrandbits, "randrange": below, "gauss": gauss}
