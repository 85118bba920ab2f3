"""Draws of Generators in programs of a GPU, compared with NumPy's: the numbers, and the state afterwards. draws.py [few].

Prints a line for each case: "ok" or "fail", and the case.
"""

import sys

import numpy as np

import cinductor

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 31, 1000) if "few" not in sys.argv else (1, 5, 8, 30)


def doubles(x, g):
    return x + g.random(x.shape)


def singles(x, g):
    return g.random(x.shape, dtype=np.float32), g.random(3, np.float32)


def within(x, g):
    return g.uniform(-1.0, 3, x.shape), g.uniform(size=2), x * 2


def of_all_kinds(x, g):
    first = g.random(x.size)
    other = g.standard_normal(3), g.integers(0, 10, 5), g.random(), g.random(0)
    return first, *other, g.random((2, 3)), g.exponential(1.5, 2)


def in_turns(x, g):
    for _ in range(3):
        x = x + g.random(x.shape)
    return x


def of_single_numbers(x, g):
    total = 0.0
    for _ in range(9):
        total += g.random() * g.uniform(1.0, 2.0)
    return x * total


def host(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def same(got, want):
    got, want = ((v if isinstance(v, tuple) else (v,)) for v in (got, want))
    return len(got) == len(want) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(map(host, got), map(np.asarray, want))
    )


def words(state):
    return [state["state"]["counter"].tolist(), state["buffer"].tolist(), *(state[k] for k in ("buffer_pos", "has_uint32", "uinteger"))]


def prepared(kind, turn):
    """A generator that has drawn as many words and halves before; later ones have a counter about to carry, or an own block."""
    bits = kind(7)
    made = np.random.Generator(bits)
    made.random(turn % 6)
    made.random(turn % 3, dtype=np.float32)
    if kind is np.random.Philox and turn % 4 == 3:
        state = bits.state
        state["state"]["counter"][:3] = 2**64 - 1
        bits.state = {**state, "buffer": np.arange(1, 5, dtype=np.uint64) << np.uint64(40)}
    return made


def check(function, kind, size, turn, compiled):
    ours, theirs = prepared(kind, turn), prepared(kind, turn)
    x = np.arange(float(size)).reshape(1, -1)
    is_right = same(compiled(cinductor.to_device(x), ours), function(x, theirs))
    a, b = ours.bit_generator.state, theirs.bit_generator.state
    return is_right and (words(a) == words(b) if kind is np.random.Philox else a == b)


def is_on_device(function):
    """True if the device makes the numbers: only the state is the host's."""
    x, g = cinductor.to_device(np.ones((3, 4))), np.random.Generator(np.random.Philox(1))
    wrapper = cinductor.explain(cinductor.compile(function), x, g).wrapper
    return "draw_philox" in wrapper and "draw_random" not in wrapper and "draw_uniform" not in wrapper and "check(" not in wrapper


for function in (doubles, singles, within, of_all_kinds, in_turns, of_single_numbers):
    for kind in (np.random.Philox, np.random.PCG64):
        compiled = cinductor.compile(function)
        failed = [size for turn, size in enumerate(SIZES) if not check(function, kind, size, turn, compiled)]
        print("fail" if failed else "ok", function.__name__, kind.__name__, *failed)
for function in (doubles, singles, within, in_turns):
    print("ok" if is_on_device(function) else "fail", function.__name__, "is of the device")
