"""Tests Python ints beyond 63 bits: those of which only the low bits are used, which may wrap around, and those in
[0, 2**64).

Captured results must equal Python's to the last bit. Values that do not fit in 64 bits are left to Python.
"""

import copy
import linecache
import math
import warnings

import int_generator
import numpy as np
import pytest

import cinductor

pytestmark = pytest.mark.usefixtures("pieces_are_compiled")
M = (1 << 64) - 1
CALLS = 9
UNSIGNED = [
    0,
    1,
    2,
    31,
    255,
    2**31,
    2**32 - 1,
    2**53 + 1,
    2**62 + 3,
    2**63 - 1,
    2**63,
    2**63 + 1,
    M - 1,
    M,
]
SIGNED = [
    0,
    1,
    3,
    63,
    64,
    -1,
    -2,
    -64,
    2**31,
    -(2**32),
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
]
# u is in [0, 2**64), s in [-2**63, 2**63). If an operation needs the value of an int that exceeds 64 bits, Python
# computes it.
OPERATIONS = """
u + s; u - s; s - u; u * s; s * s; s + s; s - s * s; -u; -s; ~u; ~s; abs(u); abs(s); +u; u & s; u | s; u ^ s; s & s ^ s
u & -8; u | -8; u ^ -8; s & -8; (u ^ s) & -8; u & 0xF0; u | 0xF0; u ^ 0xF0; u & M; s & M; s | M; s ^ M; s ^ 2**63; ~s & M
u << 3; s << 3; s << 63; s << 64; u << 64; 1 << (s & 63); 1 << (s & 127); u << (s & 63); u >> 1; u >> 63; u >> 64; s >> 1; s >> 64
u >> (s & 127); s >> (u & 127); u >> s; u << (u & 1); s >> u; u % 7; s % 7; u // 7; s // 7; u % 8; s % 8; s * s % 8; u * 3 % 2**64
s % 2**64; u % 2**63; u % (2**64 - 59); u // 2**63; u // s; s // u; u % s; s % u; s // -1; s % -1; u // -1; u % -7; divmod(u, 10)
divmod(s, s | 1); u ** 2; s ** 2; 3 ** (s & 63); s ** (u & 3); u < s; u <= s; u > s; u >= s; u == s; u != s; s < u; s >= u; s == u
u < 2**63; u >= 2**63; u == -1; u > -1; s < 2**63; s <= M; u == M; u < 0.5; u == 2.0; s < u < M; u / 2**64; u / 2**11; s / 2**63
s / 3; u / 3; u / 2**1000; 3 / (u | 1); u * 2.0**-64; u + 0.5; float(u); float(s); bool(u); not u; int(u); round(u); math.floor(u)
max(u, s); min(u, s); max(u, 5); min(s, 2**63); u if s > 0 else s; s if s & 1 else M; 7 if s else u; u or s; u and s; min(u, 3.5)
u.bit_length(); u.bit_count(); u in (1, M, 5); (u << 13 | u >> 51) & M; (u ^ s >> 3) * 5 & M; (s * s + u) // 3; (s + s) >> 1
np.uint64(u); np.uint64(s); np.int64(u); np.int64(s * 2); np.uint8(u); np.array(u); np.array([u, s]); np.full(2, u); np.array([u], np.uint64)
np.add(u, 1); wide + u; wide - s; wide == u; whole + u; whole == u; whole * s; wide * 0.5 + u; np.float64(u); np.sin(0) + s; np.where(wide > 3, u, 0)
int(np.int64(s * 2)) & 255; int(np.int64(s)) * 3 & 255; [u, s * 2]; {"u": u}; (u, s * 2 & M); f"{u}"; str(s * 2); hash(u); wide[u & 1]
wide[u % 2]; whole[s * 3 & 1]; whole[u] if u < 2 else 0; whole[s] if -2 <= s < 2 else 0; list(range(u & 3)); np.zeros(u & 3); np.arange(s & 3)
isinstance(u, int); type(u) is int; u.real; complex(u, 1); u.__index__(); np.isscalar(u); pow(u, 2, 7); sum([u, s]); sum([s, s]) & M
"""


def outcome(fn, *args):
    """The result, or the type and text of the exception; and the arguments after the call."""
    args = copy.deepcopy(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = fn(*args)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return described(result), described(args)


def described(value):
    """A value with types; arrays as bytes."""
    if isinstance(value, tuple | list):
        return [described(v) for v in value]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    return type(value).__name__, repr(value)


def load(source, seed, **names):
    """The function of a source whose lines are shown in tracebacks."""
    path = f"<ints {seed}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    exec(compile(source, path, "exec"), names)
    return names["program"]


def check_program(seed, backend, **settings):
    """Run one random program with several arguments. Return how many calls compiled programs ran."""
    generator = int_generator.Generator(seed)
    source = generator.generate()
    fn = load(source, seed)
    compiled = cinductor.compile(fn, backend=backend, **settings)
    for number in range(CALLS):
        args = generator.arguments(number)
        assert outcome(compiled, *args) == outcome(fn, *args), f"{source}\n{args}"
    return CALLS - compiled.failed_checks - compiled.plain_calls if compiled.specializations else 0


def load_operation(text, sink):
    """A function of one unsigned and one signed 64-bit int, which it makes from arrays."""
    lines = "    u, s = int(wide[0]), int(whole[0])\n"
    source = f"def program(wide, whole):\n{lines}    return {sink.format(text)}\n"
    return load(source, f"{text} {sink}", np=np, math=math, M=M)


ONE = [text.strip() for line in OPERATIONS.strip().splitlines() for text in line.split(";")]


@pytest.mark.parametrize("text", ONE)
def test_operations(text):
    """The result of each operation; if it is an int, also expressions that only use its low bits."""
    sinks = ["{}", "({}) & 255", "({}) & M", "({}) * 3 & M", "({}) * 5 + u & 0xFFFFFFFF"]
    is_int = type(load_operation(text, "{}")(np.array([1, 4], np.uint64), np.array([1, 4]))) is int
    for sink in sinks if is_int else sinks[:1]:
        fn = load_operation(text, sink)
        compiled = cinductor.compile(fn, backend="interp")
        for u in UNSIGNED:
            for s in SIGNED:
                args = np.array([u, 4], np.uint64), np.array([s, 4])
                assert outcome(compiled, *args) == outcome(fn, *args), (sink, u, s)


# --- loops ----------------------------------------------------------------------------------------


def masked_after(data, n):
    h = 5381
    for c in data:
        h = h * 33 + int(c)
    return h & 0xFFFFFFFF


def never_masked(data, n):
    h = 5381
    for c in data:
        h = h * 33 + int(c)
    return h


def looked_at_after(data, n):
    h = 5381
    for c in data:
        h = h * 33 + int(c)
    return (h >> 3) & 0xFF


def compared_in_each_iteration(data, n):
    h, above = 5381, 0
    for c in data:
        h = h * 33 + int(c)
        if h > 1 << 62:
            above += 1
    return above, h & 0xFF


def in_arms(data, n):
    crc = 0
    for byte in data:
        crc ^= int(byte)
        for _ in range(8):
            crc = (crc << 1) ^ 0x07 if crc & 0x80 else crc << 1
    return np.uint8(crc & 0xFF)


def in_statements(data, n):
    h, g = 1, 2
    for byte in data:
        if byte & 1:
            h = h * 0x100000001B3 ^ int(byte)
        elif byte & 2:
            g += h << 5
        else:
            h, g = g * 3, h
    return h & M, g & 0xFFFF


def handed_on(data, n):
    """Of three carried ints only one is read, two iterations after the others."""
    a, b, c = 1, 2, 3
    for byte in data:
        a, b, c = b * 31 + int(byte), c * 17, a
    return a & 0xFF, c // 5


def in_a_while(data, n):
    h, k = 7, 0
    while k < n and h & 0xFF != 200:
        h = h * 6364136223846793005 + 1442695040888963407
        k += 1
    return h & M, k


def until_it_is_large(data, n):
    h = 7
    while h < 10**18:
        h = h * 1103515245 + 12345 + int(data[0])
    return h & 0xFFFF


def two_types(data, n):
    """The initial value is small, or negative; iterations produce values that int64 cannot hold."""
    h, g = -1, int(data[0])
    for byte in data:
        h = ((h ^ int(byte)) * 0x100000001B3) & M
        g = h if byte & 1 else 5
    return h, g, h >> 7, g & 1


def entered_negative(data, n):
    h = int(data[0]) - 300
    g = h
    for byte in data:
        g = h >> 1
        h = (h * 3 + int(byte)) & M
    return h, g


def left_early(data, n):
    h = 0xCBF29CE484222325
    for k, byte in enumerate(data):
        h = ((h ^ int(byte)) * 0x100000001B3) & M
        if h >> 63 and k > n:
            break
    return h, k


def in_an_array(data, n):
    table, h = np.zeros(7), 1
    for k in range(n):
        h = h * 69069 + 1
        table[k % 7] = h & 0xFFFF
    return table


LOOPS = {
    masked_after: True,
    never_masked: False,
    looked_at_after: False,
    compared_in_each_iteration: False,
    in_arms: True,
    in_statements: True,
    handed_on: False,
    in_a_while: True,
    until_it_is_large: True,
    two_types: True,
    entered_negative: None,
    left_early: True,
    in_an_array: True,
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", LOOPS, ids=lambda f: f.__name__)
def test_loops(fn, backend):
    """Captured whole. The compiled program runs every call that only needs 64 bits."""
    compiled = cinductor.compile(fn, backend=backend, dynamic=True, fullgraph=True)
    rng = np.random.default_rng(0)
    for n in (5, 40, 1, 2, 200):
        args = rng.integers(0, 256, n, np.uint8), n
        assert outcome(compiled, *args) == outcome(fn, *args), n
    if LOOPS[fn] is not None:
        assert (compiled.failed_checks == 0) == LOOPS[fn]
    assert outcome(compiled, args[0][:0], 0) == outcome(fn, args[0][:0], 0)


# --- arguments ------------------------------------------------------------------------------------


def next_words(state, n):
    out = np.zeros(n, np.uint64)
    for k in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) & M
        out[k] = state ^ (state >> 33)
    return out, state


def test_a_state_that_calls_hand_on():
    """A 64-bit int that has changed between calls is a run-time value, like a float."""
    compiled = cinductor.compile(next_words, backend="interp", fullgraph=True)
    state = 0x853C49E6748FEA9B
    for _ in range(12):
        got, want = compiled(state, 9), next_words(state, 9)
        assert described(got) == described(want)
        state = got[1]
    assert len(compiled.specializations) <= 2 and compiled.failed_checks == 0


@pytest.mark.parametrize("dynamic", [None, True])
def test_no_comparison_is_decided_by_the_number_of_one_call(dynamic):
    b = np.array([2, 255, 1], np.uint8)
    compiled = cinductor.compile(lambda b, n: (b < n, n != b), backend="interp", dynamic=dynamic)
    for n in (2**62 - 1, 2**62 - 1, 4, 2**62 - 1, 300, -1, 2**64, 5):
        for got, want in zip(compiled(b, n), (b < n, n != b), strict=True):
            assert np.array_equal(got, want), n


@pytest.mark.parametrize("state", [0, 5, -1, -(2**63), 2**63, M, M + 1, 2**70, True, 2.5])
def test_states_of_any_size(state):
    compiled = cinductor.compile(next_words, backend="interp", dynamic=True)
    for first in (2**50, 2**63 + 1, state, 2**60, state):
        assert outcome(compiled, first, 3) == outcome(next_words, first, 3)


def shifted(x, n):
    return x + (n >> 1), x * (n & M)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8"])
def test_what_an_int_of_a_call_is_made_of(dtype):
    """The int fits the dtype in one call, but not in another."""
    compiled = cinductor.compile(shifted, backend="interp", dynamic=True)
    for n in (10, 1000, 40000, -5, 2**62, 2**63 + 1, 7):
        args = np.arange(5).astype(dtype), n
        assert outcome(compiled, *args) == outcome(shifted, *args), n


# --- bytes ----------------------------------------------------------------------------------------


def hashed(data, out):
    h = 0xCBF29CE484222325
    for c in data:
        h = ((h ^ c) * 0x100000001B3) & M
    return h


def counted(data, out):
    for k, c in enumerate(data):
        out[c & 3] += k
    return out, len(data)


def found(data, out):
    k = 0
    while k < len(data) and data[k] != 111:
        out[data[k] & 3] += data[-1 - k]
        k += 1
    return k, out


def first(data, out):
    return data[0] * 3, data[len(data) - 1] << 60 & M, out


def handed_back(data, out):
    for c in data:
        out[c & 3] += 1
    return data, out


def of_wrong_index(data, out):
    out += len(data)
    return data[1.0], out


BYTES = [
    b"hello world",
    b"ABCDEFGHIJ",
    b"xy",
    b"",
    b"o",
    bytes(range(256)),
    bytearray(b"abc"),
    "text",
    [1, 2, 300],
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [hashed, counted, found, first, handed_back, of_wrong_index])
def test_bytes(fn, dynamic):
    """A bytes object that differs between calls is an array if only its items are read."""
    compiled = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for data in (*BYTES, *BYTES):
        args = data, np.zeros(4)
        assert outcome(compiled, *args) == outcome(fn, *args), data


def test_one_program_for_any_bytes():
    compiled = cinductor.compile(hashed, backend="interp", fullgraph=True)
    for n in (9, 4, 30, 8, 100, 17, 5, 12, 3, 60, 2):
        data = bytes(range(n))
        assert compiled(data, None) == hashed(data, None)
    assert len(compiled.specializations) <= 2 and compiled.failed_checks == 0


@pytest.mark.parametrize("dynamic, made", [(None, 1), (False, 3)])
def test_a_long_bytes_object_is_an_array_at_once(dynamic, made):
    compiled = cinductor.compile(hashed, backend="interp", fullgraph=True, dynamic=dynamic)
    for step in (1, 3, 7):
        data = bytes(k * step % 256 for k in range(100))
        assert compiled(data, None) == hashed(data, None)
    assert len(compiled.specializations) == made


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(0, 100, 10)], ids=str)
def test_random_programs(seeds):
    answered = [check_program(seed, "interp") for seed in seeds]
    assert sum(answered) > 0
