"""Tests lists that a loop fills and that only calls such as np.stack, or the caller, read: one program for any number
of iterations.

If such a list is read in another way, or its items are written, the number of iterations is guarded.
"""

import ast
import copy
import os
import subprocess
import sys

import numpy as np
import pytest

import cinductor
from cinductor.capture.syntax.names import Names
from cinductor.testing import assert_same

SIZES = (20, 12, 3, 1, 9, 64, 2)


def compiled(fn, monkeypatch=None):
    return cinductor.compile(fn, backend="interp", dynamic=True)


def agree(f, *args):
    assert_same(f(*copy.deepcopy(args)), f.__wrapped__(*copy.deepcopy(args)))


def captures(f):
    return f._cinductor_job.captures


def rows(n):
    return np.random.default_rng(n).integers(-9, 9, (n, 4)) / 8


def states(x):
    gathered = []
    state = np.zeros(4)
    for row in x:
        state = np.maximum(row, state * 0.5)
        gathered.append(state)
    return np.stack(gathered)


def several(x):
    numbers, doubled, whole = [], [], []
    for k in range(x.shape[0]):
        numbers.append(x[k].max())
        doubled.append(x[k] * 2)
        whole.append(k * x.shape[0])
    return np.array(numbers), len(doubled), np.asarray(doubled), np.array(whole) + len(whole)


def joined(x):
    rows, squares, numbers = [], [], []
    for row in x:
        rows.append(row * 2)
        squares.append(np.outer(row, row))
        numbers.append(row[0])
    return np.concatenate(rows), np.vstack(rows), np.hstack(rows), np.concatenate(squares), np.vstack(squares), np.hstack(numbers)


def inner_and_outer(x):
    table = []
    for row in x:
        line = []
        for value in x[:, 0]:
            line.append(value * row[1])
        table.append(np.array(line))
    return np.stack(table)


def lives_on(x):
    gathered = []
    state = x[0] * 0.0
    for row in x:
        state = state + row
        gathered.append(state)
    table = np.stack(gathered)
    state += 1
    table[0] = 9.0
    return table, state, np.stack(gathered[:0] or [state])


def read_twice(x):
    gathered = []
    for row in x:
        gathered.append(row + 1)
    first = np.stack(gathered)
    first[0] = 0
    return first, np.stack(gathered), len(gathered)


def in_a_helper(x):
    return states(x) + states(x * 2)


ONE = [states, several, joined, inner_and_outer, read_twice, in_a_helper]


@pytest.mark.parametrize("fn", ONE, ids=lambda fn: fn.__name__)
def test_one_program_for_any_number_of_iterations(fn):
    f = compiled(fn)
    for n in SIZES:
        agree(f, rows(n))
    assert captures(f) == 1 and f.failed_checks == 0


# --- lists that are returned ---


def returned_rows(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    return gathered, len(gathered), x.shape


def returned_numbers(x):
    pythons, numpys, whole = [], [], []
    for k in range(len(x)):
        pythons.append(float(x[k, 0]) / 2)
        numpys.append(x[k, 1] * 2)
        whole.append(k * len(x))
    return pythons, numpys, whole


def returned_with_the_last(x):
    gathered = []
    state = np.zeros(4)
    for row in x:
        state = np.maximum(row, state * 0.5)
        gathered.append(state)
    return gathered, state


def of_many_lengths(x):
    gathered = []
    for k in range(len(x)):
        gathered.append(x[:k, 1] * 2)
    return gathered


def as_data_decide(x):
    lists = []
    for k in range(len(x)):
        near = np.nonzero(np.abs(x - x[k]).max(axis=1) < 1)[0]
        lists.append(near[near != k])
    return lists


def planes_of_many_sizes(x):
    gathered = []
    for k in range(len(x)):
        gathered.append(np.outer(x[x[:, 0] > x[k, 0], 0], x[:k, 1]))
    return gathered, len(gathered)


class Holder:
    def method(self, x):
        gathered = []
        for row in x:
            gathered.append(row[row > 0])
        return gathered


RETURNED = [returned_rows, returned_numbers, returned_with_the_last, of_many_lengths]
RETURNED += [as_data_decide, planes_of_many_sizes, Holder().method]


@pytest.mark.parametrize("fn", RETURNED, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("first", [20, 2, 0])
def test_a_list_that_is_returned(fn, first):
    f = compiled(fn)
    for n in (first, 1, 0, *SIZES):
        agree(f, rows(n))
        lists = f(rows(n))
        for item in lists if type(lists) is list else lists[0]:
            assert not isinstance(item, np.ndarray) or item.base is None
    # A program first made for size 0 or 1 only serves that size, because such an array has no stride order.
    assert captures(f) <= (3 if first == 0 else 1) and f.failed_checks == 0


def test_the_last_item_is_what_else_is_returned():
    f = compiled(returned_with_the_last)
    for n in SIZES:
        gathered, state = f(rows(n))
        assert gathered[-1] is state
    gathered, state = f(rows(0))
    assert gathered == [] and not state.any()


def test_less_memory_than_all_rows_could_take():
    """If the largest possible buffer cannot be allocated, the original function runs."""
    code = """if 1:
        import resource, numpy as np, cinductor, test_gathers
        f, x = cinductor.compile(test_gathers.as_they_are, backend="interp", dynamic=True), np.arange(12e3)
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        most, needed = 8 * x.size**2, 4 * x.size**2  # the buffer's capacity, and the bytes that are used
        resource.setrlimit(resource.RLIMIT_AS, (taken + (most + needed) // 2, resource.RLIM_INFINITY))
        if {first}:
            f(x[:9])
        found = f(x)
        assert len(found) == x.size and found[-1] == 2 * x[-1] and found[0].shape == (1,)
    """
    for first in (True, False):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code.format(first=first)], check=True, env=env)


def as_they_are(x):
    gathered = []
    for k in range(len(x)):
        gathered.append(x[k : k + int(x[0] == 0)] * 2)
    return gathered


def helped(x):
    def inner(y):
        gathered = []
        for row in y:
            gathered.append(row * 3)
        return gathered

    return inner(x)[0], returned_rows(x)[0][-1]


def around_itself(x):
    gathered, rest = [], None
    if len(x) > 3:
        rest = around_itself(x[2:])
    for row in x:
        gathered.append(row * 3)
    return gathered, rest


@pytest.mark.parametrize("fn", [helped, around_itself], ids=lambda fn: fn.__name__)
def test_what_only_another_function_returns(fn):
    f = compiled(fn)
    for n in SIZES[:5]:
        agree(f, rows(n))


def test_nothing_to_stack():
    f = compiled(states)
    agree(f, rows(5))
    for _ in range(3):
        with pytest.raises(ValueError, match="need at least one array to stack"):
            f(rows(0))
    agree(f, rows(7))
    assert captures(f) == 1
    f = compiled(several)
    for n in (5, 0, 7):
        agree(f, rows(n))
    f = compiled(states)
    with pytest.raises(ValueError, match="need at least one array to stack"):
        f(rows(0))
    agree(f, rows(3))


def test_as_many_rows_as_data_decide():
    def positive(x):
        gathered = []
        total = 0.0
        chosen = x[x[:, 0] > 0]
        for k in range(chosen.shape[0]):
            total += chosen[k, 1]
            gathered.append(chosen[k] + total)
        return np.stack(gathered)

    f = compiled(positive)
    for n in (20, 9, 30):
        agree(f, rows(n))
    assert captures(f) == 1
    with pytest.raises(ValueError, match="need at least one array to stack"):
        f(-np.ones((4, 4)))


def last_is_written(x):
    gathered = []
    state = x[0] * 0.0
    for row in x:
        state = state + row
        gathered.append(state)
    state += 1
    return np.stack(gathered), state


def by_a_loop(x):
    gathered, total = [], 0.0
    for row in x:
        gathered.append(row * 2)
    for row in gathered:
        total = total + row
    return total


def by_two_loops(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    for row in x:
        gathered.append(row * 3)
    return np.stack(gathered)


def by_an_item(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    gathered[-1] += 1
    return np.stack(gathered), gathered[0]


def by_an_unpacking(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    return np.stack([*gathered]), [r + 1 for r in gathered]


def returned(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    return gathered, np.stack(gathered)


def by_another_name(x):
    gathered = others = []
    for row in x:
        gathered.append(row * 2)
    others.append(x[0])
    return np.stack(gathered)


def by_a_sum(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    return sum(gathered)


def behind_an_effect(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    print("", end="")
    return sum(gathered), np.stack(gathered)


said = []


@cinductor.disable
def say(value):
    said.append(value)
    return value


def after_a_break(x):
    first, second, third = [], [], []
    state = x[0] * 0.0
    for row in x:
        state = state + row
        first.append(row * 2)
        second.append(row.sum())
        third.append(state)
    say(1)
    state += 1
    for row in x:
        second.append(row[1])
    return sum(first), len(second), np.array(second), np.stack(third), state


def between_effects(x):
    print("", end="")
    gathered = []
    for row in x:
        gathered.append(row * 2)
    print("", end="")
    return sum(gathered), np.stack(gathered)


def between_breaks(x):
    x = say(x * 2)
    gathered = []
    for row in x:
        gathered.append(row * 2)
    say(2)
    return sum(gathered), np.stack(gathered)


def breaks_while_it_grows(x):
    gathered = []
    for row in x:
        gathered.append(row * 2)
    n = len(gathered)
    say(n)
    gathered.append(x[0])
    return np.stack(gathered), n, say(len(gathered))


def by_a_function(x):
    def first(values):
        return values[0]

    gathered = []
    for row in x:
        gathered.append(row * 2)
    return first(gathered), np.stack(gathered)


def not_empty(x):
    gathered = []
    gathered.append(x[0] * 3)
    for row in x:
        gathered.append(row * 2)
    return np.stack(gathered)


def some_iterations(x):
    gathered = []
    for k in range(x.shape[0]):
        if k % 2 == 0:
            gathered.append(x[k] * 2)
    return np.stack(gathered)


def by_the_iterations_of_two(x):
    gathered = []
    for row in x:
        for value in x[:, 1]:
            gathered.append(value * row[0])
    return np.array(gathered)


def the_last_of_many(x):
    line = []
    for row in x:
        line = []
        for value in x[:, 1]:
            line.append(value * row[0])
    return np.array(line)


def in_a_branch(x):
    total = np.zeros(4)
    for row in x:
        if row[0] > 0:
            line = []
            for other in x:
                line.append(other * row[1])
            total = total + np.stack(line).sum(axis=0)
    return total


def while_it_lasts(x):
    gathered, k = [], 0
    while k < x.shape[0] and x[k, 0] < 0.9:
        gathered.append(x[k] * 2)
        k += 1
    return np.stack(gathered) if gathered else x


MANY = [by_the_iterations_of_two, the_last_of_many, in_a_branch, while_it_lasts]
MANY += [last_is_written, lives_on, by_a_loop, by_two_loops, by_an_item, by_an_unpacking, returned, by_another_name]
MANY += [between_effects, after_a_break, between_breaks, breaks_while_it_grows, by_a_sum, behind_an_effect, by_a_function, not_empty, some_iterations]


@pytest.mark.parametrize("fn", MANY, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dynamic", [True, False])
def test_right_where_a_list_is_looked_at(fn, dynamic):
    f = cinductor.compile(fn, backend="interp", dynamic=dynamic)
    for n in SIZES[:5]:
        agree(f, rows(n))


def test_an_item_that_was_written_to_is_not_the_row_of_the_buffer():
    """Also for a list of known length."""
    for fn in (last_is_written, by_an_item):
        f = cinductor.compile(fn, backend="interp", dynamic=False)
        agree(f, rows(20))


def names_of(source, kind="gathers"):
    (function,) = ast.parse(source).body
    return getattr(Names(function), kind)


def test_which_names_only_gather():
    good = "def f(x):\n  a, b = [], []\n  for r in x:\n    a.append(r)\n    b.append(g(r))\n  return g(a), len(b)"
    assert names_of(good) == {"a", "b"}
    for line in (
        "return a",
        "return g(a, 1)",
        "return g(*a)",
        "return g(k=a)",
        "return a[0]",
        "c = a",
        "a += [1]",
        "a.extend(x)",
        "return [v for v in a]",
        "return lambda: g(a)",
        "for v in a: pass",
        "a = [1]",
        "a = list()",
        "del a",
        "p = a.append",
        "global a",
        "with a: pass",
        "return (a,)",
        "return not a",
        "g(x, a.append(1))",
    ):
        text = f"def f(x):\n  a = []\n  for r in x:\n    a.append(r)\n  {line}"
        used = names_of(text)
        assert used == (frozenset() if line != "g(x, a.append(1))" else {"a"}), line
    for line, is_result in (
        ("return a", True),
        ("return g(a), a, x", True),
        ("return (a, a)", True),
        ("return a[0]", False),
        ("return a, a[0]", False),
        ("return [a]", False),
        ("return a if x else a", False),
        ("if x:\n    return a\n  return a", False),
        ("return *a, 1", False),
        ("b = a\n  return a", False),
    ):
        text = f"def f(x):\n  a = []\n  for r in x:\n    a.append(r)\n  {line}"
        assert names_of(text) == frozenset(), line
        assert names_of(text, "results") == (frozenset("a") if is_result else frozenset()), line
    assert names_of("def f(x):\n  a = []\n  g(a)\n  for r in x:\n    a.append(r)") == frozenset()
