"""Tests devices registered from outside of the tree, and several devices of one machine."""

import functools
import os
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import ways
from conftest import ROOT

import cinductor


@pytest.fixture(scope="session")
def outside(tmp_path_factory):
    """Build a folder of examples as a separate package, once; returns the environment in which it is imported."""

    @functools.cache
    def build(name):
        folder = tmp_path_factory.mktemp(name)
        package = folder / f"cinductor_{name}"
        package.mkdir()
        source = ROOT / "examples" / f"{name}_device" / package.name
        (package / "__init__.py").write_text((source / "__init__.py").read_text())
        command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-pthread"]
        folders = ["-I", source, "-I", cinductor.get_include(), "-isystem", sysconfig.get_path("include")]
        sources = sorted(source.glob("*.c")) + sorted((ROOT / "tests" / "devices").glob(f"limit_{name}.c"))
        subprocess.run([*command, *folders, *sources, "-o", package / f"_{name}.so"], check=True)
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        return {**os.environ, "PYTHONPATH": path}

    return build


def run_python(env, *words):
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)


def run_tests(env, *files):
    done = run_python(env, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("name", ["dummy", "scratchpad"])
def test_devices_from_outside(name, outside):
    """Runs the package's files of tests/devices."""
    run_tests(outside(name), *sorted((ROOT / "tests" / "devices").glob(f"check_{name}*.py")))


@pytest.fixture(scope="session")
def opencl(outside):
    """The environment of a process that can register OpenCL's devices."""
    headers = subprocess.run(["cc", "-E", "-include", "CL/cl.h", "-xc", os.devnull], capture_output=True)
    if headers.returncode:
        pytest.skip("no headers of OpenCL (Debian: opencl-c-headers)")
    env = outside("opencl")
    done = run_python(env, "-c", "import cinductor_opencl as o; o.register()")
    if "OSError" in done.stderr:
        pytest.skip(f"{done.stderr.splitlines()[-1]} (Debian: pocl-opencl-icd)")
    return env


def shrunk_until_small(A):
    r = np.ones(len(A))
    p = r.copy()
    for _ in range(5):
        r -= 0.5 * (A * p).sum(axis=1)
        rn = (r * r).sum()
        if rn < 1e-10:
            break
        p = r + rn * p
    return p


@pytest.mark.parametrize("size", [1, 3, 7, 33])
def test_a_block_of_one_thread_has_no_races(size):
    """A statement outside loops over threads may store elements that it has loaded, if the block has one thread."""
    options = {"offload": "always", "verify": True}
    compiled = cinductor.compile(shrunk_until_small, device="cuda", backend="interp", fullgraph=True, options=options)
    A = np.random.default_rng(size).random((size, size)) / size
    np.testing.assert_allclose(compiled(A), shrunk_until_small(A), rtol=1e-12)


def test_opencl(opencl):
    run_tests(opencl, ROOT / "tests" / "devices" / "check_opencl.py")


def test_opencl_in_other_ways(opencl):
    """A sample of the tests that take a way (ways.py), random keys among them; all with CINDUCTOR_FUZZ. One process runs all."""
    files = [next((ROOT / "tests").glob(f"*/{name}.py")) for name in ways.IN_OTHER_WAYS]
    run_tests({**opencl, "CINDUCTOR_TEST_WAYS": "opencl"}, *files)


def test_programs_on_opencl(opencl):
    """Some of tests/programs, or all with CINDUCTOR_FUZZ."""
    names = [] if ways.EVERYTHING else ["linear_algebra.cholesky", "roots.bisection", "signals.histogram"]
    env = {**opencl, "CINDUCTOR_TEST_WAYS": "opencl"}
    done = run_python(env, ROOT / "tests" / "cuda" / "run_programs.py", *names)
    failed = [line for line in done.stdout.splitlines() if not line.startswith("ok")]
    assert done.returncode == 0 and done.stdout and not failed, "\n".join([*failed, done.stderr])
