"""Tests functions of which data decide which object they return: an argument, a view, or an array that the call makes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cinductor

GIVEN = [(1.0, 2, 0, 0), (-1.0, 2, 0, 3), (0.0, 0, 0, 0), (1.0, 3, 0, 0), (-1.0, -2, -3, 1)]


def trimmed(a):
    if len(a) == 0 or a[-1] != 0:
        return a
    for i in range(len(a) - 1, -1, -1):
        if a[i] != 0:
            break
    return a[: i + 1]


def itself_or_view(a):
    return a if a[0] > 0 else a[1:3]


def two_views(a):
    if a[0] > 0:
        return a[1:]
    return a[:2]


def made_or_view_of_it(a):
    b = a * 2
    if a[0] > 0:
        return b
    return b[::2]


def reversed_with_a_number(a):
    if a[0] > 0:
        return a, a.sum()
    return a[::-1], 2.0


def transposed(a):
    if a[0] > 0:
        return a.reshape(2, 2)
    return a.reshape(2, 2).T


def from_a_number(a):
    n = int(abs(a[1]))
    if a[0] > 0:
        return a[n:]
    return a


def made_or_itself(a):
    if a[0] > 0:
        return a + 1
    return a


def three_ways(a):
    if a[0] > 0:
        return a
    if a[3] > 2:
        return a + 1
    return a[1:]


def twice(a):
    b = trimmed(a)
    return b, b


def both(a):
    return a, trimmed(a)


def through_two(a):
    return trimmed(trimmed_copy(a))


def trimmed_copy(a):
    return np.array(trimmed(a), copy=True)


def written_first(a):
    b = a * 2
    if a[0] > 0:
        b[0] = 7
        return b
    return b[1:]


def sum_of_polynomials(a):
    b, c = trimmed_copy(a), trimmed_copy(a[::-1])
    if len(b) > len(c):
        b[: c.size] += c
        found = b
    else:
        c[: b.size] += b
        found = c
    return trimmed(found)


def in_a_list(a):
    return [trimmed(a), 1, {"b": itself_or_view(a)}]


def new_object_of_the_same_elements(a):
    if a[0] > 0:
        return a
    return a[...]


def view_of_chosen(a):
    return trimmed(a)[:1]


def written_after(a):
    b = trimmed(a)
    b[0] = 5
    return b


def part_of_made(a):
    b = a * 2
    if a[0] > 0:
        b = b[:2]
    return b


FUNCTIONS = [
    trimmed, itself_or_view, two_views, made_or_view_of_it, reversed_with_a_number, transposed, from_a_number,
    made_or_itself, three_ways, twice, both, through_two, written_first, sum_of_polynomials, in_a_list,
]  # fmt: skip
UNSURE = [new_object_of_the_same_elements, view_of_chosen, written_after, part_of_made]


def arrays_in(value):
    if isinstance(value, (tuple, list)):
        return [found for item in value for found in arrays_in(item)]
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    return [value] if isinstance(value, np.ndarray) else []


def seen(arrays):
    """Strides, flags, identities and elements of these arrays."""
    flags = [(*a.strides, a.flags.owndata, a.flags.writeable, a.flags.c_contiguous, a.base is None) for a in arrays]
    same = [(a is b, a.base is b, np.shares_memory(a, b)) for a in arrays for b in arrays]
    return flags, same, [a.tolist() for a in arrays]


def outcome(fn, elements):
    given = np.array(elements)
    result = fn(given)
    first = seen([given, *arrays_in(result)])
    for array in arrays_in(result):
        array += 1
    return first, seen([given, *arrays_in(result)]), str(result)


def ways_of(fn):
    return [outcome(fn, elements) for elements in GIVEN]


@pytest.mark.parametrize("backend", ["interp", "c", "stencil"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_object_is_numpys(fn, backend):
    compiled = cinductor.compile(fn, fullgraph=True, backend=backend)
    for _ in range(2):
        assert ways_of(compiled) == ways_of(fn)
    assert compiled.stats()["pieces"] == 0 and compiled.stats()["specializations"]


@pytest.mark.parametrize("fn", UNSURE, ids=lambda f: f.__name__)
def test_the_object_is_numpys_if_python_may_decide(fn):
    compiled = cinductor.compile(fn, backend="interp")
    for _ in range(3):
        assert ways_of(compiled) == ways_of(fn)


def test_a_saved_call_returns_the_same_objects(tmp_path):
    text = (
        f"import sys\nsys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import cinductor, test_chosen_objects as t\n"
        "for f in t.FUNCTIONS:\n"
        "    g = cinductor.compile(f, fullgraph=True, backend='interp')\n"
        "    assert t.ways_of(g) == t.ways_of(f), f\n"
        "print(cinductor.stats()['captures'])\n"
    )
    (tmp_path / "program.py").write_text(text)
    env = {**os.environ, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
    counts = []
    for _ in range(2):
        done = subprocess.run([sys.executable, str(tmp_path / "program.py")], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        counts.append(int(done.stdout))
    assert counts[0] >= len(FUNCTIONS) and counts[1] == 0
