"""Sharded programs whose members are threads on the CPU, which need no device."""

import contextvars
import functools
import weakref
from queue import SimpleQueue

import collective_cases as cases
import numpy as np
import pytest

import cinductor
from cinductor import distributed
from cinductor.distributed import P, all_gather, all_reduce, axis_index, shard_map
from cinductor.distributed.mesh import make_calls


def mesh_of(*shape, names=("x", "y"), timeout=120.0, devices="cpu"):
    return distributed.Mesh(shape, names[: len(shape)], devices=devices, timeout=timeout)


@pytest.fixture(scope="module")
def mesh():
    mesh = mesh_of(2)
    yield mesh
    mesh.close()


@pytest.mark.parametrize("name", cases.CASES)
def test_sharded_programs(mesh, name):
    cases.check(mesh, name)


def test_two_axes_and_groups():
    """Six members: sums along one axis, gathers along the other, and both."""
    mesh, x = mesh_of(2, 3), np.arange(24.0).reshape(4, 6)
    parts = x.reshape(2, 2, 3, 2)
    columns = shard_map(lambda x: all_reduce(x, "x"), mesh, P("x", "y"), P(None, "y"))(x)
    assert np.array_equal(columns.numpy(), parts.sum(0).reshape(2, 6))
    rows = shard_map(lambda x: all_gather(x * 2, "y", axis=1), mesh, P("x", "y"), P("x"))(x)
    assert np.array_equal(rows.numpy(), x * 2)
    whole = shard_map(lambda x: all_reduce(all_reduce(x.max(), "x", "max"), "y", "max"), mesh, P("x", "y"), P())(x)
    assert whole.numpy() == 23
    mesh.close()


def test_functions_that_run_in_python(mesh):
    """Members meet where a function is not compiled, and where it is split."""
    def split(x):
        y = all_reduce(x, "x")
        print(end="")
        return y + all_reduce(x.sum(), "x", "max") + axis_index("x")

    x = np.arange(8.0)
    want = np.concatenate([x[:4] + x[4:] + 22 + k for k in range(2)])
    for _ in range(3):
        assert np.array_equal(shard_map(split, mesh, P("x"), P("x"))(x).numpy(), want)
    with cinductor.set_stance("force_eager"):
        assert np.array_equal(shard_map(split, mesh, P("x"), P("x"))(x).numpy(), want)


def test_by_name_in_a_function(mesh):
    total = shard_map(lambda x: cinductor.ops.all_reduce(x.sum(), "x"), mesh, P("x"), P())
    assert total(cases.X).numpy() == pytest.approx(cases.X.sum())


def test_a_single_member():
    mesh = mesh_of(1)
    with mesh:
        assert np.array_equal(all_reduce(cinductor.to_device(np.ones(3), "cpu"), "x").numpy(), np.ones(3))
        assert np.array_equal(all_reduce(np.ones(3), "x"), np.ones(3))


def only_first(x):
    return all_reduce(x, "x") if axis_index("x") == 0 else x * 2


def fails_first(x):
    if axis_index("x") == 0:
        raise KeyError("mine")
    return all_reduce(x, "x")


def test_members_that_do_not_come():
    """The others fail by the timeout, or at once; then the mesh is of no use."""
    for fn, error, text in [(only_first, cinductor.DeviceError, "member 1 of 2 did not come to the collective within 1 s"), (fails_first, KeyError, "mine")]:
        mesh = mesh_of(2, timeout=1.0 if fn is only_first else 60.0)
        with pytest.raises(error, match=text):
            shard_map(fn, mesh, P("x"), P("x"))(np.ones(4))
        with pytest.raises(cinductor.DeviceError, match="closed, or a member of it failed"):
            shard_map(lambda x: all_reduce(x, "x"), mesh, P("x"), P())(np.ones(4))


def test_a_worker_keeps_nothing_of_a_call():
    """When its caller has the result, arrays of a call can be freed: the thread refers to none of them."""
    class Argument:
        pass

    class Results:
        def put(self, outcome):
            seen.append((outcome.error, ref()))

    calls, argument, seen = SimpleQueue(), Argument(), []
    ref = weakref.ref(argument)
    calls.put((0, contextvars.copy_context(), functools.partial(id, argument), Results()))
    calls.put(None)
    del argument
    make_calls(calls)
    assert seen == [(None, None)]


def test_refused():
    with pytest.raises(ValueError, match="has 3 members, and there are 2 devices"):
        mesh_of(3, devices=["cpu", "cpu"])
    assert mesh_of(2, devices=["cpu", "cpu"]).size == 2
    with pytest.raises(cinductor.Unsupported, match="op is 'mean'; wanted: one of 'sum'"):
        cinductor.compile(lambda x: all_reduce(x, "x", "mean"), fullgraph=True)(np.ones(3))
    with pytest.raises(RuntimeError, match="outside of shard_map"):
        all_reduce(np.ones(3), "x")
