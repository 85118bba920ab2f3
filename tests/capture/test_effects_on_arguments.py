"""Tests effects on arguments other than writes of elements: shape, size, `__dict__`; also which results are the
argument itself or share memory with it. The first call and later ones are compared with NumPy.
"""

import copy
import linecache
import math

import numpy as np
import pytest

import cinductor


class P:
    def __init__(self):
        self.a, self.b = np.ones(2), 2

    def __repr__(self):
        return str(sorted(self.__dict__.items()))


CASES = []


def case(make):
    def enter(fn):
        CASES.append(pytest.param(fn, make, id=fn.__name__))
        return fn

    return enter


def three():
    return (np.ones(3),)


def owner():
    return (P(),)


@case(three)
def sets_the_shape(x):
    x.shape = (-1, 1)


@case(three)
def writes_and_sets_the_shape(x):
    x += 1
    x.shape = (-1, 1)
    return x * 2


@case(three)
def sets_the_shape_by_another_name(x):
    y = x
    y.shape = (1, x.size)
    return y is x


@case(three)
def sets_the_shape_of_a_view(x):
    v = x[1:]
    v.shape = (1, -1)
    return v, x


@case(three)
def sets_the_shape_in_a_loop(x):
    for i in range(12):
        x.shape = (1, 3) if i % 2 else (3, 1)
        x[0] += i
    return x


@case(three)
def sets_the_shape_in_arms(x):
    if x.sum() > 1:
        x.shape = (1, 3)
    else:
        x.shape = (3, 1)
    return x


@case(three)
def sets_the_shape_after_a_break(x):
    print(end="", flush=True)
    x.shape = (3, 1)
    return x + 1


@case(three)
def sets_a_shape_that_does_not_fit(x):
    x.shape = (2, 5)


@case(three)
def sets_the_shape_by_setattr(x):
    x.shape = 3, 1
    return x


@case(three)
def sets_the_dtype(x):
    x.dtype = np.int64
    return x


@case(three)
def sets_the_shape_of_a_transpose(x):
    y = x.T
    y.shape = (3, 1)
    return x, y


@case(three)
def resizes_what_it_made(x):
    w = x + 1
    w.resize(5)
    return w


@case(owner)
def returns_the_dict(p):
    return p.__dict__


@case(owner)
def writes_into_the_dict(p):
    p.__dict__["y"] = p.a * 2
    return p.b


@case(owner)
def reads_and_writes_the_dict(p):
    d = p.__dict__
    d["a"] = d["a"] + 1
    return d["a"]


@case(owner)
def updates_the_dict(p):
    p.__dict__.update(b=7, c=9)
    return p.b


@case(owner)
def looks_into_the_dict(p):
    return list(p.__dict__), len(p.__dict__), "b" in p.__dict__, p.__dict__.get("b", 0) * 2


@case(owner)
def sets_the_dict(p):
    p.__dict__ = {"a": 1}
    return p.a


@case(owner)
def copies_the_object(p):
    q = copy.copy(p)
    q.a = 5
    return q.a, p.a


@case(owner)
def copies_the_dict(p):
    return dict(p.__dict__), {**p.__dict__}


@case(owner)
def deletes_from_the_dict(p):
    del p.__dict__["b"]
    return p


@case(lambda: (np.ones(3), np.zeros(3)))
def one_of_its_arguments(x, y):
    return y if x.sum() > 100 else x


@case(three)
def the_argument_several_times(x):
    return [x, x], (x,) * 2, np.asarray(x), x.reshape(x.shape), np.ascontiguousarray(x)


@case(lambda: (np.arange(6.0).reshape(2, 3),))
def writes_through_array_flat(a):
    v = np.array(a.flat)
    v[3] = -99
    return a


@case(lambda: (np.arange(6.0).reshape(2, 3),))
def arrays_of_flat(a):
    return (
        np.asarray(a.flat),
        np.copy(a.flat),
        np.array(a.T.flat),
        np.array(a.flat, copy=False),
        np.ravel(a.flat),
        np.asarray(a.flat[2:]),
    )


@case(lambda: (np.arange(12.0)[::2],))
@case(lambda: (np.arange(6.0).reshape(2, 3).T,))
@case(lambda: (np.arange(6.0).reshape(2, 3),))
def arrays_of_flat_between_its_items(a):
    items = a.flat
    first = next(items), np.array(items), items.index, np.sum(items), next(items), np.asarray(items), np.concatenate([items, items])
    return *first, next(items), items.index


def outcome(fn, arguments):
    """The result or exception, the arguments after the call, and which results are arguments or share memory with
    them.
    """
    try:
        result = fn(*arguments)
    except Exception as error:
        result = repr(error)
    results = result if isinstance(result, tuple) else (result,)
    arrays = [r for r in results if isinstance(r, np.ndarray)]
    given = [a for a in arguments if isinstance(a, np.ndarray)]
    shared = [np.shares_memory(a, r) for a in given for r in arrays]
    same = [r is a for r in results for a in arguments]
    layouts = [(a.shape, a.strides, a.dtype) for a in (*given, *arrays)]
    return repr(result), [repr(a) for a in arguments], shared, same, layouts


@pytest.mark.parametrize("fn, make", CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_as_in_numpy(fn, make):
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        assert outcome(compiled, make()) == outcome(fn, make())


def test_the_dict_of_an_argument_is_the_dict():
    p = P()
    compiled = cinductor.compile(lambda p: p.__dict__, backend="interp")
    assert compiled(p) is p.__dict__ and compiled(p) is p.__dict__
    assert type(p.a) is np.ndarray


def draws(x, s):
    x += 1
    y = np.random.default_rng(3).normal(scale=s, size=3)
    x[0] += y[0] * 0
    return x


def draws_ints(x, s):
    x += 1
    x[:3] += np.random.default_rng(3).integers(0, int(s * 4), 3)
    return x


def chooses(x, s):
    x += 1
    return np.random.default_rng(3).choice(x, p=[s, s])


def seeds(x, s):
    x += 1
    np.random.seed(int(s * 4))
    return np.random.rand()


def asks_for_quantiles(x, s):
    x += 1
    y = np.quantile(x, [s, s])
    x += y[0]
    return x


def adds_runs(x, s):
    x += 1
    return np.add.reduceat(x, [0, int(s * 4)])


def sorts_into_bins(x, s):
    x += 1
    y = np.digitize(x, np.array([0, s, 0.75]))
    x += y
    return x


def folds_under_a_mask(x, s):
    x += 1
    return np.logaddexp.reduce(x, where=np.ones(max(1, int(s * 4)), bool))


@pytest.mark.parametrize(
    "fn",
    [
        draws,
        draws_ints,
        chooses,
        seeds,
        asks_for_quantiles,
        adds_runs,
        sorts_into_bins,
        folds_under_a_mask,
    ],
)
def test_a_library_call_that_raises_has_written_nothing(fn):
    """The original function runs then, and writes once."""
    compiled = cinductor.compile(fn, backend="interp")
    for s in (0.5, 0.5, 0.25, -2.0, 0.5, 9.0, -2.0):
        with np.errstate(all="ignore"):
            assert outcome(compiled, (np.arange(2.0), s)) == outcome(fn, (np.arange(2.0), s))


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("operator", ["+", "*", "**", "//"])
def test_an_operator_that_raises_has_written_nothing(operator, backend):
    """If NumPy runs an operator in place, the original function begins with the array as it was before."""
    source = f"def fn(x, y, n):\n    for i in range(n):\n        y[i:] {operator}= x[i:gcd(n, i)]\n"
    linecache.cache[operator] = (len(source), None, source.splitlines(True), operator)
    space = {"gcd": math.gcd}
    exec(compile(source, operator, "exec"), space)
    compiled = cinductor.compile(space["fn"], backend=backend, dynamic=True)
    for n in (4, 4, 1, 3):
        x, y = np.arange(float(n)) + 2, np.arange(float(n)) + 3
        assert outcome(compiled, (x, y.copy(), n)) == outcome(space["fn"], (x, y.copy(), n))


LINES = """
values.flat[1:] = values.ravel()[:-1]
values.flat[[1, 2]] = values.ravel()[:2]
values.flat = values.T
values.flat = values.ravel()[::-1]
values.flat[::2] = values.flat[::-2]
"""


@pytest.mark.parametrize("line", LINES.split("\n")[1:-1])
def test_what_reads_an_array_while_it_writes_it(line):
    space = {}
    source = f"def fn(values):\n    {line}\n    return values\n"
    linecache.cache[line] = (len(source), None, source.splitlines(True), line)
    exec(compile(source, line, "exec"), space)
    compiled = cinductor.compile(space["fn"], backend="interp")
    for shape in ((2, 3), (2, 3), (3, 4)):
        values = np.arange(float(np.prod(shape))).reshape(shape)
        assert outcome(compiled, (values.copy(),)) == outcome(space["fn"], (values.copy(),))


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "f4", "c8"])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("value", [5, -1, 300, 2.5, True, 1j])
def test_which_numbers_are_copied_into_an_array(dtype, value):
    def fn(a, casting):
        np.copyto(a, value, casting)
        return a

    for casting in ("same_kind", "safe", "unsafe", "equiv"):
        compiled = cinductor.compile(fn, backend="interp")
        with np.errstate(all="ignore"):
            assert outcome(compiled, (np.zeros(3, dtype), casting)) == outcome(
                fn, (np.zeros(3, dtype), casting)
            )


@pytest.mark.parametrize("call", ["sum(axis=k)", "max(k)", "reshape(k, -1)", "reshape((k, 2))", "cumsum(k)", "squeeze(k)", "argmax(k)"])
def test_what_numpy_takes_for_an_axis_or_a_size(call):
    """NumPy refuses bools, and lists of axes."""
    space = {}
    line = f"def fn(x, k):\n    return x.{call}\n"
    linecache.cache[call] = (len(line), None, [line], call)
    exec(compile(line, call, "exec"), space)
    compiled = cinductor.compile(space["fn"], backend="interp")
    for k in (0, True, False, [0], (0,), (1,), (True,), (0, 1), range(1), np.array([0]), np.array(0), np.int8(0), np.bool_(True)):
        x = np.arange(2.0).reshape(1, 2)
        assert outcome(compiled, (x, k)) == outcome(space["fn"], (x, k))
