"""Tests iteration over indexable items (iter, zip, map and itertools over arrays, ranges, lists and views) in
captured loops.

Also tests every place where Python can observe the iterators: the items they hold, their position, the functions
they call.
"""

import itertools
import operator

import cases
import numpy as np
import pytest
from test_regions import check, nodes, outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
X = np.arange(24.0) / 24 - 0.25
CASES, OTHERS = [], []
case = cases.entering(CASES, (X,))


def other(fn):
    """One that Python runs in part."""
    OTHERS.append(fn)
    return fn


@case()
def a_list_under_a_condition(x):
    it, s = iter([1.0, 2.0, 4.0, 8.0] * 6), 0.0
    for i in range(len(x)):
        if x[i] > 0:
            s += next(it)
    return s


@case()
def a_view_of_a_dict(x):
    it, s = iter({k: k * 0.5 for k in range(30)}.values()), 0.0
    for v in x:
        s += v * next(it)
    return s, list(it)


@case()
def counted(x):
    c, s = itertools.count(3, 2), 0.0
    for v in x:
        if v > 0.25:
            s += v * next(c)
    return s, next(c), next(c)


@case()
def one_behind_the_other(x):
    s = 0.0
    for v in itertools.chain((1.0, 2.0), x, x[::-2]):
        s = s * 0.5 + v
    return s


@case()
def places_behind_each_other(x):
    s = 0.0
    for i in itertools.chain(range(4), range(20, 24), (7,)):
        s = s * 0.5 + x[i]
    return s


@case()
def a_chain_that_is_written_to(x):
    for v in itertools.chain(x, x[::-1]):
        x[3] += v * 0.1
    return x


@case()
def pairs_of_places(x):
    s = 0.0
    for i, j in itertools.combinations(range(9), 2):
        s = s * 0.5 + x[i] * x[j]
    for i, j in itertools.combinations_with_replacement((1, 3, 4, 8), 2):
        s = s * 0.5 + x[i] * x[j]
    for i, j, k in itertools.permutations(range(0, 9, 2), 3):
        s = s * 0.5 + x[i] * x[j] - x[k]
    return s


@case()
def the_next_pairs(x):
    pairs, s = itertools.combinations(range(9), 2), 0.0
    for k in range(20):
        i, j = next(pairs)
        s += x[i] * x[j] * k
    return s, list(pairs)


@case()
def sums_so_far(x):
    s = 0.0
    for v, w in zip(itertools.accumulate(x), itertools.accumulate(x + 1.5, operator.mul)):
        s = s * 0.5 + v * w
    return s


@case()
def numbered_by_a_count(x):
    c, s = itertools.count(), 0.0
    for k, v in zip(c, x):
        s += k * v
    return s, next(c)


@case()
def a_count_after_what_ends(x):
    c, s = itertools.count(), 0.0
    for v, k in zip(x, c):
        s += k * v
    return s, next(c)


@case()
def signs(x):
    c, s = itertools.cycle((1.0, -1.0, 2.0)), 0.0
    for v in x:
        s += v * next(c)
    return s


@case()
def signs_of_a_list(x):
    s = 0.0
    for v, sign in zip(x, itertools.cycle([1.0, -1.0])):
        s += v * sign
    return s


@case()
def the_same_each_time(x):
    s = 0.0
    for v, w in zip(x, itertools.repeat(2.5)):
        s += v * w
    for _ in itertools.repeat(None, len(x)):
        s = s * 0.5 + x[0]
    return s


@case()
def parts(x):
    s = 0.0
    for v in itertools.islice(x, 3, None, 2):
        s = s * 0.5 + v
    for v in itertools.islice(x, len(x) // 2):
        s = s * 0.5 - v
    for v in itertools.islice(x, 100):
        s = s * 0.5 + v
    return s


@case()
def the_first_ones_and_the_others(x):
    it, s = iter(x), 0.0
    for v in itertools.islice(it, 5):
        s += v
    for v in it:
        s = s * 0.5 - v
    return s


@case()
def neighbours(x):
    s = 0.0
    for a, b in itertools.pairwise(x):
        s += a * b
    for a, b, c in zip(x, x[1:], x[2:]):
        s -= a * b * c
    return s


@case()
def all_pairs(x):
    s = 0.0
    for i, j in itertools.product(range(len(x)), range(4)):
        s = s * 0.5 + x[i] * j
    return s


@case()
def mapped(x):
    s, k = 0.0, 2.0
    for v in map(lambda a: a * k, x):
        s = s * 0.5 + v
    for v in map(operator.mul, x, x[::-1]):
        s = s * 0.5 + v
    for v in itertools.starmap(operator.sub, zip(x, x[::-1])):
        s = s * 0.5 + v
    return s


@case()
def mapped_in_steps(x):
    m, s = map(np.square, x), 0.0
    for i in range(len(x) // 2):
        s += next(m) * x[i]
    for v in m:
        s -= v
    return s


@case()
def items_that_a_loop_sets(x):
    w, s = [0.0, 1.0, 2.0] * 4, 0.0
    for k, v in enumerate(w):
        w[11 - k] = v + x[k]
        s += v * x[k]
    return s, w


@case()
def a_dict_that_gets_its_keys(x):
    d = {}
    for v in x:
        d.setdefault("sum", 1.0)
        d["sum"] = d["sum"] * 0.5 + v
        d.update(last=v)
    return d


@case()
def taken_and_put_back(x):
    d = {"a": 0.0}
    for v in x:
        d["a"] = d.pop("a") * 0.5 + v
    return d


@pytest.mark.parametrize("fn, args", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_is_captured_whole(fn, args):
    check(fn, *args)
    check(fn, *(a[:18] for a in args))
    check(fn, *(a[:12] for a in args))


ONE_SIZE = [counted, numbered_by_a_count, signs, signs_of_a_list, the_same_each_time, neighbours, all_pairs, mapped]


@pytest.mark.parametrize("fn", ONE_SIZE)
def test_size_does_not_depend_on_iterations(fn):
    assert nodes(fn, X) == nodes(fn, np.arange(96.0))


@pytest.mark.parametrize("fn", [*ONE_SIZE, mapped_in_steps])
def test_one_program_for_any_length(fn):
    compiled = cinductor.compile(fn, fullgraph=True, backend="interp", dynamic=True)
    for n in (24, 31, 57):
        x = np.random.default_rng(n).random(n)
        same(compiled(x), fn(x))
    assert compiled._cinductor_job.captures == 1


# --- where Python can observe the iterators ---


@other
def after_a_condition(x):
    it, c, s = iter([float(k) for k in range(30)]), itertools.cycle((1.0, -1.0, 2.0)), 0.0
    for v in x:
        if v > 0.5:
            s += next(it) * next(c)
    return s, next(it), next(c)


@other
def a_list_that_grows_behind_its_iterator(x):
    w = [1.0, 2.0]
    it, s = iter(w), 0.0
    for k, v in zip(it, x):
        s += k * v
        if len(w) < 12:
            w.append(k + 1)
    return s, w, list(it)


@other
def a_list_that_loses_items(x):
    w, s = [float(k) for k in range(20)], 0.0
    for k, v in enumerate(w):
        s += v * x[k]
        w.pop()
    return s, w


@other
def a_cycle_of_what_changes(x):
    w, s = [1.0, 2.0, 3.0], 0.0
    c = itertools.cycle(w)
    for v in x:
        k = next(c)
        w[0] = k * 2
        s += v * k
    return s, w, next(c)


@other
def a_cycle_of_what_grows(x):
    w, s = [1.0, 2.0, 3.0], 0.0
    c = itertools.cycle(w)
    s += next(c)
    w.append(7.0)
    for v in x:
        s += v * next(c)
    w.append(9.0)
    return s, [next(c) for _ in range(9)]


@other
def a_cycle_that_changes_after_a_loop(x):
    w, s = [1.0, 2.0, 3.0], 0.0
    c = itertools.cycle(w)
    for v in x:
        s += v * next(c)
    w[1] = 50.0
    return s, [next(c) for _ in range(4)]


@other
def a_dict_that_grows(x):
    d, s = {k: k * 0.5 for k in range(12)}, 0.0
    for k, v in zip(d.values(), x):
        s += k * v
        d[len(d)] = v
    return s


@other
def effects_of_what_is_mapped(x):
    seen = []

    def f(v):
        seen.append(1)
        return v * 2

    m, s = map(f, x), 0.0
    for v, _ in zip(m, range(5)):
        s += v
    return s, len(seen), next(m), len(seen)


@other
def a_map_whose_function_ends_it(x):
    it, s = iter([1.0, 2.0, 3.0]), 0.0
    for v in map(lambda a: a * next(it), x):
        s += v
    return s


@other
def a_map_that_ends_with_an_else(x):
    it, s = iter(range(15)), 0.0
    for v in map(lambda a: a * next(it), x):
        if v > 100:
            break
        s += v
    else:
        s = -s
    return s


@other
def one_iterator_twice(x):
    it, s = iter([float(k) for k in range(24)]), 0.0
    for a, b in zip(it, it):
        s += a * b * x[0]
    return s


@other
def what_a_shorter_one_leaves(x):
    it, s = iter(range(100)), 0.0
    for k, v in zip(it, x):
        s += k * v
    for v, k in zip(x, it):
        s -= k * v
    return s, next(it)


@other
def what_islice_leaves(x):
    c, s = itertools.count(), 0.0
    for k in itertools.islice(c, 12):
        s += x[k]
    it = iter(x)
    for v in itertools.islice(it, 2, 9, 3):
        s += v
    return s, next(c), next(it)


@other
def seen_by_others_in_the_middle(x):
    it, s = itertools.cycle([1.0, 2.0, 3.0]), 0.0
    s += np.fromiter(itertools.islice(it, 2), float).sum()
    pairs = enumerate(it, 5)
    s += next(pairs)[1]
    for v in x:
        s += next(map(abs, it)) * v
    seen = np.fromiter((k for (k, _), _ in zip(pairs, range(4))), float)
    return s, seen, next(it), next(pairs), list(itertools.islice(it, 4))


@other
def what_is_left_is_given_away(x):
    it, c = iter([float(k) for k in range(9)]), itertools.count()
    m, first = map(operator.add, it, c), 0.0
    for _ in range(3):
        first += next(m)
    taken = np.fromiter(itertools.islice(m, 2), float)
    return first * x[0], taken, next(it), next(c), next(m)


@other
def added_up(x):
    s = 0.0
    for v in itertools.accumulate(x):
        s += v * v
    for v in itertools.accumulate(x, operator.mul, initial=2.0):
        s += v
    return s


@other
def of_which_class(x):
    z, c, m = zip(x, x[1:]), itertools.count(), map(abs, x)
    known = isinstance(z, zip), isinstance(c, itertools.count), isinstance(m, map), isinstance(iter([x]), list)
    return known, type(z).__name__, type(c).__name__, repr(itertools.count(3)), x.sum()


@other
def rows_of_two_axes(x):
    a, s = x[: len(x) // 2 * 2].reshape(-1, 2).copy(), 0.0
    for r, q in itertools.pairwise(a):
        q += r
        s += q.sum()
    for r, k in zip(a, itertools.count()):
        r *= k
    return a, s


@other
def parts_of_no_such_number(x):
    try:
        for v in itertools.islice(x, -1):
            x = x + v
    except ValueError as error:
        return str(error)


@other
def a_count_that_is_no_int(x):
    c, s = itertools.count(0.1, 0.1), 0.0
    for v in x:
        s += next(c) * v
    return s, next(c)


@other
def a_chain_of_a_list_that_shrinks(x):
    items, s = [1.0] * 20, 0.0
    for v in itertools.chain(items, x):
        if len(items) > 4:
            items.pop()
        s = s * 0.5 + v
    return s


@other
def sums_of_what_changes(x):
    s = 0.0
    for v in itertools.accumulate(x):
        x += 1
        s += v
    return s, x


@other
def a_chain_of_rows(x):
    s = np.zeros(2)
    for row in itertools.chain(x.reshape(-1, 2), x.reshape(-1, 2) * 2):
        s = s * 0.5 + row
    return s


@other
def asked_of_a_range(x):
    """Questions that Python asks of an object's class."""
    r = range(1, int(x.sum()))
    kinds = type(r).__name__, isinstance(r, range), isinstance(r, list), callable(r)
    return bool(r), not r, 5 if r else 6, r and r[-1], len(r), kinds, bool(x.flat), not x[:0].flat, type(x.flat).__name__


@other
def a_modulus_takes_ints_of_python(x):
    found = []
    for a in (int(x.sum()), np.int64(x.sum()), x.sum(), x.astype(int)[0]):
        try:
            found.append(pow(a, 2, 7))
        except TypeError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("fn", OTHERS)
def test_as_python_would(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for n in (24, 24, 13, 2, 24):
        x = np.arange(n) / n
        mine, theirs = x.copy(), x.copy()
        same(outcome(compiled, (mine,)), outcome(fn, (theirs,)))
        same(mine, theirs)


def test_what_has_no_numbers_says_so():
    def f(x):
        s = 0.0
        for v in filter(None, x):
            s += v
        return s

    compiled = cinductor.compile(f, backend="interp")
    same(compiled(X + 1), f(X + 1))
    assert any("the items of this filter cannot be indexed" in text for text in map(str, compiled._cinductor_job.last.regions))
