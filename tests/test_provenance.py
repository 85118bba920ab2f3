"""From kernels to nodes to the user's lines."""

import json
import pickle

import numpy as np
from test_robustness import run, warnings_in

import cinductor

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
    assert ops["k0"][1:] == ["add", "multiply"] and ops["k2"] == ["sum", "divide"]  # of line 4 each has its own
    lines = {name: [part["line"] - line for part in k["lines"]] for name, k in kernels.items()}
    assert lines == {"k0": [1, 4], "k1": [2], "k2": [3, 4]}
    assert kernels["k2"]["lines"][0]["source"] == "s = b.sum(axis=1)"
    assert pickle.loads(pickle.dumps(report)).provenance["kernels"][1] == kernels["k1"]


def test_it_is_of_one_compile():
    """Nothing of the compile before is left."""
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


WRITES = """
import warnings
import numpy as np
import cinductor

def f(x):
    return np.abs(x) * 3

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cinductor.compile(f)(np.ones(4))
    cinductor.compile(lambda x: x - 1)(np.ones(4))
for w in caught:
    print("text", w.message)
"""


def test_files(tmp_path):
    assert run(tmp_path / "cache", program=WRITES, CINDUCTOR_PROVENANCE="1") == []
    files = sorted((tmp_path / "cache" / "provenance").iterdir())
    assert [f.name.partition("-")[0] for f in files] == ["f", "lambda"]
    made = json.loads(files[0].read_text())
    assert made["kernels"][0]["lines"][0]["source"] == "return np.abs(x) * 3"
    (tmp_path / "file").write_text("")
    (text,) = warnings_in(run(tmp_path / "cache", program=WRITES, CINDUCTOR_PROVENANCE=str(tmp_path / "file" / "x")))
    assert "CINDUCTOR_PROVENANCE has no effect from here on" in text
