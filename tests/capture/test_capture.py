"""Runs programs plain and captured, several times, and compares the results.

Most use a feature through which Python can act unseen: containers that outlive the call, classes with operators,
iterators, closures, generators. Scenarios change a value between two calls that the first call has read.
"""

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import operator
import os
import subprocess
import sys
import types
import typing
import warnings

import numpy as np
import pytest
from folders import TESTS

import cinductor
from cinductor.testing import assert_same, check

X = np.arange(12.0).reshape(3, 4)
W = [np.ones(4), np.full(4, 2.0)]
CFG = {"a": {"b": [1, 2.5, np.ones(4)]}, "n": 3}
T = (1.5, np.arange(4.0), "s")


class Vec:
    def __init__(s, x, y):
        s.x, s.y = x, y

    def __add__(s, o):
        return Vec(s.x + o.x, s.y + o.y)

    def __iter__(s):
        yield s.x
        yield s.y

    def __getitem__(s, i):
        return (s.x, s.y)[i]

    def __len__(s):
        return 2

    def __bool__(s):
        return bool(s.x.size)

    def __eq__(s, o):
        return np.array_equal(s.x, o.x)

    def __call__(s, k):
        return s.x * k


V = Vec(np.ones(4), np.zeros(4))


class Slots:
    __slots__ = ("a", "b")

    def __init__(s):
        s.a = np.ones(4)
        s.b = 3.0


S = Slots()


class Cached:
    def __init__(s):
        s.w = np.ones(4)

    @functools.cached_property
    def z(s):
        return s.w * 2


class Dyn:
    def __getattr__(s, n):
        return np.ones(4) if n == "foo" else object.__getattribute__(s, n)


@functools.lru_cache
def lru(n):
    return np.ones(n)


@dataclasses.dataclass(frozen=True)
class Fz:
    a: typing.Any
    b: float = 2.0

    def go(s, x):
        return x * s.b + s.a


@dataclasses.dataclass
class PI:
    a: typing.Any

    def __post_init__(s):
        s.c = s.a * 2


NT = collections.namedtuple("NT", "p q")
COUNT = 0
PROGRAMS = []


def program(fn):
    PROGRAMS.append(fn)
    return fn


@program
def p1(x):
    a, (b, *c) = CFG["a"]["b"][0], CFG["a"]["b"]
    return x * a + b + c[0] + c[1]


@program
def p2(x):
    joined = W + [x[0]]
    return sum(joined) + len(joined)


@program
def p3(x):
    return [w * 2 for w in W][1] + [*W, 3][0]


@program
def p4(x):
    for w in reversed(W):
        x = x * w
    return x


@program
def p5(x):
    v = V + Vec(x, x)
    return v.x, v[1], len(v), [*v][0]


@program
def p6(x):
    return V(x) if V else x


@program
def p7(x):
    return S.a * x + S.b


@program
def p8(x):
    c = Cached()
    return c.z + c.z + x


@program
def p9(x):
    return Dyn().foo * x


@program
def p10(x):
    return lru(4) + x


@program
def p11(x):
    return Fz(x).go(x), PI(x).c, dataclasses.replace(Fz(x), b=3.0).b


@program
def p12(x):
    p = NT(x, 1)
    q = p._replace(q=x * 2)
    return q.q, q.p + p[0], p._asdict()["p"]


@program
def p13(x):
    d = collections.defaultdict(list)
    for i, r in enumerate(x):
        d[i % 2].append(r)
    return {k: sum(v) for k, v in d.items()}


@program
def p14(x):
    return (
        functools.reduce(lambda a, b: a + b, [x, x * 2, x * 3]),
        list(map(operator.neg, [x])),
        list(filter(None, [1, 0])),
    )


@program
def p15(x):
    return (
        list(itertools.chain([x], [x + 1])),
        list(zip(x, x.T[:3, :]))[0],
        [list(p) for p in itertools.product([1, 2], [3])],
    )


@program
def p16(x):
    def inner(n):
        return x if n == 0 else inner(n - 1) * 2

    return inner(5)


@program
def p17(x):
    s = 0.0
    for v in x.ravel():
        s += v
    return s


@program
def p18(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * i + j
    return y


@program
def p19(x):
    x = x.copy()
    A, B = x[:2], x[1:]
    A += 1
    B *= 2
    A[0], B[1] = B[1].copy(), A[0].copy()
    return x


@program
def p20(x):
    return f"{x.shape} {x.dtype!r:>20}", str(x.ndim), format(x.size, "5d"), f"{x.shape[0]}"


@program
def p21(x):
    return f"{x[0, 1]:.2f} {x.sum()}", repr(x), str(x)


@program
def p22(x):
    return (
        math.sqrt(x[0, 1]),
        int(x[0, 2]),
        x.item(3),
        x.tolist()[0],
        round(x[1, 1]),
        round(float(x[1, 2]), 1),
    )


@program
def p23(x):
    try:
        return x[100]
    except IndexError as e:
        return str(e)


@program
def p24(x):
    with contextlib.suppress(ValueError):
        x.reshape(7)
    return x + 1


@program
def p25(x):
    y = x
    y += 1
    z = y.T
    z *= 2
    return x, y, z


@program
def p26(x):
    return (
        isinstance(x, np.ndarray),
        type(x) is np.ndarray,
        type(x).__name__,
        hasattr(x, "shape"),
        hasattr(x, "zzz"),
        np.isscalar(x.sum()),
        np.ndim(x),
        len(x),
        callable(x),
        type(x.sum()),
        isinstance(x.sum(), float),
    )


@program
def p27(x):
    return (
        x.sum() + 1,
        x.mean() * 2.0,
        x[0, 0] * np.float32(2),
        2 ** x[0, 1],
        -x[0, 2],
        abs(x[0, 1]),
    )


@program
def p28(x):
    i = np.argmax(x[0])
    return x[1, i], x[i % 3]


@program
def p29(x):
    m = x > 4
    return x[m], np.where(m), m.nonzero()[0], x[m].sum()


@program
def p30(x):
    y = x.copy()
    y[y > 4] = 0
    y[[0, 1], [2, 3]] = -1
    return y


@program
def p31(x):
    return np.sort(x)[::-1], np.unique(x), np.cov(x), np.linalg.svd(x)[1], np.fft.fft(x[0]).real


@program
def p32(x):
    return (
        {**CFG, "x": x}["x"],
        dict(a=x)["a"],
        dict(CFG)["n"],
        list(CFG),
        CFG.get("q", x),
        CFG.get("n"),
    )


@program
def p33(x):
    s = {1, 2, 3}
    s.add(len(x))
    return sum(s) * x, 3 in s, (1 in CFG), ("a" in CFG)


@program
def p34(x):
    return T[0] * x + T[1], T[-1], T[:2][1], T + (1,)


COUNT = 0


@program
def p36(x):
    lst = [x]
    lst += [x * 2]
    lst.extend((x, x))
    lst.insert(0, x + 5)
    lst.pop()
    lst.reverse()
    del lst[0]
    lst[0] = lst[0] * 2
    return lst, lst.index(3) if 0 else len(lst)


@program
def p37(x):
    x = x.copy()
    x.sort(axis=0)
    x.fill(3)
    x.resize((4, 3))
    return x


@program
def p38(x):
    return (
        np.add.reduce(x, axis=1),
        np.add.accumulate(x),
        np.multiply.outer(x[0], x[1]),
        np.maximum.reduceat(x[0], [0, 2]),
        np.add(x, 1, where=x > 3, out=np.zeros_like(x)),
    )


@program
def p39(x):
    return (lambda y, k=x: y + k)(x), (lambda *a, **k: a[0] + k["z"])(x, z=x)


@program
def p40(x):
    g = (r * 2 for r in x)
    a = next(g)
    b = next(g, None)
    return a + b, sum(g)


@program
def p41(x):
    return x @ x.T @ x, np.dot(x, x.T), np.einsum("ij,kj", x, x), x.dot(x.T)


@program
def p42(x):
    return (
        np.vectorize(lambda v: v * 2)(x),
        np.apply_along_axis(np.sum, 0, x),
        np.fromiter((i for i in range(3)), float),
    )


@program
def p43(x):
    out = []
    while len(out) < 3:
        out.append(x * len(out))
    else:
        out.append(0)
    return out


@program
def p44(x):
    return (
        x.astype(int) // 2,
        x.astype("i4") % 3,
        x.astype(np.uint8) << 1,
        x.astype(bool),
        x.view(),
        x.T.flags.f_contiguous,
        x.strides,
        x.nbytes,
    )


@program
def p45(x):
    return (
        np.array([x.sum(), x.max()]),
        np.array([[x[0, 0], 1], [2, x[0, 1]]]),
        np.asarray([r for r in x]),
        np.stack([r for r in x]),
    )


@program
def p46(x):
    x = x + 0
    x[:, 1], x[:, 2] = x[:, 2], x[:, 1]
    return x


@program
def p47(x):
    return (
        np.meshgrid(np.arange(3), np.arange(2)),
        np.indices((2, 2)),
        np.mgrid[0:2, 0:3],
        np.ogrid[0:2],
        np.r_[x[0], 1],
        np.c_[x[0], x[1]],
    )


@program
def p48(x):
    return (
        np.random.default_rng(0).normal(size=4) + x,
        np.float64(3) + x,
        np.pi * x,
        np.e,
        np.inf,
        np.nan_to_num(x / 0 if 0 else x),
    )


@program
def p49(x):
    return (
        max(x[0, 1], x[0, 2]),
        min(3, x.shape[0]),
        max([x.sum(), 1.0]),
        sorted([3, 1, 2], key=lambda v: -v),
        any(r.sum() > 1e9 for r in x),
        all([1, x.size]),
    )


@program
def p50(x):
    a = b = c = x * 2
    a[0] = 0
    return b, c, a is b


@program
def p51(x):
    return (
        x if x.any() else -x,
        (x.sum() > 3 and x),
        (x.sum() < 3 or 5),
        not x.any(),
        1 if x is not None else 2,
    )


@program
def p52(x):
    return (
        0 < x.sum() < 1e9,
        (x > 1) & (x < 5),
        3 in x,
        [1, 2] == [1, 2],
        x.shape == (3, 4),
        x.shape[0] == 3 != 4,
    )


@program
def p53(x):
    global COUNT
    COUNT += 1
    return x + COUNT * 0


@program
def p54(x):
    import math as m
    import os.path
    from collections import OrderedDict

    from numpy import sin as s

    return s(x) * 0 + m.pi, os.path.sep, OrderedDict(a=x)["a"]


@program
def p55(x):
    nums = iter([1, 2, 3])
    return [next(nums) * x for _ in range(2)], list(nums)


@program
def p56(x):
    return (
        np.trapezoid(x),
        np.gradient(x),
        np.cross(x[0, :3], x[1, :3]),
        np.outer(x[0], x[1]),
        np.triu(x),
        np.convolve(x[0], [1, 2]),
    )


@program
def p57(x):
    match x.shape:
        case (3, n):
            return x * n
        case _:
            return x


@program
def p58(x):
    res = np.empty((3,))
    for i, row in enumerate(x):
        res[i] = row.sum()
    return res


@program
def p59(x):
    try:
        y = 1 / (x.shape[0] - 3)
    except ZeroDivisionError:
        y = x * 2
    finally:
        z = x + 1
    return y, z


@program
def p60(x):
    return (
        copy.deepcopy(x) + 1,
        copy.copy(x),
        (copy.deepcopy(None), copy.copy(2.5), copy.deepcopy(float(x[0])), copy.deepcopy("a"), copy.copy(p59) is p59),
        x.__add__(1),
        x.__len__(),
        operator.itemgetter(0)(x),
        operator.attrgetter("T")(x),
        x.sum(),
        getattr(x, "nope", 7),
    )


WHOLE = (
    "p1 p3 p4 p6 p7 p14 p15 p16 p17 p18 p19 p20 p25 p26 p27 p32 p36 p39 p40 p41 p43 p45 p46".split()
)


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("segments", [True, False], ids=["segments", "as decided"])
def test_programs(fn, segments, monkeypatch):

    if segments:  # compiled even if there is little work
        monkeypatch.setattr("cinductor.calls.budget.LITTLE_WORK", 0)
    compiled = check(fn, X.copy(), backend="interp", calls=3)
    if fn.__name__ in WHOLE:
        assert compiled.specializations, compiled._cinductor_job.last.breaks


def test_a_few_programs_by_the_c_backend():
    for name in ("p1", "p18", "p19", "p25", "p41"):
        fn = next(f for f in PROGRAMS if f.__name__ == name)
        check(fn, X.copy())


def same_after(fn, steps):
    """fn gives the same plain and compiled after each step; a step returns the arguments."""
    compiled = cinductor.compile(fn, backend="interp")
    for step in steps:
        args = step()
        mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_same(compiled(*mine), fn(*theirs))
        assert_same(mine, theirs)
    return compiled


def changes(names, *statements):
    """Steps that each run a statement and then call with X."""

    def step(statement):
        def run():
            exec(statement, {"np": np, **names})
            return (X,)

        return run

    return [step(s) for s in ("", "", *statements, "")]


def test_attributes_of_an_object_may_change():
    o = types.SimpleNamespace(
        a=[1, 2],
        d={"k": np.ones(4)},
        s={1, 2},
        f=lambda x: x + 1,
        t=(1, [2, np.zeros(4)]),
    )

    def f(x):
        return o.f(x) * len(o.a) + o.d["k"] + o.t[1][1] + (2 in o.s)

    compiled = same_after(f, changes({"o": o}, "o.a.append(3)", "o.d['k'] = np.zeros(4)"))
    assert compiled.specializations
    same_after(
        f,
        changes(
            {"o": o},
            "o.d['z'] = 1",
            "o.s.add(5)",
            "o.s.discard(2)",
            "o.f = lambda x: x * 2",
            "o.t = (1, [2, np.ones(4)])",
            "o.t[1][1] = np.full(4, 7.)",
            "o.d = {'k': np.ones(1)}",
            "o.f = np.negative",
            "o.extra = 3",
        ),
    )


def test_a_module_may_change(monkeypatch):
    m = types.ModuleType("changing_module")
    m.k = 2.0
    m.h = lambda x: x * 3
    monkeypatch.setitem(sys.modules, "changing_module", m)

    def f(x):
        import changing_module as mm
        from changing_module import k

        return mm.h(x) * k * mm.k

    compiled = same_after(f, changes({"m": m}, "m.k = 3.", "m.h = lambda x: x + 1", "m.k = 5"))
    assert compiled.specializations


def test_classes_may_change():
    class A:
        k = 1.0

        def g(self, x):
            return x * self.k

        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return x * cls.k

        @property
        def p(self):
            return self.k * 2

    class B(A):
        pass

    b = B()
    names = {"A": A, "B": B, "b": b}
    parts = {
        "method": (lambda x: b.g(x), ("A.k=2.", "b.k=3.", "A.g=lambda self,x:x", "b.g=np.fabs")),
        "static": (lambda x: b.s(x) + A.s(x), ("A.s=staticmethod(np.negative)", "b.s=np.square")),
        "class": (lambda x: b.c(x) + B.c(x), ("B.k=4.", "B.c=classmethod(lambda c,x:x-3)")),
        "property": (lambda x: b.p * x, ("A.p=property(lambda self:100.)", "B.p=7.")),
    }
    for fn, statements in parts.values():
        assert same_after(fn, changes(names, *statements)).specializations


def test_arguments_of_changing_types_and_structure():
    def by_type(n, x):
        if isinstance(n, bool):
            return x
        if n is None:
            return x + 1
        if isinstance(n, str):
            return x * len(n)
        return x * n if isinstance(n, int | float) else x - np.asarray(n)

    values = (1, True, 1.0, None, "a", "bb", 2, 0.5, [1, 2, 3, 4], (1, 2, 3, 4), np.int32(3), 1)
    values += (np.float32(1.5), -0.0, 0.0, 0)
    same_after(by_type, [lambda n=n: (n, X) for n in values])

    def by_keys(d, x):
        for key, value in d.items():
            x = x + value if key != "skip" else x
        return x * ("skip" in d) + len(d)

    dicts = ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 3.0}, {"b": 1.0, "a": 1.0}, {"skip": 0, "a": X})
    same_after(by_keys, [lambda d=d: (d, X) for d in (*dicts, {}, {"a": 1})])


def test_an_array_of_a_closure_may_change():
    w = np.ones(4)

    def f(x):
        y = w
        y = y * 2
        return x + y

    compiled = same_after(f, changes({"w": w}, "w[0] = 5", "w *= 3", "w.flags.writeable = False"))
    assert compiled.specializations


def test_writes_to_what_is_given():
    def f(x, y):
        x += y
        return x

    cases = (
        (X, X),
        (X, X[0]),
        (X, 1.0),
        (X, X.T.copy().T),
        (X.astype("f4"), 1.0),
        (X, np.float64(2)),
    )
    same_after(f, [lambda a=a: a for a in cases])


SAME = """
import numpy as np
import programs
import cinductor

row = programs.load()["stencils.adi"]
compiled = cinductor.compile(row.function, backend="interp", dynamic=True)
print(cinductor.explain(compiled, *row.make(5, np.random.default_rng(5))).graph)
"""


def test_a_capture_is_the_same_in_every_process():
    """The capture does not depend on the order of a set of names."""
    texts = set()
    for seed in "1234":
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)}
        done = subprocess.run([sys.executable, "-c", SAME], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1


def test_a_recipe_says_how_results_are_made():
    """One row per piece: shared memory is a view, and a result returned twice is made once."""
    compiled = cinductor.compile(lambda x, y: (y, [x.T, y], {"n": 3}, x + 1), backend="interp")
    x, y = np.ones((2, 3)), np.ones(4)
    compiled(x, y)
    (specialization,) = compiled.specializations
    kinds, numbers, memos, _, objects, _, inside, _, _, layouts, *_ = zip(*specialization.recipe, strict=True)
    assert kinds == ("tuple", "source", "list", "view of source", "dict", "constant", "return")
    assert objects[0] is tuple and inside[0] == (1, 2, 4, 6)
    assert memos[1] >= 0 and inside[2] == (3, 1)
    assert layouts[3] == (3, 2, 8, 24, 0)
    assert objects[5] == 3 and numbers[6] == 0
