"""Tests that arguments and callers of every kind work as with NumPy and Python: arrays, containers, signatures,
decorators, debuggers and threads.
"""

import asyncio
import collections
import copy
import dataclasses
import doctest
import enum
import functools
import inspect
import linecache
import logging
import multiprocessing
import numbers
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import traceback
import types
import typing
import warnings

import numpy as np
import pytest

import cinductor

X = np.arange(6.0).reshape(2, 3)
V = np.arange(3.0)


def compile(fn=..., **settings):
    return cinductor.compile(fn, **{"backend": "interp", **settings})


def outcome(fn, *args, **kwargs):
    """The outcome of a call, with its warnings and the state of its arguments."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = fn(*args, **kwargs)
            said = f"{type(result).__name__} {result!r}"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    texts = [said, repr(args), *(str(w.message) for w in caught)]
    return [re.sub("0x[0-9a-f]+", "0x", text) for text in texts]


def agree(fn, *makers, calls=3):
    compiled = compile(fn)
    for _ in range(calls):
        assert outcome(compiled, *(m() for m in makers)) == outcome(fn, *(m() for m in makers))


# --- arrays ---------------------------------------------------------------------------------------


class Sub(np.ndarray):
    pass


def read_only():
    array = X.copy()
    array.flags.writeable = False
    return array


RECORDS = np.array([(1.0, 2), (3.0, 4)], dtype=[("f", "f8"), ("g", "i4")])
ARRAYS = {
    "masked": lambda: np.ma.array(X.copy(), mask=X > 3),
    "matrix": lambda: np.matrix(X),
    "subclass": lambda: X.copy().view(Sub),
    "object": lambda: X.astype(object),
    "longdouble": lambda: X.astype(np.longdouble),
    "clongdouble": lambda: X.astype(np.clongdouble),
    "big-endian": lambda: X.astype(">f8"),
    "unaligned": lambda: np.frombuffer(b"x" + X.tobytes(), dtype="f8", offset=1).reshape(2, 3),
    "read-only": read_only,
    "0-d": lambda: np.array(2.5),
    "datetime": lambda: np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "string": lambda: np.array(["x", "yz"]),
    "bytes": lambda: np.array([b"x", b"yz"]),
    "void": lambda: np.zeros(2, "V3"),
    "structured": RECORDS.copy,
    "recarray": lambda: RECORDS.copy().view(np.recarray),
    "empty": lambda: np.empty((0, 3)),
    "list": lambda: [1.0, 2.0],
    "nested list": lambda: [[1.0, 2.0], [3.0, 4.5]],
    "tuple": lambda: (1, 2.5),
    "ragged list": lambda: [[1], [2, 3]],
    "list of arrays": lambda: [V.copy(), V.copy()],
    "range": lambda: range(4),
    "memoryview": lambda: memoryview(V.copy()),
    "None": lambda: None,
    "text": lambda: "abc",
}


def write_first(a):
    a[0] = 1
    return a


def add_to(a):
    a += 1
    return a


USES = {
    "arithmetic": lambda a: (a * 2 + 1).sum(axis=0),
    "comparison": lambda a: a == a,
    "product": lambda a: a * a.T,
    "write": write_first,
    "in place": add_to,
    "ufunc": lambda a: np.add(a, 1),
    "sum": lambda a: np.sum(a) + 1,
    "dot": lambda a: np.dot(a, a),
    "inner": lambda a: np.inner(a, a),
    "asarray": lambda a: np.asarray(a) * 2,
    "array": lambda a: np.array(a) + 1,
    "field": lambda a: a["f"] * 2,
    "attribute": lambda a: a.f * 2,
    "whole": lambda a: a,
    "row": lambda a: a[0],
    "rows": lambda a: [row for row in a],
    "length": lambda a: len(a),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_every_kind(kind, use):
    agree(USES[use], ARRAYS[kind])


def test_memory_maps(tmp_path):
    def make():
        array = np.memmap(tmp_path / "map", dtype="f8", mode="w+", shape=(2, 3))
        array[:] = X
        return array

    for use in ("arithmetic", "write", "in place", "asarray", "whole", "row"):
        agree(USES[use], make)


ONE_ARGUMENT = """sum prod max min mean median std sort argsort argmax cumsum diff abs exp ravel transpose
flip any all nonzero unique ptp round trace diag tril linalg.norm linalg.det linalg.inv cov average
isnan shape ndim size zeros_like copy rot90 gradient meshgrid concatenate vstack hstack stack"""
TWO_ARGUMENTS = """dot inner outer kron matmul vdot maximum add power isclose array_equal searchsorted
convolve polyval take tensordot linalg.solve cross broadcast_arrays append"""


@pytest.mark.parametrize("names, count", [(ONE_ARGUMENT, 1), (TWO_ARGUMENTS, 2)])
def test_functions_take_lists_as_numpy_does(names, count):
    lists = (
        lambda: [[1.0, 2.0], [3.0, 4.5]],
        lambda: [1, 0],
        lambda: [[1, 2], [3, 5]],
        lambda: (1.0, 2.0),
    )
    for name in names.split():
        for first in lists:
            for second in lists if count == 2 else (None,):
                makers = (first,) if second is None else (first, second)
                call = made(f"def f(*args):\n    return np.{name}(*args)\n")
                agree(call, *makers, calls=2)


def test_warnings_of_arrays_made_in_the_call():
    def f(x):
        y = x.copy()
        y -= x
        return y / y

    compiled = compile(f)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="invalid value encountered in divide"):
            compiled = compile(f)
            compiled(V)


# --- containers -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Plain:
    a: object
    b: float = 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: float = 2.0


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: float = 2.0


class Changing(Plain):
    def __post_init__(self):
        self.c = 1


Pair = collections.namedtuple("Pair", "a b")


def set_field(p):
    p.a = p.a + 1
    p.b = 3.0
    return p


CONTAINERS = {
    "dataclass in": (lambda p: p.a * p.b, lambda: Plain(X.copy())),
    "dataclass out": (lambda a: Plain(a * 2, 3.0), X.copy),
    "dataclass replaced": (lambda p: dataclasses.replace(p, a=p.a + 1), lambda: Plain(X.copy())),
    "dataclass written": (set_field, lambda: Plain(X.copy())),
    "frozen dataclass": (lambda p: Frozen(p.a * 2, p.b + 1), lambda: Frozen(X.copy())),
    "dataclass with slots": (lambda p: Slotted(p.a * 2, p.b + 1), lambda: Slotted(X.copy())),
    "dataclass that derives": (lambda p: p.a * p.b, lambda: Changing(X.copy())),
    "named tuple": (lambda n: Pair(n.a * n.b, n.b), lambda: Pair(X.copy(), 2.0)),
    "named tuple by index": (lambda n: n[0] * n[1], lambda: Pair(X.copy(), 2.0)),
    "named tuple replaced": (lambda n: n._replace(a=n.a + 1), lambda: Pair(X.copy(), 2.0)),
    "dict": (lambda d: {k: v * 2 for k, v in d.items()}, lambda: {"a": X.copy(), "b": 2.0}),
    "dict with int keys": (lambda d: d[0] + d[1], lambda: {0: X.copy(), 1: 2.0}),
    "default dict": (lambda d: d["q"] + d["a"], lambda: collections.defaultdict(float, a=X.copy())),
    "ordered dict": (lambda d: type(d)(a=d["a"] * 2), lambda: collections.OrderedDict(a=X.copy())),
    "counter": (lambda d: X * d["a"], lambda: collections.Counter("aab")),
    "deque": (lambda d: d[0] * 2, lambda: collections.deque([X.copy()])),
    "set": (lambda s: X * len(s), lambda: {1, 2}),
    "namespace": (lambda s: s.a * s.b, lambda: types.SimpleNamespace(a=X.copy(), b=2.0)),
    "nested": (lambda d: d["a"][0][1] * 2, lambda: {"a": [(1, X.copy())]}),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    agree(*CONTAINERS[name])


def in_containers(a):
    made = Plain(a * 2, 3.0)
    return {"k": [made, Pair(Frozen(a + 1, 2), None)], "t": (made.a, Plain(made.a, a.sum()))}


def test_objects_in_containers_are_made_by_a_program():
    """Each call makes its own objects, and their arrays are shared as in Python."""
    compiled = cinductor.compile(in_containers)
    results = [compiled(X.copy()) for _ in range(3)]
    assert len(compiled.specializations) == 1 and not compiled._cinductor_job.last.breaks
    for got in results:
        want = in_containers(X.copy())
        assert type(got["k"][0]) is Plain and got["k"][0].b == 3.0
        assert type(got["k"][1]) is Pair and type(got["k"][1].a) is Frozen
        np.testing.assert_array_equal(got["k"][1].a.a, want["k"][1].a.a)
        assert got["t"][0] is got["k"][0].a is got["t"][1].a
        np.testing.assert_array_equal(got["t"][0], want["t"][0])
        assert got["t"][1].b == want["t"][1].b
    assert results[1]["k"][0] is not results[2]["k"][0]
    assert results[1]["t"][0] is not results[2]["t"][0]


# --- signatures -----------------------------------------------------------------------------------


def various(a, *args, k=2.0, **kw):
    return a * k + sum(args) + sum(kw.values())


def positional(a, b=3.0, /, *, c=1):
    return a * b + c


@pytest.mark.parametrize(
    "fn, args, kwargs",
    [
        (various, (X,), {}),
        (various, (X, 1, 2), {}),
        (various, (X, 1, 2), {"k": 3.0}),
        (various, (X,), {"z": 1, "y": 2}),
        (various, (X, X), {"z": X}),
        (various, (), {}),
        (various, (X,), {"a": 1}),
        (positional, (X, 2), {}),
        (positional, (X,), {}),
        (positional, (X,), {"b": 2}),
        (positional, (X, 2, 3), {}),
        (positional, (X, 2), {"c": 3}),
        (positional, (X, 2), {"d": 3}),
        (positional, (), {}),
    ],
)
def test_signatures(fn, args, kwargs):
    compiled = compile(fn)
    for _ in range(2):
        assert outcome(compiled, *args, **kwargs) == outcome(fn, *args, **kwargs)


def test_what_is_asked_of_a_function():
    compiled = compile(various)
    assert inspect.signature(compiled) == inspect.signature(various)
    assert inspect.getsource(compiled) == inspect.getsource(various)
    assert inspect.unwrap(compiled) is various and inspect.getdoc(compiled) == inspect.getdoc(various)
    assert (compiled.__name__, compiled.__module__) == ("various", __name__)
    assert callable(compiled) and inspect.isroutine(compiled) and hash(compiled) == hash(compiled)
    assert "various" in repr(compiled)


# --- classes and decorators -----------------------------------------------------------------------


class Methods:
    scale = 3

    @compile
    def method(self, a):
        return a * self.scale

    @compile
    @staticmethod
    def static(a):
        return a + 1

    @staticmethod
    @compile
    def static_inside(a):
        return a + 1

    @compile
    @classmethod
    def of_class(cls, a):
        return a * cls.scale

    @classmethod
    @compile
    def of_class_inside(cls, a):
        return a * cls.scale

    @property
    @compile
    def value(self):
        return np.ones(2) * self.scale

    @compile
    @property
    def value_outside(self):
        """The value."""
        return np.ones(2) * self.scale

    @functools.cached_property
    @compile
    def kept(self):
        return np.ones(2) * self.scale


class Derived(Methods):
    __slots__ = ("w",)

    @compile
    def method(self, a):
        return super().method(a) * self.w


def test_methods_of_every_kind():
    first, second = Methods(), Methods()
    second.scale = 5
    for _ in range(2):
        for owner, scale in ((first, 3), (second, 5)):
            for got in (owner.value, owner.value_outside, owner.kept):
                np.testing.assert_array_equal(got, [scale, scale])
            np.testing.assert_array_equal(owner.method(V), V * scale)
            np.testing.assert_array_equal(Methods.method(owner, V), V * scale)
            np.testing.assert_array_equal(owner.of_class(V), V * 3)
        for got in (first.static(V), Methods.static(V), first.static_inside(V)):
            np.testing.assert_array_equal(got, V + 1)
        np.testing.assert_array_equal(Methods.of_class(V), Methods.of_class_inside(V))
    assert Methods.value_outside.__doc__ == "The value."
    derived = Derived()
    for w in (2.0, V):
        derived.w = w
        np.testing.assert_array_equal(derived.method(V), V * 3 * w)


def doubling(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) * 2

    return inner


def test_decorators_stack():
    @compile
    @doubling
    @compile
    @doubling
    def f(a):
        return a + 1

    outside = doubling(compile(doubling(lambda a: a + 1)))
    for _ in range(2):
        np.testing.assert_array_equal(f(V), (V + 1) * 4)
        np.testing.assert_array_equal(outside(V), (V + 1) * 4)
    assert f.__name__ == "f"
    assert compile(functools.lru_cache(lambda n: n * 2))(3) == 6


def test_recursion():
    @compile
    def power(n, a):
        return a if n <= 1 else a * power(n - 1, a)

    np.testing.assert_array_equal(power(4, V), V**4)

    def endless(a):
        return endless(a + 1)

    with pytest.raises(RecursionError):
        compile(endless)(V)


async def a_coroutine(a):
    return a * 2


def a_generator(a):
    yield a * 2


async def an_async_generator(a):
    yield a * 2


class Calls:
    def __call__(self, a):
        return a * 2

    async def later(self, a):
        return a * 2


@pytest.mark.parametrize(
    "fn",
    [
        *(a_coroutine, a_generator, an_async_generator, lambda a: a * 2, Calls(), Calls().later, np.exp),
        functools.partial(a_coroutine, V),
        functools.partial(functools.partial(a_generator), V),
        functools.partial(np.add, V),
    ],
    ids=repr,
)
def test_inspect_says_of_it_what_it_says_of_the_function(fn):
    compiled = compile(fn)
    for _ in range(2):
        for name in ("iscoroutinefunction", "isgeneratorfunction", "isasyncgenfunction", "signature"):
            asked = getattr(inspect, name)
            try:
                want = asked(fn)
            except ValueError:  # some ufuncs have no signature
                continue
            assert asked(compiled) == want, name
        assert asyncio.iscoroutinefunction(compiled) == inspect.iscoroutinefunction(fn)
        result = compiled(*([V] if not isinstance(fn, functools.partial) or fn.func is np.add else []))
        if inspect.isawaitable(result):
            result = asyncio.run(result)
        elif hasattr(result, "__next__"):
            (result,) = result
        elif hasattr(result, "__anext__"):
            result = asyncio.run(anext(result))
        assert type(result) is np.ndarray


def test_generators_and_coroutines():
    def rows(a):
        for row in a:
            yield row * 2

    async def later(a):
        await asyncio.sleep(0)
        return a * 2

    async def each(a):
        for row in a:
            yield row

    async def collect():
        return [row async for row in compile(each)(X)]

    assert [r.tolist() for r in compile(rows)(X)] == (X * 2).tolist()
    assert asyncio.run(compile(later)(V)).tolist() == (V * 2).tolist()
    assert [r.tolist() for r in asyncio.run(collect())] == X.tolist()


# --- where code comes from ------------------------------------------------------------------------


def made(source, name="<ipython-input-1-abc>"):
    """The function f of a source that is in no file. A cell that runs again gets its name again."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "__name__": "__main__"}
    exec(__builtins__["compile"](source, name, "exec"), space)
    return space["f"]


def test_notebook_cells_that_are_run_again():
    for k in (1, 2, 3):
        f = made(f"def f(a):\n    return np.sqrt(a) * {k}\n")
        report = cinductor.explain(compile(f), V)
        assert report.plain is None and not report.breaks
        np.testing.assert_array_equal(report.result, np.sqrt(V) * k)


def test_code_without_source():
    space = {"np": np}
    exec("def f(a): return np.sqrt(a) * 2\ng = lambda a: a + 1", space)
    np.testing.assert_array_equal(compile(space["f"])(V), np.sqrt(V) * 2)
    np.testing.assert_array_equal(compile(space["g"])(V), V + 1)
    both = [lambda a: a + 1, lambda a: a * 2]  # two lambdas on one line
    np.testing.assert_array_equal(compile(both[0])(V), V + 1)
    np.testing.assert_array_equal(compile(both[1])(V), V * 2)


def test_doctests_are_found_and_run():
    source = '''
def f(a):
    """
    >>> f(np.arange(3.0))
    array([0., 2., 4.])
    """
    return a * 2
'''
    module = types.ModuleType("documented")
    f = made(source)
    module.f = compile(f)
    module.f.__module__ = f.__module__ = "documented"
    (test,) = [t for t in doctest.DocTestFinder().find(module, globs={"np": np, "f": module.f}) if t.examples]
    assert doctest.DocTestRunner().run(test) == doctest.TestResults(0, 1)


# --- debuggers, copies, threads, processes --------------------------------------------------------


def summed(a, b):
    c = a * 2
    d = c + b
    return d.sum()


def test_tracers_see_the_users_lines():
    lines = []

    def tracer(frame, event, arg):
        if frame.f_code.co_name == "summed" and event == "line":
            lines.append(frame.f_lineno - summed.__code__.co_firstlineno)
        return tracer

    compiled, before = compile(summed), sys.gettrace()
    sys.settrace(tracer)
    try:
        results = [compiled(V, 1.0) for _ in range(3)]
    finally:
        sys.settrace(before)
    assert results == [9.0] * 3 and lines[:3] == [1, 2, 3]


SEEN = """
import sys
import numpy as np, cinductor

def f(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 100:
            s += x[i]
        else:
            s -= x[i]
    if s > 0:
        s = s * 2
    return s

fn, x = f.__code__, np.arange(9.0)
g = cinductor.compile(f, backend="interp")
if "known" in sys.argv:
    g(x)
lines = set()
"""
TOOLS = {
    "settrace": """
def trace(frame, event, arg):
    if frame.f_code is fn and event == "line":
        lines.add(frame.f_lineno - fn.co_firstlineno)
    return trace

sys.settrace(trace)
for _ in range(3):
    g(x)
explained = cinductor.explain(f, x)
sys.settrace(None)
""",
    "monitoring": """
tools, events = sys.monitoring, sys.monitoring.events
tools.use_tool_id(tools.COVERAGE_ID, "a test")

def line(code, number):
    if code is fn:
        lines.add(number - fn.co_firstlineno)
    return tools.DISABLE

tools.register_callback(tools.COVERAGE_ID, events.PY_START, lambda code, at: tools.set_local_events(tools.COVERAGE_ID, code, events.LINE))
tools.register_callback(tools.COVERAGE_ID, events.LINE, line)
tools.set_events(tools.COVERAGE_ID, events.PY_START)
for _ in range(3):
    g(x)
tools.set_events(tools.COVERAGE_ID, 0)
tools.set_local_events(tools.COVERAGE_ID, fn, 0)
tools.free_tool_id(tools.COVERAGE_ID)
explained = cinductor.explain(f, x)
""",
    "coverage": """
import coverage
tool = coverage.Coverage(data_file=None, include=__file__)
tool.start()
for _ in range(3):
    g(x)
tool.stop()
explained = cinductor.explain(f, x)
lines = {number - fn.co_firstlineno for number in tool.get_data().lines(__file__) if fn.co_firstlineno < number < fn.co_firstlineno + 10}
""",
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("tool", TOOLS)
def test_lines_that_are_reported_have_run(tool, known, tmp_path):
    """In each process, whatever the disk cache contains. Calls without the tool are compiled again."""
    if tool == "monitoring" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring is of 3.12")
    if tool == "coverage":
        pytest.importorskip("coverage", reason="coverage.py is not installed")
    (tmp_path / "program.py").write_text(
        SEEN + TOOLS[tool] + "assert explained.specialization is not None, explained\n"
        "g(x)\nprint(*sorted(lines), len(g.specializations))"
    )
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
    for _ in range(2):
        command = [sys.executable, str(tmp_path / "program.py"), *(["known"] if known else [])]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stdout.split() == "1 2 3 6 7 9 1".split(), done.stdout + done.stderr


def test_a_tool_that_looks_at_lines_is_told_of_once(tmp_path):
    text = SEEN + "import logging\nlogging.basicConfig(level=logging.INFO)\n" + TOOLS["settrace"]
    (tmp_path / "program.py").write_text(text + "h = cinductor.compile(lambda x: x + 1)\nsys.settrace(trace)\nh(x)\nsys.settrace(None)")
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count("runs in NumPy: a debugger, coverage or another tool") == 1, done.stderr


@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_debuggers_stop_in_the_function_itself(stop, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, cinductor\n"
        f"def f(a):\n    b = a * 2\n    {stop}\n    return b.sum()\n"
        "g = cinductor.compile(f, backend='interp')\n"
        "print(g(np.arange(3.0)), g(np.arange(3.0)))\n"
    )
    commands = "p b\nc\n" * 2
    done = subprocess.run([sys.executable, str(program)], input=commands, capture_output=True, text=True)
    line = 4 if sys.version_info >= (3, 13) else 5  # the line of the breakpoint, or the next
    assert done.stdout.count(f"program.py({line})f()") == 2, done.stdout + done.stderr
    assert done.stdout.count("array([0., 2., 4.])") == 2 and "6.0 6.0" in done.stdout


def test_copies_and_pickles():
    compiled = compile(summed)
    for other in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other(V, 1.0) == 9.0 and other.__wrapped__ is summed
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(compile(lambda a: a))


def test_threads_that_call_first_at_once():
    compiled, results = compile(lambda a: np.sin(a).sum()), []
    start = threading.Barrier(12)

    def work():
        start.wait()
        for n in (3, 4, 5):
            results.append((n, compiled(np.arange(float(n)))))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 36 and len(set(results)) == 3


def test_pools_of_processes():
    compiled = compile(summed)
    compiled(V, 1.0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.starmap(compiled, [(V, 1.0), (V, 2.0)]) == [9.0, 12.0]


# --- what only NumPy and Python themselves do -----------------------------------------------------


def raises_of_errors(a):
    with np.errstate(divide="raise"):
        try:
            return 1 / (a - a)
        except FloatingPointError as error:
            return str(error)


def sets_errors(a):
    before = np.seterr(all="raise")
    try:
        return np.log(a - 1)
    except FloatingPointError as error:
        return str(error)
    finally:
        np.seterr(**before)


def protects(a):
    a.flags.writeable = False
    a[0] = 1


def protects_a_result(a):
    b = a * 2
    b.setflags(write=False)
    b += 1


def owner(a):
    b = a * 2
    return a[:].base is a, a.base is None, b[1:].base is b, a.reshape(-1, 1).base is a


def named_by_its_frame(a):
    return sys._getframe().f_code.co_name, inspect.stack()[0].function, inspect.currentframe().f_lineno, a


def unpacked(a):
    def given(*args, **kwargs):
        return args, kwargs

    try:
        return given(*None), a
    except TypeError as error:
        return str(error), given(**a)


ONLY_THEY = [
    raises_of_errors,
    sets_errors,
    protects,
    protects_a_result,
    owner,
    named_by_its_frame,
    unpacked,
]


@pytest.mark.parametrize("fn", ONLY_THEY)
def test_what_only_numpy_and_python_do(fn):
    agree(fn, V.copy)


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_long_double_scalars_are_numpys(dtype):
    f = cinductor.compile(lambda v: (type(v), isinstance(v, numbers.Number), v + 1, [v]))
    for _ in range(2):
        assert f(dtype(5)) == (dtype, True, dtype(6), [dtype(5)])


def test_numpys_own_functions_compiled_in_their_places(monkeypatch):
    """A function that NumPy's own code calls may be replaced by a compiled one: it gets real values."""

    def called(value):
        return lambda *args, **kwargs: value(*args, **kwargs)

    utils = np.lib.array_utils
    monkeypatch.setattr(utils, "normalize_axis_tuple", cinductor.compile(called(utils.normalize_axis_tuple)))
    compiled = cinductor.compile(called(np.expand_dims))
    a = np.arange(60.0).reshape(3, 4, 5)
    for _ in range(2):
        for axis in range(3):
            x = a.min(axis=axis)
            assert compiled(x, axis=axis).shape == (*x.shape[:axis], 1, *x.shape[axis:])


class Endless(BaseException):
    """An endless iterable."""


LOOP, RING = [1], {"k": 1}
LOOP.append(LOOP)
RING["ring"] = [RING, RING]


@pytest.mark.parametrize("value", [LOOP, RING, [LOOP] * 2], ids=["a list", "a dict", "twice"])
def test_containers_that_contain_themselves(value):
    assert cinductor.Array  # its module, once imported, checks arguments for device arrays

    def stop(*_):
        raise Endless

    inner = cinductor.compile(lambda x, v: (x * 2, v))
    for fn in (inner, cinductor.compile(lambda x, v: (*inner(x, v), repr(v)))):
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(60)
        try:
            for _ in range(2):
                doubled, same, *text = fn(V, value)
                assert np.array_equal(doubled, V * 2) and same is value and text in ([], [repr(value)])
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


WORDS = """
[1, 2][x[0]] | (1, 2)[x.sum()] | [1, 2][x] | [1, 2, 3][x[0]:] | "abc"[x[0]] | (1, 2)[float(x[0])] | range(3)[x[0]]
bytes(3)[x[0]] | [1, 2].pop(x[0]) | range(x[0]) | [1] * x[0] | x[x[0]] | x[float(x[0])] | sum(x, "a") | "a" * x[0]
float(x[0]).nope | x[0].nope | x.nope | x() | len(x[0]) | -[x] | "a" + x[0] | "%d" % x | max(x[0]) | zip(x[0], x)
np.add(x) | x.sum(axis="a") | np.full(3, x, nope=1) | {x[0]: 1}[x] | sorted(x, key=3) | int(x) | x.reshape(7, 7)
"""


@pytest.mark.parametrize("text", [text.strip() for line in WORDS.strip().split("\n") for text in line.split("|")])
def test_a_handler_of_the_users_is_told_in_pythons_words(text, tmp_path):
    source = (
        f"def f(x):\n    try:\n        return {text}\n    except Exception as error:\n"
        "        return repr(error), [(place.name, place.lineno) for place in extract_tb(error.__traceback__)]\n"
    )
    path, space = tmp_path / "told.py", {"np": np, "extract_tb": traceback.extract_tb}
    path.write_text(source)
    exec(__builtins__["compile"](source, str(path), "exec"), space)
    compiled = cinductor.compile(space["f"], backend="interp")
    for _ in range(3):
        assert compiled(V + 0.5) == space["f"](V + 0.5)


class Recorder(logging.Handler):
    """Keeps the place that each record names."""

    def __init__(self):
        super().__init__()
        self.places = []

    def emit(self, record):
        self.places.append((record.filename, record.lineno, record.funcName))


class ReportUse:
    """A context manager that keeps what it is told of an exception."""

    def __init__(self, handles):
        self.handles, self.places = handles, []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, tb):
        self.places = places_of(tb)
        return self.handles


def places_of(tb):
    return [(place.name, place.lineno) for place in traceback.extract_tb(tb)]


def raises(x):
    raise ArithmeticError(len(x))


def logged(x, recorder):
    log = logging.Logger("asked")
    log.addHandler(recorder)
    y = x * 2
    log.warning("first")
    log.warning("of %s", y.sum())
    return y, recorder.places


def makes_classes(x, recorder):
    made = [
        collections.namedtuple("Made", "a b"),
        enum.Enum("Made", "A B"),
        typing.NewType("Made", int),
        typing.TypeVar("Made"),
        type("Made", (), {}),
        dataclasses.make_dataclass("Made", ["a"]),
    ]
    return x * 2, [cls.__module__ for cls in made]


def warned_by_others(x, recorder):
    y = x * 2
    np.matrix([[1.0]])
    return y


def kept_exception(x, recorder):
    try:
        raises(x + 1)
    except ArithmeticError as error:
        kept = error
    return x * 2, places_of(kept.__traceback__), kept.__traceback__.tb_lineno


def in_nested_handlers(x, recorder):
    try:
        try:
            np.linalg.inv(np.zeros((2, 2)))
        except np.linalg.LinAlgError as error:
            seen = places_of(error.__traceback__)
            raise ValueError("outer") from error
    except ValueError as error:
        return x * 2, seen, places_of(error.__traceback__), places_of(error.__cause__.__traceback__)


def told_managers(x, recorder):
    seen = []
    for handles in (True, False):
        told = ReportUse(handles)
        try:
            with told:
                raises(x * 2)
        except ArithmeticError as error:
            seen.append(places_of(error.__traceback__))
        seen.append(told.places)
    return x * 2, seen


def printed_exceptions(x, recorder):
    try:
        (x * 2)[len(x)]
    except IndexError:
        return x * 2, traceback.format_exc()


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize(
    "fn",
    [logged, makes_classes, warned_by_others, kept_exception, in_nested_handlers, told_managers, printed_exceptions],
)
def test_what_looks_at_frames_finds_the_users(fn, is_broken):
    def broken(x, recorder):
        print(end="")
        return fn(x, recorder)

    compiled = compile(broken if is_broken else fn)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = [repr(f(V, Recorder())) for f in (compiled, broken if is_broken else fn)]
        assert found[0] == found[1]
        places = [(w.filename, w.lineno) for w in seen]
        assert places[: len(places) // 2] == places[len(places) // 2 :]


def masked_divide(x):
    out = np.zeros(len(x))
    np.divide(1.0, x, out=out, where=x != 0)
    x += 1
    return out


def masked_logs(x):
    out = np.sqrt(x, out=np.zeros(len(x)), where=x > 0)
    np.log(x, out=out, where=x > 2)
    np.arctanh(x / 9, out=out, where=x < 0)
    x *= 2
    return out


def masked_ints(x):
    whole = x.astype(int)
    x += np.divide(1, whole, out=np.zeros(len(x)), where=whole != 0)
    return x


@pytest.mark.parametrize("fn", [masked_divide, masked_logs, masked_ints])
@pytest.mark.parametrize("backend", ("c", "interp"))
def test_masked_elements_give_no_warnings(fn, backend):
    """NumPy does not compute them, and the call cannot be repeated there after it has written to its argument."""
    compiled = cinductor.compile(fn, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for n in (4, 4, 9):
            x, y = np.arange(n) - 2.0, np.arange(n) - 2.0
            np.testing.assert_allclose(compiled(x), fn(y), rtol=1e-15)
            np.testing.assert_array_equal(x, y)


def handled(x):
    try:
        return x / (x - x[0])
    except FloatingPointError as error:
        return str(error)


def handled_after_a_write(x):
    try:
        x[:] = x / (x - x[0])
    except FloatingPointError as error:
        return str(error)
    return x


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [handled, handled_after_a_write])
def test_a_function_handles_errors_of_floats(fn, backend):
    compiled = cinductor.compile(fn, backend=backend)
    for how in ("ignore", "ignore", "raise", "raise", "ignore", "raise"):
        with np.errstate(divide=how):
            x, y = np.array([3.0, -1.0, 2.0]), np.array([3.0, -1.0, 2.0])
            assert repr(compiled(x)) == repr(fn(y))
            np.testing.assert_array_equal(x, y)
