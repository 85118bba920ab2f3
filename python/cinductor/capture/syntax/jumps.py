"""Turns jumps into flags: afterwards no break, continue or return leaves a construct.

A construct (a loop, or an `if` on a test that may be traced) must run to its end, whichever way its bodies go. So
`break`, `continue`, and `return` inside a construct set flags. The code that a jump would skip is moved: into the
other branch if one branch always jumps, else under `if not flag`. The result is ordinary syntax with plain names
for flags. A loop has the name of the flag that ends it in `ci_flag`, and the flags that each iteration resets in
`ci_resets`.

Invariants: code after a jump in its block is dropped, after its names were recorded; a return outside of every
construct stays; a flag is assigned on every path to where it is read.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ... import _core
from .names import Transformer, constant_at, name_at, placed, store_at, walk
from .rows import FLOW, JUMPS, LEAVES, LOOPS, ROWS

RETURN, VALUE = "__ci_return", "__ci_value"
Loop = ast.For | ast.While
Place = tuple["LoopFlags | None", bool]  # the enclosing loop; whether it is inside of a construct


class Unsuitable(Exception):
    """The function's jumps cannot become flags."""


def may_be_traced(node: ast.expr) -> bool:
    """True if a condition can be something other than Python's own True or False."""
    if isinstance(node, ast.Compare):
        if is_text(node.left) and isinstance(node.ops[0], ast.In | ast.NotIn):
            return len(node.ops) > 1
        return not all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return may_be_traced(node.operand)
    if isinstance(node, ast.BoolOp):
        return any(map(may_be_traced, node.values))
    return not isinstance(node, ast.Constant | ast.JoinedStr)


def is_list(node: ast.expr) -> bool:
    """True for a list display, or a sum or product of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        return is_list(node.left) or is_list(node.right)
    return isinstance(node, ast.List)


ROWLESS = ast.Compare | ast.JoinedStr | ast.UnaryOp | ast.Constant  # expressions whose values are no tuples that hold arrays


def may_be_row(node: ast.expr) -> bool:
    """False if the value of an expression can be no tuple that holds arrays."""
    if isinstance(node, ast.BinOp):
        rows = [may_be_row(part) if isinstance(part, ast.BinOp) else not isinstance(part, ROWLESS) for part in (node.left, node.right)]
        return all(rows) if isinstance(node.op, ast.Add) else isinstance(node.op, ast.Mult) and any(rows)
    return not isinstance(node, ROWLESS)


class Probe:
    """Counts how often its truth is tested."""

    times = 0

    def __bool__(self) -> bool:
        self.times += 1
        return False


def merges_tests() -> bool:
    """True if this version of Python tests x only once in `x and y or z` where the value is used."""
    probe = Probe()
    probe and None or None  # noqa: B018
    return probe.times == 1


MERGES_TESTS = merges_tests()


def test_once(node: ast.expr, is_condition: bool = True) -> None:
    """Mark each `and` and `or`, and each chain in a condition, whose result Python does not test again: it jumps where the
    operand that decides it has been tested. is_condition: the test of a statement, a conditional expression or a comprehension.
    The items of `any` and `all` are values, which these test.
    """
    if hasattr(node, "ci_is_value"):
        return
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            test_once(value, is_condition)
    elif is_condition and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        test_once(node.operand)
    if isinstance(node, ast.BoolOp) or (is_condition and isinstance(node, ast.Compare)):
        node.ci_is_once = is_condition  # type: ignore[union-attr]


def is_text(node: ast.expr) -> bool:
    """True for a constant that is not a number."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


# The lists of statements in a statement; none for functions and classes. The jumps that leave a block.
blocks_of, jumps_of = partial(_core.blocks_of, FLOW), partial(_core.jumps_of, FLOW)


def is_endless(node: ast.stmt) -> bool:
    """True if it is a `while True`: only a jump leaves it."""
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
    )


def always_jumps(body: list[ast.stmt]) -> bool:
    """True if no path reaches the end of the block."""
    for node in body:
        if isinstance(node, JUMPS):
            return True
        if isinstance(node, ast.If) and node.orelse:
            if always_jumps(node.body) and always_jumps(node.orelse):
                return True
        if isinstance(node, ast.While) and is_endless(node):
            if not any(isinstance(n, ast.Break) for n in jumps_of(node.body)):
                return True
    return False


def _leaves_construct(node: ast.stmt) -> bool:
    """True if a return is inside a construct; the statement is in no loop."""
    if isinstance(node, LOOPS) or (isinstance(node, ast.If) and may_be_traced(node.test)):
        return bool(jumps_of([node]))
    return any(_leaves_construct(n) for block in blocks_of(node) for n in block)


def _jumps_from_finally(body: list[ast.stmt]) -> bool:
    for node in body:
        if getattr(node, "finalbody", None) and jumps_of(node.finalbody):  # type: ignore[attr-defined]
            return True
        if any(map(_jumps_from_finally, blocks_of(node))):
            return True
    return False


class LoopFlags:
    """The flags of one loop; None for kinds of jumps that it does not contain."""

    def __init__(self, node: Loop, number: int) -> None:
        kinds = {type(n) for n in jumps_of(node.body)}
        self.broken = f"__ci_break{number}" if ast.Break in kinds else None
        self.skipped = f"__ci_continue{number}" if ast.Continue in kinds else None
        self.returns = ast.Return in kinds
        self.flag = self.broken or (RETURN if self.returns else None)


class Lowering:
    """The jumps of one function."""

    def __init__(self, first_loop: int) -> None:
        self.loops = first_loop
        self.flags: set[str] = set()  # all flag names that this pass created
        self.used: set[str] = set()  # those that are read
        self.dropped: list[ast.stmt] = []

    def run(self, node: ast.FunctionDef) -> None:
        """Lower the function's body in place."""
        body = node.body
        if _jumps_from_finally(body):
            raise Unsuitable
        by_value = any(map(_leaves_construct, body))
        if by_value and not always_jumps(body):
            body = [*body, placed(ast.Return(None), body[-1])]
        new, _ = self._block(body, (None, False))
        if by_value:
            self.flags.add(VALUE)
            self.used.add(VALUE)
            new.append(placed(ast.Return(name_at(body[-1], VALUE)), body[-1]))
        if RETURN in self.used:
            has_text = isinstance(new[0], ast.Expr) and isinstance(new[0].value, ast.Constant)
            new.insert(int(has_text), self._set(new[0], RETURN, False))
        declarations: list[Any] = _core.names_of(FLOW, (self.dropped,), True)[-1]
        node.body = declarations + (self._prune(new) if self.flags else new)

    # building

    def _set(self, at: ast.stmt, name: str, value: bool | str) -> ast.stmt:
        """name = value, where value is a constant or another flag."""
        self.flags.add(name)
        if not isinstance(value, str):
            return flag(name, value, at)
        self.used.add(value)
        return store_at(at, name, name_at(at, value))

    def _unless(self, at: ast.stmt, flag: str, body: list[ast.stmt]) -> ast.If:
        """if not flag: body"""
        self.used.add(flag)
        return placed(ast.If(placed(ast.UnaryOp(ast.Not(), name_at(at, flag)), at), body, []), at)

    @staticmethod
    def _flag_of(jumps: set[Any], loop: LoopFlags | None) -> str:
        """The flag that is True if one of these kinds of jumps was made."""
        if loop is not None and ast.Continue in jumps:
            return loop.skipped or ""
        if loop is not None and ast.Break in jumps:
            return loop.broken or ""
        return RETURN

    # the passes

    def _block(self, body: list[ast.stmt], place: Place) -> tuple[list[ast.stmt], set[Any]]:
        """Lower the block; returns also the kinds of jumps in it that became flags."""
        out: list[ast.stmt] = []
        jumps: set[Any] = set()
        loop, inside = place
        body = list(body)
        while body:
            node = body.pop(0)
            if ROWS[type(node)].flow in LEAVES:
                self.dropped += body
                if not inside:
                    return [*out, node], jumps
                return out + self._jump(node, loop), jumps | {type(node)}
            if isinstance(node, ast.If) and (inside or _leaves_construct(node)):
                if jumps_of([node]):
                    new, more = self._branch(node, body, place)
                    return out + new, jumps | more
            ends = always_jumps([node])
            new, made, more_body = self._statement(node, place)
            out += new
            jumps |= made
            body = more_body + body
            if ends and made:
                self.dropped += body
                return out, jumps
            if made and body:
                rest, more = self._block(body, (loop, True))
                out.append(self._unless(body[0], self._flag_of(made, loop), rest))
                return out, jumps | more
        return out, jumps

    def _jump(self, node: ast.stmt, loop: LoopFlags | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        names: list[str | None] = []
        if isinstance(node, ast.Return):
            out.append(store_at(node, VALUE, node.value or constant_at(node, None)))
            names.append(RETURN)
        if loop is not None:
            if not isinstance(node, ast.Continue):
                names.append(loop.broken)
            names.append(loop.skipped)
        return out + [self._set(node, name, True) for name in names if name]

    def _branch(
        self, node: ast.If, rest: list[ast.stmt], place: Place
    ) -> tuple[list[ast.stmt], set[Any]]:
        """An `if` that contains a jump, and the rest of its block."""
        loop, inner = place[0], (place[0], True)
        first, second = always_jumps(node.body), always_jumps(node.orelse)
        before, after = node.body, node.orelse
        if first and second:
            self.dropped += rest
            rest = []
        elif first:
            after, rest = after + rest, []
        elif second:
            before, rest = before + rest, []
        node.body, jumps = self._block(before, inner)
        node.orelse, more = self._block(after, inner)
        jumps |= more
        out: list[ast.stmt] = [node]
        if rest:
            body, more = self._block(rest, inner)
            out.append(self._unless(rest[0], self._flag_of(jumps, loop), body))
            jumps |= more
        return out, jumps

    def _statement(
        self, node: ast.stmt, place: Place
    ) -> tuple[list[ast.stmt], set[Any], list[ast.stmt]]:
        """A lowered statement, its jumps, and the statements that follow it before the rest."""
        jumps: set[Any] = set()
        if isinstance(node, LOOPS):
            return self._loop(node, place)  # type: ignore[arg-type]
        if isinstance(node, ast.If) and may_be_traced(node.test):
            place = place[0], True
        if isinstance(node, ast.If | ast.With | ast.Try) or hasattr(node, "handlers"):
            node.body, jumps = self._block(node.body, place)  # type: ignore[attr-defined]
        if isinstance(node, ast.If):
            node.orelse, more = self._block(node.orelse, place)
            jumps |= more
        in_body = set(jumps)
        for part in getattr(node, "handlers", ()):
            part.body, more = self._block(part.body, place)
            jumps |= more
        if hasattr(node, "handlers"):
            self._ends_of_try(node, in_body, jumps, place)
        return [node], jumps, []

    def _ends_of_try(self, node: Any, in_body: set[Any], jumps: set[Any], place: Place) -> None:
        """The else clause runs unless the body jumped; finally always."""
        if node.orelse:
            inner = (place[0], True) if in_body else place
            at = node.orelse[0]
            node.orelse, more = self._block(node.orelse, inner)
            if in_body:
                node.orelse = [self._unless(at, self._flag_of(in_body, place[0]), node.orelse)]
            jumps |= more
        node.finalbody, _ = self._block(node.finalbody, place)

    def _loop(self, node: Loop, place: Place) -> tuple[list[ast.stmt], set[Any], list[ast.stmt]]:
        self.loops += 1
        if isinstance(node, ast.While) and any(
            isinstance(part, ast.NamedExpr) for part in walk(node.test)
        ):
            return self._ends_inside(node, place)
        around = place[0]
        own = LoopFlags(node, self.loops)
        body, _ = self._block(node.body, (own, True))
        names = dict.fromkeys((own.flag, own.skipped, RETURN if own.returns else None))
        resets = [self._set(node, name, False) for name in names if name]
        node.body = body
        node.ci_flag, node.ci_resets = own.flag, resets  # type: ignore[union-attr]
        orelse, node.orelse = node.orelse, []
        out: list[ast.stmt] = [node]
        jumps: set[Any] = set()
        if own.flag:
            self.used.add(own.flag)
        if own.returns:
            jumps.add(ast.Return)
            outer = (around.broken, around.skipped) if around else ()
            out += [self._set(node, name, RETURN) for name in outer if name]
        if orelse and own.broken:
            out.insert(0, self._set(node, own.broken, False))
            rest, more = self._block(orelse, (around, True))
            out.append(self._unless(orelse[0], own.broken, rest))
            return out, jumps | more, []
        return out, jumps, orelse

    def _ends_inside(
        self, node: ast.While, place: Place
    ) -> tuple[list[ast.stmt], set[Any], list[ast.stmt]]:
        """Lower a while whose test binds names. After the loop they have the values of the last
        test, so the test becomes part of an iteration that may end there."""
        ended, orelse = f"__ci_ended{self.loops}", node.orelse
        stop: list[ast.stmt] = [placed(ast.Break(), node)]
        if orelse:
            stop.insert(0, self._set(node, ended, True))
        trip = placed(ast.If(node.test, node.body, stop), node.test)
        loop = placed(ast.While(constant_at(node.test, True), [trip], []), node)
        out, jumps, rest = self._loop(loop, place)
        if orelse:
            out.insert(0, self._set(node, ended, False))
            self.used.add(ended)
            rest = [placed(ast.If(name_at(node, ended), orelse, []), orelse[0])]
        return out, jumps, rest

    def _prune(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The block without stores to flags that nothing reads."""
        out: list[ast.stmt] = []
        for node in body:
            if self._is_dead(node):
                continue
            if isinstance(node, LOOPS):
                node.ci_resets = [n for n in node.ci_resets if not self._is_dead(n)]  # type: ignore[attr-defined]
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(node, field, None), list) and blocks_of(node):
                    setattr(node, field, self._prune(getattr(node, field)))
            for part in getattr(node, "handlers", ()):
                part.body = self._prune(part.body) or [placed(ast.Pass(), part.body[0])]
            if getattr(node, "body", None) == []:
                node.body = [placed(ast.Pass(), node)]  # type: ignore[attr-defined]
            out.append(node)
        return out

    def _is_dead(self, node: ast.stmt) -> bool:
        """True if a statement sets a flag that nothing reads."""
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return False
        name = node.targets[0].id
        return name in self.flags and name not in self.used


# --- statements before a loop is left ---


PREFIX = "_exit"
ITERATED = frozenset({"enumerate", "len", "max", "min", "range", "reversed", "sorted", "zip"})
PRINTING = frozenset({"debug", "error", "info", "log", "warn", "warning", "write"})
EMPTY: frozenset[int] = frozenset()
SUSPENDING = ast.Yield, ast.YieldFrom, ast.Await
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda


class SinkPrints(Transformer):
    """Moves printing statements after the loop, inner loops first."""

    def __init__(self, root: ast.AST) -> None:
        self.taken = {n.id for n in walk(root) if isinstance(n, ast.Name)}
        self.count = 0

    def name(self) -> str:
        """A new name that is not used elsewhere in the function."""
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
            ends_alone = k == len(moved) - 1 and is_endless(node) and breaks(node.body) == len(moved)  # only the flag ends the loop
            test = constant_at(body[0], True) if ends_alone else name_at(body[0], name)
            choice = placed(ast.If(test, body, []), body[0])
            choice.end_lineno = body[-1].end_lineno
            behind.append(choice)
        return [*before, node, *behind] if behind else node

    visit_For = visit_While = _loop

    def leave(self, node: Any, body: list[ast.stmt], moved: list[Any]) -> None:
        """Find the exits in the arms of a block of a loop, and record which lines a statement loses."""
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
    """True if releasing the loop's iterator has no visible effect (a generator could run a
    `finally`)."""
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
    return store_at(at, name, constant_at(at, value))


def lines(body: list[ast.stmt]) -> frozenset[int]:
    """The lines of statements."""
    spans = (range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in body)
    return frozenset(line for span in spans for line in span)


def breaks(body: list[ast.stmt]) -> int:
    """The number of jumps that leave the loop with this body."""
    return sum(not isinstance(jump, ast.Continue) for jump in jumps_of(body))


def is_effect(body: list[ast.stmt]) -> bool:
    """True for statements whose only purpose is output, without jumps."""
    prints = any(isinstance(n, ast.Expr) and is_print(n.value) for n in body)
    return prints and not any(isinstance(n, (*JUMPS, *SUSPENDING, *SCOPES)) for part in body for n in walk(part))


def is_print(node: ast.expr) -> bool:
    """print(...), log.info(...), file.write(...)"""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        return func.attr in PRINTING
    return isinstance(func, ast.Name) and func.id == "print"


def with_exits_after(root: Any) -> Any:
    """The function with such statements moved after its loops."""
    return SinkPrints(root).visit(root)


def exits_of(root: Any) -> set[str]:
    """The flags that say how loops were left."""
    return {n.id for n in walk(root) if isinstance(n, ast.Name) and n.id.startswith(PREFIX)}
