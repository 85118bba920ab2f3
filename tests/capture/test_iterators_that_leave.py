"""Tests iterators made in a captured call that leave it: returned, stored in an object, or passed from piece to
piece.

Other code must get Python's own iterator at the right position, with nothing traced inside.
"""

from __future__ import annotations

import copy
import itertools
import operator
import sys
from typing import Any

import numpy as np
import pytest

import cinductor

kept: list[Any] = []
CASES: list[Any] = []


def case(f: Any) -> Any:
    CASES.append(f)
    return f


class Numbers:
    """An iterable whose contents capture cannot read."""

    def __iter__(self) -> Any:
        return iter(range(20))


@case
def f0(G, x):
    return list(zip(G, map(float, (x @ x)[0])))


@case
def f1(G, x):
    m = map(lambda v: v + 1, [x, x * 2])
    kept.append(m)
    return x + 1


@case
def f2(G, x):
    return map(lambda v: v + 1, [x, x * 2])


@case
def f3(G, x):
    return zip([x, x * 2], [1, 2])


@case
def f4(G, x):
    return iter([x + 1, x * 2])


@case
def f5(G, x):
    return enumerate([x + 1, x * 2])


@case
def f6(G, x):
    return filter(None, [1, 0, 2]), x


@case
def f7(G, x):
    m = map(lambda v: v + 1, [x, x * 2])
    print(end="", flush=True)
    return list(m)


@case
def f8(G, x):
    m = iter([x + 1, x * 2])
    next(m)
    print(end="", flush=True)
    return next(m)


@case
def f9(G, x):
    m = zip([x + 1, x * 2], G)
    a = next(m)
    print(end="", flush=True)
    return a, next(m)


@case
def f10(G, x):
    g = (v + 1 for v in [x, x * 2])
    a = next(g)
    print(end="", flush=True)
    return a, next(g)


@case
def f11(G, x):
    kept.append(iter([x + 1]))
    return x


@case
def f12(G, x):
    m = map(float, (x @ x)[0])
    return sorted(zip(m, G))[:3]


@case
def f13(G, x):
    return dict(zip(G, map(float, (x @ x)[0])))


@case
def f14(G, x):
    return reversed([x, x + 1])


@case
def f15(G, x):
    c = itertools.chain([x + 1], [x])
    print(end="", flush=True)
    return list(c)


@case
def f16(G, x):
    return {k: v for k, v in zip(G, (x @ x)[0])}


@case
def f17(G, x):
    return dict(zip(G, (x @ x)[0]))


@case
def f18(G, x):
    return list(zip(G, [x + 1, x + 2]))


@case
def f19(G, x):
    return max(zip((x @ x)[0], G))


@case
def f20(G, x):
    return [*zip(G, map(np.sum, [x, x + 1]))]


@case
def f21(G, x):
    for g, v in zip(G, map(np.sum, [x, x + 1])):
        kept.append((g, v))
    return x + 1


@case
def f22(G, x):
    return tuple(map(lambda g, v: v * g, G, [x, x + 1]))


@case
def f23(G, x):
    return sum(map(lambda g, v: v * g, G, [x, x + 1]))


@case
def f24(G, x):
    return list(itertools.starmap(lambda g, v: v * g, zip(G, [x, x + 1])))


@case
def f25(G, x):
    z = zip(*[(x, 1), (x + 1, 2)])
    return [*z]


@case
def f26(G, x):
    m = map(lambda v: v * 2, (x + 1)[0][:3])
    kept.append(list(m))
    return x


@case
def f27(G, x):
    d = {}
    d.update(zip(G, map(float, x[0] + 1)))
    return d


@case
def f28(G, x):
    made = []
    made.extend(map(float, x[0] + 1))
    made += map(float, x[1])
    return made


@case
def f29(G, x):
    return "-".join(map(str, map(int, x[0] * 10)))


@case
def f30(G, x):
    return set(map(float, x[0] * 10)), frozenset(zip(G, map(float, x[0])))


@case
def f31(G, x):
    return np.array(list(map(float, x[0]))), np.fromiter(map(float, x[0]), float)


@case
def f32(G, x):
    kept.extend(map(lambda v: v + 1, [x, x * 2]))
    return x + 1


@case
def made_slices(G, x):
    return slice(x.sum(), len(x) * 2), slice(1, len(x) * 2), frozenset([len(x)])


@case
def made_of_arrays(G, x):
    return enumerate(x), zip(x, x + 1), reversed(x), x.flat, np.ndenumerate(x), np.ndindex(x.shape)


@case
def shared(G, x):
    e = enumerate(x)
    a = next(e)
    kept.append(e)
    return a, next(e)


@case
def shared_flat(G, x):
    f = x.flat
    a = next(f)
    kept.append(f)
    return a, next(f), f.index, kept[-1] is f, f == f, [*f]


@case
def advanced_flat(G, x):
    f = x.flat
    a = next(f)
    return a, iter(f) is f, next(iter(f)), [*f]


@case
def shared_zip(G, x):
    z = zip([x, x * 2, x], [x * 2, x * 3, x])
    a = next(z)
    kept.append(z)
    return a, next(z)


@case
def shared_list(G, x):
    z = iter([x, x * 2, x])
    a = next(z)
    kept.append(z)
    return a, next(z)


@case
def kept_views(G, x):
    d = {"a": x + 1}
    kept.append(d.items())
    d["b"] = x * 2
    return d.values()


def numbers_without_end() -> Any:
    yield from itertools.count()


LIBRARYS = cinductor.disable(numbers_without_end)


@case
def generators_that_ask_nothing(G, x):
    """Their code has nothing of cinductor's, what they iterate over does."""
    y = x[0] * 2
    first = (v for v in y)
    kept.append(v for v in (w for w in y))
    kept.append([(y for _ in (1, 2)), (v for v in [y, 1])])
    return next(first), first


@case
def returns_an_expression(G, x):
    return (v for v in x)


@case
def returns_some(G, x):
    y = x[0] * 2
    return {"some": (v for v in [y[1], 2]), "more": [(y for _ in (1, 2))]}


@case
def returns_a_librarys(G, x):
    made = LIBRARYS()
    return next(made), made.__name__, itertools.islice(made, 3), x * 2


def shown(value: Any) -> Any:
    """A value with its classes; for iterators also the items that are left."""
    cls = type(value).__name__
    if isinstance(value, np.ndarray):
        return cls, np.round(value, 9).tolist()
    if isinstance(value, dict):
        return cls, [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return cls, sorted(shown(v) for v in value)
    is_view = isinstance(value, type({}.items()) | type({}.values()))
    if isinstance(value, list | tuple) or is_view or hasattr(type(value), "__next__"):
        return cls, [shown(v) for v in value]
    if isinstance(value, slice):
        return cls, shown((value.start, value.stop))
    return cls, round(float(value), 9) if isinstance(value, float) else repr(value)


def outcome(f: Any, n: int) -> Any:
    """The result of a call and the state that it keeps, or its exception."""
    kept.clear()
    try:
        result = shown(f(Numbers(), np.random.default_rng(0).random((n, 20))))
    except Exception as error:
        result = type(error), str(error)
    return result, shown(list(kept))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_as_in_python(f: Any) -> None:
    compiled = cinductor.compile(f, backend="interp")
    for n in (20, 20, 20, 20, 21):
        assert outcome(compiled, n) == outcome(f, n)


def test_pieces_hand_iterators_on() -> None:
    """The arrays are large enough to compile pieces."""

    def f(G: Any, x: Any) -> Any:
        return list(zip(G, map(float, (x @ x)[0])))

    x = np.random.default_rng(0).random((60, 60))
    compiled = cinductor.compile(f, backend="interp")
    for _ in range(3):
        assert shown(compiled(Numbers(), x)) == shown(f(Numbers(), x))


def test_a_compiled_function_takes_defaults_that_have_no_parameter() -> None:
    def f(*args: Any, **kwargs: Any) -> Any:
        return args[0] + len(kwargs)

    f.__defaults__ = (1, 2)
    assert cinductor.compile(f)(3.0, k=1) == f(3.0, k=1)


MADE = {
    "chain": lambda x: itertools.chain([x, x + 1], iter([x * 2])),
    "chain of": lambda x: itertools.chain.from_iterable([[x, x + 1], [x * 2]]),
    "starmap": lambda x: itertools.starmap(lambda a, b: a + b, [(x, 1), (x, 2), (x, 3)]),
    "islice": lambda x: itertools.islice(map(np.sum, [x, x + 1, x * 2]), 3),
    "zip_longest": lambda x: itertools.zip_longest([x, x + 1, x], [1]),
    "cycle": lambda x: itertools.islice(itertools.cycle([x, x + 1]), 5),
    "product": lambda x: itertools.product([x, x + 1], [1, 2]),
    "combinations": lambda x: itertools.combinations([x, x + 1, x + 2], 2),
    "takewhile": lambda x: itertools.takewhile(lambda v: v.ndim, [x, x + 1, x * 2]),
    "filter": lambda x: filter(lambda v: v.ndim, [x, x + 1, x * 2]),
    "compress": lambda x: itertools.compress([x, x + 1, x * 2], [1, 0, 1]),
}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="iterators of itertools do not say how far they are from Python 3.14 on")
@pytest.mark.parametrize("is_following", [False, True])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_of_itertools(make: Any, is_following: bool) -> None:
    def f(G: Any, x: Any) -> Any:
        if is_following:
            kept.append(1)
        made = make(x)
        first = next(made)
        kept.append(made)
        return first, next(made)

    compiled = cinductor.compile(f, backend="interp")
    for n in (20, 20, 20):
        assert outcome(compiled, n) == outcome(f, n)


def test_pieces_hand_slices_on() -> None:
    def f(a: Any) -> Any:
        places = np.argwhere(a)
        if places.size == 0:
            start = stop = np.array([], dtype=np.intp)
        else:
            start, stop = places.min(axis=0), places.max(axis=0)
        stop += 1
        if start.size == 0:
            start = stop = np.zeros(a.ndim, dtype=np.intp)
        return a[tuple(slice(start[k], stop[k]) for k in range(a.ndim))]

    compiled = cinductor.compile(f, backend="interp")
    for value in (1, 1, 1):
        a = np.pad(np.full((2, 2, 2), value), (2, 1))
        assert shown(compiled(a)) == shown(f(a))


class Counter:
    """Counts to nine."""

    def __init__(self) -> None:
        self.k = 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        if self.k >= 9:
            raise StopIteration
        self.k += 1
        return self.k


def iterates(items):
    """The states and copies of an iterator after one item, and at its end."""
    it = iter(items)
    first = next(it)
    left = operator.length_hint(it), it.__reduce__()[2:], [*copy.copy(it)], [*it], next(it, "end")
    return first, left, type(it), [*copy.copy(it)], operator.length_hint(it)


def over_made_items(x):
    numbers = x.tolist()  # Python runs the rest
    return iterates(numbers), iterates((*numbers, 1.0)), iterates({n: n for n in numbers}.items())


def over_items_of_others(x):
    numbers = x.tolist()
    kept.append(numbers)
    kept.append((*numbers, numbers))
    print(end="", flush=True)
    return iterates(kept.pop()), iterates(kept.pop())


def in_an_operand(x):
    it = iter(x.tolist())
    return (x[0] > 0.5 and next(copy.copy(it)) > 1), [*it]


def taken_in_an_operand(x):
    """Iterators that have given an item or none, as data decide."""
    numbers = x.tolist()
    it, others = iter(numbers), iter((*numbers,))
    taken = x[0] > 0.5 or next(it) >= 0, x[0] > 0.5 or next(others) >= 0
    return taken, next(copy.copy(it)), next(copy.copy(others)), [*it], [*others]


@pytest.mark.parametrize("f", [over_made_items, over_items_of_others, in_an_operand, taken_in_an_operand])
def test_python_runs_the_rest(f: Any) -> None:
    for start in (0.0, 1.0):
        compiled = cinductor.compile(f)
        for size in (12, 12, 9):  # sizes are unknown from the third call on
            x = np.linspace(start, 3.0, size)
            assert repr(compiled(x)) == repr(f(x))


def test_data_decide_where_an_iterator_ends() -> None:
    """Not captured: for an iterator without an end, `tuple` would never return."""

    def f(x: Any) -> Any:
        it = Counter()
        if x.sum() > 1.2:
            next(it)
        return len(tuple(it))

    compiled = cinductor.compile(f, backend="interp")
    for n in (4, 0, 4, 7):
        assert compiled(np.arange(float(n))) == f(np.arange(float(n)))


def left_of(it: Any) -> int:
    return len(repr(list(itertools.islice(it, 6))))


def stopped(it: Any) -> Any:
    total = 0.0
    for _, v in it:
        total += np.sum(v)
        if total > 2:
            break
    return total


USED: dict[str, Any] = {
    "in one arm": lambda x, it: [v for v in it] if x.sum() > 9 else 0,
    "by a loop": lambda x, it: [sum(v[0] for v in it) for _ in range(len(x))],
    "by enumerate": lambda x, it: [k for k, _ in enumerate(it)],
    "by both of zip": lambda x, it: [k for k, _ in zip(it, it)],
    "and who it is": lambda x, it: (iter(it) is it, type(it).__name__),
    "by its method": lambda x, it: it.__next__(),
    "in reverse": lambda x, it: [*reversed(it)],
    "by the largest": lambda x, it: max(v[1] if v[0] < 2 else np.ones(2) for v in it),
    "by what compares": lambda x, it: min(it),
    "by a set": lambda x, it: {*()} | set(it),
    "and said": lambda x, it: print(sum(v[0] for v in it), left_of(it)),
    "by a loop that stops": lambda x, it: stopped(it),
    "by one, and said": lambda x, it: print(x[0], stopped(it), left_of(it)),
    "by two": lambda x, it: print(x[0], stopped(it), stopped(it), next(it, None)),
    "by a loop that ends": lambda x, it: next((v for v in it if v[0] > 1), None),
}
OVER: dict[str, Any] = {
    "enumerate": lambda x: enumerate(x),
    "zip": lambda x: zip(x, x + 1),
    "rows": lambda x: iter(np.stack([x, x], axis=1)),
    "places": lambda x: np.ndenumerate(x),
}


@pytest.mark.parametrize("use", USED.values(), ids=USED)
@pytest.mark.parametrize("make", OVER.values(), ids=OVER)
def test_what_is_left_of_an_iterator_made_in_the_call(make: Any, use: Any) -> None:
    def f(x: Any) -> Any:
        it = make(x)
        got = use(x, it)
        return got, list(it)

    def g(x: Any) -> Any:
        it = make(x)
        if x.sum() > 3:
            got = use(x, it)
        else:
            got = next(it)
        return got, list(it)

    for program in (f, g):
        compiled = cinductor.compile(program, backend="interp")
        for n in (4, 3, 7, 4):
            x = np.arange(float(n))
            assert given(compiled, x) == given(program, x)


def given(f: Any, x: Any) -> Any:
    try:
        return repr(f(x))
    except Exception as error:
        return repr(error)


def test_a_body_takes_items_of_what_its_loop_runs_over() -> None:
    def pairs(x: Any) -> Any:
        it, total = enumerate(x), 0.0
        for _, v in it:
            total += v
            next(it, None)
        return total

    def rows(x: Any) -> Any:
        it, total = iter(np.stack([x, x], 1)), 0.0
        for _, v in it:
            total += v
            if total > 1:
                next(it, None)
        return total, list(it)

    for f in (pairs, rows):
        compiled = cinductor.compile(f, backend="interp")
        for n in (4, 9, 3, 12):
            assert given(compiled, np.arange(float(n))) == given(f, np.arange(float(n)))


def begun_before_a_write(x):
    it = (v + 0.25 for v in x)
    y = x * 2
    y[0] = next(it)
    return it, y, [it]


def test_a_generator_has_one_replacement():
    """Results are described again if Python runs each call: the generator is not used up, and stays one object."""
    compiled = cinductor.compile(begun_before_a_write)
    for first in (0.0, 1.0, 2.0):
        x = np.arange(4.0) + first
        (got, y, (again,)), (want, z, _) = compiled(x), begun_before_a_write(x)
        assert got is again
        assert [*got] == [*want]
        np.testing.assert_array_equal(y, z)
