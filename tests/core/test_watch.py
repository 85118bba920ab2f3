"""Tests the run verifier: runs are compared with their memory plan, and other checks that options switch on."""

import re

import numpy as np
import pytest
from test_fusion import PROGRAMS

import cinductor
from cinductor import compile

WATCHED = {"track_memory": "assert", "size_asserts": True, "alignment_asserts": True}


@pytest.mark.parametrize("dynamic", [False, True], ids=["sizes", "symbols"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_programs_allocate_what_is_planned(fn, dynamic):
    args = PROGRAMS[fn][0]
    compile(fn, backend="interp", dynamic=dynamic, options=WATCHED, fullgraph=True)(*args)


def branches(a, n):
    for k in range(n):
        b = np.sort(a * k, axis=0)
        if b.sum() > 3:
            a = b @ b.T @ a
        else:
            a = a + 1
        while a.max() > 50:
            a = np.sort(a / 2, axis=1)
    return a, a[a > 1] * 2


@pytest.mark.parametrize("dynamic", [False, True])
def test_regions_allocate_what_is_planned(dynamic):
    a = np.random.default_rng(0).random((50, 50))
    compiled = compile(branches, options=WATCHED, dynamic=dynamic, backend="interp")
    for n in (0, 1, 5):
        for got, expected in zip(compiled(a, n), branches(a, n)):
            np.testing.assert_array_equal(got, expected)


def test_the_peak_in_the_dump_is_the_one_measured(capfd):
    def f(a, ws):
        hidden = [np.sort(a @ w, axis=0) for w in ws]
        return [h.max() for h in hidden], hidden[0] * 2

    rng = np.random.default_rng(0)
    a, ws = rng.random((40, 30)), [rng.random((30, 20)) for _ in range(6)]
    compiled = compile(f, backend="interp", options={"track_memory": "log"})
    report = cinductor.explain(compiled, a, ws)
    planned = int(re.search(r"at most (\d+) bytes", report.wrapper)[1])
    capfd.readouterr()
    compiled(a, ws)
    assert f"at most {planned} bytes" in capfd.readouterr().err


def log_of(a):
    b = np.sort(a, axis=0)
    return np.log(b - 2).sum()


def test_a_nan_is_named_with_its_line():
    compiled = compile(log_of, options={"nan_asserts": True}, backend="interp")
    assert compiled(np.full((3, 3), 5.0)) == log_of(np.full((3, 3), 5.0))
    line = log_of.__code__.co_firstlineno + 2
    for fn in (compiled, compile(log_of, options={"nan_asserts": True}, backend="interp")):
        with pytest.raises(cinductor.PromiseBroken, match=rf"k\d .*test_watch.py:{line}\): buf\d has a NaN in it"):
            fn(np.ones((3, 3)))


def test_a_nan_is_nothing_to_those_who_do_not_ask():
    with np.errstate(invalid="ignore"):
        assert np.isnan(compile(log_of, backend="interp")(np.ones((3, 3))))


# --- random programs ---


def random_program(seed):
    """Sorts arrays, combines pairs of them, and sums some at the end, in an order that keeps many arrays alive."""
    rng = np.random.default_rng(seed)
    n = 3 + seed % 8
    steps = [(int(rng.integers(3)), *rng.integers(max(0, k - 2), k + 2, 2).tolist()) for k in range(n)]
    chosen = (2 + rng.choice(n, 1 + n // 2, replace=False)).tolist()

    def program(a, b):
        values = [a, b]
        for kind, i, j in steps:
            x, y = values[i], values[j]
            values.append(np.maximum(x, y) * 0.5 if kind == 0 else np.sort(x + kind, axis=kind - 1))
        return [values[k].max() for k in chosen]

    return program


def test_random_programs_need_no_more_memory_in_another_order(capfd):
    rng, better = np.random.default_rng(7), 0
    args = rng.random((60, 50)), rng.random((60, 50))
    for seed in range(24):
        program, most = random_program(seed), []
        for ways in ({"choices": "order_bytes=1"}, {"choices": "order_bytes=1000000000"}, {"fusion": False}):
            compiled = compile(program, backend="interp", options={"track_memory": "log", "size_asserts": True, **ways})
            assert compiled(*args) == program(*args)
            most.append(int(re.search(r"at most (\d+) bytes", capfd.readouterr().err)[1]))
        assert most[0] <= most[1], seed
        better += most[0] < most[1]
    assert better > 5


INDICES = {"index_asserts": True, "verify": True}


def taken(a, i, j):
    b = a[i, j] * 2
    a[i] += 1
    for k in range(a.shape[0] - 1):
        b[k % 2] = a[i[k], j[k % 2]]
    return b, np.take(a, j, axis=1), np.bincount(i + 5, minlength=12)


@pytest.mark.parametrize(("backend", "dynamic"), [("c", True), ("interp", False)])
def test_indices_in_range_are_as_before(backend, dynamic):
    a, i, j = np.arange(20.0).reshape(5, 4), np.array([4, -5, 2, 0]), np.array([3, 0, -1, 1])
    compiled = compile(taken, options=INDICES, backend=backend, dynamic=dynamic, fullgraph=True)
    ours, theirs = a.copy(), a.copy()
    for got, expected in zip(compiled(ours, i, j), taken(theirs, i, j)):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        compiled(ours, np.array([9, 0, 0, 0]), j)  # the program checks this index, so NumPy's exception is raised


def no_checks(graph):
    for node in graph.nodes:
        if node.op == "check":
            graph.set_args(node, graph.constant(True, "bool", before=node))


@pytest.mark.parametrize("wrapper", ["c", "python"])
def test_an_unchecked_index(wrapper):
    """The program's checks are removed, as if they had been proved by mistake."""

    def f(a, i):
        return a[i] * 2

    with cinductor.register_pass("no_checks", no_checks, after="wrap"):
        compiled = compile(f, options={"index_asserts": True, "wrapper": wrapper})
        with pytest.raises(cinductor.PromiseBroken, match=r"gather at .*test_watch.py:\d+: an index along axis 0 is not in \[0, 4\)"):
            compiled(np.ones(4), np.array([1, 7]))
        assert compile(f)(np.ones(4), np.array([1, 7]))[0] == 2  # without the option this is not detected


# --- out of memory ---


@pytest.mark.parametrize("dynamic", [None, True])
def test_without_memory_the_plan_and_its_largest_buffers_are_told(dynamic):
    def f(x, n):
        x += 1
        y = np.sort(np.full(n, x.sum()))
        z = np.sort(y[::-1] * 2)
        return z, y.max()

    compiled, line = compile(f, backend="interp", dynamic=dynamic, fullgraph=True), f.__code__.co_firstlineno
    x, size = np.ones(4), 2**49  # bytes of one array; more than any machine has
    assert [compiled(np.ones(4), n)[1] for n in (10, 11, 12)] == [8, 8, 8]  # a number that varies
    with pytest.raises(MemoryError) as caught:
        compiled(x, size // 8)
    text = str(caught.value)
    assert re.match(rf"no memory for {size} bytes of buf\d \(.*test_watch.py:{line + 2}\); the program holds {2 * size + 8} bytes at most: ", text)
    assert re.findall(rf"{size} of buf\d \(.*?:(\d+)\)", text) == [str(line + 2), str(line + 3)]
    assert compiled(np.ones(4), 10)[1] == 8


def test_without_memory_a_function_that_has_changed_nothing_is_asked_itself():
    compiled = compile(lambda n: np.sort(np.zeros(n)).sum(), backend="interp", dynamic=True)
    assert compiled(10) == 0
    with pytest.raises(MemoryError, match="Unable to allocate"):  # NumPy's own exception
        compiled(2**46)
