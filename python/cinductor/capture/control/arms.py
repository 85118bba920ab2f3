"""The arms of a branch: the blocks in which they run, and the states in which they end.

An arm runs on the state before the branch, in a block in which its condition is known (`Level`). It ends with values of
names, versions of memory and items appended to lists (`End`), which its block keeps. A value at the end of an arm, or
one that an arm makes to match the other one, is a `Side` of a pair, of which the branch selects one (`merge`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core
from ...base.deferred import view_of
from ..kinds import kind_of, leaves, lifted, rebuilt
from ..objects import SINGLE, Traced
from ..syntax.jumps import VALUE
from . import lattice, list_buffer
from .lattice import Joined
from .list_append import Maybe, owner_of
from .region import Region, Regions, truth
from .state import Snapshot, State, value_of


class Side:
    r"""One side of a pair.

    here: makes the value in a block; kind: the kind of the branch's result, None if the other side decides; sample:
    its value in this call, if sizes decide; is_small: a `where` may select it; array, lengths: set for an array;
    node: its node in the arm's block.
    """

    __slots__ = ("here", "kind", "sample", "is_small", "array", "lengths", "node")

    def __init__(
        self, here: Callable[[Region], Any], kind: str | None = "python", sample: object = None,
        is_small: bool = True, array: ArmValue | None = None, lengths: dict[int, lattice.Length] | None = None,
        node: tuple[_core.Block, int] | None = None,
    ) -> None:  # fmt: skip
        self.here, self.kind, self.sample, self.is_small = here, kind, sample, is_small
        self.array, self.lengths, self.node = array, lengths, node

    def put(self, region: Region, block: _core.Block, like: object) -> None:
        """Make it a result of the arm, whose block is open."""
        if self.node is None:
            block.result(self.here(region))
        else:
            block.result(self.node, like)


class ArmValue(Side):
    """A traced value that an arm ends with, kept by its block."""

    __slots__ = ("block", "number", "dtype", "value", "strong", "object")

    def __init__(self, block: _core.Block, value: Traced) -> None:
        number = block.live_out(value)
        self.here = lambda _: block.value(number)
        self.kind, self.sample, self.is_small = value.kind, value, value.kind != "array"
        self.lengths, self.node = None, (block, number)
        self.block, self.number, self.dtype, self.value = block, number, value.dtype, value
        self.object: Any = None  # how a returned array is made
        self.strong = None if value.strong is None else ArmValue(block, value.strong)

    @property
    def array(self) -> ArmValue | None:  # type: ignore[override]
        return None if self.is_small else self


def constant(value: object) -> Side:
    """A number that is the same in every block."""
    kind, dtype = kind_of(value)  # type: ignore[misc]
    return Side(lambda region: lifted(region.tracer, value, kind, dtype), kind, value)


def undefined(like: ArmValue, shape: tuple[Any, ...]) -> Side:
    """A placeholder for a value that is never read."""
    if like.kind == "array":
        return Side(lambda region: region.tracer.undefined(like.node, shape), None)
    return Side(lambda _: like.block.undefined(like.number), None)


def in_buffer(array: ArmValue, shape: tuple[Any, ...], lengths: dict[int, lattice.Length]) -> Side:
    """An array in a buffer with capacity for the other arm's, too."""

    def here(region: Region) -> Any:
        buffer = region.tracer.undefined(array.node, shape)
        lattice.write(region.tracer, buffer, array.here(region), lengths)
        return buffer

    return Side(here, "array", None, False, array, lengths)


def is_alike(value: object, joined: Joined) -> bool:
    """True if the node of an arm's number has the dtype of a tagged number."""
    return type(value) is ArmValue and value.dtype == joined.dtype


def as_joined(value: object, joined: Joined) -> Side:
    """A number, live out of the arm or a constant, with the kind and dtype of the joined number."""

    def here(region: Region) -> Any:
        number = value.here(region) if type(value) is ArmValue else value
        return lifted(region.tracer, number, joined.kind, joined.dtype)

    return Side(here, joined.kind, plain_value(value), type(value) is not ArmValue)


def of_size(value: object) -> Side:
    """One of an array's sizes."""
    return Side(lambda region: lattice.number_of(region.tracer, value))


def flag(value: object) -> Side:
    """A bool."""

    def here(region: Region) -> Any:
        if type(value) is not ArmValue:
            return region.tracer.lift(bool(value))
        return region.tracer.as_python(truth(region.tracer, value.here(region)))

    return Side(here, sample=plain_value(value), node=value.node if type(value) is ArmValue else None)


def is_of_data(value: object) -> bool:
    """True for a number that is not an expression of the arguments' sizes."""
    return type(value) is Traced and value.kind != "array" and not value.is_fixed


class End:
    """The end state of an arm: values of names, and written memory."""

    def __init__(self, state: State, block: _core.Block, names: dict[str, Any], written: list[Any]) -> None:
        self.appended: list[tuple[Any, list[Any]]] = []  # items that iterations append to a list
        self.records = state.records  # alias records at its end
        self.known: dict[int, list[ArmValue]] = {}  # of its names that have no array, by origin
        self.names = {name: live_out_leaves(block, value, self.known) for name, value in names.items()}
        for part in leaves(self.names[VALUE]) if VALUE in self.names else ():
            if type(part) is ArmValue and part.kind == "array":
                part.object = self.object_of(state, block, part.value)
        self.written = [(handle, ArmValue(block, handle)) for handle in written]

    def object_of(self, state: State, block: _core.Block, array: Traced) -> Any:
        """How the object is made that an array is: a choice, a view, or a whole array; with numbers that are live out."""
        choice = state.choices.get(array.storage) if array.is_whole else view_of(array)
        found = array if choice is None else choice
        return rebuilt(found, iter([arm_value(block, p, self.known) if is_of_data(p) else p for p in leaves(found)]))

    def append(self, block: _core.Block, grown: object, items: list[Any]) -> None:
        """Record the items that the arm appended to a list."""
        live_out = []
        for item in items:
            if type(item) is not Maybe:
                live_out.append(Maybe(live_out_leaves(block, item), True, []))
                continue
            flag = ArmValue(block, item.flag) if type(item.flag) is Traced else item.flag
            live_out.append(Maybe(live_out_leaves(block, item.value), flag, item.truths))
        self.appended.append((grown, live_out))

    def add(self, block: _core.Block, names: dict[str, Any]) -> None:
        """Names that the arm leaves as they are."""
        block.reopen()
        self.names.update({name: live_out_leaves(block, value, self.known) for name, value in names.items()})
        block.close()


def live_out_leaves(block: _core.Block, value: object, known: dict[int, list[ArmValue]] | None = None) -> Any:
    """The value with its traced leaves live out of the block. known: numbers of values that are already; a value with
    several names is one value after the branch, too.
    """
    known = {} if known is None else known
    if type(value) in SINGLE:
        return arm_value(block, value, known) if type(value) is Traced else value
    parts = leaves(value)
    if not any(type(part) is Traced for part in parts):
        return value
    return rebuilt(value, iter([arm_value(block, p, known) if type(p) is Traced else p for p in parts]))


def arm_value(block: _core.Block, part: Traced, known: dict[int, list[ArmValue]]) -> ArmValue:
    """A traced value that is live out of the block."""
    if part.kind == "array" or part.strong is not None:
        return ArmValue(block, part)
    alike = known.setdefault(part.origin(), [])
    found = next((arm for arm in alike if arm.value is part or arm.value.is_same(part)), None)
    if found is None:
        found = ArmValue(block, part)
        alike.append(found)
    return found


def plain_value(value: object) -> Any:
    return value.value if type(value) is ArmValue else value


SINGLE.update({Side, ArmValue})

# --- the tests of a branch ---


class Level:
    """One test: the arm it guards, and the rest."""

    def __init__(self, regions: Regions, condition: object, arm: int, head: dict[str, Any]) -> None:
        self.condition, self.arm, self.head = condition, arm, head
        self.number = regions.count_test()
        self.snapshot = Snapshot(regions.state)
        self.then_block: Any = None
        self.else_block: Any = None
        self.then_end: End | None = None

    def open_arm(self, is_then: bool) -> None:
        """Opens an arm's block, in which the condition is known."""
        tracer = self.snapshot.state.tracer
        block = tracer.block()
        tracer.assume(self.condition, is_then)
        sample = tracer.sample_truth(self.condition)
        is_contrary = sample is not None and sample is not is_then
        tracer.is_infeasible = self.snapshot.graph.is_infeasible or is_contrary
        if is_then:
            self.then_block = block
        else:
            self.else_block = block

    def close_arm(self, region: Region, block: _core.Block, names: dict[str, Any]) -> End:
        """The end state of an arm of the region. The state before the arm is restored."""
        appended: list[tuple[Any, list[Any]]] = []
        names = {**names, **self.diff_containers(region, appended)}
        end = End(region.state, block, names, self.snapshot.graph.written())
        for grown, items in appended:
            end.append(block, grown, items)
        self.restore()
        return end

    def restore(self) -> None:
        """Restore the state before the arm. The loop around still depends on the classes of numbers that the arm asked for."""
        seen = self.snapshot.since("classes")
        self.snapshot.undo()
        self.snapshot.state.classes += seen

    def diff_containers(self, region: Region, appended: list[Any]) -> dict[str, Any]:
        """The contents of the containers that the arm changed; records appended items."""
        names = {}
        for change in region.diff(self.snapshot):
            if change.is_nothing:
                continue
            if items := change.appended:
                appended.append((owner_of(region, change), region.lifted(items)))
                continue
            if not change.keeps_places:
                if list_buffer.may_be_columns(region.tracer, change.container, change.before):
                    list_buffer.want_buffer(region, change.container, change.before[0], change.before)
                region.fail("a branch adds to a container or takes from it")
            names[self.snapshot.name_of(change.container)] = value_of(change.container)
        return names
