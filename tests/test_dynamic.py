"""Symbolic sizes: programs that serve many sizes, the guards in front of them, and when a size becomes a symbol."""

import itertools

import numpy as np
import pytest

from cinductor import _core

BACKENDS = ["interp", *(name for _, name, _, why in _core.backends() if name == "c" and why is None)]
SIZES = (0, 1, 2, 7, 64, 1000)


# --- programs -------------------------------------------------------------------------------------

ROWS = """
symbols {s0 in [0, inf) from in0.sizes 0 hint 8, s1 in [1, inf) from in0.sizes 1 hint 5}
graph f(in0: f64[s0,s1], in1: f64[s1]) {
  %0: f64[s0,s1] = multiply(in0, in1)
  %1: f64[s0] = max(%0, axes=[1])
  %2: f64[2*s1] = concat(in1, in1, axis=0)
  %3: f64[s1,s0] order [1,0] = permute(in0, axes=[1, 0])
  %4: f64[s0,s1] = slice(in0, starts=[s0 - 1, 0], steps=[-1, 1])
  %5: f64[s0,s1] = add(%0, %0)
  %6: f64[s1,s0] order [1,0] = permute(%5, axes=[1, 0])
  return %1, %2, %3, %4, %5, %6
}
"""


def rows(x, w):
    """ROWS in NumPy."""
    y = x * w
    return [y.max(axis=1), np.concatenate([w, w]), x.T, x[::-1], y + y, (y + y).T]


def same(got, want):
    """Equal in everything that a user sees."""
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert type(g) is type(w) and g.dtype == w.dtype and g.shape == w.shape, (g, w)
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_a_program_takes_its_sizes_from_the_call(backend, wrapper):
    for n, m in itertools.product((0, 1, 2, 7, 64), (1, 2, 5, 33)):
        x, w = np.arange(n * m, dtype=float).reshape(n, m), np.arange(m, dtype=float)
        got, program = _core.compile_text(ROWS, [x, w], options={"wrapper": wrapper}, backend=backend)
        same(got, rows(x, w))
    assert "s0 = in0.shape[0]" in program.text("wrapper")


ARGUMENT = """
symbols {argument s0 in [0, inf) from in1 hint 3, s1 in [0, inf) from in0.sizes 0 hint 9}
graph f(in0: f64[s1], in1: python i64[]) {
  %0: i64[s0] = iota(axis=0)
  %1: f64[s0] = cast(%0)
  %2: f64[s0] = slice(in0, starts=[s1 - s0], steps=[1])
  %3: f64[s0] = add(%1, %2)
  return %3, %2
}
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_a_symbol_is_an_integer_argument(backend, wrapper):
    x = np.arange(9.0)
    for n in (0, 1, 3, 9):
        got, _ = _core.compile_text(ARGUMENT, [x, n], options={"wrapper": wrapper}, backend=backend)
        same(got, [np.arange(n) + x[9 - n :], x[9 - n :]])


def test_sizes_that_the_graph_denies():
    x = np.zeros((3, 4))
    with pytest.raises(ValueError, match="input 1 is not the array"):
        _core.compile_text(ROWS, [x, np.zeros(5)], options={}, backend="interp")
    with pytest.raises(ValueError, match="input 0 is not the array"):
        _core.compile_text(ROWS, [np.zeros((3, 0)), np.zeros(0)], options={}, backend="interp")
    with pytest.raises(ValueError, match="input 0 is not the array"):
        _core.compile_text(ROWS, [x[:, ::2], np.zeros(2)], options={}, backend="interp")
