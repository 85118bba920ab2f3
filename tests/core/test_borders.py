"""Tests writes to a box within an array. The new version copies only the border outside of the box from the old one."""

import numpy as np
import pytest

import cinductor
from cinductor import compile

WAYS = {"backend": "interp", "options": {"choices": "border_bytes=1"}}


def a_copy(x, box, v):
    y = x.copy()
    y[box] = v
    return y


def made(x, box, v):
    y = x * 2 + 1
    y[box] = v
    return y


def zeros(x, box, v):
    y = np.zeros_like(x)
    y[box] = v + x[box]
    return y


def of_itself(x, box, v):
    y = x.copy()
    y[box] = y[box][::-1] + v
    return y


def read_after(x, box, v):
    y = np.sqrt(x)
    z = y.copy()
    z[box] = v
    return y, z, y + z


def an_argument(x, box, v):
    x[box] = x[box] * 2 + v
    return x.sum()


def in_iterations(x, box, v):
    for k in range(20):
        y = x.copy()
        y[box] = x[box] * 0.5 + k + v
        x = y
    return x


def twice(x, box, v):
    y = x.copy()
    y[box] = v
    z = y.copy()
    z[box] = y[box] + 1
    return y, z


PROGRAMS = (a_copy, made, zeros, of_itself, read_after, an_argument, in_iterations, twice)
BOXES = (
    ((12,), np.s_[1:-1]),
    ((12,), np.s_[:-2]),
    ((30,), np.s_[9:]),  # wider than the limit for borders
    ((12,), np.s_[1:-1:2]),
    ((9, 7), np.s_[1:-1, 2:-3]),
    ((9, 7), np.s_[1:-1]),
    ((9, 7), np.s_[:, 1:]),
    ((9, 7), np.s_[3, 1:-1]),
    ((9, 7), np.s_[4:4, 1:-1]),
    ((3, 5, 4), np.s_[1:-1, 1:-1, 1:-1]),
    ((3, 5, 4), np.s_[..., 2:3]),
)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_what_is_around_a_box_stays(fn, dynamic):
    for shape, box in BOXES:
        x, v = np.arange(float(np.prod(shape))).reshape(shape), np.float64(0.25)
        own, other = x.copy(), x.copy()
        compiled = compile(lambda x, v, box=box: fn(x, box, v), dynamic=dynamic, **WAYS)
        np.testing.assert_equal(compiled(own, v), fn(other, box, v), err_msg=f"{shape} {box}")
        np.testing.assert_array_equal(own, other)


def test_a_thin_frame_is_all_that_is_copied():
    """The copy's kernels move two rows and two columns of bytes."""
    x = np.ones((64, 64))
    loops = str(
        cinductor.explain(compile(lambda x: a_copy(x, np.s_[1:-1, 1:-1], 3.0), **WAYS), x).loops
    )
    assert (
        loops.count("for i0<64 {") == 2
        and loops.count("for i0<62 {") == 2
        and "for i0<64, i1<64" not in loops
    )
