"""Runs a few of the modules of training.py and of the workflows of workflows.py; both also run as programs."""

import pytest
import training
import workflows


@pytest.mark.parametrize("name", sorted(training.CASES)[::6])
def test_a_module_is_trained(name):
    training.agrees(name)


@pytest.mark.parametrize("name", sorted(workflows.CASES)[::4])
def test_a_workflow(name):
    workflows.CASES[name]()
