"""The control-flow graph of a function and the data flow of its names: bound, live, and definitely
assigned names.

The graph is built once from the syntax, from the end to the beginning. A point has an effect on
names (`Effect`), its successors, and the targets of its exceptions. A target is a handler, a
`finally`, or the code after a `with`, whose manager may swallow exceptions. A `finally` has two
copies: one after normal completion, one after everything else. Liveness flows backwards along both kinds of edges,
definite assignment forwards.

Jumps are either as written or flags (`jumps`). A loop's own flags are False at its head, so they
are never live there. Names that inner functions load are live everywhere. The analysis is
conservative: it may report too many live names and too few assigned ones, never the reverse.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from ... import _core
from ...base.records import NamedTuple
from .jumps import VALUE, is_endless
from .rows import FLOW, ROWS

Set = frozenset[str]
Bound = Set | None  # None: unreachable
EMPTY: Set = frozenset()


class ConstructFlow(NamedTuple):
    """The names that a construct binds, and those live around it."""

    binds: Set
    head: Set  # live at its head
    behind: Set  # live after it
    renewed: Set = EMPTY  # live at a loop's head only because of code after it: iterations bind them again


class Effect(NamedTuple):
    """The effect of straight-line code on names, in the order of evaluation: of expressions, and of statements without blocks."""

    uses: set[str]  # read before they are bound here
    kills: set[str]  # bound in every case
    binds: list[str]
    later: set[str]  # read by inner functions
    suspended: set[str]  # read by generators
    drops: set[str]  # unbound after it
    declared: list[ast.AST]


class Point:
    """A point of a function, where nodes are evaluated. stops: names that are not live before it because of the code after it; only:
    all names but these are stopped.
    """

    __slots__ = ("effect", "ahead", "errors", "stops", "only", "live", "sure")

    def __init__(
        self, points: list[Point], nodes: tuple[ast.AST | None, ...], ahead: list[Point], errors: tuple[Point, ...] = ()
    ) -> None:
        points.append(self)
        self.effect = tuple.__new__(Effect, _core.names_of(FLOW, nodes, False))
        self.ahead, self.errors = ahead, errors
        self.stops: Set = EMPTY
        self.only: Bound = None
        self.live: Set = EMPTY
        self.sure: Bound = None

    def bind(self, name: str) -> None:
        """The name is bound, or unbound, after the nodes."""
        self.effect.binds.append(name)
        self.effect.kills.add(name)


class Ways(NamedTuple):
    """The targets of jumps and exceptions."""

    errors: tuple[Point, ...] = ()
    broken: Point | None = None
    continued: Point | None = None


class StatementPoints(NamedTuple):
    """A statement in the graph."""

    entry: Point
    end: Point
    errors: tuple[Point, ...]


class ConstructPoints(NamedTuple):
    """A for, while or if in the graph."""

    binds: set[str]
    heads: list[Point]
    body: Point | None = None  # of a loop: the point before each iteration
    step: Effect | None = None  # of the target or test of a loop


class Cfg:
    """The graph of a function's body; arguments: the names that are bound at its start."""

    def __init__(self, body: list[ast.stmt], arguments: Iterable[str]) -> None:
        self.points: list[Point] = []  # last first
        self.places: dict[int, list[StatementPoints]] = {}  # by the id of a statement
        self.constructs: dict[int, ConstructPoints] = {}
        self.finallies = 0  # the `finally` clauses around the current statement: it runs after a return, too
        captured: set[str] = set()
        start = self._block(body, Point(self.points, (), []), Ways())
        for point in self.points:
            captured |= point.effect.later | point.effect.suspended
        self.captured = frozenset(captured)
        self._flow_back()
        self._flow_on(start, frozenset(arguments))

    # --- queries ---

    def flow(self, node: ast.stmt) -> ConstructFlow:
        """The flow of a for, while or if whose jumps are flags."""
        found, behind, errors = self.constructs[id(node)], self._after(node), self.errors(node)
        head = EMPTY.union(*[point.live for point in found.heads])
        renewed = EMPTY
        if found.body is not None and found.step is not None:
            inside = (found.body.live - found.step.kills) | found.step.uses
            renewed = head - inside - errors - self.captured
        binds, behind = frozenset(found.binds), behind | errors | self.captured
        return ConstructFlow(binds, head | self.captured, behind, renewed)

    def before(self, node: ast.stmt) -> Set:
        """The names live before a statement."""
        live = [place.entry.live for place in self.places[id(node)]]
        return self.captured.union(*live)

    def after(self, node: ast.stmt) -> Set:
        """Names that are live after the statement."""
        return self._after(node) | self.captured

    def _after(self, node: ast.stmt) -> Set:
        return EMPTY.union(*[place.end.live for place in self.places[id(node)]])

    def errors(self, node: ast.stmt) -> Set:
        """Names that are live where the statement's exceptions go."""
        places = self.places[id(node)]
        return EMPTY.union(*[point.live for place in places for point in place.errors])

    def sure(self, node: ast.stmt) -> Bound:
        """The names that are certainly bound before a statement."""
        return common([place.entry.sure for place in self.places[id(node)]])

    def sure_after(self, node: ast.stmt) -> Bound:
        """The names that are certainly bound after the statement."""
        first, *more = self.places[id(node)]
        return common([place.end.sure for place in (first, *more)]) if more else first.end.sure

    # --- the graph, from the end to the beginning ---

    def _bound_since(self, first: int) -> set[str]:
        """Names bound by the points from index `first` on."""
        return set().union(*[point.effect.binds for point in self.points[first:]])

    def _block(self, body: list[ast.stmt], ahead: Point, ways: Ways) -> Point:
        for node in reversed(body):
            end = Point(self.points, (), [ahead])
            ahead = self._statement(node, end, ways)
            self.places.setdefault(id(node), []).append(StatementPoints(ahead, end, ways.errors))
        return ahead

    def _statement(self, node: Any, end: Point, ways: Ways) -> Point:
        flow = ROWS[type(node)].flow
        if flow in CONSTRUCTS:
            return CONSTRUCTS[flow](self, node, end, ways)
        ahead = {"": end, "break": ways.broken, "continue": ways.continued}.get(flow)
        return Point(self.points, (node,), [] if ahead is None else [ahead], ways.errors)

    def _match(self, node: ast.Match, end: Point, ways: Ways) -> Point:
        arms = [end]
        for case in node.cases:
            inside = self._block(case.body, end, ways)
            arms.append(Point(self.points, (case.guard,), [inside, end], ways.errors))
        return Point(self.points, (node.subject,), arms, ways.errors)

    def _if(self, node: ast.If, end: Point, ways: Ways) -> Point:
        first = len(self.points)
        arms = [self._block(body, end, ways) for body in (node.body, node.orelse)]
        # The first test is evaluated before the construct, those of elif inside.
        self.constructs[id(node)] = ConstructPoints(self._bound_since(first), arms)
        return Point(self.points, (node.test,), arms, ways.errors)

    def _loop(self, node: Any, end: Point, ways: Ways) -> Point:
        is_for, errors = isinstance(node, ast.For), ways.errors
        has_flags, flag = hasattr(node, "ci_resets"), getattr(node, "ci_flag", None)
        resets = frozenset(s.targets[0].id for s in getattr(node, "ci_resets", ()))
        ended = self._block(node.orelse, end, ways)
        head = Point(self.points, (), [], errors)
        head.stops = resets if has_flags else EMPTY
        if has_flags and not self.finallies:  # no iteration starts after a return
            head.stops |= {VALUE}
        first_inside = len(self.points)
        read = (ast.Name(flag, ast.Load()),) if flag else ()
        tail = Point(self.points, read, [head, end] if flag else [head])
        body = self._block(node.body, tail, Ways(errors, end, head))
        step = Point(self.points, (node.target if is_for else node.test,), [body], errors)
        binds = self._bound_since(first_inside) | resets
        head.ahead = [step]
        if not is_endless(node):  # the path on which the test at the head is false
            (head if is_for else step).ahead.append(ended)
        self.constructs[id(node)] = ConstructPoints(binds, [head], body, step.effect)
        first = head
        if resets:  # they keep their values if no iteration runs
            skip = Point(self.points, (), [end])
            skip.only = resets
            first = Point(self.points, (), [head, skip])
        return Point(self.points, (node.iter,), [first], errors) if is_for else first

    def _with(self, node: ast.With, end: Point, ways: Ways) -> Point:
        inside = ways._replace(errors=(*ways.errors, end))  # the manager may swallow an exception
        ahead = self._block(node.body, end, inside)
        for k, item in reversed([*enumerate(node.items)]):
            errors = inside.errors if k else ways.errors
            ahead = Point(self.points, (item.context_expr, item.optional_vars), [ahead], errors)
        return ahead

    def _try(self, node: Any, end: Point, ways: Ways) -> Point:
        if node.finalbody:
            left = [p for p in (*ways.errors, ways.broken, ways.continued) if p is not None]
            self.finallies += 1
            other = self._block(node.finalbody, Point(self.points, (), left), ways)
            end = self._block(node.finalbody, end, ways)
            self.finallies -= 1
            ways = Ways((other,), ways.broken and other, ways.continued and other)
        caught = ways.errors
        for handler in node.handlers:
            behind = Point(self.points, (), [end]) if handler.name else end
            inside = self._block(handler.body, behind, ways)
            entry = Point(self.points, (handler.type,), [inside], ways.errors)
            if handler.name:
                entry.bind(handler.name)
                behind.bind(handler.name)
                behind.effect.drops.add(handler.name)
            caught = (entry, *caught)
        done = self._block(node.orelse, end, ways)
        return self._block(node.body, done, ways._replace(errors=caught))

    # --- data flow ---

    def _flow_back(self) -> None:
        """Compute live names, to the least fixed point."""
        is_new = True
        while is_new:
            is_new = False
            for point in self.points:
                live = EMPTY
                for other in point.ahead:
                    live |= other.live
                live = live - point.stops if point.only is None else (live - point.stops) & point.only
                live = (live - point.effect.kills) | point.effect.uses
                for other in point.errors:
                    live |= other.live
                is_new |= live != point.live
                point.live = live

    def _flow_on(self, start: Point, arguments: Set) -> None:
        """Compute the names that are certainly bound, to the greatest fixed point."""
        start.sure = arguments
        is_new = True
        while is_new:
            is_new = False
            for point in reversed(self.points):
                if point.sure is None:
                    continue
                left = point.sure - point.effect.drops
                done = (point.sure | point.effect.kills) - point.effect.drops
                for sure, others in ((done, point.ahead), (left, point.errors)):
                    for other in others:
                        less = sure if other.sure is None else other.sure & sure
                        is_new |= less != other.sure
                        other.sure = less


# Statements with blocks, by the flow of their rows.
CONSTRUCTS: dict[str, Callable[[Cfg, Any, Point, Ways], Point]] = {
    "branch": Cfg._if, "loop": Cfg._loop, "with": Cfg._with, "match": Cfg._match, "try": Cfg._try,
}  # fmt: skip


def common(parts: Iterable[Bound]) -> Bound:
    """The intersection of the sets of all paths; None stands for an unreachable path."""
    found: Bound = None
    for part in parts:
        found = part if found is None else found if part is None else found & part
    return found


def captured(node: ast.AST) -> Set:
    """The names that functions, lambdas and generators in a statement may read later."""
    found = Effect(*_core.names_of(FLOW, (node,), False))
    return frozenset(found.later | found.suspended)
