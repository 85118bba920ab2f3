"""Names along a function as it is written: which are live, and which surely have a value.

Backward and forward data flow over syntax with all of its jumps. What a handler, a `finally` or
the code behind a `with` may read is live all through the block it guards. Too many names may be
called live, and too few sure of a value, never the other way round.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .jumps import is_endless
from .liveness import EMPTY, Effect, Set

Bound = Set | None  # None: no path leads there


class Targets(NamedTuple):
    """What is live where jumps go."""

    broken: Set = EMPTY
    continued: Set = EMPTY


class LoopExits:
    """What surely has a value where the jumps of a loop go."""

    def __init__(self) -> None:
        self.broken: Bound = None
        self.continued: Bound = None


def meet(a: Bound, b: Bound) -> Bound:
    """What two paths have in common."""
    return b if a is None else a if b is None else a & b


def deleted(node: ast.AST) -> Set:
    """The names that something in a statement may take the value from."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    caught = {n.name for n in ast.walk(node) if isinstance(n, ast.ExceptHandler) and n.name}
    return frozenset(names | caught)


def captured(node: ast.AST) -> Set:
    """The names that functions, lambdas and generators in a statement may read later."""
    effect = Effect()
    effect.statement(node) if isinstance(node, ast.stmt) else effect.add(node, True)
    return frozenset(effect.kept)


class StatementFlow:
    """The names around each statement of a function, by the id of its node."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.before: dict[int, Set] = {}  # live
        self.after: dict[int, Set] = {}
        self.errors: dict[int, Set] = {}  # live where the statement's exceptions go
        self.sure: dict[int, Bound] = {}  # have a value before the statement
        self.sure_after: dict[int, Bound] = {}
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self.kept = frozenset(name for n in node.body for name in captured_in_block([n]))
        self._live(node.body, EMPTY, EMPTY, Targets())
        self._bind(node.body, frozenset(a.arg for a in every if a is not None), LoopExits())

    # --- live names, backward ---

    def _live(self, body: list[ast.stmt], after: Set, errors: Set, jumps: Targets) -> Set:
        """What is live before a block."""
        for node in reversed(body):
            self.after[id(node)] = after | self.kept
            self.errors[id(node)] = errors
            after = self._live_statement(node, after, errors, jumps)
            self.before[id(node)] = after | self.kept
        return after

    def _live_statement(self, node: Any, after: Set, errors: Set, jumps: Targets) -> Set:
        if isinstance(node, ast.If):
            inside = self._live(node.body, after, errors, jumps)
            inside |= self._live(node.orelse, after, errors, jumps)
            return before(Effect(node.test), inside, errors)
        if isinstance(node, ast.For | ast.While):
            return self._live_loop(node, after, errors, jumps)
        if isinstance(node, ast.With):
            inside = errors | after  # the manager may swallow an exception
            items = [p for i in node.items for p in (i.context_expr, i.optional_vars)]
            return before(Effect(*items), self._live(node.body, after, inside, jumps), inside)
        if isinstance(node, ast.Match):
            found = after
            for case in node.cases:
                inside = self._live(case.body, after, errors, jumps)
                found |= before(Effect(case.guard), inside, errors)
            return before(Effect(node.subject), found, errors)
        if hasattr(node, "handlers"):
            return self._live_try(node, after, errors, jumps)
        if isinstance(node, ast.Return | ast.Raise):
            after = EMPTY
        elif isinstance(node, ast.Break):
            after = jumps.broken
        elif isinstance(node, ast.Continue):
            after = jumps.continued
        effect = Effect()
        effect.statement(node)
        return before(effect, after, errors)

    def _live_loop(self, node: Any, after: Set, errors: Set, jumps: Targets) -> Set:
        step = Effect(node.target) if isinstance(node, ast.For) else Effect(node.test)
        ended = self._live(node.orelse, after, errors, jumps)
        leaves = EMPTY if is_endless(node) else ended
        head: Set = leaves | errors
        while True:
            inside = self._live(node.body, head, errors, Targets(after, head))
            if isinstance(node, ast.For):
                new = leaves | before(step, inside, errors)
            else:
                new = before(step, inside | leaves, errors)
            if new <= head:
                break
            head |= new
        return before(Effect(node.iter), head, errors) if isinstance(node, ast.For) else head

    def _live_try(self, node: Any, after: Set, errors: Set, jumps: Targets) -> Set:
        if node.finalbody:
            around = after | errors | jumps.broken | jumps.continued
            after = errors = self._live(node.finalbody, around, errors, jumps)
        caught = errors
        for handler in node.handlers:
            caught |= before(
                Effect(handler.type), self._live(handler.body, after, errors, jumps), errors
            )
        return self._live(node.body, self._live(node.orelse, after, errors, jumps), caught, jumps)

    # --- names that surely have a value, forward ---

    def _bind(self, body: list[ast.stmt], sure: Bound, exits: LoopExits) -> Bound:
        """What surely has a value behind a block."""
        for node in body:
            self.sure[id(node)] = sure
            sure = self._bind_statement(node, sure, exits)
            self.sure_after[id(node)] = sure
        return sure

    def _bind_statement(self, node: Any, sure: Bound, exits: LoopExits) -> Bound:
        if sure is None:
            for block in blocks(node):
                self._bind(block, None, LoopExits())
            return None
        if isinstance(node, ast.If):
            sure |= certain(node.test)
            return meet(self._bind(node.body, sure, exits), self._bind(node.orelse, sure, exits))
        if isinstance(node, ast.For | ast.While):
            return self._bind_loop(node, sure, exits)
        if isinstance(node, ast.With):
            for item in node.items:
                sure |= certain(item.context_expr, item.optional_vars)
            return meet(sure - deleted(node), self._bind(node.body, sure, exits))
        if isinstance(node, ast.Match):
            sure |= certain(node.subject)
            found: Bound = sure
            for case in node.cases:
                found = meet(found, self._bind(case.body, sure, exits))
            return found
        if hasattr(node, "handlers"):
            return self._bind_try(node, sure, exits)
        if isinstance(node, ast.Return | ast.Raise):
            return None
        if isinstance(node, ast.Break):
            exits.broken = meet(exits.broken, sure)
            return None
        if isinstance(node, ast.Continue):
            exits.continued = meet(exits.continued, sure)
            return None
        effect = Effect()
        effect.statement(node)
        return (sure | effect.kills) - deleted(node)

    def _bind_loop(self, node: Any, sure: Set, exits: LoopExits) -> Bound:
        head: Set = sure | (certain(node.iter) if isinstance(node, ast.For) else EMPTY)
        while True:
            own = LoopExits()
            tested = head if isinstance(node, ast.For) else head | certain(node.test)
            inside = head | certain(node.target) if isinstance(node, ast.For) else tested
            again = meet(self._bind(node.body, inside, own), own.continued)
            if again is None or head <= again:
                break
            head &= again
        ended = self._bind(node.orelse, None if is_endless(node) else tested, exits)
        return meet(ended, own.broken)

    def _bind_try(self, node: Any, sure: Set, exits: LoopExits) -> Bound:
        least = sure - deleted(node)
        own = LoopExits()
        done = self._bind(node.orelse, self._bind(node.body, sure, own), own)
        for handler in node.handlers:
            named = frozenset((handler.name,)) if handler.name else EMPTY
            ended = self._bind(handler.body, least | named, own)
            done = meet(done, None if ended is None else ended - named)
        if not node.finalbody:
            exits.broken = meet(exits.broken, own.broken)
            exits.continued = meet(exits.continued, own.continued)
            return done
        final = self._bind(node.finalbody, least, exits)
        for field in ("broken", "continued"):
            if getattr(own, field) is not None and final is not None:
                setattr(exits, field, meet(getattr(exits, field), least & final))
        return None if done is None or final is None else (done - deleted(node)) | (final - least)


def before(effect: Effect, after: Set, errors: Set) -> Set:
    return (after - effect.kills) | effect.uses | errors


def certain(*nodes: ast.AST | None) -> Set:
    """The names that surely have a value behind these parts."""
    return frozenset(Effect(*nodes).kills)


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements in a statement; those of functions are none of them."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    parts = (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))
    return [block for block in (*found, *(p.body for p in parts)) if block]


def captured_in_block(body: list[ast.stmt]) -> Set:
    """The names that functions made in a block may read later."""
    found: Set = EMPTY
    for node in body:
        if inner := blocks(node):
            heads = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            heads += [i.context_expr for i in getattr(node, "items", ())]
            found |= frozenset(name for head in heads for name in captured(head))
            found |= frozenset(name for block in inner for name in captured_in_block(block))
        else:
            found |= captured(node)
    return found
