"""Traverses, transforms and positions syntax trees, and collects the names of a function.

A faster replacement for `ast`'s visitors, in C: long functions are traversed many times. For a function it also computes which names it binds, in which scope each name
lives, and how each use of a name is used. Operators and contexts have neither children nor positions and are
skipped.
"""

from __future__ import annotations

import ast
import functools
from typing import Any, ClassVar

from ... import _core
from ...base.records import NamedTuple
from .rows import FLOW

FunctionNode = ast.FunctionDef | ast.Lambda

# The child nodes in order; a node and all below it, breadth first; a copy of these. A new node with the position of an old one; the
# position of a node, for a new one. Called thousands of times, so they are implemented in C.
children, walk, duplicate, placed, place_of = _core.children, _core.walk, _core.duplicate, _core.placed, _core.place_of
# Nodes at the position of another one: a load of a name, `name = value`, a constant.
name_at, store_at, constant_at = _core.name_at, _core.store_at, _core.constant_at


class Visitor(_core.SyntaxVisitor):
    """Calls `visit_Name` etc. for nodes of that class, and `generic_visit` for others, which visits the children."""

    _methods: ClassVar[dict[type[ast.AST], Any]]
    generic_visit = _core.SyntaxVisitor.visit_parts

    def __init_subclass__(cls) -> None:
        cls._methods = {}


class Transformer(Visitor):
    """A visitor whose methods return the replacement of a node; in lists, several or none."""

    generic_visit = _core.SyntaxVisitor.replace_parts


# --- statements from texts ---


OF_STAGE = ("sum_and_carry", "sum_of")  # functions in texts that are methods of the stage


@functools.lru_cache(64)
def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text, without positions. A name `made_x` is the hidden name made.x."""
    tree = ast.parse(text)
    for node in walk(tree):
        for attribute in node._attributes:
            delattr(node, attribute)
        if isinstance(node, ast.Name):
            node.id = node.id.replace("made_", "made.")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            node.ci_is_internal = node.func.id in OF_STAGE  # type: ignore[attr-defined]
    return tree.body


def from_text(text: str, node: ast.AST, **trees: Any) -> list[ast.stmt]:
    """The statements of a text, at the position of a node. Each of `trees` is in place of a name: a tree, another name, or the statements for
    one that is only the name."""
    return _core.filled(parsed(text), node, trees)


# --- the names of a function ---


def names_in(*nodes: ast.AST) -> set[str]:
    """Every name in a syntax tree."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def type_parameters(node: Any) -> Names | None:
    """The scope around a generic function, which contains its annotations and its body."""
    names = [ast.arg(p.name) for p in getattr(node, "type_params", ())]
    scope = ast.Lambda(ast.arguments([], names, None, [], [], None, []), ast.Constant(None))
    return Names(scope) if names else None


def is_closed(node: FunctionNode) -> bool:
    """True if cinductor created the function, so that it reads no names of the enclosing functions.
    """
    return getattr(node, "ci_is_closed", False)


class Names:
    """The names that a function binds, declares global or nonlocal, unbinds, and loads in inner functions; lists that are gathered
    (`Uses`), and those of them that it returns.
    """

    def __init__(self, node: FunctionNode) -> None:
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        arguments = node.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.bound.add(arg.arg)
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                self.bound.add(star.arg)
        self.arguments = frozenset(self.bound)
        _, _, bound, self.loads, _, self.unbound, declared = _core.names_of(FLOW, (node.body,), True)
        self.bound.update(bound)
        for declaration in declared:
            (self.globals if isinstance(declaration, ast.Global) else self.nonlocals).update(declaration.names)  # type: ignore[attr-defined]
        self.bound -= self.globals | self.nonlocals
        self.gathers = self.results = frozenset[str]()
        if [n for n in walk(node) if type(n) is ast.List and not n.elts]:
            uses = Uses(node, self)
            self.gathers, self.results = uses.gathered(), uses.gathered(RETURNED)


# --- uses of names ---


# Uses of a name, in this order: bound to `[]`, before `.append(...)`, the only argument of a call.
# Then: the first argument of `len` or `enumerate`, the iterable of a loop, before an index.
# The last: in the value of the function's only return, at its end.
EMPTY, APPENDED, GIVEN, MEASURED, ITERATED, INDEXED, RETURNED = range(7)
MEASURES = frozenset({"len", "enumerate"})


class Use(NamedTuple):
    """A position at which a name is used, and how."""

    line: int
    column: int
    what: tuple[int, ...]


class Uses(Visitor):
    """The uses of a function's names."""

    def __init__(self, node: FunctionNode, names: Names) -> None:
        self.names = names
        self.made_empty: set[str] = set()  # assigned by `name = []`
        self.of: dict[str, list[Use]] = {}
        self.nested = 0  # enclosing comprehensions
        body: list[Any] = node.body if isinstance(node.body, list) else [node.body]
        returned = result_of(body)
        for statement in body if returned is None else body[:-1]:
            self.visit(statement)
        for value in returned or ():
            self.stand(value, RETURNED)

    def note(self, node: ast.Name, *what: int) -> None:
        """Record a use of a name. The order of uses inside an inner function or a comprehension is
        unknown."""
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)  # nodes made by cinductor may have none
        use = Use(*place, () if self.nested else what)
        self.of.setdefault(node.id, []).append(use)

    def stand(self, node: Any, *what: int) -> None:
        """Record a part that is a name as this use; the names of another expression are used in an unknown way."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.note(node, *what)
        elif node is not None:
            self.visit(node)

    def gathered(self, *others: int) -> frozenset[str]:
        """Lists that start empty, are filled by `append`, and after the last append are only passed
        to calls, which the stage sees, so that their representation is invisible. others:
        further uses that are allowed."""
        found, names = set(), self.names
        allowed = frozenset((EMPTY, APPENDED, GIVEN, *others)).intersection
        for name in self.made_empty & names.bound - names.arguments - names.loads:
            uses = self.of[name]
            appends = [u[:2] for u in uses if APPENDED in u.what]
            reads = [u[:2] for u in uses if GIVEN in u.what]
            is_plain = all(allowed(use.what) for use in uses)
            if is_plain and appends and not (reads and min(reads) <= max(appends)):
                found.add(name)
        return frozenset(found)

    def octets(self) -> frozenset[str]:
        """Parameters of which only items are read: a bytes argument may be an array, whatever its contents in the
        next call.
        """
        names = self.names
        measures = [] if MEASURES & names.bound else [MEASURED]
        fine = frozenset((ITERATED, INDEXED, *measures)).intersection
        others = {name for name, uses in self.of.items() if not all(fine(use.what) for use in uses)}
        return names.arguments - names.loads - others

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        for value in node.value.elts if is_row(node.value) else [node.value]:  # type: ignore[attr-defined]
            self.visit(value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and isinstance(value, ast.List) and not value.elts:
            if not self.nested:
                self.made_empty.add(target.id)
            self.note(target, EMPTY)
        elif is_row(target) and is_row(value) and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            for one, its in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                self._bind(one, its)
        else:
            self.visit(target)

    def visit_Call(self, node: ast.Call) -> None:
        func, args = node.func, node.args
        is_alone = len(args) == 1 and not node.keywords
        what = [GIVEN] if is_alone else []
        if isinstance(func, ast.Name) and func.id in MEASURES and not node.keywords:
            what.append(MEASURED)
        if is_alone and isinstance(func, ast.Attribute) and func.attr == "append":
            self.stand(func.value, APPENDED)
            self.visit(args[0])
            return
        self.visit(func)
        for k, arg in enumerate(args):
            self.stand(arg, *(() if k else what))
        for keyword in node.keywords:
            self.visit(keyword)

    def visit_For(self, node: ast.For) -> None:
        self.stand(node.iter, ITERATED)
        for part in (node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        is_item = isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice | ast.Tuple)
        self.stand(node.value, *([INDEXED] if is_item else []))
        self.visit(node.slice)

    def visit_Name(self, node: ast.Name) -> None:
        self.note(node)

    def visit_Lambda(self, node: FunctionNode) -> None:
        """Uses inside of an inner function are unknown."""
        self.nested += 1
        for child in walk(node):
            if isinstance(child, ast.Name) and not is_closed(node):
                self.note(child)
        self.nested -= 1

    visit_FunctionDef = visit_Lambda

    def visit_TypeAlias(self, node: Any) -> None:
        self.visit(node.name)

    def _comprehension(self, node: Any) -> None:
        self.nested += 1
        self.generic_visit(node)
        self.nested -= 1

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def result_of(body: list[Any]) -> list[ast.expr] | None:
    """The values of the function's only `return`, which must be the last statement; otherwise None.
    """
    last = body[-1]
    inner = [n for statement in body[:-1] for n in walk(statement) if isinstance(n, ast.Return)]
    if not isinstance(last, ast.Return) or last.value is None or inner:
        return None
    return last.value.elts if is_row(last.value) else [last.value]  # type: ignore[attr-defined]


def results_in(root: FunctionNode) -> frozenset[ast.expr]:
    """The conditional expressions that are results of a function, or arms of such a one."""
    found: set[ast.expr] = set()
    left: list[Any] = [root.body] if isinstance(root, ast.Lambda) else [*root.body]
    while left:
        node = left.pop()
        if isinstance(node, ast.IfExp):
            found.add(node)
            left += [node.body, node.orelse]
        elif isinstance(node, ast.Return):
            left += [] if node.value is None else [node.value]
        elif isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            left += [child for child in children(node) if isinstance(child, ast.stmt | ast.ExceptHandler)]
    return frozenset(found)


def is_row(node: Any) -> bool:
    """True for a, b"""
    return isinstance(node, ast.Tuple) and not any(isinstance(n, ast.Starred) for n in node.elts)


def targets_of(node: Any) -> set[str]:
    """The names that a comprehension binds."""
    return names_in(*(g.target for g in node.generators))


def free_names(node: ast.AST) -> set[str]:
    """The names that an expression reads from its surroundings."""
    if isinstance(node, ast.Name):
        return {node.id}
    found: set[str] = set().union(*map(free_names, children(node)))
    return found - targets_of(node) if hasattr(node, "generators") else found


def end_of(node: Any) -> ast.stmt:
    """A statement at the end position of a node."""
    line, column = node.end_lineno, node.end_col_offset
    return ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=column)


def place_new(new: ast.AST, old: ast.AST) -> None:
    """Give nodes without a position that of the old node."""
    for node in walk(new):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            placed(node, old)
