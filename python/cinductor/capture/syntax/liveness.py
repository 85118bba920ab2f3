"""Which names a construct assigns, which of them are live at its head, and which behind it.

Backward data flow over syntax whose jumps are flags: the only statements that leave a block early
are `return` outside every construct and what raises. What handlers and `finally` need is live all
through the `try`; what functions inside load is live everywhere. Too many names may be called live,
never too few. A loop's own flags are False at its head, so they are never live there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from .jumps import VALUE, blocks_of, is_endless
from .names import is_closed, names_in
from .nodes import children, walk

Set = frozenset[str]
EMPTY: Set = frozenset()


@dataclass(frozen=True, slots=True)
class ConstructFlow:
    """What a construct does with names."""

    binds: Set
    head: Set  # live at its head
    behind: Set  # live behind it
    renewed: Set = EMPTY  # live at a loop's head only for what is behind it: trips bind them anew


class Effect:
    """What a piece of straight code does with names, in the order of evaluation."""

    __slots__ = ("uses", "kills", "binds", "kept")

    def __init__(self, *nodes: ast.AST | None) -> None:
        self.uses: set[str] = set()  # read before they are bound here
        self.kills: set[str] = set()  # bound whatever happens
        self.binds: set[str] = set()
        self.kept: set[str] = set()  # read by what may run later
        for node in nodes:
            if node is not None:
                self.add(node, True)

    def bind(self, name: str, certain: bool = True) -> None:
        """The name gets a value, or loses it."""
        self.binds.add(name)
        if certain:
            self.kills.add(name)

    def add(self, node: ast.AST, certain: bool) -> None:
        """A part that is evaluated next; certain: in every case."""
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store) and node.id not in self.kills:
                self.uses.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                self.bind(node.id, certain)
            return
        if isinstance(node, ast.Lambda):
            self._function(node, certain)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            self._comprehension(node, certain)
        elif isinstance(node, ast.NamedExpr):
            self.add(node.value, certain)
            self.add(node.target, certain)
        elif isinstance(node, ast.BoolOp):
            for i, value in enumerate(node.values):
                self.add(value, certain and i == 0)
        elif isinstance(node, ast.IfExp):
            self.add(node.test, certain)
            self.add(node.body, False)
            self.add(node.orelse, False)
        elif isinstance(node, ast.Compare):
            for i, value in enumerate((node.left, *node.comparators)):
                self.add(value, certain and i < 2)
        else:
            for child in children(node):
                self.add(child, certain)

    def _function(self, node: ast.Lambda | ast.FunctionDef, certain: bool) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.add(default, certain)
        body = node.body if isinstance(node.body, list) else [node.body]
        self.kept |= names_in(*body)

    def _type(self, *nodes: ast.AST | None) -> None:
        """Annotations and what else names types: evaluated here or, by later versions, when asked
        for.
        """
        for node in nodes:
            if node is not None:
                self.add(node, True)
                self.kept |= names_in(node)

    def _comprehension(self, node: Any, certain: bool) -> None:
        self.add(node.generators[0].iter, certain)
        names = [n for n in walk(node) if isinstance(n, ast.Name)]
        own = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
        walrus = {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}
        loads = {n.id for n in names if isinstance(n.ctx, ast.Load)} - (own - walrus)
        self.uses |= loads - self.kills
        self.binds |= walrus
        self.kept |= self._kept_inside(node)
        if isinstance(node, ast.GeneratorExp):
            self.kept |= loads

    @staticmethod
    def _kept_inside(node: ast.AST) -> set[str]:
        inner = [n for n in walk(node) if isinstance(n, ast.Lambda | ast.GeneratorExp)]
        return names_in(*inner)

    def statement(self, node: ast.stmt) -> None:
        """A statement without blocks, or the head of a function."""
        if isinstance(node, ast.FunctionDef):
            for part in node.decorator_list:
                self.add(part, True)
            for arg in walk(node.args):
                if isinstance(arg, ast.arg):
                    self._type(arg.annotation)
            self._type(node.returns, *getattr(node, "type_params", ()))
            if not is_closed(node):
                self._function(node, True)
            self.bind(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                self.bind((alias.asname or alias.name).split(".")[0])
        elif isinstance(node, ast.Assign):
            for part in (node.value, *node.targets):
                self.add(part, True)
        elif type(node).__name__ == "TypeAlias":
            self._type(node.value, *node.type_params)  # type: ignore[attr-defined]
            self.add(node.name, True)  # type: ignore[attr-defined]
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.add(node.value, True)
                self.add(node.target, True)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name) and node.target.id not in self.kills:
                self.uses.add(node.target.id)
            self.add(node.value, True)
            self.add(node.target, True)
        elif isinstance(node, ast.Assert):
            self.add(node.test, True)
            if node.msg is not None:
                self.add(node.msg, False)
        elif not isinstance(node, ast.Global | ast.Nonlocal):
            for child in children(node):
                self.add(child, True)


class Liveness:
    """The flows of a function's constructs, by the id of their nodes."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.flows: dict[int, ConstructFlow] = {}
        self.effects: dict[Any, Effect] = {}
        self.bound: dict[int, Set] = {}
        self.kept: set[str] = set()
        self._block(body, EMPTY, EMPTY)

    def flow(self, node: ast.stmt) -> ConstructFlow:
        """The flow of a for, while or if."""
        found = self.flows[id(node)]
        renewed = found.renewed - self.kept
        return ConstructFlow(found.binds, found.head | self.kept, found.behind | self.kept, renewed)

    def surely_binds(self, node: ast.stmt) -> Set:
        """The names that have a value behind a statement: one without blocks, or whose arms all bind
        them.
        """
        if isinstance(node, ast.If):
            arms = [self._all_bind(body) for body in (node.body, node.orelse)]
            known = [arm for arm in arms if arm is not None]
            return frozenset.intersection(*known) if known else EMPTY
        found = self.effects.get(id(node))
        is_simple = found is not None and next(blocks_of(node), None) is None
        return frozenset(found.kills) if found is not None and is_simple else EMPTY

    def _all_bind(self, body: list[ast.stmt]) -> Set | None:
        """The names that have a value behind a block; None where nothing is behind it."""
        if body and isinstance(body[-1], ast.Raise):
            return None
        return EMPTY.union(*map(self.surely_binds, body))

    def _effect(self, key: Any, *nodes: ast.AST | None) -> Effect:
        found = self.effects.get(key)
        if found is None:
            found = self.effects[key] = Effect(*nodes)
            self.kept |= found.kept
        return found

    def _before(self, effect: Effect, after: Set, errors: Set) -> Set:
        return (after - effect.kills) | effect.uses | errors

    def _block(self, body: list[ast.stmt], after: Set, errors: Set) -> Set:
        """What is live before a block; errors: what is live where its exceptions go."""
        for node in reversed(body):
            after = self._statement(node, after, errors)
        return after

    def _statement(self, node: ast.stmt, after: Set, errors: Set) -> Set:
        if isinstance(node, ast.If):
            return self._if(node, after, errors)
        if isinstance(node, ast.For | ast.While):
            return self._loop(node, after, errors)
        if isinstance(node, ast.With):
            inside = errors | after  # the manager may swallow an exception
            before = self._block(node.body, after, inside)
            items = [p for i in node.items for p in (i.context_expr, i.optional_vars)]
            return self._before(self._effect(id(node), *items), before, inside)
        if hasattr(node, "handlers"):
            return self._try(node, after, errors)
        effect = self.effects.get(id(node))
        if effect is None:
            effect = self.effects[id(node)] = Effect()
            effect.statement(node)
            self.kept |= effect.kept
        if isinstance(node, ast.Return | ast.Raise):
            after = EMPTY
        return self._before(effect, after, errors)

    def _if(self, node: ast.If, after: Set, errors: Set) -> Set:
        head = self._block(node.body, after, errors) | self._block(node.orelse, after, errors)
        test = self._effect(id(node), node.test)
        if id(node) not in self.bound:
            bound = self._binds(node.body) | self._binds(node.orelse)
            self.bound[id(node)] = bound | test.binds
        # The first test is evaluated before the construct, those of elif inside.
        binds = self._binds(node.body) | self._binds(node.orelse)
        self.flows[id(node)] = ConstructFlow(binds, head, after | errors)
        return self._before(test, head, errors)

    def _loop(self, node: Any, after: Set, errors: Set) -> Set:
        is_for = isinstance(node, ast.For)
        resets = frozenset(s.targets[0].id for s in node.ci_resets)
        own = resets | {VALUE}  # no trip begins behind a return
        flag = frozenset((node.ci_flag,)) if node.ci_flag else EMPTY
        step = self._effect(id(node), node.target if is_for else node.test)
        known = self.flows.get(id(node))
        leaves = EMPTY if is_endless(node) else after  # where the head's test sends it
        head = (known.head if known else EMPTY) | leaves - own | errors
        while True:
            before = self._block(node.body, head | after | flag, errors)
            if is_for:
                new = after | self._before(step, before, errors)
            else:
                new = self._before(step, before | leaves, errors)
            new = head | new - own
            if new == head:
                break
            head = new
        binds = self._binds(node.body) | step.binds | resets
        self.bound[id(node)] = binds
        inside = self._before(step, before, errors)
        self.flows[id(node)] = ConstructFlow(binds, head, after | errors, head - inside - errors)
        head |= resets & after  # what it is where no trip runs
        if not is_for:
            return head
        return self._before(self._effect((id(node), "iter"), node.iter), head, errors)

    def _try(self, node: Any, after: Set, errors: Set) -> Set:
        if node.finalbody:
            after = errors = self._block(node.finalbody, after | errors, errors)
        before = self._block(node.orelse, after, errors)
        caught = errors
        for handler in node.handlers:
            inside = self._block(handler.body, after, errors)
            if handler.name:
                inside -= {handler.name}
            caught |= inside | self._effect(id(handler), handler.type).uses
            self.bound[id(handler)] = frozenset((handler.name,)) if handler.name else EMPTY
        return self._block(node.body, before, caught)

    def _binds(self, body: list[ast.stmt]) -> Set:
        """The names that a block, which has been looked at, may bind."""
        names: set[str] = set()
        for node in body:
            if id(node) in self.bound:
                names |= self.bound[id(node)]
                if isinstance(node, ast.If | ast.For | ast.While):
                    continue
            if id(node) in self.effects:
                names |= self.effects[id(node)].binds
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(node, field, None), list):
                    if not isinstance(node, ast.FunctionDef):
                        names |= self._binds(getattr(node, field))
            for part in getattr(node, "handlers", ()):
                names |= self.bound[id(part)] | self._binds(part.body)
        return frozenset(names)
