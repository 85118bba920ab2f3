"""Tests items of lists and dicts that outlive the call: the program sets them."""

import numpy as np
import pytest

import cinductor


class Holder:
    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return f"Holder({self.held})"


def augmented(d, x):
    d["w"] -= 0.1 * x
    d["lr"] *= 0.9
    d["n"] += 1
    return d["lr"] * 2, len(d), next(iter(d.values())) is d["w"], d


def of_an_attribute(a, x):
    a.held["w"] = a.held["w"] - 0.1 * x
    a.held["n"] += 1
    return a.held["w"].sum()


def of_a_list(values, x):
    for i in range(len(values)):
        values[i] = values[i] - x
    values[-1] = values[0] * 2
    return sum(values), values[2], values[-1], list(values), max(values), values[1:]


def of_several(p, g, m, t):
    for k in p:
        m[k] = 0.9 * m[k] + 0.1 * g[k]
        p[k] -= 0.01 * m[k] / t
    return p["a"]


def in_a_loop(d, x):
    for i in range(len(x)):
        d["s"] += x[i]
        if x[i] > 0:
            d["n"] += 1
    return d["s"]


def that_raises(d, x):
    d["a"] = x[0]
    if x[0] > 5:
        raise ValueError("big")
    d["b"] = 3


def read_as_a_whole(values, x):
    values[0] = x[0]
    return (
        3 in values,
        2.0 in values,
        values.count(2.0),
        values == [2.0, 1, 2],
        sorted(values),
        values.index(2.0),
    )


def of_a_new_key(d, x):
    d["new"], d["old"] = x.sum(), 1
    return sorted(d), [*d.items()], {**d}, d.get("old"), dict(d)


def of_a_namespace(a, x):
    a.__dict__["held"] = x[0]
    return a.held


def several(*which):
    made = [
        {"a": np.ones(3), "b": 2.0},
        {"a": np.ones(3) * 2, "b": 1.0},
        {"a": np.zeros(3), "b": 0.0},
    ]
    return *(made[k] for k in which), 2


CALLS = {
    augmented: [
        lambda: ({"w": np.ones(3), "lr": 0.1, "n": 0}, np.ones(3)),
        lambda: ({"w": np.ones(4), "lr": 0.1, "n": 5}, np.ones(4)),
        lambda: ({"w": np.ones(4), "lr": 0.1, "n": 5, "k": 1}, np.ones(4)),
    ],
    of_an_attribute: [lambda: (Holder({"w": np.ones(3), "n": 0}), np.ones(3))],
    of_a_list: [
        lambda: ([1.0, 2.0, 3.0], 1.0),
        lambda: ([1.0, 2.0, 3.0, 4.0], 1.0),
        lambda: ([1, 2, 3], 1),
    ],
    of_several: [
        lambda: several(0, 1, 2),
        lambda: several(0, 0, 1),
        lambda: several(0, 1, 0),
        lambda: several(0, 1, 1),
    ],
    in_a_loop: [lambda n=n: ({"s": 0.0, "n": 0}, np.arange(-3.0, n)) for n in (5, 15)],
    that_raises: [lambda n=n: ({"a": 1, "b": 2}, np.ones(3) * n) for n in (1, 9)],
    read_as_a_whole: [lambda: ([1, 1, 2], np.ones(1) * 2)],
    of_a_new_key: [lambda: ({"old": 0}, np.ones(1) * 2)],
    of_a_namespace: [lambda: (Holder(0), np.ones(2))],
}
WHOLE = [augmented, of_an_attribute, of_a_list, of_several, in_a_loop, that_raises]


def outcome(fn, args):
    try:
        return fn(*args)
    except ValueError as error:
        return error


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", CALLS, ids=lambda f: f.__name__)
def test_items_that_are_kept(fn, backend):
    """Each call sees the items that the previous one has set."""
    compiled = cinductor.compile(fn, backend=backend)
    for make in CALLS[fn]:
        mine, theirs = make(), make()
        for _ in range(4):
            assert repr((outcome(compiled, mine), mine)) == repr((outcome(fn, theirs), theirs))


@pytest.mark.parametrize("fn", WHOLE, ids=lambda f: f.__name__)
def test_are_captured_whole(fn):
    assert cinductor.explain(fn, *CALLS[fn][0]()).breaks == []
