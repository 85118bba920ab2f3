"""Tests devices registered from outside of the tree, and several devices of one machine."""

import os
import subprocess
import sys
import sysconfig

import pytest
from conftest import ROOT

import cinductor


@pytest.mark.parametrize("name", ["dummy", "scratchpad"])
def test_devices_from_outside(name, tmp_path):
    """A folder of examples is built as a separate package and runs its files of tests/devices."""
    package = tmp_path / f"cinductor_{name}"
    package.mkdir()
    source = ROOT / "examples" / f"{name}_device" / package.name
    (package / "__init__.py").write_text((source / "__init__.py").read_text())
    command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-pthread"]
    folders = ["-I", cinductor.get_include(), "-isystem", sysconfig.get_path("include")]
    sources = sorted(source.glob("*.c"))
    subprocess.run([*command, *folders, *sources, "-o", package / f"_{name}.so"], check=True)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    checks = sorted((ROOT / "tests" / "devices").glob(f"check_{name}*.py"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *checks],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
