"""Tests elements chosen by a mask (stream compaction). One pass counts and compresses them; the result is the start
of the buffer.
"""

import tracemalloc

import numpy as np
import pytest

import cinductor


def chosen(x, limit):
    return x[x > limit]


def doubled(x, limit):
    return x[x > limit] * 2


def summed(x, limit):
    return x[x > limit].sum()


def several(x, limit):
    mask = np.sin(x) > limit
    kept = x[mask]
    return kept, kept[::2], np.sqrt(kept) - (x * x)[mask], mask.sum()


def twice(x, limit):
    kept = x[x > limit] + 1
    return kept, kept


def written(x, limit):
    kept = x[x > limit]
    x[:] = 0
    kept += 1
    return kept


FUNCTIONS = [chosen, doubled, summed, several, twice, written]
LIMITS = [-1.0, 0.3, 0.5, 0.8, 0.999, 2.0]


def parts(result):
    return result if isinstance(result, tuple) else (result,)


def assert_alike(got, expected):
    for a, b in zip(parts(got), parts(expected), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
        if isinstance(b, np.ndarray):
            assert (a.dtype, a.nbytes) == (b.dtype, b.nbytes)
            assert a.strides == b.strides or a.size == 0
            assert str(a.flags) == str(b.flags)


@pytest.mark.parametrize("backend", ["c", "interp"])
@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_packs(fn, dynamic, backend):
    """For constant and varying sizes, 0 included, and all, some, few or no elements chosen."""
    compiled = cinductor.compile(fn, fullgraph=True, dynamic=dynamic, backend=backend)
    for size in [2000, 0, 1, 7, 300_000 if backend == "c" else 3000, 0]:
        for limit in LIMITS:
            x = np.random.default_rng(size).random(size)
            y = x.copy()
            assert_alike(compiled(x, limit), fn(y, limit))
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "f4", "i8", "c16", "f2"])
def test_packs_of_dtypes(dtype):
    def both(x, mask):
        return x[mask], x[mask][:3]

    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 300_000).astype(dtype)
    compiled = cinductor.compile(both, fullgraph=True)
    for share in (0.9, 0.5, 0.1):
        mask = rng.random(x.size) < share
        assert_alike(compiled(x, mask), both(x, mask))


def test_results_own_little_more_memory_than_they_need():
    """If many elements are chosen, the result owns the buffer they were compressed into; if few, it is a copy."""
    compiled = cinductor.compile(chosen, fullgraph=True)
    x = np.random.default_rng(0).random(1 << 20)
    compiled(x, 0.5)
    tracemalloc.start()
    try:
        for limit in (0.1, 0.4, 0.6, 0.75, 0.99):
            before, _ = tracemalloc.get_traced_memory()
            kept = compiled(x, limit)
            held = tracemalloc.get_traced_memory()[0] - before
            assert kept.base is None and kept.flags.owndata
            assert kept.nbytes <= held <= 3 * kept.nbytes + 10_000
            del kept
    finally:
        tracemalloc.stop()
    kept = compiled(x, 0.2)
    kept.resize(10, refcheck=False)
    np.testing.assert_array_equal(kept, x[x > 0.2][:10])


def test_packs_of_the_printed_wrapper():
    compiled = cinductor.compile(several)
    x = np.random.default_rng(0).random(5000)
    compiled(x, 0.4)
    with cinductor.profile():
        assert_alike(compiled(x, 0.4), several(x, 0.4))
