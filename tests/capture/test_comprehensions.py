"""Tests comprehensions: they behave as loops, and `sum`, `any` and `all` over them stop where Python's do."""

import copy
import math

import numpy as np
import pytest
from rewriting import plain

import cinductor
from cinductor.testing import assert_same

X = np.linspace(0.5, 1.5, 40)


def behaviour(fn, *args):
    """The result or exception of a call, and its arguments afterwards."""
    args = copy.deepcopy(args)
    try:
        result = fn(*args)
    except Exception as error:
        return type(error), str(error), args
    return result, args


def agree(fn, *calls, **settings):
    compiled = cinductor.compile(fn, backend="interp", **settings)
    for args in calls:
        got, want = behaviour(compiled, *args), behaviour(fn, *args)
        assert type(got) is type(want) and len(got) == len(want)
        assert_same(got, want)
    return compiled


def nodes(fn, *args):
    graph = cinductor.explain(cinductor.compile(fn, backend="interp"), *args).graph
    return sum(" = " in line for line in graph.splitlines())


def multiples(x, n):
    return sum(x * k for k in range(n))


def squares(x, n):
    return np.array([x[k] ** 2 for k in range(n)])


def any_above(x, n):
    return any(x[k] > 1.4 for k in range(n))


def all_below(x, n):
    return all(x[k] < 1.4 for k in range(n))


def how_many(x, n):
    return sum(1 for k in range(n) if x[k] > 1), sum(x[k] > 1 for k in range(n))


def length(x, n):
    return len([v for v in x[:n] if v > 1])


def products(x, n):
    return sum(a * b for a, b in zip(x[:n], x[:n] * 2))  # noqa: B905


def pairs(x, n):
    return sum(x[i] * x[j] for i in range(n) for j in range(10))


ONE_GRAPH = [multiples, squares, any_above, all_below, how_many, length, products, pairs]


@pytest.mark.parametrize("fn", ONE_GRAPH, ids=lambda f: f.__name__)
def test_as_many_nodes_for_any_number_of_iterations(fn):
    compiled = agree(fn, *((X, n) for n in (12, 30, 40, 20, 10, 1, 0)))
    assert compiled._cinductor_job.captures <= 4
    is_added = (
        fn in (multiples, products, pairs) and sum([0.1] * 10) == 1.0
    )  # a list at a time, with the errors
    assert is_added or nodes(fn, X, 12) == nodes(fn, X, 36)
    assert not cinductor.explain(compiled, X, 30).breaks


def tables(x, n):
    return np.array([[x[i] * x[j] for j in range(12)] for i in range(n)])


def lists(x, n):
    rows = [[x[i] + j for j in range(10)] for i in range(n)]
    return rows, len(rows), rows[-1][0], np.array(rows)


def one_row_for_all(x, n):
    row, rows = [], []
    for j in range(12):
        row.append(x[j] * 2)
    for _ in range(n):
        rows.append(row)
    row[0] = x[1]
    return rows, rows[0] is rows[-1], row


def last_row(x, n):
    rows = []
    for i in range(n):
        row = []
        for j in range(10):
            row.append(x[i] * j)
        rows.append(row)
    row[0] = x[1]
    return rows, row is rows[-1], np.array(rows)


@pytest.mark.parametrize("fn", [tables, lists, one_row_for_all, last_row], ids=lambda f: f.__name__)
def test_lists_of_lists(fn):
    agree(fn, (X, 12), (X, 15), (X, 2))


class Noted:
    """A number that records calls of its truth value and addition."""

    def __init__(self, log, value):
        self.log, self.value = log, value

    def __bool__(self):
        self.log.append(("bool", self.value))
        return self.value > 2

    def __radd__(self, other):
        self.log.append(("add", self.value))
        return other + self.value


def short_circuits(log):
    noted = [
        any(Noted(log, k) for k in range(9)),
        all(Noted(log, k) for k in range(3, 9)),
        all(Noted(log, k) for k in range(9)),
    ]
    return (
        noted,
        any([Noted(log, k) for k in range(6)]),
        sum(Noted(log, k) for k in range(4)),
        sum((Noted(log, k) for k in range(4)), len(log)),
        sum([Noted(log, k) for k in range(4)]),
    )


def mixed(x):
    return (
        sum(v for v in (1, True, 2.5, x[0], 3)),
        sum(v for v in [x, x * 2, 1]),
        sum([]),
        sum(v for v in ()),
    )


def not_to_be_added(x):
    return sum(v for v in (1, "a"))


def truth_of_arrays(x):
    return any(v for v in (x, x))


def of_nothing(x, n):
    return max(x[k] for k in range(n)), min([x[k] for k in range(n)])


def ends_before_it_raises(x, n):
    return any(x[k] > 1.0 for k in range(n))


def raises_whatever_was_found(x, n):
    return any([x[k] > 1.0 for k in range(n)])


def collected(x, n):
    return (
        list(x[k] for k in range(n)),  # noqa: C400
        tuple(x[k] * 2 for k in range(n)),
        sorted(-x[k] for k in range(n)),
        math.prod(x[k] for k in range(n)),
        {k: x[k] for k in range(n)},
        {k % 3 for k in range(n)},
        max((x[k], k) for k in range(n)),
    )


def shadowed(x):
    any, sum = (lambda values: "ours"), (lambda values: next(iter(values)))
    return any(v > 1 for v in x), sum(v * 2 for v in x)


def names_around(x, n):
    k = 7
    total = sum(x[k] for k in range(n))
    return total, k, [k for _ in range(2)], [[k * j for k in range(j)] for j in range(12)]


def late_names(x):
    makers = [lambda: v + w for v in x[:3]]  # noqa: B023
    w = 5
    return [f() for f in makers]


def set_by_calls(x):
    total = 0

    def add(v):
        nonlocal total
        total += v
        return total

    return [add(v) + total for v in x[:12]], total


def through_helpers(x, n):
    scale = 3.0

    def inner(i):
        return sum(x[i] * x[k] * scale for k in range(n))

    return np.array([inner(i) for i in range(n)])


def unbound(x, n):
    if n > 100:
        w = 1
    return [w for _ in range(n)]  # noqa: F821


def walrus(x, n):
    return [y := x[k] for k in range(n)], y


def in_a_loop(x, n):
    for i in range(n):
        x[i] = x[i] + sum(x[j] for j in range(i))
        if any(x[j] > 1e6 for j in range(i)):
            break
    return x, [v for v in x if v > 2], i


def tuples(x, n):
    return sum(i * v for i, v in enumerate(x[:n])), [
        (i, v * 2) for i, v in enumerate(x[:n]) if i % 2
    ]


MANY = [
    (mixed, X), (not_to_be_added, X), (truth_of_arrays, X), (of_nothing, X, 0), (of_nothing, X, 12),
    (ends_before_it_raises, X, 60), (raises_whatever_was_found, X, 60), (collected, X, 12), (collected, X, 3),
    (shadowed, X), (names_around, X, 12), (late_names, X), (set_by_calls, X), (through_helpers, X, 12), (unbound, X, 0),
    (unbound, X, 2), (unbound, X, 101), (walrus, X, 12), (in_a_loop, X, 30), (in_a_loop, X, 1), (tuples, X, 30), (short_circuits, []),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", MANY, ids=lambda c: f"{c[0].__name__}-{c[-1] if type(c[-1]) is int else ''}"
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_as_python(case, dynamic):
    fn, *args = case
    agree(fn, args, args, dynamic=dynamic)


def test_a_builtin_that_is_replaced():
    calls = []

    def ours(values):
        calls.append(type(values).__name__)
        return len(list(values))

    def f(x):
        return sum(v for v in x), any(v > 1 for v in x)

    assert_same(cinductor.compile(f, backend="interp")(X), f(X))
    f.__globals__["sum"] = ours
    try:
        assert cinductor.compile(f, backend="interp")(X)[0] == 40
        assert calls == ["generator"]
    finally:
        del f.__globals__["sum"]


def test_python_floats_are_added_as_python_does():
    def f(x, n):
        return (
            sum(float(x[k]) * 1e16 - 1e16 for k in range(n)),
            sum([0.1 * k for k in range(n)]),
            sum(0.1 for _ in range(n)),
        )

    agree(f, (X, 12), (X, 30), (X, 31))


def in_lambdas(x):
    rows = list(map(lambda row: [v + 1 for v in row], [x, x * 2]))
    return (lambda y: [v * 2 for v in y])(x), (lambda y: sum([v for v in y]))(x), rows


def lambda_that_stays(x):
    twice = lambda y: [v * 2 for v in y]  # noqa: E731
    return twice, twice(x)


def test_comprehensions_in_lambdas():
    """A lambda whose body is a comprehension is captured like other code of the user."""
    x = np.arange(5.0)
    assert not cinductor.explain(in_lambdas, x).breaks
    compiled = cinductor.compile(in_lambdas, backend="interp")
    for n in (5, 5, 3):
        mine, numpys = compiled(np.arange(float(n))), in_lambdas(np.arange(float(n)))
        assert repr(mine) == repr(numpys)
    kept, made = cinductor.compile(lambda_that_stays, backend="interp")(x)
    assert repr(made) == repr(lambda_that_stays(x)[1])
    assert repr(kept(x + 1)) == repr(lambda_that_stays(x)[0](x + 1))


def sum_of_some(x):
    return sum(v for v in x if v > 1)


def sum_of_some_used(x):
    return x - sum(v * 2 for v in x if v > 1) / 2


def sum_of_a_list_of_some(x):
    return sum([v for v in x if v > 1])


def extremes_of_some(x):
    return max(v for v in x if v > 1), min(v * 2 for v in x if v > 1)


def extremes_or_a_float(x):
    return max((v for v in x if v > 1), default=0.5), min((v for v in x if v > 1), default=-1.0)


def extreme_or_an_int(x):
    return max((v for v in x if v > 1), default=0), x + 1


def extreme_or_none(x):
    found = min((v for v in x if v > 1), default=None)
    return -1 if found is None else found * 2


def extreme_of_ints(x):
    return max((int(v) for v in x if v > 1), default=0) + 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize(
    "fn, breaks",
    [(sum_of_some, 0), (sum_of_some_used, 0), (sum_of_a_list_of_some, 0), (extremes_of_some, 0),
     (extremes_or_a_float, 0), (extreme_or_an_int, 0), (extreme_or_none, 1), (extreme_of_ints, 0)],
)  # fmt: skip
def test_what_passes_a_test_of_data(fn, breaks, dtype):
    """The loop is captured. A result that is a number or None, as data decide, breaks where it is used."""
    x = np.array([0.5, 1.5, 2.5, -3.0, 2.5, 1.0]).astype(dtype)
    calls = [(x,), (x * 0,), (x * 3,), (x[:0],), (x[:1] + 2,), (np.append(x, x),)]
    agree(fn, *calls)
    agree(fn, *calls[::-1], dynamic=True)
    if dtype is np.float64:
        report = cinductor.explain(fn, np.arange(40.0) / 10)
        assert len(report.breaks) == breaks
        assert any("for captured" in line for line in report.regions)


def test_a_nan_among_what_passes():
    nan = float("nan")
    for values in ([nan, 2.0, 1.5], [2.0, nan, 3.0], [nan, nan], [-0.0, 0.0, 2.0]):
        agree(extremes_or_a_float, (np.array(values),))
        agree(lambda x: max(v for v in x if not v < 0), (np.array(values),))


def test_a_conditional_expression_of_two_types_is_pythons():
    """The whole call had once been captured without loops."""

    def program(x):
        total, count = 0.0, 0
        for v in x:
            if v > 1:
                total += v
                count += 1
        return (total if count else 0), x * 2

    report = cinductor.explain(program, X)
    assert len(report.breaks) == 1 and any("for captured" in line for line in report.regions)
    agree(program, (X,), (X * 0,), (X,), (X[:0],))


def test_one_of_two_results_of_other_dtypes():
    def program(x):
        has_some = False
        for v in x:
            if v > 1:
                if has_some:
                    total = total + v  # noqa: F821
                else:
                    total, has_some = v, True
        if has_some:
            return total
        return 0

    assert not cinductor.explain(program, X).breaks
    agree(program, (X,), (X * 0,), (X,), (X[:0],))


i, j = 10, 100  # not the names of the comprehensions below

SCOPES = [
    lambda x: ([f(x) for f in [lambda v: v * j for j in range(3)]], j),  # noqa: B023
    lambda x: [f(x) for fs in {j: [lambda v, k=k: v * j + k for k in range(2)] for j in range(3)}.values() for f in fs],  # noqa: B023
    lambda x: [f(x) for f in (lambda j: [lambda v: v * j + i for i in range(2)])(5)],  # noqa: B023
    lambda x: [f(x) for f in [(lambda: (lambda v: v * j + i))() for i in range(2) for j in range(2)]],  # noqa: B023
    lambda x: [f(x) for f in list((lambda v: v + i * j) for i, j in zip(range(3), x, strict=False))],  # noqa: B023
    lambda x: [max(x.tolist(), key=lambda v: abs(v - i)) for i in range(3)],  # noqa: B023
    lambda x: [sorted(range(3), key=lambda v: v * i) for i in (1, -1)],  # noqa: B023
    lambda x: [sum(map(lambda v: v * i, x)) for i in range(3)],  # noqa: B023
    lambda x: [[y for y in (lambda: (i, j))()] for i in range(2)],  # noqa: B023
    lambda x: [f(x) for f in [(lambda i=i: lambda v: v * i + j)() for i in range(2)]],  # noqa: B023
    lambda x: [(lambda v: [v * i for i in range(i)])(x) for i in range(3)],  # noqa: B023
    lambda x: {i: (lambda: {i: v})() for i, v in {"a": 1, "b": x}.items()},  # noqa: B023
]


@pytest.mark.parametrize("fn", SCOPES)
def test_names_of_comprehensions_in_inner_functions(fn):
    def broken(x):
        print(end="")
        return fn(x)

    for given in (fn, broken):
        assert_same(plain(given)(X[:3]), given(X[:3]))
        agree(given, *[(X[:3],)] * 3)


def test_a_generator_expression_lets_no_stop_iteration_through():
    def program(x, it):
        return sum(next(it) + v for v in x)

    compiled = cinductor.compile(program, backend="interp")
    for k in (2, 9, 2, 9):
        want, got = (outcome(f, X, iter(range(k))) for f in (program, compiled))
        assert got == want, k


def outcome(f, *arguments):
    try:
        return repr(f(*arguments))
    except RuntimeError as error:
        return repr(error), repr(error.__cause__)
