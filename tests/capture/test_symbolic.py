"""Tests symbolic sizes and ints that are data, in functions traced by hand: the same results as NumPy."""

import operator

import numpy as np
import pytest

from cinductor import _core
from cinductor.numpy import surface

surface.load()
BACKEND = "interp"


def symbolic(tracer, arrays):
    """Make each axis a symbol for its extent. Axes of equal extent share a symbol."""
    names, traced = {}, []
    for k, array in enumerate(arrays):
        sizes = []
        for axis, size in enumerate(array.shape):
            if size not in names:
                names[size] = tracer.symbol(f"s{len(names)}", k, axis, size)
            sizes.append(names[size])
        traced.append(tracer.array(array, k, sizes=sizes))
    return traced


def real(value):
    if isinstance(value, (tuple, list)):
        return type(value)(real(v) for v in value)
    return (
        value.materialise()
        if isinstance(value, _core.Traced) or type(value) is _core.Traced
        else value
    )


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, np.ndarray):
        assert got.shape == want.shape and got.dtype == want.dtype
        assert got.strides == want.strides or want.size <= 1
    assert np.array_equal(got, want, equal_nan=True), (got, want)


def text_of(tracer):
    return tracer.last_program.text("graph")


def check(fn, *arrays, breaks=0, backend=BACKEND):
    """Run fn on arrays with symbolic axes. Return the tracer, whose last program shows the symbols."""
    own = [a.copy(order="K") for a in arrays]
    want = fn(*[a.copy(order="K") for a in arrays])
    tracer = _core.Tracer(fn.__name__, options={}, backend=backend)
    result = fn(*symbolic(tracer, own))
    assert len(tracer.breaks) == breaks, tracer.breaks
    tracer.flush()
    same(real(result), want)
    return tracer


def floats(*shape):
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) / 8


A, B, V, W = floats(5, 7), floats(7, 5), floats(7), floats(5)
T = floats(3, 4, 6)

VIEWS = {
    "rows": lambda a, b: (a[0], a[-1], a[2, 3], a[-2, -3]),
    "slices": lambda a, b: (a[1:-1, 1:], a[:-1, ::2], a[::-1], a[:, ::-2], a[3:1], a[-3:]),
    "clamped": lambda a, b: (a[:100], a[-100:2], a[50:], a[4:-100:-1]),
    "axes": lambda a, b: (a.T, a[None, :, None], a[..., 0], a.swapaxes(0, 1)),
    "reshape": lambda a, b: (a.reshape(-1), a.ravel(), a.reshape(a.shape[1], -1), a.T.reshape(-1)),
    "reshape_of_view": lambda a, b: (
        a[1:].reshape(-1),
        a[:, 1:].reshape(-1),
        a.reshape(1, *a.shape),
    ),
    "own_sizes": lambda a, b: (a[a.shape[0] // 2], a[: a.shape[0] - 1], a[len(a.T.shape) :]),
    "last": lambda a, b: (a[a.shape[0] - 1, a.shape[1] - 1], a[: a.shape[1] // 2 - 1]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    tracer = check(VIEWS[name], A, B)
    assert tracer.last_program is None or "s0" in text_of(tracer) or "f64[" in text_of(tracer)


OPS = {
    "pointwise": lambda a, b: (a + b.T, a * 2, -a, np.sqrt(a), np.maximum(a, b.T)),
    "broadcast": lambda a, b: (a + a[0], a - a[:, :1], a[:, None] * b.T[None, :, :]),
    "stencil": lambda a, b: a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:],
    "reductions": lambda a, b: (a.sum(), a.sum(axis=0), a.max(axis=1, keepdims=True)),
    "scans": lambda a, b: (np.add.accumulate(a), np.multiply.accumulate(a, axis=1)),
    "matmul": lambda a, b: (a @ b, b @ a, a @ b[:, 0], a[0] @ b),
    "outer": lambda a, b: np.multiply.outer(a[0], a[:, 0]),
    "of_sizes": lambda a, b: (a * a.shape[0], a / a.shape[1], a + a.size, a.sum() / a.shape[0]),
    "copies": lambda a, b: (a.T + 0.0, a[::-1] * 1.0),
}


@pytest.mark.parametrize("name", OPS)
def test_operations(name):
    check(OPS[name], A, B)


FUNCTIONS = {
    "mean": lambda a, b: (np.mean(a), a.mean(0), a.mean(axis=1, keepdims=True)),
    "var": lambda a, b: (a.var(), a.std(axis=0)),
    "extremes": lambda a, b: (a.min(), np.ptp(a, axis=0), a.argmax(), a.argmin(axis=1)),
    "truth": lambda a, b: (np.any(a > 3, axis=1), np.all(a > 0), a.prod(axis=0)),
    "concatenate": lambda a, b: (np.concatenate([a, b.T]), np.concatenate([a, a[:1]], axis=0)),
    "diagonals": lambda a, b: (np.diagonal(a), np.trace(a), a.diagonal(1), np.diag(a[0])),
    "where": lambda a, b: (np.where(a > 2, a, 0.0), np.clip(a, 1, 3)),
    "pad": lambda a, b: (np.pad(a, 1), np.pad(a[0], (1, 2))),
    "repeat": lambda a, b: np.repeat(a, 2, axis=0),
    "broadcast_to": lambda a, b: (
        np.broadcast_to(a[0], a.shape),
        np.broadcast_to(a, (3, *a.shape)),
    ),
    "cumulative": lambda a, b: (np.cumsum(a), np.cumsum(a, axis=1), np.cumprod(a, axis=0)),
    "products": lambda a, b: (np.dot(a, b), a.dot(b[:, 0]), np.inner(a, a), np.vdot(a[0], a[1])),
    "einsum": lambda a, b: (np.einsum("ij,jk->ik", a, b), np.einsum("ij->i", a)),
    "shapes": lambda a, b: (a[None].squeeze(), np.expand_dims(a, 1), np.transpose(a), a.flatten()),
    "split": lambda a, b: np.split(a, [2], axis=0),
    "likes": lambda a, b: (np.zeros_like(a.T), np.ones_like(a[0]), np.full_like(a, 2.0)),
    "casts": lambda a, b: (a.astype(np.float32), a.copy(), a.T.astype(np.int32)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], A, B)


def made(tracer, function, *args, **kwargs):
    """A function that creates arrays, called as capture calls it."""
    return surface.functions_by_id[id(function)].call(tracer, args, kwargs)


CREATED = [
    (np.zeros, lambda n, m: ((n, m),)),
    (np.ones, lambda n, m: (n,)),
    (np.full, lambda n, m: ((n, 2), 3.0)),
    (np.eye, lambda n, m: (n, m)),
    (np.identity, lambda n, m: (m,)),
    (np.arange, lambda n, m: (n,)),
    (np.arange, lambda n, m: (1, m)),
    (np.arange, lambda n, m: (0, n * m, 2)),
    (np.arange, lambda n, m: (m, 0, -2)),
    (np.arange, lambda n, m: (m, n)),
    (np.linspace, lambda n, m: (0.0, 1.0, n)),
    (np.zeros, lambda n, m: (n - 2,)),
]


@pytest.mark.parametrize("number", range(len(CREATED)))
def test_arrays_of_a_symbolic_size(number):
    function, arguments = CREATED[number]
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    a, _ = symbolic(tracer, [A, B])
    result = made(tracer, function, *arguments(*a.shape))
    tracer.flush()
    same(real(result), function(*arguments(*A.shape)))
    assert "s0" in text_of(tracer) or "s1" in text_of(tracer)


def test_arrays_of_a_size_that_data_decide():
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    i = tracer.array(np.array([4, 3]), 0)
    zeros = made(tracer, np.zeros, (i[0], i[1]))
    numbers = made(tracer, np.arange, zeros.shape[0])
    tracer.flush()
    same(real((zeros, numbers)), (np.zeros((4, 3)), np.arange(4)))


SIZES = [(5, 7), (2, 9), (12, 3), (40, 70)]


@pytest.mark.parametrize("name", [*OPS, *FUNCTIONS])
def test_other_sizes(name):
    """A program captured at one size is right at every other size that its guards allow."""
    fn = {**OPS, **FUNCTIONS}[name]

    def fresh(a, b):
        result = fn(a, b)
        return [r + 0 for r in (result if isinstance(result, (tuple, list)) else (result,))]

    own = [A.copy(), B.copy()]
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    traced = symbolic(tracer, own)
    result = fresh(*traced)
    checks = [
        (k, "array", x.dtype, x.shape, x.strides, True, True) for k, x in enumerate(traced)
    ]
    _, specialization = tracer.finish([("arg", 0), ("arg", 1)], checks, result)
    compiled = _core.CompiledFunction(
        fn, ("a", "b"), (1, 1), (_core.MISSING,) * 2, lambda function, bound, args, kwargs: None
    )
    compiled.add(specialization)
    answered = 0
    for n, m in SIZES:
        arrays = [floats(n, m), floats(m, n)]
        got = compiled(*arrays)
        if got is None:  # a guard on sizes failed
            continue
        answered += 1
        for g, w in zip(got, fresh(*arrays), strict=True):
            assert np.shape(g) == np.shape(w)
            np.testing.assert_array_equal(g, w)
    assert answered >= 3


def test_writes():
    def fn(a, b):
        a[1:-1] = a[:-2] + a[2:]
        a[0] = b[:, 0]
        a[:, -1] += 1.0
        a[a.shape[0] - 1, 2] = 9.0
        return a + 0.0

    check(fn, A, B)


def test_the_program_has_symbols():
    tracer = check(lambda a, b: a[1:] + a[:-1], A, B)
    assert "f64[max(s0 - 1, 0),s1] = add" in text_of(tracer)


def test_shapes_are_ints_of_their_own():
    def fn(a, b):
        n, m = a.shape
        assert isinstance(n, int) and n.__class__ is int
        assert n == b.shape[1] and (n + 1) > n and not n - n
        assert a.size == n * m
        return n + 1, n * m, n // 2, n % 3, -n, n / 2, m - n

    check(fn, A, B)


def test_symbols_without_an_array_are_inputs():
    def fn(a, b):
        return np.add(W[:3], a.shape[0])

    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    a, _ = symbolic(tracer, [A, B])
    result = np.add(tracer.array(W[:3].copy(), 2), a.shape[0])
    tracer.flush()
    same(real(result), W[:3] + 5)
    assert "python i64[]" in text_of(tracer)


@pytest.mark.parametrize("index", range(-5, 5))
def test_data_index(index):
    def fn(a, i):
        a[i[0], 1] = 3.0
        return a[i[0]], a[i[0], 2], a[i[0] :, 0].sum(), a[: i[0]] * 2

    i = np.array([index])
    own = [A.copy(), i.copy()]
    want = fn(A.copy(), i)
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    result = fn(*symbolic(tracer, own))
    assert not tracer.breaks
    tracer.flush()
    same(real(result), want)
    assert "define" in text_of(tracer)


def test_data_index_out_of_bounds():
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    a = tracer.array(A.copy(), 0)
    i = tracer.array(np.array([5]), 1)
    _ = a[i[0]]
    with pytest.raises(BaseException) as caught:
        tracer.flush()
    assert type(caught.value).__name__ == "CheckFailed"


def test_equal_slices_by_data_have_equal_extents():
    def fn(a, i):
        k = i[0]
        return a[k:] + a[k:], a[:k] * a[:k]

    own = [V.copy(), np.array([3])]
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    result = fn(*symbolic(tracer, own))
    tracer.flush()
    same(real(result), fn(*own))
    assert text_of(tracer).count("define(") == 1


def test_unequal_slices_by_data_are_checked():
    def fn(a, i):
        return a[i[0] :] + a[: i[1]]

    for j, fits in ((4, True), (3, False)):
        own = [V.copy(), np.array([3, j])]
        tracer = _core.Tracer("f", options={}, backend=BACKEND)
        result = fn(*symbolic(tracer, own))
        assert not tracer.breaks
        if fits:
            tracer.flush()
            same(real(result), fn(*own))
        else:
            with pytest.raises(_core.CheckFailed):
                tracer.flush()


SCALARS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
    operator.pow,
]


@pytest.mark.parametrize("op", SCALARS)
@pytest.mark.parametrize("pair", [(7.5, 2.0), (7.5, -2.25), (-7.5, 2.0), (0.0, 3.0), (1e300, 2.0)])
def test_python_floats(op, pair):
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    a, b = tracer.scalar(pair[0], 0), tracer.scalar(pair[1], 1)
    try:
        want = op(*pair)
    except ArithmeticError as error:
        with pytest.raises(type(error)):
            op(a, b)
        return
    got = op(a, b)
    if type(got) is not _core.Traced:
        same(got, want)
        return
    doubled = np.multiply(tracer.lift(np.float64(1.0)), got)
    tracer.flush()
    assert float(doubled.materialise()) == float(want)


def test_facts():
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    a = tracer.array(V.copy(), 0)
    i = tracer.array(np.array([3, 4]), 1)
    k = a[: i[0]].shape[0]
    m = a[: i[1]].shape[0]
    less = k < m
    assert type(less) is _core.Traced and less.__class__ is bool
    before = tracer.mark()
    tracer.assume(less)
    assert (k < m) is True and (k != m) is True and (m <= k) is False and (k + 1 <= m) is True
    before.forget()
    assert type(k < m) is _core.Traced
    tracer.assume(less, holds=False)
    assert (m <= k) is True
    before.forget()
    tracer.assume((k, ">=", 2))
    between = tracer.mark()
    tracer.assume((m, "<=", 2))
    assert (m <= k) is True
    between.forget()
    assert (k >= 2) is True and type(m <= k) is _core.Traced
    block = tracer.block()
    tracer.is_infeasible = True
    before.restore()
    block.close()  # it is closed
    assert type(k >= 2) is _core.Traced and not tracer.in_region and not tracer.is_infeasible


def test_data_index_after_python_has_run():
    def fn(a, i):
        first = float(a[0])  # a break: after it no check may fail
        return a[i[0]], a[i[1] :] + first

    own = [V.copy(), np.array([3, -2])]
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    result = fn(*symbolic(tracer, own))
    tracer.flush()
    same(real(result), fn(*own))
