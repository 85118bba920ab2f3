"""Builtins that read all elements of an array. Results, types, effects and exceptions are Python's for every length. No builtin
takes a node for each of many elements."""

import bisect
import collections
import functools
import heapq
import itertools
import linecache
import operator
import warnings

import numpy as np
import pytest

import cinductor
from cinductor.capture.call_state import Stage

LENGTHS = (0, 1, 7, 300)
DTYPES = ("d", "f", "B", "?", "D")
seen = []


def told(v):
    seen.append(float(v.real))
    return v


def values(n, dtype):
    """Arrays of that length: random, with equal items, with NaN first, inside and last, and with zeros of both signs.
    """
    rng = np.random.default_rng(n)
    x = rng.integers(-9, 9, n).astype(dtype) if dtype != "?" else rng.random(n) > 0.5
    yield x
    yield np.sort(x)[::-1]
    if x.dtype.kind in "fc" and n:
        for places in ([0], [n // 2], [n - 1], slice(None), slice(1, None, 2)):
            other = x.copy()
            other[places] = np.nan
            yield other
        yield np.where(np.arange(n) % 2, -0.0, 0.0).astype(dtype)
        yield np.full(n, np.inf).astype(dtype)


def said(fn, *args):
    """The result of a function with types, or its exception; and its log."""
    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = fn(*args)
        except Exception as error:
            found = type(error), str(error)
    return repr(found), repr(seen)


FUNCTIONS = {
    "min": min,
    "max": max,
    "min or": lambda a: min(a, default=None),
    "max by": lambda a: max(a, key=lambda v: -abs(v)),
    "min of two": lambda a: min([v * 2 for v in a], default=3),
    "max of each": lambda a: max(v + 1 for v in a),
    "place of max": lambda a: max(range(len(a)), key=lambda i: a[i]),
    "place of min": lambda a: min(range(5, 5 + 2 * len(a), 2), key=lambda i: a[(i - 5) // 2]),
    "sum": sum,
    "sum from": lambda a: sum(a, a[0]),
    "any": any,
    "all": all,
    "any of each": lambda a: any(v > 3 for v in a),
    "sorted": sorted,
    "sorted by": lambda a: sorted(a, key=lambda v: (abs(v), told(v).real)),
    "order": lambda a: sorted(range(len(a)), key=lambda i: a[i], reverse=True),
    "list": list,
    "tuple": tuple,
    "set": lambda a: sorted(map(repr, set(a))),
    "comprehension": lambda a: [v for v in a],  # noqa: C416
    "other comprehensions": lambda a: ({i: v * 2 for i, v in enumerate(a)}, [w for v in a for w in (v, -v)]),
    "zip": lambda a: list(zip(a, a[1:], strict=False)),
    "enumerate": lambda a: (list(enumerate(a, 3)), dict(enumerate(a))),
    "map": lambda a: list(map(told, a)),
    "filter": lambda a: list(filter(lambda v: told(v).real > 0, a)),
    "reversed": lambda a: list(reversed(a)),
    "slices": lambda a: list(itertools.islice(a, 1, len(a), 2)),
    "pairs": lambda a: max(itertools.pairwise(a), key=lambda p: abs(p[1] - p[0]), default=0),
    "join": lambda a: ",".join(map(str, a)),
    "counter": lambda a: collections.Counter(a.tolist()).most_common(2),
    "counter by names": lambda a: (collections.Counter(u=1, v=2) - collections.Counter(u=-1, v=1), a[:1] * collections.Counter(u=3)["u"]),
    "heap": lambda a: (heapq.nsmallest(3, a.real), heapq.heappop([*a.real])),
    "bisect": lambda a: bisect.bisect(sorted(a.real), 2),
    "reduce": lambda a: functools.reduce(operator.mul, a[:20], 1),
    "star": lambda a: max(*a, -3),
    "unpacked": lambda a: [*a, *a[::-1]],
    "extended": lambda a: extended(a),
    "iterator": lambda a: of_an_iterator(a),
    "written": lambda a: written(a),
    "steps": lambda a: stepped(a),
}


def extended(a):
    made = [1]
    made.extend(a)
    made += tuple(a)
    also = [2]
    also += a
    return made, also


def of_an_iterator(a):
    it = iter(enumerate(a))
    first = next(it, None)
    rest = list(it)
    return first, rest, next(it, "ended")


def written(a):
    """The array changes while it is iterated."""
    made = []
    for v in (w * 2 for w in a):
        a[-1] = len(made)
        made.append(v)
    return made, a


def stepped(a):
    it = iter(a)
    return [next(it, 0), sum(itertools.islice(it, 2)), list(it)]


def named(fn):
    """A Python function that calls the builtin, which itself has no code that could be compiled."""
    return fn if fn.__class__ is type(named) else lambda a: fn(a)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_pythons(name):
    fn = named(FUNCTIONS[name])
    for dtype in DTYPES:
        compiled = cinductor.compile(fn, backend="interp")
        for n in LENGTHS:
            for x in values(n, dtype):
                for _ in range(2):
                    ours, theirs = x.copy(), x.copy()
                    assert said(compiled, ours) == said(fn, theirs), (dtype, n)
                    assert repr(ours) == repr(theirs)
                if n > 40 and name not in ("min", "max", "sum"):
                    break


def under_a_sort(a):
    found = sorted(a)
    return a * found[0], found[-1]


@pytest.mark.parametrize("fn", [sorted, min, max, sum, list, set, any, under_a_sort, *map(FUNCTIONS.get, ["order", "place of max", "zip", "map", "star"])])
def test_many_elements_are_few_nodes(fn):
    """The number of nodes does not grow with the array, and there are at most two breaks."""
    compiled = cinductor.compile(lambda a: fn(a), backend="interp")
    x = np.random.default_rng(0).normal(size=5000)
    seen.clear()
    assert repr(compiled(x)) == repr(fn(x))
    last = compiled._cinductor_job.last
    assert len(last.breaks) <= 2 and last.info.get("nodes", 0) < 60


WRONG = """
enumerate(v, 1.5)
enumerate(v, v[0])
enumerate(v, 1, 2)
enumerate(v, step=2)
range(v[0])
[*range(0, 5, v[0])]
round(v[0], 1.5)
round(v[0], 1, 2)
any(v, v)
all()
reversed(v, 1)
sorted(v, None)
sorted(v, reverse=1.5)
sorted(v, what=3)
sorted(v, key=3)
min(v, what=2)
min(v, 3, default=2)
max(v[:0])
min(v[0], key=abs)
sum(v, v, v)
sum(v, start='')
list(v, v)
set(v, v)
dict(v)
list(map(None, v))
list(zip(v, 3))
math.ldexp(2.5, np.int64(3))
math.ldexp(v[0], 2.5)
math.ldexp(v[0], w[0])
list(itertools.islice(v, 1.5))
list(itertools.islice(v, v[0]))
next(iter(v), 1, 2)
""".strip().splitlines()
RIGHT = ["enumerate(v, True)", "enumerate(v, w[1])", "enumerate(v, start=w[1])", "list(enumerate(v, int(v[2])))", "round(v[0], w[0])"]


@pytest.mark.parametrize("text", [*WRONG, *RIGHT])
def test_arguments_are_checked(text):
    source = f"def f(v, w):\n    found = {text}\n    return found if type(found) is not enumerate else [*found]\n"
    linecache.cache[text] = (len(source), None, source.splitlines(True), text)
    space = {**globals()}
    exec(compile(source, text, "exec"), space)
    fn = space["f"]
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        args = np.arange(1.0, 6.0), np.arange(1, 6)
        assert said(compiled, *args) == said(fn, *args)


def sorts(log, x):
    return sorted(x, key=lambda v: log.append(float(v)) or -v)


def chooses(log, x):
    return max(x, key=lambda v: log.append(float(v)) or v), min((log.append(float(v)) or v for v in x), default=0)


@pytest.mark.parametrize("fn", [sorts, chooses])
def test_effects_of_a_key_come_once_and_in_order(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for n in (3, 0, 500, 3):
        ours, theirs, x = [], [], np.random.default_rng(n).normal(size=n)
        assert said(compiled, ours, x) == said(fn, theirs, x)
        assert ours == theirs


def test_a_capture_ends_with_fullgraph(monkeypatch):
    """With a clear error, where only the limit would end it."""
    now = itertools.count()
    monkeypatch.setattr(Stage, "clock", staticmethod(lambda: next(now) * 1e-3))

    def fn(x):
        kept = {}
        for k in range(1 << 60):
            kept[k % 7] = len(kept)
        return x

    compiled = cinductor.compile(fn, fullgraph=True, options={"capture_limit": 0.001})
    with pytest.raises(cinductor.Unsupported, match="capture_limit.*fullgraph"):
        compiled(np.arange(3.0))
