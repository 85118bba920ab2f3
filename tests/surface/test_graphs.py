"""Graphs as objects of the user: captured without a call, changed, printed, parsed, compared and compiled."""

import re

import numpy as np
import pytest

import cinductor
from cinductor import Graph, ShapeDtype, graph

X, W = np.linspace(0.1, 1, 16).reshape(4, 4), np.linspace(1, 2, 16).reshape(4, 4)
SPEC = ShapeDtype((4, 4))


def layer(x, w):
    y = np.sort(np.exp(x) @ w, axis=0)
    return y, y.sum()


def stores(x, w):
    x[0] = w[0] * 2
    return x + w


def loop(x, w):
    total = np.zeros(4)
    for i in range(4):
        total += x[i] * w[i]
    return total


@pytest.mark.parametrize("fn", [layer, stores, loop])
@pytest.mark.parametrize("backend", ["c", "interp"])
def test_a_graph_runs_and_is_read_again(fn, backend):
    g = graph(cinductor.compile(fn, options={"numerics": "exact"}), SPEC, SPEC)
    again = Graph(g.text())
    assert again.text() == g.text() == str(g) and g.diff(again) == ""
    x, y = X.copy(), X.copy()
    given = {"x": x, "w": W}
    got, want = again.compile(backend=backend)(*(given[name] for name in g.parameters)), fn(y, W)
    for a, b in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(x, y)


def test_inputs_have_the_names_of_the_function():
    """In the order in which they are read."""
    g = graph(lambda x, w: (w["b"][0] * 2 + x[1], x[0]), [SPEC, SPEC], {"b": ShapeDtype((1, 4))})
    assert sorted(g.parameters) == ["w['b']", "x[1]"] and len(g.inputs) == 2


def test_a_graph_is_changed():
    g = graph(lambda x: np.negative(x) * 2.0 + 0.0 * x, SPEC)
    before = Graph(g.text())
    (node,) = [node for node in g.nodes if node.op == "negative"]
    g.replace(node, g.add("absolute", node.args[0], before=node))
    g.erase(node)
    assert "-  %0: f64[4,4] = negative(in0)" in before.diff(g) and "absolute" in before.diff(g)
    np.testing.assert_array_equal(g.compile()(X)[0], X * 2)
    np.testing.assert_array_equal(before.compile()(X)[0], -X * 2)


def test_passes_run_over_it():
    g = graph(lambda x: (x + 1) * (x + 1), SPEC)
    assert g.text().count("= add") == 2 and g.optimized().text().count("= add") == 1
    assert g.optimized(skip="cse").text().count("= add") == 2
    with pytest.raises(ValueError, match="skip_passes"):
        g.optimized(skip="nothing")
    with cinductor.register_pattern("twice", "(multiply a a)", "(square a)", after="cse"):
        assert "square" in g.optimized().text()


def test_any_sizes():
    run = graph(cinductor.compile(lambda x: (x * 2).sum(axis=0), dynamic=True), ShapeDtype((4, 5))).compile()
    for shape in ((4, 4), (7, 2), (1, 5)):
        np.testing.assert_array_equal(run(np.ones(shape))[0], np.full(shape[1], 2.0 * shape[0]))


@pytest.mark.parametrize(
    "inputs",
    [(X[:3], W), (X.astype("f4"), W), (X.T, W), (X,), (X, W, W), (X, 3)],
    ids=["sizes", "dtype", "strides", "fewer", "more", "number"],
)
def test_other_inputs_are_refused(inputs):
    run = graph(layer, SPEC, SPEC).compile()
    with pytest.raises((ValueError, TypeError)):
        run(*inputs)


@pytest.mark.parametrize("kind", ["scalar f64[]", "python f64[]", "f64[]"])
def test_an_input_may_be_a_number(kind):
    program = cinductor.Graph(f"graph f(in0: f64[3], in1: {kind}) {{\n  %0: f64[3] = add(in0, in1)\n  return %0\n}}\n").compile()
    for number in (3.0, np.float64(3.0)):
        np.testing.assert_array_equal(program(np.ones(3), number)[0], np.full(3, 4.0))


def test_what_is_no_graph():
    with pytest.raises(cinductor.Unsupported, match="nothing is computed"):
        graph(lambda x: x.T, SPEC)
    with pytest.raises(cinductor.Unsupported, match="a graph has no Python"):
        graph(lambda x: np.roots(x[0]), SPEC)
    g = graph(layer, SPEC, SPEC)
    g.nodes[0].op = "nothing"
    with pytest.raises(SyntaxError, match="no operation is called 'nothing'"):
        g.compile()
    with pytest.raises(ValueError, match="there is no option 'threds'"):
        graph(layer, SPEC, SPEC).compile(options={"threds": 1})


def test_texts_that_are_no_graphs_are_refused():
    """A text with lines left out is read as another graph, or a ValueError names the line."""
    lines = graph(loop, SPEC, SPEC).text().splitlines()
    for begin in range(len(lines)):
        for end in range(begin + 1, len(lines) + 1):
            try:
                Graph("\n".join(lines[:begin] + lines[end:]))
            except ValueError as error:
                assert re.match(r"line \d+ of this text is no line of a graph", str(error))
    with pytest.raises(ValueError, match="line 1 of this text is no line of a graph: 'nonsense'"):
        Graph("nonsense")
