"""Tests values that wait on Python's stack for the rest of an expression or loop. If Python meanwhile begins to run the rest of
the captured call, they are real from then on.

`fall(v)` returns v after such a fall-back. The results are looked at by code that is not captured.
"""

import collections
import linecache
import warnings

import numpy as np
import pytest

import cinductor

SEEN = []


def note(*values):
    """A side effect of Python that sees classes and values."""
    SEEN.append([shown(v) for v in values])
    return len(SEEN)


note.__cinductor_disabled__ = "an effect"


def shown(value):
    """Classes and contents of a value, as text."""
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{shown(k)}: {shown(v)}' for k, v in value.items())})"
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} {value.dtype} {value.tolist()}"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({shown(value.args)})"
    if callable(value):
        return f"function({shown(value.__defaults__ or ())}, {shown(value.__kwdefaults__ or {})})"
    return f"{type(value).__module__}.{type(value).__name__} {value!r}"


class Ends:
    """An object whose death runs code: Python runs the rest of a call that meets one."""

    def __del__(self):
        pass


def ending():
    return Ends()


ending.__cinductor_disabled__ = "an effect"


def by_death(v):
    ending()
    return v


def by_flags(v):
    a = np.ones(2)
    a.setflags(write=False)
    return v


def by_attribute(v):
    note(0)
    a = np.ones(3)
    try:
        a.strides = (8,)
    except AttributeError:
        pass
    return v


class Lazy:
    """A property that falls back."""

    @property
    def one(self):
        return fall(1)


def identity(*args, **kwargs):
    return args, kwargs


lazy = Lazy()
WAYS = {"death": by_death, "flags": by_flags}
fall = by_death

STATEMENTS = {
    "binary": "r = x * 2 + fall(y)",
    "binary, named": "t = x * 2\nr = t + fall(y)",
    "tuples": "t = (x * 2, 1)\nr = t + fall((y,))",
    "tuple displays": "r = (x * 2, x.sum()) + fall((y,))",
    "list displays": "r = [x * 2, x.sum()] + fall([y])",
    "repeated": "r = (x.sum(), x) * fall(2)",
    "number": "r = x.sum() * fall(2.5)",
    "number of Python": "t = float(x.sum())\nr = t + fall(1)\nr = type(r) is float, r",
    "property": "r = (x * 2, lazy.one)",
    "tuple": "r = (x * 2, fall(y), x.sum())",
    "tuple, named": "t = x * 2\nr = (t, fall(y), t)\nr = r, r[0] is t",
    "tuple is the same": "t = (x * 2, 1)\nr = [t, fall(t), t]\nr = r[0] is r[1], r[1] is r[2], r[0] is t, r",
    "list": "r = [x * 2, fall(y), x + 1]",
    "starred": "r = [*(x * 2), fall(y), *fall(y)]",
    "dict": "r = {'a': x * 2, 'b': fall(y), **{'c': x + 1}}",
    "dict of two": "t = {'q': x * 3}\nr = {**t, 'a': x * 2, **fall({'b': y})}",
    "set": "r = sorted({float(x.sum()), fall(2.0), float(y.sum())})",
    "nested": "r = [(x * 2, [x + 1, (fall(y), x)], {'a': x.sum()}), fall(1)]",
    "arguments": "r = identity(x * 2, fall(y), k=x + 1, m=fall(1))",
    "starred arguments": "t = (x * 2, x + 1)\nr = identity(*t, fall(y), **{'k': x * 3})",
    "method of a generator": "g = np.random.default_rng(3)\nt = x * 2\ng.shuffle(fall(t))\nr = t, g.integers(9)",
    "method of a generator, named": "g = np.random.default_rng(3)\nm = g.normal\nr = m(*fall((0, 1))), m(size=fall(2)), note(m(1))",
    "method": "r = (x * 2).reshape(fall(1), -1)",
    "function": "r = np.maximum(x * 2, fall(y))",
    "opaque": "r = note(x * 2, fall(1), x + 1)",
    "item": "r = (x * 2)[fall(1):]",
    "item of a tuple": "r = (x * 2, x + 1)[fall(1)]",
    "comparison": "r = x * 2 > fall(y)",
    "chain": "r = x.sum() < fall(100.0) < y.sum() + 1000",
    "identity": "t = (x * 2,)\nr = (t is fall(t)), (x is fall(x)), (t is not fall(t))",
    "and": "r = x.sum() > 0 and fall(x * 2)",
    "and of a condition": "r = (x.sum() > 0 and fall(1.5) > 1), x * 2",
    "conditional": "r = (x * 2, 1) if fall(True) else 0",
    "conditional on data": "r = (x * 2 if fall(x.sum()) > 0 else y), x + 1",
    "item store": "a = [0, 0, 0]\na[fall(1)] = x * 2\nr = a",
    "two stores": "a, b = [0, 0], [0]\na[fall(1)] = b[0] = x * 2\nr = a, b, a[1] is b[0]",
    "stores and a name": "a = [0, 0]\nv = a[fall(1)] = w = x * 2\nr = a, v, w, a[1] is w",
    "stores of a tuple": "a = [0, 0]\nv = a[fall(1)] = w = (x * 2, x.sum())\nr = a, v, w, a[1] is w",
    "unpacked stores": "a = [0, 0]\np, a[fall(1)], q = x * 2, x + 1, x.sum()\nr = p, a, q",
    "starred targets": "a = [0, 0]\np, a[fall(1)], *q = x * 2, x + 1, x.sum(), x\nr = p, a, q",
    "array stores": "a = np.zeros(6)\na[fall(0):3] = a[3:] = x * 2\nr = a",
    "augmented item": "a = [x + 1, 2]\na[fall(0)] += x * 2\nr = a",
    "augmented item, right": "a = [x + 1, 2]\na[0] += fall(y)\nr = a",
    "augmented name": "t = x * 2\nt += fall(y)\nr = t",
    "augmented tuple": "t = (x * 2,)\nt += fall((y,))\nr = t",
    "augmented number": "t = x.sum()\nt += fall(1)\nr = t",
    "attribute store": "o = Box()\no.v, fall(o).w = x * 2, x + 1\nr = o.v, o.w",
    "defaults": "def h(u=x * 2, w=fall(1), *, k=x + 1, m=fall(2)):\n    return u\nr = h, h()",
    "defaults of a lambda": "h = lambda u=x * 2, w=fall(1): u\nr = h, h()",
    "decorators": "@keep(x * 2)\n@keep(fall(1))\ndef h(u=x + 1):\n    return u\nr = h, h()",
    "text": "r = f'{x.sum()} {fall(1)} {x.sum():{fall(8)}.2f} {y}'",
    "percent": "r = '%s %s' % (x.sum(), fall(1))",
    "printed": "r = 0\nprint(x.sum(), fall(1), f'{x.sum()} {fall(2)}', end='')",
    "raise": "try:\n    raise KeyError(x.sum(), 1) from fall(ValueError(x.sum()))\nexcept KeyError as e:\n    r = e.args, e.__cause__",
    "assert": "try:\n    assert x.sum() < 0, (x * 2, fall(1))\nexcept AssertionError as e:\n    r = e.args",
    "loop": "r = []\nfor v in x:\n    fall(1)\n    note(v)\n    r.append((v, v * 2))",
    "loop, rows": "r = []\nfor v in np.outer(x, y):\n    fall(1)\n    note(v)\n    r.append(v)",
    "loop of pairs": "r = []\nfor i, v in enumerate(x):\n    fall(1)\n    note(i, v)\n    r.append((i, v))",
    "loop of zip": "r = []\nfor (i, v), w in zip(enumerate(x * 2), (x, y, x + 1)):\n    note(i, v, fall(w))\n    r.append((i, v, w))",
    "loop of a list": "r, l = [], [x * 2, x.sum(), (x, 1)]\nfor v in l:\n    note(fall(v))\n    r.append(v)\n    if len(l) < 5:\n        l.append(7)",
    "loop of a tuple": "r = []\nfor v in (x * 2, x.sum(), (x, 1)):\n    note(fall(v))\n    r.append(v)",
    "loop of a dict": "r = []\nfor k, v in {'a': x * 2, 'b': x + 1}.items():\n    note(k, fall(v))\n    r.append(v)",
    "loop of an iterator": "r, it = [], iter([x * 2, x + 1, x.sum()])\nfor v in it:\n    note(fall(v))\n    r += [v, *it]",
    "loop of map": "r = []\nfor v in map(fall, (x * 2, x + 1, x.sum())):\n    note(v)\n    r.append(v)",
    "loop that writes": "r, A = [], np.outer(x, y)\nfor v in A:\n    note(fall(1))\n    A[2] += 1\n    r.append(v)",
    "two loops": "r = []\nfor v in x:\n    for w in (x * 2, y):\n        note(v, w)\n        if v > 1:\n            fall(1)\n        r.append((v, w))",
    "loop with places": "a = [0, 0, 0, 0]\nfor i, a[fall(1)], (a[i], w) in zip((0, 2), (x * 2, x + 1), ((y, 1), (x, y))):\n    note(a, w)\nr = a",
    "loop in a function": "def h(u):\n    for v in u:\n        fall(1)\n        note(v)\n    return u * 2\nr = []\nfor w in (x * 2, x + 1):\n    r.append((w, h(w), w))",
    "while": "r, i, s = [], 0, x.sum()\nwhile (s, fall(i))[1] < 3:\n    i += 1\n    note(s)\n    r.append(s + i)",
    "comprehension": "r = [(v, fall(v), v * 2) for v in x]",
    "comprehension with a test": "r = [v * 2 for v in x if (v, fall(v))[1] > 1]",
    "products in a set": "r = sorted({fall(float(v)) * 2 for v in x})",
    "dict comprehension": "r = {float(v): (v * 2, fall(v)) for v in x}",
    "dict comprehension of pairs": "r = {k: (v, fall(v), v * 2) for k, v in enumerate(x)}",
    "generator": "r = sum(fall(v) * 2 for v in x)",
    "tuple of a generator": "r = tuple((v, fall(v)) for v in x)",
    "sorted": "r = sorted([x.sum(), 2.0, y.sum()], key=lambda v: (v, fall(1)))",
    "map": "r = list(map(lambda v: (v, fall(1), v * 2), x))",
    "reduce": "r = functools.reduce(lambda a, b: (a + b, fall(1))[0], [x * 2, x + 1, y])",
    "max": "r = max(x * 2, key=lambda v: (v, fall(1))[0])",
    "sorted, seen": "r = sorted([x.sum(), 2.0, y.sum()], key=lambda v: (note(v), fall(v))[1])",
    "map, seen": "r = list(map(lambda v, w: (note(v, w), fall(v), w), x, (x, y, x * 2)))",
    "reduce, seen": "r = functools.reduce(lambda a, b: (note(a, b), a + b, fall(1))[1], [x * 2, x + 1, y])",
    "max, seen": "r = max([x.sum(), 2.0, y.sum()], key=lambda v: (note(v), fall(v))[1])",
    "filter, seen": "r = [*filter(lambda v: (note(v), fall(v))[1] > 1, [x.sum(), x.max(), y.sum()])]",
    "any, seen": "r = any((note(v), fall(v))[1] > 2 for v in x), x",
    "sum, seen": "r = sum((note(v), fall(v))[1] for v in (x * 2, x + 1, y))",
    "dict of a generator": "r = dict((float(k), (v, fall(v), v * 2)) for k, v in zip(x, (x, y, x * 2)))",
    "two generators": "r = [*((v, w, fall(v)) for v in x for w in (v, x * 2))]",
    "generator, seen": "g = ((note(v, w), v, w, fall(v)) for v in (x * 2, x + 1) for w in (v, x * 2))\nr = next(g), x, next(g)\nr = r, [*g]",
    "generator in a tuple": "r = x + 1, sum(fall(v) for v in x), x",
    "set comprehension": "r = sorted({fall(float(v)) for v in x})",
    "list comprehension in a lambda": "r = (lambda u: [(v, fall(v), v * 2) for v in u])(x)",
    "dict comprehension of items": "r = {k: (v, fall(v), v * 2) for k, v in {'a': x * 2, 'b': x + 1}.items()}",
    "vectorize": "r = np.vectorize(lambda v: (note(v), fall(v))[1] * 2)(x)",
    "apply": "r = np.apply_along_axis(lambda v: (note(v), fall(v))[1] * 2, 0, np.outer(x, y))",
    "fromiter": "r = np.fromiter((fall(v) * 2 for v in x), float)",
    "partial": "r = functools.partial(identity, x * 2, fall(1))(x + 1, k=fall(x * 3))",
    "accumulate": "r = [*itertools.accumulate([x * 2, x + 1, y], lambda a, b: (note(a, b), a + b, fall(1))[1])]",
    "operator of the user's": "r = Adds(x * 2) + (x * 3, 1)\nr = r, x + Adds(x * 2)",
    "comparison of the user's": "r = Adds(x * 2) < (x * 3, 1), x * 2",
    "item of the user's": "r = Adds(x * 2)[x * 3, fall(1)], x * 2",
    "call of the user's": "r = Adds(x * 2)(x * 3, fall(1)), x * 2",
    "truth of the user's": "r = (x * 2, 1) if Adds(x) else x\nr = r, Adds(x) and x * 2",
    "length of the user's": "r = (x * 2, len(Adds(x)), x)",
    "iteration of the user's": "r = []\nfor v in Adds(x):\n    note(v)\n    r.append((v, fall(v)))",
    "contains of the user's": "r = (x * 2, 1 in Adds(x), x)",
    "made by the user's": "r = (x * 2, Made(x * 3, fall(1)).v, Made(x + 1, 2).v)",
    "super": "r = (x * 2, Sub(x * 3).of(x + 1), x)",
    "static": "r = (x * 2, Sub.made(x * 3).of(x + 1), x)",
    "closure": "def h(v):\n    return lambda w: (v, w, fall(1), v * 2)\nr = h(x * 2)(x + 1), x",
    "nonlocal": "s = x * 2\ndef h():\n    nonlocal s\n    s = (s, fall(1), s)\n    return s\nr = s, h(), s",
    "global array": "r = (KEPT * 2, fall(1), KEPT + 1), KEPT + fall(y)",
    "finally": "def h():\n    try:\n        return x * 2, x.sum()\n    finally:\n        fall(1)\nr = h(), x",
    "finally, named": "def h():\n    t = x * 2, x.sum()\n    try:\n        return t\n    finally:\n        note(t, fall(1))\nr = h(), x",
    "exception": "def h():\n    raise KeyError(x * 2, fall(x.sum()))\ntry:\n    r = (x * 2, h())\nexcept KeyError as e:\n    r = e.args, x",
    "exception on the way": "try:\n    try:\n        raise KeyError(x * 2)\n    finally:\n        fall(1)\nexcept KeyError as e:\n    r = e.args, x",
    "handler": "try:\n    x[7]\nexcept IndexError as e:\n    r = (x * 2, fall(1), x)",
    "with, on leaving": "with Leaving(x * 2) as m:\n    r = m\nr = (r, x)",
    "branch": "r = 0\nif x.sum() > 1:\n    r = (x * 2, fall(1), x)",
    "branch on data in a loop": "r, s = [], 0.0\nfor v in x:\n    if v > 1:\n        s += v\n        r.append((s, fall(v), s))\nr = r, s",
    "index arrays": "a = x.copy()\na[np.array([fall(0), 2])] = (x * 2)[fall(0) : 2]\nr = a",
    "out": "a = np.zeros(3)\nr = np.add(x * 2, fall(y), out=a), a",
    "keywords in order": "r = identity(k=x * 2, m=fall(1), **{'z': x + 1}, **fall({'q': 1}))",
    "delete": "d = {'a': x * 2, 'b': x + 1}\ndel d[fall('a')]\nr = d",
    "swap": "a, b = x * 2, x + 1\na, b = b, fall(a)\nr = a, b",
    "chained slots": "o = Box()\no.l = [x * 2, 1]\no.l[fall(1)], o.m, t = x * 3, x + 1, (x, 2)\nr = o.l, o.m, t",
    "identity of tuples": "t = (x * 2, 1)\nr = identity(t, fall(t), k=[t])\nr = r[0][0] is t, r[0][1] is t, r[1]['k'][0] is t, r",
    "identity of what was stored": "t = (x * 2, 1)\nD['n'] = t\nr = (D['n'], fall(1), t)\nr = r[0] is t, r[0] is D['n'], r",
    "match": "match (x * 2, fall(1)):\n    case (a, 2):\n        r = 0\n    case (a, b) if fall(True):\n        r = a, b",
    "match, guard": "match (x * 2, (x.sum(), 1)):\n    case (a, (b, 1)) if fall(False):\n        r = 0\n    case (a, b):\n        r = a, b",
    "match of a list": "match [x * 2, x + 1, x.sum()]:\n    case [a, *b] if note(a, fall(1), b):\n        r = a, b",
    "unpacked": "a, *b = iter((x * 2, x + 1, fall(x.sum())))\nr = a, b",
    "unpacked map": "a, *b = map(fall, (x * 2, x + 1, x.sum()))\nr = a, b",
    "unpacked items": "a, (b, *c) = x * 2, map(fall, x)\nr = a, b, c",
    "function that is left": "def h():\n    t = x * 2\n    return (t, fall(1), t)\nr = (x + 1, h(), x)",
    "deep": "def h(v, k):\n    return (v, fall(k)) if k == 0 else (v, h(v + 1, k - 1), v)\nr = h(x, 3)",
    "slices": "r = x[fall(0) : x.shape[0] - fall(1)]",
    "walrus": "r = ((t := x * 2), fall(1), t)\nr = r, r[0] is t",
    "walrus and use": "r = (x * 2) + (t := fall(y)) + t",
    "with, targets": "a = [0, 0]\nwith Managing((x * 2, x + 1)) as (a[fall(1)], b):\n    note(a, b)\nr = a, b",
    "with, more targets": "a = [0, 0]\nwith Managing((x * 2, [x + 1, x])) as (a[fall(1)], (b, *c)), Managing(x * 3) as d:\n    r = [a, b, c, d]",
    "with, targets and a return": "a = {}\nwith Managing((x, y)) as m, Managing((x * 2, x + 1)) as [a[fall(1)], b]:\n    if a:\n        return m, a, b\nr = a",
    "with, targets that fail": "a = [0]\ntry:\n    with Managing((x * 2, x + 1)) as (a[fall(1)], b):\n        pass\nexcept IndexError as e:\n    r = str(e)\nr = r, a",
    "with, too few targets": "a = [0]\ntry:\n    with Leaving((x * 2, x + 1)) as (a[fall(0)], b, c):\n        pass\nexcept ValueError as e:\n    r = str(e)\nr = r, a",
    "with": "with Managing(x * 2) as m:\n    r = (m, fall(1), m)",
    "fraction": "try:\n    r = Fraction(1, 2) + fall(Decimal(1))\nexcept TypeError as e:\n    r = e.args",
}  # fmt: skip


class Box:
    pass


def keep(value):
    def decorate(fn):
        fn.__dict__.setdefault("kept", []).append(value)
        return fn

    return decorate


class Adds:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        note(self.v, other)
        return self.v, other, fall(1)

    __lt__ = __getitem__ = __radd__ = __add__
    __array_ufunc__ = None

    def __call__(self, *args):
        return self.v, args, fall(1), self.v

    def __bool__(self):
        return fall(True)

    def __len__(self):
        return fall(3)

    def __iter__(self):
        return iter((self.v * 2, fall(self.v), self.v))

    def __contains__(self, v):
        return fall(v) == 1


class Made:
    def __init__(self, v, w):
        self.v = v, fall(w), v


class Base:
    def __init__(self, v):
        self.v = v, fall(1), v

    def of(self, v):
        return self.v, v, fall(1)


class Sub(Base):
    def of(self, v):
        return v, super().of(v * 2), self.v

    @classmethod
    def made(cls, v):
        return cls((v, fall(1), v))


class Leaving:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        fall(1)


KEPT = np.array([1.0, 2.0, 3.0])
D = {}
Pair = collections.namedtuple("Pair", "v w")


class Managing:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        return False


def program(text, before):
    """f(x, y) with a statement between others."""
    lines = "\n".join("    " + line for line in [*before.splitlines(), *text.splitlines()])
    source = f"import functools\nimport itertools\n\n\ndef f(x, y):\n{lines}\n    note(r)\n    return r\n"
    name = f"<waiting {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {**globals()}
    exec(compile(source, name, "exec"), space)
    return space


def outcome(fn, x, y):
    """The result in words and what was noted."""
    SEEN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", cinductor.CinductorWarning)
        try:
            result = shown(fn(x, y))
        except Exception as error:
            result = repr(error)
    return result, [*SEEN], shown([x, y])


def inputs():
    return np.array([0.5, 1.5, 2.5]), np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("falls", WAYS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_what_waits_becomes_real(name, falls, monkeypatch):
    monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)
    for before in ("note(1)", "x = x + 1\nnote(x)"):
        space = program(STATEMENTS[name], before)
        space["fall"] = WAYS[falls]
        monkeypatch.setitem(globals(), "fall", space["fall"])
        want = outcome(space["f"], *inputs())
        compiled = cinductor.compile(space["f"], backend="interp")
        for _ in range(2):
            assert outcome(compiled, *inputs()) == want


# --- identity of tuples ---------------------------------------------------------------------------


def stored(a, b):
    r = (a, b)
    D["n"] = r
    return r is D["n"]


def stored_made(a, b):
    r = (a * 2, b)
    D["n"] = r
    return r is D["n"], D["n"] is D["n"], r


def stored_and_seen(a, b):
    r = (a * 2, b)
    D["n"] = r
    note(1)
    return r is D["n"], r


def in_places(a, b):
    o, r = Box(), (a * 2, b)
    D["n"] = o.v = r
    note(1)
    return r is D["n"], r is o.v, o.v, r


def nested(a, b):
    r = (a * 2, b)
    s = [r, [r]]
    D["n"] = s
    return s[0] is r, s[1][0] is r, D["n"][1][0] is s[0], r, s


def equal_to_a_stored_one(a, b):
    r = (a * 2, b)
    D["n"] = r
    D["m"] = [(1, r)]
    note(1)
    return r == D["n"], (r, 1) == (D["n"], 1), {1: [r]} == {1: [D["n"]]}, [(1, r)] == D["m"], r != D["m"][0][1], r, D["m"]


def in_a_stored_list(a, b):
    r = (a * 2, b)
    s = ["no", r]
    D["n"] = s
    note(s)
    return r in s, s.index(r), s.count(r), D["n"].index(r), D["n"][1] in [r], s == ["no", r], [v for v in s if v == r]


def removed_from_a_stored_list(a, b):
    r = (a * 2, b)
    s = ["no", r, 3]
    note(s)
    s.remove(r)
    note(s)
    return s, r in s, [r, *s].index(r)


def in_a_deque(a, b):
    r = (a * 2, b)
    s = collections.deque(["no", r], 5)
    note(s)
    return r in s, s.count(r), s.index(r), s == collections.deque(["no", r]), r in {1: r}.values()


def array_in_a_stored_list(a, b):
    r = a * 2
    s = [r, [r, b]]
    note(s)
    return r in s, s.index(r), s == [r, [r, b]], [r, b] in s[1:]


def in_a_tuple(a, b):
    r = (a * 2, (b, a))
    D["n"] = r
    note(1)
    s = (r, r)
    D["m"] = s
    note(2)
    return D["n"][1] is r[1], D["m"][0] is D["n"], D["m"][1] is r, s[0] is r, s is D["m"], r, s


def as_an_item(a, b):
    r = (a * 2, b)
    d = {b: r}
    D["n"] = d
    return d[b] is r, r, d


def as_a_key(a, b):
    r = (b, 2)
    d = {r: a * 2}
    D["n"] = d
    return [*d][0] is r, r, d


def as_a_key_with_data(a, b):
    r = (a.sum(), b)
    d = {r: 1}
    note(d)
    return d[r], r in d, [*d][0] is r, r


def in_a_closure(a, b):
    r = (a * 2, b)
    h = lambda: r  # noqa: E731
    D["n"] = r
    note(1)
    return h() is r, h() is D["n"], r, h()


def read_twice(a, b):
    r = (a * 2, b)
    D["n"] = r
    note(1)
    x = D["n"]
    note(2)
    y = D["n"]
    note(3)
    return x is y, x is r, x, y, r


def by_setdefault(a, b):
    r = (a * 2, b)
    note(r)
    x = D.setdefault("q", r)
    y = D["q"]
    return x is r, y is x, y is r, r


def named_tuple(a, b):
    r = Pair(a * 2, b)
    D["n"] = r
    note(1)
    return D["n"] is r, r


def as_a_condition(a, b):
    r = (a * 2, b)
    D["n"] = r
    note(1)
    for _ in range(3):
        if D["n"] is r:
            a = a + 1
    return a


def as_a_guard(a, b):
    r = (a * 2, b)
    D["n"] = r
    note(1)
    match r:
        case t if t is D["n"]:
            return 1
    return 0


TUPLES = (
    stored, stored_made, stored_and_seen, in_places, nested, in_a_tuple, as_an_item, as_a_key, as_a_key_with_data, in_a_closure, read_twice,
    equal_to_a_stored_one, in_a_stored_list, removed_from_a_stored_list, in_a_deque, array_in_a_stored_list,
    by_setdefault, named_tuple, as_a_condition, as_a_guard,
)  # fmt: skip


def identities(value, seen):
    """Which objects are one, in a result and what it holds."""
    number = seen.setdefault(id(value), len(seen)) if isinstance(value, tuple | list | dict | np.ndarray) else repr(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return type(value).__name__, number, [identities(v, seen) for v in items]


@pytest.mark.parametrize("fn", TUPLES)
def test_a_tuple_that_leaves_stays_one_object(fn):
    def told(f):
        D.clear()
        result = [f(np.arange(3.0), 2), D]
        return identities(result, {})

    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        assert told(compiled) == told(fn)


def member_of_an_argument(v):
    return v[0] in v, v.index(v[0]), v == [v[0], v[1]], [v] == [[*v]], {1: v} == {1: [*v]}, v[0] in (v[0], 1)


def member_with_data(v):
    return v[0] in v[1:]


@pytest.mark.parametrize("fn", [member_of_an_argument, member_with_data])
def test_arrays_in_an_argument_are_compared_by_identity_first(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(2):
        v = [*inputs()]
        if fn is member_with_data:
            with pytest.raises(ValueError, match="ambiguous"):
                compiled(v)
        else:
            assert compiled(v) == fn(v) == (True, 0, True, True, True, True)
