"""Tests `in` and `not in` with traced operands: Python's meaning, with identity and NaN."""

import math
import operator

import numpy as np
import pytest

import cinductor

NAN = math.nan
VALUES = [0, 1, 2, 3, -1, 2.0, 2.5, NAN, True, 1 << 60, math.inf, -0.0]
MEMBERS = [
    (2, 3),
    [0, 2.5],
    (),
    (1,),
    {2, 3},
    frozenset({0, 1}),
    {2.5, 7},
    (NAN, 1),
    (None, "a", 2),
    range(3),
    range(-4, 9, 3),
    range(9, -4, -2),
    range(0),
    (1 << 60, 5),
    {1: "one"},
]


@pytest.mark.parametrize("members", MEMBERS, ids=repr)
@pytest.mark.filterwarnings("ignore:cinductor")
def test_numbers_of_python(members):
    def f(x):
        return x in members, x not in members

    compiled = cinductor.compile(f, backend="interp")
    for value in VALUES:
        for _ in range(2):
            assert compiled(value) == f(value)
            assert [type(v) for v in compiled(value)] == [bool, bool]


@pytest.mark.parametrize("dtype", ["i8", "f8", "f4", "u1", "?", "c16"])
@pytest.mark.parametrize("members", MEMBERS, ids=repr)
def test_elements(members, dtype):
    """Elements that are only known at run time."""

    def f(x, out):
        for i in range(len(x)):
            if x[i] in members:
                out[i] = 1
            elif x[i] + 1 not in members and x[i]:
                out[i] = 2
        return out

    compiled = cinductor.compile(f, backend="interp")
    for shift in range(4):
        x = (np.arange(-3, 9) * 0.5 + shift).astype(dtype)
        if x.dtype.kind in "fc":
            x[4] = np.nan
        with np.errstate(all="ignore"):
            want = f(x, np.zeros(len(x)))
            assert compiled(x, np.zeros(len(x))).tolist() == want.tolist()


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x[0] in (x[1], x[2]),
        lambda x, y: x[0] in [y, 3.0],
        lambda x, y: y in (x[0], x[1]),
        lambda x, y: y in (y,),
        lambda x, y: 3.0 in (x[0], y),
        lambda x, y: y in x,
        lambda x, y: 2 in x,
        lambda x, y: (x[0] if x[1] > 0 else y) in (y, x[2]),
        lambda x, y: [v for v in range(3) if x[v] in (1.0, y)],
        lambda x, y: 1 if x[0] in (1.0, 2.0) and y not in (3.0,) else 2,
        lambda x, y: (1.0 < x[0]) in (True, x[1]),
    ],
)
def test_of_traced_members(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for values in ([1.0, 2.0, 3.0], [NAN, NAN, 1.0], [2.0, 2.0, NAN], [3.0, -1.0, 3.0], [0.0, -0.0, 0.0]):
        for y in (3.0, NAN, 1.0, -0.0):
            x = np.array(values)
            assert compiled(x, y) == fn(x, y)
            assert type(compiled(x, y)) is type(fn(x, y))


def test_stays_in_the_graph():
    def f(x, y):
        return x[0] in (2, 3), x[0] not in [y, 7], x[1] in {1, 2}, int(x[2]) in range(4), x[1] in x

    compiled = cinductor.compile(f, backend="interp", fullgraph=True)
    for k in range(12):
        x = np.arange(k, k + 3)
        assert compiled(x, k / 2) == f(x, k / 2)
    assert len(compiled.specializations) == 1


def test_objects_are_asked_themselves():
    class Odd:
        def __eq__(self, other):
            return other == 5

        __hash__ = None

    def f(x, odd):
        return x in (1, odd), x[0] in (odd, 2) if type(x) is np.ndarray else x in [odd]

    compiled = cinductor.compile(f, backend="interp")
    for x in (5, 1, 7.0, 5):
        assert compiled(x, Odd()) == f(x, Odd())


def test_arrays_among_members():
    def f(x, y):
        return x in (x, y), y in [x, y]

    compiled = cinductor.compile(f, backend="interp")
    x, y = np.arange(3), np.arange(3)
    for fn in (f, compiled):
        with pytest.raises(ValueError, match="ambiguous"):
            fn(x, y)
    assert compiled(np.array(1), np.array(2)) == f(np.array(1), np.array(2))


def grown(x):
    made = set()
    for pair in enumerate(x):
        made.add(pair)
    return made


def copied(x):
    made = set(enumerate(x))
    both = made | {(1, 2), (3, 3.0)}
    both ^= {(8, 9)}
    return made, both, frozenset(made)


def removed_and_added(x):
    made, total = {1, 2, 3}, 0.0
    made.remove(2)
    for v in x:
        made.add(len(made) + 5)
        total += v
        if total > 1e9:
            break
    return total, made


SETS = [
    grown,
    copied,
    removed_and_added,
    lambda x: {*enumerate(x)},
    lambda x: {(k, v) for k, v in enumerate(x)},
    lambda x: (frozenset(enumerate(x)), set({(v, 1): 0 for v in x})),
]


@pytest.mark.parametrize("f", SETS)
def test_sets_give_their_items_in_the_order_that_pythons_do(f):
    """The order of two items that collide depends on the order in which they were added."""
    compiled = cinductor.compile(f, backend="interp")
    for n in (4, 3, 7, 4, 12):
        assert repr(compiled(np.arange(float(n)))) == repr(f(np.arange(float(n))))


TABLE, ROWS, SEEN = {NAN: 2.0, 2.0: 3.0}, [NAN, 1.0], []
OF_TWO = {
    "sets": lambda a, b: (len({a, b}), len({a} | {b}), len({a} & {b}), a in {b}, len({(a, 1), (b, 1)})),
    "dicts": lambda a, b: (len({a: 1, b: 2}), {a: 1}.get(b), b in {a: 1}, {1: a} == {1: b}, len(dict.fromkeys([a, b]))),
    "lists": lambda a, b: (a in [b], [a].count(b), [a] == [b], [a, 1] < [b, 2], (a, 1) == (b, 1), (a,) in [(b,)], [b, a].index(a)),
    "hashes": lambda a, b: (hash(a) == hash(b), a is b),
    "a global": lambda a, b: (a in [NAN], {NAN: 1}.get(b), len({a, NAN, b})),
    "a table": lambda a, b: (TABLE.get(a), b in TABLE, TABLE[a] if a in TABLE else 0, {**TABLE}.get(b), TABLE == {NAN: a, 2.0: 3.0}),
    "rows": lambda a, b: (ROWS == [a, b], ROWS.count(b), [*ROWS] != ROWS, ROWS[:1] == [a], (ROWS + [b]).index(ROWS[-1]), b in ROWS),
    "chosen": lambda a, b: ([max(a, 1.0)] == [a], [a if a > 1.5 else b].count(b), max(b, 0.5) in [b], [+a] == [a], [a, b].index(max(b, 0.5))),
    "functions": lambda a, b: (operator.eq([a], [b]), operator.countOf([a, b], b), operator.contains([a], b), operator.ne((a,), (b,))),
    "nested": lambda a, b: ({1: [a]} == {1: [b]}, [[a], 1] < [[b], 2], [(a, "k")] == [(b, "k")], [None, a].count(b), {"a": a} != {"a": b}),
    "an effect": lambda a, b: (SEEN.append(1), [a] == [b], ROWS.count(a), b in ROWS, TABLE.get(a), a in {b}, {1: a} == {1: b})[1:],
    "arms": lambda a, b: (TABLE.get(b, 5.0) + a if a != 1.0 else a in {b, 3.0}, [TABLE.get(b, 5.0) if v else b in ROWS for v in (a == 1.0, a != 1.0)]),
    "data": lambda a, b: (a * 2 in [b], len({a * 2, b}), [a, b] == [b, a]),
}


@pytest.mark.parametrize("what", OF_TWO)
@pytest.mark.filterwarnings("ignore:cinductor")
def test_two_nans_are_one_if_they_are_one_object(what):
    one, other = float("nan"), np.float64("nan")
    values = [(1.0, 1.0), (one, one), (one, other), (2.0, one), (NAN, NAN), (other, other), (other, 2.0), (3.0, 4.0), (NAN, one)]
    for order in (values, values[::-1]):
        compiled = cinductor.compile(OF_TWO[what], backend="interp")
        for a, b in order * 2:
            assert repr(compiled(a, b)) == repr(OF_TWO[what](a, b)), (a, b)
