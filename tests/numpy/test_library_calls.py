"""Tests calls of NumPy's functions from inside a program: their arguments, and how their results are used."""

import numpy as np
import pytest

import cinductor

X, V = np.arange(400_000.0) % 17, np.array([0.25, 0.5, 0.25])


@pytest.fixture
def seen(monkeypatch):
    """For each call of the function that implements np.convolve: the address of its first operand, and its result."""
    calls, correlate = [], np._core.multiarray.correlate

    def recording(a, v, mode):
        result = correlate(a, v, mode)
        calls.append((a.ctypes.data, a.flags.writeable, result.ctypes.data))
        return result

    monkeypatch.setattr(np._core.multiarray, "correlate", recording)
    return calls


@pytest.mark.parametrize("size", [50, 400_000])
def test_a_returned_array_is_the_result(seen, size):
    """Neither arguments nor results of NumPy's functions are copied."""
    x = X[:size].copy()
    compiled = cinductor.compile(lambda x, v: np.convolve(x, v), fullgraph=True)
    compiled(x, V)
    got = compiled(x, V)
    assert seen[-1] == (x.ctypes.data, True, got.ctypes.data)
    assert got.base is None and got.flags.owndata
    np.testing.assert_array_equal(got, np.convolve(x, V))


def test_where_it_is_not_the_result(seen):
    """In the middle of a program, next to other results, in another shape, as a single number."""

    def several(x, v):
        smooth = np.convolve(x, v)
        inner = np.convolve(smooth, v, "valid")
        return smooth[1:], inner.reshape(2, -1), smooth * 2, np.convolve(v, v)[:, None], np.convolve(x[:1], v[:1])

    compiled = cinductor.compile(several, fullgraph=True)
    for _ in range(3):
        got, expected = compiled(X, V), several(X, V)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
    kept = [compiled(X + k, V) for k in range(3)]
    np.testing.assert_array_equal(kept[0][0], several(X, V)[0])
    del got, kept


def test_numpy_warns_once_of_bools():
    """Capture learns the dtypes of a histogram from a call of its own."""
    compiled = cinductor.compile(lambda x: np.histogram(x, 3), backend="interp")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="Converting input from bool") as seen:
            counts, _edges = compiled(np.array([True, False, True]))
        assert len(seen) == 1 and counts.tolist() == [1, 0, 2]
