"""python -m cinductor, as its users call it."""

import subprocess
import sys
from pathlib import Path

import pytest

from cinductor import _core
from cinductor.__main__ import main

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
    for name, _ in _core.own_functions():
        assert f"{name} (" in done.stdout


def test_doctor_of_a_machine_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "not found: no-such-compiler ($CC)" in said


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
    assert "times as fast" in said and "the same bits" in said and "NOT" not in said


def test_cache(capsys):
    assert main(["cache", "info"]) == 0
    said = capsys.readouterr().out
    assert "directory" in said and "entries" in said


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
