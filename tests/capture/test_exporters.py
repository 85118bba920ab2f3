"""Tests objects of other libraries that export their memory: their conversions to arrays are inputs of the program."""

import functools
import sys
import types

import numpy as np
import pytest

import cinductor
from cinductor.capture.calls import exporters

SAYS = []  # what conversions that are the user's have said


class Exporter:
    """An array of a library that is known."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def numpy(self):
        if self.array.dtype.kind == "c":
            raise RuntimeError("no such numbers")
        return self.array[...]


class Column:
    """A column of a table: it has no __dlpack__, and its conversion copies if it is told to."""

    def __init__(self, array, copies=False):
        self.array, self.copies = array, copies

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()

    def to_numpy(self):
        return self.array.copy() if self.copies else self.array[...]

    @property
    def values(self):
        return self.to_numpy()


class Table(Column):
    """Columns by name."""

    def __init__(self, **columns):
        self.columns = columns

    def __getitem__(self, name):
        return self.columns[name]


class Speaker:
    """An object of the user's, whose conversion has an effect."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        SAYS.append("converted")
        return self.array

    def __dlpack__(self, **options):
        SAYS.append("exported")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


LIBRARY = types.ModuleType("exporting_library")
sys.modules[LIBRARY.__name__] = LIBRARY  # what its functions refer to lives on, as that of an imported library does


def of_library(function):
    """The function as the library defines it."""
    return types.FunctionType(function.__code__, vars(LIBRARY), function.__name__, function.__defaults__)


for cls in (Exporter, Column, Table):
    for name, member in list(vars(cls).items()):
        if isinstance(member, property):
            setattr(cls, name, property(of_library(member.fget)))
        elif isinstance(member, types.FunctionType):
            setattr(cls, name, of_library(member))


class Patched(Column):
    """A column whose conversion the user has replaced by one that says where it comes from."""

    @functools.wraps(Column.to_numpy)
    def to_numpy(self):
        SAYS.append("patched")
        return self.array


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(exporters, "CALLED_WHOLE", exporters.CALLED_WHOLE | {LIBRARY.__name__})


def numbers(n=6):
    return np.arange(n) + 0.5


def whole(f, *made):
    """Compare calls with the plain function's, and require that none breaks. made: functions that make the arguments of a call."""
    g = cinductor.compile(f)
    for make in (*made, *made):
        wanted, given = make(), make()
        expected, got = f(*wanted), g(*given)
        np.testing.assert_array_equal(got, expected)
        for a, b in zip(wanted, given, strict=True):
            if hasattr(a, "array"):
                np.testing.assert_array_equal(b.array, a.array)
    assert cinductor.explain(g, *made[0]()).breaks == []
    return g


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (np.asarray(x) * 2).sum(),
        lambda x: np.array(x, np.float32) + 1,
        lambda x: np.from_dlpack(x).cumsum(),
        lambda x: x.numpy().mean(),
        lambda x: x.__array__()[::2] * 3,
    ],
)
def test_a_conversion_is_an_input(f):
    whole(f, lambda: (Exporter(numbers()),), lambda: (Exporter(numbers(9)),), lambda: (Exporter(numbers(12)[::3]),))


def test_writes_are_visible_in_the_object():
    def f(x, out):
        a = np.asarray(x)
        out.numpy()[:] = a * 2
        out.numpy()[0] += 1
        return out.numpy()[1:] - a[:-1]

    def overlapping():
        a = numbers(12)
        return Exporter(a[:6]), Exporter(a[3:9])

    g = whole(f, lambda: (Exporter(numbers()), Exporter(numbers())), overlapping)
    x = Exporter(numbers())
    assert np.array_equal(g(x, x), f(*[Exporter(numbers())] * 2))


def test_conversions_in_loops_and_branches():
    def f(x, y, k):
        total = 0.0
        for i in range(k):
            total += np.asarray(x)[i]
        return total + np.asarray(y)[0] if k > 2 else total

    whole(f, lambda: (Exporter(numbers()), Exporter(numbers(4)), 5), lambda: (Exporter(numbers()), Exporter(numbers(4)), 1))


def test_each_conversion_is_an_object_of_its_own():
    whole(lambda x: np.asarray(x) is np.asarray(x), lambda: (Exporter(numbers()),))
    a, b = cinductor.compile(lambda x: (x.numpy(), x.numpy()))(Exporter(numbers()))
    assert a is not b and np.shares_memory(a, b)


def test_the_object_is_read_anew_in_each_call():
    g, x = cinductor.compile(lambda x: np.asarray(x).sum()), Exporter(numbers())
    assert g(x) == 18
    x.array[0] = 100.5
    assert g(x) == 118
    x.array = np.ones(3, np.int32)
    assert g(x) == 3 and type(g(x)) is np.int64
    x.array = np.ones(3, complex)
    with pytest.raises(RuntimeError, match="no such numbers"):
        g(x)
    x.array = numbers()
    assert g(x) == 18


def test_an_object_that_changes_in_the_call():
    def f(x, other):
        x.array = other
        return np.asarray(x) + 1

    g = cinductor.compile(f)
    for _ in range(2):
        assert np.array_equal(g(Exporter(numbers()), numbers(3)), numbers(3) + 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: (t["a"].to_numpy() * t["b"].values).sum(),
        lambda t: np.asarray(t["a"]) - np.asarray(t["b"]),
    ],
)
@pytest.mark.parametrize("copies", [False, True])
def test_columns_of_a_table(f, copies):
    whole(f, lambda: (Table(a=Column(numbers(), copies), b=Column(numbers(), copies)),))


@pytest.mark.parametrize("copies", [False, True])
def test_a_column_after_a_write_is_converted_at_its_place(copies):
    def f(t):
        t.to_numpy()[0] = 7.0
        return t.to_numpy()[:2] * 2

    g = cinductor.compile(f)
    for _ in range(2):
        assert np.array_equal(g(Column(numbers(), copies)), f(Column(numbers(), copies)))
    assert "to_numpy" in str(cinductor.explain(g, Column(numbers(), copies)).breaks)


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize(
    ("cls", "f", "said"),
    [(Speaker, np.asarray, "converted"), (Speaker, np.from_dlpack, "exported"), (Patched, lambda x: x.to_numpy(), "patched")],
)
def test_code_of_the_users_runs_at_its_place(cls, f, said, backend):
    def function(x, k):
        if k > 1:
            return f(x) * 2
        return x

    g = cinductor.compile(function, backend=backend)
    for k in (2, 2, 0, 2):
        SAYS.clear()
        function(cls(numbers()), k)
        wanted = [*SAYS]
        SAYS.clear()
        g(cls(numbers()), k)
        assert wanted == SAYS == [said] * (k > 1)


def test_the_hint_of_a_tensors_operators():
    assert 'torch.compile(fn, backend="cinductor")' in cinductor.report.reasons.hint_for("an operator of class Tensor")
