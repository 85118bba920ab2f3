"""Checksums, hashes and generators of bits, on bytes and unsigned integers."""

import numpy as np


def crc32_table():
    """The 256 entries of the usual polynomial, by whole arrays."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> 1), table >> 1)
    return table


def crc32(data, table):
    """Of a byte array, by a table."""
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


def crc16(data):
    """CCITT's, bit by bit, in Python's integers over elements of a byte array."""
    crc = 0xFFFF
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) if crc & 0x8000 else crc << 1
            crc &= 0xFFFF
    return crc


def crc8_of_bytes(data):
    """Of a bytes object: no array at all until the result."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1) ^ 0x07 if crc & 0x80 else crc << 1
    return np.uint8(crc & 0xFF)


def adler32(data):
    """Two running sums modulo a prime."""
    a, b = 1, 0
    for byte in data:
        a = (a + int(byte)) % 65521
        b = (b + a) % 65521
    return b << 16 | a


def adler32_by_sums(data):
    """The same from one weighted sum."""
    n = data.size
    wide = data.astype(np.int64)
    a = (1 + wide.sum()) % 65521
    b = (n + ((n - np.arange(n)) * wide).sum()) % 65521
    return b * 65536 + a


def fnv1a(words):
    """Of each row of bytes, all rows at once, 64 bits that wrap."""
    h = np.full(words.shape[0], 0xCBF29CE484222325, dtype=np.uint64)
    prime = np.uint64(0x100000001B3)
    for j in range(words.shape[1]):
        h ^= words[:, j]
        h *= prime
    return h


def mix32(x):
    """Murmur's finaliser."""
    x = x.astype(np.uint32)
    x ^= x >> 16
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> 13
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> 16
    return x


def djb2(text):
    """Of bytes, in Python's integers that never overflow."""
    h = 5381
    for c in text:
        h = h * 33 + c
    return h


def xorshift(state, count):
    """Marsaglia's generator for several streams, into a table."""
    out = np.empty((count, state.size), np.uint32)
    for k in range(count):
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        out[k] = state
    return out


def linear_congruence(seed, count):
    """Uniform numbers from Python's integers, masked to 64 bits."""
    out = np.zeros(count)
    mask = (1 << 64) - 1
    for k in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & mask
        out[k] = (seed >> 11) / (1 << 53)
    return out


def fnv1a_of_bytes(text):
    """Of a bytes object, in Python's integers."""
    h = 0xCBF29CE484222325
    for c in text:
        h ^= c
        h = (h * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def splitmix64(seed, count):
    """Vigna's generator in Python's integers, whole words into an array of them."""
    mask = (1 << 64) - 1
    out = np.empty(count, np.uint64)
    for k in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out[k] = z ^ (z >> 31)
    return out


def xorshift64_star(state, count):
    """Uniform numbers, and the state behind them."""
    mask = (1 << 64) - 1
    out = np.zeros(count)
    for k in range(count):
        state ^= state >> 12
        state = (state ^ (state << 25)) & mask
        state ^= state >> 27
        out[k] = ((state * 0x2545F4914F6CDD1D & mask) >> 11) / (1 << 53)
    return out, state


def murmur3(words, seed):
    """Of 32-bit words, each product and rotation masked."""
    h = seed
    for word in words:
        k = (int(word) * 0xCC9E2D51) & 0xFFFFFFFF
        k = ((k << 15) | (k >> 17)) & 0xFFFFFFFF
        h ^= (k * 0x1B873593) & 0xFFFFFFFF
        h = ((h << 13) | (h >> 19)) & 0xFFFFFFFF
        h = (h * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= len(words) * 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    return h ^ (h >> 16)


def bloom_filter(keys, queries, bits):
    """Three hashes a key set bits; queries ask for all three."""
    table = np.zeros(bits, dtype=np.bool_)
    multipliers = np.array([2654435761, 2246822519, 3266489917], np.uint64)
    for m in multipliers:
        table[keys * m % np.uint64(bits)] = True
    found = np.ones(queries.shape, bool)
    for m in multipliers:
        found &= table[queries * m % np.uint64(bits)]
    return found


def open_addressing(keys, slots):
    """A hash table with linear probing: where each key came to lie."""
    table = np.full(slots, -1)
    place = np.zeros(len(keys), np.int64)
    for i in range(len(keys)):
        k = (keys[i] * 7) % slots
        while table[k] >= 0 and table[k] != keys[i]:
            k = (k + 1) % slots
        table[k] = keys[i]
        place[i] = k
    return table, place


def population_count(x):
    """Bits set in each word, by parallel sums."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


def gray_code(n):
    """The codes of n bits, doubled a bit at a time."""
    codes = np.zeros(1, dtype=np.int64)
    for bit in range(n):
        codes = np.concatenate((codes, codes[::-1] | (1 << bit)))
    return codes


def sha_rounds(words, state):
    """Rotations, choices and majorities as in SHA-256, over a few rounds."""

    def rotate(x, n):
        return (x >> n) | (x << (32 - n))

    a, b, c, d, e, f, g, h = (state[i] for i in range(8))
    for w in words:
        s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
        t1 = h + s1 + ((e & f) ^ (~e & g)) + w
        s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
        t2 = s0 + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = t1 + t2, a, b, c, d + t1, e, f, g
    return np.stack([a, b, c, d, e, f, g, h])


def some_bytes(n, rng):
    """A byte array."""
    return rng.integers(0, 256, n, np.uint8)


PROGRAMS = [
    (crc32_table, lambda n, rng: (), (1, 2, 3), 0),
    (crc32, lambda n, rng: (some_bytes(n, rng), crc32_table()), (3, 9, 40), 0),
    (crc16, lambda n, rng: (some_bytes(n, rng),), (2, 5, 12), 0),
    (crc8_of_bytes, lambda n, rng: (some_bytes(n, rng).tobytes(),), (3, 9, 20), 0),
    (adler32, lambda n, rng: (some_bytes(n, rng),), (3, 9, 40), 0),
    (adler32_by_sums, lambda n, rng: (some_bytes(n, rng),), (3, 9, 400), 0),
    (fnv1a, lambda n, rng: (rng.integers(0, 256, (n, 9), np.uint8),), (1, 6, 50), 0),
    (mix32, lambda n, rng: (rng.integers(0, 1 << 32, n),), (1, 6, 50), 0),
    (djb2, lambda n, rng: (some_bytes(n, rng).tobytes(),), (3, 9, 40), 0),
    (xorshift, lambda n, rng: (rng.integers(1, 1 << 32, n, np.uint32), 5), (1, 4, 20), 0),
    (linear_congruence, lambda n, rng: (12345 + n, n), (3, 8, 30), 0),
    (fnv1a_of_bytes, lambda n, rng: (some_bytes(n, rng).tobytes(),), (3, 9, 40), 0),
    (splitmix64, lambda n, rng: (99 + n, n), (3, 8, 30), 0),
    (xorshift64_star, lambda n, rng: (88172645463325252 + n, n), (3, 8, 30), 0),
    (murmur3, lambda n, rng: (rng.integers(0, 1 << 32, n, np.uint32), 42), (3, 8, 30), 0),
    (
        bloom_filter,
        lambda n, rng: (rng.integers(0, 1000, n, np.uint64), rng.integers(0, 1000, 2 * n, np.uint64), 64),
        (2, 7, 20),
        0,
    ),
    (open_addressing, lambda n, rng: (rng.integers(0, 50, n), 2 * n), (3, 6, 12), 0),
    (population_count, lambda n, rng: (rng.integers(0, 1 << 63, n, np.uint64),), (1, 9, 40), 0),
    (gray_code, lambda n, rng: (n,), (2, 4, 7), 0),
    (
        sha_rounds,
        lambda n, rng: (rng.integers(0, 1 << 32, (n, 3), np.uint32), rng.integers(0, 1 << 32, (8, 3), np.uint32)),
        (2, 5, 12),
        0,
    ),
]
