"""Tests the graph Builder: the graphs it makes print, compile and are refused like those read from text."""

import numpy as np
import pytest

from cinductor import _core


def loop_graph():
    """s = (in0 + in1).sum(1), doubled three times."""
    b = _core.Builder("f")
    b.symbol("s0 in [2, inf) from in0.sizes 0 hint 5")
    x, y = b.input("f32[s0,4]"), b.input("f32[4]")
    total = b.node("sum", [b.node("add", (x, y))], axes=[1])
    block = b.block()
    b.param("python i64[]")
    v = b.param("f32[s0]")
    b.results([b.node("add", (v, v))])
    b.enter(-1)
    b.results([b.region("for", [total], [block], 3, "t0")])
    return b


def test_a_built_graph_runs_for_any_size():
    program = _core.compile_graph(loop_graph(), options={})
    for n in (2, 3, 7):
        x, y = np.ones((n, 4), "f4"), np.arange(4, dtype="f4")
        (made,) = _core.run_program(program, [x, y])
        assert np.array_equal(made, (x + y).sum(1) * 8)


def test_its_text_is_a_graph():
    b = loop_graph()
    text = b.text()
    (made,) = _core.run_program(_core.compile_graph(text), [np.ones((3, 4), "f4"), np.zeros(4, "f4")])
    assert made.tolist() == [32.0, 32.0, 32.0]
    assert _core.compile_graph(b).text("graph") == text


def test_rewind_drops_nodes():
    b = _core.Builder("f")
    x = b.input("f64[3]")
    before, text = b.position(), b.text()
    b.check(b.node("all", [b.node("greater", (x, b.const("f64[]", 0.5)))], axes=[0]), "why")
    b.rewind(before)
    assert b.text() == text


def test_each_value_of_a_dtype_is_a_constant():
    b = _core.Builder("f")
    values = {"bool[]": True, "i8[]": -3, "u64[]": 2**64 - 1, "f16[]": 0.1, "f64[]": -0.0, "c64[]": 1 + 2j}
    b.results([b.const(dtype, value) for dtype, value in values.items()])
    made = _core.run_program(_core.compile_graph(b), [])
    assert made == [True, -3, 2**64 - 1, np.float16(0.1), 0.0, np.complex64(1 + 2j)]
    assert np.signbit(made[4])


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda b, x: b.node("add", (x, 9)), "no value 9"),
        (lambda b, x: b.node("adds", (x,)), "no operation is called 'adds'"),
        (lambda b, x: b.node("add", (x,)), "takes 2 operands, not 1"),
        (lambda b, x: b.node("reshape", (x,), "f64[4]"), "reshape"),
        (lambda b, x: b.node("sum", [x], axes=["0"]), "integer"),
        (lambda b, x: b.input("f63[3]"), "f63"),
        (lambda b, x: b.input("f64[s0]"), "s0"),
        (lambda b, x: b.const("f64[3]", 1.0), "rank 0"),
        (lambda b, x: b.enter(4), "no block 4"),
        (lambda b, x: b.write(b.node("negative", (x,)), x), "only an input"),
    ],
)
def test_a_wrong_call_raises_and_changes_nothing(wrong, words):
    b = _core.Builder("f")
    x = b.input("f64[3]")
    before = b.position()
    with pytest.raises((ValueError, TypeError, SyntaxError), match=words):
        wrong(b, x)
    b.rewind(before)
    b.results([x])
    assert "return in0" in b.text()


def test_a_builder_is_spent_by_its_compile():
    b = loop_graph()
    _core.compile_graph(b)
    with pytest.raises(ValueError, match="has been compiled"):
        b.text()
    with pytest.raises(TypeError, match="Builder"):
        _core.compile_graph(b)
