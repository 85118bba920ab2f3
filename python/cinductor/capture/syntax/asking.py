"""Building blocks of rewritten code: questions of the stage, where names live, and sites.

A site is a row for each construct that is a call. A construct at work is an object of `plain_control` (or of a region being captured); its site says
what the source knows of it. Rows are made once by the rewriter and never change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...user import OURS as OURS
from ...user import STAGE as STAGE
from .cfg import Cfg
from .jumps import Lowering, Unsuitable
from .names import Names
from .nodes import Transformer, place_of, placed
from .source import FunctionNode


@dataclass(frozen=True, slots=True)
class Site:
    """One for, while or if.

    Names are the function's own, and flags (`__ci_...`) that jumps have become. What functions
    inside load is always live; names declared global or nonlocal are in none of the tuples.
    """

    number: int
    kind: str  # for, while, if
    line: int
    col: int
    state: tuple[str, ...]  # names assigned in it, sorted
    carried: tuple[str, ...]  # those live at its head; the loop's own flag never is
    live_out: tuple[str, ...]  # those live behind it
    renewed: frozenset[str] = frozenset()  # loops: those live at its head where no trip runs
    target: Any = None  # for: the shape of the target, as `unpack` takes it
    flag: str | None = None  # loops: True where the loop shall end after this trip
    depth: int = 0  # loops: how many there are inside, each within the one before
    arms: int = 0  # if: how many tests it has
    has_else: bool = False
    raising: tuple[tuple[int, str], ...] = ()  # if: steps that end by raising, and what
    returned: frozenset[str] = frozenset()  # names nobody reads once the function is to return
    gathers: frozenset[str] = frozenset()  # lists that are filled, then handed to calls
    results: frozenset[str] = frozenset()  # and those that the user's function then returns
    maybe_unbound: frozenset[str] = frozenset()  # names that are asked for where they may have no value
    protected: bool = False  # it stands in a try or a with of its function


LOCAL, CELL, FREE, GLOBAL = "local", "cell", "free", "global"


class Asking(Transformer):
    """What every part of the rewriter uses: `__ci__.method(...)`, names, the functions around."""

    def __init__(
        self,
        root: FunctionNode,
        freevars: Iterable[str],
        with_regions: bool,
        annotations_run: bool = True,
    ) -> None:
        self.root = root
        self.annotations_run = annotations_run  # with the `def`, not later or never
        self.freevars = frozenset(freevars)
        self.with_regions = with_regions
        self.scopes: list[Names] = []
        self.hidden: list[set[str]] = []  # targets of comprehensions around
        self.cfg: Cfg | None = None  # of the function being rewritten
        self.sites: list[Site] = []
        self.temporaries = 0
        self.loops = 0
        self.bound: frozenset[str] = frozenset()  # names that surely have a value here
        self.blocks = 0  # of CPython's, around
        self.protected = 0  # try and with around
        self.decisive = 0  # tests around of which sizes are to decide now
        self.without_walrus = 0 if with_regions else 1

    def run(self) -> FunctionNode:
        """The function's node, rewritten; the node given is changed."""
        self._body(self.root)
        return self.root

    # building

    def ask(self, node: ast.AST, method: str, *args: ast.expr, **more: Any) -> ast.Call:
        """`__ci__.method(args)` at node's place."""
        at = place_of(node)
        method_of = ast.Attribute(ast.Name(STAGE, ast.Load(), **at), method, ast.Load(), **at)
        return ast.Call(method_of, list(args), more.get("keywords", []), **at)

    def ours(self, node: ast.AST, name: str, of: str = STAGE) -> ast.Attribute:
        """`__ci__.name`, or of another name of ours, at node's place."""
        at = place_of(node)
        return ast.Attribute(ast.Name(of, ast.Load(), **at), name, ast.Load(), **at)

    def load(self, node: ast.AST, name: str) -> ast.Name:
        """A name as it is."""
        return ast.Name(name, ast.Load(), **place_of(node))

    def store(self, node: ast.AST, name: str, value: ast.expr) -> ast.Assign:
        """name = value"""
        at = place_of(node)
        return ast.Assign([ast.Name(name, ast.Store(), **at)], value, **at)

    def text(self, node: ast.AST, value: Any) -> ast.Constant:
        """A constant."""
        return ast.Constant(value, **place_of(node))

    def temporary(self, kind: str) -> str:
        """A new local name of ours."""
        self.temporaries += 1
        return f"__ci_{kind}{self.temporaries}"

    # names

    def where(self, name: str) -> str:
        """Where a name of the innermost function lives."""
        if name.startswith(OURS) or (self.hidden and self.is_hidden(name)):
            return LOCAL
        if name in self.scopes[-1].globals:
            return GLOBAL
        for i in range(len(self.scopes) - 1, -1, -1):
            scope = self.scopes[i]
            if name in scope.globals:
                return GLOBAL
            if name in scope.bound:
                shared = i < len(self.scopes) - 1 or name in scope.loads
                return CELL if shared else LOCAL
        return FREE if name in self.freevars else GLOBAL

    def is_hidden(self, name: str) -> bool:
        """Whether a comprehension around binds it."""
        return any(name in targets for targets in self.hidden)

    def _may_be_unbound(self, name: str) -> bool:
        """Whether constructs may leave a name without a value on some paths, for whoever reads it
        asks.
        """
        if self.cfg is None or name.startswith(OURS) or self.where(name) != LOCAL:
            return False
        names = self.scopes[-1]
        return name in names.bound and name not in names.unbound and not self.is_hidden(name)

    def _has_value(self, name: str) -> bool:
        """Whether a local name surely has one; those of functions around are taken to have, unless
        some statement deletes them.
        """
        if name in self.bound or self.is_hidden(name):
            return True
        around = [scope for scope in self.scopes if name in scope.bound]
        return self.scopes[-1] not in around and all(name not in s.unbound for s in around)

    # functions

    def _body(self, node: FunctionNode) -> None:
        names = Names(node)
        if self.scopes:  # what it returns is no result of the call
            names.results = names.gathers
        self.scopes.append(names)
        around = self.hidden, self.cfg, self.blocks, self.protected, self.bound
        self.hidden, self.cfg, self.blocks, self.protected = [], None, 0, 0
        self.bound = names.arguments - names.unbound
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            dropped = self._lower(node, names) if self.with_regions else []
            shared = sorted(n for n in names.nonlocals if self.where(n) == CELL)
            node.body = [*self._sharing(node, shared), *self._statements(node.body)]
            if dropped:
                node.body.append(self._binding(node, names))
        self.hidden, self.cfg, self.blocks, self.protected, self.bound = around
        self.scopes.pop()

    def _lower(self, node: ast.FunctionDef, names: Names) -> list[ast.stmt]:
        """Turns jumps into flags; gives the statements that are gone."""
        lowering = Lowering(self.loops)
        try:
            lowering.run(node)
        except Unsuitable:
            return []
        self.loops = lowering.loops
        names.bound |= lowering.flags
        self.cfg = Cfg(node.body, names.arguments)
        return lowering.dropped

    def _sharing(self, node: ast.FunctionDef, shared: list[str]) -> list[ast.stmt]:
        """The docstring; then what tells the stage the cells of names that the function sets in one
        around.
        """
        has_text = bool(node.body) and ast.get_docstring(node, clean=False) is not None
        first = [node.body.pop(0)] if has_text else []
        if shared:
            nothing = ast.arguments([], [], None, [], [], None, [])
            names = ast.Tuple([self.load(node, name) for name in shared], ast.Load())
            call = self.ask(node, "shares", ast.Lambda(nothing, names))
            first.append(placed(ast.Expr(call), node))
        return first

    def _binding(self, node: ast.FunctionDef, names: Names) -> ast.stmt:
        """`if 0:` a store to every local name: those that only dropped code binds stay local."""
        stores = [placed(ast.Name(name, ast.Store()), node) for name in sorted(names.bound)]
        none = self.text(node, None)
        assign = placed(ast.Assign(list[ast.expr](stores), none), node)
        return placed(ast.If(self.text(node, False), [assign], []), node)

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        bound = self.bound
        for statement in body:
            sure = self.cfg.sure_after(statement) if self.cfg else None
            new = self.visit(statement)
            out.extend(new if isinstance(new, list) else [new])
            self.bound |= (sure or frozenset()) - self.scopes[-1].unbound
        self.bound = bound
        return out
