"""Runs a few of the functions and modules of programs.py."""

import agreement  # noqa: F401  (skips without torch)
import programs
import pytest


@pytest.mark.parametrize("name", sorted(programs.CASES)[::4])
def test_a_program(name):
    programs.agrees(name)
