"""Tests logs, traces and profiles: what is reported, that it is reported once, and not at all without a listener."""

import contextlib
import io
import json
import logging
import os
import re
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cinductor
from cinductor.__main__ import main
from cinductor.diagnosis import events, logs, progress, rerun
from cinductor.diagnosis.profiling import event_of
from cinductor.diagnosis.tracing import Trace

V = np.linspace(0, 1, 60)


@pytest.fixture(autouse=True)
def off():
    yield
    cinductor.set_logs()
    assert not events.listeners


def compiled(fn, **settings):
    return cinductor.compile(fn, backend="interp", **settings)


def broken(x):
    y = x * 2
    print(end="")
    return y + 1


def texts(caplog, category):
    return [r.getMessage() for r in caplog.records if r.name == f"cinductor.{category}"]


# --- logs -----------------------------------------------------------------------------------------


def test_a_break_is_a_log_of_one_line_and_said_once(caplog):
    with caplog.at_level(logging.INFO):
        fast = compiled(broken)
        for _ in range(3):
            fast(V)
    line = broken.__code__.co_firstlineno + 2
    (text,) = [t for t in texts(caplog, "breaks") if t.startswith("broken breaks")]
    assert text == f"broken breaks at {__file__}:{line}: calls print -> return the value and print it outside"


@pytest.mark.parametrize(
    "value, words",
    [
        (np.ma.array(V, mask=V > 0.5), "MaskedArray, which is a subclass of ndarray"),
        (V.astype(np.longdouble), "an array of dtype"),
        (V.view(type("Own", (np.ndarray,), {})), "a subclass of ndarray"),
    ],
)
def test_what_goes_to_numpy_is_a_log(caplog, value, words):
    with caplog.at_level(logging.INFO):
        fast = compiled(lambda x: x + 1)
        for size in (60, 60, 50, 40):
            fast(value[:size])
    (text,) = texts(caplog, "breaks")
    assert "runs in NumPy: an argument is" in text and words in text and "-> give plain arrays" in text


def test_without_somebody_who_reads_it_nothing_is_said(caplog, capfd):
    compiled(broken)(V)
    assert not caplog.records and capfd.readouterr() == ("", "")


def test_categories_are_switched_on_one_by_one(caplog):
    def two(x):
        return np.exp(x) / np.exp(x).sum()

    for names, expected in (
        (("guards",), {"guards"}),
        (("fusion, cache",), {"fusion", "cache"}),
        (("perf", "recompiles"), {"perf", "recompiles"}),
        (("all",), {"guards", "fusion", "cache", "perf", "recompiles"}),
    ):
        caplog.clear()
        cinductor.set_logs(*names)
        fast = compiled(two, dynamic=False)
        fast(V)
        fast(V[:9])
        assert {r.name.removeprefix("cinductor.") for r in caplog.records} == expected
    assert any("x.shape[0] was 60" in t for t in texts(caplog, "recompiles"))
    assert any("loop nests" in t for t in texts(caplog, "fusion"))
    assert any(t.endswith("two: x is an array of float64, shape (60,), contiguous, writable") for t in texts(caplog, "guards"))
    assert all("ms for the call (" in t for t in texts(caplog, "perf"))
    cinductor.set_logs()
    caplog.clear()
    compiled(two)(V)
    assert not caplog.records


def test_wrong_names():
    with pytest.raises(ValueError, match="log is 'brakes'; allowed: .*; did you mean 'breaks'"):
        cinductor.set_logs("brakes")
    with pytest.raises(TypeError, match="set_logs"):
        cinductor.set_logs(3)


PROGRAM = """
import numpy as np, cinductor
f = cinductor.compile(lambda x: x * 2, backend="interp", dynamic=False)
f(np.ones(3)); f(np.ones(4)); f(np.ones(4))
"""


def run(**environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_environment_switches_logs_on():
    _, said = run(CINDUCTOR_LOGS="recompiles,perf")
    lines = said.splitlines()
    assert [line.split(":")[0] for line in lines] == ["cinductor.perf", "cinductor.recompiles", "cinductor.perf"]
    assert "recompiles: x.shape[0] was 3" in lines[1]
    with pytest.warns(cinductor.CinductorWarning, match="CINDUCTOR_LOGS has no effect: .*did you mean 'recompiles'"):
        logs.from_environment("recompile")


# --- traces ---------------------------------------------------------------------------------------


def test_a_trace_has_every_artefact_and_an_index(tmp_path):
    folder = tmp_path / "a" / "trace"
    run(CINDUCTOR_TRACE=str(folder))
    names = sorted(os.listdir(folder))
    assert names == ["0000-lambda", "0001-lambda", "index.html"]
    files = set(os.listdir(folder / "0000-lambda"))
    wanted = "graph.txt loops.txt kernels.txt procs.txt wrapper.py guards.txt report.html report.json report.txt"
    assert set(wanted.split()) <= files
    index = (folder / "index.html").read_text()
    for link in re.findall(r'href="([^"]+)"', index):
        assert (folder / link).is_file()
    assert index.count('report.html">') == 2 and index.count("compiled whole, no Python between") == 2 and "http" not in index
    assert 'href="../index.html"' in (folder / names[0] / "report.html").read_text()
    assert (folder / "0000-lambda" / "graph.txt").read_text().startswith("graph ")
    compile((folder / "0000-lambda" / "wrapper.py").read_text(), "wrapper", "exec")


def alone(script, *words):
    """The output of a trace's stand-alone script."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setattr(sys, "argv", [str(script), *words])
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            assert end.code == 0
    return said.getvalue().splitlines()


def softened(x, n):
    y = np.sqrt(x) * n
    return y / y.sum(axis=1, keepdims=True), (x @ x.T).max(), np.cumsum(x, axis=0)


def sorted_rows(x, n):
    return np.sort(x, axis=0) * n, np.argsort(x[0], kind="stable"), np.linalg.norm(x)


def scaled(x, n):
    return x * n + 1, x.max()


@pytest.mark.parametrize(("fn", "dynamic"), [(softened, None), (scaled, True), (sorted_rows, None)])
def test_each_artefact_of_a_trace_runs_alone_and_computes_what_numpy_does(tmp_path, fn, dynamic):
    events.listeners.append(trace := Trace(str(tmp_path)))
    try:
        cinductor.compile(fn, dynamic=dynamic)(np.ones((30, 20)), 2.5)
    finally:
        events.listeners.remove(trace)
    [folder] = [path for path in tmp_path.iterdir() if path.is_dir()]
    inputs = rerun.inputs_of((folder / "graph.txt").read_text(), 0)
    wanted = rerun.lines_for(fn(*inputs))
    assert dynamic or "float64 (30, 20)" in wanted[0]
    assert (folder / "calls.txt").is_file() == (fn is sorted_rows)
    ways = {"run.py": [[], ["--backend", "interp"]], "wrapper.py": [[]]}
    for name in ("loops.txt", "kernels.txt", "procs.txt", "lines.txt", "source.c"):
        assert f"--given {name}" in (tmp_path / "index.html").read_text()
        ways["run.py"].append(["--given", str(folder / name)])
    for script, calls in ways.items():
        for words in calls:
            said = alone(folder / script, *words)
            head = said[: -len(wanted)]
            assert said[len(head) :] == wanted, (script, words, head)
            assert ("interp" in "".join(head)) == any(w in str(words) for w in ("interp", "kernels", "procs"))


def test_a_changed_artefact_is_what_runs(tmp_path):
    """Each level is read from its edited file instead of being lowered from the graph. A file for another graph is
    refused.
    """
    events.listeners.append(trace := Trace(str(tmp_path)))
    try:
        cinductor.compile(lambda x: x * 3.0 + 1)(np.ones(5))
        cinductor.compile(lambda x: x * 3.0 + 1)(np.ones(7))
    finally:
        events.listeners.remove(trace)
    folder, other = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    [x] = rerun.inputs_of((folder / "graph.txt").read_text(), 0)
    for name in ("loops.txt", "kernels.txt", "procs.txt", "source.c"):
        text = (folder / name).read_text()
        three, five = ("0x1.8p+1", "0x1.4p+2") if name == "source.c" else ("const 3.0", "const 5.0")
        assert three in text
        (folder / name).write_text(text.replace(three, five))
        assert alone(folder / "run.py", "--given", str(folder / name))[1:] == rerun.lines_for([x * 5.0 + 1]), name
    for name in ("loops.txt", "kernels.txt", "lines.txt"):
        assert main(["run", str(folder / "graph.txt"), "--given", str(other / name)]) == 1
    assert main(["run", str(folder / "graph.txt"), "--given", str(folder / "guards.txt")]) == 1


def test_a_program_of_a_trace_is_compiled_without_python(tmp_path):
    events.listeners.append(trace := Trace(str(tmp_path)))
    try:
        fn = cinductor.compile(lambda x, n: (x * n + 1, x.sum(axis=0)), options={"numerics": "close"})
        fn(np.ones((6, 4))[::2, ::-1], 2.5)
    finally:
        events.listeners.remove(trace)
    [folder] = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert '"numerics": "close"' in (folder / "run.py").read_text()
    assert "2 inputs, cpu:interp" in alone(folder / "run.py", "--backend", "interp")[0]
    command = (folder / "main.c").read_text().partition("\n")[0].strip("/* ").split()
    subprocess.run([os.environ.get("CC", command[0]).split()[-1], *command[1:]], cwd=folder, check=True)
    said = subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout
    assert "status 0" in said and "result 0: size 3" in said
    # Of each step's 4 elements the last comes first: main fills the array with that index times 0.5.
    first = np.array((0.5 + 3 % 7 / 8) * 0.5 + 1).view(np.uint64)
    assert f"result 0: size 3, first eight bytes {int(first):016x}" in said


def test_internal_captures_are_not_reported(tmp_path):
    """A measurement that a report makes is not reported as a capture of the user's."""
    from cinductor.report.measure import add

    events.listeners.append(trace := Trace(str(tmp_path)))
    try:
        compiled(add)(V, V, np.empty_like(V))
        compiled(scaled)(V, 2.0)
    finally:
        events.listeners.remove(trace)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0000-scaled", "index.html"]


def test_each_program_of_a_function_that_breaks_has_its_own_files(tmp_path):
    def halves(x):
        y = np.sqrt(x) * 2
        print(end="")
        return y + 1

    events.listeners.append(trace := Trace(str(tmp_path)))
    try:
        fast = compiled(halves)
        for _ in range(2):
            fast(V)
    finally:
        events.listeners.remove(trace)
    for path in (path for path in tmp_path.iterdir() if path.is_dir()):
        scripts = [file for file in path.iterdir() if file.name.endswith("run.py")]
        graphs = [file for file in path.iterdir() if file.name.endswith("graph.txt")]
        assert len(scripts) == len(graphs)
        for script in scripts:
            assert alone(script)[0].startswith("graph ")


def test_a_file_that_is_no_graph_is_told_in_one_line(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("graph f(in0: f64[3]) {\n  %0: f64[3] = nothing(in0)\n}")
    (tmp_path / "b.txt").write_text("hello")
    for name, words in (("a.txt", "nothing"), ("b.txt", "no line begins with 'graph '"), ("c.txt", "No such file")):
        assert main(["run", str(tmp_path / name)]) == 1
        said = capsys.readouterr().err
        assert words in said and said.count("\n") <= 3


def test_inputs_of_a_graph_are_as_it_says():
    graph = "graph f(in0: f32[2,3] strides [-3, -1], in1: python i64[], in2: scalar bool[]) {\n  return in0\n}"
    x, n, flag = rerun.inputs_of(graph, 0)
    assert x.shape == (2, 3) and x.strides == (-12, -4) and x.dtype == np.float32 and type(n) is int and flag.dtype == bool


def test_a_trace_that_cannot_be_written_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    events.listeners.append(Trace(str(tmp_path / "file" / "trace")))
    with pytest.warns(cinductor.CinductorWarning, match="CINDUCTOR_TRACE has no effect from here on") as said:
        for size in (1, 2, 3):
            np.testing.assert_array_equal(compiled(lambda x: x * 2)(np.ones(size)), np.full(size, 2.0))
    assert len(said) == 1


# --- profiles -------------------------------------------------------------------------------------


def sorted_products(x, y):
    return np.sort(x * y) + 1


def test_a_profile_has_a_row_for_each_kernel(tmp_path):
    fast = compiled(sorted_products)
    expected = fast(V, V)
    with cinductor.profile() as found:
        for _ in range(4):
            np.testing.assert_array_equal(fast(V, V), expected)
    assert sorted(row.name for row in found.rows) == ["k0", "k2", "sort"]
    line = sorted_products.__code__.co_firstlineno + 1
    for row in found.rows:
        assert row.calls == 4 and row.seconds > 0 and row.function == "sorted_products"
        assert row.lines == f"test_logs.py:{line}"
    assert "sort" in str(found) and "100 %" not in str(found)
    found.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(trace) == 12 and {e["ph"] for e in trace} == {"X"}
    assert all(e["dur"] >= 0 and e["pid"] == os.getpid() for e in trace)
    count = len(found.spans)
    fast(V, V)
    assert len(found.spans) == count


def test_a_profile_sees_what_is_compiled_in_it_and_pieces():
    with cinductor.profile() as found:
        fast = compiled(broken)
        for _ in range(4):
            fast(V)
        other = compiled(lambda x: x - 1)
        other(V)
        other(V)
    assert any(row.function.endswith("<lambda>") for row in found.rows)
    assert any(name.startswith("broken") for name in found.compiling)
    assert "captured and compiled: broken" in str(found)
    with pytest.raises(RuntimeError, match="running already"), found:
        found.__enter__()


def test_profiles_end_with_an_exception():
    fast = compiled(lambda x: x * 7)
    fast(V)
    with pytest.raises(KeyError), cinductor.profile() as found:
        fast(V)
        raise KeyError
    assert len(found.spans) == 1
    fast(V)
    assert len(found.spans) == 1
    assert str(cinductor.profile()) == "no compiled function ran"


def test_events_of_the_chrome_format():
    made = event_of("k0", "f", 1000, 3500, 7)
    assert made["ts"] == 1.0 and made["dur"] == 2.5 and made["tid"] == 7


# --- listeners ------------------------------------------------------------------------------------


def test_a_listener_that_fails_does_not_reach_the_caller():
    class Failing(events.Listener):
        def end(self, event):
            raise LookupError("of the listener")

    events.listeners.append(Failing())
    with pytest.warns(cinductor.CinductorWarning, match="Failing is left out"):
        np.testing.assert_array_equal(compiled(lambda x: x * 9)(V), V * 9)
    assert not events.listeners


# --- progress -------------------------------------------------------------------------------------


class Terminal:
    """Keeps what is written."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def slow(x):
    time.sleep(0.12)
    return x + 1


def test_what_takes_long_has_a_line_that_goes(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.03)
    monkeypatch.setattr(progress, "PACE", 0.03)
    np.testing.assert_array_equal(compiled(slow)(V), V + 1)
    parts = terminal.text.split("\r")
    assert parts[1].startswith("cinductor: compiling slow, 0.") and parts[-1] == "" and not parts[-2].strip()
    assert not progress._lines and not [t for t in threading.enumerate() if t.name == "cinductor progress"]
    terminal.text = ""
    with cinductor.config.patch(progress=False):
        compiled(slow)(V)
    assert terminal.text == ""
    monkeypatch.setattr(progress, "PATIENCE", 30.0)  # a busy machine must not exceed it
    compiled(lambda x: x + 2)(V)
    assert terminal.text == ""


def test_an_interrupt_ends_the_line_too(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)

    def interrupted(x):
        time.sleep(0.05)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled(interrupted)(V)
    assert not progress._lines and "compiling" in terminal.text


# --- symbols --------------------------------------------------------------------------------------


def objects():
    return set(Path(cinductor.cache.info()["directory"]).glob("*.so"))


def test_kernels_have_symbols_with_the_functions_name_and_line():
    class Model:
        def größe(self, x):
            return np.sqrt(x * x + 4711) - 1

    for fn, word in ((softmax_of_rows, "softmax_of_rows"), (Model().größe, "gr_e"), (lambda x: x / 4713 + 2, "lambda")):
        before, line = objects(), fn.__code__.co_firstlineno
        cinductor.compile(fn, options={"symbols": True})(np.ones((3, 4)))
        names = [name for path in objects() - before for name in symbols_of(path)]
        found = [re.fullmatch(rf"{word}_(\d+)_k0", name) for name in names]
        [number] = [int(match[1]) for match in found if match]
        assert line <= number <= line + 2


def test_without_the_option_kernels_are_anybodys():
    before = objects()
    cinductor.compile(lambda x: x * 4717 - 3)(np.ones(5))
    [path] = objects() - before
    assert [name for name in symbols_of(path) if name.endswith("k0")] == ["k0"]
    cinductor.compile(lambda y: y * 4717 - 3)(np.ones(5))
    assert objects() - before == {path}


def softmax_of_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def symbols_of(path):
    """The names of a shared object's dynamic symbols: its string table has them, between zeros."""
    text = path.read_bytes().decode("latin-1")
    return [name for name in set(re.findall(r"\0([A-Za-z_]\w*)(?=\0)", text, re.ASCII)) if re.search(r"k\d+$", name)]
