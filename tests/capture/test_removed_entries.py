"""Tests dicts and sets made in a call from which data decide the entries that are removed, and those with floats as keys."""

import numpy as np
import pytest

import cinductor


def distinct_in_window(data, k):
    d, best, low = {}, 0, 0
    for high in range(len(data)):
        v = int(data[high])
        d[v] = d.get(v, 0) + 1
        while len(d) > k:
            u = int(data[low])
            d[u] -= 1
            if d[u] == 0:
                del d[u]
            low += 1
        best = max(best, high - low + 1)
    return best, len(d)


def toggled(data, k):
    d = {}
    for v in data:
        if int(v) in d:
            del d[int(v)]
        else:
            d[int(v)] = len(d)
    return len(d), k in d, d.get(k, -1)


def popped(data, k):
    d, total = {}, 0
    for v in data:
        total += d.pop(int(v) - 1, 5)
        d[int(v)] = k
    return total, len(d)


def popped_if_there(data, k):
    d, total = {}, 0
    for v in data:
        if v in d:
            total += d.pop(v)
        else:
            d[v] = 2 * int(v) + k
    return total, len(d)


def discarded(data, k):
    s, found = set(), 0
    for v in data:
        if int(v) in s:
            s.remove(int(v))
            found += 1
        else:
            s.add(int(v))
        s.discard(int(v) + k)
    return found, len(s), k in s


def by_floats(data, k):
    d = {}
    for v in data:
        key = float(v) / k
        d[key] = d.get(key, 0) + 1
        if d[key] > 3:
            del d[key]
    return len(d), d.get(1.0, 0)


def by_numpys_floats(data, k):
    d, values = {}, data / k
    for v in values:
        d[v] = d.get(v, 0) + 1
    return d


def by_pairs(data, k):
    s = set()
    for i in range(1, len(data)):
        key = (int(data[i - 1]), data[i] * 0.5)
        if key in s:
            s.discard(key)
        else:
            s.add(key)
    return len(s) + k


def by_signs_of_zero(data, k):
    d = {}
    for v in data:
        d[float(v % 2) * (1 - 2 * (int(v) % 3 == 0))] = k
    return d


FUNCTIONS = [
    *(distinct_in_window, toggled, popped, popped_if_there, discarded),
    *(by_floats, by_numpys_floats, by_pairs, by_signs_of_zero),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_entries_are_pythons(f):
    compiled = cinductor.compile(f)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data, k = rng.integers(0, rng.integers(2, 60), rng.integers(0, 300)), int(rng.integers(1, 9))
        assert repr(f(data, k)) == repr(compiled(data, k))
    report = cinductor.explain(f, np.arange(200) % 17, 3)
    assert report.breaks == [] and report.plain is None


def returned(data):
    d = {}
    for v in data:
        if int(v) in d:
            del d[int(v)]
        else:
            d[int(v)] = 1
    return d, list(d)


def returned_set(data):
    s = set()
    for v in data:
        if int(v) in s:
            s.remove(int(v))
        s.add(int(v) * 2)
    return s, list(s)


def iterated(data):
    d = {int(data[0]): 1, 5: 2}
    for v in data:
        d.pop(int(v), None)
        d[int(v) + 1] = 3
    total = 0
    for k in d:
        total = total * 3 + k
    return total


def removed_while_iterated(data):
    d = {}
    for v in data:
        d[int(v)] = 1
    for k in d:
        if k == 3:
            del d[k]
    return len(d)


def absent(data):
    d = {}
    for v in data:
        d[int(v)] = 1
    for v in data:
        del d[int(v)]
    return len(d)


def with_nans(data):
    d = {}
    for v in np.where(data % 2 == 0, np.nan, data):
        d[float(v)] = 1
    return len(d), float("nan") in d


@pytest.mark.parametrize("f", [returned, returned_set, iterated, removed_while_iterated, absent, with_nans])
def test_the_order_and_errors_are_pythons(f):
    compiled = cinductor.compile(f)
    for n in (5, 40, 40, 7):
        outcomes = []
        for g in (f, compiled):
            try:
                outcomes.append(repr(g(np.arange(n) % 11)))
            except (KeyError, RuntimeError) as error:
                outcomes.append(repr(error))
        assert outcomes[0] == outcomes[1]
