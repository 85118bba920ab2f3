"""Random trees of operators and conditions whose operands are objects of the user's classes, arrays and numbers.

Each method notes its call and the class of its operand. Values and notes of several calls are compared with Python.
"""

import os
import random

import numpy as np
import pytest
import ways

import cinductor

MORE = int(os.environ.get("CINDUCTOR_FUZZ", "0"))
SEEDS = [*range(60), *(int.from_bytes(os.urandom(4), "little") for _ in range(MORE))]
NOTES = []


def noted(name):
    """A method that notes what it is given, and returns an object of its class."""

    def method(self, *others):
        NOTES.append((name, type(self).__name__, *(type(other).__name__ for other in others)))
        values = [other.value if isinstance(other, Plain) else other for other in others]
        return type(self)(sum((v * 0.5 for v in values), self.value + len(name)))

    return method


def comparison(name):
    def method(self, other):
        NOTES.append((name, type(self).__name__, type(other).__name__))
        return type(self)(np.sum(self.value) - (np.sum(other.value) if isinstance(other, Plain) else 1.0))

    return method


class Plain:
    """NumPy applies an array's operator to each element and the object."""

    def __init__(self, value):
        self.value = value

    def __bool__(self):
        NOTES.append(("bool", type(self).__name__))
        return bool(np.sum(self.value) > 3)


for operator in "add radd sub rsub mul rmul neg iadd".split():
    setattr(Plain, f"__{operator}__", noted(operator))
for operator in "lt gt le".split():
    setattr(Plain, f"__{operator}__", comparison(operator))


class Alone(Plain):
    """Arrays leave their operators to this class's."""

    __array_ufunc__ = None


class First(Plain):
    """Arrays leave them to this class by its priority, and the operator is a break."""

    __array_priority__ = 1000


CLASSES = [Plain, Alone, First]


class Generator:
    def __init__(self, seed):
        self.choice = random.Random(f"operators {seed}")

    def tree(self, depth):
        choose = self.choice
        if depth == 0 or choose.random() < 0.2:
            return choose.choice(["a", "a", "b", "b", "c", "d", "k", "2.0"])
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        if choose.random() < 0.2:
            return choose.choice([f"(-{left})", f"({left} if d is a else {right})", f"made({left})"])
        return f"({left} {choose.choice('+-*')} {right})"

    def statement(self, n):
        choose = self.choice
        first, second = f"(a + {self.tree(2)})", f"(b * {self.tree(1)})"
        return choose.choice(
            [
                f"v{n} = {self.tree(3)}",
                f"v{n} = {first} < {second}",
                f"v{n} = 1.0 if {first} else {self.tree(1)}",
                f"v{n} = [{self.tree(2)} for k in (1.0, 2.0)]",
                f"a += {self.tree(2)}\n    v{n} = a",
                f"d = {self.tree(2)}\n    d += {second}\n    v{n} = d",
                f"v{n} = {self.condition(2)}",
                f"v{n} = not {self.condition(2)}",
                f"v{n} = {self.tree(1)}\n    if {self.condition(2)}:\n        v{n} = k",
                f"v{n} = 2.0 if {self.condition(2)} else a",
                f"v{n} = [i for i in range(2) if {self.condition(2)}]",
                f"v{n} = any({self.condition(2)} for i in range(2)), all({self.condition(2)} for i in range(2))",
                f"v{n} = 0\n    while v{n} < 1 and {self.condition(2)}:\n        v{n} += 1",
            ]
        )

    def condition(self, depth):
        """`and`, `or`, `not` and chains over objects and comparisons of them, whose truth is noted."""
        choose = self.choice
        if depth == 0 or choose.random() < 0.2:
            return choose.choice(["a", "b", f"(a + {self.tree(1)})", f"(b < {self.tree(1)})", "(a < b <= d)", "k > 2.0", "(-b)"])
        left, right = self.condition(depth - 1), self.condition(depth - 1)
        return choose.choice([f"({left} and {right})", f"({left} or {right})", f"(not {left})", f"({left} or {right} and {self.condition(0)})"])

    def source(self):
        body = "\n    ".join(self.statement(n) for n in range(3))
        return f"def program(a, b, x, k):\n    c, d = x + 1, made(b)\n    {body}\n    return v0, v1, v2\n"


def shown(value):
    if isinstance(value, tuple | list):
        return [*map(shown, value)]
    if isinstance(value, Plain):
        return type(value).__name__, shown(value.value)
    items = value.tolist() if isinstance(value, np.ndarray) else value
    return type(value).__name__, shown(items) if type(items) is list else repr(items)


def outcome(fn, a, b, x):
    NOTES.clear()
    try:
        result = shown(fn(a, b, x, 3.0))
    except (TypeError, ValueError) as error:
        result = type(error), str(error)
    return result, shown(a), shown(b), [*NOTES]


@pytest.mark.parametrize("seed", SEEDS)
def test_trees(seed):
    choose, path = random.Random(f"classes {seed}"), ways.folder() / "program.py"
    source = Generator(seed).source()
    path.write_text(source)
    space = {"made": lambda v: v, "np": np}
    exec(compile(source, path, "exec"), space)
    fn, classes = space["program"], [choose.choice(CLASSES), choose.choice(CLASSES)]
    compiled = cinductor.compile(fn, backend="interp")
    for n in (3, 3, 4, 3):
        x = np.arange(float(n))
        results = [outcome(f, classes[0](x), classes[1](x * 0.5), x) for f in (fn, compiled)]
        assert results[1] == results[0], source
