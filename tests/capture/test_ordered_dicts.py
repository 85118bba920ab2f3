"""Tests collections.OrderedDict: made in a call or given to one, changed in loops and branches, iterated, returned."""

import collections
from collections import OrderedDict

import cases
import numpy as np
import pytest
from test_regions import check, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
X = np.arange(1.0, 8.0)
CASES = []
case = cases.entering(CASES)


@case(X)
def items_are_carried(x):
    d = OrderedDict(u=x * 2, v=0.0)
    for i in range(len(x)):
        d["v"] += x[i]
        d["u"] = d["u"] * 0.5 + d["v"]
    return d


@case(X)
@case(-X)
def a_branch_sets_items(x):
    d = OrderedDict([("a", 1.0), ("b", x * 1), ("c", 3.0)])
    d.move_to_end("a")
    d["a"] = d["a"] * x[3]
    if x[0] > 0:
        d["b"] = d["b"] + 1
        d["a"] = x[1]
    else:
        d["a"] += x[2]
    return d, list(d), [*d.items()]


@case(X)
@case(-X)
def a_key_returns_to_the_end(x):
    d = OrderedDict(a=1.0, b=2.0, c=3.0)
    for i in range(len(x)):
        if x[i] > 3:
            d["b"] = d["b"] * x[i]
    del d["a"]
    d["a"] = x[0]
    d.move_to_end("c", last=False)
    return d.popitem(), d.popitem(last=False), d


@case(X)
@case(-X)
def set_while_it_is_iterated(x):
    d, seen = OrderedDict([("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0)]), []
    del d["a"]
    d.move_to_end("b")
    for k in d:
        seen.append(k)
        if x[0] > 0:
            d[k] = x[1]
    for _, v in d.items():
        seen.append((k, v))
        if x[0] < 0:
            d[k] = v * x[2]
    return seen, [*d.values()], [*reversed([*d.keys()])]


@case(X)
@case(-X)
def aliases_see_each_change(x):
    d = OrderedDict(a=x, b=1.0)
    e, held = d, [d]
    for _ in range(9):
        e["a"] = e["a"] * 0.5
        if x[0] > 0:
            held[0]["b"] = held[0]["b"] + d["a"][1]
    return d["a"], d["b"], e is d, held[0] is d


@case(X)
def a_cache_of_the_last(x):
    cache, hits = OrderedDict(), 0
    for i in range(9):
        k = i * i % 4
        if k in cache:
            hits += 1
            cache.move_to_end(k)
        else:
            cache[k] = x * k
        if len(cache) > 2:
            cache.popitem(last=False)
    return hits, cache, cache.get(7), cache.setdefault("u", x[0]), len(cache)


@case(X)
def made_of_others(x):
    d = OrderedDict(zip("ab", x, strict=False))
    e = OrderedDict(d, c=x)
    e.update(OrderedDict(z=1.0, a=2.0))
    f = e.copy()
    f |= {"y": x[1]}
    return d, e, f, e | d, dict(e), {**d}, OrderedDict.fromkeys("ab", 0.0), bool(d), "a" in e


@pytest.mark.parametrize("fn, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_whole(fn, args):
    check(fn, *args)


def left_after_a_change(x):
    d, t = OrderedDict(a=1.0, b=2.0, c=3.0), 0.0
    for k in d:
        t += d[k]
        if x[0] > 0:
            d["new"] = x[0]
            break
    for i in range(len(x)):
        if x[i] > 4:
            d.pop("a", None)
            break
    return t, d


def changed_while_it_is_iterated(x):
    texts, seen = [], []
    for change in (
        lambda d: d.move_to_end("a"),
        lambda d: d.pop("c", 0),
        lambda d: d.update(new=x),
        lambda d: d.__setitem__("a", x),
    ):
        d = OrderedDict(a=1.0, b=2.0, c=3.0)
        for iterable in (d, d.keys(), d.items(), d.values()):
            try:
                for k in iterable:
                    seen.append(k)
                    change(d)
            except RuntimeError as error:
                texts.append(str(error))
    last = OrderedDict(a=x)
    for k in last:
        last[k + "x" * (len(last) < 2)] = x
    return texts, len(seen), last


def exceptions(x):
    d, texts = OrderedDict(a=x), []
    for f in (lambda: d["z"], lambda: d.pop("z"), lambda: d.move_to_end("z"), lambda: OrderedDict().popitem(), lambda: OrderedDict(1)):
        try:
            f()
        except (KeyError, TypeError) as error:
            texts.append((type(error), str(error)))
    if x[0] > 0:
        d["b"] = x
        raise ValueError([*d])
    return texts


def attributes(x):
    d = OrderedDict(a=x)
    d.note = x * 2
    if x[0] > 0:
        d.note = d.note + 1
    return d, d.note


def compared(x):
    d, e = OrderedDict(a=1.0, b=2.0), OrderedDict(b=2.0, a=1.0)
    return d == e, d == dict(e), d != e, str(d), (x[0] > 0 and d) == d


def equal_keys(x):
    d = OrderedDict({1: x[0], 2: x[1]})
    for _ in range(8):
        if x[2] > 0:
            del d[1]
            d[1.0] = x[3]
            d.move_to_end(2)
    return [*map(repr, d)], d


@pytest.mark.parametrize("fn", [left_after_a_change, changed_while_it_is_iterated, exceptions, attributes, compared, equal_keys])
@pytest.mark.parametrize("x", [X, -X], ids=["up", "down"])
def test_as_in_python(fn, x):
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        got, want = outcome(compiled, (x.copy(),)), outcome(fn, (x.copy(),))
        same(got, want)
        if fn is attributes:
            same(vars(got[0]), vars(want[0]))


def weighed(d, x):
    total = x * 0
    for _, v in d.items():
        total = total * 2 + v
    d["a"] = total[0]
    return total, [*d], d.get("z")


def test_an_argument_is_read_in_its_order():
    """The order of an OrderedDict is not that of the dict in it, which move_to_end leaves as it is."""
    compiled = cinductor.compile(weighed, backend="interp", fullgraph=True)

    def orders():
        d = OrderedDict(a=1.0, b=X, c=3.0)
        yield d
        d.move_to_end("a")
        yield d
        d["z"] = 2.0
        yield d
        yield OrderedDict(a=1.0, b=X, c=3.0)

    for ours, theirs in zip(orders(), orders(), strict=True):
        same(compiled(ours, X), weighed(theirs, X))
        same([*ours.items()], [*theirs.items()])


class Loud(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.last = key


def test_a_class_of_the_users_has_its_own_methods():
    def fn(x):
        d = Loud(a=x)
        d["b"] = x[0]
        if x[0] > 0:
            d["c"] = x[1]
        return d.last, [*d], d["b"]

    for x in X, -X:
        same(cinductor.compile(fn, backend="interp")(x), fn(x))


def test_other_code_sees_real_values():
    seen = []

    def fn(x):
        d = OrderedDict(a=x[0], b=x + 1)
        d.move_to_end("a")
        seen.append((type(d), [*d.items()]))
        for k, v in zip(d, d.values(), strict=True):
            d[k] = v * 2
        return d

    for _ in range(2):
        same(cinductor.compile(fn, backend="interp")(X), fn(X))
        (kind, ours), (_, theirs) = seen[-2:]
        assert kind is collections.OrderedDict
        same(ours, theirs)


def test_the_dict_in_it_keeps_its_order():
    def fn(x):
        d = OrderedDict(a=x, b=2.0)
        d["c"] = x + 1
        d.move_to_end("a")
        if x[0] > 0:
            d["b"] = x[1]
        return d

    compiled = cinductor.compile(fn, backend="interp", fullgraph=True)
    for _ in range(2):
        same([*dict.items(compiled(X))], [*dict.items(fn(X))])
