"""Tests iterators made before a loop or branch and advanced in it: their position is carried like any other value."""

import collections
import itertools
import operator

import cases
import numpy as np
import pytest
from breaks import after_an_effect
from test_regions import check, nodes, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
CASES = []
X = np.arange(24.0) / 24
case = cases.entering(CASES)


@case(X, X * 3)
def one_in_each_iteration(x, y):
    it, s = iter(y), 0.0
    for i in range(len(x)):
        s += next(it) * x[i]
    return s


@case(X, X * 3)
def under_a_condition(x, y):
    it, s = iter(y), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += next(it)
        else:
            s += 0.5
    return s


@case(X)
def left_in_the_middle(x):
    it, s = iter(range(90)), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            for k in it:  # a Python int, also where it is used later
                s += k
                if k % 4 == 3:
                    break
        else:
            s += 0.5
    return s


@case(X, X * 3)
def in_both_arms(x, y):
    it, s = iter(y), 0.0
    for v in x[:12]:
        if v > 0.25:
            s += next(it)
        else:
            s -= next(it)
            s += next(it) * 2
    return s


@case(X)
def two_in_each_iteration(x):
    it, s = enumerate(x, 3), 0.0
    for _ in range(len(x) // 2):
        k, v = next(it)
        _, w = next(it)
        s += k * v - w
    return s


@case(X, X * 3)
def what_is_left_of_two(x, y):
    it, s = zip(x, y), 0.0
    for _ in range(10):
        a, b = next(it)
        s += a * b
    for a, b in it:
        s -= a * b
    return s


@case(X)
def all_but_the_first(x):
    it = iter(x)
    low = high = next(it)
    for v in it:
        low, high = min(low, v), max(high, v)
    return low, high


@case(X)
def a_number_for_each_that_passes(x):
    it, s = iter(range(3, 1000, 2)), 0.0
    for v in x:
        if v > 0.25:
            s += next(it) * v
    return s


@case(X)
def a_loop_over_what_it_steps(x):
    it, s = iter(x), 0.0
    for v in it:
        s += v - next(it)
    return s


@case(X)
def in_a_while(x):
    it, s = iter(x), 0.0
    while s < 4:
        s += next(it)
    return s


@case(np.ones((12, 12)))
def in_a_nest(a):
    it, s = iter(a.ravel()), 0.0
    for i in range(len(a)):
        for j in range(len(a)):
            s += next(it) * (i - j)
    return s


@pytest.mark.parametrize("fn, args", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_programs(fn, args):
    check(fn, *args)
    check(fn, *(a[:18] if a.ndim == 1 else a[:11, :11] for a in args))


@pytest.mark.parametrize("fn", [one_in_each_iteration, under_a_condition, all_but_the_first])
def test_size_does_not_depend_on_iterations(fn):
    count = fn.__code__.co_argcount
    assert nodes(fn, *[X] * count) == nodes(fn, *[np.arange(96.0)] * count)


def test_one_program_for_any_length():
    compiled = cinductor.compile(one_in_each_iteration, fullgraph=True, backend="interp", dynamic=True)
    for n in (24, 31, 57):
        x = np.random.default_rng(n).random(n)
        same(compiled(x, x), one_in_each_iteration(x, x))
    assert compiled._cinductor_job.captures == 1


def after_a_while(x):
    it, k, s = zip(x, x), 0, 0.0
    while k < len(x) and s < 6:
        s += next(it)[1] + x[k]
        k += 1
    print(end="", flush=True)
    return s, list(it)


def test_where_it_is_is_looked_at_after_a_break():
    compiled = cinductor.compile(after_a_while, backend="interp")
    for x in (X, X[:5], X[:0], X * 9):
        same(outcome(compiled, (x,)), outcome(after_a_while, (x,)))


def after_arms(x):
    it, s = itertools.islice(itertools.count(), 20), 0.0
    if x[0] > 0.7:
        s += 1
    elif x[0] > 0.3:
        for v in it:
            s += v
            if v > 3:
                break
    s += operator.length_hint(it)
    return s, list(it)


@pytest.mark.parametrize("first", [0.9, 0.5, 0.1])
def test_what_an_iterator_is_made_of_stands_where_it_does_after_arms(first):
    compiled = cinductor.compile(after_arms, backend="interp")
    x = np.full(3, first)
    same(outcome(compiled, (x,)), outcome(after_arms, (x,)))


def ends_in_an_iteration(x, y):
    it, s = iter(y), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += next(it)
    return s


def handled(x, y):
    it, s = iter(y), 0.0
    for _ in range(len(x)):
        try:
            s += next(it)
        except StopIteration:
            break
    return s


def asked_until_there_is_none(x, y):
    it, s = iter(y), 0.0

    def rest():
        while True:
            try:
                yield next(it)
            except StopIteration:
                return

    for v in x:
        if v > 0.5:
            s += sum(rest())
    return s


def defaults(x, y):
    it, s = iter(y), 0.0
    for v in x:
        if v > 0.5:
            s += next(it, 7.0)
    return s


def after_its_enumerate(x, y):
    it = iter(y)
    pairs = enumerate(it)
    next(pairs)
    return next(it), next(pairs), x[0]


@pytest.mark.parametrize(
    "fn", [ends_in_an_iteration, handled, asked_until_there_is_none, defaults, after_its_enumerate]
)
def test_an_iterator_that_may_end(fn):
    """StopIteration is raised in the iteration in which the iterator ends, as in Python."""
    compiled = cinductor.compile(fn, backend="interp")
    for n, m in ((24, 24), (24, 9), (24, 0), (12, 24), (24, 9)):
        args = (np.arange(n) / n, np.arange(float(m)))
        for _ in range(2):
            same(outcome(compiled, args), outcome(fn, args))


def asked_by_its_method(x):
    it, s = zip(range(len(x)), x), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            _, b = next(it)
            s += b
        else:
            s += 0.5
    try:
        for _ in range(4):
            s += it.__next__()[1] * x[0]
    except StopIteration:
        s -= 1
    return s, [*it]


def test_what_an_iterator_is_made_of_is_carried_apart():
    """The range and the array of a zip, to which there is no other reference, have the position that the branches
    have left.
    """
    compiled = cinductor.compile(asked_by_its_method, backend="interp")
    for x in ([0.6, 0.2, 0.9, 0.1], [0.6, 0.2, 0.9, 0.1, 0.7], [0.3, 0.8, 0.2]):
        same(outcome(compiled, (np.array(x),)), outcome(asked_by_its_method, (np.array(x),)))


def read_in_some_arms(x):
    n, s = len(x), 0.0
    it = itertools.starmap(lambda a, b: a + b, itertools.repeat((1.0, 2.0)))
    print(end="", flush=True)
    for i in range(n):
        for j in range(3):
            if x[i] > 0.4:
                s += next(it)
            s += x[j] if j < n else 0
    return s, next(it)


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_iterator_and_its_part_stay_in_step_in_an_arm_that_reads_neither(backend):
    compiled = cinductor.compile(read_in_some_arms, backend=backend)
    for x in ([0.8, 0.9, 0.3, 0.2], [0.6, 0.2, 0.9, 0.1, 0.7], [0.3, 0.8, 0.2]):
        same(outcome(compiled, (np.array(x),)), outcome(read_in_some_arms, (np.array(x),)))


def given_to_python(x):
    it = itertools.islice(itertools.count(), 20)
    n, s = len(x), 0.0
    for i in range(n):
        if x[i] > 0.5:
            for w, v in zip(x, it):
                s += v * w
        else:
            s += 0.5
    k = 0
    while k < n and s < 30:
        s += operator.indexOf(it, 3.0) + x[k]
        k += 1
    return s, [*it]


def test_an_iterator_that_python_reads_stands_where_it_is_known():
    """Arguments of uncaptured code are converted before the break counts as an effect, so the call can still restart.
    """
    compiled = cinductor.compile(given_to_python, backend="interp")
    for call, n in enumerate((4, 5, 3, 5)):
        x = np.random.default_rng(6647310670 + call).random(n)
        same(outcome(compiled, (x,)), outcome(given_to_python, (x,)))


def kind_of(*iterators):
    return [(type(it).__name__, [*it]) for it in iterators]


def at_their_ends(x):
    first, second, third = itertools.islice(itertools.count(), 3), iter(range(2)), enumerate(x)
    s = 0.0
    for v, w in zip(first, x):
        s += v * w
    for v in second:
        s += v
    for n, w in third:
        s += n * w
    return s, kind_of(first, second, third)


def taken_from_after_many_breaks(x):
    """NumPy runs the rest of the call from the head of a loop over the iterator on."""
    left = []
    for _ in range(6):
        it = iter(x)
        for i in range(len(x)):
            for _ in range(3):
                if x[i] > 0.4:
                    x[i] += sum(next(it) + v for v in x)
        for _ in range(len(x)):
            for v in it:
                left.append(v)
                break
        left.append(len([*it]))
    return left


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_an_iterator_that_numpy_takes_over_is_the_one_of_the_name(backend):
    compiled = cinductor.compile(taken_from_after_many_breaks, backend=backend)
    for _ in range(2):
        x = np.array([0.1, 0.17, 0.24, 0.31])
        assert compiled(x.copy()) == taken_from_after_many_breaks(x)


def test_an_iterator_at_its_end_is_of_its_kind():
    """Uncaptured code gets an exhausted iterator of the right class. Warnings of Python 3.12 about copies depend on
    it, too.
    """
    compiled = cinductor.compile(at_their_ends, backend="interp")
    for n in (4, 5, 3, 2, 5):
        x = np.arange(n) / n
        same(outcome(compiled, (x,)), outcome(at_their_ends, (x,)))


def grows_in_zip(x):
    o, s = [1.0, 2.0, 3.0], 0.0
    for a, b in zip(o, x):
        s += a * b
        if len(o) < 6:
            o.append(b)
    return s, o


def grows_after_zip(x):
    o = [1.0, 2.0, 3.0]
    it, them = zip(x, o), map(lambda a, b: a * b, o, x)
    o.append(5.0)
    return [a * b for a, b in it], sum(them)


def grows_in_a_slice(x):
    o, s = [1.0, 2.0, 3.0], 0.0
    for a in itertools.islice(o, 1, 5):
        s += a * x[0]
        o.append(a)
    return s, o


def grows_when_begun(x):
    o = [1.0, 2.0, 3.0]
    it = iter(o)
    s = next(it)
    for a in it:
        s += a * x[0]
        if len(o) < 5:
            o.append(a)
    return s, o


def changes_backwards(x):
    o, s = [1.0, 2.0, 3.0, 4.0], 0.0
    for a in reversed(o):
        s = s * 2 + a * x[0]
        o[0] = 7.0
        if len(o) > 3:
            o.pop(2)
    return s, o


def changes_an_argument_backwards(x, o):
    s = 0.0
    for a in reversed(o):
        s = s * 2 + a * x[0]
        o[0] = 7.0
    return s, o


def a_dict_grows_at_its_end(x):
    d = {0: 1.0}
    try:
        for k, v in enumerate(d.values()):
            d[k + 1] = v * x[0]
    except RuntimeError as error:
        return str(error), d


def a_dict_changes_its_keys(x):
    d = {0: 1.0, 1: x[0]}
    it = iter(d.values())
    first = next(it)
    d.pop(0)
    d[3] = 5.0
    return first, next(it, None)


def loses_items_by_data(x):
    o, seen = [x[0], x[1], x[2], 9.0], []
    for v in o:
        seen.append(v)
        if v < 2.6:
            o.remove(v)
    return o, seen


def loses_its_first_by_data(x):
    o, n = [(x[0], 1.0), (x[1], 2.0), (x[2], 3.0)], 0.0
    for a, b in o:
        n += b
        if a < 1.6:
            o.pop(0)
    return o, n


def loses_its_last_in_a_nest(x):
    o, s = [float(v) for v in x], 0.0
    for v in o:
        for w in o:
            s += w
            if v * w > 2:
                o.pop()
    return o, s


def selected_items_lose_the_last(x):
    o, s = [], 0.0
    for v in x:
        if v > 1:
            o.append(v * 2)
    for v in o:
        s += v
        if v < 5.5:
            o.pop()
    return o, s


def selected_items_become_more(x):
    o, s = [], 0.0
    for v in x:
        if v > 1:
            o.append(v * 2)
    for i, v in enumerate(o):
        s += v * i
        if v < 6:
            o.append(v + 2)
    return o, s


def a_comprehension_takes_from_its_list(x):
    o = [float(v) for v in x]
    return [o.pop() if v > 1 else v for v in o], o


def a_deque_loses_items_by_data(x):
    o, seen = collections.deque([1.0, 2.0, 3.0, 4.0]), []
    try:
        for v in o:
            seen.append(v)
            if v * x[0] > 0.9:
                o.popleft()
    except RuntimeError as error:
        return str(error), o, seen
    return o, seen


class Restarts:
    """An iterator that begins again when it is asked for an iterator, which Python does twice for a starred target."""

    def __init__(self, n):
        self.n, self.i = n, 0

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


def a_starred_target_asks_twice(x):
    first, *rest = Restarts(4)
    (a, *b), c = Restarts(2), 3
    *each, = Restarts(len(x))
    return first, rest, a, b, c, each, [b for a, *b in [Restarts(2), "abc", x]], x + first


def what_cannot_be_unpacked(x):
    told = []
    for value in (5, x[0], None, Restarts, Restarts(1), x):
        try:
            a, b = value
        except (TypeError, ValueError) as error:
            told.append(str(error))
        try:
            a, b, *c = value
        except (TypeError, ValueError) as error:
            told.append(str(error))
    return told, x * 2


BY_DATA = [
    loses_items_by_data, loses_its_first_by_data, loses_its_last_in_a_nest, selected_items_lose_the_last, selected_items_become_more,
    a_comprehension_takes_from_its_list, a_deque_loses_items_by_data,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize(
    "fn",
    [
        *BY_DATA, *map(after_an_effect, BY_DATA), grows_in_zip, grows_after_zip, grows_in_a_slice, grows_when_begun, changes_backwards, changes_an_argument_backwards,
        a_dict_grows_at_its_end, a_dict_changes_its_keys, a_starred_target_asks_twice, what_cannot_be_unpacked,
    ],
)  # fmt: skip
def test_what_is_iterated_may_change_under_its_iterator(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for n in (4, 4, 3, 5):
        given = ([1.0, 2.0, 3.0],) if fn is changes_an_argument_backwards else ()
        same(outcome(compiled, (np.arange(n) + 0.5, *map(list, given))), outcome(fn, (np.arange(n) + 0.5, *map(list, given))))


def takes_from_a_view(view, x):
    items = next(iter(view))[1]
    items.append(x * 3)


def takes_from_an_iterator(view, x):
    for pair in iter(view):
        pair[1].append(x * 3)


def takes_from_a_zip(view, x):
    next(iter(zip(view, [1.0])))[0][1].append(x * 3)


def takes_from_nested_tuples(view, x):
    next(iter(((v, 1.0), 2.0) for v in view))[0][0][1].append(x * 3)


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize(
    "fn", [takes_from_a_view, takes_from_an_iterator, takes_from_a_zip, takes_from_nested_tuples], ids=lambda f: f.__name__
)
def test_what_an_iterator_over_the_callers_objects_gives_is_the_callers(fn, backend):
    """A list that is reached through the iterator, also in tuples, outlives the call: it gets an array."""

    def around(view, x):
        return lambda: fn(view, x)

    fast = cinductor.compile(lambda f: f(), backend=backend)
    for x in (np.arange(3.0), np.arange(4.0)):
        kept = {"k": [0]}
        fast(around(kept.items(), x))
        assert type(kept["k"][1]) is np.ndarray
        np.testing.assert_array_equal(kept["k"][1], x * 3)
