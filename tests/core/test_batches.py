"""Tests batched matrix products and the operations between them: they become a parallel loop over the matrices of the
batch.
"""

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cinductor
from cinductor import compile

SMALL = {"choices": "stack_bytes=1, launch_bytes=1", "library_threads": 1}
WHOLE = {"choices": "stack_bytes=2000000000"}
LOOP = re.compile(r"loop t0<\S+ parallel {")


def attention(q, k, v):
    p = q @ k.swapaxes(-1, -2) * q.dtype.type(0.125)
    e = np.exp(p - p.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ v


def with_mask(q, k, v, mask):
    p = np.where(mask, q @ k.swapaxes(-1, -2), -1e9)
    return np.maximum(p, 0) @ v + 1


def weights_too(q, k, v):
    p = q @ k.swapaxes(-1, -2)
    w = p / np.abs(p).sum(-1, keepdims=True)
    return w, w @ v


def one_matrix_for_all(q, w, v):
    return (q @ w * q.dtype.type(2)) @ v


def heads_after(q, k, v):
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    return attention(q, k, v).swapaxes(1, 2) * 2


def with_others_between(q, k, v):
    p = q @ k.swapaxes(-1, -2)
    scale = v.sum(axis=0)
    p = p * 2
    total = p.sum(axis=0)
    return p @ v, scale, total


def across_the_stack(q, k, v):
    p = q @ k.swapaxes(-1, -2)
    return (p / p.sum(axis=0)) @ v


def reversed_stack(q, k, v):
    p = q @ k.swapaxes(-1, -2)
    return (p + p[::-1]) @ v


def arrays(*shapes, dtype="f"):
    draws = np.random.default_rng(len(shapes[0]))
    made = [draws.standard_normal(shape) * 2 for shape in shapes]
    if dtype == "?":
        return [a > 0 for a in made]
    return [(a + 1j * a[::-1] if dtype == "D" else a).astype(dtype) for a in made]


def kernels(fn, *args):
    return cinductor.explain(compile(fn, options=SMALL), *args).kernels


CASES = {
    "stack": (attention, arrays(*[(6, 33, 17)] * 3)),
    "two axes": (attention, arrays(*[(2, 3, 20, 9)] * 3)),
    "lengths differ": (attention, arrays((5, 7, 8), (5, 11, 8), (5, 11, 3))),
    "mask": (with_mask, [*arrays((2, 3, 9, 4), (2, 3, 9, 4), (2, 3, 9, 5)), *arrays((9, 9), dtype="?")]),
    "mask of each": (with_mask, [*arrays((2, 3, 9, 4), (2, 3, 9, 4), (2, 3, 9, 5)), *arrays((2, 1, 9, 9), dtype="?")]),
    "weights": (weights_too, arrays(*[(4, 12, 12)] * 3, dtype="d")),
    "one matrix": (one_matrix_for_all, arrays((4, 9, 8), (8, 6), (4, 6, 5))),
    "fewer axes": (one_matrix_for_all, arrays((2, 4, 9, 8), (4, 8, 6), (2, 1, 6, 5))),
    "heads behind": (heads_after, arrays(*[(2, 20, 3, 8)] * 3)),
    "others": (with_others_between, arrays(*[(4, 10, 10)] * 3, dtype="d")),
    "complex": (weights_too, arrays(*[(4, 12, 12)] * 3, dtype="D")),
    "integers": (one_matrix_for_all, arrays((4, 9, 8), (4, 8, 6), (4, 6, 5), dtype="i4")),
    "half": (one_matrix_for_all, arrays((4, 9, 8), (4, 8, 6), (4, 6, 5), dtype="e")),
}


OWN = {attention, heads_after}  # exp is cinductor's own here: the bits must be those of the whole batch


def assert_same(got, want):
    got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.strides == b.strides and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("case", CASES)
def test_bits_are_numpys(case):
    fn, args = CASES[case]
    want = compile(fn, options=WHOLE)(*args) if fn in OWN else fn(*args)
    assert LOOP.search(kernels(fn, *args))
    for backend, threads, dynamic in [("c", 1, False), ("c", 3, True), ("interp", 3, False)]:
        compiled = compile(fn, backend=backend, dynamic=dynamic, options={**SMALL, "threads": threads}, fullgraph=True)
        for _ in range(2):
            assert_same(compiled(*args), want)


@pytest.mark.parametrize("fn", [across_the_stack, reversed_stack])
def test_a_problem_that_needs_others_waits_for_all(fn):
    args = arrays(*[(4, 10, 10)] * 3, dtype="d")
    made = kernels(fn, *args)
    assert not re.search(r"loop t0.*?loop t0", made, re.S) and made.count("extern matmul") == 2
    assert not re.search(r"loop t0[^}]*matmul[^}]*matmul", made, re.S)
    assert_same(compile(fn, options={**SMALL, "threads": 3})(*args), fn(*args))


def test_what_fits_in_cache_stays_whole():
    assert not LOOP.search(cinductor.explain(attention, *arrays(*[(4, 10, 10)] * 3)).kernels)


def test_only_the_memory_of_one_problem_is_allocated():
    args = arrays(*[(8, 64, 64)] * 3)
    watched = {**SMALL, "track_memory": "assert", "size_asserts": True}
    assert_same(compile(attention, options=watched)(*args), compile(attention, options=WHOLE)(*args))
    memory = str(cinductor.explain(compile(attention, options=SMALL), *args).memory)
    most = max(int(line.split()[0].replace(",", "")) for line in memory.splitlines())
    assert most == args[0].nbytes + 64 * 64 * 4  # the softmax is computed in place


def test_printed_programs_take_slices():
    args = arrays(*[(4, 10, 10)] * 3)
    explained = cinductor.explain(compile(attention, options=SMALL), *args)
    assert "for t0 in range(4):" in explained.wrapper
    assert "as_strided(in0, 100*t0, (10, 10), (10, 1))" in explained.wrapper


def test_a_number_that_is_none_warns_once_as_numpy_does():
    args = arrays(*[(4, 10, 10)] * 3)
    args[0][1, 2, 3], args[1][1, 2, 3] = np.inf, 0
    compiled = compile(one_matrix_for_all, options=SMALL)

    def messages(fn):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fn(*args)
        return [str(one.message) for one in caught]

    compile(one_matrix_for_all, options=SMALL)(*arrays(*[(4, 10, 10)] * 3))
    assert messages(compiled) == messages(one_matrix_for_all)


ASKED = """
import numpy as np, cinductor
def fn(q, k, v):
    return np.maximum(q @ k.swapaxes(-1, -2), 0) @ v
q, k, v = np.ones((3, 16, 256, 32))
print("loop t0" in cinductor.explain(fn, q, k, v).kernels)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_numpys_library_is_asked_for_its_threads(threads):
    """If NumPy's BLAS has several threads, concurrent calls would wait for each other. Then the products run in
    sequence.
    """
    if os.cpu_count() < 2 and threads > 1:
        pytest.skip("OpenBLAS takes no more threads than there are processors")
    env = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == [str(threads == 1)]
