"""Numbers stored into arrays of integers: NumPy raises for what the dtype cannot hold, where it assigns elements one by one
(an index of ints and slices, fill, a list), and casts where it assigns an array (masks, lists of places) NumPy's own numbers.
"""

import numpy as np
import pytest

import cinductor
from cinductor.testing import check

pytestmark = pytest.mark.usefixtures("pieces_are_compiled")


def store_element(a, v):
    a[1] = v


def store_slice(a, v):
    a[1:] = v


def store_no_element(a, v):
    a[3:] = v


def store_whole(a, v):
    a[...] = v


def store_by_fill(a, v):
    a.fill(v)


def store_by_mask(a, v):
    a[a == 0] = v


def store_by_places(a, v):
    a[[0, 1]] = v


def store_list(a, v):
    a[:2] = [v, 1]


def store_array(a, v):
    a[:2] = np.array([v, v], a.dtype)


def store_full(a, v):
    a[:] = np.full(len(a), v, a.dtype)


def store_in_loop(a, v):
    for k in range(len(a)):
        a[k] = k
        a[len(a) - 1 - k] = v


def store_behind_a_break(a, v):
    print("", end="")
    a[1] = v


def augment(a, v):
    a[1] += v


WAYS = [
    store_element, store_slice, store_no_element, store_whole, store_by_fill, store_by_mask, store_by_places, store_list, store_array, store_full,
    store_in_loop, store_behind_a_break, augment,
]  # fmt: skip
FLOATS = [np.nan, np.inf, 1e300, 300.5, -1.5, -0.5, 127.9, 128.0, 255.5, 2.0**63, -(2.0**63)]
INTS = [300, -1, -129, 127, 2**31, 2**63 - 1]
OF_INTS = {"int": lambda x: int(x[0]), "NumPy's int": lambda x: x[0]}
OF_FLOATS = {
    "float": lambda x: float(x[0]),
    "NumPy's float": lambda x: x[0],
    "narrow float": lambda x: np.float32(x[0]),
}


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("store", WAYS, ids=lambda f: f.__name__)
def test_what_does_not_fit_raises(store, dtype):
    for numbers, kinds in ((FLOATS, OF_FLOATS), (INTS, OF_INTS)):
        for make in kinds.values():

            def program(a, x, make=make):
                store(a, make(x))
                return a.sum()

            compiled = cinductor.compile(program, backend="interp")
            for number in numbers:
                check(program, np.zeros(3, dtype), np.array([number]), calls=1, compiled=compiled)


@pytest.mark.parametrize(
    "value", [np.nan, np.float64("inf"), 1e300, 2.0**62, -128, 128, np.int64(200)]
)
def test_arguments_that_do_not_fit(value):
    for dtype in ("int64", "int8"):
        check(store_in_loop, np.zeros(5, dtype), value, backend="interp")
        check(store_list, np.zeros(5, dtype), value, backend="interp")
