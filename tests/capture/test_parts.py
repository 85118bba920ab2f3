"""Tests arguments that are subarrays of larger arrays: their strides are symbolic in the sizes and in the gaps
between rows.
"""

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.testing import assert_same

BACKENDS = [
    "interp",
    *(name for _, name, _, why in _core.backends() if name == "c" and why is None),
]
WIDTHS = (10, 11, 12, 13, 14, 20, 30, 7, 3, 4)


@pytest.fixture(autouse=True)
def forget():
    """Forget the sizes that other tests have recorded."""
    cinductor.cache.clear()


def whole(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)


def answers(fn, parts, **settings):
    """Call with each subarray and compare with NumPy. Return the number of captures."""
    compiled = cinductor.compile(fn, backend="interp", **settings)
    for part in parts:
        assert_same(compiled(part), fn(part))
    return compiled._cinductor_job.captures


def folded(x):
    return x.sum(axis=1) + x[:, 0], x * 2 + 1


# The position of a cut does not change the program: one capture for constants, one for symbols.
PARTS = {
    "inside": lambda w: whole(17, w)[:, 1:-1],
    "all round": lambda w: whole(w, w + 2)[1:-1, 1:-1],
    "first columns": lambda w: whole(17, w)[:, :3],
    "some columns of as many": lambda w: whole(17, 40)[:, :w],
    "every other": lambda w: whole(17, w)[:, ::2],
    "backwards": lambda w: whole(17, w)[::-1, 1:-1],
    "both backwards": lambda w: whole(17, w)[::-1, -1:1:-1],
    "turned": lambda w: whole(w, 6)[:, 1:-1].T,
    "a field": lambda w: np.stack([whole(6, w)] * 3, axis=-1)[..., 1],
}


@pytest.mark.parametrize("name", PARTS)
def test_two_compiles_for_parts_of_any_arrays(name):
    more = name == "every other"  # rows of an even number of elements have dense steps, which is another layout
    assert answers(folded, [PARTS[name](w) for w in WIDTHS if w > 2]) == 2
    assert answers(folded, [PARTS[name](w) for w in WIDTHS if w > 2], dynamic=True) == 1 + more


def test_three_axes():
    inside = [whole(w, w + 2, w + 1)[1:-1, 1:-1, 1:-1] for w in WIDTHS]
    assert answers(lambda x: x * 2 + x.sum(axis=1, keepdims=True), inside) == 2
    turned = [x.transpose(2, 0, 1) for x in inside if x.shape[0] > 1]
    assert (
        answers(lambda x: (x * 2, x.reshape(x.shape[0], -1).sum(axis=0)), turned, dynamic=True) == 1
    )


def test_a_column_and_steps():
    assert answers(lambda x: x * 3, [whole(17, w)[:, 1] for w in WIDTHS]) == 2
    assert answers(lambda x: x * 3, [whole(100)[::w] for w in WIDTHS]) <= 3


def test_a_whole_array_is_a_part_without_gaps():
    parts = [
        whole(17, 12)[:, 1:],
        whole(17, 9)[:, 2:],
        whole(17, 7),
        whole(17, 20)[:, :4],
        whole(1, 7)[:, :4],
        whole(4, 7)[:, :1],
    ]
    assert answers(folded, parts, dynamic=True) == 1


def test_steps_that_overlap_are_numbers():
    windows = [
        np.lib.stride_tricks.sliding_window_view(whole(n), 3 + n // 10) for n in (9, 10, 20, 40)
    ]
    assert answers(lambda x: x[1:] - x[:-1], windows, dynamic=True) == 1
    broadcast = [np.broadcast_to(whole(n), (4, n)) for n in (9, 10, 20, 40)]
    assert answers(lambda x: x[1:] - x[:-1], broadcast, dynamic=True) == 1
    both = [whole(5, 9)[:, 1:-1], windows[0][:5, :2], broadcast[0]]
    assert answers(folded, both, dynamic=True) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_are_written_to(backend):
    def step(x, y):
        x += 1
        x[0] = y[-1]
        y[:, 1:] -= x[:, :-1]
        return x.copy()

    compiled = cinductor.compile(step, backend=backend)
    for w in WIDTHS:
        mine, theirs = whole(6, w + 4), whole(6, w + 4)
        other, others = whole(6, w + 9), whole(6, w + 9)
        got = compiled(mine[:, 2:-2], other[:, 1 : w + 1])
        assert_same(got, step(theirs[:, 2:-2], others[:, 1 : w + 1]))
        assert_same(mine, theirs)
        assert_same(other, others)
    assert compiled._cinductor_job.captures == 2


def test_guards_tell_of_gaps():
    compiled = cinductor.compile(folded, backend="interp")
    for w in (10, 11):
        compiled(whole(17, w)[:, 1:-1])
    (text,) = [t for t in compiled.specializations[0].guards if "strides" in t]
    assert "strides (8*x.shape[1] + 16, 8)" in text
    compiled(whole(17, 20)[:, :3])
    (text,) = [t for t in compiled.specializations[0].guards if "strides" in t]
    assert "strides (8*x.shape[1] + 8*x.padding[0], 8)" in text


def test_strides_of_no_whole_elements_are_another_program():
    compiled = cinductor.compile(folded, backend="interp", dynamic=True)
    for step in (32, 40, 44, 36):
        x = np.ndarray((6, 3), "f8", bytearray(6 * 48), strides=(step, 8))
        x[:] = whole(6, 3)
        assert_same(compiled(x), folded(x))


@pytest.mark.parametrize("dynamic", [None, True])
def test_what_is_reshaped_is_a_view_where_numpy_makes_one(dynamic):
    def flat(x):
        row = x.reshape(-1)
        row[0] = 3
        return row

    makers = [
        lambda n: whole(n, 4)[::-1, ::-1], lambda n: whole(n, 8)[:, ::2], lambda n: whole(n, 7)[:, ::2], lambda n: whole(n, 6)[:, 1:-1],
        lambda n: whole(n, 8)[::-1, ::-2], lambda n: whole(n, 4)[::-1], lambda n: whole(n, 3, 8)[..., ::2], lambda n: whole(4, 1, n)[::-1, :, ::-1],
    ]  # fmt: skip
    for make in makers:
        cinductor.cache.clear()
        compiled = cinductor.compile(flat, backend="interp", dynamic=dynamic)
        for n in (7, 9, 4, 5, 9):
            ours, theirs = make(n), make(n)
            assert_same(compiled(ours), flat(theirs))
            assert_same(ours, theirs)


EXPONENTS = (3, 4, 5, 7, 2, 9, 2, 8, 11, 6, 13, 10)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_exponents_are_one_program_but_for_numpys_own(dtype):
    def power(x, p):
        return x**p

    x = np.array([1.5, 2, -3, 0, 7]).astype(dtype)
    compiled = cinductor.compile(power, backend="interp")
    for p in EXPONENTS:
        np.testing.assert_array_equal(compiled(x, p), x**p)
        assert compiled(x, p).dtype == dtype
    assert compiled._cinductor_job.captures == 3  # for 3, for a symbol, and for 2
    for p in (1, -1, -2, -7, 0, 12, -1, 1, -3):
        with np.errstate(all="ignore"):
            want = x**p
            np.testing.assert_array_equal(compiled(x, p), want)
    # -1, a symbol below zero, and 1; complex numbers depend on NumPy's version
    assert compiled._cinductor_job.captures in ((5, 6) if dtype == "c16" else (6,))
