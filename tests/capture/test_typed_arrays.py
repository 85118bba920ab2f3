"""Tests array.array and bytearray: read in captured loops, restored, aliased, and left to Python once they hold data."""

import array
import itertools

import numpy as np
import pytest
from test_regions import check, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
X = np.arange(1.0, 8.0)
WHOLE, OTHERS = [], []


def whole(fn):
    WHOLE.append(fn)
    return fn


def other(fn):
    OTHERS.append(fn)
    return fn


@whole
def a_table_of_weights(x):
    w = array.array("d", [0.25, 0.5, 2.0])
    w.append(3.0)
    w[0], w[-1] = 1.5, w[-1] + 1
    total = 0.0
    for i in range(len(x)):
        total += x[i] * w[i % 4]
    return total, len(w), w.index(2.0), w.count(0.5), w.tolist(), w.typecode


@whole
def every_change(x):
    a, b = array.array("i", range(4)), bytearray(b"abc")
    a.extend([7, 8])
    a.insert(1, -1)
    a.remove(7)
    a.reverse()
    a[1:3] = array.array("i", [5])
    b[0] = 100
    b.extend(b"xy")
    del b[1], a[0]
    popped, alias = a.pop(), a
    alias.append(popped * 2)
    return x * a[0], a, b, alias is a, sum(a), [*b], bool(a), b.find(b"x"), b.decode(), [v + 1 for v in a]


@whole
def made_in_each_call(x):
    made = [array.array("f", (0.1, 0.2)), bytearray(2), array.array("q")]
    for i in range(3):
        made[2].append(i)
    return made, x + made[0][1]


@other
def data_are_stored(x):
    a, out = array.array("d", [0.0] * 3), []
    for i in range(3):
        a[i] = x[i]
        out.append(a[i] * 2)
    b = bytearray(b"abc")
    b[1] = int(x[2])
    a.append(x[3])
    return a, x * a[1], out, b, b[1] + x[0]


@other
def changed_in_a_branch(x):
    a, b = array.array("i", [1, 2, 3]), bytearray(b"abc")
    if x[0] > 0:
        a[0] = 7
        a.append(4)
        b.clear()
    else:
        b.append(65)
    for i in range(len(x)):
        if x[i] > 4:
            a[1] += 1
            break
    return a, b, x * a[0], len(b)


@other
def memory_is_shared(x):
    a, b = array.array("d", [1.0, 2.0]), bytearray(b"abcdefgh")
    view, bits = np.frombuffer(a), memoryview(b)
    view[0] = 5.0
    view *= x[1]
    bits[1] = 7
    before = a[0] * x, b[1]
    a[1] = 3.0
    return before, view[1] + x, a, b, view.sum()


@other
def changed_while_it_is_iterated(x):
    a, seen = array.array("d", [1.0, 2.0, 3.0]), []
    for v in a:
        seen.append(v)
        if x[0] > 0:
            a[2] = 9.0
        if len(a) < 6:
            a.append(v * 2)
    it = iter(a)
    first = next(it)
    a.pop()
    return seen, first, [*it], [*itertools.islice(zip(a, x, strict=False), 3)]


@other
def exceptions(x):
    a, b, texts = array.array("b", [1, 2]), bytearray(b"a"), []
    for f in (
        lambda: a[2],
        lambda: a.__setitem__(0, 128),
        lambda: a.append(1.5),
        lambda: a.append("a"),
        lambda: b.append(256),
        lambda: a.extend(array.array("d", [1.0])),
        lambda: a.index(9),
        lambda: a.pop(5),
        lambda: array.array("z", [1]),
        lambda: bytearray("a"),
        lambda: a.__setitem__(slice(0, 1), [1]),
    ):
        try:
            f()
        except Exception as error:
            texts.append((type(error), str(error)))
    if x[0] > 0:
        a[0] = 3
        raise ValueError(a.tolist())
    return texts, a, b


@other
def operators(x):
    a, b = array.array("d", [1.0, 2.0]), bytearray(b"ab")
    c, d = a + a, b * 2
    a += array.array("d", [x[0]])
    b += b"q"
    a *= 2
    return a, c, d, b, a == c, 2.0 in a, b"q" in b, str(a), np.array(a) + x[:6], max(a), sorted(b), a[1:], a[::-1]


@other
def given_on(x):
    seen = []
    a = array.array("d", [1.0, 2.0])

    def change(values):
        values[0] += 1
        seen.append(values[0])

    for _ in range(3):
        change(a)
        list(map(change, [a]))
    return a, seen, x * a[0]


@pytest.mark.parametrize("fn", WHOLE, ids=lambda fn: fn.__name__)
def test_whole(fn):
    check(fn, X)


@pytest.mark.parametrize("fn", [*WHOLE, *OTHERS], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", ["interp", "c"])
def test_as_in_python(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for x in (X, X, -X, X + 1):
        same(outcome(compiled, (x.copy(),)), outcome(fn, (x.copy(),)))


def test_each_call_has_its_own():
    compiled = cinductor.compile(made_in_each_call, backend="interp")
    first, second = compiled(X), compiled(X)
    for a, b in zip(first[0], second[0], strict=True):
        assert a == b and a is not b


def test_an_argument_is_read_in_each_call():
    def fn(a, b, x):
        a[0] += 1.0
        b.append(b[0])
        return x * a[0] + a[1] + len(b)

    compiled = cinductor.compile(fn, backend="interp")
    for n in range(3):
        ours, theirs = ([array.array("d", [n, 2.0]), bytearray([n, 1])] for _ in range(2))
        same(compiled(*ours, X), fn(*theirs, X))
        assert ours == theirs
