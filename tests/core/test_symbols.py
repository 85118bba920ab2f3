"""Tests sizes that depend on data, and checks, from Python: both wrappers, every CPU backend."""

import numpy as np
import pytest

from cinductor import _core

BACKENDS = [
    "interp",
    *(name for _, name, _, why in _core.backends() if name == "c" and why is None),
]

TEXT = """
graph f(in0: f64[6], in1: i64[], in2: f64[2]) {
  %0: python i64[] = define(in1) u0 in [0, 7)
  %1: f64[u0] = slice(in0, starts=[6 - u0], steps=[1])
  %2: f64[u0] = multiply(%1, %1)
  %3: scalar f64[] = sum(%2, axes=[0])
  %4: f64[2] = expand(%3)
  %5: f64[2] = assign(in2, in2, %4)
  %6: f64[] = const 50.0
  %7: scalar bool[] = less(%3, %6)
  check(%7) "the sum isn't small"
  %8: python i64[] = expr(2*u0 + 1)
  write in2 = %5
  return %1, %2, %8
}
"""


WHILE = """
graph f(in0: f64[8], in1: i64[]) {
  %0: f64[] = const 0.0
  %1: f64[], %2: i64[] = while carry (%3: f64[] = %0, %4: i64[] = in1) {
    %5: python i64[] = define(%4) u0 in [0, 9)
    %6: f64[u0] = slice(in0, starts=[0], steps=[1])
    %7: f64[u0] = cumsum(%6, axis=0)
    %8: scalar f64[] = sum(%7, axes=[0])
    %9: f64[] = const 4.0
    %10: scalar bool[] = greater(%8, %9)
    test %10
  } do {
    %11: scalar f64[] = sum(%7, axes=[0])
    %12: f64[] = add(%3, %11)
    %13: i64[] = expr(u0//2)
    next %12, %13
  }
  return %1, %2
}
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_a_size_from_data(backend, wrapper):
    for n in range(-1, 9):
        x, start, y = np.arange(6.0), np.array(n), np.array([3.0, 4.0])

        def run(x=x, start=start, y=y):
            return _core.compile_text(
                TEXT, [x, start, y], options={"wrapper": wrapper}, backend=backend
            )[0]

        total = (x[6 - n :] ** 2).sum() if n else 0.0
        reason = None
        if not 0 <= n <= 6:
            reason = "u0 is out of range"
        elif total >= 50:
            reason = "the sum isn't small"
        if reason:
            with pytest.raises(_core.CheckFailed) as failed:
                run()
            assert str(failed.value) == reason
            np.testing.assert_array_equal(y, [3.0, 4.0])
            continue
        view, squares, number = run()
        np.testing.assert_array_equal(view, x[6 - n :])
        np.testing.assert_array_equal(squares, x[6 - n :] ** 2)
        assert number == 2 * n + 1 and type(number) is int
        np.testing.assert_array_equal(y, total)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_a_condition_that_defines_a_size(backend, wrapper):
    x = np.arange(1.0, 9.0)
    for start in range(9):
        total, n = 0.0, start
        while (product := x[:n].cumsum().sum()) > 4:
            total += product
            n //= 2
        options = {"wrapper": wrapper}
        got, _ = _core.compile_text(WHILE, [x, np.array(start)], options=options, backend=backend)
        assert [float(g) for g in got] == [total, n]


@pytest.mark.parametrize("backend", ["c", "interp"])
def test_independent_iterations_of_a_length_that_data_give(backend):
    text = """graph f(in0: i64[], in1: f64[8]) {
      %0: python i64[] = define(in0) u0 in [0, 9)
      %1: f64[8] = for t0<u0 carry (%2: python i64[], %3: f64[8] = in1) {
        %4: f64[1] = slice(%3, starts=[t0], steps=[1])
        %5: f64[1] = negative(%4)
        %6: f64[8] = assign(%3, %4, %5)
        next %6
      }
      return %1
    }"""
    for n in (0, 1, 5, 8):
        (got,), _ = _core.compile_text(text, [np.array(n), np.arange(8.0)], options={}, backend=backend)
        assert np.array_equal(got, np.where(np.arange(8) < n, -np.arange(8.0), np.arange(8.0)))
