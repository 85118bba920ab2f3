"""Generates the source of random programs over numbers of many kinds: integers of all widths, bools, floats and
Python numbers.

A program is `def program(u, s, b, h, f, us, bs, n, t)` over arrays of uint64, int64, a narrow and a middle width
of either sign and a float, NumPy scalars of uint64 and a narrower type, an int and a float. It compares them,
takes minima and maxima, selects, sorts by keys, searches, stores, and runs loops over elements. All results are
exact, so they must equal NumPy's to the last bit. A program may raise, for example for an int that a dtype cannot
hold; the expected exception is NumPy's.
"""

import random

SIDES = [0, 1, 2, 5, 127, 128, 255, 256, 2**15, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64]
INTS = sorted({v + d for v in SIDES for d in (-1, 0, 1)} | {-v + d for v in SIDES for d in (-1, 0, 1)})
FLOATS = [0.0, -0.0, 0.5, -1.0, 1.0, 3.0, 127.5, 2.0**31, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 1e300]
NARROW = ["int8", "uint8", "int16", "uint16"]
MIDDLE = ["int32", "uint32", "int64", "uint64", "bool"]
REAL = ["float64", "float64", "float32", "float16"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
UFUNCS = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
# {e}: an array, {i}: an array of integers, {g}: of signed integers, {w}: of unsigned integers, {q}: of bools. {v}: a
# number, {k}: an integer, {c}: a condition, {o}: a comparison operator, {u}: its ufunc, {d}: a constant, {z}: an
# integer dtype.
FORMS = {
    "e": [
        "u", "s", "b", "h", "f", "x", "y", "u", "s", "x", "{i}", "({e} + {e})", "({e} - {e})", "({e} * {e})", "({i} / {i})", "({i} + {v})", "({v} - {e})",
        "np.where({q}, {e}, {e})", "np.where({e} {o} {e}, {e}, {v})", "np.maximum({e}, {e})", "np.minimum({e}, {v})", "np.fmax({i}, {i})", "np.fmin({k}, {i})",
        "np.select([{q}, {q}], [{e}, {e}], {v})", "np.sort({e})", "np.clip({e}, {v}, {v})", "abs({e})", "np.sign({e})", "{e}[::-1]", "np.where({q}, {e}, 0)",
        "np.maximum.accumulate({i})", "({i} // {i})", "({i} % {i})", "np.fmod({i}, {i})", "np.divmod({i}, {i})[1]", "np.roll({e}, 1)", "np.concatenate([{e}, {e}])[:u.size]",
        "np.array([{v}] * u.size)", "({e} * {q})", "np.square({i})", "{e}.copy()", "np.copysign({e}, {e})", "np.heaviside({e}, {e})", "np.asarray({e}, dtype=np.float64)",
    ],
    "i": [
        "u", "s", "b", "h", "u", "s", "{g}", "{w}", "({i} + {i})", "({q} + {i})", "np.argsort({e}, kind='stable')", "{i}.astype(np.{z})", "np.searchsorted(np.sort({i}), {i})",
        "({i} ** 2)", "np.cumsum({i})", "(-{i})", "({i} + {d})", "({i} * {d})",
    ],
    "g": ["s", "s", "{i}.astype(np.int64)", "({g} & {g})", "({g} | {g})", "({g} ^ {g})", "(~{g})", "({g} >> 3)", "({g} << 2)", "np.gcd({g}, {g})", "({g} // {g})", "({g} % {g})", "np.negative({g})"],
    "w": ["u", "u", "{i}.astype(np.uint64)", "({w} & {w})", "({w} | {w})", "(~{w})", "({w} >> {w} % 70)", "np.gcd({w}, {w})", "np.lcm({w}, {w})", "({w} // {w})", "({w} % {w})", "(-{w})", "({w} ** {w})"],
    "q": [
        "({e} {o} {e})", "({e} {o} {e})", "({i} {o} {i})", "(u {o} s)", "(s {o} {w})", "({w} {o} {g})", "({e} {o} {v})", "({v} {o} {i})", "({i} {o} {d})", "({d} {o} {i})", "({q} & {q})", "({q} | {q})",
        "(~{q})", "({q} ^ {q})", "np.{u}({i}, {i})", "np.{u}({i}, {e}, where={q}, out=np.zeros(u.size, bool))", "np.{u}({e}, {e}, dtype=bool)", "np.isin({i}, {i})", "np.isin({i}, [{k}, 5])",
        "np.logical_and({e}, {i})", "np.logical_xor({q}, {i})", "({i} == {i}[::-1])", "np.{u}.outer({i}, {i}).any(axis=0)", "({q} {o} {q})", "({q} {o} {k})", "np.isclose({i}, {i})",
    ],
    "v": [
        "us", "bs", "n", "t", "p", "r", "{k}", "f[{j}]", "max({v}, {v})", "min({v}, {v}, {v})", "({v} if {c} else {v})", "({v} + {v})", "({v} - {k})", "({v} * {v})", "float({v})", "{i}.max()", "{i}.min()",
        "np.maximum({v}, {v})", "np.minimum({v}, {v})", "abs({v})", "sorted([{v}, {v}])[0]", "np.where({c}, {v}, {v})[()]", "({k} / 4)", "{e}[{j}]", "np.float32({k})", "({v} and {v})", "({v} or {v})",
    ],
    "k": [
        "us", "bs", "n", "u[{j}]", "s[{j}]", "b[{j}]", "h[{j}]", "int(u[{j}])", "int(s[{j}])", "{d}", "{d}", "len(u)", "int({c})", "max({k}, {k})", "min({k}, {k})", "({k} if {c} else {k})", "({k} + {k})",
        "({k} // {k})", "({k} % {k})", "np.uint64(7)", "np.int64(-7)", "np.int8(-1)", "({q}).sum()", "np.count_nonzero({q})", "({k} ^ {k})", "({k} & {k})", "abs({k})", "sum({q})", "np.argmax({e})", "({i}).sum()",
        "max(u, key=lambda e: e {o} {k})", "max(range(u.size), key=lambda j: u[j] {o} s[j])", "np.uint64({k})", "np.searchsorted(np.sort({i}), {k})", "divmod({k}, {k})[0]", "len(set([{k}, {k}]))",
    ],
    "c": [
        "({v} {o} {v})", "({k} {o} {k})", "(u[{j}] {o} s[{j}])", "(s[{j}] {o} {k})", "({k} {o} u[{j}])", "({k} {o} {k} {o} {k})", "({c} and {c})", "({c} or {c})", "(not {c})", "({q}).any()", "({q}).all()",
        "{k} in ({k}, {k})", "{k} in {i}", "bool({k})", "({c} == {c})", "{k} in [{k}, 3, {v}]", "any({q})", "all(a {o} c for a, c in zip({i}, {i}))", "np.array_equal({i}, {i})", "({k} {o} {d})", "({d} {o} us)",
    ],
    "j": ["0", "1", "-1", "n % u.size", "k % u.size", "-2"],
}  # fmt: skip
LEAVES = {"e": "usbhfxy", "i": "usbh", "g": "s", "w": "u", "v": ["us", "bs", "n", "t", "p"], "k": ["us", "bs", "n", "u[0]", "s[-1]"]}
CONDITION_LEAVES = {"q": ["(u > s)", "(s == u)", "(b < u)"], "c": ["(us > s[0])", "(n < us)", "(u[0] >= s[0])"]}
STATEMENTS = [
    "x = {e}", "y = {e}", "x = {i}", "p = {v}", "r = {v}", "x = np.where({q}, {e}, {e})", "y = {e}[{q}]; y = np.resize(y, u.size) if y.size else {e}", "r = {k}",
    "x = {e}.copy(); x[{q}] = {k}", "x = {e}.copy(); np.{u}({i}, {i}, out=x, where={q}, casting='unsafe')", "p, r = r, p", "x = np.zeros(u.size, np.{z}); x[{q}] = 1",
    "c = c + ({c})", "u[{j}] = {k}", "s[{j}] = {k}", "out.append({c})", "out.append({v})", "out.append({q})", "order = sorted(range(u.size), key=lambda j: {y}[j])",
    "order = sorted([({k}, 1), ({k}, 2)])", "order = sorted(range(u.size), key=lambda j: ({y}[j] {o} {k}, j), reverse={c})", "order = [j for j in range(u.size) if {y}[j] {o} {y}[j]]",
    "f[{q}] = t", "order = np.nonzero({q})[0]", "u[{q}] = {w}[{q}]", "p = max({y}, key=lambda e: -e if e {o} {d} else e)", "y = np.searchsorted(np.sort({i}), {i})",
]  # fmt: skip


class Generator:
    """The source of one program, and its arguments."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sizes = self.random.sample([2, 3, 4, 7, 12, 40], 3)
        self.dtypes = [self.random.choice(kinds) for kinds in (NARROW, MIDDLE, REAL, NARROW)]
        self.lines = []

    def fill(self, form, depth=2):
        """A template with its letters replaced."""
        pick = self.random.choice
        while "{" in form:
            at = form.index("{")
            letter = form[at + 1]
            if letter in "oudzy":
                kinds = {"o": COMPARISONS, "u": UFUNCS, "z": [*NARROW, *MIDDLE[:4]], "y": "usbh"}
                part = f"({pick(INTS)})" if letter == "d" else pick(kinds[letter])
            elif letter == "j" or depth > 0:
                part = self.fill(pick(FORMS[letter]), depth - 1)
            else:
                part = pick(LEAVES.get(letter) or CONDITION_LEAVES[letter])
            form = form[:at] + part + form[at + 3 :]
        return form

    def add(self, indent, form, depth=2):
        self.lines.append("    " * indent + self.fill(form, depth))

    def statement(self, indent):
        """One statement, or a branch or a loop of some."""
        chance = self.random.random()
        if indent < 3 and chance < 0.12:
            self.add(indent, "if {c}:")
            self.statement(indent + 1)
            if self.random.random() < 0.5:
                self.add(indent, "else:")
                self.statement(indent + 1)
        elif indent < 2 and chance < 0.3:
            self.loop(indent)
        else:
            self.add(indent, self.random.choice(STATEMENTS))

    def loop(self, indent):
        """A loop over elements, whose conditions compare them."""
        head = self.random.choice(["for k in range(u.size):", "for k, (p, r) in enumerate(zip({y}, {y})):", "k = -1\n{pad}while k + 1 < u.size and {y}[k] {o} {y}[k]:"])
        self.add(indent, head.replace("{pad}", "    " * indent), 1)
        if "while" in head:
            self.add(indent + 1, "k += 1")
        body = ["c += {y}[k] {o} {y}[k]", "if {y}[k] {o} {y}[k]:\n{pad}    c += k", "c = k if {y}[k] {o} {k} else c", "p = {y}[k]", "p = max(p, {y}[k])", "r = {y}[k] if {y}[k] {o} p else r",
                "if {c}:\n{pad}    break", "s[k] = {k}", "c += {c}", "if {y}[k] {o} {d}:\n{pad}    continue", "u[k] = {y}[k]", "f[k] = {y}[k]", "p = min({y}[k], r)"]  # fmt: skip
        for _ in range(self.random.randint(1, 3)):
            self.add(indent + 1, self.random.choice(body).replace("{pad}", "    " * (indent + 1)), 1)
        self.add(indent, "k = 0")

    def source(self):
        """The text of the program."""
        self.lines = ["import numpy as np", "", "", "def program(u, s, b, h, f, us, bs, n, t):", "    x, y, p, r, c, k, out, order = s, u, us, n, 0, 0, [], []"]
        for _ in range(self.random.randint(2, 5)):
            self.statement(1)
        self.add(1, "return x, y, p, r, c, out, order, {q}, {c}")
        return "\n".join(self.lines) + "\n"

    def arguments(self, size, seed, np):
        """The arguments of one call."""
        pick = random.Random(seed * 50 + size).choice

        def array(dtype):
            if dtype == "bool":
                return np.array([pick([True, False]) for _ in range(size)])
            if dtype.startswith("float"):
                with np.errstate(all="ignore"):
                    return np.array([pick(FLOATS) for _ in range(size)]).astype(dtype)
            info = np.iinfo(dtype)
            return np.array([pick([v for v in INTS if info.min <= v <= info.max]) for _ in range(size)], dtype)

        narrow, middle, real, scalar = self.dtypes
        u, s, b, h, f = (array(dtype) for dtype in ("uint64", "int64", narrow, middle, real))
        return u, s, b, h, f, array("uint64")[0], array(scalar)[0], pick(INTS), pick(FLOATS)
