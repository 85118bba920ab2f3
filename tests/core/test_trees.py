"""Tests kernels that contain control flow, made from loops over elements and rows of graphs: NumPy's results for
known and symbolic sizes, on one thread and on several.
"""

import os
import signal
import threading

import numpy as np
import pytest

from cinductor import _core

BACKENDS = [name for device, name, _, why in _core.backends() if device == "cpu" and why is None]


class Graph:
    """Text of a graph, line by line."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def names(self, count):
        self.count += count
        return [f"%{self.count - count + k}" for k in range(count)]

    def node(self, type, text):
        (name,) = self.names(1)
        self.lines.append(f"{name}: {type} = {text}")
        return name

    def slice(self, type, array, *starts):
        return self.node(
            type,
            f"slice({array}, starts=[{', '.join(starts)}], steps=[{', '.join('1' for _ in starts)}])",
        )

    def element(self, array, *starts):
        view = self.slice(f"f64[{','.join('1' for _ in starts)}]", array, *starts)
        return self.node("scalar f64[]", f"reshape({view})")

    def store(self, type, array, value, *starts):
        view = self.slice(f"f64[{','.join('1' for _ in starts)}]", array, *starts)
        return self.node(type, f"assign({array}, {view}, {value})")

    def scalar(self, op, *args):
        return self.node("scalar f64[]", f"{op}({', '.join(args)})")

    def number(self, value):
        return self.node("scalar f64[]", f"const {value}")

    def loop(self, variable, extent, type, entry, body):
        result, counter, carried = self.names(3)
        self.lines.append(
            f"{result}: {type} = for {variable}<{extent} carry ({counter}: python i64[], {carried}: {type} = {entry}) {{"
        )
        self.lines.append(f"next {body(carried)}")
        self.lines.append("}")
        return result

    def text(self, inputs, ends, symbols=""):
        return "\n".join([symbols, f"graph f({inputs}) {{", *self.lines, *ends, "}", ""]).lstrip()


def both_sizes(sizes):
    """The extents as text, and the line that declares them: first numbers, then symbols of the first input."""
    yield [str(n) for n in sizes], ""
    names = [f"s{k}" for k in range(len(sizes))]
    declared = ", ".join(
        f"s{k} in [0, inf) from in0.sizes {k} hint {n}" for k, n in enumerate(sizes)
    )
    yield names, f"symbols {{{declared}}}"


def run(text, arrays, backend, threads=0):
    arrays = [array.copy() for array in arrays]
    _core.compile_text(text, arrays, options={"threads": threads, "verify": True}, backend=backend)
    return arrays


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_matrix_times_vector(backend, n):
    for (size,), symbols in both_sizes([n]):
        if n == 0 and not symbols:  # a slice of one element does not fit
            continue
        g = Graph()

        def row(y, g=g, size=size):
            total = g.loop(
                "k",
                size,
                "scalar f64[]",
                g.number("0.0"),
                lambda s: g.scalar(
                    "add",
                    s,
                    g.scalar("multiply", g.element("in0", "i", "k"), g.element("in1", "k")),
                ),
            )
            return g.store(f"f64[{size}]", y, total, "i")

        y = g.loop("i", size, f"f64[{size}]", "in2", row)
        text = g.text(
            f"in0: f64[{size},{size}], in1: f64[{size}], in2: f64[{size}]",
            [f"write in2 = {y}", "return"],
            symbols,
        )
        a, x = numbers(n, n), numbers(n)
        expected = np.zeros(n)
        for k in range(n):
            expected = expected + a[:, k] * x[k]
        assert np.array_equal(run(text, [a, x, np.ones(n)], backend)[2], expected)


def make_sweep(size, symbols, step):
    """in1[i, t+1] = 0.9*in1[i+step, t] + exp(in0[i, t+1]) for all rows that exist."""
    g = Graph()
    rows, columns = size
    type = f"f64[{rows},{columns}]"
    count = rows if step == 0 else f"{rows} - {step}"

    def trip(y):
        before = g.slice(f"f64[{count},1]", y, str(step), "t")
        here = g.slice(f"f64[{count},1]", y, "0", "t + 1")
        added = g.slice(f"f64[{count},1]", "in0", "0", "t + 1")
        value = g.node(f"f64[{count},1]", f"multiply({before}, {g.number('0.9')})")
        value = g.node(
            f"f64[{count},1]", f"add({value}, {g.node(f'f64[{count},1]', f'exp({added}, by=numpy)')})"
        )
        return g.node(type, f"assign({y}, {here}, {value})")

    y = g.loop("t", f"{columns} - 1", type, "in1", trip)
    return g.text(f"in0: {type}, in1: {type}", [f"write in1 = {y}", "return"], symbols)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("shape", [(3, 4), (8, 5), (20, 2), (21, 30), (300, 200)])
def test_sweep_across_memory(shape, step):
    x, y = numbers(*shape), numbers(*shape)[::-1].copy()
    results = []
    for size, symbols in both_sizes(shape):
        low = f"{symbols}\n".replace("[0, inf)", "[2, inf)") if symbols else ""
        for backend in BACKENDS:
            results += [
                run(make_sweep(size, low, step), [x, y], backend, threads)[1] for threads in (1, 2)
            ]
    expected = y.copy()
    for t in range(shape[1] - 1):
        expected[: shape[0] - step, t + 1] = expected[step:, t] * 0.9
        expected[: shape[0] - step, t + 1] += np.exp(x[: shape[0] - step, t + 1])
    np.testing.assert_array_equal(results[0], expected)
    for result in results:
        assert np.array_equal(result, results[0])


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 11, 2), (70, 19, 30)])
def test_sweep_over_the_last_of_three_axes(shape, step):
    """in0[p, i, t+1] += in0[p, i+step, t]: planes are always independent, rows only if step is 0."""
    x = numbers(*shape)
    expected = x.copy()
    for t in range(shape[2] - 1):
        expected[:, : shape[1] - step, t + 1] += expected[:, step:, t]
    for size, symbols in both_sizes(shape):
        g = Graph()
        type = f"f64[{','.join(size)}]"
        part = f"f64[{size[0]},{size[1]} - {step},1]"

        def trip(y, g=g, type=type, part=part):
            before = g.slice(part, y, "0", str(step), "t")
            here = g.slice(part, y, "0", "0", "t + 1")
            value = g.node(part, f"add({here}, {before})")
            return g.node(type, f"assign({y}, {here}, {value})")

        y = g.loop("t", f"{size[2]} - 1", type, "in0", trip)
        low = f"{symbols}\n".replace("[0, inf)", "[2, inf)")
        text = g.text(f"in0: {type}", [f"write in0 = {y}", "return"], low if symbols else "")
        for backend in BACKENDS:
            for threads in (1, 2):
                assert np.array_equal(run(text, [x], backend, threads)[0], expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_iterations_that_are_worth_threads_stay_apart(backend):
    """A sequential loop in time around a parallel loop: each step sees all results of the previous one."""
    n, trips = 240, 3
    for (size,), symbols in both_sizes([n]):
        g = Graph()
        type = f"f64[{size},{size}]"

        def step(a, g=g, size=size, type=type):
            def row(a):
                def point(a):
                    value = g.scalar("add", g.element(a, "i", "j"), g.element("in1", "j", "i"))
                    return g.store(type, a, value, "i", "j")

                return g.loop("j", size, type, a, point)

            return g.loop("i", size, type, a, row)

        a = g.loop("t", str(trips), type, "in0", step)
        text = g.text(f"in0: {type}, in1: {type}", [f"write in0 = {a}", "return"], symbols)
        a, b = numbers(n, n), numbers(n, n) + 1
        expected = a.copy()
        for _ in range(trips):
            expected = expected + b.T
        assert np.array_equal(run(text, [a, b], backend)[0], expected)


ENDLESS = """graph f(in0: f64[4]) {
  %0: f64[4] = copy(in0)
  %1: f64[4] = while carry (%2: f64[4] = %0) {
    %3: f64[1] = slice(%2, starts=[0], steps=[1])
    %4: f64[] = reshape(%3)
    %5: f64[] = const 1.0
    %6: bool[] = greater(%5, %4)
    test %6
  } do {
    %7: f64[1] = slice(%2, starts=[1], steps=[1])
    %8: f64[1] = sqrt(%7)
    %9: f64[4] = assign(%2, %7, %8)
    next %9
  }
  return %1
}
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_endless_loop_hears_an_interrupt(backend):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            _core.compile_text(ENDLESS, [np.full(4, 0.5)], options={}, backend=backend)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scalar_function_has_the_bits_of_the_vector_routine(backend):
    n = 37
    g = Graph()
    y = g.loop(
        "i",
        str(n),
        f"f64[{n}]",
        "in1",
        lambda y: g.store(f"f64[{n}]", y, g.scalar("sin", g.element("in0", "i")), "i"),
    )
    text = g.text(f"in0: f64[{n}], in1: f64[{n}]", [f"write in1 = {y}", "return"])
    x = numbers(n) * 100
    (whole,), _ = _core.compile_text(
        f"graph f(in0: f64[{n}]) {{\n%0: f64[{n}] = sin(in0)\nreturn %0\n}}\n",
        [x],
        options={},
        backend=backend,
    )
    assert np.array_equal(run(text, [x, np.zeros(n)], backend)[1], whole)
