"""Tests reversed() of a list that changes while the iterator goes over it."""

import numpy as np
import pytest

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")


def loses_items(x, o):
    s = 0.0
    for v in x:
        s += v
        it = reversed(o)
        del o[0]
        s += len([*it])
    return s, o


def gets_items(x, o):
    s = 0.0
    for v in x:
        s += v
        it = reversed(o)
        o.append(s)
        s += float(7.0 in it)
    return s, o


def made_in_the_call(x, o):
    made = [1.0, 2.0]
    it = reversed(made)
    first = next(it)
    for v in x:
        made.append(v)
    return first, [*it], made, o


def loses_and_gets_items(x, o):
    it = reversed(o)
    first = next(it)
    o.pop()
    o.pop()
    o.append(7.0)
    o.append(8.0)
    return first, [*it], x * 2


def ends_early(x, o):
    it = reversed(o)
    del o[1:]
    return [*it], x * 2


def leaves_the_call(x, o):
    it = reversed(o)
    o += [7.0, 8.0]
    return [it], x * 2


def loses_items_and_leaves_the_call(x, o):
    it = reversed(o)
    del o[2:]
    return [it], x * 2


def takes_items_in_a_loop(x, o):
    s = 0.0
    for i, v in enumerate(reversed(o)):
        if len(o) > 3:
            o.pop()
        s += v * x[i % len(x)]
    return s, o


@pytest.mark.parametrize(
    "f",
    [
        loses_items,
        gets_items,
        made_in_the_call,
        loses_and_gets_items,
        ends_early,
        leaves_the_call,
        loses_items_and_leaves_the_call,
        takes_items_in_a_loop,
    ],
)
def test_it_begins_at_the_item_that_was_last(f):
    def outcome(fn, n):
        o = [3.0, 1.0, 2.0, 7.0, 5.0, 6.0]
        first, *rest = fn(np.arange(1.0, n + 1), o)
        if isinstance(first, list) and first and hasattr(first[0], "__next__"):
            o.extend([11.0] * 6)  # after the call: an iterator that waits for an absent item continues
            first = [type(first[0]), *first[0]]
        return repr((first, rest, o))

    compiled = cinductor.compile(f)
    for n in (4, 5, 3, 5):
        assert outcome(compiled, n) == outcome(f, n)
