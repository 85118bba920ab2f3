"""Tests collectives and sharded programs on the dummy's two devices, in one process and in two. Run by test_devices.py."""

import subprocess
import sys

import cinductor_dummy as dummy
import collective_cases as cases
import numpy as np
import pytest
from check_dummy import as_it_was  # noqa: F401

import cinductor
from cinductor import distributed
from cinductor.distributed import P, all_reduce, shard_map


def mesh_of_two(timeout=120.0, **settings):
    return distributed.Mesh((2,), ("x",), devices="dummy", timeout=timeout, **settings)


@pytest.fixture(scope="module")
def mesh():
    dummy.register()
    mesh = mesh_of_two()
    yield mesh
    mesh.close()


@pytest.mark.parametrize("name", cases.CASES)
def test_sharded_programs(mesh, name):
    dummy.set_delay(300 if name == "beside kernels" else 0)
    before = dummy.counts()["group_start"]
    cases.check(mesh, name)
    has_collectives = name not in ("pointwise", "columns", "product of rows")
    assert (dummy.counts()["group_start"] > before) == has_collectives


@pytest.mark.parametrize("name", sorted(cases.CASES.keys() - {"broadcast", "exchange"}))
def test_a_mesh_of_one(name):
    """Without other members no collective runs."""
    fn, ins, outs, arguments, _ = cases.CASES[name]
    before = dummy.counts()["group_start"]
    mesh = distributed.Mesh((1,), ("x",), devices="dummy:1")
    for result in np.atleast_1d(np.asarray(shard_map(fn, mesh, ins, outs)(*arguments), dtype=object)):
        assert result.numpy().dtype == result.dtype
    assert dummy.counts()["group_start"] == before


def test_two_axes():
    """Groups along each axis, one of which has one member; single collectives of a process's only member."""
    mesh = distributed.Mesh((2, 1), ("x", "y"), devices=["dummy:1", "dummy"])
    assert [m.coordinates for m in mesh.members] == [{"x": 0, "y": 0}, {"x": 1, "y": 0}] and mesh.axis_names == ("x", "y")
    both = shard_map(lambda x: all_reduce(all_reduce(x.sum(), "y"), "x"), mesh, P("x", "y"), P())
    assert both(cases.X).numpy() == pytest.approx(cases.X.sum())
    assert both(cases.X).shards[0].device == "dummy:1"
    with pytest.raises(ValueError, match="2 members of the mesh: shard_map"), mesh:
        pass
    mesh.close()


def test_overlap(mesh):
    """The program starts a collective, runs kernels, and joins it: in the lines and in the order of the device's work."""
    fn = cases.CASES["beside kernels"][0]
    parts = [cinductor.to_device(cases.X, m.device) for m in mesh.members]
    mesh.open()
    reports = mesh.each(lambda m: cinductor.explain(fn, parts[m.position], parts[m.position]))
    lines = reports[0].wrapper.splitlines()
    starts = [k for k, line in enumerate(lines) if "all_reduce" in line]
    joins = [k for k, line in enumerate(lines) if "join(" in line]
    kernels = [k for k, line in enumerate(lines) if line.strip().startswith("k") and "(" in line]
    assert len(starts) == 2 and joins and any(starts[0] < k < joins[0] for k in kernels), reports[0].wrapper


def test_by_name(mesh):
    """`cinductor.ops` has the collectives of `cinductor.distributed`."""
    by_name = cinductor.ops.all_reduce
    total = shard_map(lambda x: by_name(x.sum(), "x"), mesh, P("x"), P())
    assert total(cases.X).numpy() == pytest.approx(cases.X.sum())
    assert cinductor.ops.send_recv is distributed.send_recv and "broadcast" in dir(cinductor.ops)


def test_a_function_that_runs_in_python(mesh):
    """A single collective is a program of its own in every stance."""
    doubled = shard_map(lambda x: all_reduce(x, "x") * 2, mesh, P("x"), P())
    with cinductor.set_stance("force_eager"):
        assert np.allclose(doubled(cases.X).numpy(), 2 * (cases.X[:6] + cases.X[6:]))


def test_memory_and_handles(mesh):
    """Nothing is left after calls and after a mesh is closed."""
    reduce = shard_map(lambda x: all_reduce(np.exp(x), "x").sum(), mesh, P("x"), P())
    def counts():
        cinductor.synchronize("dummy"), cinductor.synchronize("dummy:1")
        return dummy.counts()["live"], dummy.counts()["handles"]

    reduce(cases.X).numpy()
    before = counts()
    for _ in range(5):
        reduce(cases.X).numpy()
    other = mesh_of_two()
    shard_map(lambda x: all_reduce(x, "x"), other, P("x"), P())(cases.X).numpy()
    other.close()
    assert counts() == before


# --- what is refused, and what fails ---

REFUSED = {
    "size": (lambda x: x, P("x"), P("x"), np.ones(5), ValueError, "axis 0 of size 5 is not divisible by the 2 members along 'x'"),
    "axes": (lambda x: x, P("x", None), P("x"), np.ones(4), ValueError, "for arrays of 2 axes or more"),
    "name": (lambda x: x, P("y"), P("y"), np.ones(4), ValueError, "the mesh has no axis 'y'; it has .'x',."),
    "result": (lambda x: 3, P("x"), P(), np.ones(4), TypeError, "the function returns int; wanted: an array"),
    "results": (lambda x: x, P("x"), (P(), P()), np.ones(4), TypeError, "does not return a tuple of 2 arrays"),
    "axis of a collective": (lambda x: all_reduce(x, "z"), P("x"), P(), np.ones(4), cinductor.Unsupported, "the mesh has no axis 'z'"),
    "operation": (lambda x: all_reduce(x, "x", "mean"), P("x"), P(), np.ones(4), cinductor.Unsupported, "op is 'mean'; wanted: one of 'sum'"),
    "dtype": (lambda x: all_reduce(x, "x"), P("x"), P(), np.ones(4, "i2"), cinductor.Unsupported, "arrays of int16 are not combined"),
    "bools": (lambda x: all_reduce(x > 0, "x"), P("x"), P(), np.ones(4), cinductor.Unsupported, "convert them with astype"),
    "root": (lambda x: distributed.broadcast(x, "x", 2), P("x"), P(), np.ones(4), cinductor.Unsupported, "root is 2; wanted: 0 to 1"),
    "pairs": (lambda x: distributed.send_recv(x, "x", [(0, 1), (0, 0)]), P("x"), P(), np.ones(4), cinductor.Unsupported, "each sends once"),
    "part": (lambda x: distributed.reduce_scatter(x, "x"), P(), P("x"), np.ones(3), ValueError, "axis 0 of size 3 is not divisible by the 2"),
    "width": (lambda x: distributed.halo_exchange(x, "x", 3), P("x"), P("x"), np.ones(4), ValueError, "width is 3 for parts of 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(mesh, name):
    """One clear error for what does not fit, after which the mesh is of use."""
    fn, ins, outs, argument, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        shard_map(fn, mesh, ins, outs)(argument)
    assert shard_map(lambda x: all_reduce(x, "x"), mesh, P("x"), P())(np.ones(2)).numpy() == 2


def test_refused_meshes_and_arguments(mesh):
    for shape, names, devices, text in [
        ((2,), ("x",), ["cpu", "dummy"], "members on the CPU are threads of one process, and all of a mesh's"),
        ((3,), ("x",), "dummy", "has 3 members, and there are 2 devices"),
        ((2,), ("x",), ["dummy", "dummy:0"], "named twice"),
        ((2, 1), ("x", "x"), "dummy", "a name for each, all different"),
        ((2,), ("x y",), "dummy", "names are identifiers"),
        ((0,), ("x",), "dummy", "sizes 1 or more"),
    ]:
        with pytest.raises(ValueError, match=text):
            distributed.Mesh(shape, names, devices=devices)
    with pytest.raises(TypeError, match="a spec is 'x'; wanted"):
        shard_map(lambda x: x, mesh, "x", P())
    with pytest.raises(ValueError, match="divides one axis only"):
        P("x", "x")
    with pytest.raises(RuntimeError, match="outside of shard_map"):
        all_reduce(cinductor.to_device(np.ones(3), "dummy"), "x")
    lying = distributed.shard(cases.X, mesh, P(None, "x"))
    assert lying.shape == cases.X.shape and np.array_equal(lying.numpy(), cases.X)
    with pytest.raises(ValueError, match=r"lies as P\(None, 'x'\).*wanted: P\('x'\)"):
        shard_map(lambda x: x, mesh, P("x"), P("x"))(lying)


def only_first(x):
    return all_reduce(x, "x") if distributed.axis_index("x") == 0 else x


def test_a_member_that_does_not_come():
    """The others' results are an error after the timeout; the mesh is closed, and a new one works."""
    mesh = mesh_of_two(timeout=0.3)
    result = shard_map(only_first, mesh, P("x"), P("x"))(cases.X)
    with pytest.raises(cinductor.DeviceError, match="member 1 of 2 did not come to the collective within 300 ms"):
        result.numpy()
    mesh.close()
    with pytest.raises(cinductor.DeviceError, match="member 1 of 2 did not come"):
        cinductor.synchronize("dummy")
    with pytest.raises(cinductor.DeviceError, match="make a new one"):
        shard_map(only_first, mesh, P("x"), P("x"))(cases.X)
    other = mesh_of_two()
    cases.check(other, "sum of everything")
    other.close()


@pytest.mark.parametrize("call", ["group_open", "group_start", "group_join"])
def test_failing_calls(call):
    """A device that fails in any call of a group is one error, and nothing is left."""
    mesh = mesh_of_two(timeout=5.0)
    f = shard_map(lambda x: all_reduce(np.exp(x), "x").sum(), mesh, P("x"), P())
    dummy.set_failing(call)
    with pytest.raises(cinductor.DeviceError, match=f"the dummy was told to fail in {call}"):
        f(cases.X)
    dummy.set_failing(None)
    with pytest.raises(cinductor.DeviceError, match="make a new one"):
        f(cases.X)


# --- processes ---

def test_a_capture_is_for_one_member_of_one_mesh():
    """One compiled function in calls of several meshes of the same devices."""
    f = cinductor.compile(lambda x: x + 10 * distributed.axis_size("x") + distributed.axis_index("x"))
    for shape, wanted in ((2, 1), [20, 21]), ((1, 2), [10, 10]), ((2, 1), [20, 21]):
        mesh = distributed.Mesh(shape, ("x", "y"), devices=["dummy:0", "dummy:1"])
        found = mesh.each(lambda member: f(cinductor.to_device(np.zeros(1), member.device)).numpy()[0])
        assert found == wanted


CHILD = """
import os, sys
import cinductor_dummy as dummy
import numpy as np
import cinductor
from cinductor import distributed
from cinductor.distributed import P, all_gather, all_reduce, shard_map

dummy.register()
rank, port, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]
number = 0 if what == "same number" else rank
try:
    distributed.initialize(f"127.0.0.1:{port}", 2, number, timeout=2 if what in ("missing", "same number") else 120)
    shape = (1, 2) if what == "other mesh" and rank else (2,)
    mesh = distributed.Mesh(shape, tuple("xy")[: len(shape)], devices=f"dummy:{rank}", timeout=5 if what == "dies" else 120)
    whole = shard_map(lambda x: all_gather(np.sqrt(x) + all_reduce(x.sum(), "x"), "x"), mesh, P("x"), P())
    x = np.arange(100000.0)
    assert np.array_equal(whole(x).numpy(), np.sqrt(x) + x.sum())
    with mesh:
        assert all_reduce(cinductor.to_device(np.full(3, rank + 1.0), f"dummy:{rank}"), "x").numpy()[0] == 3
    if what == "dies" and rank == 1:
        os._exit(0)
    part = shard_map(lambda x: all_reduce(x, "x"), mesh, P("x"), P("x"))(x)
    part.shards[0].numpy()
    try:
        part.numpy()
    except ValueError as error:
        assert "all_gather" in str(error)
    mesh.close()
    print("done")
except Exception as error:
    print(type(error).__name__, error)
finally:
    distributed.shutdown()
"""
ENDS = {  # what happens -> the last words of processes 0 and 1
    "all": ("done", "done"),
    "dies": ("DeviceError member 1 of 2 did not come to the collective within 5000 ms", ""),
    "missing": ("DeviceError process 1 of 2 did not come within 2 s", None),
    "same number": ("process 1 of 2 did not come within 2 s", "ValueError process 0 is there already"),
    "other mesh": ("ValueError process 1 makes a mesh of {'x': 1, 'y': 2}, process 0 one of {'x': 2}", "Error process 0"),
}


@pytest.mark.parametrize("what", ENDS)
def test_processes(what, free_port):
    """A process for each device; one that dies, does not come, or does something else."""
    words = [sys.executable, "-c", CHILD]
    ranks = [rank for rank in (0, 1) if ENDS[what][rank] is not None]
    if what == "same number":
        return same_number(words, free_port)
    children = [subprocess.Popen([*words, str(rank), str(free_port), what], stdout=subprocess.PIPE, text=True) for rank in ranks]
    for child, rank in zip(children, ranks, strict=True):
        said = child.communicate(timeout=240)[0].strip()
        assert ENDS[what][rank] in said and len(said.splitlines()) <= 1, said


def same_number(words, port):
    """Two processes that both say that they are the first: the second cannot listen at the address."""
    first, second = (subprocess.Popen([*words, rank, str(port), "same number"], stdout=subprocess.PIPE, text=True) for rank in "01")
    said = sorted(child.communicate(timeout=240)[0].strip() for child in (first, second))
    assert "DeviceError process 1 of 2 did not come within 2 s" in said[0] and "Address already in use" in said[1], said


@pytest.fixture
def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_initialize_refuses():
    for address, count, number, text in [
        ("nowhere", 2, 0, "wanted: 'host:port'"),
        ("127.0.0.1:1", 2, 2, "wanted: 0 to 1"),
    ]:
        with pytest.raises(ValueError, match=text):
            distributed.initialize(address, count, number)
    with pytest.raises(cinductor.DeviceError, match="process 0 does not listen on 127.0.0.1:1 within 0.1 s"):
        distributed.initialize("127.0.0.1:1", 2, 1, timeout=0.1)


def test_messages_of_strangers(free_port):
    """Bytes that are no message end their connection; other connections continue."""
    import socket

    from cinductor.distributed.rendezvous import Client, Server, Values

    server = Server(Values(), "127.0.0.1", free_port)
    for message in (b"\x00\xff\n", b"[]\n", b'{"key": 3, "timeout": []}\n', b"x" * 100):
        with socket.create_connection(("127.0.0.1", free_port)) as stranger:
            stranger.sendall(message)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(10)
            assert stranger.recv(100) == b""
    client = Client("127.0.0.1", free_port, 5)
    client.set("a", "b")
    assert client.get("a", 1) == "b" and client.get("c", 0.05) is None
    with pytest.raises(ValueError, match="a is there already"):
        client.set("a", "c")
    server.close(), client.close()
