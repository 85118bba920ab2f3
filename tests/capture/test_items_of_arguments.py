"""Tests values read from arguments that are Python objects: items of lists, tuples and dicts, also by an index or key
that is itself an argument. A call with other values must not reuse the code compiled for the first ones.
"""

import collections
import itertools

import numpy as np
import pytest

import cinductor
from cinductor import testing


def of_a_list(held, k, t):
    return held[k % 2] + 1, held[-(k % 2) - 1]


def at_its_number(held, k, t):
    return held[k]


def under_a_number(held, k, t):
    return {0.5: held[0], 1.5: held[1]}[t], held[k % 3 - 2]


def in_one_that_is_made(held, k, t):
    return (held[0], held[1], 3)[k % 3], [held, held[0]][k % 2]


def of_an_exception(held, k, t):
    try:
        raise ValueError(k, t)
    except ValueError as error:
        return error.args[0] + held[0], error.args[1]


def of_a_new_exception(held, k, t):
    return ValueError(k % 3).args[0] * held[0], str(KeyError(t))


def written(held, k, t):
    held[k % 2] += 1
    held[k % 3 - 1] = held[k % 2] * t
    return held[0]


NUMBERS = [(-1, 0.5), (0, 1.5), (-1, 0.5), (1, 0.5), (-2, 1.5), (0, 0.5), (1, 1.5)]
PROGRAMS = [
    *(of_a_list, at_its_number, under_a_number, in_one_that_is_made),
    *(of_an_exception, of_a_new_exception, written),
]


def agree(program, compiled, make, *rest):
    ours, theirs = make(), make()
    got, raised = testing.outcome(compiled, (ours, *rest))
    want, expected = testing.outcome(program, (theirs, *rest))
    assert (type(raised), str(raised)) == (type(expected), str(expected))
    testing.assert_same(got, want)
    testing.assert_same(ours, theirs, where="arguments")


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_of_a_list(program, dynamic):
    compiled = cinductor.compile(program, dynamic=dynamic, backend="interp")
    for k, t in NUMBERS:
        agree(program, compiled, lambda: [np.arange(3.0), np.ones(3)], k, t)


def under_keys(held, k, t):
    return held[k], held[t], held[k % 2, t > 1]


@pytest.mark.parametrize("dynamic", [None, True])
def test_of_a_dict(dynamic):
    def make():
        pairs = {(a, b): np.full(2, a + b) for a in (0, 1) for b in (False, True)}
        return {**{n: np.arange(2.0) + n for n in (-2, -1, 0, 1, 0.5, 1.5)}, **pairs}

    compiled = cinductor.compile(under_keys, dynamic=dynamic, backend="interp")
    for k, t in (*NUMBERS, (7, 0.5)):
        agree(under_keys, compiled, make, k, t)


# --- views, which show later changes of the container that they belong to ---


def emptied(d):
    d.clear()


def another_key(d):
    d["c"] = d["a"] + 1


def another_item(d):
    d["b"] = d["a"] * 2


def fewer(d):
    del d["a"]


def moved(d):
    d["a"] = d.pop("a")


def updated(d):
    d.update(b=7.0, z=d["a"])


def looped(v):
    out = []
    for item in v:
        out += [item]
    return out


def over_changes(v, d):
    """The items of a loop over a view that changes a later item."""
    out = []
    for item in v:
        d["b"] = len(out) + 0.5
        out.append(item)
    return out


def over_new_keys(v, d):
    for _ in v:
        d["new"] = 1.0


class Odd(dict):
    """A dict with methods of its own, which those of dict do not call."""

    def keys(self):
        return ["x"]

    def items(self):
        return [1]


def reordered(**items):
    made = collections.OrderedDict(items)
    made.move_to_end("a")
    return made


VIEWS = [lambda d: d.keys(), lambda d: d.values(), lambda d: d.items(), lambda d: [d.items()][0], lambda d: dict.items(d), lambda d: dict.keys(d)]
CHANGES = [emptied, another_key, another_item, fewer, moved, updated, lambda d: None]
USES = [
    *(looped, len, bool, str, lambda v: [*v], lambda v: "c" in v, lambda v: 7.0 in v, lambda v: list(reversed(v))),
    *(lambda v: list(zip(v, v)), lambda v: list(enumerate(v)), lambda v: [str(k) for k in v], lambda v: v.mapping["b"]),
    *(lambda v: list(iter(v)), lambda v: list(v.__iter__()), lambda v: v == {"a": 0}.keys(), lambda v: v.__len__()),
]


@pytest.mark.parametrize("kind", [dict, reordered, Odd])
@pytest.mark.parametrize("view", VIEWS, ids=["keys", "values", "items", "items from a list", "dict.items", "dict.keys"])
def test_views_show_what_changes(kind, view):
    """A view of a dict of the caller's was one of a copy, which showed no later change."""
    programs = [lambda d, c=c, u=u: ((v := view(d)), c(d), u(v))[2] for c, u in itertools.product(CHANGES, USES)]
    for program in [*programs, lambda d: over_changes(view(d), d), lambda d: over_new_keys(view(d), d)]:
        compiled = cinductor.compile(program, backend="interp", mode="now")
        for size in (1, 2):
            agree(program, compiled, lambda n=size: kind(a=np.arange(float(n)), b=2.0))


def test_iterators_of_lists_show_what_changes():
    programs = [lambda v: ((i := v.__iter__()), v.append(3.0), list(i))[2], lambda v: ((i := iter(v)), v.pop(), list(i))[2]]
    for program in programs:
        compiled = cinductor.compile(program, backend="interp", mode="now")
        for _ in range(2):
            agree(program, compiled, lambda: [1.0, np.ones(2)])
