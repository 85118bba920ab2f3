"""Plants one bug at a time in the mutation hooks, the guards and the rollback of capture, and checks that a test
finds it.

    python tests/support/planted.py [PROGRAMS]     # most programs tried per bug (default: 1,500)

The programs of tests/support/state_generator.py, or changes of the worlds of tests/support/worlds.py, have to find each bug.
Prints which program found which bug. The exit status is 1 if more than one bug was not found.
"""

from __future__ import annotations

import enum
import os
import subprocess
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BUGS: dict[str, Any] = {}
OF_WORLDS: set[str] = set()  # bugs that changes of the world have to find
MISSED = 1  # bugs that may stay unfound


def bug(plant: Any) -> Any:
    BUGS[plant.__doc__.strip().rstrip(".")] = plant
    return plant


def bug_of_worlds(plant: Any) -> Any:
    OF_WORLDS.add(plant.__doc__.strip().rstrip("."))
    return bug(plant)


def without(cls: Any, name: str, is_meant: Any) -> None:
    """Make the method do nothing for the calls that match."""
    method = getattr(cls, name)
    setattr(cls, name, lambda self, *args: None if is_meant(*args) else method(self, *args))


def not_noted(kind: type) -> None:
    from cinductor.capture.control.state import State

    without(State, "before_change", lambda value: type(value) is kind)


def unguarded(*kinds: str) -> None:
    from cinductor.capture.sources import Sources

    without(Sources, "check", lambda *check: check[1] in kinds)
    without(Sources, "check_once", lambda source, kind, *rest: kind in kinds)


@bug
def lists() -> None:
    """Changes of lists are not reported."""
    not_noted(list)


@bug
def dicts() -> None:
    """Changes of dicts are not reported."""
    not_noted(dict)


@bug
def sets() -> None:
    """Changes of sets are not reported."""
    not_noted(set)


@bug
def cells() -> None:
    """Changes of cells are not reported."""
    from cinductor.capture.control.state import Snapshot, State

    Snapshot.begin = lambda self: (self.before.clear(), self.born.clear())
    not_noted(types.CellType)
    State.share = lambda self, cells: None


@bug
def others() -> None:
    """Functions without a row are not refused."""
    from cinductor.capture.control import state

    without(state.State, "before_change", lambda value: type(value) not in state.ROWS)


@bug
def steps() -> None:
    """Advancing an iterator is not reported."""
    from cinductor.capture.hooks import subscripts as iteration

    def step(self: Any, value: Any) -> Any:
        value = self.stage.escapes.now(value)
        method = self.stage.sources.class_attr(type(value), "__next__")
        if hasattr(method, "__code__") and not iteration.is_internal(type(value)):
            return self.call(method, value)
        return self.stage.lift_array(next(value))

    iteration.Iteration.step = step


@bug
def nothing_back() -> None:
    """Rollback restores nothing."""
    from cinductor.capture.control.state import Snapshot

    Snapshot.swap = lambda self: []


@bug
def born_too_early() -> None:
    """Objects made by a run count as made after every snapshot."""
    from cinductor.capture.control.state import State

    def before_change(self: Any, value: Any, real: Any = State.before_change) -> None:
        if not any(id(value) in mark.born for mark in self.snapshots):
            real(self, value)

    State.before_change = before_change


@bug
def items_stay() -> None:
    """The position of an iterator that another iterator advances is not tracked."""
    from cinductor.capture.iterators import Items

    Items.move = lambda self, position: setattr(self, "position", position)
    Items.is_in_step = True


@bug
def operands() -> None:
    """An operand that waits is not seen."""
    from cinductor.capture.hooks.scope import Scope

    Scope.waits, Scope.done = (lambda self, value: value), (lambda self, count, value: value)


@bug
def names() -> None:
    """Names of modules and classes are not guarded."""
    from cinductor.capture.sources import Sources

    without(Sources, "note_name", lambda *anything: True)


@bug
def values() -> None:
    """Constants are not guarded."""
    unguarded("equals", "size", "word")


@bug
def lengths() -> None:
    """Lengths and keys are not guarded."""
    unguarded("len", "keys")


@bug
def who() -> None:
    """The identity of an object is not guarded."""
    unguarded("is", "same", "function")


@bug
def bodies() -> None:
    """Code and defaults of functions are not guarded."""
    unguarded("body")


@bug
def hooks() -> None:
    """No object has hooks."""
    from cinductor.capture.sources import Sources

    Sources.has_hooks = lambda self, cls: False


@bug
def hints() -> None:
    """`__len__` and `__length_hint__` of an iterable are not called."""
    from cinductor.capture.calls import calls, consumers, iterables
    from cinductor.capture.hooks import subscripts

    for module in (subscripts, iterables, calls, consumers):
        module.asks_length = lambda value: False


@bug
def cells_stay() -> None:
    """Names that a function shares are not made real again after it was handed out."""
    from cinductor.capture.effects import Effects

    Effects.fill_cells = lambda self: None


@bug
def handed_out() -> None:
    """An object that was handed out counts as the call's own."""
    from cinductor.capture.sources import Sources

    Sources.note_opaque = lambda self, value: None


@bug
def stops() -> None:
    """A generator expression lets a StopIteration through."""
    from cinductor.capture.hooks.scope import Scope

    Scope.generated = staticmethod(lambda trips, /, *args: trips(*args))


@bug
def kinds() -> None:
    """Items appended by a run are not part of its trace."""
    from cinductor.capture.control.carry import Carried

    Carried.trace = lambda self: self.body.trace


@bug
def looked_at() -> None:
    """A list that was read may still grow in a buffer."""
    from cinductor.capture.control.state import Snapshot

    def end(self: Any, real: Any = Snapshot.end) -> None:
        lists = {**self.tables["lists"], **self.state.list_buffers}
        real(self)
        self.state.put(lists=lists)

    Snapshot.end = end


@bug
def stores() -> None:
    """Deferred stores are performed too late."""
    from cinductor.capture.effects import Effects

    Effects.flush = lambda self: None


@bug_of_worlds
def above() -> None:
    """The lookup of super() is not guarded."""
    from cinductor.capture.objects import find_in_class
    from cinductor.capture.sources import Sources

    def class_attr(self: Any, cls: type, name: str, after: type | None = None, real: Any = Sources.class_attr) -> Any:
        return real(self, cls, name) if after is None else find_in_class(cls, name, after)

    Sources.class_attr = class_attr


@bug_of_worlds
def dtypes() -> None:
    """Guards of NumPy's scalars compare bytes alone."""
    from cinductor.capture.sources import Sources

    def check(self: Any, source: int, kind: Any, *rest: Any, real: Any = Sources.check) -> None:
        if kind == "equals" and hasattr(rest[0], "dtype"):
            source, rest = self.source("made", bytes, source), (bytes(rest[0]),)
        real(self, source, kind, *rest)

    Sources.check = check


@bug_of_worlds
def keys() -> None:
    """A traced number becomes a Python number without a guard."""
    from cinductor.capture.effects import Materialiser

    def of(self: Any, value: Any, real: Any = Materialiser.of) -> Any:
        tracer = self.effects.tracer
        before, tracer.needs_python = tracer.needs_python, True
        try:
            return real(self, value)
        finally:
            tracer.needs_python = before

    Materialiser.of = of


@bug
def reach() -> None:
    """Only closures count as references of functions."""
    from cinductor.capture.control import region, state

    def reached(roots: Any, *rest: Any, real: Any = state.reached) -> Any:
        state.ATOMS |= {types.FunctionType}
        functions = [v for v in roots if type(v) is types.FunctionType]
        return real([*roots, *(f.__closure__ for f in functions)], *rest)

    region.reached = reached


@bug
def gone_over() -> None:
    """The iterable of a loop is not counted as reachable."""
    from cinductor.capture.control.loop import Loop

    Loop.operands = property(lambda self: (), lambda self, values: None)


@bug
def bound() -> None:
    """A bound method of an array does not count as a reference to it."""
    from cinductor.capture.control import state
    from cinductor.capture.objects import BOUND

    state.ATOMS |= {*BOUND}
    state.OPENED -= {*BOUND}


@bug
def late_deaths() -> None:
    """Tables keep what only they refer to."""
    from cinductor.capture import deaths

    deaths.let_go = lambda *tables: None


@bug
def parts_of_slices() -> None:
    """A bound of a slice is part of a guarded value, whatever it is."""
    from cinductor.capture.hooks import reads

    reads.is_constant = lambda value: True


@bug_of_worlds
def members() -> None:
    """The value of an enumeration's member is not guarded."""
    from cinductor.capture.hooks import reads

    reads.LASTING = tuple(cls for cls in reads.LASTING if cls is not enum.Enum)


def find(name: str, programs: int) -> int | None:
    """The first program that exposes the bug."""
    os.environ["CINDUCTOR_CAPTURE_LIMIT"] = "5"
    import folders  # noqa: F401
    import test_changing_world as changes_of
    import test_hidden_state as programs_of
    import worlds

    BUGS[name]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(programs):
            fn = worlds.PROGRAMS[seed % len(worlds.PROGRAMS)].__name__
            try:
                if name in OF_WORLDS:
                    changes_of.explore(changes_of.of_worlds(fn), seed, 8, fn)
                else:
                    programs_of.check(seed, Path(folder), seconds=5)
            except BaseException:
                return seed
    return None


def run(name: str, programs: int) -> str:
    command = [sys.executable, __file__, str(programs), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().split("\n")[-1] or f"ended by {done.returncode}"


def main() -> int:
    programs = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    if len(sys.argv) > 2:
        seed = find(sys.argv[2], programs)
        print("not found" if seed is None else f"program {seed}")
        return 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(BUGS, pool.map(lambda name: run(name, programs), BUGS), strict=True))
    for name, how in found.items():
        print(f"{how:>14}  {name}")
    missed = sum(how == "not found" for how in found.values())
    print(f"{len(found) - missed} of {len(found)} found by {programs} programs")
    return int(missed > MISSED)


if __name__ == "__main__":
    sys.exit(main())
