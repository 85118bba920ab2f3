"""Tests a device that is registered from outside of the tree. test_devices.py runs this file in its own process,
because a registered device cannot be removed.
"""

import ctypes
import gc
import json
import operator
import os
import pickle
import subprocess
import sys
import threading
import warnings

import cinductor_dummy as dummy
import device_objects
import numpy as np
import programs
import pytest
import test_op_matrix
import test_programs

import cinductor
from cinductor.calls import saved

DEVICE = dummy.register()
PROGRAMS = programs.load()
ALWAYS = {"offload": "always"}
EVERYTHING = "CINDUCTOR_FUZZ" in os.environ


@pytest.fixture(autouse=True)
def as_it_was():
    """Check that no block, delay or failure setting is left after a test."""
    yield
    dummy.set_delay(0)
    dummy.set_failing(None)
    gc.collect()
    for device in cinductor.devices("dummy"):
        cinductor.synchronize(device)
    assert dummy.counts()["live"] == 0


def test_kernels_of_ones_own_are_the_hosts():
    doubled = cinductor.kernel("out[i] = 2 * x[i];", reads="x: f64[n]", writes="out: f64[n]", grid="i: n")

    def program(x):
        return doubled(x + 1)[::-1] - x

    x = np.arange(50.0)
    got = cinductor.compile(program, device="dummy", options=ALWAYS)(cinductor.to_device(x, "dummy"))
    np.testing.assert_array_equal(got.numpy(), program(x))


@pytest.mark.parametrize("mode", ["auto", "lazy", "now"])
def test_arrays_of_the_device_are_computed_there_in_every_mode(mode):
    """NumPy cannot run their calls, so no mode waits for it, and none asks for NumPy's bits."""
    compiled, x = cinductor.compile(lambda x: np.exp(x) * 2 + 1, mode=mode), np.arange(50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            before = dummy.counts()["launch"]
            got = compiled(cinductor.to_device(x, "dummy"))
            assert dummy.counts()["launch"] > before
            np.testing.assert_allclose(got.numpy(), np.exp(x) * 2 + 1)
        got[0] = 3.0  # an assignment of an Array is compiled, too
        assert got.numpy()[0] == 3.0


@pytest.mark.parametrize("delay", [10])
def test_programs_on_the_device(delay):
    """All of tests/programs, captured whole, with copies to the device and back."""
    dummy.set_delay(delay)
    before = dummy.counts()["launch"]
    for name, program in PROGRAMS.items():
        compiled = cinductor.compile(
            program.function, device=DEVICE, backend="interp", fullgraph=True, options=ALWAYS
        )
        try:
            test_programs.check(program, compiled, program.sizes[:1])
        except AssertionError as error:
            raise AssertionError(name) from error
    assert dummy.counts()["launch"] > before + 500


@pytest.mark.parametrize("ufunc", test_op_matrix.ELEMENTWISE, ids=lambda f: f.__name__)
def test_ufuncs_on_the_device(ufunc):
    """One of five operands of the op matrix, so that each dtype and each layout occurs; all with CINDUCTOR_FUZZ.
    Operands are made contiguous, because others cannot be copied to the device and would run on the host.
    """
    groups = [
        (chars, group)
        for chars, group in test_op_matrix.operands_of(ufunc)
        if test_op_matrix.legal(ufunc, group)
    ][:: 1 if EVERYTHING else 5]

    def apply(groups):
        return [ufunc(*group) for group in groups]

    size = 100 // max(1, ufunc.nin)
    for start in range(0, len(groups), size):
        part = groups[start : start + size]
        operands = [[np.ascontiguousarray(a).reshape(a.shape) for a in group] for _, group in part]
        want = test_op_matrix.quiet(apply, operands)
        compiled = cinductor.compile(apply, device="dummy:1", backend="interp", options=ALWAYS)
        before = dummy.counts()["launch"]
        got = test_op_matrix.quiet(compiled, operands)
        assert dummy.counts()["launch"] > before
        for (chars, group), g, w in zip(part, got, want, strict=True):
            is_exact = not test_op_matrix.has_own_bits(ufunc)
            test_op_matrix.compare(ufunc, chars, group, g, w, is_exact)


def test_calls_are_not_saved():
    """A call on a registered device is not saved: the device may change while its name stays."""

    def program(x):
        return x * 2

    where = [saved.key_of(cinductor.compile(program, device=d, options={"saved_calls": True})._cinductor_job) for d in ("cpu", DEVICE)]
    assert where[0] is not None and where[1] is None


def test_compiled_kernels_run_there():
    x = np.linspace(0.0, 1.0, 1000)
    compiled = cinductor.compile(lambda x: (np.exp(x) * 2 + x.sum(), x[::-1].cumsum()), device=DEVICE, options=ALWAYS)
    for _ in range(2):
        for got, want in zip(compiled(x), (np.exp(x) * 2 + x.sum(), x[::-1].cumsum()), strict=True):
            assert np.array_equal(got, want)


def test_arrays_live_on_their_card():
    x = np.arange(12.0).reshape(3, 4)
    f = cinductor.compile(lambda a, b: (a @ b.T, a + b, a.sum()))
    dummy.set_delay(1000)
    for name in ("dummy", "dummy:1"):
        a, b = cinductor.to_device(x, name), cinductor.to_device(x * 2, cinductor.Device(name))
        results = f(a, b)
        assert [r.device for r in results] == [name] * 3
        for got, want in zip(results, (x @ (2 * x).T, 3 * x, x.sum()), strict=True):
            assert np.array_equal(got.numpy(), want)
        assert cinductor.to_device(a, name) is a
    there = cinductor.to_device(a, "dummy")
    assert there.device == "dummy" and np.array_equal(there.numpy(), x)
    with pytest.raises(TypeError, match="arrays of host and device together"):
        f(a, x)


# Device of a and of b, which of them is one row -> where kernels ran, and what was copied.
MATRIX = [
    (0, 0, "", 0, []),
    (1, 1, "b", 1, []),
    (0, 1, "b", 0, ["in1 from device 1 to device 0, 64 bytes"]),
    (1, 0, "b", 1, ["in1 from device 0 to device 1, 64 bytes"]),
    (0, 1, "a", 1, ["in0 from device 0 to device 1, 64 bytes"]),
    (1, 0, "a", 0, ["in0 from device 1 to device 0, 64 bytes"]),
    (1, 0, "", 1, ["in1 from device 0 to device 1, 384 bytes"]),
]


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_kernels_run_where_the_data_are(case):
    first, second, row, where, copied = case
    x, y = (np.arange(8.0) if name == row else np.arange(48.0).reshape(6, 8) for name in "ab")
    a, b = cinductor.to_device(x, f"dummy:{first}"), cinductor.to_device(y, f"dummy:{second}")
    dummy.set_delay(500)
    report = cinductor.explain(cinductor.compile(lambda a, b: a * 2 - b), a, b)
    assert np.array_equal(report.result.numpy(), x * 2 - y)
    assert cinductor.Device(report.result.device).index == where
    lines = json.loads(report.text("json"))["lines"]
    assert {line.get("device", first) for line in lines if line["line"] == "launch"} == {where}
    assert report.copies == copied and ("across(" in report.wrapper) == bool(copied)
    assert all(text in str(report) for text in copied)


def test_each_part_runs_on_its_card():
    """An array used only with data of one device is never moved. Covers regions, calls on the host, writes, and
    views.
    """

    def f(a, b):
        b += 1
        for i in range(1, 4):
            a[i] = a[i - 1] * 2 + b[0]
        return np.sin(a), b * 2, a.sum(axis=0) + b[1], np.linalg.inv(b[:4, :4] + np.eye(4) * 99), a[::2], np.zeros(3)

    x, y = np.linspace(0, 1, 64).reshape(8, 8), np.linspace(1, 2, 48).reshape(6, 8)
    want = f(x.copy(), y.copy())
    for first, second in ((0, 1), (1, 0)):
        a, b = cinductor.to_device(x, f"dummy:{first}"), cinductor.to_device(y, f"dummy:{second}")
        compiled = cinductor.compile(f)
        dummy.set_delay(300)
        results = compiled(a, b)
        names = ["dummy", "dummy:1"]
        assert [r.device for r in results[:2]] == [names[first], names[second]]
        assert results[4].device == a.device and results[5].device == b.device  # in the order of first use, b comes first
        for got, expected in zip(results, want, strict=True):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-15)
        np.testing.assert_array_equal(b.numpy(), y + 1)
        a[0] = 7
        assert (results[4].numpy()[0] == 7).all()


@pytest.mark.parametrize("dynamic", [None, True])
def test_library_calls_of_parts_of_arrays(dynamic):
    """An array that is not contiguous is packed on the device, then copied for a library call on the host."""
    compiled = cinductor.compile(lambda a, b: (np.linalg.inv(a), a @ b, np.linalg.solve(a, b), b), dynamic=dynamic)
    x, y = np.random.default_rng(1).random((12, 12)), np.arange(96.0).reshape(8, 12)
    for part, other in ((np.s_[::2, ::-2], np.s_[:6, 1::3]), (np.s_[2:6, 2:6], np.s_[::2, :5]), (np.s_[:8, 4:], np.s_[:, :1])):
        a, b = cinductor.to_device(x, DEVICE)[part], cinductor.to_device(y, DEVICE)[other]
        results = compiled(a, b)
        u, v = x[part], y[other]
        for got, want in zip(results, (np.linalg.inv(u), u @ v, np.linalg.solve(u, v), v), strict=True):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)
        assert results[3] is b


@pytest.mark.parametrize("size", [5, 9])
def test_sizes_that_vary_on_two_cards(size):
    compiled = cinductor.compile(lambda a, b: (a[:, None] * b, b.cumsum()), dynamic=True)
    for n in (size, size + 3, 1):
        a, b = cinductor.to_device(np.arange(n) + 0.5, "dummy:1"), cinductor.to_device(np.arange(n + 1.0), "dummy")
        got = compiled(a, b)
        assert np.array_equal(got[0].numpy(), np.outer(np.arange(n) + 0.5, np.arange(n + 1.0)))
        assert np.array_equal(got[1].numpy(), np.arange(n + 1.0).cumsum())
    assert len(compiled._cinductor_job.twins) == 1


def test_streams_of_two_cards():
    """A copy between devices runs after the kernel that makes the array, and before a later write to it."""
    add = cinductor.compile(lambda a, b: a + b)
    a, b = cinductor.to_device(np.zeros(500), "dummy"), cinductor.to_device(np.zeros(500), "dummy:1")
    dummy.set_delay(1500)
    for _ in range(4):
        with cinductor.Stream("dummy:1"):
            b += 1
        with cinductor.Stream("dummy"):
            a = add(a, b)
        b += 1
    assert (a.numpy() == 1 + 3 + 5 + 7).all()
    dummy.set_failing("copy_across")
    with pytest.raises(cinductor.DeviceError, match="told to fail in copy_across"):
        add(a, b)


def test_copies_to_the_host_that_do_not_wait():
    a = cinductor.to_device(np.arange(24.0).reshape(4, 6), DEVICE)
    dummy.set_delay(3000)
    made = a * 2
    began, before = dummy.counts(), dummy.counts()["copy_out"]
    copies = [made.start_copy(), made[1:, ::-2].start_copy(), made[:0].start_copy()]
    made += 1  # after the copies
    del made
    for copy, where in zip(copies, (np.s_[:], np.s_[1:, ::-2], np.s_[:0]), strict=True):
        assert np.array_equal(copy.numpy(), (np.arange(24.0).reshape(4, 6) * 2)[where]) and copy.numpy() is copy.numpy()
    assert dummy.counts()["copy_out_start"] == began["copy_out_start"] + 2 and dummy.counts()["copy_out"] == before
    a.start_copy()  # the copy is never read, but must finish before its memory is freed
    dummy.set_failing("copy_out_start")
    with pytest.raises(cinductor.DeviceError, match="told to fail in copy_out_start"):
        a.start_copy()


def test_a_notebook_shows_an_array(monkeypatch):
    html = cinductor.to_device(np.arange(6.0).reshape(2, 3), "dummy:1")._repr_html_()
    for text in ("2×3", "float64", "dummy:1", "48 B", "[[0., 1., 2.],\n [3., 4., 5.]]"):
        assert text in html
    assert "0-d" in cinductor.to_device(np.array(7.5), "dummy")._repr_html_()
    monkeypatch.setattr("cinductor.report.notebook.MAX_COPIED", 16)
    html = cinductor.to_device(np.arange(6.0), "dummy")._repr_html_()
    assert "<pre>" not in html and "more than 16 B" in html


def doubled_there(x, k):
    x[k] *= 2
    return x


def counted(x):
    x += 1
    if x.sum() > 100:
        raise ValueError("too much")
    return x * 2


def test_what_a_check_finds_is_python_s_own_exception():
    """The exception is raised at its own line, as on the host: earlier statements have run, later ones have not."""
    x = cinductor.to_device(np.arange(5.0), "dummy")
    k = cinductor.to_device(np.array([1, 9]), "dummy")
    dummy.set_delay(500)
    for _ in range(2):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5") as caught:
            cinductor.compile(doubled_there)(x, k)
        assert caught.traceback[-1].name == "doubled_there"
        assert x.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(IndexError, match="an index is out of bounds"):  # the host runs it, because arrays that share memory are not copied
        cinductor.compile(lambda x, y, k: x[k] + y[k])(x, x[1:], k)
    compiled = cinductor.compile(counted)
    assert compiled(x).tolist() == [2, 4, 6, 8, 10]
    x *= 20
    with pytest.raises(ValueError, match="too much"):
        compiled(x)
    assert x.tolist() == [21, 41, 61, 81, 101]


@pytest.mark.parametrize("name", ["copy_in", "copy_out", "launch", "allocate"])
def test_what_fails_there_is_one_clear_error(name):
    x = np.arange(100.0)
    compiled = cinductor.compile(lambda x: np.cos(x) * 2 + x.mean(), device="dummy", options=ALWAYS)
    want = compiled(x)
    dummy.set_failing(name)
    if name == "allocate":  # if the device has no memory left, the host runs the program
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(compiled(x), want)
    else:
        with pytest.raises(cinductor.DeviceError, match=f"told to fail in {name}"):
            compiled(x)
    dummy.set_failing(None)
    assert np.array_equal(compiled(x), want)


def test_failures_of_arrays():
    x = cinductor.to_device(np.arange(100.0), "dummy")
    compiled = cinductor.compile(lambda x: x * 2 + x.sum())
    compiled(x)
    for name, error in (("launch", cinductor.DeviceError), ("allocate", MemoryError)):
        dummy.set_failing(name)
        with pytest.raises(error):
            compiled(x)
    dummy.set_failing("copy_out")
    with pytest.raises(cinductor.DeviceError, match="told to fail in copy_out"):
        x.numpy()
    dummy.set_failing(None)
    with pytest.raises(cinductor.DeviceError, match="there are 2 dummy devices"):
        cinductor.to_device(np.arange(3.0), "dummy:5")


def test_names():
    assert [str(d) for d in cinductor.devices("dummy")] == ["dummy", "dummy:1"]
    assert cinductor.devices()[0] == cinductor.Device("cpu")
    assert repr(cinductor.Device("dummy:1")) == "Device('dummy:1')"
    assert cinductor.Device("dummy", 1).description == "Dummy device 1"
    assert cinductor.Device("dummy").memory == 1 << 30
    assert cinductor.Device("dummy").backends == {"c": None, "interp": None}
    assert cinductor.Device("cpu").units >= 1
    for wrong, text in (("gpu", "did you mean"), ("dummy:x", "'cuda:1'")):
        with pytest.raises(ValueError, match=text):
            cinductor.compile(np.sin, device=wrong)
    with pytest.raises(ValueError, match="there is no device 'gpu'; there are: cpu, cuda, dummy"):
        cinductor.devices("gpu")


# --- arrays ---------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((4, 6))
OPERATIONS = [
    *(lambda a, f=f: f(a, 2.5) for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)),
    lambda a: (3 - a, 2**a, -a, abs(a), a // 2, a % 2, divmod(a, 2), 1 / a),
    lambda a: (a > 0, a == a, a != 1, 0.5 <= a, (a > 0) & ~(a > 1), (a > 0) ^ (a < 1)),
    lambda a: (a @ a.T, np.float64(2) * a, a * np.float32(2), (a * 3).astype("i4") << 1),
    lambda a: (np.exp(a), np.maximum(a, a[0]), np.add.reduce(a), np.add.outer(a[0], a[1]), np.modf(a)),
    lambda a: (np.concatenate([a, a]), np.where(a > 0, a, 0), np.linalg.norm(a), np.cumsum(a, axis=1)),
    lambda a: (a.sum(), a.mean(axis=0), a.max(1), a.reshape(3, 8), a.T, a.ravel(), a.cumsum(), a.argmax()),
    lambda a: (a[1], a[1, 2], a[:, ::2], a[..., None], a[-1:], a[a > 0], a[[0, 2]], a[a[:, 0].copy().argsort()]),
    lambda a: (float(a[0, 0]), int(a[0, 1]), bool(a[0, 0] > 0), a[1].tolist(), a[1, 1].item(), len(a), float(f"{a[0, 0]:.2f}")),
    lambda a: list(a),
]


def values(result):
    if isinstance(result, tuple | list):
        return [values(v) for v in result]
    return result.numpy() if isinstance(result, cinductor.Array) else np.asarray(result)


@pytest.mark.parametrize("k", range(len(OPERATIONS)))
def test_arrays_are_numpys(k):
    a = cinductor.to_device(X, DEVICE)
    with np.errstate(all="ignore"):
        got, want = values(OPERATIONS[k](a)), values(OPERATIONS[k](X))
    for g, w in zip(got, want, strict=True) if isinstance(got, list) else [(got, want)]:
        np.testing.assert_allclose(g, w, rtol=1e-14)


def test_arrays_are_written():
    a, x = cinductor.to_device(X, DEVICE), X.copy()
    view = a[1:, ::2]
    for array in (a, x):
        array += 1
        array[0] = 5
        array[array < 0] = -1
        array[2, 1:3] *= array[0, :2]
        array.sort(axis=1)
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(view.numpy(), x[1:, ::2])
    again = pickle.loads(pickle.dumps(a))
    assert again.device == "dummy" and np.array_equal(again.numpy(), x)
    assert eval(repr(a[0, :2]), {"Array": lambda v, dtype, device: v, "float64": 0}) == list(x[0, :2])


def test_what_an_array_is_not():
    a = cinductor.to_device(X, DEVICE)
    with pytest.raises(IndexError):
        a[9]
    with pytest.raises(ValueError, match="more than one element"):
        bool(a)
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    with pytest.raises(TypeError, match="use .numpy"):
        np.asarray(a)
    with pytest.raises(TypeError, match="host and device together"):
        a + X
    with pytest.raises(BufferError, match="no number for device 'dummy'"):
        a.__dlpack__()
    with pytest.raises(AttributeError, match="no CUDA array"):
        a.__cuda_array_interface__  # noqa: B018
    with pytest.raises(TypeError, match="neither __dlpack__ nor"):
        cinductor.from_dlpack([1, 2])
    assert a.__dlpack__(dl_device=(1, 0)) is not None  # a copy on the host


def test_a_stream_that_is_left_while_a_program_runs_in_it():
    """A library call of the user leaves the stream. The program continues in the stream in which it began."""
    left = []

    @cinductor.custom_op(shape=lambda x: x.shape)
    def leaves(x):
        while left:
            left.pop().__exit__(None, None, None)
        gc.collect()
        return x + 1

    whole = np.arange(24.0)
    f, a = cinductor.compile(lambda x: leaves(x * 2) * 3 + leaves(x)), cinductor.to_device(whole, DEVICE)
    for _ in range(4):
        stream = cinductor.Stream(DEVICE)
        stream.__enter__()
        left.append(stream)
        del stream
        np.testing.assert_array_equal(f(a).numpy(), (whole * 2 + 1) * 3 + whole + 1)
        assert not left


ENDING = """
import numpy as np, cinductor, cinductor_dummy as dummy
a = cinductor.to_device(np.arange(8e6), dummy.register())
f = cinductor.compile(lambda x: np.tanh(x) * 3)
f(a).numpy()
dummy.set_delay(200000)
kept = f(a)  # its kernel runs, and polls, while Python ends
"""


def test_a_kernel_that_runs_while_the_process_ends():
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_operations_by_name():
    a, out = cinductor.to_device(X, DEVICE), np.empty(24)
    assert cinductor.ops.implementations("add").keys() >= {"numpy", "cpu.c", "cpu.interp", "dummy.c"}
    for name in ("numpy", "cpu.interp", "dummy.interp"):
        np.testing.assert_array_equal(cinductor.ops.add(X, 1, implementation=name), X + 1)
    assert cinductor.ops.cumsum(X, out=out) is out and np.array_equal(out, X.cumsum())
    np.testing.assert_array_equal(cinductor.ops.negative(a).numpy(), -X)
    with pytest.raises(AttributeError, match="no operation is called 'nothing'"):
        cinductor.ops.nothing  # noqa: B018
    with pytest.raises(ValueError, match="implementation is 'gpu'; there are: numpy, cpu.c"):
        cinductor.ops.add(X, X, implementation="gpu")


@pytest.mark.parametrize("stance", ["force_eager", "eager_on_recompile", "fail_on_recompile"])
def test_operations_in_every_stance(stance):
    """Operators on device arrays are always compiled, because NumPy cannot compute them. Functions run operation by
    operation or are refused.
    """
    a, f = cinductor.to_device(X, DEVICE), cinductor.compile(lambda a: np.tanh(a * 3) + a.sum())
    with cinductor.set_stance(stance):
        for call in (
            *(lambda a, k=k: OPERATIONS[k](a) for k in (0, 4, 6, 7)),
            lambda a: (cinductor.ops.cosh(a) if stance == "force_eager" else np.cosh(a), np.hypot(a, 3.5), np.fliplr(a), a.ptp() if hasattr(a, "ptp") else a.trace()),
            lambda a: a.__iadd__(0),
        ):
            with np.errstate(all="ignore"):
                got, want = values(call(a)), values(call(X))
            for g, w in zip(got, want, strict=True) if isinstance(got, list) else [(got, want)]:
                np.testing.assert_allclose(g, w, rtol=1e-14)
        np.testing.assert_array_equal(cinductor.ops.add(X, 1, implementation="numpy"), X + 1)
        if stance == "fail_on_recompile":
            with pytest.raises(cinductor.RecompileError, match="nothing was compiled before"):
                f(a)
        else:
            before = dummy.counts()["launch"]
            np.testing.assert_allclose(f(a).numpy(), np.tanh(X * 3) + X.sum(), rtol=1e-14)
            assert dummy.counts()["launch"] >= before + 4  # one by one
    np.testing.assert_allclose(f(a).numpy(), np.tanh(X * 3) + X.sum(), rtol=1e-14)


KNOWN = [cinductor.compile(lambda a: np.exp(a).sum()) for _ in range(2)]
WAYS = {
    "compile": lambda a: cinductor.compile(lambda a: np.exp(a).sum())(a),
    "nested": lambda a: cinductor.compile(lambda p: np.exp(p["a"][0]).sum())({"a": [a, 2]}),
    "known": KNOWN[0],
    "known by a keyword": lambda a: KNOWN[1](a=a),
    "operator": lambda a: a * 2,
    "in place": lambda a: a.__iadd__(1),
    "comparison": lambda a: a < 2,
    "method": lambda a: a.sum(),
    "ufunc": lambda a: np.exp(a),
    "ufunc's method": lambda a: a.__array_ufunc__(np.add, "reduce", a),  # what it raises is NumPy's own error
    "function": lambda a: np.cumsum(a),
    "item": lambda a: a[[0, 1]],
    "namespace": lambda a: a.__array_namespace__().exp(a),
    "operation": lambda a: cinductor.ops.exp(a),
    "operation of the device": lambda a: cinductor.ops.exp(a, implementation="dummy.interp"),
}


@pytest.mark.parametrize("entry", WAYS)
def test_exact_numerics_hold_or_are_refused(entry, monkeypatch):
    """With numerics="exact", no way of calling launches on this device, including repeated calls and the environment
    variable.
    """
    a, call = cinductor.to_device(X, DEVICE), WAYS[entry]
    call(a)
    cinductor.synchronize(DEVICE)
    before = dummy.counts()["launch"]
    with cinductor.config.patch(numerics="exact"), pytest.raises(ValueError, match="numerics is 'exact', .* device 'dummy'"):
        call(a)
    monkeypatch.setenv("CINDUCTOR_NUMERICS", "exact")
    cinductor.config.reload()
    with pytest.raises(ValueError, match="numerics is 'exact'"):
        call(a)
    monkeypatch.undo()
    cinductor.config.reload()
    assert dummy.counts()["launch"] == before
    call(a)


def test_exact_numerics_of_one_function():
    a, f = cinductor.to_device(X, DEVICE), lambda a: np.exp(a).sum()
    exact, own = [cinductor.compile(f, options={"numerics": name}) for name in ("exact", "close")]
    for _ in range(2):
        with pytest.raises(ValueError, match="numerics is 'exact'"):
            exact(a)
    assert exact(X) == f(X)  # arrays of the host are computed on the host
    with cinductor.config.patch(numerics="exact"):
        np.testing.assert_allclose([own(a).numpy() for _ in range(3)], f(X))
        with pytest.raises(ValueError, match="numerics is 'exact'"):
            cinductor.compile(f, device=DEVICE)
    on_device = cinductor.compile(f, device=DEVICE)
    with cinductor.config.patch(numerics="exact"), pytest.raises(ValueError, match="numerics is 'exact'"):
        on_device(X)


@pytest.mark.parametrize("asked, index", [("cpu", 0), ("dummy:0", 1), ("dummy:1", 0), (cinductor.Device("dummy"), 1), ("cuda", 0)])
def test_a_device_that_is_asked_for_is_where_it_runs(asked, index):
    a = cinductor.to_device(X, f"dummy:{index}")
    f = cinductor.compile(lambda a: a * 2, device=asked)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"device is '{asked}(:0)?', but an argument is an array of 'dummy(:1)?'"):
            f(a)
    both = cinductor.to_device(X, "dummy"), cinductor.to_device(X, "dummy:1")
    with pytest.raises(ValueError, match="but an argument is an array"):
        cinductor.compile(lambda a, b: a + 1, device=asked)(*both)
    with pytest.raises(ValueError, match="device is 'cpu', but"):
        cinductor.ops.exp(a, implementation="cpu.interp")
    any_of_them = cinductor.compile(lambda a: a * 2, device="dummy", backend="interp")
    assert any_of_them(a).device == a.device


@pytest.mark.parametrize("f", [lambda a: a if a.sum() > 3 else [a], lambda a: np.roots(a[0]), lambda a: (print(end=""), a)[1]])
def test_what_needs_python_is_refused_in_words_of_the_call(f):
    a, compiled = cinductor.to_device(X, DEVICE), cinductor.compile(f)
    for _ in range(2):
        with pytest.raises(cinductor.Unsupported, match="is an array of a device") as caught:
            compiled(a)
        assert "fullgraph" not in str(caught.value) and "give .numpy()" in str(caught.value)
    compiled(X)
    with pytest.raises(cinductor.Unsupported, match="fullgraph=False runs in Python"):
        cinductor.compile(f, fullgraph=True)(X)


@pytest.mark.parametrize("name", device_objects.CASES)
def test_objects_contain_arrays_of_the_device(name):
    dummy.set_delay(20)
    device_objects.check(name, DEVICE)


def test_calls_like_one_before_ask_nothing_of_python(monkeypatch):
    """A repeated call of a compiled function or operator runs no Python code, on any device."""
    from cinductor.arrays import calls

    f = cinductor.compile(lambda a, b, k: (a, a + b * k, [a[0]]))
    g = cinductor.compile(lambda a, b: (b, a - b))
    h = cinductor.compile(lambda a, b: {"sum": a + b})
    arrays = [cinductor.to_device(X, name) for name in ("dummy", "dummy:1")]
    for a in arrays:
        for b in arrays:
            f(a, b, 2.0), g(a, b), h(a, b), a * b
        a + 1.5, 1.5 - a, -a, a > 0, a @ a.T
    seen = []
    monkeypatch.setattr(calls, "run_compiled", lambda *args: seen.append(args) or "python")
    for a in arrays:
        for b in arrays:
            second, difference = g(a, b)
            assert second is b and difference.device == a.device and not difference.numpy().any()
            assert ((a * b).numpy() == X * X).all() and (a * b).device == a.device
            same, total, [row] = f(a, b, 3.0)
            assert same is a and (total.numpy() == X + X * 3).all() and (row.numpy() == X[0]).all()
            assert (h(a, b)["sum"].numpy() == X + X).all()
        for got, want in ((a + 2.5, X + 2.5), (2.5 - a, 2.5 - X), (-a, -X), (a > 0, X > 0), (a @ a.T, X @ X.T)):
            assert type(got) is cinductor.Array and np.allclose(got.numpy(), want)
    assert not seen
    assert g(arrays[0], np.float64(2)) == "python" and g(arrays[0], b=arrays[1]) == "python"


def test_what_fails_in_such_calls():
    f = cinductor.compile(lambda x, k: (x[k] * 2, x))
    x, k = cinductor.to_device(np.arange(5.0), DEVICE), cinductor.to_device(np.array([1, 3]), DEVICE)
    f(x, k)
    assert f(x, k)[1] is x
    k[0] = 9
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(x, k)
    k[0] = -1
    assert f(x, k)[0].tolist() == [8.0, 6.0]
    dummy.set_failing("launch")
    with pytest.raises(cinductor.DeviceError, match="(?s)told to fail in launch.*called with x: float64"):
        f(x, k)
    dummy.set_failing(None)
    with pytest.raises(TypeError, match="missing 1 required"):
        f(x)
    with pytest.raises(TypeError, match="made by cinductor.to_device"):
        cinductor.Array(np.array(["a"]))
    with pytest.raises(ValueError, match="broadcast"):
        f(x, k)[0] + cinductor.to_device(np.ones(7), DEVICE)


# --- streams and memory ---------------------------------------------------------------------------


def test_streams_wait_for_each_other():
    """A stream waits before it reads an array that another stream computes, and before it writes one that another
    stream reads.
    """
    double = cinductor.compile(lambda a: a * 2)
    a = cinductor.to_device(np.arange(1000.0), DEVICE)
    streams = [cinductor.Stream(DEVICE) for _ in range(3)]
    dummy.set_delay(2000)
    made = a
    for k in range(9):
        with streams[k % 3]:
            made = double(made)
            a[k] = 0
    np.testing.assert_array_equal(made.numpy(), np.arange(1000.0) * 512)
    assert not a[:9].numpy().any()
    streams[0].wait(streams[1])
    event = streams[2].record()
    streams[0].wait(event)
    event.synchronize()
    streams[0].synchronize()
    assert streams[0].device == DEVICE and streams[0].handle != streams[1].handle


def test_a_thread_has_its_own_stream():
    found = []

    def look():
        found.append(cinductor._core.stream_in_force.get())

    with cinductor.Stream(DEVICE) as stream:
        assert cinductor._core.stream_in_force.get() is stream._stream
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [None] and cinductor._core.stream_in_force.get() is None


def test_what_streams_refuse():
    stream, event = cinductor.Stream(DEVICE), cinductor.Event(DEVICE)
    with pytest.raises(ValueError, match="an event of dummy:1 for a stream of dummy:0"):
        stream.record(cinductor.Event("dummy:1"))
    with pytest.raises(ValueError, match="are not timed"):
        stream.record().elapsed(stream.record())
    for name, call in (
        ("stream_open", lambda: cinductor.Stream(DEVICE)),
        ("event_open", lambda: cinductor.Event(DEVICE)),
        ("event_record", stream.record),
        ("event_wait", lambda: stream.wait(event)),
        ("event_synchronize", lambda: event.synchronize()),
        ("synchronize", stream.synchronize),
    ):
        dummy.set_failing(name)
        with pytest.raises(cinductor.DeviceError, match=f"told to fail in {name}"):
            call()
        dummy.set_failing(None)


def test_memory_in_use():
    before = cinductor.memory_stats(DEVICE)["allocated"]
    a = cinductor.to_device(np.ones(1000), DEVICE)
    b = a * 2
    stats = cinductor.memory_stats(DEVICE)
    assert stats["allocated"] - before == 16000 and stats["reserved"] == stats["allocated"] <= stats["peak"]
    del b
    cinductor.reset_peak(DEVICE)
    assert cinductor.memory_stats(DEVICE)["peak"] - before == 8000
    cinductor.configure_memory("limit:20KB", DEVICE)
    with pytest.raises(MemoryError, match="dummy:0 has no 16000 bytes: 8000 are allocated in 1 blocks, the limit is 20000"):
        cinductor.to_device(np.ones(2000), DEVICE)
    cinductor.configure_memory("limit:0", DEVICE)
    assert cinductor.to_device(np.ones(2000), DEVICE).size == 2000
    cinductor.empty_cache(DEVICE)
    for wrong in ("limit", "speed:3", "limit:much"):
        with pytest.raises(ValueError):
            cinductor.configure_memory(wrong, DEVICE)
    with pytest.raises(ValueError, match="device 'cpu' has no memory of its own"):
        cinductor.memory_stats("cpu")


def test_the_device_in_force():
    with cinductor.device("dummy:1") as device:
        assert cinductor.to_device(X).device == "dummy:1" == str(device) and cinductor.Stream().device == device
        with cinductor.device("dummy"):
            assert cinductor.to_device(X).device == "dummy"
        assert cinductor.memory_stats()["blocks"] == 0


# --- registering ----------------------------------------------------------------------------------


class Card:
    """A device implemented in Python; its memory comes from ctypes."""

    name, doc = "card", "memory of ctypes"

    def __init__(self):
        self.blocks, self.log = {}, []

    def allocate(self, index, size, stream):
        self.log.append("allocate")
        block = ctypes.create_string_buffer(size + 64)
        address = (ctypes.addressof(block) + 63) // 64 * 64
        self.blocks[address] = block
        return address

    def release(self, index, address, size, stream):
        del self.blocks[address]

    def copy_in(self, index, address, host, stream):
        ctypes.memmove(address, bytes(host), len(host))

    def copy_out(self, index, address, host, stream):
        host[:] = ctypes.string_at(address, len(host))

    def synchronize(self, index, stream):
        self.log.append("synchronize")

    def properties(self, index):
        return "A card of Python", 1 << 20, 3

    def launch(self, index, kernel, stream):
        self.log.append(("launch", kernel))


def test_a_device_of_python():
    card = Card()
    assert str(cinductor.register_device(card)) == "card"
    x = np.arange(20.0)
    compiled = cinductor.compile(lambda x: np.sqrt(x) + x.sum(), device="card", options=ALWAYS)
    assert np.array_equal(compiled(x), np.sqrt(x) + x.sum())
    assert card.log.count("allocate") >= 2 and ("launch", 0) in card.log
    assert cinductor.Device("card").units == 3 and not card.blocks
    array = cinductor.to_device(x, "card")
    assert np.array_equal(cinductor.compile(lambda x: x * x)(array).numpy(), x * x)
    with pytest.raises(ValueError, match="backend 'c' of device 'card': there is one of that name"):
        cinductor.register_device(Card())

    def fails(index, size, stream):
        raise RuntimeError("the device is gone")

    card.allocate = fails
    with pytest.raises(cinductor.DeviceError, match="the device is gone"):
        compiled(x)
    del array, card.allocate
    gc.collect()
    assert not card.blocks


def test_what_is_no_device_is_refused():
    class Half:
        name, doc = "half", ""

        def allocate(self, index, size, stream):
            return 0

    with pytest.raises(TypeError, match="a device has a method release"):
        cinductor.register_device(Half())
    records = {name: lambda self, *args: 1 for name in ("record_begin", "replay", "record_close")}
    with pytest.raises(TypeError, match="a device that records has a method record_end"):
        cinductor.register_device(type("Taper", (Card,), records)())
    with pytest.raises(ValueError, match="a compiler is one of the processor's by name"):
        cinductor.register_device(Card(), compilers=["none"])
    card = Card()
    card.name = "another"
    with pytest.raises(ValueError, match="device 'another': it has no compiler"):
        cinductor.register_device(card, compilers=[])
    with pytest.raises(ValueError, match="it is named twice"):
        cinductor.register_device(card, compilers=["c", "c"])
    card.name = 3
    with pytest.raises(TypeError, match="a device's name is a str"):
        cinductor.register_device(card)
    with pytest.raises(OSError, match=r"nowhere\.so: cannot open"):
        cinductor.register_device("/nowhere.so")
    with pytest.raises(OSError, match="undefined symbol: cinductor_connect"):
        cinductor.register_device(cinductor._core.__file__)
    struct = (ctypes.c_int * 64)(99)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(ValueError, match="it was made for another version of cinductor"):
        cinductor.register_device(make(ctypes.addressof(struct), b"cinductor.CiDevice", None))
    with pytest.raises(ValueError, match="incorrect name"):
        cinductor.register_device(make(ctypes.addressof(struct), b"something", None))
    assert [d.name for d in cinductor.devices()].count("another") == 0
