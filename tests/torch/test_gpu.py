"""Runs graphs of torch on a CUDA device: on a GPU if torch has one, and on the emulated one, where torch's tensors are the host's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gpu
import pytest
import torch
from agreement import same_values  # noqa: F401  (skips without torch)

HERE = Path(__file__).resolve().parent
CUDA = HERE.parent / "cuda"
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch has no CUDA device here")


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """Run functions of gpu.py on the emulated GPU; returns the lines that they print."""
    compiler = os.environ.get("CC", "cc").split()
    if torch.cuda.is_available() or shutil.which(os.environ.get("CXX", "g++").split()[0]) is None:
        pytest.skip("the emulator needs a C++ compiler, and takes the place of the driver")
    folder, libraries = tmp_path_factory.mktemp("card"), Path(torch.__file__).parent / "lib"
    make = [*compiler, "-O1", "-shared", "-fPIC", "-o"]
    drivers = [CUDA / f"{name}.c" for name in ("fake_driver", "fake_graph", "fake_share", "emulator")]
    subprocess.run([*make, folder / "libcuda.so.1", *drivers, "-ldl", "-lpthread"], check=True)
    subprocess.run([*make, folder / "libnvrtc.so.13", CUDA / "fake_nvrtc.c"], check=True)
    linked = ["-Wl,--no-as-needed", f"-L{libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined", "-ldl"]
    subprocess.run([*make, folder / "emulated_torch.so", HERE / "emulated_torch.c", *linked], check=True)
    env = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "CINDUCTOR_NVRTC": str(folder),
        "CINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "EMULATOR_FOLDER": str(folder),
        "EMULATOR_COMPILER": f"{sys.executable} -I -S {CUDA / 'host.py'}",
    }

    def run(*names, **more):
        command = [sys.executable, HERE / "gpu.py", folder / "emulated_torch.so", *names]
        done = subprocess.run(command, env=env | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout.splitlines()

    return run


def test_on_the_emulated_gpu(emulated):
    names = [f.__name__ for f in gpu.EMULATED]
    assert emulated(*names, "wrong_index") == [f"ok {name}" for name in [*names, "wrong_index"]]


def test_numbers_of_the_host_on_the_emulated_gpu(emulated):
    assert emulated("optimizer", EMULATED_NUMBERS_ON_HOST="1") == ["ok optimizer"]


@needs_gpu
@pytest.mark.parametrize("function", gpu.EMULATED + gpu.REAL)
def test_on_a_gpu(function):
    function()


@needs_gpu
def test_an_index_out_of_range_fails_an_assertion_of_the_device():
    """In a process of its own: the device's context cannot be used after it."""
    done = subprocess.run([sys.executable, HERE / "gpu.py", "", "wrong_index"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


@needs_gpu
def test_a_second_process_finds_kernels_on_the_disk(tmp_path):
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path)}
    for k in range(2):
        known = {p for p in tmp_path.rglob("*") if p.is_file()}
        assert bool(known) == bool(k)
        subprocess.run([sys.executable, HERE / "gpu.py", "", "pointwise", "sizes"], env=env, check=True)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == known
