"""Runs random programs about memory, narrow numbers and containers.

Values, writes, exceptions, draws, layouts, and which results are which arrays or share memory must be NumPy's.
`make fuzz` runs CINDUCTOR_FUZZ new ones.
"""

import copy
import itertools
import signal

import memory_generator
import numpy as np
import pytest
import test_fuzz
import ways

from cinductor import testing

everything_is_compiled = test_fuzz.everything_is_compiled  # the fixture
CALLS = [0, 0, 1, 0, 2, 3, 3, 1, 4]  # calls repeat sizes, aliasing and dtypes of earlier calls, and add new ones
PROGRAMS = [*range(120), 1483360198, 1345255661, 3307642321]  # the last three read arrays without elements
PROGRAMS += [2206600389]  # a loop's only element comes after the last use of an array
PROGRAMS += [3639852861]  # a quotient rounded up of the difference of two quotients
PROGRAMS += [2012579304]  # Python takes the operand of `or` that sizes choose
PROGRAMS += [2771808722]  # the size of a merged array, after a write to memory that arguments share


def owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def copied(arguments):
    """Copies of the arguments that overlap in the same way."""
    memo, made = {}, []
    for value in arguments:
        if not isinstance(value, np.ndarray):
            made.append(copy.deepcopy(value))
            continue
        if id(value) not in memo:
            whole = owner(value)
            kept = memo.setdefault(("owner", id(whole)), whole.copy(order="K"))
            start = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            memory = kept if kept.flags.c_contiguous else kept.T
            memo[id(value)] = kept if value is whole else np.ndarray(value.shape, value.dtype, memory, start, value.strides)
        made.append(memo[id(value)])
    return tuple(made)


def objects(value):
    """The objects of a result, arrays and containers, outermost first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    own = [value] if isinstance(value, np.ndarray | list | dict) else []
    return [*own, *itertools.chain.from_iterable(map(objects, inner))]


def memory_of(result, arguments):
    """Which objects are identical, which share memory, and their layouts."""
    found = [*objects(result), *objects(arguments)]
    arrays = [x for x in found if isinstance(x, np.ndarray)]
    return (
        [[a is b for b in found] for a in found],
        [np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)],
        [[s for s, n in zip(a.strides, a.shape) if n > 1] for a in arrays if a.size],
    )


def check_call(program, compiled, arguments):
    ours, theirs = copied(arguments), copied(arguments)
    with np.errstate(all="ignore"):
        want, expected = testing.outcome(program, theirs)
        got, raised = testing.outcome(compiled, ours)
    assert (type(raised), str(raised)) == (type(expected), str(expected)), f"{raised!r} instead of {expected!r}"
    ulp = 4 if arguments[0].dtype.kind == "c" else 0
    testing.assert_same(ours[:-1], theirs[:-1], ulp, "arguments")
    testing.assert_same(got, want, ulp)
    np.testing.assert_equal(ours[-1].bit_generator.state, theirs[-1].bit_generator.state)
    for what, ours_is, theirs_is in zip(("identity", "shared memory", "strides"), memory_of(got, ours), memory_of(want, theirs), strict=True):
        assert ours_is == theirs_is, f"{what}: {ours_is} instead of {theirs_is}"


def check(seed, folder):
    made = memory_generator.Generator(seed)
    source = made.source()
    program = test_fuzz.load(source, folder / f"memory_{seed}.py")
    if not test_fuzz.is_defined(program, [copied(made.arguments(number, np)) for number in sorted(set(CALLS))]):
        return
    for way in ways.of_program(seed, "interp", "dynamic"):
        compiled = way.compile(way.version(program, seed))
        for number in CALLS:
            signal.alarm(120)
            try:
                check_call(program, compiled, made.arguments(number, np))
            except (AssertionError, test_fuzz.Endless) as wrong:
                raise AssertionError(f"seed {seed}, {way.name}, arguments {number}: {wrong!r}\n{source}") from wrong
            finally:
                signal.alarm(0)


@pytest.mark.usefixtures("everything_is_compiled")
@pytest.mark.parametrize("seeds", test_fuzz.batches(PROGRAMS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_fixed_programs(seeds, tmp_path):
    for seed in seeds:
        check(seed, tmp_path)


@pytest.mark.usefixtures("everything_is_compiled")
@pytest.mark.parametrize("seed", test_fuzz.NEW_LOOPS)
def test_new_programs(seed, tmp_path):
    check(seed, tmp_path)
