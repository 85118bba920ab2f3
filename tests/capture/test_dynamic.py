"""Tests symbolic sizes: programs that accept many sizes, their guards, and when a size becomes a symbol."""

import copy
import enum
import gc
import itertools
import math
import os
import subprocess
import sys
import time
import warnings

import numpy as np
import programs
import pytest

import cinductor
from cinductor import _core
from cinductor.testing import assert_same

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
    """Equal in everything that a user can see."""
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
    with pytest.raises(ValueError, match="the graph's guards exclude"):
        _core.compile_text(ROWS, [np.zeros((3, 0)), np.zeros(0)], options={}, backend="interp")
    with pytest.raises(ValueError, match="input 0 is not the array"):
        _core.compile_text(ROWS, [x[:, ::2], np.zeros(2)], options={}, backend="interp")


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_rows_of_any_size_stay_out_of_memory():
    f = cinductor.compile(softmax, dynamic=True)
    for n, m in ((5, 9), (3, 70000), (0, 5), (7, 1), (300, 257)):
        x = np.random.default_rng(m).random((n, m))
        np.testing.assert_array_equal(f(x), softmax(x))
    assert captures(f) == 1
    if "c" in BACKENDS:
        assert "row buf1[s1] from s1*i0" in f._cinductor_job.last.program.text("kernels")


# --- policy ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_profiles(tmp_path):
    """Sizes recorded by other tests are not known here."""
    before = cinductor.cache.info()["directory"]
    cinductor.cache.set_directory(tmp_path / "cache")
    yield
    cinductor.cache.set_directory(before)


def compile(fn, **settings):
    settings.setdefault("backend", "interp")
    return cinductor.compile(fn, **settings)


def captures(compiled):
    """The number of calls that were captured."""
    return compiled._cinductor_job.captures


def agree(compiled, *args, **kwargs):
    """The compiled function does what the function does."""
    given = copy.deepcopy((args, kwargs))
    assert_same(compiled(*given[0], **given[1]), compiled.__wrapped__(*args, **kwargs))


def norms(x, y):
    """Several kinds of results: reductions, a view of an argument, a view of a result, a size."""
    z = x * x + y
    return z.sum(axis=0), z.sum(), x.T, z.T, x[..., None] * 2, x.shape[0], ({"n": x.size},)


def test_two_compiles_for_any_size():
    f = compile(norms)
    y = np.arange(3.0)
    for n in (5, 7, 9, 1000):
        for _ in range(2):
            agree(f, np.random.default_rng(n).integers(0, 9, (n, 3)) / 2, y)
    assert captures(f) == 2 and len(f.specializations) == 2
    for n in (0, 1, 2):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            agree(f, np.random.default_rng(n).integers(0, 9, (n, 3)) / 2, y)
    assert captures(f) == 2


@pytest.mark.parametrize("dynamic", [True, False])
def test_dynamic_is_said(dynamic):
    f = compile(lambda x: np.sqrt(x) + x.sum(), dynamic=dynamic)
    for n in (5, 7, 9):
        agree(f, np.arange(float(n)))
    assert captures(f) == (1 if dynamic else 3)
    with pytest.raises(TypeError, match="dynamic"):
        cinductor.compile(norms, dynamic="yes")


def test_equal_sizes_are_one_symbol_as_long_as_they_are_equal():
    f = compile(lambda x, y: (x.sum(), y * 2), dynamic=True)
    agree(f, np.arange(4.0), np.arange(4.0))
    agree(f, np.arange(6.0), np.arange(6.0))
    assert captures(f) == 1
    agree(f, np.arange(6.0), np.arange(5.0))
    assert captures(f) == 2 and "y.shape[0] was x.shape[0]" in f._cinductor_job.reasons[-1]
    for n, m in ((3, 4), (8, 8), (0, 9)):
        agree(f, np.arange(float(n)), np.arange(float(m)))
    assert captures(f) == 2


def test_layouts_of_any_size():
    f = compile(lambda x: (x * 2 + x.sum(axis=0), x.T), dynamic=True)
    makes = [
        lambda a: a,
        np.asfortranarray,
        lambda a: a[::-1, ::-1],
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: a.T,
    ]
    for make in makes:
        before = captures(f)
        for n in (4, 6, 9):
            x = make(np.arange(float(n * (n + 1))).reshape(n, n + 1))
            got, want = f(x), f.__wrapped__(x)
            assert_same(got, want)
            assert [g.strides for g in got] == [w.strides for w in want]
        assert captures(f) <= before + 1, make
    sliced = [np.arange(float(n * 8)).reshape(n, 8)[:, ::2] for n in (4, 6, 9)]
    before = captures(f)
    for x in sliced:
        assert_same(f(x), f.__wrapped__(x))
    assert captures(f) == before + 1


def test_ints_become_sizes():
    def f(x, n, k):
        return np.zeros(n) + x[k], np.arange(n), x * n, x.reshape(n, -1) if k < 0 else x

    g = compile(f)
    for n, k in ((4, 1), (6, 2), (8, 5), (12, 0), (3, 7)):
        agree(g, np.arange(24.0), n, k)
    assert captures(g) == 2


def test_an_int_that_is_a_size_of_an_argument():
    def f(x, n):
        total = np.zeros(n)
        total += x
        return total, np.ones(n - 1) + x[1:]

    g = compile(f, dynamic=True)
    for n in (6, 9, 4):
        agree(g, np.arange(float(n)), n)
    assert captures(g) == 1
    assert "n is x.shape[0]" in g.specializations[0].guards


def cut(x, n):
    return np.array_split(x, 3), np.array_split(np.ones((2, n)), 4, axis=1), np.stack([x, x * 2], axis=-1), np.roll(x, 2)


def grids(x, n):
    y = np.arange(float(n))
    return np.meshgrid(x, y), np.meshgrid(y, x, y, indexing="ij", sparse=True), np.meshgrid(x, copy=False)


COUNTS = {
    "cut": cut,
    "grids": grids,
    "histogram": lambda x, n: (np.histogram(x, n + 2), np.histogram(x, n + 1, range=(0.0, 5.0), density=True)),
    "histogram by a size": lambda x, n: np.histogram_bin_edges(x, x.shape[0] + 1),
    "linspace": lambda x, n: np.linspace(2, 5, n),
    "linspace of ends": lambda x, n: np.linspace(x.sum(), n - x.sum(), n, endpoint=False),
    "linspace of arrays": lambda x, n: np.linspace(x, x[::-1] + 1, n, axis=1),
    "linspace of one point": lambda x, n: np.linspace(x.sum(), x.sum(), n),
    "repeat": lambda x, n: np.repeat(x, n),
    "repeat along": lambda x, n: np.repeat(x[:, None] + x, n, axis=0),
    "tile": lambda x, n: np.tile(x, n),
    "tile of three": lambda x, n: np.tile(x, (n, 1, 2)),
    "tile of a transpose": lambda x, n: np.tile((x[:, None] + np.arange(3.0)).T, (n, 2)),
    "tile once": lambda x, n: np.tile((x[:, None] + np.arange(3.0)).T, 1),
    "tri": lambda x, n: (np.tri(n), np.tri(n, 3, k=-1, dtype=int), np.tril(x[:, None] * x)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_symbols(name):
    f = compile(COUNTS[name], dynamic=True)
    for size, n in ((3, 5), (4, 7), (2, 1000), (4, 0), (1, 3), (0, 2), (4, 1), (300, 2)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agree(f, np.arange(float(size)), n)
    assert captures(f) == 1
    for args in ((np.ones(3), -1), (np.ones(2), -4)):
        try:
            want = f.__wrapped__(*args)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                f(*args)
        else:
            assert_same(f(*args), want)


def test_ints_below_zero_are_symbols_too():
    f = compile(lambda x, n: (x[n:], x[n], np.roll(x, n), x * n), dynamic=True)
    for n in (-5, -2, -7, -1):
        agree(f, np.arange(8.0), n)
    assert captures(f) == 1
    f = compile(lambda x, axis: x.sum(axis=axis), dynamic=True)
    for axis in (-3, -2, -1, -3):
        agree(f, np.ones((2, 3, 4)), axis)


def test_an_int_that_decides_stays_a_number():
    g = compile(lambda x, axis: x.sum(axis=axis))
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in (0, 1, 2, 0, 1, 2, -1):
        agree(g, x, axis)
    assert captures(g) == 4 and len(g.specializations) == 4
    assert any("axis is 2" in text for s in g.specializations for text in s.guards)


def test_ints_have_no_bound():
    g = compile(lambda x, n: x * float(n * n * n * n), dynamic=True)
    for n in (10, 1000, 10**5, 10**9, 10**30, -(10**9)):
        agree(g, np.arange(3.0), n)


def test_one_compile_for_all_floats():
    g = compile(lambda x, s: x * s + s)
    x = np.arange(3.0)
    for s in np.random.default_rng(0).random(10_000).tolist():
        g(x, s)
    assert captures(g) == 1
    agree(g, x, 0.25)
    agree(g, x, 1j)
    assert captures(g) == 2


# --- guards' texts --------------------------------------------------------------------------------


def why_not(fn, first, then, **settings):
    """The text of the guard that fails in a second call."""
    f = compile(fn, **settings)
    f(*first)
    return f.specializations[0].why_not(then)


def test_guards_say_what_was_and_is():
    line = norms.__code__.co_firstlineno
    x, y = np.ones((128, 3)), np.ones(3)
    for then, text in (
        ((np.ones((130, 3)), y), "x.shape[0] was 128 when compiled at {}, is 130 now"),
        ((np.ones(128), y), "x.ndim was 2 when compiled at {}, is 1 now"),
        ((x.astype("f4"), y), "x.dtype was float64 when compiled at {}, is float32 now"),
        ((np.asfortranarray(x), y), "x.layout was contiguous when compiled at {}, is strides (8, 1024) now"),
        (([1], y), "x was an array of float64, shape (128, 3), contiguous, writable when compiled at {}, is a list now"),
    ):
        assert why_not(norms, (x, y), then, dynamic=False) == text.format(f"test_dynamic.py:{line}")
    frozen = x.copy()
    frozen.flags.writeable = False
    assert "x.flags.writeable was True" in why_not(norms, (x, y), (frozen, y))
    assert why_not(norms, (x, y), (x, y)) is None


class Mode(enum.Enum):
    ADD = 1
    SCALE = 2


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return x * self.w


def use(x, what):
    """Depends on the type of the argument."""
    if what is Mode.ADD:
        return x + 1
    if isinstance(what, dict):
        return x * sum(what.values())
    if isinstance(what, list | slice):
        return x[what[0]] if isinstance(what, list) else x[what]
    if isinstance(what, str):
        return x * len(what)
    return what(x) if callable(what) else x * 2 if what is None or what is Mode.SCALE else x * what


V = np.arange(3.0)
WORDS = [
    (2.5, 3, "what was a float when compiled at {}, is the int 3 now"),
    (2, 3, "what was 2 when compiled at {}, is 3 now"),
    (2.5, None, "what was a float when compiled at {}, is None now"),
    (np.float32(2), 2.5, "what was a numpy.float32 when compiled at {}, is the float 2.5 now"),
    (None, "relu", "what was None when compiled at {}, is 'relu' now"),
    ("relu", "tanh", "what was 'relu' when compiled at {}, is 'tanh' now"),
    ("a" * 99, V, "what was '" + "a" * 39 + "..." + "a" * 14 + "' when compiled at {}, is an array now"),
    (Mode.ADD, Mode.SCALE, "what was Mode.ADD when compiled at {}, is Mode.SCALE now"),
    (slice(0, 2), slice(1, 2), "what was slice(0, 2, None) when compiled at {}, is slice(1, 2, None) now"),
    ({"a": 1.5}, {"b": 1.5}, "what was a dict with keys ('a',) when compiled at {}, is one with ('b',) now"),
    ({"a": 1.5}, {"a": 1}, "what['a'] was a float when compiled at {}, is the int 1 now"),
    ([1], (1,), "what was a list when compiled at {}, is a tuple now"),
    (np.tanh, np.exp, "what was the function tanh when compiled at {}, is the function exp now"),
    (Layer(2.5), V, "what was a Layer when compiled at {}, is an array now"),
    (Layer(V), Layer(np.ones((2, 3))), "what.w.ndim was 1 when compiled at {}, is 2 now"),
]


@pytest.mark.parametrize("first, then, text", WORDS, ids=lambda v: None)
def test_guards_in_the_users_words(first, then, text):
    line = use.__code__.co_firstlineno
    assert why_not(use, (np.ones(3), first), (np.ones(3), then)) == text.format(f"test_dynamic.py:{line}")


def test_guards_of_two_arrays_and_of_a_callable_object():
    why = why_not(lambda x, y: x + y, (np.ones(3), np.ones(3)), (np.ones(4), np.ones(5)), dynamic=True)
    assert why.startswith("y.shape[0] was x.shape[0] when compiled at ") and why.endswith(", is 5 and not 4 now")
    layer = Layer(V.copy())
    line = Layer.__call__.__code__.co_firstlineno
    for callable in (layer, layer.__call__):
        f = compile(callable)
        agree(f, x := np.ones(3))
        agree(f, x=x)
        assert f.specializations[0].why_not((np.ones(4),)) == f"x.shape[0] was 3 when compiled at test_dynamic.py:{line}, is 4 now"
        before, layer.w = layer.w, np.ones(1)
        assert f.specializations[0].why_not((x,)) == f"self.w.shape[0] was 3 when compiled at test_dynamic.py:{line}, is 1 now"
        layer.w = before
        with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
            f(y=x)
        assert captures(f) == 1


def decided(x, n):
    if x.shape[0] > 4:
        return x * n
    return [x + n]  # of another class, so a region cannot return both


def test_a_decision_names_its_line():
    line = decided.__code__.co_firstlineno + 1
    why = why_not(decided, (np.ones(8), 3), (np.ones(2), 3), dynamic=True)
    assert why == f"5 <= x.shape[0] held when compiled at test_dynamic.py:{line}, and does not now: 2"
    f = compile(decided, dynamic=True)
    for n in (8, 5, 100, 2, 4, 3):
        agree(f, np.ones(n), 3)
    assert captures(f) == 2
    assert f"5 <= x.shape[0] (test_dynamic.py:{line})" in {g for s in f.specializations for g in s.guards}
    assert "x.shape[0] <= 4" in " ".join(f.specializations[0].guards + f.specializations[1].guards)


def test_slices_counted_from_the_end_fit_every_size():
    def f(x):
        y = x.copy()
        y[2:-1] = x[3:] - x[2:-1] + x[1:-2]
        return y, x[1:] - x[:-1], x[1:-1].sum(), x[1::2], x[:-3:2] * 2, x[5:]

    for first in 9, 2:
        g = compile(f, dynamic=True)
        for n in (first, 7, 3, 64, 2, 5, 1, 4, 0):
            agree(g, np.arange(float(n)) ** 2)
        assert captures(g) == 1


def test_relations_that_say_less_are_left_out():
    def f(x):
        return x[:2] + x[-2:], x[:3], x[:5]

    g = compile(f, dynamic=True)
    agree(g, np.arange(9.0))
    assert sum("x.shape[0]" in text for text in g.specializations[0].guards) == 1
    agree(g, np.arange(6.0))
    agree(g, np.arange(2.0))
    assert captures(g) == 1 and g.failed_checks == 1  # too few elements for x[:5]: NumPy runs


def test_unusual_sizes_are_answered_by_numpy_at_first():
    g = compile(lambda x: x[:3] * 2, dynamic=True)
    agree(g, np.arange(7.0))
    assert g.specializations[0].guards[-1].startswith("usually 3 <= x.shape[0] (test_dynamic.py:")
    for call in range(8):
        agree(g, np.arange(2.0))
        assert captures(g) == 1 and g.failed_checks == call + 1
    for n in (2, 1, 0):
        agree(g, np.arange(float(n)))
    assert captures(g) == 2 and g.failed_checks == 9  # x[:0]
    assert "3 <= x.shape[0] held when compiled" in g._cinductor_job.reasons[-1]
    agree(g, np.arange(9.0))
    assert captures(g) == 2


def test_what_raises_for_some_sizes_is_never_compiled_for_them():
    g = compile(lambda x, k: (x[0] + x[k - 1] + x.max(), x.mean(axis=0), 7 // x.shape[0]), dynamic=True)
    agree(g, np.arange(7.0), 4)
    for _ in range(20):
        with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
            g(np.zeros(0), 4)
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 2"):
            g(np.zeros(2), 4)
    agree(g, np.arange(9.0), 9)
    assert captures(g) == 1 and g.failed_checks == 40


def test_a_condition_on_a_size_is_the_programs():
    def f(x):
        return x[0] * 2 if len(x) > 3 else x.sum()

    g = compile(f, dynamic=True)
    for n in (7, 2, 64, 1, 0):
        agree(g, np.arange(float(n)))
    assert captures(g) == 1 and g.failed_checks == 0


def test_a_recompile_is_logged(capfd):
    f = compile(lambda x: x + 1, dynamic=False, options={"log_recompiles": True})
    f(np.ones(3))
    assert capfd.readouterr().err == ""
    f(np.ones(4))
    assert "recompiles: x.shape[0] was 3 when compiled" in capfd.readouterr().err
    report = cinductor.explain(f, np.ones(5))
    assert len(report.recompiles) == 1 and "x.shape[0] was 3" in str(report)
    assert report.guards[0] == "x is an array of float64, shape (5,), contiguous, writable"


# --- sizes given by expressions -------------------------------------------------------------------


def traced(shapes, given, symbols):
    """A specialisation for arrays whose shapes are given as texts of symbols."""
    tracer = _core.Tracer("f", options={}, backend="interp")
    arrays = [np.ones(shape) for shape in shapes]
    for name, hint in symbols.items():
        tracer.symbol(name, -1, 0, hint)
    sources, checks, total = [], [], 0.0
    for k, (array, sizes) in enumerate(zip(arrays, given, strict=True)):
        sources.append(("arg", k))
        value = tracer.array(array, k, [s and tracer.size(s) for s in sizes])
        checks.append((k, "array", array.dtype, value.shape, value.strides, True, True))
        total = total + np.add.reduce(value, axis=None)
    return tracer.finish(sources, checks, total)[1]


def test_sizes_that_are_expressions_of_others_are_solved():
    shapes, given = [(8, 32), (3,), (5,)], [("s3 - 1 + s4", None), ("s3 - 1",), ("s4",)]
    for order in itertools.permutations(range(3)):
        spec = traced([shapes[k] for k in order], [given[k] for k in order], {"s3": 4, "s4": 5})
        for n, m in ((4, 5), (1, 0), (9, 2)):
            arrays = [np.ones((n - 1 + m, 32)), np.ones(n - 1), np.ones(m)]
            assert spec.why_not(tuple(arrays[k] for k in order)) is None
            arrays[0] = np.ones((n + m, 32))
            assert spec.why_not(tuple(arrays[k] for k in order)) is not None
    with pytest.raises(ValueError, match="no argument shows the value of the size s[34]"):
        traced([(8,)], [("s3*s4",)], {"s3": 2, "s4": 4})
    even = traced([(8,)], [("2*s0",)], {"s0": 4})
    assert even.why_not((np.ones(6),)) is None and even.why_not((np.ones(5),)) is not None


# --- marks ----------------------------------------------------------------------------------------


def test_mark_dynamic():
    f = compile(lambda x, y: x * 2 + y)
    x = np.ones((4, 3))
    cinductor.mark_dynamic(x, 0, min=2, max=64)
    agree_with = f(x, np.ones(3))
    assert agree_with.shape == (4, 3)
    for n in (2, 7, 64):
        agree(f, np.ones((n, 3)), np.ones(3))
    assert captures(f) == 1 and "x.shape[0] <= 64" in f.specializations[0].guards
    with pytest.raises(ValueError, match=r"x.shape\[0\] is 65, outside of the marked range \[2, 64\]"):
        f(np.ones((65, 3)), np.ones(3))
    with pytest.raises(ValueError, match="axis 0 has size 1, outside"):
        cinductor.mark_dynamic(np.ones((1, 3)), 0, min=2)
    with pytest.raises(IndexError, match="dim is 2; wanted: an axis from -2 to 1"):
        cinductor.mark_dynamic(x, 2)
    with pytest.raises(TypeError, match="list"):
        cinductor.mark_dynamic([1], 0)


def only_four(x):
    if x.shape[0] == 4:
        y = x * 2
    else:
        y = x[None]  # of another rank, so a region cannot make both
    return y


def test_a_violated_mark_names_the_line():
    line = only_four.__code__.co_firstlineno + 1
    x = np.ones(4)
    cinductor.mark_dynamic(x, 0)
    text = rf"x.shape\[0\] was marked dynamic, but test_dynamic.py:{line} is right only where x.shape\[0\] == 4"
    with pytest.raises(ValueError, match=text):
        compile(only_four)(x)
    cinductor.mark_static(x)
    assert_same(compile(only_four)(x), x * 2)
    y = np.ones(9)
    cinductor.mark_dynamic(y, 0)
    f = compile(only_four)  # every other size is right, only one is not
    assert_same(f(y), y[None])
    agree(f, np.ones(11))
    assert captures(f) == 1


def test_mark_static():
    f = compile(lambda x: x + 1, dynamic=True)
    for n in (4, 5):
        x = np.ones(n)
        cinductor.mark_static(x, 0)
        assert_same(f(x), x + 1)
    assert captures(f) == 2


def total_by_iterations(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * k
    return total


def branch_by_size(x):
    if x.shape[0] > 4:
        return x * 2
    return x + x.shape[0]


UNBACKED = {
    "elements": lambda x: x * 2 + x.sum(),
    "the size": lambda x: (x / len(x), x.shape[0] ** 2, np.ones(x.shape), np.arange(len(x)) * x),
    "folds": lambda x: (x.sum(), np.cumsum(x), x @ x, np.outer(x, x).sum(axis=0)),
    "folds of something": lambda x: (x.max(), x.mean(), np.argmin(x)),
    "slices": lambda x: (x[1:] - x[:-1], x[:3], x[-2:], x[::2], x[::-1] * 1.0, x[: min(x.shape[0], 5)]),
    "items": lambda x: x[0] + x[-1],
    "new axes": lambda x: ((x[:, None] * np.ones(3)).T, x.reshape(-1, 1) + x),
    "parts": lambda x: (np.concatenate([x, x, np.ones(3)]), np.stack([x, x]), np.array_split(x, 3), np.roll(x, 2)),
    "a mask": lambda x: (x[x > 1].sum(), np.where(x > 2, x, 0), np.sort(x)),
    "views alone": lambda x: np.array_split(x, 4),
    "a branch": branch_by_size,
    "trips": total_by_iterations,
}


def same_or_raises(f, x):
    """The compiled function does what the function does, its exceptions included."""
    try:
        want = f.__wrapped__(x)
    except Exception as error:
        with pytest.raises(type(error)) as raised:
            f(x)
        assert str(raised.value) == str(error)
    else:
        assert_same(f(x), want)


@pytest.mark.parametrize("first", [7, 1, 0])
@pytest.mark.parametrize("name", UNBACKED)
def test_nothing_is_decided_by_an_unbacked_size(name, first):
    fn = UNBACKED[name]
    f = compile(fn)
    for n in (first, 0, 1, 2, 3, 5, 7, 64, 1000):
        x = np.arange(float(n))
        cinductor.mark_unbacked(x, 0)
        same_or_raises(f, x)
    assert len(f.specializations) == 1
    assert not any("x.shape[0]" in guard for guard in f.specializations[0].guards)


@pytest.mark.parametrize("fn", [lambda x: x + np.arange(6.0), lambda x: x.reshape(2, -1) * 2])
def test_an_unbacked_size_that_must_be_something(fn):
    f = compile(fn)
    for n in (6, 0, 1, 2, 3, 5, 64, 6):
        x = np.arange(float(n))
        cinductor.mark_unbacked(x, 0)
        same_or_raises(f, x)
    assert captures(f) == 1


def test_an_unbacked_size_alongside_others():
    f = compile(lambda x, y: (x[:, None] * y, x.shape[0] + y.shape[0], np.concatenate([x, y])), dynamic=True)
    for n, m in ((5, 5), (0, 5), (1, 7), (3, 1000), (1, 2)):
        x, y = np.arange(float(n)), np.arange(float(m))
        cinductor.mark_unbacked(x, 0)
        assert_same(f(x, y), f.__wrapped__(x, y))
    assert captures(f) == 1


ASKING = {
    "a list": lambda x: ["a"] * x.shape[0],
    "a text": lambda x: (x * 2, f"{x.shape[0]}"),
    "items of a list": lambda x: [x[k] for k in range(x.shape[0])],
    "a key": lambda x: x * {4: 1.0, 5: 2.0}.get(x.shape[0], 0.0),
    "an argument of Python's": lambda x: math.comb(x.shape[0], 2) * x,
}


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("name", ASKING)
def test_the_value_of_an_unbacked_size_is_refused(name, fullgraph):
    fn = ASKING[name]
    f = compile(fn, fullgraph=fullgraph)
    x = np.ones(4)
    cinductor.mark_unbacked(x, 0)
    line = fn.__code__.co_firstlineno
    text = rf"x.shape\[0\] was marked unbacked, but test_dynamic.py:{line} needs its value, for "
    for _ in range(2):
        with pytest.raises(ValueError, match=text):
            f(x)
    assert not f.specializations
    agree(compile(fn), np.ones(4))


def test_python_has_an_unbacked_size_after_a_break():
    said = []

    def f(x):
        y = x * 2
        said.append(float(y.sum()))
        return y + [x.shape[0]] * x.shape[0]

    g = compile(f)
    for n in (4, 1, 0):
        x = np.arange(float(n))
        cinductor.mark_unbacked(x, 0)
        assert_same(g(x), x * 2 + n)
    assert said == [12.0, 0.0, 0.0]


def test_marks_go_with_their_arrays():
    from cinductor.calls import dynamic

    before = len(dynamic._marks)
    x = np.ones(4)
    cinductor.mark_dynamic(x, (0,))
    assert len(dynamic._marks) == before + 1 and dynamic.marks_of(np.ones(4)) == {}
    del x
    assert len(dynamic._marks) == before


# --- limits and counters --------------------------------------------------------------------------


def shapes_and_types(x, flag):
    return x + 1 if flag == "a" else x * 2


def test_on_limit_dynamic():
    f = compile(lambda x, parts: x * len(parts), options={"recompile_limit": 3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(6):
            agree(f, np.arange(float(n)), [None] * (n + 1))
    assert len(f.specializations) == 3 and captures(f) == 4
    assert len(caught) == 1 and "recompile_limit" in str(caught[0].message)
    assert "parts was a list of 3 items when compiled" in str(caught[0].message)


def test_on_limit_eager_and_error():
    f = compile(lambda x: x + 1, dynamic=False, options={"recompile_limit": 2, "on_limit": "eager"})
    with pytest.warns(RuntimeWarning, match=r"x.shape\[0\] was 3 when compiled at .*, is 4 now") as caught:
        for n in (2, 3, 4, 5):
            agree(f, np.ones(n))
    assert len(caught) == 1 and captures(f) == 2
    f = compile(lambda x: x + 1, dynamic=False, options={"recompile_limit": 2, "on_limit": "error"})
    f(np.ones(2)), f(np.ones(3))
    with pytest.raises(RuntimeError, match="2 specialisations, recompile_limit"):
        f(np.ones(4))
    with pytest.raises(ValueError, match="on_limit"):
        compile(lambda x: x + 1, options={"recompile_limit": 1, "on_limit": "never"})


def test_accumulated_limit():
    options = {"recompile_limit": 8, "accumulated_recompile_limit": 2}
    f = compile(lambda x: x + 1, dynamic=False, options=options)
    with pytest.warns(RuntimeWarning, match="2 compiles, accumulated_recompile_limit"):
        for n in (2, 3, 4):
            agree(f, np.ones(n))
            while len(f.specializations) > 1:
                f.drop(f.specializations[-1])
    assert captures(f) == 2


def test_stats():
    f = compile(shapes_and_types)
    before = cinductor.stats()
    for n, name in ((2, "a"), (3, "a"), (4, "a"), (4, "b")):
        f(np.ones(n), name)
    after = cinductor.stats()
    mine = after["functions"]["shapes_and_types"]
    assert (mine["calls"], mine["captures"], mine["recompiles"], mine["specializations"]) == (4, 3, 2, 3)
    assert after["captures"] - before["captures"] == 3
    assert "x.shape[0] was 2" in mine["reasons"][0] and "flag was 'a'" in mine["reasons"][1]
    assert sum(s.hits for s in f.specializations) == 1


def test_stats_count_every_call_once():
    """Counts include calls that a stance gives to NumPy, calls of deleted functions and of replaced code. `reset`
    starts counting at 0.
    """
    names = ("calls", "captures", "recompiles", "eager")

    def counted(before=None):
        now = cinductor.stats()
        return {name: now[name] - (before[name] if before else 0) for name in names}

    before, x = counted(), np.ones(3)

    def fn(x):
        return x + 1

    f = compile(fn)
    with cinductor.set_stance("force_eager"):
        f(x), f(x)
    f(x), f(x)
    with cinductor.set_stance("eager_on_recompile"):
        f(x), f(x.astype("i4"))
    assert counted(before) == {"calls": 6, "captures": 1, "recompiles": 0, "eager": 3}
    fn.__code__ = (lambda x: x - 1).__code__
    assert f(x)[0] == 0
    compile(lambda x: x.tobytes())(x)
    want = {"calls": 8, "captures": 3, "recompiles": 0, "eager": 3}
    assert counted(before) == {**want, "eager": counted(before)["eager"]}
    before_its_end = counted(before)
    f.itself = f
    del f
    gc.collect()
    assert counted(before) == before_its_end
    g = compile(lambda x: x * 2)
    g(x)
    cinductor.reset()
    assert counted() == dict.fromkeys(names, 0) and g.calls == 0
    g(x)
    assert counted() == {"calls": 1, "captures": 1, "recompiles": 0, "eager": 0}


def test_recent_use_orders_specialisations():
    f = compile(lambda x, name: x + len(name))
    x = np.ones(3)
    for name in ("a", "ab", "abc"):
        f(x, name)
    first = f.specializations[2]
    f(x, "a")
    assert f.specializations[2] is first
    f(x, "a")
    assert f.specializations[0] is first and len(f.specializations) == 3
    f.drop(first)
    assert first not in f.specializations and first.why_not((x, "a")) is None
    agree(f, x, "a")


def test_a_second_process_starts_dynamic(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, cinductor\n"
        "f = cinductor.compile(lambda x: np.sqrt(x) + 1, backend='interp')\n"
        "for n in map(int, sys.argv[1:]):\n"
        "    assert f(np.ones(n)).shape == (n,)\n"
        "print(f._cinductor_job.captures)\n"
    )
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "kept")}

    def run(*sizes):
        return subprocess.check_output([sys.executable, program, *map(str, sizes)], env=env, text=True).strip()

    assert run(3, 4, 5) == "2"
    assert run(3, 4, 5) == "1"
    (kept,) = (tmp_path / "kept").glob("*.shapes")
    kept.write_text("{]")
    assert run(3, 4, 5) == "2"


# --- the corpus -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nets.attention", "stencils.jacobi_2d", "signals.haar", "roots.newton_system"])
def test_programs_with_every_size_symbolic(name):
    program = programs.load()[name]
    f = compile(program.function, dynamic=True)
    for n in program.sizes:
        made = program.make(n, np.random.default_rng(n))
        got, want = f(*copy.deepcopy(made)), program.function(*copy.deepcopy(made))
        for g, w in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
            np.testing.assert_array_equal(g, w)


def test_exponents_with_a_way_of_their_own():
    f = compile(lambda x, p: x**p)
    x = np.linspace(0.5, 3, 11)
    for p in (3.0, 2.5, -0.25, 0.0, 7.125):
        f(x, p)
    assert captures(f) == 1
    for n, p in enumerate((2.0, 0.5, -1.0, 1.0), start=2):
        for _ in range(2):
            agree(f, x, p)
        assert captures(f) == n
    assert "p is none of (-1.0, 0.5, 1.0, 2.0)" in f.specializations[-1].guards
    f(x, 3.5)
    assert captures(f) == 5


def test_numbers_made_of_sizes():
    f = compile(lambda x: (x * x.shape[0] ** 2, float(x.shape[0]) / 2, x.shape[0] ** 0.5, np.ones(x.shape[0])), dynamic=True)
    for n in (3, 8, 0, 20):
        agree(f, np.arange(float(n)))
    assert captures(f) == 1


def test_a_break_that_symbols_make_is_captured_with_numbers():
    def squares(x):
        return x + np.ogrid[: x.shape[0]] ** 2

    fn = cinductor.compile(squares, fullgraph=True)
    for n in (5, 7, 9, 7):
        assert np.array_equal(fn(np.ones(n)), squares(np.ones(n)))


@pytest.mark.parametrize("is_split", [True, False])
def test_pieces_between_breaks_are_compiled_for_any_size(monkeypatch, is_split):
    """Three pieces; the last reads a size, and a value that Python computed from the first."""
    said = []

    def f(x, y):
        a = x * 2 + y.sum()
        said.append(float(a[0]))
        b = a[:, None] * y + said[-1]
        said.append(b.shape)
        c = b.max(axis=1) + x.shape[0]
        return c[1:] - c[:-1], b.T, x.shape[0], a[a > 2] * y.size

    monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    monkeypatch.setattr("cinductor.calls.job.Job.hand_over", lambda *_: None)  # no calls are timed
    monkeypatch.setattr("cinductor.calls.job.Job.leave_to_numpy", lambda *_: None)
    if not is_split:
        monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)
    g, compiled = compile(f), []
    for n, m in ((5, 3), (7, 3), (9, 3), (11, 4), (100, 5), (13, 17), (2, 9), (64, 3)):
        before = g._cinductor_job.plan.captures() if g._cinductor_job.plan else 0
        x, y = np.arange(float(n)), np.arange(float(m))
        del said[:]
        got, mine = g(x, y), list(said)
        del said[:]
        assert_same(got, f(x, y))
        assert mine == said and g._cinductor_job.last.breaks and g._cinductor_job.why is None
        if is_split and before:
            compiled.append(g._cinductor_job.plan.captures() > before)
        else:
            compiled.append("reused" not in g._cinductor_job.last.info)
    assert captures(g) == (1 if is_split else 8) and compiled[4:] == [False] * 4, compiled


def test_a_size_that_is_one_costs_one_more_compile_at_most():
    def f(x, y):
        return x[:, None] * y, (x - x.mean()).sum(), x[1:] + x[:-1]

    for sizes, compiles in (((1, 5, 9, 1, 3, 2), 2), ((5, 1, 9, 7, 1), 3), ((5, 9, 1, 1, 4), 2), ((1, 1, 5, 1), 2)):
        g = compile(f)
        for n in sizes:
            agree(g, np.arange(float(n)), np.arange(3.0))
        assert captures(g) == compiles, sizes
        cinductor.cache.clear()


def test_bincount_of_nothing_gives_ints():
    """np.bincount of an empty array gives ints even when there are weights, which are floats."""

    def f(places, weights):
        return np.bincount(places, weights=weights, minlength=7)

    g = cinductor.compile(f, dynamic=True, backend="interp")
    for n in (7, 9, 0, 1, 5, 0):
        places, weights = np.arange(n) % 7, np.arange(n) * 0.5
        assert_same(g(places, weights), f(places, weights))
    assert len(g.specializations) == 1


def test_arrays_that_change_places_in_any_number_of_iterations():
    """The region runs two iterations at a time, so whether their number is even is guarded."""

    def relax(u, n):
        v = np.empty_like(u)
        for k in range(n):
            v[...] = u * 0.5 + k
            u, v = v, u
        return u, v

    f = cinductor.compile(relax, dynamic=True, backend="interp")
    for n in (10, 9, 2, 1, 12, 3, 10):
        given, expected = np.arange(5.0), np.arange(5.0)
        results, wanted = f(given, n), relax(expected, n)
        assert_same(results, wanted)
        assert_same(given, expected)
        assert [r is given for r in results] == [w is expected for w in wanted]
    assert len(f.specializations) <= 4


def test_long_sums_and_many_facts_cost_little():
    """An axis cut into equal parts has long sums as sizes, and each cut adds a fact. Trying all facts in all proofs
    took minutes.
    """

    def centres(x):
        parts = np.array_split(x[1:-1], 24)
        return [b.mean(axis=0) - a[0] for a, b in zip(parts, parts[1:])]

    compiled = cinductor.compile(centres, dynamic=True, backend="interp")
    began = time.process_time()
    for n in (500, 300):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_array_equal(compiled(x), centres(x))
    assert time.process_time() - began < 10


def test_a_profile_is_of_one_function():
    """Functions that only differ in the names that they call do not share recorded sizes."""
    from cinductor.calls.dynamic import profile_path

    functions = [lambda x: x.mean(), lambda x: x.sum(), lambda y: y.mean(), lambda x: x.mean()]
    paths = [profile_path(f, "/") for f in functions]
    assert len(set(paths)) == 3 and paths[0] == paths[3]
