"""Tests the join of two values: its table, and that values it refuses to join keep their classes."""

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.capture.control import lattice
from cinductor.capture.control.lattice import Buffered, Head, Joined, Reason, Same, join

F8, F4, I8, I1, U8, C16, BOOL = map(np.dtype, ("f8", "f4", "i8", "i1", "u8", "c16", "?"))
BIG = 1 << 63
OTHER, UNLIKE, LARGE = Reason(lattice.OTHER), Reason(lattice.OTHER, True), Reason(lattice.LARGE)

# a, b, their join at a loop's head (a before, b after an iteration), their join after two branches
TABLE = [
    (1, 2, Joined("python", I8), Joined("python", I8)),
    (1.0, 2.0, Joined("python", F8), Joined("python", F8)),
    (1, 2.0, UNLIKE, Joined("python", F8, I8)),  # nothing is promoted, because the class can be observed
    (True, 1, OTHER, OTHER),
    (1, BIG, Joined("python", U8), Joined("python", U8)),
    (-1, BIG, OTHER, OTHER),
    (1, 1 << 64, OTHER, OTHER),
    (1 << 64, 1 << 65, LARGE, LARGE),
    (np.float64(1), np.float64(2), Joined("scalar", F8), Joined("scalar", F8)),
    (np.float32(1), np.float64(1), OTHER, OTHER),
    (1.0, np.float64(2), Joined("scalar", F8), Joined("scalar", F8, F8)),
    (np.float64(2), 1.0, UNLIKE, Joined("scalar", F8, F8)),
    (1.5, np.float32(2), Joined("scalar", F4), Joined("scalar", F4, F8)),
    (0.1, np.float32(2), OTHER, OTHER),  # not exact
    (1, np.int64(2), Joined("scalar", I8), Joined("scalar", I8, I8)),
    (1j, np.complex128(2), Joined("scalar", C16), Joined("scalar", C16, C16)),
    (True, np.True_, Joined("scalar", BOOL), Joined("scalar", BOOL, BOOL)),
    (1, np.float64(2), Joined("scalar", F8), Joined("scalar", F8, I8)),  # after an iteration `0` cannot be observed
    (1, np.int8(2), Joined("scalar", I1), Joined("scalar", I1, I8)),
    (200, np.int8(2), OTHER, OTHER),  # not exact
    (0.5, np.int64(2), OTHER, OTHER),
    ((1 << 53) + 1, np.float64(2), OTHER, OTHER),
    (1.0, "a", OTHER, OTHER),
    (None, 1.0, OTHER, OTHER),
]


@pytest.mark.parametrize("a, b, at_head, of_arms", TABLE)
def test_what_two_numbers_become(a, b, at_head, of_arms):
    tracer = _core.Tracer("f", options={}, backend="interp")
    assert join(tracer, a, b, Head(a)) == at_head
    assert join(tracer, a, b, Head(a, tags=True)) == (of_arms if at_head == UNLIKE else at_head)
    assert join(tracer, a, b) == of_arms
    assert join(tracer, b, a) == of_arms  # the order of branches does not matter
    assert join(tracer, a, a) == Same(a)


def test_what_is_not_known_is_checked_or_refused():
    """A traced int may only be in [0, 2**64) where the program can check this."""
    tracer = _core.Tracer("f", options={}, backend="interp")
    number = tracer.lift(5)
    assert join(tracer, number, BIG) == Joined("python", U8)
    tracer.effects = 1
    assert join(tracer, number, BIG) == OTHER


def test_what_two_arrays_become():
    """An array of their common dtype, or a buffer for both. A number never joins an array."""
    tracer = _core.Tracer("f", options={}, backend="interp")
    a, b, c = (tracer.array(v) for v in (np.zeros(3), np.zeros(5), np.zeros(3, "f4")))
    assert join(tracer, a, tracer.array(np.ones(3))) == Joined("array", F8)
    for head in (None, Head(a)):
        assert join(tracer, a, b, head) == Buffered([0])
        assert join(tracer, a, c, head) == OTHER
        assert join(tracer, a, 1.0, head) == OTHER
    for head in (None, Head(np.float64(1))):
        assert join(tracer, np.float64(1), a, head) == OTHER


def test_what_a_loop_head_has_learned_only_becomes_wider():
    """The type of a leaf in earlier runs is one of those that are joined."""
    tracer = _core.Tracer("f", options={}, backend="interp")
    weak, strong, large = (Joined("python", F8), Joined("scalar", F8), Joined("python", U8))
    tagged = strong._replace(weak=F8)
    assert join(tracer, 1.0, np.float64(2), Head(1.0, weak)) == strong
    assert join(tracer, 1.0, 2.0, Head(1.0, strong)) == UNLIKE
    assert join(tracer, 1.0, 2.0, Head(1.0, tagged)) == tagged
    assert join(tracer, 1, 2, Head(1, large)) == large
    assert join(tracer, 1, -2, Head(1, large)) == OTHER


def choice(x, c, d):
    v = 1.0 if c[0] > 0 else x[0]
    return v if d[0] > 0 else np.float32(1.0)


def loop(x, c, d):
    for _ in range(3):
        v = 1.0 if c[0] > 0 else x[0]
        w = np.float32(1.0) if d[0] > 0 else v
    return w


def largest(x, c, d):
    v = 1.0 if c[0] > 0 else x[0]
    return max(v, np.float32(d[0] * 0 + 1))


@pytest.mark.parametrize("program", [choice, loop, largest])
def test_a_tagged_number_meets_no_scalar_of_another_dtype(program):
    """np.float32(1) equals a float64 exactly, but has another class."""
    compiled = cinductor.compile(program, backend="interp")
    for c in (1.0, -1.0):
        for d in (1.0, -1.0):
            args = np.array([2.5]), np.array([c]), np.array([d])
            got, want = compiled(*args), program(*args)
            assert type(got) is type(want) and got == want


def of_an_arm(x, c):
    return 0.1 if c[0] > 0 else x[0]


def added(x, c):
    v = 0.1 if c[0] > 0 else x[0]
    return v + np.ones(2)


def of_no_iteration(x, c):
    v = 0.1
    for i in range(len(c)):
        if c[i] > 0:
            v = x[0]
    return v


def scaled(x, c):
    v = 0.1
    for i in range(len(c)):
        v = v * x[i] * c[i]
    return v


@pytest.mark.parametrize("program", [of_an_arm, added, of_no_iteration, scaled])
def test_a_float_that_float32_rounds_is_none(program):
    """0.1 stays a Python float if the other number is float32."""
    compiled = cinductor.compile(program, backend="interp")
    for sign in (1.0, -1.0):
        args = np.full(12, 2.5, np.float32), np.full(12, sign)
        got, want = compiled(*args), program(*args)
        assert type(got) is type(want) and np.array_equal(got, want)


def returned_floats(x, c):
    if c[0] > 0:
        return 0.1
    return x[0]


def returned_ints(x, c):
    if c[0] > 0:
        return 1
    return x[0]


@pytest.mark.parametrize("program, dtype", [(returned_floats, "f4"), (returned_ints, "i1")])
def test_numbers_that_cannot_meet_are_returned_each_for_itself(program, dtype):
    """A result may be one of two values: the program says which."""
    compiled = cinductor.compile(program, backend="interp", fullgraph=True)
    for sign in (1.0, -1.0):
        args = np.full(2, 2, dtype), np.full(2, sign)
        got, want = compiled(*args), program(*args)
        assert type(got) is type(want) and got == want
