"""Tests each exception of the package: what raises it, its message, and its traceback."""

import json
import linecache
import os
import pickle
import shutil
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pytest
from test_robustness import script

import cinductor
import cinductor.testing
from cinductor import _core
from cinductor.errors import ERRORS

X = np.ones((3, 4), "f4")


def made(source, name="f"):
    """A function in a file, so that tracebacks can show its lines."""
    file = f"<errors {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"np": np, "cinductor": cinductor}
    exec(compile(source, file, "exec"), space)
    return space[name]


PRINTS = """
def f(x, y):
    z = x * 2
    print(z.shape)
    return z + y
"""


def unsupported():
    cinductor.compile(made(PRINTS), fullgraph=True)(X, np.ones(4))


def no_compiler():
    raise_again("CompilerNotFound", CC="/nonexistent/cc", PATH="/nonexistent")


def refused():
    raise_again("CompileError", CC=REFUSES)


def no_folder():
    inside = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    raise_again("NoFolder", inside, CINDUCTOR_CACHE_DIR="/proc/cinductor", TMPDIR="/proc")


GRAPH = "graph f(in0: f64[4]) {\n  %0: f64[4] = add(in0, in0)\n  return %0\n}\n"
# In a separate process, because a process looks for its compiler only once.
OTHER = f"""
import json, sys
import numpy as np
from cinductor import _core
try:
    _core.compile_text({GRAPH!r}, [np.ones(4)], options={{}}, backend="c")
except _core.Error as error:
    print(json.dumps([type(error).__name__, str(error), vars(error)]))
"""


# Every folder in which kernels could be built is read-only.
READ_ONLY = """
for place in /tmp /var/tmp /dev/shm; do
    if [ -d $place ]; then mount --bind $place $place && mount -o remount,ro,bind $place || exit 1; fi
done
exec "$@"
"""


def raise_again(name, inside=(), **env):
    """Raise the exception of another process. inside: a command that runs it."""
    command = [*inside, sys.executable, "-c", OTHER]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    found, text, parts = json.loads(done.stdout)
    error = getattr(cinductor, found)(text)
    error.__dict__.update(parts)
    raise error


def internal():
    _core.Tracer("f", options={}, backend="interp").as_python(1)


def device():
    cinductor.compile(lambda x: x + 1, device="cuda")(X)


def recompile():
    f = cinductor.compile(lambda x: x + 1, backend="interp")
    f(X)
    with cinductor.set_stance("fail_on_recompile"):
        f(X.astype("f8"))


def limit():
    f = cinductor.compile(
        lambda x: x + 1, backend="interp", dynamic=False, options={"recompile_limit": 1, "on_limit": "error"}
    )
    f(np.ones(2)), f(np.ones(3))


def violation():
    x = np.ones(5)
    cinductor.mark_dynamic(x, 0, max=8)
    f = cinductor.compile(lambda x: x + 1, backend="interp")
    f(x), f(np.ones(20))


def backend():
    name = "fails for test_errors"
    from cinductor.builds.exporting import BACKENDS

    if name not in BACKENDS:
        cinductor.register_wrapper_backend(name, lambda program: 1 // 0)
    cinductor.export(lambda x: x + 1, X, form=name)


def accuracy():
    cinductor.testing.assert_same(np.ones(3), np.zeros(3))


RAISED = {
    "Unsupported": unsupported,
    "CompilerNotFound": no_compiler,
    "CompileError": refused,
    "NoFolder": no_folder,
    "DeviceError": device,
    "InternalError": internal,
    "RecompileError": recompile,
    "RecompileLimitExceeded": limit,
    "ConstraintViolation": violation,
    "BackendCompilerFailed": backend,
    "AccuracyError": accuracy,
}
# Classes that are never raised directly; an index that no graph has (tests/core/test_ir.c); tested in test_watch.py; a
# pass that fails.
ELSEWHERE = {"Error", "CinductorError", "LoweringError", "PromiseBroken", "PassFailed"}
BEFORE = {  # the built-in classes that such errors have always been
    "RecompileError": RuntimeError,
    "RecompileLimitExceeded": RuntimeError,
    "ConstraintViolation": ValueError,
    "AccuracyError": AssertionError,
}


@pytest.fixture(autouse=True)
def compilers(tmp_path, monkeypatch):
    global REFUSES
    REFUSES = script(tmp_path / "cc", "echo 'kernel.c:1: no'\nexit 3\n")
    monkeypatch.setenv("CINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))


def test_every_class_is_raised_somewhere():
    assert set(RAISED) | ELSEWHERE == set(ERRORS)
    for name in ERRORS:
        cls = getattr(cinductor, name)
        assert name in cinductor.__all__ and issubclass(cls, cinductor.Error) and cls.__module__ == "cinductor"


@pytest.mark.parametrize("name", RAISED)
def test_what_is_raised(name):
    if name == "DeviceError" and cinductor.list_backends()["cuda"] is None:
        pytest.skip("there is a GPU")
    with pytest.raises(getattr(cinductor, name)) as caught:
        RAISED[name]()
    assert type(caught.value) is getattr(cinductor, name)
    assert isinstance(caught.value, BEFORE.get(name, cinductor.Error))
    assert caught.value.__context__ is None or name == "BackendCompilerFailed"


def test_a_message_has_what_where_with_which_arguments_and_what_to_do():
    with pytest.raises(cinductor.Unsupported) as caught:
        unsupported()
    what, line, arguments, advice = str(caught.value).splitlines()
    assert "calls print" in what and what.startswith("<errors") and ">:4:" in what
    assert line == "    print(z.shape)"
    assert arguments == "called with x: float32[3, 4], y: float64[4]"
    assert "explain" in advice


def test_a_traceback_has_the_users_frames_alone():
    for name in ("Unsupported", "RecompileLimitExceeded", "ConstraintViolation"):
        with pytest.raises(cinductor.Error) as caught:
            RAISED[name]()
        text = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
        assert os.sep + "cinductor" + os.sep + "capture" not in text and "During handling" not in text


FAILS = """
import sys, warnings
import numpy as np, cinductor

def breaks(graph):
    raise KeyError("a pass")

f, x = (lambda x: x * 2.125 + 3), np.arange(4.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for adds in (False, True):
        if adds:
            cinductor.register_pass("breaks_always", breaks)
        try:
            assert np.array_equal(cinductor.compile(f, fullgraph=len(sys.argv) > 1)(x), f(x))
            print("answered")
        except cinductor.Error as error:
            print(type(error).__name__)
print(len(caught))
"""


def test_a_compile_that_fails_is_an_error_of_fullgraph(tmp_path):
    """A failing compiler or pass raises with fullgraph=True. Otherwise the interpreter or NumPy runs, with a warning.
    """
    compiler = script(tmp_path / "cc", "exit 1\n")
    (tmp_path / "program.py").write_text(FAILS)
    for more, want in (([], "answered answered 2"), (["fullgraph"], "CompileError PassFailed 0")):
        command = [sys.executable, str(tmp_path / "program.py"), *more]
        env = {**os.environ, "CC": compiler, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stdout.split() == want.split(), done.stderr


def test_reasons_within_are_folded_away():
    with pytest.raises(cinductor.Unsupported) as caught:
        cinductor.compile(lambda x: x.tobytes(), fullgraph=True)(X)
    text = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
    assert "NotCaptured" not in text and "ndarray.tobytes" in text


def test_a_functions_own_exception_keeps_its_context():
    def fn(x):
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904

    with pytest.raises(ValueError) as caught:
        cinductor.compile(fn, backend="interp")(X)
    assert type(caught.value.__context__) is KeyError and caught.value.args == ("second",)


def test_what_a_nested_call_says_is_said_once():
    inner = cinductor.compile(made(PRINTS), fullgraph=True)
    with pytest.raises(cinductor.Unsupported) as caught:
        cinductor.compile(lambda x: inner(x, x) + 1, fullgraph=True)(X)
    assert str(caught.value).count("called with") == 1


def test_a_compiler_that_refuses_is_shown_with_its_command_and_the_source():
    with pytest.raises(cinductor.CompileError) as caught:
        refused()
    error = caught.value
    assert error.cmd.startswith(REFUSES) and error.stderr.strip() == "kernel.c:1: no"
    with open(error.source, encoding="utf-8") as file:
        assert "in0" in file.read()
    assert str(error).splitlines()[:2] == ["the C compiler failed (exit code 3): kernel.c:1: no", f"source: {error.source}"]
    assert error.cmd not in str(error)


def test_a_wrapper_backend_that_fails_names_itself():
    with pytest.raises(cinductor.BackendCompilerFailed) as caught:
        backend()
    error = caught.value
    assert error.backend in str(error) and type(error.inner) is ZeroDivisionError is type(error.__cause__)
    assert type(pickle.loads(pickle.dumps(error)).inner) is ZeroDivisionError


def test_warnings_are_the_packages_own(tmp_path):
    assert issubclass(cinductor.CacheWarning, cinductor.CinductorWarning)
    (tmp_path / "cache").mkdir(mode=0o777)
    (tmp_path / "cache").chmod(0o777)
    code = (
        "import warnings, numpy as np, cinductor\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    cinductor.compile(np.sin)(np.ones(3))\n"
        "print([w.category.__name__ for w in caught])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "['CacheWarning']\n", done.stdout + done.stderr


def test_a_filter_for_the_packages_warnings_has_them_recorded():
    """Of a function that was compiled before: other recordings are of the user's warnings, and do not have them."""

    def wrong(graph):
        raise ValueError("wrong")

    found = []
    for category in (Warning, RuntimeWarning, cinductor.CinductorWarning):
        compiled = cinductor.compile(lambda x: x * 3 + 1, backend="interp")
        compiled._cinductor_job.was_recorded = False  # pytest records
        with cinductor.register_pass("wrong", wrong), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", category)
            compiled(X)
        found.append([w.category for w in told])
    assert found == [[], [], [cinductor.CinductorWarning]]
