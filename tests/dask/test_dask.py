"""Functions of dask arrays: blocks, halos and reductions against NumPy, and compiled functions in a cluster of processes."""

import itertools
import logging
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import cinductor

dask = pytest.importorskip("dask", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")
import dask.array as da  # noqa: E402

X = np.random.default_rng(0).normal(size=(100, 24))
W = np.random.default_rng(1).normal(size=(24, 3))
SECONDS = 240  # for every wait between processes


@pytest.fixture(scope="module")
def dask_compile():
    return cinductor.dask.compile


def heat(u):
    v = u.copy()
    v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1])
    return v


def three_steps(u):
    for _ in range(3):
        v = np.zeros_like(u)
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])
        u = v
    return u


def standardize(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def statistics(x):
    return {"max": x.max(axis=1), "counts": [np.count_nonzero(x > 0.5), 3]}, np.sqrt((x**2).mean()), (x > 4).any(axis=0)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def roughness(u):
    return np.abs(u[2:] - 2 * u[1:-1] + u[:-2]).max(), (u[3:] * u[:-3]).sum(axis=0)


def network(x):
    return np.tanh(x @ W) * 2.0


def differences(u):
    return np.diff(u, axis=0), np.diff(u, n=2, axis=1), u[1:] + u[1:]


def smoothed(u):
    v = u.copy()
    for _ in range(2):
        v = (v[:-2] + v[1:-1] + v[2:]) / 3
    return v - u[2:-2]


def gram(x):
    return x.T @ x


def scans(x):
    return np.cumsum(x, axis=1), x.argmax(axis=1), np.concatenate([x, -x], axis=1)


FUNCTIONS = [heat, three_steps, standardize, statistics, softmax, roughness, network, differences, smoothed]


def assert_same(got, want):
    if isinstance(want, tuple | list):
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, dict):
        assert_same([*got.items()], [*want.items()])
    elif isinstance(want, str):
        assert got == want
    else:
        assert np.shape(got) == np.shape(want)
        assert not isinstance(want, np.ndarray | np.generic) or got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("chunks, backend", [((13, 24), "interp"), ((30, 7), "c"), ((100, 24), "c"), ((97, 5), "interp")], ids=str)
def test_blocks_compute_what_numpy_does(dask_compile, fn, chunks, backend):
    got = dask_compile(fn, backend=backend)(da.from_array(X, chunks=chunks))
    assert_same(dask.compute(got, scheduler="sync")[0], fn(X))


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [gram, scans])
def test_axes_of_one_chunk_are_whole(dask_compile, fn, backend):
    got = dask_compile(fn, backend=backend)(da.from_array(X, chunks=(30, 24)))
    assert_same(dask.compute(got, scheduler="sync")[0], fn(X))


def made(seed):
    """A function of random steps: shifts, stores at inner positions, reductions that are broadcast again."""
    steps = np.random.default_rng(seed).integers(0, 7, size=5).tolist()

    def fn(x):
        y = x * 0.5
        for step in steps:
            if step == 0:
                y = y[1:] - y[:-1]
            elif step == 1:
                z = np.zeros_like(y)
                z[2:-1] = y[1:-2] * 3
                y = z
            elif step == 2:
                y = y - y.mean(axis=0)
            elif step == 3:
                y = np.maximum(y, y.max(axis=1, keepdims=True) * 0.5)
            elif step == 4:
                y[:, 1:-1] = (y[:, 2:] + y[:, :-2]) / 2
            elif step == 5:
                y = y[2:-2] + np.abs(y[1:-3] - y[4:])
            else:
                y = y + np.sqrt(np.abs(y)).sum(axis=0)[::1]
        return y, y.min()

    return fn


@pytest.mark.parametrize("backend, seeds, least", [("interp", range(24), 47), ("c", range(4), 8)])
def test_random_functions(dask_compile, backend, seeds, least):
    """Equal to NumPy, or refused with the reason. least: how many are not refused."""
    compared = 0
    for fn, chunks in itertools.product(map(made, seeds), ((17, 24), (31, 9), (5, 24))):
        try:
            got = dask_compile(fn, backend=backend)(da.from_array(X, chunks=chunks))
        except cinductor.Unsupported as refused:
            assert "chunks" in str(refused)
            continue
        assert_same(dask.compute(got, scheduler="sync")[0], fn(X))
        compared += 1
    assert compared >= least


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: np.cumsum(x, axis=0), "cumsum at .* needs all of it"),
        (lambda x: x - x[0], "an element at a fixed position is read"),
        (lambda x: x[::2] + 1, "a slice with step 2"),
        (lambda x: np.sort(x, axis=0), "sort at .* cannot be split"),
        (lambda x: x @ x.T, "two axes of one value have the same blocks"),
        (lambda x: x * np.arange(100.0)[:, None], "iota at .* needs all of it"),
        (lambda x: x[x > 0], "data decide a size"),
        (lambda x: (x + 1).T, "a view of another result"),
        (lambda x: x[1:], "nothing is computed"),
        (lambda x: x.__setitem__(0, 1.0), "writes to an argument"),
        (lambda x: x + 1 if x.sum() > 0 else x, "branch|a concrete value"),
    ],
)
def test_refusals_have_the_reason(dask_compile, fn, why):
    with pytest.raises(cinductor.Unsupported, match=why):
        dask_compile(fn, backend="interp")(da.from_array(X, chunks=(30, 24)))


def test_arguments_besides_arrays(dask_compile):
    def fn(pair, k, *, by):
        return pair[0] * k + by["w"] + W[:, 0]

    x = da.from_array(X, chunks=(30, 7))
    got = dask_compile(fn, backend="interp")([x, 3], 2.5, by={"w": X[0]})
    np.testing.assert_array_equal(got.compute(scheduler="sync"), fn([X, 3], 2.5, by={"w": X[0]}))
    with pytest.raises(cinductor.Unsupported, match="unknown chunks"):
        dask_compile(heat)(x[x[:, 0] > 0])
    with pytest.raises(ValueError, match="backend of device"):
        dask_compile(heat, backend="nothing")
    with pytest.raises(TypeError, match="expects a function"):
        dask_compile(3)


def test_arrays_larger_than_memory_are_captured(dask_compile):
    """Capture reserves addresses and touches nothing."""
    x = da.zeros((1 << 20, 1 << 18), chunks=(1 << 16, 1 << 18))
    y = dask_compile(lambda u: u[1:] * 2 + u[:-1], backend="interp")(x)
    assert y.shape == ((1 << 20) - 1, 1 << 18) and len(y.chunks[0]) == 16


def test_import_does_not_import_dask():
    code = "import sys, cinductor; assert 'dask' not in sys.modules; cinductor.dask; assert 'distributed' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=SECONDS)


@cinductor.compile
def scaled(x):
    return np.sqrt(x * x + 1.0) * 2


def test_compiled_functions_in_collections():
    x, want = da.from_array(X, chunks=(30, 7)), scaled.__wrapped__(X)
    np.testing.assert_array_equal(x.map_blocks(scaled, dtype=x.dtype).compute(scheduler="sync"), want)
    np.testing.assert_array_equal(da.blockwise(scaled, "ij", x, "ij", dtype=x.dtype).compute(scheduler="sync"), want)
    np.testing.assert_array_equal(dask.delayed(scaled)(X).compute(scheduler="sync"), want)
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert b"scaled" in pickle.dumps(scaled) and len(pickle.dumps(scaled)) < 100


# --- a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Four processes with a cache of their own, and no compiler."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)
    own = {"CINDUCTOR_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "CC": "/nonexistent", "CINDUCTOR_SAVED_CALLS": "1"}
    with (
        LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None, env=own) as cluster,
        Client(cluster, timeout=SECONDS) as made,
    ):
        yield made


def seen(compiled, k):
    """The result of a compiled function in a worker, and the backend that ran it."""
    result, (program,) = compiled(X + k), compiled.specializations
    return result, program.program.backend


def gathered(client, future):
    return [gathered(client, one) for one in future] if isinstance(future, list) else future.result(timeout=SECONDS)


def test_workers_get_kernels_by_content(client, dask_compile):
    """They have no compiler: each program that they run was built here."""
    with cinductor.config.patch(saved_calls=True):
        scaled(X)
        y = dask_compile(three_steps)(da.from_array(X, chunks=(30, 24)))
        assert cinductor.dask.share_cache(client, y) >= 3
    np.testing.assert_allclose(gathered(client, client.compute(y)), three_steps(X), rtol=1e-12, atol=1e-12)
    futures = [client.submit(seen, scaled, k, pure=False, workers=[w]) for k, w in enumerate(client.scheduler_info()["workers"])]
    for k, (result, backend) in enumerate(gathered(client, futures)):
        np.testing.assert_array_equal(result, scaled.__wrapped__(X + k))
        assert backend == "cpu:c"


def slowly(x, seconds):
    time.sleep(seconds)
    return scaled(x)


def test_a_killed_worker_is_replaced(client, dask_compile):
    """Its tasks run elsewhere, and the process that takes its place has the kernels."""
    pids = client.run(os.getpid)
    x = da.from_array(X, chunks=(10, 24)).map_blocks(slowly, 0.2, dtype=float)
    future = client.compute(dask_compile(standardize, backend="interp")(x))
    time.sleep(0.3)
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    np.testing.assert_allclose(gathered(client, future), standardize(scaled(X)), rtol=1e-10, atol=1e-12)
    client.wait_for_workers(4, timeout=SECONDS)
    (new,) = set(client.run(os.getpid)) - set(pids) or [None]
    assert new is not None
    result, backend = gathered(client, client.submit(seen, scaled, 0, pure=False, workers=[new]))
    np.testing.assert_array_equal(result, scaled.__wrapped__(X + 0))
    assert backend == "cpu:c"


def test_errors_of_blocks_reach_the_caller(client):
    @cinductor.compile
    def bad(x):
        return x.reshape(7)

    future = client.submit(bad, X)
    with pytest.raises(ValueError, match="cannot reshape"):
        gathered(client, future)
