"""Collectives and sharded programs on two GPUs: the cases of tests/support/collective_cases.py, and what fails.

python collectives.py [emulated]. Prints a line for each check, "ok ..." or the reason. The emulator's NCCL has one process.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
import collective_cases as cases

import cinductor
from cinductor import distributed
from cinductor.distributed import P, all_reduce, shard_map

EMULATED = "emulated" in sys.argv

CHILD = """
import os, sys, time
import numpy as np
from cinductor import distributed
from cinductor.distributed import P, all_reduce, shard_map

rank, port = int(sys.argv[1]), sys.argv[2]
distributed.initialize(f"127.0.0.1:{port}", 2, rank, timeout=60)
mesh = distributed.Mesh((2,), ("x",), devices=f"cuda:{rank}", timeout=8)
total = shard_map(lambda x: all_reduce(np.sqrt(x).sum(), "x"), mesh, P("x"), P())
x = np.arange(100000.0)
assert np.allclose(total(x).numpy(), np.sqrt(x).sum())
if rank == 1:
    os._exit(0)
start = time.time()
try:
    total(x).numpy()
except Exception as error:
    print(type(error).__name__, time.time() - start < 30, error)
"""


def report(name, check):
    try:
        said = check()
        print("ok" if said is None else said, name, flush=True)
    except Exception as error:
        print("fails", name, type(error).__name__, error, flush=True)


def mesh_of_two(timeout=60.0):
    return distributed.Mesh((2,), ("x",), devices=["cuda:0", "cuda:1"], timeout=timeout)


def only_first(x):
    return all_reduce(x, "x") if distributed.axis_index("x") == 0 else x


def late_member():
    """A member that does not come: one error, within the timeout, and a new mesh works."""
    mesh = mesh_of_two(timeout=4.0)  # members compile at different speeds
    cases.check(mesh, "sum of everything")
    start = time.time()
    try:
        shard_map(only_first, mesh, P("x"), P("x"))(cases.X).numpy()
    except cinductor.DeviceError as error:
        assert "another member has not come" in str(error) and time.time() - start < 20, error
    else:
        raise AssertionError("no error")
    mesh.close()
    other = mesh_of_two()
    cases.check(other, "gather")
    other.close()


def late_group():
    """A group whose other member does not come."""
    name, start = cinductor._core.group_name("cuda:0"), time.time()
    try:
        cinductor._core.group_open("cuda:0", "alone", name, 0, 2, 0.5)
    except cinductor.DeviceError as error:
        assert "the group was not done within 0.5 s" in str(error) and time.time() - start < 10
    else:
        raise AssertionError("no error")


SAVED = """
import sys
import numpy as np
from cinductor import distributed
from cinductor.distributed import P, all_reduce, shard_map

for _ in range(int(sys.argv[1])):  # so the last one is another group in each process
    mesh = distributed.Mesh((2,), ("x",), devices=["cuda:0", "cuda:1"], timeout=30)
one = distributed.Mesh((1,), ("x",), devices=["cuda:0"])
def total(x):
    return all_reduce(x.sum(), "x")
for size, members in (5, one), (10, mesh):
    print(shard_map(total, members, P("x"), P(), options={"saved_calls": True})(np.ones(size)).numpy())
"""


def captures_of_other_processes():
    """A capture is for one member of one mesh, so neither another process nor another mesh uses it."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "saved.py"  # captures are saved by file
        script.write_text(SAVED)
        said = [subprocess.run([sys.executable, script, n], capture_output=True, text=True) for n in "12"]
    assert [done.stdout.split() for done in said] == [["5.0", "10.0"]] * 2, said


def processes():
    """A process for each GPU, one of which ends."""
    words = [sys.executable, "-c", CHILD]
    children = [subprocess.Popen([*words, str(rank), "29533"], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    said = [child.communicate(timeout=120)[0].strip() for child in children]
    assert said[0].startswith("DeviceError True member 0 of 2") and not said[1], said


def main():
    mesh = mesh_of_two()
    for name in cases.CASES:
        report(name, lambda name=name: cases.check(mesh, name))
    mesh.close()
    report("late member", late_member)
    report("late group", late_group)
    report("captures of other processes", captures_of_other_processes)
    if not EMULATED:
        report("processes", processes)


if __name__ == "__main__":
    main()
