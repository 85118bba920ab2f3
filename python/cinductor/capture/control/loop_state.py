"""The state of one loop during capture, as the parts of its capture see it.

`Loop` runs the loop (`loop`). `Carried` finds what its iterations pass to each other (`carry`). The parts of this have files
of their own: `carried_types`, `flow` (which arrays a value may be), `appended` (lists that grow) and `live_out`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..iterators import Items
from ..kinds import leaves
from ..objects import Traced
from .lattice import Type
from .phi import Value
from .region import Region
from .state import Snapshot

MAX_PEELED = 2
MAX_FILLING = 16  # while a bounded deque is not full
Place = tuple[str, int, int]  # a name, the number of its leaf, an axis


class LoopPlan:
    """How a loop at one position of one call path is captured: what earlier attempts have learned. In one capture, a
    failed attempt peels one more iteration, stops guessing sizes or leaves the loop to Python, so attempts end. The
    next capture, in another run of an enclosing loop, may peel fewer iterations and guesses again.
    """

    guess: bool  # sizes vary that may be constant
    may_end: bool  # a flag may end the loop that no run has set
    tags: bool | None  # numbers are tagged that the first iteration has in another class; None: not tried
    capacities: dict[Place, Any]  # final sizes of the arrays that grow by a rule

    def __init__(self) -> None:
        self.names: list[str] = []  # carried from iteration to iteration; a list, because the order of a set differs between processes
        self.written: Sequence[str] | None = None  # names of written arrays; None: not known yet
        self.peel = 0  # iterations before the region
        self.plain: str | None = None  # the reason why it is not captured

    def begin(self) -> None:
        """Begin another capture of the loop, in another run of an enclosing one."""
        self.guess, self.may_end, self.tags, self.capacities = True, True, None, {}


class LoopRegion(Region):
    """The loop. ended: an iteration before the region has ended it; fills: a bounded deque was seen to grow; tail: the
    number of iterations after the region.
    """

    is_loop = True
    is_while: bool
    plan: LoopPlan
    items: Items
    snapshot: Snapshot | None
    ended: Any
    fills: bool
    tail: int

    @property
    def mark(self) -> Any:
        return self.snapshot.graph  # type: ignore[union-attr]

    @property
    def extent(self) -> Any:
        """Iterations of the region."""
        return self.items.length - self.plan.peel - self.tail

    @property
    def may_peel(self) -> bool:
        """True if one more iteration can be run before the region."""
        most = MAX_FILLING if self.fills else MAX_PEELED
        if self.plan.peel >= most or self.plan.capacities:
            return False
        if self.is_while:
            return True
        return self.may_make_iteration(self.items.length - self.plan.peel)

    def may_make_iteration(self, left: int | Traced) -> bool:
        """True if iterations of a loop remain, or the program can check that."""
        if type(left) is int:
            return left > 0
        return self.tracer.is_positive(left) or (self.tracer.may_check() and type(left > 0) is Traced)

    def makes_iteration(self, left: int | Traced) -> bool:
        """True if iterations of a loop remain; if that is only known at run time, the program checks it."""
        if left > 0 if type(left) is int else self.tracer.is_positive(left):
            return True
        is_left = left > 0
        if type(is_left) is not Traced or not self.tracer.may_check():
            return False
        self.check(is_left, "the loop runs an iteration")
        return True


class LoopState:
    """The state of the loop in one run of its body, with what earlier runs have found."""

    body: Any  # the blocks of this run
    trip: Any  # the number of the iteration of the region
    head: dict[str, Any]  # values of names at the head of this run
    bound: dict[int, int]  # by storage: versions of the arrays of `written` there

    def __init__(self, loop: LoopRegion) -> None:
        assert loop.snapshot is not None
        self.loop, self.snapshot = loop, loop.snapshot
        self.regions, self.tracer = loop.regions, loop.tracer
        self.state = loop.state
        self.entry = dict(zip(loop.entry, loop.lifted(loop.entry.values()), strict=True))
        self.names: tuple[str, ...] = ()  # those that iterations may carry
        self.types_of: dict[str, list[Type | None]] = {}  # by name, the types of its leaves (None: one that does not change)
        self.values: list[Value] = []  # names carried by value, at the head of this run
        self.written: dict[int, Any] = {}  # by storage, the arrays that iterations write to
        self.period, self.turn = 1, 0  # runs of the body in one iteration of the region, and the number of this one
        self.distinct: list[tuple[Any, Any]] = []  # arrays that an iteration found to be different objects
        self.assumptions: list[Any] = []  # decisions that outlive the run in which they were made
        self.expects_flag = loop.ended is False and loop.site.flag is not None and loop.plan.may_end  # no run has set it yet
        self.flag = loop.ended is not False or self.expects_flag  # the loop may end by its flag
        self.is_while = loop.is_while or self.flag

    def is_live_after(self, name: str) -> bool:
        """True if the name is read after the loop."""
        return name in self.loop.site.live_out or name in self.snapshot.containers

    @property
    def index(self) -> Any:
        """The number of the iteration of the body."""
        return self.trip if self.period == 1 else self.trip * self.period + self.turn

    @property
    def extent(self) -> Any:
        """The number of iterations of the region."""
        extent = self.loop.extent
        return extent if self.period == 1 else extent // self.period

    def leaves_of(self, names: dict[str, Any]) -> list[Any]:
        """The changing leaves of the names carried by value."""
        return [
            leaf
            for name, kinds in self.types_of.items()
            for leaf, kind in zip(leaves(names[name]), kinds, strict=True)
            if kind is not None
        ]

    def runs_once(self, extent: object = None) -> bool:
        """True if the region runs at least one iteration; guarded if that depends on the arguments."""
        extent = self.extent if extent is None else extent
        return extent > 0 if type(extent) is int else self.tracer.is_positive(extent)
