"""Each option on each kind of device: it changes something, or words refuse it."""

import faulthandler
import functools
import os
import signal
import stat
import subprocess
import sys
import time
import typing
import warnings

import numpy as np
import option_effects
import pytest
from test_cuda import card  # noqa: F401

import cinductor
from cinductor import _core
from cinductor.builds import trimming
from cinductor.config import MODES, OPTIONS


def test_each_option_has_a_row():
    assert sorted([*option_effects.ROWS, *option_effects.ELSEWHERE]) == sorted(OPTIONS)


def test_the_types_of_options_are_those_of_the_table():
    types = typing.get_type_hints(cinductor.Options)
    assert list(types) == list(OPTIONS)
    for name, kind in types.items():
        option = OPTIONS[name]
        if option.type == "text":
            assert typing.get_args(kind) == tuple(option.allowed.split("|"))
        else:
            assert kind is {"bool": bool, "int": int, "float": float}.get(option.type, str)


@pytest.mark.parametrize("name", option_effects.ROWS)
def test_on_the_cpu(name):
    option_effects.check(name)


def test_on_an_emulated_gpu(card):  # noqa: F811
    assert card("options.py", CINDUCTOR_TEST_SIZE="200")[-1] == "ok options"


# --- options that show only if something is wrong -------------------------------------------------------


def test_threads(tmp_path):
    """Threads of the process after a call of one, and of all. No driver of a GPU is opened, which would start some."""
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", tmp_path / "libcuda.so.1"], check=True)
    code = """
import os, sys, numpy as np, cinductor
x = np.ones(2_000_000)
before = len(os.listdir("/proc/self/task"))
cinductor.compile(lambda x: np.sqrt(x) + 1, options={"threads": int(sys.argv[1])})(x)
assert "libcuda" not in open("/proc/self/maps").read()
print(len(os.listdir("/proc/self/task")) - before)
"""
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "CINDUCTOR_CACHE_DIR": str(tmp_path)}
    def started(threads):
        return int(subprocess.run([sys.executable, "-c", code, str(threads)], env=env, capture_output=True, text=True, check=True).stdout)

    assert started(1) == 0
    if len(os.sched_getaffinity(0)) > 1:
        assert started(0) > 0


def test_a_slow_compiler(tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nsleep 30\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("CC", str(compiler))
    compiled = cinductor.compile(lambda x: x * 17 + 3, options={"compile_timeout": 1}, fullgraph=True)
    with pytest.raises(cinductor.CompileError):
        compiled(np.ones(3))


@pytest.mark.parametrize("how", ["dies", "hangs", "raises", "lives", "is lost", "hook hangs", "hook raises"])
@pytest.mark.parametrize("backend", ["interp", None])
def test_a_compile_that_dies_is_an_error(how, backend, request):
    """This process goes on: NumPy runs the calls, with one warning."""
    here = os.getpid()
    if how == "is lost":
        request.addfinalizer(functools.partial(signal.signal, signal.SIGCHLD, signal.signal(signal.SIGCHLD, signal.SIG_IGN)))

    def fork_hook():
        while hooks == ["hook hangs"]:
            time.sleep(0.01)
        assert hooks != ["hook raises"]

    hooks = [how]
    os.register_at_fork(after_in_child=fork_hook)
    request.addfinalizer(hooks.clear)

    def change(graph):
        if os.getpid() == here:
            assert how in ("lives", "raises", "hook raises")
        if how == "raises":
            raise ValueError("wrong")
        if how in ("dies", "is lost") and os.getpid() != here:
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        while how == "hangs" and os.getpid() != here:
            time.sleep(0.01)

    with cinductor.register_pass("deadly", change, version=how):
        options = {"isolate": True, "compile_timeout": 1}
        compiled = cinductor.compile(lambda x: x * 19 + 3, backend=backend, options=options)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(3):
                assert np.array_equal(compiled(np.ones(3)), np.full(3, 22.0))
        told = [w for w in told if "compile_timeout has no effect" not in str(w.message)]  # of the interpreter
        strict = cinductor.compile(lambda x: x * 19 + 4, backend=backend, options=options, fullgraph=True)
        said = {"dies": "ended by signal 11", "raises": "wrong", "is lost": "SIGCHLD"}
        said["hangs"] = said["hook hangs"] = "not ended within compile_timeout"
        if how in ("lives", "hook raises"):
            assert not told and compiled.specializations and np.array_equal(strict(np.ones(3)), np.full(3, 23.0))
        else:
            assert not compiled.specializations and len(told) == 1 and said[how] in str(told[0].message)
            with pytest.raises(cinductor.CinductorError, match=said[how]):
                strict(np.ones(3))


def test_the_cache_has_a_limit(tmp_path, monkeypatch):
    """Entries used longest ago go first; reading one is a use."""
    before = cinductor.cache.info()["directory"]
    monkeypatch.setattr(trimming, "_seen", [0])
    monkeypatch.setattr(trimming, "EVERY", 1)
    old = [f"{number:064x}.so" for number in range(8)]
    for age, name in enumerate(old):
        (tmp_path / name).write_bytes(bytes(200_000))
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    (tmp_path / "notes.txt").write_bytes(bytes(5_000_000))
    try:
        cinductor.cache.set_directory(tmp_path)
        cinductor.compile(lambda x: x * 21 + 3, options={"cache_limit": 1})(np.ones(3))
        assert {name for name in old if (tmp_path / name).exists()} == set(old[:4]) and (tmp_path / "notes.txt").exists()
        own = [entry for entry in trimming.entries(str(tmp_path)) if entry.last_use > 1.1e9]
        assert own  # what was just compiled stays
        for entry in own:
            os.utime(entry.path, (1e9 + 1, 1e9 + 1))
        # The next process looks after its first kernel only if none has looked for a while.
        assert not trimming.is_due(str(tmp_path))
        os.utime(tmp_path / trimming.LOOKED, (1e9, 1e9))
        assert trimming.is_due(str(tmp_path))
        trimming.note_look(str(tmp_path))
        assert not trimming.is_due(str(tmp_path))
        cinductor.reset()
        code = "import sys, numpy as np, cinductor; cinductor.cache.set_directory(sys.argv[1])\n"
        code += "f = lambda x: x * 21 + 3\ncinductor.compile(f)(np.ones(3))"
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        assert any(os.stat(entry.path).st_mtime > 1.1e9 for entry in own)
        assert cinductor.cache.clear(older=1) >= 4 and cinductor.cache.trim(0) > 0
        assert not trimming.entries(str(tmp_path))
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError):
                cinductor.cache.trim(wrong)
            with pytest.raises(ValueError):
                cinductor.cache.clear(older=wrong)
    finally:
        cinductor.cache.set_directory(before or None)


def test_unknown_variables_are_named():
    code = "import warnings; warnings.simplefilter('always'); import cinductor"
    env = {**os.environ, "CINDUCTOR_THREDS": "2", "CINDUCTOR_TEST_NOTHING": "1"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True).stderr
    assert said.count("CinductorWarning") == 1
    assert "CINDUCTOR_THREDS has no effect: there is none of this name; did you mean 'CINDUCTOR_THREADS'?" in said


@pytest.mark.parametrize("name", ["nopython", "parallel", "fastmath", "static_argnums", "cache"])
def test_keywords_of_other_compilers_are_answered(name):
    with pytest.raises(TypeError, match=f"no keyword argument '{name}'; (?!did you mean)"):
        cinductor.compile(lambda x: x, **{name: True})


def test_check_passes():
    def wrong(graph):
        for node in graph.nodes:
            if node.op == "negative":
                graph.replace(node, node.args[0])

    with cinductor.register_pass("wrong", wrong):
        for checked in (False, True):
            compiled = cinductor.compile(np.negative, options={"check_passes": checked}, fullgraph=True)
            if checked:
                with pytest.raises(cinductor.PassFailed, match="'wrong' changes what the graph gives"):
                    compiled(np.ones(4))
            else:
                assert compiled(np.ones(4)).tolist() == [1.0] * 4


# --- words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [mode for mode, options in MODES.items() if "graphs" in options])
def test_a_mode_that_does_nothing_here_says_so_once(mode):
    compiled = cinductor.compile(lambda x: x + 1, mode=mode)
    with pytest.warns(cinductor.CinductorWarning) as caught:
        compiled(np.ones(3))
        compiled(np.ones((3, 3)))
    said = [str(w.message) for w in caught if "no effect" in str(w.message)]
    assert len(said) == 1 and f"option graphs (set by mode {mode!r}) has no effect here: device 'cpu' does not record" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "option graphs" in str(cinductor.explain(compiled, np.ones(4)))


def test_what_holds_for_the_process_is_no_fault_of_a_function(recwarn):
    with cinductor.config.patch(graphs=True, templates="always"):
        cinductor.compile(lambda x: x + 1)(np.ones(3))
    assert not list(recwarn)


def test_another_familys_architecture_is_refused():
    others = set(OPTIONS["arch"].allowed.split("|")) - {"", *(name for name, _ in _core.arch_levels())}
    assert others
    for name in others:
        for use in (cinductor.compile, lambda fn, options: cinductor.export(fn, np.ones(3), options=options)):
            with pytest.raises(ValueError, match=f"option 'arch' is '{name}'; allowed"):
                use(lambda x: x + 1, options={"arch": name})
