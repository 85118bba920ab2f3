"""Tests values read from arguments that are Python objects: items of lists, tuples and dicts, also by an index or key
that is itself an argument. A call with other values must not reuse the code compiled for the first ones.
"""

import collections
import copy
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


# --- long lists of tuples, and lists of lists of several lengths, which are read as arrays ---


def length_of_path(points):
    total = 0.0
    for (a, b), (x, y) in zip(points, points[1:], strict=False):
        total += ((x - a) ** 2 + (y - b) ** 2) ** 0.5
    return total, points[3], points[-1][0], len(points)


def hull(points):
    """Andrew's chain."""
    kept = []
    for p in sorted(points):
        while len(kept) >= 2:
            (ax, ay), (bx, by) = kept[-2], kept[-1]
            if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                break
            kept.pop()
        kept.append(p)
    return kept, np.array(kept)


def in_orders(points):
    by_last = sorted(points, key=lambda p: (p[-1], -p[0]))
    return by_last[0], sorted(points, reverse=True)[:2], min(points), max(points), points[2] in points


def appended(points):
    rows = []
    for k, p in enumerate(points):
        if p[0] > 0.3:
            rows.append((k, p[1]))
    rows.sort(reverse=True)
    return rows, np.array(rows)


def in_the_list_twice(points):
    kept = [p for p in points if p[0] > 0.3]
    return points[0] is points[0], points[0] is points[1], kept[0] is kept[0]


def depth_first(graph):
    seen, stack, order = [False] * len(graph), [0], []
    while stack:
        u = stack.pop()
        if seen[u]:
            continue
        seen[u] = True
        order.append(u)
        for v in reversed(graph[u]):
            stack.append(v)
    return order


def of_rows(graph):
    first = [row[0] if row else -1 for row in graph]
    return first, [max(row) for row in graph if row], [len(row) for row in graph], sum(v for row in graph for v in row)


def of_two_rows(graph):
    return graph[0] is graph[0], graph[1] is graph[0], graph[2] == graph[3], graph[0] is None, 3 in graph[5]


def given_back(graph):
    return graph[1], graph


def changed(graph):
    graph[2].append(5)
    graph[3] = [1]
    return len(graph[2])


def weights(graph):
    return [sum(w for _, w in row) for row in graph], graph[1][0]


def points_of(rng, n):
    return ([tuple(p) for p in rng.random((n, 2)).tolist()],)


def neighbours(rng, n):
    return ([rng.integers(0, n, int(rng.integers(0, 7))).tolist() for _ in range(n)],)


def weighted(rng, n):
    return ([[(v, v / 2) for v in (*row, 1)] for row in neighbours(rng, n)[0]],)


ABOUT_TUPLES = [length_of_path, hull, in_orders, appended]
ABOUT_LISTS = [depth_first, of_rows]
WHOLE = [*((f, points_of) for f in ABOUT_TUPLES), *((f, neighbours) for f in ABOUT_LISTS), (weights, weighted)]
LEFT = [(in_the_list_twice, points_of), *((f, neighbours) for f in (of_two_rows, given_back, changed))]


@pytest.mark.parametrize(("program", "make"), [*WHOLE, *LEFT], ids=lambda f: f.__name__)
def test_of_a_long_list(program, make):
    compiled = cinductor.compile(program, backend="interp", options={"capture_limit": float("inf")})
    for n in (60, 75, 9):
        agree(program, compiled, lambda n=n: make(np.random.default_rng(n), n)[0])
    if (program, make) in WHOLE:
        report = cinductor.explain(compiled, *make(np.random.default_rng(0), 60))
        assert not report.breaks and report.plain is None


SAME_ROWS = {"of several lengths": lambda n: [[k] * (k % 4 + 1) for k in range(n)], "of one length": lambda n: [[k] * 4 for k in range(n)]}


def stored_in_a_row(graph, row):
    before = sum(v for r in graph for v in r)
    row[0] = before
    return before, sum(v for r in graph for v in r)


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("rows", SAME_ROWS)
def test_a_list_that_is_in_another_argument(rows, is_inside):
    """A short list changes, which a list that is read as an array contains."""
    compiled = cinductor.compile(stored_in_a_row, backend="interp")
    for _ in range(2):
        for inside in (is_inside, not is_inside):
            ours, theirs = SAME_ROWS[rows](60), SAME_ROWS[rows](60)
            pairs = [(graph, graph[1] if inside else [1, 2]) for graph in (ours, theirs)]
            assert compiled(*pairs[0]) == stored_in_a_row(*pairs[1])
            assert pairs[0] == pairs[1]


@pytest.mark.parametrize(
    "items",
    [
        [(1, 2.5)] * 40,
        [(1, float("nan"))] * 40,
        [(True, False)] * 40,
        [(k, 1 << 62) for k in range(40)],
        [(k, 1 << 70) for k in range(40)],
        [(1, 2), (1, 2.0)] * 20,
        [(1, 2), (1, 2, 3)] * 20,
        [[]] * 400,
        [[], [1, 2]] * 40,
        [[1], [2.0]] * 40,
        [[(1, 2)], []] * 40,
        [(), ()] * 200,
    ],
    ids=str,
)
def test_of_items_of_several_classes(items):
    def parts(held):
        total = 0
        for k, row in enumerate(held):
            for v in row:
                total += k * v[0] if isinstance(v, tuple) else v
        return total, held[1], len(held)

    compiled = cinductor.compile(parts, backend="interp")
    for _ in range(2):
        agree(parts, compiled, lambda: copy.deepcopy(items))
