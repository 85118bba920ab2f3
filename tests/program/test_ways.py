"""Runs small functions in every way that a function can run (ways.py), and functions with breaks from breaks.py,
against NumPy.
"""

import inspect

import breaks
import numpy as np
import pytest
import ways
from small_functions import FUNCTIONS, data

NAMES = list(FUNCTIONS)
SHAPES = [(5, 7), (5, 70)]


@pytest.mark.parametrize("name", NAMES)
def test_small_functions(name, way):
    """Rows shorter and longer than a vector. With constant sizes one of them, with symbolic sizes both."""
    is_both = ways.EVERYTHING or "dynamic" in way.settings
    shapes = SHAPES if is_both else SHAPES[NAMES.index(name) % 2 :][:1]
    exact = {} if way.is_device else {"numerics": "exact"}
    way.check(FUNCTIONS[name], *[data(columns, rows, columns) for rows, columns in shapes], **exact)


def example(x, n):
    """Words."""
    total = x * 0
    for k in range(n):
        if k % 2:
            total += x[k]
        else:
            continue
    def inner(y):
        z = y + 1
        return z
    return inner(total)


def test_a_break_after_each_statement(tmp_path):
    """After each statement of the function, except those that leave a block; and after the call."""
    x, made = np.arange(6.0), [make() for make in breaks.broken(example, tmp_path)]
    for fn in made:
        np.testing.assert_array_equal(fn(x, 4), example(x, 4))
    texts = [inspect.getsource(fn).splitlines() for fn in made]
    before = [text[text.index(line) - 1].split()[0] for text in texts for line in text if breaks.BREAK in line]
    assert before == ['"""Words."""', "total", "total", "continue", "continue", "return", "result"]


def test_a_function_with_a_closure(tmp_path):
    factor = 3.0

    def scaled(x, *, by=2):
        y = x * factor
        return y * by

    for make in breaks.broken(scaled, tmp_path):
        assert make()(np.ones(2)).tolist() == [6.0, 6.0]


def test_ways_share_the_tests_out():
    """Each way runs its share of the tests, which is always the same."""
    for way in ways.WAYS:
        taken = [way.is_chosen(f"test_{k}") for k in range(2000)]
        assert abs(sum(taken) * way.every - 2000) < 600, way.name
        assert taken == [way.is_chosen(f"test_{k}") for k in range(2000)]
