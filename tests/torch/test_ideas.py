"""Runs a few of the programs of ideas.py, several in one graph."""

import agreement  # noqa: F401  (skips without torch)
import ideas
import pytest

NAMES = [name for name, row in ideas.ROWS.items() if not row[-1]]


def groups(names, count):
    return [names[k : k + count] for k in range(0, len(names), count)]


@pytest.mark.parametrize("names", groups(NAMES[::8], 7), ids=lambda names: names[0])
def test_programs_of_fixed_sizes(names):
    ideas.agrees(names, False)


@pytest.mark.parametrize("names", groups(NAMES[3::24], 3), ids=lambda names: names[0])
def test_programs_of_dynamic_sizes(names):
    ideas.agrees(names, True)


@pytest.mark.parametrize("name", [name for name, row in ideas.ROWS.items() if row[-1]])
def test_a_program_that_raises_or_is_cut(name):
    ideas.agrees([name], False)
