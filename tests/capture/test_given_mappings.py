"""Tests dicts, sets and lists of numbers among the arguments: of any length, read, changed and grown by the call."""

import math

import numpy as np
import pytest

import cinductor

DATA = np.array([7, 3, 7, 11, 900, 3, 7, 64, 65, 3] * 12)


def counts(d, data):
    for v in data:
        if int(v) in d:
            d[int(v)] += 1
    return len(d)


def counts_all(d, data):
    for v in data:
        d[int(v)] = d.get(int(v), 0) + 1
    return len(d), d[7]


def defaults(d, data):
    total = 0
    for v in data:
        total += d.setdefault(int(v), 5)
    return total


def members(s, data):
    found = 0
    for v in data:
        found += int(v) in s
    return found, 7 in s, len(s)


def adds(s, data):
    for v in data:
        s.add(int(v))
    return len(s)


def in_order(s, data):
    total = len(data)
    for v in s:
        total = total * 31 % 1000003 + v
    return total


def items(d, data):
    total = 0.0
    for k, v in d.items():
        total += k * v
    return total + sum(d.values()) + len(d.keys()) + len(data)


def on_a_grid(d, data):
    total = 0
    for v in data:
        if (int(v), 1) in d:
            total += d[(int(v), 1)]
        d[(int(v), 2)] = total
    return total


def pairs(d, data):
    total = 0.0
    for v in data:
        a, b = d.get(int(v), (0, 0.5))
        total += a * b
    return total


def by_numpys_ints(d, data):
    total = 0
    for v in data:
        if v in d:
            total += d[v] + d.get(v, 3)
        total += d.get(v, 3) + ((v + 1) in d)
    return total


def members_by_numpys_ints(s, data):
    found = 0
    for v in data:
        found += v in s
    return found


def once(d, data):
    d[int(data[0]) + 5000] = 3
    d[int(data[0])] = 8
    return len(d)


def floats(n):
    return {7 * k: k * 0.25 - 3 for k in range(n)}


def ints(n):
    return {7 * k: k for k in range(n)}


def grid(n):
    return {(k, k % 3): k for k in range(n)}


def tuples(n):
    return {k: (k, 0.5 * k) for k in range(n)}


def numbers(n):
    return {977 * k % 4001 for k in range(n)}


CASES = [
    *((f, make) for f in (counts, counts_all, defaults) for make in (ints,)),
    *((f, floats) for f in (items, counts)),
    *((f, numbers) for f in (members, adds, in_order)),
    (on_a_grid, grid),
    (by_numpys_ints, ints),
    (members_by_numpys_ints, numbers),
    (pairs, tuples),
    (once, ints),
]


def entries(value):
    return [*value.items()] if isinstance(value, dict) else sorted(value)


@pytest.mark.parametrize(("f", "make"), CASES)
def test_dicts_and_sets(f, make):
    compiled = cinductor.compile(f)
    for n in (300, 300, 500, 65, 20, 300):
        wanted, given = make(n), make(n)
        assert f(wanted, DATA) == compiled(given, DATA)
        assert entries(wanted) == entries(given)
        assert [*map(repr, entries(wanted))] == [*map(repr, entries(given))]
    assert cinductor.explain(f, make(300), DATA).breaks == []


@pytest.mark.parametrize(("f", "make"), CASES)
def test_small_ones(f, make):
    compiled = cinductor.compile(f)
    for n in (5, 5, 9, 1, 0, 5):
        wanted, given = make(n), make(n)
        outcomes = []
        for g, value in ((f, wanted), (compiled, given)):
            try:
                outcomes.append(g(value, DATA))
            except KeyError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        assert [*map(repr, entries(wanted))] == [*map(repr, entries(given))]


@pytest.mark.parametrize(("f", "make"), [(counts_all, dict), (defaults, dict), (on_a_grid, dict), (adds, set), (once, dict)])
def test_empty_ones(f, make):
    compiled = cinductor.compile(f)
    data = np.append(7, DATA)
    for before in ((), (), (5, 900, 7), (), tuple(range(100, 400)), ()):
        wanted, given = (make(before) if make is set else dict.fromkeys(before, 1) for _ in range(2))
        assert f(wanted, data) == compiled(given, data)
        assert [*map(repr, entries(wanted))] == [*map(repr, entries(given))] and list(wanted) == list(given)
    assert f is once or cinductor.explain(f, make(), data).breaks == []


def test_empty_ones_that_are_one_object():
    def f(d, e, data):
        for v in data:
            d[int(v)] = e.get(int(v), 0) + 1
        return len(e)

    compiled = cinductor.compile(f)
    for same in (False, True, False, True):
        d, given = {}, {}
        assert f(d, d if same else {}, DATA) == compiled(given, given if same else {}, DATA) and d == given


def by_floats(d, data):
    total = 0
    for v in data:
        key = float(v) / 8
        if key in d:
            total += d[key]
        d[key] = d.get(key, 0) + 1
    return total, len(d)


def by_numpys_floats(d, data):
    total = 0
    for v in data / 8:
        total += d.get(v, 1)
    return total


@pytest.mark.parametrize("f", [by_floats, by_numpys_floats])
def test_floats_as_keys(f):
    compiled = cinductor.compile(f)
    for n in (300, 300, 500, 20, 0, 300):
        wanted, given = ({k / 8: k for k in range(n)} for _ in range(2))
        assert f(wanted, DATA) == compiled(given, DATA) and repr(wanted) == repr(given)
    assert cinductor.explain(f, {k / 8: k for k in range(300)}, DATA).breaks == []
    for odd in ({math.nan: 1, **{k / 8: k for k in range(300)}}, {-0.0: 1, **{k / 8: k for k in range(1, 300)}}):
        wanted, given = dict(odd), dict(odd)
        assert f(wanted, DATA) == compiled(given, DATA) and repr(wanted) == repr(given)


def test_items_that_have_not_changed_stay_the_same_objects():
    def f(d, data):
        for v in data:
            if int(v) in d:
                d[int(v)] += 0.5

    d = {k: 1000.5 + k for k in range(300)}
    before = dict(d)
    cinductor.compile(f)(d, DATA)
    changed = {k for k in d if d[k] is not before[k]}
    assert changed == {int(v) for v in DATA if int(v) in before} and all(d[k] > before[k] for k in changed)


def test_zeros_and_nans_are_kept():
    def f(d, data):
        for v in data:
            d[int(v)] = d[int(v)] * 1.0 if int(v) != 3 else -d[int(v)]
        return math.copysign(1.0, d[3])

    wanted, given = ({k: 0.0 if k < 5 else math.nan for k in range(1000)} for _ in range(2))
    assert f(wanted, DATA) == cinductor.compile(f)(given, DATA) and repr(wanted) == repr(given)


def test_the_object_is_the_callers():
    def f(d, e, data):
        for v in data:
            d[int(v)] = 1
        return d, d is e, e

    for same in (False, True):
        d = ints(300)
        e = d if same else ints(300)
        a, is_one, b = cinductor.compile(f)(d, e, DATA)
        assert a is d and b is e and is_one is same and d[900] == 1 and (900 in e) is same


@pytest.mark.parametrize(
    "value",
    [
        {k: "text" for k in range(300)},
        {str(k): k for k in range(300)},
        {k: k if k % 2 else 0.5 for k in range(300)},
        {1 << 70: 1, **{k: 1 for k in range(300)}},
        {True: 1, **{k: 1 for k in range(2, 300)}},
        {k: [1] for k in range(300)},
        {0.5 * k for k in range(300)},
        {*range(300), "a"},
    ],
)
def test_of_other_classes(value):
    def f(d, data):
        found = 0
        for v in data:
            found += int(v) in d
        return found, len(d)

    compiled = cinductor.compile(f)
    for _ in range(2):
        assert compiled(value, DATA) == f(value, DATA)


def looked_at(d, data):
    for v in data:
        if int(v) in d:
            d[int(v)] = 9
    return sorted(d.items())[:3], str(d)[:20], dict(d) == d


def printed(d, data):
    print(end="", flush=True)
    for v in data:
        d[int(v)] = 1
    print(end="", flush=True)
    return len(d)


def deleted(d, data):
    for v in data:
        if int(v) in d:
            del d[int(v)]
    return len(d)


def changed_and_iterated(s, data):
    for v in data:
        s.add(int(v))
    return [v for v in s]  # noqa: C416


@pytest.mark.parametrize(("f", "make"), [(looked_at, ints), (printed, ints), (deleted, ints), (changed_and_iterated, numbers)])
def test_other_uses_are_right(f, make):
    compiled = cinductor.compile(f)
    for _ in range(3):
        wanted, given = make(300), make(300)
        assert f(wanted, DATA) == compiled(given, DATA) and entries(wanted) == entries(given)


def test_a_dict_that_grows_while_it_is_iterated():
    def f(d):
        for k in d:
            d[k + 10000] = 1

    for g in (f, cinductor.compile(f)):
        with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
            g(ints(300))


# --- lists that grow ---


def appends(x, n):
    for i in range(n):
        x.append(x[i] * 2 - 1)
    return sum(x)


def appends_some(x, n):
    for i in range(n):
        if x[i] > 3:
            x.append(i)
    return len(x), x[-1]


def pops(x, n):
    total = 0
    while len(x) > n // 3:
        total += x.pop()
        if total % 5 == 0:
            x.append(2)
    return total


def appends_once(x, n):
    x.append(n)
    x[0] = 7
    return x[-1] + len(x)


def appends_twice(x, n):
    for i in range(n):
        x.append(i)
    for i in range(2 * n):
        if x[i] % 2:
            x.append(x[i] + 1)
    return x[::-1][:5]


def sorts(x, n):
    for i in range(n):
        x.append(i * 7 % 13)
    x.sort()
    return max(x), x.index(3)


@pytest.mark.parametrize("f", [appends, appends_some, pops, appends_once, appends_twice, sorts])
@pytest.mark.parametrize("size", [200, 30, 5])
def test_a_list_that_grows(f, size):
    compiled = cinductor.compile(f)
    for n in (20, 20, 5, 28):
        wanted, given = ([k % 11 for k in range(max(size, n))] for _ in range(2))
        assert f(wanted, n) == compiled(given, n) and wanted == given
        assert [*map(type, wanted)] == [*map(type, given)]
    report = cinductor.explain(f, [k % 11 for k in range(200)], 20)
    assert report.breaks == []


def test_a_list_that_gets_other_items():
    def f(x, n):
        for i in range(n):
            x.append(i + 0.5)
        return x[-1]

    compiled = cinductor.compile(f)
    for _ in range(2):
        wanted, given = [1] * 100, [1] * 100
        assert f(wanted, 5) == compiled(given, 5) and repr(wanted) == repr(given)
