"""What a function does to its arguments beside writing into them: shape, size, `__dict__`; which results are the very argument, and
which share memory. Compared with NumPy in the first call and in later ones.
"""

import copy

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
def sets_the_shape_behind_a_break(x):
    print(end="")
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
    return np.asarray(a.flat), np.copy(a.flat), np.array(a.T.flat), np.array(a.flat, copy=False), np.ravel(a.flat), np.asarray(a.flat[2:])


def outcome(fn, arguments):
    """What is returned or raised, the arguments behind it, and which results they are or share memory with."""
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
