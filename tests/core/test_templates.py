"""Tests matrix products by cinductor's own kernels: right for every size and layout, the same bits on every backend
and number of threads, and one kernel together with the element-wise operations around them.
"""

import itertools
import warnings

import numpy as np
import pytest

from cinductor import _core, compile, explain
from cinductor.builds import matmul_tuning

OWN_NAMES = {"numerics": "close", "templates": "always", "verify": True}
SIZES = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (2, 1, 3), (5, 7, 9), (13, 20, 33), (64, 31, 16), (70, 9, 66)]


def layer(x, w, b):
    return np.maximum(x @ w + b, 0)


def operands(dtype, m, k, n, left=False, right=False, stack=()):
    rng = np.random.default_rng(m + 10 * k + 100 * n)
    a = rng.standard_normal((*stack, k, m) if left else (*stack, m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if right else (k, n)).astype(dtype)
    return a.swapaxes(-1, -2) if left else a, b.T if right else b, rng.standard_normal(n).astype(dtype)


def assert_close(got, want, steps, *factors):
    """A few ULP per step of the largest sum of magnitudes."""
    size = float(np.prod([np.abs(f).max(initial=0) for f in factors])) * max(steps, 1)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= 4 * max(steps, 1) * np.finfo(want.dtype).eps * max(size, 1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", list(itertools.product((False, True), repeat=2)), ids=str)
def test_values_and_bits(dtype, layout):
    """Any sizes and both layouts of the factors: NumPy's values, and the interpreter's bits."""
    own, plain = (compile(layer, options=OWN_NAMES, backend=backend, dynamic=True) for backend in ("c", "interp"))
    for m, k, n in SIZES:
        arrays = operands(dtype, m, k, n, *layout)
        got, want = own(*arrays), layer(*arrays)
        assert_close(got, want, k, *arrays[:2])
        assert got.tobytes() == plain(*arrays).tobytes()
    # NumPy may never answer in its place: BLAS adds in another order.
    assert all(program.is_inexact for program in own.specializations)


@pytest.mark.parametrize("shape", [(40, 64, 64), (7, 40, 24), (64, 33, 1000)], ids=str)
def test_known_sizes_have_the_bits_of_any_sizes(shape):
    """Packed panels, factors read in place, and unfused kernels add in the same order."""
    arrays = operands("f4", *shape)
    one = compile(layer, options=OWN_NAMES)(*arrays)
    apart = compile(layer, options={**OWN_NAMES, "fusion": False})(*arrays)
    many = compile(layer, options=OWN_NAMES, dynamic=True)(*arrays)
    assert one.tobytes() == apart.tobytes() == many.tobytes()


def test_stacks():
    def scores(q, k):
        return np.exp(q @ k.swapaxes(-1, -2) * np.float32(0.125))

    q, k = (np.random.default_rng(s).standard_normal((3, 2, 11, 8)).astype("f4") for s in (1, 2))
    got = compile(scores, options=OWN_NAMES)(q, k)
    assert_close(got, scores(q, k), 8, q, k, np.exp(q @ k.swapaxes(-1, -2)))
    shared = compile(lambda x, w: x @ w, options=OWN_NAMES)
    x, w, _ = operands("f8", 5, 6, 7, stack=(4,))
    assert_close(shared(x, w), x @ w, 6, x, w)


def test_factors_are_prologues():
    """Cheap operations on a factor are computed where the factor is read, on either side."""

    def scaled(x, w, s):
        return (x * s) @ (np.abs(w) + s)

    x, w, s = operands("f4", 37, 29, 29)
    compiled = compile(scaled, options=OWN_NAMES)
    assert_close(compiled(x, w, s), scaled(x, w, s), 29, x, s, w + 4)
    assert explain(compile(scaled, options=OWN_NAMES), x, w, s).program.kernels == 1


def test_one_kernel():
    x, w, b = operands("f4", 30, 20, 40)
    close = explain(compile(layer, options=OWN_NAMES, dynamic=False), x, w, b).program
    assert (close.kernels, close.externs) == (1, 0)
    assert "k0: template product for i0<30, i1<40 {" in close.text("kernels")
    bits = explain(compile(layer, options={"templates": "always"}), x, w, b).program
    assert (bits.kernels, bits.externs) == (1, 1)  # by default the bits are NumPy's BLAS's
    never = explain(compile(layer, options={**OWN_NAMES, "templates": "never"}), x, w, b).program
    assert never.externs == 1


def test_rows_of_the_result_stay_apart():
    """Code that reads more than one element of the product is not fused with it."""

    def normalised(x, w):
        y = x @ w
        return y / y.sum(1, keepdims=True)

    x, w, _ = operands("f8", 12, 10, 9)
    x, w = abs(x), abs(w)
    assert_close(compile(normalised, options=OWN_NAMES)(x, w), normalised(x, w), 10, x, w)
    text = explain(compile(normalised, options=OWN_NAMES), x, w).program.text("kernels")
    assert "are not fused: a product is alone in the first stage" in text


def test_in_place():
    def step(x, w):
        x[:] = x @ w + x
        return x

    x, w, _ = operands("f4", 9, 9, 9)
    want = step(x.copy(), w)
    assert_close(compile(step, options=OWN_NAMES)(x, w), want, 9, np.abs(want) + 1, w)


def test_no_warning_of_what_is_not_there():
    """Padding rows and columns of the last tile must not raise float flags. NumPy's BLAS does, on some processors."""
    x, w, b = operands("f4", 5, 3, 5)
    x[0, 0] = np.inf
    w[:] = 1

    def raised(fn):
        with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
            warnings.simplefilter("always")
            fn(x, w, b)
        return [str(one.message) for one in seen]

    assert raised(compile(layer, options=OWN_NAMES)) == []
    x[1, 1] = 1e38
    w[:] = 1e10
    assert raised(compile(layer, options=OWN_NAMES)) == raised(layer)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        compile(layer, options=OWN_NAMES)(x, w, b)


def test_classes_of_shapes_are_measured_once(monkeypatch):
    asked = []
    monkeypatch.setattr(matmul_tuning, "_known", {})
    monkeypatch.setattr(matmul_tuning, "_is_faster", lambda *kind: bool(asked.append(kind)) or True)
    assert matmul_tuning.are_faster("f32", 1, 4, 4, 4, 0, 0) and not asked  # small: not measured
    for rows in (64, 70, 100, 130):
        assert matmul_tuning.are_faster("f32", 1, rows, 64, 64, 0, 0)
    assert [kind[1][1] for kind in asked] == [64, 128]
    assert matmul_tuning.are_faster("f32", 3, 9000, 4100, 4000, 0, 0)  # large: a part is measured
    assert asked[-1][1] == [1, 1024, 1024, 1024]


def test_measuring(monkeypatch):
    """Measuring works for each layout, of any sizes and of known ones; the outcome does not matter."""
    for left, right in itertools.product((0, 1), repeat=2):
        assert matmul_tuning._is_faster("f64", [2, 16, 16, 16], left, right) in (False, True)
    monkeypatch.setattr(matmul_tuning, "MUCH", 16 * 16 * 16)
    assert "in0: f64[2,16,16]" in matmul_tuning._text("f64", 1, 0, [2, 16, 16, 16])
    assert matmul_tuning._is_faster("f64", [2, 16, 16, 16], 1, 0) in (False, True)


def test_auto_asks(monkeypatch):
    x, w, b = operands("f4", 30, 20, 40)
    for answer in (True, False):
        monkeypatch.setattr(matmul_tuning, "are_faster", lambda *kind, answer=answer: answer)
        program = explain(compile(layer, options={"numerics": "close"}), x, w, b).program
        assert program.externs == (0 if answer else 1)


def test_a_measurement_that_fails_is_the_librarys(monkeypatch):
    def fail(*_, **__):
        raise _core.CompileError("no")

    monkeypatch.setattr(_core, "compile_text", fail)
    assert matmul_tuning._is_faster("f32", [1, 8, 8, 8], 0, 0) is False


def test_no_other_types():
    """Integers, complex numbers and vectors are left to the library."""
    for x, y in ((np.ones((3, 3), "i8"),) * 2, (np.ones((3, 3), "c8"),) * 2, (np.ones((3, 3)), np.ones(3))):
        program = explain(compile(lambda a, b: a @ b, options=OWN_NAMES), x, y).program
        assert program.externs == 1


BLOCKS = """
symbols {s0 in [1, inf), s1 in [1, inf), s2 in [1, inf), s3 in [1, inf)}
graph blocks(in0: f32[s0,s1,s2], in1: f32[s0,s3,s2], in2: f32[s3]) {
  %0: f32[s0,s2,s3] order [0,2,1] = permute(in1, axes=[0,2,1])
  %1: f32[s0,s1,s2] = absolute(in0)
  %2: f32[s0,s1,s3] = product(%1, %0)
  %3: f32[s0,s1,s3] = add(%2, in2)
  return %3
}
"""


@pytest.mark.parametrize("shape", [(1, 64, 16, 64), (2, 70, 19, 5), (3, 1, 33, 65)], ids=str)
def test_blocks_of_threads(shape):
    """The GPU kernel, interpreted on the CPU: no data race, no access out of bounds, the same bits as the other
    backends.
    """
    s, m, k, n = shape
    rng = np.random.default_rng(k)
    arrays = [rng.standard_normal(x).astype("f4") for x in ((s, m, k), (s, n, k), (n,))]
    run = {"options": {"numerics": "close", "verify": True}}
    (got,), program = _core.compile_text(BLOCKS, arrays, device="cuda", backend="interp", **run)
    (want,), _ = _core.compile_text(BLOCKS, arrays, backend="interp", **run)
    assert "template product" in program.text("kernels")
    assert got.tobytes() == want.tobytes()
    assert_close(got, np.abs(arrays[0]) @ arrays[1].swapaxes(1, 2) + arrays[2], k, *arrays[:2])


# ---- attention ----


def softmax_of(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, bias):
    return softmax_of(q @ k.swapaxes(-1, -2) * q.dtype.type(0.25) + bias) @ v


def causal(q, k, v, bias):
    scores = q @ k.swapaxes(-1, -2) - bias
    rows, keys = np.arange(scores.shape[-2]), np.arange(scores.shape[-1])
    return softmax_of(np.where(rows[:, None] >= keys, scores, q.dtype.type(-np.inf))) @ v + 1


def factors_that_are_computed(q, k, v, bias):
    return np.tanh(softmax_of((q * 2) @ np.abs(k).swapaxes(-1, -2) + bias[0]) @ (v + 1))


def heads_after(q, k, v, bias):
    q, k, v = (np.stack([x, x[::-1]], axis=2).swapaxes(1, 2) for x in (q, k, v))
    return attention(q, k, v, bias).swapaxes(1, 2)


def scaled(q, k, v, bias):
    return softmax_of(q @ k.swapaxes(-1, -2) * q.dtype.type(0.125)) @ v


def divided_later(q, k, v, bias):
    scores = q @ k.swapaxes(-1, -2) + bias
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e @ v) / e.sum(-1, keepdims=True)


ATTENTIONS = [attention, scaled, causal, factors_that_are_computed, heads_after, divided_later]
CASES = [(fn, "f4", False) for fn in ATTENTIONS]
CASES += [(attention, "f8", True), (scaled, "f8", False), (causal, "f4", True), (factors_that_are_computed, "f8", False)]


def attention_arrays(dtype, stack, rows, keys, head, columns):
    rng = np.random.default_rng(rows + keys + head)
    shapes = [(stack, rows, head), (stack, keys, head), (stack, keys, columns), (rows, keys)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def assert_is_attention(got, fn, arrays):
    wide = [a.astype("f8") for a in arrays]
    with np.errstate(all="ignore"):
        want = fn(*wide)
    assert got.shape == want.shape and (np.isnan(got) == np.isnan(want)).all()
    eps, size = np.finfo(got.dtype).eps, np.abs(want[np.isfinite(want)]).max(initial=1)
    np.testing.assert_allclose(got, want, rtol=200 * eps, atol=400 * eps * size)


@pytest.mark.parametrize("fn, dtype, is_dynamic", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_attention_is_one_kernel(fn, dtype, is_dynamic):
    """Rows, keys, heads and columns that no tile divides; the same bits for any number of threads."""
    one, many = (compile(fn, options={**OWN_NAMES, "threads": n}, dynamic=is_dynamic) for n in (1, 3))
    for shape in [(2, 37, 131, 9, 5), (1, 3, 260, 8, 40)]:
        arrays = attention_arrays(dtype, *shape)
        got = one(*arrays)
        assert got.dtype == dtype and got.tobytes() == many(*arrays).tobytes()
        assert_is_attention(got, fn, arrays)
    assert "template attention" in explain(one, *arrays).program.text("kernels")


def test_attention_by_default_of_close():
    """Without a measurement of products, and not for NumPy's order of sums."""
    arrays = attention_arrays("f4", 2, 20, 30, 8, 8)
    for options, is_one in [({"numerics": "close"}, True), ({"numerics": "close", "templates": "never"}, False), ({}, False)]:
        program = explain(compile(attention, options=options), *arrays).program
        assert ("template attention" in program.text("kernels")) == is_one
        assert (program.externs == 0) == is_one


def test_attention_of_infinities_and_nan():
    """Rows without a key, NaN and infinities in scores and values, and values near the largest float."""
    q, k, v, bias = attention_arrays("f4", 2, 40, 150, 8, 5)
    bias[1] = bias[2, :149] = bias[3, 1:] = bias[39] = -np.inf
    bias[4, 140], bias[5, 3], bias[6, 149], bias[7, 149] = np.nan, np.inf, np.inf, -np.inf
    compiled = np.errstate(invalid="ignore")(compile(attention, options=OWN_NAMES))
    assert_is_attention(compiled(q, k, v, bias), attention, (q, k, v, bias))
    v[1, 20, 2], v[0, 3, 1], v[1, 140] = np.inf, np.nan, -np.inf
    assert_is_attention(compiled(q, k, v, bias), attention, (q, k, v, bias))
    v[:] = 3e38
    assert np.isfinite(compiled(q, k, v, np.zeros_like(bias))).all()


def test_what_is_no_attention():
    """Other readers of the weights, another function, or a sum of another type: right, and not one kernel."""
    q, k, v, bias = attention_arrays("f4", 2, 20, 30, 8, 8)

    def with_weights(q, k, v, bias):
        weights = softmax_of(q @ k.swapaxes(-1, -2) + bias)
        return weights.sum(axis=1)[:, None] + (weights @ v).sum(axis=-1, keepdims=True)

    def without_exp(q, k, v, bias):
        scores = np.abs(q @ k.swapaxes(-1, -2) + bias)
        distances = scores - scores.max(-1, keepdims=True)
        return (distances / distances.sum(-1, keepdims=True)) @ v

    def wide_sum(q, k, v, bias):
        e = np.exp(q @ k.swapaxes(-1, -2) + bias - 1)
        return (e / e.sum(-1, keepdims=True, dtype="f8").astype("f4")) @ v

    for fn in (with_weights, without_exp, wide_sum):
        compiled = compile(fn, options=OWN_NAMES)
        np.testing.assert_allclose(compiled(q, k, v, bias), fn(q, k, v, bias), rtol=2e-4, atol=2e-5)
        assert "template attention" not in explain(compiled, q, k, v, bias).program.text("kernels")
