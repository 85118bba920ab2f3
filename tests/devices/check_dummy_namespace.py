"""Tests every name of the array API standard, version 2024.12, on arrays of the CPU and of the dummy device.

NumPy's results are the reference. Run by test_devices.py like check_dummy.py.
"""

import operator

import numpy as np
import pytest
from check_dummy import as_it_was  # noqa: F401

import cinductor

DEVICES = ("cpu", "dummy")
X = np.array([[0.5, -1.25, 2.0], [0.25, 0.75, -0.5], [1.5, 1.0, 3.0]])
Y = np.array([[1.5, 2.0, -0.5], [0.5, 1.25, 2.0], [2.5, -1.0, 0.5]])
M, N = np.array([[5, -3, 2], [7, 1, 4]]), np.array([[2, 1, 3], [3, 2, 1]])
B = X > 0.6
C = X + 1j * Y
POSITIVE = np.abs(X) + 0.5
SYMMETRIC = X @ X.T + np.eye(3)

UNARY = {
    "abs acos asin atan ceil cos exp expm1 floor isfinite isinf isnan negative positive round sign signbit sin square tan "
    "trunc reciprocal": np.clip(X, -1, 1) * 0.875,
    "acosh log log1p log2 log10 sqrt": POSITIVE + 1,
    "asinh cosh sinh tanh": X,
    "atanh": X / 4,
    "bitwise_invert": M,
    "logical_not": B,
    "conj imag real": C,
}
BINARY = {
    "add subtract multiply divide atan2 copysign equal not_equal greater greater_equal less less_equal hypot logaddexp "
    "maximum minimum nextafter": (X, Y),
    "pow": (POSITIVE, Y),
    "floor_divide remainder": (X, POSITIVE),
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift": (M, N),
    "logical_and logical_or logical_xor": (B, ~B),
    "matmul vecdot tensordot linalg.matmul linalg.vecdot linalg.tensordot linalg.outer": (X, Y),
}
CALLS = {  # name: functions of a namespace and of the arrays made from (X, Y, M, B)
    "clip": lambda xp, x, y, i, b: xp.clip(x, -0.5, 0.5),
    "where": lambda xp, x, y, i, b: xp.where(b, x, y),
    "take": lambda xp, x, y, i, b: xp.take(x, xp.asarray([0, 2]), axis=1),
    "take_along_axis": lambda xp, x, y, i, b: xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    "matrix_transpose": lambda xp, x, y, i, b: xp.matrix_transpose(x),
    "broadcast_arrays": lambda xp, x, y, i, b: list(xp.broadcast_arrays(x, y[0])),
    "broadcast_to": lambda xp, x, y, i, b: xp.broadcast_to(x[0], (4, 3)),
    "concat": lambda xp, x, y, i, b: xp.concat([x, y], axis=1),
    "stack": lambda xp, x, y, i, b: xp.stack((x, y), axis=-1),
    "unstack": lambda xp, x, y, i, b: list(xp.unstack(x)),
    "expand_dims": lambda xp, x, y, i, b: xp.expand_dims(x, axis=1),
    "squeeze": lambda xp, x, y, i, b: xp.squeeze(x[:1], axis=0),
    "flip": lambda xp, x, y, i, b: xp.flip(x, axis=0),
    "moveaxis": lambda xp, x, y, i, b: xp.moveaxis(x, 0, 1),
    "permute_dims": lambda xp, x, y, i, b: xp.permute_dims(x, (1, 0)),
    "repeat": lambda xp, x, y, i, b: xp.repeat(x, 2, axis=0),
    "reshape": lambda xp, x, y, i, b: xp.reshape(x, (9,)),
    "roll": lambda xp, x, y, i, b: xp.roll(x, 1, axis=1),
    "tile": lambda xp, x, y, i, b: xp.tile(x, (2, 1)),
    "argmax": lambda xp, x, y, i, b: xp.argmax(x, axis=1),
    "argmin": lambda xp, x, y, i, b: xp.argmin(x),
    "count_nonzero": lambda xp, x, y, i, b: xp.count_nonzero(b, axis=0),
    "nonzero": lambda xp, x, y, i, b: list(xp.nonzero(b)),
    "searchsorted": lambda xp, x, y, i, b: xp.searchsorted(xp.sort(x[0]), y[0]),
    "unique_all": lambda xp, x, y, i, b: list(xp.unique_all(i)),
    "unique_counts": lambda xp, x, y, i, b: list(xp.unique_counts(i)),
    "unique_inverse": lambda xp, x, y, i, b: list(xp.unique_inverse(i)),
    "unique_values": lambda xp, x, y, i, b: xp.sort(xp.unique_values(i)),
    "argsort": lambda xp, x, y, i, b: xp.argsort(x, axis=0),
    "sort": lambda xp, x, y, i, b: xp.sort(x, axis=0),
    "cumulative_prod": lambda xp, x, y, i, b: xp.cumulative_prod(x, axis=0),
    "cumulative_sum": lambda xp, x, y, i, b: xp.cumulative_sum(x, axis=1, include_initial=True),
    "max": lambda xp, x, y, i, b: xp.max(x, axis=0),
    "mean": lambda xp, x, y, i, b: xp.mean(x, axis=1, keepdims=True),
    "min": lambda xp, x, y, i, b: xp.min(x),
    "prod": lambda xp, x, y, i, b: xp.prod(x, axis=1),
    "std": lambda xp, x, y, i, b: xp.std(x, correction=1),
    "sum": lambda xp, x, y, i, b: xp.sum(x, dtype=xp.float32),
    "var": lambda xp, x, y, i, b: xp.var(x, axis=0),
    "all": lambda xp, x, y, i, b: xp.all(b, axis=0),
    "any": lambda xp, x, y, i, b: xp.any(b),
    "diff": lambda xp, x, y, i, b: xp.diff(x, axis=0),
    "meshgrid": lambda xp, x, y, i, b: list(xp.meshgrid(x[0], y[1], indexing="ij")),
    "tril": lambda xp, x, y, i, b: xp.tril(x, k=-1),
    "triu": lambda xp, x, y, i, b: xp.triu(x),
    "empty_like": lambda xp, x, y, i, b: xp.empty_like(x) * 0,
    "full_like": lambda xp, x, y, i, b: xp.full_like(i, 7),
    "ones_like": lambda xp, x, y, i, b: xp.ones_like(x, dtype=xp.int16),
    "zeros_like": lambda xp, x, y, i, b: xp.zeros_like(x, device=getattr(x, "device", None)),
    "astype": lambda xp, x, y, i, b: xp.astype(x, xp.float32),
    "isdtype": lambda xp, x, y, i, b: xp.isdtype(x.dtype, "real floating"),
    "can_cast": lambda xp, x, y, i, b: xp.can_cast(i.dtype, xp.float64),
    "result_type": lambda xp, x, y, i, b: xp.result_type(x, i, xp.float32),
    "finfo": lambda xp, x, y, i, b: float(xp.finfo(x.dtype).eps),
    "iinfo": lambda xp, x, y, i, b: int(xp.iinfo(xp.int32).max),
    "arange": lambda xp, x, y, i, b: xp.arange(1, 9, 2),
    "asarray": lambda xp, x, y, i, b: xp.asarray([[1, 2], [3, 4]], dtype=xp.float32),
    "empty": lambda xp, x, y, i, b: xp.empty((2, 0)),
    "eye": lambda xp, x, y, i, b: xp.eye(3, 4, k=1),
    "from_dlpack": lambda xp, x, y, i, b: xp.from_dlpack(x),
    "full": lambda xp, x, y, i, b: xp.full((2, 3), 2.5),
    "linspace": lambda xp, x, y, i, b: xp.linspace(0, 1, 5, endpoint=False),
    "ones": lambda xp, x, y, i, b: xp.ones(3, dtype=xp.int8),
    "zeros": lambda xp, x, y, i, b: xp.zeros((2, 2)),
    "linalg.cholesky": lambda xp, x, y, i, b: xp.linalg.cholesky(x @ x.T + xp.eye(3)),
    "linalg.cross": lambda xp, x, y, i, b: xp.linalg.cross(x, y),
    "linalg.det": lambda xp, x, y, i, b: xp.linalg.det(x),
    "linalg.diagonal": lambda xp, x, y, i, b: xp.linalg.diagonal(x, offset=1),
    "linalg.eigh": lambda xp, x, y, i, b: xp.linalg.eigh(x @ x.T)[0],
    "linalg.eigvalsh": lambda xp, x, y, i, b: xp.linalg.eigvalsh(x @ x.T),
    "linalg.inv": lambda xp, x, y, i, b: xp.linalg.inv(x),
    "linalg.matrix_norm": lambda xp, x, y, i, b: xp.linalg.matrix_norm(x),
    "linalg.matrix_power": lambda xp, x, y, i, b: xp.linalg.matrix_power(x, 3),
    "linalg.matrix_rank": lambda xp, x, y, i, b: xp.linalg.matrix_rank(x),
    "linalg.matrix_transpose": lambda xp, x, y, i, b: xp.linalg.matrix_transpose(x),
    "linalg.outer": lambda xp, x, y, i, b: xp.linalg.outer(x[0], y[1]),
    "linalg.pinv": lambda xp, x, y, i, b: xp.linalg.pinv(x),
    "linalg.qr": lambda xp, x, y, i, b: xp.abs(xp.linalg.qr(x)[1]),
    "linalg.slogdet": lambda xp, x, y, i, b: list(xp.linalg.slogdet(x)),
    "linalg.solve": lambda xp, x, y, i, b: xp.linalg.solve(x, y),
    "linalg.svd": lambda xp, x, y, i, b: xp.linalg.svd(x, full_matrices=False)[1],
    "linalg.svdvals": lambda xp, x, y, i, b: xp.linalg.svdvals(x),
    "linalg.trace": lambda xp, x, y, i, b: xp.linalg.trace(x),
    "linalg.vector_norm": lambda xp, x, y, i, b: xp.linalg.vector_norm(x, axis=1),
    "fft.fft": lambda xp, x, y, i, b: xp.fft.fft(x),
    "fft.ifft": lambda xp, x, y, i, b: xp.fft.ifft(x + 1j * y, n=4),
    "fft.fftn": lambda xp, x, y, i, b: xp.fft.fftn(x),
    "fft.ifftn": lambda xp, x, y, i, b: xp.fft.ifftn(x + 1j * y),
    "fft.rfft": lambda xp, x, y, i, b: xp.fft.rfft(x),
    "fft.irfft": lambda xp, x, y, i, b: xp.fft.irfft(x + 1j * y),
    "fft.rfftn": lambda xp, x, y, i, b: xp.fft.rfftn(x),
    "fft.irfftn": lambda xp, x, y, i, b: xp.fft.irfftn(x + 1j * y),
    "fft.hfft": lambda xp, x, y, i, b: xp.fft.hfft(x + 1j * y),
    "fft.ihfft": lambda xp, x, y, i, b: xp.fft.ihfft(x),
    "fft.fftfreq": lambda xp, x, y, i, b: xp.fft.fftfreq(5, d=0.5),
    "fft.rfftfreq": lambda xp, x, y, i, b: xp.fft.rfftfreq(5),
    "fft.fftshift": lambda xp, x, y, i, b: xp.fft.fftshift(x),
    "fft.ifftshift": lambda xp, x, y, i, b: xp.fft.ifftshift(x, axes=0),
    "__array_namespace_info__": lambda xp, x, y, i, b: xp.__array_namespace_info__().capabilities()["boolean indexing"],
}
# Operators and items of arrays, and what methods an array has.
OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul eq ne lt le gt ge iadd isub imul itruediv ifloordiv imod ipow".split()
)
BITS = "and or xor lshift rshift iand ior ixor ilshift irshift".split()
ITEMS = {
    "number": (1,),
    "numbers": (1, 2),
    "slices": (slice(None, None, -1), slice(0, 2)),
    "ellipsis": (..., None, 0),
    "mask": B,
    "indices": np.array([2, 0]),
    "indices of two axes": (np.array([2, 0]), np.array([1, 1])),
}


def cases():
    for names, x in UNARY.items():
        for name in names.split():
            yield name, lambda xp, *arrays, name=name, x=x: find(xp, name)(xp.asarray(x))
    for names, pair in BINARY.items():
        for name in names.split():
            if name != "linalg.outer":
                yield name, lambda xp, *arrays, name=name, pair=pair: find(xp, name)(*map(xp.asarray, pair))
    yield from CALLS.items()


def find(xp, name):
    return operator.attrgetter(name)(xp)


CASES = dict(cases())
CONSTANTS = "e inf nan newaxis pi".split()
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()


def compare(got, want, device, name):
    if isinstance(want, list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            compare(one, other, device, name)
    elif isinstance(want, np.ndarray | np.generic):
        assert type(got) is cinductor.Array and got.device == device, name
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12, err_msg=name)
    else:
        assert got == want, name


def namespace(device):
    return cinductor.to_device(X, device).__array_namespace__()


@pytest.mark.parametrize("device", DEVICES)
def test_functions(device):
    xp = namespace(device)
    arrays = [cinductor.to_device(x, device) for x in (X, Y, M, B)]
    for name, case in CASES.items():
        if name in ("cumulative_prod", "cumulative_sum", "unstack") and not hasattr(np, name):
            continue  # of NumPy 2.1 and later
        if name == "from_dlpack" and device == "dummy":
            with pytest.raises(BufferError, match="no number for device 'dummy'"):
                case(xp, *arrays)
            continue
        compare(case(xp, *arrays), case(np, X, Y, M, B), device, name)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_and_items(device):
    for names, x, y in ((OPERATORS, POSITIVE, Y + 3), (BITS, M, N)):
        for name in names:
            function = getattr(operator, f"__{name}__")
            ours, theirs = cinductor.to_device(x, device), x.copy()
            compare(function(ours, cinductor.to_device(y, device)), function(theirs, y), device, name)
            compare(ours, theirs, device, name)
    a = cinductor.to_device(X, device)
    for name, key in ITEMS.items():
        compare(a[key], np.asarray(X[key]), device, name)
        ours, theirs = cinductor.to_device(X, device), X.copy()
        ours[key], theirs[key] = 7.0, 7.0
        compare(ours, theirs, device, name)
    for function in (operator.neg, operator.pos, abs):
        compare(function(a), function(X), device, function.__name__)
    assert a.mT.shape == (3, 3) and (a.T.numpy() == X.T).all() and a.to_device(device) is a
    assert float(a[0, 0]) == 0.5 and int(a[2, 1]) == 1 and bool(a[0, 0]) and complex(a[0, 0]) == 0.5
    assert [1, 2, 3][cinductor.to_device(np.array(1), device)] == 2


@pytest.mark.parametrize("device", DEVICES)
def test_the_namespace(device):
    xp = namespace(device)
    assert xp.__array_api_version__ >= "2024.12" and xp == namespace(device)
    for name in CONSTANTS:
        assert getattr(xp, name) is getattr(np, name)
    assert all(np.dtype(getattr(xp, name)) == name for name in DTYPES)
    info = xp.__array_namespace_info__()
    assert info.default_device() == device and device in info.devices()
    assert set(info.dtypes()) == set(DTYPES) and set(info.dtypes(kind="unsigned integer")) == set(DTYPES[5:9])
    assert info.default_dtypes()["real floating"] == "f8"
    with pytest.raises(ValueError):
        cinductor.to_device(X, device).__array_namespace__(api_version="1999.1")
    a = xp.asarray(X)
    assert xp.asarray(a) is a and xp.asarray(a, copy=True) is not a and xp.astype(a, a.dtype, copy=False) is a
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(a, dtype=xp.float32, copy=False)


def test_arrays_of_the_cpu():
    """The memory is NumPy's, and results are those of the same function of ordinary arrays."""
    a = cinductor.to_device(X, "cpu")
    assert np.shares_memory(np.asarray(a), a._handle) and not np.shares_memory(np.asarray(a), X)
    assert np.asarray(a, np.float32).dtype == np.float32 and (np.from_dlpack(a) == X).all()
    assert np.shares_memory(np.from_dlpack(a), np.asarray(a)) and a.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="without a copy"):
        a.__array__(np.float32, copy=False)
    f = cinductor.compile(lambda a, k: (a, np.exp(a) * k, a.sum(), [a[0]], k))
    for k in (2, 3, np.float64(2)):
        same, scaled, total, [row], back = f(a, k)
        assert same is a and back == k
        for got, want in ((scaled, np.exp(X) * k), (total, X.sum()), (row, X[0])):
            compare(got, np.asarray(want), "cpu", "f")
    row[0] = 9.0
    assert np.asarray(a)[0, 0] == 9.0
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        cinductor.compile(lambda a: a[10])(a)
    with pytest.raises(TypeError, match="arrays of host and device together"):
        f(a, X)
    with pytest.raises(TypeError, match="arrays of cpu:0 and dummy:0 together"):
        f(a, cinductor.to_device(X, DEVICES[1]))
    with pytest.raises(ValueError, match="device is 'dummy', but an argument is an array of 'cpu'"):
        cinductor.compile(lambda a: a + 1, device="dummy")(a)
    with pytest.raises(ValueError, match="is not for other processes"):
        a.ipc_handle()
    for wrong, error in ((["a"], TypeError), ([None], TypeError)):
        with pytest.raises(error, match="cannot hold an array of dtype"):
            cinductor.to_device(np.array(wrong), "cpu")
    with pytest.raises(ValueError, match="cpu:1"):
        cinductor.to_device(X, "cpu:1")


def test_streams_of_the_cpu():
    stream = cinductor.Stream("cpu")
    with stream:
        first = stream.record()
        a = cinductor.to_device(X, "cpu") + 1
        later = stream.record()
    stream.wait(first)
    stream.synchronize(), later.synchronize(), cinductor.synchronize("cpu")
    assert first.elapsed(later) >= 0 and (a.start_copy().numpy() == X + 1).all()
    assert stream.device == cinductor.Device("cpu")
