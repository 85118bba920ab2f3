"""Tests C kernels and operations registered by the user: the same results inside and outside of a compiled function."""

import ctypes
import warnings

import numpy as np
import pytest

import cinductor
from cinductor.testing import assert_same, check

X = np.arange(12.0).reshape(3, 4)
W = np.array([1.0, -2.0, 0.5, 3.0])
rows = cinductor.kernel(
    "double s = 0; for (int64_t j = 0; j < m; j++) s += x[i * m + j] * w[j]; out[i] = s;",
    reads="x: f64[n, m], w: f64[m]",
    writes="out: f64[n]",
    grid="i: n",
    name="rows",
)
shifted = cinductor.kernel(
    "out[i] = x[n - 1 - i] + 1;", reads="x: f64[n]", writes="out: f64[n]", grid="i: n", name="shifted"
)
three = cinductor.kernel(
    "a[i] = x[i] + 1; b[i] += x[i] * 2; c[i] = i;",
    reads="x: f64[n]",
    writes="a: f64[n], b: f64[n], c: i64[n]",
    grid="i: n",
)


def product(x, w):
    return rows(x * 2, w) + 1


def into_view(x, w, out):
    rows(x, w, out[::2])
    return out * 2


def several(x, b):
    y = x * 3
    a, b, c = three(y, b=b)
    return a + b, c, three(x[::-1])


def overlapping(x):
    shifted(x[1:], x[:-1])
    return x.sum()


def in_a_loop(x, n):
    for _ in range(n):
        x = shifted(x) * 0.5
    return x


def by_halves(x):
    total = 0.0
    while x.size > 1:
        x = shifted(x)[: x.size // 2]
        total += x[0]
    return total


CASES = {
    "product": (product, X, W),
    "transposed": (product, X.T.copy().T, W[::1]),
    "negative steps": (product, X[::-1, ::-1], W[::-1]),
    "a view is written": (into_view, X, W, np.zeros(6)),
    "several": (several, W, W.copy()),
    "overlapping": (overlapping, np.arange(9.0)),
    "in a loop": (in_a_loop, W, 20),
    "sizes that change": (by_halves, np.arange(37.0)),
    "empty": (product, np.zeros((0, 4)), W),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("settings", [{}, {"dynamic": True, "backend": "interp"}], ids=["c", "interp"])
def test_compiled_as_eager(name, settings):
    fn, *args = CASES[name]
    check(fn, *args, **settings)


def test_it_is_a_call_of_the_program():
    f = cinductor.compile(product, fullgraph=True, dynamic=True)
    f(X, W)
    (one,) = f.specializations
    assert "kernel_rows0(buf0, in1, buf1)" in one.program.text("wrapper")
    for n, m in ((5, 4), (70, 3), (2, 9)):
        assert_same(f(np.ones((n, m)), np.ones(m)), np.full(n, 2.0 * m + 1))
    assert len(f.specializations) == 1


def test_many_units_and_two_indices():
    turned = cinductor.kernel(
        "out[j * n + i] = x[i * m + j];", reads="x: f32[n, m]", writes="out: f32[m, n]", grid="i: n, j: m"
    )
    x = np.random.default_rng(0).random((300, 70), "f4")
    assert_same(turned(x), x.T.copy())
    halves = cinductor.kernel(
        "out[k] = x[2 * k];", reads="x: u8[n]", writes="out: u8[h]", grid="k: min(n // 2, h) + 0 * n"
    )
    assert_same(halves(np.arange(9, dtype="u1"), np.zeros(3, "u1")), np.array([0, 2, 4], "u1"))


def test_another_kernel_under_the_name(monkeypatch):
    f = cinductor.compile(product)
    f(X, W)
    other = cinductor.kernel(
        "out[i] = x[i * m] + w[0];", reads="x: f64[n, m], w: f64[m]", writes="out: f64[n]", grid="i: n"
    )
    monkeypatch.setitem(globals(), "rows", other)
    assert_same(f(X, W), X[:, 0] * 2 + 1 + 1)


def test_what_is_read_is_copied_where_it_would_be_written():
    x = np.arange(5.0)
    shifted(x, x)
    assert_same(x, np.array([5.0, 4.0, 3.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="b shares memory with another array it writes"):
        three(x, x, x)


REFUSED = [
    ("out[i] = ;", "", "out: f64[3]", "i: 3"),
    ('#error "100%s of %n"', "", "out: f64[3]", "i: 3"),
    ("/* no end", "", "out: f64[3]", "i: 3"),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_what_does_not_compile(row):
    source, reads, writes, grid = row
    bad = cinductor.kernel(source, reads=reads, writes=writes, grid=grid)
    f = cinductor.compile(lambda x: bad(out=x) + 1)
    x = np.zeros(3)
    for call in (lambda: bad(x), lambda: f(x)):
        with pytest.raises(cinductor.CompileError) as caught:
            call()
        assert "kernel:1" in str(caught.value) or "kernel" in caught.value.stderr
        assert_same(x, np.zeros(3))


def test_odd_texts_are_only_text():
    odd = cinductor.kernel(
        'const char *s = "%s%n$(touch x)`ls`\\"; rm"; out[i] = s[0]; // é \\',
        reads="",
        writes="out: f64[2]",
        grid="i: 2",
        name="odd",
    )
    assert_same(odd(), np.full(2, float(ord("%"))))
    assert_same(cinductor.compile(lambda x: odd() + x)(np.ones(2)), np.full(2, 1.0 + ord("%")))


DECLARED = [
    (dict(reads="x f64[n]"), ValueError, "reads has 'x f64"),
    (dict(reads="x: f16[n]"), ValueError, "a dtype of bool, f32"),
    (dict(reads="x: f64[n + 1]"), ValueError, "has the size 'n \\+ 1'"),
    (dict(writes=""), ValueError, "writes is empty"),
    (dict(writes="x: f64[n]"), ValueError, "'x' is the name of another thing"),
    (dict(grid="n"), ValueError, "grid has 'n'"),
    (dict(grid="i: q"), ValueError, "grid has ' q'; wanted: sizes"),
    (dict(grid="i: __import__('os')"), ValueError, "wanted: sizes"),
    (dict(grid="i: n.real"), ValueError, "wanted: sizes"),
    (dict(grid="for: n"), ValueError, "'for' is the name of another thing"),
    (dict(source=3), TypeError, "kernel: source is 3"),
    (dict(source="\0"), ValueError, "NUL"),
    (dict(name="a b"), ValueError, "no word of letters"),
]


@pytest.mark.parametrize("row", DECLARED, ids=lambda row: str(row[0]))
def test_declarations_that_cannot_be_read(row):
    given, kind, why = row
    settings = {"source": "out[i] = x[i];", "reads": "x: f64[n]", "writes": "out: f64[n]", "grid": "i: n", **given}
    with pytest.raises(kind, match=why):
        cinductor.kernel(settings.pop("source"), **settings)


@pytest.mark.parametrize("wrap", [lambda f: f, cinductor.compile], ids=["eager", "compiled"])
def test_arguments_that_are_others(wrap):
    call = wrap(lambda *args: rows(*args))
    for args, kind, why in (
        ((X.astype("f4"), W), TypeError, "x is float32 with 2 axes; wanted: f64\\[n, m\\]"),
        ((X, W[:3]), ValueError, "m of w is 3, and 4 elsewhere"),
        ((X,), TypeError, "w is missing"),
        ((X, W, np.zeros(4)), ValueError, "n of out is 4, and 3 elsewhere"),
        ((X, W, W, W), TypeError, "is called with other arguments"),
    ):
        with pytest.raises(kind, match=why):
            call(*args)


# --- operations -----------------------------------------------------------------------------------


@cinductor.custom_op(shape=lambda x, k, axis=0: (x.shape[1 - axis],))
def smallest(x, k, axis=0):
    if k < 0:
        raise KeyError(f"{k} is below 0")
    return np.sort(x, axis=axis).take(0, axis) * k


@cinductor.custom_op(shape=lambda x: [x.shape, (x.shape[0] + 1,)], dtype=np.float64)
def both(x):
    return x * 2, np.ones(x.shape[0] + 1)


@cinductor.custom_op(shape=lambda x: x.shape)
def lying(x):
    return x[:-1]


def operated(x, k):
    a, b = both(x[0] + 1)
    return smallest(x + 1, k) * 2, a, b.sum(), smallest(x, 2.0, axis=1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_operations(dynamic):
    f = cinductor.compile(operated, fullgraph=True, dynamic=dynamic)
    for x in (X, np.ones((5, 4)), np.ones((5, 7))):
        assert_same(f(x, 3.0), operated(x, 3.0))
    assert not dynamic or len(f.specializations) == 1
    with pytest.raises(KeyError, match="-1.0 is below 0"):
        f(X, -1.0)


def test_a_rule_that_is_wrong():
    f = cinductor.compile(lambda x: lying(x + 1) * 2)
    for call in (lambda: lying(W), lambda: f(W)):
        with pytest.raises(ValueError, match=r"lying gives float64 of shape \(3,\); its shape rule says"):
            call()


def test_an_interrupt_in_an_operation():
    @cinductor.custom_op(shape=lambda x: x.shape)
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cinductor.compile(lambda x: stop(x * 2))(W)


PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)),
    ctypes.POINTER(ctypes.c_void_p),
)


@PROTOTYPE
def added_up(operands, sizes, results):
    """The sums of rows, as a C function would compute them."""
    n, m = sizes[0][0], sizes[0][1]
    x = (ctypes.c_double * (n * m)).from_address(operands[0])
    out = (ctypes.c_double * n).from_address(results[0])
    for i in range(n):
        out[i] = sum(x[i * m : (i + 1) * m])
    return 7 if n == 1 else 0


@pytest.mark.parametrize("fn", [added_up, ctypes.cast(added_up, ctypes.c_void_p).value], ids=["ctypes", "address"])
def test_operations_in_c(fn):
    op = cinductor.custom_op(fn, shape=lambda x: x.shape[:1], name="added_up")
    check(lambda x: op(x.T + 1) * 2, X, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="added_up returned the status 7"):
            cinductor.compile(lambda x: op(x))(X[:1])


def test_what_is_no_operation():
    with pytest.raises(TypeError, match="custom_op: fn is 'sort'"):
        cinductor.custom_op("sort", shape=len)
    with pytest.raises(TypeError, match="custom_op: shape is None"):
        cinductor.custom_op(np.sort, shape=None)
    with pytest.raises(TypeError, match="no operand has a dtype"):
        cinductor.custom_op(lambda: 1, shape=lambda: ())()


# --- templates ------------------------------------------------------------------------------------


def product_kernel(node):
    if node.dtype != "f64" or len(node.sizes) != 2:
        return None
    return cinductor.kernel(
        "double s = 0; for (int64_t l = 0; l < k; l++) s += a[i * k + l] * b[l * m + j]; c[i * m + j] = s;",
        reads="a: f64[n, k], b: f64[k, m]",
        writes="c: f64[n, m]",
        grid="i: n, j: m",
        name="own_product",
    )


def test_a_template():
    def f(x, y):
        return (x + 1) @ y * 2

    y = np.arange(20.0).reshape(4, 5)
    with cinductor.register_template("own_product", "matmul", product_kernel):
        compiled = cinductor.compile(f, dynamic=True, fullgraph=True)
        for n in (3, 2):
            np.testing.assert_allclose(compiled(X[:n], y), f(X[:n], y), 1e-14)
        (one,) = compiled.specializations
        assert "kernel_own_product" in one.program.text("wrapper")
    compiled(X, y)
    assert "own_product" not in compiled.specializations[0].program.text("wrapper")


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda node: 3, "a template gives a kernel or None, not int"),
        (lambda node: shifted, "has 1 operands and 1 results"),
        (lambda node: cinductor.kernel("", reads="a: f64[n, n], b: f64[n, n]", writes="c: f64[n, n]", grid="i: n"), "n of a"),
        (lambda node: cinductor.kernel("c[i] = ;", reads="a: f64[n, k], b: f64[k, m]", writes="c: f64[n, m]", grid="i: n"), "C compiler"),
    ],
)  # fmt: skip
def test_templates_that_do_not_fit(fn, why):
    with cinductor.register_template("own_product", "matmul", fn, version="1"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_same(cinductor.compile(lambda x, y: x @ y)(X, X.T.copy()), X @ X.T.copy())
    (warning,) = caught
    assert "the pass 'own_product' raised" in str(warning.message) and why in str(warning.message)
    with pytest.raises(ValueError, match="no operation 'nothing'"):
        cinductor.register_template("own_product", "nothing", fn)
