"""Tests a compiler that is registered from outside of the tree. test_devices.py runs this file in its own process."""

import cinductor_scratchpad as scratchpad
import numpy as np
import programs as all_programs
import pytest
import test_programs as of_programs

import cinductor

DEVICE = scratchpad.register()
ALWAYS = {"offload": "always"}
X = np.random.default_rng(0).standard_normal((6, 40))


def softmax(x):
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


def rolled(x, k):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * k[i] + (y[i - 1] if i else 0)
    return y, np.cumsum(x, axis=1), np.where(x > 0, x, -x).astype("f2"), (x * 9).astype("i4") // 7


@pytest.mark.parametrize("dynamic", [None, True])
def test_arrays(dynamic):
    compiled = [cinductor.compile(f, dynamic=dynamic) for f in (softmax, rolled)]
    for n in (6, 3):
        x, k = cinductor.to_device(X[:n], DEVICE), cinductor.to_device(np.arange(float(n)), DEVICE)
        np.testing.assert_allclose(compiled[0](x).numpy(), softmax(X[:n]), rtol=1e-14)
        for got, want in zip(compiled[1](x, k), rolled(X[:n], np.arange(float(n))), strict=True):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
            assert got.dtype == want.dtype


def test_rows_lie_in_the_scratchpad():
    source = cinductor.explain(cinductor.compile(softmax, device=DEVICE, options=ALWAYS), X)
    assert "(pad + 0)" in source.source and "memory[0]" in source.source and "proc k0" in source.procs
    np.testing.assert_allclose(source.result, softmax(X), rtol=1e-14)
    assert 0 < scratchpad.most_used() <= 16384
    wide = np.ones((2, 5000))  # a row does not fit into the scratchpad
    np.testing.assert_allclose(cinductor.compile(softmax, device=DEVICE, options=ALWAYS)(wide), softmax(wide))
    assert scratchpad.most_used() <= 16384


@pytest.fixture
def limit():
    yield scratchpad.limit
    scratchpad.limit()


def explained(fn, *args):
    """Explain a new function of the same code: it has no program yet."""
    said = cinductor.explain(cinductor.compile(lambda *a: fn(*a), device=DEVICE, options=ALWAYS), *args)
    for got, want in zip(np.atleast_1d(said.result), np.atleast_1d(fn(*args)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    return said


def two_results(a, b, c):
    return a + b, a * c


def test_a_kernel_takes_no_more_arrays(limit):
    three = [np.arange(12.0) + k for k in range(3)]
    assert explained(two_results, *three).kernels.count("for i0<") == 1
    limit("max_buffers", 4)
    said = explained(two_results, *three)
    assert said.kernels.count("for i0<") == 2
    assert "are not fused: together they touch 5 arrays, and a kernel takes 4" in said.kernels
    limit("max_buffers", 2)  # a loop's buffers are not split: the program runs on the host
    said = explained(lambda a, b, c: a + b, *three)
    assert "a loop touches 3 arrays, and a kernel of device scratchpad takes 2" in said.why_host


def test_a_dtype_that_is_missing(limit):
    assert "device scratchpad has no c128" in explained(lambda x: x * 2j, X[0]).why_host
    assert explained(lambda x: x * 2, X[0]).why_host is None
    limit("double")
    assert "device scratchpad has no f64" in explained(lambda x: x * 2, X[0]).why_host
    assert explained(lambda x: x * np.float32(2), X[0].astype("f4")).why_host is None


def test_other_limits(limit):
    def kernels_of_both():
        fn = cinductor.compile(lambda a, b: (a + 1, b * 2), device=DEVICE, options=ALWAYS)
        return cinductor.explain(fn, np.arange(30.0), np.arange(50.0)).kernels_count

    assert kernels_of_both() == 1
    limit("chunk_elements", 1)
    assert kernels_of_both() == 2

    def normed(x):
        e = np.exp(x - x.max(axis=1)[:, None])
        return e / e.sum(axis=1)[:, None]

    assert "row buf" in explained(normed, X).kernels
    limit("row_bytes", 64)
    assert "row buf" not in explained(normed, X).kernels
    limit("max_fused_nests", 1)
    assert "are not fused: the kernel is full" in explained(normed, X).kernels
    limit("tile_rows", 8)
    assert "over i0 by 8, i1" not in explained(lambda x: x + 1, X).procs
    assert "over i0 by 8, i1" in explained(lambda x: x.T + np.ones((300, 200)), np.ones((200, 300))).procs


def test_an_index_out_of_range():
    compiled = cinductor.compile(lambda x, k: x[k] * 2)
    x, k = cinductor.to_device(X[0], DEVICE), cinductor.to_device(np.array([1, 99]), DEVICE)
    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        compiled(x, k)


def test_programs():
    """Some of tests/programs; parts that the core cannot run are run on the host, with the reason."""
    refused = []
    for program in list(all_programs.load().values())[::25]:
        compiled = cinductor.compile(program.function, device=DEVICE, options=ALWAYS)
        of_programs.check(program, compiled, program.sizes[:1])
        refused += [s.program.why_host for s in compiled.specializations if s.program.why_host]
    assert len(refused) <= 2, refused
