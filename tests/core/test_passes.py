"""Tests that random graphs have the same meaning before and after the passes: values bit for bit, dtypes, strides,
and shared memory. The reference evaluates the graph with NumPy, node by node.
"""

import os
import random
import re
import subprocess

import numpy as np
import pytest
from conftest import ROOT

COUNT = int(os.environ.get("CINDUCTOR_FUZZ", 150))
DTYPES = {"bool": "?", "i8": "b", "i32": "i", "u8": "B", "f32": "f", "f64": "d", "c64": "F"}
SAME = {
    "bool": "add multiply maximum minimum bitwise_and bitwise_or bitwise_xor logical_and "
    "logical_or",
    "i": "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor floor_divide",
    "f": "add subtract multiply divide",  # which zero a maximum returns is not specified
    "F": "add subtract multiply",
}
UNARY = {
    "bool": "logical_not invert",
    "i": "negative positive absolute square invert sign conjugate",
    "f": "negative positive absolute fabs square floor ceil trunc rint sqrt sign conjugate "
    "modf_fraction deg2rad rad2deg",
    "F": "negative positive square conjugate",
}
COMPARISONS = "equal not_equal less less_equal greater greater_equal"


def class_of(dtype):
    return {"?": "bool", "F": "F"}.get(DTYPES[dtype], "f" if dtype[0] == "f" else "i")


class Writer:
    """Writes a random graph as text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.count = [], 0
        self.values = []  # name, dtype, sizes
        for dtype in self.random.sample(list(DTYPES), 3):
            self.values += [(f"in{len(self.values)}", dtype, (3, 4))]
        self.inputs = list(self.values)

    def emit(self, dtype, sizes, call):
        name = f"%{self.count}"
        self.count += 1
        self.lines.append((name, dtype, sizes, call))
        self.values.append((name, dtype, sizes))

    def pick(self, want=lambda value: True):
        found = [value for value in self.values if want(value)]
        return self.random.choice(found[-6:] if self.random.random() < 0.6 else found)

    def constant(self, dtype):
        numbers = {"bool": ["true", "false"], "i": ["0", "1", "2", "0"], "F": ["(1.0, 0.0)"]}
        floats = ["0.0", "-0.0", "1.0", "2.0", "-1.0", "nan", "inf", "0.25", "3.0"]
        value = self.random.choice(numbers.get(class_of(dtype), floats))
        if dtype[0] == "i" and self.random.random() < 0.3:
            value = "-1"
        self.emit(dtype, (), f"const {value}")
        return self.values[-1]

    def pointwise(self):
        name, dtype, sizes = self.pick()
        fits = [v for v in self.values if v[1] == dtype and v[2] in (sizes, ())]
        other = self.constant(dtype) if self.random.random() < 0.4 else self.random.choice(fits)
        pair = [name, other[0]]
        self.random.shuffle(pair)
        kind = self.random.random()
        if kind < 0.3:
            op = self.random.choice(UNARY[class_of(dtype)].split())
            self.emit(dtype, sizes, f"{op}({name})")
        elif kind < 0.45 and dtype != "c64":
            op = self.random.choice(COMPARISONS.split())
            self.emit("bool", sizes, f"{op}({', '.join(pair)})")
        elif kind < 0.55:
            masks = [v for v in self.values if v[1] == "bool" and v[2] in (sizes, ())]
            mask = self.random.choice(masks) if masks else self.constant("bool")
            self.emit(dtype, sizes, f"where({mask[0]}, {', '.join(pair)})")
        else:
            op = self.random.choice(SAME[class_of(dtype)].split())
            self.emit(dtype, sizes, f"{op}({', '.join(pair)})")

    def view(self, of=None):
        """A view; of a given value one that can be written to."""
        name, dtype, sizes = of or self.pick(lambda value: value[2])
        rank, kind = len(sizes), self.random.random() * (0.7 if of else 1)
        if kind < 0.35:
            axes = self.random.sample(range(rank), rank)
            self.emit(dtype, tuple(sizes[k] for k in axes), f"permute({name}, axes={axes})")
        elif kind < 0.7:
            whole = self.random.random() < 0.4
            steps = [1 if whole else self.random.choice([1, 1, -1]) for _ in sizes]
            taken = [n if whole else self.random.randint(1, n) for n in sizes]
            starts = [0 if s > 0 else n - 1 for s, n in zip(steps, sizes, strict=True)]
            self.emit(dtype, tuple(taken), f"slice({name}, starts={starts}, steps={steps})")
        else:
            size = self.random.choice([sizes, (2, *sizes)])
            self.emit(dtype, size, f"expand({name})")

    def write(self):
        """A write to new memory, or to a view that counts as memory of its own, through views of it. Only the new
        version is read afterwards.
        """
        name, dtype, sizes = self.pick(lambda value: value[2])
        before = len(self.values)
        self.emit(dtype, sizes, f"copy({name})")
        if self.random.random() < 0.5:
            self.view(self.values[-1])
        base = target = self.values[-1]
        for _ in range(self.random.randint(0, 2)):
            self.view(target)
            target = self.values[-1]
        fits = [v[0] for v in self.values[:before] if v[1:] in ((dtype, ()), (dtype, target[2]))]
        value = self.random.choice(fits) if fits else self.constant(dtype)[0]
        self.emit(dtype, base[2], f"assign({base[0]}, {target[0]}, {value})")
        self.values[before:] = self.values[-1:]

    def step(self):
        name, dtype, sizes = self.pick()
        kind = self.random.random()
        if kind < 0.55:
            self.pointwise()
        elif kind < 0.75:
            self.view()
        elif kind < 0.8:
            self.write()
        elif kind < 0.9:
            self.emit(dtype, sizes, f"copy({name})")
        elif dtype not in ("c64",) and class_of(dtype) != "f":
            self.emit(self.random.choice(["f64", "i32", dtype]), sizes, f"cast({name})")
        else:
            self.emit("c64" if dtype == "c64" else "f64", sizes, f"cast({name})")

    def text(self):
        for _ in range(self.random.randint(3, 25)):
            self.step()
        results = self.random.choices([v[0] for v in self.values], k=4)
        head = ", ".join(f"{n}: {d}[{','.join(map(str, s))}]" for n, d, s in self.inputs)
        return head, self.lines, results




def as_text(head, lines, results, values):
    """Types contain stride orders, which are known after NumPy has computed the values."""
    out = [f"graph f({head}) {{"]
    for name, dtype, sizes, call in lines:
        order = stride_order(values[name])
        written = "" if order == sorted(order) else f" order [{','.join(map(str, order))}]"
        out.append(f"  {name}: {dtype}[{','.join(map(str, sizes))}]{written} = {call}")
    return "\n".join([*out, f"  return {', '.join(results)}", "}", ""])


def stride_order(array):
    """The order the strides of an array in memory imply: see csrc/ir/layout.c."""
    order = []
    for axis in reversed(range(array.ndim)):
        place = len(order)
        for k in reversed(range(len(order))):
            inner = order[k]
            outer_stride, inner_stride = abs(array.strides[axis]), abs(array.strides[inner])
            silent = 1 in (array.shape[axis], array.shape[inner])
            if silent or not outer_stride or not inner_stride:
                continue
            if inner_stride <= outer_stride:
                break
            place = k
        order.insert(place, axis)
    return order[::-1]


def fresh(value, dtype, order=None):
    """A new array with the value. Its axes have the given order in memory, or NumPy's if there is none."""
    value = np.asarray(value)
    order = stride_order(value) if order is None else order
    made = np.empty([value.shape[k] for k in order], dtype).transpose(np.argsort(order))
    made[...] = value
    return made


def number(dtype, text):
    if dtype == "bool":
        return np.array(text == "true")
    return np.array(complex(*eval_pair(text)) if text[0] == "(" else float(text), DTYPES[dtype])


def eval_pair(text):
    return [float(part) for part in text.strip("()").split(",")]


def written(base, target, value):
    """The version of base after a write to a view of it: the views at their places in a copy of the memory."""
    whole = base
    while whole.base is not None:
        whole = whole.base
    made, start = whole.copy(), whole.__array_interface__["data"][0]
    views = [np.ndarray(v.shape, v.dtype, made, v.__array_interface__["data"][0] - start, v.strides) for v in (base, target)]
    views[1][...] = value
    return views[0]


def evaluate(op, args, attributes, dtype, sizes, order):
    numbers = [[int(n) for n in found.split(",")] for found in re.findall(r"\[(.*?)\]", attributes)]
    if op == "permute":
        return args[0].transpose(numbers[0])
    if op == "expand":
        return np.broadcast_to(args[0], sizes)
    if op == "slice":
        index = []
        for start, step, size in zip(*numbers, sizes, strict=True):
            stop = start + size * step
            index.append(slice(start, None if stop < 0 else stop, step))
        return args[0][tuple(index)]
    if op == "reshape":
        return args[0].reshape(sizes)
    if op == "assign":
        return written(*args)
    if op == "copy":
        return fresh(args[0], DTYPES[dtype], list(range(len(sizes))) if order is None else order)
    with np.errstate(all="ignore"):
        if op == "cast":
            value = args[0].astype(DTYPES[dtype])
        elif op == "modf_fraction":
            value = np.modf(args[0])[0]
        elif op in ("isinf", "copysign") or hasattr(np, op):
            value = getattr(np, op)(*args)
        else:
            raise AssertionError(op)
    return fresh(value, DTYPES[dtype], order)


LINE = re.compile(
    r"  (%\d+): (?:scalar |python )?(\w+)\[([\d,]*)\](?: order \[([\d,]*)\])? = (\w+)(.*)"
)


def run_line(values, name, dtype, sizes, order, op, rest):
    if op == "const":
        values[name] = number(dtype, rest.strip())
        return
    inner = rest.strip()[1:-1]
    args = [values[a] for a in re.findall(r"(?:^|, )(%\d+|in\d+)", inner)]
    values[name] = evaluate(op, args, inner, dtype, sizes, order)


def run_text(text, inputs):
    """The results of a printed graph."""
    values = dict(inputs)
    for line in text.splitlines():
        if found := LINE.match(line):
            name, dtype, sizes, order, op, rest = found.groups()
            order = [int(k) for k in order.split(",")] if order else None
            sizes = tuple(int(k) for k in sizes.split(",") if k)
            if op not in ("const", "permute", "slice", "expand", "reshape", "assign"):
                order = order or list(range(len(sizes)))
            run_line(values, name, dtype, sizes, order, op, rest)
        elif line.startswith("  return"):
            return [values[name] for name in re.findall(r"%\d+|in\d+", line)]
    raise AssertionError(text)


def make_inputs(seed, inputs):
    generator = np.random.default_rng(seed)
    made = {}
    for name, dtype, sizes in inputs:
        value = generator.integers(-4, 5, sizes).astype(DTYPES[dtype])
        if class_of(dtype) == "f":
            value = value * value.dtype.type(0.75)
            value.flat[:4] = [np.nan, np.inf, -0.0, -np.inf]
        made[name] = value
    return made


def same_bits(a, b):
    """Equal bit for bit, any NaN equal to any NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real.copy(), b.real.copy()) and same_bits(a.imag.copy(), b.imag.copy())
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(np.where(np.isnan(a), 0, a)), np.signbit(np.where(np.isnan(b), 0, b))
    )


def strides(array):
    """The strides, without those of axes with one element, which have no meaning."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


def sharing(results, inputs):
    everything = [*inputs.values(), *results]
    return [[np.shares_memory(a, b) for b in everything] for a in everything]


@pytest.fixture(scope="module")
def golden(core):
    return core.link(ROOT / "tests" / "golden" / "golden.c")


@pytest.mark.parametrize("start", range(0, COUNT, 50))
def test_passes_keep_what_a_graph_means(golden, start, tmp_path):
    clean = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    for seed in range(start, min(start + 50, COUNT)):
        writer = Writer(seed)
        head, lines, results = writer.text()
        inputs = make_inputs(seed, writer.inputs)
        values = dict(inputs)
        for name, dtype, sizes, call in lines:
            op, rest = re.match(r"(\w+)(.*)", call).groups()
            order = list(range(len(sizes))) if op == "copy" else None
            run_line(values, name, dtype, sizes, order, op, rest)
        expected = [values[name] for name in results]
        path = tmp_path / "graph.ci"
        path.write_text("# passes: all\n" + as_text(head, lines, results, values))
        done = subprocess.run([golden, path], capture_output=True, text=True, env=clean, timeout=60)
        assert done.returncode == 0 and "expected error" not in done.stdout, (
            path.read_text() + done.stdout + done.stderr
        )
        got = run_text(done.stdout, inputs)
        report = f"seed {seed}\n{path.read_text()}\n{done.stdout}"
        assert all(same_bits(a, b) for a, b in zip(got, expected, strict=True)), report
        assert [strides(a) for a in got] == [strides(b) for b in expected], report
        assert sharing(got, inputs) == sharing(expected, inputs), report
