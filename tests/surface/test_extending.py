"""Tests graph passes by name, passes of the user, and the search for the part of the compiler that changes a result."""

import contextlib
import gc
import re
import sys
import warnings

import numpy as np
import programs
import pytest
from conftest import ROOT
from test_robustness import run, script

import cinductor
import cinductor.testing
from cinductor import _core
from cinductor.diagnosis import bisecting
from cinductor.extensions.passes import check
from cinductor.graphs import Graph

X = np.arange(12.0).reshape(3, 4)
SKIPPABLE = [row.name for row in cinductor.list_passes() if not row.is_needed]


def plain(x):
    return (np.sqrt(x) + 1) * 2, (x - x.mean(axis=0)).sum(axis=1)


def messages(fn, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fn(*args)
    return result, [str(w.message) for w in caught]


def same(got, want):
    cinductor.testing.assert_same(got, want)


# --- by name --------------------------------------------------------------------------------------


def test_passes_are_listed_and_left_out():
    assert [row.name for row in cinductor.list_passes()][:3] == ["decompose", "wrap", "fold"]
    f = cinductor.compile(plain, options={"skip_passes": ", ".join(SKIPPABLE)})
    same(f(X), plain(X))
    program = f.specializations[0].program
    with pytest.raises(ValueError, match="there is no text of level 'cse'"):
        program.text("cse")
    assert cinductor.compile(plain)(X) and program.text("wrap")
    for name in ("wrap", "nothing"):
        with pytest.raises(ValueError, match=f"option 'skip_passes' is '{name}'"):
            cinductor.compile(plain, options={"skip_passes": name})


def test_the_core_itself_refuses_names():
    text = "graph f(in0: f64[4]) {\n  return in0\n}\n"
    for name, why in (("wrap", "cannot be left out"), ("reduce", "cannot be left out"), ("nothing", "there is no pass 'nothing'")):
        with pytest.raises(ValueError, match=why):
            _core.compile_text(text, [np.ones(4)], options={"skip_passes": name})


def test_dumps_before_and_after(capfd):
    def f(x):
        return x * 1 + (x + x) * (x + x)

    cinductor.compile(f, options={"dump": "before_cse, cse"})(X)
    err = capfd.readouterr().err
    assert re.findall(r"^--- (.*)$", err, re.MULTILINE) == ["before_cse", "cse"]
    before, behind = err.split("--- cse")
    assert before.count("= add(in0, in0)") == 2 and behind.count("= add(in0, in0)") == 1


def columns(x):
    for i in range(1, len(x)):
        x[i] = np.minimum(np.maximum(x[i - 1], x[i]), 3.5)
    return x, -x.T, np.cumsum(x, axis=1), (x.T + x[:3, :3].sum()).any(axis=0)


@pytest.mark.parametrize("device, backend", [("cpu", "c"), ("cpu", "interp"), ("cuda", "interp")])
@pytest.mark.parametrize("level, dumped, needed", [("loops", "order_axes", "drop_empty"), ("procs", "vector", "reduce")])
def test_passes_of_lower_levels_are_observed_and_left_out(level, dumped, needed, device, backend, capfd):
    rows, seen = cinductor.list_passes(level), []
    names, optional = [row.name for row in rows], [row.name for row in rows if not row.is_needed]
    others = [row.name for other in {"graph", "loops", "procs"} - {level} for row in cinductor.list_passes(other)]
    assert not set(names) & set(others) and needed in names
    settings = {"device": device, "backend": backend}

    def compiled(**options):
        return cinductor.compile(columns, options={"offload": "always", "verify": True, **options}, **settings)

    with cinductor.observe_passes(seen.append, level):
        same(compiled(dump=f"before_{dumped}, {dumped}")(X.copy()), columns(X.copy()))
    assert re.findall(r"^--- (.*)$", capfd.readouterr().err, re.MULTILINE) == [f"before_{dumped}", dumped]
    order = [event.name for event in seen]
    assert order == sorted(order, key=names.index) and {event.level for event in seen} == {level}
    assert any(event.has_changed for event in seen)
    assert all(re.search(rf"^{level} ", event.after, re.MULTILINE) for event in seen)
    same(compiled(skip_passes=",".join(optional))(X.copy()), columns(X.copy()))
    with pytest.raises(ValueError, match=f"option 'skip_passes' is '{needed}'"):
        compiled(skip_passes=needed)


def test_observers_see_each_pass_once():
    seen = []

    def f(x):
        return x * 3 + (x - 2) * (x - 2)

    with cinductor.observe_passes(seen.append):
        cinductor.compile(f)(X)
    assert [event.name for event in seen] == [row.name for row in cinductor.list_passes()]
    (cse,) = [event for event in seen if event.name == "cse"]
    assert cse.has_changed and cse.before.count("subtract") == 2 and cse.after.count("subtract") == 1
    assert all(event.seconds >= 0 for event in seen)
    cinductor.compile(lambda x: x * 5)(X)
    assert len(seen) == len(cinductor.list_passes())  # the observer is gone


def test_an_observer_that_raises_hears_no_more():
    def broken(event):
        raise KeyError(event.name)

    with cinductor.observe_passes(broken):
        result, texts = messages(cinductor.compile(lambda x: x * 7 - 1), X)
    same(result, X * 7 - 1)
    assert len(texts) == 1 and "an observer of passes is left out" in texts[0]


@pytest.mark.parametrize("name", ["automata.majority", "graphs.floyd_by_elements"])
def test_each_pass_is_checked(name):
    """Values that are never written do not count as differences. Covers loops, symbols and checks."""
    fn, make, sizes, _ = programs.load()[name]
    args = make(sizes[0], np.random.default_rng(0))
    options = {"check_passes": True}
    f = cinductor.compile(fn, options=options, dynamic=True)
    _, texts = messages(f, *(args if isinstance(args, tuple) else (args,)))
    assert not texts


def test_the_check_finds_the_pass():
    def wrong(graph):
        for node in graph.nodes:
            if node.op == "sqrt":
                node.op = "square"

    with cinductor.register_pass("wrong", wrong):
        result, texts = messages(cinductor.compile(plain, options={"check_passes": True}), X)
    same(result, plain(X))
    assert len(texts) == 1 and "the pass 'wrong' changes what the graph gives: value 0: 10 of 12" in texts[0]


def test_the_check_leaves_arguments_alone():
    def f(x, y):
        x[1:] += y[::-2]
        return x.sum()

    x, y = np.ones(4), np.arange(6.0)
    assert cinductor.compile(f, options={"check_passes": True})(x, y) == 4 + 5 + 3 + 1
    same(x, np.array([1.0, 6.0, 4.0, 2.0]))
    program = cinductor.compile(f)
    program(x, y)
    check(program.specializations[0].program, (x, y), {})


# --- graphs as objects ----------------------------------------------------------------------------


def texts_of_golden_files():
    """Graphs of golden files: regions, library calls with keys, symbols, writes."""
    for path in sorted((ROOT / "tests" / "golden").rglob("*.ci")):
        for section in path.read_text().split("\n--- expected ")[1:]:
            name, _, text = section.partition("\n")
            if name == "graph":
                yield text


def test_graphs_are_read_and_written_as_they_are():
    texts = list(texts_of_golden_files())
    for what in ("while carry", "} else {", "key \"", "write in0", "scatter(", "define("):
        assert any(what in text for text in texts), what
    for text in texts:
        got = [line.strip() for line in Graph(text).text().splitlines()]
        assert got == [line.strip() for line in text.splitlines()]


def test_a_graph_is_walked_and_changed():
    text = """graph f(in0: f64[s0,4]) {
  %0: f64[] = const 2.0
  %1: f64[s0,4] = multiply(in0, %0)  @net.py:7
  %2: f64[s0] = sum(%1, axes=[1])  @net.py:8
  return %2, %1
}
"""
    graph = Graph(text)
    two, product, total = graph.nodes
    assert product.args == (graph.inputs[0], two) and product.users == [total] and product.place == "net.py:7"
    assert product.sizes == ["s0", 4] and total.attributes == {"axes": "[1]"} and total.dtype == "f64"
    one = graph.constant(1.0, "f64", before=product)
    added = graph.add("add", product, one, before=total)
    assert added.sizes == ["s0", 4] and added.place == "net.py:8"
    graph.replace(product, added)
    assert added.args == (product, one) and total.args == (added,) and product.users == [added]
    assert graph.body.results == [total, added]
    with pytest.raises(ValueError, match="is used"):
        graph.erase(product)
    assert "  %4: f64[s0,4] = add(%1, %3)  @net.py:8\n" in graph.text()


# --- passes of the user -----------------------------------------------------------------------------


def squares(graph):
    """Replaces x * x by a square."""
    for node in graph.nodes:
        if node.op == "multiply" and node.args[0] is node.args[1]:
            node.op = "square"
            graph.set_args(node, node.args[0])


def test_a_pass_of_ones_own():
    def f(x):
        return x * x + 1

    with cinductor.register_pass("squares", squares, version="1") as row:
        compiled = cinductor.compile(f)
        same(compiled(X), X * X + 1)
        program = compiled.specializations[0].program
        assert "square(in0)" in program.text("squares") and "square" not in program.text("simplify")
        assert [p.name for p in cinductor.list_passes() if p.is_added] == ["squares"]
        without = cinductor.compile(f, options={"skip_passes": "squares"})
        without(X)
        assert "square" not in without.specializations[0].program.text("dce")
        assert repr(row) == "<pass 'squares', version 1>"
    compiled(X)  # removing the pass drops the programs compiled with it
    assert "square" not in compiled.specializations[0].program.text("dce")


def test_what_is_found_again_was_made_by_the_same_passes():
    """The cache key contains the name and the version of each pass, or the hash of its code."""

    def f(x):
        return x * x + 2

    seen = []
    with cinductor.observe_passes(lambda event: seen.append(event.name)):
        kept = []
        for version in ("1", "1", "2"):
            with cinductor.register_pass("squares", squares, version=version):
                kept.append(cinductor.compile(f))
                kept[-1](X)
                kept.append(kept[-1].specializations[0].program)
        assert seen.count("squares") == 2
    one, other = (registered_version(lambda g, n=n: None) for n in (1, 2))
    assert one != other


def registered_version(fn):
    with cinductor.register_pass("versioned", fn) as row:
        return row.version


def test_passes_run_after_what_they_name():
    order = []
    with cinductor.register_pass("a", lambda graph: order.append("a"), after="dce", version="1") as a:
        with cinductor.register_pass("b", lambda graph: order.append("b"), after="a", version="1"):
            cinductor.compile(lambda x: x - 11)(X)
            with pytest.raises(ValueError, match="'b' runs after 'a'"):
                a.remove()
    assert order == ["a", "b"]


def broken_type(graph):
    graph.nodes[-1].dtype = "i32"


def broken_results(graph):
    graph.body.results.append(graph.body.results[0])


def broken_text(graph):
    graph.nodes[-1].op = "no such thing"


def broken_python(graph):
    raise TypeError("100 %s of it")


BREAKS = {
    broken_type: "is f64[3,4], not what is declared",
    broken_results: "it has 2 results instead of 1",
    broken_text: "expected",
    broken_python: "raised TypeError: 100 %s of it",
    lambda graph: 3: "returns a Graph or None, not int",
}


@pytest.mark.parametrize("fn", BREAKS, ids=lambda fn: fn.__name__)
def test_a_pass_that_breaks_the_graph(fn):
    """One clear error with a remedy; NumPy runs the call, and nothing is left."""
    with cinductor.register_pass("bad", fn, version="1"):
        f = cinductor.compile(lambda x: x * 13 + 1)
        result, texts = messages(f, X)
        same(result, X * 13 + 1)
        assert len(texts) == 1 and "the pass 'bad'" in texts[0] and "skip_passes" in texts[0], texts
        if fn is not broken_text:
            assert BREAKS[fn] in texts[0]
        assert messages(f, X)[1] == []
        fine = cinductor.compile(lambda x: x * 13 + 1, options={"skip_passes": "bad"})
        assert messages(fine, X)[1] == [] and fine.specializations


def test_a_pass_that_fails_after_python():
    """Effects that have happened stay. The rest is compiled without the pass, with one warning."""
    lines = []

    def f(x):
        lines.append(1)
        y = x * 17 + lines[-1]
        lines.append(2)
        return y * y

    with cinductor.register_pass("bad", broken_python, version="1"):
        result, texts = messages(cinductor.compile(f), X)
    same(result, (X * 17 + 1) ** 2)
    assert lines == [1, 2] and len(texts) == 1 and "the pass 'bad' raised" in texts[0]


def test_an_interrupt_in_a_pass_is_an_interrupt():
    def stop(graph):
        raise KeyboardInterrupt

    with cinductor.register_pass("interrupts", stop, version="1"), pytest.raises(KeyboardInterrupt):
        cinductor.compile(lambda x: x * 19)(X)


def test_nothing_leaks():
    def f(x):
        return x * x

    def once():
        with cinductor.register_pass("bad", broken_python, version="1"):
            messages(cinductor.compile(f), X)
        with cinductor.register_pass("squares", squares, version="1"):
            cinductor.compile(f)(X)

    once()
    gc.collect()
    before = sys.getrefcount(squares), sys.getrefcount(broken_python), len(gc.get_objects())
    for _ in range(5):
        once()
    gc.collect()
    assert (sys.getrefcount(squares), sys.getrefcount(broken_python)) == before[:2]
    assert len(gc.get_objects()) - before[2] < 200


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match="register_pass: fn is 3"):
        cinductor.register_pass("three", 3)
    with pytest.raises(ValueError, match="'a b' is no name"):
        cinductor.register_pass("a b", squares)
    with pytest.raises(ValueError, match="something called 'cse' already"):
        cinductor.register_pass("cse", squares)
    with pytest.raises(ValueError, match="after is 'decompose'; allowed: 'wrap'"):
        cinductor.register_pass("early", squares, after="decompose")
    with pytest.raises(ValueError, match="give version="):
        cinductor.register_pass("builtin", print)
    assert not [p for p in cinductor.list_passes() if p.is_added]


# --- backends -------------------------------------------------------------------------------------


def by_numpy(graph):
    """Runs the few operations of the tests below by NumPy; results are Fortran-ordered where they have axes."""

    def run(*inputs):
        values = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            if node.op == "const":
                values[node] = np.float64(node.attributes["value"])
            elif node.op == "assign":  # of an array, the part that is written (here all of it), the value
                values[node] = values[node.args[2]]
            else:
                values[node] = getattr(np, node.op)(*(values[arg] for arg in node.args))
        for written, value in graph.writes.items():
            values[written][...] = values[value]
        return [np.asfortranarray(values[node]) for node in graph.body.results]

    return run


def doubled(x, y):
    x *= 2
    return np.sqrt(x) + y, x + 1


def broken_in_two(x, y):
    first = np.sqrt(x)
    str(first)
    return first * y, y


@pytest.mark.parametrize("backend", [by_numpy, Graph.compile], ids=["numpy", "core"])
@pytest.mark.parametrize("fn", [doubled, broken_in_two])
def test_a_backend_of_the_user_runs_the_graphs(fn, backend):
    """Results, writes, layouts and recompiles are as without it; each graph is passed to it once."""
    graphs = []

    def made(graph):
        graphs.append(graph)
        return backend(graph)

    counts = []
    with cinductor.register_backend("mine", made):
        assert cinductor.list_backends()["mine"] is None
        compiled = cinductor.compile(fn, backend="mine")
        for x, y in [(X, X), (X + 1, X), (X[:2], X[:2]), (np.asfortranarray(X), X), (X, X[0])]:
            for _ in range(2):
                here, there = [x.copy("K"), y.copy("K")], [x.copy("K"), y.copy("K")]
                cinductor.testing.assert_array(here[0], there[0], 0, "x")
                for a, b in zip(compiled(*here), fn(*there), strict=True):
                    cinductor.testing.assert_array(a, b, 0, fn.__name__)
                cinductor.testing.assert_array(here[0], there[0], 0, "x")
            counts.append(len(graphs))
        assert compiled.stats()["eager"] == (0 if fn is doubled else 6)  # NumPy runs later calls of a kind with little work and a break
    assert counts[0] == counts[1] == (1 if fn is doubled else 2) and counts[-1] > counts[1]
    with pytest.raises(ValueError, match="backend of device 'cpu' is 'mine'"):
        cinductor.compile(fn, backend="mine")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (lambda graph: 3, "TypeError: it returned 3"),
        (lambda graph: 1 // 0, "ZeroDivisionError"),
        (lambda graph: lambda x: 1 // 0, "ZeroDivisionError"),
        (lambda graph: lambda x: [], "ValueError: 0 results; the graph has 1"),
        (lambda graph: lambda x: [x[0]], r"result 0 is float64 of shape \(4,\); the graph has float64 of shape \(3, 4\)"),
        (lambda graph: lambda x: [x.astype("f")], r"result 0 is float32 of shape \(3, 4\); the graph has float64"),
    ],
)
def test_a_backend_that_fails_costs_a_warning_or_raises(backend, message):
    with cinductor.register_backend("bad", backend):
        compiled = cinductor.compile(fn=lambda x: np.sqrt(x) + 1, backend="bad", fullgraph=True)
        with pytest.raises(cinductor.BackendCompilerFailed, match=message):
            compiled(X)
        with pytest.warns(cinductor.CinductorWarning, match=message):
            compiled = cinductor.compile(lambda x: np.sqrt(x) + 2, backend="bad")
            assert (compiled(X) == np.sqrt(X) + 2).all()
        assert (compiled(X) == np.sqrt(X) + 2).all()


def test_a_backend_that_fails_after_an_effect_is_replaced():
    """Python cannot run the call again, so the interpreter runs the graph."""
    seen = []

    def f(x):
        first = np.sqrt(x)
        seen.append(str(first[0, 0]))
        print(end="", flush=True)
        return first * 2

    with cinductor.register_backend("bad", lambda graph: 1 // 0):
        compiled = cinductor.compile(f, backend="bad")
        for calls in (1, 2):
            assert (compiled(X) == np.sqrt(X) * 2).all() and len(seen) == calls


def test_a_backend_gets_no_graph_that_checks_data():
    with cinductor.register_backend("mine", Graph.compile), pytest.raises(cinductor.Unsupported, match="checks data"):
        cinductor.compile(lambda x, i: x[i] + 1, backend="mine", fullgraph=True)(X, np.array([0, 2]))
    with pytest.raises(TypeError, match="register_backend: fn is 3"):
        cinductor.register_backend("three", 3)
    with pytest.raises(ValueError, match="there is a backend 'interp' already"):
        cinductor.register_backend("interp", Graph.compile)


# --- patterns and lowerings -----------------------------------------------------------------------


OPS = {row[0]: row for row in _core.ops()}
NUMERICS = ("exact", "numpy", "close", "fast")
UFUNCS = sorted(
    {u for u in vars(np).values() if isinstance(u, np.ufunc) and OPS.get(u.__name__, [""])[-1] is None},
    key=lambda u: u.__name__,
)


@pytest.mark.parametrize("numerics", NUMERICS)
def test_an_operation_has_one_name_whatever_computes_it(numerics):
    """Of every ufunc whose name is accepted a template is asked, under all numerics and on any CPU."""
    asked = set()

    def everything(x, n):
        found = []
        for u in UFUNCS:
            has_floats = any(t.startswith("d" * u.nin + "->") for t in u.types)
            found.append(u(*((x if has_floats else n) for _ in range(u.nin))))
        return found

    def ask(node):
        asked.add(node.op)

    with contextlib.ExitStack() as registered:
        for u in UFUNCS:
            registered.enter_context(cinductor.register_template(f"t_{u.__name__}", u.__name__, ask, after="wrap", version="1"))
        compiled = cinductor.compile(everything, options={"numerics": numerics}, backend="interp")
        compiled(np.full(4, 0.5), np.full(4, 3))
    assert {u.__name__ for u in UFUNCS} - asked == set()


@pytest.mark.parametrize("name", sorted(name for name, row in OPS.items() if row[-1] is not None))
def test_names_that_no_graph_has_are_refused(name):
    with pytest.raises(ValueError, match=name):
        cinductor.register_template("never", name, lambda node: None)
    with pytest.raises(ValueError, match=f"{name} is in no pattern"):
        cinductor.register_pattern("never", f"({name} x)", "x")


@pytest.mark.parametrize("numerics", NUMERICS)
def test_a_pattern(numerics):
    """A pattern matches functions of cinductor and of NumPy, and its own functions are computed as those were."""

    def f(x):
        return np.exp(np.log(x)) + 1

    with cinductor.register_pattern("undone", "(exp (log x))", "(expm1 x)"):
        report = cinductor.explain(cinductor.compile(f, options={"numerics": numerics}), X + 1)
    np.testing.assert_allclose(report.result, np.expm1(X + 1) + 1, rtol=1e-14)
    assert "exp(" in report.graph and "expm1(" in report.optimized and "log(" not in report.optimized
    if numerics == "exact":
        same(report.result, np.expm1(X + 1) + 1)


def test_an_exact_program_has_no_function_of_a_pass_with_other_bits():
    def add_sine(graph, **attributes):
        for node in graph.nodes:
            if node.op == "negative":
                graph.replace(node, graph.add("sinh", node.args[0], before=node, attributes=attributes))

    compiled = cinductor.compile(np.negative, options={"numerics": "exact"}, fullgraph=True)
    with cinductor.register_pass("sine", add_sine), pytest.raises(_core.PassFailed, match="adds sinh, but numerics is 'exact'"):
        compiled(X)
    with cinductor.register_pass("sine", lambda graph: add_sine(graph, by="numpy"), version="2"):
        same(compiled(X), np.sinh(X))


@pytest.mark.parametrize(
    ("pattern", "replacement", "why"),
    [
        ("(add x", "x", "undone"),
        ("(nothing x)", "x", "no operation is called nothing"),
        ("(add x)", "x", "add takes 2 operands, not 1"),
        ("(add x y)", "z", "z stands for nothing"),
        ("x", "x", "a pattern is an operation"),
        ("(add x y) 3", "x", "unexpected text after it"),
        ("(add x:float63 y)", "x", "there is no type float63"),
        ("(matmul a (matmul b c))", "(matmul (matmul a b) c)", "matmul is no element-wise operation"),
        ("(add x y)", "(sum x)", "sum is no element-wise operation"),
        ("(add x y)", "(cast x)", "cast needs a dtype"),
        ("(add x y)", "(cast:float x)", "cast needs a dtype"),
        ("(divide x c)", "(multiply x (inverse c))", "no operation is called inverse"),
    ],
)
def test_patterns_that_cannot_be_read(pattern, replacement, why):
    with pytest.raises(ValueError, match=why):
        cinductor.register_pattern("undone", pattern, replacement)


def test_a_pattern_without_an_end_is_found():
    with cinductor.register_pattern("endless", "(add x y)", "(add y x)"):
        result, texts = messages(cinductor.compile(lambda x: x[1:] + x[:-1] * 2), X)
    same(result, X[1:] + X[:-1] * 2)
    assert len(texts) == 1 and "the pass 'endless'" in texts[0]


def halved_square(x):
    return np.square(x) * 0.5  # the lowering is wrong on purpose; recursive use is left to NumPy


def test_a_lowering():
    def f(x):
        return np.square(x) + np.square(x + 1)

    with cinductor.register_lowering(np.square, halved_square):
        compiled = cinductor.compile(f, fullgraph=True)
        same(compiled(X), f(X) * 0.5)
        with pytest.raises(ValueError, match="has a lowering already: 'lowering.square'"):
            cinductor.register_lowering(np.square, halved_square)
    same(compiled(X), f(X))


def opaque(x):
    return x.tolist()


def test_a_lowering_of_what_is_not_captured():
    def f(x):
        return opaque(x) + 1

    with cinductor.register_lowering(opaque, lambda x: x * 2, version="1"):
        same(cinductor.compile(f, fullgraph=True)(X), X * 2 + 1)


def test_a_backend_that_reshapes_an_input():
    """The sizes of a call are those before the backend's function, which may free NumPy's memory for them."""
    kept = []

    def backend(graph):
        program = graph.compile()

        def run(x):
            out = program(x)
            x.shape = (x.size, 1)
            kept.extend(np.empty((3, 2)) for _ in range(50))
            return out

        return run

    with cinductor.register_backend("reshaping", backend):
        f = cinductor.compile(lambda x: x * 2 + 1, backend="reshaping", dynamic=True)
        for n in (4, 5, 7):
            x = np.arange(float(n * n)).reshape(n, n)
            expected = x * 2 + 1
            np.testing.assert_array_equal(f(x), expected)


# --- bisect ---------------------------------------------------------------------------------------


def test_bisect_finds_nothing():
    found = cinductor.bisect(plain, X)
    assert found.kind == "none" and "nothing differs" in str(found)


def wrong_pass(graph):
    for node in graph.nodes:
        if node.op == "sqrt":
            node.op = "square"


def test_bisect_finds_a_pass():
    with cinductor.register_pattern("fine", "(square x)", "(multiply x x)"):
        with cinductor.register_pass("wrong", wrong_pass, after="cse"):
            found = cinductor.bisect(plain, X)
    assert (found.kind, found.name) == ("pass", "wrong") and "10 of 12 values differ" in str(found)


def test_bisect_finds_a_lowering():
    def fine(x):
        return x * x

    def f(x):
        return np.sqrt(np.square(x))

    with cinductor.register_lowering(np.square, fine), cinductor.register_lowering(np.sqrt, lambda x: x + 1):
        found = cinductor.bisect(f, X)
    assert (found.kind, found.name) == ("lowering", "lowering.sqrt")


def test_bisect_finds_a_fusion_and_a_kernel(monkeypatch):
    """The fault is planted where options are read, because no fusion or kernel is known to be wrong."""
    real = bisecting.Trials.difference
    wrong = {"fusion_limit": 2}
    line = plain.__code__.co_firstlineno + 1

    def planted(self, backend=None, **options):
        if not self.texts:  # the other trials differ only in the planted fault
            real(self, backend, **options)
        ((name, number),) = wrong.items()
        given = options.get(name, bisecting.MOST if name == "fusion_limit" else 0)
        bad = given >= number if name == "fusion_limit" else given < number
        return "planted" if bad else None

    monkeypatch.setattr(bisecting.Trials, "difference", planted)
    found = cinductor.bisect(plain, X)
    assert (found.kind, found.name) == ("fusion", "buf1 and buf2") and found.place.endswith(f".py:{line}")
    wrong = {"interpreted_kernels": 1}
    found = cinductor.bisect(plain, X)
    assert (found.kind, found.name) == ("kernel", "k0") and found.place.endswith(f".py:{line}")
    wrong = {"none": 1}
    assert cinductor.bisect(plain, X).kind == "rest"


COMPILED_WRONGLY = """
import numpy as np
import cinductor

def f(x):
    y = np.sort(x * 2)
    return y * 3.25 + 1

found = cinductor.bisect(f, np.arange(5.0))
print(found.kind, found.name, found.place.rpartition("/")[2])
"""


def test_bisect_finds_a_kernel_that_a_compiler_makes_wrong(tmp_path):
    plant = 'for a in "$@"; do case "$a" in *.c) sed -i s/0x1.ap+1/0x1.bp+1/ "$a";; esac; done\n'
    compiler = script(tmp_path / "cc", plant + 'exec gcc "$@"\n')
    assert run(tmp_path / "cache", program=COMPILED_WRONGLY, CC=compiler) == ["kernel k2 program.py:7"]


def test_bisect_of_what_numpy_answers():
    with pytest.raises(cinductor.Unsupported, match="bisect: NumPy runs this call"):
        cinductor.bisect(lambda x: (i for i in x), X)


def test_kernels_run_by_the_interpreter_and_fusions_are_counted():
    fast = cinductor.compile(plain)
    fast(X)
    joins = fast.specializations[0].program.text("joins").splitlines()
    assert len(joins) == 2
    for options in ({"fusion_limit": 0}, {"fusion_limit": 1}, {"interpreted_kernels": 1}):
        compiled = cinductor.compile(plain, options=options)
        same(compiled(X), plain(X))
        text = compiled.specializations[0].program.text("joins")
        said = joins[: options.get("fusion_limit", 2)] or ["# nothing is put together"]
        assert text.splitlines() == said
