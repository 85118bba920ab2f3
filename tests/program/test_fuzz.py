"""Compares random programs, compiled and in NumPy: values, dtypes, shapes, writes into arguments, and shared memory.

There are programs of array operations, programs of loops and branches that sometimes raise, programs that repeat
operands, and programs over numbers of many kinds. `make test` runs a fixed set of each and a few new ones; `make
fuzz` runs CINDUCTOR_FUZZ more of each.
"""

import copy
import importlib.util
import os
import re
import signal
import warnings

import bound_generator
import loop_generator
import number_generator
import numpy as np
import operand_generator
import program_generator as generator
import pytest
import ways

import cinductor
from cinductor import testing

FIXED = range(120)
MORE = int(os.environ.get("CINDUCTOR_FUZZ", "0"))
NEW = [int.from_bytes(os.urandom(4), "little") for _ in range(20 + MORE)]
BATCH = 10
EXACT = {"numerics": "exact"}


def load(source, path):
    """Import a program from a file of its own, like a user's module."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def run(fn, arrays):
    """The result of fn, or the type and text of its exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return fn(*arrays), None
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            return None, (type(error), str(error))


def assert_same(got, want):
    """Same kind, dtype, shape and bits; all NaN are equal."""
    assert type(got) is type(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


def assert_same_bits(program, made, seed, got):
    """Other ways give exactly the bits of the compiled function."""
    wrapper = ways.Way("python", {"options": {"wrapper": "python"}})
    for other in [wrapper, *ways.of_program(seed, "c, unfused", "interp", "broken")]:
        arrays = generator.make_arguments(made.arguments, seed, np)
        again, _ = run(other.compile(other.version(program, seed), **EXACT), arrays)
        for k, (a, b) in enumerate(zip(got, again, strict=True)):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"result {k}, {other.name}\n{made.source()}"


def check(seed, folder):
    """One program under NumPy and compiled, on equal inputs."""
    made = generator.Generator(seed)
    source = made.source()
    program = load(source, folder / f"program_{seed}.py")
    ours, theirs = (generator.make_arguments(made.arguments, seed, np) for _ in range(2))
    want, error = run(program, theirs)
    fast = cinductor.compile(program, options=EXACT)
    for _ in range(2):  # the capture, then the replay
        ours = generator.make_arguments(made.arguments, seed, np)
        got, raised = run(fast, ours)
        assert raised == error, source
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"argument {k}\n{source}")
        if error:
            continue
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            try:
                assert_same(a, b)
            except AssertionError as wrong:
                raise AssertionError(f"result {k}: {wrong}\n{source}") from None
            shared = [np.shares_memory(a, x) for x in ours]
            assert shared == [np.shares_memory(b, x) for x in theirs], f"result {k} shares memory with arguments: {shared}\n{source}"
    if not error and seed % 4 == 0:
        assert_same_bits(program, made, seed, got)


def batches(seeds):
    seeds = list(seeds)
    return [seeds[k : k + BATCH] for k in range(0, len(seeds), BATCH)]


@pytest.mark.parametrize("seeds", batches(FIXED), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_fixed_programs(seeds, tmp_path, pieces_are_compiled):
    for seed in seeds:
        check(seed, tmp_path)


@pytest.mark.parametrize("number", range(len(batches(NEW))))
def test_new_programs(number, tmp_path, pieces_are_compiled):
    for seed in batches(NEW)[number]:
        check(seed, tmp_path)


# --- loops and branches ---------------------------------------------------------------------------

# The last fourteen are regression tests. The rest of a call runs in NumPy while names hold values of closed blocks; an int
# that an iteration may keep does not become a float. An inner loop of no iterations leaves a Python int unchanged.
# What an iteration before the region returned; arrays that a loop exchanged before a break; memory whose size data decide.
# A number that is Python's or NumPy's in an inner loop. A name that a piece leaves unbound after it has fallen back.
# A name that no iteration binds, because the one before the region ends the loop. A loop of a huge number of iterations in an arm
# that is not taken. A size that uses the size before it twice, in each iteration. A view that an inner loop makes; a view of an
# array that iterations exchange.
LOOPS = [*range(60), 2964097208, 70067, 70093, 70178, 3321422140, 4040863078, 3242387038, 943660347, 921017880, 2335782939, 2740258806, 2178290743,
         1937621765, 3187758362, 786243343, 2533621704, 4117872429]
# The last one is a regression test: an array that iterations reverse until one returns it.
# Regression tests: a loop of fewer iterations than the ones like it ran before their regions; a list of NumPy's and Python's floats.
LISTS = [2309850891, 2774204822, 3341958960, 4154172998]
WIDE_LOOPS, BOUND = [*range(40), 2084671342], [*range(60), 3633115973]
# The last fourteen are regression tests. The result of an inner function; a `finally` that returns; the possible types of a
# value after many branches; a name that only pieces bind. A view whose size depends on data; the stride order of an
# empty array; a name of a finished iteration when the rest runs in NumPy. The truth of an int known after a break.
# A name that a piece leaves unbound; what a function made in a branch does to names around it; an array without elements.
# A loop in a `finally` after a return.
OPERANDS = [*range(60), 132, 152, 288, 672, 802, 1061, 2149, 2514, 2545, 1021125403, 792799716, 1445826620, 1283096303, 2537889159]
# The last one is a regression test: a name that a loop leaves unbound.
FALLING = [*range(29), 69]
# The last three are regression tests: a repeated number of one class or another; an int that float32 does not hold; an int of
# which NumPy makes a ulonglong.
NUMBERS = [*range(200), 154375692, 2638989079, 141049612]
NEW_LOOPS = [int.from_bytes(os.urandom(4), "little") for _ in range(MORE)]


class Endless(BaseException):
    """Raised when a program takes too long; the program cannot catch it."""


def stop(*_):
    raise Endless


def is_defined(program, calls):
    """True if NumPy finishes every call in time, without a float that is cast to an integer dtype that does not hold it:
    the result of that depends on the vector level. The arguments are modified.
    """
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore", invalid="warn"):
        warnings.simplefilter("always")
        for arguments in calls:
            signal.alarm(5)
            try:
                program(*arguments)
            except Exception:  # compared later
                continue
            except Endless:
                return False
            finally:
                signal.alarm(0)
    return not any("encountered in cast" in str(w.message) for w in seen)


def identities(result, arguments):
    """Which returned values are arguments, and which share memory with them."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    values = result if isinstance(result, tuple) else ()
    return [(v is a, isinstance(v, np.ndarray) and np.shares_memory(v, a)) for v in values for a in arrays]


def check_call(program, compiled, arguments):
    """One call equals NumPy's to the last bit: results, arguments after it, exception."""
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        want, expected = testing.outcome(program, theirs)
        got, raised = testing.outcome(compiled, ours)
    assert (type(raised), str(raised)) == (type(expected), str(expected)), f"{raised!r} instead of {expected!r}"
    testing.assert_same(ours, theirs, where="arguments")
    testing.assert_same(got, want)
    assert identities(got, ours) == identities(want, theirs)


def check_loops(seed, folder, always, generator=loop_generator.Generator):
    """One program at three sizes, twice each: from the second call on, captured programs are replayed."""
    made = generator(seed)
    source = made.source()
    program = load(source, folder / f"loops_{seed}.py")
    calls = [made.arguments(size, seed, np) for size in made.sizes]
    if not is_defined(program, copy.deepcopy(calls)):  # there is nothing to compare with
        return
    # The sign of a zero that is the extreme of an axis is NumPy's with these numerics only (docs/limits.md).
    options = EXACT if re.search(r"\.(max|min)\(axis", source) else {}
    for way in ways.of_program(seed, *always):
        compiled = way.compile(way.version(program, seed), **options)
        for number, arguments in enumerate([calls[k // 2] for k in range(6)]):
            signal.alarm(120)
            try:
                check_call(program, compiled, arguments)
            except (AssertionError, Endless) as wrong:
                raise AssertionError(f"seed {seed}, {way.name}, call {number}: {wrong!r}\n{source}") from wrong
            finally:
                signal.alarm(0)


@pytest.fixture
def everything_is_compiled(pieces_are_compiled):
    """Compile everything. A program that does not end is a failure."""
    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seeds", batches(LOOPS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_fixed_loops(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, ["interp", "dynamic", "unfused"])


@pytest.mark.parametrize("seeds", batches(WIDE_LOOPS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_wide_loops(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, ["interp", "dynamic"], loop_generator.Wide)
        if seed % 4 == 0:
            check_loops(seed, tmp_path, ["interp", "dynamic"], loop_generator.Lists)


@pytest.mark.parametrize("seed", LISTS)
def test_lists(seed, tmp_path, everything_is_compiled):
    check_loops(seed, tmp_path, ["c", "dynamic"], loop_generator.Lists)


@pytest.mark.parametrize("seeds", batches(BOUND), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_names_that_may_be_unbound(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, [("interp", "dynamic", "unfused")[seed % 3]], bound_generator.Generator)


@pytest.mark.parametrize("seeds", batches(OPERANDS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_operands(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, ["interp", "dynamic"], operand_generator.Generator)


def test_a_view_of_a_closed_block_when_the_rest_runs_in_numpy(tmp_path, everything_is_compiled):
    check_loops(856402233, tmp_path, ["unfused"], operand_generator.Generator)


@pytest.mark.parametrize("seeds", batches(FALLING), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_falls_in_expressions(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, ["falling"], operand_generator.Generator if seed % 2 else loop_generator.Generator)


@pytest.mark.parametrize("seeds", batches(NUMBERS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_numbers(seeds, tmp_path, everything_is_compiled):
    for seed in seeds:
        check_loops(seed, tmp_path, ["dynamic" if seed % 2 else "interp"], number_generator.Generator)


@pytest.mark.parametrize("number", range(len(batches(NEW_LOOPS))))
def test_new_loops(number, tmp_path, everything_is_compiled):
    for seed in batches(NEW_LOOPS)[number]:
        loops = loop_generator.Wide if seed % 2 else loop_generator.Generator
        for made in (bound_generator.Generator, number_generator.Generator, operand_generator.Generator, loops):
            check_loops(seed, tmp_path, ["interp", "dynamic", "unfused"], made)
