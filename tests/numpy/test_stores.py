"""Tests numbers stored into integer arrays.

NumPy raises for a value that the dtype cannot hold if it assigns single elements (an index of ints and slices,
fill, a list). It casts if it assigns an array of NumPy numbers (masks, lists of indices).
"""

import copy
import warnings

import numpy as np
import pytest

import cinductor
from cinductor import testing
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


def store_after_a_break(a, v):
    print("", end="")
    a[1] = v


def augment(a, v):
    a[1] += v


WAYS = [
    store_element, store_slice, store_no_element, store_whole, store_by_fill, store_by_mask, store_by_places, store_list, store_array, store_full,
    store_in_loop, store_after_a_break, augment,
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


def diagonal(x, v):
    np.fill_diagonal(x[:4].reshape(2, 2), v)
    return x


def written_by(function, *args):
    def program(x, v):
        function(x, *args, v)
        return x

    return program


def flat(x, v):
    x.flat = v
    return x


def stored_at(key):
    def program(x, v):
        x[x > 1 if key is None else key] = v
        return x

    return program


TAKEN = {
    "item": stored_at(1),
    "slice": stored_at(slice(1, 3)),
    "rows": stored_at((None, slice(1, 2))),
    "whole": stored_at(...),
    "mask": stored_at(None),
    "ediff1d begin": lambda x, v: np.ediff1d(x, to_begin=v),
    "ediff1d end": lambda x, v: np.ediff1d(x, to_end=v),
    "diagonal": diagonal,
    "max": lambda x, v: x.max(initial=v),
    "min": lambda x, v: np.min(x, initial=v),
    "sum": lambda x, v: np.sum(x, initial=v),
    "product": lambda x, v: x.prod(initial=v),
    "full like": lambda x, v: np.full_like(x, v),
    "insert": lambda x, v: np.insert(x, 1, v),
    "put": written_by(np.put, [1]),
    "place": lambda x, v: (np.place(x, x > 1, v), x)[1],
    "putmask": lambda x, v: (np.putmask(x, x > 1, v), x)[1],
    "copyto": written_by(np.copyto),
    "flat": flat,
    "along": lambda x, v: (np.put_along_axis(x, np.array([1]), v, 0), x)[1],
    "repeat": lambda x, v: np.repeat(x[:0], v),  # a repeat of no elements; 2**40 repeats of one would exceed the memory
    "clip": lambda x, v: np.clip(x, v, None),
}
VALUES = [
    1, 300, -1, 2**40, 2**70, 0.5, np.nan, 1j, np.int64(300), np.float64(0.5), np.float64(np.nan), np.complex64(1j),
    np.array(300), np.array([0.5]), [300], [0.5], [1], [[1]], [[[0.5]]], np.array([[1]]), ((0.5, 1.0),),
]  # fmt: skip


def outcome(fn, *args):
    """The result or exception of a call, its warnings, and its first argument afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = fn(*args)
            shown = type(value), value.dtype, value.strides, repr(value)
        except Exception as error:
            shown = type(error), str(error)
    return shown, sorted({str(w.message) for w in caught}), args[0].tobytes()


@pytest.mark.parametrize("name", TAKEN)
def test_a_value_is_taken_or_refused_as_numpy_does(name):
    """In the first call and in later ones, with constants and with varying numbers."""
    for dtype in ("u1", "i4", "f4", "?"):
        for dynamic in (None, True):
            compiled = cinductor.compile(TAKEN[name], backend="interp", dynamic=dynamic, options={"recompile_limit": 99})
            for value in VALUES:
                want = outcome(TAKEN[name], np.array([0, 1, 2, 3, 1], dtype), value)
                for _ in range(2):
                    assert outcome(compiled, np.array([0, 1, 2, 3, 1], dtype), value) == want, (dtype, value)


INTO = {
    "round": lambda a, o: np.around(a[0], 1, out=o),
    "variance": lambda a, o: np.var(a, axis=0, out=o),
    "deviation": lambda a, o: np.std(a, axis=0, out=o),
    "mean": lambda a, o: np.mean(a, axis=0, out=o),
    "sum": lambda a, o: np.sum(a, axis=0, out=o),
    "product": lambda a, o: np.prod(a, axis=0, out=o),
    "greatest": lambda a, o: a.max(0, out=o),
    "running": lambda a, o: np.cumsum(a[1], out=o),
    "median": lambda a, o: np.median(a, axis=0, out=o),
    "percentile": lambda a, o: np.percentile(a, 30, axis=0, out=o),
    "range": lambda a, o: np.ptp(a, axis=0, out=o),
    "clip": lambda a, o: np.clip(a[0], 0.15, 1, out=o),
    "taken": lambda a, o: np.take(a[0], [0, 1, 2], out=o),
    "dot": lambda a, o: np.dot(a[:, 0], a, out=o),
    "without NaN": lambda a, o: np.nansum(a, axis=0, out=o),
}


@pytest.mark.parametrize("name", INTO)
def test_out_of_another_dtype(name):
    """NumPy computes in a dtype that depends on the dtype of out=."""
    for dtype in ("f4", "i4", "f8"):
        a = (np.array([[0.1, 0.7, 2.25], [0.3, 2.1, 6.75]]) * (1 if dtype[0] == "f" else 30)).astype(dtype)
        for other in ("f8", "f4", "f2", "i8", "c16", "?"):
            compiled = cinductor.compile(INTO[name], backend="interp")
            shown = []
            for fn in (INTO[name], compiled, compiled):
                out = np.zeros(3, other)
                shown.append(outcome(lambda o, fn=fn, a=a: fn(a, o), out))
            assert shown[1] == shown[0] and shown[2] == shown[0], (dtype, other)


INTO_ONE = [
    lambda a, o: np.clip(a, 0, 1, out=o),
    lambda a, o: a.clip(None, 1, o),
    lambda a, o: np.round(a, out=o),
    lambda a, o: a.conj(o),
    lambda a, o: a.sum(out=o),
    lambda a, o: np.mean(a, out=o),
    lambda a, o: np.dot(a, 2.0, o),
    lambda a, o: np.sqrt(a, out=(o,)),
    lambda a, o: np.add.reduce([a, a], out=o),
    lambda a, o: np.median(a, out=o),
    lambda a, o: np.fix(a, out=o),
    lambda a, o: np.take(a, 0, out=o),
]


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_out_of_no_axes(backend):
    """A method of a scalar returns a copy of out= as a scalar, also where a function calls it. Other calls return out=."""
    for fn in INTO_ONE:

        def of_item(x, o, fn=fn):
            made = fn(x[1], o)
            return made, made is o, o

        def of_array(x, o, fn=fn):
            made = fn(x[1:2].reshape(()), o)
            return made, made is o, o

        for program in (of_item, of_array):
            check(program, np.array([0.5, 2.5]), np.array(7.0), calls=2, backend=backend)


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("n", [3, 64])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
def test_floats_as_uint64(dtype, n, backend):
    """A negative float wraps, also on a processor with an instruction that gives all ones for it."""

    def program(a, x):
        a[:] = x
        return a.sum()

    compiled = cinductor.compile(program, backend=backend)
    with np.errstate(over="ignore"):
        x = np.resize(np.array([-2.0, 3.5, -1.0, -1e3, 6e4, 2.0**62, 2.0**63, 2.0**63 + 2.0**42, -(2.0**40)]).astype(dtype), n)
    check(program, np.zeros(n, np.uint64), x, calls=2, compiled=compiled)


def written_grid(x):
    a, b = np.meshgrid(x, x[:2], copy=False)
    a[0, 0] = 9
    return a, b


def written_out(x):
    a, b = np.broadcast_arrays(x, np.zeros((2, 1)))
    np.add(b, 1, out=b)
    return a, b, a[0], b.T


def flags_of_a_grid(x):
    a = np.meshgrid(x, [1, 2], copy=False)[0]
    return a, a.flags.writeable


def into_real(x):
    return np.add(x, 1j, out=np.zeros(3)[:], casting="unsafe"), np.sin(x * 1j, dtype="f4", casting="unsafe")


def sum_as_real(x):
    return np.add.reduce(x * 1j, dtype="f4"), np.cumsum(x + 1j, dtype="f4")


def wrong_operands_that_cannot_be_written(x):
    return np.gcd.reduce(np.broadcast_to(x, (2, 3)))


WARNED = [written_grid, written_out, flags_of_a_grid, into_real, sum_as_real, wrong_operands_that_cannot_be_written]


def shown(fn, x):
    """The result or the exception, the argument, and NumPy's warnings, which reading a flag can give."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            made = fn(x)
        except TypeError as error:
            return str(error)
        texts = sorted(str(w.message) for w in given)
        values = [v for v in (made if type(made) is tuple else (made,)) if isinstance(v, np.ndarray)]
        flags = [(v.flags.writeable, v.strides, np.shares_memory(v, x)) for v in values]
        return texts, [v.tolist() for v in values], flags, len(given), x.tolist()


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", WARNED, ids=lambda f: f.__name__)
def test_numpy_warns_of_the_write_or_the_cast(fn, backend):
    """A result of broadcast_arrays can be written to, with a warning, and a cast from complex numbers warns."""
    compiled = cinductor.compile(fn, backend=backend)
    for _ in range(3):
        x = np.arange(3.0)
        x.flags.writeable = fn is not wrong_operands_that_cannot_be_written
        assert shown(compiled, x) == shown(fn, np.arange(3.0))


AS_NUMPY_TAKES_THEM = {
    "argmin": (lambda x: np.argmin(x, keepdims=True), (np.int64(3), 2.5, np.array(3.0), np.arange(3.0))),
    "correlate": (lambda x: np.correlate(x, [1, 2]), (np.float32(2), 2.0, np.arange(3.0))),
    "copyto": (lambda x: np.copyto(x, 3), (np.float64(2.5), np.int64(3), np.arange(3.0))),
    "putmask": (lambda x: np.putmask(x, np.asarray(x) > 0, 5), (2.5, np.float32(2), np.arange(3.0))),
    "array": (lambda x: np.array(x, copy=False), (2.5, [1.5, 2], np.float64(2), np.arange(3.0))),
    "along": (lambda x: np.take_along_axis(x, np.argsort(x), -1), ([2.5, 1.5], np.arange(3.0))),
    "halves": (lambda x: np.polyfit(np.arange(3), x, 1), (np.ones(3, "f2"), np.ones(3, "f4"))),
    "eigenvalues": (lambda x: np.linalg.eigvals(x).strides, (np.eye(3), np.eye(3, dtype="f4"), np.eye(3, dtype=int))),
}


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("name", AS_NUMPY_TAKES_THEM)
def test_operands_that_are_no_arrays(name, backend):
    """NumPy refuses some of them with its own exception, and gives scalars for others."""
    fn, operands = AS_NUMPY_TAKES_THEM[name]
    for operand in operands:
        compiled = cinductor.compile(fn, backend=backend)
        want = repr(testing.outcome(fn, [copy.copy(operand)]))
        for _ in range(2):
            assert repr(testing.outcome(compiled, [copy.copy(operand)])) == want


def store_where_positive(x):
    x[x > 0] = 2.5
    return x


def scale_where_small(x):
    x[...] = np.where(x <= 1, x * 2 - 1, x)
    return x


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [store_where_positive, scale_where_small], ids=lambda f: f.__name__)
def test_comparisons_of_nan_do_not_warn(fn, backend):
    """Also after a write to an argument, when NumPy cannot run the call once more."""
    compiled = cinductor.compile(fn, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(compiled(np.array([np.nan, -1, 1, 2])), fn(np.array([np.nan, -1, 1, 2])))


FLAGS = {
    "zeros": lambda x, f: np.zeros(f),
    "ones": lambda x, f: np.ones((f, 2)),
    "full": lambda x, f: np.full(f, 2.0),
    "eye": lambda x, f: np.eye(f),
    "range": lambda x, f: np.arange(f),
    "reshape": lambda x, f: x.reshape(f, -1),
    "sum": lambda x, f: x[None].sum(axis=f),
    "sort": lambda x, f: np.sort(x[None], axis=f),
    "axis": lambda x, f: np.expand_dims(x, f),
    "repeat": lambda x, f: np.repeat(x, f),
    "roll": lambda x, f: np.roll(x, f),
    "tile": lambda x, f: np.tile(x, f),
    "item": lambda x, f: [1, 2][f],
    "round": lambda x, f: (x / 3).round(f),
    "pad": lambda x, f: np.pad(x, f),
    "counts": lambda x, f: np.bincount(np.array([0, 1]), minlength=f),
    "histogram": lambda x, f: np.histogram(x, f),
    "triangle": lambda x, f: np.triu(x[None], f),
    "flat": lambda x, f: x.flat[f],
    "split": lambda x, f: np.split(x[:3], f),
    "copy": lambda x, f: np.nan_to_num(x, f),
}
GIVEN = [
    lambda x: x[0] > 1, lambda x: bool(x[0] > 1), lambda x: x.shape[0] > 1, lambda x: True, lambda x: np.True_, lambda x: 2.0,
    lambda x: np.uint8(2), lambda x: np.array(2), lambda x: np.array([2]), lambda x: "2", lambda x: None, lambda x: int(x[0]),
]  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_what_is_no_count_is_refused_as_numpy_does(name):
    """Sizes and axes are ints; for bools, floats and arrays each function has rules of its own."""

    def caught(x, given):
        try:
            return repr(FLAGS[name](x, given(x)))
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            return type(error).__name__, str(error)

    for dynamic in (None, True):
        for given in GIVEN:
            compiled = cinductor.compile(caught, backend="interp", dynamic=dynamic)
            for x in (np.array([2.0, 1.0, 5.0]), np.array([2.0, 1.0, 5.0, 0.0]), np.array([2.0, 4.0, 5.0])):
                assert compiled(x, given) == caught(x, given)


REFUSED = {
    "root": lambda x, o: np.sqrt(x, out=o),
    "third": lambda x, o: np.minimum(x, x, o),
    "rounded": lambda x, o: np.around(x, 1, out=o),
    "reduced": lambda x, o: np.add.reduce([x, x], 0, None, o),
    "chosen": lambda x, o: np.choose(np.array([0, 1, 0]), [x, x], out=o),
    "joined": lambda x, o: np.concatenate([x[:1], x[1:]], out=o),
    "mean": lambda x, o: np.mean([x, x], 0, out=o),
    "product": lambda x, o: np.power(x, 2, out=o),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_out_is_refused_without_a_warning(name):
    x = np.array([-1.0, 2.0, 1e200])
    for out in (3, [1.0] * 3, np.zeros(4), np.zeros(3, int), (np.zeros(3),), "a", np.float64(1), np.zeros(3)):
        want = outcome(REFUSED[name], x.copy(), copy.copy(out))
        compiled = cinductor.compile(REFUSED[name], backend="interp")
        for _ in range(2 if issubclass(want[0][0], Exception) else 0):
            assert outcome(compiled, x.copy(), copy.copy(out)) == want, out
