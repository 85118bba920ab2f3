"""Tests objects whose contents only Python or NumPy can read: the contents are looked up in every call.

Each object is passed as an argument, and as an attribute or an item, in turns. Its contents differ in each of three
calls, so a compiled function that kept the contents of the first call would be wrong in the second.
"""

import array
import collections
import copy
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import math
import operator
import re
import types
import warnings

import numpy as np
import pytest

import cinductor

V = np.arange(3.0)


def show(value):
    """A value with its classes, dtypes and shapes, without addresses."""
    if isinstance(value, tuple | list):
        return type(value).__name__, [show(v) for v in value]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        strides = value.strides if isinstance(value, np.ndarray) else None
        return type(value).__name__, str(value.dtype), value.shape, strides, repr(value.tolist())
    return type(value).__name__, re.sub("0x[0-9a-f]+", "0x", repr(value))


def outcome(fn, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return show(fn(*args))
        except Exception as error:
            return type(error).__name__, re.sub("0x[0-9a-f]+", "0x", str(error))


class Holder:
    def __init__(self, held):
        self.held = held


class Numbered:
    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return f"Numbered({self.n})"


def made_with(**methods):
    """A class whose objects have a number, with these methods."""
    return type("Made", (Numbered,), methods)


def item_below(self, k):
    if k >= self.n:
        raise IndexError(k)
    return 2 * k


class ArrayLike:
    def __init__(self, n):
        self.values = np.arange(float(n))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


class Dispatching(ArrayLike):
    def __array_function__(self, function, classes, args, kwargs):
        return "dispatched", function.__name__, self.values[-1]


class Operating(ArrayLike):
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return "operated", ufunc.__name__, method, self.values[-1]


class Interface:
    def __init__(self, n):
        self.values = np.arange(float(n))
        self.__array_interface__ = self.values.__array_interface__


class Series(ArrayLike):
    """Similar to pandas.Series."""

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[key]

    def __add__(self, other):
        return self.values + getattr(other, "values", other)

    __radd__ = __add__

    @property
    def shape(self):
        return self.values.shape

    def sum(self):
        return self.values.sum()


class Color(enum.Enum):
    RED, GREEN, BLUE = range(3)


class Number(enum.IntEnum):
    ONE, TWO, THREE = range(1, 4)


class IntLike(int):
    pass


class FloatLike(float):
    pass


class TextLike(str):
    pass


class ListLike(list):
    pass


class TupleLike(tuple):
    pass


class DictLike(dict):
    def __missing__(self, key):
        return key * 2


OBJECTS = {  # objects for n, which is 1, 2, 3
    "repr": Numbered,
    "str": made_with(__str__=lambda self: f"<{self.n}>"),
    "len": made_with(__len__=lambda self: self.n),
    "index": made_with(__index__=lambda self: self.n, __int__=lambda self: self.n),
    "float": made_with(__float__=lambda self: self.n / 2),
    "bool": made_with(__bool__=lambda self: self.n > 1),
    "iter": made_with(__iter__=lambda self: iter(range(self.n))),
    "sequence": made_with(__len__=lambda self: self.n, __getitem__=item_below),
    "call": made_with(__call__=lambda self, a: a * self.n),
    "getattr": made_with(__getattr__=lambda self, name: name + str(self.__dict__.get("n"))),
    "hash": made_with(__hash__=lambda self: self.n, __eq__=lambda self, other: self.n == other),
    "less": made_with(__lt__=lambda self, other: self.n < other),
    "array-like": ArrayLike,
    "dispatching": Dispatching,
    "operating": Operating,
    "interface": Interface,
    "series": Series,
    "array.array": lambda n: array.array("d", range(n)),
    "ctypes": lambda n: (ctypes.c_double * 2)(n, 2),
    "bytearray": lambda n: bytearray(range(n)),
    "memoryview": lambda n: memoryview(np.arange(float(n))),
    "deque": lambda n: collections.deque(range(n)),
    "set": lambda n: set(range(n)),
    "frozenset": lambda n: frozenset(range(n)),
    "default dict": lambda n: collections.defaultdict(int, a=n),
    "view of a dict": lambda n: {"a": n}.values(),
    "mapping proxy": lambda n: types.MappingProxyType({"a": n}),
    "user dict": lambda n: collections.UserDict(a=n),
    "user list": lambda n: collections.UserList(range(n)),
    "namespace": lambda n: types.SimpleNamespace(n=n),
    "partial": lambda n: functools.partial(pow, n),
    "decimal": lambda n: decimal.Decimal(n) / 2,
    "fraction": lambda n: fractions.Fraction(n, 3),
    "date": lambda n: datetime.date(2020, 1, n),
    "enum": lambda n: list(Color)[n - 1],
    "int enum": Number,
    "int": IntLike,
    "float subclass": FloatLike,
    "str subclass": lambda n: TextLike("x" * n),
    "list subclass": lambda n: ListLike(range(n)),
    "tuple subclass": lambda n: TupleLike(range(n)),
    "dict subclass": lambda n: DictLike(a=n),
    "list": lambda n: [1, n, 2.5],
    "nested list": lambda n: [[1, n], [2, 3]],
    "dict": lambda n: {"a": n},
    "text": lambda n: "abc"[:n],
    "generator": lambda n: (float(k) for k in range(n)),
    "iterator": lambda n: iter([1.0, n]),
    "function": lambda n: (np.sqrt, np.abs, np.square)[n - 1],
    "class": lambda n: (float, int, complex)[n - 1],
    "dtype": lambda n: np.dtype(("f4", "i4", "f8")[n - 1]),
    "slice": lambda n: slice(0, n),
    "negative int": lambda n: -n,
    "numpy's scalar": lambda n: np.float32(n),
    "datetime": lambda n: np.datetime64("2020-01-01") + n,
    "timedelta": lambda n: np.timedelta64(n, "D"),
    "masked": lambda n: np.ma.array(V + n, mask=[0, 1, 0]),
    "matrix": lambda n: np.matrix(V + n),
    "objects": lambda n: np.array([n, 1.5, None], object),
    "polynomial": lambda n: np.polynomial.Polynomial([n, 1.0]),
}
USES = {
    "format": lambda o: f"{o}",
    "repr": lambda o: repr(o),
    "percent": lambda o: f"{o!s}".join(["a", "%s" % o]),  # noqa: UP031
    "len": lambda o: len(o),
    "numbers": lambda o: (int(o), float(o)),
    "bool": lambda o: V if o else -V,
    "listed": lambda o: [q for q in o],
    "list": lambda o: list(o),
    "summed": lambda o: sum(o),
    "sorted": lambda o: sorted(o),
    "max": lambda o: max(o),
    "reversed": lambda o: list(reversed(o)),
    "enumerated": lambda o: list(enumerate(o)),
    "zipped": lambda o: list(zip(o, V)),  # noqa: B905
    "mapped": lambda o: list(map(lambda q: q * 2, o)),
    "reduced": lambda o: functools.reduce(operator.add, o, 0),
    "star": lambda o: (lambda *a: a)(*o),
    "first": lambda o: o[0],
    "item a": lambda o: o["a"],
    "missing": lambda o: o["q"],
    "in": lambda o: 1 in o,
    "equals": lambda o: o == 1,
    "less": lambda o: o < 2,
    "times": lambda o: V * o,
    "times two": lambda o: o * 2,
    "plus": lambda o: o + V,
    "power": lambda o: V**o,
    "negative": lambda o: -o,
    "absolute": lambda o: abs(o),
    "round": lambda o: round(o),
    "index": lambda o: V[o],
    "bound of a slice": lambda o: V[:o],
    "range": lambda o: [V * k for k in range(o)],
    "call": lambda o: o(V),
    "attribute": lambda o: o.n * V,
    "has": lambda o: [hasattr(o, n) for n in ("n", "shape", "dtype", "__len__", "__array__")],
    "get": lambda o: (getattr(o, "shape", None), getattr(o, "n", None), type(o).__name__),
    "key": lambda o: {o: 1}[o],
    "keys": lambda o: list(o.keys()),
    "copy": lambda o: copy.copy(o),
    "sqrt": lambda o: np.sqrt(o),
    "maximum": lambda o: np.maximum(V, o),
    "np.sum": lambda o: np.sum(o) + V,
    "mean": lambda o: np.mean(o),
    "cumsum": lambda o: np.cumsum(o),
    "where": lambda o: np.where(o, V, 0),
    "dot": lambda o: np.dot(V, o),
    "inner": lambda o: np.inner(o, V),
    "method dot": lambda o: V.dot(o),
    "stack": lambda o: np.stack([V, o]),
    "concatenate": lambda o: np.concatenate([V, o]),
    "asarray": lambda o: np.asarray(o) * 2,
    "array": lambda o: np.array(o, dtype=float) + 1,
    "float64": lambda o: np.float64(o),
    "measures": lambda o: (np.ndim(o), np.shape(o), np.size(o)),
    "zeros": lambda o: np.zeros(o),
    "zeros_like": lambda o: np.zeros_like(o),
    "astype": lambda o: V.astype(o),
    "take": lambda o: np.take(V, o),
    "clip": lambda o: np.clip(V, 0, o),
    "interp": lambda o: np.interp(o, V, V),
    "divmod": lambda o: divmod(V, o),
    "isclose": lambda o: math.isclose(o, 1),
    "add.reduce": lambda o: np.add.reduce(o),
}


def check_use(make, fn, is_attribute):
    compiled = cinductor.compile(fn, backend="interp")
    holder = Holder(None)
    inside = cinductor.compile((lambda h: fn(holder.held)) if is_attribute else lambda h: fn(h["held"]), backend="interp")
    for n in (1, 2, 3):
        expected = outcome(fn, make(n))
        assert outcome(compiled, make(n)) == expected
        holder.held = make(n)
        assert outcome(inside, V if is_attribute else {"held": make(n)}) == expected


@pytest.mark.parametrize("kind", range(len(OBJECTS)), ids=OBJECTS)
def test_attributes_of_an_object_are_looked_up_in_every_call(kind):
    """Each use of one kind of objects; the neighbouring kinds hold theirs in the other way."""
    make = [*OBJECTS.values()][kind]
    for number, (use, fn) in enumerate(USES.items()):
        try:
            check_use(make, fn, (kind + number) % 2 == 0)
        except AssertionError as wrong:
            raise AssertionError(f"use {use!r}: {wrong}") from wrong


# --- traced numbers are Python's ------------------------------------------------------------------

NUMBERS = [2.5, 3, 1j, True, np.float64(2.5), np.int8(3), np.bool_(True), np.array(2.5), V]
ASKED = [
    lambda x: x.shape,
    lambda x: x.dtype,
    lambda x: (x.ndim, x.size, x.T),
    lambda x: x.sum(),
    lambda x: x.astype(int),
    lambda x: x.nothing,
    lambda x: [hasattr(x, n) for n in "shape __len__ __iter__ imag is_integer bit_length".split()],
    lambda x: (getattr(x, "ndim", None), getattr(x, "T", None), getattr(x, "real")),  # noqa: B009
    lambda x: round(x),
    lambda x: len(x),
    lambda x: [*x],
    lambda x: (x.__class__.__name__, isinstance(x, np.generic), isinstance(x, float)),
    lambda x: V.astype(x),
    lambda x: np.zeros(2, dtype=x),
    lambda x: np.timedelta64(x, "m"),
]


@pytest.mark.parametrize("fn", ASKED, ids=range(len(ASKED)))
@pytest.mark.parametrize("x", NUMBERS, ids=repr)
def test_numbers_have_the_attributes_of_their_class(x, fn):
    def computed(x):
        return fn(x * 1)

    for each in (fn, computed):
        compiled = cinductor.compile(each, backend="interp")
        for _ in range(2):
            assert outcome(compiled, x) == outcome(each, x)


@pytest.mark.parametrize("product", [np.dot, np.inner])
@pytest.mark.parametrize("number", [-3, 2.0, 0.0, 1j, True, np.float32(2), 2**70])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i1", "?"])
def test_products_with_numbers(dtype, number, product):
    values = np.array([0, 1, 2]).astype(dtype)
    if values.dtype.kind in "fc":
        values[1] = np.inf

    def f(a, b):
        return product(a, b), product(b, a)

    compiled = cinductor.compile(f, backend="interp")
    for _ in range(2):
        assert outcome(compiled, values, number) == outcome(f, values, number)


class Giver:
    """An array of another package, whose methods of DLPack do what they are told to."""

    def __init__(self, device, error):
        self.device, self.error = device, error

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        raise self.error


@pytest.mark.parametrize("x", [np.ones(3), np.ones((2, 0)), np.arange(6.0).reshape(2, 3).T])
def test_memory_of_the_host_is_an_array_of_the_cpu(x):
    array = cinductor.from_dlpack(x)
    assert type(array) is cinductor.Array and array.device == "cpu" and array.strides == x.strides
    assert x.size == 0 or np.shares_memory(np.asarray(array), x)


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("error", [RuntimeError("stream"), AssertionError("cpu"), KeyError(3), TypeError("words")])
def test_an_exception_of_another_package_is_the_cause_of_a_buffer_error(error, place):
    with pytest.raises(BufferError, match="Giver does not share its memory") as raised:
        cinductor.from_dlpack(Giver((place, 0), error))
    assert raised.value.__cause__ is error
