"""Lists of numbers among the arguments, lists of lists, deques, dicts and sets that data index, and effects in loops. Programs as
they are written in public are captured whole. Values, classes, identity of arguments, order and effects are Python's."""

import bisect
import collections
import contextlib
import copy
import functools
import io
import types
from collections import Counter, defaultdict

import numpy as np
import pytest

import cinductor
from cinductor import _core

pytestmark = pytest.mark.filterwarnings("error:cinductor")
BACKENDS = ["interp", "c"]
RNG = np.random.default_rng(5)
INTS = RNG.integers(0, 90, 90).tolist()
FLOATS = RNG.normal(size=90).tolist()
BOOLS = (RNG.random(90) > 0.5).tolist()
GRID = RNG.integers(0, 9, (9, 11)).tolist()


def shown(value):
    """A value with the classes of its parts, and arrays as lists."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.tolist())
    if isinstance(value, dict):
        return (type(value), getattr(value, "default_factory", 0), [(shown(k), shown(v)) for k, v in value.items()])
    if isinstance(value, list | tuple | set | collections.deque):
        return (type(value), [shown(v) for v in value])
    return (type(value), repr(value))


def call(f, args):
    """The result or the exception, what is printed, and the arguments after it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = shown(f(*args))
        except Exception as error:
            result = (type(error), str(error))
    return result, out.getvalue(), shown(args)


def is_whole(f, args):
    with contextlib.redirect_stdout(io.StringIO()):
        report = f.explain(*args)
    return not report.breaks and report.plain is None, report


def check(f, args, backend, whole=True, others=()):
    """Compare three calls, and calls with other arguments, with Python's."""
    compiled = cinductor.compile(f, backend=backend)
    for given in (args, args, args, *others):
        mine, its = copy.deepcopy(given), copy.deepcopy(given)
        assert call(compiled, its) == call(f, mine), given
    if whole:
        found, report = is_whole(compiled, copy.deepcopy(args))
        assert found, report


# --- lists among the arguments ---


def union_find(parent, pairs):
    size = [1] * len(parent)
    for a, b in pairs:
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            if size[a] < size[b]:
                a, b = b, a
            parent[b] = a
            size[a] += size[b]
    return size


def bubble_sort(a):
    for i in range(len(a)):
        for j in range(len(a) - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def looks(a, v):
    return max(a), min(a), sum(a), sorted(a), v in a, a.count(v), a[1:5], list(a), a[-1], len(a), a[::-2], bool(a)


def changes(a):
    a.reverse()
    a.sort()
    a[0], a[-1] = a[-1], a[0]
    return a.index(a[3]), a.copy()


def knapsack(weights, values, capacity):
    best = [0] * (capacity + 1)
    for i in range(len(weights)):
        for c in range(capacity, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best


def beyond_the_end(a):
    for i in range(len(a) + 5):
        a[i] += 1


def minimum_path(grid):
    m, n = len(grid), len(grid[0])
    for i in range(m):
        for j in range(n):
            if i == 0 and j > 0:
                grid[i][j] += grid[i][j - 1]
            elif j == 0 and i > 0:
                grid[i][j] += grid[i - 1][j]
            elif i > 0:
                grid[i][j] += min(grid[i - 1][j], grid[i][j - 1])
    return grid[m - 1][n - 1]


def flipped(grid):
    made = [[0] * len(grid) for _ in range(len(grid[0]))]
    for i in range(len(grid)):
        for j in range(len(grid[0])):
            made[j][i] = grid[i][j]
    return made, max(max(row) for row in grid)


LISTS = [
    (union_find, (list(range(90)), RNG.integers(0, 90, (70, 2)).tolist())),
    (bubble_sort, (INTS,)),
    (bubble_sort, (FLOATS,)),
    (looks, (INTS, 5)),
    (looks, (FLOATS, FLOATS[7])),
    (looks, (BOOLS, True)),
    (changes, (INTS,)),
    (changes, (FLOATS,)),
    (knapsack, (INTS, INTS[::-1], 120)),
    (minimum_path, (GRID,)),
    (flipped, (GRID,)),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, args", LISTS, ids=[f"{f.__name__}-{type(args[0][0]).__name__}" for f, args in LISTS])
def test_lists_among_the_arguments(f, args, backend):
    longer = [a * 4 if type(a) is list and f not in (minimum_path, flipped, union_find) else a for a in args]
    check(f, args, backend, others=[longer, tuple(a[:70] if type(a) is list and f is not union_find else a for a in args)])


@pytest.mark.parametrize(
    "a",
    [INTS[:-1] + [2**70], INTS[:-1] + [True], INTS[:-1] + [0.5], FLOATS[:-1] + [1], INTS[:-1] + [np.int64(3)], [INTS, INTS]],
    ids=["large", "bool", "float", "int", "numpy", "rows"],
)
def test_other_items_are_a_container(a):
    """Also in a call after one whose list is a column."""
    check(bubble_sort, (a,), "interp", False, [(INTS,), (a,)])
    check(bubble_sort, (INTS,), "interp", False, [(a,), (INTS,)])


def test_an_exception_leaves_what_python_does():
    check(beyond_the_end, (INTS,), "interp", False)


def test_overflow_is_pythons():
    def doubled(a):
        for i in range(len(a)):
            a[i] = a[i] * a[i]

    check(doubled, ([3, 2**40] * 50,), "interp", False, [(INTS,)])


def test_signs_of_zero_and_nan():
    def largest(a):
        return max(a), min(a), sorted(a), [v for v in a if v != v]

    check(largest, ([0.0, -0.0] * 50,), "interp")
    check(largest, ([float("nan"), *FLOATS],), "interp", False, [([*FLOATS, float("nan")],)])


def test_the_list_stays_the_same_object():
    def returned(a, b):
        b[0] = a[1]
        return a, a is b, b

    f = cinductor.compile(returned, backend="interp")
    for _ in range(3):
        a, b = INTS[:], INTS[:]
        x, is_one, y = f(a, b)
        assert x is a and y is b and not is_one and b[0] == a[1]
        x, is_one, y = f(a, a)
        assert x is y is a and is_one and a[0] == a[1]


def test_an_item_that_is_unchanged_stays_the_same_object():
    def second(a):
        a[1] += 1

    a = [10**6 + k for k in range(100)]
    f, before = cinductor.compile(second, backend="interp"), a[:]
    for _ in range(2):
        f(a)
    assert all(x is y for k, (x, y) in enumerate(zip(a, before, strict=True)) if k != 1)


def test_a_row_that_is_another_argument():
    def both(grid, row):
        row[0] = 100
        grid[1][1] = 7
        return grid[0][0] + row[1]

    f = cinductor.compile(both, backend="interp")
    for k in (0, 1, 0):
        mine, its = copy.deepcopy(GRID), copy.deepcopy(GRID)
        other = [1] * 11
        assert f(its, its[0] if k else other[:]) == both(mine, mine[0] if k else other[:])
        assert mine == its


def returns_a_row(grid):
    return grid[2], grid[0] is grid[0]


def replaces_a_row(grid):
    grid[0] = grid[1]
    grid[0][0] = 50
    return grid


def grows(a):
    for i in range(len(a)):
        if a[i] > 50:
            a.append(a[i])


def shrinks(a):
    s = 0
    while a:
        s += a.pop()
    return s


def is_given_away(a):
    a[0] = 5
    return np.array(a), sum(a), repr(a)


@pytest.mark.parametrize(
    "f, args",
    [(returns_a_row, (GRID,)), (replaces_a_row, (GRID,)), (grows, (INTS,)), (shrinks, (INTS,)), (is_given_away, (INTS,))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_a_column_is_right(f, args):
    check(f, args, "interp", False)


def test_lists_in_args_and_kwargs():
    def added(*lists, **named):
        for a in lists:
            a[0] += a[1]
        return [sum(a) for a in lists] + [sum(a) for a in named.values()]

    f = cinductor.compile(lambda a, b, c: added(a, b, c=c), backend="interp")
    g = cinductor.compile(added, backend="interp")
    for n in (80, 80, 300):
        lists = [list(range(k, n + k)) for k in range(3)]
        mine, its, others = copy.deepcopy(lists), copy.deepcopy(lists), copy.deepcopy(lists)
        assert added(mine[0], mine[1], c=mine[2]) == f(*its) == g(others[0], others[1], c=others[2])
        assert mine == its == others


# --- lists of lists that the call makes ---


def longest_common(a, b):
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            best[i][j] = best[i - 1][j - 1] + 1 if a[i - 1] == b[j - 1] else max(best[i - 1][j], best[i][j - 1])
    return best[-1][-1], best


def lattice_paths(m, n):
    ways = [[0 for _ in range(n)] for _ in range(m)]
    for i in range(m):
        ways[i][0] = 1
    for j in range(n):
        ways[0][j] = 1
    first = ways[0]
    for i in range(1, m):
        for j in range(1, n):
            ways[i][j] = ways[i - 1][j] + ways[i][j - 1]
    first[1] = 7
    return ways[m - 1], ways[0][1]


def shared_rows(n, x):
    rows = [[0.0] * n] * n
    for i in range(n):
        for j in range(n):
            rows[i][j] += x[j]
    return rows[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f, args, whole",
    [
        (longest_common, (INTS[:20], INTS[5:30]), True),
        (longest_common, (INTS[:70], INTS[5:75]), True),
        (lattice_paths, (13, 12), True),
        (shared_rows, (10, np.arange(10.0)), False),
    ],
    ids=["few", "many", "paths", "shared"],
)
def test_lists_of_lists(f, args, whole, backend):
    check(f, args, backend, whole)


# --- queues ---


def breadth_first(grid):
    h, w = grid.shape
    far = np.full((h, w), -1)
    far[0, 0] = 0
    queue = collections.deque([(0, 0)])
    while queue:
        y, x = queue.popleft()
        for dy, dx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            v, u = y + dy, x + dx
            if 0 <= v < h and 0 <= u < w and grid[v, u] and far[v, u] < 0:
                far[v, u] = far[y, x] + 1
                queue.append((v, u))
    return far, queue


def sliding_maximum(a, k):
    queue, out = collections.deque(), []
    for i, v in enumerate(a):
        while queue and a[queue[-1]] <= v:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - k:
            queue.popleft()
        if i >= k - 1:
            out.append(a[queue[0]])
    return out


def both_ends(x):
    queue = collections.deque([1, 2, 3])
    for k in range(len(x)):
        if x[k] > 0.6:
            queue.append(k)
        elif x[k] > 0.3:
            queue.appendleft(k)
        elif len(queue) > 2:
            queue.pop()
            queue.popleft()
    return queue, len(queue), [v for v in queue]


def empties(x):
    queue = collections.deque([3])
    for k in range(len(x)):
        if x[k] > 0.5:
            queue.popleft()
    return queue


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f, args, whole",
    [
        (breadth_first, ((RNG.random((9, 12)) > 0.3).astype(int),), True),
        (sliding_maximum, (INTS, 5), True),
        (both_ends, (RNG.random(60),), False),
        (empties, (np.array([0.1, 0.9, 0.2]),), False),
        (empties, (np.array([0.1, 0.9, 0.8]),), False),
    ],
    ids=["breadth", "window", "ends", "one", "empty"],
)
def test_queues(f, args, whole, backend):
    check(f, args, backend, whole)


def rows_copied(a, b):
    """The items of a list that is stored as columns go to another list by a slice."""
    n = len(b)
    before, now = [0] * (n + 1), [0] * (n + 1)
    for i in range(len(a)):
        for j in range(n):
            now[j + 1] = before[j] + 1 if a[i] == b[j] else max(before[j + 1], now[j])
        before[:] = now
    return before, now


def slices_stored(a, b):
    n = len(b)
    before, now, tail = [0] * (n + 1), [0] * (n + 1), [9, 9]
    for i in range(len(a)):
        for j in range(n):
            now[j + 1] = before[j] + 1 if a[i] == b[j] else max(before[j + 1], now[j])
        before[1:] = now[1:]
    tail[1:] = now
    tail[:0] = (v for v in before)
    return before, now, tail


def slices_of_no_items(a, b):
    found, now = [], [1, 2]
    for step, item in ((1, 5), (2, a[0]), (1, a.sum()), (2, None)):
        try:
            now[::step] = item
        except TypeError as error:
            found.append(str(error))
    return found, now


SHORT = np.array(INTS[:12]) % 4, np.array(INTS[:9]) % 4


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, whole", [(rows_copied, True), (slices_stored, False), (slices_of_no_items, False)])
def test_slices_of_lists_are_replaced(f, whole, backend):
    check(f, SHORT, backend, whole)


def replaced(now, other, place):
    other[place] = now
    return other


# Uses in which Python itself reads a list whose items are in columns, also inside of another container.
READS = {
    "slice": lambda now, other: replaced(now, other, slice(None)),
    "part": lambda now, other: replaced(now, other, slice(1, 3)),
    "format": lambda now, other: "%s %s" % (now, 1),  # noqa: UP031
    "text": lambda now, other: f"{(now,)} {[other, now]}",
    "count": lambda now, other: ([now].count(list(now)), (other, now).index(list(now))),
    "equal": lambda now, other: ((now, 1) == (list(now), 1), [now] == [other], {1: now} == {1: list(now)}),
    "order": lambda now, other: (sorted([[now], [other]]), max((now, 1), (other, 2))),
    "sums": lambda now, other: (now + other, other + now, now * 2, [*now], (now, other)),
    "made": lambda now, other: (tuple(now), set(now), collections.deque(now), Counter(now), bytes(now), dict(enumerate(now))),
    "calls": lambda now, other: (*map(sum, [now, other]), len(now), max(now), now.index(now[2]), list(reversed(now)), now[::-1]),
    "arrays": lambda now, other: (np.array([now, now]).sum(), np.dot(now, now), np.concatenate([now, other])),
    "changes": lambda now, other: (other.extend(now), other.insert(0, now), now.sort(), now.clear(), other),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", READS)
def test_python_reads_the_items_of_a_list_in_columns(name, backend):
    def summed(x):
        now, other = [0] * (len(x) + 1), [9, 9]
        for i in range(len(x)):
            now[i + 1] = now[i] + int(x[i])
        return READS[name](now, other), now, other

    check(summed, (np.array(INTS[:12]) % 4,), backend, False)


# --- dicts and sets ---


def counted(a):
    counts = {}
    for v in a:
        counts[v] = counts.get(v, 0) + 1
    return counts, len(counts)


def counted_by_test(a):
    counts = {}
    for v in a:
        if v in counts:
            counts[v] += 1
        else:
            counts[v] = 1
    best = -1
    for k, n in counts.items():
        if n > best:
            best = n + k
    return counts, best


def two_sum(a, wanted):
    index = {}
    for i, v in enumerate(a):
        if wanted - v in index:
            return index[wanted - v], i
        index[v] = i
    return None


def first_twice(a):
    seen = set()
    for v in a:
        if v in seen:
            return v
        seen.add(v)
    return -1


def longest_chain(n):
    memo, best = {1: 1}, 0
    for i in range(1, n):
        x, k = i, 0
        while x not in memo:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            k += 1
        memo[i] = memo[x] + k
        best = max(best, memo[i])
    return best, memo


def by_tuples(a, b):
    pairs = {}
    for i in range(len(a)):
        pairs[(a[i], b[i])] = pairs.setdefault((a[i], b[i]), 0) + a[i]
    return pairs


def sums(keys, x):
    total = {}
    for i in range(len(x)):
        k = int(keys[i])
        total[k] = total.get(k, 0.0) + x[i] * 0.5
    return total


def counted_twice(a, b):
    counts = {}
    for v in a:
        counts[v] = counts.get(v, 0) + 1
    for v in b:
        counts[v] = counts.get(v, 0) + 10
    return counts, len(counts)


def counted_in_nests(x):
    seen, last, n = set(), {}, 0
    for i in range(len(x)):
        inner = {}
        for j in range(i):
            k = int(x[j]) * 100 + int(x[i])
            inner[k] = j
            if k not in seen:
                seen.add(k)
                last[k] = i
        n += len(inner)
        last[-i] = n
    return seen, last, n


def is_missing(a):
    known = {3: 1}
    s = 0
    for v in a:
        if v > 80:
            known[v] = s
        s += known[v]
    return s


def grows_meanwhile(a):
    known = {1: 1}
    for v in a:
        known[v] = 1
    for k in known:
        if k < 50:
            known[k + 1000] = 2
    return len(known)


def mixed_keys(a, x):
    known = {}
    for v in a:
        known[v] = 1
    known[x] = 2
    known["s"] = 3
    return known


def drops(a):
    known = {}
    for v in a:
        known[v] = 1
    del known[a[0]]
    known.pop(a[-1], None)
    return known


def items_of_a_set(a):
    seen = set()
    for v in a:
        seen.add(v * 1000)
    return [v for v in seen], sorted(seen), seen


def counted_by_default(a, x):
    """Read by `+=` an absent key has a default; any other read of a defaultdict also stores it."""
    counts, sums, pairs, absent = defaultdict(int), defaultdict(float), Counter(), 0
    for i in range(len(a)):
        counts[a[i]] += 1
        sums[a[i]] += x[i]
        pairs[a[i], a[i - 1]] += counts[a[i] + 10]
        absent += pairs[a[i], a[i] + 1]
    return counts, sums, pairs, absent, len(counts)


def counted_at_once(a):
    counts, best = Counter(a), 0
    for k, n in counts.items():
        best = max(best, n + k)
    return counts, best


def of_any_keys(a):
    counts = defaultdict(lambda: 7)
    counts["a"] += a[0]
    counts["b"]
    for v in a:
        counts[v] += 1
    return counts["c"], dict(counts), sorted(defaultdict(int, {1: 2}))


def makes_only_absent(a):
    """Default factories with effects, and one that raises; they run for absent keys only."""
    made, log, draws = [0], [], iter(range(len(a)))

    def numbered():
        made[0] += 1
        return made[0]

    counts, known, drawn = defaultdict(numbered), defaultdict(lambda: log.append(len(log)) or 1), defaultdict(draws.__next__)
    full = defaultdict(lambda: {}[0], {v: 0 for v in range(100)})
    for v in a:
        counts[v] += 1
        known[v]
        drawn[v]
        full[v] += 1
    return dict(counts), made, dict(known), log, dict(drawn), next(draws), dict(full)


def lists_by_key(a):
    places = defaultdict(list)
    for i, v in enumerate(a):
        places[v].append(i)
    return places


def without_default(a):
    known = defaultdict(None)
    known[a[0]] = 1
    return known[-1]


def sorted_at_once(a):
    seen = set()
    for v in a:
        seen.add(v)
    return sorted(seen)


def looked_at_later(a):
    counts, seen = defaultdict(int), set()
    for v in a:
        counts[v] += 1
        seen.add(v)
    pairs = sorted(counts.items())
    counts[-1] += 1
    seen.add(-5)
    return pairs, dict(counts), max(counts.values()), a[0] in counts, -5 in seen, counts, len(seen)


LARGE = [v * 2**55 - 7 for v in INTS]
DICTS = [
    (counted, (INTS,), True),
    (counted, (LARGE,), True),
    (counted, ([-v for v in INTS],), True),
    (counted, (np.array(INTS),), True),
    (counted_by_test, (INTS,), True),
    (two_sum, (INTS, 100), True),
    (first_twice, (INTS,), True),
    (longest_chain, (60,), True),
    (by_tuples, (INTS, INTS[::-1]), True),
    (sums, (np.array(INTS) % 7, np.array(FLOATS)), True),
    (counted_twice, (INTS, [v // 2 + 50 for v in INTS]), True),
    (counted_in_nests, (np.array(INTS[:20]),), True),
    (counted_by_default, (np.array(INTS), np.array(FLOATS)), True),
    (counted_at_once, (np.array(INTS) // 5,), True),
    (of_any_keys, (np.array(INTS),), False),
    (makes_only_absent, (INTS,), False),
    (makes_only_absent, (np.array(INTS) // 9,), False),
    (lists_by_key, (np.array(INTS) // 9,), False),
    (without_default, (np.array(INTS),), False),
    (sorted_at_once, (np.array(INTS) // 4,), False),
    (looked_at_later, (np.array(INTS) // 4,), False),
    (is_missing, (INTS,), False),
    (grows_meanwhile, (INTS,), False),
    (mixed_keys, (INTS, 1.0), False),
    (mixed_keys, (INTS, True), False),
    (drops, (INTS,), False),
    (items_of_a_set, (INTS,), False),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, args, whole", DICTS, ids=[f"{f.__name__}-{k}" for k, (f, _, _) in enumerate(DICTS)])
def test_dicts_and_sets(f, args, whole, backend):
    check(f, args, backend, whole)


# Uses in which Python itself reads a dict and a set whose keys data decide.
LOOKS = {
    "equal": lambda d, s: (d == dict(d), (d, 1) == (dict(d), 1), d.items() == dict(d).items(), (s,) == (set(s),), s == {1, 2}),
    "text": lambda d, s: ("%s %s" % (d, 1), f"{d}", [d].count(dict(d)), [s].count(set(s))),  # noqa: UP031
    "sorted": lambda d, s: (sorted(s), sorted(d.items(), key=lambda pair: pair[1]), max(d, key=d.get), max(s), len(s)),
    "views": lambda d, s: (d.keys() & {1, 2}, list(reversed(d)), list(zip(d, d.values())), list(map(str, d)), sum(d.values())),
    "made": lambda d, s: ({**d}, tuple(d), frozenset(s), Counter(d), defaultdict(int, d), copy.copy(d), s | {99}, s & {1, 2}),
    "changes": lambda d, s: (d.pop(2), d.popitem(), d.update({5: 5}), s.discard(2), s.update([51]), d.setdefault(88, 7), d.get(77)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("made", [dict, Counter])
def test_python_reads_a_dict_in_columns(name, made, backend):
    def counted(x):
        d, s = made(), set()
        for v in x:
            d[v] = d.get(v, 0) + 1
            s.add(v)
        return LOOKS[name](d, s), d, sorted(s)

    with cinductor.config.patch(recompile_limit=64):  # pieces are counted for all functions of one code
        check(counted, (np.arange(12) % 4 + 1,), backend, False)


def of_a_set_from_before(x):
    """13 and 5 collide in a small table, so their order is that in which they were added."""
    seen = {13, 5}
    for v in x:
        seen.add(int(v))
    return seen, [*seen]


def of_an_empty_set(x):
    seen, total = set(), 0
    for v in x:
        seen.add(int(v))
    for v in seen:
        total = (3 * total + v) % 1009
    return total, [*seen], seen | {1}


def of_dicts(x):
    counts, ends, total = Counter(), {}, 0
    for v in x:
        counts[int(v)] += 1
        ends[int(v) // 3] = int(v)
    known = dict(ends)
    for v in x:
        total += counts[int(v)] + known[int(v) // 3]
    return total, counts.most_common(2), known


@pytest.mark.parametrize("f", [of_a_set_from_before, of_an_empty_set, of_dicts])
def test_python_reads_dicts_and_sets_after_their_loops(f):
    """Sets have Python's order, also of items whose hashes are equal (-1 and -2) or collide."""
    compiled, rng = cinductor.compile(f, backend="interp", mode="now"), np.random.default_rng(4)
    for n in (9, 3, 40, 9, 1, 60, 25, 5, 2):
        x = rng.integers(-20, 60, n)
        assert repr(compiled(x)) == repr(f(x))


# --- effects ---


def prints(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
        if i % 10 == 0:
            print("step", i, s, sep=" | ")
        if x[i] > 0.9:
            print(f"{i:3d}: {x[i]:.3f}{'!'}", end=";\n")
    return s


def prints_before_it_raises(x):
    for i in range(len(x) + 3):
        if i % 2 == 0:
            print(i, x[i])
    return 1


def prints_in_nests(n, x):
    for i in range(n):
        for j in range(i):
            if x[i] > x[j]:
                print((i, j), x[i] - x[j])
        print()
    while x[n] > 0.01 and n < len(x) - 1:
        n += 1
        print(n, x[n] > 0.5, None)


def logs(x, log, names):
    s = 0.0
    for v in x:
        s = 0.9 * s + v
        log.append(s)
        if s > 1:
            names.append(("high", s))
    return log


def logs_and_reads(x, log):
    for v in x:
        if len(log) < 5 or log[-1] < v:
            log.append(v)
    return len(log)


def prints_what_has_no_format(x):
    for i in range(len(x)):
        x[i] += 1.0
        if x[i] > 1.5:
            print(f"{x[i]:d}")


def prints_characters(x):
    for i in range(len(x)):
        x[i] += 1.0
        if i > 20:
            print(f"{i - 99 * (i > 35):c}")


def logs_and_prints(x, log):
    for i in range(len(x)):
        log.append(i)
        print(x[i])
    print(log)


X = RNG.random(40)
EFFECTS = [
    (prints, (X,), True),
    (prints_before_it_raises, (X,), False),
    (prints_in_nests, (9, X), True),
    (prints_what_has_no_format, (X.copy(),), False),
    (prints_characters, (X.copy(),), False),
    (logs, (X, [], []), True),
    (logs, (X, ["a", None], [1]), True),
    (logs_and_reads, (X, []), False),
    (logs_and_prints, (X, [0]), False),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, args, whole", EFFECTS, ids=[f"{f.__name__}-{k}" for k, (f, _, _) in enumerate(EFFECTS)])
def test_effects_in_loops(f, args, whole, backend):
    others = [(v[:13], *args[k + 1 :]) for k, v in enumerate(args[:1]) if isinstance(v, np.ndarray)]
    check(f, args, backend, whole, others)


def test_a_log_that_is_read_under_another_name():
    def both(x, log, other):
        for v in x:
            log.append(v)
        return len(other)

    f = cinductor.compile(both, backend="interp")
    for is_one in (False, True, False):
        log, other = [], [1]
        expected = both(X, mine := [], mine if is_one else [1])
        assert f(X, log, log if is_one else other) == expected
        assert shown(log) == shown(mine)


class Raw(io.RawIOBase):
    """The layer of the user's under a stream of Python's."""

    def __init__(self, write):
        self.write = write

    def writable(self):
        return True


def closed(stream):
    stream.close()
    return stream


STREAMS = {
    "of the user's": lambda write: types.SimpleNamespace(write=write, flush=lambda: None),
    "of Python's over the user's": lambda write: io.TextIOWrapper(Raw(lambda data: write(bytes(data)) or len(data)), write_through=True),
    "that cannot encode a text": lambda write: io.TextIOWrapper(io.BytesIO(), "ascii"),
    "that is closed": lambda write: closed(io.TextIOWrapper(io.BytesIO(), "ascii")),
    "of texts that is closed": lambda write: closed(io.StringIO()),
    "that can": lambda write: io.TextIOWrapper(io.BytesIO(), "utf-8"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", STREAMS)
def test_when_a_stream_is_written_to(kind, backend, monkeypatch):
    """The user's code runs, and an error is raised, at the time at which Python would write."""
    x = X.copy()

    def prints_and_writes(x):
        for i in range(len(x)):
            x[i] += 1.0
            if x[i] > 1.5:
                print("\u00e9", i)

    def outcome(f):
        seen, x[:] = [], X
        stream = STREAMS[kind](lambda text: seen.append((text, x.sum())))
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", stream)
            try:
                f(x)
            except ValueError as error:
                seen.append(str(error))
        text = stream.buffer.getvalue() if kind.startswith("that can") and not stream.flush() else None
        return seen, text, x.tolist()

    f = cinductor.compile(prints_and_writes, backend=backend)
    for _ in range(2):
        assert outcome(f) == outcome(prints_and_writes)


def test_numbers_that_are_printed_like_others():
    """NumPy's numbers have the class that they were appended with, also if NumPy prints them like Python's."""

    def logs_both(x, log):
        for v in x:
            if v > 0.5:
                log.append(2.0)
            else:
                log.append(np.float64(2.0))

    logs_both(X, expected := [])
    for backend in BACKENDS:
        with np.printoptions(legacy="1.25"):
            cinductor.compile(logs_both, backend=backend)(X, log := [])
        assert [*map(type, log)] == [*map(type, expected)]


def test_two_loops_append_to_a_list():
    def grown(x):
        out = []
        for i in range(len(x)):
            if x[i] > 0.5:
                out.append(i)
        for i in range(len(x)):
            if x[i] < 0.3:
                out.append(-i)
        while len(out) > 20:
            out.pop()
        for v in x:
            if v > 0.9:
                out.append(3)
        return out

    for backend in BACKENDS:
        check(grown, (X,), backend, others=[(X[:11],), (X,)])


def test_a_list_in_order_that_grows():
    def inserted(a):
        held = [a[0]]
        for v in a[1:]:
            bisect.insort(held, v)
            if len(held) > 20:
                held.pop(0)
                held.remove(held[3])
        return held

    check(inserted, (INTS,), "c")


@pytest.mark.parametrize("is_set", [True, False])
def test_after_an_effect_no_container_is_a_column(is_set):
    """A use that has no column needs another capture, and there is none after an effect."""

    def used(x):
        n, s, made = len(x), 0, {1, 2, 3} if is_set else [[0] * 3 for _ in range(4)]
        effect = functools.partial(max)
        effect.number = 1
        for k in range(n):
            if is_set:
                s += len(made ^ {1})
                made.add(n + 4)
            else:
                made[k % 3][1] = k
        return s, sorted(made) if is_set else made[1:]

    compiled = cinductor.compile(used)
    for n in (5, 7, 5, 30, 4):
        assert compiled(np.arange(n) % 4.0) == used(np.arange(n) % 4.0)


def test_a_list_that_changes_while_its_column_is_stored():
    """Freeing a replaced item may run Python that changes the list: an error, and no read beyond the array."""

    class Freed:
        def __init__(self, action):
            self.action = action

        def __del__(self):
            self.action()

    numbers, table = [1, 2], [[1, 2], [3, 4]]
    for source, row, change in [
        (numbers, numbers, lambda: numbers.extend([5] * 1000)),
        (table, table[0], lambda: table.__setitem__(1, "no list")),
    ]:
        column = _core.list_column(source)
        column[...] = 7
        row[0] = Freed(change)
        with pytest.raises(RuntimeError, match="a list has changed during the call"):
            _core.store_column(source, column)
    assert numbers == [7, 2] + [5] * 1000 and table == [[7, 7], "no list"]
