"""Turns blocks of bytecode instructions into loops and branches.

A test that only leads to another test is an `and` or `or`; a block that only leaves a value is an operand. What
remains are loops (a block to which a later one jumps back) and branches, distinguished by where their paths join.
Python duplicates a while's condition at the end of the loop, and a small end of the function wherever it is
reached; both are undone, because compiling does them again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .names import Transformer, walk

SLOT = "__ci_slot"  # a value that a block finds on the stack, by its depth
ITEM = "__ci_item"  # the value assigned to a loop's target
MAX_STEPS = 20_000  # visits of blocks, because paths may join repeatedly


class Unknown(Exception):
    """Bytecode that is not supported."""


class Block:
    r"""Consecutive instructions.

    test: decides between `ahead` (true) and `other`; items: the iterable of a `for`, which continues at `other` after
    the last item.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.line = 0
        self.body: list[ast.stmt] = []
        self.stack: list[Any] = []
        self.pops = 0  # number of values that it takes from the stack of earlier blocks
        self.test: Any = None
        self.items = False
        self.ends = False
        self.is_far = False  # it jumps over other blocks
        self.turns = False  # it jumps if the test is true
        self.keeps = ""  # `and` or `or` whose first operand is the test
        self.drops = False  # it first drops a value that an earlier test has kept
        self.ahead: Block | None = None
        self.other: Block | None = None

    @property
    def next(self) -> list[Block]:
        return [b for b in (self.ahead, self.other) if b is not None]

    @property
    def is_pure(self) -> bool:
        """True if it only pushes values."""
        return not self.body and not self.items and self.pops == 0


def is_arg_position(value: Any, target: Any) -> bool:
    """True if the expression read is the target of the store."""
    if type(value) is not type(target):
        return False
    if isinstance(value, ast.Name):
        return bool(value.id == target.id)
    if isinstance(value, ast.Attribute):
        return value.attr == target.attr and value.value is target.value
    return value.value is target.value and value.slice is target.slice


class Filling(Transformer):
    """Substitutes values for those that a block has taken from the stack; stack: the values."""

    def __init__(self, stack: list[Any]) -> None:
        self.stack = stack

    def visit_Name(self, node: ast.Name) -> Any:
        if not node.id.startswith(SLOT):
            return node
        depth = int(node.id.removeprefix(SLOT))
        if depth <= len(self.stack):
            return self.stack[-depth]
        return ast.copy_location(ast.Name(f"{SLOT}{depth - len(self.stack)}", ast.Load()), node)

    def each(self, values: list[Any]) -> list[Any]:
        """The visited copies of several values."""
        return [self.visit(v) if isinstance(v, ast.AST) else v for v in values]


class Jumps:
    """The targets of a loop's jumps."""

    def __init__(self, head: Block, behind: Block | None) -> None:
        self.head, self.behind = head, behind


class Structure:
    """Turns blocks into loops and branches."""

    def __init__(self, reader: Any, first: Block) -> None:
        self.reader, self.first = reader, Block(-1)
        self.first.ahead = first
        while self.joins():
            pass
        self.turn_loops()
        while self.joins():
            pass
        self.loops: list[Jumps] = []
        self.steps = 0

    def body(self) -> list[ast.stmt]:
        """All statements."""
        body = [InPlace().visit(part) for part in self.sequence(self.first, None, [])]
        names = (n for part in body for n in walk(part) if isinstance(n, ast.Name))
        if any(n.id.startswith(SLOT) or n.id == ITEM for n in names):
            raise Unknown("a value of another block")
        return body

    # --- merging blocks ---

    def all(self) -> list[Block]:
        """All reachable blocks, by number."""
        return sorted(reached_from(self.first, ()), key=lambda b: b.number)

    def joins(self) -> bool:
        """True if two blocks were merged."""
        blocks = self.all()
        before: dict[Block, int] = dict.fromkeys(blocks, 0)
        before[self.first] = 1
        for block in blocks:
            for other in block.next:
                before[other] += 1
        is_alone = lambda b: b is not None and before[b] == 1  # noqa: E731
        for a in reversed(blocks):
            if a.keeps:
                if self.joins_value(a, is_alone):
                    return True
            elif a.test is not None:
                if self.joins_test(a, is_alone) or self.joins_tests(a, is_alone) or self.joins_choice(a, is_alone):
                    return True
            elif not a.items and not a.is_far and is_alone(a.ahead) and not a.ahead.items and a.ahead is not a:  # type: ignore[no-untyped-call, union-attr]
                self.append(a, a.ahead)
                return True
        return False

    def append(self, a: Block, b: Any) -> None:
        """Append the effect of block b to block a."""
        fill = Filling(a.stack)
        a.body += fill.each(b.body)
        test = None if b.test is None else fill.visit(b.test)
        stack = fill.each(b.stack)
        a.pops += max(0, b.pops - len(a.stack))
        a.stack = a.stack[: max(0, len(a.stack) - b.pops)] + stack
        a.test, a.keeps, a.ends, a.ahead, a.other = test, b.keeps, b.ends, b.ahead, b.other
        a.is_far, a.turns = b.is_far, b.turns

    def joins_value(self, a: Block, is_alone: Callable[[Any], bool]) -> bool:
        """`a and b`, `a or b`"""
        behind, b = (a.ahead, a.other) if a.keeps == "or" else (a.other, a.ahead)
        if b is None or not is_alone(b) or not b.is_pure or b.test is not None or len(b.stack) != 1:
            return False
        if b.ahead is not behind:
            return False
        self.end_with(a, self.joined(ast.Or() if a.keeps == "or" else ast.And(), a.test, b.stack[0]), behind)
        return True

    def joins_test(self, a: Block, is_alone: Callable[[Any], bool]) -> bool:
        """`a and b or c`, `(a or b) and c`: the value of the second test is kept."""
        for b, rest in ((a.ahead, a.other), (a.other, a.ahead)):
            if b is None or not is_alone(b) or not b.keeps or not b.is_pure or b.stack:
                continue
            is_or = b.keeps == "or"
            if (b is a.ahead) is not is_or or rest is not (b.other if is_or else b.ahead):
                continue
            a.test = self.joined(ast.And() if is_or else ast.Or(), a.test, b.test)
            a.keeps, a.ahead, a.other = b.keeps, b.ahead, b.other
            return True
        return False

    def end_with(self, a: Block, value: Any, behind: Block | None) -> None:
        a.stack.append(value)
        a.test, a.keeps, a.ahead, a.other = None, "", behind, None

    def joined(self, op: Any, first: Any, second: Any) -> Any:
        """first op second"""
        is_more = isinstance(second, ast.BoolOp) and type(second.op) is type(op)
        values = [first, *second.values] if is_more else [first, second]
        return ast.copy_location(ast.BoolOp(op, values), first)

    def joins_choice(self, a: Block, is_alone: Callable[[Any], bool]) -> bool:
        """`b if a else c`"""
        b, c = a.ahead, a.other
        for part in (b, c):
            if part is None or not is_alone(part) or not part.is_pure or part.test is not None:
                return False
            if part.ends or len(part.stack) != 1 or not isinstance(part.stack[0], ast.AST):
                return False
        if b.ahead is not c.ahead:  # type: ignore[union-attr]
            return False
        value = ast.IfExp(a.test, b.stack[0], c.stack[0])  # type: ignore[union-attr]
        self.end_with(a, ast.copy_location(value, a.test), b.ahead)  # type: ignore[union-attr]
        return True

    def joins_tests(self, a: Block, is_alone: Callable[[Any], bool]) -> bool:
        """Tests of which the second is only evaluated sometimes."""
        t, f = a.ahead, a.other
        for b, rest in ((t, f), (f, t)):
            if b is None or not is_alone(b) or not b.is_pure or b.stack or b.test is None or b.keeps:
                continue
            if rest not in (b.ahead, b.other) or b.ahead is b.other:
                continue
            is_and = rest is b.other
            first = a.test
            if (b is t) != is_and:
                first = negated(first)
            a.test = self.joined(ast.And() if is_and else ast.Or(), first, b.test)
            a.ahead, a.other, a.turns = b.ahead, b.other, b.turns
            return True
        return False

    def turn_loops(self) -> None:
        """Undo the duplication of a while's condition: at the end of the body, jump back to the first test."""
        blocks = [b for b in self.all() if b.test is not None and not b.keeps]
        for a in blocks:
            for b in blocks:
                is_later = a.number < b.number and a.ahead is not None and a.ahead.number <= b.number
                if not is_later or b.test is None or a.ahead is not passed(b.ahead) or not is_copy(a.other, b.other):
                    continue
                if a.ahead.number <= a.number or ast.dump(a.test) != ast.dump(b.test):  # type: ignore[union-attr]
                    continue
                if a.body or a.stack:
                    head = Block(a.number + 0.5)  # type: ignore[arg-type]
                    head.test, head.ahead, head.other = a.test, a.ahead, a.other
                    a.test, a.ahead, a.other = None, head, None
                    a.joined = False  # type: ignore[attr-defined]
                    b.test, b.ahead, b.other = None, head, None
                    a = head
                else:
                    b.test, b.ahead, b.other = None, a, None

    # --- statements ---

    def stops(self, follow: Block | None) -> tuple[Any, ...]:
        ways = (self.loops[-1].head, self.loops[-1].behind) if self.loops else ()
        return (*ways, follow)

    def sequence(self, block: Block | None, follow: Block | None, stack: list[Any], at_head: bool = False) -> Any:
        """The statements from a block up to another; at_head: the block is the head of a loop."""
        out: list[ast.stmt] = []
        ways, line = self.loops[-1] if self.loops else None, 0
        while block is not None and (block is not follow or at_head):
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Unknown("paths that do not join")
            if ways is not None and not at_head and block in (ways.head, ways.behind):
                jump = ast.Continue() if block is ways.head else ast.Break()
                return [*out, self.on_line(jump, line)]
            if not at_head and self.is_head(block):
                loop, block = self.loop(block, stack)
                out.append(loop)
                continue
            at_head, line = False, block.line
            fill = Filling(stack)
            is_empty = not out and not block.body
            out += fill.each(block.body)
            test = None if block.test is None else fill.visit(block.test)
            stack = stack[: max(0, len(stack) - block.pops)] + fill.each(block.stack)
            if block.ends:
                return out
            if test is None:
                if ways is not None and block.ahead is ways.head and is_empty:
                    return [*out, self.on_line(ast.Continue(), block.line)]
                block = block.ahead
                continue
            meet = self.meeting(block, follow)
            end, then, other = follow if meet is None else meet, block.ahead, block.other
            if block.turns:
                test, then, other = negated(test), other, then
            if other is not None and ways is not None and end is ways.head and is_jump(other, end):
                other = end  # the end of an iteration, which the source does not show
            arms = [self.sequence(b, end, [*stack]) for b in (then, other)]
            out.append(self.choice(test, *arms))
            if meet is None:
                return out
            block = meet
        return out

    def on_line(self, node: Any, line: int) -> Any:
        """The node with that line."""
        self.reader.line = line or self.reader.line
        return self.reader.at(node)

    def choice(self, test: Any, then: list[ast.stmt], other: list[ast.stmt]) -> ast.stmt:
        """if test: ... else: ..."""
        if not then:
            test, then, other = negated(test), other, []
        return ast.copy_location(ast.If(test, then or [ast.copy_location(ast.Pass(), test)], other), test)

    def meeting(self, block: Block, follow: Block | None) -> Block | None:
        """The block where the paths of a test join."""
        stops = self.stops(follow)
        ways = [reached_from(b, stops) if b is not None else set() for b in block.next]
        common = ways[0] & ways[1] if len(ways) == 2 else set()
        first = min(common - {*stops}, key=lambda b: b.number, default=None)
        return follow if first is None and follow in common else first

    def is_head(self, block: Block) -> bool:
        """True if a later block jumps back to it."""
        stops = self.stops(None)
        return any(block in b.next and b not in stops for b in reached_from(block, stops))

    def loop(self, head: Block, stack: list[Any]) -> tuple[ast.stmt, Block | None]:
        """A loop, and the block after it."""
        stops = self.stops(None)
        inside = {
            b
            for b in reached_from(head, stops) - {*stops}
            if any(head in reached_from(n, stops) for n in b.next if n not in stops)
        }
        outs = sorted({n for b in inside for n in b.next} - inside, key=lambda b: b.number)
        end: Block | None = None
        start: Any = head
        at_head, test = True, self.reader.at(ast.Constant(True))
        if head.items:
            start, end, at_head = head.ahead, head.other, False
        elif head.is_pure and not head.stack and head.test is not None:
            (first, second), at_head = head.next, False
            if (first in inside) == (second in inside):
                start, at_head = head, True
            else:
                start, end = (first, second) if first in inside else (second, first)
                test = head.test if first in inside else negated(head.test)
        for block in outs:  # code after the loop may also be the target of a jump out of it
            if block is not end is not None and block.ends and block.pops and (tail := tail_of(end, block)):
                block.body, block.ends, block.ahead = [], False, tail
        jumps = [b.ahead for b in outs if b is not end and is_jump(b, b.ahead, True)]
        others = [*jumps, *(b for b in outs if b is not end and not b.ends and not is_jump(b, b.ahead, True))]
        behind = others[0] if others else end
        self.loops.append(Jumps(head, behind))
        items = stack.pop() if head.items else None
        body = self.sequence(start, head, [*stack, *([None, self.reader.name(ITEM)] if head.items else [])], at_head)
        self.loops.pop()
        ended = self.sequence(end, behind, stack) if end is not behind and end is not None else []
        body = body or [self.reader.at(ast.Pass())]
        if not head.items:
            return ast.copy_location(ast.While(test, body, ended), test), behind
        first_one = body.pop(0)
        if not isinstance(first_one, ast.Assign) or getattr(first_one.value, "id", "") != ITEM:
            raise Unknown("a loop without a target")
        body = body or [ast.copy_location(ast.Pass(), first_one)]
        loop = ast.For(first_one.targets[0], items, body, ended)  # type: ignore[arg-type]
        return ast.copy_location(loop, first_one), behind


def passed(block: Block | None) -> Block | None:
    """The first block that does something, after blocks that only jump."""
    return block.ahead if block is not None and is_jump(block, block.ahead) else block


class InPlace(Transformer):
    """`a = a + b` that was written as `a += b`."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        value: Any = node.value
        target: Any = node.targets[0]
        if getattr(value, "ci_in_place", False) and is_arg_position(value.left, target):
            made = ast.AugAssign(target, value.op, value.right)
            return ast.copy_location(made, node)
        return node


def negated(test: Any) -> Any:
    """not test"""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def is_jump(block: Block, target: Block | None, may_pop: bool = False) -> bool:
    """True if a block only jumps to that one."""
    is_empty = block.is_pure or (may_pop and not block.body and not block.items)
    return is_empty and not block.stack and block.test is None and block.ahead is target is not None


def is_copy(a: Block | None, b: Block | None) -> bool:
    """True if two blocks are equal, or end the function in the same way: Python duplicates small blocks."""
    if a is b or a is None or b is None:
        return a is b
    return a.ends and b.ends and [*map(ast.dump, a.body)] == [*map(ast.dump, b.body)]


def tail_of(end: Block, block: Block) -> Block | None:
    """Cut off the part of `end` that does the same as another block, and return it; None if there is none."""
    if is_copy(block, end):
        return end
    count = len(block.body)
    kept, same = end.body[:-count], end.body[len(end.body) - count :]
    if not end.ends or not kept or [*map(ast.dump, same)] != [*map(ast.dump, block.body)]:
        return None
    tail = Block(end.number + 0.5)  # type: ignore[arg-type]
    tail.body, tail.ends, tail.line = same, True, same[0].lineno
    end.body, end.ends, end.ahead = kept, False, tail
    return tail


def reached_from(block: Block, stops: tuple[Any, ...]) -> set[Block]:
    """The block and all that can be reached from it without passing the stops."""
    found, left = set(), [block]
    while left:
        at = left.pop()
        if at in found:
            continue
        found.add(at)
        if at not in stops or at is block:
            left += at.next
    return found
