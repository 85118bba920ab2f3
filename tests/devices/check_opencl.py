"""Tests OpenCL, registered from outside of the tree. test_devices.py runs this file in its own process, and other tests
on the device in processes of their own (ways.py).
"""

import ctypes

import cinductor_opencl as opencl
import numpy as np
import pytest

import cinductor

DEVICE = opencl.register()
ALWAYS = {"offload": "always", "verify": True}
K = np.arange(9000) % 9
X = np.random.default_rng(0).standard_normal((6, 40))


@pytest.fixture
def limit():
    """A function that takes f64, 64-bit atomics and bytes of local memory from the devices."""
    limited = ctypes.CDLL(opencl.LIBRARY).cinductor_limit
    limited.argtypes = [ctypes.c_bool, ctypes.c_bool, ctypes.c_uint64]
    yield limited
    limited(True, True, 1 << 15)


def explained(fn, *args, **options):
    """Explain a new function of the same code, and compare its result with NumPy's."""
    fresh = cinductor.compile(lambda *a: fn(*a), device=DEVICE, options={**ALWAYS, **options})
    report = cinductor.explain(fresh, *args)
    for got, want in zip(np.atleast_1d(report.result), np.atleast_1d(fn(*args)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5 if got.dtype == np.float32 else 1e-13)
    return report


def softmax(x):
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


def counts(k):
    return np.bincount(k, minlength=9)


def test_a_block_shares_a_row():
    source = explained(softmax, X).source
    assert "reqd_work_group_size(" in source and "__local double met_" in source and "barrier(" in source
    assert "__syncthreads" not in source and "threadIdx" not in source


def test_scans_counts_and_products():
    """Prefixes of a block, a reduction in two launches, atomic operations, a template, several checks."""
    explained(lambda x: np.cumsum(x), np.arange(3000.0))
    explained(lambda x: x.sum(), np.arange(300000.0))
    assert "atom_add((" in explained(counts, K).source
    product = explained(lambda x: x @ x.T + 1, np.ones((128, 64)), templates="always", numerics="close")
    assert "rows[" in product.source
    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        cinductor.compile(lambda x, k: x[k] * 2, device=DEVICE, options=ALWAYS)(X[0], np.array([1, 99]))


def test_what_a_device_lacks(limit):
    limit(False, True, 1 << 15)
    assert "device opencl has no f64" in explained(lambda x: x * 2, X).why_host
    single = X.astype(np.float32)
    report = explained(lambda x: x * np.float32(2) + np.sqrt(np.abs(x)), single)
    assert report.why_host is None and report.source.startswith("#define double float")
    assert "exp of f32 is computed in f64" in explained(lambda x: np.exp(x), single).why_host
    limit(True, False, 1 << 15)
    assert "atom_" not in explained(counts, K).source
    limit(True, True, 64)
    assert "bytes of local memory, and the device has 64" in explained(softmax, X).why_host


def test_numbers_are_arguments(limit):
    def scaled(x, k):
        return x * k

    for has_f64, x in ((True, X), (False, X.astype(np.float32))):
        limit(has_f64, True, 1 << 15)
        compiled = cinductor.compile(lambda x, k: scaled(x, k), device=DEVICE, options=ALWAYS, dynamic=True)
        for k in (x.dtype.type(2.5), x.dtype.type(3.5)):
            np.testing.assert_array_equal(compiled(x, k), scaled(x, k))
        assert compiled.specializations[0].program.why_host is None


def test_arrays_streams_and_events():
    double = cinductor.compile(lambda a: a * 2)
    a = cinductor.to_device(np.arange(1000.0), DEVICE)
    streams = [cinductor.Stream(DEVICE) for _ in range(3)]
    made = a
    for k in range(9):
        with streams[k % 3]:
            made = double(made)
            a[k] = 0
    np.testing.assert_array_equal(made.numpy(), np.arange(1000.0) * 512)
    assert not a[:9].numpy().any()
    first, last = cinductor.Event(DEVICE), cinductor.Event(DEVICE)
    streams[0].record(first)
    streams[1].wait(first)
    streams[1].record(last)
    last.synchronize()
    assert first.elapsed(last) >= 0
    cinductor.synchronize(DEVICE)
    device = cinductor.devices("opencl")[0]
    assert device.memory > 0 and device.units > 0


def test_binaries_are_cached():
    """The second program of the same source takes the binary of the first."""
    before = cinductor._core.cache_info()
    for _ in range(2):
        explained(lambda x: x * 7.125 - 1, X)
    after = cinductor._core.cache_info()
    assert after["stores"] - before["stores"] <= 1 <= after["hits"] - before["hits"]
