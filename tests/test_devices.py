"""Devices from outside the tree, and several of one machine."""

import os
import subprocess
import sys
import sysconfig

from conftest import ROOT

import cinductor


def test_the_dummy_device(tmp_path):
    """examples/dummy_device is built as another package would, and passes tests/devices."""
    package = tmp_path / "cinductor_dummy"
    package.mkdir()
    source = ROOT / "examples" / "dummy_device" / "cinductor_dummy"
    (package / "__init__.py").write_text((source / "__init__.py").read_text())
    command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-pthread"]
    folders = ["-I", cinductor.get_include(), "-isystem", sysconfig.get_path("include")]
    subprocess.run([*command, *folders, source / "_dummy.c", "-o", package / "_dummy.so"], check=True)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    checks = ROOT / "tests" / "devices" / "check_dummy.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", checks],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
