"""Tests provenance: from kernels to nodes to the user's source lines."""

import json
import os
import pickle

import numpy as np
import pytest
from numpy.polynomial.polynomial import polyroots

import cinductor
from cinductor import _core
from cinductor.diagnosis import events
from cinductor.report.provenance import Provenance

X = np.arange(12.0).reshape(3, 4)


def first(x, y):
    a = np.exp(x) + 1
    b = np.sort(a, axis=1)
    s = b.sum(axis=1)
    return s / y, a * 2


def test_each_kernel_has_its_nodes_and_lines():
    report = cinductor.explain(first, X, np.ones(3))
    made = report.provenance
    line = first.__code__.co_firstlineno
    kernels = {k["name"]: k for k in made["kernels"]}
    assert made["function"] == "first" and list(kernels) == ["k0", "k1", "k2"]
    assert kernels["k1"]["call"] == "sort" and [n["op"] for n in kernels["k1"]["nodes"]] == ["extern"]
    ops = {name: [n["op"] for n in k["nodes"] if n["op"] != "const"] for name, k in kernels.items()}
    assert ops["k0"][1:] == ["add", "multiply"] and ops["k2"] == ["sum", "divide"]  # operations of line 4 are in both kernels
    lines = {name: [part["line"] - line for part in k["lines"]] for name, k in kernels.items()}
    assert lines == {"k0": [1, 4], "k1": [2], "k2": [3, 4]}
    assert kernels["k2"]["lines"][0]["source"] == "s = b.sum(axis=1)"
    assert pickle.loads(pickle.dumps(report)).provenance["kernels"][1] == kernels["k1"]


def stored_beside(x):
    y = x[:1]
    z = np.repeat(x, 2, axis=1)
    return y * 2, z


def test_a_store_of_loaded_elements_has_its_line():
    made = cinductor.explain(cinductor.compile(stored_beside, options={"fusion": False}), X).provenance
    line = stored_beside.__code__.co_firstlineno
    assert sorted(part["line"] - line for k in made["kernels"] for part in k["lines"]) == [2, 2, 3]


def test_it_is_of_one_compile():
    """Nothing of the previous compile is left."""
    cinductor.explain(first, X, np.ones(3))
    (kernel,) = cinductor.explain(lambda x: x * 3 - 1, X).provenance["kernels"]
    assert [n["op"] for n in kernel["nodes"] if n["op"] != "const"] == ["multiply", "subtract"]


def test_pieces_and_what_numpy_answers():
    def broken(x):
        y = x * 3
        print(end="")
        return y + 2

    names = [k["name"] for k in cinductor.explain(broken, np.ones(100_000)).provenance["kernels"]]
    assert names == ["a.k0", "b.k0"]
    assert cinductor.explain(lambda x: (i for i in x), X).provenance["kernels"] == []


def test_files(tmp_path, monkeypatch):
    """One file per capture. A folder that cannot be created costs one warning."""
    monkeypatch.setattr(events, "listeners", [])
    monkeypatch.setenv("CINDUCTOR_PROVENANCE", str(tmp_path / "made"))
    events.listen_for("CINDUCTOR_PROVENANCE")
    cinductor.compile(first)(X, np.ones(3))
    cinductor.compile(lambda x: x - 1)(X)
    files = sorted((tmp_path / "made").iterdir())
    assert [f.name.partition("-")[0] for f in files] == ["first", "lambda"]
    made = json.loads(files[0].read_text())
    assert [k["name"] for k in made["kernels"]] == ["k0", "k1", "k2"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CINDUCTOR_PROVENANCE", str(tmp_path / "file" / "x"))
    events.listeners.clear()
    events.listen_for("CINDUCTOR_PROVENANCE")
    with pytest.warns(cinductor.CinductorWarning, match="CINDUCTOR_PROVENANCE has no effect from here on"):
        cinductor.compile(lambda x: x - 2)(X)
    assert events.listeners == []


def test_where_the_files_are():
    for value, folder in (("1", os.path.join(_core.cache_directory(), "provenance")), ("/some/where", "/some/where")):
        assert Provenance(value, None).folder == folder


def test_lines_of_a_compiled_function_of_numpy_are_its_own():
    """NumPy's lines are named if the compiled function is NumPy's, not those of its caller."""
    report = cinductor.explain(polyroots, np.array([1.0, 2.0, 1.0]))
    assert {b.file.startswith(os.path.dirname(np.__file__)) for b in report.breaks} == {True}
    inner = cinductor.explain(lambda x: polyroots(x) + 1, np.array([1.0, 2.0, 1.0]))
    assert {b.file for b in inner.breaks} == {__file__}
