"""Tests functions passed as arguments. Another function made by the same line needs no compile, and the values that
the function reads are read in each call.
"""

import copy
import functools
import types

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same

X = np.linspace(-1.0, 2.0, 7)


@pytest.fixture(autouse=True)
def no_profiles(tmp_path):
    """Ints recorded by other tests are not known here."""
    before = cinductor.cache.info()["directory"]
    cinductor.cache.set_directory(tmp_path / "cache")
    yield
    cinductor.cache.set_directory(before)


def apply(x, act):
    """The function that every test here compiles."""
    return act(x) + 1


def compile(fn=apply, **settings):
    return cinductor.compile(fn, **{"backend": "interp", **settings})


MANY = [[k] for k in range(12_000)]  # a guard that compares this module's namespace keeps none of these alive alone


def captures(compiled):
    return compiled._cinductor_job.captures


def agree(compiled, *args):
    assert_same(compiled(*args), compiled.__wrapped__(*copy.copy(args)))


def scaled(v, by=1.0, *, plus=0.0):
    return v * by + plus


def of_a_number(k):
    return lambda v: v * (k + 0.5)


def of_an_array(k):
    w = np.full(7, float(k))
    return lambda v: v * w + w.sum()


def of_a_default(k):
    return lambda v, by=k + 0.5, *, w=X + k: v * by + w


def of_a_function(k):
    def inner(v):
        return v * (k + 1.5)

    return lambda v: inner(v) + inner(v * 2)


def of_a_branch(k):
    def act(v):
        total = 0.0
        for i in range(v.shape[0]):
            if v[i] > 0:
                total += v[i] * (k + 0.25)
        return total

    return act


def of_a_partial(k):
    return functools.partial(scaled, plus=k * 2.5)


def of_a_partial_of_an_array(k):
    return functools.partial(lambda w, v: w @ v, np.full((3, 7), float(k)))


def of_a_partial_of_a_lambda(k):
    return functools.partial(lambda by, v: v * by - k / 2, k + 0.5)


amplified = lambda v: v * GAIN  # noqa: E731, F821


def of_many(k):
    a, b, names, steps = k + 0.5, np.full(7, k - 1.5), {"shift": k * 2.0}, [k / 4, np.arange(7.0) + k]

    def act(v):
        return v * a + b + names["shift"] - steps[0] * steps[1]

    return act


def of_itself(k):
    def act(v, depth=3):
        return v if depth == 0 else act(v, depth - 1) * (k + 0.5)

    return act


class Layer:
    def __init__(self, k):
        self.w, self.act = np.full(7, float(k)), np.sqrt

    def __call__(self, v):
        return self.act(v * self.w)

    def forward(self, v):
        return v + self.w


MAKERS = [
    of_a_number,
    of_an_array,
    of_a_default,
    of_a_function,
    of_a_branch,
    of_many,
    of_itself,
    of_a_partial,
    of_a_partial_of_an_array,
    of_a_partial_of_a_lambda,
    Layer,
    lambda k: Layer(k).forward,
    lambda k: functools.partial(Layer(k).forward),
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_a_function_made_for_each_call(make):
    f = compile()
    for k in range(0, 24, 2):
        agree(f, X + k, make(k + 0.0))
    assert captures(f) == 1 and f.failed_checks == 0


@pytest.mark.parametrize("make", [of_a_number, of_a_partial_of_a_lambda], ids=lambda m: m.__name__)
def test_a_function_of_ints_made_for_each_call(make):
    """Ints that such a function reads are treated like int arguments: constants first, then symbols."""
    f = compile()
    for k in (3, 4, 7, 100, 8, 5):
        agree(f, X, make(k))
    assert captures(f) == 2


def test_functions_in_containers():
    f = compile(lambda x, acts: acts["first"](x) + acts["rest"][1](x))
    for k in range(6):
        acts = {"first": of_a_number(k + 0.0), "rest": (1, of_an_array(k))}
        agree(f, X, acts)
    assert captures(f) == 1


def test_what_an_array_in_a_closure_has_counts():
    w = np.ones(7)

    def act(v):
        w[2] += 1
        return v * w

    f = compile()
    for n in range(3):
        got = f(X, act)
        assert w[2] == n + 2
        assert_same(got, X * w + 1)
    agree(f, X, of_an_array(3))
    assert captures(f) == 2


def test_a_closures_types_and_shapes_are_guarded():
    def of(value):
        return lambda v: v * value

    f = compile(dynamic=False)
    values = [1.5, 2, np.ones(7), np.ones((2, 7)), np.float32(3), None, 2.5, np.arange(7.0), np.float32(1)]
    for value in values:
        if value is None:
            with pytest.raises(TypeError):
                f(X, of(value))
        else:
            agree(f, X, of(value))
    assert captures(f) == 6
    first, then = of(np.ones(7)), of(np.ones(9))
    f = compile()
    f(X, first)
    why = f.specializations[0].why_not((X, then))
    line = apply.__code__.co_firstlineno
    assert why == f"value in act.shape[0] was 7 when compiled at test_given_functions.py:{line}, is 9 now"


def test_what_a_given_function_changes_is_changed():
    def counting():
        count, seen, w = 0, [], np.zeros(7)

        def act(v, kept=seen):
            nonlocal count
            count += 1
            kept.append(count)
            w[1] += count
            return v * count + w

        return act, lambda: (count, seen, w.copy())

    f = compile()
    for _ in range(3):
        (ours, mine), (theirs, its) = counting(), counting()
        for _ in range(3):
            assert_same(f(X, ours), apply(X, theirs))
            assert_same(mine(), its())


def test_an_array_that_is_an_argument_and_in_a_closure():
    f = compile()
    for k in range(6):
        x = X + k
        other = x if k % 2 else x.copy()

        def act(v, w=other):
            w[0] = 9
            return v + w

        y = X + k
        z = y if k % 2 else y.copy()
        z[0] = 9
        assert_same(f(x, act), y + z + 1)
        assert_same((x, other), (y, z))
    assert captures(f) == 2


def test_functions_of_different_lines_and_globals():
    f = compile()
    for act in (lambda v: v * 2, lambda v: v * 3, lambda v: v * 2 + 1, np.sqrt, np.abs, scaled, np.sum):
        with np.errstate(all="ignore"):
            agree(f, np.abs(X), act)
    assert captures(f) == 7
    f = compile()
    for gain in (2.0, 3.0, 4.0):  # other globals, the same code
        agree(f, X, types.FunctionType(amplified.__code__, {"GAIN": gain, "__name__": "m"}))
    assert captures(f) == 3


def test_defaults_that_are_set_later():
    def make():
        return lambda v, by=2.0, shift=1.0: v * by + shift

    f = compile()
    act = make()
    agree(f, X, act)
    act.__defaults__ = (3.0, 0.5)
    agree(f, X, act)
    assert captures(f) == 1
    act.__defaults__ = (3.0, 0.5, 1.0)[1:] + (2.0,)
    f(X, lambda v: v)
    act = make()
    act.__defaults__ = None
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        f(X, act)


def test_a_given_function_that_is_returned_is_that_one():
    f = compile(lambda x, act: (act(x), act, {"act": act}))
    for k in range(3):
        act = of_a_number(k + 0.0)
        value, same, inside = f(X, act)
        assert_same(value, act(X))
        assert same is act and inside["act"] is act
    assert captures(f) == 1


def test_guards_name_the_functions_line():
    f = compile()
    first, then = of_a_number(1.0), of_an_array(1)
    f(X, first)
    line = of_a_number.__code__.co_firstlineno
    assert f"act is the function <lambda> of test_given_functions.py:{line + 1}" in f.specializations[0].guards
    why = f.specializations[0].why_not((X, then))
    assert f"act was the function <lambda> of test_given_functions.py:{line + 1} when compiled" in why
    assert f"is the function <lambda> of test_given_functions.py:{of_an_array.__code__.co_firstlineno + 2} now" in why
    other = types.FunctionType(first.__code__, {}, None, None, first.__closure__)
    assert f.specializations[0].why_not((X, other)).endswith("is one with other globals now")
    again = types.FunctionType(first.__code__, first.__globals__, None, (X,), first.__closure__)
    assert f.specializations[0].why_not((X, again)).endswith("is one with other defaults now")


def code_of_closure(x):
    k = 2.0

    def g(v, q=1):
        w = v + k
        return w

    c = g.__code__
    return g(x).sum(), c.co_varnames, c.co_freevars, c.co_names, c.co_consts, c.co_firstlineno, c.co_name, c.co_argcount


def code_of_lambdas(x):
    g, h = lambda v: v * 2, lambda v: v.sum() + len(x)  # on one line
    return g(x).sum(), g.__code__.co_names, h.__code__.co_names


def code_inside(x):
    def g(v):
        def h(w):
            return w + len(x)

        return h(v) * 2, h.__code__.co_names

    return g(x)[0].sum(), g.__code__.co_varnames, g(x)[1]


def code_after_an_effect(x):
    def g(v):
        return v + len(x)

    SEEN.append(len(x))
    return g(x).sum(), g.__code__.co_freevars, g.__code__.co_flags


SEEN = []


@pytest.mark.parametrize("fn", [code_of_closure, code_of_lambdas, code_inside, code_after_an_effect])
def test_functions_made_in_the_call_have_their_code(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for n in (4, 3, 4):
        assert compiled(np.arange(float(n))) == fn(np.arange(float(n)))
