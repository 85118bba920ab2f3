"""Tests messages to users: NumPy's own words, or a message that names the given and the expected value.

Warnings must point at the user's line.
"""

import bdb
import copy
import linecache
import os
import re
import subprocess
import sys
import traceback
import warnings
import zipfile

import numpy as np
import pytest

import cinductor
from cinductor import _core, compile
from cinductor.calls.dynamic import marks_of

X = np.arange(6.0).reshape(2, 3)
V = np.arange(3.0)


def made(source, **names):
    """The function f of a source that is in no file, like a notebook cell."""
    file = f"<ipython-input-{abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"np": np, "cinductor": cinductor, "__name__": "__main__", **names}
    exec(__builtins__["compile"](source, file, "exec"), space)
    return space["f"]


def outcome(fn, *args):
    """The result and warnings of a call, without addresses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(fn(*args))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    texts = [result, *(str(w.message) for w in caught)]
    return [re.sub("0x[0-9a-f]+", "0x", text) for text in texts]


class Foreign:
    """Has its own operators, which NumPy calls for each element."""

    def __radd__(self, other):
        return ("radd", other)


class Refusing:
    """Has its own operators, to which NumPy passes the whole array."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return ("radd", other.shape)


OPERATIONS = """
a + None | a + object() | None * a | a @ None | a + "x" | a - {} | a < None | a == None | a & 1 | ~a
a() | a.sum()() | s() | a["x"] | a[1.5] | a[object()] | a.sum()[0] | a[9] | a.sum()[0:1] | next(a)
np.add(a, None) | np.add(a, object()) | np.dot(a, None) | np.where(a, None, 1) | np.exp(None)
divmod(a, None) | pow(a, None) | a ** None | a.sum() + None | sum(a, None) | a @ a @ None
a.__add__(None) | s + None | s + object() | s < None | s[0] | len(s) | s in s | s @ s | n + None
[None] + a | a + [None, 1, 2] | a + foreign | a + refusing | np.multiply(a, [None] * 3) | a.nothing
np.add(a) | np.sum(a, axis="x") | a.sum(1, 2, 3, 4, 5, 6, 7, 8) | np.exp(a, a, a) | "%d" % a
a.reshape("x") | a.astype("nothing") | np.stack([a, None]) | {}[a] | hash(a) | range(a) | np.zeros(n + "x")
"""
STATEMENTS = """
a += None | a += "x" | a @= None | a **= None | s += None | a[0] = None | a[0] = object() | a[0] = "x"
a["x"] = 1 | a[1.5] = 1 | a[9] = 1 | del a[0] | a[:] = [None, 1, 2] | a.shape = "x"
with a: pass | for x in s: pass | x, y = a | a.nothing = 3
"""


def each(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


@pytest.mark.parametrize("line", [*(f"a = {e}" for e in each(OPERATIONS)), *each(STATEMENTS)])
def test_what_cannot_be_done_is_said_in_numpys_words(line):
    head = "def f(a, s, n, foreign, refusing):\n"
    plain = f"{head}    {line}\n    return a, s\n"
    within = (
        f"{head}    try:\n        {line}\n    except Exception as error:\n"
        "        return type(error).__name__, str(error)\n    return a, s\n"
    )
    behind = f"{head}    print(end='')\n    {line}\n    return a, s\n"
    for source in (plain, within, behind):
        fn = made(source)
        compiled = compile(fn, backend="interp")
        expected = outcome(fn, V.copy(), 2.5, 3, Foreign(), Refusing())
        for _ in range(2):
            assert outcome(compiled, V.copy(), 2.5, 3, Foreign(), Refusing()) == expected, source


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: cinductor.mark_dynamic([1], 0), TypeError, ["mark_dynamic", "x is of class list", "array"]),
        (lambda: cinductor.mark_dynamic(X, "0"), TypeError, ["dim is '0'", "an int or a tuple of ints"]),
        (lambda: cinductor.mark_dynamic(X, 2), IndexError, ["dim is 2", "an axis from -2 to 1"]),
        (lambda: cinductor.mark_dynamic(X, 0, min=-1), ValueError, ["min is -1", "at least 0"]),
        (lambda: cinductor.mark_dynamic(X, 0, max=1.5), TypeError, ["max is 1.5", "an int"]),
        (lambda: cinductor.mark_dynamic(X, 0, min=5, max=4), ValueError, ["min is 5", "max is 4"]),
        (lambda: cinductor.mark_dynamic(X, 0, min=3), ValueError, ["size 2", "[3, inf)"]),
        (lambda: cinductor.mark_static(3), TypeError, ["mark_static", "x is 3"]),
        (lambda: cinductor.mark_unbacked(X, None), TypeError, ["mark_unbacked", "dim is None"]),
        (lambda: cinductor.fori_loop(0, 3, 5, V), TypeError, ["fori_loop", "body is 5", "function"]),
        (lambda: cinductor.fori_loop(0, "3", max, V), TypeError, ["fori_loop", "upper is '3'", "int"]),
        (lambda: cinductor.while_loop(V, max, V), TypeError, ["while_loop", "cond is of class ndarray"]),
        (lambda: cinductor.while_loop(max, 3, V), TypeError, ["while_loop", "body is 3"]),
        (lambda: cinductor.cond(True, 3, max), TypeError, ["cond", "true_fn is 3", "function"]),
        (lambda: cinductor.cond(False, max, None), TypeError, ["cond", "false_fn is None"]),
        (lambda: cinductor.scan(3, V, V), TypeError, ["scan", "f is 3", "function"]),
        (lambda: cinductor.scan(max, V, 3), TypeError, ["scan", "xs is 3", "an array"]),
        (lambda: cinductor.scan(max, V, None), TypeError, ["scan", "length is None", "an int"]),
        (lambda: cinductor.scan(max, V, V, 4), ValueError, ["scan", "length is 4", "xs has 3 rows"]),
        (lambda: cinductor.scan(max, V, V[:0]), ValueError, ["scan", "no rows"]),
        (lambda: cinductor.Device(3), TypeError, ["name is 3", "'cuda'"]),
        (lambda: cinductor.device(3), TypeError, ["device is 3", "'cuda:1'", "cinductor.devices()"]),
        (lambda: cinductor.synchronize(3), TypeError, ["device is 3", "'cuda:1'"]),
        (lambda: cinductor.devices([]), ValueError, ["there is no device []"]),
        (lambda: cinductor.Graph(3), TypeError, ["Graph", "text is 3", "the text of a graph"]),
        (lambda: cinductor.list_passes([]), ValueError, ["list_passes", "'graph'"]),
        (lambda: cinductor.disable(3), TypeError, ["disable", "fn is 3", "a function"]),
        (lambda: cinductor.package(max, V), TypeError, ["package", "path is of class builtin", "then the function"]),
        (lambda: cinductor.register_device(V, 3), TypeError, ["register_device", "compilers is 3"]),
        (lambda: cinductor.scan(lambda c, x: c, V, V), TypeError, ["scan", "what f returned is of class ndarray", "(carry, y)"]),
    ],
)
def test_wrong_arguments_are_named(call, error, words):
    with pytest.raises(error) as raised:
        call()
    for word in words:
        assert word in str(raised.value)
    assert not marks_of(X)  # a refused call has marked nothing


OF_PYTHON = "has no attribute|is not iterable|unhashable|bad argument type|argument of type|not subscriptable|must be str|not callable"
PUBLIC = [name for name in cinductor.__all__ if callable(getattr(cinductor, name)) and name not in ("Options", "CompiledFunction")]


@pytest.mark.parametrize("name", PUBLIC)
def test_no_public_function_speaks_of_its_own_code(name):
    """Whatever the arguments are, a message speaks of them and not of an operation inside of cinductor."""

    def f(x):
        return np.add(x, 1)

    function = getattr(cinductor, name)
    for wrong in (3, 2.5, b"b", [1], {}, object(), V):
        for args in ((wrong,), (f, wrong), (f, V, wrong)):
            try:
                function(*args)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                is_users = frames[-1].filename == __file__ and len(frames) > 1
                assert is_users or not re.search(OF_PYTHON, str(error)), (args, error)


def test_loops_as_functions_say_the_same_when_compiled():
    def f(a):
        return cinductor.fori_loop(0, a.shape[0], 5, a)

    with pytest.raises(TypeError, match="fori_loop: body is 5"):
        compile(f, backend="interp")(V)


# --- internal objects are not visible -----------------------------------------------------------------


def test_a_failed_check_is_no_exception():
    assert issubclass(_core.CheckFailed, BaseException)
    assert not issubclass(_core.CheckFailed, Exception)


HANDLERS = ["except Exception", "except BaseException", "except", "except (IndexError, ValueError)"]


@pytest.mark.parametrize("handler", HANDLERS)
def test_handlers_see_nothing_of_the_librarys_own(handler):
    source = f"""
def f(a, where):
    seen = []
    try:
        total = 0.0
        for k in range(where.shape[0]):
            total += a[where[k]]
        print(total, end="")
    {handler}:
        seen.append(str(__import__("sys").exc_info()[1]))
        total = -1.0
    return total, seen
"""
    fn = made(source)
    for backend in ("interp",):
        compiled = compile(fn, backend=backend)
        for where in ([0, 1], [2, 9], [1, 1], [0, -7]):
            where = np.array(where)
            assert compiled(V, where) == fn(V, where)


def test_handlers_do_not_see_that_a_backend_fails():
    source = """
def f(a):
    try:
        b = np.exp(a) + 1
        c = float(b.sum())
    except BaseException:
        return -1.0
    return c
"""
    program = f"""
import sys, linecache
import numpy as np, cinductor
source = {source!r}
linecache.cache["<cell>"] = (len(source), None, source.splitlines(True), "<cell>")
exec(compile(source, "<cell>", "exec"))
a = np.arange(3.0)
np.testing.assert_array_equal(cinductor.compile(f)(a), f(a))
"""
    env = {**os.environ, "CC": "/bin/false", "CINDUCTOR_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("CinductorWarning:") == 1, done.stderr


def test_fullgraph_reaches_the_caller_through_handlers():
    def f(a):
        try:
            print(a)
        except Exception:
            return None
        return a

    with pytest.raises(cinductor.Unsupported, match="calls print"):
        compile(f, backend="interp", fullgraph=True)(V)


# --- warnings -------------------------------------------------------------------------------------


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w for w in caught if "cinductor" in str(w.message)]


def test_the_warning_of_many_pieces_points_at_the_function(monkeypatch):
    """For a function that is traced in each call instead of being split at its breaks."""
    monkeypatch.setattr("cinductor.capture.pieces.driver.plan_of", lambda job, compiled: None)
    source = """
def f(a, numbers):
    b = a[len(numbers):] + 1
    print(end="")
    return b * 2
"""
    fn = made(source)
    compiled = compile(fn, backend="c", options={"recompile_limit": 1})

    def call():
        for k in range(12):
            compiled(np.ones(3_000_000), [None] * k)

    (w,) = warned(call)
    assert w.filename == fn.__code__.co_filename and w.lineno in (4, 5)
    assert "explain" in str(w.message)


def test_the_warning_at_the_limit_points_at_the_caller_and_says_what_to_do():
    compiled = compile(lambda x, k: x * k, backend="interp", dynamic=False, options={"recompile_limit": 2})

    def call():
        for k in range(5):
            compiled(V, (k, "x")[0])

    (w,) = warned(call)
    assert w.filename == __file__ and w.lineno == call.__code__.co_firstlineno + 2
    assert "recompile_limit" in str(w.message) and "dynamic" in str(w.message)


def told(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [(str(w.message), w.category, w.filename, w.lineno) for w in caught]


def test_what_numpy_has_against_setting_a_shape_is_said_in_each_call_at_the_users_line():
    source = """
def f(a):
    b = a * 2
    b.shape = (3, 1)
    return b
"""
    fn = made(source)
    compiled = compile(fn, backend="interp")
    for _ in range(3):
        assert told(compiled, V) == told(fn, V)


@pytest.mark.parametrize("step", ["a = a + 0.0", "print(end='')"], ids=["whole", "breaks"])
@pytest.mark.parametrize(
    "text",
    """
    a + np.log(np.float64(-1)); a[:0].mean(); np.average(a[:0].reshape(0, 2), axis=0)
    np.array([np.log(v) for v in (-1.0, 2.0)]); np.log(np.array([-1.0])); np.divide(np.ones(3), 0, out=a)
    """.replace("\n", ";").strip("; ").split(";"),
)
def test_what_numpy_says_while_capture_calls_it_names_the_users_line(text, step):
    fn = made(f"def f(a):\n    {step}\n    return {text.strip()}\n")
    want = told(fn, V.copy())
    got = told(compile(fn, backend="interp"), V.copy())
    assert want and got[: len(want)] == want and all(filename in {w[2] for w in want} for _, _, filename, _ in got)


def test_what_a_library_call_says_names_the_caller():
    compiled = compile(made("def f(a):\n    return np.nanmedian(a * np.nan)\n"), backend="interp")
    assert {filename for _, _, filename, _ in told(compiled, V)} == {__file__}


def test_what_cannot_be_captured_costs_no_warning():
    def f(a):
        a[0] = None
        return a

    compiled = compile(f, backend="interp")
    assert warned(lambda: [compiled(V.copy()) for _ in range(3)]) == []


def test_copies_are_compiled_functions():
    compiled = compile(lambda x: x + 1, backend="interp")
    np.testing.assert_array_equal(copy.copy(compiled)(V), V + 1)


# --- explain --------------------------------------------------------------------------------------


def test_explain_gives_each_break_its_line_and_the_line_its_text():
    source = """
def f(a):
    b = a + 1
    print(end="")
    c = np.trim_zeros(b[0])
    return b * 2, c
"""
    fn = made(source)
    report = cinductor.explain(compile(fn, backend="interp"), X)
    trimmed, printed = report.breaks[-1], report.breaks[0]
    assert (printed.line, printed.source, printed.reason) == (4, 'print(end="")', "calls print")
    assert (trimmed.line, trimmed.source) == (5, "c = np.trim_zeros(b[0])") and "trim_zeros" in trimmed.reason
    assert printed.file == fn.__code__.co_filename
    text = report.full()
    assert "  line 4: calls print\n" in text and '\n      print(end="")\n' in text
    assert text.startswith(f"f, {printed.file}:2\n")
    assert "-> return the value and print it outside" in text
    assert "in 2 compiled pieces" in text and report.later in text and report.plain is None


def test_explain_keeps_the_breaks_of_a_call_that_is_given_up():
    source = """
def f(a):
    for k in range(40):
        a = a + float(str(a[0]))
    return a
"""
    report = cinductor.explain(compile(made(source), backend="interp"), V)
    assert report.plain is not None and "too many breaks" in report.plain
    assert report.breaks and report.breaks[0].source == "a = a + float(str(a[0]))"
    text = str(report)
    assert f"runs in NumPy: {report.plain}" in text and " times)" in text
    assert report.programs == 0 and report.wrapper == "" and "wrapper:" not in text


def helper(x):
    return x * 2


class Model:
    def __init__(self):
        self.w, self.flag = np.ones(3), True

    def step(self, x):
        return helper(x) * self.w if self.flag else x


def test_explain_has_guards_in_the_users_words():
    bias = np.ones(3)

    def f(x, options):
        return np.maximum(helper(x) + bias, len(options))

    guards = cinductor.explain(compile(f, backend="interp"), X, {"a": 1}).guards
    assert "x is an array of float64, shape (2, 3), contiguous, writable" in guards
    assert "bias is an array of float64, shape (3,), contiguous, writable" in guards
    assert "global np is the module numpy" in guards
    assert "global helper is the function helper" in guards
    assert "len is Python's own: no global has that name" in guards
    model = Model()
    guards = cinductor.explain(compile(model.step, backend="interp"), X).guards
    assert "self.flag is True" in guards
    assert "self.w is an array of float64, shape (3,), contiguous, writable" in guards
    assert not any("0x" in g for g in guards)


def test_explain_says_why_each_specialisation_was_made():
    def f(x, scale):
        return x * 2 if scale else x + 1

    compiled = compile(f, backend="interp", dynamic=False)
    for x, scale in ((V, True), (V, False), (X, False)):
        compiled(x, scale)
    report = cinductor.explain(compiled, X, False)
    assert len(report.specializations) == len(compiled.specializations) == 3
    assert report.specializations[-1] == "the first call"
    assert report.specializations[0].startswith("x.ndim was 1 when compiled at test_words.py:")
    assert report.specializations[1].startswith("scale was True when compiled at test_words.py:")
    assert report.recompiles == report.specializations[1::-1]
    for reason in report.specializations:
        assert reason in str(report)


def test_explain_has_one_name_for_each_level():
    report = cinductor.explain(compile(lambda x: x * 2 + 1, backend="interp"), X)
    titles = [line[:-1] for line in report.full().splitlines() if line[-1:] == ":" and line[0] != " "]
    assert [t for t in titles if " " not in t][-7:] == ["timings", "graph", "optimized", "loops", "kernels", "procs", "wrapper"]
    assert "def call(in0):" in report.wrapper and report.source == ""
    with pytest.raises(AttributeError):
        _ = report.python
    compiled = cinductor.explain(compile(lambda x: x * 2 + 1), X)
    assert "int32_t" in compiled.source and len({compiled.text(n) for n in ("graph", "loops", "wrapper")}) == 3


# --- where functions come from ----------------------------------------------------------------------

MODULE = """
import numpy as np
import cinductor

@cinductor.compile
def total(a, limit):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
        if s > limit:
            raise ValueError(f"too much at {i}")
    return s
"""
CALLS = """
import traceback, numpy as np
from zipped_total import total
a = np.arange(50.0)
print(total(a, 1e9), len(total.specializations))
for _ in range(2):
    try:
        total(a, 100.0)
    except ValueError as error:
        print(error, [f.lineno for f in traceback.extract_tb(error.__traceback__)][1:])
"""


@pytest.mark.parametrize("flag", ["", "-O", "-OO"])
@pytest.mark.parametrize("place", ["zip", "folder"])
def test_a_module_anywhere_is_captured(tmp_path, flag, place):
    (tmp_path / "zipped_total.py").write_text(MODULE)
    where = tmp_path
    if place == "zip":
        where = tmp_path / "modules.zip"
        with zipfile.ZipFile(where, "w") as file:
            file.write(tmp_path / "zipped_total.py", "zipped_total.py")
        (tmp_path / "zipped_total.py").unlink()
    folders = [str(where), os.path.dirname(os.path.dirname(cinductor.__file__))]
    done = subprocess.run(
        [sys.executable, *flag.split(), "-c", CALLS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "1225.0 1\n" + "too much at 14 [11]\n" * 2, done.stderr


def test_what_a_debugger_looks_at_is_the_function_itself():
    class Watcher(bdb.Bdb):
        seen = []

        def user_line(self, frame):
            if frame.f_code.co_name == "watched":
                self.seen.append(dict(frame.f_locals))

    def watched(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    compiled, x = compile(watched, backend="interp"), np.arange(12.0)
    watcher = Watcher()
    watcher.set_trace()
    try:
        assert compiled(x) == 66.0
    finally:
        watcher.set_quit()
        sys.settrace(None)
    assert watcher.seen and all(type(names["x"]) is np.ndarray for names in watcher.seen)
    assert "debugger" in compiled._cinductor_job.why
    assert compiled(x) == 66.0 and compiled.specializations


def test_without_source_it_is_all_or_nothing():
    space = {"np": np}
    exec("def whole(x): return np.sqrt(x) * 2", space)
    exec("def broken(x):\n    s = 0.0\n    for i in range(len(x)):\n        if x[i] > 0: s += sum([*[x[i]]])\n    return s", space)
    whole, broken = (compile(space[name], backend="interp") for name in ("whole", "broken"))
    with pytest.warns(cinductor.CinductorWarning, match="broken runs in NumPy: its source is not found") as told:
        for _ in range(3):
            np.testing.assert_array_equal(whole(V), np.sqrt(V) * 2)
            assert broken(V) == 3.0
    assert len(told) == 1
    assert whole.specializations and not broken.specializations
    with pytest.warns(cinductor.CinductorWarning):
        report = cinductor.explain(broken, V)
    assert "source is not found (what is typed at >>> or made by exec has none)" in report.plain
