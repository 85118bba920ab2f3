"""Tests the command line: python -m cinductor."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from stencils import WHY_NO_STENCILS

import cinductor
from cinductor import _core
from cinductor.__main__ import main
from cinductor.diagnosis import benching
from cinductor.report.reasons import REASONS

FILE = """
import numpy as np

def total(x=np.arange(10.0)):
    return (x * 2).sum()

def scaled(x, k):
    return np.exp(x) * k

def inputs():
    return np.linspace(0, 1, 50), 3.0

if __name__ == "__main__":
    raise SystemExit("it is not run as a program")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(FILE)
    return str(path)


def test_doctor():
    done = subprocess.run([sys.executable, "-m", "cinductor", "doctor"], capture_output=True, text=True, check=True)
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if not line.startswith(" ")}
    assert {"versions", "processor", "compiler", "cache", "c", "interp", "cuda"} <= set(rows)
    assert "can be used" in rows["c"] and done.stdout.rstrip().endswith("right")
    for name, char, way, _ in _core.functions():
        (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [name] or line.split()[1:2] == [name]]
        assert f"{np.dtype(char).name} {'OWN' if way == 'own' else way}" in line


def test_doctor_proves_bits(capsys):
    assert main(["doctor", "--prove-bits", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(way == "vectors" for _, _, way, _ in _core.functions())
    assert all("no blocks differ" in line for line in lines)


def test_doctor_of_a_machine_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert main(["doctor"]) == 0 and "compiler    /" in capsys.readouterr().out  # falls back to another compiler
    monkeypatch.setenv("PATH", "/nonexistent")
    cinductor.reset()
    said = subprocess.run([sys.executable, "-m", "cinductor", "doctor"], capture_output=True, text=True).stdout
    assert "a kernel    the C backend did not run:" in said and "no C compiler was found" in said
    for _ in range(2):  # the warning is given once in a process
        assert main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "not found: no-such-compiler, cc, gcc, clang ($CC first)" in said.out
    assert "the C backend does not run here" in said.err


def test_explain(file, capsys):
    assert main(["explain", f"{file}:total"]) == 0
    assert "compiled whole" in capsys.readouterr().out
    assert main(["explain", f"{file}:scaled", "--make", "inputs", "--level", "graph"]) == 0
    assert "exp" in capsys.readouterr().out
    page = Path(file).parent / "report.html"
    assert main(["explain", f"{file}:scaled", "--make", "inputs", "--save", str(page)]) == 0
    assert "report.html is written" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")


def test_bench(file, capsys):
    assert main(["bench", f"{file}:scaled", "--make", "inputs", "--seconds", "0.01"]) == 0
    said = capsys.readouterr().out
    assert "times as fast; results have the same bits" in said and said.count("calls, first call") == 2


def test_bench_compares(tmp_path, capsys, monkeypatch):
    """Other compilers that are absent have a line; differences are in units of the last place."""
    (tmp_path / "model.py").write_text("import numpy as np\ndef f(x): return np.tanh(x)\ndef make(): return np.linspace(0, 3, 500)\n")
    monkeypatch.setattr(benching, "LEAST", 2)
    words = ["bench", f"{tmp_path}/model.py:f", "--make", "make", "--seconds", "0", "--compare", "numba"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "numba  " in said and ("same bits" in said or "the largest difference is" in said)
    assert main([*words[:-1], "cython"]) == 1
    assert main([*words[:-2], "--options", '{"numerics": "exact"}']) == 0
    assert "same bits" in capsys.readouterr().out
    for got, want, words in (
        (1.0, 1.0, ""),
        (np.nextafter(1.0, 2), 1.0, "1 ULP"),
        ([np.nan], [np.nan], ""),
        (np.nan, 1.0, "inf ULP"),
        (np.arange(3), np.arange(3) + 1, "other values"),
        (np.ones(2, "f4"), np.ones(2), "float32[2] instead of float64[2]"),
        ((1, 2), (1,), "2 values instead of 1"),
        ({"a": np.ones(2)}, {"a": np.ones(2)}, ""),
    ):
        assert words in benching.difference(got, want) and bool(words) == bool(benching.difference(got, want))


def test_places_of_functions(tmp_path, capsys, monkeypatch):
    """Of a module, methods, and calls that raise: a report and one line, and the exit code 1."""
    source = "class M:\n    @staticmethod\n    def f(x=2.0): return x + 1\ndef boom(): raise ValueError('no')\n"
    source += "def made_one_by_one(): yield 1\nasync def awaited(): return 1\n"
    (tmp_path / "mine.py").write_text(source)
    (tmp_path / "broken.py").write_text("\ndef f(:\n")
    (tmp_path / "raising.py").write_text("def f(): return 1 / 0\n\nf()\n")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "mine:M.f"]) == 0 and main(["explain", "mine.py:M.f", "--level", "graph"]) == 0
    assert "graph" in capsys.readouterr().out
    for words, said in (
        (["explain", "mine:boom"], "mine:boom raised ValueError: no"),
        (["bench", "mine:boom"], "mine:boom raised ValueError: no"),
        (["bench", "mine.py:M.f", "--make", "boom"], "boom() raised ValueError: no"),
        (["explain", "mine.py:M.f", "--save", "/nonexistent/r.html"], "/nonexistent/r.html: No such file"),
        (["explain", "mine.py:M.f", "--options", '{"threds": 1}'], "did you mean 'threads'"),
        (["explain", "other:f"], "a file is named with its ending, as other.py:FUNC"),
        (["explain", "mine.py:M.f", "--options", "threads=1"], "--options threads=1: JSON is expected"),
        (["explain", "mine.py:M.f", "--level", "grph"], "did you mean 'graph'?"),
        (["explain", "broken.py:f"], "broken.py:2 raised SyntaxError: "),
        (["explain", "mine.py:M.f", "--make", "np.ones(3)"], "--make np.ones(3): the name of a function of mine.py is expected"),
        (["bench", "mine:made_one_by_one"], "mine:made_one_by_one is a generator, which runs uncompiled"),
        (["bench", "mine:awaited"], "mine:awaited is a coroutine, which runs uncompiled"),
        (["bench", "raising.py:f"], "raising.py:1 raised ZeroDivisionError: division by zero"),
        (["bench", "raising:f"], "raising raised ZeroDivisionError: division by zero"),
        (["explain", f"{tmp_path}:f"], "is a folder; FILE:FUNC names a file in it"),
        (["reasons", "prining"], "did you mean 'printing'?"),
    ):
        assert main(words) == 1
        lines = capsys.readouterr().err.strip().splitlines()
        assert lines[-1].startswith("cinductor: ") and said in lines[-1] and not any("Traceback" in line for line in lines)


def test_words_of_the_command_line(capsys):
    """Wrong words are refused by one line. It names the command that shows the right ones."""
    for words, said in (
        (["bench", "mine.py:f", "--seconds", "-1"], "argument --seconds: '-1' is not a number that is 0 or more"),
        (["cache", "clear", "--older", "1d"], "argument --older: '1d' is not a number that is 0 or more"),
        (["cache"], "the following arguments are required: WHAT"),
        (["cache", "inf"], "argument WHAT: invalid choice: 'inf'"),
        (["bisekt"], "argument COMMAND: invalid choice: 'bisekt'"),
        (["bench", "mine.py:f", "--secnds", "1"], "unrecognized arguments: --secnds 1; `python -m cinductor bench "),
        (["doctor", "--prove-bits", "many"], "argument --prove-bits: invalid int value: 'many'"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        (line,) = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2 and line.startswith(f"cinductor: {said}") and " --help` shows what is allowed" in line


def test_warnings_of_a_command_have_no_line_of_pythons(file):
    """Where no frame is the user's, a warning is its text alone."""
    words = [sys.executable, "-m", "cinductor", "explain", f"{file}:total"]
    environment = {**os.environ, "PATH": "/nonexistent", "CINDUCTOR_CACHE": "0"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={k: v for k, v in environment.items() if k != "CC"})
    (line,) = done.stderr.splitlines()
    how = "run on kernels of stencils, which are slower" if WHY_NO_STENCILS is None else "are run by the interpreter backend, without a speed-up"
    assert line.startswith(f"cinductor: total and later functions {how}: no C compiler")


def test_each_reason_has_a_page(capsys):
    assert main(["reasons"]) == 0
    names = capsys.readouterr().out.split()
    for row in REASONS:
        assert row.name in names and main(["reasons", row.name]) == 0 and "What helps" in capsys.readouterr().out
        assert row.page.endswith(row.name)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"cinductor {cinductor.__version__}\n"


def test_a_cache_is_taken_elsewhere(tmp_path, capsys, monkeypatch):
    """A saved cache is loaded in another folder and used without a compiler. A file that is not a cache is refused.
    """
    before = cinductor.cache.info()["directory"]
    (tmp_path / "wrong.zip").write_bytes(b"nothing")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("../" + 64 * "0" + ".so", "x")
        archive.writestr(64 * "1" + ".so", "x")
    try:
        cinductor.cache.set_directory(tmp_path / "one")
        np.testing.assert_array_equal(cinductor.compile(lambda x: x * 4 + 2)(np.ones(3)), 6)
        assert main(["cache", "save", str(tmp_path / "all.zip")]) == 0
        cinductor.cache.set_directory(tmp_path / "two")
        for name in ("wrong", "other", "none"):
            assert main(["cache", "load", str(tmp_path / f"{name}.zip")]) == 1
        assert main(["cache", "load"]) == 1
        assert not [file for file in os.listdir(tmp_path / "two") if file.endswith(".so")]
        assert main(["cache", "load", str(tmp_path / "all.zip")]) == 0
        assert main(["cache", "load", str(tmp_path / "all.zip")]) == 0
        said = capsys.readouterr()
        assert said.out.splitlines()[1:] == [said.out.split()[0] + " entries are new", "0 entries are new"]
        assert "is no cache that `save` has written" in said.err and "'../000" in said.err and "is missing" in said.err
        monkeypatch.setenv("CC", "none-of-them")
        monkeypatch.setenv("PATH", "")
        fast = cinductor.compile(lambda x: x * 4 + 2)
        np.testing.assert_array_equal(fast(np.ones(3)), 6)
        assert fast.specializations[0].program.backend == "cpu:c"
    finally:
        cinductor.cache.set_directory(before or None)


def test_what_is_missing_is_named(tmp_path, capsys):
    (tmp_path / "model.py").write_text("def loss(x, w=1, *rest): return x\ndef make(): return 1.0, 2.0\n")
    place = f"{tmp_path}/model.py"
    for words, said in (
        ([f"{place}:loss"], "loss needs arguments (x): --make NAME names a function of"),
        ([f"{place}:los"], "has no function los; did you mean 'loss'?"),
        ([f"{place}:loss", "--make", "make", "--level", "kernel"], "a report has no kernel; did you mean 'kernels'?"),
    ):
        assert main(["explain", *words]) == 1
        assert said in capsys.readouterr().err
    graph = 'graph f(in0: f64[3]) {\n  %0: bool[] = const false\n  check(%0) "nothing is true"\n  return in0\n}'
    (tmp_path / "graph.txt").write_text(graph)
    assert main(["run", str(tmp_path / "graph.txt")]) == 1
    assert "inputs, which are made up" in capsys.readouterr().err


def test_cache(capsys):
    assert main(["cache", "info"]) == 0
    said = capsys.readouterr().out
    assert "folder " in said and "size " in said and "kernels " in said


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["explain", "model"], "FILE:FUNC is expected"),
        (["explain", "no/such/file.py:f"], "No such file"),
        (["explain", "FILE:nothing"], "has no function nothing"),
        (["bench", "FILE:scaled", "--make", "none"], "has no function none"),
        (["explain", "FILE:total", "--level", "graf"], "a report has no graf"),
    ],
)
def test_what_cannot_be_had(file, arguments, words, capsys):
    assert main([a.replace("FILE", file) for a in arguments]) == 1
    assert words in capsys.readouterr().err


def test_help(capsys):
    for arguments in (["--help"], ["explain", "--help"], ["doctor", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    assert "doctor" in capsys.readouterr().out


def test_a_damaged_bundle_adds_nothing(tmp_path):
    """Every eighth byte, changed: an error and no entry, or all of the entries as they were."""
    before = cinductor.cache.info()["directory"]
    folder = tmp_path / "one"
    try:
        cinductor.cache.set_directory(folder)
        cinductor.compile(lambda x: x * 5 + 2)(np.ones(3))
        cinductor.cache.save(tmp_path / "all.zip")
        saved = {path.name: path.read_bytes() for path in folder.iterdir() if "." in path.name}
        whole = (tmp_path / "all.zip").read_bytes()
        refused = 0
        for at in range(0, len(whole), 8):
            (tmp_path / "bad.zip").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            target = tmp_path / f"to{at}"
            cinductor.cache.set_directory(target)
            try:
                cinductor.cache.load(tmp_path / "bad.zip")
            except ValueError as error:
                refused += 1
                assert "is no cache" in str(error) and not [p for p in target.iterdir() if p.suffix], at
            else:
                found = {path.name: path.read_bytes() for path in target.iterdir()}
                assert all(saved[name] == data for name, data in found.items() if name in saved), at
        assert refused > 0.8 * len(range(0, len(whole), 8))
        (tmp_path / "short.zip").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match="is no cache"):
            cinductor.cache.load(tmp_path / "short.zip")
    finally:
        cinductor.cache.set_directory(before or None)
