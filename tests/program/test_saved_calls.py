"""Tests captures that are saved on disk. Another compiled function, or another process, starts with a saved capture
if every guard holds, and captures itself otherwise.
"""

import dataclasses
import math
import os
import subprocess
import sys
import types
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.calls import saved, saved_text

PROCESS = """
import sys
import numpy as np
import cinductor

K = 2.5

def helper(a, k=2):
    return np.sqrt(a) * k

@cinductor.compile
def f(x):
    return helper(x / x.sum(axis=1, keepdims=True)) + K

x = np.arange(12.0).reshape(3, 4)
same = np.array_equal(f(x), f.__wrapped__(x))
print(same, cinductor.stats()["captures"],
      len([m for m in sys.modules if m.startswith("cinductor.capture")]))
"""


@pytest.fixture(autouse=True)
def saves(monkeypatch, request):
    """Save calls under keys of the test's own. Returns a function that lists the new files."""
    folder = Path(cinductor.cache.info()["directory"])
    files = lambda: {path for path in folder.glob("*.call") if not path.stem.endswith(saved.MARK)}  # noqa: E731
    before = files()
    monkeypatch.setattr(saved, "_stamp", [request.node.name])
    with cinductor.config.patch(saved_calls=True):
        yield lambda: sorted(files() - before)


def captures_of(fn, *args, **settings):
    """The number of captures that another compiled function makes for a call, and its result."""
    compiled = cinductor.compile(fn, **settings)
    result = compiled(*args)
    assert len(compiled.specializations) == 1
    return compiled._cinductor_job.captures, result


def assert_recalled(fn, make):
    """Check that the call is saved, and that loading it gives the same results and effects."""
    wanted, given = make(), make()
    want = fn(*wanted)
    assert captures_of(fn, *make())[0] == 1
    captures, got = captures_of(fn, *given)
    assert captures == 0
    assert_same(got, want)
    assert_same(given, wanted)


def assert_same(got, want):
    assert type(got) is type(want)
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        assert_same(list(got.values()), list(want.values()))
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        assert got.tobytes() == want.tobytes()
    else:
        assert got == want


K = 2.5
ODDS = (1, 3, 5)


def helper(a, k=2, *, low=0.25):
    return np.maximum(np.sqrt(a) * k, low)


def uses_helper(x):
    return helper(x) + K + math.pi


def uses_closure():
    weight, inner = 3.0, lambda a: a * a + 1

    def outer(x):
        return inner(x) * weight

    return outer


def views(x):
    y = x + 1
    return y.T, y[::2], {"x": x, "part": x[1:], "both": [y, y], "size": len(x), "none": None}


def keeps_axes(x):
    return x.sum(axis=1, keepdims=True), x.max(), float(x[0, 0])


def writes(x):
    x[1:] += 1
    return x.mean()


def loops(x):
    total = np.float64(0)
    for i in range(x.shape[0]):
        if x[i, 0] > 2:
            total += x[i, 1]
    return total


def numbers(x):
    return [x * n for n in ODDS], x.astype(np.float32), np.int64(3), b"a\n", "a\\n\nb", 2 + 1j


def takes_pairs(x, pairs=((1, "a"), (2, "b"))):
    return sum(x * n for n, _ in pairs)


def takes_any(x):
    return x + 1


def matrix():
    return (np.arange(20.0).reshape(5, 4),)


@pytest.mark.parametrize(
    "fn",
    [uses_helper, uses_closure(), views, keeps_axes, writes, loops, numbers, takes_pairs],
    ids=lambda fn: fn.__name__,
)
def test_a_saved_call_is_what_was_captured(fn):
    assert_recalled(fn, matrix)


def test_another_process_does_not_import_capture(tmp_path):
    (tmp_path / "program.py").write_text(PROCESS)
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
    answers = [
        subprocess.run([sys.executable, tmp_path / "program.py"], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert answers[0].split()[:2] == ["True", "1"]
    assert answers[1].split() == ["True", "0", "0"]


# --- a call whose guards fail is captured again ---------------------------------------------------------


def test_other_arguments_have_calls_of_their_own(saves):
    x = np.arange(6.0)
    for given in (x, x.astype(np.float32), x.reshape(2, 3), x[::2], 3.0):
        assert captures_of(uses_helper, given)[0] == 1
    for given in (x, x.astype(np.float32), x.reshape(2, 3), x[::2]):
        assert captures_of(uses_helper, given)[0] == 0
    assert len(saves()) == 1


@pytest.mark.parametrize("change", ["code", "defaults", "named defaults", "object", "class of a number", "module"])
def test_what_has_changed_is_captured_again(change, monkeypatch):
    x = np.arange(6.0)
    assert captures_of(uses_helper, x)[0] == 1
    assert captures_of(uses_helper, x)[0] == 0
    if change == "code":
        monkeypatch.setattr(helper, "__code__", (lambda a, k=2, *, low=0.25: np.maximum(a - k, low)).__code__)
    elif change == "defaults":
        monkeypatch.setattr(helper, "__defaults__", (3,))
    elif change == "named defaults":
        monkeypatch.setattr(helper, "__kwdefaults__", {"low": 0.5})
    elif change == "object":
        monkeypatch.setitem(globals(), "helper", lambda a: a - 1)
    elif change == "class of a number":
        monkeypatch.setitem(globals(), "K", np.float32(7))
    else:
        monkeypatch.setattr(np, "sqrt", lambda a: a * 10)
    captures, got = captures_of(uses_helper, x)
    assert captures == 1
    assert_same(got, uses_helper(x))


def test_a_number_that_has_changed_is_read_again(monkeypatch):
    x = np.arange(6.0)
    captures_of(uses_helper, x)
    monkeypatch.setitem(globals(), "K", -1.0)
    captures, got = captures_of(uses_helper, x)
    assert captures == 0
    assert_same(got, uses_helper(x))


def test_another_function_around_is_another_call():
    def around(inner):
        def outer(x):
            return inner(x) + 1

        return outer

    x = np.arange(4.0)
    assert captures_of(around(np.sin), x)[0] == 1
    assert captures_of(around(np.sin), x)[0] == 0
    captures, got = captures_of(around(np.cos), x)
    assert captures == 1
    assert_same(got, np.cos(x) + 1)


def test_settings_have_calls_of_their_own(saves):
    x = np.arange(8.0)
    captures_of(uses_helper, x)
    assert captures_of(uses_helper, x, options={"numerics": "close"})[0] == 1
    assert captures_of(uses_helper, x, options={"fusion": False})[0] == 1
    assert captures_of(uses_helper, x, options={"numerics": "close"})[0] == 0
    assert len(saves()) == 3
    for captures in (1, 0):
        f = cinductor.compile(uses_helper, backend="interp")
        f(x)
        assert f._cinductor_job.captures == captures and f.specializations[0].program.backend == "cpu:interp"


def test_a_call_is_found_without_a_look_at_the_folder(saves, monkeypatch):
    """A folder may have many thousands of files."""

    def looks(*folder):
        raise AssertionError(folder)

    monkeypatch.setattr(os, "scandir", looks)
    monkeypatch.setattr(os, "listdir", looks)
    x = np.arange(8.0)
    job = cinductor.compile(uses_helper)._cinductor_job
    assert captures_of(uses_helper, x)[0] == 1 and saved.has_calls(job)
    assert captures_of(uses_helper, x)[0] == 0


def test_a_later_version_has_calls_of_its_own(monkeypatch):
    x = np.arange(8.0)
    captures_of(uses_helper, x)
    monkeypatch.setattr(saved, "_stamp", ["a later version"])
    assert captures_of(uses_helper, x)[0] == 1


def test_the_stamp_sees_the_packages_files(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.py").write_text("x = 1")
    before = saved.files_in(tmp_path)
    assert len(before) == 2
    os.utime(tmp_path / "inner" / "b.py", ns=(1, 1))
    assert saved.files_in(tmp_path) != before


# --- calls that are not saved --------------------------------------------------------------------------


@dataclasses.dataclass
class Point:
    x: np.ndarray


TABLE = np.arange(3.0)
TABLE.flags.writeable = False


def of_class(p):
    return p.x * 2


def sorts(x):
    return np.sort(x)


def test_objects_of_a_users_class_stay_in_their_process(saves):
    for _ in range(2):
        assert captures_of(of_class, Point(np.arange(3.0)))[0] == 1
    assert saves() == []


def arrays_that_are_constants(x):
    return x + TABLE


def test_arrays_that_are_constants_are_read_again():
    assert_recalled(arrays_that_are_constants, lambda: (np.arange(3.0),))


# --- library calls --------------------------------------------------------------------------------

LIBRARY = """
import sys
import numpy as np
import cinductor

def sorts(x):
    return np.sort(x, axis=0)[::-1], np.argsort(x[0], kind="stable"), np.partition(x, 1)

def solves(x):
    return np.linalg.solve(x, x[0]), np.einsum("ij,jk->ik", x, x), x[0].dot(x[1])

def transforms(x):
    return np.fft.fft(x), np.interp(x, np.arange(4.0), x[0])

def searches(x):
    return np.searchsorted(x[0], 0.5), np.histogram(x, 3)[0], np.percentile(x, [20, 50]), np.convolve(x[0], x[1])

def joins(x):
    return np.hstack([x, x]), np.diff(x), np.where(x > 0.5, np.nan, x)

def given(x, rng):
    return x + rng.standard_normal((4, 4))

x = np.random.default_rng(0).random((4, 4))
for fn in (sorts, solves, transforms, searches, joins):
    fast = cinductor.compile(fn)
    got, want = fast(x), fn(x)
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want))
    print(fn.__name__, same, fast._cinductor_job.captures, fast.specializations[0].why_numpy)
fast = cinductor.compile(given)
a, b = np.random.default_rng(3), np.random.default_rng(3)
print("given", all(np.array_equal(fast(x, a), given(x, b)) for _ in range(3)), fast._cinductor_job.captures, a.bit_generator.state == b.bit_generator.state)
"""


def test_library_calls_and_draws_are_known_again_in_another_process(tmp_path):
    """The called function is rebuilt from its code and the arguments of its factory. Generators are those of the
    call.
    """
    (tmp_path / "program.py").write_text(LIBRARY)
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
    for captures in "1", "0":
        command = [sys.executable, tmp_path / "program.py"]
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
        assert [line.split()[1:3] for line in said] == [["True", captures]] * 6, said


def test_only_internal_code_is_named():
    """A saved line only refers to code of cinductor itself that still exists."""
    from cinductor.numpy.order import sort_call

    place = saved_text.place_of_closure(sort_call(0, "stable"))
    assert saved_text.code_at(place) is sort_call(1, "heapsort").__code__
    module, path, line = place.split()
    for other in (f"{module} {path} {int(line) + 1}", f"os {path} {line}", f"cinductor.numpy.none {path} {line}"):
        assert saved_text.code_at(other) is None
    assert saved_text.code_at(f"{module} sort_call.other {line}") is None
    assert saved_text.code_at(f"{module} sort_call {sort_call.__code__.co_firstlineno}") is None  # no other code of the module has that name
    for fn in (helper, lambda: 1, np.sum, captures_of):
        assert saved_text.place_of_closure(fn) is None


def test_methods_and_objects_stay_in_their_process(saves):
    class Model:
        def __call__(self, x):
            return x + 1

    for fn in (Model(), Model().__call__, partial(helper, k=3)):
        cinductor.compile(fn)(np.arange(3.0))
    assert saves() == []


def test_sizes_that_calls_have_shown_are_learned_from_a_saved_one(saves):
    def scaled(x):
        return x * 2 + 1

    assert captures_of(scaled, np.arange(5.0))[0] == 1
    again = cinductor.compile(scaled)
    again(np.arange(5.0))
    assert again._cinductor_job.captures == 0
    again(np.arange(7.0))
    again(np.arange(9.0))
    assert again._cinductor_job.captures == 1  # the saved call has recorded another size
    [file] = saves()
    assert file.read_bytes().count(b"\n\n") == 1


def moved(x, y, n):
    z = (x[1:] * 2 + y[:-1]).T
    return z, z[::2], x.shape[0] + n, x.sum(axis=0), x[2:]


def parts_of_larger(x):
    return x[:, 1:-1] * 2, x.T[1:]


def shorter(x, y):
    return np.concatenate([x[: y.shape[0]], y]), x[y.shape[0] :] + 1


@pytest.mark.parametrize(
    ("fn", "make"),
    [
        (moved, lambda n: (np.arange(7.0 * n).reshape(n, 7), np.ones((n, 7)), n)),
        (parts_of_larger, lambda n: (np.arange(24.0 * n).reshape(n, 24)[:, 3 : n + 7],)),
        (shorter, lambda n: (np.arange(3.0 * n), np.arange(float(n)))),
    ],
    ids=["views and ints", "gaps", "sizes of two"],
)
def test_programs_of_any_size_are_saved(fn, make):
    first = cinductor.compile(fn, dynamic=True)
    first(*make(5))
    again = cinductor.compile(fn, dynamic=True)
    for n in (6, 5, 9, 14):
        got, want = again(*make(n)), fn(*make(n))
        assert_same(got, want)
    assert again._cinductor_job.captures == 0 and len(again.specializations) == 1
    ours, theirs = again.specializations[0], first.specializations[0]
    assert (ours.guards, ours.recipe) == (theirs.guards, theirs.recipe)


def test_a_size_on_the_other_side_of_a_guard_is_captured():
    def halves(x):
        return [x[: x.shape[0] // 2] + 1] if x.shape[0] > 4 else x[:2].sum()

    def runs(*sizes):
        compiled = cinductor.compile(halves, dynamic=True)
        for n in sizes:
            assert_same(compiled(np.arange(float(n))), halves(np.arange(float(n))))
        return compiled._cinductor_job.captures

    first = runs(8, 9)
    assert runs(10, 11, 8) == 0 <= first
    runs(3, 8, 2)
    runs(2, 3, 9)


def test_marked_sizes_are_captured(saves):
    x = np.arange(5.0)
    cinductor.mark_dynamic(x, 0)
    assert captures_of(uses_helper, x)[0] == 1
    assert saves() == []


def test_switched_off_nothing_is_kept(saves):
    with cinductor.config.patch(saved_calls=False):
        captures_of(uses_helper, np.arange(3.0))
    with cinductor.config.patch(cache=False):
        captures_of(uses_helper, np.arange(3.0))
    assert saves() == []


def test_who_listens_sees_a_capture(saves):
    from cinductor.diagnosis import events

    captures_of(uses_helper, np.arange(3.0))
    heard = events.Listener()
    events.listeners.append(heard)
    try:
        assert captures_of(uses_helper, np.arange(3.0))[0] == 1
    finally:
        events.listeners.remove(heard)
    assert cinductor.explain(uses_helper, np.arange(3.0)).kernels


# --- the file -------------------------------------------------------------------------------------


def test_only_so_many_calls_are_kept(saves):
    for rank in range(saved.MAX_CALLS + 2):
        captures_of(takes_any, np.ones((1,) * rank))
    [file] = saves()
    assert file.read_bytes().count(b"\n\n") == saved.MAX_CALLS - 1


def test_calls_are_no_entries(saves):
    captures_of(uses_helper, np.arange(3.0))
    before = cinductor.cache.info()["entries"]
    captures_of(views, np.arange(3.0), backend="interp")
    saved.save(cinductor.compile(helper)._cinductor_job, (), types.SimpleNamespace(saved=None), {})
    assert len(saves()) == 2 and cinductor.cache.info()["entries"] == before


def test_a_call_is_recalled_once(saves):
    """So that a guard that holds and then fails cannot cause an endless loop."""
    x = np.arange(3.0)
    captures_of(uses_helper, x)
    compiled = cinductor.compile(uses_helper)
    compiled(x)
    compiled.clear()
    compiled(x)
    assert compiled._cinductor_job.captures == 1
    cinductor.reset()
    compiled(x)
    assert compiled._cinductor_job.captures == 0


def test_a_damaged_file_is_none(saves):
    x = np.arange(3.0)
    captures_of(uses_helper, x)
    [file] = saves()
    whole = file.read_bytes()
    for damaged in (whole[:-7], whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1 :], b""):
        file.write_bytes(damaged)
        captures, got = captures_of(uses_helper, x)
        assert captures == 1
        assert_same(got, uses_helper(x))


@pytest.mark.parametrize("fn", [uses_helper, sorts])
def test_no_line_makes_a_call_of_what_is_none(fn, saves):
    """Each line is altered in turn, with a correct checksum: the call is captured again, or every guard holds."""
    x = np.arange(3.0)
    captures_of(fn, x)
    key = saves()[0].stem
    ((kind, text),) = saved.calls_under(key)
    lines = text.split("\n")
    for at in range(len(lines)):
        for other in ("i99", "N", "sx", "t1", "?", "a77", "@numpy nothing", "l0", "Cos path.call 1 0"):
            _core.write_call(key, "\n".join([kind, *lines[:at], other, *lines[at + 1 :]]))
            job = cinductor.compile(fn)._cinductor_job
            try:
                saved_text.CallReader(job.fn, (x,), saved.calls_under(key)[0][1])
            except (saved_text.NotSaved, *saved_text.UNREADABLE):
                pass


def test_names_find_what_they_say():
    writer = saved_text.LineWriter(helper)
    for value in (np.exp, np.sum, np.float64, math.sqrt, len, np, math, np.dtype("f4"), np.linalg.norm, TypeError):
        line = writer.name_of(value)
        reader = types.SimpleNamespace(fn=helper, values=[])
        assert saved_text.READERS[line[0]](reader, line[1:]) is value
    for value in (helper, Point, TABLE, object(), np.random.default_rng(), types.ModuleType("nowhere"), {}):
        writer.fn = uses_helper
        with pytest.raises(saved_text.NotSaved):
            writer.name_of(value)


def test_warnings_of_floats_are_numpys():
    def inverse(x):
        return np.log(x) / 2

    x = np.array([0.0, 1.0])
    for _ in range(2):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            cinductor.compile(inverse)(x)
        assert [str(w.message) for w in found] == ["divide by zero encountered in log"]


def test_with_heuristics_of_the_users_every_call_is_captured(saves):
    x = np.arange(5.0)
    captures_of(uses_helper, x)
    cinductor.register_heuristics("cpu", lambda name, facts: None)
    try:
        assert captures_of(uses_helper, x)[0] == 1
    finally:
        cinductor.register_heuristics("cpu", None)
    assert captures_of(uses_helper, x)[0] == 0
