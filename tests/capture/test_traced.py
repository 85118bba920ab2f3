"""Tests tracing through the C module alone: traced values are made by hand, and the function is not rewritten."""

import importlib.util
import operator
import sys
import warnings

import numpy as np
import pytest

import cinductor
from cinductor import _core
from cinductor.diagnosis import guard_texts

BACKEND = "interp"


def trace(fn, *args, options=None, fullgraph="", backend=BACKEND):
    """Run fn once on traced arguments. Return (tracer, real result, specialization or None)."""
    tracer = _core.Tracer(fn.__name__, options=options or {}, backend=backend, fullgraph=fullgraph)
    tracer.rent = -1.0  # pieces are built at once
    sources, checks, traced = [], [], []
    for k, value in enumerate(args):
        sources.append(("arg", k))
        if type(value) is np.ndarray:
            checks.append((k, "array", value.dtype, value.shape, value.strides, value.flags.writeable, value.flags.aligned))
            traced.append(tracer.array(value, k))
        elif isinstance(value, np.generic):
            checks.append((k, "type", type(value)))
            traced.append(tracer.scalar(value, k))
        else:
            checks.append((k, "float" if type(value) is float else "complex"))
            traced.append(tracer.scalar(value, k))
    result = fn(*traced)
    for source, value in tracer.specialized:
        checks.append((source, "equals", value))
    real, specialization = tracer.finish(sources, checks, result)
    return tracer, real, specialization


def replayer(fn, specialization, n):
    def miss(function, bound, args, kwargs):
        raise AssertionError(specialization.why_not(bound))

    compiled = _core.CompiledFunction(fn, tuple(f"a{k}" for k in range(n)), (1,) * n, (_core.MISSING,) * n, miss)
    compiled.add(specialization)
    return compiled


def copy_of(value):
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def same(got, want):
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        np.testing.assert_array_equal(got, want)
    elif isinstance(want, (float, complex, np.generic)):
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want


def check(fn, *args, replay=True, breaks=0):
    """fn gives the same traced, replayed and in NumPy, and changes its arguments in the same way."""
    with np.errstate(all="ignore"):
        want_args = [copy_of(a) for a in args]
        want = fn(*want_args)
        first_args = [copy_of(a) for a in args]
        tracer, got, spec = trace(fn, *first_args)
        same(got, want)
        same(first_args, want_args)
        assert len(tracer.breaks) == breaks, [b.reason for b in tracer.breaks]
        if replay and breaks == 0:
            assert spec is not None
            compiled = replayer(fn, spec, len(args))
            for _ in range(2):
                again = [copy_of(a) for a in args]
                same(compiled(*again), want)
                same(again, want_args)
    return tracer, got, spec


A = np.arange(12.0).reshape(3, 4) - 5
B = np.linspace(0.5, 2.0, 4)
INTS = np.arange(-6, 6).reshape(3, 4)
F32 = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
Z = A + 1j * A[::-1]


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt, operator.le,
          operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_operators(op):
    check(lambda x, y: op(x, y), A, B)
    check(lambda x: op(x, 3), A)
    check(lambda x: op(2.5, x), A)
    check(lambda x: op(x, 3), INTS)
    check(lambda x: op(x, np.float64(1.5)), F32)
    check(lambda x: op(x, 1.5), F32)
    check(lambda x, s: op(x, s), F32, 0.75)
    check(lambda x: op(x, np.array([1.0, 2.0, 3.0, 4.0]).tolist()), A)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bit_operators(op):
    check(lambda x: op(x, 3), INTS)
    check(lambda x, y: op(x > 0, y > 1), A, B)


def test_shifts_and_unary():
    check(lambda x: (x << 2, x >> 1, ~x, -x, +x, abs(x)), INTS)
    check(lambda x: (-x, +x, abs(x)), F32)
    check(lambda x: ~(x > 0), A)


def test_divmod():
    check(lambda x, y: divmod(x, y), A, B)
    check(lambda x: np.divmod(x, 3), INTS)


@pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3, 0.5, 1.0, 2.0, -1.0, 2.5])
def test_power(exponent):
    check(lambda x: x**exponent, np.abs(A) + 1)
    check(lambda x: x**exponent, np.abs(F32) + 1)
    if isinstance(exponent, int) and exponent >= 0:
        check(lambda x: x**exponent, INTS)


def test_negative_int_power_raises():
    """The original function raises; the program only stops."""
    with pytest.raises(ValueError, match="negative integer powers"):
        cinductor.compile(lambda x: x**-2, backend=BACKEND)(INTS)


def test_kinds():
    check(lambda x: x[0, 1], A)
    check(lambda x: x[0, 1] * 2, A)
    check(lambda x: np.add.reduce(x, axis=None), A)
    check(lambda x: x[0, ...], A)
    check(lambda x: x[1, 2, ...], A)
    check(lambda x: x[..., 0][0], A)
    check(lambda x: np.sin(x[0, 0]), F32)
    check(lambda x: np.asarray(3.0) + x[0, 0] if False else x[0, 0] + 1, F32)
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    x = tracer.array(A, 0)
    assert isinstance(x, np.ndarray) and isinstance(x[0, 0], np.float64) and not isinstance(x[0, 0], np.ndarray)
    assert (x.kind, x[0, 0].kind, (x > 1).dtype, x.T.shape, x.size, len(x)) == ("array", "scalar", np.dtype(bool), (4, 3), 12, 3)
    assert hasattr(x, "searchsorted") and not hasattr(x, "nothing")
    with pytest.raises(AttributeError, match="'numpy.ndarray' object has no attribute 'nothing'"):
        _ = x.nothing


INDICES = [
    (1,), (-1,), (slice(None),), (slice(1, None),), (slice(None, None, -1),), (slice(None), slice(None, None, 2)), (slice(3, 0, -2), 1),
    (None, slice(None), 0), (Ellipsis, 1), (0, Ellipsis), (slice(5, 9),), (Ellipsis,), (), (slice(None), None), (np.int64(2),), (slice(2, 1), 0),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_basic_indexing(index):
    check(lambda x: x[index], A)
    check(lambda x: x[index] + 1, A)
    check(lambda x: (x * 2)[index], A)
    check(lambda x: (x.T * 2)[index], A.T.copy().T)


@pytest.mark.parametrize("index", [(3,), (0, 4), (0, 0, 0), (Ellipsis, Ellipsis), "a", 1.0, (slice(None, None, 0),), (-4,)])
def test_index_errors_are_numpys(index):
    with pytest.raises((IndexError, ValueError)) as want:
        A[index]
    with pytest.raises(type(want.value)) as got:
        trace(lambda x: x[index], A.copy())
    assert str(got.value) == str(want.value)


def test_views_of_arguments_are_views():
    x = A.copy()
    _, got, spec = trace(lambda x: (x[1:], x, x.T, x[1:]), x)
    assert got[1] is x and got[0].base is x and np.shares_memory(got[2], x)
    again = replayer(None, spec, 1)(x)
    assert again[1] is x and again[0].base is x and again[2].strides == x.T.strides


def test_views_of_results_share():
    def f(x):
        y = x * 2
        return y, y[1:]

    _, got, spec = trace(f, A.copy())
    assert got[1].base is got[0]
    again = replayer(f, spec, 1)(A)
    assert again[1].base is again[0] and again[0].base is None and again[0].flags.owndata


def test_fresh_results_do_not_share():
    def f(x):
        return x + 1, x + 1, +x, x * 1

    x = A.copy()
    _, got, spec = trace(f, x)
    for results in (got, replayer(f, spec, 1)(x)):
        for k, r in enumerate(results):
            assert not np.shares_memory(r, x)
            assert not any(np.shares_memory(r, other) for other in results[k + 1 :])


def test_one_object_twice():
    def f(x):
        y = x + 1
        z = y[1:]
        return y, y, z, z, [y]

    _, got, spec = trace(f, A.copy())
    for r in (got, replayer(f, spec, 1)(A)):
        assert r[0] is r[1] and r[2] is r[3] and r[4][0] is r[0]


def test_writes_to_arguments():
    def f(x, y):
        x[1:] += y
        x[0] = 7
        x *= 2
        x[:, 1] = x[:, 0]

    check(f, A, B)


def test_writes_through_views():
    def f(x):
        v = x[::2]
        w = v.T
        w[0] = 100
        v += 1
        return v, x * 1, w

    check(f, A)


def test_swap_of_rows():
    def f(x):
        t = x * 1
        x[0], x[1] = t[1], t[0]
        x[1:] = x[:-1]
        return x[0, 0]

    check(f, A)


def test_writes_to_locals():
    def f(x):
        y = x * 1
        y[0] = 3
        y[y.shape[0] - 1] = x[0]
        y[:, ::2] -= 1.5
        return y

    check(f, A)
    check(f, F32)


def test_write_errors():
    x = A.copy()
    x.flags.writeable = False
    for write in (lambda x: x.__setitem__(0, 1.0), lambda x: x.__iadd__(1)):
        with pytest.raises(ValueError) as want:
            write(x)
        with pytest.raises(ValueError) as got:
            trace(write, x)
        assert str(got.value) == str(want.value)
    for write in (lambda x: x.__setitem__(0, np.zeros(5)), lambda x: x.__setitem__(slice(0, 2), np.zeros((3, 4)))):
        with pytest.raises(ValueError) as want:
            write(A.copy())
        with pytest.raises(ValueError) as got:
            trace(write, A.copy())
        assert str(got.value) == str(want.value)


def test_in_place_casting_error():
    with pytest.raises(TypeError) as want:
        operator.iadd(INTS.copy(), 1.5)
    with pytest.raises(TypeError) as got:
        trace(lambda x: operator.iadd(x, 1.5), INTS.copy())
    assert str(got.value) == str(want.value) and type(got.value) is type(want.value)


def test_broadcast_error():
    with pytest.raises(ValueError) as want:
        A + np.zeros(3)
    with pytest.raises(ValueError) as got:
        trace(lambda x, y: x + y, A, np.zeros(3))
    assert str(got.value) == str(want.value)


def test_overflowing_python_int():
    with pytest.raises(OverflowError) as want:
        np.zeros(3, np.uint8) + 300
    with pytest.raises(OverflowError) as got:
        trace(lambda x: x + 300, np.zeros(3, np.uint8))
    assert str(got.value) == str(want.value)


def ufunc_cases():
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc) and ufunc.nin <= 2 and ufunc.signature is None and name == ufunc.__name__:
            yield ufunc


@pytest.mark.parametrize("ufunc", list(ufunc_cases()), ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint32, np.int64, np.float16, np.float32, np.float64, np.complex128])
def test_ufuncs(ufunc, dtype):
    x = (np.arange(1, 9) % 5 + 1).astype(dtype)
    y = (np.arange(8, 0, -1) % 3 + 1).astype(dtype)
    args = [x, y][: ufunc.nin]
    try:
        with np.errstate(all="ignore"):
            want = ufunc(*args)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)) as got:
            trace(lambda *a: ufunc(*a), *args)
        assert str(got.value) == str(error)
        return
    with np.errstate(all="ignore"):
        tracer, got, _ = trace(lambda *a: ufunc(*a), *args, options={"numerics": "exact"})
    wants, gots = (want, got) if ufunc.nout == 2 else ((want,), (got,))
    for w, g in zip(wants, gots):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(g, w)
    for b in tracer.breaks:
        assert ufunc.__name__ in b.reason


def test_ufunc_keywords():
    check(lambda x, y: np.add(x, y, out=x), A, B)
    check(lambda x, y, z: np.multiply(x, y, out=z[1:]), A[1:], B, A)
    check(lambda x, y: np.add(x, y, dtype=np.float32, casting="same_kind"), A, B)
    check(lambda x, y, z: np.add(x, y, where=x > 0, out=z), A, B, A * 3)
    check(lambda x, z: np.sqrt(x, out=z), np.abs(A), F32.copy())
    check(lambda x, q, r: np.divmod(x, 2, out=(q, r)), A, A * 0, A * 0)
    with pytest.raises(TypeError) as want:
        np.add(A, 1, out=INTS.copy())
    with pytest.raises(TypeError) as got:
        trace(lambda x, z: np.add(x, 1, out=z), A, INTS.copy())
    assert str(got.value) == str(want.value)
    with pytest.raises(ValueError) as want:
        np.add(A, 1, out=np.zeros(3))
    with pytest.raises(ValueError) as got:
        trace(lambda x, z: np.add(x, 1, out=z), A, np.zeros(3))
    assert str(got.value) == str(want.value)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce(axis, keepdims):
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and):
        for x in (A, INTS, F32):
            check(lambda x, u=ufunc: u.reduce(x, axis=axis, keepdims=keepdims), x)
    check(lambda x: np.add.reduce(x > 0, axis=axis, keepdims=keepdims), A)
    check(lambda x: np.add.reduce(x.astype(np.float32) if False else x, axis=axis, initial=5, where=[True, False, True, True]), A)


def test_reduce_errors():
    for call in (lambda x: np.add.reduce(x, axis=2), lambda x: np.maximum.reduce(x[:0], axis=0), lambda x: np.add.reduce(x, axis=(0, 0))):
        with pytest.raises(ValueError) as want:
            call(A)
        with pytest.raises(ValueError) as got:
            trace(call, A)
        assert str(got.value) == str(want.value)


def test_accumulate_and_outer():
    check(lambda x: (np.add.accumulate(x, axis=1), np.multiply.accumulate(x), np.maximum.accumulate(x, axis=0)), A)
    check(lambda x, y: np.multiply.outer(x, y), A, B)
    check(lambda x: np.subtract.outer(x, 1.0), B)


def test_matmul():
    check(lambda x, y: x @ y, A, A.T.copy())
    check(lambda x, y: x @ y, A, B)
    check(lambda x, y: x @ y, B, B)
    check(lambda x, y: np.matmul(x, y), np.stack([A, A]), A.T.copy())
    check(lambda x, y: x @ y, INTS, F32.T.copy())
    with pytest.raises(ValueError) as want:
        A @ A
    with pytest.raises(ValueError) as got:
        trace(lambda x, y: x @ y, A, A + 1)
    assert str(got.value) == str(want.value)


def test_complex_parts():
    check(lambda z: (z.real + 1, z.imag * 2, z.conj() if False else np.conjugate(z)), Z)
    check(lambda z: z.real, Z)
    check(lambda z: z.imag[1:], Z)
    check(lambda x: x.real, A)
    _, got, _ = trace(lambda z: z.real, Z)
    assert got.base is Z

    def write(z):
        z.imag[0] = 3
        return z * 1

    check(write, Z, breaks=1)


def test_python_scalars_stay_values():
    def f(x, s, t):
        u = s * t + 1
        return x * u, u, s, -s, u > 0

    tracer, _, spec = check(f, A, 0.5, 2.0)
    assert tracer.specialized == []
    compiled = replayer(f, spec, 3)
    same(compiled(A, 3.0, -4.5), f(A, 3.0, -4.5))


def test_python_scalars_specialise_when_demanded():
    def f(x, s):
        return x * 2 if s > 1 else x * 3

    tracer, _, spec = trace(f, A, 0.5)
    assert tracer.specialized == [(1, 0.5)]
    assert spec.why_not((A, 0.25)) is not None and spec.why_not((A, 0.5)) is None
    tracer, got, spec = trace(lambda s: s / 0.0 if s > 3 else s**0.5, 2.0)
    assert got == 2.0**0.5 and tracer.specialized == [(0, 2.0)]
    with pytest.raises(ZeroDivisionError):
        trace(lambda s: s / 0.0, 2.0)


def test_numpy_scalar_arguments():
    check(lambda x, s: (x * s, s + 1, s), F32, np.float64(0.3))
    check(lambda x, s: x + s, F32, np.float32(0.3))


def test_breaks():
    def f(x):
        y = x * 2
        if y[0, 0] > 0:
            return y + 1
        return y - float(y[1, 1])

    tracer, got, spec = trace(f, A.copy())
    same(got, f(A))
    assert spec is None and tracer.needs_python and len(tracer.breaks) == 2
    assert all(b.file == __file__ and b.line > 0 for b in tracer.breaks)
    with pytest.raises(_core.Unsupported, match="test_traced.py"):
        trace(f, A.copy(), fullgraph="fullgraph=True")


def test_a_name_of_an_attribute_is_a_text():
    def f(x):
        for ask in (lambda: type(x).__setattr__(x, 5, 1), lambda: type(x).__getattribute__(x, 5)):
            with pytest.raises(TypeError, match="attribute name must be string, not 'int'"):
                ask()
        return x + 1

    same(trace(f, A.copy())[1], A + 1)


def test_classes_are_not_changed():
    classes = [value for value in vars(_core).values() if isinstance(value, type) and not issubclass(value, BaseException)]
    assert len(classes) > 12
    for cls in classes:
        with pytest.raises(TypeError, match="immutable type"):
            cls.__doc__ = "another"
            raise AssertionError(cls)


def test_segments_are_found_again():
    def f(x):
        m = float(x[0, 0])
        return x * m + 1

    trace(f, A.copy())
    for k in range(3):
        tracer, got, _ = trace(f, A + k)
        same(got, f(A + k))
        assert tracer.info == {}, "nothing was compiled"


def test_numbers_that_python_computes_are_no_constants():
    def f(x):
        m, n, k = float(x[0, 0]), int(x[1, 1]), x[2, 2]
        y = x * m + n - k
        y[0] = n
        y[1] = m
        return y

    trace(f, A.copy())
    for shift in range(3):
        tracer, got, _ = trace(f, A + shift)
        same(got, f(A + shift))
        assert tracer.info == {}, "nothing was compiled"


@pytest.mark.skipif(_core.backends()[0][3] is not None, reason="no C compiler: everything is interpreted")
def test_segments_that_differ_for_ever_are_interpreted():
    def differing(x):
        return x[: int(x[0])] + 1

    x = np.zeros(200)
    with pytest.warns(RuntimeWarning, match="the limit"):
        for n in range(12):
            x[0] = n
            same(trace(differing, x.copy(), options={"recompile_limit": 1}, backend="c")[1], differing(x))


def test_unknown_functions_run_in_numpy():
    def f(x):
        y = x * 2
        z = np.ediff1d(y)
        y[0] = 1
        return z + 1, y, np.resize(y, 3)

    tracer, got, spec = trace(f, A.copy())
    same(got, f(A))
    assert spec is None and tracer.breaks


def test_advanced_indexing():
    importlib.import_module("cinductor.capture.session")  # handlers for keys of arrays

    def f(x, i):
        y = x * 2
        y[y > 3] = 0
        return y[[0, 2]] + y[i], y[i, 1]

    tracer, got, _ = trace(f, A.copy(), np.array([1, 0]))
    same(got, f(A, np.array([1, 0])))
    assert not tracer.breaks


def test_overlapping_arguments():
    def f(x, y):
        x += 1
        y *= 2
        x[0] = 0
        return x + y

    def both(run):
        base = np.arange(10.0)
        return run(f, base[:6], base[4:]), base

    want = both(lambda fn, *a: fn(*a))
    got = both(lambda fn, *a: trace(fn, *a)[1])
    same(got, want)


def test_demand_in_the_middle_keeps_writes():
    def f(x):
        x[0] = 5
        s = float(x[0, 0])
        x[1] = s + 1
        return x

    x = A.copy()
    _, got, _ = trace(f, x)
    assert got is x
    same(x, f(A.copy()))


def test_containers():
    import collections

    Pair = collections.namedtuple("Pair", "a b")

    def f(x):
        y = x + 1
        return {"k": [y, (y[0], 3)], "p": Pair(y, None), "e": [], "n": 1.5}

    _, got, spec = trace(f, A.copy())
    for r in (got, replayer(f, spec, 1)(A)):
        assert list(r) == ["k", "p", "e", "n"] and type(r["p"]) is Pair
        assert r["p"].a is r["k"][0] and r["p"].b is None and r["n"] == 1.5
        same(r["k"], [A + 1, ((A + 1)[0], 3)])
    first, second = replayer(f, spec, 1)(A), replayer(f, spec, 1)(A)
    assert first["e"] is not second["e"]


def test_reached_objects_are_returned_as_themselves():
    config = {"alpha": 2.0}
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    x = tracer.array(A, 0)
    check_array = (0, "array", A.dtype, A.shape, A.strides, True, True)
    real, spec = tracer.finish([("arg", 0), ("arg", 1)], [check_array, (1, "keys", dict, ("alpha",))], (x + 1, config), {id(config): 1})
    assert real[1] is config
    other = {"alpha": 5}
    assert replayer(None, spec, 2)(A, other)[1] is other
    assert "keys" in spec.why_not((A, {"beta": 1}))


def test_guards():
    class Thing:
        pass

    thing = Thing()
    thing.w = B
    names = {"G": A}
    cell = (lambda: names).__closure__[0]
    sources = [("arg", 0), ("attr", 0, "w"), ("global", names, "G"), ("cell", cell), ("item", 3, "G"), ("const", 5)]
    checks = [
        (0, "type", Thing), (1, "array", B.dtype, B.shape, B.strides, True, True), (2, "array", A.dtype, A.shape, A.strides, True, True),
        (3, "is", names), (4, "same", 2), (5, "equals", 5), ("names", names, ("H", _core.MISSING)), ("disjoint", (1,), (2,)),
    ]
    tracer = _core.Tracer("f", options={}, backend=BACKEND)
    result = tracer.array(A, 2) + tracer.array(B, 1)
    _, spec = tracer.finish(sources, checks, result)
    assert spec.why_not((thing,)) is None
    assert len(spec.guards) == len(checks)
    same(replayer(None, spec, 1)(thing), A + B)
    for change, word in [
        (lambda: setattr(thing, "w", B.astype(np.float32)), "float32"),
        (lambda: names.__setitem__("G", A[::2]), "shape"),
        (lambda: names.__setitem__("H", 1), "H is set"),
        (lambda: setattr(thing, "w", A[0]), "shares memory"),
        (lambda: delattr(thing, "w"), "missing"),
    ]:
        change()
        assert word in spec.why_not((thing,)), word
        thing.w = B
        names["G"] = A
        names.pop("H", None)
    assert "Thing" in spec.why_not((3,))


def test_compiled_function_binding():
    def fn(a, /, b, *rest, c=3, **more):
        return a, b, rest, c, more

    calls = []

    def miss(function, bound, args, kwargs):
        calls.append((bound, args, kwargs))
        return bound

    M = _core.MISSING
    f = _core.CompiledFunction(fn, ("a", "b", "rest", "c", "more"), (0, 1, 2, 3, 4), (M, M, M, 3, M), miss)
    assert f(1, 2) == (1, 2, (), 3, {})
    assert f(1, b=2, d=4) == (1, 2, (), 3, {"d": 4})
    assert f(1, 2, 5, 6, c=7) == (1, 2, (5, 6), 7, {})
    for bad in ((), (1,)):
        with pytest.raises(TypeError, match="missing"):
            f(*bad)
    assert f.calls == 5
    f.note = 1
    assert f.__dict__ == {"note": 1}

    class C:
        m = f

    c = C()
    assert c.m(2)[:2] == (c, 2)
    f.stance = 1
    assert f(1, 2) == fn(1, 2)
    f.stance = 3
    with pytest.raises(RuntimeError, match="fail_on_recompile"):
        f(1, 2)


def test_python_wrapper_agrees():
    def f(x, y, s):
        z = x @ y
        x[0] = s
        return z.T[1:], np.exp(z).sum() if False else np.add.reduce(np.exp(z * 0.01), axis=1, keepdims=True), s * 2, x[0, 0] + 1

    want_args = [A.copy(), A.T.copy(), 0.5]
    want = f(*want_args)
    for options in ({}, {"wrapper": "python"}):
        args = [A.copy(), A.T.copy(), 0.5]
        _, got, spec = trace(f, *args, options=options)
        same(got[0], want[0])
        same(got[1:], want[1:])
        same(args, want_args)
        again = [A.copy(), A.T.copy(), 0.5]
        same(replayer(f, spec, 3)(*again), want)
        same(again, want_args)
        assert "def call(" in spec.program.text("wrapper")


def test_texts():
    _, _, spec = trace(lambda x: np.add.reduce(x * 2, axis=0), A)
    for level in ("graph", "loops", "kernels", "wrapper", "json"):
        assert spec.program.text(level)
    assert "test_traced.py" in spec.program.text("graph")
    with pytest.raises(ValueError, match="no text"):
        spec.program.text("nothing")


def test_unknown_option():
    with pytest.raises(ValueError, match="no option 'nothing'"):
        _core.Tracer("f", options={"nothing": 1})


def test_float_warnings_on_replay():
    def f(x):
        return 1.0 / x

    x = np.ones(4)
    _, _, spec = trace(f, x)
    compiled = replayer(f, spec, 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        compiled(np.zeros(4))
        compiled(np.zeros(4))
    assert [str(w.message) for w in seen] == ["divide by zero encountered in divide"] * 2
    with np.errstate(divide="raise"):
        _, _, spec = trace(f, x)
        with pytest.raises(FloatingPointError):
            replayer(f, spec, 1)(np.zeros(4))


def test_traced_value_after_its_call():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x + 1

    trace(f, A.copy())
    with pytest.raises(_core.CinductorError):
        kept[0] + 1


def test_surface():
    def total(tracer, args, kwargs):
        return tracer.as_scalar(tracer.reduce("sum", args[0], range(args[0].ndim)))

    def method(tracer, self, args, kwargs):
        return total(tracer, (self,), {})

    table = {np.sum: total}
    before = _core.set_surface(table, {"sum": method, "dot": lambda *a: NotImplemented})
    try:
        check(lambda x: (np.sum(x), x.sum()), A)
        tracer, got, _ = trace(lambda x: x.dot(x.T), A.copy())
        same(got, A.dot(A.T))
        assert "dot" in tracer.breaks[0].reason
    finally:
        assert _core.set_surface(before[0] or {}, before[1] or {})[0] is table


def test_builders():
    def f(x):
        t = x.tracer
        return (
            t.full((2, 3), 7, "i4"), t.iota((3, 2), 1), t.concat([x, x], 1), t.copy(x, "F"), t.cast(x, "f4"), t.expand(x[0], (2, 4)),
            t.diagonal(x, 0, 1, 1), t.permute(x, (1, 0)), t.reshape(x, (-1,)), t.reshape(x.T, (-1,)), t.scan("cumsum", x, 0),
            t.apply("where", x > 0, x, 0.0), t.slice(x, [2, 0], [-1, 2], [3, 2]),
        )

    x = A.copy()
    want = (
        np.full((2, 3), 7, "i4"), np.indices((3, 2))[1], np.concatenate([x, x], 1), x.copy("F"), x.astype("f4"), np.broadcast_to(x[0], (2, 4)),
        x.diagonal(1), x.T, x.reshape(-1), x.T.reshape(-1), np.cumsum(x, 0), np.where(x > 0, x, 0.0), x[2::-1, :3:2],
    )
    _, got, spec = trace(f, x)
    for r in (got, replayer(f, spec, 1)(x)):
        for g, w in zip(r, want):
            same(np.ascontiguousarray(g), np.ascontiguousarray(w))
            assert g.strides == w.strides or g is r[1], (g.strides, w.strides)


def test_extern():
    def f(x):
        return x.tracer.extern("twice", "k", lambda a, out: np.multiply(a, 2, out=out), [x + 1], x.shape, x.dtype) + 1

    _, got, spec = trace(f, A.copy())
    same(got, (A + 1) * 2 + 1)
    same(replayer(f, spec, 1)(A), (A + 1) * 2 + 1)

    def g(x):
        def fail(a, out):
            raise np.linalg.LinAlgError("Singular matrix")

        return x.tracer.extern("fail", "", fail, [x], x.shape, x.dtype)

    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        trace(g, A.copy())


def test_iteration_and_unpacking():
    check(lambda x: sum(row for row in x), A)

    def f(x):
        a, b, c = x
        return a + b * c

    check(f, A)
    with pytest.raises(TypeError, match="0-d"):
        trace(lambda x: list(x[0, 0, ...]), A)


def test_compile_text():
    text = "graph f(in0: f64[3], n1: python f64) { %0: f64[3] = multiply(in0, n1) return %0 }"
    text = "graph f(in0: f64[3]) {\n  %0: f64[3] = add(in0, in0)\n  return %0\n}\n"
    values, program = _core.compile_text(text, [np.arange(3.0)], options={}, backend=BACKEND)
    same(values[0], np.arange(3.0) * 2)
    assert program.kernels == 1


def random_program(seed):
    """Views, writes through them, in-place operators, products of both, and sometimes a conversion to a Python value.
    """

    def program(*args):
        rng = np.random.default_rng(seed)
        live = list(args)
        for _ in range(14):
            x = live[rng.integers(len(live))]
            y = live[rng.integers(len(live))]
            step = rng.integers(14)
            if step == 0:
                live.append(x.T)
            elif step == 1 and x.ndim:
                live.append(x[:: rng.choice([1, 2, -1, -2])])
            elif step == 2 and x.ndim and x.shape[0]:
                live.append(x[int(rng.integers(x.shape[0]))] if x.ndim > 1 else x[1:])
            elif step == 3 and x.ndim:
                live.append(x[..., None, :])
            elif step == 4 and x.ndim:
                x[..., : max(x.shape[-1] // 2, 1)] = float(rng.integers(9))
            elif step == 5 and x.ndim:
                x += 1
            elif step == 6 and x.ndim:
                x *= 0.5
            elif step == 7 and x.ndim and x.shape == y.shape:
                x[...] = y[::-1]
            elif step == 8 and x.ndim and x.shape == y.shape:
                x -= y
            elif step == 9:
                live.append(x + 1)
            elif step == 10 and x.shape == y.shape:
                live.append(np.maximum(x, y) * 2)
            elif step == 11 and x.ndim > 1:
                live.append(np.add.reduce(x, axis=int(rng.integers(x.ndim)), keepdims=bool(rng.integers(2))))
            elif step == 12 and x.ndim and seed % 3 == 0:
                x[...] = x + float(np.add.reduce(y, axis=None))
            elif step == 13 and x.ndim and x.size:
                x[(0,) * x.ndim] = 4
            live = [v for v in live if v.size and v.ndim < 6][-8:]
        return live

    return program


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed):
    program = random_program(seed)
    args = [A.copy(), np.asfortranarray(A) * 3, A[:, ::2] * 7, B.copy()]
    want_args = [copy_of(a) for a in args]
    want = program(*want_args)
    got_args = [copy_of(a) for a in args]
    tracer, got, spec = trace(program, *got_args)
    runs = [(got, got_args)]
    if spec is not None:
        again = [copy_of(a) for a in args]
        runs.append((replayer(program, spec, len(args))(*again), again))
    for results, arguments in runs:
        for k, (g, w) in enumerate(zip(arguments, want_args)):
            np.testing.assert_array_equal(g, w, err_msg=f"argument {k}")
        assert len(results) == len(want)
        for k, (g, w) in enumerate(zip(results, want)):
            assert type(g) is type(w) and g.shape == w.shape and g.dtype == w.dtype
            np.testing.assert_array_equal(g, w, err_msg=f"result {k}")
            if isinstance(w, np.ndarray):
                assert [s for s, n in zip(g.strides, g.shape) if n > 1] == [s for s, n in zip(w.strides, w.shape) if n > 1]
        for i, w in enumerate(want):
            for j in range(i):
                if isinstance(w, np.ndarray) and isinstance(want[j], np.ndarray):
                    assert np.shares_memory(results[i], results[j]) == np.shares_memory(w, want[j]), (i, j)


def why_no_allocation_fails():
    if importlib.util.find_spec("_testcapi") is None:
        return "this Python was installed without its test API"
    if sys.version_info >= (3, 12):
        return "Python 3.12 and 3.13 free the constants of a function that they have no memory to make"
    return ""


FAILING_ALLOCATIONS = pytest.mark.skipif(bool(why_no_allocation_fails()), reason=why_no_allocation_fails())


@FAILING_ALLOCATIONS
def test_long_chains_of_numbers_are_released():
    """A chain of a million numbers is freed without a million nested calls."""
    tracer = _core.Tracer("f", options={"node_limit": 2_000_000}, backend=BACKEND)
    number = tracer.scalar(1.5, 0)
    for _ in range(1_000_000):
        number = number + 1.5
    assert number.known() == 1_500_001.5
    del number


def test_every_failing_allocation_is_a_memory_error(monkeypatch):
    import _testcapi

    swallowed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hidden: swallowed.append(hidden.err_msg))
    for name in ("guards", "why_not"):  # Python's re, which writes their words, crashes without memory from 3.12 on
        monkeypatch.setattr(guard_texts, name, lambda rows, *_: str(rows))

    def f(x, y):
        z = x * y + 1
        x[0] = 2.0
        return [z, z[1:], {"a": z[1:].T}, np.add.reduce(z, axis=0), divmod(x, y), x**2, x[None, :, 1], (x, y)]

    def run():
        x = A.copy()
        _, got, spec = trace(f, x, B)
        compiled = replayer(f, spec, 2)
        compiled(x, a1=B)
        return spec.why_not((B, A)), spec.guards

    run()
    site = clean = 0
    while clean < 40:
        _testcapi.set_nomemory(site, site + 1)
        try:
            run()
            clean += 1
        except MemoryError:
            clean = 0
        finally:
            _testcapi.remove_mem_hooks()
        site += 1
    assert site > 100
    assert not swallowed


@FAILING_ALLOCATIONS
def test_stores_are_made_once_whichever_allocation_fails():
    """A first call that fails after its stores is not run again by NumPy."""
    import _testcapi

    def count(x, counts):
        counts[0] = counts[0] + x.sum()
        return x * 2

    cinductor.compile(count, backend="interp", mode="now")(np.arange(4.0), [0.0])  # calls Python's compiler, which may crash without memory
    for site in range(0, 6000, 15):
        compiled, counts = cinductor.compile(count, backend="interp", mode="now"), [0.0]
        _testcapi.set_nomemory(site, site + 1)
        try:
            compiled(np.arange(4.0), counts)
        except MemoryError:
            pass
        finally:
            _testcapi.remove_mem_hooks()
        assert counts[0] in (0.0, 6.0), site


@FAILING_ALLOCATIONS
@pytest.mark.usefixtures("pieces_are_compiled")
def test_every_failing_allocation_in_a_failing_check_is_a_memory_error():
    """The exception of the check is neither lost nor shown to the user."""
    import _testcapi

    def count(a, k):
        found = np.zeros(k, dtype=np.int64)
        for x in a:
            found[int(x)] += 1
        return found

    compiled = cinductor.compile(count, backend="interp")
    a = np.arange(3.0)
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled(a, 2)
    for site in range(60):
        with pytest.raises((IndexError, MemoryError)):
            _testcapi.set_nomemory(site, site + 1)
            try:
                compiled(a, 2)
            finally:
                _testcapi.remove_mem_hooks()
