"""Tests views of dicts, and iterators over them, whose keys data decide: they show what the dict has when they are read."""

import itertools

import numpy as np
import pytest

import cinductor
from cinductor import testing


def length(data, d):
    keys, total = d.keys(), 0
    for v in data:
        d[int(v)] = 1
        total += len(keys)
    return total


def truth(data, d):
    items, total = d.items(), 0
    for v in data:
        if v > 3:
            d[int(v)] = 1
        if items:
            total += 1
    return total


def iterated(data, d):
    items, total = d.items(), 0
    for v in data:
        d[int(v)] = int(v)
        for k, item in items:
            total += k + item
    return total


def asked(data, d):
    keys, total = d.keys(), 0
    for v in data:
        total += (3 in keys) + (int(v) in keys)
        d[int(v)] = 1
    return total


def joined(data, d):
    keys, total = d.keys(), 0
    for v in data:
        d[int(v)] = 1
        total += len(keys & {3, 4})
    return total


def read_after(data, d):
    values, keys = d.values(), d.keys()
    for v in data:
        d[int(v)] = int(v)
    return len(values), list(keys), sum(values), sorted(keys | {99}), max(values)


def returned(data, d):
    before = d.keys()
    for v in data:
        d[int(v)] = 1
    return before, d.keys(), d.values(), d.items()


def twice(data, d):
    for v in data:
        d[int(v)] = 1
    items, total = d.items(), 0
    for k, item in items:
        total += k * item
    for k, item in items:
        total += 10 * k * item
    return total


def nested(data, d):
    for v in data:
        d[int(v)] = 1
    keys, total = d.keys(), 0
    for a in keys:
        for b in keys:
            total = (total * 3 + a * b) % 1000003
    return total


def zipped(data, d):
    for v in data:
        d[int(v)] = 1
    keys = d.keys()
    return list(zip(keys, keys))  # noqa: B905


def no_iterator(data, d):
    total = 0
    for v in data:
        total += d.get(int(v), 0)
        d[int(v)] = 1
    return next(d.items()), total


def grown_later(data, d):
    for v in data[:20]:
        d[int(v)] = 1
    keys = d.keys()
    count = len(keys)
    for v in data[20:]:
        d[int(v) + 5] = 1
    return count, len(keys), list(keys)


def iterator_of_set(data, d):
    s = {int(data[0])}
    steps = iter(s)
    for v in data:
        s.add(int(v))
    return next(steps)


FUNCTIONS = [length, truth, iterated, asked, joined, read_after, returned, twice, nested, zipped, no_iterator, grown_later, iterator_of_set]


def outcome(f, data, d):
    try:
        return repr((f(data, d), d))
    except (TypeError, RuntimeError) as error:
        return repr(error)


@pytest.mark.parametrize("first", [{}, {1: 1, 2: 5}], ids=["empty", "two"])
@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_views_show_what_the_dict_has(f, is_made, first):
    def with_a_copy(data, d):
        return f(data, dict(d))

    function = with_a_copy if is_made else f
    compiled = cinductor.compile(function)
    for seed in range(4):
        data = np.random.default_rng(seed).integers(0, 7, 40)
        assert outcome(compiled, data, dict(first)) == outcome(function, data, dict(first))


@pytest.mark.parametrize("f", [length, truth, iterated, twice, nested])
def test_columns_are_read_through_views(f):
    def of_a_new_one(data):
        return f(data, {})

    report = cinductor.explain(of_a_new_one, np.arange(200) % 7)
    assert report.breaks == [] and report.plain is None


def test_a_dict_is_made_real_when_python_runs_the_rest():
    """A loop breaks in each iteration while data have decided a dict's keys."""

    def f(data, out):
        d, total = {}, 0
        for v in data:
            d[int(v)] = 1
        for v in data:
            out.append(float(v))
            if v > 3:
                total += 1
        return d, total

    compiled = cinductor.compile(f)
    for n in (200, 200, 90):
        data = np.arange(n) % 7
        assert repr(compiled(data, [])) == repr(f(data, []))


def items_counted(x, d, e):
    it = iter(d.items())
    for v in x:
        d[v] = v
    return sum(b for _, b in it)


def views_zipped(x, d, e):
    it = zip(d.keys(), d.values())
    for v in x:
        d[v] = v
    return [*it]


def empty_listed(x, d, e):
    it = iter(e)
    for v in x:
        e[v] = v
    return [*it]


def empty_asked(x, d, e):
    it = iter(e)
    for v in x:
        e[v] = v
    return next(it, 7.0)


def chained(x, d, e):
    it = itertools.chain(e, d)
    for v in x:
        e[v] = v
    return [*it]


def sought(x, d, e):
    it = iter(d.keys())
    for v in x:
        d[v] = v
    return 3.0 in it


def made_and_mapped(x, d, e):
    t = {1.0: 1.0}
    it, first = map(abs, t), enumerate(t)
    next(first)
    for v in x:
        t[v] = v
    return [*first] if len(x) > 4 else [*it]


def raised_twice(x, d, e):
    it, seen = iter(d.items()), []
    for v in x:
        d[v] = v
    for _ in range(2):
        try:
            next(it)
        except RuntimeError as error:
            seen.append(str(error))
    return seen, len(d)


def filtered(x, d, e):
    t = {}
    it = filter(None, t)
    for v in x:
        t[v] = v
    return 3.0 in it


def set_listed(x, d, e):
    t = {0.5}
    it = iter(t)
    next(it)
    for v in x:
        t.add(v)
    return [*map(abs, it)]


@pytest.mark.parametrize("fn", [filtered, set_listed, items_counted, views_zipped, empty_listed, empty_asked, chained, sought, made_and_mapped, raised_twice])
def test_iterators_made_before_a_dict_grows(fn):
    def args(n):
        return np.arange(float(n)) + 1, {1.0: 2.0, 3.0: 4.0}, {}

    compiled = cinductor.compile(fn, backend="interp")
    for n in (5, 3, 0, 5, 3):
        ours, theirs = args(n), args(n)
        (got, raised), (want, expected) = testing.outcome(compiled, ours), testing.outcome(fn, theirs)
        assert (got, repr(raised)) == (want, repr(expected))
        assert ours[1:] == theirs[1:]
