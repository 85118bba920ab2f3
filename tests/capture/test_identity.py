"""Tests reads of what only one object has, its address, and of what only one process has."""

import collections
import functools
import operator
import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import cinductor


class Thing:
    def method(self):
        return 1


Pair = collections.namedtuple("Pair", "a b")

# Each one returns the object, and its text or hash.
READS = {
    "repr": lambda p, x: (p, repr(p)),
    "str": lambda p, x: (p, "" + str(p)),
    "ascii": lambda p, x: (p, ascii(p)),
    "format": lambda p, x: (p, format(p)),
    "f-string": lambda p, x: (p, f"{p}"),
    "f-string with repr": lambda p, x: (p, f"{p!r}"),
    "f-string with a width": lambda p, x: (p, f"{p!s:>80}".strip()),
    "percent": lambda p, x: (p, "%s" % p),  # noqa: UP031
    "percent, tuple": lambda p, x: (p, "%r" % (p,)),  # noqa: UP031
    "percent, dict": lambda p, x: (p, "%(a)s" % {"a": p}),  # noqa: UP031
    "str.format": lambda p, x: (p, "{}".format(p)),  # noqa: UP032
    "str.format by name": lambda p, x: (p, "{a!r}".format(a=p)),  # noqa: UP032
    "format_map": lambda p, x: (p, "{a}".format_map({"a": p})),
    "unbound format": lambda p, x: (p, str.format("{}", p)),
    "map of repr": lambda p, x: (p, " ".join(map(repr, [p]))),
    "map of str": lambda p, x: (p, [*map(str, (p,))][0]),
    "methods": lambda p, x: (p, p.__repr__()),
    "object's method": lambda p, x: (p, object.__repr__(p)),
    "methodcaller": lambda p, x: (p, operator.methodcaller("__str__")(p)),
    "__format__": lambda p, x: (p, p.__format__("")),
    "in a list": lambda p, x: (p, repr([p])[1:-1]),
    "in a tuple": lambda p, x: (p, repr((1, p))[4:-1]),
    "in a dict": lambda p, x: (p, repr({1: p})[4:-1]),
    "in many lists": lambda p, x: (p, repr([[[[[[[[[[p]]]]]]]]]])[10:-10]),
    "as a key": lambda p, x: (p, repr({p: 1})[1:-4]),
    "in a named tuple": lambda p, x: (p, repr(Pair(p, 1))[7:-6]),
    "in a deque": lambda p, x: (p, repr(collections.deque([p]))[7:-2]),
    "in a namespace": lambda p, x: (p, str(types.SimpleNamespace(a=p))[12:-1]),
    "bound method": lambda p, x: (p, str(p.method).split(" of ")[1][:-1]),
    "partial": lambda p, x: (p, repr(functools.partial(len, p)).split(", ")[1][:-1]),
    "hash": lambda p, x: (p, hash(p)),
    "hash method": lambda p, x: (p, p.__hash__()),
    "object's hash": lambda p, x: (p, object.__hash__(p)),
    "map of hash": lambda p, x: (p, [*map(hash, [p])][0]),
    "hash of a tuple": lambda p, x: (p, hash(p) if hash((p,)) == hash((p,)) else 0),
    "id": lambda p, x: (p, hash(p) if id(p) == id(p) else 0),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_made", [False, True])
def test_an_address_is_read_in_each_call(name, is_made):
    read = READS[name]

    def makes(p, x):
        made = Thing()
        return read(made, x)

    compiled, kept = cinductor.compile(makes if is_made else read, backend="interp"), []
    for _ in range(4):
        kept.append(compiled(Thing(), np.ones(3)))  # no two live objects have one address
        thing, found = kept[-1]
        assert type(thing) is Thing
        assert found in ((hash(thing),) if isinstance(found, int) else (repr(thing), str(thing)))


def test_the_hash_of_a_nan():
    compiled, kept = cinductor.compile(lambda x: (value := float("nan"), hash(value), x + 1), backend="interp"), []
    for _ in range(3):
        kept.append(compiled(np.ones(3)))
        assert hash(kept[-1][0]) == kept[-1][1]


def test_other_processes_have_other_hashes(tmp_path):
    """A capture that has read a hash of a text, the order of a set or its surroundings is made in each process."""
    script = pathlib.Path(__file__).parents[1] / "support/of_process.py"
    for number in "123":
        folder = tmp_path / number
        folder.mkdir()
        env = os.environ | {"PYTHONHASHSEED": number, "CINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "CINDUCTOR_SAVED_CALLS": "1"}
        done = subprocess.run([sys.executable, script, number], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        assert done.stdout.split("\n") == [f"captures {int(number == '1')}", ""], done.stdout + done.stderr


@pytest.mark.parametrize("backend", ["c", "interp"])
def test_truth_values_are_single_objects(backend):
    def f(x, y):
        some, every = (x > 1).any(), (x > 1).all()
        return (
            some is every, some is not every, some is np.True_, np.False_ is every, some is True, bool(some) is True,
            bool(every) is bool(some), (x[0] == x[0]) is np.True_, every is (y > 1).all(), None is some,
        )  # fmt: skip

    compiled = cinductor.compile(f, backend=backend, fullgraph=True)
    for x in (np.arange(3.0), np.arange(3.0) + 2, np.zeros(3)):
        for y in (np.arange(3.0), np.arange(3.0) + 2):
            assert repr(compiled(x, y)) == repr(f(x, y))
