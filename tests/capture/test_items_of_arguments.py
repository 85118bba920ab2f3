"""Tests values read from arguments that are Python objects: items of lists, tuples and dicts, also by an index or key
that is itself an argument. A call with other values must not reuse the code compiled for the first ones.
"""

import numpy as np
import pytest

import cinductor
from cinductor import testing


def of_a_list(held, k, t):
    return held[k % 2] + 1, held[-(k % 2) - 1]


def at_its_number(held, k, t):
    return held[k]


def under_a_number(held, k, t):
    return {0.5: held[0], 1.5: held[1]}[t], held[k % 3 - 2]


def in_one_that_is_made(held, k, t):
    return (held[0], held[1], 3)[k % 3], [held, held[0]][k % 2]


def of_an_exception(held, k, t):
    try:
        raise ValueError(k, t)
    except ValueError as error:
        return error.args[0] + held[0], error.args[1]


def of_a_new_exception(held, k, t):
    return ValueError(k % 3).args[0] * held[0], str(KeyError(t))


def written(held, k, t):
    held[k % 2] += 1
    held[k % 3 - 1] = held[k % 2] * t
    return held[0]


NUMBERS = [(-1, 0.5), (0, 1.5), (-1, 0.5), (1, 0.5), (-2, 1.5), (0, 0.5), (1, 1.5)]
PROGRAMS = [
    *(of_a_list, at_its_number, under_a_number, in_one_that_is_made),
    *(of_an_exception, of_a_new_exception, written),
]


def agree(program, compiled, make, *rest):
    ours, theirs = make(), make()
    got, raised = testing.outcome(compiled, (ours, *rest))
    want, expected = testing.outcome(program, (theirs, *rest))
    assert (type(raised), str(raised)) == (type(expected), str(expected))
    testing.assert_same(got, want)
    testing.assert_same(ours, theirs, where="arguments")


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_of_a_list(program, dynamic):
    compiled = cinductor.compile(program, dynamic=dynamic, backend="interp")
    for k, t in NUMBERS:
        agree(program, compiled, lambda: [np.arange(3.0), np.ones(3)], k, t)


def under_keys(held, k, t):
    return held[k], held[t], held[k % 2, t > 1]


@pytest.mark.parametrize("dynamic", [None, True])
def test_of_a_dict(dynamic):
    def make():
        pairs = {(a, b): np.full(2, a + b) for a in (0, 1) for b in (False, True)}
        return {**{n: np.arange(2.0) + n for n in (-2, -1, 0, 1, 0.5, 1.5)}, **pairs}

    compiled = cinductor.compile(under_keys, dynamic=dynamic, backend="interp")
    for k, t in (*NUMBERS, (7, 0.5)):
        agree(under_keys, compiled, make, k, t)
