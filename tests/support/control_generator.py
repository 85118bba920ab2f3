"""Generates the source of random functions with nested control flow, to test the rewriter.

Each function prints a trace of what it executes. It contains jumps at any depth, reads names that may be unbound,
deletes some names, and sometimes raises. All loops are short.
"""

import random

NAMES = "abcd"


class Generator:
    """The source of one function `f(a, b, log)`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.left = 28  # statements
        self.counter = 0

    def source(self) -> str:
        """The text of the function."""
        self.lines = ["def f(a, b, log):"]
        if self.random.random() < 0.85:
            self.line(1, "c, d = 1, 2")
        if self.random.random() < 0.3:
            self.line(1, '"""Text."""')
        self.block(1, False, 0)
        if self.random.random() < 0.6:
            self.line(1, f"return {self.expression()}")
        return "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def name(self) -> str:
        return self.pick(*NAMES)

    def number(self) -> int:
        return self.random.randrange(-2, 4)

    def expression(self, depth: int = 0) -> str:
        """An expression of small integers."""
        kind = self.random.randrange(11 if depth < 2 else 3)
        inner = depth + 1
        if kind == 0:
            return str(self.number())
        if kind < 3:
            return self.name()
        if kind == 3:
            return f"({self.expression(inner)} {self.pick('+', '-', '*')} {self.expression(inner)})"
        if kind == 4:
            other = self.expression(inner)
            return f"({self.expression(inner)} if {self.condition(inner)} else {other})"
        if kind == 5:
            return f"({self.expression(inner)} {self.pick('and', 'or')} {self.expression(inner)})"
        if kind == 6:
            return f"log({self.expression(inner)})"
        if kind == 7:
            return f"({self.name()} := {self.expression(inner)})"
        if kind == 8:
            return f"sum([{self.expression(2)} for q in range({self.number()}) if q < b])"
        if kind == 9:
            return f"(lambda z={self.name()}: z + {self.number()})()"
        return f"(10 // {self.name()})"

    def condition(self, depth: int = 0) -> str:
        kind = self.random.randrange(8)
        if kind == 0:
            return f"not {self.expression(depth + 1)}"
        if kind == 1:
            return f"{self.name()} is None"
        if kind == 2 and depth < 2:
            return f"{self.expression(2)} < {self.expression(1)} < {self.expression(2)}"
        if kind == 3 and depth < 2:
            return f"({self.condition(2)} {self.pick('and', 'or')} {self.condition(2)})"
        return f"{self.expression(depth + 1)} {self.pick('<', '==', '>=', '!=')} {self.number()}"

    def block(self, depth: int, in_loop: bool, nesting: int) -> None:
        """Statements; at least one."""
        for _ in range(self.random.randrange(1, 5)):
            self.statement(depth, in_loop, nesting)

    def statement(self, depth: int, in_loop: bool, nesting: int) -> None:
        self.left -= 1
        kind = self.random.randrange(20)
        if self.left < 0 or nesting > 4:
            kind = self.random.randrange(6)
        if kind < 2:
            self.line(depth, f"{self.name()} = {self.expression()}")
        elif kind == 2:
            self.line(depth, f"{self.name()} {self.pick('+=', '-=')} {self.expression()}")
        elif kind == 3:
            self.line(depth, f"log({self.expression()})")
        elif kind == 4:
            self.simple_or_jump(depth, in_loop)
        elif kind == 5:
            self.rare(depth)
        elif kind < 11:
            self.branch(depth, in_loop, nesting)
        elif kind < 16:
            self.loop(depth, nesting)
        elif kind == 16:
            self.line(depth, "with Quiet(log):")
            self.block(depth + 1, in_loop, nesting + 1)
        elif kind < 19:
            self.guarded(depth, in_loop, nesting)
        else:
            self.match(depth, in_loop, nesting)

    def simple_or_jump(self, depth: int, in_loop: bool) -> None:
        if in_loop and self.random.random() < 0.7:
            self.line(depth, self.pick("break", "continue"))
        elif self.random.random() < 0.5:
            self.line(depth, self.pick("return", f"return {self.expression()}"))
        else:
            self.line(depth, "pass")

    def rare(self, depth: int) -> None:
        kind = self.random.randrange(5)
        if kind == 0:
            self.line(depth, f"del {self.name()}")
        elif kind == 1:
            self.line(depth, f"assert {self.condition()}, log({self.number()})")
        elif kind == 2:
            self.line(depth, f"raise ValueError({self.expression(1)})")
        elif kind == 3:
            self.line(depth, f"{self.name()}, {self.name()} = {self.expression()}, {self.number()}")
        else:
            self.counter += 1
            self.line(depth, f"def g{self.counter}(x={self.expression(2)}):")
            if self.random.random() < 0.4:
                self.line(depth + 1, "nonlocal c")
            self.block(depth + 1, False, 4)
            self.line(depth, f"log(g{self.counter}())")

    def branch(self, depth: int, in_loop: bool, nesting: int) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, in_loop, nesting + 1)
        while self.random.random() < 0.3:
            self.line(depth, f"elif {self.condition()}:")
            self.block(depth + 1, in_loop, nesting + 1)
        if self.random.random() < 0.4:
            self.line(depth, "else:")
            self.block(depth + 1, in_loop, nesting + 1)

    def loop(self, depth: int, nesting: int) -> None:
        self.counter += 1
        kind = self.random.randrange(4)
        if kind == 0:
            self.line(depth, f"for {self.name()} in range({self.random.randrange(4)}):")
        elif kind == 1:
            self.line(
                depth, f"for {self.name()}, (e, *h) in [(1, (2, 3)), ({self.number()}, (0,))]:"
            )
        elif kind == 2:
            self.line(depth, f"w{self.counter} = 0")
            self.line(depth, f"while (w{self.counter} := w{self.counter} + 1) < 4:")
        else:
            self.line(depth, f"w{self.counter} = 3")
            self.line(depth, f"while {self.pick('True', self.condition())}:")
            self.line(depth + 1, f"w{self.counter} -= 1")
            self.line(depth + 1, f"if w{self.counter} < 0: break")
        self.block(depth + 1, True, nesting + 1)
        if self.random.random() < 0.3:
            self.line(depth, "else:")
            self.block(depth + 1, False, nesting + 1)

    def guarded(self, depth: int, in_loop: bool, nesting: int) -> None:
        self.line(depth, "try:")
        self.block(depth + 1, in_loop, nesting + 1)
        final = self.random.random() < 0.4
        if not final or self.random.random() < 0.5:
            error = self.pick(
                "ZeroDivisionError", "ValueError as e", "UnboundLocalError", "Exception"
            )
            self.line(depth, f"except {error}:")
            self.block(depth + 1, in_loop, nesting + 1)
            if self.random.random() < 0.4:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop, nesting + 1)
        if final:
            self.line(depth, "finally:")
            jumps = self.random.random() < 0.15
            if jumps:
                self.block(depth + 1, in_loop, nesting + 1)
            else:
                self.line(depth + 1, f"log({self.name()})")

    def match(self, depth: int, in_loop: bool, nesting: int) -> None:
        self.line(depth, f"match {self.expression()}:")
        self.line(depth + 1, f"case {self.random.randrange(3)}:")
        self.block(depth + 2, in_loop, nesting + 1)
        self.line(depth + 1, f"case {self.name()} if {self.condition()}:")
        self.block(depth + 2, in_loop, nesting + 1)
