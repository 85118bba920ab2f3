"""Generates the source of random functions on Python ints: hashes, bit generators and checksums.

Some mask their intermediate values and some do not, so that ints exceed 63 bits, wrap around in the graph, or can
only be computed by Python. A program is `def program(a, n, data, wide, whole, out)` over an int, a number of
iterations, and vectors of bytes, 64-bit words, signed words and floats. Its loops carry three ints through sums,
products, shifts, masks and branches, and end in a result, an element or a float. A program may raise; the expected
exception is Python's. All results are exact.
"""

import random

import numpy as np

SIDES = [0, 1, 2, 3, 7, 31, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64]
CONSTANTS = sorted({v + d for v in SIDES for d in (-1, 0, 1)} | {-v for v in SIDES})
ODD = [
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    6364136223846793005,
    0x100000001B3,
    0xCBF29CE484222325,
    0xEDB88320,
    33,
    31,
]
MASKS = [
    "0xFF",
    "0xFFFF",
    "0x7FFFFFFF",
    "0xFFFFFFFF",
    "((1 << 63) - 1)",
    "M",
    "M",
    "M",
    "0xFFFFFFFFFFFFFF00",
    "1",
]
MODULI = [
    "256",
    "(1 << 32)",
    "(1 << 63)",
    "(1 << 64)",
    "65521",
    "(2**61 - 1)",
    "(2**64 - 59)",
    "(w & 15) + 1",
]
# {v}: a name, {e}: an expression, {k}: a shift, {c}: a constant, {m}: a mask, {d}: a modulus, {q}: a condition.
EXPRESSIONS = [
    "({e} + {e})",
    "({e} - {e})",
    "({e} * {e})",
    "({e} + {c})",
    "({e} * {c})",
    "({e} ^ {e})",
    "({e} | {e})",
    "({e} & {e})",
    "(~{e})",
    "(-{e})",
    "({e} & {m})",
    "({e} & {m})",
    "({e} & {m})",
    "({e} & {m})",
    "({e} % {d})",
    "({e} // {d})",
    "({e} << {k})",
    "({e} >> {k})",
    "({e} >> {k})",
    "({e} ^ ({v} >> {k}))",
    "(({v} << {k} | {v} >> (64 - {k})) & M)",
    "({e} if {q} else {e})",
    "({v} + int(data[k % 5]))",
    "({v} ^ int(data[k % 5]))",
    "int(wide[k % 3])",
    "({v} & int(wide[k % 3]))",
    "int(whole[k % 3])",
    "({v} + int(whole[k % 3]))",
    "abs({e})",
    "min({e}, {e})",
    "max({e}, {c})",
    "({e} & {c})",
    "({e} ^ {c})",
    "{c}",
    "{v}",
    "{v}",
    "divmod({e}, {d})[1]",
    "({e} ** 2)",
    "(1 << ({v} & 63))",
    "({e} >> ({v} & 7))",
]
CONDITIONS = [
    "{v} & 1",
    "{v} & 0x80",
    "{e} < {e}",
    "{e} > {c}",
    "{e} == {e}",
    "{e} <= {m}",
    "{v} >= 0",
    "not {v}",
    "{v} != {c}",
    "{v} >> 63",
]
SINKS = [
    "out[k] = {e} & 0xFF",
    "out[k] = ({e} & M) / 2**64",
    "out[k] = ({e} & M >> 11) / (1 << 53)",
    "wide[k % 3] = {e} & M",
    "data[k % 5] = {e} & 255",
    "out[k] += {q}",
    "out[k] = float({e} & 0xFFFFFFFF)",
    "wide[k % 3] ^= {e} & M",
    "out[k] = ({e} >> 11) / (1 << 53)",
    "out[k] = data[{e} % 5]",
    "data[k % 5] = {e}",
    "wide[k % 3] = {e}",
    "out[k] = {e} * 2.0**-64",
    "out[k] = {e}",
    "out[k] = {e} / 3",
    "out[k] = {e} < 0.5",
    "out[k] = data[{e} & 3]",
]
RESULTS = [
    "out",
    "out, {e} & M",
    "{e}",
    "out, {v}, {v} & 0xFFFFFFFF",
    "out, wide",
    "{e} % {d}",
    "np.uint64({e} & M)",
    "{e} & M, {v} >> 3",
    "np.uint8({e} & 0xFF)",
]


class Generator:
    """The source of one program, and its arguments."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [
            "import numpy as np",
            "",
            "M = (1 << 64) - 1",
            "",
            "",
            "def program(a, n, data, wide, whole, out):",
        ]

    def fill(self, form, depth=2):
        """A template with its letters replaced."""
        pick = self.random.choice
        while "{" in form:
            at = form.index("{")
            letter = form[at + 1]
            if letter == "e":
                part = self.fill(pick(EXPRESSIONS), depth - 1) if depth > 0 else pick("uvw")
            elif letter == "q":
                part = self.fill(pick(CONDITIONS), min(depth - 1, 1))
            elif letter == "k":
                part = str(pick([1, 2, 3, 7, 11, 12, 27, 31, 32, 33, 63]))
            elif letter == "c":
                part = str(pick(CONSTANTS if self.random.random() < 0.4 else ODD))
                part = f"({part})"
            else:
                part = pick({"v": ["u", "v", "w"], "m": MASKS, "d": MODULI}[letter])
            form = form[:at] + part + form[at + 3 :]
        return form

    def statement(self, indent, depth):
        """A statement of a loop's body."""
        pad, chance = " " * indent, self.random.random()
        name = self.random.choice("uvw")
        if depth > 0 and chance < 0.15:
            self.lines.append(f"{pad}if {self.fill('{q}', 1)}:")
            self.statement(indent + 4, depth - 1)
            if self.random.random() < 0.6:
                self.lines.append(f"{pad}else:")
                self.statement(indent + 4, depth - 1)
        elif depth > 0 and chance < 0.27:
            self.lines.append(
                f"{pad}for j in range({self.random.choice(['2', '3', 'n % 3', 'k'])}):"
            )
            self.statement(indent + 4, depth - 1)
        elif chance < 0.35:
            self.lines.append(f"{pad}if {self.fill('{q}', 1)}:")
            self.lines.append(f"{pad}    {self.random.choice(['break', 'continue'])}")
        elif chance < 0.55:
            self.lines.append(pad + self.fill(self.random.choice(SINKS)))
        elif chance < 0.65:
            operator = self.random.choice(["^=", "+=", "*=", "&=", "|=", "-="])
            self.lines.append(f"{pad}{name} {operator} {self.fill('{e}', 1)}")
        else:
            self.lines.append(f"{pad}{name} = {self.fill('{e}')}")

    def masked(self, indent):
        """Names that are kept small, so that Python's ints do not use up the memory."""
        for name in "uvw":
            mask = self.random.choice(["M", "M", "0xFFFFFFFF", "M >> 1", "0xFFFF"])
            self.lines.append(f"{' ' * indent}{name} &= {mask}")

    def generate(self):
        """The source."""
        starts = [
            "a",
            "0",
            "5381",
            "-1",
            "0xCBF29CE484222325",
            "int(wide[0])",
            "int(wide[1])",
            "int(whole[0])",
            "int(whole[1])",
            "int(data[0])",
        ]
        start = [self.random.choice(starts) for _ in range(3)]
        self.lines.append(f"    u, v, w = {', '.join(start)}")
        for _ in range(self.random.randint(1, 2)):
            head = self.random.choice(
                ["for k in range(n):", "for k in range(n):", "for k in range(5):"]
            )
            self.lines.append(f"    {head}")
            for _ in range(self.random.randint(1, 4)):
                self.statement(8, 2)
            self.masked(8)
            self.lines.append("        out[k] += 1")
        self.lines.append(f"    return {self.fill(self.random.choice(RESULTS))}")
        return "\n".join(self.lines) + "\n"

    def arguments(self, number):
        """The arguments of one call."""
        pick = self.random.choice
        n = [4, 0, 9][number % 3]
        data = [pick([0, 1, 127, 128, 255, 77]) for _ in range(5)]
        wide = [pick([v for v in (*CONSTANTS, *ODD) if 0 <= v < 2**64]) for _ in range(3)]
        whole = [pick([v for v in (*CONSTANTS, *ODD) if -(2**63) <= v < 2**63]) for _ in range(3)]
        a = 12345 + number if number < 6 else pick(CONSTANTS)
        return (
            a,
            n,
            np.array(data, np.uint8),
            np.array(wide, np.uint64),
            np.array(whole),
            np.zeros(max(n, 5)),
        )
