"""Tests the lines of test_functions.py with arguments of other kinds than theirs: dtypes, layouts, ranks, sizes and numbers.

Each line runs with one of its arguments replaced, for a fixed sample of the kinds; CINDUCTOR_FUZZ runs all. Results,
exceptions with their texts and changed arguments must be NumPy's, whether the call is captured or not. More tests are
of Python's and NumPy's numbers where NumPy expects arrays.
"""

import ast
import copy
import math
import zlib

import numpy as np
import pytest
import ways
from test_functions import FIRST, ROWS, functions  # noqa: F401  (a fixture)

import cinductor
from cinductor.testing import assert_same, outcome


def small(dtype):
    """Values that an integer dtype can hold, or any other."""
    return lambda x: np.round(x.real * 9).astype("i8").astype(dtype)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


KINDS = {
    "f4": lambda x: x.astype("f4"),
    "f2": lambda x: x.real.astype("f2"),
    "c8": lambda x: (x * (1 + 1j)).astype("c8"),
    "bool": lambda x: x.real > 0.25,
    "i1": small("i1"),
    "u1": small("u1"),
    "u8": small("u8"),
    "object": lambda x: x.astype(object),
    "longdouble": lambda x: x.real.astype("g"),
    "big-endian": lambda x: x.real.astype(">f8"),
    "in Fortran order": lambda x: np.asfortranarray(x),
    "reversed": lambda x: np.flip(np.flip(x).copy()),
    "in steps": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "read-only": read_only,
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "empty": lambda x: x[:0],
    "one": lambda x: x[(slice(1),) * x.ndim],
    "0-d": lambda x: np.array(x.flat[0]),
    "number": lambda x: x.flat[0],
    "Python's number": lambda x: x.flat[0].item(),
    "list": lambda x: x.tolist(),
    "special": lambda x: np.resize(np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -2.5, 1e308]), x.shape),
}


def sampled():
    """Each line that takes an array with two kinds, or with all."""
    found, names = [], list(KINDS)
    for number, row in enumerate(ROWS):
        words = {node.id for node in ast.walk(ast.parse(row)) if isinstance(node, ast.Name)}
        if not any(isinstance(FIRST.get(word), np.ndarray) for word in words):
            continue
        start = zlib.crc32(row.encode())
        chosen = names if ways.EVERYTHING else [names[(start + k * 7) % len(names)] for k in range(2)]
        found += [pytest.param(number, kind, id=f"{row} {kind}") for kind in chosen]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("number", "kind"), sampled())
def test_an_argument_of_another_kind(functions, number, kind):  # noqa: F811
    function = getattr(functions, f"row{number}")
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    arrays = [n for n in names if isinstance(FIRST[n], np.ndarray)]
    changed = arrays[zlib.crc32(f"{number} {kind}".encode()) % len(arrays)]

    def arguments():
        return tuple(KINDS[kind](FIRST[n]) if n == changed else copy.deepcopy(FIRST[n]) for n in names)

    check(function, arguments)


def check(function, arguments):
    """Two calls of the function, compiled and plain: results, exceptions and changed arguments are equal."""
    compiled = cinductor.compile(function, mode="now", backend="interp", options={"numerics": "exact"})
    for call in range(2):
        mine, theirs = arguments(), arguments()
        (expected, wanted), (actual, error) = outcome(function, theirs), outcome(compiled, mine)
        assert (type(error), str(error)) == (type(wanted), str(wanted)), call
        same(actual, expected)
        same(mine, theirs)


def same(actual, expected):
    """assert_same; of objects and lists only what Python compares."""
    if isinstance(expected, tuple | list):
        assert type(actual) is type(expected) and len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            same(a, b)
    elif isinstance(expected, np.ndarray | np.generic) and expected.dtype.kind in "OV":
        assert type(actual) is type(expected) and actual.dtype == expected.dtype and repr(actual) == repr(expected)
    else:
        assert_same(actual, expected)


# --- numbers where NumPy expects arrays ---------------------------------------------------------


def real(x):
    x.real = 3


def flat(x):
    x.flat = 3


def whole(x):
    x[...] = 3


def item(x):
    x[()] = 3


WRITES = {
    "real": real,
    "flat": flat,
    "whole": whole,
    "item": item,
    "fill": lambda x: x.fill(3),
    "put": lambda x: x.put(0, 3),
    "sort": lambda x: x.sort(),
    "partition": lambda x: x.partition(0),
    "resize": lambda x: x.resize(()),
    "np.put": lambda x: np.put(x, 0, 3),
    "np.place": lambda x: np.place(x, True, [3]),
    "np.putmask": lambda x: np.putmask(x, True, 3),
    "np.copyto": lambda x: np.copyto(x, 3),
    "np.add.at": lambda x: np.add.at(x, (), 3),
    "np.fill_diagonal": lambda x: np.fill_diagonal(x, 3),
    "out": lambda x: np.sum(np.arange(3.0), out=x),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_number_is_not_written_to(name):
    """NumPy writes to a copy, or raises. The next call has the number's memory again."""
    write = WRITES[name]

    def of_argument(x):
        write(x)
        return x

    def of_result(x):
        y = x + 1
        write(y)
        return y

    for function in (of_argument, of_result):
        for x in (np.float64(2.5), np.int8(3), 2.5, 3):
            check(function, lambda x=x: (x,))


SEQUENCES = {
    "concatenate": lambda x, n: np.concatenate((x, n), axis=None),
    "cast": lambda x, n: np.concatenate((x, n), axis=None, dtype="f4", casting="same_kind"),
    "union1d": lambda x, n: np.union1d(x, n),
    "choose": lambda x, n: np.choose(1, [x[0], n]),
    "choose among 0-d": lambda x, n: np.choose(0, [x[1:2].reshape(()), n]),
    "stack": lambda x, n: np.stack([x[0], n]),
    "hstack": lambda x, n: np.hstack([x, n]),
    "append": lambda x, n: np.append(x, n),
    "outer": lambda x, n: np.multiply.outer(x, n),
    "outer of two": lambda x, n: np.add.outer(n, x),
    "setdiff1d": lambda x, n: np.setdiff1d(x, n),
    "isin": lambda x, n: np.isin(x, n),
    "where": lambda x, n: np.where(x > 1, x, n),
    "select": lambda x, n: np.select([x > 1], [x], n),
    "quantile": lambda x, n: np.quantile(x, n / 512),
    "block": lambda x, n: np.block([x, n]),
    "array": lambda x, n: np.array([x[0], n]),
    "insert": lambda x, n: np.insert(x, 1, n),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEQUENCES)
def test_promotion_of_numbers_in_sequences(name):
    """Where Python's numbers are weak, and where NumPy makes arrays of them first."""
    for dtype in ("u1", "f2", "f4", "?", "i8"):
        for number in (300, -1, 2.5, True, 1j, np.float32(2.5), np.int64(3), 2**40):
            check(SEQUENCES[name], lambda d=dtype, n=number: (np.arange(3).astype(d), n))


OF_NUMBERS = {
    "floor": lambda a: math.floor(a),
    "ceil": lambda a: math.ceil(a),
    "round": lambda a: (round(a), int(a)),
    "dot": lambda a: a.dot(2),
    "partition": lambda a: a.partition(0),
    "methods": lambda a: [hasattr(a, name) for name in ("dot", "sum", "partition", "argpartition", "sort", "fill", "mT", "T")],
    "clip": lambda a: np.clip(a, 0, np.float32(2)),
    "range of a histogram": lambda a: np.histogram(np.arange(4, dtype="f4"), 2, (-1, a)),
    "outer": lambda a: np.add.outer(a, a),
    "tri": lambda a: np.tri(4, a, -1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_of_every_class(name):
    for number in (3, 2.5, True, 1j, np.int64(2**62 + 1), np.uint64(2**53 + 1), np.uint8(200), np.float16(2), np.float32(2.5), np.bool_(True)):
        check(OF_NUMBERS[name], lambda number=number: (number,))


FOUND = {
    "histogramdd": lambda x: np.histogramdd(np.stack([x.ravel(), x.ravel()], -1), 3),
    "histogramdd with a range": lambda x: np.histogramdd((x.ravel(), x.ravel()), 3, ((0, 1), (0, 2))),
    "histogram2d": lambda x: np.histogram2d(x.ravel(), x.ravel(), 2),
    "gradient": lambda x: np.gradient(x, np.arange(4.0) ** 2, np.arange(6), edge_order=2),
    "pad with a mean": lambda x: np.pad(x, 1, "mean"),
    "pad with a median": lambda x: np.pad(x, ((0, 0), (1, 0)), "median"),
    "pad with a ramp": lambda x: np.pad(x, 2, "linear_ramp", end_values=3),
    "pad with the edge": lambda x: np.pad(x, (1, 0), "edge"),
    "quantile": lambda x: np.quantile(x, np.float32(0.3), axis=-1),
    "quantiles": lambda x: np.quantile(x, np.array([0.3, 0.6], "f4"), axis=0, method="weibull"),
    "roll by nothing": lambda x: np.roll(x, (), ()),
    "shift": lambda x: np.fft.fftshift(x),
    "cond": lambda x: np.linalg.cond(x[:4, :4], 1),
    "cumsum onto itself": lambda x: np.cumsum(x, 0, out=x),
    "clip of a number": lambda x: (np.clip(1.5, 0, x), np.clip(2j, 0, x)),
    "histogram of a range": lambda x: np.histogram(x, 2, (np.float32(-1), 2)),
    "einsum of elements": lambda x: (np.einsum("ij,ij->ij", x, x[::-1]), np.einsum("i,ij->ji", x[:, 0], x)),
    "einsum of an outer product": lambda x: np.einsum("i,j->ij", x[0], x[:, 1]),
    "einsum of three": lambda x: (np.einsum("ij,i,j->ij", x, x[:, 0], x[0]), np.einsum("i,i,i->i", *x[:3])),
    "einsum of three by a path": lambda x: np.einsum("ij,i,j->ij", x, x[:, 0], x[0], optimize=True),
    "einsum by a path": lambda x: np.einsum("ij,ij,ij->", x, x, x, optimize=True),
    "einsum by the best path": lambda x: np.einsum("ij,kj,kl->il", x, x, x, optimize="optimal"),
    "einsum of numbers": lambda x: np.einsum(",->", x[0, 0], x[0, 1], optimize=True),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOUND)
def test_every_kind(name):
    for kind in KINDS.values():
        check(FOUND[name], lambda kind=kind: (kind(FIRST["x"]),))


def masked(x, a):
    print(end="", flush=True)
    x[x > 0] = a
    return x


def chosen(x, a):
    print(end="", flush=True)
    return np.where(x > 1, x, a)


def spaced(x, a):
    print(end="", flush=True)
    return np.linspace(x, a, 3)


def castable(x, a):
    return np.can_cast((a, 2), x.dtype)


def promoted(x, a):
    return np.result_type(x, a), np.result_type(x, [a, 2])


@pytest.mark.parametrize("function", [castable, promoted])
@pytest.mark.parametrize("number", [1.5, 3, np.float32(2), np.int8(1), np.zeros(2)])
def test_lists_and_tuples_are_no_arrays_in_promotion(function, number):
    check(function, lambda: (np.arange(4.0), number))


def between_a_text_and(x, a):
    return np.geomspace("abc", x)


def between_a_text_and_a_number(x, a):
    return np.geomspace("abc", a, num=3)


def summed(x, a):
    return np.apply_along_axis(np.sum, 0, x)


def doubled(x, a):
    return np.apply_along_axis(lambda row: row * 2, -1, x)


@pytest.mark.parametrize("function", [between_a_text_and, between_a_text_and_a_number, summed, doubled])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (4,)])
def test_what_numpy_refuses_or_decides_by_the_shape(function, shape):
    check(function, lambda: (np.ones(shape), 5))


def put(x, a):
    print(end="", flush=True)
    np.put(x, 1, a)
    return x


def limited(x, a):
    print(end="", flush=True)
    return np.clip(x, 0, a)


def joined(x, a):
    print(end="", flush=True)
    return np.concatenate([x, [a]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [masked, chosen, spaced, put, limited, joined])
def test_a_dtype_without_kernels_after_an_effect(function):
    """The call cannot restart in NumPy, so NumPy computes that statement."""
    for dtype in ("i1", "f4"):
        for number in (np.longdouble(1.5), np.array([1.5], "g")[0], np.clongdouble(2)):
            check(function, lambda d=dtype, n=number: (np.arange(4).astype(d), n))
