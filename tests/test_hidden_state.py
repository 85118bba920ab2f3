"""Bodies that use objects with hidden state: iterators, containers of the standard library, classes with hooks; and what a call
has found and a later call has to find again. Compared with Python in values, kinds, arguments, logs, warnings, exceptions, output.
"""

import builtins
import collections
import contextlib
import functools
import importlib.util
import io
import math
import os
import signal
import warnings

import numpy as np
import pytest
import state_generator

import cinductor

SIZES = [4, 5, 3, 5]  # with what lists begin with fewer than 8: sums have NumPy's bits
BATCH = 25
MORE = int(os.environ.get("CINDUCTOR_FUZZ", "0"))
SEEDS = [*range(1000), *(int.from_bytes(os.urandom(4), "little") for _ in range(4 * MORE))]


def load(source, path):
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def described(value):
    """A value with its kinds, all the way down, to be compared with `==`."""
    if isinstance(value, np.ndarray | np.generic):
        items = np.asarray(value)
        if items.dtype.kind in "fc":  # a NaN equals any other
            items = np.where(items == items, items, np.nan).astype(items.dtype)
        return type(value).__name__, str(value.dtype), value.shape, items.tobytes()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [described(v) for v in value]
    if isinstance(value, dict):
        return type(value).__name__, [(described(k), described(v)) for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return type(value).__name__, [*map(repr, value)]
    return (type(value).__name__, value) if isinstance(value, int | str | bytes) else type(value).__name__


class Endless(BaseException):
    """A program takes too long; no exception that it could catch."""


def stop(*_):
    raise Endless


def outcome(fn, module, arguments, seconds):
    """All that a call does; a program that takes too long may take long to end, too."""
    try:
        return done_by(fn, module, arguments, seconds)
    except Endless:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return ("endless",)


def done_by(fn, module, arguments, seconds):
    """The same, of a program that ends when it is told to."""
    out = io.StringIO()
    module.LOG.clear()
    signal.signal(signal.SIGALRM, stop)
    with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again, should something swallow it
        try:
            result = described(fn(*arguments))
        except Endless:
            result = "endless"
        except Exception as error:
            result = type(error).__name__, str(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    texts = sorted(str(w.message) for w in seen if not issubclass(w.category, getattr(cinductor, "CinductorWarning", ())))
    return result, described(list(arguments)), described(list(module.LOG)), out.getvalue(), texts


def check(seed, folder, seconds=60):
    """One program, plain and compiled, each with objects of its own."""
    source = state_generator.Generator(seed).source()
    plain, compiled = (load(source, folder / f"program_{seed}_{k}.py") for k in range(2))
    fast = cinductor.compile(compiled.program, backend="interp")
    for call, n in enumerate(SIZES):
        x = np.random.default_rng(seed * 10 + call).random(n)
        more = [m.more() if hasattr(m, "more") else () for m in (plain, compiled)]
        want = outcome(plain.program, plain, (x.copy(), *more[0]), 2)
        if want[0] == "endless":
            return
        got = outcome(fast, compiled, (x.copy(), *more[1]), seconds)
        shown = source.split("def left(it):")[1].split("\n", 2)[2]
        assert got == want, f"call {call} of program {seed}\n{shown}"
        for module in (plain, compiled):
            if hasattr(module, "between"):
                module.between(call)


@pytest.mark.parametrize("first", range(0, len(SEEDS), BATCH))
def test_programs(first, tmp_path):
    for seed in SEEDS[first : first + BATCH]:
        check(seed, tmp_path)


# --- what a later call finds changed --------------------------------------------------------------

X = np.arange(3.0)


Pair = collections.namedtuple("Pair", "a b", defaults=(2.0,))


def scaled(x, k=2):
    return x * k


def named(x, *, k=2):
    return x * k


class Owner:
    def __init__(self, v):
        self.v = v

    def method(self, x, k=1):
        return x * k

    def __call__(self, x):
        return x + 1

    @staticmethod
    def static(x, k=1):
        return x + k

    @classmethod
    def of_class(cls, x, k=1):
        return x + k


class Plain:
    """Has no method for `==`."""


PARTIAL = functools.partial(scaled, k=3)
OWNER = Owner(2)
PAIR = (Plain(), Plain())


def swapped(x, k=2):
    return x - k


def changed_init(self, v):
    self.v = v * 10


# A function, what is done to what it uses, and how that is undone.
CHANGES = {
    "defaults of a named tuple": (
        lambda x: Pair(x).b + x,
        lambda: setattr(Pair.__new__, "__defaults__", (5.0,)),
        lambda: setattr(Pair.__new__, "__defaults__", (2.0,)),
    ),
    "defaults of a helper": (lambda x: scaled(x), lambda: setattr(scaled, "__defaults__", (5,)), lambda: setattr(scaled, "__defaults__", (2,))),
    "defaults of its own": (scaled, lambda: setattr(scaled, "__defaults__", (5,)), lambda: setattr(scaled, "__defaults__", (2,))),
    "keyword defaults of a helper": (lambda x: named(x), lambda: named.__kwdefaults__.update(k=7), lambda: named.__kwdefaults__.update(k=2)),
    "keyword defaults of its own": (named, lambda: named.__kwdefaults__.update(k=7), lambda: named.__kwdefaults__.update(k=2)),
    "code of a helper": (
        lambda x: scaled(x),
        lambda c=scaled.__code__: setattr(scaled, "__code__", swapped.__code__),
        lambda c=scaled.__code__: setattr(scaled, "__code__", c),
    ),
    "code of its own": (
        scaled,
        lambda: setattr(scaled, "__code__", swapped.__code__),
        lambda c=scaled.__code__: setattr(scaled, "__code__", c),
    ),
    "defaults of a method": (
        lambda x: OWNER.method(x),
        lambda: setattr(Owner.method, "__defaults__", (4,)),
        lambda: setattr(Owner.method, "__defaults__", (1,)),
    ),
    "defaults of a static method": (
        lambda x: Owner.static(x),
        lambda: setattr(Owner.static, "__defaults__", (4,)),
        lambda: setattr(Owner.static, "__defaults__", (1,)),
    ),
    "defaults of a class method": (
        lambda x: Owner.of_class(x),
        lambda: setattr(Owner.of_class.__func__, "__defaults__", (4,)),
        lambda: setattr(Owner.of_class.__func__, "__defaults__", (1,)),
    ),
    "__init__ of a class": (
        lambda x: x * Owner(3).v,
        lambda: setattr(Owner, "__init__", changed_init),
        lambda i=Owner.__init__: setattr(Owner, "__init__", i),
    ),
    "__call__ of a class": (
        lambda x: OWNER(x),
        lambda: setattr(Owner, "__call__", lambda self, x: x - 1),
        lambda i=Owner.__call__: setattr(Owner, "__call__", i),
    ),
    "__eq__ of a class": (
        lambda x: x + (PAIR[0] == PAIR[1]),
        lambda: setattr(Plain, "__eq__", lambda a, b: True),
        lambda: delattr(Plain, "__eq__"),
    ),
    "keywords of a partial": (lambda x: PARTIAL(x), lambda: PARTIAL.keywords.update(k=9), lambda: PARTIAL.keywords.update(k=3)),
    "a builtin": (lambda x: x + sum([1, 2]), lambda: setattr(builtins, "sum", lambda v: 50), lambda s=sum: setattr(builtins, "sum", s)),
    "a function of math": (lambda x: x + math.sqrt(4.0), lambda: setattr(math, "sqrt", lambda v: 7.0), lambda s=math.sqrt: setattr(math, "sqrt", s)),
    "a function of NumPy": (lambda x: np.sqrt(x), lambda: setattr(np, "sqrt", lambda v: v + 7.0), lambda s=np.sqrt: setattr(np, "sqrt", s)),
    "a global that hides a builtin": (lambda x: x + len(x), lambda: globals().update(len=lambda v: 50), lambda: globals().pop("len")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_later_call_sees(what):
    fn, change, undo = CHANGES[what]
    compiled = cinductor.compile(fn, backend="interp")
    before = fn(X)
    np.testing.assert_array_equal(compiled(X), before)
    change()
    try:
        want, got = fn(X), compiled(X)
    finally:
        undo()
    assert not np.array_equal(want, before)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(compiled(X), before)


def test_a_global_of_an_executed_function():
    where = {"np": np}
    exec("def counted(x): return len(x)", where)
    compiled = cinductor.compile(where["counted"], backend="interp")
    assert compiled(X) == 3
    where["len"] = lambda v: 100
    assert compiled(X) == 100


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + (PAIR[0] is PAIR[1]),
        lambda x: x + (PAIR[0] == PAIR[1]),
        lambda x: x + (PAIR[1] in [PAIR[0]]),
        lambda x: x + len({PAIR[0]: 1, PAIR[1]: 2}),
    ],
)
def test_whether_two_objects_are_one_is_a_guard(f, monkeypatch):
    compiled = cinductor.compile(f, backend="interp")
    a, b = Plain(), Plain()
    for pair in [(a, b), (a, a), (b, a), (a, a)]:
        monkeypatch.setitem(globals(), "PAIR", pair)
        np.testing.assert_array_equal(compiled(X), f(X))


def test_a_store_into_one_of_two_objects():
    def f(p, q, x):
        p.v = x + 1
        return q.v * 2

    compiled = cinductor.compile(f, backend="interp")
    a, b = Owner(X), Owner(X)
    for pair in [(a, b), (a, a), (b, a), (b, b)]:
        a.v, b.v = X.copy(), X * 3
        want = f(*pair, X)
        a.v, b.v = X.copy(), X * 3
        np.testing.assert_array_equal(compiled(*pair, X), want)


def test_a_property_put_on_a_class_later():
    class Later:
        def __init__(self):
            self.v = 2.0

    thing = Later()

    def f(x):
        return x * thing.v

    compiled = cinductor.compile(f, backend="interp")
    np.testing.assert_array_equal(compiled(X), X * 2)
    Later.v = property(lambda self: 5.0)
    np.testing.assert_array_equal(compiled(X), X * 5)
