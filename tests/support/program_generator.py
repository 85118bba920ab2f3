"""Generates the source of random NumPy programs without control flow, for differential tests.

A program is `def program(x0, x1, ...)` over float and integer arrays of a few broadcastable shapes. Every
statement is legal for the shapes at hand. It may slice, transpose, reduce, and write through views and into its
arguments. Sizes are small: the aim is to combine statements.
"""

import random

UNARY = ["np.exp(-np.abs({a}))", "np.sqrt(np.abs({a}))", "-{a}", "np.abs({a})", "np.tanh({a})", "{a} * {a}", "np.floor({a})", "np.sin({a})", "np.sign({a})"]
BINARY = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "np.maximum({a}, {b})", "np.minimum({a}, {b})", "np.where({a} > {b}, {a}, {b})", "{a} / (np.abs({b}) + 1)"]
SCALARS = ["2", "0.5", "3.0", "-1", "1.25"]
REDUCE = ["sum", "max", "min", "mean", "prod"]


class Generator:
    """Builds one program from a seed."""

    def __init__(self, seed, statements=8):
        self.random = random.Random(seed)
        self.lines = []
        self.values = {}  # name -> shape
        self.arguments = []
        self.count = 0
        for k in range(self.random.randint(1, 3)):
            rank = self.random.choice([1, 2, 2, 3])
            shape = tuple(self.random.choice([1, 3, 4, 5, 17]) for _ in range(rank))
            self.values[f"x{k}"] = shape
            self.arguments.append((f"x{k}", shape, self.random.choice(["float64", "float32", "float64", "int64", "int32"])))
        for _ in range(statements):
            self.statement()

    def new(self, expression, shape):
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {expression}")
        self.values[name] = shape

    def pick(self):
        name = self.random.choice(list(self.values))
        return name, self.values[name]

    def partner(self, shape):
        """A value that broadcasts with shape, or a scalar."""
        fitting = [n for n, s in self.values.items() if broadcast(shape, s) is not None]
        if not fitting or self.random.random() < 0.25:
            return self.random.choice(SCALARS), ()
        name = self.random.choice(fitting)
        return name, self.values[name]

    def statement(self):
        kinds = [self.unary, self.binary, self.binary, self.binary, self.reduce, self.view, self.view, self.write, self.join, self.scan]
        self.random.choice(kinds)()

    def unary(self):
        a, shape = self.pick()
        self.new(self.random.choice(UNARY).format(a=a), shape)

    def binary(self):
        a, shape = self.pick()
        b, other = self.partner(shape)
        self.new(self.random.choice(BINARY).format(a=a, b=b), broadcast(shape, other))

    def reduce(self):
        a, shape = self.pick()
        if not shape:
            return
        name = self.random.choice(REDUCE)
        axis = self.random.choice([None, *range(-len(shape), len(shape))])
        keep = self.random.random() < 0.5
        if axis is None:
            kept = (1,) * len(shape) if keep else ()
        else:
            place = axis % len(shape)
            kept = tuple(1 if k == place else n for k, n in enumerate(shape) if keep or k != place)
        self.new(f"np.{name}({a}, axis={axis}, keepdims={keep})", kept)

    def scan(self):
        a, shape = self.pick()
        if shape:
            self.new(f"np.cumsum({a}, axis={self.random.randrange(len(shape))})", shape)

    def view(self):
        a, shape = self.pick()
        if not shape:
            return
        kind = self.random.choice(["slice", "transpose", "newaxis", "reshape", "flip", "index"])
        if kind == "transpose":
            self.new(f"{a}.T", shape[::-1])
        elif kind == "newaxis" and len(shape) < 4:
            place = self.random.randint(0, len(shape))
            self.new(f"np.expand_dims({a}, {place})", (*shape[:place], 1, *shape[place:]))
        elif kind == "reshape":
            size = 1
            for n in shape:
                size *= n
            self.new(f"{a}.reshape(-1)", (size,))
        elif kind == "flip":
            self.new(f"{a}[::-1]", shape)
        elif kind == "index" and len(shape) > 1:
            self.new(f"{a}[{self.random.randrange(shape[0])}]", shape[1:])
        else:
            text, sizes = self.slices(shape)
            self.new(f"{a}[{text}]", sizes)

    def slices(self, shape):
        parts, sizes = [], []
        for n in shape:
            low = self.random.randint(0, n - 1)
            high = self.random.randint(low + 1, n)
            step = self.random.choice([1, 1, 2])
            parts.append(f"{low}:{high}:{step}")
            sizes.append(len(range(low, high, step)))
        return ", ".join(parts), tuple(sizes)

    def write(self):
        a, shape = self.pick()
        if not shape or not self.writable(a):
            return
        text, sizes = self.slices(shape)
        fitting = [n for n, s in self.values.items() if broadcast(sizes, s) == sizes]
        value = self.random.choice([*fitting, "2"])
        form = self.random.choice([f"{a}[{text}] = {value}", f"{a}[{text}] += {self.random.choice(['1', '2'])}", f"{a}[{text}] *= 2"])
        self.lines.append(form)

    def writable(self, name):
        """NumPy scalars (0-d results) cannot be written; every array here can."""
        return bool(self.values[name])

    def join(self):
        a, shape = self.pick()
        same = [n for n, s in self.values.items() if s == shape]
        if shape and len(shape) < 4:
            axis = self.random.randrange(len(shape))
            total = tuple(2 * n if k == axis else n for k, n in enumerate(shape))
            if max(total) <= 100:
                self.new(f"np.concatenate([{a}, {self.random.choice(same)}], axis={axis})", total)

    def source(self):
        """The program as text; it returns its last three values."""
        results = list(self.values)[-3:]
        names = ", ".join(name for name, _, _ in self.arguments)
        body = "\n".join("    " + line for line in self.lines)
        return f"import numpy as np\n\n\ndef program({names}):\n{body}\n    return {', '.join(results)},\n"


def broadcast(a, b):
    """The broadcast shape, or None."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple(max(m, n) for m, n in zip(a, b, strict=True))


def make_arguments(arguments, seed, numpy):
    """Arrays for a program's arguments: (name, shape, dtype) each."""
    rng = numpy.random.default_rng(seed)
    made = []
    for _, shape, dtype in arguments:
        values = rng.integers(-3, 4, shape) if dtype.startswith("int") else rng.normal(size=shape)
        made.append(values.astype(dtype))
    return made
