"""Generates the source of random functions with loops, branches and jumps over NumPy data, to test regions.

A program is `def program(x, y, A, q, k, t, flag)` over two vectors, a matrix, a vector of indices (some out of
range), and a Python int, float and bool. It reads and writes elements, slices, rows and masks by loop variables
and by data, keeps views across writes, swaps names, jumps, and calls a helper that returns early. It may raise;
the expected exception is NumPy's. Results do not depend on the order of evaluation (no sums of floats), so they
are compared bit by bit.
"""

import random
import re

HELPERS = '''
def first_above(v, limit):
    for i in range(len(v)):
        if v[i] > limit:
            return i
    return -1


def clipped(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


def shift(v, amount):
    v[1:] = v[:-1] + amount
    return v
'''
SIZES = [(6, 5), (11, 4), (9, 9), (17, 3), (12, 12), (1, 2), (3, 10), (0, 3), (20, 6)]
# The parts of a program: Generator.fill defines the letters.
EXTENTS = [
    "n", "n", "len(x)", "m", "n - 1", "1, n", "1, n - 1", "{l}", "{l}, n", "{l} + 1, n", "n - 1, -1, -1", "0, n, 2", "k", "12", "c", "{l}, 0, -1",
    "A.shape[0]", "max(n, m)", "min(n, k)", "n // 2", "int({r}) % 14", "abs(k), n + 2", "q[0]",
]
PIECES = [
    "A[{i}]", "A[{i}, :{i}]", "A[:, {i}]", "A[{i}:, {i}]", "A[{i}:{i}, 1]", "{v}[{i}:]", "{v}[:{i}]", "x[{i}:{i} + 2]", "{v}[{i}:{i}]", "{v}[::2]",
    "{v}[::-1]", "A[{i}, ::-1]", "A[{i}][1:]",
]
VIEW, COLUMN = re.compile(r"(\w+)[\[.].*|(?!\d)\w+"), re.compile(r"A\[(?:[^\[\],]|\[[^\]]*\])*:|A\.T")
ARRAYS = ["A[:, 0]", "A.ravel()", "A.T[0]", "x[1:]", "x.copy()", "np.zeros(n)", "np.where(x > t, x, y)", "x + y", "np.maximum(x, 1)", "A.max(axis=1)"]
MASKS = [
    "V[V > {r}] = {r}", "V[V < {r}] *= 2", "s += V[V > t].max()", "c += len(V[V > {r}])", "A[A > t] = {r}", "c += int((V > t).sum())", "V[q] = {r}",
    "NAME = V[q]", "NAME = V[V != 0]", "V[V > t] += V[V > t]", "c = int(np.argmax(V))", "NAME = np.nonzero(V > t)[0]",
]
CALLS = [
    "c = first_above({v}, {r})", "s = clipped({r}, {r}, 2)", "s = clipped({r}, t, 3.5)", "shift(x, {r})", "shift(A[{i}], {r})", "c = clipped({w}, 0, n - 1)",
]
COMPREHENSIONS = [
    "s = sum([e for e in {v}])", "s = max([e for e in {v} if e > t], default=0)", "c = sum(1 for e in {v} if e > s)", "y = np.array([e * 2 for e in {v}])",
    "s = sum(x[i] * y[i] for i in range(n))", "d = any(e > t for e in {v})", "d = all([e < s for e in {v}])",
]
WHOLE = [
    "{w} + {w}", "({w} - {w})", "({w} + {w}) // 2", "({w} * {w}) % 97", "{w} * 3", "({w}) % ({w})", "({w}) // ({w})", "abs({w})", "min({w}, {w})",
    "max({w}, {w})", "int({r})", "round({r})", "divmod({w}, {w})[0]", "divmod({w}, {w})[1]", "q[{i}]", "({w} if {c} else {w})", "len({v})", "int({c})",
    "-({w})", "({w} & {w})", "({w} ^ {w})", "({w}) * 1000003", "({w} << 1)", "({w} >> 1)", "{w} - {w}", "{w} + 1", "{w} - 1",
    "(({w} * 6364136223846793005 + {w}) & 0xFFFF)", "((({w} << 40 ^ {w}) * {w} & 0xFFFFFFFFFFFFFFFF) >> 50)",
]
REAL = [
    "{r} + {r}", "({r} - {r})", "({r} + {r}) * 0.5", "({r}) * ({r})", "({r}) / ({r})", "abs({r})", "min({r}, {r})", "max({r}, {r})", "float({w})",
    "({r} if {c} else {r})", "-({r})", "np.sqrt(abs({r}))", "({r}) // ({r})", "({r}) % ({r})", "{w} / 4", "{v}.max()", "np.maximum({r}, {r})",
    "np.float64({r})", "clipped({r}, {r}, 4)", "({c} and {r})", "({r} or {r})", "{r} - {r}", "round({r}, 1)", "A[{i}].max()",
]
CONDITIONS = [
    "{r} <> {r}", "{r} <> {r}", "{w} <> {w}", "x[{i}] > t", "x[{i}] > 0", "x[{i}] < s", "{w} < {w} <= {w}", "not {c}", "({c} and {c})", "({c} or {c})",
    "{r} < {r} < {r}", "({v} > {r}).any()", "{w} % 2 == 0", "bool({w})",
]
PARAMETERS = "x, y, A, q, k, t, flag"


def is_python(line):
    try:
        compile(line, "", "exec")
    except SyntaxError:
        return False
    return True


class Generator:
    """The source of one program, and its arguments at three sizes."""

    HEAD = f"import numpy as np\n\n{HELPERS}"
    CALLS, COMPREHENSIONS, WHOLE, REAL, CONDITIONS = CALLS, COMPREHENSIONS, WHOLE, REAL, CONDITIONS
    UNPACK = ["c, s = divmod({w}, {w})", "s, c = {r}, {w}", "s = c = {w}", "d, s = {c}, s + 1"]

    def __init__(self, seed, statements=14):
        self.random = random.Random(seed)
        self.lines = []
        self.left = self.random.randint(3, statements)
        self.count = 0
        self.ints, self.floats, self.bools = ["k"], ["t"], ["flag"]
        self.orders_of = {}  # of names that are views
        self.vectors, self.matrices, self.indices = ["x", "y"], ["A"], []
        self.maybe = []  # names bound on some paths only, with their kind
        self.sizes = self.random.sample(SIZES, 3)
        self.scalars = self.pick("python", "python", "python", "numpy")
        self.dtype = self.pick("float64", "float64", "float64", "float32", "int64")
        self.depth_of_loops = 0

    def source(self):
        self.lines = []
        self.line(1, "n, m = A.shape")
        self.ints += ["n", "m"]
        self.line(1, f"s, c, d = {self.pick('0', '0.0', '1')}, {self.pick('0', '1', '-3')}, {self.pick('True', 'False')}")
        self.floats.append("s")
        self.ints.append("c")
        self.bools.append("d")
        while self.left > 0:
            self.statement(1)
        results = self.random.sample([*self.floats, *self.ints, *self.bools, *self.vectors, *self.matrices], 3)
        if self.maybe and self.chance(0.3):
            results.append(self.random.choice(self.maybe)[0])
        self.line(1, f"return {', '.join(dict.fromkeys([*results, 's', 'c']))}")
        return f"{self.HEAD}\n\ndef program({PARAMETERS}):\n" + "\n".join(self.lines) + "\n"

    def arguments(self, size, seed, numpy):
        n, m = size
        rng = numpy.random.default_rng([seed, n, m])
        x, y, matrix = ((rng.integers(-8, 9, shape) / 4).astype(self.dtype) for shape in (n, n, (n, m)))
        indices = rng.integers(-n, n + (seed % 5 == 0), n) if n else numpy.zeros(0, int)
        k, t = int(rng.integers(-2, 6)), float(rng.integers(-4, 5)) / 2
        if self.scalars == "numpy":
            k, t = numpy.int64(k), numpy.float64(t)
        return x, y, matrix, indices, k, t, bool(rng.integers(2))

    # --- the parts of a program ---------------------------------------------------------------------

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def statement(self, depth):
        self.left -= 1
        if depth < 5 and self.chance(0.45 if depth < 3 else 0.3):
            self.random.choice(self.compound())(depth)
        else:
            self.random.choice(self.simple())(depth)
        if self.depth_of_loops and self.chance(0.06):
            self.line(depth, f"if {self.condition()}:")
            self.jump(depth + 1)

    def simple(self):
        return [
            self.scalar, self.scalar, self.augment, self.augment, self.element, self.element, self.slice_write,
            self.view, self.swap, self.mask, self.call, self.comprehension, self.unpack,
        ]

    def compound(self):
        return [self.branch, self.branch, self.counted, self.counted, self.counted, self.over_items, self.loop_while, self.loop_while, self.relay, self.guarded]

    def jump(self, depth):
        if self.chance(0.25):
            self.line(depth, f"return {self.real()}, {self.whole()}")
        else:
            self.line(depth, self.pick("break", "continue"))

    def block(self, depth, most=3):
        """Statements a level down. Names first bound here are bound on some paths only."""
        kept = [list(names) for names in self.kinds()]
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)
        for names, before in zip(self.kinds(), kept, strict=True):
            new = [(n, k) for k, n in enumerate(names) if n not in before]
            self.maybe += [(n, names is self.ints) for n, _ in new]
            names[:] = before

    def kinds(self):
        return self.ints, self.floats, self.bools, self.vectors, self.matrices, self.indices

    def branch(self, depth):
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, 2)
        while self.chance(0.3):
            self.line(depth, f"elif {self.condition()}:")
            self.block(depth + 1, 2)
        if self.chance(0.5):
            self.line(depth, "else:")
            self.block(depth + 1, 2)

    def loop_body(self, depth, variables):
        self.depth_of_loops += 1
        self.indices += variables
        self.block(depth + 1)
        for name in variables:
            self.indices.remove(name)
            if self.chance(0.5):
                self.maybe.append((name, True))
        self.depth_of_loops -= 1
        if self.chance(0.15):
            self.line(depth, "else:")
            self.block(depth + 1, 1)

    def counted(self, depth):
        i = self.name("i")
        extent = self.fill(*EXTENTS)
        self.line(depth, f"for {i} in range({extent}):")
        self.loop_body(depth, [i])

    def over_items(self, depth):
        v, w, i = self.name("e"), self.name("w"), self.name("i")
        self.floats.append(v)
        kind = self.pick("items", "enumerate", "zip", "rows", "indices", "reversed")
        if kind == "items":
            self.line(depth, f"for {v} in {self.vector()}:")
            self.loop_body(depth, [])
        elif kind == "reversed":
            self.line(depth, f"for {v} in {self.vector()}[::-1]:")
            self.loop_body(depth, [])
        elif kind == "enumerate":
            self.line(depth, f"for {i}, {v} in enumerate({self.vector()}):")
            self.loop_body(depth, [i])
        elif kind == "zip":
            self.floats.append(w)
            self.line(depth, f"for {v}, {w} in zip({self.vector()}, {self.vector()}):")
            self.loop_body(depth, [])
            self.floats.remove(w)
        elif kind == "rows":
            self.vectors.append(w)
            self.line(depth, f"for {w} in A:")
            self.line(depth + 1, f"{v} = {w}[0]")
            self.loop_body(depth, [])
            self.vectors.remove(w)
        else:
            self.line(depth, f"for {i} in q:")
            self.line(depth + 1, f"{v} = x[{i}]")
            self.loop_body(depth, [i])
        self.floats.remove(v)

    def loop_while(self, depth):
        trips, most = self.name("w"), self.pick("15", "n", "9", "2 * m")
        kind = self.pick("plain", "plain", "named", "named", "endless")
        self.line(depth, f"{trips} = 0")
        if kind == "plain":
            self.line(depth, f"while {trips} < {most} and {self.condition()}:")
        elif kind == "named":
            is_int, name = self.chance(0.5), self.name("n")
            value = self.whole(1) if is_int else self.real(1)
            order = self.pick("<", ">", ">=", "!=")
            tests = [f"{trips} < {most}", f"({name} := {value}) {order} {self.real(2)}"]
            self.line(depth, f"while {' and '.join(self.random.sample(tests, 2))}:")
            self.maybe.append((name, is_int))
        else:
            self.line(depth, "while True:")
            if self.chance(0.4):
                self.statement(depth + 1)
            self.line(depth + 1, f"if {trips} >= {most} or {self.condition()}:")
            self.line(depth + 2, "break")
        self.line(depth + 1, f"{trips} += 1")
        self.loop_body(depth, [trips])

    def relay(self, depth):
        """Arrays of equal type that are swapped; each is written whole or in part while it is the first."""
        names = [self.name("v") for _ in range(self.pick(2, 2, 3))]
        for name in names:
            self.line(depth, f"{name} = {self.pick('x.copy()', 'x * 2', 'np.zeros_like(x)', 'x[::-1].copy()')}")
        i = self.name("i")
        self.line(depth, f"for {i} in range({self.fill(*EXTENTS)}):")
        first, others = names[0], " + ".join(names[1:])
        target = self.pick(first, f"{first}[...]", f"{first}[...]", f"{first}[:]", f"{first}[1:]")
        cut = "[1:]" if target.endswith("[1:]") else ""
        self.line(depth + 1, f"{target} = ({others}){cut} * 0.5 + {self.pick(i, '1', 's', 't')}")
        kept = list(self.vectors)
        self.vectors += names
        if self.chance(0.4):
            self.loop_body(depth, [i])
        self.line(depth + 1, f"{', '.join(names)} = {', '.join([*names[1:], first])}")
        self.vectors = [*kept, *names]

    def guarded(self, depth):
        if self.chance(0.6):
            return self.branch(depth)
        self.line(depth, "try:")
        self.block(depth + 1, 2)
        self.line(depth, f"except {self.pick('IndexError', 'ZeroDivisionError', 'ArithmeticError', 'Exception')}:")
        self.block(depth + 1, 1)
        return None

    # --- statements ---------------------------------------------------------------------------------

    def scalar(self, depth):
        kind = self.pick("int", "float", "float", "bool")
        names = {"int": self.ints, "float": self.floats, "bool": self.bools}[kind]
        value = {"int": self.whole, "float": self.real, "bool": self.condition}[kind]()
        new = self.chance(0.4)
        name = self.name(kind[0]) if new else self.random.choice([n for n in names if n not in "nm"])
        self.line(depth, f"{name} = {value}")
        if new:
            names.append(name)

    def augment(self, depth):
        if self.chance(0.5):
            name = self.random.choice([n for n in self.ints if n not in "nm"])
            self.line(depth, f"{name} {self.pick('+=', '+=', '-=', '%=', '//=')} {self.whole(2)}")
        else:
            self.line(depth, f"{self.random.choice(self.floats)} {self.pick('+=', '+=', '-=', '*=', '/=')} {self.real(2)}")

    def element(self, depth):
        target = self.fill("{v}[{i}]", "A[{i}, {i}]", "{v}[{i}]")
        self.line(depth, f"{target} {self.pick('=', '=', '+=', '-=', '*=')} {self.real(2)}")

    def piece(self):
        return self.fill(*PIECES)

    def slice_write(self, depth):
        target = self.piece()
        value = self.fill("{r}", "{r}", target, "{p}", f"{target} * 2", f"-{target}", f"{target}[::-1]", depth=2)
        op = self.pick("=", "=", "+=", "*=")
        if op == "=" and self.orders(target) != self.orders(value):  # NumPy reads some elements that it has written
            value = f"({value}).copy()" if self.orders(value) else value
        self.line(depth, f"{target} {op} {value}")

    def orders(self, text):
        """The orders that the elements of a view may have in memory; empty for what is no view."""
        if not (found := VIEW.fullmatch(text)):
            return frozenset()
        base = {"column"} if COLUMN.match(text) else self.orders_of.get(found[1], {"row"})
        return frozenset(f"{order}{step}" for order in base for step in ["".join(re.findall(r"::(-1|2)", text))])

    def view(self, depth):
        name = self.random.choice(self.vectors) if self.chance(0.15) else self.name("v")
        value = self.fill("{p}", "{p}", *ARRAYS)
        self.line(depth, f"{name} = {value}")
        self.orders_of[name] = self.orders_of.get(name, frozenset()) | (self.orders(value) or {"row"})
        if name not in self.vectors:
            self.vectors.append(name)

    def swap(self, depth):
        i, j, v, w = self.index(), self.index(), self.vector(), self.vector()
        self.orders_of[v] = self.orders_of[w] = self.orders(v) | self.orders(w)
        texts = [f"x[{i}], x[{j}] = x[{j}], x[{i}]", f"A[{i}], A[{j}] = A[{j}], A[{i}]", f"A[[{i}, {j}]] = A[[{j}, {i}]]", f"{v}, {w} = {w}, {v}"]
        self.line(depth, self.fill("x, y = y, x", *texts, "s, t = {r}, s", "c, k = k, {w}", depth=2))

    def mask(self, depth):
        v, name = self.vector(), self.name("v")
        text = self.fill(*(mask.replace("V", v).replace("NAME", name) for mask in MASKS), depth=2)
        self.line(depth, text)
        if text.startswith(name):
            self.vectors.append(name)

    def call(self, depth):
        self.line(depth, self.fill(*self.CALLS, depth=2))

    def comprehension(self, depth):
        """Python refuses a walrus in the iterable of a comprehension."""
        while not is_python(line := self.fill(*self.COMPREHENSIONS)):
            pass
        self.line(depth, line)

    def unpack(self, depth):
        self.line(depth, self.fill(*self.UNPACK, depth=2))

    # --- expressions --------------------------------------------------------------------------------

    def fill(self, *templates, depth=0):
        """One of the templates with its parts filled in."""
        parts = self.parts(depth)
        return re.sub(r"{([a-z])}", lambda part: parts[part[1]](), self.random.choice(templates))

    def parts(self, depth):
        """The meanings of letters: int, real, condition, index, vector, piece, loop variable."""
        return {
            "w": lambda: self.whole(depth), "r": lambda: self.real(depth), "c": lambda: self.condition(depth), "i": self.index,
            "v": self.vector, "p": self.piece, "l": lambda: self.random.choice(self.indices or ["1"]),
        }

    def vector(self):
        return self.random.choice(self.vectors)

    def index(self):
        if self.indices and self.chance(0.7):
            i = self.random.choice(self.indices)
            return self.pick(i, i, i, i, i, f"{i} - 1", f"{i} // 2", f"-{i}", f"-{i} - 1", f"{i} % m", f"{i} + 1", f"n - 1 - {i}", f"min({i}, m - 1)", f"q[{i}]", f"{i} % len(x)")
        return self.fill("0", "0", "0", "-1", "1", "n // 2", "{w} % n", "c % n", "n - 1", "{w}", "min({w}, n - 1)", "k", depth=2)

    def int_name(self):
        if self.maybe and self.chance(0.05):
            return self.random.choice(self.maybe)[0]
        return self.random.choice([*self.ints, *self.indices, *self.indices])

    def whole(self, depth=0):
        """An expression that is mostly an int."""
        if depth > 2 or self.chance(0.35):
            return self.pick(self.int_name(), self.int_name(), str(self.random.randint(-3, 9)))
        return self.fill(*self.WHOLE, depth=depth + 1)

    def real(self, depth=0):
        """An expression that is mostly a float or an element."""
        if depth > 2 or self.chance(0.3):
            return self.pick(self.random.choice(self.floats), self.random.choice(self.floats), self.pick("0.5", "-1.5", "2", "0.0", "3"))
        if self.chance(0.35):
            return self.fill("x[{i}]", "{v}[{i}]", "A[{i}, {i}]")
        return self.fill(*self.REAL, depth=depth + 1)

    def condition(self, depth=0):
        if depth > 2 or self.chance(0.15):
            return self.random.choice(self.bools)
        return self.fill(*self.CONDITIONS, depth=depth + 1).replace("<>", self.pick("<", ">", "<=", ">=", "==", "!="))


WIDE_HELPERS = '''
def steps(n, most):
    if most <= 0 or n <= 1:
        return 0
    return 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1, most - 1)


def place_of(M, limit):
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            if M[i, j] > limit:
                return i, j
        else:
            continue
        break
    else:
        return -1, 0
    return 0, 0


def ratio(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return 0.0


def kind_of(value, other):
    match value:
        case 0:
            return 0
        case 1 | 2:
            return other
        case big if big > other:
            return big - other
        case _:
            return -1


def outer(v, limit):
    def inner(k):
        nonlocal limit
        if v[k] > limit:
            limit = v[k]
            return True
        return False

    return sum(inner(k) for k in range(len(v))), limit
'''


class Wide(Generator):
    """Programs with more of the language: recursion, nested helpers, match, lists that grow, math, both kinds of
    numbers.
    """

    HEAD = f"import math\n\n{Generator.HEAD}\n{WIDE_HELPERS}"
    CALLS = [
        *CALLS, "c = steps({w}, 6)", "c, _ = place_of(A, {r})", "s = ratio({r}, {r})", "c = kind_of({w}, {w})", "s = kind_of({r}, {r})", "c, s = outer({v}, {r})",
        "s = clipped(ratio({r}, {r}), first_above({v}, {r}), kind_of({r}, 3))",
    ]
    COMPREHENSIONS = [
        *COMPREHENSIONS, "s = sum((y1 := e) * 2 for e in {v}) + t", "c = len([1 for e in {v} if (h := e) > s and h < t])", "d = {c} and any(e > s for e in {v})",
        "s = max((kind_of(e, 2) for e in {v}), default=-1)", "v0 = [e + 1 for e in {v} if e > {r}]; c += len(v0)",
        "c = max(range(len({v})), key=lambda j: {v}[j], default=-1)", "s = sorted({v}, key=lambda e: -abs(e))[{i}]", "s = sorted({v})[-1]; c = len(set({v}))", "s = max(e * {r} for e in {v})",
        "c, s = min(enumerate({v}, {w}), key=lambda p: p[1])", "v0 = list({v}); v0.append({r}); c = len(tuple(v0))", "s = dict(zip({v}, range(9))).get({v}[0], {r})",
    ]
    UNPACK = [*Generator.UNPACK, "(c, s), d = divmod({w}, {w}), {c}", "d = flag = {c}", "s, *_ = {r}, {w}, {w}", "c += 1; s, t = t, s"]
    WHOLE = [
        *WHOLE, "math.floor({r})", "math.ceil({r})", "math.trunc({r})", "math.gcd({w}, {w})", "np.int64({w})", "({c} + {w})", "({c} or {w})", "({w} and {w})", "abs(int({r}))",
        "({w}).bit_length()", "steps({w}, 4)", "kind_of({w}, {w})", "math.isqrt(abs({w}))", "int(np.sign({r}))", "({w}) ** 2", "np.int32({w} % 50)",
    ]
    REAL = [
        *REAL, "math.sqrt(abs({r}))", "math.fabs({r})", "math.copysign({r}, {r})", "math.fmod({r}, {r})", "float({r})", "ratio({r}, {r})", "({r} and {r})", "np.float32({r})", "({c} or {r})",
        "{v}[{i}].item()", "({r}) ** 2", "np.minimum({r}, {w})", "kind_of({r}, {r})", "(-1.5 if {c} else {w})", "np.abs({r})", "sum({v}[:3])", "min({v})", "max({v}, default={r})", "max({v}, key=abs)", "sum({v})", "np.where({c}, {r}, {r})[()]",
    ]
    CONDITIONS = [
        *CONDITIONS, "math.isnan({r})", "math.isclose({r}, {r})", "(({c}) & ({c}))", "(({c}) ^ ({c}))", "not ({c} or {c})", "({c}) is True", "({c}) is not False", "{r} <> {r} <> {w}",
        "0 <= {w} < len({v})", "(h1 := {w}) <> {w}", "np.isfinite({r})", "all({v} > {r})", "any({v})", "{w} in (1, 2, {w})", "({c}) == ({c})", "{r} and {w}", "np.bool_({c})", "({c} if {c} else {w})",
    ]

    def simple(self):
        return [*super().simple(), self.call, self.note, self.unpack]

    def compound(self):
        return [*super().compound(), self.choice, self.choice, self.grow, self.stack, self.cleanup]

    def note(self, depth):
        """Statements on a list that earlier statements may have made; it is made first if some path has not."""
        self.line(depth, self.fill("out.append({r})", "out.append(({r}, {w}))", "out[-1:] = [{r}]", "c = len(out)", "out.append({v}[{i}])", "out = out[:4]", "d = bool(out)", "out += [{r}, {w}]", depth=1))

    def choice(self, depth):
        """A `match` on numbers."""
        self.line(depth, self.fill("match {w}:", "match {r}:", "match {w} % 3:", "match {c}:", "match (k, {w} % 2):"))
        is_pair = "match (k" in self.lines[-1]
        for _ in range(self.pick(1, 2, 3)):
            one = self.fill("0", "1 | 2", "-1", "0.5 | 2", "True", "p if p > {r}", "p if {c}", depth=2)
            self.line(depth + 1, f"case ({one.split(' if ')[0].replace('p', '_')}, {self.pick('0', '1', '_')}):" if is_pair else f"case {one}:")
            self.block(depth + 2, 2)
        if self.chance(0.6):
            self.line(depth + 1, "case _:")
            self.block(depth + 2, 1)

    def grow(self, depth):
        """A list made in a loop, and uses of it."""
        name, i = self.name("l"), self.name("i")
        self.line(depth, f"{name} = []")
        self.line(depth, f"for {i} in range({self.fill(*EXTENTS)}):")
        self.line(depth + 1, self.fill(f"{name}.append({{r}})", f"{name}.append({{w}})", f"{name}.append({{v}}[{i}])", f"if {{c}}:\n{'    ' * (depth + 2)}{name}.append({{r}})", depth=1))
        self.loop_body(depth, [i])
        self.line(depth, self.fill(f"c = len({name})", f"s = {name}[-1] if {name} else {{r}}", f"s = sum({name})", f"s = max({name}, default={{r}})", f"y[:len({name})] = {name}[:len(y)]", f"d = {{r}} in {name}"))

    def stack(self, depth):
        """A list that a loop pops from first, and pushes to later."""
        name, count, item = self.name("l"), self.name("c"), self.name("i")
        is_pair = self.chance(0.4)
        push = "({w}, {w})" if is_pair else self.pick("{w}", "{w}", "{r}", "{i}")
        self.line(depth, self.fill(f"{name} = [{push}]", f"{name} = [{push}, {push}]"))
        self.line(depth, f"{count} = 0")
        self.line(depth, f"while {self.pick(name, f'len({name}) > 1', f'len({name})')} and {count} < {self.pick(3, 9, 20)}:")
        self.line(depth + 1, f"{count} += 1")
        self.line(depth + 1, f"{item}, {item}b = {name}.pop()" if is_pair else f"{item} = {name}.pop()")
        self.floats.append(item)
        self.block(depth + 1, 2)
        self.line(depth + 1, self.fill(f"if {{c}}: {name}.append({push})", f"{name}.append({push})", f"if {{c}}:\n{'    ' * (depth + 2)}{name}.append({push})\n{'    ' * (depth + 2)}{name}.append({push})", depth=1))
        self.floats.remove(item)
        self.line(depth, self.fill(f"c = len({name})", f"out.append({name})", f"d = bool({name})", f"s = {name}[-1] if {name} else {{r}}", depth=1))

    def cleanup(self, depth):
        """A `try` with all its clauses."""
        self.line(depth, "try:")
        self.block(depth + 1, 2)
        if self.chance(0.7):
            self.line(depth, f"except {self.pick('(IndexError, ValueError)', 'ArithmeticError', 'Exception')} as error:")
            self.line(depth + 1, "d = bool(str(error))")
            if self.chance(0.4):
                self.line(depth, "else:")
                self.block(depth + 1, 1)
        self.line(depth, "finally:")
        self.block(depth + 1, 1)

    def source(self):
        text = super().source()
        return text.replace("    n, m = A.shape\n", "    n, m = A.shape\n    out = []\n", 1)


class Lists(Wide):
    """Programs with lists of numbers of any class that loops store to, rebind and exchange, and with names that an
    iteration leaves as another number class.
    """

    REBIND = [
        "{a}, {b} = {b}, {a}", "{a}, {b} = {b}, {a}", "{a} = {b}", "{a} = {b}[:]", "{a} = [{r}] * len({b})", "{a} = [e + 1 for e in {b}]", "{a}[:] = {b}",
        "{a} = list({b})", "{a} = {b}; {b} = [{w}] * len({a})", "{a}, {b} = {b}, [{r}] * len({b})", "{a} = {a}[::-1]", "{a} = {a} + [{r}]",
    ]
    LATE = ["out.append({a})", "out.append(({a}, {b}))", "d = {a} is {b}", "s = {a}[{i} % len({a})]", "c = len({a})", "s = sum({a})", "s = max({a})", "{a}.append({r})", "out.append({a}[:2])"]

    def compound(self):
        return [self.exchange, self.exchange, self.exchange, self.climb, *super().compound()]

    def exchange(self, depth):
        """Two lists of one length; each iteration stores to one of them and may rebind it."""
        a, b, i, j = (self.name(letter) for letter in "lrij")
        size = self.pick("4", "n + 1", "len(x) + 1", "m + 1", "7")
        item = self.pick("0", "0.0", "{w}", "{r}", "1")
        firsts = [f"[{item}] * ({size})", f"list(range({size}))", f"[{item} for _ in range({size})]", f"[x.max(initial=0)] * ({size})"]
        names = {"a": a, "b": b}

        def fill(texts):
            text = self.pick(*texts)
            for letter, name in names.items():
                text = text.replace(f"{{{letter}}}", name)
            return self.fill(text, depth=1)

        self.line(depth, self.fill(f"{a} = {self.pick(*firsts)}", depth=1))
        self.line(depth, self.fill(f"{b} = [{item}] * len({a})", depth=1))
        if self.chance(0.2):
            self.line(depth, self.pick(f"out.append({a})", f"first = {a}", f"out.append(lambda: {b}[0])"))
        self.line(depth, f"for {i} in range({self.fill(*EXTENTS)}):" if self.chance(0.8) else f"{i} = 0\n{'    ' * depth}while {i} < {self.pick(2, 5)} and {self.condition()}:")
        if self.lines[-1].endswith(":") and "while" in self.lines[-1]:
            self.line(depth + 1, f"{i} += 1")
        if self.chance(0.3):
            self.line(depth + 1, fill([f"{b} = [{{w}}] * len({a})", f"{b} = []" if self.chance(0.1) else f"{b} = [{item}] * ({size})"]))
        self.line(depth + 1, f"for {j} in range({self.pick('1, ', '')}len({b})):")
        self.line(depth + 2, fill([
            f"{b}[{j}] = {a}[{j} - 1] + {{r}}", f"{b}[{j}] = min({a}[{j}] + 1, {b}[{j} - 1] + {{w}})", f"{b}[{j}] = max({a}[{j}], {{r}}) if {{c}} else {a}[{j} - 1]", f"{b}[{j}] = x[{j} % n] + {a}[0]",
            f"{b}[{j}] = {{w}}", f"if {{c}}: {b}[{j}] = {a}[{j} - 1]", f"{a}[{j}] = {b}[{j} - 1]", f"{b}[q[{j} % n]] += {{r}}", f"{b}[{j}] += {a}[{j}]",
        ]))
        if self.chance(0.5):
            self.line(depth + 1, fill(self.LATE))
        if self.chance(0.4):
            self.loop_body(depth, [i])
        self.line(depth + 1, fill(self.REBIND))
        for _ in range(self.pick(1, 2)):
            self.line(depth, fill(self.LATE))

    def climb(self, depth):
        """A walk along a list of ints that other statements change: a name is of one class or another after it."""
        a, v, i = self.name("l"), self.name("v"), self.name("i")
        self.line(depth, f"{a} = list(range({self.pick('n + 1', '6', 'len(x) + 2')}))")
        self.line(depth, f"for {i} in range({self.pick('n', '5', 'len(q)')}):")
        self.line(depth + 1, f"{v} = {self.pick(f'q[{i} % n] % len({a})', f'{i} % len({a})', f'int(q[{i} % n]) % len({a})')}")
        self.line(depth + 1, f"while {a}[{v}] != {v}:")
        self.line(depth + 2, f"{v} = {a}[{v}]")
        self.line(depth + 1, f"if {v} > {self.pick('0', 'k', '1')}:")
        self.line(depth + 2, self.pick(f"{a}[{v}] = {v} - 1", f"{a}[{v}] = q[0] % {v}", f"{a}[{v}] = 0"))
        if self.chance(0.3):
            self.loop_body(depth, [i])
        self.line(depth, self.pick(f"out.append({a})", f"c = {a}[{v}] if n else 0", f"out.append({v} if n else 0)", f"s = max({a})"))

    def source(self):
        text = super().source()
        head, _, last = text.rpartition("    return ")
        return f"{head}    return [o() if callable(o) else o for o in out], {last}"
