"""Tests NumPy's API against NumPy, case by case: shapes, dtypes, kinds and values.

Each case is a function of a few arrays. It must be captured whole (unless its row says otherwise) and give NumPy's
result. Cases run on the interpreter backend, which needs no compiler; a selection also runs on the C backend in
one program.
"""

import importlib
import inspect
import itertools
import warnings

import numpy as np
import pytest

from cinductor import compile
from cinductor.capture.calls import calls
from cinductor.numpy import surface
from cinductor.testing import assert_same, check

# NumPy 2.5 gives a deprecation warning from Python code, which is an effect and so breaks.
NUMPY_WARNS_OF_FIX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"

RNG = np.random.default_rng(7)


def floats(*shape, dtype="f8"):
    return RNG.integers(-20, 20, shape).astype(dtype) / 4


X = floats(4, 6)
Y = floats(4, 6)
V = floats(6)
CUBE = floats(2, 3, 4)
MASK = RNG.random((4, 6)) < 0.5
INTS = RNG.integers(-9, 9, (4, 6))
F32 = X.astype("f4")
COMPLEX = X + 1j * Y

SHAPE = {
    "reshape": lambda x: (
        np.reshape(x, (6, 4)),
        x.reshape(-1),
        x.reshape(3, -1),
        x.reshape((2, 12)),
    ),
    "reshape_F": lambda x: (np.reshape(x, (6, 4), order="F"), x.T.reshape(4, 6, order="F")),
    "ravel in memory's order": lambda x: (x.T.ravel("K"), x[1:3, 1:3].ravel("K"), x[:, 1].ravel("K"), x[1:3, 1:3].T.ravel("K")),
    "diagflat": lambda x: (np.diagflat(x[:2, :2]), np.diagflat(x[0], -2)),
    "ravel": lambda x: (np.ravel(x), x.ravel(), x.T.ravel(), x.flatten(), x.T.flatten()),
    "transpose": lambda x: (x.T, np.transpose(x), x.transpose(1, 0), x.transpose((-1, 0))),
    "swapaxes": lambda x: (np.swapaxes(x, 0, 1), x.swapaxes(-1, -2)),
    "moveaxis": lambda x: (np.moveaxis(x, 0, -1), np.rollaxis(x, 1)),
    "expand": lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1)), x[None], x[:, None]),
    "squeeze": lambda x: (
        np.squeeze(x[None]),
        x[None, :, None].squeeze(axis=(0, 2)),
        x[:1].squeeze(),
    ),
    "broadcast_to": lambda x: (
        np.broadcast_to(x, (3, 4, 6)) + 0,
        np.broadcast_to(x[:, :1], (4, 5)) * 2,
    ),
    "broadcast_arrays": lambda x: [a + 0 for a in np.broadcast_arrays(x, x[0], x[:, :1])],
    "slices": lambda x: (
        x[1:3],
        x[::-1],
        x[:, ::2],
        x[-3:-1, 4:1:-1],
        x[..., 0],
        x[1],
        x[1, 2],
        x[5:2],
    ),
    "flip": lambda x: (np.flip(x), np.flip(x, 0), np.fliplr(x), np.flipud(x), np.flip(x, (0, 1))),
    "rot90": lambda x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, 3)),
    "roll": lambda x: (np.roll(x, 2), np.roll(x, 1, axis=0), np.roll(x, (1, -2), axis=(0, 1))),
    "concatenate": lambda x: (
        np.concatenate([x, x]),
        np.concatenate((x, x), axis=1),
        np.concatenate([x, x[0:1] * 2]),
    ),
    "concatenate_flat": lambda x: np.concatenate([x, x[0]], axis=None),
    "stack": lambda x: (
        np.stack([x, x + 1]),
        np.stack([x, x], axis=-1),
        np.stack((x[0], x[1]), axis=1),
    ),
    "hvstack": lambda x: (
        np.hstack([x, x]),
        np.vstack([x[0], x]),
        np.dstack([x, x]),
        np.column_stack([x[:, 0], x]),
    ),
    "split": lambda x: (
        np.split(x, 2),
        np.array_split(x, 3, axis=1),
        np.hsplit(x, 3),
        np.vsplit(x, [1, 3]),
    ),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 2)), np.tile(x[0], 3)),
    "repeat": lambda x: (np.repeat(x, 2), np.repeat(x, 3, axis=0), x.repeat(2, axis=1)),
    "pad": lambda x: (np.pad(x, 1), np.pad(x, ((1, 0), (0, 2)), constant_values=3)),
    "diagonal": lambda x: (
        np.diagonal(x) + 0,
        np.diagonal(x, 1) * 1,
        x.diagonal(-1) * 1,
        np.trace(x),
        x.trace(1),
    ),
    "tri": lambda x: (np.tril(x), np.triu(x), np.tril(x, 1), np.triu(x, -1)),
    "diff": lambda x: (np.diff(x), np.diff(x, axis=0), np.diff(x, n=2)),
    "atleast": lambda x: (np.atleast_1d(x), np.atleast_3d(x), np.atleast_2d(x[0])),
    "meshgrid": lambda x: np.meshgrid(x[0], x[:, 0]),
    "meshgrid_ij": lambda x: np.meshgrid(x[0], x[:, 0], indexing="ij", copy=True),
    "copies": lambda x: (
        x.copy(),
        np.copy(x.T),
        x.T.copy(order="K"),
        x.astype("f4"),
        x.astype(int),
    ),
    "ascontiguous": lambda x: (
        np.ascontiguousarray(x.T),
        np.ascontiguousarray(x),
        np.asarray(x.T) + 1,
    ),
    "kron": lambda x: np.kron(x[:2, :2], x[:3, :2]),
    "take_one": lambda x: (np.take(x, 2), np.take(x, -1, axis=0), x.take(1, axis=1)),
}

REDUCE = {
    "sum": lambda x: (
        np.sum(x),
        x.sum(0),
        np.sum(x, axis=1),
        x.sum(axis=(0, 1)),
        np.sum(x, axis=-1, keepdims=True),
    ),
    "sum_dtype": lambda x: (np.sum(x, dtype="f8"), np.sum(x, axis=0, initial=2.0)),
    "sum_where": lambda x: (np.sum(x, where=x > 0), np.sum(x, axis=0, where=x > 1)),
    "prod": lambda x: (np.prod(x[:, :3]), x[:2].prod(axis=0)),
    "max": lambda x: (
        np.max(x),
        x.max(0),
        np.amax(x, 1),
        x.max(axis=1, keepdims=True),
        np.max(x, initial=100, axis=0),
    ),
    "min": lambda x: (
        np.min(x),
        x.min(0),
        np.amin(x, (0, 1)),
        np.min(x, axis=0, where=x > 0, initial=50),
    ),
    "any": lambda x: (
        np.any(x > 3),
        (x > 3).any(axis=0),
        np.all(x < 5, axis=1),
        (x == x).all(),
        np.any(x),
    ),
    "argmax": lambda x: (
        np.argmax(x),
        x.argmax(0),
        np.argmin(x, axis=1),
        x.argmin(),
        np.argmax(x, axis=1, keepdims=True),
    ),
    "ptp": lambda x: (np.ptp(x), np.ptp(x, axis=0)),
    "count": lambda x: (
        np.count_nonzero(x, axis=0),
        np.count_nonzero(x > 0, axis=1, keepdims=True),
    ),
    "cumsum": lambda x: (
        np.cumsum(x),
        x.cumsum(axis=0),
        np.cumsum(x, 1),
        np.cumprod(x[:2], axis=0),
    ),
    "mean": lambda x: (
        np.mean(x),
        x.mean(0),
        np.mean(x, axis=(0, 1)),
        x.mean(axis=1, keepdims=True),
    ),
    "mean_where": lambda x: np.mean(x, axis=0, where=np.abs(x) < 100),
    "var": lambda x: (
        np.var(x),
        x.var(0),
        np.var(x, axis=1, ddof=1),
        np.std(x),
        x.std(axis=0, keepdims=True),
    ),
    "average": lambda x: (np.average(x), np.average(x, axis=0)),
    "nansum": lambda x: (np.nansum(x), np.nansum(x, axis=0), np.nanprod(x[:2], axis=0)),
}

ELEMENTWISE = {
    "arithmetic": lambda x, y: (
        x + y,
        x - y,
        x * y,
        x / (y + 100),
        -x,
        +x,
        abs(x),
        x * 2,
        3 - x,
        2 / (x * x + 1),
    ),
    "order": lambda x, y: (
        np.maximum(x, y),
        np.minimum(x, 1),
        np.fmax(x, y),
        x < y,
        x >= y,
        x == y,
        x != 2,
    ),
    "where": lambda x, y: (
        np.where(x > y, x, y),
        np.where(x > 0, 1, 0),
        np.where(x > 0, x, 0.0),
        np.where(x, 1.5, y),
    ),
    "clip": lambda x, y: (
        np.clip(x, -1, 1),
        np.clip(x.ravel()[0], -1, 1),
        x.clip(0),
        np.clip(x, y, 3),
        x.clip(max=2),
        np.clip(x, None, y),
    ),
    "round": lambda x, y: (
        np.round(x),
        np.round(x, 1),
        x.round(2),
        np.around(x * 8.7, -1),
        np.rint(y),
        np.floor(x),
        np.trunc(x) if NUMPY_WARNS_OF_FIX else np.fix(x),
    ),
    "divmod": lambda x, y: (x // (y + 7.5), x % (y + 7.5), divmod(x, 2.5), np.fmod(x, 3)),
    "logic": lambda x, y: (
        (x > 0) & (y > 0),
        (x > 0) | (y > 1),
        ~(x > y),
        np.logical_and(x, y),
        np.logical_not(x),
        (x > 0) ^ (y > 0),
    ),
    "square": lambda x, y: (
        np.square(x),
        np.sqrt(np.abs(y)),
        x**2,
        np.sign(x),
        np.reciprocal(y + 100),
        np.abs(x),
    ),
    "nan": lambda x, y: (
        np.isnan(x),
        np.isfinite(y),
        np.isinf(x),
        np.signbit(x),
        np.nan_to_num(x),
        np.copysign(x, y),
    ),
    "isclose": lambda x, y: (np.isclose(x, y), np.isclose(x, x + 1e-9)),
    "inplace": lambda x, y: inplace(x, y),
    "out": lambda x, y: out(x, y),
    "copyto": lambda x, y: copyto(x, y),
    "select": lambda x, y: np.select([x > 1, y > 1], [x, y * 2], -1.0),
}

CREATE = {
    "zeros": lambda x: (
        np.zeros(3) + x[0, :3],
        np.zeros((2, 3), int),
        np.zeros(4, "f4"),
        np.zeros_like(x),
        np.zeros(()),
    ),
    "ones": lambda x: (
        np.ones(3),
        np.ones((2, 2), dtype=bool),
        np.ones_like(x.T),
        np.ones_like(x, dtype=int),
    ),
    "full": lambda x: (
        np.full(3, 2.5),
        np.full((2, 2), 7),
        np.full_like(x, 1.5),
        np.full(2, x[0, 0]),
    ),
    "eye": lambda x: (np.eye(3), np.eye(3, 4, 1), np.identity(2), np.eye(3, dtype=int)),
    "arange": lambda x: (
        np.arange(5),
        np.arange(2, 9, 3),
        np.arange(0.0, 1.0, 0.1),
        np.arange(10, 0, -1),
        np.arange(3.0),
    ),
    "arange_dtypes": lambda x: (
        np.arange(9, dtype="f4"),
        np.arange(5, dtype="u1"),
        np.arange(1, 4, 0.3, dtype="f4"),
    ),
    "linspace": lambda x: (
        np.linspace(0, 1, 7),
        np.linspace(1, -3, 100),
        np.linspace(0, 1, 5, endpoint=False),
        np.linspace(2, 3, 1),
    ),
    "array": lambda x: (
        np.array([1.0, 2, 3]),
        np.array([[1, 2], [3, 4]]),
        np.array(x),
        np.array([x[0], x[1]]),
        np.array([x[0, 0], 1.0]),
    ),
    "asarray": lambda x: (
        np.asarray([1, 2]),
        np.asarray(x, dtype="f4"),
        np.asarray(2.5),
        np.array(3),
    ),
    "indices": lambda x: (
        np.tri(3),
        np.tri(2, 4, 1),
        np.diag(x[0, :3]),
        np.diag(x[0, :3], -2),
        np.diag(x, 1) + 0,
    ),
}

PRODUCTS = {
    "matmul": lambda x, y: (x @ y.T, np.matmul(x.T, y), x[0] @ y[0], x @ y[0], x[0] @ y.T),
    "dot": lambda x, y: (
        np.dot(x, y.T),
        x.dot(y[0]),
        np.dot(x[0], y[0]),
        np.dot(x, 2.0),
        np.vdot(x, y),
        np.inner(x, y),
    ),
    "outer": lambda x, y: (
        np.outer(x[0], y[0]),
        np.multiply.outer(x[0], y[:, 0]),
        np.tensordot(x, y, 2),
    ),
    "einsum": lambda x, y: (
        np.einsum("ij,kj->ik", x, y),
        np.einsum("ij->ji", x),
        np.einsum("i,j->ij", x[0], y[0]),
        np.einsum("ij,ij->", x, y),
    ),
    "norm": lambda x, y: (
        np.linalg.norm(x),
        np.linalg.norm(x, axis=0),
        np.linalg.norm(y, 1, axis=1),
    ),
}


def inplace(x, y):
    z = x.copy()
    z += y
    z[1:] *= 2
    z[:, 0] = 7
    z[::2, 1:3] -= y[::2, 3:5]
    z[2] = y[1]
    z[0, 0] += 1
    return z


def out(x, y):
    z = np.empty_like(x)
    np.add(x, y, out=z)
    w = np.zeros(x.shape[1])
    np.sum(x, axis=0, out=w)
    return z, w, np.multiply(z, 2, out=z) is z


def copyto(x, y):
    z = np.zeros(x.shape)
    np.copyto(z, x, where=x > 0)
    np.copyto(z, y[0], where=x < -2)
    z.fill(1.0) if x.shape[0] > 100 else None
    return z


def cases(table):
    return pytest.mark.parametrize("name", list(table))


def captured(fn, *args, ulp=0, **settings):
    settings.setdefault("backend", "interp")
    compiled = check(fn, *args, ulp=ulp, **settings)
    reasons = [f"{b.file}:{b.line}: {b.reason}" for b in compiled._cinductor_job.last.breaks]
    assert compiled.specializations, reasons or compiled._cinductor_job.reasons_for_numpy(compiled)
    return compiled


@cases(SHAPE)
@pytest.mark.parametrize("x", [X, INTS, F32.T.copy().T], ids=["f8", "i8", "f4_F"])
def test_shape(name, x):
    captured(SHAPE[name], x)


@cases(REDUCE)
@pytest.mark.parametrize("x", [X, INTS, F32, X.T.copy().T], ids=["f8", "i8", "f4", "f8_F"])
def test_reduce(name, x):
    # sums of these numbers are exact in any order, quotients are not
    captured(REDUCE[name], x)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "any", "cumsum"])
def test_reduce_half(name):
    captured(REDUCE[name], X.astype("f2"))


@cases(ELEMENTWISE)
@pytest.mark.parametrize("args", [(X, Y), (F32, F32 * 2), (X, Y[0])], ids=["f8", "f4", "broadcast"])
def test_elementwise(name, args):
    if name == "inplace" and args[1].ndim == 1:
        args = (X, X[::-1].copy())
    if name == "copyto" and args[1].ndim == 1:
        args = (X, X)
    captured(ELEMENTWISE[name], *args)


@pytest.mark.parametrize("name", ["arithmetic", "order", "where", "clip", "logic", "inplace"])
def test_elementwise_ints(name):
    captured(ELEMENTWISE[name], INTS, INTS[::-1].copy())


@cases(CREATE)
def test_create(name):
    captured(CREATE[name], X)


@cases(PRODUCTS)
def test_products(name):
    captured(PRODUCTS[name], X, Y)


def test_complex():
    captured(
        lambda z: (z + 1, z * z, z.real, z.imag, np.conj(z), z.conj() - 2j, np.sum(z.real)),
        COMPLEX,
    )
    captured(lambda z: (z == z, z != 0, -z, z.sum(axis=0)), COMPLEX)
    captured(lambda z: (np.abs(z), abs(z) + 1), COMPLEX, options={"numerics": "exact"})


def test_bools():
    captured(
        lambda m: (m.sum(), m.mean(), m & ~m, m.any(axis=0), m + m, m * 2, m.astype("f4")), MASK
    )


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers(dtype):
    a = RNG.integers(0, 100, (5, 3)).astype(dtype)
    b = RNG.integers(0, 9, (5, 3)).astype(dtype)
    captured(
        lambda a, b: (
            a + b,
            a * b,
            a - b,
            a // b,
            a % b,
            a / (b + b.dtype.type(1)),
            a << b,
            a >> b,
            a & b,
            a.sum(),
            a.sum(axis=0),
            a.mean(),
            np.maximum(a, b),
            a > b,
            -a,
            a.max(),
            a + 1,
            a * 1.5,
        ),
        a,
        b,
    )


def test_promotion():
    small, half, single, double = (np.arange(4).astype(d) for d in ("i1", "f2", "f4", "f8"))
    captured(
        lambda a, h, s, d: (
            a + h,
            a + s,
            a * 2,
            a * 2.0,
            h + s,
            s + d,
            s * 2.0,
            h * 3,
            a / 2,
            s + np.float64(1),
        ),
        small,
        half,
        single,
        double,
    )


def test_zero_dimensions():
    a = np.array(2.5)
    captured(
        lambda a: (
            a + 1,
            np.sin(a) * 0,
            a.sum(),
            np.where(a > 0, a, 0),
            a[()],
            a.reshape(1),
            a[None],
        ),
        a,
    )
    captured(
        lambda x: (
            x[0, 0],
            x[0, 0] + 1,
            np.sqrt(x[1, 1] * 0),
            x.max() - x.min(),
            np.float32(x[0, 0]),
        ),
        X,
    )


def test_empty():
    captured(
        lambda e: (e + 1, e.sum(), e.sum(axis=0), e.T, np.concatenate([e, e]), e.reshape(0)),
        np.empty((0, 3)),
    )


def test_transcendental():
    captured(
        lambda x: (
            np.exp(x),
            np.sin(x),
            np.cos(x),
            np.tanh(x),
            np.log1p(np.abs(x)),
            np.exp2(x),
            np.arctan(x),
        ),
        X,
        options={"numerics": "exact"},
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.reshape(5, 5),
        lambda x: x + np.ones(5),
        lambda x: np.sum(x, axis=2),
        lambda x: np.concatenate([x, x[0]]),
        lambda x: x[10],
        lambda x: x @ x,
        lambda x: np.transpose(x, (0, 0)),
        lambda x: np.squeeze(x, 0),
        lambda x: np.stack([x, x[0]]),
        lambda x: x.mean(axis=7),
        lambda x: np.broadcast_to(x, (3, 3)),
        lambda x: x.astype("f4", casting="safe"),
        lambda x: np.multiply(x.astype("f4"), 1.5, casting="equiv", out=np.zeros(x.shape, "i4")),
        lambda x: np.zeros(-1),
        lambda x: x.nothing,
        lambda x: np.argmax(x, axis=3),
        lambda x: np.moveaxis(x, 0, 9),
        lambda x: x.reshape(-1, -1),
        lambda x: np.split(x, 5),
        lambda x: np.einsum("ij,jk->ik", x, x),
        lambda x: np.where(x > 0, x, np.ones(5)),
    ],
)
def test_errors_are_numpys(fn):
    with pytest.raises(Exception) as expected:
        fn(X)
    with pytest.raises(type(expected.value)) as actual:
        compile(fn, backend="interp")(X)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: str(x.sum()),
        lambda x: x.tobytes(),
        lambda x: np.trim_zeros(x[0]),
        lambda x: np.place(x, x > 0, [1.0, 2.0]),
    ],
)
def test_what_is_left_to_numpy_is_right(fn):
    compiled = check(fn, X, backend="interp")
    assert not compiled.specializations
    assert compiled._cinductor_job.last.breaks


def test_c_backend_gives_the_same():
    def several(x, y, ints):
        return (
            SHAPE["roll"](x),
            SHAPE["pad"](x),
            REDUCE["max"](x),
            REDUCE["sum"](x),
            ELEMENTWISE["where"](x, y),
            ELEMENTWISE["inplace"](x, y),
            CREATE["arange"](x),
            PRODUCTS["einsum"](x, y),
            REDUCE["cumsum"](ints),
        )

    captured(several, X, Y, INTS, backend=None)


def test_views_are_views():
    def views(x):
        return x[1:], x.T, x.reshape(-1), x[0], np.swapaxes(x, 0, 1), np.broadcast_to(x[0], (2, 6))

    compiled = compile(views, backend="interp")
    for _ in range(2):
        x = X.copy()
        for actual, expected in zip(compiled(x), views(x), strict=True):
            assert np.shares_memory(actual, x) == np.shares_memory(expected, x)
            assert actual.strides == expected.strides
            assert actual.flags.writeable == expected.flags.writeable
            assert_same(actual, expected)


def test_layout_of_results():
    def layouts(x):
        return (
            x.T + 1,
            np.empty_like(x.T),
            x.T.copy(),
            x.T.copy(order="K"),
            x + x,
            np.zeros_like(x.T),
        )

    compiled = compile(layouts, backend="interp")
    for _ in range(2):
        for actual, expected in zip(compiled(CUBE), layouts(CUBE), strict=True):
            assert actual.strides == expected.strides
            assert actual.flags.owndata == expected.flags.owndata


def test_a_function_has_one_row():
    """A function whose NumPy source is traced has no handler, and the tables may be filled several times. The table of modules names all
    functions for which a module registers a handler.
    """
    import numpy.fft as fft  # noqa: F401

    surface.load()
    rows = [*surface.functions_by_id.items(), *surface.methods.items()]
    for module in surface.MODULES:
        importlib.import_module(f"cinductor.numpy.{module}")
    for table in (surface.functions_by_id, surface.methods):
        for key, row in table.items():
            assert (key, row) in rows, f"{row.function} is not in MODULES"
            made_in = {row.module, "surface"} if row.module else {None}
            assert getattr(row.handler, "__module__", None) is None or surface.module_of(row.handler) in made_in


def test_a_late_handler_is_in_its_module():
    """The table of late rows names all functions for which a late module registers a handler."""
    for module in {*calls.UNREAD.values()}:
        importlib.import_module(f"cinductor.capture.calls.{module}")
    calls.enter_families(frozenset(key for key, row in calls.TABLE.items() if row[1] is not calls.read_handler))
    for key, (f, handler) in calls.TABLE.items():
        module = surface.module_of(handler)
        assert calls.UNREAD.get(key, module) == module, f
        assert key in calls.UNREAD or module not in calls.UNREAD.values(), f
    before = {key: row.handler for key, row in surface.functions_by_id.items()}
    surface.load()
    assert {key: row.handler for key, row in surface.functions_by_id.items()} == before


SHAPES = [(2, 3, 1, 5), (1, 4, 1, 3), (2, 1, 1), (3, 0, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layouts_are_kept_whatever_the_strides(shape):
    """Axes of one element once changed the stride order of others, and arrays neither C nor F contiguous were left to
    NumPy.
    """

    def fn(x):
        like = np.zeros_like(x), np.ones_like(x, dtype=np.int8), np.full_like(x, x.max() if x.size else 0), np.empty_like(x)
        return *like, np.copy(x, order="K"), x.copy("A"), np.zeros_like(x, order="A"), np.ones_like(x, shape=x.shape)

    base = np.arange(float(np.prod(shape) * 2)).reshape(*shape, 2)
    for axes in itertools.permutations(range(base.ndim)):
        for x in (base.transpose(axes), base.transpose(axes)[..., ::-1], base[..., :1].transpose(axes)):
            got, want = compile(fn, fullgraph=True, backend="interp", dynamic=False)(x), fn(x)
            for i, (a, b) in enumerate(zip(got, want)):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                assert i == 3 or np.array_equal(a, b)
                assert not b.size or all(m == n for m, n, k in zip(a.strides, b.strides, b.shape) if k > 1), (x.strides, i)


def test_a_range_of_any_size_is_an_index():
    def fn(x, n):
        x[range(n), range(n)] = 0
        return x[range(1, len(x)), n]

    for n in (3, 5):
        compiled = compile(fn, fullgraph=True, backend="interp", dynamic=True)
        got, want = V7.copy(), V7.copy()
        np.testing.assert_array_equal(compiled(got, n), fn(want, n))
        np.testing.assert_array_equal(got, want)


V7 = np.arange(49.0).reshape(7, 7)


INTO = {
    "ufunc": lambda x, o: np.add(x[0], 1, out=o),
    "by position": lambda x, o: np.add(x[0], 1, o),
    "two results": lambda x, o: np.divmod(x[0], 2, out=(o, None)),
    "sum": lambda x, o: np.sum(x, out=o),
    "method": lambda x, o: x.max(out=o),
    "reduce": lambda x, o: np.add.reduce(x, out=o),
    "mean": lambda x, o: np.mean(x, out=o),
    "median": lambda x, o: np.median(x, out=o),
    "product": lambda x, o: np.dot(x, x, out=o),
    "joined": lambda x, o: np.concatenate([x[:1]], out=o),
    "taken": lambda x, o: np.take(x, 0, out=o),
}


@pytest.mark.parametrize("name", INTO)
def test_results_are_stored_in_arrays_alone(name):
    """Numbers and lists are refused as out=, also where they have the result's shape."""
    fn = INTO[name]
    compiled = compile(fn, backend="interp")
    for make in (lambda: np.array(2.0), lambda: np.float64(2.0), lambda: 2.0, lambda: [2.0], lambda: np.int64(2), lambda: np.ones(1)):
        for _ in range(2):
            found = []
            for f, o in ((fn, make()), (compiled, make())):
                try:
                    found.append(repr((f(np.arange(1.0, 4.0), o), o)))
                except (TypeError, ValueError) as error:
                    found.append((type(error), str(error)))
            assert found[0] == found[1]


def refused_keywords(function, names):
    """The parameters that NumPy's function takes by position alone, or not at all."""
    found = []
    for name in names:
        try:
            function(**{name: None})
        except TypeError as error:
            if "keyword" in str(error):
                found.append(name)
        except Exception:  # of the value, or of other arguments
            pass
    return found


def test_no_keyword_that_numpy_refuses():
    """A handler takes no argument by a keyword that NumPy's function does not have."""
    owner = np.ones((2, 2))
    surface.load()
    rows = [(row, getattr(owner, name)) for name, row in surface.methods.items() if not name.startswith("__") and hasattr(owner, name)]
    rows += [(row, row.function) for row in surface.functions_by_id.values() if not isinstance(row.function, type)]
    seen = 0
    for row, function in rows:
        if not hasattr(row.handler, "__code__"):
            continue
        taken = [p.name for p in inspect.signature(row.handler).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        taken = taken[1 + (function is not row.function) :] if taken[:1] == ["t"] else taken
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused = set(refused_keywords(function, taken)) - {name for name in taken if name.endswith("_")}
        assert not refused, (function, refused)
        seen += len(taken)
    assert seen > 200
