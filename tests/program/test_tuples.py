"""Runs random programs over tuples, with calls whose tuples differ in items, types of items, length and identity.

Values, types, exceptions, output, arguments after the call, and which returned objects are the caller's must be Python's. `make fuzz` runs CINDUCTOR_FUZZ new ones.
"""

import contextlib
import copy
import io
import itertools
import signal

import numpy as np
import pytest
import test_fuzz
import tuple_generator
import ways

from cinductor import testing

everything_is_compiled = test_fuzz.everything_is_compiled  # the fixture
# The last eight are regression tests: items of tuples that were read once, an object beside a tuple, equal tuples, items that die, and
# equal tuples that iterations exchange.
PROGRAMS = [*range(30), 44, 101, 700, 2177, 2302, 2360, 1297845006, 3897329428, 3849962252, 4069354659]


def objects(value):
    """The tuples, containers and arrays in a value, outermost first."""
    inner = parts_of(value)
    own = [value] if inner is not None or isinstance(value, np.ndarray) else []
    return [*own, *itertools.chain.from_iterable(map(objects, inner or ()))]


def parts_of(value):
    """The values in a value, in an order that does not depend on memory; None for a number or an array."""
    if isinstance(value, tuple_generator.Holder):
        return [value.pair, value.parts]
    if isinstance(value, dict):
        return [*itertools.chain.from_iterable(value.items())]
    if isinstance(value, set):
        return sorted(value, key=repr)
    return [*value] if isinstance(value, list | tuple) else None


def compare(got, want, given, seen):
    """Both are equal. A tuple is the caller's only if it is in Python, and so is every other object.

    given: the caller's tuples, by identity those of Python; seen: the pairs of other objects.
    """
    assert type(got) is type(want), f"{got!r} instead of {want!r}"
    if isinstance(got, tuple):  # one that data choose may be new
        assert id(got) not in given or given[id(got)] is want, f"another tuple: {want!r}"
    if (parts := parts_of(got)) is not None:
        if not isinstance(got, tuple):
            if seen.setdefault(("got", id(got)), id(want)) != id(want) or seen.setdefault(("want", id(want)), id(got)) != id(got):
                raise AssertionError(f"another object: {got!r}, {want!r}")
        assert len(parts) == len(others := parts_of(want)), f"{got!r} instead of {want!r}"
        for part, other in zip(parts, others, strict=True):
            compare(part, other, given, seen)
    elif isinstance(got, np.ndarray):
        testing.assert_same(got, want)
    else:
        assert repr(got) == repr(want), f"{got!r} instead of {want!r}"


def check_call(program, compiled, keep, call):
    """One call does what Python does."""
    outcomes = []
    for fn in (compiled, program):
        arguments, kept = copy.deepcopy(call)
        before = objects((arguments, kept, program.__defaults__))
        keep(*kept)
        with contextlib.redirect_stdout(io.StringIO()) as printed, np.errstate(all="ignore"):
            result, error = testing.outcome(fn, arguments)
        outcomes.append((before, (result, arguments, kept, program.__defaults__), (type(error), str(error)), printed.getvalue()))
    (before, got, *rest), (old, want, *others) = outcomes
    assert rest == others, f"{rest} instead of {others}"
    given = {id(value): other for value, other in zip(before, old, strict=True) if isinstance(value, tuple) and value}
    compare(got, want, given, {})


def check(seed, folder):
    """One program in several ways; in each way it is called with all the tuples in turn."""
    made = tuple_generator.Generator(seed)
    source = made.source()
    program = test_fuzz.load(source, folder / f"tuples_{seed}.py")
    keep = program.__globals__["keep"]
    calls = made.calls(np)
    if not test_fuzz.is_defined(lambda call: check_call(program, program, keep, call), [(call,) for call in calls]):
        return
    for way in ways.of_program(seed, "dynamic" if seed % 3 == 0 else "interp"):
        compiled = way.compile(way.version(program, seed))
        for number, call in enumerate(calls):
            signal.alarm(120)
            try:
                check_call(program, compiled, keep, call)
            except (AssertionError, test_fuzz.Endless) as wrong:
                raise AssertionError(f"seed {seed}, {way.name}, call {number}: {wrong}\n{call}\n{source}") from wrong
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
