"""Calls a function, changes one thing that it can reach, and calls it again next to Python; then undoes the change
and calls once more.

The module of a function is loaded twice: capture runs in one copy, Python in the other. changing_world.py finds
the same places in both, and both are changed in the same way. The functions are those of tests/support/worlds.py, which
read attributes of every kind, the programs of tests/programs, the reproducers, and programs of
tests/support/state_generator.py.
"""

import functools
import importlib.util
import os
import random
import re
import subprocess
import sys
import types

import numpy as np
import programs
import pytest
import state_generator
import worlds
from changing_world import other_at, places
from folders import TESTS
from test_hidden_state import outcome, uncollected

import cinductor

MORE = int(os.environ.get("CINDUCTOR_FUZZ", "0"))
BATCH = 20
SEEDS = [*range(100), *(int.from_bytes(os.urandom(4), "little") for _ in range(MORE))]
TIMES = 8  # changes per compiled function
SECONDS = 20  # seconds per call
ADDRESS = re.compile(r"0x[0-9a-f]+")
UNFIT = (TypeError, AttributeError, ValueError, LookupError)  # raised by changes that cannot be made


class World:
    """A freshly loaded module, a function in it, and the arguments of the function."""

    def __init__(self, module, fn, given):
        self.module, self.fn, self.given, self.called = module, fn, [*given], fn
        if not hasattr(module, "LOG"):
            module.LOG = []

    def run(self):
        """Call the function; return everything that it did."""
        given = [v.copy() if type(v) is np.ndarray else v for v in self.given]
        with np.errstate(all="ignore"):
            return ADDRESS.sub("0x", repr(outcome(self.called, self.module, given, SECONDS)))


@functools.cache
def code_of(path):
    return compile(path.read_text(), str(path), "exec")


def load(path):
    """The module of a file, under the same name each time."""
    spec = importlib.util.spec_from_file_location(f"world_of_{path.stem}", path)
    spec.loader.get_code = lambda name: code_of(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def of_worlds(name):
    def made():
        module = load(TESTS / "support" / "worlds.py")
        return World(module, getattr(module, name), (np.arange(1.0, 4.0), *module.ARGUMENTS.get(name, ())))

    return made


def of_programs(name):
    theme, function = name.split(".")

    def made():
        module = load(TESTS / "programs" / f"{theme}.py")
        row = programs.Program(*next(row for row in module.PROGRAMS if row[0].__name__ == function))
        return World(module, row.function, row.make(row.sizes[0], np.random.default_rng(0)))

    return made


def of_reproducers():
    """The functions that the reproducers compare with NumPy, and their arguments."""
    module, found = load(TESTS / "capture" / "test_reproducers.py"), []

    def note(fn, *arguments, **settings):
        if type(fn) is types.FunctionType and type(settings.get("backend")) in (str, type(None)):
            found.append(World(module, fn, arguments))

    module.same = module.check = note
    for name, test in [*vars(module).items()]:
        if name.startswith("test_") and not hasattr(test, "pytestmark") and not test.__code__.co_argcount:
            try:
                test()
            except Exception:  # tests that check more than results
                continue
    return found


def of_generator(seed, folder):
    source = state_generator.Generator(seed).source()
    path = folder / f"program_{seed}.py"
    path.write_text(source)

    def made():
        module = load(path)
        more = module.more() if hasattr(module, "more") else ()
        return World(module, module.program, (np.random.default_rng(seed).random(4), *more))

    return made


def change(both, key, seed):
    """Change a place in both worlds in the same way. Return a function that undoes it, or None if that is impossible.
    """
    undone = []
    for found in both:
        place = found[key]
        new = other_at(place, random.Random(seed))
        if new is place.value:
            return None
        try:
            place.put(new)
        except UNFIT:
            return None if not undone else pytest.fail(f"{key} can be changed in one world only")
        undone.append((place.put, place.value))
    return undone


def put_back(undone):
    """Undo a change; False if the program has removed the place."""
    try:
        for put, value in reversed(undone):
            put(value)
    except (AttributeError, LookupError):
        return False
    return True


def compare(worlds, what):
    """Call both and compare. False if Python's call does not end: where the time limit stops it is chance."""
    want, got = (world.run() for world in reversed(worlds))
    if want.startswith("('endless'"):
        return False
    assert got == want, f"{what}\n{got}\ninstead of\n{want}"
    return True


@uncollected()
def explore(made, seed, count, name=""):
    """Make changes for a function in two worlds, up to TIMES for each one compiled; return their number. A place is changed
    again only after all others.
    """
    rng, done, changed = random.Random(seed), 0, set()
    while count > 0:
        pair = made(), made()
        compiled, plain = pair
        compiled.called = cinductor.compile(compiled.fn, backend="interp", options={"recompile_limit": 64, "numerics": "exact"})
        if not all(compare(pair, f"{name}, call {call}, before any change") for call in range(2)):
            return done
        for _ in range(min(count, TIMES)):
            count -= 1
            both = [places(world.fn, world.given) for world in pair]
            keys = [key for key in both[0] if key in both[1]]
            key, number = rng.choice([key for key in keys if key not in changed] or keys), rng.random()
            changed.add(key)
            undone = change(both, key, number)
            if undone is None:
                continue
            done += 1
            what = f"{name}: {key} changed (seed {seed}, number {number})"
            is_well = compare(pair, what)
            if not (is_well and put_back(undone) and compare(pair, f"{what} and undone")):
                return done
    return done


pytestmark = pytest.mark.filterwarnings("ignore::cinductor.CinductorWarning")


@pytest.fixture(autouse=True)
def in_full(pieces_are_compiled):
    """Pieces are compiled, too. Functions that reach a limit of specialisations warn."""


@pytest.mark.parametrize("name", [fn.__name__ for fn in worlds.PROGRAMS])
def test_attributes(name):
    explore(of_worlds(name), 0, 20 + MORE // 100, name)


def test_programs():
    """A sample of the programs, because most changes need a new capture."""
    names = [*programs.load()]
    for seed, name in enumerate(names if MORE else names[::4]):
        explore(of_programs(name), seed, 2, name)


def test_reproducers():
    of_one, of_other = of_reproducers(), of_reproducers()
    for seed, pair in enumerate(zip(of_one, of_other, strict=True)):
        explore(iter(pair).__next__, seed, 1, pair[0].fn.__qualname__)


@pytest.mark.parametrize("first", range(0, len(SEEDS), BATCH))
def test_generated(first, tmp_path):
    for seed in SEEDS[first : first + BATCH]:
        explore(of_generator(seed, tmp_path), seed, 4, f"program {seed}")


def imports_a_module(x):
    import module_of_this_test

    return x * module_of_this_test.k


def imports_a_name(x):
    from module_of_this_test import k

    return x * k


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("fn", [imports_a_module, imports_a_name])
def test_an_import_finds_the_module_of_today(fn, backend, monkeypatch):
    compiled = cinductor.compile(fn, backend=backend)
    for k in (2.0, 2.0, 3.0, 3.0, 2.0):
        module = types.ModuleType("module_of_this_test")
        module.k = k
        monkeypatch.setitem(sys.modules, "module_of_this_test", module)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(np.ones(3)), np.full(3, k))


def closed_over():
    k = 2.0

    def f(x):
        try:
            return x * k
        except NameError as error:
            return str(error)

    def put(*values):
        nonlocal k
        if values:
            (k,) = values
        else:
            del k

    return f, put


@pytest.mark.parametrize("backend", ["interp", "c"])
def test_a_name_of_a_function_around_may_be_missing(backend):
    fn, put = closed_over()
    compiled = cinductor.compile(fn, backend=backend)
    for values in ((2.0,), (), (3.0,), (), (2.0,)):
        put(*values)
        for _ in range(2):
            assert repr(compiled(np.ones(3))) == repr(fn(np.ones(3)))


REPLACED = """
import math
import numpy as np
import cinductor
from numpy.polynomial import polynomial

clip, largest, product, value = np.clip, np.nanmax, math.prod, polynomial.polyval
np.clip = lambda x, low, high: clip(x, low, high) + 100
np.max = largest
np.ptp = [].append  # without a module
math.prod = lambda values: product(values) + 1
math.isclose = lambda a, b: "close"
polynomial.polyval = cinductor.compile(value)

def replaced(x):
    y = x * 2
    return np.clip(y, 0, 1), np.max(y), math.prod(x[:2]), math.isclose(x[1], 2), polynomial.polyval(0.5, x), polynomial.polyint(x, lbnd=x[1])

for backend in ("c", "interp"):
    compiled = cinductor.compile(replaced, mode="now", backend=backend)
    for x in (np.array([1.0, np.nan, 3.0]), np.arange(4.0)):
        for _ in range(2):
            for a, b in zip(compiled(x), replaced(x), strict=True):
                np.testing.assert_array_equal(a, b)
            assert isinstance(compiled(x)[3], str)
"""


def test_functions_of_libraries_that_were_replaced_before():
    """Tables of NumPy's functions are filled in the first capture, when names may already have other functions."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", REPLACED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
