"""Tests overflow checks of Python ints that interval analysis removes: which checks remain, and that results equal
Python's.
"""

import numpy as np
import pytest

import cinductor


def crc16(data):
    crc = 0xFFFF
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) if crc & 0x8000 else crc << 1
            crc &= 0xFFFF
    return crc


def adler(data):
    a, b = 1, 0
    for byte in data:
        a = (a + int(byte)) % 65521
        b = (b + a) % 65521
    return b << 16 | a


def total(data):
    s = 0
    for x in data:
        s += int(x)
    return s


def total_of_rows(rows):
    s = 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if rows[i, j] > 3:
                s += int(rows[i, j])
            else:
                s -= 1
    return s


def mixed(data):
    """A generator of 31 bits, whose products need 62."""
    state = 12345
    for x in data:
        state = (1103515245 * state + int(x)) & 0x7FFFFFFF
    return state


def search(data):
    low, high = 0, 1000
    target = int(data[0])
    while low < high:
        middle = (low + high) // 2
        if middle < target:
            low = middle + 1
        else:
            high = middle
    return low


def powers(data):
    p = 1
    for x in data:
        p = p * 3 + int(x)
    return p


def doubled(data):
    n = 1
    for _ in data:
        n += n
    return n


def shifted_out(data):
    n = 1
    for x in data:
        n = (n << 4 | int(x)) & 0x3FFFFFFFFFFFFFF
    return n


def negated(data):
    least = 0
    for x in data:
        least = min(least, -int(x))
    return least


BYTES = np.random.default_rng(0).integers(0, 256, 300, dtype=np.uint8)
LONGS = np.array([2**62, 2**62 - 1, 1, 0, -(2**63)], np.int64)
# the function, its arguments, and whether a check remains
CASES = [
    (crc16, BYTES, False),
    (crc16, BYTES[:0], False),
    (adler, BYTES, False),
    (total, BYTES, False),
    (total, BYTES.astype(np.int32), False),
    (total, LONGS[:2], True),
    (total, LONGS, True),
    (total, np.full(300, 2**62), True),
    (total_of_rows, BYTES.reshape(15, 20), False),
    (total_of_rows, np.full((15, 20), 2**60), True),
    (mixed, BYTES, False),
    (mixed, LONGS, False),
    (search, BYTES, False),
    (powers, BYTES[:30], True),
    (powers, BYTES, True),
    (doubled, BYTES[:62], True),
    (doubled, BYTES[:70], True),
    (shifted_out, BYTES, False),
    (negated, BYTES, False),
    (negated, LONGS, True),
]


@pytest.mark.parametrize("fn, data, stays", CASES)
def test_checks(fn, data, stays):
    want = fn(data)
    report = cinductor.explain(fn, data.copy())
    assert (type(report.result), report.result) == (type(want), want)
    assert ("check buf" in report.kernels) == stays
    call = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        got = call(data.copy())
        assert (type(got), got) == (type(want), want)
