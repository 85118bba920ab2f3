"""Tests the thresholds of the compiler (csrc/analysis/choices.def), which a user may override."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import cinductor
from cinductor import compile

X = np.random.default_rng(0).random((8, 4096))


def spread(x):
    return (x.mean(),)


def kernels(**ways):
    return cinductor.explain(compile(spread, backend="interp", **ways), X).kernels


def test_every_choice_has_values_and_a_sentence():
    choices = cinductor.list_choices()
    assert {"few_points", "l1_lines", "short_sum"} <= {choice.name for choice in choices}
    for choice in choices:
        assert choice.cpu > 0 and choice.gpu > 0 and choice.doc.endswith("."), choice


def test_a_choice_changes_kernels_and_no_bit():
    plain, split = kernels(), kernels(options={"choices": "split_elements=256, least_subtree=64"})
    assert plain != split and "split into" in split
    for backend in ("interp", "c"):
        few = compile(
            spread, backend=backend, options={"choices": "split_elements=256, least_subtree=64"}
        )
        for got, expected in zip(few(X), spread(X)):
            np.testing.assert_array_equal(got, expected)


def test_nests_with_many_operations_are_kernels_of_their_own():
    def both(x):
        return np.sin(x) + x, np.maximum(x, 1) * x

    def launches(dtype, most):
        compiled = compile(both, backend="interp", options={"choices": f"kernel_operations={most}"})
        return len(re.findall(r"^  k\d+: ", cinductor.explain(compiled, X.astype(dtype)).kernels, re.M))

    assert [launches("f4", 4), launches("f4", 99), launches("f2", 99)] == [2, 1, 2]  # a half is rounded


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_small_pieces_change_no_bit(backend):
    """Each number of elements or operations at a time, at its least and at an odd one."""
    x = np.random.default_rng(1).standard_normal((37, 4099))

    def many(x):
        frame = np.zeros((40, 40))
        for _ in range(3):
            frame[1:-1, 1:-1] = frame[:-2, 1:-1] + x[:38, :38].sum() + frame[1:-1, 2:]
        y = np.exp(x[:3]) * 2 + np.tanh(x[:3])
        return x.sum(0), x.sum(1), x.sum((0, 1)), x.mean(), x[x > 1], np.cumsum(x, 0), frame, y

    for n in (1, 3):
        names = ["far_elements", "prefetch_bytes", "strip_bytes", "least_strip", "unrolled_leaves", "kept_leaves"]
        names += ["border_width", "repeated_ops", "packed_bytes", "repeated_scalars", "gathered_ratio", "composed_ops", "composed_distance", "kernel_operations", "narrow_operations"]
        choices = ", ".join([f"{name}={n}" for name in names] + [f"turned_jam={n // 2 + 1}, margin_jam={n // 2 + 1}"])
        compiled = compile(lambda x: many(x), backend=backend, options={"choices": choices, "numerics": "exact"})
        for got, want in zip(compiled(x), many(x), strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize(
    "choices",
    [
        "tile_side=32, tile_steps=32, row_segment=8, segment_row=16, few_threads=256, jammed_rows=2, jammed_blocks=1",
        "tile_side=1, tile_steps=1, fold_points=8, sector_points=2, column_rows=2, chunk_threads=64, most_threads=128",
        "scan_neighbours=16, scan_groups=4, long_scan=8, unrolled_rounds=1, chunk_blocks=1, long_fold=64, chunk_rounds=1",
    ],
)
def test_choices_of_a_gpu(choices):
    """The kernels of a GPU differ, and each has one writer per element between barriers and the right result."""
    x, a, b = X[:, :600].copy(), X[:, :70].astype(np.float32), X[:, 70:140].T.astype(np.float32).copy()

    def many(x, a, b):
        return x.sum(1), x.sum(0), np.cumsum(x.ravel()), x.T * 2 + 1, (x > 2).any(), a @ b + 1

    fast = {"verify": True, "offload": "always", "templates": "always", "numerics": "fast"}
    ways = {"device": "cuda", "backend": "interp"}
    other = compile(many, options={**fast, "choices": choices}, **ways)
    for got, expected in zip(other(x, a, b), many(x, a, b)):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    plain = compile(many, options=fast, **ways)
    assert cinductor.explain(plain, x, a, b).procs != cinductor.explain(other, x, a, b).procs


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("few_point=3", ValueError, "did you mean 'few_points'"),
        ("few_points", ValueError, "an int of at least 1"),
        ("few_points=0", ValueError, "an int of at least 1"),
        ("few_points=1e3", ValueError, "an int of at least 1"),
        ("few_points=-4", ValueError, "an int of at least 1"),
        (f"few_points={10**15}", ValueError, "an int of at least 1"),
        (16, TypeError, "a string like"),
    ],
)
def test_what_is_no_choice_is_refused(value, error, words):
    with pytest.raises(error, match=words):
        compile(spread, options={"choices": value})


@pytest.mark.parametrize("value", ["tile_side=48", "tile_side=128", "unrolled_rounds=65"])
def test_a_value_that_kernels_cannot_have_is_refused(value):
    with pytest.raises(ValueError, match=f"has '{value}'; allowed: a (power of two|number) up to 64"):
        compile(spread, backend="interp", options={"choices": value})(X)


def test_the_environment_is_checked(monkeypatch):
    monkeypatch.setenv("CINDUCTOR_CHOICES", "few_points=nine")
    with pytest.warns(cinductor.CinductorWarning, match="CINDUCTOR_CHOICES has no effect"):
        cinductor.config.reload()
    monkeypatch.undo()
    cinductor.config.reload()


def test_the_environment_holds_from_the_import_on():
    """Environment variables of all options and choices are read at import."""
    values = {
        o.environment: str(o.default)
        for o in cinductor.list_options()
        if o.environment and str(o.default)
    }
    values["CINDUCTOR_CHOICES"] = "few_points=9"
    say = "import cinductor; print(cinductor.config.choices)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", say],
        env={**os.environ, **values},
        capture_output=True,
        text=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("few_points=9", "")


# --- heuristics -----------------------------------------------------------------------------------


@pytest.fixture
def is_undecided():
    yield
    cinductor.register_heuristics("cpu", None)


def test_heuristics_decide_by_facts(is_undecided):
    """A heuristic gets facts about the captured program. An explicit option overrides it, results keep their bits,
    and existing programs are unchanged.
    """
    told = []

    def decide(name, facts):
        told.append((name, facts))
        return (
            {"split_elements": 256, "least_subtree": 64}.get(name)
            if facts.arrays[0][0][1] > 1000
            else None
        )

    plain = kernels()
    before = compile(spread)
    before(X)
    cinductor.register_heuristics("cpu", decide)
    split = kernels()
    assert plain != split and "split into" in split
    assert {name for name, _ in told} == {choice.name for choice in cinductor.list_choices()}
    facts = told[0][1]
    assert facts.device == cinductor.Device("cpu") and facts.function == "spread"
    assert facts.arrays == (((8, 4096), np.dtype("f8")),)
    told.clear()
    for got, expected in zip(compile(spread)(X), spread(X)):
        np.testing.assert_array_equal(got, expected)
    before(X)
    assert len(told) == len(cinductor.list_choices())  # of the new program only
    assert kernels(options={"choices": "split_elements=65536, least_subtree=16384"}) == plain
    cinductor.register_heuristics("cpu", None)
    assert kernels() == plain


@pytest.mark.parametrize("answer", [0, -3, 2.5, "8", True])
def test_what_is_no_value_of_a_heuristic(answer, is_undecided):
    cinductor.register_heuristics(
        "cpu", lambda name, facts: answer if name == "l1_lines" else None
    )
    with pytest.raises(
        ValueError, match=f"heuristics of device 'cpu' give {answer!r} for 'l1_lines'; allowed"
    ):
        compile(spread)(X)
    cinductor.register_heuristics("cpu", None)
    assert compile(spread)(X) == spread(X)


def test_a_heuristic_that_raises(is_undecided):
    def decide(name, facts):
        raise KeyError("my own mistake")

    cinductor.register_heuristics("cpu", decide)
    with pytest.raises(KeyError, match="my own mistake"):
        compile(spread)(X)


def test_who_registers_no_heuristic():
    with pytest.raises(ValueError, match="there is no device 'gpu'; there are: cpu, cuda"):
        cinductor.register_heuristics("gpu", print)
    with pytest.raises(TypeError, match="heuristics are a function"):
        cinductor.register_heuristics("cpu", 3)
