"""Generates the source of random functions whose names are bound on some paths only and read afterwards.

A program is `def program(x, y, n, k, t, flag)` over two vectors, two Python ints, a float and a bool. Its names have
values of one kind each: arrays, numbers or pairs. A statement that binds or deletes a name is in a branch, an arm of `match`, a handler,
a loop that may run no iteration, or a `with` that swallows exceptions. Jumps skip the rest of a body. A read of a name
that is not bound raises NameError, and its text names the name.
"""

import random

HEAD = '''import contextlib

import numpy as np


def first(v, limit):
    for e in v:
        if e > limit:
            found = e
            break
    return found


def scaled(v, factor):
    if factor > 1:
        by = factor
    return v * by
'''
KINDS = {
    "array": ("u", "v"),
    "number": ("a", "b"),
    "int": ("c",),
    "pair": ("p",),
    "best": ("w",),
}
VALUES = {
    "array": ["x * N", "y + N", "np.zeros_like(x)", "x.copy()", "np.where(x > t, x, N)", "x[::-1] * 2", "np.maximum(x, y)", "x", "scaled(x, N)", "x + U"],
    "number": ["x[I]", "x.max()", "N + 0.5", "t", "2.5", "y[I] * N", "first(y, t)", "float(C)", "A + 1", "np.float64(N)"],
    "int": ["N", "k + 1", "3", "len(x)", "int(x[I])", "C + 1", "(x > t).sum()"],
    "best": ["None", "x[I]", "x * N", "None", "N"],
    "pair": ["(x[I], N)", "(1, t)", "(x * 2, k)", "(N, A)", "(x, y)"],
}
READS = {
    "array": ["r = r + U", "s += U[I]", "r[I] = U[0]", "s = U.max()", "r = np.where(x > t, U, r)", "U[I] = t", "U += 1", "U *= U", "U = U * 0.5",
              "r = r[::-1]"],
    "number": ["s = s + A", "s = max(s, A)", "s = N / 4", "s = x[I]", "s = 0.5", "s *= 2", "r = r * A", "A += 1", "A = A * 0.5", "r[I] = A",
               "s = A if x[I] > t else s"],
    "int": ["s = s + C", "r = r + C", "C += 1", "C = C - 1", "r[C % n] = 1.5", "k = C", "C, k = k, C"],
    "best": ["w = x[I]", "w = x.max() if w is None else w", "w = w if w is not None else N", "r = r if w is None else r + w", "s = (w or 0) + s"],
    "pair": ["s = s + P[1]", "r = r + P[0]", "P = (P[1], t)", "(s, k) = P", "e, *f = P"],
}
CONDITIONS = [
    "x[I] > t", "x[I] > 0", "(x > s).any()", "y[I] < x[I]", "flag", "k > 1", "n > 4", "x.max() > t and flag", "not flag", "s > t", "t > 0 or x[I] < 0",
    "W < k", "W == 1", "W > 1", "k < W", "W % 2 == 0", "W > 1 and x[I] > t", "(A := x[I]) > t", "flag and (A := y[I]) > 0", "w is None",
    "w is None or x[I] > t", "w is not None and x[I] > s", "k < N", "x[I] > A", "s < x[I]", "(x > s).any()",
]
EXTENTS = ["n", "k", "n - 3", "3", "range(len(x))", "k - 1", "1, n", "n // 4", "2 * k"]
ERRORS = ["NameError", "UnboundLocalError", "Exception", "(ValueError, NameError)"]


class Generator:
    """The source of one program, and its arguments in three calls."""

    def __init__(self, seed, statements=16):
        self.random = random.Random(seed)
        self.sizes = range(3)
        self.left = self.random.randint(4, statements)
        self.lines, self.count, self.indices = [], 0, []
        self.known, self.sure = [], []  # names that some path has bound, or all
        self.read_only = set()
        self.counters = []  # of the loops around

    def chance(self, p):
        return self.random.random() < p

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self, kind=None):
        """A name; more often one that every path, or some path, has bound."""
        kind = kind or self.pick("array", "array", "number", "number", "int", "pair", "best")
        for names, share in ((self.sure, 0.6), (self.known, 0.95)):
            found = [n for n in KINDS[kind] if n in names]
            if found and self.chance(share):
                return self.random.choice(found)
        name = self.random.choice(KINDS[kind])
        self.read_only.add(name)
        return name

    def kind_of(self, name):
        return next(kind for kind, names in KINDS.items() if name in names)

    def fill(self, text):
        fills = {
            "I": lambda: self.pick("0", "-1", "k % n", *self.indices),
            "N": lambda: self.pick("2", "k", "n", *self.indices, self.name("int") if self.chance(0.2) else "3"),
            "W": lambda: self.random.choice(self.counters or ["k"]),
            "U": lambda: self.name("array"),
            "A": lambda: self.name("number"),
            "C": lambda: self.name("int"),
            "P": lambda: self.name("pair"),
        }
        out = []
        for k, letter in enumerate(text):
            is_alone = not (text[k - 1 : k].isalnum() and k) and not text[k + 1 : k + 2].isalnum()
            out.append(fills[letter]() if letter in fills and is_alone else letter)
        return "".join(out)

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def condition(self):
        return self.fill(self.random.choice(CONDITIONS))

    def source(self):
        self.line(1, f"r, s = x * 0.5, {self.pick('0.25', '1')}")
        self.line(1, "w = None")
        for name in self.random.sample(["u", "a", "c", "v", "p", "b"], self.random.randint(1, 4)):
            self.bind_at(1, name)
        while self.left > 0:
            self.statement(1)
        wanted = self.random.sample(self.known, min(len(self.known), self.random.randrange(4)))
        self.line(1, f"return {', '.join([*wanted, 'r', 's'])}")
        for name in sorted(self.read_only - {*self.known}):  # it is a local name all the same
            self.line(1, self.bind(name))
        return f"{HEAD}\n\ndef program(x, y, n, k, t, flag):\n" + "\n".join(self.lines) + "\n"

    def arguments(self, number, seed, numpy):
        rng = numpy.random.default_rng([seed, number])
        size = [6, 6, 9][number] if seed % 3 else [6, 1, 4][number]
        x, y = ((rng.integers(-8, 9, size) / 4) for _ in range(2))
        k, t = int(rng.integers(-1, 5)), float(rng.integers(-4, 5)) / 2
        return x, y, size, k, t, bool(rng.integers(3))

    def bind(self, name=None):
        """A statement that binds a name, which later statements may read."""
        name = name or self.name()
        value = self.fill(self.random.choice(VALUES[self.kind_of(name)]))
        if name in value.split():  # it may be bound nowhere else
            value = VALUES[self.kind_of(name)][3]
        if name not in self.known:
            self.known.append(name)
        return f"{name} = {value}"

    def read(self):
        return self.fill(self.random.choice(READS[self.kind_of(self.random.choice(self.known))]))

    def block(self, depth, most=3):
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)

    def statement(self, depth):
        self.left -= 1
        if self.left < 0 or depth > 5:
            self.line(depth, self.pick(self.bind, self.read)())
            return
        kinds = ["bind"] * 5 + ["read"] * 3 + ["branch"] * 5 + ["loop"] * 4 + ["jump"] * 2
        kinds += ["first", "first", "delete", "guarded", "match", "leak", "printed", "inner", "quiet"]
        getattr(self, self.random.choice(kinds) + "_at")(depth)

    def bind_at(self, depth, name=None):
        name = name or self.random.choice([name for names in KINDS.values() for name in names])
        self.line(depth, self.bind(name))
        self.sure += [name] if depth == 1 else []

    def read_at(self, depth):
        self.line(depth, self.read())

    def branch_at(self, depth):
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1)
        if self.chance(0.3):
            self.line(depth, f"elif {self.condition()}:")
            self.block(depth + 1, 2)
        if self.chance(0.3):
            self.line(depth, "else:")
            self.block(depth + 1)

    def loop_at(self, depth):
        self.count += 1
        kind, name = self.random.randrange(5), f"i{self.count}"
        if kind < 2:
            extent = self.random.choice(EXTENTS)
            target = self.name("int") if self.chance(0.2) else name
            self.line(depth, f"for {target} in {extent if 'range' in extent else f'range({extent})'}:")
        elif kind == 2:
            name = None
            self.line(depth, f"for {self.name('number')} in {self.pick('x', 'y[k:]', 'x[x > t]', 'y[:2]')}:")
        else:
            test = self.pick("True", "True", self.condition(), f"{name} < {self.pick('n', '3', 'k')}", f"{name} < n and flag")
            self.line(depth, f"{name} = 0")
            self.line(depth, f"while {test}:")
            is_first = self.chance(0.5)
            if is_first:
                self.line(depth + 1, f"if {name} >= {self.pick('n', 'k', '4')} or {self.condition()}:")
                self.line(depth + 2, "break")
            self.line(depth + 1, f"{name} += 1")
            if not is_first:
                self.line(depth + 1, f"if {name} > {self.pick('n', '5')}:")
                self.line(depth + 2, "break")
        if name and kind < 2:
            self.indices.append(f"{name} % n")
        self.counters.append(name or "k")
        if self.chance(0.3):  # the first iteration differs from the others
            changes = "r = r[::-1]", "w = x[I]", "w = x[I] if w is None else w + 1", "s = x[I] if W > 1 else N / 4"
            self.line(depth + 1, self.fill(self.random.choice(changes)))
        if self.chance(0.3):
            self.line(depth + 1, self.fill(self.pick("if W > 1:", "if k < W:", "if W == 1:")))
            self.statement(depth + 2)
        self.block(depth + 1, 4)
        self.counters.pop()
        if self.indices and name and kind < 2 and self.chance(0.8):  # else it is read after the loop
            self.indices.pop()
        if self.chance(0.15):
            self.line(depth, "else:")
            self.block(depth + 1, 2)

    def first_at(self, depth):
        """A loop that changes the class of a number, so that its first iteration differs; data may end it there."""
        self.count += 1
        name = f"i{self.count}"
        self.line(depth, f"{name} = 0")
        self.line(depth, "while True:")
        self.line(depth + 1, self.pick("s = 0.75 if n > 2 else s", "w = x[0] if w is None else w", "r = r[::-1]", "s = 3 / 4"))
        self.line(depth + 1, f"if {name} >= {self.pick('3', 'n', 'k')} or {self.condition()}:")
        self.line(depth + 2, "break")
        self.line(depth + 1, f"{name} += 1")
        self.counters.append(name)
        self.line(depth + 1, f"if {self.condition()}:")
        self.line(depth + 2, self.fill(self.pick("s = x[I] - 0", "s = N", "s = np.float64(-1.5)")))
        self.line(depth + 1, self.fill(self.pick("if W > 1:", "if k < W:", "if W == 1:", "if x[W % n] > t:")))
        self.statement(depth + 2)
        self.block(depth + 1, 2)
        self.counters.pop()

    def jump_at(self, depth):
        self.line(depth, f"if {self.condition()}:")
        if self.counters and self.chance(0.6):
            self.line(depth + 1, self.pick("break", "continue"))
        else:
            self.line(depth + 1, f"return {self.pick('r', 's', self.name())}, {self.pick('s', 'k')}")

    def delete_at(self, depth):
        name = self.name()
        self.sure = [other for other in self.sure if other != name]
        if name in self.known and self.chance(0.6):
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, f"del {name}")
        elif name in self.known:
            self.line(depth, f"del {name}")
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, self.bind(name))
        else:
            self.line(depth, self.bind(name))

    def guarded_at(self, depth):
        self.line(depth, "try:")
        self.block(depth + 1)
        self.line(depth, f"except {self.random.choice(ERRORS)}{self.pick('', ' as b')}:")
        self.block(depth + 1, 2)
        if self.chance(0.3):
            self.line(depth, self.pick("else:", "finally:"))
            self.line(depth + 1, self.pick(self.bind, self.read)())

    def match_at(self, depth):
        self.line(depth, f"match {self.fill(self.pick('k', 'k % 3', '(k, n)', 'P', 'C'))}:")
        for pattern in self.random.sample(["1", "2", "(1, c)", "(a, 6)", "(a, _)", "c if c > 1", "[*_, b]"], 2):
            self.line(depth + 1, f"case {pattern}:")
            self.block(depth + 2, 2)
        self.known += [name for name in "abc" if name not in self.known]

    def leak_at(self, depth):
        name = self.name("number")
        texts = [
            f"s = sum([({name} := e) for e in x if e > t])", f"d = [{name} for e in y[:k]]", f"r = np.array([e for {name} in x for e in ({name}, s)])[:n]",
            f"d = any(({name} := e) > t for e in y)", f"s = s + ({name} if x[0] > t else 1.5)", f"d = flag and {name} > t", f"d = x[0] > t or ({name} := t) > 0",
        ]
        self.line(depth, self.random.choice(texts))
        if name not in self.known:
            self.known.append(name)

    def printed_at(self, depth):
        self.line(depth, f"print({self.pick('k', 's', self.name())})")

    def inner_at(self, depth):
        self.count += 1
        name = self.name(self.pick("array", "number", "int"))
        texts = [f"g{self.count} = lambda: {name}", f"g{self.count} = lambda z={name}: z"]
        self.line(depth, self.random.choice(texts))
        if self.chance(0.5):
            self.line(depth, self.bind(name))
        self.line(depth, f"s = s + np.max(g{self.count}())")

    def quiet_at(self, depth):
        self.line(depth, f"with contextlib.suppress({self.pick('NameError', 'ValueError', 'Exception')}):")
        self.block(depth + 1)
