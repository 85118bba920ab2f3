"""Parses expressions of sizes in the texts of the levels, and computes their values.

    expression  3*s0 + 1    (s0 + 3)//4    -i0 + 7    min(s0, 4)    (e0 := s0//2) + e0//2

If a name is unknown, the value is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

TOKEN = re.compile(r"\s*(//|:=|[-+*%(),]|\d+|\w+)")
Names = Mapping[str, int]
Values = dict[str, "int | None"]
Size = Callable[[Any], "int | None"]  # of Names; of Values, to which it adds, if the expression names a part of itself


class SizeParser:
    """Parses one text from left to right. Raises ValueError if it is not an expression of sizes."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        if re.sub(r"\s", "", text) != "".join(self.tokens):
            raise ValueError(f"no expression of sizes: {text}")
        self.at = 0
        self.has_names = False

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ValueError(f"{token} is missing in {' '.join(self.tokens)}")

    def sum(self) -> Size:
        left = self.product()
        while self.peek() in ("+", "-"):
            left = joined(self.take(), left, self.product())
        return left

    def product(self) -> Size:
        left = self.atom()
        while self.peek() in ("*", "//", "%"):
            left = joined(self.take(), left, self.atom())
        return left

    def atom(self) -> Size:
        token = self.take()
        if token == "-":
            return joined("-", constant(0), self.atom())
        if token == "(":
            name = self.name()
            inside = self.sum()
            self.expect(")")
            return inside if name is None else named(name, inside)
        if token.isdigit():
            return constant(int(token))
        if token in ("min", "max") and self.peek() == "(":
            return self.extreme(min if token == "min" else max)
        if not token.isidentifier():
            raise ValueError(f"{token or 'nothing'} is not a size")
        return lambda names: names.get(token)

    def name(self) -> str | None:
        """The name that the expression in parentheses gets."""
        if self.tokens[self.at + 1 : self.at + 2] != [":="]:
            return None
        self.has_names = True
        self.at += 2
        return self.tokens[self.at - 2]

    def extreme(self, choose: Callable[[list[int]], int]) -> Size:
        self.expect("(")
        items = [self.sum()]
        while self.peek() == ",":
            self.take()
            items.append(self.sum())
        self.expect(")")

        def chosen(names: Names) -> int | None:
            values = [item(names) for item in items]
            known = [value for value in values if value is not None]
            return choose(known) if len(known) == len(values) else None

        return chosen


OPERATORS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else None,
    "%": lambda a, b: a % b if b else None,
}


def constant(value: int) -> Size:
    return lambda names: value


def named(name: str, size: Size) -> Size:
    """The size, which the expression after it calls by a name."""

    def value(names: Values) -> int | None:
        names[name] = size(names)
        return names[name]

    return value


def joined(operator: str, left: Size, right: Size) -> Size:
    """Both sides, combined by an operator."""
    function = OPERATORS[operator]

    def value(names: Names) -> int | None:
        a, b = left(names), right(names)
        return None if a is None or b is None else function(a, b)

    return value


def with_own_names(size: Size) -> Size:
    return lambda names: size({**names})


_read: dict[str, Size] = {}


def parse(text: str) -> Size:
    """The size in a text, as a function of names. Raises ValueError if it is not an expression."""
    found = _read.get(text)
    if found is None:
        parser = SizeParser(text)
        found = parser.sum()
        if parser.has_names:
            found = with_own_names(found)
        if parser.peek():
            raise ValueError(f"{parser.peek()} follows an expression of sizes: {text}")
        if len(_read) < 10_000:
            _read[text] = found
    return found


def value_of(size: int | str, names: Names) -> int | None:
    """The value of a size in the JSON, which is a number or a text."""
    if isinstance(size, int):
        return size
    return parse(size)(names)


def names_in(text: str) -> set[str]:
    """Names of sizes and loop variables that a text mentions."""
    return {word for word in re.findall(r"[A-Za-z_]\w*", text) if word not in ("min", "max")}
