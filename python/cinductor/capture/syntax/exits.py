"""What a loop does when it is left stands behind the loop.

    for i in range(n):                  _exit_0 = False
        ...                             for i in range(n):
        if small:                           ...
            print("after", i)     ->        if small:
            break                               _exit_0 = True
                                                break
                                        if _exit_0:
                                            print("after", i)

Nothing of the loop runs between a `break` and what stands behind the loop, so the function does the
same; but a loop whose last trip prints is one that can be captured. That is done of statements that
print or log in front of a `break` or `return` that only `if`s stand around.
"""

from __future__ import annotations

import ast
from typing import Any

from .jumps import blocks_of, is_endless
from .nodes import Transformer, holds, placed, walk

PREFIX = "_exit"
Loop = ast.For | ast.While
JUMPS = ast.Break | ast.Continue | ast.Return | ast.Yield | ast.YieldFrom | ast.Await
ITERATED = frozenset({"enumerate", "len", "max", "min", "range", "reversed", "sorted", "zip"})
PRINTING = frozenset({"debug", "error", "info", "log", "warn", "warning", "write"})
EMPTY: frozenset[int] = frozenset()
SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class PrintSinker(Transformer):
    """Moves such statements, of inner loops first."""

    def __init__(self, root: ast.AST) -> None:
        self.taken = {n.id for n in walk(root) if isinstance(n, ast.Name)}
        self.count = 0

    def name(self) -> str:
        """A name that nobody else binds."""
        while f"{PREFIX}_{self.count}" in self.taken:
            self.count += 1
        self.taken.add(f"{PREFIX}_{self.count}")
        return f"{PREFIX}_{self.count}"

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        moved: list[tuple[str, list[ast.stmt]]] = []
        if isinstance(node, ast.While) or is_quiet(node.iter):
            self.leave(node, node.body, moved)
        before = [flag(name, False, node) for name, _ in moved]
        behind: list[ast.stmt] = []
        for k, (name, body) in enumerate(moved):
            test = placed(ast.Name(name, ast.Load()), body[0])
            if k == len(moved) - 1 and is_endless(node) and breaks(node.body) == len(moved):
                test = placed(ast.Constant(True), body[0])  # nothing else ends it
            choice = placed(ast.If(test, body, []), body[0])
            choice.end_lineno = body[-1].end_lineno
            behind.append(choice)
        return [*before, node, *behind] if behind else node

    visit_For = visit_While = _loop

    def leave(self, node: Any, body: list[ast.stmt], moved: list[Any]) -> None:
        """Looks for exits in the arms of a block of a loop, and notes which lines a statement has
        no more.
        """
        known = len(moved)
        for part in body:
            if not isinstance(part, ast.If):
                continue
            for field in ("body", "orelse"):
                arm = getattr(part, field)
                if arm and isinstance(arm[-1], ast.Break | ast.Return) and is_effect(arm[:-1]):
                    name, end = self.name(), arm[-1]
                    moved.append((name, arm if isinstance(end, ast.Return) else arm[:-1]))
                    part.ci_moved = getattr(part, "ci_moved", EMPTY) | lines(moved[-1][1])  # type: ignore[attr-defined]
                    setattr(part, field, [flag(name, True, end), placed(ast.Break(), end)])
                else:
                    self.leave(part, arm, moved)
        for _, gone in moved[known:]:
            node.ci_moved = getattr(node, "ci_moved", EMPTY) | lines(gone)


def is_quiet(items: ast.expr) -> bool:
    """Whether nobody sees when a loop lets go of what it runs over: a generator has a `finally`."""
    for node in walk(items):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute):
            is_known = isinstance(func.value, ast.Name) and func.value.id in ("np", "numpy")
        else:
            is_known = func is None or (isinstance(func, ast.Name) and func.id in ITERATED)
        if not is_known or isinstance(node, ast.GeneratorExp):
            return False
    return True


def flag(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    """name = value"""
    target = placed(ast.Name(name, ast.Store()), at)
    return placed(ast.Assign([target], placed(ast.Constant(value), at)), at)


def lines(body: list[ast.stmt]) -> frozenset[int]:
    """The lines of statements."""
    spans = (range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in body)
    return frozenset(line for span in spans for line in span)


def breaks(body: list[ast.stmt]) -> int:
    """How many jumps leave the loop whose body it is."""
    count = 0
    for node in body:
        count += isinstance(node, ast.Break | ast.Return)
        if isinstance(node, Loop):
            count += sum(isinstance(n, ast.Return) for n in walk(node))
            count += breaks(node.orelse)
        elif not isinstance(node, SCOPES):
            count += sum(breaks(block) for block in blocks_of(node))
    return count


def is_effect(body: list[ast.stmt]) -> bool:
    """Statements that tell somebody something, and do not jump."""
    prints = any(isinstance(n, ast.Expr) and is_print(n.value) for n in body)
    return prints and not any(isinstance(n, JUMPS | SCOPES) for part in body for n in walk(part))


def is_print(node: ast.expr) -> bool:
    """print(...), log.info(...), file.write(...)"""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        return func.attr in PRINTING
    return isinstance(func, ast.Name) and func.id == "print"


def with_exits_behind(root: Any) -> Any:
    """The function with such statements behind its loops."""
    if root is None or not holds(root, ast.For, ast.While) or not holds(root, ast.Expr):
        return root
    return PrintSinker(root).visit(root)


def exits_of(root: Any) -> set[str]:
    """The names that say how loops were left."""
    return {n.id for n in walk(root) if isinstance(n, ast.Name) and n.id.startswith(PREFIX)}
