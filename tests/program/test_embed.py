"""Builds and runs the example of a C program that embeds the core."""

import subprocess

from conftest import ROOT


def test_embed(core):
    program = core.link(ROOT / "examples" / "embed.c")
    done = subprocess.run([program, "wrapper"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "def call(in0):" in done.stdout
    assert "largest difference" in done.stdout
